/* Shared by expr.c, index.c, fold.c and lex.c: making nodes. */
#ifndef KN_IR_EXPR_INTERNAL_H
#define KN_IR_EXPR_INTERNAL_H

#include "ir/expr.h"

/* A fresh node with copied arguments, depth and size set, all else zero, to be filled in before it
   is shared. Raises KN_INVALID when it would be too large. */
kn_expr *kn_expr_make(kn_arena *a, kn_expr_kind kind, kn_dtype type, const kn_expr *const *args,
                      int n);

/* Interned names compare by pointer; those of a test or a static table by text. */
static inline bool kn_same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

#endif
