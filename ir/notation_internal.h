/* Shared by notation.c and notation_check.c. */
#ifndef KN_IR_NOTATION_INTERNAL_H
#define KN_IR_NOTATION_INTERNAL_H

#include "ir/notation.h"

/* What holds for any operands: every name is known, nothing is read or updated before it is
   defined, results are defined, reductions have an operator. Raises KN_INVALID at the statement, or
   at the notation. */
void kn_notation_check(kn_arena *a, const kn_notation *n);

/* The subscripts of a load: its arguments without the value behind `else`. */
static inline int kn_load_nsubs(const kn_expr *load)
{
    return load->nargs - load->guarded;
}

static inline bool kn_is_pack(const kn_expr *e)
{
    return e->kind == KN_E_VAR && e->name[0] == '*';
}

#endif
