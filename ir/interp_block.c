/* The interpreter's second machine: the straight body of an innermost loop, instruction by instruction over up to KN_LANES iterations
   at a time (see kn_lanes). It never fails: where something is amiss it stops before the chunk in which that is, and the iterations from
   there on run singly, where it is found again and named. */
#include "ir/interp_ops.h"

#include <assert.h>

/* ---- What loads and stores touch ---- */

/* Addresses as numbers: in the version of a loop that checks its accesses they may lie anywhere. */
typedef struct {
    int64_t lo, hi;    /* bytes lo <= b < hi */
    bool even;         /* the elements move evenly, from `first` on by `step` bytes */
    int64_t first, step;
} extent;

static extent whole_buffer(const kn_slot *b, kn_dtype type)
{
    int64_t at = (int64_t)(uintptr_t)b[0].p;
    return (extent){.lo = at, .hi = at + kn_dtype_bytes(type, b[2].i + b[1].i)};
}

/* What an access touches in `trip` iterations; false when that leaves 64 bits. */
static bool extent_of(const kn_slot *r, const kn_access *a, int64_t trip, extent *e)
{
    const kn_slot *b = &r[a->buffer];
    int64_t bytes = kn_dtype_bits(a->type) / 8, start = (int64_t)(uintptr_t)b[0].p, last;
    *e = whole_buffer(b, a->type);
    if (a->element < 0 || bytes == 0)
        return true;
    e->even = true;
    if (__builtin_mul_overflow(r[a->step].i, bytes, &e->step) ||
        __builtin_mul_overflow(r[a->element].i, bytes, &e->first) ||
        __builtin_add_overflow(e->first, start, &e->first) ||
        __builtin_mul_overflow(e->step, trip - 1, &last) ||
        __builtin_add_overflow(last, e->first, &last))
        return false;
    e->lo = e->step < 0 ? last : e->first;
    return !__builtin_add_overflow(e->step < 0 ? e->first : last, bytes, &e->hi);
}

/* No iteration reads what an earlier one has written: they are apart, or each has its own element. */
static bool independent(const extent *load, const extent *store)
{
    if (load->hi <= store->lo || store->hi <= load->lo)
        return true;
    return load->even && store->even && load->first == store->first && load->step == store->step &&
           store->step != 0;
}

static bool may_run(const kn_slot *r, const kn_lanes *block, int64_t trip)
{
    extent store, load;
    if (!extent_of(r, &block->store, trip, &store))
        return false;
    for (int i = 0; i < block->nloads; i++) {
        const kn_access *a = &block->loads[i];
        if (!extent_of(r, a, trip, &load))
            return false;
        load.even = load.even && kn_dtype_bits(a->type) == kn_dtype_bits(block->store.type);
        if (!independent(&load, &store))
            return false;
    }
    return true;
}

/* ---- Operands: lanes, or one register for all ---- */

#define FROM(k) (pc[k] < 0 ? lanes + ~pc[k] * KN_LANES : r + pc[k])
#define STRIDE(k) (pc[k] < 0)
#define TO(k) (lanes + ~pc[k] * KN_LANES)

#define D (*pd)
#define X (*px)
#define Y (*py)

#define BINARY(op, T, get, put, value)                                                             \
    case CODE(op, T): {                                                                            \
        kn_slot *pd = TO(1);                                                                       \
        const kn_slot *px = FROM(2), *py = FROM(3);                                                \
        const int sx = STRIDE(2), sy = STRIDE(3);                                                  \
        for (int l = 0; l < n; l++, pd++, px += sx, py += sy) {                                    \
            get(x, X);                                                                             \
            get(y, Y);                                                                             \
            put(D, value);                                                                         \
        }                                                                                          \
        pc += 4;                                                                                   \
        break;                                                                                     \
    }
#define UNARY(op, T, get, put, value)                                                              \
    case CODE(op, T): {                                                                            \
        kn_slot *pd = TO(1);                                                                       \
        const kn_slot *px = FROM(2);                                                               \
        const int sx = STRIDE(2);                                                                  \
        for (int l = 0; l < n; l++, pd++, px += sx) {                                              \
            get(x, X);                                                                             \
            put(D, value);                                                                         \
        }                                                                                          \
        pc += 3;                                                                                   \
        break;                                                                                     \
    }
#define CONVERT(opcode, to, value)                                                                 \
    case opcode: {                                                                                 \
        kn_slot *pd = TO(1);                                                                       \
        const kn_slot *px = FROM(2);                                                               \
        const int sx = STRIDE(2);                                                                  \
        for (int l = 0; l < n; l++, pd++, px += sx)                                                \
            D.to = value;                                                                          \
        pc += 3;                                                                                   \
        break;                                                                                     \
    }

/* ---- Elements: at(l) is the number of lane l's ---- */

#define ELEMENTS(k)                                                                                \
    const kn_slot *const elements = FROM(k);                                                       \
    const bool even = pc[k] >= 0;                                                                  \
    const int64_t first = elements[0].i, step = even ? r[pc[(k) + 1]].i : 0;
#define FOR_ELEMENTS(body)                                                                         \
    if (even) {                                                                                    \
        int64_t i = first;                                                                         \
        for (int l = 0; l < n; l++, i = (int64_t)((uint64_t)i + (uint64_t)step)) {                 \
            body                                                                                   \
        }                                                                                          \
    } else {                                                                                       \
        for (int l = 0; l < n; l++) {                                                              \
            int64_t i = elements[l].i;                                                             \
            body                                                                                   \
        }                                                                                          \
    }

#define LOAD_CASE(T)                                                                               \
    case KN_I_LOAD + (int)KN_##T: {                                                                \
        kn_slot *pd = TO(1);                                                                       \
        const kn_slot *b = &r[pc[2]];                                                              \
        ELEMENTS(3)                                                                                \
        FOR_ELEMENTS(load_##T(&pd[l], b, i);)                                                      \
        pc += 5;                                                                                   \
        break;                                                                                     \
    }
#define STORE_CASE(T)                                                                              \
    case KN_I_STORE + (int)KN_##T: {                                                               \
        const kn_slot *b = &r[pc[1]], *py = FROM(4);                                               \
        const int sy = STRIDE(4);                                                                  \
        ELEMENTS(2)                                                                                \
        FOR_ELEMENTS(store_##T(b, i, py[l * sy]);)                                                 \
        pc += 5;                                                                                   \
        break;                                                                                     \
    }

/* A sum into one element stays in a register meanwhile. */
#define UPDATE(update, T, get, put, value)                                                         \
    case KN_I_STORE + (int)KN_##update * KN_DTYPE_COUNT + (int)KN_##T: {                           \
        const kn_slot *b = &r[pc[1]], *py = FROM(4);                                               \
        const int sy = STRIDE(4);                                                                  \
        kn_slot old;                                                                               \
        ELEMENTS(2)                                                                                \
        if (even && step == 0) {                                                                   \
            load_##T(&old, b, first);                                                              \
            for (int l = 0; l < n; l++, py += sy) {                                                \
                get(x, old);                                                                       \
                get(y, Y);                                                                         \
                put(old, value);                                                                   \
                RENORMAL_##T(old);                                                                 \
            }                                                                                      \
            store_##T(b, first, old);                                                              \
        } else {                                                                                   \
            FOR_ELEMENTS(load_##T(&old, b, i); get(x, old); get(y, py[l * sy]); put(old, value);   \
                         store_##T(b, i, old);)                                                    \
        }                                                                                          \
        pc += 5;                                                                                   \
        break;                                                                                     \
    }
#define PRODUCT_CASE(T, get, put, product, value)                                                  \
    case KN_I_STORE_PRODUCT + (int)KN_##T: {                                                       \
        const kn_slot *b = &r[pc[1]], *px = FROM(4), *py = FROM(5);                                \
        const int sx = STRIDE(4), sy = STRIDE(5);                                                  \
        kn_slot old;                                                                               \
        ELEMENTS(2)                                                                                \
        if (even && step == 0) {                                                                   \
            load_##T(&old, b, first);                                                              \
            for (int l = 0; l < n; l++, px += sx, py += sy) {                                      \
                get(sum, old);                                                                     \
                get(x, X);                                                                         \
                get(y, Y);                                                                         \
                product;                                                                           \
                put(old, value);                                                                   \
                RENORMAL_##T(old);                                                                 \
            }                                                                                      \
            store_##T(b, first, old);                                                              \
        } else {                                                                                   \
            FOR_ELEMENTS(load_##T(&old, b, i); get(sum, old); get(x, px[l * sx]);                  \
                         get(y, py[l * sy]); product; put(old, value); store_##T(b, i, old);)      \
        }                                                                                          \
        pc += 6;                                                                                   \
        break;                                                                                     \
    }

/* Integer sums are not wrapped by UPDATE, only when they are stored: in a register they are here. */
#define RENORMAL_F32(s)
#define RENORMAL_F64(s)
#define RENORMAL_F16(s)
#define RENORMAL_BF16(s)
#define RENORMAL_I64(s)
#define RENORMAL_U64(s)
#define RENORMAL_INDEX(s)
#define RENORMAL_I4(s) PUT_I4(s, (s).u)
#define RENORMAL_U4(s) PUT_U4(s, (s).u)
#define RENORMAL_I8(s) PUT_I8(s, (s).u)
#define RENORMAL_U8(s) PUT_U8(s, (s).u)
#define RENORMAL_I16(s) PUT_I16(s, (s).u)
#define RENORMAL_U16(s) PUT_U16(s, (s).u)
#define RENORMAL_I32(s) PUT_I32(s, (s).u)
#define RENORMAL_U32(s) PUT_U32(s, (s).u)

#define INDEX_CASE(opcode, builtin)                                                                \
    case opcode: {                                                                                 \
        kn_slot *pd = TO(1);                                                                       \
        const kn_slot *px = FROM(2), *py = FROM(3);                                                \
        const int sx = STRIDE(2), sy = STRIDE(3);                                                  \
        bool bad = false;                                                                          \
        for (int l = 0; l < n; l++, pd++, px += sx, py += sy)                                      \
            bad |= builtin(X.i, Y.i, &D.i);                                                        \
        if (bad)                                                                                   \
            return false;                                                                          \
        pc += 4;                                                                                   \
        break;                                                                                     \
    }

static void select_lanes(kn_slot *r, kn_slot *lanes, const int32_t *pc, int n)
{
    kn_slot *pd = TO(1);
    const kn_slot *cond = FROM(2), *px = FROM(3), *py = FROM(4);
    for (int l = 0; l < n; l++)
        pd[l] = cond[l * STRIDE(2)].i ? px[l * STRIDE(3)] : py[l * STRIDE(4)];
}

static bool all_inside(const kn_slot *r, const kn_slot *lanes, const int32_t *pc, int n)
{
    const kn_slot *sub = FROM(1), *extents = FROM(2);
    bool inside = true;
    for (int l = 0; l < n; l++)
        inside &= sub[l * STRIDE(1)].u < extents[l * STRIDE(2)].u;
    return inside;
}

static bool all_true(const kn_slot *r, const kn_slot *lanes, const int32_t *pc, int n)
{
    const kn_slot *cond = FROM(1);
    bool holds = true;
    for (int l = 0; l < n; l++)
        holds &= cond[l * STRIDE(1)].i != 0;
    return holds;
}

/* ---- A chunk ---- */

static bool run_chunk(const kn_lanes *block, kn_slot *r, int n)
{
    kn_slot *const lanes = block->lanes;
    const int32_t *pc = block->at, *const end = pc + block->n;
    while (pc < end) {
        switch (*pc) {
        case KN_I_SELECT:
            select_lanes(r, lanes, pc, n);
            pc += 5;
            break;
        case KN_I_INSIDE:
            if (!all_inside(r, lanes, pc, n))
                return false;
            pc += 3;
            break;
        case KN_I_CHECK:
            if (!all_true(r, lanes, pc, n))
                return false;
            pc += 2;
            break;

            INDEX_CASE(KN_I_INDEX_ADD, __builtin_add_overflow)
            INDEX_CASE(KN_I_INDEX_SUB, __builtin_sub_overflow)
            INDEX_CASE(KN_I_INDEX_MUL, __builtin_mul_overflow)

            TYPED_CASES

        default:
            assert(0 && "an opcode without a case");
            return false;
        }
    }
    return true;
}

static void fill_ramps(const kn_lanes *block, const kn_slot *r, int n)
{
    for (int i = 0; i < block->nramps; i++) {
        const kn_ramp *ramp = &block->ramps[i];
        if (ramp->lanes < 0)
            continue;
        kn_slot *lanes = block->lanes + ramp->lanes * KN_LANES;
        for (int l = 0; l < n; l++)
            lanes[l].u = r[ramp->reg].u + (uint64_t)l * r[ramp->step].u;
    }
}

static void advance_ramps(const kn_lanes *block, kn_slot *r, int n)
{
    for (int i = 0; i < block->nramps; i++)
        r[block->ramps[i].reg].u += (uint64_t)n * r[block->ramps[i].step].u;
}

bool kn_run_block(const kn_code *code, const int32_t *pc, uint64_t *steps)
{
    const kn_lanes *block = &code->blocks[pc[4]];
    kn_slot *r = code->regs;
    uint64_t left = r[pc[2]].u - r[pc[1]].u, step = r[pc[3]].u;
    left = (left - 1) / step + 1;
    if (left < KN_FEW_LANES || left > INT64_MAX || !may_run(r, block, (int64_t)left))
        return false;
    for (;;) {
        int n = left < KN_LANES ? (int)left : KN_LANES;
        bool last = left == (uint64_t)n;
        if (*steps < (uint64_t)(n - last))
            return false;
        fill_ramps(block, r, n);
        if (!run_chunk(block, r, n))
            return false;
        *steps -= (uint64_t)(n - last);
        if (last)
            return true;
        left -= (uint64_t)n;
        advance_ramps(block, r, n);
    }
}
