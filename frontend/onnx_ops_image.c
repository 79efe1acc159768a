/* ONNX's operators on images. */
#include <math.h>

#include "frontend/onnx_ops_internal.h"

/* ---- resize ---- */

/* The elements of a constant of floats; NULL when left out or empty. */
static const double *const_floats(const kn_onnx_node *n, int k, int *count)
{
    kn_value *v = kn_onnx_in(n, k);
    *count = v ? (int)kn_value_count(v) : 0;
    if (*count == 0)
        return NULL;
    if (!v->data || *count < 0)
        kn_onnx_unsupported(n, "input %d (%s) must be constant", k, v->name);
    double *out = KN_ARRAY(n->g->arena, double, *count);
    for (int i = 0; i < *count; i++)
        out[i] = kn_value_element(n->g->arena, v, i)->f;
    return out;
}

typedef struct {
    const kn_expr *sizes[KN_MAX_RANK];
    double scales[KN_MAX_RANK], roi[2 * KN_MAX_RANK];
    int axes[KN_MAX_RANK], naxes;
} target;

/* floor(dim * scale): exact for constants; a symbolic dimension needs a scale that is a whole
 * number or one over one. */
static const kn_expr *scaled(const kn_onnx_node *n, const kn_expr *dim, double scale)
{
    kn_arena *a = n->g->arena;
    int64_t d;
    if (!(scale > 1e-6 && scale < 1e6))
        kn_onnx_unsupported(n, "a scale of %g", scale);
    if (kn_index_const(dim, &d))
        return kn_index(a, (int64_t)floor((double)d * scale));
    if (scale == floor(scale))
        return kn_index_mul(a, dim, kn_index(a, (int64_t)scale));
    if (1 / scale == floor(1 / scale))
        return kn_index_div(a, dim, kn_index(a, (int64_t)(1 / scale)));
    kn_onnx_unsupported(n, "a symbolic dimension scaled by %g", scale);
}

/* One scale for all axes, the least or the greatest that the sizes ask for. */
static void keep_aspect(const kn_onnx_node *n, const kn_value *x, target *t, bool larger)
{
    double best = 0;
    for (int k = 0; k < t->naxes; k++) {
        int64_t from, to;
        if (!kn_index_const(x->shape[t->axes[k]], &from) ||
            !kn_index_const(t->sizes[t->axes[k]], &to) || from == 0)
            kn_onnx_unsupported(n, "keep_aspect_ratio_policy of symbolic sizes");
        double scale = (double)to / (double)from;
        if (k == 0 || (larger ? scale > best : scale < best))
            best = scale;
    }
    if (!(best > 1e-6 && best < 1e6))
        kn_onnx_unsupported(n, "a scale of %g", best);
    for (int k = 0; k < t->naxes; k++) {
        int64_t from = 0;
        kn_index_const(x->shape[t->axes[k]], &from);
        t->scales[t->axes[k]] = best;
        t->sizes[t->axes[k]] = kn_index(n->g->arena, (int64_t)((double)from * best + 0.5));
    }
}

static void read_axes(const kn_onnx_node *n, const kn_value *x, target *t)
{
    const int64_t *axes = kn_onnx_ints(n, "axes", &t->naxes);
    if (!axes)
        t->naxes = x->rank;
    for (int k = 0; k < t->naxes; k++)
        t->axes[k] = kn_onnx_axis(n, axes ? axes[k] : k, x->rank);
    for (int k = 0; k < x->rank; k++) {
        t->sizes[k] = x->shape[k];
        t->scales[k] = t->roi[x->rank + k] = 1;
        t->roi[k] = 0;
    }
}

/* Fills in sizes and scales; returns whether the scales say more than the sizes. */
static bool read_target(const kn_onnx_node *n, const kn_value *x, target *t, int scales_at,
                        int sizes_at)
{
    int nscales, nsizes;
    const double *scales = const_floats(n, scales_at, &nscales);
    const kn_onnx_attr *attr = kn_onnx_get(n, "scales");
    if (!scales && attr && attr->kind == KN_OA_FLOATS) {
        scales = attr->floats;
        nscales = attr->n;
    }
    const kn_expr *const *sizes =
        !scales && kn_onnx_in(n, sizes_at)
            ? kn_onnx_content(n, sizes_at, 1, KN_SIZE_DEFAULT_MAX, &nsizes)
            : NULL;
    if ((!scales && !sizes) || (scales ? nscales : nsizes) != t->naxes)
        kn_onnx_invalid(n, "expected %d scales or sizes", t->naxes);
    for (int k = 0; k < t->naxes; k++) {
        int axis = t->axes[k];
        t->sizes[axis] = sizes ? sizes[k] : scaled(n, x->shape[axis], scales[k]);
        t->scales[axis] = scales ? scales[k] : 1;
    }
    const char *policy = kn_onnx_string(n, "keep_aspect_ratio_policy", "stretch");
    bool keep = sizes && strcmp(policy, "stretch") != 0;
    if (keep)
        keep_aspect(n, x, t, strcmp(policy, "not_smaller") == 0);
    return scales || keep;
}

/* Opset 10 and Upsample have X, scales and asymmetric places. */
void kn_onnx_resize(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    bool old = n->opset < 11 || strcmp(n->type, "Upsample") == 0;
    target t = {0};
    int nroi = 0, count = 0;
    read_axes(n, x, &t);
    bool scaled_by = read_target(n, x, &t, old ? 1 : 2, old ? 99 : 3);
    const double *roi = old ? NULL : const_floats(n, 1, &nroi);
    for (int k = 0; roi && k < t.naxes && nroi == 2 * t.naxes; k++) {
        t.roi[t.axes[k]] = roi[k];
        t.roi[x->rank + t.axes[k]] = roi[t.naxes + k];
    }
    const char *mode = kn_onnx_string(n, "mode", "nearest"),
               *way = kn_onnx_string(n, "coordinate_transformation_mode",
                                     old ? "asymmetric" : "half_pixel");
    kn_attr attrs[12];
    attrs[count++] = kn_attr_indexes("sizes", t.sizes, x->rank);
    attrs[count++] = kn_attr_string("mode", strcmp(mode, "bilinear") == 0 ? "linear" : mode);
    attrs[count++] = kn_attr_string("coordinates", way);
    attrs[count++] = kn_attr_string(
        "nearest", kn_onnx_string(n, "nearest_mode", old ? "floor" : "round_prefer_floor"));
    attrs[count++] = kn_attr_float("cubic", kn_onnx_float(n, "cubic_coeff_a", -0.75));
    attrs[count++] = kn_attr_int("exclude_outside", kn_onnx_int(n, "exclude_outside", 0));
    attrs[count++] = kn_attr_int("antialias", kn_onnx_int(n, "antialias", 0));
    attrs[count++] = kn_attr_float("extrapolation", kn_onnx_float(n, "extrapolation_value", 0));
    if (scaled_by)
        attrs[count++] = kn_attr_floats("scales", t.scales, x->rank);
    if (strcmp(way, "tf_crop_and_resize") == 0)
        attrs[count++] = kn_attr_floats("roi", t.roi, 2 * x->rank);
    kn_onnx_emit(n, 0, "resize", VALUES(x), attrs, count);
}
