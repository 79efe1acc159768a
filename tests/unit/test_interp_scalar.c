/* The interpreter's scalars: every operator and cast of every type, on values where they go wrong,
   once in a short loop and once in a long one (which runs by another part of the machine). Compared
   with what the compiler folds; test_scalar.c compares that with what the types' rules say, and the
   values below are spelled out from those rules by hand. */
#include "element.h"
#include "loop_help.h"

#include <stdio.h>

/* ---- Values and their bytes ---- */

static const double reals[] = {
    0,         -0.0,       1,     -1,    0.5,          1.5,           2.5,          -2.5,
    3,         -7,         7.25,  1e-3,  -1e-3,        100.75,        -129.5,       255.5,
    256,       32768,      1e5,   -1e5,  2147483648.0, -2147483649.0, 4294967296.0, 1e19,
    -1e19,     1e30,       65504, 65520, 1e-7,         6e-8,          1e-40,        HUGE_VAL,
    -HUGE_VAL, (double)NAN};
static const int64_t ints[] = {0,         1,         -1,
                               2,         -2,        3,
                               -3,        7,         8,
                               -8,        15,        16,
                               31,        32,        63,
                               64,        100,       127,
                               128,       -128,      -129,
                               255,       256,       32767,
                               -32768,    65535,     70000,
                               INT32_MAX, INT32_MIN, UINT32_MAX,
                               INT64_MAX, INT64_MIN, 12345678901234};
enum { NREALS = sizeof reals / sizeof reals[0], NINTS = sizeof ints / sizeof ints[0] };

static int count_of(kn_dtype t)
{
    return kn_dtype_is_float(t) ? NREALS : NINTS;
}

static kn_number value_of(kn_dtype t, int i)
{
    if (kn_dtype_is_float(t))
        return (kn_number){.f = kn_number_round(t, reals[i])};
    return (kn_number){.i = kn_number_wrap(t, ints[i])};
}

/* ---- Operators ---- */

enum { MOST = 40 * 40, BYTES = MOST * 8 };

typedef struct {
    kn_scalar op;
    kn_dtype type, result;
    int n;
    unsigned char x[BYTES], y[BYTES], z[BYTES];
    kn_number xs[MOST], ys[MOST];
} table;

static void fill(table *t)
{
    int values = count_of(t->type), binary = kn_scalar_get(t->op)->arity > 1;
    t->n = binary ? values * values : values;
    for (int i = 0; i < t->n; i++) {
        t->xs[i] = value_of(t->type, i % values);
        t->ys[i] = value_of(t->type, i / values);
        put_element(t->type, t->x, i, t->xs[i]);
        put_element(t->type, t->y, i, t->ys[i]);
    }
}

static void compare(const table *t, const char *text)
{
    for (int i = 0; i < t->n; i++) {
        kn_number args[2] = {t->xs[i], t->ys[i]};
        kn_number want = kn_number_op(t->op, t->type, args), got = get_element(t->result, t->z, i);
        if (!same(t->result, want, got))
            fail_msg("%s\n%s(%lld %g, %lld %g) of %s: %lld %.9g, not %lld %.9g", text,
                     kn_scalar_get(t->op)->id, (long long)args[0].i, args[0].f,
                     (long long)args[1].i, args[1].f, kn_dtype_name(t->type), (long long)got.i,
                     got.f, (long long)want.i, want.f);
    }
}

static const char *expression(kn_arena *a, kn_scalar op, kn_dtype type)
{
    kn_str s = kn_str_make(a);
    kn_expr_print(&s,
                  kn_scalar_get(op)->arity == 1
                      ? kn_op1(a, op, kn_var(a, type, "a"))
                      : kn_op2(a, op, kn_var(a, type, "a"), kn_var(a, type, "b")),
                  true);
    return kn_str_get(&s);
}

/* `rows` rows of what is left: few iterations in the inner loop, or many. */
static void run_table(fixture *f, table *t, int rows)
{
    const char *x = kn_dtype_name(t->type), *z = kn_dtype_name(t->result);
    int n = t->n / rows;
    while (n * rows < t->n)
        n++;
    const char *text = kn_format(
        f->arena,
        "module @m { func @f(in X: %s[%d] @local, in Y: %s[%d] @local, out Z: %s[%d] @local) {\n"
        "for i in 0:%d { for j in 0:min(%d, %d - i*%d) { let a: %s = X[i*%d + j] let b: %s = "
        "Y[i*%d + j] "
        "Z[i*%d + j] = %s } } } }",
        x, t->n, x, t->n, z, t->n, rows, n, t->n, n, x, n, x, n, n,
        expression(f->arena, t->op, t->type));
    memset(t->z, 0x5A, sizeof t->z);
    run r = {.ctx = f->ctx, .text = text, .nbuffers = 3};
    size_t bytes = (size_t)kn_dtype_bytes(t->type, t->n);
    r.buffers[0] = (kn_memory){t->x, bytes};
    r.buffers[1] = (kn_memory){t->y, bytes};
    r.buffers[2] = (kn_memory){t->z, (size_t)kn_dtype_bytes(t->result, t->n)};
    run_ok(&r);
    compare(t, text);
}

static bool takes(kn_scalar op, kn_dtype t)
{
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return t != KN_BOOL && t != KN_INDEX;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(t);
    case KN_CLASS_LOGIC: return t == KN_BOOL;
    case KN_CLASS_BITS:
        return t != KN_INDEX && !kn_dtype_is_float(t) &&
               (t != KN_BOOL || (op != KN_OP_SHL && op != KN_OP_SHR));
    case KN_CLASS_COMPARE: return t != KN_INDEX;
    case KN_CLASS_SELECT: break;
    }
    return false;
}

static void operators_mean_what_folding_means(void **state)
{
    fixture *f = *state;
    static table t;
    for (int op = 0; op < KN_SCALAR_COUNT; op++) {
        for (int type = 0; type < KN_DTYPE_COUNT; type++) {
            if (!takes((kn_scalar)op, (kn_dtype)type))
                continue;
            kn_scalar_class class = kn_scalar_get((kn_scalar)op)->class;
            bool truth = class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC;
            t.op = (kn_scalar)op;
            t.type = (kn_dtype)type;
            t.result = truth ? KN_BOOL : t.type;
            fill(&t);
            run_table(f, &t, 1);
            run_table(f, &t, t.n / 5);
        }
    }
}

/* ---- Casts ---- */

static bool allowed(kn_cast_mode mode, kn_dtype from, kn_dtype to)
{
    return mode != KN_CAST_BITCAST ||
           (kn_dtype_bits(from) == kn_dtype_bits(to) && from != KN_BOOL && to != KN_BOOL);
}

static void check_cast(fixture *f, kn_cast_mode mode, kn_dtype from, kn_dtype to)
{
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    static unsigned char x[BYTES], z[BYTES];
    int n = count_of(from);
    for (int i = 0; i < n; i++)
        put_element(from, x, i, value_of(from, i));
    run r = {.ctx = f->ctx, .nbuffers = 2};
    r.text =
        kn_format(f->arena,
                  "module @m { func @f(in X: %s[%d] @local, out Z: %s[%d] @local) {\n"
                  "for i in 0:%d { Z[i] = %s(%s, X[i]) } } }",
                  kn_dtype_name(from), n, kn_dtype_name(to), n, n, modes[mode], kn_dtype_name(to));
    r.buffers[0] = (kn_memory){x, (size_t)kn_dtype_bytes(from, n)};
    r.buffers[1] = (kn_memory){z, (size_t)kn_dtype_bytes(to, n)};
    run_ok(&r);
    for (int i = 0; i < n; i++) {
        kn_number want = kn_number_cast(mode, from, to, value_of(from, i)),
                  got = get_element(to, z, i);
        if (!same(to, want, got))
            fail_msg("%s: %lld %g gives %lld %.9g, not %lld %.9g", r.text,
                     (long long)value_of(from, i).i, value_of(from, i).f, (long long)got.i, got.f,
                     (long long)want.i, want.f);
    }
}

static void casts_mean_what_folding_means(void **state)
{
    fixture *f = *state;
    for (int from = 0; from < KN_INDEX; from++)
        for (int to = 0; to < KN_INDEX; to++)
            for (int mode = KN_CAST_CAST; mode <= KN_CAST_BITCAST; mode++)
                if (allowed((kn_cast_mode)mode, (kn_dtype)from, (kn_dtype)to))
                    check_cast(f, (kn_cast_mode)mode, (kn_dtype)from, (kn_dtype)to);
}

/* ---- By hand ---- */

static const struct {
    const char *type, *value,
        *text; /* the value as text once more, cast to f64 or i64 and printed */
} by_hand[] = {
    {"i8", "100:i8 + 100:i8", "-56"},
    {"u8", "3:u8 - 5:u8", "254"},
    {"i4", "7:i4 + 1:i4", "-8"},
    {"u4", "15:u4 * 15:u4", "1"},
    {"i8", "-128:i8 / -1:i8", "-128"},
    {"i8", "-7:i8 / 2:i8", "-3"},
    {"i8", "-7:i8 % 2:i8", "-1"},
    {"i8", "floordiv(-7:i8, 2:i8)", "-4"},
    {"i8", "mod(-7:i8, 2:i8)", "1"},
    {"i32", "5:i32 / 0:i32", "0"},
    {"i32", "5:i32 % 0:i32", "0"},
    {"i64", "-9223372036854775808:i64 / -1:i64", "-9223372036854775808"},
    {"i32", "1:i32 << 33:i32", "2"},
    {"i8", "-128:i8 >> 3:i8", "-16"},
    {"u8", "128:u8 >> 3:u8", "16"},
    {"u8", "~5:u8", "250"},
    {"i16", "abs(-32768:i16)", "-32768"},
    {"i32", "pow(3:i32, 4:i32)", "81"},
    {"i32", "pow(2:i32, -1:i32)", "0"},
    {"i8", "cast(i8, 300.7)", "127"},
    {"i8", "cast(i8, -1.9)", "-1"},
    {"i8", "cast(i8, nan)", "0"},
    {"u8", "cast(u8, -3.5)", "0"},
    {"u8", "cast(u8, 300:i32)", "44"},
    {"u8", "sat(u8, 300:i32)", "255"},
    {"i8", "sat(i8, -300:i32)", "-128"},
    {"i32", "bitcast(i32, 1.0)", "1065353216"},
    {"i16", "bitcast(i16, 1.0:f16)", "15360"},
    {"i64", "cast(i64, inf)", "9223372036854775807"},
    {"u64", "cast(u64, 1e20)", "-1"},
    {"f32", "1.0 / 3.0", "0.3333333432674408"},
    {"f32", "16777216.0 + 1.0", "16777216.0"},
    {"f64", "1.0:f64 / 3.0:f64", "0.3333333333333333"},
    {"f16", "2048.0:f16 + 1.0:f16", "2048.0"},
    {"f16", "2048.0:f16 + 3.0:f16", "2052.0"},
    {"f16", "60000.0:f16 + 10000.0:f16", "inf"},
    {"bf16", "256.0:bf16 + 1.0:bf16", "256.0"},
    {"f32", "round(2.5)", "2.0"},
    {"f32", "round(-3.5)", "-4.0"},
    {"f32", "max(nan, 1.0)", "nan"},
    {"f32", "min(1.0, nan)", "nan"},
    {"f32", "max(-inf, -3.0)", "-3.0"},
    {"f32", "7.5 % -2.0", "1.5"},
    {"f32", "mod(7.5, -2.0)", "-0.5"},
    {"f32", "floordiv(-7.5, 2.0)", "-4.0"},
    {"f32", "rsqrt(4.0)", "0.5"},
    {"f32", "select(1.0 < nan, 1.0, 2.0)", "2.0"},
    {"f32", "cast(f32, 16777217:i32)", "16777216.0"},
};

static void some_values_by_hand(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof by_hand / sizeof by_hand[0]; i++) {
        const char *type = by_hand[i].type,
                   *wide = type[0] == 'f' || type[0] == 'b' ? "f64" : "i64";
        union {
            double d;
            int64_t i;
        } z = {.i = 0};
        run r = {.ctx = f->ctx, .nbuffers = 1, .buffers = {{&z, sizeof z}}};
        kn_str got = kn_str_make(f->arena);
        r.text = kn_format(
            f->arena,
            "module @m { func @f(out Z: %s[] @local) { let v: %s = %s Z[] = cast(%s, v) } }", wide,
            type, by_hand[i].value, wide);
        run_ok(&r);
        if (wide[0] == 'f')
            kn_put_float(&got, z.d, false);
        else
            kn_putf(&got, "%lld", (long long)z.i);
        assert_string_equal(kn_str_get(&got), by_hand[i].text);
    }
}

static void index_arithmetic_is_floor(void **state)
{
    fixture *f = *state;
    int64_t z[8];
    run r = {
        .ctx = f->ctx, .nscalars = 2, .scalars = {-7, 2}, .nbuffers = 1, .buffers = {MEMORY(z)}};
    r.text = "module @m { func @f(x: index, y: index, out Z: i64[8] @local) {\n"
             "Z[0] = cast(i64, x / y) Z[1] = cast(i64, x % y) Z[2] = cast(i64, min(x, y))\n"
             "Z[3] = cast(i64, abs(x)) Z[4] = cast(i64, x / (y - 2)) Z[5] = cast(i64, -x * y + 3)\n"
             "Z[6] = cast(i64, x / -y) Z[7] = cast(i64, select(x < y, x - y, y - x)) } }";
    const int64_t want[8] = {-4, 1, -7, 7, 0, 17, 3, -9};
    run_ok(&r);
    for (int i = 0; i < 8; i++)
        assert_int_equal(z[i], want[i]);
}

static void index_overflow_is_caught(void **state)
{
    fixture *f = *state;
    int64_t z[1];
    run r = {.ctx = f->ctx,
             .nscalars = 1,
             .scalars = {INT64_MAX},
             .nbuffers = 1,
             .buffers = {MEMORY(z)}};
    r.text = "module @m { func @f(x: index, out Z: i64[1] @local) { Z[0] = cast(i64, x + 1) } }";
    run_fails(&r, "function f: index arithmetic leaves 64 bits", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(operators_mean_what_folding_means),
        KN_TEST(casts_mean_what_folding_means),
        KN_TEST(some_values_by_hand),
        KN_TEST(index_arithmetic_is_floor),
        KN_TEST(index_overflow_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
