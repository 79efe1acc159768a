/* Simplification: identities of moves, types, arithmetic and powers, by the rules of simplify.def.
 */
#include <math.h>

#include "passes/graph/rules.h"
#include "passes/passes.h"

/* ---- moves ---- */

static int64_t at(const kn_attr *list, int i)
{
    int64_t v = -1;
    kn_index_const(list->indexes[i], &v);
    return v;
}

static bool is_identity_perm(kn_match *m)
{
    const kn_attr *perm = kn_match_attr(m, "p");
    for (int i = 0; i < perm->n; i++) {
        if (at(perm, i) != i) {
            return false;
        }
    }
    return true;
}

static bool root_shape(kn_match *m)
{
    const kn_value *root = kn_match_root(m);
    kn_match_set_attr(m, "r", kn_attr_indexes("r", root->shape, root->rank));
    return true;
}

/* The dimensions that are not 1 keep their order. */
static bool moves_ones(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x"), *root = kn_match_root(m);
    const kn_attr *perm = kn_match_attr(m, "p");
    int64_t last = -1;
    for (int i = 0; i < perm->n; i++) {
        int64_t from = at(perm, i);
        if (kn_index_is(x->shape[from], 1)) {
            continue;
        }
        if (from < last) {
            return false;
        }
        last = from;
    }
    kn_match_set_attr(m, "s", kn_attr_indexes("s", root->shape, root->rank));
    return true;
}

static bool composes(kn_match *m)
{
    const kn_attr *p = kn_match_attr(m, "p"), *q = kn_match_attr(m, "q");
    int64_t r[KN_MAX_RANK];
    for (int i = 0; i < q->n; i++) {
        r[i] = at(p, (int)at(q, i));
    }
    kn_match_set_attr(m, "r", kn_attr_ints(kn_match_graph(m)->arena, "r", r, q->n));
    return true;
}

/* The dimensions that are not 1, in order; how many. */
static int living(const kn_value *v, int *dims)
{
    int n = 0;
    for (int i = 0; i < v->rank; i++) {
        if (!kn_index_is(v->shape[i], 1)) {
            dims[n++] = i;
        }
    }
    return n;
}

/* Both have the same dimensions, but for those of 1. */
static bool same_but_ones(const kn_value *x, const kn_value *y)
{
    int p[KN_MAX_RANK], q[KN_MAX_RANK], n = living(x, p);
    bool same = living(y, q) == n;
    for (int i = 0; same && i < n; i++) {
        same = kn_expr_equal(x->shape[p[i]], y->shape[q[i]]);
    }
    return same;
}

static int place_of(const int *list, int n, int64_t item)
{
    int i = 0;
    while (i < n && list[i] != item) {
        i++;
    }
    return i;
}

/* x, u with other ones, v transposed, the root with other ones again, as many dimensions as x. */
static bool transposes_but_ones(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x"), *u = kn_match_value(m, "u"),
                   *v = kn_match_value(m, "v"), *y = kn_match_root(m);
    const kn_attr *perm = kn_match_attr(m, "p");
    int xs[KN_MAX_RANK], us[KN_MAX_RANK], vs[KN_MAX_RANK], n = living(x, xs);
    int64_t r[KN_MAX_RANK];
    if (x->rank != y->rank || !same_but_ones(x, u) || !same_but_ones(v, y)) {
        return false;
    }
    living(u, us);
    living(v, vs);
    for (int i = 0, k = 0, one = 0; i < y->rank; i++) {
        if (kn_index_is(y->shape[i], 1)) {
            while (!kn_index_is(x->shape[one], 1)) {
                one++;
            }
            r[i] = one++;
        } else {
            r[i] = xs[place_of(us, n, at(perm, vs[k++]))];
        }
    }
    kn_match_set_attr(m, "r", kn_attr_ints(kn_match_graph(m)->arena, "r", r, y->rank));
    return true;
}

static bool keeps_rows(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x"), *u = kn_match_value(m, "u");
    return x->rank > 0 && u->rank > 0 &&
           kn_expr_equal(x->shape[x->rank - 1], u->shape[u->rank - 1]);
}

/* The last two dimensions change places and nothing else does. */
static bool swaps_last_two(const kn_attr *perm)
{
    int n = perm->n;
    bool swaps = n >= 2 && at(perm, n - 1) == n - 2 && at(perm, n - 2) == n - 1;
    for (int i = 0; swaps && i < n - 2; i++) {
        swaps = at(perm, i) == i;
    }
    return swaps;
}

static bool turn(kn_match *m, const char *flag)
{
    kn_match_set_attr(m, "other", kn_attr_int("other", kn_match_number(m, flag, 0) == 0));
    return swaps_last_two(kn_match_attr(m, "p"));
}

static bool transposes_a(kn_match *m)
{
    return turn(m, "ta");
}

static bool transposes_b(kn_match *m)
{
    return turn(m, "tb");
}

/* Of the operand's shape, so it starts at 0, unless it runs backwards. */
static bool takes_all(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x");
    const kn_attr *axes = kn_match_attr(m, "a"), *steps = kn_match_attr(m, "t");
    for (int i = 0; i < axes->n; i++) {
        if (at(steps, i) != 1 && !kn_index_is(x->shape[at(axes, i)], 1)) {
            return false;
        }
    }
    return kn_same_shape(x, kn_match_root(m));
}

static bool pads_nothing(kn_match *m)
{
    const kn_attr *before = kn_match_attr(m, "p");
    for (int i = 0; i < before->n; i++) {
        if (!kn_index_is(before->indexes[i], 0)) {
            return false;
        }
    }
    return true;
}

/* Every dimension of the result is still that of an operand. */
static bool still_fits(kn_match *m)
{
    const kn_value *root = kn_match_root(m);
    const kn_value *operands[] = {kn_match_value(m, "x"), kn_match_value(m, "y"),
                                  kn_match_value(m, "z")};
    for (int i = 0; i < root->rank; i++) {
        bool found = kn_index_is(root->shape[i], 1);
        for (int k = 0; k < 3 && !found; k++) {
            int d = operands[k] ? i - (root->rank - operands[k]->rank) : -1;
            found = d >= 0 && kn_expr_equal(operands[k]->shape[d], root->shape[i]);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static bool is_last_axis(kn_match *m)
{
    return kn_match_number(m, "a", -1) == kn_match_root(m)->rank - 1;
}

/* ---- types ---- */

static int mantissa(kn_dtype t)
{
    return t == KN_F64 ? 53 : t == KN_F32 ? 24 : t == KN_F16 ? 11 : 8;
}

/* Whether every value of type x is one of type t. */
static bool represents(kn_dtype t, kn_dtype x)
{
    if (t == x || x == KN_BOOL) {
        return true;
    }
    if (t == KN_BOOL || (kn_dtype_is_float(x) && !kn_dtype_is_float(t))) {
        return false;
    }
    if (kn_dtype_is_float(x)) {
        return t == KN_F64 || (t == KN_F32 && kn_dtype_bits(x) == 16);
    }
    if (kn_dtype_is_float(t)) {
        return kn_dtype_bits(x) - kn_dtype_is_signed(x) <= mantissa(t);
    }
    return kn_dtype_min(t) <= kn_dtype_min(x) && kn_dtype_max(t) >= kn_dtype_max(x);
}

/* Integers wrap when cast to integers, floats saturate: a way by floats is another one, unless all
 * values fit. */
static bool first_cast_is_exact(kn_match *m)
{
    kn_dtype x = kn_match_value(m, "x")->type, s = kn_match_attr(m, "s")->type,
             t = kn_match_attr(m, "t")->type;
    bool detour = !kn_dtype_is_float(x) && kn_dtype_is_float(s) && kn_dtype_is_integer(t);
    return represents(s, x) && (!detour || represents(t, x));
}

/* ---- arithmetic ---- */

static bool is_float(kn_match *m)
{
    double zero = kn_match_number(m, "zero", 0);
    return kn_dtype_is_float(kn_match_root(m)->type) && zero == 0 && !signbit(zero);
}

static bool adds_nothing(kn_match *m)
{
    double zero = kn_match_number(m, "zero", 1);
    return zero == 0 && (signbit(zero) || !kn_dtype_is_float(kn_match_root(m)->type));
}

static bool subtracts_nothing(kn_match *m)
{
    double zero = kn_match_number(m, "zero", 1);
    return zero == 0 && !signbit(zero);
}

static bool constant_comes_first(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x");
    return kn_match_root(m)->def->inputs[0] == kn_match_value(m, "c") &&
           !kn_value_literal(kn_match_arena(m), x);
}

/* A constant of one element of the same type and shape. */
static kn_value *constant_like(kn_match *m, const kn_value *c, double number)
{
    kn_graph *g = kn_match_graph(m);
    const kn_value *scalar = kn_graph_scalar(g, c->type, number);
    int64_t dims[KN_MAX_RANK];
    for (int i = 0; i < c->rank; i++) {
        dims[i] = 1;
    }
    const char *name = kn_graph_fresh(g, "c");
    return kn_graph_const(g, name, c->type, dims, c->rank, scalar->data, scalar->bytes, c->loc);
}

static bool divides_by_power_of_two(kn_match *m)
{
    int exponent;
    const kn_value *c = kn_match_value(m, "c");
    double number = kn_match_number(m, "c", 0), inverse = 1 / number;
    bool power = fabs(frexp(number, &exponent)) == 0.5 && exponent > -14 && exponent < 14;
    if (!kn_dtype_is_float(c->type) || !power) {
        return false;
    }
    kn_match_set(m, "inverse", constant_like(m, c, inverse));
    return true;
}

/* In half precision the root would be rounded before it is divided into 1. */
static bool is_computed_as_written(kn_match *m)
{
    return kn_dtype_bits(kn_match_root(m)->type) >= 32;
}

/* ---- powers ---- */

/* A power of integers by a float goes by way of floats. */
static bool same_type_power(kn_match *m)
{
    const kn_node *n = kn_match_root(m)->def;
    return kn_dtype_is_float(n->inputs[0]->type) || n->inputs[0]->type == n->inputs[1]->type;
}

static bool not_negative(kn_arena *a, const kn_value *v, int depth);

static bool all_not_negative(kn_arena *a, const kn_node *n, int depth)
{
    bool all = true;
    for (int i = 0; i < n->ninputs && all; i++) {
        all = not_negative(a, n->inputs[i], depth);
    }
    return all;
}

/* Certainly no less than 0.0, nor -0.0; it may be NaN. */
static bool not_negative(kn_arena *a, const kn_value *v, int depth)
{
    static const char *const always[] = {"abs",       "exp",      "sigmoid", "reduce_sum_square",
                                         "reduce_l1", "reduce_l2"};
    static const char *const inherited[] = {"add",         "mul",      "div",     "reduce_sum",
                                            "reduce_mean", "cast",     "reshape", "transpose",
                                            "expand",      "identity", "slice",   "concat"};
    const kn_node *n = v->def;
    if (!n) {
        const kn_expr *e = kn_value_literal(a, v);
        return e && kn_dtype_is_float(e->type) && e->f >= 0 && !signbit(e->f);
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        if (strcmp(n->op->name, always[i]) == 0) {
            return true;
        }
    }
    if (strcmp(n->op->name, "mul") == 0 && n->inputs[0] == n->inputs[1]) {
        return true;
    }
    for (size_t i = 0; i < sizeof inherited / sizeof *inherited && depth > 0; i++) {
        if (strcmp(n->op->name, inherited[i]) == 0) {
            return all_not_negative(a, n, depth - 1);
        }
    }
    return false;
}

static bool cannot_be_negative(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x");
    return kn_dtype_is_float(x->type) && not_negative(kn_match_arena(m), x, 6);
}

/* ---- the table ---- */

#define KN_RULES "passes/graph/simplify.def"
#define KN_RULE_TABLE kn_simplify_rules
#define KN_RULES_SHARED true
#include "passes/graph/rules_table.h"

void kn_pass_simplify(kn_unit *u)
{
    kn_rewrite(u, &kn_simplify_rules, NULL);
}
