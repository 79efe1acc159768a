/* Any text as a schedule: refused with a message, or one whose text reads back to itself and which
   the lowering of a small kernel applies, or refuses. */
#include <stdlib.h>

#include "ir/schedule_text.h"
#include "passes/pass.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const char *text;
    size_t size;
    const kn_schedule_text *schedule;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const char *printed(kn_arena *a, const kn_schedule_text *t)
{
    kn_str s = kn_str_make(a);
    kn_schedule_text_print(&s, t);
    return kn_str_get(&s);
}

static void read_input(void *arg)
{
    input *in = arg;
    in->schedule = kn_schedule_parse(in->arena, "input", in->text, in->size);
}

static void reread(void *arg)
{
    const input *in = arg;
    const char *once = printed(in->arena, in->schedule);
    const kn_schedule_text *again = kn_schedule_parse(in->arena, "again", once, strlen(once));
    require(strcmp(printed(in->arena, again), once) == 0);
}

static void lower(void *arg)
{
    static const char graph[] = "graph @g(%x: i32[n, 6], %w: i32[6, 5]) -> %y: i32[n, 5] {\n"
                                "  %t = matmul(%x, %w)\n  %y = relu(%t)\n}\n";
    static const char *const passes[] = {"group", "lower", "contract", "scratch", "plan"};
    const input *in = arg;
    kn_unit u = {.ctx = in->ctx, .arena = in->arena, .schedule = in->schedule};
    u.graph = kn_graph_parse(in->arena, "graph", graph, sizeof graph - 1);
    kn_run_passes(&u, passes, 5, &(kn_pass_options){.verify_each = true});
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .text = (const char *)data, .size = size};
    require(in.ctx != NULL);
    in.arena = kn_arena_create(in.ctx);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    if (status == KN_OK) {
        require(kn_protect(in.ctx, reread, &in) == KN_OK);
        status = kn_protect(in.ctx, lower, &in);
        require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    }
    kn_ctx_destroy(in.ctx);
    return 0;
}
