/* A .kiln file: a compiled model as one valid safetensors file.

   Tensors, in this order: the weights, each at a multiple of 4096; `__code__`, u8, an object as
   runtime/object.h loads it; between them padding, `__pad__.N`, of zeros. A weight has its name in
   the model, unless that begins with `__`. Types that the container lacks (i4, u4) are stored as
   their bytes, u8.

   Metadata, all of it text, in any order; nothing else may stand there:

     kiln.format     1: this layout
     kiln.version    of the compiler, for people
     name, target    of the model; of its target
     machine         what the code needs: x86-64, x86-64-v2, -v3, -v4, aarch64
     entry           the code has the functions ENTRY_run, ENTRY_workspace_bytes of kiln/npu.h
     sizes           how many symbolic sizes the caller's shapes give; size.N is "NAME in LO:HI"
     computed        how many sizes a run computes; computed.N as above
     inputs          how many; input.N is "f32[seq + 1; 64] NAME"
     outputs         how many; output.N as above; alias.N, where there is one, the input that is
                     updated in place; bound.N, when sizes are computed, the output at their most
     weights         how many; weight.N is "f32[1536; 576] TENSOR"
     workspace       bytes of workspace as an expression of sizes, for people: the code has its own
     kernels, ops    how many functions; "add=3 matmul=2": for people
     hash.code, hash.weights, hash.manifest
                     XXH64 in 16 hex digits: of the code; of the weights, each seeded with the one
                     before it; of all other entries, key and value each with its NUL, likewise */
#ifndef KN_RUNTIME_KILN_FILE_H
#define KN_RUNTIME_KILN_FILE_H

#include "kiln/runtime.h"
#include "support/safetensors.h"

#define KN_KILN_FORMAT "1"
#define KN_KILN_CODE "__code__"
#define KN_KILN_PADDING "__pad__." /* as kn_safetensors_write() names it */

/* What the manifest says, checked against the container. Strings and arrays live in the arena, data
 * in the map. */
typedef struct {
    const kn_file *file;
    const kn_safetensors *container;
    const char *version, *name, *target, *machine, *entry, *workspace, *ops;
    int kernels;
    int ninputs, noutputs, ndims, ncomputed, nweights;
    kn_io *inputs, *outputs, *weights;
    kn_dim *dims, *computed;
    const char *const **bounds; /* per output its dims at the most; NULL when no size is computed */
    const void **data;          /* of the weights */
    kn_piece code;
    uint64_t code_hash, weights_hash, manifest_hash;
} kn_kiln;

/* Whether the file claims to be a .kiln file. */
bool kn_kiln_detect(const kn_file *file);
/* Reads the manifest and checks all of it but the hashes; the code is not looked at. Raises
   KN_INVALID, KN_UNSUPPORTED for a format of another version. */
kn_kiln *kn_kiln_read(kn_arena *a, const kn_file *file);
/* Compares the hashes, and that padding is zero: with kn_kiln_read(), a changed bit anywhere is
 * found. Raises KN_INVALID. */
void kn_kiln_check(kn_arena *a, const kn_kiln *k);

uint64_t kn_kiln_hash_manifest(const kn_st_meta *meta, int n);
/* The machine that code is written for here: the least that all of this kind are expected to be. */
const char *kn_kiln_machine(void);
/* Whether code for a machine runs here. */
bool kn_kiln_runs_here(const char *machine);

#endif
