/* The checks of a parsed notation that need no operands: names and the order of definitions. */
#include "ir/expr_internal.h"
#include "ir/notation_internal.h"

typedef enum { IS_SIZE, IS_PACK, IS_CONST, IS_VALUE, IS_TYPE } scalar_kind;

typedef struct {
    const char *name;
    bool input, result, defined;
} tensor;

typedef struct {
    scalar_kind kind;
} scalar;

typedef struct {
    kn_arena *a;
    kn_ctx *ctx;
    const kn_notation *n;
    const kn_notation_stmt *s; /* under check, or NULL */
    kn_map tensors, scalars;
    kn_map left, right;  /* indices and packs of the statement: in its target; elsewhere */
    const char *unbound; /* where a size is used: the tensor whose dimension it is */
} checker;

static kn_loc place(const checker *c)
{
    return c->s ? c->s->loc : c->n->loc;
}

/* ---- names ---- */

static void add_scalar(checker *c, const char *name, scalar_kind kind)
{
    scalar *k = KN_NEW(c->a, scalar);
    k->kind = kind;
    kn_map_set(&c->scalars, name, k);
}

static tensor *add_tensor(checker *c, const char *name)
{
    tensor *t = KN_NEW(c->a, tensor);
    t->name = name;
    kn_map_set(&c->tensors, name, t);
    return t;
}

static void add_dim_names(void *env, const kn_expr *e)
{
    checker *c = env;
    if (e->kind == KN_E_VAR && !kn_map_has(&c->scalars, e->name)) {
        add_scalar(c, e->name, IS_SIZE);
    }
    if (e->kind == KN_E_LOAD || e->kind == KN_E_CAST) {
        kn_raise(c->ctx, KN_INVALID, place(c), "a dimension of `%s` is no expression of sizes",
                 c->unbound);
    }
}

static void check_dim_name(void *env, const kn_expr *e)
{
    checker *c = env;
    if (e->kind == KN_E_VAR && !kn_map_has(&c->scalars, e->name)) {
        kn_raise(c->ctx, KN_INVALID, place(c),
                 "size `%s` of result `%s` is not a size of any operand", e->name, c->unbound);
    }
}

static void check_type(const checker *c, const char *type)
{
    kn_dtype t;
    size_t n = strlen(type);
    const char *open = strchr(type, '(');
    const scalar *k = kn_map_get(&c->scalars, type);
    if (kn_dtype_parse(type, n, &t) || (k && k->kind == IS_TYPE)) {
        return;
    }
    const char *of = open ? kn_intern_n(c->ctx, open + 1, n - (size_t)(open - type) - 2) : NULL;
    const scalar *attr = of ? kn_map_get(&c->scalars, of) : NULL;
    bool known = of && (kn_map_has(&c->tensors, of) || (attr && attr->kind == IS_TYPE));
    if (!known) {
        kn_raise(c->ctx, KN_INVALID, place(c), "`%s` is not a type", type);
    }
}

static scalar_kind attr_kind(checker *c, const kn_sig_attr *attr)
{
    if (strcmp(attr->type, "const") == 0) {
        return IS_CONST;
    }
    if (strcmp(attr->type, "size") == 0) {
        return IS_SIZE;
    }
    if (strcmp(attr->type, "type") == 0) {
        return IS_TYPE;
    }
    check_type(c, attr->type);
    return IS_VALUE;
}

static void enter_inputs(checker *c)
{
    for (int i = 0; i < c->n->ninputs; i++) {
        tensor *t = add_tensor(c, c->n->inputs[i].name);
        t->input = t->defined = true;
    }
    for (int i = 0; i < c->n->nattrs; i++) {
        add_scalar(c, c->n->attrs[i].name, attr_kind(c, &c->n->attrs[i]));
    }
    for (int i = 0; i < c->n->ninputs; i++) {
        const kn_sig_tensor *t = &c->n->inputs[i];
        c->unbound = t->name;
        for (int d = 0; d < t->ndims; d++) {
            if (t->dims[d].pack) {
                add_scalar(c, t->dims[d].name, IS_PACK);
            } else {
                kn_expr_visit(t->dims[d].expr, add_dim_names, c);
            }
        }
        if (t->type) {
            check_type(c, t->type);
        }
    }
}

static void enter_result(checker *c, const kn_sig_tensor *r)
{
    tensor *t = kn_map_get(&c->tensors, r->name);
    t = t ? t : add_tensor(c, r->name);
    t->result = true;
    c->unbound = r->name;
    if (r->type) {
        check_type(c, r->type);
    }
    for (int d = 0; d < r->ndims; d++) {
        const kn_expr *dim =
            r->dims[d].pack ? kn_var(c->a, KN_UNTYPED, r->dims[d].name) : r->dims[d].expr;
        kn_expr_visit(dim, check_dim_name, c);
    }
    if (c->n->nstmts == 0 && !t->input && !(r->type && r->declared)) {
        kn_raise(c->ctx, KN_INVALID, place(c),
                 "no statement defines `%s`, which has no type and shape", r->name);
    }
}

/* ---- statements ---- */

typedef struct {
    checker *c;
    bool target;
    bool whole; /* requirements: no tensors, no indices */
} walker;

static void check_var(const walker *w, const char *name)
{
    checker *c = w->c;
    const scalar *k = kn_map_get(&c->scalars, name);
    if (k && k->kind == IS_TYPE) {
        kn_raise(c->ctx, KN_INVALID, place(c), "`%s` is a type, not a value", name);
    }
    if (k) {
        return;
    }
    if (w->whole || name[0] == '*') {
        kn_raise(c->ctx, KN_INVALID, place(c), "`%s` is not known here", name);
    }
    kn_map_set(w->target ? &c->left : &c->right, name, c);
}

/* In a group, whatever the group defines may be read; alone, a statement may read its own target.
 */
static bool defined_by(const kn_notation_stmt *by, const kn_notation_stmt *s, const char *name)
{
    bool together = by == s || (s->over >= 0 && by->over == s->over);
    return together && kn_same_name(by->target, name);
}

static bool readable(const checker *c, const char *name)
{
    const tensor *t = kn_map_get(&c->tensors, name);
    if (t && t->defined) {
        return true;
    }
    for (int i = 0; i < c->n->nstmts; i++) {
        if (defined_by(&c->n->stmts[i], c->s, name)) {
            return true;
        }
    }
    return false;
}

static void walk(const walker *w, const kn_expr *e);

static void walk_load(const walker *w, const kn_expr *e)
{
    const checker *c = w->c;
    if (w->whole || !readable(c, e->name)) {
        bool known = kn_map_has(&c->tensors, e->name);
        kn_raise(c->ctx, KN_INVALID, place(c),
                 known ? "`%s` is read before it is defined" : "there is no tensor `%s`", e->name);
    }
    int packs = 0;
    for (int i = 0; i < e->nargs; i++) {
        bool pack = i < kn_load_nsubs(e) && kn_is_pack(e->args[i]);
        packs += pack;
        if (!pack) {
            walk(w, e->args[i]);
        } else if (!kn_map_has(&c->scalars, e->args[i]->name)) {
            kn_raise(c->ctx, KN_INVALID, place(c), "no operand has the pack `%s`",
                     e->args[i]->name);
        } else {
            kn_map_set(w->target ? &w->c->left : &w->c->right, e->args[i]->name, w->c);
        }
    }
    if (packs > 1) {
        kn_raise(c->ctx, KN_INVALID, place(c), "two packs in the subscripts of `%s`", e->name);
    }
}

static void walk(const walker *w, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST: return;
    case KN_E_VAR:
        if (kn_is_pack(e)) {
            kn_raise(w->c->ctx, KN_INVALID, place(w->c),
                     "pack `%s` does not stand alone in a subscript", e->name);
        }
        check_var(w, e->name);
        return;
    case KN_E_LOAD: walk_load(w, e); return;
    case KN_E_CAST:
        if (e->name) {
            check_type(w->c, e->name);
        }
        break;
    case KN_E_OP: break;
    }
    for (int i = 0; i < e->nargs; i++) {
        walk(w, e->args[i]);
    }
}

static void check_target(checker *c)
{
    const kn_notation_stmt *s = c->s;
    tensor *t = kn_map_get(&c->tensors, s->target);
    if (t && t->input && !t->result) {
        kn_raise(c->ctx, KN_INVALID, s->loc, "`%s` is written but not listed after ->", s->target);
    }
    if (s->op != KN_SET && !s->init && !(t && t->defined)) {
        kn_raise(c->ctx, KN_INVALID, s->loc, "`%s` has no value yet: %s! starts from the identity",
                 s->target, kn_update_text(s->op));
    }
    walker w = {.c = c, .target = true};
    int packs = 0;
    for (int i = 0; i < s->nsubs; i++) {
        if (!kn_is_pack(s->subs[i])) {
            walk(&w, s->subs[i]);
            continue;
        }
        if (++packs > 1) {
            kn_raise(c->ctx, KN_INVALID, s->loc, "two packs in the subscripts of `%s`", s->target);
        }
        if (!kn_map_has(&c->scalars, s->subs[i]->name)) {
            kn_raise(c->ctx, KN_INVALID, s->loc, "no operand has the pack `%s`", s->subs[i]->name);
        }
        kn_map_set(&c->left, s->subs[i]->name, c);
    }
}

/* In a group, each statement defines one step: its index stands alone in the target. */
static void check_over(const checker *c)
{
    const kn_notation_stmt *s = c->s;
    if (s->over < 0) {
        return;
    }
    if (kn_map_has(&c->scalars, s->over_index)) {
        kn_raise(c->ctx, KN_INVALID, s->loc, "`%s` is a size or attribute, not an index",
                 s->over_index);
    }
    for (int i = 0; i < s->nsubs; i++) {
        if (s->subs[i]->kind == KN_E_VAR && kn_same_name(s->subs[i]->name, s->over_index)) {
            return;
        }
    }
    kn_raise(c->ctx, KN_INVALID, s->loc,
             "in `over %s`, a subscript of the target `%s` must be `%s` alone", s->over_index,
             s->target, s->over_index);
}

static void check_ranges(checker *c)
{
    const kn_notation_stmt *s = c->s;
    walker w = {.c = c};
    for (int i = 0; i < s->nranges; i++) {
        const char *name = s->ranges[i].name;
        if (kn_map_has(&c->scalars, name)) {
            kn_raise(c->ctx, KN_INVALID, s->loc, "`%s` is a size or attribute, not an index", name);
        }
        if (!kn_map_has(&c->left, name) && !kn_map_has(&c->right, name)) {
            kn_raise(c->ctx, KN_INVALID, s->loc, "`%s` is not an index of this statement", name);
        }
        walk(&w, s->ranges[i].lo);
        walk(&w, s->ranges[i].hi);
    }
}

static void check_reduction(const checker *c)
{
    for (int i = 0; i < c->right.n; i++) {
        const char *name = c->right.entries[i].key;
        if (c->s->op == KN_SET && !kn_map_has(&c->left, name)) {
            kn_raise(c->ctx, KN_INVALID, c->s->loc,
                     "index `%s` is only on the right of `=`: a reduction is written with +=! *=! "
                     "max=! or min=!",
                     name);
        }
    }
}

static void check_stmt(checker *c, const kn_notation_stmt *s)
{
    c->s = s;
    c->left = kn_map_make(c->a);
    c->right = kn_map_make(c->a);
    check_target(c);
    check_over(c);
    walker w = {.c = c};
    walk(&w, s->rhs);
    if (s->where) {
        walk(&w, s->where);
    }
    check_ranges(c);
    check_reduction(c);
    tensor *t = kn_map_get(&c->tensors, s->target);
    t = t ? t : add_tensor(c, s->target);
    t->defined = true;
    c->s = NULL;
}

void kn_notation_check(kn_arena *a, const kn_notation *n)
{
    checker c = {.a = a, .ctx = kn_arena_ctx(a), .n = n};
    c.tensors = kn_map_make(a);
    c.scalars = kn_map_make(a);
    enter_inputs(&c);
    for (int i = 0; i < n->nresults; i++) {
        enter_result(&c, &n->results[i]);
    }
    walker w = {.c = &c, .whole = true};
    for (int i = 0; i < n->nrequires; i++) {
        walk(&w, n->requires_[i]);
    }
    for (int i = 0; i < n->nstmts; i++) {
        check_stmt(&c, &n->stmts[i]);
    }
    for (int i = 0; i < n->nresults && n->nstmts; i++) {
        const tensor *t = kn_map_get(&c.tensors, n->results[i].name);
        if (!t->defined) {
            kn_raise(c.ctx, KN_INVALID, n->loc, "no statement defines the result `%s`",
                     n->results[i].name);
        }
    }
}
