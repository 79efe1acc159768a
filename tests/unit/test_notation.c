/* Index notation as text: print -> parse -> print, and every diagnostic of the parser with its
   place. What notations mean is in test_elaborate.c. */
#include "notation_help.h"

static const char *printed(fixture *f, const char *text)
{
    f->text = text;
    if (kn_protect(f->ctx, try_parse, f) != KN_OK) {
        print_error("in: %s\n", text);
        print_diags(f);
        fail();
    }
    kn_str s = kn_str_make(f->a);
    kn_notation_print(&s, f->notation);
    return kn_str_get(&s);
}

static void texts_print_as_they_are(void **state)
{
    static const char *const texts[] = {
        "matmul(A[*b, m, k], B[*b, k, n]) -> C: C[*b, i, j] +=! A[*b, i, r] * B[*b, r, j]",
        "softmax(X[*b, n]) -> Y: M[*b] max=! X[*b, j]; E[*b, j] = exp(X[*b, j] - M[*b]); "
        "S[*b] +=! E[*b, j]; Y[*b, j] = E[*b, j] / S[*b]",
        "norm(X[*b, n], W[n], eps: f32) -> Y: F[*b, j] = cast(f32, X[*b, j]); "
        "Y[*b, j] = cast(typeof(X), F[*b, j] + eps) * W[j]",
        "conv(X[N, C, L], F[O, C, K], s: const, d: const = 1) -> Y: "
        "Y[n, o, x] +=! X[n, c, s * x + d * k] * F[o, c, k]",
        "amx(C[M, N], A[M, K4], B[K, N4]) -> C: "
        "C[i, j] += cast(i32, A[i, 4*k + q]) * cast(i32, B[k, 4*j + q]) where q in 0:4",
        "(X[2*h, (g c), 16]) -> Y, Z: u8, W[h], V: f16[h + 1]: Y[i] = X[i, 0, 0]; Z[i] = 0:u8; "
        "W[i] = 1.0; V[i] = 2.0",
        "a(X[n], p: size in 1:2048, q: size in 0:1048576 = 3, t: type = f32, e: t = 0.5) -> Y: "
        "require n % p == 0 && p < n; require q != 1; Y[i] = X[i - p] else 0.0",
        "b(X[T, D], h: f32[D]) -> H: over t { G[t, j] = tanh(X[t, j]); H[t, j] = G[t, j] * "
        "select(t == 0, h[j], H[t - 1, j]) }; Z[j] *=! H[t, j]",
        "c(X[E, n], O[E1]) -> Y: strict Y[t] min=! X[e, t] where t in 0:2*E, O[e] <= t && t < O[e "
        "+ 1]",
        "d(X[n], I: i32[m]) -> X: X[I[i]] = bitcast(u8, X[i]) & (1 | 2) << 3",
        "e(t: type) -> Y: t[4]: Y[i] = cast(acctype(t), 1)",
        "topk(X[*b, n], k: size in 0:1048576) -> V: typeof(X)[*b, k], I: i64[*b, k]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fixture *f = *state;
        const char *once = printed(f, texts[i]);
        assert_string_equal(once, texts[i]);
        assert_string_equal(printed(f, once), once);
    }
}

static void printing_normalises(void **state)
{
    fixture *f = *state;
    assert_string_equal(printed(f, "a ( X [ n , ] ) -> Y :\n  let e = i + 1; // comment\n"
                                   "  Y[i] = X[e % 4] * cast(f32, e);\n"),
                        "a(X[n]) -> Y: Y[i] = X[(i + 1) % 4] * cast(f32, i + 1)");
    assert_string_equal(printed(f, "a(X[n], Z[m]) -> Y: over t { Y[t] = X[t] } Z1[i] = Z[i]"),
                        "a(X[n], Z[m]) -> Y: over t { Y[t] = X[t] }; Z1[i] = Z[i]");
    assert_string_equal(
        printed(f, "a(X[g*c], Z[g]) -> Y: Y[i] = X[i] where X[i] > 0, i in 0:g, Z[0] < 1"),
        "a(X[(g c)], Z[g]) -> Y: Y[i] = X[i] where i in 0:g, X[i] > 0 && Z[0] < 1");
}

static void locations_count_from_the_text_around(void **state)
{
    fixture *f = *state;
    const char *text = "a(X[n]) -> Y:\n  Y[i] = X[i];\n  Y[i] = Q[i]";
    f->text = text;
    assert_int_equal(kn_protect(f->ctx, try_parse, f), KN_INVALID);
    assert_int_equal(kn_diag_get(f->ctx, 0)->line, 3);
    assert_int_equal(kn_diag_get(f->ctx, 0)->column, 3);
    assert_string_equal(kn_diag_get(f->ctx, 0)->message, "there is no tensor `Q`");
}

typedef struct {
    const char *text;
    int column;
    const char *message;
} bad;

static void diagnostics(void **state)
{
    static const bad cases[] = {
        {"a(X[n], X[m]) -> Y: Y[i] = X[i]", 9, "`X` is named twice in the signature"},
        {"a(X[n], X: f32) -> Y: Y[i] = X[i]", 9, "`X` is named twice in the signature"},
        {"a(f32[n]) -> Y: Y[i] = X[i]", 3, "`f32` cannot name an operand"},
        {"a(X[n]) -> where: Y[i] = X[i]", 12, "`where` cannot name a result"},
        {"a(X[*b, *c]) -> Y: Y[i] = X[i]", 9, "a second pack in the dimensions of `X`"},
        {"a(X[n]) -> Y, Y: Y[i] = X[i]", 15, "`Y` is listed twice after ->"},
        {"a(X[n]) -> Y: let e = i; let e = i; Y[i] = X[e]", 30, "`let e` a second time"},
        {"a(X[n]) -> Y: let in = i; Y[i] = X[e]", 19, "`in` cannot name a `let`"},
        {"a(X[n]) -> Y: Y = X[i]", 15, "expected the element that the statement writes, NAME[...]"},
        {"a(X[n]) -> Y: Y[i] X[i]", 20, "expected one of = += *= max= min= (with ! or without)"},
        {"a(X[n]) -> Y: where[i] = X[i]", 15, "`where` cannot name a tensor"},
        {"a(X[n]) -> Y: over t { over s { Y[t] = X[t] } }", 24, "`over` inside `over`"},
        {"a(X[n]) -> Y: over t { } Y[i] = X[i]", 15, "`over t` has no statement"},
        {"a(X[n]) -> Y: over t { Y[i] = X[i] }", 24,
         "in `over t`, a subscript of the target `Y` must be `t` alone"},
        {"a(X[n]) -> Y: over n { Y[n] = X[n] }", 24, "`n` is a size or attribute, not an index"},
        {"a(X[n]) -> Y: Y[i] = X[i] Z[i] = X[i]", 27, "expected `;` or the end of the notation"},
        {"a(X[n]) -> Y: u8[k]: Y[i] = X[i]", 1,
         "size `k` of result `Y` is not a size of any operand"},
        {"a(X[Z[0]]) -> Y: Y[i] = X[i]", 1, "a dimension of `X` is no expression of sizes"},
        {"a(X[n], e: foo) -> Y: Y[i] = X[i]", 1, "`foo` is not a type"},
        {"a(X[n]) -> Y: typeof(Q)[n]: Y[i] = X[i]", 1, "`typeof(Q)` is not a type"},
        {"a(X[n]) -> Y: Y[i] = cast(foo, X[i])", 15, "`foo` is not a type"},
        {"a(X[n]) -> Y", 1, "no statement defines `Y`, which has no type and shape"},
        {"a(X[n]) -> Y, Z: Y[i] = X[i]", 1, "no statement defines the result `Z`"},
        {"a(X[n], t: type) -> Y: Y[i] = X[i] * t", 24, "`t` is a type, not a value"},
        {"a(X[n]) -> Y: require n < m; Y[i] = X[i]", 1, "`m` is not known here"},
        {"a(X[n]) -> Y: require X[0] > 0; Y[i] = X[i]", 1, "`X` is read before it is defined"},
        {"a(X[n]) -> Y: Y[i] = Q[i]", 15, "there is no tensor `Q`"},
        {"a(X[n]) -> Y: Z[i] = Y[i]; Y[i] = X[i]", 15, "`Y` is read before it is defined"},
        {"a(X[n]) -> Y: Y[i] = X[*b]", 15, "no operand has the pack `*b`"},
        {"a(X[n]) -> Y: Y[*b] = X[i]", 15, "no operand has the pack `*b`"},
        {"a(X[*b]) -> Y: Y[*b] = X[*b, *b]", 16, "two packs in the subscripts of `X`"},
        {"a(X[*b]) -> Y: Y[*b, *b] = X[*b]", 16, "two packs in the subscripts of `Y`"},
        {"a(X[n]) -> Y: X[i] = X[i]; Y[i] = X[i]", 15, "`X` is written but not listed after ->"},
        {"a(X[n]) -> Y: Y[i] += X[i]", 15, "`Y` has no value yet: +=! starts from the identity"},
        {"a(X[n]) -> Y: Y[i] max= X[i]", 15,
         "`Y` has no value yet: max=! starts from the identity"},
        {"a(X[n]) -> Y: Y[i] = X[i] where q in 0:4", 15, "`q` is not an index of this statement"},
        {"a(X[n]) -> Y: Y[i] = X[i] where n in 0:4", 15,
         "`n` is a size or attribute, not an index"},
        {"a(X[n]) -> Y: Y[i] = X[j]", 15,
         "index `j` is only on the right of `=`: a reduction is written with +=! *=! max=! or "
         "min=!"},
        {"a(X[*b]) -> Y: Y[] = X[*b]", 16,
         "index `*b` is only on the right of `=`: a reduction is written with +=! *=! max=! or "
         "min=!"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        f->text = cases[i].text;
        expect_diag(f, kn_protect(f->ctx, try_parse, f), cases[i].column, cases[i].message);
    }
}

/* let a = x + x; let b = a + a; ... : a short text must not become a huge expression. */
static void lets_do_not_explode(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->a);
    kn_put(&s, "a(X[n]) -> Y: let a0 = X[i] + X[i]; ");
    for (int i = 1; i < 40; i++) {
        kn_putf(&s, "let a%d = a%d + a%d; ", i, i - 1, i - 1);
    }
    kn_put(&s, "Y[i] = a39");
    f->text = kn_str_get(&s);
    assert_int_equal(kn_protect(f->ctx, try_parse, f), KN_INVALID);
    assert_string_equal(kn_diag_get(f->ctx, 0)->message, "expression too large: 24575 parts");
}

static void groups_are_bounded(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->a);
    kn_put(&s, "a(X[n]) -> Y: over t { ");
    for (int i = 0; i < 300; i++) {
        kn_put(&s, "Y[t] = X[t]; ");
    }
    kn_put(&s, "}");
    f->text = kn_str_get(&s);
    expect_diag(f, kn_protect(f->ctx, try_parse, f), 15, "`over t` has more than 256 statements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(texts_print_as_they_are, setup, teardown),
        cmocka_unit_test_setup_teardown(printing_normalises, setup, teardown),
        cmocka_unit_test_setup_teardown(locations_count_from_the_text_around, setup, teardown),
        cmocka_unit_test_setup_teardown(diagnostics, setup, teardown),
        cmocka_unit_test_setup_teardown(lets_do_not_explode, setup, teardown),
        cmocka_unit_test_setup_teardown(groups_are_bounded, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
