/* The table of ops. First every row, on shapes with zeros, ones and symbols, for the type and shape
   of its result: a case is a line of graph text whose declared results the parser compares with
   what was inferred. Then numbers: graphs run by the interpreter, compared with plain C. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"
#include "unit.h"

typedef struct {
    const char *inputs, *node, *result;
} row_case;

static const row_case cases[] = {
#include "test_ops_cases.def"
};
enum { NCASES = sizeof cases / sizeof *cases };

typedef struct {
    fixture *f;
    const char *text;
    kn_graph *g;
} parse_job;

/* The error: what follows are notes to it. */
static const char *first_message(const kn_ctx *ctx)
{
    return kn_diag_count(ctx) ? kn_diag_get(ctx, 0)->message : "";
}

static void parse_body(void *arg)
{
    parse_job *j = arg;
    j->g = kn_graph_parse(j->f->arena, "case", j->text, strlen(j->text));
}

static kn_graph *parse(fixture *f, const char *text)
{
    parse_job j = {.f = f, .text = text};
    if (kn_protect(f->ctx, parse_body, &j) != KN_OK)
        fail_msg("%s\n%s", first_message(f->ctx), text);
    return j.g;
}

/* "f32[2], i64[3]" becomes "(%y0: f32[2], %y1: i64[3])" and "%y0, %y1 = ". */
static void put_results(kn_str *sig, kn_str *lhs, const char *result)
{
    int n = 0;
    kn_put(sig, "(");
    while (*result) {
        size_t len = strcspn(result, "]") + 1;
        kn_putf(sig, "%s%%y%d: %.*s", n ? ", " : "", n, (int)len, result);
        kn_putf(lhs, "%s%%y%d", n ? ", " : "", n);
        n++;
        result += len;
        result += strspn(result, ", ");
    }
    kn_put(sig, ")");
}

static const char *case_text(fixture *f, const row_case *c)
{
    kn_str sig = kn_str_make(f->arena), lhs = kn_str_make(f->arena);
    put_results(&sig, &lhs, c->result);
    return kn_format(f->arena, "graph @t(%s) -> %s {\n  %s = %s\n}\n", c->inputs, kn_str_get(&sig),
                     kn_str_get(&lhs), c->node);
}

static void every_case_has_its_shape(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < NCASES; i++) {
        parse_job j = {.f = f, .text = case_text(f, &cases[i])};
        if (kn_protect(f->ctx, parse_body, &j) != KN_OK)
            print_error("%s", j.text);
    }
    for (int i = 0; i < kn_diag_count(f->ctx); i++)
        print_error("%s\n", kn_diag_get(f->ctx, i)->message);
    assert_int_equal(kn_diag_count(f->ctx), 0);
}

/* print -> parse -> print */
static void every_case_round_trips(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < NCASES; i++) {
        kn_str once = kn_str_make(f->arena), twice = kn_str_make(f->arena);
        kn_graph_print(&once, parse(f, case_text(f, &cases[i])));
        kn_graph_print(&twice, parse(f, kn_str_get(&once)));
        assert_string_equal(kn_str_get(&once), kn_str_get(&twice));
    }
}

static bool is_covered(const char *op)
{
    size_t n = strlen(op);
    for (int i = 0; i < NCASES; i++)
        if (strncmp(cases[i].node, op, n) == 0 && cases[i].node[n] == '(')
            return true;
    return false;
}

static void every_row_has_a_case(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++)
        if (!is_covered(kn_op_get(i)->name))
            fail_msg("no case for %s", kn_op_get(i)->name);
}

/* ---- numbers ---- */

typedef struct {
    fixture *f;
    const kn_graph *g;
    int64_t sizes[8];
    kn_memory in[4], out[5];
} run_job;

static void run_body(void *arg)
{
    run_job *j = arg;
    kn_graph_interpret(j->f->ctx, j->g, j->sizes, j->in, j->out);
}

static void run(fixture *f, run_job *j, const char *text)
{
    j->f = f;
    j->g = parse(f, text);
    if (kn_protect(f->ctx, run_body, j) != KN_OK)
        fail_msg("%s\n%s", first_message(f->ctx), text);
}

static kn_memory memory(void *data, size_t bytes)
{
    return (kn_memory){data, bytes};
}
#define MEMORY(array) memory((array), sizeof(array))

/* Reproducible numbers in -1..1. */
static void fill(float *x, int n)
{
    static uint32_t state = 1;
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) / (float)(1 << 23) - 1.0f;
    }
}

static void close_to(const float *got, const float *want, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i]))) && !(got[i] == want[i]))
            fail_msg("element %d is %g, expected %g", i, (double)got[i], (double)want[i]);
}

static void matmul_broadcasts(void **state)
{
    float a[2 * 3 * 4], b[4 * 5], y[2 * 3 * 5], want[2 * 3 * 5] = {0};
    fill(a, 24);
    fill(b, 20);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 5; j++)
            for (int r = 0; r < 4; r++)
                want[i * 5 + j] += a[i * 4 + r] * b[r * 5 + j];
    run_job j = {.sizes = {2, 3}, .in = {MEMORY(a), MEMORY(b)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%a: f32[n, m, 4], %b: f32[4, 5]) -> (%y: f32[n, m, 5]) { %y = matmul(%a, %b) }");
    close_to(y, want, 30);
}

static void softmax_of_large_numbers(void **state)
{
    float x[] = {1000, 1001, 999, -INFINITY}, y[4], want[4], sum = 0;
    for (int i = 0; i < 4; i++)
        sum += want[i] = expf(x[i] - 1001);
    for (int i = 0; i < 4; i++)
        want[i] /= sum;
    run_job j = {.in = {MEMORY(x)}, .out = {MEMORY(y)}};
    run(*state, &j, "graph @t(%x: f32[4]) -> (%y: f32[4]) { %y = softmax(%x) }");
    close_to(y, want, 4);
}

static void layer_norm_is_normal(void **state)
{
    float x[3 * 8], w[8], b[8], y[3 * 8], want[3 * 8];
    fill(x, 24);
    fill(w, 8);
    fill(b, 8);
    for (int i = 0; i < 3; i++) {
        float mean = 0, variance = 0;
        for (int k = 0; k < 8; k++)
            mean += x[i * 8 + k] / 8;
        for (int k = 0; k < 8; k++)
            variance += (x[i * 8 + k] - mean) * (x[i * 8 + k] - mean) / 8;
        for (int k = 0; k < 8; k++)
            want[i * 8 + k] = (x[i * 8 + k] - mean) / sqrtf(variance + 1e-5f) * w[k] + b[k];
    }
    run_job j = {.sizes = {3}, .in = {MEMORY(x), MEMORY(w), MEMORY(b)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%x: f32[s, 8], %w: f32[8], %b: f32[8]) -> (%y: f32[s, 8]) { %y = layer_norm(%x, "
        "%w, %b) }");
    close_to(y, want, 24);
}

/* Four query heads share two key heads; two tokens were seen before. */
static void attention_is_causal_and_grouped(void **state)
{
    enum { H = 4, S = 3, T = 5, D = 8 };
    static float q[H * S * D], k[2 * T * D], v[2 * T * D], y[H * S * D], want[H * S * D];
    fill(q, H * S * D);
    fill(k, 2 * T * D);
    fill(v, 2 * T * D);
    for (int h = 0; h < H; h++)
        for (int s = 0; s < S; s++) {
            float p[T], sum = 0;
            for (int t = 0; t <= s + 2; t++) {
                p[t] = 0;
                for (int d = 0; d < D; d++)
                    p[t] += q[(h * S + s) * D + d] * k[(h / 2 * T + t) * D + d];
                sum += p[t] = expf(p[t] / sqrtf(D));
            }
            for (int d = 0; d < D; d++)
                for (int t = 0; t <= s + 2; t++)
                    want[(h * S + s) * D + d] += p[t] / sum * v[(h / 2 * T + t) * D + d];
        }
    run_job j = {.sizes = {S, T}, .in = {MEMORY(q), MEMORY(k), MEMORY(v)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%q: f32[1, 4, s, 8], %k: f32[1, 2, t, 8], %v: f32[1, 2, t, 8]) -> (%y: f32[1, 4, "
        "s, 8]) {"
        "  %y = attention(%q, %k, %v) {causal = 1, offset = t - s} }");
    close_to(y, want, H * S * D);
}

static void nobody_is_attended_to(void **state)
{
    float q[4] = {1, 2, 3, 4}, k[8] = {1, 1, 1, 1}, v[8] = {5, 5, 5, 5}, y[4], want[4] = {0};
    uint8_t mask[2] = {0, 0};
    run_job j = {.in = {MEMORY(q), MEMORY(k), MEMORY(v), MEMORY(mask)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%q: f32[1, 1, 1, 4], %k: f32[1, 1, 2, 4], %v: f32[1, 1, 2, 4], %m: bool[1, 2]) "
        "-> (%y: f32[1, 1, 1, 4]) {"
        "  %y = attention(%q, %k, %v, %m) }");
    close_to(y, want, 4);
}

static void convolution_is_padded_and_strided(void **state)
{
    enum { C = 2, O = 3, N = 7, K = 3, OUT = 4 };
    float x[C * N], w[O * C * K], b[O], y[O * OUT], want[O * OUT];
    fill(x, C * N);
    fill(w, O * C * K);
    fill(b, O);
    for (int o = 0; o < O; o++)
        for (int i = 0; i < OUT; i++) {
            float sum = b[o];
            for (int c = 0; c < C; c++)
                for (int r = 0; r < K; r++)
                    if (2 * i + r - 1 >= 0 && 2 * i + r - 1 < N)
                        sum += x[c * N + 2 * i + r - 1] * w[(o * C + c) * K + r];
            want[o * OUT + i] = sum;
        }
    run_job j = {.sizes = {N}, .in = {MEMORY(x), MEMORY(w), MEMORY(b)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%x: f32[1, 2, n], %w: f32[3, 2, 3], %b: f32[3]) -> (%y: f32[1, 3, (n - 1) / 2 + "
        "1]) {"
        "  %y = conv(%x, %w, %b) {strides = [2], before = [1], after = [1]} }");
    close_to(y, want, O * OUT);
}

/* Row-major order survives any reshape, also where a symbol would have to be divided by. */
static void reshapes_keep_the_order(void **state)
{
    static const char *const texts[] = {
        "graph @t(%x: f32[2, 3, 8]) -> (%y: f32[4, 12]) { %y = reshape(%x) {shape = [4, 12]} }",
        "graph @t(%x: f32[a, b, 8]) -> (%y: f32[a * b, 8]) { %y = reshape(%x) {shape = [a * b, 8]} "
        "}",
        "graph @t(%x: f32[a * b, 8]) -> (%y: f32[a, b, 2, 4]) { %y = reshape(%x) {shape = [a, b, "
        "2, 4]} }",
        "graph @t(%x: f32[a, b, 8]) -> (%y: f32[a, 1, 4 * b, 2]) { %y = reshape(%x) {shape = [a, "
        "1, 4 * b, 2]} }",
        "graph @t(%x: f32[a, b, 8]) -> (%y: f32[b, 8, a]) { %y = reshape(%x) {shape = [b, 8, a]} }",
    };
    float x[48], y[48];
    fill(x, 48);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(y, 0, sizeof y);
        run_job j = {.sizes = {2, 3}, .in = {MEMORY(x)}, .out = {MEMORY(y)}};
        run(*state, &j, texts[i]);
        close_to(y, x, 48);
    }
}

static void gather_wraps_negative_indices(void **state)
{
    float x[6] = {0, 1, 2, 3, 4, 5}, y[6], want[6] = {4, 5, 0, 1, 2, 3};
    int64_t i[3] = {-1, 0, 1};
    run_job j = {.sizes = {3}, .in = {MEMORY(x), MEMORY(i)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%x: f32[n, 2], %i: i64[3]) -> (%y: f32[3, 2]) { %y = gather(%x, %i) }");
    close_to(y, want, 6);
}

static void gather_out_of_range_fails(void **state)
{
    fixture *f = *state;
    float x[6] = {0}, y[2];
    int64_t i[1] = {3};
    run_job j = {.f = f, .sizes = {3}, .in = {MEMORY(x), MEMORY(i)}, .out = {MEMORY(y)}};
    j.g =
        parse(f, "graph @t(%x: f32[n, 2], %i: i64[1]) -> (%y: f32[1, 2]) { %y = gather(%x, %i) }");
    assert_int_equal(kn_protect(f->ctx, run_body, &j), KN_INVALID);
}

static void scatter_adds_in_place(void **state)
{
    float x[4] = {1, 2, 3, 4}, u[3] = {10, 30, 20}, y[4], want[4] = {1, 32, 3, 34};
    int64_t i[3] = {1, -1, 1};
    run_job j = {.in = {MEMORY(x), MEMORY(i), MEMORY(u)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%x: f32[4], %i: i64[3], %u: f32[3]) -> (%y: f32[4]) {"
        "  %y = scatter_elements(%x, %i, %u) {reduction = \"add\"} }");
    close_to(y, want, 4);
}

static void top_k_is_stable(void **state)
{
    float x[5] = {3, 7, 3, 7, 1}, v[3], want[3] = {7, 7, 3};
    int64_t i[3];
    run_job j = {.sizes = {5}, .in = {MEMORY(x)}, .out = {MEMORY(v), MEMORY(i)}};
    run(*state, &j,
        "graph @t(%x: f32[n]) -> (%v: f32[3], %i: i64[3]) { %v, %i = top_k(%x) {k = 3} }");
    close_to(v, want, 3);
    assert_true(i[0] == 1 && i[1] == 3 && i[2] == 0);
}

/* As np.lexsort((place, x)) orders them, from the end for the largest. */
static void top_k_takes_nan_as_the_greatest(void **state)
{
    float x[5] = {NAN, 1, INFINITY, -INFINITY, NAN}, v[5];
    static const struct {
        const char *text;
        int64_t want[5];
    } table[] = {
        {"graph @t(%x: f32[5]) -> (%v: f32[5], %i: i64[5]) { %v, %i = top_k(%x) {k = 5} }",
         {0, 4, 2, 1, 3}},
        {"graph @t(%x: f32[5]) -> (%v: f32[5], %i: i64[5]) { %v, %i = top_k(%x) {k = 5, largest = "
         "0} }",
         {3, 1, 2, 0, 4}},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        int64_t at[5];
        run_job j = {.in = {MEMORY(x)}, .out = {MEMORY(v), MEMORY(at)}};
        run(*state, &j, table[t].text);
        assert_memory_equal(at, table[t].want, sizeof at);
        for (int k = 0; k < 5; k++)
            assert_true(isnan(x[at[k]]) ? isnan(v[k]) : v[k] == x[at[k]]);
    }
}

/* What np.unique(x, True, True, True) gives; unsorted, in the order of first places. */
static void unique_takes_nans_as_one(void **state)
{
    float x[6] = {3, 1, 3, NAN, NAN, 1}, y[3];
    static const struct {
        const char *attrs;
        float y[2];
        int64_t first[3], place[6];
    } table[] = {
        {"sorted = 1", {1, 3}, {1, 0, 3}, {1, 0, 1, 2, 2, 0}},
        {"sorted = 0", {3, 1}, {0, 1, 3}, {0, 1, 0, 2, 2, 1}},
    };
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        fixture *f = *state;
        int64_t n[1], first[3], place[6], count[3], each[3] = {2, 2, 2};
        run_job j = {.in = {MEMORY(x)},
                     .out = {MEMORY(n), MEMORY(y), MEMORY(first), MEMORY(place), MEMORY(count)}};
        run(f, &j,
            kn_format(f->arena,
                      "graph @t(%%x: f32[6]) -> (%%n: i64[1], %%y: f32[3], %%i: i64[3], %%v: "
                      "i64[6], %%c: i64[3]) { %%n = count_unique(%%x) %%y, %%i, %%v, %%c = "
                      "unique(%%x) {count = 3, %s} }",
                      table[t].attrs));
        assert_true(n[0] == 3 && y[0] == table[t].y[0] && y[1] == table[t].y[1] && isnan(y[2]));
        assert_memory_equal(first, table[t].first, sizeof first);
        assert_memory_equal(place, table[t].place, sizeof place);
        assert_memory_equal(count, each, sizeof each);
    }
}

/* Rows differ first in their last elements; a NaN is behind a number. */
static void unique_orders_slices_with_nan(void **state)
{
    float x[6] = {1, NAN, 1, NAN, 1, 2}, y[4], want[3] = {1, 2, 1};
    int64_t first[2], place[3], count[2], places[3] = {1, 1, 0};
    run_job j = {.in = {MEMORY(x)},
                 .out = {MEMORY(y), MEMORY(first), MEMORY(place), MEMORY(count)}};
    run(*state, &j,
        "graph @t(%x: f32[3, 2]) -> (%y: f32[2, 2], %i: i64[2], %v: i64[3], %c: i64[2]) { %y, %i, "
        "%v, %c = unique(%x) {count = 2} }");
    close_to(y, want, 3);
    assert_true(isnan(y[3]) && first[0] == 2 && first[1] == 0 && count[0] == 1 && count[1] == 2);
    assert_memory_equal(place, places, sizeof places);
}

/* Slices without elements are all equal: np.unique(np.zeros((3, 0)), axis=0) has one row. */
static void empty_slices_are_equal(void **state)
{
    float x[1], y[1];
    int64_t n[1], first[1], place[3], count[1], places[3] = {0};
    run_job j = {.in = {MEMORY(x)},
                 .out = {MEMORY(n), MEMORY(y), MEMORY(first), MEMORY(place), MEMORY(count)}};
    run(*state, &j,
        "graph @t(%x: f32[3, 0]) -> (%n: i64[1], %y: f32[1, 0], %i: i64[1], %v: i64[3], %c: "
        "i64[1]) { %n = count_unique(%x) %y, %i, %v, %c = unique(%x) {count = 1} }");
    assert_true(n[0] == 1 && first[0] == 0 && count[0] == 3);
    assert_memory_equal(place, places, sizeof places);
}

/* Sizes for which an op has no result are refused when they are there. */
static void sizes_without_a_meaning_fail(void **state)
{
    static const struct {
        const char *text;
        int64_t good, bad;
        const char *message;
    } table[] = {
        {"graph @t(%x: u8[n]) -> (%v: u8[5], %i: i64[5]) { %v, %i = top_k(%x) {k = 5} }", 5, 4,
         "5 <= n"},
        {"graph @t(%x: u8[n]) -> (%i: i64[]) where n in 0:9 { %i = argmax(%x) }", 1, 0, "n >= 1"},
        {"graph @t(%x: u8[n]) -> (%i: i64[]) where n in 0:9 { %i = argmin(%x) }", 1, 0, "n >= 1"},
        {"graph @t(%x: u8[n]) -> (%a: u8[3], %b: u8[3]) { %a, %b = split(%x) {sizes = [3, 3]} }", 6,
         7, "6 == n"},
        {"graph @t(%x: u8[n]) -> (%y: f32[n / 34 * 32]) { %y = dequantize_q8_0(%x) }", 68, 69,
         "n % 34 == 0"},
    };
    fixture *f = *state;
    uint8_t x[72] = {0};
    float y[64], z[64];
    for (size_t t = 0; t < sizeof table / sizeof *table; t++) {
        run_job j = {.sizes = {table[t].good}, .in = {MEMORY(x)}, .out = {MEMORY(y), MEMORY(z)}};
        run(f, &j, table[t].text);
        j.sizes[0] = table[t].bad;
        kn_diag_clear(f->ctx);
        assert_int_equal(kn_protect(f->ctx, run_body, &j), KN_INVALID);
        if (!strstr(first_message(f->ctx), table[t].message))
            fail_msg("%s\n%s", first_message(f->ctx), table[t].text);
    }
}

static void moves(void **state)
{
    static const struct {
        const char *text;
        int n;
        float want[8];
    } table[] = {
        {"graph @t(%x: f32[5]) -> (%y: f32[3]) { %y = slice(%x) {axes = [0], starts = [4], sizes = "
         "[3], steps = [-2]} }",
         3,
         {5, 3, 1}},
        {"graph @t(%x: f32[5]) -> (%y: f32[8]) { %y = pad_around(%x) {before = [2], after = [1]} }",
         8,
         {3, 2, 1, 2, 3, 4, 5, 4}},
        {"graph @t(%x: f32[5]) -> (%y: f32[5]) { %y = cumsum(%x) {axis = 0, exclusive = 1, reverse "
         "= 1} }",
         5,
         {14, 12, 9, 5, 0}},
        {"graph @t(%x: f32[n]) -> (%y: f32[n + 2]) where n in 0:9 { %y = pad(%x) {before = [-1], "
         "after = [3]} }",
         7,
         {2, 3, 4, 5, 0, 0, 0}},
        {"graph @t(%x: f32[5]) -> (%y: f32[]) { %y = reduce_max(slice(%x) {axes = [0], starts = "
         "[0], sizes = [0]}) }",
         1,
         {-INFINITY}},
        {"graph @t(%x: f32[5]) -> (%y: f32[5]) { %y = concat(slice(%x) {axes = [0], starts = [2], "
         "sizes = [3]},"
         " slice(%x) {axes = [0], starts = [0], sizes = [2]}) {axis = 0} }",
         5,
         {3, 4, 5, 1, 2}},
        {"graph @t(%x: f32[5]) -> (%y: f32[2]) { %y = compress(%x, greater(%x, reduce_mean(%x))) "
         "{count = 2} }",
         2,
         {4, 5}},
    };
    float x[5] = {1, 2, 3, 4, 5}, y[8];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        run_job j = {.sizes = {5}, .in = {MEMORY(x)}, .out = {MEMORY(y)}};
        run(*state, &j, table[i].text);
        close_to(y, table[i].want, table[i].n);
    }
}

static void quantisation_rounds_to_even(void **state)
{
    float x[6] = {0.5f, 1.5f, 2.5f, -1000, 1000, -0.5f}, s[1] = {1};
    uint8_t z[1] = {128}, y[6], want[6] = {128, 130, 130, 0, 255, 128};
    run_job j = {.in = {MEMORY(x), MEMORY(s), MEMORY(z)}, .out = {MEMORY(y)}};
    run(*state, &j,
        "graph @t(%x: f32[6], %s: f32[1], %z: u8[1]) -> (%y: u8[6]) { %y = quantize_linear(%x, %s, "
        "%z) }");
    assert_memory_equal(y, want, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(every_row_has_a_case),
        KN_TEST(every_case_has_its_shape),
        KN_TEST(every_case_round_trips),
        KN_TEST(matmul_broadcasts),
        KN_TEST(softmax_of_large_numbers),
        KN_TEST(layer_norm_is_normal),
        KN_TEST(attention_is_causal_and_grouped),
        KN_TEST(nobody_is_attended_to),
        KN_TEST(convolution_is_padded_and_strided),
        KN_TEST(reshapes_keep_the_order),
        KN_TEST(gather_wraps_negative_indices),
        KN_TEST(gather_out_of_range_fails),
        KN_TEST(scatter_adds_in_place),
        KN_TEST(top_k_is_stable),
        KN_TEST(top_k_takes_nan_as_the_greatest),
        KN_TEST(unique_takes_nans_as_one),
        KN_TEST(unique_orders_slices_with_nan),
        KN_TEST(empty_slices_are_equal),
        KN_TEST(sizes_without_a_meaning_fail),
        KN_TEST(moves),
        KN_TEST(quantisation_rounds_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
