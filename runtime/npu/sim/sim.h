/* The timing engine of the simulator: how many cycles a stream of commands takes on a machine that
   is given as plain data. It moves no byte and knows no compiler and no target by name: whoever
   performs the commands (an interpreter, a replayed trace) tells the engine of each in program
   order, and asks for a report at the end.

     kn_sim *s = kn_sim_create(arena, &machine);
     for each command: kn_sim_issue(s, &command);
     kn_sim_finish(s);
     kn_sim_report_get(s, &report);

   Units: times in cycles, sizes in bytes, energy in picojoules. Same machine and commands, same
   numbers. Memory depends on the machine, not on the number of commands. docs/simulator.md says
   what is modelled and what is not. */
#ifndef KN_RUNTIME_NPU_SIM_H
#define KN_RUNTIME_NPU_SIM_H

#include "support/arena.h"

enum {
    KN_SIM_MAX_RANGES = 8,   /* of a command */
    KN_SIM_MAX_EVENTS = 8,   /* that one command waits for, or sets */
    KN_SIM_MAX_HAZARDS = 16, /* reported in full; the others are counted */
    KN_SIM_DRAM = -1         /* the space of DRAM in a hazard */
};

/* ---- The machine ---- */

/* An on-chip memory. The bank of an address is address / interleave % banks. */
typedef struct {
    const char *name;
    int64_t banks, interleave;
    int64_t row;   /* bytes that one access to a bank moves */
    int64_t ports; /* accesses to a bank in one cycle; 0: never in the way */
    double pj_byte;
} kn_sim_space;

/* Main memory: requests, each within one line, that are answered in their order. */
typedef struct {
    double bandwidth; /* bytes a cycle */
    int64_t latency;  /* cycles of the memory */
    int64_t path;     /* cycles to the memory and back, besides */
    int64_t line;     /* a request never crosses a multiple of it; a power of two */
    int64_t grain;    /* requests move whole ones: a beat of the bus, or the line; a power of two */
    int64_t reads;    /* requests outstanding at most */
    int64_t writes, line_writes; /* the same; those of a whole line (0: as `writes`) */
    /* Two channels, there (requests and written data) and back (read data, acknowledgements of one
       grain); otherwise one bus for read and written data. */
    bool duplex;
    double pj_byte;
} kn_sim_dram;

/* A unit that takes commands in order. A command keeps its place in the queue until it is done. */
typedef struct {
    const char *name;
    int64_t queue;     /* places */
    int64_t in_flight; /* commands begun and not done, at most; 0: no limit but the queue */
} kn_sim_pipe;

typedef enum {
    KN_SIM_INTERLOCK, /* commands of two pipes that touch the same local bytes wait in order */
    KN_SIM_EVENTS     /* nothing waits but by events: counters that a set raises, a wait lowers */
} kn_sim_order;

typedef struct {
    int nspaces, npipes;
    const kn_sim_space *spaces;
    const kn_sim_pipe *pipes;
    kn_sim_dram dram;
    int64_t issue;         /* cycles from one command offered to the next, at least 1 */
    int64_t front;         /* places of the in-order FIFO that all pipes share; 0: there is none */
    int64_t front_latency; /* cycles from being taken to the earliest start */
    kn_sim_order order;
    int events;     /* ids 0 .. events - 1, with KN_SIM_EVENTS */
    bool check;     /* look for hazards */
    double idle_pj; /* a cycle, whatever runs */
} kn_sim_machine;

/* ---- A command ---- */

/* Bytes of an on-chip space: rows of `bytes`, `pitch` apart. */
typedef struct {
    int space;
    int64_t address, rows, bytes, pitch;
    bool write;
    /* It wants a port of its bank in each of this many first cycles, a row (or the same share of
       the bytes) at a time; 0: ports do not matter. Ranges of one command go in step. Data that
       comes from DRAM claims its ports when it arrives: say 0. */
    int64_t steps;
} kn_sim_range;

/* Rows of `bytes`, `pitch` apart, from or to DRAM; rows 0: none. */
typedef struct {
    int64_t address, rows, bytes, pitch;
    bool write;
} kn_sim_transfer;

/* What one command does to its pipe. It starts when all earlier ones of the pipe have left the
   unit, what it waits for is there, and no interlock holds it. Then, after `startup` cycles,
   - without a transfer, the unit is taken for `cycles` (more when ports are);
   - when it reads DRAM, its first request leaves, that of row i not before i / rows of `cycles`
     more;
   - when it writes DRAM, row i has been read, and is sent, after (i + 1) / rows of `cycles`.
   The unit is free after the cycles or with the last request. The command is done `latency` cycles
   after that, or after its last data arrived; one that writes DRAM is done when all is sent (only a
   fence waits for the last acknowledgement, and `latency` on top). */
typedef struct {
    int pipe;
    uint64_t tag; /* the caller's, for hazards and traces */
    bool drain;   /* starts once all earlier ones of the pipe are done */
    int64_t startup, cycles, latency;
    kn_sim_transfer dram;
    int nranges, nwaits, nsets; /* waits differ from one another */
    kn_sim_range ranges[KN_SIM_MAX_RANGES];
    int waits[KN_SIM_MAX_EVENTS]; /* lowered by one each before the start */
    int sets[KN_SIM_MAX_EVENTS];  /* raised by one each when it and all before it on the pipe are
                                     done, acknowledgements included */
    double pj;                    /* besides the bytes moved */
} kn_sim_command;

/* ---- Results ---- */

typedef struct {
    uint64_t commands;
    int64_t busy;     /* the commands' own cycles */
    int64_t occupied; /* from start to the unit's being free: waiting for memory and ports, too */
} kn_sim_pipe_report;

/* Two commands of two pipes, `first` earlier in the program, touch `address` of `space`, one of
   them writing, and nothing orders them. */
typedef struct {
    uint64_t first, second; /* their tags */
    int first_pipe, second_pipe;
    int space; /* or KN_SIM_DRAM */
    int64_t address;
} kn_sim_hazard;

typedef struct {
    int64_t cycles; /* as far as the machine has run; all of it after kn_sim_finish */
    int64_t issued; /* when the last command was taken */
    uint64_t commands;
    int64_t dram_read, dram_written;   /* bytes moved, whole grains */
    int64_t reads, writes;             /* requests */
    int64_t local_read, local_written; /* bytes of on-chip spaces */
    int64_t port_stalls;               /* cycles that commands waited for ports */
    double energy;                     /* pJ */
    const kn_sim_pipe_report *pipes;   /* one a pipe of the machine; alive as long as the engine */
    bool deadlock;                     /* a wait that no set answers */
    uint64_t unanswered;               /* sets that no wait took */
    uint64_t hazards;                  /* pairs found */
    const kn_sim_hazard *hazard;       /* the first KN_SIM_MAX_HAZARDS of them */
    uint64_t unchecked; /* checks cut short: two pipes had not met for too many commands */
} kn_sim_report;

typedef struct kn_sim kn_sim;

/* Lives in the arena. Raises KN_INVALID for a machine that makes no sense. Strings and tables of
   the machine are borrowed. */
kn_sim *kn_sim_create(kn_arena *a, const kn_sim_machine *m);

/* The next command in program order. Runs the machine until it can be taken. False when it never
   can: a deadlock, or (a defect of the caller; debug builds assert) a pipe, space, event or size
   that the machine has not. */
bool kn_sim_issue(kn_sim *s, const kn_sim_command *c);

/* The next command is not offered before all earlier ones are done and acknowledged. */
bool kn_sim_fence(kn_sim *s);

/* Runs until all is done and acknowledged; more commands may follow. False on a deadlock. */
bool kn_sim_finish(kn_sim *s);

void kn_sim_report_get(const kn_sim *s, kn_sim_report *out);

/* Called as each command is done, in the order of its pipe: its times of start, of the unit's being
   free, and of being done. */
typedef void kn_sim_observer(void *user, const kn_sim_command *c, int64_t start, int64_t unit,
                             int64_t done);
void kn_sim_observe(kn_sim *s, kn_sim_observer *fn, void *user);

#endif
