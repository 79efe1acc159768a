/* Scalar expressions: the one expression language of Kiln. Dimensions of graph tensors are
   expressions of type `index` over size names; the right sides of index notation, and all of the
   loop IR's expressions, are expressions over sizes, indices and tensor elements. Immutable once
   built; shared freely within an arena's life. Names are interned in the context, so they compare
   with ==. */
#ifndef KN_IR_EXPR_H
#define KN_IR_EXPR_H

#include "support/dtype.h"
#include "support/str.h"

typedef enum {
#define SCALAR(id, text, arity, class, prec) KN_OP_##id,
#include "ir/scalar.def"
#undef SCALAR
    KN_SCALAR_COUNT
} kn_scalar;

typedef enum {
    KN_CLASS_ARITH,
    KN_CLASS_FLOAT,
    KN_CLASS_COMPARE,
    KN_CLASS_LOGIC,
    KN_CLASS_BITS,
    KN_CLASS_SELECT
} kn_scalar_class;

typedef struct {
    const char *text; /* as written */
    const char
        *id; /* lower case of the row's id: "add", "floordiv": names of intrinsics are made of it */
    int arity;
    kn_scalar_class class;
    int precedence;
} kn_scalar_info;
const kn_scalar_info *kn_scalar_get(kn_scalar op);
bool kn_scalar_parse(const char *function, kn_scalar *out); /* the rows of precedence 0 */

typedef enum {
    KN_E_CONST, /* a literal of `type`: `i`, or `f` for floats */
    KN_E_VAR,   /* a size, an index or a let-bound scalar: `name` */
    KN_E_LOAD,  /* tensor or buffer element `name[args...]`, args of type index */
    KN_E_OP,    /* op(args...) */
    KN_E_CAST   /* cast, sat or bitcast of args[0] to `type` */
} kn_expr_kind;

typedef enum { KN_CAST_CAST, KN_CAST_SAT, KN_CAST_BITCAST } kn_cast_mode;

/* The type of an expression that is not elaborated yet (a literal, an attribute, all of a parsed
 * notation). */
#define KN_UNTYPED KN_DTYPE_COUNT

/* Nodes are made by the builders below alone: those keep the last five fields true. */
typedef struct kn_expr kn_expr;
struct kn_expr {
    kn_expr_kind kind;
    kn_dtype type;
    kn_scalar op;      /* OP */
    kn_cast_mode mode; /* CAST */
    int nargs;
    bool guarded;   /* LOAD: written `X[...] else v`; only before elaboration, v is then the last of
                       args */
    bool real;      /* CONST: the value is in `f`; tells 1.0 from 1 while the type is KN_UNTYPED */
    bool canonical; /* of type index, and in the canonical form of the kn_index_* functions */
    int depth, size; /* of the tree: bounded by KN_EXPR_MAX_DEPTH and _SIZE, so that recursion over
                        it is safe */
    const char *
        name; /* VAR, LOAD; CAST before elaboration: its type as written, "f32", "typeof(X)", "t" */
    int64_t i; /* CONST: integers (u64 as its bits), bool, index */
    double f;  /* CONST: floats; for an untyped integer literal its value once more */
    const kn_expr *const *args;
};

/* What a builder does not exceed: it raises KN_INVALID, "expression too large". */
enum {
    KN_EXPR_MAX_DEPTH = 2000,
    KN_EXPR_MAX_SIZE = 1 << 17, /* nodes, shared ones counted each time */
    KN_EXPR_MAX_TERMS = 1024,   /* monomials of a canonical index expression */
    KN_EXPR_MAX_DEGREE = 32     /* atoms of a monomial */
};

/* Builders. None simplifies, but for those named kn_index_*. A constant is brought to the range and
   precision of its type (integers wrap, floats round); kn_int of a float type is a float. / and %
   of type index become FLOORDIV, MOD. */
const kn_expr *kn_int(kn_arena *a, kn_dtype type, int64_t value);
const kn_expr *kn_float(kn_arena *a, kn_dtype type, double value);
const kn_expr *kn_index(kn_arena *a, int64_t value);
const kn_expr *kn_var(kn_arena *a, kn_dtype type, const char *name);
const kn_expr *kn_load(kn_arena *a, kn_dtype type, const char *name, const kn_expr *const *subs,
                       int n);
/* X[subs] else v: untyped, guarded. */
const kn_expr *kn_load_else(kn_arena *a, const char *name, const kn_expr *const *subs, int n,
                            const kn_expr *v);
const kn_expr *kn_op(kn_arena *a, kn_dtype type, kn_scalar op, const kn_expr *const *args, int n);
const kn_expr *kn_op1(kn_arena *a, kn_scalar op,
                      const kn_expr *x); /* these three find the type by the class */
const kn_expr *kn_op2(kn_arena *a, kn_scalar op, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_select(kn_arena *a, const kn_expr *c, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_cast(kn_arena *a, kn_cast_mode mode, kn_dtype type, const kn_expr *x);
/* An untyped cast to a type as it is written. */
const kn_expr *kn_cast_named(kn_arena *a, kn_cast_mode mode, const char *type, const kn_expr *x);
/* The same node, with type `type` and e->nargs other arguments: e itself when nothing differs. The
   name of a cast goes when it gets a type. */
const kn_expr *kn_expr_with(kn_arena *a, const kn_expr *e, kn_dtype type,
                            const kn_expr *const *args);
/* 0, 1, -inf, +inf (or the least, the greatest) of a type. */
const kn_expr *kn_zero(kn_arena *a, kn_dtype type);
const kn_expr *kn_one(kn_arena *a, kn_dtype type);
const kn_expr *kn_lowest(kn_arena *a, kn_dtype type);
const kn_expr *kn_highest(kn_arena *a, kn_dtype type);

/* Structural equality (NaN equals NaN, 0.0 differs from -0.0). Two canonical index expressions that
   are equal for all values of their names compare equal when both are polynomials. */
bool kn_expr_equal(const kn_expr *a, const kn_expr *b);
/* A total order of the same equality, the same from run to run: < 0, 0, > 0. */
int kn_expr_compare(const kn_expr *a, const kn_expr *b);
bool kn_expr_uses(const kn_expr *e, const char *name); /* as VAR or as LOAD */
bool kn_expr_has_load(const kn_expr *e);

/* Rebuilds an expression bottom-up. `fn` gets each node with its arguments already rewritten and
   returns the node or its replacement. Nodes of type index are brought back to canonical form. */
typedef const kn_expr *(*kn_expr_fn)(void *env, const kn_expr *e);
const kn_expr *kn_expr_rewrite(kn_arena *a, const kn_expr *e, kn_expr_fn fn, void *env);
/* Calls fn on each node, parents first. */
void kn_expr_visit(const kn_expr *e, void (*fn)(void *env, const kn_expr *e), void *env);
/* Replaces VARs by name. */
typedef struct {
    const char *name;
    const kn_expr *value;
} kn_binding;
const kn_expr *kn_expr_subst(kn_arena *a, const kn_expr *e, const kn_binding *b, int n);

/* Index algebra. The results are canonical: a sum of monomials (integer coefficient x product of
   atoms, sorted) plus a constant, where an atom is a VAR, a LOAD or CAST, or floordiv, mod, min,
   max, select of canonical operands, folded where that is exact ((4*i + j) / 4 with 0 <= j < 4 is
   *not* known here and stays). Constants fold; overflow of the int64 range raises KN_INVALID. */
const kn_expr *kn_index_add(kn_arena *a, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_index_sub(kn_arena *a, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_index_mul(kn_arena *a, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_index_div(kn_arena *a, const kn_expr *x,
                            const kn_expr *y); /* floor; exact quotients simplify */
const kn_expr *kn_index_mod(kn_arena *a, const kn_expr *x, const kn_expr *y); /* floor; sign of y */
const kn_expr *kn_index_min(kn_arena *a, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_index_max(kn_arena *a, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_index_ceildiv(kn_arena *a, const kn_expr *x, int64_t by);
/* Of an expression of any type: its index parts become canonical; bool parts over indices fold
   where that is exact (a comparison whose sides differ by a constant, select on a constant, && and
   || with one). Division by the constant 0 raises KN_INVALID. */
const kn_expr *kn_index_simplify(kn_arena *a, const kn_expr *e);
const kn_expr *kn_index_simplify_at(kn_arena *a, const kn_expr *e,
                                    kn_loc loc); /* with a place for the error */
bool kn_index_is(const kn_expr *e, int64_t value);
bool kn_index_const(const kn_expr *e, int64_t *value);
/* Product of dims[0..n). */
const kn_expr *kn_index_product(kn_arena *a, const kn_expr *const *dims, int n);
/* The canonical sum as coefficients: e = constant + sum coef[i] * term[i], the terms being products
   of atoms. Returns the number of terms, or -1 when there are more than `cap`. */
int kn_index_terms(kn_arena *a, const kn_expr *e, int64_t *constant, int64_t *coef,
                   const kn_expr **term, int cap);

/* A named size (a symbolic dimension) with its bounds, both ends included. */
typedef struct {
    const char *name;
    int64_t lo, hi;
} kn_size;
enum { KN_SIZE_DEFAULT_MAX = 1 << 20 };

/* A sound interval of an index expression, by interval arithmetic with the names' bounds; unknown
   names, loads and casts are unbounded (INT64_MIN, INT64_MAX). */
typedef struct {
    int64_t lo, hi;
} kn_range;
kn_range kn_index_range(const kn_expr *e, const kn_size *sizes, int n);

/* An upper bound of a dimension, for whatever values the names in `known` have within their bounds,
   over the other names. NULL when none is found, or only one above KN_MAX_BOUND. */
#define KN_MAX_BOUND (INT64_C(1) << 40)
const kn_expr *kn_index_upper(kn_arena *a, const kn_expr *e, const kn_size *known, int n);
/* The same for a shape, for which memory is planned: raises KN_UNSUPPORTED, naming the dimension,
   when there is no bound or the constant ones multiply to more than KN_MAX_BOUND. */
const kn_expr *const *kn_shape_upper(kn_arena *a, const kn_expr *const *shape, int rank,
                                     const kn_size *known, int n, kn_loc loc);

/* Evaluates an index expression whose VARs are all bound; false when one is not, or on overflow or
 * division by zero. */
bool kn_index_eval(const kn_expr *e, const kn_size *sizes, const int64_t *values, int n,
                   int64_t *out);

/* One scalar value, without its type: `i` for integers (u64 as its bits), bool and index, `f` for
 * floats. */
typedef struct {
    int64_t i;
    double f;
} kn_number;
/* What an operator or a cast yields: the meaning that folding and interpreting share. `type` is
   that of the operands (of the second for select). The values must be normal: in the range and
   precision of their types; so is the result. */
kn_number kn_number_op(kn_scalar op, kn_dtype type, const kn_number *args);
kn_number kn_number_cast(kn_cast_mode mode, kn_dtype from, kn_dtype to, kn_number v);
int64_t kn_number_wrap(kn_dtype type, int64_t i); /* to an integer type or bool */
double kn_number_round(kn_dtype type, double f);  /* to a float type */

/* Evaluates a scalar operator or cast on constants, with the meaning that every stage agrees on
   (runtime/npu/host has the C definitions). Returns NULL when an operand is no CONST. */
const kn_expr *kn_expr_fold(kn_arena *a, const kn_expr *e);

/* Text, minimal brackets, as the grammar in docs/index-notation.md. Float literals print with
   kn_put_float; a literal whose type is not evident from its context prints as cast(TYPE, literal)
   by the caller's choice: with `typed`, every float literal of a type other than f32 and every
   integer literal of a type other than index prints with a suffix `1.5:f64`, `3:i32` (f32 and index
   literals print bare), which the parser reads back. */
void kn_expr_print(kn_str *out, const kn_expr *e, bool typed);

#endif
