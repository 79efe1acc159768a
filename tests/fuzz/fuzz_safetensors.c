/* Any bytes as a safetensors file: read, or refused with one message. What is read must lie within
 * the file. */
#include <stdlib.h>

#include "support/safetensors.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    kn_file file;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check(const kn_safetensors *st)
{
    for (int i = 0; i < st->n; i++) {
        const kn_st_tensor *t = &st->tensors[i];
        require(t->offset <= st->file->size && t->bytes <= st->file->size - t->offset);
        require(kn_safetensors_find(st, t->name) == t);
    }
    for (int i = 0; i < st->nmeta; i++)
        require(kn_safetensors_meta(st, st->meta[i].key) == st->meta[i].value);
}

static void read_input(void *arg)
{
    input *in = arg;
    check(kn_safetensors_read(kn_arena_create(in->ctx), &in->file));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .file = {.path = "input", .data = data, .size = size}};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require(kn_diag_count(in.ctx) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
