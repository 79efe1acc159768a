/* The scalar definitions with external linkage, for the LLVM path: the build compiles this file to
   bitcode, and emitted modules link it in and inline it. What a module does not call is dropped
   there. */

/* Inlined wherever called, so that no call is left whose argument extension the caller would have
 * to know. */
#if defined(__clang__)
#define NPU_SCALAR __attribute__((always_inline))
#else
#define NPU_SCALAR
#endif

#include "runtime/npu/host/scalar.h"
