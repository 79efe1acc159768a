/* What must hold of a graph between any two passes. Types and shapes are checked by elaborating
   every node anew; the first fault is raised. */
#include "ir/graph_internal.h"

typedef struct {
    const kn_graph *g;
    kn_ctx *ctx;
    kn_arena *a;
    bool *there;      /* values defined so far, by id */
    bool *node_there; /* nodes seen, by id */
} verifier;

#define FAIL(v, loc, ...) kn_raise((v)->ctx, KN_INVALID, loc, __VA_ARGS__)

/* ---- values ---- */

static void check_name(verifier *v, const kn_value *x)
{
    if (kn_map_get(&v->g->values, x->name) != x)
        FAIL(v, x->loc, "%%%s is not the graph's value of that name", x->name);
    if (x->id < 0 || x->id >= v->g->nvalues)
        FAIL(v, x->loc, "%%%s has the id %d of another graph", x->name, x->id);
    if (v->there[x->id])
        FAIL(v, x->loc, "%%%s is defined twice", x->name);
    if (x->rank < 0 || x->rank > KN_MAX_RANK)
        FAIL(v, x->loc, "%%%s has rank %d", x->name, x->rank);
    v->there[x->id] = true;
}

static void check_dims(verifier *v, const kn_value *x)
{
    for (int i = 0; i < x->rank; i++)
        if (!kn_graph_knows(v->g, x->shape[i]))
            FAIL(v, x->loc, "%%%s: %s mentions something that is no size of the graph", x->name,
                 kn_value_type_text(v->a, x));
}

static void check_input(verifier *v, const kn_value *x)
{
    check_name(v, x);
    check_dims(v, x);
    if (x->def || x->data)
        FAIL(v, x->loc, "input %%%s is computed or constant", x->name);
    for (int i = 0; i < x->rank; i++) {
        if (kn_index_range(x->shape[i], v->g->sizes, v->g->nsizes).lo < 0)
            FAIL(v, x->loc, "dimension %d of input %%%s may be negative", i, x->name);
        int computed = kn_graph_computed_size(v->g, x->shape[i]);
        if (computed >= 0)
            FAIL(v, x->loc, "dimension %d of input %%%s depends on %s, which is computed", i,
                 x->name, v->g->sizes[computed].name);
    }
}

static void check_const(verifier *v, const kn_value *x)
{
    int64_t count = kn_value_count(x), bytes = count < 0 ? -1 : kn_dtype_bytes(x->type, count);
    check_name(v, x);
    if (x->def)
        FAIL(v, x->loc, "constant %%%s is computed", x->name);
    if (bytes < 0 || (uint64_t)bytes != x->bytes)
        FAIL(v, x->loc, "constant %%%s: %s does not match its %zu bytes", x->name,
             kn_value_type_text(v->a, x), x->bytes);
    if (!x->data && x->bytes)
        FAIL(v, x->loc, "constant %%%s has no data", x->name);
}

/* ---- sizes ---- */

static void check_sizes(verifier *v)
{
    for (int i = 0; i < v->g->nsizes; i++) {
        const kn_size *s = &v->g->sizes[i];
        kn_loc loc = {.where = s->name};
        const kn_value *source = v->g->sources[i].value;
        if (s->lo > s->hi)
            FAIL(v, loc, "size %s in %lld:%lld has no values", s->name, (long long)s->lo,
                 (long long)s->hi);
        if (kn_graph_find_size(v->g, s->name) != i)
            FAIL(v, loc, "size %s is there twice", s->name);
        if (!source)
            continue;
        if (!v->there[source->id])
            FAIL(v, loc, "size %s is read from %%%s, which is not defined", s->name, source->name);
        if (v->g->sources[i].element < 0 || v->g->sources[i].element >= kn_value_count(source))
            FAIL(v, loc, "size %s is read from element %d of %%%s, which has none such", s->name,
                 v->g->sources[i].element, source->name);
    }
}

/* ---- nodes ---- */

typedef struct {
    verifier *v;
    const kn_node *node;
} index_check;

/* Sizes that a node mentions must be there before it. */
static void check_index(void *env, const kn_expr *e)
{
    index_check *c = env;
    const kn_graph *g = c->v->g;
    if (!kn_graph_knows(g, e))
        FAIL(c->v, c->node->loc, "%s: an attribute mentions something that is no size of the graph",
             c->node->op->name);
    for (int i = 0; i < g->nsizes; i++)
        if (g->sources[i].value && kn_expr_uses(e, g->sizes[i].name) &&
            !c->v->there[g->sources[i].value->id])
            FAIL(c->v, c->node->loc, "%s uses size %s before %%%s, from which it is read",
                 c->node->op->name, g->sizes[i].name, g->sources[i].value->name);
}

static void check_operands(verifier *v, const kn_node *n)
{
    for (int i = 0; i < n->ninputs; i++) {
        const kn_value *x = n->inputs[i];
        if (!x)
            continue;
        if (x->id >= v->g->nvalues || kn_map_get(&v->g->values, x->name) != x)
            FAIL(v, n->loc, "%s: operand %%%s is not of this graph", n->op->name, x->name);
        if (!v->there[x->id])
            FAIL(v, n->loc, "%s uses %%%s before it is defined", n->op->name, x->name);
    }
}

static bool same_dims(const kn_value *x, const kn_tensor *t)
{
    bool same = x->type == t->type && x->rank == t->rank;
    for (int i = 0; same && i < x->rank; i++)
        same = kn_expr_equal(x->shape[i], t->shape[i]);
    return same;
}

static void check_results(verifier *v, const kn_node *n, const kn_nest *nest)
{
    for (int r = 0; r < n->noutputs; r++) {
        const kn_value *x = n->outputs[r];
        const kn_tensor *t = kn_nest_result(nest, n, r);
        check_name(v, x);
        check_dims(v, x);
        if (x->def != n || x->result != r || x->data)
            FAIL(v, n->loc, "%s: %%%s is not linked to the node that makes it", n->op->name,
                 x->name);
        if (same_dims(x, t))
            continue;
        kn_str is = kn_str_make(v->a);
        kn_shape_print(&is, t->type, (const kn_expr *const *)t->shape, t->rank);
        FAIL(v, n->loc, "%s: %%%s is recorded as %s, but is %s", n->op->name, x->name,
             kn_value_type_text(v->a, x), kn_str_get(&is));
    }
}

static void check_node(verifier *v, const kn_node *n)
{
    index_check c = {v, n};
    if (n->graph != v->g || n->id < 0 || n->id >= v->g->nnode_ids || v->node_there[n->id])
        FAIL(v, n->loc, "%s: the node is there twice or of another graph", n->op->name);
    v->node_there[n->id] = true;
    check_operands(v, n);
    kn_node_each_index(n, check_index, &c);
    if (n->noutputs != n->notation->nresults)
        FAIL(v, n->loc, "%s has %d results, found %d", n->op->name, n->notation->nresults,
             n->noutputs);
    kn_arena *scratch = kn_arena_create(v->ctx);
    check_results(v, n, kn_node_nest(scratch, v->g, n));
    kn_arena_destroy(scratch);
}

/* ---- outputs ---- */

static bool is_input(const kn_graph *g, const kn_value *x)
{
    for (int i = 0; i < g->ninputs; i++)
        if (g->inputs[i] == x)
            return true;
    return false;
}

static void check_alias(verifier *v, int i)
{
    const kn_value *out = v->g->outputs[i], *in = v->g->aliases[i];
    bool same = is_input(v->g, in) && out->type == in->type && out->rank == in->rank;
    for (int d = 0; same && d < in->rank; d++)
        same = kn_expr_equal(out->shape[d], in->shape[d]);
    if (!same)
        FAIL(v, out->loc, "output %%%s (%s) aliases %%%s (%s), which is no input of that type",
             out->name, kn_value_type_text(v->a, out), in->name, kn_value_type_text(v->a, in));
    for (int k = 0; k < i; k++)
        if (v->g->aliases[k] == in)
            FAIL(v, out->loc, "outputs %%%s and %%%s both alias %%%s", v->g->outputs[k]->name,
                 out->name, in->name);
}

static void check_outputs(verifier *v)
{
    for (int i = 0; i < v->g->noutputs; i++) {
        const kn_value *out = v->g->outputs[i];
        if (out->id >= v->g->nvalues || !v->there[out->id] ||
            kn_map_get(&v->g->values, out->name) != out)
            FAIL(v, out->loc, "output %%%s is not defined", out->name);
        if (v->g->aliases[i])
            check_alias(v, i);
    }
}

void kn_graph_verify(const kn_graph *g)
{
    kn_ctx *ctx = kn_arena_ctx(g->arena);
    kn_arena *a = kn_arena_create(ctx);
    verifier v = {g, ctx, a, KN_ARRAY(a, bool, g->nvalues), KN_ARRAY(a, bool, g->nnode_ids)};
    for (int i = 0; i < g->ninputs; i++)
        check_input(&v, g->inputs[i]);
    for (int i = 0; i < g->nconsts; i++)
        check_const(&v, g->consts[i]);
    for (int i = 0; i < g->nnodes; i++)
        check_node(&v, g->nodes[i]);
    check_sizes(&v);
    check_outputs(&v);
    kn_arena_destroy(a);
}
