/* An ELF object while it is loaded: what object.c reads and object_reloc.c relocates. */
#ifndef KN_RUNTIME_OBJECT_INTERNAL_H
#define KN_RUNTIME_OBJECT_INTERNAL_H

#include "runtime/object.h"
#include "support/arena.h"

enum { KN_EM_X86_64 = 62, KN_EM_AARCH64 = 183 };

/* A stub is KN_STUB_BYTES of code; its last eight bytes are the address that it jumps to, and serve
   as the symbol's slot of a global offset table. */
enum { KN_STUB_BYTES = 16, KN_STUB_SLOT = 8 };

typedef struct {
    uint32_t type, link, info;
    uint64_t flags, offset, size, align, entsize;
    bool loaded;  /* its bytes are part of the image */
    size_t place; /* where, from the image's start */
} kn_elf_section;

typedef enum {
    KN_SYM_NONE,     /* no address: a file's name, or in a section that is not loaded */
    KN_SYM_DEFINED,  /* `place` in the image */
    KN_SYM_UNDEFINED /* an import: `place` is its stub, `code` what it stands for */
} kn_elf_symbol_kind;

typedef struct {
    const char *name;
    kn_elf_symbol_kind kind;
    bool exported; /* a global function */
    size_t place;
    kn_native_fn code;
} kn_elf_symbol;

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena; /* of the loading alone */
    kn_loc loc;
    const unsigned char *data;
    size_t size;
    unsigned machine;
    kn_elf_section *sections;
    uint32_t nsections, symtab; /* the latter's section; 0: none */
    kn_elf_symbol *symbols;
    uint32_t nsymbols;
    size_t code_bytes; /* the executable head of the image: whole pages */
    size_t image_bytes;
    unsigned char *image;
} kn_elf;

_Noreturn void kn_elf_fail(const kn_elf *e, kn_status status, const char *fmt, ...) KN_PRINTF(3, 4);

/* Little-endian, unaligned. */
uint64_t kn_elf_get(const unsigned char *at, int bytes);

/* object_reloc.c: applies the relocations of all loaded sections, and writes the stubs. */
void kn_elf_relocate(const kn_elf *e);

#endif
