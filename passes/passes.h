/* The entry points of passes.def, and what verifies their properties. */
#ifndef KN_PASSES_PASSES_H
#define KN_PASSES_PASSES_H

#include "passes/pass.h"

#define PASS(name, entry, exact, requires, gives, breaks, doc) void entry(kn_unit *u);
#include "passes/passes.def"
#undef PASS

/* KN_PROP_PLANNED, checked by other means than plan.c uses: no two buffers whose bytes overlap are
 * alive at once. */
void kn_plan_verify(const kn_unit *u);

#endif
