/* Expansions of operators whose subscripts are data. A negative index counts from the end; one out
   of range fails the run. Indices are brought into range by a statement of their own (J), unless
   they cannot be negative. */
#include "ir/expand_internal.h"

/* Whether operand k, of indices, may hold a negative one. */
static bool may_be_negative(const kn_x *x, int k)
{
    const kn_value *v = kn_x_operand(x, k);
    if (!v || !kn_dtype_is_signed(v->type))
        return false;
    int64_t n = kn_value_count(v);
    for (int64_t i = 0; v->content && i < n; i++)
        if (kn_index_range(v->content[i], x->g->sizes, x->g->nsizes).lo < 0)
            return true;
    return !v->content;
}

/* Writes `J[$i] = ` the index I[$i] into `dim`, when needed, and returns the name of the tensor to
   read. `load` is the element of I, `subs` the subscripts of J. */
static const char *write_wrapped(kn_x *x, bool negative, const char *name, const char *subs,
                                 const char *load, const char *dim)
{
    if (negative)
        kn_putf(x->out, "%s[%s] = select(%s < 0, %s + cast(typeof(I), %s), %s); ", name, subs, load,
                load, dim, load);
    return negative ? kn_format(x->a, "%s[%s]", name, subs) : load;
}

static const char *joined(kn_x *x, const char *name, const kn_subs *list)
{
    kn_x_let(x, name, list);
    return kn_map_get(&x->names, name);
}

/* X[d0.., d_axis, ..], I[e0..] -> Y[d0.., e0.., ..] */
void kn_expand_gather(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    kn_subs d = kn_x_subs(&x, "d", rank), s = kn_x_subs(&x, "x", rank), o = {0}, q = {0};
    kn_subs e = kn_x_subs(&x, "e", kn_x_rank(&x, 1)), j = kn_x_subs(&x, "j", e.n);
    for (int k = 0; k < rank; k++) {
        if (k == axis) {
            kn_x_append(&x, &o, &e);
            kn_x_append(&x, &q, &j);
        } else {
            kn_x_push(&x, &o, d.at[k]);
            kn_x_push(&x, &q, s.at[k]);
        }
    }
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "e", &e);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, "(X[$d], I[$e]) -> Y: typeof(X)[$o]: ");
    const char *subs = joined(&x, "j", &j);
    s.at[axis] = write_wrapped(&x, may_be_negative(&x, 1), "J", subs, kn_format(x.a, "I[%s]", subs),
                               d.at[axis]);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$q] = X[$s]");
}

void kn_expand_gather_elements(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    if (kn_x_rank(&x, 1) != rank)
        kn_x_fail(&x, "the indices have rank %d, expected %d", kn_x_rank(&x, 1), rank);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), s = i;
    kn_x_let(&x, "d", &d);
    kn_x_dims(&x, "e", 1, "e");
    kn_x_write(&x, "(X[$d], I[$e]) -> Y: typeof(X)[$e]: ");
    const char *subs = joined(&x, "i", &i);
    s.at[axis] = write_wrapped(&x, may_be_negative(&x, 1), "J", subs, kn_format(x.a, "I[%s]", subs),
                               d.at[axis]);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$i] = X[$s]");
}

/* $e: dimensions of the indices of operand 1, the last being a constant: how many leading
   dimensions (behind `batch` shared ones) it subscripts. Appends to s the wrapped subscripts; j are
   the indices of all but the last dimension. */
static int write_tuple(kn_x *x, const kn_subs *j, kn_subs *s, int batch)
{
    bool negative = may_be_negative(x, 1);
    int64_t m = kn_x_dim_const(x, 1, j->n);
    if (batch + m > kn_x_rank(x, 0))
        kn_x_fail(x, "indices have %lld subscripts for rank %d", (long long)m, kn_x_rank(x, 0));
    const char *subs = joined(x, "j", j);
    for (int k = 0; k < (int)m; k++) {
        const char *load = kn_format(x->a, "I[%s%s%d]", subs, j->n ? ", " : "", k);
        kn_x_push(x, s,
                  write_wrapped(x, negative, kn_format(x->a, "J%d", k), subs, load,
                                kn_format(x->a, "d%d", batch + k)));
    }
    return (int)m;
}

/* X[b.., m subscripts.., rest..], I[b.., e.., m] -> Y[b.., e.., rest..] */
void kn_expand_gather_nd(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), n = kn_x_rank(&x, 1), batch = (int)kn_x_int(&x, "batch_dims", 0);
    if (batch < 0 || batch >= n || batch >= rank)
        kn_x_fail(&x, "batch_dims %d is outside ranks %d and %d", batch, rank, n);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank);
    kn_subs e = kn_x_subs(&x, "e", n), j = kn_x_subs(&x, "j", n - 1), s = {0};
    for (int k = 0; k < batch; k++) {
        e.at[k] = d.at[k];
        kn_x_push(&x, &s, j.at[k]);
    }
    e.at[n - 1] = kn_format(x.a, "%lld", (long long)kn_x_dim_const(&x, 1, n - 1));
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "e", &e);
    int from = batch + (int)kn_x_dim_const(&x, 1, n - 1);
    kn_subs o = kn_x_pick(&e, (1u << (n - 1)) - 1), q = j;
    for (int k = from; k < rank; k++) {
        kn_x_push(&x, &o, d.at[k]);
        kn_x_push(&x, &q, i.at[k]);
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, "(X[$d], I[$e]) -> Y: typeof(X)[$o]: ");
    write_tuple(&x, &j, &s, batch);
    for (int k = from; k < rank; k++)
        kn_x_push(&x, &s, i.at[k]);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$q] = X[$s]");
}

/* ---- scatter: a copy, then updates in the order of the indices ---- */

static void set_reduction(kn_x *x)
{
    static const struct {
        const char *name, *op;
    } table[] = {{"none", "="}, {"add", "+="}, {"mul", "*="}, {"max", "max="}, {"min", "min="}};
    const char *name = kn_x_string(x, "reduction", "none");
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (strcmp(table[k].name, name) == 0) {
            kn_x_set(x, "op", "%s", table[k].op);
            return;
        }
    kn_x_fail(x, "unknown reduction `%s`", name);
}

void kn_expand_scatter_elements(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    if (kn_x_rank(&x, 1) != rank || kn_x_rank(&x, 2) != rank)
        kn_x_fail(&x, "operands have ranks %d, %d, %d, expected one rank", rank, kn_x_rank(&x, 1),
                  kn_x_rank(&x, 2));
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), s = i;
    set_reduction(&x);
    kn_x_let(&x, "d", &d);
    kn_x_dims(&x, "e", 1, "e");
    const char *subs = joined(&x, "i", &i);
    kn_x_write(&x, "(X[$d], I[$e], U[$e]) -> Y: typeof(X)[$d]: Y[$i] = X[$i]; ");
    s.at[axis] = write_wrapped(&x, may_be_negative(&x, 1), "J", subs, kn_format(x.a, "I[%s]", subs),
                               d.at[axis]);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$s] $op U[$i]");
}

/* X[m subscripts.., rest..], I[e.., m], U[e.., rest..] */
void kn_expand_scatter_nd(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), n = kn_x_rank(&x, 1);
    if (n < 1)
        kn_x_fail(&x, "the indices have rank 0, expected at least 1");
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank);
    kn_subs e = kn_x_subs(&x, "e", n), j = kn_x_subs(&x, "j", n - 1), s = {0}, u = j;
    int m = (int)kn_x_dim_const(&x, 1, n - 1);
    e.at[n - 1] = kn_format(x.a, "%d", m);
    kn_subs ud = kn_x_pick(&e, (1u << (n - 1)) - 1);
    for (int k = m; k < rank; k++) {
        kn_x_push(&x, &ud, d.at[k]);
        kn_x_push(&x, &u, i.at[k]);
    }
    set_reduction(&x);
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "e", &e);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "ud", &ud);
    kn_x_let(&x, "u", &u);
    kn_x_write(&x, "(X[$d], I[$e], U[$ud]) -> Y: typeof(X)[$d]: Y[$i] = X[$i]; ");
    write_tuple(&x, &j, &s, 0);
    for (int k = m; k < rank; k++)
        kn_x_push(&x, &s, i.at[k]);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "Y[$s] $op U[$u]");
}

/* Where a kept slice goes is a running count of the true ones. */
void kn_expand_compress(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", 0, rank);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), o = d, q = i;
    o.at[axis] = kn_x_index(&x, "count", -1);
    i.at[axis] = "j";
    q.at[axis] = "P[j] - 1";
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_write(&x, "(X[$d], C[m], $attrs) -> Y: typeof(X)[$o]: "
                   "P[j] = select(j == 0, 0, P[j - 1]) + cast(i64, C[j]); "
                   "Y[$q] = X[$i] where C[j], j in 0:m");
}

/* U is written from place I[b] on along the axis, b the first dimension's index; circular: past the
 * end it goes on at 0. */
void kn_expand_tensor_scatter(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", -2, rank);
    bool places = kn_x_operand(&x, 2) != NULL, circular = kn_x_int(&x, "circular", 0) != 0;
    if (kn_x_rank(&x, 1) != rank || axis == 0)
        kn_x_fail(&x, "updates of rank %d along axis %d of rank %d", kn_x_rank(&x, 1), axis, rank);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), ud = d, q = i;
    ud.at[axis] = "n";
    q.at[axis] = "J[x0, j]";
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "ud", &ud);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "q", &q);
    i.at[axis] = "j";
    kn_x_let(&x, "u", &i);
    kn_x_set(&x, "from", places ? "cast(i64, I[x0]) + cast(i64, j)" : "cast(i64, j)");
    kn_x_set(&x, "wrap", " %% cast(i64, d%d)", axis);
    kn_x_write(&x, places ? "(X[$d], U[$ud], I[d0]) -> Y: typeof(X)[$d]: "
                          : "(X[$d], U[$ud]) -> Y: typeof(X)[$d]: ");
    kn_x_write(&x, "Y[$i] = X[$i]; ");
    kn_x_write(&x, circular ? "J[x0, j] = ($from)$wrap where x0 in 0:d0, j in 0:n; "
                            : "J[x0, j] = $from where x0 in 0:d0, j in 0:n; ");
    kn_x_write(&x, "Y[$q] = U[$u]");
}

/* The first L[b] elements along time are turned around, b the index of the batch axis. */
void kn_expand_reverse_sequence(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), time = kn_x_axis(&x, "time_axis", 0, rank),
        batch = kn_x_axis(&x, "batch_axis", 1, rank);
    kn_subs d = kn_x_subs(&x, "d", rank), i = kn_x_subs(&x, "x", rank), s = i;
    if (time == batch)
        kn_x_fail(&x, "time and batch are one axis, %d", time);
    s.at[time] = kn_format(x.a, "J[%s, %s]", i.at[batch], i.at[time]);
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "i", &i);
    kn_x_let(&x, "s", &s);
    kn_x_set(&x, "N", "%s", d.at[batch]);
    kn_x_set(&x, "T", "%s", d.at[time]);
    kn_x_write(&x, "(X[$d], L[$N]) -> Y: typeof(X)[$d]: "
                   "J[b, t] = select(cast(i64, t) < cast(i64, L[b]), cast(i64, L[b]) - 1 - "
                   "cast(i64, t), cast(i64, t)) where t in 0:$T; "
                   "Y[$i] = X[$s]");
}
