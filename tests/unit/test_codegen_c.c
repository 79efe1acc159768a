/* Generated C against the interpreter, program by program: see codegen_help.h. */
#include "codegen_help.h"

/* ---- Programs ---- */

static const char matmul[] = "module @matmul for host {\n"
                             "  func @k0(s: index, in A: f32[s, 48] @ddr, in B: f32[48, 64] @ddr, "
                             "out C: f32[s, 64] @ddr) {\n"
                             "    for i in 0:s parallel {\n"
                             "      for j in 0:64 vector {\n"
                             "        alloc t: f32[] @local\n"
                             "        t[] = 0.0\n"
                             "        for r in 0:48 { t[] += A[i, r] * B[r, j] }\n"
                             "        C[i, j] = t[]\n"
                             "      }\n"
                             "    }\n"
                             "  }\n"
                             "  func @main(s: index in 1:100, in x: f32[s, 48] @ddr, const w: "
                             "f32[48, 64] @ddr, out y: f32[s, 64] @ddr) "
                             "workspace 0 {\n"
                             "    call k0(s, x, w, y)\n"
                             "  }\n"
                             "}\n";

static void a_matmul_reads_well(void **state)
{
    program p = build(state, matmul);
    has_text(&p, "static npu_status t_k0(npu_context *npu, int64_t s, const float *restrict A,\n"
                 "                       const float *restrict B, float *restrict C)\n");
    has_text(&p, "    for (int64_t i = 0; i < s; i++) {\n"
                 "        for (int64_t j = 0; j < 64; j++) {\n"
                 "            float t = 0.0f;\n"
                 "            for (int64_t r = 0; r < 48; r++) {\n"
                 "                t += A[i * 48 + r] * B[r * 64 + j];\n"
                 "            }\n"
                 "            C[i * 64 + j] = t;\n");
    check(&p, fill_plain, (int64_t[]){1});
    check(&p, fill_plain, (int64_t[]){100});
    check(&p, fill_edges, (int64_t[]){13});
    check_fails(&p, fill_plain, (int64_t[]){101}, "size s is out of its bounds 1:100");
    unload(&p);
}

static void a_softmax(void **state)
{
    program p =
        build(state, "module @softmax {\n"
                     "  func @rows(m: index, n: index, in X: f32[m, n] @ddr, out Y: f32[m, n] "
                     "@ddr, in dead: i8[m] @ddr) {\n"
                     "    for i in 0:m {\n"
                     "      alloc top: f32[] @local\n"
                     "      top[] = -inf\n"
                     "      for j in 0:n { top[] max= X[i, j] }\n"
                     "      alloc sum: f32[] @local\n"
                     "      alloc unused: f32[3] @local\n"
                     "      alloc written: f32[] @local\n"
                     "      let nowhere: index = i * 4\n"
                     "      let nowhere2: index = nowhere + 1\n"
                     "      sum[] = 0.0\n"
                     "      written[] = 1.0\n"
                     "      for j in 0:n { Y[i, j] = exp(X[i, j] - top[])  sum[] += Y[i, j] }\n"
                     "      for j in 0:n { Y[i, j] = Y[i, j] / sum[] }\n"
                     "    }\n"
                     "  }\n"
                     "  func @main(m: index in 0:64, n: index in 1:64, in x: f32[m, n] @ddr, in d: "
                     "i8[m] @ddr, out y: f32[m, n] @ddr) {\n"
                     "    call rows(m, n, x, y, d)\n"
                     "  }\n"
                     "}\n");
    lacks_text(&p, "nowhere");
    check(&p, fill_plain, (int64_t[]){7, 33});
    check(&p, fill_plain, (int64_t[]){0, 1});
    check(&p, fill_edges, (int64_t[]){5, 24});
    unload(&p);
}

/* Index arithmetic: floor division by what may be zero or negative, and the plain forms where
 * ranges are known. */
static void index_arithmetic(void **state)
{
    program p = build(
        state,
        "module @indices {\n"
        "  func @main(n: index in 1:1000, in a: i32[n] @ddr, in b: i32[n] @ddr, out q: i64[n, 8] "
        "@ddr, out p: i64[n] @ddr) {\n"
        "    for i in 0:n {\n"
        "      let x: index = cast(index, a[i])\n"
        "      let y: index = cast(index, b[i])\n"
        "      q[i, 0] = cast(i64, x / y)\n"
        "      q[i, 1] = cast(i64, x % y)\n"
        "      q[i, 2] = cast(i64, floordiv(x, 4) + mod(x, -3))\n"
        "      q[i, 3] = cast(i64, min(x, y) * 2 - max(x, i))\n"
        "      q[i, 4] = cast(i64, -x + abs(y))\n"
        "      q[i, 5] = cast(i64, i / 4 * 3 + i % 4)\n"
        "      q[i, 6] = cast(i64, (i - 5) / 4 + (i - 5) % 4)\n"
        "      q[i, 7] = cast(i64, select(x < y, 2000000000, 3) * select(y < 7, 2000000000, i))\n"
        "      p[n - 1 - i] = cast(i64, pow(x % 10, 3)) + 9223372036854775807:i64\n"
        "    }\n"
        "  }\n"
        "}\n");
    has_text(&p, "i / 4 * 3 + i % 4");
    check(&p, fill_edges, (int64_t[]){PAIRS});
    unload(&p);
}

static void a_gather_that_is_checked(void **state)
{
    program p = build(
        state,
        "module @gather {\n"
        "  func @main(n: index in 1:16, in a: i64[n] @ddr, const T: f32[12, 3] @ddr, out Y: f32[n, "
        "3] @ddr) {\n"
        "    for i in 0:n {\n"
        "      check 0 <= a[i] && a[i] < 12 \"row \\\"I\\\" of \?\?/T is out of range: 100%\"\n"
        "      let k: index = cast(index, a[i])\n"
        "      for j in 0:3 { Y[i, j] = T[k, j] + T[cast(index, a[i]), 2 - j] }\n"
        "    }\n"
        "  }\n"
        "}\n");
    check(&p, fill_edges, (int64_t[]){16}); /* a is 0 so far: it counts slowly */
    check_fails(&p, fill_plain, (int64_t[]){16}, "row \"I\" of \?\?/T is out of range: 100%");
    unload(&p);
}

static void views_locals_and_parts(void **state)
{
    program p = build(
        state,
        "module @views {\n"
        "  func @twice(n: index in 1:64, inout X: f32[n] @ddr) { for i in 0:n { X[i] *= 2.0 } }\n"
        "  func @sum(n: index, in A: f32[n] @ddr, in B: f32[n] @ddr, out S: f32[] @local) {\n"
        "    S[] = 0.0\n"
        "    for i in 0:n { S[] += A[i] * B[i] }\n"
        "  }\n"
        "  func @fill(out L: i32[2, 5] @local) { for i in 0:10 { L[i / 5, i % 5] = cast(i32, i) } "
        "}\n"
        "  func @main(s: index in 1:20, in x: f32[s, 6] @ddr, inout z: f32[s, 6] @ddr, out y: "
        "f32[6, s] @ddr, out r: f32[s] @ddr, out v: i32[10] @ddr)\n"
        "      workspace 48 * s + 128 {\n"
        "    alloc tmp: f32[s, 6] @ddr at 0\n"
        "    alloc other: f32[6, s] @ddr at (24 * s + 63) / 64 * 64\n"
        "    view flat: f32[6 * s] = tmp\n"
        "    view tail: f32[3 * s] = flat at 3 * s\n"
        "    view xs: f32[2, 3, s] = x\n"
        "    for i in 0:6 * s { flat[i] = xs[i / s / 3, i / s % 3, i % s] }\n"
        "    call twice(3 * s, tail)\n"
        "    for i in 0:s { for j in 0:6 step 2 { other[j, i] = tmp[i, j]  other[j + 1, i] = "
        "-tmp[i, j + 1] } }\n"
        "    for i in 0:s {\n"
        "      alloc t: f32[] @local\n"
        "      call sum(6, &x[i, 0], &tmp[i, 0], t)\n"
        "      view one: f32[1] = t\n"
        "      r[i] = one[0] + t[]\n"
        "    }\n"
        "    for j in 0:6 { for i in 0:s { y[j, i] = other[j, i] } }\n"
        "    call twice(6, &z[s - 1, 0])\n"
        "    if s > 3 { call twice(2 * s, &z[1, 0]) } else if s == 3 { z[0, 0] = 3.0 } else { z[0, "
        "1] = -inf }\n"
        "    alloc local: i32[2, 5] @local\n"
        "    call fill(local)\n"
        "    for i in 0:10 { v[i] = local[i % 2, i / 2] }\n"
        "  }\n"
        "}\n");
    for (int64_t s = 1; s < 20; s += 3)
        check(&p, fill_plain, &s);
    unload(&p);
}

/* What is passed twice, or updates in place, is not restrict. */
static void aliasing_is_seen(void **state)
{
    program p = build(
        state,
        "module @alias {\n"
        "  func @add(in A: f32[8] @ddr, in B: f32[8] @ddr, inout C: f32[8] @ddr) { for i in 0:8 { "
        "C[i] += A[i] * B[7 - i] } }\n"
        "  func @shift(in A: f32[8] @ddr, out C: f32[8] @ddr) { for i in 0:8 { C[i] = A[i] } }\n"
        "  func @main(in x: f32[8] @ddr, in past: f32[16] @ddr, out present: f32[16] @ddr aliases "
        "past) {\n"
        "    call add(x, x, present)\n"
        "    call shift(past, &present[8])\n"
        "  }\n"
        "}\n");
    has_text(&p, "t_add(npu_context *npu, const float *restrict A, const float *restrict B,");
    has_text(&p, "t_shift(npu_context *npu, const float *A, float *C)");
    has_text(&p, "if (io[t_io_present] != io[t_io_past])");
    check(&p, fill_plain, NULL);
    unload(&p);
}

static void nibbles(void **state)
{
    program p =
        build(state, "module @nibbles {\n"
                     "  func @dot(in A: i4[32] @ddr, in B: u4[32] @ddr, out S: i32[] @ddr) {\n"
                     "    S[] = 0:i32\n"
                     "    for i in 0:32 { S[] += cast(i32, A[i]) * cast(i32, B[i]) }\n"
                     "  }\n"
                     "  func @main(n: index in 1:9, in a: i4[n, 32] @ddr, const b: u4[9, 32] @ddr, "
                     "out s: i32[n] @ddr, out y: i4[n, 7] @ddr, inout z: u4[n] @ddr) {\n"
                     "    view odd: i4[31] = a at 1\n"
                     "    view odder: i4[5] = odd at 2\n"
                     "    alloc t: i4[] @local\n"
                     "    alloc l: u4[5] @local\n"
                     "    for i in 0:n { call dot(&a[i, 0], &b[i, 0], &s[i]) }\n"
                     "    for i in 0:n { for j in 0:7 {\n"
                     "      t[] = odd[j + i] - odder[j % 5]\n"
                     "      t[] max= -7:i4\n"
                     "      y[i, j] = t[]\n"
                     "    } }\n"
                     "    for i in 0:5 { l[i] = cast(u4, i) }\n"
                     "    for i in 0:n { z[i] += l[i % 5] }\n"
                     "  }\n"
                     "}\n");
    check(&p, fill_plain, (int64_t[]){1});
    check(&p, fill_edges, (int64_t[]){9});
    unload(&p);
}

static void strange_names_and_literals(void **state)
{
    program p = build(
        state,
        "module @names {\n"
        "  func @run(in y1: f32[4] @ddr, out log: f64[4] @ddr) { for I in 0:4 { log[I] = cast(f64, "
        "y1[I]) } }\n"
        "  func @io_npu(npu: index, scale: f32, flag: bool, k: u8, inout int: f32[npu] @ddr) {\n"
        "    for i in 0:npu { for i_end in 0:i % 3 + cast(index, k) { int[i] += select(flag, "
        "scale, 0.5) } }\n"
        "  }\n"
        "  func @main(count: index in 1:4, in weights: f32[4] @ddr, const linux: f32[4] @ddr, out "
        "io: f64[4] @ddr,\n"
        "             inout workspace: f32[4] @ddr, out u.v: bool[6] @ddr, out x_1: f32[12] @ddr, "
        "out h: f16[6] @ddr, out w: u64[4] @ddr) {\n"
        "    call run(weights, io)\n"
        "    let t_run: f32 = linux[0] * -1.5\n"
        "    call io_npu(4, t_run, linux[1] < 0.0, 3:u8, workspace)\n"
        "    u.v[0] = linux[0] < linux[1] || (linux[2] == linux[3] && !(linux[0] > 0.0))\n"
        "    u.v[1] = u.v[0]\n"
        "    u.v[2] = select(u.v[0], u.v[1], true)\n"
        "    u.v[3] = (linux[0] < 1.0) == (linux[1] <= 1.0)\n"
        "    u.v[4] = 3:u8 < 2:u8 || linux[2] != linux[2]\n"
        "    u.v[5] = !(u.v[3] ^ u.v[0])\n"
        "    x_1[0] = inf  x_1[1] = -inf  x_1[2] = nan  x_1[3] = 0.1  x_1[4] = -0.0  x_1[5] = "
        "1e-45\n"
        "    x_1[6] = 3.4028235e38  x_1[7] = exp(1.5) - -1.0  x_1[8] = -(-linux[0])  x_1[9] = "
        "linux[0] - (linux[1] - linux[2])\n"
        "    x_1[10] = linux[0] / (linux[1] * linux[2]) / linux[3]  x_1[11] = cast(f32, "
        "16777217:i64)\n"
        "    h[0] = 1.5:f16  h[1] = cast(f16, linux[0]) * 0.1:f16  h[2] = inf:f16  h[3] = -0.0:f16 "
        " h[4] = cast(f16, true)\n"
        "    h[5] = max(cast(f16, linux[1]), 6e-8:f16)\n"
        "    w[0] = 18446744073709551615:u64  w[1] = cast(u64, linux[0]) - 1:u64\n"
        "    w[2] = select(linux[0] < 0.0, 9223372036854775808:u64, 1:u64)  w[3] = 0:u64\n"
        "  }\n"
        "}\n");
    has_text(&p, "t_run_(npu_context *npu, const float *restrict y1_, double *restrict log_)");
    check(&p, fill_plain, (int64_t[]){2});
    check(&p, fill_edges, (int64_t[]){4});
    unload(&p);
}

/* A side that is not taken is not evaluated: here it would read outside. */
static void lazy_sides(void **state)
{
    program p =
        build(state, "module @lazy {\n"
                     "  func @main(n: index in 1:50, in x: f32[n] @ddr, in I: i32[n] @ddr, out y: "
                     "f32[n] @ddr) {\n"
                     "    for i in 0:n {\n"
                     "      y[i] = select(i >= 3 && x[i - 3] > 0.0, x[i - 3] + 1.0, select(I[i] >= "
                     "0:i32 && I[i] < 9:i32, 0.25, -1.0))\n"
                     "      if i + 2 >= n || x[i + 2] < 0.5 { y[i] min= 0.125 }\n"
                     "    }\n"
                     "    for j in 0:cast(index, max(I[0], 1:i32)) step 5 { y[j % n] += 1.0 }\n"
                     "  }\n"
                     "}\n");
    check(&p, fill_plain, (int64_t[]){1});
    check(&p, fill_plain, (int64_t[]){50});
    unload(&p);
}

/* Bounds that a function demands are checked where the calls do not show that they are kept. */
static void bounds_of_a_callee(void **state)
{
    program p = build(
        state,
        "module @bounds {\n"
        "  func @part(k: index in 0:4, inout y: f32[8] @ddr) { for i in 0:k { y[i] += 1.0 } }\n"
        "  func @whole(k: index in 0:8, inout y: f32[8] @ddr) { for i in 0:k { y[i] += 1.0 } }\n"
        "  func @main(n: index in 1:8, inout y: f32[8] @ddr) { call part(n, y)  call whole(n, y) "
        "}\n"
        "}\n");
    lacks_text(&p, "whole: k");
    check(&p, fill_plain, (int64_t[]){4});
    check_fails(&p, fill_plain, (int64_t[]){5}, "part: k is out of its bounds 0:4");
    unload(&p);
}

/* A library's function is printed like the module's own: an instruction runs as its semantics. */
static void instructions_are_their_semantics(void **state)
{
    static const char library[] = "module @target { func @mma(in A: f32[4] @ddr, inout C: f32[] "
                                  "@ddr) { for i in 0:4 { C[] += A[i] } } }";
    static const char text[] =
        "module @m { func @main(in a: f32[4] @ddr, inout c: f32[] @ddr) { call mma(a, c) } }";
    fixture *f = *state;
    kn_module *m = kn_module_parse(f->arena, "m.kir", text, strlen(text));
    m->library = kn_module_parse(f->arena, "l.kir", library, strlen(library));
    kn_str code = kn_str_make(f->arena), header = kn_str_make(f->arena);
    kn_c_options options = {.prefix = "model"};
    kn_c_module(f->arena, m, &options, &code, &header);
    assert_non_null(
        strstr(kn_str_get(&code),
               "static npu_status model_mma(npu_context *npu, const float *restrict A"));
}

static void weights_are_laid_out(void **state)
{
    program p =
        build(state, "module @weights {\n"
                     "  func @main(const a: f32[3] @ddr, const b: u8[5] @ddr, const c: i4[3] @ddr, "
                     "out y: f32[3] @ddr) {\n"
                     "    for i in 0:3 { y[i] = a[i] + cast(f32, b[i]) * cast(f32, c[i]) }\n"
                     "  }\n"
                     "}\n");
    int n;
    const kn_cg_weight *w = kn_cg_layout(p.f->arena, p.module, &n);
    assert_int_equal(n, 3);
    assert_int_equal(w[1].offset, 64);
    assert_int_equal(w[2].offset, 128);
    assert_int_equal(w[2].bytes, 2);
    bind_fn *bind;
    const void *at[3];
    *(void **)&bind = symbol(p.loaded[0], "t_bind_weights");
    bind(at, at);
    assert_ptr_equal(at[2], (const char *)at + 128);
    assert_non_null(
        strstr(kn_str_get(&p.header), "t_weight_c = 2, /* c: i4[3], 2 bytes at 128 */"));
    assert_non_null(strstr(kn_str_get(&p.header), "#define t_weights_bytes INT64_C(130)"));
    check(&p, fill_plain, NULL);
    unload(&p);
}

static void the_same_bytes_again(void **state)
{
    program p = {.f = *state, .text = matmul};
    require(&p, kn_protect(p.f->ctx, prepare, &p));
    kn_str code = p.code, header = p.header;
    require(&p, kn_protect(p.f->ctx, prepare, &p));
    assert_string_equal(kn_str_get(&code), kn_str_get(&p.code));
    assert_string_equal(kn_str_get(&header), kn_str_get(&p.header));
}

static void refuses(void **state, kn_status status, const char *text, const char *message)
{
    program p = {.f = *state, .text = text};
    assert_int_equal(kn_protect(p.f->ctx, prepare, &p), status);
    if (!strstr(last_message(p.f->ctx), message))
        fail_msg("expected `%s`, found `%s`", message, last_message(p.f->ctx));
}

static void what_c_cannot_say(void **state)
{
    refuses(state, KN_INTERNAL,
            "module @m { func @main(out y: f32[4] @ddr) { alloc t: f32[4] @ddr  t[0] = y[0] } }",
            "`t` in @ddr is not planned in main's workspace");
    refuses(state, KN_UNSUPPORTED,
            "module @m { func @main(n: index in 1:4, out y: f32[n] @ddr) { alloc t: f32[n] @local  "
            "t[0] = y[0] } }",
            "`t` in @local is not of constant size");
    refuses(
        state, KN_UNSUPPORTED,
        "module @m { func @main(out y: f32[4] @ddr) { alloc t: f32[4] @spm at 0  t[0] = y[0] } }",
        "`t` is placed in the target's memory @spm");
    refuses(state, KN_UNSUPPORTED,
            "module @m { func @main(scale: f32, out y: f32[4] @ddr) { y[0] = scale } }",
            "a parameter of main that is no index");
    refuses(state, KN_INVALID, "module @m { func @other() { } }", "no function main");
}

static void bad_prefix(void *arg)
{
    program *p = arg;
    kn_c_options options = {.prefix = "9 lives"};
    kn_str code = kn_str_make(p->f->arena), header = kn_str_make(p->f->arena);
    kn_c_module(p->f->arena, p->module, &options, &code, &header);
}

static void a_prefix_must_be_an_identifier(void **state)
{
    program p = {.f = *state, .text = matmul};
    require(&p, kn_protect(p.f->ctx, prepare, &p));
    assert_int_equal(kn_protect(p.f->ctx, bad_prefix, &p), KN_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(a_matmul_reads_well),
        KN_TEST(a_softmax),
        KN_TEST(index_arithmetic),
        KN_TEST(a_gather_that_is_checked),
        KN_TEST(views_locals_and_parts),
        KN_TEST(aliasing_is_seen),
        KN_TEST(nibbles),
        KN_TEST(strange_names_and_literals),
        KN_TEST(lazy_sides),
        KN_TEST(bounds_of_a_callee),
        KN_TEST(instructions_are_their_semantics),
        KN_TEST(weights_are_laid_out),
        KN_TEST(the_same_bytes_again),
        KN_TEST(what_c_cannot_say),
        KN_TEST(a_prefix_must_be_an_identifier),
    };
    return cmocka_run_group_tests_name("codegen_c", tests, NULL, NULL);
}
