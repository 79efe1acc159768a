/* Contexts: protections, deferred actions, diagnostics, interned strings. */
#include "unit.h"

#include <stdio.h>

/* A log of what ran, in order. */
typedef struct {
    kn_ctx *ctx;
    char text[64];
    char names[8]; /* arguments for note(): one letter each */
    kn_status inner;
} log;

static log *current;

static void note(void *arg)
{
    strncat(current->text, arg, 1);
}

static void defer(log *l, char name)
{
    l->names[name - 'a'] = name;
    kn_defer(l->ctx, note, &l->names[name - 'a']);
}

static log *start(void **state)
{
    static log l;
    l = (log){.ctx = ((fixture *)*state)->ctx};
    return current = &l;
}

static void raise_invalid(kn_ctx *ctx)
{
    kn_loc loc = {.file = kn_intern(ctx, "f.txt"), .line = 3, .column = 4, .where = "node"};
    kn_raise(ctx, KN_INVALID, loc, "expected %d, found %s", 1, "two");
}

static void do_nothing(void *arg)
{
    (void)arg;
}

static void protect_returns_ok(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, do_nothing, NULL), KN_OK);
    assert_int_equal(kn_diag_count(l->ctx), 0);
}

static void raise_plainly(void *arg)
{
    raise_invalid(arg);
}

static void raise_records_and_returns_the_status(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, raise_plainly, l->ctx), KN_INVALID);
    assert_int_equal(kn_diag_count(l->ctx), 1);
    const kn_diag *d = kn_diag_get(l->ctx, 0);
    assert_int_equal(d->severity, KN_ERROR);
    assert_int_equal(d->status, KN_INVALID);
    assert_string_equal(d->file, "f.txt");
    assert_int_equal(d->line, 3);
    assert_int_equal(d->column, 4);
    assert_string_equal(d->where, "node");
    assert_string_equal(d->message, "expected 1, found two");
}

static void defer_abc_and_raise(void *arg)
{
    log *l = arg;
    defer(l, 'a');
    defer(l, 'b');
    defer(l, 'c');
    raise_invalid(l->ctx);
}

static void deferred_run_last_first(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, defer_abc_and_raise, l), KN_INVALID);
    assert_string_equal(l->text, "cba");
}

static void defer_b(void *arg)
{
    defer(arg, 'b');
}

static void defer_around(void *arg)
{
    log *l = arg;
    defer(l, 'a');
    assert_int_equal(kn_protect(l->ctx, defer_b, l), KN_OK);
    assert_string_equal(l->text, "");
    defer(l, 'c');
    raise_invalid(l->ctx);
}

static void deferred_pass_to_the_outer_protection_on_success(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, defer_around, l), KN_INVALID);
    assert_string_equal(l->text, "cba");
}

static void fail_inside(void *arg)
{
    log *l = arg;
    defer(l, 'd');
    l->inner = kn_protect(l->ctx, defer_abc_and_raise, l);
    strcat(l->text, "|");
}

static void an_inner_failure_stays_inside(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, fail_inside, l), KN_OK);
    assert_int_equal(l->inner, KN_INVALID);
    assert_string_equal(l->text, "cba|");
    kn_release(l->ctx, &l->names['d' - 'a']);
    assert_string_equal(l->text, "cba|d");
}

static void release_in_the_middle(void *arg)
{
    log *l = arg;
    defer(l, 'a');
    defer(l, 'b');
    defer(l, 'c');
    kn_release(l->ctx, &l->names['b' - 'a']);
    raise_invalid(l->ctx);
}

static void a_released_action_runs_once(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, release_in_the_middle, l), KN_INVALID);
    assert_string_equal(l->text, "bca");
}

static void release_a(void *arg)
{
    log *l = arg;
    defer(l, 'c');
    kn_release(l->ctx, &l->names[0]);
    raise_invalid(l->ctx);
}

static void an_outer_action_is_released_inside(void **state)
{
    log *l = start(state);
    defer(l, 'a');
    defer(l, 'b');
    assert_int_equal(kn_protect(l->ctx, release_a, l), KN_INVALID);
    assert_string_equal(l->text, "ac");
    kn_release(l->ctx, &l->names[1]);
    assert_string_equal(l->text, "acb");
}

static void release_what_stands_outside(void *arg)
{
    log *l = arg;
    for (int i = 0; i < 50; i++) {
        kn_defer(l->ctx, do_nothing, l->text);
        kn_release(l->ctx, l);
        kn_defer(l->ctx, do_nothing, l);
        kn_release(l->ctx, l->text);
    }
}

static void released_places_are_used_again(void **state)
{
    log *l = start(state);
    kn_defer(l->ctx, do_nothing, l);
    for (int i = 0; i < 50; i++)
        assert_int_equal(kn_protect(l->ctx, release_what_stands_outside, l), KN_OK);
    kn_release(l->ctx, l);
}

static void the_context_runs_what_is_left(void **state)
{
    log *l = start(state);
    kn_ctx *own = l->ctx = kn_ctx_create();
    defer(l, 'a');
    defer(l, 'b');
    kn_ctx_destroy(own);
    assert_string_equal(l->text, "ba");
    kn_ctx_destroy(NULL);
}

static void make_arena_and_raise(void *arg)
{
    kn_ctx *ctx = arg;
    kn_arena *arena = kn_arena_create(ctx);
    const char *where = kn_intern(ctx, kn_format(arena, "node%d", 7));
    kn_raise(ctx, KN_UNSUPPORTED, (kn_loc){.where = where}, "%s", kn_strdup(arena, "a text"));
}

static void diagnostics_outlive_the_arena(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, make_arena_and_raise, l->ctx), KN_UNSUPPORTED);
    assert_string_equal(kn_diag_get(l->ctx, 0)->where, "node7");
    assert_string_equal(kn_diag_get(l->ctx, 0)->message, "a text");
}

static void list_and_raise(void *arg)
{
    kn_ctx *ctx = arg;
    kn_warn(ctx, kn_loc_none(), "w");
    kn_error(ctx, KN_UNSUPPORTED, kn_loc_none(), "e1");
    kn_error(ctx, KN_UNSUPPORTED, kn_loc_none(), "e2");
    kn_note(ctx, kn_loc_none(), "n");
    kn_raise_again(ctx, KN_UNSUPPORTED);
}

static void faults_are_listed_before_one_raise(void **state)
{
    log *l = start(state);
    assert_int_equal(kn_protect(l->ctx, list_and_raise, l->ctx), KN_UNSUPPORTED);
    assert_int_equal(kn_diag_count(l->ctx), 4);
    assert_int_equal(kn_diag_get(l->ctx, 0)->severity, KN_WARNING);
    assert_int_equal(kn_diag_get(l->ctx, 1)->severity, KN_ERROR);
    assert_string_equal(kn_diag_get(l->ctx, 2)->message, "e2");
    assert_int_equal(kn_diag_get(l->ctx, 3)->severity, KN_NOTE);
    kn_diag_clear(l->ctx);
    assert_int_equal(kn_diag_count(l->ctx), 0);
}

static void diagnostics_are_bounded_and_the_raised_one_kept(void **state)
{
    log *l = start(state);
    for (int i = 0; i < 5000; i++)
        kn_error(l->ctx, KN_INVALID, kn_loc_none(), "error %d", i);
    assert_int_equal(kn_diag_count(l->ctx), 1000);
    assert_int_equal(kn_diag_dropped(l->ctx), 4000);
    assert_int_equal(kn_protect(l->ctx, raise_plainly, l->ctx), KN_INVALID);
    assert_int_equal(kn_diag_count(l->ctx), 1000);
    assert_string_equal(last_message(l->ctx), "expected 1, found two");
    assert_string_equal(kn_diag_get(l->ctx, 998)->message, "error 998");
}

static void equal_strings_are_one_pointer(void **state)
{
    log *l = start(state);
    const char *first[500];
    for (int i = 0; i < 500; i++)
        first[i] = kn_intern_f(l->ctx, "name.%d", i);
    for (int i = 0; i < 500; i++) {
        char text[32];
        int n = snprintf(text, sizeof text, "name.%d, and more", i);
        assert_ptr_equal(kn_intern_n(l->ctx, text, (size_t)n - 10), first[i]);
        assert_ptr_not_equal(kn_intern(l->ctx, text), first[i]);
    }
    assert_ptr_equal(kn_intern(l->ctx, ""), kn_intern_n(l->ctx, "xyz", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(protect_returns_ok),
        KN_TEST(raise_records_and_returns_the_status),
        KN_TEST(deferred_run_last_first),
        KN_TEST(deferred_pass_to_the_outer_protection_on_success),
        KN_TEST(an_inner_failure_stays_inside),
        KN_TEST(a_released_action_runs_once),
        KN_TEST(an_outer_action_is_released_inside),
        KN_TEST(released_places_are_used_again),
        KN_TEST(the_context_runs_what_is_left),
        KN_TEST(diagnostics_outlive_the_arena),
        KN_TEST(faults_are_listed_before_one_raise),
        KN_TEST(diagnostics_are_bounded_and_the_raised_one_kept),
        KN_TEST(equal_strings_are_one_pointer),
    };
    return cmocka_run_group_tests_name("support ctx", tests, NULL, NULL);
}
