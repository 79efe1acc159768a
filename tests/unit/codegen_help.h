/* Generated C against the interpreter. A program is loop text; its C is compiled, with many
   warnings that are errors, by cc and by clang-19 where that is installed, once more with traps for
   undefined behaviour, loaded, run, and compared bit by bit with what the interpreter makes of the
   same text and data. */
#ifndef KN_TESTS_CODEGEN_HELP_H
#define KN_TESTS_CODEGEN_HELP_H

#include "unit.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/codegen.h"
#define NPU_SCALAR_HEADER "runtime/npu/host/scalar.h"
#include "kiln/npu.h"
#include "support/file.h"
#include "support/half.h"

#define STRICT                                                                            \
    "-std=c11 -ffp-contract=off -shared -fPIC -Wall -Wextra -Werror -Wpedantic -Wshadow " \
    "-Wconversion -Wsign-conversion -Wdouble-promotion -Wcast-qual -Wcast-align -Wundef " \
    "-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes -I" KILN_SOURCE_DIR         \
    "/include -I" KILN_SOURCE_DIR "/runtime "

static const struct {
    const char *compiler, *flags;
} variants[] = {
    {"cc", "-O2"},
    {"clang-19", "-O2"},
    {"cc", "-O1 -fsanitize=undefined -fsanitize-undefined-trap-on-error"},
};
enum { VARIANTS = sizeof variants / sizeof variants[0], MAX_BUFFERS = 64, MAX_SIZES = 8 };

typedef npu_status run_fn(npu_context *npu, void *const *io, const void *const *weights,
                          const int64_t *sizes, void *workspace);
typedef int64_t bytes_fn(const int64_t *sizes);
typedef void bind_fn(const void *base, const void **weights);
typedef void fill_fn(kn_dtype type, int64_t n, const char *name, void *data);

typedef struct {
    fixture *f;
    const char *text, *dir;
    kn_module *module;
    const kn_func *entry;
    kn_interp *interp;
    kn_str code, header;
    void *loaded[VARIANTS];
    int64_t sizes[MAX_SIZES];
    kn_size names[MAX_SIZES];
    int nsizes;
    fill_fn *fill;
} program;

/* ---- Building ---- */

static inline void generate(program *p)
{
    kn_arena *a = p->f->arena;
    kn_c_options options = {.prefix = "t"};
    p->code = kn_str_make(a);
    p->header = kn_str_make(a);
    kn_c_module(a, p->module, &options, &p->code, &p->header);
}

static inline void prepare(void *arg)
{
    program *p = arg;
    kn_arena *a = p->f->arena;
    p->module = kn_module_parse(a, "test.kir", p->text, strlen(p->text));
    kn_module_verify(p->f->ctx, p->module);
    p->entry = kn_module_find(p->module, "main");
    if (p->entry)
        p->interp = kn_interp_compile(a, p->module, p->entry);
    generate(p);
}

static inline void write_sources(void *arg)
{
    program *p = arg;
    p->dir = kn_temp_dir(p->f->ctx);
    kn_file_write(p->f->ctx, kn_format(p->f->arena, "%s/t.c", p->dir), p->code.at, p->code.n);
    kn_file_write(p->f->ctx, kn_format(p->f->arena, "%s/t.h", p->dir), p->header.at, p->header.n);
}

static inline bool has(const char *compiler)
{
    char command[100];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", compiler);
    return system(command) == 0;
}

static inline void compile(program *p, int variant)
{
    const char *compiler = variants[variant].compiler;
    if (!has(compiler)) {
        print_message("no %s here: skipped\n", compiler);
        return;
    }
    char *library = kn_format(p->f->arena, "%s/t%d.so", p->dir, variant);
    char *command = kn_format(p->f->arena, "%s " STRICT "%s -o %s %s/t.c -lm", compiler,
                              variants[variant].flags, library, p->dir);
    if (system(command) != 0)
        fail_msg("%s\n%s", command, kn_str_get(&p->code));
    p->loaded[variant] = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!p->loaded[variant])
        fail_msg("%s", dlerror());
}

static inline void require(const program *p, kn_status status)
{
    if (status != KN_OK)
        fail_msg("%s", last_message(p->f->ctx));
}

static inline program build(void **state, const char *text)
{
    program p = {.f = *state, .text = text};
    require(&p, kn_protect(p.f->ctx, prepare, &p));
    require(&p, kn_protect(p.f->ctx, write_sources, &p));
    for (int i = 0; i < VARIANTS; i++)
        compile(&p, i);
    return p;
}

static inline void unload(program *p)
{
    for (int i = 0; i < VARIANTS; i++) {
        if (p->loaded[i])
            dlclose(p->loaded[i]);
    }
    kn_release(p->f->ctx, p->dir);
}

/* ---- Data ---- */

static inline uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static inline void set_element(kn_dtype type, void *data, int64_t i, double f, int64_t v)
{
    switch (type) {
    case KN_F32: ((float *)data)[i] = (float)f; break;
    case KN_F64: ((double *)data)[i] = f; break;
    case KN_F16: ((uint16_t *)data)[i] = kn_f64_to_f16(f); break;
    case KN_BF16: ((uint16_t *)data)[i] = kn_f32_to_bf16((float)f); break;
    case KN_I4:
    case KN_U4: npu_store_u4(data, i, (uint8_t)(v & 15)); break;
    case KN_I8:
    case KN_U8: ((uint8_t *)data)[i] = (uint8_t)v; break;
    case KN_I16:
    case KN_U16: ((uint16_t *)data)[i] = (uint16_t)v; break;
    case KN_I32:
    case KN_U32: ((uint32_t *)data)[i] = (uint32_t)v; break;
    case KN_I64:
    case KN_U64: ((int64_t *)data)[i] = v; break;
    case KN_BOOL: ((uint8_t *)data)[i] = (uint8_t)(v & 1); break;
    default: fail_msg("no element type");
    }
}

static inline void fill_plain(kn_dtype type, int64_t n, const char *name, void *data)
{
    uint64_t seed = strlen(name) + (uint64_t)name[0] * 77;
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = next_random(&seed);
        set_element(type, data, i, (double)(r % 8192) / 2048.0 - 2.0, (int64_t)(r % 16));
    }
}

static const double float_edges[] = {
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.5,
    -2.5,
    3.0,
    -7.0,
    7.75,
    0.1,
    127.5,
    -129.0,
    255.9,
    65504.0,
    65520.0,
    2147483648.0,
    -9223372036854775808.0,
    1.8446744073709552e19,
    1e30,
    1e-6,
    3.3e-42,
    88.8,
    0,
};
static const int64_t integer_edges[] = {
    0,     1,      -1,    2,         -2,        3,          -3,        7,
    -8,    8,      15,    31,        33,        127,        -128,      255,
    32767, -32768, 65535, INT32_MAX, INT32_MIN, UINT32_MAX, INT64_MAX, INT64_MIN,
};
enum { EDGES = 24, PAIRS = EDGES * EDGES };

/* All pairs of edge cases: `a...` counts slowly, `b...` fast. */
static inline void fill_edges(kn_dtype type, int64_t n, const char *name, void *data)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t k = (name[0] == 'a' ? i / EDGES : i) % EDGES;
        double f = k == EDGES - 1   ? (double)NAN
                   : k == EDGES - 2 ? -(double)INFINITY
                                    : float_edges[k];
        set_element(type, data, i, f, integer_edges[k]);
    }
}

static inline int64_t count_of(const program *p, const kn_buffer *b)
{
    int64_t n = 1, dim = 0;
    for (int i = 0; i < b->rank; i++) {
        assert_true(kn_index_eval(b->shape[i], p->names, p->sizes, p->nsizes, &dim));
        n *= dim;
    }
    return n;
}

typedef struct {
    const kn_param *params[MAX_BUFFERS];
    kn_memory at[MAX_BUFFERS]; /* in the order of main's parameters */
    int64_t counts[MAX_BUFFERS];
    int n;
} data_set;

/* Fresh buffers; an output that aliases an input is that input's. */
static inline data_set make_data(const program *p)
{
    data_set d = {.n = 0};
    for (int i = 0; i < p->entry->nparams; i++) {
        const kn_param *param = &p->entry->params[i];
        if (param->mode == KN_PARAM_SCALAR)
            continue;
        assert_true(d.n < MAX_BUFFERS);
        int64_t n = count_of(p, &param->buffer);
        kn_memory m = {NULL, (size_t)kn_dtype_bytes(param->buffer.type, n)};
        for (int k = 0; k < d.n; k++) {
            if (param->alias && strcmp(param->alias, d.params[k]->buffer.name) == 0)
                m.data = d.at[k].data;
        }
        if (!m.data) {
            m.data = kn_alloc(p->f->arena, m.bytes);
            if (param->mode == KN_PARAM_OUT)
                memset(m.data, 0x5a, m.bytes);
            else
                p->fill(param->buffer.type, n, param->buffer.name, m.data);
        }
        d.params[d.n] = param;
        d.counts[d.n] = n;
        d.at[d.n++] = m;
    }
    return d;
}

/* ---- Running ---- */

typedef struct {
    const program *p;
    data_set *d;
} interpretation;

static inline void interpret(void *arg)
{
    const interpretation *r = arg;
    kn_interp_run(r->p->f->ctx, r->p->interp, r->p->sizes, r->p->nsizes, r->d->at, r->d->n);
}

static inline void *symbol(void *library, const char *name)
{
    void *s = dlsym(library, name);
    assert_non_null(s);
    return s;
}

static inline npu_status run_c(const program *p, int variant, const data_set *d, npu_context *npu)
{
    void *io[MAX_BUFFERS];
    const void *weights[MAX_BUFFERS];
    int nio = 0, nweights = 0;
    run_fn *run;
    bytes_fn *bytes;
    *(void **)&run = symbol(p->loaded[variant], "t_run");
    *(void **)&bytes = symbol(p->loaded[variant], "t_workspace_bytes");
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < d->n; i++) {
            if (d->params[i]->mode != KN_PARAM_CONST &&
                (d->params[i]->mode == KN_PARAM_OUT) == pass)
                io[nio++] = d->at[i].data;
        }
    }
    for (int i = 0; i < d->n; i++) {
        if (d->params[i]->mode == KN_PARAM_CONST)
            weights[nweights++] = d->at[i].data;
    }
    int64_t need = bytes(p->sizes);
    void *workspace = need > 0 ? kn_alloc(p->f->arena, (size_t)need + 64) : NULL;
    if (workspace)
        workspace = (char *)workspace + (64 - (uintptr_t)workspace % 64) % 64;
    return run(npu, io, weights, p->sizes, workspace);
}

static inline bool is_nan(kn_dtype type, const void *data, int64_t i)
{
    switch (type) {
    case KN_F32: return isnan(((const float *)data)[i]);
    case KN_F64: return isnan(((const double *)data)[i]);
    case KN_F16: return isnan(kn_f16_to_f32(((const uint16_t *)data)[i]));
    case KN_BF16: return isnan(kn_bf16_to_f32(((const uint16_t *)data)[i]));
    default: return false;
    }
}

static inline void compare_buffer(const program *p, const kn_buffer *b, int64_t n,
                                  const kn_memory *x, const kn_memory *y, const char *compiler)
{
    size_t bytes = (size_t)kn_dtype_bits(b->type) / 8;
    if (bytes == 0) {
        bytes = 1;
        n = (int64_t)x->bytes;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *px = (const char *)x->data + (size_t)i * bytes,
                   *py = (const char *)y->data + (size_t)i * bytes;
        if (memcmp(px, py, bytes) == 0 ||
            (is_nan(b->type, x->data, i) && is_nan(b->type, y->data, i)))
            continue;
        uint64_t vx = 0, vy = 0;
        memcpy(&vx, px, bytes);
        memcpy(&vy, py, bytes);
        fail_msg("%s: %s[%" PRId64 "]: interpreted %#" PRIx64 ", in C %#" PRIx64 "\n%s", compiler,
                 b->name, i, vx, vy, p->code.n < 20000 ? kn_str_get(&p->code) : "");
    }
}

/* Runs all variants on fresh data and compares what they wrote. */
static inline void check(program *p, fill_fn *fill, const int64_t *sizes)
{
    p->fill = fill;
    p->nsizes = 0;
    for (int i = 0; i < p->entry->nparams; i++) {
        const kn_param *param = &p->entry->params[i];
        if (param->mode != KN_PARAM_SCALAR)
            continue;
        p->names[p->nsizes] = (kn_size){param->buffer.name, param->lo, param->hi};
        p->sizes[p->nsizes] = sizes[p->nsizes];
        p->nsizes++;
    }
    data_set expected = make_data(p);
    interpretation r = {p, &expected};
    require(p, kn_protect(p->f->ctx, interpret, &r));
    for (int v = 0; v < VARIANTS; v++) {
        if (!p->loaded[v])
            continue;
        data_set found = make_data(p);
        npu_context npu = {NULL, NULL};
        if (run_c(p, v, &found, &npu) != NPU_OK)
            fail_msg("%s: failed: %s", variants[v].compiler, npu.message);
        for (int i = 0; i < found.n; i++)
            compare_buffer(p, &found.params[i]->buffer, found.counts[i], &expected.at[i],
                           &found.at[i], variants[v].compiler);
    }
}

/* Both the interpreter and C must fail, C with the message. */
static inline void check_fails(program *p, fill_fn *fill, const int64_t *sizes, const char *message)
{
    p->fill = fill;
    for (p->nsizes = 0; p->entry->params[p->nsizes].mode == KN_PARAM_SCALAR; p->nsizes++) {
        p->names[p->nsizes].name = p->entry->params[p->nsizes].buffer.name;
        p->sizes[p->nsizes] = sizes[p->nsizes];
    }
    data_set d = make_data(p);
    interpretation r = {p, &d};
    assert_int_equal(kn_protect(p->f->ctx, interpret, &r), KN_INVALID);
    for (int v = 0; v < VARIANTS; v++) {
        if (!p->loaded[v])
            continue;
        npu_context npu = {NULL, NULL};
        data_set found = make_data(p);
        assert_int_equal(run_c(p, v, &found, &npu), NPU_FAILED);
        assert_non_null(npu.message);
        assert_string_equal(npu.message, message);
    }
}

static inline void has_text(const program *p, const char *text)
{
    if (!strstr(kn_str_get(&p->code), text))
        fail_msg("expected `%s` in\n%s", text, kn_str_get(&p->code));
}

static inline void lacks_text(const program *p, const char *text)
{
    if (strstr(kn_str_get(&p->code), text))
        fail_msg("expected no `%s` in\n%s", text, kn_str_get(&p->code));
}

#endif
