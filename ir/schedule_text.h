/* Schedules as users write them: edits of the default schedule of kernels, in order. Grammar and
   meaning: docs/schedule.md. */
#ifndef KN_IR_SCHEDULE_TEXT_H
#define KN_IR_SCHEDULE_TEXT_H

#include "ir/lex.h"

typedef enum {
    KN_EDIT_SPLIT, /* split i 64 [-> outer, inner] */
    KN_EDIT_TILE,  /* tile i 64, j 64: splits, and the outer loops before the inner ones */
    KN_EDIT_ORDER, /* order r, i, j */
    KN_EDIT_FUSE,  /* fuse i, k: two loops that stand side by side become one */
    KN_EDIT_STAGE  /* stage A -> SPACE at i: a copy of what an iteration reads */
} kn_edit_kind;

/* A loop is named by an iterator of any statement in it. */
typedef struct {
    const char *loop;
    int64_t size;              /* SPLIT, TILE: iterations of the inner loop, > 0 */
    const char *outer, *inner; /* SPLIT, TILE: the names of the two that it becomes */
} kn_edit_loop;

typedef struct {
    kn_edit_kind kind;
    kn_loc loc;
    int nloops;
    kn_edit_loop *loops;
    const char *tensor, *space; /* STAGE */
} kn_edit;

typedef struct {
    kn_loc loc;
    const char
        *kernel; /* what the kernel is called, with or without its number: k3_matmul, matmul */
    int nedits;
    kn_edit *edits;
} kn_kernel_edits;

typedef struct {
    int n;
    kn_kernel_edits *kernels;
} kn_schedule_text;

/* Raises KN_INVALID with the place of the first mistake. `file` is for messages. */
kn_schedule_text *kn_schedule_parse(kn_arena *a, const char *file, const char *text, size_t n);
void kn_schedule_text_print(kn_str *out, const kn_schedule_text *t);
/* The edits for a kernel, or NULL. */
const kn_kernel_edits *kn_schedule_text_find(const kn_schedule_text *t, const char *kernel);

#endif
