/* The interpreter's second machine: the straight body of an innermost loop, instruction by
   instruction over up to KN_LANES iterations at a time (see kn_lanes). It never fails: where
   something is amiss it stops before the chunk in which that is, and the iterations from there on
   run singly, where it is found again and named. */
#include "ir/interp_internal.h"

/* ---- What loads and stores touch ---- */

/* Addresses as numbers: in the version of a loop that checks its accesses they may lie anywhere. */
typedef struct {
    int64_t lo, hi; /* bytes lo <= b < hi */
    bool even;      /* the elements move evenly, from `first` on by `step` bytes */
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

/* No iteration reads what an earlier one has written: they are apart, or each has its own element.
 */
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

/* ---- A chunk ---- */

static bool run_chunk(const kn_lanes *block, kn_slot *r, int n)
{
    kn_chunk k = {.r = r, .lanes = block->lanes, .n = n};
    const int32_t *pc = block->at, *const end = pc + block->n;
    while (pc && pc < end)
        pc = kn_many[*pc](&k, pc);
    return pc != NULL;
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
