/* Random statements of particular kinds, for test_random_notation.c: windows, recurrences,
   scatters, other addresses. Each function adds one or two to the program at hand. */
#ifndef KN_TESTS_NOTATION_KINDS_H
#define KN_TESTS_NOTATION_KINDS_H

#include "notation_statements.h"

/* ---- windows ---- */

static o_dim *wide_dim(maker *m)
{
    for (int i = 0; i < 4 && m->ndims; i++) {
        o_dim *d = m->dims[pick(m, m->ndims)];
        if (d->lo >= 6 && d->text) {
            return d;
        }
    }
    return constant_dim(m, chance(m, 50) ? 7 : 11);
}

/* A stride, at times as an attribute. */
static const o_expr *stride(maker *m, int64_t value)
{
    o_expr *e = (o_expr *)(uintptr_t)number(m, KN_INDEX, (double)value);
    if (chance(m, 30) && !*m->p->params) {
        e->text = "s";
        m->p->params = ", s: const";
        m->p->attributes = kn_format(m->a, " {s = %lld}", (long long)value);
    }
    return e;
}

/* One axis of a window over d: adds the position, the tap comes later. */
typedef struct {
    const o_dim *d;
    int x, k; /* indices */
    int64_t taps, step, gap, shift;
    bool padded;
    const o_expr *by;
} m_axis;

static m_axis make_axis(maker *m, bool padded)
{
    m_axis a = {.d = wide_dim(m),
                .taps = pick(m, 3) + 1,
                .step = pick(m, 3) + 1,
                .gap = pick(m, 2) + 1,
                .padded = padded};
    a.shift = padded ? -pick(m, 3) : pick(m, 2);
    a.by = stride(m, a.step);
    a.x = add_index(m, derived(m));
    m->s->index[a.x].makes = true;
    m->s->index[a.x].inferred = !padded;
    return a;
}

static const o_expr *axis_subscript(maker *m, const m_axis *a)
{
    const o_expr *x = index_of(m, a->x), *k = index_of(m, a->k);
    const o_expr *at = a->by->text || a->step > 1 ? op(m, O_MUL, KN_INDEX, a->by, x) : x;
    return plus(m, op(m, O_ADD, KN_INDEX, at, times(m, a->gap, k)), a->shift);
}

/* (n + 2 * pad - gap * (taps - 1) - 1) / step + 1 */
static void pad_range(maker *m, const m_axis *a)
{
    const o_expr *n = extent(m, a->d);
    if (!n) {
        m->failed = true;
        return;
    }
    const o_expr *room = plus(m, n, -2 * a->shift - a->gap * (a->taps - 1) - 1);
    o_index *x = &m->s->index[a->x];
    x->lo = number(m, KN_INDEX, 0);
    x->hi = plus(m, op(m, O_DIV, KN_INDEX, room, number(m, KN_INDEX, (double)a->step)), 1);
}

/* The subscripts of a load in the making. */
typedef struct {
    const o_dim *dims[O_RANK];
    const o_expr *subs[O_RANK];
    int n;
} m_load;

static void subscribe(m_load *l, const o_dim *d, const o_expr *sub)
{
    l->dims[l->n] = d;
    l->subs[l->n++] = sub;
}

static void subscribe_index(maker *m, m_load *l, int k)
{
    if (k >= 0) {
        subscribe(l, m->s->index[k].dim, index_of(m, k));
    }
}

static o_expr *loaded(maker *m, kn_dtype type, const m_load *l)
{
    o_expr *e = load(m, operand(m, some_array(m, type, l->n, l->dims, NULL), -1, 0));
    e->n = l->n;
    memcpy(e->arg, l->subs, sizeof *l->subs * (size_t)l->n);
    return e;
}

/* An index over few of something, or -1: there is none. */
static int maybe_few(maker *m, bool allowed)
{
    return allowed && chance(m, 50) ? add_index(m, constant_dim(m, pick(m, 3) + 1)) : -1;
}

/* The taps of an axis: a dimension of the filter, or, without one, a range that is written. */
static void add_taps(maker *m, m_axis *a, bool pool)
{
    a->k = add_index(m, constant_dim(m, a->taps));
    if (pool) {
        m->s->index[a->k].lo = number(m, KN_INDEX, 0);
        m->s->index[a->k].hi = number(m, KN_INDEX, (double)a->taps);
    }
}

/* Y[n, f, x...] +=! X[n, c, s*x + g*k...] * W[c, k..., f], parts of it left out; without W,
 * pooling. */
static void window(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    bool padded = chance(m, 40), pool = chance(m, 30);
    int naxes = pick(m, 2) + 1, n = chance(m, 50) ? add_index(m, some_dim(m)) : -1;
    int f = maybe_few(m, !pool);
    m_axis axes[2];
    m_load x = {.n = 0}, w = {.n = 0};
    for (int i = 0; i < naxes; i++) {
        axes[i] = make_axis(m, padded);
    }
    m->s->ntarget = m->s->n;
    int c = maybe_few(m, !pool);
    subscribe_index(m, &x, n);
    subscribe_index(m, &x, c);
    subscribe_index(m, &w, c);
    for (int i = 0; i < naxes; i++) {
        add_taps(m, &axes[i], pool);
        subscribe(&x, axes[i].d, axis_subscript(m, &axes[i]));
        subscribe_index(m, &w, axes[i].k);
    }
    subscribe_index(m, &w, f);
    o_expr *e = loaded(m, type, &x);
    e->otherwise = padded ? literal(m, type) : NULL;
    for (int i = 0; i < naxes && padded; i++) {
        pad_range(m, &axes[i]);
    }
    m->s->update = !pool ? O_PLUS : chance(m, 50) ? O_MAXIMUM : O_MINIMUM;
    m->s->init = true;
    make_target(m, type);
    end(m, pool ? e : op(m, O_MUL, type, e, loaded(m, type, &w)));
}

/* ---- recurrences ---- */

/* T[t - back, ...], of the statement's own target or another's. */
static o_expr *earlier(maker *m, const o_expr *target, int axis, int64_t back)
{
    o_expr *e = load(m, target->tensor);
    e->type = target->type;
    e->n = target->n;
    for (int i = 0; i < e->n; i++) {
        e->arg[i] = i == axis ? plus(m, index_of(m, i), -back) : index_of(m, i);
    }
    return e;
}

static const o_expr *alone_load(maker *m, kn_dtype type, int from, int to)
{
    const o_dim *dims[O_RANK] = {NULL};
    for (int k = from; k < to; k++) {
        dims[k - from] = m->s->index[k].dim;
    }
    o_expr *e = load(m, operand(m, some_array(m, type, to - from, dims, NULL), -1, 0));
    for (int k = from; k < to; k++) {
        e->arg[e->n++] = index_of(m, k);
    }
    return e;
}

/* What stood there earlier, or a start: by `else` or by select. */
static const o_expr *or_start(maker *m, o_expr *e, int axis, int64_t back)
{
    if (chance(m, 50)) {
        e->otherwise = literal(m, e->type);
        return e;
    }
    const o_expr *first =
        back == 1 ? op(m, O_EQ, KN_BOOL, index_of(m, axis), number(m, KN_INDEX, 0))
                  : op(m, O_LT, KN_BOOL, index_of(m, axis), number(m, KN_INDEX, (double)back));
    return select_of(m, first,
                     axis == 0 && m->s->ntarget > 1 && chance(m, 50)
                         ? alone_load(m, e->type, 1, m->s->ntarget)
                         : literal(m, e->type),
                     e);
}

static const o_expr *clamped(maker *m, kn_dtype type, const o_expr *e, double most)
{
    const o_expr *low = op(m, O_MIN, type, e, number(m, type, most));
    return op(m, O_MAX, type, low, number(m, type, o_unsigned(type) ? 0 : -most));
}

static void recurrence(maker *m)
{
    static const o_op ops[] = {O_ADD, O_SUB, O_MAX, O_MIN, O_MUL};
    begin(m);
    kn_dtype type = some_type(m);
    int rank = pick(m, 3) + 1, axis = pick(m, rank);
    int64_t back = pick(m, 2) + 1;
    for (int i = 0; i < rank; i++) {
        add_index(m, some_dim(m));
    }
    m->s->ntarget = rank;
    make_target(m, type);
    const o_expr *x = alone_load(m, type, 0, rank),
                 *e = or_start(m, earlier(m, m->s->target, axis, back), axis, back);
    bool first = chance(m, 50);
    e = op(m, ops[pick(m, 5)], type, first ? x : e, first ? e : x);
    if (rank > 1 && chance(m, 40)) { /* a wavefront */
        int other = (axis + 1) % rank;
        e = op(m, chance(m, 50) ? O_MAX : O_SUB, type, e,
               or_start(m, earlier(m, m->s->target, other, 1), other, 1));
    }
    end(m, chance(m, 40) ? clamped(m, type, e, 9) : e);
}

static void begin_step(maker *m, const o_dim *time, const o_dim *width)
{
    begin(m);
    add_index(m, time);
    add_index(m, width);
    m->s->ntarget = 2;
    m->s->over = 0;
}

/* T[i, j] for the first two indices. */
static o_expr *at_step(maker *m, const o_tensor *t)
{
    o_expr *e = load(m, t);
    e->n = 2;
    e->arg[0] = index_of(m, 0);
    e->arg[1] = index_of(m, 1);
    return e;
}

/* The state before, by a matrix and a gate of the step. */
static const o_expr *mixed(maker *m, const o_tensor *state, const o_dim *width)
{
    kn_dtype type = state->array->type;
    int e = add_index(m, width);
    o_expr *before = earlier(m, at_step(m, state), 0, 1);
    before->arg[1] = index_of(m, e);
    before->otherwise = number(m, type, pick(m, 3));
    m_load w = {.n = 0}, gate = {.n = 0};
    subscribe_index(m, &w, 1);
    subscribe_index(m, &w, e);
    subscribe_index(m, &gate, 0);
    m->s->update = O_PLUS;
    m->s->init = true;
    return op(m, O_MUL, type, op(m, O_MUL, type, before, loaded(m, type, &w)),
              loaded(m, type, &gate));
}

/* over t { H = f(X[t], S[t - 1]); S = g(H[t], S[t - 1]) }. */
static void together(maker *m)
{
    kn_dtype type = chance(m, 60) ? KN_F32 : KN_I32;
    const o_dim *time = some_dim(m), *width = some_dim(m), *dims[2] = {time, width};
    o_tensor *state = KN_NEW(m->a, o_tensor);
    *state = (o_tensor){.pack = -1, .array = new_array(m, type, 2, dims)};
    state->name = kn_format(m->a, "T%d", m->temps++);
    begin_step(m, time, width);
    make_target(m, type);
    const o_tensor *made = m->s->target->tensor;
    if (chance(m, 50)) {
        end(m, mixed(m, state, width));
    } else {
        o_expr *before = earlier(m, at_step(m, state), 0, 1);
        before->otherwise = number(m, type, pick(m, 3));
        end(m, op(m, O_SUB, type, alone_load(m, type, 0, 2), before));
    }
    begin_step(m, time, width);
    m->s->target = at_step(m, state);
    const o_expr *x = op(m, O_ADD, type, at_step(m, made), alone_load(m, type, 0, 2));
    o_expr *own = earlier(m, m->s->target, 0, 1);
    own->otherwise = number(m, type, 1);
    end(m, clamped(m, type, chance(m, 50) ? op(m, O_SUB, type, x, own) : x, 4));
}

/* ---- scatter ---- */

/* Y[I[i], j] += V[i, j] into an operand. */
static void scatter(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    o_dim *d = some_dim(m);
    int rank = pick(m, 2) + 1, i = add_index(m, some_dim(m)),
        j = rank > 1 ? add_index(m, some_dim(m)) : -1;
    if (d->lo == 0 || m->p->noperands) {
        m->failed = true;
        return;
    }
    const o_dim *dims[2] = {d, j >= 0 ? m->s->index[j].dim : NULL},
                *long_[1] = {m->s->index[i].dim};
    o_array *before = some_array(m, type, rank, dims, NULL);
    o_tensor *t = operand(m, before, -1, 0);
    o_array *updated = new_array(m, type, rank, dims);
    t->initial = before;
    updated->updates = before;
    t->array = updated;
    o_expr *at = load(m, operand(m, some_array(m, KN_I64, 1, long_, d), -1, 0));
    at->n = 1;
    at->arg[0] = index_of(m, i);
    o_expr *target = load(m, t);
    target->n = rank;
    target->arg[0] = at;
    if (j >= 0) {
        target->arg[1] = index_of(m, j);
    }
    m->s->target = target;
    m->partial = t;
    m->s->ntarget = m->s->n;
    m->s->update = (o_update)pick(m, 5);
    m->s->where = chance(m, 20) ? condition(m, 1) : NULL;
    const o_expr *e = alone_load(m, type, 0, m->s->n);
    end(m, chance(m, 50) ? op(m, O_ADD, type, e, value(m, type, 1)) : e);
}

/* ---- other addresses ---- */

/* A result of 2*d elements, declared. */
static o_tensor *doubled(maker *m, kn_dtype type, const o_dim *d)
{
    o_dim *twice = d->constant ? constant_dim(m, 2 * d->value[0]) : derived(m);
    o_tensor *t = KN_NEW(m->a, o_tensor);
    for (int b = 0; b < O_RUNS; b++) {
        twice->value[b] = 2 * d->value[b];
    }
    *t = (o_tensor){.name = kn_format(m->a, "T%d", m->temps++), .pack = -1, .declared = true};
    t->array = new_array(m, type, 1, (const o_dim *const[]){twice});
    t->shape = kn_format(m->a, "%s[2*%s]", kn_dtype_name(type), size_name(m, d));
    return t;
}

/* T[2*i + p] for p = 0, 1: two statements write one result. */
static void interleave(maker *m)
{
    kn_dtype type = some_type(m);
    const o_dim *d = some_dim(m);
    o_tensor *t = NULL;
    for (int part = 0; part < 2; part++) {
        begin(m);
        int i = add_index(m, d);
        m->s->ntarget = 1;
        const o_expr *x = alone_load(m, type, 0, 1);
        m->failed = m->failed || !size_name(m, d);
        if (m->failed) {
            return;
        }
        t = t ? t : doubled(m, type, d);
        o_expr *target = load(m, t);
        target->n = 1;
        target->arg[0] = plus(m, times(m, 2, index_of(m, i)), part);
        m->s->target = target;
        m->partial = t;
        end(m, chance(m, 50) ? op(m, O_ADD, type, x, value(m, type, 1)) : x);
    }
}

/* T[i, j] = X[i, j] else v for i below a size that is computed. */
static void counted(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    o_dim *count = count_dim(m, pick(m, 2));
    int i = add_index(m, count), j = chance(m, 50) ? add_index(m, some_dim(m)) : -1;
    m_load x = {.n = 0};
    m->p->params = kn_format(m->a, ", p: size in 0:%lld", (long long)count->most);
    m->p->attributes = kn_format(m->a, " {p = %s}", count->text);
    m->p->size[m->p->nsizes].dim = count;
    m->p->size[m->p->nsizes++].name = "p";
    m->s->index[i].lo = number(m, KN_INDEX, 0);
    m->s->index[i].hi = extent(m, count);
    m->s->ntarget = m->s->n;
    subscribe(&x, some_dim(m), index_of(m, i));
    subscribe_index(m, &x, j);
    o_expr *e = loaded(m, type, &x);
    e->otherwise = literal(m, type);
    make_target(m, type);
    end(m, e);
}

/* X[i / c, i % c]: a tile for each c indices. */
static const o_expr *tiled(maker *m, kn_dtype type, int i, int64_t c)
{
    const o_expr *by = number(m, KN_INDEX, (double)c);
    m_load x = {.n = 0};
    subscribe(&x, some_dim(m), op(m, O_DIV, KN_INDEX, index_of(m, i), by));
    subscribe(&x, constant_dim(m, c), op(m, O_REM, KN_INDEX, index_of(m, i), by));
    return loaded(m, type, &x);
}

/* X[c*i + j] - W[j] from a dimension that is a merge of two, (g c). */
static const o_expr *merged(maker *m, kn_dtype type, o_dim *d, int i, int64_t c)
{
    m_load x = {.n = 0}, w = {.n = 0};
    int j = add_index(m, constant_dim(m, c));
    const o_expr *at = op(m, O_ADD, KN_INDEX, times(m, c, index_of(m, i)), index_of(m, j));
    subscribe(&x, scaled_dim(m, d, c), at);
    subscribe_index(m, &w, j);
    const o_expr *e = loaded(m, type, &x), *f = loaded(m, type, &w);
    ((o_tensor *)(uintptr_t)e->tensor)->dims[0] = "(g c)";
    ((o_tensor *)(uintptr_t)f->tensor)->dims[0] = "c";
    m->p->nsizes = 2; /* nothing names the merged dimension */
    m->p->size[0].dim = d;
    m->p->size[0].name = "g";
    m->p->size[1].dim = m->s->index[j].dim;
    m->p->size[1].name = "c";
    return op(m, O_SUB, type, e, f);
}

static void reindex(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    int64_t c = pick(m, 3) + 2;
    o_dim *d = some_dim(m);
    int kind = pick(m, 3), i = add_index(m, derived(m));
    m->s->index[i].makes = m->s->index[i].inferred = true;
    const o_expr *e;
    if (kind == 0) {
        e = tiled(m, type, i, c);
    } else if (kind == 1 && (is_symbol(d) || d->constant)) {
        e = merged(m, type, d, i, c);
    } else { /* a strided slice */
        m_load x = {.n = 0};
        subscribe(&x, wide_dim(m), plus(m, times(m, c, index_of(m, i)), pick(m, 3)));
        e = loaded(m, type, &x);
    }
    m->s->ntarget = m->s->n;
    make_target(m, type);
    end(m, e);
}

#endif
