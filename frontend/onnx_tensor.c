/* Tensors of a model: raw bytes stay in the mapped file (or in the mapped file of external data),
   typed fields are packed into the arena. Counts and bytes are checked against the shape and the
   real file. */
#include <inttypes.h>
#include <stdlib.h>

#include "frontend/onnx_internal.h"
#include "frontend/onnx_scan.h"
#include "support/dtype.h"

/* TensorProto.DataType; -1: not supported. */
static const int element_types[] = {
    -1,     KN_F32, KN_U8, KN_I8, KN_U16,  KN_I16, KN_I32, KN_I64, -1, KN_BOOL, KN_F16, KN_F64,
    KN_U32, KN_U64, -1,    -1,    KN_BF16, -1,     -1,     -1,     -1, KN_U4,   KN_I4};
static const char *const type_names[] = {
    "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",   "INT16",
    "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",  "DOUBLE",
    "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4"};

kn_loc kn_onnx_loc(const kn_onnx *m, const char *where)
{
    return (kn_loc){.file = m->file->path,
                    .where = where && *where ? kn_intern(m->ctx, where) : NULL};
}

kn_dtype kn_onnx_element_type(const kn_onnx *m, int32_t code, const char *where)
{
    int n = (int)(sizeof element_types / sizeof *element_types);
    if (code <= 0 || code >= n || element_types[code] < 0) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, where),
                 "element type %s (%d) is not supported",
                 code > 0 && code < n ? type_names[code] : "unknown", code);
    }
    return (kn_dtype)element_types[code];
}

static int64_t count_elements(const kn_onnx *m, const Kiln__Onnx__Tensor *t, const char *name)
{
    int64_t count = 1;
    if (t->n_dims > KN_MAX_RANK) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, name), "rank %zu, at most %d is supported",
                 t->n_dims, KN_MAX_RANK);
    }
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0 || __builtin_mul_overflow(count, t->dims[i], &count)) {
            kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                     "dimension %zu of a constant is %" PRId64 "", i, t->dims[i]);
        }
    }
    return count;
}

/* ---- external data ---- */

static const char *external_entry(const Kiln__Onnx__Tensor *t, const char *key)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        if (t->external_data[i]->key && strcmp(t->external_data[i]->key, key) == 0) {
            return t->external_data[i]->value;
        }
    }
    return NULL;
}

static uint64_t external_number(const kn_onnx *m, const Kiln__Onnx__Tensor *t, const char *key,
                                uint64_t otherwise, const char *name)
{
    const char *text = external_entry(t, key);
    if (!text) {
        return otherwise;
    }
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end || *text == '-') {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                 "external data: %s is `%s`, expected a number", key, text);
    }
    return value;
}

typedef struct {
    kn_ctx *ctx;
    const char *path;
    const kn_file *file;
} kn_mapping;

static void map_file(void *env)
{
    kn_mapping *m = env;
    m->file = kn_file_map(m->ctx, m->path);
}

/* The named file beside the model; it may not lead out of the model's folder. */
static const kn_file *external_file(kn_onnx *m, const char *location, const char *name)
{
    const kn_file *known = kn_map_get(&m->files, location);
    if (known) {
        return known;
    }
    if (location[0] == '/' || strcmp(location, "..") == 0 || strncmp(location, "../", 3) == 0 ||
        strstr(location, "/..")) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                 "external data: `%s` is not below the model's folder", location);
    }
    const char *slash = strrchr(m->file->path, '/');
    int folder = slash ? (int)(slash - m->file->path) + 1 : 0;
    kn_mapping map = {m->ctx, kn_intern_f(m->ctx, "%.*s%s", folder, m->file->path, location), NULL};
    kn_status status = kn_protect(m->ctx, map_file, &map);
    if (status != KN_OK) {
        kn_note(m->ctx, kn_onnx_loc(m, name), "its data are there");
        kn_raise_again(m->ctx, status);
    }
    kn_map_set(&m->files, kn_intern(m->ctx, location), (void *)(uintptr_t)map.file);
    return map.file;
}

typedef struct {
    const void *data;
    size_t bytes, offset;
    const kn_file *file; /* NULL: in the arena */
} kn_payload;

static kn_payload external_payload(kn_onnx *m, const Kiln__Onnx__Tensor *t, size_t bytes,
                                   const char *name)
{
    const char *location = external_entry(t, "location");
    if (!location) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name), "external data: no location");
    }
    const kn_file *f = external_file(m, location, name);
    uint64_t offset = external_number(m, t, "offset", 0, name);
    uint64_t length = external_number(m, t, "length", bytes, name);
    if (offset > f->size || length > f->size - offset) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                 "external data: bytes %" PRIu64 " to %" PRIu64 " of `%s`, which has %zu", offset,
                 offset + length, f->path, f->size);
    }
    return (kn_payload){f->data + offset, (size_t)length, (size_t)offset, f};
}

/* ---- typed fields ---- */

static void put_element(unsigned char *out, size_t width, const void *value)
{
    memcpy(out, value, width); /* little-endian */
}

/* int32_data holds every type of at most 32 bits; 4-bit ones two a byte as in raw data, one byte an
 * entry. */
static kn_payload typed_payload(kn_onnx *m, const Kiln__Onnx__Tensor *t, kn_dtype type)
{
    size_t bits = (size_t)kn_dtype_bits(type), width = bits < 8 ? 1 : bits / 8;
    size_t n =
        t->n_float_data + t->n_int32_data + t->n_int64_data + t->n_double_data + t->n_uint64_data;
    unsigned char *out = kn_alloc_n(m->arena, n + 1, width);
    size_t at = 0;
    for (size_t i = 0; i < t->n_float_data; i++) {
        put_element(out + width * at++, width <= 4 ? width : 4, &t->float_data[i]);
    }
    for (size_t i = 0; i < t->n_int32_data; i++) {
        put_element(out + width * at++, width <= 4 ? width : 4, &t->int32_data[i]);
    }
    for (size_t i = 0; i < t->n_int64_data; i++) {
        put_element(out + width * at++, width, &t->int64_data[i]);
    }
    for (size_t i = 0; i < t->n_double_data; i++) {
        put_element(out + width * at++, width, &t->double_data[i]);
    }
    for (size_t i = 0; i < t->n_uint64_data; i++) {
        put_element(out + width * at++, width, &t->uint64_data[i]);
    }
    return (kn_payload){out, n * width, 0, NULL};
}

static kn_payload payload(kn_onnx *m, const Kiln__Onnx__Tensor *t, kn_dtype type, size_t bytes,
                          const char *name)
{
    if (t->data_location == 1) {
        return external_payload(m, t, bytes, name);
    }
    if (t->has_mapped_size) {
        uint64_t offset = t->mapped_offset, size = t->mapped_size;
        return (kn_payload){m->file->data + offset, (size_t)size, (size_t)offset, m->file};
    }
    return typed_payload(m, t, type);
}

/* The elements of a tensor, checked against its shape. */
static kn_payload elements(kn_onnx *m, const Kiln__Onnx__Tensor *t, kn_dtype type, const char *name)
{
    int64_t count = count_elements(m, t, name);
    int64_t bytes = kn_dtype_bytes(type, count);
    if (bytes < 0) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                 "a constant of %" PRId64 " elements is too large", count);
    }
    kn_payload p = payload(m, t, type, (size_t)bytes, name);
    if (p.bytes != (size_t)bytes) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name),
                 "a constant of %" PRId64 " elements of %s: expected %" PRId64 " bytes, found %zu",
                 count, kn_dtype_name(type), bytes, p.bytes);
    }
    return p;
}

kn_value *kn_onnx_tensor(kn_onnx *m, const Kiln__Onnx__Tensor *t, const char *name)
{
    kn_dtype type = kn_onnx_element_type(m, t->data_type, name);
    kn_payload p = elements(m, t, type, name);
    kn_value *v = kn_graph_const(m->g, name, type, t->dims, (int)t->n_dims, p.data, p.bytes,
                                 kn_onnx_loc(m, name));
    if (p.file) {
        v->file = p.file->path;
        v->offset = p.offset;
    }
    return v;
}

kn_array kn_onnx_read_array(kn_arena *a, const kn_file *file)
{
    kn_onnx m = {.ctx = kn_arena_ctx(a), .arena = a, .file = file, .files = kn_map_make(a)};
    kn_bytes bytes = kn_onnx_scan_tensor(a, file);
    Kiln__Onnx__Tensor *t =
        kiln__onnx__tensor__unpack(kn_onnx_allocator(&m), bytes.size, bytes.data);
    if (!t) {
        kn_raise(m.ctx, KN_INVALID, kn_onnx_loc(&m, NULL),
                 "not an ONNX tensor: its fields do not decode");
    }
    const char *name = t->name ? t->name : "";
    kn_array array = {
        .name = name, .type = kn_onnx_element_type(&m, t->data_type, name), .rank = (int)t->n_dims};
    kn_payload p = elements(&m, t, array.type, name);
    for (size_t i = 0; i < t->n_dims; i++) {
        array.dims[i] = t->dims[i];
    }
    array.data = p.data;
    array.bytes = p.bytes;
    return array;
}
