/* What the typed instructions do, as rows: interp_rows.def lists them all, by the groups
   that stand here. Each becomes two small functions: one that does it once
   (interp_single.c), one that does it for many lanes (interp_many.c). Such a file says what a row
   of each shape is, twice: as a function, then as an entry of its array of functions by opcode.

     BINARY(op, T, get, put, value)       D = value of x and y, which are got from X and Y
     UNARY(op, T, get, put, value)        D = value of x
     CONVERT(name, opcode, field, value)  D.field = value of X
     LOAD(T)  LOAD_IF(T)  STORE(T)        an element
     UPDATE(update, T, get, put, value)   the element x becomes value of x and y
     PRODUCT(T, get, put, product, value) the element `sum` becomes value of it and xy, which
   `product` makes of x and y

   The meaning is that of kn_number_op and kn_number_cast (ir/fold.c), type by type and without
   their detours; a test compares them. */
#ifndef KN_IR_INTERP_OPS_H
#define KN_IR_INTERP_OPS_H

#include <math.h>

#include "ir/interp_internal.h"
#include "support/half.h"

/* ---- Wrapping to a width ---- */

static inline int64_t wrap_I4(uint64_t v)
{
    return (int64_t)((v & 15) ^ 8) - 8;
}
static inline int64_t wrap_U4(uint64_t v)
{
    return (int64_t)(v & 15);
}
#define WRAP(T, ctype)                         \
    static inline int64_t wrap_##T(uint64_t v) \
    {                                          \
        return (int64_t)(ctype)v;              \
    }
WRAP(I8, int8_t)
WRAP(U8, uint8_t)
WRAP(I16, int16_t)
WRAP(U16, uint16_t)
WRAP(I32, int32_t)
WRAP(U32, uint32_t)
WRAP(I64, int64_t)
WRAP(U64, uint64_t)
WRAP(INDEX, int64_t)
#undef WRAP

/* ---- Integers of up to 64 bits: _s signed (and the narrow unsigned, which fit), _u for u64 ----
 */

static inline int64_t negate(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

static inline int64_t div_s(int64_t x, int64_t y)
{
    return y == 0 ? 0 : y == -1 ? negate(x) : x / y;
}

static inline int64_t rem_s(int64_t x, int64_t y)
{
    return y == 0 || y == -1 ? 0 : x % y;
}

static inline int64_t floordiv_s(int64_t x, int64_t y)
{
    int64_t r = rem_s(x, y);
    return div_s(x, y) - (r != 0 && (r < 0) != (y < 0));
}

static inline int64_t mod_s(int64_t x, int64_t y)
{
    int64_t r = rem_s(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline int64_t div_u(int64_t x, int64_t y)
{
    return y == 0 ? 0 : (int64_t)((uint64_t)x / (uint64_t)y);
}

static inline int64_t rem_u(int64_t x, int64_t y)
{
    return y == 0 ? 0 : (int64_t)((uint64_t)x % (uint64_t)y);
}

#define floordiv_u div_u
#define mod_u rem_u
#define abs_s(x) ((x) < 0 ? negate(x) : (x))
#define abs_u(x) (x)
#define shr_s(x, n) \
    ((x) >= 0 ? (int64_t)((uint64_t)(x) >> (n)) : (int64_t) ~(~(uint64_t)(x) >> (n)))
#define shr_u(x, n) ((int64_t)((uint64_t)(x) >> (n)))
#define less_s(x, y) ((x) < (y))
#define less_u(x, y) ((uint64_t)(x) < (uint64_t)(y))

static inline int64_t power_u(int64_t x, int64_t y)
{
    uint64_t r = 1, base = (uint64_t)x;
    for (uint64_t n = (uint64_t)y; n; n >>= 1, base *= base)
        r *= n & 1 ? base : 1;
    return (int64_t)r;
}

static inline int64_t power_s(int64_t x, int64_t y)
{
    if (y >= 0)
        return power_u(x, y);
    return x == 1 || x == -1 ? (y % 2 == 0 ? 1 : x) : 0;
}

/* ---- Floats ---- */

static inline uint32_t bits_of_f32(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float f32_of_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float mod_f32(float x, float y)
{
    float r = fmodf(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline double mod_f64(double x, double y)
{
    double r = fmod(x, y);
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

#define get_F32(s) (s).f
#define get_F64(s) (s).d
#define get_F16(s) kn_f16_to_f32((uint16_t)(s).u)
#define get_BF16(s) kn_bf16_to_f32((uint16_t)(s).u)
#define put_F32(s, v) ((s).f = (v))
#define put_F64(s, v) ((s).d = (v))
#define put_F16(s, v) ((s).u = kn_f32_to_f16(v))
#define put_BF16(s, v) ((s).u = kn_f32_to_bf16(v))
#define single(name) name##f
#define double_(name) name
#define modulo_single mod_f32
#define modulo_double_ mod_f64

/* -0 is below +0: that is looked at last, where neither is greater. */
#define min_float(x, y) \
    ((x) < (y) || isnan(x) ? (x) : (y) < (x) || isnan(y) ? (y) : signbit(x) ? (x) : (y))
#define max_float(x, y) \
    ((x) > (y) || isnan(x) ? (x) : (y) > (x) || isnan(y) ? (y) : signbit(x) ? (y) : (x))

/* Truncates and saturates; NaN gives 0. lo and hi are the type's least value and one more than its
 * greatest. */
#define TRUNCATE(f, lo, hi, least, greatest, ctype) \
    (isnan(f) ? 0 : (f) <= (lo) ? (least) : (f) >= (hi) ? (greatest) : (int64_t)(ctype)(f))

/* ---- Elements: unaligned, so by memcpy ---- */

#define ELEMENT(type, field, ctype)                                         \
    static inline void load_##type(kn_slot *d, const kn_slot *b, int64_t i) \
    {                                                                       \
        ctype v;                                                            \
        memcpy(&v, b->p + i * (int64_t)sizeof v, sizeof v);                 \
        d->field = v;                                                       \
    }                                                                       \
    static inline void store_##type(const kn_slot *b, int64_t i, kn_slot s) \
    {                                                                       \
        ctype v = (ctype)s.field;                                           \
        memcpy(b->p + i * (int64_t)sizeof v, &v, sizeof v);                 \
    }
ELEMENT(F32, f, float)
ELEMENT(F16, u, uint16_t)
ELEMENT(BF16, u, uint16_t)
ELEMENT(F64, d, double)
ELEMENT(I8, i, int8_t)
ELEMENT(U8, u, uint8_t)
ELEMENT(I16, i, int16_t)
ELEMENT(U16, u, uint16_t)
ELEMENT(I32, i, int32_t)
ELEMENT(U32, u, uint32_t)
ELEMENT(I64, i, int64_t)
ELEMENT(U64, u, uint64_t)
ELEMENT(INDEX, i, int64_t)

static inline void load_BOOL(kn_slot *d, const kn_slot *b, int64_t i)
{
    d->i = b->p[i] != 0;
}
#define store_BOOL store_U8

static inline uint64_t nibble(const kn_slot *b, int64_t i)
{
    i += b[1].i;
    return (uint64_t)(b->p[i >> 1] >> (i & 1) * 4) & 15;
}

static inline void load_U4(kn_slot *d, const kn_slot *b, int64_t i)
{
    d->u = nibble(b, i);
}

static inline void load_I4(kn_slot *d, const kn_slot *b, int64_t i)
{
    d->i = wrap_I4(nibble(b, i));
}

static inline void store_U4(const kn_slot *b, int64_t i, kn_slot s)
{
    i += b[1].i;
    int shift_by = (int)(i & 1) * 4;
    unsigned char *at = b->p + (i >> 1);
    *at = (unsigned char)((*at & (0xF0 >> shift_by)) | (int)(s.u & 15) << shift_by);
}
#define store_I4 store_U4

/* ---- Rows ---- */

#define CODE(op, T) (KN_I_SCALAR + (int)KN_OP_##op * KN_DTYPE_COUNT + (int)KN_##T)
#define PUT_BOOL(s, v) (s).i = (v)

#define COMPARE_ROWS(T, get, less)                     \
    BINARY(LT, T, get, PUT_BOOL, less(x, y))           \
    BINARY(LE, T, get, PUT_BOOL, less(x, y) || x == y) \
    BINARY(GT, T, get, PUT_BOOL, less(y, x))           \
    BINARY(GE, T, get, PUT_BOOL, less(y, x) || x == y) \
    BINARY(EQ, T, get, PUT_BOOL, x == y)               \
    BINARY(NE, T, get, PUT_BOOL, x != y)

#define FLOAT_ROWS(T, get, put, F)                 \
    BINARY(ADD, T, get, put, x + y)                \
    BINARY(SUB, T, get, put, x - y)                \
    BINARY(MUL, T, get, put, (x) * (y))            \
    BINARY(DIV, T, get, put, x / y)                \
    BINARY(REM, T, get, put, F(fmod)(x, y))        \
    UNARY(NEG, T, get, put, -x)                    \
    BINARY(FLOORDIV, T, get, put, F(floor)(x / y)) \
    BINARY(MOD, T, get, put, modulo_##F(x, y))     \
    BINARY(MIN, T, get, put, min_float(x, y))      \
    BINARY(MAX, T, get, put, max_float(x, y))      \
    UNARY(ABS, T, get, put, F(fabs)(x))            \
    BINARY(POW, T, get, put, F(pow)(x, y))         \
    UNARY(EXP, T, get, put, F(exp)(x))             \
    UNARY(EXPM1, T, get, put, F(expm1)(x))         \
    UNARY(LOG, T, get, put, F(log)(x))             \
    UNARY(LOG1P, T, get, put, F(log1p)(x))         \
    UNARY(SQRT, T, get, put, F(sqrt)(x))           \
    UNARY(RSQRT, T, get, put, 1 / F(sqrt)(x))      \
    UNARY(TANH, T, get, put, F(tanh)(x))           \
    UNARY(ERF, T, get, put, F(erf)(x))             \
    UNARY(SIN, T, get, put, F(sin)(x))             \
    UNARY(COS, T, get, put, F(cos)(x))             \
    UNARY(TAN, T, get, put, F(tan)(x))             \
    UNARY(ASIN, T, get, put, F(asin)(x))           \
    UNARY(ACOS, T, get, put, F(acos)(x))           \
    UNARY(ATAN, T, get, put, F(atan)(x))           \
    UNARY(SINH, T, get, put, F(sinh)(x))           \
    UNARY(COSH, T, get, put, F(cosh)(x))           \
    UNARY(ASINH, T, get, put, F(asinh)(x))         \
    UNARY(ACOSH, T, get, put, F(acosh)(x))         \
    UNARY(ATANH, T, get, put, F(atanh)(x))         \
    UNARY(FLOOR, T, get, put, F(floor)(x))         \
    UNARY(CEIL, T, get, put, F(ceil)(x))           \
    UNARY(ROUND, T, get, put, F(rint)(x))          \
    BINARY(LT, T, get, PUT_BOOL, x < y)            \
    BINARY(LE, T, get, PUT_BOOL, x <= y)           \
    BINARY(GT, T, get, PUT_BOOL, x > y)            \
    BINARY(GE, T, get, PUT_BOOL, x >= y)           \
    BINARY(EQ, T, get, PUT_BOOL, x == y)           \
    BINARY(NE, T, get, PUT_BOOL, x != y)

#define GET_F32(v, s) float v = get_F32(s)
#define GET_F64(v, s) double v = get_F64(s)
#define GET_F16(v, s) float v = get_F16(s)
#define GET_BF16(v, s) float v = get_BF16(s)

#define GET_INT(v, s) int64_t v = (s).i
#define PUT_I64(s, v) (s).i = (v)
#define PUT_I4(s, v) (s).i = wrap_I4(v)
#define PUT_U4(s, v) (s).i = wrap_U4(v)
#define PUT_I8(s, v) (s).i = wrap_I8(v)
#define PUT_U8(s, v) (s).i = wrap_U8(v)
#define PUT_I16(s, v) (s).i = wrap_I16(v)
#define PUT_U16(s, v) (s).i = wrap_U16(v)
#define PUT_I32(s, v) (s).i = wrap_I32(v)
#define PUT_U32(s, v) (s).i = wrap_U32(v)
#define PUT_64(s, v) (s).u = (v)

/* The operators whose result may leave the width, then those that cannot. S: s or u. */
#define INT_ROWS(T, S, put, width)                                     \
    BINARY(ADD, T, GET_INT, put, (uint64_t)x + (uint64_t)y)            \
    BINARY(SUB, T, GET_INT, put, (uint64_t)x - (uint64_t)y)            \
    BINARY(MUL, T, GET_INT, put, (uint64_t)x *(uint64_t)y)             \
    UNARY(NEG, T, GET_INT, put, 0 - (uint64_t)x)                       \
    UNARY(ABS, T, GET_INT, put, (uint64_t)abs_##S(x))                  \
    BINARY(POW, T, GET_INT, put, (uint64_t)power_##S(x, y))            \
    BINARY(FLOORDIV, T, GET_INT, put, (uint64_t)floordiv_##S(x, y))    \
    UNARY(NOT, T, GET_INT, put, ~(uint64_t)x)                          \
    BINARY(SHL, T, GET_INT, put, (uint64_t)x << ((uint64_t)y % width)) \
    BINARY(SHR, T, GET_INT, PUT_I64, shr_##S(x, (uint64_t)y % width))  \
    BINARY(MOD, T, GET_INT, PUT_I64, mod_##S(x, y))                    \
    BINARY(MIN, T, GET_INT, PUT_I64, less_##S(x, y) ? x : y)           \
    BINARY(MAX, T, GET_INT, PUT_I64, less_##S(y, x) ? x : y)           \
    BIT_ROWS(T)                                                        \
    COMPARE_ROWS(T, GET_INT, less_##S)

/* / and % on values; on indices they are FLOORDIV and MOD. */
#define QUOTIENT_ROWS(T, S, put)                          \
    BINARY(DIV, T, GET_INT, put, (uint64_t)div_##S(x, y)) \
    BINARY(REM, T, GET_INT, PUT_I64, rem_##S(x, y))

#define BIT_ROWS(T)                             \
    BINARY(AND, T, GET_INT, PUT_I64, (x) & (y)) \
    BINARY(OR, T, GET_INT, PUT_I64, x | y)      \
    BINARY(XOR, T, GET_INT, PUT_I64, x ^ y)

#define BOOL_ROWS                                   \
    BINARY(LAND, BOOL, GET_INT, PUT_I64, (x) & (y)) \
    BINARY(LOR, BOOL, GET_INT, PUT_I64, x | y)      \
    UNARY(LNOT, BOOL, GET_INT, PUT_I64, !x)         \
    UNARY(NOT, BOOL, GET_INT, PUT_I64, !x)          \
    BIT_ROWS(BOOL)                                  \
    COMPARE_ROWS(BOOL, GET_INT, less_s)

#define ACCESS_ROWS(T) LOAD(T) LOAD_IF(T) STORE(T)
#define FLOAT_UPDATES(T, get, put)            \
    UPDATE(ADD, T, get, put, x + y)           \
    UPDATE(MUL, T, get, put, (x) * (y))       \
    UPDATE(MAX, T, get, put, max_float(x, y)) \
    UPDATE(MIN, T, get, put, min_float(x, y))
#define INT_UPDATES(T, S)                                                  \
    UPDATE(ADD, T, GET_INT, PUT_I64, (int64_t)((uint64_t)x + (uint64_t)y)) \
    UPDATE(MUL, T, GET_INT, PUT_I64, (int64_t)((uint64_t)x * (uint64_t)y)) \
    UPDATE(MAX, T, GET_INT, PUT_I64, less_##S(y, x) ? x : y)               \
    UPDATE(MIN, T, GET_INT, PUT_I64, less_##S(x, y) ? x : y)

/* ---- Conversions ---- */

#define WRAP_ROW(T) CONVERT(to_##T, KN_I_WRAP + (int)KN_##T, i, wrap_##T(X.u))
#define SAT_ROWS(T, least, greatest)                    \
    CONVERT(sat_##T, KN_I_SAT + (int)KN_##T, i,         \
            X.i < (least)      ? (least)                \
            : X.i > (greatest) ? (greatest)             \
                               : X.i)                   \
    CONVERT(u64_sat_##T, KN_I_U64_SAT + (int)KN_##T, i, \
            X.u > (uint64_t)(greatest) ? (greatest) : X.i)
#define TRUNCATE_ROW(T, lo, hi, least, greatest)         \
    CONVERT(truncate_##T, KN_I_F64_INT + (int)KN_##T, i, \
            TRUNCATE(X.d, lo, hi, least, greatest, int64_t))
#define NARROW_ROWS(T, least, greatest) \
    WRAP_ROW(T)                         \
    SAT_ROWS(T, least, greatest)        \
    TRUNCATE_ROW(T, least, (double)(greatest) + 1, least, greatest)

#endif
