/* Writing .kiln files: what runtime/kiln_file.h describes, from a lowered unit. */
#include "runtime/kiln_file.h"

#include "codegen/codegen.h"
#include "driver/driver.h"
#include "support/dtype.h"
#include "support/hash.h"

enum { PAGE = 4096, CODE_ALIGN = 64 };

typedef struct {
    kn_arena *arena;
    const kn_program *program;
    const kn_unit *unit;
    kn_piece code;
    KN_VEC(kn_st_meta) meta;
    KN_VEC(kn_st_item) items;
} kn_writing;

/* ---- text ---- */

/* The container takes UTF-8 alone; models have names in any bytes. */
static const char *valid(kn_arena *a, const char *s)
{
    kn_str out = kn_str_make(a);
    const char *end = s + strlen(s);
    while (s < end) {
        int n = kn_utf8_length(s, end);
        kn_put_n(&out, n ? s : "?", n ? (size_t)n : 1);
        s += n ? n : 1;
    }
    return kn_str_get(&out);
}

static void put(kn_writing *w, const char *key, const char *value)
{
    kn_push(w->arena, &w->meta, ((kn_st_meta){key, valid(w->arena, value)}));
}

static void put_number(kn_writing *w, const char *key, int n)
{
    put(w, key, kn_format(w->arena, "%d", n));
}

static void put_hash(kn_writing *w, const char *key, uint64_t hash)
{
    put(w, key, kn_format(w->arena, "%016llx", (unsigned long long)hash));
}

static const char *numbered(kn_writing *w, const char *stem, int i)
{
    return kn_format(w->arena, "%s.%d", stem, i);
}

static void put_io(kn_writing *w, const char *stem, int i, const kn_io *io)
{
    kn_str s = kn_str_make(w->arena);
    kn_io_print(&s, io);
    put(w, numbered(w, stem, i), kn_str_get(&s));
}

/* ---- the signature ---- */

static void put_sizes(kn_writing *w, const char *key, const char *stem, const kn_dim *dims, int n)
{
    put_number(w, key, n);
    for (int i = 0; i < n; i++) {
        put(w, numbered(w, stem, i),
            kn_format(w->arena, "%s in %lld:%lld", dims[i].name, (long long)dims[i].lo,
                      (long long)dims[i].hi));
    }
}

static void put_outputs(kn_writing *w)
{
    const kn_program *p = w->program;
    put_number(w, "outputs", p->noutputs);
    for (int i = 0; i < p->noutputs; i++) {
        kn_io io = p->outputs[i];
        put_io(w, "output", i, &io);
        if (io.alias) {
            put(w, numbered(w, "alias", i), io.alias);
        }
        if (p->bounds) {
            io.dims = p->bounds[i];
            put_io(w, "bound", i, &io);
        }
    }
}

static void put_signature(kn_writing *w)
{
    const kn_program *p = w->program;
    put_sizes(w, "sizes", "size", p->dims, p->ndims);
    put_sizes(w, "computed", "computed", p->computed, p->ncomputed);
    put_number(w, "inputs", p->ninputs);
    for (int i = 0; i < p->ninputs; i++) {
        put_io(w, "input", i, &p->inputs[i]);
    }
    put_outputs(w);
}

/* ---- weights ---- */

/* A tensor's name in the file: the model's, where that is free. */
static const char *tensor_name(kn_writing *w, kn_map *taken, const kn_value *v, int i)
{
    const char *name = valid(w->arena, v->name);
    if (!*name || strncmp(name, "__", 2) == 0) {
        name = kn_format(w->arena, "weight.%d", i);
    }
    while (kn_map_has(taken, name)) {
        name = kn_format(w->arena, "%s_", name);
    }
    kn_map_set(taken, name, w);
    return name;
}

static void add_weight(kn_writing *w, const kn_value *v, const char *name, int i)
{
    const char **texts = KN_ARRAY(w->arena, const char *, v->rank + 1);
    int64_t *dims = KN_ARRAY(w->arena, int64_t, v->rank + 1);
    for (int k = 0; k < v->rank; k++) {
        kn_index_const(v->shape[k], &dims[k]);
        texts[k] = kn_format(w->arena, "%lld", (long long)dims[k]);
    }
    put_io(w, "weight", i, &(kn_io){.name = name, .type = v->type, .rank = v->rank, .dims = texts});
    kn_st_item item = {.name = name,
                       .dtype = v->type,
                       .rank = v->rank,
                       .dims = dims,
                       .data = v->data,
                       .align = PAGE};
    if (kn_dtype_bits(v->type) < 8) {
        dims[0] = (int64_t)v->bytes;
        item.dtype = KN_U8;
        item.rank = 1;
    }
    kn_push(w->arena, &w->items, item);
}

static uint64_t add_weights(kn_writing *w)
{
    const kn_graph *g = w->unit->graph;
    kn_map taken = kn_map_make(w->arena);
    uint64_t hash = 0;
    put_number(w, "weights", g->nconsts);
    for (int i = 0; i < g->nconsts; i++) {
        const kn_value *v = g->consts[i];
        add_weight(w, v, tensor_name(w, &taken, v, i), i);
        hash = kn_hash64(v->data, v->bytes, hash);
    }
    return hash;
}

/* ---- the rest ---- */

static void add_code(kn_writing *w)
{
    int64_t *size = KN_NEW(w->arena, int64_t);
    *size = (int64_t)w->code.size;
    kn_st_item item = {.name = KN_KILN_CODE,
                       .dtype = KN_U8,
                       .rank = 1,
                       .dims = size,
                       .data = w->code.data,
                       .align = CODE_ALIGN};
    kn_push(w->arena, &w->items, item);
}

static const char *workspace_text(const kn_writing *w)
{
    const kn_module *m = w->unit->module;
    const kn_expr *bytes = kn_module_main(m)->workspace;
    kn_str s = kn_str_make(w->arena);
    if (bytes) {
        kn_expr_print(&s, bytes, false);
    }
    return bytes ? kn_str_get(&s) : "0";
}

static kn_piece native_code(kn_arena *a, const kn_unit *u, const char *entry, int level)
{
    const char *machine = kn_kiln_machine();
    bool x86 = strncmp(machine, "x86-64", 6) == 0;
    kn_llvm_options o = {.prefix = entry, .cpu = x86 ? machine : NULL, .level = level};
    return kn_llvm_emit_object(a, u->module, &o);
}

void kn_driver_write_kiln(kn_arena *a, const kn_program *p, const kn_unit *u, const char *ops,
                          int level, const char *path)
{
    static const char entry[] = "kiln";
    kn_writing w = {.arena = a, .program = p, .unit = u, .code = native_code(a, u, entry, level)};
    put(&w, "kiln.format", KN_KILN_FORMAT);
    put(&w, "kiln.version", KILN_VERSION);
    put(&w, "name", p->name);
    put(&w, "target", u->module->target ? u->module->target : "host");
    put(&w, "machine", kn_kiln_machine());
    put(&w, "entry", entry);
    put_signature(&w);
    uint64_t weights = add_weights(&w);
    add_code(&w);
    put(&w, "workspace", workspace_text(&w));
    put_number(&w, "kernels", u->module->nfuncs - 1);
    put(&w, "ops", ops);
    put_hash(&w, "hash.code", kn_hash64(w.code.data, w.code.size, 0));
    put_hash(&w, "hash.weights", weights);
    put_hash(&w, "hash.manifest", kn_kiln_hash_manifest(w.meta.at, w.meta.n));
    kn_safetensors_write(a, path, w.meta.at, w.meta.n, w.items.at, w.items.n);
}
