/* Expansions of opaque rows: a signature, then the loops that are the meaning (ir/opaque.c says how
 * they meet). */
#include "ir/expand_internal.h"

static void set_loops(kn_x *x, const kn_subs *i, const kn_subs *d, int skip)
{
    kn_str open = kn_str_make(x->a), close = kn_str_make(x->a);
    for (int k = 0; k < i->n; k++)
        if (k != skip) {
            kn_putf(&open, "for %s in 0:%s { ", i->at[k], d->at[k]);
            kn_put(&close, "} ");
        }
    kn_x_set(x, "open", "%s", kn_str_get(&open));
    kn_x_set(x, "close", "%s", kn_str_get(&close));
}

/* $params: scalar parameters for the dimensions. */
static void set_params(kn_x *x, const kn_subs *d)
{
    kn_str s = kn_str_make(x->a);
    for (int k = 0; k < d->n; k++)
        kn_putf(&s, "%s%s: index", k ? ", " : "", d->at[k]);
    kn_x_set(x, "params", "%s", kn_str_get(&s));
}

/* Whether a comes before b, of floats: a NaN is the greatest, and no NaN before another. */
static const char *float_before(kn_x *x, bool largest, const char *a, const char *b)
{
    return largest ? kn_format(x->a, "(%s > %s || (%s != %s && %s == %s))", a, b, a, a, b, b)
                   : kn_format(x->a, "(%s < %s || (%s == %s && %s != %s))", a, b, a, a, b, b);
}

/* $behind: X[$j] comes behind V[$p]; $alike: neither comes before the other; $better: X[$j] comes
 * before best. */
static void set_order(kn_x *x, bool largest)
{
    const char *v = kn_format(x->a, "V[%s]", (const char *)kn_map_get(&x->names, "p"));
    const char *e = kn_format(x->a, "X[%s]", (const char *)kn_map_get(&x->names, "j"));
    const char *order = largest ? ">" : "<";
    if (kn_dtype_is_float(kn_x_operand(x, 0)->type)) {
        kn_x_set(x, "behind", "%s", float_before(x, largest, v, e));
        kn_x_set(x, "better", "%s", float_before(x, largest, e, "best[]"));
        kn_x_set(x, "alike", "(%s == %s || (%s != %s && %s != %s))", v, e, v, v, e, e);
    } else {
        kn_x_set(x, "behind", "%s %s %s", v, order, e);
        kn_x_set(x, "better", "%s %s best[]", e, order);
        kn_x_set(x, "alike", "%s == %s", v, e);
    }
}

/* By selection: each pick is the best that comes behind the last one, where equal values are in the
 * order of their places. */
void kn_expand_top_k(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", -1, rank);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), o = d, p = i, j = i, t = i;
    const char *k = kn_x_index(&x, "k", -1);
    bool largest = kn_x_int(&x, "largest", 1) != 0;
    o.at[axis] = k;
    j.at[axis] = "j";
    t.at[axis] = "t";
    p.at[axis] = "t - 1";
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "j", &j);
    kn_x_let(&x, "t", &t);
    kn_x_let(&x, "p", &p);
    set_loops(&x, &i, &d, axis);
    set_params(&x, &d);
    kn_x_set(&x, "n", "%s", d.at[axis]);
    kn_x_set(&x, "k", "%s", k);
    set_order(&x, largest);
    kn_x_set(&x, "kp", kn_x_has(&x, "k") && strcmp(k, "k") == 0 ? "k: index" : "");
    kn_x_write(
        &x, "(X[$d], $attrs) -> V: typeof(X)[$o], I: i64[$o]: require $k <= $n "
            "loops: func @top_k($params, $kp, in X: typeof(X)[$d] @ddr, out V: typeof(X)[$o] @ddr, "
            "out I: i64[$o] @ddr) { $open "
            "for t in 0:$k { "
            "alloc best: typeof(X)[] @local "
            "alloc at: i64[] @local "
            "at[] = -1:i64 "
            "for j in 0:$n { "
            "if (t == 0 || $behind || ($alike && I[$p] < cast(i64, j))) && "
            "(at[] < 0:i64 || $better) { "
            "best[] = X[$j] at[] = cast(i64, j) } } "
            "V[$t] = best[] I[$t] = at[] } $close}");
}

void kn_expand_nonzero(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank);
    const char *count = kn_x_index(&x, "count", -1);
    bool truth = kn_x_operand(&x, 0)->type == KN_BOOL;
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "i", &i);
    set_loops(&x, &i, &d, -1);
    set_params(&x, &d);
    kn_x_set(&x, "m", "%s", count);
    kn_x_set(&x, "mp", strcmp(count, "count") == 0 ? "count: index" : "");
    kn_x_set(&x, "rank", "%d", rank);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: i64[$rank, $m] "
                   "loops: func @nonzero($params, $mp, in X: typeof(X)[$d] @ddr, out Y: i64[$rank, "
                   "$m] @ddr) { "
                   "alloc at: i64[] @local at[] = 0:i64 $open");
    kn_x_write(&x, truth ? "if X[$i] { " : "if X[$i] != cast(typeof(X), 0) { ");
    for (int k = 0; k < rank; k++)
        kn_putf(out, "Y[%d, cast(index, at[])] = cast(i64, x%d) ", k, k);
    kn_x_write(&x, "at[] += 1:i64 } $close}");
}
