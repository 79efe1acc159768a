/* The graph as text (docs/graph-ir.md). What is printed reads back to the same text. */
#include <math.h>

#include "ir/graph_internal.h"

enum { MAX_LISTED = 64 }; /* elements of a constant that is printed as a list */

/* ---- names ---- */

static bool is_plain_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Whether the lexer takes the text behind a % as one name. */
static bool is_plain(const char *name)
{
    size_t n = strlen(name);
    if (!n || !is_plain_char(name[0]) || !is_plain_char(name[n - 1]))
        return false;
    for (const char *c = name; *c; c++)
        if (!is_plain_char(*c) && !strchr(".:/-", *c))
            return false;
    return true;
}

static void put_value(kn_str *out, const kn_value *v)
{
    kn_put_char(out, '%');
    if (is_plain(v->name))
        kn_put(out, v->name);
    else
        kn_put_quoted(out, v->name, strlen(v->name));
}

/* A graph's name has no meaning: what cannot be read back becomes '_'. */
static void put_graph_name(kn_str *out, const kn_graph *g)
{
    kn_put_char(out, '@');
    for (const char *c = g->name; *c; c++)
        kn_put_char(out, is_plain_char(*c) || (c[1] && strchr(".:/-", *c)) ? *c : '_');
    kn_put(out, *g->name ? "" : "_");
}

void kn_shape_print(kn_str *out, kn_dtype type, const kn_expr *const *shape, int rank)
{
    kn_putf(out, "%s[", kn_dtype_name(type));
    for (int i = 0; i < rank; i++) {
        if (i)
            kn_put(out, ", ");
        kn_expr_print(out, shape[i], false);
    }
    kn_put_char(out, ']');
}

const char *kn_value_type_text(kn_arena *a, const kn_value *v)
{
    kn_str s = kn_str_make(a);
    kn_shape_print(&s, v->type, v->shape, v->rank);
    return kn_str_get(&s);
}

static void put_typed_value(kn_str *out, const kn_value *v)
{
    put_value(out, v);
    kn_put(out, ": ");
    kn_shape_print(out, v->type, v->shape, v->rank);
}

/* ---- signature ---- */

static void put_outputs(kn_str *out, const kn_graph *g)
{
    bool one = g->noutputs == 1;
    kn_put(out, one ? "" : "(");
    for (int i = 0; i < g->noutputs; i++) {
        kn_put(out, i ? ", " : "");
        put_typed_value(out, g->outputs[i]);
        if (g->aliases[i]) {
            kn_put(out, " aliases ");
            put_value(out, g->aliases[i]);
        }
    }
    kn_put(out, one ? "" : ")");
}

/* Sizes in the order in which the inputs mention them. */
typedef struct {
    const kn_graph *g;
    bool *seen;
    int *order;
    int n;
} appearance;

static void note_size(void *env, const kn_expr *e)
{
    appearance *ap = env;
    int i = e->kind == KN_E_VAR ? kn_graph_find_size(ap->g, e->name) : -1;
    if (i < 0 || ap->seen[i])
        return;
    ap->seen[i] = true;
    ap->order[ap->n++] = i;
}

static appearance sizes_of_inputs(kn_arena *a, const kn_graph *g)
{
    appearance ap = {g, KN_ARRAY(a, bool, g->nsizes), KN_ARRAY(a, int, g->nsizes), 0};
    for (int i = 0; i < g->ninputs; i++)
        for (int d = 0; d < g->inputs[i]->rank; d++)
            kn_expr_visit(g->inputs[i]->shape[d], note_size, &ap);
    return ap;
}

/* Without a `where` clause, sizes come in the order of appearance and with these bounds. */
static bool needs_where(const kn_graph *g, const appearance *ap, int i)
{
    const kn_size *s = &g->sizes[i];
    return !ap->seen[i] || s->lo != 1 || s->hi != KN_SIZE_DEFAULT_MAX || g->sources[i].value;
}

/* Whether a list of only those sizes that need it would be read back in another order. */
static bool out_of_order(const kn_graph *g, const appearance *ap)
{
    for (int i = 0; i < g->nsizes; i++)
        if (i < ap->n ? ap->order[i] != i : ap->seen[i])
            return true;
    return false;
}

static void put_sizes(kn_str *out, const kn_graph *g)
{
    appearance ap = sizes_of_inputs(out->arena, g);
    bool all = out_of_order(g, &ap);
    const char *before = " where ";
    for (int i = 0; i < g->nsizes; i++) {
        const kn_size *s = &g->sizes[i];
        if (!all && !needs_where(g, &ap, i))
            continue;
        kn_putf(out, "%s%s in %lld:%lld", before, s->name, (long long)s->lo, (long long)s->hi);
        if (g->sources[i].value) {
            kn_put(out, " = ");
            put_value(out, g->sources[i].value);
            kn_putf(out, "[%d]", g->sources[i].element);
        }
        before = ", ";
    }
}

/* ---- constants ---- */

static void put_literal(kn_str *out, const kn_expr *e)
{
    if (kn_dtype_is_float(e->type))
        kn_put_float(out, e->f, e->type != KN_F64);
    else if (e->type == KN_U64)
        kn_putf(out, "%llu", (unsigned long long)e->i);
    else
        kn_putf(out, "%lld", (long long)e->i);
}

static void put_hex(kn_str *out, const kn_value *v)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *data = v->data;
    kn_put(out, "hex \"");
    for (size_t i = 0; i < v->bytes; i++) {
        kn_put_char(out, digits[data[i] >> 4]);
        kn_put_char(out, digits[data[i] & 15]);
    }
    kn_put_char(out, '"');
}

/* Whether text can carry the element: not every bool byte and not every NaN can be written. */
static bool is_writable(const kn_value *v, const kn_expr *e, int64_t i)
{
    const unsigned char *data = v->data;
    if (v->type == KN_BOOL)
        return data[i] <= 1;
    return !kn_dtype_is_float(v->type) || !isnan(e->f);
}

static bool all_writable(kn_arena *a, const kn_value *v, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (!is_writable(v, kn_value_element(a, v, i), i))
            return false;
    return true;
}

/* Whether all elements have the bits of the first. */
static bool is_uniform(const kn_value *v, int64_t count)
{
    int bits = kn_dtype_bits(v->type);
    const unsigned char *data = v->data;
    if (bits < 8) {
        for (size_t i = 0; i < v->bytes; i++)
            if (data[i] != (i + 1 == v->bytes && count % 2 ? data[0] & 15 : (data[0] & 15) * 17))
                return false;
        return true;
    }
    size_t size = (size_t)bits / 8;
    for (size_t i = size; i < v->bytes; i += size)
        if (memcmp(data, data + i, size) != 0)
            return false;
    return true;
}

static void put_list(kn_str *out, kn_arena *a, const kn_value *v, int64_t count)
{
    kn_put_char(out, '[');
    for (int64_t i = 0; i < count; i++) {
        kn_put(out, i ? ", " : "");
        put_literal(out, kn_value_element(a, v, i));
    }
    kn_put_char(out, ']');
}

static void put_data(kn_str *out, kn_arena *a, const kn_value *v)
{
    int64_t count = kn_value_count(v);
    if (v->file) {
        kn_put(out, "file ");
        kn_put_quoted(out, v->file, strlen(v->file));
        kn_putf(out, " at %zu", v->offset);
    } else if (count > 1 && is_uniform(v, count) && all_writable(a, v, 1)) {
        kn_put(out, "splat ");
        put_literal(out, kn_value_element(a, v, 0));
    } else if (count <= MAX_LISTED && all_writable(a, v, count)) {
        put_list(out, a, v, count);
    } else {
        put_hex(out, v);
    }
}

/* ---- nodes ---- */

static void put_indexes(kn_str *out, const kn_attr *attr)
{
    kn_put_char(out, '[');
    for (int i = 0; i < attr->n; i++) {
        kn_put(out, i ? ", " : "");
        kn_expr_print(out, attr->indexes[i], false);
    }
    kn_put_char(out, ']');
}

static void put_floats(kn_str *out, const kn_attr *attr)
{
    kn_put_char(out, '[');
    for (int i = 0; i < attr->n; i++) {
        kn_put(out, i ? ", " : "");
        kn_put_float(out, attr->floats[i], false);
    }
    kn_put_char(out, ']');
}

static void put_attr(kn_str *out, const kn_attr *attr)
{
    kn_putf(out, "%s = ", attr->name);
    switch (attr->kind) {
    case KN_A_INDEX: kn_expr_print(out, attr->index, false); break;
    case KN_A_INDEXES: put_indexes(out, attr); break;
    case KN_A_FLOAT: kn_put_float(out, attr->f, false); break;
    case KN_A_FLOATS: put_floats(out, attr); break;
    case KN_A_STRING: kn_put_quoted(out, attr->string, strlen(attr->string)); break;
    case KN_A_TYPE: kn_put(out, kn_dtype_name(attr->type)); break;
    }
}

static void put_op(kn_str *out, const kn_node *n)
{
    kn_put(out, n->op->name);
    if (!kn_op_is_user_row(n->op))
        return;
    kn_str text = kn_str_make(out->arena);
    kn_notation_print(&text, n->notation);
    if (n->loops)
        kn_putf(&text, " loops:%s", n->loops);
    kn_put_char(out, ' ');
    kn_put_quoted(out, kn_str_get(&text), text.n);
}

static void put_node(kn_str *out, const kn_node *n)
{
    kn_put(out, "  ");
    for (int i = 0; i < n->noutputs; i++) {
        kn_put(out, i ? ", " : "");
        put_value(out, n->outputs[i]);
    }
    kn_put(out, " = ");
    put_op(out, n);
    kn_put_char(out, '(');
    for (int i = 0; i < n->ninputs; i++) {
        kn_put(out, i ? ", " : "");
        if (n->inputs[i])
            put_value(out, n->inputs[i]);
        else
            kn_put_char(out, '_');
    }
    kn_put_char(out, ')');
    for (int i = 0; i < n->nattrs; i++) {
        kn_put(out, i ? ", " : " {");
        put_attr(out, &n->attrs[i]);
    }
    kn_put(out, n->nattrs ? "}" : "");
    if (*n->name) {
        kn_put(out, " as ");
        kn_put_quoted(out, n->name, strlen(n->name));
    }
    if (n->group >= 0)
        kn_putf(out, " group %d", n->group);
    kn_put_char(out, '\n');
}

void kn_graph_print(kn_str *out, const kn_graph *g)
{
    kn_put(out, "graph ");
    put_graph_name(out, g);
    kn_put_char(out, '(');
    for (int i = 0; i < g->ninputs; i++) {
        kn_put(out, i ? ", " : "");
        put_typed_value(out, g->inputs[i]);
    }
    kn_put(out, ") -> ");
    put_outputs(out, g);
    put_sizes(out, g);
    kn_put(out, " {\n");
    kn_arena *scratch = kn_arena_create(kn_arena_ctx(g->arena));
    for (int i = 0; i < g->nconsts; i++) {
        kn_put(out, "  const ");
        put_typed_value(out, g->consts[i]);
        kn_put(out, " = ");
        put_data(out, scratch, g->consts[i]);
        kn_put_char(out, '\n');
    }
    kn_arena_destroy(scratch);
    for (int i = 0; i < g->nnodes; i++)
        put_node(out, g->nodes[i]);
    kn_put(out, "}\n");
}
