/* Expansions: what an op means where that depends on ranks, axes, optional operands or strings. A
   function of ir/expand_*.c writes the index notation of one node; the graph parses it (once per
   text) and elaborates it like any other.

   The contract between an expansion and those who elaborate its text:
   - Operands of the signature are the node's inputs that are there, in order: one left out (NULL)
   does not occur in it. Results are the node's outputs in order.
   - An attribute that the text declares is looked up in the node: `name` itself when that is an
   INDEX, FLOAT or TYPE; `name_k`, element k of the list `name`, when that is INDEXES or FLOATS
   (kn_expand_attr). Constants are written as literals; attributes serve expressions of sizes, so
   that a text never names a size of the graph.
   - Operands' sizes are d0, d1, ...; indices of results x0, x1, ...; reduced indices r0, r1, ... */
#ifndef KN_IR_EXPAND_H
#define KN_IR_EXPAND_H

#include "ir/graph.h"

#define OP(name, kind, min, max, results, notation, doc)
#define OPX(name, kind, min, max, results, function, doc) \
    void function(kn_str *out, const kn_graph *g, const kn_node *node);
#include "ir/ops.def"
#undef OP
#undef OPX

/* The value of an attribute that a notation declares; false when the node has none (its default
 * holds then). */
bool kn_expand_attr(kn_arena *a, const kn_node *node, const char *name, kn_attr_value *out);

#endif
