/* Models from files: the kind is read from the content. */
#include "driver/driver.h"

static bool is_text(const kn_file *f)
{
    size_t n = f->size < 256 ? f->size : 256;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = f->data[i];
        if (c < 32 && c != '\n' && c != '\r' && c != '\t') {
            return false;
        }
    }
    return n > 0;
}

/* ---- what the user fixes, on a graph that was read from text ---- */

static void narrow(kn_graph *g, const char *name, int64_t lo, int64_t hi)
{
    const char **has = KN_ARRAY(g->arena, const char *, g->nsizes + 1);
    int n = 0;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            continue;
        }
        has[n++] = g->sizes[i].name;
        if (strcmp(g->sizes[i].name, name) == 0) {
            kn_graph_size(g, name, lo, hi);
            return;
        }
    }
    kn_no_dimension(g->arena, name, has, n);
}

static void fix_shape(kn_graph *g, const kn_value *v, const struct kn_input_shape *shape)
{
    kn_ctx *ctx = kn_arena_ctx(g->arena);
    if (v->rank != shape->rank) {
        kn_raise(ctx, KN_USAGE, kn_loc_none(), "input %s has %d dimensions, the shape given %d",
                 v->name, v->rank, shape->rank);
    }
    for (int i = 0; i < v->rank; i++) {
        int64_t fixed = shape->dims[i];
        if (v->shape[i]->kind == KN_E_VAR) {
            narrow(g, v->shape[i]->name, fixed, fixed);
        } else if (!kn_index_const(v->shape[i], &fixed) || fixed != shape->dims[i]) {
            kn_raise(ctx, KN_USAGE, kn_loc_none(), "input %s: dimension %d cannot be %lld", v->name,
                     i, (long long)shape->dims[i]);
        }
    }
}

static void fix_sizes(kn_graph *g, const kn_import_options *o)
{
    for (int i = 0; o && i < o->ndims; i++) {
        narrow(g, o->dims[i].name, o->dims[i].lo, o->dims[i].hi);
    }
    for (int i = 0; o && i < o->nshapes; i++) {
        const kn_value *v = NULL;
        for (int k = 0; k < g->ninputs; k++) {
            v = strcmp(g->inputs[k]->name, o->shapes[i].input) == 0 ? g->inputs[k] : v;
        }
        if (!v) {
            kn_raise(kn_arena_ctx(g->arena), KN_USAGE, kn_loc_none(), "the model has no input `%s`",
                     o->shapes[i].input);
        }
        fix_shape(g, v, &o->shapes[i]);
    }
}

static kn_graph *read_graph(kn_arena *a, const kn_file *file, const kn_import_options *options)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    if (kn_onnx_detect(file)) {
        return kn_onnx_import(a, file, options);
    }
    if (is_text(file)) {
        kn_graph *g = kn_graph_parse(a, file->path, (const char *)file->data, file->size);
        fix_sizes(g, options);
        return g;
    }
    kn_raise(ctx, KN_INVALID, (kn_loc){.file = file->path},
             "not a model: expected ONNX or graph text");
}

/* ---- errors ---- */

static bool names_file(kn_ctx *ctx, int from)
{
    for (int i = from; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        if (d->file && d->severity != KN_WARNING) {
            return true;
        }
    }
    return false;
}

void kn_driver_for_file(kn_ctx *ctx, const char *path, void (*body)(void *env), void *env)
{
    int before = kn_diag_count(ctx);
    kn_status status = kn_protect(ctx, body, env);
    bool its_fault = status == KN_INVALID || status == KN_UNSUPPORTED;
    if (path && its_fault && !names_file(ctx, before)) {
        kn_note(ctx, (kn_loc){.file = path}, "in this file");
    }
    if (status != KN_OK) {
        kn_raise_again(ctx, status);
    }
}

/* ---- models ---- */

typedef struct {
    kn_model *model;
    const kn_import_options *options;
} kn_reading;

static void read_model(void *env)
{
    const kn_reading *r = env;
    r->model->graph = read_graph(r->model->arena, r->model->file, r->options);
}

kn_model *kn_driver_import(kn_ctx *ctx, const char *path, const kn_import_options *options)
{
    kn_arena *a = kn_arena_create(ctx);
    kn_model *m = KN_NEW(a, kn_model);
    m->ctx = ctx;
    m->arena = a;
    m->references = 1;
    m->file = kn_file_map(ctx, path);
    kn_driver_for_file(ctx, m->file->path, read_model, &(kn_reading){m, options});
    return m;
}

void kn_driver_release(kn_model *m)
{
    if (m && --m->references == 0) {
        if (m->file) {
            kn_file_close(m->ctx, m->file);
        }
        if (m->base) {
            kn_release(m->ctx, m); /* its reference to the base */
        }
        kn_release(m->ctx, m->arena);
    }
}
