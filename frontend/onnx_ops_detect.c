/* ONNX's operators for detectors, and FlexAttention without its subgraphs. */
#include "frontend/onnx_ops_internal.h"

static kn_arena *arena(const kn_onnx_node *n)
{
    return n->g->arena;
}

/* The list of an attribute, or `otherwise` for each of `count` elements. */
static kn_attr list_attr(const kn_onnx_node *n, const char *name, const char *op_name, int from,
                         int count, int64_t otherwise)
{
    int given;
    const int64_t *v = kn_onnx_ints(n, name, &given);
    int64_t *out = KN_ARRAY(arena(n), int64_t, count);
    if (v && given < from + count)
        kn_onnx_invalid(n, "%s has %d elements, expected more", name, given);
    for (int k = 0; k < count; k++)
        out[k] = v ? v[from + k] : otherwise;
    return kn_attr_ints(arena(n), op_name, out, count);
}

/* strides, dilations, before, after of d dimensions. */
static int window_attrs(const kn_onnx_node *n, int d, kn_attr *out)
{
    out[0] = list_attr(n, "strides", "strides", 0, d, 1);
    out[1] = list_attr(n, "dilations", "dilations", 0, d, 1);
    out[2] = list_attr(n, "pads", "before", 0, d, 0);
    out[3] = list_attr(n, "pads", "after", d, d, 0);
    return 4;
}

void kn_onnx_col2im(kn_onnx_node *n)
{
    int d, dk;
    const kn_expr *const *image = kn_onnx_content(n, 1, 0, KN_SIZE_DEFAULT_MAX, &d);
    const int64_t *kernel = kn_onnx_const_ints(n, 2, &dk);
    if (d != dk)
        kn_onnx_invalid(n, "an image of %d dimensions and blocks of %d", d, dk);
    kn_attr attrs[8];
    int count = window_attrs(n, d, attrs);
    attrs[count++] = kn_attr_indexes("image", image, d);
    attrs[count++] = kn_attr_ints(arena(n), "kernel", kernel, d);
    kn_onnx_emit(n, 0, "col2im", VALUES(kn_onnx_need(n, 0)), attrs, count);
}

void kn_onnx_deform_conv(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    if (x->rank != 4)
        kn_onnx_unsupported(n, "an input of rank %d", x->rank);
    kn_attr attrs[8];
    int count = window_attrs(n, 2, attrs);
    attrs[count++] = kn_attr_int("group", kn_onnx_int(n, "group", 1));
    attrs[count++] = kn_attr_int("offset_group", kn_onnx_int(n, "offset_group", 1));
    kn_value *const inputs[] = {x, kn_onnx_need(n, 1), kn_onnx_need(n, 2), kn_onnx_in(n, 3),
                                kn_onnx_in(n, 4)};
    kn_onnx_emit(n, 0, "deform_conv", inputs, 5, attrs, count);
}

/* Before opset 16 places are not shifted by half a pixel. */
void kn_onnx_roi_align(kn_onnx_node *n)
{
    bool half =
        n->opset >= 16 && strcmp(kn_onnx_string(n, "coordinate_transformation_mode", "half_pixel"),
                                 "half_pixel") == 0;
    bool most = strcmp(kn_onnx_string(n, "mode", "avg"), "max") == 0;
    int64_t samples = kn_onnx_int(n, "sampling_ratio", 0);
    if (samples < 1)
        kn_onnx_unsupported(n, "a sampling_ratio that depends on the regions");
    const kn_attr attrs[] = {kn_attr_int("height", kn_onnx_int(n, "output_height", 1)),
                             kn_attr_int("width", kn_onnx_int(n, "output_width", 1)),
                             kn_attr_int("samples", samples),
                             kn_attr_float("scale", kn_onnx_float(n, "spatial_scale", 1)),
                             kn_attr_int("half_pixel", half),
                             kn_attr_string("mode", most ? "max" : "average")};
    kn_onnx_emit(n, 0, "roi_align",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_need(n, 2)), attrs, 6);
}

/* How many boxes there are is found first, and read. */
void kn_onnx_non_max_suppression(kn_onnx_node *n)
{
    kn_value *const inputs[] = {kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2),
                                kn_onnx_in(n, 3), kn_onnx_in(n, 4)};
    const kn_attr centre = kn_attr_int("centre", kn_onnx_int(n, "center_point_box", 0));
    int64_t most = kn_onnx_most(n, inputs[1]->shape, inputs[1]->rank);
    kn_value *count = kn_onnx_emit(n, INNER, "count_boxes", inputs, 5, &centre, 1);
    const kn_expr *size = kn_graph_content(n->g, count, 0, most)[0];
    kn_onnx_emit(n, 0, "select_boxes", inputs, 5, ATTRS(centre, kn_attr_index("count", size)));
}

/* Scores may be changed by subgraphs: those are not supported. */
void kn_onnx_flex_attention(kn_onnx_node *n)
{
    if (kn_onnx_get(n, "score_mod") || kn_onnx_get(n, "prob_mod"))
        kn_onnx_unsupported(n, "score_mod or prob_mod, which are graphs");
    const kn_attr scale = kn_attr_float("scale", kn_onnx_float(n, "scale", 1));
    kn_onnx_emit(n, 0, "attention",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_need(n, 2)), &scale,
                 kn_onnx_get(n, "scale") ? 1 : 0);
}
