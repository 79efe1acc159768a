/* Expansions of operators that move, cut, join and repeat. Names: $d dimensions of the operand, $i
   indices of the result or the operand, $s subscripts of the operand, $o dimensions of the result.
 */
#include "ir/expand_internal.h"

static kn_subs operand_dims(kn_x *x, int k)
{
    kn_subs d = kn_x_subs(x, "d", kn_x_rank(x, k));
    kn_x_let(x, "d", &d);
    return d;
}

static kn_subs indices(kn_x *x, int n)
{
    kn_subs i = kn_x_subs(x, "x", n);
    kn_x_let(x, "i", &i);
    return i;
}

/* ---- reshape ---- */

/* The row-major address of subscripts over dimensions; "0" when there are none. */
static const char *linear(kn_x *x, const kn_subs *at, const kn_subs *dims)
{
    const char *text = at->n ? NULL : "0";
    for (int k = 0; k < at->n; k++)
        text = text ? kn_format(x->a, "%s * %s + %s",
                                strchr(text, '+') ? kn_format(x->a, "(%s)", text) : text,
                                dims->at[k], at->at[k])
                    : at->at[k];
    return text;
}

/* The subscripts over dimensions for a row-major address. */
static kn_subs split_linear(kn_x *x, const char *address, const kn_subs *dims)
{
    kn_subs out = {0};
    for (int k = 0; k < dims->n; k++) {
        const char *below = NULL;
        for (int j = k + 1; j < dims->n; j++)
            below = below ? kn_format(x->a, "%s * %s", below, dims->at[j]) : dims->at[j];
        const char *item = below ? kn_format(x->a, "(%s) / (%s)", address, below) : address;
        if (k > 0)
            item = kn_format(x->a, "(%s) %% %s", item, dims->at[k]);
        kn_x_push(x, &out, item);
    }
    return out;
}

typedef struct {
    const kn_expr *const *shape; /* of the operand, of the result */
    int rank;
    kn_subs dims, subs; /* dimensions as texts; subscripts, growing */
} reshape_side;

static bool is_empty(const reshape_side *s)
{
    for (int k = 0; k < s->rank; k++)
        if (kn_index_is(s->shape[k], 0))
            return true;
    return false;
}

/* The shortest runs p[0..pn), q[0..qn) of both sides from their cursors on whose products agree;
 * the rest when none do. */
static void agreeing(kn_x *x, const reshape_side *p, const reshape_side *q, int pn, int qn,
                     int *pend, int *qend)
{
    for (int len = 2; len <= p->rank - pn + q->rank - qn; len++)
        for (int a = 1; a < len; a++) {
            int b = len - a;
            if (pn + a > p->rank || qn + b > q->rank)
                continue;
            const kn_expr *left = kn_index_product(x->a, p->shape + pn, a);
            const kn_expr *right = kn_index_product(x->a, q->shape + qn, b);
            if (kn_expr_equal(left, right)) {
                *pend = pn + a;
                *qend = qn + b;
                return;
            }
        }
    *pend = p->rank;
    *qend = q->rank;
}

/* Dimensions from..to of a side that are not 1, and indices named after `stem` for them; "0" stands
 * for the others in `all`. */
static kn_subs live_dims(kn_x *x, const reshape_side *s, int from, int to, const char *stem,
                         kn_subs *index, kn_subs *all)
{
    kn_subs dims = {0};
    for (int k = from; k < to; k++) {
        bool one = kn_index_is(s->shape[k], 1);
        const char *name = one ? "0" : kn_format(x->a, "%s%d", stem, k);
        kn_x_push(x, all, name);
        if (one)
            continue;
        kn_x_push(x, &dims, s->dims.at[k]);
        kn_x_push(x, index, name);
    }
    return dims;
}

/* Whether an address can be split over these dimensions: all but the first are constants. */
static bool divisible(const kn_subs *dims)
{
    for (int k = 1; k < dims->n; k++)
        if (dims->at[k][0] < '0' || dims->at[k][0] > '9')
            return false;
    return true;
}

/* Appends the subscripts of one side, found by splitting an address of the other. */
static void push_split(kn_x *x, reshape_side *s, int from, int to, const char *address,
                       const kn_subs *dims)
{
    kn_subs split = split_linear(x, address, dims);
    for (int k = from, j = 0; k < to; k++)
        kn_x_push(x, &s->subs, kn_index_is(s->shape[k], 1) ? "0" : split.at[j++]);
}

/* One run of dimensions that holds the same elements on both sides: the indices are those of the
   side that need not be divided by a symbol. False when both would have to be. */
static bool reshape_run(kn_x *x, reshape_side *p, reshape_side *q, int pn, int pend, int qn,
                        int qend)
{
    kn_subs i = {0}, j = {0}, qs = {0}, ps = {0};
    kn_subs qdims = live_dims(x, q, qn, qend, "x", &i, &qs),
            pdims = live_dims(x, p, pn, pend, "j", &j, &ps);
    if (divisible(&pdims)) {
        kn_x_append(x, &q->subs, &qs);
        push_split(x, p, pn, pend, linear(x, &i, &qdims), &pdims);
        return true;
    }
    kn_x_append(x, &p->subs, &ps);
    push_split(x, q, qn, qend, linear(x, &j, &pdims), &qdims);
    return divisible(&qdims);
}

static reshape_side operand_side(kn_x *x)
{
    const kn_value *v = kn_x_operand(x, 0);
    reshape_side p = {.shape = v->shape, .rank = v->rank};
    kn_subs d = operand_dims(x, 0);
    for (int k = 0; k < p.rank; k++)
        kn_x_push(x, &p.dims, kn_x_dim_text(x, 0, k, d.at[k]));
    return p;
}

static reshape_side result_side(kn_x *x)
{
    const kn_attr *shape = kn_node_attr(x->node, "shape");
    if (!shape || shape->kind != KN_A_INDEXES)
        kn_x_fail(x, "expected the attribute `shape`, a list");
    reshape_side q = {.shape = shape->indexes, .rank = shape->n};
    for (int k = 0; k < q.rank; k++)
        kn_x_push(x, &q.dims, kn_x_index(x, "shape", k));
    kn_x_let(x, "o", &q.dims);
    return q;
}

/* By way of a flat tensor, whose size its first statement says: for symbolic shapes that have no
 * dimensions in common. */
static void write_flat(kn_x *x, const reshape_side *p, const reshape_side *q)
{
    kn_subs i = indices(x, q->rank), j = kn_x_subs(x, "j", p->rank);
    kn_x_let(x, "j", &j);
    kn_x_set(x, "from", "%s", linear(x, &j, &p->dims));
    kn_x_set(x, "to", "%s", linear(x, &i, &q->dims));
    kn_str all = kn_str_make(x->a);
    for (int k = 0; k < p->rank; k++)
        kn_putf(&all, "%s%s", k ? " * " : "", p->dims.at[k]);
    kn_x_set(x, "all", "%s", kn_str_get(&all));
    kn_x_write(x, "T[t] = cast(typeof(X), 0) where t in 0:$all; T[$from] = X[$j]; Y[$i] = T[$to]");
}

/* The same number of elements: at once where it is known, else when the sizes are. */
static void write_requirement(kn_x *x, const reshape_side *p, const reshape_side *q)
{
    const kn_expr *have = kn_index_product(x->a, p->shape, p->rank);
    const kn_expr *want = kn_index_product(x->a, q->shape, q->rank);
    int64_t m, n;
    if (kn_expr_equal(have, want))
        return;
    if (kn_index_const(have, &m) && kn_index_const(want, &n))
        kn_x_fail(x, "%lld elements do not make a shape of %lld", (long long)m, (long long)n);
    kn_str left = kn_str_make(x->a), right = kn_str_make(x->a);
    for (int k = 0; k < p->rank; k++)
        kn_putf(&left, " * %s", p->dims.at[k]);
    for (int k = 0; k < q->rank; k++)
        kn_putf(&right, " * %s", q->dims.at[k]);
    kn_putf(x->out, "require 1%s == 1%s; ", kn_str_get(&left), kn_str_get(&right));
}

/* Row-major order is kept, so both sides are cut into the shortest runs of dimensions whose
   products agree; each is split or merged by itself: (s, 12, 64) -> (s, 768) is Y[i, j] = X[i, j /
   64, j % 64]. Subscripts never divide by a symbol: a merge of symbolic dimensions runs over the
   operand, Y[i * s + j, k] = X[i, j, k]. What is copied is the same either way: the bytes of a
   reshape are those of its operand, and the lowering may rename them instead. */
void kn_expand_reshape(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    reshape_side p = operand_side(&x), q = result_side(&x);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: ");
    write_requirement(&x, &p, &q);
    if (is_empty(&p)) {
        indices(&x, q.rank);
        kn_x_write(&x, "Y[$i] = cast(typeof(X), 0)");
        return;
    }
    bool affine = true;
    for (int pn = 0, qn = 0, pend, qend; pn < p.rank || qn < q.rank; pn = pend, qn = qend) {
        agreeing(&x, &p, &q, pn, qn, &pend, &qend);
        affine &= reshape_run(&x, &p, &q, pn, pend, qn, qend);
    }
    if (!affine) {
        write_flat(&x, &p, &q);
        return;
    }
    kn_x_let(&x, "q", &q.subs);
    kn_x_let(&x, "s", &p.subs);
    kn_x_write(&x, "Y[$q] = X[$s]");
}

/* ---- transpose, slice, split, concat ---- */

void kn_expand_transpose(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs d = operand_dims(&x, 0), i = indices(&x, d.n), q = {0};
    unsigned seen = 0;
    if (kn_x_has(&x, "perm") && kn_x_count(&x, "perm") != d.n)
        kn_x_fail(&x, "perm has %d elements for rank %d", kn_x_count(&x, "perm"), d.n);
    for (int k = 0; k < d.n; k++) {
        int64_t from = kn_x_int_at(&x, "perm", k, d.n - 1 - k);
        from += from < 0 ? d.n : 0;
        if (from < 0 || from >= d.n || (seen >> from & 1))
            kn_x_fail(&x, "perm is no permutation of %d dimensions", d.n);
        seen |= 1u << from;
        kn_x_push(&x, &q, i.at[from]);
    }
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, "(X[$d]) -> Y: Y[$q] = X[$i]");
}

void kn_expand_slice(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs o = operand_dims(&x, 0), s = indices(&x, o.n), i = s;
    int n = kn_x_count(&x, "axes");
    if (n != kn_x_count(&x, "starts") || n != kn_x_count(&x, "sizes") ||
        (kn_x_has(&x, "steps") && n != kn_x_count(&x, "steps")))
        kn_x_fail(&x, "axes, starts, sizes and steps must be lists of one length");
    kn_str ranges = kn_str_make(x.a);
    for (int k = 0; k < n; k++) {
        int64_t axis = kn_x_int_at(&x, "axes", k, 0), step = kn_x_int_at(&x, "steps", k, 1);
        axis += axis < 0 ? o.n : 0;
        if (axis < 0 || axis >= o.n)
            kn_x_fail(&x, "axis %lld is outside rank %d", (long long)axis, o.n);
        o.at[axis] = kn_x_index(&x, "sizes", k);
        s.at[axis] = kn_format(x.a, "%s + (%lld) * %s", kn_x_index(&x, "starts", k),
                               (long long)step, i.at[axis]);
        kn_putf(&ranges, "%s%s in 0:%s", k ? ", " : " where ", i.at[axis], o.at[axis]);
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: Y[$i] = X[$s]");
    kn_put(out, kn_str_get(&ranges));
}

/* Piece k begins where the sizes before it end; together they are the whole. */
void kn_expand_split(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs d = operand_dims(&x, 0), i = indices(&x, d.n);
    int axis = kn_x_axis(&x, "axis", 0, d.n), n = kn_x_count(&x, "sizes");
    const char *at = "0";
    kn_str results = kn_str_make(x.a), body = kn_str_make(x.a), *whole = x.out;
    for (int k = 0; k < n; k++) {
        kn_subs o = d, s = i;
        o.at[axis] = kn_x_index(&x, "sizes", k);
        s.at[axis] = kn_format(x.a, "%s + %s", at, i.at[axis]);
        at = k ? kn_format(x.a, "%s + %s", at, o.at[axis]) : o.at[axis];
        kn_x_let(&x, "o", &o);
        kn_x_let(&x, "s", &s);
        kn_x_set(&x, "y", "Y%d", k);
        kn_x_set(&x, "r", "%s in 0:%s", i.at[axis], o.at[axis]);
        x.out = &results;
        kn_x_write(&x, k ? ", $y: typeof(X)[$o]" : "$y: typeof(X)[$o]");
        x.out = &body;
        kn_x_write(&x, k ? "; $y[$i] = X[$s] where $r" : "$y[$i] = X[$s] where $r");
    }
    x.out = whole;
    kn_x_write(&x, "(X[$d], $attrs) -> ");
    kn_putf(x.out, "%s: require %s == d%d; %s", kn_str_get(&results), at, axis, kn_str_get(&body));
}

/* Every operand is copied to its place. Dimensions along the axis are n0, n1, ...; the others must
 * agree. */
void kn_expand_concat(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs d = operand_dims(&x, 0), i = indices(&x, d.n);
    int axis = kn_x_axis(&x, "axis", 0, d.n);
    const char *at = "0";
    kn_str body = kn_str_make(x.a), *whole = x.out;
    kn_x_set(&x, "a", "x%d", axis);
    kn_x_write(&x, "(");
    for (int k = 0; k < node->ninputs; k++) {
        kn_subs s = i;
        if (kn_x_rank(&x, k) != d.n)
            kn_x_fail(&x, "operand %d has rank %d, expected %d", k, kn_x_rank(&x, k), d.n);
        d.at[axis] = kn_format(x.a, "n%d", k);
        s.at[axis] = kn_format(x.a, "%s + x%d", at, axis);
        at = kn_format(x.a, "%s + n%d", at, k);
        kn_x_let(&x, "d", &d);
        kn_x_let(&x, "s", &s);
        kn_x_set(&x, "x", "X%d", k);
        kn_x_set(&x, "n", "n%d", k);
        kn_x_write(&x, k ? ", $x[$d]" : "$x[$d]");
        x.out = &body;
        kn_x_write(&x, "; Y[$s] = $x[$i] where $a in 0:$n");
        x.out = whole;
    }
    d.at[axis] = at;
    kn_x_let(&x, "o", &d);
    kn_x_write(&x, ") -> Y: typeof(X0)[$o]: ");
    kn_put(out, kn_str_get(&body) + 2);
}

/* ---- pad, expand, tile ---- */

/* $o: the padded dimensions; $s: the operand's subscripts, perhaps outside. */
static void set_padding(kn_x *x)
{
    kn_subs o = operand_dims(x, 0), s = indices(x, o.n);
    if (kn_x_count(x, "before") != o.n || kn_x_count(x, "after") != o.n)
        kn_x_fail(x, "before and after must have one element a dimension, here %d", o.n);
    for (int k = 0; k < o.n; k++) {
        const char *before = kn_x_index(x, "before", k), *after = kn_x_index(x, "after", k);
        bool none = strcmp(before, "0") == 0;
        s.at[k] = none ? s.at[k] : kn_format(x->a, "%s - %s", s.at[k], before);
        o.at[k] = none && strcmp(after, "0") == 0
                      ? o.at[k]
                      : kn_format(x->a, "%s + %s + %s", o.at[k], before, after);
    }
    kn_x_let(x, "o", &o);
    kn_x_let(x, "s", &s);
}

void kn_expand_pad(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_padding(&x);
    if (kn_x_operand(&x, 1)) {
        kn_x_single(&x, "v", 1);
        kn_x_write(&x, "(X[$d], V[$v_d], $attrs) -> Y: typeof(X)[$o]: Y[$i] = X[$s] else V[$v_i]");
    } else
        kn_x_write(&x,
                   "(X[$d], $attrs) -> Y: typeof(X)[$o]: Y[$i] = X[$s] else cast(typeof(X), 0)");
}

/* Where a subscript p of 0..n-1 falls back to, for a p outside; all of type i64. */
static const char *around(kn_x *x, const char *mode)
{
    if (strcmp(mode, "edge") == 0)
        return "min(max($p, 0), $n - 1)";
    if (strcmp(mode, "wrap") == 0)
        return "mod($p, $n)";
    if (strcmp(mode, "reflect") != 0)
        kn_x_fail(x, "unknown mode `%s`, expected reflect, edge or wrap", mode);
    return "abs(mod($p + ($n - 1), max(2 * ($n - 1), 1)) - ($n - 1))";
}

/* One table of places an axis that is padded, then one gather. */
void kn_expand_pad_around(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    set_padding(&x);
    const char *place = around(&x, kn_x_string(&x, "mode", "reflect"));
    kn_subs s = kn_x_subs(&x, "x", kn_x_rank(&x, 0)), i = s;
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: ");
    for (int k = 0; k < s.n; k++) {
        const char *before = kn_x_index(&x, "before", k), *after = kn_x_index(&x, "after", k);
        if (strcmp(before, "0") == 0 && strcmp(after, "0") == 0)
            continue;
        kn_x_set(&x, "n", "cast(i64, d%d)", k);
        kn_x_set(&x, "p", "cast(i64, i - %s)", before);
        kn_putf(out, "J%d[i] = ", k);
        kn_x_write(&x, place);
        kn_putf(out, " where i in 0:d%d + %s + %s; ", k, before, after);
        s.at[k] = kn_format(x.a, "J%d[%s]", k, i.at[k]);
    }
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$i] = X[$s]");
}

/* Whether a dimension of the operand is 1, or nothing. */
static bool at_most_one(const kn_x *x, int axis)
{
    const kn_expr *d = x->node->inputs[0]->shape[axis];
    return kn_index_range(d, x->g->sizes, x->g->nsizes).hi == 1;
}

/* Whether it may be 1, or may be more, as long as the sizes are not known; and is to become `to`. */
static bool may_be_one(const kn_x *x, int axis, const kn_expr *to)
{
    const kn_expr *d = x->node->inputs[0]->shape[axis];
    kn_range r = kn_index_range(d, x->g->sizes, x->g->nsizes);
    return r.lo <= 1 && r.hi > 1 && !kn_expr_equal(d, to);
}

/* One dimension of the operand, d, that becomes `to`, subscripted by i: 1 is repeated, anything
   else stays. Returns the operand's subscript. */
static const char *expand_dim(kn_x *x, int axis, const kn_expr *to, const char **o, const char *d,
                              const char *i, kn_str *requires_)
{
    int64_t from = kn_x_dim(x, 0, axis), known;
    if (kn_index_is(to, 1))
        *o = d;
    else if (at_most_one(x, axis))
        return "0";
    else if (from >= 0) {
        if (kn_index_const(to, &known) && known != from)
            kn_x_fail(x, "dimension %d of the operand is %lld, which cannot become %lld", axis,
                      (long long)from, (long long)known);
        kn_putf(requires_, "require %s == %s; ", *o, d);
        *o = d;
    } else if (may_be_one(x, axis, to)) {
        kn_putf(requires_, "require %s == 1 || %s == %s; ", d, d, *o);
        return kn_format(x->a, "min(%s, %s - 1)", i, d);
    }
    return at_most_one(x, axis) ? "0" : i;
}

/* The operand's dimensions of 1 are repeated; the result's dimensions that are 1 or missing are the
 * operand's. */
void kn_expand_expand(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs d = operand_dims(&x, 0);
    int given = kn_x_count(&x, "shape"), rank = d.n > given ? d.n : given;
    const kn_attr *shape = kn_node_attr(node, "shape");
    kn_subs o = kn_x_subs(&x, "", rank), i = indices(&x, rank), s = {0};
    kn_str requires_ = kn_str_make(x.a);
    for (int k = 0; k < rank; k++) {
        int from = k - (rank - d.n), to = k - (rank - given);
        const kn_expr *size = to >= 0 ? shape->indexes[to] : kn_index(x.a, 1);
        o.at[k] = to >= 0 ? kn_x_index(&x, "shape", to) : "1";
        if (from >= 0)
            kn_x_push(&x, &s,
                      expand_dim(&x, from, size, &o.at[k], d.at[from], i.at[k], &requires_));
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: ");
    kn_put(out, kn_str_get(&requires_));
    kn_x_write(&x, "Y[$i] = X[$s]");
}

/* Place i of a dimension repeats element i % n; where n is a symbol, the copies are counted by q
 * instead. */
void kn_expand_tile(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_subs o = operand_dims(&x, 0), s = indices(&x, o.n), q = s;
    kn_str ranges = kn_str_make(x.a);
    if (kn_x_count(&x, "repeats") != o.n)
        kn_x_fail(&x, "repeats must have one element a dimension, here %d", o.n);
    for (int k = 0; k < o.n; k++) {
        const char *repeats = kn_x_index(&x, "repeats", k), *n = kn_x_dim_text(&x, 0, k, o.at[k]);
        if (strcmp(repeats, "1") == 0 || strcmp(n, "0") == 0)
            continue;
        if (kn_x_dim(&x, 0, k) < 0) {
            kn_putf(&ranges, "%sq%d in 0:%s", ranges.n ? ", " : " where ", k, repeats);
            q.at[k] = kn_format(x.a, "q%d * %s + %s", k, n, s.at[k]);
        } else
            s.at[k] = strcmp(n, "1") == 0 ? "0" : kn_format(x.a, "%s %% %s", s.at[k], n);
        o.at[k] = kn_format(x.a, "%s * %s", n, repeats);
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "s", &s);
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: Y[$q] = X[$s]");
    kn_put(out, kn_str_get(&ranges));
}

/* ---- blocks ---- */

void kn_expand_depth_to_space(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    if (kn_x_rank(&x, 0) != 4)
        kn_x_fail(&x, "the operand has rank %d, expected 4", kn_x_rank(&x, 0));
    int64_t b = kn_x_int(&x, "block", 0), c = kn_x_dim_const(&x, 0, 1);
    bool columns = kn_x_int(&x, "columns_first", 0) != 0;
    if (b <= 0 || b > 1 << 15 || c % (b * b) != 0)
        kn_x_fail(&x, "%lld channels do not split into blocks of %lld", (long long)c, (long long)b);
    kn_x_set(&x, "b", "%lld", (long long)b);
    kn_x_set(&x, "c", "%lld", (long long)(c / (b * b)));
    kn_x_set(&x, "s",
             columns ? "c * %lld + h %% %lld * %lld + w %% %lld"
                     : "(h %% %lld * %lld + w %% %lld) * %lld + c",
             (long long)(columns ? b * b : b), (long long)b, (long long)b,
             (long long)(columns ? b : c / (b * b)));
    kn_x_write(&x, "(X[N, C, H, W]) -> Y: typeof(X)[N, $c, H * $b, W * $b]: Y[n, c, h, w] = X[n, "
                   "$s, h / $b, w / $b]");
}

void kn_expand_space_to_depth(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    if (kn_x_rank(&x, 0) != 4)
        kn_x_fail(&x, "the operand has rank %d, expected 4", kn_x_rank(&x, 0));
    int64_t b = kn_x_int(&x, "block", 0), c = kn_x_dim_const(&x, 0, 1);
    if (b <= 0 || b > 1 << 15 || c <= 0)
        kn_x_fail(&x, "%lld channels do not split into blocks of %lld", (long long)c, (long long)b);
    kn_x_set(&x, "b", "%lld", (long long)b);
    kn_x_set(&x, "c", "%lld", (long long)c);
    kn_x_write(&x, "(X[N, C, H, W]) -> Y: typeof(X)[N, $c * $b * $b, H / $b, W / $b]: "
                   "Y[n, c, h, w] = X[n, c % $c, h * $b + c / $c / $b, w * $b + c / $c % $b]");
}
