/* Programs: what they tell of themselves, and the engine over native code. */
#include "runtime/program.h"

#include "support/dtype.h"

typedef struct {
    const kn_program *program;
    kn_native_run run;
    kn_native_workspace workspace;
    const void *const *weights;
} kn_native;

static void run_native(void *env, kn_ctx *ctx, const kn_span *io, const int64_t *sizes,
                       void *workspace)
{
    const kn_native *n = env;
    const kn_program *p = n->program;
    int count = p->ninputs + p->noutputs + (p->ncomputed > 0);
    kn_arena *scratch = kn_arena_create(ctx);
    void **pointers = KN_ARRAY(scratch, void *, count + 1);
    for (int i = 0; i < count; i++) {
        pointers[i] = io[i].data;
    }
    npu_context npu = {0};
    npu_status status = n->run(&npu, pointers, n->weights, sizes, workspace);
    kn_release(ctx, scratch);
    if (status != NPU_OK) {
        kn_raise(ctx, KN_INVALID, kn_loc_none(), "%s: %s", p->name,
                 npu.message ? npu.message : "the run failed");
    }
}

static int64_t native_workspace(void *env, const int64_t *sizes)
{
    const kn_native *n = env;
    return n->workspace(sizes);
}

kn_engine kn_engine_native(kn_program *p, kn_native_run run, kn_native_workspace workspace,
                           const void *const *weights)
{
    kn_native *n = KN_NEW(p->arena, kn_native);
    *n = (kn_native){p, run, workspace, weights};
    return (kn_engine){n, run_native, native_workspace};
}

void kn_program_destroy(kn_program *p)
{
    if (!p) {
        return;
    }
    if (p->destroy) {
        p->destroy(p->resource);
    }
    kn_release(p->ctx, p->arena);
}

const char *kn_program_name(const kn_program *p)
{
    return p ? p->name : NULL;
}

int kn_program_input_count(const kn_program *p)
{
    return p ? p->ninputs : 0;
}

int kn_program_output_count(const kn_program *p)
{
    return p ? p->noutputs : 0;
}

int kn_program_dim_count(const kn_program *p)
{
    return p ? p->ndims : 0;
}

const kn_io *kn_program_input(const kn_program *p, int i)
{
    return p && i >= 0 && i < p->ninputs ? &p->inputs[i] : NULL;
}

const kn_io *kn_program_output(const kn_program *p, int i)
{
    return p && i >= 0 && i < p->noutputs ? &p->outputs[i] : NULL;
}

const kn_dim *kn_program_dim(const kn_program *p, int i)
{
    return p && i >= 0 && i < p->ndims ? &p->dims[i] : NULL;
}

void kn_io_print(kn_str *out, const kn_io *io)
{
    kn_putf(out, "%s[", kn_dtype_name(io->type));
    for (int i = 0; i < io->rank; i++) {
        kn_putf(out, "%s%s", i ? "; " : "", io->dims[i]);
    }
    kn_putf(out, "] %s", io->name);
}
