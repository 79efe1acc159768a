/* Opaque rows: what no index notation says (top-k, sort, NonZero, random numbers) is a function of
   the loop IR.

   A row's text is a signature with declared result types and shapes, then "loops:" and one
   function:

     (X[*b, n], k: const) -> V: typeof(X)[*b, k], I: i64[*b, k]:
     loops:
     func @topk(b: index, n: index, k: index, in X: typeof(X)[b, n] @ddr,
                out V: typeof(X)[b, k] @ddr, out I: i64[b, k] @ddr) { ... }

   How they meet:
   - typeof(T) in the loops, T any operand or result, is replaced by its type before they are
     parsed.
   - A scalar parameter is named like a size or an attribute of the signature and stands for its
     value at this node; one named like a pack (b for *b) for the product of the pack's dimensions.
     All are substituted.
   - A buffer parameter is named like a tensor of the signature: same type, same number of elements;
     packs may be merged into one dimension, as above, since buffers are row-major.

   - Bounds of a scalar parameter are refused or checked first.

   The function that comes out has the nest's sizes as scalar parameters, then the nest's tensors in
   order. It is verified, and guarded where it is not certain to stay inside its buffers
   (ir/opaque_guard.c). It calls nothing, and leaves to the passes where its temporaries lie. */
#include <ctype.h>

#include "ir/graph_internal.h"
#include "ir/nest_internal.h"
#include "ir/opaque_internal.h"

typedef struct {
    kn_arena *a;
    const kn_node *node;
    const kn_nest *nest;
    kn_binding *bindings;
    int n, cap;
    kn_map used; /* names of the nest and of the loops */
} binder;

static _Noreturn void fail(const binder *b, const char *what, const char *name)
{
    kn_raise(kn_arena_ctx(b->a), KN_INVALID, b->node->loc, "%s: %s '%s'", b->node->op->name, what,
             name);
}

/* ---- types ---- */

/* The type that typeof(T) at `at` stands for and its length there; 0 when it is none. */
static size_t type_at(const binder *b, const char *at, kn_dtype *type)
{
    if (strncmp(at, "typeof(", 7) != 0)
        return 0;
    const char *close = strchr(at, ')');
    if (!close)
        return 0;
    char *name = kn_format(b->a, "%.*s", (int)(close - at - 7), at + 7);
    int k = kn_nest_find(b->nest, name);
    if (k < 0)
        fail(b, "the loops mention typeof of an unknown tensor", name);
    *type = b->nest->tensors[k].type;
    return (size_t)(close - at) + 1;
}

static const char *with_types(const binder *b, const char *loops)
{
    kn_str out = kn_str_make(b->a);
    bool inside_word = false;
    while (*loops) {
        kn_dtype type = KN_F32;
        size_t n = inside_word ? 0 : type_at(b, loops, &type);
        if (n) {
            kn_put(&out, kn_dtype_name(type));
            loops += n;
            continue;
        }
        inside_word = isalnum((unsigned char)*loops) || *loops == '_';
        kn_put_char(&out, *loops++);
    }
    return kn_str_get(&out);
}

/* ---- values of sizes and attributes ---- */

static void bind(binder *b, const char *name, const kn_expr *value)
{
    for (int i = 0; i < b->n; i++)
        if (strcmp(b->bindings[i].name, name) == 0)
            return;
    if (b->n == b->cap)
        b->bindings = kn_vec_grow(b->a, b->bindings, b->n, &b->cap, sizeof *b->bindings);
    b->bindings[b->n++] = (kn_binding){kn_intern(kn_arena_ctx(b->a), name), value};
}

/* The names in one declared shape, against the shape that it has here. */
static void bind_dims(binder *b, const kn_sig_tensor *sig, const kn_tensor *t)
{
    int packed = t->rank - sig->ndims + 1, at = 0;
    for (int i = 0; i < sig->ndims; i++) {
        const kn_sig_dim *d = &sig->dims[i];
        int n = d->pack ? packed : 1;
        if (d->pack)
            bind(b, d->name + 1, kn_index_product(b->a, t->shape + at, n));
        else if (d->name)
            bind(b, d->name, t->shape[at]);
        at += n;
    }
}

static void bind_signature(binder *b, const kn_attr_value *attrs, int nattrs)
{
    const kn_notation *sig = b->node->notation;
    for (int i = 0; i < nattrs; i++)
        if (attrs[i].value)
            bind(b, attrs[i].name, attrs[i].value);
    for (int i = 0; i < sig->nattrs; i++)
        if (sig->attrs[i].value)
            bind(b, sig->attrs[i].name, kn_index_simplify(b->a, sig->attrs[i].value));
    for (int i = 0; i < sig->ninputs; i++)
        bind_dims(b, &sig->inputs[i], &b->nest->tensors[i]);
    for (int r = 0; r < sig->nresults; r++)
        bind_dims(b, &sig->results[r], kn_nest_result(b->nest, b->node, r));
}

/* ---- substitution ---- */

static const kn_expr *subst(const binder *b, const kn_expr *e)
{
    return e ? kn_expr_subst(b->a, e, b->bindings, b->n) : NULL;
}

static const kn_expr *const *subst_all(const binder *b, const kn_expr *const *e, int n)
{
    const kn_expr **out = KN_ARRAY(b->a, const kn_expr *, n);
    for (int i = 0; i < n; i++)
        out[i] = subst(b, e[i]);
    return out;
}

static void subst_buffer(const binder *b, kn_buffer *buffer)
{
    buffer->shape = subst_all(b, buffer->shape, buffer->rank);
    buffer->offset = subst(b, buffer->offset);
}

static const kn_expr *subst_in(void *env, const kn_expr *e)
{
    return subst(env, e);
}

/* ---- parameters ---- */

static kn_param size_param(const kn_size *size)
{
    kn_param p = {.mode = KN_PARAM_SCALAR, .lo = size->lo, .hi = size->hi};
    p.buffer.name = size->name;
    p.buffer.type = KN_INDEX;
    return p;
}

static kn_param tensor_param(const binder *b, const kn_func *f, const kn_tensor *t)
{
    static const kn_param_mode modes[] = {
        [KN_ROLE_IN] = KN_PARAM_IN, [KN_ROLE_OUT] = KN_PARAM_OUT, [KN_ROLE_INOUT] = KN_PARAM_INOUT};
    const kn_param *have = kn_func_param(f, t->name);
    if (!have || have->mode == KN_PARAM_SCALAR)
        fail(b, "the loops have no buffer", t->name);
    kn_param p = *have;
    subst_buffer(b, &p.buffer);
    p.mode = modes[t->role];
    if (have->mode != p.mode || p.buffer.type != t->type ||
        !kn_expr_equal(kn_index_product(b->a, p.buffer.shape, p.buffer.rank),
                       kn_index_product(b->a, (const kn_expr *const *)t->shape, t->rank)))
        fail(b, "the loops and the signature differ about", t->name);
    return p;
}

static void check_scalars(const binder *b, const kn_func *f)
{
    for (int i = 0; i < f->nparams; i++) {
        bool bound = f->params[i].mode != KN_PARAM_SCALAR;
        for (int k = 0; k < b->n && !bound; k++)
            bound = strcmp(f->params[i].buffer.name, b->bindings[k].name) == 0;
        if (!bound)
            fail(b, "the signature gives no value for the loops' parameter",
                 f->params[i].buffer.name);
    }
}

/* ---- what the loops may not do ---- */

static void check_stmt(void *env, kn_loop *s)
{
    const binder *b = env;
    if (s->kind == KN_S_CALL)
        fail(b, "the loops call", s->name);
    if (s->kind == KN_S_ALLOC && s->buffer.offset)
        fail(b, "the loops say where to place", s->buffer.name);
}

static void check_func(binder *b, const kn_func *f)
{
    kn_func_verify(kn_arena_ctx(b->a), NULL, f);
    if (f->workspace)
        fail(b, "the loops have a workspace:", f->name);
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->alias)
            fail(b, "the loops have an alias for", p->alias);
        if (p->mode != KN_PARAM_SCALAR && strcmp(p->buffer.space, "ddr") != 0)
            fail(b, "not in @ddr:", p->buffer.name);
    }
    kn_block_visit(f->body, check_stmt, b);
}

/* ---- names: those of the loops' own that a size of the nest has too get another ---- */

typedef struct {
    kn_arena *a;
    const char *from, *to;
} renaming;

static const kn_expr *rename_node(void *env, const kn_expr *e)
{
    const renaming *r = env;
    if ((e->kind != KN_E_VAR && e->kind != KN_E_LOAD) || strcmp(e->name, r->from) != 0)
        return e;
    return e->kind == KN_E_VAR ? kn_var(r->a, e->type, r->to)
                               : kn_load(r->a, e->type, r->to, e->args, e->nargs);
}

static const kn_expr *rename_expr(void *env, const kn_expr *e)
{
    renaming *r = env;
    return kn_expr_rewrite(r->a, e, rename_node, r);
}

static void rename_stmt(void *env, kn_loop *s)
{
    const renaming *r = env;
    if (s->kind != KN_S_CHECK && s->name && strcmp(s->name, r->from) == 0)
        s->name = r->to;
    if (s->buffer.name && strcmp(s->buffer.name, r->from) == 0)
        s->buffer.name = r->to;
}

static void take_name(void *env, kn_loop *s)
{
    binder *b = env;
    const char *name = s->kind == KN_S_ALLOC || s->kind == KN_S_VIEW ? s->buffer.name : s->name;
    if (name && s->kind != KN_S_CHECK)
        kn_take_name(b->a, &b->used, kn_intern(kn_arena_ctx(b->a), name));
}

static void rename_locals(binder *b, const kn_func *f)
{
    b->used = kn_nest_names(b->a, b->nest);
    kn_block_visit(f->body, take_name, b);
    for (int i = 0; i < b->nest->nsizes; i++) {
        const char *name = b->nest->sizes[i].name;
        if (kn_func_param(f, name))
            continue;
        renaming r = {b->a, name, kn_unique_name(b->a, &b->used, name)};
        kn_block_visit(f->body, rename_stmt, &r);
        kn_block_map(b->a, f->body, rename_expr, &r);
    }
}

/* ---- bounds of sizes ---- */

static void check_bound(const binder *b, kn_block_builder *to, const kn_param *p,
                        const kn_expr *value)
{
    if (p->buffer.type != KN_INDEX || value->type != KN_INDEX)
        return;
    kn_range r = kn_index_range(value, b->nest->sizes, b->nest->nsizes);
    if (r.hi < p->lo || r.lo > p->hi)
        fail(b, "out of the bounds that the loops give:", p->buffer.name);
    if (r.lo >= p->lo && r.hi <= p->hi)
        return;
    const kn_expr *above = kn_op2(b->a, KN_OP_LE, kn_index(b->a, p->lo), value);
    const kn_expr *below = kn_op2(b->a, KN_OP_LE, value, kn_index(b->a, p->hi));
    kn_loop *check =
        kn_loop_check(b->a, kn_op2(b->a, KN_OP_LAND, above, below),
                      kn_intern_f(kn_arena_ctx(b->a), "%s: '%s' is out of the bounds of its loops",
                                  b->node->op->name, p->buffer.name));
    check->loc = b->node->loc;
    kn_block_add(to, check);
}

static kn_block with_bounds(const binder *b, const kn_func *f)
{
    kn_block_builder body = {.arena = b->a};
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        for (int k = 0; k < b->n && p->mode == KN_PARAM_SCALAR; k++) {
            if (strcmp(p->buffer.name, b->bindings[k].name) == 0)
                check_bound(b, &body, p, b->bindings[k].value);
        }
    }
    for (int i = 0; i < f->body.n; i++)
        kn_block_add(&body, f->body.at[i]);
    return kn_block_done(&body);
}

const kn_func *kn_opaque_func(kn_arena *a, const kn_node *n, const kn_nest *nest,
                              const kn_attr_value *attrs, int nattrs)
{
    binder b = {.a = a, .node = n, .nest = nest};
    for (int r = 0; r < n->notation->nresults; r++)
        if (kn_nest_result(nest, n, r)->type == KN_UNTYPED)
            fail(&b, "the signature gives no type for", n->notation->results[r].name);
    const char *text = with_types(&b, n->loops);
    kn_func *f = kn_func_parse(a, n->loc.file, text, strlen(text), n->loc);
    bind_signature(&b, attrs, nattrs);
    check_scalars(&b, f);
    check_func(&b, f);
    rename_locals(&b, f);
    kn_param *params = KN_ARRAY(a, kn_param, nest->nsizes + nest->ntensors);
    int count = 0;
    for (int i = 0; i < nest->nsizes; i++)
        params[count++] = size_param(&nest->sizes[i]);
    for (int i = 0; i < nest->ntensors; i++)
        params[count++] = tensor_param(&b, f, &nest->tensors[i]);
    kn_block_map(b.a, f->body, subst_in, &b);
    f->body = with_bounds(&b, f);
    f->params = params;
    f->nparams = count;
    kn_func_verify(kn_arena_ctx(a), NULL, f);
    kn_nest named = *nest;
    named.name = n->op->name;
    kn_opaque_guard(a, f, &named, &b.used);
    return f;
}
