/* The 16-bit floats, by integer arithmetic on the bits. A double holds every float exactly, so one
   rounding routine serves both. */
#include "support/half.h"

#include <string.h>

enum { F16_INF = 0x7c00, F16_QUIET = 0x200 };

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* v / 2^shift, ties to even. */
static uint64_t shift_round(uint64_t v, int shift)
{
    uint64_t half = UINT64_C(1) << (shift - 1);
    uint64_t rest = v & (2 * half - 1);
    uint64_t q = v >> shift;
    return q + (rest > half || (rest == half && (q & 1)));
}

float kn_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    uint32_t exponent = h >> 10 & 31;
    uint32_t fraction = h & 0x3ff;
    if (exponent == 31)
        return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0)
        return float_of(sign | bits_of((float)fraction * 0x1p-24f));
    return float_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

uint16_t kn_f64_to_f16(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 48) & 0x8000;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024 && fraction)
        return (uint16_t)(sign | F16_INF | F16_QUIET | (uint32_t)(fraction >> 42));
    if (exponent > 15)
        return (uint16_t)(sign | F16_INF);
    if (exponent < -25)
        return (uint16_t)sign;
    /* A carry out of the fraction steps the exponent, up to infinity: the encoding is made for it.
     */
    uint64_t rounded = exponent < -14
                           ? shift_round(fraction | UINT64_C(1) << 52, 42 - 14 - exponent)
                           : shift_round(fraction | (uint64_t)(exponent + 15) << 52, 42);
    return (uint16_t)(sign | (uint32_t)rounded);
}

uint16_t kn_f32_to_f16(float f)
{
    return kn_f64_to_f16((double)f);
}

float kn_bf16_to_f32(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

uint16_t kn_f32_to_bf16(float f)
{
    uint32_t bits = bits_of(f);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 |
                          0x40); /* a NaN whose payload lies in the low half stays one */
    return (uint16_t)shift_round(bits, 16);
}
