/* Any text as a graph: refused with a message, or a graph that verifies, and whose text reads back
 * to itself. */
#include <stdlib.h>

#include "ir/graph.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    const char *text;
    size_t size;
    bool parsed; /* what comes after must not fail */
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const char *printed(kn_arena *a, const kn_graph *g)
{
    kn_str s = kn_str_make(a);
    kn_graph_print(&s, g);
    return kn_str_get(&s);
}

static void read_input(void *arg)
{
    input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    kn_graph *g = kn_graph_parse(a, "input", in->text, in->size);
    kn_graph_verify(g);
    in->parsed = true;
    const char *once = printed(a, g);
    kn_graph *again = kn_graph_parse(a, "again", once, strlen(once));
    kn_graph_verify(again);
    require(strcmp(printed(a, again), once) == 0);
    kn_graph_sweep(again);
    kn_graph_verify(again);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .text = (const char *)data, .size = size};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || !in.parsed);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
