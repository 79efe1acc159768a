/* Commands in the queues of pipes: when the next one starts, how it goes on, when it is done. */
#include "runtime/npu/sim/sim_internal.h"

static kn_sim_slot *slot_at(const kn_sim *s, const kn_sim_pipe_state *p, int64_t i)
{
    return &s->slots[kn_sim_ring_get(&p->queue, i)];
}

static void wake_at(kn_sim_pipe_state *p, int64_t when)
{
    p->wake = kn_sim_min(p->wake, when);
}

/* ---- Done ---- */

static void done(kn_sim *s, kn_sim_pipe_state *p, kn_sim_slot *e)
{
    for (int i = 0; i < e->c.nsets; i++) {
        s->events[e->c.sets[i]]++;
    }
    p->report.commands++;
    p->report.busy += e->c.cycles;
    p->report.occupied += e->unit - e->start;
    if (s->observer != NULL) {
        s->observer(s->user, &e->c, e->start, e->unit, e->release);
    }
    e->seq = 0;
}

int64_t kn_sim_pipe_release(const kn_sim *s, const kn_sim_pipe_state *p)
{
    return p->begun > (p->busy ? 1 : 0) ? slot_at(s, p, 0)->release : KN_SIM_NEVER;
}

bool kn_sim_pipe_retire(kn_sim *s, kn_sim_pipe_state *p)
{
    bool any = false;
    while (kn_sim_pipe_release(s, p) <= s->now) {
        done(s, p, slot_at(s, p, 0));
        kn_sim_ring_push(&s->free, kn_sim_ring_pop(&p->queue));
        p->begun--;
        any = true;
    }
    return any;
}

/* ---- May it start? ---- */

static bool conflict(const kn_sim_command *a, const kn_sim_command *b)
{
    int64_t at;
    for (int i = 0; i < a->nranges; i++) {
        for (int j = 0; j < b->nranges; j++) {
            const kn_sim_range *x = &a->ranges[i], *y = &b->ranges[j];
            if (x->space == y->space && (x->write || y->write) && kn_sim_ranges_meet(x, y, &at)) {
                return true;
            }
        }
    }
    return false;
}

/* An earlier command of the pipe that is not done and touches the same local bytes; -1: none. */
static int blocker_in(const kn_sim *s, const kn_sim_pipe_state *p, const kn_sim_slot *e)
{
    for (int64_t i = 0; i < p->queue.n; i++) {
        const kn_sim_slot *o = slot_at(s, p, i);
        if (o->seq > e->seq) {
            return -1;
        }
        if (o->release > s->now && conflict(&o->c, &e->c)) {
            return kn_sim_ring_get(&p->queue, i);
        }
    }
    return -1;
}

static void wait_for(kn_sim_pipe_state *p, const kn_sim_slot *o)
{
    p->starved = o->release == KN_SIM_NEVER;
    wake_at(p, o->release);
}

static bool interlocked(kn_sim *s, kn_sim_pipe_state *p, kn_sim_slot *e)
{
    for (int q = 0; e->blocker < 0 && q < s->m.npipes; q++) {
        if (&s->pipes[q] != p) {
            e->blocker = blocker_in(s, &s->pipes[q], e);
        }
    }
    if (e->blocker < 0) {
        return false;
    }
    e->blocker_seq = s->slots[e->blocker].seq;
    wait_for(p, &s->slots[e->blocker]);
    return true;
}

/* Forgets an earlier command that the entry waited for, once it is done. */
static bool still_blocked(const kn_sim *s, kn_sim_pipe_state *p, kn_sim_slot *e)
{
    const kn_sim_slot *o = e->blocker < 0 ? NULL : &s->slots[e->blocker];
    if (o != NULL && o->seq == e->blocker_seq && o->release > s->now) {
        wait_for(p, o);
        return true;
    }
    e->blocker = -1;
    return false;
}

static bool events_there(const kn_sim *s, const kn_sim_command *c)
{
    for (int i = 0; i < c->nwaits; i++) {
        if (s->events[c->waits[i]] == 0) {
            return false;
        }
    }
    return true;
}

static bool may_start(kn_sim *s, int pipe, kn_sim_pipe_state *p, kn_sim_slot *e)
{
    if (e->ready > s->now) {
        wake_at(p, e->ready);
        return false;
    }
    int64_t most = e->c.drain ? 1 : s->m.pipes[pipe].in_flight;
    if ((most > 0 && p->begun >= most) || !events_there(s, &e->c) || still_blocked(s, p, e)) {
        return false;
    }
    return s->m.order != KN_SIM_INTERLOCK || !interlocked(s, p, e);
}

/* ---- Running ---- */

static void start(kn_sim *s, kn_sim_pipe_state *p, kn_sim_slot *e)
{
    for (int i = 0; i < e->c.nwaits; i++) {
        s->events[e->c.waits[i]]--;
    }
    e->start = s->now;
    e->next = s->now;
    e->walk = s->now + e->c.startup;
    p->begun++;
    p->busy = true;
}

/* A command without a transfer. True while it has the unit. */
static bool run_unit(kn_sim *s, kn_sim_slot *e)
{
    if (e->next > s->now) {
        return true; /* how far ahead it takes ports must not turn on who else is looked at */
    }
    if (e->release == KN_SIM_NEVER) {
        if (kn_sim_banks_run(s, e)) {
            return true;
        }
        e->unit = e->walk + kn_sim_max(0, e->c.cycles - e->steps);
        e->release = e->unit + e->c.latency;
        e->next = e->unit;
    }
    return e->unit > s->now;
}

/* What has sets is done when all before it is acknowledged. */
static void settle(kn_sim_pipe_state *p, kn_sim_slot *e)
{
    p->settled = kn_sim_max(p->settled, e->acked);
    if (e->c.nsets > 0) {
        e->release = kn_sim_max(e->release, p->settled);
    }
}

/* True while the command that started last has the unit. */
static bool run_last(kn_sim *s, kn_sim_pipe_state *p)
{
    kn_sim_slot *e = slot_at(s, p, p->begun - 1);
    if (e->c.dram.rows > 0 ? kn_sim_memory_run(s, e) : run_unit(s, e)) {
        wake_at(p, e->next);
        return true;
    }
    settle(p, e);
    p->busy = false;
    p->finished = true;
    return false;
}

bool kn_sim_pipe_run(kn_sim *s, int pipe)
{
    kn_sim_pipe_state *p = &s->pipes[pipe];
    p->wake = KN_SIM_NEVER;
    p->finished = false;
    p->starved = false;
    while (!(p->busy && run_last(s, p)) && p->begun < p->queue.n) {
        kn_sim_slot *e = slot_at(s, p, p->begun);
        if (!may_start(s, pipe, p, e)) {
            break;
        }
        start(s, p, e);
    }
    int64_t release = kn_sim_pipe_release(s, p);
    wake_at(p, release);
    return release <= s->now;
}
