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
    bool found, everywhere[KN_MAX_RANK], var_elsewhere;
    bool removed[KN_MAX_RANK];
} kn_contraction;

/* ---- uses ---- */

static void see_access(kn_contraction *c, const kn_expr *const *subs, int n)
{
    c->found = true;
    for (int i = 0; i < n && c->var; i++) {
        bool is_var = subs[i]->kind == KN_E_VAR && subs[i]->name == c->var;
        c->everywhere[i] = c->everywhere[i] && is_var;
        c->var_elsewhere = c->var_elsewhere || (!c->removed[i] && kn_expr_uses(subs[i], c->var));
    }
}

static void see_load(void *env, const kn_expr *e)
{
    kn_contraction *c = env;
    if (e->kind == KN_E_LOAD && e->name == c->name) {
        see_access(c, e->args, e->nargs);
    }
}

static void see_expr(kn_contraction *c, const kn_expr *e)
{
    if (e) {
        kn_expr_visit(e, see_load, c);
    }
}

static void see_block(kn_contraction *c, kn_block b);

static void see_statement(kn_contraction *c, const kn_loop *s)
{
    see_expr(c, s->lo);
    see_expr(c, s->hi);
    see_expr(c, s->expr);
    for (int i = 0; i < s->nargs; i++) {
        see_expr(c, s->args[i]);
    }
    if (s->kind == KN_S_STORE && s->name == c->name) {
        see_access(c, s->args, s->nargs);
    }
    see_block(c, s->body);
    see_block(c, s->orelse);
}

static void see_block(kn_contraction *c, kn_block b)
{
    for (int i = 0; i < b.n; i++) {
        see_statement(c, b.at[i]);
    }
}

static bool uses(kn_contraction *c, const kn_loop *s)
{
    c->found = false;
    c->var = NULL;
    see_statement(c, s);
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

static const kn_expr *rewritten(kn_contraction *c, const kn_expr *e)
{
    return e ? kn_expr_rewrite(c->arena, e, drop_subscripts, c) : NULL;
}

static void rewrite_block(kn_contraction *c, kn_block b)
{
    for (int i = 0; i < b.n; i++) {
        kn_loop *s = b.at[i];
        s->expr = rewritten(c, s->expr);
        if (s->nargs) {
            const kn_expr **args = KN_ARRAY(c->arena, const kn_expr *, s->nargs);
            for (int k = 0; k < s->nargs; k++) {
                args[k] = rewritten(c, s->args[k]);
            }
            s->args = args;
        }
        if (s->kind == KN_S_STORE && s->name == c->name) {
            s->args = without_removed(c, s->args, s->nargs, &s->nargs);
        }
        rewrite_block(c, s->body);
        rewrite_block(c, s->orelse);
    }
}

/* ---- one temporary ---- */

/* The dimension that a loop walks alone in every access inside it, or -1. */
static int walked_dimension(kn_contraction *c, const kn_loop *loop, int rank)
{
    c->var = loop->name;
    c->var_elsewhere = false;
    for (int i = 0; i < rank; i++) {
        c->everywhere[i] = !c->removed[i];
    }
    see_block(c, loop->body);
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
    rewrite_block(&c, *b);
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
static bool has_calls(kn_block b)
{
    bool found = false;
    for (int i = 0; i < b.n && !found; i++) {
        const kn_loop *s = b.at[i];
        found = s->kind == KN_S_CALL || s->kind == KN_S_VIEW || has_calls(s->body) ||
                has_calls(s->orelse);
    }
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
