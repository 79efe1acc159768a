/* Bytes that two pipes touch, one writing, with nothing that orders the two commands.

   Program order alone decides, not the times of this run. Each pipe has a vector clock: how many
   commands of every other pipe are done before its next one starts. A set carries its pipe's clock
   (that counts the pipe's own commands so far), a wait joins it. A new command is compared with
   those commands of other pipes that its clock does not cover, the last WINDOW of each.

   With interlocks, commands that touch the same local bytes are ordered, and what was known to the
   earlier is known to the later; but one that writes DRAM lets go before its data is there, so only
   a fence orders DRAM after it. */
#include "runtime/npu/sim/sim_internal.h"

enum {
    WINDOW = 256,  /* commands of a pipe that later ones are compared with */
    IN_FLIGHT = 64 /* clocks that an event holds */
};

typedef struct {
    uint64_t tag;
    int n;
    kn_sim_range ranges[KN_SIM_MAX_RANGES + 1]; /* DRAM's among them */
    bool writes_dram;
    uint64_t *clock;
} record;

typedef struct {
    uint64_t *clocks; /* [IN_FLIGHT][npipes] */
    uint64_t set, waited;
} event;

struct kn_sim_hazards {
    int npipes;
    kn_sim_order order;
    uint64_t *clocks; /* [pipe][other] */
    uint64_t *counts; /* [pipe]: commands so far */
    record **records; /* [pipe][WINDOW] */
    event *events;
    kn_sim_hazard found[KN_SIM_MAX_HAZARDS];
};

kn_sim_hazards *kn_sim_hazards_create(kn_arena *a, const kn_sim_machine *m)
{
    kn_sim_hazards *h = KN_NEW(a, kn_sim_hazards);
    h->npipes = m->npipes;
    h->order = m->order;
    h->clocks = KN_ARRAY(a, uint64_t, m->npipes * m->npipes);
    h->counts = KN_ARRAY(a, uint64_t, m->npipes);
    h->records = KN_ARRAY(a, record *, m->npipes);
    h->events = KN_ARRAY(a, event, kn_sim_max(m->events, 1));
    for (int e = 0; e < m->events; e++) {
        h->events[e].clocks = KN_ARRAY(a, uint64_t, IN_FLIGHT * m->npipes);
    }
    for (int p = 0; p < m->npipes; p++) {
        h->records[p] = KN_ARRAY(a, record, WINDOW);
        for (int i = 0; i < WINDOW; i++) {
            h->records[p][i].clock = KN_ARRAY(a, uint64_t, m->npipes);
        }
    }
    return h;
}

static uint64_t *clock_of(const kn_sim_hazards *h, int pipe)
{
    return &h->clocks[pipe * h->npipes];
}

static void join(const kn_sim_hazards *h, uint64_t *into, const uint64_t *from)
{
    for (int i = 0; i < h->npipes; i++) {
        into[i] = into[i] > from[i] ? into[i] : from[i];
    }
}

/* ---- Events ---- */

static void wait_for(kn_sim_hazards *h, event *e, int pipe)
{
    if (e->waited < e->set) {
        join(h, clock_of(h, pipe), &e->clocks[e->waited % IN_FLIGHT * (uint64_t)h->npipes]);
        e->waited++;
    }
}

static void set(kn_sim_hazards *h, event *e, int pipe, kn_sim_report *report)
{
    uint64_t *clock = &e->clocks[e->set % IN_FLIGHT * (uint64_t)h->npipes];
    if (e->set - e->waited == IN_FLIGHT) {
        report->unchecked++; /* the oldest is lost: its wait will know too much */
        e->waited++;
    }
    memcpy(clock, clock_of(h, pipe), (size_t)h->npipes * sizeof *clock);
    clock[pipe] = h->counts[pipe];
    e->set++;
}

/* ---- Comparing ---- */

static void make_record(record *r, const kn_sim_command *c)
{
    r->tag = c->tag;
    r->n = c->nranges;
    memcpy(r->ranges, c->ranges, (size_t)c->nranges * sizeof *c->ranges);
    r->writes_dram = c->dram.rows > 0 && c->dram.write;
    if (c->dram.rows > 0) {
        const kn_sim_transfer *t = &c->dram;
        r->ranges[r->n++] =
            (kn_sim_range){KN_SIM_DRAM, t->address, t->rows, t->bytes, t->pitch, t->write, 0};
    }
}

/* The first pair of ranges, one of them written, that share a byte: of DRAM, or of local spaces. */
static const kn_sim_range *shared(const record *a, const record *b, bool dram, int64_t *at)
{
    for (int i = 0; i < a->n; i++) {
        for (int j = 0; j < b->n; j++) {
            const kn_sim_range *x = &a->ranges[i], *y = &b->ranges[j];
            if ((x->space == KN_SIM_DRAM) == dram && (x->write || y->write) &&
                kn_sim_ranges_meet(x, y, at)) {
                return x;
            }
        }
    }
    return NULL;
}

typedef struct {
    kn_sim_hazards *h;
    kn_sim_report *report;
    const record *r; /* the new command's */
    int pipe;
} check;

static void add(const check *k, const record *o, int other, const kn_sim_range *range, int64_t at)
{
    if (k->report->hazards < KN_SIM_MAX_HAZARDS) {
        k->h->found[k->report->hazards] = (kn_sim_hazard){.first = o->tag,
                                                          .second = k->r->tag,
                                                          .first_pipe = other,
                                                          .second_pipe = k->pipe,
                                                          .space = range->space,
                                                          .address = at};
    }
    k->report->hazards++;
}

/* The oldest command of the other pipe that the new one may run beside. */
static uint64_t oldest(const check *k, int other)
{
    uint64_t from = clock_of(k->h, k->pipe)[other], n = k->h->counts[other];
    if (n > WINDOW && from < n - WINDOW) {
        k->report->unchecked++;
        return n - WINDOW;
    }
    return from;
}

static const record *record_at(const kn_sim_hazards *h, int pipe, uint64_t i)
{
    return &h->records[pipe][i % WINDOW];
}

/* Interlocks: the latest command of the other pipe that the new one waits for. */
static void join_interlocks(const check *k, int other)
{
    int64_t at;
    uint64_t *clock = clock_of(k->h, k->pipe);
    for (uint64_t i = k->h->counts[other], from = oldest(k, other); i > from; i--) {
        const record *o = record_at(k->h, other, i - 1);
        if (!o->writes_dram && shared(o, k->r, false, &at) != NULL) {
            join(k->h, clock, o->clock);
            clock[other] = i;
            return;
        }
    }
}

static void compare(const check *k, int other)
{
    int64_t at;
    for (uint64_t i = oldest(k, other), n = k->h->counts[other]; i < n; i++) {
        const record *o = record_at(k->h, other, i);
        const kn_sim_range *range = shared(o, k->r, true, &at);
        if (range == NULL && k->h->order == KN_SIM_EVENTS) {
            range = shared(o, k->r, false, &at);
        }
        if (range != NULL) {
            add(k, o, other, range, at);
        }
    }
}

void kn_sim_hazards_issue(kn_sim_hazards *h, const kn_sim_command *c, kn_sim_report *report)
{
    record *r = &h->records[c->pipe][h->counts[c->pipe] % WINDOW];
    make_record(r, c);
    check k = {h, report, r, c->pipe};
    for (int i = 0; i < c->nwaits; i++) {
        wait_for(h, &h->events[c->waits[i]], c->pipe);
    }
    for (int q = 0; q < h->npipes && h->order == KN_SIM_INTERLOCK; q++) {
        if (q != c->pipe) {
            join_interlocks(&k, q);
        }
    }
    for (int q = 0; q < h->npipes; q++) {
        if (q != c->pipe) {
            compare(&k, q);
        }
    }
    memcpy(r->clock, clock_of(h, c->pipe), (size_t)h->npipes * sizeof *r->clock);
    h->counts[c->pipe]++;
    for (int i = 0; i < c->nsets; i++) {
        set(h, &h->events[c->sets[i]], c->pipe, report);
    }
}

void kn_sim_hazards_fence(kn_sim_hazards *h)
{
    for (int p = 0; p < h->npipes; p++) {
        memcpy(clock_of(h, p), h->counts, (size_t)h->npipes * sizeof *h->counts);
    }
}

void kn_sim_hazards_report(const kn_sim_hazards *h, kn_sim_report *out)
{
    out->hazard = h->found;
}
