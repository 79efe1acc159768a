/* Sweeping: what the outputs do not need goes; what stays is put into a topological order.

   A node needs its operands and the tensors that the computed sizes in its attributes and results
   are read from. Nodes are visited depth first in their present order, so a graph in order keeps
   it. */
#include <assert.h>

#include "ir/graph_internal.h"

typedef enum { UNSEEN, OPEN, DONE } state;

typedef struct {
    kn_node *node;
    int next; /* the next one of its needs to visit */
} step;

typedef KN_VEC(kn_value *) value_list;

typedef struct {
    kn_graph *g;
    kn_arena *a;
    bool any_computed;    /* some sizes have sources */
    unsigned char *state; /* by node id */
    bool *used;           /* values, by id */
    bool *mentioned;      /* sizes */
    value_list *needs;    /* by node id, while the node is open */
    KN_VEC(step) stack;
    KN_VEC(kn_node *) order;
} sweeper;

/* The sources of the computed sizes in an expression join the needs. */
typedef struct {
    sweeper *s;
    value_list *needs;
} size_visit;

static void need_size(void *env, const kn_expr *e)
{
    size_visit *v = env;
    if (e->kind != KN_E_VAR)
        return;
    int i = kn_graph_find_size(v->s->g, e->name);
    if (i < 0)
        return;
    v->s->mentioned[i] = true;
    if (v->s->g->sources[i].value)
        kn_push(v->s->a, v->needs, v->s->g->sources[i].value);
}

static void need_sizes(void *env, const kn_expr *e)
{
    size_visit *v = env;
    if (v->s->any_computed)
        kn_expr_visit(e, need_size, env);
}

static void need_shape(size_visit *v, const kn_value *value)
{
    for (int i = 0; i < value->rank; i++)
        need_sizes(v, value->shape[i]);
}

static value_list needs_of(sweeper *s, const kn_node *n)
{
    value_list needs = {0};
    size_visit v = {s, &needs};
    for (int i = 0; i < n->ninputs; i++)
        if (n->inputs[i])
            kn_push(s->a, &needs, n->inputs[i]);
    kn_node_each_index(n, need_sizes, &v);
    for (int i = 0; i < n->noutputs; i++)
        need_shape(&v, n->outputs[i]);
    return needs;
}

/* ---- order ---- */

static _Noreturn void cycle(sweeper *s, const kn_node *again)
{
    kn_str names = kn_str_make(s->a);
    int first = s->stack.n - 1;
    while (first > 0 && s->stack.at[first].node != again)
        first--;
    for (int i = first; i < s->stack.n && i < first + 8; i++) {
        const kn_node *n = s->stack.at[i].node;
        kn_putf(&names, "%s%%%s", i > first ? ", " : "",
                n->noutputs ? n->outputs[0]->name : n->name);
    }
    if (s->stack.n > first + 8)
        kn_put(&names, ", ...");
    kn_raise(kn_arena_ctx(s->g->arena), KN_INVALID, again->loc, "the graph has a cycle: %s",
             kn_str_get(&names));
}

static void open_node(sweeper *s, kn_node *n)
{
    s->state[n->id] = OPEN;
    s->needs[n->id] = needs_of(s, n);
    kn_push(s->a, &s->stack, ((step){n, 0}));
}

/* Puts the node that makes v, and all that it needs, into the order. */
static void visit(sweeper *s, kn_value *v)
{
    s->used[v->id] = true;
    if (!v->def || s->state[v->def->id] == DONE)
        return;
    open_node(s, v->def);
    while (s->stack.n) {
        step *top = &s->stack.at[s->stack.n - 1];
        const value_list *needs = &s->needs[top->node->id];
        if (top->next == needs->n) {
            s->state[top->node->id] = DONE;
            kn_push(s->a, &s->order, top->node);
            s->stack.n--;
            continue;
        }
        kn_value *need = needs->at[top->next++];
        s->used[need->id] = true;
        if (!need->def || s->state[need->def->id] == DONE)
            continue;
        if (s->state[need->def->id] == OPEN)
            cycle(s, need->def);
        open_node(s, need->def);
    }
}

/* ---- what is needed ---- */

/* First which nodes are needed, whatever their order; then the order, starting from each in turn.
 */
static void mark_needed(sweeper *s)
{
    const kn_graph *g = s->g;
    size_visit v = {s, &(value_list){0}};
    for (int i = 0; i < g->ninputs; i++)
        need_shape(&v, g->inputs[i]);
    for (int i = 0; i < g->noutputs; i++)
        visit(s, g->outputs[i]);
    for (int i = 0; i < v.needs->n; i++)
        visit(s, v.needs->at[i]);
}

static void sort_needed(sweeper *s)
{
    kn_graph *g = s->g;
    unsigned char *needed = s->state;
    s->state = KN_ARRAY(s->a, unsigned char, g->nnode_ids);
    s->order.n = 0;
    for (int i = 0; i < g->nnodes; i++)
        if (needed[g->nodes[i]->id] == DONE && g->nodes[i]->noutputs)
            visit(s, g->nodes[i]->outputs[0]);
}

/* The map of names, with what is left. */
static void rebuild_names(kn_graph *g)
{
    g->values = kn_map_make(g->arena);
    for (int i = 0; i < g->ninputs; i++)
        kn_map_set(&g->values, g->inputs[i]->name, g->inputs[i]);
    for (int i = 0; i < g->nconsts; i++)
        kn_map_set(&g->values, g->consts[i]->name, g->consts[i]);
    for (int i = 0; i < g->nnodes; i++)
        for (int r = 0; r < g->nodes[i]->noutputs; r++)
            kn_map_set(&g->values, g->nodes[i]->outputs[r]->name, g->nodes[i]->outputs[r]);
}

static void drop_unused(sweeper *s)
{
    kn_graph *g = s->g;
    int n = 0;
    for (int i = 0; i < g->nconsts; i++)
        if (s->used[g->consts[i]->id])
            g->consts[n++] = g->consts[i];
    g->nconsts = n;
    for (int i = n = 0; i < g->nsizes; i++) {
        if (g->sources[i].value && !s->mentioned[i])
            continue;
        g->sizes[n] = g->sizes[i];
        g->sources[n++] = g->sources[i];
    }
    g->nsizes = n;
    if (s->order.n > g->nodes_cap)
        g->nodes = KN_ARRAY(g->arena, kn_node *, g->nodes_cap = s->order.n);
    for (int i = 0; i < s->order.n; i++)
        g->nodes[i] = s->order.at[i];
    g->nnodes = s->order.n;
}

void kn_graph_sweep(kn_graph *g)
{
    kn_arena *a = kn_arena_create(kn_arena_ctx(g->arena));
    sweeper s = {.g = g, .a = a};
    for (int i = 0; i < g->nsizes; i++)
        s.any_computed |= g->sources[i].value != NULL;
    s.state = KN_ARRAY(a, unsigned char, g->nnode_ids);
    s.used = KN_ARRAY(a, bool, g->nvalues);
    s.mentioned = KN_ARRAY(a, bool, g->nsizes);
    s.needs = KN_ARRAY(a, value_list, g->nnode_ids);
    mark_needed(&s);
    sort_needed(&s);
    drop_unused(&s);
    rebuild_names(g);
    kn_arena_destroy(a);
}
