/* The left sides of rules as graphs. */
#ifndef KN_TESTS_RULE_EXAMPLE_H
#define KN_TESTS_RULE_EXAMPLE_H

#include "passes/graph/rules.h"

/* A graph that computes the left side of a rule and nothing else, as text. Made from the
   rule's example:

     "%x: f32[b, s, N], %w: f32[N]; epsilon = 1e-5; a = [-1] | %x: f16[N]; epsilon = 1e-5; a = [0]"

   alternatives between |, of each the operands, then what the pattern's names stand for; "%y =
   abs(%x)" defines a value. Sizes in small letters stay symbolic, in 0:64 (n: in 1:64); capitals
   become numbers. The seed chooses those, the alternative, one pattern of each part and the order
   of operands. */
void kn_rule_example(kn_str *out, kn_arena *a, const kn_rule_table *table, int rule, uint64_t seed);

#endif
