/* Conversions between float and the 16-bit floats, round half to even, NaN stays NaN, subnormals
 * kept. */
#ifndef KN_SUPPORT_HALF_H
#define KN_SUPPORT_HALF_H

#include <stdint.h>

float kn_f16_to_f32(uint16_t h);
uint16_t kn_f32_to_f16(float f);
uint16_t kn_f64_to_f16(double d); /* one rounding, not two */
float kn_bf16_to_f32(uint16_t h);
uint16_t kn_f32_to_bf16(float f);

#endif
