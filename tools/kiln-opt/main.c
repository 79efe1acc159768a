/* kiln-opt: text in, passes, text out. For tests of passes and for finding the pass that is wrong.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/probe.h"
#include "tools/cli.h"

static const char usage[] =
    "usage: kiln-opt [options] FILE.kir\n"
    "  --pass NAME[,NAME...]     run these passes (default: none; see --list)\n"
    "  --pipeline                run the passes of a compilation\n"
    "  --target NAME|FILE        the target (default: host)\n"
    "  --schedule FILE           edits of the kernels' schedules (docs/schedule.md)\n"
    "  --stop-after PASS         stop there\n"
    "  --print-after PASS|all    print the text after a pass, on stderr\n"
    "  --verify-each             verify after every pass\n"
    "  --dim NAME=N              a size, for --interpret and --bisect\n"
    "  --seed N                  the made-up inputs\n"
    "  --interpret               run the result on made-up inputs and print the outputs\n"
    "  --bisect                  find the first pass (default: of a compilation) that changes the\n"
    "                            outputs, on plain inputs and at the edges; exit 1 if there is "
    "one\n"
    "  --list                    the passes\n"
    "  --help, --version\n"
    "FILE may be - for standard input.\n";

enum { MAX_PASSES = 64, MAX_DIMS = 32 };

typedef struct {
    kn_ctx *ctx;
    const char *file, *target, *schedule;
    const char *passes[MAX_PASSES];
    int npasses;
    kn_probe_size dims[MAX_DIMS];
    int ndims;
    uint64_t seed;
    bool interpret, bisect, list;
    kn_pass_options options;
    int argc;
    char **argv;
    int result;
} kn_opt;

/* ---- the command line ---- */

static void add_passes(void *env, const char *flag, const char *list)
{
    kn_opt *o = env;
    while (*list) {
        size_t n = strcspn(list, ",");
        if (o->npasses == MAX_PASSES) {
            kn_tool_usage(o->ctx, "%s: at most %d passes", flag, MAX_PASSES);
        }
        o->passes[o->npasses] = kn_intern_n(o->ctx, list, n);
        kn_tool_pass(o->ctx, flag, o->passes[o->npasses++], false);
        list += n + (list[n] == ',');
    }
}

static void add_pipeline(void *env, const char *flag, const char *value)
{
    (void)value;
    for (const char *const *p = kn_pipeline(2); *p; p++) {
        add_passes(env, flag, *p);
    }
}

static void take_dim(void *env, const char *flag, const char *text)
{
    kn_opt *o = env;
    kn_size size = kn_tool_dim(o->ctx, text);
    if (o->ndims == MAX_DIMS || size.lo != size.hi) {
        kn_tool_usage(o->ctx, "%s: expected NAME=N, at most %d times", flag, MAX_DIMS);
    }
    o->dims[o->ndims++] = (kn_probe_size){size.name, size.lo};
}

static void take_seed(void *env, const char *flag, const char *text)
{
    kn_opt *o = env;
    o->seed = (uint64_t)kn_tool_number(o->ctx, flag, text, NULL);
}

static void take_file(void *env, const char *name)
{
    kn_opt *o = env;
    if (o->file) {
        kn_tool_usage(o->ctx, "one FILE, found `%s` and `%s`", o->file, name);
    }
    o->file = name;
}

static void take_arguments(kn_opt *o)
{
    const kn_flag flags[] = {{"--pass", .take = add_passes},
                             {"--pipeline", .take = add_pipeline, .alone = true},
                             {"--target", .text = &o->target},
                             {"--schedule", .text = &o->schedule},
                             {"--stop-after", .text = &o->options.stop_after},
                             {"--print-after", .text = &o->options.print_after},
                             {"--verify-each", .on = &o->options.verify_each},
                             {"--dim", .take = take_dim},
                             {"--seed", .take = take_seed},
                             {"--interpret", .on = &o->interpret},
                             {"--bisect", .on = &o->bisect},
                             {"--list", .on = &o->list}};
    kn_flags_take(&(kn_flags){o->ctx, flags, sizeof flags / sizeof *flags, take_file, o},
                  o->argc - 1, o->argv + 1);
    kn_tool_pass(o->ctx, "--stop-after", o->options.stop_after, false);
    kn_tool_pass(o->ctx, "--print-after", o->options.print_after, true);
    if (!o->file && !o->list) {
        kn_tool_usage(o->ctx, "kiln-opt needs one FILE");
    }
}

/* ---- the work ---- */

static void print_to_stderr(void *env, const char *pass, const char *text)
{
    (void)env;
    fprintf(stderr, "// after %s\n%s", pass, text);
}

static const char *read_all(kn_opt *o, kn_arena *a, size_t *n)
{
    if (strcmp(o->file, "-") != 0) {
        const kn_file *f = kn_file_map(o->ctx, o->file);
        *n = f->size;
        return (const char *)f->data;
    }
    kn_str s = kn_str_make(a);
    char buffer[4096];
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
        kn_put_n(&s, buffer, got);
    }
    *n = s.n;
    return kn_str_get(&s);
}

/* The kind of a text is its first word. */
static kn_unit read_unit(kn_opt *o, kn_arena *a)
{
    size_t n;
    const char *text = read_all(o, a, &n);
    const char *file = kn_intern(o->ctx, o->file);
    kn_unit u = {
        .ctx = o->ctx, .arena = a, .target = o->target ? kn_target_find(a, o->target) : NULL};
    if (o->schedule) {
        const kn_file *f = kn_file_map(o->ctx, o->schedule);
        u.schedule =
            kn_schedule_parse(a, kn_intern(o->ctx, o->schedule), (const char *)f->data, f->size);
    }
    kn_lexer lx;
    kn_lex_init(&lx, a, file, text, n, kn_loc_none());
    if (kn_lex_is(&lx, "module")) {
        u.module = kn_module_parse(a, file, text, n);
        if (u.target) {
            kn_target_attach(u.target, u.module);
        }
        kn_module_verify(o->ctx, u.module);
    } else {
        u.graph = kn_graph_parse(a, file, text, n);
        kn_graph_verify(u.graph);
    }
    return u;
}

/* The names that --dim may give: those of sizes that inputs have. */
static const char **size_names(kn_arena *a, const kn_unit *u, int *n)
{
    const kn_size *sizes = u->module ? kn_func_sizes(a, kn_module_main(u->module), n) : NULL;
    int all = u->module ? *n : u->graph->nsizes;
    const char **names = KN_ARRAY(a, const char *, all + 1);
    *n = 0;
    for (int i = 0; i < all; i++) {
        if (sizes || !u->graph->sources[i].value) {
            names[(*n)++] = sizes ? sizes[i].name : u->graph->sizes[i].name;
        }
    }
    return names;
}

static void check_dims(const kn_opt *o, kn_arena *a, const kn_unit *u)
{
    int n;
    const char **names = size_names(a, u, &n);
    for (int i = 0; i < o->ndims; i++) {
        int k = 0;
        while (k < n && strcmp(names[k], o->dims[i].name) != 0) {
            k++;
        }
        if (k == n) {
            kn_no_dimension(a, o->dims[i].name, names, n);
        }
    }
}

static kn_probe_options probe_options(const kn_opt *o, kn_probe_values values)
{
    return (kn_probe_options){o->seed, values, o->dims, o->ndims};
}

/* ---- bisecting ---- */

enum { NVALUES = KN_PROBE_EDGES + 1 };
static const char *const inputs_named[NVALUES] = {"plain inputs", "floats at the edges",
                                                  "inputs at the edges"};

/* One kind of inputs, and the outputs on them: before a pass, and after. */
typedef struct {
    kn_arena *arena;
    const kn_unit *unit;
    kn_probe_options options;
    bool refused; /* the run fails on these inputs as it was written: nothing to compare */
    kn_probe_result before, after;
} kn_trial;

static void probe(void *env)
{
    kn_trial *t = env;
    t->after = kn_probe(t->arena, t->unit, &t->options);
}

/* Plain inputs must do. At the edges a model may check what it is given, and refuse. */
static void begin_trial(kn_ctx *ctx, kn_trial *t)
{
    if (t->options.values == KN_PROBE_PLAIN) {
        probe(t);
    } else if (kn_protect(ctx, probe, t) != KN_OK) {
        t->refused = true;
        printf("%s are refused: %s\n", inputs_named[t->options.values],
               kn_diag_get(ctx, kn_diag_count(ctx) - 1)->message);
        kn_diag_clear(ctx);
    }
}

/* What a pass may do to the outputs: nothing, or rounding, which at the edges may become anything. */
static double allowed(const kn_trial *t, const kn_pass *pass)
{
    if (pass->exact) {
        return 0;
    }
    return t->options.values == KN_PROBE_PLAIN ? kn_probe_tolerance(&t->before) : HUGE_VAL;
}

/* Adds the difference that a pass made to `line`. Returns whether it is too large. */
static bool differs(kn_ctx *ctx, kn_trial *t, const kn_pass *pass, kn_str *line)
{
    const char *where;
    t->before = t->after;
    if (kn_protect(ctx, probe, t) != KN_OK) {
        kn_putf(line, "%sthe run fails", line->n ? ", " : "");
        return true;
    }
    double d = kn_probe_difference(&t->after, &t->before, &where);
    if (d > 0) {
        kn_putf(line, "%s%g in %s", line->n ? ", " : "", d, where);
    }
    if (d > 0 && t->options.values != KN_PROBE_PLAIN) {
        kn_putf(line, " (%s)", inputs_named[t->options.values]);
    }
    return d > allowed(t, pass);
}

/* Says how a pass did, and whether it did well. */
static bool judge(kn_opt *o, kn_arena *a, kn_trial *trials, const char *pass)
{
    bool wrong = false;
    kn_str line = kn_str_make(a);
    for (int v = 0; v < NVALUES; v++) {
        wrong =
            (!trials[v].refused && differs(o->ctx, &trials[v], kn_pass_find(pass), &line)) || wrong;
    }
    printf("%-12s %s: largest difference %s\n", pass, wrong ? "WRONG" : "ok",
           line.n ? kn_str_get(&line) : "0");
    return !wrong;
}

static void bisect(kn_opt *o, kn_arena *a, kn_unit *u)
{
    kn_trial trials[NVALUES];
    for (int v = 0; v < NVALUES; v++) {
        kn_probe_options options = probe_options(o, (kn_probe_values)v);
        trials[v] = (kn_trial){.arena = a, .unit = u, .options = options};
        begin_trial(o->ctx, &trials[v]);
    }
    if (o->npasses == 0) {
        add_pipeline(o, "--bisect", NULL);
    }
    for (int i = 0; i < o->npasses; i++) {
        kn_run_passes(u, &o->passes[i], 1, &o->options);
        if (!judge(o, a, trials, o->passes[i])) {
            o->result = KN_MISMATCH;
            return;
        }
        if (o->options.stop_after && strcmp(o->options.stop_after, o->passes[i]) == 0) {
            return;
        }
    }
}

/* ---- the whole ---- */

static void list_passes(void)
{
    for (int i = 0; i < kn_pass_count(); i++) {
        printf("%-12s %s\n", kn_pass_get(i)->name, kn_pass_get(i)->doc);
    }
}

static void work(void *env)
{
    kn_opt *o = env;
    take_arguments(o);
    kn_arena *a = kn_arena_create(o->ctx);
    if (o->list) {
        list_passes();
        return;
    }
    kn_unit u = read_unit(o, a);
    check_dims(o, a, &u);
    if (o->bisect) {
        bisect(o, a, &u);
        return;
    }
    kn_run_passes(&u, o->passes, o->npasses, &o->options);
    kn_str out = kn_str_make(a);
    if (o->interpret) {
        kn_probe_options options = probe_options(o, KN_PROBE_PLAIN);
        kn_probe_result r = kn_probe(a, &u, &options);
        kn_probe_print(&out, &r);
    } else {
        kn_unit_print(&out, &u);
    }
    fputs(kn_str_get(&out), stdout);
}

int main(int argc, char **argv)
{
    kn_opt o = {.ctx = kn_tool_begin("kiln-opt"), .seed = 1, .argc = argc, .argv = argv};
    if (!o.ctx) {
        return KN_ENVIRONMENT;
    }
    if (argc < 2 || kn_tool_wants(argc, argv, "--help")) {
        fputs(usage, argc < 2 ? stderr : stdout);
        return kn_tool_end(o.ctx, "kiln-opt", KN_OK, argc < 2 ? KN_USAGE : KN_OK, KN_SAY_ALL);
    }
    if (kn_tool_wants(argc, argv, "--version")) {
        puts("kiln-opt " KILN_VERSION);
        return kn_tool_end(o.ctx, "kiln-opt", KN_OK, KN_OK, KN_SAY_ALL);
    }
    o.options.print = print_to_stderr;
#ifndef NDEBUG
    o.options.verify_each = true;
#endif
    kn_status status = kn_protect(o.ctx, work, &o);
    return kn_tool_end(o.ctx, "kiln-opt", status, o.result, KN_SAY_ALL);
}
