/* No memory, seen from the C API: whichever allocation fails, a call answers KN_ENVIRONMENT,
   nothing leaks (LeakSanitizer looks), and all can be destroyed. */
#include "api_help.h"

#include <stdlib.h>

#include "support/file.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static long fail_at = -1; /* allocations until the one that fails; negative: none does */

static bool fails(void)
{
    return fail_at >= 0 && fail_at-- == 0;
}

void *__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return fails() ? NULL : __real_realloc(p, n);
}

/* Builds, prints, interprets. */
static kn_status interpret(kn_ctx *ctx, const char *path)
{
    kn_model *m = NULL;
    kn_program *p = NULL;
    char *text = NULL;
    float y[FFN_MAX_ROWS * FFN_OUT];
    (void)path;
    kn_status s = kn_model_create(ctx, "ffn", &m);
    s = s ? s : ffn_build(m);
    s = s ? s : kn_model_print(m, &text);
    s = s ? s : kn_compile(m, &(kn_compile_options){.via = KN_VIA_INTERPRET}, &p);
    s = s ? s : ffn_run(ctx, p, 3, y);
    free(text);
    kn_program_destroy(p);
    kn_model_destroy(m);
    return s;
}

static kn_status load(kn_ctx *ctx, const char *path)
{
    kn_program *p = NULL;
    float y[FFN_MAX_ROWS * FFN_OUT];
    kn_status s = kn_program_load(ctx, path, &p);
    s = s ? s : ffn_run(ctx, p, 3, y);
    kn_program_destroy(p);
    return s;
}

static bool says_so(const kn_ctx *ctx)
{
    for (int i = 0; i < kn_diag_count(ctx); i++)
        if (strncmp(kn_diag_get(ctx, i)->message, "out of memory", 13) == 0)
            return true;
    return false;
}

/* Fails the nth allocation; true when there was none such. */
static bool attempt(kn_status (*work)(kn_ctx *, const char *), const char *path, long n)
{
    fail_at = n;
    kn_ctx *ctx = kn_ctx_create();
    kn_status status = ctx ? work(ctx, path) : KN_ENVIRONMENT;
    bool done = fail_at >= 0;
    fail_at = -1;
    assert_int_equal(status, done ? KN_OK : KN_ENVIRONMENT);
    if (ctx && !done)
        assert_true(says_so(ctx));
    kn_ctx_destroy(ctx);
    return done;
}

/* Each of the first ones, then some. */
static void every_allocation_may_fail(kn_status (*work)(kn_ctx *, const char *), const char *path)
{
    long n = 0;
    while (!attempt(work, path, n))
        n += 1 + n / 400;
    assert_true(n > 20);
}

static void without_memory_to_interpret(void **state)
{
    (void)state;
    every_allocation_may_fail(interpret, NULL);
}

static void without_memory_to_load(void **state)
{
    fixture *f = *state;
    kn_model *m;
    if (!KILN_HAVE_LLVM)
        skip();
    const char *path = kn_format(f->arena, "%s/m.kiln", kn_temp_dir(f->ctx));
    assert_int_equal(kn_model_create(f->ctx, "ffn", &m), KN_OK);
    assert_int_equal(ffn_build(m), KN_OK);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_KILN, path), KN_OK);
    kn_model_destroy(m);
    every_allocation_may_fail(load, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {KN_TEST(without_memory_to_interpret),
                                       KN_TEST(without_memory_to_load)};
    ffn_weights();
    return cmocka_run_group_tests_name("the C API without memory", tests, NULL, NULL);
}
