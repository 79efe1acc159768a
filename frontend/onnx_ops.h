/* ONNX nodes to Kiln nodes. The importer (onnx.c) fills in a kn_onnx_node and calls
   kn_onnx_build(), which looks up the row of onnx_ops.def for its domain and op type. A mapping
   either sets n->results or raises: KN_UNSUPPORTED for what Kiln cannot say, KN_INVALID for what
   ONNX forbids. The importer protects each call, so that all unsupported nodes of a model are
   listed at once. */
#ifndef KN_FRONTEND_ONNX_OPS_H
#define KN_FRONTEND_ONNX_OPS_H

#include "ir/graph.h"

typedef enum {
    KN_OA_INT,
    KN_OA_FLOAT,
    KN_OA_STRING,
    KN_OA_INTS,
    KN_OA_FLOATS,
    KN_OA_STRINGS,
    KN_OA_TENSOR,
    KN_OA_OTHER /* a graph or type: for the importer alone */
} kn_onnx_attr_kind;

typedef struct {
    const char *name;
    kn_onnx_attr_kind kind;
    int64_t i;
    double f;
    const char *s;
    int n; /* of a list */
    const int64_t *ints;
    const double *floats;
    const char *const *strings;
    kn_value *tensor; /* a constant of the graph */
} kn_onnx_attr;

typedef struct {
    kn_graph *g;
    const char *domain; /* "" is ONNX's own */
    const char *type;
    const char *name; /* of the node, perhaps "" */
    int64_t opset;    /* the version of `domain` that the model imports */
    kn_loc loc;
    int ninputs, noutputs, nattrs;
    kn_value *const *inputs;    /* NULL: left out */
    const char *const *outputs; /* value names; NULL: left out */
    const kn_onnx_attr *attrs;
    kn_value **results; /* noutputs of them, set by the mapping: an output's value may be an input
                           (Identity), whose name then differs from the output's */
} kn_onnx_node;

bool kn_onnx_known(const char *domain, const char *type);
void kn_onnx_build(kn_onnx_node *n);

/* The element type for a code of TensorProto.DataType; raises KN_UNSUPPORTED, in the node's name.
 */
kn_dtype kn_onnx_dtype(const kn_onnx_node *n, int64_t code);

#endif
