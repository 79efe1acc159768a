/* The engine's interface, the FIFO that commands pass, and the passing of time: from one moment at
   which anything can happen to the next. */
#include "runtime/npu/sim/sim_internal.h"

#include <assert.h>

/* ---- Rings ---- */

void kn_sim_ring_init(kn_arena *a, kn_sim_ring *r, int64_t cap)
{
    *r = (kn_sim_ring){.at = KN_ARRAY(a, int, kn_sim_max(cap, 1)), .cap = kn_sim_max(cap, 1)};
}

int kn_sim_ring_pop(kn_sim_ring *r)
{
    int x = r->at[r->head];
    r->head = r->head + 1 == r->cap ? 0 : r->head + 1;
    r->n--;
    return x;
}

/* ---- Making ---- */

static void require(kn_arena *a, bool ok, const char *what, const char *name)
{
    if (!ok) {
        kn_raise(kn_arena_ctx(a), KN_INVALID, kn_loc_none(), "simulated machine: %s%s%s", what,
                 name != NULL ? " of " : "", name != NULL ? name : "");
    }
}

enum { MOST = 1 << 20 }; /* places of a queue, outstanding requests, banks, events */

static bool within(int64_t x, int64_t least)
{
    return x >= least && x <= MOST;
}

static bool power_of_two(int64_t x)
{
    return within(x, 1) && (x & (x - 1)) == 0;
}

static void check_dram(kn_arena *a, const kn_sim_dram *d)
{
    require(a, d->bandwidth > 0 && d->bandwidth <= 1e6, "DRAM needs a bandwidth", NULL);
    require(a, within(d->latency, 0) && within(d->path, 0), "DRAM needs a latency", NULL);
    require(a, power_of_two(d->grain) && power_of_two(d->line) && d->line >= d->grain,
            "line and grain of DRAM are powers of two", NULL);
    require(a, within(d->reads, 1) && within(d->writes, 1), "outstanding requests", NULL);
    require(a, d->line_writes >= 0 && d->line_writes <= d->writes, "outstanding line writes", NULL);
}

static void check_machine(kn_arena *a, const kn_sim_machine *m)
{
    require(a, m->npipes > 0, "no pipe", NULL);
    require(a, within(m->issue, 1) && within(m->front, 0) && within(m->front_latency, 0),
            "cost of issuing", NULL);
    require(a, within(m->events, 0), "number of events", NULL);
    check_dram(a, &m->dram);
    for (int i = 0; i < m->npipes; i++) {
        const kn_sim_pipe *p = &m->pipes[i];
        require(a, within(p->queue, 1) && within(p->in_flight, 0), "queue", p->name);
    }
    for (int i = 0; i < m->nspaces; i++) {
        const kn_sim_space *p = &m->spaces[i];
        require(a, within(p->banks, 1) && p->interleave >= 1, "banks", p->name);
        require(a, within(p->row, 1) && within(p->ports, 0), "row and ports", p->name);
    }
}

static void init_slots(kn_arena *a, kn_sim *s)
{
    int64_t n = s->m.front;
    for (int i = 0; i < s->m.npipes; i++) {
        n += s->m.pipes[i].queue;
        kn_sim_ring_init(a, &s->pipes[i].queue, s->m.pipes[i].queue);
        s->pipes[i].wake = KN_SIM_NEVER;
    }
    s->slots = KN_ARRAY(a, kn_sim_slot, n);
    kn_sim_ring_init(a, &s->front, s->m.front);
    kn_sim_ring_init(a, &s->free, n);
    for (int i = 0; i < (int)n; i++) {
        kn_sim_ring_push(&s->free, i);
    }
}

kn_sim *kn_sim_create(kn_arena *a, const kn_sim_machine *m)
{
    check_machine(a, m);
    kn_sim *s = KN_NEW(a, kn_sim);
    s->m = *m;
    s->pipes = KN_ARRAY(a, kn_sim_pipe_state, m->npipes);
    s->events = KN_ARRAY(a, int64_t, kn_sim_max(m->events, 1));
    s->totals = KN_ARRAY(a, kn_sim_pipe_report, m->npipes);
    s->report.pipes = s->totals;
    init_slots(a, s);
    kn_sim_memory_init(a, s);
    kn_sim_banks_init(a, s);
    s->hazards = m->check ? kn_sim_hazards_create(a, &s->m) : NULL;
    return s;
}

void kn_sim_observe(kn_sim *s, kn_sim_observer *fn, void *user)
{
    s->observer = fn;
    s->user = user;
}

/* ---- Time ---- */

static bool full(const kn_sim_ring *r)
{
    return r->n == r->cap;
}

/* The FIFO's head goes to its pipe, one a cycle, or waits with all behind it. */
static bool dispatch(kn_sim *s, int64_t *wake)
{
    if (s->front.n == 0) {
        return false;
    }
    int slot = kn_sim_ring_get(&s->front, 0);
    const kn_sim_slot *e = &s->slots[slot];
    kn_sim_ring *queue = &s->pipes[e->c.pipe].queue;
    if (full(queue)) {
        return false;
    }
    int64_t when = kn_sim_max(s->front_next, e->ready - s->m.front_latency + 1);
    if (when > s->now) {
        *wake = when;
        return false;
    }
    kn_sim_ring_push(queue, kn_sim_ring_pop(&s->front));
    s->front_next = s->now + 1;
    *wake = s->front.n > 0 ? s->front_next : KN_SIM_NEVER;
    return true;
}

/* All pipes, or those that are due. True when another round has to follow: something is done, or
   its end is known now and another pipe waits to know it. */
static bool run_pipes(kn_sim *s, bool all)
{
    bool again = false, finished = false, starved = false;
    for (int i = 0; i < s->m.npipes; i++) {
        kn_sim_pipe_state *p = &s->pipes[i];
        if (all || p->wake <= s->now) {
            again |= kn_sim_pipe_run(s, i);
            finished |= p->finished;
        }
        starved |= p->starved;
    }
    return again || (finished && starved);
}

/* All that happens at s->now; returns when the FIFO's head can move on. */
static int64_t settle(kn_sim *s)
{
    int64_t wake;
    do {
        wake = KN_SIM_NEVER;
        for (int i = 0; i < s->m.npipes; i++) {
            if (s->pipes[i].wake <= s->now) {
                s->stirred |= kn_sim_pipe_retire(s, &s->pipes[i]);
            }
        }
        s->stirred |= dispatch(s, &wake);
        s->stirred = run_pipes(s, s->stirred);
    } while (s->stirred);
    return wake;
}

/* Does what there is to do now, and goes to the next moment, unless that made place in `wanted`.
   False when nothing will ever happen again. */
static bool advance(kn_sim *s, const kn_sim_ring *wanted)
{
    int64_t wake = settle(s);
    if (wanted != NULL && !full(wanted)) {
        return true;
    }
    for (int i = 0; i < s->m.npipes; i++) {
        wake = kn_sim_min(wake, s->pipes[i].wake);
    }
    if (wake == KN_SIM_NEVER) {
        return false;
    }
    assert(wake > s->now);
    s->now = wake;
    return true;
}

/* ---- Commands ---- */

static int64_t steps_of(const kn_sim *s, const kn_sim_command *c)
{
    int64_t steps = 0;
    for (int i = 0; i < c->nranges; i++) {
        if (s->m.spaces[c->ranges[i].space].ports > 0) {
            steps = kn_sim_max(steps, c->ranges[i].steps);
        }
    }
    return steps;
}

static void take(kn_sim *s, kn_sim_ring *to, const kn_sim_command *c)
{
    int slot = kn_sim_ring_pop(&s->free);
    int64_t at = kn_sim_max(s->now, s->offer);
    s->slots[slot] = (kn_sim_slot){.c = *c,
                                   .seq = ++s->seq,
                                   .ready = at + s->m.front_latency,
                                   .release = KN_SIM_NEVER,
                                   .steps = steps_of(s, c),
                                   .blocker = -1};
    kn_sim_ring_push(to, slot);
    s->stirred = true;
    s->report.issued = at;
    s->offer = at + s->m.issue;
}

static void account(kn_sim *s, const kn_sim_command *c)
{
    s->report.commands++;
    s->report.energy += c->pj;
    for (int i = 0; i < c->nranges; i++) {
        const kn_sim_range *r = &c->ranges[i];
        int64_t bytes = r->rows * r->bytes;
        *(r->write ? &s->report.local_written : &s->report.local_read) += bytes;
        s->report.energy += (double)bytes * s->m.spaces[r->space].pj_byte;
    }
}

static bool sane_events(const kn_sim *s, const int *ids, int n)
{
    bool ok = n >= 0 && n <= KN_SIM_MAX_EVENTS;
    for (int i = 0; ok && i < n; i++) {
        ok = ids[i] >= 0 && ids[i] < s->m.events;
    }
    return ok;
}

static bool sane_range(const kn_sim *s, const kn_sim_range *r)
{
    return r->space >= 0 && r->space < s->m.nspaces && r->address >= 0 && r->rows > 0 &&
           r->bytes > 0 && r->pitch >= 0 && r->steps >= 0;
}

static bool sane_transfer(const kn_sim_transfer *t)
{
    return t->rows == 0 || (t->rows > 0 && t->bytes > 0 && t->address >= 0 && t->pitch >= 0);
}

static bool sane(const kn_sim *s, const kn_sim_command *c)
{
    bool ok = c->pipe >= 0 && c->pipe < s->m.npipes && c->nranges >= 0 &&
              c->nranges <= KN_SIM_MAX_RANGES && c->startup >= 0 && c->cycles >= 0 &&
              c->latency >= 0 && sane_transfer(&c->dram);
    for (int i = 0; ok && i < c->nranges; i++) {
        ok = sane_range(s, &c->ranges[i]);
    }
    return ok && sane_events(s, c->waits, c->nwaits) && sane_events(s, c->sets, c->nsets);
}

bool kn_sim_issue(kn_sim *s, const kn_sim_command *c)
{
    if (!sane(s, c)) {
        assert(false);
        return false;
    }
    kn_sim_ring *to = s->m.front > 0 ? &s->front : &s->pipes[c->pipe].queue;
    while (full(to)) {
        if (!advance(s, to)) {
            s->report.deadlock = true;
            return false;
        }
    }
    take(s, to, c);
    account(s, c);
    if (s->hazards != NULL) {
        kn_sim_hazards_issue(s->hazards, c, &s->report);
    }
    return true;
}

static bool idle(const kn_sim *s)
{
    return s->free.n == s->free.cap;
}

bool kn_sim_finish(kn_sim *s)
{
    while (!idle(s)) {
        if (!advance(s, NULL)) {
            s->report.deadlock = !idle(s);
            break;
        }
    }
    s->now = kn_sim_max(s->now, s->memory.acknowledged);
    return !s->report.deadlock;
}

bool kn_sim_fence(kn_sim *s)
{
    if (!kn_sim_finish(s)) {
        return false;
    }
    s->offer = kn_sim_max(s->offer, s->now);
    if (s->hazards != NULL) {
        kn_sim_hazards_fence(s->hazards);
    }
    return true;
}

void kn_sim_report_get(const kn_sim *s, kn_sim_report *out)
{
    for (int i = 0; i < s->m.npipes; i++) {
        s->totals[i] = s->pipes[i].report;
    }
    *out = s->report;
    out->cycles = s->now;
    out->energy += (double)s->now * s->m.idle_pj;
    for (int i = 0; i < s->m.events; i++) {
        out->unanswered += (uint64_t)s->events[i];
    }
    if (s->hazards != NULL) {
        kn_sim_hazards_report(s->hazards, out);
    }
}
