/* Graph to loops. Each fusion group becomes a kernel: its nodes' nests are composed, scheduled and
   turned into loops by isl; groups whose composed nests read the same share one kernel. `main`
   allocates what flows between kernels and calls them in the order of the groups. Reshapes cost
   nothing: they are views of the same row-major bytes. */
#include <ctype.h>

#include "ir/target.h"
#include "passes/passes.h"
#include "passes/schedule/schedule.h"

typedef struct {
    kn_unit *unit;
    kn_ctx *ctx;
    kn_arena *arena; /* of the module */
    const kn_graph *graph;
    const int *uses;
    kn_map names;   /* identifiers taken in main */
    kn_map buffers; /* value name -> identifier of its buffer in main */
    kn_map kernels; /* nest text -> kn_func */
    kn_map updated; /* names of outputs that their nodes write over an input, in its memory */
    KN_VEC(kn_func *) funcs;
    kn_block_builder main;
    const char *computed; /* the output of main that tells the values of computed sizes */
    bool *edited;         /* per schedule of the user's text: a kernel has it */
} kn_lowering;

/* ---- names ---- */

/* A loop-IR identifier for a value: its name with what is not allowed replaced, unique in main. */
static const char *identifier(kn_lowering *l, const char *name)
{
    kn_str s = kn_str_make(l->arena);
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') {
        kn_put_char(&s, 'v');
    }
    for (const char *c = name; *c; c++) {
        kn_put_char(&s, isalnum((unsigned char)*c) || *c == '_' ? *c : '_');
    }
    if (!kn_loop_name_ok(kn_str_get(&s))) {
        kn_put_char(&s, '_');
    }
    const char *stem = kn_intern(l->ctx, kn_str_get(&s)), *unique = stem;
    for (int k = 2; kn_map_has(&l->names, unique); k++) {
        unique = kn_intern_f(l->ctx, "%s_%d", stem, k);
    }
    kn_map_set(&l->names, unique, l);
    return unique;
}

static kn_buffer buffer_of(const kn_value *v, const char *name, const char *space)
{
    return (kn_buffer){name, v->type, v->rank, v->shape, space, NULL};
}

static const char *ddr(kn_lowering *l)
{
    return kn_intern(l->ctx, "ddr");
}

/* ---- kernels ---- */

/* The edits of the user's text for a kernel, or NULL. */
static const kn_kernel_edits *edits_for(kn_lowering *l, const char *kernel)
{
    const kn_schedule_text *text = l->unit->schedule;
    const kn_kernel_edits *edits = text ? kn_schedule_text_find(text, kernel) : NULL;
    if (edits) {
        l->edited[edits - text->kernels] = true;
    }
    return edits;
}

/* The loops of a nest, by the default schedule and what the user's text makes of it. */
static kn_block schedule_nest(kn_lowering *l, kn_nest *nest, const kn_kernel_edits *edits)
{
    kn_poly *p = kn_poly_create(l->arena, nest);
    kn_schedule *s = kn_schedule_fuse(l->arena, p, nest);
    if (edits) {
        kn_poly_destroy(p);
        kn_schedule_edit(l->arena, nest, s, edits, l->unit->target);
        p = kn_poly_create(l->arena, nest);
    }
    kn_block loops = kn_poly_loops(p, s);
    kn_poly_destroy(p);
    return loops;
}

/* One operator that is too large for isl (a concatenation of forty pieces) runs as it is written:
   its statements one after the other. */
static kn_func *plain_kernel(kn_lowering *l, const kn_nest *composed, const kn_kernel_edits *edits)
{
    if (edits) {
        kn_raise(l->ctx, KN_UNSUPPORTED, edits->loc,
                 "%s is not scheduled: it has more than %d statements, or %d loops in one",
                 composed->name, KN_POLY_MAX_STMTS, KN_POLY_MAX_DEPTH);
    }
    return kn_lower_reference(l->arena, composed);
}

static kn_func *make_kernel(kn_lowering *l, const kn_nest *composed)
{
    kn_nest *nest = kn_nest_split(l->arena, composed);
    const char *name = kn_intern_f(l->ctx, "k%d_%s", l->funcs.n, composed->name);
    const kn_kernel_edits *edits = edits_for(l, name);
    bool scheduled = !nest->opaque && kn_poly_fits(nest);
    kn_func *f = scheduled ? kn_nest_func(l->arena, nest, schedule_nest(l, nest, edits))
                           : plain_kernel(l, composed, edits);
    f->name = name;
    kn_push(l->arena, &l->funcs, f);
    return f;
}

static kn_func *kernel_for(kn_lowering *l, const kn_nest *nest)
{
    kn_str key = kn_str_make(l->arena);
    kn_nest_print(&key, nest);
    kn_func *f = kn_map_get(&l->kernels, kn_str_get(&key));
    if (!f) {
        f = make_kernel(l, nest);
        kn_map_set(&l->kernels, kn_str_get(&key), f);
    }
    return f;
}

/* ---- main ---- */

static const char *buffer_name(kn_lowering *l, const kn_value *v)
{
    const char *name = kn_map_get(&l->buffers, v->name);
    if (!name) {
        kn_raise(l->ctx, KN_INTERNAL, v->loc, "%%%s has no buffer", v->name);
    }
    return name;
}

static void allocate(kn_lowering *l, kn_value *v)
{
    if (kn_map_has(&l->buffers, v->name)) {
        return; /* an output of the graph */
    }
    const char *name = identifier(l, v->name);
    kn_map_set(&l->buffers, v->name, (void *)(uintptr_t)name);
    kn_block_add(&l->main, kn_loop_alloc(l->arena, buffer_of(v, name, ddr(l))));
}

static void call(kn_lowering *l, const kn_func *f, const char *const *buffers,
                 const kn_dtype *types)
{
    const kn_expr **args = KN_ARRAY(l->arena, const kn_expr *, f->nparams + 1);
    int next = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR) {
            args[i] = kn_var(l->arena, KN_INDEX, p->buffer.name);
        } else {
            args[i] = kn_load(l->arena, types[next], buffers[next], NULL, 0);
            next++;
        }
    }
    kn_block_add(&l->main, kn_loop_call(l->arena, f->name, args, f->nparams));
}

/* dst = src, both with the elements of `like`: a kernel as any other, from notation. */
static void copy(kn_lowering *l, const kn_value *like, const char *src, const char *dst)
{
    static const char text[] = "copy(X[*b]) -> Y: Y[*b] = X[*b]";
    kn_notation *n = kn_notation_parse(l->arena, "copy", text, sizeof text - 1, kn_loc_none());
    kn_operand operand = {like->type, like->rank, like->shape};
    kn_nest *nest = kn_elaborate(l->arena, n, &operand, 1, NULL, 0, l->graph->sizes,
                                 l->graph->nsizes, like->loc);
    nest->name = "copy";
    call(l, kernel_for(l, nest), (const char *[]){src, dst}, (kn_dtype[]){like->type, like->type});
}

/* A view of the operand's bytes, once the sizes are known to agree; into an output of the graph, a
   copy. */
static void lower_alias(kn_lowering *l, const kn_node *n)
{
    kn_value *v = n->outputs[0];
    kn_nest *nest = kn_node_nest(l->arena, l->graph, n);
    nest->name = n->op->name;
    kn_nest_require(&l->main, nest, n->loc);
    const char *source = buffer_name(l, n->inputs[0]);
    const char *output = kn_map_get(&l->buffers, v->name);
    const char *name = identifier(l, v->name);
    kn_block_add(&l->main, kn_loop_view(l->arena, buffer_of(v, name, ddr(l)), source));
    if (output) {
        copy(l, v, name, output);
    } else {
        kn_map_set(&l->buffers, v->name, (void *)(uintptr_t)name);
    }
}

/* Number of a computed size among the computed ones. */
static int computed_number(const kn_graph *g, int size)
{
    int n = 0;
    for (int i = 0; i < size; i++) {
        n += g->sources[i].value != NULL;
    }
    return n;
}

/* A size that stands in a tensor: checked against its bounds, bound to its name, told to the
   caller. The name is clamped, so that whoever reads the text sees the bounds. */
static void define_size(kn_lowering *l, int size, const kn_value *v)
{
    kn_arena *a = l->arena;
    const kn_size *z = &l->graph->sizes[size];
    const kn_expr *at = kn_index(a, l->graph->sources[size].element);
    const kn_expr *element = kn_load(a, v->type, buffer_name(l, v), &at, v->rank);
    const kn_expr *value =
        v->type == KN_INDEX ? element : kn_cast(a, KN_CAST_CAST, KN_INDEX, element);
    const kn_expr *lo = kn_index(a, z->lo), *hi = kn_index(a, z->hi);
    const kn_expr *inside =
        kn_op2(a, KN_OP_LAND, kn_op2(a, KN_OP_GE, value, lo), kn_op2(a, KN_OP_LE, value, hi));
    const char *message = kn_intern_f(l->ctx, "size %s is out of its bounds", z->name);
    kn_block_add(&l->main, kn_loop_check(a, inside, message));
    const kn_expr *clamped = kn_index_max(a, lo, kn_index_min(a, hi, value));
    kn_block_add(&l->main, kn_loop_let(a, z->name, KN_INDEX, clamped));
    const kn_expr *slot = kn_index(a, computed_number(l->graph, size));
    const kn_expr *told = kn_cast(a, KN_CAST_CAST, KN_I64, kn_var(a, KN_INDEX, z->name));
    kn_block_add(&l->main, kn_loop_store(a, l->computed, &slot, 1, KN_SET, told));
}

/* The sizes whose value is an element of this tensor, which is there now. */
static void define_sizes(kn_lowering *l, const kn_value *v)
{
    for (int i = 0; i < l->graph->nsizes; i++) {
        if (l->graph->sources[i].value == v) {
            define_size(l, i, v);
        }
    }
}

static void lower_group(kn_lowering *l, kn_node *const *nodes, int n)
{
    kn_group_nest group = kn_group_compose(l->arena, l->graph, l->uses, nodes, n);
    const kn_func *f = kernel_for(l, group.nest);
    const char **buffers = KN_ARRAY(l->arena, const char *, group.nvalues + 1);
    kn_dtype *types = KN_ARRAY(l->arena, kn_dtype, group.nvalues + 1);
    for (int i = 0; i < group.nvalues; i++) {
        kn_role role = group.nest->tensors[i].role;
        if (role != KN_ROLE_IN) {
            allocate(l, group.values[i]);
        }
        if (role == KN_ROLE_INOUT && !kn_map_has(&l->updated, group.values[i]->name)) {
            copy(l, group.values[i], buffer_name(l, group.initial[i]),
                 buffer_name(l, group.values[i]));
        }
        buffers[i] = buffer_name(l, group.values[i]);
        types[i] = group.values[i]->type;
    }
    call(l, f, buffers, types);
    for (int i = 0; i < group.nvalues; i++) {
        if (group.nest->tensors[i].role != KN_ROLE_IN) {
            define_sizes(l, group.values[i]);
        }
    }
}

static void lower_groups(kn_lowering *l)
{
    const kn_graph *g = l->graph;
    int count = 0;
    for (int i = 0; i < g->nnodes; i++) {
        count = g->nodes[i]->group >= count ? g->nodes[i]->group + 1 : count;
    }
    int *sizes = KN_ARRAY(l->arena, int, count + 1);
    kn_node ***members = KN_ARRAY(l->arena, kn_node **, count + 1);
    for (int i = 0; i < g->nnodes; i++) {
        sizes[g->nodes[i]->group]++;
    }
    for (int i = 0; i < count; i++) {
        members[i] = KN_ARRAY(l->arena, kn_node *, sizes[i] + 1);
        sizes[i] = 0;
    }
    for (int i = 0; i < g->nnodes; i++) {
        int group = g->nodes[i]->group;
        members[group][sizes[group]++] = g->nodes[i];
    }
    for (int i = 0; i < count; i++) {
        if (sizes[i] == 1 && kn_node_is_alias(members[i][0])) {
            lower_alias(l, members[i][0]);
            define_sizes(l, members[i][0]->outputs[0]);
        } else if (sizes[i] > 0) {
            lower_group(l, members[i], sizes[i]);
        }
    }
}

/* ---- the signature of main ---- */

/* `direct`: the value is read, or written by its node, there. */
static void add_param(kn_lowering *l, kn_func *f, const kn_value *v, kn_param_mode mode,
                      bool direct)
{
    const char *name = identifier(l, v->name);
    f->params[f->nparams++] = (kn_param){.mode = mode, .buffer = buffer_of(v, name, ddr(l))};
    if (direct && !kn_map_has(&l->buffers, v->name)) {
        kn_map_set(&l->buffers, v->name, (void *)(uintptr_t)name);
    }
}

/* The last output, when sizes are computed: their values, in the order of the graph's sizes. */
static void add_computed(kn_lowering *l, kn_func *f)
{
    const kn_expr **shape = KN_ARRAY(l->arena, const kn_expr *, 1);
    shape[0] = kn_index(l->arena, computed_number(l->graph, l->graph->nsizes));
    if (!kn_index_is(shape[0], 0)) {
        l->computed = identifier(l, "computed_sizes");
        kn_buffer buffer = {l->computed, KN_I64, 1, shape, ddr(l), NULL};
        f->params[f->nparams++] = (kn_param){.mode = KN_PARAM_OUT, .buffer = buffer};
    }
}

/* An output's shape in the signature of main, where the names of computed sizes are not known yet:
 * their most. */
static void bound_output(kn_lowering *l, kn_param *p)
{
    const kn_graph *g = l->graph;
    kn_size *computed = KN_ARRAY(l->arena, kn_size, g->nsizes + 1);
    int n = 0;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            computed[n++] = g->sizes[i];
        }
    }
    kn_buffer *b = &p->buffer;
    if (n) {
        b->shape =
            kn_shape_upper(l->arena, b->shape, b->rank, computed, n, (kn_loc){.where = b->name});
    }
}

static void add_signature(kn_lowering *l, kn_func *f)
{
    const kn_graph *g = l->graph;
    f->params = KN_ARRAY(l->arena, kn_param, g->nsizes + g->ninputs + g->nconsts + g->noutputs + 2);
    for (int i = 0; i < g->nsizes; i++) {
        kn_map_set(&l->names, g->sizes[i].name, l);
        if (!g->sources[i].value) {
            const kn_size *z = &g->sizes[i];
            f->params[f->nparams++] =
                (kn_param){.buffer = {.name = z->name, .type = KN_INDEX}, .lo = z->lo, .hi = z->hi};
        }
    }
    for (int i = 0; i < g->ninputs; i++) {
        add_param(l, f, g->inputs[i], KN_PARAM_IN, true);
    }
    for (int i = 0; i < g->nconsts; i++) {
        add_param(l, f, g->consts[i], KN_PARAM_CONST, true);
    }
    for (int i = 0; i < g->noutputs; i++) {
        add_param(l, f, g->outputs[i], KN_PARAM_OUT,
                  !g->aliases[i] || kn_map_has(&l->updated, g->outputs[i]->name));
        bound_output(l, &f->params[f->nparams - 1]);
        if (g->aliases[i]) {
            f->params[f->nparams - 1].alias = buffer_name(l, g->aliases[i]);
        }
    }
    add_computed(l, f);
}

/* A copy in memory of its own. */
static const char *copy_aside(kn_lowering *l, const kn_value *v, const char *from)
{
    const char *aside = identifier(l, v->name);
    kn_block_add(&l->main, kn_loop_alloc(l->arena, buffer_of(v, aside, ddr(l))));
    copy(l, v, from, aside);
    return aside;
}

/* Outputs that are not where they are to be: inputs, constants or earlier outputs themselves; last
   those that overwrite an input, of which what is an input's memory itself goes aside before. */
static void copy_outputs(kn_lowering *l, const kn_func *f)
{
    const kn_graph *g = l->graph;
    int first = f->nparams - g->noutputs - (l->computed != NULL);
    const char **has = KN_ARRAY(l->arena, const char *, g->noutputs + 1);
    for (int i = 0; i < g->noutputs; i++) {
        const kn_value *v = g->outputs[i];
        has[i] = buffer_name(l, v);
        if (!g->aliases[i] && has[i] != f->params[first + i].buffer.name) {
            copy(l, v, has[i], f->params[first + i].buffer.name);
        } else if (g->aliases[i] && (!v->def || kn_node_is_alias(v->def))) {
            has[i] = copy_aside(l, v, has[i]);
        }
    }
    for (int i = 0; i < g->noutputs; i++) {
        if (g->aliases[i] && has[i] != f->params[first + i].buffer.name) {
            copy(l, g->outputs[i], has[i], f->params[first + i].buffer.name);
        }
    }
}

/* A schedule for a kernel that is not there is a mistake in it. */
static void require_used(const kn_lowering *l, const kn_schedule_text *text)
{
    for (int i = 0; text && i < text->n; i++) {
        if (!l->edited[i]) {
            kn_str names = kn_str_make(l->arena);
            for (int k = 0; k < l->funcs.n; k++) {
                kn_putf(&names, "%s @%s", k ? "," : "", l->funcs.at[k]->name);
            }
            kn_raise(l->ctx, KN_INVALID, text->kernels[i].loc,
                     "no kernel is called @%s; there are%s", text->kernels[i].kernel,
                     kn_str_get(&names));
        }
    }
}

void kn_pass_lower(kn_unit *u)
{
    kn_lowering l = {.unit = u, .ctx = u->ctx, .arena = u->arena, .graph = u->graph};
    l.names = kn_map_make(u->arena);
    l.buffers = kn_map_make(u->arena);
    l.kernels = kn_map_make(u->arena);
    l.uses = kn_graph_uses(u->arena, u->graph);
    l.updated = kn_in_place_outputs(u->arena, u->graph);
    l.main.arena = u->arena;
    l.edited = KN_ARRAY(u->arena, bool, u->schedule ? u->schedule->n + 1 : 1);
    kn_func *f = KN_NEW(u->arena, kn_func);
    f->name = kn_intern(u->ctx, "main");
    add_signature(&l, f);
    for (int i = 0; i < u->graph->ninputs; i++) {
        define_sizes(&l, u->graph->inputs[i]);
    }
    for (int i = 0; i < u->graph->nconsts; i++) {
        define_sizes(&l, u->graph->consts[i]);
    }
    lower_groups(&l);
    copy_outputs(&l, f);
    require_used(&l, u->schedule);
    f->body = kn_block_done(&l.main);
    kn_push(u->arena, &l.funcs, f);
    u->module = KN_NEW(u->arena, kn_module);
    *u->module = (kn_module){.name = u->graph->name,
                             .target = kn_intern(u->ctx, "host"),
                             .arena = u->arena,
                             .nfuncs = l.funcs.n,
                             .funcs = l.funcs.at};
    if (u->target) {
        kn_target_attach(u->target, u->module);
    }
}
