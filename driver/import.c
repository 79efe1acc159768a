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

static kn_graph *read_graph(kn_arena *a, const kn_file *file, const kn_import_options *options)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    if (kn_onnx_detect(file)) {
        return kn_onnx_import(a, file, options);
    }
    if (is_text(file)) {
        return kn_graph_parse(a, file->path, (const char *)file->data, file->size);
    }
    kn_raise(ctx, KN_INVALID, (kn_loc){.file = file->path}, "not a model: expected ONNX or graph text");
}

kn_model *kn_driver_import(kn_ctx *ctx, const char *path, const kn_import_options *options)
{
    kn_arena *a = kn_arena_create(ctx);
    kn_model *m = KN_NEW(a, kn_model);
    m->ctx = ctx;
    m->arena = a;
    m->references = 1;
    m->file = kn_file_map(ctx, path);
    m->graph = read_graph(a, m->file, options);
    return m;
}

void kn_driver_release(kn_model *m)
{
    if (m && --m->references == 0) {
        kn_ctx *ctx = m->ctx;
        if (m->file) {
            kn_file_close(ctx, m->file);
        }
        kn_release(ctx, m->arena);
    }
}
