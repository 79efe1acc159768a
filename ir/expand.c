/* Lists of subscripts, the template, attributes: what all expansions are written with
 * (expand_internal.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/expand_internal.h"

kn_x kn_x_start(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_arena *a = out->arena;
    return (kn_x){
        .out = out, .a = a, .g = g, .node = node, .names = kn_map_make(a), .attrs = kn_str_make(a)};
}

void kn_x_fail(const kn_x *x, const char *fmt, ...)
{
    va_list args;
    char text[256];
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kn_raise(kn_arena_ctx(x->a), KN_INVALID, x->node->loc, "%s: %s", x->node->op->name, text);
}

/* ---- the template ---- */

void kn_x_set(kn_x *x, const char *name, const char *fmt, ...)
{
    va_list args;
    char text[1024];
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        kn_x_fail(x, "too long an expression");
    kn_map_set(&x->names, kn_strdup(x->a, name), kn_strdup(x->a, text));
}

void kn_x_let(kn_x *x, const char *name, const kn_subs *list)
{
    kn_str s = kn_str_make(x->a);
    for (int i = 0; i < list->n; i++)
        kn_putf(&s, "%s%s", i ? ", " : "", list->at[i]);
    kn_map_set(&x->names, kn_strdup(x->a, name), kn_strdup(x->a, kn_str_get(&s)));
}

static const char *lookup(kn_x *x, const char *name, size_t n)
{
    char key[64];
    if (n >= sizeof key)
        kn_x_fail(x, "a name too long in a template");
    memcpy(key, name, n);
    key[n] = 0;
    if (strcmp(key, "attrs") == 0)
        return kn_str_get(&x->attrs);
    const char *text = kn_map_get(&x->names, key);
    if (!text)
        kn_raise(kn_arena_ctx(x->a), KN_INTERNAL, x->node->loc, "%s: $%s is not set",
                 x->node->op->name, key);
    return text;
}

static void drop_comma(kn_str *out)
{
    if (out->n >= 2 && strcmp(out->at + out->n - 2, ", ") == 0) {
        out->n -= 2;
        out->at[out->n] = 0;
    }
}

void kn_x_write(kn_x *x, const char *text)
{
    while (*text) {
        size_t plain = strcspn(text, "$");
        kn_put_n(x->out, text, plain);
        text += plain;
        if (!*text)
            return;
        size_t n = 1;
        while (isalnum((unsigned char)text[n]) || text[n] == '_')
            n++;
        const char *value = lookup(x, text + 1, n - 1);
        text += n;
        kn_put(x->out, value);
        if (*value)
            continue;
        if (strncmp(text, ", ", 2) == 0)
            text += 2;
        else
            drop_comma(x->out);
    }
}

/* ---- lists ---- */

void kn_x_push(kn_x *x, kn_subs *list, const char *item)
{
    if (list->n == (int)(sizeof list->at / sizeof *list->at))
        kn_x_fail(x, "too many dimensions");
    list->at[list->n++] = item;
}

void kn_x_append(kn_x *x, kn_subs *list, const kn_subs *more)
{
    for (int i = 0; i < more->n; i++)
        kn_x_push(x, list, more->at[i]);
}

kn_subs kn_x_subs(kn_x *x, const char *stem, int n)
{
    kn_subs list = {0};
    for (int i = 0; i < n; i++)
        kn_x_push(x, &list, kn_format(x->a, "%s%d", stem, i));
    return list;
}

kn_subs kn_x_pick(const kn_subs *list, unsigned mask)
{
    kn_subs out = {0};
    for (int i = 0; i < list->n; i++)
        if (mask >> i & 1)
            out.at[out.n++] = list->at[i];
    return out;
}

int kn_x_dims(kn_x *x, const char *name, int k, const char *stem)
{
    kn_subs list = kn_x_subs(x, stem, kn_x_rank(x, k));
    kn_x_let(x, name, &list);
    return list.n;
}

void kn_x_broadcast(kn_x *x, const char *name, int k, const kn_subs *dims, const kn_subs *subs)
{
    int rank = kn_x_rank(x, k), skip = dims->n - rank;
    if (skip < 0)
        kn_x_fail(x, "operand %d has rank %d, expected at most %d", k, rank, dims->n);
    kn_subs d = {0}, i = {0};
    for (int j = 0; j < rank; j++) {
        bool one = kn_x_dim(x, k, j) == 1;
        kn_x_push(x, &d, one ? "1" : dims->at[skip + j]);
        kn_x_push(x, &i, one ? "0" : subs->at[skip + j]);
    }
    kn_x_let(x, kn_format(x->a, "%s_d", name), &d);
    kn_x_let(x, kn_format(x->a, "%s_i", name), &i);
}

void kn_x_single(kn_x *x, const char *name, int k)
{
    kn_subs d = {0}, i = {0};
    for (int j = 0; j < kn_x_rank(x, k); j++) {
        kn_x_push(x, &d, "1");
        kn_x_push(x, &i, "0");
    }
    kn_x_let(x, kn_format(x->a, "%s_d", name), &d);
    kn_x_let(x, kn_format(x->a, "%s_i", name), &i);
}

/* ---- operands ---- */

const kn_value *kn_x_operand(const kn_x *x, int k)
{
    return k < x->node->ninputs ? x->node->inputs[k] : NULL;
}

int kn_x_rank(const kn_x *x, int k)
{
    const kn_value *v = kn_x_operand(x, k);
    if (!v)
        kn_x_fail(x, "operand %d is missing", k);
    return v->rank;
}

int64_t kn_x_dim(const kn_x *x, int k, int axis)
{
    int64_t n = -1;
    if (axis < 0 || axis >= kn_x_rank(x, k))
        kn_x_fail(x, "operand %d has rank %d, expected more than %d", k, kn_x_rank(x, k), axis);
    return kn_index_const(x->node->inputs[k]->shape[axis], &n) ? n : -1;
}

int64_t kn_x_dim_const(const kn_x *x, int k, int axis)
{
    int64_t n = kn_x_dim(x, k, axis);
    if (n < 0)
        kn_x_fail(x, "dimension %d of operand %d is symbolic, expected a constant", axis, k);
    return n;
}

const char *kn_x_dim_text(kn_x *x, int k, int axis, const char *name)
{
    int64_t n = kn_x_dim(x, k, axis);
    return n < 0 ? name : kn_format(x->a, "%lld", (long long)n);
}

/* ---- attributes ---- */

static const kn_attr *list_attr(const kn_x *x, const char *name)
{
    const kn_attr *at = kn_node_attr(x->node, name);
    if (at && at->kind != KN_A_INDEXES)
        kn_x_fail(x, "attribute %s must be a list of integers", name);
    return at;
}

bool kn_x_has(const kn_x *x, const char *name)
{
    return kn_node_attr(x->node, name) != NULL;
}

int kn_x_count(const kn_x *x, const char *name)
{
    const kn_attr *at = list_attr(x, name);
    return at ? at->n : 0;
}

int64_t kn_x_int(const kn_x *x, const char *name, int64_t otherwise)
{
    return kn_node_int(x->node, name, otherwise);
}

int64_t kn_x_int_at(const kn_x *x, const char *name, int k, int64_t otherwise)
{
    const kn_attr *at = list_attr(x, name);
    int64_t value = otherwise;
    if (!at)
        return otherwise;
    if (k >= at->n)
        kn_x_fail(x, "attribute %s has %d elements, expected more", name, at->n);
    if (!kn_index_const(at->indexes[k], &value))
        kn_x_fail(x, "element %d of attribute %s must be a constant", k, name);
    return value;
}

const char *kn_x_string(const kn_x *x, const char *name, const char *otherwise)
{
    const kn_attr *at = kn_node_attr(x->node, name);
    if (at && at->kind != KN_A_STRING)
        kn_x_fail(x, "attribute %s must be a string", name);
    return at ? at->string : otherwise;
}

const char *kn_x_index(kn_x *x, const char *name, int k)
{
    const kn_attr *at = kn_node_attr(x->node, name);
    bool list = k >= 0;
    if (!at || at->kind != (list ? KN_A_INDEXES : KN_A_INDEX) || (list && k >= at->n))
        kn_x_fail(x, "attribute %s is missing, too short or of another type", name);
    const kn_expr *e = list ? at->indexes[k] : at->index;
    int64_t value;
    if (kn_index_const(e, &value))
        return kn_format(x->a, value < 0 ? "(%lld)" : "%lld", (long long)value);
    const char *text = list ? kn_format(x->a, "%s_%d", name, k) : name;
    const char *declaration = kn_format(x->a, "%s: size in -%lld:%lld", text, 1LL << 62, 1LL << 62);
    if (!strstr(kn_str_get(&x->attrs), declaration))
        kn_putf(&x->attrs, "%s%s", x->attrs.n ? ", " : "", declaration);
    return text;
}

const char *kn_x_float(kn_x *x, double value)
{
    kn_str s = kn_str_make(x->a);
    if (value < 0)
        kn_put_char(&s, '(');
    kn_put_float(&s, value, false);
    if (value < 0)
        kn_put_char(&s, ')');
    return kn_str_get(&s);
}

static int axis_in(const kn_x *x, int64_t axis, int rank)
{
    int64_t k = axis < 0 ? axis + rank : axis;
    if (k < 0 || k >= rank)
        kn_x_fail(x, "axis %lld is outside rank %d", (long long)axis, rank);
    return (int)k;
}

int kn_x_axis(const kn_x *x, const char *name, int64_t otherwise, int rank)
{
    return axis_in(x, kn_x_int(x, name, otherwise), rank);
}

unsigned kn_x_axes(const kn_x *x, const char *name, int rank)
{
    if (!kn_x_has(x, name))
        return (1u << rank) - 1;
    unsigned mask = 0;
    for (int k = 0; k < kn_x_count(x, name); k++)
        mask |= 1u << axis_in(x, kn_x_int_at(x, name, k, 0), rank);
    return mask;
}

/* Splits a name like `starts_2` at its last underscore. */
static const kn_attr *element_attr(kn_arena *a, const kn_node *node, const char *name, int *k)
{
    const char *bar = strrchr(name, '_');
    if (!bar || !isdigit((unsigned char)bar[1]))
        return NULL;
    char *stem = kn_format(a, "%.*s", (int)(bar - name), name);
    *k = (int)strtol(bar + 1, NULL, 10);
    const kn_attr *at = kn_node_attr(node, stem);
    return at && *k < at->n ? at : NULL;
}

bool kn_expand_attr(kn_arena *a, const kn_node *node, const char *name, kn_attr_value *out)
{
    int k = 0;
    const kn_attr *at = kn_node_attr(node, name);
    *out = (kn_attr_value){.name = name, .type = KN_UNTYPED};
    if (!at && !(at = element_attr(a, node, name, &k)))
        return false;
    switch (at->kind) {
    case KN_A_INDEX: out->value = at->index; return true;
    case KN_A_INDEXES: out->value = at->indexes[k]; return true;
    case KN_A_FLOAT: out->value = kn_float(a, KN_F64, at->f); return true;
    case KN_A_FLOATS: out->value = kn_float(a, KN_F64, at->floats[k]); return true;
    case KN_A_TYPE: out->type = at->type; return true;
    case KN_A_STRING: return false;
    }
    return false;
}
