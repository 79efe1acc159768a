/* Shared by ir/poly*.c: what a kn_poly holds, and the way from expressions to isl and back. */
#ifndef KN_IR_POLY_INTERNAL_H
#define KN_IR_POLY_INTERNAL_H

#include <isl/aff.h>
#include <isl/id.h>
#include <isl/local_space.h>
#include <isl/map.h>
#include <isl/point.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>

#include "ir/poly.h"

/* One use of a tensor by a statement. */
typedef struct {
    int stmt, tensor;
    bool write;
    bool target;   /* the left side (its read, too, when the update reads) */
    bool of_where; /* read by the condition, before it is known whether the instance runs */
    const kn_expr *const *subs;
    int nsubs;
    const kn_expr *guard;    /* what the lazy operators around it say, or NULL */
    isl_map *relation;       /* instances -> elements, an over-approximation */
    const kn_expr *unproved; /* the part of "inside the tensor" that isl could not show, or NULL */
} kn_access;

/* A dependence: instances of `from` that must run before instances of `to`. */
typedef struct {
    int from, to;
    const char *tensor;
    isl_map *map;
} kn_dependence;

/* A parameter that stands for an expression over sizes that is not affine. */
typedef struct {
    const char *name;
    const kn_expr *value;
} kn_poly_param;

struct kn_poly {
    kn_arena *arena;
    kn_ctx *ctx;
    const kn_nest *nest;
    isl_ctx *isl;
    struct kn_watchdog *watchdog;
    isl_set *context; /* what is known of the parameters */
    isl_set **domains;
    const kn_expr *
        *guards; /* per statement: the part of `where` that its domain does not say, or NULL */
    KN_VEC(kn_access) accesses;
    KN_VEC(kn_dependence) deps;
    KN_VEC(kn_poly_param) params;
};

/* The instances of a statement as an isl space: the names of its iterators are its dimensions. */
typedef struct {
    kn_poly *poly;
    const kn_stmt *stmt; /* NULL: parameters alone */
    isl_space *space;
} kn_poly_scope;

/* An index expression as a piecewise affine function on the scope's space; NULL when it is not
 * affine. */
isl_pw_aff *kn_poly_affine(const kn_poly_scope *s, const kn_expr *e);
/* The points where a condition may hold. *exact is cleared when that is an over-approximation. */
isl_set *kn_poly_condition(const kn_poly_scope *s, const kn_expr *e, bool *exact);
/* A schedule row of one statement as a function on its domain; NULL when it is not affine. */
isl_pw_aff *kn_poly_row(kn_poly *p, int stmt, const kn_expr *row);
/* Raises when isl failed or was stopped by the watchdog. Holds no isl object of the caller's. */
_Noreturn void kn_poly_failed(kn_poly *p, const char *doing);

#endif
