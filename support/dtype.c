/* Element types: everything is asked of the one table in kiln/dtypes.def. */
#include "support/dtype.h"

#include <assert.h>
#include <string.h>

enum { F, I, U, B }; /* the classes */

static const struct {
    const char *name, *ctype;
    int bits, class;
} types[] = {
#define KN_DTYPE(id, name, bits, class, ctype) {name, #ctype, bits, class},
#include "kiln/dtypes.def"
#undef KN_DTYPE
};

const char *kn_dtype_name(kn_dtype t)
{
    assert(t < KN_DTYPE_COUNT);
    return types[t].name;
}

bool kn_dtype_parse(const char *name, size_t n, kn_dtype *out)
{
    for (int t = 0; t < KN_DTYPE_COUNT; t++)
        if (strlen(types[t].name) == n && memcmp(types[t].name, name, n) == 0) {
            *out = (kn_dtype)t;
            return true;
        }
    return false;
}

int kn_dtype_bits(kn_dtype t)
{
    assert(t < KN_DTYPE_COUNT);
    return types[t].bits;
}

const char *kn_dtype_ctype(kn_dtype t)
{
    assert(t < KN_DTYPE_COUNT);
    return types[t].ctype;
}

bool kn_dtype_is_float(kn_dtype t)
{
    return types[t].class == F;
}

bool kn_dtype_is_signed(kn_dtype t)
{
    return types[t].class == I;
}

bool kn_dtype_is_integer(kn_dtype t)
{
    return types[t].class == I || types[t].class == U;
}

int64_t kn_dtype_bytes(kn_dtype t, int64_t n)
{
    int bits = types[t].bits;
    if (n < 0)
        return -1;
    if (bits < 8)
        return n / (8 / bits) + (n % (8 / bits) != 0);
    return n > INT64_MAX / (bits / 8) ? -1 : n * (bits / 8);
}

int64_t kn_dtype_min(kn_dtype t)
{
    assert(!kn_dtype_is_float(t));
    return kn_dtype_is_signed(t) ? (int64_t)(UINT64_MAX << (types[t].bits - 1)) : 0;
}

uint64_t kn_dtype_max(kn_dtype t)
{
    assert(!kn_dtype_is_float(t));
    if (types[t].class == B)
        return 1;
    return UINT64_MAX >> (64 - types[t].bits + kn_dtype_is_signed(t));
}
