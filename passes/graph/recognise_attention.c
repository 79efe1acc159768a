/* Attention: softmax(scale Q K' + mask) V on four dimensions [n, heads, place, depth] is the op
   `attention`; on fewer, there are no heads, or heads and batch are one dimension. */
#include <math.h>

#include "passes/graph/recognise_internal.h"

/* A value that must be as low as this is absorbed by no score: score + low = low. */
static const double absorbing = -1e30;

static bool same_dim(const kn_value *x, int i, const kn_value *y, int k)
{
    return kn_expr_equal(x->shape[i], y->shape[k]);
}

/* Q is [..., s, d], V [..., t, e]; K is [..., t, d] when the product transposes it, else [..., d,
 * t]. */
static bool shapes_agree(const kn_value *q, const kn_value *k, const kn_value *v, bool transposed)
{
    int r = q->rank, depth = transposed ? r - 1 : r - 2, place = transposed ? r - 2 : r - 1;
    bool agree = r >= 2 && k->rank == r && v->rank == r && q->type == k->type && q->type == v->type;
    for (int i = 0; agree && i < r - 2; i++) {
        agree = same_dim(q, i, k, i) && same_dim(q, i, v, i);
    }
    return agree && same_dim(q, r - 1, k, depth) && same_dim(k, place, v, r - 2);
}

/* What v is a transposition of, by this perm; else NULL. */
static kn_value *transposed_of(const kn_value *v, const int64_t *perm)
{
    const kn_attr *attr =
        v->def && strcmp(v->def->op->name, "transpose") == 0 ? kn_node_attr(v->def, "perm") : NULL;
    bool same = attr != NULL;
    for (int i = 0; same && i < v->rank; i++) {
        same = kn_index_is(attr->indexes[i], perm[i]);
    }
    return same ? v->def->inputs[0] : NULL;
}

/* K with its last two dimensions changed. */
static kn_value *swapped(kn_match *m, kn_value *k)
{
    int64_t perm[KN_MAX_RANK];
    for (int i = 0; i < k->rank; i++) {
        perm[i] = i < k->rank - 2 ? i : 2 * k->rank - 3 - i;
    }
    kn_value *was = transposed_of(k, perm);
    if (was) {
        return was;
    }
    const kn_attr attr = kn_attr_ints(kn_match_graph(m)->arena, "perm", perm, k->rank);
    return kn_match_node(m, "transpose", &k, 1, &attr, 1);
}

/* ---- masks ---- */

static bool covers(const kn_value *q, const kn_value *v, const kn_value *mask)
{
    const kn_expr *shape[KN_MAX_RANK];
    for (int i = 0; i < q->rank; i++) {
        shape[i] = i < q->rank - 1 ? q->shape[i] : v->shape[v->rank - 2];
    }
    return !mask || kn_broadcasts_to(mask, shape, q->rank);
}

/* 0 where a score is kept, `low` where it is hidden. What is hidden by -inf is a mask of bools
 * already. */
static bool mask_of_bools(kn_match *m, kn_value *keep, kn_value *hide, kn_value **mask)
{
    double number = kn_match_number(m, "low", 0);
    kn_value *low = kn_match_value(m, "low"), *zero;
    if (number > absorbing) {
        return false;
    }
    if (isinf(number)) {
        *mask = keep ? keep : kn_match_node(m, "not", &hide, 1, NULL, 0);
        return true;
    }
    zero = kn_graph_scalar(kn_match_graph(m), low->type, 0);
    kn_value *inputs[] = {keep ? keep : hide, keep ? zero : low, keep ? low : zero};
    *mask = kn_match_node(m, "where", inputs, 3, NULL, 0);
    return true;
}

static bool find_mask(kn_match *m, kn_value **mask)
{
    kn_value *keep = kn_match_value(m, "keep"), *hide = kn_match_value(m, "hide"),
             *more = kn_match_value(m, "more");
    const kn_value *q = kn_match_value(m, "q"), *v = kn_match_value(m, "v");
    *mask = kn_match_value(m, "mask");
    if (!covers(q, v, *mask) || !covers(q, v, more) || !covers(q, v, keep) || !covers(q, v, hide)) {
        return false;
    }
    if (keep || hide) {
        return mask_of_bools(m, keep, hide, mask);
    }
    if (more) {
        *mask = kn_match_node(m, "add", (kn_value *[]){*mask, more}, 2, NULL, 0);
    }
    return true;
}

/* ---- the rules ---- */

static double scale_of(const kn_match *m)
{
    double product = kn_match_number(m, "scale", 1) * kn_match_number(m, "scale_q", 1) *
                     kn_match_number(m, "scale_k", 1);
    return product / (kn_match_number(m, "over", 1) * kn_match_number(m, "over_q", 1));
}

/* What becomes of a query whose softmax is NaN: the spelling keeps that, or puts 0. Without a mask
   the op keeps it anyway. */
static void set_undefined(kn_match *m, const kn_value *mask)
{
    bool cleared = kn_match_value(m, "nothing") != NULL;
    if (cleared || mask) {
        kn_match_set_attr(m, "undefined", kn_attr_int("undefined", cleared ? 2 : 1));
    }
}

/* Sets %bias, %keys, `scale`, perhaps `undefined`. */
static bool find_attention(kn_match *m)
{
    kn_value *q = kn_match_value(m, "q"), *k = kn_match_value(m, "k"), *v = kn_match_value(m, "v"),
             *mask;
    bool transposed = kn_match_number(m, "tb", 0) != 0;
    double scale = scale_of(m);
    if (!shapes_agree(q, k, v, transposed) || !isfinite(scale) ||
        kn_match_number(m, "nothing", 0) != 0 || !find_mask(m, &mask)) {
        return false;
    }
    set_undefined(m, mask);
    kn_match_set(m, "bias", mask);
    kn_match_set(m, "keys", transposed ? k : swapped(m, k));
    kn_match_set_attr(m, "scale", kn_attr_float("scale", scale));
    return true;
}

bool kn_is_attention(kn_match *m)
{
    double cap = kn_match_number(m, "cap", 0),
           over_cap = kn_match_number(m, "over_cap", cap != 0 ? 1 / cap : 0);
    bool capped = cap == 0 || (cap > 0 && fabs(cap * over_cap - 1) <= 1e-6);
    return capped && kn_match_value(m, "q")->rank == 4 && find_attention(m);
}

/* [n, s, d] -> [n, 1, s, d], [s, d] -> [1, 1, s, d] */
static kn_value *with_heads(kn_match *m, kn_value *v)
{
    const kn_expr *one = kn_index(kn_match_graph(m)->arena, 1);
    const kn_expr *shape[] = {v->rank == 3 ? v->shape[0] : one, one, v->shape[v->rank - 2],
                              v->shape[v->rank - 1]};
    const kn_attr attr = kn_attr_indexes("shape", shape, 4);
    return kn_match_node(m, "reshape", &v, 1, &attr, 1);
}

bool kn_is_flat_attention(kn_match *m)
{
    const kn_value *root = kn_match_root(m);
    if (kn_match_value(m, "q")->rank > 3 || !find_attention(m)) {
        return false;
    }
    kn_value *mask = kn_match_value(m, "bias");
    kn_match_set(m, "bias", mask && mask->rank == 3 ? with_heads(m, mask) : mask);
    kn_match_set(m, "queries", with_heads(m, kn_match_value(m, "q")));
    kn_match_set(m, "keys", with_heads(m, kn_match_value(m, "keys")));
    kn_match_set(m, "values", with_heads(m, kn_match_value(m, "v")));
    kn_match_set_attr(m, "shape", kn_attr_indexes("shape", root->shape, root->rank));
    return true;
}

/* [n, g, t, d] -> [n, g, 1, t, d] -> [n, g, r, t, d] -> [n, g * r, t, d] */
static bool is_repeated(const kn_value *x, const kn_value *wide, const kn_value *repeated,
                        const kn_value *joined)
{
    int64_t groups, times, heads;
    bool same = x->rank == 4 && wide->rank == 5 && repeated->rank == 5 && joined->rank == 4;
    for (int i = 0; same && i < 4; i++) {
        int k = i + (i > 1);
        same = same_dim(x, i, wide, k) && same_dim(x, i, repeated, k) &&
               (i == 1 || same_dim(x, i, joined, i));
    }
    return same && kn_index_is(wide->shape[2], 1) && kn_index_const(x->shape[1], &groups) &&
           groups > 0 && kn_index_const(repeated->shape[2], &times) &&
           kn_index_const(joined->shape[1], &heads) && heads == groups * times && times > 0;
}

bool kn_is_grouped(kn_match *m)
{
    return is_repeated(kn_match_value(m, "k"), kn_match_value(m, "ku"), kn_match_value(m, "ke"),
                       kn_match_value(m, "kr")) &&
           is_repeated(kn_match_value(m, "v"), kn_match_value(m, "vu"), kn_match_value(m, "ve"),
                       kn_match_value(m, "vr")) &&
           same_dim(kn_match_value(m, "k"), 1, kn_match_value(m, "v"), 1);
}
