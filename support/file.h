/* Files: mapping to read, and writing so that nothing is ever half-written. */
#ifndef KN_SUPPORT_FILE_H
#define KN_SUPPORT_FILE_H

#include "support/ctx.h"

typedef struct {
    const char *path; /* interned */
    const unsigned char *data;
    size_t size;
} kn_file;

/* Maps a file read-only; an empty file has data != NULL and size 0. Raises KN_INVALID when it
   cannot be opened or is no regular file. Unmapped by kn_file_close() or with the protection. */
kn_file *kn_file_map(kn_ctx *ctx, const char *path);
void kn_file_close(kn_ctx *ctx, kn_file *file);

/* Whether the context has that very file mapped, by whatever name. */
bool kn_file_is_mapped(const kn_ctx *ctx, const char *path);
/* Makes a folder unless it is there. Raises KN_ENVIRONMENT. */
void kn_make_dir(kn_ctx *ctx, const char *path);

/* Writes to PATH.tmp-PID, then renames; a device or a pipe is written in place, and a pipe
   that nobody reads is refused. Raises KN_ENVIRONMENT. */
void kn_file_write(kn_ctx *ctx, const char *path, const void *data, size_t size);
/* The same with several pieces in order. */
typedef struct {
    const void *data;
    size_t size;
} kn_piece;
void kn_file_write_pieces(kn_ctx *ctx, const char *path, const kn_piece *pieces, int n);
/* A fresh temporary directory, removed with all in it by kn_release(ctx, dir) or with the
 * protection. */
const char *kn_temp_dir(kn_ctx *ctx);

#endif
