/* Index algebra: canonical integer polynomials over atoms.

   A canonical expression is a sum of monomials, a monomial an integer coefficient times a product
   of atoms; an atom is a name, a load, a cast, or floordiv, mod, min, max, select and the like of
   canonical operands. To compute with such expressions they are read into a `kn_sum` (monomials
   with sorted atoms), worked on there, and built again: positive terms first, then negative ones,
   then the constant (`1 - n` when there is no positive term). Monomials are in graded lexicographic
   order, which multiplication respects: so exact division of polynomials is the usual one, leading
   term by leading term.

   Every rewrite holds for all integers, but for symbolic divisors: they are taken as nonzero. */
#include "ir/sum_internal.h"

#include <assert.h>

static const kn_expr *simplify(const kn_algebra *al, const kn_expr *e);
static const kn_expr *divide(const kn_algebra *al, const kn_expr *x, const kn_expr *y);
static const kn_expr *modulo(const kn_algebra *al, const kn_expr *x, const kn_expr *y);

_Noreturn static void zero_divisor(const kn_algebra *al)
{
    kn_raise(kn_arena_ctx(al->arena), KN_INVALID, al->loc,
             "division by zero in an index expression");
}

/* y != 0, and not INT64_MIN / -1 */
static int64_t floor_div(int64_t x, int64_t y)
{
    int64_t q = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

static int64_t floor_mod(int64_t x, int64_t y)
{
    int64_t r = y == -1 ? 0 : x % y;
    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

/* ---- Canonical nodes ---- */

static const kn_expr *canonical_op(const kn_algebra *al, kn_scalar op, const kn_expr *const *args)
{
    kn_expr *e = kn_expr_make(al->arena, KN_E_OP, KN_INDEX, args, kn_scalar_get(op)->arity);
    e->op = op;
    e->canonical = true;
    return e;
}

static const kn_expr *canonical2(const kn_algebra *al, kn_scalar op, const kn_expr *x,
                                 const kn_expr *y)
{
    const kn_expr *args[2] = {x, y};
    return canonical_op(al, op, args);
}

static const kn_expr *constant(const kn_algebra *al, int64_t value)
{
    return kn_index(al->arena, value);
}

static bool is_const(const kn_expr *e)
{
    return e->kind == KN_E_CONST;
}

static bool is_op(const kn_expr *e, kn_scalar op)
{
    return e->kind == KN_E_OP && e->type == KN_INDEX && e->op == op;
}

/* ---- Reading an expression into a polynomial ---- */

static void add_expr(kn_sum *p, const kn_expr *e, int64_t coef);

/* The floordiv of the same operands as `mod` among the atoms of m, or NULL. */
static const kn_expr *matching_div(const kn_monomial *m, const kn_expr *mod)
{
    for (int i = 0; i < m->n; i++) {
        const kn_expr *d = m->atoms[i];
        if (is_op(d, KN_OP_FLOORDIV) && kn_expr_equal(d->args[1], mod->args[1]) &&
            kn_expr_equal(d->args[0], mod->args[0]))
            return d;
    }
    return NULL;
}

/* p = m * e, where m has room for one atom more */
static void read_product(kn_sum *p, const kn_algebra *al, const kn_monomial *m, const kn_expr *e)
{
    kn_sum x, y;
    kn_sum_init(p, al);
    kn_sum_init(&x, al);
    kn_sum_init(&y, al);
    kn_sum_push(&x, m->coef, m->atoms, m->n);
    add_expr(&y, e, 1);
    kn_sum_collect(&y);
    kn_sum_multiply(p, &x, &y);
}

/* Where m = rest * (x % y) and `whole` = rest * y * (x / y): puts rest * x in their place. */
static bool rejoin_pair(kn_sum *p, kn_monomial *m, int at, kn_monomial *whole)
{
    const kn_expr *rest_atoms[KN_EXPR_MAX_DEGREE], *mod = m->atoms[at];
    const kn_expr *div = matching_div(whole, mod);
    kn_monomial one = {1, 1, &mod}, rest = {m->coef, m->n - 1, rest_atoms};
    if (!div)
        return false;
    kn_monomial_without(m, &one, rest_atoms);
    kn_sum r;
    read_product(&r, p->al, &rest, kn_op2(p->al->arena, KN_OP_MUL, mod->args[1], div));
    if (r.n != 1 || r.constant != 0 || r.at[0].coef != whole->coef ||
        kn_monomial_compare(&r.at[0], whole) != 0)
        return false;
    m->coef = whole->coef = 0;
    read_product(&r, p->al, &rest, mod->args[0]);
    kn_sum_add_scaled(p, &r, 1);
    return true;
}

/* rest * (x % y) + rest * y * (x / y) is rest * x. Returns whether there was such a pair. */
static bool rejoin(kn_sum *p)
{
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < p->at[i].n; k++) {
            if (!is_op(p->at[i].atoms[k], KN_OP_MOD))
                continue;
            for (int j = 0; j < p->n; j++) {
                if (j != i && rejoin_pair(p, &p->at[i], k, &p->at[j]))
                    return true;
            }
        }
    }
    return false;
}

/* Brings to the form that build() expects. */
static void combine(kn_sum *p)
{
    kn_sum_collect(p);
    while (rejoin(p))
        kn_sum_collect(p);
}

/* A canonical product: [constant *] atom * atom ... */
static void add_canonical_product(kn_sum *p, const kn_expr *e, int64_t coef)
{
    int n = 1;
    const kn_expr *left = e;
    for (; is_op(left, KN_OP_MUL); left = left->args[0])
        n++;
    if (is_const(left)) {
        coef = kn_checked_mul(p->al, coef, left->i);
        n--;
    }
    const kn_expr **atoms = kn_sum_atoms(p, n);
    for (int i = n; i-- > 0;) {
        bool more = is_op(e, KN_OP_MUL);
        atoms[i] = more ? e->args[1] : e;
        e = more ? e->args[0] : e;
    }
    kn_sum_push(p, coef, atoms, n);
}

/* Any product: factor by factor, from the right. */
static void add_any_product(kn_sum *p, const kn_expr *e, int64_t coef)
{
    kn_sum factor, bufs[2];
    int turn = 0;

    kn_sum_init(&factor, p->al);
    kn_sum_init(&bufs[0], p->al);
    kn_sum_init(&bufs[1], p->al);
    bufs[0].constant = 1;
    for (bool more = true; more; turn = !turn) {
        more = is_op(e, KN_OP_MUL) && !e->canonical;
        kn_sum_init(&factor, p->al);
        add_expr(&factor, more ? e->args[1] : e, 1);
        combine(&factor);
        kn_sum_multiply(&bufs[!turn], &bufs[turn], &factor);
        e = e->nargs ? e->args[0] : NULL;
    }
    kn_sum_add_scaled(p, &bufs[turn], coef);
}

static void add_atom(kn_sum *p, const kn_expr *e, int64_t coef)
{
    const kn_expr *s = simplify(p->al, e);
    bool changed = s != e && s->kind == KN_E_OP;
    if (s->kind == KN_E_CONST)
        p->constant = kn_checked_add(p->al, p->constant, kn_checked_mul(p->al, coef, s->i));
    else if (changed)
        add_expr(p, s, coef);
    else
        kn_sum_push_atom(p, coef, s);
}

/* p += coef * e. Not combined: the caller does that once. Sums are walked along their left spine.
 */
static void add_expr(kn_sum *p, const kn_expr *e, int64_t coef)
{
    while (is_op(e, KN_OP_ADD) || is_op(e, KN_OP_SUB) || is_op(e, KN_OP_NEG)) {
        if (e->op == KN_OP_ADD)
            add_expr(p, e->args[1], coef);
        else if (e->op == KN_OP_SUB)
            add_expr(p, e->args[1], kn_checked_mul(p->al, coef, -1));
        else
            coef = kn_checked_mul(p->al, coef, -1);
        e = e->args[0];
    }
    assert(!e->real && e->type != KN_BOOL);
    if (is_const(e))
        p->constant = kn_checked_add(p->al, p->constant, kn_checked_mul(p->al, coef, e->i));
    else if (is_op(e, KN_OP_MUL) && e->canonical)
        add_canonical_product(p, e, coef);
    else if (is_op(e, KN_OP_MUL))
        add_any_product(p, e, coef);
    else if (e->canonical)
        kn_sum_push_atom(p, coef, e);
    else
        add_atom(p, e, coef);
}

static void read_sum(kn_sum *p, const kn_algebra *al, const kn_expr *e)
{
    kn_sum_init(p, al);
    add_expr(p, e, 1);
    combine(p);
}

/* ---- Building the canonical expression ---- */

/* coef * product of the atoms */
static const kn_expr *build_product(const kn_algebra *al, int64_t coef, const kn_monomial *m)
{
    const kn_expr *r = NULL;
    if (coef == -1 && m->n == 1)
        return canonical_op(al, KN_OP_NEG, m->atoms);
    if (coef != 1)
        r = constant(al, coef);
    for (int i = 0; i < m->n; i++)
        r = r ? canonical2(al, KN_OP_MUL, r, m->atoms[i]) : m->atoms[i];
    return r;
}

/* sum - |coef| * product, for coef < 0 */
static const kn_expr *build_difference(const kn_algebra *al, const kn_expr *sum,
                                       const kn_monomial *m)
{
    if (!sum)
        return build_product(al, m->coef, m);
    if (m->coef == INT64_MIN)
        return canonical2(al, KN_OP_ADD, sum, build_product(al, m->coef, m));
    return canonical2(al, KN_OP_SUB, sum, build_product(al, -m->coef, m));
}

static const kn_expr *build_constant(const kn_algebra *al, const kn_expr *sum, int64_t c)
{
    if (!sum)
        return constant(al, c);
    if (c == 0)
        return sum;
    if (c > 0 || c == INT64_MIN)
        return canonical2(al, KN_OP_ADD, sum, constant(al, c));
    return canonical2(al, KN_OP_SUB, sum, constant(al, -c));
}

/* p is combined. */
static const kn_expr *build(const kn_sum *p)
{
    const kn_algebra *al = p->al;
    const kn_expr *sum = NULL;
    int64_t rest = p->constant;

    for (int i = 0; i < p->n; i++) {
        if (p->at[i].coef > 0) {
            const kn_expr *term = build_product(al, p->at[i].coef, &p->at[i]);
            sum = sum ? canonical2(al, KN_OP_ADD, sum, term) : term;
        }
    }
    if (!sum && rest > 0 && p->n > 0) {
        sum = constant(al, rest);
        rest = 0;
    }
    for (int i = 0; i < p->n; i++) {
        if (p->at[i].coef < 0)
            sum = build_difference(al, sum, &p->at[i]);
    }
    return build_constant(al, sum, rest);
}

/* x + by * y */
static const kn_expr *linear(const kn_algebra *al, const kn_expr *x, const kn_expr *y, int64_t by)
{
    kn_sum p;
    kn_sum_init(&p, al);
    add_expr(&p, x, 1);
    add_expr(&p, y, by);
    combine(&p);
    return build(&p);
}

static const kn_expr *multiply(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    kn_sum px, py, r;
    if (is_const(x) && is_const(y))
        return constant(al, kn_checked_mul(al, x->i, y->i));
    read_sum(&px, al, x);
    read_sum(&py, al, y);
    kn_sum_init(&r, al);
    kn_sum_multiply(&r, &px, &py);
    combine(&r);
    return build(&r);
}

/* ---- Floor division and remainder by a positive constant ---- */

/* q with x = c * q + r: what c divides goes to q; r.constant is in [0, c). */
static void split_by(kn_sum *q, kn_sum *r, const kn_sum *x, int64_t c)
{
    for (int i = 0; i < x->n; i++) {
        const kn_monomial *m = &x->at[i];
        bool exact = m->coef % c == 0;
        kn_sum_push(exact ? q : r, exact ? m->coef / c : m->coef, m->atoms, m->n);
    }
    q->constant = floor_div(x->constant, c);
    r->constant = floor_mod(x->constant, c);
}

/* The greatest common divisor of c > 0 and the coefficients, the constant left out. */
static int64_t common_divisor(const kn_sum *p, int64_t c)
{
    for (int i = 0; i < p->n && c > 1; i++)
        c = (int64_t)kn_gcd(kn_magnitude(p->at[i].coef), (uint64_t)c);
    return c;
}

static void divide_coefficients(kn_sum *p, int64_t g)
{
    for (int i = 0; i < p->n; i++)
        p->at[i].coef /= g;
}

/* r is floordiv(p, a) + k with a > 0: then r / c = (p + k*a) / (a*c). NULL when it is not, or a*c
 * overflows. */
static const kn_expr *divide_nested(const kn_sum *r, int64_t c)
{
    const kn_expr *d = r->n == 1 && r->at[0].n == 1 ? r->at[0].atoms[0] : NULL;
    int64_t by, shift;
    if (!d || r->at[0].coef != 1 || !is_op(d, KN_OP_FLOORDIV) || !is_const(d->args[1]) ||
        d->args[1]->i <= 0)
        return NULL;
    if (__builtin_mul_overflow(d->args[1]->i, c, &by) ||
        __builtin_mul_overflow(d->args[1]->i, r->constant, &shift))
        return NULL;
    const kn_expr *x = linear(r->al, d->args[0], constant(r->al, shift), 1);
    return divide(r->al, x, constant(r->al, by));
}

/* Whether x / c is the same for all x of the range. */
static bool one_quotient(kn_range x, int64_t c, int64_t *quotient)
{
    if (x.lo == INT64_MIN || x.hi == INT64_MAX)
        return false;
    *quotient = floor_div(x.lo, c);
    return *quotient == floor_div(x.hi, c);
}

static const kn_expr *divide_by_constant(const kn_algebra *al, const kn_expr *e, int64_t c)
{
    kn_sum x, q, r;
    read_sum(&x, al, e);
    kn_sum_init(&q, al);
    kn_sum_init(&r, al);
    split_by(&q, &r, &x, c);
    if (r.n == 0)
        return build(&q);
    int64_t g = common_divisor(&r, c), whole = 0;
    divide_coefficients(&r, g);
    r.constant /= g;
    c /= g;

    const kn_expr *rest = divide_nested(&r, c);
    if (!rest) {
        const kn_expr *by[2] = {build(&r), constant(al, c)};
        rest = one_quotient(kn_index_range(by[0], NULL, 0), c, &whole)
                   ? constant(al, whole)
                   : canonical_op(al, KN_OP_FLOORDIV, by);
    }
    add_expr(&q, rest, 1);
    combine(&q);
    return build(&q);
}

/* Within x % c, an atom p % a with c | coef * a is as good as p. Returns whether there was one. */
static bool drop_inner_mods(kn_sum *r, const kn_sum *x, int64_t c)
{
    bool dropped = false;
    r->constant = x->constant;
    for (int i = 0; i < x->n; i++) {
        const kn_monomial *m = &x->at[i];
        const kn_expr *d = m->n == 1 ? m->atoms[0] : NULL;
        int64_t by;
        if (d && is_op(d, KN_OP_MOD) && is_const(d->args[1]) &&
            !__builtin_mul_overflow(d->args[1]->i, m->coef, &by) && by % c == 0) {
            add_expr(r, d->args[0], floor_mod(m->coef, c));
            dropped = true;
        } else {
            kn_sum_push(r, m->coef, m->atoms, m->n);
        }
    }
    combine(r);
    return dropped;
}

/* Coefficients to (-c/2, c/2], the constant to [0, c). */
static void reduce_by(kn_sum *r, const kn_sum *x, int64_t c)
{
    for (int i = 0; i < x->n; i++) {
        int64_t k = floor_mod(x->at[i].coef, c);
        kn_sum_push(r, k > c / 2 ? k - c : k, x->at[i].atoms, x->at[i].n);
    }
    r->constant = floor_mod(x->constant, c);
}

/* (g*x + k) % (g*c) = g * ((x + k/g) % c) + k % g */
static const kn_expr *modulo_by_constant(const kn_algebra *al, const kn_expr *e, int64_t c)
{
    kn_sum x, y, r;
    read_sum(&x, al, e);
    kn_sum_init(&y, al);
    kn_sum_init(&r, al);
    bool again = drop_inner_mods(&y, &x, c);
    reduce_by(&r, &y, c);
    if (again)
        return modulo_by_constant(al, build(&r), c);
    if (r.n == 0)
        return constant(al, r.constant);
    int64_t g = common_divisor(&r, c), left = floor_mod(r.constant, g), whole;
    divide_coefficients(&r, g);
    r.constant /= g;
    c /= g;

    const kn_expr *args[2] = {build(&r), constant(al, c)};
    kn_sum sum;
    kn_sum_init(&sum, al);
    if (one_quotient(kn_index_range(args[0], NULL, 0), c, &whole))
        add_expr(&sum, linear(al, args[0], args[1], kn_checked_mul(al, whole, -1)), g);
    else
        kn_sum_push_atom(&sum, g, canonical_op(al, KN_OP_MOD, args));
    sum.constant = kn_checked_add(al, sum.constant, left);
    combine(&sum);
    return build(&sum);
}

/* ---- Floor division and remainder by anything ---- */

static const kn_expr *cancelled(const kn_sum *p, int64_t by, const kn_monomial *common)
{
    kn_sum r;
    kn_sum_init(&r, p->al);
    kn_sum_cancel(&r, p, by, common);
    combine(&r);
    return build(&r);
}

/* Cancels what x and y have in common, and makes the leading coefficient of y positive. Returns
 * whether it did. */
static bool cancel(const kn_sum *x, const kn_sum *y, const kn_expr **px, const kn_expr **py)
{
    const kn_expr *atoms[KN_EXPR_MAX_DEGREE];
    kn_monomial common = {1, kn_sum_common_atoms(x, y, atoms), atoms};
    int64_t g = kn_sum_content(x, y);
    if (y->at[0].coef < 0)
        g = -g;
    if (g == 1 && common.n == 0)
        return false;
    *px = cancelled(x, g, &common);
    *py = cancelled(y, g, &common);
    return true;
}

static const kn_expr *divide_symbolic(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    kn_sum px, py, q;
    read_sum(&px, al, x);
    read_sum(&py, al, y);
    kn_sum_init(&q, al);
    if (kn_sum_divide(&q, &px, &py)) {
        combine(&q);
        return build(&q);
    }
    if (cancel(&px, &py, &x, &y))
        return divide(al, x, y);
    return canonical2(al, KN_OP_FLOORDIV, x, y);
}

/* floor(x / y) of canonical operands */
static const kn_expr *divide(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    if (!is_const(y))
        return divide_symbolic(al, x, y);
    if (y->i == 0)
        zero_divisor(al);
    if (y->i < 0)
        return divide_by_constant(al, linear(al, constant(al, 0), x, -1),
                                  kn_checked_mul(al, y->i, -1));
    return divide_by_constant(al, x, y->i);
}

/* x mod y, with the sign of y */
static const kn_expr *modulo(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    const kn_expr *zero = constant(al, 0);
    if (is_const(y) && y->i == 0)
        zero_divisor(al);
    if (is_const(y) && y->i > 0)
        return modulo_by_constant(al, x, y->i);
    if (is_const(y)) {
        const kn_expr *r =
            modulo_by_constant(al, linear(al, zero, x, -1), kn_checked_mul(al, y->i, -1));
        return linear(al, zero, r, -1);
    }
    kn_sum px, py, q;
    read_sum(&px, al, x);
    read_sum(&py, al, y);
    kn_sum_init(&q, al);
    if (kn_sum_divide(&q, &px, &py))
        return zero;
    return canonical2(al, KN_OP_MOD, x, y);
}

/* ---- The other operators ---- */

/* A sound range of x - y, as far as its signs go. */
static kn_range difference(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    bool failed = false;
    kn_algebra quiet = {al->arena, al->loc, &failed};
    int sign = is_const(x) && is_const(y) ? (x->i > y->i) - (x->i < y->i) : 0;
    if (sign != 0)
        return (kn_range){sign, sign};
    const kn_expr *d = linear(&quiet, x, y, -1);
    return failed ? (kn_range){INT64_MIN, INT64_MAX} : kn_index_range(d, NULL, 0);
}

static const kn_expr *extremum(const kn_algebra *al, kn_scalar op, const kn_expr *x,
                               const kn_expr *y)
{
    kn_range d = difference(al, x, y);
    bool max = op == KN_OP_MAX;
    if (d.lo >= 0)
        return max ? x : y;
    if (d.hi <= 0)
        return max ? y : x;
    if (is_op(y, op) && (kn_expr_equal(x, y->args[0]) || kn_expr_equal(x, y->args[1])))
        return y;
    if (is_op(x, op) && (kn_expr_equal(y, x->args[0]) || kn_expr_equal(y, x->args[1])))
        return x;
    bool swap = is_const(x) || (!is_const(y) && kn_expr_compare(x, y) > 0);
    return canonical2(al, op, swap ? y : x, swap ? x : y);
}

static const kn_expr *choose(const kn_algebra *al, const kn_expr *e)
{
    const kn_expr *args[3] = {simplify(al, e->args[0])};
    if (is_const(args[0]))
        return simplify(al, e->args[args[0]->i ? 1 : 2]);
    args[1] = simplify(al, e->args[1]);
    args[2] = simplify(al, e->args[2]);
    if (kn_expr_equal(args[1], args[2]))
        return args[1];
    if (e->type == KN_INDEX)
        return canonical_op(al, KN_OP_SELECT, args);
    return kn_expr_with(al->arena, e, e->type, args);
}

/* Small powers multiply out; the arithmetic is checked. */
static const kn_expr *power(const kn_algebra *al, const kn_expr *x, const kn_expr *y)
{
    enum { SMALL = 4 };
    const kn_expr *r = constant(al, 1);
    if (is_const(x) && is_const(y) && kn_magnitude(x->i) <= 1)
        return kn_expr_fold(al->arena, canonical2(al, KN_OP_POW, x, y));
    if (!is_const(y) || y->i < 0 || (y->i > SMALL && !is_const(x)))
        return canonical2(al, KN_OP_POW, x, y);
    for (int64_t i = 0; i < y->i; i++)
        r = multiply(al, r, x);
    return r;
}

static const kn_expr *absolute(const kn_algebra *al, const kn_expr *x)
{
    kn_range r = kn_index_range(x, NULL, 0);
    if (r.lo >= 0)
        return x;
    if (r.hi <= 0)
        return linear(al, constant(al, 0), x, -1);
    return canonical_op(al, KN_OP_ABS, &x);
}

/* Whether x OP y is the same for all x - y in d. */
static bool decided(kn_scalar op, kn_range d, bool *value)
{
    bool less = d.hi<0, le = d.hi <= 0, greater = d.lo> 0, ge = d.lo >= 0;
    switch (op) {
    case KN_OP_LT: *value = less; return less || ge;
    case KN_OP_LE: *value = le; return le || greater;
    case KN_OP_GT: *value = greater; return greater || le;
    case KN_OP_GE: *value = ge; return ge || less;
    case KN_OP_EQ: *value = le && ge; return *value || less || greater;
    case KN_OP_NE: *value = less || greater; return *value || (le && ge);
    default: return false;
    }
}

static const kn_expr *compare(const kn_algebra *al, const kn_expr *e)
{
    const kn_expr *args[2] = {simplify(al, e->args[0]), simplify(al, e->args[1])};
    bool value;
    if (args[0]->type == KN_INDEX && args[1]->type == KN_INDEX &&
        decided(e->op, difference(al, args[0], args[1]), &value))
        return kn_int(al->arena, KN_BOOL, value);
    return kn_expr_with(al->arena, e, e->type, args);
}

/* && and ||: a left side that decides hides the right one; a right side is dropped only where it
 * has no say. */
static const kn_expr *logic(const kn_algebra *al, const kn_expr *e)
{
    bool neutral = e->op == KN_OP_LAND;
    const kn_expr *args[2] = {simplify(al, e->args[0])};
    if (e->op == KN_OP_LNOT)
        return is_const(args[0]) ? kn_int(al->arena, KN_BOOL, !args[0]->i)
                                 : kn_expr_with(al->arena, e, e->type, args);
    if (is_const(args[0]))
        return (args[0]->i != 0) == neutral ? simplify(al, e->args[1]) : args[0];
    args[1] = simplify(al, e->args[1]);
    if (is_const(args[1]) && (args[1]->i != 0) == neutral)
        return args[0];
    return kn_expr_with(al->arena, e, e->type, args);
}

/* The same node of simplified arguments; constants fold. */
static const kn_expr *rebuilt(const kn_algebra *al, const kn_expr *e)
{
    enum { FEW = 4 };
    const kn_expr *few[FEW], **args = few;
    if (e->nargs > FEW)
        args = KN_ARRAY(al->arena, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++)
        args[i] = simplify(al, e->args[i]);
    const kn_expr *r = kn_expr_with(al->arena, e, e->type, args);
    if (e->type != KN_INDEX)
        return r;
    const kn_expr *folded = kn_expr_fold(al->arena, r);
    if (folded)
        return folded;
    kn_expr *copy = kn_expr_make(al->arena, r->kind, r->type, r->args, r->nargs);
    copy->op = r->op;
    copy->mode = r->mode;
    copy->name = r->name;
    copy->canonical = true;
    return copy;
}

static const kn_expr *simplify_sum(const kn_algebra *al, const kn_expr *e)
{
    kn_sum p;
    read_sum(&p, al, e);
    return build(&p);
}

static const kn_expr *simplify_binary(const kn_algebra *al, const kn_expr *e)
{
    const kn_expr *x = simplify(al, e->args[0]), *y = simplify(al, e->args[1]);
    switch (e->op) {
    case KN_OP_DIV:
    case KN_OP_FLOORDIV: return divide(al, x, y);
    case KN_OP_REM:
    case KN_OP_MOD: return modulo(al, x, y);
    case KN_OP_MIN:
    case KN_OP_MAX: return extremum(al, e->op, x, y);
    case KN_OP_POW: return power(al, x, y);
    default: return rebuilt(al, e);
    }
}

static const kn_expr *simplify_index_op(const kn_algebra *al, const kn_expr *e)
{
    switch (e->op) {
    case KN_OP_ADD:
    case KN_OP_SUB:
    case KN_OP_MUL:
    case KN_OP_NEG: return simplify_sum(al, e);
    case KN_OP_SELECT: return choose(al, e);
    case KN_OP_ABS: return absolute(al, simplify(al, e->args[0]));
    default: return e->nargs == 2 ? simplify_binary(al, e) : rebuilt(al, e);
    }
}

static const kn_expr *simplify(const kn_algebra *al, const kn_expr *e)
{
    if (e->canonical || e->nargs == 0 || e->type == KN_UNTYPED)
        return e;
    if (e->kind != KN_E_OP)
        return rebuilt(al, e);
    if (e->type == KN_INDEX)
        return simplify_index_op(al, e);
    switch (kn_scalar_get(e->op)->class) {
    case KN_CLASS_COMPARE: return compare(al, e);
    case KN_CLASS_LOGIC: return logic(al, e);
    case KN_CLASS_SELECT: return choose(al, e);
    case KN_CLASS_ARITH:
    case KN_CLASS_FLOAT:
    case KN_CLASS_BITS: return rebuilt(al, e);
    }
    return e;
}

/* ---- The public algebra ---- */

const kn_expr *kn_index_simplify_at(kn_arena *a, const kn_expr *e, kn_loc loc)
{
    kn_algebra al = {a, loc, NULL};
    return simplify(&al, e);
}

const kn_expr *kn_index_simplify(kn_arena *a, const kn_expr *e)
{
    return kn_index_simplify_at(a, e, kn_loc_none());
}

const kn_expr *kn_index_add(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return linear(&al, x, y, 1);
}

const kn_expr *kn_index_sub(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return linear(&al, x, y, -1);
}

const kn_expr *kn_index_mul(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return multiply(&al, x, y);
}

const kn_expr *kn_index_div(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return divide(&al, simplify(&al, x), simplify(&al, y));
}

const kn_expr *kn_index_mod(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return modulo(&al, simplify(&al, x), simplify(&al, y));
}

const kn_expr *kn_index_min(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return extremum(&al, KN_OP_MIN, simplify(&al, x), simplify(&al, y));
}

const kn_expr *kn_index_max(kn_arena *a, const kn_expr *x, const kn_expr *y)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    return extremum(&al, KN_OP_MAX, simplify(&al, x), simplify(&al, y));
}

const kn_expr *kn_index_ceildiv(kn_arena *a, const kn_expr *x, int64_t by)
{
    assert(by > 0);
    return kn_index_div(a, kn_index_add(a, x, kn_index(a, by - 1)), kn_index(a, by));
}

bool kn_index_is(const kn_expr *e, int64_t value)
{
    return is_const(e) && e->type == KN_INDEX && e->i == value;
}

bool kn_index_const(const kn_expr *e, int64_t *value)
{
    if (!is_const(e) || e->type != KN_INDEX)
        return false;
    *value = e->i;
    return true;
}

const kn_expr *kn_index_product(kn_arena *a, const kn_expr *const *dims, int n)
{
    const kn_expr *r = kn_index(a, 1);
    for (int i = 0; i < n; i++)
        r = kn_index_mul(a, r, dims[i]);
    return r;
}

int kn_index_terms(kn_arena *a, const kn_expr *e, int64_t *c, int64_t *coef, const kn_expr **term,
                   int cap)
{
    kn_algebra al = {a, kn_loc_none(), NULL};
    kn_sum p;
    read_sum(&p, &al, e);
    if (p.n > cap)
        return -1;
    *c = p.constant;
    for (int i = 0; i < p.n; i++) {
        coef[i] = p.at[i].coef;
        term[i] = build_product(&al, 1, &p.at[i]);
    }
    return p.n;
}
