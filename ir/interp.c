/* The interpreter's machine: one switch over the opcodes of interp_internal.h; those that come by
   type are functions (interp_single.c). */
#include "ir/interp_ops.h"
#include "ir/target.h"

#include <assert.h>
#include <inttypes.h>

/* The call that is under way. */
typedef struct caller caller;
struct caller {
    const kn_code *code;
    const kn_site *site;
    const caller *up;
};

typedef struct {
    kn_ctx *ctx;
    kn_interp *in;
    const caller *caller; /* NULL in the first function */
    kn_arena *memory;     /* of the run */
    uint64_t steps;       /* left */
} machine;

/* ---- Failures: they show what the site knows ---- */

static _Noreturn void fail(const machine *m, const kn_code *code, kn_loc loc, const char *text)
{
    const caller *from = code->instruction ? m->caller : NULL;
    if (from)
        kn_raise(m->ctx, KN_INVALID, from->site->loc, "function %s: %s: %s", from->code->func->name,
                 code->func->name, text);
    kn_raise(m->ctx, KN_INVALID, loc, "function %s: %s", code->func->name, text);
}

static void put_values(kn_str *s, const kn_slot *r, const int *regs, int n)
{
    kn_put(s, "[");
    for (int i = 0; i < n; i++)
        kn_putf(s, "%s%" PRId64, i ? ", " : "", r[regs[i]].i);
    kn_put(s, "]");
}

static _Noreturn void fail_outside(const machine *m, const kn_code *code, const kn_site *site)
{
    kn_str s = kn_str_make(m->memory);
    kn_put(&s, site->buffer->name);
    put_values(&s, code->regs, site->subs, site->n);
    kn_putf(&s, " is outside %s: %s", site->buffer->name, kn_dtype_name(site->buffer->type));
    put_values(&s, code->regs, site->exts, site->n);
    fail(m, code, site->loc, kn_str_get(&s));
}

static _Noreturn void fail_extents(const machine *m, const kn_code *code, const kn_site *site)
{
    kn_str s = kn_str_make(m->memory);
    kn_putf(&s, "%s: %s", site->buffer->name, kn_dtype_name(site->buffer->type));
    put_values(&s, code->regs, site->exts, site->n);
    kn_put(&s, " is no shape: an extent is negative, or there are too many elements");
    fail(m, code, site->loc, kn_str_get(&s));
}

static _Noreturn void fail_fit(const machine *m, const kn_code *code, const kn_site *site,
                               int64_t has, int64_t needs)
{
    fail(m, code, site->loc,
         kn_format(m->memory, "%s has %" PRId64 " elements, its shape needs %" PRId64,
                   site->buffer->name, has, needs));
}

static _Noreturn void fail_view(const machine *m, const kn_code *code, const kn_site *site,
                                int64_t offset, int64_t size, int64_t has)
{
    fail(m, code, site->loc,
         kn_format(m->memory,
                   "%s, %" PRId64 " elements from %" PRId64
                   " on, is outside %s, which has %" PRId64,
                   site->buffer->name, size, offset, site->name, has));
}

static _Noreturn void fail_bound(const machine *m, const kn_code *code, const kn_site *site,
                                 const kn_slot *value, const kn_slot *lo, const kn_slot *hi)
{
    fail(m, code, site->loc,
         kn_format(m->memory, "%s is %" PRId64 ", not in %" PRId64 ":%" PRId64, site->name,
                   value->i, lo->i, hi->i));
}

static _Noreturn void fail_overflow(const machine *m, const kn_code *code)
{
    fail(m, code, code->func->loc, "index arithmetic leaves 64 bits");
}

static _Noreturn void fail_steps(const machine *m, const kn_code *code)
{
    fail(m, code, code->func->loc,
         kn_format(m->memory, "stopped after %" PRIu64 " steps", m->in->max_steps));
}

/* ---- Buffers ---- */

/* True when the product of the extents is a number of elements that memory could hold. */
static bool count_elements(const kn_slot *r, const int32_t *exts, int n, kn_dtype type,
                           int64_t *out)
{
    bool fits = true;
    *out = 1;
    for (int i = 0; i < n; i++) {
        if (r[exts[i]].i < 0)
            return false;
        fits = fits && !__builtin_mul_overflow(*out, r[exts[i]].i, out);
        if (r[exts[i]].i == 0) {
            *out = 0;
            fits = true;
        }
        if (!fits)
            *out = 0;
    }
    return fits && kn_dtype_bytes(type, *out) >= 0;
}

/* The buffer's registers for what begins `offset` elements after another one. */
static void shift(kn_slot *d, const kn_slot *s, int64_t offset, kn_dtype type)
{
    int bits = kn_dtype_bits(type);
    int64_t skip = bits < 8 ? s[1].i + offset : 0;
    d[0].p = s[0].p + (bits < 8 ? skip >> 1 : offset * (bits / 8));
    d[1].i = skip & 1;
}

static void allocate(const machine *m, kn_storage *storage, kn_slot *d, int64_t size, kn_dtype type)
{
    size_t bytes = (size_t)kn_dtype_bytes(type, size);
    if (!storage->at || storage->bytes < bytes) {
        storage->at = kn_alloc(m->memory, bytes);
        storage->bytes = bytes;
    }
    memset(storage->at, 0xA5, bytes);
    d[0].p = storage->at;
    d[1].i = 0;
    d[2].i = size;
}

/* ---- On-chip spaces ---- */

static void space_alloc(const machine *m, const kn_code *code, kn_slot *r, const int32_t *pc)
{
    const kn_site *site = &code->sites[pc[6]];
    kn_space_memory *s = &m->in->spaces[pc[4]];
    kn_slot *d = &r[pc[1]];
    int64_t size = r[pc[2]].i, bytes = kn_dtype_bytes((kn_dtype)pc[3], size), at;
    kn_space_fit fit = kn_space_place(m->memory, s, bytes, pc[5] >= 0 ? &r[pc[5]].i : NULL, &at);
    if (fit == KN_SPACE_FULL)
        fail(m, code, site->loc,
             kn_format(m->memory,
                       "%s needs %" PRId64 " bytes of %s at %" PRId64 ", which has %" PRId64,
                       site->buffer->name, bytes, s->space->name, at, s->space->bytes));
    if (fit == KN_SPACE_UNALIGNED)
        fail(m, code, site->loc,
             kn_format(m->memory, "%s lies at %" PRId64 " of %s, which is no multiple of %" PRId64,
                       site->buffer->name, at, s->space->name, s->space->align));
    d[0].p = s->data + at;
    d[1].i = 0;
    d[2].i = size;
}

static void space_read(const machine *m, const kn_code *code, const kn_slot *r, const int32_t *pc)
{
    const kn_site *site = &code->sites[pc[6]];
    const kn_space_memory *s = &m->in->spaces[pc[5]];
    int64_t element = r[pc[2]].i;
    int64_t at = r[pc[3]].i ? kn_space_unwritten(s, &r[pc[1]], element, (kn_dtype)pc[4]) : -1;
    if (at >= 0)
        fail(m, code, site->loc,
             kn_format(m->memory,
                       "read of never-written bytes of %s at %" PRId64 ": element %" PRId64
                       " of %s",
                       s->space->name, at, element, site->buffer->name));
}

/* ---- The switch ---- */

#define D r[pc[1]]
#define X r[pc[2]]
#define Y r[pc[3]]

#define INDEX_CASE(opcode, builtin)  \
    case opcode:                     \
        if (builtin(X.i, Y.i, &D.i)) \
            fail_overflow(m, code);  \
        pc += 4;                     \
        break;

/* Moves n pointers on and goes to the next iteration, or past the loop. */
#define NEXT(n)                                                \
    {                                                          \
        int64_t step = Y.i;                                    \
        if ((uint64_t)X.i - (uint64_t)D.i <= (uint64_t)step) { \
            pc += 6 + 2 * (n);                                 \
            break;                                             \
        }                                                      \
        if (steps-- == 0)                                      \
            fail_steps(m, code);                               \
        D.i += step;                                           \
        for (int k = 0; k < (n); k++)                          \
            r[pc[6 + 2 * k]].u += r[pc[7 + 2 * k]].u;          \
        pc += pc[4];                                           \
        break;                                                 \
    }

static bool inside(int64_t sub, int64_t extent)
{
    return (uint64_t)sub < (uint64_t)extent;
}

/* Both ends of an even run of subscripts lie inside; then so does what is between. */
static bool ends_inside(int64_t first, int64_t slope, int64_t span, int64_t extent)
{
    int64_t last;
    return !__builtin_mul_overflow(slope, span, &last) &&
           !__builtin_add_overflow(first, last, &last) && inside(first, extent) &&
           inside(last, extent);
}

static void run(machine *m, const kn_code *code);

static void call(machine *m, const kn_code *code, const int32_t *pc)
{
    const kn_slot *r = code->regs;
    caller here = {code, &code->sites[pc[3 + pc[2]]], m->caller};
    const kn_code *callee = m->in->codes.at[pc[1]];
    for (int i = 0; i < pc[2]; i++)
        callee->regs[i] = r[pc[3 + i]];
    m->caller = &here;
    run(m, callee);
    m->caller = here.up;
}

static void run(machine *m, const kn_code *code)
{
    kn_slot *const r = code->regs;
    const int32_t *pc = code->at;
    uint64_t steps = m->steps;
    for (;;) {
        switch (*pc) {
        case KN_I_END: m->steps = steps; return;
        case KN_I_JUMP: pc += pc[1]; break;
        case KN_I_JZERO: pc += D.i ? 3 : pc[2]; break;
        case KN_I_MOVE:
            D = X;
            pc += 3;
            break;
        case KN_I_FOR:
            D = X;
            pc += X.i < Y.i ? 5 : pc[4];
            break;
        case KN_I_NEXT: NEXT(pc[5])
        case KN_I_NEXT1: NEXT(1)
        case KN_I_NEXT2: NEXT(2)
        case KN_I_NEXT3: NEXT(3)
        case KN_I_BLOCK: pc += kn_run_block(code, pc, &steps) ? pc[5] : 6; break;
        case KN_I_GUARD: pc += ends_inside(D.i, X.i, Y.i, r[pc[4]].i) ? 6 : pc[5]; break;
        case KN_I_INSIDE:
            if (!inside(D.i, X.i))
                fail_outside(m, code, &code->sites[pc[3]]);
            pc += 4;
            break;
        case KN_I_INSIDE_IF:
            if (Y.i && !inside(D.i, X.i))
                fail_outside(m, code, &code->sites[pc[4]]);
            pc += 5;
            break;
        case KN_I_EXTENTS:
            if (!count_elements(r, pc + 5, pc[4], (kn_dtype)pc[2], &D.i))
                fail_extents(m, code, &code->sites[pc[3]]);
            pc += 5 + pc[4];
            break;
        case KN_I_FIT:
            if ((&D)[2].i < X.i)
                fail_fit(m, code, &code->sites[pc[3]], (&D)[2].i, X.i);
            (&D)[2] = X;
            pc += 4;
            break;
        case KN_I_BOUND:
            if (D.i < X.i || D.i > Y.i)
                fail_bound(m, code, &code->sites[pc[4]], &D, &X, &Y);
            pc += 5;
            break;
        case KN_I_ALLOC:
            allocate(m, &code->storage[pc[3]], &D, X.i, (kn_dtype)pc[4]);
            pc += 5;
            break;
        case KN_I_VIEW:
            if (Y.i < 0 || Y.i > (&X)[2].i || r[pc[4]].i > (&X)[2].i - Y.i)
                fail_view(m, code, &code->sites[pc[6]], Y.i, r[pc[4]].i, (&X)[2].i);
            shift(&D, &X, Y.i, (kn_dtype)pc[5]);
            (&D)[2] = r[pc[4]];
            pc += 7;
            break;
        case KN_I_REST:
            shift(&D, &X, Y.i, (kn_dtype)pc[4]);
            (&D)[2].i = (&X)[2].i - Y.i;
            pc += 5;
            break;
        case KN_I_CALL:
            if (steps-- == 0)
                fail_steps(m, code);
            m->steps = steps;
            call(m, code, pc);
            steps = m->steps;
            pc += 4 + pc[2];
            break;
        case KN_I_SPACE_ALLOC:
            space_alloc(m, code, r, pc);
            pc += 7;
            break;
        case KN_I_SPACE_DROP:
            kn_space_drop(&m->in->spaces[pc[2]], &D);
            pc += 3;
            break;
        case KN_I_READ:
            space_read(m, code, r, pc);
            pc += 7;
            break;
        case KN_I_WRITE:
            kn_space_write(&m->in->spaces[pc[4]], &D, X.i, (kn_dtype)pc[3]);
            pc += 5;
            break;
        case KN_I_CHECK:
            if (!D.i)
                fail(m, code, code->sites[pc[2]].loc, code->sites[pc[2]].name);
            pc += 3;
            break;
        case KN_I_SELECT:
            D = X.i ? Y : r[pc[4]];
            pc += 5;
            break;

            INDEX_CASE(KN_I_INDEX_ADD, __builtin_add_overflow)
            INDEX_CASE(KN_I_INDEX_SUB, __builtin_sub_overflow)
            INDEX_CASE(KN_I_INDEX_MUL, __builtin_mul_overflow)

        default: pc = kn_single[*pc](r, pc); break;
        }
    }
}

/* ---- Running ---- */

static kn_slot scalar_slot(kn_dtype type, int64_t v)
{
    kn_slot s = {.i = v};
    if (type == KN_F32)
        s.f = f32_of_bits((uint32_t)v);
    else if (type == KN_F16 || type == KN_BF16)
        s.u = (uint16_t)v;
    else if (type != KN_F64)
        s.i = kn_number_wrap(type, v);
    return s;
}

static void buffer_slots(kn_slot *d, kn_dtype type, kn_memory memory)
{
    int bits = kn_dtype_bits(type);
    d[0].p = memory.data;
    d[1].i = 0;
    d[2].i = (int64_t)(bits < 8 ? memory.bytes * 2 : memory.bytes / (size_t)(bits / 8));
}

static void set_arguments(kn_ctx *ctx, const kn_code *code, const int64_t *scalars, int nscalars,
                          const kn_memory *buffers, int nbuffers)
{
    const kn_func *f = code->func;
    kn_slot *next = code->regs;
    int s = 0, b = 0;
    for (int i = 0; i < f->nparams; i++)
        f->params[i].mode == KN_PARAM_SCALAR ? s++ : b++;
    if (s != nscalars || b != nbuffers)
        kn_raise(ctx, KN_USAGE, f->loc,
                 "function %s takes %d scalars and %d buffers, not %d and %d", f->name, s, b,
                 nscalars, nbuffers);
    s = b = 0;
    for (int i = 0; i < f->nparams; i++) {
        kn_dtype type = f->params[i].buffer.type;
        if (f->params[i].mode == KN_PARAM_SCALAR) {
            *next++ = scalar_slot(type, scalars[s++]);
        } else {
            buffer_slots(next, type, buffers[b++]);
            next += KN_BUFFER_REGS;
        }
    }
}

void kn_interp_run(kn_ctx *ctx, kn_interp *in, const int64_t *scalars, int nscalars,
                   const kn_memory *buffers, int nbuffers)
{
    machine m = {.ctx = ctx, .in = in, .memory = kn_arena_create(ctx), .steps = in->max_steps};
    for (int i = 0; i < in->codes.n; i++) {
        const kn_code *code = in->codes.at[i];
        for (int k = 0; k < code->nstorage; k++)
            code->storage[k] = (kn_storage){0};
    }
    kn_spaces_reset(in);
    set_arguments(ctx, in->main, scalars, nscalars, buffers, nbuffers);
    run(&m, in->main);
    kn_arena_destroy(m.memory);
}
