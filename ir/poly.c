/* Domains, accesses, dependences and legality. An isl object never outlives its kn_poly, and
   nothing here raises while it holds one that the kn_poly does not own (running out of memory
   apart: then isl's objects leak).

   isl can take very long on small inputs. The sizes of a nest are capped before it is asked, and a
   watchdog stops it after KN_POLY_MAX_SECONDS: an error with a name, never a silent fallback, or
   two compiles of one model would differ. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <isl/options.h>

#include "ir/poly_internal.h"

/* ---- the watchdog ---- */

struct kn_watchdog {
    isl_ctx *isl;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool done, started;
};

static void *watch(void *arg)
{
    struct kn_watchdog *w = arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += KN_POLY_MAX_SECONDS;
    pthread_mutex_lock(&w->mutex);
    int error = 0;
    while (!w->done && error == 0) {
        error = pthread_cond_timedwait(&w->ended, &w->mutex, &until);
    }
    if (!w->done) {
        isl_ctx_abort(w->isl);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

static struct kn_watchdog *watchdog_start(kn_arena *a, isl_ctx *isl)
{
    struct kn_watchdog *w = KN_NEW(a, struct kn_watchdog);
    w->isl = isl;
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->ended, NULL);
    w->started = pthread_create(&w->thread, NULL, watch, w) == 0;
    return w;
}

static void watchdog_stop(struct kn_watchdog *w)
{
    pthread_mutex_lock(&w->mutex);
    w->done = true;
    pthread_cond_signal(&w->ended);
    pthread_mutex_unlock(&w->mutex);
    if (w->started) {
        pthread_join(w->thread, NULL);
    }
    pthread_mutex_destroy(&w->mutex);
    pthread_cond_destroy(&w->ended);
}

/* ---- life ---- */

static void destroy(void *arg)
{
    kn_poly *p = arg;
    watchdog_stop(p->watchdog);
    for (int i = 0; i < p->nest->nstmts; i++) {
        isl_set_free(p->domains[i]);
    }
    for (int i = 0; i < p->accesses.n; i++) {
        isl_map_free(p->accesses.at[i].relation);
    }
    for (int i = 0; i < p->deps.n; i++) {
        isl_map_free(p->deps.at[i].map);
    }
    isl_set_free(p->context);
    isl_ctx_free(p->isl);
}

void kn_poly_destroy(kn_poly *p)
{
    kn_release(p->ctx, p);
}

_Noreturn void kn_poly_failed(kn_poly *p, const char *doing)
{
    kn_loc loc = p->nest->nstmts ? p->nest->stmts[0].loc : kn_loc_none();
    if (isl_ctx_aborted(p->isl)) {
        kn_raise(p->ctx, KN_UNSUPPORTED, loc, "%s: %s took more than %d seconds in isl",
                 p->nest->name, doing, KN_POLY_MAX_SECONDS);
    }
    const char *why = isl_ctx_last_error_msg(p->isl);
    kn_raise(p->ctx, KN_INTERNAL, loc, "%s: isl failed while %s: %s", p->nest->name, doing,
             why ? why : "no message");
}

bool kn_poly_fits(const kn_nest *nest)
{
    bool fits = nest->nstmts <= KN_POLY_MAX_STMTS;
    for (int i = 0; i < nest->nstmts; i++) {
        fits = fits && nest->stmts[i].niters <= KN_POLY_MAX_DEPTH;
    }
    return fits;
}

static void check_caps(kn_ctx *ctx, const kn_nest *nest)
{
    kn_loc loc = nest->nstmts ? nest->stmts[0].loc : kn_loc_none();
    if (nest->nstmts > KN_POLY_MAX_STMTS) {
        kn_raise(ctx, KN_UNSUPPORTED, loc,
                 "%s: %d statements in one kernel, at most %d are scheduled together", nest->name,
                 nest->nstmts, KN_POLY_MAX_STMTS);
    }
    for (int i = 0; i < nest->nstmts; i++) {
        if (nest->stmts[i].niters > KN_POLY_MAX_DEPTH) {
            kn_raise(ctx, KN_UNSUPPORTED, nest->stmts[i].loc,
                     "%s: a statement has %d loops, at most %d are supported", nest->name,
                     nest->stmts[i].niters, KN_POLY_MAX_DEPTH);
        }
    }
}

/* ---- domains ---- */

static kn_poly_scope scope_of(kn_poly *p, int stmt)
{
    const kn_stmt *s = &p->nest->stmts[stmt];
    isl_space *space = isl_space_set_alloc(p->isl, 0, (unsigned)s->niters);
    const char *name = kn_intern_f(p->ctx, "S%d", stmt);
    return (kn_poly_scope){p, s, isl_space_set_tuple_name(space, isl_dim_set, name)};
}

/* Constrains lo <= iterator < hi. A bound that is not affine leaves the iterator open, which the
 * caller must guard. */
static isl_set *bound_iterator(const kn_poly_scope *s, isl_set *domain, const kn_iter *it,
                               bool *exact)
{
    kn_arena *a = s->poly->arena;
    const kn_expr *var = kn_var(a, KN_INDEX, it->name);
    const kn_expr *from = kn_op2(a, KN_OP_GE, var, it->lo);
    const kn_expr *to = kn_op2(a, KN_OP_LT, var, it->hi);
    domain = isl_set_intersect(domain, kn_poly_condition(s, from, exact));
    return isl_set_intersect(domain, kn_poly_condition(s, to, exact));
}

static const kn_expr *and_also(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    return !x ? y : !y ? x : kn_op2(a, KN_OP_LAND, x, y);
}

/* Narrows the domain by a condition; the parts of it that the domain then does not say go to
   *guard. */
static isl_set *narrow(const kn_poly_scope *s, isl_set *domain, const kn_expr *cond,
                       const kn_expr **guard)
{
    if (cond->kind == KN_E_OP && cond->op == KN_OP_LAND) {
        domain = narrow(s, domain, cond->args[0], guard);
        return narrow(s, domain, cond->args[1], guard);
    }
    bool exact = true;
    domain = isl_set_intersect(domain, kn_poly_condition(s, cond, &exact));
    *guard = exact ? *guard : and_also(s->poly->arena, *guard, cond);
    return domain;
}

static void build_domain(kn_poly *p, int stmt)
{
    kn_poly_scope s = scope_of(p, stmt);
    isl_set *domain = isl_set_universe(isl_space_copy(s.space));
    bool exact = true;
    for (int i = 0; i < s.stmt->niters; i++) {
        domain = bound_iterator(&s, domain, &s.stmt->iters[i], &exact);
    }
    if (s.stmt->where) {
        domain = narrow(&s, domain, s.stmt->where, &p->guards[stmt]);
    }
    p->domains[stmt] = isl_set_coalesce(domain);
    isl_space_free(s.space);
    if (!exact) {
        kn_raise(p->ctx, KN_UNSUPPORTED, s.stmt->loc,
                 "%s: the range of an index of `%s` depends on data: use a `where` condition",
                 p->nest->name, s.stmt->target);
    }
}

static void build_context(kn_poly *p)
{
    kn_poly_scope s = {p, NULL, isl_space_params_alloc(p->isl, 0)};
    p->context = isl_set_universe(isl_space_copy(s.space));
    for (int i = 0; i < p->nest->nsizes; i++) {
        const kn_size *z = &p->nest->sizes[i];
        const kn_expr *var = kn_var(p->arena, KN_INDEX, z->name);
        const kn_expr *lo = kn_op2(p->arena, KN_OP_GE, var, kn_index(p->arena, z->lo));
        const kn_expr *hi = kn_op2(p->arena, KN_OP_LE, var, kn_index(p->arena, z->hi));
        bool exact = true;
        p->context = isl_set_intersect(p->context, kn_poly_condition(&s, lo, &exact));
        p->context = isl_set_intersect(p->context, kn_poly_condition(&s, hi, &exact));
    }
    for (int i = 0; i < p->nest->nrequires; i++) {
        bool exact = true;
        isl_set *set = kn_poly_condition(&s, p->nest->requires_[i], &exact);
        p->context = isl_set_intersect(p->context, set);
    }
    isl_space_free(s.space);
}

/* ---- accesses ---- */

/* Instances -> value of one subscript; anything >= 0 when it is not affine. */
static isl_map *subscript_relation(const kn_poly_scope *s, const kn_expr *sub)
{
    isl_pw_aff *pa = kn_poly_affine(s, sub);
    if (pa) {
        return isl_map_from_pw_aff(pa);
    }
    isl_space *range = isl_space_set_alloc(s->poly->isl, 0, 1);
    isl_set *any = isl_set_lower_bound_si(isl_set_universe(range), isl_dim_set, 0, 0);
    return isl_map_from_domain_and_range(isl_set_universe(isl_space_copy(s->space)), any);
}

static isl_map *access_relation(const kn_poly_scope *s, const kn_access *access, isl_set *instances)
{
    isl_space *range = isl_space_set_alloc(s->poly->isl, 0, 0);
    isl_map *map = isl_map_from_domain_and_range(instances, isl_set_universe(range));
    for (int i = 0; i < access->nsubs; i++) {
        map = isl_map_flat_range_product(map, subscript_relation(s, access->subs[i]));
    }
    return isl_map_set_tuple_name(map, isl_dim_out, s->poly->nest->tensors[access->tensor].name);
}

static bool holds_everywhere(const kn_poly_scope *s, const kn_expr *cond, isl_set *instances)
{
    bool exact = true;
    isl_set *inside = kn_poly_condition(s, cond, &exact);
    if (!exact) {
        isl_set_free(inside);
        return false;
    }
    isl_set *known =
        isl_set_intersect_params(isl_set_copy(instances), isl_set_copy(s->poly->context));
    isl_set *outside = isl_set_subtract(known, inside);
    bool empty = isl_set_is_empty(outside) == isl_bool_true;
    isl_set_free(outside);
    return empty;
}

/* An iterator that runs over just this dimension, or a constant inside a constant one: no need to
 * ask isl. */
static bool inside_by_form(const kn_poly_scope *s, const kn_expr *sub, const kn_expr *extent)
{
    int64_t at, n;
    for (int i = 0; sub->kind == KN_E_VAR && i < s->stmt->niters; i++) {
        const kn_iter *it = &s->stmt->iters[i];
        if (it->name == sub->name) {
            return kn_index_is(it->lo, 0) && kn_expr_equal(it->hi, extent);
        }
    }
    return kn_index_const(sub, &at) && kn_index_const(extent, &n) && 0 <= at && at < n;
}

/* The bounds of one access that are not proved, as a condition. */
static const kn_expr *unproved_bounds(const kn_poly_scope *s, const kn_access *access,
                                      isl_set *instances)
{
    kn_arena *a = s->poly->arena;
    const kn_tensor *t = &s->poly->nest->tensors[access->tensor];
    const kn_expr *rest = NULL;
    for (int i = 0; i < access->nsubs; i++) {
        if (inside_by_form(s, access->subs[i], t->shape[i])) {
            continue;
        }
        const kn_expr *lo = kn_op2(a, KN_OP_GE, access->subs[i], kn_index(a, 0));
        const kn_expr *hi = kn_op2(a, KN_OP_LT, access->subs[i], t->shape[i]);
        rest = holds_everywhere(s, lo, instances) ? rest : and_also(a, rest, lo);
        rest = holds_everywhere(s, hi, instances) ? rest : and_also(a, rest, hi);
    }
    return rest;
}

/* `instances` is where the access happens; taken. */
static void add_access(const kn_poly_scope *s, int stmt, kn_access access, isl_set *instances)
{
    kn_poly *p = s->poly;
    access.stmt = stmt;
    access.unproved = unproved_bounds(s, &access, instances);
    access.relation = access_relation(s, &access, instances);
    kn_push(p->arena, &p->accesses, access);
}

/* Walks a right side. `where` is the set of instances that evaluate this part (borrowed), `guard`
 * the condition in words. */
static void collect(const kn_poly_scope *s, int stmt, const kn_expr *e, isl_set *where,
                    const kn_expr *guard);

static void collect_under(const kn_poly_scope *s, int stmt, const kn_expr *e, isl_set *where,
                          const kn_expr *guard, const kn_expr *cond, bool negate)
{
    kn_arena *a = s->poly->arena;
    const kn_expr *c = negate ? kn_op1(a, KN_OP_LNOT, cond) : cond;
    bool exact = true;
    isl_set *here = isl_set_intersect(isl_set_copy(where), kn_poly_condition(s, c, &exact));
    collect(s, stmt, e, here, and_also(a, guard, c));
    isl_set_free(here);
}

static void collect(const kn_poly_scope *s, int stmt, const kn_expr *e, isl_set *where,
                    const kn_expr *guard)
{
    bool lazy =
        e->kind == KN_E_OP && (e->op == KN_OP_SELECT || e->op == KN_OP_LAND || e->op == KN_OP_LOR);
    for (int i = 0; i < e->nargs; i++) {
        if (!lazy || i == 0) {
            collect(s, stmt, e->args[i], where, guard);
        } else {
            bool negate = e->op == KN_OP_LOR || i == 2;
            collect_under(s, stmt, e->args[i], where, guard, e->args[0], negate);
        }
    }
    if (e->kind == KN_E_LOAD) {
        kn_access access = {.tensor = kn_nest_find(s->poly->nest, e->name),
                            .subs = e->args,
                            .nsubs = e->nargs,
                            .guard = guard};
        add_access(s, stmt, access, isl_set_copy(where));
    }
}

static void build_accesses(kn_poly *p, int stmt)
{
    kn_poly_scope s = scope_of(p, stmt);
    const kn_stmt *st = s.stmt;
    if (st->where) {
        int first = p->accesses.n;
        collect(&s, stmt, st->where, p->domains[stmt], NULL);
        for (int i = first; i < p->accesses.n; i++) {
            p->accesses.at[i].of_where = true;
        }
    }
    collect(&s, stmt, st->rhs, p->domains[stmt], NULL);
    for (int i = 0; i < st->nsubs; i++) {
        collect(&s, stmt, st->subs[i], p->domains[stmt], NULL);
    }
    kn_access target = {.tensor = kn_nest_find(p->nest, st->target),
                        .write = true,
                        .target = true,
                        .subs = (const kn_expr *const *)st->subs,
                        .nsubs = st->nsubs};
    add_access(&s, stmt, target, isl_set_copy(p->domains[stmt]));
    isl_space_free(s.space);
}

/* ---- dependences ---- */

/* Pairs of instances of one `over` group in the order of its loop: an earlier t, or the same t and
 * an earlier statement. */
static isl_map *over_order(const kn_poly *p, int from, int to)
{
    isl_map *all =
        isl_map_from_domain_and_range(isl_set_copy(p->domains[from]), isl_set_copy(p->domains[to]));
    isl_map *before = isl_map_order_lt(isl_map_copy(all), isl_dim_in, 0, isl_dim_out, 0);
    if (from >= to) {
        isl_map_free(all);
        return before;
    }
    return isl_map_union(before, isl_map_equate(all, isl_dim_in, 0, isl_dim_out, 0));
}

/* Whether an instance of `from` can precede one of `to` in the notation's own order. */
static bool may_precede(const kn_poly *p, int from, int to)
{
    const kn_stmt *f = &p->nest->stmts[from], *t = &p->nest->stmts[to];
    return from <= to || (f->over >= 0 && f->over == t->over);
}

/* Restricts pairs to those in the notation's own order. */
static isl_map *in_original_order(const kn_poly *p, isl_map *pairs, int from, int to)
{
    const kn_stmt *f = &p->nest->stmts[from], *t = &p->nest->stmts[to];
    if (from == to) {
        isl_space *space = isl_set_get_space(p->domains[from]);
        return isl_map_intersect(pairs, isl_map_lex_lt(space));
    }
    bool together = f->over >= 0 && f->over == t->over;
    return together ? isl_map_intersect(pairs, over_order(p, from, to)) : pairs;
}

static bool may_conflict(const kn_poly *p, const kn_access *x, const kn_access *y)
{
    if (x->tensor != y->tensor || !(x->write || y->write) || !may_precede(p, x->stmt, y->stmt)) {
        return false;
    }
    const kn_stmt *s = &p->nest->stmts[x->stmt];
    bool unordered = x->stmt == y->stmt && x->target && y->target && s->op != KN_SET && !s->strict;
    return !unordered;
}

static void build_dependences(kn_poly *p)
{
    for (int i = 0; i < p->accesses.n; i++) {
        for (int j = 0; j < p->accesses.n; j++) {
            const kn_access *x = &p->accesses.at[i], *y = &p->accesses.at[j];
            if (!may_conflict(p, x, y)) {
                continue;
            }
            isl_map *pairs = isl_map_apply_range(isl_map_copy(x->relation),
                                                 isl_map_reverse(isl_map_copy(y->relation)));
            pairs = in_original_order(p, pairs, x->stmt, y->stmt);
            pairs = isl_map_intersect_params(pairs, isl_set_copy(p->context));
            if (isl_map_is_empty(pairs) == isl_bool_true) {
                isl_map_free(pairs);
                continue;
            }
            kn_dependence d = {x->stmt, y->stmt, p->nest->tensors[x->tensor].name, pairs};
            kn_push(p->arena, &p->deps, d);
        }
    }
}

kn_poly *kn_poly_create(kn_arena *a, const kn_nest *nest)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    check_caps(ctx, nest);
    kn_poly *p = KN_NEW(a, kn_poly);
    p->arena = a;
    p->ctx = ctx;
    p->nest = nest;
    p->domains = KN_ARRAY(a, isl_set *, nest->nstmts + 1);
    p->guards = KN_ARRAY(a, const kn_expr *, nest->nstmts + 1);
    p->isl = isl_ctx_alloc();
    if (!p->isl) {
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    }
    isl_options_set_on_error(p->isl, ISL_ON_ERROR_CONTINUE);
    p->watchdog = watchdog_start(a, p->isl);
    kn_defer(ctx, destroy, p);
    build_context(p);
    for (int i = 0; i < nest->nstmts; i++) {
        build_domain(p, i);
    }
    for (int i = 0; i < nest->nstmts; i++) {
        build_accesses(p, i);
    }
    build_dependences(p);
    if (isl_ctx_last_error(p->isl) != isl_error_none) {
        kn_poly_failed(p, "reading the statements");
    }
    return p;
}

/* ---- legality ---- */

/* A domain mapped to some index expressions over its iterators; NULL when one is not affine. */
static isl_map *rows_map(kn_poly *p, int stmt, const kn_expr *const *rows, int n)
{
    kn_poly_scope s = scope_of(p, stmt);
    isl_space *range = isl_space_set_alloc(p->isl, 0, 0);
    isl_map *map =
        isl_map_from_domain_and_range(isl_set_copy(p->domains[stmt]), isl_set_universe(range));
    for (int i = 0; i < n; i++) {
        isl_pw_aff *row = kn_poly_affine(&s, rows[i]);
        map = row ? isl_map_flat_range_product(map, isl_map_from_pw_aff(row)) : isl_map_free(map);
    }
    isl_space_free(s.space);
    return map;
}

isl_pw_aff *kn_poly_row(kn_poly *p, int stmt, const kn_expr *row)
{
    kn_poly_scope s = scope_of(p, stmt);
    isl_pw_aff *pa = kn_poly_affine(&s, row);
    isl_space_free(s.space);
    return pa ? isl_pw_aff_intersect_domain(pa, isl_set_copy(p->domains[stmt])) : NULL;
}

/* What decides the order of two statements: the rows up to the first where both are constant and
   differ, without those where both are the same constant. */
typedef struct {
    const kn_expr **from, **to;
    int n;
    int constants; /* < 0: the difference puts `from` first; > 0: last; 0: there is none */
} kn_deciding_rows;

static kn_deciding_rows deciding_rows(kn_arena *a, const kn_schedule_rows *s, int from, int to)
{
    kn_deciding_rows d = {KN_ARRAY(a, const kn_expr *, s->nrows + 1),
                          KN_ARRAY(a, const kn_expr *, s->nrows + 1), 0, 0};
    for (int i = 0; i < s->nrows && d.constants == 0; i++) {
        const kn_expr *x = s->rows[from][i], *y = s->rows[to][i];
        int64_t f, t;
        if (kn_index_const(x, &f) && kn_index_const(y, &t)) {
            d.constants = (f > t) - (f < t);
            continue;
        }
        d.from[d.n] = x;
        d.to[d.n++] = y;
    }
    return d;
}

/* The instances of a dependence that the schedule runs in the wrong order, or NULL when there are
 * none. */
static isl_map *violation(kn_poly *p, const kn_dependence *d, const kn_schedule_rows *s)
{
    kn_deciding_rows rows = deciding_rows(p->arena, s, d->from, d->to);
    if (rows.n == 0 && rows.constants < 0) {
        return NULL;
    }
    isl_map *from = rows_map(p, d->from, rows.from, rows.n);
    isl_map *to = rows_map(p, d->to, rows.to, rows.n);
    isl_space *time = isl_space_range(isl_map_get_space(from));
    /* pairs of times in the wrong order, brought back to instances */
    isl_map *wrong_times = rows.constants < 0 ? isl_map_lex_gt(time) : isl_map_lex_ge(time);
    isl_map *wrong =
        isl_map_apply_range(isl_map_apply_range(from, wrong_times), isl_map_reverse(to));
    wrong = isl_map_intersect(wrong, isl_map_copy(d->map));
    if (isl_map_is_empty(wrong) == isl_bool_true) {
        return isl_map_free(wrong);
    }
    return wrong;
}

static bool placed(const kn_schedule_rows *s, const kn_dependence *d)
{
    return s->rows[d->from] && s->rows[d->to];
}

bool kn_poly_legal(kn_poly *p, const kn_schedule *schedule, int stmt)
{
    kn_schedule_rows rows = kn_schedule_derive(p->arena, schedule), *s = &rows;
    bool legal = true;
    for (int i = 0; i < p->deps.n && legal; i++) {
        const kn_dependence *d = &p->deps.at[i];
        if (placed(s, d) && (stmt < 0 || d->from == stmt || d->to == stmt)) {
            isl_map *wrong = violation(p, d, s);
            legal = !wrong;
            isl_map_free(wrong);
        }
    }
    if (isl_ctx_last_error(p->isl) != isl_error_none) {
        kn_poly_failed(p, "checking a schedule");
    }
    return legal;
}

/* "t = 7, k = 6": an instance, from the coordinate `first` of a point on. */
static void put_instance(kn_str *out, const kn_stmt *s, isl_point *point, int first)
{
    kn_putf(out, "`%s`%s", s->target, s->niters ? " at " : "");
    for (int i = 0; i < s->niters; i++) {
        isl_val *v = isl_point_get_coordinate_val(point, isl_dim_set, first + i);
        kn_putf(out, "%s%s = %ld", i ? ", " : "", s->iters[i].name, isl_val_get_num_si(v));
        isl_val_free(v);
    }
}

/* "`S` at t = 7, k = 6 would run before `S` at t = 6, k = 7": one of the wrong pairs, which are
   instances of `from` and of what depends on them. Takes the pairs. */
static const char *example(kn_poly *p, const kn_dependence *d, isl_map *wrong)
{
    const kn_stmt *from = &p->nest->stmts[d->from], *to = &p->nest->stmts[d->to];
    wrong =
        isl_map_project_out(wrong, isl_dim_param, 0, (unsigned)isl_map_dim(wrong, isl_dim_param));
    isl_point *point = isl_set_sample_point(isl_set_lexmin(isl_map_wrap(wrong)));
    kn_str text = kn_str_make(p->arena);
    put_instance(&text, to, point, from->niters);
    kn_put(&text, " would run before ");
    put_instance(&text, from, point, 0);
    isl_point_free(point);
    return kn_intern(p->ctx, kn_str_get(&text));
}

void kn_poly_require_legal(kn_poly *p, const kn_schedule *schedule, kn_loc loc)
{
    kn_schedule_rows rows = kn_schedule_derive(p->arena, schedule), *s = &rows;
    for (int i = 0; i < p->deps.n; i++) {
        const kn_dependence *d = &p->deps.at[i];
        isl_map *wrong = placed(s, d) ? violation(p, d, s) : NULL;
        if (wrong) {
            kn_raise(
                p->ctx, KN_INVALID, loc,
                "%s: statement %d (of `%s`) depends on statement %d (of `%s`) through `%s`: %s",
                p->nest->name, d->to, p->nest->stmts[d->to].target, d->from,
                p->nest->stmts[d->from].target, d->tensor, example(p, d, wrong));
        }
    }
}
