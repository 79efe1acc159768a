/* The table of ONNX operators and what mapping functions are written with. A row names a Kiln op
   with the same operands, to which the node's floats are handed under their own names; or a
   function. */
#include "frontend/onnx_ops_internal.h"

#include <stdio.h>

typedef struct {
    const char *domain, *type;
    const char *op; /* NULL: function */
    void (*function)(kn_onnx_node *n);
} row;

static const row rows[] = {
#define ONNX_OP(domain, type, op) {domain, type, op, NULL},
#define ONNX_FN(domain, type, function) {domain, type, NULL, function},
#include "frontend/onnx_ops.def"
#undef ONNX_OP
#undef ONNX_FN
};

static const row *find(const char *domain, const char *type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].type, type) == 0 && strcmp(rows[i].domain, domain) == 0)
            return &rows[i];
    return NULL;
}

bool kn_onnx_known(const char *domain, const char *type)
{
    return find(domain, type) != NULL;
}

static void build_direct(kn_onnx_node *n, const char *op)
{
    kn_attr *attrs = KN_ARRAY(n->g->arena, kn_attr, n->nattrs);
    int count = 0, ninputs = n->ninputs;
    for (int i = 0; i < n->nattrs; i++)
        if (n->attrs[i].kind == KN_OA_FLOAT)
            attrs[count++] = kn_attr_float(n->attrs[i].name, n->attrs[i].f);
    while (ninputs > 0 && !n->inputs[ninputs - 1])
        ninputs--;
    kn_onnx_emit(n, 0, op, n->inputs, ninputs, attrs, count);
}

void kn_onnx_build(kn_onnx_node *n)
{
    const row *r = find(n->domain, n->type);
    if (!r)
        kn_onnx_unsupported(n, "no such operator is known");
    if (n->noutputs < 1)
        kn_onnx_invalid(n, "the node has no output");
    if (r->op)
        build_direct(n, r->op);
    else
        r->function(n);
}

/* ---- failures ---- */

static _Noreturn void fail(const kn_onnx_node *n, kn_status status, const char *text)
{
    const char *domain = *n->domain ? n->domain : "ai.onnx";
    kn_raise(kn_arena_ctx(n->g->arena), status, n->loc, "%s (%s, opset %lld): %s", n->type, domain,
             (long long)n->opset, text);
}

void kn_onnx_unsupported(const kn_onnx_node *n, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fail(n, KN_UNSUPPORTED, text);
}

void kn_onnx_invalid(const kn_onnx_node *n, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fail(n, KN_INVALID, text);
}

kn_dtype kn_onnx_dtype(const kn_onnx_node *n, int64_t code)
{
    static const struct {
        int code;
        kn_dtype type;
    } codes[] = {{1, KN_F32},  {2, KN_U8},   {3, KN_I8},    {4, KN_U16},  {5, KN_I16},
                 {6, KN_I32},  {7, KN_I64},  {9, KN_BOOL},  {10, KN_F16}, {11, KN_F64},
                 {12, KN_U32}, {13, KN_U64}, {16, KN_BF16}, {21, KN_U4},  {22, KN_I4}};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].code == code)
            return codes[i].type;
    kn_onnx_unsupported(n, "element type %lld", (long long)code);
}

/* ---- operands and attributes ---- */

kn_value *kn_onnx_in(const kn_onnx_node *n, int k)
{
    return k < n->ninputs ? n->inputs[k] : NULL;
}

kn_value *kn_onnx_need(const kn_onnx_node *n, int k)
{
    kn_value *v = kn_onnx_in(n, k);
    if (!v)
        kn_onnx_invalid(n, "input %d is missing", k);
    return v;
}

bool kn_onnx_wants(const kn_onnx_node *n, int k)
{
    return k < n->noutputs && n->outputs[k];
}

const kn_onnx_attr *kn_onnx_get(const kn_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->nattrs; i++)
        if (strcmp(n->attrs[i].name, name) == 0)
            return &n->attrs[i];
    return NULL;
}

static const kn_onnx_attr *get_kind(const kn_onnx_node *n, const char *name, kn_onnx_attr_kind kind,
                                    const char *what)
{
    const kn_onnx_attr *at = kn_onnx_get(n, name);
    if (at && at->kind != kind)
        kn_onnx_invalid(n, "attribute %s must be %s", name, what);
    return at;
}

int64_t kn_onnx_int(const kn_onnx_node *n, const char *name, int64_t otherwise)
{
    const kn_onnx_attr *at = get_kind(n, name, KN_OA_INT, "an integer");
    return at ? at->i : otherwise;
}

double kn_onnx_float(const kn_onnx_node *n, const char *name, double otherwise)
{
    const kn_onnx_attr *at = get_kind(n, name, KN_OA_FLOAT, "a float");
    return at ? at->f : otherwise;
}

const char *kn_onnx_string(const kn_onnx_node *n, const char *name, const char *otherwise)
{
    const kn_onnx_attr *at = get_kind(n, name, KN_OA_STRING, "a string");
    return at ? at->s : otherwise;
}

const int64_t *kn_onnx_ints(const kn_onnx_node *n, const char *name, int *count)
{
    static const int64_t nothing[] = {0};
    const kn_onnx_attr *at = get_kind(n, name, KN_OA_INTS, "a list of integers");
    *count = at ? at->n : 0;
    return !at ? NULL : at->n ? at->ints : nothing;
}

const kn_expr *const *kn_onnx_content(const kn_onnx_node *n, int k, int64_t lo, int64_t hi,
                                      int *count)
{
    kn_value *v = kn_onnx_need(n, k);
    const kn_expr *const *content = kn_graph_content(n->g, v, lo, hi);
    if (!content)
        kn_onnx_unsupported(n, "input %d (%s) must be a small tensor of integers of constant shape",
                            k, v->name);
    *count = (int)kn_value_count(v);
    return content;
}

const int64_t *kn_onnx_const_ints(const kn_onnx_node *n, int k, int *count)
{
    kn_value *v = kn_onnx_need(n, k);
    *count = (int)kn_value_count(v);
    if (!v->content)
        kn_onnx_unsupported(n, "input %d (%s) must be constant", k, v->name);
    int64_t *out = KN_ARRAY(n->g->arena, int64_t, *count + 1);
    for (int i = 0; i < *count; i++)
        if (!kn_index_const(v->content[i], &out[i]))
            kn_onnx_unsupported(n, "element %d of input %d (%s) must be constant", i, k, v->name);
    return out;
}

static void need_one(const kn_onnx_node *n, int k, int count)
{
    if (count != 1)
        kn_onnx_invalid(n, "input %d has %d elements, expected 1", k, count);
}

const kn_expr *kn_onnx_content_one(const kn_onnx_node *n, int k, int64_t lo, int64_t hi)
{
    int count;
    const kn_expr *const *content = kn_onnx_content(n, k, lo, hi, &count);
    need_one(n, k, count);
    return content[0];
}

int64_t kn_onnx_const_one(const kn_onnx_node *n, int k)
{
    int count;
    const int64_t *content = kn_onnx_const_ints(n, k, &count);
    need_one(n, k, count);
    return content[0];
}

const int64_t *kn_onnx_ints_or_operand(const kn_onnx_node *n, const char *name, int k, int *count)
{
    const int64_t *v = kn_onnx_ints(n, name, count);
    if (v || !kn_onnx_in(n, k))
        return v;
    return kn_onnx_const_ints(n, k, count);
}

int kn_onnx_axis(const kn_onnx_node *n, int64_t axis, int rank)
{
    int64_t k = axis < 0 ? axis + rank : axis;
    if (k < 0 || k >= rank)
        kn_onnx_invalid(n, "axis %lld is outside rank %d", (long long)axis, rank);
    return (int)k;
}

/* ---- index arithmetic ---- */

kn_range kn_onnx_range(const kn_onnx_node *n, const kn_expr *e)
{
    return kn_index_range(e, n->g->sizes, n->g->nsizes);
}

int64_t kn_onnx_most(const kn_onnx_node *n, const kn_expr *const *dims, int rank)
{
    enum { MOST = 1 << 30 };
    int64_t all = kn_onnx_range(n, kn_index_product(n->g->arena, dims, rank)).hi;
    return all < 0 || all > MOST ? MOST : all;
}

/* x <= y for certain. */
static bool below(const kn_onnx_node *n, const kn_expr *x, const kn_expr *y)
{
    if (kn_onnx_range(n, x).hi <= kn_onnx_range(n, y).lo)
        return true;
    return kn_onnx_range(n, kn_index_sub(n->g->arena, x, y)).hi <= 0;
}

const kn_expr *kn_onnx_min(const kn_onnx_node *n, const kn_expr *x, const kn_expr *y)
{
    return below(n, x, y) ? x : below(n, y, x) ? y : kn_index_min(n->g->arena, x, y);
}

const kn_expr *kn_onnx_max(const kn_onnx_node *n, const kn_expr *x, const kn_expr *y)
{
    return below(n, x, y) ? y : below(n, y, x) ? x : kn_index_max(n->g->arena, x, y);
}

/* ---- making nodes ---- */

kn_value *kn_onnx_emit(kn_onnx_node *n, int k, const char *op, kn_value *const *inputs, int ninputs,
                       const kn_attr *attrs, int nattrs)
{
    const char *name = k >= 0 && kn_onnx_wants(n, k) ? n->outputs[k] : NULL;
    const kn_node *node = kn_graph_node(n->g, &(kn_node_spec){.op = op,
                                                              .name = n->name,
                                                              .inputs = inputs,
                                                              .ninputs = ninputs,
                                                              .attrs = attrs,
                                                              .nattrs = nattrs,
                                                              .outputs = &name,
                                                              .noutputs = 1,
                                                              .loc = n->loc});
    if (name)
        n->results[k] = node->outputs[0];
    return node->outputs[0];
}

void kn_onnx_emit_all(kn_onnx_node *n, int nresults, const char *op, kn_value *const *inputs,
                      int ninputs, const kn_attr *attrs, int nattrs)
{
    const char **names = KN_ARRAY(n->g->arena, const char *, nresults);
    for (int k = 0; k < nresults; k++)
        names[k] = kn_onnx_wants(n, k) ? n->outputs[k] : NULL;
    const kn_node *node = kn_graph_node(n->g, &(kn_node_spec){.op = op,
                                                              .name = n->name,
                                                              .inputs = inputs,
                                                              .ninputs = ninputs,
                                                              .attrs = attrs,
                                                              .nattrs = nattrs,
                                                              .outputs = names,
                                                              .noutputs = nresults,
                                                              .loc = n->loc});
    for (int k = 0; k < nresults && k < n->noutputs; k++)
        n->results[k] = node->outputs[k];
}

void kn_onnx_return(kn_onnx_node *n, int k, kn_value *v)
{
    if (k < n->noutputs)
        n->results[k] = v;
}

kn_value *kn_onnx_cast(kn_onnx_node *n, int k, kn_value *v, kn_dtype type)
{
    if (v->type == type && k == INNER)
        return v;
    return kn_onnx_emit(n, k, "cast", VALUES(v), ATTRS(kn_attr_type("to", type)));
}

kn_value *kn_onnx_reshape(kn_onnx_node *n, int k, kn_value *v, const kn_expr *const *shape,
                          int rank)
{
    return kn_onnx_emit(n, k, "reshape", VALUES(v), ATTRS(kn_attr_indexes("shape", shape, rank)));
}

kn_value *kn_onnx_unary(kn_onnx_node *n, int k, const char *op, kn_value *x)
{
    return kn_onnx_emit(n, k, op, VALUES(x), NO_ATTRS);
}

kn_value *kn_onnx_binary(kn_onnx_node *n, int k, const char *op, kn_value *x, kn_value *y)
{
    return kn_onnx_emit(n, k, op, VALUES(x, y), NO_ATTRS);
}

kn_value *kn_onnx_scalar(kn_onnx_node *n, kn_dtype type, double value)
{
    return kn_graph_scalar(n->g, type, value);
}

kn_value *kn_onnx_reduce(kn_onnx_node *n, int k, const char *op, kn_value *x, const int64_t *axes,
                         int naxes, bool keepdims)
{
    kn_attr attrs[] = {kn_attr_int("keepdims", keepdims),
                       kn_attr_ints(n->g->arena, "axes", axes, naxes)};
    return kn_onnx_emit(n, k, op, VALUES(x), attrs, axes ? 2 : 1);
}

kn_value *kn_onnx_transpose(kn_onnx_node *n, int k, kn_value *x, const int64_t *perm)
{
    return kn_onnx_emit(n, k, "transpose", VALUES(x),
                        ATTRS(kn_attr_ints(n->g->arena, "perm", perm, x->rank)));
}

kn_value *kn_onnx_slice(kn_onnx_node *n, int k, kn_value *x, int axis, const kn_expr *start,
                        const kn_expr *size)
{
    const int64_t axes[] = {axis};
    return kn_onnx_emit(n, k, "slice", VALUES(x),
                        ATTRS(kn_attr_ints(n->g->arena, "axes", axes, 1),
                              kn_attr_indexes("starts", &start, 1),
                              kn_attr_indexes("sizes", &size, 1)));
}

kn_value *kn_onnx_expand(kn_onnx_node *n, int k, kn_value *x, const kn_expr *const *shape, int rank)
{
    return kn_onnx_emit(n, k, "expand", VALUES(x), ATTRS(kn_attr_indexes("shape", shape, rank)));
}

/* ---- attention ---- */

kn_value *kn_onnx_swap_heads(kn_onnx_node *n, int k, kn_value *x)
{
    static const int64_t perm[] = {0, 2, 1, 3};
    return kn_onnx_transpose(n, k, x, perm);
}

kn_value *kn_onnx_split_heads(kn_onnx_node *n, kn_value *x, int64_t heads)
{
    kn_arena *a = n->g->arena;
    if (x->rank == 4)
        return x;
    if (x->rank != 3 || heads < 1)
        kn_onnx_invalid(n, "an operand of rank %d in %lld heads", x->rank, (long long)heads);
    const kn_expr *shape[] = {x->shape[0], x->shape[1], kn_index(a, heads),
                              kn_index_div(a, x->shape[2], kn_index(a, heads))};
    return kn_onnx_swap_heads(n, INNER, kn_onnx_reshape(n, INNER, x, shape, 4));
}

void kn_onnx_merge_heads(kn_onnx_node *n, int k, kn_value *x)
{
    kn_value *y = kn_onnx_swap_heads(n, INNER, x);
    const kn_expr *shape[] = {y->shape[0], y->shape[1],
                              kn_index_mul(n->g->arena, y->shape[2], y->shape[3])};
    kn_onnx_reshape(n, k, y, shape, 3);
}

kn_value *kn_onnx_join_past(kn_onnx_node *n, int k, kn_value *past, kn_value *now)
{
    if (past)
        return kn_onnx_emit(n, k, "concat", VALUES(past, now), ATTRS(kn_attr_int("axis", 2)));
    kn_onnx_return(n, k, now);
    return now;
}
