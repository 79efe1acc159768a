/* Arenas, vectors, maps, strings, hashes, element types, halves. */
#include "unit.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/dtype.h"
#include "support/half.h"
#include "support/hash.h"
#include "support/str.h"

/* ---- arenas ---- */

static void arena_objects_are_zeroed_aligned_and_apart(void **state)
{
    fixture *f = *state;
    enum { N = 2000 };
    unsigned char *at[N];
    for (size_t i = 0; i < N; i++) {
        size_t size = i * 7 % 3000;
        at[i] = kn_alloc(f->arena, size);
        assert_int_equal((uintptr_t)at[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(at[i][k], 0);
        memset(at[i], (int)(i & 255), size);
    }
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < i * 7 % 3000; k++)
            assert_int_equal(at[i][k], i & 255);
}

static void arena_counts_bytes(void **state)
{
    fixture *f = *state;
    kn_alloc(f->arena, 100);
    kn_alloc_n(f->arena, 3, 8);
    kn_alloc(f->arena, 0);
    assert_int_equal(kn_arena_bytes(f->arena), 124);
    assert_ptr_equal(kn_arena_ctx(f->arena), f->ctx);
}

static void arena_of_no_bytes_gives_distinct_objects(void **state)
{
    fixture *f = *state;
    assert_ptr_not_equal(kn_alloc(f->arena, 0), kn_alloc(f->arena, 0));
}

static void ask_for_too_much(void *arg)
{
    kn_alloc(arg, SIZE_MAX - 8);
}

static void ask_for_too_many(void *arg)
{
    kn_alloc_n(arg, SIZE_MAX / 2, 3);
}

static void arena_raises_when_memory_is_out(void **state)
{
    fixture *f = *state;
    assert_int_equal(kn_protect(f->ctx, ask_for_too_much, f->arena), KN_ENVIRONMENT);
    assert_int_equal(kn_protect(f->ctx, ask_for_too_many, f->arena), KN_ENVIRONMENT);
    assert_int_equal(kn_diag_count(f->ctx), 2);
}

static void arena_formats(void **state)
{
    fixture *f = *state;
    assert_string_equal(kn_format(f->arena, "%s-%d", "a", 12), "a-12");
    assert_string_equal(kn_strdup(f->arena, "text"), "text");
}

static void arena_is_destroyed_early(void **state)
{
    fixture *f = *state;
    kn_arena *a = kn_arena_create(f->ctx), *b = kn_arena_create(f->ctx);
    kn_alloc(a, 10);
    kn_arena_destroy(a);
    assert_non_null(kn_alloc(b, 10));
    kn_arena_destroy(b);
    kn_arena_destroy(NULL);
}

static void vector_keeps_what_is_pushed(void **state)
{
    fixture *f = *state;
    KN_VEC(int64_t) v = {0};
    for (int i = 0; i < 10000; i++)
        kn_push(f->arena, &v, (int64_t)i * i);
    assert_int_equal(v.n, 10000);
    for (int i = 0; i < v.n; i++)
        assert_int_equal(v.at[i], (int64_t)i * i);
}

/* ---- maps ---- */

static void map_finds_replaces_and_keeps_order(void **state)
{
    fixture *f = *state;
    kn_map m = kn_map_make(f->arena);
    static int values[1000];
    assert_null(kn_map_get(&m, "k0"));
    for (int i = 0; i < 1000; i++)
        kn_map_set(&m, kn_format(f->arena, "k%d", i), &values[i]);
    kn_map_set(&m, "k7", &values[8]);
    kn_map_set(&m, "none", NULL);
    assert_int_equal(m.n, 1001);
    for (int i = 0; i < 1000; i++) {
        assert_string_equal(m.entries[i].key, kn_format(f->arena, "k%d", i));
        assert_ptr_equal(kn_map_get(&m, m.entries[i].key), &values[i == 7 ? 8 : i]);
    }
    assert_true(kn_map_has(&m, "none"));
    assert_null(kn_map_get(&m, "none"));
    assert_false(kn_map_has(&m, "k1000"));
}

/* ---- strings ---- */

static void string_builds(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->arena);
    assert_string_equal(kn_str_get(&s), "");
    kn_put(&s, "ab");
    kn_put_char(&s, 'c');
    kn_put_n(&s, "defg", 3);
    kn_putf(&s, "%0500d", 7);
    assert_int_equal(s.n, 506);
    assert_memory_equal(kn_str_get(&s), "abcdef000", 9);
    assert_int_equal(s.at[505], '7');
    assert_int_equal(s.at[506], 0);
}

static const char *quoted(fixture *f, const char *text, size_t n)
{
    kn_str s = kn_str_make(f->arena);
    kn_put_quoted(&s, text, n);
    return kn_str_get(&s);
}

static void string_quotes_as_c_does(void **state)
{
    fixture *f = *state;
    assert_string_equal(quoted(f, "", 0), "\"\"");
    assert_string_equal(quoted(f, "a\n\t\"\\", 5), "\"a\\n\\t\\\"\\\\\"");
    assert_string_equal(quoted(f, "\0\x7f", 2), "\"\\x00\\x7f\"");
    assert_string_equal(quoted(f,
                               "\x01"
                               "bz",
                               3),
                        "\"\\x01\\x62z\"");
    assert_string_equal(quoted(f,
                               "?"
                               "?=",
                               3),
                        "\"?\\x3f=\"");
}

/* ---- float printing ---- */

static const char *printed(fixture *f, double value, bool single)
{
    kn_str s = kn_str_make(f->arena);
    kn_put_float(&s, value, single);
    return kn_str_get(&s);
}

static int utf8(const char *text)
{
    return kn_utf8_length(text, text + strlen(text));
}

static void utf8_is_measured(void **state)
{
    (void)state;
    assert_int_equal(utf8("a"), 1);
    assert_int_equal(utf8("\u00e9"), 2);
    assert_int_equal(utf8("\u20ac"), 3);
    assert_int_equal(utf8("\U0001F600"), 4);
    assert_int_equal(utf8("\x80"), 0);             /* begins nothing */
    assert_int_equal(utf8("\xe2\x82"), 0);         /* cut off */
    assert_int_equal(utf8("\xe0\x80\x80"), 0);     /* too long for what it says */
    assert_int_equal(utf8("\xed\xa0\x80"), 0);     /* half of a pair */
    assert_int_equal(utf8("\xf4\x90\x80\x80"), 0); /* beyond the last */
}

static void hex_digits_have_values(void **state)
{
    (void)state;
    assert_int_equal(kn_hex_digit('0'), 0);
    assert_int_equal(kn_hex_digit('9'), 9);
    assert_int_equal(kn_hex_digit('a'), 10);
    assert_int_equal(kn_hex_digit('F'), 15);
    assert_int_equal(kn_hex_digit('g'), -1);
    assert_int_equal(kn_hex_digit('\0'), -1);
}

static void floats_print_as_expected(void **state)
{
    fixture *f = *state;
    static const struct {
        double value;
        bool single;
        const char *text;
    } cases[] = {
        {0.0, false, "0.0"},
        {-0.0, false, "-0.0"},
        {1.0, true, "1.0"},
        {-2.5, true, "-2.5"},
        {100.0, false, "100.0"},
        {123456789.0, false, "123456789.0"},
        {0.1, false, "0.1"},
        {(double)0.1f, true, "0.1"},
        {(double)0.1f, false, "0.10000000149011612"},
        {1.0 / 3, false, "0.3333333333333333"},
        {0.001, false, "0.001"},
        {1e-5, false, "0.00001"},
        {1e-6, false, "1e-6"},
        {1.5e-7, false, "1.5e-7"},
        {1e15, false, "1000000000000000.0"},
        {1e16, false, "1e16"},
        {1.7976931348623157e308, false, "1.7976931348623157e308"},
        {5e-324, false, "5e-324"},
        {3.4028234663852886e38, true, "3.4028235e38"},
        {1.401298464324817e-45, true, "1e-45"},
        {(double)INFINITY, false, "inf"},
        {(double)-INFINITY, true, "-inf"},
        {(double)NAN, false, "nan"},
        {(double)-NAN, false, "nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(printed(f, cases[i].value, cases[i].single), cases[i].text);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    return *seed ^= *seed << 17;
}

static void floats_read_back_as_printed(void **state)
{
    fixture *f = *state;
    uint64_t seed = 12345;
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next_random(&seed);
        double d;
        memcpy(&d, &bits, sizeof d);
        float single;
        memcpy(&single, &bits, sizeof single);
        if (isfinite(d)) {
            const char *text = printed(f, d, false);
            assert_true(strtod(text, NULL) == d);
            assert_non_null(strpbrk(text, ".e"));
        }
        if (isfinite(single))
            assert_true(strtof(printed(f, (double)single, true), NULL) == single);
    }
}

static void floats_print_alike_in_any_locale(void **state)
{
    fixture *f = *state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "fr_FR.UTF-8"))
        skip();
    const char *text = printed(f, 0.25, false);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.25");
}

/* ---- hashes ---- */

static void hash_matches_published_values(void **state)
{
    (void)state;
    static const char text[] = "Nobody inspects the spammish repetition";
    assert_true(kn_hash64("", 0, 0) == 0xef46db3751d8e999);
    assert_true(kn_hash64("a", 1, 0) == 0xd24ec4f1a98c6e5b);
    assert_true(kn_hash64("abc", 3, 0) == 0x44bc2cf5ad770999);
    assert_true(kn_hash64(text, sizeof text - 1, 0) == 0xfbcea83c8a378bf1);
}

/* ---- element types ---- */

static void dtypes_parse_as_named(void **state)
{
    (void)state;
    for (int i = 0; i < KN_DTYPE_COUNT; i++) {
        const char *name = kn_dtype_name((kn_dtype)i);
        kn_dtype found = KN_DTYPE_COUNT;
        assert_true(kn_dtype_parse(name, strlen(name), &found));
        assert_int_equal(found, i);
        assert_false(kn_dtype_parse(name, strlen(name) - 1, &found) && found == (kn_dtype)i);
    }
    kn_dtype none;
    assert_false(kn_dtype_parse("f33", 3, &none));
    assert_false(kn_dtype_parse("", 0, &none));
}

static void dtypes_know_their_ranges(void **state)
{
    (void)state;
    assert_int_equal(kn_dtype_min(KN_I4), -8);
    assert_int_equal(kn_dtype_max(KN_I4), 7);
    assert_int_equal(kn_dtype_max(KN_U4), 15);
    assert_int_equal(kn_dtype_min(KN_I8), -128);
    assert_int_equal(kn_dtype_max(KN_U8), 255);
    assert_true(kn_dtype_min(KN_I64) == INT64_MIN);
    assert_true(kn_dtype_max(KN_I64) == INT64_MAX);
    assert_true(kn_dtype_max(KN_U64) == UINT64_MAX);
    assert_int_equal(kn_dtype_min(KN_U64), 0);
    assert_int_equal(kn_dtype_max(KN_BOOL), 1);
    assert_true(kn_dtype_is_float(KN_BF16) && !kn_dtype_is_integer(KN_BOOL));
    assert_true(kn_dtype_is_signed(KN_INDEX) && !kn_dtype_is_signed(KN_U32));
}

static void dtypes_count_bytes(void **state)
{
    (void)state;
    assert_int_equal(kn_dtype_bytes(KN_F32, 3), 12);
    assert_int_equal(kn_dtype_bytes(KN_U4, 3), 2);
    assert_int_equal(kn_dtype_bytes(KN_I4, 4), 2);
    assert_int_equal(kn_dtype_bytes(KN_I4, INT64_MAX), INT64_MAX / 2 + 1);
    assert_int_equal(kn_dtype_bytes(KN_BOOL, 0), 0);
    assert_int_equal(kn_dtype_bytes(KN_F64, INT64_MAX / 8), INT64_MAX / 8 * 8);
    assert_int_equal(kn_dtype_bytes(KN_F64, INT64_MAX / 8 + 1), -1);
    assert_int_equal(kn_dtype_bytes(KN_F32, -1), -1);
}

/* ---- halves ---- */

/* The value of a small float of `mantissa` fraction bits and an exponent of `bias`, by its
 * definition. */
static double reference(unsigned bits, int mantissa, int bias)
{
    int exponent = (int)(bits & 0x7fff) >> mantissa;
    double fraction = ldexp((double)(bits & ((1u << mantissa) - 1)), -mantissa);
    double value = exponent == 2 * bias + 1 ? (double)(fraction > 0 ? NAN : INFINITY)
                   : exponent == 0          ? ldexp(fraction, 1 - bias)
                                            : ldexp(1 + fraction, exponent - bias);
    return bits & 0x8000 ? -value : value;
}

static void assert_same(double found, double expected)
{
    assert_int_equal(isnan(found) != 0, isnan(expected) != 0);
    if (!isnan(expected)) {
        assert_true(found == expected);
        assert_int_equal(signbit(found) != 0, signbit(expected) != 0);
    }
}

static void halves_widen_exactly(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x10000; h++) {
        assert_same((double)kn_f16_to_f32((uint16_t)h), reference(h, 10, 15));
        assert_same((double)kn_bf16_to_f32((uint16_t)h), reference(h, 7, 127));
    }
}

static void halves_survive_a_round_trip(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x10000; h++) {
        double f16 = reference(h, 10, 15), bf16 = reference(h, 7, 127);
        assert_same(reference(kn_f32_to_f16((float)f16), 10, 15), f16);
        assert_same(reference(kn_f64_to_f16(f16), 10, 15), f16);
        assert_same(reference(kn_f32_to_bf16((float)bf16), 7, 127), bf16);
        if (!isnan(f16))
            assert_int_equal(kn_f64_to_f16(f16), h);
        if (!isnan(bf16))
            assert_int_equal(kn_f32_to_bf16((float)bf16), h);
    }
}

/* The middle between h and the next one up, as if the exponent were not bounded above. */
static double middle(unsigned h, int mantissa, int bias)
{
    double low = reference(h, mantissa, bias), high = reference(h + 1, mantissa, bias);
    return isinf(high) ? low + (low - reference(h - 1, mantissa, bias)) / 2
                       : low + (high - low) / 2;
}

static void halves_round_to_even(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 0x7c00; h++) {
        double m = middle(h, 10, 15);
        unsigned even = h + (h & 1);
        assert_int_equal(kn_f64_to_f16(m), even);
        assert_int_equal(kn_f32_to_f16((float)-m), 0x8000 | even);
        assert_int_equal(kn_f64_to_f16(nextafter(m, 0)), h);
        assert_int_equal(kn_f64_to_f16(nextafter(m, 1e9)), h + 1);
        assert_int_equal(kn_f32_to_f16(nextafterf((float)m, 0)), h);
        assert_int_equal(kn_f32_to_f16(nextafterf((float)m, 1e9f)), h + 1);
    }
    for (unsigned h = 0; h < 0x7f7f; h++) {
        float m = (float)middle(h, 7, 127);
        assert_int_equal(kn_f32_to_bf16(m), h + (h & 1));
        assert_int_equal(kn_f32_to_bf16(nextafterf(m, 0)), h);
        assert_int_equal(kn_f32_to_bf16(nextafterf(m, INFINITY)), h + 1);
    }
}

static void halves_overflow_and_vanish(void **state)
{
    (void)state;
    assert_int_equal(kn_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(kn_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(kn_f64_to_f16(-1e300), 0xfc00);
    assert_int_equal(kn_f64_to_f16(-1e-300), 0x8000);
    assert_int_equal(kn_f64_to_f16(5e-324), 0);
    assert_int_equal(kn_f32_to_bf16(3.4028235e38f), 0x7f80);
    /* Rounding to float first would give the other neighbour. */
    assert_int_equal(kn_f64_to_f16(1 + 0x1p-11 + 0x1p-40), 0x3c01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(arena_objects_are_zeroed_aligned_and_apart),
        KN_TEST(arena_counts_bytes),
        KN_TEST(arena_of_no_bytes_gives_distinct_objects),
        KN_TEST(arena_raises_when_memory_is_out),
        KN_TEST(arena_formats),
        KN_TEST(arena_is_destroyed_early),
        KN_TEST(vector_keeps_what_is_pushed),
        KN_TEST(map_finds_replaces_and_keeps_order),
        KN_TEST(string_builds),
        KN_TEST(string_quotes_as_c_does),
        KN_TEST(utf8_is_measured),
        KN_TEST(hex_digits_have_values),
        KN_TEST(floats_print_as_expected),
        KN_TEST(floats_read_back_as_printed),
        KN_TEST(floats_print_alike_in_any_locale),
        KN_TEST(hash_matches_published_values),
        KN_TEST(dtypes_parse_as_named),
        KN_TEST(dtypes_know_their_ranges),
        KN_TEST(dtypes_count_bytes),
        KN_TEST(halves_widen_exactly),
        KN_TEST(halves_survive_a_round_trip),
        KN_TEST(halves_round_to_even),
        KN_TEST(halves_overflow_and_vanish),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
