/* The simulator as an engine, functional: the lowered module, interpreted. What the target's
   instructions do comes from their semantics, on-chip spaces are apart and watched
   (ir/interp_space.c); what is in no instruction runs on the core pipe. It works in the context of
   the model, one run at a time, whoever calls. Cycles come with issue 4. */
#include <pthread.h>

#include "driver/driver.h"

typedef struct {
    kn_program *program;
    kn_model *model;
    kn_interp *interp;
    const kn_func *main;
    pthread_mutex_t mutex;
    /* The run at hand. */
    const kn_span *io;
    const int64_t *sizes;
} kn_simulating;

static kn_memory argument(const kn_simulating *s, const kn_param *p, int *in, int *out,
                          int *constant)
{
    if (p->mode == KN_PARAM_CONST) {
        const kn_value *v = s->model->graph->consts[(*constant)++];
        return (kn_memory){(void *)(uintptr_t)v->data, v->bytes};
    }
    const kn_span *io =
        p->mode == KN_PARAM_IN ? &s->io[(*in)++] : &s->io[s->program->ninputs + (*out)++];
    return (kn_memory){io->data, io->bytes};
}

static void body(void *env)
{
    kn_simulating *s = env;
    const kn_func *f = s->main;
    kn_ctx *ctx = s->model->ctx;
    kn_arena *scratch = kn_arena_create(ctx);
    kn_memory *buffers = KN_ARRAY(scratch, kn_memory, f->nparams + 1);
    int n = 0, in = 0, out = 0, constant = 0;
    for (int i = 0; i < f->nparams; i++) {
        if (f->params[i].mode != KN_PARAM_SCALAR) {
            buffers[n++] = argument(s, &f->params[i], &in, &out, &constant);
        }
    }
    kn_interp_run(ctx, s->interp, s->sizes, f->nparams - n, buffers, n);
    kn_release(ctx, scratch);
}

static void run(void *env, kn_ctx *ctx, const kn_span *io, const int64_t *sizes, void *workspace)
{
    kn_simulating *s = env;
    (void)workspace;
    pthread_mutex_lock(&s->mutex);
    s->io = io;
    s->sizes = sizes;
    kn_ctx *own = s->model->ctx;
    kn_status status = kn_protect(own, body, s);
    const kn_diag *d =
        status != KN_OK && ctx != own ? kn_diag_get(own, kn_diag_count(own) - 1) : NULL;
    const char *message = d ? kn_intern(ctx, d->message) : NULL;
    pthread_mutex_unlock(&s->mutex);
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
    kn_simulating *s = resource;
    pthread_mutex_destroy(&s->mutex);
    kn_driver_release(s->model);
}

void kn_engine_sim(kn_program *p, kn_model *model, const kn_unit *u)
{
    kn_simulating *s = KN_NEW(p->arena, kn_simulating);
    s->program = p;
    s->model = model;
    s->main = u->module->funcs[u->module->nfuncs - 1];
    kn_module_verify(p->ctx, u->module);
    s->interp = kn_interp_compile(p->arena, u->module, s->main);
    pthread_mutex_init(&s->mutex, NULL);
    model->references++;
    p->engine = (kn_engine){s, run, workspace_bytes};
    p->resource = s;
    p->destroy = destroy;
}
