/* Engines over native code made now: by LLVM in memory, or by the machine's C compiler into a
 * shared library. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "codegen/codegen.h"
#include "driver/driver.h"

extern const unsigned char kn_npu_header[], kn_scalar_header[];
extern const size_t kn_npu_header_size, kn_scalar_header_size;

typedef struct {
    kn_model *model;
    kn_jit *jit;
    void *library; /* of dlopen */
} kn_native_code;

static void destroy(void *resource)
{
    kn_native_code *n = resource;
    if (n->jit) {
        kn_jit_close(n->model->ctx, n->jit);
    }
    if (n->library) {
        dlclose(n->library);
    }
    kn_driver_release(n->model);
}

static kn_native_code *attach(kn_program *p, kn_model *model)
{
    kn_native_code *n = KN_NEW(p->arena, kn_native_code);
    n->model = model;
    model->references++;
    p->resource = n;
    p->destroy = destroy;
    return n;
}

/* The addresses of the constants, in the order of main's parameters. What C reads through typed
   pointers must be aligned: a constant that is not, is copied. */
static const void *const *weights(kn_program *p, const kn_graph *g, bool aligned)
{
    const void **table = KN_ARRAY(p->arena, const void *, g->nconsts + 1);
    for (int i = 0; i < g->nconsts; i++) {
        const kn_value *v = g->consts[i];
        uintptr_t width = (uintptr_t)(kn_dtype_bits(v->type) + 7) / 8;
        table[i] = v->data;
        if (aligned && (uintptr_t)v->data % width != 0) {
            void *copy = kn_alloc(p->arena, v->bytes);
            memcpy(copy, v->data, v->bytes);
            table[i] = copy;
        }
    }
    return table;
}

void kn_engine_jit(kn_program *p, kn_model *model, const kn_unit *u, int level)
{
    kn_native_code *n = attach(p, model);
    n->jit = kn_jit_compile(model->ctx, u->module, level);
    p->engine = kn_engine_native(p, kn_jit_run(n->jit), kn_jit_workspace_bytes(n->jit),
                                 weights(p, model->graph, false));
}

/* ---- through C ---- */

static void write_file(kn_ctx *ctx, const char *dir, const char *name, const void *data,
                       size_t size)
{
    kn_file_write(ctx, kn_intern_f(ctx, "%s/%s", dir, name), data, size);
}

static void compile_c(kn_model *model, const kn_unit *u, const char *dir)
{
    kn_ctx *ctx = model->ctx;
    kn_str code = kn_str_make(u->arena), header = kn_str_make(u->arena);
    kn_c_module(u->arena, u->module, &(kn_c_options){.prefix = "model"}, &code, &header);
    write_file(ctx, dir, "model.c", kn_str_get(&code), code.n);
    write_file(ctx, dir, "model.h", kn_str_get(&header), header.n);
    mkdir(kn_intern_f(ctx, "%s/kiln", dir),
          0700); /* when it fails, so does the next line, with its reason */
    write_file(ctx, dir, "kiln/npu.h", kn_npu_header, kn_npu_header_size);
    write_file(ctx, dir, "scalar.h", kn_scalar_header, kn_scalar_header_size);
    const char *cc = getenv("CC");
    const char *argv[] = {cc && *cc ? cc : "cc",
                          "-std=c11",
                          "-O2",
                          "-fPIC",
                          "-shared",
                          "-ffp-contract=off",
                          "-fno-math-errno",
                          "-w",
                          "-DNPU_SCALAR_HEADER=\"scalar.h\"",
                          kn_intern_f(ctx, "-I%s", dir),
                          "-o",
                          kn_intern_f(ctx, "%s/model.so", dir),
                          kn_intern_f(ctx, "%s/model.c", dir),
                          "-lm",
                          NULL};
    kn_run_tool(ctx, argv, dir, "gcc");
}

static void *symbol(kn_ctx *ctx, void *library, const char *name)
{
    void *at = dlsym(library, name);
    if (!at) {
        kn_raise(ctx, KN_INTERNAL, kn_loc_none(), "the compiled code has no %s", name);
    }
    return at;
}

void kn_engine_c(kn_program *p, kn_model *model, const kn_unit *u)
{
    kn_ctx *ctx = model->ctx;
    kn_native_code *n = attach(p, model);
    const char *dir = kn_temp_dir(ctx);
    compile_c(model, u, dir);
    n->library = dlopen(kn_intern_f(ctx, "%s/model.so", dir), RTLD_NOW | RTLD_LOCAL);
    if (!n->library) {
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "cannot load the compiled code: %s",
                 dlerror());
    }
    kn_native_run run;
    kn_native_workspace workspace;
    *(void **)&run = symbol(ctx, n->library, "model_run");
    *(void **)&workspace = symbol(ctx, n->library, "model_workspace_bytes");
    p->engine = kn_engine_native(p, run, workspace, weights(p, model->graph, true));
    kn_release(ctx, dir);
}
