/* Temporaries shrink. A kernel starts with every temporary as large as the notation says; after
   fusion, one iteration of a loop often writes and reads only its own part. Where all uses of a
   temporary lie in one loop, and its variable stands alone in the same subscript of each of them,
   that dimension goes and the allocation moves into the loop: the sum of a matmul becomes a scalar,
   the exponentials of a softmax one row. */
#include "passes/passes.h"

typedef struct {
    kn_arena *arena;
    const char *name;
    /* While looking: the dimensions that are still there, and those at which every access has
     * `var`. */
    const char *var;
    bool found, everywhere[KN_MAX_RANK];
    bool removed[KN_MAX_RANK];
} kn_contraction;

/* ---- uses ---- */

static void see_use(void *env, kn_buffer_use use)
{
    kn_contraction *c = env;
    if (use.buffer != c->name) {
        return;
    }
    c->found = true;
    for (int i = 0; i < use.nsubs && c->var; i++) {
        const kn_expr *sub = use.subs[i];
        bool is_var = sub->kind == KN_E_VAR && sub->name == c->var;
        c->everywhere[i] = c->everywhere[i] && is_var;
    }
}

static bool uses(kn_contraction *c, kn_loop *s)
{
    c->found = false;
    c->var = NULL;
    kn_loop_uses(s, see_use, c);
    return c->found;
}

/* ---- rewriting ---- */

static const kn_expr *const *without_removed(kn_contraction *c, const kn_expr *const *subs, int n,
                                             int *kept)
{
    const kn_expr **out = KN_ARRAY(c->arena, const kn_expr *, n + 1);
    *kept = 0;
    for (int i = 0; i < n; i++) {
        if (!c->removed[i]) {
            out[(*kept)++] = subs[i];
        }
    }
    return out;
}

static const kn_expr *drop_subscripts(void *env, const kn_expr *e)
{
    kn_contraction *c = env;
    if (e->kind != KN_E_LOAD || e->name != c->name) {
        return e;
    }
    int n;
    const kn_expr *const *subs = without_removed(c, e->args, e->nargs, &n);
    return kn_load(c->arena, e->type, e->name, subs, n);
}

static const kn_expr *rewritten(void *env, const kn_expr *e)
{
    kn_contraction *c = env;
    return kn_expr_rewrite(c->arena, e, drop_subscripts, c);
}

static void rewrite_target(void *env, kn_loop *s)
{
    kn_contraction *c = env;
    if (s->kind == KN_S_STORE && s->name == c->name) {
        s->args = without_removed(c, s->args, s->nargs, &s->nargs);
    }
}

/* ---- one temporary ---- */

/* The dimension that a loop walks alone in every access inside it, or -1. */
static int walked_dimension(kn_contraction *c, const kn_loop *loop, int rank)
{
    c->var = loop->name;
    for (int i = 0; i < rank; i++) {
        c->everywhere[i] = !c->removed[i];
    }
    for (int i = 0; i < loop->body.n; i++) {
        kn_loop_uses(loop->body.at[i], see_use, c);
    }
    for (int i = 0; i < rank; i++) {
        if (c->everywhere[i]) {
            return i;
        }
    }
    return -1;
}

/* The only statement of a block that uses the temporary, or NULL; *first is where the uses start.
 */
static kn_loop *only_user(kn_contraction *c, const kn_block *b, int *first)
{
    kn_loop *user = NULL;
    int count = 0;
    for (int i = b->n - 1; i >= 0; i--) {
        if (uses(c, b->at[i])) {
            user = b->at[i];
            *first = i;
            count++;
        }
    }
    return count == 1 ? user : NULL;
}

static void insert(kn_arena *a, kn_block *b, int at, kn_loop *s)
{
    kn_loop **list = KN_ARRAY(a, kn_loop *, b->n + 1);
    memcpy(list, b->at, (size_t)at * sizeof *list);
    list[at] = s;
    if (b->n > at) {
        memcpy(list + at + 1, b->at + at, (size_t)(b->n - at) * sizeof *list);
    }
    *b = (kn_block){list, b->n + 1};
}

static void contract(kn_arena *a, kn_block *body, kn_loop *alloc)
{
    kn_contraction c = {.arena = a, .name = alloc->buffer.name};
    kn_block *b = body;
    int first = 0;
    for (kn_loop *user = only_user(&c, b, &first); user && user->kind == KN_S_FOR;
         user = only_user(&c, b, &first)) {
        int dim = walked_dimension(&c, user, alloc->buffer.rank);
        if (dim < 0) {
            break;
        }
        c.removed[dim] = true;
        b = &user->body;
    }
    kn_buffer *buffer = &alloc->buffer;
    buffer->shape = without_removed(&c, buffer->shape, buffer->rank, &buffer->rank);
    kn_block_map(a, *b, rewritten, &c);
    kn_block_visit(*b, rewrite_target, &c);
    insert(a, b, first, alloc);
}

static void contract_function(kn_arena *a, kn_func *f)
{
    kn_block old = f->body;
    kn_block_builder rest = {.arena = a}, allocs = {.arena = a};
    for (int i = 0; i < old.n; i++) {
        kn_block_add(old.at[i]->kind == KN_S_ALLOC ? &allocs : &rest, old.at[i]);
    }
    f->body = kn_block_done(&rest);
    for (int i = allocs.n - 1; i >= 0; i--) {
        contract(a, &f->body, allocs.at[i]);
    }
}

/* Functions that call others are left alone: what a callee does to a buffer is not seen here. */
static void see_call(void *env, kn_loop *s)
{
    bool *found = env;
    *found = *found || s->kind == KN_S_CALL || s->kind == KN_S_VIEW;
}

static bool has_calls(kn_block b)
{
    bool found = false;
    kn_block_visit(b, see_call, &found);
    return found;
}

void kn_pass_contract(kn_unit *u)
{
    for (int i = 0; i < u->module->nfuncs; i++) {
        kn_func *f = u->module->funcs[i];
        if (!has_calls(f->body)) {
            contract_function(u->arena, f);
        }
    }
}
