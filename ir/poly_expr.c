/* Expressions to isl: affine functions and conditions on a statement's instances. What has no
   iterator in it but is not affine in the sizes (a product of sizes, a quotient by one) becomes a
   parameter of its own, bounded by interval arithmetic. */
#include "ir/poly_internal.h"

static int iterator_position(const kn_poly_scope *s, const char *name)
{
    for (int i = 0; s->stmt && i < s->stmt->niters; i++) {
        if (s->stmt->iters[i].name == name) {
            return i;
        }
    }
    return -1;
}

typedef struct {
    const kn_poly_scope *scope;
    bool found;
} kn_search;

static void search_varying(void *env, const kn_expr *e)
{
    kn_search *search = env;
    bool varies = e->kind == KN_E_LOAD || e->kind == KN_E_CAST ||
                  (e->kind == KN_E_VAR && iterator_position(search->scope, e->name) >= 0);
    search->found = search->found || varies;
}

static bool is_parametric(const kn_poly_scope *s, const kn_expr *e)
{
    kn_search search = {s, false};
    kn_expr_visit(e, search_varying, &search);
    return !search.found;
}

/* The parameter `name` as a function on a space, which is taken. */
static isl_pw_aff *parameter_on(isl_space *space, const char *name)
{
    isl_id *id = isl_id_alloc(isl_space_get_ctx(space), name, NULL);
    space = isl_space_add_param_id(space, isl_id_copy(id));
    return isl_pw_aff_from_aff(isl_aff_param_on_domain_space_id(space, id));
}

static isl_pw_aff *parameter(const kn_poly_scope *s, const char *name)
{
    return parameter_on(isl_space_copy(s->space), name);
}

/* Bounds lo <= parameter <= hi in the context, where they are finite. */
static void bound_parameter(kn_poly *p, const char *name, kn_range range)
{
    isl_pw_aff *param = parameter_on(isl_space_params_alloc(p->isl, 0), name);
    isl_space *domain = isl_pw_aff_get_domain_space(param);
    if (range.lo > INT64_MIN) {
        isl_val *v = isl_val_int_from_si(p->isl, range.lo);
        isl_pw_aff *lo = isl_pw_aff_val_on_domain(isl_set_universe(isl_space_copy(domain)), v);
        p->context = isl_set_intersect(p->context, isl_pw_aff_ge_set(isl_pw_aff_copy(param), lo));
    }
    if (range.hi < INT64_MAX) {
        isl_val *v = isl_val_int_from_si(p->isl, range.hi);
        isl_pw_aff *hi = isl_pw_aff_val_on_domain(isl_set_universe(isl_space_copy(domain)), v);
        p->context = isl_set_intersect(p->context, isl_pw_aff_le_set(isl_pw_aff_copy(param), hi));
    }
    isl_space_free(domain);
    isl_pw_aff_free(param);
}

static isl_pw_aff *opaque_parameter(const kn_poly_scope *s, const kn_expr *e)
{
    kn_poly *p = s->poly;
    for (int i = 0; i < p->params.n; i++) {
        if (kn_expr_equal(p->params.at[i].value, e)) {
            return parameter(s, p->params.at[i].name);
        }
    }
    const char *name = kn_intern_f(p->ctx, "_p%d", p->params.n);
    kn_push(p->arena, &p->params, ((kn_poly_param){name, e}));
    bound_parameter(p, name, kn_index_range(e, p->nest->sizes, p->nest->nsizes));
    return parameter(s, name);
}

static isl_pw_aff *constant(const kn_poly_scope *s, int64_t value)
{
    isl_set *domain = isl_set_universe(isl_space_copy(s->space));
    return isl_pw_aff_val_on_domain(domain, isl_val_int_from_si(s->poly->isl, value));
}

static isl_pw_aff *variable(const kn_poly_scope *s, const char *name)
{
    int at = iterator_position(s, name);
    if (at < 0) {
        return parameter(s, name);
    }
    isl_local_space *ls = isl_local_space_from_space(isl_space_copy(s->space));
    return isl_pw_aff_from_aff(isl_aff_var_on_domain(ls, isl_dim_set, (unsigned)at));
}

static isl_pw_aff *scaled(const kn_poly_scope *s, const kn_expr *e, int64_t by)
{
    isl_pw_aff *x = kn_poly_affine(s, e);
    return x ? isl_pw_aff_scale_val(x, isl_val_int_from_si(s->poly->isl, by)) : NULL;
}

static isl_pw_aff *divided(const kn_poly_scope *s, const kn_expr *e, int64_t by, bool remainder)
{
    isl_pw_aff *x = by > 0 ? kn_poly_affine(s, e) : NULL;
    if (!x) {
        return NULL;
    }
    isl_val *v = isl_val_int_from_si(s->poly->isl, by);
    return remainder ? isl_pw_aff_mod_val(x, v) : isl_pw_aff_floor(isl_pw_aff_scale_down_val(x, v));
}

static isl_pw_aff *combined(const kn_poly_scope *s, const kn_expr *e,
                            isl_pw_aff *(*fn)(isl_pw_aff *, isl_pw_aff *))
{
    isl_pw_aff *x = kn_poly_affine(s, e->args[0]);
    isl_pw_aff *y = x ? kn_poly_affine(s, e->args[1]) : NULL;
    if (!y) {
        isl_pw_aff_free(x);
        return NULL;
    }
    return fn(x, y);
}

static isl_pw_aff *selected(const kn_poly_scope *s, const kn_expr *e)
{
    bool exact = true;
    isl_set *when = kn_poly_condition(s, e->args[0], &exact);
    isl_pw_aff *x = exact ? kn_poly_affine(s, e->args[1]) : NULL;
    isl_pw_aff *y = x ? kn_poly_affine(s, e->args[2]) : NULL;
    if (!y) {
        isl_set_free(when);
        isl_pw_aff_free(x);
        return NULL;
    }
    x = isl_pw_aff_intersect_domain(x, isl_set_copy(when));
    y = isl_pw_aff_intersect_domain(y, isl_set_complement(when));
    return isl_pw_aff_union_add(x, y);
}

static isl_pw_aff *affine_op(const kn_poly_scope *s, const kn_expr *e)
{
    int64_t c;
    switch (e->op) {
    case KN_OP_ADD: return combined(s, e, isl_pw_aff_add);
    case KN_OP_SUB: return combined(s, e, isl_pw_aff_sub);
    case KN_OP_MIN: return combined(s, e, isl_pw_aff_min);
    case KN_OP_MAX: return combined(s, e, isl_pw_aff_max);
    case KN_OP_NEG: return scaled(s, e->args[0], -1);
    case KN_OP_MUL:
        if (kn_index_const(e->args[0], &c)) {
            return scaled(s, e->args[1], c);
        }
        return kn_index_const(e->args[1], &c) ? scaled(s, e->args[0], c) : NULL;
    case KN_OP_FLOORDIV:
        return kn_index_const(e->args[1], &c) ? divided(s, e->args[0], c, false) : NULL;
    case KN_OP_MOD: return kn_index_const(e->args[1], &c) ? divided(s, e->args[0], c, true) : NULL;
    case KN_OP_SELECT: return selected(s, e);
    default: return NULL;
    }
}

/* Each of these doubles the pieces that isl works on: over sizes alone, where a parameter can stand
   for them, they are not worth it once nested. */
static bool is_case_split(const kn_expr *e)
{
    enum { SMALL = 8 };
    bool split =
        e->kind == KN_E_OP && (e->op == KN_OP_SELECT || e->op == KN_OP_MIN || e->op == KN_OP_MAX);
    return split && (e->op == KN_OP_SELECT || e->size > SMALL);
}

isl_pw_aff *kn_poly_affine(const kn_poly_scope *s, const kn_expr *e)
{
    if (e->type != KN_INDEX) {
        return NULL;
    }
    if (is_case_split(e) && is_parametric(s, e)) {
        return opaque_parameter(s, e);
    }
    isl_pw_aff *result = NULL;
    switch (e->kind) {
    case KN_E_CONST: return constant(s, e->i);
    case KN_E_VAR: return variable(s, e->name);
    case KN_E_OP: result = affine_op(s, e); break;
    case KN_E_LOAD:
    case KN_E_CAST: return NULL;
    }
    return result || !is_parametric(s, e) ? result : opaque_parameter(s, e);
}

static isl_set *universe(const kn_poly_scope *s)
{
    return isl_set_universe(isl_space_copy(s->space));
}

static isl_set *compared(const kn_poly_scope *s, const kn_expr *e, bool *exact)
{
    isl_pw_aff *x = kn_poly_affine(s, e->args[0]);
    isl_pw_aff *y = x ? kn_poly_affine(s, e->args[1]) : NULL;
    if (!y) {
        isl_pw_aff_free(x);
        *exact = false;
        return universe(s);
    }
    switch (e->op) {
    case KN_OP_LT: return isl_pw_aff_lt_set(x, y);
    case KN_OP_LE: return isl_pw_aff_le_set(x, y);
    case KN_OP_GT: return isl_pw_aff_gt_set(x, y);
    case KN_OP_GE: return isl_pw_aff_ge_set(x, y);
    case KN_OP_EQ: return isl_pw_aff_eq_set(x, y);
    default: return isl_pw_aff_ne_set(x, y);
    }
}

static isl_set *negated(const kn_poly_scope *s, const kn_expr *e, bool *exact)
{
    bool inner = true;
    isl_set *set = kn_poly_condition(s, e->args[0], &inner);
    if (inner) {
        return isl_set_complement(set);
    }
    isl_set_free(set);
    *exact = false;
    return universe(s);
}

isl_set *kn_poly_condition(const kn_poly_scope *s, const kn_expr *e, bool *exact)
{
    if (e->kind == KN_E_CONST) {
        return e->i ? universe(s) : isl_set_empty(isl_space_copy(s->space));
    }
    if (e->kind == KN_E_OP && kn_scalar_get(e->op)->class == KN_CLASS_COMPARE) {
        return compared(s, e, exact);
    }
    if (e->kind == KN_E_OP && e->op == KN_OP_LNOT) {
        return negated(s, e, exact);
    }
    if (e->kind == KN_E_OP && (e->op == KN_OP_LAND || e->op == KN_OP_LOR)) {
        isl_set *x = kn_poly_condition(s, e->args[0], exact);
        isl_set *y = kn_poly_condition(s, e->args[1], exact);
        return e->op == KN_OP_LAND ? isl_set_intersect(x, y) : isl_set_union(x, y);
    }
    *exact = false;
    return universe(s);
}
