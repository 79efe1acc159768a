/* Checks at run time of the accesses that are not certain to lie inside their buffers, for whoever
   makes loops. A check stands before the statement of its access and under the guards that the
   access stands under: the condition of a select, the left side of && and ||. What was checked at a
   place is not checked there again. */
#include <assert.h>

#include "ir/loop_internal.h"

kn_checks kn_checks_start(kn_arena *a, const kn_nest *nest)
{
    kn_checks c = {.arena = a, .nest = nest};
    c.known.arena = a;
    for (int i = 0; i < nest->nsizes; i++)
        kn_known_size(&c.known, nest->sizes[i].name, nest->sizes[i].lo, nest->sizes[i].hi);
    for (int i = 0; i < nest->nrequires; i++)
        kn_known_assume(&c.known, nest->requires_[i], true);
    return c;
}

void kn_checks_buffer(kn_checks *c, const kn_buffer *buffer)
{
    kn_name name = {.name = buffer->name, .buffer = buffer, .type = buffer->type};
    kn_push(c->arena, &c->buffers, name);
}

void kn_checks_add(const kn_checks *c, kn_block_builder *b, kn_loop *s)
{
    s->loc = c->loc;
    kn_block_add(b, s);
}

static bool checked_already(const kn_checks *c, const kn_expr *cond)
{
    for (int i = 0; i < c->checked.n; i++) {
        if (kn_expr_equal(c->checked.at[i], cond))
            return true;
    }
    return false;
}

/* The halves of 0 <= sub < extent that are not proved; NULL when both are. */
static const kn_expr *unproved(const kn_checks *c, const kn_expr *sub, const kn_expr *extent)
{
    kn_arena *a = c->arena;
    const kn_expr *zero = kn_index(a, 0);
    const kn_expr *room = kn_index_sub(a, kn_index_sub(a, extent, sub), kn_index(a, 1));
    bool low = kn_known_nonneg(&c->known, sub), high = kn_known_nonneg(&c->known, room);
    const kn_expr *above = low ? NULL : kn_op2(a, KN_OP_LE, zero, sub);
    const kn_expr *below = high ? NULL : kn_op2(a, KN_OP_LT, sub, extent);
    return above && below ? kn_op2(a, KN_OP_LAND, above, below) : above ? above : below;
}

void kn_checks_condition(kn_checks *c, kn_block_builder *b, const kn_expr *cond,
                         const char *message)
{
    if (checked_already(c, cond))
        return;
    kn_checks_add(c, b, kn_loop_check(c->arena, cond, message));
    kn_known_assume(&c->known, cond, true);
    if (!c->target || !kn_expr_uses(cond, c->target))
        kn_push(c->arena, &c->checked, cond);
}

void kn_checks_access(kn_checks *c, kn_block_builder *b, const char *buffer,
                      const kn_expr *const *subs)
{
    const kn_name *name = kn_scope_find(&c->buffers, buffer);
    assert(name);
    for (int d = 0; d < name->buffer->rank; d++) {
        const kn_expr *cond = unproved(c, subs[d], name->buffer->shape[d]);
        if (cond)
            kn_checks_condition(c, b, cond,
                                kn_nest_bounds_check(c->arena, c->nest, buffer, cond)->name);
    }
}

/* The checks of what is only evaluated when `cond` is (or is not) true. */
static kn_block collect_under(kn_checks *c, const kn_expr *cond, bool holds, const kn_expr *e)
{
    kn_block_builder b = {.arena = c->arena};
    kn_known_mark mark = kn_known_here(&c->known);
    int checked = c->checked.n;
    kn_known_assume(&c->known, cond, holds);
    kn_checks_expr(c, &b, e);
    kn_known_back(&c->known, mark);
    c->checked.n = checked;
    return kn_block_done(&b);
}

static void add_guarded(kn_checks *c, kn_block_builder *b, const kn_expr *cond, kn_block body,
                        kn_block orelse)
{
    if (!body.n && !orelse.n)
        return;
    if (!body.n) {
        cond = kn_op1(c->arena, KN_OP_LNOT, cond);
        body = orelse;
        orelse = (kn_block){0};
    }
    kn_checks_add(c, b, kn_loop_if(c->arena, cond, body, orelse));
}

static void collect_lazy(kn_checks *c, kn_block_builder *b, const kn_expr *e)
{
    const kn_expr *cond = e->args[0];
    kn_block none = {0};
    kn_checks_expr(c, b, cond);
    if (e->op == KN_OP_SELECT) {
        kn_block body = collect_under(c, cond, true, e->args[1]);
        add_guarded(c, b, cond, body, collect_under(c, cond, false, e->args[2]));
    } else if (e->op == KN_OP_LAND) {
        add_guarded(c, b, cond, collect_under(c, cond, true, e->args[1]), none);
    } else {
        add_guarded(c, b, cond, none, collect_under(c, cond, false, e->args[1]));
    }
}

void kn_checks_expr(kn_checks *c, kn_block_builder *b, const kn_expr *e)
{
    bool lazy =
        e->kind == KN_E_OP && (e->op == KN_OP_SELECT || e->op == KN_OP_LAND || e->op == KN_OP_LOR);
    if (lazy) {
        collect_lazy(c, b, e);
        return;
    }
    for (int i = 0; i < e->nargs; i++)
        kn_checks_expr(c, b, e->args[i]);
    if (e->kind == KN_E_LOAD)
        kn_checks_access(c, b, e->name, e->args);
}
