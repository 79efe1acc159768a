/* What the frontends offer to the layers above: a file's bytes to a graph. */
#ifndef KN_FRONTEND_FRONTEND_H
#define KN_FRONTEND_FRONTEND_H

#include "ir/graph.h"

/* What the user fixes at import: symbolic dimensions by name (lo == hi makes it a constant), shapes
 * of inputs. */
typedef struct {
    int ndims;
    const kn_size *dims;
    int nshapes;
    const struct kn_input_shape {
        const char *input;
        int rank;
        int64_t dims[KN_MAX_RANK];
    } * shapes;
} kn_import_options;

/* Raises KN_USAGE: the user binds a dimension that the model does not have; it has these. */
_Noreturn void kn_no_dimension(kn_arena *a, const char *name, const char *const *has, int n);

/* Whether the bytes look like an ONNX model: a message whose first field is one of ModelProto's. */
bool kn_onnx_detect(const kn_file *file);
/* Imports an ONNX model, opsets 7 to 27 of the default domain. The file must stay mapped as long as
   the graph lives: weights are not copied. External data lie beside it. Raises KN_UNSUPPORTED with
   all unsupported nodes listed, KN_INVALID for a broken model. options may be NULL. */
kn_graph *kn_onnx_import(kn_arena *a, const kn_file *file, const kn_import_options *options);

/* A dense tensor outside a graph: a test's input or output. */
typedef struct {
    const char *name;
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK];
    const void *data; /* row-major; of the mapped file, perhaps unaligned, or of the arena */
    size_t bytes;
} kn_array;

/* Reads a file that holds one TensorProto, as ONNX's tests have them. */
kn_array kn_onnx_read_array(kn_arena *a, const kn_file *file);

#endif
