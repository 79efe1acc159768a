/* The scalar semantics on values: what every operator and cast means for every type. Folding, the
   interpreter and the tests take it from here; the code generators and runtime/npu/host must agree
   with it bit by bit, but for the last bits of libm's functions.

   Integers are computed modulo 2^64 and wrapped to their width. f32 is computed in float, never in
   double; f16 and bf16 in float and rounded after each operator. A value of type bool is 0 or 1. */
#include "ir/expr_internal.h"

#include <assert.h>
#include <math.h>

#include "support/half.h"

/* ---- Normal values ---- */

int64_t kn_number_wrap(kn_dtype type, int64_t i)
{
    int bits = kn_dtype_bits(type);
    if (type == KN_BOOL)
        return i != 0;
    if (bits == 64)
        return i;
    uint64_t sign = (uint64_t)1 << (bits - 1), mask = (sign << 1) - 1;
    uint64_t low = (uint64_t)i & mask;
    return kn_dtype_is_signed(type) ? (int64_t)((low ^ sign) - sign) : (int64_t)low;
}

double kn_number_round(kn_dtype type, double f)
{
    switch (type) {
    case KN_F32: return (double)(float)f;
    case KN_F16: return (double)kn_f16_to_f32(kn_f64_to_f16(f));
    case KN_BF16: return (double)kn_bf16_to_f32(kn_f32_to_bf16((float)f));
    default: return f;
    }
}

static kn_number of_int(kn_dtype type, int64_t i)
{
    return (kn_number){.i = kn_number_wrap(type, i)};
}

static kn_number of_bool(bool b)
{
    return (kn_number){.i = b};
}

/* A row of scalar.def that its class's function does not know: our bug. */
static void not_an_operator(void)
{
    assert(false);
}

/* ---- Floats ---- */

/* NaN if one is; -0 is below +0. */
#define LEAST(x, y) (x < y || isnan(x) ? x : y < x || isnan(y) ? y : signbit(x) ? x : y)
#define GREATEST(x, y) (x > y || isnan(x) ? x : y > x || isnan(y) ? y : signbit(x) ? y : x)

/* The operators on floats, one list for float and double: F(name) is libm's for the type. */
/* clang-format off */
#define FLOAT_OPS(ROW, F)               \
    ROW(ADD, x + y)                     \
    ROW(SUB, x - y)                     \
    ROW(MUL, x * y)                     \
    ROW(DIV, x / y)                     \
    ROW(REM, F(fmod)(x, y))             \
    ROW(NEG, -x)                        \
    ROW(FLOORDIV, F(floor)(x / y))      \
    ROW(MOD, F(mod_floor)(x, y))        \
    ROW(MIN, LEAST(x, y))               \
    ROW(MAX, GREATEST(x, y))            \
    ROW(ABS, F(fabs)(x))                \
    ROW(POW, F(pow)(x, y))              \
    ROW(EXP, F(exp)(x))                 \
    ROW(EXPM1, F(expm1)(x))             \
    ROW(LOG, F(log)(x))                 \
    ROW(LOG1P, F(log1p)(x))             \
    ROW(SQRT, F(sqrt)(x))               \
    ROW(RSQRT, 1 / F(sqrt)(x))          \
    ROW(TANH, F(tanh)(x))               \
    ROW(ERF, F(erf)(x))                 \
    ROW(SIN, F(sin)(x))                 \
    ROW(COS, F(cos)(x))                 \
    ROW(TAN, F(tan)(x))                 \
    ROW(ASIN, F(asin)(x))               \
    ROW(ACOS, F(acos)(x))               \
    ROW(ATAN, F(atan)(x))               \
    ROW(SINH, F(sinh)(x))               \
    ROW(COSH, F(cosh)(x))               \
    ROW(ASINH, F(asinh)(x))             \
    ROW(ACOSH, F(acosh)(x))             \
    ROW(ATANH, F(atanh)(x))             \
    ROW(FLOOR, F(floor)(x))             \
    ROW(CEIL, F(ceil)(x))               \
    ROW(ROUND, F(rint)(x))
/* clang-format on */

#define ROW(id, value) \
    case KN_OP_##id:   \
        return value;
#define SINGLE(name) name##f
#define DOUBLE(name) name

static float mod_floorf(float x, float y)
{
    float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static double mod_floor(double x, double y)
{
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static float float_op(kn_scalar op, float x, float y)
{
    switch (op) {
        FLOAT_OPS(ROW, SINGLE)
    default: break;
    }
    not_an_operator();
    return 0;
}

static double double_op(kn_scalar op, double x, double y)
{
    switch (op) {
        FLOAT_OPS(ROW, DOUBLE)
    default: break;
    }
    not_an_operator();
    return 0;
}

static kn_number float_value(kn_scalar op, kn_dtype type, double x, double y)
{
    if (type == KN_F64)
        return (kn_number){.f = double_op(op, x, y)};
    return (kn_number){.f = kn_number_round(type, (double)float_op(op, (float)x, (float)y))};
}

static bool compare_floats(kn_scalar op, double x, double y)
{
    switch (op) {
    case KN_OP_LT: return x < y;
    case KN_OP_LE: return x <= y;
    case KN_OP_GT: return x > y;
    case KN_OP_GE: return x >= y;
    case KN_OP_EQ: return x == y;
    default: return x != y;
    }
}

/* ---- Integers ---- */

static bool is_unsigned(kn_dtype type)
{
    return !kn_dtype_is_signed(type);
}

static int64_t wrapping_negate(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

/* Truncates; by zero 0; MIN / -1 wraps, here for 64 bits and by kn_number_wrap for less. */
static int64_t truncating_divide(kn_dtype type, int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    if (is_unsigned(type))
        return (int64_t)((uint64_t)x / (uint64_t)y);
    return y == -1 ? wrapping_negate(x) : x / y;
}

static int64_t truncating_remainder(kn_dtype type, int64_t x, int64_t y)
{
    if (y == 0)
        return 0;
    if (is_unsigned(type))
        return (int64_t)((uint64_t)x % (uint64_t)y);
    return y == -1 ? 0 : x % y;
}

static int64_t floor_divide(kn_dtype type, int64_t x, int64_t y)
{
    int64_t r = truncating_remainder(type, x, y);
    bool down = !is_unsigned(type) && r != 0 && (r < 0) != (y < 0);
    return truncating_divide(type, x, y) - down;
}

static int64_t floor_modulo(kn_dtype type, int64_t x, int64_t y)
{
    int64_t r = truncating_remainder(type, x, y);
    bool down = !is_unsigned(type) && r != 0 && (r < 0) != (y < 0);
    return down ? r + y : r;
}

/* x to a power below zero: 1 and -1 stay what they are, the rest truncates to 0. */
static int64_t integer_power(kn_dtype type, int64_t x, int64_t y)
{
    uint64_t r = 1, base = (uint64_t)x, n = (uint64_t)y;
    if (kn_dtype_is_signed(type) && y < 0) {
        if (x == 1 || x == -1)
            return y % 2 == 0 ? 1 : x;
        return 0;
    }
    for (; n > 0; n >>= 1, base *= base)
        r *= n & 1 ? base : 1;
    return (int64_t)r;
}

/* -1, 0, 1 */
static int integer_order(kn_dtype type, int64_t x, int64_t y)
{
    if (is_unsigned(type))
        return ((uint64_t)x > (uint64_t)y) - ((uint64_t)x < (uint64_t)y);
    return (x > y) - (x < y);
}

static int64_t shift_left(kn_dtype type, int64_t x, int64_t by)
{
    uint64_t width = (uint64_t)kn_dtype_bits(type);
    return (int64_t)((uint64_t)x << ((uint64_t)by % width));
}

/* Arithmetic on signed types, spelled so that C defines it. */
static int64_t shift_right(kn_dtype type, int64_t x, int64_t by)
{
    uint64_t n = (uint64_t)by % (uint64_t)kn_dtype_bits(type);
    if (is_unsigned(type) || x >= 0)
        return (int64_t)((uint64_t)x >> n);
    return (int64_t) ~(~(uint64_t)x >> n);
}

static int64_t integer_arithmetic(kn_scalar op, kn_dtype type, int64_t x, int64_t y)
{
    bool is_index = type == KN_INDEX;
    switch (op) {
    case KN_OP_ADD: return (int64_t)((uint64_t)x + (uint64_t)y);
    case KN_OP_SUB: return (int64_t)((uint64_t)x - (uint64_t)y);
    case KN_OP_MUL: return (int64_t)((uint64_t)x * (uint64_t)y);
    case KN_OP_DIV: return is_index ? floor_divide(type, x, y) : truncating_divide(type, x, y);
    case KN_OP_REM: return is_index ? floor_modulo(type, x, y) : truncating_remainder(type, x, y);
    case KN_OP_NEG: return wrapping_negate(x);
    case KN_OP_FLOORDIV: return floor_divide(type, x, y);
    case KN_OP_MOD: return floor_modulo(type, x, y);
    case KN_OP_MIN: return integer_order(type, x, y) < 0 ? x : y;
    case KN_OP_MAX: return integer_order(type, x, y) > 0 ? x : y;
    case KN_OP_ABS: return is_unsigned(type) || x >= 0 ? x : wrapping_negate(x);
    case KN_OP_POW: return integer_power(type, x, y);
    default: break;
    }
    not_an_operator();
    return 0;
}

static int64_t bit_op(kn_scalar op, kn_dtype type, int64_t x, int64_t y)
{
    switch (op) {
    case KN_OP_AND: return x & y;
    case KN_OP_OR: return x | y;
    case KN_OP_XOR: return x ^ y;
    case KN_OP_NOT: return type == KN_BOOL ? !x : ~x;
    case KN_OP_SHL: return shift_left(type, x, y);
    case KN_OP_SHR: return shift_right(type, x, y);
    default: break;
    }
    not_an_operator();
    return 0;
}

static bool compare_integers(kn_scalar op, kn_dtype type, int64_t x, int64_t y)
{
    return compare_floats(op, integer_order(type, x, y), 0);
}

/* ---- Operators ---- */

static bool logic_op(kn_scalar op, bool x, bool y)
{
    return op == KN_OP_LAND ? x && y : op == KN_OP_LOR ? x || y : !x;
}

kn_number kn_number_op(kn_scalar op, kn_dtype type, const kn_number *args)
{
    const kn_scalar_info *info = kn_scalar_get(op);
    kn_number x = args[0], y = info->arity > 1 ? args[1] : (kn_number){0};
    bool real = kn_dtype_is_float(type);

    switch (info->class) {
    case KN_CLASS_ARITH:
    case KN_CLASS_FLOAT:
        return real ? float_value(op, type, x.f, y.f)
                    : of_int(type, integer_arithmetic(op, type, x.i, y.i));
    case KN_CLASS_COMPARE:
        return of_bool(real ? compare_floats(op, x.f, y.f) : compare_integers(op, type, x.i, y.i));
    case KN_CLASS_LOGIC: return of_bool(logic_op(op, x.i != 0, y.i != 0));
    case KN_CLASS_BITS: return of_int(type, bit_op(op, type, x.i, y.i));
    case KN_CLASS_SELECT: return x.i ? y : args[2];
    }
    return x;
}

/* ---- Casts ---- */

/* Truncates and saturates; NaN gives 0. The bounds are exact in double: -2^(n-1) or 0, and 2^n or
 * 2^(n-1). */
static int64_t float_to_int(kn_dtype to, double f)
{
    int magnitude_bits = kn_dtype_bits(to) - kn_dtype_is_signed(to);
    double lo = kn_dtype_is_signed(to) ? -ldexp(1, magnitude_bits) : 0;
    if (isnan(f))
        return 0;
    if (f <= lo)
        return kn_dtype_min(to);
    if (f >= ldexp(1, magnitude_bits))
        return (int64_t)kn_dtype_max(to);
    return is_unsigned(to) ? (int64_t)(uint64_t)f : (int64_t)f;
}

/* One rounding for f32 and f64; f16 and bf16 round the f32 (for f16 that is exact: all it could
 * round twice is infinite). */
static double int_to_float(kn_dtype from, kn_dtype to, int64_t i)
{
    bool large = from == KN_U64;
    if (to == KN_F64)
        return large ? (double)(uint64_t)i : (double)i;
    float f = large ? (float)(uint64_t)i : (float)i;
    return kn_number_round(to, (double)f);
}

static int64_t saturate(kn_dtype from, kn_dtype to, int64_t i)
{
    int64_t lo = kn_dtype_min(to);
    uint64_t hi = kn_dtype_max(to);
    if (from != KN_U64 && i < 0)
        return i < lo ? lo : i;
    return (uint64_t)i > hi ? (int64_t)hi : i;
}

static uint64_t bits_of(kn_dtype type, kn_number v)
{
    float f = (float)v.f;
    uint32_t word;
    uint64_t bits = (uint64_t)v.i;
    switch (type) {
    case KN_F64: memcpy(&bits, &v.f, sizeof bits); return bits;
    case KN_F32: memcpy(&word, &f, sizeof word); return word;
    case KN_F16: return kn_f32_to_f16(f);
    case KN_BF16: return kn_f32_to_bf16(f);
    default: return bits;
    }
}

static kn_number of_bits(kn_dtype type, uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    kn_number v = {0};
    float f;
    switch (type) {
    case KN_F64: memcpy(&v.f, &bits, sizeof v.f); return v;
    case KN_F32: memcpy(&f, &word, sizeof f); return (kn_number){.f = (double)f};
    case KN_F16: return (kn_number){.f = (double)kn_f16_to_f32((uint16_t)bits)};
    case KN_BF16: return (kn_number){.f = (double)kn_bf16_to_f32((uint16_t)bits)};
    default: return of_int(type, (int64_t)bits);
    }
}

kn_number kn_number_cast(kn_cast_mode mode, kn_dtype from, kn_dtype to, kn_number v)
{
    bool from_float = kn_dtype_is_float(from);
    if (mode == KN_CAST_BITCAST) {
        assert(kn_dtype_bits(from) == kn_dtype_bits(to));
        return of_bits(to, bits_of(from, v));
    }
    if (kn_dtype_is_float(to))
        return (kn_number){.f =
                               from_float ? kn_number_round(to, v.f) : int_to_float(from, to, v.i)};
    if (to == KN_BOOL)
        return of_bool(from_float ? v.f != 0 : v.i != 0);
    if (from_float)
        return (kn_number){.i = float_to_int(to, v.f)};
    return mode == KN_CAST_SAT ? (kn_number){.i = saturate(from, to, v.i)} : of_int(to, v.i);
}

/* ---- Expressions ---- */

static const kn_expr *literal(kn_arena *a, kn_dtype type, kn_number v)
{
    return kn_dtype_is_float(type) ? kn_float(a, type, v.f) : kn_int(a, type, v.i);
}

/* The type of the operands: that of the last, so that it serves select too. */
static kn_dtype operand_type(const kn_expr *e)
{
    return e->args[e->nargs - 1]->type;
}

const kn_expr *kn_expr_fold(kn_arena *a, const kn_expr *e)
{
    kn_number args[3] = {{0}};
    if (e->kind == KN_E_CONST)
        return e;
    if ((e->kind != KN_E_OP && e->kind != KN_E_CAST) || e->type == KN_UNTYPED)
        return NULL;
    for (int i = 0; i < e->nargs; i++) {
        if (e->args[i]->kind != KN_E_CONST || e->args[i]->type == KN_UNTYPED)
            return NULL;
        args[i] = (kn_number){e->args[i]->i, e->args[i]->f};
    }
    if (e->kind == KN_E_CAST)
        return literal(a, e->type, kn_number_cast(e->mode, e->args[0]->type, e->type, args[0]));
    return literal(a, e->type, kn_number_op(e->op, operand_type(e), args));
}
