/* kiln verify MODEL --data DIR: runs and compares with stored outputs. One line: ok, wrong,
 * unsupported or invalid. */
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
static void judge(const kn_cli *c, kn_str *out, const kn_io *io, const kn_array *got,
                  const kn_array *want)
{
    if (!same_shape(got, want)) {
        kn_putf(out, "%s: expected ", io->name);
        put_shape(out, want);
        kn_put(out, ", found ");
        put_shape(out, got);
        return;
    }
    kn_difference d = compare(c, got, want);
    if (d.first >= 0) {
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

/* Runs on one folder's inputs; what is wrong goes to `out`. */
static void verify_folder(kn_cli *c, const kn_program *p, kn_session *s, const char *dir,
                          kn_str *out)
{
    for (int i = 0; i < kn_program_input_count(p); i++) {
        kn_array a = kn_cli_read_array(c, stored(c, dir, "input", i));
        take_bits(&a, kn_program_input(p, i)->type);
        kn_cli_set_input(c, s, i, &a);
    }
    kn_cli_require(c, kn_session_run(s));
    for (int i = 0; i < kn_program_output_count(p) && out->n == 0; i++) {
        if (!exists(stored(c, dir, "output", i))) {
            kn_raise(c->ctx, KN_INVALID, (kn_loc){.file = kn_intern(c->ctx, dir)},
                     "no output_%d.pb", i);
        }
        kn_array want = kn_cli_read_array(c, stored(c, dir, "output", i));
        take_bits(&want, kn_program_output(p, i)->type);
        kn_array got = kn_cli_get_output(c, s, p, i);
        judge(c, out, kn_program_output(p, i), &got, &want);
    }
}

static void verify(void *env)
{
    kn_cli *c = env;
    kn_program *p = kn_cli_program(c);
    kn_session *s = kn_cli_session(c, p);
    kn_str wrong = kn_str_make(c->arena);
    for (int i = 0; i < c->ndata && wrong.n == 0; i++) {
        verify_folder(c, p, s, c->data[i], &wrong);
    }
    kn_release(c->ctx, s);
    kn_program_destroy(p);
    if (wrong.n) {
        printf("wrong: %s\n", kn_str_get(&wrong));
        c->result = KN_MISMATCH;
    } else {
        puts("ok");
    }
}

static void print_failure(const kn_cli *c, kn_status status)
{
    const char *word = status == KN_UNSUPPORTED                            ? "unsupported"
                       : status == KN_ENVIRONMENT || status == KN_INTERNAL ? "failed"
                                                                           : "invalid";
    printf("%s:", word);
    int printed = 0;
    for (int i = 0; i < kn_diag_count(c->ctx); i++) {
        const kn_diag *d = kn_diag_get(c->ctx, i);
        if (d->severity == KN_ERROR) {
            printf("%s %s%s%s", printed++ ? ";" : "", d->where ? d->where : "",
                   d->where ? ": " : "", d->message);
        }
    }
    puts("");
}

void kn_verb_verify(kn_cli *c)
{
    if (c->nfiles != 1 || c->ndata == 0) {
        kn_cli_usage(c, "verify needs one MODEL and --data DIR");
    }
    kn_status status = kn_protect(c->ctx, verify, c);
    if (status != KN_OK) {
        print_failure(c, status);
        kn_diag_clear(c->ctx);
        c->result = status == KN_INTERNAL ? KN_ENVIRONMENT : (int)status;
    }
}
