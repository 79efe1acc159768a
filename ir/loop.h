/* The loop IR: functions over buffers in named memory spaces. What the schedule produces, what the
   interpreter runs and what C and LLVM are printed from. Eight statements; expressions are those of
   ir/expr.h, where a LOAD names a buffer. Instructions and memory spaces are data of the target,
   never statement kinds. Grammar: docs/loop-ir.md.

     module @model for host {
       func @k0(s: index, in A: f32[s, 48] @ddr, in B: f32[48, 64] @ddr, out C: f32[s, 64] @ddr) {
         for i in 0:s {
           for j in 0:64 {
             alloc t: f32[] @local
             t[] = 0.0
             for r in 0:48 { t[] += A[i, r] * B[r, j] }
             C[i, j] = t[]
           }
         }
       }
       func @main(s: index in 1:1048576, in x: f32[s, 48] @ddr, const w: f32[48, 64] @ddr,
                  out y: f32[s, 64] @ddr) workspace 0 {
         call k0(s, x, w, y)
       }
     }

   Buffers are row-major over their shape; addresses are linearised by whoever generates code. A
   buffer's shape is made of index expressions over scalars in scope. Every access must lie inside
   (isl proves it, or a `check` guards it): the interpreter verifies each. A scalar parameter or
   `let` is immutable; mutable scalars are buffers of rank 0. */
#ifndef KN_IR_LOOP_H
#define KN_IR_LOOP_H

#include "ir/lex.h"
#include "ir/nest.h"

typedef enum {
    KN_S_FOR,   /* for var in lo:hi [step n] [parallel|vector|unroll] { body } */
    KN_S_IF,    /* if cond { body } [else { orelse }] */
    KN_S_LET,   /* let var: type = expr: in scope to the end of the block */
    KN_S_ALLOC, /* alloc buf: type[shape] @space [at offset]: in scope to the end of the block;
                   contents undefined */
    KN_S_VIEW,  /* view buf: type[shape] = source [at offset]: another shape over the same elements
                 */
    KN_S_STORE, /* buf[subs] = expr, also += *= max= min= */
    KN_S_CALL,  /* call name(args): a function of the module, or an instruction of the target */
    KN_S_CHECK  /* check cond "message": fails the run with a status */
} kn_loop_kind;

typedef enum { KN_FOR_SERIAL, KN_FOR_PARALLEL, KN_FOR_VECTOR, KN_FOR_UNROLL } kn_for_mode;

typedef struct {
    const char *name;
    kn_dtype type;
    int rank;
    const kn_expr *const *shape;
    const char *
        space; /* interned; "ddr" is main memory, "local" a kernel's own scalars and small arrays */
    const kn_expr
        *offset; /* ALLOC: bytes from the start of the space (in ddr: of the workspace), NULL before
                    planning. VIEW: elements from the start of the source; NULL is 0 */
} kn_buffer;

typedef struct kn_loop kn_loop;
typedef struct {
    kn_loop **at;
    int n;
} kn_block;

struct kn_loop {
    kn_loop_kind kind;
    kn_loc loc;
    const char *name; /* FOR, LET: the variable; VIEW: the source; STORE: the buffer; CALL: the
                         callee; CHECK: the message */
    const kn_expr *lo, *hi; /* FOR, half-open */
    int64_t step;           /* FOR, > 0 */
    kn_for_mode mode;       /* FOR */
    const kn_expr *expr;    /* IF, CHECK: condition; LET, STORE: value */
    kn_dtype type;          /* LET */
    kn_update op;           /* STORE */
    int nargs;              /* STORE: subscripts; CALL: arguments */
    const kn_expr *const
        *args; /* CALL: a scalar, or a LOAD without subscripts (whole buffer: `A`) or with (from
                 that element on: `A[i, 0]`, printed `&A[i, 0]`) where the callee has a buffer. A
                 scalar argument is never a bare LOAD: bind it with `let` */
    kn_buffer buffer;      /* ALLOC, VIEW */
    kn_block body, orelse; /* FOR, IF */
};

typedef enum {
    KN_PARAM_SCALAR,
    KN_PARAM_IN,
    KN_PARAM_OUT,
    KN_PARAM_INOUT,
    KN_PARAM_CONST
} kn_param_mode;

typedef struct {
    kn_param_mode mode;
    kn_buffer buffer;  /* SCALAR: name and type only */
    int64_t lo, hi;    /* SCALAR of type index: bounds, both ends included, checked at every call;
                          INT64_MIN, INT64_MAX: none, and none printed */
    const char *alias; /* OUT of main: the IN parameter that it updates in place, or NULL */
} kn_param;

struct kn_func {
    const char *name;
    kn_loc loc;
    int nparams;
    kn_param *params; /* main: sizes, then inputs, constants, outputs */
    const kn_expr
        *workspace; /* main: bytes of workspace that it needs, over its sizes; else NULL */
    kn_block body;
};

typedef struct kn_target kn_target; /* ir/target.h */
typedef struct kn_module kn_module;
struct kn_module {
    const char *name, *target; /* target may be NULL */
    kn_loc loc;
    kn_arena *arena;
    int nfuncs;
    kn_func **funcs; /* callees first, main last */
    /* Functions that calls may name besides the module's own: a target's instructions, their bodies
       being their semantics. Set by whoever knows the target, else NULL; no part of the text. */
    const kn_module *library;
    /* The target itself, from the same hand: spaces and callees are verified against it, and the
       interpreter keeps its spaces apart (ir/interp_space.c). NULL: nothing is known of it. */
    const kn_target *machine;
};

kn_func *kn_module_find(const kn_module *m,
                        const char *name); /* own functions only; NULL when there is none */
kn_func *kn_module_callee(const kn_module *m,
                          const char *name); /* own functions, then the library's; m may be NULL */
const kn_param *kn_func_param(const kn_func *f, const char *name);
/* The function that a run calls: the last one. */
kn_func *kn_module_main(const kn_module *m);
/* The scalar parameters of a function, which are its sizes, in their order. */
kn_size *kn_func_sizes(kn_arena *a, const kn_func *f, int *n);

/* Walks: fn for every statement of a block and of the blocks in it, outer ones first; */
void kn_block_visit(kn_block b, void (*fn)(void *env, kn_loop *s), void *env);
/* for every read or write of a buffer's elements in a statement and what it holds (a whole buffer
   that is passed on is one without subscripts); */
typedef struct {
    const char *buffer;
    const kn_expr *const *subs;
    int nsubs;
} kn_buffer_use;
void kn_loop_uses(kn_loop *s, void (*fn)(void *env, kn_buffer_use use), void *env);
/* and all expressions of a block, each replaced by fn of it. */
void kn_block_map(kn_arena *a, kn_block b, const kn_expr *(*fn)(void *env, const kn_expr *e),
                  void *env);

/* Letters, digits, _ and inner dots, and no word that an expression reads otherwise: `i8`, `where`.
 */
bool kn_loop_name_ok(const char *name);

/* Builders. */
kn_loop *kn_loop_for(kn_arena *a, const char *var, const kn_expr *lo, const kn_expr *hi,
                     kn_block body);
kn_loop *kn_loop_if(kn_arena *a, const kn_expr *cond, kn_block body, kn_block orelse);
kn_loop *kn_loop_let(kn_arena *a, const char *name, kn_dtype type, const kn_expr *value);
kn_loop *kn_loop_alloc(kn_arena *a, kn_buffer buffer);
kn_loop *kn_loop_view(kn_arena *a, kn_buffer buffer, const char *source);
kn_loop *kn_loop_store(kn_arena *a, const char *buffer, const kn_expr *const *subs, int n,
                       kn_update op, const kn_expr *value);
kn_loop *kn_loop_call(kn_arena *a, const char *callee, const kn_expr *const *args, int n);
kn_loop *kn_loop_check(kn_arena *a, const kn_expr *cond, const char *message);
/* A block under construction. */
typedef struct {
    kn_arena *arena;
    kn_loop **at;
    int n, cap;
} kn_block_builder;
void kn_block_add(kn_block_builder *b, kn_loop *s);
kn_block kn_block_done(const kn_block_builder *b);

/* Text. Index literals and f32 literals print bare, others with a suffix (kn_expr_print, typed). */
void kn_module_print(kn_str *out, const kn_module *m);
void kn_func_print(kn_str *out, const kn_func *f);
kn_module *kn_module_parse(kn_arena *a, const char *file, const char *text, size_t n);
kn_func *kn_func_parse(kn_arena *a, const char *file, const char *text, size_t n, kn_loc loc);

/* Names in scope (no two at once, none twice), types, ranks, modes of parameters (no store to `in`
   or `const`), call signatures, callees before callers, offsets of a function's allocs in one space
   all planned or none. With a machine: spaces are the target's, plain statements keep to what its
   core pipe reaches, callees are known, main's buffers lie in ddr; without, a callee that is
   unknown passes. Raises KN_INVALID with the place: for a text it is the user's mistake. */
void kn_module_verify(kn_ctx *ctx, const kn_module *m);
void kn_func_verify(kn_ctx *ctx, const kn_module *m,
                    const kn_func *f); /* m: for callees, or NULL */

/* The function of a nest whose statements have become `loops`: its sizes as scalar parameters, then
   its tensors (IN, OUT, INOUT); what the sizes must satisfy is checked first, temporaries are
   allocated in ddr. An opaque nest is its function. */
kn_func *kn_nest_func(kn_arena *a, const kn_nest *nest, kn_block loops);
/* Checks of what the sizes of a nest must satisfy. */
void kn_nest_require(kn_block_builder *b, const kn_nest *nest, kn_loc loc);
/* The check that an access of a tensor is `inside`. */
kn_loop *kn_nest_bounds_check(kn_arena *a, const kn_nest *nest, const char *tensor,
                              const kn_expr *inside);

/* The reference lowering: one nest of plain loops a statement, in the order of the notation, no
   isl, no fusion. Data-dependent subscripts get a `check`. What the interpreter runs for a graph,
   and what every later stage is compared with. */
kn_func *kn_lower_reference(kn_arena *a, const kn_nest *nest);

/* ---- the interpreter: compiled to a flat form, then run ---- */

/* Where a buffer argument lives: `bytes` is checked against the shape. Data may be unaligned. */
typedef struct {
    void *data;
    size_t bytes;
} kn_memory;

typedef struct kn_interp
    kn_interp; /* a compiled function with all it calls; reusable, one thread at a time */
/* Verifies f and its callees, which are looked up in m (may be NULL) and its library; one that is
   unknown raises KN_INVALID. f and m must outlive the result. */
kn_interp *kn_interp_compile(kn_arena *a, const kn_module *m, const kn_func *f);
/* An iteration of a loop is a step, so is a call. 0: no limit, as at first. */
void kn_interp_limit(kn_interp *in, uint64_t max_steps);
/* scalars (floats as their bits) and buffers in the order of the parameters of each sort. Every
   access is checked: one out of range, a failed `check`, or a step count above the limit raises
   KN_INVALID with the function, statement and values. Allocs come from a scratch arena of the run;
   they are filled with 0xA5 first, so that garbage is seen. */
void kn_interp_run(kn_ctx *ctx, kn_interp *in, const int64_t *scalars, int nscalars,
                   const kn_memory *buffers, int nbuffers);

#endif
