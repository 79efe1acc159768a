/* What the mapping functions of onnx_ops_*.c share: reading a node's operands and attributes,
 * making Kiln nodes. */
#ifndef KN_FRONTEND_ONNX_OPS_INTERNAL_H
#define KN_FRONTEND_ONNX_OPS_INTERNAL_H

#include "frontend/onnx_ops.h"

#define ONNX_OP(domain, type, op)
#define ONNX_FN(domain, type, function) void function(kn_onnx_node *n);
#include "frontend/onnx_ops.def"
#undef ONNX_OP
#undef ONNX_FN

_Noreturn void kn_onnx_unsupported(const kn_onnx_node *n, const char *fmt, ...) KN_PRINTF(2, 3);
_Noreturn void kn_onnx_invalid(const kn_onnx_node *n, const char *fmt, ...) KN_PRINTF(2, 3);

/* ---- operands and attributes ---- */

kn_value *kn_onnx_in(const kn_onnx_node *n, int k);                       /* NULL when left out */
kn_value *kn_onnx_need(const kn_onnx_node *n, int k);                     /* raises when left out */
bool kn_onnx_wants(const kn_onnx_node *n, int k);                         /* output k is there */
const kn_onnx_attr *kn_onnx_get(const kn_onnx_node *n, const char *name); /* NULL when absent */
int64_t kn_onnx_int(const kn_onnx_node *n, const char *name, int64_t otherwise);
double kn_onnx_float(const kn_onnx_node *n, const char *name, double otherwise);
const char *kn_onnx_string(const kn_onnx_node *n, const char *name, const char *otherwise);
/* A list of integers; NULL when absent. */
const int64_t *kn_onnx_ints(const kn_onnx_node *n, const char *name, int *count);

/* The elements of a shape-like operand: constants, shape arithmetic, or sizes lo..hi read at run
   time. Raises KN_UNSUPPORTED when they cannot be had. */
const kn_expr *const *kn_onnx_content(const kn_onnx_node *n, int k, int64_t lo, int64_t hi,
                                      int *count);
/* The element of an operand of one. */
const kn_expr *kn_onnx_content_one(const kn_onnx_node *n, int k, int64_t lo, int64_t hi);
/* The same where only constants serve. */
const int64_t *kn_onnx_const_ints(const kn_onnx_node *n, int k, int *count);
int64_t kn_onnx_const_one(const kn_onnx_node *n, int k);
/* The integers of attribute `name` or else of operand k; NULL when neither is there. */
const int64_t *kn_onnx_ints_or_operand(const kn_onnx_node *n, const char *name, int k, int *count);
int kn_onnx_axis(const kn_onnx_node *n, int64_t axis, int rank); /* in 0..rank-1, or raises */

/* ---- index arithmetic that knows the graph's bounds ---- */

kn_range kn_onnx_range(const kn_onnx_node *n, const kn_expr *e);
/* A bound for a count of at most the elements of these dimensions. */
int64_t kn_onnx_most(const kn_onnx_node *n, const kn_expr *const *dims, int rank);
const kn_expr *kn_onnx_min(const kn_onnx_node *n, const kn_expr *x, const kn_expr *y);
const kn_expr *kn_onnx_max(const kn_onnx_node *n, const kn_expr *x, const kn_expr *y);

/* ---- making nodes ---- */

#define VALUES(...)                   \
    (kn_value *const[]){__VA_ARGS__}, \
        (int)(sizeof((kn_value *const[]){__VA_ARGS__}) / sizeof(kn_value *))
#define ATTRS(...) \
    (const kn_attr[]){__VA_ARGS__}, (int)(sizeof((const kn_attr[]){__VA_ARGS__}) / sizeof(kn_attr))
#define NO_VALUES NULL, 0
#define NO_ATTRS NULL, 0

enum { INNER = -1 };
/* A Kiln node with one result, which is output k of the ONNX node and has its name, or INNER. */
kn_value *kn_onnx_emit(kn_onnx_node *n, int k, const char *op, kn_value *const *inputs, int ninputs,
                       const kn_attr *attrs, int nattrs);
/* A Kiln node whose results are outputs 0, 1, ... `nresults` of them, whether wanted or not. */
void kn_onnx_emit_all(kn_onnx_node *n, int nresults, const char *op, kn_value *const *inputs,
                      int ninputs, const kn_attr *attrs, int nattrs);
/* Output k is a value that is there already. */
void kn_onnx_return(kn_onnx_node *n, int k, kn_value *v);

kn_value *kn_onnx_cast(kn_onnx_node *n, int k, kn_value *v,
                       kn_dtype type); /* v itself when it has the type */
kn_value *kn_onnx_reshape(kn_onnx_node *n, int k, kn_value *v, const kn_expr *const *shape,
                          int rank);
kn_value *kn_onnx_unary(kn_onnx_node *n, int k, const char *op, kn_value *x);
kn_value *kn_onnx_binary(kn_onnx_node *n, int k, const char *op, kn_value *x, kn_value *y);
kn_value *kn_onnx_scalar(kn_onnx_node *n, kn_dtype type, double value); /* a constant of rank 0 */
/* A reduction over the axes, or over all when axes is NULL. */
kn_value *kn_onnx_reduce(kn_onnx_node *n, int k, const char *op, kn_value *x, const int64_t *axes,
                         int naxes, bool keepdims);
kn_value *kn_onnx_transpose(kn_onnx_node *n, int k, kn_value *x, const int64_t *perm);
/* x[..., start : start + size, ...] along the axis. */
kn_value *kn_onnx_slice(kn_onnx_node *n, int k, kn_value *x, int axis, const kn_expr *start,
                        const kn_expr *size);
kn_value *kn_onnx_expand(kn_onnx_node *n, int k, kn_value *x, const kn_expr *const *shape,
                         int rank);
/* [n, s, heads, d] <-> [n, heads, s, d] */
kn_value *kn_onnx_swap_heads(kn_onnx_node *n, int k, kn_value *x);
/* [n, s, heads * d] -> [n, heads, s, d]; 4-D values are that already. */
kn_value *kn_onnx_split_heads(kn_onnx_node *n, kn_value *x, int64_t heads);
/* And back, as output k. */
void kn_onnx_merge_heads(kn_onnx_node *n, int k, kn_value *x);
/* The past, or NULL, with the new keys or values behind it: output k. */
kn_value *kn_onnx_join_past(kn_onnx_node *n, int k, kn_value *past, kn_value *now);
/* Output 0, a norm of x scaled by input 1, whose type it has: onnxruntime lets the two differ. */
void kn_onnx_norm(kn_onnx_node *n, const char *op, kn_value *x, kn_value *bias,
                  const kn_attr *attrs, int nattrs);

#endif
