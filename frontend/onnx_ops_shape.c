/* ONNX operators that move, cut, join and make tensors. Shape-like operands become attributes:
   index expressions over the graph's sizes. */
#include "frontend/onnx_ops_internal.h"

enum { FAR = 1 << 30 }; /* more than any size: what INT64_MAX stands for in a slice */

static kn_arena *arena(const kn_onnx_node *n)
{
    return n->g->arena;
}

static const kn_expr *number(const kn_onnx_node *n, int64_t v)
{
    return kn_index(arena(n), v);
}

/* ---- reshaping ---- */

/* Whether an expression is a size that is read from a tensor at run time: it may be one of
   Reshape's marks, or Expand's 1. An expression over other sizes is a dimension. */
static bool is_read(const kn_onnx_node *n, const kn_expr *e)
{
    for (int i = 0; e->kind == KN_E_VAR && i < n->g->nsizes; i++)
        if (n->g->sizes[i].name == e->name)
            return n->g->sources[i].value != NULL;
    return false;
}

/* `otherwise`, or, where e is the mark `of`, `then`: settled at once when e is constant, at run
 * time when it is read. */
static const kn_expr *unless(const kn_onnx_node *n, const kn_expr *e, int64_t of,
                             const kn_expr *then, const kn_expr *otherwise)
{
    if (kn_index_is(e, of))
        return then;
    kn_range r = kn_onnx_range(n, e);
    if (!is_read(n, e) || r.lo > of || r.hi < of)
        return otherwise;
    const kn_expr *marked = kn_op2(arena(n), KN_OP_EQ, e, number(n, of));
    return kn_index_simplify(arena(n), kn_select(arena(n), marked, then, otherwise));
}

/* Puts in 0 (the operand's dimension) and -1 (what is left of the elements). */
static void resolve_shape(const kn_onnx_node *n, const kn_value *x, const kn_expr *const *given,
                          int rank, bool zero, const kn_expr **shape)
{
    kn_arena *a = arena(n);
    const kn_expr *total = kn_index_product(a, x->shape, x->rank), *known = number(n, 1);
    for (int k = 0; k < rank; k++) {
        const kn_expr *copied = zero || k >= x->rank ? number(n, 0) : x->shape[k];
        shape[k] = unless(n, given[k], 0, copied, given[k]);
        known = kn_index_mul(a, known, unless(n, given[k], -1, number(n, 1), shape[k]));
    }
    const kn_expr *rest = kn_index_is(known, 0) ? known : kn_index_div(a, total, known);
    for (int k = 0; k < rank; k++)
        shape[k] = unless(n, given[k], -1, rest, shape[k]);
}

void kn_onnx_reshape_to(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int rank;
    const kn_expr *shape[KN_MAX_RANK];
    const kn_expr *const *given = kn_onnx_content(n, 1, -1, KN_SIZE_DEFAULT_MAX, &rank);
    if (rank > KN_MAX_RANK)
        kn_onnx_unsupported(n, "rank %d", rank);
    resolve_shape(n, x, given, rank, kn_onnx_int(n, "allowzero", 0) != 0, shape);
    kn_onnx_reshape(n, 0, x, shape, rank);
}

void kn_onnx_flatten(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int64_t axis = kn_onnx_int(n, "axis", 1);
    axis += axis < 0 ? x->rank : 0;
    if (axis < 0 || axis > x->rank)
        kn_onnx_invalid(n, "axis %lld is outside rank %d", (long long)axis, x->rank);
    const kn_expr *shape[] = {kn_index_product(arena(n), x->shape, (int)axis),
                              kn_index_product(arena(n), x->shape + axis, x->rank - (int)axis)};
    kn_onnx_reshape(n, 0, x, shape, 2);
}

void kn_onnx_squeeze(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    const kn_expr *shape[KN_MAX_RANK];
    int count, rank = 0;
    unsigned drop = 0;
    const int64_t *axes = kn_onnx_ints_or_operand(n, "axes", 1, &count);
    for (int k = 0; k < count; k++)
        drop |= 1u << kn_onnx_axis(n, axes[k], x->rank);
    for (int k = 0; k < x->rank; k++)
        if (axes ? !(drop >> k & 1) : !kn_index_is(x->shape[k], 1))
            shape[rank++] = x->shape[k];
    kn_onnx_reshape(n, 0, x, shape, rank);
}

void kn_onnx_unsqueeze(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    const kn_expr *shape[KN_MAX_RANK];
    int count, from = 0;
    unsigned added = 0;
    const int64_t *axes = kn_onnx_ints_or_operand(n, "axes", 1, &count);
    int rank = x->rank + count;
    if (rank > KN_MAX_RANK)
        kn_onnx_unsupported(n, "rank %d", rank);
    for (int k = 0; k < count; k++)
        added |= 1u << kn_onnx_axis(n, axes[k], rank);
    for (int k = 0; k < rank; k++) {
        bool one = added >> k & 1;
        if (!one && from == x->rank)
            kn_onnx_invalid(n, "an axis occurs twice");
        shape[k] = one ? number(n, 1) : x->shape[from++];
    }
    kn_onnx_reshape(n, 0, x, shape, rank);
}

void kn_onnx_transpose_of(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int count;
    const int64_t *perm = kn_onnx_ints(n, "perm", &count);
    if (perm && count != x->rank)
        kn_onnx_invalid(n, "perm has %d elements for rank %d", count, x->rank);
    if (perm)
        kn_onnx_transpose(n, 0, x, perm);
    else
        kn_onnx_unary(n, 0, "transpose", x);
}

/* ---- slices ---- */

/* Constants far outside, as INT64_MAX, are brought near, so that index arithmetic cannot overflow.
 */
static const kn_expr *near(const kn_onnx_node *n, const kn_expr *e)
{
    int64_t v;
    if (!kn_index_const(e, &v) || (v >= -FAR && v <= FAR))
        return e;
    return number(n, v < 0 ? -FAR : FAR);
}

/* A place counted from the end when negative, then clamped to lo..hi. */
static const kn_expr *placed(const kn_onnx_node *n, const kn_expr *e, const kn_expr *dim,
                             const kn_expr *lo, const kn_expr *hi)
{
    kn_arena *a = arena(n);
    kn_range r = kn_onnx_range(n, e = near(n, e));
    const kn_expr *wrapped = kn_index_add(a, e, dim);
    if (r.hi < 0)
        e = wrapped;
    else if (r.lo < 0) {
        const kn_expr *negative = kn_op2(a, KN_OP_LT, e, number(n, 0));
        e = kn_index_simplify(a, kn_select(a, negative, wrapped, e));
    }
    return kn_onnx_min(n, kn_onnx_max(n, e, lo), hi);
}

typedef struct {
    const kn_expr *start, *size;
} piece;

/* The first element and the number of elements of start:end:step along a dimension. */
static piece cut(const kn_onnx_node *n, const kn_expr *dim, const kn_expr *start,
                 const kn_expr *end, int64_t step)
{
    kn_arena *a = arena(n);
    const kn_expr *zero = number(n, 0), *last = kn_index_sub(a, dim, number(n, 1)), *length;
    bool back = step < 0;
    piece p = {.start = placed(n, start, dim, zero, back ? last : dim)};
    /* the end of a backward slice is -1 when it takes element 0: a constant that far back is no
     * wrapped place */
    end = placed(n, end, dim, back ? number(n, -1) : zero, back ? last : dim);
    length = back ? kn_index_sub(a, p.start, end) : kn_index_sub(a, end, p.start);
    p.size = kn_onnx_max(n, kn_index_ceildiv(a, length, back ? -step : step), zero);
    if (kn_index_is(p.size, 0))
        p.start = zero;
    return p;
}

/* The list of attribute `name`, before opset 10, or of operand k. */
static const kn_expr *const *slice_list(const kn_onnx_node *n, const char *name, int k, int *count)
{
    const int64_t *v = kn_onnx_ints(n, name, count);
    if (!v && kn_onnx_in(n, k))
        return kn_onnx_content(n, k, -KN_SIZE_DEFAULT_MAX, KN_SIZE_DEFAULT_MAX, count);
    if (!v)
        return NULL;
    const kn_expr **out = KN_ARRAY(arena(n), const kn_expr *, *count);
    for (int i = 0; i < *count; i++)
        out[i] = number(n, v[i]);
    return out;
}

void kn_onnx_slice_of(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int ns, ne, na, nt = 0;
    const kn_expr *const *starts = slice_list(n, "starts", 1, &ns), *const *ends = slice_list(
                                                                        n, "ends", 2, &ne);
    const int64_t *axes = kn_onnx_ints_or_operand(n, "axes", 3, &na);
    const int64_t *steps = kn_onnx_in(n, 4) ? kn_onnx_const_ints(n, 4, &nt) : NULL;
    if (!starts || !ends || ns != ne || ns > x->rank || (axes && na != ns) || (steps && nt != ns))
        kn_onnx_invalid(n, "starts, ends, axes and steps must be lists of one length, at most %d",
                        x->rank);
    int64_t axis[KN_MAX_RANK], step[KN_MAX_RANK];
    const kn_expr *start[KN_MAX_RANK], *size[KN_MAX_RANK];
    for (int k = 0; k < ns; k++) {
        axis[k] = kn_onnx_axis(n, axes ? axes[k] : k, x->rank);
        step[k] = steps ? steps[k] < -FAR ? -FAR : steps[k] > FAR ? FAR : steps[k] : 1;
        if (step[k] == 0)
            kn_onnx_invalid(n, "a step of 0");
        piece p = cut(n, x->shape[axis[k]], starts[k], ends[k], step[k]);
        start[k] = p.start;
        size[k] = p.size;
    }
    const kn_attr attrs[] = {
        kn_attr_ints(arena(n), "axes", axis, ns), kn_attr_indexes("starts", start, ns),
        kn_attr_indexes("sizes", size, ns), kn_attr_ints(arena(n), "steps", step, ns)};
    kn_onnx_emit(n, 0, "slice", VALUES(x), attrs, 4);
}

/* Whether the sizes certainly make up the dimension; when they certainly do not, an error. */
static bool sizes_add_up(kn_onnx_node *n, const kn_expr *const *sizes, int count,
                         const kn_expr *dim)
{
    const kn_expr *sum = number(n, 0);
    for (int k = 0; k < count; k++)
        sum = kn_index_add(arena(n), sum, sizes[k]);
    kn_range excess = kn_onnx_range(n, kn_index_sub(arena(n), sum, dim));
    if (excess.lo > 0 || excess.hi < 0) {
        kn_str text = kn_str_make(arena(n));
        kn_put(&text, "the sizes add up to ");
        kn_expr_print(&text, sum, false);
        kn_put(&text, ", the dimension is ");
        kn_expr_print(&text, dim, false);
        kn_onnx_invalid(n, "%s", kn_str_get(&text));
    }
    return excess.lo == 0 && excess.hi == 0;
}

/* Sizes are given, or as equal as can be: the last piece may be smaller. Every piece is a slice,
 * but where only a run tells whether the sizes add up. */
void kn_onnx_split(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int axis = kn_onnx_axis(n, kn_onnx_int(n, "axis", 0), x->rank), count;
    const kn_expr *const *sizes = slice_list(n, "split", 1, &count);
    int pieces = sizes ? count : (int)kn_onnx_int(n, "num_outputs", n->noutputs);
    if (pieces < 1 || pieces < n->noutputs)
        kn_onnx_invalid(n, "%d pieces for %d outputs", pieces, n->noutputs);
    const kn_expr *at = number(n, 0), *dim = x->shape[axis];
    if (sizes && !sizes_add_up(n, sizes, pieces, dim)) {
        kn_onnx_emit_all(n, pieces, "split", VALUES(x),
                         ATTRS(kn_attr_int("axis", axis), kn_attr_indexes("sizes", sizes, pieces)));
        return;
    }
    const kn_expr *equal = kn_index_ceildiv(arena(n), dim, pieces);
    for (int k = 0; k < n->noutputs; k++) {
        const kn_expr *rest = kn_index_sub(arena(n), dim, at);
        const kn_expr *size = sizes             ? sizes[k]
                              : k == pieces - 1 ? kn_onnx_max(n, rest, number(n, 0))
                                                : kn_onnx_min(n, equal, rest);
        if (kn_onnx_wants(n, k))
            kn_onnx_slice(n, k, x, axis, at, size);
        at = kn_index_add(arena(n), at, size);
    }
}

void kn_onnx_concat(kn_onnx_node *n)
{
    if (n->ninputs == 1)
        kn_onnx_return(n, 0, kn_onnx_need(n, 0));
    else
        kn_onnx_emit(n, 0, "concat", n->inputs, n->ninputs,
                     ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", 1))));
}

/* ---- pad, expand, tile ---- */

/* Before and after of every dimension. */
static void read_pads(const kn_onnx_node *n, const kn_value *x, const kn_expr **before,
                      const kn_expr **after)
{
    int count, naxes = 0;
    const kn_expr *const *pads = slice_list(n, "pads", 1, &count);
    const int64_t *axes = kn_onnx_in(n, 3) ? kn_onnx_const_ints(n, 3, &naxes) : NULL;
    int half = axes ? naxes : x->rank;
    if (!pads || count != 2 * half)
        kn_onnx_invalid(n, "pads has %d elements, expected %d", count, 2 * half);
    for (int k = 0; k < x->rank; k++)
        before[k] = after[k] = number(n, 0);
    for (int k = 0; k < half; k++) {
        int axis = axes ? kn_onnx_axis(n, axes[k], x->rank) : k;
        before[axis] = pads[k];
        after[axis] = pads[half + k];
    }
}

void kn_onnx_pad(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *with = kn_onnx_in(n, 2);
    const kn_expr *before[KN_MAX_RANK], *after[KN_MAX_RANK];
    const char *mode = kn_onnx_string(n, "mode", "constant");
    read_pads(n, x, before, after);
    kn_attr attrs[] = {kn_attr_indexes("before", before, x->rank),
                       kn_attr_indexes("after", after, x->rank), kn_attr_string("mode", mode)};
    if (n->opset < 11 && kn_onnx_get(n, "value"))
        with = kn_onnx_scalar(n, x->type, kn_onnx_float(n, "value", 0));
    if (strcmp(mode, "constant") == 0)
        kn_onnx_emit(n, 0, "pad", VALUES(x, with), attrs, 2);
    else
        kn_onnx_emit(n, 0, "pad_around", VALUES(x), attrs, 3);
}

/* Where a shape that is read at run time says 1, the operand's dimension stays. */
void kn_onnx_expand_to(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    int rank;
    const kn_expr *shape[KN_MAX_RANK];
    const kn_expr *const *given = kn_onnx_content(n, 1, 0, KN_SIZE_DEFAULT_MAX, &rank);
    if (rank > KN_MAX_RANK)
        kn_onnx_unsupported(n, "rank %d", rank);
    for (int k = 0; k < rank; k++) {
        int from = k - rank + x->rank;
        bool stays = from >= 0 && !kn_index_is(x->shape[from], 1);
        shape[k] = stays ? unless(n, given[k], 1, x->shape[from], given[k]) : given[k];
    }
    kn_onnx_expand(n, 0, x, shape, rank);
}

void kn_onnx_tile(kn_onnx_node *n)
{
    int rank;
    const kn_expr *const *repeats = kn_onnx_content(n, 1, 0, KN_SIZE_DEFAULT_MAX, &rank);
    kn_onnx_emit(n, 0, "tile", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_indexes("repeats", repeats, rank)));
}

void kn_onnx_depth_to_space(kn_onnx_node *n)
{
    bool columns = strcmp(kn_onnx_string(n, "mode", "DCR"), "CRD") == 0;
    kn_onnx_emit(n, 0, "depth_to_space", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("block", kn_onnx_int(n, "blocksize", 0)),
                       kn_attr_int("columns_first", columns)));
}

void kn_onnx_space_to_depth(kn_onnx_node *n)
{
    kn_onnx_emit(n, 0, "space_to_depth", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("block", kn_onnx_int(n, "blocksize", 0))));
}

/* ---- making tensors ---- */

void kn_onnx_shape(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    kn_onnx_emit(n, 0, "shape", VALUES(x),
                 ATTRS(kn_attr_int("start", kn_onnx_int(n, "start", 0)),
                       kn_attr_int("end", kn_onnx_int(n, "end", x->rank))));
}

void kn_onnx_constant_of_shape(kn_onnx_node *n)
{
    int rank;
    const kn_expr *const *shape = kn_onnx_content(n, 0, 0, KN_SIZE_DEFAULT_MAX, &rank);
    const kn_onnx_attr *value = kn_onnx_get(n, "value");
    kn_value *v = value && value->tensor ? value->tensor : kn_onnx_scalar(n, KN_F32, 0);
    if (v->rank > 0)
        v = kn_onnx_reshape(n, INNER, v, NULL, 0);
    kn_onnx_expand(n, 0, v, shape, rank);
}

/* How many steps there are from start to limit: ceil((limit - start) / delta), found in the graph
 * as an i64 and then read. */
static const kn_expr *range_size(kn_onnx_node *n, kn_value *start, kn_value *limit, kn_value *delta)
{
    kn_value *from = kn_onnx_cast(n, INNER, start, KN_F64),
             *to = kn_onnx_cast(n, INNER, limit, KN_F64);
    kn_value *steps = kn_onnx_binary(n, INNER, "div", kn_onnx_binary(n, INNER, "sub", to, from),
                                     kn_onnx_cast(n, INNER, delta, KN_F64));
    steps = kn_onnx_binary(n, INNER, "max", kn_onnx_unary(n, INNER, "ceil", steps),
                           kn_onnx_scalar(n, KN_F64, 0));
    const kn_expr *const *content =
        kn_graph_content(n->g, kn_onnx_cast(n, INNER, steps, KN_I64), 0, KN_SIZE_DEFAULT_MAX);
    if (!content || kn_value_count(steps) != 1)
        kn_onnx_unsupported(n, "start, limit and delta must be scalars");
    return content[0];
}

/* Integers whose step is known need no arithmetic at run time. */
static const kn_expr *integer_range_size(kn_onnx_node *n)
{
    kn_arena *a = arena(n);
    const kn_expr *const *c[3];
    int64_t delta;
    for (int k = 0; k < 3; k++) {
        kn_value *v = kn_onnx_need(n, k);
        c[k] = v->content;
        if (!c[k] || kn_value_count(v) != 1)
            return NULL;
    }
    if (!kn_index_const(c[2][0], &delta) || delta == 0 || delta > FAR || delta < -FAR)
        return NULL;
    const kn_expr *span =
        delta > 0 ? kn_index_sub(a, c[1][0], c[0][0]) : kn_index_sub(a, c[0][0], c[1][0]);
    return kn_onnx_max(n, kn_index_ceildiv(a, span, delta > 0 ? delta : -delta), number(n, 0));
}

void kn_onnx_range_of(kn_onnx_node *n)
{
    kn_value *start = kn_onnx_need(n, 0), *delta = kn_onnx_need(n, 2);
    const kn_expr *size = integer_range_size(n);
    if (!size)
        size = range_size(n, start, kn_onnx_need(n, 1), delta);
    kn_onnx_emit(n, 0, "range", VALUES(start, delta), ATTRS(kn_attr_index("size", size)));
}

void kn_onnx_eye_like(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    const kn_onnx_attr *dtype = kn_onnx_get(n, "dtype");
    kn_dtype type = dtype ? kn_onnx_dtype(n, dtype->i) : x->type;
    kn_onnx_emit(n, 0, "eye", NO_VALUES,
                 ATTRS(kn_attr_indexes("shape", x->shape, x->rank),
                       kn_attr_int("k", kn_onnx_int(n, "k", 0)), kn_attr_type("to", type)));
}

void kn_onnx_trilu(kn_onnx_node *n)
{
    const kn_expr *k = number(n, 0);
    if (kn_onnx_in(n, 1))
        k = near(n, kn_onnx_content_one(n, 1, -KN_SIZE_DEFAULT_MAX, KN_SIZE_DEFAULT_MAX));
    kn_onnx_emit(n, 0, "trilu", VALUES(kn_onnx_need(n, 0)),
                 ATTRS(kn_attr_int("upper", kn_onnx_int(n, "upper", 1)), kn_attr_index("k", k)));
}

void kn_onnx_one_hot(kn_onnx_node *n)
{
    kn_value *depth = kn_onnx_need(n, 1);
    const kn_expr *const *content =
        kn_graph_content(n->g, kn_onnx_cast(n, INNER, depth, KN_I64), 0, KN_SIZE_DEFAULT_MAX);
    if (!content || kn_value_count(depth) != 1)
        kn_onnx_unsupported(n, "depth must be a scalar");
    kn_onnx_emit(
        n, 0, "one_hot", VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 2)),
        ATTRS(kn_attr_index("depth", content[0]), kn_attr_int("axis", kn_onnx_int(n, "axis", -1))));
}

/* ---- gather, scatter, search ---- */

void kn_onnx_gather(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *i = kn_onnx_need(n, 1);
    if (strcmp(n->type, "GatherND") == 0)
        kn_onnx_emit(n, 0, "gather_nd", VALUES(x, i),
                     ATTRS(kn_attr_int("batch_dims", kn_onnx_int(n, "batch_dims", 0))));
    else
        kn_onnx_emit(n, 0, strcmp(n->type, "Gather") == 0 ? "gather" : "gather_elements",
                     VALUES(x, i), ATTRS(kn_attr_int("axis", kn_onnx_int(n, "axis", 0))));
}

void kn_onnx_scatter(kn_onnx_node *n)
{
    bool nd = strcmp(n->type, "ScatterND") == 0;
    const kn_attr attrs[] = {kn_attr_string("reduction", kn_onnx_string(n, "reduction", "none")),
                             kn_attr_int("axis", kn_onnx_int(n, "axis", 0))};
    kn_onnx_emit(n, 0, nd ? "scatter_nd" : "scatter_elements",
                 VALUES(kn_onnx_need(n, 0), kn_onnx_need(n, 1), kn_onnx_need(n, 2)), attrs,
                 nd ? 1 : 2);
}

/* How many elements are not zero: read at run time, at most all. */
static const kn_expr *count_of(kn_onnx_node *n, kn_value *v)
{
    kn_value *count = kn_onnx_unary(n, INNER, "count_nonzero", v);
    return kn_graph_content(n->g, count, 0, kn_onnx_most(n, v->shape, v->rank))[0];
}

void kn_onnx_nonzero(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0);
    kn_onnx_emit(n, 0, "nonzero", VALUES(x), ATTRS(kn_attr_index("count", count_of(n, x))));
}

/* Without an axis, of the flattened tensor. */
void kn_onnx_compress(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *keep = kn_onnx_need(n, 1);
    int64_t axis = kn_onnx_int(n, "axis", 0);
    if (!kn_onnx_get(n, "axis")) {
        const kn_expr *total = kn_index_product(arena(n), x->shape, x->rank);
        x = kn_onnx_reshape(n, INNER, x, &total, 1);
    }
    kn_onnx_emit(n, 0, "compress", VALUES(x, keep),
                 ATTRS(kn_attr_int("axis", axis), kn_attr_index("count", count_of(n, keep))));
}

void kn_onnx_top_k(kn_onnx_node *n)
{
    const kn_expr *k = number(n, kn_onnx_int(n, "k", 1));
    if (kn_onnx_in(n, 1))
        k = kn_onnx_content_one(n, 1, 0, KN_SIZE_DEFAULT_MAX);
    const kn_attr attrs[] = {kn_attr_index("k", k), kn_attr_int("axis", kn_onnx_int(n, "axis", -1)),
                             kn_attr_int("largest", kn_onnx_int(n, "largest", 1))};
    kn_onnx_emit_all(n, 2, "top_k", VALUES(kn_onnx_need(n, 0)), attrs, 3);
}
