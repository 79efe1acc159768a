/* DRAM. Each row of a transfer becomes requests within one line; a request leaves when its place
   among the outstanding ones is free and the channel there is; its answer comes back after latency
   and path, in the order of the requests, as fast as the channel back goes. So when a request
   leaves all about it is known, and the windows below hold nothing but times.

   Channels count in ticks of a cycle, since bandwidths need not be whole. */
#include "runtime/npu/sim/sim_internal.h"

enum { TICKS = 1024 };

static int64_t cycle_of(int64_t ticks) /* the first whole cycle at or after */
{
    return (ticks + TICKS - 1) / TICKS;
}

static void window_init(kn_arena *a, kn_sim_window *w, int64_t cap)
{
    w->cap = cap;
    w->done = KN_ARRAY(a, int64_t, cap);
}

/* When the request that left `back` requests ago, at most cap, is answered; 0: there was none. */
static int64_t window_at(const kn_sim_window *w, int64_t back)
{
    return w->done[w->at >= back ? w->at - back : w->at - back + w->cap];
}

static void window_push(kn_sim_window *w, int64_t done)
{
    w->done[w->at] = done;
    w->at = w->at + 1 == w->cap ? 0 : w->at + 1;
}

void kn_sim_memory_init(kn_arena *a, kn_sim *s)
{
    kn_sim_dram *d = &s->m.dram;
    if (d->line_writes == 0) {
        d->line_writes = d->writes;
    }
    window_init(a, &s->memory.reads, d->reads);
    window_init(a, &s->memory.writes, d->writes);
    s->memory.tick_grain = (int64_t)((double)(d->grain * TICKS) / d->bandwidth + 0.5);
    while ((int64_t)1 << s->memory.grain_shift < d->grain) {
        s->memory.grain_shift++;
    }
    s->memory.horizon = 1 + d->latency + d->path;
}

/* Bytes of the next request, and what it moves: the grains that it touches. */
static int64_t piece(const kn_sim_dram *d, const kn_sim_slot *e, int64_t *moved)
{
    int64_t address = e->c.dram.address + e->row * e->c.dram.pitch + e->at;
    int64_t n = kn_sim_min(e->c.dram.bytes - e->at, d->line - (address & (d->line - 1)));
    *moved = ((address & (d->grain - 1)) + n + d->grain - 1) & -d->grain;
    return n;
}

/* From when on the data of the next row is there to be sent, or may be asked for. */
static void next_row(kn_sim_slot *e)
{
    const kn_sim_transfer *t = &e->c.dram;
    int64_t share = (e->row + (t->write ? 1 : 0)) * e->c.cycles;
    e->walk = e->start + e->c.startup + (share + t->rows - 1) / t->rows;
}

static int64_t place_free(const kn_sim *s, const kn_sim_slot *e, int64_t moved)
{
    const kn_sim_dram *d = &s->m.dram;
    if (!e->c.dram.write) {
        return window_at(&s->memory.reads, d->reads);
    }
    return window_at(&s->memory.writes, moved == d->line ? d->line_writes : d->writes);
}

/* A request leaves now, with `there` grains to the memory, and `back` grains come from it. Returns
   the cycle at which the answer is complete. */
static int64_t send_duplex(kn_sim *s, int64_t there, int64_t back)
{
    kn_sim_memory *m = &s->memory;
    m->there = kn_sim_max(s->now * TICKS, m->there) + there * m->tick_grain;
    int64_t arrives = m->there + (s->m.dram.latency + s->m.dram.path) * TICKS;
    m->back = kn_sim_max(arrives, m->back) + back * m->tick_grain;
    return cycle_of(m->back);
}

/* The same with one bus for data both ways, which reads and writes use in the order of requests. */
static int64_t send_bus(kn_sim *s, int64_t grains)
{
    kn_sim_memory *m = &s->memory;
    int64_t arrives = (s->now + m->horizon) * TICKS;
    m->there = (s->now + 1) * TICKS;
    m->back = kn_sim_max(arrives, m->back) + grains * m->tick_grain;
    return cycle_of(m->back);
}

static int64_t send(kn_sim *s, bool write, int64_t moved)
{
    int64_t grains = moved >> s->memory.grain_shift;
    if (!s->m.dram.duplex) {
        return send_bus(s, grains);
    }
    return write ? send_duplex(s, grains, 1) : send_duplex(s, 1, grains);
}

/* Where read data goes: the share of row and byte in the first range that is written. */
static void arrive(kn_sim *s, const kn_sim_slot *e, int64_t bytes, int64_t end)
{
    const kn_sim_transfer *t = &e->c.dram;
    for (int i = 0; i < e->c.nranges; i++) {
        const kn_sim_range *r = &e->c.ranges[i];
        if (r->write) {
            int64_t row = r->rows == 1 ? 0 : e->row * r->rows / t->rows;
            kn_sim_banks_arrive(s, r->space, r->address + row * r->pitch, bytes, end);
            return;
        }
    }
}

static void account(kn_sim *s, bool write, int64_t moved)
{
    kn_sim_report *r = &s->report;
    *(write ? &r->writes : &r->reads) += 1;
    *(write ? &r->dram_written : &r->dram_read) += moved;
    r->energy += (double)moved * s->m.dram.pj_byte;
}

static void request(kn_sim *s, kn_sim_slot *e, int64_t bytes, int64_t moved)
{
    bool write = e->c.dram.write;
    int64_t done = send(s, write, moved);
    window_push(write ? &s->memory.writes : &s->memory.reads, done);
    account(s, write, moved);
    e->acked = done;
    if (write) {
        s->memory.acknowledged = kn_sim_max(s->memory.acknowledged, done + e->c.latency);
    } else {
        arrive(s, e, bytes, done);
    }
    e->at += bytes;
    if (e->at == e->c.dram.bytes) {
        e->at = 0;
        e->row++;
        next_row(e);
    }
}

bool kn_sim_memory_run(kn_sim *s, kn_sim_slot *e)
{
    if (e->row == 0 && e->at == 0) {
        next_row(e);
    }
    while (e->row < e->c.dram.rows) {
        int64_t moved, bytes = piece(&s->m.dram, e, &moved);
        int64_t when = kn_sim_max(e->walk, place_free(s, e, moved));
        e->next = kn_sim_max(when, cycle_of(s->memory.there));
        if (e->next > s->now) {
            return true;
        }
        request(s, e, bytes, moved);
    }
    e->unit = s->now;
    e->release = e->c.dram.write ? s->now : e->acked + e->c.latency;
    return false;
}
