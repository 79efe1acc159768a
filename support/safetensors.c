/* The safetensors container.

   Reading: the header is JSON of one fixed form, read by hand:
       { "__metadata__": {"key": "value", ...},
         "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ... }   and spaces
   so nothing nests deeper than the form does. Every number is checked: a shape's bytes against its
   offsets, the offsets against each other (no holes, no overlaps) and against the file. Text is
   checked to be UTF-8.

   Writing: tensors in the order given. The header is padded with spaces to the largest alignment
   asked for (at least 8), so that the place of a tensor in the file depends on what stands before
   it alone; where an alignment leaves a gap, a U8 tensor `__pad__.N` fills it. */
#include "support/safetensors.h"

#include <assert.h>
#include <stdlib.h>

#include "support/dtype.h"
#include "support/str.h"

enum { MAX_HEADER = 100 * 1000 * 1000, LENGTH_BYTES = 8, MIN_PADDING = 8 };

/* The format's names of element types. Those that Kiln has no type for are known, to be refused as
 * unsupported. */
static const struct {
    const char *name;
    kn_dtype dtype; /* KN_DTYPE_COUNT: none */
} dtypes[] = {
    {"F64", KN_F64},
    {"F32", KN_F32},
    {"F16", KN_F16},
    {"BF16", KN_BF16},
    {"I64", KN_I64},
    {"I32", KN_I32},
    {"I16", KN_I16},
    {"I8", KN_I8},
    {"U64", KN_U64},
    {"U32", KN_U32},
    {"U16", KN_U16},
    {"U8", KN_U8},
    {"BOOL", KN_BOOL},
    {"F8_E4M3", KN_DTYPE_COUNT},
    {"F8_E5M2", KN_DTYPE_COUNT},
    {"F8_E8M0", KN_DTYPE_COUNT},
    {"F6_E2M3", KN_DTYPE_COUNT},
    {"F6_E3M2", KN_DTYPE_COUNT},
    {"F4", KN_DTYPE_COUNT},
    {"C64", KN_DTYPE_COUNT},
};
enum { NDTYPES = sizeof dtypes / sizeof dtypes[0] };

/* ---- the header's text ---- */

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const kn_file *file;
    const char *p, *end;
    const char *where; /* the tensor being read, or NULL */
} reader;

static kn_loc loc_of(const reader *r)
{
    kn_loc loc = {.file = r->file->path};
    if (r->where)
        loc.where = kn_intern(r->ctx, r->where);
    return loc;
}

static size_t place(const reader *r)
{
    return (size_t)(r->p - (const char *)r->file->data);
}

/* expected: what should stand at r->p. */
static _Noreturn void raise_syntax(const reader *r, const char *expected)
{
    if (r->p >= r->end)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "header: expected %s, found its end", expected);
    unsigned char c = (unsigned char)*r->p;
    if (c > ' ' && c <= '~')
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "header, byte %zu: expected %s, found '%c'",
                 place(r), expected, c);
    kn_raise(r->ctx, KN_INVALID, loc_of(r), "header, byte %zu: expected %s, found byte 0x%02x",
             place(r), expected, c);
}

static void skip_space(reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

/* Takes the character if it is next. */
static bool accept(reader *r, char c)
{
    skip_space(r);
    if (r->p >= r->end || *r->p != c)
        return false;
    r->p++;
    return true;
}

static void expect(reader *r, char c)
{
    if (!accept(r, c))
        raise_syntax(r, (const char[]){'\'', c, '\'', '\0'});
}

/* Before the next item of a list that `close` ends: true when there is one. */
static bool next_item(reader *r, char close, bool first)
{
    if (accept(r, close))
        return false;
    if (!first)
        expect(r, ',');
    return true;
}

static unsigned read_hex4(reader *r)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++, r->p++) {
        int digit = r->p < r->end ? kn_hex_digit(*r->p) : -1;
        if (digit < 0)
            raise_syntax(r, "four hexadecimal digits");
        value = value << 4 | (unsigned)digit;
    }
    return value;
}

/* What follows \u: a code point, of one escape or of a pair of surrogates. */
static unsigned read_code_point(reader *r)
{
    unsigned high = read_hex4(r);
    if (high == 0)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "header, byte %zu: NUL in a string", place(r));
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
        raise_syntax(r, "a pair of surrogates");
    r->p += 2;
    unsigned low = read_hex4(r);
    if (low < 0xdc00 || low > 0xdfff)
        raise_syntax(r, "a pair of surrogates");
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

static void put_utf8(kn_str *s, unsigned c)
{
    if (c < 0x80) {
        kn_put_char(s, (char)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    kn_put_char(s, (char)(lead[more] | c >> 6 * more));
    while (more--)
        kn_put_char(s, (char)(0x80 | (c >> 6 * more & 0x3f)));
}

static void read_escape(reader *r, kn_str *s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *found = r->p < r->end && *r->p ? strchr(from, *r->p) : NULL;
    if (found) {
        kn_put_char(s, to[found - from]);
        r->p++;
    } else if (r->p < r->end && *r->p == 'u') {
        r->p++;
        put_utf8(s, read_code_point(r));
    } else {
        raise_syntax(r, "an escape");
    }
}

static const char *read_string(reader *r)
{
    expect(r, '"');
    kn_str s = kn_str_make(r->arena);
    while (r->p < r->end && *r->p != '"') {
        if (*r->p == '\\') {
            r->p++;
            read_escape(r, &s);
            continue;
        }
        int n = (unsigned char)*r->p < ' ' ? 0 : kn_utf8_length(r->p, r->end);
        if (n == 0)
            raise_syntax(r, "UTF-8 text");
        kn_put_n(&s, r->p, (size_t)n);
        r->p += n;
    }
    expect(r, '"');
    return kn_str_get(&s);
}

/* A non-negative integer that fits an int64_t. */
static int64_t read_integer(reader *r)
{
    skip_space(r);
    const char *start = r->p;
    int64_t value = 0;
    for (; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++) {
        int digit = *r->p - '0';
        if (value > (INT64_MAX - digit) / 10)
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "header, byte %zu: number too large", place(r));
        value = 10 * value + digit;
    }
    if (r->p == start)
        raise_syntax(r, "a non-negative integer");
    if (*start == '0' && r->p - start > 1)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "header, byte %zu: number with a leading zero",
                 place(r));
    return value;
}

/* ---- tensors ---- */

static kn_dtype read_dtype(reader *r)
{
    const char *name = read_string(r);
    for (int i = 0; i < NDTYPES; i++) {
        if (strcmp(dtypes[i].name, name) != 0)
            continue;
        if (dtypes[i].dtype == KN_DTYPE_COUNT)
            kn_raise(r->ctx, KN_UNSUPPORTED, loc_of(r), "element type %s is not supported", name);
        return dtypes[i].dtype;
    }
    kn_raise(r->ctx, KN_INVALID, loc_of(r), "unknown element type '%.40s'", name);
}

static void read_shape(reader *r, kn_st_tensor *t)
{
    expect(r, '[');
    for (bool first = true; next_item(r, ']', first); first = false) {
        if (t->rank == KN_MAX_RANK)
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "more than %d dimensions", KN_MAX_RANK);
        t->dims[t->rank++] = read_integer(r);
    }
}

/* Leaves the bounds, relative to the data, in offset and bytes. */
static void read_offsets(reader *r, kn_st_tensor *t)
{
    expect(r, '[');
    int64_t begin = read_integer(r);
    expect(r, ',');
    int64_t end = read_integer(r);
    expect(r, ']');
    if (begin > end)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "data_offsets [%lld, %lld] run backwards",
                 (long long)begin, (long long)end);
    t->offset = (size_t)begin;
    t->bytes = (size_t)(end - begin);
}

/* Reads the value of one key. Each key has one bit in what is returned. */
static unsigned read_field(reader *r, const char *key, kn_st_tensor *t)
{
    if (strcmp(key, "dtype") == 0) {
        t->dtype = read_dtype(r);
        return 1;
    }
    if (strcmp(key, "shape") == 0) {
        t->rank = 0;
        read_shape(r, t);
        return 2;
    }
    if (strcmp(key, "data_offsets") == 0) {
        read_offsets(r, t);
        return 4;
    }
    kn_raise(r->ctx, KN_INVALID, loc_of(r), "unknown key '%.40s'", key);
}

/* Bytes that the shape and type ask for; -1 when no int64_t holds them. */
static int64_t bytes_of(kn_dtype dtype, int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] == 0)
            return 0;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0 || n > INT64_MAX / dims[i])
            return -1;
        n *= dims[i];
    }
    return kn_dtype_bytes(dtype, n);
}

static const char *shape_text(kn_arena *arena, const kn_st_tensor *t)
{
    kn_str s = kn_str_make(arena);
    kn_putf(&s, "%s[", kn_dtype_name(t->dtype));
    for (int i = 0; i < t->rank; i++)
        kn_putf(&s, "%s%lld", i ? ", " : "", (long long)t->dims[i]);
    kn_put_char(&s, ']');
    return kn_str_get(&s);
}

static void check_bytes(const reader *r, const kn_st_tensor *t)
{
    int64_t bytes = bytes_of(t->dtype, t->rank, t->dims);
    if (bytes < 0)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "%s has too many elements",
                 shape_text(r->arena, t));
    if ((uint64_t)bytes != t->bytes)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "expected %lld bytes for %s, found %zu",
                 (long long)bytes, shape_text(r->arena, t), t->bytes);
}

static kn_st_tensor read_tensor(reader *r, const char *name)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    kn_st_tensor t = {.name = name};
    unsigned seen = 0;
    r->where = name;
    expect(r, '{');
    for (bool first = true; next_item(r, '}', first); first = false) {
        const char *key = read_string(r);
        expect(r, ':');
        unsigned bit = read_field(r, key, &t);
        if (seen & bit)
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "key '%s' stands twice", key);
        seen |= bit;
    }
    for (int i = 0; i < 3; i++)
        if (!(seen & 1u << i))
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "no '%s'", keys[i]);
    check_bytes(r, &t);
    r->where = NULL;
    return t;
}

static void read_meta(reader *r, kn_safetensors *st)
{
    KN_VEC(kn_st_meta) meta = {0};
    kn_map seen = kn_map_make(r->arena);
    r->where = "__metadata__";
    expect(r, '{');
    for (bool first = true; next_item(r, '}', first); first = false) {
        kn_st_meta m = {.key = read_string(r)};
        if (kn_map_has(&seen, m.key))
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "key '%.80s' stands twice", m.key);
        kn_map_set(&seen, m.key, NULL);
        expect(r, ':');
        m.value = read_string(r);
        kn_push(r->arena, &meta, m);
    }
    r->where = NULL;
    st->meta = meta.at;
    st->nmeta = meta.n;
}

static void read_header(reader *r, kn_safetensors *st)
{
    KN_VEC(kn_st_tensor) tensors = {0};
    kn_map seen = kn_map_make(r->arena);
    if (r->p >= r->end || *r->p != '{')
        raise_syntax(r, "'{'");
    expect(r, '{');
    for (bool first = true; next_item(r, '}', first); first = false) {
        const char *name = read_string(r);
        if (kn_map_has(&seen, name))
            kn_raise(r->ctx, KN_INVALID, loc_of(r), "'%.200s' stands twice", name);
        kn_map_set(&seen, name, NULL);
        expect(r, ':');
        if (strcmp(name, "__metadata__") == 0)
            read_meta(r, st);
        else
            kn_push(r->arena, &tensors, read_tensor(r, name));
    }
    skip_space(r);
    if (r->p < r->end)
        raise_syntax(r, "nothing but spaces");
    st->tensors = tensors.at;
    st->n = tensors.n;
}

/* ---- the file ---- */

static int by_place(const void *a, const void *b)
{
    const kn_st_tensor *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The tensors, in order, must fill the data without holes or overlaps. Makes offsets relative to
 * the file. */
static void check_layout(reader *r, kn_safetensors *st, size_t start)
{
    size_t at = 0, size = r->file->size - start;
    if (st->n)
        qsort(st->tensors, (size_t)st->n, sizeof *st->tensors, by_place);
    for (int i = 0; i < st->n; i++) {
        kn_st_tensor *t = &st->tensors[i];
        r->where = t->name;
        if (t->offset != at)
            kn_raise(r->ctx, KN_INVALID, loc_of(r),
                     "expected the data at offset %zu, found %zu (%s)", at, t->offset,
                     t->offset > at ? "a hole" : "an overlap");
        if (t->bytes > size - at)
            kn_raise(r->ctx, KN_INVALID, loc_of(r),
                     "expected data up to offset %zu, found %zu bytes of data in the file",
                     t->offset + t->bytes, size);
        at += t->bytes;
        t->offset += start;
    }
    r->where = NULL;
    if (at != size)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "expected %zu bytes of data, found %zu", at, size);
}

/* The length of the header, from the first 8 bytes. */
static size_t header_length(const reader *r)
{
    const kn_file *file = r->file;
    if (file->size < LENGTH_BYTES)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "expected 8 bytes of header length, found %zu",
                 file->size);
    uint64_t n = 0;
    for (int i = LENGTH_BYTES; i-- > 0;)
        n = n << 8 | file->data[i];
    if (n > MAX_HEADER)
        kn_raise(r->ctx, KN_INVALID, loc_of(r), "header length %llu, expected at most %d",
                 (unsigned long long)n, MAX_HEADER);
    if (n > file->size - LENGTH_BYTES)
        kn_raise(r->ctx, KN_INVALID, loc_of(r),
                 "header length %llu, found %zu bytes after it in the file", (unsigned long long)n,
                 file->size - LENGTH_BYTES);
    return (size_t)n;
}

static void index_names(kn_arena *arena, kn_safetensors *st)
{
    st->by_name = kn_map_make(arena);
    for (int i = 0; i < st->n; i++)
        kn_map_set(&st->by_name, st->tensors[i].name, &st->tensors[i]);
}

kn_safetensors *kn_safetensors_read(kn_arena *arena, const kn_file *file)
{
    reader r = {.ctx = kn_arena_ctx(arena), .arena = arena, .file = file};
    size_t n = header_length(&r);
    r.p = (const char *)file->data + LENGTH_BYTES;
    r.end = r.p + n;
    kn_safetensors *st = KN_NEW(arena, kn_safetensors);
    st->file = file;
    read_header(&r, st);
    check_layout(&r, st, LENGTH_BYTES + n);
    index_names(arena, st);
    return st;
}

const kn_st_tensor *kn_safetensors_find(const kn_safetensors *st, const char *name)
{
    return kn_map_get(&st->by_name, name);
}

const char *kn_safetensors_meta(const kn_safetensors *st, const char *key)
{
    for (int i = 0; i < st->nmeta; i++)
        if (strcmp(st->meta[i].key, key) == 0)
            return st->meta[i].value;
    return NULL;
}

/* ---- writing ---- */

typedef KN_VEC(kn_piece) pieces;

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    kn_loc loc;
    kn_str header;
    pieces data;
    size_t at; /* bytes of data so far */
    int npads;
} writer;

/* A JSON string. */
static void put_json(kn_str *s, const char *text)
{
    kn_put_char(s, '"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            kn_putf(s, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            kn_putf(s, "\\u%04x", (unsigned)*text);
        else
            kn_put_char(s, *text);
    }
    kn_put_char(s, '"');
}

static const char *format_name(const writer *w, kn_dtype dtype)
{
    for (int i = 0; i < NDTYPES; i++)
        if (dtypes[i].dtype == dtype)
            return dtypes[i].name;
    kn_raise(w->ctx, KN_UNSUPPORTED, w->loc, "safetensors has no element type %s",
             kn_dtype_name(dtype));
}

static void write_meta(writer *w, const kn_st_meta *meta, int nmeta)
{
    if (nmeta == 0)
        return;
    kn_put(&w->header, "\"__metadata__\":{");
    for (int i = 0; i < nmeta; i++) {
        if (i)
            kn_put_char(&w->header, ',');
        put_json(&w->header, meta[i].key);
        kn_put_char(&w->header, ':');
        put_json(&w->header, meta[i].value);
    }
    kn_put_char(&w->header, '}');
}

static void write_item(writer *w, const kn_st_item *item)
{
    w->loc.where = kn_intern(w->ctx, item->name);
    int64_t bytes = bytes_of(item->dtype, item->rank, item->dims);
    if (bytes < 0)
        kn_raise(w->ctx, KN_INVALID, w->loc, "too many elements");
    kn_str *s = &w->header;
    if (s->n > 1)
        kn_put_char(s, ',');
    put_json(s, item->name);
    kn_putf(s, ":{\"dtype\":\"%s\",\"shape\":[", format_name(w, item->dtype));
    for (int i = 0; i < item->rank; i++)
        kn_putf(s, "%s%lld", i ? "," : "", (long long)item->dims[i]);
    size_t end = w->at + (size_t)bytes;
    kn_putf(s, "],\"data_offsets\":[%zu,%zu]}", w->at, end);
    kn_push(w->arena, &w->data, ((kn_piece){item->data, (size_t)bytes}));
    w->at = end;
    w->loc.where = NULL;
}

/* Declares what is missing to a multiple of `align`. The data starts at a multiple of every
 * alignment. */
static void write_padding(writer *w, size_t align)
{
    int64_t missing = align > 1 ? (int64_t)((align - w->at % align) % align) : 0;
    if (missing == 0)
        return;
    const char *name = kn_format(w->arena, "__pad__.%d", w->npads++);
    write_item(w, &(kn_st_item){.name = name,
                                .dtype = KN_U8,
                                .rank = 1,
                                .dims = &missing,
                                .data = kn_alloc(w->arena, (size_t)missing)});
}

/* Closes the header, and puts its length before it. */
static kn_piece finish_header(writer *w, size_t align)
{
    kn_put_char(&w->header, '}');
    while ((LENGTH_BYTES + w->header.n) % align)
        kn_put_char(&w->header, ' ');
    if (w->header.n > MAX_HEADER)
        kn_raise(w->ctx, KN_INVALID, w->loc, "header length %zu, expected at most %d", w->header.n,
                 MAX_HEADER);
    unsigned char *bytes = kn_alloc(w->arena, LENGTH_BYTES + w->header.n);
    for (int i = 0; i < LENGTH_BYTES; i++)
        bytes[i] = (unsigned char)((uint64_t)w->header.n >> 8 * i);
    memcpy(bytes + LENGTH_BYTES, w->header.at, w->header.n);
    return (kn_piece){bytes, LENGTH_BYTES + w->header.n};
}

void kn_safetensors_write(kn_arena *arena, const char *path, const kn_st_meta *meta, int nmeta,
                          const kn_st_item *items, int n)
{
    kn_ctx *ctx = kn_arena_ctx(arena);
    writer w = {.ctx = ctx, .arena = arena, .header = kn_str_make(arena)};
    w.loc.file = kn_intern(ctx, path);
    size_t align = MIN_PADDING;
    kn_push(arena, &w.data, ((kn_piece){0}));
    kn_put_char(&w.header, '{');
    write_meta(&w, meta, nmeta);
    for (int i = 0; i < n; i++) {
        assert((items[i].align & (items[i].align - 1)) == 0 || items[i].align == 0);
        if (items[i].align > align)
            align = items[i].align;
        write_padding(&w, items[i].align);
        write_item(&w, &items[i]);
    }
    w.data.at[0] = finish_header(&w, align);
    kn_file_write_pieces(ctx, path, w.data.at, w.data.n);
}
