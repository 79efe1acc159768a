/* From a file to a running program or an artefact: what kiln.h promises, in the terms of the layers below. */
#ifndef KN_DRIVER_DRIVER_H
#define KN_DRIVER_DRIVER_H

#include "frontend/frontend.h"
#include "kiln/kiln.h"
#include "passes/pass.h"
#include "runtime/program.h"

/* A model's storage, shared by the model and the programs compiled from it: constants point into it. Counted by hand, within one
   context. */
struct kn_model {
    kn_ctx *ctx;
    kn_arena *arena;
    kn_file *file; /* mapped, or NULL */
    kn_graph *graph;
    int references;
};

/* Imports by content: ONNX or graph text. Raises. */
kn_model *kn_driver_import(kn_ctx *ctx, const char *path, const kn_import_options *options);
void kn_driver_release(kn_model *model); /* one reference */

/* Runs the pipeline on the model's graph (which the passes rewrite) in the arena `a`. Raises. */
kn_unit kn_driver_lower(kn_arena *a, kn_model *model, const kn_compile_options *options);

/* Compiles in memory. Raises. */
kn_program *kn_driver_program(kn_model *model, const kn_compile_options *options);
/* What `via` stands for in this build, when it is the default. */
kn_via kn_driver_via(kn_via via);

/* Engines: each fills in p->engine, and p->resource where it holds something. */
void kn_engine_interpret(kn_program *p, kn_model *model);
void kn_engine_jit(kn_program *p, kn_model *model, const kn_unit *u, int level);
void kn_engine_c(kn_program *p, kn_model *model, const kn_unit *u);

/* Compiles to files. Raises; nothing is half-written. */
void kn_driver_emit(kn_model *model, const kn_compile_options *options, kn_emit emit, const char *path);

#endif
