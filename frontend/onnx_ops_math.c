/* ONNX operators of arithmetic: elementwise, products, reductions, losses. */
#include "frontend/onnx_ops_internal.h"

/* ---- elementwise ---- */

void kn_onnx_identity(kn_onnx_node *n)
{
    kn_onnx_return(n, 0, kn_onnx_need(n, 0));
}

void kn_onnx_cast_to(kn_onnx_node *n)
{
    kn_onnx_cast(n, 0, kn_onnx_need(n, 0), kn_onnx_dtype(n, kn_onnx_int(n, "to", 0)));
}

void kn_onnx_cast_like(kn_onnx_node *n)
{
    kn_onnx_cast(n, 0, kn_onnx_need(n, 0), kn_onnx_need(n, 1)->type);
}

void kn_onnx_bitcast(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    kn_dtype to = kn_onnx_dtype(n, kn_onnx_int(n, "to", 0));
    if (to == KN_BOOL || x->type == KN_BOOL) {
        kn_onnx_cast(n, 0, x, to);
        return;
    }
    if (kn_dtype_bits(to) != kn_dtype_bits(x->type))
        kn_onnx_unsupported(n, "from %s to %s, of another width", kn_dtype_name(x->type),
                            kn_dtype_name(to));
    kn_onnx_emit(n, 0, "bitcast", VALUES(x), ATTRS(kn_attr_type("to", to)));
}

void kn_onnx_bitshift(kn_onnx_node *n)
{
    const char *direction = kn_onnx_string(n, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        kn_onnx_invalid(n, "direction is `%s`, expected LEFT or RIGHT", direction);
    kn_onnx_binary(n, 0, left ? "shift_left" : "shift_right", kn_onnx_need(n, 0),
                   kn_onnx_need(n, 1));
}

void kn_onnx_mod(kn_onnx_node *n)
{
    kn_onnx_binary(n, 0, kn_onnx_int(n, "fmod", 0) ? "fmod" : "mod", kn_onnx_need(n, 0),
                   kn_onnx_need(n, 1));
}

void kn_onnx_is_inf(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "is_inf", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("positive", kn_onnx_int(n, "detect_positive", 1)),
                       kn_attr_int("negative", kn_onnx_int(n, "detect_negative", 1))));
}

void kn_onnx_gelu(kn_onnx_node *n)
{
    bool by_tanh = strcmp(kn_onnx_string(n, "approximate", "none"), "tanh") == 0;
    kn_onnx_unary(n, 0, by_tanh ? "gelu_tanh" : "gelu", kn_onnx_need(n, 0));
}

/* Before opset 7 a slope of rank 1 is one a channel. */
void kn_onnx_prelu(kn_onnx_node *n)
{
    kn_arena *a = n->g->arena;
    kn_value *x = kn_onnx_need(n, 0), *slope = kn_onnx_need(n, 1);
    if (n->opset < 7 && slope->rank == 1 && x->rank > 2 && !kn_index_is(slope->shape[0], 1)) {
        const kn_expr *shape[KN_MAX_RANK];
        for (int k = 0; k < x->rank - 1; k++)
            shape[k] = k == 0 ? slope->shape[0] : kn_index(a, 1);
        slope = kn_onnx_reshape(n, INNER, slope, shape, x->rank - 1);
    }
    kn_onnx_binary(n, 0, "prelu", x, slope);
}

/* Before opset 11 the bounds are attributes. */
void kn_onnx_clip(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *low = kn_onnx_in(n, 1), *high = kn_onnx_in(n, 2);
    if (n->opset < 11 && kn_onnx_get(n, "min"))
        low = kn_onnx_scalar(n, x->type, kn_onnx_float(n, "min", 0));
    if (n->opset < 11 && kn_onnx_get(n, "max"))
        high = kn_onnx_scalar(n, x->type, kn_onnx_float(n, "max", 0));
    kn_onnx_emit(n, 0, "clip", VALUES(x, low, high), NO_ATTRS);
}

/* Max, Min, Sum, Mean of any number of operands. */
void kn_onnx_variadic(kn_onnx_node *n)
{
    bool mean = strcmp(n->type, "Mean") == 0;
    const char *op = strcmp(n->type, "Max") == 0   ? "max"
                     : strcmp(n->type, "Min") == 0 ? "min"
                                                   : "add";
    kn_value *sum = kn_onnx_need(n, 0);
    for (int i = 1; i < n->ninputs; i++)
        sum = kn_onnx_binary(n, i == n->ninputs - 1 && !mean ? 0 : INNER, op, sum,
                             kn_onnx_need(n, i));
    if (mean)
        kn_onnx_binary(n, 0, "div", sum, kn_onnx_scalar(n, sum->type, n->ninputs));
    else if (n->ninputs == 1)
        kn_onnx_return(n, 0, sum);
}

/* Only the inference form; the mask, when wanted, keeps everything. */
void kn_onnx_dropout(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *training = kn_onnx_in(n, 2), *ratio = kn_onnx_in(n, 1);
    int64_t on = 0;
    if (training && (!training->content || kn_value_count(training) != 1 ||
                     !kn_index_const(training->content[0], &on)))
        kn_onnx_unsupported(n, "training_mode must be constant");
    const kn_expr *r = on && ratio ? kn_value_literal(n->g->arena, ratio) : NULL;
    if (on && !(r && r->f == 0))
        kn_onnx_unsupported(n, "training_mode with a ratio that is not 0");
    kn_onnx_return(n, 0, x);
    if (kn_onnx_wants(n, 1))
        kn_onnx_expand(n, 1, kn_onnx_scalar(n, KN_BOOL, 1), x->shape, x->rank);
}

/* ---- products ---- */

void kn_onnx_einsum(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "einsum", n->inputs, n->ninputs,
                 ATTRS(kn_attr_string("equation", kn_onnx_string(n, "equation", ""))));
}

void kn_onnx_gemm(kn_onnx_node *n)
{
    const kn_attr attrs[] = {kn_attr_int("trans_a", kn_onnx_int(n, "transA", 0)),
                             kn_attr_int("trans_b", kn_onnx_int(n, "transB", 0)),
                             kn_attr_float("alpha", kn_onnx_float(n, "alpha", 1)),
                             kn_attr_float("beta", kn_onnx_float(n, "beta", 1))};
    kn_onnx_emit(n, 0, "gemm", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2)),
                 attrs, 4);
}

/* ---- reductions ---- */

void kn_onnx_reduction(kn_onnx_node *n)
{
    static const struct {
        const char *type, *op;
    } names[] = {{"ReduceL1", "reduce_l1"},          {"ReduceL2", "reduce_l2"},
                 {"ReduceLogSum", "reduce_log_sum"}, {"ReduceLogSumExp", "reduce_log_sum_exp"},
                 {"ReduceMax", "reduce_max"},        {"ReduceMean", "reduce_mean"},
                 {"ReduceMin", "reduce_min"},        {"ReduceProd", "reduce_prod"},
                 {"ReduceSum", "reduce_sum"},        {"ReduceSumSquare", "reduce_sum_square"}};
    size_t k = 0;
    while (strcmp(names[k].type, n->type) != 0)
        k++;
    int naxes;
    kn_value *x = kn_onnx_need(n, 0);
    const int64_t *axes = kn_onnx_ints_or_operand(n, "axes", 1, &naxes);
    if (naxes == 0 && kn_onnx_int(n, "noop_with_empty_axes", 0)) {
        kn_onnx_return(n, 0, x);
        return;
    }
    kn_onnx_reduce(n, 0, names[k].op, x, naxes ? axes : NULL, naxes,
                   kn_onnx_int(n, "keepdims", 1) != 0);
}

void kn_onnx_argmax(kn_onnx_node *n)
{
    const kn_attr attrs[] = {kn_attr_int("axis", kn_onnx_int(n, "axis", 0)),
                             kn_attr_int("keepdims", kn_onnx_int(n, "keepdims", 1)),
                             kn_attr_int("select_last", kn_onnx_int(n, "select_last_index", 0))};
    kn_onnx_emit(n, 0, strcmp(n->type, "ArgMax") == 0 ? "argmax" : "argmin",
                 VALUES(kn_onnx_need(n, 0)), attrs, 3);
}

/* Before opset 13 all dimensions from the axis on are flattened. */
void kn_onnx_softmax(kn_onnx_node *n)
{
    const char *op = strcmp(n->type, "Softmax") == 0   ? "softmax"
                     : strcmp(n->type, "Hardmax") == 0 ? "hardmax"
                                                       : "log_softmax";
    bool old = n->opset < 13;
    kn_onnx_emit(n, 0, op, VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", old ? 1 : -1)),
                       kn_attr_int("flatten", old)));
}

void kn_onnx_cumulate(kn_onnx_node *n)
{
    const kn_attr attrs[] = {kn_attr_int("axis", kn_onnx_const_one(n, 1)),
                             kn_attr_int("exclusive", kn_onnx_int(n, "exclusive", 0)),
                             kn_attr_int("reverse", kn_onnx_int(n, "reverse", 0))};
    kn_onnx_emit(n, 0, strcmp(n->type, "CumSum") == 0 ? "cumsum" : "cumprod",
                 VALUES(kn_onnx_need(n, 0)), attrs, 3);
}

/* ---- losses ---- */

/* One more dimension of 1 at `axis`. */
static kn_value *insert_axis(kn_onnx_node *n, kn_value *v, int axis)
{
    const kn_expr *shape[KN_MAX_RANK + 1];
    for (int k = 0; k <= v->rank; k++)
        shape[k] = k == axis ? kn_index(n->g->arena, 1) : v->shape[k - (k > axis)];
    return kn_onnx_reshape(n, INNER, v, shape, v->rank + 1);
}

static kn_value *drop_axis(kn_onnx_node *n, kn_value *v, int axis)
{
    const kn_expr *shape[KN_MAX_RANK];
    for (int k = 0; k < v->rank - 1; k++)
        shape[k] = v->shape[k + (k >= axis)];
    return kn_onnx_reshape(n, INNER, v, shape, v->rank - 1);
}

/* The negative log-likelihood: log-probabilities x[n, c, ...] at the classes t[n, ...], weighted,
   reduced. A target that is to be ignored counts as class 0 of weight 0. */
static void emit_nll(kn_onnx_node *n, kn_value *x, kn_value *t, kn_value *weight)
{
    const char *reduction = kn_onnx_string(n, "reduction", "mean");
    bool ignores = kn_onnx_get(n, "ignore_index") != NULL, none = strcmp(reduction, "none") == 0;
    kn_value *w = NULL;
    if (ignores) {
        kn_value *ignored = kn_onnx_scalar(n, t->type, (double)kn_onnx_int(n, "ignore_index", 0));
        kn_value *valid = kn_onnx_binary(n, INNER, "not_equal", t, ignored);
        t = kn_onnx_emit(n, INNER, "where", VALUES(valid, t, kn_onnx_scalar(n, t->type, 0)),
                         NO_ATTRS);
        w = kn_onnx_cast(n, INNER, valid, x->type);
    }
    if (weight) {
        kn_value *of =
            kn_onnx_emit(n, INNER, "gather", VALUES(weight, t), ATTRS(kn_attr_int("axis", 0)));
        w = w ? kn_onnx_binary(n, INNER, "mul", of, w) : of;
    }
    kn_value *picked = kn_onnx_emit(n, INNER, "gather_elements", VALUES(x, insert_axis(n, t, 1)),
                                    ATTRS(kn_attr_int("axis", 1)));
    kn_value *loss = kn_onnx_unary(n, none && !w ? 0 : INNER, "neg", drop_axis(n, picked, 1));
    if (w)
        loss = kn_onnx_binary(n, none ? 0 : INNER, "mul", loss, w);
    if (none)
        return;
    bool mean = strcmp(reduction, "mean") == 0;
    if (!mean || !w) {
        kn_onnx_reduce(n, 0, mean ? "reduce_mean" : "reduce_sum", loss, NULL, 0, false);
        return;
    }
    kn_value *sum = kn_onnx_reduce(n, INNER, "reduce_sum", loss, NULL, 0, false);
    kn_onnx_binary(n, 0, "div", sum, kn_onnx_reduce(n, INNER, "reduce_sum", w, NULL, 0, false));
}

void kn_onnx_nll_loss(kn_onnx_node *n)
{
    emit_nll(n, kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_in(n, 2));
}

void kn_onnx_cross_entropy(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_emit(n, kn_onnx_wants(n, 1) ? 1 : INNER, "log_softmax",
                               VALUES(kn_onnx_need(n, 0)), ATTRS(kn_attr_int("axis", 1)));
    emit_nll(n, x, kn_onnx_need(n, 1), kn_onnx_in(n, 2));
}
