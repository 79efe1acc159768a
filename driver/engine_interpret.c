/* The interpreter as an engine: the model's graph, node by node, by the reference lowering. It
   works in the context of the model, one run at a time, whoever calls. */
#include <pthread.h>

#include "driver/driver.h"

typedef struct {
    kn_program *program;
    kn_model *model;
    pthread_mutex_t mutex;
    /* The run at hand. */
    const kn_span *io;
    const int64_t *sizes;
} kn_interpreting;

/* The program's dims and computed sizes in the order of the graph's. */
static int64_t *graph_sizes(kn_arena *a, const kn_interpreting *it)
{
    const kn_graph *g = it->model->graph;
    int64_t *sizes = KN_ARRAY(a, int64_t, g->nsizes + 1);
    int given = 0;
    for (int i = 0; i < g->nsizes; i++) {
        sizes[i] = g->sources[i].value ? 0 : it->sizes[given++];
    }
    return sizes;
}

static void body(void *env)
{
    kn_interpreting *it = env;
    const kn_graph *g = it->model->graph;
    kn_arena *scratch = kn_arena_create(it->model->ctx);
    kn_memory *memory = KN_ARRAY(scratch, kn_memory, g->ninputs + g->noutputs + 2);
    int count = g->ninputs + g->noutputs + (it->program->ncomputed > 0);
    for (int i = 0; i < count; i++) {
        memory[i] = (kn_memory){it->io[i].data, it->io[i].bytes};
    }
    int64_t *sizes = graph_sizes(scratch, it);
    kn_graph_interpret(it->model->ctx, g, sizes, memory, memory + g->ninputs);
    int64_t *computed = it->program->ncomputed ? it->io[g->ninputs + g->noutputs].data : NULL;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            *computed++ = sizes[i];
        }
    }
    kn_release(it->model->ctx, scratch);
}

static void run(void *env, kn_ctx *ctx, const kn_span *io, const int64_t *sizes, void *workspace)
{
    kn_interpreting *it = env;
    (void)workspace;
    pthread_mutex_lock(&it->mutex);
    it->io = io;
    it->sizes = sizes;
    kn_ctx *own = it->model->ctx;
    kn_status status = kn_protect(own, body, it);
    const kn_diag *d =
        status != KN_OK && ctx != own ? kn_diag_get(own, kn_diag_count(own) - 1) : NULL;
    const char *message = d ? kn_intern(ctx, d->message) : NULL;
    pthread_mutex_unlock(&it->mutex);
    if (message) {
        kn_raise(ctx, status, kn_loc_none(), "%s", message);
    }
    if (status != KN_OK) {
        kn_raise_again(ctx, status);
    }
}

static int64_t workspace_bytes(void *env, const int64_t *sizes)
{
    (void)env;
    (void)sizes;
    return 0;
}

static void destroy(void *resource)
{
    kn_interpreting *it = resource;
    pthread_mutex_destroy(&it->mutex);
    kn_driver_release(it->model);
}

void kn_engine_interpret(kn_program *p, kn_model *model)
{
    kn_interpreting *it = KN_NEW(p->arena, kn_interpreting);
    it->program = p;
    it->model = model;
    pthread_mutex_init(&it->mutex, NULL);
    model->references++;
    p->engine = (kn_engine){it, run, workspace_bytes};
    p->resource = it;
    p->destroy = destroy;
}
