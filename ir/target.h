/* A target: what the compiler knows of one NPU, read from its JSON. Memory spaces, pipes, and
   instructions, whose meaning is index notation. Nothing else in Kiln knows a target. Schema:
   docs/target.md. */
#ifndef KN_IR_TARGET_H
#define KN_IR_TARGET_H

#include "ir/loop.h"
#include "ir/notation.h"

typedef enum {
    KN_SPACE_DRAM,  /* main memory: a program's inputs, weights, outputs and workspace; no limit */
    KN_SPACE_LOCAL, /* the core pipe's scalars and small arrays; no limit */
    KN_SPACE_SRAM   /* on chip, of `bytes` */
} kn_space_kind;

typedef struct kn_space {
    const char *name; /* interned */
    kn_space_kind kind;
    int64_t bytes;              /* SRAM only */
    int64_t align;              /* of whatever is allocated in it, bytes */
    int64_t banks, row;         /* SRAM: row in bytes, of a bank */
    double bandwidth;           /* bytes a cycle; 0: not said */
    int64_t latency;            /* cycles */
    int64_t burst, outstanding; /* DRAM: bytes moved at once, reads under way */
    double pj_byte;
} kn_space;

typedef struct {
    const char *name;
    int64_t queue; /* commands that wait in it */
    int nreach;    /* the core pipe: the spaces that plain statements may touch */
    const kn_space **reach;
} kn_pipe;

typedef enum { KN_EVENT_NONE, KN_EVENT_INTERLOCK, KN_EVENT_FLAG, KN_EVENT_COUNTER } kn_event_kind;

/* A tensor of an instruction's semantics. */
typedef struct {
    const char *name;
    const kn_space *space;
    kn_dtype type;
    const char
        *pitch; /* the scalar argument with the elements from one row to the next, or NULL: dense */
    bool result; /* stands after `->` (perhaps as an operand, too) */
} kn_inst_operand;

typedef struct {
    const char
        *name;     /* of calls; one row of the JSON with `for` makes several: NAME_i8, NAME_f32 */
    kn_dtype type; /* what T is in it; KN_UNTYPED when there is no `for` */
    const char *c; /* the C function that performs it on the real machine, or NULL */
    const kn_notation *semantics;
    const kn_pipe *pipe;
    int noperands; /* operands in the order of the notation, then results that are no operands */
    kn_inst_operand *operands;
    int nextents; /* sizes, in the order of the notation, with their bounds */
    kn_size *extents;
    const kn_expr *cycles; /* that it occupies its pipe for, over the extents */
    const kn_expr *pj;     /* energy apart from that of the bytes moved, or NULL */
    int64_t latency;       /* cycles from start to effect beyond those */
    /* What calls name: parameters are the extents, the pitches, the scalar attributes of the
     * notation, then the operands. */
    kn_func *func;
} kn_instruction;

struct kn_target {
    const char *name, *file;
    double clock_mhz, idle_w;
    int nspaces, npipes, ninstructions;
    kn_space *spaces;
    kn_pipe *pipes;
    kn_event_kind events;
    int64_t event_ids;
    kn_instruction *instructions;
    const kn_space *ddr; /* the space of kind DRAM named ddr */
    const kn_pipe *core;
    kn_module *library; /* the instructions' functions */
};

enum {
    KN_TARGET_MAX_BYTES = 1 << 20, /* of the JSON */
    KN_TARGET_MAX_SPACES = 32,
    KN_TARGET_MAX_PIPES = 32,
    KN_TARGET_MAX_INSTRUCTIONS = 512,
    KN_TARGET_MAX_OPERANDS = 16
};

/* Reads and checks all of it. Raises KN_INVALID with the JSON path of the first mistake. `file` is
 * for messages. */
const kn_target *kn_target_parse(kn_arena *a, const char *file, const char *text, size_t n);

const kn_space *kn_target_space(const kn_target *t, const char *name); /* NULL when there is none */
const kn_instruction *kn_target_instruction(const kn_target *t, const char *name);
/* True when plain statements, which run on the core pipe, may touch the space. */
bool kn_target_reaches(const kn_target *t, const char *space);

/* Makes the module one for the target: its name, its library, and what it is verified and
 * interpreted by. */
void kn_target_attach(const kn_target *t, kn_module *m);

#endif
