/* The default schedule of a kernel. Statements are placed in order; each tries to share as many
   loops as it can with the statement placed before it, deepest first, and isl decides whether the
   dependences allow it. Loops are lined up by the tensors that both statements touch, so that a
   consumer follows its producer through a transposition. The statement that starts a reduction slips
   in before the one placed last, where it can, so that it does not keep the reduction's loops apart
   from its producer's. */
#include "passes/schedule/schedule.h"

typedef struct {
    kn_arena *arena;
    kn_poly *poly;
    const kn_nest *nest;
    kn_schedule *schedule;
} kn_fuser;

/* The iterator of s that walks the same dimension of some common tensor as `iter` does in p, or -1.
 */
typedef struct {
    const kn_stmt *p, *s;
    const char *iter; /* of p */
    const char *name; /* the tensor, its place being `at` */
    int at;
    int found;
} kn_alignment;

static int iterator_of(const kn_stmt *s, const kn_expr *e)
{
    for (int i = 0; i < s->niters; i++) {
        if (e->kind == KN_E_VAR && e->name == s->iters[i].name) {
            return i;
        }
    }
    return -1;
}

static void match_subscript(kn_alignment *al, const char *name, const kn_expr *const *subs, int n)
{
    if (name == al->name && al->at < n && al->found < 0) {
        al->found = iterator_of(al->s, subs[al->at]);
    }
}

static void match_load(void *env, const kn_expr *e)
{
    if (e->kind == KN_E_LOAD) {
        match_subscript(env, e->name, e->args, e->nargs);
    }
}

/* For one access of p: where does `iter` stand, and what stands there in s? */
static void align_through(kn_alignment *al, const char *name, const kn_expr *const *subs, int n)
{
    for (int at = 0; at < n && al->found < 0; at++) {
        if (subs[at]->kind != KN_E_VAR || subs[at]->name != al->iter) {
            continue;
        }
        al->name = name;
        al->at = at;
        kn_expr_visit(al->s->rhs, match_load, al);
        match_subscript(al, al->s->target, (const kn_expr *const *)al->s->subs, al->s->nsubs);
    }
}

static void align_load(void *env, const kn_expr *e)
{
    if (e->kind == KN_E_LOAD) {
        align_through(env, e->name, e->args, e->nargs);
    }
}

static int aligned_iterator(const kn_stmt *p, const kn_stmt *s, const char *iter)
{
    kn_alignment al = {.p = p, .s = s, .iter = iter, .found = -1};
    align_through(&al, p->target, (const kn_expr *const *)p->subs, p->nsubs);
    if (al.found < 0) {
        kn_expr_visit(p->rhs, align_load, &al);
    }
    return al.found;
}

static bool same_range(const kn_iter *x, const kn_iter *y)
{
    return kn_expr_equal(x->lo, y->lo) && kn_expr_equal(x->hi, y->hi);
}

/* Lines up the first `depth` loops of s with those of p, by iterator: `order` is the iterators of s
   from the outermost loop on. */
static bool line_up(const kn_fuser *f, int p, int stmt, int depth, int *order)
{
    const kn_stmt *from = &f->nest->stmts[p], *s = &f->nest->stmts[stmt];
    bool used[KN_POLY_MAX_DEPTH] = {false};
    int n = 0;
    for (int k = 0; k < depth; k++) {
        const kn_iter *want = &from->iters[iterator_of(from, f->schedule->stmts[p].rows[k])];
        int pick = aligned_iterator(from, s, want->name);
        for (int i = 0; i < s->niters && pick < 0; i++) {
            pick = !used[i] && same_range(want, &s->iters[i]) ? i : -1;
        }
        if (pick < 0 || used[pick] || !same_range(want, &s->iters[pick])) {
            return false;
        }
        used[pick] = true;
        order[n++] = pick;
    }
    for (int i = 0; i < s->niters; i++) {
        if (!used[i]) {
            order[n++] = i;
        }
    }
    return true;
}

/* Places a statement at `at` of the sequence so that it shares `depth` loops with `last`. */
static bool try_depth(kn_fuser *f, int stmt, int last, int depth, int at)
{
    const kn_stmt *s = &f->nest->stmts[stmt];
    kn_schedule *schedule = f->schedule;
    int order[KN_POLY_MAX_DEPTH];
    if (!line_up(f, last, stmt, depth, order)) {
        return false;
    }
    kn_stmt_schedule *own = &schedule->stmts[stmt];
    *own = (kn_stmt_schedule){s->niters, KN_ARRAY(f->arena, int, s->niters + 1),
                              KN_ARRAY(f->arena, const kn_expr *, s->niters + 1)};
    for (int k = 0; k < s->niters; k++) {
        bool shared = k < depth;
        own->loops[k] = shared ? schedule->stmts[last].loops[k] : schedule->nloops + k - depth;
        own->rows[k] = kn_var(f->arena, KN_INDEX, s->iters[order[k]].name);
    }
    kn_schedule_place(schedule, stmt, at);
    if (!kn_poly_legal(f->poly, schedule, stmt)) {
        kn_schedule_remove(schedule, at);
        return false;
    }
    schedule->nloops += s->niters - depth;
    return true;
}

/* Where the loop at `depth` around the statement placed last begins. */
static int before_loop(const kn_schedule *s, int last, int depth)
{
    int at = s->nplaced - 1;
    const kn_stmt_schedule *l = &s->stmts[last];
    while (at > 0 && depth < l->nloops) {
        const kn_stmt_schedule *other = &s->stmts[s->sequence[at - 1]];
        if (other->nloops <= depth || other->loops[depth] != l->loops[depth]) {
            break;
        }
        at--;
    }
    return at;
}

/* Whether a statement gives a reduction that follows its start. */
static bool starts_reduction(const kn_nest *nest, int stmt)
{
    const kn_stmt *s = &nest->stmts[stmt], *next = s + 1;
    return stmt + 1 < nest->nstmts && s->op == KN_SET && next->op != KN_SET &&
           next->target == s->target;
}

static void place(kn_fuser *f, int stmt, int *last)
{
    const kn_stmt *s = &f->nest->stmts[stmt];
    kn_schedule *schedule = f->schedule;
    int most = stmt ? schedule->stmts[*last].nloops : 0;
    if (stmt && s->niters <= most && starts_reduction(f->nest, stmt) &&
        try_depth(f, stmt, *last, s->niters, before_loop(schedule, *last, s->niters))) {
        return; /* the one placed last stays the last */
    }
    int depth = most < s->niters ? most : s->niters;
    while (depth >= 0 && !try_depth(f, stmt, *last, depth, schedule->nplaced)) {
        depth--;
    }
    if (depth < 0) {
        kn_raise(kn_arena_ctx(f->arena), KN_UNSUPPORTED, s->loc,
                 "%s: no order of loops respects the dependences of statement %d on `%s`",
                 f->nest->name, stmt, s->target);
    }
    *last = stmt;
}

kn_schedule *kn_schedule_fuse(kn_arena *a, kn_poly *p, const kn_nest *nest)
{
    kn_fuser f = {.arena = a, .poly = p, .nest = nest, .schedule = kn_schedule_make(a, nest)};
    int last = 0;
    for (int i = 0; i < nest->nstmts; i++) {
        place(&f, i, &last);
    }
    return f.schedule;
}
