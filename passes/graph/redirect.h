/* Handing over many values at once. */
#ifndef KN_PASSES_GRAPH_REDIRECT_H
#define KN_PASSES_GRAPH_REDIRECT_H

#include "passes/pass.h"

/* Everything that uses the value of id i uses to[i] instead, where there is one, of the same type
   and shape; n entries. Sweep afterwards. */
void kn_redirect(kn_graph *g, kn_value *const *to, int n);

#endif
