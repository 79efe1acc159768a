/* Schedules: when the instances of a nest's statements run. One record a statement, in the form
   that docs/schedule.md describes: a row a schedule dimension, each an index expression over the
   statement's iterators and the sizes (a `select` makes it piecewise). Instances run in
   lexicographic order of their rows. */
#ifndef KN_IR_SCHEDULE_H
#define KN_IR_SCHEDULE_H

#include "ir/nest.h"

typedef struct {
    int nrows;
    const kn_expr **rows;
} kn_stmt_schedule;

/* All statements have the same number of rows. */
typedef struct {
    int nstmts;
    kn_stmt_schedule *stmts;
} kn_schedule;

/* The order in which the notation itself would run: statement by statement (an `over` group
   together), each over its iterators in order. */
kn_schedule *kn_schedule_original(kn_arena *a, const kn_nest *nest);
void kn_schedule_print(kn_str *out, const kn_nest *nest, const kn_schedule *s);

#endif
