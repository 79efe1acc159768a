/* The graph as text: round trips, every message with its place; building, replacing, sweeping,
 * verifying. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "ir/graph.h"

/* For bodies that run in a protection, which cmocka must not jump out of. */
#define CHECK(holds)   \
    ((holds) ? (void)0 \
             : kn_raise(f->ctx, KN_INTERNAL, kn_loc_none(), "line %d: %s", __LINE__, #holds))

/* ---- text ---- */

typedef struct {
    const fixture *f;
    const char *text;
    kn_graph *graph;
} parsing;

static void parse_body(void *arg)
{
    parsing *p = arg;
    p->graph = kn_graph_parse(p->f->arena, "t.kir", p->text, strlen(p->text));
    kn_graph_verify(p->graph);
}

static const char *printed(const fixture *f, const kn_graph *g)
{
    kn_str s = kn_str_make(f->arena);
    kn_graph_print(&s, g);
    return kn_str_get(&s);
}

static const char *messages(const fixture *f)
{
    kn_str s = kn_str_make(f->arena);
    for (int i = 0; i < kn_diag_count(f->ctx); i++) {
        const kn_diag *d = kn_diag_get(f->ctx, i);
        kn_putf(&s, "%d:%d: %s\n", d->line, d->column, d->message);
    }
    return kn_str_get(&s);
}

/* The graph, or a failed test with the message. */
static kn_graph *graph_of(const fixture *f, const char *text)
{
    parsing p = {f, text, NULL};
    if (kn_protect(f->ctx, parse_body, &p) != KN_OK)
        fail_msg("%s\n%s", messages(f), text);
    return p.graph;
}

/* Prints as `expect` (NULL: as it is written), and that reads back to itself. */
static void round_trips(void **state, const char *text, const char *expect)
{
    const fixture *f = *state;
    const char *once = printed(f, graph_of(f, text));
    assert_string_equal(once, expect ? expect : text);
    assert_string_equal(printed(f, graph_of(f, once)), once);
}

static void a_plain_graph(void **state)
{
    round_trips(state,
                "graph @ffn(%x: f32[seq, 4], %w: f32[6, 4], %b: f32[6]) -> %y: f32[seq, 6] {\n"
                "  %h = matmul(%x, %w) {trans_b = 1}\n"
                "  %s = add(%h, %b)\n"
                "  %y = gelu(%s)\n"
                "}\n",
                NULL);
}

static void nested_calls_become_nodes(void **state)
{
    round_trips(state,
                "graph @g(%x: f32[n], %add: f32[n]) -> %y: f32[n]\n"
                "{ // comment\n"
                "  %y: f32[n] = gelu(add(%x, mul(%add, %x))) as \"/m/act\" }",
                "graph @g(%x: f32[n], %add: f32[n]) -> %y: f32[n] {\n"
                "  %mul = mul(%add, %x)\n"
                "  %add_1 = add(%x, %mul)\n"
                "  %y = gelu(%add_1) as \"/m/act\"\n"
                "}\n");
}

static void made_up_names_avoid_later_ones(void **state)
{
    round_trips(state,
                "graph @g(%x: f32[n]) -> %add: f32[n] {\n"
                "  %y = gelu(add(%x, %x))\n"
                "  %add = neg(%y)\n"
                "}\n",
                "graph @g(%x: f32[n]) -> %add: f32[n] {\n"
                "  %add_1 = add(%x, %x)\n"
                "  %y = gelu(%add_1)\n"
                "  %add = neg(%y)\n"
                "}\n");
}

static void all_kinds_of_attributes(void **state)
{
    round_trips(
        state,
        "graph @g(%x: f32[b, s, 6]) -> (%r: f32[b, 2*s, 3], %t: f32[6, b, s], %c: f16[b, s, 6], "
        "%e: f32[b, s], %l: f32[b, s, 6]) {\n"
        "  %r = reshape(%x) {shape = [b, s*2, 3]}\n"
        "  %t = transpose(%x) {perm = [2, 0, 1]} group 3\n"
        "  %c = cast(%x) {to = f16}\n"
        "  %e = einsum(%x) {equation = \"bsk->bs\"}\n"
        "  %l = leaky_relu(%x) {alpha = 1e-5}\n"
        "}\n",
        "graph @g(%x: f32[b, s, 6]) -> (%r: f32[b, 2*s, 3], %t: f32[6, b, s], %c: f16[b, s, 6], "
        "%e: f32[b, s], %l: f32[b, s, 6]) {\n"
        "  %r = reshape(%x) {shape = [b, 2*s, 3]}\n"
        "  %t = transpose(%x) {perm = [2, 0, 1]} group 3\n"
        "  %c = cast(%x) {to = f16}\n"
        "  %e = einsum(%x) {equation = \"bsk->bs\"}\n"
        "  %l = leaky_relu(%x) {alpha = 0.00001}\n"
        "}\n");
}

static void several_results(void **state)
{
    round_trips(state,
                "graph @g(%x: f32[n, 7]) -> (%a: f32[n, 3], %b: f32[n, 4]) {\n"
                "  %a, %b = split(%x) {axis = 1, sizes = [3, 4]}\n"
                "}\n",
                NULL);
}

static void inline_notation(void **state)
{
    round_trips(
        state,
        "graph @g(%a: f32[m, 48], %b: f32[48, n]) -> %y: f32[m, n] {\n"
        "  %t = notation \"(A[p, q], B[q, s]) -> T:  T[i, j] +=! A[i, r] * B[r, j]\"(%a, %b)\n"
        "  %y = gelu(%t)\n"
        "}\n",
        "graph @g(%a: f32[m, 48], %b: f32[48, n]) -> %y: f32[m, n] {\n"
        "  %t = notation \"(A[p, q], B[q, s]) -> T: T[i, j] +=! A[i, r] * B[r, j]\"(%a, %b)\n"
        "  %y = gelu(%t)\n"
        "}\n");
}

static void inline_notation_with_attributes(void **state)
{
    const fixture *f = *state;
    const kn_graph *g = graph_of(f, "graph @g(%a: f32[m]) -> %y: f32[m] {\n"
                                    "  %y = notation \"(A[p], k: const, s: f32 = 2.0) -> T: T[i] = "
                                    "A[i] * s + cast(f32, k)\"(%a) {k = 3}\n"
                                    "}\n");
    assert_string_equal(g->nodes[0]->op->name, "notation");
    assert_int_equal(g->nodes[0]->op->kind, KN_ROW_PLAIN);
}

static void an_optional_operand_left_out(void **state)
{
    round_trips(state,
                "graph @g(%x: f32[n], %hi: f32[]) -> %y: f32[n] {\n"
                "  %y = clip(%x, _, %hi)\n"
                "}\n",
                NULL);
}

static void aliases_and_sizes(void **state)
{
    round_trips(
        state,
        "graph @g(%x: f32[m, n], %past: f32[b, 64]) -> (%y: f32[m, n], %present: f32[b, 64] "
        "aliases %past) where n in 1:2048 {\n"
        "  %y = neg(%x)\n"
        "  %present = neg(%past)\n"
        "}\n",
        NULL);
}

static void sizes_read_from_tensors(void **state)
{
    const fixture *f = *state;
    const char *text =
        "graph @g(%x: f32[1], %shape: i64[2]) -> %y: f32[p, q] where p in 0:64 = %shape[0], "
        "q in 1:8 = %shape[1] {\n"
        "  %y = expand(%x) {shape = [p, q]}\n"
        "}\n";
    round_trips(state, text, NULL);
    const kn_graph *g = graph_of(f, text);
    assert_ptr_equal(g->sources[0].value, g->inputs[1]);
    assert_int_equal(g->sources[1].element, 1);
    assert_non_null(g->inputs[1]->content);
    assert_string_equal(g->inputs[1]->content[1]->name, "q");
}

static void a_complete_where_orders_sizes(void **state)
{
    const fixture *f = *state;
    const char *text =
        "graph @g(%x: f32[n, m]) -> %y: f32[n, m] where m in 1:1048576, n in 1:1048576 {\n"
        "  %y = neg(%x)\n"
        "}\n";
    round_trips(state, text, NULL);
    assert_string_equal(graph_of(f, text)->sizes[0].name, "m");
    round_trips(state,
                "graph @g(%x: f32[n, m]) -> %y: f32[n, m] where m in 1:8 {\n"
                "  %y = neg(%x)\n"
                "}\n",
                NULL);
}

static void quoted_names(void **state)
{
    round_trips(state,
                "graph @g(%\"/a b\": f32[n]) -> %a/b:0: f32[n] {\n"
                "  %a/b:0 = neg(%\"/a b\")\n"
                "}\n",
                NULL);
}

static void all_kinds_of_constants(void **state)
{
    round_trips(
        state,
        "graph @g() -> (%a: f32[3], %b: i64[2], %c: bool[2], %d: u64[1], %e: f16[2], %f: i4[3], "
        "%g: bf16[1], %h: f32[2, 3], %i: f64[], %j: f32[0], %k: f32[1]) {\n"
        "  const %a: f32[3] = [1.0, -2.5, 0.00001]\n"
        "  const %b: i64[2] = [-9223372036854775808, 7]\n"
        "  const %c: bool[2] = [1, 0]\n"
        "  const %d: u64[1] = [18446744073709551615]\n"
        "  const %e: f16[2] = [inf, -inf]\n"
        "  const %f: i4[3] = [-8, 7, -1]\n"
        "  const %g: bf16[1] = [0.15625]\n"
        "  const %h: f32[2, 3] = splat 0.5\n"
        "  const %i: f64[] = [0.1]\n"
        "  const %j: f32[0] = []\n"
        "  const %k: f32[1] = hex \"0000c07f\"\n"
        "}\n",
        NULL);
}

static void large_constants_print_as_hex(void **state)
{
    const fixture *f = *state;
    kn_graph *g = kn_graph_create(f->arena, "g");
    int64_t dims[] = {65};
    unsigned char data[65];
    for (int i = 0; i < 65; i++)
        data[i] = (unsigned char)(i * 3);
    kn_graph_output(g, kn_graph_const(g, "c", KN_U8, dims, 1, data, sizeof data, kn_loc_none()),
                    NULL);
    const char *text = printed(f, g);
    assert_non_null(strstr(text, "const %c: u8[65] = hex \"00030609"));
    const kn_graph *again = graph_of(f, text);
    assert_memory_equal(again->consts[0]->data, data, sizeof data);
    assert_string_equal(printed(f, again), text);
}

static void constants_in_files(void **state)
{
    const fixture *f = *state;
    const char *dir = kn_temp_dir(f->ctx);
    const char *path = kn_format(f->arena, "%s/w.bin", dir);
    const float data[] = {1.0f, 2.0f, 3.0f};
    kn_file_write(f->ctx, path, data, sizeof data);
    const char *text = kn_format(f->arena,
                                 "graph @g() -> %%w: f32[2] {\n"
                                 "  const %%w: f32[2] = file \"%s\" at 4\n"
                                 "}\n",
                                 path);
    round_trips(state, text, NULL);
    const kn_graph *g = graph_of(f, text);
    assert_memory_equal(g->consts[0]->data, data + 1, 8);
    assert_int_equal(g->consts[0]->offset, 4);
    parsing p = {f,
                 kn_format(f->arena,
                           "graph @g() -> %%w: f32[2] {\n"
                           "  const %%w: f32[2] = file \"%s\" at 8\n"
                           "}\n",
                           path),
                 NULL};
    assert_int_equal(kn_protect(f->ctx, parse_body, &p), KN_INVALID);
    assert_string_equal(
        last_message(f->ctx),
        kn_format(f->arena,
                  "constant %%w should have 8 bytes at 8 of '%s', found a file of 12 bytes", path));
}

/* ---- messages ---- */

typedef struct {
    const char *text; /* put into GRAPH's body when it does not begin with "graph" */
    int line, column;
    const char *where, *message;
} mistake;

static const char *in_graph(const fixture *f, const char *text)
{
    if (strncmp(text, "graph", 5) == 0)
        return text;
    return kn_format(f->arena, "graph @g(%%x: f32[m, 4], %%i: i64[2]) -> %%y: f32[m, 4] {\n%s\n}\n",
                     text);
}

/* A user's loops with these scalar parameters and this body. */
#define LOOPS(params, body, column, text)                                    \
    {                                                                        \
        "%y = notation \"(X[a, b]) -> Y: f32[a, b] loops: func @f(" params   \
        ", in X: f32[a, b] @ddr, out Y: f32[a, b] @ddr) { " body " }\"(%x)", \
            2, column, "y", text                                             \
    }

static const mistake mistakes[] = {
    {"%y = negg(%x)", 2, 1, "y", "unknown op 'negg'"},
    {"%y = neg(%z)", 2, 10, "z", "%z is not defined"},
    {"%y = neg(%y)", 2, 10, "y", "%y is not defined"},
    {"%y = neg(%x)\n%y = neg(%x)", 3, 1, "y", "%y is defined twice"},
    {"%x = neg(%x)", 2, 1, "x", "%x is defined twice"},
    {"const %x: f32[1] = [0.0]", 2, 7, "x", "%x is defined twice"},
    {"%y = add(%x)", 2, 1, "y", "add takes at least 2 operands, found 1"},
    {"%y = neg(%x, %x)", 2, 1, "y", "neg takes at most 1 operand, found 2"},
    {"%y, %z = neg(%x)", 2, 1, "y", "neg has 1 result, found 2"},
    {"%y = neg(%x) {axis = 1}", 2, 1, "y", "neg has no attribute 'axis'"},
    {"%y = softmax(%x) {axs = 1}", 2, 1, "y", "softmax has no attribute 'axs'"},
    {"%y = softmax(%x) {axis = 1, axis = 1}", 2, 1, "y",
     "softmax: attribute 'axis' is given twice"},
    {"%y = softmax(%x) {axis = m}", 2, 1, "y",
     "softmax: attribute 'axis' must be a constant integer"},
    {"%y = elu(%x) {alpha = f32}", 2, 1, "y", "elu: attribute 'alpha' must be a number"},
    {"%y = elu(%x) {alpha = \"a\"}", 2, 1, "y", "elu: attribute 'alpha' must be a number"},
    {"%y = elu(%x) {alpha = [1.0]}", 2, 1, "y", "elu: attribute 'alpha' must be a single value"},
    {"%y = elu(%x) {alpha = m}", 2, 1, "y", "elu: attribute 'alpha' must be a number"},
    {"%y = is_inf(%x) {positive = 1.5}", 2, 1, "y",
     "is_inf: attribute 'positive' must be an integer"},
    {"%y = bitcast(%x)", 2, 1, "y", "bitcast: attribute 'to' is missing"},
    {"%y = bitcast(%x) {to = 3}", 2, 1, "y", "bitcast: attribute 'to' must be a type"},
    {"%y = reshape(%x) {shape = [q]}", 2, 28, NULL,
     "'q' mentions something that is no size of the graph"},
    {"%y = pad(%x) {before = [1, m, 2.5]}", 2, 25, NULL,
     "attribute 'before' mixes numbers and sizes"},
    {"%y = neg(_)", 2, 1, "y", "neg: the notation has 1 operands, found 0"},
    {"%y = notation \"(X[a, b]) -> Y: f32[a, b]\"(%x)", 2, 1, "y",
     "notation: the notation has no statements"},
    {"%y = notation \"(X[a, b]) -> Y: typeof(Y)[a, b] loops: func @f() {}\"(%x)", 2, 1, "y",
     "notation: the signature gives no type for 'Y'"},
    {"%y = notation \"(X[a, b]) -> Y: f32[a, b] loops: func @f() {}\"(%x)", 2, 1, "y",
     "notation: the loops have no buffer 'X'"},
    {"%y = notation \"(X[a, b]) -> Y: f32[a, b] loops: func @f(c: index) {}\"(%x)", 2, 1, "y",
     "notation: the signature gives no value for the loops' parameter 'c'"},
    {"%y = notation \"(X[a, b]) -> Y: f32[a, b] loops: func @f(in X: f32[1] @ddr) {}\"(%x)", 2, 1,
     "y", "notation: the loops and the signature differ about 'X'"},
    LOOPS("a: index, b: index", "X[0, 0] = 1.0", 77, "function f: `X` is read only"),
    LOOPS("a: index, b: index", "for i in 0:a step 0 { }", 77,
          "function f: the step of `i` is not positive"),
    LOOPS("a: index, b: index", "for i in 0:a { let a: index = i }", 92,
          "function f: `a` is in scope already"),
    LOOPS("a: index, b: index", "Y[0, 0] = 1:i32", 87, "expected f32, found `1` of type i32"),
    LOOPS("a: index, b: index", "call f()", 1, "notation: the loops call 'f'"),
    LOOPS("a: index, b: index", "alloc t: f32[] @ddr at 8", 1,
          "notation: the loops say where to place 't'"),
    LOOPS("a: index, b: index in 5:6", "", 1,
          "notation: out of the bounds that the loops give: 'b'"),
    {"%y = neg(3)", 2, 10, NULL, "expected an operand: a %value, a call or _"},
    {"%y: f32[m, 5] = neg(%x)", 2, 1, "y", "%y is declared as f32[m, 5], but is f32[m, 4]"},
    {"%z = neg(%x)", 1, 40, "y", "output %y is not defined"},
    {"%y = cast(%x) {to = f16}", 1, 40, "y", "%y is declared as f32[m, 4], but is f16[m, 4]"},
    {"%y = neg(%x) as 3", 2, 17, NULL, "expected a node's name in quotes"},
    {"%y = neg(%x) group -1", 2, 1, NULL, "group -1 is out of range"},
    {"y = neg(%x)", 2, 1, NULL, "expected %value = ..., const or }"},
    {"%y = neg(%x) }\n%z", 3, 1, NULL, "expected the end of the text"},
    {"const %c: f32[m] = splat 0", 2, 7, "c",
     "constant %c needs a constant shape that memory can hold"},
    {"const %c: f32[3] = [0.0, 1.0]", 2, 7, "c", "constant %c should have 3 elements, found 2"},
    {"const %c: u8[1] = [256]", 2, 20, NULL, "256 does not fit u8"},
    {"const %c: u8[1] = [-1]", 2, 21, NULL, "-1 does not fit u8"},
    {"const %c: i8[1] = [1.5]", 2, 20, NULL, "expected a literal of type i8"},
    {"const %c: bool[1] = [2]", 2, 22, NULL, "2 does not fit bool"},
    {"const %c: i8[2] = hex \"00\"", 2, 7, "c",
     "constant %c should have 2 bytes, found 2 hex digits"},
    {"const %c: i8[1] = hex \"0g\"", 2, 7, "c", "constant %c: '0g' is no byte in hex"},
    {"const %c: i8[1000000000] = splat 0", 2, 7, "c",
     "constant %c of 1000000000 bytes is too large for a splat"},
    {"const %c: i8[1] = 3", 2, 19, NULL, "expected [elements], splat, hex or file"},
    {"const %c: index[1] = [3]", 2, 16, NULL, "no tensor has the type index"},
    {"graph g() -> () {}", 1, 7, NULL, "expected the graph's @name"},
    {"graph @g(%x: f32[a - 2]) -> %x {}", 1, 10, "x", "dimension 0 of input %x may be negative"},
    {"graph @g(%x: f32[a], %x: f32[a]) -> %x {}", 1, 22, "x", "%x is defined twice"},
    {"graph @g(%x: f32[1,1,1,1,1,1,1,1,1,1,1,1,1]) -> %x {}", 1, 42, NULL,
     "more than 12 dimensions"},
    {"graph @g(%x: f32[a]) -> %x where a in 3:2 {}", 1, 34, "a", "size a in 3:2 has no values"},
    {"graph @g(%x: f32[a]) -> %x where a in 1:2, a in 1:3 {}", 1, 44, NULL,
     "size a is given twice"},
    {"graph @g(%x: f32[a]) -> %x where b in 1:2 = %s[0] {}", 1, 45, "s",
     "size b is read from %s, which is not defined"},
    {"graph @g(%x: f32[a]) -> %x where b in 1:2 = %x[0] {}", 1, 45, "x",
     "a size is read from integers, %x is f32[a]"},
    {"graph @g(%x: i64[2]) -> %x where b in 1:2 = %x[2] {}", 1, 45, "x",
     "%x is i64[2], it has no element 2 for certain"},
    {"graph @g(%x: i64[2], %z: f32[b]) -> %x where b in 1:2 = %x[0] {}", 1, 22, "z",
     "dimension 0 of input %z depends on b, which is computed"},
    {"graph @g(%x: f32[a]) -> %x aliases %y {}", 1, 36, NULL, "%x aliases %y, which is no input"},
    {"graph @g(%x: f32[a], %z: f32[b]) -> %x aliases %z {}", 1, 10, "x",
     "output %x (f32[a]) aliases %z (f32[b]), which is no input of that type"},
    {"graph @g(%x: f32[a]) -> (%x aliases %x, %x aliases %x) {}", 1, 10, "x",
     "outputs %x and %x both alias %x"},
};

static void messages_with_their_place(void **state)
{
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        const mistake *m = &mistakes[i];
        parsing p = {f, in_graph(f, m->text), NULL};
        kn_diag_clear(f->ctx);
        kn_status status = kn_protect(f->ctx, parse_body, &p);
        if (status != KN_INVALID || kn_diag_count(f->ctx) != 1)
            fail_msg("status %d, `%s`: %s", (int)status, m->text, messages(f));
        const kn_diag *d = kn_diag_get(f->ctx, 0);
        if (strcmp(d->message, m->message) != 0 || d->line != m->line || d->column != m->column ||
            strcmp(d->where ? d->where : "", m->where ? m->where : "") != 0)
            fail_msg("`%s`:\nfound    %d:%d (%s) %s\nexpected %d:%d (%s) %s", m->text, d->line,
                     d->column, d->where ? d->where : "", d->message, m->line, m->column,
                     m->where ? m->where : "", m->message);
        assert_string_equal(d->file, "t.kir");
    }
}

/* Mistakes that the elaboration finds: its own words, the node's place. */
static void elaboration_names_the_node(void **state)
{
    static const char *const bodies[] = {
        "\n  %y = matmul(%x, %i)",
        "\n  %y = add(%x, cast(%i) {to = f16})",
        "\n  %y = notation \"(A[p]) -> T: T[i] = A[i]\"(%x)",
        "\n  %y = add(%x, %i)",
    };
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        parsing p = {f, in_graph(f, bodies[i]), NULL};
        kn_diag_clear(f->ctx);
        assert_int_equal(kn_protect(f->ctx, parse_body, &p), KN_INVALID);
        bool found = false;
        for (int k = 0; k < kn_diag_count(f->ctx); k++)
            found |= kn_diag_get(f->ctx, k)->line == 3;
        if (!found)
            fail_msg("`%s`: %s", bodies[i], messages(f));
    }
}

static void inline_notation_has_its_own_place(void **state)
{
    const fixture *f = *state;
    parsing p = {f, in_graph(f, "%y = notation \"(A[p]) -> T: T[i] = B[i]\"(%x)"), NULL};
    assert_int_equal(kn_protect(f->ctx, parse_body, &p), KN_INVALID);
    const kn_diag *d = kn_diag_get(f->ctx, 0);
    assert_int_equal(d->line, 2);
    assert_true(d->column > 16);
}

/* ---- the table ---- */

static void ops_are_found_by_name(void **state)
{
    (void)state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op_row *row = kn_op_get(i);
        if (kn_op_find(row->name) != row)
            fail_msg("op '%s' is there twice", row->name);
        assert_true((row->notation != NULL) != (row->expand != NULL));
        assert_true(row->max_inputs < 0 || row->min_inputs <= row->max_inputs);
    }
    assert_null(kn_op_find("no_such_op"));
    assert_null(kn_op_find(""));
}

static void signature_body(void *arg)
{
    const parsing *p = arg;
    kn_notation_parse(p->f->arena, "ops.def", p->text, strlen(p->text), kn_loc_none());
}

static void rows_parse(void **state)
{
    const fixture *f = *state;
    for (int i = 0; i < kn_op_count(); i++) {
        const kn_op_row *row = kn_op_get(i);
        if (!row->notation)
            continue;
        const char *loops = strstr(row->notation, "loops:");
        size_t n = loops ? (size_t)(loops - row->notation) : strlen(row->notation);
        parsing p = {f, kn_format(f->arena, "%.*s", (int)n, row->notation), NULL};
        if (kn_protect(f->ctx, signature_body, &p) != KN_OK)
            fail_msg("%s: %s", row->name, messages(f));
    }
}

/* ---- building and rewriting ---- */

/* A body in a protection, so that a raise fails the test with its message. */
typedef struct {
    const fixture *f;
    void (*fn)(const fixture *f);
} task;

static void run_task(void *arg)
{
    const task *t = arg;
    t->fn(t->f);
}

static kn_status attempt(void **state, void (*fn)(const fixture *f))
{
    task t = {*state, fn};
    return kn_protect(t.f->ctx, run_task, &t);
}

static void succeeds(void **state, void (*fn)(const fixture *f))
{
    const fixture *f = *state;
    if (attempt(state, fn) != KN_OK)
        fail_msg("%s", messages(f));
}

static kn_graph *small(const fixture *f)
{
    return graph_of(f, "graph @g(%x: f32[n]) -> (%y: f32[n], %z: f32[n]) {\n"
                       "  const %c: f32[1] = [2.0]\n"
                       "  const %d: f32[1] = [3.0]\n"
                       "  %h = mul(%x, %c)\n"
                       "  %k = mul(%x, %d)\n"
                       "  %y = neg(%h)\n"
                       "  %z = neg(%k)\n"
                       "}\n");
}

static kn_value *value(const kn_graph *g, const char *name)
{
    return kn_map_get(&g->values, name);
}

static void replace_in_operands(const fixture *f)
{
    kn_graph *g = small(f);
    CHECK(kn_graph_uses(f->arena, g)[value(g, "k")->id] == 1);
    kn_graph_replace(g, value(g, "k"), value(g, "h"));
    CHECK(kn_graph_uses(f->arena, g)[value(g, "h")->id] == 2);
    kn_graph_sweep(g);
    kn_graph_verify(g);
    CHECK(strcmp(printed(f, g), "graph @g(%x: f32[n]) -> (%y: f32[n], %z: f32[n]) {\n"
                                "  const %c: f32[1] = [2.0]\n"
                                "  %h = mul(%x, %c)\n"
                                "  %y = neg(%h)\n"
                                "  %z = neg(%h)\n"
                                "}\n") == 0);
}

static void replacing_operands(void **state)
{
    succeeds(state, replace_in_operands);
}

static void replace_outputs(const fixture *f)
{
    kn_graph *g = small(f);
    kn_graph_replace(g, value(g, "y"), value(g, "h")); /* takes over the name */
    kn_graph_replace(g, value(g, "z"), g->inputs[0]);  /* cannot: it is an input */
    kn_graph_sweep(g);
    kn_graph_verify(g);
    CHECK(strcmp(printed(f, g), "graph @g(%x: f32[n]) -> (%y: f32[n], %z: f32[n]) {\n"
                                "  const %c: f32[1] = [2.0]\n"
                                "  %y = mul(%x, %c)\n"
                                "  %z = identity(%x)\n"
                                "}\n") == 0);
}

static void replacing_outputs(void **state)
{
    succeeds(state, replace_outputs);
}

static void wrap_a_value(const fixture *f)
{
    kn_graph *g = small(f);
    kn_value *h = value(g, "h");
    kn_value *abs = kn_graph_result(g, &(kn_node_spec){.op = "abs", .inputs = &h, .ninputs = 1});
    kn_graph_replace(g, h, abs);
    kn_graph_sweep(g); /* the new node stood at the end */
    kn_graph_verify(g);
    CHECK(strcmp(g->nodes[2]->op->name, "abs") == 0);
    CHECK(g->nodes[2]->inputs[0] == h);
}

static void replacing_a_value_by_what_is_made_of_it(void **state)
{
    succeeds(state, wrap_a_value);
}

static void make_a_cycle(const fixture *f)
{
    kn_graph *g = small(f);
    g->nodes[0]->inputs[0] = value(g, "y");
    kn_graph_sweep(g);
}

static void sweep_finds_cycles(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, make_a_cycle), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "the graph has a cycle: %y, %h");
    assert_int_equal(kn_diag_get(f->ctx, 0)->line, 6);
}

static void break_the_order(const fixture *f)
{
    kn_graph *g = small(f);
    kn_node *first = g->nodes[0];
    g->nodes[0] = g->nodes[2];
    g->nodes[2] = first;
    kn_graph_verify(g);
}

static void verify_finds_a_wrong_order(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, break_the_order), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "neg uses %h before it is defined");
}

static void break_a_type(const fixture *f)
{
    kn_graph *g = small(f);
    value(g, "h")->type = KN_F16;
    kn_graph_verify(g);
}

static void verify_finds_a_wrong_type(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, break_a_type), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "mul: %h is recorded as f16[n], but is f32[n]");
}

static void use_a_size_too_early(const fixture *f)
{
    kn_graph *g =
        graph_of(f, "graph @g(%x: f32[1], %i: i64[1]) -> %y: f32[p] where p in 1:4 = %s[0] {\n"
                    "  %s = neg(%i)\n"
                    "  %y = expand(%x) {shape = [p]}\n"
                    "}\n");
    kn_node *first = g->nodes[0];
    g->nodes[0] = g->nodes[1];
    g->nodes[1] = first;
    kn_graph_sweep(g); /* repairs it */
    CHECK(strcmp(g->nodes[0]->op->name, "neg") == 0);
    kn_graph_verify(g);
    g->nodes[0] = g->nodes[1];
    g->nodes[1] = first;
    kn_graph_verify(g);
}

static void verify_finds_a_size_used_too_early(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, use_a_size_too_early), KN_INVALID);
    assert_string_equal(last_message(f->ctx),
                        "expand uses size p before %s, from which it is read");
}

static void narrow_a_size(const fixture *f)
{
    kn_graph *g = kn_graph_create(f->arena, "g");
    kn_graph_size(g, "n", 1, 100);
    kn_graph_size(g, "n", 4, 200);
    CHECK(g->nsizes == 1);
    CHECK(g->sizes[0].lo == 4);
    CHECK(g->sizes[0].hi == 100);
    kn_graph_size(g, "n", 101, 200);
}

static void sizes_are_narrowed(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, narrow_a_size), KN_INVALID);
    assert_string_equal(last_message(f->ctx),
                        "size n has no values left: at least 101 and at most 100");
}

static void make_small_constants(const fixture *f)
{
    kn_graph *g = kn_graph_create(f->arena, "g");
    static const int64_t list[] = {-3, 5};
    const kn_expr *half = kn_value_literal(f->arena, kn_graph_scalar(g, KN_F16, 0.5));
    CHECK(half->type == KN_F16);
    CHECK(half->f == 0.5);
    const kn_value *v = kn_graph_indices(g, KN_I32, list, 2);
    CHECK(kn_value_element(f->arena, v, 0)->i == -3);
    CHECK(kn_index_is(v->content[1], 5));
    CHECK(kn_value_literal(f->arena, v) == NULL);
    CHECK(strcmp(kn_graph_fresh(g, "c"), "c_2") == 0);
    CHECK(strcmp(kn_graph_fresh(g, "t"), "t") == 0);
    CHECK(strcmp(kn_graph_fresh(g, "t"), "t_1") == 0);
    int64_t dims[] = {2, 2};
    kn_graph_const(g, "w", KN_F32, dims, 2, list, 12, kn_loc_none());
}

static void small_constants(void **state)
{
    const fixture *f = *state;
    assert_int_equal(attempt(state, make_small_constants), KN_INVALID);
    assert_string_equal(last_message(f->ctx),
                        "constant %w should have 16 bytes (4 elements of f32), found 12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(a_plain_graph),
        KN_TEST(nested_calls_become_nodes),
        KN_TEST(made_up_names_avoid_later_ones),
        KN_TEST(all_kinds_of_attributes),
        KN_TEST(several_results),
        KN_TEST(inline_notation),
        KN_TEST(inline_notation_with_attributes),
        KN_TEST(an_optional_operand_left_out),
        KN_TEST(aliases_and_sizes),
        KN_TEST(sizes_read_from_tensors),
        KN_TEST(a_complete_where_orders_sizes),
        KN_TEST(quoted_names),
        KN_TEST(all_kinds_of_constants),
        KN_TEST(large_constants_print_as_hex),
        KN_TEST(constants_in_files),
        KN_TEST(messages_with_their_place),
        KN_TEST(elaboration_names_the_node),
        KN_TEST(inline_notation_has_its_own_place),
        KN_TEST(ops_are_found_by_name),
        KN_TEST(rows_parse),
        KN_TEST(replacing_operands),
        KN_TEST(replacing_outputs),
        KN_TEST(replacing_a_value_by_what_is_made_of_it),
        KN_TEST(sweep_finds_cycles),
        KN_TEST(verify_finds_a_wrong_order),
        KN_TEST(verify_finds_a_wrong_type),
        KN_TEST(verify_finds_a_size_used_too_early),
        KN_TEST(sizes_are_narrowed),
        KN_TEST(small_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
