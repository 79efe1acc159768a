/* What the scheduling passes share. */
#ifndef KN_PASSES_SCHEDULE_H
#define KN_PASSES_SCHEDULE_H

#include "ir/graph.h"
#include "ir/poly.h"
#include "ir/schedule_text.h"

/* The first schedule: statements in order, each fused with the one before it as deeply as the
 * dependences allow. */
kn_schedule *kn_schedule_fuse(kn_arena *a, kn_poly *p, const kn_nest *nest);

/* Applies a user's edits, one after the other. The nest (split, and the caller's own) gets other
   iterators where loops are split. Raises KN_INVALID at the edit that names what is not there, or
   that breaks a dependence. `target` may be NULL: the host. */
void kn_schedule_edit(kn_arena *a, kn_nest *nest, kn_schedule *s, const kn_kernel_edits *edits,
                      const kn_target *target);

/* One nest for a fusion group. `values` are the graph values behind its tensors, in the order of
   nest->tensors, without the temporaries; inputs first, then results that live on. */
typedef struct {
    kn_nest *nest;
    int nvalues;
    kn_value **values;
    kn_value **initial; /* of an INOUT: the operand that it starts from */
} kn_group_nest;
/* `uses`: kn_graph_uses() of the graph. */
kn_group_nest kn_group_compose(kn_arena *a, const kn_graph *g, const int *uses,
                               kn_node *const *nodes, int n);

/* The names of the graph's outputs that are written over an input where it lies. */
kn_map kn_in_place_outputs(kn_arena *a, const kn_graph *g);

#endif
