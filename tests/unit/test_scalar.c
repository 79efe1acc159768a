/* The C definitions of the scalar operators (runtime/npu/host/scalar.h): against what NOTATION.md
   says, spelled out here once more in another way, and against what the compiler itself folds. */
#include "unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/expr.h"
#include "runtime/npu/host/scalar.h"
#include "support/half.h"

/* ---- Every operator of every type, called by number ---- */

#undef bool /* a macro cannot be handed on to be pasted */
typedef _Bool bool;

/* A value of a type as a kn_number and back. */
#define INT_GET(C, n) ((C)(n).i)
#define INT_PUT(v) ((kn_number){.i = (int64_t)(v)})
#define FLOAT_PUT(v) ((kn_number){.f = (double)(v)})
#define GET_f32(n) ((float)(n).f)
#define GET_f64(n) ((n).f)
#define GET_f16(n) kn_f64_to_f16((n).f)
#define GET_bf16(n) kn_f32_to_bf16((float)(n).f)
#define GET_i4(n) INT_GET(int8_t, n)
#define GET_u4(n) INT_GET(uint8_t, n)
#define GET_i8(n) INT_GET(int8_t, n)
#define GET_u8(n) INT_GET(uint8_t, n)
#define GET_i16(n) INT_GET(int16_t, n)
#define GET_u16(n) INT_GET(uint16_t, n)
#define GET_i32(n) INT_GET(int32_t, n)
#define GET_u32(n) INT_GET(uint32_t, n)
#define GET_i64(n) INT_GET(int64_t, n)
#define GET_u64(n) INT_GET(uint64_t, n)
#define GET_bool(n) ((n).i != 0)
#define GET_index(n) INT_GET(int64_t, n)
#define PUT_f32(v) FLOAT_PUT(v)
#define PUT_f64(v) FLOAT_PUT(v)
#define PUT_f16(v) FLOAT_PUT(kn_f16_to_f32(v))
#define PUT_bf16(v) FLOAT_PUT(kn_bf16_to_f32(v))
#define PUT_i4(v) INT_PUT(v)
#define PUT_u4(v) INT_PUT(v)
#define PUT_i8(v) INT_PUT(v)
#define PUT_u8(v) INT_PUT(v)
#define PUT_i16(v) INT_PUT(v)
#define PUT_u16(v) INT_PUT(v)
#define PUT_i32(v) INT_PUT(v)
#define PUT_u32(v) INT_PUT(v)
#define PUT_i64(v) INT_PUT(v)
#define PUT_u64(v) INT_PUT(v)
#define PUT_bool(v) INT_PUT(v)
#define PUT_index(v) INT_PUT(v)

/* clang-format off */
#define INTEGERS(X) \
    X(I4, i4) X(U4, u4) X(I8, i8) X(U8, u8) \
    X(I16, i16) X(U16, u16) X(I32, i32) X(U32, u32) \
    X(I64, i64) X(U64, u64) X(INDEX, index)
#define FLOATS(X) \
    X(F32, f32) X(F64, f64) X(F16, f16) X(BF16, bf16)

#define ARITH(X, U, t) \
    X(2, ADD, add, U, t) X(2, SUB, sub, U, t) X(2, MUL, mul, U, t) X(2, DIV, div, U, t) \
    X(2, REM, rem, U, t) X(1, NEG, neg, U, t) X(2, FLOORDIV, floordiv, U, t) X(2, MOD, mod, U, t) \
    X(2, MIN, min, U, t) X(2, MAX, max, U, t) X(1, ABS, abs, U, t) X(2, POW, pow, U, t)
#define FLOAT(X, U, t) \
    X(1, EXP, exp, U, t) X(1, EXPM1, expm1, U, t) X(1, LOG, log, U, t) X(1, LOG1P, log1p, U, t) \
    X(1, SQRT, sqrt, U, t) X(1, RSQRT, rsqrt, U, t) X(1, TANH, tanh, U, t) X(1, ERF, erf, U, t) \
    X(1, SIN, sin, U, t) X(1, COS, cos, U, t) X(1, TAN, tan, U, t) X(1, ASIN, asin, U, t) \
    X(1, ACOS, acos, U, t) X(1, ATAN, atan, U, t) X(1, SINH, sinh, U, t) X(1, COSH, cosh, U, t) \
    X(1, ASINH, asinh, U, t) X(1, ACOSH, acosh, U, t) X(1, ATANH, atanh, U, t) X(1, FLOOR, floor, U, t) \
    X(1, CEIL, ceil, U, t) X(1, ROUND, round, U, t)
#define BITS(X, U, t) \
    X(2, AND, and, U, t) X(2, XOR, xor, U, t) X(2, OR, or, U, t) X(1, NOT, not, U, t)
#define SHIFTS(X, U, t) \
    X(2, SHL, shl, U, t) X(2, SHR, shr, U, t)
#define COMPARE(X, U, t) \
    X(TRUTH, LT, lt, U, t) X(TRUTH, LE, le, U, t) X(TRUTH, GT, gt, U, t) X(TRUTH, GE, ge, U, t) \
    X(TRUTH, EQ, eq, U, t) X(TRUTH, NE, ne, U, t)
#define LOGIC(X, U, t) \
    X(2, LAND, land, U, t) X(2, LOR, lor, U, t) X(1, LNOT, lnot, U, t)
#define SELECTS(X, U, t) \
    X(SELECT, SELECT, select, U, t)
/* clang-format on */

#define CALL_1(t, fn, a) PUT_##t(fn(GET_##t(a[0])))
#define CALL_2(t, fn, a) PUT_##t(fn(GET_##t(a[0]), GET_##t(a[1])))
#define CALL_TRUTH(t, fn, a) PUT_bool(fn(GET_##t(a[0]), GET_##t(a[1])))
#define CALL_SELECT(t, fn, a) PUT_##t(fn(GET_bool(a[0]), GET_##t(a[1]), GET_##t(a[2])))
#define DEFINE(SHAPE, ID, id, U, t)                      \
    static kn_number call_##id##_##t(const kn_number *a) \
    {                                                    \
        return CALL_##SHAPE(t, npu_##id##_##t, a);       \
    }
#define ROW(SHAPE, ID, id, U, t) {KN_OP_##ID, KN_##U, call_##id##_##t},

#define OF_INTEGER(X, U, t) \
    ARITH(X, U, t) BITS(X, U, t) SHIFTS(X, U, t) COMPARE(X, U, t) SELECTS(X, U, t)
#define OF_FLOAT(X, U, t) ARITH(X, U, t) FLOAT(X, U, t) COMPARE(X, U, t) SELECTS(X, U, t)
#define OF_BOOL(X, U, t) LOGIC(X, U, t) BITS(X, U, t) COMPARE(X, U, t) SELECTS(X, U, t)
#define DEFINE_INTEGER(U, t) OF_INTEGER(DEFINE, U, t)
#define DEFINE_FLOAT(U, t) OF_FLOAT(DEFINE, U, t)
#define ROW_INTEGER(U, t) OF_INTEGER(ROW, U, t)
#define ROW_FLOAT(U, t) OF_FLOAT(ROW, U, t)

INTEGERS(DEFINE_INTEGER)
FLOATS(DEFINE_FLOAT)
OF_BOOL(DEFINE, BOOL, bool)

typedef struct {
    kn_scalar op;
    kn_dtype type;
    kn_number (*call)(const kn_number *args);
} operation;

static const operation operations[] = {INTEGERS(ROW_INTEGER) FLOATS(ROW_FLOAT)
                                           OF_BOOL(ROW, BOOL, bool)};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- Every cast ---- */

#define DEFINE_CASTS(f, t)                              \
    static kn_number cast_##f##_##t(kn_number v)        \
    {                                                   \
        return PUT_##t(npu_cast_##f##_##t(GET_##f(v))); \
    }                                                   \
    static kn_number sat_##f##_##t(kn_number v)         \
    {                                                   \
        return PUT_##t(npu_sat_##f##_##t(GET_##f(v)));  \
    }
#define CAST_ROW(F, f, T, t) \
    {KN_CAST_CAST, KN_##F, KN_##T, cast_##f##_##t}, {KN_CAST_SAT, KN_##F, KN_##T, sat_##f##_##t},
#define DEFINE_BITCAST(f, t)                               \
    static kn_number bitcast_##f##_##t(kn_number v)        \
    {                                                      \
        return PUT_##t(npu_bitcast_##f##_##t(GET_##f(v))); \
    }
#define BITCAST_ROW(F, f, T, t) {KN_CAST_BITCAST, KN_##F, KN_##T, bitcast_##f##_##t},

/* X(f, t) for all t. */
/* clang-format off */
#define TO_ALL(X, f)                                                                            \
    X(f, i4)                                                                                    \
    X(f, u4)                                                                                    \
    X(f, i8)                                                                                    \
    X(f, u8)                                                                                    \
    X(f, i16) X(f, u16) X(f, i32) X(f, u32) X(f, i64) X(f, u64) X(f, index) X(f, f32) X(f, f64) \
        X(f, f16) X(f, bf16) X(f, bool)
/* clang-format on */
/* clang-format off */
#define TO_ALL_ROWS(X, F, f)                                                                  \
    X(F, f, I4, i4)                                                                           \
    X(F, f, U4, u4)                                                                           \
    X(F, f, I8, i8)                                                                           \
    X(F, f, U8, u8)                                                                           \
    X(F, f, I16, i16) X(F, f, U16, u16) X(F, f, I32, i32) X(F, f, U32, u32) X(F, f, I64, i64) \
        X(F, f, U64, u64) X(F, f, INDEX, index) X(F, f, F32, f32) X(F, f, F64, f64)           \
            X(F, f, F16, f16) X(F, f, BF16, bf16) X(F, f, BOOL, bool)
/* clang-format on */
#define DEFINE_FROM(F, f) TO_ALL(DEFINE_CASTS, f)
#define ROWS_FROM(F, f) TO_ALL_ROWS(CAST_ROW, F, f)

INTEGERS(DEFINE_FROM)
FLOATS(DEFINE_FROM)
DEFINE_FROM(BOOL, bool)

#define SAME_WIDTH(X2, X3, X4, X)       \
    X2(X, I4, i4, U4, u4)               \
    X2(X, I8, i8, U8, u8)               \
    X3(X, F32, f32, I32, i32, U32, u32) \
    X3(X, F64, f64, I64, i64, U64, u64) X4(X, F16, f16, BF16, bf16, I16, i16, U16, u16)
#define DEFINE_NARROW(F, f, T, t) DEFINE_BITCAST(f, t)
#define PAIRS_2(X, A, a, B, b) X(A, a, A, a) X(A, a, B, b) X(B, b, A, a) X(B, b, B, b)
#define PAIRS_3(X, A, a, B, b, C, c) \
    PAIRS_2(X, A, a, B, b) X(A, a, C, c) X(C, c, A, a) X(B, b, C, c) X(C, c, B, b) X(C, c, C, c)
#define PAIRS_4(X, A, a, B, b, C, c, D, d) \
    PAIRS_3(X, A, a, B, b, C, c)           \
    X(A, a, D, d)                          \
    X(D, d, A, a) X(B, b, D, d) X(D, d, B, b) X(C, c, D, d) X(D, d, C, c) X(D, d, D, d)

SAME_WIDTH(PAIRS_2, PAIRS_3, PAIRS_4, DEFINE_NARROW)

typedef struct {
    kn_cast_mode mode;
    kn_dtype from, to;
    kn_number (*call)(kn_number v);
} conversion;

static const conversion conversions[] = {INTEGERS(ROWS_FROM) FLOATS(ROWS_FROM) ROWS_FROM(BOOL, bool)
                                             SAME_WIDTH(PAIRS_2, PAIRS_3, PAIRS_4, BITCAST_ROW)};
enum { CONVERSIONS = sizeof conversions / sizeof conversions[0] };

/* ---- Values worth trying ---- */

enum { MAX_CASES = 700 };

static const double float_cases[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    -1.5,
    2.0,
    2.5,
    3.5,
    -2.5,
    3.0,
    -3.0,
    7.0,
    -7.0,
    0.1,
    -0.3,
    1e-3,
    7.5,
    -8.0,
    -8.5,
    8.0,
    15.5,
    16.0,
    100.0,
    126.9,
    127.0,
    127.5,
    128.0,
    -128.0,
    -128.9,
    -129.0,
    255.0,
    255.9,
    256.0,
    32767.0,
    32768.0,
    -32768.0,
    -32769.0,
    65504.0,
    65519.0,
    65520.0,
    65535.0,
    65536.0,
    2147483520.0,
    2147483647.0,
    2147483648.0,
    -2147483648.0,
    -2147483649.0,
    4294967040.0,
    4294967295.0,
    4294967296.0,
    9.2233714871208960e18,
    9223372036854775808.0,
    -9223372036854775808.0,
    18446742974197923840.0,
    18446744073709551616.0,
    1e30,
    -1e30,
    3.4028234663852886e38,
    3.4028235677973366e38,
    1e300,
    -1e300,
    5.9604644775390625e-08,
    2.98e-08,
    2.9802322387695312e-08,
    2.9802322387695316e-08,
    6.103515625e-05,
    6.1e-05,
    1.1754943508222875e-38,
    1e-40,
    1e-45,
    1e-310,
    1.00048828125,
    1.000488281250001,
    1.00390625,
    1.0039062500000002,
    3.14159265358979,
    20.0,
    88.8,
    -104.0,
    710.0,
    1e10,
};

static int float_values(kn_dtype type, kn_number *out)
{
    int n = 0;
    for (size_t i = 0; i < sizeof float_cases / sizeof float_cases[0]; i++)
        out[n++].f = kn_number_round(type, float_cases[i]);
    out[n++].f = (double)INFINITY;
    out[n++].f = -(double)INFINITY;
    out[n++].f = (double)NAN;
    return n;
}

/* All of the small types; of the large ones what lies at powers of two and at the ends. */
static int integer_values(kn_dtype type, kn_number *out)
{
    int n = 0, bits = kn_dtype_bits(type);
    if (bits <= 8) {
        for (int64_t i = 0; i < (INT64_C(1) << bits); i++)
            out[n++].i = kn_number_wrap(type, i);
        return n;
    }
    for (int shift = 0; shift<bits; shift += bits> 16 ? 5 : 3) {
        for (int64_t d = -2; d <= 2; d++) {
            out[n++].i = kn_number_wrap(type, (int64_t)((uint64_t)1 << shift) + d);
            out[n++].i = kn_number_wrap(type, -(int64_t)((uint64_t)1 << shift) - d);
        }
    }
    for (int64_t d = 0; d <= 2; d++) {
        out[n++].i = (int64_t)((uint64_t)kn_dtype_min(type) + (uint64_t)d);
        out[n++].i = (int64_t)(kn_dtype_max(type) - (uint64_t)d);
    }
    return n;
}

static int values_of(kn_dtype type, kn_number *out)
{
    memset(out, 0, MAX_CASES * sizeof *out);
    if (type == KN_BOOL) {
        out[1].i = 1;
        return 2;
    }
    return kn_dtype_is_float(type) ? float_values(type, out) : integer_values(type, out);
}

static bool same(kn_dtype type, kn_number x, kn_number y)
{
    if (!kn_dtype_is_float(type))
        return x.i == y.i;
    return (isnan(x.f) && isnan(y.f)) || (x.f == y.f && !signbit(x.f) == !signbit(y.f));
}

static void put_number(char *out, size_t n, kn_dtype type, kn_number v)
{
    if (kn_dtype_is_float(type))
        snprintf(out, n, "%.17g", v.f);
    else
        snprintf(out, n, "%lld", (long long)v.i);
}

/* ---- Agreement with what the compiler folds ---- */

static void check_op(const operation *o, const kn_number *args, kn_number found)
{
    const kn_scalar_info *info = kn_scalar_get(o->op);
    bool truth = info->class == KN_CLASS_COMPARE || info->class == KN_CLASS_LOGIC;
    kn_dtype result = truth ? KN_BOOL : o->type;
    kn_number expected = kn_number_op(o->op, o->type, args);
    if (same(result, expected, found))
        return;
    char text[4][40];
    put_number(text[0], sizeof text[0], o->type, args[0]);
    put_number(text[1], sizeof text[1], o->type, args[1]);
    put_number(text[2], sizeof text[2], result, expected);
    put_number(text[3], sizeof text[3], result, found);
    fail_msg("npu_%s_%s(%s, %s): expected %s, found %s", info->id, kn_dtype_name(o->type), text[0],
             text[1], text[2], text[3]);
}

static void operators_agree_with_folding(void **state)
{
    (void)state;
    static kn_number values[MAX_CASES];
    for (int k = 0; k < OPERATIONS; k++) {
        const operation *o = &operations[k];
        int n = values_of(o->type, values);
        int arity = kn_scalar_get(o->op)->arity;
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < (arity > 1 ? n : 1); j++) {
                kn_number args[3] = {values[i], values[j]};
                if (o->op == KN_OP_SELECT) {
                    args[2] = args[0];
                    args[0] = (kn_number){.i = (i + j) & 1};
                }
                check_op(o, args, o->call(args));
            }
        }
    }
}

static void casts_agree_with_folding(void **state)
{
    (void)state;
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    static kn_number values[MAX_CASES];
    for (int k = 0; k < CONVERSIONS; k++) {
        const conversion *v = &conversions[k];
        int n = values_of(v->from, values);
        for (int i = 0; i < n; i++) {
            if (v->mode == KN_CAST_BITCAST && kn_dtype_is_float(v->from) && isnan(values[i].f))
                continue; /* which NaN it is is nobody's promise */
            kn_number expected = kn_number_cast(v->mode, v->from, v->to, values[i]);
            kn_number found = v->call(values[i]);
            char text[3][40];
            put_number(text[0], sizeof text[0], v->from, values[i]);
            put_number(text[1], sizeof text[1], v->to, expected);
            put_number(text[2], sizeof text[2], v->to, found);
            if (!same(v->to, expected, found))
                fail_msg("npu_%s_%s_%s(%s): expected %s, found %s", modes[v->mode],
                         kn_dtype_name(v->from), kn_dtype_name(v->to), text[0], text[1], text[2]);
        }
    }
}

static bool takes(kn_scalar op, kn_dtype type)
{
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return type != KN_BOOL;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(type);
    case KN_CLASS_LOGIC: return type == KN_BOOL;
    case KN_CLASS_BITS:
        return kn_dtype_is_integer(type) || (type == KN_BOOL && op != KN_OP_SHL && op != KN_OP_SHR);
    case KN_CLASS_COMPARE:
    case KN_CLASS_SELECT: return true;
    }
    return false;
}

/* A row that comes into ir/scalar.def must come into scalar.h, and into the table above. */
static void every_row_is_there(void **state)
{
    (void)state;
    for (int op = 0; op < KN_SCALAR_COUNT; op++) {
        for (int type = 0; type < KN_DTYPE_COUNT; type++) {
            int found = 0;
            for (int k = 0; k < OPERATIONS; k++)
                found += operations[k].op == (kn_scalar)op && operations[k].type == (kn_dtype)type;
            if (found != (takes((kn_scalar)op, (kn_dtype)type) ? 1 : 0))
                fail_msg("%s of %s", kn_scalar_get((kn_scalar)op)->id,
                         kn_dtype_name((kn_dtype)type));
        }
    }
}

/* ---- Independent expectations ---- */

/* The integer types that fit a long long with room to spare, exhaustively: mathematics first, then
 * wrapping. */
static long long wrap(int bits, bool is_signed, long long v)
{
    long long range = 1LL << bits;
    long long r = ((v % range) + range) % range;
    return is_signed && r >= range / 2 ? r - range : r;
}

static long long floor_of(double v)
{
    return (long long)floor(v);
}

static long long power_of(long long a, long long b, int bits, bool is_signed)
{
    long long r = 1;
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    for (long long i = 0; i < b; i++)
        r = wrap(bits, is_signed, r * a);
    return r;
}

static long long expected_of(kn_scalar op, long long a, long long b, int bits, bool is_signed)
{
    long long range = 1LL << bits, ua = (a + range) % range, ub = (b + range) % range;
    double quotient = b ? (double)a / (double)b : 0;
    switch (op) {
    case KN_OP_ADD: return a + b;
    case KN_OP_SUB: return a - b;
    case KN_OP_MUL: return a * b;
    case KN_OP_DIV: return (long long)trunc(quotient);
    case KN_OP_REM: return b ? a - b * (long long)trunc(quotient) : 0;
    case KN_OP_NEG: return -a;
    case KN_OP_FLOORDIV: return floor_of(quotient);
    case KN_OP_MOD: return b ? a - b * floor_of(quotient) : 0;
    case KN_OP_MIN: return a <= b ? a : b;
    case KN_OP_MAX: return a <= b ? b : a;
    case KN_OP_ABS: return llabs(a);
    case KN_OP_POW: return power_of(a, b, bits, is_signed);
    case KN_OP_AND: return ua & ub;
    case KN_OP_XOR: return ua ^ ub;
    case KN_OP_OR: return ua | ub;
    case KN_OP_NOT: return range - 1 - ua;
    case KN_OP_SHL: return a * (1LL << (ub % bits));
    case KN_OP_SHR: return floor_of((double)a / (double)(1LL << (ub % bits)));
    case KN_OP_LT: return a < b;
    case KN_OP_LE: return a <= b;
    case KN_OP_GT: return a > b;
    case KN_OP_GE: return a >= b;
    case KN_OP_EQ: return a == b;
    case KN_OP_NE: return a != b;
    default: return 0;
    }
}

static void small_integers_are_exact(void **state)
{
    (void)state;
    static kn_number values[MAX_CASES];
    for (int k = 0; k < OPERATIONS; k++) {
        const operation *o = &operations[k];
        int bits = kn_dtype_bits(o->type);
        if (kn_dtype_is_float(o->type) || o->type == KN_BOOL || bits > 16 ||
            o->op == KN_OP_SELECT || (o->op == KN_OP_POW && bits > 8))
            continue;
        int n = values_of(o->type, values);
        bool is_signed = kn_dtype_is_signed(o->type);
        for (int i = 0; i < n * n; i++) {
            kn_number args[3] = {values[i / n], values[i % n]};
            long long e =
                wrap(bits, is_signed, expected_of(o->op, args[0].i, args[1].i, bits, is_signed));
            if (o->call(args).i != e)
                fail_msg("npu_%s_%s(%lld, %lld): expected %lld, found %lld",
                         kn_scalar_get(o->op)->id, kn_dtype_name(o->type), (long long)args[0].i,
                         (long long)args[1].i, e, (long long)o->call(args).i);
        }
    }
}

static void large_integers_at_the_edges(void **state)
{
    (void)state;
    assert_true(npu_add_i32(INT32_MAX, 1) == INT32_MIN);
    assert_true(npu_sub_i64(INT64_MIN, 1) == INT64_MAX);
    assert_true(npu_mul_i32(65536, 65536) == 0);
    assert_true(npu_mul_u16(65535, 65535) == 1);
    assert_true(npu_mul_i64(INT64_MAX, 2) == -2);
    assert_true(npu_neg_i64(INT64_MIN) == INT64_MIN);
    assert_true(npu_abs_i32(INT32_MIN) == INT32_MIN);
    assert_true(npu_div_i32(INT32_MIN, -1) == INT32_MIN);
    assert_true(npu_div_i64(INT64_MIN, -1) == INT64_MIN);
    assert_true(npu_rem_i64(INT64_MIN, -1) == 0);
    assert_true(npu_div_i64(-7, 2) == -3);
    assert_true(npu_rem_i64(-7, 2) == -1);
    assert_true(npu_div_index(-7, 2) == -4);
    assert_true(npu_rem_index(-7, 2) == 1);
    assert_true(npu_rem_index(7, -2) == -1);
    assert_true(npu_floordiv_index(INT64_MIN, 1) == INT64_MIN);
    assert_true(npu_div_u64(UINT64_MAX, 0) == 0);
    assert_true(npu_rem_u32(7, 0) == 0);
    assert_true(npu_mod_i64(5, 0) == 0);
    assert_true(npu_shl_i32(1, 33) == 2);
    assert_true(npu_shl_i64(1, -1) == INT64_MIN);
    assert_true(npu_shr_i64(-8, 1) == -4);
    assert_true(npu_shr_i32(INT32_MIN, 31) == -1);
    assert_true(npu_shr_u32(0x80000000u, 31) == 1);
    assert_true(npu_pow_i64(3, 40) == INT64_C(-6289078614652622815));
    assert_true(npu_pow_i32(-1, -3) == -1);
    assert_true(npu_pow_i32(0, -1) == 0);
    assert_true(npu_pow_u8(2, 8) == 0);
}

static void float_rules(void **state)
{
    (void)state;
    assert_true(isnan(npu_max_f32(NAN, 1)) && isnan(npu_max_f32(1, NAN)) &&
                isnan(npu_min_f64((double)NAN, 1)));
    assert_true(!signbit(npu_max_f32(-0.0f, 0.0f)) && !signbit(npu_max_f32(0.0f, -0.0f)));
    assert_true(signbit(npu_min_f32(-0.0f, 0.0f)) && signbit(npu_min_f32(0.0f, -0.0f)));
    assert_true(signbit(npu_max_f64(-0.0, -0.0)) && npu_max_f64(-2.0, -3.0) == -2.0);
    assert_true(npu_min_f32(-INFINITY, 2) == -INFINITY && npu_max_f32(INFINITY, 2) == INFINITY);
    assert_true(npu_round_f32(0.5f) == 0 && npu_round_f32(1.5f) == 2 && npu_round_f64(-2.5) == -2);
    assert_true(npu_rem_f32(-7, 3) == -1 && npu_mod_f32(-7, 3) == 2 &&
                npu_floordiv_f32(-7, 3) == -3);
    assert_true(npu_mod_f64(7, -3) == -2 && npu_floordiv_f64(7, -2) == -4);
    assert_true(npu_rsqrt_f32(4) == 0.5f);
    assert_true(npu_add_f16(0x3c00, 0x1000) == 0x3c00); /* 1 + half a last bit: to even */
    assert_true(npu_add_f16(0x3c01, 0x1000) == 0x3c02);
    assert_true(npu_mul_f16(0x7bff, 0x4000) == 0x7c00); /* 65504 * 2 */
    assert_true(npu_lt_f16(0xbc00, 0x3c00) && !npu_eq_f16(0x7e00, 0x7e00) && npu_eq_f16(0x8000, 0));
    assert_true(npu_add_bf16(0x3f80, 0x3b80) == 0x3f80); /* 1 + 2^-8 */
}

static void conversion_rules(void **state)
{
    (void)state;
    assert_true(npu_cast_f32_i8(127.9f) == 127 && npu_cast_f32_i8(128.0f) == 127 &&
                npu_cast_f32_i8(-1e9f) == -128);
    assert_true(npu_cast_f32_i32(NAN) == 0 && npu_cast_f32_u8(NAN) == 0 &&
                npu_cast_f64_i64((double)NAN) == 0);
    assert_true(npu_cast_f32_i32(2147483648.0f) == INT32_MAX &&
                npu_cast_f32_i32(-INFINITY) == INT32_MIN);
    assert_true(npu_cast_f64_i64(9.3e18) == INT64_MAX && npu_cast_f32_u64(INFINITY) == UINT64_MAX);
    assert_true(npu_cast_f32_u4(-0.9f) == 0 && npu_cast_f32_u4(15.9f) == 15 &&
                npu_cast_f32_i4(-99.0f) == -8);
    assert_true(npu_cast_f32_i32(-1.9f) == -1 && npu_cast_f32_u32(4294967040.0f) == 4294967040u);
    assert_true(npu_cast_i32_i8(200) == -56 && npu_sat_i32_i8(200) == 127 &&
                npu_sat_i32_u8(-5) == 0);
    assert_true(npu_sat_u64_i64(UINT64_MAX) == INT64_MAX && npu_sat_i64_u64(-1) == 0);
    assert_true(npu_cast_i64_u32(-1) == UINT32_MAX && npu_cast_i8_u64(-1) == UINT64_MAX);
    assert_true(npu_cast_i32_i4(9) == -7 && npu_sat_i32_i4(9) == 7 && npu_sat_i8_u4(-3) == 0);
    assert_true(npu_cast_f32_bool(0.25f) && !npu_cast_f32_bool(-0.0f) && npu_cast_f32_bool(NAN));
    assert_true(npu_cast_bool_f32(true) == 1.0f && npu_cast_bool_f16(true) == 0x3c00);
    assert_true(npu_cast_f64_f16(1.00048828125) == 0x3c00); /* a tie */
    assert_true(npu_cast_f64_f16(1.0004882812500002) ==
                0x3c01); /* above it, though an f32 is not */
    assert_true(npu_bitcast_f32_u32(1.0f) == 0x3f800000 && npu_bitcast_i32_f32(0x40000000) == 2.0f);
    assert_true(npu_bitcast_u4_i4(15) == -1 && npu_bitcast_i8_u8(-1) == 255);
}

static void nibbles_stay_apart(void **state)
{
    (void)state;
    uint8_t bytes[4] = {0};
    for (int i = 0; i < 8; i++)
        npu_store_i4(bytes, i, (int8_t)(i - 4));
    assert_int_equal(bytes[0], 0xdc); /* -4 in the low nibble, -3 in the high one */
    for (int i = 0; i < 8; i++)
        assert_int_equal(npu_load_i4(bytes, i), i - 4);
    npu_store_u4(bytes, 3, 15);
    assert_int_equal(npu_load_u4(bytes, 3), 15);
    assert_int_equal(npu_load_i4(bytes, 2), -2);
    assert_int_equal(npu_load_i4(bytes, 4), 0);
}

/* ---- Half conversions, against support/half.h ---- */

static void every_half_widens_as_in_support(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t h = (uint16_t)i;
        assert_int_equal(npu_bits_f32(npu_widen_f16(h)), npu_bits_f32(kn_f16_to_f32(h)));
        assert_int_equal(npu_bits_f32(npu_widen_bf16(h)), npu_bits_f32(kn_bf16_to_f32(h)));
    }
}

static void check_narrowing(uint32_t bits)
{
    float f = npu_from_bits_f32(bits);
    if (npu_narrow_f16(f) != kn_f32_to_f16(f) || npu_narrow_bf16(f) != kn_f32_to_bf16(f))
        fail_msg("narrowing of 0x%08x", (unsigned)bits);
}

static void floats_narrow_as_in_support(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 2000000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        check_narrowing((uint32_t)(seed >> 32));
    }
    for (uint32_t i = 0; i < 65536; i++) {
        for (uint32_t d = 0; d < 3; d++) {
            check_narrowing((i << 16) + d - 1);                                /* at a bf16 */
            check_narrowing((i << 16) + 0x8000 + d - 1);                       /* between two */
            check_narrowing(npu_bits_f32(kn_f16_to_f32((uint16_t)i)) + d - 1); /* at an f16 */
            check_narrowing(npu_bits_f32(kn_f16_to_f32((uint16_t)i)) + 0x1000 + d -
                            1); /* between */
        }
    }
}

static void doubles_narrow_with_one_rounding(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < 1000000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t exponent = i & 1 ? 1023 - 30 + (seed >> 55) % 50 : seed >> 52 & 0x7ff;
        uint64_t fraction =
            i & 2 ? seed & UINT64_C(0xffc0000000000) : seed & UINT64_C(0xfffffffffffff);
        uint64_t bits = (seed & UINT64_C(0x8000000000000000)) | exponent << 52 | fraction |
                        (uint64_t)(i >> 2 & 1);
        double d = npu_from_bits_f64(bits);
        if (npu_narrow_f64_f16(d) != kn_f64_to_f16(d))
            fail_msg("narrowing of %a", d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_agree_with_folding),
        cmocka_unit_test(casts_agree_with_folding),
        cmocka_unit_test(every_row_is_there),
        cmocka_unit_test(small_integers_are_exact),
        cmocka_unit_test(large_integers_at_the_edges),
        cmocka_unit_test(float_rules),
        cmocka_unit_test(conversion_rules),
        cmocka_unit_test(nibbles_stay_apart),
        cmocka_unit_test(every_half_widens_as_in_support),
        cmocka_unit_test(floats_narrow_as_in_support),
        cmocka_unit_test(doubles_narrow_with_one_rounding),
    };
    return cmocka_run_group_tests_name("scalar", tests, NULL, NULL);
}
