/* The interpreter's flat form, shared by its compiler (interp_emit.c, interp_expr.c,
   interp_access.c, interp_compile.c) and its machine (interp.c).

   A function becomes one array of 32-bit words: an opcode, then operands, which are numbers of
   registers but where a comment says otherwise. A register is a slot of 64 bits that holds a value
   in its native form: integers and index sign- or zero-extended, bool 0 or 1, f32 as float, f64 as
   double, f16 and bf16 as their bits. A buffer takes three registers: the address, the number of
   4-bit elements to skip after it (0 for other types), the number of elements. Jumps are relative
   to the jumping instruction, so that code can be assembled from pieces.

   Functions do not recurse, so each has its registers for good: parameters first, in order, and
   constants that are never written. */
#ifndef KN_IR_INTERP_INTERNAL_H
#define KN_IR_INTERP_INTERNAL_H

#include "ir/loop_internal.h"

typedef union {
    int64_t i;
    uint64_t u;
    double d;
    float f;
    unsigned char *p;
} kn_slot;

enum { KN_BUFFER_REGS = 3 };

/* Opcodes. Those with `+ type` take KN_DTYPE_COUNT numbers each. */
enum {
    KN_I_END,
    KN_I_JUMP,  /* offset */
    KN_I_JZERO, /* cond, offset: jumps when cond is 0 */
    KN_I_MOVE,  /* d, s */
    KN_I_FOR,   /* var, lo, hi, offset: var = lo; jumps when there is no iteration */
    KN_I_NEXT,  /* var, hi, step, offset, n, n x (pointer, increment): the next iteration, which
                   jumps */
    KN_I_NEXT1, /* the same with n = 1, 2, 3 */
    KN_I_NEXT2,
    KN_I_NEXT3,
    KN_I_BLOCK,  /* var, hi, step, number of the block, offset: all iterations, then jumps; or what
                    is left is to be run singly */
    KN_I_GUARD,  /* first, slope, span, extent, offset: jumps unless first and first + slope * span
                    are in 0:extent */
    KN_I_INSIDE, /* sub, extent, site: fails unless sub is in 0:extent */
    KN_I_INSIDE_IF, /* sub, extent, cond, site: the same if cond */
    KN_I_EXTENTS, /* d, type, site, n, n x extent: d = their product; fails when one is negative or
                     all too large */
    KN_I_FIT, /* buffer, size, site: fails unless it has that many elements; then it has no more */
    KN_I_BOUND, /* scalar, lo, hi, site: fails unless lo <= scalar <= hi */
    KN_I_ALLOC, /* buffer, size, number of the block, type */
    KN_I_VIEW,  /* buffer, source, offset, size, type, site: fails unless it fits */
    KN_I_REST,  /* buffer, source, offset, type: from an element on, which is inside */
    KN_I_CALL,  /* number of the function, n, n x register to copy to the callee's first n, site */
    KN_I_SPACE_ALLOC, /* buffer, size, type, space, offset (-1: none), site: in an on-chip space of
                         a known target */
    KN_I_SPACE_DROP,  /* buffer, space: ends it, and what was allocated later */
    KN_I_READ,  /* buffer, element, cond, type, space, site: if cond, fails when the element was
                   never written */
    KN_I_WRITE, /* buffer, element, type, space: it is written now */
    KN_I_CHECK, /* cond, site */

    /* Index arithmetic on names alone, which may have moved out of a loop: fails when it leaves 64
       bits. */
    KN_I_INDEX_ADD, /* d, x, y */
    KN_I_INDEX_SUB,
    KN_I_INDEX_MUL,

    /* d, x: conversions */
    KN_I_INT_F32,
    KN_I_U64_F32,
    KN_I_INT_F64,
    KN_I_U64_F64,
    KN_I_F16_F32,
    KN_I_BF16_F32,
    KN_I_F64_F32,
    KN_I_F32_F64,
    KN_I_F32_F16,
    KN_I_F64_F16,
    KN_I_F32_BF16,
    KN_I_F32_BITS,
    KN_I_BITS_F32,
    KN_I_F64_BITS,
    KN_I_BITS_F64,
    KN_I_INT_BOOL,
    KN_I_F64_BOOL,
    KN_I_SELECT, /* d, cond, x, y */
    KN_I_CONST,  /* never run: the key of a constant among the numbered values */

    KN_I_WRAP,                                    /* + type: d, x of any integer type */
    KN_I_SAT = KN_I_WRAP + KN_DTYPE_COUNT,        /* + type: d, x of any integer type but u64 */
    KN_I_U64_SAT = KN_I_SAT + KN_DTYPE_COUNT,     /* + type: d, x */
    KN_I_F64_INT = KN_I_U64_SAT + KN_DTYPE_COUNT, /* + type: d, x; truncates and saturates */
    KN_I_LOAD = KN_I_F64_INT + KN_DTYPE_COUNT,    /* + type: d, buffer, element */
    KN_I_LOAD_IF = KN_I_LOAD + KN_DTYPE_COUNT, /* + type: d, buffer, element, cond: 0 unless cond */
    KN_I_STORE = KN_I_LOAD_IF +
                 KN_DTYPE_COUNT, /* + type: buffer, element, value; then the same for KN_ADD, ... */
    KN_I_STORE_PRODUCT =
        KN_I_STORE + 5 * KN_DTYPE_COUNT, /* + type: buffer, element, x, y: += x * y */
    KN_I_SCALAR = KN_I_STORE_PRODUCT +
                  KN_DTYPE_COUNT, /* + op * KN_DTYPE_COUNT + operands' type: d, x [, y] */
    KN_I_COUNT = KN_I_SCALAR + (int)KN_SCALAR_COUNT * (int)KN_DTYPE_COUNT
};

/* What a failing instruction names. */
typedef struct {
    kn_loc loc;
    const kn_buffer *buffer; /* NULL: `name` says it */
    const char *name;
    int n;     /* dimensions */
    int *subs; /* registers; NULL where there are none */
    int *exts;
} kn_site;

typedef struct {
    void *at;
    size_t bytes;
} kn_storage;

/* ---- Blocks: the iterations of an innermost loop, KN_LANES at a time ----

   A loop whose body is straight code that ends in its one store runs instruction by instruction
   over many iterations (lanes), which saves the dispatch. In a block's code an operand below 0
   stands for ~operand's lanes, KN_LANES slots; others are registers, the same for all lanes.
   Destinations are lanes. Loads and stores have one more operand, after the element: what a
   register of the element grows by from lane to lane. All loads of a chunk come before its stores:
   so the machine makes sure that they do not overlap. */
enum { KN_LANES = 64, KN_FEW_LANES = 8 };

/* An access: the element is a register that grows by `step` a lane, or lanes (then it may be
 * anywhere in the buffer). */
typedef struct {
    int buffer, element, step;
    kn_dtype type;
} kn_access;

/* A register that grows evenly; `lanes` are filled with it, or -1. */
typedef struct {
    int reg, step, lanes;
} kn_ramp;

typedef struct {
    int32_t *at;
    int n;
    kn_slot *lanes;
    kn_ramp *ramps; /* the loop's variable, then its pointers */
    int nramps;
    kn_access *loads; /* what the loads touch */
    int nloads;
    kn_access store;
} kn_lanes;

/* An on-chip space during a run; interp_space.c. */
typedef struct {
    const struct kn_space *space;
    unsigned char *data, *written; /* NULL until something is allocated; a byte each a byte */
    int64_t top;                   /* of the allocs in scope that have no offset */
} kn_space_memory;

typedef struct kn_code kn_code;
struct kn_code {
    const kn_func *func;
    bool instruction; /* of the target: its failures are those of the call */
    int number;       /* among the interpreter's functions */
    bool open;        /* being compiled */
    int32_t *at;
    int n;
    kn_slot *regs;
    int nregs;
    kn_site *sites;
    int nsites;
    kn_storage *storage; /* one for each alloc; its memory lasts for a run */
    int nstorage;
    kn_lanes *blocks;
    int nblocks;
};

struct kn_interp {
    kn_arena *arena;
    const kn_module *module;
    const kn_target *machine; /* or NULL */
    kn_space_memory *spaces;  /* of the machine, in its order */
    KN_VEC(kn_code *) codes;
    kn_code *main;
    uint64_t max_steps;
};

/* ---- The compiler ---- */

typedef KN_VEC(int32_t) kn_words;

/* A stretch of code that is entered as a whole: a function, the body of a loop, what is run
   conditionally. Regions nest; what is computed in one is known in those inside it. `pre` collects
   what those inside need and can be computed before them: it is placed before the construct that
   the region belongs to. */
typedef struct {
    kn_words pre, code;
    KN_VEC(int) values; /* the numbered values that are lost when it is left */
} kn_region;

/* A subscript to be proved at the entry of an innermost loop. */
typedef struct {
    int first, slope, extent;
} kn_guard;

/* An address that moves along with the variable of an innermost loop. */
typedef struct {
    const kn_expr *expr;
    int reg, base, increment;
} kn_pointer;

/* The innermost loop being compiled: it has no loops in it. */
typedef struct {
    int depth; /* of its region */
    const kn_loop *loop;
    const kn_expr *lo, *hi;
    bool checked; /* the version that checks each access */
    KN_VEC(kn_guard) guards;
    KN_VEC(kn_pointer) pointers;
} kn_inner;

/* A name in scope. */
typedef struct {
    const char *name;
    int reg;
    const kn_expr *value; /* a `let` of type index that is written out where it is used, or NULL */
    const kn_buffer *buffer; /* NULL: a scalar */
    const kn_expr **shape;   /* of a buffer: symbolic, without loads */
} kn_bound;

/* A value that has been computed: equal ones are computed once. */
typedef struct {
    int32_t key[4];
    int reg, depth, next;
} kn_numbered;

enum { KN_VALUE_BUCKETS = 1024 };

typedef struct {
    kn_interp *interp;
    kn_arena *arena; /* of the result */
    kn_ctx *ctx;
    kn_code *out;
    int calls; /* how deep */
    KN_VEC(kn_region *) regions;
    KN_VEC(int) depths; /* of each register: the region that it is computed in */
    KN_VEC(kn_numbered) values;
    int buckets[KN_VALUE_BUCKETS];
    KN_VEC(int) loaded; /* the numbered values that a store makes stale */
    KN_VEC(kn_slot) consts;
    KN_VEC(int) const_regs;
    KN_VEC(kn_site) sites;
    KN_VEC(kn_lanes) blocks;
    KN_VEC(kn_bound) scope;
    int nfresh, nstorage;
    kn_known known;
    kn_inner *inner; /* or NULL */
    int guard;       /* the register that says whether what is being computed counts; -1: it does */
    int sure;        /* under a guard: how many of the known facts do not hang on it */
    kn_loc loc;
} kn_compiler;

/* interp_emit.c */
kn_region *kn_region_open(kn_compiler *c);
kn_region *kn_region_close(kn_compiler *c); /* what it collected; the caller places it */
kn_region *kn_region_here(const kn_compiler *c);
int kn_depth_here(const kn_compiler *c);
void kn_words_put(kn_compiler *c, kn_words *to, const int32_t *words, int n);
void kn_words_append(kn_compiler *c, kn_words *to, const kn_words *from);
#define KN_EMIT(c, to, ...)                                 \
    kn_words_put((c), (to), (const int32_t[]){__VA_ARGS__}, \
                 (int)(sizeof(const int32_t[]){__VA_ARGS__} / sizeof(int32_t)))
int kn_reg_new(kn_compiler *c, int depth, int n);
int kn_reg_const(kn_compiler *c, kn_slot value);
int kn_reg_int(kn_compiler *c, int64_t value);
/* The register with the value of opcode(a, b, d), computed as far out as its operands allow; -1: no
 * operand. */
int kn_value(kn_compiler *c, int32_t opcode, int a, int b, int d);
/* The same here and now, forgotten at the next store. */
int kn_value_loaded(kn_compiler *c, int32_t opcode, int a, int b, int d);
void kn_values_stale(kn_compiler *c);
/* True when opcode(a, b, d) is known to have been run before. */
bool kn_value_seen(const kn_compiler *c, int32_t opcode, int a, int b, int d);
/* Remembers that it has. */
void kn_value_see(kn_compiler *c, int32_t opcode, int a, int b, int d);
int kn_site_new(kn_compiler *c, kn_site site);

/* interp_expr.c */
int kn_compile_expr(kn_compiler *c, const kn_expr *e);
/* With `let`s of type index written out. */
const kn_expr *kn_written_out(kn_compiler *c, const kn_expr *e);
/* An index expression in canonical form with `let`s written out; it must have no loads. */
const kn_expr *kn_symbolic(kn_compiler *c, const kn_expr *e);
/* The same of any index expression: one that loads is computed here and stands under a fresh name.
 */
const kn_expr *kn_symbolic_now(kn_compiler *c, const kn_expr *e);
int kn_compile_symbolic(kn_compiler *c, const kn_expr *e);
const kn_bound *kn_bound_find(const kn_compiler *c, const char *name);

/* interp_lanes.c */
/* The number of a block that does what the body of the innermost loop does, with var growing by
   step; -1 when the body is not of the kind. */
int kn_compile_block(kn_compiler *c, const kn_words *body, const kn_inner *in, int var, int step);

/* interp_access.c */
/* The register with the element's number, after what proves or checks that it lies inside:
 * `always`, or when the guard holds. */
int kn_compile_element(kn_compiler *c, const kn_bound *b, const kn_expr *const *subs, bool *always);
/* Before a load and a store of an element: nothing, but for on-chip spaces. An update reads what it
 * writes. */
void kn_compile_read(kn_compiler *c, const kn_bound *b, int element);
void kn_compile_write(kn_compiler *c, const kn_bound *b, int element, bool reads);

/* ---- The machine ---- */

/* interp_space.c */
void kn_spaces_make(kn_interp *in);
void kn_spaces_reset(kn_interp *in); /* at the start of a run */
/* The number of a space whose bytes are looked after, or -1. */
int kn_space_number(const kn_interp *in, const char *name);
typedef enum { KN_SPACE_FITS, KN_SPACE_FULL, KN_SPACE_UNALIGNED } kn_space_fit;
/* Where `bytes` lie: at the offset, or after what is in scope. */
kn_space_fit kn_space_place(kn_arena *memory, kn_space_memory *s, int64_t bytes,
                            const int64_t *offset, int64_t *at);
void kn_space_drop(kn_space_memory *s, const kn_slot *buffer);
/* The first byte of the element that was never written, or -1. */
int64_t kn_space_unwritten(const kn_space_memory *s, const kn_slot *buffer, int64_t element,
                           kn_dtype type);
void kn_space_write(const kn_space_memory *s, const kn_slot *buffer, int64_t element,
                    kn_dtype type);

/* interp_single.c: the typed instructions by opcode. Each returns the next. */
typedef const int32_t *(*kn_single_fn)(kn_slot *r, const int32_t *pc);
extern const kn_single_fn kn_single[KN_I_COUNT];

/* interp_many.c: the instructions that a block may have, for n lanes. NULL: something is amiss in
 * one of them. */
typedef struct {
    kn_slot *r, *lanes;
    int n;
} kn_chunk;
typedef const int32_t *(*kn_many_fn)(const kn_chunk *k, const int32_t *pc);
extern const kn_many_fn kn_many[KN_I_COUNT];

/* interp_block.c */
/* Runs iterations of a block while all goes well; pc is at KN_I_BLOCK. True when none is left; else
   the registers are set for the next one, which is to be run singly: there are too few, an access
   is out of range, or loads and stores overlap. */
bool kn_run_block(const kn_code *code, const int32_t *pc, uint64_t *steps);

#endif
