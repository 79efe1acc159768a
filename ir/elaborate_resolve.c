/* What the names of a statement stand for. Sizes and attributes give way to their values, the rest
   are indices; packs expand into as many indices as the widest operand in the statement has there,
   broadcasting as NumPy does: an operand with fewer dimensions lacks the leading ones, and reads
   subscript 0 where it has size 1 and the statement more.

   Subscripts end typed and canonical, and each access is noted with the guards around it; values
   stay untyped. A condition that constants decide (an attribute that chooses between two forms)
   leaves no trace of the other side. */
#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

/* ---- packs of a statement ---- */

typedef struct {
    const char *pack;
    kn_el_part part;
} named_part;

typedef struct {
    kn_el_stmt *st;
    KN_VEC(named_part) parts;
    KN_VEC(const char *) names; /* packs, each once */
} pack_scan;

static void note_pack(pack_scan *scan, const char *pack)
{
    for (int i = 0; i < scan->names.n; i++) {
        if (kn_same_name(scan->names.at[i], pack)) {
            return;
        }
    }
    kn_push(scan->st->el->a, &scan->names, pack);
}

/* The pack among the subscripts of one tensor, if any, stands for all dimensions that the others
 * leave. */
static void scan_subs(pack_scan *scan, const char *name, const kn_expr *const *subs, int nsubs)
{
    kn_elab *el = scan->st->el;
    const kn_el_tensor *t = kn_el_find(el, name);
    for (int d = 0; d < nsubs; d++) {
        if (!kn_is_pack(subs[d])) {
            continue;
        }
        note_pack(scan, subs[d]->name);
        if (t->t.rank < 0) {
            return;
        }
        int width = t->t.rank - (nsubs - 1);
        if (width < 0) {
            kn_el_fail(el, "`%s` has rank %d, but %d subscripts beside the pack", name, t->t.rank,
                       nsubs - 1);
        }
        const kn_expr *const *dims = width ? (const kn_expr *const *)t->t.shape + d : NULL;
        named_part p = {subs[d]->name, {name, dims, width}};
        kn_push(el->a, &scan->parts, p);
    }
}

static void scan_load(void *env, const kn_expr *e)
{
    if (e->kind == KN_E_LOAD) {
        scan_subs(env, e->name, e->args, kn_load_nsubs(e));
    }
}

static void make_pack(pack_scan *scan, const char *name)
{
    kn_elab *el = scan->st->el;
    kn_el_pack pack = {.name = name, .first = -1};
    kn_el_part *parts = KN_ARRAY(el->a, kn_el_part, scan->parts.n + 1);
    int n = 0;
    for (int i = 0; i < scan->parts.n; i++) {
        if (kn_same_name(scan->parts.at[i].pack, name)) {
            parts[n++] = scan->parts.at[i].part;
        }
    }
    if (n) {
        kn_el_broadcast(el, &pack, parts, n);
    } else {
        const kn_el_pack *of = kn_el_pack_find(el, name);
        pack.width = of->width;
        pack.extents = of->extents;
    }
    kn_push(el->a, &scan->st->packs, pack);
}

static const kn_el_pack *pack_of(const kn_el_stmt *st, const char *name)
{
    const kn_el_pack *p = st->packs.at;
    while (!kn_same_name(p->name, name)) {
        p++;
    }
    return p;
}

/* Operands broadcast to the target, never the target to them. */
static void check_target_pack(kn_el_stmt *st)
{
    kn_elab *el = st->el;
    const kn_tensor *t = &st->target->t;
    for (int d = 0; d < st->s->nsubs && t->rank >= 0; d++) {
        if (!kn_is_pack(st->s->subs[d])) {
            continue;
        }
        const kn_el_pack *p = pack_of(st, st->s->subs[d]->name);
        int width = t->rank - (st->s->nsubs - 1);
        for (int i = 0; i < p->width; i++) {
            int at = i - (p->width - width);
            const kn_expr *dim = at < 0 ? kn_index(el->a, 1) : t->shape[d + at];
            if (at < 0 || !kn_el_agree(el, dim, p->extents[i])) {
                kn_el_fail(el, "dimension %d of pack `%s` is %s, but the target `%s` has %s there",
                           i + 1, p->name, kn_el_text(el, p->extents[i]), t->name,
                           at < 0 ? "none" : kn_el_text(el, dim));
            }
        }
    }
}

void kn_el_find_packs(kn_el_stmt *st)
{
    pack_scan scan = {.st = st};
    const kn_notation_stmt *s = st->s;
    scan_subs(&scan, s->target, (const kn_expr *const *)s->subs, s->nsubs);
    for (int i = 0; i < s->nsubs; i++) {
        kn_expr_visit(s->subs[i], scan_load, &scan);
    }
    kn_expr_visit(s->rhs, scan_load, &scan);
    if (s->where) {
        kn_expr_visit(s->where, scan_load, &scan);
    }
    for (int i = 0; i < scan.names.n; i++) {
        make_pack(&scan, scan.names.at[i]);
    }
    check_target_pack(st);
}

/* ---- names ---- */

typedef struct {
    kn_el_stmt *st;
    bool left, in_where;
    const kn_el_guard *guard;
} resolver;

static const kn_expr *resolve(const resolver *r, const kn_expr *e);

kn_el_index *kn_el_add_index(kn_el_stmt *st, const char *stem, const char *source, bool left)
{
    kn_elab *el = st->el;
    kn_el_index x = {.source = source, .left = left};
    if (st->idx.n == KN_EL_MAX_INDICES) {
        kn_el_fail(el, "a statement with more than %d indices", KN_EL_MAX_INDICES);
    }
    x.it.name = kn_unique_name(el->a, &el->used, stem);
    x.it.reduction = !left;
    x.var = kn_var(el->a, KN_INDEX, x.it.name);
    kn_push(el->a, &st->idx, x);
    return &st->idx.at[st->idx.n - 1];
}

static const kn_expr *resolve_index(const resolver *r, const char *name)
{
    kn_el_stmt *st = r->st;
    for (int i = 0; i < st->idx.n; i++) {
        if (kn_same_name(st->idx.at[i].source, name)) {
            return st->idx.at[i].var;
        }
    }
    return kn_el_add_index(st, name, name, r->left)->var;
}

static const kn_expr *resolve_name(const resolver *r, const kn_expr *e)
{
    kn_elab *el = r->st->el;
    const kn_el_name *n = kn_map_get(&el->names, e->name);
    if (!n) {
        return resolve_index(r, e->name);
    }
    if (!n->value) {
        kn_el_fail(el, "size `%s` is not known", e->name);
    }
    return n->kind == KN_EL_CONST ? kn_int(el->a, KN_UNTYPED, n->value->i) : n->value;
}

static int first_of_pack(const resolver *r, const char *name)
{
    kn_el_stmt *st = r->st;
    kn_el_pack *p = (kn_el_pack *)(uintptr_t)pack_of(st, name);
    if (p->first >= 0) {
        return p->first;
    }
    p->first = st->idx.n;
    for (int i = 0; i < p->width; i++) {
        const char *stem = kn_intern_f(st->el->ctx, "%s%d", name + 1, i);
        kn_el_index *x = kn_el_add_index(st, stem, NULL, r->left);
        x->it.lo = kn_index(st->el->a, 0);
        x->it.hi = p->extents[i];
        x->given = true;
    }
    return p->first;
}

typedef KN_VEC(const kn_expr *) expr_vec;

/* One subscript for each dimension that the pack has in this tensor, the last ones of the
 * statement's. */
static void expand_pack(const resolver *r, const kn_tensor *t, const char *name, int nothers,
                        int at, expr_vec *subs)
{
    kn_el_stmt *st = r->st;
    kn_arena *a = st->el->a;
    int first = first_of_pack(r, name);
    const kn_el_pack *p = pack_of(st, name);
    int width = t->rank < 0 ? p->width : t->rank - nothers;
    if (width > p->width) {
        kn_el_fail(st->el, "`%s` has %d dimensions in pack `%s`, more than the statement's %d",
                   t->name, width, name, p->width);
    }
    for (int i = 0; i < width; i++) {
        int k = p->width - width + i;
        bool spread =
            t->rank >= 0 && kn_index_is(t->shape[at + i], 1) && !kn_index_is(p->extents[k], 1);
        kn_push(a, subs, spread ? kn_index(a, 0) : st->idx.at[first + k].var);
    }
}

static void resolve_subs(const resolver *r, const char *tensor, const kn_expr *const *subs, int n,
                         expr_vec *out)
{
    kn_el_stmt *st = r->st;
    const kn_tensor *t = &kn_el_find(st->el, tensor)->t;
    for (int i = 0; i < n; i++) {
        if (kn_is_pack(subs[i])) {
            expand_pack(r, t, subs[i]->name, n - 1, i, out);
            continue;
        }
        const kn_expr *sub = kn_el_subscript(st, resolve(r, subs[i]));
        kn_el_check_affine(st, tensor, sub);
        kn_push(st->el->a, out, sub);
    }
}

static const kn_expr *resolve_load(const resolver *r, const kn_expr *e)
{
    kn_el_stmt *st = r->st;
    kn_arena *a = st->el->a;
    expr_vec subs = {0};
    resolve_subs(r, e->name, e->args, kn_load_nsubs(e), &subs);
    kn_el_access ac = {.tensor = e->name,
                       .subs = subs.at,
                       .nsubs = subs.n,
                       .guard = r->guard,
                       .in_where = r->in_where};
    if (!e->guarded) {
        kn_push(a, &st->accesses, ac);
        return kn_load(a, KN_UNTYPED, e->name, subs.at, subs.n);
    }
    kn_el_guard *own = KN_NEW(a, kn_el_guard);
    own->outer = r->guard;
    ac.guard = own;
    kn_push(a, &st->accesses, ac);
    const kn_expr *otherwise = resolve(r, e->args[e->nargs - 1]);
    return kn_load_else(a, e->name, subs.at, subs.n, otherwise);
}

/* 1, 0, or -1 when a resolved condition is not known from constants alone. */
static int decided(const resolver *r, const kn_expr *cond)
{
    if (kn_expr_has_load(cond) || kn_el_varies(r->st, cond)) {
        return -1;
    }
    const kn_expr *c = kn_el_value(r->st, cond, KN_BOOL, false, "a condition");
    return c->kind == KN_E_CONST ? c->i != 0 : -1;
}

/* select, && and ||: what the condition guards. A condition that is known leaves one side only. */
static const kn_expr *resolve_lazy(const resolver *r, const kn_expr *e)
{
    kn_arena *a = r->st->el->a;
    const kn_expr *x[3] = {resolve(r, e->args[0])};
    int known = decided(r, x[0]);
    if (e->op == KN_OP_SELECT && known >= 0) {
        return resolve(r, e->args[known ? 1 : 2]);
    }
    if (e->op != KN_OP_SELECT && known == (e->op == KN_OP_LOR)) {
        return kn_int(a, KN_BOOL, known);
    }
    kn_el_guard *guard = KN_NEW(a, kn_el_guard);
    guard->cond = x[0];
    guard->outer = r->guard;
    resolver inner = *r;
    inner.guard = guard;
    for (int i = 1; i < e->nargs; i++) {
        x[i] = resolve(known >= 0 ? r : &inner, e->args[i]);
    }
    return kn_expr_with(a, e, KN_UNTYPED, x);
}

static const kn_expr *resolve(const resolver *r, const kn_expr *e)
{
    const kn_expr *x[3] = {NULL};
    switch (e->kind) {
    case KN_E_CONST: return e;
    case KN_E_VAR: return resolve_name(r, e);
    case KN_E_LOAD: return resolve_load(r, e);
    case KN_E_CAST: break;
    case KN_E_OP:
        if (e->op == KN_OP_SELECT || e->op == KN_OP_LAND || e->op == KN_OP_LOR) {
            return resolve_lazy(r, e);
        }
        break;
    }
    for (int i = 0; i < e->nargs; i++) {
        x[i] = resolve(r, e->args[i]);
    }
    return kn_expr_with(r->st->el->a, e, e->type, x);
}

/* ---- a statement ---- */

static void resolve_ranges(const resolver *r)
{
    kn_el_stmt *st = r->st;
    for (int i = 0; i < st->s->nranges; i++) {
        const struct kn_where_range *w = &st->s->ranges[i];
        const kn_expr *var = resolve_index(r, w->name);
        const kn_expr *lo = kn_el_subscript(st, resolve(r, w->lo));
        const kn_expr *hi = kn_el_subscript(st, resolve(r, w->hi));
        int at = kn_el_index_of(st, var->name);
        for (int k = at; k < st->idx.n; k++) {
            bool later =
                kn_expr_uses(lo, st->idx.at[k].it.name) || kn_expr_uses(hi, st->idx.at[k].it.name);
            if (later) {
                kn_el_fail(st->el,
                           "the range of `%s` uses index `%s`, which does not come before it",
                           w->name, st->idx.at[k].source);
            }
        }
        if (kn_expr_has_load(lo) || kn_expr_has_load(hi)) {
            kn_el_fail(st->el,
                       "the range of `%s` reads a tensor: write it as a condition, where COND",
                       w->name);
        }
        kn_el_index *x = &st->idx.at[at];
        x->it.lo = lo;
        x->it.hi = hi;
        x->given = true;
    }
}

bool kn_el_resolve(kn_el_stmt *st)
{
    const kn_notation_stmt *s = st->s;
    expr_vec subs = {0};
    resolver left = {.st = st, .left = true}, right = {.st = st},
             where = {.st = st, .in_where = true};
    st->blocked = NULL;
    st->accesses.n = 0;
    resolve_subs(&left, s->target, (const kn_expr *const *)s->subs, s->nsubs, &subs);
    st->subs = subs.at;
    st->nsubs = subs.n;
    kn_el_access target = {.tensor = s->target, .subs = subs.at, .nsubs = subs.n, .target = true};
    kn_push(st->el->a, &st->accesses, target);
    st->rhs = resolve(&right, s->rhs);
    st->where = s->where ? resolve(&where, s->where) : NULL;
    resolve_ranges(&where);
    st->resolved = !st->blocked;
    return st->resolved;
}
