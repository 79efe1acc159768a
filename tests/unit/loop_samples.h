/* Modules in the loop IR for the tests of the code generators, and how their main is called with
   the same data in several ways: interpreted, or through the entries of kiln/npu.h. */
#ifndef KN_TESTS_LOOP_SAMPLES_H
#define KN_TESTS_LOOP_SAMPLES_H

#include "unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NPU_SCALAR_HEADER
#define NPU_SCALAR_HEADER "runtime/npu/host/scalar.h"
#endif
#include "codegen/codegen.h"
#include "kiln/npu.h"
#include "support/half.h"

enum { MAX_SAMPLE_SIZES = 4, SAMPLE_SLACK = 64 };

typedef struct {
    const char *name, *text;
    int64_t sizes[MAX_SAMPLE_SIZES];
} loop_sample;

/* Integers of a parameter whose name begins with I lie in 0:4, to be used as indices. */
static const loop_sample loop_samples[] = {
    {"matmul_bias_relu",
     "module @m { func @k0(s: index, in A: f32[s, 48] @ddr, in B: f32[48, 17] @ddr,"
     " in b: f32[17] @ddr, out C: f32[s, 17] @ddr) {"
     " for i in 0:s { for j in 0:17 { alloc t: f32[] @local t[] = b[j]"
     " for r in 0:48 { t[] += A[i, r] * B[r, j] }"
     " C[i, j] = max(t[], 0.0) } } }"
     " func @main(s: index in 1:1000, in x: f32[s, 48] @ddr, const w: f32[48, 17] @ddr,"
     " const b: f32[17] @ddr, out y: f32[s, 17] @ddr) workspace 0 { call k0(s, x, w, b, y) } }",
     {13}},
    {"softmax_in_workspace",
     "module @m { func @top(n: index, k: index, in X: f32[n, k] @ddr, out M: f32[n] @ddr) {"
     " for i in 0:n { M[i] = -inf for j in 0:k { M[i] max= X[i, j] } } }"
     " func @exps(n: index, k: index, in X: f32[n, k] @ddr, in M: f32[n] @ddr,"
     " out E: f32[n, k] @ddr, out S: f32[n] @ddr) { for i in 0:n { alloc t: f32[] @local t[] = 0.0"
     " for j in 0:k vector { let e: f32 = exp(X[i, j] - M[i]) E[i, j] = e t[] += e } S[i] = t[] } }"
     " func @main(n: index in 1:64, k: index in 1:64, in X: f32[n, k] @ddr, out Y: f32[n, k] @ddr)"
     " workspace (n*4 + 63) / 64 * 64 + (n*k*4 + 63) / 64 * 64 + n*4 {"
     " alloc M: f32[n] @ddr at 0"
     " alloc E: f32[n, k] @ddr at (n*4 + 63) / 64 * 64"
     " alloc S: f32[n] @ddr at (n*4 + 63) / 64 * 64 + (n*k*4 + 63) / 64 * 64"
     " call top(n, k, X, M) call exps(n, k, X, M, E, S)"
     " for i in 0:n { for j in 0:k { Y[i, j] = E[i, j] / S[i] } } } }",
     {7, 33}},
    {"lazy_guards",
     "module @m { func @main(n: index in 1:64, in x: f32[n] @ddr, in I: i32[n] @ddr,"
     " out y: f32[n + 4] @ddr, out z: bool[n + 4] @ddr) workspace 0 { for i in 0:n + 4 {"
     " y[i] = select(i >= 2 && i - 2 < n, x[i - 2], -1.5)"
     " z[i] = (i < n && x[i] > 0.0) || (i >= n && x[i - n] < 0.0 && !(i == n + 1)) } } }",
     {11}},
    {"select_tree",
     "module @m { func @main(n: index in 1:64, in x: f32[n] @ddr, in a: i32[n] @ddr,"
     " out y: f32[n] @ddr) workspace 0 { for i in 0:n {"
     " y[i] = select(a[i] > 0:i32, select(x[i] > 0.0, log(x[i]), exp(x[i])),"
     " select(a[i] % 2:i32 == 0:i32, x[i] * 2.0, sqrt(abs(x[i])))) } } }",
     {29}},
    {"checked_gather",
     "module @m { func @g(n: index, v: index, in T: f32[v, 3] @ddr, in I: i64[n] @ddr,"
     " out y: f32[n, 3] @ddr) { for i in 0:n { let r: index = cast(index, I[i])"
     " check 0 <= r && r < v \"an index of I is out of range\""
     " for j in 0:3 { y[i, j] = T[r, j] } } }"
     " func @main(n: index in 1:64, v: index in 4:4, const T: f32[4, 3] @ddr,"
     " in I: i64[n] @ddr, out y: f32[n, 3] @ddr) workspace 0 { call g(n, v, T, I, y) } }",
     {10, 4}},
    {"four_bits",
     "module @m { func @k(n: index, in q: i4[n] @ddr, out y: f32[n] @ddr) {"
     " for i in 0:n { y[i] = cast(f32, q[i]) } }"
     " func @main(n: index in 2:64, in q: i4[2, n] @ddr, in u: u4[n] @ddr, inout t: i4[n] @ddr,"
     " out y: f32[n] @ddr, out z: u4[n] @ddr) workspace 0 {"
     " view v: i4[n - 1] = q at 3  view w: i4[n - 2] = v at 1"
     " for i in 0:n { z[i] = u[i] + 3:u4 t[i] += q[1, i] t[i] max= -3:i4 }"
     " for i in 0:n - 2 { y[i] = cast(f32, v[i] * 2:i4) + cast(f32, w[i]) }"
     " for i in n - 2:n { y[i] = 0.0 }"
     " call k(n / 2, &q[0, 0], y) } }",
     {14}},
    {"views_and_parts",
     "module @m { func @row(k: index, in a: f64[k] @ddr, inout s: f64[1] @ddr) {"
     " for j in 0:k { s[0] += a[j] } }"
     " func @main(n: index in 1:64, in a: f64[n, 6] @ddr, inout s: f64[n] @ddr,"
     " out y: f64[6*n] @ddr) workspace 0 {"
     " view flat: f64[n*6] = a  view tail: f64[n*6 - 5] = flat at 5"
     " for i in 0:n { call row(6, &a[i, 0], &s[i]) }"
     " for i in 0:n*6 - 5 { y[i] = tail[i] } for i in n*6 - 5:n*6 { y[i] = flat[i] * 0.5 } } }",
     {9}},
    {"update_in_place",
     "module @m { func @put(n: index, m: index, in x: f32[m] @ddr, inout c: f32[n] @ddr) {"
     " for i in 0:m { c[n - m + i] = x[i] } }"
     " func @main(n: index in 4:64, m: index in 1:4, in c: f32[n] @ddr, in x: f32[m] @ddr,"
     " out d: f32[n] @ddr aliases c, out y: f32[n] @ddr) workspace 0 {"
     " call put(n, m, x, d) for i in 0:n { y[i] = d[i] + 1.0 } } }",
     {20, 3}},
    {"loops_of_all_kinds",
     "module @m { func @main(n: index in 0:64, in x: i32[64] @ddr, out y: i32[64] @ddr,"
     " out z: i64[8] @ddr) workspace 0 {"
     " for i in 0:64 { y[i] = 0:i32 }"
     " for i in 1:n step 3 { y[i] += x[i] if i % 2 == 0 { y[i] *= 3:i32 } else if i > 20 {"
     " y[i] = -y[i] } else { y[i] min= 7:i32 } }"
     " for i in 0:8 unroll { z[i] = cast(i64, i * n - 3) / 2:i64 + cast(i64, (i - 5) / 3)"
     " + cast(i64, (i - 5) % 3) }"
     " for i in n:n - 3 { y[i] = 5:i32 }"
     " for i in 0:4 parallel { for j in i:8 step 2 { y[j*4 + i] max= x[j] } } } }",
     {23}},
    {"bools_and_bytes",
     "module @m { func @main(n: index in 1:64, in p: bool[n] @ddr, in u: u8[n] @ddr,"
     " in h: f16[n] @ddr, in b: bf16[n] @ddr, out q: bool[n] @ddr, out v: u8[n] @ddr,"
     " out g: f16[n] @ddr, out c: bf16[n] @ddr) workspace 0 { for i in 0:n {"
     " q[i] = p[i] ^ (u[i] > 100:u8) v[i] = select(p[i], u[i] >> 3:u8, u[i] << 1:u8)"
     " g[i] = h[i] * h[i] + cast(f16, b[i]) c[i] = exp(b[i])"
     " let m: bf16 = max(b[i], cast(bf16, h[i])) c[i] += m } } }",
     {31}},
    {"powers_of_literals",
     "module @m { func @main(n: index in 1:65536, in x: f32[n] @ddr, in d: f64[n] @ddr,"
     " out y: f32[n] @ddr, out z: f32[n] @ddr, out v: f32[n] @ddr, out w: f64[n] @ddr)"
     " workspace 0 { for i in 0:n { y[i] = pow(x[i], 2.0) z[i] = pow(x[i], 0.5)"
     " v[i] = pow(2.0, x[i]) w[i] = pow(d[i], 2.0:f64) } } }",
     {20000}},
};
enum { NSAMPLES = sizeof loop_samples / sizeof *loop_samples };

/* ---- Data ---- */

/* The arguments of a module's main. */
typedef struct {
    const kn_func *main;
    int nsizes, nbuffers;
    int64_t *sizes;
    kn_memory *buffers;      /* in the order of main's parameters */
    const kn_param **params; /* of the buffers */
} sample_data;

static inline uint64_t sample_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static inline double sample_real(uint64_t *seed)
{
    static const double odd[] = {0,
                                 -0.0,
                                 1,
                                 -1,
                                 0.5,
                                 1.5,
                                 2.5,
                                 -2.5,
                                 100,
                                 1e-8,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 (double)NAN,
                                 65504,
                                 1e30,
                                 -300.7};
    uint64_t r = sample_random(seed);
    if (r % 16 == 0)
        return odd[r / 16 % (sizeof odd / sizeof *odd)];
    return (double)(int64_t)(r >> 11) / 9007199254740992.0 * 8 - 4;
}

static inline int64_t sample_integer(uint64_t *seed, const char *name)
{
    static const int64_t odd[] = {0,      1,     -1,        2,         -2,        7,
                                  -8,     15,    127,       -128,      255,       32767,
                                  -32768, 65535, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    uint64_t r = sample_random(seed);
    if (name[0] == 'I')
        return (int64_t)(r % 4);
    if (r % 4 == 0)
        return odd[r / 4 % (sizeof odd / sizeof *odd)];
    return (int64_t)(r >> 3);
}

static inline void sample_put(unsigned char *at, kn_dtype t, int64_t i, uint64_t *seed,
                              const char *name)
{
    int bytes = kn_dtype_bits(t) / 8;
    double d = kn_dtype_is_float(t) ? sample_real(seed) : 0;
    int64_t v = kn_dtype_is_float(t) ? 0 : sample_integer(seed, name);
    float f = (float)d;
    uint16_t h = t == KN_F16 ? kn_f32_to_f16(f) : kn_f32_to_bf16(f);
    if (t == KN_BOOL)
        v &= 1;
    if (bytes == 0)
        at[i / 2] = (unsigned char)(at[i / 2] << 4 | (v & 15));
    else if (t == KN_F32)
        memcpy(at + 4 * i, &f, 4);
    else if (t == KN_F64)
        memcpy(at + 8 * i, &d, 8);
    else if (t == KN_F16 || t == KN_BF16)
        memcpy(at + 2 * i, &h, 2);
    else
        memcpy(at + bytes * i, &v, (size_t)bytes); /* little-endian hosts only */
}

static inline int64_t sample_count(const kn_func *f, const kn_buffer *b, const int64_t *sizes)
{
    kn_size names[MAX_SAMPLE_SIZES];
    int64_t count = 1, dim = 0;
    int n = 0;
    for (int i = 0; i < f->nparams; i++) {
        if (f->params[i].mode == KN_PARAM_SCALAR)
            names[n++] = (kn_size){f->params[i].buffer.name, f->params[i].lo, f->params[i].hi};
    }
    for (int i = 0; i < b->rank; i++) {
        assert_true(kn_index_eval(b->shape[i], names, sizes, n, &dim));
        count *= dim;
    }
    return count;
}

/* Random arguments, the same for the same seed. Each buffer starts `shift` bytes behind an address
   that is aligned to 64 when it is a constant, and is followed by bytes that must not change. */
static inline sample_data *sample_make(kn_arena *a, const kn_module *m, const int64_t *sizes,
                                       uint64_t seed, size_t shift)
{
    sample_data *d = KN_NEW(a, sample_data);
    d->main = kn_module_find(m, "main");
    d->sizes = KN_ARRAY(a, int64_t, d->main->nparams + 1);
    d->buffers = KN_ARRAY(a, kn_memory, d->main->nparams + 1);
    d->params = KN_ARRAY(a, const kn_param *, d->main->nparams + 1);
    for (int i = 0; i < d->main->nparams; i++) {
        if (d->main->params[i].mode == KN_PARAM_SCALAR) {
            d->sizes[d->nsizes] = sizes[d->nsizes];
            d->nsizes++;
        }
    }
    for (int i = 0; i < d->main->nparams; i++) {
        const kn_param *p = &d->main->params[i];
        if (p->mode == KN_PARAM_SCALAR)
            continue;
        int64_t count = sample_count(d->main, &p->buffer, sizes);
        size_t bytes = (size_t)kn_dtype_bytes(p->buffer.type, count);
        unsigned char *at = kn_alloc(a, bytes + 3 * SAMPLE_SLACK);
        at += SAMPLE_SLACK - (uintptr_t)at % SAMPLE_SLACK;
        at += p->mode == KN_PARAM_CONST ? shift : 0;
        memset(at, 0xA5, bytes + SAMPLE_SLACK / 2);
        for (int64_t k = 0; p->mode != KN_PARAM_OUT && k < count; k++)
            sample_put(at, p->buffer.type, k, &seed, p->buffer.name);
        d->buffers[d->nbuffers] = (kn_memory){at, bytes};
        d->params[d->nbuffers++] = p;
    }
    for (int i = 0; i < d->nbuffers; i++) {
        for (int j = 0; d->params[i]->alias && j < d->nbuffers; j++) {
            if (strcmp(d->params[j]->buffer.name, d->params[i]->alias) == 0)
                d->buffers[i] = d->buffers[j];
        }
    }
    return d;
}

/* ---- Ways to run ---- */

typedef struct {
    kn_ctx *ctx;
    const kn_module *m;
    const sample_data *d;
} sample_interpretation;

static inline void sample_interpret_body(void *arg)
{
    const sample_interpretation *t = arg;
    kn_arena *a = kn_arena_create(t->ctx);
    kn_interp *in = kn_interp_compile(a, t->m, t->d->main);
    kn_interp_run(t->ctx, in, t->d->sizes, t->d->nsizes, t->d->buffers, t->d->nbuffers);
    kn_arena_destroy(a);
}

static inline kn_status sample_interpret(kn_ctx *ctx, const kn_module *m, const sample_data *d)
{
    sample_interpretation t = {ctx, m, d};
    return kn_protect(ctx, sample_interpret_body, &t);
}

/* Calls the entries; the message is NULL when the run did not fail. */
static inline const char *sample_call(kn_arena *a, kn_run_fn run, kn_workspace_fn workspace_bytes,
                                      const sample_data *d)
{
    void **io = KN_ARRAY(a, void *, d->nbuffers + 1);
    const void **weights = KN_ARRAY(a, const void *, d->nbuffers + 1);
    int nio = 0, nweights = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < d->nbuffers; i++) {
            kn_param_mode mode = d->params[i]->mode;
            if (mode != KN_PARAM_CONST && (mode == KN_PARAM_OUT) == (pass == 1))
                io[nio++] = d->buffers[i].data;
            else if (mode == KN_PARAM_CONST && pass == 0)
                weights[nweights++] = d->buffers[i].data;
        }
    }
    int64_t bytes = workspace_bytes(d->sizes);
    unsigned char *workspace = bytes > 0 ? kn_alloc(a, (size_t)bytes + 64) : NULL;
    if (workspace) {
        workspace += 64 - (uintptr_t)workspace % 64;
        memset(workspace, 0xA5, (size_t)bytes);
    }
    struct npu_context npu = {NULL, NULL};
    int status = run(&npu, io, weights, d->sizes, workspace);
    assert_int_equal(status != 0, npu.message != NULL);
    return npu.message;
}

/* ---- Comparing ---- */

static inline bool sample_is_nan(kn_dtype t, const unsigned char *at)
{
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)kn_dtype_bits(t) / 8); /* little-endian hosts only */
    switch (t) {
    case KN_F32: return (bits & 0x7fffffff) > 0x7f800000;
    case KN_F64: return (bits & INT64_MAX) > (uint64_t)0x7ff << 52;
    case KN_F16: return (bits & 0x7fff) > 0x7c00;
    case KN_BF16: return (bits & 0x7fff) > 0x7f80;
    default: return false;
    }
}

/* Bit by bit, a NaN being equal to any other; and nothing behind the buffers was written. */
static inline void sample_compare(const char *name, const char *way, const sample_data *expected,
                                  const sample_data *found)
{
    for (int i = 0; i < found->nbuffers; i++) {
        kn_dtype t = found->params[i]->buffer.type;
        const unsigned char *x = expected->buffers[i].data, *y = found->buffers[i].data;
        size_t bytes = found->buffers[i].bytes, step = (size_t)kn_dtype_bits(t) / 8;
        step = step ? step : 1;
        for (size_t k = 0; k < bytes; k += step) {
            bool nans = step > 1 && sample_is_nan(t, x + k) && sample_is_nan(t, y + k);
            if (!nans && memcmp(x + k, y + k, step) != 0)
                fail_msg("%s, %s: %s differs at element %zu", name, way,
                         found->params[i]->buffer.name, k / step);
        }
        for (size_t k = 0; k < SAMPLE_SLACK / 2; k++) {
            if (y[bytes + k] != 0xA5)
                fail_msg("%s, %s: written behind %s", name, way, found->params[i]->buffer.name);
        }
    }
}

#endif
