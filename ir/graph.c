/* The graph: values, sizes, inputs, constants, outputs, and rewriting.

   Values and nodes are objects of the graph's arena with a dense id; names are unique and interned.
   Nodes are made in infer.c, which knows what they mean. */
#include "ir/graph.h"

#include <assert.h>

#include "ir/graph_internal.h"

kn_graph *kn_graph_create(kn_arena *a, const char *name)
{
    kn_graph *g = KN_NEW(a, kn_graph);
    g->arena = a;
    g->name = kn_intern(kn_arena_ctx(a), name);
    g->values = kn_map_make(a);
    g->notations = kn_map_make(a);
    g->stems = kn_map_make(a);
    return g;
}

static kn_ctx *ctx_of(const kn_graph *g)
{
    return kn_arena_ctx(g->arena);
}

static void append(kn_graph *g, kn_value ***at, int *n, int *cap, kn_value *v)
{
    if (*n == *cap)
        *at = kn_vec_grow(g->arena, *at, *n, cap, sizeof **at);
    (*at)[(*n)++] = v;
}

/* ---- sizes ---- */

int kn_graph_find_size(const kn_graph *g, const char *name)
{
    for (int i = 0; i < g->nsizes; i++)
        if (g->sizes[i].name == name || strcmp(g->sizes[i].name, name) == 0)
            return i;
    return -1;
}

/* The arrays of sizes and of their sources grow together. */
static int add_size(kn_graph *g, const char *name, int64_t lo, int64_t hi)
{
    if (g->nsizes == KN_GRAPH_MAX_SIZES)
        kn_raise(ctx_of(g), KN_UNSUPPORTED, (kn_loc){.where = name}, "more than %d symbolic sizes",
                 KN_GRAPH_MAX_SIZES);
    if (g->nsizes == g->sizes_cap) {
        int cap = g->sizes_cap;
        g->sizes = kn_vec_grow(g->arena, g->sizes, g->nsizes, &cap, sizeof *g->sizes);
        g->sources =
            kn_vec_grow(g->arena, g->sources, g->nsizes, &g->sizes_cap, sizeof *g->sources);
        assert(cap == g->sizes_cap);
    }
    g->sizes[g->nsizes] = (kn_size){name, lo, hi};
    return g->nsizes++;
}

const kn_expr *kn_graph_size(kn_graph *g, const char *name, int64_t lo, int64_t hi)
{
    name = kn_intern(ctx_of(g), name);
    int i = kn_graph_find_size(g, name);
    if (i < 0)
        i = add_size(g, name, lo, hi);
    kn_size *s = &g->sizes[i];
    s->lo = s->lo > lo ? s->lo : lo;
    s->hi = s->hi < hi ? s->hi : hi;
    if (s->lo > s->hi)
        kn_raise(ctx_of(g), KN_INVALID, (kn_loc){.where = name},
                 "size %s has no values left: at least %lld and at most %lld", name,
                 (long long)s->lo, (long long)s->hi);
    return kn_var(g->arena, KN_INDEX, name);
}

typedef struct {
    const kn_graph *g;
    int computed; /* the first size with a source */
    bool strange; /* something that is no size of the graph */
} mentions;

static void note_mention(void *env, const kn_expr *e)
{
    mentions *m = env;
    if (e->type != KN_INDEX && e->type != KN_BOOL)
        m->strange = true;
    if (e->kind == KN_E_LOAD || e->kind == KN_E_CAST)
        m->strange = true;
    if (e->kind != KN_E_VAR)
        return;
    int i = kn_graph_find_size(m->g, e->name);
    if (i < 0)
        m->strange = true;
    else if (m->computed < 0 && m->g->sources[i].value)
        m->computed = i;
}

int kn_graph_computed_size(const kn_graph *g, const kn_expr *e)
{
    mentions m = {g, -1, false};
    kn_expr_visit(e, note_mention, &m);
    return m.computed;
}

bool kn_graph_knows(const kn_graph *g, const kn_expr *e)
{
    mentions m = {g, -1, false};
    kn_expr_visit(e, note_mention, &m);
    return e->type == KN_INDEX && !m.strange;
}

static const kn_expr *copy_tree(kn_arena *a, const kn_expr *e)
{
    if (e->kind == KN_E_CONST)
        return kn_int(a, e->type, e->i);
    if (e->kind == KN_E_VAR)
        return kn_var(a, e->type, e->name);
    assert(e->kind == KN_E_OP);
    const kn_expr **args = KN_ARRAY(a, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++)
        args[i] = copy_tree(a, e->args[i]);
    return kn_op(a, e->type, e->op, args, e->nargs);
}

const kn_expr *kn_index_copy(kn_arena *a, const kn_expr *e)
{
    return kn_index_simplify(a, copy_tree(a, e));
}

/* ---- values ---- */

kn_value *kn_graph_add_value(kn_graph *g, const char *name, kn_dtype type,
                             const kn_expr *const *shape, int rank, kn_loc loc)
{
    if (rank < 0 || rank > KN_MAX_RANK)
        kn_raise(ctx_of(g), KN_INVALID, loc, "%%%s has rank %d, more than %d", name, rank,
                 KN_MAX_RANK);
    if (kn_map_has(&g->values, name))
        kn_raise(ctx_of(g), KN_INVALID, loc, "%%%s is defined twice", name);
    const kn_expr **dims = KN_ARRAY(g->arena, const kn_expr *, rank);
    for (int i = 0; i < rank; i++)
        dims[i] = shape[i];
    kn_value *v = KN_NEW(g->arena, kn_value);
    v->name = kn_intern(ctx_of(g), name);
    v->id = g->nvalues++;
    v->loc = loc;
    v->type = type;
    v->rank = rank;
    v->shape = dims;
    kn_map_set(&g->values, v->name, v);
    return v;
}

static void check_io(const kn_graph *g, int n, const kn_value *v)
{
    if (n == KN_GRAPH_MAX_IO)
        kn_raise(ctx_of(g), KN_UNSUPPORTED, v->loc, "more than %d inputs or outputs",
                 KN_GRAPH_MAX_IO);
}

kn_value *kn_graph_input(kn_graph *g, const char *name, kn_dtype type, const kn_expr *const *shape,
                         int rank, kn_loc loc)
{
    kn_value *v = kn_graph_add_value(g, name, type, shape, rank, loc);
    check_io(g, g->ninputs, v);
    append(g, &g->inputs, &g->ninputs, &g->inputs_cap, v);
    return v;
}

static int64_t const_count(const int64_t *dims, int rank)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++)
        if (dims[i] < 0 || __builtin_mul_overflow(count, dims[i], &count))
            return -1;
    return count;
}

/* The content of a constant is its elements. */
static const kn_expr *const *const_content(kn_arena *a, const kn_value *v, int64_t count)
{
    if ((!kn_dtype_is_integer(v->type) && v->type != KN_BOOL) || count > KN_MAX_CONTENT)
        return NULL;
    const kn_expr **content = KN_ARRAY(a, const kn_expr *, count);
    for (int64_t i = 0; i < count; i++) {
        const kn_expr *e = kn_element_get(a, v->type, v->data, i);
        if (v->type == KN_U64 && e->i < 0)
            return NULL;
        content[i] = kn_index(a, e->i);
    }
    return content;
}

kn_value *kn_graph_const(kn_graph *g, const char *name, kn_dtype type, const int64_t *dims,
                         int rank, const void *data, size_t bytes, kn_loc loc)
{
    int64_t count = const_count(dims, rank);
    int64_t expected = count < 0 ? -1 : kn_dtype_bytes(type, count);
    if (expected < 0)
        kn_raise(ctx_of(g), KN_INVALID, loc, "constant %%%s has an impossible shape", name);
    if ((uint64_t)expected != bytes)
        kn_raise(ctx_of(g), KN_INVALID, loc,
                 "constant %%%s should have %lld bytes (%lld elements of %s), found %zu", name,
                 (long long)expected, (long long)count, kn_dtype_name(type), bytes);
    const kn_expr *shape[KN_MAX_RANK];
    for (int i = 0; i < rank && i < KN_MAX_RANK; i++)
        shape[i] = kn_index(g->arena, dims[i]);
    kn_value *v = kn_graph_add_value(g, name, type, shape, rank, loc);
    v->data = data;
    v->bytes = bytes;
    v->content = const_content(g->arena, v, count);
    append(g, &g->consts, &g->nconsts, &g->consts_cap, v);
    return v;
}

void kn_graph_output(kn_graph *g, kn_value *v, kn_value *alias)
{
    check_io(g, g->noutputs, v);
    if (g->noutputs == g->outputs_cap) {
        int cap = g->outputs_cap;
        g->aliases = kn_vec_grow(g->arena, g->aliases, g->noutputs, &cap, sizeof(kn_value *));
    }
    append(g, &g->outputs, &g->noutputs, &g->outputs_cap, v);
    g->aliases[g->noutputs - 1] = alias;
}

const char *kn_graph_fresh(kn_graph *g, const char *stem)
{
    stem = kn_intern(ctx_of(g), stem);
    uintptr_t next = (uintptr_t)kn_map_get(&g->stems, stem);
    const char *name = stem;
    if (next)
        name = kn_intern_f(ctx_of(g), "%s_%zu", stem, (size_t)next);
    for (next++; kn_map_has(&g->values, name); next++)
        name = kn_intern_f(ctx_of(g), "%s_%zu", stem, (size_t)next);
    kn_map_set(&g->stems, stem, (void *)next);
    return name;
}

int64_t kn_shape_count(const kn_expr *const *shape, int rank)
{
    int64_t dims[KN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (!kn_index_const(shape[i], &dims[i]))
            return -1;
    return const_count(dims, rank);
}

int64_t kn_value_count(const kn_value *v)
{
    return kn_shape_count(v->shape, v->rank);
}

/* ---- rewriting ---- */

static bool is_output(const kn_graph *g, const kn_value *v)
{
    for (int i = 0; i < g->noutputs; i++)
        if (g->outputs[i] == v)
            return true;
    return false;
}

static void swap_names(kn_graph *g, kn_value *a, kn_value *b)
{
    const char *name = a->name;
    a->name = b->name;
    b->name = name;
    kn_map_set(&g->values, a->name, a);
    kn_map_set(&g->values, b->name, b);
}

/* What takes the place of the output `from`: `to` under its name. */
static kn_value *output_for(kn_graph *g, kn_value *from, kn_value *to)
{
    if (!to->def || is_output(g, to))
        to = kn_graph_result(
            g, &(kn_node_spec){.op = "identity", .inputs = &to, .ninputs = 1, .loc = from->loc});
    swap_names(g, from, to);
    return to;
}

void kn_graph_replace(kn_graph *g, kn_value *from, kn_value *to)
{
    if (from == to)
        return;
    assert(from->type == to->type && from->rank == to->rank);
    for (int i = 0; i < g->nnodes; i++) {
        kn_node *n = g->nodes[i];
        for (int k = 0; k < n->ninputs && n != to->def; k++)
            if (n->inputs[k] == from)
                n->inputs[k] = to;
    }
    for (int i = 0; i < g->nsizes; i++)
        if (g->sources[i].value == from)
            g->sources[i].value = to;
    if (!to->content)
        to->content = from->content;
    if (!to->known)
        to->known = from->known;
    if (!from->def || !is_output(g, from))
        return;
    kn_value *out = output_for(g, from, to);
    for (int i = 0; i < g->noutputs; i++)
        if (g->outputs[i] == from)
            g->outputs[i] = out;
}

int *kn_graph_uses(kn_arena *a, const kn_graph *g)
{
    int *uses = KN_ARRAY(a, int, g->nvalues + 1);
    for (int i = 0; i < g->nnodes; i++) {
        const kn_node *n = g->nodes[i];
        for (int k = 0; k < n->ninputs; k++) {
            if (n->inputs[k])
                uses[n->inputs[k]->id]++;
        }
    }
    for (int i = 0; i < g->noutputs; i++)
        uses[g->outputs[i]->id]++;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value)
            uses[g->sources[i].value->id]++;
    }
    return uses;
}
