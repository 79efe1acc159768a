/* Guards of an opaque row's loops, which nobody has proved: a `check` before whatever is not certain
   to stay inside. Each access of a buffer (ir/loop_checks.c), each view inside its source, no
   negative extents, loops whose ends stay away from the end of 64 bits. Extents and offsets are read
   once, at the declaration: those that read buffers become a `let` before it, so that later checks
   and addresses see the same value.

   What a buffer holds may change, so a checked condition that reads one lasts for a statement. */
#include "ir/loop_internal.h"
#include "ir/opaque_internal.h"

typedef struct {
    kn_checks checks;
    kn_map *used; /* names */
} guard;

static const char *message(const guard *g, const char *what, const char *name)
{
    return kn_intern_f(kn_arena_ctx(g->checks.arena), "%s: %s %s", g->checks.nest->name, what,
                       name);
}

/* That x <= y. */
static void require_le(guard *g, kn_block_builder *b, const kn_expr *x, const kn_expr *y,
                       const char *text)
{
    kn_checks *c = &g->checks;
    if (!kn_known_nonneg(&c->known, kn_index_sub(c->arena, y, x)))
        kn_checks_condition(c, b, kn_op2(c->arena, KN_OP_LE, x, y), text);
}

static void forget_loads(kn_checks *c)
{
    int kept = 0;
    for (int i = 0; i < c->checked.n; i++) {
        if (!kn_expr_has_load(c->checked.at[i]))
            c->checked.at[kept++] = c->checked.at[i];
    }
    c->checked.n = kept;
}

static int64_t greatest_of(const guard *g, const kn_expr *e)
{
    const kn_known *k = &g->checks.known;
    return kn_index_range(kn_index_simplify(k->arena, e), k->bounds.at, k->bounds.n).hi;
}

/* ---- Declarations ---- */

static void know_let(guard *g, const char *name, const kn_expr *value)
{
    kn_arena *a = g->checks.arena;
    kn_known_span(&g->checks.known, name, value, kn_index_add(a, value, kn_index(a, 1)));
}

/* A value that does not change any more. */
static const kn_expr *settled(guard *g, kn_block_builder *b, const kn_expr *e, const char *buffer,
                              const char *suffix)
{
    kn_arena *a = g->checks.arena;
    kn_checks_expr(&g->checks, b, e);
    if (!kn_expr_has_load(e))
        return e;
    const char *wanted = kn_intern_f(kn_arena_ctx(a), "%s_%s", buffer, suffix);
    const char *name = kn_unique_name(a, g->used, wanted);
    kn_checks_add(&g->checks, b, kn_loop_let(a, name, KN_INDEX, e));
    know_let(g, name, e);
    return kn_var(a, KN_INDEX, name);
}

/* A negative extent is refused where it is certain: nothing could be reserved for it. */
static void settle_shape(guard *g, kn_block_builder *b, kn_buffer *buffer)
{
    kn_arena *a = g->checks.arena;
    const kn_expr **shape = KN_ARRAY(a, const kn_expr *, buffer->rank);
    const char *text = message(g, "a negative extent of", buffer->name);
    for (int i = 0; i < buffer->rank; i++) {
        shape[i] = settled(g, b, buffer->shape[i], buffer->name, "size");
        if (greatest_of(g, shape[i]) < 0)
            kn_raise(kn_arena_ctx(a), KN_INVALID, g->checks.loc, "%s", text);
        require_le(g, b, kn_index(a, 0), shape[i], text);
    }
    buffer->shape = shape;
}

/* At most `room` elements, dimension by dimension, where their product may leave 64 bits. */
static void require_few(guard *g, kn_block_builder *b, const kn_buffer *view, const kn_expr *room,
                        const char *text)
{
    kn_arena *a = g->checks.arena;
    const kn_expr *one = kn_index(a, 1), *count = one;
    for (int i = 0; i < view->rank; i++) {
        const kn_expr *most = kn_index_div(a, room, kn_index_max(a, count, one));
        require_le(g, b, view->shape[i], most, text);
        count = kn_index_mul(a, count, view->shape[i]);
    }
}

static void guard_view(guard *g, kn_block_builder *b, kn_loop *s)
{
    kn_arena *a = g->checks.arena;
    kn_buffer *view = &s->buffer;
    const kn_buffer *source = kn_scope_find(&g->checks.buffers, s->name)->buffer;
    const char *text = message(g, "a view does not fit in", s->name);
    const kn_expr *have = kn_index_product(a, source->shape, source->rank);
    const kn_expr *offset = kn_index(a, 0);
    if (view->offset)
        offset = view->offset = settled(g, b, view->offset, view->name, "at");
    settle_shape(g, b, view);
    require_le(g, b, kn_index(a, 0), offset, text);
    require_le(g, b, offset, have, text);
    const kn_expr *room = kn_index_sub(a, have, offset);
    const kn_expr *count = kn_index_product(a, view->shape, view->rank);
    if (greatest_of(g, count) == INT64_MAX)
        require_few(g, b, view, room, text);
    else
        require_le(g, b, count, room, text);
}

/* ---- Statements ---- */

static kn_block guard_block(guard *g, kn_block block);

/* A block where a condition holds or does not. */
static kn_block guard_under(guard *g, const kn_expr *cond, bool holds, kn_block block)
{
    kn_known_mark mark = kn_known_here(&g->checks.known);
    kn_known_assume(&g->checks.known, cond, holds);
    kn_block out = guard_block(g, block);
    kn_known_back(&g->checks.known, mark);
    return out;
}

/* The variable's last step may not leave 64 bits. */
static void guard_end(guard *g, kn_block_builder *b, const kn_loop *s)
{
    int64_t last = INT64_MAX - s->step;
    if (greatest_of(g, s->hi) > last)
        require_le(g, b, s->hi, kn_index(g->checks.arena, last),
                   message(g, "64 bits are not enough for", s->name));
}

static void guard_for(guard *g, kn_block_builder *b, kn_loop *s)
{
    kn_checks_expr(&g->checks, b, s->lo);
    kn_checks_expr(&g->checks, b, s->hi);
    guard_end(g, b, s);
    kn_known_mark mark = kn_known_here(&g->checks.known);
    kn_known_span(&g->checks.known, s->name, s->lo, s->hi);
    s->body = guard_block(g, s->body);
    kn_known_back(&g->checks.known, mark);
}

static void guard_store(guard *g, kn_block_builder *b, const kn_loop *s)
{
    for (int i = 0; i < s->nargs; i++)
        kn_checks_expr(&g->checks, b, s->args[i]);
    kn_checks_expr(&g->checks, b, s->expr);
    kn_checks_access(&g->checks, b, s->name, s->args);
}

/* Adds the statement to the block, its checks before it. */
static void guard_stmt(guard *g, kn_block_builder *b, kn_loop *s)
{
    kn_checks *c = &g->checks;
    c->loc = s->loc;
    forget_loads(c);
    switch (s->kind) {
    case KN_S_FOR: guard_for(g, b, s); break;
    case KN_S_IF:
        kn_checks_expr(c, b, s->expr);
        s->body = guard_under(g, s->expr, true, s->body);
        s->orelse = guard_under(g, s->expr, false, s->orelse);
        break;
    case KN_S_ALLOC: settle_shape(g, b, &s->buffer); break;
    case KN_S_VIEW: guard_view(g, b, s); break;
    case KN_S_STORE: guard_store(g, b, s); break;
    case KN_S_LET:
    case KN_S_CHECK: kn_checks_expr(c, b, s->expr); break;
    case KN_S_CALL: break; /* refused in opaque.c */
    }
    kn_block_add(b, s);
    if (s->kind == KN_S_ALLOC || s->kind == KN_S_VIEW)
        kn_checks_buffer(c, &s->buffer);
    else if (s->kind == KN_S_LET && s->type == KN_INDEX)
        know_let(g, s->name, s->expr);
    else if (s->kind == KN_S_CHECK)
        kn_known_assume(&c->known, s->expr, true);
}

static kn_block guard_block(guard *g, kn_block block)
{
    kn_checks *c = &g->checks;
    kn_block_builder b = {.arena = c->arena};
    kn_known_mark mark = kn_known_here(&c->known);
    int buffers = c->buffers.n;
    forget_loads(c);
    int checked = c->checked.n;
    for (int i = 0; i < block.n; i++)
        guard_stmt(g, &b, block.at[i]);
    c->checked.n = checked;
    c->buffers.n = buffers;
    kn_known_back(&c->known, mark);
    return kn_block_done(&b);
}

void kn_opaque_guard(kn_arena *a, kn_func *f, const kn_nest *nest, kn_map *used)
{
    guard g = {kn_checks_start(a, nest), used};
    for (int i = 0; i < f->nparams; i++) {
        if (f->params[i].mode != KN_PARAM_SCALAR)
            kn_checks_buffer(&g.checks, &f->params[i].buffer);
    }
    f->body = guard_block(&g, f->body);
}
