/* What both back ends know of a module before they print it: which functions main reaches, what
   their parameters may be at all calls, which of them may share memory, how large a local buffer
   is. c*.c and llvm*.c say the same because both ask here. Private to codegen/. */
#ifndef KN_CODEGEN_FACTS_H
#define KN_CODEGEN_FACTS_H

#include "codegen/codegen.h"

/* A function that main reaches, or main. */
typedef struct {
    const kn_func *func;
    bool called;
    kn_range *ranges; /* by parameter: of its values at all calls */
    int *storage;     /* by parameter: those with the same number may share memory */
} kn_cg_func;

typedef struct {
    kn_arena *arena;
    kn_ctx *ctx;
    const kn_module *module;
    const char *language;       /* of what is printed, for messages */
    KN_VEC(kn_cg_func *) funcs; /* callees first, main last */
    /* Kept by the back end while it prints: */
    const kn_cg_func *func; /* the one at hand, or NULL */
    kn_loc loc;             /* of the statement at hand */
    KN_VEC(kn_size) bounds; /* of the index scalars in scope */
} kn_facts;

/* Finds what main reaches and all that is known of it. Raises KN_INVALID without a main,
   KN_UNSUPPORTED for a call of what has no meaning. */
kn_facts kn_cg_facts(kn_arena *a, const kn_module *m, const char *language);

/* The user's or our mistake at the statement at hand: "C for k0: ...". */
_Noreturn void kn_cg_fail(const kn_facts *f, kn_status status, const char *fmt, ...)
    KN_PRINTF(3, 4);

/* The number in `funcs` of the function that a call means; -1 when main does not reach it. */
int kn_cg_find(const kn_facts *f, const char *callee);
/* The number of the function that a call means, which must fit the call: KN_INTERNAL otherwise. */
int kn_cg_callee(const kn_facts *f, const kn_loop *call);

/* The range of an index expression, and lo..hi - 1 of a loop. */
kn_range kn_cg_range(const kn_facts *f, const kn_expr *e);
kn_range kn_cg_loop_range(const kn_facts *f, const kn_loop *s);
bool kn_cg_is_finite(kn_range r);
/* What the calls say of an index parameter, cut by what the function itself demands. */
kn_range kn_cg_param_range(const kn_cg_func *f, int param);
/* True for an index parameter whose bounds not every call is seen to keep. */
bool kn_cg_is_checked(const kn_cg_func *f, int param);
/* True when nothing is written that a parameter and another one reach. */
bool kn_cg_restrict(const kn_cg_func *f, int param);

/* Evaluates what is constant; to be done once, at the root. */
const kn_expr *kn_cg_fold(kn_arena *a, const kn_expr *e);

/* Elements of 4 bits lie two in a byte. */
static inline bool kn_cg_is_packed(kn_dtype type)
{
    return kn_dtype_bits(type) < 8;
}

/* The elements of a function's own buffer as it is held: those of 4 bits as bytes. Raises
   KN_INTERNAL when their number is not constant or they are more than 1 MiB. */
int64_t kn_cg_local_count(const kn_facts *f, const kn_buffer *b);
/* True when an element surely begins at a byte: every term of its number in the 4-bit buffer is
   even. */
bool kn_cg_is_even(kn_arena *a, const kn_buffer *b, const kn_expr *const *subs, int nsubs);

/* True for an identifier that may stand before _run and the like. */
bool kn_cg_is_prefix(const char *s);

#endif
