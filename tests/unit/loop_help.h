/* Loop IR from text and running it: for the tests of the loop IR and of the interpreter. */
#ifndef KN_TESTS_LOOP_HELP_H
#define KN_TESTS_LOOP_HELP_H

#include "unit.h"

#include "ir/loop.h"

static inline const char *printed_module(kn_arena *a, const kn_module *m)
{
    kn_str s = kn_str_make(a);
    kn_module_print(&s, m);
    return kn_str_get(&s);
}

static inline kn_module *read_module(kn_arena *a, const char *text)
{
    kn_module *m = kn_module_parse(a, "test.kir", text, strlen(text));
    kn_module_verify(kn_arena_ctx(a), m);
    return m;
}

enum { MAX_BUFFERS = 8 };

/* One run of the last function of a module. */
typedef struct {
    kn_ctx *ctx;
    const char *text;
    int64_t scalars[MAX_BUFFERS];
    int nscalars;
    kn_memory buffers[MAX_BUFFERS];
    int nbuffers;
    uint64_t max_steps;
} run;

static inline void run_body(void *arg)
{
    const run *r = arg;
    kn_arena *a = kn_arena_create(r->ctx);
    const kn_module *m = read_module(a, r->text);
    kn_interp *in = kn_interp_compile(a, m, m->funcs[m->nfuncs - 1]);
    kn_interp_limit(in, r->max_steps);
    kn_interp_run(r->ctx, in, r->scalars, r->nscalars, r->buffers, r->nbuffers);
    kn_arena_destroy(a);
}

static inline void run_ok(run *r)
{
    kn_status status = kn_protect(r->ctx, run_body, r);
    if (status != KN_OK)
        fail_msg("%s", last_message(r->ctx));
}

/* Fails with this message, at this line (0: none). */
static inline void run_fails(run *r, const char *message, int line)
{
    assert_int_equal(kn_protect(r->ctx, run_body, r), KN_INVALID);
    assert_string_equal(last_message(r->ctx), message);
    if (line)
        assert_int_equal(kn_diag_get(r->ctx, kn_diag_count(r->ctx) - 1)->line, line);
}

#define MEMORY(array)          \
    {                          \
        (array), sizeof(array) \
    }

#endif
