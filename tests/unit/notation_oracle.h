/* An independent meaning of index notation, for test_random_notation.c: programs as trees of their
   own, printed as notation and evaluated by plain loops at given sizes. It shares nothing with ir/:
   ranges that Kiln infers are found here by trying.

   A program is evaluated for each of O_RUNS bindings of the sizes. Floats are doubles rounded to
   the type after each operator. Reductions of floats must be exact in any order; one that is not
   sets `inexact`, and the program is not used. */
#ifndef KN_TESTS_NOTATION_ORACLE_H
#define KN_TESTS_NOTATION_ORACLE_H

#include <math.h>

#include "support/dtype.h"
#include "support/str.h"

enum {
    O_RUNS = 2,
    O_STEPS = 60000,
    O_RANK = 6,
    O_INDICES = 12,
    O_STMTS = 8,
    O_TENSORS = 16,
    O_SIZES = 24
};

typedef struct {
    const char *text; /* in graph text; NULL for one that is found by evaluating */
    int64_t lo;       /* the least that it can be */
    bool constant;
    int64_t most; /* of one that is read from an input when the graph runs; else 0 */
    int64_t value[O_RUNS];
} o_dim;

typedef struct {
    double f;
    int64_t i; /* integers, bool, index */
} o_number;

typedef struct {
    kn_dtype type;
    int rank;
    const o_dim *dim[O_RANK];
    o_number *data[O_RUNS];
    int64_t count[O_RUNS];
    const char *name;    /* in the graph */
    const o_dim *limit;  /* an index tensor: its elements are below this */
    bool constant;       /* of the graph, not an input */
    const void *updates; /* the result of an update: what it starts from */
    int alias;           /* an output: 1 + the number of the input that it updates in place */
} o_array;

typedef struct {
    const char *name;
    o_array *array;
    int pack, width;          /* the first dimension of *b and how many it covers; pack -1: none */
    bool literal;             /* an operand whose constant dimensions are written as numbers */
    const char *dims[O_RANK]; /* an operand: how a dimension is written instead, or NULL */
    o_array *initial;  /* an operand that is updated: what it holds before; `array` is the result */
    const char *shape; /* a result: `f32[n0, 2*n1]`, or NULL: inferred */
    bool declared;     /* so that its subscripts limit indices */
} o_tensor;

typedef enum { O_NUMBER, O_INDEX, O_SIZE, O_LOAD, O_OP, O_CAST, O_LET } o_kind;

/* Operators: enum, text, precedence (0: a function), operands. */
/* clang-format off */
#define O_TABLE \
    O(ADD, "+", 10, 2) \
    O(SUB, "-", 10, 2) \
    O(MUL, "*", 11, 2) \
    O(DIV, "/", 11, 2) \
    O(REM, "%", 11, 2) \
    O(NEG, "-", 12, 1) \
    O(MIN, "min", 0, 2) \
    O(MAX, "max", 0, 2) \
    O(ABS, "abs", 0, 1) \
    O(FLOORDIV, "floordiv", 0, 2) \
    O(MOD, "mod", 0, 2) \
    O(FLOOR, "floor", 0, 1) \
    O(CEIL, "ceil", 0, 1) \
    O(ROUND, "round", 0, 1) \
    O(SELECT, "select", 0, 3) \
    O(LT, "<", 8, 2) \
    O(LE, "<=", 8, 2) \
    O(EQ, "==", 7, 2) \
    O(NE, "!=", 7, 2) \
    O(LAND, "&&", 3, 2) \
    O(LOR, "||", 2, 2) \
    O(NOT, "!", 12, 1) \
    O(AND, "&", 6, 2) \
    O(OR, "|", 4, 2) \
    O(XOR, "^", 5, 2) \
    O(INV, "~", 12, 1) \
    O(SHL, "<<", 9, 2) \
    O(SHR, ">>", 9, 2)
/* clang-format on */

typedef enum {
#define O(id, text, precedence, arity) O_##id,
    O_TABLE
#undef O
} o_op;

static const struct {
    const char *text;
    int precedence, arity;
} o_ops[] = {
#define O(id, text, precedence, arity) {text, precedence, arity},
    O_TABLE
#undef O
};

typedef struct o_expr o_expr;
struct o_expr {
    o_kind kind;
    kn_dtype type; /* KN_INDEX: over indices and sizes */
    o_op op;
    const char
        *text; /* CAST: "cast" or "sat"; LET: the name; NUMBER: a const attribute's name, or NULL */
    double f;
    int64_t i;
    int index;              /* of the statement */
    const o_dim *dim;       /* SIZE */
    const o_tensor *tensor; /* LOAD; its subscripts without those of the pack */
    const o_expr *otherwise;
    int n;
    const o_expr *arg[O_RANK];
};

typedef struct {
    const char *name;
    const o_dim *dim;      /* runs over it */
    const o_expr *lo, *hi; /* `where name in lo:hi`, or NULL */
    bool inferred, pack;
    bool makes; /* `dim` is the index's own: the end of its range, which is stored there */
} o_index;

typedef enum { O_SET, O_PLUS, O_TIMES, O_MAXIMUM, O_MINIMUM } o_update;

typedef struct {
    const o_expr *target; /* a load */
    o_update update;
    bool init, strict;
    const o_expr *rhs, *where;
    int ntarget, n; /* indices; those of the target first, in the order of its subscripts */
    o_index index[O_INDICES];
    bool packed; /* *b stands in the target */
    int pack_first, pack_width;
    int over; /* group, -1: none; its index is index[0] */
} o_stmt;

typedef struct {
    int noperands, nresults, nstmts, nsizes;
    o_tensor *operand[O_TENSORS], *result[O_TENSORS];
    o_stmt stmt[O_STMTS];
    struct {
        const o_dim *dim;
        const char *name;
    } size[O_SIZES];
    const char *params, *attributes; /* ", s: const" and " {s = 2}", or "" */
} o_program;

typedef struct {
    kn_arena *a;
    const o_program *p;
    const o_stmt *s;
    int b; /* binding */
    int64_t index[O_INDICES];
    bool wide; /* a reduction in half precision: its operators are f32 */
    bool fault, inexact;
    int64_t steps; /* instances so far */
    double *sums;  /* per element of the target: what bounds every partial result */
} o_run;

/* ---- numbers ---- */

static double o_round_to(double v, int bits, int least, double most)
{
    int e;
    if (v == 0 || !isfinite(v)) {
        return v;
    }
    frexp(v, &e);
    double unit = ldexp(1.0, (e < least ? least : e) - bits);
    double r = nearbyint(v / unit) * unit;
    return fabs(r) > most ? copysign((double)INFINITY, v) : r;
}

static double o_round(const o_run *r, kn_dtype t, double v)
{
    if (t == KN_F32 || (r->wide && (t == KN_F16 || t == KN_BF16))) {
        return (double)(float)v;
    }
    return t == KN_F16    ? o_round_to(v, 11, -13, 65504)
           : t == KN_BF16 ? o_round_to(v, 8, -125, 3.3895313892515355e38)
                          : v;
}

static int o_bits(kn_dtype t)
{
    return t == KN_I8 || t == KN_U8     ? 8
           : t == KN_I16 || t == KN_U16 ? 16
           : t == KN_I32 || t == KN_U32 ? 32
                                        : 64;
}

static bool o_unsigned(kn_dtype t)
{
    return t == KN_U8 || t == KN_U16 || t == KN_U32;
}

static bool o_float(kn_dtype t)
{
    return t == KN_F32 || t == KN_F16 || t == KN_BF16 || t == KN_F64;
}

static int64_t o_wrap(kn_dtype t, uint64_t v)
{
    int drop = 64 - o_bits(t);
    return o_unsigned(t) ? (int64_t)(v << drop >> drop) : (int64_t)(v << drop) >> drop;
}

static int64_t o_least(kn_dtype t)
{
    return o_unsigned(t) ? 0 : INT64_MIN >> (64 - o_bits(t));
}

static int64_t o_most(kn_dtype t)
{
    return o_unsigned(t) ? (int64_t)(UINT64_MAX >> (64 - o_bits(t)))
                         : INT64_MAX >> (64 - o_bits(t));
}

/* Integers go to f16 and bf16 by way of f32, so does f64 to bf16. */
static o_number o_cast(const o_run *r, bool saturate, kn_dtype from, kn_dtype to, o_number v)
{
    if (o_float(to)) {
        o_run exact = *r; /* an explicit cast rounds, in a wide statement too */
        exact.wide = false;
        double f = o_float(from) ? v.f : to == KN_F64 ? (double)v.i : (double)(float)v.i;
        return (o_number){.f = o_round(&exact, to, to == KN_BF16 ? (double)(float)f : f)};
    }
    if (to == KN_BOOL) {
        return (o_number){.i = o_float(from) ? v.f != 0 : v.i != 0};
    }
    if (o_float(from)) {
        double t = trunc(v.f); /* `sat` too */
        bool low = t <= (double)o_least(to), high = t >= (double)o_most(to);
        return (o_number){.i = isnan(v.f) ? 0 : low ? o_least(to) : high ? o_most(to) : (int64_t)t};
    }
    if (saturate) {
        return (o_number){.i = v.i < o_least(to)  ? o_least(to)
                               : v.i > o_most(to) ? o_most(to)
                                                  : v.i};
    }
    return (o_number){.i = o_wrap(to, (uint64_t)v.i)};
}

static int64_t o_floordiv(int64_t x, int64_t y)
{
    return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static int64_t o_integer_op(kn_dtype t, o_op op, int64_t x, int64_t y)
{
    uint64_t u = (uint64_t)x, v = (uint64_t)y;
    bool floors = t == KN_INDEX, wraps = y == -1; /* x / -1 */
    int shift = (int)(v % (uint64_t)o_bits(t));
    switch (op) {
    case O_ADD: return o_wrap(t, u + v);
    case O_SUB: return o_wrap(t, u - v);
    case O_MUL: return o_wrap(t, u * v);
    case O_DIV: return floors ? o_floordiv(x, y) : wraps ? o_wrap(t, 0 - u) : y ? x / y : 0;
    case O_REM: return floors ? (y ? x - y * o_floordiv(x, y) : 0) : wraps || !y ? 0 : x % y;
    case O_FLOORDIV: return wraps ? o_wrap(t, 0 - u) : o_floordiv(x, y);
    case O_MOD: return wraps || !y ? 0 : x - y * o_floordiv(x, y);
    case O_NEG: return o_wrap(t, 0 - u);
    case O_ABS: return x < 0 ? o_wrap(t, 0 - u) : x;
    case O_MIN: return x < y ? x : y;
    case O_MAX: return x > y ? x : y;
    case O_AND: return x & y;
    case O_OR: return x | y;
    case O_XOR: return x ^ y;
    case O_INV: return o_wrap(t, ~u);
    case O_SHL: return o_wrap(t, u << shift);
    case O_SHR: return x >> shift;
    default: return 0;
    }
}

static double o_float_op(o_op op, double x, double y)
{
    switch (op) {
    case O_ADD: return x + y;
    case O_SUB: return x - y;
    case O_MUL: return x * y;
    case O_DIV: return x / y;
    case O_NEG: return -x;
    case O_ABS: return fabs(x);
    case O_MIN: return isnan(x) || isnan(y) ? (double)NAN : x < y ? x : y;
    case O_MAX: return isnan(x) || isnan(y) ? (double)NAN : x > y ? x : y;
    case O_FLOOR: return floor(x);
    case O_CEIL: return ceil(x);
    case O_ROUND: return nearbyint(x);
    default: return 0;
    }
}

static bool o_compare(kn_dtype t, o_op op, o_number x, o_number y)
{
    bool f = o_float(t);
    switch (op) {
    case O_LT: return f ? x.f < y.f : x.i < y.i;
    case O_LE: return f ? x.f <= y.f : x.i <= y.i;
    case O_EQ: return f ? x.f == y.f : x.i == y.i;
    default: return f ? x.f != y.f : x.i != y.i;
    }
}

/* ---- expressions ---- */

static o_number o_eval(o_run *r, const o_expr *e);

/* The row-major place of an access; -1 outside. */
static int64_t o_place(o_run *r, const o_expr *e)
{
    const o_tensor *t = e->tensor;
    int64_t place = 0;
    bool inside = true;
    int next = 0;
    for (int d = 0; d < t->array->rank; d++) {
        const o_dim *dim = t->array->dim[d];
        int64_t extent = dim->value[r->b], at;
        if (t->pack >= 0 && d >= t->pack && d < t->pack + t->width) {
            int from = r->s->pack_first + r->s->pack_width - t->width;
            at = dim->constant && extent == 1 ? 0 : r->index[from + d - t->pack];
        } else {
            at = o_eval(r, e->arg[next++]).i;
        }
        inside = inside && at >= 0 && at < extent;
        place = place * extent + at;
    }
    return inside ? place : -1;
}

static o_number o_load(o_run *r, const o_expr *e)
{
    int64_t at = o_place(r, e);
    if (at < 0) {
        r->fault = r->fault || !e->otherwise;
        return e->otherwise ? o_eval(r, e->otherwise) : (o_number){0};
    }
    return e->tensor->array->data[r->b][at];
}

static o_number o_apply(o_run *r, const o_expr *e)
{
    o_number x = o_eval(r, e->arg[0]), y = {0};
    switch (e->op) {
    case O_SELECT: return o_eval(r, e->arg[x.i ? 1 : 2]);
    case O_LAND: return x.i ? o_eval(r, e->arg[1]) : x;
    case O_LOR: return x.i ? x : o_eval(r, e->arg[1]);
    case O_NOT: return (o_number){.i = !x.i};
    default: break;
    }
    y = e->n > 1 ? o_eval(r, e->arg[1]) : y;
    if (e->op >= O_LT && e->op <= O_NE) {
        return (o_number){.i = o_compare(e->arg[0]->type, e->op, x, y)};
    }
    if (o_float(e->type)) {
        return (o_number){.f = o_round(r, e->type, o_float_op(e->op, x.f, y.f))};
    }
    return (o_number){.i = o_integer_op(e->type, e->op, x.i, y.i)};
}

static o_number o_eval(o_run *r, const o_expr *e)
{
    switch (e->kind) {
    case O_NUMBER: return (o_number){e->f, e->i};
    case O_INDEX: return (o_number){.i = r->index[e->index]};
    case O_SIZE: return (o_number){.i = e->dim->value[r->b]};
    case O_LOAD: return o_load(r, e);
    case O_LET: return o_eval(r, e->arg[0]);
    case O_CAST:
        return o_cast(r, strcmp(e->text, "sat") == 0, e->arg[0]->type, e->type,
                      o_eval(r, e->arg[0]));
    case O_OP: break;
    }
    return o_apply(r, e);
}

/* ---- inferred ranges ---- */

static bool o_mentions(const o_expr *e, int index)
{
    bool found = e->kind == O_INDEX && e->index == index;
    for (int i = 0; i < e->n && !found; i++) {
        found = o_mentions(e->arg[i], index);
    }
    return found;
}

static int64_t o_end(const o_run *r, int index)
{
    return r->s->index[index].dim->value[r->b];
}

/* Whether a subscript is inside for all values of the indices from `k` on that it mentions, `fixed`
 * being set. */
static bool o_fits(o_run *r, const o_expr *sub, int64_t extent, int fixed, int k)
{
    while (k < r->s->n && (k == fixed || !o_mentions(sub, k))) {
        k++;
    }
    if (k == r->s->n) {
        int64_t at = o_eval(r, sub).i;
        return at >= 0 && at < extent;
    }
    for (r->index[k] = 0; r->index[k] < o_end(r, k); r->index[k]++) {
        if (!o_fits(r, sub, extent, fixed, k + 1)) {
            return false;
        }
    }
    return true;
}

/* Whether all unguarded subscripts of `e` that mention the index are inside for its present value.
 */
static bool o_all_fit(o_run *r, const o_expr *e, int index)
{
    bool guarded = e->kind == O_OP && (e->op == O_SELECT || e->op == O_LAND || e->op == O_LOR) &&
                   o_mentions(e->arg[0], index);
    bool fit = true;
    for (int i = 0; i < (guarded ? 1 : e->n) && fit; i++) {
        fit = o_all_fit(r, e->arg[i], index);
    }
    for (int i = 0; e->kind == O_LOAD && !e->otherwise && i < e->n && fit; i++) {
        int64_t extent =
            e->tensor->array->dim[e->tensor->pack == 0 ? i + e->tensor->width : i]->value[r->b];
        fit = !o_mentions(e->arg[i], index) || o_fits(r, e->arg[i], extent, index, 0);
    }
    return fit;
}

static void o_infer(o_run *r, int k)
{
    enum { MANY = 4096 };
    int64_t n = 0;
    for (bool fit = true; fit && n < MANY; n += fit) {
        r->index[k] = n;
        fit = o_all_fit(r, r->s->rhs, k) &&
              (!r->s->target->tensor->declared || o_all_fit(r, r->s->target, k));
    }
    ((o_dim *)(uintptr_t)r->s->index[k].dim)->value[r->b] = n;
    r->fault = r->fault || n == MANY;
}

/* The ends of the ranges that are written, then of those that are inferred. */
static void o_ranges(o_run *r)
{
    for (int k = 0; k < r->s->n; k++) {
        const o_index *x = &r->s->index[k];
        if (x->makes && x->hi) {
            int64_t end = o_eval(r, x->hi).i;
            ((o_dim *)(uintptr_t)x->dim)->value[r->b] = end;
            r->fault = r->fault || end < 0;
        }
    }
    for (int k = 0; k < r->s->n; k++) {
        if (r->s->index[k].inferred) {
            o_infer(r, k);
        }
    }
}

/* ---- statements ---- */

static o_number o_identity(o_update u, kn_dtype t)
{
    double f[] = {0, 0, 1, -(double)INFINITY, (double)INFINITY};
    int64_t i[] = {0, 0, 1, o_least(t), o_most(t)};
    return o_float(t) ? (o_number){.f = f[u]} : (o_number){.i = i[u]};
}

static void o_allocate(o_run *r, o_array *a)
{
    int64_t n = 1;
    for (int i = 0; i < a->rank; i++) {
        n *= a->dim[i]->value[r->b];
    }
    r->fault = r->fault || n < 0 || n > 1 << 20;
    a->count[r->b] = r->fault ? 0 : n;
    a->data[r->b] = KN_ARRAY(r->a, o_number, a->count[r->b] + 1);
}

/* Every partial result, in any order, must be exact: multiples of 1/256 below 2^15 in sum; whole
 * factors. */
static void o_bound(o_run *r, o_update u, int64_t at, double v)
{
    double *sum = &r->sums[at];
    bool whole = v == floor(v);
    if (u == O_PLUS) {
        *sum += fabs(v);
        r->inexact = r->inexact || !(v * 256 == floor(v * 256)) || !(*sum < 32768);
    } else if (u == O_TIMES) {
        *sum = (*sum == 0 ? 1 : *sum) * fmax(1, fabs(v));
        r->inexact = r->inexact || !whole || !(*sum < 32768);
    } else {
        r->inexact = r->inexact || isnan(v);
    }
}

static o_number o_combine(o_run *r, o_update u, kn_dtype t, o_number old, o_number v)
{
    static const o_op op[] = {O_ADD, O_ADD, O_MUL, O_MAX, O_MIN};
    if (u == O_SET) {
        return v;
    }
    return o_float(t) ? (o_number){.f = o_round(r, t, o_float_op(op[u], old.f, v.f))}
                      : (o_number){.i = o_integer_op(t, op[u], old.i, v.i)};
}

static void o_instance(o_run *r)
{
    const o_stmt *s = r->s;
    if (s->where && !o_eval(r, s->where).i) {
        return;
    }
    o_array *a = s->target->tensor->array;
    o_number v = o_eval(r, s->rhs);
    int64_t at = o_place(r, s->target);
    if (at < 0 || r->fault) {
        r->fault = true;
        return;
    }
    if (o_float(a->type)) {
        bool rounds = r->wide && (s->update == O_SET || s->update >= O_MAXIMUM);
        o_run plain = {.wide = !rounds && r->wide};
        v.f = o_round(&plain, a->type, v.f);
        o_bound(r, s->update, at, s->update == O_PLUS || s->update == O_TIMES ? v.f : 0);
    }
    a->data[r->b][at] = o_combine(r, s->update, a->type, a->data[r->b][at], v);
}

static void o_loops(o_run *r, int k)
{
    const o_stmt *s = r->s;
    if (k == s->n) {
        r->fault = r->fault || ++r->steps > O_STEPS;
        o_instance(r);
        return;
    }
    const o_index *x = &s->index[k];
    int64_t lo = x->lo ? o_eval(r, x->lo).i : 0, hi = x->hi ? o_eval(r, x->hi).i : o_end(r, k);
    for (r->index[k] = lo; r->index[k] < hi && !r->fault; r->index[k]++) {
        o_loops(r, k + 1);
    }
}

/* Whether the start of a reduction sets this element: constant subscripts and the step of an `over`
 * select a slice. */
static bool o_starts(o_run *r, int64_t place)
{
    const o_stmt *s = r->s;
    const o_array *a = s->target->tensor->array;
    for (int d = a->rank - 1; d >= 0 && s->target->tensor->pack < 0; d--) {
        const o_expr *sub = s->target->arg[d];
        int64_t extent = a->dim[d]->value[r->b], at = place % extent;
        bool fixed =
            sub->kind == O_NUMBER || (s->over >= 0 && sub->kind == O_INDEX && sub->index == 0);
        if (fixed && o_eval(r, sub).i != at) {
            return false;
        }
        place /= extent;
    }
    return true;
}

/* All instances, or those of one step of an `over`, which index[0] holds. */
static void o_statement(o_run *r, bool step)
{
    const o_stmt *s = r->s;
    o_array *a = s->target->tensor->array;
    bool reduces = false;
    for (int k = 0; k < s->n; k++) {
        bool alone = s->index[k].pack && k < s->ntarget;
        for (int d = 0; d < s->target->n; d++) {
            alone = alone || (s->target->arg[d]->kind == O_INDEX && s->target->arg[d]->index == k);
        }
        reduces = reduces || !alone;
    }
    r->wide = reduces && (a->type == KN_F16 || a->type == KN_BF16);
    r->sums = KN_ARRAY(r->a, double, a->count[r->b] + 1);
    for (int64_t i = 0; i < a->count[r->b] && s->init; i++) {
        a->data[r->b][i] = o_starts(r, i) ? o_identity(s->update, a->type) : a->data[r->b][i];
    }
    o_loops(r, step);
    r->wide = false;
    for (int64_t i = 0; i < a->count[r->b]; i++) {
        a->data[r->b][i].f = o_round(r, a->type, a->data[r->b][i].f);
    }
}

static void o_begin(o_run *r, const o_stmt *s)
{
    r->s = s;
    o_ranges(r);
    if (!s->target->tensor->array->data[r->b]) {
        o_allocate(r, s->target->tensor->array);
    }
}

/* The statements [from, to) of one `over`, step by step. */
static void o_group(o_run *r, int from, int to)
{
    for (int k = from; k < to; k++) {
        o_begin(r, &r->p->stmt[k]);
    }
    int64_t steps = r->fault ? 0 : o_end(r, 0);
    for (int64_t t = 0; t < steps; t++) {
        for (int k = from; k < to; k++) {
            r->s = &r->p->stmt[k];
            r->index[0] = t;
            o_statement(r, true);
        }
    }
}

/* Evaluates for one binding. The data of results and temporaries must be NULL before. */
static void o_evaluate(o_run *r)
{
    const o_program *p = r->p;
    for (int i = 0; i < p->noperands; i++) {
        const o_tensor *t = p->operand[i];
        if (t->initial) {
            o_allocate(r, t->array);
            memcpy(t->array->data[r->b], t->initial->data[r->b],
                   (size_t)t->array->count[r->b] * sizeof(o_number));
        }
    }
    for (int k = 0, next; k < p->nstmts && !r->fault; k = next) {
        next = k + 1;
        while (p->stmt[k].over >= 0 && next < p->nstmts && p->stmt[next].over == p->stmt[k].over) {
            next++;
        }
        if (p->stmt[k].over >= 0) {
            o_group(r, k, next);
        } else {
            o_begin(r, &p->stmt[k]);
            o_statement(r, false);
        }
    }
}

#endif
