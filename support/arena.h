/* Memory by lifetime. Objects of an arena are never freed one by one; the arena dies as a whole.
   Under AddressSanitizer every object is a malloc of its own, so that overruns and stale uses are
   seen. An allocation that fails raises KN_ENVIRONMENT in the arena's context. Memory is zeroed. */
#ifndef KN_SUPPORT_ARENA_H
#define KN_SUPPORT_ARENA_H

#include <string.h>

#include "support/ctx.h"

typedef struct kn_arena kn_arena;

/* The new arena is deferred: it dies with the protection that it was made in, unless destroyed
 * before. */
kn_arena *kn_arena_create(kn_ctx *ctx);
void kn_arena_destroy(kn_arena *arena);
kn_ctx *kn_arena_ctx(const kn_arena *arena);
size_t kn_arena_bytes(const kn_arena *arena);

void *kn_alloc(kn_arena *arena, size_t bytes);            /* 16-byte aligned */
void *kn_alloc_n(kn_arena *arena, size_t n, size_t size); /* overflow checked */
char *kn_strdup(kn_arena *arena, const char *s);
char *kn_format(kn_arena *arena, const char *fmt, ...) KN_PRINTF(2, 3);

#define KN_NEW(arena, T) ((T *)kn_alloc((arena), sizeof(T)))
#define KN_ARRAY(arena, T, n) ((T *)kn_alloc_n((arena), (size_t)(n), sizeof(T)))

/* A growing array in an arena: KN_VEC(int) v = {0}; kn_push(arena, &v, 3); v.at[i], v.n. */
#define KN_VEC(T) \
    struct {      \
        T *at;    \
        int n;    \
        int cap;  \
    }
void *kn_vec_grow(kn_arena *arena, void *at, int n, int *cap, size_t size);
#define kn_push(arena, v, item)                                                                \
    ((v)->n == (v)->cap                                                                        \
         ? (void)((v)->at = kn_vec_grow((arena), (v)->at, (v)->n, &(v)->cap, sizeof *(v)->at)) \
         : (void)0,                                                                            \
     (v)->at[(v)->n++] = (item))

#endif
