/* NumPy's .npy files (numpy.lib.format, versions 1 to 3): a magic, the length of a header, the header
   (a Python dictionary), then the elements, row-major. */
#ifndef KN_SUPPORT_NPY_H
#define KN_SUPPORT_NPY_H

#include "support/arena.h"
#include "support/file.h"

typedef struct {
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK];
    size_t offset, bytes; /* of the elements in the file */
} kn_npy;

bool kn_npy_detect(const kn_file *file);
/* Raises KN_INVALID, or KN_UNSUPPORTED for an order or element type that Kiln has not. */
kn_npy kn_npy_read(kn_arena *a, const kn_file *file);

/* Raises KN_UNSUPPORTED for an element type that NumPy has not, KN_ENVIRONMENT when the file cannot
   be written. */
void kn_npy_write(kn_arena *a, const char *path, kn_dtype type, int rank, const int64_t *dims,
                  kn_piece data);

#endif
