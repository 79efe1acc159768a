/* A scan of a model's wire format before protobuf sees it. */
#ifndef KN_FRONTEND_ONNX_SCAN_H
#define KN_FRONTEND_ONNX_SCAN_H

#include "support/arena.h"
#include "support/file.h"

enum {
    KN_ONNX_MAX_DEPTH = 64,      /* messages inside messages */
    KN_ONNX_MAX_FIELDS = 1000000 /* of the whole file; decoded, each may take some 100 bytes */
};

/* Rewrites the bytes of an ONNX model as an equivalent message without what Kiln does not read and
   without the raw bytes of tensors: each gets mapped_offset and mapped_size, its place in the file,
   instead. The result is small, and its nesting is bounded. Raises KN_INVALID with the offset of
   what is broken. */
typedef struct {
    const unsigned char *data;
    size_t size;
} kn_bytes;
kn_bytes kn_onnx_scan(kn_arena *a, const kn_file *file);
/* The same for a file that holds one tensor. */
kn_bytes kn_onnx_scan_tensor(kn_arena *a, const kn_file *file);

#endif
