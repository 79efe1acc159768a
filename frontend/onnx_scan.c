/* The wire format (protobuf's encoding page): a message is a list of fields, each a varint key
   (number << 3 | wire type) and a payload: varint (0), 8 bytes (1), length and bytes (2), 4 bytes
   (5). The tables below say which fields of which message are kept and which hold messages. */
#include "frontend/onnx_scan.h"

#include "support/str.h"

typedef enum { COPY, MESSAGE, EMPTY, RAW } kn_field_use;

typedef struct kn_message kn_message;
typedef struct {
    unsigned number;
    kn_field_use use;
    const kn_message *message; /* of MESSAGE */
} kn_field;
struct kn_message {
    const char *name;
    const kn_field *fields; /* ends with number 0 */
};

static const kn_message graph_message, attribute_message;

static const kn_message entry_message = {"entry",
                                         (const kn_field[]){{1, COPY, 0}, {2, COPY, 0}, {0}}};
static const kn_message opset_message = {"opset",
                                         (const kn_field[]){{1, COPY, 0}, {2, COPY, 0}, {0}}};
static const kn_message tensor_message = {"tensor",
                                          (const kn_field[]){{1, COPY, 0},
                                                             {2, COPY, 0},
                                                             {4, COPY, 0},
                                                             {5, COPY, 0},
                                                             {6, COPY, 0},
                                                             {7, COPY, 0},
                                                             {8, COPY, 0},
                                                             {9, RAW, 0},
                                                             {10, COPY, 0},
                                                             {11, COPY, 0},
                                                             {13, MESSAGE, &entry_message},
                                                             {14, COPY, 0},
                                                             {0}}};
static const kn_message dimension_message = {"dimension",
                                             (const kn_field[]){{1, COPY, 0}, {2, COPY, 0}, {0}}};
static const kn_message shape_message = {"shape",
                                         (const kn_field[]){{1, MESSAGE, &dimension_message}, {0}}};
static const kn_message tensor_type_message = {
    "tensor type", (const kn_field[]){{1, COPY, 0}, {2, MESSAGE, &shape_message}, {0}}};
static const kn_message type_message = {"type",
                                        (const kn_field[]){{1, MESSAGE, &tensor_type_message},
                                                           {4, EMPTY, 0},
                                                           {5, EMPTY, 0},
                                                           {8, EMPTY, 0},
                                                           {9, EMPTY, 0},
                                                           {0}}};
static const kn_message value_message = {
    "value", (const kn_field[]){{1, COPY, 0}, {2, MESSAGE, &type_message}, {0}}};
static const kn_message attribute_message = {"attribute",
                                             (const kn_field[]){{1, COPY, 0},
                                                                {2, COPY, 0},
                                                                {3, COPY, 0},
                                                                {4, COPY, 0},
                                                                {5, MESSAGE, &tensor_message},
                                                                {6, MESSAGE, &graph_message},
                                                                {7, COPY, 0},
                                                                {8, COPY, 0},
                                                                {9, COPY, 0},
                                                                {10, MESSAGE, &tensor_message},
                                                                {11, MESSAGE, &graph_message},
                                                                {20, COPY, 0},
                                                                {21, COPY, 0},
                                                                {0}}};
static const kn_message node_message = {"node", (const kn_field[]){{1, COPY, 0},
                                                                   {2, COPY, 0},
                                                                   {3, COPY, 0},
                                                                   {4, COPY, 0},
                                                                   {5, MESSAGE, &attribute_message},
                                                                   {7, COPY, 0},
                                                                   {8, COPY, 0},
                                                                   {0}}};
static const kn_message graph_message = {"graph", (const kn_field[]){{1, MESSAGE, &node_message},
                                                                     {2, COPY, 0},
                                                                     {5, MESSAGE, &tensor_message},
                                                                     {11, MESSAGE, &value_message},
                                                                     {12, MESSAGE, &value_message},
                                                                     {15, EMPTY, 0},
                                                                     {0}}};
static const kn_message function_message = {"function",
                                            (const kn_field[]){{1, COPY, 0},
                                                               {4, COPY, 0},
                                                               {5, COPY, 0},
                                                               {6, COPY, 0},
                                                               {7, MESSAGE, &node_message},
                                                               {9, MESSAGE, &opset_message},
                                                               {10, COPY, 0},
                                                               {11, MESSAGE, &attribute_message},
                                                               {13, COPY, 0},
                                                               {0}}};
static const kn_message model_message = {"model",
                                         (const kn_field[]){{1, COPY, 0},
                                                            {2, COPY, 0},
                                                            {7, MESSAGE, &graph_message},
                                                            {8, MESSAGE, &opset_message},
                                                            {25, MESSAGE, &function_message},
                                                            {0}}};

typedef struct {
    kn_arena *arena;
    const kn_file *file;
    size_t at;
    int fields, depth;
} kn_scan;

_Noreturn static void broken(const kn_scan *s, const kn_message *m, const char *what)
{
    kn_loc loc = {.file = s->file->path};
    kn_raise(kn_arena_ctx(s->arena), KN_INVALID, loc, "not an ONNX file: byte %zu, in a %s: %s",
             s->at, m->name, what);
}

static uint64_t varint(kn_scan *s, const kn_message *m, size_t end)
{
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (s->at >= end) {
            broken(s, m, "a number is cut off");
        }
        unsigned char byte = s->file->data[s->at++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            return value;
        }
    }
    broken(s, m, "a number is longer than 64 bits");
}

static void put_varint(kn_str *out, uint64_t value)
{
    while (value >= 0x80) {
        kn_put_char(out, (char)(unsigned char)(value | 0x80));
        value >>= 7;
    }
    kn_put_char(out, (char)(unsigned char)value);
}

/* The end of a field's payload. */
static size_t payload_end(kn_scan *s, const kn_message *m, unsigned wire, size_t end)
{
    uint64_t length = 0;
    switch (wire) {
    case 0: varint(s, m, end); return s->at;
    case 1: length = 8; break;
    case 2: length = varint(s, m, end); break;
    case 5: length = 4; break;
    default: broken(s, m, "an unknown kind of field");
    }
    if (length > end - s->at) {
        broken(s, m, "a field reaches beyond what holds it");
    }
    return s->at + (size_t)length;
}

static const kn_field *find_field(const kn_message *m, uint64_t number)
{
    for (const kn_field *f = m->fields; f->number; f++) {
        if (f->number == number) {
            return f;
        }
    }
    return NULL;
}

static void scan_message(kn_scan *s, const kn_message *m, size_t end, kn_str *out);

static void scan_inner(kn_scan *s, const kn_message *m, const kn_field *f, size_t end, kn_str *out)
{
    if (++s->depth > KN_ONNX_MAX_DEPTH) {
        broken(s, m, "messages are nested too deeply");
    }
    kn_str inner = kn_str_make(s->arena);
    scan_message(s, f->message, end, &inner);
    put_varint(out, inner.n);
    kn_put_n(out, kn_str_get(&inner), inner.n);
    s->depth--;
}

/* The place of raw bytes in the file, as fields 50001 and 50002. */
static void put_mapped(kn_str *out, size_t offset, size_t size)
{
    put_varint(out, UINT64_C(50001) << 3);
    put_varint(out, offset);
    put_varint(out, UINT64_C(50002) << 3);
    put_varint(out, size);
}

static void scan_field(kn_scan *s, const kn_message *m, size_t end, kn_str *out)
{
    size_t start = s->at;
    uint64_t key = varint(s, m, end);
    unsigned wire = key & 7;
    const kn_field *f = find_field(m, key >> 3);
    if (f && f->use != COPY && wire != 2) {
        broken(s, m, "a message or bytes were expected");
    }
    size_t stop = payload_end(s, m, wire, end);
    if (f && f->use == COPY) {
        kn_put_n(out, (const char *)s->file->data + start, stop - start);
    } else if (f && f->use == EMPTY) {
        put_varint(out, key);
        put_varint(out, 0);
    } else if (f && f->use == RAW) {
        put_mapped(out, s->at, stop - s->at);
    } else if (f) {
        put_varint(out, key);
        scan_inner(s, m, f, stop, out);
    }
    s->at = stop;
}

static void scan_message(kn_scan *s, const kn_message *m, size_t end, kn_str *out)
{
    while (s->at < end) {
        if (++s->fields > KN_ONNX_MAX_FIELDS) {
            broken(s, m, "too many fields");
        }
        scan_field(s, m, end, out);
    }
}

static kn_bytes scan_file(kn_arena *a, const kn_file *file, const kn_message *m)
{
    kn_scan s = {.arena = a, .file = file};
    kn_str out = kn_str_make(a);
    scan_message(&s, m, file->size, &out);
    return (kn_bytes){(const unsigned char *)kn_str_get(&out), out.n};
}

kn_bytes kn_onnx_scan(kn_arena *a, const kn_file *file)
{
    return scan_file(a, file, &model_message);
}

kn_bytes kn_onnx_scan_tensor(kn_arena *a, const kn_file *file)
{
    return scan_file(a, file, &tensor_message);
}
