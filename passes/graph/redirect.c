#include "passes/graph/redirect.h"

void kn_redirect(kn_graph *g, kn_value *const *to, int n)
{
    for (int i = 0; i < g->nnodes; i++) {
        kn_node *node = g->nodes[i];
        for (int k = 0; k < node->ninputs; k++) {
            kn_value *v = node->inputs[k];
            if (v && v->id < n && to[v->id]) {
                node->inputs[k] = to[v->id];
            }
        }
    }
    for (int i = 0; i < g->noutputs; i++) {
        kn_value *v = g->outputs[i];
        if (v->id < n && to[v->id]) {
            kn_graph_replace(g, v, to[v->id]);
        }
    }
    for (int i = 0; i < g->nsizes; i++) {
        kn_value *v = g->sources[i].value;
        if (v && v->id < n && to[v->id]) {
            g->sources[i].value = to[v->id];
        }
    }
}
