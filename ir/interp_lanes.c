/* The body of an innermost loop as a block: straight code, its one store last. Each instruction is
   translated with its registers: what the body computes becomes lanes, what moves along evenly
   becomes lanes where a value is wanted and stays a register with a step where an element is. */
#include "ir/interp_internal.h"

typedef struct {
    kn_compiler *c;
    kn_lanes *out;
    kn_words code;
    int nlanes;
    KN_VEC(int) lanes; /* by register: its lanes plus one, 0: none */
    KN_VEC(kn_access) loads;
    int zero;
    bool ok, stored;
} translation;

/* ---- Operands ---- */

static int new_lanes(translation *t, int reg)
{
    while (t->lanes.n <= reg)
        kn_push(t->c->arena, &t->lanes, 0);
    t->lanes.at[reg] = ++t->nlanes;
    return ~(t->nlanes - 1);
}

static kn_ramp *ramp_of(const translation *t, int reg)
{
    for (int i = 0; i < t->out->nramps; i++) {
        if (t->out->ramps[i].reg == reg)
            return &t->out->ramps[i];
    }
    return NULL;
}

/* A register as the operand of a computation. */
static int operand(translation *t, int reg)
{
    if (reg < t->lanes.n && t->lanes.at[reg])
        return ~(t->lanes.at[reg] - 1);
    kn_ramp *ramp = ramp_of(t, reg);
    if (!ramp)
        return reg;
    int lanes = new_lanes(t, reg);
    ramp->lanes = ~lanes;
    return lanes;
}

/* A register as an element's number. */
static kn_access access_of(translation *t, int buffer, int reg, kn_dtype type)
{
    kn_access a = {.buffer = buffer, .element = reg, .step = t->zero, .type = type};
    const kn_ramp *ramp = ramp_of(t, reg);
    if (ramp)
        a.step = ramp->step;
    else
        a.element = operand(t, reg);
    return a;
}

/* ---- Instructions ---- */

static void put(translation *t, int32_t word)
{
    kn_push(t->c->arena, &t->code, word);
}

static int load(translation *t, const int32_t *pc)
{
    kn_access a = access_of(t, pc[2], pc[3], (kn_dtype)(pc[0] - KN_I_LOAD));
    kn_push(t->c->arena, &t->loads, a);
    int d = new_lanes(t, pc[1]);
    KN_EMIT(t->c, &t->code, pc[0], d, a.buffer, a.element, a.step);
    return 4;
}

static int load_if(translation *t, const int32_t *pc)
{
    kn_access a = access_of(t, pc[2], pc[3], (kn_dtype)(pc[0] - KN_I_LOAD_IF));
    int cond = operand(t, pc[4]);
    kn_push(t->c->arena, &t->loads, a);
    int d = new_lanes(t, pc[1]);
    KN_EMIT(t->c, &t->code, pc[0], d, a.buffer, a.element, a.step, cond);
    return 5;
}

static int store(translation *t, const int32_t *pc, int values)
{
    kn_access a = access_of(t, pc[1], pc[2], (kn_dtype)((pc[0] - KN_I_STORE) % KN_DTYPE_COUNT));
    t->out->store = a;
    t->stored = true;
    KN_EMIT(t->c, &t->code, pc[0], a.buffer, a.element, a.step);
    for (int i = 0; i < values; i++)
        put(t, operand(t, pc[3 + i]));
    return 3 + values;
}

/* d and operands. */
static int compute(translation *t, const int32_t *pc, int operands)
{
    int32_t taken[3] = {0};
    for (int i = 0; i < operands; i++)
        taken[i] = operand(t, pc[2 + i]);
    put(t, pc[0]);
    put(t, new_lanes(t, pc[1]));
    kn_words_put(t->c, &t->code, taken, operands);
    return 2 + operands;
}

/* Operands and a site, which the single iteration will name. */
static int test(translation *t, const int32_t *pc, int operands)
{
    put(t, pc[0]);
    for (int i = 0; i < operands; i++)
        put(t, operand(t, pc[1 + i]));
    return 2 + operands;
}

/* Translates one instruction and returns its length. */
static int translate(translation *t, const int32_t *pc)
{
    int opcode = pc[0];
    if (opcode >= KN_I_SCALAR)
        return compute(t, pc,
                       kn_scalar_get((kn_scalar)((opcode - KN_I_SCALAR) / KN_DTYPE_COUNT))->arity);
    if (opcode >= KN_I_STORE_PRODUCT)
        return store(t, pc, 2);
    if (opcode >= KN_I_STORE)
        return store(t, pc, 1);
    if (opcode >= KN_I_LOAD_IF)
        return load_if(t, pc);
    if (opcode >= KN_I_LOAD)
        return load(t, pc);
    if (opcode >= KN_I_WRAP || (opcode >= KN_I_INT_F32 && opcode <= KN_I_F64_BOOL))
        return compute(t, pc, 1);
    switch (opcode) {
    case KN_I_INDEX_ADD:
    case KN_I_INDEX_SUB:
    case KN_I_INDEX_MUL: return compute(t, pc, 2);
    case KN_I_SELECT: return compute(t, pc, 3);
    case KN_I_INSIDE: return test(t, pc, 2);
    case KN_I_INSIDE_IF: return test(t, pc, 3);
    case KN_I_CHECK: return test(t, pc, 1);
    default: break;
    }
    t->ok = false;
    return 1;
}

static void set_ramps(translation *t, const kn_inner *in, int var, int step)
{
    kn_lanes *out = t->out;
    out->nramps = 1 + in->pointers.n;
    out->ramps = KN_ARRAY(t->c->interp->arena, kn_ramp, out->nramps);
    out->ramps[0] = (kn_ramp){var, step, -1};
    for (int i = 0; i < in->pointers.n; i++)
        out->ramps[1 + i] = (kn_ramp){in->pointers.at[i].reg, in->pointers.at[i].increment, -1};
}

static void finish(const translation *t)
{
    kn_arena *a = t->c->interp->arena;
    kn_lanes *out = t->out;
    out->n = t->code.n;
    out->at = KN_ARRAY(a, int32_t, out->n);
    memcpy(out->at, t->code.at, (size_t)out->n * sizeof *out->at);
    out->nloads = t->loads.n;
    out->loads = KN_ARRAY(a, kn_access, out->nloads);
    for (int i = 0; i < out->nloads; i++)
        out->loads[i] = t->loads.at[i];
    out->lanes = KN_ARRAY(a, kn_slot, t->nlanes * KN_LANES);
}

int kn_compile_block(kn_compiler *c, const kn_words *body, const kn_inner *in, int var, int step)
{
    kn_lanes out = {0};
    translation t = {.c = c, .out = &out, .zero = kn_reg_int(c, 0), .ok = true};
    set_ramps(&t, in, var, step);
    for (int i = 0; t.ok && i < body->n;) {
        if (t.stored)
            return -1;
        i += translate(&t, body->at + i);
    }
    if (!t.ok || !t.stored)
        return -1;
    finish(&t);
    kn_push(c->arena, &c->blocks, out);
    return c->blocks.n - 1;
}
