/* The model in the repository, through the C API: what it writes is what an independent NumPy
   forward wrote (reference.json), with the cache and without, by way of the interpreter and of
   native code. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln.h"
#include "support/file.h"
#include "tests/unit/unit.h"

enum { MAX_INPUTS = 40, MAX_BYTES = 512, VOCABULARY = 256 };

typedef struct {
    kn_ctx *ctx;
    kn_program *program;
    kn_session *session;
    int ncaches;
    int64_t dims[MAX_INPUTS][KN_MAX_RANK];
    int rank[MAX_INPUTS];
    void *data[MAX_INPUTS];
    int64_t vocabulary;
    float logits[VOCABULARY];
} decoder;

static void require(decoder *d, kn_status status)
{
    if (status != KN_OK) {
        fail_msg("%s", last_message(d->ctx));
    }
}

static void open_model(decoder *d, kn_via via)
{
    *d = (decoder){.ctx = kn_ctx_create()};
    kn_model *model;
    require(d, kn_model_import(d->ctx, KILN_SOURCE_DIR "/examples/tinylm/tinylm.onnx", &model));
    require(d, kn_compile(model, &(kn_compile_options){.level = 2, .via = via}, &d->program));
    kn_model_destroy(model);
    require(d, kn_session_create(d->ctx, d->program, &d->session));
    d->ncaches = kn_program_input_count(d->program) - 1;
    assert_true(d->ncaches > 0 && d->ncaches < MAX_INPUTS);
}

static void forget(decoder *d)
{
    for (int i = 0; i < d->ncaches; i++) {
        const kn_io *io = kn_program_input(d->program, i + 1);
        d->rank[i] = io->rank;
        for (int k = 0; k < io->rank; k++) {
            d->dims[i][k] = k == 0 ? 1 : strtoll(io->dims[k], NULL, 10); /* `past` gives 0 */
        }
        free(d->data[i]);
        d->data[i] = malloc(1);
    }
}

static void close_model(decoder *d)
{
    for (int i = 0; i < d->ncaches; i++) {
        free(d->data[i]);
    }
    kn_session_destroy(d->session);
    kn_program_destroy(d->program);
    kn_ctx_destroy(d->ctx);
}

static void keep(decoder *d, int cache)
{
    kn_dtype type;
    const void *data;
    require(d, kn_session_get_output(d->session, cache + 1, &type, &d->rank[cache], d->dims[cache],
                                     &data));
    size_t bytes = sizeof(float);
    for (int k = 0; k < d->rank[cache]; k++) {
        bytes *= (size_t)d->dims[cache][k];
    }
    void *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    free(d->data[cache]);
    d->data[cache] = copy;
}

/* Feeds n bytes after what the cache holds; logits are those of the last. */
static void feed(decoder *d, const int64_t *ids, int64_t n)
{
    require(d, kn_session_set_input(d->session, 0, KN_I64, 2, (const int64_t[]){1, n}, ids));
    for (int i = 0; i < d->ncaches; i++) {
        require(
            d, kn_session_set_input(d->session, i + 1, KN_F32, d->rank[i], d->dims[i], d->data[i]));
    }
    require(d, kn_session_run(d->session));
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK];
    const void *data;
    require(d, kn_session_get_output(d->session, 0, &type, &rank, dims, &data));
    d->vocabulary = dims[2];
    memcpy(d->logits, (const float *)data + (n - 1) * dims[2], (size_t)dims[2] * sizeof(float));
    for (int i = 0; i < d->ncaches; i++) {
        keep(d, i);
    }
}

static int64_t likeliest(const decoder *d)
{
    int64_t best = 0;
    for (int64_t i = 1; i < d->vocabulary; i++) {
        best = d->logits[i] > d->logits[best] ? i : best;
    }
    return best;
}

static cJSON *read_reference(kn_ctx *ctx)
{
    const kn_file *f = kn_file_map(ctx, KILN_SOURCE_DIR "/examples/tinylm/reference.json");
    cJSON *json = cJSON_ParseWithLength((const char *)f->data, f->size);
    assert_non_null(json);
    return json;
}

static int read_ids(const cJSON *list, int64_t *ids)
{
    int n = 0;
    for (const cJSON *item = list->child; item && n < MAX_BYTES; item = item->next) {
        ids[n++] = (int64_t)item->valuedouble;
    }
    return n;
}

static void check_first_logits(const decoder *d, const cJSON *one)
{
    const cJSON *pair;
    cJSON_ArrayForEach(pair, cJSON_GetObjectItem(one, "first_logits_at"))
    {
        double want = pair->child->next->valuedouble;
        double got = (double)d->logits[(int)pair->child->valuedouble];
        assert_true(fabs(got - want) <= 1e-4 * (1 + fabs(want)));
    }
}

/* Greedy bytes with the cache: `count` of the reference's. */
static void check_case(decoder *d, const cJSON *one, int count)
{
    int64_t prompt[MAX_BYTES], want[MAX_BYTES];
    int n = read_ids(cJSON_GetObjectItem(one, "prompt_ids"), prompt);
    int m = read_ids(cJSON_GetObjectItem(one, "greedy"), want);
    forget(d);
    feed(d, prompt, n);
    check_first_logits(d, one);
    for (int i = 0; i < m && i < count; i++) {
        int64_t next = likeliest(d);
        assert_int_equal(next, want[i]);
        feed(d, &next, 1);
    }
}

static void check_all(kn_via via, int count)
{
    decoder d;
    open_model(&d, via);
    cJSON *reference = read_reference(d.ctx);
    const cJSON *one;
    cJSON_ArrayForEach(one, reference)
    {
        check_case(&d, one, count);
    }
    cJSON_Delete(reference);
    close_model(&d);
}

static void writes_what_the_reference_wrote(void **state)
{
    (void)state;
    check_all(KN_VIA_DEFAULT, MAX_BYTES);
}

static void writes_the_same_interpreted(void **state)
{
    (void)state;
    check_all(KN_VIA_INTERPRET, 4);
}

/* The last logits of a sequence fed at once, and byte by byte through the cache. */
static void cache_changes_nothing(void **state)
{
    (void)state;
    static const char text[] = "One day, Tom went to the park.";
    int64_t ids[sizeof text];
    float whole[VOCABULARY];
    decoder d;
    open_model(&d, KN_VIA_DEFAULT);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        ids[i] = (unsigned char)text[i];
    }
    forget(&d);
    feed(&d, ids, (int64_t)sizeof text - 1);
    memcpy(whole, d.logits, sizeof whole);
    forget(&d);
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        feed(&d, &ids[i], 1);
    }
    assert_memory_equal(whole, d.logits, (size_t)d.vocabulary * sizeof *whole);
    close_model(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_what_the_reference_wrote),
        cmocka_unit_test(writes_the_same_interpreted),
        cmocka_unit_test(cache_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
