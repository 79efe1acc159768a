/* The kinds of programs that test_random_notation.c tries, each a function that adds statements to
   the program at hand, and how programs become nodes of a graph. */
#ifndef KN_TESTS_NOTATION_PROGRAMS_H
#define KN_TESTS_NOTATION_PROGRAMS_H

#include "notation_make.h"

/* ---- beginning and ending a statement ---- */

static void begin(maker *m)
{
    m->failed = m->failed || m->p->nstmts == O_STMTS;
    m->s = &m->p->stmt[m->failed ? 0 : m->p->nstmts];
    *m->s = (o_stmt){.over = -1};
    m->partial = NULL;
}

/* The target, a new tensor over the first `ntarget` indices; the pack stands before the index at
 * pack_first. */
static void make_target(maker *m, kn_dtype type)
{
    o_stmt *s = m->s;
    o_tensor *t = KN_NEW(m->a, o_tensor);
    const o_dim *dims[O_RANK];
    bool packed = s->packed && s->pack_first <= s->ntarget;
    *t =
        (o_tensor){.name = kn_format(m->a, "T%d", m->temps++), .pack = packed ? s->pack_first : -1};
    t->width = packed ? s->pack_width : 0;
    m->failed = m->failed || s->ntarget > O_RANK;
    for (int k = 0; k < s->ntarget && !m->failed; k++) {
        dims[k] = s->index[k].dim;
    }
    t->array = new_array(m, type, m->failed ? 0 : s->ntarget, dims);
    o_expr *e = load(m, t);
    for (int k = 0; k < t->array->rank; k++) {
        if (!s->index[k].pack) {
            e->arg[e->n++] = index_of(m, k);
        }
    }
    s->target = e;
}

static void end(maker *m, const o_expr *rhs)
{
    m->s->rhs = rhs;
    m->p->nstmts += !m->failed;
}

/* ---- a statement of any kind ---- */

typedef struct {
    const o_dim *dims[O_RANK]; /* indices that the statement is to have */
    bool reduce[O_RANK];
    int index[O_RANK]; /* their numbers */
    int n;
    const o_dim *pack[O_RANK];
    int width; /* -1: no pack */
    bool reduce_pack;
} m_plan;

static void add_pack(maker *m, const m_plan *plan)
{
    m->s->packed = plan->width >= 0 && !plan->reduce_pack;
    m->s->pack_first = m->s->n;
    m->s->pack_width = plan->width > 0 ? plan->width : 0;
    for (int i = 0; i < plan->width; i++) {
        int k = add_index(m, plan->pack[i]);
        m->s->index[k].pack = true;
    }
}

static void add_indices(maker *m, m_plan *plan)
{
    bool late = chance(m, 15); /* the pack behind the others */
    for (int side = 0; side < 2; side++) {
        bool here = plan->reduce_pack == (side == 1);
        if (here && !late) {
            add_pack(m, plan);
        }
        for (int i = 0; i < plan->n; i++) {
            if (plan->reduce[i] == (side == 1)) {
                plan->index[i] = add_index(m, plan->dims[i]);
            }
        }
        if (here && late) {
            add_pack(m, plan);
        }
        m->s->ntarget = side == 0 ? m->s->n : m->s->ntarget;
    }
}

static m_plan make_plan(maker *m, const o_tensor *base)
{
    m_plan plan = {.width = -1};
    const o_array *x = base ? base->array : NULL;
    plan.width = base && base->pack >= 0 ? 0 : -1;
    for (int d = 0; x && d < x->rank; d++) {
        if (base->pack >= 0 && d >= base->pack && d < base->pack + base->width) {
            plan.pack[plan.width++] = x->dim[d];
        } else {
            plan.dims[plan.n++] = x->dim[d];
        }
    }
    if (!base && chance(m, 30)) {
        plan.width = pick(m, 4);
        for (int i = 0; i < plan.width; i++) {
            plan.pack[i] = some_dim(m);
        }
    }
    for (int more = pick(m, x ? 2 : 4); more > 0 && plan.n < 4; more--) {
        plan.dims[plan.n++] = some_dim(m);
    }
    return plan;
}

/* A load that has the chosen indices alone in its subscripts. */
static const o_expr *anchor(maker *m, kn_dtype type, const bool *has, const m_plan *plan, bool pack)
{
    const o_dim *dims[2 * O_RANK];
    const o_expr *subs[O_RANK];
    int order[O_RANK], n = 0, rank = 0, at = -1, width = 0;
    for (int i = 0; i < plan->n; i++) {
        if (has[i]) {
            int to = pick(m, n + 1);
            order[n] = order[to];
            order[to] = i;
            n++;
        }
    }
    int before = pack ? (chance(m, 80) ? 0 : n) : -1;
    for (int i = 0; i <= n; i++) {
        if (i == before) {
            at = rank;
            bool plain = chance(m, 60); /* else the pack is cut or holds ones */
            int from = plain || m->s->pack_width == 0 ? 0 : pick(m, m->s->pack_width + 1);
            for (int k = from; k < m->s->pack_width; k++) {
                const o_dim *d = m->s->index[m->s->pack_first + k].dim;
                dims[rank++] = plain || chance(m, 60) ? d : constant_dim(m, 1);
            }
            width = m->s->pack_width - from;
        }
        if (i < n) {
            subs[i] = index_of(m, plan->index[order[i]]);
            dims[rank++] = plan->dims[order[i]];
        }
    }
    if (rank > O_RANK) {
        m->failed = true;
        return literal(m, type);
    }
    o_expr *e =
        load(m, operand(m, some_array(m, chance(m, 85) ? type : some_type(m), rank, dims, NULL), at,
                        width));
    for (int i = 0; i < n; i++) {
        e->arg[e->n++] = subs[i];
    }
    return converted(m, type, e);
}

/* The whole pack, its dimensions as they are, in one load. */
static const o_expr *pack_anchor(maker *m, kn_dtype type)
{
    const o_dim *dims[O_RANK];
    for (int k = 0; k < m->s->pack_width; k++) {
        dims[k] = m->s->index[m->s->pack_first + k].dim;
    }
    return load(m,
                operand(m, some_array(m, type, m->s->pack_width, dims, NULL), 0, m->s->pack_width));
}

static const o_expr *base_load(maker *m, kn_dtype type, const o_tensor *base, const m_plan *plan)
{
    o_expr *e = load(m, base);
    e->n = base->array->rank - (base->pack >= 0 ? base->width : 0);
    for (int i = 0; i < e->n; i++) {
        e->arg[i] = index_of(m, plan->index[i]);
    }
    return converted(m, type, e);
}

static const o_expr *joined(maker *m, kn_dtype type, bool product, const o_expr *x, const o_expr *y)
{
    static const o_op ops[] = {O_ADD, O_SUB, O_MUL, O_MAX, O_MIN};
    return x ? op(m, product ? O_MUL : ops[pick(m, 5)], type, x, y) : y;
}

/* Loads that between them have every index alone. */
static const o_expr *anchored(maker *m, kn_dtype type, const o_tensor *base, const m_plan *plan,
                              bool product)
{
    const o_expr *e = base ? base_load(m, type, base, plan) : NULL;
    int bound = base ? base->array->rank - (base->pack >= 0 ? base->width : 0) : 0;
    int loads = product ? pick(m, 3) + (base ? 1 : 2) : pick(m, 2) + !base;
    bool done[O_RANK] = {false};
    if (!base && plan->width >= 0) {
        e = pack_anchor(m, type);
    }
    for (int k = 0; k < loads || (k == loads && bound < plan->n); k++) {
        bool has[O_RANK] = {false};
        for (int i = 0; i < plan->n; i++) {
            bool needed = k >= loads - 1 && i >= bound && !done[i];
            has[i] = plan->dims[i]->text && (needed || chance(m, 45));
            done[i] = done[i] || has[i];
        }
        e = joined(m, type, product, e,
                   anchor(m, type, has, plan, plan->width >= 0 && chance(m, 50)));
        if (k == loads - 1) {
            bound = plan->n;
        }
    }
    return e;
}

static o_update some_update(maker *m, kn_dtype type)
{
    static const o_update updates[] = {O_PLUS,  O_PLUS,    O_PLUS,   O_PLUS,
                                       O_TIMES, O_MAXIMUM, O_MINIMUM};
    return type == KN_BOOL || chance(m, 40) ? O_SET : updates[pick(m, 7)];
}

/* Ranges that are written: `where r in lo:hi` for a reduction, up to an index where that makes a
 * triangle. */
static void restrict_reductions(maker *m)
{
    for (int k = m->s->ntarget; k < m->s->n; k++) {
        o_index *x = &m->s->index[k];
        const o_expr *n = extent(m, x->dim);
        if (x->pack || !n || !chance(m, 15)) {
            continue;
        }
        int same = index_over(m, x->dim);
        bool triangle = same >= 0 && same < m->s->ntarget && !m->s->index[same].hi && chance(m, 60);
        x->lo = number(m, KN_INDEX, chance(m, 70) || x->dim->lo == 0 ? 0 : 1);
        x->hi = triangle ? plus(m, index_of(m, same), chance(m, 50)) : n;
    }
}

static void decide_reductions(maker *m, m_plan *plan)
{
    m->s->update = O_PLUS;
    for (int i = 0; i < plan->n; i++) {
        plan->reduce[i] = chance(m, 45);
    }
    plan->reduce_pack = plan->width >= 0 && chance(m, 15);
}

/* A mask around what decides the ranges, of indices alone: a load in it would decide them first.
   Not of constants: of the sides of such a select only the one chosen counts, for types too. */
static const o_expr *mask(maker *m)
{
    static const o_op compare[] = {O_LT, O_LE, O_EQ, O_NE};
    int k = m->s->n ? pick(m, m->s->n) : -1;
    return k < 0 || m->s->index[k].pack
               ? NULL
               : op(m, compare[pick(m, 4)], KN_BOOL, index_of(m, k), affine(m, 1));
}

static void general(maker *m, const o_tensor *base)
{
    kn_dtype type = chance(m, 8)                                            ? KN_BOOL
                    : base && base->array->type != KN_BOOL && chance(m, 70) ? base->array->type
                                                                            : some_type(m);
    begin(m);
    m_plan plan = make_plan(m, base);
    o_update update = some_update(m, type);
    if (update != O_SET) {
        decide_reductions(m, &plan);
    }
    add_indices(m, &plan);
    m->s->update = update;
    m->s->init = update != O_SET;
    make_target(m, type);
    bool product = update == O_PLUS && chance(m, 50);
    const o_expr *masked, *e = anchored(m, type == KN_BOOL ? KN_I32 : type, base, &plan, product);
    if (type == KN_BOOL) {
        e = op(m, O_LT, KN_BOOL, e, literal(m, KN_I32));
    } else if (chance(m, 20) && (masked = mask(m))) {
        e = select_of(m, masked, e, literal(m, type)); /* guards what decides the ranges */
    } else if (chance(m, 60)) {
        e = joined(m, type, false, e, value(m, type, 2));
    }
    if (update != O_SET) {
        restrict_reductions(m);
        m->s->where = chance(m, 20) ? condition(m, 1) : NULL;
        m->s->strict = chance(m, 10);
    }
    end(m, e);
}

/* An update of what an earlier statement made. */
static void revise(maker *m, const o_tensor *made)
{
    kn_dtype type = made->array->type;
    if (type == KN_BOOL || made->pack >= 0) {
        return;
    }
    begin(m);
    m_plan plan = make_plan(m, made);
    plan.n = made->array->rank;
    add_indices(m, &plan);
    m->s->update = (o_update)(O_PLUS + pick(m, 4));
    o_expr *e = load(m, made);
    for (int i = 0; i < plan.n; i++) {
        e->arg[e->n++] = index_of(m, plan.index[i]);
    }
    m->s->target = e;
    m->partial = made;
    m->s->where = chance(m, 40) ? condition(m, 1) : NULL;
    end(m, op(m, O_ADD, type, base_load(m, type, made, &plan), value(m, type, 1)));
}

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

static void window(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    bool padded = chance(m, 40), pool = chance(m, 30);
    int naxes = pick(m, 2) + 1, n = chance(m, 50) ? add_index(m, some_dim(m)) : -1;
    int f = !pool && chance(m, 50) ? add_index(m, constant_dim(m, pick(m, 3) + 1)) : -1;
    m_axis axes[2];
    for (int i = 0; i < naxes; i++) {
        axes[i] = make_axis(m, padded);
    }
    m->s->ntarget = m->s->n;
    int c = !pool && chance(m, 50) ? add_index(m, constant_dim(m, pick(m, 3) + 1)) : -1;
    const o_dim *xd[4], *wd[4];
    int xr = 0, wr = 0;
    const o_expr *xs[4], *ws[4];
    if (n >= 0) {
        xd[xr] = m->s->index[n].dim;
        xs[xr++] = index_of(m, n);
    }
    if (c >= 0) {
        wd[wr] = xd[xr] = m->s->index[c].dim;
        ws[wr++] = xs[xr++] = index_of(m, c);
    }
    for (int i = 0; i < naxes; i++) {
        axes[i].k = add_index(m, constant_dim(m, axes[i].taps));
        if (pool) {
            m->s->index[axes[i].k].lo = number(m, KN_INDEX, 0);
            m->s->index[axes[i].k].hi = number(m, KN_INDEX, (double)axes[i].taps);
        }
        xd[xr] = axes[i].d;
        xs[xr++] = axis_subscript(m, &axes[i]);
        wd[wr] = constant_dim(m, axes[i].taps);
        ws[wr++] = index_of(m, axes[i].k);
    }
    if (f >= 0) {
        wd[wr] = m->s->index[f].dim;
        ws[wr++] = index_of(m, f);
    }
    o_expr *x = load(m, operand(m, some_array(m, type, xr, xd, NULL), -1, 0));
    x->n = xr;
    memcpy(x->arg, xs, sizeof *xs * (size_t)xr);
    x->otherwise = padded ? literal(m, type) : NULL;
    for (int i = 0; i < naxes && padded; i++) {
        pad_range(m, &axes[i]);
    }
    const o_expr *e = x;
    if (!pool) {
        o_expr *w = load(m, operand(m, some_array(m, type, wr, wd, NULL), -1, 0));
        w->n = wr;
        memcpy(w->arg, ws, sizeof *ws * (size_t)wr);
        e = op(m, O_MUL, type, e, w);
    }
    m->s->update = pool ? (chance(m, 50) ? O_MAXIMUM : O_MINIMUM) : O_PLUS;
    m->s->init = true;
    make_target(m, type);
    end(m, e);
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
    end(m, chance(m, 40) ? op(m, O_MAX, type, op(m, O_MIN, type, e, number(m, type, 9)),
                              number(m, type, o_unsigned(type) ? 0 : -9))
                         : e);
}

/* over t { H = f(X[t], S[t - 1]); S = g(H[t], S[t - 1]) }, H at times a product with a matrix. */
static void together(maker *m)
{
    kn_dtype type = chance(m, 60) ? KN_F32 : KN_I32;
    const o_dim *time = some_dim(m), *width = some_dim(m);
    bool matrix = chance(m, 50);
    int group = 0;
    begin(m);
    o_stmt *first = m->s;
    add_index(m, time);
    add_index(m, width);
    first->ntarget = 2;
    first->over = group;
    make_target(m, type);
    o_tensor *tensor = KN_NEW(m->a, o_tensor); /* of the second statement */
    tensor->array = new_array(m, type, 2, (const o_dim *const[]){time, width});
    tensor->name = kn_format(m->a, "T%d", m->temps++);
    tensor->pack = -1;
    o_expr *state = load(m, tensor);
    state->n = 2;
    state->arg[0] = index_of(m, 0);
    int e = matrix ? add_index(m, width) : 1;
    state->arg[1] = index_of(m, e);
    o_expr *before = earlier(m, state, 0, 1);
    before->arg[1] = index_of(m, e);
    before->otherwise = number(m, type, pick(m, 3));
    const o_expr *x = before;
    if (matrix) {
        const o_dim *dims[2] = {width, width};
        o_expr *w = load(m, operand(m, some_array(m, type, 2, dims, NULL), -1, 0));
        w->n = 2;
        w->arg[0] = index_of(m, 1);
        w->arg[1] = index_of(m, e);
        x = op(m, O_MUL, type, before, w);
        first->update = O_PLUS;
        first->init = true;
        const o_dim *times[1] = {time}; /* decides the range of t */
        o_expr *gate = load(m, operand(m, some_array(m, type, 1, times, NULL), -1, 0));
        gate->n = 1;
        gate->arg[0] = index_of(m, 0);
        x = op(m, O_MUL, type, x, gate);
    } else {
        x = op(m, O_SUB, type, alone_load(m, type, 0, 2), x);
    }
    const o_expr *made = first->target;
    end(m, x);
    begin(m);
    add_index(m, time);
    add_index(m, width);
    m->s->index[0].name = first->index[0].name;
    m->s->ntarget = 2;
    m->s->over = group;
    o_expr *target = load(m, tensor);
    target->n = 2;
    target->arg[0] = index_of(m, 0);
    target->arg[1] = index_of(m, 1);
    m->s->target = target;
    x = op(m, O_ADD, type, earlier(m, made, 0, 0), alone_load(m, type, 0, 2));
    o_expr *own = earlier(m, target, 0, 1);
    own->otherwise = number(m, type, 1);
    x = chance(m, 50) ? op(m, O_SUB, type, x, own) : x;
    end(m, op(m, O_MAX, type, op(m, O_MIN, type, x, number(m, type, 4)), number(m, type, -4)));
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

/* Y[2*i + p] for p = 0, 1: two statements write one declared result. */
static void interleave(maker *m)
{
    kn_dtype type = some_type(m);
    o_dim *d = some_dim(m), *twice = NULL;
    o_tensor *t = KN_NEW(m->a, o_tensor);
    for (int part = 0; part < 2; part++) {
        begin(m);
        int i = add_index(m, d);
        m->s->ntarget = 1;
        const o_expr *x = alone_load(m, type, 0, 1);
        if (part == 0) {
            if (!size_name(m, d)) {
                m->failed = true;
                return;
            }
            twice = d->constant ? constant_dim(m, 2 * d->value[0]) : derived(m);
            for (int b = 0; b < O_RUNS; b++) {
                twice->value[b] = 2 * d->value[b];
            }
            const o_dim *dims[1] = {twice};
            *t = (o_tensor){
                .name = kn_format(m->a, "T%d", m->temps++), .pack = -1, .declared = true};
            t->array = new_array(m, type, 1, dims);
            t->shape = kn_format(m->a, "%s[2*%s]", kn_dtype_name(type), size_name(m, d));
        }
        o_expr *target = load(m, t);
        target->n = 1;
        target->arg[0] = plus(m, times(m, 2, index_of(m, i)), part);
        m->s->target = target;
        m->partial = t;
        end(m, chance(m, 50) ? op(m, O_ADD, type, x, value(m, type, 1)) : x);
    }
}

/* T[i] = X[i / c, i % c], or its inverse from a merged dimension, or a strided slice. */
static void reindex(maker *m)
{
    begin(m);
    kn_dtype type = some_type(m);
    int64_t c = pick(m, 3) + 2;
    o_dim *d = some_dim(m), *small = constant_dim(m, c);
    int kind = pick(m, 3), i = add_index(m, derived(m));
    m->s->index[i].makes = m->s->index[i].inferred = true;
    o_expr *e;
    if (kind == 0) {
        const o_dim *dims[2] = {d, small};
        e = load(m, operand(m, some_array(m, type, 2, dims, NULL), -1, 0));
        e->n = 2;
        e->arg[0] = op(m, O_DIV, KN_INDEX, index_of(m, i), number(m, KN_INDEX, (double)c));
        e->arg[1] = op(m, O_REM, KN_INDEX, index_of(m, i), number(m, KN_INDEX, (double)c));
    } else if (kind == 1 && (is_symbol(d) || d->constant)) {
        const o_dim *dims[1] = {scaled_dim(m, d, c)}, *tile[1] = {small};
        o_tensor *t = operand(m, some_array(m, type, 1, dims, NULL), -1, 0);
        t->dims[0] = "(g c)";
        o_tensor *w = operand(m, some_array(m, type, 1, tile, NULL), -1, 0);
        w->dims[0] = "c";
        m->p->nsizes = 2; /* nothing names the merged dimension */
        m->p->size[0].dim = d;
        m->p->size[0].name = "g";
        m->p->size[1].dim = small;
        m->p->size[1].name = "c";
        o_expr *y = load(m, w);
        y->n = 1;
        y->arg[0] = index_of(m, add_index(m, small));
        e = load(m, t);
        e->n = 1;
        e->arg[0] = op(m, O_ADD, KN_INDEX, times(m, c, index_of(m, i)), y->arg[0]);
        e = (o_expr *)(uintptr_t)op(m, O_SUB, type, e, y);
    } else {
        d = wide_dim(m);
        const o_dim *dims[1] = {d};
        e = load(m, operand(m, some_array(m, type, 1, dims, NULL), -1, 0));
        e->n = 1;
        e->arg[0] = plus(m, times(m, c, index_of(m, i)), pick(m, 3));
    }
    m->s->ntarget = m->s->n;
    make_target(m, type);
    end(m, e);
}

/* ---- a program ---- */

static bool is_read_later(const o_program *p, const o_tensor *t, int from)
{
    bool read = false;
    for (int k = from; k < p->nstmts && !read; k++) {
        read = is_loaded(p->stmt[k].rhs, t) ||
               (p->stmt[k].where && is_loaded(p->stmt[k].where, t)) ||
               is_loaded(p->stmt[k].target, t);
    }
    return read;
}

static bool is_result(const o_program *p, const o_tensor *t)
{
    for (int i = 0; i < p->nresults; i++) {
        if (p->result[i] == t) {
            return true;
        }
    }
    return false;
}

/* `f32[n0, 3]`, where every dimension has a name. An operand's pack may be wider than the
 * statement's. */
static void declare(maker *m, o_tensor *t)
{
    if (t->initial || t->declared || t->pack >= 0) {
        return;
    }
    kn_str s = kn_str_make(m->a);
    const char *comma = "";
    kn_putf(&s, "%s[", kn_dtype_name(t->array->type));
    for (int d = 0; d < t->array->rank; d++) {
        const o_dim *dim = t->array->dim[d];
        const char *name = dim->constant ? dim->text : size_name(m, dim);
        if (!name) {
            return;
        }
        kn_putf(&s, "%s%s", comma, name);
        comma = ", ";
    }
    kn_put(&s, "]");
    t->shape = kn_strdup(m->a, kn_str_get(&s));
    t->declared = true;
}

static void choose_results(maker *m)
{
    o_program *p = m->p;
    for (int k = 0; k < p->nstmts; k++) {
        o_tensor *t = (o_tensor *)(uintptr_t)p->stmt[k].target->tensor;
        bool needed = t->initial || t->declared || !is_read_later(p, t, k + 1);
        if (!is_result(p, t) && (needed || chance(m, 20))) {
            p->result[p->nresults++] = t;
            if (chance(m, 25)) {
                declare(m, t);
            }
        }
    }
}

/* A value that an earlier program made, as an operand; NULL when there is none. */
static const o_tensor *given(maker *m)
{
    o_array *x = m->values.n
                     ? m->values.at[m->values.n - 1 - pick(m, m->values.n < 8 ? m->values.n : 8)]
                     : NULL;
    int pack = x && chance(m, 30) ? 0 : -1;
    return !x || x->type == KN_BOOL ? NULL : operand(m, x, pack, pack ? 0 : pick(m, x->rank + 1));
}

static void make_statements(maker *m)
{
    const o_tensor *base = chance(m, 45) ? given(m) : NULL;
    switch (base ? 12 : pick(m, 12)) {
    case 0:
    case 1: window(m); break;
    case 2:
    case 3: recurrence(m); break;
    case 4: together(m); break;
    case 5: scatter(m); break;
    case 6: interleave(m); break;
    case 7: reindex(m); break;
    default: general(m, base); break;
    }
    for (int more = pick(m, 3); more > 0 && !m->failed; more--) {
        const o_tensor *t = m->p->stmt[m->p->nstmts - 1].target->tensor;
        if (chance(m, 15)) {
            revise(m, t);
        } else {
            general(m, t);
        }
    }
}

static bool all_constant(const o_program *p)
{
    bool all = true;
    for (int i = 0; i < p->noperands && all; i++) {
        for (int d = 0; d < p->operand[i]->array->rank; d++) {
            all = all && p->operand[i]->array->dim[d]->constant;
        }
    }
    return all;
}

static bool evaluates(maker *m)
{
    for (int b = 0; b < O_RUNS && !m->failed; b++) {
        o_run r = {.a = m->a, .p = m->p, .b = b};
        o_evaluate(&r);
        m->failed = r.fault || r.inexact;
    }
    return !m->failed;
}

/* What later programs may read: small whole numbers, so that their sums stay exact. */
static bool is_tame(const o_array *x)
{
    bool tame = x->type != KN_BOOL;
    for (int b = 0; b < O_RUNS; b++) {
        for (int64_t i = 0; i < x->count[b] && tame && o_float(x->type); i++) {
            double f = x->data[b][i].f;
            tame = fabs(f) <= 64 && f == floor(f);
        }
    }
    return tame;
}

static void write_node(maker *m)
{
    const o_program *p = m->p;
    for (int i = 0; i < p->nresults; i++) {
        kn_putf(&m->nodes, "%s%%%s", i ? ", " : "  ", p->result[i]->array->name);
    }
    kn_put(&m->nodes, " = notation \"");
    o_print_program(&m->nodes, p);
    kn_put(&m->nodes, "\"(");
    for (int i = 0; i < p->noperands; i++) {
        const o_tensor *t = p->operand[i];
        kn_putf(&m->nodes, "%s%%%s", i ? ", " : "", t->initial ? t->initial->name : t->array->name);
    }
    kn_putf(&m->nodes, ")%s\n", p->attributes);
}

static void mark_used(maker *m, const o_array *x)
{
    for (int i = 0; i < m->results.n; i++) {
        m->results.at[i].used = m->results.at[i].used || m->results.at[i].array == x;
    }
}

static void accept(maker *m)
{
    o_program *p = m->p;
    bool constant = all_constant(p);
    for (int i = 0; i < p->noperands; i++) {
        mark_used(m, p->operand[i]->initial ? p->operand[i]->initial : p->operand[i]->array);
    }
    for (int i = 0; i < p->nresults; i++) {
        o_array *x = p->result[i]->array;
        x->name = kn_format(m->a, "v%d", m->names++);
        for (int d = 0; d < x->rank && constant; d++) {
            x->dim[d] = constant_dim(m, x->dim[d]->value[0]);
        }
        kn_push(m->a, &m->results, ((m_result){x, false}));
        if (is_tame(x)) {
            kn_push(m->a, &m->values, x);
        }
    }
    write_node(m);
}

/* The same elements under another shape: a node that is no kernel. */
static void make_view(maker *m)
{
    const o_array *from = m->values.n ? m->values.at[pick(m, m->values.n)] : NULL;
    const o_dim *dims[O_RANK + 1];
    if (!from || from->limit) {
        return;
    }
    bool flat = chance(m, 50), constant = true;
    for (int d = 0; d < from->rank; d++) {
        constant = constant && from->dim[d]->constant;
        dims[d] = from->dim[d];
    }
    flat = flat && constant;
    dims[0] = flat ? constant_dim(m, from->count[0]) : dims[0];
    o_array *x = new_array(m, from->type, flat ? 1 : from->rank, dims);
    memcpy(x->data, from->data, sizeof x->data);
    memcpy(x->count, from->count, sizeof x->count);
    x->name = kn_format(m->a, "v%d", m->names++);
    mark_used(m, from);
    if (flat) {
        kn_putf(&m->nodes, "  %%%s = reshape(%%%s) {shape = [%s]}\n", x->name, from->name,
                dims[0]->text);
    } else {
        kn_putf(&m->nodes, "  %%%s = identity(%%%s)\n", x->name, from->name);
    }
    kn_push(m->a, &m->results, ((m_result){x, false}));
    kn_push(m->a, &m->values, x);
}

/* Tries programs until one can be evaluated exactly, and adds it as a node. */
static void make_node(maker *m)
{
    for (int tries = 0; tries < 200; tries++) {
        int inputs = m->inputs.n, values = m->values.n, names = m->names;
        m->p = KN_NEW(m->a, o_program);
        m->p->params = m->p->attributes = "";
        m->failed = false;
        m->temps = 0;
        make_statements(m);
        choose_results(m);
        if (!m->failed && evaluates(m)) {
            accept(m);
            return;
        }
        m->rejected++;
        m->inputs.n = inputs;
        m->values.n = values;
        m->names = names;
    }
}

/* ---- the graph ---- */

static bool binds(const o_array *x, const o_dim *d)
{
    bool found = false;
    for (int i = 0; i < x->rank; i++) {
        found = found || x->dim[i] == d;
    }
    return found;
}

/* Every symbol must be the whole of some input's dimension. */
static void bind_symbols(maker *m)
{
    for (int i = 0; i < m->ndims; i++) {
        bool bound = !is_symbol(m->dims[i]);
        for (int k = 0; k < m->inputs.n && !bound; k++) {
            bound = binds(m->inputs.at[k], m->dims[i]);
        }
        if (!bound) {
            const o_dim *dims[1] = {m->dims[i]};
            new_input(m, KN_U8, 1, dims, NULL);
        }
    }
}

/* Outputs that update an input in its memory, the more so where a node does just that. */
static void choose_aliases(maker *m)
{
    for (int i = 0; i < m->inputs.n; i++) {
        const o_array *in = m->inputs.at[i];
        for (int k = 0; k < m->results.n && !in->constant; k++) {
            o_array *out = m->results.at[k].array;
            bool fits = !out->alias && out->type == in->type && same_dims(out, in->rank, in->dim);
            if (fits && chance(m, out->updates == in ? 70 : 15)) {
                out->alias = i + 1;
                break;
            }
        }
    }
}

static void choose_outputs(maker *m)
{
    int n = 0;
    for (int i = 0; i < m->results.n; i++) {
        if (!m->results.at[i].used || chance(m, 40)) {
            m->results.at[n++] = m->results.at[i];
        }
    }
    m->results.n = n;
    choose_aliases(m);
}

static void write_type(kn_str *out, const o_array *x)
{
    kn_putf(out, "%%%s: %s[", x->name, kn_dtype_name(x->type));
    for (int d = 0; d < x->rank; d++) {
        kn_putf(out, "%s%s", d ? ", " : "", x->dim[d]->text);
    }
    kn_put(out, "]");
}

/* Writes the constants; m->inputs keeps the others. */
static void write_constants(maker *m, kn_str *out)
{
    int kept = 0;
    for (int i = 0; i < m->inputs.n; i++) {
        o_array *x = m->inputs.at[i];
        if (!x->constant) {
            m->inputs.at[kept++] = x;
            continue;
        }
        kn_put(out, "  const ");
        write_type(out, x);
        kn_put(out, " = [");
        for (int64_t k = 0; k < x->count[0]; k++) {
            o_number v = x->data[0][k];
            kn_put(out, k ? ", " : "");
            if (o_float(x->type)) {
                kn_putf(out, "%.1f", v.f);
            } else {
                kn_putf(out, "%lld", (long long)v.i);
            }
        }
        kn_put(out, "]\n");
    }
    m->inputs.n = kept;
}

static void write_signature(maker *m, kn_str *out)
{
    const char *comma = "";
    kn_put(out, "graph @random(");
    for (int i = 0; i < m->inputs.n; i++) {
        if (!m->inputs.at[i]->constant) {
            kn_put(out, comma);
            write_type(out, m->inputs.at[i]);
            comma = ", ";
        }
    }
    comma = "";
    kn_put(out, ") -> (");
    for (int i = 0; i < m->results.n; i++) {
        const o_array *x = m->results.at[i].array;
        kn_putf(out, "%s%%%s", i ? ", " : "", x->name);
        if (x->alias) {
            kn_putf(out, " aliases %%%s", m->inputs.at[x->alias - 1]->name);
        }
    }
    kn_put(out, ")");
    for (int i = 0; i < m->ndims; i++) {
        if (is_symbol(m->dims[i])) {
            kn_putf(out, "%s%s in %lld:40", *comma ? comma : " where ", m->dims[i]->text,
                    (long long)m->dims[i]->lo);
            comma = ", ";
        }
    }
}

/* A graph of so many programs: its text. The inputs and the outputs are in m->inputs and
 * m->results. */
static const char *make_graph(maker *m, int nodes)
{
    m->nodes = kn_str_make(m->a);
    for (int i = 0; i < nodes; i++) {
        if (chance(m, 10)) {
            make_view(m);
        }
        make_node(m);
    }
    bind_symbols(m);
    kn_str constants = kn_str_make(m->a), out = kn_str_make(m->a);
    write_constants(m, &constants);
    choose_outputs(m);
    write_signature(m, &out);
    kn_putf(&out, " {\n%s%s}\n", kn_str_get(&constants), kn_str_get(&m->nodes));
    return kn_str_get(&out);
}

#endif
