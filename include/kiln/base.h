/* What every public header shares: statuses, element types, diagnostics. */
#ifndef KILN_BASE_H
#define KILN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a call returns. The values are the exit codes of the programs (docs: README). */
typedef enum {
    KN_OK = 0,
    KN_MISMATCH = 1,    /* a comparison failed */
    KN_USAGE = 2,       /* the call or the command line is wrong; NULL where something must be */
    KN_UNSUPPORTED = 3, /* something in the model or the target is not supported */
    KN_INVALID = 4,     /* a bad input file or value */
    KN_ENVIRONMENT = 5, /* the machine failed us: memory, disk, no compiler */
    KN_INTERNAL = 6     /* a defect of Kiln; programs exit with 5 */
} kn_status;

typedef enum {
#define KN_DTYPE(id, name, bits, class, ctype) KN_##id,
#include "kiln/dtypes.def"
#undef KN_DTYPE
    KN_DTYPE_COUNT
} kn_dtype;

enum { KN_MAX_RANK = 12 };

typedef enum { KN_NOTE, KN_WARNING, KN_ERROR } kn_severity;

/* One message. `file` may be NULL; `line` and `column` are 1-based, 0 when there is none; `where`
   names a node, tensor or JSON path, or is NULL. The strings live until kn_diag_clear(). */
typedef struct {
    kn_severity severity;
    kn_status status;
    const char *file;
    int line, column;
    const char *where;
    const char *message;
} kn_diag;

/* A context: diagnostics, and the memory of what is made with it. One thread at a time; any number
 * of them. */
typedef struct kn_ctx kn_ctx;
kn_ctx *kn_ctx_create(void); /* NULL when memory is out */
void kn_ctx_destroy(kn_ctx *ctx);
/* The diagnostics so far, oldest first. A thousand are kept; later ones are only counted, but for
   what ends a call: that replaces the last. They live until kn_diag_clear(). */
int kn_diag_count(const kn_ctx *ctx);
int kn_diag_dropped(const kn_ctx *ctx);
const kn_diag *kn_diag_get(const kn_ctx *ctx, int i);
void kn_diag_clear(kn_ctx *ctx);

#ifdef __cplusplus
}
#endif
#endif
