/* Constant folding. Two sources of constants:

   - what is known of a value's elements by shape arithmetic (its `content`): a value that somebody
     needs as data becomes a constant, or, where sizes occur in it, one `dims` in the place of a
     chain of Shape, Gather and Concat;
   - nodes whose operands are all constants: the largest subgraph of these is a graph without
     inputs, which the interpreter runs. Operators have no second implementation here.

   A value is not made a constant when that would make much out of little: more than LARGE bytes and
   more than GROWTH times the bytes of the constants it is made of, nor where quantised weights
   would be unpacked. Nor when it takes too long to compute. */
#include "passes/graph/redirect.h"
#include "passes/passes.h"

enum { LARGE = 64 << 10, GROWTH = 4, MAX_BYTES = 256 << 20 };
static const int64_t max_work = INT64_C(1) << 26, max_total_work = INT64_C(1)
                                                                   << 28; /* statement instances */

typedef struct {
    kn_unit *unit;
    kn_graph *g;
    kn_arena *a;
    int nvalues;
    bool *input;      /* by value id */
    bool *foldable;   /* by node id: its operands are constants or foldable */
    bool *needed;     /* by value id: a node that stays uses it */
    bool *computed;   /* by node id: it is in the constant subgraph */
    int64_t *made_of; /* by value id: bytes of the constants behind it */
    int64_t work;
    kn_value **to; /* by value id */
} folder;

static bool is(const kn_node *n, const char *op)
{
    return strcmp(n->op->name, op) == 0;
}

static kn_value *new_constant(folder *f, const kn_value *v, const void *data, size_t bytes)
{
    int64_t dims[KN_MAX_RANK];
    for (int i = 0; i < v->rank; i++) {
        kn_index_const(v->shape[i], &dims[i]);
    }
    return kn_graph_const(f->g, kn_graph_fresh(f->g, v->name), v->type, dims, v->rank, data, bytes,
                          v->loc);
}

/* ---- known contents ---- */

static bool is_source(const kn_graph *g, const kn_value *v)
{
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value == v) {
            return true;
        }
    }
    return false;
}

static bool all_literal(const kn_value *v)
{
    int64_t number;
    for (int64_t i = 0, n = kn_value_count(v); i < n; i++) {
        if (!kn_dtype_is_float(v->type) && !kn_index_const(v->content[i], &number)) {
            return false;
        }
    }
    return true;
}

static kn_value *constant_of_content(folder *f, const kn_value *v)
{
    int64_t count = kn_value_count(v);
    size_t bytes = (size_t)kn_dtype_bytes(v->type, count);
    unsigned char *data = kn_alloc(f->g->arena, bytes + 1);
    int size = kn_dtype_bits(v->type) / 8;
    for (int64_t i = 0; i < count; i++) {
        const kn_expr *e = v->content[i];
        int64_t number = 0;
        bool known = kn_dtype_is_float(v->type) || kn_index_const(e, &number);
        const kn_value *one =
            known
                ? kn_graph_scalar(f->g, v->type, kn_dtype_is_float(v->type) ? e->f : (double)number)
                : NULL;
        if (one) {
            memcpy(data + i * size, one->data, (size_t)size);
        }
    }
    return new_constant(f, v, data, bytes);
}

/* `dims`, reshaped for a scalar. */
static kn_value *dims_of_content(folder *f, const kn_value *v)
{
    const kn_node *n = v->def;
    int64_t count = kn_value_count(v);
    const kn_attr attrs[] = {kn_attr_indexes("values", v->content, (int)count),
                             kn_attr_type("to", v->type)};
    kn_value *dims = kn_graph_result(f->g, &(kn_node_spec){.op = "dims",
                                                           .name = n->name,
                                                           .attrs = attrs,
                                                           .nattrs = v->type == KN_I64 ? 1 : 2,
                                                           .loc = n->loc});
    if (v->rank == 1) {
        return dims;
    }
    const kn_attr shape = kn_attr_indexes("shape", v->shape, v->rank);
    return kn_graph_result(f->g, &(kn_node_spec){.op = "reshape",
                                                 .name = n->name,
                                                 .inputs = &dims,
                                                 .ninputs = 1,
                                                 .attrs = &shape,
                                                 .nattrs = 1,
                                                 .loc = n->loc});
}

static bool is_dims(const kn_value *v)
{
    const kn_node *n = v->def;
    return is(n, "dims") ||
           (is(n, "reshape") && n->inputs[0]->def && is(n->inputs[0]->def, "dims"));
}

static void fold_content(folder *f, kn_value *v)
{
    if (!v->content || !v->def || is(v->def, "identity") || is_source(f->g, v) ||
        kn_dtype_bits(v->type) < 8) {
        return;
    }
    if (all_literal(v)) {
        f->to[v->id] = constant_of_content(f, v);
    } else if ((v->type == KN_I64 || v->type == KN_I32) && !is_dims(v)) {
        f->to[v->id] = dims_of_content(f, v);
    }
}

static bool has_unknown_result(const kn_node *n)
{
    for (int i = 0; i < n->noutputs; i++) {
        if (!n->outputs[i]->content) {
            return true;
        }
    }
    return false;
}

/* The contents that a node without one, or the caller, reads. */
static void fold_contents(folder *f)
{
    for (int i = 0, n = f->g->nnodes; i < n; i++) {
        const kn_node *node = f->g->nodes[i];
        for (int k = 0; k < node->ninputs && has_unknown_result(node); k++) {
            if (node->inputs[k] && !f->to[node->inputs[k]->id]) {
                fold_content(f, node->inputs[k]);
            }
        }
    }
    for (int i = 0; i < f->g->noutputs; i++) {
        if (!f->to[f->g->outputs[i]->id]) {
            fold_content(f, f->g->outputs[i]);
        }
    }
}

/* ---- which nodes can be computed now ---- */

static bool is_constant(const folder *f, const kn_value *v)
{
    return !v->def && v->id < f->nvalues && !f->input[v->id];
}

static bool has_symbolic_attr(const kn_node *n)
{
    int64_t ignored;
    for (int i = 0; i < n->nattrs; i++) {
        const kn_attr *attr = &n->attrs[i];
        if (attr->kind == KN_A_INDEX && !kn_index_const(attr->index, &ignored)) {
            return true;
        }
        for (int k = 0; attr->kind == KN_A_INDEXES && k < attr->n; k++) {
            if (!kn_index_const(attr->indexes[k], &ignored)) {
                return true;
            }
        }
    }
    return false;
}

static int64_t bytes_of(const kn_value *v)
{
    int64_t count = kn_value_count(v);
    return count < 0 ? -1 : kn_dtype_bytes(v->type, count);
}

/* Instances of all statements, or more than max_work. */
static int64_t work_of(folder *f, const kn_node *n)
{
    kn_arena *scratch = kn_arena_create(f->unit->ctx);
    const kn_nest *nest = kn_node_nest(scratch, f->g, n);
    int64_t total = nest->opaque ? bytes_of(n->outputs[0]) : 0;
    for (int i = 0; i < nest->nstmts; i++) {
        int64_t instances = 1, lo, hi;
        for (int k = 0; k < nest->stmts[i].niters && instances <= max_work; k++) {
            const kn_iter *it = &nest->stmts[i].iters[k];
            bool known = kn_index_const(it->lo, &lo) && kn_index_const(it->hi, &hi);
            int64_t extent = !known ? max_work + 1 : hi > lo ? hi - lo : 0;
            instances =
                __builtin_mul_overflow(instances, extent, &instances) ? max_work + 1 : instances;
        }
        total += instances;
    }
    kn_release(f->unit->ctx, scratch);
    return total;
}

static bool has_room(const kn_node *n)
{
    for (int i = 0; i < n->noutputs; i++) {
        int64_t bytes = bytes_of(n->outputs[i]);
        if (bytes < 0 || bytes > MAX_BYTES || (bytes > LARGE && is(n, "dequantize_linear"))) {
            return false;
        }
    }
    return true;
}

static bool has_constant_operands(const folder *f, const kn_node *n)
{
    for (int i = 0; i < n->ninputs; i++) {
        const kn_value *v = n->inputs[i];
        if (v && !is_constant(f, v) && !(v->def && f->foldable[v->def->id])) {
            return false;
        }
    }
    return true;
}

static void find_foldable(folder *f)
{
    for (int i = 0; i < f->g->nconsts; i++) {
        f->made_of[f->g->consts[i]->id] = (int64_t)f->g->consts[i]->bytes;
    }
    for (int i = 0; i < f->g->nnodes; i++) {
        const kn_node *n = f->g->nodes[i];
        if (is(n, "identity") || !has_constant_operands(f, n) || has_symbolic_attr(n) ||
            !has_room(n)) {
            continue;
        }
        int64_t work = work_of(f, n), made_of = 0;
        if (work > max_work || f->work + work > max_total_work) {
            continue;
        }
        f->work += work;
        f->foldable[n->id] = true;
        for (int k = 0; k < n->ninputs; k++) {
            made_of += n->inputs[k] ? f->made_of[n->inputs[k]->id] : 0;
        }
        for (int k = 0; k < n->noutputs; k++) {
            f->made_of[n->outputs[k]->id] = made_of < MAX_BYTES ? made_of : MAX_BYTES;
        }
    }
}

/* ---- which of them become constants ---- */

/* Whether a value becomes a constant: it is needed and can be had, at no great size. */
static bool is_result(const folder *f, const kn_value *v)
{
    int64_t bytes = bytes_of(v);
    return f->needed[v->id] && f->foldable[v->def->id] &&
           (bytes <= LARGE || bytes <= GROWTH * f->made_of[v->id]);
}

static void need(folder *f, const kn_value *v)
{
    if (v) {
        f->needed[v->id] = true;
    }
}

/* From the outputs back: a node that stays needs its operands. */
static void find_needed(folder *f)
{
    for (int i = 0; i < f->g->noutputs; i++) {
        need(f, f->g->outputs[i]);
    }
    for (int i = 0; i < f->g->nsizes; i++) {
        need(f, f->g->sources[i].value);
    }
    for (int i = f->g->nnodes - 1; i >= 0; i--) {
        const kn_node *n = f->g->nodes[i];
        bool stays = !f->foldable[n->id];
        for (int k = 0; k < n->noutputs; k++) {
            stays = stays || (f->needed[n->outputs[k]->id] && !is_result(f, n->outputs[k]));
        }
        for (int k = 0; k < n->ninputs && stays; k++) {
            need(f, n->inputs[k]);
        }
    }
}

/* What the results are computed from; a node that stays may be computed as well. */
static void find_computed(folder *f)
{
    for (int i = f->g->nnodes - 1; i >= 0; i--) {
        const kn_node *n = f->g->nodes[i];
        for (int k = 0; k < n->noutputs; k++) {
            f->computed[n->id] = f->computed[n->id] || is_result(f, n->outputs[k]);
        }
        for (int k = 0; k < n->ninputs && f->computed[n->id]; k++) {
            if (n->inputs[k] && n->inputs[k]->def) {
                f->computed[n->inputs[k]->def->id] = true;
            }
        }
    }
}

/* ---- computing them ---- */

typedef struct {
    folder *f;
    kn_graph *g;     /* the constant subgraph */
    kn_value **made; /* by value id: the same in it */
} copier;

static kn_value *copy_value(copier *c, kn_value *v)
{
    if (v && !c->made[v->id]) { /* a constant: nodes are copied in order */
        int64_t dims[KN_MAX_RANK];
        for (int i = 0; i < v->rank; i++) {
            kn_index_const(v->shape[i], &dims[i]);
        }
        c->made[v->id] =
            kn_graph_const(c->g, v->name, v->type, dims, v->rank, v->data, v->bytes, v->loc);
    }
    return v ? c->made[v->id] : NULL;
}

static void copy_node(copier *c, const kn_node *n)
{
    kn_arena *a = c->g->arena;
    kn_value **inputs = KN_ARRAY(a, kn_value *, n->ninputs + 1);
    const char **names = KN_ARRAY(a, const char *, n->noutputs + 1);
    for (int i = 0; i < n->ninputs; i++) {
        inputs[i] = copy_value(c, n->inputs[i]);
    }
    for (int i = 0; i < n->noutputs; i++) {
        names[i] = n->outputs[i]->name;
    }
    kn_node_spec spec = {.op = n->op->name,
                         .name = n->name,
                         .inputs = inputs,
                         .ninputs = n->ninputs,
                         .attrs = n->attrs,
                         .nattrs = n->nattrs,
                         .outputs = names,
                         .noutputs = n->noutputs,
                         .loc = n->loc};
    if (is(n, "notation")) {
        kn_str text = kn_str_make(a);
        kn_notation_print(&text, n->notation);
        kn_putf(&text, n->loops ? " loops:%s" : "%s", n->loops ? n->loops : "");
        spec.op = NULL;
        spec.notation = kn_str_get(&text);
    }
    const kn_node *copy = kn_graph_node(c->g, &spec);
    for (int i = 0; i < n->noutputs; i++) {
        c->made[n->outputs[i]->id] = copy->outputs[i];
    }
}

static void fold_nodes(folder *f)
{
    copier c = {f, kn_graph_create(f->a, "constants"), KN_ARRAY(f->a, kn_value *, f->g->nvalues)};
    KN_VEC(kn_value *) results = {0};
    KN_VEC(kn_memory) memory = {0};
    for (int i = 0; i < f->g->nnodes; i++) {
        const kn_node *n = f->g->nodes[i];
        if (!f->computed[n->id]) {
            continue;
        }
        copy_node(&c, n);
        for (int k = 0; k < n->noutputs; k++) {
            kn_value *v = n->outputs[k];
            if (is_result(f, v)) {
                size_t bytes = (size_t)bytes_of(v);
                kn_graph_output(c.g, c.made[v->id], NULL);
                kn_push(f->a, &results, v);
                kn_push(f->a, &memory, ((kn_memory){kn_alloc(f->g->arena, bytes + 1), bytes}));
            }
        }
    }
    if (results.n == 0) {
        return;
    }
    kn_graph_sweep(c.g);
    kn_graph_interpret(f->unit->ctx, c.g, NULL, NULL, memory.at);
    for (int i = 0; i < results.n; i++) {
        f->to[results.at[i]->id] =
            new_constant(f, results.at[i], memory.at[i].data, memory.at[i].bytes);
    }
}

static folder start(kn_unit *u, kn_arena *a)
{
    kn_graph *g = u->graph;
    folder f = {.unit = u, .g = g, .a = a, .nvalues = g->nvalues};
    f.input = KN_ARRAY(a, bool, g->nvalues);
    f.foldable = KN_ARRAY(a, bool, g->nnode_ids);
    f.computed = KN_ARRAY(a, bool, g->nnode_ids);
    f.needed = KN_ARRAY(a, bool, g->nvalues);
    f.made_of = KN_ARRAY(a, int64_t, g->nvalues);
    f.to = KN_ARRAY(a, kn_value *, g->nvalues);
    for (int i = 0; i < g->ninputs; i++) {
        f.input[g->inputs[i]->id] = true;
    }
    return f;
}

void kn_pass_fold(kn_unit *u)
{
    kn_arena *a = kn_arena_create(u->ctx);
    folder f = start(u, a);
    fold_contents(&f);
    kn_redirect(u->graph, f.to, f.nvalues);
    kn_graph_sweep(u->graph);
    f = start(u, a);
    find_foldable(&f);
    find_needed(&f);
    find_computed(&f);
    fold_nodes(&f);
    kn_redirect(u->graph, f.to, f.nvalues);
    kn_graph_sweep(u->graph);
    kn_release(u->ctx, a);
}
