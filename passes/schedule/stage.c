/* `stage A -> SPACE at LOOP`: what the statements in a loop read of a tensor is copied before them,
   once an iteration of the loop, and read there. The copy is a statement of its own and the buffer
   has a dimension for each loop around it, so that the nest still means the same in the order of its
   text; where the copy stands in time is the schedule's affair, and contraction folds the buffer to
   what one iteration needs. */
#include "ir/target.h"
#include "passes/schedule/edit_internal.h"

enum { MAX_TERMS = 32 };

/* What is read of one dimension in an iteration of the loop: elements offset .. offset + extent. */
typedef struct {
    const kn_expr *offset; /* over the iterators of the loops around; NULL: nothing seen yet */
    int64_t lo, hi;        /* what is added to it inside the loop */
} kn_window;

typedef struct {
    const kn_editor *ed;
    const kn_tensor *tensor;
    int loop;
    const kn_stmt *stmt; /* at hand */
    int level;           /* of the loop in it */
    kn_window windows[KN_MAX_RANK];
    int reader, last; /* the first statement that reads the tensor there, or -1; the last one */
    const char *name, *problem;
} kn_stage;

/* ---- windows ---- */

/* The number of the loop, at `level` or outside of it, that an iterator of the statement runs in;
   -1 for those inside. */
static int outer_level(const kn_stage *st, const char *iter)
{
    int level = kn_edit_level(st->ed, (int)(st->stmt - st->ed->nest->stmts), iter);
    return level >= 0 && level <= st->level ? level : -1;
}

static bool uses_inner(const kn_stage *st, const kn_expr *e)
{
    bool found = false;
    for (int i = 0; i < st->stmt->niters && !found; i++) {
        const char *iter = st->stmt->iters[i].name;
        found = outer_level(st, iter) < 0 && kn_expr_uses(e, iter);
    }
    return found;
}

static kn_range inner_range(const kn_stage *st, const kn_expr *e)
{
    kn_size *ranges = KN_ARRAY(st->ed->arena, kn_size, st->stmt->niters + 1);
    for (int i = 0; i < st->stmt->niters; i++) {
        const kn_iter *it = &st->stmt->iters[i];
        kn_range lo = kn_index_range(it->lo, ranges, i), hi = kn_index_range(it->hi, ranges, i);
        ranges[i] = (kn_size){it->name, lo.lo, hi.hi < INT64_MAX ? hi.hi - 1 : hi.hi};
    }
    return kn_index_range(e, ranges, st->stmt->niters);
}

/* Every statement has names of its own for the loops that they share: those of the first reader. */
static const kn_expr *as_reader(const kn_stage *st, const kn_expr *e)
{
    const kn_stmt_schedule *to = &st->ed->schedule->stmts[st->reader];
    int stmt = (int)(st->stmt - st->ed->nest->stmts);
    const kn_stmt_schedule *from = &st->ed->schedule->stmts[stmt];
    kn_binding *b = KN_ARRAY(st->ed->arena, kn_binding, st->level + 1);
    for (int i = 0; i <= st->level; i++) {
        b[i] = (kn_binding){from->rows[i]->name, to->rows[i]};
    }
    return kn_expr_subst(st->ed->arena, e, b, st->level + 1);
}

static void see_subscript(kn_stage *st, kn_window *w, const kn_expr *sub)
{
    kn_arena *a = st->ed->arena;
    int64_t constant, coef[MAX_TERMS];
    const kn_expr *term[MAX_TERMS], *outer = kn_index(a, 0), *inner = kn_index(a, 0);
    int n = kn_expr_has_load(sub) ? -1 : kn_index_terms(a, sub, &constant, coef, term, MAX_TERMS);
    if (n < 0) {
        st->problem = "a subscript depends on data, or is too long";
        return;
    }
    for (int i = 0; i < n; i++) {
        const kn_expr *part = kn_index_mul(a, kn_index(a, coef[i]), term[i]);
        const kn_expr **side = uses_inner(st, term[i]) ? &inner : &outer;
        *side = kn_index_add(a, *side, part);
    }
    kn_range r = inner_range(st, kn_index_add(a, inner, kn_index(a, constant)));
    outer = as_reader(st, outer);
    if (r.lo == INT64_MIN || r.hi == INT64_MAX || r.hi - r.lo > KN_MAX_BOUND) {
        st->problem = "what is read in one iteration has no constant bound";
    } else if (w->offset && !kn_expr_equal(w->offset, outer)) {
        st->problem = "its reads move differently with the loops around";
    } else {
        *w = (kn_window){outer, !w->offset || r.lo < w->lo ? r.lo : w->lo,
                         !w->offset || r.hi > w->hi ? r.hi : w->hi};
    }
}

static void see_read(void *env, const kn_expr *e)
{
    kn_stage *st = env;
    if (e->kind != KN_E_LOAD || e->name != st->tensor->name) {
        return;
    }
    int stmt = (int)(st->stmt - st->ed->nest->stmts);
    st->reader = st->reader < 0 ? stmt : st->reader;
    st->last = stmt;
    for (int d = 0; d < e->nargs && !st->problem; d++) {
        see_subscript(st, &st->windows[d], e->args[d]);
    }
}

/* Goes to the next statement in the loop. */
static bool enter(kn_stage *st, int stmt)
{
    st->stmt = &st->ed->nest->stmts[stmt];
    st->level = kn_edit_level_of_loop(&st->ed->schedule->stmts[stmt], st->loop);
    return st->level >= 0;
}

/* ---- the copy ---- */

static const kn_expr *offset_of(const kn_stage *st, int d)
{
    const kn_window *w = &st->windows[d];
    return kn_index_add(st->ed->arena, w->offset, kn_index(st->ed->arena, w->lo));
}

static kn_tensor buffer(const kn_stage *st, const char *space)
{
    kn_arena *a = st->ed->arena;
    const kn_stmt *s = &st->ed->nest->stmts[st->reader];
    int outer = st->level + 1, rank = outer + st->tensor->rank;
    kn_tensor t = {.name = st->name,
                   .role = KN_ROLE_TEMP,
                   .type = st->tensor->type,
                   .rank = rank,
                   .shape = KN_ARRAY(a, const kn_expr *, rank),
                   .space = space};
    for (int i = 0; i < outer; i++) {
        const char *iter = st->ed->schedule->stmts[st->reader].rows[i]->name;
        t.shape[i] = s->iters[kn_edit_iterator(s, iter)].hi;
    }
    for (int d = 0; d < st->tensor->rank; d++) {
        t.shape[outer + d] = kn_index(a, st->windows[d].hi - st->windows[d].lo + 1);
    }
    return t;
}

/* buffer[o..., c...] = tensor[offset + c], inside the tensor; o are fresh names of the outer
   iterators. */
static kn_stmt copy_statement(kn_stage *st, const kn_tensor *buffer, kn_map *used)
{
    kn_arena *a = st->ed->arena;
    const kn_stmt *s = &st->ed->nest->stmts[st->reader];
    int outer = st->level + 1;
    kn_stmt copy = {.loc = s->loc, .target = buffer->name, .op = KN_SET, .over = -1};
    kn_binding *b = KN_ARRAY(a, kn_binding, outer);
    copy.iters = KN_ARRAY(a, kn_iter, buffer->rank);
    copy.subs = KN_ARRAY(a, const kn_expr *, buffer->rank);
    copy.niters = copy.nsubs = buffer->rank;
    for (int i = 0; i < buffer->rank; i++) {
        const char *stem = i < outer ? st->ed->schedule->stmts[st->reader].rows[i]->name
                                     : kn_intern_f(st->ed->ctx, "c%d", i - outer);
        const char *name = kn_unique_name(a, used, stem);
        const kn_expr *var = kn_var(a, KN_INDEX, name);
        copy.iters[i] = (kn_iter){name, kn_index(a, 0), buffer->shape[i], false};
        copy.subs[i] = var;
        if (i < outer) {
            b[i] = (kn_binding){stem, var};
        }
    }
    const kn_expr **from = KN_ARRAY(a, const kn_expr *, st->tensor->rank + 1);
    for (int d = 0; d < st->tensor->rank; d++) {
        from[d] =
            kn_index_add(a, kn_expr_subst(a, offset_of(st, d), b, outer), copy.subs[outer + d]);
        const kn_expr *low = kn_op2(a, KN_OP_GE, from[d], kn_index(a, 0));
        const kn_expr *high = kn_op2(a, KN_OP_LT, from[d], st->tensor->shape[d]);
        const kn_expr *inside = kn_op2(a, KN_OP_LAND, low, high);
        copy.where = copy.where ? kn_op2(a, KN_OP_LAND, copy.where, inside) : inside;
    }
    copy.rhs = kn_load(a, st->tensor->type, st->tensor->name, from, st->tensor->rank);
    return copy;
}

/* ---- reading the buffer instead ---- */

static const kn_expr *redirect_load(void *env, const kn_expr *e)
{
    const kn_stage *st = env;
    if (e->kind != KN_E_LOAD || e->name != st->tensor->name) {
        return e;
    }
    kn_arena *a = st->ed->arena;
    int outer = st->level + 1, stmt = (int)(st->stmt - st->ed->nest->stmts);
    const kn_stmt_schedule *own = &st->ed->schedule->stmts[stmt];
    const kn_stmt_schedule *reader = &st->ed->schedule->stmts[st->reader];
    const kn_expr **subs = KN_ARRAY(a, const kn_expr *, outer + e->nargs);
    kn_binding *b = KN_ARRAY(a, kn_binding, outer);
    for (int i = 0; i < outer; i++) {
        subs[i] = own->rows[i];
        b[i] = (kn_binding){reader->rows[i]->name, own->rows[i]};
    }
    for (int d = 0; d < e->nargs; d++) {
        const kn_expr *offset = kn_expr_subst(a, offset_of(st, d), b, outer);
        subs[outer + d] = kn_index_sub(a, e->args[d], offset);
    }
    return kn_load(a, e->type, st->name, subs, outer + e->nargs);
}

static void redirect(kn_stage *st)
{
    for (int i = 0; i < st->ed->nest->nstmts; i++) {
        kn_stmt *s = &st->ed->nest->stmts[i];
        if (enter(st, i)) {
            s->rhs = kn_expr_rewrite(st->ed->arena, s->rhs, redirect_load, st);
            s->where =
                s->where ? kn_expr_rewrite(st->ed->arena, s->where, redirect_load, st) : NULL;
        }
    }
}

/* ---- putting it in ---- */

static void insert_statement(const kn_stage *st, const kn_stmt *copy)
{
    kn_arena *a = st->ed->arena;
    kn_nest *nest = st->ed->nest;
    kn_schedule *s = st->ed->schedule;
    int outer = st->level + 1, at = st->reader, n = nest->nstmts;
    kn_stmt *stmts = KN_ARRAY(a, kn_stmt, n + 1);
    kn_stmt_schedule *schedules = KN_ARRAY(a, kn_stmt_schedule, n + 2);
    int *sequence = KN_ARRAY(a, int, n + 2), place = s->nplaced;
    for (int i = 0; i < n; i++) {
        stmts[i < at ? i : i + 1] = nest->stmts[i];
        schedules[i < at ? i : i + 1] = s->stmts[i];
        sequence[i] = s->sequence[i] < at ? s->sequence[i] : s->sequence[i] + 1;
        bool in_loop = kn_edit_level_of_loop(&s->stmts[s->sequence[i]], st->loop) >= 0;
        place = in_loop && i < place ? i : place;
    }
    kn_stmt_schedule own = {copy->niters, KN_ARRAY(a, int, copy->niters),
                            KN_ARRAY(a, const kn_expr *, copy->niters)};
    for (int i = 0; i < copy->niters; i++) {
        own.loops[i] = i < outer ? s->stmts[at].loops[i] : s->nloops++;
        own.rows[i] = copy->subs[i];
    }
    stmts[at] = *copy;
    schedules[at] = own;
    nest->stmts = stmts;
    nest->nstmts++;
    s->stmts = schedules;
    s->sequence = sequence;
    s->nstmts++;
    kn_schedule_place(s, at, place);
}

static void add_tensor(const kn_editor *ed, kn_tensor t)
{
    kn_nest *nest = ed->nest;
    kn_tensor *tensors = KN_ARRAY(ed->arena, kn_tensor, nest->ntensors + 1);
    memcpy(tensors, nest->tensors, (size_t)nest->ntensors * sizeof *tensors);
    tensors[nest->ntensors++] = t;
    nest->tensors = tensors;
}

/* The copy stands before the first reader, in the order of the nest: what is written from there on
   until the last one is not in it. */
static bool is_written_between(const kn_stage *st)
{
    bool found = false;
    for (int i = st->reader; i <= st->last && !found; i++) {
        found = st->ed->nest->stmts[i].target == st->tensor->name;
    }
    return found;
}

static void require(const kn_stage *st)
{
    const char *problem = st->problem;
    const kn_stmt *s = st->reader < 0 ? NULL : &st->ed->nest->stmts[st->reader];
    if (!s) {
        problem = "no statement in the loop reads it";
    } else if (is_written_between(st)) {
        problem = "it is written where it is read";
    } else if (s->over >= 0) {
        problem = "it is read in an `over` group";
    } else if (!problem && st->tensor->rank + st->level + 1 > KN_MAX_RANK) {
        problem = "too many loops are around";
    }
    for (int i = 0; s && !problem && i <= st->level; i++) {
        const char *iter = st->ed->schedule->stmts[st->reader].rows[i]->name;
        const kn_iter *it = &s->iters[kn_edit_iterator(s, iter)];
        bool box = kn_index_is(it->lo, 0);
        for (int k = 0; k < s->niters; k++) {
            box = box && !kn_expr_uses(it->hi, s->iters[k].name);
        }
        problem = box ? NULL : "the loops around are not a box";
    }
    if (problem) {
        kn_raise(st->ed->ctx, KN_INVALID, st->ed->edit->loc,
                 "%s: `%s` cannot be staged at `%s`: %s", st->ed->nest->name, st->ed->edit->tensor,
                 st->ed->edit->loops[0].loop, problem);
    }
}

/* The core pipe makes the copy, so that it must reach the space. */
static void require_space(const kn_editor *ed, const char *space)
{
    bool host = strcmp(space, "local") == 0 || strcmp(space, "ddr") == 0;
    if (ed->target ? !kn_target_reaches(ed->target, space) : !host) {
        kn_raise(ed->ctx, KN_INVALID, ed->edit->loc, "%s has no space `%s` that plain loops reach",
                 ed->target ? ed->target->name : "the host", space);
    }
}

void kn_edit_stage(const kn_editor *ed)
{
    const kn_edit *e = ed->edit;
    require_space(ed, e->space);
    kn_stage st = {.ed = ed, .reader = -1, .loop = kn_edit_loop_named(ed, e->loops[0].loop)};
    int tensor = kn_nest_find(ed->nest, e->tensor);
    if (tensor < 0) {
        kn_raise(ed->ctx, KN_INVALID, e->loc, "%s has no tensor `%s`", ed->nest->name, e->tensor);
    }
    st.tensor = &ed->nest->tensors[tensor];
    for (int i = 0; i < ed->nest->nstmts; i++) {
        if (enter(&st, i)) {
            kn_expr_visit(st.stmt->rhs, see_read, &st);
            if (st.stmt->where) {
                kn_expr_visit(st.stmt->where, see_read, &st);
            }
        }
    }
    if (st.reader >= 0) {
        enter(&st, st.reader);
    }
    require(&st);
    kn_map used = kn_nest_names(ed->arena, ed->nest);
    st.name = kn_unique_name(ed->arena, &used, kn_intern_f(ed->ctx, "%s_%s", e->tensor, e->space));
    kn_tensor t = buffer(&st, e->space);
    kn_stmt copy = copy_statement(&st, &t, &used);
    redirect(&st);
    enter(&st, st.reader);
    insert_statement(&st, &copy);
    add_tensor(ed, t);
}
