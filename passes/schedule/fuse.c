/* The default schedule of a kernel. Rows alternate between a place and a loop, (p0, i0, p1, i1,
   ..., pd): two statements that agree on the first 2 d rows share d loops. Statements are placed in
   order; each tries to share as many loops as it can with the statement placed before it, deepest
   first, and isl decides whether the dependences allow it. Loops are lined up by the tensors that
   both statements touch, so that a consumer follows its producer through a transposition. The
   statement that starts a reduction slips in before the one placed last, where it can, so that it
   does not keep the reduction's loops apart from its producer's. */
#include "passes/schedule/schedule.h"

typedef struct {
    int stmt, depth;
    int place[KN_POLY_MAX_DEPTH + 1];
    int order[KN_POLY_MAX_DEPTH]; /* iterator at each loop */
} kn_placement;

typedef struct {
    kn_arena *arena;
    kn_poly *poly;
    const kn_nest *nest;
    int nrows;
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

/* Lines up the first `depth` loops of s with those of p; the rest follow in their own order. */
static bool line_up(const kn_stmt *p, const kn_placement *at, const kn_stmt *s, int depth,
                    kn_placement *out)
{
    bool used[KN_POLY_MAX_DEPTH] = {false};
    int n = 0;
    for (int k = 0; k < depth; k++) {
        const kn_iter *want = &p->iters[at->order[k]];
        int pick = aligned_iterator(p, s, want->name);
        for (int i = 0; i < s->niters && pick < 0; i++) {
            pick = !used[i] && same_range(want, &s->iters[i]) ? i : -1;
        }
        if (pick < 0 || used[pick] || !same_range(want, &s->iters[pick])) {
            return false;
        }
        used[pick] = true;
        out->order[n++] = pick;
    }
    for (int i = 0; i < s->niters; i++) {
        if (!used[i]) {
            out->order[n++] = i;
        }
    }
    return true;
}

static void write_rows(kn_fuser *f, int stmt, const kn_placement *at)
{
    const kn_stmt *s = &f->nest->stmts[stmt];
    const kn_expr **rows = KN_ARRAY(f->arena, const kn_expr *, f->nrows);
    for (int k = 0; k < f->nrows; k++) {
        int level = k / 2;
        if (k % 2 == 0) {
            rows[k] = kn_index(f->arena, level <= at->depth ? at->place[level] : 0);
        } else {
            rows[k] = level < at->depth
                          ? kn_var(f->arena, KN_INDEX, s->iters[at->order[level]].name)
                          : kn_index(f->arena, 0);
        }
    }
    f->schedule->stmts[stmt] = (kn_stmt_schedule){f->nrows, rows};
}

/* Places a statement so that it shares `depth` loops with the one placed last, `offset` places from
 * it. */
static bool try_depth(kn_fuser *f, int stmt, const kn_placement *last, int depth, int offset,
                      kn_placement *out)
{
    const kn_stmt *s = &f->nest->stmts[stmt];
    *out = (kn_placement){.stmt = stmt, .depth = s->niters};
    if (!line_up(&f->nest->stmts[last->stmt], last, s, depth, out)) {
        return false;
    }
    for (int k = 0; k < depth; k++) {
        out->place[k] = last->place[k];
    }
    out->place[depth] = last->place[depth] + offset;
    write_rows(f, stmt, out);
    return kn_poly_legal(f->poly, f->schedule, stmt);
}

/* Whether a statement gives a reduction that follows its start. */
static bool starts_reduction(const kn_nest *nest, int stmt)
{
    const kn_stmt *s = &nest->stmts[stmt], *next = s + 1;
    return stmt + 1 < nest->nstmts && s->op == KN_SET && next->op != KN_SET &&
           next->target == s->target;
}

/* Between the places of two statements there is room for one more, so that a start can slip in. */
enum { STRIDE = 2 };

static void place(kn_fuser *f, int stmt, kn_placement *last)
{
    const kn_stmt *s = &f->nest->stmts[stmt];
    kn_placement at;
    bool fits = s->niters <= last->depth;
    if (stmt && fits && starts_reduction(f->nest, stmt) &&
        try_depth(f, stmt, last, s->niters, -1, &at)) {
        return; /* the one placed last stays the last */
    }
    int depth = last->depth < s->niters ? last->depth : s->niters;
    while (depth >= 0 && !try_depth(f, stmt, last, depth, STRIDE, &at)) {
        depth--;
    }
    if (depth < 0) {
        kn_raise(kn_arena_ctx(f->arena), KN_UNSUPPORTED, s->loc,
                 "%s: no order of loops respects the dependences of statement %d on `%s`",
                 f->nest->name, stmt, s->target);
    }
    *last = at;
}

kn_schedule *kn_schedule_fuse(kn_arena *a, kn_poly *p, const kn_nest *nest)
{
    kn_fuser f = {.arena = a, .poly = p, .nest = nest, .nrows = 1};
    for (int i = 0; i < nest->nstmts; i++) {
        int rows = 2 * nest->stmts[i].niters + 1;
        f.nrows = rows > f.nrows ? rows : f.nrows;
    }
    f.schedule = KN_NEW(a, kn_schedule);
    f.schedule->nstmts = nest->nstmts;
    f.schedule->stmts = KN_ARRAY(a, kn_stmt_schedule, nest->nstmts + 1);
    kn_placement last = {0};
    for (int i = 0; i < nest->nstmts; i++) {
        place(&f, i, &last);
    }
    return f.schedule;
}
