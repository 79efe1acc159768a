/* The nests of a fusion group's nodes as one nest: tensors and iterators get names that are unique
   in it, constants of one element become literals, values that nobody outside uses become
   temporaries. */
#include "passes/schedule/schedule.h"

typedef struct {
    kn_value *value;
    kn_value *initial; /* of an INOUT: where its contents come from */
    kn_tensor tensor;  /* named for the composed nest */
    bool inside;       /* made by the group */
} kn_member;

typedef struct {
    kn_arena *arena;
    const kn_graph *graph;
    const int *uses; /* of the graph's values, by id */
    kn_node *const *nodes;
    int nnodes;
    KN_VEC(kn_member) members;
    KN_VEC(kn_tensor) temps;
    KN_VEC(kn_stmt) stmts;
    KN_VEC(kn_size) sizes;
    KN_VEC(const kn_expr *) requires_;
    kn_map names;
} kn_composer;

static const char *unique_name(kn_composer *c, const char *stem)
{
    const char *name = stem;
    for (int k = 2; kn_map_has(&c->names, name); k++) {
        name = kn_intern_f(kn_arena_ctx(c->arena), "%s_%d", stem, k);
    }
    kn_map_set(&c->names, name, c);
    return name;
}

static kn_member *member(kn_composer *c, kn_value *v, const kn_tensor *t, bool inside)
{
    for (int i = 0; i < c->members.n; i++) {
        if (c->members.at[i].value == v) {
            return &c->members.at[i];
        }
    }
    kn_member m = {v, NULL, *t, inside};
    m.tensor.name = unique_name(c, t->name);
    m.tensor.role = inside ? KN_ROLE_TEMP : KN_ROLE_IN;
    kn_push(c->arena, &c->members, m);
    return &c->members.at[c->members.n - 1];
}

/* How one node's names read in the composed nest. */
typedef struct {
    kn_composer *c;
    const kn_nest *nest;
    const char **tensors;     /* new name, per tensor of the nest */
    const kn_expr **literals; /* per tensor: the literal that it is, or NULL */
    kn_binding *iters;
    int niters;
} kn_renaming;

static const kn_expr *rename_node(void *env, const kn_expr *e)
{
    kn_renaming *r = env;
    if (e->kind == KN_E_LOAD) {
        int t = kn_nest_find(r->nest, e->name);
        return r->literals[t] ? r->literals[t]
                              : kn_load(r->c->arena, e->type, r->tensors[t], e->args, e->nargs);
    }
    for (int i = 0; e->kind == KN_E_VAR && i < r->niters; i++) {
        if (r->iters[i].name == e->name) {
            return r->iters[i].value;
        }
    }
    return e;
}

static const kn_expr *renamed(kn_renaming *r, const kn_expr *e)
{
    return e ? kn_expr_rewrite(r->c->arena, e, rename_node, r) : NULL;
}

static void rename_iterators(kn_renaming *r, const kn_stmt *s)
{
    kn_arena *a = r->c->arena;
    r->iters = KN_ARRAY(a, kn_binding, s->niters + 1);
    r->niters = s->niters;
    for (int i = 0; i < s->niters; i++) {
        const char *name = unique_name(r->c, s->iters[i].name);
        r->iters[i] = (kn_binding){s->iters[i].name, kn_var(a, KN_INDEX, name)};
    }
}

static void add_statement(kn_renaming *r, const kn_stmt *s, int over_base)
{
    kn_arena *a = r->c->arena;
    rename_iterators(r, s);
    kn_stmt out = *s;
    out.target = r->tensors[kn_nest_find(r->nest, s->target)];
    out.subs = KN_ARRAY(a, const kn_expr *, s->nsubs + 1);
    for (int i = 0; i < s->nsubs; i++) {
        out.subs[i] = renamed(r, s->subs[i]);
    }
    out.rhs = renamed(r, s->rhs);
    out.where = renamed(r, s->where);
    out.over = s->over >= 0 ? s->over + over_base : -1;
    out.iters = KN_ARRAY(a, kn_iter, s->niters + 1);
    for (int i = 0; i < s->niters; i++) {
        const kn_iter *it = &s->iters[i];
        out.iters[i] = (kn_iter){r->iters[i].value->name, renamed(r, it->lo), renamed(r, it->hi),
                                 it->reduction};
    }
    kn_push(a, &r->c->stmts, out);
}

static void add_sizes(kn_composer *c, const kn_nest *nest)
{
    for (int i = 0; i < nest->nsizes; i++) {
        bool known = false;
        for (int k = 0; k < c->sizes.n; k++) {
            known = known || c->sizes.at[k].name == nest->sizes[i].name;
        }
        if (!known) {
            kn_map_set(&c->names, nest->sizes[i].name, c);
            kn_push(c->arena, &c->sizes, nest->sizes[i]);
        }
    }
    for (int i = 0; i < nest->nrequires; i++) {
        kn_push(c->arena, &c->requires_, nest->requires_[i]);
    }
}

/* A result that updates an operand in place stands once, as INOUT. */
static void bind_tensors(kn_composer *c, kn_renaming *r, const kn_node *node)
{
    const kn_bound_tensor *bound = kn_node_bind(c->arena, node, r->nest);
    for (int t = 0; t < r->nest->ntensors; t++) {
        const kn_tensor *tensor = &r->nest->tensors[t];
        kn_value *v = bound[t].value;
        if (tensor->role == KN_ROLE_TEMP) {
            kn_tensor temp = *tensor;
            temp.name = unique_name(c, tensor->name);
            r->tensors[t] = temp.name;
            kn_push(c->arena, &c->temps, temp);
        } else if (tensor->role == KN_ROLE_IN) {
            r->literals[t] = v->def ? NULL : kn_value_literal(c->arena, v);
            r->tensors[t] = r->literals[t] ? NULL : member(c, v, tensor, false)->tensor.name;
        } else {
            kn_member *m = member(c, v, tensor, true);
            m->initial = bound[t].initial;
            r->tensors[t] = m->tensor.name;
        }
    }
}

static void add_node(kn_composer *c, const kn_node *node)
{
    kn_nest *nest = kn_node_nest(c->arena, c->graph, node);
    int over_base = 0;
    for (int i = 0; i < c->stmts.n; i++) {
        over_base = c->stmts.at[i].over >= over_base ? c->stmts.at[i].over + 1 : over_base;
    }
    add_sizes(c, nest);
    kn_renaming r = {.c = c, .nest = nest};
    r.tensors = KN_ARRAY(c->arena, const char *, nest->ntensors + 1);
    r.literals = KN_ARRAY(c->arena, const kn_expr *, nest->ntensors + 1);
    bind_tensors(c, &r, node);
    for (int i = 0; i < nest->nstmts; i++) {
        add_statement(&r, &nest->stmts[i], over_base);
    }
}

static bool used_outside(const kn_composer *c, const kn_value *v)
{
    int inside = 0;
    for (int i = 0; i < c->nnodes; i++) {
        for (int k = 0; k < c->nodes[i]->ninputs; k++) {
            inside += c->nodes[i]->inputs[k] == v;
        }
    }
    return c->uses[v->id] > inside;
}

static void collect_tensors(kn_composer *c, kn_nest *nest, kn_group_nest *out)
{
    KN_VEC(kn_tensor) tensors = {0};
    KN_VEC(kn_value *) values = {0};
    KN_VEC(kn_value *) initial = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < c->members.n; i++) {
            kn_member *m = &c->members.at[i];
            bool lives = !m->inside || m->initial ||
                         used_outside(c, m->value); /* an update starts from what is outside */
            if (m->inside == (pass == 1) && lives) {
                m->tensor.role = !m->inside ? KN_ROLE_IN : m->initial ? KN_ROLE_INOUT : KN_ROLE_OUT;
                kn_push(c->arena, &tensors, m->tensor);
                kn_push(c->arena, &values, m->value);
                kn_push(c->arena, &initial, m->initial);
            }
        }
    }
    for (int i = 0; i < c->members.n; i++) {
        if (c->members.at[i].tensor.role == KN_ROLE_TEMP) {
            kn_push(c->arena, &tensors, c->members.at[i].tensor);
        }
    }
    for (int i = 0; i < c->temps.n; i++) {
        kn_push(c->arena, &tensors, c->temps.at[i]);
    }
    nest->tensors = tensors.at;
    nest->ntensors = tensors.n;
    out->values = values.at;
    out->initial = initial.at;
    out->nvalues = values.n;
}

/* "matmul_add_gelu": the ops of a group, shortened. */
static const char *group_name(kn_composer *c)
{
    kn_str s = kn_str_make(c->arena);
    for (int i = 0; i < c->nnodes && s.n < 40; i++) {
        kn_putf(&s, "%s%s", i ? "_" : "", c->nodes[i]->op->name);
    }
    return kn_intern(kn_arena_ctx(c->arena), kn_str_get(&s));
}

/* The meaning of an opaque row is a function with these very tensors: they stay as they are. */
static kn_group_nest opaque_nest(kn_arena *a, const kn_node *node, kn_nest *nest)
{
    kn_group_nest out = {.nest = nest, .nvalues = nest->ntensors};
    const kn_bound_tensor *bound = kn_node_bind(a, node, nest);
    out.values = KN_ARRAY(a, kn_value *, nest->ntensors + 1);
    out.initial = KN_ARRAY(a, kn_value *, nest->ntensors + 1);
    for (int t = 0; t < nest->ntensors; t++) {
        out.values[t] = bound[t].value;
        out.initial[t] = bound[t].initial;
    }
    nest->name = node->op->name;
    return out;
}

kn_group_nest kn_group_compose(kn_arena *a, const kn_graph *g, const int *uses,
                               kn_node *const *nodes, int n)
{
    if (nodes[0]->op->kind == KN_ROW_OPAQUE) {
        return opaque_nest(a, nodes[0], kn_node_nest(a, g, nodes[0]));
    }
    kn_composer c = {
        .arena = a, .graph = g, .uses = uses, .nodes = nodes, .nnodes = n, .names = kn_map_make(a)};
    kn_nest *nest = KN_NEW(a, kn_nest);
    kn_group_nest out = {.nest = nest};
    for (int i = 0; i < g->nsizes; i++) {
        kn_map_set(&c.names, g->sizes[i].name, &c);
    }
    for (int i = 0; i < n; i++) {
        add_node(&c, nodes[i]);
    }
    collect_tensors(&c, nest, &out);
    nest->name = group_name(&c);
    nest->nsizes = c.sizes.n;
    nest->sizes = c.sizes.at;
    nest->nrequires = c.requires_.n;
    nest->requires_ = c.requires_.at;
    nest->nstmts = c.stmts.n;
    nest->stmts = c.stmts.at;
    return out;
}
