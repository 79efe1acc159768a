/* A copy of a model for the passes to rewrite: new values, nodes and lists; names, shapes,
   attributes' contents and constants' data are shared, for nothing writes to them. */
#include "driver/driver.h"

typedef struct {
    kn_arena *arena;
    const kn_graph *from;
    kn_graph *to;
    kn_value **values; /* by id */
} kn_copying;

static kn_value *copy_value(kn_copying *c, const kn_value *v)
{
    if (!v) {
        return NULL;
    }
    if (!c->values[v->id]) {
        kn_value *copy = c->values[v->id] = KN_NEW(c->arena, kn_value);
        *copy = *v;
        copy->def = NULL; /* set with the node */
        kn_map_set(&c->to->values, copy->name, copy);
    }
    return c->values[v->id];
}

static kn_value **copy_list(kn_copying *c, kn_value *const *list, int n)
{
    kn_value **copy = KN_ARRAY(c->arena, kn_value *, n + 1);
    for (int i = 0; i < n; i++) {
        copy[i] = copy_value(c, list[i]);
    }
    return copy;
}

static kn_node *copy_node(kn_copying *c, const kn_node *n)
{
    kn_node *copy = KN_NEW(c->arena, kn_node);
    *copy = *n;
    copy->graph = c->to;
    copy->inputs = copy_list(c, n->inputs, n->ninputs);
    copy->outputs = copy_list(c, n->outputs, n->noutputs);
    for (int i = 0; i < n->noutputs; i++) {
        copy->outputs[i]->def = copy;
    }
    copy->attrs = KN_ARRAY(c->arena, kn_attr, n->nattrs + 1);
    memcpy(copy->attrs, n->attrs, (size_t)n->nattrs * sizeof *n->attrs);
    return copy;
}

static kn_map copy_map(kn_arena *a, const kn_map *m)
{
    kn_map copy = kn_map_make(a);
    for (int i = 0; i < m->n; i++) {
        kn_map_set(&copy, m->entries[i].key, m->entries[i].value);
    }
    return copy;
}

static void copy_sizes(kn_copying *c)
{
    const kn_graph *g = c->from;
    kn_graph *to = c->to;
    to->nsizes = to->sizes_cap = g->nsizes;
    to->sizes = KN_ARRAY(c->arena, kn_size, g->nsizes + 1);
    to->sources = KN_ARRAY(c->arena, struct kn_size_source, g->nsizes + 1);
    for (int i = 0; i < g->nsizes; i++) {
        to->sizes[i] = g->sizes[i];
        to->sources[i] =
            (struct kn_size_source){copy_value(c, g->sources[i].value), g->sources[i].element};
    }
}

static kn_graph *copy_graph(kn_arena *a, const kn_graph *g)
{
    kn_graph *to = kn_graph_create(a, g->name);
    kn_copying c = {a, g, to, KN_ARRAY(a, kn_value *, g->nvalues + 1)};
    to->nvalues = g->nvalues;
    to->nnode_ids = g->nnode_ids;
    to->notations = copy_map(a, &g->notations);
    to->stems = copy_map(a, &g->stems);
    to->ninputs = to->inputs_cap = g->ninputs;
    to->inputs = copy_list(&c, g->inputs, g->ninputs);
    to->nconsts = to->consts_cap = g->nconsts;
    to->consts = copy_list(&c, g->consts, g->nconsts);
    to->nnodes = to->nodes_cap = g->nnodes;
    to->nodes = KN_ARRAY(a, kn_node *, g->nnodes + 1);
    for (int i = 0; i < g->nnodes; i++) {
        to->nodes[i] = copy_node(&c, g->nodes[i]);
    }
    to->noutputs = to->outputs_cap = g->noutputs;
    to->outputs = copy_list(&c, g->outputs, g->noutputs);
    to->aliases = copy_list(&c, g->aliases, g->noutputs);
    copy_sizes(&c);
    return to;
}

static void release_base(void *copy)
{
    kn_driver_release(((kn_model *)copy)->base);
}

kn_model *kn_driver_copy(kn_model *model)
{
    kn_arena *a = kn_arena_create(model->ctx);
    kn_model *copy = KN_NEW(a, kn_model);
    copy->ctx = model->ctx;
    copy->arena = a;
    copy->references = 1;
    copy->base = model;
    model->references++;
    kn_defer(model->ctx, release_base, copy);
    copy->graph = copy_graph(a, model->graph);
    return copy;
}
