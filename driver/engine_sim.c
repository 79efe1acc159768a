/* The simulator as an engine, functional: the lowered module, interpreted. What the target's
   instructions do comes from their semantics, on-chip spaces are apart and watched
   (ir/interp_space.c); what is in no instruction runs on the core pipe. It counts no cycles yet. */
#include "driver/engine_internal.h"

typedef struct {
    kn_interp *interp;
    const kn_func *main;
} kn_simulated;

static kn_memory argument(const kn_checked *c, const kn_param *p, int *in, int *out, int *constant)
{
    if (p->mode == KN_PARAM_CONST) {
        const kn_value *v = c->model->graph->consts[(*constant)++];
        return (kn_memory){(void *)(uintptr_t)v->data, v->bytes};
    }
    const kn_span *io =
        p->mode == KN_PARAM_IN ? &c->io[(*in)++] : &c->io[c->program->ninputs + (*out)++];
    return (kn_memory){io->data, io->bytes};
}

static void body(void *env)
{
    const kn_checked *c = env;
    const kn_simulated *s = c->code;
    const kn_func *f = s->main;
    kn_ctx *ctx = c->model->ctx;
    kn_arena *scratch = kn_arena_create(ctx);
    kn_memory *buffers = KN_ARRAY(scratch, kn_memory, f->nparams + 1);
    int n = 0, in = 0, out = 0, constant = 0;
    for (int i = 0; i < f->nparams; i++) {
        if (f->params[i].mode != KN_PARAM_SCALAR) {
            buffers[n++] = argument(c, &f->params[i], &in, &out, &constant);
        }
    }
    kn_interp_run(ctx, s->interp, c->sizes, f->nparams - n, buffers, n);
    kn_release(ctx, scratch);
}

void kn_engine_sim(kn_program *p, kn_model *model, const kn_unit *u)
{
    kn_simulated *s = KN_NEW(p->arena, kn_simulated);
    s->main = kn_module_main(u->module);
    kn_module_verify(p->ctx, u->module);
    s->interp = kn_interp_compile(p->arena, u->module, s->main);
    kn_engine_checked(p, model, body, s);
}
