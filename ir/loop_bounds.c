/* Proofs that an index expression is not negative, by substitution: where the expression grows with
   a loop's variable its least value stands at the loop's start, where it falls at the end; so loop
   by loop, innermost first, the variables go, and interval arithmetic decides about what is left.
   Then once more with each guard that holds at the place taken away from the goal. Sound, and
   complete enough for what subscripts look like; what is not proved is checked at run time. */
#include "ir/loop_internal.h"

enum {
    MAX_TRIES = 64
}; /* of substitutions in one proof: ends of loops that are a min or max give two each */

kn_known_mark kn_known_here(const kn_known *k)
{
    return (kn_known_mark){k->spans.n, k->facts.n};
}

void kn_known_back(kn_known *k, kn_known_mark mark)
{
    k->spans.n = k->bounds.n = mark.spans;
    k->facts.n = mark.facts;
}

static void push(kn_known *k, kn_span span, kn_size bounds)
{
    kn_push(k->arena, &k->spans, span);
    kn_push(k->arena, &k->bounds, bounds);
}

void kn_known_size(kn_known *k, const char *name, int64_t lo, int64_t hi)
{
    push(k, (kn_span){name, NULL, NULL}, (kn_size){name, lo, hi});
}

static kn_range range_of(const kn_known *k, const kn_expr *e)
{
    return kn_index_range(e, k->bounds.at, k->bounds.n);
}

/* The end of a loop as the prover may use it. */
static const kn_expr *usable(const kn_known *k, const kn_expr *e)
{
    return kn_expr_has_load(e) ? NULL : kn_index_simplify(k->arena, e);
}

void kn_known_span(kn_known *k, const char *name, const kn_expr *lo, const kn_expr *hi)
{
    kn_span span = {name, usable(k, lo), usable(k, hi)};
    kn_size bounds = {name, INT64_MIN, INT64_MAX};
    if (span.lo)
        bounds.lo = range_of(k, span.lo).lo;
    if (span.hi) {
        bounds.hi = range_of(k, span.hi).hi;
        bounds.hi -= bounds.hi != INT64_MAX && bounds.hi != INT64_MIN;
    }
    push(k, span, bounds);
}

/* ---- Facts ---- */

static void add_fact(kn_known *k, const kn_expr *large, const kn_expr *small, int64_t more)
{
    if (kn_expr_has_load(large) || kn_expr_has_load(small))
        return;
    const kn_expr *fact = kn_index_sub(k->arena, large, small);
    fact = kn_index_sub(k->arena, fact, kn_index(k->arena, more));
    kn_push(k->arena, &k->facts, fact);
}

static bool surely_at_least(const kn_known *k, const kn_expr *large, const kn_expr *small)
{
    return !kn_expr_has_load(large) && !kn_expr_has_load(small) &&
           kn_known_nonneg(k, kn_index_sub(k->arena, large, small));
}

/* x != y: where one cannot be the smaller it is the larger. */
static void add_differ(kn_known *k, const kn_expr *x, const kn_expr *y)
{
    if (surely_at_least(k, x, y))
        add_fact(k, x, y, 1);
    else if (surely_at_least(k, y, x))
        add_fact(k, y, x, 1);
}

static void assume_compare(kn_known *k, const kn_expr *cond, bool holds)
{
    const kn_expr *x = cond->args[0], *y = cond->args[1];
    switch (cond->op) {
    case KN_OP_LT: holds ? add_fact(k, y, x, 1) : add_fact(k, x, y, 0); break;
    case KN_OP_LE: holds ? add_fact(k, y, x, 0) : add_fact(k, x, y, 1); break;
    case KN_OP_GT: holds ? add_fact(k, x, y, 1) : add_fact(k, y, x, 0); break;
    case KN_OP_GE: holds ? add_fact(k, x, y, 0) : add_fact(k, y, x, 1); break;
    case KN_OP_EQ:
    case KN_OP_NE:
        if (holds == (cond->op == KN_OP_EQ)) {
            add_fact(k, x, y, 0);
            add_fact(k, y, x, 0);
        } else {
            add_differ(k, x, y);
        }
        break;
    default: break;
    }
}

void kn_known_assume(kn_known *k, const kn_expr *cond, bool holds)
{
    if (cond->kind != KN_E_OP)
        return;
    if (cond->op == KN_OP_LNOT) {
        kn_known_assume(k, cond->args[0], !holds);
    } else if (cond->op == (holds ? KN_OP_LAND : KN_OP_LOR)) {
        kn_known_assume(k, cond->args[0], holds);
        kn_known_assume(k, cond->args[1], holds);
    } else if (cond->nargs == 2 && cond->args[0]->type == KN_INDEX) {
        assume_compare(k, cond, holds);
    }
}

/* ---- Proofs ---- */

typedef struct {
    const kn_known *known;
    int tries;
} proof;

static bool prove(proof *p, const kn_expr *e, int span);

/* e with the variable replaced. */
static const kn_expr *at(const kn_known *k, const kn_expr *e, const char *name,
                         const kn_expr *value)
{
    kn_binding b = {name, value};
    return kn_expr_subst(k->arena, e, &b, 1);
}

/* With the variable at an end of its loop; the variable is at most each operand of a min, at least
 * each of a max. */
static bool prove_at(proof *p, const kn_expr *e, int span, const kn_expr *end, int64_t shift,
                     kn_scalar either)
{
    const kn_known *k = p->known;
    if (!end || p->tries++ >= MAX_TRIES)
        return false;
    if (end->kind == KN_E_OP && end->op == either)
        return prove_at(p, e, span, end->args[0], shift, either) ||
               prove_at(p, e, span, end->args[1], shift, either);
    const kn_expr *value = kn_index_add(k->arena, end, kn_index(k->arena, shift));
    return prove(p, at(k, e, k->spans.at[span].name, value), span - 1);
}

/* e >= 0 for all values of the variables of spans[0..span]. */
static bool prove(proof *p, const kn_expr *e, int span)
{
    const kn_known *k = p->known;
    if (range_of(k, e).lo >= 0)
        return true;
    for (; span >= 0; span--) {
        const kn_span *s = &k->spans.at[span];
        if (!(s->lo || s->hi) || !kn_expr_uses(e, s->name))
            continue;
        const kn_expr *next =
            kn_index_add(k->arena, kn_var(k->arena, KN_INDEX, s->name), kn_index(k->arena, 1));
        const kn_expr *slope = kn_index_sub(k->arena, at(k, e, s->name, next), e);
        if (kn_expr_uses(slope, s->name))
            continue;
        kn_range r = range_of(k, slope);
        return (r.lo >= 0 && prove_at(p, e, span, s->lo, 0, KN_OP_MAX)) ||
               (r.hi <= 0 && prove_at(p, e, span, s->hi, -1, KN_OP_MIN));
    }
    return false;
}

bool kn_known_nonneg(const kn_known *k, const kn_expr *e)
{
    proof p = {.known = k};
    if (kn_expr_has_load(e))
        return false;
    e = kn_index_simplify(k->arena, e);
    bool proved = prove(&p, e, k->spans.n - 1);
    for (int i = k->facts.n - 1; !proved && i >= 0; i--)
        proved = prove(&p, kn_index_sub(k->arena, e, k->facts.at[i]), k->spans.n - 1);
    return proved;
}
