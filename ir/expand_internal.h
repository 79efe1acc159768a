/* What the expansion functions share: lists of subscripts and a text template. An expansion names
   the pieces that depend on the node (`$i`, the index list of the result) and writes its notation
   once, as one would by hand:

     kn_x x = kn_x_start(out, g, node);
     kn_subs i = kn_x_subs(&x, "x", rank);
     kn_x_let(&x, "i", &i);
     kn_x_write(&x, "(X[$d], $attrs) -> Y: Y[$i] = X[$i]");
*/
#ifndef KN_IR_EXPAND_INTERNAL_H
#define KN_IR_EXPAND_INTERNAL_H

#include "ir/expand.h"

typedef struct {
    kn_str *out;
    kn_arena *a;
    const kn_graph *g;
    const kn_node *node;
    kn_map names;
    kn_str attrs; /* declarations of the attributes used so far: $attrs */
} kn_x;

/* A list of subscripts or dimensions; items are texts. */
typedef struct {
    int n;
    const char *at[3 * KN_MAX_RANK];
} kn_subs;

kn_x kn_x_start(kn_str *out, const kn_graph *g, const kn_node *node);
/* Writes the template: $name is the text set for it. An empty text takes one comma beside it along.
 */
void kn_x_write(kn_x *x, const char *text);
void kn_x_set(kn_x *x, const char *name, const char *fmt, ...) KN_PRINTF(3, 4);
void kn_x_let(kn_x *x, const char *name, const kn_subs *list); /* sets the list, comma-separated */
_Noreturn void kn_x_fail(const kn_x *x, const char *fmt, ...) KN_PRINTF(2, 3);

kn_subs kn_x_subs(kn_x *x, const char *stem, int n); /* stem0, stem1, ... */
void kn_x_push(kn_x *x, kn_subs *list, const char *item);
void kn_x_append(kn_x *x, kn_subs *list, const kn_subs *more);
kn_subs kn_x_pick(const kn_subs *list, unsigned mask); /* the items whose bit is set */
/* Sets `name` to the dimensions stem0, ... of operand k and returns its rank. */
int kn_x_dims(kn_x *x, const char *name, int k, const char *stem);
/* Dimensions and subscripts of operand k broadcast one way to a list of `dims` and `subs`, aligned
   at the end: sets NAME_d and NAME_i. A dimension of 1 is subscripted by 0. */
void kn_x_broadcast(kn_x *x, const char *name, int k, const kn_subs *dims, const kn_subs *subs);
/* The same for an operand of one element, whatever its rank. */
void kn_x_single(kn_x *x, const char *name, int k);

const kn_value *kn_x_operand(const kn_x *x, int k); /* NULL when left out */
int kn_x_rank(const kn_x *x, int k);
/* Dimension `axis` of operand k when it is constant, else -1. */
int64_t kn_x_dim(const kn_x *x, int k, int axis);
/* Its text: the number when constant, else `name`. */
const char *kn_x_dim_text(kn_x *x, int k, int axis, const char *name);
int64_t kn_x_dim_const(const kn_x *x, int k, int axis); /* raises unless constant */

/* Attributes. */
int kn_x_count(const kn_x *x, const char *name); /* elements of a list; 0 when absent */
bool kn_x_has(const kn_x *x, const char *name);
int64_t kn_x_int(const kn_x *x, const char *name, int64_t otherwise);
int64_t kn_x_int_at(const kn_x *x, const char *name, int k,
                    int64_t otherwise); /* of a list, constant */
const char *kn_x_string(const kn_x *x, const char *name, const char *otherwise);
/* An index attribute (or element k of a list; -1: not a list) as text: a number, else its declared
 * name. */
const char *kn_x_index(kn_x *x, const char *name, int k);
const char *kn_x_float(kn_x *x, double value);
/* An axis in 0..rank-1; raises when it lies outside. */
int kn_x_axis(const kn_x *x, const char *name, int64_t otherwise, int rank);
/* The axes in the list `name` as bits; all when it is absent. */
unsigned kn_x_axes(const kn_x *x, const char *name, int rank);

#endif
