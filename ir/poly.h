/* The polyhedral side of a nest, and the only place that touches isl
   (https://libisl.sourceforge.io, Verdoolaege 2010). Domains and access relations of the
   statements, dependences, legality of a schedule, proofs of bounds, generation of loops.
   Subscripts that read tensors are over-approximated to the whole dimension; products of sizes
   become parameters of their own. The nest must be split (kn_nest_split). */
#ifndef KN_IR_POLY_H
#define KN_IR_POLY_H

#include "ir/loop.h"
#include "ir/schedule.h"

/* What isl is asked about at most; what is larger is refused with KN_UNSUPPORTED before isl sees
 * it, by name. */
enum { KN_POLY_MAX_STMTS = 32, KN_POLY_MAX_DEPTH = 14, KN_POLY_MAX_SECONDS = 20 };

typedef struct kn_poly kn_poly;

/* Whether a nest is within those limits. */
bool kn_poly_fits(const kn_nest *nest);

/* Deferred; kn_poly_destroy() or the protection ends it. */
kn_poly *kn_poly_create(kn_arena *a, const kn_nest *nest);
void kn_poly_destroy(kn_poly *p);

/* True when the schedule respects every dependence of statement `stmt` (-1: of all) among the
   statements that are placed; the others are ignored, so that a schedule can be built statement by
   statement. Reductions without `strict` are unordered among their own instances. */
bool kn_poly_legal(kn_poly *p, const kn_schedule *s, int stmt);
/* The same for all, raising KN_INVALID at `loc` with the statement pair and an example point. */
void kn_poly_require_legal(kn_poly *p, const kn_schedule *s, kn_loc loc);

/* Loops that run all instances in the order of the schedule. A statement becomes its store; an
   access that is not proved to lie inside its tensor gets a `check` before it. */
kn_block kn_poly_loops(kn_poly *p, const kn_schedule *s);

#endif
