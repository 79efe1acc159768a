/* Common subexpressions: constants with the same bytes, then nodes with the same op, operands and
   attributes, become one. What is the same is found by a text: operands stand in it by the id of
   the value that represents them. */
#include "passes/graph/redirect.h"
#include "passes/graph/rules.h"
#include "passes/passes.h"
#include "support/hash.h"

enum {
    SAMPLE = 4096
}; /* bytes of a large constant that its key is made of: weights are compared when these agree */

typedef KN_VEC(kn_value *) value_list;

typedef struct {
    kn_graph *g;
    kn_arena *a;
    kn_value **to; /* by value id: what it is the same as */
} merger;

static const kn_value *same_as(const merger *m, const kn_value *v)
{
    return m->to[v->id] ? m->to[v->id] : v;
}

/* ---- constants ---- */

static uint64_t hash_ends(const kn_value *v)
{
    size_t n = v->bytes < SAMPLE ? v->bytes : SAMPLE;
    uint64_t start = kn_hash64(v->data, n, 0);
    return kn_hash64((const char *)v->data + (v->bytes - n), n, start);
}

static const char *constant_key(const merger *m, const kn_value *v)
{
    kn_str key = kn_str_make(m->a);
    kn_putf(&key, "%s", kn_dtype_name(v->type));
    for (int i = 0; i < v->rank; i++) {
        kn_put_char(&key, ',');
        kn_expr_print(&key, v->shape[i], false);
    }
    kn_putf(&key, ":%016llx", (unsigned long long)(v->bytes ? hash_ends(v) : 0));
    return kn_str_get(&key);
}

static void merge_constants(merger *m)
{
    kn_map seen = kn_map_make(m->a);
    for (int i = 0; i < m->g->nconsts; i++) {
        kn_value *v = m->g->consts[i];
        const char *key = constant_key(m, v);
        value_list *like = kn_map_get(&seen, key);
        if (!like) {
            like = KN_NEW(m->a, value_list);
            kn_map_set(&seen, key, like);
        }
        for (int k = 0; k < like->n && !m->to[v->id]; k++) {
            kn_value *w = like->at[k];
            if (v->data == w->data || v->bytes == 0 || memcmp(v->data, w->data, v->bytes) == 0) {
                m->to[v->id] = w;
            }
        }
        if (!m->to[v->id]) {
            kn_push(m->a, like, v);
        }
    }
}

/* ---- nodes ---- */

static void put_attr(kn_str *key, const kn_attr *attr)
{
    kn_putf(key, ";%s=", attr->name);
    switch (attr->kind) {
    case KN_A_INDEX: kn_expr_print(key, attr->index, false); break;
    case KN_A_FLOAT: kn_put_float(key, attr->f, false); break;
    case KN_A_STRING: kn_put_quoted(key, attr->string, strlen(attr->string)); break;
    case KN_A_TYPE: kn_put(key, kn_dtype_name(attr->type)); break;
    case KN_A_INDEXES:
        for (int i = 0; i < attr->n; i++) {
            kn_expr_print(key, attr->indexes[i], false);
            kn_put_char(key, ',');
        }
        break;
    case KN_A_FLOATS:
        for (int i = 0; i < attr->n; i++) {
            kn_put_float(key, attr->floats[i], false);
            kn_put_char(key, ',');
        }
        break;
    }
}

static bool commutes(const kn_node *n)
{
    static const char *const ops[] = {"add", "mul", "and", "or", "xor", "equal", "not_equal"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (n->ninputs == 2 && strcmp(n->op->name, ops[i]) == 0) {
            return true;
        }
    }
    return false;
}

static const char *node_key(const merger *m, const kn_node *n)
{
    kn_str key = kn_str_make(m->a);
    kn_put(&key, n->op->name);
    if (strcmp(n->op->name, "notation") == 0) {
        kn_putf(&key, " %p %s", (const void *)n->notation, n->loops ? n->loops : "");
    }
    int last = n->ninputs - 1;
    bool turn = commutes(n) && same_as(m, n->inputs[0])->id > same_as(m, n->inputs[1])->id;
    for (int i = 0; i < n->ninputs; i++) {
        const kn_value *v = n->inputs[turn ? last - i : i];
        kn_putf(&key, " %d", v ? same_as(m, v)->id : -1);
    }
    for (int i = 0; i < n->nattrs; i++) {
        put_attr(&key, &n->attrs[i]);
    }
    return kn_str_get(&key);
}

static bool same_results(const kn_node *x, const kn_node *y)
{
    bool same = x->noutputs == y->noutputs;
    for (int i = 0; same && i < x->noutputs; i++) {
        same = x->outputs[i]->type == y->outputs[i]->type &&
               kn_same_shape(x->outputs[i], y->outputs[i]);
    }
    return same;
}

/* An identity is there to give an output its name. */
static void merge_nodes(merger *m)
{
    kn_map seen = kn_map_make(m->a);
    for (int i = 0; i < m->g->nnodes; i++) {
        kn_node *n = m->g->nodes[i];
        if (strcmp(n->op->name, "identity") == 0) {
            continue;
        }
        const char *key = node_key(m, n);
        const kn_node *first = kn_map_get(&seen, key);
        if (!first) {
            kn_map_set(&seen, key, n);
        } else if (same_results(first, n)) {
            for (int r = 0; r < n->noutputs; r++) {
                m->to[n->outputs[r]->id] = first->outputs[r];
            }
        }
    }
}

void kn_pass_cse(kn_unit *u)
{
    kn_arena *a = kn_arena_create(u->ctx);
    int n = u->graph->nvalues;
    merger m = {.g = u->graph, .a = a, .to = KN_ARRAY(a, kn_value *, n)};
    merge_constants(&m);
    merge_nodes(&m);
    kn_redirect(u->graph, m.to, n);
    kn_graph_sweep(u->graph);
    kn_release(u->ctx, a);
}
