/* What the edits of a schedule share: edit.c and a file for each edit that is larger. */
#ifndef KN_PASSES_SCHEDULE_EDIT_H
#define KN_PASSES_SCHEDULE_EDIT_H

#include "passes/schedule/schedule.h"

typedef struct {
    kn_arena *arena;
    kn_ctx *ctx;
    kn_nest *nest;
    kn_schedule *schedule;
    const kn_edit *edit;
    const kn_target *target; /* NULL: the host */
} kn_editor;

/* The level of the loop that a statement has for an iterator of its own; -1 when there is none. */
int kn_edit_level(const kn_editor *ed, int stmt, const char *iter);
/* The level at which a loop is around a statement; -1 when it is not. */
int kn_edit_level_of_loop(const kn_stmt_schedule *s, int loop);
/* The number of the loop that the text names; raises KN_INVALID at the edit. */
int kn_edit_loop_named(const kn_editor *ed, const char *name);
/* The place of an iterator that the statement has. */
int kn_edit_iterator(const kn_stmt *s, const char *name);

void kn_edit_stage(const kn_editor *ed);

#endif
