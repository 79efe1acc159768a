/* kiln: the command line. A verb is a row here and a file beside this one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli.h"
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
    "  --schedule FILE           edits of the kernels' schedules (docs/schedule.md)\n"
    "  --threads N               at most so many threads (so far a run takes one)\n"
    "  --dump-ir PASS|all        writes the text after a pass: DIR/NN-PASS.kir\n"
    "  --dump-dir DIR            where to (default: the current folder)\n"
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
    kn_tool_usage(c->ctx, "%s", message);
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

/* NAME:1x128 */
static void take_shape(void *env, const char *flag, const char *text)
{
    kn_cli *c = env;
    const char *colon = strrchr(text, ':');
    if (!colon || c->nshapes == MAX_LIST) {
        kn_cli_usage(c, "%s: expected NAME:1x128, found `%s`", flag, text);
    }
    struct kn_input_shape *s = &c->shapes[c->nshapes++];
    s->input = kn_intern_n(c->ctx, text, (size_t)(colon - text));
    for (const char *at = colon + 1; *at;) {
        char *end;
        errno = 0;
        long long dim = strtoll(at, &end, 10);
        bool last = !*end, more = *end == 'x' && end[1];
        if (errno || end == at || dim < 0 || s->rank == KN_MAX_RANK || (!last && !more)) {
            kn_cli_usage(c, "%s: `%s` is not a shape", flag, colon + 1);
        }
        s->dims[s->rank++] = dim;
        at = end + more;
    }
}

static void take_via(void *env, const char *flag, const char *text)
{
    kn_cli *c = env;
    static const char *const names[] = {"default", "interpret", "c", "jit"};
    for (int i = 1; i < 4; i++) {
        if (strcmp(text, names[i]) == 0) {
            c->via = (kn_via)i;
            return;
        }
    }
    kn_cli_usage(c, "%s: expected interpret, c or jit, found `%s`", flag, text);
}

static void take_list(kn_cli *c, const char *flag, const char **list, int *n, const char *value)
{
    if (*n == MAX_LIST) {
        kn_cli_usage(c, "%s: at most %d", flag, MAX_LIST);
    }
    list[(*n)++] = value;
}

static void take_file(void *env, const char *name)
{
    kn_cli *c = env;
    take_list(c, "files", c->files, &c->nfiles, name);
}

static void take_data(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    take_list(c, flag, c->data, &c->ndata, value);
}

static void take_input(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    take_list(c, flag, c->inputs, &c->ninputs, value);
}

static void take_dim(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    if (c->ndims == MAX_LIST) {
        kn_cli_usage(c, "%s: at most %d", flag, MAX_LIST);
    }
    c->dims[c->ndims++] = kn_tool_dim(c->ctx, value);
}

static void take_seed(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    c->seed = (uint64_t)kn_tool_number(c->ctx, flag, value, NULL);
}

static void take_threads(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    int64_t threads = kn_tool_number(c->ctx, flag, value, NULL);
    if (threads < 1 || threads > 1024) {
        kn_cli_usage(c, "%s: expected a positive number, at most 1024", flag);
    }
    c->threads = (int)threads;
}

static void take_level(void *env, const char *flag, const char *value)
{
    kn_cli *c = env;
    (void)value;
    c->level_flag = flag;
    c->level = flag[2] - '0';
}

static void take_arguments(kn_cli *c, int argc, char *const *argv)
{
    const kn_flag flags[] = {{"-o", .text = &c->output},
                             {"--output", .text = &c->output},
                             {"--emit", .text = &c->emit},
                             {"--target", .text = &c->target},
                             {"--schedule", .text = &c->schedule},
                             {"--precision", .text = &c->precision},
                             {"--output-dir", .text = &c->output_dir},
                             {"--dump-ir", .text = &c->dump_ir},
                             {"--dump-dir", .text = &c->dump_dir},
                             {"--json", .on = &c->json},
                             {"-q", .on = &c->quiet},
                             {"-v", .on = &c->verbose},
                             {"--rtol", .real = &c->rtol},
                             {"--atol", .real = &c->atol},
                             {"--dim", .take = take_dim},
                             {"--input-shape", .take = take_shape},
                             {"--via", .take = take_via},
                             {"--data", .take = take_data},
                             {"--input", .take = take_input},
                             {"--seed", .take = take_seed},
                             {"--threads", .take = take_threads},
                             {"-O0", .take = take_level, .alone = true},
                             {"-O1", .take = take_level, .alone = true},
                             {"-O2", .take = take_level, .alone = true},
                             {"-O3", .take = take_level, .alone = true}};
    kn_flags_take(&(kn_flags){c->ctx, flags, sizeof flags / sizeof *flags, take_file, c}, argc,
                  argv);
}

/* ---- the verb ---- */

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

/* What is wrong with any verb, or is taken, but not built yet. */
static void check_flags(kn_cli *c)
{
    kn_tool_pass(c->ctx, "--dump-ir", c->dump_ir, true);
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
}

static void work(void *env)
{
    kn_command *k = env;
    kn_cli *c = k->cli;
    verb_fn *verb = find_verb(c);
    c->arena = kn_arena_create(c->ctx);
    take_arguments(c, k->argc - 2, k->argv + 2);
    check_flags(c);
    verb(c);
}

int main(int argc, char **argv)
{
    kn_cli c = {.ctx = kn_tool_begin("kiln"), .level = 2, .rtol = 1e-3, .atol = 1e-7, .seed = 1};
    if (!c.ctx) {
        return KN_ENVIRONMENT;
    }
    if (argc < 2 || kn_tool_wants(argc, argv, "--help")) {
        print_usage(argc < 2 ? stderr : stdout);
        return kn_tool_end(c.ctx, "kiln", KN_OK, argc < 2 ? KN_USAGE : KN_OK, KN_SAY_ALL);
    }
    if (kn_tool_wants(argc, argv, "--version")) {
        puts("kiln " KILN_VERSION);
        return kn_tool_end(c.ctx, "kiln", KN_OK, KN_OK, KN_SAY_ALL);
    }
    c.verb = argv[1];
    kn_status status = kn_protect(c.ctx, work, &(kn_command){&c, argc, argv});
    kn_verbosity say = c.quiet ? KN_SAY_ERRORS : c.verbose ? KN_SAY_ALL : KN_SAY_SOME_WARNINGS;
    return kn_tool_end(c.ctx, "kiln", status, c.result, say);
}
