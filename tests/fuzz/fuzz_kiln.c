/* Any bytes as a .kiln file: refused with a message, or a manifest whose expressions have values
   and whose weights lie in the file. The hashes are left out, or no changed byte would get past
   them; the code is relocated, never made executable. */
#include <stdlib.h>

#include "runtime/kiln_file.h"
#include "runtime/object.h"
#include "runtime/shape.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    kn_file file;
} input;

static volatile unsigned char sink;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_manifest(const kn_kiln *k)
{
    for (int i = 0; i < k->nweights; i++) {
        const kn_st_tensor *t = kn_safetensors_find(k->container, k->weights[i].name);
        require(t && t->offset + t->bytes <= k->file->size);
        require(k->data[i] == k->file->data + t->offset);
    }
    for (int i = 0; i < k->noutputs; i++) {
        require(k->outputs[i].rank <= KN_MAX_RANK);
        require(!k->outputs[i].alias || k->ninputs > 0);
    }
    for (size_t i = 0; i < k->code.size; i++)
        sink ^= ((const unsigned char *)k->code.data)[i];
}

static void read_input(void *arg)
{
    input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const kn_kiln *k = kn_kiln_read(a, &in->file);
    check_manifest(k);
    kn_object_check(in->ctx, (kn_loc){.file = "input"}, k->code.data, k->code.size, NULL, 0);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .file = {"input", data, size}};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
