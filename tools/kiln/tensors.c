/* Tensors in files: NumPy's .npy (format 1 to 3, as numpy.lib.format describes it), ONNX's
 * TensorProto, safetensors. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/half.h"
#include "support/safetensors.h"
#include "tools/kiln/kiln.h"

int64_t kn_cli_count(const kn_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++) {
        n *= a->dims[i];
    }
    return n;
}

static uint64_t bits_at(const kn_array *a, int64_t i)
{
    size_t bytes = (size_t)kn_dtype_bits(a->type) / 8;
    const unsigned char *data = a->data;
    uint64_t bits = 0;
    if (bytes == 0) {
        return (data[i / 2] >> (i % 2 * 4)) & 15;
    }
    memcpy(&bits, data + (size_t)i * bytes, bytes); /* little-endian */
    return bits;
}

double kn_cli_element(const kn_array *a, int64_t i)
{
    uint64_t bits = bits_at(a, i);
    uint32_t low = (uint32_t)bits;
    float single;
    double f;
    switch (a->type) {
    case KN_F32: memcpy(&single, &low, sizeof single); return (double)single;
    case KN_F64: memcpy(&f, &bits, sizeof f); return f;
    case KN_F16: return (double)kn_f16_to_f32((uint16_t)bits);
    case KN_BF16: return (double)kn_bf16_to_f32((uint16_t)bits);
    default:
        if (kn_dtype_is_signed(a->type)) {
            int shift = 64 - kn_dtype_bits(a->type);
            return (double)((int64_t)(bits << shift) >> shift);
        }
        return (double)bits;
    }
}

/* ---- .npy ---- */

static const struct {
    const char *descr;
    kn_dtype type;
} npy_types[] = {{"<f4", KN_F32}, {"<f2", KN_F16}, {"<f8", KN_F64}, {"|i1", KN_I8},
                 {"|u1", KN_U8},  {"<i2", KN_I16}, {"<u2", KN_U16}, {"<i4", KN_I32},
                 {"<u4", KN_U32}, {"<i8", KN_I64}, {"<u8", KN_U64}, {"|b1", KN_BOOL}};

_Noreturn static void bad_npy(kn_cli *c, const kn_file *f, const char *what)
{
    kn_raise(c->ctx, KN_INVALID, (kn_loc){.file = f->path}, "not a .npy file that can be read: %s",
             what);
}

/* What follows 'KEY': in the header's dictionary. */
static const char *npy_entry(kn_cli *c, const kn_file *f, const char *header, const char *key)
{
    const char *at = strstr(header, key);
    at = at ? strchr(at, ':') : NULL;
    if (!at) {
        bad_npy(c, f, "an entry of its header is missing");
    }
    for (at++; *at == ' ';) {
        at++;
    }
    return at;
}

static kn_dtype npy_type(kn_cli *c, const kn_file *f, const char *text)
{
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++) {
        if (strncmp(text + 1, npy_types[i].descr, 3) == 0) {
            return npy_types[i].type;
        }
    }
    bad_npy(c, f, "an element type that Kiln has not");
}

static void npy_shape(kn_cli *c, const kn_file *f, const char *at, kn_array *a)
{
    for (at++; *at && *at != ')';) {
        char *end;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || a->rank == KN_MAX_RANK) {
            bad_npy(c, f, "its shape");
        }
        a->dims[a->rank++] = dim;
        for (at = end; *at == ',' || *at == ' ';) {
            at++;
        }
    }
}

static kn_array read_npy(kn_cli *c, const kn_file *f)
{
    size_t prefix = f->size > 6 && f->data[6] >= 2 ? 12 : 10;
    if (f->size < prefix) {
        bad_npy(c, f, "it is cut off");
    }
    size_t n = f->data[8] | (size_t)f->data[9] << 8;
    if (prefix == 12) {
        n |= (size_t)f->data[10] << 16 | (size_t)f->data[11] << 24;
    }
    if (n > f->size - prefix || n > 65536) {
        bad_npy(c, f, "its header is cut off");
    }
    const char *header = kn_intern_n(c->ctx, (const char *)f->data + prefix, n);
    kn_array a = {.name = ""};
    a.type = npy_type(c, f, npy_entry(c, f, header, "'descr'"));
    if (strncmp(npy_entry(c, f, header, "'fortran_order'"), "False", 5) != 0) {
        bad_npy(c, f, "it is in Fortran order");
    }
    npy_shape(c, f, npy_entry(c, f, header, "'shape'"), &a);
    int64_t count = 1;
    for (int i = 0; i < a.rank; i++) {
        if (__builtin_mul_overflow(count, a.dims[i], &count)) {
            bad_npy(c, f, "its shape is too large");
        }
    }
    int64_t bytes = kn_dtype_bytes(a.type, count);
    a.data = f->data + prefix + n;
    if (bytes < 0 || (size_t)bytes != f->size - prefix - n) {
        bad_npy(c, f, "its bytes do not fit its shape");
    }
    a.bytes = (size_t)bytes;
    return a;
}

void kn_cli_write_npy(kn_cli *c, const char *path, const kn_array *a)
{
    const char *descr = NULL;
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++) {
        descr = npy_types[i].type == a->type ? npy_types[i].descr : descr;
    }
    if (!descr) {
        kn_raise(c->ctx, KN_UNSUPPORTED, (kn_loc){.file = kn_intern(c->ctx, path)},
                 ".npy files have no element type %s", kn_dtype_name(a->type));
    }
    kn_str s = kn_str_make(c->arena);
    kn_put_n(&s, "\x93NUMPY\x01\x00\x00\x00", 10);
    kn_putf(&s, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < a->rank; i++) {
        kn_putf(&s, "%lld,%s", (long long)a->dims[i], i + 1 < a->rank ? " " : "");
    }
    kn_put(&s, "), }");
    while (s.n % 64 != 63) {
        kn_put_char(&s, ' ');
    }
    kn_put_char(&s, '\n');
    s.at[8] = (char)((s.n - 10) & 255);
    s.at[9] = (char)((s.n - 10) >> 8);
    kn_file_write_pieces(c->ctx, path, (kn_piece[]){{kn_str_get(&s), s.n}, {a->data, a->bytes}}, 2);
}

/* ---- any kind ---- */

static kn_array read_safetensors(kn_cli *c, const kn_file *f)
{
    kn_safetensors *st = kn_safetensors_read(c->arena, f);
    if (st->n != 1) {
        kn_raise(c->ctx, KN_INVALID, (kn_loc){.file = f->path}, "expected one tensor, found %d",
                 st->n);
    }
    const kn_st_tensor *t = &st->tensors[0];
    kn_array a = {.name = t->name,
                  .type = t->dtype,
                  .rank = t->rank,
                  .data = f->data + t->offset,
                  .bytes = t->bytes};
    memcpy(a.dims, t->dims, sizeof a.dims);
    return a;
}

kn_array kn_cli_read_array(kn_cli *c, const char *path)
{
    const kn_file *f = kn_file_map(c->ctx, path);
    if (f->size >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0) {
        return read_npy(c, f);
    }
    if (f->size >= 9 && f->data[8] == '{' && f->data[7] == 0) {
        return read_safetensors(c, f);
    }
    return kn_onnx_read_array(c->arena, f);
}

/* ---- sessions ---- */

void kn_cli_set_input(kn_cli *c, kn_session *s, int i, const kn_array *a)
{
    /* the elements of a mapped file may be unaligned */
    void *data = kn_alloc(c->arena, a->bytes + 1);
    memcpy(data, a->data, a->bytes);
    kn_cli_require(c, kn_session_set_input(s, i, a->type, a->rank, a->dims, data));
}

kn_array kn_cli_get_output(kn_cli *c, kn_session *s, const kn_program *p, int i)
{
    kn_array a = {.name = kn_program_output(p, i)->name};
    kn_cli_require(c, kn_session_get_output(s, i, &a.type, &a.rank, a.dims, &a.data));
    a.bytes = (size_t)kn_dtype_bytes(a.type, kn_cli_count(&a));
    return a;
}
