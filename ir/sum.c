/* Polynomials over atoms: storage, order, arithmetic, exact division.

   Monomials are in graded lexicographic order, which multiplication respects: so exact division is
   the usual one, leading term by leading term. Small ones need no allocation; large ones are
   bounded by KN_EXPR_MAX_TERMS and _DEGREE. */
#include "ir/sum_internal.h"

#include <stdlib.h>

static void fail(const kn_algebra *al, const char *what)
{
    if (al->failed)
        *al->failed = true;
    else
        kn_raise(kn_arena_ctx(al->arena), KN_INVALID, al->loc, "%s", what);
}

_Noreturn static void too_large(const kn_algebra *al)
{
    kn_raise(kn_arena_ctx(al->arena), KN_INVALID, al->loc, "expression too large");
}

/* ---- Checked arithmetic ---- */

int64_t kn_checked_add(const kn_algebra *al, int64_t x, int64_t y)
{
    int64_t r;
    if (!__builtin_add_overflow(x, y, &r))
        return r;
    fail(al, "an index expression overflows 64 bits");
    return 0;
}

int64_t kn_checked_mul(const kn_algebra *al, int64_t x, int64_t y)
{
    int64_t r;
    if (!__builtin_mul_overflow(x, y, &r))
        return r;
    fail(al, "an index expression overflows 64 bits");
    return 0;
}

uint64_t kn_magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

uint64_t kn_gcd(uint64_t x, uint64_t y)
{
    while (y) {
        uint64_t r = x % y;
        x = y;
        y = r;
    }
    return x;
}

/* ---- Polynomials: storage and order ---- */

void kn_sum_init(kn_sum *p, const kn_algebra *al)
{
    p->al = al;
    p->constant = 0;
    p->n = 0;
    p->cap = KN_SUM_FEW_TERMS;
    p->at = p->few;
    p->atoms = p->few_atoms;
    p->atoms_left = p->chunk = KN_SUM_FEW_ATOMS;
}

void kn_sum_clear(kn_sum *p)
{
    p->constant = 0;
    p->n = 0;
}

int kn_monomial_compare(const void *px, const void *py)
{
    const kn_monomial *x = px, *y = py;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    int c = 0;
    for (int i = 0; c == 0 && i < x->n; i++)
        c = kn_expr_compare(x->atoms[i], y->atoms[i]);
    return c;
}

static void sort_monomials(kn_monomial *at, int n)
{
    if (n > 32) {
        qsort(at, (size_t)n, sizeof *at, kn_monomial_compare);
        return;
    }
    for (int i = 1; i < n; i++) {
        kn_monomial m = at[i];
        int j = i;
        for (; j > 0 && kn_monomial_compare(&at[j - 1], &m) > 0; j--)
            at[j] = at[j - 1];
        at[j] = m;
    }
}

void kn_sum_collect(kn_sum *p)
{
    int n = 0;
    sort_monomials(p->at, p->n);
    for (int i = 0; i < p->n; i++) {
        if (n > 0 && kn_monomial_compare(&p->at[n - 1], &p->at[i]) == 0) {
            p->at[n - 1].coef = kn_checked_add(p->al, p->at[n - 1].coef, p->at[i].coef);
            continue;
        }
        if (n > 0 && p->at[n - 1].coef == 0)
            n--;
        p->at[n++] = p->at[i];
    }
    if (n > 0 && p->at[n - 1].coef == 0)
        n--;
    p->n = n;
    if (n > KN_EXPR_MAX_TERMS) {
        fail(p->al, "expression too large");
        p->n = 0;
    }
}

static void grow(kn_sum *p)
{
    if (p->n >= 4 * KN_EXPR_MAX_TERMS) {
        kn_sum_collect(p);
        return;
    }
    kn_monomial *at = KN_ARRAY(p->al->arena, kn_monomial, 2 * p->cap);
    memcpy(at, p->at, (size_t)p->n * sizeof *at);
    p->at = at;
    p->cap *= 2;
}

const kn_expr **kn_sum_atoms(kn_sum *p, int n)
{
    if (n > KN_EXPR_MAX_DEGREE)
        too_large(p->al);
    if (n > p->atoms_left) {
        p->chunk = 2 * p->chunk > n ? 2 * p->chunk : n;
        p->atoms = KN_ARRAY(p->al->arena, const kn_expr *, p->chunk);
        p->atoms_left = p->chunk;
    }
    const kn_expr **r = p->atoms;
    p->atoms += n;
    p->atoms_left -= n;
    return r;
}

void kn_sum_push(kn_sum *p, int64_t coef, const kn_expr *const *atoms, int n)
{
    if (n == 0) {
        p->constant = kn_checked_add(p->al, p->constant, coef);
        return;
    }
    if (coef == 0)
        return;
    if (p->n == p->cap)
        grow(p);
    p->at[p->n++] = (kn_monomial){coef, n, atoms};
}

void kn_sum_push_atom(kn_sum *p, int64_t coef, const kn_expr *atom)
{
    const kn_expr **atoms = kn_sum_atoms(p, 1);
    atoms[0] = atom;
    kn_sum_push(p, coef, atoms, 1);
}

/* p += by * x */
void kn_sum_add_scaled(kn_sum *p, const kn_sum *x, int64_t by)
{
    p->constant = kn_checked_add(p->al, p->constant, kn_checked_mul(p->al, x->constant, by));
    for (int i = 0; i < x->n; i++) {
        const kn_monomial *m = &x->at[i];
        const kn_expr **atoms = kn_sum_atoms(p, m->n);
        memcpy(atoms, m->atoms, (size_t)m->n * sizeof *atoms);
        kn_sum_push(p, kn_checked_mul(p->al, m->coef, by), atoms, m->n);
    }
}

/* p += x * y, monomials */
static void add_product(kn_sum *p, const kn_monomial *x, const kn_monomial *y)
{
    int i = 0, j = 0, n = 0;
    const kn_expr **atoms = kn_sum_atoms(p, x->n + y->n);
    while (i < x->n || j < y->n) {
        bool first = j == y->n || (i < x->n && kn_expr_compare(x->atoms[i], y->atoms[j]) <= 0);
        atoms[n++] = first ? x->atoms[i++] : y->atoms[j++];
    }
    kn_sum_push(p, kn_checked_mul(p->al, x->coef, y->coef), atoms, n);
}

/* The atoms of x without those of y, in `rest` (room for x's degree); the number left, -1 when y
 * does not divide x. */
int kn_monomial_without(const kn_monomial *x, const kn_monomial *y, const kn_expr **rest)
{
    int j = 0, n = 0;
    for (int i = 0; i < x->n; i++) {
        if (j < y->n && kn_expr_compare(x->atoms[i], y->atoms[j]) == 0)
            j++;
        else
            rest[n++] = x->atoms[i];
    }
    return j == y->n ? n : -1;
}

/* The i-th monomial, the constant being the last. */
static kn_monomial term_of(const kn_sum *p, int i)
{
    return i < p->n ? p->at[i] : (kn_monomial){p->constant, 0, NULL};
}

/* r = x * y; r is none of the two. */
void kn_sum_multiply(kn_sum *r, const kn_sum *x, const kn_sum *y)
{
    kn_sum_clear(r);
    if ((x->n + 1) * (y->n + 1) > 4 * KN_EXPR_MAX_TERMS)
        too_large(r->al);
    for (int i = 0; i <= x->n; i++) {
        kn_monomial mx = term_of(x, i);
        for (int j = 0; j <= y->n && mx.coef != 0; j++) {
            kn_monomial my = term_of(y, j);
            if (my.coef != 0)
                add_product(r, &mx, &my);
        }
    }
    kn_sum_collect(r);
}

/* ---- Division ---- */

/* t = x / y for monomials, when exact. */
static bool divide_monomials(kn_sum *into, const kn_monomial *x, const kn_monomial *y,
                             kn_monomial *t)
{
    bool inexact = y->coef == -1 ? x->coef == INT64_MIN : x->coef % y->coef != 0;
    if (inexact || x->n < y->n)
        return false;
    const kn_expr **atoms = kn_sum_atoms(into, x->n);
    int n = kn_monomial_without(x, y, atoms);
    *t = (kn_monomial){x->coef / y->coef, n, atoms};
    return n >= 0;
}

/* p -= t * y */
static void subtract_multiple(kn_sum *p, kn_monomial t, const kn_sum *y)
{
    t.coef = kn_checked_mul(p->al, t.coef, -1);
    for (int i = 0; i <= y->n; i++) {
        kn_monomial m = term_of(y, i);
        if (m.coef != 0)
            add_product(p, &t, &m);
    }
    kn_sum_collect(p);
}

/* Whether x = q * y exactly: leading term by leading term. y is no constant. */
bool kn_sum_divide(kn_sum *q, const kn_sum *x, const kn_sum *y)
{
    enum { MAX_STEPS = 64 };
    bool failed = false;
    kn_algebra quiet = {q->al->arena, q->al->loc, &failed};
    kn_sum bufs[2], *rest = &bufs[0], *next = &bufs[1];
    kn_sum_init(rest, &quiet);
    kn_sum_init(next, &quiet);
    kn_sum_add_scaled(rest, x, 1);
    for (int step = 0; rest->n > 0; step++) {
        kn_monomial t;
        if (failed || step == MAX_STEPS || !divide_monomials(q, &rest->at[0], &y->at[0], &t))
            return false;
        kn_sum_push(q, t.coef, t.atoms, t.n);
        kn_sum_clear(next);
        kn_sum_add_scaled(next, rest, 1);
        subtract_multiple(next, t, y);
        kn_sum *done = rest;
        rest = next;
        next = done;
    }
    kn_sum_collect(q);
    return !failed && rest->constant == 0;
}

int kn_sum_common_atoms(const kn_sum *x, const kn_sum *y, const kn_expr **common)
{
    int n = y->at[0].n;
    if (x->constant != 0 || y->constant != 0)
        return 0;
    memcpy(common, y->at[0].atoms, (size_t)n * sizeof *common);
    for (int i = 0; i < x->n + y->n && n > 0; i++) {
        const kn_monomial *m = i < x->n ? &x->at[i] : &y->at[i - x->n];
        int kept = 0;
        for (int j = 0, k = 0; j < n && k < m->n;) {
            int c = kn_expr_compare(common[j], m->atoms[k]);
            if (c == 0)
                common[kept++] = common[j];
            j += c <= 0;
            k += c >= 0;
        }
        n = kept;
    }
    return n;
}

int64_t kn_sum_content(const kn_sum *x, const kn_sum *y)
{
    uint64_t g = 0; /* gcd of all; 0 - INT64_MIN alone gives 2^63 */
    const kn_sum *both[2] = {x, y};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i <= both[k]->n; i++)
            g = kn_gcd(g, kn_magnitude(term_of(both[k], i).coef));
    }
    return g > INT64_MAX ? 1 : (int64_t)g;
}

static int64_t exact_quotient(const kn_algebra *al, int64_t x, int64_t g)
{
    return g == -1 ? kn_checked_mul(al, x, -1) : x / g;
}

void kn_sum_cancel(kn_sum *r, const kn_sum *p, int64_t by, const kn_monomial *common)
{
    for (int i = 0; i < p->n; i++) {
        const kn_expr **atoms = kn_sum_atoms(r, p->at[i].n);
        int n = kn_monomial_without(&p->at[i], common, atoms);
        kn_sum_push(r, exact_quotient(p->al, p->at[i].coef, by), atoms, n);
    }
    r->constant = kn_checked_add(p->al, r->constant, exact_quotient(p->al, p->constant, by));
    kn_sum_collect(r);
}
