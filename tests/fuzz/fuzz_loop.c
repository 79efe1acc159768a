/* Any text as a module of the loop IR: refused with a message, or one whose text reads back to
   itself. If it verifies, its functions are interpreted for a few steps on small buffers: whatever
   they do, every access is caught or inside. */
#include <stdlib.h>

#include "ir/loop.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { BYTES = 96, STEPS = 2000, MAX_PARAMS = 16 };

typedef struct {
    kn_ctx *ctx;
    const char *text;
    size_t size;
    const kn_module *module;
    const kn_func *func;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const char *printed(kn_arena *a, const kn_module *m)
{
    kn_str s = kn_str_make(a);
    kn_module_print(&s, m);
    return kn_str_get(&s);
}

static void read_input(void *arg)
{
    input *in = arg;
    in->module = kn_module_parse(kn_arena_create(in->ctx), "input", in->text, in->size);
}

static void reread(void *arg)
{
    const input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const char *once = printed(a, in->module);
    const kn_module *again = kn_module_parse(a, "again", once, strlen(once));
    require(strcmp(printed(a, again), once) == 0);
}

static void verify(void *arg)
{
    const input *in = arg;
    kn_module_verify(in->ctx, in->module);
}

/* A buffer in a piece of memory of its own, so that a sanitizer sees its ends. */
static void interpret(void *arg)
{
    const input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    kn_interp *interp = kn_interp_compile(a, in->module, in->func);
    int64_t scalars[MAX_PARAMS];
    kn_memory buffers[MAX_PARAMS];
    int nscalars = 0, nbuffers = 0;
    for (int i = 0; i < in->func->nparams; i++) {
        if (in->func->params[i].mode == KN_PARAM_SCALAR)
            scalars[nscalars++] = 3 - i % 2;
        else
            buffers[nbuffers++] = (kn_memory){kn_alloc(a, BYTES), BYTES};
    }
    kn_interp_limit(interp, STEPS);
    kn_interp_run(in->ctx, interp, scalars, nscalars, buffers, nbuffers);
    kn_arena_destroy(a);
}

/* Large allocs are a matter of memory, not of what is looked for here. */
static bool allocates_little(const kn_block *b)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        int64_t size = 1, extent;
        for (int d = 0; s->kind == KN_S_ALLOC && d < s->buffer.rank; d++) {
            bool known = kn_index_const(s->buffer.shape[d], &extent) && extent < 100;
            size = known && size < 10000 ? size * extent : 100000;
        }
        if (size > 10000 || !allocates_little(&s->body) || !allocates_little(&s->orelse))
            return false;
    }
    return true;
}

static void interpret_all(input *in)
{
    for (int i = 0; i < in->module->nfuncs; i++) {
        if (!allocates_little(&in->module->funcs[i]->body))
            return;
    }
    for (int i = 0; i < in->module->nfuncs; i++) {
        in->func = in->module->funcs[i];
        if (in->func->nparams > MAX_PARAMS)
            continue;
        kn_status status = kn_protect(in->ctx, interpret, in);
        require(status == KN_OK || status == KN_INVALID);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .text = (const char *)data, .size = size};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    if (status == KN_OK) {
        require(kn_protect(in.ctx, reread, &in) == KN_OK);
        if (kn_protect(in.ctx, verify, &in) == KN_OK)
            interpret_all(&in);
    }
    kn_ctx_destroy(in.ctx);
    return 0;
}
