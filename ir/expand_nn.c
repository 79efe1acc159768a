/* Expansions of normalisations, attention and rotary embeddings. Sums, means and variances are
   taken in acctype(X), which is f32 for the 16-bit floats; one rounding at the end. */
#include <math.h>

#include "ir/expand_internal.h"

/* ---- normalisations ---- */

/* $d, $i: all dimensions and indices; $k: the indices kept; $n: how many elements a mean is of. */
static void set_norm(kn_x *x, unsigned axes)
{
    int rank = kn_x_rank(x, 0);
    kn_subs d = kn_x_subs(x, "d", rank), i = kn_x_subs(x, "x", rank), k = kn_x_pick(&i, ~axes);
    kn_str n = kn_str_make(x->a);
    for (int j = 0; j < rank; j++)
        if (axes >> j & 1)
            kn_putf(&n, "%s%s", n.n ? " * " : "", kn_x_dim_text(x, 0, j, d.at[j]));
    kn_x_let(x, "d", &d);
    kn_x_let(x, "i", &i);
    kn_x_let(x, "k", &k);
    kn_x_set(x, "n", "cast(acctype(X), %s)", n.n ? kn_str_get(&n) : "1");
    kn_x_set(x, "e", "%s", kn_x_float(x, kn_node_float(x->node, "epsilon", 1e-5)));
}

/* D, what is left of X without its mean, and R, one over its deviation. */
static const char deviations[] = "S[$k] +=! cast(acctype(X), X[$i]); "
                                 "D[$i] = cast(acctype(X), X[$i]) - S[$k] / $n; "
                                 "V[$k] +=! D[$i] * D[$i]; "
                                 "R[$k] = rsqrt(V[$k] / $n + $e); ";

/* Writes `, W[$W_d]` for the operands 1 and 2 that are there. */
static void write_affine_operands(kn_x *x)
{
    kn_x_write(x, kn_x_operand(x, 1) ? ", W[$W_d]" : "");
    kn_x_write(x, kn_x_operand(x, 2) ? ", B[$B_d]" : "");
}

static void write_affine(kn_x *x, const char *value)
{
    kn_x_write(x, "Y[$i] = cast(typeof(X), ");
    kn_x_write(x, value);
    kn_x_write(x, kn_x_operand(x, 1) ? " * cast(acctype(X), W[$W_i])" : "");
    kn_x_write(x, kn_x_operand(x, 2) ? " + cast(acctype(X), B[$B_i]))" : ")");
}

/* Scale and bias of a whole normalised box, broadcast to the operand. */
static void set_affine(kn_x *x)
{
    kn_subs d = kn_x_subs(x, "d", kn_x_rank(x, 0)), i = kn_x_subs(x, "x", d.n);
    if (kn_x_operand(x, 1))
        kn_x_broadcast(x, "W", 1, &d, &i);
    if (kn_x_operand(x, 2))
        kn_x_broadcast(x, "B", 2, &d, &i);
}

/* All axes from `axis` on. */
static unsigned trailing(kn_x *x)
{
    int rank = kn_x_rank(x, 0);
    return ((1u << rank) - 1) & ~((1u << kn_x_axis(x, "axis", -1, rank)) - 1);
}

void kn_expand_layer_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_norm(&x, trailing(&x));
    set_affine(&x);
    kn_x_write(&x, "(X[$d]");
    write_affine_operands(&x);
    kn_x_write(&x, ") -> Y: ");
    kn_x_write(&x, deviations);
    write_affine(&x, "D[$i] * R[$k]");
}

void kn_expand_rms_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_norm(&x, trailing(&x));
    set_affine(&x);
    kn_x_write(&x, "(X[$d]");
    write_affine_operands(&x);
    kn_x_write(&x, ") -> Y: S[$k] +=! cast(acctype(X), X[$i]) * cast(acctype(X), X[$i]); ");
    write_affine(&x, "cast(acctype(X), X[$i]) * rsqrt(S[$k] / $n + $e)");
}

void kn_expand_instance_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    if (kn_x_rank(&x, 0) < 2)
        kn_x_fail(&x, "the operand has rank %d, expected at least 2", kn_x_rank(&x, 0));
    set_norm(&x, ((1u << kn_x_rank(&x, 0)) - 1) & ~3u);
    kn_x_set(&x, "W_d", "d1");
    kn_x_set(&x, "W_i", "x1");
    kn_x_set(&x, "B_d", "d1");
    kn_x_set(&x, "B_i", "x1");
    kn_x_write(&x, "(X[$d]");
    write_affine_operands(&x);
    kn_x_write(&x, ") -> Y: ");
    kn_x_write(&x, deviations);
    write_affine(&x, "D[$i] * R[$k]");
}

/* Scale and bias have one element a channel or one a group. */
static void set_group_parameter(kn_x *x, const char *name, int k, int64_t channels, int64_t each)
{
    bool by_channel = kn_x_dim(x, k, 0) == channels;
    kn_x_set(x, kn_format(x->a, "%s_d", name), "%lld", (long long)kn_x_dim_const(x, k, 0));
    kn_x_set(x, kn_format(x->a, "%s_i", name), by_channel ? "c" : "c / %lld", (long long)each);
}

void kn_expand_group_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int64_t channels = kn_x_dim_const(&x, 0, 1), groups = kn_x_int(&x, "groups", 1);
    if (groups < 1 || channels % groups != 0 || channels == 0)
        kn_x_fail(&x, "%lld channels do not split into %lld groups", (long long)channels,
                  (long long)groups);
    int64_t each = channels / groups;
    int rank = kn_x_rank(&x, 0);
    set_norm(&x, 0);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), u = i;
    kn_str n = kn_str_make(x.a);
    kn_putf(&n, "%lld", (long long)each);
    for (int k = 2; k < rank; k++)
        kn_putf(&n, " * %s", kn_x_dim_text(&x, 0, k, d.at[k]));
    kn_x_set(&x, "n", "cast(acctype(X), %s)", kn_str_get(&n));
    i.at[1] = "c";
    u.at[1] = kn_format(x.a, "g * %lld + c", (long long)each);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "u", &u);
    kn_x_set(&x, "each", "%lld", (long long)each);
    kn_x_set(&x, "groups", "%lld", (long long)groups);
    kn_x_set(&x, "channels", "%lld", (long long)channels);
    set_group_parameter(&x, "W", 1, channels, each);
    set_group_parameter(&x, "B", 2, channels, each);
    kn_x_write(&x, "(X[$d], W[$W_d], B[$B_d]) -> Y: "
                   "S[x0, g] +=! cast(acctype(X), X[$u]) where g in 0:$groups, c in 0:$each; "
                   "D[$i] = cast(acctype(X), X[$i]) - S[x0, c / $each] / $n; "
                   "V[x0, g] +=! D[$u] * D[$u] where g in 0:$groups, c in 0:$each; "
                   "R[x0, g] = rsqrt(V[x0, g] / $n + $e); "
                   "Y[$i] = cast(typeof(X), D[$i] * R[x0, c / $each] * cast(acctype(X), W[$W_i])"
                   " + cast(acctype(X), B[$B_i]))");
}

/* With the statistics given. */
void kn_expand_batch_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    set_norm(&x, 0);
    kn_x_set(&x, "c", rank > 1 ? "x1" : "0");
    kn_x_set(&x, "C", rank > 1 ? "d1" : "1");
    kn_x_write(&x, "(X[$d], W[$C], B[$C], M[$C], V[$C]) -> Y: "
                   "Y[$i] = cast(typeof(X), (cast(acctype(X), X[$i]) - cast(acctype(X), M[$c]))"
                   " * rsqrt(cast(acctype(X), V[$c]) + $e) * cast(acctype(X), W[$c]) + "
                   "cast(acctype(X), B[$c]))");
}

/* A norm of zero leaves zeros. */
void kn_expand_lp_norm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0);
    int64_t p = kn_x_int(&x, "p", 2);
    if (p != 1 && p != 2)
        kn_x_fail(&x, "p is %lld, expected 1 or 2", (long long)p);
    set_norm(&x, 1u << kn_x_axis(&x, "axis", -1, rank));
    kn_x_write(
        &x, p == 1 ? "(X[$d]) -> Y: S[$k] +=! abs(cast(acctype(X), X[$i])); N[$k] = S[$k]; "
                   : "(X[$d]) -> Y: S[$k] +=! cast(acctype(X), X[$i]) * cast(acctype(X), X[$i]); "
                     "N[$k] = sqrt(S[$k]); ");
    kn_x_write(&x,
               "Y[$i] = cast(typeof(X), select(N[$k] == 0, 0, cast(acctype(X), X[$i]) / N[$k]))");
}

/* Across channels: x / (bias + alpha / size * sum of squares of the `size` channels around) ^ beta.
 */
void kn_expand_lrn(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int64_t size = kn_x_int(&x, "size", 1);
    if (size < 1 || size > 1 << 20 || kn_x_rank(&x, 0) < 2)
        kn_x_fail(&x, "size is %lld and the rank %d", (long long)size, kn_x_rank(&x, 0));
    set_norm(&x, 0);
    kn_subs at = kn_x_subs(&x, "x", kn_x_rank(&x, 0));
    at.at[1] = kn_format(x.a, "x1 + r - %lld", (long long)(size - 1) / 2);
    kn_x_let(&x, "at", &at);
    kn_x_set(&x, "size", "%lld", (long long)size);
    kn_x_set(&x, "bias", "%s", kn_x_float(&x, kn_node_float(node, "bias", 1)));
    kn_x_set(&x, "scale", "%s", kn_x_float(&x, kn_node_float(node, "alpha", 1e-4) / (double)size));
    kn_x_set(&x, "beta", "%s", kn_x_float(&x, kn_node_float(node, "beta", 0.75)));
    kn_x_write(&x, "(X[$d]) -> Y: Q[$i] = X[$i] * X[$i]; "
                   "S[$i] +=! Q[$at] else 0 where r in 0:$size, x1 in 0:d1; "
                   "Y[$i] = X[$i] / pow($bias + $scale * S[$i], $beta)");
}

/* ---- attention ---- */

/* What a query yields whose softmax is not defined: the attribute `undefined`. */
typedef enum {
    UNSEEING_ZERO, /* 0 when it sees no key, else NaN */
    ANY_NAN,       /* NaN, as in softmax */
    ANY_ZERO       /* 0 */
} undefined_rule;

typedef struct {
    bool mask, lengths, causal;
    undefined_rule undefined;
    int64_t left, right; /* the window, -1: unbounded */
    double softcap;
    int scores; /* which scores are a second result: 0 scaled, 1 capped, 2 masked, 3 probabilities;
                   -1: none */
} attention;

/* $visible: whether query s may see key t; "" when always. A query's own place among the keys is s
   + $offset, or, with key counts L, so that the last query stands at the last key. Conditions on
   indices alone stay affine. */
static void set_visible(kn_x *x, const attention *at)
{
    kn_str s = kn_str_make(x->a);
    const char *offset = kn_x_has(x, "offset") ? kn_x_index(x, "offset", -1) : "0";
    const char *p =
        at->lengths ? "cast(i64, L[b]) + cast(i64, s - S)" : kn_format(x->a, "s + %s", offset);
    const char *t = at->lengths ? "cast(i64, t)" : "t";
    if (at->causal)
        kn_putf(&s, "%s <= %s", t, p);
    if (at->left >= 0)
        kn_putf(&s, "%s%s >= %s - %lld", s.n ? " && " : "", t, p, (long long)at->left);
    if (at->right >= 0)
        kn_putf(&s, "%s%s <= %s + %lld", s.n ? " && " : "", t, p, (long long)at->right);
    if (at->lengths)
        kn_putf(&s, "%s%s < cast(i64, L[b])", s.n ? " && " : "", t);
    if (at->mask && kn_x_operand(x, 3)->type == KN_BOOL)
        kn_putf(&s, "%sA[%s]", s.n ? " && " : "", (const char *)kn_map_get(&x->names, "A_i"));
    kn_x_set(x, "visible", "%s", kn_str_get(&s));
}

/* Whether a query may see no key at all: a causal one sees the first, when its offset is not
 * negative. */
static bool may_see_nothing(const kn_x *x, const attention *at)
{
    const kn_attr *offset = kn_node_attr(x->node, "offset");
    bool before = offset && kn_index_range(offset->index, x->g->sizes, x->g->nsizes).lo < 0;
    return at->mask || at->lengths || at->left >= 0 || at->right >= 0 || (at->causal && before);
}

/* $d, $h: the head of K and V that query head h shares. */
static void set_heads(kn_x *x)
{
    int64_t queries = kn_x_dim(x, 0, 1), keys = kn_x_dim(x, 1, 1);
    kn_x_set(x, "G", queries == keys ? "H" : "G");
    kn_x_set(x, "g", "h");
    if (kn_expr_equal(x->node->inputs[0]->shape[1], x->node->inputs[1]->shape[1]))
        return;
    if (queries < 1 || keys < 1 || queries % keys != 0)
        kn_x_fail(x, "%lld query heads do not share %lld key heads evenly", (long long)queries,
                  (long long)keys);
    kn_x_set(x, "g", "h / %lld", (long long)(queries / keys));
}

static attention read_attention(kn_x *x)
{
    attention at = {.mask = kn_x_operand(x, 3) != NULL, .lengths = kn_x_operand(x, 4) != NULL};
    at.causal = kn_x_int(x, "causal", 0) != 0;
    at.left = kn_x_int(x, "left", -1);
    at.right = kn_x_int(x, "right", -1);
    at.softcap = kn_node_float(x->node, "softcap", 0);
    int64_t undefined = kn_x_int(x, "undefined", UNSEEING_ZERO);
    if (undefined < UNSEEING_ZERO || undefined > ANY_ZERO)
        kn_x_fail(x, "undefined is %lld, expected 0 to 2", (long long)undefined);
    at.undefined = (undefined_rule)undefined;
    at.scores = (int)kn_x_int(x, "scores", -1);
    for (int k = 0; k < 3; k++)
        if (kn_x_rank(x, k) != 4)
            kn_x_fail(x, "operand %d has rank %d, expected 4", k, kn_x_rank(x, k));
    double scale = kn_node_float(x->node, "scale", 0);
    int64_t width = kn_x_dim(x, 0, 3);
    if (!kn_x_has(x, "scale") && width > 0)
        scale = 1 / sqrt((double)width);
    kn_x_set(x, "scale", scale != 0 || kn_x_has(x, "scale") ? "%s" : "rsqrt(cast(acctype(Q), D))",
             kn_x_float(x, scale));
    kn_x_set(x, "cap", "%s", kn_x_float(x, at.softcap));
    set_heads(x);
    kn_subs d = {.n = 4, .at = {"N", "H", "S", "T"}}, i = {.n = 4, .at = {"b", "h", "s", "t"}};
    if (at.mask)
        kn_x_broadcast(x, "A", 3, &d, &i);
    set_visible(x, &at);
    return at;
}

/* P products; $w scaled, $c capped, $f masked: the name of each, which is the last one's where
 * nothing is done. */
static void write_scores(kn_x *x, const attention *at)
{
    bool additive = at->mask && kn_x_operand(x, 3)->type != KN_BOOL;
    bool hidden = *(const char *)kn_map_get(&x->names, "visible") != 0;
    bool capped = at->softcap > 0, masked = additive || hidden;
    kn_x_set(x, "w", "W[b, h, s, t]");
    kn_x_set(x, "c", capped ? "C[b, h, s, t]" : "W[b, h, s, t]");
    kn_x_set(x, "f", masked ? "F[b, h, s, t]" : capped ? "C[b, h, s, t]" : "W[b, h, s, t]");
    kn_x_write(x, "P[$q] +=! cast(acctype(Q), Q[b, h, s, d]) * cast(acctype(Q), K[b, $g, t, d]); "
                  "$w = P[$q] * $scale; ");
    if (capped)
        kn_x_write(x, "$c = $cap * tanh($w / $cap); ");
    if (!masked)
        return;
    kn_x_write(x, hidden ? "$f = select($visible, " : "$f = ");
    kn_x_write(x, additive ? "$c + cast(acctype(Q), A[$A_i])" : "$c");
    kn_x_write(x, hidden ? ", -inf); " : "; ");
}

/* $quotient: $e over $z, the sum of the exponentials, which is 0 where there is no key, or where
   none is seen and `blind` says that this counts. */
static void set_quotient(kn_x *x, const attention *at, bool blind)
{
    const kn_expr *keys = x->node->inputs[1]->shape[2];
    bool none = kn_index_range(keys, x->g->sizes, x->g->nsizes).lo < 1;
    const char *form = at->undefined == ANY_ZERO ? "select($z > 0, $e / $z, 0)"
                       : blind || none           ? "$e / select($z == 0, 1, $z)"
                                                 : "$e / $z";
    kn_x_set(x, "quotient", "%s", form);
}

/* $quotient of the exponential e. */
static void write_quotient(kn_x *x, const char *e)
{
    kn_x_set(x, "z", "Z[b, h, s]");
    kn_x_set(x, "e", "%s", e);
    kn_x_write(x, kn_map_get(&x->names, "quotient"));
}

/* A query that sees no key has -inf as its greatest score, which makes NaN of all, unless it is not
 * taken out: then all exponentials are 0, and so is their sum. */
void kn_expand_attention(kn_str *out, const kn_graph *g, const kn_node *node)
{
    static const char *const scores[] = {"$w", "$c", "$f"};
    kn_x x = kn_x_start(out, g, node);
    attention at = read_attention(&x);
    bool blind = at.undefined == UNSEEING_ZERO && may_see_nothing(&x, &at);
    set_quotient(&x, &at, blind);
    kn_x_set(&x, "q", "b, h, s, t");
    kn_x_write(&x, "(Q[N, H, S, D], K[N, $G, T, D], V[N, $G, T, E]");
    kn_x_write(&x, at.mask ? ", A[$A_d]" : "");
    kn_x_write(&x, at.lengths ? ", L[N]" : "");
    kn_x_write(&x, *kn_str_get(&x.attrs) ? ", $attrs) -> Y: typeof(Q)[N, H, S, E]"
                                         : ") -> Y: typeof(Q)[N, H, S, E]");
    kn_x_write(&x, at.scores >= 0 ? ", U: typeof(Q)[N, H, S, T]: " : ": ");
    write_scores(&x, &at);
    kn_x_write(&x, "M[b, h, s] max=! $f; ");
    kn_x_write(&x, blind ? "E[$q] = exp($f - select(M[b, h, s] == -inf, 0, M[b, h, s])); "
                         : "E[$q] = exp($f - M[b, h, s]); ");
    kn_x_write(
        &x, "Z[b, h, s] +=! E[$q]; O[b, h, s, e] +=! E[$q] * cast(acctype(Q), V[b, $g, t, e]); ");
    kn_x_write(&x, "Y[b, h, s, e] = cast(typeof(Q), ");
    write_quotient(&x, "O[b, h, s, e]");
    kn_x_write(&x, ")");
    if (at.scores > 3)
        kn_x_fail(&x, "scores is %d, expected -1 to 3", at.scores);
    if (at.scores >= 0) {
        kn_x_write(&x, "; U[$q] = cast(typeof(Q), ");
        if (at.scores == 3)
            write_quotient(&x, "E[b, h, s, t]");
        else
            kn_x_write(&x, scores[at.scores]);
        kn_x_write(&x, ")");
    }
}

/* ---- rotary embedding ---- */

/* $C_d, $C_i (and S): caches [position, half], looked up by I[b, s], or broadcast to [batch,
 * sequence, half]. */
static void set_caches(kn_x *x, bool positions)
{
    static const char *const names[] = {"", "C", "S"};
    kn_subs d = {.n = 3, .at = {"N", "T", "E"}}, i = {.n = 3, .at = {"b", "t", "j"}};
    for (int k = 1; k <= 2; k++) {
        if (!positions) {
            kn_x_broadcast(x, names[k], k, &d, &i);
            continue;
        }
        kn_x_set(x, kn_format(x->a, "%s_d", names[k]), "P, E");
        kn_x_set(x, kn_format(x->a, "%s_i", names[k]), "I[%s, %s], j",
                 kn_x_dim(x, 3, 0) == 1 ? "0" : "b", kn_x_dim(x, 3, 1) == 1 ? "0" : "t");
    }
    if (positions)
        kn_x_set(x, "I_d", "%s, %s", kn_x_dim(x, 3, 0) == 1 ? "1" : "N",
                 kn_x_dim(x, 3, 1) == 1 ? "1" : "T");
}

/* Two elements are turned by an angle: (j, j + half), or (2j, 2j + 1) when interleaved; those
 * behind {dim} stay. */
void kn_expand_rotary(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool positions = kn_x_operand(&x, 3) != NULL,
         sequence_first = kn_x_int(&x, "sequence_first", 0) != 0;
    if (kn_x_rank(&x, 0) != 4)
        kn_x_fail(&x, "the operand has rank %d, expected 4", kn_x_rank(&x, 0));
    int64_t d = kn_x_dim_const(&x, 0, 3), dim = kn_x_int(&x, "dim", d);
    if (dim < 0 || dim > d || dim % 2 != 0)
        kn_x_fail(&x, "dim is %lld of %lld, expected an even part", (long long)dim, (long long)d);
    bool interleaved = kn_x_int(&x, "interleaved", 0) != 0;
    kn_x_set(&x, "half", "%lld", (long long)dim / 2);
    kn_x_set(&x, "rest", "%lld", (long long)(d - dim));
    kn_x_set(&x, "D", "%lld", (long long)d);
    kn_x_set(&x, "h", sequence_first ? "b, t, h" : "b, h, t");
    kn_x_set(&x, "H", sequence_first ? "N, T, H" : "N, H, T");
    kn_x_set(&x, "p", interleaved ? "2 * j" : "j");
    kn_x_set(&x, "q", interleaved ? "2 * j + 1" : "j + %lld", (long long)dim / 2);
    kn_x_set(&x, "r", "j + %lld", (long long)dim);
    set_caches(&x, positions);
    kn_x_write(&x, "(X[$H, $D], C[$C_d], S[$S_d]");
    kn_x_write(&x,
               positions ? ", I[$I_d]) -> Y: typeof(X)[$H, $D]: " : ") -> Y: typeof(X)[$H, $D]: ");
    kn_x_write(&x, "Y[$h, $p] = C[$C_i] * X[$h, $p] - S[$S_i] * X[$h, $q] where j in 0:$half; "
                   "Y[$h, $q] = S[$S_i] * X[$h, $p] + C[$C_i] * X[$h, $q] where j in 0:$half");
    if (dim < d)
        kn_x_write(&x, "; Y[$h, $r] = X[$h, $r] where j in 0:$rest");
}
