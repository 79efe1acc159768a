/* Tensors in files: NumPy's .npy, ONNX's TensorProto, safetensors; and of sessions. */
#include "support/half.h"
#include "support/npy.h"
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

/* ---- files ---- */

static kn_array read_npy(kn_cli *c, const kn_file *f)
{
    kn_npy npy = kn_npy_read(c->arena, f);
    kn_array a = {.name = "",
                  .type = npy.type,
                  .rank = npy.rank,
                  .data = f->data + npy.offset,
                  .bytes = npy.bytes};
    memcpy(a.dims, npy.dims, sizeof a.dims);
    return a;
}

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
    if (kn_npy_detect(f)) {
        return read_npy(c, f);
    }
    if (f->size >= 9 && f->data[8] == '{' && f->data[7] == 0) {
        return read_safetensors(c, f);
    }
    return kn_onnx_read_array(c->arena, f);
}

void kn_cli_write_npy(kn_cli *c, const char *path, const kn_array *a)
{
    kn_npy_write(c->arena, path, a->type, a->rank, a->dims, (kn_piece){a->data, a->bytes});
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
