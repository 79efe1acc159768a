/* Reading .kiln files (kiln_file.h). They come from strangers: every entry is checked before
   anything uses it, an entry that is not known is refused, and every tensor must have its use. */
#include "runtime/kiln_file.h"

#include <ctype.h>
#include <stdlib.h>

#include "runtime/shape.h"
#include "support/dtype.h"
#include "support/hash.h"

enum { WEIGHT_ALIGN = 64, MAX_SIZES = 1000, MAX_IO = 10000, HASH_DIGITS = 16 };

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    kn_kiln *k;
    kn_map entries;        /* key -> kn_st_meta */
    kn_map used;           /* keys that were read, and tensors by name */
    kn_dim *sizes;         /* dims, then computed */
    int64_t *least, *most; /* a value for each: its bounds */
} reader;

bool kn_kiln_detect(const kn_file *file)
{
    static const char key[] = "\"kiln.format\"";
    enum { LENGTH = sizeof key - 1 };
    if (file->size < 9 || file->data[8] != '{') {
        return false;
    }
    uint64_t n = 0;
    for (int i = 8; i-- > 0;) {
        n = n << 8 | file->data[i];
    }
    size_t end = n < file->size - 8 ? (size_t)n + 8 : file->size;
    for (size_t i = 8; i + LENGTH <= end; i++) {
        if (file->data[i] == '"' && memcmp(file->data + i, key, LENGTH) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- entries ---- */

_Noreturn static void fail(const reader *r, const char *key, const char *expected)
{
    kn_loc loc = {.file = r->k->file->path, .where = kn_intern(r->ctx, key)};
    const kn_st_meta *m = kn_map_get(&r->entries, key);
    if (!m) {
        kn_raise(r->ctx, KN_INVALID, loc, "expected %s, found no such entry", expected);
    }
    kn_raise(r->ctx, KN_INVALID, loc, "expected %s, found `%.80s`", expected, m->value);
}

/* The value of an entry, or NULL. */
static const char *find(reader *r, const char *key)
{
    const kn_st_meta *m = kn_map_get(&r->entries, key);
    if (m) {
        kn_map_set(&r->used, m->key, r);
    }
    return m ? m->value : NULL;
}

static const char *text(reader *r, const char *key)
{
    const char *value = find(r, key);
    if (!value) {
        fail(r, key, "a text");
    }
    return value;
}

/* A decimal number at *at, which moves behind it; false when there is none that fits. */
static bool take_number(const char **at, int64_t *out)
{
    const char *start = *at;
    int64_t value = 0;
    for (; isdigit((unsigned char)**at); ++*at) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, **at - '0', &value)) {
            return false;
        }
    }
    *out = value;
    return *at > start;
}

/* The same with an optional -. */
static bool take_signed(const char **at, int64_t *out)
{
    bool minus = **at == '-';
    *at += minus;
    bool found = take_number(at, out);
    *out = minus ? -*out : *out;
    return found;
}

static int number(reader *r, const char *key, int most)
{
    const char *at = text(r, key);
    int64_t value;
    if (!take_number(&at, &value) || *at || value > most) {
        fail(r, key, kn_format(r->arena, "a number up to %d", most));
    }
    return (int)value;
}

/* How many entries of a kind there are. */
static int count(reader *r, const char *key, int most)
{
    int entries = r->k->container->nmeta;
    return number(r, key, entries < most ? entries : most);
}

static uint64_t hash(reader *r, const char *key)
{
    const char *at = text(r, key);
    uint64_t value = 0;
    int n = 0;
    for (; n < HASH_DIGITS && (isdigit((unsigned char)at[n]) || (at[n] >= 'a' && at[n] <= 'f'));
         n++) {
        value = value << 4 | (uint64_t)(at[n] <= '9' ? at[n] - '0' : at[n] - 'a' + 10);
    }
    if (n < HASH_DIGITS || at[n]) {
        fail(r, key, "16 hexadecimal digits");
    }
    return value;
}

static const char *numbered(const reader *r, const char *stem, int i)
{
    return kn_format(r->arena, "%s.%d", stem, i);
}

/* ---- sizes ---- */

static bool is_name(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '.') {
            return false;
        }
    }
    return n > 0 && !isdigit((unsigned char)s[0]);
}

/* NAME in LO:HI */
static kn_dim read_size(reader *r, const char *key)
{
    const char *value = text(r, key), *at = strstr(value, " in ");
    kn_dim d = {.name = ""};
    bool good = at && is_name(value, (size_t)(at - value));
    if (good) {
        d.name = kn_format(r->arena, "%.*s", (int)(at - value), value);
        at += 4;
        good = take_signed(&at, &d.lo) && *at++ == ':' && take_signed(&at, &d.hi) && !*at &&
               d.lo <= d.hi;
    }
    if (!good) {
        fail(r, key, "NAME in LO:HI");
    }
    return d;
}

static void read_sizes(reader *r)
{
    kn_kiln *k = r->k;
    k->ndims = count(r, "sizes", MAX_SIZES);
    k->ncomputed = count(r, "computed", MAX_SIZES);
    int n = k->ndims + k->ncomputed;
    r->sizes = KN_ARRAY(r->arena, kn_dim, n + 1);
    r->least = KN_ARRAY(r->arena, int64_t, n + 1);
    r->most = KN_ARRAY(r->arena, int64_t, n + 1);
    for (int i = 0; i < n; i++) {
        const char *key =
            i < k->ndims ? numbered(r, "size", i) : numbered(r, "computed", i - k->ndims);
        kn_dim d = read_size(r, key);
        if (kn_shape_name(d.name, r->sizes, i) >= 0) {
            fail(r, key, "another name");
        }
        r->sizes[i] = d;
        r->least[i] = d.lo;
        r->most[i] = d.hi;
    }
    k->dims = r->sizes;
    k->computed = r->sizes + k->ndims;
}

/* Whether the text is an expression of the first n sizes that has a value at one end of their
 * bounds. */
static bool is_expression(const reader *r, const char *s, int n)
{
    int64_t value;
    return kn_shape_eval(s, r->sizes, r->least, n, &value) ||
           kn_shape_eval(s, r->sizes, r->most, n, &value);
}

/* ---- tensors of the signature ---- */

/* The dims of `at`, which stands behind the [: up to the ]. False when they are none. */
static bool take_dims(const reader *r, const char **at, kn_io *io, int nsizes)
{
    const char **dims = KN_ARRAY(r->arena, const char *, KN_MAX_RANK);
    io->dims = dims;
    while (**at != ']') {
        size_t n = strcspn(*at, ";]");
        if (io->rank == KN_MAX_RANK || !(*at)[n]) {
            return false;
        }
        dims[io->rank] = kn_format(r->arena, "%.*s", (int)n, *at);
        if (!is_expression(r, dims[io->rank++], nsizes)) {
            return false;
        }
        *at += n;
        if (**at == ';' && *++*at != ' ') {
            return false;
        }
        *at += **at == ' ';
    }
    ++*at;
    return true;
}

/* f32[seq + 1; 64] NAME, over the first `nsizes` sizes. */
static kn_io read_io(reader *r, const char *key, int nsizes)
{
    const char *at = text(r, key);
    size_t n = strcspn(at, "[");
    kn_io io = {.name = ""};
    bool good = at[n] == '[' && kn_dtype_parse(at, n, &io.type) && io.type != KN_INDEX;
    at += good ? n + 1 : 0;
    if (!good || !take_dims(r, &at, &io, nsizes) || *at++ != ' ' || !*at) {
        fail(r, key, "TYPE[DIM; ...] NAME");
    }
    io.name = at;
    return io;
}

static kn_io *read_list(reader *r, const char *count_key, const char *stem, int nsizes, int *n)
{
    *n = count(r, count_key, strcmp(stem, "weight") == 0 ? INT32_MAX : MAX_IO);
    kn_io *list = KN_ARRAY(r->arena, kn_io, *n + 1);
    kn_map seen = kn_map_make(r->arena);
    for (int i = 0; i < *n; i++) {
        const char *key = numbered(r, stem, i);
        list[i] = read_io(r, key, nsizes);
        if (kn_map_has(&seen, list[i].name)) {
            fail(r, key, "another name");
        }
        kn_map_set(&seen, list[i].name, r);
    }
    return list;
}

static bool same_dims(const kn_io *x, const kn_io *y)
{
    for (int i = 0; i < x->rank && x->rank == y->rank; i++) {
        if (strcmp(x->dims[i], y->dims[i]) != 0) {
            return false;
        }
    }
    return x->type == y->type && x->rank == y->rank;
}

static void read_alias(reader *r, int i)
{
    kn_kiln *k = r->k;
    const char *key = numbered(r, "alias", i);
    k->outputs[i].alias = find(r, key);
    bool found = !k->outputs[i].alias;
    for (int j = 0; j < k->ninputs && !found; j++) {
        found = strcmp(k->inputs[j].name, k->outputs[i].alias) == 0 &&
                same_dims(&k->inputs[j], &k->outputs[i]);
    }
    if (!found) {
        fail(r, key, "an input of the output's type and shape");
    }
    for (int j = 0; j < i && k->outputs[i].alias; j++) {
        if (k->outputs[j].alias && strcmp(k->outputs[j].alias, k->outputs[i].alias) == 0) {
            fail(r, key, "an input that no other output updates");
        }
    }
}

static void read_signature(reader *r)
{
    kn_kiln *k = r->k;
    k->inputs = read_list(r, "inputs", "input", k->ndims, &k->ninputs);
    k->outputs = read_list(r, "outputs", "output", k->ndims + k->ncomputed, &k->noutputs);
    const char *const **bounds = KN_ARRAY(r->arena, const char *const *, k->noutputs + 1);
    for (int i = 0; i < k->noutputs; i++) {
        read_alias(r, i);
        if (k->ncomputed) {
            const char *key = numbered(r, "bound", i);
            kn_io io = read_io(r, key, k->ndims);
            if (io.type != k->outputs[i].type || io.rank != k->outputs[i].rank) {
                fail(r, key, "the output's type and rank");
            }
            bounds[i] = io.dims;
        }
    }
    k->bounds = k->ncomputed ? bounds : NULL;
}

/* ---- weights and code ---- */

static const kn_st_tensor *use_tensor(reader *r, const char *key, const char *name)
{
    const kn_st_tensor *t = kn_safetensors_find(r->k->container, name);
    if (!t || kn_map_has(&r->used, t->name)) {
        fail(r, key, t ? "a tensor that has no other use" : "a tensor of the file");
    }
    kn_map_set(&r->used, t->name, r);
    return t;
}

/* Whether the tensor holds what the entry says; types that the container lacks are bytes. */
static bool fits(const kn_io *io, const kn_st_tensor *t)
{
    int64_t n = 1;
    bool same = io->type == t->dtype && io->rank == t->rank;
    for (int i = 0; i < io->rank; i++) {
        const char *at = io->dims[i];
        int64_t dim;
        if (!take_number(&at, &dim) || *at || __builtin_mul_overflow(n, dim, &n)) {
            return false;
        }
        same = same && dim == t->dims[i];
    }
    int64_t bytes = kn_dtype_bytes(io->type, n);
    bool as_bytes = kn_dtype_bits(io->type) < 8 && t->dtype == KN_U8 && t->rank == 1;
    return (same || as_bytes) && bytes >= 0 && (size_t)bytes == t->bytes;
}

static void read_weights(reader *r)
{
    kn_kiln *k = r->k;
    k->weights = read_list(r, "weights", "weight", 0, &k->nweights);
    k->data = KN_ARRAY(r->arena, const void *, k->nweights + 1);
    for (int i = 0; i < k->nweights; i++) {
        const char *key = numbered(r, "weight", i);
        const kn_st_tensor *t = use_tensor(r, key, k->weights[i].name);
        if (!fits(&k->weights[i], t)) {
            fail(r, key, "the type and shape of its tensor");
        }
        if (t->offset % WEIGHT_ALIGN) {
            fail(r, key, "a tensor at a multiple of 64 bytes");
        }
        k->data[i] = k->file->data + t->offset;
    }
}

static void read_code(reader *r)
{
    kn_kiln *k = r->k;
    k->entry = text(r, "entry");
    const kn_st_tensor *t = use_tensor(r, "entry", KN_KILN_CODE);
    if (t->dtype != KN_U8 || t->rank != 1) {
        kn_raise(r->ctx, KN_INVALID,
                 (kn_loc){.file = k->file->path, .where = kn_intern(r->ctx, t->name)},
                 "expected bytes, found %s of rank %d", kn_dtype_name(t->dtype), t->rank);
    }
    k->code = (kn_piece){k->file->data + t->offset, t->bytes};
}

static bool is_padding(const kn_st_tensor *t)
{
    return strncmp(t->name, KN_KILN_PADDING, sizeof KN_KILN_PADDING - 1) == 0;
}

static void check_all_used(const reader *r)
{
    const kn_safetensors *st = r->k->container;
    for (int i = 0; i < st->nmeta; i++) {
        if (!kn_map_has(&r->used, st->meta[i].key)) {
            fail(r, st->meta[i].key, "none");
        }
    }
    for (int i = 0, paddings = 0; i < st->n; i++) {
        const char *name = st->tensors[i].name;
        if (strcmp(name, kn_format(r->arena, KN_KILN_PADDING "%d", paddings)) == 0) {
            paddings++;
        } else if (!kn_map_has(&r->used, name)) {
            kn_raise(r->ctx, KN_INVALID,
                     (kn_loc){.file = r->k->file->path, .where = kn_intern(r->ctx, name)},
                     "a tensor that the manifest does not mention");
        }
    }
}

/* ---- the whole ---- */

static void read_texts(reader *r)
{
    kn_kiln *k = r->k;
    k->version = text(r, "kiln.version");
    k->name = text(r, "name");
    k->target = text(r, "target");
    k->machine = text(r, "machine");
    k->ops = text(r, "ops");
    k->kernels = number(r, "kernels", INT32_MAX);
    k->workspace = text(r, "workspace");
    if (!is_expression(r, k->workspace, k->ndims)) {
        fail(r, "workspace", "an expression of sizes");
    }
    k->code_hash = hash(r, "hash.code");
    k->weights_hash = hash(r, "hash.weights");
    k->manifest_hash = hash(r, "hash.manifest");
}

static void check_format(reader *r)
{
    const char *format = text(r, "kiln.format");
    if (strcmp(format, KN_KILN_FORMAT) != 0) {
        kn_raise(r->ctx, KN_UNSUPPORTED, (kn_loc){.file = r->k->file->path},
                 "a .kiln file of format %.20s, this is for format " KN_KILN_FORMAT, format);
    }
}

kn_kiln *kn_kiln_read(kn_arena *a, const kn_file *file)
{
    reader r = {.ctx = kn_arena_ctx(a), .arena = a, .k = KN_NEW(a, kn_kiln)};
    if (!kn_kiln_detect(file)) {
        kn_raise(r.ctx, KN_INVALID, (kn_loc){.file = file->path}, "not a .kiln file");
    }
    r.k->file = file;
    r.k->container = kn_safetensors_read(a, file);
    r.entries = kn_map_make(a);
    r.used = kn_map_make(a);
    for (int i = 0; i < r.k->container->nmeta; i++) {
        kn_map_set(&r.entries, r.k->container->meta[i].key, &r.k->container->meta[i]);
    }
    check_format(&r);
    read_sizes(&r);
    read_signature(&r);
    read_texts(&r);
    read_weights(&r);
    read_code(&r);
    check_all_used(&r);
    return r.k;
}

/* ---- hashes ---- */

uint64_t kn_kiln_hash_manifest(const kn_st_meta *meta, int n)
{
    uint64_t h = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(meta[i].key, "hash.manifest") != 0) {
            h = kn_hash64(meta[i].key, strlen(meta[i].key) + 1, h);
            h = kn_hash64(meta[i].value, strlen(meta[i].value) + 1, h);
        }
    }
    return h;
}

static uint64_t hash_weights(const kn_kiln *k)
{
    uint64_t h = 0;
    for (int i = 0; i < k->nweights; i++) {
        const kn_st_tensor *t = kn_safetensors_find(k->container, k->weights[i].name);
        h = kn_hash64(k->data[i], t->bytes, h);
    }
    return h;
}

static bool is_zero(const unsigned char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

void kn_kiln_check(kn_arena *a, const kn_kiln *k)
{
    kn_loc loc = {.file = k->file->path};
    const char *damaged = NULL;
    for (int i = 0; i < k->container->n; i++) {
        const kn_st_tensor *t = &k->container->tensors[i];
        damaged =
            is_padding(t) && !is_zero(k->file->data + t->offset, t->bytes) ? "padding" : damaged;
    }
    damaged = hash_weights(k) != k->weights_hash ? "weights" : damaged;
    damaged = kn_hash64(k->code.data, k->code.size, 0) != k->code_hash ? "code" : damaged;
    damaged = kn_kiln_hash_manifest(k->container->meta, k->container->nmeta) != k->manifest_hash
                  ? "manifest"
                  : damaged;
    if (damaged) {
        kn_raise(kn_arena_ctx(a), KN_INVALID, loc, "damaged: its %s differ%s from what was written",
                 damaged, damaged[strlen(damaged) - 1] == 's' ? "" : "s");
    }
}
