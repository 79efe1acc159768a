/* ONNX's recurrences: LSTM, GRU, RNN, linear attention, and what keeps a state beside them. */
#include "frontend/onnx_ops_internal.h"

/* ---- LSTM, GRU, RNN ---- */

/* The activations that have parameters, with ONNX's defaults. */
static const struct {
    const char *name;
    bool alpha, beta;
    double a, b;
} parametric[] = {{"Affine", true, true, 1, 0},           {"LeakyRelu", true, false, 0.01, 0},
                  {"ThresholdedRelu", true, false, 1, 0}, {"ScaledTanh", true, true, 1, 1},
                  {"HardSigmoid", true, true, 0.2, 0.5},  {"Elu", true, false, 1, 0}};

enum { MAX_ACTIVATIONS = 6 };

static double next_float(const kn_onnx_attr *at, int *used, double otherwise)
{
    return at && at->kind == KN_OA_FLOATS && *used < at->n ? at->floats[(*used)++] : otherwise;
}

/* Appends {activations, alpha, beta}: the lists of parameters go to the activations that take one,
 * in order. */
static int activation_attrs(const kn_onnx_node *n, kn_attr *out)
{
    const kn_onnx_attr *names = kn_onnx_get(n, "activations");
    const kn_onnx_attr *alphas = kn_onnx_get(n, "activation_alpha"),
                       *betas = kn_onnx_get(n, "activation_beta");
    if (!names || names->kind != KN_OA_STRINGS || names->n == 0)
        return 0;
    if (names->n > MAX_ACTIVATIONS)
        kn_onnx_invalid(n, "%d activations", names->n);
    double *a = KN_ARRAY(n->g->arena, double, MAX_ACTIVATIONS),
           *b = KN_ARRAY(n->g->arena, double, MAX_ACTIVATIONS);
    int na = 0, nb = 0;
    kn_str list = kn_str_make(n->g->arena);
    for (int k = 0; k < names->n; k++) {
        kn_putf(&list, "%s%s", k ? "," : "", names->strings[k]);
        for (size_t p = 0; p < sizeof parametric / sizeof *parametric; p++) {
            if (strcmp(parametric[p].name, names->strings[k]) != 0)
                continue;
            a[k] = parametric[p].alpha ? next_float(alphas, &na, parametric[p].a) : 0;
            b[k] = parametric[p].beta ? next_float(betas, &nb, parametric[p].b) : 0;
        }
    }
    out[0] = kn_attr_string("activations", kn_str_get(&list));
    out[1] = kn_attr_floats("alpha", a, names->n);
    out[2] = kn_attr_floats("beta", b, names->n);
    return 3;
}

static kn_value *swap_first(kn_onnx_node *n, int k, kn_value *x)
{
    static const int64_t perm[] = {1, 0, 2};
    return x ? kn_onnx_transpose(n, k, x, perm) : NULL;
}

/* With layout 1 the batch comes first. */
void kn_onnx_recurrent(kn_onnx_node *n)
{
    static const int64_t batch_first[] = {2, 0, 1, 3};
    bool lstm = strcmp(n->type, "LSTM") == 0, gru = strcmp(n->type, "GRU") == 0,
         swap = kn_onnx_int(n, "layout", 0) != 0;
    int results = lstm ? 3 : 2, count = 0;
    kn_value *inputs[8];
    for (int k = 0; k < 8; k++)
        inputs[k] = kn_onnx_in(n, k);
    for (int k = 0; swap && k < 7; k++)
        if (k == 0 || k > 4)
            inputs[k] = swap_first(n, INNER, inputs[k]);
    kn_attr attrs[8];
    attrs[count++] = kn_attr_string("direction", kn_onnx_string(n, "direction", "forward"));
    attrs[count++] = kn_attr_float("clip", kn_onnx_float(n, "clip", 0));
    if (lstm)
        attrs[count++] = kn_attr_int("input_forget", kn_onnx_int(n, "input_forget", 0));
    if (gru)
        attrs[count++] =
            kn_attr_int("linear_before_reset", kn_onnx_int(n, "linear_before_reset", 0));
    count += activation_attrs(n, attrs + count);
    const char *op = lstm ? "lstm" : gru ? "gru" : "rnn";
    if (!swap) {
        kn_onnx_emit_all(n, results, op, inputs, lstm ? 8 : 6, attrs, count);
        return;
    }
    const kn_node *node = kn_graph_node(n->g, &(kn_node_spec){.op = op,
                                                              .name = n->name,
                                                              .inputs = inputs,
                                                              .ninputs = lstm ? 8 : 6,
                                                              .attrs = attrs,
                                                              .nattrs = count,
                                                              .loc = n->loc});
    if (kn_onnx_wants(n, 0))
        kn_onnx_transpose(n, 0, node->outputs[0], batch_first);
    for (int k = 1; k < results; k++)
        if (kn_onnx_wants(n, k))
            swap_first(n, k, node->outputs[k]);
}

/* ---- linear attention ---- */

/* [n, t, heads * d] -> [n, t, heads, d] */
static kn_value *in_heads(kn_onnx_node *n, kn_value *x, int64_t heads)
{
    kn_arena *a = n->g->arena;
    if (x->rank != 3)
        kn_onnx_invalid(n, "an operand of rank %d, expected 3", x->rank);
    const kn_expr *shape[] = {x->shape[0], x->shape[1], kn_index(a, heads),
                              kn_index_div(a, x->shape[2], kn_index(a, heads))};
    return kn_onnx_reshape(n, INNER, x, shape, 4);
}

void kn_onnx_linear_attention(kn_onnx_node *n)
{
    int64_t heads = kn_onnx_int(n, "q_num_heads", 0), shared = kn_onnx_int(n, "kv_num_heads", 0);
    kn_value *decay = kn_onnx_in(n, 4);
    if (heads < 1 || shared < 1)
        kn_onnx_invalid(n, "q_num_heads and kv_num_heads are required");
    kn_value *q = in_heads(n, kn_onnx_need(n, 0), heads),
             *k = in_heads(n, kn_onnx_need(n, 1), shared);
    kn_value *v = in_heads(n, kn_onnx_need(n, 2), shared);
    kn_value *const inputs[] = {
        q, k, v, kn_onnx_in(n, 3), decay ? in_heads(n, decay, shared) : NULL, kn_onnx_in(n, 5)};
    const kn_attr scale = kn_attr_float("scale", kn_onnx_float(n, "scale", 0));
    const char *names[] = {NULL, kn_onnx_wants(n, 1) ? n->outputs[1] : NULL};
    const kn_node *node = kn_graph_node(n->g, &(kn_node_spec){.op = "linear_attention",
                                                              .name = n->name,
                                                              .inputs = inputs,
                                                              .ninputs = 6,
                                                              .attrs = &scale,
                                                              .nattrs = 1,
                                                              .outputs = names,
                                                              .noutputs = 2,
                                                              .loc = n->loc});
    kn_value *y = node->outputs[0];
    const kn_expr *shape[] = {y->shape[0], y->shape[1],
                              kn_index_mul(n->g->arena, y->shape[2], y->shape[3])};
    kn_onnx_reshape(n, 0, y, shape, 3);
    kn_onnx_return(n, 1, node->outputs[1]);
}

/* ---- a convolution over the past, a cache ---- */

/* The last k - 1 inputs come as a state and go out as one. */
void kn_onnx_causal_conv(kn_onnx_node *n)
{
    kn_arena *a = n->g->arena;
    kn_value *x = kn_onnx_need(n, 0), *w = kn_onnx_need(n, 1), *past = kn_onnx_in(n, 3);
    const char *activation = kn_onnx_string(n, "activation", "none");
    bool swish = strcmp(activation, "none") != 0;
    int64_t k, channels;
    if (w->rank != 3 || !kn_index_const(w->shape[2], &k) || !kn_index_const(w->shape[0], &channels))
        kn_onnx_unsupported(n, "weights must have the constant shape [channels, 1, k]");
    const kn_expr *kept = kn_index(a, k - 1), *state[] = {x->shape[0], x->shape[1], kept};
    if (!past)
        past = kn_onnx_expand(n, INNER, kn_onnx_scalar(n, x->type, 0), state, 3);
    kn_value *all =
        kn_onnx_emit(n, INNER, "concat", VALUES(past, x), ATTRS(kn_attr_int("axis", 2)));
    kn_value *y = kn_onnx_emit(n, swish ? INNER : 0, "conv", VALUES(all, w, kn_onnx_in(n, 2)),
                               ATTRS(kn_attr_int("group", channels)));
    if (swish)
        kn_onnx_unary(n, 0, "swish", y);
    if (kn_onnx_wants(n, 1))
        kn_onnx_slice(n, 1, all, 2, x->shape[2], kept);
}

void kn_onnx_tensor_scatter(kn_onnx_node *n)
{
    bool circular = strcmp(kn_onnx_string(n, "mode", "linear"), "circular") == 0;
    kn_onnx_emit(
        n, 0, "tensor_scatter", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2)),
        ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", -2)), kn_attr_int("circular", circular)));
}

void kn_onnx_reverse_sequence(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "reverse_sequence", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1)),
                 ATTRS(kn_attr_int("time_axis", kn_onnx_int(n, "time_axis", 0)),
                       kn_attr_int("batch_axis", kn_onnx_int(n, "batch_axis", 1))));
}
