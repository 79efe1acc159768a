/* Which outputs are updated in place. An output that aliases an input is written in the input's memory
   by its node only when the node is such an update and the last reader; else it is computed beside,
   and copied when nobody reads the input any more. */
#include "passes/schedule/schedule.h"

/* Whether the node that makes a value updates `in` for it, by its meaning, and reads it in no other
   way. */
static bool updates(kn_arena *a, const kn_graph *g, const kn_value *out, const kn_value *in)
{
    const kn_nest *nest = kn_node_nest(a, g, out->def);
    const kn_bound_tensor *bound = kn_node_bind(a, out->def, nest);
    int uses = 0;
    bool found = false;
    for (int t = 0; t < nest->ntensors; t++) {
        found = found || (bound[t].value == out && bound[t].initial == in);
        uses += bound[t].value == in || bound[t].initial == in;
    }
    return found && uses == 1;
}

/* Whether nobody reads `in` once the group of `n` runs: neither a later group, nor another node of
   it, nor through a view, nor as an output of the graph. */
static bool is_last_reader(const kn_graph *g, const kn_node *n, const kn_value *in)
{
    for (int i = 0; i < g->noutputs; i++) {
        if (g->outputs[i] == in) {
            return false;
        }
    }
    for (int i = 0; i < g->nnodes; i++) {
        const kn_node *reader = g->nodes[i];
        for (int k = 0; k < reader->ninputs; k++) {
            bool early = reader == n || (reader->group < n->group && !kn_node_is_alias(reader));
            if (reader->inputs[k] == in && !early) {
                return false;
            }
        }
    }
    return true;
}

kn_map kn_in_place_outputs(kn_arena *a, const kn_graph *g)
{
    kn_map found = kn_map_make(a);
    for (int i = 0; i < g->noutputs; i++) {
        kn_value *out = g->outputs[i];
        const kn_value *in = g->aliases[i];
        if (in && out->def && !kn_node_is_alias(out->def) && updates(a, g, out, in) &&
            is_last_reader(g, out->def, in)) {
            kn_map_set(&found, out->name, out);
        }
    }
    return found;
}
