/* The functions of kiln.h. Each protects, so that whatever is raised below becomes a status, and
   what was begun is undone. Tensor ids are the graph's values. */
#include <stdlib.h>

#include "driver/driver.h"
#include "support/dtype.h"

static kn_value *value_of(kn_tensor_id id)
{
    return (kn_value *)(void *)id;
}

static kn_tensor_id id_of(kn_value *v)
{
    return (kn_tensor_id)(void *)v;
}

static kn_loc at(kn_ctx *ctx, const char *where)
{
    return (kn_loc){.where = where ? kn_intern(ctx, where) : NULL};
}

/* ---- what callers must give ---- */

static void require(kn_ctx *ctx, const void *argument, const char *name)
{
    if (!kn_given(ctx, argument, name)) {
        kn_raise_again(ctx, KN_USAGE);
    }
}

/* An array of n, NULL when there are none. */
static void require_array(kn_ctx *ctx, const void *array, int n, const char *name)
{
    if (n < 0) {
        kn_raise(ctx, KN_USAGE, kn_loc_none(), "%s: expected a number of them, found %d", name, n);
    }
    if (n > 0) {
        require(ctx, array, name);
    }
}

static bool has_model(const kn_model *m, const void *out, const char *name)
{
    return m && kn_given(m->ctx, out, name);
}

/* ---- models ---- */

typedef struct {
    kn_ctx *ctx;
    const char *name, *text;
    size_t n;
    kn_model *model;
} kn_opening;

static kn_model *new_model(kn_ctx *ctx)
{
    kn_arena *a = kn_arena_create(ctx);
    kn_model *m = KN_NEW(a, kn_model);
    m->ctx = ctx;
    m->arena = a;
    m->references = 1;
    return m;
}

static void import(void *env)
{
    kn_opening *o = env;
    require(o->ctx, o->name, "path");
    o->model = kn_driver_import(o->ctx, o->name, NULL);
}

static void parse(void *env)
{
    kn_opening *o = env;
    require(o->ctx, o->name, "name");
    require(o->ctx, o->n ? o->text : "", "text");
    kn_model *m = new_model(o->ctx);
    m->graph = kn_graph_parse(m->arena, kn_intern(o->ctx, o->name), o->n ? o->text : "", o->n);
    o->model = m;
}

static void create(void *env)
{
    kn_opening *o = env;
    require(o->ctx, o->name, "name");
    kn_model *m = new_model(o->ctx);
    m->graph = kn_graph_create(m->arena, o->name);
    o->model = m;
}

static kn_status begin(kn_opening o, void (*body)(void *), kn_model **out)
{
    if (!kn_given(o.ctx, out, "out")) {
        return KN_USAGE;
    }
    kn_status status = kn_protect(o.ctx, body, &o);
    *out = status == KN_OK ? o.model : NULL;
    return status;
}

kn_status kn_model_import(kn_ctx *ctx, const char *path, kn_model **out)
{
    return begin((kn_opening){.ctx = ctx, .name = path}, import, out);
}

kn_status kn_model_parse(kn_ctx *ctx, const char *name, const char *text, size_t n, kn_model **out)
{
    return begin((kn_opening){ctx, name, text, n, NULL}, parse, out);
}

kn_status kn_model_create(kn_ctx *ctx, const char *name, kn_model **out)
{
    return begin((kn_opening){.ctx = ctx, .name = name}, create, out);
}

void kn_model_destroy(kn_model *model)
{
    kn_driver_release(model);
}

/* ---- inputs and constants ---- */

typedef struct {
    kn_model *model;
    const char *name;
    kn_dtype type;
    int rank;
    const char *const *texts; /* inputs: their dims */
    const int64_t *dims;      /* constants */
    const void *data;
    kn_value *value;
} kn_tensor_adding;

static bool has_size(const kn_graph *g, const char *name)
{
    for (int i = 0; i < g->nsizes; i++) {
        if (strcmp(g->sizes[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void declare_size(void *env, const kn_expr *e)
{
    kn_graph *g = env;
    if (e->kind == KN_E_VAR && !has_size(g, e->name)) {
        kn_graph_size(g, e->name, 1, KN_SIZE_DEFAULT_MAX);
    }
}

static void require_tensor(const kn_tensor_adding *t)
{
    kn_ctx *ctx = t->model->ctx;
    require(ctx, t->name, "name");
    if ((int)t->type < 0 || t->type >= KN_INDEX) {
        kn_raise(ctx, KN_USAGE, at(ctx, t->name), "no tensor has element type %d", (int)t->type);
    }
    if (t->rank < 0 || t->rank > KN_MAX_RANK) {
        kn_raise(ctx, KN_USAGE, at(ctx, t->name), "expected a rank of 0 to %d, found %d",
                 KN_MAX_RANK, t->rank);
    }
    require_array(ctx, t->texts ? (const void *)t->texts : t->dims, t->rank, "dims");
}

static const kn_expr *parse_dim(const kn_tensor_adding *t, int i)
{
    kn_graph *g = t->model->graph;
    kn_ctx *ctx = t->model->ctx;
    kn_lexer lx;
    require(ctx, t->texts[i], "a dimension");
    kn_lex_init(&lx, g->arena, "dimension", t->texts[i], strlen(t->texts[i]), kn_loc_none());
    const kn_expr *e = kn_parse_index(&lx);
    if (lx.token.kind != KN_T_END) {
        kn_lex_fail(&lx, "expected the end of dimension %d", i);
    }
    kn_expr_visit(e, declare_size, g);
    if (kn_index_range(e, g->sizes, g->nsizes).lo < 0) {
        kn_raise(ctx, KN_INVALID, at(ctx, t->name), "dimension %d, %s, may be negative", i,
                 t->texts[i]);
    }
    return e;
}

static void add_input(void *env)
{
    kn_tensor_adding *t = env;
    const kn_expr *shape[KN_MAX_RANK];
    require_tensor(t);
    for (int i = 0; i < t->rank; i++) {
        shape[i] = parse_dim(t, i);
    }
    t->value = kn_graph_input(t->model->graph, t->name, t->type, shape, t->rank,
                              at(t->model->ctx, t->name));
}

static void add_constant(void *env)
{
    kn_tensor_adding *t = env;
    kn_ctx *ctx = t->model->ctx;
    int64_t count = 1, bytes = 0;
    require_tensor(t);
    for (int i = 0; i < t->rank && bytes >= 0; i++) {
        bytes = t->dims[i] < 0 || __builtin_mul_overflow(count, t->dims[i], &count) ? -1 : 0;
    }
    bytes = bytes < 0 ? -1 : kn_dtype_bytes(t->type, count);
    if (bytes < 0) {
        kn_raise(ctx, KN_USAGE, at(ctx, t->name),
                 "a dimension is negative, or the constant is too large");
    }
    require(ctx, bytes ? t->data : "", "data");
    t->value = kn_graph_const(t->model->graph, t->name, t->type, t->dims, t->rank, t->data,
                              (size_t)bytes, at(ctx, t->name));
}

static kn_status add_tensor(kn_tensor_adding t, void (*body)(void *), kn_tensor_id *out)
{
    if (!has_model(t.model, out, "out")) {
        return KN_USAGE;
    }
    kn_status status = kn_protect(t.model->ctx, body, &t);
    *out = status == KN_OK ? id_of(t.value) : NULL;
    return status;
}

kn_status kn_model_add_input(kn_model *model, const char *name, kn_dtype type, int rank,
                             const char *const *dims, kn_tensor_id *out)
{
    return add_tensor(
        (kn_tensor_adding){.model = model, .name = name, .type = type, .rank = rank, .texts = dims},
        add_input, out);
}

kn_status kn_model_add_constant(kn_model *model, const char *name, kn_dtype type, int rank,
                                const int64_t *dims, const void *data, kn_tensor_id *out)
{
    return add_tensor((kn_tensor_adding){model, name, type, rank, NULL, dims, data, NULL},
                      add_constant, out);
}

/* ---- operators ---- */

typedef struct {
    kn_model *model;
    const char *op, *notation; /* one of them */
    const kn_tensor_id *inputs;
    int ninputs;
    const char *attributes;
    kn_tensor_id *outputs;
    int noutputs;
} kn_op_adding;

static kn_value *own_value(kn_model *m, kn_tensor_id id, const char *where)
{
    kn_value *v = value_of(id);
    if (v && kn_map_get(&m->graph->values, v->name) != v) {
        kn_raise(m->ctx, KN_USAGE, at(m->ctx, where), "a tensor of another model");
    }
    return v;
}

static void add_op(void *env)
{
    kn_op_adding *o = env;
    kn_ctx *ctx = o->model->ctx;
    kn_graph *g = o->model->graph;
    require(ctx, o->op ? o->op : o->notation, "the operator");
    require_array(ctx, o->inputs, o->ninputs, "inputs");
    require_array(ctx, o->outputs, o->noutputs, "outputs");
    const char *name = o->op ? o->op : "notation";
    kn_value **inputs = KN_ARRAY(g->arena, kn_value *, o->ninputs + 1);
    for (int i = 0; i < o->ninputs; i++) {
        inputs[i] = own_value(o->model, o->inputs[i], name);
    }
    int nattrs = 0;
    const kn_attr *attrs = o->attributes ? kn_graph_parse_attrs(g, o->attributes, &nattrs) : NULL;
    const kn_node *n = kn_graph_node(g, &(kn_node_spec){.op = o->op,
                                                        .notation = o->notation,
                                                        .inputs = inputs,
                                                        .ninputs = o->ninputs,
                                                        .attrs = attrs,
                                                        .nattrs = nattrs,
                                                        .noutputs = o->noutputs,
                                                        .loc = at(ctx, name)});
    for (int i = 0; i < o->noutputs; i++) {
        o->outputs[i] = id_of(n->outputs[i]);
    }
}

/* Inputs and outputs may be one array. */
static kn_status add_operator(kn_op_adding o)
{
    if (!o.model) {
        return KN_USAGE;
    }
    kn_status status = kn_protect(o.model->ctx, add_op, &o);
    for (int i = 0; status != KN_OK && o.outputs && i < o.noutputs; i++) {
        o.outputs[i] = NULL;
    }
    return status;
}

kn_status kn_model_add_op(kn_model *model, const char *op, const kn_tensor_id *inputs, int ninputs,
                          const char *attributes, kn_tensor_id *outputs, int noutputs)
{
    return add_operator(
        (kn_op_adding){model, op, NULL, inputs, ninputs, attributes, outputs, noutputs});
}

kn_status kn_model_add_notation(kn_model *model, const char *notation, const kn_tensor_id *inputs,
                                int ninputs, const char *attributes, kn_tensor_id *outputs,
                                int noutputs)
{
    return add_operator(
        (kn_op_adding){model, NULL, notation, inputs, ninputs, attributes, outputs, noutputs});
}

/* ---- outputs and sizes ---- */

typedef struct {
    kn_model *model;
    const char *name;
    kn_tensor_id id;
    int64_t lo, hi;
    char *text;
} kn_marking;

static bool is_output(const kn_graph *g, const kn_value *v)
{
    for (int i = 0; i < g->noutputs; i++) {
        if (g->outputs[i] == v) {
            return true;
        }
    }
    return false;
}

static void add_output(void *env)
{
    kn_marking *k = env;
    kn_ctx *ctx = k->model->ctx;
    kn_graph *g = k->model->graph;
    require(ctx, k->name, "name");
    kn_value *v = own_value(k->model, k->id, k->name);
    if (!v) {
        kn_raise(ctx, KN_USAGE, at(ctx, k->name), "an output needs a tensor");
    }
    const char *name = kn_intern(ctx, k->name);
    if (v->def && !is_output(g, v) && (v->name == name || !kn_map_has(&g->values, name))) {
        v->name = name;
        kn_map_set(&g->values, name, v);
    } else {
        v = kn_graph_result(g, &(kn_node_spec){.op = "identity",
                                               .inputs = &v,
                                               .ninputs = 1,
                                               .outputs = &name,
                                               .noutputs = 1,
                                               .loc = at(ctx, name)});
    }
    kn_graph_output(g, v, NULL);
}

kn_status kn_model_add_output(kn_model *model, const char *name, kn_tensor_id value)
{
    kn_marking k = {.model = model, .name = name, .id = value};
    return model ? kn_protect(model->ctx, add_output, &k) : KN_USAGE;
}

/* What was inferred for operators holds within the bounds of then: they can only become narrower.
 */
static void set_dim(void *env)
{
    const kn_marking *k = env;
    kn_ctx *ctx = k->model->ctx;
    kn_graph *g = k->model->graph;
    require(ctx, k->name, "name");
    kn_loc loc = at(ctx, k->name);
    if (k->lo < 0 || k->hi < k->lo) {
        kn_raise(ctx, KN_USAGE, loc, "%lld:%lld is no range of sizes", (long long)k->lo,
                 (long long)k->hi);
    }
    for (int i = 0; i < g->nsizes; i++) {
        kn_size *s = &g->sizes[i];
        if (strcmp(s->name, k->name) != 0) {
            continue;
        }
        if (g->nnodes && (k->lo < s->lo || k->hi > s->hi)) {
            kn_raise(ctx, KN_USAGE, loc,
                     "bounds beyond %lld:%lld must be set before the first operator is added",
                     (long long)s->lo, (long long)s->hi);
        }
        s->lo = k->lo;
        s->hi = k->hi;
        return;
    }
    kn_raise(ctx, KN_USAGE, loc, "there is no such dimension");
}

kn_status kn_model_set_dim(kn_model *model, const char *name, int64_t lo, int64_t hi)
{
    kn_marking k = {.model = model, .name = name, .lo = lo, .hi = hi};
    return model ? kn_protect(model->ctx, set_dim, &k) : KN_USAGE;
}

static void print(void *env)
{
    kn_marking *k = env;
    kn_arena *scratch = kn_arena_create(k->model->ctx);
    kn_str s = kn_str_make(scratch);
    kn_graph_print(&s, k->model->graph);
    k->text = malloc(s.n + 1);
    if (!k->text) {
        kn_raise(k->model->ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    }
    memcpy(k->text, kn_str_get(&s), s.n + 1);
    kn_arena_destroy(scratch);
}

kn_status kn_model_print(kn_model *model, char **text)
{
    if (!has_model(model, text, "text")) {
        return KN_USAGE;
    }
    kn_marking k = {.model = model};
    kn_status status = kn_protect(model->ctx, print, &k);
    *text = status == KN_OK ? k.text : NULL;
    return status;
}

/* ---- compiling ---- */

typedef struct {
    kn_model *model;
    const kn_compile_options *options;
    kn_artefact artefact;
    kn_program *program;
} kn_compiling;

static void require_complete(const kn_model *m)
{
    if (m->graph->noutputs == 0) {
        kn_raise(m->ctx, KN_USAGE, at(m->ctx, m->graph->name), "the model has no outputs");
    }
}

static void compile(void *env)
{
    kn_compiling *c = env;
    require_complete(c->model);
    kn_driver_check_options(c->model->ctx, c->options);
    kn_model *copy = kn_driver_copy(c->model);
    c->program = kn_driver_program(copy, c->options);
    kn_driver_release(copy);
}

static void compile_file(void *env)
{
    kn_compiling *c = env;
    kn_ctx *ctx = c->model->ctx;
    require_complete(c->model);
    require(ctx, c->artefact.path, "path");
    kn_driver_check_options(ctx, c->options);
    if ((int)c->artefact.emit < KN_EMIT_KILN || c->artefact.emit > KN_EMIT_SO) {
        kn_raise(ctx, KN_USAGE, kn_loc_none(), "there is no kind %d of file",
                 (int)c->artefact.emit);
    }
    kn_arena *scratch = kn_arena_create(ctx);
    kn_model *copy = kn_driver_copy(c->model);
    kn_driver_emit(scratch, copy, c->options, &c->artefact, 1);
    kn_driver_release(copy);
    kn_arena_destroy(scratch);
}

kn_status kn_compile(kn_model *model, const kn_compile_options *options, kn_program **out)
{
    if (!has_model(model, out, "out")) {
        return KN_USAGE;
    }
    kn_compiling c = {.model = model, .options = options};
    kn_status status = kn_protect(model->ctx, compile, &c);
    *out = status == KN_OK ? c.program : NULL;
    return status;
}

kn_status kn_compile_file(kn_model *model, const kn_compile_options *options, kn_emit emit,
                          const char *path)
{
    kn_compiling c = {.model = model, .options = options, .artefact = {emit, path}};
    return model ? kn_protect(model->ctx, compile_file, &c) : KN_USAGE;
}
