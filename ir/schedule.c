/* Schedule records: the notation's own order, and text. */
#include "ir/schedule.h"

static int depth_of(const kn_nest *nest)
{
    int depth = 0;
    for (int i = 0; i < nest->nstmts; i++) {
        depth = nest->stmts[i].niters > depth ? nest->stmts[i].niters : depth;
    }
    return depth;
}

/* Number of the statement, or of the first of its `over` group. */
static int group_start(const kn_nest *nest, int stmt)
{
    int start = stmt;
    while (start > 0 && nest->stmts[stmt].over >= 0 &&
           nest->stmts[start - 1].over == nest->stmts[stmt].over) {
        start--;
    }
    return start;
}

kn_schedule *kn_schedule_original(kn_arena *a, const kn_nest *nest)
{
    int depth = depth_of(nest), nrows = depth + 2;
    kn_schedule *s = KN_NEW(a, kn_schedule);
    s->nstmts = nest->nstmts;
    s->stmts = KN_ARRAY(a, kn_stmt_schedule, nest->nstmts + 1);
    for (int i = 0; i < nest->nstmts; i++) {
        const kn_stmt *st = &nest->stmts[i];
        const kn_expr **rows = KN_ARRAY(a, const kn_expr *, nrows);
        int n = 0, k = 0;
        rows[n++] = kn_index(a, group_start(nest, i));
        if (st->over >= 0) {
            rows[n++] = kn_var(a, KN_INDEX, st->iters[k++].name);
            rows[n++] = kn_index(a, i);
        }
        while (k < st->niters) {
            rows[n++] = kn_var(a, KN_INDEX, st->iters[k++].name);
        }
        while (n < nrows) {
            rows[n++] = kn_index(a, 0);
        }
        s->stmts[i] = (kn_stmt_schedule){nrows, rows};
    }
    return s;
}

void kn_schedule_print(kn_str *out, const kn_nest *nest, const kn_schedule *s)
{
    for (int i = 0; i < s->nstmts; i++) {
        kn_putf(out, "S%d %s:", i, nest->stmts[i].target);
        for (int k = 0; k < s->stmts[i].nrows; k++) {
            kn_put(out, k ? ", " : " [");
            kn_expr_print(out, s->stmts[i].rows[k], false);
        }
        kn_put(out, "]\n");
    }
}
