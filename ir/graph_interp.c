/* Running a graph by its meaning: each node's nest is lowered to plain loops and interpreted. Slow,
   simple and checked at every access: what all compiled code is compared with.

   Nodes with equal nests share one compiled function. An intermediate result lives from the node
   that makes it to its last use. Outputs are written where the caller wants them, but for those
   that update an input in place: they are copied there at the end, since the caller may have given
   the same memory for both. */
#include <assert.h>
#include <stdlib.h>

#include "ir/graph_internal.h"

typedef struct {
    kn_interp *interp;
    const kn_func *func;
} compiled;

typedef struct {
    kn_ctx *ctx;
    const kn_graph *g;
    kn_arena *a;
    int64_t *sizes; /* in the graph's order; those computed are set as they are read */
    bool *known;
    kn_memory *memory; /* by value id; data NULL: not there */
    bool *owned;       /* by value id: freed after the last use */
    int *last_use;     /* by value id: the node's place; INT_MAX for outputs */
    kn_map compiled;   /* text of a nest -> compiled */
} runner;

/* ---- sizes ---- */

static void check_bounds(runner *r, int i, const char *from)
{
    const kn_size *s = &r->g->sizes[i];
    if (r->sizes[i] < s->lo || r->sizes[i] > s->hi)
        kn_raise(r->ctx, KN_INVALID, (kn_loc){.where = s->name},
                 "size %s = %lld%s is outside %lld:%lld", s->name, (long long)r->sizes[i], from,
                 (long long)s->lo, (long long)s->hi);
    r->known[i] = true;
}

static void given_sizes(runner *r, const int64_t *sizes)
{
    for (int i = 0; i < r->g->nsizes; i++)
        if (!r->g->sources[i].value) {
            r->sizes[i] = sizes[i];
            check_bounds(r, i, "");
        }
}

/* Reads the sizes that stand in a tensor which is now there. */
static void computed_sizes(runner *r, const kn_value *v)
{
    for (int i = 0; i < r->g->nsizes; i++) {
        if (r->g->sources[i].value != v)
            continue;
        int element = r->g->sources[i].element;
        r->sizes[i] = kn_element_get(r->a, v->type, r->memory[v->id].data, element)->i;
        check_bounds(r, i, kn_format(r->a, ", read from %%%s[%d],", v->name, element));
    }
}

static int64_t bytes_of(runner *r, const kn_value *v)
{
    int64_t count = 1, dim;
    for (int i = 0; i < v->rank; i++)
        if (!kn_index_eval(v->shape[i], r->g->sizes, r->sizes, r->g->nsizes, &dim) || dim < 0 ||
            __builtin_mul_overflow(count, dim, &count))
            return -1;
    return kn_dtype_bytes(v->type, count);
}

static size_t need_bytes(runner *r, const kn_value *v)
{
    int64_t bytes = bytes_of(r, v);
    if (bytes < 0)
        kn_raise(r->ctx, KN_INVALID, v->loc, "%%%s: %s is impossible for these sizes", v->name,
                 kn_value_type_text(r->a, v));
    return (size_t)bytes;
}

/* ---- memory ---- */

static void own(runner *r, const kn_value *v)
{
    size_t bytes = need_bytes(r, v);
    void *data = malloc(bytes ? bytes : 1);
    if (!data)
        kn_raise(r->ctx, KN_ENVIRONMENT, v->loc, "out of memory: %zu bytes for %%%s", bytes,
                 v->name);
    kn_defer(r->ctx, free, data);
    memset(data, 0xA5, bytes);
    r->memory[v->id] = (kn_memory){data, bytes};
    r->owned[v->id] = true;
}

static void disown(runner *r, const kn_value *v)
{
    if (!r->owned[v->id])
        return;
    kn_release(r->ctx, r->memory[v->id].data);
    r->owned[v->id] = false;
    r->memory[v->id] = (kn_memory){NULL, 0};
}

static kn_memory checked(runner *r, const kn_value *v, kn_memory m)
{
    size_t bytes = need_bytes(r, v);
    if (m.bytes < bytes)
        kn_raise(r->ctx, KN_INVALID, v->loc, "%%%s needs %zu bytes, found %zu", v->name, bytes,
                 m.bytes);
    return (kn_memory){m.data, bytes};
}

/* The outputs' memory is where their nodes write; each value once, and none that aliases. */
static void place_results(runner *r, const kn_node *n, const kn_memory *outputs)
{
    for (int k = 0; k < n->noutputs; k++) {
        const kn_value *v = n->outputs[k];
        for (int i = 0; i < r->g->noutputs && !r->memory[v->id].data; i++)
            if (r->g->outputs[i] == v && !r->g->aliases[i])
                r->memory[v->id] = checked(r, v, outputs[i]);
        if (!r->memory[v->id].data)
            own(r, v);
    }
}

/* ---- nodes ---- */

/* Compiled once per nest; the nest of a compiled function lives in the run's arena. */
static const compiled *compile(runner *r, kn_arena *scratch, const kn_node *n, const kn_nest *nest)
{
    kn_str key = kn_str_make(scratch);
    kn_nest_print(&key, nest);
    compiled *c = kn_map_get(&r->compiled, kn_str_get(&key));
    if (c)
        return c;
    c = KN_NEW(r->a, compiled);
    kn_func *f = kn_lower_reference(r->a, kn_node_nest(r->a, r->g, n));
    kn_module *m = KN_NEW(r->a, kn_module);
    m->name = n->op->name;
    m->target = "host";
    m->arena = r->a;
    m->nfuncs = 1;
    m->funcs = KN_ARRAY(r->a, kn_func *, 1);
    m->funcs[0] = f;
    c->func = f;
    c->interp = kn_interp_compile(r->a, m, f);
    kn_map_set(&r->compiled, kn_strdup(r->a, kn_str_get(&key)), c);
    return c;
}

/* The memory of the nest's tensor `name`; a tensor that is updated starts as a copy of its operand.
 */
static kn_memory tensor_memory(runner *r, const kn_node *n, const kn_nest *nest, const char *name)
{
    const kn_value *in = NULL, *out = NULL;
    for (int i = 0, k = 0; i < n->ninputs; i++)
        if (n->inputs[i] && strcmp(nest->tensors[k++].name, name) == 0)
            in = n->inputs[i];
    for (int i = 0; i < n->noutputs; i++)
        if (strcmp(n->notation->results[i].name, name) == 0)
            out = n->outputs[i];
    assert(in || out);
    if (!out)
        return r->memory[in->id];
    kn_memory m = r->memory[out->id];
    if (in && m.bytes)
        memcpy(m.data, r->memory[in->id].data, m.bytes);
    return m;
}

static void run_node(runner *r, const kn_node *n)
{
    kn_arena *scratch = kn_arena_create(r->ctx);
    const kn_nest *nest = kn_node_nest(scratch, r->g, n);
    const compiled *c = compile(r, scratch, n, nest);
    int64_t *scalars = KN_ARRAY(scratch, int64_t, c->func->nparams);
    kn_memory *buffers = KN_ARRAY(scratch, kn_memory, c->func->nparams);
    int nscalars = 0, nbuffers = 0;
    for (int i = 0; i < c->func->nparams; i++) {
        const kn_param *p = &c->func->params[i];
        if (p->mode != KN_PARAM_SCALAR) {
            buffers[nbuffers++] = tensor_memory(r, n, nest, p->buffer.name);
            continue;
        }
        int k = kn_graph_find_size(r->g, p->buffer.name);
        assert(k >= 0 && r->known[k]);
        scalars[nscalars++] = r->sizes[k];
    }
    kn_interp_run(r->ctx, c->interp, scalars, nscalars, buffers, nbuffers);
    kn_arena_destroy(scratch);
}

static void free_after(runner *r, const kn_node *n, int at)
{
    for (int i = 0; i < n->ninputs; i++)
        if (n->inputs[i] && r->last_use[n->inputs[i]->id] == at)
            disown(r, n->inputs[i]);
    for (int i = 0; i < n->noutputs; i++)
        if (r->last_use[n->outputs[i]->id] < 0)
            disown(r, n->outputs[i]);
}

/* ---- the graph ---- */

static void find_last_uses(runner *r)
{
    const kn_graph *g = r->g;
    for (int i = 0; i < g->nvalues; i++)
        r->last_use[i] = -1;
    for (int i = 0; i < g->nnodes; i++)
        for (int k = 0; k < g->nodes[i]->ninputs; k++)
            if (g->nodes[i]->inputs[k])
                r->last_use[g->nodes[i]->inputs[k]->id] = i;
    for (int i = 0; i < g->noutputs; i++)
        r->last_use[g->outputs[i]->id] = INT32_MAX;
}

static void place_inputs(runner *r, const kn_memory *inputs)
{
    const kn_graph *g = r->g;
    for (int i = 0; i < g->ninputs; i++) {
        r->memory[g->inputs[i]->id] = checked(r, g->inputs[i], inputs[i]);
        computed_sizes(r, g->inputs[i]);
    }
    for (int i = 0; i < g->nconsts; i++) {
        const kn_value *v = g->consts[i];
        r->memory[v->id] = (kn_memory){(void *)(uintptr_t)v->data, v->bytes};
        computed_sizes(r, v);
    }
}

/* An input that updates an input: in memory of its own, before any is overwritten. */
static void keep_aside(runner *r, const kn_value *v)
{
    kn_memory from = r->memory[v->id];
    if (v->def || r->owned[v->id])
        return;
    own(r, v);
    if (from.bytes)
        memcpy(r->memory[v->id].data, from.data, from.bytes);
}

static void copy_output(runner *r, int i, kn_memory given)
{
    const kn_value *v = r->g->outputs[i];
    kn_memory from = r->memory[v->id], to = checked(r, v, given);
    if (from.data != to.data && to.bytes)
        memmove(to.data, from.data, to.bytes);
}

/* What its node did not write in place: values that are outputs twice, inputs, constants; last,
 * updates of inputs, of which those that are inputs themselves go aside before. */
static void copy_outputs(runner *r, const kn_memory *outputs)
{
    for (int i = 0; i < r->g->noutputs; i++)
        if (!r->g->aliases[i])
            copy_output(r, i, outputs[i]);
    for (int i = 0; i < r->g->noutputs; i++)
        if (r->g->aliases[i])
            keep_aside(r, r->g->outputs[i]);
    for (int i = 0; i < r->g->noutputs; i++)
        if (r->g->aliases[i])
            copy_output(r, i, outputs[i]);
    for (int i = 0; i < r->g->noutputs; i++)
        disown(r, r->g->outputs[i]);
}

void kn_graph_interpret(kn_ctx *ctx, const kn_graph *g, int64_t *sizes, const kn_memory *inputs,
                        const kn_memory *outputs)
{
    kn_arena *a = kn_arena_create(ctx);
    runner r = {.ctx = ctx, .g = g, .a = a, .compiled = kn_map_make(a)};
    r.sizes = KN_ARRAY(a, int64_t, g->nsizes);
    r.known = KN_ARRAY(a, bool, g->nsizes);
    r.memory = KN_ARRAY(a, kn_memory, g->nvalues);
    r.owned = KN_ARRAY(a, bool, g->nvalues);
    r.last_use = KN_ARRAY(a, int, g->nvalues);
    given_sizes(&r, sizes);
    find_last_uses(&r);
    place_inputs(&r, inputs);
    for (int i = 0; i < g->nnodes; i++) {
        place_results(&r, g->nodes[i], outputs);
        run_node(&r, g->nodes[i]);
        for (int k = 0; k < g->nodes[i]->noutputs; k++)
            computed_sizes(&r, g->nodes[i]->outputs[k]);
        free_after(&r, g->nodes[i], i);
    }
    copy_outputs(&r, outputs);
    for (int i = 0; i < g->nsizes; i++)
        sizes[i] = r.sizes[i];
    kn_arena_destroy(a);
}
