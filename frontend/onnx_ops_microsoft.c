/* The operators of com.microsoft that exported and optimised transformers carry (ONNX Runtime's
   ContribOperators.md): fused activations and normalisations here, attention in
   onnx_ops_microsoft_attention.c. */
#include "frontend/onnx_ops_internal.h"

/* ---- activations ---- */

/* BiasGelu, FastGelu: the bias is that of the last dimension, and may be left out. */
void kn_onnx_bias_gelu(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *bias = kn_onnx_in(n, 1);
    if (bias)
        x = kn_onnx_binary(n, INNER, "add", x, bias);
    kn_onnx_unary(n, 0, strcmp(n->type, "FastGelu") == 0 ? "gelu_tanh" : "gelu", x);
}

void kn_onnx_quick_gelu(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "swish", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_float("alpha", kn_onnx_float(n, "alpha", 1.702))));
}

void kn_onnx_gemm_fast_gelu(kn_onnx_node *n)
{
    kn_value *y = kn_onnx_binary(n, INNER, "matmul", kn_onnx_need(n, 0), kn_onnx_need(n, 1));
    if (kn_onnx_in(n, 2))
        y = kn_onnx_binary(n, INNER, "add", y, kn_onnx_in(n, 2));
    kn_onnx_unary(n, 0, "gelu_tanh", y);
}

/* ---- products ---- */

void kn_onnx_fused_matmul(kn_onnx_node *n)
{
    kn_value *a = kn_onnx_need(n, 0), *b = kn_onnx_need(n, 1);
    double alpha = kn_onnx_float(n, "alpha", 1);
    if (kn_onnx_int(n, "transBatchA", 0) || kn_onnx_int(n, "transBatchB", 0))
        kn_onnx_unsupported(n, "transBatchA, transBatchB");
    kn_value *y = kn_onnx_emit(n, alpha == 1 ? 0 : INNER, "matmul", VALUES(a, b),
                               ATTRS(kn_attr_int("trans_a", kn_onnx_int(n, "transA", 0)),
                                     kn_attr_int("trans_b", kn_onnx_int(n, "transB", 0))));
    if (alpha != 1)
        kn_onnx_binary(n, 0, "mul", y, kn_onnx_scalar(n, y->type, alpha));
}

/* Weights of a few bits in blocks along K, a scale and perhaps a zero point a block. */
void kn_onnx_matmul_nbits(kn_onnx_node *n)
{
    if (kn_onnx_in(n, 4))
        kn_onnx_unsupported(n, "g_idx");
    const kn_attr attrs[] = {kn_attr_int("bits", kn_onnx_int(n, "bits", 4)),
                             kn_attr_int("block", kn_onnx_int(n, "block_size", 32)),
                             kn_attr_int("k", kn_onnx_int(n, "K", 0)),
                             kn_attr_int("n", kn_onnx_int(n, "N", 0))};
    kn_value *bias = kn_onnx_in(n, 5);
    kn_value *y = kn_onnx_emit(
        n, bias ? INNER : 0, "matmul_nbits",
        VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_need(n, 2), kn_onnx_in(n, 3)), attrs,
        4);
    if (bias)
        kn_onnx_binary(n, 0, "add", y, bias);
}

/* ---- normalisations ---- */

/* Output k is one over the deviation, or over the root mean square, along the last axis. */
static void emit_inverse_deviation(kn_onnx_node *n, int k, kn_value *x, double epsilon)
{
    static const int64_t last[] = {-1};
    kn_value *mean = kn_onnx_reduce(n, INNER, "reduce_mean", kn_onnx_binary(n, INNER, "mul", x, x),
                                    last, 1, true);
    kn_onnx_unary(n, k, "rsqrt",
                  kn_onnx_binary(n, INNER, "add", mean, kn_onnx_scalar(n, x->type, epsilon)));
}

/* Also in ONNX's own domain, where exporters put it. */
void kn_onnx_simplified_layer_norm(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    double epsilon = kn_onnx_float(n, "epsilon", 1e-5);
    kn_onnx_norm(
        n, "rms_norm", x, NULL,
        ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", -1)), kn_attr_float("epsilon", epsilon)));
    if (kn_onnx_wants(n, 1))
        emit_inverse_deviation(n, 1, x, epsilon);
}

/* The sum of input, skip and bias, output 3, is normalised. */
void kn_onnx_skip_layer_norm(kn_onnx_node *n)
{
    static const int64_t last[] = {-1};
    bool simple = strcmp(n->type, "SkipSimplifiedLayerNormalization") == 0;
    double epsilon = kn_onnx_float(n, "epsilon", simple ? 1e-6 : 1e-12);
    kn_value *beta = simple ? NULL : kn_onnx_in(n, 3), *bias = kn_onnx_in(n, simple ? 3 : 4);
    kn_value *sum =
        kn_onnx_binary(n, bias ? INNER : 3, "add", kn_onnx_need(n, 0), kn_onnx_need(n, 1));
    if (bias)
        sum = kn_onnx_binary(n, 3, "add", sum, bias);
    kn_onnx_emit(n, 0, simple ? "rms_norm" : "layer_norm", VALUES(sum, kn_onnx_need(n, 2), beta),
                 ATTRS(kn_attr_float("epsilon", epsilon)));
    kn_value *mean = !simple && kn_onnx_wants(n, 1)
                         ? kn_onnx_reduce(n, 1, "reduce_mean", sum, last, 1, true)
                         : NULL;
    if (kn_onnx_wants(n, 2))
        emit_inverse_deviation(n, 2, mean ? kn_onnx_binary(n, INNER, "sub", sum, mean) : sum,
                               epsilon);
}

static kn_value *lookup(kn_onnx_node *n, kn_value *table, kn_value *ids)
{
    return kn_onnx_emit(n, INNER, "gather", VALUES(table, ids), ATTRS(kn_attr_int("axis", 0)));
}

/* Word, position and segment embeddings, summed and normalised; output 1 counts the mask. */
void kn_onnx_embed_layer_norm(kn_onnx_node *n)
{
    static const int64_t last[] = {-1};
    kn_value *ids = kn_onnx_need(n, 0), *segments = kn_onnx_in(n, 1), *mask = kn_onnx_in(n, 7),
             *places = kn_onnx_in(n, 8);
    kn_value *position = kn_onnx_need(n, 3), *sum = lookup(n, kn_onnx_need(n, 2), ids);
    position = places
                   ? lookup(n, position, places)
                   : kn_onnx_slice(n, INNER, position, 0, kn_index(n->g->arena, 0), ids->shape[1]);
    bool more = segments && kn_onnx_in(n, 4);
    sum = kn_onnx_binary(n, more ? INNER : 2, "add", sum, position);
    if (more)
        sum = kn_onnx_binary(n, 2, "add", sum, lookup(n, kn_onnx_in(n, 4), segments));
    kn_onnx_emit(n, 0, "layer_norm", VALUES(sum, kn_onnx_need(n, 5), kn_onnx_need(n, 6)),
                 ATTRS(kn_attr_float("epsilon", kn_onnx_float(n, "epsilon", 1e-12))));
    if (!kn_onnx_wants(n, 1))
        return;
    if (mask)
        kn_onnx_reduce(n, 1, "reduce_sum", kn_onnx_cast(n, INNER, mask, KN_I32), last, 1, false);
    else
        kn_onnx_expand(n, 1, kn_onnx_scalar(n, KN_I32, 0), ids->shape, 1);
}

/* ---- quantisation ---- */

/* X in u8 by its own range, times weights in 8 bits, scaled back. */
void kn_onnx_dynamic_quantize_matmul(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *bias = kn_onnx_in(n, 4);
    const kn_node *q = kn_graph_node(n->g, &(kn_node_spec){.op = "dynamic_quantize_linear",
                                                           .name = n->name,
                                                           .inputs = &x,
                                                           .ninputs = 1,
                                                           .loc = n->loc});
    kn_value *y = kn_onnx_emit(
        n, INNER, "matmul_integer",
        VALUES(q->outputs[0], kn_onnx_need(n, 1), q->outputs[2], kn_onnx_in(n, 3)), NO_ATTRS);
    kn_value *scale = kn_onnx_binary(n, INNER, "mul", q->outputs[1], kn_onnx_need(n, 2));
    y = kn_onnx_binary(n, bias ? INNER : 0, "mul", kn_onnx_cast(n, INNER, y, KN_F32), scale);
    if (bias)
        kn_onnx_binary(n, 0, "add", y, bias);
}

/* (A - a_zero)(B - b_zero) a_scale b_scale + bias */
void kn_onnx_matmul_integer_to_float(kn_onnx_node *n)
{
    kn_value *bias = kn_onnx_in(n, 6);
    kn_value *y = kn_onnx_emit(
        n, INNER, "matmul_integer",
        VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 4), kn_onnx_in(n, 5)),
        NO_ATTRS);
    kn_value *scale = kn_onnx_binary(n, INNER, "mul", kn_onnx_need(n, 2), kn_onnx_need(n, 3));
    y = kn_onnx_binary(n, bias ? INNER : 0, "mul", kn_onnx_cast(n, INNER, y, KN_F32), scale);
    if (bias)
        kn_onnx_binary(n, 0, "add", y, bias);
}
