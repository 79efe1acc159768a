/* Shape arithmetic: what is known at compile time of the elements of small tensors.

   Exporters compute shapes in the graph: Shape, Gather, Concat, Slice, Where, Equal, Reshape.
   Instead of code for each op there is one evaluator for all: it runs a node's nest over every
   instance, with an index expression over the graph's sizes in the place of each number. A load
   yields what is known of the element; arithmetic folds by kn_index_*; a comparison is decided when
   the difference of its sides is constant, or when its range decides. What cannot be
   decided or represented leaves its element unknown; what takes too long, all of them: nothing here
   raises.

   Integers are exact: a symbolic i32 or i64 is taken not to overflow, one of a narrower or unsigned
   type must be proved to fit. Constants, and floats, which are known only as constants (a scale on
   the way from one shape to another), are computed by kn_expr_fold, as at run time. */
#include <assert.h>

#include "ir/graph_internal.h"

enum {
    MAX_INSTANCES = 4096,
    MAX_STEPS = 16 * MAX_INSTANCES,
    MAX_UNKNOWN = 256,  /* stores of values that are not known */
    MAX_CELLS = 4096,   /* elements of a result or temporary */
    MAX_EXPR_SIZE = 128 /* nodes of a known expression */
};

/* One tensor of the nest. */
typedef struct {
    const kn_tensor *tensor;
    const kn_value *operand; /* where its elements come from, or NULL */
    int64_t dims[KN_MAX_RANK];
    bool constant;         /* dims are known */
    int64_t count;         /* of elements, when constant */
    const kn_expr **cells; /* of results and temporaries; NULL elements are undefined */
} store;

typedef struct {
    const char *name;
    int64_t value;
} bound_iter;

typedef struct {
    kn_arena *a;
    const kn_graph *g;
    const kn_nest *nest;
    store *stores;
    bound_iter iters[4 * KN_MAX_RANK];
    int niters;
    int instances, steps, unknown; /* so far */
} evaluator;

/* An evaluated expression: a constant of a float type, or an index expression for all other types;
 * NULL: unknown. */
typedef const kn_expr *known;

static known eval(evaluator *ev, const kn_expr *e);

static bool is_number(known x, int64_t *v)
{
    return x && !kn_dtype_is_float(x->type) && kn_index_const(x, v);
}

/* ---- safe arithmetic: operands so small that the index functions cannot overflow ---- */

enum { MAX_TERMS = 16 };

/* The sum of the magnitudes of the coefficients, or -1 when the expression is too large to touch.
 */
static int64_t weight(evaluator *ev, known x)
{
    int64_t constant, coef[MAX_TERMS];
    const kn_expr *term[MAX_TERMS];
    if (x->size > MAX_EXPR_SIZE)
        return -1;
    int n = kn_index_terms(ev->a, x, &constant, coef, term, MAX_TERMS);
    if (n < 0 || constant > INT32_MAX || constant < -INT32_MAX)
        return -1;
    int64_t sum = constant < 0 ? -constant : constant;
    for (int i = 0; i < n; i++) {
        if (coef[i] > INT32_MAX || coef[i] < -INT32_MAX)
            return -1;
        sum += coef[i] < 0 ? -coef[i] : coef[i];
    }
    return sum;
}

static bool safe(evaluator *ev, known x, known y)
{
    int64_t wx = weight(ev, x), wy = weight(ev, y);
    return wx >= 0 && wy >= 0 && (wx == 0 || wy <= INT64_MAX / 4 / wx);
}

static kn_range range_of(evaluator *ev, known x)
{
    return kn_index_range(x, ev->g->sizes, ev->g->nsizes);
}

/* x as a value of the type, if it is one for certain. */
static known fitting(evaluator *ev, kn_dtype type, known x)
{
    if (!x || x->size > MAX_EXPR_SIZE)
        return NULL;
    if (type == KN_I32 || type == KN_I64 || type == KN_INDEX)
        return x;
    kn_range r = range_of(ev, x);
    if (r.lo < kn_dtype_min(type) || (r.hi > 0 && (uint64_t)r.hi > kn_dtype_max(type)))
        return NULL;
    return x;
}

/* ---- operators ---- */

/* A folded literal as a known: integers become index expressions. */
static known of_literal(evaluator *ev, const kn_expr *e)
{
    if (!e || kn_dtype_is_float(e->type))
        return e;
    return e->type == KN_U64 && e->i < 0 ? NULL : kn_index(ev->a, e->i);
}

/* The literal of a type that a known stands for; NULL when symbolic. */
static const kn_expr *to_literal(evaluator *ev, kn_dtype type, known x)
{
    int64_t v;
    if (x->type == type && x->kind == KN_E_CONST)
        return x;
    return is_number(x, &v) ? kn_int(ev->a, type, v) : NULL;
}

/* What kn_expr_fold raises an error for. */
static bool faulty(const kn_expr *e)
{
    int64_t ignored, x = e->args[0]->i, y = e->nargs > 1 ? e->args[1]->i : 0;
    if (e->args[0]->type != KN_INDEX)
        return false;
    switch (e->op) {
    case KN_OP_ADD: return __builtin_add_overflow(x, y, &ignored);
    case KN_OP_SUB: return __builtin_sub_overflow(x, y, &ignored);
    case KN_OP_MUL: return __builtin_mul_overflow(x, y, &ignored);
    case KN_OP_DIV:
    case KN_OP_REM:
    case KN_OP_FLOORDIV:
    case KN_OP_MOD: return y == 0 || (y == -1 && x == INT64_MIN);
    case KN_OP_NEG:
    case KN_OP_ABS: return x == INT64_MIN;
    default: return false;
    }
}

/* The operator on literals alone; false when an operand is symbolic. */
static bool fold_literals(evaluator *ev, const kn_expr *e, const known *args, known *out)
{
    const kn_expr *literals[3];
    for (int i = 0; i < e->nargs; i++)
        if (!(literals[i] = to_literal(ev, e->args[i]->type, args[i])))
            return false;
    const kn_expr *op = kn_op(ev->a, e->type, e->op, literals, e->nargs);
    *out = faulty(op) ? NULL : of_literal(ev, kn_expr_fold(ev->a, op));
    return true;
}

static known eval_divide(evaluator *ev, const kn_expr *e, known x, known y)
{
    bool truncates = e->type != KN_INDEX && (e->op == KN_OP_DIV || e->op == KN_OP_REM);
    if (range_of(ev, y).lo <= 0 || (truncates && range_of(ev, x).lo < 0))
        return NULL;
    if (e->op == KN_OP_DIV || e->op == KN_OP_FLOORDIV)
        return kn_index_div(ev->a, x, y);
    return kn_index_mod(ev->a, x, y);
}

/* min or max: the one of the two that it is for all sizes, where there is one. */
static known eval_extreme(evaluator *ev, const kn_expr *e, known x, known y)
{
    kn_range d = range_of(ev, kn_index_sub(ev->a, x, y));
    bool is_max = e->op == KN_OP_MAX;
    if (d.lo >= 0 || d.hi <= 0)
        return is_max == (d.lo >= 0) ? x : y;
    return is_max ? kn_index_max(ev->a, x, y) : kn_index_min(ev->a, x, y);
}

static known eval_arith(evaluator *ev, const kn_expr *e, known x, known y)
{
    if (!safe(ev, x, y))
        return NULL;
    switch (e->op) {
    case KN_OP_ADD: return kn_index_add(ev->a, x, y);
    case KN_OP_SUB: return kn_index_sub(ev->a, x, y);
    case KN_OP_MUL: return kn_index_mul(ev->a, x, y);
    case KN_OP_MIN:
    case KN_OP_MAX: return eval_extreme(ev, e, x, y);
    case KN_OP_DIV:
    case KN_OP_REM:
    case KN_OP_FLOORDIV:
    case KN_OP_MOD: return eval_divide(ev, e, x, y);
    case KN_OP_NEG: return kn_index_sub(ev->a, kn_index(ev->a, 0), x);
    case KN_OP_ABS: return range_of(ev, x).lo >= 0 ? x : NULL;
    default: return NULL;
    }
}

static known truth(evaluator *ev, bool yes, bool no)
{
    return yes || no ? kn_index(ev->a, yes) : NULL;
}

/* Decides x op y by the range of x - y. */
static known eval_compare(evaluator *ev, const kn_expr *e, known x, known y)
{
    if (!safe(ev, x, y))
        return NULL;
    kn_range d = range_of(ev, kn_index_sub(ev->a, x, y));
    bool zero = d.lo == 0 && d.hi == 0, apart = d.lo > 0 || d.hi < 0;
    switch (e->op) {
    case KN_OP_LT: return truth(ev, d.hi < 0, d.lo >= 0);
    case KN_OP_LE: return truth(ev, d.hi <= 0, d.lo > 0);
    case KN_OP_GT: return truth(ev, d.lo > 0, d.hi <= 0);
    case KN_OP_GE: return truth(ev, d.lo >= 0, d.hi < 0);
    case KN_OP_EQ: return truth(ev, zero, apart);
    case KN_OP_NE: return truth(ev, apart, zero);
    default: return NULL;
    }
}

/* && and ||: decided by either side, the right one when it can be had. */
static known eval_logic(evaluator *ev, const kn_expr *e)
{
    int64_t decides = e->op == KN_OP_LOR, v;
    known x = eval(ev, e->args[0]);
    bool has_x = is_number(x, &v);
    if (has_x && v == decides)
        return x;
    known y = eval(ev, e->args[1]);
    return is_number(y, &v) && (has_x || v == decides) ? y : NULL;
}

static bool same(known x, known y)
{
    return x && y && x->type == y->type && kn_expr_equal(x, y);
}

static known eval_select(evaluator *ev, const kn_expr *e)
{
    int64_t c;
    if (is_number(eval(ev, e->args[0]), &c))
        return eval(ev, e->args[c ? 1 : 2]);
    known x = eval(ev, e->args[1]);
    return same(x, eval(ev, e->args[2])) ? x : NULL;
}

static known eval_op(evaluator *ev, const kn_expr *e)
{
    known args[3] = {NULL}, out = NULL;
    if (e->op == KN_OP_SELECT)
        return eval_select(ev, e);
    if (e->op == KN_OP_LAND || e->op == KN_OP_LOR)
        return eval_logic(ev, e);
    for (int i = 0; i < e->nargs; i++)
        if (!(args[i] = eval(ev, e->args[i])))
            return NULL;
    if (fold_literals(ev, e, args, &out))
        return out;
    if (kn_dtype_is_float(e->args[0]->type))
        return NULL;
    switch (kn_scalar_get(e->op)->class) {
    case KN_CLASS_ARITH:
        return fitting(ev, e->type, eval_arith(ev, e, args[0], args[1] ? args[1] : args[0]));
    case KN_CLASS_COMPARE: return eval_compare(ev, e, args[0], args[1]);
    case KN_CLASS_FLOAT:
    case KN_CLASS_LOGIC:
    case KN_CLASS_BITS:
    case KN_CLASS_SELECT: break;
    }
    return NULL;
}

static known eval_cast(evaluator *ev, const kn_expr *e)
{
    kn_dtype from = e->args[0]->type;
    known x = eval(ev, e->args[0]);
    if (!x)
        return NULL;
    const kn_expr *literal = to_literal(ev, from, x);
    if (literal)
        return of_literal(ev, kn_expr_fold(ev->a, kn_cast(ev->a, e->mode, e->type, literal)));
    if (kn_dtype_is_float(from) || kn_dtype_is_float(e->type) || e->mode == KN_CAST_BITCAST)
        return NULL;
    if (e->type == KN_BOOL) {
        kn_range r = range_of(ev, x);
        return truth(ev, r.lo > 0 || r.hi < 0, r.lo == 0 && r.hi == 0);
    }
    return fitting(ev, e->type, x);
}

static known eval_var(evaluator *ev, const kn_expr *e)
{
    for (int i = ev->niters - 1; i >= 0; i--)
        if (ev->iters[i].name == e->name)
            return kn_index(ev->a, ev->iters[i].value);
    return kn_graph_find_size(ev->g, e->name) >= 0 ? kn_var(ev->a, KN_INDEX, e->name) : NULL;
}

/* The row-major place of an element; -1 when a subscript is unknown or outside. */
static int64_t place(evaluator *ev, const store *s, const kn_expr *const *subs, int n)
{
    int64_t at = 0, sub;
    if (!s->constant || n != s->tensor->rank)
        return -1;
    for (int i = 0; i < n; i++) {
        if (!is_number(eval(ev, subs[i]), &sub) || sub < 0 || sub >= s->dims[i])
            return -1;
        at = at * s->dims[i] + sub;
    }
    return at;
}

static bool has_elements(const kn_value *v)
{
    return v->content || v->known || v->data;
}

static known element_of(evaluator *ev, const kn_value *v, int64_t i)
{
    if (v->content || v->known)
        return v->content ? v->content[i] : v->known[i];
    return v->data ? of_literal(ev, kn_element_get(ev->a, v->type, v->data, i)) : NULL;
}

static known eval_load(evaluator *ev, const kn_expr *e)
{
    int k = kn_nest_find(ev->nest, e->name);
    if (k < 0)
        return NULL;
    const store *s = &ev->stores[k];
    if (!s->cells && !(s->operand && has_elements(s->operand)))
        return NULL;
    int64_t at = place(ev, s, e->args, e->nargs);
    if (at < 0)
        return NULL;
    if (s->cells)
        return s->cells[at];
    return element_of(ev, s->operand, at);
}

static known eval(evaluator *ev, const kn_expr *e)
{
    if (++ev->steps > MAX_STEPS)
        return NULL;
    switch (e->kind) {
    case KN_E_CONST: return of_literal(ev, e);
    case KN_E_VAR: return eval_var(ev, e);
    case KN_E_LOAD: return eval_load(ev, e);
    case KN_E_OP: return eval_op(ev, e);
    case KN_E_CAST: return eval_cast(ev, e);
    }
    return NULL;
}

/* ---- statements ---- */

static known combine(evaluator *ev, kn_update op, kn_dtype type, known old, known x)
{
    static const kn_scalar ops[] = {
        [KN_ADD] = KN_OP_ADD, [KN_MUL] = KN_OP_MUL, [KN_MAX] = KN_OP_MAX, [KN_MIN] = KN_OP_MIN};
    if (op == KN_SET || !old || !x)
        return op == KN_SET ? x : NULL;
    /* an operator node that only lends its op and types */
    const kn_expr *lend = kn_op2(ev->a, ops[op], kn_zero(ev->a, type), kn_zero(ev->a, type));
    known args[] = {old, x}, out = NULL;
    if (fold_literals(ev, lend, args, &out) || kn_dtype_is_float(type))
        return out;
    return fitting(ev, type, eval_arith(ev, lend, old, x));
}

static bool run_instance(evaluator *ev, const kn_stmt *s)
{
    int64_t c = 1;
    if (++ev->instances > MAX_INSTANCES)
        return false;
    if (s->where && !is_number(eval(ev, s->where), &c))
        return false;
    if (!c)
        return true;
    store *target = &ev->stores[kn_nest_find(ev->nest, s->target)];
    int64_t at = place(ev, target, s->subs, s->nsubs);
    if (at < 0)
        return false;
    known x = combine(ev, s->op, target->tensor->type, target->cells[at], eval(ev, s->rhs));
    target->cells[at] = x;
    return x || ++ev->unknown <= MAX_UNKNOWN;
}

static bool run_iters(evaluator *ev, const kn_stmt *s, int k)
{
    int64_t lo, hi;
    if (k == s->niters)
        return run_instance(ev, s);
    if (ev->niters == (int)(sizeof ev->iters / sizeof *ev->iters) ||
        !is_number(eval(ev, s->iters[k].lo), &lo) || !is_number(eval(ev, s->iters[k].hi), &hi))
        return false;
    bool ok = true;
    int depth = ev->niters++;
    for (int64_t i = lo; ok && i < hi; i++) {
        ev->iters[depth] = (bound_iter){s->iters[k].name, i};
        ok = ++ev->steps <= MAX_STEPS && run_iters(ev, s, k + 1);
    }
    ev->niters = depth;
    return ok;
}

/* The statements [first, last) of one `over`, for each value of its index. */
static bool run_over(evaluator *ev, int first, int last)
{
    const kn_stmt *stmts = ev->nest->stmts;
    int64_t lo, hi;
    if (!is_number(eval(ev, stmts[first].iters[0].lo), &lo) ||
        !is_number(eval(ev, stmts[first].iters[0].hi), &hi))
        return false;
    bool ok = true;
    int depth = ev->niters++;
    for (int64_t t = lo; ok && t < hi; t++)
        for (int i = first; ok && i < last; i++) {
            ev->iters[depth] = (bound_iter){stmts[i].iters[0].name, t};
            ok = ++ev->steps <= MAX_STEPS && run_iters(ev, &stmts[i], 1);
        }
    ev->niters = depth;
    return ok;
}

static bool run_nest(evaluator *ev)
{
    const kn_nest *nest = ev->nest;
    for (int i = 0; i < nest->nstmts;) {
        int last = i + 1;
        while (nest->stmts[i].over >= 0 && last < nest->nstmts &&
               nest->stmts[last].over == nest->stmts[i].over)
            last++;
        if (!(nest->stmts[i].over >= 0 ? run_over(ev, i, last) : run_iters(ev, &nest->stmts[i], 0)))
            return false;
        i = last;
    }
    return true;
}

/* ---- stores ---- */

static void measure(store *s)
{
    s->count = kn_shape_count(s->tensor->shape, s->tensor->rank);
    s->constant = s->count >= 0;
    for (int i = 0; s->constant && i < s->tensor->rank; i++)
        kn_index_const(s->tensor->shape[i], &s->dims[i]);
}

/* Results and temporaries get cells; an operand that is updated, a copy of what is known of it. */
static bool open_stores(evaluator *ev, kn_value *const *operands)
{
    const kn_nest *nest = ev->nest;
    ev->stores = KN_ARRAY(ev->a, store, nest->ntensors);
    for (int k = 0, in = 0; k < nest->ntensors; k++) {
        store *s = &ev->stores[k];
        s->tensor = &nest->tensors[k];
        measure(s);
        if (s->tensor->role == KN_ROLE_IN || s->tensor->role == KN_ROLE_INOUT)
            s->operand = operands[in++];
        if (s->tensor->role == KN_ROLE_IN)
            continue;
        if (!s->constant || s->count > MAX_CELLS)
            return false;
        const kn_expr **cells = KN_ARRAY(ev->a, const kn_expr *, s->count);
        for (int64_t i = 0; s->operand && i < s->count; i++)
            cells[i] = element_of(ev, s->operand, i);
        s->cells = cells;
    }
    return true;
}

static bool may_have_content(const kn_value *v)
{
    int64_t count = kn_value_count(v);
    return count >= 0 && count <= KN_MAX_CONTENT;
}

static void set_content(kn_arena *a, kn_value *v, const store *s)
{
    const kn_expr **content = KN_ARRAY(a, const kn_expr *, s->count);
    int64_t unknown = 0;
    for (int64_t i = 0; i < s->count; i++) {
        if (!s->cells[i]) {
            unknown++;
            continue;
        }
        bool is_float = kn_dtype_is_float(s->cells[i]->type);
        content[i] = is_float ? kn_float(a, s->cells[i]->type, s->cells[i]->f)
                              : kn_index_copy(a, s->cells[i]);
    }
    if (!unknown)
        v->content = content;
    else if (unknown < s->count)
        v->known = content;
}

void kn_content_infer(kn_arena *scratch, kn_graph *g, kn_node *n, const kn_nest *nest)
{
    bool any = false;
    for (int r = 0; r < n->noutputs; r++)
        any |= may_have_content(n->outputs[r]);
    if (!any || nest->opaque)
        return;
    kn_value **operands = KN_ARRAY(scratch, kn_value *, n->ninputs);
    for (int i = 0, k = 0; i < n->ninputs; i++)
        if (n->inputs[i])
            operands[k++] = n->inputs[i];
    evaluator ev = {.a = scratch, .g = g, .nest = kn_nest_split(scratch, nest)};
    if (!open_stores(&ev, operands) || !run_nest(&ev))
        return;
    for (int r = 0; r < n->noutputs; r++) {
        int k = kn_nest_find(ev.nest, kn_nest_result(nest, n, r)->name);
        if (may_have_content(n->outputs[r]))
            set_content(g->arena, n->outputs[r], &ev.stores[k]);
    }
}

/* ---- contents that are read at run time ---- */

/* A size's name made of a value's: what is no letter or digit becomes '_'. */
static const char *size_name(kn_graph *g, const kn_value *v, int element)
{
    kn_ctx *ctx = kn_arena_ctx(g->arena);
    char *stem = kn_format(g->arena, "%s_%d", v->name, element);
    for (char *c = stem; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    if (*stem >= '0' && *stem <= '9')
        stem = kn_format(g->arena, "n%s", stem);
    const char *name = kn_intern(ctx, stem);
    for (int i = 1; kn_graph_find_size(g, name) >= 0; i++)
        name = kn_intern_f(ctx, "%s_%d", stem, i);
    return name;
}

const kn_expr *const *kn_graph_content(kn_graph *g, kn_value *v, int64_t lo, int64_t hi)
{
    if (kn_dtype_is_float(v->type) || !may_have_content(v))
        return NULL;
    if (v->content)
        return v->content;
    int count = (int)kn_value_count(v);
    const kn_expr **content = KN_ARRAY(g->arena, const kn_expr *, count);
    for (int i = 0; i < count; i++) {
        if (v->known && v->known[i]) {
            content[i] = v->known[i];
            continue;
        }
        content[i] = kn_graph_size(g, size_name(g, v, i), lo, hi);
        g->sources[g->nsizes - 1] = (struct kn_size_source){v, i};
    }
    return v->content = content;
}
