/* Ports of banks. Data that arrives from DRAM always has its port, and its cycles are known when
   the request leaves, at least `horizon` ahead. A pipe's accesses go step by step through what is
   left; first come, first served among pipes. */
#include "runtime/npu/sim/sim_internal.h"

#include <assert.h>

enum { CHUNK = 64 }; /* cycles that a command takes ports ahead of time, at most */

void kn_sim_banks_init(kn_arena *a, kn_sim *s)
{
    s->banks = KN_ARRAY(a, kn_sim_bank *, s->m.nspaces);
    for (int i = 0; i < s->m.nspaces; i++) {
        const kn_sim_space *space = &s->m.spaces[i];
        if (space->ports == 0) {
            continue;
        }
        s->banks[i] = KN_ARRAY(a, kn_sim_bank, space->banks);
        for (int64_t b = 0; b < space->banks; b++) {
            kn_sim_bank *bank = &s->banks[i][b];
            bank->cap = s->m.dram.reads + 1; /* arrivals to come are requests outstanding */
            bank->spans = KN_ARRAY(a, kn_sim_span, bank->cap);
            bank->last = -1;
        }
    }
}

static kn_sim_bank *bank_of(const kn_sim *s, int space, int64_t address)
{
    const kn_sim_space *p = &s->m.spaces[space];
    return &s->banks[space][address / p->interleave % p->banks];
}

static kn_sim_span *span(const kn_sim_bank *b, int64_t i)
{
    return &b->spans[(b->head + i) % b->cap];
}

static void forget(kn_sim_bank *b, int64_t before)
{
    while (b->n > 0 && span(b, 0)->to <= before) {
        b->head = (b->head + 1) % b->cap;
        b->n--;
    }
}

void kn_sim_banks_arrive(kn_sim *s, int space, int64_t address, int64_t bytes, int64_t end)
{
    const kn_sim_space *p = &s->m.spaces[space];
    if (p->ports != 1) {
        return;
    }
    kn_sim_bank *b = bank_of(s, space, address);
    int64_t from = end - (bytes + p->row - 1) / p->row;
    forget(b, s->now);
    if (b->n > 0 && span(b, b->n - 1)->to >= from) {
        span(b, b->n - 1)->to = end;
        return;
    }
    assert(b->n < b->cap);
    b->n++;
    *span(b, b->n - 1) = (kn_sim_span){from, end};
}

/* The first cycle from t on in which no data arrives. */
static int64_t quiet(const kn_sim_bank *b, int64_t t)
{
    for (int64_t i = 0; i < b->n && span(b, i)->from <= t; i++) {
        t = kn_sim_max(t, span(b, i)->to);
    }
    return t;
}

/* Takes a port of the bank in the first cycle from t on that has one; returns it. */
static int64_t take(kn_sim_bank *b, int64_t ports, int64_t t)
{
    if (b->last >= t) {
        t = b->used < ports ? b->last : b->last + 1;
    }
    t = quiet(b, t);
    b->used = t == b->last ? b->used + 1 : 1;
    b->last = t;
    return t;
}

static int64_t step_address(const kn_sim_range *r, int64_t step)
{
    int64_t stride = r->steps == r->rows ? r->pitch : r->rows * r->bytes / r->steps;
    return r->address + step * stride;
}

/* What a step did to a bank, to take it back. */
typedef struct {
    kn_sim_bank *bank;
    int64_t last, used;
} undo;

/* All ranges' accesses of a step, from e->walk on; the cycle of the last of them, which is no
   earlier than was found when the step was put off. When that is not
   before `until`, more data may yet come in the way, and nothing is taken. */
static int64_t take_step(kn_sim *s, const kn_sim_slot *e, int64_t until)
{
    undo undone[KN_SIM_MAX_RANGES];
    int n = 0;
    int64_t last = kn_sim_max(e->walk, e->floor);
    for (int i = 0; i < e->c.nranges; i++) {
        const kn_sim_range *r = &e->c.ranges[i];
        if (e->step < r->steps && s->banks[r->space] != NULL) {
            kn_sim_bank *b = bank_of(s, r->space, step_address(r, e->step));
            undone[n++] = (undo){b, b->last, b->used};
            last = kn_sim_max(last, take(b, s->m.spaces[r->space].ports, e->walk));
        }
    }
    while (last >= until && n-- > 0) {
        undone[n].bank->last = undone[n].last;
        undone[n].bank->used = undone[n].used;
    }
    return last;
}

bool kn_sim_banks_run(kn_sim *s, kn_sim_slot *e)
{
    int64_t ahead = kn_sim_min(s->memory.horizon, CHUNK);
    while (e->step < e->steps) {
        int64_t last = take_step(s, e, s->now + ahead);
        if (last >= s->now + ahead) {
            e->floor = last;
            e->next = last - ahead + 1;
            return true;
        }
        s->report.port_stalls += last - e->walk;
        e->walk = last + 1;
        e->step++;
    }
    return false;
}
