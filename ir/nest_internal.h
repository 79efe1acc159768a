/* Shared by nest.c and elaborate.c: fresh names, and the box of elements that a statement's target
 * stands for. */
#ifndef KN_IR_NEST_INTERNAL_H
#define KN_IR_NEST_INTERNAL_H

#include "ir/nest.h"

/* Enters a name in `used`, whose values are private to these functions. */
void kn_take_name(kn_arena *a, kn_map *used, const char *name);
/* A statement `target[box] = ` without a right side, over the elements that a reduction into
   s->target starts: in a dimension whose subscript has no iterators, that one; for the index of its
   `over`, that step; else the whole dimension under a fresh iterator. */
kn_stmt kn_stmt_box(kn_arena *a, const kn_tensor *target, const kn_stmt *s, kn_map *used);

#endif
