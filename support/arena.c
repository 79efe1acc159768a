/* A bump allocator over chunks that double in size. An object too large for what is left of a chunk
   gets a chunk, and if it is larger than a chunk, one of its own behind the current one. Under
   AddressSanitizer every object is such a chunk. Chunks come zeroed and are never reused, so
   objects are zero without further ado. */
#include "support/arena.h"

#include <assert.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define ONE_MALLOC_PER_OBJECT 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ONE_MALLOC_PER_OBJECT 1
#endif
#endif
#ifndef ONE_MALLOC_PER_OBJECT
#define ONE_MALLOC_PER_OBJECT 0
#endif

enum { ALIGN = 16, FIRST_CHUNK = 4096, LAST_CHUNK = 1 << 20 };

typedef struct chunk {
    struct chunk *next;
    size_t used, size; /* of data */
    _Alignas(ALIGN) char data[];
} chunk;

struct kn_arena {
    kn_ctx *ctx;
    chunk *chunks; /* the first one is being filled */
    size_t next_size;
    size_t bytes; /* asked for by the user */
};

static void free_arena(void *p)
{
    kn_arena *arena = p;
    for (chunk *c = arena->chunks; c;) {
        chunk *next = c->next;
        free(c);
        c = next;
    }
    free(arena);
}

kn_arena *kn_arena_create(kn_ctx *ctx)
{
    kn_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    arena->ctx = ctx;
    arena->next_size = FIRST_CHUNK;
    kn_defer(ctx, free_arena, arena);
    return arena;
}

void kn_arena_destroy(kn_arena *arena)
{
    if (arena)
        kn_release(arena->ctx, arena);
}

kn_ctx *kn_arena_ctx(const kn_arena *arena)
{
    return arena->ctx;
}

size_t kn_arena_bytes(const kn_arena *arena)
{
    return arena->bytes;
}

static _Noreturn void out_of_memory(kn_arena *arena, size_t bytes)
{
    kn_raise(arena->ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory: %zu bytes asked for",
             bytes);
}

static chunk *new_chunk(kn_arena *arena, size_t size)
{
    chunk *c = calloc(1, sizeof *c + size);
    if (!c)
        out_of_memory(arena, size);
    c->size = size;
    return c;
}

/* An object in a chunk that it fills alone, behind the one being filled. */
static void *alloc_alone(kn_arena *arena, size_t bytes)
{
    chunk *c = new_chunk(arena, bytes);
    c->used = bytes;
    if (arena->chunks) {
        c->next = arena->chunks->next;
        arena->chunks->next = c;
    } else {
        arena->chunks = c;
    }
    return c->data;
}

static void start_chunk(kn_arena *arena)
{
    chunk *c = new_chunk(arena, arena->next_size);
    c->next = arena->chunks;
    arena->chunks = c;
    if (arena->next_size < LAST_CHUNK)
        arena->next_size *= 2;
}

void *kn_alloc(kn_arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX - sizeof(chunk) - ALIGN)
        out_of_memory(arena, bytes);
    arena->bytes += bytes;
    if (ONE_MALLOC_PER_OBJECT)
        return alloc_alone(arena, bytes);
    size_t rounded = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    if (rounded > arena->next_size / 4)
        return alloc_alone(arena, rounded);
    if (!arena->chunks || arena->chunks->size - arena->chunks->used < rounded)
        start_chunk(arena);
    chunk *c = arena->chunks;
    void *p = c->data + c->used;
    c->used += rounded;
    return p;
}

void *kn_alloc_n(kn_arena *arena, size_t n, size_t size)
{
    if (size && n > SIZE_MAX / size)
        out_of_memory(arena, SIZE_MAX);
    return kn_alloc(arena, n * size);
}

char *kn_strdup(kn_arena *arena, const char *s)
{
    size_t n = strlen(s) + 1;
    return memcpy(kn_alloc(arena, n), s, n);
}

char *kn_format(kn_arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n < 0)
        out_of_memory(arena, 0);
    char *text = kn_alloc(arena, (size_t)n + 1);
    va_start(args, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    va_end(args);
    return text;
}

void *kn_vec_grow(kn_arena *arena, void *at, int n, int *cap, size_t size)
{
    assert(n >= 0 && *cap >= n);
    if (*cap > INT_MAX / 2)
        out_of_memory(arena, SIZE_MAX);
    int bigger = *cap ? 2 * *cap : 8;
    void *moved = kn_alloc_n(arena, (size_t)bigger, size);
    if (n)
        memcpy(moved, at, (size_t)n * size);
    *cap = bigger;
    return moved;
}
