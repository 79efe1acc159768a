/* Attributes of nodes, and the order of nodes. */
#include "frontend/onnx_internal.h"

/* Any bytes may stand there: what follows a NUL is no text. */
static const char *text_of(const kn_onnx *m, ProtobufCBinaryData b)
{
    const void *end = b.len ? memchr(b.data, 0, b.len) : NULL;
    size_t n = end ? (size_t)((const unsigned char *)end - b.data) : b.len;
    return kn_intern_n(m->ctx, b.len ? (const char *)b.data : "", n);
}

static void read_lists(kn_onnx *m, const Kiln__Onnx__Attribute *p, kn_onnx_attr *a)
{
    double *floats = KN_ARRAY(m->arena, double, p->n_floats + 1);
    for (size_t i = 0; i < p->n_floats; i++) {
        floats[i] = (double)p->floats[i];
    }
    const char **strings = KN_ARRAY(m->arena, const char *, p->n_strings + 1);
    for (size_t i = 0; i < p->n_strings; i++) {
        strings[i] = text_of(m, p->strings[i]);
    }
    a->ints = p->ints;
    a->floats = floats;
    a->strings = strings;
}

/* The kinds of AttributeProto.AttributeType. A file of an old version may leave the type out: then
 * what is there tells. */
enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS = 6, INTS, STRINGS };

static int kind_of(const Kiln__Onnx__Attribute *p)
{
    if (p->type) {
        return p->type;
    }
    return p->has_f       ? FLOAT
           : p->has_i     ? INT
           : p->has_s     ? STRING
           : p->t         ? TENSOR
           : p->g         ? GRAPH
           : p->n_floats  ? FLOATS
           : p->n_strings ? STRINGS
                          : INTS;
}

static kn_onnx_attr read_attribute(kn_onnx *m, const Kiln__Onnx__Attribute *p, const char *name)
{
    kn_onnx_attr a = {.name = kn_intern(m->ctx, name), .i = p->i, .f = (double)p->f};
    read_lists(m, p, &a);
    switch (kind_of(p)) {
    case FLOAT: a.kind = KN_OA_FLOAT; break;
    case INT: a.kind = KN_OA_INT; break;
    case STRING:
        a.kind = KN_OA_STRING;
        a.s = text_of(m, p->s);
        break;
    case TENSOR:
        a.kind = KN_OA_TENSOR;
        a.tensor = p->t ? kn_onnx_tensor(m, p->t, kn_graph_fresh(m->g, a.name)) : NULL;
        break;
    case FLOATS:
        a.kind = KN_OA_FLOATS;
        a.n = (int)p->n_floats;
        break;
    case INTS:
        a.kind = KN_OA_INTS;
        a.n = (int)p->n_ints;
        break;
    case STRINGS:
        a.kind = KN_OA_STRINGS;
        a.n = (int)p->n_strings;
        break;
    default: a.kind = KN_OA_OTHER;
    }
    return a;
}

const kn_onnx_attr *kn_onnx_attribute(const kn_onnx_node *n, const char *name)
{
    for (int i = 0; i < n->nattrs; i++) {
        if (strcmp(n->attrs[i].name, name) == 0) {
            return &n->attrs[i];
        }
    }
    return NULL;
}

/* What a reference in a function's body stands for: the caller's attribute, the function's default,
 * or nothing. */
static bool resolve(kn_onnx *m, const kn_scope *s, const char *reference, const char *name,
                    kn_onnx_attr *out)
{
    const kn_onnx_attr *given = s->caller ? kn_onnx_attribute(s->caller, reference) : NULL;
    if (given) {
        *out = *given;
        out->name = kn_intern(m->ctx, name);
        return true;
    }
    for (size_t i = 0; s->function && i < s->function->n_attribute_proto; i++) {
        const Kiln__Onnx__Attribute *p = s->function->attribute_proto[i];
        if (p->name && strcmp(p->name, reference) == 0) {
            *out = read_attribute(m, p, name);
            return true;
        }
    }
    return false;
}

kn_onnx_attr *kn_onnx_attributes(kn_onnx *m, const kn_scope *s, const Kiln__Onnx__Node *node,
                                 int *n)
{
    kn_onnx_attr *list = KN_ARRAY(m->arena, kn_onnx_attr, node->n_attribute + 1);
    *n = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Kiln__Onnx__Attribute *p = node->attribute[i];
        const char *name = p->name ? p->name : "";
        if (!p->ref_attr_name || !*p->ref_attr_name) {
            list[(*n)++] = read_attribute(m, p, name);
        } else if (resolve(m, s, p->ref_attr_name, name, &list[*n])) {
            (*n)++;
        }
    }
    return list;
}

/* ---- order ---- */

typedef struct {
    kn_onnx *m;
    Kiln__Onnx__Node **nodes;
    kn_map makers;        /* value name -> number of its node + 1 */
    unsigned char *state; /* 0 new, 1 being placed, 2 placed */
    Kiln__Onnx__Node **sorted;
    size_t nsorted;
    KN_VEC(size_t) stack;
} kn_sorter;

static bool all_inputs_placed(kn_sorter *s, const Kiln__Onnx__Node *node)
{
    bool all = true;
    for (size_t i = 0; i < node->n_input; i++) {
        size_t maker = (size_t)(uintptr_t)kn_map_get(&s->makers, node->input[i]);
        if (maker == 0 || s->state[maker - 1] == 2) {
            continue;
        }
        if (s->state[maker - 1] == 1) {
            const Kiln__Onnx__Node *other = s->nodes[maker - 1];
            kn_raise(s->m->ctx, KN_INVALID,
                     kn_onnx_loc(s->m, other->name && *other->name ? other->name : node->input[i]),
                     "the graph has a cycle through `%s`", node->input[i]);
        }
        s->state[maker - 1] = 1;
        kn_push(s->m->arena, &s->stack, maker - 1);
        all = false;
        break;
    }
    return all;
}

static bool is_constant(const Kiln__Onnx__Node *node)
{
    return node->op_type && strcmp(node->op_type, "Constant") == 0;
}

/* Who makes which value; each is made once. Of constants of one name, which some tools leave
   behind, the last one counts, as in onnxruntime. */
static void find_makers(kn_sorter *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const Kiln__Onnx__Node *node = s->nodes[i];
        for (size_t k = 0; k < node->n_output; k++) {
            const char *name = node->output[k];
            size_t other = (size_t)(uintptr_t)kn_map_get(&s->makers, name);
            if (other && is_constant(node) && is_constant(s->nodes[other - 1])) {
                s->state[other - 1] = 2; /* left out */
                kn_warn(s->m->ctx, kn_onnx_loc(s->m, name),
                        "a constant that is defined twice: the last one counts");
            } else if (other) {
                kn_raise(s->m->ctx, KN_INVALID, kn_onnx_loc(s->m, node->name),
                         "`%s` is defined twice", name);
            }
            if (*name) {
                kn_map_set(&s->makers, name, (void *)(uintptr_t)(i + 1));
            }
        }
    }
}

/* Depth first, without recursion: a node is placed once all that it reads is. */
static void place_node(kn_sorter *s, size_t start)
{
    s->state[start] = 1;
    kn_push(s->m->arena, &s->stack, start);
    while (s->stack.n) {
        size_t at = s->stack.at[s->stack.n - 1];
        if (all_inputs_placed(s, s->nodes[at])) {
            s->state[at] = 2;
            s->sorted[s->nsorted++] = s->nodes[at];
            s->stack.n--;
        }
    }
}

Kiln__Onnx__Node **kn_onnx_sort(kn_onnx *m, Kiln__Onnx__Node **nodes, size_t n, size_t *count)
{
    kn_sorter s = {.m = m, .nodes = nodes, .makers = kn_map_make(m->arena)};
    s.state = KN_ARRAY(m->arena, unsigned char, n + 1);
    s.sorted = KN_ARRAY(m->arena, Kiln__Onnx__Node *, n + 1);
    find_makers(&s, n);
    for (size_t i = 0; i < n; i++) {
        if (s.state[i] == 0) {
            place_node(&s, i);
        }
    }
    *count = s.nsorted;
    return s.sorted;
}
