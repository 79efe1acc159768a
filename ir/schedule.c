/* Schedule records and the rows that follow from them. */
#include "ir/schedule.h"

kn_schedule *kn_schedule_make(kn_arena *a, const kn_nest *nest)
{
    kn_schedule *s = KN_NEW(a, kn_schedule);
    s->nstmts = nest->nstmts;
    s->stmts = KN_ARRAY(a, kn_stmt_schedule, nest->nstmts + 1);
    s->sequence = KN_ARRAY(a, int, nest->nstmts + 1);
    return s;
}

void kn_schedule_place(kn_schedule *s, int stmt, int at)
{
    for (int i = s->nplaced++; i > at; i--)
        s->sequence[i] = s->sequence[i - 1];
    s->sequence[at] = stmt;
}

void kn_schedule_remove(kn_schedule *s, int at)
{
    s->nplaced--;
    for (int i = at; i < s->nplaced; i++)
        s->sequence[i] = s->sequence[i + 1];
}

/* ---- rows ---- */

typedef struct {
    kn_arena *arena;
    const kn_schedule *schedule;
    kn_schedule_rows out;
} derivation;

/* The loop of a statement at a level, or -1. */
static int loop_at(const kn_schedule *s, int stmt, int level)
{
    return level < s->stmts[stmt].nloops ? s->stmts[stmt].loops[level] : -1;
}

/* Places of statements that share `level` loops; those side by side with one more in common go on
   together. */
static void derive(const derivation *d, const int *stmts, int n, int level)
{
    const kn_schedule *s = d->schedule;
    for (int done = 0, count, place = 0; done < n; done += count, place++) {
        int loop = loop_at(s, stmts[done], level);
        count = 1;
        while (loop >= 0 && done + count < n && loop_at(s, stmts[done + count], level) == loop)
            count++;
        for (int i = done; i < done + count; i++)
            d->out.rows[stmts[i]][2 * level] = kn_index(d->arena, place);
        if (loop < 0)
            continue;
        for (int i = done; i < done + count; i++)
            d->out.rows[stmts[i]][2 * level + 1] = s->stmts[stmts[i]].rows[level];
        derive(d, stmts + done, count, level + 1);
    }
}

kn_schedule_rows kn_schedule_derive(kn_arena *a, const kn_schedule *s)
{
    derivation d = {.arena = a, .schedule = s};
    d.out.nrows = 1;
    for (int i = 0; i < s->nplaced; i++) {
        int rows = 2 * s->stmts[s->sequence[i]].nloops + 1;
        d.out.nrows = rows > d.out.nrows ? rows : d.out.nrows;
    }
    d.out.rows = KN_ARRAY(a, const kn_expr **, s->nstmts + 1);
    for (int i = 0; i < s->nplaced; i++) {
        const kn_expr **rows = KN_ARRAY(a, const kn_expr *, d.out.nrows);
        for (int k = 0; k < d.out.nrows; k++)
            rows[k] = kn_index(a, 0);
        d.out.rows[s->sequence[i]] = rows;
    }
    derive(&d, s->sequence, s->nplaced, 0);
    return d.out;
}
