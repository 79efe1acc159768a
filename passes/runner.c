/* The table of passes and the one runner: requirements, verification, printing. In debug builds
   every pass is followed by the verifier and by print -> parse -> print, which must be the
   identity. */
#include "passes/pass.h"
#include "passes/passes.h"

static const kn_pass table[] = {
#define PASS(name, entry, exact, requires, gives, breaks, doc) \
    {name, entry, exact, requires, gives, breaks, doc},
#include "passes/passes.def"
#undef PASS
};

int kn_pass_count(void)
{
    return (int)(sizeof table / sizeof *table);
}

const kn_pass *kn_pass_get(int i)
{
    return &table[i];
}

const kn_pass *kn_pass_find(const char *name)
{
    for (int i = 0; i < kn_pass_count(); i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}

void kn_unit_print(kn_str *out, const kn_unit *u)
{
    if (u->module) {
        kn_module_print(out, u->module);
    } else {
        kn_graph_print(out, u->graph);
    }
}

/* ---- checks after a pass ---- */

static void verify(const kn_unit *u)
{
    if (u->module) {
        kn_module_verify(u->ctx, u->module);
        if (u->properties & KN_PROP_PLANNED) {
            kn_plan_verify(u);
        }
    } else {
        kn_graph_verify(u->graph);
    }
}

/* Print, parse, print: the text that comes back must be the text that went in. */
static void check_round_trip(const kn_unit *u, const char *pass)
{
    kn_arena *scratch = kn_arena_create(u->ctx);
    kn_str first = kn_str_make(scratch), second = kn_str_make(scratch);
    kn_unit_print(&first, u);
    kn_unit again = {.ctx = u->ctx, .arena = scratch};
    const char *file = kn_intern_f(u->ctx, "(after %s)", pass);
    if (u->module) {
        again.module = kn_module_parse(scratch, file, kn_str_get(&first), first.n);
    } else {
        again.graph = kn_graph_parse(scratch, file, kn_str_get(&first), first.n);
    }
    kn_unit_print(&second, &again);
    size_t at = 0;
    while (at < first.n && at < second.n && first.at[at] == second.at[at]) {
        at++;
    }
    if (at < first.n || at < second.n) {
        kn_raise(u->ctx, KN_INTERNAL, kn_loc_none(),
                 "after %s the text does not round-trip: `%.60s` became `%.60s`", pass,
                 kn_str_get(&first) + at, kn_str_get(&second) + at);
    }
    kn_release(u->ctx, scratch);
}

static void check_requirements(const kn_unit *u, const kn_pass *pass)
{
    bool lowered = u->module;
    bool wants_module = pass->requires_ & KN_PROP_LOWERED;
    if (lowered != wants_module) {
        kn_raise(u->ctx, KN_USAGE, kn_loc_none(), "pass `%s` works on %s, this is %s", pass->name,
                 wants_module ? "loops" : "a graph", lowered ? "loops" : "a graph");
    }
    if ((u->properties & pass->requires_) != pass->requires_) {
        kn_raise(u->ctx, KN_USAGE, kn_loc_none(),
                 "pass `%s` needs what an earlier pass gives (see passes.def)", pass->name);
    }
}

static void print_after(const kn_unit *u, const char *pass, const kn_pass_options *o)
{
    if (o->print_after &&
        (strcmp(o->print_after, "all") == 0 || strcmp(o->print_after, pass) == 0)) {
        kn_arena *scratch = kn_arena_create(u->ctx);
        kn_str text = kn_str_make(scratch);
        kn_unit_print(&text, u);
        o->print(o->print_env, pass, kn_str_get(&text));
        kn_release(u->ctx, scratch);
    }
}

static const kn_pass *find_or_raise(kn_unit *u, const char *name)
{
    const kn_pass *pass = kn_pass_find(name);
    if (!pass) {
        kn_raise(u->ctx, KN_USAGE, kn_loc_none(), "there is no pass `%s`", name);
    }
    return pass;
}

void kn_run_passes(kn_unit *u, const char *const *names, int n, const kn_pass_options *o)
{
    if (u->module) {
        u->properties |= KN_PROP_LOWERED;
    }
    for (int i = 0; i < n; i++) {
        const kn_pass *pass = find_or_raise(u, names[i]);
        check_requirements(u, pass);
        pass->run(u);
        u->properties = (u->properties & ~pass->breaks) | pass->gives;
        if (o->verify_each) {
            verify(u);
            check_round_trip(u, pass->name);
        }
        print_after(u, pass->name, o);
        if (o->stop_after && strcmp(o->stop_after, pass->name) == 0) {
            return;
        }
    }
}
