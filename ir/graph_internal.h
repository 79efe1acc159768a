/* Shared by the files of the graph IR: graph*.c, infer.c, opaque.c, content.c, ops.c. */
#ifndef KN_IR_GRAPH_INTERNAL_H
#define KN_IR_GRAPH_INTERNAL_H

#include "ir/graph.h"

/* ---- graph.c ---- */

/* A new value with a copied shape. Raises when the name is taken or the rank too large. */
kn_value *kn_graph_add_value(kn_graph *g, const char *name, kn_dtype type,
                             const kn_expr *const *shape, int rank, kn_loc loc);
int kn_graph_find_size(const kn_graph *g, const char *name); /* its index, or -1 */
/* The size's place in g->sizes, when `e` mentions one that is read from a tensor; else -1. */
int kn_graph_computed_size(const kn_graph *g, const kn_expr *e);
/* A copy in another arena, canonical again. */
const kn_expr *kn_index_copy(kn_arena *a, const kn_expr *e);
/* The element count of a constant shape; -1 when it is not constant, not a size or overflows. */
int64_t kn_shape_count(const kn_expr *const *shape, int rank);
/* Whether all names are sizes of the graph and all of it is index arithmetic. */
bool kn_graph_knows(const kn_graph *g, const kn_expr *e);

/* ---- graph_attr.c, graph_const.c ---- */

kn_attr kn_attr_copy(kn_arena *a, const kn_attr *attr);
/* Calls fn with each index expression of the node's attributes. */
void kn_node_each_index(const kn_node *n, void (*fn)(void *env, const kn_expr *e), void *env);
const kn_expr *kn_element_get(kn_arena *a, kn_dtype type, const void *data, int64_t i);
void kn_element_put(kn_dtype type, void *data, int64_t i, const kn_expr *literal);

/* ---- ops.c ---- */

/* The row, named "notation", of nodes whose meaning the user wrote. */
const kn_op_row *kn_op_user_row(kn_row_kind kind);
bool kn_op_is_user_row(const kn_op_row *row);

/* ---- opaque.c ---- */

/* The loops of an opaque node, for these operands: a function whose parameters are the nest's sizes
 * and tensors. */
const kn_func *kn_opaque_func(kn_arena *a, const kn_node *n, const kn_nest *nest,
                              const kn_attr_value *attrs, int nattrs);

/* ---- content.c ---- */

/* Finds the content of the node's small results, where its nest can be evaluated. */
void kn_content_infer(kn_arena *scratch, kn_graph *g, kn_node *n, const kn_nest *nest);

/* ---- infer.c ---- */

/* The parsed notation of a text (before "loops:"), once per text; `loc` is where it stands. */
const kn_notation *kn_graph_parse_meaning(kn_graph *g, const char *text, kn_loc loc);

/* The nest's tensor for result r of the node. */
const kn_tensor *kn_nest_result(const kn_nest *nest, const kn_node *n, int r);

/* ---- graph_print.c ---- */

void kn_shape_print(kn_str *out, kn_dtype type, const kn_expr *const *shape, int rank);
/* "f32[seq, 576]", for messages. */
const char *kn_value_type_text(kn_arena *a, const kn_value *v);

#endif
