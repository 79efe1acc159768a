/* Attributes, put in before anything is read. A `const` is an integer literal wherever it stands; a
   `size` is a size, known at run time within its bounds; a scalar is rounded to its declared type
   and is a literal from then on; a `type` is a name for an element type. */
#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

static const kn_attr_value *given(const kn_attr_value *attrs, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (kn_same_name(attrs[i].name, name)) {
            return &attrs[i];
        }
    }
    return NULL;
}

static const kn_expr *constant_value(kn_elab *el, const kn_sig_attr *attr, const kn_expr *v)
{
    const kn_expr *folded = v->kind == KN_E_CONST ? v : kn_expr_fold(el->a, v);
    if (!folded || folded->kind != KN_E_CONST) {
        kn_el_fail(el, "attribute `%s` must be a constant, not %s", attr->name, kn_el_text(el, v));
    }
    return folded;
}

static void bind_const(kn_elab *el, kn_el_name *n, const kn_sig_attr *attr, const kn_expr *v)
{
    v = constant_value(el, attr, v);
    if (v->real) {
        kn_el_fail(el, "attribute `%s` must be an integer, not %s", attr->name, kn_el_text(el, v));
    }
    n->kind = KN_EL_CONST;
    n->value = kn_index(el->a, v->i);
}

static void bind_size(kn_elab *el, kn_el_name *n, const kn_sig_attr *attr, const kn_expr *v)
{
    if (v->kind == KN_E_CONST && !v->real) {
        v = kn_index(el->a, v->i);
    }
    if (v->type != KN_INDEX) {
        kn_el_fail(el, "attribute `%s` must be a size, not %s", attr->name, kn_el_text(el, v));
    }
    kn_el_add_symbols(el, v);
    n->kind = KN_EL_SIZE;
    n->value = kn_index_simplify(el->a, v);
    n->from = attr->name;
    kn_range r = kn_index_range(n->value, el->syms.at, el->syms.n);
    if (r.hi < attr->lo || r.lo > attr->hi) {
        kn_el_fail(el, "attribute `%s` is %s, outside of %lld:%lld", attr->name, kn_el_text(el, v),
                   (long long)attr->lo, (long long)attr->hi);
    }
    if (r.lo < attr->lo) {
        kn_el_require(el, kn_op2(el->a, KN_OP_GE, n->value, kn_index(el->a, attr->lo)), attr->name);
    }
    if (r.hi > attr->hi) {
        kn_el_require(el, kn_op2(el->a, KN_OP_LE, n->value, kn_index(el->a, attr->hi)), attr->name);
    }
}

/* A scalar takes the precision of its declared type, and then the type of what it meets. */
static void bind_scalar(kn_elab *el, kn_el_name *n, const kn_sig_attr *attr, const kn_expr *v)
{
    kn_dtype type = kn_el_type_named(el, attr->type);
    n->kind = KN_EL_VALUE;
    if (v->kind != KN_E_CONST && v->type == type) {
        kn_el_add_symbols(el, v); /* not known before it runs: cast(i64, seq), a scalar parameter */
        n->value = v;
        return;
    }
    v = constant_value(el, attr, v);
    if (kn_dtype_is_float(type)) {
        double f = kn_number_round(type, v->real ? v->f : (double)v->i);
        n->value = kn_float(el->a, KN_UNTYPED, f);
        return;
    }
    if (v->real && v->f != (double)(int64_t)v->f) {
        kn_el_fail(el, "attribute `%s` is %s, but must be %s", attr->name, kn_el_text(el, v),
                   kn_dtype_name(type));
    }
    int64_t i = v->real ? (int64_t)v->f : v->i;
    n->value = kn_int(el->a, type == KN_BOOL ? KN_BOOL : KN_UNTYPED, i);
}

static void bind_type(kn_elab *el, kn_el_name *n, const kn_sig_attr *attr, const kn_attr_value *v)
{
    n->kind = KN_EL_TYPE;
    n->type = v ? v->type : kn_el_type_named(el, attr->value->name);
    if (n->type >= KN_DTYPE_COUNT || n->type == KN_INDEX) {
        kn_el_fail(el, "attribute `%s` must be an element type", attr->name);
    }
}

static void bind_attr(kn_elab *el, const kn_sig_attr *attr, const kn_attr_value *v)
{
    bool type = strcmp(attr->type, "type") == 0;
    if ((!v && !attr->value) || (v && !type && !v->value)) {
        kn_el_fail(el, "attribute `%s: %s` is missing", attr->name, attr->type);
    }
    kn_el_name *n = kn_el_add_name(el, attr->name, KN_EL_TYPE);
    const kn_expr *value = v ? v->value : attr->value;
    if (type) {
        bind_type(el, n, attr, v);
    } else if (strcmp(attr->type, "const") == 0) {
        bind_const(el, n, attr, value);
    } else if (strcmp(attr->type, "size") == 0) {
        bind_size(el, n, attr, value);
    } else {
        bind_scalar(el, n, attr, value);
    }
}

void kn_el_bind_attrs(kn_elab *el, const kn_attr_value *attrs, int nattrs)
{
    for (int pass = 0; pass < 2; pass++) { /* types first: scalars may be of one */
        for (int i = 0; i < el->n->nattrs; i++) {
            const kn_sig_attr *attr = &el->n->attrs[i];
            if ((strcmp(attr->type, "type") == 0) == (pass == 0)) {
                bind_attr(el, attr, given(attrs, nattrs, attr->name));
            }
        }
    }
    for (int i = 0; i < nattrs; i++) {
        if (!kn_el_name_of(el, attrs[i].name)) {
            kn_el_fail(el, "there is no attribute `%s`", attrs[i].name);
        }
    }
}
