/* Relocations of a loaded object. With S the symbol's address, A the addend, P the place: what is
   stored is S + A, S + A - P or, on aarch64, a part of it in an instruction's immediate. All
   arithmetic wraps; whether a result fits is checked at the end. An import's S is its stub for
   whatever is relative (it may be far away), else its own address. */
#include <string.h>

#include "runtime/object_internal.h"

enum { RELA_BYTES = 24 };
enum { SHT_RELA = 4, SHT_REL = 9 };

typedef enum {
    ABS64,    /* S + A */
    REL32,    /* S + A - P, signed */
    REL64,    /* S + A - P */
    SLOT32,   /* G + A - P, signed; G: the import's slot */
    BRANCH26, /* S + A - P, in words, bits 0 to 25 */
    PAGE21,   /* page(S + A) - page(P), in pages, split over bits 29-30 and 5-23 */
    LOW12     /* the low 12 bits of S + A, scaled, bits 10 to 21 */
} form;

static const struct kind {
    unsigned machine, type;
    form form;
    int scale; /* LOW12: log2 */
} kinds[] = {
    {KN_EM_X86_64, 1, ABS64, 0},       {KN_EM_X86_64, 2, REL32, 0},
    {KN_EM_X86_64, 4, REL32, 0},       {KN_EM_X86_64, 9, SLOT32, 0},
    {KN_EM_X86_64, 24, REL64, 0},      {KN_EM_X86_64, 41, SLOT32, 0},
    {KN_EM_X86_64, 42, SLOT32, 0},     {KN_EM_AARCH64, 257, ABS64, 0},
    {KN_EM_AARCH64, 260, REL64, 0},    {KN_EM_AARCH64, 261, REL32, 0},
    {KN_EM_AARCH64, 275, PAGE21, 0},   {KN_EM_AARCH64, 277, LOW12, 0},
    {KN_EM_AARCH64, 278, LOW12, 0},    {KN_EM_AARCH64, 282, BRANCH26, 0},
    {KN_EM_AARCH64, 283, BRANCH26, 0}, {KN_EM_AARCH64, 284, LOW12, 1},
    {KN_EM_AARCH64, 285, LOW12, 2},    {KN_EM_AARCH64, 286, LOW12, 3},
    {KN_EM_AARCH64, 299, LOW12, 4},
};

typedef struct {
    const struct kind *kind;
    unsigned type; /* its number */
    const kn_elf_symbol *symbol;
    uint64_t addend;
    unsigned char *at;
} relocation;

static const struct kind *find_kind(const kn_elf *e, unsigned type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].machine == e->machine && kinds[i].type == type)
            return &kinds[i];
    }
    kn_elf_fail(e, KN_UNSUPPORTED, "a relocation of kind %u", type);
}

static uint64_t address_of(const unsigned char *at)
{
    return (uint64_t)(uintptr_t)at;
}

static uint64_t code_address(kn_native_fn code)
{
    unsigned char *at;
    memcpy(&at, &code, sizeof at);
    return address_of(at);
}

static void put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* ---- Stubs ---- */

static void write_stubs(const kn_elf *e)
{
    /* jmp *2(%rip); ud2 */
    static const unsigned char x86_64[] = {0xff, 0x25, 2, 0, 0, 0, 0x0f, 0x0b};
    /* ldr x16, .+8; br x16 */
    static const unsigned char aarch64[] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
    for (uint32_t i = 1; i < e->nsymbols; i++) {
        const kn_elf_symbol *symbol = &e->symbols[i];
        if (symbol->kind != KN_SYM_UNDEFINED)
            continue;
        unsigned char *at = e->image + symbol->place;
        memcpy(at, e->machine == KN_EM_X86_64 ? x86_64 : aarch64, KN_STUB_SLOT);
        put(at + KN_STUB_SLOT, code_address(symbol->code), 8);
    }
}

/* ---- One relocation ---- */

static void require_fit(const kn_elf *e, const relocation *r, bool fits)
{
    if (!fits)
        kn_elf_fail(e, KN_INVALID, "a relocation of kind %u against `%.80s` is out of range",
                    r->type, r->symbol->name);
}

static bool is_signed_32(uint64_t value)
{
    return value + 0x80000000 <= 0xffffffff;
}

static uint64_t target(const kn_elf *e, const relocation *r)
{
    if (r->symbol->kind == KN_SYM_UNDEFINED && r->kind->form == ABS64)
        return code_address(r->symbol->code) + r->addend;
    size_t slot = r->kind->form == SLOT32 ? KN_STUB_SLOT : 0;
    if (slot && r->symbol->kind != KN_SYM_UNDEFINED)
        kn_elf_fail(e, KN_UNSUPPORTED, "a relocation of kind %u against `%.80s` of its own",
                    r->type, r->symbol->name);
    return address_of(e->image) + r->symbol->place + slot + r->addend;
}

/* Sets the bits of `mask` in the instruction at hand. */
static void patch(const relocation *r, uint64_t bits, uint64_t mask)
{
    put(r->at, (kn_elf_get(r->at, 4) & ~mask) | (bits & mask), 4);
}

static void patch_page(const kn_elf *e, const relocation *r, uint64_t to)
{
    uint64_t delta = (to & ~(uint64_t)0xfff) - (address_of(r->at) & ~(uint64_t)0xfff);
    require_fit(e, r, delta + ((uint64_t)1 << 32) <= ((uint64_t)1 << 33) - 1);
    uint64_t pages = delta >> 12;
    patch(r, (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5, 0x60ffffe0);
}

static void patch_low(const kn_elf *e, const relocation *r, uint64_t to)
{
    uint64_t low = to & 0xfff;
    require_fit(e, r, (low & ((1U << r->kind->scale) - 1)) == 0);
    patch(r, low >> r->kind->scale << 10, 0x003ffc00);
}

static void apply(const kn_elf *e, const relocation *r)
{
    uint64_t to = target(e, r), delta = to - address_of(r->at);
    switch (r->kind->form) {
    case ABS64: put(r->at, to, 8); break;
    case REL64: put(r->at, delta, 8); break;
    case REL32:
    case SLOT32:
        require_fit(e, r, is_signed_32(delta));
        put(r->at, delta, 4);
        break;
    case BRANCH26:
        require_fit(e, r, delta % 4 == 0 && delta + 0x8000000 <= 0xfffffff);
        patch(r, delta >> 2, 0x03ffffff);
        break;
    case PAGE21: patch_page(e, r, to); break;
    case LOW12: patch_low(e, r, to); break;
    }
}

/* ---- All of them ---- */

static relocation read_relocation(const kn_elf *e, const kn_elf_section *s, const unsigned char *at)
{
    uint64_t offset = kn_elf_get(at, 8);
    uint32_t type = (uint32_t)kn_elf_get(at + 8, 4), symbol = (uint32_t)kn_elf_get(at + 12, 4);
    relocation r = {.kind = find_kind(e, type), .type = type, .addend = kn_elf_get(at + 16, 8)};
    uint64_t width = r.kind->form == ABS64 || r.kind->form == REL64 ? 8 : 4;
    if (width > s->size || offset > s->size - width)
        kn_elf_fail(e, KN_INVALID, "a relocation at %llu of %llu bytes", (unsigned long long)offset,
                    (unsigned long long)s->size);
    if (symbol >= e->nsymbols || e->symbols[symbol].kind == KN_SYM_NONE)
        kn_elf_fail(e, KN_INVALID, "a relocation against symbol %u of %u, which has no address",
                    symbol, e->nsymbols);
    r.symbol = &e->symbols[symbol];
    r.at = e->image + s->place + offset;
    return r;
}

static void relocate_section(const kn_elf *e, const kn_elf_section *list)
{
    if (list->info >= e->nsections)
        kn_elf_fail(e, KN_INVALID, "relocations of section %u of %u", list->info, e->nsections);
    const kn_elf_section *s = &e->sections[list->info];
    if (!s->loaded)
        return;
    if (list->type == SHT_REL || list->entsize != RELA_BYTES || list->link != e->symtab)
        kn_elf_fail(e, KN_INVALID, "the relocations of section %u are of another form", list->info);
    const unsigned char *at = e->data + list->offset;
    for (uint64_t i = 0; i < list->size / RELA_BYTES; i++, at += RELA_BYTES) {
        relocation r = read_relocation(e, s, at);
        apply(e, &r);
    }
}

static bool is_list(const kn_elf_section *s)
{
    return s->type == SHT_RELA || s->type == SHT_REL;
}

/* Each list has bytes of its own, so that the time goes with the file's size. */
static void check_lists(const kn_elf *e)
{
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < e->nsections; i++) {
        bytes += is_list(&e->sections[i]) ? e->sections[i].size : 0;
        if (bytes > e->size)
            kn_elf_fail(e, KN_INVALID, "its relocations overlap");
    }
}

void kn_elf_relocate(const kn_elf *e)
{
    check_lists(e);
    write_stubs(e);
    for (uint32_t i = 1; i < e->nsections; i++) {
        if (is_list(&e->sections[i]))
            relocate_section(e, &e->sections[i]);
    }
}
