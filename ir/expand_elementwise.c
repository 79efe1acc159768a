/* Expansions of elementwise operators whose meaning depends on types or on optional operands. */
#include "ir/expand_internal.h"

/* Floats go to 4-bit integers by way of i32 and wrap, as in ONNX's reference. */
void kn_expand_cast(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    const kn_attr *to = kn_node_attr(node, "to");
    if (!to || to->kind != KN_A_TYPE)
        kn_x_fail(&x, "expected the attribute `to`, a type");
    kn_dtype from = kn_x_operand(&x, 0)->type;
    bool truth = to->type == KN_BOOL && from != KN_BOOL;
    bool wraps = kn_dtype_is_float(from) && kn_dtype_bits(to->type) == 4;
    kn_x_write(&x, truth   ? "(X[*b]) -> Y: Y[*b] = X[*b] != 0"
                   : wraps ? "(X[*b], to: type) -> Y: Y[*b] = cast(to, cast(i32, X[*b]))"
                           : "(X[*b], to: type) -> Y: Y[*b] = cast(to, X[*b])");
}

void kn_expand_clip(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool low = kn_x_operand(&x, 1) != NULL, high = kn_x_operand(&x, 2) != NULL;
    if (low)
        kn_x_single(&x, "l", 1);
    if (high)
        kn_x_single(&x, "h", 2);
    kn_x_write(&x, "(X[*b]");
    kn_x_write(&x, low ? ", L[$l_d]" : "");
    kn_x_write(&x, high ? ", H[$h_d]" : "");
    kn_x_write(&x, ") -> Y: Y[*b] = ");
    kn_x_write(&x, high ? "min(" : "");
    kn_x_write(&x, low ? "max(X[*b], L[$l_i])" : "X[*b]");
    kn_x_write(&x, high ? ", H[$h_i])" : "");
}

/* The type in which a power of these two is taken: numpy's promotion, as far as it matters. */
static const char *power_type(kn_dtype base, kn_dtype exponent)
{
    if (kn_dtype_is_float(base) || base == exponent)
        return "typeof(A)";
    if (kn_dtype_is_integer(exponent))
        return kn_dtype_is_signed(base) || kn_dtype_is_signed(exponent) ? "i64" : "u64";
    return exponent == KN_F64 || kn_dtype_bits(base) > 16 ? "f64" : "f32";
}

void kn_expand_pow(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_dtype base = kn_x_operand(&x, 0)->type, exponent = kn_x_operand(&x, 1)->type;
    kn_x_set(&x, "t", "%s", power_type(base, exponent));
    if (base == exponent)
        kn_x_write(&x, "(A[*b], B[*b]) -> Y: Y[*b] = pow(A[*b], B[*b])");
    else
        kn_x_write(&x, "(A[*b], B[*b]) -> Y: "
                       "Y[*b] = cast(typeof(A), pow(cast($t, A[*b]), cast($t, B[*b])))");
}
