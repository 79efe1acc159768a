/* Expansions of unique: which slices along an axis are the first of their value, and where they go.
   All pairs are compared, so that it is index notation: Q equal (not 0), L less (by the first
   element that differs), F first, R the place of each slice's value among the distinct ones. NaNs
   equal each other and are the greatest, as in numpy's unique. */
#include "ir/expand_internal.h"

/* $a: the axis as dimension; $i, $j: subscripts of slices i and j; $e the elements' indices; $p
 * their row-major place. */
static void set_slices(kn_x *x)
{
    int rank = kn_x_rank(x, 0), axis = kn_x_axis(x, "axis", 0, rank);
    kn_subs d = kn_x_subs(x, "d", rank), i = kn_x_subs(x, "x", rank), j = i, o = d, q = i;
    const char *place = "0";
    for (int k = 0; k < rank; k++)
        if (k != axis)
            place = kn_format(x->a, "(%s) * d%d + x%d", place, k, k);
    i.at[axis] = "i";
    j.at[axis] = "j";
    q.at[axis] = "R[i]";
    kn_x_let(x, "d", &d);
    kn_x_let(x, "i", &i);
    kn_x_let(x, "j", &j);
    kn_x_let(x, "q", &q);
    kn_x_set(x, "a", "d%d", axis);
    kn_x_set(x, "p", "cast(i64, %s)", place);
    if (kn_x_has(x, "count")) {
        o.at[axis] = kn_x_index(x, "count", -1);
        kn_x_set(x, "n", "%s", o.at[axis]);
    }
    kn_x_let(x, "o", &o);
}

static bool has_nan(const kn_x *x)
{
    return kn_dtype_is_float(kn_x_operand(x, 0)->type);
}

static void write_equal(kn_x *x)
{
    kn_x_write(x, has_nan(x) ? "X[$i] == X[$j] || (X[$i] != X[$i] && X[$j] != X[$j])"
                             : "X[$i] == X[$j]");
}

static void write_less(kn_x *x)
{
    kn_x_write(x, has_nan(x) ? "(X[$i] < X[$j] || (X[$i] == X[$i] && X[$j] != X[$j]))"
                             : "X[$i] < X[$j]");
}

static void write_first(kn_x *x)
{
    kn_x_write(x, "Q[i, j] min=! select(");
    write_equal(x);
    kn_x_write(x, ", cast(i32, 1), 0); "
                  "N[i] +=! select(j < i && Q[i, j] != 0, cast(i32, 1), 0); "
                  "F[i] = select(N[i] == 0, cast(i64, 1), 0)");
}

void kn_expand_count_unique(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_slices(&x);
    kn_x_write(&x, "(X[$d]) -> Y: i64[1]: ");
    write_first(&x);
    kn_x_write(&x, "; Y[0] +=! F[i]");
}

void kn_expand_unique(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool sorted = kn_x_int(&x, "sorted", 1) != 0;
    set_slices(&x);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o], I: i64[$n], V: i64[$a], C: i64[$n]: ");
    write_first(&x);
    if (sorted) {
        kn_x_write(&x, "; D[i, j] min=! select(");
        write_equal(&x);
        kn_x_write(&x, ", 9223372036854775807, $p); L[i, j] +=! select($p == D[i, j] && ");
        write_less(&x);
        kn_x_write(&x, ", cast(i32, 1), 0); R[i] +=! select(L[j, i] == 1, F[j], 0); V[i] = R[i]");
    } else
        kn_x_write(&x, "; R[i] +=! select(j < i, F[j], 0) where i in 0:$a; "
                       "V[i] +=! select(Q[i, j] != 0, F[j] * R[j], 0)");
    kn_x_write(&x, "; Y[$q] = X[$i] where F[i] == 1; "
                   "I[R[i]] = cast(i64, i) where F[i] == 1; "
                   "C[k] = cast(i64, 0) where k in 0:$n; C[V[i]] += 1");
}
