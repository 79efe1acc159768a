/* Any bytes as native code: read and relocated, or refused; never run. */
#include <stdlib.h>

#include "runtime/object.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    const unsigned char *data;
    size_t size;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void import(void)
{
}

static void check(void *arg)
{
    static const kn_import imports[] = {{"g", import}};
    const input *in = arg;
    kn_object_check(in->ctx, kn_loc_none(), in->data, in->size, imports, 1);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {kn_ctx_create(), data, size};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, check, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
