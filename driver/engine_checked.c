/* What the engines that interpret share: they work in the context of the model, one run at a time,
   whoever calls; what a run raises there is told to the caller's context. */
#include "driver/engine_internal.h"

#include <stdio.h>

static void run(void *env, kn_ctx *ctx, const kn_span *io, const int64_t *sizes, void *workspace)
{
    kn_checked *c = env;
    kn_ctx *own = c->model->ctx;
    char message[1024] = "";
    (void)workspace;
    pthread_mutex_lock(&c->mutex);
    c->io = io;
    c->sizes = sizes;
    kn_status status = kn_protect(own, c->body, c);
    const kn_diag *d = status != KN_OK ? kn_diag_get(own, kn_diag_count(own) - 1) : NULL;
    if (d && ctx != own) {
        snprintf(message, sizeof message, "%s", d->message);
    }
    pthread_mutex_unlock(&c->mutex);
    if (message[0]) {
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
    kn_checked *c = resource;
    pthread_mutex_destroy(&c->mutex);
    kn_driver_release(c->model);
}

void kn_engine_checked(kn_program *p, kn_model *model, void (*body)(void *), const void *code)
{
    kn_checked *c = KN_NEW(p->arena, kn_checked);
    c->program = p;
    c->model = model;
    c->body = body;
    c->code = code;
    pthread_mutex_init(&c->mutex, NULL);
    model->references++;
    p->engine = (kn_engine){c, run, workspace_bytes};
    p->resource = c;
    p->destroy = destroy;
}
