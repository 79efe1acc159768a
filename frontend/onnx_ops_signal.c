/* ONNX's operators on signals and grids, and Unique. */
#include "frontend/onnx_ops_internal.h"

static kn_arena *arena(const kn_onnx_node *n)
{
    return n->g->arena;
}

/* ---- windows, Fourier ---- */

void kn_onnx_window(kn_onnx_node *n)
{
    bool hamming = strcmp(n->type, "HammingWindow") == 0,
         blackman = strcmp(n->type, "BlackmanWindow") == 0;
    double a0 = hamming    ? 25.0 / 46
                : blackman ? 0.42
                           : 0.5,
           a1 = hamming ? -21.0 / 46 : -0.5, a2 = blackman ? 0.08 : 0;
    const kn_attr attrs[] = {
        kn_attr_index("size", kn_onnx_content_one(n, 0, 0, KN_SIZE_DEFAULT_MAX)),
        kn_attr_float("a0", a0),
        kn_attr_float("a1", a1),
        kn_attr_float("a2", a2),
        kn_attr_int("periodic", kn_onnx_int(n, "periodic", 1)),
        kn_attr_type("to", kn_onnx_dtype(n, kn_onnx_int(n, "output_datatype", 1)))};
    kn_onnx_emit(n, 0, "cosine_window", NO_VALUES, attrs, 6);
}

static kn_value *emit_dft(kn_onnx_node *n, int k, kn_value *x, int axis, const kn_expr *length,
                          bool inverse, bool onesided)
{
    const kn_attr attrs[] = {kn_attr_int("axis", axis), kn_attr_index("length", length),
                             kn_attr_int("inverse", inverse), kn_attr_int("onesided", onesided)};
    return kn_onnx_emit(n, k, "dft", VALUES(x), attrs, 4);
}

/* From opset 20 the axis is an operand. */
void kn_onnx_dft(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    bool inverse = kn_onnx_int(n, "inverse", 0) != 0, onesided = kn_onnx_int(n, "onesided", 0) != 0;
    int64_t axis = n->opset < 20 ? kn_onnx_int(n, "axis", 1) : -2;
    if (n->opset >= 20 && kn_onnx_in(n, 2))
        axis = kn_onnx_const_one(n, 2);
    int at = kn_onnx_axis(n, axis, x->rank);
    const kn_expr *length = x->shape[at], *one = kn_index(arena(n), 1),
                  *two = kn_index(arena(n), 2);
    if (kn_onnx_in(n, 1))
        length = kn_onnx_content_one(n, 1, 0, KN_SIZE_DEFAULT_MAX);
    else if (inverse && onesided)
        length = kn_index_mul(arena(n), two, kn_index_sub(arena(n), length, one));
    emit_dft(n, 0, x, at, length, inverse, onesided);
}

/* x[b, samples, 1]: frames, times the window, transformed. */
void kn_onnx_stft(kn_onnx_node *n)
{
    kn_arena *a = arena(n);
    kn_value *x = kn_onnx_need(n, 0), *window = kn_onnx_in(n, 2);
    int64_t step = kn_onnx_const_one(n, 1);
    bool real = x->rank == 2 || kn_index_is(x->shape[2], 1);
    if (!real)
        kn_onnx_unsupported(n, "a complex signal");
    if (!window && !kn_onnx_in(n, 3))
        kn_onnx_unsupported(n, "neither a window nor a frame length");
    const kn_expr *length =
        kn_onnx_in(n, 3) ? kn_onnx_content_one(n, 3, 0, KN_SIZE_DEFAULT_MAX) : window->shape[0];
    const kn_expr *flat[] = {x->shape[0], x->shape[1]};
    kn_value *frames =
        kn_onnx_emit(n, INNER, "frames", VALUES(kn_onnx_reshape(n, INNER, x, flat, 2)),
                     ATTRS(kn_attr_index("size", length), kn_attr_int("step", step)));
    if (window)
        frames = kn_onnx_binary(n, INNER, "mul", frames, window);
    const kn_expr *shape[] = {frames->shape[0], frames->shape[1], frames->shape[2], kn_index(a, 1)};
    emit_dft(n, 0, kn_onnx_reshape(n, INNER, frames, shape, 4), 2, length, false,
             kn_onnx_int(n, "onesided", 1) != 0);
}

/* ---- grids ---- */

void kn_onnx_grid_sample(kn_onnx_node *n)
{
    const char *mode = kn_onnx_string(n, "mode", "linear");
    const kn_attr attrs[] = {kn_attr_string("mode", strcmp(mode, "bilinear") == 0  ? "linear"
                                                    : strcmp(mode, "bicubic") == 0 ? "cubic"
                                                                                   : mode),
                             kn_attr_string("outside", kn_onnx_string(n, "padding_mode", "zeros")),
                             kn_attr_int("align_corners", kn_onnx_int(n, "align_corners", 0))};
    kn_onnx_emit(n, 0, "grid_sample", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1)), attrs, 3);
}

/* The size is that of the image [n, c, ...]. */
void kn_onnx_affine_grid(kn_onnx_node *n)
{
    int count;
    const kn_expr *const *size = kn_onnx_content(n, 1, 0, KN_SIZE_DEFAULT_MAX, &count);
    if (count < 3)
        kn_onnx_invalid(n, "size has %d elements, expected 4 or 5", count);
    kn_onnx_emit(n, 0, "affine_grid", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_indexes("size", size + 2, count - 2),
                       kn_attr_int("align_corners", kn_onnx_int(n, "align_corners", 0))));
}

/* Along each axis either cut or padded on both sides, by half of the difference rounded down in
 * front. */
void kn_onnx_center_crop_pad(kn_onnx_node *n)
{
    kn_arena *a = arena(n);
    kn_value *x = kn_onnx_need(n, 0);
    int count, naxes;
    const kn_expr *const *to = kn_onnx_content(n, 1, 0, KN_SIZE_DEFAULT_MAX, &count);
    const int64_t *axes = kn_onnx_ints(n, "axes", &naxes);
    const kn_expr *zero = kn_index(a, 0), *start[KN_MAX_RANK], *size[KN_MAX_RANK],
                  *before[KN_MAX_RANK], *after[KN_MAX_RANK];
    int64_t all[KN_MAX_RANK];
    for (int k = 0; k < x->rank; k++) {
        all[k] = k;
        start[k] = before[k] = after[k] = zero;
        size[k] = x->shape[k];
    }
    for (int k = 0; k < count; k++) {
        int axis = kn_onnx_axis(n, axes ? axes[k] : k, x->rank);
        const kn_expr *extra = kn_onnx_max(n, kn_index_sub(a, size[axis], to[k]), zero);
        const kn_expr *missing = kn_onnx_max(n, kn_index_sub(a, to[k], size[axis]), zero);
        start[axis] = kn_index_div(a, extra, kn_index(a, 2));
        before[axis] = kn_index_div(a, missing, kn_index(a, 2));
        after[axis] = kn_index_sub(a, missing, before[axis]);
        size[axis] = kn_onnx_min(n, size[axis], to[k]);
    }
    kn_value *cut = kn_onnx_emit(n, INNER, "slice", VALUES(x),
                                 ATTRS(kn_attr_ints(a, "axes", all, x->rank),
                                       kn_attr_indexes("starts", start, x->rank),
                                       kn_attr_indexes("sizes", size, x->rank)));
    kn_onnx_emit(n, 0, "pad", VALUES(cut),
                 ATTRS(kn_attr_indexes("before", before, x->rank),
                       kn_attr_indexes("after", after, x->rank)));
}

/* ---- unique ---- */

/* How many there are is read at run time; without an axis, of the flattened tensor. */
void kn_onnx_unique(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int64_t axis = kn_onnx_int(n, "axis", 0);
    if (!kn_onnx_get(n, "axis")) {
        const kn_expr *total = kn_index_product(arena(n), x->shape, x->rank);
        x = kn_onnx_reshape(n, INNER, x, &total, 1);
    }
    int64_t most = kn_onnx_most(n, x->shape + kn_onnx_axis(n, axis, x->rank), 1);
    kn_value *count =
        kn_onnx_emit(n, INNER, "count_unique", VALUES(x), ATTRS(kn_attr_int("axis", axis)));
    const kn_expr *size = kn_graph_content(n->g, count, 0, most)[0];
    const kn_attr attrs[] = {kn_attr_int("axis", axis), kn_attr_index("count", size),
                             kn_attr_int("sorted", kn_onnx_int(n, "sorted", 1))};
    kn_onnx_emit_all(n, 4, "unique", VALUES(x), attrs, 3);
}
