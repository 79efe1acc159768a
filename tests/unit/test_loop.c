/* The loop IR: its text, what the parser and the verifier refuse, builders, and the reference
 * lowering. */
#include "loop_help.h"

#include "ir/notation.h"

/* ---- Text ---- */

/* As it is printed. */
static const char *const golden[] = {
    "module @m {\n}\n",
    "module @model for npu-edge-2 {\n"
    "  func @k0(s: index, in A: f32[s, 48] @ddr, in B: f32[48, 64] @ddr, out C: f32[s, 64] "
    "@ddr) {\n"
    "    for i in 0:s parallel {\n"
    "      for j in 0:64 step 2 vector {\n"
    "        alloc t: f32[] @local\n"
    "        t[] = 0.0\n"
    "        for r in 0:48 unroll {\n"
    "          t[] += A[i, r] * B[r, j]\n"
    "        }\n"
    "        C[i, j] = t[]\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "  func @main(\n"
    "      s: index in 1:64,\n"
    "      in x: f32[s, 48] @ddr,\n"
    "      const w: f32[48, 64] @ddr,\n"
    "      out y: f32[s, 64] @ddr,\n"
    "      out z: f32[s, 48] @ddr aliases x) workspace 4*s {\n"
    "    alloc t: f32[s] @ddr at 0\n"
    "    call k0(s, x, w, y)\n"
    "    call dma(&x[0, 1], t, 3 + s, 5:i32, -1.5)\n"
    "  }\n"
    "}\n",
    "module @statements {\n"
    "  func @f(n: index, k: i32, e: f64, b: bool, inout X: f16[2*n, 4] @spm, inout Y: i4[n] @spm) "
    "{\n"
    "    view v: f16[n, 8] = X\n"
    "    view w: f16[n] = X at n\n"
    "    if b && (n < 3 || k == -3:i32) {\n"
    "      X[0, 0] = 1.5:f16\n"
    "    } else if !b {\n"
    "      X[n / 2, n % 4] += -(1.5:f16) * w[0]\n"
    "      v[0, 0] *= cast(f16, e * 0.1:f64)\n"
    "    } else {\n"
    "      w[0] max= min(w[1], inf:f16)\n"
    "      w[0] min= -inf:f16\n"
    "    }\n"
    "    let x: u64 = 18446744073709551615:u64\n"
    "    let y: i8 = -128:i8\n"
    "    let z: index = n*n - (n - 3) + select(b, n, 2)\n"
    "    check z < n || false \"z is \\\"large\\\"\\n\"\n"
    "    Y[z] = bitcast(i4, sat(u4, k & 15:i32 << 1:i32))\n"
    "    call f.g()\n"
    "  }\n"
    "}\n",
};

static void text_round_trips(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof golden / sizeof golden[0]; i++)
        assert_string_equal(printed_module(f->arena, read_module(f->arena, golden[i])), golden[i]);
}

static void keywords_are_names_too(void **state)
{
    fixture *f = *state;
    const char *text =
        "module @m { func @func(let: index, in at: f32[let] @ddr, out out: f32[let] @ddr) {\n"
        "for for in 0:let { out[for] = at[for] view view: f32[let] = out at[0] = 1.0 } } }";
    kn_module *m = kn_module_parse(f->arena, "test.kir", text, strlen(text));
    const char *once = printed_module(f->arena, m);
    m = kn_module_parse(f->arena, "test.kir", once, strlen(once));
    assert_string_equal(printed_module(f->arena, m), once);
}

static void bare_literals_take_the_type_they_meet(void **state)
{
    fixture *f = *state;
    const char *text =
        "module @m { func @g(k: i8, e: f64) { }\n"
        "func @f(k: i8, h: f16, n: index, out X: bf16[4] @ddr, out B: bool[1] @ddr) {\n"
        "X[1 + n] = 1.0 + 2.0 X[0] = select(n + 1 < 2, 1.0, -inf) X[1] = min(0.5, 2.0) + X[2]\n"
        "B[0] = k + 1 < 2 * (3 + k) && h * 2.0 > 0.5 && 1.5 < 2.0 && 1 < 2 && 3 == k\n"
        "let a: i8 = 1 + -2 let c: index = cast(index, 2 + 3) let d: f64 = cast(f64, 2.5) call "
        "g(3, 1.0) } }";
    const char *want =
        "module @m {\n"
        "  func @g(k: i8, e: f64) {\n"
        "  }\n"
        "  func @f(k: i8, h: f16, n: index, out X: bf16[4] @ddr, out B: bool[1] @ddr) {\n"
        "    X[1 + n] = 1.0:bf16 + 2.0:bf16\n"
        "    X[0] = select(n + 1 < 2, 1.0:bf16, -inf:bf16)\n"
        "    X[1] = min(0.5:bf16, 2.0:bf16) + X[2]\n"
        "    B[0] = k + 1:i8 < 2:i8*(3:i8 + k) && h * 2.0:f16 > 0.5:f16 && 1.5 < 2.0 && 1 < 2 && "
        "3:i8 == k\n"
        "    let a: i8 = 1:i8 + -2:i8\n"
        "    let c: index = cast(index, 2 + 3)\n"
        "    let d: f64 = cast(f64, 2.5)\n"
        "    call g(3:i8, 1.0:f64)\n"
        "  }\n"
        "}\n";
    assert_string_equal(printed_module(f->arena, read_module(f->arena, text)), want);
}

/* ---- What is refused ---- */

/* In a function with these names in scope, from line 2 on. */
static const struct {
    const char *body, *message;
    int line, column;
} refused[] = {
    /* by the parser */
    {"X[0] = y", "unknown name `y`", 2, 8},
    {"X[0] = n", "expected f32, found `n` of type index", 2, 8},
    {"X[0] = 1", "expected f32, found the literal `1`", 2, 8},
    {"X[0] = X[0] + k", "expected f32, found `k` of type i32", 2, 8},
    {"X[0] = X", "`X` is a buffer: its elements are `X[...]`", 2, 8},
    {"n[0] = 1.0", "`n` is a scalar, not a buffer", 2, 1},
    {"X[0, 1] = 1.0", "`X` has 1 dimensions, not 2", 2, 1},
    {"X[0] = X[]", "`X` has 1 dimensions, not 0", 2, 8},
    {"X[k] = 1.0", "expected index, found `k` of type i32", 2, 3},
    {"X[0] = X[0] else 1.0", "`else` after a load belongs to index notation; write select()", 2, 8},
    {"X[0] = exp(n)", "`exp` has no operands of type index", 2, 8},
    {"X[0] = cast(f33, n)", "`f33` is no type", 2, 8},
    {"if n { }", "expected bool, found `n` of type index", 2, 4},
    {"let a: i8 = 300", "`300` is out of the range of i8", 2, 13},
    {"for i in 0:n { } X[i] = 1.0", "unknown name `i`", 2, 20},
    {"let a: f32 = 1.0\nX[0] -= a", "expected `=`, `+=`, `*=`, `max=` or `min=`, found `-`", 3, 6},
    {"view v: f32[2] = n", "`n` is a scalar, not a buffer", 2, 18},
    {"call g(X[0])",
     "a bare load as argument: write `&X[...]` for a buffer, or bind the scalar with let", 2, 8},
    {"check n < 3", "expected a message in quotes, found `}`", 2, 13},
    {"5", "expected a statement, found `5`", 2, 1},
    /* by the verifier */
    {"I[0] = 1.0", "function f: `I` is read only", 2, 1},
    {"view v: f32[2] = I v[0] = 1.0", "function f: `v` is read only", 2, 20},
    {"let n: index = 1", "function f: `n` is in scope already", 2, 1},
    {"for X in 0:n { }", "function f: `X` is in scope already", 2, 1},
    {"let f32: f32 = 1.0", "function f: `f32` cannot be a name", 2, 1},
    {"for i in 0:n step 0 { }", "function f: the step of `i` is not positive", 2, 1},
    {"view v: i32[2] = X", "function f: `v` is a view as i32 of `X`, which is f32", 2, 1},
    {"let a: i8 = bitcast(i8, 1.0)", "function f: no bitcast from f32 to i8", 2, 1},
    {"B[0] += true", "function f: `+=` has no operands of type bool", 2, 1},
    {"alloc a: f32[1] @spm at 0\nalloc b: f32[1] @spm",
     "function f: in @spm `a` has an offset and `b` has none", 3, 1},
    {"call g(n)", "function f: g takes 2 arguments, not 1", 2, 1},
    {"call g(n, n)", "function f: `A` of g is a buffer, not `n`", 2, 1},
    {"call g(X, X)", "function f: `n` of g is a scalar: bind the load with let", 2, 1},
    {"call g(1, B)", "function f: `A` of g is f32, `B` is bool", 2, 1},
    {"call g(1, I)", "function f: `A` of g is written, `I` is read only", 2, 1},
    {"alloc s: f32[4] @spm call g(1, s)", "function f: `A` of g lies in @ddr, `s` in @spm", 2, 22},
    {"call h()", "function f: h is called before its definition", 2, 1},
    {"call f()", "function f: f is called before its definition", 2, 1},
};

static const char *refused_text(fixture *f, const char *body)
{
    return kn_format(f->arena,
                     "module @m { func @g(n: index, out A: f32[n] @ddr) { } "
                     "func @f(n: index, k: i32, inout X: f32[n] @ddr, in I: f32[n] @ddr, out B: "
                     "bool[n] @ddr) {\n"
                     "%s } func @h() { } }",
                     body);
}

typedef struct {
    kn_ctx *ctx;
    const char *text;
} reading;

static void read_body(void *arg)
{
    const reading *r = arg;
    read_module(kn_arena_create(r->ctx), r->text);
}

static void expect_refusal(fixture *f, const char *text, const char *message, int line, int column)
{
    reading r = {f->ctx, text};
    kn_status status = kn_protect(f->ctx, read_body, &r);
    assert_string_equal(last_message(f->ctx), message);
    assert_int_equal(status, KN_INVALID);
    const kn_diag *d = kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1);
    assert_string_equal(d->file, "test.kir");
    if (line && (d->line != line || d->column != column))
        fail_msg("%s: at %d:%d, not %d:%d", message, d->line, d->column, line, column);
}

static void faulty_statements_are_refused(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        expect_refusal(f, refused_text(f, refused[i].body), refused[i].message, refused[i].line,
                       refused[i].column);
}

static const struct {
    const char *text, *message;
} refused_modules[] = {
    {"module @m { func @f() { } func @f() { } }", "function f is defined twice"},
    {"module @m { func @main() { } func @f() { } }",
     "main is not the last function, which is the one that a run calls"},
    {"module @m { func @f(n: index in 3:2) { } }", "function f: the bounds of `n` are empty"},
    {"module @m { func @f(in A: f32[2] @ddr aliases A) { } }",
     "function f: `A` aliases, but is no `out` parameter"},
    {"module @m { func @f(out A: f32[2] @ddr aliases B) { } }",
     "function f: `A` aliases `B`, which is no `in` parameter"},
    {"module @m { func @f(in B: f32[3] @ddr, out A: f32[2] @ddr aliases B) { } }",
     "function f: `A` aliases `B`, which has another type or shape"},
    {"module @m { func @f(in A: f32[n] @ddr) { } }", "unknown name `n`"},
    {"module @m { func @f(n: index, n: i32) { } }", "function f: `n` is in scope already"},
    {"module @m { func @f() { }", "expected `func`, found the end"},
    {"module @m { } }", "expected the end of the text, found `}`"},
    {"module m { }", "expected a name with `@`, found `m`"},
    {"module @a:b { }", "`a:b` cannot be the name of a module"},
};

static void faulty_modules_are_refused(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof refused_modules / sizeof refused_modules[0]; i++)
        expect_refusal(f, refused_modules[i].text, refused_modules[i].message, 0, 0);
}

static void deep_nesting_is_refused(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->arena);
    kn_put(&s, "module @m { func @f() { ");
    for (int i = 0; i < 5000; i++)
        kn_put(&s, "if true { ");
    reading r = {f->ctx, kn_str_get(&s)};
    assert_int_equal(kn_protect(f->ctx, read_body, &r), KN_INVALID);
    s = kn_str_make(f->arena);
    kn_put(&s, "module @m { func @f() { ");
    for (int i = 0; i < 5000; i++)
        kn_put(&s, "if true { } else ");
    r.text = kn_str_get(&s);
    assert_int_equal(kn_protect(f->ctx, read_body, &r), KN_INVALID);
}

/* ---- Trees built by hand ---- */

static void verify_body(void *arg)
{
    const kn_module *m = arg;
    kn_module_verify(kn_arena_ctx(m->arena), m);
}

static void built_trees_print_and_verify(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *n = kn_var(a, KN_INDEX, "n"), *i = kn_var(a, KN_INDEX, "i");
    kn_param params[2] = {
        {.mode = KN_PARAM_SCALAR, .buffer = {.name = "n", .type = KN_INDEX}, .lo = 1, .hi = 9},
        {.mode = KN_PARAM_OUT,
         .buffer = {.name = "Y", .type = KN_F32, .rank = 1, .shape = &n, .space = "ddr"}}};
    kn_block_builder inner = {.arena = a}, body = {.arena = a};
    kn_block_add(&inner, kn_loop_store(a, "Y", &i, 1, KN_SET, kn_load(a, KN_F32, "t", NULL, 0)));
    kn_block_add(&body,
                 kn_loop_alloc(a, (kn_buffer){.name = "t", .type = KN_F32, .space = "local"}));
    kn_block_add(&body, kn_loop_store(a, "t", NULL, 0, KN_SET, kn_float(a, KN_F32, 2)));
    kn_block_add(&body, kn_loop_for(a, "i", kn_index(a, 0), n, kn_block_done(&inner)));
    kn_func func = {.name = "f", .nparams = 2, .params = params, .body = kn_block_done(&body)};
    kn_func *funcs[1] = {&func};
    kn_module m = {.name = "m", .arena = a, .nfuncs = 1, .funcs = funcs};
    kn_module_verify(f->ctx, &m);
    const char *once = printed_module(a, &m);
    assert_string_equal(once, "module @m {\n"
                              "  func @f(n: index in 1:9, out Y: f32[n] @ddr) {\n"
                              "    alloc t: f32[] @local\n"
                              "    t[] = 2.0\n"
                              "    for i in 0:n {\n"
                              "      Y[i] = t[]\n"
                              "    }\n"
                              "  }\n"
                              "}\n");
    assert_string_equal(printed_module(a, read_module(a, once)), once);
    assert_ptr_equal(kn_module_find(&m, "f"), &func);
    assert_null(kn_module_find(&m, "g"));
    assert_ptr_equal(kn_func_param(&func, "Y"), &params[1]);
    func.body.at[1]->expr = kn_float(a, KN_F64, 2);
    assert_int_equal(kn_protect(f->ctx, verify_body, &m), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "function f: expected f32, found `2.0` of type f64");
    func.body.at[1]->expr = kn_float(a, KN_UNTYPED, 2);
    assert_int_equal(kn_protect(f->ctx, verify_body, &m), KN_INVALID);
    func.body.at[1]->expr = NULL;
    assert_int_equal(kn_protect(f->ctx, verify_body, &m), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "function f: an expression is missing");
}

/* ---- The reference lowering ---- */

typedef struct {
    const char *name;
    kn_dtype type;
    int rank;
    const char *dims[4]; /* sizes or numbers */
} operand;

static const kn_func *lowered(fixture *f, const char *notation, const operand *operands, int n)
{
    kn_arena *a = f->arena;
    kn_operand *ops = KN_ARRAY(a, kn_operand, n);
    kn_size sizes[2] = {{"s", 1, 64}, {"t", 1, 64}};
    for (int i = 0; i < n; i++) {
        const kn_expr **shape = KN_ARRAY(a, const kn_expr *, operands[i].rank);
        for (int d = 0; d < operands[i].rank; d++) {
            kn_lexer lx;
            kn_lex_init(&lx, a, NULL, operands[i].dims[d], strlen(operands[i].dims[d]),
                        kn_loc_none());
            shape[d] = kn_parse_index(&lx);
        }
        ops[i] = (kn_operand){operands[i].type, operands[i].rank, shape};
    }
    kn_notation *parsed = kn_notation_parse(a, "test", notation, strlen(notation), kn_loc_none());
    kn_nest *nest = kn_elaborate(a, parsed, ops, n, NULL, 0, sizes, 2, kn_loc_none());
    return kn_lower_reference(a, nest);
}

static const char *printed_func(kn_arena *a, const kn_func *func)
{
    kn_str s = kn_str_make(a);
    kn_func_print(&s, func);
    return kn_str_get(&s);
}

static void reductions_are_started(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"A", KN_F32, 2, {"s", "8"}}, {"B", KN_F32, 2, {"8", "5"}}};
    const kn_func *func =
        lowered(f, "mm(A[m, k], B[k, n]) -> C: C[i, j] +=! A[i, r] * B[r, j]", ops, 2);
    assert_string_equal(printed_func(f->arena, func),
                        "func @mm(s: index in 1:64, in A: f32[s, 8] @ddr, in B: f32[8, 5] @ddr, "
                        "out C: f32[s, 5] @ddr) {\n"
                        "  for i_2 in 0:s {\n"
                        "    for j_2 in 0:5 {\n"
                        "      C[i_2, j_2] = 0.0\n"
                        "    }\n"
                        "  }\n"
                        "  for i in 0:s {\n"
                        "    for j in 0:5 {\n"
                        "      for r in 0:8 {\n"
                        "        C[i, j] += A[i, r] * B[r, j]\n"
                        "      }\n"
                        "    }\n"
                        "  }\n"
                        "}\n");
    kn_func_verify(f->ctx, NULL, func);
}

static void data_dependent_subscripts_are_checked(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"W", KN_F32, 2, {"9", "4"}}, {"I", KN_I64, 1, {"s"}}};
    const kn_func *func = lowered(f, "g(W[v, n], I[s]) -> Y: Y[i, j] = W[I[i], j]", ops, 2);
    const char *text = printed_func(f->arena, func);
    assert_non_null(strstr(text, "check 0 <= cast(index, I[i]) && cast(index, I[i]) < 9 "
                                 "\"g: an index into W is out of range\"\n"));
    kn_func_verify(f->ctx, NULL, func);
}

static void guarded_loads_are_checked_under_their_guard(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"W", KN_F32, 1, {"9"}}, {"I", KN_I64, 1, {"s"}}};
    const kn_func *func =
        lowered(f, "g(W[v], I[s]) -> Y: Y[i] = select(I[i] >= 0, W[I[i]], 0)", ops, 2);
    const char *text = printed_func(f->arena, func);
    assert_string_equal(
        text,
        "func @g(s: index in 1:64, in W: f32[9] @ddr, in I: i64[s] @ddr, out Y: f32[s] @ddr) {\n"
        "  for i in 0:s {\n"
        "    if I[i] >= 0:i64 {\n"
        "      check 0 <= cast(index, I[i]) && cast(index, I[i]) < 9 \"g: an index into W is "
        "out of range\"\n"
        "    }\n"
        "    Y[i] = select(I[i] >= 0:i64, W[cast(index, I[i])], 0.0)\n"
        "  }\n"
        "}\n");
    kn_func_verify(f->ctx, NULL, func);
}

static void padding_needs_no_check(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"X", KN_F32, 1, {"s"}}};
    const kn_func *func = lowered(f, "p(X[n]) -> Y: f32[n + 4]: Y[i] = X[i - 2] else 0", ops, 1);
    assert_null(strstr(printed_func(f->arena, func), "check"));
    kn_func_verify(f->ctx, NULL, func);
}

static void groups_share_a_loop(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"X", KN_F32, 2, {"s", "3"}}};
    const kn_func *func = lowered(f,
                                  "r(X[T, K]) -> Y: over t { S[t, k] = select(t == 0, 0, Y[t - 1]) "
                                  "+ X[t, k]; Y[t] +=! S[t, k] }",
                                  ops, 1);
    const char *text = printed_func(f->arena, func);
    const char *loop = strstr(text, "  for t in 0:s {\n");
    assert_non_null(loop);
    assert_null(strstr(loop + 1, "\n  for "));
    kn_func_verify(f->ctx, NULL, func);
    float x[4][3] = {{1, 2, 3}, {0, 0, 1}, {5, 5, 5}, {0, 0, 0}}, y[4];
    kn_module m = {.name = "m", .arena = f->arena};
    kn_interp *in = kn_interp_compile(f->arena, &m, func);
    kn_memory buffers[] = {MEMORY(x), MEMORY(y)};
    int64_t s = 4;
    kn_interp_run(f->ctx, in, &s, 1, buffers, 2);
    float want = 0;
    for (int t = 0; t < 4; t++) {
        want = (want + x[t][0]) + (want + x[t][1]) + (want + x[t][2]);
        assert_true(y[t] == want);
    }
}

/* Indices of the notation may be called like types. */
static void iterators_are_renamed(void **state)
{
    fixture *f = *state;
    const operand ops[] = {{"X", KN_F32, 2, {"s", "3"}}};
    const kn_func *func = lowered(f, "g(X[n, m]) -> Y: Y[i8, i4] = X[i8, i4]", ops, 1);
    assert_string_equal(printed_func(f->arena, func),
                        "func @g(s: index in 1:64, in X: f32[s, 3] @ddr, out Y: f32[s, 3] @ddr) {\n"
                        "  for i8_1 in 0:s {\n"
                        "    for i4_1 in 0:3 {\n"
                        "      Y[i8_1, i4_1] = X[i8_1, i4_1]\n"
                        "    }\n"
                        "  }\n"
                        "}\n");
    kn_func_verify(f->ctx, NULL, func);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(text_round_trips),
        KN_TEST(keywords_are_names_too),
        KN_TEST(bare_literals_take_the_type_they_meet),
        KN_TEST(faulty_statements_are_refused),
        KN_TEST(faulty_modules_are_refused),
        KN_TEST(deep_nesting_is_refused),
        KN_TEST(built_trees_print_and_verify),
        KN_TEST(reductions_are_started),
        KN_TEST(data_dependent_subscripts_are_checked),
        KN_TEST(guarded_loads_are_checked_under_their_guard),
        KN_TEST(padding_needs_no_check),
        KN_TEST(groups_share_a_loop),
        KN_TEST(iterators_are_renamed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
