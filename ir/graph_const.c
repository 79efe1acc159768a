/* Elements of constants: reading, writing, and small constants made on the spot. Data may be
   unaligned; 4-bit elements are packed, the low nibble first. */
#include <assert.h>

#include "ir/graph_internal.h"
#include "support/half.h"

static uint64_t load_bits(int bits, const unsigned char *data, int64_t i)
{
    if (bits == 4)
        return (unsigned)data[i / 2] >> (i % 2 ? 4 : 0) & 15u;
    const unsigned char *at = data + i * (bits / 8);
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (bits) {
    case 8: return *at;
    case 16: memcpy(&h, at, sizeof h); return h;
    case 32: memcpy(&w, at, sizeof w); return w;
    default: memcpy(&d, at, sizeof d); return d;
    }
}

static void store_bits(int bits, unsigned char *data, int64_t i, uint64_t v)
{
    if (bits == 4) {
        unsigned shift = i % 2 ? 4 : 0;
        data[i / 2] =
            (unsigned char)((data[i / 2] & ~(15u << shift)) | ((unsigned)v & 15u) << shift);
        return;
    }
    unsigned char *at = data + i * (bits / 8);
    uint16_t h = (uint16_t)v;
    uint32_t w = (uint32_t)v;
    switch (bits) {
    case 8: *at = (unsigned char)v; break;
    case 16: memcpy(at, &h, sizeof h); break;
    case 32: memcpy(at, &w, sizeof w); break;
    default: memcpy(at, &v, sizeof v); break;
    }
}

static double float_of_bits(kn_dtype type, uint64_t bits)
{
    float f;
    double d;
    uint32_t w = (uint32_t)bits;
    if (type == KN_F16)
        return (double)kn_f16_to_f32((uint16_t)bits);
    if (type == KN_BF16)
        return (double)kn_bf16_to_f32((uint16_t)bits);
    if (type == KN_F32) {
        memcpy(&f, &w, sizeof f);
        return (double)f;
    }
    memcpy(&d, &bits, sizeof d);
    return d;
}

static uint64_t bits_of_float(kn_dtype type, double d)
{
    float f = (float)d;
    uint32_t w;
    uint64_t bits;
    if (type == KN_F16)
        return kn_f64_to_f16(d);
    if (type == KN_BF16)
        return kn_f32_to_bf16(f);
    if (type == KN_F32) {
        memcpy(&w, &f, sizeof w);
        return w;
    }
    memcpy(&bits, &d, sizeof bits);
    return bits;
}

/* Extends the sign of an n-bit number. */
static int64_t signed_of_bits(int bits, uint64_t v)
{
    uint64_t sign = UINT64_C(1) << (bits - 1);
    return (int64_t)((v ^ sign) - sign);
}

const kn_expr *kn_element_get(kn_arena *a, kn_dtype type, const void *data, int64_t i)
{
    int bits = kn_dtype_bits(type);
    uint64_t v = load_bits(bits, data, i);
    if (kn_dtype_is_float(type))
        return kn_float(a, type, float_of_bits(type, v));
    if (type == KN_BOOL)
        return kn_int(a, type, v != 0);
    return kn_int(a, type, kn_dtype_is_signed(type) ? signed_of_bits(bits, v) : (int64_t)v);
}

void kn_element_put(kn_dtype type, void *data, int64_t i, const kn_expr *literal)
{
    assert(literal->kind == KN_E_CONST && literal->type == type);
    uint64_t v = kn_dtype_is_float(type) ? bits_of_float(type, literal->f) : (uint64_t)literal->i;
    store_bits(kn_dtype_bits(type), data, i, v);
}

const kn_expr *kn_value_element(kn_arena *a, const kn_value *v, int64_t i)
{
    assert(v->data && i >= 0 && i < kn_value_count(v));
    return kn_element_get(a, v->type, v->data, i);
}

const kn_expr *kn_value_literal(kn_arena *a, const kn_value *v)
{
    int64_t known;
    if (kn_value_count(v) != 1)
        return NULL;
    if (v->data)
        return kn_element_get(a, v->type, v->data, 0);
    if (v->content && kn_dtype_is_float(v->type))
        return v->content[0];
    if (v->content && kn_index_const(v->content[0], &known))
        return kn_int(a, v->type, known);
    return NULL;
}

kn_value *kn_graph_scalar(kn_graph *g, kn_dtype type, double value)
{
    const kn_expr *e = kn_dtype_is_float(type) ? kn_float(g->arena, type, value)
                                               : kn_int(g->arena, type, (int64_t)value);
    size_t bytes = (size_t)kn_dtype_bytes(type, 1);
    void *data = kn_alloc(g->arena, bytes);
    kn_element_put(type, data, 0, e);
    return kn_graph_const(g, kn_graph_fresh(g, "c"), type, NULL, 0, data, bytes, kn_loc_none());
}

kn_value *kn_graph_indices(kn_graph *g, kn_dtype type, const int64_t *values, int n)
{
    size_t bytes = (size_t)kn_dtype_bytes(type, n);
    void *data = kn_alloc(g->arena, bytes);
    for (int i = 0; i < n; i++)
        kn_element_put(type, data, i, kn_int(g->arena, type, values[i]));
    int64_t dims[] = {n};
    return kn_graph_const(g, kn_graph_fresh(g, "c"), type, dims, 1, data, bytes, kn_loc_none());
}
