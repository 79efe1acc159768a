/* kiln: the command line. A verb is a row here and a file beside this one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/kiln/kiln.h"

typedef void verb_fn(kn_cli *c);

static const struct {
    const char *name;
    verb_fn *run;
    const char *arguments, *doc;
} verbs[] = {
    {"compile", kn_verb_compile, "MODEL -o OUT", "compile ahead of time: .kiln .c .ll .o .a .so"},
    {"run", kn_verb_run, "MODEL", "run once, on given or random inputs"},
    {"verify", kn_verb_verify, "MODEL --data DIR", "run and compare with stored outputs"},
    {"inspect", kn_verb_inspect, "FILE", "what is in a file"},
    {"targets", kn_verb_targets, "", "list the targets"},
};
enum { NVERBS = sizeof verbs / sizeof *verbs };

/* Verbs that are to come. */
static const char *const later[] = {"generate", "bench",        "profile", "tune",
                                    "serve",    "check-target", "target"};

static const char options[] =
    "  -o OUT, --emit KIND       what to write: kiln, c, ll, o, a, so (default: by OUT's ending)\n"
    "  --target NAME|FILE        the target (default: host)\n"
    "  -O0 .. -O3                how hard to try (default: -O2)\n"
    "  --via interpret|c|jit     how to execute here\n"
    "  --dim NAME=N|LO:HI        binds or bounds a symbolic dimension\n"
    "  --input-shape NAME:1x128  the shape of an input\n"
    "  --input NAME=FILE         run: an input (.npy, ONNX .pb, .safetensors)\n"
    "  --output-dir DIR          run: writes DIR/NAME.npy\n"
    "  --seed N                  run: the random inputs\n"
    "  --data DIR                verify: input_N.pb and output_N.pb; may be given several times\n"
    "  --rtol X --atol X         verify: tolerances (default: 1e-3, 1e-7)\n"
    "  --threads N               threads to run with\n"
    "  --dump-ir PASS|all --dump-dir DIR   the text after a pass\n"
    "  --json                    one JSON object on stdout\n"
    "  -q, -v, --help, --version\n"
    "Exit codes: 0 well, 1 a comparison failed, 2 usage, 3 unsupported, 4 bad input, 5 the machine "
    "failed.\n";

static void print_usage(FILE *to)
{
    fputs("usage: kiln VERB [options]\n\n", to);
    for (int i = 0; i < NVERBS; i++) {
        fprintf(to, "  %-8s %-18s %s\n", verbs[i].name, verbs[i].arguments, verbs[i].doc);
    }
    fprintf(to, "\n%s", options);
}

_Noreturn void kn_cli_usage(kn_cli *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char message[512];
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kn_raise(c->ctx, KN_USAGE, kn_loc_none(), "%s (kiln --help)", message);
}

_Noreturn void kn_cli_not_built(kn_cli *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char what[128];
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    kn_raise(c->ctx, KN_UNSUPPORTED, kn_loc_none(), "%s: not built yet", what);
}

/* ---- the command line ---- */

static int64_t number(kn_cli *c, const char *flag, const char *text, const char *end_at)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || (end_at ? end != end_at : *end != '\0')) {
        kn_cli_usage(c, "%s: `%s` is not a whole number", flag, text);
    }
    return value;
}

static double real(kn_cli *c, const char *flag, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0)) {
        kn_cli_usage(c, "%s: `%s` is not a number", flag, text);
    }
    return value;
}

/* NAME=N or NAME=LO:HI */
static void take_dim(kn_cli *c, const char *text)
{
    const char *eq = strchr(text, '=');
    if (!eq || c->ndims == MAX_LIST) {
        kn_cli_usage(c, "--dim: expected NAME=N or NAME=LO:HI, found `%s`", text);
    }
    const char *colon = strchr(eq, ':');
    int64_t lo = number(c, "--dim", eq + 1, colon);
    int64_t hi = colon ? number(c, "--dim", colon + 1, NULL) : lo;
    if (lo < 0 || hi < lo) {
        kn_cli_usage(c, "--dim: `%s` is no range of sizes", text);
    }
    c->dims[c->ndims++] = (kn_size){kn_intern_n(c->ctx, text, (size_t)(eq - text)), lo, hi};
}

/* NAME:1x128 */
static void take_shape(kn_cli *c, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || c->nshapes == MAX_LIST) {
        kn_cli_usage(c, "--input-shape: expected NAME:1x128, found `%s`", text);
    }
    struct kn_input_shape *s = &c->shapes[c->nshapes++];
    s->input = kn_intern_n(c->ctx, text, (size_t)(colon - text));
    for (const char *at = colon + 1; *at;) {
        char *end;
        long long dim = strtoll(at, &end, 10);
        if (end == at || dim < 0 || s->rank == KN_MAX_RANK || (*end && *end != 'x')) {
            kn_cli_usage(c, "--input-shape: `%s` is not a shape", colon + 1);
        }
        s->dims[s->rank++] = dim;
        at = end + (*end == 'x');
    }
}

static void take_via(kn_cli *c, const char *text)
{
    static const char *const names[] = {"default", "interpret", "c", "jit"};
    for (int i = 1; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            c->via = (kn_via)i;
            return;
        }
    }
    kn_cli_usage(c, "--via: expected interpret, c or jit, found `%s`", text);
}

static void take_list(kn_cli *c, const char *flag, const char **list, int *n, const char *value)
{
    if (*n == MAX_LIST) {
        kn_cli_usage(c, "%s: at most %d", flag, MAX_LIST);
    }
    list[(*n)++] = value;
}

static bool take_string(kn_cli *c, const char *flag, const char *value)
{
    const struct {
        const char *flag, **at;
    } strings[] = {{"-o", &c->output},
                   {"--output", &c->output},
                   {"--emit", &c->emit},
                   {"--target", &c->target},
                   {"--schedule", &c->schedule},
                   {"--precision", &c->precision},
                   {"--output-dir", &c->output_dir},
                   {"--dump-ir", &c->dump_ir},
                   {"--dump-dir", &c->dump_dir}};
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        if (strcmp(flag, strings[i].flag) == 0) {
            *strings[i].at = value;
            return true;
        }
    }
    return false;
}

static void take_value(kn_cli *c, const char *flag, const char *value)
{
    if (strcmp(flag, "--dim") == 0) {
        take_dim(c, value);
    } else if (strcmp(flag, "--input-shape") == 0) {
        take_shape(c, value);
    } else if (strcmp(flag, "--via") == 0) {
        take_via(c, value);
    } else if (strcmp(flag, "--data") == 0) {
        take_list(c, flag, c->data, &c->ndata, value);
    } else if (strcmp(flag, "--input") == 0) {
        take_list(c, flag, c->inputs, &c->ninputs, value);
    } else if (strcmp(flag, "--rtol") == 0) {
        c->rtol = real(c, flag, value);
    } else if (strcmp(flag, "--atol") == 0) {
        c->atol = real(c, flag, value);
    } else if (strcmp(flag, "--seed") == 0) {
        c->seed = (uint64_t)number(c, flag, value, NULL);
    } else if (strcmp(flag, "--threads") == 0) {
        int64_t threads = number(c, flag, value, NULL);
        c->threads = threads > 0 && threads <= 1024 ? (int)threads : -1;
    } else if (!take_string(c, flag, value)) {
        kn_cli_usage(c, "there is no option %s", flag);
    }
}

static bool take_switch(kn_cli *c, const char *flag)
{
    if (flag[0] == '-' && flag[1] == 'O' && flag[2] >= '0' && flag[2] <= '3' && !flag[3]) {
        c->level = flag[2] - '0';
        return true;
    }
    const struct {
        const char *flag;
        bool *at;
    } switches[] = {{"--json", &c->json}, {"-q", &c->quiet}, {"-v", &c->verbose}};
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++) {
        if (strcmp(flag, switches[i].flag) == 0) {
            *switches[i].at = true;
            return true;
        }
    }
    return false;
}

typedef struct {
    kn_cli *cli;
    int argc;
    char **argv;
} kn_command;

static verb_fn *find_verb(kn_cli *c)
{
    for (int i = 0; i < NVERBS; i++) {
        if (strcmp(verbs[i].name, c->verb) == 0) {
            return verbs[i].run;
        }
    }
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        if (strcmp(later[i], c->verb) == 0) {
            kn_cli_not_built(c, "%s", c->verb);
        }
    }
    kn_cli_usage(c, "there is no verb `%s`", c->verb);
}

/* What is taken, but not built yet. */
static void check_flags(kn_cli *c)
{
    static const char *const precisions[] = {"f32", "f16", "bf16", "int8", "int4"};
    size_t i = 0, n = sizeof precisions / sizeof *precisions;
    while (c->precision && i < n && strcmp(c->precision, precisions[i]) != 0) {
        i++;
    }
    if (i == n) {
        kn_cli_usage(c, "--precision: expected f32, f16, bf16, int8 or int4, found `%s`",
                     c->precision);
    }
    if (i > 0) {
        kn_cli_not_built(c, "--precision %s", c->precision);
    }
    if (c->schedule) {
        kn_cli_not_built(c, "--schedule");
    }
    if (c->threads < 0) {
        kn_cli_usage(c, "--threads: expected a positive number");
    }
}

static void work(void *env)
{
    kn_command *k = env;
    kn_cli *c = k->cli;
    verb_fn *verb = find_verb(c);
    c->arena = kn_arena_create(c->ctx);
    for (int i = 2; i < k->argc; i++) {
        const char *arg = k->argv[i];
        if (arg[0] != '-' || !arg[1]) {
            take_list(c, "files", c->files, &c->nfiles, arg);
        } else if (!take_switch(c, arg)) {
            if (i + 1 == k->argc) {
                kn_cli_usage(c, "%s wants a value, or is no option", arg);
            }
            take_value(c, arg, k->argv[++i]);
        }
    }
    check_flags(c);
    verb(c);
}

static void print_diagnostic(const kn_diag *d)
{
    static const char *const names[] = {"note", "warning", "error"};
    fprintf(stderr, "kiln: ");
    if (d->file) {
        fprintf(stderr, "%s: ", d->file);
    }
    if (d->line) {
        fprintf(stderr, "%d:%d: ", d->line, d->column);
    }
    fprintf(stderr, "%s: %s%s%s\n", names[d->severity], d->where ? d->where : "",
            d->where ? ": " : "", d->message);
}

/* All errors with what is noted to them; of the warnings some. */
static void print_diagnostics(const kn_cli *c)
{
    enum { SHOWN = 8 };
    int warnings = 0;
    for (int i = 0; i < kn_diag_count(c->ctx); i++) {
        const kn_diag *d = kn_diag_get(c->ctx, i);
        warnings += d->severity == KN_WARNING;
        bool error = d->severity == KN_ERROR;
        if (error || (!c->quiet && (c->verbose || d->severity == KN_NOTE || warnings <= SHOWN))) {
            print_diagnostic(d);
        }
    }
    if (warnings > SHOWN && !c->quiet && !c->verbose) {
        fprintf(stderr, "kiln: %d more warnings (-v prints them)\n", warnings - SHOWN);
    }
}

static bool wants(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    if (argc < 2 || wants(argc, argv, "--help")) {
        print_usage(argc < 2 ? stderr : stdout);
        return argc < 2 ? KN_USAGE : KN_OK;
    }
    if (wants(argc, argv, "--version")) {
        puts("kiln " KILN_VERSION);
        return KN_OK;
    }
    kn_cli c = {
        .ctx = kn_ctx_create(), .verb = argv[1], .level = 2, .rtol = 1e-3, .atol = 1e-7, .seed = 1};
    if (!c.ctx) {
        fputs("kiln: out of memory\n", stderr);
        return KN_ENVIRONMENT;
    }
    kn_status status = kn_protect(c.ctx, work, &(kn_command){&c, argc, argv});
    print_diagnostics(&c);
    kn_ctx_destroy(c.ctx);
    if (fflush(stdout) != 0) {
        return KN_ENVIRONMENT;
    }
    return status == KN_OK ? c.result : status == KN_INTERNAL ? KN_ENVIRONMENT : (int)status;
}
