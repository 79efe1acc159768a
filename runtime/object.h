/* Native code from a blob of bytes, without a linker: an ELF64 relocatable object as codegen/ emits
   it. The code is trusted as any executable is, the container is not: whatever the bytes, the
   loader reads within them, writes within its own mapping and answers with an error that says what
   is wrong.

   Taken are x86-64 and aarch64, little-endian, position-independent, without writable data or
   thread-local variables. Relocations, by their names in the two psABIs:
     x86-64:  64, PC32, PC64, PLT32, and GOTPCREL, GOTPCRELX, REX_GOTPCRELX to an import
     aarch64: ABS64, PREL32, PREL64, CALL26, JUMP26, ADR_PREL_PG_HI21, ADD_ABS_LO12_NC,
              LDST{8,16,32,64,128}_ABS_LO12_NC
   Undefined symbols are found among the caller's imports, then among memcpy, memmove, memset and
   the functions of support/libm.def; a call reaches them through a stub that jumps 64 bits far. */
#ifndef KN_RUNTIME_OBJECT_H
#define KN_RUNTIME_OBJECT_H

#include "support/ctx.h"

typedef void (*kn_native_fn)(void); /* any function; cast it to its own type before calling it */

typedef struct {
    const char *name;
    kn_native_fn code;
} kn_import;

typedef struct kn_object kn_object;

/* Copies, relocates and maps the code to be run; the bytes are not needed afterwards. Lives until
   kn_object_close() or the end of the protection. `loc` stands in the diagnostics. Raises
   KN_INVALID for a broken object, KN_UNSUPPORTED for what is not taken (another machine, a
   relocation of another kind, symbols that are not found: all of them), KN_ENVIRONMENT when there
   is no memory to map. */
kn_object *kn_object_load(kn_ctx *ctx, kn_loc loc, const void *data, size_t size,
                          const kn_import *imports, int nimports);
void kn_object_close(kn_ctx *ctx, kn_object *object);
/* A global function of the object; NULL when there is none of this name. */
kn_native_fn kn_object_find(const kn_object *object, const char *name);

/* Does all of kn_object_load() but for making the code executable, for either machine, and drops
 * it. */
void kn_object_check(kn_ctx *ctx, kn_loc loc, const void *data, size_t size,
                     const kn_import *imports, int nimports);

#endif
