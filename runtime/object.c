/* Loads native code from an ELF relocatable object: see object.h. The steps: read the header, the
   sections and the symbols; give every loaded section a place in one image, code first, stubs for
   imports behind it, then read-only data; map, copy, relocate, protect. All numbers of the file are
   checked where they are read, so that the later steps need not. Field offsets are those of the
   System V ABI's ELF-64 object file format. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include "runtime/object.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/object_internal.h"

enum {
    HEADER_BYTES = 64,
    SECTION_BYTES = 64,
    SYMBOL_BYTES = 24,
    MAX_ALIGN = 4096,
    MAX_IMAGE = 1 << 30 /* so that 32 bits reach from end to end */
};
enum { SHT_SYMTAB = 2, SHT_STRTAB = 3, SHT_NOBITS = 8 };
enum { SHF_WRITE = 1, SHF_ALLOC = 2, SHF_EXECINSTR = 4, SHF_TLS = 0x400, SHF_COMPRESSED = 0x800 };
enum { SHN_UNDEF = 0, SHN_LORESERVE = 0xff00, SHN_ABS = 0xfff1 };
enum { STB_GLOBAL = 1 };
enum { STT_FUNC = 2, STT_SECTION = 3, STT_FILE = 4 };

#if defined(__x86_64__)
enum { HOST_MACHINE = KN_EM_X86_64 };
#elif defined(__aarch64__) && !defined(__AARCH64EB__)
enum { HOST_MACHINE = KN_EM_AARCH64 };
#else
enum { HOST_MACHINE = 0 };
#endif

struct kn_object {
    kn_arena *arena;
    unsigned char *image;
    size_t image_bytes;
    struct export
    {
        const char *name;
        kn_native_fn code;
    }
    *exports;
    uint32_t nexports;
};

_Noreturn void kn_elf_fail(const kn_elf *e, kn_status status, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kn_raise(e->ctx, status, e->loc, "native code: %s", text);
}

uint64_t kn_elf_get(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | at[i];
    return value;
}

static uint32_t get16(const unsigned char *at)
{
    return (uint32_t)kn_elf_get(at, 2);
}

static uint32_t get32(const unsigned char *at)
{
    return (uint32_t)kn_elf_get(at, 4);
}

/* ---- Header and sections ---- */

static void read_header(kn_elf *e)
{
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    if (e->size < HEADER_BYTES || memcmp(e->data, ident, sizeof ident) != 0)
        kn_elf_fail(e, KN_INVALID, "expected a little-endian ELF64 object");
    if (get16(e->data + 16) != 1)
        kn_elf_fail(e, KN_INVALID, "expected a relocatable object, found ELF type %u",
                    get16(e->data + 16));
    e->machine = get16(e->data + 18);
    if (e->machine != KN_EM_X86_64 && e->machine != KN_EM_AARCH64)
        kn_elf_fail(e, KN_UNSUPPORTED, "for ELF machine %u: neither x86-64 nor aarch64",
                    e->machine);
}

/* The bytes [offset, offset + size) of the file. */
static const unsigned char *bytes_at(const kn_elf *e, uint64_t offset, uint64_t size,
                                     const char *what)
{
    if (offset > e->size || size > e->size - offset)
        kn_elf_fail(e, KN_INVALID, "%s: %llu bytes at %llu of %zu", what, (unsigned long long)size,
                    (unsigned long long)offset, e->size);
    return e->data + offset;
}

static kn_elf_section read_section(const kn_elf *e, const unsigned char *at, uint32_t index)
{
    kn_elf_section s = {
        .type = get32(at + 4),
        .flags = kn_elf_get(at + 8, 8),
        .offset = kn_elf_get(at + 24, 8),
        .size = kn_elf_get(at + 32, 8),
        .link = get32(at + 40),
        .info = get32(at + 44),
        .align = kn_elf_get(at + 48, 8),
        .entsize = kn_elf_get(at + 56, 8),
    };
    if (index && s.type != SHT_NOBITS)
        bytes_at(e, s.offset, s.size, "a section outside the object");
    s.loaded = index && (s.flags & SHF_ALLOC) && s.size;
    if (!s.loaded)
        return s;
    if ((s.flags & (SHF_WRITE | SHF_TLS | SHF_COMPRESSED)) || s.type == SHT_NOBITS)
        kn_elf_fail(e, KN_UNSUPPORTED, "section %u is writable, zeroed or compressed data", index);
    if (s.align > MAX_ALIGN || (s.align & (s.align - 1)))
        kn_elf_fail(e, KN_INVALID, "section %u is aligned to %llu", index,
                    (unsigned long long)s.align);
    return s;
}

static void read_sections(kn_elf *e)
{
    uint64_t offset = kn_elf_get(e->data + 40, 8), loaded = 0;
    e->nsections = get16(e->data + 60);
    if (e->nsections == 0 || e->nsections >= SHN_LORESERVE || get16(e->data + 58) != SECTION_BYTES)
        kn_elf_fail(e, KN_INVALID, "%u section headers of %u bytes", e->nsections,
                    get16(e->data + 58));
    const unsigned char *at = bytes_at(e, offset, (uint64_t)e->nsections * SECTION_BYTES,
                                       "the section headers are outside the object");
    e->sections = KN_ARRAY(e->arena, kn_elf_section, e->nsections);
    for (uint32_t i = 0; i < e->nsections; i++, at += SECTION_BYTES) {
        e->sections[i] = read_section(e, at, i);
        loaded += e->sections[i].loaded ? e->sections[i].size : 0;
        if (loaded > e->size)
            kn_elf_fail(e, KN_INVALID, "its sections overlap");
        if (e->sections[i].type != SHT_SYMTAB)
            continue;
        if (e->symtab)
            kn_elf_fail(e, KN_INVALID, "two symbol tables");
        e->symtab = i;
    }
}

/* ---- Places ---- */

static size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static size_t place_bytes(const kn_elf *e, size_t at, uint64_t bytes)
{
    if (bytes > MAX_IMAGE - at)
        kn_elf_fail(e, KN_UNSUPPORTED, "more than %d bytes of code and data", MAX_IMAGE);
    return at + (size_t)bytes;
}

static size_t place_sections(kn_elf *e, size_t at, bool code)
{
    for (uint32_t i = 0; i < e->nsections; i++) {
        kn_elf_section *s = &e->sections[i];
        if (!s->loaded || !(s->flags & SHF_EXECINSTR) != !code)
            continue;
        s->place = round_up(at, s->align ? (size_t)s->align : 1);
        at = place_bytes(e, s->place > MAX_IMAGE ? MAX_IMAGE : s->place, s->size);
    }
    return at;
}

/* ---- Symbols ---- */

static const unsigned char *string_table(const kn_elf *e, uint32_t index, size_t *size)
{
    if (index >= e->nsections || e->sections[index].type != SHT_STRTAB)
        kn_elf_fail(e, KN_INVALID, "the symbols' names: section %u is no string table", index);
    const kn_elf_section *s = &e->sections[index];
    if (s->size == 0 || e->data[s->offset + s->size - 1] != 0)
        kn_elf_fail(e, KN_INVALID, "the string table does not end in a zero");
    *size = (size_t)s->size;
    return e->data + s->offset;
}

/* The place of what is defined: a section's is known only later, so `place` is from its start
 * here. */
static kn_elf_symbol read_defined(const kn_elf *e, const unsigned char *at, kn_elf_symbol symbol)
{
    uint32_t section = get16(at + 6), type = at[4] & 15;
    uint64_t value = kn_elf_get(at + 8, 8);
    if (section >= e->nsections)
        kn_elf_fail(e, KN_INVALID, "symbol `%.80s` in section %u of %u", symbol.name, section,
                    e->nsections);
    const kn_elf_section *s = &e->sections[section];
    if (!s->loaded)
        return symbol;
    if (value > s->size || type > STT_SECTION)
        kn_elf_fail(e, KN_INVALID, "symbol `%.80s` of type %u at %llu of %llu", symbol.name, type,
                    (unsigned long long)value, (unsigned long long)s->size);
    symbol.kind = KN_SYM_DEFINED;
    symbol.place = s->place + (size_t)value;
    symbol.exported = type == STT_FUNC && at[4] >> 4 == STB_GLOBAL && (s->flags & SHF_EXECINSTR);
    return symbol;
}

static kn_elf_symbol read_symbol(const kn_elf *e, const unsigned char *at, const char *name)
{
    kn_elf_symbol symbol = {.name = name};
    uint32_t section = get16(at + 6);
    if (section == SHN_ABS || (at[4] & 15) == STT_FILE)
        return symbol;
    if (section != SHN_UNDEF)
        return read_defined(e, at, symbol);
    symbol.kind = KN_SYM_UNDEFINED;
    return symbol;
}

/* Symbol 0 stands for none. */
static void read_symbols(kn_elf *e)
{
    if (!e->symtab)
        return;
    const kn_elf_section *table = &e->sections[e->symtab];
    if (table->entsize != SYMBOL_BYTES || table->size / SYMBOL_BYTES > INT32_MAX)
        kn_elf_fail(e, KN_INVALID, "a symbol table of %llu bytes, %llu a symbol",
                    (unsigned long long)table->size, (unsigned long long)table->entsize);
    size_t names;
    const unsigned char *strings = string_table(e, table->link, &names);
    const unsigned char *at = e->data + table->offset;
    e->nsymbols = (uint32_t)(table->size / SYMBOL_BYTES);
    e->symbols = KN_ARRAY(e->arena, kn_elf_symbol, e->nsymbols);
    for (uint32_t i = 1; i < e->nsymbols; i++) {
        const unsigned char *symbol = at + (size_t)i * SYMBOL_BYTES;
        uint32_t name = get32(symbol);
        if (name >= names)
            kn_elf_fail(e, KN_INVALID, "the name of symbol %u lies outside the strings", i);
        e->symbols[i] = read_symbol(e, symbol, (const char *)strings + name);
    }
}

/* ---- Imports ---- */

#define LIBM(name, nargs) {#name, (kn_native_fn)(name)}, {#name "f", (kn_native_fn)(name##f)},
static const kn_import library[] = {
#include "support/libm.def"
    {"memcpy", (kn_native_fn)memcpy},
    {"memmove", (kn_native_fn)memmove},
    {"memset", (kn_native_fn)memset},
};
#undef LIBM

static kn_native_fn find_import(const char *name, const kn_import *imports, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(imports[i].name, name) == 0)
            return imports[i].code;
    }
    return NULL;
}

/* Gives each undefined symbol its stub, from `at` on; names all that are not found. */
static size_t place_stubs(kn_elf *e, size_t at, const kn_import *imports, int nimports)
{
    bool missing = false;
    at = round_up(at, KN_STUB_BYTES);
    for (uint32_t i = 1; i < e->nsymbols; i++) {
        kn_elf_symbol *symbol = &e->symbols[i];
        if (symbol->kind != KN_SYM_UNDEFINED)
            continue;
        symbol->code = find_import(symbol->name, imports, nimports);
        if (!symbol->code)
            symbol->code = find_import(symbol->name, library, sizeof library / sizeof *library);
        if (!symbol->code)
            kn_error(e->ctx, KN_UNSUPPORTED, e->loc, "native code: unknown function `%.80s`",
                     symbol->name);
        missing = missing || !symbol->code;
        symbol->place = at;
        at = place_bytes(e, at, KN_STUB_BYTES);
    }
    if (missing)
        kn_raise_again(e->ctx, KN_UNSUPPORTED);
    return at;
}

/* ---- The image ---- */

static void read_object(kn_elf *e, const kn_import *imports, int nimports)
{
    read_header(e);
    read_sections(e);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t code = place_sections(e, 0, true);
    /* Symbols of data are not placed right before their sections are: those lie behind the stubs,
       whose number the symbols decide. So the stubs are counted by the undefined symbols there can
       be at most. */
    size_t stubs = e->symtab ? (size_t)(e->sections[e->symtab].size / SYMBOL_BYTES) : 0;
    size_t most = place_bytes(e, code, (uint64_t)(stubs + 1) * KN_STUB_BYTES);
    e->code_bytes = round_up(most, page);
    e->image_bytes = round_up(place_sections(e, e->code_bytes, false), page);
    read_symbols(e);
    place_stubs(e, code, imports, nimports);
}

static void unmap(void *arg)
{
    kn_object *object = arg;
    if (object->image)
        munmap(object->image, object->image_bytes);
}

static void map_image(kn_elf *e, kn_object *object)
{
    void *image =
        mmap(NULL, e->image_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (image == MAP_FAILED)
        kn_elf_fail(e, KN_ENVIRONMENT, "cannot map %zu bytes: %s", e->image_bytes, strerror(errno));
    e->image = object->image = image;
    object->image_bytes = e->image_bytes;
    for (uint32_t i = 0; i < e->nsections; i++) {
        const kn_elf_section *s = &e->sections[i];
        if (s->loaded)
            memcpy(e->image + s->place, e->data + s->offset, (size_t)s->size);
    }
}

static void protect_image(const kn_elf *e)
{
    if (mprotect(e->image, e->code_bytes, PROT_READ | PROT_EXEC) != 0 ||
        (e->image_bytes > e->code_bytes &&
         mprotect(e->image + e->code_bytes, e->image_bytes - e->code_bytes, PROT_READ) != 0))
        kn_elf_fail(e, KN_ENVIRONMENT, "cannot make it executable: %s", strerror(errno));
#if defined(__GNUC__)
    __builtin___clear_cache((char *)e->image, (char *)e->image + e->code_bytes);
#endif
}

static kn_native_fn code_at(const unsigned char *at)
{
    kn_native_fn code;
    _Static_assert(sizeof code == sizeof at, "a function's address is a pointer");
    memcpy(&code, &at, sizeof code);
    return code;
}

static void export_functions(const kn_elf *e, kn_object *object)
{
    object->exports = KN_ARRAY(object->arena, struct export, e->nsymbols);
    for (uint32_t i = 1; i < e->nsymbols; i++) {
        const kn_elf_symbol *symbol = &e->symbols[i];
        if (symbol->exported)
            object->exports[object->nexports++] = (struct export){
                kn_strdup(object->arena, symbol->name), code_at(e->image + symbol->place)};
    }
}

/* The object, mapped and relocated; `e` has its scratch arena. */
static kn_object *load(kn_elf *e, const kn_import *imports, int nimports)
{
    kn_arena *arena = kn_arena_create(e->ctx);
    kn_object *object = KN_NEW(arena, kn_object);
    object->arena = arena;
    kn_defer(e->ctx, unmap, object);
    e->arena = kn_arena_create(e->ctx);
    read_object(e, imports, nimports);
    map_image(e, object);
    kn_elf_relocate(e);
    export_functions(e, object);
    return object;
}

kn_object *kn_object_load(kn_ctx *ctx, kn_loc loc, const void *data, size_t size,
                          const kn_import *imports, int nimports)
{
    kn_elf e = {.ctx = ctx, .loc = loc, .data = data, .size = size};
    kn_object *object = load(&e, imports, nimports);
    if (e.machine != HOST_MACHINE)
        kn_elf_fail(&e, KN_UNSUPPORTED, "for %s, this machine is another",
                    e.machine == KN_EM_X86_64 ? "x86-64" : "aarch64");
    protect_image(&e);
    kn_arena_destroy(e.arena);
    return object;
}

void kn_object_check(kn_ctx *ctx, kn_loc loc, const void *data, size_t size,
                     const kn_import *imports, int nimports)
{
    kn_elf e = {.ctx = ctx, .loc = loc, .data = data, .size = size};
    kn_object *object = load(&e, imports, nimports);
    kn_arena_destroy(e.arena);
    kn_object_close(ctx, object);
}

void kn_object_close(kn_ctx *ctx, kn_object *object)
{
    if (!object)
        return;
    kn_arena *arena = object->arena;
    kn_release(ctx, object);
    kn_arena_destroy(arena);
}

kn_native_fn kn_object_find(const kn_object *object, const char *name)
{
    for (uint32_t i = 0; i < object->nexports; i++) {
        if (strcmp(object->exports[i].name, name) == 0)
            return object->exports[i].code;
    }
    return NULL;
}
