/* What the files of the timing engine share. Time moves in kn_sim_advance (sim.c) from one moment
   at which anything can happen to the next; pipes.c says what happens to commands, memory.c to
   requests, banks.c to ports; hazards.c looks at program order alone. */
#ifndef KN_RUNTIME_NPU_SIM_INTERNAL_H
#define KN_RUNTIME_NPU_SIM_INTERNAL_H

#include "runtime/npu/sim/sim.h"

#define KN_SIM_NEVER INT64_MAX

/* A command from being taken to being done. */
typedef struct {
    kn_sim_command c;
    uint64_t seq;  /* in program order, from 1 */
    int64_t ready; /* earliest start */
    int64_t start;
    int64_t unit;    /* when it left the unit */
    int64_t release; /* when it is done; NEVER while that is not known */
    int64_t acked;   /* of a write: when the last acknowledgement so far arrives */
    int64_t next;    /* when it goes on: its next request or accesses, or the end */
    int64_t walk;    /* cycle of its next access to ports; of a transfer, that its row is ready */
    int64_t row, at; /* the next request: row and byte in it */
    int64_t floor;   /* the next step is not over before */
    int64_t step;    /* the next access to ports */
    int64_t steps;   /* of those */
    int blocker;     /* slot of an earlier command that it was last found to wait for, or -1 */
    uint64_t blocker_seq;
} kn_sim_slot;

/* A ring of slots' numbers. */
typedef struct {
    int *at;
    int64_t cap, head, n;
} kn_sim_ring;

typedef struct {
    kn_sim_ring queue;
    int64_t begun;   /* of the queue's first entries, how many have started */
    bool busy;       /* the last of those still has the unit */
    bool finished;   /* when last looked at, one left the unit */
    bool starved;    /* ..., it had to wait for a command of which the end was not known */
    int64_t wake;    /* when it has to be looked at again */
    int64_t settled; /* when all that it has finished is acknowledged */
    kn_sim_pipe_report report;
} kn_sim_pipe_state;

/* When requests come back: the last `cap` of them, in order. */
typedef struct {
    int64_t *done;
    int64_t cap, at;
} kn_sim_window;

typedef struct {
    kn_sim_window reads, writes;
    int64_t tick_grain;   /* ticks that a channel takes for a grain */
    int grain_shift;      /* log2 of a grain */
    int64_t there, back;  /* ticks at which the channels are free */
    int64_t horizon;      /* cycles from a read's leaving to its data, at least */
    int64_t acknowledged; /* cycle of the last acknowledgement */
} kn_sim_memory;

typedef struct {
    int64_t from, to;
} kn_sim_span;

/* A bank: when arriving data has its port, and when a pipe last had. */
typedef struct {
    kn_sim_span *spans;
    int64_t cap, head, n;
    int64_t last, used; /* the last cycle that a pipe took, and how many ports in it */
} kn_sim_bank;

typedef struct kn_sim_hazards kn_sim_hazards;

struct kn_sim {
    kn_sim_machine m;
    int64_t now;
    int64_t offer; /* when the next command can be offered */
    uint64_t seq;
    kn_sim_slot *slots;
    kn_sim_ring free, front;
    int64_t front_next; /* when the FIFO's head can move on */
    kn_sim_pipe_state *pipes;
    kn_sim_memory memory;
    kn_sim_bank **banks; /* [space][bank] */
    int64_t *events;
    kn_sim_hazards *hazards; /* NULL: not looked for */
    kn_sim_observer *observer;
    void *user;
    bool stirred; /* something is done or new: all pipes have to be looked at, not only those due */
    kn_sim_report report;
    kn_sim_pipe_report *totals;
};

/* Rings. */
void kn_sim_ring_init(kn_arena *a, kn_sim_ring *r, int64_t cap);
int kn_sim_ring_pop(kn_sim_ring *r);

static inline int kn_sim_ring_get(const kn_sim_ring *r, int64_t i)
{
    int64_t at = r->head + i;
    return r->at[at < r->cap ? at : at - r->cap];
}

static inline void kn_sim_ring_push(kn_sim_ring *r, int x)
{
    int64_t at = r->head + r->n++;
    r->at[at < r->cap ? at : at - r->cap] = x;
}

static inline int64_t kn_sim_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t kn_sim_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* pipes.c: drops what is done at s->now; whether there was any. */
bool kn_sim_pipe_retire(kn_sim *s, kn_sim_pipe_state *p);
/* When the first command of the queue is done, if that has left the unit; else NEVER. */
int64_t kn_sim_pipe_release(const kn_sim *s, const kn_sim_pipe_state *p);
/* Starts and continues what can be, sets the pipe's wake. True when something is done already. */
bool kn_sim_pipe_run(kn_sim *s, int pipe);

/* memory.c */
void kn_sim_memory_init(kn_arena *a, kn_sim *s);
/* Sends what requests of the transfer can leave now; e->next is when the next one may. False once
   all are sent: then e->release and e->acked are known. */
bool kn_sim_memory_run(kn_sim *s, kn_sim_slot *e);

/* banks.c */
void kn_sim_banks_init(kn_arena *a, kn_sim *s);
/* Data for an address arrives, a row a cycle, the last before cycle `end`. */
void kn_sim_banks_arrive(kn_sim *s, int space, int64_t address, int64_t bytes, int64_t end);
/* Goes through the command's accesses as far as arriving data is known; e->next is when it goes on.
   False once there is nothing left. */
bool kn_sim_banks_run(kn_sim *s, kn_sim_slot *e);

/* ranges.c: whether two ranges share a byte; *at is one then. */
bool kn_sim_ranges_meet(const kn_sim_range *a, const kn_sim_range *b, int64_t *at);

/* hazards.c: all in program order. */
kn_sim_hazards *kn_sim_hazards_create(kn_arena *a, const kn_sim_machine *m);
void kn_sim_hazards_issue(kn_sim_hazards *h, const kn_sim_command *c, kn_sim_report *report);
void kn_sim_hazards_fence(kn_sim_hazards *h);
void kn_sim_hazards_report(const kn_sim_hazards *h, kn_sim_report *out);

#endif
