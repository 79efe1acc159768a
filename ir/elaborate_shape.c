/* What the operands of a use make of a signature: sizes, packs, declared results; and the shapes of
   undeclared targets.

   Sizes that stand alone in a dimension are bound first, from all operands; then the other
   dimensions are checked or solved for their one unknown, in rounds. Dimensions that must agree and
   differ as expressions become requirements of the nest, unless their bounds show that they never
   can be equal. */
#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

/* ---- agreement ---- */

void kn_el_require(kn_elab *el, const kn_expr *cond, const char *what)
{
    cond = kn_index_simplify_at(el->a, cond, el->place);
    if (cond->kind == KN_E_CONST) {
        if (!cond->i) {
            kn_el_fail(el, "%s does not hold", what);
        }
        return;
    }
    for (int i = 0; i < el->requires_.n; i++) {
        if (kn_expr_equal(el->requires_.at[i], cond)) {
            return;
        }
    }
    kn_push(el->a, &el->requires_, cond);
}

static bool may_be_equal(const kn_elab *el, const kn_expr *x, const kn_expr *y)
{
    kn_range r = kn_index_range(kn_index_sub(el->a, x, y), el->syms.at, el->syms.n);
    return r.lo <= 0 && r.hi >= 0;
}

const kn_expr *kn_el_agree(kn_elab *el, const kn_expr *x, const kn_expr *y)
{
    int64_t v;
    if (kn_expr_equal(x, y)) {
        return x;
    }
    if (!may_be_equal(el, x, y)) {
        return NULL;
    }
    bool constant = kn_index_const(x, &v);
    const kn_expr *from = constant ? y : x, *to = constant ? x : y;
    kn_el_require(el, kn_op2(el->a, KN_OP_EQ, from, to), "two dimensions");
    return kn_index_const(to, &v) ? to : x;
}

/* ---- names ---- */

kn_el_name *kn_el_name_of(const kn_elab *el, const char *name)
{
    return kn_map_get(&el->names, name);
}

kn_el_name *kn_el_add_name(kn_elab *el, const char *name, kn_el_kind kind)
{
    kn_el_name *n = KN_NEW(el->a, kn_el_name);
    n->name = name;
    n->kind = kind;
    kn_map_set(&el->names, name, n);
    return n;
}

static kn_size bounds_of(const kn_elab *el, const char *symbol)
{
    for (int i = 0; i < el->nbounds; i++) {
        if (kn_same_name(el->bounds[i].name, symbol)) {
            return el->bounds[i];
        }
    }
    return (kn_size){symbol, 0, KN_SIZE_DEFAULT_MAX};
}

static void add_symbol(void *env, const kn_expr *e)
{
    kn_elab *el = env;
    if (e->kind == KN_E_VAR && e->type == KN_INDEX && !kn_map_has(&el->used, e->name)) {
        kn_take_name(el->a, &el->used, e->name);
        kn_push(el->a, &el->syms, bounds_of(el, e->name));
    }
}

void kn_el_add_symbols(kn_elab *el, const kn_expr *e)
{
    kn_expr_visit(e, add_symbol, el);
}

static void add_operand(kn_elab *el, const kn_sig_tensor *sig, const kn_operand *op)
{
    kn_el_tensor *t = KN_NEW(el->a, kn_el_tensor);
    t->t = (kn_tensor){.name = sig->name, .role = KN_ROLE_IN, .type = op->type, .rank = op->rank};
    t->t.shape = KN_ARRAY(el->a, const kn_expr *, op->rank);
    for (int d = 0; d < op->rank; d++) {
        t->t.shape[d] = kn_index_simplify(el->a, op->shape[d]);
        kn_el_add_symbols(el, t->t.shape[d]);
    }
    t->defined = true;
    kn_map_set(&el->tensors, sig->name, t);
}

void kn_el_add_operands(kn_elab *el, const kn_operand *operands, int noperands)
{
    const kn_notation *n = el->n;
    if (noperands != n->ninputs) {
        kn_el_fail(el, "%d operands, but %d are given", n->ninputs, noperands);
    }
    for (int i = 0; i < noperands; i++) {
        if (operands[i].rank > KN_MAX_RANK) {
            kn_el_fail(el, "`%s` has rank %d, at most %d are supported", n->inputs[i].name,
                       operands[i].rank, KN_MAX_RANK);
        }
        add_operand(el, &n->inputs[i], &operands[i]);
    }
}

/* ---- expressions over sizes ---- */

typedef struct {
    kn_elab *el;
    const char *unknown; /* a size without a value that was met */
    int nunknown;        /* distinct ones */
} dim_walk;

/* The stand-in of an unknown size: a name that no graph can have. */
static const kn_expr *stand_in(dim_walk *w, const char *name)
{
    if (!w->unknown || !kn_same_name(w->unknown, name)) {
        w->nunknown++;
        w->unknown = name;
    }
    return kn_var(w->el->a, KN_INDEX, kn_intern_f(w->el->ctx, "?%s", name));
}

static const kn_expr *dim_name(dim_walk *w, const kn_expr *e)
{
    const kn_el_name *n = kn_el_name_of(w->el, e->name);
    if (n && n->kind != KN_EL_SIZE && n->kind != KN_EL_CONST) {
        kn_el_fail(w->el, "attribute `%s` is not a size", e->name);
    }
    return n && n->value ? n->value : stand_in(w, e->name);
}

/* Arithmetic and choice on sizes, comparison and logic: what a dimension or a requirement is made
 * of. */
static const kn_expr *dim_op(dim_walk *w, const kn_expr *e)
{
    kn_scalar_class class = kn_scalar_get(e->op)->class;
    bool logic = class == KN_CLASS_LOGIC, compare = class == KN_CLASS_COMPARE;
    bool fits = class != KN_CLASS_FLOAT && class != KN_CLASS_BITS && e->op != KN_OP_POW;
    for (int i = 0; i < e->nargs; i++) {
        bool boolean = logic || (e->op == KN_OP_SELECT && i == 0);
        fits = fits && e->args[i]->type == (boolean ? KN_BOOL : KN_INDEX);
    }
    if (!fits) {
        kn_el_fail(w->el, "`%s` is not an expression of sizes", kn_el_text(w->el, e));
    }
    return kn_op(w->el->a, logic || compare ? KN_BOOL : KN_INDEX, e->op, e->args, e->nargs);
}

static const kn_expr *dim_node(void *env, const kn_expr *e)
{
    dim_walk *w = env;
    switch (e->kind) {
    case KN_E_VAR: return dim_name(w, e);
    case KN_E_OP: return dim_op(w, e);
    case KN_E_CONST:
        if (e->type == KN_BOOL || e->type == KN_INDEX) {
            return e;
        }
        if (e->type == KN_UNTYPED && !e->real) {
            return kn_index(w->el->a, e->i);
        }
        break;
    case KN_E_LOAD:
    case KN_E_CAST: break;
    }
    kn_el_fail(w->el, "`%s` is not an expression of sizes", kn_el_text(w->el, e));
}

/* A dimension or a requirement (`type`: index or bool) with what is known put in; canonical. */
static const kn_expr *dim_value(dim_walk *w, const kn_expr *e, kn_dtype type)
{
    const kn_expr *v = kn_expr_rewrite(w->el->a, e, dim_node, w);
    if (v->type != type) {
        kn_el_fail(w->el, "`%s` is not %s", kn_el_text(w->el, e),
                   type == KN_BOOL ? "a condition on sizes" : "an expression of sizes");
    }
    return kn_index_simplify_at(w->el->a, v, w->el->place);
}

/* ---- packs ---- */

const kn_el_pack *kn_el_pack_find(const kn_elab *el, const char *name)
{
    for (int i = 0; i < el->packs.n; i++) {
        if (kn_same_name(el->packs.at[i].name, name)) {
            return &el->packs.at[i];
        }
    }
    return NULL;
}

static void broadcast_dim(kn_elab *el, kn_el_pack *pack, const char **from, int at,
                          const kn_el_part *p, const kn_expr *dim)
{
    const kn_expr *old = pack->extents[at];
    if (old && kn_index_is(dim, 1)) {
        return;
    }
    const kn_expr *now = !old || kn_index_is(old, 1) ? dim : kn_el_agree(el, old, dim);
    if (!now) {
        kn_el_fail(
            el, "pack `%s` does not broadcast: dimension %d of it is %s in `%s` and %s in `%s`",
            pack->name, at + 1, kn_el_text(el, old), from[at], kn_el_text(el, dim), p->tensor);
    }
    pack->extents[at] = now;
    from[at] = p->tensor;
}

void kn_el_broadcast(kn_elab *el, kn_el_pack *pack, const kn_el_part *parts, int n)
{
    pack->width = 0;
    for (int i = 0; i < n; i++) {
        pack->width = parts[i].n > pack->width ? parts[i].n : pack->width;
    }
    const char **from = KN_ARRAY(el->a, const char *, pack->width);
    pack->extents = KN_ARRAY(el->a, const kn_expr *, pack->width);
    for (int i = 0; i < n; i++) {
        for (int d = 0; d < parts[i].n; d++) {
            int at = pack->width - parts[i].n + d;
            broadcast_dim(el, pack, from, at, &parts[i], parts[i].dims[d]);
        }
    }
}

/* ---- operands ---- */

/* A dimension that is no plain name: checked or solved once enough is known. */
typedef struct {
    const char *tensor;
    int position;
    const kn_expr *expr, *actual;
    bool done;
} pending_dim;

typedef struct {
    const char *pack;
    kn_el_part part;
} pack_part;

typedef struct {
    kn_elab *el;
    KN_VEC(pending_dim) pending;
    KN_VEC(pack_part) parts;
} binder;

static void bind_plain(binder *b, const char *tensor, const char *size, const kn_expr *actual)
{
    kn_elab *el = b->el;
    kn_el_name *n = kn_el_name_of(el, size);
    if (!n) {
        n = kn_el_add_name(el, size, KN_EL_SIZE);
    }
    if (!n->value) {
        n->value = actual;
        n->from = tensor;
        return;
    }
    const kn_expr *now =
        n->kind == KN_EL_SIZE || n->kind == KN_EL_CONST ? kn_el_agree(el, n->value, actual) : NULL;
    if (!now) {
        kn_el_fail(el, "size `%s` is %s in `%s` but %s in `%s`", size, kn_el_text(el, n->value),
                   n->from ? n->from : "the attribute", kn_el_text(el, actual), tensor);
    }
    n->value = now;
}

static int pack_position(const kn_sig_tensor *t)
{
    for (int d = 0; d < t->ndims; d++) {
        if (t->dims[d].pack) {
            return d;
        }
    }
    return -1;
}

static const char *signature_text(kn_elab *el, const kn_sig_tensor *t)
{
    kn_str s = kn_str_make(el->a);
    kn_putf(&s, "%s[", t->name);
    for (int d = 0; d < t->ndims; d++) {
        kn_put(&s, d ? ", " : "");
        kn_put(&s, t->dims[d].pack ? t->dims[d].name : kn_el_text(el, t->dims[d].expr));
    }
    kn_put(&s, "]");
    return kn_str_get(&s);
}

static void bind_dims(binder *b, const kn_sig_tensor *t, int rank, const kn_expr *const *shape)
{
    kn_elab *el = b->el;
    int pack = pack_position(t);
    int width = pack < 0 ? 0 : rank - (t->ndims - 1);
    if (pack < 0 ? rank != t->ndims : width < 0) {
        kn_el_fail(el, "`%s` has rank %d, which does not fit %s", t->name, rank,
                   signature_text(el, t));
    }
    int at = 0;
    for (int d = 0; d < t->ndims; d++) {
        if (d == pack) {
            pack_part p = {t->dims[d].name, {t->name, width ? shape + at : NULL, width}};
            kn_push(el->a, &b->parts, p);
            at += width;
            continue;
        }
        const kn_expr *actual = shape[at++];
        if (t->dims[d].name) {
            bind_plain(b, t->name, t->dims[d].name, actual);
        } else {
            pending_dim p = {t->name, at, t->dims[d].expr, actual, false};
            kn_push(el->a, &b->pending, p);
        }
    }
}

static void check_dim(kn_elab *el, const pending_dim *p, const kn_expr *value)
{
    if (kn_el_agree(el, value, p->actual)) {
        return;
    }
    if (p->expr->kind == KN_E_CONST) {
        kn_el_fail(el, "dimension %d of `%s` is %s, but must be %s", p->position, p->tensor,
                   kn_el_text(el, p->actual), kn_el_text(el, value));
    }
    kn_el_fail(el, "dimension %d of `%s` is %s, but %s is %s", p->position, p->tensor,
               kn_el_text(el, p->actual), kn_el_text(el, p->expr), kn_el_text(el, value));
}

enum { MAX_DIM_TERMS = 64 };

/* value = coefficient * unknown + rest. False when it has another form. */
static bool split_unknown(kn_elab *el, const kn_expr *value, const char *unknown,
                          const kn_expr **coef, const kn_expr **rest)
{
    int64_t c, k[MAX_DIM_TERMS];
    const kn_expr *term[MAX_DIM_TERMS];
    int n = kn_index_terms(el->a, value, &c, k, term, MAX_DIM_TERMS);
    *coef = NULL;
    *rest = kn_index(el->a, c);
    for (int i = 0; i < n; i++) {
        const kn_expr *factor = kn_index(el->a, k[i]);
        if (!kn_expr_uses(term[i], unknown)) {
            *rest = kn_index_add(el->a, *rest, kn_index_mul(el->a, factor, term[i]));
            continue;
        }
        const kn_expr *cofactor = kn_el_cofactor(el, term[i], unknown);
        if (*coef || !cofactor) {
            return false;
        }
        *coef = kn_index_mul(el->a, factor, cofactor);
    }
    return n >= 0 && *coef;
}

static void solve_dim(kn_elab *el, const pending_dim *p, const kn_expr *value, const char *size)
{
    const kn_expr *coef, *rest;
    int64_t k;
    const char *unknown = kn_intern_f(el->ctx, "?%s", size);
    if (!split_unknown(el, value, unknown, &coef, &rest) || kn_index_is(coef, 0)) {
        kn_el_fail(el, "cannot solve %s = %s (dimension %d of `%s`) for `%s`",
                   kn_el_text(el, p->expr), kn_el_text(el, p->actual), p->position, p->tensor,
                   size);
    }
    const kn_expr *left = kn_index_sub(el->a, p->actual, rest);
    const kn_expr *quotient = kn_index_div(el->a, left, coef);
    bool whole = kn_expr_equal(kn_index_mul(el->a, quotient, coef), left);
    kn_range r = kn_index_range(quotient, el->syms.at, el->syms.n);
    bool constant = kn_index_const(coef, &k);
    if (r.hi < 0 || (!whole && (!constant || quotient->kind == KN_E_CONST))) {
        kn_el_fail(el, "dimension %d of `%s` is %s, which %s is for no size `%s`", p->position,
                   p->tensor, kn_el_text(el, p->actual), kn_el_text(el, p->expr), size);
    }
    if (!whole) {
        const kn_expr *mod = kn_index_mod(el->a, left, coef);
        kn_el_require(el, kn_op2(el->a, KN_OP_EQ, mod, kn_index(el->a, 0)), size);
    }
    kn_el_name *n = kn_el_name_of(el, size);
    n = n ? n : kn_el_add_name(el, size, KN_EL_SIZE);
    n->value = quotient;
    n->from = p->tensor;
}

/* True when the dimension is dealt with. */
static bool settle_dim(kn_elab *el, const pending_dim *p)
{
    dim_walk w = {.el = el};
    const kn_expr *value = dim_value(&w, p->expr, KN_INDEX);
    if (w.nunknown == 0) {
        check_dim(el, p, value);
    } else if (w.nunknown == 1) {
        solve_dim(el, p, value, w.unknown);
    }
    return w.nunknown <= 1;
}

static void settle_dims(binder *b)
{
    const pending_dim *stuck = NULL;
    for (bool progress = true; progress;) {
        progress = false;
        stuck = NULL;
        for (int i = 0; i < b->pending.n; i++) {
            pending_dim *p = &b->pending.at[i];
            if (!p->done) {
                p->done = settle_dim(b->el, p);
                progress = progress || p->done;
                stuck = p->done ? stuck : p;
            }
        }
    }
    if (stuck) {
        kn_el_fail(b->el, "dimension %d of `%s`, %s, has more than one unknown size",
                   stuck->position, stuck->tensor, kn_el_text(b->el, stuck->expr));
    }
}

static void bind_packs(binder *b)
{
    kn_elab *el = b->el;
    kn_el_part *parts = KN_ARRAY(el->a, kn_el_part, b->parts.n + 1);
    for (int i = 0; i < b->parts.n; i++) {
        const char *name = b->parts.at[i].pack;
        if (kn_el_pack_find(el, name)) {
            continue;
        }
        int n = 0;
        for (int k = i; k < b->parts.n; k++) {
            if (kn_same_name(b->parts.at[k].pack, name)) {
                parts[n++] = b->parts.at[k].part;
            }
        }
        kn_el_pack pack = {.name = name, .first = -1};
        kn_el_broadcast(el, &pack, parts, n);
        kn_push(el->a, &el->packs, pack);
    }
}

static void check_operand_type(kn_elab *el, const kn_sig_tensor *sig)
{
    if (!sig->type) {
        return;
    }
    kn_dtype want = kn_el_type_named(el, sig->type), is = kn_el_find(el, sig->name)->t.type;
    if (want != is) {
        kn_el_fail(el, "`%s` is %s, but must be %s", sig->name, kn_dtype_name(is),
                   kn_dtype_name(want));
    }
}

void kn_el_bind_operands(kn_elab *el)
{
    binder b = {.el = el};
    for (int i = 0; i < el->n->ninputs; i++) {
        const kn_sig_tensor *sig = &el->n->inputs[i];
        const kn_tensor *t = &kn_el_find(el, sig->name)->t;
        check_operand_type(el, sig);
        bind_dims(&b, sig, t->rank, (const kn_expr *const *)t->shape);
    }
    settle_dims(&b);
    bind_packs(&b);
}

/* ---- results ---- */

/* A declared shape with packs expanded. */
static void declared_shape(kn_elab *el, const kn_sig_tensor *sig, kn_tensor *t)
{
    KN_VEC(const kn_expr *) shape = {0};
    for (int d = 0; d < sig->ndims; d++) {
        if (sig->dims[d].pack) {
            const kn_el_pack *p = kn_el_pack_find(el, sig->dims[d].name);
            for (int i = 0; i < p->width; i++) {
                kn_push(el->a, &shape, p->extents[i]);
            }
            continue;
        }
        dim_walk w = {.el = el};
        const kn_expr *v = dim_value(&w, sig->dims[d].expr, KN_INDEX);
        if (w.nunknown) {
            kn_el_fail(el, "size `%s` of result `%s` is not known from the operands", w.unknown,
                       sig->name);
        }
        if (kn_index_range(v, el->syms.at, el->syms.n).lo < 0) {
            const char *what = kn_intern_f(el->ctx, "%s >= 0 for dimension %d of `%s`",
                                           kn_el_text(el, v), d + 1, sig->name);
            kn_el_require(el, kn_op2(el->a, KN_OP_GE, v, kn_index(el->a, 0)), what);
        }
        kn_push(el->a, &shape, v);
    }
    t->shape = shape.at;
    t->rank = shape.n;
}

static void check_rank(kn_elab *el, const kn_tensor *t)
{
    if (t->rank > KN_MAX_RANK) {
        kn_el_fail(el, "`%s` has rank %d, at most %d are supported", t->name, t->rank, KN_MAX_RANK);
    }
}

/* A result that is an operand too keeps the operand's type and shape; what is declared must agree.
 */
static void update_operand(kn_elab *el, const kn_sig_tensor *sig, kn_tensor *t)
{
    t->role = KN_ROLE_INOUT;
    check_operand_type(el, sig);
    if (!sig->declared) {
        return;
    }
    kn_tensor declared = {.name = sig->name};
    declared_shape(el, sig, &declared);
    bool same = declared.rank == t->rank;
    for (int d = 0; same && d < t->rank; d++) {
        same = kn_el_agree(el, t->shape[d], declared.shape[d]) != NULL;
    }
    if (!same) {
        kn_el_fail(el, "`%s` does not have the shape that is declared for it as a result",
                   sig->name);
    }
}

void kn_el_bind_results(kn_elab *el)
{
    for (int i = 0; i < el->n->nresults; i++) {
        const kn_sig_tensor *sig = &el->n->results[i];
        kn_el_tensor *t = kn_el_find(el, sig->name);
        if (t) {
            update_operand(el, sig, &t->t);
            continue;
        }
        t = KN_NEW(el->a, kn_el_tensor);
        t->t = (kn_tensor){.name = sig->name, .role = KN_ROLE_OUT, .type = KN_UNTYPED, .rank = -1};
        t->t.type = sig->type ? kn_el_type_named(el, sig->type) : KN_UNTYPED;
        if (sig->declared) {
            declared_shape(el, sig, &t->t);
            check_rank(el, &t->t);
        }
        kn_map_set(&el->tensors, sig->name, t);
    }
}

void kn_el_bind_requires(kn_elab *el)
{
    for (int i = 0; i < el->n->nrequires; i++) {
        dim_walk w = {.el = el};
        const kn_expr *cond = dim_value(&w, el->n->requires_[i], KN_BOOL);
        const char *text = kn_intern_f(el->ctx, "require %s", kn_el_text(el, el->n->requires_[i]));
        if (w.nunknown) {
            kn_el_fail(el, "size `%s` is not known from the operands", w.unknown);
        }
        kn_el_require(el, cond, text);
    }
}

/* ---- targets ---- */

static const kn_expr *target_extent(kn_el_stmt *st, const kn_expr *sub)
{
    kn_elab *el = st->el;
    int at = sub->kind == KN_E_VAR ? kn_el_index_of(st, sub->name) : -1;
    if (at >= 0) {
        bool exact = true;
        const kn_expr *hi = kn_el_extreme(st, st->idx.at[at].it.hi, 1, &exact);
        if (hi) {
            return hi;
        }
    }
    if (at >= 0 || kn_el_varies(st, sub) || kn_expr_has_load(sub)) {
        kn_el_fail(el, "subscript %s of `%s` does not tell its size: declare the shape after ->",
                   kn_el_text(el, sub), st->target->t.name);
    }
    return kn_index_add(el->a, sub, kn_index(el->a, 1));
}

void kn_el_infer_shape(kn_el_stmt *st)
{
    kn_tensor *t = &st->target->t;
    t->shape = KN_ARRAY(st->el->a, const kn_expr *, st->nsubs);
    for (int d = 0; d < st->nsubs; d++) {
        t->shape[d] = target_extent(st, st->subs[d]);
    }
    t->rank = st->nsubs;
    check_rank(st->el, t);
}
