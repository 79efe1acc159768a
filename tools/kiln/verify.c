/* kiln verify MODEL --data DIR: runs and compares with stored outputs. One line: ok, wrong,
 * unsupported or invalid. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "tools/kiln/kiln.h"

/* The largest differences of one output, and the first place that is out of tolerance. */
typedef struct {
    double absolute, relative;
    int64_t first; /* -1: none */
    double want, got;
} kn_difference;

enum { NOTHING = -2 }; /* for `first`: there are no differences, nothing was compared to the end */

/* What there is to say. */
typedef struct {
    kn_cli *cli;
    const char *output;  /* the wrong one, or NULL */
    kn_str wrong;        /* what is wrong with it; empty when all is well */
    kn_difference worst; /* of the wrong output, else the largest of all outputs */
} kn_verdict;

static bool close_enough(const kn_cli *c, kn_dtype type, double got, double want)
{
    const double ulp = type == KN_BF16 ? 0x1p-7 : 0; /* of its 8 bits: no tolerance can be finer */
    if (isnan(got) || isnan(want)) {
        return isnan(got) && isnan(want);
    }
    return got == want || fabs(got - want) <= c->atol + fmax(c->rtol, ulp) * fabs(want);
}

static kn_difference compare(const kn_cli *c, const kn_array *got, const kn_array *want)
{
    kn_difference d = {.first = -1};
    int64_t n = kn_cli_count(want);
    for (int64_t i = 0; i < n; i++) {
        double g = kn_cli_element(got, i), w = kn_cli_element(want, i);
        double absolute = g == w || (isnan(g) && isnan(w)) ? 0 : fabs(g - w);
        d.absolute = absolute > d.absolute ? absolute : d.absolute;
        double relative = absolute > 0 ? absolute / fabs(w) : 0;
        d.relative = relative > d.relative ? relative : d.relative;
        if (d.first < 0 && !close_enough(c, want->type, g, w)) {
            d.first = i;
            d.got = g;
            d.want = w;
        }
    }
    return d;
}

/* Debian's test data hold bfloat16 as the bits in uint16. */
static void take_bits(kn_array *a, kn_dtype wanted)
{
    if (wanted == KN_BF16 && a->type == KN_U16) {
        a->type = KN_BF16;
    }
}

static bool same_shape(const kn_array *x, const kn_array *y)
{
    return x->type == y->type && x->rank == y->rank &&
           memcmp(x->dims, y->dims, (size_t)x->rank * sizeof *x->dims) == 0;
}

static void put_shape(kn_str *s, const kn_array *a)
{
    kn_putf(s, "%s[", kn_dtype_name(a->type));
    for (int i = 0; i < a->rank; i++) {
        kn_putf(s, "%s%lld", i ? ", " : "", (long long)a->dims[i]);
    }
    kn_put(s, "]");
}

/* Says what is wrong with an output; nothing when it is right. */
static void judge(kn_verdict *v, const kn_io *io, const kn_array *got, const kn_array *want)
{
    kn_str *out = &v->wrong;
    if (!same_shape(got, want)) {
        v->output = io->name;
        v->worst.first = NOTHING;
        kn_putf(out, "%s: expected ", io->name);
        put_shape(out, want);
        kn_put(out, ", found ");
        put_shape(out, got);
        return;
    }
    kn_difference d = compare(v->cli, got, want);
    v->worst.absolute = fmax(d.absolute, v->worst.absolute);
    v->worst.relative = fmax(d.relative, v->worst.relative);
    if (d.first >= 0) {
        v->output = io->name;
        v->worst = d;
        kn_putf(out,
                "%s: largest difference %.3g absolute, %.3g relative; at %lld expected %.9g, found "
                "%.9g",
                io->name, d.absolute, d.relative, (long long)d.first, d.want, d.got);
    }
}

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

static const char *stored(const kn_cli *c, const char *dir, const char *kind, int i)
{
    return kn_intern_f(c->ctx, "%s/%s_%d.pb", dir, kind, i);
}

/* Runs on one folder's inputs. */
static void verify_folder(kn_verdict *v, const kn_program *p, kn_session *s, const char *dir)
{
    kn_cli *c = v->cli;
    for (int i = 0; i < kn_program_input_count(p); i++) {
        kn_array a = kn_cli_read_array(c, stored(c, dir, "input", i));
        take_bits(&a, kn_program_input(p, i)->type);
        kn_cli_set_input(c, s, i, &a);
    }
    kn_cli_require(c, kn_session_run(s));
    for (int i = 0; i < kn_program_output_count(p) && v->wrong.n == 0; i++) {
        if (!exists(stored(c, dir, "output", i))) {
            kn_raise(c->ctx, KN_INVALID, (kn_loc){.file = kn_intern(c->ctx, dir)},
                     "no output_%d.pb", i);
        }
        kn_array want = kn_cli_read_array(c, stored(c, dir, "output", i));
        take_bits(&want, kn_program_output(p, i)->type);
        kn_array got = kn_cli_get_output(c, s, p, i);
        judge(v, kn_program_output(p, i), &got, &want);
    }
}

/* ---- what is printed ---- */

/* JSON has neither infinities nor NaN: they become null. */
static void print_json(const kn_verdict *v, const char *result, const char *message)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "result", result);
    if (v->output) {
        cJSON_AddStringToObject(json, "output", v->output);
    }
    if (v->worst.first != NOTHING) {
        cJSON_AddNumberToObject(json, "largest_absolute", v->worst.absolute);
        cJSON_AddNumberToObject(json, "largest_relative", v->worst.relative);
    }
    if (v->worst.first >= 0) {
        cJSON_AddNumberToObject(json, "at", (double)v->worst.first);
        cJSON_AddNumberToObject(json, "expected", v->worst.want);
        cJSON_AddNumberToObject(json, "found", v->worst.got);
    }
    if (message) {
        cJSON_AddStringToObject(json, "message", message);
    }
    kn_cli_print_json(v->cli, json);
}

static void print_verdict(const kn_verdict *v, const char *result, const char *message)
{
    if (v->cli->json) {
        print_json(v, result, message);
    } else {
        printf("%s%s%s\n", result, message ? ": " : "", message ? message : "");
    }
}

static void verify(void *env)
{
    kn_verdict *v = env;
    kn_cli *c = v->cli;
    kn_program *p = kn_cli_program(c);
    kn_session *s = kn_cli_session(c, p);
    for (int i = 0; i < c->ndata && v->wrong.n == 0; i++) {
        verify_folder(v, p, s, c->data[i]);
    }
    bool ok = v->wrong.n == 0;
    print_verdict(v, ok ? "ok" : "wrong", ok ? NULL : kn_str_get(&v->wrong));
    kn_release(c->ctx, s);
    kn_program_destroy(p);
    c->result = ok ? KN_OK : KN_MISMATCH;
}

/* The file that the messages are about, where none of the errors says one. */
static const char *noted_file(const kn_ctx *ctx)
{
    const char *file = NULL;
    for (int i = 0; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        if (d->severity == KN_ERROR && d->file) {
            return NULL;
        }
        file = d->severity == KN_NOTE && d->file ? d->file : file;
    }
    return file;
}

/* All errors in one line, each file named once. */
static const char *errors_text(const kn_cli *c)
{
    kn_str s = kn_str_make(c->arena);
    const char *file = noted_file(c->ctx);
    if (file) {
        kn_putf(&s, "%s: ", file);
    }
    for (int i = 0, n = 0; i < kn_diag_count(c->ctx); i++) {
        const kn_diag *d = kn_diag_get(c->ctx, i);
        if (d->severity != KN_ERROR) {
            continue;
        }
        kn_put(&s, n++ ? "; " : "");
        if (d->file && (d->line || d->file != file)) {
            kn_putf(&s, "%s:", d->file);
            if (d->line) {
                kn_putf(&s, "%d:%d:", d->line, d->column);
            }
            kn_put(&s, " ");
        }
        file = d->file ? d->file : file;
        kn_putf(&s, "%s%s%s", d->where ? d->where : "", d->where ? ": " : "", d->message);
    }
    return kn_str_get(&s);
}

static void print_failure(kn_verdict *v, kn_status status)
{
    const char *word = status == KN_UNSUPPORTED                            ? "unsupported"
                       : status == KN_ENVIRONMENT || status == KN_INTERNAL ? "failed"
                                                                           : "invalid";
    v->worst.first = NOTHING;
    v->output = NULL;
    print_verdict(v, word, errors_text(v->cli));
}

void kn_verb_verify(kn_cli *c)
{
    if (c->nfiles != 1 || c->ndata == 0) {
        kn_cli_usage(c, "verify needs one MODEL and --data DIR");
    }
    kn_verdict v = {c, NULL, kn_str_make(c->arena), {.first = -1}};
    kn_status status = kn_protect(c->ctx, verify, &v);
    if (status != KN_OK) {
        print_failure(&v, status);
        kn_diag_clear(c->ctx);
        c->result = status == KN_INTERNAL ? KN_ENVIRONMENT : (int)status;
    }
}
