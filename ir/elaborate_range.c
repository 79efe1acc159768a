/* Ranges of indices.

   An index that stands alone in an unguarded subscript runs over that dimension; all such
   dimensions must agree. The others run from 0 over the largest interval that keeps every unguarded
   subscript inside its tensor, whatever the other indices of the subscript are: found in rounds,
   each index once all others in its subscripts have a range. A subscript that a guard protects (a
   guard counts for the indices that it mentions) and those inside `where COND` decide only where
   nothing else does. Subscripts with loads, or in which an index occurs in a way that has no closed
   solution, do not decide; they are proved or checked later.

   A subscript is handled as its canonical sum of terms (kn_index_terms): coefficient x product of
   atoms. */
#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

enum { MAX_TERMS = 64, MAX_ATOMS = KN_EXPR_MAX_DEGREE };

typedef struct {
    int64_t constant;
    int n;
    int64_t coef[MAX_TERMS];
    const kn_expr *term[MAX_TERMS];
} sum;

static bool split_sum(const kn_elab *el, const kn_expr *e, sum *s)
{
    s->n = kn_index_terms(el->a, e, &s->constant, s->coef, s->term, MAX_TERMS);
    return s->n >= 0;
}

/* The atoms of a term. */
static int flatten(const kn_expr *term, const kn_expr **atoms, int n)
{
    if (term->kind == KN_E_OP && term->op == KN_OP_MUL) {
        n = flatten(term->args[0], atoms, n);
        return flatten(term->args[1], atoms, n);
    }
    if (n < MAX_ATOMS) {
        atoms[n] = term;
    }
    return n + 1;
}

/* term = atom * cofactor for the one atom that varies; NULL when there are several. */
static const kn_expr *varying_atom(const kn_el_stmt *st, const kn_expr *term,
                                   const kn_expr **cofactor)
{
    kn_arena *a = st->el->a;
    const kn_expr *atoms[MAX_ATOMS], *atom = NULL;
    int n = flatten(term, atoms, 0);
    *cofactor = kn_index(a, 1);
    for (int i = 0; i < n; i++) {
        if (n > MAX_ATOMS || (atom && kn_el_varies(st, atoms[i]))) {
            return NULL;
        }
        if (kn_el_varies(st, atoms[i])) {
            atom = atoms[i];
        } else {
            *cofactor = kn_index_mul(a, *cofactor, atoms[i]);
        }
    }
    return atom;
}

const kn_expr *kn_el_cofactor(kn_elab *el, const kn_expr *term, const char *name)
{
    const kn_expr *atoms[MAX_ATOMS], *rest = kn_index(el->a, 1);
    int n = flatten(term, atoms, 0), found = 0;
    for (int i = 0; i < n && n <= MAX_ATOMS; i++) {
        if (atoms[i]->kind == KN_E_VAR && kn_same_name(atoms[i]->name, name)) {
            found++;
        } else {
            rest = kn_index_mul(el->a, rest, atoms[i]);
        }
    }
    return found == 1 && !kn_expr_uses(rest, name) ? rest : NULL;
}

static kn_range range_of(const kn_elab *el, const kn_expr *e)
{
    return kn_index_range(e, el->syms.at, el->syms.n);
}

/* 1, -1, or 0 when the sign is not known. Zero counts as either. */
static int sign_of(const kn_elab *el, const kn_expr *e)
{
    kn_range r = range_of(el, e);
    return r.lo >= 0 ? 1 : r.hi <= 0 ? -1 : 0;
}

static bool positive_divisor(const kn_expr *e, int64_t *by)
{
    return kn_index_const(e->args[1], by) && *by > 0;
}

/* ---- extremes ---- */

static const kn_expr *extreme_index(const kn_el_stmt *st, const kn_iter *it, int dir, bool *exact)
{
    kn_arena *a = st->el->a;
    const kn_expr *bound = dir > 0 ? it->hi : it->lo;
    if (!bound) {
        return NULL;
    }
    if (kn_el_varies(st, bound)) {
        *exact = false;
        bound = kn_el_extreme(st, bound, dir, exact);
    }
    return bound && dir > 0 ? kn_index_sub(a, bound, kn_index(a, 1)) : bound;
}

static const kn_expr *extreme_mod(const kn_el_stmt *st, const kn_expr *e, int dir, bool *exact)
{
    const kn_elab *el = st->el;
    int64_t by;
    if (!positive_divisor(e, &by)) {
        return NULL;
    }
    bool inner = true;
    const kn_expr *lo = kn_el_extreme(st, e->args[0], -1, &inner);
    const kn_expr *hi = kn_el_extreme(st, e->args[0], 1, &inner);
    if (lo && hi && range_of(el, lo).lo >= 0 && range_of(el, hi).hi < by) {
        *exact = *exact && inner;
        return dir > 0 ? hi : lo;
    }
    *exact = false;
    return kn_index(el->a, dir > 0 ? by - 1 : 0);
}

static const kn_expr *extreme_op(const kn_el_stmt *st, const kn_expr *e, int dir, bool *exact)
{
    kn_arena *a = st->el->a;
    int64_t by;
    if (e->op == KN_OP_MOD) {
        return extreme_mod(st, e, dir, exact);
    }
    if (e->op == KN_OP_FLOORDIV) {
        const kn_expr *x =
            positive_divisor(e, &by) ? kn_el_extreme(st, e->args[0], dir, exact) : NULL;
        return x ? kn_index_div(a, x, e->args[1]) : NULL;
    }
    if (e->op != KN_OP_MIN && e->op != KN_OP_MAX && e->op != KN_OP_SELECT) {
        return NULL;
    }
    *exact = false;
    const kn_expr *x = kn_el_extreme(st, e->args[e->nargs - 2], dir, exact);
    const kn_expr *y = kn_el_extreme(st, e->args[e->nargs - 1], dir, exact);
    if (!x || !y) {
        return NULL;
    }
    bool least = e->op == KN_OP_SELECT ? dir < 0 : e->op == KN_OP_MIN;
    return least ? kn_index_min(a, x, y) : kn_index_max(a, x, y);
}

static const kn_expr *extreme_atom(const kn_el_stmt *st, const kn_expr *e, int dir, bool *exact)
{
    int at = e->kind == KN_E_VAR ? kn_el_index_of(st, e->name) : -1;
    if (at >= 0) {
        return extreme_index(st, &st->idx.at[at].it, dir, exact);
    }
    return e->kind == KN_E_OP ? extreme_op(st, e, dir, exact) : NULL;
}

static const kn_expr *extreme_term(const kn_el_stmt *st, const kn_expr *term, int dir, bool *exact)
{
    if (kn_expr_has_load(term)) {
        return NULL;
    }
    if (!kn_el_varies(st, term)) {
        return term;
    }
    const kn_expr *cofactor, *atom = varying_atom(st, term, &cofactor);
    int sign = atom ? sign_of(st->el, cofactor) : 0;
    const kn_expr *x = sign ? extreme_atom(st, atom, dir * sign, exact) : NULL;
    return x ? kn_index_mul(st->el->a, x, cofactor) : NULL;
}

const kn_expr *kn_el_extreme(const kn_el_stmt *st, const kn_expr *e, int dir, bool *exact)
{
    kn_arena *a = st->el->a;
    sum s;
    if (!split_sum(st->el, e, &s)) {
        return NULL;
    }
    const kn_expr *total = kn_index(a, s.constant);
    for (int i = 0; i < s.n; i++) {
        const kn_expr *x = extreme_term(st, s.term[i], s.coef[i] > 0 ? dir : -dir, exact);
        if (!x) {
            return NULL;
        }
        total = kn_index_add(a, total, kn_index_mul(a, kn_index(a, s.coef[i]), x));
    }
    return total;
}

/* ---- what is guarded ---- */

/* Does a guard of the access mention the index? */
static bool guarded_for(const kn_el_access *ac, const kn_el_index *x)
{
    for (const kn_el_guard *g = ac->guard; g; g = g->outer) {
        if (!g->cond || kn_expr_uses(g->cond, x->it.name)) {
            return true;
        }
    }
    return false;
}

static const kn_tensor *known_tensor(const kn_el_stmt *st, const kn_el_access *ac)
{
    const kn_tensor *t = &kn_el_find(st->el, ac->tensor)->t;
    if (t->rank < 0) {
        return NULL;
    }
    if (t->rank != ac->nsubs) {
        kn_el_fail(st->el, "`%s` has rank %d, but %d subscripts", t->name, t->rank, ac->nsubs);
    }
    return t;
}

/* ---- alone in a subscript ---- */

static bool is_alone(const kn_expr *sub, const kn_el_index *x)
{
    return sub->kind == KN_E_VAR && kn_same_name(sub->name, x->it.name);
}

static void agree_range(const kn_el_stmt *st, kn_el_index *x, const char *tensor,
                        const kn_expr *extent)
{
    kn_elab *el = st->el;
    if (!x->it.hi) {
        x->it.lo = kn_index(el->a, 0);
        x->it.hi = extent;
        x->from = tensor;
        return;
    }
    const kn_expr *now = kn_el_agree(el, x->it.hi, extent);
    if (!now) {
        kn_el_fail(el, "index `%s` runs over %s in `%s` but over %s in `%s`", x->source,
                   kn_el_text(el, x->it.hi), x->from, kn_el_text(el, extent), tensor);
    }
    x->it.hi = now;
}

/* `weak`: the subscripts that decide only where nothing else does. */
static void range_alone(const kn_el_stmt *st, kn_el_index *x, const kn_iter *self, bool weak)
{
    for (int i = 0; i < st->accesses.n; i++) {
        const kn_el_access *ac = &st->accesses.at[i];
        const kn_tensor *t = known_tensor(st, ac);
        kn_el_index named = {.it = *self};
        if (!t || (ac->in_where || guarded_for(ac, &named)) != weak) {
            continue;
        }
        for (int d = 0; d < ac->nsubs; d++) {
            if (is_alone(ac->subs[d], &named)) {
                agree_range(st, x, t->name, t->shape[d]);
            }
        }
    }
}

void kn_el_over_range(kn_el_stmt *st, kn_el_index *over)
{
    const kn_el_index *mine = &st->idx.at[0];
    over->source = mine->source;
    if (mine->given && !over->given) {
        over->it.lo = mine->it.lo;
        over->it.hi = mine->it.hi;
        over->given = true;
    } else if (!over->given) {
        range_alone(st, over, &mine->it, false);
    }
}

/* ---- solving affine subscripts ---- */

typedef enum { UNDECIDED, WAITS, BOUND } verdict;

typedef struct {
    const kn_el_stmt *st;
    const kn_el_index *x;
} solver;

static bool uses_x(const solver *v, const kn_expr *e)
{
    return kn_expr_uses(e, v->x->it.name);
}

static bool waits_for_others(const solver *v, const kn_expr *sub)
{
    for (int i = 0; i < v->st->idx.n; i++) {
        const kn_el_index *y = &v->st->idx.at[i];
        if (y != v->x && !y->it.hi && kn_expr_uses(sub, y->it.name)) {
            return true;
        }
    }
    return false;
}

/* The part of a sum that x does not decide: all that is free of it, and its remainders at their
 * worst. */
typedef struct {
    const kn_expr *least, *greatest;
    const kn_expr *atom;        /* x, or a floordiv of it; NULL: none */
    const kn_expr *coefficient; /* of the atom */
} parts;

static bool add_worst(const solver *v, parts *p, int64_t coef, const kn_expr *term)
{
    kn_arena *a = v->st->el->a;
    bool exact = true;
    const kn_expr *lo = extreme_term(v->st, term, coef > 0 ? -1 : 1, &exact);
    const kn_expr *hi = extreme_term(v->st, term, coef > 0 ? 1 : -1, &exact);
    if (!lo || !hi) {
        return false;
    }
    p->least = kn_index_add(a, p->least, kn_index_mul(a, kn_index(a, coef), lo));
    p->greatest = kn_index_add(a, p->greatest, kn_index_mul(a, kn_index(a, coef), hi));
    return true;
}

/* False when the sum is not of the form coefficient * atom + rest. */
static bool split_parts(const solver *v, const kn_expr *sub, parts *p)
{
    kn_arena *a = v->st->el->a;
    sum s;
    if (!split_sum(v->st->el, sub, &s)) {
        return false;
    }
    *p = (parts){.least = kn_index(a, s.constant), .greatest = kn_index(a, s.constant)};
    for (int i = 0; i < s.n; i++) {
        const kn_expr *cofactor, *atom = NULL;
        if (uses_x(v, s.term[i])) {
            atom = varying_atom(v->st, s.term[i], &cofactor);
        }
        if (!atom || (atom->kind == KN_E_OP && atom->op == KN_OP_MOD)) {
            if (!add_worst(v, p, s.coef[i], s.term[i])) {
                return false;
            }
            continue;
        }
        bool solvable =
            atom->kind == KN_E_VAR || (atom->kind == KN_E_OP && atom->op == KN_OP_FLOORDIV);
        if (p->atom || !solvable) {
            return false;
        }
        p->atom = atom;
        p->coefficient = kn_index_mul(a, kn_index(a, s.coef[i]), cofactor);
    }
    return p->atom != NULL;
}

static void find_division(void *env, const kn_expr *e)
{
    bool *found = env;
    int64_t by;
    if (e->kind == KN_E_OP && e->op == KN_OP_FLOORDIV && !kn_index_const(e->args[1], &by)) {
        *found = true;
    }
}

/* floor(x / by), or NULL when that divides by a symbol. */
static const kn_expr *quotient(const solver *v, const kn_expr *x, const kn_expr *by)
{
    bool symbolic = false;
    const kn_expr *q = kn_index_div(v->st->el->a, x, by);
    kn_expr_visit(q, find_division, &symbolic);
    return symbolic ? NULL : q;
}

/* The number of values of x, from 0 on, for which 0 <= sub < extent; NULL when there is no closed
   form. `inner`: the dividend of a floordiv, of which only the upper end counts. */
static const kn_expr *solve(const solver *v, const kn_expr *sub, const kn_expr *extent, bool inner)
{
    kn_arena *a = v->st->el->a;
    parts p;
    if (!split_parts(v, sub, &p)) {
        return NULL;
    }
    int sign = sign_of(v->st->el, p.coefficient);
    const kn_expr *one = kn_index(a, 1), *room, *most = NULL;
    if (sign > 0) {
        room = kn_index_sub(a, kn_index_sub(a, extent, one), p.greatest);
        most = quotient(v, room, p.coefficient);
    } else if (sign < 0 && !inner) {
        most = quotient(v, p.least, kn_index_sub(a, kn_index(a, 0), p.coefficient));
    }
    if (!most) {
        return NULL;
    }
    const kn_expr *count = kn_index_add(a, most, one);
    if (p.atom->kind == KN_E_VAR) {
        return count;
    }
    int64_t by;
    if (sign < 0 || !positive_divisor(p.atom, &by)) {
        return NULL;
    }
    return solve(v, p.atom->args[0], kn_index_mul(a, count, p.atom->args[1]), true);
}

static const kn_expr *least_of(const kn_elab *el, const kn_expr *x, const kn_expr *y)
{
    kn_range r = range_of(el, kn_index_sub(el->a, x, y));
    return r.hi <= 0 ? x : r.lo >= 0 ? y : kn_index_min(el->a, x, y);
}

static verdict solve_access(const solver *v, const kn_el_access *ac, const kn_tensor *t,
                            const kn_expr **count)
{
    verdict result = UNDECIDED;
    for (int d = 0; d < ac->nsubs; d++) {
        const kn_expr *sub = ac->subs[d];
        if (!uses_x(v, sub) || kn_expr_has_load(sub)) {
            continue;
        }
        if (waits_for_others(v, sub)) {
            return WAITS;
        }
        const kn_expr *n = solve(v, sub, t->shape[d], false);
        if (n) {
            *count = *count ? least_of(v->st->el, *count, n) : n;
            result = BOUND;
        }
    }
    return result;
}

/* The range of x from all unguarded subscripts in which it occurs. */
static verdict solve_index(const kn_el_stmt *st, const kn_el_index *x, const kn_expr **count)
{
    solver v = {st, x};
    verdict result = UNDECIDED;
    if (st->where && kn_expr_uses(st->where, x->it.name)) {
        return UNDECIDED;
    }
    for (int i = 0; i < st->accesses.n; i++) {
        const kn_el_access *ac = &st->accesses.at[i];
        const kn_tensor *t = known_tensor(st, ac);
        if (!t || ac->in_where || guarded_for(ac, x)) {
            continue;
        }
        verdict one = solve_access(&v, ac, t, count);
        if (one == WAITS) {
            return WAITS;
        }
        result = one == BOUND ? BOUND : result;
    }
    return result;
}

static void set_count(const kn_el_stmt *st, kn_el_index *x, const kn_expr *count)
{
    kn_elab *el = st->el;
    if (range_of(el, count).lo < 0) {
        const char *what =
            kn_intern_f(el->ctx, "room for index `%s`: %s >= 0", x->source, kn_el_text(el, count));
        kn_el_require(el, kn_op2(el->a, KN_OP_GE, count, kn_index(el->a, 0)), what);
    }
    x->it.lo = kn_index(el->a, 0);
    x->it.hi = count;
}

/* One round over all indices without a range, decided at once, so that their order does not matter.
 */
static bool solve_round(kn_el_stmt *st)
{
    const kn_expr **count = KN_ARRAY(st->el->a, const kn_expr *, st->idx.n);
    bool progress = false;
    for (int i = 0; i < st->idx.n; i++) {
        const kn_el_index *x = &st->idx.at[i];
        if (!x->it.hi && solve_index(st, x, &count[i]) != BOUND) {
            count[i] = NULL;
        }
    }
    for (int i = 0; i < st->idx.n; i++) {
        if (count[i]) {
            set_count(st, &st->idx.at[i], count[i]);
            progress = true;
        }
    }
    return progress;
}

/* ---- all of a statement ---- */

static void range_round_alone(kn_el_stmt *st, bool weak)
{
    for (int i = 0; i < st->idx.n; i++) {
        kn_el_index *x = &st->idx.at[i];
        if (!x->it.hi) {
            kn_iter self = x->it;
            range_alone(st, x, &self, weak);
        }
    }
}

static kn_el_index *first_unknown(const kn_el_stmt *st)
{
    for (int i = 0; i < st->idx.n; i++) {
        if (!st->idx.at[i].it.hi) {
            return &st->idx.at[i];
        }
    }
    return NULL;
}

_Noreturn static void fail_range(const kn_el_stmt *st, const kn_el_index *x)
{
    kn_elab *el = st->el;
    const kn_expr *count = NULL;
    if (solve_index(st, x, &count) == WAITS) {
        for (int i = 0; i < st->idx.n; i++) {
            const kn_el_index *y = &st->idx.at[i];
            if (y != x && !y->it.hi) {
                kn_el_fail(
                    el,
                    "indices `%s` and `%s` bound each other: give one a range, where %s in 0:...",
                    x->source, y->source, x->source);
            }
        }
    }
    kn_el_fail(el, "nothing gives index `%s` a range: add where %s in 0:...", x->source, x->source);
}

bool kn_el_infer_ranges(kn_el_stmt *st, kn_el_index *over, bool last)
{
    if (over && over->it.hi && !st->idx.at[0].it.hi) {
        st->idx.at[0].it.lo = over->it.lo;
        st->idx.at[0].it.hi = over->it.hi;
    }
    range_round_alone(st, false);
    while (solve_round(st)) {
    }
    if (first_unknown(st)) {
        range_round_alone(st, true);
        while (solve_round(st)) {
        }
    }
    const kn_el_index *x = first_unknown(st);
    if (x && last) {
        fail_range(st, x);
    }
    if (over && !x && !over->it.hi) {
        over->it.lo = st->idx.at[0].it.lo;
        over->it.hi = st->idx.at[0].it.hi;
    }
    return !x;
}

/* ---- checks of subscripts ---- */

static void check_atom(kn_el_stmt *st, const char *tensor, const kn_expr *sub, const kn_expr *atom)
{
    if (atom->kind != KN_E_OP || kn_expr_has_load(atom)) {
        return;
    }
    int64_t by;
    if ((atom->op == KN_OP_FLOORDIV || atom->op == KN_OP_MOD) && kn_el_varies(st, atom) &&
        !positive_divisor(atom, &by)) {
        kn_el_fail(st->el, "subscript %s of `%s` divides by %s, which is no positive constant",
                   kn_el_text(st->el, sub), tensor, kn_el_text(st->el, atom->args[1]));
    }
    for (int i = 0; i < atom->nargs; i++) {
        if (atom->args[i]->type == KN_INDEX) {
            kn_el_check_affine(st, tensor, atom->args[i]);
        }
    }
}

void kn_el_check_affine(kn_el_stmt *st, const char *tensor, const kn_expr *sub)
{
    sum s;
    if (!split_sum(st->el, sub, &s)) {
        kn_el_fail(st->el, "a subscript of `%s` has more than %d terms", tensor, MAX_TERMS);
    }
    for (int i = 0; i < s.n; i++) {
        const kn_expr *cofactor;
        if (kn_expr_has_load(s.term[i]) || !kn_el_varies(st, s.term[i])) {
            continue;
        }
        const kn_expr *atom = varying_atom(st, s.term[i], &cofactor);
        if (!atom) {
            kn_el_fail(st->el, "subscript %s of `%s` multiplies indices", kn_el_text(st->el, sub),
                       tensor);
        }
        check_atom(st, tensor, sub, atom);
    }
}

static bool certainly_empty(const kn_el_stmt *st)
{
    for (int i = 0; i < st->idx.n; i++) {
        const kn_iter *it = &st->idx.at[i].it;
        if (range_of(st->el, kn_index_sub(st->el->a, it->hi, it->lo)).hi <= 0) {
            return true;
        }
    }
    return false;
}

static void check_subscript(const kn_el_stmt *st, const kn_tensor *t, int d, const kn_expr *sub)
{
    kn_elab *el = st->el;
    bool exact = true;
    const kn_expr *hi = kn_el_extreme(st, sub, 1, &exact);
    if (hi && exact && range_of(el, kn_index_sub(el->a, hi, t->shape[d])).lo >= 0) {
        kn_el_fail(el, "subscript %s of `%s` reaches %s, but dimension %d is %s",
                   kn_el_text(el, sub), t->name, kn_el_text(el, hi), d + 1,
                   kn_el_text(el, t->shape[d]));
    }
    exact = true;
    const kn_expr *lo = kn_el_extreme(st, sub, -1, &exact);
    if (lo && exact && range_of(el, lo).hi < 0) {
        kn_el_fail(el, "subscript %s of `%s` falls to %s", kn_el_text(el, sub), t->name,
                   kn_el_text(el, lo));
    }
}

void kn_el_check_bounds(kn_el_stmt *st)
{
    bool skip = st->where || certainly_empty(st);
    for (int i = 0; i < st->accesses.n; i++) {
        const kn_el_access *ac = &st->accesses.at[i];
        const kn_tensor *t = known_tensor(st, ac);
        for (int d = 0; d < ac->nsubs && !skip && !ac->guard; d++) {
            check_subscript(st, t, d, ac->subs[d]);
        }
    }
}

static const kn_expr *also(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    return x ? kn_op2(a, KN_OP_LAND, x, y) : y;
}

const kn_expr *kn_el_inside(const kn_el_stmt *st, const kn_tensor *t, const kn_expr *const *subs)
{
    kn_arena *a = st->el->a;
    const kn_expr *cond = NULL;
    for (int d = 0; d < t->rank; d++) {
        bool exact = true;
        const kn_expr *lo = kn_el_extreme(st, subs[d], -1, &exact);
        const kn_expr *hi = kn_el_extreme(st, subs[d], 1, &exact);
        if (!lo || range_of(st->el, lo).lo < 0) {
            cond = also(a, cond, kn_op2(a, KN_OP_GE, subs[d], kn_index(a, 0)));
        }
        if (!hi || range_of(st->el, kn_index_sub(a, hi, t->shape[d])).hi >= 0) {
            cond = also(a, cond, kn_op2(a, KN_OP_LT, subs[d], t->shape[d]));
        }
    }
    return cond;
}
