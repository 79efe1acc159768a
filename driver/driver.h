/* From a file to a running program or an artefact: what kiln.h promises, in the terms of the layers
 * below. */
#ifndef KN_DRIVER_DRIVER_H
#define KN_DRIVER_DRIVER_H

#include "frontend/frontend.h"
#include "ir/target.h"
#include "kiln/kiln.h"
#include "passes/pass.h"
#include "runtime/program.h"

/* A model's storage, shared by the model and the programs compiled from it: constants point into
   it. Counted by hand, within one context. */
struct kn_model {
    kn_ctx *ctx;
    kn_arena *arena;
    kn_file *file; /* mapped, or NULL */
    kn_graph *graph;
    kn_model *base; /* of a copy: the model whose storage it shares, a reference that is deferred */
    int references;
};

/* Runs the body; of what it raises for the file's sake at least a note names the file, which may be
   NULL. */
void kn_driver_for_file(kn_ctx *ctx, const char *path, void (*body)(void *env), void *env);
/* Imports by content: ONNX or graph text. Raises. */
kn_model *kn_driver_import(kn_ctx *ctx, const char *path, const kn_import_options *options);
void kn_driver_release(kn_model *model); /* one reference */
/* The same graph for passes to rewrite while the model stays as it is; it keeps the model's
 * storage. Raises. */
kn_model *kn_driver_copy(kn_model *model);

/* Runs the pipeline on the model's graph (which the passes rewrite) in the arena `a`, for a target
   as kn_driver_target() gives it. Raises. */
kn_unit kn_driver_lower(kn_arena *a, kn_model *model, const kn_target *target,
                        const kn_compile_options *options);

/* Raises KN_USAGE, with the list, for what is no pass. `what` names the option. */
void kn_driver_check_pass(kn_ctx *ctx, const char *what, const char *name);
/* Raises KN_USAGE for options that are out of their bounds, whatever they are for. May be NULL. */
void kn_driver_check_options(kn_ctx *ctx, const kn_compile_options *options);

/* Compiles in memory. Raises. */
kn_program *kn_driver_program(kn_model *model, const kn_compile_options *options);
/* What a program of the model tells of itself; it has no engine yet. Raises. */
kn_program *kn_driver_describe(kn_model *model);
/* What `via` stands for in this build, when it is the default. */
kn_via kn_driver_via(kn_via via);

/* Engines: each fills in p->engine, and p->resource where it holds something. */
void kn_engine_interpret(kn_program *p, kn_model *model);
void kn_engine_jit(kn_program *p, kn_model *model, const kn_unit *u, int level);
void kn_engine_c(kn_program *p, kn_model *model, const kn_unit *u);
/* Of a unit for a target other than the host, lowered in the program's arena. */
void kn_engine_sim(kn_program *p, kn_model *model, const kn_unit *u);

/* ---- files ---- */

typedef struct {
    kn_emit emit;
    const char *path;
} kn_artefact;

typedef struct {
    int kernels;
    int64_t weight_bytes;
    int nfiles;
    const char **files; /* all that was written, side files first */
} kn_emitted;

/* Compiles to files, all of the list at once: what belongs to PATH.c, .ll, .o, .a or .so, the
   header and the weights, lies beside it as PATH.h and PATH_weights.bin. Raises; then nothing is
   written. A path that is a device or a pipe is written alone. */
kn_emitted kn_driver_emit(kn_arena *a, kn_model *model, const kn_compile_options *options,
                          const kn_artefact *list, int n);

/* Writes a lowered unit as a .kiln file (runtime/kiln_file.h). Raises. */
void kn_driver_write_kiln(kn_arena *a, const kn_program *p, const kn_unit *u, const char *ops,
                          int level, const char *path);

/* ---- what is in a model ---- */

typedef struct {
    const char *name;
    int count;
} kn_op_tally;

/* The operators of a graph, by name. */
kn_op_tally *kn_driver_count_ops(kn_arena *a, const kn_graph *g, int *n);

/* The presets of targets/, carried in the library. */
typedef struct {
    const char *name; /* the file's, without .json */
    const unsigned char *text;
    const size_t *size;
} kn_preset;
const kn_preset *kn_preset_find(const char *name); /* NULL when there is none */
int kn_preset_count(void);
const kn_preset *kn_preset_get(int i);
/* A preset by name, or a file (its path has a `/` or ends in .json). Raises KN_INVALID. */
const kn_target *kn_target_find(kn_arena *a, const char *name);
/* The options' target; NULL for the host, whose code is native. */
const kn_target *kn_driver_target(kn_arena *a, const kn_compile_options *options);

#endif
