/* Elements in memory as kn_numbers, for tests. */
#ifndef KN_TESTS_ELEMENT_H
#define KN_TESTS_ELEMENT_H

#include <math.h>

#include "ir/expr.h"
#include "support/half.h"

static inline void put_element(kn_dtype t, unsigned char *at, int64_t i, kn_number v)
{
    float f = (float)v.f;
    uint16_t half = t == KN_F16 ? kn_f64_to_f16(v.f) : kn_f32_to_bf16(f);
    int bits = kn_dtype_bits(t);
    if (t == KN_F32)
        memcpy(at + 4 * i, &f, 4);
    else if (t == KN_F64)
        memcpy(at + 8 * i, &v.f, 8);
    else if (t == KN_F16 || t == KN_BF16)
        memcpy(at + 2 * i, &half, 2);
    else if (bits == 4)
        at[i / 2] = (unsigned char)(i % 2 ? (at[i / 2] & 15) | (v.i & 15) << 4
                                          : (at[i / 2] & 240) | (v.i & 15));
    else
        memcpy(at + bits / 8 * i, &v.i, (size_t)bits / 8); /* little-endian hosts only */
}

static inline kn_number get_element(kn_dtype t, const unsigned char *at, int64_t i)
{
    kn_number v = {0};
    int bits = kn_dtype_bits(t);
    float f;
    uint16_t half;
    if (t == KN_F32) {
        memcpy(&f, at + 4 * i, 4);
        v.f = (double)f;
    } else if (t == KN_F64) {
        memcpy(&v.f, at + 8 * i, 8);
    } else if (t == KN_F16 || t == KN_BF16) {
        memcpy(&half, at + 2 * i, 2);
        v.f = (double)(t == KN_F16 ? kn_f16_to_f32(half) : kn_bf16_to_f32(half));
    } else if (bits == 4) {
        v.i = kn_number_wrap(t, at[i / 2] >> i % 2 * 4);
    } else {
        memcpy(&v.i, at + bits / 8 * i, (size_t)bits / 8);
        v.i = kn_number_wrap(t, v.i);
    }
    return v;
}

/* Of one type: NaN equals NaN, 0.0 differs from -0.0. */
static inline bool same(kn_dtype t, kn_number x, kn_number y)
{
    if (!kn_dtype_is_float(t))
        return x.i == y.i;
    return (isnan(x.f) && isnan(y.f)) || memcmp(&x.f, &y.f, sizeof x.f) == 0;
}

#endif
