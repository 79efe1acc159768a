/* Where temporaries live. Those of a kernel that are small and of constant size go to @local (the C
   compiler's registers and stack); the others become parameters, allocated by the caller, so that
   one plan covers all of main memory and kernels allocate nothing. */
#include "passes/passes.h"

enum { MAX_LOCAL_BYTES = 4096 };

typedef struct {
    kn_unit *unit;
    const char *local;
    KN_VEC(kn_buffer) moved; /* allocations of the function at hand that became parameters */
} kn_scratch;

static int64_t constant_bytes(const kn_buffer *b)
{
    int64_t count = 1, dim;
    for (int i = 0; i < b->rank; i++) {
        if (!kn_index_const(b->shape[i], &dim) || dim > MAX_LOCAL_BYTES) {
            return INT64_MAX;
        }
        count *= dim;
        if (count > MAX_LOCAL_BYTES) {
            return INT64_MAX;
        }
    }
    return kn_dtype_bytes(b->type, count);
}

static kn_block move_allocations(kn_scratch *s, kn_block b)
{
    kn_block_builder out = {.arena = s->unit->arena};
    for (int i = 0; i < b.n; i++) {
        kn_loop *st = b.at[i];
        bool alloc = st->kind == KN_S_ALLOC && st->buffer.space != s->local;
        if (alloc && constant_bytes(&st->buffer) > MAX_LOCAL_BYTES) {
            kn_push(s->unit->arena, &s->moved, st->buffer);
            continue;
        }
        if (alloc) {
            st->buffer.space = s->local;
        }
        st->body = move_allocations(s, st->body);
        st->orelse = move_allocations(s, st->orelse);
        kn_block_add(&out, st);
    }
    return kn_block_done(&out);
}

static void append_parameters(kn_scratch *s, kn_func *f)
{
    kn_arena *a = s->unit->arena;
    kn_param *params = KN_ARRAY(a, kn_param, f->nparams + s->moved.n + 1);
    memcpy(params, f->params, (size_t)f->nparams * sizeof *params);
    for (int i = 0; i < s->moved.n; i++) {
        params[f->nparams + i] = (kn_param){.mode = KN_PARAM_INOUT, .buffer = s->moved.at[i]};
    }
    f->params = params;
    f->nparams += s->moved.n;
}

/* The callee's sizes as the caller passes them. */
static kn_binding *size_bindings(kn_arena *a, const kn_func *f, const kn_loop *call, int *n)
{
    kn_binding *b = KN_ARRAY(a, kn_binding, f->nparams + 1);
    *n = 0;
    for (int i = 0; i < call->nargs; i++) {
        if (f->params[i].mode == KN_PARAM_SCALAR) {
            b[(*n)++] = (kn_binding){f->params[i].buffer.name, call->args[i]};
        }
    }
    return b;
}

/* Allocates before one call what its callee wants besides the arguments that it has. */
static void supply(kn_scratch *s, kn_block_builder *out, const kn_func *f, kn_loop *call)
{
    kn_arena *a = s->unit->arena;
    const kn_expr **args = KN_ARRAY(a, const kn_expr *, f->nparams + 1);
    memcpy(args, call->args, (size_t)call->nargs * sizeof *args);
    int nbindings;
    const kn_binding *bindings = size_bindings(a, f, call, &nbindings);
    for (int i = call->nargs; i < f->nparams; i++) {
        kn_buffer buffer = f->params[i].buffer;
        const kn_expr **shape = KN_ARRAY(a, const kn_expr *, buffer.rank + 1);
        for (int k = 0; k < buffer.rank; k++) {
            shape[k] = kn_expr_subst(a, buffer.shape[k], bindings, nbindings);
        }
        buffer.name = kn_intern_f(s->unit->ctx, "scratch%d_%s", out->n, buffer.name);
        buffer.shape = shape;
        kn_block_add(out, kn_loop_alloc(a, buffer));
        args[i] = kn_load(a, buffer.type, buffer.name, NULL, 0);
    }
    call->args = args;
    call->nargs = f->nparams;
}

static void supply_calls(kn_scratch *s, kn_func *main)
{
    kn_block_builder out = {.arena = s->unit->arena};
    for (int i = 0; i < main->body.n; i++) {
        kn_loop *st = main->body.at[i];
        const kn_func *f = st->kind == KN_S_CALL ? kn_module_find(s->unit->module, st->name) : NULL;
        if (f && st->nargs < f->nparams) {
            supply(s, &out, f, st);
        }
        kn_block_add(&out, st);
    }
    main->body = kn_block_done(&out);
}

void kn_pass_scratch(kn_unit *u)
{
    kn_scratch s = {.unit = u, .local = kn_intern(u->ctx, "local")};
    kn_module *m = u->module;
    for (int i = 0; i + 1 < m->nfuncs; i++) {
        s.moved.n = 0;
        m->funcs[i]->body = move_allocations(&s, m->funcs[i]->body);
        append_parameters(&s, m->funcs[i]);
    }
    if (m->nfuncs) {
        supply_calls(&s, kn_module_main(m));
    }
}
