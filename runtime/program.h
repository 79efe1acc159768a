/* What a kn_program holds, for those who make one: the loader of .kiln files, and the driver for
 * what it compiled in memory. */
#ifndef KN_RUNTIME_PROGRAM_H
#define KN_RUNTIME_PROGRAM_H

#include "kiln/npu.h"
#include "kiln/runtime.h"
#include "support/str.h"

/* A buffer of a run. */
typedef struct {
    void *data;
    size_t bytes;
} kn_span;

/* How a program runs: native code or an interpreter, behind the same calls. All may be called from
   several threads at once. `io` holds the inputs, then the outputs; `sizes` the values of the dims.
   `run` raises in ctx on failure. */
typedef struct {
    void *env;
    void (*run)(void *env, kn_ctx *ctx, const kn_span *io, const int64_t *sizes, void *workspace);
    int64_t (*workspace_bytes)(void *env, const int64_t *sizes);
} kn_engine;

struct kn_program {
    kn_ctx *ctx;
    kn_arena *arena; /* all of it, the engine's too; what else the engine needs is deferred in ctx
                        by resource */
    const char *name;
    int ninputs, noutputs, ndims;
    kn_io *inputs, *outputs;
    kn_dim *dims; /* given by the caller's shapes */
    /* Dimensions of outputs that a run computes: the last output, when there are any, is
       i64[ncomputed] with their values, and is not shown to the user. */
    int ncomputed;
    kn_dim *computed;
    const char *const **bounds; /* per output: its dims with computed sizes at their most; NULL when
                                   there are none */
    kn_engine engine;
    void (*destroy)(void *resource); /* ends what the engine holds, or NULL */
    void *resource;
};

/* An engine over native code that follows kiln/npu.h. */
typedef npu_status (*kn_native_run)(npu_context *npu, void *const *io, const void *const *weights,
                                    const int64_t *sizes, void *workspace);
typedef int64_t (*kn_native_workspace)(const int64_t *sizes);
kn_engine kn_engine_native(kn_program *p, kn_native_run run, kn_native_workspace workspace,
                           const void *const *weights);

/* "seq + 1, 64" of an io as text "f32[seq + 1; 64] name" and back: how .kiln files and messages
 * write signatures. */
void kn_io_print(kn_str *out, const kn_io *io);

#endif
