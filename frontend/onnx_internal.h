/* Shared by the files of the ONNX importer. */
#ifndef KN_FRONTEND_ONNX_INTERNAL_H
#define KN_FRONTEND_ONNX_INTERNAL_H

#include "frontend/frontend.h"
#include "frontend/onnx_ops.h"
#include "onnx.pb-c.h"

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const kn_file *file;
    const kn_import_options *options;
    Kiln__Onnx__Model *model;
    kn_graph *g;
    kn_map functions;      /* "domain:name:overload" -> Function */
    kn_map files;          /* external data: location -> kn_file */
    kn_map dimensions;     /* names that are the whole of some input's dimension */
    kn_map bindable_names; /* of the inputs' open dimensions, also as a list in their order */
    KN_VEC(const char *) bindable;
    kn_value *missing; /* stands for what could not be built; only its address matters */
    kn_value *absent;  /* stands for a result that an operator which was built does not give */
    bool failed;       /* an error was recorded; the import goes on to list the others */
    ProtobufCAllocator allocator;
    int depth; /* functions and branches being inlined */
    int nodes;
} kn_onnx;

/* Names in force: a graph's own, and those around it. */
typedef struct kn_scope kn_scope;
struct kn_scope {
    const kn_scope *parent;
    kn_map values;      /* ONNX name -> kn_value, or m->missing */
    const char *prefix; /* of value names made in it */
    size_t nopsets;
    Kiln__Onnx__OperatorSet **opsets;
    const kn_onnx_node *caller; /* of a function: where attribute references look */
    const Kiln__Onnx__Function *function;
};

/* Allocates in the arena, so that a failure unwinds and nothing is freed one by one. */
ProtobufCAllocator *kn_onnx_allocator(kn_onnx *m);
kn_loc kn_onnx_loc(const kn_onnx *m, const char *where);
/* A tensor as a constant of the graph. `name` is for the graph and for messages. */
kn_value *kn_onnx_tensor(kn_onnx *m, const Kiln__Onnx__Tensor *t, const char *name);
/* The element type for TensorProto's code; raises KN_UNSUPPORTED naming `where`. */
kn_dtype kn_onnx_element_type(const kn_onnx *m, int32_t code, const char *where);
/* A name for a new value: the ONNX name with the characters that graph text allows, unique in the
 * graph. */
const char *kn_onnx_value_name(kn_onnx *m, const char *prefix, const char *name);
/* The name of an output of the model: its own, unless another value has it. */
const char *kn_onnx_output_name(kn_onnx *m, const char *name);
/* An identifier for the graph. */
const char *kn_onnx_graph_name(kn_onnx *m, const char *name);
kn_map kn_onnx_input_dimensions(const kn_onnx *m);
/* The shape that a type declares, over the graph's sizes; names made up from `name` where it is
   open. Returns the rank, or -1 when there is none. */
int kn_onnx_shape_of(kn_onnx *m, const Kiln__Onnx__TensorType *t, const char *name,
                     const kn_expr **shape);
/* Raises KN_USAGE when the user binds a dimension that no input has. */
void kn_onnx_check_dims(const kn_onnx *m);
/* The attributes of a node, references to a function's resolved. */
kn_onnx_attr *kn_onnx_attributes(kn_onnx *m, const kn_scope *s, const Kiln__Onnx__Node *node,
                                 int *n);
const kn_onnx_attr *kn_onnx_attribute(const kn_onnx_node *n, const char *name);
/* Nodes in an order in which each comes after what it reads; raises KN_INVALID on a cycle and on a
 * name defined twice. */
Kiln__Onnx__Node **kn_onnx_sort(kn_onnx *m, Kiln__Onnx__Node **nodes, size_t n, size_t *count);

#endif
