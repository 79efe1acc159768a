/* Random programs in index notation, a few dozen to a graph, against an evaluator that shares
   nothing with the compiler: the interpreter of graphs, the module in the interpreter after every
   pass, the JIT and generated C must give the very same numbers at every binding of the sizes.
   KILN_RANDOM_GRAPHS=n tries more graphs, KILN_RANDOM_SEED=n others, KILN_RANDOM_NODES=n with so
   many programs each, KILN_RANDOM_PRINT=1 shows them; KILN_RANDOM_VIA=c,jit picks the routes, C
   being taken for every other graph otherwise. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "notation_graph.h"
#include "support/half.h"

typedef struct {
    kn_ctx *ctx;
    kn_arena *a;
    maker *m;
    const char *text;
    uint64_t seed;
    const char *stage;
    kn_via via;
} trial;

/* ---- data ---- */

static size_t element_bytes(kn_dtype t)
{
    return (size_t)kn_dtype_bits(t) / 8;
}

static void encode(kn_dtype t, o_number v, unsigned char *at)
{
    float f = (float)v.f;
    uint16_t half = t == KN_F16 ? kn_f32_to_f16(f) : kn_f32_to_bf16(f);
    if (t == KN_F32) {
        memcpy(at, &f, sizeof f);
    } else if (t == KN_F64) {
        memcpy(at, &v.f, sizeof v.f);
    } else if (o_float(t)) {
        memcpy(at, &half, sizeof half);
    } else {
        memcpy(at, &v.i, element_bytes(t)); /* little-endian */
    }
}

static o_number decode(kn_dtype t, const unsigned char *at)
{
    o_number v = {0};
    float f;
    uint16_t half;
    if (t == KN_F32) {
        memcpy(&f, at, sizeof f);
        v.f = (double)f;
    } else if (t == KN_F64) {
        memcpy(&v.f, at, sizeof v.f);
    } else if (o_float(t)) {
        memcpy(&half, at, sizeof half);
        v.f = (double)(t == KN_F16 ? kn_f16_to_f32(half) : kn_bf16_to_f32(half));
    } else {
        uint64_t bits = 0;
        memcpy(&bits, at, element_bytes(t));
        v.i = t == KN_BOOL ? (int64_t)bits : o_wrap(t, bits);
    }
    return v;
}

static kn_memory memory_for(kn_arena *a, const o_array *x, int b)
{
    int64_t count = 1; /* at the most of sizes that are computed */
    for (int d = 0; d < x->rank; d++) {
        count *= x->dim[d]->most ? x->dim[d]->most : x->dim[d]->value[b];
    }
    size_t bytes = (size_t)count * element_bytes(x->type);
    void *data = kn_alloc(a, bytes + 1);
    memset(data, 0x5A, bytes);
    return (kn_memory){data, bytes};
}

static kn_memory *inputs_for(const trial *t, kn_arena *a, int b)
{
    kn_memory *in = KN_ARRAY(a, kn_memory, t->m->inputs.n + 1);
    for (int i = 0; i < t->m->inputs.n; i++) {
        const o_array *x = t->m->inputs.at[i];
        in[i] = memory_for(a, x, b);
        for (int64_t k = 0; k < x->count[b]; k++) {
            encode(x->type, x->data[b][k],
                   (unsigned char *)in[i].data + (size_t)k * element_bytes(x->type));
        }
    }
    return in;
}

/* `in`: the inputs, which some outputs update. */
static kn_memory *outputs_for(const trial *t, kn_arena *a, int b, const kn_memory *in)
{
    kn_memory *out = KN_ARRAY(a, kn_memory, t->m->results.n + 1);
    for (int i = 0; i < t->m->results.n; i++) {
        const o_array *x = t->m->results.at[i].array;
        out[i] = x->alias ? in[x->alias - 1] : memory_for(a, x, b);
    }
    return out;
}

/* ---- judging ---- */

static void print_line(const trial *t, const char *name)
{
    for (const char *line = t->text; line && *line;
         line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        int n = (int)strcspn(line, "\n");
        const char *equals = strstr(line, " = notation");
        const char *at = strstr(line, kn_format(t->a, "%%%s", name));
        if (line == t->text || (equals && at && at < equals && equals < line + n)) {
            fprintf(stderr, "%.*s\n", n, line);
        }
    }
}

static void compare(const trial *t, const o_array *x, int b, const unsigned char *got)
{
    for (int64_t k = 0; k < x->count[b]; k++) {
        o_number v = decode(x->type, got + (size_t)k * element_bytes(x->type)),
                 want = x->data[b][k];
        bool same = v.i == want.i && (v.f == want.f || (isnan(v.f) && isnan(want.f)));
        if (!same) {
            print_line(t, x->name);
            fail_msg("seed %llu, binding %d, %s: %s[%lld] is %.9g, expected %.9g",
                     (unsigned long long)t->seed, b, t->stage, x->name, (long long)k,
                     o_float(x->type) ? v.f : (double)v.i,
                     o_float(x->type) ? want.f : (double)want.i);
        }
    }
}

static void compare_all(const trial *t, int b, const kn_memory *got)
{
    for (int i = 0; i < t->m->results.n; i++) {
        compare(t, t->m->results.at[i].array, b, got[i].data);
    }
}

static void protected(trial *t, void (*body)(void *))
{
    if (kn_protect(t->ctx, body, t) != KN_OK) {
        fputs(t->text, stderr); /* cmocka would cut it */
        print_error("seed %llu, %s:", (unsigned long long)t->seed, t->stage);
        for (int i = 0; i < kn_diag_count(t->ctx); i++) {
            const kn_diag *d = kn_diag_get(t->ctx, i);
            print_error(" %d:%d: %s;", d->line, d->column, d->message);
        }
        fail_msg("refused");
    }
}

/* ---- the interpreter, after every pass ---- */

static int64_t size_value(const trial *t, const char *name, int b)
{
    for (int i = 0; i < t->m->ndims; i++) {
        if (strcmp(t->m->dims[i]->text, name) == 0) {
            return t->m->dims[i]->value[b];
        }
    }
    return 0; /* one that the graph computes */
}

static void interpret_graph(const trial *t, const kn_graph *g, int b)
{
    kn_arena *a = kn_arena_create(t->ctx);
    int64_t *sizes = KN_ARRAY(a, int64_t, g->nsizes + 1);
    for (int i = 0; i < g->nsizes; i++) {
        sizes[i] = size_value(t, g->sizes[i].name, b);
    }
    kn_memory *in = inputs_for(t, a, b), *out = outputs_for(t, a, b, in);
    kn_graph_interpret(t->ctx, g, sizes, in, out);
    compare_all(t, b, out);
    kn_release(t->ctx, a);
}

static void interpret_module(const trial *t, const kn_unit *u, int b)
{
    kn_arena *a = kn_arena_create(t->ctx);
    const kn_module *m = u->module;
    const kn_func *f = m->funcs[m->nfuncs - 1];
    int64_t *sizes = KN_ARRAY(a, int64_t, f->nparams + 1);
    kn_memory *io = KN_ARRAY(a, kn_memory, f->nparams + 1);
    kn_memory *in = inputs_for(t, a, b), *out = outputs_for(t, a, b, in);
    int64_t computed[2];
    int nsizes = 0, nio = 0, nconsts = 0, nout = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR) {
            sizes[nsizes++] = size_value(t, p->buffer.name, b);
        } else if (p->mode == KN_PARAM_CONST) {
            const kn_value *v = u->graph->consts[nconsts++];
            io[nio++] = (kn_memory){(void *)(uintptr_t)v->data, v->bytes};
        } else if (p->mode == KN_PARAM_OUT) {
            bool hidden = nout == t->m->results.n; /* tells the values of computed sizes */
            io[nio++] = hidden ? (kn_memory){computed, sizeof computed} : out[nout++];
        } else {
            io[nio++] = *in++;
        }
    }
    kn_interp_run(t->ctx, kn_interp_compile(a, m, f), sizes, nsizes, io, nio);
    compare_all(t, b, out);
    kn_release(t->ctx, a);
}

static void interpret(const trial *t, const kn_unit *u, int b)
{
    if (u->module) {
        interpret_module(t, u, b);
    } else {
        interpret_graph(t, u->graph, b);
    }
}

static void through_the_passes(void *arg)
{
    trial *t = arg;
    t->stage = "parsed";
    kn_unit u = {.ctx = t->ctx,
                 .arena = t->a,
                 .graph = kn_graph_parse(t->a, "random.kir", t->text, strlen(t->text))};
    kn_graph_verify(u.graph);
    for (int b = 0; b < O_RUNS; b++) {
        interpret(t, &u, b);
    }
    const char *const *first = kn_pipeline(2);
    for (const char *const *pass = first; *pass; pass++) {
        t->stage = *pass;
        kn_run_passes(&u, pass, 1, &(kn_pass_options){.verify_each = true});
        for (int b = pass[1] ? (int)(pass - first) % O_RUNS : 0; b < O_RUNS;
             b += pass[1] ? O_RUNS : 1) {
            interpret(t, &u, b); /* the bindings by turns, behind the last pass all */
        }
    }
}

/* ---- compiled ---- */

static void require(const trial *t, kn_status status)
{
    if (status != KN_OK) {
        kn_raise_again(t->ctx, status);
    }
}

static void run_program(const trial *t, const kn_program *p, int b)
{
    kn_arena *a = kn_arena_create(t->ctx);
    kn_session *s;
    require(t, kn_session_create(t->ctx, p, &s));
    const kn_memory *in = inputs_for(t, a, b);
    for (int i = 0; i < t->m->inputs.n; i++) {
        const o_array *x = t->m->inputs.at[i];
        int64_t dims[O_RANK];
        for (int d = 0; d < x->rank; d++) {
            dims[d] = x->dim[d]->value[b];
        }
        require(t, kn_session_set_input(s, i, x->type, x->rank, dims, in[i].data));
    }
    kn_status status = kn_session_run(s);
    for (int i = 0; i < t->m->results.n && status == KN_OK; i++) {
        const o_array *x = t->m->results.at[i].array;
        kn_dtype type;
        int rank;
        int64_t dims[KN_MAX_RANK];
        const void *data;
        require(t, kn_session_get_output(s, i, &type, &rank, dims, &data));
        assert_int_equal(type, x->type);
        assert_int_equal(rank, x->rank);
        for (int d = 0; d < rank; d++) {
            assert_int_equal(dims[d], x->dim[d]->value[b]);
        }
        compare(t, x, b, data);
    }
    kn_session_destroy(s);
    require(t, status);
    kn_release(t->ctx, a);
}

static void compiled(void *arg)
{
    trial *t = arg;
    kn_arena *a = kn_arena_create(t->ctx);
    kn_model *model = KN_NEW(a, kn_model);
    *model = (kn_model){.ctx = t->ctx, .arena = a, .references = 1};
    model->graph = kn_graph_parse(a, "random.kir", t->text, strlen(t->text));
    kn_program *p = kn_driver_program(model, &(kn_compile_options){.level = 2, .via = t->via});
    kn_driver_release(model);
    for (int b = 0; b < O_RUNS; b++) {
        run_program(t, p, b);
    }
    kn_program_destroy(p);
}

/* ---- subscripts from data that are wrong ---- */

enum { ROWS = 5, COUNT = 4 };

static const struct {
    const char *node;
    bool fails; /* with a bad index; a good one never does */
} gathers[] = {
    {"(X[n], I[k], V[k]) -> Y: Y[j] = X[I[j]] + V[j]", true},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = X[I[j] / 2] + V[j]", true},
    {"(X[n], I[k], V[k]) -> X: X[I[j]] += V[j]", true},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = V[I[I[j] % 4] % 4] + V[j] + X[0]", false},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = select(0 <= I[j] && I[j] < n, X[I[j]], 0) + V[j]", false},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = (X[I[j]] else 0) + V[j]", false},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = select(V[j] > 0, X[I[j]], V[j])", true},
    {"(X[n], I[k], V[k]) -> Y: Y[j] = select(V[j] < 0, X[I[j]], V[j])", false},
    {"(X[n], I[k], V[k]) -> Y: Y[] +=! X[I[j]] where V[j] < 0", false},
};

typedef struct {
    kn_ctx *ctx;
    const char *text;
    kn_via via;
    kn_program *program;
    kn_session *session;
} gathering;

static void compile_gather(void *arg)
{
    gathering *g = arg;
    kn_arena *a = kn_arena_create(g->ctx);
    kn_model *model = KN_NEW(a, kn_model);
    *model = (kn_model){.ctx = g->ctx, .arena = a, .references = 1};
    model->graph = kn_graph_parse(a, "gather.kir", g->text, strlen(g->text));
    g->program = kn_driver_program(model, &(kn_compile_options){.level = 2, .via = g->via});
    kn_driver_release(model);
}

/* The status of a run whose third index is `index`; all values are positive. */
static kn_status run_gather(const gathering *g, int64_t index)
{
    float x[ROWS] = {1, 2, 3, 4, 5}, v[COUNT] = {1, 1, 1, 1};
    int64_t i[COUNT] = {4, 0, index, 2}, rows[] = {ROWS}, count[] = {COUNT};
    assert_int_equal(kn_session_set_input(g->session, 0, KN_F32, 1, rows, x), KN_OK);
    assert_int_equal(kn_session_set_input(g->session, 1, KN_I64, 1, count, i), KN_OK);
    assert_int_equal(kn_session_set_input(g->session, 2, KN_F32, 1, count, v), KN_OK);
    return kn_session_run(g->session);
}

static void try_gather(kn_via via, const char *node, bool fails)
{
    static const int64_t bad[] = {ROWS * 2, -1, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    kn_ctx *ctx = kn_ctx_create();
    char text[512];
    snprintf(text, sizeof text,
             "graph @g(%%x: f32[r], %%i: i64[4], %%v: f32[4]) -> %%y { %%y = notation \"%s\"(%%x, "
             "%%i, %%v) }",
             node);
    gathering g = {.ctx = ctx, .text = text, .via = via};
    assert_int_equal(kn_protect(ctx, compile_gather, &g), KN_OK);
    assert_int_equal(kn_session_create(ctx, g.program, &g.session), KN_OK);
    assert_int_equal(run_gather(&g, 3), KN_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        kn_status status = run_gather(&g, bad[k]);
        if (status != (fails ? KN_INVALID : KN_OK)) {
            fail_msg("%s: via %d, index %lld: status %d", node, (int)via, (long long)bad[k],
                     (int)status);
        }
    }
    kn_session_destroy(g.session);
    kn_program_destroy(g.program);
    kn_ctx_destroy(ctx);
}

static void wrong_subscripts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++) {
        try_gather(KN_VIA_INTERPRET, gathers[i].node, gathers[i].fails);
#if KILN_HAVE_LLVM
        try_gather(KN_VIA_JIT, gathers[i].node, gathers[i].fails);
#endif
        if (i < 4) {
            try_gather(KN_VIA_C, gathers[i].node, gathers[i].fails);
        }
    }
}

/* ---- the test ---- */

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static bool wanted(const char *via)
{
    const char *list = getenv("KILN_RANDOM_VIA");
    return !list || strstr(list, via);
}

static void try_graph(uint64_t seed, int nodes, int *rejected)
{
    kn_ctx *ctx = kn_ctx_create();
    kn_arena *a = kn_arena_create(ctx);
    maker m = {.a = a, .seed = seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
    trial t = {.ctx = ctx, .a = a, .m = &m, .seed = seed};
    t.text = make_graph(&m, nodes);
    *rejected += m.rejected;
    if (getenv("KILN_RANDOM_PRINT")) {
        fputs(t.text, stderr);
    }
    protected(&t, through_the_passes);
#if KILN_HAVE_LLVM
    if (wanted("jit")) {
        t.stage = "jit";
        t.via = KN_VIA_JIT;
        protected(&t, compiled);
    }
#endif
    if (wanted("c") && (seed % 2 || getenv("KILN_RANDOM_VIA"))) {
        t.stage = "C";
        t.via = KN_VIA_C;
        protected(&t, compiled);
    }
    kn_ctx_destroy(ctx);
}

static void random_programs(void **state)
{
    (void)state;
    int graphs = (int)setting("KILN_RANDOM_GRAPHS", 10),
        nodes = (int)setting("KILN_RANDOM_NODES", 24), rejected = 0;
    for (int i = 0; i < graphs; i++) {
        try_graph((uint64_t)setting("KILN_RANDOM_SEED", 1) + (uint64_t)i, nodes, &rejected);
    }
    print_message("%d programs; %d more were not exact\n", graphs * nodes, rejected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_subscripts),
                                       cmocka_unit_test(random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
