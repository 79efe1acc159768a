/* What the unit tests share: cmocka, a fixture with a context and an arena, and running a body that
 * should fail. */
#ifndef KN_TESTS_UNIT_H
#define KN_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/arena.h"

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
} fixture;

static inline int fixture_setup(void **state)
{
    static fixture f;
    f.ctx = kn_ctx_create();
    f.arena = f.ctx ? kn_arena_create(f.ctx) : NULL;
    *state = &f;
    return f.ctx ? 0 : -1;
}

static inline int fixture_teardown(void **state)
{
    fixture *f = *state;
    kn_ctx_destroy(f->ctx);
    return 0;
}

/* A test with a fixture as its state. */
#define KN_TEST(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

/* The message recorded last, or "". */
static inline const char *last_message(const kn_ctx *ctx)
{
    int n = kn_diag_count(ctx);
    return n ? kn_diag_get(ctx, n - 1)->message : "";
}

#endif
