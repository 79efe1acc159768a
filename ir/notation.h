/* Index notation: text -> kn_notation (parsed, untyped) -> kn_nest (elaborated for given operands).
   Grammar and rules: docs/index-notation.md. */
#ifndef KN_IR_NOTATION_H
#define KN_IR_NOTATION_H

#include "ir/lex.h"
#include "ir/nest.h"

typedef struct {
    bool pack;           /* *b: `name` is "*b" */
    const char *name;    /* a plain size name, else NULL */
    const kn_expr *expr; /* untyped: literal, affine form or merge; for a name, the VAR */
} kn_sig_dim;

typedef struct {
    const char *name;
    bool declared; /* dims are given (operands always; results when they carry type and shape) */
    int ndims;
    kn_sig_dim *dims;
    const char *type; /* NULL: operands any, results by inference; else "f32", "typeof(X)", an
                         attribute's name */
} kn_sig_tensor;

typedef struct {
    const char *name;
    const char *type;     /* "f32", "typeof(X)", ..., "const", "size", "type" */
    const kn_expr *value; /* the default, untyped, or NULL */
    int64_t lo, hi;       /* of a size */
} kn_sig_attr;

typedef struct {
    kn_loc loc;
    const char *target;
    int nsubs;
    const kn_expr **subs;
    kn_update op;
    bool init, strict;
    const kn_expr *rhs; /* `let` names substituted */
    int nranges;
    struct kn_where_range {
        const char *name;
        const kn_expr *lo, *hi;
    } * ranges;
    const kn_expr *where; /* conjunction, or NULL */
    int over;             /* group number or -1 */
    const char *over_index;
} kn_notation_stmt;

typedef struct kn_notation {
    const char *name; /* may be NULL: a notation without a name */
    kn_loc loc;
    int ninputs, nresults, nattrs, nrequires, nstmts;
    kn_sig_tensor *inputs, *results;
    kn_sig_attr *attrs;
    const kn_expr **requires_;
    kn_notation_stmt *stmts;
} kn_notation;

/* name(A[...], ..., attr: type [= default]) -> Y[: type[dims]], ...: statement; statement [require
 * COND;] */
kn_notation *kn_notation_parse(kn_arena *a, const char *file, const char *text, size_t n,
                               kn_loc loc);
/* print -> parse -> print is the identity. */
void kn_notation_print(kn_str *out, const kn_notation *n);

/* What an operand is at a use. */
typedef struct {
    kn_dtype type;
    int rank;
    const kn_expr *const *shape; /* canonical index expressions over sizes */
} kn_operand;

/* The value of an attribute: index for const and size, a typed literal otherwise, a type for
 * `type`. */
typedef struct {
    const char *name;
    const kn_expr *value; /* NULL for a type */
    kn_dtype type;
} kn_attr_value;

/* Elaborates for these operands. `sizes` gives bounds of the symbols that occur in the shapes.
   Raises KN_INVALID, with `loc` and the notation's own place, when ranks, dimensions or types do
   not fit, an index has no range, or a subscript is certainly outside its tensor. Iterators get
   names that are unique in the nest (the notation's own, with _2, _3 when repeated). Sums of f16
   and bf16 get an f32 temporary and a final cast. */
kn_nest *kn_elaborate(kn_arena *a, const kn_notation *n, const kn_operand *operands, int noperands,
                      const kn_attr_value *attrs, int nattrs, const kn_size *sizes, int nsizes,
                      kn_loc loc);

#endif
