/* Any bytes as a target's JSON: refused with a message, or a target whose library verifies. */
#include <stdlib.h>

#include "ir/target.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    const char *text;
    size_t size;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_input(void *arg)
{
    const input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const kn_target *t = kn_target_parse(a, "input", in->text, in->size);
    require(t->library->nfuncs == t->ninstructions);
    kn_arena_destroy(a);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .text = (const char *)data, .size = size};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
