/* Edits of a kernel's schedule: what `split`, `tile`, `order` and `fuse` do to the nest and to the
   tree of loops (`stage` has a file of its own). Splitting makes the two loops iterators of the
   statements themselves, i = 64 i_o + i_i, so that everything after it sees tiles without a
   division. isl judges each edit. */
#include "passes/schedule/edit_internal.h"

/* ---- loops by name ---- */

int kn_edit_level(const kn_editor *ed, int stmt, const char *iter)
{
    const kn_stmt_schedule *s = &ed->schedule->stmts[stmt];
    for (int i = 0; i < s->nloops; i++) {
        if (s->rows[i]->kind == KN_E_VAR && s->rows[i]->name == iter) {
            return i;
        }
    }
    return -1;
}

int kn_edit_loop_named(const kn_editor *ed, const char *name)
{
    for (int i = 0; i < ed->nest->nstmts; i++) {
        int level = kn_edit_level(ed, i, name);
        if (level >= 0) {
            return ed->schedule->stmts[i].loops[level];
        }
    }
    kn_raise(ed->ctx, KN_INVALID, ed->edit->loc, "%s has no loop `%s`", ed->nest->name, name);
}

int kn_edit_level_of_loop(const kn_stmt_schedule *s, int loop)
{
    for (int i = 0; i < s->nloops; i++) {
        if (s->loops[i] == loop) {
            return i;
        }
    }
    return -1;
}

/* ---- split ---- */

int kn_edit_iterator(const kn_stmt *s, const char *name)
{
    int at = 0;
    while (s->iters[at].name != name) {
        at++;
    }
    return at;
}

/* The iterators with number `at` replaced by the two of the split. */
static void split_iterator(const kn_editor *ed, kn_stmt *s, int at, const char *outer,
                           const char *inner, int64_t size)
{
    kn_arena *a = ed->arena;
    const kn_iter it = s->iters[at];
    const kn_expr *extent = kn_index_sub(a, it.hi, it.lo);
    const kn_expr *o = kn_var(a, KN_INDEX, outer), *i = kn_var(a, KN_INDEX, inner);
    const kn_expr *from_lo = kn_index_add(a, kn_index_mul(a, o, kn_index(a, size)), i);
    kn_binding b = {it.name, kn_index_add(a, it.lo, from_lo)};
    kn_iter *iters = KN_ARRAY(a, kn_iter, s->niters + 2);
    for (int k = 0; k < s->niters; k++) {
        iters[k < at ? k : k + 1] = s->iters[k];
        if (k > at) {
            iters[k + 1].lo = kn_expr_subst(a, s->iters[k].lo, &b, 1);
            iters[k + 1].hi = kn_expr_subst(a, s->iters[k].hi, &b, 1);
        }
    }
    iters[at] = (kn_iter){outer, kn_index(a, 0), kn_index_ceildiv(a, extent, size), it.reduction};
    iters[at + 1] = (kn_iter){inner, kn_index(a, 0), kn_index(a, size), it.reduction};
    const kn_expr **subs = KN_ARRAY(a, const kn_expr *, s->nsubs + 1);
    for (int k = 0; k < s->nsubs; k++) {
        subs[k] = kn_expr_subst(a, s->subs[k], &b, 1);
    }
    const kn_expr *where = s->where ? kn_expr_subst(a, s->where, &b, 1) : NULL;
    int64_t count;
    if (!kn_index_const(extent, &count) || count % size != 0) {
        const kn_expr *inside = kn_op2(a, KN_OP_LT, from_lo, extent);
        where = where ? kn_op2(a, KN_OP_LAND, inside, where) : inside;
    }
    s->rhs = kn_expr_subst(a, s->rhs, &b, 1);
    s->iters = iters;
    s->niters++;
    s->subs = subs;
    s->where = where;
}

static void split_loop(const kn_editor *ed, kn_stmt_schedule *s, int level, int numbers,
                       const char *outer, const char *inner)
{
    kn_arena *a = ed->arena;
    kn_stmt_schedule out = {s->nloops + 1, KN_ARRAY(a, int, s->nloops + 1),
                            KN_ARRAY(a, const kn_expr *, s->nloops + 1)};
    for (int k = 0; k < s->nloops; k++) {
        out.loops[k < level ? k : k + 1] = s->loops[k];
        out.rows[k < level ? k : k + 1] = s->rows[k];
    }
    for (int k = 0; k < 2; k++) {
        out.loops[level + k] = numbers + k;
        out.rows[level + k] = kn_var(a, KN_INDEX, k ? inner : outer);
    }
    *s = out;
}

/* `wanted` belongs to the statement whose iterator the text names; others get it with a number. */
static const char *name_for(const kn_editor *ed, kn_map *used, const char *wanted, bool own)
{
    if (own && (kn_map_has(used, wanted) || !kn_loop_name_ok(wanted))) {
        kn_raise(ed->ctx, KN_INVALID, ed->edit->loc,
                 "%s cannot have another `%s`: name the two loops with ->", ed->nest->name, wanted);
    }
    return kn_unique_name(ed->arena, used, wanted);
}

static void split(const kn_editor *ed, const kn_edit_loop *l)
{
    int loop = kn_edit_loop_named(ed, l->loop);
    kn_map used = kn_nest_names(ed->arena, ed->nest);
    for (int pass = 0; pass < 2; pass++) { /* first the statement that the name belongs to */
        for (int i = 0; i < ed->nest->nstmts; i++) {
            kn_stmt *s = &ed->nest->stmts[i];
            int level = kn_edit_level_of_loop(&ed->schedule->stmts[i], loop);
            const kn_expr *row = level < 0 ? NULL : ed->schedule->stmts[i].rows[level];
            if (!row || (row->name == l->loop) != (pass == 0)) {
                continue;
            }
            int at = kn_edit_iterator(s, row->name);
            if (s->over >= 0 && at == 0) {
                kn_raise(ed->ctx, KN_INVALID, ed->edit->loc,
                         "%s: `%s` is the loop of an `over` group, which cannot be split",
                         ed->nest->name, l->loop);
            }
            const char *outer = name_for(ed, &used, l->outer, pass == 0);
            const char *inner = name_for(ed, &used, l->inner, pass == 0);
            split_iterator(ed, s, at, outer, inner, l->size);
            split_loop(ed, &ed->schedule->stmts[i], level, ed->schedule->nloops, outer, inner);
        }
    }
    ed->schedule->nloops += 2;
}

/* ---- order ---- */

/* Each statement has those of the loops that it is in, in the new order, at the levels where it had
   them. */
static void order(const kn_editor *ed, const char *const *names, int n)
{
    int *loops = KN_ARRAY(ed->arena, int, n);
    for (int i = 0; i < n; i++) {
        loops[i] = kn_edit_loop_named(ed, names[i]);
        for (int j = 0; j < i; j++) {
            if (loops[j] == loops[i]) {
                kn_raise(ed->ctx, KN_INVALID, ed->edit->loc, "%s: `%s` and `%s` are one loop",
                         ed->nest->name, names[j], names[i]);
            }
        }
    }
    for (int i = 0; i < ed->nest->nstmts; i++) {
        kn_stmt_schedule *s = &ed->schedule->stmts[i], old = *s;
        s->loops = KN_ARRAY(ed->arena, int, s->nloops + 1);
        s->rows = KN_ARRAY(ed->arena, const kn_expr *, s->nloops + 1);
        for (int k = 0, next = 0; k < old.nloops; k++) {
            bool named = false;
            for (int j = 0; j < n; j++) {
                named = named || old.loops[k] == loops[j];
            }
            while (named && kn_edit_level_of_loop(&old, loops[next]) < 0) {
                next++;
            }
            int from = named ? kn_edit_level_of_loop(&old, loops[next++]) : k;
            s->loops[k] = old.loops[from];
            s->rows[k] = old.rows[from];
        }
    }
}

static void order_as_written(const kn_editor *ed)
{
    const char **names = KN_ARRAY(ed->arena, const char *, ed->edit->nloops);
    for (int i = 0; i < ed->edit->nloops; i++) {
        names[i] = ed->edit->loops[i].loop;
    }
    order(ed, names, ed->edit->nloops);
}

static void tile(const kn_editor *ed)
{
    const kn_edit *e = ed->edit;
    const char **names = KN_ARRAY(ed->arena, const char *, 2 * e->nloops);
    for (int i = 0; i < e->nloops; i++) {
        split(ed, &e->loops[i]);
        names[i] = e->loops[i].outer;
        names[e->nloops + i] = e->loops[i].inner;
    }
    order(ed, names, 2 * e->nloops);
}

/* ---- fuse ---- */

/* Whether the loops of two statements agree above a level. */
static bool together(const kn_stmt_schedule *x, const kn_stmt_schedule *y, int level)
{
    bool same = level < x->nloops && level < y->nloops;
    for (int i = 0; i < level && same; i++) {
        same = x->loops[i] == y->loops[i];
    }
    return same;
}

/* Whether a statement in one loop stands next to one in the other, in the same loops around. */
static bool adjacent(const kn_editor *ed, int x, int y)
{
    const kn_schedule *s = ed->schedule;
    for (int i = 0; i + 1 < s->nplaced; i++) {
        const kn_stmt_schedule *first = &s->stmts[s->sequence[i]];
        const kn_stmt_schedule *second = &s->stmts[s->sequence[i + 1]];
        int level = kn_edit_level_of_loop(first, x) >= 0 ? kn_edit_level_of_loop(first, x)
                                                         : kn_edit_level_of_loop(first, y);
        int other = level < 0 ? -1 : first->loops[level] == x ? y : x;
        if (level >= 0 && kn_edit_level_of_loop(second, other) == level &&
            together(first, second, level)) {
            return true;
        }
    }
    return false;
}

static void fuse(const kn_editor *ed)
{
    const kn_edit *e = ed->edit;
    int kept = kn_edit_loop_named(ed, e->loops[0].loop),
        gone = kn_edit_loop_named(ed, e->loops[1].loop);
    if (kept == gone || !adjacent(ed, kept, gone)) {
        kn_raise(ed->ctx, KN_INVALID, e->loc, "%s: the loops `%s` and `%s` %s", ed->nest->name,
                 e->loops[0].loop, e->loops[1].loop,
                 kept == gone ? "are one already" : "do not stand side by side");
    }
    for (int i = 0; i < ed->nest->nstmts; i++) {
        kn_stmt_schedule *s = &ed->schedule->stmts[i];
        int level = kn_edit_level_of_loop(s, gone);
        if (level >= 0 && kn_edit_level_of_loop(s, kept) >= 0) {
            kn_raise(ed->ctx, KN_INVALID, e->loc, "%s: `%s` is in both `%s` and `%s`",
                     ed->nest->name, ed->nest->stmts[i].target, e->loops[0].loop, e->loops[1].loop);
        }
        if (level >= 0) {
            s->loops[level] = kept;
        }
    }
}

/* ---- all of them ---- */

static void apply(const kn_editor *ed)
{
    switch (ed->edit->kind) {
    case KN_EDIT_SPLIT: split(ed, &ed->edit->loops[0]); break;
    case KN_EDIT_TILE: tile(ed); break;
    case KN_EDIT_ORDER: order_as_written(ed); break;
    case KN_EDIT_FUSE: fuse(ed); break;
    case KN_EDIT_STAGE: kn_edit_stage(ed); break;
    }
}

void kn_schedule_edit(kn_arena *a, kn_nest *nest, kn_schedule *s, const kn_kernel_edits *edits,
                      const kn_target *target)
{
    kn_editor ed = {
        .arena = a, .ctx = kn_arena_ctx(a), .nest = nest, .schedule = s, .target = target};
    for (int i = 0; i < edits->nedits; i++) {
        ed.edit = &edits->edits[i];
        apply(&ed);
        kn_poly *p = kn_poly_create(a, nest);
        kn_poly_require_legal(p, s, ed.edit->loc);
        kn_poly_destroy(p);
    }
}
