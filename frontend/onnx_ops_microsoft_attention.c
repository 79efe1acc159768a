/* com.microsoft's attentions. All become one `attention` node on [batch, heads, sequence, size]
   operands; their masks become numbers that are added: 0, or mask_filter_value where a key is
   hidden. */
#include "frontend/onnx_ops_internal.h"

static const kn_expr *number(const kn_onnx_node *n, int64_t v)
{
    return kn_index(n->g->arena, v);
}

/* ---- masks ---- */

/* 0, 1, ... along the last of `rank` dimensions, as the type of the lengths that they are compared
 * with. */
static kn_value *places(kn_onnx_node *n, kn_dtype type, const kn_expr *size)
{
    return kn_onnx_emit(n, INNER, "range",
                        VALUES(kn_onnx_scalar(n, type, 0), kn_onnx_scalar(n, type, 1)),
                        ATTRS(kn_attr_index("size", size)));
}

/* A part of a vector of lengths as [batch, 1]. */
static kn_value *column(kn_onnx_node *n, kn_value *lengths, const kn_expr *start,
                        const kn_expr *batch)
{
    const kn_expr *shape[] = {batch, number(n, 1)};
    return kn_onnx_reshape(n, INNER, kn_onnx_slice(n, INNER, lengths, 0, start, batch), shape, 2);
}

/* Of a vector of key counts a batch, or of ends and then starts: which keys are seen, as bool
 * [batch, keys]. */
static kn_value *seen_by_length(kn_onnx_node *n, kn_value *lengths, const kn_expr *batch,
                                const kn_expr *keys)
{
    kn_value *at = places(n, lengths->type, keys);
    kn_value *seen = kn_onnx_binary(n, INNER, "less", at, column(n, lengths, number(n, 0), batch));
    if (!kn_expr_equal(lengths->shape[0], kn_index_mul(n->g->arena, batch, number(n, 2))))
        return seen;
    return kn_onnx_binary(
        n, INNER, "and", seen,
        kn_onnx_binary(n, INNER, "greater_equal", at, column(n, lengths, batch, batch)));
}

/* A mask of integers in any of the forms that ONNX Runtime knows, as what is added: [batch, 1, 1 or
 * queries, keys]. */
static kn_value *additive(kn_onnx_node *n, kn_value *mask, kn_dtype type, const kn_expr *batch,
                          const kn_expr *queries, const kn_expr *past, const kn_expr *keys)
{
    if (!mask)
        return NULL;
    kn_value *seen;
    if (mask->rank == 1)
        seen = seen_by_length(n, mask, batch, keys);
    else
        seen = kn_onnx_binary(n, INNER, "not_equal", mask, kn_onnx_scalar(n, mask->type, 0));
    if (seen->rank == 4) { /* [batch, 1, longest, longest]: the rows of these queries */
        seen = kn_onnx_slice(n, INNER, seen, 2, past, queries);
        seen = kn_onnx_slice(n, INNER, seen, 3, number(n, 0), keys);
    } else {
        const kn_expr *shape[] = {seen->shape[0], number(n, 1),
                                  seen->rank == 3 ? seen->shape[1] : number(n, 1),
                                  seen->shape[seen->rank - 1]};
        seen = kn_onnx_reshape(n, INNER, seen, shape, 4);
    }
    kn_value *filter = kn_onnx_scalar(n, type, kn_onnx_float(n, "mask_filter_value", -10000));
    return kn_onnx_emit(n, INNER, "where", VALUES(seen, kn_onnx_scalar(n, type, 0), filter),
                        NO_ATTRS);
}

static kn_value *both(kn_onnx_node *n, kn_value *a, kn_value *b)
{
    return a && b ? kn_onnx_binary(n, INNER, "add", a, b) : a ? a : b;
}

/* ---- the attention itself ---- */

typedef struct {
    kn_value *q, *k, *v, *bias, *lengths;
    const kn_expr *past; /* NULL: none */
    bool causal;
    int64_t left;
    double softcap;
} parts;

static kn_value *emit_attention(kn_onnx_node *n, const parts *p)
{
    kn_attr attrs[8];
    int count = 0;
    double scale = kn_onnx_float(n, "scale", 0);
    if (scale != 0)
        attrs[count++] = kn_attr_float("scale", scale);
    attrs[count++] = kn_attr_int("causal", p->causal);
    attrs[count++] = kn_attr_int("left", p->left);
    attrs[count++] = kn_attr_float("softcap", p->softcap);
    if (p->past)
        attrs[count++] = kn_attr_index("offset", p->past);
    return kn_onnx_emit(n, INNER, "attention", VALUES(p->q, p->k, p->v, p->bias, p->lengths), attrs,
                        count);
}

/* One half of a past [2, batch, heads, past, size]. */
static kn_value *half_past(kn_onnx_node *n, kn_value *past, int which)
{
    if (!past)
        return NULL;
    kn_value *half = kn_onnx_slice(n, INNER, past, 0, number(n, which), number(n, 1));
    return kn_onnx_reshape(n, INNER, half, past->shape + 1, 4);
}

/* [2, ...] of keys and values. */
static void emit_present(kn_onnx_node *n, int k, kn_value *keys, kn_value *values)
{
    const kn_expr *one[] = {number(n, 1), keys->shape[0], keys->shape[1], keys->shape[2],
                            keys->shape[3]};
    kn_value *a = kn_onnx_reshape(n, INNER, keys, one, 5),
             *b = kn_onnx_reshape(n, INNER, values, one, 5);
    kn_onnx_emit(n, k, "concat", VALUES(a, b), ATTRS(kn_attr_int("axis", 0)));
}

/* One product makes queries, keys and values; `sizes` are their widths. */
static void project(kn_onnx_node *n, kn_value *x, kn_value *w, kn_value *bias, int64_t heads,
                    const int64_t *given, parts *p)
{
    kn_arena *a = n->g->arena;
    kn_value *all = kn_onnx_binary(n, INNER, "matmul", x, w), **to[] = {&p->q, &p->k, &p->v};
    const kn_expr *at = number(n, 0), *third = kn_index_div(a, w->shape[1], number(n, 3));
    if (bias)
        all = kn_onnx_binary(n, INNER, "add", all, bias);
    for (int k = 0; k < 3; k++) {
        const kn_expr *size = given ? number(n, given[k]) : third;
        *to[k] = kn_onnx_split_heads(n, kn_onnx_slice(n, INNER, all, 2, at, size), heads);
        at = kn_index_add(a, at, size);
    }
}

void kn_onnx_ms_attention(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *past = kn_onnx_in(n, 4);
    int count;
    const int64_t *sizes = kn_onnx_ints(n, "qkv_hidden_sizes", &count);
    if ((sizes && count != 3) || kn_onnx_int(n, "do_rotary", 0) || kn_onnx_in(n, 6))
        kn_onnx_unsupported(n, "qkv_hidden_sizes of %d elements, do_rotary or past_sequence_length",
                            count);
    parts p = {.left = -1, .causal = kn_onnx_int(n, "unidirectional", 0) != 0};
    project(n, x, kn_onnx_need(n, 1), kn_onnx_in(n, 2), kn_onnx_int(n, "num_heads", 0), sizes, &p);
    const kn_expr *before = past ? past->shape[3] : number(n, 0);
    p.past = past ? before : NULL;
    p.k = kn_onnx_join_past(n, INNER, half_past(n, past, 0), p.k);
    p.v = kn_onnx_join_past(n, INNER, half_past(n, past, 1), p.v);
    if (kn_onnx_wants(n, 1))
        emit_present(n, 1, p.k, p.v);
    kn_value *mask =
        additive(n, kn_onnx_in(n, 3), x->type, x->shape[0], x->shape[1], before, p.k->shape[2]);
    p.bias = both(n, mask, kn_onnx_in(n, 5));
    kn_onnx_merge_heads(n, 0, emit_attention(n, &p));
}

/* Part `which` of [n, s, heads, `of`, d] as [n, heads, s, d]. */
static kn_value *unpack(kn_onnx_node *n, kn_value *x, int which)
{
    const kn_expr *shape[] = {x->shape[0], x->shape[1], x->shape[2], x->shape[4]};
    kn_value *part = kn_onnx_slice(n, INNER, x, 3, number(n, which), number(n, 1));
    return kn_onnx_swap_heads(n, INNER, kn_onnx_reshape(n, INNER, part, shape, 4));
}

/* Adds the part of the bias [q, k, v] that begins at `at` to an operand of rank 3. */
static kn_value *add_bias(kn_onnx_node *n, kn_value *x, kn_value *bias, const kn_expr *at)
{
    if (!bias || x->rank != 3)
        return x;
    return kn_onnx_binary(n, INNER, "add", x, kn_onnx_slice(n, INNER, bias, 0, at, x->shape[2]));
}

static void read_operands(kn_onnx_node *n, int64_t heads, parts *p)
{
    kn_arena *a = n->g->arena;
    kn_value *q = kn_onnx_need(n, 0), *k = kn_onnx_in(n, 1), *v = kn_onnx_in(n, 2),
             *bias = kn_onnx_in(n, 3);
    if (bias && (q->rank != 3 || (k && k->rank == 5)))
        kn_onnx_unsupported(n, "a bias on packed operands");
    if (q->rank == 5) {
        p->q = unpack(n, q, 0);
        p->k = unpack(n, q, 1);
        p->v = unpack(n, q, 2);
        return;
    }
    const kn_expr *at = q->shape[2];
    p->q = kn_onnx_split_heads(n, add_bias(n, q, bias, number(n, 0)), heads);
    if (k && k->rank == 5) {
        p->k = unpack(n, k, 0);
        p->v = unpack(n, k, 1);
        return;
    }
    if (!k || !v)
        kn_onnx_unsupported(n, "a missing key or value");
    p->k = kn_onnx_split_heads(n, add_bias(n, k, bias, at), heads);
    p->v = kn_onnx_split_heads(n, add_bias(n, v, bias, kn_index_add(a, at, at)), heads);
}

void kn_onnx_multi_head_attention(kn_onnx_node *n)
{
    kn_value *past = kn_onnx_in(n, 6);
    parts p = {.left = -1, .causal = kn_onnx_int(n, "unidirectional", 0) != 0};
    for (int k = 8; k < n->ninputs; k++)
        if (kn_onnx_in(n, k))
            kn_onnx_unsupported(n, "input %d", k);
    if (kn_onnx_wants(n, 3))
        kn_onnx_unsupported(n, "output 3");
    read_operands(n, kn_onnx_int(n, "num_heads", 0), &p);
    p.past = past ? past->shape[2] : NULL;
    p.k = kn_onnx_join_past(n, kn_onnx_wants(n, 1) ? 1 : -1, past, p.k);
    p.v = kn_onnx_join_past(n, kn_onnx_wants(n, 2) ? 2 : -1, kn_onnx_in(n, 7), p.v);
    kn_value *mask = additive(n, kn_onnx_in(n, 4), p.q->type, p.q->shape[0], p.q->shape[2],
                              past ? past->shape[2] : number(n, 0), p.k->shape[2]);
    p.bias = both(n, mask, kn_onnx_in(n, 5));
    kn_onnx_merge_heads(n, 0, emit_attention(n, &p));
}

/* ---- grouped queries with a cache ---- */

/* cos and sin come behind the positions here, and a single position is where the sequence starts.
 */
static kn_value *rotate(kn_onnx_node *n, int k, kn_value *x, kn_value *positions, kn_value *cosine,
                        kn_value *sine, bool interleaved, int64_t dim)
{
    const kn_attr attrs[] = {kn_attr_int("interleaved", interleaved), kn_attr_int("dim", dim)};
    return kn_onnx_emit(n, k, "rotary_embedding", VALUES(x, cosine, sine, positions), attrs,
                        dim ? 2 : 1);
}

/* 0, 1, ... from `first` (of one element, or [batch, 1]) on. */
static kn_value *positions_from(kn_onnx_node *n, kn_value *first, const kn_expr *size)
{
    return kn_onnx_binary(n, INNER, "add", first, places(n, first->type, size));
}

void kn_onnx_ms_rotary(kn_onnx_node *n)
{
    kn_value *x = kn_onnx_need(n, 0), *positions = kn_onnx_need(n, 1), *cosine = kn_onnx_need(n, 2);
    int64_t heads = kn_onnx_int(n, "num_heads", 0), dim = kn_onnx_int(n, "rotary_embedding_dim", 0),
            half;
    bool flat = x->rank == 3;
    if (flat && heads == 0) { /* the caches say the size of a head */
        int64_t width;
        if (!kn_index_const(cosine->shape[1], &half) || !kn_index_const(x->shape[2], &width) ||
            half == 0)
            kn_onnx_unsupported(n, "num_heads is missing");
        heads = width / (2 * half);
    }
    kn_value *y = kn_onnx_split_heads(n, x, heads);
    if (positions->rank == 1) {
        const kn_expr *one[] = {number(n, 1), number(n, 1)};
        positions = positions_from(n, kn_onnx_reshape(n, INNER, positions, one, 2), y->shape[2]);
    }
    y = rotate(n, flat ? INNER : 0, y, positions, cosine, kn_onnx_need(n, 3),
               kn_onnx_int(n, "interleaved", 0) != 0, dim);
    if (flat)
        kn_onnx_merge_heads(n, 0, y);
}

/* The cache with the new keys or values written from the first free place of each batch on: output
 * k. */
static kn_value *write_cache(kn_onnx_node *n, int k, kn_value *past, kn_value *now, kn_value *first,
                             const kn_expr *total)
{
    if (!past) {
        kn_onnx_return(n, k, now);
        return now;
    }
    const kn_expr *zero = number(n, 0),
                  *more = kn_index_sub(n->g->arena, kn_onnx_max(n, past->shape[2], total),
                                       past->shape[2]);
    const kn_expr *before[] = {zero, zero, zero, zero}, *after[] = {zero, zero, more, zero};
    kn_value *room = kn_index_is(more, 0) ? past
                                          : kn_onnx_emit(n, INNER, "pad", VALUES(past),
                                                         ATTRS(kn_attr_indexes("before", before, 4),
                                                               kn_attr_indexes("after", after, 4)));
    return kn_onnx_emit(n, k, "tensor_scatter", VALUES(room, now, first),
                        ATTRS(kn_attr_int("axis", 2)));
}

/* Packed queries, keys and values come in one operand. */
static void read_grouped(kn_onnx_node *n, int64_t heads, int64_t shared, parts *p)
{
    kn_arena *a = n->g->arena;
    kn_value *q = kn_onnx_need(n, 0), *k = kn_onnx_in(n, 1), *v = kn_onnx_in(n, 2);
    if (!k) {
        const kn_expr *size = kn_index_div(a, q->shape[2], number(n, heads + 2 * shared));
        const kn_expr *wide = kn_index_mul(a, size, number(n, heads)),
                      *narrow = kn_index_mul(a, size, number(n, shared));
        k = kn_onnx_slice(n, INNER, q, 2, wide, narrow);
        v = kn_onnx_slice(n, INNER, q, 2, kn_index_add(a, wide, narrow), narrow);
        q = kn_onnx_slice(n, INNER, q, 2, number(n, 0), wide);
    }
    p->q = kn_onnx_split_heads(n, q, heads);
    p->k = kn_onnx_split_heads(n, k, shared);
    p->v = kn_onnx_split_heads(n, v, shared);
}

void kn_onnx_group_query_attention(kn_onnx_node *n)
{
    kn_arena *a = n->g->arena;
    int64_t window = kn_onnx_int(n, "local_window_size", -1);
    parts p = {.causal = true,
               .left = window > 0 ? window - 1 : -1,
               .softcap = kn_onnx_float(n, "softcap", 0)};
    kn_value *past = kn_onnx_in(n, 3);
    if (kn_onnx_int(n, "smooth_softmax", 0) > 0 || kn_onnx_in(n, 11))
        kn_onnx_unsupported(n, "smooth_softmax or head_sink");
    read_grouped(n, kn_onnx_int(n, "num_heads", 0), kn_onnx_int(n, "kv_num_heads", 0), &p);
    const kn_expr *queries = p.q->shape[2];
    const kn_expr *total = kn_onnx_content_one(n, 6, 1, KN_SIZE_DEFAULT_MAX);
    kn_value *last = kn_onnx_cast(n, INNER, kn_onnx_need(n, 5), KN_I64);
    const kn_expr *batch[] = {p.q->shape[0]}, *ahead[] = {kn_index_sub(a, number(n, 1), queries)};
    last = kn_onnx_reshape(n, INNER, last, batch, 1);
    kn_value *step =
        kn_onnx_emit(n, INNER, "dims", NO_VALUES, ATTRS(kn_attr_indexes("values", ahead, 1)));
    kn_value *first = kn_onnx_binary(n, INNER, "add", last, step);
    if (kn_onnx_int(n, "do_rotary", 0)) {
        const kn_expr *column_of[] = {batch[0], number(n, 1)};
        kn_value *at = kn_onnx_in(n, 9);
        at = at ? at : positions_from(n, kn_onnx_reshape(n, INNER, first, column_of, 2), queries);
        bool interleaved = kn_onnx_int(n, "rotary_interleaved", 0) != 0;
        int64_t half = 0;
        if (!kn_index_const(kn_onnx_need(n, 7)->shape[1], &half))
            kn_onnx_unsupported(n, "a cos_cache of symbolic width");
        p.q = rotate(n, INNER, p.q, at, kn_onnx_need(n, 7), kn_onnx_need(n, 8), interleaved,
                     2 * half);
        p.k = rotate(n, INNER, p.k, at, kn_onnx_need(n, 7), kn_onnx_need(n, 8), interleaved,
                     2 * half);
    }
    p.k = write_cache(n, kn_onnx_wants(n, 1) ? 1 : -1, past, p.k, first, total);
    p.v = write_cache(n, kn_onnx_wants(n, 2) ? 2 : -1, kn_onnx_in(n, 4), p.v, first, total);
    p.lengths = kn_onnx_binary(n, INNER, "add", last, kn_onnx_scalar(n, KN_I64, 1));
    p.bias = kn_onnx_in(n, 10);
    kn_onnx_merge_heads(n, 0, emit_attention(n, &p));
}
