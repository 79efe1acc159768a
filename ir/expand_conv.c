/* Expansions of convolutions. X[n, c, ...], W[o, c, ...]; with groups, the channels of a group are
   found by dividing o, so that channel counts must be constants. A place outside X is 0 (or the
   zero point), which is the padding. */
#include "ir/expand_window.h"

/* ---- windows ---- */

static const char *place(kn_x *x, int k, const struct window_axis *w)
{
    kn_str s = kn_str_make(x->a);
    kn_putf(&s, w->stride == 1 ? "x%d" : "x%d * %lld", k, (long long)w->stride);
    kn_putf(&s, w->dilation == 1 ? " + r%d" : " + r%d * %lld", k, (long long)w->dilation);
    if (w->before)
        kn_putf(&s, " - %lld", (long long)w->before);
    return kn_str_get(&s);
}

/* Rounded up, the last window must still begin inside the operand or its padding before. */
static const char *result_size(kn_x *x, int k, const struct window_axis *w, bool up)
{
    const char *span = kn_format(x->a, "d%d + %lld - ((%s - 1) * %lld + 1)", k,
                                 (long long)(w->before + w->after), w->k, (long long)w->dilation);
    long long s = (long long)w->stride;
    if (!up)
        return kn_format(x->a, "(%s) / %lld + 1", span, s);
    return kn_format(x->a, "min((%s + %lld) / %lld + 1, (d%d + %lld) / %lld)", span, s - 1, s, k,
                     (long long)w->before + s - 1, s);
}

static struct window_axis read_axis(kn_x *x, int k, const char *kernel, int weights)
{
    struct window_axis w = {.stride = kn_x_int_at(x, "strides", k, 1),
                            .dilation = kn_x_int_at(x, "dilations", k, 1),
                            .before = kn_x_int_at(x, "before", k, 0),
                            .after = kn_x_int_at(x, "after", k, 0)};
    int64_t small = 1 << 24;
    if (w.stride < 1 || w.dilation < 1 || w.before < -small || w.after < -small ||
        w.stride > small || w.dilation > small || w.before > small || w.after > small)
        kn_x_fail(x, "strides, dilations or padding of axis %d are out of range", k);
    w.k = kernel ? kn_x_index(x, kernel, k)
                 : kn_x_dim_text(x, weights, k + 2, kn_format(x->a, "k%d", k));
    w.at = place(x, k, &w);
    return w;
}

static void set_ranges(kn_x *x, const window *w)
{
    kn_str ri = kn_str_make(x->a), rr = kn_str_make(x->a);
    for (int k = 0; k < w->d; k++) {
        kn_putf(&ri, "%sx%d in 0:%s", k ? ", " : "", k, w->axis[k].out);
        kn_putf(&rr, "%sr%d in 0:%s", k ? ", " : "", k, w->axis[k].k);
    }
    kn_x_set(x, "ri", "%s", kn_str_get(&ri));
    kn_x_set(x, "rr", "%s", kn_str_get(&rr));
}

window kn_x_window(kn_x *x, const char *kernel, int weights)
{
    window w = {.d = kn_x_rank(x, 0) - 2};
    if (w.d < 1)
        kn_x_fail(x, "the operand has rank %d, expected at least 3", kn_x_rank(x, 0));
    bool up = kn_x_int(x, "ceil", 0) != 0;
    kn_subs at = {0}, o = {0};
    for (int k = 0; k < w.d; k++) {
        struct window_axis *axis = &w.axis[k];
        *axis = read_axis(x, k, kernel, weights);
        axis->out = result_size(x, k, axis, up);
        w.padded |= axis->before > 0 || axis->after > 0 || up;
        kn_x_push(x, &at, axis->at);
        kn_x_push(x, &o, axis->out);
    }
    kn_subs d = kn_x_subs(x, "d", w.d), k = kn_x_subs(x, "k", w.d), i = kn_x_subs(x, "x", w.d),
            r = kn_x_subs(x, "r", w.d);
    kn_x_let(x, "d", &d);
    kn_x_let(x, "k", &k);
    kn_x_let(x, "i", &i);
    kn_x_let(x, "r", &r);
    kn_x_let(x, "at", &at);
    kn_x_let(x, "o", &o);
    set_ranges(x, &w);
    return w;
}

const char *kn_x_inside(kn_x *x, const window *w)
{
    kn_str s = kn_str_make(x->a);
    for (int k = 0; k < w->d; k++)
        kn_putf(&s, "%s0 <= %s && %s < d%d", k ? " && " : "", w->axis[k].at, w->axis[k].at, k);
    return kn_str_get(&s);
}

/* ---- channels ---- */

/* $xc, $wc: the channel subscripts of X and W = operand `weights`; $C, $M: channel sizes of X and
 * W[o, ...]. */
static void set_channels(kn_x *x, int weights)
{
    int64_t group = kn_x_int(x, "group", 1);
    kn_x_set(x, "M", "%s", group == 1 ? "C" : "M");
    kn_x_set(x, "xc", "c");
    if (group == 1)
        return;
    int64_t c = kn_x_dim_const(x, 0, 1), o = kn_x_dim_const(x, weights, 0),
            m = kn_x_dim_const(x, weights, 1);
    if (group < 1 || o % group != 0 || c != m * group)
        kn_x_fail(x, "%lld input and %lld output channels do not fit %lld groups of %lld",
                  (long long)c, (long long)o, (long long)group, (long long)m);
    kn_x_set(x, "xc", "o / %lld * %lld + c", (long long)(o / group), (long long)m);
}

void kn_expand_conv(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, NULL, 1);
    bool bias = kn_x_operand(&x, 2) != NULL;
    set_channels(&x, 1);
    kn_x_write(&x, "(X[N, C, $d], W[O, $M, $k]");
    kn_x_write(&x, bias ? ", B[O]) -> Y: typeof(X)[N, O, $o]: S[n, o, $i] +=! "
                        : ") -> Y: typeof(X)[N, O, $o]: Y[n, o, $i] +=! ");
    kn_x_write(&x, w.padded ? "(X[n, $xc, $at] else 0)" : "X[n, $xc, $at]");
    kn_x_write(&x, " * W[o, c, $r]");
    kn_x_write(&x, bias ? " where $ri; Y[n, o, $i] = S[n, o, $i] + B[o]" : "");
}

/* A zero point or scale of one element or one a channel o: NAME_d and NAME_i. */
static void set_channel_parameter(kn_x *x, const char *name, int k)
{
    if (kn_x_rank(x, k) == 1 && kn_x_dim(x, k, 0) != 1) {
        kn_x_set(x, kn_format(x->a, "%s_d", name), "O");
        kn_x_set(x, kn_format(x->a, "%s_i", name), "o");
    } else
        kn_x_single(x, name, k);
}

/* The exact sum of products in i32 over operands X, W with their zero points, where they are there.
 */
static void write_integer_sum(kn_x *x, const window *w, const char *target, bool zx, bool zw)
{
    kn_x_write(x, target);
    kn_x_write(x, "[n, o, $i] +=! ");
    kn_x_write(x, zx ? "(cast(i32, X[n, $xc, $at]" : "cast(i32, X[n, $xc, $at]");
    if (w->padded)
        kn_x_write(x, zx ? " else ZX[$zx_i]" : " else 0");
    kn_x_write(x, zx ? ") - cast(i32, ZX[$zx_i])) * " : ") * ");
    kn_x_write(x,
               zw ? "(cast(i32, W[o, c, $r]) - cast(i32, ZW[$zw_i]))" : "cast(i32, W[o, c, $r])");
    kn_x_write(x, " where $ri");
}

void kn_expand_conv_integer(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, NULL, 1);
    bool zx = kn_x_operand(&x, 2) != NULL, zw = kn_x_operand(&x, 3) != NULL;
    set_channels(&x, 1);
    if (zx)
        kn_x_single(&x, "zx", 2);
    if (zw)
        set_channel_parameter(&x, "zw", 3);
    kn_x_write(&x, "(X[N, C, $d], W[O, $M, $k]");
    kn_x_write(&x, zx ? ", ZX[$zx_d]" : "");
    kn_x_write(&x, zw ? ", ZW[$zw_d]" : "");
    kn_x_write(&x, ") -> Y: i32[N, O, $o]: ");
    write_integer_sum(&x, &w, "Y", zx, zw);
}

void kn_expand_qlinear_conv(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, NULL, 3);
    bool bias = kn_x_operand(&x, 8) != NULL;
    set_channels(&x, 3);
    kn_x_single(&x, "xs", 1);
    kn_x_single(&x, "zx", 2);
    set_channel_parameter(&x, "ws", 4);
    set_channel_parameter(&x, "zw", 5);
    kn_x_single(&x, "ys", 6);
    kn_x_single(&x, "yz", 7);
    kn_x_write(&x, "(X[N, C, $d], XS[$xs_d], ZX[$zx_d], W[O, $M, $k], WS[$ws_d], ZW[$zw_d], "
                   "YS[$ys_d], YZ[$yz_d]");
    kn_x_write(&x,
               bias ? ", B[O]) -> Y: typeof(YZ)[N, O, $o]: " : ") -> Y: typeof(YZ)[N, O, $o]: ");
    write_integer_sum(&x, &w, "S", true, true);
    kn_x_write(&x, "; Y[n, o, $i] = sat(typeof(YZ), round(cast(f32, ");
    kn_x_write(&x, bias ? "S[n, o, $i] + B[o]" : "S[n, o, $i]");
    kn_x_write(&x, ") * (XS[$xs_i] * WS[$ws_i] / YS[$ys_i])) + cast(f32, YZ[$yz_i]))");
}

/* ---- transposed ---- */

/* $at: the element of X that window element r sends to place i; it exists where $fits holds. Sets
 * $o as well. */
static bool set_transposed(kn_x *x, window *w)
{
    kn_subs at = {0}, o = {0};
    kn_str fits = kn_str_make(x->a);
    for (int k = 0; k < w->d; k++) {
        struct window_axis *axis = &w->axis[k];
        long long s = (long long)axis->stride, dil = (long long)axis->dilation;
        int64_t extra = kn_x_int_at(x, "output_padding", k, 0);
        if (extra < 0 || extra > 1 << 24)
            kn_x_fail(x, "output_padding of axis %d is out of range", k);
        const char *from =
            kn_format(x->a, "x%d + %lld - r%d * %lld", k, (long long)axis->before, k, dil);
        axis->out = kn_format(x->a, "(d%d - 1) * %lld + (%s - 1) * %lld + %lld", k, s, axis->k, dil,
                              1 + (long long)(extra - axis->before - axis->after));
        kn_x_push(x, &at, s == 1 ? from : kn_format(x->a, "(%s) / %lld", from, s));
        kn_x_push(x, &o, axis->out);
        if (s != 1)
            kn_putf(&fits, "%s(%s) %% %lld == 0", fits.n ? ", " : "", from, s);
    }
    kn_x_let(x, "at", &at);
    kn_x_let(x, "o", &o);
    kn_x_set(x, "fits", "%s", kn_str_get(&fits));
    set_ranges(x, w);
    return fits.n > 0;
}

/* W[c, o / group, ...]: $wc, $wo its channel subscripts, $O the result's channels, $rc the range of
 * c. */
static void set_transposed_channels(kn_x *x)
{
    int64_t group = kn_x_int(x, "group", 1);
    kn_x_set(x, "xc", "c");
    kn_x_set(x, "wo", "o");
    kn_x_set(x, "O", "O");
    kn_x_set(x, "rc", "c in 0:C");
    if (group == 1)
        return;
    int64_t c = kn_x_dim_const(x, 0, 1), o = kn_x_dim_const(x, 1, 1);
    if (group < 1 || c % group != 0 || o == 0)
        kn_x_fail(x, "%lld input channels do not fit %lld groups", (long long)c, (long long)group);
    kn_x_set(x, "xc", "o / %lld * %lld + c", (long long)o, (long long)(c / group));
    kn_x_set(x, "wo", "o %% %lld", (long long)o);
    kn_x_set(x, "O", "O * %lld", (long long)group);
    kn_x_set(x, "rc", "c in 0:%lld", (long long)(c / group));
}

void kn_expand_conv_transpose(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, NULL, 1);
    bool bias = kn_x_operand(&x, 2) != NULL;
    bool strided = set_transposed(&x, &w);
    set_transposed_channels(&x);
    kn_x_write(&x, "(X[N, C, $d], W[C, O, $k]");
    kn_x_write(&x,
               bias ? ", B[$O]) -> Y: typeof(X)[N, $O, $o]: S" : ") -> Y: typeof(X)[N, $O, $o]: Y");
    kn_x_write(
        &x, "[n, o, $i] +=! (X[n, $xc, $at] else 0) * W[$xc, $wo, $r] where $rc, o in 0:$O, $ri");
    kn_x_write(&x, strided ? ", $fits" : "");
    kn_x_write(&x, bias ? "; Y[n, o, $i] = S[n, o, $i] + B[o]" : "");
}

/* ---- columns back to an image ---- */

/* Sums the columns [n, c * window, places] at the places they came from: element r of the window at
   place l is pixel l * stride + r * dilation - before. */
void kn_expand_col2im(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int d = kn_x_count(&x, "image");
    int64_t area = 1;
    kn_subs o = {0}, i = kn_x_subs(&x, "x", d);
    kn_str ranges = kn_str_make(x.a), fits = kn_str_make(x.a);
    const char *row = "c", *column = "0";
    for (int k = 0; k < d; k++) {
        long long s = (long long)kn_x_int_at(&x, "strides", k, 1),
                  dil = (long long)kn_x_int_at(&x, "dilations", k, 1);
        long long before = (long long)kn_x_int_at(&x, "before", k, 0),
                  after = (long long)kn_x_int_at(&x, "after", k, 0);
        long long size = (long long)kn_x_int_at(&x, "kernel", k, 1);
        long long large = 1 << 24;
        if (s < 1 || dil < 1 || size < 1 || s > large || dil > large || size > 1 << 12 ||
            before < -large || before > large || after < -large || after > large || k > 3)
            kn_x_fail(&x, "kernel, strides, dilations or padding of axis %d are out of range", k);
        const char *m = kn_x_index(&x, "image", k);
        const char *from = kn_format(x.a, "x%d + %lld - r%d * %lld", k, before, k, dil);
        const char *count =
            kn_format(x.a, "((%s + %lld) / %lld + 1)", m, before + after - (size - 1) * dil - 1, s);
        kn_x_push(&x, &o, m);
        area *= size;
        row = kn_format(x.a, "(%s) * %lld + r%d", row, size, k);
        column = kn_format(x.a, "(%s) * %s + (%s) / %lld", column, count, from, s);
        kn_putf(&ranges, ", x%d in 0:%s, r%d in 0:%lld", k, m, k, size);
        kn_putf(&fits, ", (%s) %% %lld == 0, %s >= 0, (%s) / %lld < %s", from, s, from, from, s,
                count);
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "i", &i);
    kn_x_set(&x, "row", "%s", row);
    kn_x_set(&x, "column", "%s", column);
    kn_x_set(&x, "area", "%lld", (long long)area);
    kn_x_write(&x, "(X[N, C, L], $attrs) -> Y: typeof(X)[N, C / $area, $o]: "
                   "Y[n, c, $i] +=! X[n, $row, $column] where c in 0:C / $area");
    kn_putf(out, "%s%s", kn_str_get(&ranges), kn_str_get(&fits));
}
