/* The function around a nest's loops, however these came to be: parameters, what the sizes must
   satisfy, temporaries; and how a subscript outside its tensor is told. */
#include "ir/loop.h"

static kn_buffer buffer_of(kn_ctx *ctx, const kn_tensor *t)
{
    return (kn_buffer){.name = t->name,
                       .type = t->type,
                       .rank = t->rank,
                       .shape = (const kn_expr *const *)t->shape,
                       .space = t->space ? t->space : kn_intern(ctx, "ddr")};
}

static void add_params(kn_arena *a, kn_func *f, const kn_nest *nest)
{
    static const kn_param_mode modes[] = {
        [KN_ROLE_IN] = KN_PARAM_IN, [KN_ROLE_OUT] = KN_PARAM_OUT, [KN_ROLE_INOUT] = KN_PARAM_INOUT};
    f->params = KN_ARRAY(a, kn_param, nest->nsizes + nest->ntensors + 1);
    for (int i = 0; i < nest->nsizes; i++) {
        const kn_size *z = &nest->sizes[i];
        f->params[f->nparams++] =
            (kn_param){.buffer = {.name = z->name, .type = KN_INDEX}, .lo = z->lo, .hi = z->hi};
    }
    for (int i = 0; i < nest->ntensors; i++) {
        const kn_tensor *t = &nest->tensors[i];
        if (t->role != KN_ROLE_TEMP)
            f->params[f->nparams++] =
                (kn_param){.mode = modes[t->role], .buffer = buffer_of(kn_arena_ctx(a), t)};
    }
}

void kn_nest_require(kn_block_builder *b, const kn_nest *nest, kn_loc loc)
{
    for (int i = 0; i < nest->nrequires; i++) {
        kn_str text = kn_str_make(b->arena);
        kn_putf(&text, "%s: required: ", nest->name);
        kn_expr_print(&text, nest->requires_[i], false);
        const char *message = kn_intern(kn_arena_ctx(b->arena), kn_str_get(&text));
        kn_loop *check = kn_loop_check(b->arena, nest->requires_[i], message);
        check->loc = loc;
        kn_block_add(b, check);
    }
}

static void add_temporaries(kn_arena *a, kn_block_builder *b, const kn_nest *nest, kn_loc loc)
{
    for (int i = 0; i < nest->ntensors; i++) {
        if (nest->tensors[i].role == KN_ROLE_TEMP) {
            kn_loop *alloc = kn_loop_alloc(a, buffer_of(kn_arena_ctx(a), &nest->tensors[i]));
            alloc->loc = loc;
            kn_block_add(b, alloc);
        }
    }
}

kn_func *kn_nest_func(kn_arena *a, const kn_nest *nest, kn_block loops)
{
    kn_func *f = KN_NEW(a, kn_func);
    kn_block_builder b = {.arena = a};
    if (nest->opaque) {
        *f = *nest->opaque;
        loops = f->body;
        kn_nest_require(&b, nest, f->loc);
    } else {
        f->name = nest->name;
        f->loc = nest->nstmts ? nest->stmts[0].loc : kn_loc_none();
        add_params(a, f, nest);
        kn_nest_require(&b, nest, f->loc);
        add_temporaries(a, &b, nest, f->loc);
    }
    for (int i = 0; i < loops.n; i++)
        kn_block_add(&b, loops.at[i]);
    f->body = kn_block_done(&b);
    return f;
}

kn_loop *kn_nest_bounds_check(kn_arena *a, const kn_nest *nest, const char *tensor,
                              const kn_expr *inside)
{
    return kn_loop_check(
        a, inside,
        kn_intern_f(kn_arena_ctx(a), "%s: an index into %s is out of range", nest->name, tensor));
}
