/* Code from the loop IR. What comes out follows include/kiln/npu.h: one entry PREFIX_run, one
 * PREFIX_workspace_bytes. */
#ifndef KN_CODEGEN_CODEGEN_H
#define KN_CODEGEN_CODEGEN_H

#include "ir/loop.h"
#include "support/file.h"

/* Where a constant of main lies in the weights side file. */
typedef struct {
    int64_t offset, bytes; /* offset from the start of the file, a multiple of the element size */
} kn_cg_weight;

typedef struct {
    const char *prefix;       /* of every symbol: a C identifier */
    const char *header;       /* as in #include "...": NULL is PREFIX.h */
    const char *weights_file; /* named in comments: NULL is PREFIX_weights.bin */
    const kn_cg_weight *
        weights; /* one a constant, in the order of main's parameters; NULL: as kn_cg_layout says */
} kn_c_options;

/* The side file's layout: the constants of main in order, each at the next multiple of 64 bytes.
   Returns one entry a constant and their number in *n. Raises KN_INTERNAL when a shape is not
   constant. */
kn_cg_weight *kn_cg_layout(kn_arena *a, const kn_module *m, int *n);

/* Prints a module that kn_module_verify accepts as the text of a C file and of its header. Every
   function that main reaches is printed, those of the library too: an instruction is its semantics
   then. All allocs in @ddr are main's and planned, all others of constant size; no shape reads a
   buffer: else raises KN_INTERNAL. Raises KN_USAGE for a prefix that is no identifier,
   KN_UNSUPPORTED for what C cannot say yet, with the place. */
void kn_c_module(kn_arena *a, const kn_module *m, const kn_c_options *options, kn_str *code,
                 kn_str *header);

/* ---- Through LLVM: the same module, the same entries ----

   Results equal those of the C text bit by bit, but for the payload and sign of NaNs. A build
   without LLVM has all of these, raising KN_UNSUPPORTED. All raise KN_UNSUPPORTED and KN_INTERNAL
   as kn_c_module does. */

typedef struct {
    const char *prefix; /* of the entries: a C identifier */
    const char *triple; /* NULL: this machine's */
    const char *cpu; /* NULL: the least of its kind; "native": this one; or x86-64-v2, -v3, -v4 */
    const kn_cg_weight *weights; /* for PREFIX_bind_weights: as in kn_c_options */
    int level;                   /* of optimisation: 0 to 3 */
} kn_llvm_options;

/* Optimised LLVM assembly, the scalar functions included. */
void kn_llvm_emit_ir(kn_arena *a, const kn_module *m, const kn_llvm_options *o, kn_str *out);

/* A relocatable object, in the arena. It has code and read-only data, no writable data, no unwind
   tables. It is position-independent; relocations that can occur on x86-64 are PLT32 (calls of the
   C library: functions of support/libm.def, memcpy, memmove, memset) and PC32 (its own constants);
   on aarch64 CALL26, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC, LDST*_ABS_LO12_NC, PREL32. runtime/object.h
   loads it. */
kn_piece kn_llvm_emit_object(kn_arena *a, const kn_module *m, const kn_llvm_options *o);

/* As kiln/npu.h says; the entries of a compiled module may be called from any thread. */
struct npu_context;
typedef int (*kn_run_fn)(struct npu_context *npu, void *const *io, const void *const *weights,
                         const int64_t *sizes, void *workspace);
typedef int64_t (*kn_workspace_fn)(const int64_t *sizes);

/* A module in memory, for this machine. Constants of main may lie at any address; inputs and
   outputs are aligned to their element size. A message of a failed run lives as long as this. */
typedef struct kn_jit kn_jit;
/* Lives until kn_jit_close() or the end of the protection; the module may go before. level: as in
 * kn_llvm_options. */
kn_jit *kn_jit_compile(kn_ctx *ctx, const kn_module *m, int level);
void kn_jit_close(kn_ctx *ctx, kn_jit *jit);
kn_run_fn kn_jit_run(const kn_jit *jit);
kn_workspace_fn kn_jit_workspace_bytes(const kn_jit *jit);

/* ---- link.c: what files of other kinds need programs for ---- */

/* Runs a program of the machine's, found by PATH, which must succeed; argv ends with NULL. What it
   says goes to a file in `dir`. KN_ENVIRONMENT when it is missing (naming the Debian package) or
   fails (with what it said). */
void kn_run_tool(kn_ctx *ctx, const char *const *argv, const char *dir, const char *package);

/* An object as a shared library, by `ld -shared`, or as a static one, by `ar`: written to a
   temporary name, then renamed. KN_ENVIRONMENT when the program is missing or fails, with what it
   said. */
void kn_link_shared(kn_ctx *ctx, kn_piece object, const char *path);
void kn_archive(kn_ctx *ctx, kn_piece object, const char *path);

#endif
