/* No memory: each allocation of a piece of work fails in turn. Whatever it is, the work must end
   with KN_ENVIRONMENT and a message, leak nothing (LeakSanitizer looks), and leave no file
   half-written. The linker wraps malloc and its kin. */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "support/safetensors.h"

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

static void work_on_strings(kn_arena *arena)
{
    kn_ctx *ctx = kn_arena_ctx(arena);
    KN_VEC(const char *) v = {0};
    kn_map map = kn_map_make(arena);
    for (int i = 0; i < 40; i++) {
        const char *name = kn_intern_f(ctx, "name.%d", i);
        kn_push(arena, &v, name);
        kn_map_set(&map, name, NULL);
    }
    assert_int_equal(map.n, v.n);
}

static void work_on_files(kn_arena *arena)
{
    kn_ctx *ctx = kn_arena_ctx(arena);
    const char *dir = kn_temp_dir(ctx);
    const char *path = kn_format(arena, "%s/m", dir);
    static const int64_t dims[] = {3};
    static const kn_st_item items[] = {{"a", KN_U8, 1, dims, "abc", 0},
                                       {"b", KN_U8, 1, dims, "def", 64}};
    kn_safetensors_write(arena, path, &(kn_st_meta){"k", "v"}, 1, items, 2);
    kn_file *file = kn_file_map(ctx, path);
    assert_int_equal(kn_safetensors_read(arena, file)->n, 3);
    kn_file_close(ctx, file);
    kn_release(ctx, dir);
}

static void work(void *arg)
{
    kn_ctx *ctx = arg;
    kn_arena *arena = kn_arena_create(ctx);
    for (int i = 0; i < 20; i++)
        kn_alloc(kn_arena_create(ctx), 100);
    work_on_strings(arena);
    work_on_files(arena);
    kn_warn(ctx, kn_loc_none(), "%s", "a warning");
}

/* Fails the nth allocation; true when there was none such. */
static bool attempt(long n)
{
    kn_ctx *ctx = kn_ctx_create();
    assert_non_null(ctx);
    fail_at = n;
    kn_status status = kn_protect(ctx, work, ctx);
    bool done = fail_at >= 0;
    fail_at = -1;
    if (status != KN_OK) {
        assert_int_equal(status, KN_ENVIRONMENT);
        assert_memory_equal(last_message(ctx), "out of memory", 13);
    } else if (!done) {
        assert_string_equal(last_message(ctx), "out of memory"); /* in place of the warning */
    }
    kn_ctx_destroy(ctx);
    return done;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    long n = 0;
    while (!attempt(n))
        n++;
    assert_true(n > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests_name("support without memory", tests, NULL, NULL);
}
