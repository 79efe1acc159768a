/* Private to ir/elaborate*.c: the state of one elaboration and the steps that the files share.

     elaborate.c          groups of statements, and the nest
     elaborate_attr.c     attributes
     elaborate_shape.c    the signature's sizes and packs, shapes of results and targets
     elaborate_resolve.c  names and packs of a statement
     elaborate_range.c    ranges of indices, extremes of subscripts
     elaborate_type.c     types of values
     elaborate_emit.c     statements into the nest */
#ifndef KN_IR_ELABORATE_INTERNAL_H
#define KN_IR_ELABORATE_INTERNAL_H

#include "ir/nest_internal.h"
#include "ir/notation_internal.h"

typedef enum { KN_EL_SIZE, KN_EL_CONST, KN_EL_VALUE, KN_EL_TYPE } kn_el_kind;

/* What a name of the signature stands for. */
typedef struct {
    const char *name;
    kn_el_kind kind;
    const kn_expr *value; /* SIZE: canonical, NULL while unknown; CONST: an index literal; VALUE: a
                             literal, untyped or bool */
    kn_dtype type;        /* TYPE */
    const char *from;     /* SIZE: what it was taken from, for messages */
} kn_el_name;

typedef struct {
    kn_tensor t;  /* rank -1: not yet known; type KN_UNTYPED: not yet known */
    bool defined; /* has values before the statement at hand */
} kn_el_tensor;

/* The dimensions that a pack stands for in one tensor. */
typedef struct {
    const char *tensor;
    const kn_expr *const *dims;
    int n;
} kn_el_part;

/* A pack of the signature, or as the parts of one statement broadcast. */
typedef struct {
    const char *name;
    int width;
    const kn_expr **extents;
    int first; /* in a statement: its first index, -1 before it was met */
} kn_el_pack;

enum { KN_EL_MAX_INDICES = 64 }; /* of a statement */

typedef struct {
    kn_arena *a;
    kn_ctx *ctx;
    const kn_notation *n;
    kn_loc loc;                  /* of the use */
    kn_loc place;                /* in the notation: that of the statement at hand */
    const struct kn_el_stmt *at; /* the statement at hand, or NULL */
    const kn_size *bounds;
    int nbounds;
    KN_VEC(kn_size) syms; /* symbols of operands and attributes, in order of appearance */
    kn_map names;         /* kn_el_name */
    kn_map tensors;       /* kn_el_tensor */
    kn_map used;          /* names taken in the nest */
    KN_VEC(kn_el_pack) packs;
    KN_VEC(const kn_expr *) requires_;
    KN_VEC(kn_tensor) temps; /* f32 accumulators */
    KN_VEC(kn_stmt) out;
    int groups;
} kn_elab;

/* A condition under which a part of a right side is evaluated, and those around it. */
typedef struct kn_el_guard kn_el_guard;
struct kn_el_guard {
    const kn_expr *cond; /* resolved; NULL: the load's own subscripts (`else`) */
    const kn_el_guard *outer;
};

typedef struct {
    const char *tensor;
    const kn_expr *const *subs; /* canonical */
    int nsubs;
    const kn_el_guard *guard;
    bool in_where, target;
} kn_el_access;

typedef struct {
    const char *source; /* as written; NULL for one of a pack */
    kn_iter it;         /* lo and hi are NULL while unknown */
    const kn_expr *var;
    bool given;       /* by `where`, or one of a pack: not inferred */
    bool left;        /* occurs in the target */
    const char *from; /* the tensor that decided its range */
} kn_el_index;

typedef struct kn_el_stmt {
    kn_elab *el;
    const kn_notation_stmt *s;
    KN_VEC(kn_el_index) idx;
    KN_VEC(kn_el_pack) packs;
    KN_VEC(kn_el_access) accesses;
    kn_el_tensor *target;
    const kn_expr **subs;
    int nsubs;
    const kn_expr *rhs, *where; /* names resolved, subscripts typed and canonical, values untyped */
    const char *blocked;        /* a tensor whose type is needed and not yet known */
    bool resolved, told, ranged; /* told: what it knows of the range of its group's index */
} kn_el_stmt;

/* ---- elaborate.c ---- */

/* Raises KN_INVALID at the use, with a note at the place in the notation. */
_Noreturn void kn_el_fail(kn_elab *el, const char *fmt, ...) KN_PRINTF(2, 3);
const char *kn_el_text(kn_elab *el,
                       const kn_expr *e); /* for messages: indices as they are written */
void kn_el_go_to(const kn_el_stmt *st);   /* makes it the statement at hand */
kn_el_tensor *kn_el_find(const kn_elab *el, const char *name);
int kn_el_index_of(const kn_el_stmt *st, const char *iterator); /* position in idx, -1: none */
bool kn_el_varies(const kn_el_stmt *st, const kn_expr *e);      /* uses an index of the statement */

/* ---- elaborate_resolve.c ---- */

/* The packs of a statement, as wide as the tensors in it ask for. */
void kn_el_find_packs(kn_el_stmt *st);
kn_el_index *kn_el_add_index(kn_el_stmt *st, const char *stem, const char *source, bool left);
/* Fills in subs, rhs, where, accesses, and the ranges that `where` gives. False, and st->blocked
   set, when a type is missing that another statement will tell. */
bool kn_el_resolve(kn_el_stmt *st);

/* ---- elaborate_shape.c ---- */

/* In this order: types of attributes may be those of operands, dimensions may use attributes. */
void kn_el_add_operands(kn_elab *el, const kn_operand *operands, int noperands);
void kn_el_bind_attrs(kn_elab *el, const kn_attr_value *attrs, int nattrs); /* elaborate_attr.c */
void kn_el_bind_operands(kn_elab *el);
void kn_el_bind_results(kn_elab *el);
void kn_el_bind_requires(kn_elab *el);
kn_el_name *kn_el_name_of(const kn_elab *el, const char *name); /* NULL when unknown */
kn_el_name *kn_el_add_name(kn_elab *el, const char *name, kn_el_kind kind);
void kn_el_add_symbols(kn_elab *el,
                       const kn_expr *e); /* those of an operand or attribute, with their bounds */
/* Two dimensions that must agree: the one to go on with, after a `require` where that is not
   evident; NULL when they cannot be equal. */
const kn_expr *kn_el_agree(kn_elab *el, const kn_expr *x, const kn_expr *y);
/* Adds a condition on sizes to the nest, or raises when it is false. */
void kn_el_require(kn_elab *el, const kn_expr *cond, const char *what);
void kn_el_broadcast(kn_elab *el, kn_el_pack *pack, const kn_el_part *parts, int n);
const kn_el_pack *kn_el_pack_find(const kn_elab *el, const char *name);
/* The shape of an undeclared target, from its defining statement. */
void kn_el_infer_shape(kn_el_stmt *st);

/* ---- elaborate_range.c ---- */

/* Gives each index its range. False when an index has none and `last` is not set; else raises.
   `over`, where not NULL, is the range of the index of the statement's group: read when known, set
   when found. */
bool kn_el_infer_ranges(kn_el_stmt *st, kn_el_index *over, bool last);
/* Lets the statement decide the range of the index of its group: by `where`, or alone in an
 * unguarded subscript. */
void kn_el_over_range(kn_el_stmt *st, kn_el_index *over);
/* The greatest (dir 1) or least (dir -1) value of a subscript over the ranges of the statement's
   indices, over sizes. NULL when it cannot be said; *exact is cleared when it may not be attained.
 */
const kn_expr *kn_el_extreme(const kn_el_stmt *st, const kn_expr *e, int dir, bool *exact);
/* term = name * cofactor; NULL when it has another form. */
const kn_expr *kn_el_cofactor(kn_elab *el, const kn_expr *term, const char *name);
/* Raises when a subscript multiplies indices or divides by something else than a positive constant.
 */
void kn_el_check_affine(kn_el_stmt *st, const char *tensor, const kn_expr *sub);
/* Raises when an unguarded subscript is certainly outside its tensor. */
void kn_el_check_bounds(kn_el_stmt *st);
/* The condition that a subscript list lies inside the tensor, without the parts that are proved;
 * NULL: always. */
const kn_expr *kn_el_inside(const kn_el_stmt *st, const kn_tensor *t, const kn_expr *const *subs);

/* ---- elaborate_emit.c ---- */

/* Raises when statement `at` of a group reads a result of the group where it has no value yet. */
void kn_el_check_order(kn_el_stmt *const *group, int n, int at);
/* Appends the statement, or those that it becomes, to the nest. `over` is its group, or -1. */
void kn_el_emit(kn_el_stmt *st, int over);

/* ---- elaborate_type.c ---- */

/* A type as written; KN_UNTYPED when it is that of a tensor not yet known. */
kn_dtype kn_el_type_named(const kn_elab *el, const char *name);
/* A first look at the type of a right side, without checking; KN_UNTYPED: not known, or literals
 * alone. */
kn_dtype kn_el_infer_type(const kn_el_stmt *st, const kn_expr *e);
/* A resolved value, typed as `want`; `what` it is, for the message. With `widen`, f16 and bf16
 * become f32. */
const kn_expr *kn_el_value(kn_el_stmt *st, const kn_expr *e, kn_dtype want, bool widen,
                           const char *what);
/* A resolved subscript, or bound of a range, as a canonical index expression. Sets st->blocked. */
const kn_expr *kn_el_subscript(kn_el_stmt *st, const kn_expr *e);

#endif
