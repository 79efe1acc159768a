/* Polynomials over atoms, the working form of index algebra: a constant and a list of monomials,
   each an integer coefficient times a product of atoms in the order of kn_expr_compare(). Used by
   index.c alone. */
#ifndef KN_IR_SUM_INTERNAL_H
#define KN_IR_SUM_INTERNAL_H

#include "ir/expr_internal.h"

typedef struct {
    kn_arena *arena;
    kn_loc loc;   /* of errors */
    bool *failed; /* not NULL: an overflow or too many terms set it, and what is computed is void;
                     else they raise */
} kn_algebra;

typedef struct {
    int64_t coef;
    int n; /* the degree */
    const kn_expr *const *atoms;
} kn_monomial;

enum { KN_SUM_FEW_TERMS = 8, KN_SUM_FEW_ATOMS = 16 };

/* Small ones live on the stack altogether; it is never copied, since it points into itself. */
typedef struct {
    const kn_algebra *al;
    int64_t constant;
    int n, cap;
    kn_monomial *at;
    int atoms_left;
    const kn_expr **atoms; /* where the next monomial's atoms go */
    int chunk;
    kn_monomial few[KN_SUM_FEW_TERMS];
    const kn_expr *few_atoms[KN_SUM_FEW_ATOMS];
} kn_sum;

/* Raise, or set `failed` and yield 0. */
int64_t kn_checked_add(const kn_algebra *al, int64_t x, int64_t y);
int64_t kn_checked_mul(const kn_algebra *al, int64_t x, int64_t y);
uint64_t kn_magnitude(int64_t x);
uint64_t kn_gcd(uint64_t x, uint64_t y);

void kn_sum_init(kn_sum *p, const kn_algebra *al);
/* Keeps what was allocated, not the atoms of earlier monomials. */
void kn_sum_clear(kn_sum *p);
/* Room for the atoms of one monomial. */
const kn_expr **kn_sum_atoms(kn_sum *p, int n);
/* The atoms are kept, not copied. */
void kn_sum_push(kn_sum *p, int64_t coef, const kn_expr *const *atoms, int n);
void kn_sum_push_atom(kn_sum *p, int64_t coef, const kn_expr *atom);
/* p += by * x */
void kn_sum_add_scaled(kn_sum *p, const kn_sum *x, int64_t by);
/* Sorts (higher degrees first, then by the atoms), adds like terms, drops zeros. What is said to be
   collected below needs it. */
void kn_sum_collect(kn_sum *p);
/* r = x * y, collected; r is none of the two. */
void kn_sum_multiply(kn_sum *r, const kn_sum *x, const kn_sum *y);
/* Whether x = q * y exactly; q starts empty and is collected then. x and y are collected, y is no
 * constant. */
bool kn_sum_divide(kn_sum *q, const kn_sum *x, const kn_sum *y);
/* The greatest common divisor of all coefficients and constants, at most INT64_MAX (else 1). */
int64_t kn_sum_content(const kn_sum *x, const kn_sum *y);
/* The atoms that every monomial of x and y has, in `common`: room for KN_EXPR_MAX_DEGREE. Their
 * number. */
int kn_sum_common_atoms(const kn_sum *x, const kn_sum *y, const kn_expr **common);
/* r = p / (by * the atoms of `common`), which is exact; r starts empty. */
void kn_sum_cancel(kn_sum *r, const kn_sum *p, int64_t by, const kn_monomial *common);

/* By degree, then atoms; the coefficients do not count. */
int kn_monomial_compare(const void *x, const void *y);
/* The atoms of x without those of y, in `rest` (room for x's degree); the number left, -1 when y
 * does not divide x. */
int kn_monomial_without(const kn_monomial *x, const kn_monomial *y, const kn_expr **rest);

#endif
