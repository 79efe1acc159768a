/* Temporaries shrink. A kernel starts with every temporary as large as the notation says; after
   fusion and tiling, one iteration of a loop often writes and reads only its own part. Where all uses
   of a temporary lie in one loop over v, and all of them subscript one dimension by c v + rest with
   rest in 0:c, each iteration has c elements of its own there: the dimension shrinks to c, or goes
   when c is 1, and the allocation moves into the loop. The sum of a matmul becomes a scalar or a
   tile, the exponentials of a softmax one row. */
#include "passes/passes.h"

typedef struct {
    kn_arena *arena;
    KN_VEC(kn_size) ranges;    /* of the sizes and of the loops' variables */
    const char *name;          /* of the temporary */
    const char *var;           /* of the loop at hand, or NULL: no more than `found` is asked */
    int64_t step[KN_MAX_RANK]; /* c, per dimension; 0: none seen yet, -1: there is none */
    int dim;                   /* the one that shrinks */
    bool found;
} kn_contraction;

/* ---- uses ---- */

enum { MAX_TERMS = 16 };

/* c of a subscript c v + rest, or -1. */
static int64_t step_of(const kn_contraction *c, const kn_expr *sub)
{
    int64_t constant, coef[MAX_TERMS], step = -1;
    const kn_expr *term[MAX_TERMS];
    int n = kn_index_terms(c->arena, sub, &constant, coef, term, MAX_TERMS);
    for (int i = 0; i < n; i++) {
        if (term[i]->kind == KN_E_VAR && term[i]->name == c->var) {
            step = coef[i];
        }
    }
    if (step <= 0) {
        return -1;
    }
    const kn_expr *own =
        kn_index_mul(c->arena, kn_index(c->arena, step), kn_var(c->arena, KN_INDEX, c->var));
    const kn_expr *rest = kn_index_sub(c->arena, sub, own);
    kn_range r = kn_index_range(rest, c->ranges.at, c->ranges.n);
    return !kn_expr_uses(rest, c->var) && r.lo >= 0 && r.hi < step ? step : -1;
}

static void see_use(void *env, kn_buffer_use use)
{
    kn_contraction *c = env;
    if (use.buffer != c->name) {
        return;
    }
    c->found = true;
    for (int i = 0; i < use.nsubs && c->var; i++) {
        int64_t step = c->step[i] < 0 ? -1 : step_of(c, use.subs[i]);
        c->step[i] = c->step[i] == 0 || c->step[i] == step ? step : -1;
    }
}

static bool uses(kn_contraction *c, kn_loop *s)
{
    c->found = false;
    c->var = NULL;
    kn_loop_uses(s, see_use, c);
    return c->found;
}

/* ---- one loop ---- */

/* The subscripts as they are inside the loop once the dimension has shrunk. */
static const kn_expr *const *shrunk(kn_contraction *c, const kn_expr *const *subs, int *n)
{
    kn_arena *a = c->arena;
    const kn_expr **out = KN_ARRAY(a, const kn_expr *, *n + 1);
    int64_t step = c->step[c->dim];
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        const kn_expr *own = kn_index_mul(a, kn_index(a, step), kn_var(a, KN_INDEX, c->var));
        if (i != c->dim) {
            out[kept++] = subs[i];
        } else if (step > 1) {
            out[kept++] = kn_index_sub(a, subs[i], own);
        }
    }
    *n = kept;
    return out;
}

static const kn_expr *shrink_load(void *env, const kn_expr *e)
{
    kn_contraction *c = env;
    if (e->kind != KN_E_LOAD || e->name != c->name) {
        return e;
    }
    int n = e->nargs;
    const kn_expr *const *subs = shrunk(c, e->args, &n);
    return kn_load(c->arena, e->type, e->name, subs, n);
}

static const kn_expr *shrink_loads(void *env, const kn_expr *e)
{
    kn_contraction *c = env;
    return kn_expr_rewrite(c->arena, e, shrink_load, c);
}

static void shrink_target(void *env, kn_loop *s)
{
    kn_contraction *c = env;
    if (s->kind == KN_S_STORE && s->name == c->name) {
        s->args = shrunk(c, s->args, &s->nargs);
    }
}

/* Makes the temporary the loop's own, in the first dimension that can be; false when none can. */
static bool shrink(kn_contraction *c, kn_loop *loop, kn_buffer *buffer)
{
    c->var = loop->name;
    memset(c->step, 0, sizeof c->step);
    for (int i = 0; i < loop->body.n; i++) {
        kn_loop_uses(loop->body.at[i], see_use, c);
    }
    for (c->dim = 0; c->dim < buffer->rank && c->step[c->dim] <= 0; c->dim++) {
    }
    if (c->dim == buffer->rank) {
        return false;
    }
    const kn_expr **shape = KN_ARRAY(c->arena, const kn_expr *, buffer->rank + 1);
    int rank = 0;
    for (int i = 0; i < buffer->rank; i++) {
        if (i != c->dim) {
            shape[rank++] = buffer->shape[i];
        } else if (c->step[i] > 1) {
            shape[rank++] = kn_index(c->arena, c->step[i]);
        }
    }
    buffer->shape = shape;
    buffer->rank = rank;
    kn_block_map(c->arena, loop->body, shrink_loads, c);
    kn_block_visit(loop->body, shrink_target, c);
    return true;
}

/* ---- one temporary ---- */

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

static void contract(kn_contraction *c, kn_block *body, kn_loop *alloc)
{
    c->name = alloc->buffer.name;
    kn_block *b = body;
    int first = 0;
    for (kn_loop *user = only_user(c, b, &first);
         user && user->kind == KN_S_FOR && shrink(c, user, &alloc->buffer);
         user = only_user(c, b, &first)) {
        b = &user->body;
    }
    insert(c->arena, b, first, alloc);
}

/* The variable's range; loops of one name have their ranges together. */
static void see_loop(void *env, kn_loop *s)
{
    kn_contraction *c = env;
    if (s->kind != KN_S_FOR) {
        return;
    }
    int64_t lo = kn_index_range(s->lo, c->ranges.at, c->ranges.n).lo;
    int64_t hi = kn_index_range(s->hi, c->ranges.at, c->ranges.n).hi;
    hi = hi > INT64_MIN && hi < INT64_MAX ? hi - 1 : hi;
    for (int i = 0; i < c->ranges.n; i++) {
        kn_size *r = &c->ranges.at[i];
        if (r->name == s->name) {
            r->lo = lo < r->lo ? lo : r->lo;
            r->hi = hi > r->hi ? hi : r->hi;
            return;
        }
    }
    kn_push(c->arena, &c->ranges, ((kn_size){s->name, lo, hi}));
}

static void contract_function(kn_arena *a, kn_func *f)
{
    kn_contraction c = {.arena = a};
    int nsizes;
    const kn_size *sizes = kn_func_sizes(a, f, &nsizes);
    for (int i = 0; i < nsizes; i++) {
        kn_push(a, &c.ranges, sizes[i]);
    }
    kn_block_visit(f->body, see_loop, &c);
    kn_block old = f->body;
    kn_block_builder rest = {.arena = a}, allocs = {.arena = a};
    for (int i = 0; i < old.n; i++) {
        kn_block_add(old.at[i]->kind == KN_S_ALLOC ? &allocs : &rest, old.at[i]);
    }
    f->body = kn_block_done(&rest);
    for (int i = allocs.n - 1; i >= 0; i--) {
        contract(&c, &f->body, allocs.at[i]);
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
