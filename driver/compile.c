/* The pipeline on a model's graph, and programs in memory. */
#include <stdio.h>

#include "codegen/codegen.h"
#include "driver/driver.h"
#include "support/dtype.h"

kn_via kn_driver_via(kn_via via)
{
    return via != KN_VIA_DEFAULT ? via : KILN_HAVE_LLVM ? KN_VIA_JIT : KN_VIA_INTERPRET;
}

/* ---- dumping the text after passes ---- */

typedef struct {
    kn_ctx *ctx;
    const char *dir;
    int count;
} kn_dump;

static void dump(void *env, const char *pass, const char *text)
{
    kn_dump *d = env;
    if (d->dir && d->count == 0) {
        kn_make_dir(d->ctx, d->dir);
    }
    const char *path =
        kn_intern_f(d->ctx, "%s/%02d-%s.kir", d->dir ? d->dir : ".", ++d->count, pass);
    kn_file_write(d->ctx, path, text, strlen(text));
}

/* NULL: of no file. */
static const char *path_of(const kn_model *m)
{
    while (m && !m->file) {
        m = m->base;
    }
    return m ? m->file->path : NULL;
}

typedef struct {
    kn_unit *unit;
    const char *const *pipeline;
    int n;
    const kn_pass_options *options;
} kn_running;

typedef struct {
    kn_unit *unit;
    const char *path;
} kn_schedule_file;

static void read_schedule(void *env)
{
    const kn_schedule_file *s = env;
    const kn_file *f = kn_file_map(s->unit->ctx, s->path);
    s->unit->schedule = kn_schedule_parse(s->unit->arena, f->path, (const char *)f->data, f->size);
}

static void run_passes(void *env)
{
    const kn_running *r = env;
    kn_run_passes(r->unit, r->pipeline, r->n, r->options);
}

kn_unit kn_driver_lower(kn_arena *a, kn_model *model, const kn_target *target,
                        const kn_compile_options *options)
{
    kn_unit u = {.ctx = model->ctx, .arena = a, .graph = model->graph, .target = target};
    const char *const *pipeline = kn_pipeline(options ? options->level : 2);
    if (options && options->schedule) {
        const char *path = options->schedule;
        kn_driver_for_file(u.ctx, path, read_schedule, &(kn_schedule_file){&u, path});
    }
    int n = 0;
    while (pipeline[n]) {
        n++;
    }
    kn_dump d = {model->ctx, options ? options->dump_dir : NULL, 0};
    kn_pass_options o = {
        .print = dump, .print_env = &d, .print_after = options ? options->dump_ir : NULL};
#ifndef NDEBUG
    o.verify_each = true;
#endif
    kn_driver_for_file(model->ctx, path_of(model), run_passes, &(kn_running){&u, pipeline, n, &o});
    return u;
}

/* ---- signatures ---- */

static const char *dim_text(kn_arena *a, const kn_expr *e)
{
    kn_str s = kn_str_make(a);
    kn_expr_print(&s, e, false);
    return kn_strdup(a, kn_str_get(&s));
}

static kn_io describe(kn_arena *a, const kn_value *v, const kn_value *alias)
{
    const char **dims = KN_ARRAY(a, const char *, v->rank + 1);
    for (int i = 0; i < v->rank; i++) {
        dims[i] = dim_text(a, v->shape[i]);
    }
    return (kn_io){kn_strdup(a, v->name), v->type, v->rank, dims,
                   alias ? kn_strdup(a, alias->name) : NULL};
}

static void describe_sizes(kn_program *p, const kn_graph *g)
{
    p->dims = KN_ARRAY(p->arena, kn_dim, g->nsizes + 1);
    p->computed = KN_ARRAY(p->arena, kn_dim, g->nsizes + 1);
    for (int i = 0; i < g->nsizes; i++) {
        kn_dim d = {kn_strdup(p->arena, g->sizes[i].name), g->sizes[i].lo, g->sizes[i].hi};
        if (g->sources[i].value) {
            p->computed[p->ncomputed++] = d;
        } else {
            p->dims[p->ndims++] = d;
        }
    }
}

/* The most that each dimension of an output can be; memory is made for that before a run. */
static const char *const *describe_bounds(kn_arena *a, const kn_graph *g, const kn_value *v)
{
    kn_size *computed = KN_ARRAY(a, kn_size, g->nsizes + 1);
    int n = 0;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            computed[n++] = g->sizes[i];
        }
    }
    const kn_expr *const *bounds = kn_shape_upper(a, v->shape, v->rank, computed, n, v->loc);
    const char **texts = KN_ARRAY(a, const char *, v->rank + 1);
    for (int i = 0; i < v->rank; i++) {
        texts[i] = dim_text(a, bounds[i]);
    }
    return texts;
}

/* No machine holds more than an int64_t counts: at their least, all tensors must fit. */
static void require_possible(kn_ctx *ctx, const kn_graph *g, const kn_value *v)
{
    int64_t count = 1;
    bool fits = true, empty = false;
    for (int i = 0; i < v->rank; i++) {
        kn_range r = kn_index_range(v->shape[i], g->sizes, g->nsizes);
        empty = empty || r.lo <= 0;
        fits = fits && !__builtin_mul_overflow(count, r.lo, &count);
    }
    if (!empty && (!fits || kn_dtype_bytes(v->type, count) < 0)) {
        kn_raise(ctx, KN_INVALID, v->loc, "%s has more elements than memory can have", v->name);
    }
}

static void require_all_possible(kn_ctx *ctx, const kn_graph *g)
{
    for (int i = 0; i < g->ninputs; i++) {
        require_possible(ctx, g, g->inputs[i]);
    }
    for (int i = 0; i < g->nnodes; i++) {
        for (int r = 0; r < g->nodes[i]->noutputs; r++) {
            require_possible(ctx, g, g->nodes[i]->outputs[r]);
        }
    }
}

static void verify_graph(void *graph)
{
    kn_graph_verify(graph);
}

kn_program *kn_driver_describe(kn_model *model)
{
    kn_arena *a = kn_arena_create(model->ctx);
    const kn_graph *g = model->graph;
    kn_driver_for_file(model->ctx, path_of(model), verify_graph, model->graph);
    kn_graph_sweep(model->graph); /* computed sizes that nothing mentions go */
    require_all_possible(model->ctx, g);
    kn_program *p = KN_NEW(a, kn_program);
    p->ctx = model->ctx;
    p->arena = a;
    p->name = kn_strdup(a, g->name);
    p->ninputs = g->ninputs;
    p->noutputs = g->noutputs;
    p->inputs = KN_ARRAY(a, kn_io, g->ninputs + 1);
    p->outputs = KN_ARRAY(a, kn_io, g->noutputs + 1);
    for (int i = 0; i < g->ninputs; i++) {
        p->inputs[i] = describe(a, g->inputs[i], NULL);
    }
    for (int i = 0; i < g->noutputs; i++) {
        p->outputs[i] = describe(a, g->outputs[i], g->aliases[i]);
    }
    describe_sizes(p, g);
    if (p->ncomputed) {
        const char *const **bounds = KN_ARRAY(a, const char *const *, g->noutputs + 1);
        for (int i = 0; i < g->noutputs; i++) {
            bounds[i] = describe_bounds(a, g, g->outputs[i]);
        }
        p->bounds = bounds;
    }
    return p;
}

/* Other targets than the host run on the simulator. */
static void simulate(kn_program *p, kn_model *model, const kn_target *target,
                     const kn_compile_options *options)
{
    if (options->via == KN_VIA_C || options->via == KN_VIA_JIT) {
        kn_raise(model->ctx, KN_UNSUPPORTED, kn_loc_none(),
                 "target %s runs on the simulator, not --via %s", target->name,
                 options->via == KN_VIA_C ? "c" : "jit");
    }
    kn_unit u = kn_driver_lower(p->arena, model, target, options);
    kn_engine_sim(p, model, &u);
}

static void compile_native(kn_program *p, kn_model *model, kn_via via,
                           const kn_compile_options *options)
{
    kn_arena *scratch = kn_arena_create(model->ctx);
    kn_unit u = kn_driver_lower(scratch, model, NULL, options);
    if (via == KN_VIA_C) {
        kn_engine_c(p, model, &u);
    } else {
        kn_engine_jit(p, model, &u, options ? options->level : 2);
    }
    kn_release(model->ctx, scratch);
}

kn_program *kn_driver_program(kn_model *model, const kn_compile_options *options)
{
    kn_via via = kn_driver_via(options ? options->via : KN_VIA_DEFAULT);
    kn_program *p = kn_driver_describe(model);
    const kn_target *target = kn_driver_target(p->arena, options);
    if (!target && via == KN_VIA_INTERPRET && options && options->schedule) {
        kn_raise(model->ctx, KN_USAGE, kn_loc_none(),
                 "the interpreter runs the graph, which has no schedule: %s", options->schedule);
    }
    if (target) {
        simulate(p, model, target, options);
    } else if (via == KN_VIA_INTERPRET) {
        kn_engine_interpret(p, model);
    } else {
        compile_native(p, model, via, options);
    }
    return p;
}
