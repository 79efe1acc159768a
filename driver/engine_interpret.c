/* The interpreter as an engine: the model's graph, node by node, by the reference lowering. */
#include "driver/engine_internal.h"

/* The program's dims and computed sizes in the order of the graph's. */
static int64_t *graph_sizes(kn_arena *a, const kn_checked *c)
{
    const kn_graph *g = c->model->graph;
    int64_t *sizes = KN_ARRAY(a, int64_t, g->nsizes + 1);
    int given = 0;
    for (int i = 0; i < g->nsizes; i++) {
        sizes[i] = g->sources[i].value ? 0 : c->sizes[given++];
    }
    return sizes;
}

static void body(void *env)
{
    const kn_checked *c = env;
    const kn_graph *g = c->model->graph;
    kn_arena *scratch = kn_arena_create(c->model->ctx);
    kn_memory *memory = KN_ARRAY(scratch, kn_memory, g->ninputs + g->noutputs + 2);
    int count = g->ninputs + g->noutputs + (c->program->ncomputed > 0);
    for (int i = 0; i < count; i++) {
        memory[i] = (kn_memory){c->io[i].data, c->io[i].bytes};
    }
    int64_t *sizes = graph_sizes(scratch, c);
    kn_graph_interpret(c->model->ctx, g, sizes, memory, memory + g->ninputs);
    int64_t *computed = c->program->ncomputed ? c->io[g->ninputs + g->noutputs].data : NULL;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            *computed++ = sizes[i];
        }
    }
    kn_release(c->model->ctx, scratch);
}

void kn_engine_interpret(kn_program *p, kn_model *model)
{
    kn_engine_checked(p, model, body, NULL);
}
