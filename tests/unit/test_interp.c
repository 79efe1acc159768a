/* The interpreter on whole functions: nests of loops, buffers, calls, and what it must catch.
   Expected values are computed here in plain C. Loops are run short and long, since long ones run
   by another part of the machine. */
#include "loop_help.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float noise(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(*seed >> 8) / 8388608.0f - 1.0f;
}

static void fill(float *x, int n, uint32_t seed)
{
    for (int i = 0; i < n; i++)
        x[i] = noise(&seed);
}

/* ---- Nests ---- */

static const char matmul[] =
    "module @m { func @f(s: index in 1:64, n: index, k: index, in A: f32[s, k] @ddr, in B: f32[k, "
    "n] @ddr,\n"
    "out C: f32[s, n] @ddr) { for i in 0:s { for j in 0:n { C[i, j] = 0.0\n"
    "for r in 0:k { C[i, j] += A[i, r] * B[r, j] } } } } }";

static void check_matmul(fixture *f, int s, int n, int k)
{
    static float a[64 * 200], b[200 * 64], c[64 * 64];
    fill(a, s * k, 1);
    fill(b, k * n, 2);
    run r = {.ctx = f->ctx, .text = matmul, .nscalars = 3, .scalars = {s, n, k}, .nbuffers = 3};
    r.buffers[0] = (kn_memory){a, (size_t)(s * k) * 4};
    r.buffers[1] = (kn_memory){b, (size_t)(k * n) * 4};
    r.buffers[2] = (kn_memory){c, (size_t)(s * n) * 4};
    run_ok(&r);
    for (int i = 0; i < s; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0;
            for (int q = 0; q < k; q++)
                sum += a[i * k + q] * b[q * n + j];
            assert_memory_equal(&sum, &c[i * n + j], sizeof sum);
        }
}

static void matmul_is_exact(void **state)
{
    check_matmul(*state, 3, 5, 4);
    check_matmul(*state, 1, 1, 1);
    check_matmul(*state, 7, 9, 200);
    check_matmul(*state, 2, 3, 0);
    check_matmul(*state, 5, 2, 64);
}

static void softmax_is_exact(void **state)
{
    fixture *f = *state;
    enum { B = 3, N = 70 };
    float x[B][N], y[B][N];
    fill(&x[0][0], B * N, 3);
    run r = {.ctx = f->ctx,
             .nscalars = 2,
             .scalars = {B, N},
             .nbuffers = 2,
             .buffers = {MEMORY(x), MEMORY(y)}};
    r.text = "module @m { func @softmax(b: index, n: index, in X: f32[b, n] @ddr, out Y: f32[b, n] "
             "@ddr) {\n"
             "alloc M: f32[b] @ddr alloc S: f32[b] @ddr\n"
             "for i in 0:b { M[i] = -inf } for i in 0:b { for j in 0:n { M[i] max= X[i, j] } }\n"
             "for i in 0:b { for j in 0:n { Y[i, j] = exp(X[i, j] - M[i]) } }\n"
             "for i in 0:b { S[i] = 0.0 } for i in 0:b { for j in 0:n { S[i] += Y[i, j] } }\n"
             "for i in 0:b { for j in 0:n { Y[i, j] = Y[i, j] / S[i] } } } }";
    run_ok(&r);
    for (int i = 0; i < B; i++) {
        float m = -INFINITY, s = 0;
        for (int j = 0; j < N; j++)
            m = x[i][j] > m ? x[i][j] : m;
        for (int j = 0; j < N; j++)
            s += expf(x[i][j] - m);
        for (int j = 0; j < N; j++) {
            float want = expf(x[i][j] - m) / s;
            assert_memory_equal(&want, &y[i][j], sizeof want);
        }
    }
}

static const char gather[] =
    "module @m { func @gather(n: index, in W: f32[5, 40] @ddr, in I: i64[n] @ddr, out Y: f32[n, "
    "40] @ddr) {\n"
    "for i in 0:n { for j in 0:40 {\n"
    "check 0 <= cast(index, I[i]) && cast(index, I[i]) < 5 \"subscript 0 of W\"\n"
    "Y[i, j] = W[cast(index, I[i]), j] } } } }";
static const char gather_unchecked[] = "module @m { func @gather(n: index, in W: f32[5, 40] @ddr, "
                                       "in I: i64[n] @ddr, out Y: f32[n, 40] @ddr) {\n"
                                       "for i in 0:n { for j in 0:40 {\n\n"
                                       "Y[i, j] = W[cast(index, I[i]), j] } } } }";

static void gather_reads_rows(void **state)
{
    fixture *f = *state;
    float w[5][40], y[4][40];
    int64_t at[4] = {4, 0, 3, 3};
    fill(&w[0][0], 200, 4);
    run r = {.ctx = f->ctx, .text = gather, .nscalars = 1, .scalars = {4}, .nbuffers = 3};
    r.buffers[0] = (kn_memory)MEMORY(w);
    r.buffers[1] = (kn_memory)MEMORY(at);
    r.buffers[2] = (kn_memory)MEMORY(y);
    run_ok(&r);
    for (int i = 0; i < 4; i++)
        assert_memory_equal(y[i], w[at[i]], sizeof y[i]);
    at[2] = 5;
    run_fails(&r, "function gather: subscript 0 of W", 3);
    r.text = gather_unchecked;
    run_fails(&r, "function gather: W[5, 0] is outside W: f32[5, 40]", 4);
    at[2] = -1;
    run_fails(&r, "function gather: W[-1, 0] is outside W: f32[5, 40]", 4);
}

/* Each step reads what the one before has written. */
static void recurrences_run_in_order(void **state)
{
    fixture *f = *state;
    enum { N = 200 };
    float x[N], y[N], want = 0;
    fill(x, N, 5);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(x), MEMORY(y)}};
    r.text = "module @m { func @cumsum(in X: f32[200] @ddr, out Y: f32[200] @ddr) {\n"
             "for i in 0:200 { Y[i] = select(i == 0, 0.0, Y[i - 1]) + X[i] } } }";
    run_ok(&r);
    for (int i = 0; i < N; i++) {
        want = (i ? want : 0.0f) + x[i];
        assert_memory_equal(&want, &y[i], sizeof want);
    }
    r.text = "module @m { func @cumsum(in X: f32[200] @ddr, out Y: f32[200] @ddr) {\n"
             "Y[0] = X[0] for i in 1:200 { Y[i] = Y[i - 1] * 0.5 + X[i] } } }";
    run_ok(&r);
    want = x[0];
    for (int i = 1; i < N; i++) {
        want = want * 0.5f + x[i];
        assert_memory_equal(&want, &y[i], sizeof want);
    }
}

static void a_sum_may_feed_on_itself(void **state)
{
    fixture *f = *state;
    int32_t y[1] = {1};
    run r = {.ctx = f->ctx, .nbuffers = 1, .buffers = {MEMORY(y)}};
    r.text =
        "module @m { func @f(inout Y: i32[1] @ddr) { for i in 0:10 { Y[0] += Y[0] * 2:i32 } } }";
    run_ok(&r);
    assert_int_equal(y[0], 59049);
}

static void memory_may_be_shared(void **state)
{
    fixture *f = *state;
    float x[100], y[100];
    fill(x, 100, 6);
    memcpy(y, x, sizeof x);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(x), MEMORY(x)}};
    r.text = "module @m { func @f(in X: f32[100] @ddr, out Y: f32[100] @ddr) { for i in 0:100 { "
             "Y[i] = X[i] * 2.0 } } }";
    run_ok(&r);
    for (int i = 0; i < 100; i++)
        assert_true(x[i] == y[i] * 2);
    memcpy(x, y, sizeof x);
    r.buffers[0].bytes = r.buffers[1].bytes = sizeof x - sizeof x[0];
    r.buffers[1].data = x + 1;
    r.text = "module @m { func @f(in X: f32[99] @ddr, out Y: f32[99] @ddr) { for i in 0:99 { Y[i] "
             "= X[i] } } }";
    run_ok(&r);
    for (int i = 0; i < 100; i++)
        assert_true(x[i] == y[0]);
}

static void loops_step_and_nest(void **state)
{
    fixture *f = *state;
    int32_t y[120];
    for (int n = 0; n < 120; n += 17)
        for (int step = 1; step < 8; step += 3) {
            memset(y, 0, sizeof y);
            run r = {.ctx = f->ctx,
                     .nscalars = 1,
                     .scalars = {n},
                     .nbuffers = 1,
                     .buffers = {MEMORY(y)}};
            r.text = kn_format(f->arena,
                               "module @m { func @f(n: index, out Y: i32[120] @ddr) {\n"
                               "for i in 3:n step %d { Y[i] += cast(i32, i * i) + 1:i32 } } }",
                               step);
            run_ok(&r);
            for (int i = 0; i < 120; i++)
                assert_int_equal(y[i], i >= 3 && i < n && (i - 3) % step == 0 ? i * i + 1 : 0);
        }
}

static void tiles_cover_all(void **state)
{
    fixture *f = *state;
    int32_t y[7][90];
    memset(y, 0, sizeof y);
    run r = {
        .ctx = f->ctx, .nscalars = 2, .scalars = {7, 90}, .nbuffers = 1, .buffers = {MEMORY(y)}};
    r.text = "module @m { func @f(n: index, m: index, inout Y: i32[n, m] @ddr) {\n"
             "for i0 in 0:n step 4 { for j0 in 0:m step 32 { for i in i0:min(i0 + 4, n) { for j in "
             "j0:min(j0 + 32, m) {\n"
             "let at: index = i*m + j let q: index = at / m\n"
             "Y[q, at - q*m] += cast(i32, at) } } } } } }";
    run_ok(&r);
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 90; j++)
            assert_int_equal(y[i][j], i * 90 + j);
}

static void conditions_are_lazy(void **state)
{
    fixture *f = *state;
    float x[50], y[54];
    fill(x, 50, 7);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(x), MEMORY(y)}};
    r.text = "module @m { func @f(in X: f32[50] @ddr, out Y: f32[54] @ddr) { for i in 0:54 {\n"
             "if i - 2 >= 0 && i - 2 < 50 && X[i - 2] > 0.0 { Y[i] = X[i - 2] }\n"
             "else if i < 2 || X[min(i - 2, 49)] > 2.0 { Y[i] = 7.0 } else { Y[i] = select(i < 52, "
             "X[i - 2], -1.0) } } } }";
    run_ok(&r);
    for (int i = 0; i < 54; i++)
        assert_true(y[i] == (i < 2 ? 7.0f : i >= 52 ? -1.0f : x[i - 2]));
}

/* ---- Updates of every type ---- */

static void check_updates(fixture *f, kn_dtype type, kn_update update, bool spread)
{
    enum { N = 77 };
    const char *name = kn_dtype_name(type);
    double x[N], y[N];
    bool real = kn_dtype_is_float(type);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(x), MEMORY(y)}};
    for (int i = 0; i < N; i++)
        x[i] = (i * 37 % 29) / 4.0 - 3, y[i] = i % 5 + 1;
    double start[N];
    memcpy(start, y, sizeof y);
    r.text = kn_format(
        f->arena,
        "module @m { func @f(in X: f64[%d] @ddr, inout Y: f64[%d] @ddr) { alloc x: %s[%d] @local "
        "alloc y: %s[%d] @local\n"
        "for i in 0:%d { x[i] = cast(%s, X[i]) } for i in 0:%d { y[i] = cast(%s, Y[i]) }\n"
        "for i in 0:%d { y[%s] %s x[i] } for i in 0:%d { Y[i] = cast(f64, y[i]) } } }",
        N, N, name, N, name, N, N, name, N, name, N, spread ? "i" : "3", kn_update_text(update), N);
    run_ok(&r);
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_ADD, KN_OP_MUL, KN_OP_MAX, KN_OP_MIN};
    kn_number at[N];
    for (int i = 0; i < N; i++)
        at[i] = kn_number_cast(KN_CAST_CAST, KN_F64, type, (kn_number){.f = start[i]});
    for (int i = 0; i < N; i++) {
        int to = spread ? i : 3;
        kn_number args[2] = {at[to],
                             kn_number_cast(KN_CAST_CAST, KN_F64, type, (kn_number){.f = x[i]})};
        at[to] = update == KN_SET ? args[1] : kn_number_op(ops[update], type, args);
    }
    for (int i = 0; i < N; i++) {
        double want = real ? at[i].f : kn_number_cast(KN_CAST_CAST, type, KN_F64, at[i]).f;
        if (want != y[i] && !(isnan(want) && isnan(y[i])))
            fail_msg("%s %s, %d: %g, not %g", name, kn_update_text(update), i, y[i], want);
    }
}

static void updates_of_every_type(void **state)
{
    for (int type = 0; type < KN_BOOL; type++)
        for (int update = KN_SET; update <= KN_MIN; update++) {
            check_updates(*state, (kn_dtype)type, (kn_update)update, true);
            check_updates(*state, (kn_dtype)type, (kn_update)update, false);
        }
}

static void products_of_sums(void **state)
{
    fixture *f = *state;
    int32_t y[2] = {5, 0};
    double z[1] = {0.5}, want = 0.5;
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(y), MEMORY(z)}};
    r.text = "module @m { func @f(inout Y: i32[2] @ddr, inout Z: f64[1] @ddr) { for i in 0:100 {\n"
             "Y[0] += cast(i32, i) * -123456789:i32 } for i in 0:100 { Y[1] += Y[0] * Y[0] }\n"
             "for i in 0:100 { Z[0] += cast(f64, i) * 0.1:f64 } } }";
    run_ok(&r);
    uint32_t sum = 5, square = 0;
    for (uint32_t i = 0; i < 100; i++) {
        sum += i * (uint32_t)-123456789;
        want += i * 0.1;
    }
    for (int i = 0; i < 100; i++)
        square += sum * sum;
    assert_int_equal((uint32_t)y[0], sum);
    assert_int_equal((uint32_t)y[1], square);
    assert_true(z[0] == want);
}

/* ---- Buffers, views, calls ---- */

static void nibbles_are_packed_low_first(void **state)
{
    fixture *f = *state;
    uint8_t x[3] = {0x21, 0x43, 0xF5}, y[4] = {0xEE, 0xEE, 0xEE, 0xEE};
    int32_t z[5];
    run r = {.ctx = f->ctx, .nbuffers = 3, .buffers = {MEMORY(x), MEMORY(y), MEMORY(z)}};
    r.text = "module @m { func @copy(n: index, in A: i4[n] @ddr, out B: u4[n] @ddr) {\n"
             "for i in 0:n { B[i] = bitcast(u4, A[i]) } }\n"
             "func @f(in X: i4[6] @ddr, out Y: u4[2, 3] @ddr, out Z: i32[5] @ddr) {\n"
             "view v: i4[5] = X at 1\n"
             "for i in 0:5 { Z[i] = cast(i32, v[i]) }\n"
             "call copy(3, &v[1], &Y[1, 0]) } }";
    run_ok(&r);
    const int32_t want[5] = {2, 3, 4, 5, -1};
    assert_memory_equal(z, want, sizeof want);
    assert_int_equal(y[1], 0x3E);
    assert_int_equal(y[2], 0x54);
    assert_int_equal(y[0], 0xEE);
    assert_int_equal(y[3], 0xEE);
}

static void views_reshape(void **state)
{
    fixture *f = *state;
    int16_t x[24], y[12];
    for (int i = 0; i < 24; i++)
        x[i] = (int16_t)i;
    run r = {.ctx = f->ctx,
             .nscalars = 1,
             .scalars = {4},
             .nbuffers = 2,
             .buffers = {MEMORY(x), MEMORY(y)}};
    r.text = "module @m { func @f(k: index, in X: i16[24] @ddr, out Y: i16[12] @ddr) {\n"
             "view v: i16[3, k] = X at 2*k\n"
             "for i in 0:3 { for j in 0:k { Y[j*3 + i] = v[i, j] } } } }";
    run_ok(&r);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 4; j++)
            assert_int_equal(y[j * 3 + i], 8 + i * 4 + j);
    r.scalars[0] = 5;
    run_fails(&r, "function f: v, 15 elements from 10 on, is outside X, which has 24", 2);
}

static void calls_pass_scalars_and_parts(void **state)
{
    fixture *f = *state;
    float x[6][8], y[6][8];
    fill(&x[0][0], 48, 8);
    memset(y, 0, sizeof y);
    run r = {.ctx = f->ctx,
             .nscalars = 1,
             .scalars = {6},
             .nbuffers = 2,
             .buffers = {MEMORY(x), MEMORY(y)}};
    r.text = "module @m {\n"
             "func @row(n: index, by: f32, k: i8, in A: f32[n] @ddr, out B: f32[n] @ddr) {\n"
             "for i in 0:n { B[i] = A[i] * by + cast(f32, k) } }\n"
             "func @rows(s: index, in A: f32[s, 8] @ddr, out B: f32[s, 8] @ddr) {\n"
             "for i in 0:s { let k: i8 = cast(i8, i) - 2:i8 call row(8, 2.0, k, &A[s - 1 - i, 0], "
             "&B[i, 0]) } }\n"
             "func @main(s: index, in X: f32[s, 8] @ddr, out Y: f32[s, 8] @ddr) {\n"
             "alloc t: f32[s, 8] @ddr call rows(s, X, t) call rows(s, t, Y) } }";
    run_ok(&r);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 8; j++)
            assert_true(y[i][j] == (x[i][j] * 2 + (float)(5 - i - 2)) * 2 + (float)(i - 2));
}

static void allocs_hold_garbage_and_no_alignment_is_needed(void **state)
{
    fixture *f = *state;
    unsigned char raw[41];
    float x[10];
    uint32_t y[2];
    fill(x, 10, 9);
    memcpy(raw + 1, x, 40);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {{raw + 1, 40}, MEMORY(y)}};
    r.text = "module @m { func @f(in X: f32[10] @ddr, out Y: u32[2] @ddr) { for i in 0:2 {\n"
             "alloc t: u32[1] @local Y[i] = t[0] t[0] = 3:u32 } check X[9] < 2.0 \"no\" } }";
    run_ok(&r);
    assert_int_equal(y[0], 0xA5A5A5A5);
    assert_int_equal(y[1], 0xA5A5A5A5);
}

static void shapes_may_be_read_from_buffers(void **state)
{
    fixture *f = *state;
    int64_t n[2] = {3, 5};
    int32_t y[40];
    memset(y, 0, sizeof y);
    run r = {.ctx = f->ctx, .nbuffers = 2, .buffers = {MEMORY(n), MEMORY(y)}};
    r.text = "module @m { func @f(in N: i64[2] @ddr, inout Y: i32[40] @ddr) {\n"
             "alloc t: i32[cast(index, N[0]), cast(index, N[1])] @local\n"
             "for i in 0:cast(index, N[0]) { for j in 0:cast(index, N[1]) { t[i, j] = cast(i32, "
             "i*10 + j) } }\n"
             "for i in 0:3 { for j in cast(index, N[0]) - 3:5 { Y[cast(index, t[i, j])] += 1:i32 } "
             "} } }";
    run_ok(&r);
    for (int i = 0; i < 40; i++)
        assert_int_equal(y[i], i / 10 < 3 && i % 10 < 5);
    n[1] = -2;
    run_fails(&r,
              "function f: t: i32[3, -2] is no shape: an extent is negative, or there are too many "
              "elements",
              2);
}

/* ---- What is caught ---- */

static const struct {
    const char *body, *message;
    int line;
} caught[] = {
    {"X[10] = 1.0", "X[10] is outside X: f32[10]", 2},
    {"X[n] = 1.0", "X[7] is outside X: f32[10]", 0},
    {"for i in 0:11 { X[i] = 1.0 }", "X[10] is outside X: f32[10]", 2},
    {"for i in 0:100 { X[i] = 1.0 }", "X[10] is outside X: f32[10]", 2},
    {"for i in 0:3 { X[2 - 3*i] = 1.0 }", "X[-1] is outside X: f32[10]", 2},
    {"for i in 0:5 {\nif i > 3 { X[i * 3] = 1.0 } }", "X[12] is outside X: f32[10]", 3},
    {"for i in 0:5 {\nif i > 3 && X[i * 3] > 0.0 { X[0] = 1.0 } }", "X[12] is outside X: f32[10]",
     3},
    {"for i in 0:2 { for j in 0:10 { Y[i + 1, j] = 0.0 } }", "Y[2, 0] is outside Y: f32[2, 70]", 2},
    {"for i in 0:2 { for j in 0:75 { Y[i, j] = 0.0 } }", "Y[0, 70] is outside Y: f32[2, 70]", 2},
    {"for i in 0:2 { for j in 0:71 { Y[j % 3, i] = 0.0 } }", "Y[2, 0] is outside Y: f32[2, 70]", 2},
    {"X[9223372036854775807] = 1.0", "X[9223372036854775807] is outside X: f32[10]", 2},
    {"for i in 0:5 { X[4611686018427387904 * i] = 1.0 }", NULL, 0},
    {"check n > 7 \"n is small\"", "n is small", 2},
    {"alloc t: f32[n - 8] @local",
     "t: f32[-1] is no shape: an extent is negative, or there are too many elements", 2},
    {"alloc t: f32[n * 4611686018427387904] @local", "index arithmetic leaves 64 bits", 1},
    {"alloc t: f32[n * 1152921504606846976, 2] @local", NULL, 0},
    {"for i in 0:1000000 { for j in 0:1000000 { X[0] = 1.0 } }", "stopped after 100000 steps", 1},
    {"for i in 0:1000000 { if X[0] < 0.0 { X[0] = 1.0 } }", "stopped after 100000 steps", 1},
};

static void faults_are_caught_and_named(void **state)
{
    fixture *f = *state;
    float x[10], y[140];
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++) {
        memset(x, 0, sizeof x);
        run r = {.ctx = f->ctx,
                 .nscalars = 1,
                 .scalars = {7},
                 .nbuffers = 2,
                 .max_steps = 100000,
                 .buffers = {MEMORY(x), MEMORY(y)}};
        if (i == 1)
            r.scalars[0] = 10;
        r.text = kn_format(f->arena,
                           "module @m { func @f(n: index, inout X: f32[10] @ddr, inout Y: f32[2, "
                           "70] @ddr) {\n%s } }",
                           caught[i].body);
        kn_status status = kn_protect(f->ctx, run_body, &r);
        const char *message = last_message(f->ctx);
        if (status != KN_INVALID)
            fail_msg("%s: status %d", caught[i].body, (int)status);
        if (i == 1 || !caught[i].message)
            continue;
        assert_string_equal(message, kn_format(f->arena, "function f: %s", caught[i].message));
        assert_int_equal(kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1)->line, caught[i].line);
    }
}

static void what_comes_before_a_fault_is_done(void **state)
{
    fixture *f = *state;
    float x[100];
    memset(x, 0, sizeof x);
    run r = {.ctx = f->ctx, .nbuffers = 1, .buffers = {MEMORY(x)}};
    r.text = "module @m { func @f(inout X: f32[100] @ddr) { for i in 0:200 { X[i] = 1.0 } } }";
    run_fails(&r, "function f: X[100] is outside X: f32[100]", 1);
    for (int i = 0; i < 100; i++)
        assert_true(x[i] == 1);
}

static void arguments_are_checked(void **state)
{
    fixture *f = *state;
    float x[10];
    run r = {.ctx = f->ctx, .nscalars = 1, .scalars = {4}, .nbuffers = 1, .buffers = {MEMORY(x)}};
    r.text = "module @m { func @f(n: index in 1:8, inout X: f32[n, 2] @ddr) { } }";
    run_ok(&r);
    r.scalars[0] = 6;
    run_fails(&r, "function f: X has 10 elements, its shape needs 12", 1);
    r.scalars[0] = 9;
    run_fails(&r, "function f: n is 9, not in 1:8", 1);
    r.nbuffers = 0;
    assert_int_equal(kn_protect(f->ctx, run_body, &r), KN_USAGE);
    assert_string_equal(last_message(f->ctx),
                        "function f takes 1 scalars and 1 buffers, not 1 and 0");
    r.nbuffers = 1;
    r.scalars[0] = 4;
    r.text = "module @m { func @g(inout A: f32[5] @ddr) { }\n"
             "func @f(n: index, inout X: f32[n, 2] @ddr) { call g(&X[0, 1])\ncall g(&X[2, 0]) } }";
    run_fails(&r, "function g: A has 4 elements, its shape needs 5", 1);
}

static void callees_must_be_known(void **state)
{
    fixture *f = *state;
    run r = {.ctx = f->ctx};
    r.text = "module @m { func @f() {\ncall dma() } }";
    run_fails(&r, "function f: call of unknown function dma", 2);
}

static void a_library_holds_instructions(void **state)
{
    fixture *f = *state;
    int32_t x[2] = {20, 0};
    const char *text =
        "module @m { func @main(inout X: i32[2] @ddr) { call twice(&X[0], &X[1]) } }";
    kn_module *m = kn_module_parse(f->arena, "m.kir", text, strlen(text));
    const char *lib =
        "module @l { func @twice(in A: i32[1] @ddr, out B: i32[1] @ddr) { B[0] = A[0] * 2:i32 } }";
    m->library = read_module(f->arena, lib);
    kn_module_verify(f->ctx, m);
    kn_interp *in = kn_interp_compile(f->arena, m, m->funcs[0]);
    kn_memory memory = MEMORY(x);
    kn_interp_run(f->ctx, in, NULL, 0, &memory, 1);
    kn_interp_run(f->ctx, in, NULL, 0, &memory, 1);
    assert_int_equal(x[1], 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(matmul_is_exact),
        KN_TEST(softmax_is_exact),
        KN_TEST(gather_reads_rows),
        KN_TEST(recurrences_run_in_order),
        KN_TEST(a_sum_may_feed_on_itself),
        KN_TEST(memory_may_be_shared),
        KN_TEST(loops_step_and_nest),
        KN_TEST(tiles_cover_all),
        KN_TEST(conditions_are_lazy),
        KN_TEST(updates_of_every_type),
        KN_TEST(products_of_sums),
        KN_TEST(nibbles_are_packed_low_first),
        KN_TEST(views_reshape),
        KN_TEST(calls_pass_scalars_and_parts),
        KN_TEST(allocs_hold_garbage_and_no_alignment_is_needed),
        KN_TEST(shapes_may_be_read_from_buffers),
        KN_TEST(faults_are_caught_and_named),
        KN_TEST(what_comes_before_a_fault_is_done),
        KN_TEST(arguments_are_checked),
        KN_TEST(callees_must_be_known),
        KN_TEST(a_library_holds_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
