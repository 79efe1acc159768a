/* Rotary embedding: x cos + turned(x) sin, the halves of the last dimension turned into each other.
   The op `rotary_embedding` has tables of half the width, one row a place: [n or 1, t or 1, d / 2].
   Exporters make tables of the full width, whose halves must be equal: that is read from how they
   are made, and only the half is then made at all. */
#include "passes/graph/recognise_internal.h"

enum { MAX_DEPTH = 16 };

/* ---- half of a table ---- */

static kn_value *half_of(kn_match *m, kn_value *v, int64_t half, int depth, bool build);

/* The node again, on half of its operand k. */
static kn_value *on_half(kn_match *m, const kn_node *n, int k, int64_t half, int depth, bool build)
{
    kn_value *x = half_of(m, n->inputs[k], half, depth + 1, build);
    if (!x || !build) {
        return x;
    }
    kn_value *inputs[3];
    kn_attr attrs[KN_MAX_RANK];
    for (int i = 0; i < n->ninputs; i++) {
        inputs[i] = i == k ? x : n->inputs[i];
    }
    for (int i = 0; i < n->nattrs; i++) {
        attrs[i] = n->attrs[i];
        if (strcmp(attrs[i].name, "shape") != 0) {
            continue;
        }
        kn_arena *a = kn_match_graph(m)->arena;
        const kn_expr **shape = KN_ARRAY(a, const kn_expr *, attrs[i].n);
        for (int d = 0; d < attrs[i].n; d++) {
            shape[d] = d == attrs[i].n - 1 ? kn_index(a, half) : attrs[i].indexes[d];
        }
        attrs[i].indexes = shape;
    }
    return kn_match_node(m, n->op->name, inputs, n->ninputs, attrs, n->nattrs);
}

static bool is_one_of(const kn_node *n, const char *const *ops)
{
    for (; *ops; ops++) {
        if (strcmp(n->op->name, *ops) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether the last dimension of the result is that of operand k, element by element. */
static bool keeps_last(const kn_node *n, int k, int64_t width)
{
    static const char *const pointwise[] = {"cos",      "sin", "cast", "neg",
                                            "identity", "mul", "div",  NULL};
    static const char *const shapes[] = {"reshape", "expand", NULL};
    const kn_value *x = n->inputs[k];
    bool wide = x->rank > 0 && kn_index_is(x->shape[x->rank - 1], width);
    if (!wide || n->ninputs > 2) {
        return false;
    }
    if (is_one_of(n, pointwise)) {
        return n->ninputs == 1 || kn_value_count(n->inputs[1 - k]) == 1;
    }
    if (is_one_of(n, shapes)) {
        return kn_node_attr(n, "shape")->n > 0;
    }
    return strcmp(n->op->name, "gather") == 0 && k == 0 && x->rank > 1 &&
           kn_node_int(n, "axis", 0) == 0 && n->outputs[0]->rank >= x->rank;
}

static bool equal_halves(const kn_value *v, int64_t half)
{
    int64_t row = 2 * half * (kn_dtype_bits(v->type) / 8);
    for (int64_t at = 0; row > 0 && at + row <= (int64_t)v->bytes; at += row) {
        const char *p = (const char *)v->data + at;
        if (memcmp(p, p + row / 2, (size_t)row / 2) != 0) {
            return false;
        }
    }
    return kn_dtype_bits(v->type) >= 8;
}

static kn_value *first_half(kn_match *m, kn_value *v, int64_t half)
{
    kn_arena *a = kn_match_graph(m)->arena;
    const int64_t axis = v->rank - 1, start = 0;
    const kn_attr attrs[] = {kn_attr_ints(a, "axes", &axis, 1),
                             kn_attr_ints(a, "starts", &start, 1),
                             kn_attr_ints(a, "sizes", &half, 1)};
    return kn_match_node(m, "slice", &v, 1, attrs, 3);
}

/* Half of a table along its last dimension, NULL unless both are known to be equal. Without
 * `build`, only whether it is. */
static kn_value *half_of(kn_match *m, kn_value *v, int64_t half, int depth, bool build)
{
    const kn_node *n = v->def;
    if (depth > MAX_DEPTH || v->rank == 0 || !kn_index_is(v->shape[v->rank - 1], 2 * half)) {
        return NULL;
    }
    if (v->data) {
        bool equal = equal_halves(v, half);
        return equal && build ? first_half(m, v, half) : equal ? v : NULL;
    }
    if (!n || n->noutputs != 1) {
        return NULL;
    }
    if (strcmp(n->op->name, "concat") == 0) {
        int64_t axis = kn_node_int(n, "axis", 0);
        bool twice =
            n->ninputs == 2 && n->inputs[0] == n->inputs[1] && (axis == -1 || axis == v->rank - 1);
        return twice ? n->inputs[0] : NULL;
    }
    for (int k = 0; k < n->ninputs && k < 2; k++) {
        if (n->inputs[k] && keeps_last(n, k, 2 * half)) {
            return on_half(m, n, k, half, depth, build);
        }
    }
    return NULL;
}

/* ---- tables for the op ---- */

/* Dimension i of four, counted as x's: 1 where the table has none. */
static const kn_expr *dim_of(kn_match *m, const kn_value *table, int i)
{
    int k = i - (4 - table->rank);
    return k >= 0 ? table->shape[k] : kn_index(kn_match_graph(m)->arena, 1);
}

/* A table that broadcasts to x, and not along the heads. */
static bool fits(kn_match *m, const kn_value *x, const kn_value *table, int heads)
{
    bool fit = table->rank <= 4 && kn_index_is(dim_of(m, table, heads), 1);
    for (int i = 0; fit && i < 3; i++) {
        const kn_expr *d = dim_of(m, table, i);
        fit = kn_index_is(d, 1) || kn_expr_equal(d, x->shape[i]);
    }
    return fit;
}

static kn_value *by_place(kn_match *m, kn_value *table, int place)
{
    const kn_expr *shape[] = {dim_of(m, table, 0), dim_of(m, table, place),
                              table->shape[table->rank - 1]};
    if (table->rank == 3 && kn_expr_equal(table->shape[0], shape[0]) &&
        kn_expr_equal(table->shape[1], shape[1])) {
        return table;
    }
    const kn_attr attr = kn_attr_indexes("shape", shape, 3);
    return kn_match_node(m, "reshape", &table, 1, &attr, 1);
}

/* Sets %c, %s and `first`: where the heads are is read from where the tables have a 1. */
static bool set_tables(kn_match *m, int64_t half, bool wide)
{
    const kn_value *x = kn_match_value(m, "x");
    kn_value *cos = kn_match_value(m, "cos"), *sin = kn_match_value(m, "sin");
    bool first = !(fits(m, x, cos, 1) && fits(m, x, sin, 1));
    if (first && !(fits(m, x, cos, 2) && fits(m, x, sin, 2))) {
        return false;
    }
    if (wide) {
        if (!half_of(m, cos, half, 0, false) || !half_of(m, sin, half, 0, false)) {
            return false;
        }
        cos = half_of(m, cos, half, 0, true);
        sin = half_of(m, sin, half, 0, true);
    }
    kn_match_set(m, "c", by_place(m, cos, first ? 1 : 2));
    kn_match_set(m, "s", by_place(m, sin, first ? 1 : 2));
    kn_match_set_attr(m, "first", kn_attr_int("first", first));
    return true;
}

/* The number that `h` is, when x is twice as wide. */
static int64_t half_width(kn_match *m)
{
    const kn_value *x = kn_match_value(m, "x");
    int64_t half;
    bool known = kn_index_const(kn_match_attr(m, "h")->index, &half);
    return known && x->rank == 4 && kn_index_is(x->shape[3], 2 * half) ? half : -1;
}

bool kn_is_rotary(kn_match *m)
{
    int64_t half = half_width(m);
    return half >= 0 && set_tables(m, half, true);
}

bool kn_is_rotary_in_halves(kn_match *m)
{
    const kn_value *cos = kn_match_value(m, "cos"), *sin = kn_match_value(m, "sin");
    int64_t half = half_width(m);
    return half >= 0 && cos->rank > 0 && sin->rank > 0 &&
           kn_index_is(cos->shape[cos->rank - 1], half) &&
           kn_index_is(sin->shape[sin->rank - 1], half) && set_tables(m, half, false);
}
