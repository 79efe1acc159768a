/* Dimensions as text, "past + seq", evaluated at run time: the index expressions that ir/expr.c
 * prints. */
#ifndef KN_RUNTIME_SHAPE_H
#define KN_RUNTIME_SHAPE_H

#include "kiln/runtime.h"

/* Evaluates with the values of the named sizes. False when the text is malformed, names an unknown
   size, divides by zero or leaves the range of int64_t. */
bool kn_shape_eval(const char *text, const kn_dim *dims, const int64_t *values, int n,
                   int64_t *out);

/* Whether the text is one size's name: its number among the dims, else -1. */
int kn_shape_name(const char *text, const kn_dim *dims, int n);

#endif
