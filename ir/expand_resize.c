/* Expansion of resize: axis by axis, each a small table of places and weights and then a weighted
   sum over the taps. Place and weight formulas are those of ONNX's reference (op_resize.py), in
   f64. */
#include <math.h>

#include "ir/expand_internal.h"

typedef struct {
    const char *mode, *coordinates, *nearest;
    double cubic, extrapolation;
    bool exclude, antialias;
} resize;

/* One axis: $k its number, $n and $m its sizes before and after, $s the scale, $f the first tap,
 * $taps their number. */
static void set_axis(kn_x *x, const resize *r, int k)
{
    const kn_attr *scales = kn_node_attr(x->node, "scales");
    const char *n = kn_x_dim_text(x, 0, k, kn_format(x->a, "d%d", k)),
               *m = kn_x_index(x, "sizes", k);
    int64_t from = kn_x_dim(x, 0, k), to;
    double scale = 0;
    if (scales && scales->kind == KN_A_FLOATS && k < scales->n)
        scale = scales->floats[k];
    else if (from > 0 && kn_index_const(kn_node_attr(x->node, "sizes")->indexes[k], &to))
        scale = (double)to / (double)from;
    kn_x_set(x, "k", "%d", k);
    kn_x_set(x, "n", "%s", n);
    kn_x_set(x, "m", "%s", m);
    kn_x_set(x, "s", "%s",
             scale > 0 ? kn_x_float(x, scale)
                       : kn_format(x->a, "(cast(f64, %s) / cast(f64, %s))", m, n));
    bool cubic = strcmp(r->mode, "cubic") == 0;
    double first = cubic ? -1 : 0;
    if (r->antialias && !(scale > 1e-3))
        kn_x_fail(x, "antialias needs a constant scale above 0.001, axis %d has %g", k, scale);
    if (r->antialias && scale < 1)
        first = floor((cubic ? -2 : -1) / scale) + 1;
    kn_x_set(x, "a", "%s", kn_x_float(x, r->antialias && scale < 1 ? scale : 1));
    kn_x_set(x, "f", "%d", (int)first);
    kn_x_set(x, "taps", "%d", (int)(2 - 2 * first));
}

static double roi_at(const kn_x *x, int k, double otherwise)
{
    const kn_attr *roi = kn_node_attr(x->node, "roi");
    return roi && roi->kind == KN_A_FLOATS && k < roi->n ? roi->floats[k] : otherwise;
}

/* Writes P$k[i], the place in the operand that output i stands for. */
static void write_places(kn_x *x, const resize *r, int k)
{
    static const struct {
        const char *name, *text;
    } table[] = {
        {"half_pixel", "(cast(f64, i) + 0.5) / $s - 0.5"},
        {"half_pixel_symmetric", "cast(f64, $n) / 2 * (1 - cast(f64, $m) / ($s * cast(f64, $n))) + "
                                 "(cast(f64, i) + 0.5) / $s - 0.5"},
        {"pytorch_half_pixel",
         "select($s * cast(f64, $n) == 1, -0.5, (cast(f64, i) + 0.5) / $s - 0.5)"},
        {"align_corners", "select($s * cast(f64, $n) == 1, 0, cast(f64, i) * cast(f64, $n - 1) / "
                          "($s * cast(f64, $n) - 1))"},
        {"tf_half_pixel_for_nn", "(cast(f64, i) + 0.5) / $s"},
        {"asymmetric", "cast(f64, i) / $s"},
        {"tf_crop_and_resize",
         "$r0 * cast(f64, $n - 1) + select($s * cast(f64, $n) == 1, ($r1 - $r0) * cast(f64, $n - "
         "1) / 2, "
         "cast(f64, i) * ($r1 - $r0) * cast(f64, $n - 1) / ($s * cast(f64, $n) - 1))"},
    };
    size_t t = 0, count = sizeof table / sizeof *table;
    while (t < count && strcmp(table[t].name, r->coordinates) != 0)
        t++;
    if (t == count)
        kn_x_fail(x, "unknown coordinates `%s`", r->coordinates);
    int rank = kn_x_rank(x, 0);
    kn_x_set(x, "r0", "cast(f64, %s)", kn_x_float(x, roi_at(x, k, 0)));
    kn_x_set(x, "r1", "cast(f64, %s)", kn_x_float(x, roi_at(x, rank + k, 1)));
    kn_x_write(x, "P$k[i] = ");
    kn_x_write(x, table[t].text);
    kn_x_write(x, " where i in 0:$m; ");
}

static const char *nearest(kn_x *x, const char *mode)
{
    if (strcmp(mode, "round_prefer_floor") == 0)
        return "ceil(P$k[i] - 0.5)";
    if (strcmp(mode, "round_prefer_ceil") == 0)
        return "floor(P$k[i] + 0.5)";
    if (strcmp(mode, "floor") == 0)
        return "floor(P$k[i])";
    if (strcmp(mode, "ceil") != 0)
        kn_x_fail(x, "unknown nearest mode `%s`", mode);
    return "ceil(P$k[i])";
}

/* The weight of a tap at distance v = |tap - place|: the triangle, or Keys' cubic of 1981 with
 * parameter $c. */
static void write_weights(kn_x *x, const resize *r)
{
    bool normal = r->exclude || r->antialias;
    kn_x_set(x, "c", "%s", kn_x_float(x, r->cubic));
    kn_x_write(x, "V$k[i, r] = abs(cast(f64, r + ($f)) - (P$k[i] - floor(P$k[i]))) * $a where i in "
                  "0:$m, r in 0:$taps; "
                  "A$k[i, r] = ");
    if (strcmp(r->mode, "linear") == 0)
        kn_x_write(x, "max(0, 1 - V$k[i, r]); ");
    else
        kn_x_write(
            x,
            "select(V$k[i, r] <= 1, (($c + 2) * V$k[i, r] - ($c + 3)) * V$k[i, r] * V$k[i, r] + 1, "
            "select(V$k[i, r] < 2, (($c * V$k[i, r] - 5 * $c) * V$k[i, r] + 8 * $c) * V$k[i, r] - "
            "4 * $c, 0)); ");
    kn_x_write(x, r->exclude
                      ? "E$k[i, r] = select(floor(P$k[i]) + cast(f64, r + ($f)) >= 0 && "
                        "floor(P$k[i]) + cast(f64, r + ($f)) < cast(f64, $n), A$k[i, r], 0); "
                      : "E$k[i, r] = A$k[i, r]; ");
    kn_x_write(
        x, normal ? "Z$k[i] +=! E$k[i, r]; W$k[i, r] = E$k[i, r] / select(Z$k[i] == 0, 1, Z$k[i]); "
                  : "W$k[i, r] = E$k[i, r]; ");
}

/* Writes T$k, tensor `from` resized along axis k. */
static void write_axis(kn_x *x, const resize *r, const char *from, int k)
{
    kn_subs i = kn_x_subs(x, "x", kn_x_rank(x, 0)), s = i;
    bool near = strcmp(r->mode, "nearest") == 0;
    set_axis(x, r, k);
    write_places(x, r, k);
    s.at[k] = near ? kn_format(x->a, "J%d[x%d]", k, k) : kn_format(x->a, "J%d[x%d, r]", k, k);
    kn_x_let(x, "i", &i);
    kn_x_let(x, "at", &s);
    kn_x_set(x, "from", "%s", from);
    if (near) {
        kn_x_write(x, "J$k[i] = cast(i64, min(max(");
        kn_x_write(x, nearest(x, r->nearest));
        kn_x_write(x, ", 0), cast(f64, $n - 1))); T$k[$i] = $from[$at]; ");
    } else {
        write_weights(x, r);
        kn_x_write(x, "J$k[i, r] = cast(i64, min(max(floor(P$k[i]) + cast(f64, r + ($f)), 0), "
                      "cast(f64, $n - 1)))"
                      " where r in 0:$taps; "
                      "S$k[$i] +=! cast($t, $from[$at]) * cast($t, W$k[x$k, r]); ");
        bool crop = strcmp(r->coordinates, "tf_crop_and_resize") == 0;
        kn_x_write(x, crop ? "T$k[$i] = select(P$k[x$k] < 0 || P$k[x$k] > cast(f64, $n - 1), "
                             "$outside, S$k[$i]); "
                           : "T$k[$i] = S$k[$i]; ");
    }
}

static bool is_resized(kn_x *x, int k)
{
    const kn_attr *sizes = kn_node_attr(x->node, "sizes"),
                  *scales = kn_node_attr(x->node, "scales");
    bool same = kn_expr_equal(sizes->indexes[k], x->node->inputs[0]->shape[k]);
    bool scaled = scales && scales->kind == KN_A_FLOATS && k < scales->n && scales->floats[k] != 1;
    return !same || scaled || roi_at(x, k, 0) != 0 || roi_at(x, kn_x_rank(x, 0) + k, 1) != 1;
}

static resize read_resize(kn_x *x)
{
    resize r = {.mode = kn_x_string(x, "mode", "nearest"),
                .coordinates = kn_x_string(x, "coordinates", "half_pixel"),
                .nearest = kn_x_string(x, "nearest", "round_prefer_floor"),
                .cubic = kn_node_float(x->node, "cubic", -0.75),
                .extrapolation = kn_node_float(x->node, "extrapolation", 0),
                .exclude = kn_x_int(x, "exclude_outside", 0) != 0,
                .antialias = kn_x_int(x, "antialias", 0) != 0};
    bool known = strcmp(r.mode, "nearest") == 0 || strcmp(r.mode, "linear") == 0 ||
                 strcmp(r.mode, "cubic") == 0;
    if (!known)
        kn_x_fail(x, "unknown mode `%s`, expected nearest, linear or cubic", r.mode);
    if (kn_x_count(x, "sizes") != kn_x_rank(x, 0))
        kn_x_fail(x, "sizes must have one element a dimension, here %d", kn_x_rank(x, 0));
    kn_node_attr(x->node, "scales");
    kn_node_attr(x->node, "roi");
    return r;
}

void kn_expand_resize(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    resize r = read_resize(&x);
    int rank = kn_x_dims(&x, "d", 0, "d");
    bool real = kn_dtype_is_float(kn_x_operand(&x, 0)->type), near = strcmp(r.mode, "nearest") == 0;
    kn_x_set(&x, "t", real ? "acctype(X)" : "f32");
    kn_x_set(&x, "outside", "%s", kn_x_float(&x, r.extrapolation));
    const char *from = "X";
    kn_str body = kn_str_make(x.a);
    kn_subs o = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank);
    x.out = &body;
    for (int k = 0; k < rank; k++) {
        if (!is_resized(&x, k))
            continue;
        o.at[k] = kn_x_index(&x, "sizes", k);
        write_axis(&x, &r, from, k);
        from = kn_format(x.a, "T%d", k);
    }
    x.out = out;
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "i", &i);
    kn_x_set(&x, "from", "%s", from);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: ");
    kn_put(out, kn_str_get(&body));
    bool whole = near || strcmp(from, "X") == 0;
    kn_x_write(&x, whole  ? "Y[$i] = $from[$i]"
                   : real ? "Y[$i] = cast(typeof(X), $from[$i])"
                          : "Y[$i] = sat(typeof(X), round($from[$i]))");
}
