/* Schedules: when the instances of a nest's statements run, apart from what they compute. A schedule
   is a tree of loops, kept as a record a statement (the loops around it, outermost first, and what
   each runs over in it) and the order in which the statements stand in the text of the loops.
   Statements that stand side by side and share their outermost loops run fused in them. Nothing else
   is stored: the rows that isl orders instances by are derived (kn_schedule_rows). */
#ifndef KN_IR_SCHEDULE_H
#define KN_IR_SCHEDULE_H

#include "ir/nest.h"

typedef struct {
    int nloops;
    int *loops;           /* numbers of the loops, outermost first */
    const kn_expr **rows; /* over the statement's iterators and the sizes, one a loop */
} kn_stmt_schedule;

typedef struct {
    int nstmts, nloops;      /* loops are numbered from 0 */
    kn_stmt_schedule *stmts; /* by statement of the nest */
    int nplaced;
    int *sequence; /* the statements that are placed, in the order of the text */
} kn_schedule;

/* Room for all statements of the nest, none of them placed. */
kn_schedule *kn_schedule_make(kn_arena *a, const kn_nest *nest);
/* Places a statement at `at` of the sequence; it has its loops already. */
void kn_schedule_place(kn_schedule *s, int stmt, int at);
/* Takes the statement at `at` out again. */
void kn_schedule_remove(kn_schedule *s, int at);

/* A schedule as rows: per statement (place, loop, place, loop, ..., place), padded with 0 to one
   length. Instances run in the lexicographic order of their rows, two statements share d loops where
   their first 2 d rows agree. NULL for a statement that is not placed. */
typedef struct {
    int nrows;
    const kn_expr ***rows;
} kn_schedule_rows;
kn_schedule_rows kn_schedule_derive(kn_arena *a, const kn_schedule *s);

#endif
