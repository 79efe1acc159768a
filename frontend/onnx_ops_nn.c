/* ONNX's convolutions, pools and normalisations. */
#include "frontend/onnx_ops_internal.h"

/* ---- windows ---- */

typedef struct {
    int d; /* spatial dimensions */
    int64_t kernel[KN_MAX_RANK], strides[KN_MAX_RANK], dilations[KN_MAX_RANK];
    int64_t before[KN_MAX_RANK], after[KN_MAX_RANK];
} windows;

static void fill(const kn_onnx_node *n, const char *name, int64_t *out, int count,
                 int64_t otherwise)
{
    int given;
    const int64_t *v = kn_onnx_ints(n, name, &given);
    if (v && given != count)
        kn_onnx_invalid(n, "%s has %d elements, expected %d", name, given, count);
    for (int k = 0; k < count; k++)
        out[k] = v ? v[k] : otherwise;
}

/* What is added and multiplied here must not overflow. */
static void check_small(const kn_onnx_node *n, int64_t v)
{
    if (v > 1 << 24 || v < -(1 << 24))
        kn_onnx_invalid(n, "%lld in the description of a window", (long long)v);
}

/* SAME: as many windows as strides fit; the odd element of padding goes behind (UPPER) or before.
 */
static void pad_same(const kn_onnx_node *n, const kn_value *x, windows *w, bool upper)
{
    for (int k = 0; k < w->d; k++) {
        int64_t span = (w->kernel[k] - 1) * w->dilations[k] + 1, total = span - 1, in;
        if (kn_index_const(x->shape[k + 2], &in) && in < 1 << 30)
            total = ((in + w->strides[k] - 1) / w->strides[k] - 1) * w->strides[k] + span - in;
        else if (w->strides[k] != 1)
            kn_onnx_unsupported(n, "auto_pad of a symbolic dimension with a stride above 1");
        total = total > 0 ? total : 0;
        w->before[k] = upper ? total / 2 : total - total / 2;
        w->after[k] = total - w->before[k];
    }
}

/* `weights`: the kernel's shape, where the attribute does not say it. */
static windows read_windows(const kn_onnx_node *n, const kn_value *x, const kn_value *weights)
{
    windows w = {.d = x->rank - 2};
    int64_t pads[2 * KN_MAX_RANK];
    if (w.d < 1)
        kn_onnx_invalid(n, "the input has rank %d, expected at least 3", x->rank);
    for (int k = 0; weights && k < w.d; k++)
        if (weights->rank != x->rank || !kn_index_const(weights->shape[k + 2], &w.kernel[k]))
            kn_onnx_unsupported(n, "a kernel of symbolic shape, or of another rank than the input");
    if (!weights)
        fill(n, "kernel_shape", w.kernel, w.d, 1);
    fill(n, "strides", w.strides, w.d, 1);
    fill(n, "dilations", w.dilations, w.d, 1);
    fill(n, "pads", pads, 2 * w.d, 0);
    for (int k = 0; k < w.d; k++) {
        if (w.strides[k] < 1 || w.dilations[k] < 1 || w.kernel[k] < 0)
            kn_onnx_invalid(n, "strides, dilations and kernel must be positive");
        check_small(n, w.strides[k]);
        check_small(n, w.dilations[k]);
        check_small(n, w.kernel[k]);
        check_small(n, pads[k]);
        check_small(n, pads[w.d + k]);
        w.before[k] = pads[k];
        w.after[k] = pads[w.d + k];
    }
    const char *mode = kn_onnx_string(n, "auto_pad", "NOTSET");
    if (strncmp(mode, "SAME", 4) == 0)
        pad_same(n, x, &w, strcmp(mode, "SAME_UPPER") == 0);
    return w;
}

/* Appends the attributes of the window; returns their number. */
static int window_attrs(const kn_onnx_node *n, const windows *w, kn_attr *out)
{
    kn_arena *a = n->g->arena;
    out[0] = kn_attr_ints(a, "strides", w->strides, w->d);
    out[1] = kn_attr_ints(a, "dilations", w->dilations, w->d);
    out[2] = kn_attr_ints(a, "before", w->before, w->d);
    out[3] = kn_attr_ints(a, "after", w->after, w->d);
    return 4;
}

/* ---- convolutions ---- */

void kn_onnx_conv(kn_onnx_node *n)
{
    bool quantised = strcmp(n->type, "QLinearConv") == 0,
         integer = strcmp(n->type, "ConvInteger") == 0;
    windows w = read_windows(n, kn_onnx_need(n, 0), kn_onnx_need(n, quantised ? 3 : 1));
    kn_attr attrs[8];
    int count = window_attrs(n, &w, attrs);
    attrs[count++] = kn_attr_int("group", kn_onnx_int(n, "group", 1));
    kn_onnx_emit(n, 0,
                 quantised ? "qlinear_conv"
                 : integer ? "conv_integer"
                           : "conv",
                 n->inputs, n->ninputs, attrs, count);
}

/* With output_shape, the padding is what makes it so; a negative one adds zeros behind. */
static void pad_to_output(const kn_onnx_node *n, const kn_value *x, windows *w,
                          const int64_t *extra, bool upper, const int64_t *output)
{
    for (int k = 0; k < w->d; k++) {
        int64_t in, want, span = (w->kernel[k] - 1) * w->dilations[k] + 1;
        if (!kn_index_const(x->shape[k + 2], &in))
            kn_onnx_unsupported(n, "output_shape or auto_pad of a symbolic dimension");
        check_small(n, in);
        want = output ? output[k] : in * w->strides[k];
        check_small(n, output ? want : 0);
        check_small(n, extra[k]);
        int64_t total = (in - 1) * w->strides[k] + extra[k] + span - want,
                half = total > 0 ? total / 2 : 0;
        w->before[k] = total < 0 ? 0 : upper ? half : total - half;
        w->after[k] = total - w->before[k];
    }
}

void kn_onnx_conv_transpose(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    windows w = read_windows(n, x, kn_onnx_need(n, 1));
    int64_t extra[KN_MAX_RANK];
    int count;
    fill(n, "output_padding", extra, w.d, 0);
    const int64_t *output = kn_onnx_ints(n, "output_shape", &count);
    if (output && count == x->rank)
        output += 2;
    else if (output && count != w.d)
        kn_onnx_invalid(n, "output_shape has %d elements, expected %d", count, w.d);
    const char *mode = kn_onnx_string(n, "auto_pad", "NOTSET");
    if (output || strncmp(mode, "SAME", 4) == 0)
        pad_to_output(n, x, &w, extra, strcmp(mode, "SAME_UPPER") == 0, output);
    kn_attr attrs[8];
    count = window_attrs(n, &w, attrs);
    attrs[count++] = kn_attr_int("group", kn_onnx_int(n, "group", 1));
    attrs[count++] = kn_attr_ints(n->g->arena, "output_padding", extra, w.d);
    kn_onnx_emit(n, 0, "conv_transpose", n->inputs, n->ninputs, attrs, count);
}

/* ---- pools ---- */

static int pool_attrs(const kn_onnx_node *n, const kn_value *x, kn_attr *out)
{
    windows w = read_windows(n, x, NULL);
    int count = window_attrs(n, &w, out);
    out[count++] = kn_attr_ints(n->g->arena, "kernel", w.kernel, w.d);
    out[count++] = kn_attr_int("ceil", kn_onnx_int(n, "ceil_mode", 0));
    return count;
}

void kn_onnx_average_pool(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    kn_attr attrs[8];
    int count = pool_attrs(n, x, attrs);
    attrs[count++] = kn_attr_int("include_padding", kn_onnx_int(n, "count_include_pad", 0));
    kn_onnx_emit(n, 0, "average_pool", VALUES(x), attrs, count);
}

void kn_onnx_lp_pool(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    kn_attr attrs[8];
    int count = pool_attrs(n, x, attrs);
    attrs[count++] = kn_attr_int("p", kn_onnx_int(n, "p", 2));
    kn_onnx_emit(n, 0, "lp_pool", VALUES(x), attrs, count);
}

void kn_onnx_max_pool(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    bool places = kn_onnx_wants(n, 1);
    kn_attr attrs[8];
    int count = pool_attrs(n, x, attrs);
    attrs[count++] = kn_attr_int("indices", places);
    attrs[count++] = kn_attr_int("columns_first", kn_onnx_int(n, "storage_order", 0));
    kn_onnx_emit_all(n, places ? 2 : 1, "max_pool", VALUES(x), attrs, count);
}

/* The shape that a pool of these windows had. */
static void unpooled_shape(const kn_onnx_node *n, const kn_value *x, const windows *w,
                           const kn_expr **shape)
{
    kn_arena *a = n->g->arena;
    for (int k = 0; k < x->rank; k++)
        shape[k] = x->shape[k];
    for (int k = 0; k < w->d; k++) {
        const kn_expr *steps = kn_index_sub(a, x->shape[k + 2], kn_index(a, 1));
        shape[k + 2] = kn_index_add(a, kn_index_mul(a, steps, kn_index(a, w->strides[k])),
                                    kn_index(a, w->kernel[k] - w->before[k] - w->after[k]));
    }
}

/* The values go to their places in a flat tensor of zeros; more zeros follow where the output is to
 * be larger. */
void kn_onnx_max_unpool(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *places = kn_onnx_need(n, 1);
    kn_arena *a = n->g->arena;
    windows w = read_windows(n, x, NULL);
    const kn_expr *shape[KN_MAX_RANK], *before[KN_MAX_RANK], *after[KN_MAX_RANK];
    int rank = x->rank, given;
    unpooled_shape(n, x, &w, shape);
    const kn_expr *total = kn_index_product(a, shape, rank),
                  *all = kn_index_product(a, x->shape, rank);
    kn_value *zeros = kn_onnx_expand(n, INNER, kn_onnx_scalar(n, x->type, 0), &total, 1);
    kn_value *to = kn_onnx_reshape(n, INNER, places, &all, 1),
             *from = kn_onnx_reshape(n, INNER, x, &all, 1);
    kn_value *flat = kn_onnx_emit(n, INNER, "scatter_elements", VALUES(zeros, to, from), NO_ATTRS);
    bool larger = kn_onnx_in(n, 2) != NULL;
    kn_value *y = kn_onnx_reshape(n, larger ? INNER : 0, flat, shape, rank);
    if (!larger)
        return;
    const kn_expr *const *out = kn_onnx_content(n, 2, 0, KN_SIZE_DEFAULT_MAX, &given);
    if (given != rank)
        kn_onnx_invalid(n, "output_shape has %d elements, expected %d", given, rank);
    for (int k = 0; k < rank; k++) {
        before[k] = kn_index(a, 0);
        after[k] = kn_index_sub(a, out[k], shape[k]);
    }
    kn_onnx_emit(
        n, 0, "pad", VALUES(y),
        ATTRS(kn_attr_indexes("before", before, rank), kn_attr_indexes("after", after, rank)));
}

/* Over all dimensions behind the channels. */
void kn_onnx_global_pool(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int64_t axes[KN_MAX_RANK], p = kn_onnx_int(n, "p", 2);
    for (int k = 2; k < x->rank; k++)
        axes[k - 2] = k;
    bool lp = strcmp(n->type, "GlobalLpPool") == 0;
    if (lp && p != 1 && p != 2)
        kn_onnx_unsupported(n, "p is %lld, expected 1 or 2", (long long)p);
    kn_onnx_reduce(n, 0,
                   lp                                      ? p == 1 ? "reduce_l1" : "reduce_l2"
                   : strcmp(n->type, "GlobalMaxPool") == 0 ? "reduce_max"
                                                           : "reduce_mean",
                   x, axes, x->rank > 2 ? x->rank - 2 : 0, true);
}

/* ---- normalisations ---- */

static kn_attr epsilon(const kn_onnx_node *n, double otherwise)
{
    return kn_attr_float("epsilon", kn_onnx_float(n, "epsilon", otherwise));
}

/* old * momentum + now * (1 - momentum) */
static void emit_running(kn_onnx_node *n, int k, kn_value *old, kn_value *now, double momentum)
{
    kn_value *kept = kn_onnx_binary(n, INNER, "mul", old, kn_onnx_scalar(n, old->type, momentum));
    now = kn_onnx_cast(n, INNER, now, old->type);
    kn_onnx_binary(
        n, k, "add", kept,
        kn_onnx_binary(n, INNER, "mul", now, kn_onnx_scalar(n, old->type, 1 - momentum)));
}

/* In training mode the statistics are those of the batch, and the running ones are updated. */
void kn_onnx_batch_norm(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *mean = kn_onnx_need(n, 3), *variance = kn_onnx_need(n, 4);
    if (kn_onnx_int(n, "training_mode", 0)) {
        int64_t axes[KN_MAX_RANK];
        int count = 0;
        for (int k = 0; k < x->rank; k++)
            if (k != 1)
                axes[count++] = k;
        kn_value *d = kn_onnx_binary(n, INNER, "sub", x,
                                     kn_onnx_reduce(n, INNER, "reduce_mean", x, axes, count, true));
        kn_value *m = kn_onnx_reduce(n, INNER, "reduce_mean", x, axes, count, false);
        kn_value *v = kn_onnx_reduce(n, INNER, "reduce_mean", kn_onnx_binary(n, INNER, "mul", d, d),
                                     axes, count, false);
        double momentum = kn_onnx_float(n, "momentum", 0.9);
        if (kn_onnx_wants(n, 1))
            emit_running(n, 1, mean, m, momentum);
        if (kn_onnx_wants(n, 2))
            emit_running(n, 2, variance, v, momentum);
        mean = m;
        variance = v;
    }
    kn_onnx_emit(n, 0, "batch_norm",
                 VALUES(x, kn_onnx_need(n, 1), kn_onnx_need(n, 2), mean, variance),
                 ATTRS(epsilon(n, 1e-5)));
}

void kn_onnx_group_norm(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "group_norm",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_need(n, 2)),
                 ATTRS(kn_attr_int("groups", kn_onnx_int(n, "num_groups", 1)), epsilon(n, 1e-5)));
}

/* The mean and the inverse deviation, outputs 1 and 2 where they are wanted. */
static void emit_statistics(kn_onnx_node *n, kn_value *x, int64_t from)
{
    int64_t axes[KN_MAX_RANK];
    int count = 0;
    for (int64_t k = from; k < x->rank; k++)
        axes[count++] = k;
    x = kn_onnx_cast(n, INNER, x, x->type == KN_F64 ? KN_F64 : KN_F32);
    kn_value *mean = kn_onnx_reduce(n, 1, "reduce_mean", x, axes, count, true);
    if (!kn_onnx_wants(n, 2))
        return;
    kn_value *d = kn_onnx_binary(n, INNER, "sub", x, mean);
    kn_value *variance = kn_onnx_reduce(n, INNER, "reduce_mean",
                                        kn_onnx_binary(n, INNER, "mul", d, d), axes, count, true);
    kn_value *shifted = kn_onnx_binary(
        n, INNER, "add", variance, kn_onnx_scalar(n, x->type, kn_onnx_float(n, "epsilon", 1e-5)));
    kn_onnx_unary(n, 2, "rsqrt", shifted);
}

void kn_onnx_norm(kn_onnx_node *n, const char *op, kn_value *x, kn_value *bias,
                  const kn_attr *attrs, int nattrs)
{
    kn_value *scale = kn_onnx_need(n, 1);
    if (kn_dtype_bits(scale->type) > kn_dtype_bits(x->type))
        x = kn_onnx_cast(n, INNER, x, scale->type);
    bool same = x->type == scale->type;
    kn_value *const operands[] = {x, scale, bias};
    kn_value *y = kn_onnx_emit(n, same ? 0 : INNER, op, operands, bias ? 3 : 2, attrs, nattrs);
    if (!same)
        kn_onnx_cast(n, 0, y, scale->type);
}

void kn_onnx_layer_norm(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int64_t axis = kn_onnx_axis(n, kn_onnx_int(n, "axis", -1), x->rank);
    kn_onnx_norm(n, "layer_norm", x, kn_onnx_in(n, 2),
                 ATTRS(kn_attr_int("axis", axis), epsilon(n, 1e-5)));
    if (kn_onnx_wants(n, 1) || kn_onnx_wants(n, 2))
        emit_statistics(n, x, axis);
}

void kn_onnx_rms_norm(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "rms_norm", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1)),
                 ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", -1)), epsilon(n, 1e-5)));
}

void kn_onnx_lp_norm(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "lp_norm", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", -1)),
                       kn_attr_int("p", kn_onnx_int(n, "p", 2))));
}

void kn_onnx_lrn(kn_onnx_node *n)
{
    const kn_attr attrs[] = {kn_attr_int("size", kn_onnx_int(n, "size", 1)),
                             kn_attr_float("alpha", kn_onnx_float(n, "alpha", 1e-4)),
                             kn_attr_float("beta", kn_onnx_float(n, "beta", 0.75)),
                             kn_attr_float("bias", kn_onnx_float(n, "bias", 1))};
    kn_onnx_emit(n, 0, "lrn", VALUES(kn_onnx_need(n, 0)), attrs, 4);
}

/* (x - mean) / (deviation + 1e-9) over the axes: the function that ONNX gives. */
void kn_onnx_mean_variance_norm(kn_onnx_node *n)
{
    static const int64_t standard[] = {0, 2, 3};
    int count;
    kn_value *x = kn_onnx_need(n, 0);
    const int64_t *axes = kn_onnx_ints(n, "axes", &count);
    if (!axes) {
        axes = standard;
        count = 3;
    }
    kn_value *d = kn_onnx_binary(n, INNER, "sub", x,
                                 kn_onnx_reduce(n, INNER, "reduce_mean", x, axes, count, true));
    kn_value *variance = kn_onnx_reduce(n, INNER, "reduce_mean",
                                        kn_onnx_binary(n, INNER, "mul", d, d), axes, count, true);
    kn_value *deviation = kn_onnx_unary(n, INNER, "sqrt", variance);
    kn_onnx_binary(n, 0, "div", d,
                   kn_onnx_binary(n, INNER, "add", deviation, kn_onnx_scalar(n, x->type, 1e-9)));
}
