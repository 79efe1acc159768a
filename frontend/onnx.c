/* The ONNX importer: a model file to a graph. The bytes are scanned (onnx_scan.c), decoded by
   protobuf-c into the arena, and the nodes are built one after the other by the rows of
   onnx_ops.def. Functions of the model and branches of an `If` whose condition is known are
   inlined. A node that cannot be built does not end the import: its results are marked as missing,
   so that every node at fault is listed, and only then does the import fail. */
#include "frontend/onnx_internal.h"

#include "frontend/onnx_scan.h"

enum { MIN_OPSET = 7, MAX_OPSET = 27 };
/* What a file of a stranger may ask for. Some of what comes later takes quadratic time. */
enum {
    MAX_INLINING = 32,
    MAX_NODES = 50000,   /* functions inlined */
    MAX_OPERANDS = 1000, /* of a node */
    MAX_RESULTS = 10000
};

static void build_nodes(kn_onnx *m, kn_scope *s, Kiln__Onnx__Node **nodes, size_t n);

/* ---- names ---- */

static kn_value *look_up(const kn_scope *s, const char *name)
{
    for (; s; s = s->parent) {
        kn_value *v = kn_map_get(&s->values, name);
        if (v) {
            return v;
        }
    }
    return NULL;
}

static void define(kn_onnx *m, kn_scope *s, const char *name, kn_value *v)
{
    kn_map_set(&s->values, kn_intern(m->ctx, name), v);
}

static const char *node_where(const kn_onnx *m, const Kiln__Onnx__Node *node)
{
    const char *name = node->name && *node->name ? node->name
                       : node->n_output          ? node->output[0]
                                                 : "";
    return kn_intern(m->ctx, name);
}

static int64_t opset_of(const kn_scope *s, const char *domain)
{
    for (size_t i = 0; i < s->nopsets; i++) {
        const char *d = s->opsets[i]->domain ? s->opsets[i]->domain : "";
        d = strcmp(d, "ai.onnx") == 0 ? "" : d;
        if (strcmp(d, domain) == 0) {
            return s->opsets[i]->version;
        }
    }
    return s->parent ? opset_of(s->parent, domain) : 0;
}

/* ---- functions ---- */

static const char *function_key(kn_onnx *m, const char *domain, const char *name,
                                const char *overload)
{
    return kn_intern_f(m->ctx, "%s:%s:%s", domain ? domain : "", name ? name : "",
                       overload ? overload : "");
}

static const Kiln__Onnx__Function *find_function(kn_onnx *m, const Kiln__Onnx__Node *node)
{
    return kn_map_get(&m->functions, function_key(m, node->domain, node->op_type, node->overload));
}

static void enter(kn_onnx *m, const kn_onnx_node *n)
{
    if (++m->depth > MAX_INLINING) {
        kn_raise(m->ctx, KN_INVALID, n->loc, "functions or branches are nested more than %d deep",
                 MAX_INLINING);
    }
}

/* Results of an inner scope, by their names there. */
static void take_results(kn_onnx *m, kn_onnx_node *n, const kn_scope *inner, size_t count,
                         char *const *names)
{
    for (int i = 0; i < n->noutputs; i++) {
        n->results[i] = (size_t)i < count ? look_up(inner, names[i]) : NULL;
        if (!n->results[i] && n->outputs[i]) {
            kn_raise(m->ctx, KN_INVALID, n->loc, "result %d is never defined inside", i);
        }
    }
}

static const char *inner_prefix(kn_onnx *m, const kn_onnx_node *n)
{
    return kn_intern_f(m->ctx, "%s/", n->loc.where ? n->loc.where : n->type);
}

static void inline_function(kn_onnx *m, const kn_scope *s, kn_onnx_node *n,
                            const Kiln__Onnx__Function *f)
{
    enter(m, n);
    kn_scope inner = {.values = kn_map_make(m->arena),
                      .prefix = inner_prefix(m, n),
                      .nopsets = f->n_opset_import,
                      .opsets = f->opset_import,
                      .caller = n,
                      .function = f};
    (void)s;
    for (size_t i = 0; i < f->n_input && i < (size_t)n->ninputs; i++) {
        if (n->inputs[i]) {
            define(m, &inner, f->input[i], n->inputs[i]);
        }
    }
    build_nodes(m, &inner, f->node, f->n_node);
    take_results(m, n, &inner, f->n_output, f->output);
    m->depth--;
}

/* ---- If ---- */

static const Kiln__Onnx__Graph *branch_of(const Kiln__Onnx__Node *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        if (node->attribute[i]->name && strcmp(node->attribute[i]->name, name) == 0) {
            return node->attribute[i]->g;
        }
    }
    return NULL;
}

static void add_initializers(kn_onnx *m, kn_scope *s, const Kiln__Onnx__Graph *g);

static void inline_branch(kn_onnx *m, const kn_scope *s, kn_onnx_node *n,
                          const Kiln__Onnx__Node *node)
{
    int64_t condition;
    const kn_expr *const *content = n->ninputs && n->inputs[0] ? n->inputs[0]->content : NULL;
    if (!content || kn_value_count(n->inputs[0]) != 1 || content[0]->kind != KN_E_CONST) {
        kn_raise(m->ctx, KN_UNSUPPORTED, n->loc,
                 "If, opset %lld: the condition is not known when compiling", (long long)n->opset);
    }
    condition = content[0]->i;
    const Kiln__Onnx__Graph *g = branch_of(node, condition ? "then_branch" : "else_branch");
    if (!g) {
        kn_raise(m->ctx, KN_INVALID, n->loc, "If without a branch");
    }
    enter(m, n);
    kn_scope inner = {.parent = s,
                      .values = kn_map_make(m->arena),
                      .prefix = inner_prefix(m, n),
                      .caller = s->caller,
                      .function = s->function};
    add_initializers(m, &inner, g);
    build_nodes(m, &inner, g->node, g->n_node);
    char **names = KN_ARRAY(m->arena, char *, g->n_output + 1);
    for (size_t i = 0; i < g->n_output; i++) {
        names[i] = g->output[i]->name ? g->output[i]->name : kn_strdup(m->arena, "");
    }
    take_results(m, n, &inner, g->n_output, names);
    m->depth--;
}

/* ---- Constant ---- */

static kn_value *float_list(kn_onnx *m, const kn_onnx_attr *a, int rank, int64_t n)
{
    float *data = KN_ARRAY(m->arena, float, n + 1);
    data[0] = (float)a->f;
    for (int64_t i = 0; rank && i < n; i++) {
        data[i] = (float)a->floats[i];
    }
    return kn_graph_const(m->g, kn_graph_fresh(m->g, "const"), KN_F32, &n, rank, data,
                          (size_t)n * sizeof *data, kn_loc_none());
}

static kn_value *int_list(kn_onnx *m, const kn_onnx_attr *a, int rank, int64_t n)
{
    int64_t *data = KN_ARRAY(m->arena, int64_t, n + 1);
    data[0] = a->i;
    for (int64_t i = 0; rank && i < n; i++) {
        data[i] = a->ints[i];
    }
    return kn_graph_const(m->g, kn_graph_fresh(m->g, "const"), KN_I64, &n, rank, data,
                          (size_t)n * sizeof *data, kn_loc_none());
}

static void build_constant(kn_onnx *m, kn_onnx_node *n)
{
    const kn_onnx_attr *a;
    if ((a = kn_onnx_attribute(n, "value")) && a->tensor) {
        n->results[0] = a->tensor;
    } else if ((a = kn_onnx_attribute(n, "value_float"))) {
        n->results[0] = float_list(m, a, 0, 1);
    } else if ((a = kn_onnx_attribute(n, "value_floats"))) {
        n->results[0] = float_list(m, a, 1, a->n);
    } else if ((a = kn_onnx_attribute(n, "value_int"))) {
        n->results[0] = int_list(m, a, 0, 1);
    } else if ((a = kn_onnx_attribute(n, "value_ints"))) {
        n->results[0] = int_list(m, a, 1, a->n);
    } else {
        kn_raise(m->ctx, KN_UNSUPPORTED, n->loc,
                 "Constant, opset %lld: only tensors, numbers and lists of numbers",
                 (long long)n->opset);
    }
}

/* ---- one node ---- */

typedef struct {
    kn_onnx *m;
    kn_scope *scope;
    const Kiln__Onnx__Node *proto;
    kn_onnx_node node;
    bool has_missing;
} kn_building;

static void read_inputs(kn_building *b)
{
    kn_onnx *m = b->m;
    const Kiln__Onnx__Node *p = b->proto;
    kn_value **inputs = KN_ARRAY(m->arena, kn_value *, p->n_input + 1);
    bool in_function =
        b->scope->function; /* there, an operand may be one that the caller left out */
    for (size_t i = 0; i < p->n_input; i++) {
        inputs[i] = *p->input[i] ? look_up(b->scope, p->input[i]) : NULL;
        if (*p->input[i] && !inputs[i] && !in_function) {
            kn_raise(m->ctx, KN_INVALID, b->node.loc, "%s reads `%s`, which nothing defines",
                     b->node.type, p->input[i]);
        }
        b->has_missing = b->has_missing || inputs[i] == m->missing || inputs[i] == m->absent;
        if (inputs[i] == m->absent) {
            kn_error(m->ctx, KN_UNSUPPORTED, b->node.loc,
                     "%s reads `%s`, a result that its operator does not give here", b->node.type,
                     p->input[i]);
        }
    }
    b->node.inputs = inputs;
    b->node.ninputs = (int)p->n_input;
}

static void read_outputs(kn_building *b)
{
    kn_onnx *m = b->m;
    const Kiln__Onnx__Node *p = b->proto;
    const char **names = KN_ARRAY(m->arena, const char *, p->n_output + 1);
    for (size_t i = 0; i < p->n_output; i++) {
        names[i] = *p->output[i] ? kn_onnx_value_name(m, b->scope->prefix, p->output[i]) : NULL;
    }
    b->node.outputs = names;
    b->node.noutputs = (int)p->n_output;
    b->node.results = KN_ARRAY(m->arena, kn_value *, p->n_output + 1);
}

static void build_body(void *env)
{
    kn_building *b = env;
    kn_onnx *m = b->m;
    kn_onnx_node *n = &b->node;
    n->attrs = kn_onnx_attributes(m, b->scope, b->proto, &n->nattrs);
    read_outputs(b);
    const Kiln__Onnx__Function *f = find_function(m, b->proto);
    bool own = !*n->domain;
    if (f) {
        inline_function(m, b->scope, n, f);
    } else if (own && strcmp(n->type, "Constant") == 0) {
        build_constant(m, n);
    } else if (own && strcmp(n->type, "If") == 0) {
        inline_branch(m, b->scope, n, b->proto);
    } else {
        kn_onnx_build(n);
    }
}

static void check_size(const kn_building *b)
{
    kn_onnx *m = b->m;
    const Kiln__Onnx__Node *p = b->proto;
    if (++m->nodes > MAX_NODES) {
        kn_raise(m->ctx, KN_INVALID, b->node.loc, "more than %d nodes, functions inlined",
                 MAX_NODES);
    }
    if (p->n_input > MAX_OPERANDS || p->n_output > MAX_RESULTS) {
        kn_raise(m->ctx, KN_UNSUPPORTED, b->node.loc,
                 "%zu operands and %zu results: at most %d and %d are supported", p->n_input,
                 p->n_output, MAX_OPERANDS, MAX_RESULTS);
    }
}

static void begin_body(void *env)
{
    kn_building *b = env;
    kn_onnx *m = b->m;
    const Kiln__Onnx__Node *p = b->proto;
    const char *domain = p->domain && strcmp(p->domain, "ai.onnx") != 0 ? p->domain : "";
    b->node = (kn_onnx_node){.g = m->g,
                             .domain = kn_intern(m->ctx, domain),
                             .type = kn_intern(m->ctx, p->op_type ? p->op_type : ""),
                             .name = kn_intern(m->ctx, p->name ? p->name : ""),
                             .opset = opset_of(b->scope, domain),
                             .loc = kn_onnx_loc(m, node_where(m, p))};
    check_size(b);
    read_inputs(b);
}

/* Whether a node's type is known; if not, it is listed once. */
static bool is_known(kn_building *b)
{
    const kn_onnx_node *n = &b->node;
    bool own = !*n->domain && (strcmp(n->type, "Constant") == 0 || strcmp(n->type, "If") == 0);
    if (own || find_function(b->m, b->proto) || kn_onnx_known(n->domain, n->type)) {
        return true;
    }
    kn_error(b->m->ctx, KN_UNSUPPORTED, n->loc, "operator %s%s%s, opset %lld, is not supported",
             n->domain, *n->domain ? ":" : "", n->type, (long long)n->opset);
    return false;
}

/* Index arithmetic that fails knows no place: a note tells the node. */
static void name_node(kn_onnx *m, const kn_onnx_node *n)
{
    const kn_diag *d =
        kn_diag_count(m->ctx) ? kn_diag_get(m->ctx, kn_diag_count(m->ctx) - 1) : NULL;
    if (d && !d->file && !d->where) {
        kn_note(m->ctx, n->loc, "in this node, %s", n->type);
    }
}

static void build_node(kn_onnx *m, kn_scope *s, const Kiln__Onnx__Node *proto)
{
    kn_building *b = KN_NEW(m->arena, kn_building);
    *b = (kn_building){.m = m, .scope = s, .proto = proto};
    begin_body(b);
    int depth = m->depth;
    bool built = is_known(b) && !b->has_missing;
    if (built) {
        kn_status status = kn_protect(m->ctx, build_body, b);
        m->depth = depth;
        if (status != KN_OK && status != KN_UNSUPPORTED) {
            name_node(m, &b->node);
            kn_raise_again(m->ctx, status);
        }
        built = status == KN_OK;
    }
    m->failed = m->failed || !built;
    for (size_t i = 0; i < proto->n_output; i++) {
        if (*proto->output[i]) {
            kn_value *v = built ? b->node.results[i] : m->missing;
            define(m, s, proto->output[i], v ? v : m->absent);
        }
    }
}

static void build_nodes(kn_onnx *m, kn_scope *s, Kiln__Onnx__Node **nodes, size_t n)
{
    size_t count;
    Kiln__Onnx__Node **sorted = kn_onnx_sort(m, nodes, n, &count);
    for (size_t i = 0; i < count; i++) {
        build_node(m, s, sorted[i]);
    }
}

/* ---- the graph ---- */

static void add_initializers(kn_onnx *m, kn_scope *s, const Kiln__Onnx__Graph *g)
{
    for (size_t i = 0; i < g->n_initializer; i++) {
        const char *name = g->initializer[i]->name ? g->initializer[i]->name : "";
        if (*name && kn_map_has(&s->values, name)) {
            kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name), "two initializers have this name");
        }
        define(m, s, name,
               kn_onnx_tensor(m, g->initializer[i], kn_onnx_value_name(m, s->prefix, name)));
    }
    if (g->n_sparse_initializer) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, NULL),
                 "sparse initializers are not supported");
    }
}

static const Kiln__Onnx__TensorType *tensor_type(kn_onnx *m, const Kiln__Onnx__ValueInfo *info)
{
    if (!info->type || !info->type->tensor_type) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, info->name), "only tensors are supported%s",
                 info->type && info->type->sequence_type ? ", this is a sequence" : "");
    }
    return info->type->tensor_type;
}

/* The user's shape of an input instead of the model's. */
static int given_shape(kn_onnx *m, const char *name, const kn_expr **shape)
{
    for (int i = 0; m->options && i < m->options->nshapes; i++) {
        if (strcmp(m->options->shapes[i].input, name) == 0) {
            for (int k = 0; k < m->options->shapes[i].rank; k++) {
                shape[k] = kn_index(m->arena, m->options->shapes[i].dims[k]);
            }
            return m->options->shapes[i].rank;
        }
    }
    return -1;
}

/* Constants that old exporters list among the inputs, too. */
static kn_map constants_of(kn_onnx *m, const Kiln__Onnx__Graph *g)
{
    kn_map names = kn_map_make(m->arena);
    for (size_t i = 0; i < g->n_node; i++) {
        const Kiln__Onnx__Node *node = g->node[i];
        if (node->op_type && strcmp(node->op_type, "Constant") == 0 && node->n_output == 1) {
            kn_map_set(&names, node->output[0], m);
        }
    }
    return names;
}

static void add_inputs(kn_onnx *m, kn_scope *s, const Kiln__Onnx__Graph *g)
{
    kn_map constants = constants_of(m, g), seen = kn_map_make(m->arena);
    for (size_t i = 0; i < g->n_input; i++) {
        const Kiln__Onnx__ValueInfo *info = g->input[i];
        const char *name = info->name ? info->name : "";
        if (kn_map_has(&seen, name)) {
            kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name), "two inputs have this name");
        }
        kn_map_set(&seen, kn_intern(m->ctx, name), m);
        if (look_up(s, name) || kn_map_has(&constants, name)) {
            continue; /* an initializer or constant that is listed as its own default */
        }
        const Kiln__Onnx__TensorType *t = tensor_type(m, info);
        const kn_expr **shape = KN_ARRAY(m->arena, const kn_expr *, KN_MAX_RANK);
        int rank = given_shape(m, name, shape);
        rank = rank < 0 ? kn_onnx_shape_of(m, t, name, shape) : rank;
        if (rank < 0) {
            kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, name),
                     "an input of unknown rank: give its shape");
        }
        kn_dtype type = kn_onnx_element_type(m, t->elem_type, name);
        kn_value *v = kn_graph_input(m->g, kn_onnx_value_name(m, "", name), type, shape, rank,
                                     kn_onnx_loc(m, name));
        define(m, s, name, v);
    }
}

/* The computed size that alone decides a dimension, a * size + b, or NULL. */
static const kn_expr *deciding_size(const kn_onnx *m, const kn_expr *dim, int64_t *a, int64_t *b)
{
    const kn_expr *term[2];
    int64_t coef[2];
    if (kn_index_terms(m->arena, dim, b, coef, term, 2) != 1 || term[0]->kind != KN_E_VAR) {
        return NULL;
    }
    *a = coef[0];
    for (int i = 0; i < m->g->nsizes; i++) {
        if (m->g->sizes[i].name == term[0]->name && m->g->sources[i].value) {
            return term[0];
        }
    }
    return NULL;
}

/* Makes that size what the declared number says. False when the dimension is not decided by one, or
 * does not come out even. */
static bool narrow(const kn_onnx *m, const kn_expr *dim, int64_t declared)
{
    int64_t a, b;
    const kn_expr *size = deciding_size(m, dim, &a, &b);
    if (!size || (declared - b) % a != 0) {
        return false;
    }
    kn_graph_size(m->g, size->name, (declared - b) / a, (declared - b) / a);
    return true;
}

/* The shape that the model declares of an output: NULL when there is none, or one of another rank. */
static const Kiln__Onnx__Shape *declared_shape(const Kiln__Onnx__ValueInfo *info, const kn_value *v)
{
    const Kiln__Onnx__TensorType *t = info->type ? info->type->tensor_type : NULL;
    return t && t->shape && t->shape->n_dim == (size_t)v->rank ? t->shape : NULL;
}

/* Whether a dimension is declared as a number; a negative one leaves it open. */
static bool is_number(const Kiln__Onnx__Dimension *d)
{
    return d->has_dim_value && d->dim_value >= 0;
}

/* Exporters' declarations are often stale: they warn. But the type is a promise to the caller. */
static void check_type_and_rank(kn_onnx *m, const Kiln__Onnx__ValueInfo *info, const kn_value *v)
{
    const Kiln__Onnx__TensorType *t = info->type ? info->type->tensor_type : NULL;
    if (t && t->elem_type && kn_onnx_element_type(m, t->elem_type, info->name) != v->type) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, info->name),
                 "declared with element type %s, computed as %s",
                 kn_dtype_name(kn_onnx_element_type(m, t->elem_type, info->name)),
                 kn_dtype_name(v->type));
    }
    if (t && t->shape && !declared_shape(info, v)) {
        kn_warn(m->ctx, kn_onnx_loc(m, info->name), "declared with rank %zu, computed with rank %d",
                t->shape->n_dim, v->rank);
    }
}

/* What the model declares of an output narrows sizes that are only known at run time, and must fit
 * what was inferred. */
static void check_declared(kn_onnx *m, const Kiln__Onnx__ValueInfo *info, const kn_value *v)
{
    const Kiln__Onnx__Shape *shape = declared_shape(info, v);
    check_type_and_rank(m, info, v);
    for (int i = 0; shape && i < v->rank; i++) {
        const Kiln__Onnx__Dimension *d = shape->dim[i];
        int64_t dim;
        if (is_number(d) && !narrow(m, v->shape[i], d->dim_value) &&
            kn_index_const(v->shape[i], &dim) && dim != d->dim_value) {
            kn_warn(m->ctx, kn_onnx_loc(m, info->name),
                    "dimension %d declared as %lld, computed as %lld", i, (long long)d->dim_value,
                    (long long)dim);
        }
    }
}

/* The shape that the model declares, if it has a number where the dimension is computed only at run
   time; else NULL. */
static const Kiln__Onnx__Shape *shape_to_check(const kn_onnx *m, const Kiln__Onnx__ValueInfo *info,
                                               const kn_value *v)
{
    const Kiln__Onnx__Shape *shape = declared_shape(info, v);
    bool needs = false;
    for (int i = 0; shape && i < v->rank; i++) {
        int64_t dim, a, b;
        needs = needs || (is_number(shape->dim[i]) && !kn_index_const(v->shape[i], &dim) &&
                          !deciding_size(m, v->shape[i], &a, &b));
    }
    return needs ? shape : NULL;
}

/* The value with a declared shape, checked at run time: a node whose notation says so. */
static kn_value *checked_output(kn_onnx *m, const Kiln__Onnx__Shape *shape, kn_value *v,
                                const char *name)
{
    kn_str from = kn_str_make(m->arena), to = kn_str_make(m->arena), at = kn_str_make(m->arena),
           require = kn_str_make(m->arena);
    for (int i = 0; i < v->rank; i++) {
        const Kiln__Onnx__Dimension *d = shape->dim[i];
        const char *comma = i ? ", " : "";
        kn_putf(&from, "%sd%d", comma, i);
        kn_putf(&at, "%si%d", comma, i);
        if (is_number(d)) {
            kn_putf(&to, "%s%lld", comma, (long long)d->dim_value);
            kn_putf(&require, "; require d%d == %lld", i, (long long)d->dim_value);
        } else {
            kn_putf(&to, "%sd%d", comma, i);
        }
    }
    const char *text =
        kn_format(m->arena, "(X[%s]) -> Y: typeof(X)[%s]: Y[%s] = X[%s]%s", kn_str_get(&from),
                  kn_str_get(&to), kn_str_get(&at), kn_str_get(&at), kn_str_get(&require));
    return kn_graph_result(m->g, &(kn_node_spec){.notation = text,
                                                 .inputs = &v,
                                                 .ninputs = 1,
                                                 .outputs = &name,
                                                 .noutputs = 1,
                                                 .loc = v->loc});
}

/* An output under its own name: a node stands in where the value is an input, a constant, or named
 * otherwise. */
static kn_value *named_output(kn_onnx *m, const Kiln__Onnx__ValueInfo *info, kn_value *v,
                              const char *name)
{
    const Kiln__Onnx__Shape *check = shape_to_check(m, info, v);
    if (v->def && strcmp(v->name, name) == 0 && !check) {
        return v;
    }
    const char *fresh = kn_onnx_output_name(m, name);
    if (check) {
        return checked_output(m, check, v, fresh);
    }
    return kn_graph_result(m->g, &(kn_node_spec){.op = "identity",
                                                 .inputs = &v,
                                                 .ninputs = 1,
                                                 .outputs = &fresh,
                                                 .noutputs = 1,
                                                 .loc = v->loc});
}

static void add_outputs(kn_onnx *m, kn_scope *s, const Kiln__Onnx__Graph *g)
{
    kn_map seen = kn_map_make(m->arena);
    if (g->n_output == 0) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, g->name), "the graph has no outputs");
    }
    for (size_t i = 0; i < g->n_output; i++) {
        const char *name = g->output[i]->name ? g->output[i]->name : "";
        kn_value *v = look_up(s, name);
        if (!v || v == m->missing || v == m->absent) {
            kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name), "an output that no node computes");
        }
        if (kn_map_has(&seen, name)) {
            kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, name), "two outputs have this name");
        }
        kn_map_set(&seen, kn_intern(m->ctx, name), m);
        check_declared(m, g->output[i], v);
        kn_graph_output(m->g, named_output(m, g->output[i], v, name), NULL);
    }
}

/* ---- the model ---- */

static void *arena_alloc(void *arena, size_t n)
{
    return kn_alloc(arena, n);
}

static void arena_free(void *arena, void *at)
{
    (void)arena;
    (void)at;
}

ProtobufCAllocator *kn_onnx_allocator(kn_onnx *m)
{
    m->allocator = (ProtobufCAllocator){arena_alloc, arena_free, m->arena};
    return &m->allocator;
}

static void decode(kn_onnx *m)
{
    kn_bytes bytes = kn_onnx_scan(m->arena, m->file);
    m->model = kiln__onnx__model__unpack(kn_onnx_allocator(m), bytes.size, bytes.data);
    if (!m->model || !m->model->graph) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, NULL), "not an ONNX model: %s",
                 m->model ? "it holds no graph" : "its fields do not decode");
    }
}

static void check_opset(kn_onnx *m, const kn_scope *s)
{
    int64_t opset = opset_of(s, "");
    if (opset && (opset < MIN_OPSET || opset > MAX_OPSET)) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, NULL),
                 "opset %lld of the default domain; %d to %d are supported", (long long)opset,
                 MIN_OPSET, MAX_OPSET);
    }
}

bool kn_onnx_detect(const kn_file *file)
{
    /* ir_version = small number, the first field that exporters write; or the graph first */
    return file->size >= 2 &&
           ((file->data[0] == 0x08 && file->data[1] < 0x40) || file->data[0] == 0x3a);
}

kn_graph *kn_onnx_import(kn_arena *a, const kn_file *file, const kn_import_options *options)
{
    kn_onnx m = {.ctx = kn_arena_ctx(a), .arena = a, .file = file, .options = options};
    m.missing = KN_NEW(a, kn_value);
    m.absent = KN_NEW(a, kn_value);
    m.functions = kn_map_make(a);
    m.files = kn_map_make(a);
    m.bindable_names = kn_map_make(a);
    decode(&m);
    const Kiln__Onnx__Graph *g = m.model->graph;
    for (size_t i = 0; i < m.model->n_functions; i++) {
        Kiln__Onnx__Function *f = m.model->functions[i];
        kn_map_set(&m.functions, function_key(&m, f->domain, f->name, f->overload), f);
    }
    kn_scope scope = {.values = kn_map_make(a),
                      .prefix = "",
                      .nopsets = m.model->n_opset_import,
                      .opsets = m.model->opset_import};
    check_opset(&m, &scope);
    m.dimensions = kn_onnx_input_dimensions(&m);
    m.g = kn_graph_create(a, kn_onnx_graph_name(&m, g->name));
    add_initializers(&m, &scope, g);
    add_inputs(&m, &scope, g);
    kn_onnx_check_dims(&m);
    build_nodes(&m, &scope, g->node, g->n_node);
    if (m.failed) {
        kn_raise_again(m.ctx, KN_UNSUPPORTED);
    }
    add_outputs(&m, &scope, g);
    kn_graph_sweep(m.g);
    return m.g;
}
