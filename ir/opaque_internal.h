/* Shared by opaque.c and opaque_guard.c. */
#ifndef KN_IR_OPAQUE_INTERNAL_H
#define KN_IR_OPAQUE_INTERNAL_H

#include "ir/loop.h"

/* Puts a `check` before whatever the body is not certain to do inside its buffers. The function is
   that of an opaque nest, verified, and calls nothing. `used`: kn_unique_name's. */
void kn_opaque_guard(kn_arena *a, kn_func *f, const kn_nest *nest, kn_map *used);

#endif
