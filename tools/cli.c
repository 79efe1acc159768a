/* The command line of a tool: see cli.h. */
#include "tools/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/driver.h"

/* ---- flags ---- */

void kn_tool_usage(kn_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char message[512];
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kn_raise(ctx, KN_USAGE, kn_loc_none(), "%s (see --help)", message);
}

int64_t kn_tool_number(kn_ctx *ctx, const char *flag, const char *text, const char *end)
{
    char *stop;
    errno = 0;
    long long value = strtoll(text, &stop, 10);
    if (errno || stop == text || (end ? stop != end : *stop != '\0')) {
        kn_tool_usage(ctx, "%s: `%s` is not a whole number", flag, text);
    }
    return value;
}

void kn_tool_pass(kn_ctx *ctx, const char *flag, const char *name, bool all)
{
    if (name && !(all && strcmp(name, "all") == 0)) {
        kn_driver_check_pass(ctx, flag, name);
    }
}

static double real(kn_ctx *ctx, const char *flag, const char *text)
{
    char *stop;
    double value = strtod(text, &stop);
    if (stop == text || *stop || !(value >= 0)) {
        kn_tool_usage(ctx, "%s: `%s` is not a number", flag, text);
    }
    return value;
}

kn_size kn_tool_dim(kn_ctx *ctx, const char *text)
{
    const char *eq = strchr(text, '=');
    if (!eq) {
        kn_tool_usage(ctx, "--dim: expected NAME=N or NAME=LO:HI, found `%s`", text);
    }
    const char *colon = strchr(eq, ':');
    int64_t lo = kn_tool_number(ctx, "--dim", eq + 1, colon);
    int64_t hi = colon ? kn_tool_number(ctx, "--dim", colon + 1, NULL) : lo;
    if (lo < 0 || hi < lo) {
        kn_tool_usage(ctx, "--dim: `%s` is no range of sizes", text);
    }
    return (kn_size){kn_intern_n(ctx, text, (size_t)(eq - text)), lo, hi};
}

bool kn_tool_wants(int argc, char *const *argv, const char *flag)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], flag) == 0) {
            return true;
        }
    }
    return false;
}

static const kn_flag *find(const kn_flags *f, const char *name)
{
    for (int i = 0; i < f->nflags; i++) {
        if (strcmp(f->flags[i].name, name) == 0) {
            return &f->flags[i];
        }
    }
    kn_tool_usage(f->ctx, "there is no option %s", name);
}

static bool takes_value(const kn_flag *flag)
{
    return !flag->on && !flag->alone;
}

static void take(const kn_flags *f, const kn_flag *flag, const char *value)
{
    if (flag->on) {
        *flag->on = true;
    } else if (flag->text) {
        *flag->text = value;
    } else if (flag->real) {
        *flag->real = real(f->ctx, flag->name, value);
    } else {
        flag->take(f->env, flag->name, value);
    }
}

void kn_flags_take(const kn_flags *f, int argc, char *const *argv)
{
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] != '-' || !argv[i][1]) {
            f->file(f->env, argv[i]);
            continue;
        }
        const kn_flag *flag = find(f, argv[i]);
        if (takes_value(flag) && ++i == argc) {
            kn_tool_usage(f->ctx, "%s wants a value", flag->name);
        }
        take(f, flag, takes_value(flag) ? argv[i] : NULL);
    }
}

/* ---- beginning and end ---- */

kn_ctx *kn_tool_begin(const char *program)
{
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    kn_ctx *ctx = kn_ctx_create();
    if (!ctx) {
        fprintf(stderr, "%s: out of memory\n", program);
    }
    return ctx;
}

/* Text of a stranger's file: no control characters, and not for ever. */
static void print_shown(const char *text)
{
    enum { SHOWN = 4000 };
    size_t n = strlen(text), most = n > SHOWN ? SHOWN : n;
    for (size_t i = 0; i < most; i++) {
        unsigned char c = (unsigned char)text[i];
        fputc(c < 0x20 || c == 0x7F ? '?' : c, stderr);
    }
    fputs(n > most ? "..." : "", stderr);
}

static void print_diagnostic(const char *program, const kn_diag *d)
{
    static const char *const severities[] = {"note", "warning", "error"};
    print_shown(d->file ? d->file : program);
    fputs(d->file ? ":" : ": ", stderr);
    if (d->line) {
        fprintf(stderr, "%d:%d:", d->line, d->column);
    }
    fprintf(stderr, "%s%s: ", d->file || d->line ? " " : "", severities[d->severity]);
    if (d->where) {
        print_shown(d->where);
        fputs(": ", stderr);
    }
    print_shown(d->message);
    fputc('\n', stderr);
}

/* All errors with what is noted to them; of the warnings some. */
static void print_diagnostics(const kn_ctx *ctx, const char *program, kn_verbosity say)
{
    enum { SHOWN = 8 };
    int warnings = 0, hidden = 0;
    for (int i = 0; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        warnings += d->severity == KN_WARNING;
        bool shown = d->severity == KN_ERROR || say == KN_SAY_ALL ||
                     (say == KN_SAY_SOME_WARNINGS && (d->severity == KN_NOTE || warnings <= SHOWN));
        hidden += d->severity == KN_WARNING && !shown;
        if (shown) {
            print_diagnostic(program, d);
        }
    }
    if (hidden && say == KN_SAY_SOME_WARNINGS) {
        fprintf(stderr, "%s: %d more warnings (-v prints them)\n", program, hidden);
    }
}

/* Whether stdout took everything. Whoever has closed a pipe knows that. */
static bool end_output(const char *program)
{
    errno = 0;
    bool failed = fflush(stdout) != 0 || ferror(stdout);
    if (failed && errno != EPIPE) {
        fprintf(stderr, "%s: error: cannot write the output: %s\n", program,
                errno ? strerror(errno) : "an earlier write failed");
    }
    return !failed;
}

int kn_tool_end(kn_ctx *ctx, const char *program, kn_status status, int result, kn_verbosity say)
{
    print_diagnostics(ctx, program, say);
    kn_ctx_destroy(ctx);
    if (!end_output(program)) {
        return KN_ENVIRONMENT;
    }
    return status == KN_OK ? result : status == KN_INTERNAL ? KN_ENVIRONMENT : (int)status;
}
