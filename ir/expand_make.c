/* Expansions of operators that make tensors from sizes: shapes as data, ranges, diagonals. */
#include "ir/expand_internal.h"

void kn_expand_shape(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_dims(&x, "d", 0, "d");
    int64_t start = kn_x_int(&x, "start", 0), end = kn_x_int(&x, "end", rank);
    start = start < 0 ? start + rank : start;
    end = end < 0 ? end + rank : end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end > rank ? rank : end;
    int n = end > start ? (int)(end - start) : 0;
    kn_x_set(&x, "n", "%d", n);
    kn_x_write(&x, "(X[$d]) -> Y: i64[$n]: ");
    for (int k = 0; k < n; k++)
        kn_putf(out, "%sY[%d] = cast(i64, d%d)", k ? "; " : "", k, (int)start + k);
    if (n == 0)
        kn_put(out, "Y[i] = cast(i64, i)");
}

void kn_expand_size(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_dims(&x, "d", 0, "d");
    kn_x_write(&x, "(X[$d]) -> Y: i64[]: Y[] = cast(i64, 1");
    for (int k = 0; k < rank; k++)
        kn_putf(out, " * d%d", k);
    kn_put(out, ")");
}

void kn_expand_dims(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int n = kn_x_count(&x, "values");
    const kn_attr *to = kn_node_attr(node, "to");
    kn_str body = kn_str_make(x.a);
    for (int k = 0; k < n; k++)
        kn_putf(&body, "%sY[%d] = cast(to, %s)", k ? "; " : "", k, kn_x_index(&x, "values", k));
    if (n == 0)
        kn_put(&body, "Y[i] = cast(to, i)");
    kn_x_set(&x, "n", "%d", n);
    kn_x_write(&x, to ? "(to: type, $attrs) -> Y: to[$n]: "
                      : "(to: type = i64, $attrs) -> Y: to[$n]: ");
    kn_put(out, kn_str_get(&body));
}

void kn_expand_range(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_x_single(&x, "s", 0);
    kn_x_single(&x, "t", 1);
    kn_x_set(&x, "n", "%s", kn_x_index(&x, "size", -1));
    kn_x_write(&x, "(S[$s_d], D[$t_d], $attrs) -> Y: typeof(S)[$n]: "
                   "Y[i] = S[$s_i] + cast(typeof(S), i) * D[$t_i]");
}

void kn_expand_eye(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    if (kn_x_count(&x, "shape") != 2)
        kn_x_fail(&x, "shape has %d elements, expected 2", kn_x_count(&x, "shape"));
    kn_x_set(&x, "m", "%s", kn_x_index(&x, "shape", 0));
    kn_x_set(&x, "n", "%s", kn_x_index(&x, "shape", 1));
    kn_x_set(&x, "k", "%s", kn_x_has(&x, "k") ? kn_x_index(&x, "k", -1) : "0");
    kn_x_write(&x, "(to: type = f32, $attrs) -> Y: to[$m, $n]: Y[i, j] = cast(to, j == i + $k)");
}

void kn_expand_trilu(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_x_set(&x, "k", "%s", kn_x_has(&x, "k") ? kn_x_index(&x, "k", -1) : "0");
    kn_x_set(&x, "op", "%s", kn_x_int(&x, "upper", 1) ? ">=" : "<=");
    kn_x_write(&x, "(X[*b, m, n], $attrs) -> Y: "
                   "Y[*b, i, j] = select(j $op i + $k, X[*b, i, j], cast(typeof(X), 0))");
}

/* An index out of range gives a row that is off everywhere. Indices may be floats: they are cast,
 * as in the reference. */
void kn_expand_one_hot(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", -1, rank + 1);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), o = {0}, q = {0};
    const char *depth = kn_x_index(&x, "depth", -1);
    for (int k = 0; k <= rank; k++) {
        kn_x_push(&x, &o, k == axis ? depth : d.at[k - (k > axis)]);
        kn_x_push(&x, &q, k == axis ? "j" : i.at[k - (k > axis)]);
    }
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_set(&x, "n", "%s", depth);
    kn_x_write(&x,
               "(X[$d], V[2], $attrs) -> Y: typeof(V)[$o]: "
               "K[$i] = cast(i64, X[$i]); "
               "Y[$q] = select(K[$i] == cast(i64, j) || K[$i] == cast(i64, j - $n), V[1], V[0])");
}
