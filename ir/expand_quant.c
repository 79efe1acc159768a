/* Expansions of quantisation. A scale, and a zero point, has one element, one an element of an
   axis, or, with {block}, one a block along that axis. Rounding is half to even, and saturates. */
#include "ir/expand_internal.h"

/* NAME_d, NAME_i: dimensions and subscripts of the scale or zero point in operand p; $d, $i of X.
 */
static void set_parameter(kn_x *x, const char *name, int p)
{
    const char *name_d = kn_format(x->a, "%s_d", name), *name_i = kn_format(x->a, "%s_i", name);
    int rank = kn_x_rank(x, 0), prank = kn_x_rank(x, p);
    int64_t block = kn_x_int(x, "block", 0), axis = kn_x_int(x, "axis", 1);
    axis += axis < 0 ? rank : 0;
    kn_subs d = kn_x_subs(x, "d", rank), i = kn_x_subs(x, "x", rank);
    kn_x_let(x, "d", &d);
    kn_x_let(x, "i", &i);
    bool one = prank == 0 || (prank == 1 && kn_x_dim(x, p, 0) == 1);
    if (!one && (axis < 0 || axis >= rank))
        kn_x_fail(x, "axis %lld is outside rank %d", (long long)axis, rank);
    if (one)
        kn_x_single(x, name, p);
    else if (prank == 1 && block == 0) {
        kn_x_set(x, name_d, "%s", d.at[axis]);
        kn_x_set(x, name_i, "%s", i.at[axis]);
    } else if (prank == rank && block > 0) {
        d.at[axis] = "blocks";
        i.at[axis] = kn_format(x->a, "x%d / %lld", (int)axis, (long long)block);
        kn_x_let(x, name_d, &d);
        kn_x_let(x, name_i, &i);
    } else
        kn_x_fail(x, "operand %d of rank %d does not fit one of rank %d", p, prank, rank);
}

void kn_expand_quantize_linear(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool zero = kn_x_operand(&x, 2) != NULL;
    bool to = kn_x_has(&x, "to");
    set_parameter(&x, "s", 1);
    if (zero)
        set_parameter(&x, "z", 2);
    kn_x_set(&x, "t", zero ? "typeof(Z)" : "to");
    kn_x_write(&x, zero ? "(X[$d], S[$s_d], Z[$z_d]) -> Y: "
                   : to ? "(X[$d], S[$s_d], to: type) -> Y: "
                        : "(X[$d], S[$s_d], to: type = u8) -> Y: ");
    kn_x_write(&x, "Y[$i] = sat($t, round(cast(f32, X[$i]) / cast(f32, S[$s_i]))");
    kn_x_write(&x, zero ? " + cast(f32, Z[$z_i]))" : ")");
}

void kn_expand_dequantize_linear(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool zero = kn_x_operand(&x, 2) != NULL, to = kn_x_has(&x, "to");
    set_parameter(&x, "s", 1);
    if (zero)
        set_parameter(&x, "z", 2);
    kn_x_set(&x, "t", to ? "to" : "typeof(S)");
    kn_x_write(&x, "(X[$d], S[$s_d]");
    kn_x_write(&x, zero ? ", Z[$z_d]" : "");
    kn_x_write(&x, to ? ", to: type) -> Y: " : ") -> Y: ");
    kn_x_write(&x, zero ? "Y[$i] = cast($t, cast(f32, cast(i32, X[$i]) - cast(i32, Z[$z_i])) * "
                          "cast(f32, S[$s_i]))"
                        : "Y[$i] = cast($t, cast(f32, X[$i]) * cast(f32, S[$s_i]))");
}
