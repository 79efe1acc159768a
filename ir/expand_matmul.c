/* Expansions of products of matrices: operands of rank 1, transposes, zero points, einsum. */
#include "ir/expand_internal.h"

/* $A_d, $A_i and so on: dimensions and subscripts of both operands, $Y_i of the result. */
static void set_product(kn_x *x)
{
    int a = kn_x_rank(x, 0), b = kn_x_rank(x, 1);
    if (a == 0 || b == 0)
        kn_x_fail(x, "an operand has rank 0, expected at least 1");
    bool ta = kn_x_int(x, "trans_a", 0) != 0, tb = kn_x_int(x, "trans_b", 0) != 0;
    kn_x_set(x, "A_d", "%s", a == 1 ? "k" : ta ? "*b, k, m" : "*b, m, k");
    kn_x_set(x, "A_i", "%s", a == 1 ? "r" : ta ? "*b, r, i" : "*b, i, r");
    kn_x_set(x, "B_d", "%s", b == 1 ? "k" : tb ? "*b, n, k" : "*b, k, n");
    kn_x_set(x, "B_i", "%s", b == 1 ? "r" : tb ? "*b, j, r" : "*b, r, j");
    kn_subs y = {0};
    if (a > 1 || b > 1)
        kn_x_push(x, &y, "*b");
    if (a > 1)
        kn_x_push(x, &y, "i");
    if (b > 1)
        kn_x_push(x, &y, "j");
    kn_x_let(x, "Y_i", &y);
}

void kn_expand_matmul(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_product(&x);
    kn_x_write(&x, "(A[$A_d], B[$B_d]) -> C: C[$Y_i] +=! A[$A_i] * B[$B_i]");
}

void kn_expand_gemm(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_product(&x);
    double alpha = kn_node_float(node, "alpha", 1), beta = kn_node_float(node, "beta", 1);
    bool bias = kn_x_operand(&x, 2) && beta != 0;
    kn_subs d = {.n = 2, .at = {"m", "n"}}, i = {.n = 2, .at = {"i", "j"}};
    if (kn_x_operand(&x, 2))
        kn_x_broadcast(&x, "C", 2, &d, &i);
    kn_x_set(&x, "alpha", "%s", kn_x_float(&x, alpha));
    kn_x_set(&x, "beta", "%s", kn_x_float(&x, beta));
    kn_x_write(&x, "(A[$A_d], B[$B_d]");
    kn_x_write(&x, kn_x_operand(&x, 2) ? ", C[$C_d]) -> Y: " : ") -> Y: ");
    if (alpha == 1 && !bias) {
        kn_x_write(&x, "Y[i, j] +=! A[$A_i] * B[$B_i]");
        return;
    }
    kn_x_write(&x, "S[i, j] +=! A[$A_i] * B[$B_i]; Y[i, j] = ");
    kn_x_write(&x, alpha == 1 ? "S[i, j]" : "$alpha * S[i, j]");
    if (bias)
        kn_x_write(&x, beta == 1 ? " + C[$C_i]" : " + $beta * C[$C_i]");
}

/* A zero point or scale of operand k of a product, itself operand z: of one element, [m] or [*b, m,
   1] (rows of A, `row`), or [n] or [*b, 1, n] (columns of B). */
static void set_parameter(kn_x *x, const char *name, int z, bool row)
{
    int rank = kn_x_rank(x, z);
    bool single = true;
    for (int k = 0; k < rank; k++)
        single = single && kn_x_dim(x, z, k) == 1;
    if (single) {
        kn_x_single(x, name, z);
        return;
    }
    const char *d = row ? "m" : "n", *i = row ? "i" : "j", *full_d = row ? "*b, m, 1" : "*b, 1, n",
               *full_i = row ? "*b, i, 0" : "*b, 0, j";
    kn_x_set(x, kn_format(x->a, "%s_d", name), "%s", rank == 1 ? d : full_d);
    kn_x_set(x, kn_format(x->a, "%s_i", name), "%s", rank == 1 ? i : full_i);
}

void kn_expand_matmul_integer(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool za = kn_x_operand(&x, 2) != NULL, zb = kn_x_operand(&x, 3) != NULL;
    set_product(&x);
    if (za)
        set_parameter(&x, "za", 2, true);
    if (zb)
        set_parameter(&x, "zb", 3, false);
    kn_x_write(&x, "(A[$A_d], B[$B_d]");
    kn_x_write(&x, za ? ", ZA[$za_d]" : "");
    kn_x_write(&x, zb ? ", ZB[$zb_d]" : "");
    kn_x_write(&x, ") -> Y: Y[$Y_i] +=! ");
    kn_x_write(&x, za ? "(cast(i32, A[$A_i]) - cast(i32, ZA[$za_i]))" : "cast(i32, A[$A_i])");
    kn_x_write(&x, " * ");
    kn_x_write(&x, zb ? "(cast(i32, B[$B_i]) - cast(i32, ZB[$zb_i]))" : "cast(i32, B[$B_i])");
}

/* As ONNX's reference: an exact sum in i32, one scale in f32, rounded half to even and saturated.
 */
void kn_expand_qlinear_matmul(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int a = kn_x_rank(&x, 0), b = kn_x_rank(&x, 3);
    if (a < 2 || b < 2)
        kn_x_fail(&x, "operands have ranks %d and %d, expected at least 2", a, b);
    set_parameter(&x, "as", 1, true);
    set_parameter(&x, "az", 2, true);
    set_parameter(&x, "bs", 4, false);
    set_parameter(&x, "bz", 5, false);
    set_parameter(&x, "ys", 6, true);
    set_parameter(&x, "yz", 7, true);
    kn_x_write(&x, "(A[*b, m, k], AS[$as_d], AZ[$az_d], B[*b, k, n], BS[$bs_d], BZ[$bz_d], "
                   "YS[$ys_d], YZ[$yz_d]) -> Y: "
                   "S[*b, i, j] +=! (cast(i32, A[*b, i, r]) - cast(i32, AZ[$az_i]))"
                   " * (cast(i32, B[*b, r, j]) - cast(i32, BZ[$bz_i])); "
                   "Y[*b, i, j] = sat(typeof(YZ), round(cast(f32, S[*b, i, j])"
                   " * (cast(f32, AS[$as_i]) * cast(f32, BS[$bs_i]) / cast(f32, YS[$ys_i])))"
                   " + cast(f32, YZ[$yz_i]))");
}

/* ---- weights of a few bits ---- */

/* Column j's entry for block p / $block in scales or zeros `t`, whose rows have `columns` entries;
 * rank 1 or 2. */
static const char *block_entry(kn_x *x, int k, const char *t, int64_t columns, const char *at)
{
    if (kn_x_rank(x, k) == 1)
        return kn_format(x->a, "%s[j * %lld + %s]", t, (long long)columns, at);
    return kn_format(x->a, "%s[j, %s]", t, at);
}

/* $zero: what is subtracted: a float, or packed bits, or half the range. */
static void set_zero(kn_x *x, int64_t bits, int64_t block, int64_t blocks)
{
    const char *at = kn_format(x->a, "p / %lld", (long long)block);
    const kn_value *zero = kn_x_operand(x, 3);
    kn_x_set(x, "zero", "%d", 1 << (bits - 1));
    if (!zero)
        return;
    kn_x_dims(x, "z", 3, "z");
    bool packed = !kn_dtype_is_float(zero->type) && bits == 4;
    if (!packed) {
        kn_x_set(x, "zero", "cast(f32, %s)", block_entry(x, 3, "Z", blocks, at));
        return;
    }
    const char *entry = block_entry(x, 3, "Z", (blocks + 1) / 2, kn_format(x->a, "%s / 2", at));
    kn_x_set(x, "zero", "cast(f32, cast(i32, %s) >> cast(i32, 4 * (%s %% 2)) & 15)", entry, at);
}

/* Element p of column j lies in block p / block; of 4 bits, the low nibble of a byte comes first.
 */
void kn_expand_matmul_nbits(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int64_t bits = kn_x_int(&x, "bits", 4), block = kn_x_int(&x, "block", 32),
            k = kn_x_int(&x, "k", 0), n = kn_x_int(&x, "n", 0);
    int64_t large = 1 << 30;
    if ((bits != 4 && bits != 8) || block < 2 || block % 2 != 0 || k < 1 || n < 1 ||
        block > large || k > large || n > large)
        kn_x_fail(&x, "bits, block, k, n are %lld, %lld, %lld, %lld", (long long)bits,
                  (long long)block, (long long)k, (long long)n);
    int64_t blocks = (k + block - 1) / block;
    kn_x_dims(&x, "s", 2, "s");
    set_zero(&x, bits, block, blocks);
    kn_x_set(&x, "k", "%lld", (long long)k);
    kn_x_set(&x, "n", "%lld", (long long)n);
    kn_x_set(&x, "block", "%lld", (long long)block);
    kn_x_set(&x, "scale", "%s",
             block_entry(&x, 2, "S", blocks, kn_format(x.a, "p / %lld", (long long)block)));
    kn_x_write(&x, "(A[*b, $k], B[$n, q, w], S[$s]");
    kn_x_write(&x, kn_x_operand(&x, 3) ? ", Z[$z]) -> Y: " : ") -> Y: ");
    kn_x_write(&x, bits == 8 ? "D[j, p] = (cast(f32, B[j, p / $block, p % $block])"
                             : "D[j, p] = (cast(f32, cast(i32, B[j, p / $block, p % $block / 2]) "
                               ">> cast(i32, 4 * (p % 2)) & 15)");
    kn_x_write(&x,
               " - $zero) * cast(f32, $scale) where j in 0:$n, p in 0:$k; "
               "R[*b, j] +=! cast(f32, A[*b, p]) * D[j, p]; Y[*b, j] = cast(typeof(A), R[*b, j])");
}

/* ---- einsum ---- */

typedef struct {
    bool pack;   /* an ellipsis */
    char letter; /* else this label */
} label;
typedef struct {
    label at[KN_MAX_RANK];
    int n;
} term;

/* Of ASCII, whatever the locale. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static const char *read_term(kn_x *x, const char *s, term *t)
{
    t->n = 0;
    for (; *s && *s != ',' && *s != '-'; s++) {
        bool pack = strncmp(s, "...", 3) == 0;
        if (*s == ' ')
            continue;
        if ((!pack && !is_letter(*s)) || t->n == KN_MAX_RANK)
            kn_x_fail(x, "the equation is wrong at `%s`", s);
        t->at[t->n++] = (label){.pack = pack, .letter = *s};
        s += pack ? 2 : 0;
    }
    return s;
}

/* The result's labels when the equation does not say: the ellipsis, then those that occur once, in
 * order. */
static void implicit_result(const term *terms, int n, term *out)
{
    int seen[128] = {0};
    bool pack = false;
    for (int k = 0; k < n; k++)
        for (int j = 0; j < terms[k].n; j++) {
            pack = pack || terms[k].at[j].pack;
            if (!terms[k].at[j].pack)
                seen[(int)terms[k].at[j].letter]++;
        }
    out->n = 0;
    if (pack)
        out->at[out->n++] = (label){.pack = true};
    for (int c = 'A'; c <= 'z'; c++)
        if (seen[c] == 1 && out->n < KN_MAX_RANK)
            out->at[out->n++] = (label){.letter = (char)c};
}

/* Position of a label's dimension in operand k of this rank; the ellipsis takes what the labels
 * leave. */
static int label_axis(const term *t, int j, int rank)
{
    for (int k = 0; k < j; k++)
        if (t->at[k].pack)
            return j + rank - t->n;
    return j;
}

/* A label broadcasts: it is 1 here and something else in another operand. */
static bool label_is_one(kn_x *x, const term *terms, int n, int operand, int j)
{
    const term *t = &terms[operand];
    if (kn_x_dim(x, operand, label_axis(t, j, kn_x_rank(x, operand))) != 1)
        return false;
    for (int k = 0; k < n; k++)
        for (int q = 0; q < terms[k].n; q++)
            if (!terms[k].at[q].pack && terms[k].at[q].letter == t->at[j].letter &&
                kn_x_dim(x, k, label_axis(&terms[k], q, kn_x_rank(x, k))) != 1)
                return true;
    return false;
}

static void set_term(kn_x *x, const term *terms, int n, int operand)
{
    kn_subs d = {0}, i = {0};
    const term *t = &terms[operand];
    for (int j = 0; j < t->n; j++) {
        bool one = !t->at[j].pack && label_is_one(x, terms, n, operand, j);
        kn_x_push(x, &d,
                  t->at[j].pack ? "*b"
                  : one         ? "1"
                                : kn_format(x->a, "d_%c", t->at[j].letter));
        kn_x_push(x, &i,
                  t->at[j].pack ? "*b"
                  : one         ? "0"
                                : kn_format(x->a, "i_%c", t->at[j].letter));
    }
    kn_x_let(x, "d", &d);
    kn_x_let(x, "i", &i);
}

enum { MAX_TERMS = 16 };

static int read_equation(kn_x *x, term *terms, term *result)
{
    const char *s = kn_x_string(x, "equation", "");
    int n = 0;
    do {
        if (n == MAX_TERMS || n == x->node->ninputs)
            kn_x_fail(x, "the equation has more terms than operands");
        s = read_term(x, n ? s + 1 : s, &terms[n]);
        n++;
    } while (*s == ',');
    if (n != x->node->ninputs)
        kn_x_fail(x, "the equation has %d terms for %d operands", n, x->node->ninputs);
    implicit_result(terms, n, result);
    if (strncmp(s, "->", 2) == 0)
        s = read_term(x, s + 2, result);
    if (*s)
        kn_x_fail(x, "the equation is wrong at `%s`", s);
    return n;
}

void kn_expand_einsum(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    term terms[MAX_TERMS] = {0}, result;
    int n = read_equation(&x, terms, &result);
    kn_str product = kn_str_make(x.a);
    kn_x_write(&x, "(");
    for (int k = 0; k < n; k++) {
        set_term(&x, terms, n, k);
        kn_x_set(&x, "X", "X%d", k);
        kn_x_write(&x, k ? ", $X[$d]" : "$X[$d]");
        kn_putf(&product, "%sX%d[%s]", k ? " * " : "", k, (const char *)kn_map_get(&x.names, "i"));
    }
    kn_subs q = {0};
    for (int j = 0; j < result.n; j++)
        kn_x_push(&x, &q, result.at[j].pack ? "*b" : kn_format(x.a, "i_%c", result.at[j].letter));
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, ") -> Y: Y[$q] +=! ");
    kn_put(out, kn_str_get(&product));
}
