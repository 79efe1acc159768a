/* Running compiled models. A deployed program links libkiln_runtime and needs nothing of the
   compiler.

   A kn_program is a compiled model: immutable, may be shared by threads. A kn_session is one
   caller's use of it: it holds the inputs, the workspace and the outputs, and belongs to one thread
   at a time. A kn_ctx holds diagnostics; use one a thread. Every function returns a status and
   leaves its messages in the context; none prints or exits. */
#ifndef KILN_RUNTIME_H
#define KILN_RUNTIME_H

#include "kiln/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kn_program kn_program;
typedef struct kn_session kn_session;

/* An input or output as the model declares it. A dimension is a number, a size's name or an
   expression of sizes, as text: "64", "seq", "past + seq". */
typedef struct {
    const char *name;
    kn_dtype type;
    int rank;
    const char *const *dims; /* rank of them */
    const char *alias;       /* outputs: the input that is updated in place, or NULL */
} kn_io;

/* A symbolic dimension and its bounds, both included. */
typedef struct {
    const char *name;
    int64_t lo, hi;
} kn_dim;

/* Loads a .kiln file: weights are mapped, not copied, and shared by all sessions. The file must not
   change while it is loaded. KN_INVALID: not a .kiln file, or a damaged one; KN_UNSUPPORTED: of
   another version or machine. */
kn_status kn_program_load(kn_ctx *ctx, const char *path, kn_program **out);
void kn_program_destroy(kn_program *program); /* after its sessions */

const char *kn_program_name(const kn_program *program);
int kn_program_input_count(const kn_program *program);
int kn_program_output_count(const kn_program *program);
int kn_program_dim_count(const kn_program *program);
const kn_io *kn_program_input(const kn_program *program, int i);
const kn_io *kn_program_output(const kn_program *program, int i);
const kn_dim *kn_program_dim(const kn_program *program, int i);

kn_status kn_session_create(kn_ctx *ctx, const kn_program *program, kn_session **out);
void kn_session_destroy(kn_session *session);

/* Sets input i: dense, row-major, borrowed until the session's next run has ended. Symbolic
   dimensions take their values from the inputs' shapes. KN_USAGE: rank, fixed dimensions or type do
   not fit. */
kn_status kn_session_set_input(kn_session *session, int i, kn_dtype type, int rank,
                               const int64_t *dims, const void *data);
/* Gives memory for output i (at least its bytes at the sizes of the next run); without it the
   session allocates. An output with an alias is updated in its input's memory. */
kn_status kn_session_set_output(kn_session *session, int i, void *data, size_t bytes);
/* Value of a symbolic dimension that no input's shape gives. */
kn_status kn_session_set_dim(kn_session *session, const char *name, int64_t value);

/* Runs once. KN_USAGE: an input or a dimension is missing, or two inputs disagree on one;
   KN_INVALID: a value in an input is not allowed (an index out of range); KN_ENVIRONMENT: no
   memory. */
kn_status kn_session_run(kn_session *session);

/* Output i of the last run; valid until the next run. dims has room for KN_MAX_RANK. */
kn_status kn_session_get_output(kn_session *session, int i, kn_dtype *type, int *rank,
                                int64_t *dims, const void **data);

#ifdef __cplusplus
}
#endif
#endif
