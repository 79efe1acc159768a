/* The graph IR: SSA over tensors with symbolic dimensions. Text: docs/graph-ir.md.

     graph @ffn(%x: f32[seq, 576]) -> (%y: f32[seq, 1536]) where seq in 1:2048 {
       const %w: f32[1536, 576] = file "model.onnx" at 4096
       const %b: f32[3] = [1.0, 2.0, 3.0]
       %t = transpose(%w) {perm = [1, 0]}
       %h = matmul(%x, %t)
       %y = gelu(add(%h, %b))
     }
*/
#ifndef KN_IR_GRAPH_H
#define KN_IR_GRAPH_H

#include "ir/loop.h"
#include "ir/notation.h"
#include "support/file.h"

typedef struct kn_node kn_node;
typedef struct kn_op_row kn_op_row;
typedef struct kn_graph kn_graph;

typedef struct {
    const char *name; /* unique in the graph, without the %; interned */
    int id;           /* 0 .. g->nvalues-1, never reused: for side tables */
    kn_loc loc;
    kn_dtype type;
    int rank;
    const kn_expr *const *shape; /* canonical index expressions over the graph's sizes */
    kn_node *def;                /* NULL for inputs and constants */
    int result;                  /* which result of def */
    const void
        *data; /* constants: dense row-major elements, maybe unaligned, maybe in a mapped file */
    size_t bytes;
    const char *file; /* constants: the file that `data` is mapped from, and where; NULL: owned by
                         the arena */
    size_t offset;
    /* What is known of the elements of a small tensor at compile time: shape arithmetic. NULL when
       unknown; else as many expressions as elements (at most KN_MAX_CONTENT): for integers and
       bools index expressions over sizes, for floats (on the way from one shape to another)
       literals. */
    const kn_expr *const *content;
    const kn_expr *const *known; /* where that is NULL: the same, with NULL for each element that is
                                    not known; or NULL */
} kn_value;
enum { KN_MAX_CONTENT = 64 };

typedef enum {
    KN_A_INDEX,
    KN_A_INDEXES,
    KN_A_FLOAT,
    KN_A_FLOATS,
    KN_A_STRING,
    KN_A_TYPE
} kn_attr_kind;

typedef struct {
    const char *name;
    kn_attr_kind kind;
    const kn_expr *index; /* INDEX: also ints and bools (0, 1); in a node never NULL */
    int64_t i;            /* INDEX, what kn_attr_int() makes: the value, while `index` is NULL */
    int n;                /* INDEXES, FLOATS */
    const kn_expr *const *indexes; /* axes, strides, shapes: may be symbolic */
    double f;
    const double *floats;
    const char *string;
    kn_dtype type;
    bool *read; /* set by kn_node_attr() while the node is made: an attribute that nobody asks for
                   is a mistake */
} kn_attr;

struct kn_node {
    kn_graph *graph;
    int id; /* 0 .. g->nnode_ids-1, never reused */
    const kn_op_row *op;
    const char *name; /* as in the model, for messages; may be "" */
    kn_loc loc;
    int ninputs;
    kn_value **inputs; /* NULL: an optional operand left out */
    int noutputs;
    kn_value **outputs;
    int nattrs;
    kn_attr *attrs;
    int group; /* fusion group, -1 before grouping; printed as `group N` behind the attributes */
    const kn_notation
        *notation;     /* the row's, the expansion's or the user's, parsed; shared by equal texts */
    const char *loops; /* OPAQUE: the text behind `loops:`, else NULL */
};

struct kn_graph {
    kn_arena *arena; /* nodes, values, everything of the graph */
    const char *name;
    int nsizes, sizes_cap;
    kn_size *sizes;
    /* Per size: where its value comes from. value NULL: from the inputs' shapes, bound by the
       caller. Else it is element `element` of an integer tensor, read at run time (a shape that
       comes as an input, a count that is computed): printed `n in 0:64 = %shape[2]`. Out of its
       bounds, the run fails with a status. */
    struct kn_size_source {
        kn_value *value;
        int element;
    } * sources;
    int ninputs, inputs_cap;
    kn_value **inputs;
    int noutputs, outputs_cap;
    kn_value **outputs;
    kn_value **aliases; /* per output: the input that it updates in place, or NULL */
    int nconsts, consts_cap;
    kn_value **consts;
    int nnodes, nodes_cap;
    kn_node **nodes;        /* in a topological order */
    int nvalues, nnode_ids; /* ids given so far */
    kn_map values;          /* name -> kn_value */
    kn_map notations;       /* text -> kn_notation, the cache of parsed rows and expansions */
    kn_map stems;           /* stem -> the number that kn_graph_fresh() tries next */
};

/* ---- the table of ops: ir/ops.def ---- */

typedef enum {
    KN_ROW_PLAIN,      /* index notation says it all */
    KN_ROW_VIEW,       /* only renames addresses */
    KN_ROW_INDIRECT,   /* subscripts or guards read tensors */
    KN_ROW_RECURRENCE, /* reads its own earlier points */
    KN_ROW_OPAQUE      /* loop IR text is the meaning */
} kn_row_kind;

/* Writes the notation for one node (its operands' ranks, its attributes) into `out`; for an OPAQUE
   row, the loops too. Operands of the notation are the node's operands that are not left out, in
   order. Raises with node->loc. */
typedef void (*kn_expand_fn)(kn_str *out, const kn_graph *g, const kn_node *node);

struct kn_op_row {
    const char *name;
    kn_row_kind kind;
    int min_inputs, max_inputs; /* max -1: any */
    int noutputs;               /* -1: as the notation or the attributes say */
    const char *notation;       /* index notation; OPAQUE: signature, then loop IR behind "loops:"
                                   (opaque.c says how they       meet); NULL when expanded */
    kn_expand_fn expand;        /* NULL when the notation stands in the row */
    const char *doc;
};
const kn_op_row *kn_op_find(const char *name); /* NULL when unknown */
int kn_op_count(void);
const kn_op_row *kn_op_get(int i);

/* ---- building ---- */

kn_graph *kn_graph_create(kn_arena *a, const char *name);
enum { KN_GRAPH_MAX_SIZES = 1000, KN_GRAPH_MAX_IO = 4000 /* inputs, outputs */ };
/* Adds a size, or narrows the bounds of one that is there. Returns the index expression that names
 * it. */
const kn_expr *kn_graph_size(kn_graph *g, const char *name, int64_t lo, int64_t hi);
kn_value *kn_graph_input(kn_graph *g, const char *name, kn_dtype type, const kn_expr *const *shape,
                         int rank, kn_loc loc);
/* A constant: data is not copied and must outlive the graph. A small integer one gets its
 * `content`. */
kn_value *kn_graph_const(kn_graph *g, const char *name, kn_dtype type, const int64_t *dims,
                         int rank, const void *data, size_t bytes, kn_loc loc);
/* What a node is made of. */
typedef struct {
    const char *op;       /* a row of ops.def; NULL: the user's own, by its */
    const char *notation; /* (an opaque one too: signature, "loops:", loops) */
    const char *name;     /* NULL: none */
    kn_value *const *inputs;
    int ninputs;
    const kn_attr *attrs; /* copied */
    int nattrs;
    const char *const *outputs; /* their names: NULL, or any of them, is made up */
    int noutputs;               /* 0: as many as the op has */
    kn_loc loc;
} kn_node_spec;
/* Adds a node at the end, elaborates its notation, infers types and shapes of its results (and
   `content`, where its inputs' content is known) and returns it. Raises KN_INVALID with the node's
   place. */
kn_node *kn_graph_node(kn_graph *g, const kn_node_spec *spec);
/* The result of a node that has one. */
kn_value *kn_graph_result(kn_graph *g, const kn_node_spec *spec);
/* The content of an integer tensor of at most KN_MAX_CONTENT elements: what is known of it, for the
   rest fresh sizes (lo..hi) that are read from it at run time. NULL when its shape is not constant,
   it is too large or of another type. */
const kn_expr *const *kn_graph_content(kn_graph *g, kn_value *v, int64_t lo, int64_t hi);
void kn_graph_output(kn_graph *g, kn_value *v, kn_value *alias);
/* A scalar or small constant made on the spot, in the arena. */
kn_value *kn_graph_scalar(kn_graph *g, kn_dtype type, double value);
kn_value *kn_graph_indices(kn_graph *g, kn_dtype type, const int64_t *values, int n);
const char *kn_graph_fresh(kn_graph *g, const char *stem); /* a value name not used yet */

/* Attributes: helpers for those who build nodes and for expansions. */
kn_attr kn_attr_int(const char *name, int64_t v);
kn_attr kn_attr_ints(kn_arena *a, const char *name, const int64_t *v, int n);
kn_attr kn_attr_index(const char *name, const kn_expr *e);
kn_attr kn_attr_indexes(const char *name, const kn_expr *const *e, int n);
kn_attr kn_attr_float(const char *name, double v);
kn_attr kn_attr_floats(const char *name, const double *v, int n);
kn_attr kn_attr_string(const char *name, const char *s);
kn_attr kn_attr_type(const char *name, kn_dtype t);
const kn_attr *kn_node_attr(const kn_node *n, const char *name); /* NULL when absent */
int64_t kn_node_int(const kn_node *n, const char *name,
                    int64_t otherwise); /* raises when it is not a constant int */
double kn_node_float(const kn_node *n, const char *name, double otherwise);

/* ---- meaning, rewriting, text ---- */

/* The nest of one node, fresh in `a`, tensors named as in the notation. */
kn_nest *kn_node_nest(kn_arena *a, const kn_graph *g, const kn_node *n);
/* The graph's values behind the tensors of a node's nest, in their order: an operand, or a result,
   which starts from the operand `initial` when it is an INOUT. Temporaries have none. */
typedef struct {
    kn_value *value, *initial;
} kn_bound_tensor;
kn_bound_tensor *kn_node_bind(kn_arena *a, const kn_node *n, const kn_nest *nest);
/* Whether the result is the operand's bytes in the same order, under another shape. */
bool kn_node_is_alias(const kn_node *n);
/* Number of elements of a constant shape, or -1. */
int64_t kn_value_count(const kn_value *v);
/* Element i (row-major) of a constant, as a typed literal. */
const kn_expr *kn_value_element(kn_arena *a, const kn_value *v, int64_t i);
/* The single element of a constant of one element, as a typed literal, or NULL. */
const kn_expr *kn_value_literal(kn_arena *a, const kn_value *v);
/* Replaces every use of `from` by `to`, of the same type and shape, but for those by the node that
   makes `to`. Outputs of the graph keep their name: `to` takes it over, or, where it cannot (it is
   an input, a constant, an output itself), an `identity` node is left. */
void kn_graph_replace(kn_graph *g, kn_value *from, kn_value *to);
/* How often each value is used, by id: node operands, graph outputs, sources of sizes. */
int *kn_graph_uses(kn_arena *a, const kn_graph *g);
/* Drops nodes without used results, constants without uses and computed sizes that nothing
   mentions; re-sorts the nodes topologically (stable; a node comes after the tensors that its sizes
   are read from). Raises KN_INVALID on a cycle. */
void kn_graph_sweep(kn_graph *g);
/* Order, names, links, types and shapes (by elaborating each node anew), constants, outputs, sizes.
 * Raises KN_INVALID. */
void kn_graph_verify(const kn_graph *g);

void kn_graph_print(kn_str *out, const kn_graph *g);
kn_graph *kn_graph_parse(kn_arena *a, const char *file, const char *text, size_t n);
/* "{axis = 1, perm = [1, 0]}" over the graph's sizes, for kn_graph_node(). Raises KN_INVALID. */
const kn_attr *kn_graph_parse_attrs(kn_graph *g, const char *text, int *n);

/* Runs the whole graph through the reference lowering and the interpreter: the oracle. inputs and
   outputs in the graph's order; `sizes` in the order of g->sizes (those with a source are computed:
   they are set by the run); outputs allocated by the caller, for the bounds of computed sizes where
   those occur. An output that updates an input may share its memory. Raises KN_INVALID when a size
   is out of its bounds, memory is too small or an access is out of range. */
void kn_graph_interpret(kn_ctx *ctx, const kn_graph *g, int64_t *sizes, const kn_memory *inputs,
                        const kn_memory *outputs);

#endif
