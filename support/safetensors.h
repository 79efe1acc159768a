/* The safetensors container (https://github.com/huggingface/safetensors, format description): 8
   bytes of header length, a JSON header, then the tensors' bytes without holes. The reader is a
   small one of its own, so that the runtime needs no JSON library: it checks every number against
   the file. */
#ifndef KN_SUPPORT_SAFETENSORS_H
#define KN_SUPPORT_SAFETENSORS_H

#include "support/arena.h"
#include "support/file.h"
#include "support/str.h"

typedef struct {
    const char *name;
    kn_dtype dtype;
    int rank;
    int64_t dims[KN_MAX_RANK];
    size_t offset, bytes; /* offset from the start of the file */
} kn_st_tensor;

typedef struct {
    const char *key, *value;
} kn_st_meta;

typedef struct {
    const kn_file *file;
    kn_st_tensor *tensors; /* in order of offset */
    int n;
    kn_st_meta *meta; /* __metadata__, in file order */
    int nmeta;
    kn_map by_name;
} kn_safetensors;

/* Raises KN_INVALID with the file, the tensor, expected and found; KN_UNSUPPORTED for an element
   type of the format that Kiln has none for. */
kn_safetensors *kn_safetensors_read(kn_arena *arena, const kn_file *file);
const kn_st_tensor *kn_safetensors_find(const kn_safetensors *st, const char *name);
const char *kn_safetensors_meta(const kn_safetensors *st, const char *key); /* NULL when absent */

/* One tensor to write. */
typedef struct {
    const char *name;
    kn_dtype dtype;
    int rank;
    const int64_t *dims;
    const void *data;
    size_t align; /* of its place in the file, a power of two; 0: none. A gap is filled by a U8
                     tensor `__pad__.N` */
} kn_st_item;
/* Writes the tensors in the order given. Types that the format lacks (i4, u4, index) raise
   KN_UNSUPPORTED: pass their bytes as U8. Raises KN_ENVIRONMENT when the file cannot be written. */
void kn_safetensors_write(kn_arena *arena, const char *path, const kn_st_meta *meta, int nmeta,
                          const kn_st_item *items, int n);

#endif
