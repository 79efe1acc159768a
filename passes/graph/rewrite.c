/* The engine behind rules.h: visits nodes in topological order, tries the rules whose pattern ends
   in the node's op, builds the result, and hands the users over. Who uses a value is kept in lists,
   so a rewrite costs what it touches; only outputs of the graph and sources of sizes go the long
   way through kn_graph_replace().

   Every rule removes a node or replaces it by one that no rule of the table undoes, so rounds end;
   MAX_ROUNDS is for a table that is wrong. */
#include <assert.h>

#include "passes/graph/rules_internal.h"

enum { MAX_ROUNDS = 12, MAX_DEPTH = 32 };

typedef struct {
    kn_rewriter rw;
    kn_map by_op; /* op -> rule_list, in the table's order */
    kn_match *match;
    int *hits;
    int depth;
    bool changed;
} engine;

typedef KN_VEC(const kn_rule_parsed *) rule_list;

/* ---- uses ---- */

static void grow(kn_rewriter *rw)
{
    int values = rw->g->nvalues, nodes = rw->g->nnode_ids;
    if (values > rw->nvalues) {
        int n = values * 2, have = rw->nvalues;
        kn_node_list *users = KN_ARRAY(rw->a, kn_node_list, n);
        bool *pinned = KN_ARRAY(rw->a, bool, n);
        for (int i = 0; i < have; i++) {
            users[i] = rw->users[i];
            pinned[i] = rw->pinned[i];
        }
        rw->users = users;
        rw->pinned = pinned;
        rw->nvalues = n;
    }
    if (nodes > rw->nnodes) {
        int n = nodes * 2, have = rw->nnodes;
        bool *dead = KN_ARRAY(rw->a, bool, n);
        int *mark = KN_ARRAY(rw->a, int, n);
        for (int i = 0; i < have; i++) {
            dead[i] = rw->dead[i];
            mark[i] = rw->mark[i];
        }
        rw->dead = dead;
        rw->mark = mark;
        rw->nnodes = n;
    }
}

/* Nodes that came since the last call. */
static void enter_nodes(kn_rewriter *rw)
{
    grow(rw);
    for (; rw->known < rw->g->nnodes; rw->known++) {
        kn_node *n = rw->g->nodes[rw->known];
        for (int k = 0; k < n->ninputs; k++) {
            if (n->inputs[k]) {
                kn_push(rw->a, &rw->users[n->inputs[k]->id], n);
            }
        }
    }
}

static void pin(kn_rewriter *rw)
{
    for (int i = 0; i < rw->nvalues; i++) {
        rw->pinned[i] = false;
    }
    for (int i = 0; i < rw->g->noutputs; i++) {
        rw->pinned[rw->g->outputs[i]->id] = true;
    }
    for (int i = 0; i < rw->g->nsizes; i++) {
        if (rw->g->sources[i].value) {
            rw->pinned[rw->g->sources[i].value->id] = true;
        }
    }
}

static void count_uses(kn_rewriter *rw)
{
    rw->known = 0;
    grow(rw);
    for (int i = 0; i < rw->nvalues; i++) {
        rw->users[i].n = 0;
    }
    enter_nodes(rw);
    pin(rw);
}

static bool is_used(const kn_rewriter *rw, const kn_value *v)
{
    for (int i = 0; i < rw->users[v->id].n; i++) {
        if (!rw->dead[rw->users[v->id].at[i]->id]) {
            return true;
        }
    }
    return rw->pinned[v->id];
}

/* The node, and what it alone used, are no longer there. */
static void kill(kn_rewriter *rw, kn_node *n)
{
    kn_node_list doomed = {0};
    kn_push(rw->a, &doomed, n);
    while (doomed.n) {
        n = doomed.at[--doomed.n];
        bool used = false;
        for (int i = 0; i < n->noutputs; i++) {
            used = used || is_used(rw, n->outputs[i]);
        }
        if (used || rw->dead[n->id]) {
            continue;
        }
        rw->dead[n->id] = true;
        for (int k = 0; k < n->ninputs; k++) {
            if (n->inputs[k] && n->inputs[k]->def) {
                kn_push(rw->a, &doomed, n->inputs[k]->def);
            }
        }
    }
}

/* ---- results ---- */

/* A name that stands for nothing, or for the default, is left out. */
static kn_attr build_attr(kn_match *m, const char *op, const kn_pat_attr *p, bool *known)
{
    const kn_attr *var = p->kind == KN_PAT_A_VAR ? kn_match_attr(m, p->text) : NULL;
    kn_attr attr = {0};
    *known = true;
    switch (p->kind) {
    case KN_PAT_A_NUMBER:
        attr = p->real ? kn_attr_float("", p->number) : kn_attr_int("", (int64_t)p->number);
        break;
    case KN_PAT_A_TYPE: attr = kn_attr_type("", p->type); break;
    case KN_PAT_A_STRING: attr = kn_attr_string("", p->text); break;
    case KN_PAT_A_VAR:
        *known = var && !kn_attr_is_usual(op, p->name, var);
        attr = *known ? *var : attr;
        break;
    case KN_PAT_A_LIST: {
        const kn_expr **list = KN_ARRAY(m->rw->a, const kn_expr *, p->nitems);
        for (int i = 0; i < p->nitems; i++) {
            const kn_pat_attr *item = &p->items[i];
            bool number = item->kind == KN_PAT_A_NUMBER;
            list[i] = number ? kn_index(m->rw->g->arena, (int64_t)item->number)
                             : kn_match_attr(m, item->text)->index;
        }
        attr = kn_attr_indexes("", list, p->nitems);
        break;
    }
    }
    attr.name = p->name;
    return attr;
}

static kn_value *build(kn_match *m, const kn_pat *p);

static kn_value *build_node(kn_match *m, const kn_pat *p)
{
    kn_value **inputs = KN_ARRAY(m->rw->a, kn_value *, p->nargs);
    kn_attr *attrs = KN_ARRAY(m->rw->a, kn_attr, p->nattrs);
    int ninputs = p->nargs, nattrs = 0;
    for (int i = 0; i < p->nargs; i++) {
        inputs[i] = build(m, p->args[i]);
    }
    while (ninputs > p->op->min_inputs && !inputs[ninputs - 1]) {
        ninputs--;
    }
    for (int i = 0; i < p->nattrs; i++) {
        bool known;
        attrs[nattrs] = build_attr(m, p->op->name, &p->attrs[i], &known);
        nattrs += known;
    }
    return m->values[p->slot] = kn_match_node(m, p->op->name, inputs, ninputs, attrs, nattrs);
}

static kn_value *build(kn_match *m, const kn_pat *p)
{
    switch (p->kind) {
    case KN_PAT_VALUE: return m->values[p->slot];
    case KN_PAT_NUMBER: return kn_graph_scalar(m->rw->g, m->root->type, p->number);
    case KN_PAT_VAR: return kn_match_value(m, p->name);
    case KN_PAT_NODE: return m->values[p->slot] ? m->values[p->slot] : build_node(m, p);
    case KN_PAT_NONE: return NULL;
    case KN_PAT_PART: break; /* no result has one */
    }
    assert(!"a part in a result");
    return NULL;
}

/* ---- replacing ---- */

/* What is computed anew keeps the name under which it was known. */
static void take_name(kn_graph *g, kn_value *from, kn_value *to)
{
    const char *name = from->name;
    from->name = to->name;
    to->name = name;
    kn_map_set(&g->values, from->name, from);
    kn_map_set(&g->values, to->name, to);
}

static void hand_over(kn_rewriter *rw, kn_value *from, kn_value *to, bool fresh)
{
    kn_node_list *users = &rw->users[from->id];
    for (int i = 0; i < users->n; i++) {
        kn_node *n = users->at[i];
        for (int k = 0; k < n->ninputs && !rw->dead[n->id]; k++) {
            if (n->inputs[k] == from) {
                n->inputs[k] = to;
                kn_push(rw->a, &rw->users[to->id], n);
            }
        }
    }
    users->n = 0;
    if (!to->content) {
        to->content = from->content;
    }
    if (rw->pinned[from->id]) {
        kn_graph_replace(rw->g, from, to);
        enter_nodes(rw);
        pin(rw);
    } else if (fresh) {
        take_name(rw->g, from, to);
    }
    kill(rw, from->def);
}

static bool is_output(const kn_graph *g, const kn_value *v)
{
    for (int i = 0; i < g->noutputs; i++) {
        if (g->outputs[i] == v) {
            return true;
        }
    }
    return false;
}

/* An output that only renames an input, a constant or another output has to stay an identity. */
static bool is_needed_identity(const kn_graph *g, const kn_node *n)
{
    return strcmp(n->op->name, "identity") == 0 && is_output(g, n->outputs[0]) &&
           (!n->inputs[0]->def || is_output(g, n->inputs[0]));
}

static void visit(engine *e, kn_node *n);

/* Nodes that were made for a result that is not to be: dead, until they are swept. */
static void abandon(kn_rewriter *rw, int first)
{
    enter_nodes(rw);
    for (int i = first; i < rw->g->nnodes; i++) {
        rw->dead[rw->g->nodes[i]->id] = true;
    }
}

static bool apply(engine *e, const kn_rule_parsed *rule, kn_node *n)
{
    kn_rewriter *rw = &e->rw;
    kn_value *root = n->outputs[0];
    kn_match *m = e->match;
    int first = rw->g->nnodes, first_id = rw->g->nnode_ids;
    bool found = kn_match_find(m, rw, rule, root) && (!rule->rule->when || rule->rule->when(m));
    kn_value *to = found ? build(m, rule->result) : NULL;
    if (!to || to == root || to->type != root->type || !kn_same_shape(to, root)) {
        abandon(rw, first);
        return false;
    }
    enter_nodes(rw);
    hand_over(rw, root, to, to->def && to->def->id >= first_id);
    if (e->hits) {
        e->hits[rule->index]++;
    }
    e->changed = true;
    for (int i = first, last = rw->g->nnodes; i < last; i++) {
        visit(e, rw->g->nodes[i]);
    }
    return true;
}

static void visit(engine *e, kn_node *n)
{
    const rule_list *rules = kn_map_get(&e->by_op, n->op->name);
    if (!rules || n->noutputs != 1 || e->depth == MAX_DEPTH || is_needed_identity(e->rw.g, n)) {
        return;
    }
    e->depth++;
    for (int i = 0; i < rules->n && !e->rw.dead[n->id]; i++) {
        if (apply(e, rules->at[i], n)) {
            break;
        }
    }
    e->depth--;
}

/* ---- the table ---- */

static void index_rule(engine *e, const kn_pat *p, const kn_rule_parsed *rule)
{
    if (p->kind == KN_PAT_PART) {
        for (int i = 0; i < p->nargs; i++) {
            index_rule(e, p->args[i], rule);
        }
        return;
    }
    assert(p->kind == KN_PAT_NODE);
    rule_list *list = kn_map_get(&e->by_op, p->op->name);
    if (!list) {
        list = KN_NEW(e->rw.a, rule_list);
        kn_map_set(&e->by_op, p->op->name, list);
    }
    if (list->n == 0 || list->at[list->n - 1] != rule) {
        kn_push(e->rw.a, list, rule);
    }
}

void kn_rewrite(kn_unit *u, const kn_rule_table *table, int *hits)
{
    kn_arena *a = kn_arena_create(u->ctx);
    engine e = {.rw = {.unit = u, .g = u->graph, .a = a, .shared = table->shared},
                .by_op = kn_map_make(a),
                .hits = hits};
    e.match = KN_NEW(a, kn_match);
    for (int i = 0; i < table->nrules; i++) {
        const kn_rule_parsed *rule = kn_rule_parse(a, table, i);
        index_rule(&e, rule->pattern, rule);
    }
    for (int round = 0; round < MAX_ROUNDS && (round == 0 || e.changed); round++) {
        e.changed = false;
        kn_graph_sweep(u->graph);
        count_uses(&e.rw);
        for (int i = 0, n = u->graph->nnodes; i < n; i++) {
            visit(&e, u->graph->nodes[i]);
        }
    }
    kn_graph_sweep(u->graph);
    kn_release(u->ctx, a);
}

/* ---- for `when` ---- */

kn_graph *kn_match_graph(const kn_match *m)
{
    return m->rw->g;
}

kn_arena *kn_match_arena(const kn_match *m)
{
    return m->rw->a;
}

kn_value *kn_match_root(const kn_match *m)
{
    return m->root;
}

kn_value *kn_match_value(const kn_match *m, const char *name)
{
    for (int i = 0; i < m->rule->nslots; i++) {
        if (m->rule->names[i] && strcmp(m->rule->names[i], name) == 0) {
            return m->values[i];
        }
    }
    for (int i = 0; i < m->nvars; i++) {
        if (strcmp(m->vars[i].name, name) == 0) {
            return m->vars[i].value;
        }
    }
    return NULL;
}

const kn_attr *kn_match_attr(const kn_match *m, const char *name)
{
    for (int i = 0; i < m->nvars; i++) {
        if (strcmp(m->vars[i].name, name) == 0) {
            return &m->vars[i].attr;
        }
    }
    return NULL;
}

double kn_match_number(const kn_match *m, const char *name, double otherwise)
{
    const kn_attr *attr = kn_match_attr(m, name);
    int64_t v;
    if (attr && attr->kind == KN_A_INDEX && kn_index_const(attr->index, &v)) {
        return (double)v;
    }
    return attr && attr->kind == KN_A_FLOAT ? attr->f : otherwise;
}

void kn_match_set(kn_match *m, const char *name, kn_value *v)
{
    for (int i = 0; i < m->rule->nslots; i++) {
        if (m->rule->names[i] && strcmp(m->rule->names[i], name) == 0) {
            m->values[i] = v;
            return;
        }
    }
    assert(!"no such name in the rule");
}

void kn_match_set_attr(kn_match *m, const char *name, kn_attr attr)
{
    kn_match_name *var = kn_match_find_name(m, name);
    if (!var) {
        assert(m->nvars < KN_MAX_VARS);
        var = &m->vars[m->nvars++];
    }
    if (attr.kind == KN_A_INDEX && !attr.index) {
        attr.index = kn_index(m->rw->g->arena, attr.i);
    }
    *var = (kn_match_name){name, attr, NULL};
}

kn_value *kn_match_node(kn_match *m, const char *op, kn_value *const *inputs, int n,
                        const kn_attr *attrs, int nattrs)
{
    const kn_node *old = m->root->def;
    return kn_graph_result(m->rw->g, &(kn_node_spec){.op = op,
                                                     .name = old->name,
                                                     .inputs = inputs,
                                                     .ninputs = n,
                                                     .attrs = attrs,
                                                     .nattrs = nattrs,
                                                     .noutputs = 1,
                                                     .loc = old->loc});
}

bool kn_same_shape(const kn_value *x, const kn_value *y)
{
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank; i++) {
        same = kn_expr_equal(x->shape[i], y->shape[i]);
    }
    return same;
}

bool kn_broadcasts_to(const kn_value *x, const kn_expr *const *shape, int rank)
{
    bool fits = x->rank <= rank;
    for (int i = 0; fits && i < x->rank; i++) {
        fits = kn_index_is(x->shape[i], 1) || kn_expr_equal(x->shape[i], shape[rank - x->rank + i]);
    }
    return fits;
}
