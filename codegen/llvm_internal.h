/* Private to the LLVM back end: what llvm.c (the module), llvm_func.c (statements), llvm_expr.c
   (expressions) and llvm_target.c (machines, passes, emission) share. What is known of functions,
   ranges and aliasing comes from facts.h: C and LLVM are printed from the same facts. */
#ifndef KN_CODEGEN_LLVM_INTERNAL_H
#define KN_CODEGEN_LLVM_INTERNAL_H

#include <llvm-c/Core.h>
#include <llvm-c/Error.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/facts.h"

/* A name of the loop IR in scope. */
typedef struct {
    const char *name;
    const kn_buffer *buffer; /* NULL: a scalar */
    kn_dtype type;
    LLVMValueRef value;       /* the scalar, or the address of the buffer's first element */
    LLVMValueRef base;        /* elements to be added to every address (4-bit views), or NULL */
    const LLVMValueRef *dims; /* of the buffer: i64 */
    bool unaligned;           /* its elements may lie at any address */
} ll_name;

typedef struct {
    const kn_cg_func *facts;
    LLVMValueRef value;
    LLVMTypeRef type;
    bool fails; /* may return NPU_FAILED; others return nothing and are not given the context */
    bool *unaligned; /* by parameter: some call passes what comes from a constant of main */
} ll_func;

/* What is LLVM's, to be disposed of together. */
typedef struct {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTargetMachineRef machine;
    LLVMTargetDataRef layout;
    LLVMMemoryBufferRef object; /* what was emitted, */
    char *text;                 /* either way */
    char problem[256];          /* the first error that LLVM reported, or "" */
} ll_resources;

typedef struct {
    kn_facts facts; /* reachable functions, ranges of the indices in scope */
    kn_arena *arena;
    const kn_llvm_options *options;
    ll_resources *r;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    ll_func *funcs; /* one a function of `facts`, in the same order */
    KN_VEC(ll_name) scope;
    /* of the function at hand */
    const ll_func *func;
    LLVMValueRef npu, workspace; /* NULL where there is none */
    LLVMBasicBlockRef entry, failed;
} ll_emitter;

/* ---- llvm_expr.c ---- */

LLVMTypeRef kn_ll_value_type(const ll_emitter *l, kn_dtype type);
LLVMTypeRef kn_ll_element_type(const ll_emitter *l, kn_dtype type); /* in a buffer; 4-bit: a byte */
static inline LLVMTypeRef kn_ll_i64(const ll_emitter *l)
{
    return LLVMInt64TypeInContext(l->context);
}
LLVMValueRef kn_ll_const_i64(const ll_emitter *l, int64_t value);
/* The value of an expression; evaluates what is constant first. */
LLVMValueRef kn_ll_expr(ll_emitter *l, const kn_expr *e);
/* op(args) on values of `type`: an instruction, or a function of npu.h. */
LLVMValueRef kn_ll_op(ll_emitter *l, kn_scalar op, kn_dtype type, LLVMValueRef *args, int n);
/* The number of an element from the buffer's start; without subscripts 0. */
LLVMValueRef kn_ll_position(ll_emitter *l, const ll_name *n, const kn_expr *const *subs, int nsubs);
LLVMValueRef kn_ll_load(ll_emitter *l, const ll_name *n, LLVMValueRef position);
void kn_ll_store(ll_emitter *l, const ll_name *n, LLVMValueRef position, LLVMValueRef value);
const ll_name *kn_ll_find(const ll_emitter *l, const char *name); /* valid until the next push */
/* A new block after the one at hand. */
LLVMBasicBlockRef kn_ll_block(const ll_emitter *l, const char *name);
void kn_ll_attribute(const ll_emitter *l, LLVMValueRef fn, unsigned place, const char *name);

/* ---- llvm_func.c ---- */

/* The entries, and all functions that main reaches. */
void kn_ll_functions(ll_emitter *l);

/* ---- llvm_target.c ---- */

/* The machine of the options; sets the module's triple and data layout. */
void kn_ll_open_target(const ll_emitter *l);
/* Links the scalar functions that the module declares. */
void kn_ll_link_scalars(const ll_emitter *l);
/* Raises KN_INTERNAL when LLVM finds the module wrong; debug builds only. */
void kn_ll_verify(const ll_emitter *l);
void kn_ll_optimize(const ll_emitter *l);
kn_piece kn_ll_object(const ll_emitter *l); /* the module is spent */
/* Takes an error of LLVM's and raises it; nothing when there is none. */
void kn_ll_require(kn_arena *a, LLVMErrorRef error, const char *what);

#endif
