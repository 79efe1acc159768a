/* The lexer and the parser of expressions: tokens, places, texts that round-trip, messages. */
#include "unit.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "ir/lex.h"

static kn_lexer lexer_of(const fixture *f, const char *text)
{
    kn_lexer lx;
    kn_lex_init(&lx, f->arena, "t.txt", text, strlen(text), kn_loc_none());
    return lx;
}

/* ---- tokens ---- */

/* The tokens' kinds and texts, joined by blanks. */
static const char *tokens(const fixture *f, const char *text)
{
    static const char letters[] = "$nv@ifsp";
    kn_str s = kn_str_make(f->arena);
    for (kn_lexer lx = lexer_of(f, text); lx.token.kind != KN_T_END; kn_lex_next(&lx)) {
        const kn_token *t = &lx.token;
        kn_putf(&s, s.n ? " %c" : "%c", letters[t->kind]);
        if (t->kind == KN_T_INT)
            kn_putf(&s, "%" PRIu64, t->i);
        else if (t->kind == KN_T_FLOAT)
            kn_putf(&s, "%g", t->f);
        else
            kn_put(&s, t->text);
    }
    return kn_str_get(&s);
}

static void tokens_are_told_apart(void **state)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"  // nothing\n", ""},
        {"a b_1 _x a.b.c", "na nb_1 n_x na.b.c"},
        {"a. b", "na p. nb"},
        {"%x %a/b:0 @main", "vx va/b:0 @main"},
        {"(%x: f32[2], %y:0)", "p( vx p: nf32 p[ i2 p] p, vy:0 p)"},
        {"%x->%y", "vx p-> vy"},
        {"j%4 j % 4 X[i]%n (a)%b", "nj p% i4 nj p% i4 nX p[ ni p] p% nn p( na p) p% nb"},
        {"return %x, %y", "nreturn vx p, vy"},
        {"0 007 18446744073709551615 0xff 0xFFFFFFFFFFFFFFFF",
         "i0 i7 i18446744073709551615 i255 i18446744073709551615"},
        {"1.5 .5 2. 1e3 1.5e-3 1E+2", "f1.5 f0.5 f2 f1000 f0.0015 f100"},
        {"0:4 1..2", "i0 p: i4 i1 p. f0.2"},
        {"X[i] +=! a", "nX p[ ni p] p+=! na"},
        {"X[i] max=! a min= b", "nX p[ ni p] pmax=! na nmin p= nb"},
        {"X[] min= a", "nX p[ p] pmin= na"},
        {"{max=3, min=!b}", "p{ nmax p= i3 p, nmin p= p! nb p}"},
        {"X[i] max == 3", "nX p[ ni p] nmax p== i3"},
        {"*=! += *= -> << >> <= >= == != && ||",
         "p*=! p+= p*= p-> p<< p>> p<= p>= p== p!= p&& p||"},
        {"a<-b", "na p< p- nb"},
        {"a//b\nc", "na nc"},
        {"\"a\\n\\x41\\\"\" x", "sa\nA\" nx"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(tokens(*state, rows[i][0]), rows[i][1]);
}

static void strings_may_hold_any_byte(void **state)
{
    kn_lexer lx = lexer_of(*state, "\"a\\x00b\"");
    assert_int_equal(lx.token.kind, KN_T_STRING);
    assert_int_equal(lx.token.length, 3);
    assert_memory_equal(lx.token.text, "a\0b", 4);
}

static void text_needs_no_end(void **state)
{
    fixture *f = *state;
    kn_lexer lx;
    const char text[3] = {'a', 'b', '1'};
    kn_lex_init(&lx, f->arena, NULL, text, 2, kn_loc_none());
    assert_string_equal(lx.token.text, "ab");
    kn_lex_init(&lx, f->arena, NULL, text + 2, 1, kn_loc_none());
    assert_int_equal(lx.token.i, 1);
    kn_lex_next(&lx);
    assert_int_equal(lx.token.kind, KN_T_END);
    kn_lex_next(&lx);
    assert_int_equal(lx.token.kind, KN_T_END);
}

static void places_count_from_the_given_one(void **state)
{
    fixture *f = *state;
    kn_lexer lx;
    kn_loc at = {NULL, 7, 5, "node"};
    kn_lex_init(&lx, f->arena, "m.txt", "a\n  b", 5, at);
    assert_int_equal(lx.token.loc.line, 7);
    assert_int_equal(lx.token.loc.column, 5);
    kn_lex_next(&lx);
    assert_int_equal(lx.token.loc.line, 8);
    assert_int_equal(lx.token.loc.column, 3);
    assert_string_equal(lx.token.loc.file, "m.txt");
    assert_string_equal(lx.token.loc.where, "node");
}

static void peeking_does_not_take(void **state)
{
    kn_lexer lx = lexer_of(*state, "a b c");
    assert_string_equal(kn_lex_peek(&lx)->text, "b");
    assert_string_equal(kn_lex_peek(&lx)->text, "b");
    assert_string_equal(lx.token.text, "a");
    assert_string_equal(kn_lex_name(&lx), "a");
    assert_true(kn_lex_accept(&lx, "b"));
    assert_false(kn_lex_accept(&lx, "b"));
    assert_true(kn_lex_is(&lx, "c"));
}

static void integers_take_their_sign(void **state)
{
    kn_lexer lx = lexer_of(*state, "-9223372036854775808 9223372036854775807 - 3");
    assert_true(kn_lex_int(&lx) == INT64_MIN);
    assert_true(kn_lex_int(&lx) == INT64_MAX);
    assert_int_equal(kn_lex_int(&lx), -3);
}

static void numbers_do_not_depend_on_the_locale(void **state)
{
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8"))
        return;
    kn_lexer lx = lexer_of(*state, "1.5");
    setlocale(LC_NUMERIC, "C");
    assert_true(lx.token.f == 1.5);
}

/* ---- round trips ---- */

static const char *printed(const fixture *f, const kn_expr *e, bool typed)
{
    kn_str s = kn_str_make(f->arena);
    kn_expr_print(&s, e, typed);
    return kn_str_get(&s);
}

static const kn_expr *parsed(const fixture *f, const char *text)
{
    kn_lexer lx = lexer_of(f, text);
    const kn_expr *e = kn_parse_expr(&lx);
    assert_int_equal(lx.token.kind, KN_T_END);
    return e;
}

static void minimal_texts_print_as_they_are(void **state)
{
    static const char *const texts[] = {
        "a",
        "1",
        "-1",
        "1.0",
        "-0.0",
        "1.5e-30",
        "inf",
        "-inf",
        "nan",
        "true",
        "false",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5:f64",
        "-inf:f16",
        "nan:bf16",
        "3:i32",
        "-128:i8",
        "15:u4",
        "18446744073709551615:u64",
        "a + b - c",
        "a - (b - c)",
        "a + (b + c)",
        "a * (b + c)",
        "a * b + c",
        "2*a + b",
        "a / b / c",
        "a / (b / c)",
        "a % b * c",
        "a - -1",
        "-a",
        "--a",
        "-(1)",
        "--1",
        "-(inf)",
        "-(a + b)",
        "!a && !b",
        "!(a && b)",
        "~a",
        "~1",
        "-~-a",
        "(a == b) < c",
        "a < b == c < d",
        "a == b && c != d",
        "(a && b) || c",
        "a && (b || c)",
        "a && b && c",
        "a && (b && c)",
        "(a & b) | c",
        "(a ^ b) & c",
        "a | b << 8",
        "(a | b) << 8",
        "a << b + 1",
        "(a & b) == c",
        "a & b == c",
        "a && b == c",
        "X[]",
        "X[i]",
        "X[*b, i + 1, 4*k + q]",
        "X[I[i], j]",
        "X[i - p] else 0",
        "X[i - p] else -inf",
        "-X[i] else 0 + 1",
        "X[i] else (a + b)",
        "X[i] else Y[j] else 0",
        "exp(x) + max(a, b)",
        "select(t == 0, s0[k, d], S[t - 1, k, d]) + X[t, k] * V[t, d]",
        "cast(f32, X[*b, j])",
        "cast(typeof(X), F[*b, j] * rsqrt(S[*b] / cast(f32, n) + eps)) * W[j]",
        "sat(i8, round(x))",
        "bitcast(f16, cast(u16, B[r, 34*k]) | cast(u16, B[r, 34*k + 1]) << 8)",
        "cast(acctype(X), x)",
        "cast(t, x)",
        "floordiv(a, b) + mod(a, b) * pow(a, 2)",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(printed(*state, parsed(*state, texts[i]), true), texts[i]);
}

static void other_texts_print_minimally(void **state)
{
    static const char *const rows[][2] = {
        {"((a))", "a"},       {"(a*b)+(c)", "a * b + c"},
        {"- 1", "-1"},        {"1.", "1.0"},
        {"0x10", "16"},       {"a == (b < c)", "a == b < c"},
        {"-nan", "nan"},      {"-0", "0"},
        {"a-(-1)", "a - -1"}, {"-(x)", "-x"},
        {"2:f64", "2.0:f64"}, {"0.1:f16", "0.099975586:f16"},
        {"a-b", "a - b"},     {"j%32", "j % 32"},
        {"1:f32", "1.0"},     {"3:index + i", "3 + i"},
        {"X [ i ]", "X[i]"},  {"(X[i] else 0) + 1", "X[i] else 0 + 1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(printed(*state, parsed(*state, rows[i][0]), true), rows[i][1]);
}

static void trees_are_untyped(void **state)
{
    const kn_expr *e = parsed(*state, "a + 1 < 2.5");
    assert_int_equal(e->type, KN_UNTYPED);
    assert_int_equal(e->args[0]->args[0]->type, KN_UNTYPED);
    assert_false(e->args[0]->args[1]->real);
    assert_int_equal(e->args[0]->args[1]->i, 1);
    assert_true(e->args[0]->args[1]->f == 1.0);
    assert_true(e->args[1]->real);
    assert_true(e->args[1]->f == 2.5);
    e = parsed(*state, "X[i, *b] else 0");
    assert_true(e->guarded);
    assert_int_equal(e->nargs, 3);
    assert_string_equal(e->args[1]->name, "*b");
    assert_int_equal(parsed(*state, "1:u8")->type, KN_U8);
    assert_int_equal(parsed(*state, "true")->type, KN_BOOL);
    e = parsed(*state, "sat(typeof(X), x)");
    assert_int_equal(e->mode, KN_CAST_SAT);
    assert_string_equal(e->name, "typeof(X)");
}

/* A suffix touches its literal; a range does not make one. */
static void ranges_are_no_suffixes(void **state)
{
    kn_lexer lx = lexer_of(*state, "0:n");
    assert_int_equal(kn_parse_expr(&lx)->i, 0);
    assert_true(kn_lex_accept(&lx, ":"));
    assert_string_equal(kn_parse_expr(&lx)->name, "n");
    lx = lexer_of(*state, "0 : f32");
    assert_int_equal(kn_parse_expr(&lx)->type, KN_UNTYPED);
    assert_true(kn_lex_is(&lx, ":"));
}

/* Typed constants of each kind come back bit by bit. */
static void typed_constants_round_trip(void **state)
{
    fixture *f = *state;
    const kn_expr *values[] = {
        kn_float(f->arena, KN_F64, 0.1),      kn_float(f->arena, KN_F64, 5e-324),
        kn_float(f->arena, KN_F64, -1.7e308), kn_float(f->arena, KN_F16, 65504),
        kn_float(f->arena, KN_F16, 5.96e-8),  kn_float(f->arena, KN_BF16, 3.39e38),
        kn_lowest(f->arena, KN_F16),          kn_lowest(f->arena, KN_I64),
        kn_highest(f->arena, KN_U64),         kn_lowest(f->arena, KN_I4),
        kn_highest(f->arena, KN_U4),          kn_float(f->arena, KN_BF16, (double)NAN),
        kn_int(f->arena, KN_BOOL, 1),         kn_lowest(f->arena, KN_I32),
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        assert_true(kn_expr_equal(parsed(f, printed(f, values[i], true)), values[i]));
}

static void index_texts_become_canonical(void **state)
{
    static const char *const rows[][2] = {
        {"n", "n"},
        {"2*n + 1 - n", "n + 1"},
        {"1 + n - 1", "n"},
        {"1 - n", "1 - n"},
        {"0 - n", "-n"},
        {"m - n", "m - n"},
        {"-n + m", "m - n"},
        {"(a + b) * (a - b)", "a*a - b*b"},
        {"(n + 3) / 4 * 4", "4*((n + 3) / 4)"},
        {"n / 4 % 2", "n / 4 % 2"},
        {"floordiv(n, 4)", "n / 4"},
        {"mod(n, 4)", "n % 4"},
        {"-7 / 2", "-4"},
        {"-7 % 2", "1"},
        {"max(n, n)", "n"},
        {"select(n < n + 1, a, b)", "a"},
        {"select(n == 0 && m > 1, 1, n)", "select(n == 0 && m > 1, 1, n)"},
        {"-9223372036854775808", "-9223372036854775808"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kn_lexer lx = lexer_of(f, rows[i][0]);
        const kn_expr *e = kn_parse_index(&lx);
        assert_string_equal(printed(f, e, true), rows[i][1]);
        lx = lexer_of(f, rows[i][1]);
        assert_true(kn_expr_equal(kn_parse_index(&lx), e));
    }
}

/* ---- messages ---- */

typedef enum { EXPR, INDEX, DTYPE, TOKENS } parser;

typedef struct {
    const fixture *f;
    const char *text;
    size_t n;
    parser parser;
} attempt;

static void parse_body(void *arg)
{
    const attempt *a = arg;
    kn_lexer lx;
    kn_lex_init(&lx, a->f->arena, "t.txt", a->text, a->n, kn_loc_none());
    if (a->parser == EXPR)
        kn_parse_expr(&lx);
    else if (a->parser == INDEX)
        kn_parse_index(&lx);
    else if (a->parser == DTYPE)
        kn_parse_dtype(&lx);
    while (lx.token.kind != KN_T_END)
        kn_lex_next(&lx);
}

/* "line:column message" of the failure of a text, "" when there is none. */
static const char *complaint(const fixture *f, parser p, const char *text, size_t n)
{
    attempt a = {f, text, n, p};
    kn_status status = kn_protect(f->ctx, parse_body, &a);
    if (status == KN_OK)
        return "";
    assert_int_equal(status, KN_INVALID);
    const kn_diag *d = kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1);
    return kn_format(f->arena, "%d:%d %s", d->line, d->column, d->message);
}

static void faults_are_named_and_placed(void **state)
{
    static const struct {
        parser parser;
        const char *text, *complaint;
    } rows[] = {
        {TOKENS, "a\n  $", "2:3 unexpected character `$`"},
        {TOKENS, "a \x01", "1:3 unexpected byte 0x01"},
        {TOKENS, "\xc3\xa9", "1:1 unexpected byte 0xc3"},
        {TOKENS, "a \"bc\n\"", "1:3 unterminated string"},
        {TOKENS, "\"a\\", "1:3 unknown escape in a string"},
        {TOKENS, "\"a\\q\"", "1:3 unknown escape in a string"},
        {TOKENS, "\"\\x4\"", "1:2 unknown escape in a string"},
        {TOKENS, "1 3x", "1:3 malformed number `3x`"},
        {TOKENS, "1e", "1:1 malformed number `1e`"},
        {TOKENS, "0x", "1:1 malformed number `0x`"},
        {TOKENS, "0xg", "1:1 malformed number `0xg`"},
        {TOKENS, "18446744073709551616", "1:1 number out of range: `18446744073709551616`"},
        {TOKENS, "0x10000000000000000", "1:1 number out of range: `0x10000000000000000`"},
        {TOKENS, "1e999", "1:1 number out of range: `1e999`"},
        {TOKENS, "a @", "1:3 expected a name after `@`"},
        {EXPR, "", "1:1 expected an expression, found the end"},
        {EXPR, "a +", "1:4 expected an expression, found the end"},
        {EXPR, "a + )", "1:5 expected an expression, found `)`"},
        {EXPR, "a +\n where", "2:2 expected an expression, found `where`"},
        {EXPR, "(a", "1:3 expected `)`, found the end"},
        {EXPR, "X[i", "1:4 expected `,`, found the end"},
        {EXPR, "X[i j]", "1:5 expected `,`, found `j`"},
        {EXPR, "foo(a)", "1:1 unknown function `foo`"},
        {EXPR, "max(a)", "1:6 expected `,`: max takes 2 arguments, found `)`"},
        {EXPR, "exp(a, b)", "1:6 exp takes 1 argument"},
        {EXPR, "select(a, b, c, d)", "1:15 select takes 3 arguments"},
        {EXPR, "exp()", "1:5 expected an expression, found `)`"},
        {EXPR, "cast(3, x)", "1:6 expected a name, found `3`"},
        {EXPR, "cast(f32 x)", "1:10 expected `,`, found `x`"},
        {EXPR, "cast(typeof(3), x)", "1:13 expected a name, found `3`"},
        {EXPR, "a && b || c", "1:8 `&&` and `||` need brackets to be mixed"},
        {EXPR, "a || b && c", "1:3 `&&` and `||` need brackets to be mixed"},
        {EXPR, "a | b ^ c", "1:3 `^` and `|` need brackets to be mixed"},
        {EXPR, "a && b == c & d", "1:3 `&` and `&&` need brackets to be mixed"},
        {EXPR, "9223372036854775808",
         "1:1 9223372036854775808 does not fit 64 bits without a type"},
        {EXPR, "-9223372036854775809",
         "1:2 -9223372036854775809 does not fit 64 bits without a type"},
        {EXPR, "128:i8", "1:1 128 does not fit i8"},
        {EXPR, "-1:u8", "1:2 -1 does not fit u8"},
        {EXPR, "-129:i8", "1:2 -129 does not fit i8"},
        {EXPR, "1.5:i32", "1:1 a literal of type i32 cannot be a float"},
        {EXPR, "X[1,2,3,4,5,6,7,8,9,10,11,12,13]", "1:30 more than 12 subscripts"},
        {INDEX, "1.5", "1:1 a float cannot stand in an index expression"},
        {INDEX, "n + X[i]", "1:1 an element of a tensor cannot stand in an index expression"},
        {INDEX, "cast(i32, n)", "1:1 a cast cannot stand in an index expression"},
        {INDEX, "exp(n)", "1:1 `exp` cannot stand in an index expression"},
        {INDEX, "n & 3", "1:1 `&` cannot stand in an index expression"},
        {INDEX, "3:i32", "1:1 a typed literal cannot stand in an index expression"},
        {INDEX, "n < 3", "1:1 expected an index expression, found a condition"},
        {INDEX, "1 + (n < 3)", "1:1 `+` needs indices, not a condition"},
        {INDEX, "select(n, 1, 2)", "1:1 `select` needs a condition"},
        {INDEX, "\n n / (2 - 2)", "2:2 division by zero in an index expression"},
        {INDEX, "n % 0", "1:1 division by zero in an index expression"},
        {INDEX, "4611686018427387904 * 2", "1:1 an index expression overflows 64 bits"},
        {INDEX, "9223372036854775807 + 1", "1:1 an index expression overflows 64 bits"},
        {DTYPE, "f33", "1:1 expected an element type, found `f33`"},
        {DTYPE, "3", "1:1 expected an element type, found `3`"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(complaint(*state, rows[i].parser, rows[i].text, strlen(rows[i].text)),
                            rows[i].complaint);
}

static char *repeated(const fixture *f, const char *text, int n)
{
    kn_str s = kn_str_make(f->arena);
    for (int i = 0; i < n; i++)
        kn_put(&s, text);
    kn_put(&s, "a");
    return s.at;
}

static void hostile_texts_are_refused_soon(void **state)
{
    fixture *f = *state;
    static const char *const pieces[] = {
        "(",    "-",   "!",    "exp(",   "X[",     "X[] else ",      "a + ", "a * ",
        "a < ", "(a+", "n /(", "(a+b)*", "max(a,", "(a+b+c+d+e+f)*", "b && "};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char *text = repeated(f, pieces[i], 20000);
        const char *said = complaint(f, EXPR, text, strlen(text));
        assert_true(strstr(said, "nested deeper") || strstr(said, "too large"));
        said = complaint(f, INDEX, text, strlen(text));
        assert_true(strstr(said, "nested deeper") || strstr(said, "too large"));
    }
}

/* The deepest that pass: nothing here or behind overflows the stack, nor takes long. */
static void deep_texts_are_handled(void **state)
{
    fixture *f = *state;
    static const char *const pieces[] = {"a / 3 * ", "a / 3 + ", "a % 7 / 2 * 3 + ",
                                         "(a % 7 + 1) / 3 * ", "a - b * "};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (int n = 10; n < 1000; n += 123) {
            char *text = repeated(f, pieces[i], n);
            const char *said = complaint(f, INDEX, text, strlen(text));
            assert_true(!*said || strstr(said, "too large") || strstr(said, "overflows"));
        }
    }
}

/* Each text cut anywhere, and with a byte changed, parses or is refused. */
static void broken_texts_do_no_harm(void **state)
{
    fixture *f = *state;
    static const char text[] = "select(!(X[*b, 4*k + q] else -inf == 1.5e3:f16) && n % 7 > 0x1f, "
                               "sat(i8, \"s\\x41\" @g %v:0), cast(typeof(X), ~a << 2 | 3:u8))";
    char copy[sizeof text];
    for (size_t n = 0; n < sizeof text; n++) {
        complaint(f, EXPR, text, n);
        for (int c = 1; c < 256; c += 3) {
            memcpy(copy, text, sizeof text);
            copy[n] = (char)c;
            complaint(f, EXPR, copy, sizeof text - 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(tokens_are_told_apart),
        KN_TEST(strings_may_hold_any_byte),
        KN_TEST(text_needs_no_end),
        KN_TEST(places_count_from_the_given_one),
        KN_TEST(peeking_does_not_take),
        KN_TEST(integers_take_their_sign),
        KN_TEST(numbers_do_not_depend_on_the_locale),
        KN_TEST(minimal_texts_print_as_they_are),
        KN_TEST(other_texts_print_minimally),
        KN_TEST(trees_are_untyped),
        KN_TEST(ranges_are_no_suffixes),
        KN_TEST(typed_constants_round_trip),
        KN_TEST(index_texts_become_canonical),
        KN_TEST(faults_are_named_and_placed),
        KN_TEST(hostile_texts_are_refused_soon),
        KN_TEST(deep_texts_are_handled),
        KN_TEST(broken_texts_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
