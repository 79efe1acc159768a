/* The scalar operators of ir/scalar.def in C: what each of them means on the machine that runs
   emitted code.

   One function an operator and element type, npu_<operator>_<type>: npu_add_i32, npu_exp_f16,
   npu_floordiv_index; one a pair of types, npu_cast_<from>_<to>, npu_sat_<from>_<to>,
   npu_bitcast_<from>_<to>. The meaning is that of docs/index-notation.md ("Values", "Types") and
   equals, bit for bit, what the compiler folds and interprets:

   - Integers wrap; / truncates and % follows it, by zero they give 0, and MIN / -1 wraps. On
     `index` they are floor.
   - Shift counts are taken modulo the width; >> of a signed value is arithmetic (as every compiler
     does it).
   - min and max propagate NaN, and -0 is below +0: so they may be regrouped freely.
   - Float to integer truncates and saturates, NaN becomes 0; integer to integer wraps under `cast`,
     saturates under `sat`; to bool, everything but 0 is true. To a float type `sat` is `cast`.
   - f16 and bf16 are held as their bits in a uint16_t: widened to f32, computed, rounded half to
     even.
   - i4 and u4 are held sign- or zero-extended in a byte; in buffers two share one, the low nibble
     first.

   No undefined behaviour on any value; no branches where that matters, so that loops over these
   vectorise. To be compiled with -ffp-contract=off, in the default rounding mode. NPU_SCALAR is
   `static inline` unless bitcode.c says otherwise. */
#ifndef NPU_HOST_SCALAR_H
#define NPU_HOST_SCALAR_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifndef NPU_SCALAR
#define NPU_SCALAR static inline
#endif

/* A function a line, as in a table. */
/* clang-format off */

/* ---- The bits of floats, and the 16-bit floats ---- */

NPU_SCALAR uint32_t npu_bits_f32(float a)
{
    uint32_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

NPU_SCALAR float npu_from_bits_f32(uint32_t bits)
{
    float a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

NPU_SCALAR uint64_t npu_bits_f64(double a)
{
    uint64_t bits;
    memcpy(&bits, &a, sizeof bits);
    return bits;
}

NPU_SCALAR double npu_from_bits_f64(uint64_t bits)
{
    double a;
    memcpy(&a, &bits, sizeof a);
    return a;
}

/* The exponent is rebiased by an addition; a subnormal is read as 2^-14 + a, from which 2^-14 is
   taken. Here and below, masks stand for selects: a compiler that moves a float operation under a
   branch (gcc 12 does) does not vectorise the loop. */
NPU_SCALAR float npu_widen_f16(uint16_t a)
{
    uint32_t sign = (uint32_t)(a & 0x8000) << 16;
    uint32_t magnitude = (uint32_t)(a & 0x7fff) << 13;
    uint32_t small = 0 - (uint32_t)(magnitude < 0x00800000);
    uint32_t special = 0 - (uint32_t)(magnitude >= 0x0f800000);
    uint32_t biased = magnitude + 0x38000000 + (0x00800000 & small);
    uint32_t bits = npu_bits_f32(npu_from_bits_f32(biased) - npu_from_bits_f32(0x38800000 & small));
    return npu_from_bits_f32(sign | bits | (0x7f800000 & special));
}

/* What lies below 2^-14 is rounded by adding 0.5, whose last bit is worth 2^-24; the rest by
   adding just under a half to the bits, the last bit kept deciding ties: a carry steps the
   exponent, up to infinity. */
NPU_SCALAR uint16_t npu_narrow_f16(float a)
{
    uint32_t sign = npu_bits_f32(a) >> 16 & 0x8000;
    uint32_t magnitude = npu_bits_f32(a) & 0x7fffffff;
    uint32_t small = 0 - (uint32_t)(magnitude < 0x38800000);
    float half = npu_from_bits_f32(0x3f000000 & small);
    uint32_t bits = npu_bits_f32(npu_from_bits_f32(magnitude) + half);
    uint32_t normal = (bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13;
    uint32_t finite = ((bits - 0x3f000000) & small) | (normal & ~small);
    uint32_t large = 0 - (uint32_t)(magnitude >= 0x47800000);
    uint32_t nan = 0 - (uint32_t)(magnitude > 0x7f800000);
    uint32_t payload = 0x0200 | (magnitude >> 13 & 0x3ff);
    return (uint16_t)(sign | (finite & ~large) | (0x7c00 & large) | (payload & nan));
}

/* One rounding, not two: the f32 between keeps, in its last bit, whether anything was cut off
   (rounding to odd). */
NPU_SCALAR uint16_t npu_narrow_f64_f16(double a)
{
    uint64_t magnitude = npu_bits_f64(a) & ~((uint64_t)1 << 63);
    double cut = npu_from_bits_f64(npu_bits_f64(a) & ~(uint64_t)0x1fffffff);
    uint32_t sticky = (magnitude & 0x1fffffff) != 0;
    bool tiny = magnitude < (uint64_t)0x3c7 << 52; /* below 2^-56: may be no normal f32 */
    float odd = npu_from_bits_f32(npu_bits_f32((float)(tiny ? 0 : cut)) | sticky);
    uint16_t sign = (uint16_t)(npu_bits_f64(a) >> 48 & 0x8000);
    bool huge = magnitude >= (uint64_t)0x40f << 52; /* 2^16: infinity, or NaN */
    uint16_t r = npu_narrow_f16(huge ? (float)a : odd);
    return (uint16_t)(tiny ? sign : r);
}

NPU_SCALAR float npu_widen_bf16(uint16_t a)
{
    return npu_from_bits_f32((uint32_t)a << 16);
}

NPU_SCALAR uint16_t npu_narrow_bf16(float a)
{
    uint32_t bits = npu_bits_f32(a);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? (bits >> 16 | 0x40) : rounded);
}

/* ---- Integers: T is the suffix, C the type, W the unsigned type that they are computed in ---- */

/* The value of an integer type that equals x modulo 2^width. */
NPU_SCALAR int8_t npu_wrap_i4(uint32_t x) { return (int8_t)((int32_t)((x & 15) ^ 8) - 8); }
NPU_SCALAR uint8_t npu_wrap_u4(uint32_t x) { return (uint8_t)(x & 15); }
NPU_SCALAR int8_t npu_wrap_i8(uint32_t x) { return (int8_t)(uint8_t)x; }
NPU_SCALAR uint8_t npu_wrap_u8(uint32_t x) { return (uint8_t)x; }
NPU_SCALAR int16_t npu_wrap_i16(uint32_t x) { return (int16_t)(uint16_t)x; }
NPU_SCALAR uint16_t npu_wrap_u16(uint32_t x) { return (uint16_t)x; }
NPU_SCALAR int32_t npu_wrap_i32(uint32_t x) { return (int32_t)x; }
NPU_SCALAR uint32_t npu_wrap_u32(uint32_t x) { return x; }
NPU_SCALAR int64_t npu_wrap_i64(uint64_t x) { return (int64_t)x; }
NPU_SCALAR uint64_t npu_wrap_u64(uint64_t x) { return x; }
NPU_SCALAR int64_t npu_wrap_index(uint64_t x) { return (int64_t)x; }

#define NPU_COMPARE(T, C, OF)                                                                      \
    NPU_SCALAR bool npu_lt_##T(C a, C b) { return OF(a) < OF(b); }                                 \
    NPU_SCALAR bool npu_le_##T(C a, C b) { return OF(a) <= OF(b); }                                \
    NPU_SCALAR bool npu_gt_##T(C a, C b) { return OF(a) > OF(b); }                                 \
    NPU_SCALAR bool npu_ge_##T(C a, C b) { return OF(a) >= OF(b); }                                \
    NPU_SCALAR bool npu_eq_##T(C a, C b) { return OF(a) == OF(b); }                                \
    NPU_SCALAR bool npu_ne_##T(C a, C b) { return OF(a) != OF(b); }                                \
    NPU_SCALAR C npu_select_##T(bool c, C a, C b) { return c ? a : b; }

#define NPU_INTEGER(T, C, W, BITS)                                                                 \
    NPU_SCALAR C npu_add_##T(C a, C b) { return npu_wrap_##T((W)a + (W)b); }                       \
    NPU_SCALAR C npu_sub_##T(C a, C b) { return npu_wrap_##T((W)a - (W)b); }                       \
    NPU_SCALAR C npu_mul_##T(C a, C b) { return npu_wrap_##T((W)a * (W)b); }                       \
    NPU_SCALAR C npu_neg_##T(C a) { return npu_wrap_##T((W)0 - (W)a); }                            \
    NPU_SCALAR C npu_min_##T(C a, C b) { return a < b ? a : b; }                                   \
    NPU_SCALAR C npu_max_##T(C a, C b) { return a > b ? a : b; }                                   \
    NPU_SCALAR C npu_and_##T(C a, C b) { return npu_wrap_##T((W)a & (W)b); }                       \
    NPU_SCALAR C npu_xor_##T(C a, C b) { return npu_wrap_##T((W)a ^ (W)b); }                       \
    NPU_SCALAR C npu_or_##T(C a, C b) { return npu_wrap_##T((W)a | (W)b); }                        \
    NPU_SCALAR C npu_not_##T(C a) { return npu_wrap_##T(~(W)a); }                                  \
    NPU_SCALAR C npu_shl_##T(C a, C b) { return npu_wrap_##T((W)a << ((W)b & (BITS - 1))); }       \
    NPU_SCALAR C npu_shr_##T(C a, C b) { return (C)(a >> ((W)b & (BITS - 1))); }                   \
    NPU_COMPARE(T, C, )                                                                            \
    /* a to the n-th power, modulo 2^width, by squaring. */                                        \
    NPU_SCALAR C npu_power_##T(W a, W n)                                                           \
    {                                                                                              \
        W r = 1;                                                                                   \
        for (; n; n >>= 1) {                                                                       \
            r = n & 1 ? r * a : r;                                                                 \
            a *= a;                                                                                \
        }                                                                                          \
        return npu_wrap_##T(r);                                                                    \
    }

/* A divisor that may be divided by: 1 instead of 0, and instead of the -1 that MIN would overflow
   with. Then MIN / 1 is the quotient that wraps, and a % 1 the remainder, 0, in both cases. */
#define NPU_SIGNED(T, C, W, BITS)                                                                  \
    NPU_INTEGER(T, C, W, BITS)                                                                     \
    NPU_SCALAR C npu_divisor_##T(C a, C b)                                                         \
    {                                                                                              \
        C lowest = (C)(-((C)((W)1 << (BITS - 2)) - 1) * 2 - 2);                                    \
        return ((b == 0) | ((b == -1) & (a == lowest))) ? 1 : b;                                   \
    }                                                                                              \
    NPU_SCALAR C npu_quotient_##T(C a, C b)                                                        \
    {                                                                                              \
        C q = (C)(a / npu_divisor_##T(a, b));                                                      \
        return b == 0 ? 0 : q;                                                                     \
    }                                                                                              \
    NPU_SCALAR C npu_remainder_##T(C a, C b) { return (C)(a % npu_divisor_##T(a, b)); }            \
    NPU_SCALAR C npu_floordiv_##T(C a, C b)                                                        \
    {                                                                                              \
        C r = npu_remainder_##T(a, b);                                                             \
        return (C)(npu_quotient_##T(a, b) - ((r != 0) & ((r < 0) != (b < 0))));                    \
    }                                                                                              \
    NPU_SCALAR C npu_mod_##T(C a, C b)                                                             \
    {                                                                                              \
        C r = npu_remainder_##T(a, b);                                                             \
        return (C)(r + (((r != 0) & ((r < 0) != (b < 0))) ? b : 0));                               \
    }                                                                                              \
    NPU_SCALAR C npu_abs_##T(C a) { return a < 0 ? npu_neg_##T(a) : a; }                           \
    /* A negative power is 1 / a^-b, truncated: 0 but for 1 and -1. */                             \
    NPU_SCALAR C npu_pow_##T(C a, C b)                                                             \
    {                                                                                              \
        C unit = a == 1 ? 1 : a != -1 ? 0 : b & 1 ? -1 : 1;                                        \
        return b < 0 ? unit : npu_power_##T((W)a, (W)b);                                           \
    }

#define NPU_TRUNCATING(T, C, W, BITS)                                                              \
    NPU_SIGNED(T, C, W, BITS)                                                                      \
    NPU_SCALAR C npu_div_##T(C a, C b) { return npu_quotient_##T(a, b); }                          \
    NPU_SCALAR C npu_rem_##T(C a, C b) { return npu_remainder_##T(a, b); }

#define NPU_FLOORING(T, C, W, BITS)                                                                \
    NPU_SIGNED(T, C, W, BITS)                                                                      \
    NPU_SCALAR C npu_div_##T(C a, C b) { return npu_floordiv_##T(a, b); }                          \
    NPU_SCALAR C npu_rem_##T(C a, C b) { return npu_mod_##T(a, b); }

#define NPU_UNSIGNED(T, C, W, BITS)                                                                \
    NPU_INTEGER(T, C, W, BITS)                                                                     \
    NPU_SCALAR C npu_div_##T(C a, C b)                                                             \
    {                                                                                              \
        C q = (C)(a / (b == 0 ? 1 : b));                                                           \
        return b == 0 ? 0 : q;                                                                     \
    }                                                                                              \
    NPU_SCALAR C npu_rem_##T(C a, C b) { return (C)(a % (b == 0 ? 1 : b)); }                       \
    NPU_SCALAR C npu_floordiv_##T(C a, C b) { return npu_div_##T(a, b); }                          \
    NPU_SCALAR C npu_mod_##T(C a, C b) { return npu_rem_##T(a, b); }                               \
    NPU_SCALAR C npu_abs_##T(C a) { return a; }                                                    \
    NPU_SCALAR C npu_pow_##T(C a, C b) { return npu_power_##T((W)a, (W)b); }

NPU_TRUNCATING(i4, int8_t, uint32_t, 4)
NPU_TRUNCATING(i8, int8_t, uint32_t, 8)
NPU_TRUNCATING(i16, int16_t, uint32_t, 16)
NPU_TRUNCATING(i32, int32_t, uint32_t, 32)
NPU_TRUNCATING(i64, int64_t, uint64_t, 64)
NPU_FLOORING(index, int64_t, uint64_t, 64)
NPU_UNSIGNED(u4, uint8_t, uint32_t, 4)
NPU_UNSIGNED(u8, uint8_t, uint32_t, 8)
NPU_UNSIGNED(u16, uint16_t, uint32_t, 16)
NPU_UNSIGNED(u32, uint32_t, uint32_t, 32)
NPU_UNSIGNED(u64, uint64_t, uint64_t, 64)

/* ---- bool ---- */

NPU_COMPARE(bool, bool, )
NPU_SCALAR bool npu_and_bool(bool a, bool b) { return a & b; }
NPU_SCALAR bool npu_xor_bool(bool a, bool b) { return a != b; }
NPU_SCALAR bool npu_or_bool(bool a, bool b) { return a | b; }
NPU_SCALAR bool npu_not_bool(bool a) { return !a; }
NPU_SCALAR bool npu_land_bool(bool a, bool b) { return a & b; }
NPU_SCALAR bool npu_lor_bool(bool a, bool b) { return a | b; }
NPU_SCALAR bool npu_lnot_bool(bool a) { return !a; }

/* ---- Floats: F is the suffix of the C library's functions ---- */

#define NPU_FLOAT(T, C, F)                                                                         \
    NPU_SCALAR C npu_add_##T(C a, C b) { return a + b; }                                           \
    NPU_SCALAR C npu_sub_##T(C a, C b) { return a - b; }                                           \
    NPU_SCALAR C npu_mul_##T(C a, C b) { return a * b; }                                           \
    NPU_SCALAR C npu_div_##T(C a, C b) { return a / b; }                                           \
    NPU_SCALAR C npu_rem_##T(C a, C b) { return fmod##F(a, b); }                                   \
    NPU_SCALAR C npu_neg_##T(C a) { return -a; }                                                   \
    NPU_SCALAR C npu_floordiv_##T(C a, C b) { return floor##F(a / b); }                            \
    /* The remainder with the sign of b. */                                                        \
    NPU_SCALAR C npu_mod_##T(C a, C b)                                                             \
    {                                                                                              \
        C r = fmod##F(a, b);                                                                       \
        return ((r != 0) & ((r < 0) != (b < 0))) ? r + b : r;                                      \
    }                                                                                              \
    /* Equal numbers have equal bits, but for the zeros: there `and` keeps +0, `or` -0. */         \
    NPU_SCALAR C npu_max_##T(C a, C b)                                                             \
    {                                                                                              \
        C r = a > b ? a : b;                                                                       \
        r = a == b ? npu_from_bits_##T(npu_bits_##T(a) & npu_bits_##T(b)) : r;                     \
        return a != a ? a : r;                                                                     \
    }                                                                                              \
    NPU_SCALAR C npu_min_##T(C a, C b)                                                             \
    {                                                                                              \
        C r = a < b ? a : b;                                                                       \
        r = a == b ? npu_from_bits_##T(npu_bits_##T(a) | npu_bits_##T(b)) : r;                     \
        return a != a ? a : r;                                                                     \
    }                                                                                              \
    NPU_SCALAR C npu_abs_##T(C a) { return fabs##F(a); }                                           \
    /* Of libm, on constants too: compilers put a * a for pow(a, 2), which may be an ulp off. */       \
    NPU_SCALAR C npu_pow_##T(C a, C b)                                                             \
    {                                                                                              \
        volatile C base = a, power = b;                                                            \
        return pow##F(base, power);                                                                \
    }                                                                                              \
    NPU_SCALAR C npu_exp_##T(C a) { return exp##F(a); }                                            \
    NPU_SCALAR C npu_expm1_##T(C a) { return expm1##F(a); }                                        \
    NPU_SCALAR C npu_log_##T(C a) { return log##F(a); }                                            \
    NPU_SCALAR C npu_log1p_##T(C a) { return log1p##F(a); }                                        \
    NPU_SCALAR C npu_sqrt_##T(C a) { return sqrt##F(a); }                                          \
    NPU_SCALAR C npu_rsqrt_##T(C a) { return (C)1 / sqrt##F(a); }                                  \
    NPU_SCALAR C npu_tanh_##T(C a) { return tanh##F(a); }                                          \
    NPU_SCALAR C npu_erf_##T(C a) { return erf##F(a); }                                            \
    NPU_SCALAR C npu_sin_##T(C a) { return sin##F(a); }                                            \
    NPU_SCALAR C npu_cos_##T(C a) { return cos##F(a); }                                            \
    NPU_SCALAR C npu_tan_##T(C a) { return tan##F(a); }                                            \
    NPU_SCALAR C npu_asin_##T(C a) { return asin##F(a); }                                          \
    NPU_SCALAR C npu_acos_##T(C a) { return acos##F(a); }                                          \
    NPU_SCALAR C npu_atan_##T(C a) { return atan##F(a); }                                          \
    NPU_SCALAR C npu_sinh_##T(C a) { return sinh##F(a); }                                          \
    NPU_SCALAR C npu_cosh_##T(C a) { return cosh##F(a); }                                          \
    NPU_SCALAR C npu_asinh_##T(C a) { return asinh##F(a); }                                        \
    NPU_SCALAR C npu_acosh_##T(C a) { return acosh##F(a); }                                        \
    NPU_SCALAR C npu_atanh_##T(C a) { return atanh##F(a); }                                        \
    NPU_SCALAR C npu_floor_##T(C a) { return floor##F(a); }                                        \
    NPU_SCALAR C npu_ceil_##T(C a) { return ceil##F(a); }                                          \
    NPU_SCALAR C npu_round_##T(C a) { return rint##F(a); }                                         \
    NPU_COMPARE(T, C, )

NPU_FLOAT(f32, float, f)
NPU_FLOAT(f64, double, )

#define NPU_HALF_1(T, OP)                                                                          \
    NPU_SCALAR uint16_t npu_##OP##_##T(uint16_t a)                                                 \
    {                                                                                              \
        return npu_narrow_##T(npu_##OP##_f32(npu_widen_##T(a)));                                   \
    }
#define NPU_HALF_2(T, OP)                                                                          \
    NPU_SCALAR uint16_t npu_##OP##_##T(uint16_t a, uint16_t b)                                     \
    {                                                                                              \
        return npu_narrow_##T(npu_##OP##_f32(npu_widen_##T(a), npu_widen_##T(b)));                 \
    }
#define NPU_HALF(T)                                                                                \
    NPU_HALF_2(T, add) NPU_HALF_2(T, sub) NPU_HALF_2(T, mul) NPU_HALF_2(T, div)                    \
    NPU_HALF_2(T, rem) NPU_HALF_1(T, neg) NPU_HALF_2(T, floordiv) NPU_HALF_2(T, mod)               \
    NPU_HALF_2(T, min) NPU_HALF_2(T, max) NPU_HALF_1(T, abs) NPU_HALF_2(T, pow)                    \
    NPU_HALF_1(T, exp) NPU_HALF_1(T, expm1) NPU_HALF_1(T, log) NPU_HALF_1(T, log1p)                \
    NPU_HALF_1(T, sqrt) NPU_HALF_1(T, rsqrt) NPU_HALF_1(T, tanh) NPU_HALF_1(T, erf)                \
    NPU_HALF_1(T, sin) NPU_HALF_1(T, cos) NPU_HALF_1(T, tan) NPU_HALF_1(T, asin)                   \
    NPU_HALF_1(T, acos) NPU_HALF_1(T, atan) NPU_HALF_1(T, sinh) NPU_HALF_1(T, cosh)                \
    NPU_HALF_1(T, asinh) NPU_HALF_1(T, acosh) NPU_HALF_1(T, atanh) NPU_HALF_1(T, floor)            \
    NPU_HALF_1(T, ceil) NPU_HALF_1(T, round)                                                       \
    NPU_COMPARE(T, uint16_t, npu_widen_##T)

NPU_HALF(f16)
NPU_HALF(bf16)

/* ---- cast and sat ---- */

/* Float to integer. LOW and HIGH are powers of two, exact in every float type: the least value,
   and one above the greatest. What the conversion sees lies in its range always. */
#define NPU_TRUNCATE(FROM, CF, TO, C, LOW, HIGH, MAX)                                              \
    NPU_SCALAR C npu_cast_##FROM##_##TO(CF a)                                                      \
    {                                                                                              \
        CF above = a > (CF)LOW ? a : (CF)LOW;                                                      \
        C r = (C)(above < (CF)HIGH ? above : (CF)0);                                               \
        r = above < (CF)HIGH ? r : (C)MAX;                                                         \
        return a != a ? (C)0 : r;                                                                  \
    }                                                                                              \
    NPU_SCALAR C npu_sat_##FROM##_##TO(CF a) { return npu_cast_##FROM##_##TO(a); }

/* Anything to another type, `cast` and `sat` alike. */
#define NPU_CONVERT(FROM, CF, TO, C, VALUE)                                                        \
    NPU_SCALAR C npu_cast_##FROM##_##TO(CF a) { return VALUE; }                                    \
    NPU_SCALAR C npu_sat_##FROM##_##TO(CF a) { return VALUE; }

#define NPU_TRUNCATE_ALL(FROM, CF)                                                                 \
    NPU_TRUNCATE(FROM, CF, i4, int8_t, -8, 8, 7)                                                   \
    NPU_TRUNCATE(FROM, CF, u4, uint8_t, 0, 16, 15)                                                 \
    NPU_TRUNCATE(FROM, CF, i8, int8_t, -128, 128, INT8_MAX)                                        \
    NPU_TRUNCATE(FROM, CF, u8, uint8_t, 0, 256, UINT8_MAX)                                         \
    NPU_TRUNCATE(FROM, CF, i16, int16_t, -32768, 32768, INT16_MAX)                                 \
    NPU_TRUNCATE(FROM, CF, u16, uint16_t, 0, 65536, UINT16_MAX)                                    \
    NPU_TRUNCATE(FROM, CF, i32, int32_t, -0x1p31, 0x1p31, INT32_MAX)                               \
    NPU_TRUNCATE(FROM, CF, u32, uint32_t, 0, 0x1p32, UINT32_MAX)                                   \
    NPU_TRUNCATE(FROM, CF, i64, int64_t, -0x1p63, 0x1p63, INT64_MAX)                               \
    NPU_TRUNCATE(FROM, CF, u64, uint64_t, 0, 0x1p64, UINT64_MAX)                                   \
    NPU_TRUNCATE(FROM, CF, index, int64_t, -0x1p63, 0x1p63, INT64_MAX)                             \
    NPU_CONVERT(FROM, CF, bool, bool, a != 0)

NPU_TRUNCATE_ALL(f32, float)
NPU_CONVERT(f32, float, f32, float, a)
NPU_CONVERT(f32, float, f64, double, (double)a)
NPU_CONVERT(f32, float, f16, uint16_t, npu_narrow_f16(a))
NPU_CONVERT(f32, float, bf16, uint16_t, npu_narrow_bf16(a))

NPU_TRUNCATE_ALL(f64, double)
NPU_CONVERT(f64, double, f32, float, (float)a)
NPU_CONVERT(f64, double, f64, double, a)
NPU_CONVERT(f64, double, f16, uint16_t, npu_narrow_f64_f16(a))
NPU_CONVERT(f64, double, bf16, uint16_t, npu_narrow_bf16((float)a))

#define NPU_HALF_CAST(T, TO, C)                                                                    \
    NPU_CONVERT(T, uint16_t, TO, C, npu_cast_f32_##TO(npu_widen_##T(a)))
#define NPU_HALF_CASTS(T)                                                                          \
    NPU_HALF_CAST(T, f32, float)                                                                   \
    NPU_HALF_CAST(T, f64, double)                                                                  \
    NPU_HALF_CAST(T, i4, int8_t)                                                                   \
    NPU_HALF_CAST(T, u4, uint8_t)                                                                  \
    NPU_HALF_CAST(T, i8, int8_t)                                                                   \
    NPU_HALF_CAST(T, u8, uint8_t)                                                                  \
    NPU_HALF_CAST(T, i16, int16_t)                                                                 \
    NPU_HALF_CAST(T, u16, uint16_t)                                                                \
    NPU_HALF_CAST(T, i32, int32_t)                                                                 \
    NPU_HALF_CAST(T, u32, uint32_t)                                                                \
    NPU_HALF_CAST(T, i64, int64_t)                                                                 \
    NPU_HALF_CAST(T, u64, uint64_t)                                                                \
    NPU_HALF_CAST(T, index, int64_t)                                                               \
    NPU_CONVERT(T, uint16_t, bool, bool, npu_widen_##T(a) != 0)

NPU_HALF_CASTS(f16)
NPU_CONVERT(f16, uint16_t, f16, uint16_t, a)
NPU_HALF_CAST(f16, bf16, uint16_t)
NPU_HALF_CASTS(bf16)
NPU_CONVERT(bf16, uint16_t, bf16, uint16_t, a)
NPU_HALF_CAST(bf16, f16, uint16_t)

/* An integer to the float types and bool. */
#define NPU_INTEGER_TO_REST(FROM, CF)                                                              \
    NPU_CONVERT(FROM, CF, f32, float, (float)a)                                                    \
    NPU_CONVERT(FROM, CF, f64, double, (double)a)                                                  \
    NPU_CONVERT(FROM, CF, f16, uint16_t, npu_narrow_f16((float)a))                                 \
    NPU_CONVERT(FROM, CF, bf16, uint16_t, npu_narrow_bf16((float)a))                               \
    NPU_CONVERT(FROM, CF, bool, bool, a != 0)

#define NPU_WRAP(FROM, CF, TO, C, W)                                                               \
    NPU_SCALAR C npu_cast_##FROM##_##TO(CF a) { return npu_wrap_##TO((W)a); }

#define NPU_SIGNED_TO_SIGNED(FROM, CF, TO, C, W, MIN, MAX)                                         \
    NPU_WRAP(FROM, CF, TO, C, W)                                                                   \
    NPU_SCALAR C npu_sat_##FROM##_##TO(CF a)                                                       \
    {                                                                                              \
        int64_t x = a;                                                                             \
        x = x < (int64_t)MIN ? (int64_t)MIN : x;                                                   \
        return (C)(x > (int64_t)MAX ? (int64_t)MAX : x);                                           \
    }
#define NPU_SIGNED_TO_UNSIGNED(FROM, CF, TO, C, W, MAX)                                            \
    NPU_WRAP(FROM, CF, TO, C, W)                                                                   \
    NPU_SCALAR C npu_sat_##FROM##_##TO(CF a)                                                       \
    {                                                                                              \
        uint64_t x = a < 0 ? 0 : (uint64_t)a;                                                      \
        return (C)(x > (uint64_t)MAX ? (uint64_t)MAX : x);                                         \
    }
#define NPU_UNSIGNED_TO(FROM, CF, TO, C, W, MAX)                                                   \
    NPU_WRAP(FROM, CF, TO, C, W)                                                                   \
    NPU_SCALAR C npu_sat_##FROM##_##TO(CF a)                                                       \
    {                                                                                              \
        uint64_t x = a;                                                                            \
        return (C)(x > (uint64_t)MAX ? (uint64_t)MAX : x);                                         \
    }

#define NPU_SIGNED_CASTS(FROM, CF)                                                                 \
    NPU_SIGNED_TO_SIGNED(FROM, CF, i4, int8_t, uint32_t, -8, 7)                                    \
    NPU_SIGNED_TO_SIGNED(FROM, CF, i8, int8_t, uint32_t, INT8_MIN, INT8_MAX)                       \
    NPU_SIGNED_TO_SIGNED(FROM, CF, i16, int16_t, uint32_t, INT16_MIN, INT16_MAX)                   \
    NPU_SIGNED_TO_SIGNED(FROM, CF, i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)                   \
    NPU_SIGNED_TO_SIGNED(FROM, CF, i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)                   \
    NPU_SIGNED_TO_SIGNED(FROM, CF, index, int64_t, uint64_t, INT64_MIN, INT64_MAX)                 \
    NPU_SIGNED_TO_UNSIGNED(FROM, CF, u4, uint8_t, uint32_t, 15)                                    \
    NPU_SIGNED_TO_UNSIGNED(FROM, CF, u8, uint8_t, uint32_t, UINT8_MAX)                             \
    NPU_SIGNED_TO_UNSIGNED(FROM, CF, u16, uint16_t, uint32_t, UINT16_MAX)                          \
    NPU_SIGNED_TO_UNSIGNED(FROM, CF, u32, uint32_t, uint32_t, UINT32_MAX)                          \
    NPU_SIGNED_TO_UNSIGNED(FROM, CF, u64, uint64_t, uint64_t, UINT64_MAX)                          \
    NPU_INTEGER_TO_REST(FROM, CF)

#define NPU_UNSIGNED_CASTS(FROM, CF)                                                               \
    NPU_UNSIGNED_TO(FROM, CF, i4, int8_t, uint32_t, 7)                                             \
    NPU_UNSIGNED_TO(FROM, CF, i8, int8_t, uint32_t, INT8_MAX)                                      \
    NPU_UNSIGNED_TO(FROM, CF, i16, int16_t, uint32_t, INT16_MAX)                                   \
    NPU_UNSIGNED_TO(FROM, CF, i32, int32_t, uint32_t, INT32_MAX)                                   \
    NPU_UNSIGNED_TO(FROM, CF, i64, int64_t, uint64_t, INT64_MAX)                                   \
    NPU_UNSIGNED_TO(FROM, CF, index, int64_t, uint64_t, INT64_MAX)                                 \
    NPU_UNSIGNED_TO(FROM, CF, u4, uint8_t, uint32_t, 15)                                           \
    NPU_UNSIGNED_TO(FROM, CF, u8, uint8_t, uint32_t, UINT8_MAX)                                    \
    NPU_UNSIGNED_TO(FROM, CF, u16, uint16_t, uint32_t, UINT16_MAX)                                 \
    NPU_UNSIGNED_TO(FROM, CF, u32, uint32_t, uint32_t, UINT32_MAX)                                 \
    NPU_UNSIGNED_TO(FROM, CF, u64, uint64_t, uint64_t, UINT64_MAX)                                 \
    NPU_INTEGER_TO_REST(FROM, CF)

NPU_SIGNED_CASTS(i4, int8_t)
NPU_SIGNED_CASTS(i8, int8_t)
NPU_SIGNED_CASTS(i16, int16_t)
NPU_SIGNED_CASTS(i32, int32_t)
NPU_SIGNED_CASTS(i64, int64_t)
NPU_SIGNED_CASTS(index, int64_t)
NPU_UNSIGNED_CASTS(u4, uint8_t)
NPU_UNSIGNED_CASTS(u8, uint8_t)
NPU_UNSIGNED_CASTS(u16, uint16_t)
NPU_UNSIGNED_CASTS(u32, uint32_t)
NPU_UNSIGNED_CASTS(u64, uint64_t)

/* From bool. (Its name is a macro in C11: it may be pasted, but not handed on.) */
#define NPU_FROM_BOOL(TO, C, VALUE)                                                                \
    NPU_SCALAR C npu_cast_bool_##TO(bool a) { return VALUE; }                                      \
    NPU_SCALAR C npu_sat_bool_##TO(bool a) { return VALUE; }

NPU_FROM_BOOL(i4, int8_t, a)
NPU_FROM_BOOL(u4, uint8_t, a)
NPU_FROM_BOOL(i8, int8_t, a)
NPU_FROM_BOOL(u8, uint8_t, a)
NPU_FROM_BOOL(i16, int16_t, a)
NPU_FROM_BOOL(u16, uint16_t, a)
NPU_FROM_BOOL(i32, int32_t, a)
NPU_FROM_BOOL(u32, uint32_t, a)
NPU_FROM_BOOL(i64, int64_t, a)
NPU_FROM_BOOL(u64, uint64_t, a)
NPU_FROM_BOOL(index, int64_t, a)
NPU_FROM_BOOL(f32, float, (float)a)
NPU_FROM_BOOL(f64, double, (double)a)
NPU_FROM_BOOL(f16, uint16_t, a ? 0x3c00 : 0)
NPU_FROM_BOOL(bf16, uint16_t, a ? 0x3f80 : 0)
NPU_FROM_BOOL(bool, bool, a)

/* ---- bitcast: between types of one width, bool and index apart ---- */

#define NPU_BITCAST(FROM, CF, TO, C)                                                               \
    NPU_SCALAR C npu_bitcast_##FROM##_##TO(CF a)                                                   \
    {                                                                                              \
        C r;                                                                                       \
        memcpy(&r, &a, sizeof r);                                                                  \
        return r;                                                                                  \
    }
#define NPU_BITCASTS_8(FROM, CF)                                                                   \
    NPU_BITCAST(FROM, CF, i8, int8_t)                                                              \
    NPU_BITCAST(FROM, CF, u8, uint8_t)
#define NPU_BITCASTS_16(FROM, CF)                                                                  \
    NPU_BITCAST(FROM, CF, f16, uint16_t)                                                           \
    NPU_BITCAST(FROM, CF, bf16, uint16_t)                                                          \
    NPU_BITCAST(FROM, CF, i16, int16_t)                                                            \
    NPU_BITCAST(FROM, CF, u16, uint16_t)
#define NPU_BITCASTS_32(FROM, CF)                                                                  \
    NPU_BITCAST(FROM, CF, f32, float)                                                              \
    NPU_BITCAST(FROM, CF, i32, int32_t)                                                            \
    NPU_BITCAST(FROM, CF, u32, uint32_t)
#define NPU_BITCASTS_64(FROM, CF)                                                                  \
    NPU_BITCAST(FROM, CF, f64, double)                                                             \
    NPU_BITCAST(FROM, CF, i64, int64_t)                                                            \
    NPU_BITCAST(FROM, CF, u64, uint64_t)

NPU_SCALAR int8_t npu_bitcast_i4_i4(int8_t a) { return a; }
NPU_SCALAR uint8_t npu_bitcast_i4_u4(int8_t a) { return npu_wrap_u4((uint32_t)a); }
NPU_SCALAR int8_t npu_bitcast_u4_i4(uint8_t a) { return npu_wrap_i4(a); }
NPU_SCALAR uint8_t npu_bitcast_u4_u4(uint8_t a) { return a; }
NPU_BITCASTS_8(i8, int8_t)
NPU_BITCASTS_8(u8, uint8_t)
NPU_BITCASTS_16(f16, uint16_t)
NPU_BITCASTS_16(bf16, uint16_t)
NPU_BITCASTS_16(i16, int16_t)
NPU_BITCASTS_16(u16, uint16_t)
NPU_BITCASTS_32(f32, float)
NPU_BITCASTS_32(i32, int32_t)
NPU_BITCASTS_32(u32, uint32_t)
NPU_BITCASTS_64(f64, double)
NPU_BITCASTS_64(i64, int64_t)
NPU_BITCASTS_64(u64, uint64_t)

/* ---- 4-bit elements of a buffer: element i lies in byte i / 2, the even one in the low nibble
   ---- */

NPU_SCALAR uint8_t npu_load_u4(const uint8_t *p, int64_t i)
{
    return (uint8_t)(p[i >> 1] >> ((i & 1) * 4) & 15);
}

NPU_SCALAR int8_t npu_load_i4(const uint8_t *p, int64_t i)
{
    return npu_wrap_i4(npu_load_u4(p, i));
}

/* Rewrites the byte: two threads must not store into one. */
NPU_SCALAR void npu_store_u4(uint8_t *p, int64_t i, uint8_t a)
{
    int shift = (int)(i & 1) * 4;
    p[i >> 1] = (uint8_t)((p[i >> 1] & (0xf0 >> shift)) | (a & 15) << shift);
}

NPU_SCALAR void npu_store_i4(uint8_t *p, int64_t i, int8_t a)
{
    npu_store_u4(p, i, npu_wrap_u4((uint32_t)a));
}

/* clang-format on */

#endif
