/* Generates text with a compiled byte-level language model, through the runtime's API alone:
   nothing of the compiler is linked.

     generate MODEL.kiln "PROMPT" [-n BYTES] [--temperature T] [--seed N]

   The model has inputs `input_ids` i64[batch, seq] and past_key_values.*, outputs `logits` and
   present.* in the same order: each step feeds the last byte and the cache that the step before
   gave. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/runtime.h"

enum { MAX_CACHES = 64, MAX_PROMPT = 256, VOCABULARY = 256 };

/* One tensor of the cache: f32[1, heads, length, width]. */
typedef struct {
    int64_t dims[KN_MAX_RANK];
    int rank;
    float *data;
} cache;

typedef struct {
    kn_ctx *ctx;
    kn_program *program;
    kn_session *session;
    cache caches[MAX_CACHES];
    int ncaches;
    int64_t vocabulary;
    float logits[VOCABULARY]; /* of the last byte */
} generator;

static int fail(const generator *g)
{
    for (int i = 0; i < kn_diag_count(g->ctx); i++) {
        const kn_diag *d = kn_diag_get(g->ctx, i);
        fprintf(stderr, "generate: %s%s%s\n", d->where ? d->where : "", d->where ? ": " : "",
                d->message);
    }
    return 1;
}

/* An empty cache: the shapes that the model declares, with length 0. */
static int start(generator *g)
{
    g->ncaches = kn_program_input_count(g->program) - 1;
    if (g->ncaches < 0 || g->ncaches > MAX_CACHES ||
        kn_program_output_count(g->program) != g->ncaches + 1) {
        fprintf(stderr, "generate: not a model with a cache\n");
        return 0;
    }
    for (int i = 0; i < g->ncaches; i++) {
        const kn_io *io = kn_program_input(g->program, i + 1);
        cache *c = &g->caches[i];
        c->rank = io->rank;
        for (int k = 0; k < io->rank; k++) {
            c->dims[k] = k == 0 ? 1 : strtoll(io->dims[k], NULL, 10); /* a name gives 0 */
        }
        c->data = malloc(1);
    }
    return 1;
}

static int keep_caches(generator *g)
{
    for (int i = 0; i < g->ncaches; i++) {
        cache *c = &g->caches[i];
        kn_dtype type;
        const void *data;
        if (kn_session_get_output(g->session, i + 1, &type, &c->rank, c->dims, &data) != KN_OK) {
            return 0;
        }
        size_t n = sizeof(float);
        for (int k = 0; k < c->rank; k++) {
            n *= (size_t)c->dims[k];
        }
        float *copy = realloc(c->data, n + 1);
        if (!copy) {
            return 0;
        }
        memcpy(copy, data, n);
        c->data = copy;
    }
    return 1;
}

static int keep_logits(generator *g)
{
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK];
    const void *data;
    if (kn_session_get_output(g->session, 0, &type, &rank, dims, &data) != KN_OK || rank != 3 ||
        dims[2] > VOCABULARY) {
        return 0;
    }
    g->vocabulary = dims[2];
    const float *last = (const float *)data + (dims[1] - 1) * dims[2];
    memcpy(g->logits, last, (size_t)dims[2] * sizeof *last);
    return 1;
}

static int step(generator *g, const int64_t *ids, int64_t n)
{
    if (kn_session_set_input(g->session, 0, KN_I64, 2, (const int64_t[]){1, n}, ids) != KN_OK) {
        return 0;
    }
    for (int i = 0; i < g->ncaches; i++) {
        const cache *c = &g->caches[i];
        if (kn_session_set_input(g->session, i + 1, KN_F32, c->rank, c->dims, c->data) != KN_OK) {
            return 0;
        }
    }
    return kn_session_run(g->session) == KN_OK && keep_logits(g) && keep_caches(g);
}

/* The next byte: the likeliest, or drawn at a temperature. */
static int64_t choose(const generator *g, double temperature, uint64_t *state)
{
    int64_t best = 0;
    for (int64_t i = 1; i < g->vocabulary; i++) {
        best = g->logits[i] > g->logits[best] ? i : best;
    }
    if (temperature <= 0) {
        return best;
    }
    double sum = 0, weights[VOCABULARY];
    for (int64_t i = 0; i < g->vocabulary; i++) {
        weights[i] = exp(((double)g->logits[i] - (double)g->logits[best]) / temperature);
        sum += weights[i];
    }
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    double at = (double)(*state >> 11) / 9007199254740992.0 * sum;
    int64_t pick = 0;
    while (pick + 1 < g->vocabulary && (at -= weights[pick]) >= 0) {
        pick++;
    }
    return pick;
}

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int generate(generator *g, const char *prompt, int n, double temperature, uint64_t seed)
{
    int64_t ids[MAX_PROMPT];
    int64_t length = 0;
    while (prompt[length] && length < MAX_PROMPT) {
        ids[length] = (unsigned char)prompt[length];
        length++;
    }
    double begin = now();
    if (!step(g, ids, length)) {
        return fail(g);
    }
    double first = now();
    fputs(prompt, stdout);
    for (int i = 0; i < n; i++) {
        int64_t next = choose(g, temperature, &seed);
        putchar((int)next);
        fflush(stdout);
        if (i + 1 < n && !step(g, &next, 1)) {
            return fail(g);
        }
    }
    double end = now();
    fprintf(stderr, "\n%lld bytes of prompt in %.1f ms, then %.0f bytes a second\n",
            (long long)length, 1e3 * (first - begin), n / (end - first));
    return 0;
}

int main(int argc, char **argv)
{
    int n = 200;
    double temperature = 0;
    uint64_t seed = 1;
    for (int i = 3; i + 1 < argc; i += 2) {
        n = strcmp(argv[i], "-n") == 0 ? atoi(argv[i + 1]) : n;
        temperature = strcmp(argv[i], "--temperature") == 0 ? atof(argv[i + 1]) : temperature;
        seed = strcmp(argv[i], "--seed") == 0 ? (uint64_t)atoll(argv[i + 1]) : seed;
    }
    if (argc < 3 || !*argv[2]) {
        fprintf(stderr,
                "usage: generate MODEL.kiln \"PROMPT\" [-n BYTES] [--temperature T] [--seed N]\n");
        return 2;
    }
    generator g = {.ctx = kn_ctx_create()};
    int result = 1;
    if (!g.ctx) {
        return 5;
    }
    if (kn_program_load(g.ctx, argv[1], &g.program) != KN_OK ||
        kn_session_create(g.ctx, g.program, &g.session) != KN_OK) {
        result = fail(&g);
    } else if (start(&g)) {
        result = generate(&g, argv[2], n, temperature, seed);
    }
    for (int i = 0; i < g.ncaches; i++) {
        free(g.caches[i].data);
    }
    kn_session_destroy(g.session);
    kn_program_destroy(g.program);
    kn_ctx_destroy(g.ctx);
    return result;
}
