/* Any bytes as an ONNX model: refused with a message, or a graph that verifies and prints. Import
   and inference of shapes only; nothing is lowered. */
#include <stdlib.h>

#include "frontend/frontend.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    kn_file file;
    bool imported; /* what comes after must not fail */
} input;

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void import(void *arg)
{
    input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const kn_graph *g = kn_onnx_import(a, &in->file, NULL);
    in->imported = true;
    kn_graph_verify(g);
    kn_str text = kn_str_make(a);
    kn_graph_print(&text, g);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create()};
    require(in.ctx != NULL);
    in.file = (kn_file){.path = "no_such_folder/input", .data = data, .size = size};
    kn_status status = kn_protect(in.ctx, import, &in);
    require(status == KN_OK || !in.imported);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    int errors = 0;
    for (int i = 0; i < kn_diag_count(in.ctx); i++) {
        errors += kn_diag_get(in.ctx, i)->severity == KN_ERROR;
    }
    require((errors > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
