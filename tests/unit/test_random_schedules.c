/* Random schedules on a list of kernels: each is refused, or leaves every result as it was (equal to
   the bit where the kernel has integers alone). KILN_RANDOM_SCHEDULES=n tries n a kernel,
   KILN_RANDOM_SEED=n others; KILN_RANDOM_PRINT=1 shows what is refused and why. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/probe.h"

enum { MAX_NAMES = 64, MAX_EDITS = 4, PER_KERNEL = 8 };

static const char *const kernels[] = {
#define KERNEL(text) "graph @g" text,
#include "schedule_kernels.def"
#undef KERNEL
};

typedef struct {
    kn_ctx *ctx;
    kn_arena *a;
    uint64_t state;
    const char *graph;
    const char *schedule; /* text */
    const char *names[MAX_NAMES];
    int nnames;
    const char *tensors[MAX_NAMES];
    int ntensors;
    kn_probe_result want;
    bool exact;
} trial;

static uint64_t draw(trial *t, uint64_t below)
{
    t->state ^= t->state << 13;
    t->state ^= t->state >> 7;
    t->state ^= t->state << 17;
    return t->state % below;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- what there is to edit ---- */

static void see_use(void *env, kn_buffer_use use)
{
    trial *t = env;
    bool known = t->ntensors == MAX_NAMES;
    for (int i = 0; i < t->ntensors && !known; i++) {
        known = t->tensors[i] == use.buffer;
    }
    if (!known) {
        t->tensors[t->ntensors++] = use.buffer;
    }
}

static void see_loop(void *env, kn_loop *s)
{
    trial *t = env;
    bool known = s->kind != KN_S_FOR || t->nnames == MAX_NAMES;
    for (int i = 0; i < t->nnames && !known; i++) {
        known = t->names[i] == s->name;
    }
    if (!known) {
        t->names[t->nnames++] = s->name;
    }
}

static kn_unit unit_of(trial *t)
{
    kn_unit u = {.ctx = t->ctx, .arena = t->a};
    u.graph = kn_graph_parse(t->a, "kernel", t->graph, strlen(t->graph));
    return u;
}

static kn_probe_result results(trial *t, const kn_unit *u)
{
    return kn_probe(t->a, u, &(kn_probe_options){t->state | 1, KN_PROBE_PLAIN, NULL, 0});
}

static bool integers_alone(const kn_graph *g)
{
    bool floats = false;
    for (int i = 0; i < g->ninputs; i++) {
        floats = floats || kn_dtype_is_float(g->inputs[i]->type);
    }
    return !floats;
}

static const char *const lowering[] = {"group", "lower", "contract", "scratch", "plan"};

static const char *lower(kn_unit *u)
{
    kn_run_passes(u, lowering, 5, &(kn_pass_options){.verify_each = true});
    return u->module->funcs[0]->name;
}

/* ---- a random text ---- */

/* Some names, each once, in any order. */
static void put_names(trial *t, kn_str *s, bool sizes, int most)
{
    int n = 1 + (int)draw(t, (uint64_t)(most < t->nnames ? most : t->nnames));
    for (int i = 0; i < n; i++) { /* the first places of a shuffle */
        int from = i + (int)draw(t, (uint64_t)(t->nnames - i));
        const char *name = t->names[from];
        t->names[from] = t->names[i];
        t->names[i] = name;
        kn_putf(s, "%s%s", i ? ", " : " ", name);
        if (sizes) {
            kn_putf(s, " %d", 1 + (int)draw(t, 8));
        }
    }
    for (int i = 0; sizes && i < n && t->nnames < MAX_NAMES; i++) {
        t->names[t->nnames++] = kn_intern_f(t->ctx, "%s_i", t->names[i]);
        t->names[i] = kn_intern_f(t->ctx, "%s_o", t->names[i]);
    }
}

static void put_pair(trial *t, kn_str *s)
{
    uint64_t n = (uint64_t)t->nnames, x = draw(t, n), y = n > 1 ? (x + 1 + draw(t, n - 1)) % n : x;
    kn_putf(s, " fuse %s, %s", t->names[x], t->names[y]);
}

static void put_edit(trial *t, kn_str *s)
{
    switch (draw(t, 7)) {
    case 0:
        kn_put(s, " split");
        put_names(t, s, true, 1);
        break;
    case 1:
    case 2:
        kn_put(s, " tile");
        put_names(t, s, true, 3);
        break;
    case 3:
    case 4:
        kn_putf(s, " stage %s -> local at", t->tensors[draw(t, (uint64_t)t->ntensors)]);
        kn_putf(s, " %s", t->names[draw(t, (uint64_t)t->nnames)]);
        break;
    case 5:
        kn_put(s, " order");
        put_names(t, s, false, 4);
        break;
    default: put_pair(t, s); break;
    }
}

static void make_text(trial *t, const char *kernel)
{
    kn_str s = kn_str_make(t->a);
    kn_putf(&s, "schedule @%s {", kernel);
    for (int n = 1 + (int)draw(t, MAX_EDITS); n > 0; n--) {
        put_edit(t, &s);
    }
    kn_put(&s, " }");
    t->schedule = kn_str_get(&s);
}

/* ---- one trial ---- */

static void try_schedule(void *env)
{
    trial *t = env;
    kn_unit u = unit_of(t);
    u.schedule = kn_schedule_parse(t->a, "schedule", t->schedule, strlen(t->schedule));
    kn_str again = kn_str_make(t->a), twice = kn_str_make(t->a);
    kn_schedule_text_print(&again, u.schedule);
    const char *printed = kn_str_get(&again);
    kn_schedule_text_print(&twice, kn_schedule_parse(t->a, "printed", printed, strlen(printed)));
    assert_string_equal(printed, kn_str_get(&twice));
    lower(&u);
    kn_probe_result got = results(t, &u);
    const char *where = "";
    double difference = kn_probe_difference(&got, &t->want, &where);
    double allowed = t->exact ? 0 : kn_probe_tolerance(&t->want);
    if (!(difference <= allowed)) {
        kn_str text = kn_str_make(t->a);
        kn_unit_print(&text, &u);
        fail_msg("%s\n%s\n%s: differs by %g\n%s", t->graph, t->schedule, where, difference,
                 kn_str_get(&text));
    }
}

static void any_schedule_is_refused_or_right(void **state)
{
    uint64_t seed = setting("KILN_RANDOM_SEED", 1),
             count = setting("KILN_RANDOM_SCHEDULES", PER_KERNEL);
    bool show = setting("KILN_RANDOM_PRINT", 0) != 0;
    uint64_t right = 0, refused = 0;
    (void)state;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        for (uint64_t i = 0; i < count; i++) {
            kn_ctx *ctx = kn_ctx_create();
            trial t = {.ctx = ctx, .a = kn_arena_create(ctx), .graph = kernels[k]};
            t.state = seed * UINT64_C(0x9E3779B97F4A7C15) + (k << 32) + i + 1;
            draw(&t, 2);
            kn_unit plain = unit_of(&t);
            t.exact = integers_alone(plain.graph);
            uint64_t inputs = t.state;
            t.want = results(&t, &plain);
            const char *kernel = lower(&plain);
            kn_block body = plain.module->funcs[0]->body;
            kn_block_visit(body, see_loop, &t);
            for (int s = 0; s < body.n; s++) {
                kn_loop_uses(body.at[s], see_use, &t);
            }
            make_text(&t, kernel);
            t.state = inputs;
            kn_status status = kn_protect(ctx, try_schedule, &t);
            if (status != KN_OK) {
                assert_int_equal(status, KN_INVALID);
                if (show) {
                    printf("%s\n  %s\n", t.schedule, last_message(ctx));
                }
            }
            right += status == KN_OK;
            refused += status != KN_OK;
            kn_ctx_destroy(ctx);
        }
    }
    printf("%llu schedules right, %llu refused\n", (unsigned long long)right,
           (unsigned long long)refused);
    assert_true(count < 4 || right * 4 > refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_schedule_is_refused_or_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
