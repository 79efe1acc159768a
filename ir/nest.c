/* Nests: looking up, splitting reductions into start and update, and the text under which equal
   kernels are shared. The text is complete (nothing that a nest means is left out but source
   locations) and the same from run to run. */

#include "ir/expr_internal.h"
#include "ir/loop.h"
#include "ir/nest_internal.h"

int kn_nest_find(const kn_nest *nest, const char *tensor)
{
    for (int i = 0; i < nest->ntensors; i++) {
        if (kn_same_name(nest->tensors[i].name, tensor)) {
            return i;
        }
    }
    return -1;
}

const kn_expr *kn_update_identity(kn_arena *a, kn_update op, kn_dtype type)
{
    switch (op) {
    case KN_SET:
    case KN_ADD: return kn_zero(a, type);
    case KN_MUL: return kn_one(a, type);
    case KN_MAX: return kn_lowest(a, type);
    case KN_MIN: return kn_highest(a, type);
    }
    return NULL;
}

const char *kn_update_text(kn_update op)
{
    static const char *const text[] = {"=", "+=", "*=", "max=", "min="};
    return text[op];
}

/* ---- the elements that a reduction starts ---- */

static bool is_iterator(const kn_stmt *s, const char *name)
{
    for (int i = 0; i < s->niters; i++) {
        if (kn_same_name(s->iters[i].name, name)) {
            return true;
        }
    }
    return false;
}

static bool varies(const kn_stmt *s, const kn_expr *e)
{
    for (int i = 0; i < s->niters; i++) {
        if (kn_expr_uses(e, s->iters[i].name)) {
            return true;
        }
    }
    return false;
}

static bool is_var(const kn_expr *e, const char *name)
{
    return e->kind == KN_E_VAR && kn_same_name(e->name, name);
}

void kn_take_name(kn_arena *a, kn_map *used, const char *name)
{
    if (!kn_map_has(used, name)) {
        int *next = KN_NEW(a, int);
        *next = 2;
        kn_map_set(used, name, next);
    }
}

/* The name without an ending _N, so that a copy of i_2 is i_3 and not i_2_2. */
static const char *stem_of(kn_ctx *ctx, const char *name)
{
    size_t n = strlen(name), end = n;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') {
        end--;
    }
    bool numbered = end < n && end > 1 && name[end - 1] == '_';
    return kn_intern_n(ctx, name, numbered ? end - 1 : n);
}

const char *kn_unique_name(kn_arena *a, kn_map *used, const char *wanted)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    const char *name = kn_intern(ctx, wanted);
    if (kn_map_has(used, name)) {
        const char *stem = stem_of(ctx, name);
        kn_take_name(a, used, stem);
        int *next = kn_map_get(used, stem);
        do {
            name = kn_intern_f(ctx, "%s_%d", stem, (*next)++);
        } while (kn_map_has(used, name));
    }
    kn_take_name(a, used, name);
    return name;
}

static kn_iter fresh_iter(kn_arena *a, kn_map *used, const kn_stmt *s, int dim,
                          const kn_expr *extent)
{
    const kn_expr *sub = s->subs[dim];
    bool plain = sub->kind == KN_E_VAR && is_iterator(s, sub->name);
    const char *stem = plain ? sub->name : kn_intern_f(kn_arena_ctx(a), "d%d", dim);
    return (kn_iter){.name = kn_unique_name(a, used, stem), .lo = kn_index(a, 0), .hi = extent};
}

kn_stmt kn_stmt_box(kn_arena *a, const kn_tensor *target, const kn_stmt *s, kn_map *used)
{
    kn_stmt box = {
        .loc = s->loc, .target = s->target, .nsubs = s->nsubs, .op = KN_SET, .over = s->over};
    box.subs = KN_ARRAY(a, const kn_expr *, s->nsubs);
    box.iters = KN_ARRAY(a, kn_iter, s->nsubs + 1);
    const char *t = NULL;
    if (s->over >= 0) {
        t = s->iters[0].name;
        box.iters[box.niters] = s->iters[0];
        box.iters[box.niters++].name = kn_unique_name(a, used, t);
    }
    for (int d = 0; d < s->nsubs; d++) {
        if (t && is_var(s->subs[d], t)) {
            box.subs[d] = kn_var(a, KN_INDEX, box.iters[0].name);
        } else if (!varies(s, s->subs[d])) {
            box.subs[d] = s->subs[d];
        } else {
            kn_iter it = fresh_iter(a, used, s, d, target->shape[d]);
            box.iters[box.niters++] = it;
            box.subs[d] = kn_var(a, KN_INDEX, it.name);
        }
    }
    return box;
}

/* ---- splitting ---- */

kn_map kn_nest_names(kn_arena *a, const kn_nest *nest)
{
    kn_map used = kn_map_make(a);
    for (int i = 0; i < nest->nsizes; i++) {
        kn_take_name(a, &used, nest->sizes[i].name);
    }
    for (int i = 0; i < nest->ntensors; i++) {
        kn_take_name(a, &used, nest->tensors[i].name);
    }
    for (int i = 0; i < nest->nstmts; i++) {
        for (int k = 0; k < nest->stmts[i].niters; k++) {
            kn_take_name(a, &used, nest->stmts[i].iters[k].name);
        }
    }
    return used;
}

/* ---- elements that nothing writes ---- */

/* Whether a subscript is an iterator of its own that runs over the whole dimension. */
static bool is_whole(const kn_stmt *s, int dim, const kn_expr *extent)
{
    bool whole = false;
    for (int i = 0; i < s->niters; i++) {
        const kn_iter *it = &s->iters[i];
        whole = whole || (is_var(s->subs[dim], it->name) && kn_index_is(it->lo, 0) &&
                          kn_expr_equal(it->hi, extent));
    }
    for (int d = 0; d < dim; d++)
        whole = whole && !kn_expr_equal(s->subs[d], s->subs[dim]);
    return whole;
}

static bool writes_all(const kn_stmt *s, const kn_tensor *t)
{
    bool all = s->op == KN_SET && !s->where;
    for (int d = 0; d < t->rank && all; d++)
        all = is_whole(s, d, t->shape[d]);
    return all || s->init;
}

static bool is_covered(const kn_nest *nest, const kn_tensor *t)
{
    bool covered = t->role == KN_ROLE_IN || t->role == KN_ROLE_INOUT;
    for (int i = 0; i < nest->nstmts && !covered; i++) {
        const kn_stmt *s = &nest->stmts[i];
        covered = kn_same_name(s->target, t->name) && writes_all(s, t);
    }
    return covered;
}

static kn_stmt zero_statement(kn_arena *a, const kn_nest *nest, const kn_tensor *t, kn_map *used)
{
    kn_stmt s = {.loc = nest->stmts[0].loc, .target = t->name, .op = KN_SET, .over = -1};
    s.rhs = kn_zero(a, t->type);
    s.niters = s.nsubs = t->rank;
    s.iters = KN_ARRAY(a, kn_iter, t->rank + 1);
    s.subs = KN_ARRAY(a, const kn_expr *, t->rank + 1);
    for (int d = 0; d < t->rank; d++) {
        const char *name = kn_unique_name(a, used, kn_intern_f(kn_arena_ctx(a), "z%d", d));
        s.iters[d] = (kn_iter){.name = name, .lo = kn_index(a, 0), .hi = t->shape[d]};
        s.subs[d] = kn_var(a, KN_INDEX, name);
    }
    return s;
}

kn_nest *kn_nest_complete(kn_arena *a, kn_nest *nest)
{
    kn_map used = kn_nest_names(a, nest);
    kn_stmt *stmts = KN_ARRAY(a, kn_stmt, nest->ntensors + nest->nstmts + 1);
    int n = 0;
    for (int i = 0; i < nest->ntensors && nest->nstmts; i++) {
        if (!is_covered(nest, &nest->tensors[i]))
            stmts[n++] = zero_statement(a, nest, &nest->tensors[i], &used);
    }
    for (int i = 0; i < nest->nstmts; i++)
        stmts[n++] = nest->stmts[i];
    nest->stmts = stmts;
    nest->nstmts = n;
    return nest;
}

kn_nest *kn_nest_split(kn_arena *a, const kn_nest *nest)
{
    kn_map used = kn_nest_names(a, nest);
    kn_nest *out = KN_NEW(a, kn_nest);
    *out = *nest;
    out->stmts = KN_ARRAY(a, kn_stmt, 2 * nest->nstmts + 1);
    out->nstmts = 0;
    for (int i = 0; i < nest->nstmts; i++) {
        kn_stmt s = nest->stmts[i];
        if (s.init) {
            const kn_tensor *t = &nest->tensors[kn_nest_find(nest, s.target)];
            kn_stmt start = kn_stmt_box(a, t, &s, &used);
            start.rhs = kn_update_identity(a, s.op, t->type);
            out->stmts[out->nstmts++] = start;
            s.init = false;
        }
        out->stmts[out->nstmts++] = s;
    }
    return out;
}

/* ---- text ---- */

static const char *role_text(kn_role role)
{
    static const char *const text[] = {"in", "out", "inout", "temp"};
    return text[role];
}

static void print_list(kn_str *out, const kn_expr *const *items, int n)
{
    kn_put_char(out, '[');
    for (int i = 0; i < n; i++) {
        kn_put(out, i ? ", " : "");
        kn_expr_print(out, items[i], true);
    }
    kn_put_char(out, ']');
}

static void print_iters(kn_str *out, const kn_stmt *s)
{
    for (int i = 0; i < s->niters; i++) {
        const kn_iter *it = &s->iters[i];
        kn_putf(out, "%s%s in ", i ? ", " : "  for ", it->name);
        kn_expr_print(out, it->lo, true);
        kn_put_char(out, ':');
        kn_expr_print(out, it->hi, true);
        kn_put(out, it->reduction ? " (reduction)" : "");
    }
}

static void print_stmt(kn_str *out, const kn_stmt *s)
{
    kn_put(out, "  ");
    if (s->over >= 0) {
        kn_putf(out, "over %d: ", s->over);
    }
    kn_putf(out, "%s%s", s->strict ? "strict " : "", s->target);
    print_list(out, (const kn_expr *const *)s->subs, s->nsubs);
    kn_putf(out, " %s%s ", kn_update_text(s->op), s->init ? "!" : "");
    kn_expr_print(out, s->rhs, true);
    print_iters(out, s);
    if (s->where) {
        kn_put(out, "  where ");
        kn_expr_print(out, s->where, true);
    }
    kn_put_char(out, '\n');
}

void kn_nest_print(kn_str *out, const kn_nest *nest)
{
    kn_putf(out, "nest %s", nest->name);
    for (int i = 0; i < nest->nsizes; i++) {
        const kn_size *z = &nest->sizes[i];
        kn_putf(out, "%s%s in %lld:%lld", i ? ", " : " sizes ", z->name, (long long)z->lo,
                (long long)z->hi);
    }
    kn_put_char(out, '\n');
    for (int i = 0; i < nest->ntensors; i++) {
        const kn_tensor *t = &nest->tensors[i];
        kn_putf(out, "  %s %s: %s", role_text(t->role), t->name, kn_dtype_name(t->type));
        print_list(out, (const kn_expr *const *)t->shape, t->rank);
        kn_putf(out, "%s%s\n", t->space ? " @" : "", t->space ? t->space : "");
    }
    for (int i = 0; i < nest->nrequires; i++) {
        kn_put(out, "  require ");
        kn_expr_print(out, nest->requires_[i], true);
        kn_put_char(out, '\n');
    }
    for (int i = 0; i < nest->nstmts; i++) {
        print_stmt(out, &nest->stmts[i]);
    }
    if (nest->opaque) {
        kn_func_print(out, nest->opaque);
    }
}
