/* What notations mean: nests as text, diagnostics with their place, and numbers: nests evaluated on
   small sizes against plain C loops. */
#include <math.h>

#include "notation_help.h"
#include "support/half.h"

/* ---- nests as text ---- */

static void check_nest(fixture *f, const char *text, const char *use_text, const char *expected)
{
    kn_str s = kn_str_make(f->a);
    kn_nest_print(&s, elaborate(f, text, use_text));
    assert_string_equal(kn_str_get(&s), expected);
}

#define MATMUL "matmul(A[*b, m, k], B[*b, k, n]) -> C: C[*b, i, j] +=! A[*b, i, r] * B[*b, r, j]"

static void nest_of_a_product(void **state)
{
    check_nest(*state, MATMUL, "f32[m, 48]; f32[48, 64]; m in 1:512",
               "nest matmul sizes m in 1:512\n"
               "  in A: f32[m, 48]\n"
               "  in B: f32[48, 64]\n"
               "  out C: f32[m, 64]\n"
               "  C[i, j] +=! A[i, r] * B[r, j]  for i in 0:m, j in 0:64, r in 0:48 (reduction)\n");
}

/* Graph symbols and indices share a name space: the index gives way. */
static void indices_give_way_to_symbols(void **state)
{
    check_nest(*state, "(X[n]) -> Y: Y[i] = X[i]; Y[i] += 1", "f32[i]",
               "nest notation sizes i in 0:1048576\n"
               "  in X: f32[i]\n"
               "  out Y: f32[i]\n"
               "  Y[i_2] = X[i_2]  for i_2 in 0:i\n"
               "  Y[i_3] += 1.0  for i_3 in 0:i\n");
}

static void symbols_that_must_agree(void **state)
{
    check_nest(*state, "(X[n], Y[n], Z[n]) -> V: V[i] = X[i] + Y[i] + Z[i]",
               "f32[s]; f32[t]; f32[8]",
               "nest notation sizes s in 0:1048576, t in 0:1048576\n"
               "  in X: f32[s]\n"
               "  in Y: f32[t]\n"
               "  in Z: f32[8]\n"
               "  out V: f32[8]\n"
               "  require s == t\n"
               "  require s == 8\n"
               "  V[i] = X[i] + Y[i] + Z[i]  for i in 0:8\n");
}

static void packs_broadcast(void **state)
{
    check_nest(*state, "(A[*b], B[*b]) -> C: C[*b] = A[*b] + B[*b]",
               "f32[s, 1, 4]; f32[8, 3, 1, 4]",
               "nest notation sizes s in 0:1048576\n"
               "  in A: f32[s, 1, 4]\n"
               "  in B: f32[8, 3, 1, 4]\n"
               "  out C: f32[8, 3, 1, 4]\n"
               "  require s == 3\n"
               "  C[b0, b1, b2, b3] = A[b1, b2, b3] + B[b0, b1, b2, b3]  for b0 in 0:8, b1 in 0:3, "
               "b2 in 0:1, b3 in 0:4\n");
    check_nest(*state, "(A[*b], B[*b]) -> C: C[*b] = A[*b] + B[*b]", "f32[s]; f32[1]",
               "nest notation sizes s in 0:1048576\n"
               "  in A: f32[s]\n"
               "  in B: f32[1]\n"
               "  out C: f32[s]\n"
               "  C[b0] = A[b0] + B[0]  for b0 in 0:s\n");
    check_nest(*state, "(A[n, *b, m]) -> C: C[*b, i] +=! A[j, *b, i]", "f32[2, 3, 4, 5]",
               "nest notation\n"
               "  in A: f32[2, 3, 4, 5]\n"
               "  out C: f32[3, 4, 5]\n"
               "  C[b0, b1, i] +=! A[j, b0, b1, i]  for b0 in 0:3, b1 in 0:4, i in 0:5, "
               "j in 0:2 (reduction)\n");
}

static void half_sums_have_an_accumulator(void **state)
{
    check_nest(*state, MATMUL, "f16[2, 3]; f16[3, 4]",
               "nest matmul\n"
               "  in A: f16[2, 3]\n"
               "  in B: f16[3, 4]\n"
               "  out C: f16[2, 4]\n"
               "  temp C_acc: f32[2, 4]\n"
               "  C_acc[i, j] +=! cast(f32, A[i, r]) * cast(f32, B[r, j])  for i in 0:2, j in 0:4, "
               "r in 0:3 (reduction)\n"
               "  C[i_2, j_2] = cast(f16, C_acc[i_2, j_2])  for i_2 in 0:2, j_2 in 0:4\n");
    check_nest(*state, "(C[m], A[m, k]) -> C: C[i] += A[i, r]", "bf16[2]; bf16[2, 3]",
               "nest notation\n"
               "  inout C: bf16[2]\n"
               "  in A: bf16[2, 3]\n"
               "  temp C_acc: f32[2]\n"
               "  C_acc[i_2] = cast(f32, C[i_2])  for i_2 in 0:2\n"
               "  C_acc[i] += cast(f32, A[i, r])  for i in 0:2, r in 0:3 (reduction)\n"
               "  C[i_3] = cast(bf16, C_acc[i_3])  for i_3 in 0:2\n");
    check_nest(*state, "(A[m, k]) -> C: C[i] max=! A[i, r]; C[i] max= A[i, r] * 0.1", "f16[2, 3]",
               "nest notation\n"
               "  in A: f16[2, 3]\n"
               "  out C: f16[2]\n"
               "  C[i] max=! A[i, r]  for i in 0:2, r in 0:3 (reduction)\n"
               "  C[i_2] max= cast(f16, cast(f32, A[i_2, r_2]) * 0.1)  for i_2 in 0:2, "
               "r_2 in 0:3 (reduction)\n");
}

/* A sum in half precision that reads its own earlier points takes turns with its temporary. */
static void half_recurrence_becomes_a_group(void **state)
{
    check_nest(
        *state,
        "(X[T, B, D], W[D, D]) -> S: S[b, t, d] +=! select(t == 0, X[0, b, e], S[b, t - 1, e]) * "
        "W[e, d] "
        "where t in 0:T",
        "f16[4, 2, 3]; f16[3, 3]",
        "nest notation\n"
        "  in X: f16[4, 2, 3]\n"
        "  in W: f16[3, 3]\n"
        "  out S: f16[2, 4, 3]\n"
        "  temp S_acc: f32[2, 4, 3]\n"
        "  over 0: S_acc[b, t, d] +=! select(t == 0, cast(f32, X[0, b, e]), cast(f32, S[b, t - 1, "
        "e])) * "
        "cast(f32, W[e, d])  for t in 0:4, b in 0:2, d in 0:3, e in 0:3 (reduction)\n"
        "  over 0: S[b_2, t_2, d_2] = cast(f16, S_acc[b_2, t_2, d_2])  for t_2 in 0:4, b_2 in 0:2, "
        "d_2 in 0:3\n");
}

static void ranges_are_solved(void **state)
{
    check_nest(*state,
               "conv(X[C, L], F[O, C, K], s: const, d: const) -> Y: Y[o, x] +=! X[c, s*x + d*k] * "
               "F[o, c, k]",
               "f32[3, l]; f32[4, 3, 5]; s = 2; d = 3; l in 13:99",
               "nest conv sizes l in 13:99\n"
               "  in X: f32[3, l]\n"
               "  in F: f32[4, 3, 5]\n"
               "  out Y: f32[4, (l + 1) / 2 - 6]\n"
               "  Y[o, x] +=! X[c, 3*k + 2*x] * F[o, c, k]  for o in 0:4, x in 0:(l + 1) / 2 - 6, "
               "c in 0:3 (reduction), k in 0:5 (reduction)\n");
    check_nest(*state, "(X[n], F[k]) -> Y: Y[i] +=! X[i + j] * F[j]",
               "f32[n]; f32[k]; n in 4:9; k in 1:9",
               "nest notation sizes n in 4:9, k in 1:9\n"
               "  in X: f32[n]\n"
               "  in F: f32[k]\n"
               "  out Y: f32[n - k + 1]\n"
               "  require n - k + 1 >= 0\n"
               "  Y[i] +=! X[i + j] * F[j]  for i in 0:n - k + 1, j in 0:k (reduction)\n");
    check_nest(*state, "(X[(g c)], Z[c]) -> Y: Y[i, j] = X[i*c + j] * Z[j]",
               "f32[4*c]; f32[c]; c in 1:9",
               "nest notation sizes c in 1:9\n"
               "  in X: f32[4*c]\n"
               "  in Z: f32[c]\n"
               "  out Y: f32[4, c]\n"
               "  Y[i, j] = X[c*i + j] * Z[j]  for i in 0:4, j in 0:c\n");
    check_nest(*state, "(X[n]) -> Y: Y[i] = X[n - 1 - i]", "f32[s]",
               "nest notation sizes s in 0:1048576\n"
               "  in X: f32[s]\n"
               "  out Y: f32[s]\n"
               "  Y[i] = X[s - i - 1]  for i in 0:s\n");
    check_nest(*state, "(D[r], B[34*r]) -> Y: Y[j] = D[j / 32] * B[34*(j / 32) + 2 + j % 32]",
               "f32[r]; f32[34*r]; r in 1:9",
               "nest notation sizes r in 1:9\n"
               "  in D: f32[r]\n"
               "  in B: f32[34*r]\n"
               "  out Y: f32[32*r]\n"
               "  Y[j] = D[j / 32] * B[34*(j / 32) + j % 32 + 2]  for j in 0:32*r\n");
    check_nest(*state, "(X[n], Z[m]) -> Y: Y[i] = X[2*i] + Z[i + 1]", "f32[20]; f32[8]",
               "nest notation\n"
               "  in X: f32[20]\n"
               "  in Z: f32[8]\n"
               "  out Y: f32[7]\n"
               "  Y[i] = X[2*i] + Z[i + 1]  for i in 0:7\n");
}

/* The parts of an operand that a condition guards decide a range only where nothing else does. */
static void guards_step_back(void **state)
{
    check_nest(*state,
               "concat(A[m, k], B[n, k]) -> Y: f32[m + n, k]: Y[i, j] = select(i < m, A[i, j], B[i "
               "- m, j])",
               "f32[2, 5]; f32[s, 5]",
               "nest concat sizes s in 0:1048576\n"
               "  in A: f32[2, 5]\n"
               "  in B: f32[s, 5]\n"
               "  out Y: f32[s + 2, 5]\n"
               "  Y[i, j] = select(i < 2, A[i, j], B[i - 2, j])  for i in 0:s + 2, j in 0:5\n");
    check_nest(*state, "pad(X[n], p: const) -> Y[n + 2*p]: Y[i] = X[i - p] else -1",
               "f32[6]; p = 2",
               "nest pad\n"
               "  in X: f32[6]\n"
               "  out Y: f32[10]\n"
               "  Y[i] = select(i - 2 >= 0 && i - 2 < 6, X[i - 2], -1.0)  for i in 0:10\n");
    check_nest(*state, "(X[n, m]) -> Y: Y[i, j] = X[i, j] else 0", "f32[6, 2]",
               "nest notation\n"
               "  in X: f32[6, 2]\n"
               "  out Y: f32[6, 2]\n"
               "  Y[i, j] = X[i, j]  for i in 0:6, j in 0:2\n");
    check_nest(
        *state,
        "(O[E1], X[T, K], W[E, K]) -> Y: Y[t] +=! X[t, k] * W[e, k] where O[e] <= t && t < O[e + "
        "1]",
        "i32[5]; f32[s, 3]; f32[4, 3]",
        "nest notation sizes s in 0:1048576\n"
        "  in O: i32[5]\n"
        "  in X: f32[s, 3]\n"
        "  in W: f32[4, 3]\n"
        "  out Y: f32[s]\n"
        "  Y[t] +=! X[t, k] * W[e, k]  for t in 0:s, k in 0:3 (reduction), e in 0:4 (reduction)  "
        "where cast(index, O[e]) <= t && t < cast(index, O[e + 1])\n");
}

static void attributes_are_put_in(void **state)
{
    check_nest(
        *state,
        "(X[n], k: const = 3, p: size in 1:8, a: typeof(X) = 0.1, c: i32 = 2, t: type) -> Y: t[n], "
        "Z: u8[k + p]: "
        "Y[i] = cast(t, X[i] * a + k) * cast(t, p) + c; Z[i] = k",
        "f16[q]; p = q; t = f32; q in 1:100",
        "nest notation sizes q in 1:100\n"
        "  in X: f16[q]\n"
        "  out Y: f32[q]\n"
        "  out Z: u8[q + 3]\n"
        "  require q <= 8\n"
        "  Y[i] = cast(f32, X[i] * 0.099975586:f16 + 3.0:f16) * cast(f32, q) + 2.0  for i in 0:q\n"
        "  Z[i_2] = 3:u8  for i_2 in 0:q + 3\n");
}

/* What is no constant: an index as an integer, and a scalar that only the running program knows. */
static void attributes_may_be_symbols(void **state)
{
    fixture *f = *state;
    f->text = "(X[n], k: i64, a: f32) -> Y: Y[i] = (X[i] - k) * cast(i64, a)";
    try_parse(f);
    const kn_expr *s = kn_var(f->a, KN_INDEX, "s"), *eight = kn_index(f->a, 8);
    kn_operand x = {KN_I64, 1, &eight};
    kn_attr_value attrs[] = {{"k", kn_cast(f->a, KN_CAST_CAST, KN_I64, s), KN_I64},
                             {"a", kn_var(f->a, KN_F32, "alpha"), KN_F32}};
    kn_nest *nest = kn_elaborate(f->a, f->notation, &x, 1, attrs, 2, NULL, 0, kn_loc_none());
    kn_str text = kn_str_make(f->a);
    kn_nest_print(&text, nest);
    assert_string_equal(kn_str_get(&text),
                        "nest notation sizes s in 0:1048576\n"
                        "  in X: i64[8]\n"
                        "  out Y: i64[8]\n"
                        "  Y[i] = (X[i] - cast(i64, s)) * cast(i64, alpha)  for i in 0:8\n");
}

static void constants_choose(void **state)
{
    check_nest(*state, "(A[m, n], t: const) -> Y: Y[i, j] = select(t == 1, A[j, i], A[i, j])",
               "f32[2, 3]; t = 1",
               "nest notation\n"
               "  in A: f32[2, 3]\n"
               "  out Y: f32[3, 2]\n"
               "  Y[i, j] = A[j, i]  for i in 0:3, j in 0:2\n");
}

static void groups(void **state)
{
    check_nest(
        *state,
        "rnn(X[T, D], R[D, D], h0[D]) -> H: over t { U[t, j] +=! R[j, k] * select(t == 0, h0[k], "
        "H[t - 1, k]); "
        "H[t, j] = tanh(U[t, j] + X[t, j]) }",
        "f32[s, 3]; f32[3, 3]; f32[3]",
        "nest rnn sizes s in 0:1048576\n"
        "  in X: f32[s, 3]\n"
        "  in R: f32[3, 3]\n"
        "  in h0: f32[3]\n"
        "  out H: f32[s, 3]\n"
        "  temp U: f32[s, 3]\n"
        "  over 0: U[t, j] +=! R[j, k] * select(t == 0, h0[k], H[t - 1, k])  for t in 0:s, j in "
        "0:3, "
        "k in 0:3 (reduction)\n"
        "  over 0: H[t_2, j_2] = tanh(U[t_2, j_2] + X[t_2, j_2])  for t_2 in 0:s, j_2 in 0:3\n");
}

static void split_starts_what_the_target_stands_for(void **state)
{
    fixture *f = *state;
    const char *text = "(X[n], I[n]) -> Y: typeof(X)[4, 2], M: Y[I[i], 0] +=! X[i]; M[] max=! "
                       "X[i]; strict Y[3, 1] *=! X[i]";
    kn_str s = kn_str_make(f->a);
    kn_nest_print(&s, kn_nest_split(f->a, elaborate(f, text, "i32[5]; i64[5]")));
    assert_string_equal(kn_str_get(&s), "nest notation\n"
                                        "  in X: i32[5]\n"
                                        "  in I: i64[5]\n"
                                        "  out Y: i32[4, 2]\n"
                                        "  out M: i32[]\n"
                                        "  Y[d0, 0] = 0:i32  for d0 in 0:4\n"
                                        "  Y[cast(index, I[i]), 0] += X[i]  for i in 0:5\n"
                                        "  M[] = -2147483648:i32\n"
                                        "  M[] max= X[i_2]  for i_2 in 0:5 (reduction)\n"
                                        "  Y[3, 1] = 1:i32\n"
                                        "  strict Y[3, 1] *= X[i_3]  for i_3 in 0:5 (reduction)\n");
}

static void equal_uses_print_equal(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->a), t = kn_str_make(f->a);
    kn_nest_print(&s, elaborate(f, MATMUL, "f16[4, s, 48]; f16[48, 64]"));
    kn_nest_print(&t, elaborate(f, MATMUL, "f16[4, s, 48]; f16[48, 64]"));
    assert_string_equal(kn_str_get(&s), kn_str_get(&t));
}

/* ---- diagnostics ---- */

typedef struct {
    const char *text, *use;
    int column;
    const char *message;
} bad;

static void check_bad(fixture *f, const bad *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        f->text = cases[i].text;
        f->use = cases[i].use;
        expect_diag(f, kn_protect(f->ctx, try_elaborate, f), cases[i].column, cases[i].message);
    }
}
#define CHECK_BAD(f, cases) check_bad(f, cases, sizeof(cases) / sizeof *(cases))

static void wrong_operands(void **state)
{
    static const bad cases[] = {
        {MATMUL, "f32[2, 3]", 1, "matmul: 2 operands, but 1 are given"},
        {MATMUL, "f32[2]; f32[2, 3]", 1, "matmul: `A` has rank 1, which does not fit A[*b, m, k]"},
        {MATMUL, "f32[1,1,1,1,1,1,1,1,1,1,1,1,1]; f32[2, 3]", 1,
         "matmul: `A` has rank 13, at most 12 are supported"},
        {MATMUL, "f32[2, 48]; f32[47, 3]", 1, "matmul: size `k` is 48 in `A` but 47 in `B`"},
        {MATMUL, "f32[2, s]; f32[47, 3]; s in 1:40", 1,
         "matmul: size `k` is s in `A` but 47 in `B`"},
        {MATMUL, "f32[3, 2, 4]; f32[5, 4, 3]", 1,
         "matmul: pack `*b` does not broadcast: dimension 1 of it is 3 in `A` and 5 in `B`"},
        {"a(X[16, n]) -> Y: Y[i] = X[0, i]", "f32[15, 2]", 1,
         "a: dimension 1 of `X` is 15, but must be 16"},
        {"a(X[n, n + 1]) -> Y: Y[i] = X[i, i]", "f32[4, 4]", 1,
         "a: dimension 2 of `X` is 4, but n + 1 is 5"},
        {"a(X[2*h]) -> Y: Y[i] = X[i]", "f32[5]", 1,
         "a: dimension 1 of `X` is 5, which 2*h is for no size `h`"},
        {"a(X[(g c)]) -> Y: Y[i] = X[i]", "f32[6]", 1,
         "a: dimension 1 of `X`, g * c, has more than one unknown size"},
        {"a(X[(g c), g]) -> Y: Y[i] = X[i, 0]", "f32[s, t]", 1,
         "a: dimension 1 of `X` is s, which g * c is for no size `c`"},
        {"a(X[h / 2]) -> Y: Y[i] = X[i]", "f32[6]", 1,
         "a: cannot solve h / 2 = 6 (dimension 1 of `X`) for `h`"},
        {"a(X[h * 1.5]) -> Y: Y[i] = X[i]", "f32[6]", 1, "a: `1.5` is not an expression of sizes"},
        {"a(X[n < 3]) -> Y: Y[i] = X[i]", "f32[6]", 1, "a: `n < 3` is not an expression of sizes"},
        {"a(X[exp(h)]) -> Y: Y[i] = X[i]", "f32[6]", 1,
         "a: `exp(h)` is not an expression of sizes"},
        {"a(X: u8[n]) -> Y: Y[i] = X[i]", "i8[6]", 1, "a: `X` is i8, but must be u8"},
        {"a(X[n], Z: typeof(X)[n]) -> Y: Y[i] = X[i]", "i8[6]; u8[6]", 1,
         "a: `Z` is u8, but must be i8"},
        {"a(X[n]) -> Y[n - 9]: Y[i] = X[i]", "f32[6]", 1,
         "a: -3 >= 0 for dimension 1 of `Y` does not hold"},
        {"a(X[n]) -> X[n + 1]: X[i] = 0", "f32[6]", 1,
         "a: `X` does not have the shape that is declared for it as a result"},
        {"a(X[n]) -> Y: require n % 4 == 0; Y[i] = X[i]", "f32[6]", 1,
         "a: require n % 4 == 0 does not hold"},
        {"a(X[n]) -> Y: require n % 4; Y[i] = X[i]", "f32[6]", 1,
         "a: `n % 4` is not a condition on sizes"},
    };
    CHECK_BAD(*state, cases);
}

static void wrong_attributes(void **state)
{
    static const bad cases[] = {
        {"a(X[n], k: const) -> Y: Y[i] = X[i]", "f32[6]", 1, "a: attribute `k: const` is missing"},
        {"a(X[n], k: const) -> Y: Y[i] = X[i]", "f32[6]; k = 1; j = 2", 1,
         "a: there is no attribute `j`"},
        {"a(X[n], k: const) -> Y: Y[i] = X[i]", "f32[6]; k = s", 1,
         "a: attribute `k` must be a constant, not s"},
        {"a(X[n], k: const) -> Y: Y[i] = X[i]", "f32[6]; k = 1.5", 1,
         "a: attribute `k` must be an integer, not 1.5"},
        {"a(X[n], k: size in 1:4) -> Y: Y[i] = X[i]", "f32[6]; k = 5", 1,
         "a: attribute `k` is 5, outside of 1:4"},
        {"a(X[n], k: size) -> Y: Y[i] = X[i]", "f32[6]; k = 1.5", 1,
         "a: attribute `k` must be a size, not 1.5"},
        {"a(X[n], k: i32) -> Y: Y[i] = X[i]", "f32[6]; k = 1.5", 1,
         "a: attribute `k` is 1.5, but must be i32"},
        {"a(X[n], k: f32) -> Y: Y[i] = X[i]", "f32[6]; k = s", 1,
         "a: attribute `k` must be a constant, not s"},
        {"a(X[n], k: f32) -> Y: Y[i] = X[i] where i in 0:k", "f32[6]; k = 2.5", 23,
         "a: the literal 2.5 does not fit index"},
        {"a(X[n], k: f32) -> Y[k]: Y[i] = X[i]", "f32[6]; k = 2.5", 1,
         "a: attribute `k` is not a size"},
        {"a(X[n], t: type) -> Y: Y[i] = X[i]", "f32[6]; t = index", 1,
         "a: attribute `t` must be an element type"},
    };
    CHECK_BAD(*state, cases);
}

static void wrong_ranges(void **state)
{
    static const bad cases[] = {
        {"a(X[n]) -> Y: Y[i, j] = X[i + j]", "f32[6]", 15,
         "a: indices `i` and `j` bound each other: give one a range, where i in 0:..."},
        {"a(X[n]) -> Y: Y[i, j] = X[i]", "f32[6]", 15,
         "a: nothing gives index `j` a range: add where j in 0:..."},
        {"a(X[n]) -> Y: Y[i] = X[i % 4]", "f32[6]", 15,
         "a: nothing gives index `i` a range: add where i in 0:..."},
        {"a(X[n]) -> Y: Y[i] = X[i + i / 2]", "f32[6]", 15,
         "a: nothing gives index `i` a range: add where i in 0:..."},
        {"a(X[n], Z[m]) -> Y: Y[i] = X[i] * Z[i]", "f32[6]; f32[7]", 21,
         "a: index `i` runs over 6 in `X` but over 7 in `Z`"},
        {"a(X[n], Z[m]) -> Y: over t { Y[t] = X[t]; V[t] = Z[t] }", "f32[6]; f32[7]", 43,
         "a: index `t` runs over 6 in `X` but over 7 in `Z`"},
        {"a(X[n], F[k]) -> Y: Y[i] +=! X[i + j] * F[j]", "f32[6]; f32[9]", 21,
         "a: room for index `i`: -2 >= 0 does not hold"},
        {"a(X[n]) -> Y: Y[i + 1] = X[i]", "f32[6]", 15,
         "a: subscript i + 1 of `Y` does not tell its size: declare the shape after ->"},
        {"a(X[n]) -> Y: Y[i] = X[i + 1] * X[i]", "f32[6]", 15,
         "a: subscript i + 1 of `X` reaches 6, but dimension 1 is 6"},
        {"a(X[n]) -> Y: Y[i] = X[i - 1]", "f32[6]", 15, "a: subscript i - 1 of `X` falls to -1"},
        {"a(X[n]) -> Y: Y[i] = X[8 * (i / 3) + 1] where i in 0:4", "f32[6]", 15,
         "a: subscript 8*(i / 3) + 1 of `X` reaches 9, but dimension 1 is 6"},
        {"a(X[n]) -> Y: Y[i] = X[i + 1] * X[i]", "f32[s]", 15,
         "a: subscript i + 1 of `X` reaches s, but dimension 1 is s"},
        {"a(X[n]) -> Y[2]: Y[2] +=! X[i]", "f32[s]", 18,
         "a: subscript 2 of `Y` reaches 2, but dimension 1 is 2"},
        {"a(X[n]) -> Y: Y[i] = X[i, i]", "f32[6]", 15, "a: `X` has rank 1, but 2 subscripts"},
        {"a(X[*b]) -> Y: Y[i] +=! X[*b, i]", "f32[]", 16,
         "a: `X` has rank 0, but 1 subscripts beside the pack"},
        {"a(X[*b], Z[*b]) -> Y: Y[*b] = X[*b]; Y[*b] += Z[*b]", "f32[3]; f32[2, 3]", 38,
         "a: dimension 1 of pack `*b` is 2, but the target `Y` has none there"},
        {"a(X[*b], Z[*b]) -> Y: Y[*b] = X[*b]; Y[*b] += Z[*b]", "f32[1]; f32[3]", 38,
         "a: dimension 1 of pack `*b` is 3, but the target `Y` has 1 there"},
        {"a(X[n]) -> Y: Y[i, j] = X[i * j] where i in 0:2, j in 0:2", "f32[6]", 15,
         "a: subscript i*j of `X` multiplies indices"},
        {"a(X[n]) -> Y: Y[i] = X[i / n] where i in 0:2", "f32[s]", 15,
         "a: subscript i / s of `X` divides by s, which is no positive constant"},
        {"a(X[n]) -> Y: Y[i] = X[i / 0] where i in 0:2", "f32[s]", 15, "a: i / 0 divides by zero"},
        {"a(X[n, n]) -> Y: Y[i, j] = X[i, j] where i in 0:j + 1", "f32[6, 6]", 18,
         "a: the range of `i` uses index `j`, which does not come before it"},
        {"a(X[n], Z[n]) -> Y: Y[i] +=! X[j] where j in 0:Z[i], i in 0:n", "f32[6]; i32[6]", 21,
         "a: the range of `j` reads a tensor: write it as a condition, where COND"},
    };
    CHECK_BAD(*state, cases);
}

static void wrong_types(void **state)
{
    static const bad cases[] = {
        {"a(X[n], Z[n]) -> Y: Y[i] = X[i] + Z[i]", "f32[6]; f16[6]", 21,
         "a: `+` of f32 and f16: X[i], Z[i]"},
        {"a(X[n]) -> Y: Y[i] = X[i] + i", "f32[6]", 15,
         "a: i is an index where f32 is wanted: it needs a cast, cast(f32, i)"},
        {"a(X[n]) -> Y: Y[i] = X[i] * n", "f32[s]", 15,
         "a: s is an index where f32 is wanted: it needs a cast, cast(f32, s)"},
        {"a(X[n]) -> Y: Y[i] = i where i in 0:n", "f32[6]", 15,
         "a: the right side of `Y` is an index: it needs a cast to a value type"},
        {"a(X[n]) -> Y: Y[i] = 1 where i in 0:n", "f32[6]", 15,
         "a: the type of `Y` is not known: declare it after ->, or cast the right side"},
        {"a(X[n]) -> Y: i32[n]: Y[i] = X[i]", "f32[6]", 23,
         "a: the right side of `Y` is f32, but must be i32"},
        {"a(X[n]) -> Y: Y[i] = exp(X[i])", "i32[6]", 15, "a: `exp` does not take i32"},
        {"a(X[n]) -> Y: Y[i] = exp(i) where i in 0:4", "i32[6]", 15,
         "a: the right side of `Y` is an index: it needs a cast to a value type"},
        {"a(X[n]) -> Y: Y[i] = X[i] * exp(i)", "f32[6]", 15,
         "a: `exp` of an index: i needs a cast to a value type"},
        {"a(X[n]) -> Y: Y[i] = X[i] & 1", "f32[6]", 15, "a: `&` does not take f32"},
        {"a(X[n]) -> Y: Y[i] = X[i] + X[i]", "bool[6]", 15, "a: `+` does not take bool"},
        {"a(X[n]) -> Y: Y[i] = X[i] && X[i]", "u8[6]", 15, "a: X[i] is u8 where bool is wanted"},
        {"a(X[n]) -> Y: Y[i] = select(X[i], 1, 2)", "f32[6]", 15,
         "a: the type of `Y` is not known: declare it after ->, or cast the right side"},
        {"a(X[n]) -> Y: Y[i] = X[i] * 1.5", "i32[6]", 15, "a: the literal 1.5 does not fit i32"},
        {"a(X[n]) -> Y: Y[i] = X[i] * 300", "u8[6]", 15, "a: the literal 300 does not fit u8"},
        {"a(X[n]) -> Y: Y[i] = X[i] * -1", "u8[6]", 15, "a: the literal -1 does not fit u8"},
        {"a(X[n]) -> Y: Y[i] = bitcast(u16, X[i])", "f32[6]", 15,
         "a: bitcast of f32 to u16, which is not of the same width"},
        {"a(X[n], W[m]) -> Y: Y[i] = W[X[i]]", "f32[6]; f32[9]", 21,
         "a: a subscript reads `X`, which is f32 and not an integer"},
        {"a(X[n], W[m]) -> Y: Y[i] = W[cast(f32, X[i])]", "f32[6]; f32[9]", 21,
         "a: X[i] is f32 where an index is wanted"},
        {"a(X[n], W[m]) -> Y: Y[i] = W[1.5] * X[i]", "f32[6]; f32[9]", 21,
         "a: the literal 1.5 does not fit index"},
        {"a(X[n]) -> Y: Y[] +=! X[i]", "bool[6]", 15, "a: += on bool: cast to an integer first"},
        {"a(X[n]) -> Y: Y[i] = X[i] where X[i]", "f32[6]", 15,
         "a: the condition after `where` is f32, but must be bool"},
    };
    CHECK_BAD(*state, cases);
}

static void wrong_order(void **state)
{
    static const bad cases[] = {
        {"a(X[n]) -> Y: Y[i] = select(i == 0, 0, Y[i]) + X[i]", "f32[6]", 15,
         "a: `Y` reads the point that it defines"},
        {"a(X[n]) -> Y: Y[i] = select(i + 1 < n, Y[i + 1], 0) + X[i]", "f32[6]", 15,
         "a: `Y` reads itself at i + 1 in dimension 1, which is not an earlier point than i"},
        {"a(X[n, T], W[n, n]) -> Y: Y[i, t] +=! select(t == 0, X[k, t], Y[k, t - 1]) * W[k, i]",
         "f32[6, 4]; f32[6, 6]", 27,
         "a: `Y` reads itself at k in dimension 1, which is not an earlier point than i"},
        {"a(X[T]) -> Y, Z: over t { Y[t] = X[t] + Z[t]; Z[t] = X[t] }", "f32[6]", 27,
         "a: `Z` is read at t, which is not yet computed then"},
        {"a(X[T]) -> Y, Z: over t { Y[t] = X[t]; Z[t] = X[t] + Y[t + 1] }", "f32[6]", 40,
         "a: `Y` is read at t + 1, which is not yet computed then"},
        {"a(X[T]) -> Y: Y[t] +=! select(t == 0, X[k], Y[t - 1] * Y[t / 2 - 1]) where t in 0:T",
         "f16[6]", 15, "a: `Y`, a sum in half precision, reads itself: write it with `over`"},
    };
    CHECK_BAD(*state, cases);
}

/* At a node of a graph, the message stands there and a note points into the notation. */
static void a_use_is_named_first(void **state)
{
    fixture *f = *state;
    f->text = MATMUL;
    f->use = "f32[2, 48]; f16[48, 3]";
    f->loc = (kn_loc){"model.onnx", 0, 0, "node 'fc1'"};
    assert_int_equal(kn_protect(f->ctx, try_elaborate, f), KN_INVALID);
    assert_int_equal(kn_diag_count(f->ctx), 2);
    const kn_diag *d = kn_diag_get(f->ctx, 0), *note = kn_diag_get(f->ctx, 1);
    assert_string_equal(d->where, "node 'fc1'");
    assert_string_equal(d->file, "model.onnx");
    assert_string_equal(d->message, "matmul: `*` of f32 and f16: A[i, r], B[r, j]");
    assert_int_equal(note->severity, KN_NOTE);
    assert_string_equal(note->file, "test.def");
    assert_int_equal(note->column, 40);
    assert_string_equal(note->message, "in this notation");
}

/* What the index algebra refuses is refused at the statement, too. */
static void overflow_has_a_place(void **state)
{
    fixture *f = *state;
    f->text = "a(X[n]) -> Y: Y[i] = X[9223372036854775807 * i + 9223372036854775807 * i]";
    f->use = "f32[8]";
    assert_int_equal(kn_protect(f->ctx, try_elaborate, f), KN_INVALID);
    const kn_diag *d = kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1);
    assert_string_equal(d->message, "a: while this was elaborated");
    assert_int_equal(d->column, 15);
}

/* ---- numbers ---- */

static double number(const array *x, int64_t i)
{
    assert_true(i >= 0 && i < x->n);
    return kn_dtype_is_float(x->type) ? x->at[i].f : (double)x->at[i].i;
}

static void near(const array *x, int64_t i, double expected)
{
    double got = number(x, i);
    if (!(fabs(got - expected) <= 1e-5 * (1 + fabs(expected)))) {
        fail_msg("element %lld is %.9g, expected %.9g", (long long)i, got, expected);
    }
}

static void matmul_in_batches(void **state)
{
    enum { N = 2, M = 3, K = 5, J = 4 };
    const int64_t sizes[] = {M};
    machine m = load(*state, MATMUL, "f32[2, m, 5]; f32[2, 5, 4]; m in 0:9", sizes);
    run(&m);
    const array *a = tensor(&m, "A"), *b = tensor(&m, "B"), *c = tensor(&m, "C");
    for (int n = 0; n < N; n++) {
        for (int i = 0; i < M; i++) {
            for (int j = 0; j < J; j++) {
                double s = 0;
                for (int k = 0; k < K; k++) {
                    s += number(a, (n * M + i) * K + k) * number(b, (n * K + k) * J + j);
                }
                near(c, (n * M + i) * J + j, s);
            }
        }
    }
}

static void matmul_in_half_rounds_once(void **state)
{
    enum { M = 2, K = 40, J = 3 };
    machine m = load(*state, MATMUL, "f16[2, 40]; f16[40, 3]", NULL);
    for (int64_t i = 0; i < M * K; i++) {
        tensor(&m, "A")->at[i].f = (double)kn_f16_to_f32(kn_f32_to_f16((float)i * 0.173f));
    }
    run(&m);
    const array *a = tensor(&m, "A"), *b = tensor(&m, "B"), *c = tensor(&m, "C");
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < J; j++) {
            float s = 0;
            for (int k = 0; k < K; k++) {
                s += (float)number(a, i * K + k) * (float)number(b, k * J + j);
            }
            assert_true(number(c, i * J + j) == (double)kn_f16_to_f32(kn_f32_to_f16(s)));
        }
    }
}

static void softmax(void **state)
{
    enum { R = 3, N = 7 };
    const int64_t sizes[] = {N};
    machine m =
        load(*state,
             "softmax(X[*b, n]) -> Y: M[*b] max=! X[*b, j]; E[*b, j] = exp(X[*b, j] - M[*b]); "
             "S[*b] +=! E[*b, j]; Y[*b, j] = E[*b, j] / S[*b]",
             "f32[3, s]", sizes);
    run(&m);
    const array *x = tensor(&m, "X"), *y = tensor(&m, "Y");
    for (int i = 0; i < R; i++) {
        double s = 0;
        for (int j = 0; j < N; j++) {
            s += exp(number(x, i * N + j));
        }
        for (int j = 0; j < N; j++) {
            near(y, i * N + j, exp(number(x, i * N + j)) / s);
        }
    }
}

static void rmsnorm(void **state)
{
    enum { R = 2, N = 6 };
    machine m =
        load(*state,
             "rmsnorm(X[*b, n], W[n], eps: f32) -> Y: F[*b, j] = cast(f32, X[*b, j]); S[*b] +=! "
             "F[*b, j] * F[*b, j]; "
             "Y[*b, j] = cast(typeof(X), F[*b, j] * rsqrt(S[*b] / cast(f32, n) + eps)) * W[j]",
             "f32[2, 6]; f32[6]; eps = 0.001", NULL);
    run(&m);
    const array *x = tensor(&m, "X"), *w = tensor(&m, "W"), *y = tensor(&m, "Y");
    for (int i = 0; i < R; i++) {
        double s = 0;
        for (int j = 0; j < N; j++) {
            s += number(x, i * N + j) * number(x, i * N + j);
        }
        for (int j = 0; j < N; j++) {
            near(y, i * N + j, number(x, i * N + j) / sqrt(s / (double)N + 0.001) * number(w, j));
        }
    }
}

static void conv1d(void **state)
{
    enum { C = 3, L = 17, O = 2, K = 3, S = 2, D = 3, X = (L - 1 - D * (K - 1)) / S + 1 };
    machine m = load(*state,
                     "conv1d(X[N, C, L], F[O, C, K], s: const, d: const) -> Y: "
                     "Y[n, o, x] +=! X[n, c, s*x + d*k] * F[o, c, k]",
                     "f32[1, 3, 17]; f32[2, 3, 3]; s = 2; d = 3", NULL);
    run(&m);
    const array *x = tensor(&m, "X"), *w = tensor(&m, "F"), *y = tensor(&m, "Y");
    assert_int_equal(y->dims[2], X);
    for (int o = 0; o < O; o++) {
        for (int i = 0; i < X; i++) {
            double s = 0;
            for (int c = 0; c < C; c++) {
                for (int k = 0; k < K; k++) {
                    s += number(x, c * L + S * i + D * k) * number(w, (o * C + c) * K + k);
                }
            }
            near(y, o * X + i, s);
        }
    }
}

static void linear_attention(void **state)
{
    enum { T = 4, K = 3, D = 2 };
    const int64_t sizes[] = {T};
    machine m = load(*state,
                     "linattn(Q[T, K], X[T, K], V[T, D], s0[K, D]) -> Y: "
                     "S[t, k, d] = select(t == 0, s0[k, d], S[t - 1, k, d]) + X[t, k] * V[t, d]; "
                     "Y[t, d] +=! Q[t, k] * S[t, k, d]",
                     "f32[t, 3]; f32[t, 3]; f32[t, 2]; f32[3, 2]", sizes);
    run(&m);
    const array *q = tensor(&m, "Q"), *x = tensor(&m, "X"), *v = tensor(&m, "V"),
                *y = tensor(&m, "Y");
    double s[K][D];
    for (int k = 0; k < K; k++) {
        for (int d = 0; d < D; d++) {
            s[k][d] = number(tensor(&m, "s0"), k * D + d);
        }
    }
    for (int t = 0; t < T; t++) {
        for (int d = 0; d < D; d++) {
            double sum = 0;
            for (int k = 0; k < K; k++) {
                s[k][d] += number(x, t * K + k) * number(v, t * D + d);
                sum += number(q, t * K + k) * s[k][d];
            }
            near(y, t * D + d, sum);
        }
    }
}

static void tile_instruction(void **state)
{
    enum { M = 3, K = 2, N = 2 };
    machine m =
        load(*state,
             "tdpbssd(C[M, N], A[M, K4], B[K, N4]) -> C: "
             "C[i, j] += cast(i32, A[i, 4*k + q]) * cast(i32, B[k, 4*j + q]) where q in 0:4",
             "i32[3, 2]; i8[3, 8]; i8[2, 8]", NULL);
    array *c = tensor(&m, "C");
    int64_t before[M * N];
    for (int i = 0; i < M * N; i++) {
        before[i] = c->at[i].i;
    }
    run(&m);
    const array *a = tensor(&m, "A"), *b = tensor(&m, "B");
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            int64_t s = before[i * N + j];
            for (int k = 0; k < K; k++) {
                for (int q = 0; q < 4; q++) {
                    s += a->at[i * 8 + 4 * k + q].i * b->at[k * 8 + 4 * j + q].i;
                }
            }
            assert_int_equal(c->at[i * N + j].i, s);
        }
    }
}

static void q8_0(void **state)
{
    enum { R = 2, BLOCKS = 3 };
    const int64_t sizes[] = {BLOCKS};
    machine m = load(*state,
                     "q8_0(B[R, N]) -> Y: D[r, k] = bitcast(f16, cast(u16, B[r, 34*k]) | cast(u16, "
                     "B[r, 34*k + 1]) << 8); "
                     "Y[r, j] = cast(f32, D[r, j / 32]) * cast(f32, bitcast(i8, B[r, 34*(j / 32) + "
                     "2 + j % 32]))",
                     "u8[2, 34*n]", sizes);
    array *b = tensor(&m, "B");
    for (int64_t i = 0; i < b->n; i++) {
        b->at[i].i = i % 34 == 1 ? 0x2c + i / 34 : (i * 53) & 255;
    }
    run(&m);
    const array *y = tensor(&m, "Y");
    assert_int_equal(y->n, R * BLOCKS * 32);
    for (int64_t j = 0; j < y->n; j++) {
        const kn_number *block = &b->at[j / 32 * 34];
        float d = kn_f16_to_f32((uint16_t)(block[0].i | block[1].i << 8));
        assert_true(number(y, j) == (double)(d * (float)(int8_t)block[2 + j % 32].i));
    }
}

static void gather_and_scatter(void **state)
{
    machine m = load(
        *state, "(W[V, D], I[n], U[V]) -> Y, U: Y[i, j] = W[I[i], j]; U[I[i]] += 1; U[2] = 100",
        "f32[5, 3]; i32[4]; i64[5]", NULL);
    static const int64_t index[] = {3, 0, 3, 4};
    for (int i = 0; i < 4; i++) {
        tensor(&m, "I")->at[i].i = index[i];
    }
    for (int i = 0; i < 5; i++) {
        tensor(&m, "U")->at[i].i = 0;
    }
    run(&m);
    for (int i = 0; i < 12; i++) {
        near(tensor(&m, "Y"), i, number(tensor(&m, "W"), index[i / 3] * 3 + i % 3));
    }
    static const int counts[] = {1, 0, 100, 2, 1};
    for (int i = 0; i < 5; i++) {
        near(tensor(&m, "U"), i, counts[i]);
    }
}

/* Negative indices count from the end; what lies outside all the same reads as -1. */
static void wrapped_index_with_else(void **state)
{
    machine m =
        load(*state, "(X[n], I[m]) -> Y: Y[i] = X[select(I[i] < 0, I[i] + n, I[i])] else -1",
             "f32[5]; i8[6]", NULL);
    static const int64_t index[] = {-1, 0, 4, 5, -5, -6};
    static const int from[] = {4, 0, 4, -1, 0, -1};
    for (int i = 0; i < 6; i++) {
        tensor(&m, "I")->at[i].i = index[i];
    }
    run(&m);
    for (int i = 0; i < 6; i++) {
        near(tensor(&m, "Y"), i, from[i] < 0 ? -1 : number(tensor(&m, "X"), from[i]));
    }
}

static void padding(void **state)
{
    const int64_t sizes[] = {5};
    machine m =
        load(*state, "(X[n], p: const, q: const) -> Y[n + p + q]: Y[i] = (X[i - p] else 7) * 2",
             "f32[n]; p = 2; q = 3", sizes);
    run(&m);
    for (int i = 0; i < 10; i++) {
        near(tensor(&m, "Y"), i, 2 * (i < 2 || i >= 7 ? 7 : number(tensor(&m, "X"), i - 2)));
    }
}

static void running_sum(void **state)
{
    const int64_t sizes[] = {6};
    machine m =
        load(*state, "cumsum(X[n, m]) -> Y: Y[i, j] = select(i == 0, 0, Y[i - 1, j]) + X[i, j]",
             "f32[s, 2]", sizes);
    run(&m);
    double s[2] = {0, 0};
    for (int i = 0; i < 12; i++) {
        s[i % 2] += number(tensor(&m, "X"), i);
        near(tensor(&m, "Y"), i, s[i % 2]);
    }
}

/* The element of a tensor that NumPy's broadcasting pairs with element `at` of a result. */
static double broadcast(const array *x, const array *to, int64_t at)
{
    int64_t i = 0, stride = 1;
    for (int d = to->rank - 1, e = x->rank - 1; d >= 0; d--, e--) {
        int64_t k = at % to->dims[d];
        at /= to->dims[d];
        if (e >= 0) {
            i += (x->dims[e] == 1 ? 0 : k) * stride;
            stride *= x->dims[e];
        }
    }
    return number(x, i);
}

static void sums_of_all_ranks(void **state)
{
    static const char *const shapes[] = {"f32[]",     "f32[4]",       "f32[1]",
                                         "f32[3, 1]", "f32[2, 3, 4]", "f32[5, 1, 1, 4]"};
    for (int i = 0; i < 36; i++) {
        fixture *f = *state;
        machine m = load(f, "(A[*b], B[*b]) -> C: C[*b] = A[*b] + B[*b]",
                         kn_format(f->a, "%s; %s", shapes[i / 6], shapes[i % 6]), NULL);
        run(&m);
        const array *c = tensor(&m, "C"), *a = tensor(&m, "A"), *b = tensor(&m, "B");
        assert_int_equal(c->rank, a->rank > b->rank ? a->rank : b->rank);
        for (int64_t k = 0; k < c->n; k++) {
            near(c, k, broadcast(a, c, k) + broadcast(b, c, k));
        }
    }
}

static void reductions_over_packs(void **state)
{
    machine m = load(*state,
                     "(X[n, *r]) -> Y, Z: Y[i] +=! X[i, *r]; Z[*r] max=! X[i, *r]; M[] min=! X[i, "
                     "*r]; Z[*r] += M[]",
                     "f32[2, 3, 4]", NULL);
    run(&m);
    const array *x = tensor(&m, "X");
    double least = (double)INFINITY, sum[2] = {0, 0};
    for (int i = 0; i < 24; i++) {
        least = fmin(least, number(x, i));
        sum[i / 12] += number(x, i);
    }
    for (int i = 0; i < 2; i++) {
        near(tensor(&m, "Y"), i, sum[i]);
    }
    for (int i = 0; i < 12; i++) {
        near(tensor(&m, "Z"), i, fmax(number(x, i), number(x, 12 + i)) + least);
    }
}

static void masks(void **state)
{
    enum { T = 5 };
    const int64_t sizes[] = {T};
    machine m =
        load(*state,
             "(X[T, T], V[T]) -> Y, Z, W: Y[i] +=! select(j <= i, X[i, j] * V[j], 0); "
             "Z[i] +=! X[i, j] * V[j] where j <= i; W[i] +=! X[i, j] * V[j] where j in 0:i + 1",
             "f32[t, t]; f32[t]", sizes);
    run(&m);
    for (int i = 0; i < T; i++) {
        double s = 0;
        for (int j = 0; j <= i; j++) {
            s += number(tensor(&m, "X"), i * T + j) * number(tensor(&m, "V"), j);
        }
        near(tensor(&m, "Y"), i, s);
        near(tensor(&m, "Z"), i, s);
        near(tensor(&m, "W"), i, s);
    }
}

/* Rows of X are sorted by expert; O says where each one's begin. */
static void grouped_products(void **state)
{
    enum { T = 6, K = 2, E = 3 };
    machine m = load(*state,
                     "(X[T, K], W[E, K], O[E1]) -> Y: Y[t] +=! X[t, k] * W[e, k] where O[e] <= t "
                     "&& t < O[e + 1]",
                     "f32[6, 2]; f32[3, 2]; i32[4]", NULL);
    static const int64_t first[] = {0, 1, 1, 6};
    for (int i = 0; i < 4; i++) {
        tensor(&m, "O")->at[i].i = first[i];
    }
    run(&m);
    for (int t = 0; t < T; t++) {
        int e = t < 1 ? 0 : 2;
        double s = 0;
        for (int k = 0; k < K; k++) {
            s += number(tensor(&m, "X"), t * K + k) * number(tensor(&m, "W"), e * K + k);
        }
        near(tensor(&m, "Y"), t, s);
    }
}

static void gated_recurrence(void **state)
{
    enum { T = 4, D = 3 };
    const int64_t sizes[] = {T};
    machine m = load(*state,
                     "(X[T, D], R[D, D], h0[D]) -> H: over t { U[t, j] +=! R[j, k] * select(t == "
                     "0, h0[k], H[t - 1, k]); "
                     "G[t, j] = 1 / (1 + exp(-U[t, j])); H[t, j] = G[t, j] * tanh(X[t, j]) }",
                     "f32[s, 3]; f32[3, 3]; f32[3]", sizes);
    run(&m);
    double h[D];
    for (int j = 0; j < D; j++) {
        h[j] = number(tensor(&m, "h0"), j);
    }
    for (int t = 0; t < T; t++) {
        double next[D];
        for (int j = 0; j < D; j++) {
            double u = 0;
            for (int k = 0; k < D; k++) {
                u += number(tensor(&m, "R"), j * D + k) * h[k];
            }
            next[j] = tanh(number(tensor(&m, "X"), t * D + j)) / (1 + exp(-u));
            near(tensor(&m, "H"), t * D + j, next[j]);
        }
        memcpy(h, next, sizeof h);
    }
}

/* On indices and literals / and % are floor, on integer values they truncate. */
static void two_divisions(void **state)
{
    machine m = load(*state,
                     "(X[n]) -> A, B, C: A[i] = X[i] / 3 * 10 + X[i] % 3; B[i] = cast(i32, (i - 4) "
                     "/ 3 * 10 + (i - 4) % 3) where i in 0:8; "
                     "C[i] = floordiv(X[i], 3) * 10 + mod(X[i], 3) + -7 / 2",
                     "i32[8]", NULL);
    for (int i = 0; i < 8; i++) {
        tensor(&m, "X")->at[i].i = i - 4;
    }
    run(&m);
    for (int i = 0; i < 8; i++) {
        int x = i - 4, q = x / 3, r = x % 3;
        int fq = r < 0 ? q - 1 : q, fr = r < 0 ? r + 3 : r;
        near(tensor(&m, "A"), i, q * 10 + r);
        near(tensor(&m, "B"), i, fq * 10 + fr);
        near(tensor(&m, "C"), i, fq * 10 + fr - 4);
    }
}

static void empty_reductions_are_the_identity(void **state)
{
    const int64_t sizes[] = {0};
    machine m =
        load(*state, "(X[m, n]) -> A, B, C: A[i] +=! X[i, j]; B[i] *=! X[i, j]; C[i] max=! X[i, j]",
             "f32[2, s]", sizes);
    run(&m);
    for (int i = 0; i < 2; i++) {
        assert_true(number(tensor(&m, "A"), i) == 0);
        assert_true(number(tensor(&m, "B"), i) == 1);
        assert_true(number(tensor(&m, "C"), i) == -(double)INFINITY);
    }
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nest_of_a_product),
        TEST(indices_give_way_to_symbols),
        TEST(symbols_that_must_agree),
        TEST(packs_broadcast),
        TEST(half_sums_have_an_accumulator),
        TEST(half_recurrence_becomes_a_group),
        TEST(ranges_are_solved),
        TEST(guards_step_back),
        TEST(attributes_are_put_in),
        TEST(attributes_may_be_symbols),
        TEST(constants_choose),
        TEST(groups),
        TEST(split_starts_what_the_target_stands_for),
        TEST(equal_uses_print_equal),
        TEST(wrong_operands),
        TEST(wrong_attributes),
        TEST(wrong_ranges),
        TEST(wrong_types),
        TEST(wrong_order),
        TEST(a_use_is_named_first),
        TEST(overflow_has_a_place),
        TEST(matmul_in_batches),
        TEST(matmul_in_half_rounds_once),
        TEST(softmax),
        TEST(rmsnorm),
        TEST(conv1d),
        TEST(linear_attention),
        TEST(tile_instruction),
        TEST(q8_0),
        TEST(gather_and_scatter),
        TEST(wrapped_index_with_else),
        TEST(padding),
        TEST(running_sum),
        TEST(sums_of_all_ranks),
        TEST(reductions_over_packs),
        TEST(masks),
        TEST(grouped_products),
        TEST(gated_recurrence),
        TEST(two_divisions),
        TEST(empty_reductions_are_the_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
