/* The loader of native code, on small objects put together by hand. */
#include "unit.h"

#include <math.h>

#include "runtime/object.h"

/* ---- An object ---- */

enum { TEXT = 1, DATA, RELA_TEXT, RELA_DATA, SYMTAB, STRTAB, SECTIONS };
enum { SYM_DATA = 1, SYM_F, SYM_H, SYM_G, SYM_POWF, SYMBOLS };
enum {
    AT_TEXT = 64,
    AT_DATA = 160,
    AT_RELA_TEXT = 176,
    AT_RELA_DATA = 320,
    AT_SYMTAB = 344,
    AT_STRTAB = 496,
    AT_SECTIONS = 520,
    SIZE = AT_SECTIONS + 64 * SECTIONS
};

typedef struct {
    unsigned char bytes[SIZE];
} object;

static void put(object *o, size_t at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        o->bytes[at + (size_t)i] = (unsigned char)(value >> (8 * i));
}

static size_t section_at(int section, int field)
{
    return (size_t)(AT_SECTIONS + 64 * section + field);
}

static void put_section(object *o, int section, uint32_t type, uint64_t flags, size_t at,
                        size_t size)
{
    put(o, section_at(section, 4), type, 4);
    put(o, section_at(section, 8), flags, 8);
    put(o, section_at(section, 24), at, 8);
    put(o, section_at(section, 32), size, 8);
    put(o, section_at(section, 48), 16, 8);
}

static void put_link(object *o, int section, uint32_t link, uint32_t info, uint64_t entsize)
{
    put(o, section_at(section, 40), link, 4);
    put(o, section_at(section, 44), info, 4);
    put(o, section_at(section, 56), entsize, 8);
}

static void put_symbol(object *o, int symbol, uint32_t name, unsigned info, unsigned section,
                       uint64_t value)
{
    size_t at = (size_t)(AT_SYMTAB + 24 * symbol);
    put(o, at, name, 4);
    put(o, at + 4, info, 1);
    put(o, at + 6, section, 2);
    put(o, at + 8, value, 8);
}

static void put_rela(object *o, size_t at, uint64_t offset, uint32_t type, uint32_t symbol,
                     int64_t addend)
{
    put(o, at, offset, 8);
    put(o, at + 8, type, 4);
    put(o, at + 12, symbol, 4);
    put(o, at + 16, (uint64_t)addend, 8);
}

/* int f(int x) { return g(x) + data[0] + *&data[0]; }, the latter through a 64-bit address; h is g
   through its slot, a function that calls powf stands behind. */
static object make(void)
{
    static const unsigned char code[] = {
        0x48, 0x83, 0xec, 0x08,             /* 0: f: sub $8, %rsp */
        0xe8, 0,    0,    0,    0,          /* 4: call g */
        0x03, 0x05, 0,    0,    0,    0,    /* 9: add data(%rip), %eax */
        0x48, 0x8b, 0x0d, 0,    0,    0, 0, /* 15: mov data + 8(%rip), %rcx */
        0x03, 0x01,                         /* 22: add (%rcx), %eax */
        0x48, 0x83, 0xc4, 0x08, 0xc3,       /* 24: add $8, %rsp; ret */
        0x48, 0x8b, 0x05, 0,    0,    0, 0, /* 29: h: mov g@GOTPCREL(%rip), %rax */
        0xff, 0xe0,                         /* 36: jmp *%rax */
        0xe9, 0,    0,    0,    0,          /* 38: jmp powf */
    };
    static const unsigned char ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
    static const char names[] = "\0f\0h\0g\0powf";
    object o = {{0}};
    memcpy(o.bytes, ident, sizeof ident);
    put(&o, 16, 1, 2);
    put(&o, 18, 62, 2);
    put(&o, 40, AT_SECTIONS, 8);
    put(&o, 58, 64, 2);
    put(&o, 60, SECTIONS, 2);
    memcpy(o.bytes + AT_TEXT, code, sizeof code);
    put(&o, AT_DATA, 100, 4);
    memcpy(o.bytes + AT_STRTAB, names, sizeof names);
    put_section(&o, TEXT, 1, 6, AT_TEXT, sizeof code);
    put_section(&o, DATA, 1, 2, AT_DATA, 16);
    put_section(&o, RELA_TEXT, 4, 0, AT_RELA_TEXT, 24 * 5);
    put_section(&o, RELA_DATA, 4, 0, AT_RELA_DATA, 24);
    put_section(&o, SYMTAB, 2, 0, AT_SYMTAB, 24 * SYMBOLS);
    put_section(&o, STRTAB, 3, 0, AT_STRTAB, sizeof names);
    put_link(&o, RELA_TEXT, SYMTAB, TEXT, 24);
    put_link(&o, RELA_DATA, SYMTAB, DATA, 24);
    put_link(&o, SYMTAB, STRTAB, 2, 24);
    put_symbol(&o, SYM_DATA, 0, 3, DATA, 0);
    put_symbol(&o, SYM_F, 1, 0x12, TEXT, 0);
    put_symbol(&o, SYM_H, 3, 0x12, TEXT, 29);
    put_symbol(&o, SYM_G, 5, 0x10, 0, 0);
    put_symbol(&o, SYM_POWF, 7, 0x10, 0, 0);
    put_rela(&o, AT_RELA_TEXT, 5, 4, SYM_G, -4);
    put_rela(&o, AT_RELA_TEXT + 24, 11, 2, SYM_DATA, -4);
    put_rela(&o, AT_RELA_TEXT + 48, 18, 2, SYM_DATA, 4);
    put_rela(&o, AT_RELA_TEXT + 72, 32, 42, SYM_G, -4);
    put_rela(&o, AT_RELA_TEXT + 96, 39, 4, SYM_POWF, -4);
    put_rela(&o, AT_RELA_DATA, 8, 1, SYM_DATA, 0);
    return o;
}

static int twice(int x)
{
    return 2 * x;
}

static const kn_import imports[] = {{"g", (kn_native_fn)twice}};

#if defined(__x86_64__)
enum { RUNS = 1 };
#else
enum { RUNS = 0 };
#endif

/* ---- Loading ---- */

static void objects_load_and_run(void **state)
{
    fixture *f = *state;
    object o = make();
    if (!RUNS)
        skip();
    kn_object *loaded = kn_object_load(f->ctx, kn_loc_none(), o.bytes, SIZE, imports, 1);
    memset(&o, 0, sizeof o); /* is not needed any more */
    int (*run)(int) = (int (*)(int))kn_object_find(loaded, "f");
    assert_int_equal(run(21), 242);
    run = (int (*)(int))kn_object_find(loaded, "h");
    assert_int_equal(run(-4), -8);
    assert_null(kn_object_find(loaded, "g"));
    assert_null(kn_object_find(loaded, ""));
    kn_object_close(f->ctx, loaded);
    kn_object_close(f->ctx, NULL);
}

/* ---- Faults ---- */

typedef struct {
    kn_ctx *ctx;
    const object *o;
    size_t size;
} task;

static void check_body(void *arg)
{
    const task *t = arg;
    kn_object_check(t->ctx, kn_loc_none(), t->o->bytes, t->size, imports, 1);
}

static void load_body(void *arg)
{
    const task *t = arg;
    kn_object_load(t->ctx, kn_loc_none(), t->o->bytes, t->size, imports, 1);
}

static void assert_refused(fixture *f, const object *o, size_t size, kn_status status,
                           const char *message)
{
    task t = {.ctx = f->ctx, .o = o, .size = size};
    assert_int_equal(kn_protect(f->ctx, check_body, &t), status);
    assert_string_equal(last_message(f->ctx), kn_format(f->arena, "native code: %s", message));
}

/* The object with one number changed. */
static void assert_fault(fixture *f, size_t at, uint64_t value, int bytes, kn_status status,
                         const char *message)
{
    object o = make();
    put(&o, at, value, bytes);
    assert_refused(f, &o, SIZE, status, message);
}

static void a_sound_object_passes(void **state)
{
    fixture *f = *state;
    object o = make();
    kn_object_check(f->ctx, kn_loc_none(), o.bytes, SIZE, imports, 1);
}

static void headers_are_checked(void **state)
{
    fixture *f = *state;
    object o = make();
    assert_refused(f, &o, 0, KN_INVALID, "expected a little-endian ELF64 object");
    assert_refused(f, &o, 63, KN_INVALID, "expected a little-endian ELF64 object");
    assert_refused(f, &o, SIZE - 1, KN_INVALID,
                   "the section headers are outside the object: 448 bytes at 520 of 967");
    assert_fault(f, 5, 2, 1, KN_INVALID, "expected a little-endian ELF64 object");
    assert_fault(f, 16, 3, 2, KN_INVALID, "expected a relocatable object, found ELF type 3");
    assert_fault(f, 18, 243, 2, KN_UNSUPPORTED, "for ELF machine 243: neither x86-64 nor aarch64");
    assert_fault(
        f, 40, UINT64_MAX - 7, 8, KN_INVALID,
        "the section headers are outside the object: 448 bytes at 18446744073709551608 of 968");
    assert_fault(f, 58, 40, 2, KN_INVALID, "7 section headers of 40 bytes");
    assert_fault(f, 60, 0, 2, KN_INVALID, "0 section headers of 64 bytes");
}

static void sections_are_checked(void **state)
{
    fixture *f = *state;
    assert_fault(f, section_at(DATA, 32), UINT64_MAX, 8, KN_INVALID,
                 "a section outside the object: 18446744073709551615 bytes at 160 of 968");
    assert_fault(f, section_at(DATA, 48), 3, 8, KN_INVALID, "section 2 is aligned to 3");
    assert_fault(f, section_at(DATA, 48), 8192, 8, KN_INVALID, "section 2 is aligned to 8192");
    assert_fault(f, section_at(DATA, 8), 3, 8, KN_UNSUPPORTED,
                 "section 2 is writable, zeroed or compressed data");
    assert_fault(f, section_at(DATA, 4), 8, 4, KN_UNSUPPORTED,
                 "section 2 is writable, zeroed or compressed data");
    assert_fault(f, section_at(STRTAB, 4), 2, 4, KN_INVALID, "two symbol tables");
    object o = make();
    put(&o, section_at(TEXT, 24), 0, 8);
    put(&o, section_at(TEXT, 32), SIZE, 8);
    assert_refused(f, &o, SIZE, KN_INVALID, "its sections overlap");
}

static size_t symbol_at(int symbol, int field)
{
    return (size_t)(AT_SYMTAB + 24 * symbol + field);
}

static void symbols_are_checked(void **state)
{
    fixture *f = *state;
    assert_fault(f, section_at(SYMTAB, 56), 16, 8, KN_INVALID,
                 "a symbol table of 144 bytes, 16 a symbol");
    assert_fault(f, section_at(SYMTAB, 40), 99, 4, KN_INVALID,
                 "the symbols' names: section 99 is no string table");
    assert_fault(f, section_at(SYMTAB, 40), DATA, 4, KN_INVALID,
                 "the symbols' names: section 2 is no string table");
    assert_fault(f, section_at(STRTAB, 32), 11, 8, KN_INVALID,
                 "the string table does not end in a zero");
    assert_fault(f, section_at(STRTAB, 32), 0, 8, KN_INVALID,
                 "the string table does not end in a zero");
    assert_fault(f, symbol_at(SYM_F, 0), 12, 4, KN_INVALID,
                 "the name of symbol 2 lies outside the strings");
    assert_fault(f, symbol_at(SYM_F, 6), 77, 2, KN_INVALID, "symbol `f` in section 77 of 7");
    assert_fault(f, symbol_at(SYM_F, 8), 44, 8, KN_INVALID, "symbol `f` of type 2 at 44 of 43");
    assert_fault(f, symbol_at(SYM_F, 4), 0x1a, 1, KN_INVALID, "symbol `f` of type 10 at 0 of 43");
}

static void unknown_functions_are_all_named(void **state)
{
    fixture *f = *state;
    object o = make();
    memcpy(o.bytes + AT_STRTAB + 5, "u\0evil", 7);
    task t = {.ctx = f->ctx, .o = &o, .size = SIZE};
    assert_int_equal(kn_protect(f->ctx, check_body, &t), KN_UNSUPPORTED);
    assert_int_equal(kn_diag_count(f->ctx), 2);
    assert_string_equal(kn_diag_get(f->ctx, 0)->message, "native code: unknown function `u`");
    assert_string_equal(kn_diag_get(f->ctx, 1)->message, "native code: unknown function `evil`");
}

static void relocations_are_checked(void **state)
{
    fixture *f = *state;
    size_t first = AT_RELA_TEXT;
    assert_fault(f, first, 40, 8, KN_INVALID, "a relocation at 40 of 43 bytes");
    assert_fault(f, first, UINT64_MAX, 8, KN_INVALID,
                 "a relocation at 18446744073709551615 of 43 bytes");
    assert_fault(f, first + 8, 10, 4, KN_UNSUPPORTED, "a relocation of kind 10");
    assert_fault(f, first + 12, 6, 4, KN_INVALID,
                 "a relocation against symbol 6 of 6, which has no address");
    assert_fault(f, first + 12, 0, 4, KN_INVALID,
                 "a relocation against symbol 0 of 6, which has no address");
    assert_fault(f, first + 16, (uint64_t)1 << 40, 8, KN_INVALID,
                 "a relocation of kind 4 against `g` is out of range");
    assert_fault(f, first + 72 + 12, SYM_F, 4, KN_UNSUPPORTED,
                 "a relocation of kind 42 against `f` of its own");
    assert_fault(f, section_at(RELA_TEXT, 44), 7, 4, KN_INVALID, "relocations of section 7 of 7");
    assert_fault(f, section_at(RELA_TEXT, 4), 9, 4, KN_INVALID,
                 "the relocations of section 1 are of another form");
    assert_fault(f, section_at(RELA_TEXT, 40), 0, 4, KN_INVALID,
                 "the relocations of section 1 are of another form");
    object o = make();
    put(&o, section_at(RELA_TEXT, 24), 0, 8);
    put(&o, section_at(RELA_TEXT, 32), SIZE, 8);
    assert_refused(f, &o, SIZE, KN_INVALID, "its relocations overlap");
}

/* What no code is loaded for may still be looked at. */
static void other_machines_are_not_run(void **state)
{
    fixture *f = *state;
    object o = make();
    put(&o, 18, 183, 2);
    put(&o, section_at(RELA_TEXT, 4), 1, 4);
    put(&o, section_at(RELA_DATA, 4), 1, 4);
    task t = {.ctx = f->ctx, .o = &o, .size = SIZE};
    assert_int_equal(kn_protect(f->ctx, check_body, &t), KN_OK);
    if (!RUNS)
        return;
    assert_int_equal(kn_protect(f->ctx, load_body, &t), KN_UNSUPPORTED);
    assert_string_equal(last_message(f->ctx), "native code: for aarch64, this machine is another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(objects_load_and_run),    KN_TEST(a_sound_object_passes),
        KN_TEST(headers_are_checked),     KN_TEST(sections_are_checked),
        KN_TEST(symbols_are_checked),     KN_TEST(unknown_functions_are_all_named),
        KN_TEST(relocations_are_checked), KN_TEST(other_machines_are_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
