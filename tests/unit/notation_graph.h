/* Random programs as nodes of a graph, for test_random_notation.c: its text, its inputs, and the
 * outputs that are right. */
#ifndef KN_TESTS_NOTATION_GRAPH_H
#define KN_TESTS_NOTATION_GRAPH_H

#include "notation_kinds.h"

/* ---- a program ---- */

static bool is_read_later(const o_program *p, const o_tensor *t, int from)
{
    bool read = false;
    for (int k = from; k < p->nstmts && !read; k++) {
        read = is_loaded(p->stmt[k].rhs, t) ||
               (p->stmt[k].where && is_loaded(p->stmt[k].where, t)) ||
               is_loaded(p->stmt[k].target, t);
    }
    return read;
}

static bool is_result(const o_program *p, const o_tensor *t)
{
    for (int i = 0; i < p->nresults; i++) {
        if (p->result[i] == t) {
            return true;
        }
    }
    return false;
}

/* `f32[n0, 3]`, where every dimension has a name. An operand's pack may be wider than the
 * statement's. */
static void declare(maker *m, o_tensor *t)
{
    if (t->initial || t->declared || t->pack >= 0) {
        return;
    }
    kn_str s = kn_str_make(m->a);
    const char *comma = "";
    kn_putf(&s, "%s[", kn_dtype_name(t->array->type));
    for (int d = 0; d < t->array->rank; d++) {
        const o_dim *dim = t->array->dim[d];
        const char *name = dim->constant ? dim->text : size_name(m, dim);
        if (!name) {
            return;
        }
        kn_putf(&s, "%s%s", comma, name);
        comma = ", ";
    }
    kn_put(&s, "]");
    t->shape = kn_strdup(m->a, kn_str_get(&s));
    t->declared = true;
}

static void choose_results(maker *m)
{
    o_program *p = m->p;
    for (int k = 0; k < p->nstmts; k++) {
        o_tensor *t = (o_tensor *)(uintptr_t)p->stmt[k].target->tensor;
        bool needed = t->initial || t->declared || !is_read_later(p, t, k + 1);
        if (!is_result(p, t) && (needed || chance(m, 20))) {
            p->result[p->nresults++] = t;
            if (chance(m, 25)) {
                declare(m, t);
            }
        }
    }
}

/* A value that an earlier program made, as an operand; NULL when there is none. */
static const o_tensor *given(maker *m)
{
    o_array *x = m->values.n
                     ? m->values.at[m->values.n - 1 - pick(m, m->values.n < 8 ? m->values.n : 8)]
                     : NULL;
    int pack = x && chance(m, 30) ? 0 : -1;
    return !x || x->type == KN_BOOL ? NULL : operand(m, x, pack, pack ? 0 : pick(m, x->rank + 1));
}

static void make_statements(maker *m)
{
    const o_tensor *base = chance(m, 45) ? given(m) : NULL;
    switch (base ? 13 : pick(m, 13)) {
    case 0:
    case 1: window(m); break;
    case 2:
    case 3: recurrence(m); break;
    case 4: together(m); break;
    case 5: scatter(m); break;
    case 6: interleave(m); break;
    case 7: reindex(m); break;
    case 8: counted(m); break;
    default: general(m, base); break;
    }
    for (int more = pick(m, 3); more > 0 && !m->failed; more--) {
        const o_tensor *t = m->p->stmt[m->p->nstmts - 1].target->tensor;
        if (chance(m, 15)) {
            revise(m, t);
        } else {
            general(m, t);
        }
    }
}

static bool all_constant(const o_program *p)
{
    bool all = true;
    for (int i = 0; i < p->nsizes; i++) {
        all = all && p->size[i].dim->constant;
    }
    for (int i = 0; i < p->noperands && all; i++) {
        for (int d = 0; d < p->operand[i]->array->rank; d++) {
            all = all && p->operand[i]->array->dim[d]->constant;
        }
    }
    return all;
}

static bool evaluates(maker *m)
{
    for (int b = 0; b < O_RUNS && !m->failed; b++) {
        o_run r = {.a = m->a, .p = m->p, .b = b};
        o_evaluate(&r);
        m->failed = r.fault || r.inexact;
    }
    return !m->failed;
}

/* What later programs may read: small whole numbers, so that their sums stay exact. */
static bool is_tame(const o_array *x)
{
    bool tame = x->type != KN_BOOL;
    for (int b = 0; b < O_RUNS; b++) {
        for (int64_t i = 0; i < x->count[b] && tame && o_float(x->type); i++) {
            double f = x->data[b][i].f;
            tame = fabs(f) <= 64 && f == floor(f);
        }
    }
    return tame;
}

static void write_node(maker *m)
{
    const o_program *p = m->p;
    for (int i = 0; i < p->nresults; i++) {
        kn_putf(&m->nodes, "%s%%%s", i ? ", " : "  ", p->result[i]->array->name);
    }
    kn_put(&m->nodes, " = notation \"");
    o_print_program(&m->nodes, p);
    kn_put(&m->nodes, "\"(");
    for (int i = 0; i < p->noperands; i++) {
        const o_tensor *t = p->operand[i];
        kn_putf(&m->nodes, "%s%%%s", i ? ", " : "", t->initial ? t->initial->name : t->array->name);
    }
    kn_putf(&m->nodes, ")%s\n", p->attributes);
}

static void mark_used(maker *m, const o_array *x)
{
    for (int i = 0; i < m->results.n; i++) {
        m->results.at[i].used = m->results.at[i].used || m->results.at[i].array == x;
    }
}

static void accept(maker *m)
{
    o_program *p = m->p;
    bool constant = all_constant(p);
    for (int i = 0; i < p->noperands; i++) {
        mark_used(m, p->operand[i]->initial ? p->operand[i]->initial : p->operand[i]->array);
    }
    for (int i = 0; i < p->nresults; i++) {
        o_array *x = p->result[i]->array;
        x->name = kn_format(m->a, "v%d", m->names++);
        for (int d = 0; d < x->rank && constant; d++) {
            x->dim[d] = constant_dim(m, x->dim[d]->value[0]);
        }
        kn_push(m->a, &m->results, ((m_result){x, false}));
        if (is_tame(x)) {
            kn_push(m->a, &m->values, x);
        }
    }
    write_node(m);
}

/* The same elements under another shape: a node that is no kernel. */
static void make_view(maker *m)
{
    const o_array *from = m->values.n ? m->values.at[pick(m, m->values.n)] : NULL;
    const o_dim *dims[O_RANK + 1];
    if (!from || from->limit) {
        return;
    }
    bool flat = chance(m, 50), constant = true;
    for (int d = 0; d < from->rank; d++) {
        constant = constant && from->dim[d]->constant;
        dims[d] = from->dim[d];
    }
    flat = flat && constant;
    dims[0] = flat ? constant_dim(m, from->count[0]) : dims[0];
    o_array *x = new_array(m, from->type, flat ? 1 : from->rank, dims);
    memcpy(x->data, from->data, sizeof x->data);
    memcpy(x->count, from->count, sizeof x->count);
    x->name = kn_format(m->a, "v%d", m->names++);
    mark_used(m, from);
    if (flat) {
        kn_putf(&m->nodes, "  %%%s = reshape(%%%s) {shape = [%s]}\n", x->name, from->name,
                dims[0]->text);
    } else {
        kn_putf(&m->nodes, "  %%%s = identity(%%%s)\n", x->name, from->name);
    }
    kn_push(m->a, &m->results, ((m_result){x, false}));
    kn_push(m->a, &m->values, x);
}

/* Tries programs until one can be evaluated exactly, and adds it as a node. */
static void make_node(maker *m)
{
    for (int tries = 0; tries < 200; tries++) {
        int inputs = m->inputs.n, values = m->values.n, names = m->names;
        m->p = KN_NEW(m->a, o_program);
        m->p->params = m->p->attributes = "";
        m->failed = false;
        m->temps = 0;
        make_statements(m);
        choose_results(m);
        if (!m->failed && evaluates(m)) {
            accept(m);
            return;
        }
        m->rejected++;
        m->inputs.n = inputs;
        m->values.n = values;
        m->names = names;
    }
}

/* ---- the graph ---- */

static bool binds(const o_array *x, const o_dim *d)
{
    bool found = false;
    for (int i = 0; i < x->rank; i++) {
        found = found || x->dim[i] == d;
    }
    return found;
}

/* Every symbol must be the whole of some input's dimension. */
static void bind_symbols(maker *m)
{
    for (int i = 0; i < m->ndims; i++) {
        bool bound = !is_symbol(m->dims[i]);
        for (int k = 0; k < m->inputs.n && !bound; k++) {
            bound = binds(m->inputs.at[k], m->dims[i]);
        }
        if (!bound) {
            const o_dim *dims[1] = {m->dims[i]};
            new_input(m, KN_U8, 1, dims, NULL);
        }
    }
}

/* Outputs that update an input in its memory, the more so where a node does just that. */
static void choose_aliases(maker *m)
{
    for (int i = 0; i < m->inputs.n; i++) {
        const o_array *in = m->inputs.at[i];
        for (int k = 0; k < m->results.n && !in->constant; k++) {
            o_array *out = m->results.at[k].array;
            bool fits = !out->alias && out->type == in->type && same_dims(out, in->rank, in->dim);
            if (fits && chance(m, out->updates == in ? 70 : 15)) {
                out->alias = i + 1;
                break;
            }
        }
    }
}

/* The input that holds the computed sizes. */
static void add_counter(maker *m)
{
    if (!m->counts[0] && !m->counts[1]) {
        return;
    }
    o_array *x = new_array(m, KN_I64, 1, (const o_dim *const[]){constant_dim(m, 2)});
    x->name = "counter";
    for (int b = 0; b < O_RUNS; b++) {
        x->count[b] = 2;
        x->data[b] = KN_ARRAY(m->a, o_number, 2);
        for (int k = 0; k < 2; k++) {
            x->data[b][k].i = m->counts[k] ? m->counts[k]->value[b] : 0;
        }
    }
    kn_push(m->a, &m->inputs, x);
}

static void write_counts(const maker *m, kn_str *out, const char *comma)
{
    for (int k = 0; k < 2; k++) {
        const o_dim *d = m->counts[k];
        if (d) {
            kn_putf(out, "%s%s in 0:%lld = %%counter[%d]", comma, d->text, (long long)d->most, k);
            comma = ", ";
        }
    }
}

static void choose_outputs(maker *m)
{
    int n = 0;
    for (int i = 0; i < m->results.n; i++) {
        if (!m->results.at[i].used || chance(m, 40)) {
            m->results.at[n++] = m->results.at[i];
        }
    }
    m->results.n = n;
    choose_aliases(m);
}

static void write_type(kn_str *out, const o_array *x)
{
    kn_putf(out, "%%%s: %s[", x->name, kn_dtype_name(x->type));
    for (int d = 0; d < x->rank; d++) {
        kn_putf(out, "%s%s", d ? ", " : "", x->dim[d]->text);
    }
    kn_put(out, "]");
}

/* Writes the constants; m->inputs keeps the others. */
static void write_constants(maker *m, kn_str *out)
{
    int kept = 0;
    for (int i = 0; i < m->inputs.n; i++) {
        o_array *x = m->inputs.at[i];
        if (!x->constant) {
            m->inputs.at[kept++] = x;
            continue;
        }
        kn_put(out, "  const ");
        write_type(out, x);
        kn_put(out, " = [");
        for (int64_t k = 0; k < x->count[0]; k++) {
            o_number v = x->data[0][k];
            kn_put(out, k ? ", " : "");
            if (o_float(x->type)) {
                kn_putf(out, "%.1f", v.f);
            } else {
                kn_putf(out, "%lld", (long long)v.i);
            }
        }
        kn_put(out, "]\n");
    }
    m->inputs.n = kept;
}

static void write_signature(maker *m, kn_str *out)
{
    const char *comma = "";
    kn_put(out, "graph @random(");
    for (int i = 0; i < m->inputs.n; i++) {
        if (!m->inputs.at[i]->constant) {
            kn_put(out, comma);
            write_type(out, m->inputs.at[i]);
            comma = ", ";
        }
    }
    comma = "";
    kn_put(out, ") -> (");
    for (int i = 0; i < m->results.n; i++) {
        const o_array *x = m->results.at[i].array;
        kn_putf(out, "%s%%%s", i ? ", " : "", x->name);
        if (x->alias) {
            kn_putf(out, " aliases %%%s", m->inputs.at[x->alias - 1]->name);
        }
    }
    kn_put(out, ")");
    for (int i = 0; i < m->ndims; i++) {
        if (is_symbol(m->dims[i])) {
            kn_putf(out, "%s%s in %lld:40", *comma ? comma : " where ", m->dims[i]->text,
                    (long long)m->dims[i]->lo);
            comma = ", ";
        }
    }
    write_counts(m, out, *comma ? comma : " where ");
}

/* A graph of so many programs: its text. The inputs and the outputs are in m->inputs and
 * m->results. */
static const char *make_graph(maker *m, int nodes)
{
    m->nodes = kn_str_make(m->a);
    for (int i = 0; i < nodes; i++) {
        if (chance(m, 10)) {
            make_view(m);
        }
        make_node(m);
    }
    bind_symbols(m);
    add_counter(m);
    kn_str constants = kn_str_make(m->a), out = kn_str_make(m->a);
    write_constants(m, &constants);
    choose_outputs(m);
    write_signature(m, &out);
    kn_putf(&out, " {\n%s%s}\n", kn_str_get(&constants), kn_str_get(&m->nodes));
    return kn_str_get(&out);
}

#endif
