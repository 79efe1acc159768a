/* An elaborated loop nest program: index notation with every size, type, range and guard made
   explicit. What an op instance *means* once its operands' shapes are known; several are
   concatenated into a fusion group. Shape inference reads its results, the reference lowering and
   poly.c its statements. */
#ifndef KN_IR_NEST_H
#define KN_IR_NEST_H

#include "ir/expr.h"

typedef enum { KN_ROLE_IN, KN_ROLE_OUT, KN_ROLE_INOUT, KN_ROLE_TEMP } kn_role;

typedef struct {
    const char *name;
    kn_role role;
    kn_dtype type;
    int rank;
    const kn_expr **shape; /* canonical index expressions over the nest's sizes */
    const char *space;     /* TEMP: where a schedule wants it, interned; NULL: main memory */
} kn_tensor;

typedef enum { KN_SET, KN_ADD, KN_MUL, KN_MAX, KN_MIN } kn_update;

typedef struct {
    const char *name;
    const kn_expr *lo, *hi; /* half-open; canonical; over sizes, and over earlier iterators where
                               `where` says so */
    bool reduction;         /* only on the right side */
} kn_iter;

typedef struct {
    kn_loc loc;
    const char *target;
    int nsubs;
    const kn_expr **subs;
    kn_update op;
    bool init;          /* the `!`: starts from the identity over the whole target box */
    bool strict;        /* keep the order of the reduction */
    const kn_expr *rhs; /* typed as the target's element type */
    int niters;
    kn_iter *iters; /* unique names within the nest; target indices in order of subscript first,
                       then reductions in order of appearance */
    const kn_expr *where; /* NULL, or a bool expression: other instances do not run */
    int over; /* statements of one `over t { }` share a number >= 0 and iters[0] is its index; else
                 -1 */
} kn_stmt;

typedef struct kn_func kn_func;

typedef struct {
    const char *name;
    int nsizes;
    kn_size *sizes; /* the symbols that occur */
    int nrequires;
    const kn_expr **requires_; /* bool expressions over sizes, checked at the call */
    int ntensors;
    kn_tensor *tensors; /* inputs in operand order, then results in order, then temporaries */
    int nstmts;
    kn_stmt *stmts;
    const kn_func *opaque; /* the meaning of an opaque row: loop IR with these tensors as
                              parameters; no statements then */
} kn_nest;

int kn_nest_find(const kn_nest *nest, const char *tensor); /* index, or -1 */
/* The identity element of an update for a type. */
const kn_expr *kn_update_identity(kn_arena *a, kn_update op, kn_dtype type);
const char *kn_update_text(kn_update op); /* "=", "+=", ... */
/* Splits every statement with `init` into a KN_SET of the identity and the update (without init).
 */
kn_nest *kn_nest_split(kn_arena *a, const kn_nest *nest);
/* All names of sizes, tensors and iterators. */
kn_map kn_nest_names(kn_arena *a, const kn_nest *nest);
/* `wanted`, or wanted_2, wanted_3, ... when taken; interned and entered in `used`. */
const char *kn_unique_name(kn_arena *a, kn_map *used, const char *wanted);
/* The nest with what no statement surely writes set to 0 first: results and temporaries of a notation
   by strangers, of which elements would hold what was in memory. */
kn_nest *kn_nest_complete(kn_arena *a, kn_nest *nest);
/* Readable text, one line a tensor and a statement: also the key under which equal kernels are
 * shared. */
void kn_nest_print(kn_str *out, const kn_nest *nest);

#endif
