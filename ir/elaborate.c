/* From a notation and its operands to a nest.

   Statements go through in order, those of one `over` together, since each may read what a later
   one defines:

     resolve   names become sizes, literals or indices; packs expand; subscripts become canonical;
               accesses are noted
     ranges    elaborate_range.c
     shape     of a target that is not declared
     type      of a target that has none yet
     emit      right sides typed, guards made explicit, f16 and bf16 sums accumulated in an f32
               temporary

   A step that needs what another statement of the group has not yet told waits for the next
   round. */
#include <assert.h>
#include <stdio.h>

#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

/* ---- messages and small questions ---- */

/* Indices and sizes by the names that the notation has for them. */
static const kn_expr *as_written(void *env, const kn_expr *e)
{
    const kn_elab *el = env;
    if (e->kind != KN_E_VAR) {
        return e;
    }
    int at = el->at ? kn_el_index_of(el->at, e->name) : -1;
    const char *source = at >= 0 ? el->at->idx.at[at].source : NULL;
    const char *name = e->name[0] == '?' ? e->name + 1 : source ? source : e->name;
    return kn_same_name(name, e->name) ? e : kn_var(el->a, e->type, kn_intern(el->ctx, name));
}

const char *kn_el_text(kn_elab *el, const kn_expr *e)
{
    enum { LIMIT = 60 };
    kn_str s = kn_str_make(el->a);
    e = kn_expr_rewrite(el->a, e, as_written, el);
    kn_expr_print(&s, e, false);
    const char *text = kn_str_get(&s);
    return strlen(text) <= LIMIT ? text : kn_format(el->a, "%.*s...", LIMIT, text);
}

void kn_el_fail(kn_elab *el, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *name = el->n->name ? el->n->name : "", *colon = el->n->name ? ": " : "";
    if (!el->loc.file && !el->loc.where) {
        kn_raise(el->ctx, KN_INVALID, el->place, "%s%s%s", name, colon, text);
    }
    kn_error(el->ctx, KN_INVALID, el->loc, "%s%s%s", name, colon, text);
    kn_note(el->ctx, el->place, "in this notation");
    kn_raise_again(el->ctx, KN_INVALID);
}

void kn_el_go_to(const kn_el_stmt *st)
{
    st->el->place = st->s->loc;
    st->el->at = st;
}

kn_el_tensor *kn_el_find(const kn_elab *el, const char *name)
{
    return kn_map_get(&el->tensors, name);
}

int kn_el_index_of(const kn_el_stmt *st, const char *iterator)
{
    for (int i = 0; i < st->idx.n; i++) {
        if (kn_same_name(st->idx.at[i].it.name, iterator)) {
            return i;
        }
    }
    return -1;
}

bool kn_el_varies(const kn_el_stmt *st, const kn_expr *e)
{
    if (e->kind == KN_E_VAR) {
        return kn_el_index_of(st, e->name) >= 0;
    }
    for (int i = 0; i < e->nargs; i++) {
        if (kn_el_varies(st, e->args[i])) {
            return true;
        }
    }
    return false;
}

/* ---- groups ---- */

static kn_el_stmt *begin_stmt(kn_elab *el, const kn_notation_stmt *s)
{
    kn_el_stmt *st = KN_NEW(el->a, kn_el_stmt);
    st->el = el;
    st->s = s;
    st->target = kn_el_find(el, s->target);
    if (!st->target) {
        st->target = KN_NEW(el->a, kn_el_tensor);
        st->target->t =
            (kn_tensor){.name = s->target, .role = KN_ROLE_TEMP, .type = KN_UNTYPED, .rank = -1};
        kn_map_set(&el->tensors, s->target, st->target);
    }
    if (s->over >= 0) {
        kn_el_add_index(st, s->over_index, s->over_index, true);
    }
    return st;
}

typedef struct {
    kn_elab *el;
    kn_el_stmt **st;
    int n;
    kn_el_index *over; /* NULL: a statement of its own */
} group;

_Noreturn static void fail_type(kn_el_stmt *st, kn_dtype found)
{
    if (found == KN_INDEX) {
        kn_el_fail(st->el, "the right side of `%s` is an index: it needs a cast to a value type",
                   st->s->target);
    }
    kn_el_fail(st->el, "the type of `%s` is not known: declare it after ->, or cast the right side",
               st->s->target);
}

static bool settle_type(kn_el_stmt *st, bool last)
{
    kn_dtype t = kn_el_infer_type(st, st->rhs);
    bool found = t != KN_UNTYPED && t != KN_INDEX;
    if (!found && last) {
        fail_type(st, t);
    }
    st->target->t.type = found ? t : KN_UNTYPED;
    return found;
}

static bool is_done(const kn_el_stmt *st)
{
    return st->resolved && st->ranged && st->target->t.rank >= 0 &&
           st->target->t.type != KN_UNTYPED;
}

/* Takes the steps that can be taken; true when there was one. */
static bool advance(const group *g, kn_el_stmt *st, bool last)
{
    bool progress = false;
    kn_el_go_to(st);
    if (!st->resolved) {
        progress = kn_el_resolve(st);
        if (last && st->blocked) {
            kn_el_fail(g->el, "the type of `%s` is not known here", st->blocked);
        }
    }
    if (st->resolved && g->over && !st->told) {
        kn_el_over_range(st, g->over);
        st->told = progress = true;
    }
    if (st->resolved && st->target->t.type == KN_UNTYPED) {
        progress = settle_type(st, last) || progress;
    }
    return progress;
}

static bool advance_range(const group *g, kn_el_stmt *st, bool last)
{
    bool progress = false;
    kn_el_go_to(st);
    if (st->resolved && !st->ranged) {
        st->ranged = kn_el_infer_ranges(st, g->over, last);
        progress = st->ranged;
    }
    if (st->ranged && st->target->t.rank < 0) {
        kn_el_infer_shape(st);
        progress = true;
    }
    return progress;
}

static bool round_of(const group *g, bool last)
{
    bool progress = false;
    for (int i = 0; i < g->n; i++) {
        progress = advance(g, g->st[i], last) || progress;
    }
    for (int i = 0; i < g->n; i++) {
        progress = advance_range(g, g->st[i], last) || progress;
    }
    return progress;
}

static void settle_group(const group *g)
{
    for (int i = 0; i < g->n; i++) {
        kn_el_go_to(g->st[i]);
        kn_el_find_packs(g->st[i]);
    }
    while (round_of(g, false)) {
    }
    for (int i = 0; i < g->n; i++) {
        if (!is_done(g->st[i])) {
            round_of(g, true);
        }
    }
}

static void elaborate_group(kn_elab *el, const kn_notation_stmt *s, int n)
{
    kn_el_index over = {0};
    group g = {.el = el, .n = n, .over = s->over >= 0 ? &over : NULL};
    g.st = KN_ARRAY(el->a, kn_el_stmt *, n);
    int number = s->over >= 0 ? el->groups++ : -1;
    for (int i = 0; i < n; i++) {
        el->place = s[i].loc;
        g.st[i] = begin_stmt(el, &s[i]);
    }
    settle_group(&g);
    for (int i = 0; i < n; i++) {
        kn_el_check_order(g.st, n, i);
    }
    for (int i = 0; i < n; i++) {
        kn_el_go_to(g.st[i]);
        kn_el_emit(g.st[i], number);
    }
}

static void elaborate_stmts(kn_elab *el)
{
    const kn_notation *n = el->n;
    for (int i = 0; i < n->nstmts;) {
        int end = i + 1;
        while (n->stmts[i].over >= 0 && end < n->nstmts && n->stmts[end].over == n->stmts[i].over) {
            end++;
        }
        elaborate_group(el, &n->stmts[i], end - i);
        i = end;
    }
}

/* ---- the nest ---- */

typedef struct {
    kn_elab *el;
    kn_map seen;
} size_walk;

static void see_size(void *env, const kn_expr *e)
{
    size_walk *w = env;
    if (e->kind == KN_E_VAR) {
        kn_map_set(&w->seen, e->name, w);
    }
}

static void see_stmt(size_walk *w, const kn_stmt *s)
{
    kn_expr_visit(s->rhs, see_size, w);
    for (int i = 0; i < s->nsubs; i++) {
        kn_expr_visit(s->subs[i], see_size, w);
    }
    for (int i = 0; i < s->niters; i++) {
        kn_expr_visit(s->iters[i].lo, see_size, w);
        kn_expr_visit(s->iters[i].hi, see_size, w);
    }
    if (s->where) {
        kn_expr_visit(s->where, see_size, w);
    }
}

static void collect_sizes(kn_elab *el, kn_nest *nest)
{
    size_walk w = {el, kn_map_make(el->a)};
    for (int i = 0; i < nest->ntensors; i++) {
        for (int d = 0; d < nest->tensors[i].rank; d++) {
            kn_expr_visit(nest->tensors[i].shape[d], see_size, &w);
        }
    }
    for (int i = 0; i < nest->nrequires; i++) {
        kn_expr_visit(nest->requires_[i], see_size, &w);
    }
    for (int i = 0; i < nest->nstmts; i++) {
        see_stmt(&w, &nest->stmts[i]);
    }
    nest->sizes = KN_ARRAY(el->a, kn_size, el->syms.n + 1);
    for (int i = 0; i < el->syms.n; i++) {
        if (kn_map_has(&w.seen, el->syms.at[i].name)) {
            nest->sizes[nest->nsizes++] = el->syms.at[i];
        }
    }
}

/* The map of tensors is in order of insertion: operands, other results, temporaries. */
static kn_nest *make_nest(kn_elab *el)
{
    kn_nest *nest = KN_NEW(el->a, kn_nest);
    nest->name = el->n->name ? el->n->name : "notation";
    nest->nrequires = el->requires_.n;
    nest->requires_ = el->requires_.at;
    nest->nstmts = el->out.n;
    nest->stmts = el->out.at;
    nest->ntensors = el->tensors.n + el->temps.n;
    nest->tensors = KN_ARRAY(el->a, kn_tensor, nest->ntensors + 1);
    for (int i = 0; i < el->tensors.n; i++) {
        nest->tensors[i] = ((const kn_el_tensor *)el->tensors.entries[i].value)->t;
    }
    for (int i = 0; i < el->temps.n; i++) {
        nest->tensors[el->tensors.n + i] = el->temps.at[i];
    }
    collect_sizes(el, nest);
    return nest;
}

/* What is put in, and the nest that comes out. */
typedef struct {
    kn_elab el;
    const kn_operand *operands;
    int noperands;
    const kn_attr_value *attrs;
    int nattrs;
    kn_nest *nest;
} job;

static void elaborate(void *arg)
{
    job *j = arg;
    kn_elab *el = &j->el;
    kn_el_add_operands(el, j->operands, j->noperands);
    kn_el_bind_attrs(el, j->attrs, j->nattrs);
    kn_el_bind_operands(el);
    kn_el_bind_results(el);
    kn_el_bind_requires(el);
    for (int i = 0; i < el->tensors.n; i++) {
        kn_take_name(el->a, &el->used, el->tensors.entries[i].key);
    }
    elaborate_stmts(el);
    assert(el->out.n >= el->n->nstmts);
    j->nest = make_nest(el);
}

/* An error of a layer below, such as an overflow in index arithmetic, has no place of its own. */
_Noreturn static void place_failure(const kn_elab *el, kn_status status)
{
    int n = kn_diag_count(el->ctx);
    const kn_diag *d = n ? kn_diag_get(el->ctx, n - 1) : NULL;
    if (d && !d->file && !d->where) {
        bool used = el->loc.file || el->loc.where;
        const char *name = el->n->name ? el->n->name : "notation";
        kn_note(el->ctx, used ? el->loc : el->place, "%s: while this was elaborated", name);
    }
    kn_raise_again(el->ctx, status);
}

kn_nest *kn_elaborate(kn_arena *a, const kn_notation *n, const kn_operand *operands, int noperands,
                      const kn_attr_value *attrs, int nattrs, const kn_size *sizes, int nsizes,
                      kn_loc loc)
{
    job j = {.operands = operands, .noperands = noperands, .attrs = attrs, .nattrs = nattrs};
    j.el = (kn_elab){.a = a, .ctx = kn_arena_ctx(a), .n = n, .loc = loc, .place = n->loc};
    j.el.bounds = sizes;
    j.el.nbounds = nsizes;
    j.el.names = kn_map_make(a);
    j.el.tensors = kn_map_make(a);
    j.el.used = kn_map_make(a);
    kn_status status = kn_protect(j.el.ctx, elaborate, &j);
    if (status != KN_OK) {
        place_failure(&j.el, status);
    }
    return j.nest;
}
