/* Finding a pattern in a graph: depth first over a list of goals (this term, that value), with
   backtracking where an op commutes or a part has several patterns. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "passes/graph/rules_internal.h"

enum { MAX_STEPS = 4096 }; /* of one match: what two chains of commuting ops can cost */

/* ---- attributes ---- */

/* What an op does without the attribute, where rules ask; ops.def says so in its doc. */
static const struct {
    const char *op; /* NULL: any */
    const char *name;
    bool real;
    double value;
} defaults[] = {{NULL, "keepdims", false, 0},       {NULL, "trans_a", false, 0},
                {NULL, "trans_b", false, 0},        {NULL, "flatten", false, 0},
                {"swish", "alpha", true, 1},        {"gemm", "alpha", true, 1},
                {"gemm", "beta", true, 1},          {NULL, "epsilon", true, 1e-5},
                {"softmax", "axis", false, -1},     {"log_softmax", "axis", false, -1},
                {"layer_norm", "axis", false, -1},  {"rms_norm", "axis", false, -1},
                {"gather", "axis", false, 0},       {NULL, "softcap", true, 0},
                {NULL, "causal", false, 0},         {NULL, "offset", false, 0},
                {NULL, "left", false, -1},          {NULL, "right", false, -1},
                {NULL, "scores", false, -1},        {NULL, "interleaved", false, 0},
                {NULL, "sequence_first", false, 0}, {NULL, "columns_first", false, 0}};

/* Expressions may end up in a node of the graph, so they are made in its arena. */
static const kn_attr *number_attr(kn_arena *a, const kn_node *n, const char *name, bool real,
                                  double value)
{
    kn_attr *attr = KN_NEW(a, kn_attr);
    *attr = real ? kn_attr_float(name, value)
                 : kn_attr_index(name, kn_index(n->graph->arena, (int64_t)value));
    return attr;
}

static bool is_list_of_axes(const char *name)
{
    return strcmp(name, "axes") == 0 || strcmp(name, "perm") == 0;
}

/* All axes, reversed dimensions, steps of one. */
static const kn_attr *default_list(kn_arena *a, const kn_node *n, const char *name)
{
    const kn_attr *axes = kn_node_attr(n, "axes");
    bool steps = strcmp(name, "steps") == 0 && axes;
    int64_t v[KN_MAX_RANK];
    if ((!steps && !is_list_of_axes(name)) || !n->ninputs || !n->inputs[0]) {
        return NULL;
    }
    int count = steps ? axes->n : n->inputs[0]->rank;
    if (count > KN_MAX_RANK) {
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        v[i] = steps ? 1 : strcmp(name, "perm") == 0 ? count - 1 - i : i;
    }
    kn_attr *attr = KN_NEW(a, kn_attr);
    *attr = kn_attr_ints(n->graph->arena, name, v, count);
    return attr;
}

/* Its place in the table, or -1. */
static int find_default(const char *op, const char *name)
{
    for (int i = 0; i < (int)(sizeof defaults / sizeof *defaults); i++) {
        bool same = !defaults[i].op || strcmp(defaults[i].op, op) == 0;
        if (same && strcmp(defaults[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static const kn_attr *default_of(kn_arena *a, const kn_node *n, const char *name)
{
    int i = find_default(n->op->name, name);
    return i < 0 ? default_list(a, n, name)
                 : number_attr(a, n, name, defaults[i].real, defaults[i].value);
}

static const kn_expr *from_front(const kn_node *n, const kn_expr *axis)
{
    int64_t v;
    bool wraps = kn_index_const(axis, &v) && v < 0;
    return wraps ? kn_index(n->graph->arena, v + n->inputs[0]->rank) : axis;
}

static bool is_axis(const kn_attr *attr)
{
    return (attr->kind == KN_A_INDEX && strcmp(attr->name, "axis") == 0) ||
           (attr->kind == KN_A_INDEXES && is_list_of_axes(attr->name));
}

/* The attribute or its default, axes counted from the front. */
static const kn_attr *read_attr(kn_arena *a, const kn_node *n, const char *name)
{
    const kn_attr *attr = kn_node_attr(n, name);
    attr = attr ? attr : default_of(a, n, name);
    if (!attr || !is_axis(attr) || !n->ninputs || !n->inputs[0]) {
        return attr;
    }
    if (attr->kind == KN_A_INDEX) {
        kn_attr *one = KN_NEW(a, kn_attr);
        *one = kn_attr_index(name, from_front(n, attr->index));
        return one;
    }
    const kn_expr **list = KN_ARRAY(a, const kn_expr *, attr->n);
    for (int i = 0; i < attr->n; i++) {
        list[i] = from_front(n, attr->indexes[i]);
    }
    kn_attr *all = KN_NEW(a, kn_attr);
    *all = kn_attr_indexes(name, list, attr->n);
    return all;
}

static bool near(double v, double want)
{
    return v == want || fabs(v - want) <= 1e-6 * fabs(want);
}

static bool attr_number(const kn_attr *attr, double *v)
{
    int64_t i;
    if (attr->kind == KN_A_FLOAT) {
        *v = attr->f;
        return true;
    }
    if (attr->kind != KN_A_INDEX || !kn_index_const(attr->index, &i)) {
        return false;
    }
    *v = (double)i;
    return true;
}

bool kn_attr_is_usual(const char *op, const char *name, const kn_attr *attr)
{
    double v;
    int i = find_default(op, name);
    return i >= 0 && attr_number(attr, &v) && v == defaults[i].value;
}

static bool equal_lists(const kn_attr *x, const kn_attr *y)
{
    bool equal = x->n == y->n;
    for (int i = 0; equal && i < x->n; i++) {
        equal = x->kind == KN_A_INDEXES ? kn_expr_equal(x->indexes[i], y->indexes[i])
                                        : x->floats[i] == y->floats[i];
    }
    return equal;
}

static bool equal_attrs(const kn_attr *x, const kn_attr *y)
{
    double v, w;
    if (attr_number(x, &v) && attr_number(y, &w)) {
        return near(v, w);
    }
    if (x->kind != y->kind) {
        return false;
    }
    switch (x->kind) {
    case KN_A_INDEX: return kn_expr_equal(x->index, y->index);
    case KN_A_INDEXES:
    case KN_A_FLOATS: return equal_lists(x, y);
    case KN_A_STRING: return strcmp(x->string, y->string) == 0;
    case KN_A_TYPE: return x->type == y->type;
    case KN_A_FLOAT: break;
    }
    return false;
}

/* ---- names ---- */

kn_match_name *kn_match_find_name(kn_match *m, const char *name)
{
    for (int i = 0; i < m->nvars; i++) {
        if (strcmp(m->vars[i].name, name) == 0) {
            return &m->vars[i];
        }
    }
    return NULL;
}

static bool bind_attr(kn_match *m, const char *name, const kn_attr *attr, kn_value *value)
{
    const kn_match_name *have = kn_match_find_name(m, name);
    if (have) {
        return equal_attrs(&have->attr, attr);
    }
    assert(m->nvars < KN_MAX_VARS);
    m->vars[m->nvars++] = (kn_match_name){name, *attr, value};
    return true;
}

static bool bind_slot(kn_match *m, int slot, kn_value *v)
{
    if (m->values[slot]) {
        return m->values[slot] == v;
    }
    m->values[slot] = v;
    m->trail[m->ntrail++] = slot;
    return true;
}

/* ---- constants ---- */

/* The number that a constant of one element is. */
static bool constant(kn_arena *a, const kn_value *v, double *number)
{
    if (!v || (v->rank > 0 && kn_value_count(v) != 1)) {
        return false;
    }
    const kn_expr *e = kn_value_literal(a, v);
    if (!e) {
        return false;
    }
    *number = kn_dtype_is_float(e->type) ? e->f : (double)e->i;
    return true;
}

static bool match_number(kn_match *m, double want, const kn_value *v)
{
    double number;
    if (!constant(m->rw->a, v, &number)) {
        return false;
    }
    return near(number, want) ||
           (kn_dtype_is_float(v->type) && number == kn_number_round(v->type, want));
}

/* The shortest decimal that the type rounds to the number: an epsilon of f32 reads 1e-5,
 * not 9.999999747378752e-6. */
static double shortest(kn_dtype type, double number)
{
    for (int digits = 1; digits < 10 && kn_dtype_is_float(type) && type != KN_F64; digits++) {
        char text[40];
        snprintf(text, sizeof text, "%.*e", digits - 1, number);
        double v = strtod(text, NULL);
        if (kn_number_round(type, v) == number) {
            return v;
        }
    }
    return number;
}

static bool match_var(kn_match *m, const char *name, kn_value *v)
{
    double number;
    if (!constant(m->rw->a, v, &number)) {
        return false;
    }
    kn_attr attr = kn_attr_float(name, shortest(v->type, number));
    return bind_attr(m, name, &attr, v);
}

/* ---- attributes of a node ---- */

static bool match_item(kn_match *m, const kn_pat_attr *p, const kn_expr *e, int rank)
{
    int64_t v, want = (int64_t)p->number;
    if (p->kind == KN_PAT_A_VAR) {
        kn_attr attr = kn_attr_index(p->text, e);
        return bind_attr(m, p->text, &attr, NULL);
    }
    return p->kind == KN_PAT_A_NUMBER && kn_index_const(e, &v) &&
           v == (want < 0 ? want + rank : want);
}

static bool match_attr(kn_match *m, const kn_pat_attr *p, const kn_attr *attr, int rank)
{
    double v;
    int wraps = is_axis(attr) ? rank : 0;
    switch (p->kind) {
    case KN_PAT_A_NUMBER:
        return attr_number(attr, &v) &&
               near(v, p->number < 0 && wraps ? p->number + wraps : p->number);
    case KN_PAT_A_VAR: return bind_attr(m, p->text, attr, NULL);
    case KN_PAT_A_TYPE: return attr->kind == KN_A_TYPE && attr->type == p->type;
    case KN_PAT_A_STRING: return attr->kind == KN_A_STRING && strcmp(attr->string, p->text) == 0;
    case KN_PAT_A_LIST: break;
    }
    if (attr->kind != KN_A_INDEXES || attr->n != p->nitems) {
        return false;
    }
    for (int i = 0; i < p->nitems; i++) {
        if (!match_item(m, &p->items[i], attr->indexes[i], wraps)) {
            return false;
        }
    }
    return true;
}

static bool mentions(const kn_pat *p, const char *name)
{
    for (int i = 0; i < p->nattrs; i++) {
        if (strcmp(p->attrs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static bool match_attrs(kn_match *m, const kn_pat *p, const kn_node *n)
{
    kn_arena *a = m->rw->a;
    int rank = n->ninputs && n->inputs[0] ? n->inputs[0]->rank : 0;
    for (int i = 0; i < n->nattrs; i++) {
        const char *name = n->attrs[i].name;
        const kn_attr *usual = mentions(p, name) ? NULL : default_of(a, n, name);
        if (!mentions(p, name) && (!usual || !equal_attrs(usual, read_attr(a, n, name)))) {
            return false;
        }
    }
    for (int i = 0; i < p->nattrs; i++) {
        const kn_attr *attr = read_attr(a, n, p->attrs[i].name);
        if (!attr && p->attrs[i].kind == KN_PAT_A_VAR) {
            continue; /* no default: the name stays unknown */
        }
        if (!attr || !match_attr(m, &p->attrs[i], attr, rank)) {
            return false;
        }
    }
    return true;
}

/* ---- goals ---- */

typedef struct {
    int trail, vars, goals;
} choice;

static choice choose(const kn_match *m)
{
    return (choice){m->ntrail, m->nvars, m->ngoals};
}

static void undo(kn_match *m, choice c)
{
    while (m->ntrail > c.trail) {
        m->values[m->trail[--m->ntrail]] = NULL;
    }
    m->nvars = c.vars;
    m->ngoals = c.goals;
}

static void push(kn_match *m, const kn_pat *pat, kn_value *v)
{
    assert(m->ngoals < KN_MAX_GOALS);
    m->goals[m->ngoals++] = (kn_goal){pat, v};
}

static void push_operands(kn_match *m, const kn_pat *p, const kn_node *n, bool swapped)
{
    for (int i = 0; i < p->nargs; i++) {
        int k = swapped ? 1 - i : i;
        push(m, p->args[i], k < n->ninputs ? n->inputs[k] : NULL);
    }
}

/* The op, the number of operands and the attributes fit. */
static bool match_node(kn_match *m, const kn_pat *p, const kn_value *v)
{
    const kn_node *n = v->def;
    if (!n || n->op != p->op || n->noutputs != 1) {
        return false;
    }
    for (int i = p->nargs; i < n->ninputs; i++) {
        if (n->inputs[i]) {
            return false;
        }
    }
    return match_attrs(m, p, n);
}

static bool solve(kn_match *m, int from);

/* Reaches the goals behind `from` by way of one of several; the last one is left to the caller. */
static bool try_operands(kn_match *m, const kn_pat *p, kn_value *v, int from)
{
    bool both = p->commutes && v->def->inputs[0] != v->def->inputs[1];
    if (both) {
        choice c = choose(m);
        push_operands(m, p, v->def, false);
        if (solve(m, from)) {
            return true;
        }
        undo(m, c);
    }
    push_operands(m, p, v->def, both);
    return solve(m, from);
}

static bool try_patterns(kn_match *m, const kn_pat *p, kn_value *v, int from)
{
    for (int i = 0; i < p->nargs; i++) {
        choice c = choose(m);
        push(m, p->args[i], v);
        if (solve(m, from)) {
            return true;
        }
        undo(m, c);
    }
    return false;
}

/* All goals from `from` on. */
static bool solve(kn_match *m, int from)
{
    for (int i = from; i < m->ngoals; i++) {
        const kn_pat *p = m->goals[i].pat;
        kn_value *v = m->goals[i].value;
        bool ok = ++m->steps <= MAX_STEPS;
        if (p->kind == KN_PAT_PART) {
            return ok && try_patterns(m, p, v, i + 1);
        }
        if (ok && p->kind == KN_PAT_NODE && v && !m->values[p->slot]) {
            return match_node(m, p, v) && bind_slot(m, p->slot, v) && try_operands(m, p, v, i + 1);
        }
        switch (p->kind) {
        case KN_PAT_VALUE:
        case KN_PAT_NODE: ok = ok && v && bind_slot(m, p->slot, v); break;
        case KN_PAT_NUMBER: ok = ok && match_number(m, p->number, v); break;
        case KN_PAT_VAR: ok = ok && match_var(m, p->name, v); break;
        case KN_PAT_NONE: ok = ok && !v; break;
        case KN_PAT_PART: break;
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Whether only nodes of the match use what is computed inside it. */
static bool is_private(const kn_match *m)
{
    kn_rewriter *rw = m->rw;
    int mark = ++rw->marks;
    for (int s = 0; s < m->rule->nslots; s++) {
        if (m->rule->is_node[s] && m->values[s]) {
            rw->mark[m->values[s]->def->id] = mark;
        }
    }
    for (int s = 0; s < m->rule->nslots; s++) {
        const kn_value *v = m->values[s];
        if (!m->rule->is_node[s] || !v || v == m->root) {
            continue;
        }
        const kn_node_list *users = &rw->users[v->id];
        for (int i = 0; i < users->n; i++) {
            if (!rw->dead[users->at[i]->id] && rw->mark[users->at[i]->id] != mark) {
                return false;
            }
        }
        if (rw->pinned[v->id]) {
            return false;
        }
    }
    return true;
}

bool kn_match_find(kn_match *m, kn_rewriter *rw, const kn_rule_parsed *rule, kn_value *root)
{
    m->rw = rw;
    m->rule = rule;
    m->root = root;
    m->ntrail = m->nvars = m->ngoals = m->steps = 0;
    for (int i = 0; i < rule->nslots; i++) {
        m->values[i] = NULL;
    }
    push(m, rule->pattern, root);
    return solve(m, 0) && (rw->shared || is_private(m));
}
