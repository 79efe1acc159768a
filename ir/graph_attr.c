/* Attributes of nodes: making, copying and reading them. */
#include <assert.h>

#include "ir/graph_internal.h"

kn_attr kn_attr_int(const char *name, int64_t v)
{
    return (kn_attr){.name = name, .kind = KN_A_INDEX, .i = v};
}

kn_attr kn_attr_ints(kn_arena *a, const char *name, const int64_t *v, int n)
{
    const kn_expr **e = KN_ARRAY(a, const kn_expr *, n);
    for (int i = 0; i < n; i++)
        e[i] = kn_index(a, v[i]);
    return kn_attr_indexes(name, e, n);
}

kn_attr kn_attr_index(const char *name, const kn_expr *e)
{
    return (kn_attr){.name = name, .kind = KN_A_INDEX, .index = e};
}

kn_attr kn_attr_indexes(const char *name, const kn_expr *const *e, int n)
{
    return (kn_attr){.name = name, .kind = KN_A_INDEXES, .indexes = e, .n = n};
}

kn_attr kn_attr_float(const char *name, double v)
{
    return (kn_attr){.name = name, .kind = KN_A_FLOAT, .f = v};
}

kn_attr kn_attr_floats(const char *name, const double *v, int n)
{
    return (kn_attr){.name = name, .kind = KN_A_FLOATS, .floats = v, .n = n};
}

kn_attr kn_attr_string(const char *name, const char *s)
{
    return (kn_attr){.name = name, .kind = KN_A_STRING, .string = s};
}

kn_attr kn_attr_type(const char *name, kn_dtype t)
{
    return (kn_attr){.name = name, .kind = KN_A_TYPE, .type = t};
}

static void copy_indexes(kn_arena *a, kn_attr *attr)
{
    const kn_expr **e = KN_ARRAY(a, const kn_expr *, attr->n);
    for (int i = 0; i < attr->n; i++)
        e[i] = kn_index_simplify(a, attr->indexes[i]);
    attr->indexes = e;
}

kn_attr kn_attr_copy(kn_arena *a, const kn_attr *attr)
{
    kn_attr c = *attr;
    c.name = kn_intern(kn_arena_ctx(a), attr->name);
    c.read = NULL;
    switch (c.kind) {
    case KN_A_INDEX: c.index = c.index ? kn_index_simplify(a, c.index) : kn_index(a, c.i); break;
    case KN_A_INDEXES: copy_indexes(a, &c); break;
    case KN_A_FLOATS: {
        double *f = KN_ARRAY(a, double, c.n);
        for (int i = 0; i < c.n; i++)
            f[i] = attr->floats[i];
        c.floats = f;
        break;
    }
    case KN_A_STRING: c.string = kn_strdup(a, c.string); break;
    case KN_A_FLOAT:
    case KN_A_TYPE: break;
    }
    return c;
}

const kn_attr *kn_node_attr(const kn_node *n, const char *name)
{
    for (int i = 0; i < n->nattrs; i++) {
        const kn_attr *attr = &n->attrs[i];
        if (attr->name != name && strcmp(attr->name, name) != 0)
            continue;
        if (attr->read)
            *attr->read = true;
        return attr;
    }
    return NULL;
}

int64_t kn_node_int(const kn_node *n, const char *name, int64_t otherwise)
{
    const kn_attr *attr = kn_node_attr(n, name);
    int64_t v;
    if (!attr)
        return otherwise;
    if (attr->kind != KN_A_INDEX || !kn_index_const(attr->index, &v))
        kn_raise(kn_arena_ctx(n->graph->arena), KN_INVALID, n->loc,
                 "%s: attribute '%s' must be a constant integer", n->op->name, name);
    return v;
}

double kn_node_float(const kn_node *n, const char *name, double otherwise)
{
    const kn_attr *attr = kn_node_attr(n, name);
    int64_t v;
    if (!attr)
        return otherwise;
    if (attr->kind == KN_A_FLOAT)
        return attr->f;
    if (attr->kind == KN_A_INDEX && kn_index_const(attr->index, &v))
        return (double)v;
    kn_raise(kn_arena_ctx(n->graph->arena), KN_INVALID, n->loc,
             "%s: attribute '%s' must be a number", n->op->name, name);
}

void kn_node_each_index(const kn_node *n, void (*fn)(void *env, const kn_expr *e), void *env)
{
    for (int i = 0; i < n->nattrs; i++) {
        const kn_attr *attr = &n->attrs[i];
        if (attr->kind == KN_A_INDEX)
            fn(env, attr->index);
        for (int k = 0; attr->kind == KN_A_INDEXES && k < attr->n; k++)
            fn(env, attr->indexes[k]);
    }
}
