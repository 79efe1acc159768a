/* Any bytes as a file of one tensor, .npy or ONNX's TensorProto: refused with a message, or as many
   bytes as its type and shape say, all readable. */
#include <stdlib.h>

#include "frontend/frontend.h"
#include "support/dtype.h"
#include "support/npy.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    kn_file file;
} input;

static volatile unsigned char sink;

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check(kn_dtype type, int rank, const int64_t *dims, const unsigned char *data,
                  size_t bytes)
{
    int64_t count = 1;
    require(rank <= KN_MAX_RANK);
    for (int i = 0; i < rank; i++) {
        require(dims[i] >= 0 && !__builtin_mul_overflow(count, dims[i], &count));
    }
    require(bytes == (size_t)kn_dtype_bytes(type, count));
    for (size_t i = 0; i < bytes; i++) {
        sink ^= data[i];
    }
}

static void read_input(void *arg)
{
    input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    if (kn_npy_detect(&in->file)) {
        kn_npy t = kn_npy_read(a, &in->file);
        require(t.offset <= in->file.size && t.bytes <= in->file.size - t.offset);
        check(t.type, t.rank, t.dims, in->file.data + t.offset, t.bytes);
    } else {
        kn_array t = kn_onnx_read_array(a, &in->file);
        check(t.type, t.rank, t.dims, t.data, t.bytes);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .file = {"no_such_folder/input", data, size}};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    kn_ctx_destroy(in.ctx);
    return 0;
}
