/* Random statements of any kind, for test_random_notation.c: contractions, reductions, masks,
 * broadcasting. */
#ifndef KN_TESTS_NOTATION_STATEMENTS_H
#define KN_TESTS_NOTATION_STATEMENTS_H

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

#endif
