/* Rewriting a graph by rules that are written as graph text: what `simplify` and `recognise` are
   made of.

   A pattern is a call, or definitions and then a call, as in a graph's body (docs/passes.md has the
   grammar):

     %d = sub(%x, reduce_mean(%x) {axes = a, keepdims = 1})
     div(%d, sqrt(add(reduce_mean(square(%d)) {axes = a, keepdims = 1}, epsilon)))

   %x stands for any value, the same one wherever it occurs. A number, or a name where a value is
   expected, stands for a constant of one element: within 1e-6, or the number rounded to the
   constant's type. A name in an attribute stands for whatever is there. Axes count from the front
   or from the end, as is convenient; an attribute that the node does not have has its default; one
   that the pattern does not mention must have its default. The operands of add, mul and other
   commutative ops come in either order. `square` is a part: several patterns under one name, tried
   in order.

   The result is written the same way, over what the pattern found and what `when` added. It takes
   the place of the pattern's last call if type and shape are the same. */
#ifndef KN_PASSES_GRAPH_RULES_H
#define KN_PASSES_GRAPH_RULES_H

#include "passes/pass.h"

typedef struct kn_match kn_match;

typedef struct {
    const char *name;
    const char *example; /* what the rule's test is made of: tests/unit/rule_example.h */
    const char *pattern, *result;
    bool (*when)(
        kn_match *m); /* the rest of the condition, and values for the result's names; or NULL */
} kn_rule;

/* One of the patterns that a name stands for. Parameters: "(%x, %y)". Attribute names and names of
   constants are the rule's; other values that it defines are its own. */
typedef struct {
    const char *name, *parameters, *pattern;
} kn_rule_part;

typedef struct {
    const kn_rule *rules; /* tried in this order where several have the same last op */
    int nrules;
    const kn_rule_part *parts;
    int nparts;
    bool shared; /* values inside a match may be used elsewhere as well (and are then computed all
                    the same) */
} kn_rule_table;

extern const kn_rule_table kn_simplify_rules, kn_recognise_rules;

/* Rewrites until no rule applies, then sweeps. `hits` counts by rule, or is NULL. */
void kn_rewrite(kn_unit *u, const kn_rule_table *table, int *hits);

/* ---- for `when` ---- */

kn_graph *kn_match_graph(const kn_match *m);
kn_arena *kn_match_arena(const kn_match *m); /* until the end of the pass; the graph's own is for
                                                what goes into a node */
kn_value *kn_match_root(const kn_match *m);  /* what is being replaced */
/* What %name or the constant `name` stands for; NULL when the pattern that matched has none such.
 */
kn_value *kn_match_value(const kn_match *m, const char *name);
/* An attribute: axes and the like from the front, the default where the node has none; NULL when
 * there is neither. */
const kn_attr *kn_match_attr(const kn_match *m, const char *name);
/* The number of a constant or attribute; `otherwise` when there is none. */
double kn_match_number(const kn_match *m, const char *name, double otherwise);
void kn_match_set(kn_match *m, const char *name, kn_value *v);
void kn_match_set_attr(kn_match *m, const char *name, kn_attr attr);
/* A node for the result, named after what is replaced. */
kn_value *kn_match_node(kn_match *m, const char *op, kn_value *const *inputs, int n,
                        const kn_attr *attrs, int nattrs);

/* Facts that several conditions ask for. */
bool kn_same_shape(const kn_value *x, const kn_value *y);
/* Whether x broadcasts to the dimensions without changing them. */
bool kn_broadcasts_to(const kn_value *x, const kn_expr *const *shape, int rank);

#endif
