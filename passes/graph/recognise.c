/* Recognition: activations, norms, softmax, attention and rotary embedding in the spellings of
   exporters become one op each, by the rules of recognise.def. A norm is first found without scale
   and bias, which are then taken in. */
#include "passes/graph/recognise_internal.h"
#include "passes/passes.h"

/* ---- axes ---- */

static void set_axis(kn_match *m, int64_t axis, int rank)
{
    kn_match_set_attr(m, "axis", kn_attr_int("axis", axis - rank));
}

/* The axes are the last ones, in any order: `axis` is the first of them. */
static bool takes_last_axes(kn_match *m)
{
    const kn_attr *axes = kn_match_attr(m, "axes");
    int rank = kn_match_value(m, "x")->rank;
    unsigned seen = 0;
    for (int i = 0; i < axes->n; i++) {
        int64_t axis;
        if (!kn_index_const(axes->indexes[i], &axis) || axis < 0 || axis >= rank) {
            return false;
        }
        seen |= 1u << axis;
    }
    int first = rank - axes->n;
    if (axes->n == 0 || seen != (((1u << rank) - 1) & ~((1u << first) - 1))) {
        return false;
    }
    set_axis(m, first, rank);
    return true;
}

/* What is centred and what is scaled are the same. */
static bool takes_axes_of_mean(kn_match *m)
{
    int64_t axis = (int64_t)kn_match_number(m, "axis", 0);
    return takes_last_axes(m) &&
           kn_match_number(m, "axis", 0) + kn_match_root(m)->rank == (double)axis;
}

static bool is_one_axis(kn_match *m)
{
    int axis = (int)kn_match_number(m, "axis", 0), rank = kn_match_root(m)->rank;
    kn_match_set_attr(m, "axis", kn_attr_int("axis", axis == rank - 1 ? -1 : axis));
    return true;
}

/* Whether a scale or bias varies along the normalised axes and no others: what it is meant for. */
static bool is_along_axes(kn_match *m, const kn_value *w)
{
    const kn_value *x = kn_match_value(m, "x");
    int axis = (int)kn_match_number(m, "axis", -1);
    axis += axis < 0 ? x->rank : 0;
    bool along = w->rank > 0 && kn_broadcasts_to(w, x->shape, x->rank) &&
                 kn_expr_equal(w->shape[w->rank - 1], x->shape[x->rank - 1]);
    for (int i = 0; along && i < w->rank; i++) {
        along = i + x->rank - w->rank >= axis || kn_index_is(w->shape[i], 1);
    }
    set_axis(m, axis, x->rank);
    return along;
}

static bool scale_is_along_axes(kn_match *m)
{
    return is_along_axes(m, kn_match_value(m, "w"));
}

static bool bias_is_along_axes(kn_match *m)
{
    return is_along_axes(m, kn_match_value(m, "b"));
}

static bool takes_last_axes_affine(kn_match *m)
{
    return takes_last_axes(m) && scale_is_along_axes(m) && bias_is_along_axes(m);
}

/* Norms of 16-bit floats are computed in f32, as the casts say. */
static bool is_half(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x");
    set_axis(m, (int64_t)kn_match_number(m, "axis", 0), x->rank);
    return x->type == KN_F16 || x->type == KN_BF16;
}

/* ---- the table ---- */

#define KN_RULES "passes/graph/recognise.def"
#define KN_RULE_TABLE kn_recognise_rules
#define KN_RULES_SHARED false
#include "passes/graph/rules_table.h"

void kn_pass_recognise(kn_unit *u)
{
    kn_rewrite(u, &kn_recognise_rules, NULL);
}
