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

   The function that comes out has the nest's sizes as scalar parameters, then the nest's tensors in
   order. */
#include <ctype.h>

#include "ir/graph_internal.h"

typedef struct {
    kn_arena *a;
    const kn_node *node;
    const kn_nest *nest;
    kn_binding *bindings;
    int n, cap;
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
    kn_param *params = KN_ARRAY(a, kn_param, nest->nsizes + nest->ntensors);
    int count = 0;
    for (int i = 0; i < nest->nsizes; i++)
        params[count++] = size_param(&nest->sizes[i]);
    for (int i = 0; i < nest->ntensors; i++)
        params[count++] = tensor_param(&b, f, &nest->tensors[i]);
    kn_block_map(b.a, f->body, subst_in, &b);
    f->params = params;
    f->nparams = count;
    return f;
}
