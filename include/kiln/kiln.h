/* Kiln, the compiler, as a library: build or import a model, compile it in memory or to files, run
   it.

   All objects belong to the context that they were made with, and to its thread; a compiled
   kn_program may be shared (see kiln/runtime.h). Strings given are copied. Every function returns a
   status and leaves its messages in the context; none prints or exits. */
#ifndef KILN_H
#define KILN_H

#include "kiln/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kn_model kn_model;           /* a graph that can still be added to */
typedef struct kn_tensor_ref *kn_tensor_id; /* a value of a model, owned by it */

/* ---- models ---- */

/* Imports a file: ONNX, graph text (.kir); the kind is read from the content. KN_UNSUPPORTED: all
   unsupported ops are listed in the diagnostics. */
kn_status kn_model_import(kn_ctx *ctx, const char *path, kn_model **out);
/* Graph text, docs/graph-ir.md; `name` stands in messages. */
kn_status kn_model_parse(kn_ctx *ctx, const char *name, const char *text, size_t n, kn_model **out);
kn_status kn_model_create(kn_ctx *ctx, const char *name, kn_model **out);
void kn_model_destroy(kn_model *model);

/* Adds an input; dims are texts as in kn_io: a new name makes a symbolic dimension. */
kn_status kn_model_add_input(kn_model *model, const char *name, kn_dtype type, int rank,
                             const char *const *dims, kn_tensor_id *out);
/* Adds a constant; data is not copied and must outlive the model and the programs compiled from it.
 */
kn_status kn_model_add_constant(kn_model *model, const char *name, kn_dtype type, int rank,
                                const int64_t *dims, const void *data, kn_tensor_id *out);
/* Adds an operator of ir/ops.def by name. `attributes` is text as in graph text, "{axis = 1}", or
 * NULL. */
kn_status kn_model_add_op(kn_model *model, const char *op, const kn_tensor_id *inputs, int ninputs,
                          const char *attributes, kn_tensor_id *outputs, int noutputs);
/* Adds an operator that the compiler does not know, as index notation (docs/index-notation.md). */
kn_status kn_model_add_notation(kn_model *model, const char *notation, const kn_tensor_id *inputs,
                                int ninputs, const char *attributes, kn_tensor_id *outputs,
                                int noutputs);
/* Marks a value as an output of the model under a name. */
kn_status kn_model_add_output(kn_model *model, const char *name, kn_tensor_id value);
/* Bounds of a symbolic dimension; lo == hi fixes it. */
kn_status kn_model_set_dim(kn_model *model, const char *name, int64_t lo, int64_t hi);
/* The graph as text, to be freed with free(). */
kn_status kn_model_print(kn_model *model, char **text);

/* ---- compiling ---- */

typedef enum { KN_VIA_DEFAULT, KN_VIA_INTERPRET, KN_VIA_C, KN_VIA_JIT } kn_via;
typedef enum { KN_EMIT_KILN, KN_EMIT_C, KN_EMIT_LL, KN_EMIT_O, KN_EMIT_A, KN_EMIT_SO } kn_emit;

typedef struct {
    const char *target; /* a preset's name or a file; NULL: host */
    int level;          /* 0..3 */
    kn_via via;         /* kn_compile: how it will run; the default is the fastest that is built */
    const char *dump_ir, *dump_dir; /* a pass or "all", and where the texts go; or NULL */
    const char *schedule; /* a file with edits of kernels' schedules (docs/schedule.md), or NULL */
} kn_compile_options;

/* Compiles in memory. The model may be destroyed afterwards, its constants' memory may not. options
 * may be NULL. */
kn_status kn_compile(kn_model *model, const kn_compile_options *options, kn_program **out);
/* Compiles to a file: `path` with what belongs to it beside it (KN_EMIT_C: path, its header, its
   weights). Nothing is written unless all is. KN_USAGE: one of these is a file that the context
   has open: a model's, its weights', a loaded program's. */
kn_status kn_compile_file(kn_model *model, const kn_compile_options *options, kn_emit emit,
                          const char *path);

#ifdef __cplusplus
}
#endif
#endif
