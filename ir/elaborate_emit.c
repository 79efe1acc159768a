/* Statements into the nest: right sides typed, guards explicit, sums of f16 and bf16 in an f32
   temporary.

   Such a sum, S[i] +=! X[i, j], becomes S_acc[i] +=! cast(f32, X[i, j]); S[i] = cast(f16,
   S_acc[i]): rounded once. Rounding is monotonic, so that max and min need no temporary: each value
   is rounded as it is met. */
#include <assert.h>

#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

/* ---- the order of reads and writes ---- */

/* Does the read take an index from elsewhere where the target has `sub`? Such a point may be a
 * later one. */
static bool strays(const kn_el_stmt *st, const kn_el_access *ac, const kn_expr *read,
                   const kn_expr *sub)
{
    for (int i = 0; i < st->idx.n; i++) {
        const kn_el_index *x = &st->idx.at[i];
        bool other = kn_expr_uses(read, x->it.name) && !kn_expr_uses(sub, x->it.name);
        bool bounded = x->given || (st->where && kn_expr_uses(st->where, x->it.name));
        for (const kn_el_guard *g = ac->guard; g; g = g->outer) {
            bounded = bounded || !g->cond || kn_expr_uses(g->cond, x->it.name);
        }
        if (other && !bounded) {
            return true;
        }
    }
    return false;
}

/* A statement reads points of its own result that come earlier in the order of its subscripts. */
static void check_own_read(kn_el_stmt *st, const kn_el_access *ac)
{
    kn_elab *el = st->el;
    for (int d = 0; d < st->nsubs; d++) {
        int64_t by;
        const kn_expr *apart = kn_index_sub(el->a, ac->subs[d], st->subs[d]);
        bool constant = kn_index_const(apart, &by);
        if (constant && by == 0) {
            continue;
        }
        if (constant ? by > 0 : strays(st, ac, ac->subs[d], st->subs[d])) {
            kn_el_fail(
                el,
                "`%s` reads itself at %s in dimension %d, which is not an earlier point than %s",
                st->s->target, kn_el_text(el, ac->subs[d]), d + 1, kn_el_text(el, st->subs[d]));
        }
        return;
    }
    kn_el_fail(el, "`%s` reads the point that it defines", st->s->target);
}

static int over_position(const kn_el_stmt *st)
{
    int d = 0;
    while (st->subs[d]->kind != KN_E_VAR ||
           !kn_same_name(st->subs[d]->name, st->idx.at[0].it.name)) {
        d++;
    }
    return d;
}

/* In a group, a read of a group's result is of an earlier step, or of this one and an earlier
 * statement. */
static void check_group_read(const kn_el_stmt *by, const kn_el_stmt *st, bool earlier,
                             const kn_el_access *ac)
{
    kn_elab *el = st->el;
    int64_t ahead;
    const kn_expr *read = ac->subs[over_position(by)];
    const kn_expr *apart = kn_index_sub(el->a, read, st->idx.at[0].var);
    if (kn_index_const(apart, &ahead) && ahead >= earlier) {
        kn_el_fail(el, "`%s` is read at %s, which is not yet computed then", ac->tensor,
                   kn_el_text(el, read));
    }
}

void kn_el_check_order(kn_el_stmt *const *group, int n, int at)
{
    kn_el_stmt *st = group[at];
    kn_el_go_to(st);
    for (int i = 0; i < st->accesses.n; i++) {
        const kn_el_access *ac = &st->accesses.at[i];
        const kn_el_tensor *t = kn_el_find(st->el, ac->tensor);
        for (int k = 0; k < n && !ac->target && !t->defined; k++) {
            if (group[k]->target != t || ac->nsubs != t->t.rank) {
                continue;
            }
            if (st->s->over < 0) {
                check_own_read(st, ac);
            } else {
                check_group_read(group[k], st, k < at, ac);
            }
            break;
        }
    }
}

/* ---- building statements ---- */

static kn_stmt base_stmt(const kn_el_stmt *st, int over)
{
    kn_arena *a = st->el->a;
    const kn_notation_stmt *n = st->s;
    kn_stmt s = {.loc = n->loc,
                 .target = n->target,
                 .nsubs = st->nsubs,
                 .subs = st->subs,
                 .op = n->op,
                 .init = n->init,
                 .strict = n->strict,
                 .niters = st->idx.n,
                 .over = over};
    s.loc.where = st->el->loc.where;
    s.iters = KN_ARRAY(a, kn_iter, st->idx.n);
    for (int i = 0; i < st->idx.n; i++) {
        s.iters[i] = st->idx.at[i].it;
    }
    return s;
}

static const kn_expr *condition(kn_el_stmt *st)
{
    if (!st->where) {
        return NULL;
    }
    const kn_expr *c = kn_el_value(st, st->where, KN_BOOL, false, "the condition after `where`");
    c = kn_index_simplify_at(st->el->a, c, st->el->place);
    return c->kind == KN_E_CONST && c->i ? NULL : c;
}

static bool is_half(kn_dtype t)
{
    return t == KN_F16 || t == KN_BF16;
}

/* Do several instances meet in one element? Yes, unless each index stands alone in the target. */
static bool reduces(const kn_el_stmt *st)
{
    for (int i = 0; i < st->idx.n; i++) {
        bool alone = false;
        for (int d = 0; d < st->nsubs; d++) {
            const kn_expr *sub = st->subs[d];
            alone =
                alone || (sub->kind == KN_E_VAR && kn_same_name(sub->name, st->idx.at[i].it.name));
        }
        if (!alone) {
            return true;
        }
    }
    return false;
}

static const char *right_side(const kn_el_stmt *st)
{
    return kn_intern_f(st->el->ctx, "the right side of `%s`", st->s->target);
}

/* ---- sums of half precision ---- */

/* The index t for which the statement reads its own result at t - 1: it must become a group, since
   its temporary and its result have to take turns. -1: it does not read itself. */
static int recurrent_index(kn_el_stmt *st)
{
    int found = -1;
    for (int i = 0; i < st->accesses.n; i++) {
        const kn_el_access *ac = &st->accesses.at[i];
        if (ac->target || !kn_same_name(ac->tensor, st->s->target)) {
            continue;
        }
        int t = -1;
        for (int d = 0; d < st->nsubs && t < 0; d++) {
            int64_t by;
            const kn_expr *sub = st->subs[d];
            bool behind = kn_index_const(kn_index_sub(st->el->a, ac->subs[d], sub), &by) && by < 0;
            t = behind && sub->kind == KN_E_VAR ? kn_el_index_of(st, sub->name) : -1;
        }
        bool free = t >= 0 && !kn_el_varies(st, st->idx.at[t].it.lo) &&
                    !kn_el_varies(st, st->idx.at[t].it.hi);
        if (!free || (found >= 0 && t != found)) {
            kn_el_fail(st->el, "`%s`, a sum in half precision, reads itself: write it with `over`",
                       st->s->target);
        }
        found = t;
    }
    return found;
}

static void bring_to_front(kn_stmt *s, int at)
{
    kn_iter t = s->iters[at];
    memmove(&s->iters[1], &s->iters[0], (size_t)at * sizeof *s->iters);
    s->iters[0] = t;
}

static kn_tensor accumulator(kn_el_stmt *st)
{
    kn_elab *el = st->el;
    kn_tensor acc = st->target->t;
    acc.name = kn_unique_name(el->a, &el->used, kn_intern_f(el->ctx, "%s_acc", acc.name));
    acc.role = KN_ROLE_TEMP;
    acc.type = KN_F32;
    kn_push(el->a, &el->temps, acc);
    return acc;
}

/* to[box] = cast(type, from[box]) over the box of the sum's target. */
static void emit_copy(kn_el_stmt *st, const kn_stmt *sum, const char *to, const char *from,
                      kn_dtype type)
{
    kn_elab *el = st->el;
    kn_stmt copy = kn_stmt_box(el->a, &st->target->t, sum, &el->used);
    kn_dtype of = type == KN_F32 ? st->target->t.type : KN_F32;
    const kn_expr *load = kn_load(el->a, of, from, (const kn_expr *const *)copy.subs, copy.nsubs);
    copy.target = to;
    copy.rhs = kn_cast(el->a, KN_CAST_CAST, type, load);
    kn_push(el->a, &el->out, copy);
}

static void emit_half_sum(kn_el_stmt *st, kn_stmt s)
{
    kn_elab *el = st->el;
    int t = s.over < 0 ? recurrent_index(st) : -1;
    if (t >= 0) {
        s.over = el->groups++;
        bring_to_front(&s, t);
    }
    kn_tensor acc = accumulator(st);
    const char *target = s.target;
    if (!s.init) {
        emit_copy(st, &s, acc.name, target, KN_F32);
    }
    s.target = acc.name;
    s.rhs = kn_el_value(st, st->rhs, KN_F32, true, right_side(st));
    kn_push(el->a, &el->out, s);
    emit_copy(st, &s, target, acc.name, st->target->t.type);
}

/* The right side of a max or min in half precision: computed in f32, then rounded. */
static const kn_expr *rounded(kn_el_stmt *st, kn_dtype type)
{
    const kn_expr *e = kn_el_value(st, st->rhs, KN_F32, true, right_side(st));
    bool load = e->kind == KN_E_CAST && e->mode == KN_CAST_CAST && e->args[0]->type == type;
    return load ? e->args[0] : kn_cast(st->el->a, KN_CAST_CAST, type, e);
}

/* ---- a statement ---- */

static void check_update(kn_el_stmt *st, kn_dtype type)
{
    if (st->s->op != KN_SET && type == KN_BOOL) {
        kn_el_fail(st->el, "%s on bool: cast to an integer first", kn_update_text(st->s->op));
    }
}

void kn_el_emit(kn_el_stmt *st, int over)
{
    kn_elab *el = st->el;
    kn_dtype type = st->target->t.type;
    assert(type != KN_UNTYPED && st->target->t.rank == st->nsubs);
    check_update(st, type);
    kn_el_check_bounds(st);
    kn_stmt s = base_stmt(st, over);
    s.where = condition(st);
    s.rhs = kn_el_value(st, st->rhs, type, false, right_side(st));
    bool half = is_half(type) && s.op != KN_SET && reduces(st);
    if (half && (s.op == KN_ADD || s.op == KN_MUL)) {
        emit_half_sum(st, s);
    } else {
        s.rhs = half ? rounded(st, type) : s.rhs;
        kn_push(el->a, &el->out, s);
    }
    st->target->defined = true;
}
