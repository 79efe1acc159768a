/* The reference lowering: a nest's statements as plain loops, one nest a statement, in the order of
   the notation. What the oracle runs, so it is kept simple: no fusion, no isl, nothing reordered.

   A subscript that is not certain to lie inside its tensor (one that reads a tensor, mostly) gets a
   `check` before the store (ir/loop_checks.c), under the statement's `where`. */
#include <assert.h>

#include "ir/loop_internal.h"
#include "ir/nest_internal.h"

typedef kn_checks lowering;

static kn_block_builder new_block(const lowering *lw)
{
    return (kn_block_builder){.arena = lw->arena};
}

/* ---- Statements ---- */

static void add_store(lowering *lw, kn_block_builder *b, const kn_stmt *s)
{
    const kn_expr *const *subs = (const kn_expr *const *)s->subs;
    for (int i = 0; i < s->nsubs; i++)
        kn_checks_expr(lw, b, subs[i]);
    kn_checks_expr(lw, b, s->rhs);
    kn_checks_access(lw, b, s->target, subs);
    kn_checks_add(lw, b, kn_loop_store(lw->arena, s->target, subs, s->nsubs, s->op, s->rhs));
}

static void lower_body(lowering *lw, kn_block_builder *b, const kn_stmt *s)
{
    if (!s->where) {
        add_store(lw, b, s);
        return;
    }
    kn_block_builder inner = new_block(lw);
    kn_checks_expr(lw, b, s->where);
    kn_known_assume(&lw->known, s->where, true);
    add_store(lw, &inner, s);
    kn_checks_add(lw, b, kn_loop_if(lw->arena, s->where, kn_block_done(&inner), (kn_block){0}));
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
    kn_checks_expr(lw, b, it->lo);
    kn_checks_expr(lw, b, it->hi);
    kn_known_span(&lw->known, it->name, it->lo, it->hi);
    lower_loops(lw, &inner, s, from + 1);
    kn_checks_add(lw, b, kn_loop_for(lw->arena, it->name, it->lo, it->hi, kn_block_done(&inner)));
    kn_known_back(&lw->known, mark);
    lw->checked.n = checked;
}

static void lower_stmt(lowering *lw, kn_block_builder *b, const kn_stmt *s, int from)
{
    lw->loc = s->loc;
    lw->target = s->target;
    lw->checked.n = 0;
    kn_known_mark mark = kn_known_here(&lw->known);
    lower_loops(lw, b, s, from);
    kn_known_back(&lw->known, mark);
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
            name = kn_unique_name(lw->arena, &used,
                                  kn_intern_f(kn_arena_ctx(lw->arena), "%s_1", name));
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
    kn_checks_add(lw, b, kn_loop_for(lw->arena, t->name, t->lo, t->hi, kn_block_done(&inner)));
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

static void know_tensors(lowering *lw)
{
    const kn_nest *nest = lw->nest;
    kn_buffer *buffers = KN_ARRAY(lw->arena, kn_buffer, nest->ntensors);
    for (int i = 0; i < nest->ntensors; i++) {
        const kn_tensor *t = &nest->tensors[i];
        buffers[i] = (kn_buffer){.name = t->name,
                                 .type = t->type,
                                 .rank = t->rank,
                                 .shape = (const kn_expr *const *)t->shape};
        kn_checks_buffer(lw, &buffers[i]);
    }
}

kn_func *kn_lower_reference(kn_arena *a, const kn_nest *nest)
{
    if (nest->opaque)
        return kn_nest_func(a, nest, (kn_block){0});
    kn_nest *split = kn_nest_split(a, nest);
    lowering lw = kn_checks_start(a, split);
    rename_iterators(&lw, split);
    know_tensors(&lw);
    kn_block_builder b = new_block(&lw);
    lower_stmts(&lw, &b);
    return kn_nest_func(a, split, kn_block_done(&b));
}
