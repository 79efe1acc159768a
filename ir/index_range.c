/* What is known of the value of an index expression: sound intervals, and evaluation.

   The ends INT64_MIN and INT64_MAX of an interval stand for infinity; arithmetic on ends saturates
   there, which widens an interval at most. Evaluation is checked: overflow and division by zero
   make it fail. */
#include "ir/expr_internal.h"

#include <assert.h>

static const kn_range everything = {INT64_MIN, INT64_MAX};

typedef struct {
    const kn_size *sizes;
    const int64_t *values; /* when evaluating */
    int n;
} scope;

static int find_size(const scope *s, const char *name)
{
    for (int i = 0; i < s->n; i++) {
        if (kn_same_name(s->sizes[i].name, name))
            return i;
    }
    return -1;
}

/* ---- Intervals ---- */

static bool is_infinite(int64_t x)
{
    return x == INT64_MIN || x == INT64_MAX;
}

static int64_t saturating_add(int64_t x, int64_t y)
{
    int64_t r;
    if (is_infinite(x))
        return x;
    if (is_infinite(y))
        return y;
    if (__builtin_add_overflow(x, y, &r))
        return x < 0 ? INT64_MIN : INT64_MAX;
    return r;
}

static int64_t saturating_mul(int64_t x, int64_t y)
{
    int64_t r;
    if (x == 0 || y == 0)
        return 0;
    if (is_infinite(x) || is_infinite(y) || __builtin_mul_overflow(x, y, &r))
        return (x < 0) != (y < 0) ? INT64_MIN : INT64_MAX;
    return r;
}

static int64_t negated(int64_t x)
{
    if (is_infinite(x))
        return x < 0 ? INT64_MAX : INT64_MIN;
    return -x;
}

/* y != 0 */
static int64_t saturating_div(int64_t x, int64_t y)
{
    if (is_infinite(x))
        return y < 0 ? negated(x) : x;
    if (is_infinite(y))
        return x == 0 || (x < 0) == (y < 0) ? 0 : -1;
    int64_t q = x / y;
    return x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t greatest(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static bool is_empty(kn_range r)
{
    return r.lo > r.hi;
}

static kn_range hull(kn_range x, kn_range y)
{
    if (is_empty(x) || is_empty(y))
        return is_empty(x) ? y : x;
    return (kn_range){least(x.lo, y.lo), greatest(x.hi, y.hi)};
}

static kn_range range_neg(kn_range x)
{
    return (kn_range){negated(x.hi), negated(x.lo)};
}

static kn_range range_add(kn_range x, kn_range y)
{
    return (kn_range){saturating_add(x.lo, y.lo), saturating_add(x.hi, y.hi)};
}

/* The hull of f at the four corners: f is monotonic in each operand. */
static kn_range corners(kn_range x, kn_range y, int64_t (*f)(int64_t, int64_t))
{
    int64_t a = f(x.lo, y.lo), b = f(x.lo, y.hi), c = f(x.hi, y.lo), d = f(x.hi, y.hi);
    return (kn_range){least(least(a, b), least(c, d)), greatest(greatest(a, b), greatest(c, d))};
}

static kn_range positive_part(kn_range y)
{
    return (kn_range){greatest(y.lo, 1), y.hi};
}

static kn_range negative_part(kn_range y)
{
    return (kn_range){y.lo, least(y.hi, -1)};
}

/* Divisors that are zero do not count: nothing is evaluated then. */
static kn_range range_div(kn_range x, kn_range y)
{
    kn_range up = positive_part(y), down = negative_part(y);
    kn_range r = {1, 0};
    if (!is_empty(up))
        r = hull(r, corners(x, up, saturating_div));
    if (!is_empty(down))
        r = hull(r, corners(x, down, saturating_div));
    return is_empty(r) ? everything : r;
}

/* x mod y for y > 0 */
static kn_range mod_positive(kn_range x, kn_range y)
{
    if (x.lo >= 0 && x.hi < y.lo)
        return x;
    int64_t hi = y.hi == INT64_MAX ? INT64_MAX : y.hi - 1;
    return (kn_range){0, x.lo >= 0 ? least(hi, x.hi) : hi};
}

static kn_range range_mod(kn_range x, kn_range y)
{
    kn_range up = positive_part(y), down = negative_part(y);
    kn_range r = {1, 0};
    if (!is_empty(up))
        r = hull(r, mod_positive(x, up));
    if (!is_empty(down))
        r = hull(r, range_neg(mod_positive(range_neg(x), range_neg(down))));
    return is_empty(r) ? everything : r;
}

static kn_range range_abs(kn_range x)
{
    if (x.lo >= 0)
        return x;
    kn_range n = range_neg(x);
    return x.hi <= 0 ? n : (kn_range){0, greatest(x.hi, n.hi)};
}

static kn_range range_of(const scope *s, const kn_expr *e);

static kn_range range_of_op(const scope *s, const kn_expr *e)
{
    int first = e->op == KN_OP_SELECT ? 1 : 0;
    kn_range x = range_of(s, e->args[first]);
    kn_range y = e->nargs > first + 1 ? range_of(s, e->args[first + 1]) : everything;
    switch (e->op) {
    case KN_OP_ADD: return range_add(x, y);
    case KN_OP_SUB: return range_add(x, range_neg(y));
    case KN_OP_NEG: return range_neg(x);
    case KN_OP_MUL: return corners(x, y, saturating_mul);
    case KN_OP_DIV:
    case KN_OP_FLOORDIV: return range_div(x, y);
    case KN_OP_REM:
    case KN_OP_MOD: return range_mod(x, y);
    case KN_OP_MIN: return (kn_range){least(x.lo, y.lo), least(x.hi, y.hi)};
    case KN_OP_MAX: return (kn_range){greatest(x.lo, y.lo), greatest(x.hi, y.hi)};
    case KN_OP_ABS: return range_abs(x);
    case KN_OP_SELECT: return hull(x, y);
    default: return everything;
    }
}

static kn_range range_of(const scope *s, const kn_expr *e)
{
    int i;
    if (e->type == KN_BOOL)
        return (kn_range){0, 1};
    if (e->type != KN_INDEX)
        return everything;
    switch (e->kind) {
    case KN_E_CONST: return (kn_range){e->i, e->i};
    case KN_E_VAR:
        i = find_size(s, e->name);
        return i < 0 ? everything : (kn_range){s->sizes[i].lo, s->sizes[i].hi};
    case KN_E_LOAD:
    case KN_E_CAST: return everything;
    case KN_E_OP: return range_of_op(s, e);
    }
    return everything;
}

kn_range kn_index_range(const kn_expr *e, const kn_size *sizes, int n)
{
    scope s = {sizes, NULL, n};
    return range_of(&s, e);
}

/* ---- Evaluation ---- */

static bool eval(const scope *s, const kn_expr *e, int64_t *out);

static bool eval_divide(int64_t x, int64_t y, bool remainder, int64_t *out)
{
    if (y == 0 || (x == INT64_MIN && y == -1 && !remainder))
        return false;
    int64_t r = y == -1 ? 0 : x % y;
    bool adjust = r != 0 && (r < 0) != (y < 0);
    *out = remainder ? (adjust ? r + y : r) : x / y - adjust;
    return true;
}

static bool eval_power(int64_t x, int64_t n, int64_t *out)
{
    int64_t r = 1;
    if (n < 0)
        return false;
    for (; n > 0; n >>= 1) {
        if ((n & 1) && __builtin_mul_overflow(r, x, &r))
            return false;
        if (n > 1 && __builtin_mul_overflow(x, x, &x))
            return false;
    }
    *out = r;
    return true;
}

/* What is checked or lazy is done here; the rest means the same as on values. */
static bool eval_binary(kn_scalar op, int64_t x, int64_t y, int64_t *out)
{
    kn_number args[2] = {{.i = x}, {.i = y}};
    switch (op) {
    case KN_OP_ADD: return !__builtin_add_overflow(x, y, out);
    case KN_OP_SUB: return !__builtin_sub_overflow(x, y, out);
    case KN_OP_MUL: return !__builtin_mul_overflow(x, y, out);
    case KN_OP_DIV:
    case KN_OP_FLOORDIV: return eval_divide(x, y, false, out);
    case KN_OP_REM:
    case KN_OP_MOD: return eval_divide(x, y, true, out);
    case KN_OP_POW: return eval_power(x, y, out);
    default: *out = kn_number_op(op, KN_INDEX, args).i; return true;
    }
}

static bool eval_unary(kn_scalar op, kn_dtype type, int64_t x, int64_t *out)
{
    kn_number arg = {.i = x};
    if (x == INT64_MIN && (op == KN_OP_NEG || op == KN_OP_ABS))
        return false;
    *out = kn_number_op(op, type, &arg).i;
    return true;
}

static bool eval_op(const scope *s, const kn_expr *e, int64_t *out)
{
    int64_t x, y;
    if (!eval(s, e->args[0], &x))
        return false;
    if (e->op == KN_OP_SELECT)
        return eval(s, e->args[x ? 1 : 2], out);
    if ((e->op == KN_OP_LAND && !x) || (e->op == KN_OP_LOR && x)) {
        *out = x;
        return true;
    }
    if (e->nargs == 1)
        return eval_unary(e->op, e->type, x, out);
    if (!eval(s, e->args[1], &y))
        return false;
    if (e->op == KN_OP_LAND || e->op == KN_OP_LOR) {
        *out = y;
        return true;
    }
    return eval_binary(e->op, x, y, out);
}

static bool eval(const scope *s, const kn_expr *e, int64_t *out)
{
    int i;
    if (e->type != KN_INDEX && e->type != KN_BOOL)
        return false;
    switch (e->kind) {
    case KN_E_CONST: *out = e->i; return true;
    case KN_E_VAR:
        i = find_size(s, e->name);
        if (i >= 0)
            *out = s->values[i];
        return i >= 0;
    case KN_E_LOAD:
    case KN_E_CAST: return false;
    case KN_E_OP: return eval_op(s, e, out);
    }
    return false;
}

bool kn_index_eval(const kn_expr *e, const kn_size *sizes, const int64_t *values, int n,
                   int64_t *out)
{
    scope s = {sizes, values, n};
    return eval(&s, e, out);
}

/* ---- upper bounds ---- */

typedef struct {
    kn_arena *a;
    const kn_size *known;
    int n;
    bool highest, others;
} kn_bounding;

static const kn_expr *take_bound(void *env, const kn_expr *e)
{
    kn_bounding *b = env;
    for (int i = 0; e->kind == KN_E_VAR && i < b->n; i++) {
        if (b->known[i].name == e->name)
            return kn_index(b->a, b->highest ? b->known[i].hi : b->known[i].lo);
    }
    return e;
}

static void see_name(void *env, const kn_expr *e)
{
    kn_bounding *b = env;
    if (e->kind == KN_E_VAR || e->kind == KN_E_LOAD)
        b->others = b->others || take_bound(b, e) == e;
}

static bool is_product_of_names(const kn_expr *e)
{
    if (e->kind == KN_E_OP && e->op == KN_OP_MUL)
        return is_product_of_names(e->args[0]) && is_product_of_names(e->args[1]);
    return e->kind == KN_E_VAR || e->kind == KN_E_CONST;
}

static const kn_expr *upper_sum(kn_bounding *b, const kn_expr *e);

/* Of a choice: the greater of both sides' bounds. NULL when e is none. */
static const kn_expr *upper_choice(kn_bounding *b, const kn_expr *e)
{
    if (e->kind != KN_E_OP || e->op != KN_OP_SELECT)
        return NULL;
    const kn_expr *x = upper_sum(b, e->args[1]), *y = upper_sum(b, e->args[2]);
    return x && y ? kn_index_max(b->a, x, y) : NULL;
}

/* A sum, term by term: sizes are not negative, so a product of names grows with each of them. */
static const kn_expr *upper_sum(kn_bounding *b, const kn_expr *e)
{
    int64_t constant, coef[32];
    const kn_expr *term[32];
    int n = kn_index_terms(b->a, e, &constant, coef, term, 32);
    const kn_expr *sum = n < 0 ? NULL : kn_index(b->a, constant);
    for (int i = 0; i < n && sum; i++) {
        b->highest = coef[i] > 0;
        const kn_expr *bound = kn_expr_rewrite(b->a, term[i], take_bound, b);
        bool kept = kn_expr_equal(bound, term[i]);
        if (!kept && !is_product_of_names(term[i]))
            bound = coef[i] > 0 ? upper_choice(b, term[i]) : NULL;
        if (!bound)
            return NULL;
        sum = kn_index_add(b->a, sum, kn_index_mul(b->a, kn_index(b->a, coef[i]), bound));
    }
    return sum;
}

const kn_expr *kn_index_upper(kn_arena *a, const kn_expr *e, const kn_size *known, int n)
{
    kn_bounding b = {.a = a, .known = known, .n = n};
    kn_expr_visit(e, see_name, &b);
    if (!b.others) {
        kn_range r = kn_index_range(e, known, n);
        return r.hi <= KN_MAX_BOUND ? kn_index(a, r.hi < 0 ? 0 : r.hi) : NULL;
    }
    return upper_sum(&b, e);
}

_Noreturn static void unbounded(kn_arena *a, const kn_expr *dim, int i, kn_loc loc)
{
    kn_str text = kn_str_make(a);
    kn_expr_print(&text, dim, false);
    kn_raise(kn_arena_ctx(a), KN_UNSUPPORTED, loc,
             "dimension %d, %s, is known only at run time, without a bound that memory could be "
             "planned for",
             i, kn_str_get(&text));
}

const kn_expr *const *kn_shape_upper(kn_arena *a, const kn_expr *const *shape, int rank,
                                     const kn_size *known, int n, kn_loc loc)
{
    const kn_expr **bounds = KN_ARRAY(a, const kn_expr *, rank + 1);
    int64_t product = 1, dim;
    for (int i = 0; i < rank; i++) {
        bounds[i] = kn_index_upper(a, shape[i], known, n);
        bool large = bounds[i] && kn_index_const(bounds[i], &dim) && dim > 0 &&
                     (__builtin_mul_overflow(product, dim, &product) || product > KN_MAX_BOUND);
        if (!bounds[i] || large)
            unbounded(a, shape[i], i, loc);
    }
    return bounds;
}
