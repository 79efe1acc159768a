/* A .kiln file as a program: weights stay in the map, code is copied out of it, relocated and run
 * natively. */
#include "runtime/kiln_file.h"
#include "runtime/object.h"
#include "runtime/program.h"

typedef struct {
    kn_ctx *ctx;
    kn_file *file;
    kn_object *object;
} kn_loaded;

typedef struct {
    kn_ctx *ctx;
    const char *path;
    kn_program *program;
} kn_loading;

static void unload(void *resource)
{
    kn_loaded *l = resource;
    kn_object_close(l->ctx, l->object);
    kn_file_close(l->ctx, l->file);
}

static void require_machine(kn_ctx *ctx, const kn_kiln *k)
{
    if (!kn_kiln_runs_here(k->machine)) {
        kn_raise(ctx, KN_UNSUPPORTED, (kn_loc){.file = k->file->path},
                 "compiled for a machine of kind `%.40s`, which this one is not", k->machine);
    }
}

static kn_native_fn entry(kn_ctx *ctx, const kn_kiln *k, const kn_object *object, const char *name)
{
    kn_native_fn at = kn_object_find(object, kn_intern_f(ctx, "%s_%s", k->entry, name));
    if (!at) {
        kn_raise(ctx, KN_INVALID, (kn_loc){.file = k->file->path},
                 "its code has no function `%.40s_%s`", k->entry, name);
    }
    return at;
}

static kn_program *describe(kn_arena *a, const kn_kiln *k)
{
    kn_program *p = KN_NEW(a, kn_program);
    *p = (kn_program){.ctx = kn_arena_ctx(a),
                      .arena = a,
                      .name = k->name,
                      .ninputs = k->ninputs,
                      .noutputs = k->noutputs,
                      .ndims = k->ndims,
                      .inputs = k->inputs,
                      .outputs = k->outputs,
                      .dims = k->dims,
                      .ncomputed = k->ncomputed,
                      .computed = k->computed,
                      .bounds = k->bounds};
    return p;
}

static void load(void *env)
{
    kn_loading *l = env;
    kn_ctx *ctx = l->ctx;
    kn_arena *a = kn_arena_create(ctx);
    kn_loaded *resource = KN_NEW(a, kn_loaded);
    resource->ctx = ctx;
    resource->file = kn_file_map(ctx, l->path);
    const kn_kiln *k = kn_kiln_read(a, resource->file);
    kn_kiln_check(a, k);
    require_machine(ctx, k);
    kn_loc loc = {.file = k->file->path};
    resource->object = kn_object_load(ctx, loc, k->code.data, k->code.size, NULL, 0);
    kn_native_run run = (kn_native_run)entry(ctx, k, resource->object, "run");
    kn_native_workspace workspace =
        (kn_native_workspace)entry(ctx, k, resource->object, "workspace_bytes");
    kn_program *p = describe(a, k);
    p->engine = kn_engine_native(p, run, workspace, k->data);
    p->resource = resource;
    p->destroy = unload;
    l->program = p;
}

kn_status kn_program_load(kn_ctx *ctx, const char *path, kn_program **out)
{
    if (!kn_given(ctx, out, "out")) {
        return KN_USAGE;
    }
    *out = NULL;
    if (!kn_given(ctx, path, "path")) {
        return KN_USAGE;
    }
    kn_loading l = {ctx, path, NULL};
    kn_status status = kn_protect(ctx, load, &l);
    *out = status == KN_OK ? l.program : NULL;
    return status;
}
