/* What is known of an element type. */
#ifndef KN_SUPPORT_DTYPE_H
#define KN_SUPPORT_DTYPE_H

#include "kiln/base.h"

const char *kn_dtype_name(kn_dtype t);
bool kn_dtype_parse(const char *name, size_t n, kn_dtype *out);
int kn_dtype_bits(kn_dtype t);
const char *kn_dtype_ctype(kn_dtype t);
bool kn_dtype_is_float(kn_dtype t);
bool kn_dtype_is_signed(kn_dtype t);  /* integers only, index included */
bool kn_dtype_is_integer(kn_dtype t); /* not bool */
/* Bytes of n elements, 4-bit types packed; -1 when it does not fit an int64_t. */
int64_t kn_dtype_bytes(kn_dtype t, int64_t n);
/* The least and greatest value of an integer type (bool: 0, 1). */
int64_t kn_dtype_min(kn_dtype t);
uint64_t kn_dtype_max(kn_dtype t);

#endif
