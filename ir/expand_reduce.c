/* Expansions of reductions along axes, of what is made of them (softmax, arg max), and of running
   sums. Names: $d dimensions and $i indices of the operand; $k the indices that are kept; $o, $q
   dimensions and subscripts of the result, with a 1 and a 0 in the place of what was reduced when
   it keeps its rank. An empty reduction is its identity, as in ONNX: a maximum of nothing is -inf,
   or the least integer. */
#include "ir/expand_internal.h"

static void set_kept(kn_x *x, int rank, unsigned axes, bool keepdims)
{
    kn_subs d = kn_x_subs(x, "d", rank), i = kn_x_subs(x, "x", rank);
    kn_subs kept = kn_x_pick(&i, ~axes), o = {0}, q = {0};
    for (int k = 0; k < rank; k++) {
        bool reduced = axes >> k & 1;
        if (reduced && !keepdims)
            continue;
        kn_x_push(x, &o, reduced ? "1" : d.at[k]);
        kn_x_push(x, &q, reduced ? "0" : i.at[k]);
    }
    kn_x_let(x, "d", &d);
    kn_x_let(x, "i", &i);
    kn_x_let(x, "k", &kept);
    kn_x_let(x, "o", &o);
    kn_x_let(x, "q", &q);
}

/* $n: the number of elements along the axes. */
static void set_count(kn_x *x, int rank, unsigned axes)
{
    kn_str s = kn_str_make(x->a);
    for (int k = 0; k < rank; k++)
        if (axes >> k & 1)
            kn_putf(&s, "%sd%d", s.n ? " * " : "", k);
    kn_x_set(x, "n", "%s", s.n ? kn_str_get(&s) : "1");
}

/* How each reduction is written: of $x (the element) into $s (the sum), then finished. */
static const struct reduction {
    const char *op, *element, *update, *finish;
} reductions[] = {
    {"reduce_sum", "X[$i]", "+=!", NULL},
    {"reduce_prod", "X[$i]", "*=!", NULL},
    {"reduce_max", "X[$i]", "max=!", NULL},
    {"reduce_min", "X[$i]", "min=!", NULL},
    {"reduce_l1", "abs(X[$i])", "+=!", NULL},
    {"reduce_sum_square", "X[$i] * X[$i]", "+=!", NULL},
    {"reduce_mean", "cast(acctype(X), X[$i])", "+=!", "S[$k] / cast(acctype(X), $n)"},
    {"reduce_l2", "cast($t, X[$i]) * cast($t, X[$i])", "+=!", "sqrt(S[$k])"},
    {"reduce_log_sum", "cast($t, X[$i])", "+=!", "log(S[$k])"},
};

void kn_expand_reduce(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    const struct reduction *r = reductions;
    while (strcmp(r->op, node->op->name) != 0)
        r++;
    int rank = kn_x_rank(&x, 0);
    unsigned axes = kn_x_axes(&x, "axes", rank);
    kn_dtype type = kn_x_operand(&x, 0)->type;
    set_kept(&x, rank, axes, kn_x_int(&x, "keepdims", 0) != 0);
    set_count(&x, rank, axes);
    kn_x_set(&x, "t", "%s", kn_dtype_is_float(type) ? "acctype(X)" : "f64");
    kn_x_set(&x, "op", "%s", r->update);
    kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$o]: ");
    if (type == KN_BOOL)
        kn_x_write(&x, "S[$k] $op cast(u8, X[$i]); Y[$q] = S[$k] != 0");
    else if (!r->finish) {
        kn_x_write(&x, "Y[$q] $op ");
        kn_x_write(&x, r->element);
    } else {
        kn_x_write(&x, "S[$k] $op ");
        kn_x_write(&x, r->element);
        kn_x_write(&x, "; Y[$q] = cast(typeof(X), ");
        kn_x_write(&x, r->finish);
        kn_x_write(&x, ")");
    }
}

/* An infinite maximum is not taken out: exp(-inf - -inf) would be NaN. */
void kn_expand_reduce_log_sum_exp(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    kn_dtype type = kn_x_operand(&x, 0)->type;
    set_kept(&x, rank, kn_x_axes(&x, "axes", rank), kn_x_int(&x, "keepdims", 0) != 0);
    kn_x_set(&x, "t", "%s", kn_dtype_is_float(type) ? "acctype(X)" : "f64");
    kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$o]: "
                   "G[$k] max=! cast($t, X[$i]); "
                   "M[$k] = select(abs(G[$k]) < inf, G[$k], 0); "
                   "S[$k] +=! exp(cast($t, X[$i]) - M[$k]); "
                   "Y[$q] = cast(typeof(X), log(S[$k]) + M[$k])");
}

/* The place of the first (last) greatest; a NaN counts as the greatest, as in numpy, and nothing has
 * no greatest. Booleans compare as numbers. */
void kn_expand_argmax(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    bool greatest = strcmp(node->op->name, "argmax") == 0,
         last = kn_x_int(&x, "select_last", 0) != 0;
    set_kept(&x, rank, 1u << axis, kn_x_int(&x, "keepdims", 0) != 0);
    kn_x_set(&x, "e", "%s", kn_x_operand(&x, 0)->type == KN_BOOL ? "cast(u8, X[$i])" : "X[$i]");
    kn_x_set(&x, "j", "x%d", axis);
    kn_x_set(&x, "n", "d%d", axis);
    kn_x_write(&x, "(X[$d]) -> Y: i64[$o]: require $n >= 1; M[$k] ");
    kn_x_write(&x, greatest ? "max=! " : "min=! ");
    kn_x_write(&x, kn_map_get(&x.names, "e"));
    kn_x_write(&x, last ? "; Y[$q] max=! select(" : "; Y[$q] min=! select(");
    kn_x_write(&x, kn_map_get(&x.names, "e"));
    kn_x_write(&x, " == M[$k] || X[$i] != X[$i], cast(i64, $j), ");
    kn_x_write(&x, last ? "-1)" : "cast(i64, $n))");
}

/* The axes that a softmax runs over. */
static unsigned soft_axes(kn_x *x, int rank)
{
    bool flatten = kn_x_int(x, "flatten", 0) != 0;
    if (rank == 0)
        return 0;
    if (flatten && kn_x_int(x, "axis", -1) == rank)
        return 0;
    int axis = kn_x_axis(x, "axis", -1, rank);
    return flatten ? ((1u << rank) - 1) & ~((1u << axis) - 1) : 1u << axis;
}

void kn_expand_softmax(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    set_kept(&x, rank, soft_axes(&x, rank), true);
    if (strcmp(node->op->name, "softmax") == 0)
        kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$d]: "
                       "M[$k] max=! cast(acctype(X), X[$i]); "
                       "E[$i] = exp(cast(acctype(X), X[$i]) - M[$k]); "
                       "S[$k] +=! E[$i]; "
                       "Y[$i] = cast(typeof(X), E[$i] / S[$k])");
    else
        kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$d]: "
                       "M[$k] max=! cast(acctype(X), X[$i]); "
                       "S[$k] +=! exp(cast(acctype(X), X[$i]) - M[$k]); "
                       "Y[$i] = cast(typeof(X), cast(acctype(X), X[$i]) - M[$k] - log(S[$k]))");
}

/* $p: the row-major place of an element along the axes. */
static void set_place(kn_x *x, int rank, unsigned axes)
{
    const char *place = NULL;
    for (int k = 0; k < rank; k++)
        if (axes >> k & 1)
            place = place ? kn_format(x->a, "(%s) * d%d + x%d", place, k, k)
                          : kn_format(x->a, "x%d", k);
    kn_x_set(x, "p", "%s", place ? place : "0");
}

void kn_expand_hardmax(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    unsigned axes = soft_axes(&x, rank);
    set_kept(&x, rank, axes, true);
    set_count(&x, rank, axes);
    set_place(&x, rank, axes);
    kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$d]: "
                   "M[$k] max=! X[$i]; "
                   "J[$k] min=! select(X[$i] == M[$k] || X[$i] != X[$i], cast(i64, $p), "
                   "cast(i64, $n)); "
                   "Y[$i] = select(cast(i64, $p) == J[$k], 1, 0)");
}

/* A running sum reads its own last point; from the end, it runs over t = n - 1 - i. */
void kn_expand_cumulate(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    bool sum = strcmp(node->op->name, "cumsum") == 0, reverse = kn_x_int(&x, "reverse", 0) != 0;
    int exclusive = kn_x_int(&x, "exclusive", 0) != 0;
    kn_subs i = kn_x_subs(&x, "x", rank), from = i, before = i, place = i;
    kn_x_dims(&x, "d", 0, "d");
    const char *back = kn_format(x.a, "d%d - 1 - x%d", axis, axis);
    if (reverse)
        from.at[axis] = exclusive ? kn_format(x.a, "d%d - x%d", axis, axis) : back;
    else if (exclusive)
        from.at[axis] = kn_format(x.a, "x%d - 1", axis);
    before.at[axis] = kn_format(x.a, "x%d - 1", axis);
    if (reverse)
        place.at[axis] = back;
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "from", &from);
    kn_x_let(&x, "before", &before);
    kn_x_let(&x, "place", &place);
    kn_x_set(&x, "t", "x%d", axis);
    kn_x_set(&x, "n", "d%d", axis);
    kn_x_set(&x, "op", "%s", sum ? "+" : "*");
    kn_x_set(&x, "e", "%s", sum ? "0" : "1");
    kn_x_write(&x, "(X[$d]) -> Y: typeof(X)[$d]: ");
    kn_x_write(&x, exclusive ? "S[$i] = select($t == 0, $e, S[$before] $op X[$from])"
                             : "S[$i] = select($t == 0, $e, S[$before]) $op X[$from]");
    kn_x_write(&x, " where $t in 0:$n; Y[$i] = S[$place]");
}
