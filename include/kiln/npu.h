/* The contract that emitted code is written against, version 1. A generated C file includes this
   header alone; code generated through LLVM follows the same layout and calls. Who implements it is
   a folder under runtime/npu/: `host` (this machine, in C), `sim` (the simulator), or that of a
   real NPU.

   Emitted code has no global state, allocates nothing, and does not call the C library but for
   mathematics: all that it touches comes in as arguments.

     npu_status NAME_run(npu_context *npu, void *const *io, const void *const *weights,
                         const int64_t *sizes, void *workspace);
     int64_t NAME_workspace_bytes(const int64_t *sizes);

   - io: addresses of the inputs, then of the outputs, as NAME.h lists them: dense, row-major, each
     aligned to its element size. f16 and bf16 are bits in a uint16_t; a bool is a byte, 0 or 1; of
     i4 and u4 two elements share a byte, the low nibble first. An output overlaps nothing else,
     unless it updates an input in place: then both have one address.
   - weights: addresses of the constants, in the order of NAME.h.
   - sizes: values of the symbolic sizes; one out of its bounds fails the run.
   - workspace: NAME_workspace_bytes(sizes) bytes, aligned to 64, whose content does not matter; may
     be NULL for 0 bytes.

   A run may go on in several threads at once when each has its own context, outputs and workspace.
 */
#ifndef KILN_NPU_H
#define KILN_NPU_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __FAST_MATH__
#error "Emitted code needs strict floating point: no -ffast-math, no -Ofast, but -ffp-contract=off"
#endif
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF /* gcc has no such pragma; there -std=c11 implies it */
#endif

#define NPU_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef int npu_status;
enum {
    NPU_OK = 0,
    NPU_FAILED = 1 /* the context's message says why; outputs are undefined */
};

/* One caller's run. To be zeroed before the first. */
typedef struct npu_context {
    const char *message; /* why the last failed run failed: a constant string; NULL when none did */
    void *machine;       /* what the implementation keeps; NULL on the host */
} npu_context;

/* Records why, and yields the status to return. `message` must live forever. */
static inline npu_status npu_fail(npu_context *npu, const char *message)
{
    npu->message = message;
    return NPU_FAILED;
}

/* ---- Pipes and events ----

   A target has pipes that run their commands in order, beside each other. Pipes and event ids are
   numbers: the target's generated header names them. Sets and waits are balanced, and in program
   order a set precedes its wait. A target whose hardware interlocks has none of these in its code;
   nor has the host. */

/* Pipe `src` signals event `id` to pipe `dst` once all its earlier commands have completed. */
void npu_event_set(npu_context *npu, int src, int dst, int id);
/* Pipe `dst` starts no later command before event `id` of pipe `src`. */
void npu_event_wait(npu_context *npu, int src, int dst, int id);
/* Waits until every pipe has completed. Yields NPU_FAILED, with a message, when a command has
   failed since the last barrier. */
npu_status npu_barrier(npu_context *npu);

#ifdef __cplusplus
}
#endif

/* ---- Scalars ----

   npu_add_i32, npu_cast_f32_i8 and so on: the operators on one element, as the implementation
   defines them. An implementation of its own says -DNPU_SCALAR_HEADER='"..."'. This one is found
   beside this header when installed, and by -I runtime in the source tree. */
#ifndef NPU_SCALAR_HEADER
#define NPU_SCALAR_HEADER "npu/host/scalar.h"
#endif
#include NPU_SCALAR_HEADER

#endif
