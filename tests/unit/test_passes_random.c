/* Each rule of simplify and recognise on its own left side, of random shapes, 0 and 1 included: the
   graph computes the same before and after, by the interpreter, and the rule does apply. What the
   examples are made of is in the tables. */
#include "unit.h"

#include "driver/probe.h"
#include "rule_example.h"

enum { TRIALS = 10, MAX_DIMS = 16 };

typedef struct {
    kn_ctx *ctx;
    const kn_rule_table *table;
    const char *pass;
    int rule;
    uint64_t seed;
    double tolerance;
    int hits;         /* of the rule, over all trials */
    const char *text; /* the graph, for messages */
    double difference;
} trial;

static kn_unit parse(const trial *t, kn_arena *a, const char *text)
{
    kn_unit u = {.ctx = t->ctx, .arena = a};
    u.graph = kn_graph_parse(a, "example", text, strlen(text));
    kn_graph_verify(u.graph);
    return u;
}

/* 0 and 1 more often than others. */
static int choose_sizes(const trial *t, const kn_graph *g, kn_probe_size *sizes)
{
    static const int64_t values[] = {0, 1, 1, 2, 3, 5, 7};
    uint64_t state = t->seed * 7919 + (uint64_t)t->rule;
    int n = 0;
    for (; n < g->nsizes && n < MAX_DIMS; n++) {
        state = state * UINT64_C(6364136223846793005) + 1;
        int64_t v = values[(state >> 33) % 7];
        sizes[n] = (kn_probe_size){g->sizes[n].name, v < g->sizes[n].lo ? g->sizes[n].lo : v};
    }
    return n;
}

static bool has_halves(const kn_graph *g)
{
    bool halves = false;
    for (int i = 0; i < g->ninputs; i++) {
        halves = halves || g->inputs[i]->type == KN_F16 || g->inputs[i]->type == KN_BF16;
    }
    return halves;
}

static void compare(trial *t, kn_arena *a, kn_unit *u, const kn_probe_result *want,
                    const kn_probe_size *sizes, int nsizes)
{
    const char *where;
    kn_graph_verify(u->graph);
    kn_probe_result got =
        kn_probe(a, u, &(kn_probe_options){t->seed, KN_PROBE_PLAIN, sizes, nsizes});
    double d = kn_probe_difference(&got, want, &where);
    t->difference = d > t->difference ? d : t->difference;
    double tolerance = has_halves(u->graph) ? 0.02 : t->tolerance;
    if (d > tolerance) {
        kn_str after = kn_str_make(a);
        kn_graph_print(&after, u->graph);
        kn_raise(t->ctx, KN_INTERNAL, kn_loc_none(),
                 "a difference of %g, seed %d:\n%safterwards:\n%s", d, (int)t->seed, t->text,
                 kn_str_get(&after));
    }
}

/* The rule's table alone, which must find the rule; then the whole pass with the text read back. */
static void run_trial(void *env)
{
    trial *t = env;
    kn_arena *a = kn_arena_create(t->ctx);
    kn_probe_size sizes[MAX_DIMS];
    kn_str text = kn_str_make(a);
    int *hits = KN_ARRAY(a, int, t->table->nrules);
    kn_rule_example(&text, a, t->table, t->rule, t->seed);
    t->text = kn_intern(t->ctx, kn_str_get(&text));
    kn_unit u = parse(t, a, t->text);
    int nsizes = choose_sizes(t, u.graph, sizes);
    kn_probe_result want =
        kn_probe(a, &u, &(kn_probe_options){t->seed, KN_PROBE_PLAIN, sizes, nsizes});
    kn_rewrite(&u, t->table, hits);
    t->hits += hits[t->rule];
    compare(t, a, &u, &want, sizes, nsizes);
    u = parse(t, a, t->text);
    const char *const passes[] = {"fold", "simplify", "cse", "recognise", "fold", "simplify"};
    const kn_pass_options options = {.verify_each = true};
    kn_run_passes(&u, passes, 6, &options);
    compare(t, a, &u, &want, sizes, nsizes);
    kn_release(t->ctx, a);
}

static void check_rule(trial *t)
{
    t->hits = 0;
    t->difference = 0;
    for (t->seed = 1; t->seed <= TRIALS; t->seed++) {
        t->text = "(no text)\n";
        kn_status status = kn_protect(t->ctx, run_trial, t);
        if (status != KN_OK) {
            print_message("%s\n", t->text);
            fail_msg("%s, seed %d: %s", t->table->rules[t->rule].name, (int)t->seed,
                     last_message(t->ctx));
        }
    }
    print_message("%-24s %3d times, largest difference %g\n", t->table->rules[t->rule].name,
                  t->hits, t->difference);
    if (t->hits == 0) {
        fail_msg("the rule %s never applies to its own left side, e.g.\n%s",
                 t->table->rules[t->rule].name, t->text);
    }
}

static void check_table(void **state, const kn_rule_table *table, double tolerance)
{
    const fixture *f = *state;
    for (int i = 0; i < table->nrules; i++) {
        trial t = {.ctx = f->ctx, .table = table, .rule = i, .tolerance = tolerance};
        check_rule(&t);
    }
}

static void test_simplify(void **state)
{
    check_table(state, &kn_simplify_rules, 1e-6);
}

static void test_recognise(void **state)
{
    check_table(state, &kn_recognise_rules, 2e-5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(test_simplify),
        KN_TEST(test_recognise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
