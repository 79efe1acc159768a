/* Threads with a context each: compiling the same model gives the same C text and, run, the same
   bits; and one program may be shared by sessions of several threads. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/codegen.h"
#include "driver/driver.h"

static const char text[] =
    "graph @block(%x: f32[seq, 24], %keep: bool[seq], %past: f32[4, 24]) -> (%y: f32[seq, 24], %p: "
    "f32[seq, seq], %next: f32[4, 24])\n"
    "    where seq in 1:64 {\n"
    "  const %w: f32[24, 24] = splat 0.0625\n"
    "  const %g: f32[24] = splat 1.5\n"
    "  %n = notation \"(X[t, d], G[d], eps: f32 = 1e-5) -> Y: S[i] +=! X[i, j] * X[i, j]; "
    "Y[i, j] = X[i, j] * rsqrt(S[i] / cast(f32, d) + eps) * G[j]\"(%x, %g)\n"
    "  %q = matmul(%n, %w)\n"
    "  %k = gelu(matmul(%x, %w))\n"
    "  %s = notation \"(Q[t, d], K[u, d], M[u]) -> S: A[i, j] +=! Q[i, r] * K[j, r]; "
    "S[i, j] = select(j <= i && M[j], A[i, j] * 0.2, -inf)\"(%q, %k, %keep)\n"
    "  %p = softmax(%s)\n"
    "  %y = notation \"(P[t, u], X[u, d], R[b, d]) -> Y: Y[i, j] +=! P[i, r] * X[r, j]; Y[i, j] += "
    "R[i % 4, j]\"(%p, %x, %past)\n"
    "  %next = notation \"(R[b, d]) -> S: S[i, j] = R[i, j] + select(i == 0, 0, S[i - 1, "
    "j])\"(%past)\n"
    "}\n";

enum {
    SEQ = 13,
    WIDTH = 24,
    ROUNDS = 3,
    THREADS = 4,
    OUTPUTS = SEQ * WIDTH + SEQ * SEQ + 4 * WIDTH
};

typedef struct {
    kn_ctx *ctx;
    const kn_program *shared; /* to run instead of compiling */
    kn_program *own;
    char *code; /* the C text */
    float got[OUTPUTS];
    kn_status status;
    const char *message;
} job;

static kn_model *parse(kn_ctx *ctx)
{
    kn_arena *a = kn_arena_create(ctx);
    kn_model *m = KN_NEW(a, kn_model);
    *m = (kn_model){.ctx = ctx, .arena = a, .references = 1};
    m->graph = kn_graph_parse(a, "block.kir", text, sizeof text - 1);
    return m;
}

static void write_code(job *j)
{
    kn_model *m = parse(j->ctx);
    kn_unit u = kn_driver_lower(m->arena, m, NULL, NULL);
    kn_str code = kn_str_make(m->arena), header = kn_str_make(m->arena);
    kn_c_module(m->arena, u.module, &(kn_c_options){.prefix = "block"}, &code, &header);
    kn_put(&code, kn_str_get(&header));
    j->code = strdup(kn_str_get(&code));
    kn_driver_release(m);
}

static void compile(job *j)
{
    kn_model *m = parse(j->ctx);
    j->own = kn_driver_program(m, &(kn_compile_options){.level = 2});
    kn_driver_release(m);
}

static void require(job *j, kn_status status)
{
    if (status != KN_OK) {
        kn_raise_again(j->ctx, status);
    }
}

static void run(job *j, const kn_program *p)
{
    static const int64_t dims[3][2] = {{SEQ, WIDTH}, {SEQ, 0}, {4, WIDTH}};
    float x[SEQ * WIDTH], past[4 * WIDTH];
    bool keep[SEQ];
    for (int i = 0; i < SEQ * WIDTH; i++) {
        x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    }
    for (int i = 0; i < 4 * WIDTH; i++) {
        past[i] = (float)(i * 53 % 97) / 48.0f - 1.0f;
    }
    for (int i = 0; i < SEQ; i++) {
        keep[i] = i % 5 != 3;
    }
    kn_session *s;
    require(j, kn_session_create(j->ctx, p, &s));
    require(j, kn_session_set_input(s, 0, KN_F32, 2, dims[0], x));
    require(j, kn_session_set_input(s, 1, KN_BOOL, 1, dims[1], keep));
    require(j, kn_session_set_input(s, 2, KN_F32, 2, dims[2], past));
    for (int round = 0; round < ROUNDS; round++) {
        float *to = j->got;
        require(j, kn_session_run(s));
        for (int i = 0; i < 3; i++) {
            kn_dtype type;
            int rank;
            int64_t out[KN_MAX_RANK];
            const void *data;
            require(j, kn_session_get_output(s, i, &type, &rank, out, &data));
            memcpy(to, data, (size_t)(out[0] * out[1]) * sizeof(float));
            to += out[0] * out[1];
        }
    }
    kn_session_destroy(s);
}

static void body(void *env)
{
    job *j = env;
    if (!j->shared) {
        write_code(j);
        compile(j);
    }
    run(j, j->shared ? j->shared : j->own);
}

static void *work(void *env)
{
    job *j = env;
    j->ctx = kn_ctx_create();
    j->status = kn_protect(j->ctx, body, j);
    const kn_diag *d =
        kn_diag_count(j->ctx) ? kn_diag_get(j->ctx, kn_diag_count(j->ctx) - 1) : NULL;
    j->message = d ? strdup(d->message) : NULL;
    if (j->own && !j->shared) {
        kn_program_destroy(j->own);
    }
    kn_ctx_destroy(j->ctx);
    return NULL;
}

static void check(const job *j, const job *first)
{
    if (j->status != KN_OK) {
        fail_msg("%s", j->message ? j->message : "no message");
    }
    assert_memory_equal(j->got, first->got, sizeof j->got);
    if (j->code) {
        assert_string_equal(j->code, first->code);
    }
}

static void start_all(job *jobs, const kn_program *shared)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.shared = shared};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

static void end_all(job *jobs)
{
    for (int i = 0; i < THREADS; i++) {
        free(jobs[i].code);
        free((void *)(uintptr_t)jobs[i].message);
    }
}

static void a_context_each(void **state)
{
    static job jobs[THREADS];
    (void)state;
    start_all(jobs, NULL);
    for (int i = 0; i < THREADS; i++) {
        check(&jobs[i], &jobs[0]);
    }
    end_all(jobs);
}

static void one_program(void **state)
{
    static job jobs[THREADS], first;
    (void)state;
    first.ctx = kn_ctx_create();
    assert_int_equal(kn_protect(first.ctx, body, &first), KN_OK);
    start_all(jobs, first.own);
    for (int i = 0; i < THREADS; i++) {
        check(&jobs[i], &first);
    }
    end_all(jobs);
    free(first.code);
    kn_program_destroy(first.own);
    kn_ctx_destroy(first.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_context_each),
                                       cmocka_unit_test(one_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
