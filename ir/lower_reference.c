/* The reference lowering: a nest's statements as plain loops, one nest a statement, in the order of
   the notation. What the oracle runs, so it is kept simple: no fusion, no isl, nothing reordered.

   A subscript that is not certain to lie inside its tensor (one that reads a tensor, mostly) gets a
   `check` before the store. A check stands under the guards that its access stands under: the
   condition of a select, the left side of && and ||, the statement's `where`. */
#include <assert.h>

#include "ir/loop_internal.h"
#include "ir/nest_internal.h"

typedef struct {
    kn_arena *arena;
    kn_ctx *ctx;
    const kn_nest *nest;
    kn_known known;
    KN_VEC(const kn_expr *) checked; /* conditions that hold at this place */
    const char *target;              /* of the statement: conditions that read it do not last */
    kn_loc loc;
} lowering;

static void add(const lowering *lw, kn_block_builder *b, kn_loop *s)
{
    s->loc = lw->loc;
    kn_block_add(b, s);
}

static kn_block_builder new_block(const lowering *lw)
{
    return (kn_block_builder){.arena = lw->arena};
}

/* ---- Checks ---- */

static void collect(lowering *lw, kn_block_builder *b, const kn_expr *e);

static bool checked_already(const lowering *lw, const kn_expr *cond)
{
    for (int i = 0; i < lw->checked.n; i++) {
        if (kn_expr_equal(lw->checked.at[i], cond))
            return true;
    }
    return false;
}

/* The halves of 0 <= sub < extent that are not proved; NULL when both are. */
static const kn_expr *unproved(const lowering *lw, const kn_expr *sub, const kn_expr *extent)
{
    kn_arena *a = lw->arena;
    const kn_expr *zero = kn_index(a, 0);
    const kn_expr *room = kn_index_sub(a, kn_index_sub(a, extent, sub), kn_index(a, 1));
    bool low = kn_known_nonneg(&lw->known, sub), high = kn_known_nonneg(&lw->known, room);
    const kn_expr *above = low ? NULL : kn_op2(a, KN_OP_LE, zero, sub);
    const kn_expr *below = high ? NULL : kn_op2(a, KN_OP_LT, sub, extent);
    return above && below ? kn_op2(a, KN_OP_LAND, above, below) : above ? above : below;
}

static void check_access(lowering *lw, kn_block_builder *b, const char *tensor,
                         const kn_expr *const *subs)
{
    int index = kn_nest_find(lw->nest, tensor);
    assert(index >= 0);
    const kn_tensor *t = &lw->nest->tensors[index];
    for (int d = 0; d < t->rank; d++) {
        const kn_expr *cond = unproved(lw, subs[d], t->shape[d]);
        if (!cond || checked_already(lw, cond))
            continue;
        add(lw, b, kn_nest_bounds_check(lw->arena, lw->nest, tensor, cond));
        if (!kn_expr_uses(cond, lw->target))
            kn_push(lw->arena, &lw->checked, cond);
    }
}

/* The checks of what is only evaluated when `cond` is (or is not) true. */
static kn_block collect_under(lowering *lw, const kn_expr *cond, bool holds, const kn_expr *e)
{
    kn_block_builder b = new_block(lw);
    kn_known_mark mark = kn_known_here(&lw->known);
    int checked = lw->checked.n;
    kn_known_assume(&lw->known, cond, holds);
    collect(lw, &b, e);
    kn_known_back(&lw->known, mark);
    lw->checked.n = checked;
    return kn_block_done(&b);
}

static void add_guarded(lowering *lw, kn_block_builder *b, const kn_expr *cond, kn_block body,
                        kn_block orelse)
{
    if (!body.n && !orelse.n)
        return;
    if (!body.n) {
        cond = kn_op1(lw->arena, KN_OP_LNOT, cond);
        body = orelse;
        orelse = (kn_block){0};
    }
    add(lw, b, kn_loop_if(lw->arena, cond, body, orelse));
}

static void collect_lazy(lowering *lw, kn_block_builder *b, const kn_expr *e)
{
    const kn_expr *cond = e->args[0];
    kn_block none = {0};
    collect(lw, b, cond);
    if (e->op == KN_OP_SELECT) {
        kn_block body = collect_under(lw, cond, true, e->args[1]);
        add_guarded(lw, b, cond, body, collect_under(lw, cond, false, e->args[2]));
    } else if (e->op == KN_OP_LAND) {
        add_guarded(lw, b, cond, collect_under(lw, cond, true, e->args[1]), none);
    } else {
        add_guarded(lw, b, cond, none, collect_under(lw, cond, false, e->args[1]));
    }
}

/* Adds a check for each access of an expression, those of its subscripts before its own. */
static void collect(lowering *lw, kn_block_builder *b, const kn_expr *e)
{
    bool lazy =
        e->kind == KN_E_OP && (e->op == KN_OP_SELECT || e->op == KN_OP_LAND || e->op == KN_OP_LOR);
    if (lazy) {
        collect_lazy(lw, b, e);
        return;
    }
    for (int i = 0; i < e->nargs; i++)
        collect(lw, b, e->args[i]);
    if (e->kind == KN_E_LOAD)
        check_access(lw, b, e->name, e->args);
}

/* ---- Statements ---- */

static void add_store(lowering *lw, kn_block_builder *b, const kn_stmt *s)
{
    const kn_expr *const *subs = (const kn_expr *const *)s->subs;
    for (int i = 0; i < s->nsubs; i++)
        collect(lw, b, subs[i]);
    collect(lw, b, s->rhs);
    check_access(lw, b, s->target, subs);
    add(lw, b, kn_loop_store(lw->arena, s->target, subs, s->nsubs, s->op, s->rhs));
}

static void lower_body(lowering *lw, kn_block_builder *b, const kn_stmt *s)
{
    if (!s->where) {
        add_store(lw, b, s);
        return;
    }
    kn_block_builder inner = new_block(lw);
    collect(lw, b, s->where);
    kn_known_assume(&lw->known, s->where, true);
    add_store(lw, &inner, s);
    add(lw, b, kn_loop_if(lw->arena, s->where, kn_block_done(&inner), (kn_block){0}));
}

/* The loops from iterator `from` inwards. */
static void lower_loops(lowering *lw, kn_block_builder *b, const kn_stmt *s, int from)
{
    if (from == s->niters) {
        lower_body(lw, b, s);
        return;
    }
    const kn_iter *it = &s->iters[from];
    kn_known_mark mark = kn_known_here(&lw->known);
    int checked = lw->checked.n;
    kn_block_builder inner = new_block(lw);
    collect(lw, b, it->lo);
    collect(lw, b, it->hi);
    kn_known_span(&lw->known, it->name, it->lo, it->hi);
    lower_loops(lw, &inner, s, from + 1);
    add(lw, b, kn_loop_for(lw->arena, it->name, it->lo, it->hi, kn_block_done(&inner)));
    kn_known_back(&lw->known, mark);
    lw->checked.n = checked;
}

static void lower_stmt(lowering *lw, kn_block_builder *b, const kn_stmt *s, int from)
{
    lw->loc = s->loc;
    lw->target = s->target;
    lw->checked.n = 0;
    lower_loops(lw, b, s, from);
}

/* ---- Renaming iterators ---- */

/* The statement with iterator `k` under another name. */
static kn_stmt renamed(kn_arena *a, const kn_stmt *s, int k, const char *name)
{
    kn_binding b = {s->iters[k].name, kn_var(a, KN_INDEX, name)};
    kn_stmt out = *s;
    out.subs = KN_ARRAY(a, const kn_expr *, s->nsubs);
    for (int i = 0; i < s->nsubs; i++)
        out.subs[i] = kn_expr_subst(a, s->subs[i], &b, 1);
    out.iters = KN_ARRAY(a, kn_iter, s->niters);
    for (int i = 0; i < s->niters; i++) {
        out.iters[i] = s->iters[i];
        out.iters[i].lo = kn_expr_subst(a, s->iters[i].lo, &b, 1);
        out.iters[i].hi = kn_expr_subst(a, s->iters[i].hi, &b, 1);
    }
    out.iters[k].name = name;
    out.rhs = kn_expr_subst(a, s->rhs, &b, 1);
    out.where = s->where ? kn_expr_subst(a, s->where, &b, 1) : NULL;
    return out;
}

/* The notation has names that loops cannot have: the index i4 is one, the type i4 another. */
static void rename_iterators(lowering *lw, kn_nest *nest)
{
    kn_map used = kn_nest_names(lw->arena, nest);
    for (int i = 0; i < nest->nstmts; i++) {
        for (int k = 0; k < nest->stmts[i].niters; k++) {
            const char *name = nest->stmts[i].iters[k].name;
            if (kn_loop_name_ok(name))
                continue;
            name = kn_unique_name(lw->arena, &used, kn_intern_f(lw->ctx, "%s_1", name));
            nest->stmts[i] = renamed(lw->arena, &nest->stmts[i], k, name);
        }
    }
}

/* ---- Groups: over t { } ---- */

/* One loop around statements[0..n), which share the range of their first iterator. */
static void lower_group(lowering *lw, kn_block_builder *b, const kn_stmt *stmts, int n)
{
    const kn_iter *t = &stmts[0].iters[0];
    kn_known_mark mark = kn_known_here(&lw->known);
    kn_block_builder inner = new_block(lw);
    kn_known_span(&lw->known, t->name, t->lo, t->hi);
    for (int i = 0; i < n; i++) {
        assert(kn_expr_equal(stmts[i].iters[0].lo, t->lo));
        assert(kn_expr_equal(stmts[i].iters[0].hi, t->hi));
        kn_stmt s = renamed(lw->arena, &stmts[i], 0, t->name);
        lower_stmt(lw, &inner, &s, 1);
    }
    kn_known_back(&lw->known, mark);
    lw->loc = stmts[0].loc;
    add(lw, b, kn_loop_for(lw->arena, t->name, t->lo, t->hi, kn_block_done(&inner)));
}

static void lower_stmts(lowering *lw, kn_block_builder *b)
{
    const kn_nest *nest = lw->nest;
    for (int i = 0, n; i < nest->nstmts; i += n) {
        const kn_stmt *s = &nest->stmts[i];
        n = 1;
        while (s->over >= 0 && i + n < nest->nstmts && nest->stmts[i + n].over == s->over)
            n++;
        if (s->over >= 0)
            lower_group(lw, b, s, n);
        else
            lower_stmt(lw, b, s, 0);
    }
}

/* ---- The function ---- */

static void know_sizes(lowering *lw)
{
    const kn_nest *nest = lw->nest;
    for (int i = 0; i < nest->nsizes; i++)
        kn_known_size(&lw->known, nest->sizes[i].name, nest->sizes[i].lo, nest->sizes[i].hi);
    for (int i = 0; i < nest->nrequires; i++)
        kn_known_assume(&lw->known, nest->requires_[i], true);
}

kn_func *kn_lower_reference(kn_arena *a, const kn_nest *nest)
{
    if (nest->opaque)
        return kn_nest_func(a, nest, (kn_block){0});
    kn_nest *split = kn_nest_split(a, nest);
    lowering lw = {.arena = a, .ctx = kn_arena_ctx(a), .nest = split};
    lw.known.arena = a;
    rename_iterators(&lw, split);
    know_sizes(&lw);
    kn_block_builder b = new_block(&lw);
    lower_stmts(&lw, &b);
    return kn_nest_func(a, split, kn_block_done(&b));
}
