/* What graphs mean: shape arithmetic of exporters, and running by the interpreter. */
#include "unit.h"

#include <math.h>
#include <stdio.h>

#include "ir/graph.h"

/* For bodies that run in a protection, which cmocka must not jump out of. */
#define CHECK(holds)   \
    ((holds) ? (void)0 \
             : kn_raise(f->ctx, KN_INTERNAL, kn_loc_none(), "line %d: %s", __LINE__, #holds))

typedef struct {
    const fixture *f;
    void (*fn)(const fixture *f);
} task;

static void run_task(void *arg)
{
    const task *t = arg;
    t->fn(t->f);
}

static void succeeds(void **state, void (*fn)(const fixture *f))
{
    task t = {*state, fn};
    if (kn_protect(t.f->ctx, run_task, &t) != KN_OK)
        fail_msg("%s", kn_diag_get(t.f->ctx, 0)->message);
}

static void fails(void **state, void (*fn)(const fixture *f), const char *message)
{
    task t = {*state, fn};
    assert_int_equal(kn_protect(t.f->ctx, run_task, &t), KN_INVALID);
    assert_string_equal(last_message(t.f->ctx), message);
}

static kn_graph *parse(const fixture *f, const char *text)
{
    kn_graph *g = kn_graph_parse(f->arena, "t.kir", text, strlen(text));
    kn_graph_verify(g);
    return g;
}

static kn_value *value(const kn_graph *g, const char *name)
{
    return kn_map_get(&g->values, name);
}

/* ---- content ---- */

/* "batch, 2*seq, 3", or "unknown". */
static const char *content(const fixture *f, const kn_graph *g, const char *name)
{
    const kn_value *v = value(g, name);
    kn_str s = kn_str_make(f->arena);
    const kn_expr *const *known = v->content ? v->content : v->known;
    if (!known)
        return "unknown";
    for (int i = 0; i < kn_value_count(v); i++) {
        kn_put(&s, i ? ", " : "");
        if (known[i])
            kn_expr_print(&s, known[i], false);
        else
            kn_put_char(&s, '?');
    }
    return kn_str_get(&s);
}

/* Each line: the definition of %v, and its content. */
static const char *const contents[][2] = {
    {"shape(%x)", "batch, seq, 768"},
    {"shape(%x) {start = 1}", "seq, 768"},
    {"size(%x)", "768*batch*seq"},
    {"gather(shape(%x), %one)", "seq"},
    {"gather(shape(%x), %minus1)", "768"},
    {"concat(%b, %q, %heads) {axis = 0}", "batch, seq, 12, -1"},
    {"slice(shape(%x)) {axes = [0], starts = [0], sizes = [2]}", "batch, seq"},
    {"slice(shape(%x)) {axes = [0], starts = [2], sizes = [3], steps = [-1]}", "768, seq, batch"},
    {"reduce_prod(shape(%x))", "768*batch*seq"},
    {"reduce_sum(shape(%x))", "batch + seq + 768"},
    {"reduce_max(%heads)", "12"},
    {"cumsum(shape(%x)) {axis = 0}", "batch, batch + seq, batch + seq + 768"},
    {"mul(%q, %q)", "seq*seq"},
    {"add(%q, %minus1)", "seq - 1"},
    {"div(mul(%b, %q), %q)", "batch"},
    {"div(%q, %twos)", "seq / 2"},
    {"fmod(%q, %twos)", "seq % 2"},
    {"mod(%q, %twos)", "seq % 2"},
    {"div(neg(%q), %twos)", "unknown"}, /* truncates towards zero: no floor */
    {"equal(concat(%b, %heads) {axis = 0}, %minus1)", "0, 0, 1"},
    {"where(equal(concat(%b, %heads) {axis = 0}, %minus1), %q, concat(%b, %heads) {axis = 0})",
     "batch, 12, seq"},
    {"equal(%b, %q)", "unknown"},
    {"where(equal(%b, %q), %q, %q)", "seq"},
    {"less(%b, %zeros)", "0"},
    {"less(shape(%x), %b)", "0, ?, ?"},
    {"greater_equal(%q, cast(%ones) {to = i64})", "1"},
    {"less(%q, %limit)", "1"},
    {"cast(shape(%x)) {to = i32}", "batch, seq, 768"},
    {"cast(shape(%x)) {to = u8}", "?, ?, 0"},
    {"cast(cast(%heads) {to = f32}) {to = i64}", "12, -1"},
    {"cast(mul(cast(%heads) {to = f32}, %half)) {to = i64}", "6, 0"},
    {"cast(mul(cast(%q) {to = f32}, %half)) {to = i64}", "unknown"},
    {"cast(%b) {to = bool}", "1"},
    {"not(equal(%b, %zeros))", "1"},
    {"expand(%q) {shape = [3]}", "seq, seq, seq"},
    {"reshape(shape(%x)) {shape = [3, 1]}", "batch, seq, 768"},
    {"transpose(%table) {perm = [1, 0]}", "1, 3, 2, 4"},
    {"max(%q, %twos)", "max(seq, 2)"},
    {"max(%q, %zeros)", "seq"},
    {"min(%b, %q)", "min(batch, seq)"},
    {"range(%zero, %one) {size = 3}", "0, 1, 2"},
    {"scatter_elements(shape(%x), %ones, %q)", "batch, seq, 768"},
    {"one_hot(%one, %heads) {depth = 3}", "12, -1, 12"},
    {"dims() {values = [batch + 1, 7]}", "batch + 1, 7"},
    {"argmax(%x)", "unknown"},
    {"reduce_sum(cast(%x) {to = i64})", "unknown"},
    {"shift_left(%heads, %twos)", "48, -4"},
    {"and(%q, %twos)", "unknown"},
};

static kn_graph *exporter(const fixture *f, const char *definition)
{
    return parse(f, kn_format(f->arena,
                              "graph @g(%%x: f32[batch, seq, 768]) -> (%%v) where seq in 1:2048 {\n"
                              "  const %%zero: i64[] = [0]\n"
                              "  const %%one: i64[] = [1]\n"
                              "  const %%minus1: i64[] = [-1]\n"
                              "  const %%zeros: i64[1] = [0]\n"
                              "  const %%ones: i64[1] = [1]\n"
                              "  const %%twos: i64[1] = [2]\n"
                              "  const %%limit: i64[] = [2049]\n"
                              "  const %%half: f32[] = [0.5]\n"
                              "  const %%heads: i64[2] = [12, -1]\n"
                              "  const %%table: i64[2, 2] = [1, 2, 3, 4]\n"
                              "  %%s = shape(%%x)\n"
                              "  %%b = reshape(gather(%%s, %%zero)) {shape = [1]}\n"
                              "  %%q = reshape(gather(%%s, %%one)) {shape = [1]}\n"
                              "  %%v = %s\n"
                              "}\n",
                              definition));
}

typedef struct {
    const fixture *f;
    const char *definition, *found;
} finding;

static void find_content(void *arg)
{
    finding *x = arg;
    x->found = content(x->f, exporter(x->f, x->definition), "v");
}

static void shape_arithmetic(void **state)
{
    const fixture *f = *state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        finding x = {f, contents[i][0], NULL};
        kn_diag_clear(f->ctx);
        if (kn_protect(f->ctx, find_content, &x) != KN_OK)
            x.found = kn_diag_get(f->ctx, 0)->message;
        if (strcmp(x.found, contents[i][1]) == 0)
            continue;
        print_message("%s: found %s, expected %s\n", x.definition, x.found, contents[i][1]);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* What a frontend does for Reshape: the content of the shape becomes an attribute. */
static void reshape_by_content(const fixture *f)
{
    kn_graph *g = exporter(f, "where(equal(concat(%b, %q, %heads) {axis = 0}, %minus1), "
                              "div(%limit, expand(%twos) {shape = [4]}), "
                              "concat(%b, %q, %heads) {axis = 0})");
    CHECK(strcmp(content(f, g, "v"), "batch, seq, 12, 1024") == 0);
    const kn_expr *const *dims = kn_graph_content(g, value(g, "v"), 0, 1 << 20);
    const kn_expr *shape[] = {dims[0], dims[1], dims[2], kn_index(f->arena, 64)};
    kn_attr attr = kn_attr_indexes("shape", shape, 4);
    kn_node *n = kn_graph_node(
        g,
        &(kn_node_spec){
            .op = "reshape", .inputs = &g->inputs[0], .ninputs = 1, .attrs = &attr, .nattrs = 1});
    CHECK(n->outputs[0]->rank == 4);
    CHECK(kn_expr_equal(n->outputs[0]->shape[1], g->inputs[0]->shape[1]));
    CHECK(kn_index_is(n->outputs[0]->shape[3], 64));
}

static void content_becomes_a_shape(void **state)
{
    succeeds(state, reshape_by_content);
}

static void read_at_run_time(const fixture *f)
{
    kn_graph *g = parse(f, "graph @g(%x: f32[1], %sh-ape: i64[2], %f: f32[2]) -> () {}");
    const kn_expr *const *dims = kn_graph_content(g, value(g, "sh-ape"), 0, 32);
    CHECK(dims == kn_graph_content(g, value(g, "sh-ape"), 0, 64));
    CHECK(kn_graph_content(g, value(g, "f"), 0, 64) == NULL);
    CHECK(strcmp(dims[1]->name, "sh_ape_1") == 0);
    kn_attr attr = kn_attr_indexes("shape", dims, 2);
    kn_node *n = kn_graph_node(
        g, &(kn_node_spec){
               .op = "expand", .inputs = &g->inputs[0], .ninputs = 1, .attrs = &attr, .nattrs = 1});
    kn_graph_output(g, n->outputs[0], NULL);
    kn_str s = kn_str_make(f->arena);
    kn_graph_print(&s, g);
    CHECK(
        strcmp(
            kn_str_get(&s),
            "graph @g(%x: f32[1], %sh-ape: i64[2], %f: f32[2]) -> %expand: f32[sh_ape_0, sh_ape_1] "
            "where sh_ape_0 in 0:32 = %sh-ape[0], sh_ape_1 in 0:32 = %sh-ape[1] {\n"
            "  %expand = expand(%x) {shape = [sh_ape_0, sh_ape_1]}\n"
            "}\n") == 0);
}

static void read_the_unknown(const fixture *f)
{
    const char *text =
        "graph @g(%x: f32[batch, 4], %n: i64[1]) -> %y: f32[batch, 4, n] where n in 1:9 = %n[0] {\n"
        "  %s = concat(shape(%x), %n) {axis = 0}\n"
        "  %z = reshape(%x) {shape = [batch, 4, 1]}\n"
        "  %y = expand(%z) {shape = [batch, 4, n]}\n"
        "}\n";
    kn_graph *g = parse(f, text);
    CHECK(strcmp(content(f, g, "s"), "batch, 4, n") == 0);
    g = parse(
        f,
        "graph @g(%x: f32[batch, 4], %n: i64[1]) -> %s { %s = concat(shape(%x), %n) {axis = 0} }");
    CHECK(strcmp(content(f, g, "s"), "batch, 4, ?") == 0);
    CHECK(kn_graph_content(g, value(g, "s"), 1, 9) != NULL);
    CHECK(strcmp(content(f, g, "s"), "batch, 4, s_2") == 0);
    CHECK(g->nsizes == 2 && g->sources[1].element == 2);
    kn_str s = kn_str_make(f->arena);
    kn_graph_print(&s, g);
    CHECK(strcmp(content(f, parse(f, kn_str_get(&s)), "s"), "batch, 4, s_2") == 0);
}

static void only_unknown_elements_become_sizes(void **state)
{
    succeeds(state, read_the_unknown);
}

static void unknown_content_becomes_sizes(void **state)
{
    succeeds(state, read_at_run_time);
}

/* Formulas that double at each step: content gives up, and nothing overflows or takes long. */
static void grow(const fixture *f)
{
    kn_graph *g = kn_graph_create(f->arena, "g");
    const kn_expr *n = kn_graph_size(g, "n", 1, KN_SIZE_DEFAULT_MAX);
    kn_value *x = kn_graph_input(g, "x", KN_F32, &n, 1, kn_loc_none());
    kn_value *s = kn_graph_result(g, &(kn_node_spec){.op = "shape", .inputs = &x, .ninputs = 1});
    kn_value *one = kn_graph_scalar(g, KN_I64, 1);
    bool known = true;
    for (int i = 0; i < 64; i++) {
        kn_value *both[] = {s, one};
        kn_value *more =
            kn_graph_result(g, &(kn_node_spec){.op = "add", .inputs = both, .ninputs = 2});
        kn_value *twice[] = {more, more};
        s = kn_graph_result(g, &(kn_node_spec){.op = "mul", .inputs = twice, .ninputs = 2});
        known = s->content != NULL;
    }
    CHECK(!known);
}

static void content_gives_up_in_time(void **state)
{
    succeeds(state, grow);
}

/* ---- running ---- */

static void noise(float *out, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (float)((double)(seed >> 8) / (double)(1 << 24) - 0.5);
    }
}

enum { SEQ = 5, DIM = 8, HID = 12 };

/* down(gelu(up(x) + b)) + x, in double. */
static void plain_ffn(const float *x, const float *up, const float *b, const float *down, double *y)
{
    for (int s = 0; s < SEQ; s++) {
        double h[HID];
        for (int j = 0; j < HID; j++) {
            double sum = (double)b[j];
            for (int k = 0; k < DIM; k++)
                sum += (double)x[s * DIM + k] * (double)up[j * DIM + k];
            h[j] = 0.5 * sum * (1 + erf(sum / sqrt(2.0)));
        }
        for (int k = 0; k < DIM; k++) {
            y[s * DIM + k] = (double)x[s * DIM + k];
            for (int j = 0; j < HID; j++)
                y[s * DIM + k] += h[j] * (double)down[j * DIM + k];
        }
    }
}

static void run_ffn(const fixture *f)
{
    kn_graph *g =
        parse(f, "graph @ffn(%x: f32[seq, 8], %up: f32[12, 8], %b: f32[12], %down: f32[12, 8]) -> "
                 "(%y: f32[seq, 8], %again: f32[seq, 8]) where seq in 1:64 {\n"
                 "  %h = gelu(add(matmul(%x, %up) {trans_b = true}, %b))\n"
                 "  %y = add(matmul(%h, %down), %x)\n"
                 "  %again = add(matmul(%h, %down), %x)\n"
                 "}\n");
    float x[SEQ * DIM], up[HID * DIM], b[HID], down[HID * DIM], y[SEQ * DIM], again[SEQ * DIM];
    double expect[SEQ * DIM], worst = 0;
    noise(x, SEQ * DIM, 1);
    noise(up, HID * DIM, 2);
    noise(b, HID, 3);
    noise(down, HID * DIM, 4);
    plain_ffn(x, up, b, down, expect);
    int64_t seq = SEQ;
    kn_memory in[] = {{x, sizeof x}, {up, sizeof up}, {b, sizeof b}, {down, sizeof down}};
    kn_memory out[] = {{y, sizeof y}, {again, sizeof again}};
    kn_graph_interpret(f->ctx, g, &seq, in, out);
    for (int i = 0; i < SEQ * DIM; i++)
        worst = fmax(worst, fabs((double)y[i] - expect[i]));
    print_message("largest difference from plain C: %g\n", worst);
    CHECK(worst < 1e-6);
    CHECK(memcmp(y, again, sizeof y) == 0);
}

static void interpret_an_ffn(void **state)
{
    succeeds(state, run_ffn);
}

static void run_update(const fixture *f)
{
    kn_graph *g = parse(
        f,
        "graph @g(%past: f32[4]) -> (%next: f32[4] aliases %past, %old: f32[4], %past: f32[4]) {\n"
        "  const %one: f32[1] = [1.0]\n"
        "  %next = add(%past, %one)\n"
        "  %old = neg(%past)\n"
        "}\n");
    float past[] = {1, 2, 3, 4}, old[4], copy[4];
    kn_memory in[] = {{past, sizeof past}};
    kn_memory out[] = {{past, sizeof past}, {old, sizeof old}, {copy, sizeof copy}};
    kn_graph_interpret(f->ctx, g, NULL, in, out);
    for (int i = 0; i < 4; i++) {
        CHECK(past[i] == (float)(i + 2));
        CHECK(old[i] == (float)-(i + 1));
        CHECK(copy[i] == (float)(i + 1));
    }
}

static void interpret_an_update_in_place(void **state)
{
    succeeds(state, run_update);
}

static void run_exchange(const fixture *f)
{
    kn_graph *g = parse(f, "graph @g(%x: f32[2], %w: f32[2], %v: f32[2]) -> (%w aliases %x, %v "
                           "aliases %w, %x aliases %v) {}");
    float x[] = {1, 2}, w[] = {3, 4}, v[] = {5, 6};
    kn_memory all[] = {{x, sizeof x}, {w, sizeof w}, {v, sizeof v}};
    kn_graph_interpret(f->ctx, g, NULL, all, all);
    CHECK(x[0] == 3 && x[1] == 4);
    CHECK(w[0] == 5 && w[1] == 6);
    CHECK(v[0] == 1 && v[1] == 2);
}

static void interpret_inputs_that_change_places(void **state)
{
    succeeds(state, run_exchange);
}

static kn_graph *computed(const fixture *f)
{
    return parse(f, "graph @g(%x: f32[1], %i: i64[1]) -> %y: f32[p + 1] where p in 0:3 = %s[0] {\n"
                    "  const %one: i64[1] = [1]\n"
                    "  %s = sub(%i, %one)\n"
                    "  %y = expand(%x) {shape = [p + 1]}\n"
                    "}\n");
}

static void run_computed(const fixture *f)
{
    float x[] = {2.5f}, y[] = {0, 0, 0, -1};
    int64_t i[] = {3}, p = 0;
    kn_memory in[] = {{x, sizeof x}, {i, sizeof i}}, out[] = {{y, sizeof y}};
    kn_graph_interpret(f->ctx, computed(f), &p, in, out);
    CHECK(y[0] == 2.5f && y[2] == 2.5f && y[3] == -1.0f && p == 2);
}

static void interpret_a_computed_size(void **state)
{
    succeeds(state, run_computed);
}

static void run_computed_too_large(const fixture *f)
{
    float x[] = {2.5f}, y[4];
    int64_t i[] = {5}, p = 0;
    kn_memory in[] = {{x, sizeof x}, {i, sizeof i}}, out[] = {{y, sizeof y}};
    kn_graph_interpret(f->ctx, computed(f), &p, in, out);
}

static void a_computed_size_out_of_bounds_fails(void **state)
{
    fails(state, run_computed_too_large, "size p = 4, read from %s[0], is outside 0:3");
}

static void run_outside(const fixture *f)
{
    kn_graph *g = parse(f, "graph @g(%x: f32[n]) -> %y: f32[n] where n in 1:8 { %y = neg(%x) }");
    float x[16], y[16];
    int64_t n = 9;
    kn_memory in[] = {{x, sizeof x}}, out[] = {{y, sizeof y}};
    kn_graph_interpret(f->ctx, g, &n, in, out);
}

static void a_size_out_of_bounds_fails(void **state)
{
    fails(state, run_outside, "size n = 9 is outside 1:8");
}

static void run_short(const fixture *f)
{
    kn_graph *g = parse(f, "graph @g(%x: f32[n]) -> %y: f32[n] { %y = neg(%x) }");
    float x[4], y[4];
    int64_t n = 4;
    kn_memory in[] = {{x, sizeof x}}, out[] = {{y, 15}};
    kn_graph_interpret(f->ctx, g, &n, in, out);
}

static void too_little_memory_fails(void **state)
{
    fails(state, run_short, "%y needs 16 bytes, found 15");
}

static void run_gather_outside(const fixture *f)
{
    kn_graph *g =
        parse(f, "graph @g(%x: f32[4], %i: i64[1]) -> %y: f32[1] { %y = gather(%x, %i) }");
    float x[4], y[1];
    int64_t i[] = {4};
    kn_memory in[] = {{x, sizeof x}, {i, sizeof i}}, out[] = {{y, sizeof y}};
    kn_graph_interpret(f->ctx, g, NULL, in, out);
}

static void an_index_out_of_range_fails(void **state)
{
    task t = {*state, run_gather_outside};
    assert_int_equal(kn_protect(t.f->ctx, run_task, &t), KN_INVALID);
}

/* An opaque operator, written in the graph's text: packs are merged, sizes and attributes
 * substituted. */
static const char shift_text[] = "graph @g(%x: f16[2, n, 3]) -> %y: f16[2, n, 3] {\n"
                                 "  %y = notation \"(X[*b, m], k: const) -> Y: typeof(X)[*b, m]: "
                                 "loops: func @shift(b: index, m: index, k: "
                                 "index, in X: typeof(X)[b, m] @ddr, out Y: typeof(Y)[b, m] @ddr) "
                                 "{ for i in 0:b { for j in 0:m { Y[i, j] = "
                                 "X[i, (j + k) % m] } } }\"(%x) {k = 1}\n"
                                 "}\n";

static void run_opaque(const fixture *f)
{
    kn_graph *g = parse(f, shift_text);
    uint16_t x[12], y[12];
    int64_t n = 2;
    CHECK(g->nodes[0]->op->kind == KN_ROW_OPAQUE);
    for (int i = 0; i < 12; i++)
        x[i] = (uint16_t)(0x3c00 + i);
    kn_memory in[] = {{x, sizeof x}}, out[] = {{y, sizeof y}};
    kn_graph_interpret(f->ctx, g, &n, in, out);
    for (int i = 0; i < 12; i++)
        CHECK(y[i] == x[i / 3 * 3 + (i + 1) % 3]);
    kn_str once = kn_str_make(f->arena), twice = kn_str_make(f->arena);
    kn_graph_print(&once, g);
    kn_graph_print(&twice, parse(f, kn_str_get(&once)));
    CHECK(strcmp(kn_str_get(&once), kn_str_get(&twice)) == 0);
}

static void interpret_an_opaque_operator(void **state)
{
    succeeds(state, run_opaque);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(shape_arithmetic),
        KN_TEST(content_becomes_a_shape),
        KN_TEST(unknown_content_becomes_sizes),
        KN_TEST(only_unknown_elements_become_sizes),
        KN_TEST(content_gives_up_in_time),
        KN_TEST(interpret_an_ffn),
        KN_TEST(interpret_an_update_in_place),
        KN_TEST(interpret_inputs_that_change_places),
        KN_TEST(interpret_a_computed_size),
        KN_TEST(a_computed_size_out_of_bounds_fails),
        KN_TEST(a_size_out_of_bounds_fails),
        KN_TEST(too_little_memory_fails),
        KN_TEST(an_index_out_of_range_fails),
        KN_TEST(interpret_an_opaque_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
