/* kiln-opt: text in, passes, text out. For tests of passes and for finding the pass that is wrong.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/driver.h"
#include "driver/probe.h"

static const char usage[] =
    "usage: kiln-opt [options] FILE.kir\n"
    "  --pass NAME[,NAME...]     run these passes (default: none; see --list)\n"
    "  --pipeline                run the passes of a compilation\n"
    "  --target NAME|FILE        the target (default: host)\n"
    "  --stop-after PASS         stop there\n"
    "  --print-after PASS|all    print the text after a pass, on stderr\n"
    "  --verify-each             verify after every pass\n"
    "  --dim NAME=N              a size, for --interpret and --bisect\n"
    "  --seed N                  the made-up inputs\n"
    "  --interpret               run the result on made-up inputs and print the outputs\n"
    "  --bisect                  find the first pass that changes the outputs; exit 1 if there is "
    "one\n"
    "  --list                    the passes\n"
    "FILE may be - for standard input.\n";

enum { MAX_PASSES = 64, MAX_DIMS = 32 };

typedef struct {
    kn_ctx *ctx;
    const char *file, *target;
    const char *passes[MAX_PASSES];
    int npasses;
    kn_probe_size dims[MAX_DIMS];
    int ndims;
    uint64_t seed;
    bool interpret, bisect, list, help;
    kn_pass_options options;
    int result;
} kn_opt;

/* ---- the command line ---- */

static bool add_passes(kn_opt *o, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (o->npasses == MAX_PASSES) {
            return false;
        }
        o->passes[o->npasses++] = kn_intern_n(o->ctx, list, n);
        list += n + (list[n] == ',');
    }
    return true;
}

static bool add_pipeline(kn_opt *o)
{
    for (const char *const *p = kn_pipeline(2); *p; p++) {
        if (!add_passes(o, *p)) {
            return false;
        }
    }
    return true;
}

static bool parse_number(const char *text, long long *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0';
}

static bool add_dim(kn_opt *o, const char *text)
{
    const char *eq = strchr(text, '=');
    long long value;
    if (!eq || o->ndims == MAX_DIMS || !parse_number(eq + 1, &value)) {
        return false;
    }
    o->dims[o->ndims++] = (kn_probe_size){kn_intern_n(o->ctx, text, (size_t)(eq - text)), value};
    return true;
}

static bool take_value(kn_opt *o, const char *flag, const char *value)
{
    long long number;
    if (strcmp(flag, "--pass") == 0) {
        return add_passes(o, value);
    }
    if (strcmp(flag, "--dim") == 0) {
        return add_dim(o, value);
    }
    if (strcmp(flag, "--seed") == 0) {
        bool ok = parse_number(value, &number);
        o->seed = ok ? (uint64_t)number : 0;
        return ok;
    }
    const struct {
        const char *flag, **at;
    } strings[] = {{"--target", &o->target},
                   {"--stop-after", &o->options.stop_after},
                   {"--print-after", &o->options.print_after}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        if (strcmp(flag, strings[i].flag) == 0) {
            *strings[i].at = value;
            return true;
        }
    }
    return false;
}

static bool take_switch(kn_opt *o, const char *flag)
{
    const struct {
        const char *flag;
        bool *at;
    } switches[] = {{"--verify-each", &o->options.verify_each},
                    {"--interpret", &o->interpret},
                    {"--bisect", &o->bisect},
                    {"--list", &o->list},
                    {"--help", &o->help}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (strcmp(flag, switches[i].flag) == 0) {
            *switches[i].at = true;
            return true;
        }
    }
    return strcmp(flag, "--pipeline") == 0 && add_pipeline(o);
}

static bool parse_arguments(kn_opt *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (arg[0] != '-' || strcmp(arg, "-") == 0) {
            if (o->file) {
                return false;
            }
            o->file = arg;
        } else if (!take_switch(o, arg)) {
            if (i + 1 >= argc || !take_value(o, arg, argv[++i])) {
                return false;
            }
        }
    }
    return o->file || o->list || o->help;
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

static void bisect(kn_opt *o, kn_arena *a, kn_unit *u)
{
    kn_probe_result want = kn_probe(a, u, o->seed, o->dims, o->ndims);
    for (int i = 0; i < o->npasses; i++) {
        kn_run_passes(u, &o->passes[i], 1, &o->options);
        kn_probe_result got = kn_probe(a, u, o->seed, o->dims, o->ndims);
        const char *where;
        double d = kn_probe_difference(&got, &want, &where);
        bool wrong = !(d <= 1e-4);
        printf("%-12s %s: largest difference %g%s%s\n", o->passes[i], wrong ? "WRONG" : "ok", d,
               d > 0 ? " in " : "", d > 0 ? where : "");
        if (wrong) {
            o->result = KN_MISMATCH;
            return;
        }
        if (o->options.stop_after && strcmp(o->options.stop_after, o->passes[i]) == 0) {
            return;
        }
    }
}

static void list_passes(void)
{
    for (int i = 0; i < kn_pass_count(); i++) {
        printf("%-12s %s\n", kn_pass_get(i)->name, kn_pass_get(i)->doc);
    }
}

static void work(void *env)
{
    kn_opt *o = env;
    kn_arena *a = kn_arena_create(o->ctx);
    if (o->list) {
        list_passes();
        return;
    }
    kn_unit u = read_unit(o, a);
    if (o->bisect) {
        bisect(o, a, &u);
        return;
    }
    kn_run_passes(&u, o->passes, o->npasses, &o->options);
    kn_str out = kn_str_make(a);
    if (o->interpret) {
        kn_probe_result r = kn_probe(a, &u, o->seed, o->dims, o->ndims);
        kn_probe_print(&out, &r);
    } else {
        kn_unit_print(&out, &u);
    }
    fputs(kn_str_get(&out), stdout);
}

static void print_diagnostics(const kn_ctx *ctx)
{
    static const char *const names[] = {"note", "warning", "error"};
    for (int i = 0; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        if (d->file) {
            fprintf(stderr, "%s:", d->file);
        }
        if (d->line) {
            fprintf(stderr, "%d:%d:", d->line, d->column);
        }
        fprintf(stderr, "%s%s: %s%s%s\n", d->file ? " " : "", names[d->severity],
                d->where ? d->where : "", d->where ? ": " : "", d->message);
    }
}

int main(int argc, char **argv)
{
    kn_opt o = {.ctx = kn_ctx_create(), .seed = 1};
    if (!o.ctx) {
        fputs("kiln-opt: out of memory\n", stderr);
        return KN_ENVIRONMENT;
    }
    o.options.print = print_to_stderr;
#ifndef NDEBUG
    o.options.verify_each = true;
#endif
    bool understood = parse_arguments(&o, argc, argv);
    if (!understood || o.help) {
        fputs(usage, understood ? stdout : stderr);
        kn_ctx_destroy(o.ctx);
        return understood ? KN_OK : KN_USAGE;
    }
    kn_status status = kn_protect(o.ctx, work, &o);
    print_diagnostics(o.ctx);
    kn_ctx_destroy(o.ctx);
    return status == KN_OK ? o.result : status == KN_INTERNAL ? KN_ENVIRONMENT : (int)status;
}
