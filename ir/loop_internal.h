/* Shared by the loop IR's parser, verifier, lowering and interpreter: names in scope, what
   operators take, and proofs that subscripts lie inside. */
#ifndef KN_IR_LOOP_INTERNAL_H
#define KN_IR_LOOP_INTERNAL_H

#include "ir/loop.h"

/* A scalar, or a buffer. */
typedef struct {
    const char *name;
    const kn_buffer *buffer; /* NULL: a scalar */
    kn_dtype type;           /* of the scalar, of the buffer's elements */
    bool readonly;           /* an `in` or `const` parameter, or a view of one */
} kn_name;

/* Innermost last. Leaving a block is setting n back. */
typedef KN_VEC(kn_name) kn_scope;

/* NULL when there is none. The pointer holds until the next push. */
const kn_name *kn_scope_find(const kn_scope *s, const char *name);

/* What stands before the name of a buffer parameter; "" for a scalar. */
const char *kn_param_mode_text(kn_param_mode mode);
const char *kn_for_mode_text(kn_for_mode mode); /* "" for serial */

/* True when operands of `type` are right for the operator: by its class. SELECT: for its two
 * values. */
bool kn_scalar_takes(kn_scalar op, kn_dtype type);
/* The type of the result for operands of `type`. */
kn_dtype kn_scalar_result(kn_scalar op, kn_dtype type);

/* ---- loop_bounds.c: what is known of index variables at a place ---- */

/* A variable in lo:hi; an end is NULL when it is unknown. */
typedef struct {
    const char *name;
    const kn_expr *lo, *hi;
} kn_span;

/* Scopes are left by setting spans.n and facts.n back. */
typedef struct {
    kn_arena *arena;
    KN_VEC(kn_span) spans;         /* innermost last */
    KN_VEC(kn_size) bounds;        /* numbers that bound the spans' variables, index by index */
    KN_VEC(const kn_expr *) facts; /* each is >= 0 */
} kn_known;

typedef struct {
    int spans, facts;
} kn_known_mark;

kn_known_mark kn_known_here(const kn_known *k);
void kn_known_back(kn_known *k, kn_known_mark mark);
/* A size or parameter between two numbers, both ends included. */
void kn_known_size(kn_known *k, const char *name, int64_t lo, int64_t hi);
/* A loop's variable. */
void kn_known_span(kn_known *k, const char *name, const kn_expr *lo, const kn_expr *hi);
/* That a condition holds, or does not. */
void kn_known_assume(kn_known *k, const kn_expr *cond, bool holds);
/* True when e >= 0 is certain. An expression that reads a buffer is never certain. */
bool kn_known_nonneg(const kn_known *k, const kn_expr *e);

/* ---- loop_checks.c: checks of what is not proved ---- */

typedef struct {
    kn_arena *arena;
    const kn_nest *nest; /* named in the messages */
    kn_known known;
    kn_scope buffers;                /* that can be met at this place */
    KN_VEC(const kn_expr *) checked; /* conditions that hold at this place */
    const char *target; /* of the statement: conditions that read it do not last; or NULL */
    kn_loc loc;         /* of what is added */
} kn_checks;

/* Knows the sizes of the nest and what it requires of them, and no buffers. */
kn_checks kn_checks_start(kn_arena *a, const kn_nest *nest);
void kn_checks_buffer(kn_checks *c, const kn_buffer *buffer);
/* A statement, placed at c->loc. */
void kn_checks_add(const kn_checks *c, kn_block_builder *b, kn_loop *s);
/* A check for each access of an expression, those of its subscripts before its own; */
void kn_checks_expr(kn_checks *c, kn_block_builder *b, const kn_expr *e);
/* for one access, not for what its subscripts read; */
void kn_checks_access(kn_checks *c, kn_block_builder *b, const char *buffer,
                      const kn_expr *const *subs);
/* and of a condition, unless it is checked at this place already. */
void kn_checks_condition(kn_checks *c, kn_block_builder *b, const kn_expr *cond,
                         const char *message);

#endif
