/* See npy.h. The header is searched for its three keys rather than parsed: NumPy writes nothing
   else, and whatever they say is checked against the file's size. */
#include "support/npy.h"

#include <stdlib.h>

#include "support/dtype.h"
#include "support/str.h"

enum { MAGIC = 6, MAX_HEADER = 65535, ALIGN = 64 };
static const char magic[] = "\x93NUMPY";

static const struct {
    const char *descr; /* as it stands in the header */
    kn_dtype type;
} types[] = {{"'<f4'", KN_F32}, {"'<f2'", KN_F16}, {"'<f8'", KN_F64}, {"'|i1'", KN_I8},
             {"'|u1'", KN_U8},  {"'<i2'", KN_I16}, {"'<u2'", KN_U16}, {"'<i4'", KN_I32},
             {"'<u4'", KN_U32}, {"'<i8'", KN_I64}, {"'<u8'", KN_U64}, {"'|b1'", KN_BOOL}};
enum { NTYPES = sizeof types / sizeof *types };

bool kn_npy_detect(const kn_file *file)
{
    return file->size >= MAGIC && memcmp(file->data, magic, MAGIC) == 0;
}

/* ---- reading ---- */

typedef struct {
    kn_ctx *ctx;
    const kn_file *file;
    const char *header; /* as a string */
    size_t end;         /* of the header in the file */
} reader;

_Noreturn static void fail(const reader *r, kn_status status, const char *what)
{
    kn_raise(r->ctx, status, (kn_loc){.file = r->file->path},
             "not a .npy file that can be read: %s", what);
}

/* The length is of 2 bytes in version 1, of 4 in later ones. */
static void read_header(reader *r, kn_arena *a)
{
    const kn_file *f = r->file;
    size_t width = f->size > MAGIC && f->data[MAGIC] >= 2 ? 4 : 2, start = MAGIC + 2 + width, n = 0;
    if (!kn_npy_detect(f) || f->size < start) {
        fail(r, KN_INVALID, "it is cut off");
    }
    for (size_t i = width; i-- > 0;) {
        n = n << 8 | f->data[MAGIC + 2 + i];
    }
    if (n > f->size - start || n > MAX_HEADER) {
        fail(r, KN_INVALID, "its header is cut off");
    }
    char *header = KN_ARRAY(a, char, n + 1);
    memcpy(header, f->data + start, n);
    r->header = header;
    r->end = start + n;
}

/* What follows KEY: in the dictionary. */
static const char *entry(const reader *r, const char *key)
{
    const char *at = strstr(r->header, key);
    at = at ? strchr(at, ':') : NULL;
    if (!at) {
        fail(r, KN_INVALID, "an entry of its header is missing");
    }
    at++;
    return at + strspn(at, " ");
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

static kn_dtype read_type(const reader *r)
{
    const char *text = entry(r, "'descr'");
    for (int i = 0; i < NTYPES; i++) {
        if (starts_with(text, types[i].descr)) {
            return types[i].type;
        }
    }
    fail(r, KN_UNSUPPORTED, "an element type that Kiln has not");
}

static void check_order(const reader *r)
{
    const char *text = entry(r, "'fortran_order'");
    if (starts_with(text, "True")) {
        fail(r, KN_UNSUPPORTED, "it is in Fortran order");
    }
    if (!starts_with(text, "False")) {
        fail(r, KN_INVALID, "its order");
    }
}

/* (), (3,) or (3, 5): sets rank and dims, returns the number of elements. */
static int64_t read_shape(const reader *r, kn_npy *out)
{
    const char *at = entry(r, "'shape'");
    int64_t count = 1;
    bool good = *at++ == '(';
    while (good && *at != ')') {
        char *end;
        long long dim = strtoll(at, &end, 10);
        good = end > at && dim >= 0 && out->rank < KN_MAX_RANK &&
               !__builtin_mul_overflow(count, dim, &count);
        if (good) {
            out->dims[out->rank++] = dim;
            at = end + strspn(end, ", ");
        }
    }
    if (!good) {
        fail(r, KN_INVALID, "its shape");
    }
    return count;
}

kn_npy kn_npy_read(kn_arena *a, const kn_file *file)
{
    reader r = {.ctx = kn_arena_ctx(a), .file = file};
    read_header(&r, a);
    kn_npy out = {.type = read_type(&r)};
    check_order(&r);
    int64_t bytes = kn_dtype_bytes(out.type, read_shape(&r, &out));
    out.offset = r.end;
    out.bytes = file->size - r.end;
    if (bytes < 0 || (size_t)bytes != out.bytes) {
        fail(&r, KN_INVALID, "its bytes do not fit its shape");
    }
    return out;
}

/* ---- writing ---- */

static const char *descr_of(kn_ctx *ctx, kn_dtype type, const char *path)
{
    for (int i = 0; i < NTYPES; i++) {
        if (types[i].type == type) {
            return types[i].descr;
        }
    }
    kn_raise(ctx, KN_UNSUPPORTED, (kn_loc){.file = kn_intern(ctx, path)},
             ".npy files have no element type %s", kn_dtype_name(type));
}

void kn_npy_write(kn_arena *a, const char *path, kn_dtype type, int rank, const int64_t *dims,
                  kn_piece data)
{
    enum { START = MAGIC + 4 }; /* version 1.0 and the length follow the magic */
    kn_ctx *ctx = kn_arena_ctx(a);
    kn_str s = kn_str_make(a);
    kn_put_n(&s, magic, MAGIC);
    kn_put_n(&s, "\1\0\0\0", START - MAGIC);
    kn_putf(&s, "{'descr': %s, 'fortran_order': False, 'shape': (", descr_of(ctx, type, path));
    for (int i = 0; i < rank; i++) {
        kn_putf(&s, "%lld,%s", (long long)dims[i], i + 1 < rank ? " " : "");
    }
    kn_put(&s, "), }");
    while (s.n % ALIGN != ALIGN - 1) {
        kn_put_char(&s, ' ');
    }
    kn_put_char(&s, '\n');
    s.at[START - 2] = (char)((s.n - START) & 255);
    s.at[START - 1] = (char)((s.n - START) >> 8);
    kn_file_write_pieces(ctx, path, (kn_piece[]){{kn_str_get(&s), s.n}, data}, 2);
}
