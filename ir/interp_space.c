/* On-chip spaces of a known target, each a memory of its own. What is allocated there lies at its
   planned offset, or on the stack of allocs in scope; it starts as 0xA5 and as never written, byte
   by byte. A kernel that forgets a move, or asks for more than there is, is caught when it runs.
   Main memory and @local are plain storage (interp.c). */
#include "ir/interp_internal.h"
#include "ir/target.h"

void kn_spaces_make(kn_interp *in)
{
    const kn_target *t = in->module ? in->module->machine : NULL;
    in->machine = t;
    in->spaces = KN_ARRAY(in->arena, kn_space_memory, t ? t->nspaces + 1 : 1);
    for (int i = 0; t && i < t->nspaces; i++)
        in->spaces[i].space = &t->spaces[i];
}

void kn_spaces_reset(kn_interp *in)
{
    for (int i = 0; in->machine && i < in->machine->nspaces; i++)
        in->spaces[i] = (kn_space_memory){.space = in->spaces[i].space};
}

int kn_space_number(const kn_interp *in, const char *name)
{
    const kn_space *s = in->machine ? kn_target_space(in->machine, name) : NULL;
    return s && s->kind == KN_SPACE_SRAM ? (int)(s - in->machine->spaces) : -1;
}

static void power_on(kn_arena *memory, kn_space_memory *s)
{
    if (s->data)
        return;
    s->data = kn_alloc(memory, (size_t)s->space->bytes);
    s->written = kn_alloc(memory, (size_t)s->space->bytes);
}

kn_space_fit kn_space_place(kn_arena *memory, kn_space_memory *s, int64_t bytes,
                            const int64_t *offset, int64_t *at)
{
    int64_t align = s->space->align, limit = s->space->bytes;
    *at = offset ? *offset : (s->top + align - 1) / align * align;
    if (*at < 0 || *at > limit || bytes > limit - *at)
        return KN_SPACE_FULL;
    if (*at % align != 0)
        return KN_SPACE_UNALIGNED;
    power_on(memory, s);
    memset(s->data + *at, 0xA5, (size_t)bytes);
    memset(s->written + *at, 0, (size_t)bytes);
    s->top = *at + bytes > s->top ? *at + bytes : s->top;
    return KN_SPACE_FITS;
}

void kn_space_drop(kn_space_memory *s, const kn_slot *buffer)
{
    s->top = buffer[0].p - s->data;
}

/* The bytes of an element, from the start of the space. */
static int64_t bytes_of(const kn_space_memory *s, const kn_slot *buffer, int64_t element,
                        kn_dtype type, int *n)
{
    int bits = kn_dtype_bits(type);
    *n = bits < 8 ? 1 : bits / 8;
    int64_t skip = bits < 8 ? (element + buffer[1].i) >> 1 : element * *n;
    return buffer[0].p - s->data + skip;
}

int64_t kn_space_unwritten(const kn_space_memory *s, const kn_slot *buffer, int64_t element,
                           kn_dtype type)
{
    int n;
    int64_t at = bytes_of(s, buffer, element, type, &n);
    for (int i = 0; i < n; i++) {
        if (!s->written[at + i])
            return at + i;
    }
    return -1;
}

void kn_space_write(const kn_space_memory *s, const kn_slot *buffer, int64_t element, kn_dtype type)
{
    int n;
    int64_t at = bytes_of(s, buffer, element, type, &n);
    memset(s->written + at, 1, (size_t)n);
}
