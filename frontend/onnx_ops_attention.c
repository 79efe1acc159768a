/* ONNX's attention, rotary embedding and quantisation. */
#include <math.h>

#include "frontend/onnx_ops_internal.h"

/* A mask whose last dimension is shorter than the keys hides those behind. */
static kn_value *extend_mask(kn_onnx_node *n, kn_value *mask, const kn_expr *keys)
{
    kn_arena *a = n->g->arena;
    const kn_expr *before[KN_MAX_RANK], *after[KN_MAX_RANK];
    if (!mask || mask->rank == 0 || kn_expr_equal(mask->shape[mask->rank - 1], keys) ||
        kn_index_is(mask->shape[mask->rank - 1], 1))
        return mask;
    for (int k = 0; k < mask->rank; k++)
        before[k] = after[k] = kn_index(a, 0);
    const kn_expr *missing = kn_index_sub(a, keys, mask->shape[mask->rank - 1]);
    if (kn_onnx_range(n, missing).lo < 0)
        return mask;
    after[mask->rank - 1] = missing;
    kn_value *hidden = kn_onnx_scalar(n, mask->type, mask->type == KN_BOOL ? 0 : -(double)INFINITY);
    return kn_onnx_emit(n, INNER, "pad", VALUES(mask, hidden),
                        ATTRS(kn_attr_indexes("before", before, mask->rank),
                              kn_attr_indexes("after", after, mask->rank)));
}

static int attention_attrs(const kn_onnx_node *n, const kn_value *past, int scores, kn_attr *out)
{
    int count = 0;
    if (kn_onnx_get(n, "scale"))
        out[count++] = kn_attr_float("scale", kn_onnx_float(n, "scale", 1));
    out[count++] = kn_attr_float("softcap", kn_onnx_float(n, "softcap", 0));
    out[count++] = kn_attr_int("causal", kn_onnx_int(n, "is_causal", 0));
    out[count++] = kn_attr_int("left", kn_onnx_int(n, "left_window_size", -1));
    out[count++] = kn_attr_int("right", kn_onnx_int(n, "right_window_size", -1));
    out[count++] = kn_attr_int("scores", scores);
    if (past)
        out[count++] = kn_attr_index("offset", past->shape[2]);
    return count;
}

void kn_onnx_attention(kn_onnx_node *n)
{
    int64_t heads = kn_onnx_int(n, "q_num_heads", 0), shared = kn_onnx_int(n, "kv_num_heads", 0);
    kn_value *past = kn_onnx_in(n, 4);
    bool flat = kn_onnx_need(n, 0)->rank == 3, scores = kn_onnx_wants(n, 3);
    kn_value *q = kn_onnx_split_heads(n, kn_onnx_need(n, 0), heads);
    kn_value *k = kn_onnx_join_past(n, 1, past, kn_onnx_split_heads(n, kn_onnx_need(n, 1), shared));
    kn_value *v = kn_onnx_join_past(n, 2, kn_onnx_in(n, 5),
                                    kn_onnx_split_heads(n, kn_onnx_need(n, 2), shared));
    kn_value *mask = extend_mask(n, kn_onnx_in(n, 3), k->shape[2]);
    kn_attr attrs[8];
    int count = attention_attrs(
        n, past, scores ? (int)kn_onnx_int(n, "qk_matmul_output_mode", 0) : -1, attrs);
    kn_value *const inputs[] = {q, k, v, mask, kn_onnx_in(n, 6)};
    const char *names[] = {!flat && kn_onnx_wants(n, 0) ? n->outputs[0] : NULL,
                           scores ? n->outputs[3] : NULL};
    const kn_node *node = kn_graph_node(n->g, &(kn_node_spec){.op = "attention",
                                                              .name = n->name,
                                                              .inputs = inputs,
                                                              .ninputs = 5,
                                                              .attrs = attrs,
                                                              .nattrs = count,
                                                              .outputs = names,
                                                              .noutputs = scores ? 2 : 1,
                                                              .loc = n->loc});
    if (flat)
        kn_onnx_merge_heads(n, 0, node->outputs[0]);
    else
        kn_onnx_return(n, 0, node->outputs[0]);
    if (scores)
        kn_onnx_return(n, 3, node->outputs[1]);
}

/* 3-D inputs are [n, t, heads * d]. */
void kn_onnx_rotary(kn_onnx_node *n)
{
    kn_arena *a = n->g->arena;
    kn_value *x = kn_onnx_need(n, 0), *flat = x->rank == 3 ? x : NULL;
    int64_t heads = kn_onnx_int(n, "num_heads", 0), dim = kn_onnx_int(n, "rotary_embedding_dim", 0);
    if (flat && heads < 1)
        kn_onnx_invalid(n, "num_heads is missing for an input of rank 3");
    if (flat) {
        const kn_expr *shape[] = {x->shape[0], x->shape[1], kn_index(a, heads),
                                  kn_index_div(a, x->shape[2], kn_index(a, heads))};
        x = kn_onnx_reshape(n, INNER, x, shape, 4);
    }
    kn_attr attrs[] = {kn_attr_int("interleaved", kn_onnx_int(n, "interleaved", 0)),
                       kn_attr_int("sequence_first", flat != NULL), kn_attr_int("dim", dim)};
    kn_value *y = kn_onnx_emit(n, flat ? INNER : 0, "rotary_embedding",
                               VALUES(x, kn_onnx_need(n, 1), kn_onnx_need(n, 2), kn_onnx_in(n, 3)),
                               attrs, dim ? 3 : 2);
    if (flat)
        kn_onnx_reshape(n, 0, y, flat->shape, 3);
}

/* ---- quantisation ---- */

static int scale_attrs(const kn_onnx_node *n, kn_attr *out)
{
    const kn_onnx_attr *to = kn_onnx_get(n, "output_dtype");
    int count = 0;
    out[count++] = kn_attr_int("axis", kn_onnx_int(n, "axis", 1));
    out[count++] = kn_attr_int("block", kn_onnx_int(n, "block_size", 0));
    if (to && to->i)
        out[count++] = kn_attr_type("to", kn_onnx_dtype(n, to->i));
    return count;
}

void kn_onnx_quantize_linear(kn_onnx_node *n)
{
    kn_attr attrs[4];
    int count = scale_attrs(n, attrs);
    if (kn_onnx_in(n, 2) && count == 3)
        count = 2; /* the zero point says the type */
    kn_onnx_emit(n, 0, "quantize_linear",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2)), attrs, count);
}

void kn_onnx_dequantize_linear(kn_onnx_node *n)
{
    kn_attr attrs[4];
    int count = scale_attrs(n, attrs);
    kn_onnx_emit(n, 0, "dequantize_linear",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2)), attrs, count);
}

void kn_onnx_dynamic_quantize_linear(kn_onnx_node *n)
{
    kn_onnx_emit_all(n, 3, "dynamic_quantize_linear", VALUES(kn_onnx_need(n, 0)), NO_ATTRS);
}
