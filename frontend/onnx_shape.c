/* Names of values and declared shapes. A dim_param is read as an expression (`past + seq`) when
   every name in it is the whole of some input's dimension; any other text is a name of its own. */
#include <ctype.h>

#include "frontend/onnx_internal.h"

static const char *allowed_name(kn_onnx *m, const char *prefix, const char *name)
{
    kn_str s = kn_str_make(m->arena);
    kn_put(&s, prefix);
    for (const char *c = name; *c; c++) {
        kn_put_char(&s, isalnum((unsigned char)*c) || strchr("_.:/-", *c) ? *c : '_');
    }
    return kn_intern(m->ctx, *kn_str_get(&s) ? kn_str_get(&s) : "v");
}

const char *kn_onnx_value_name(kn_onnx *m, const char *prefix, const char *name)
{
    return kn_graph_fresh(m->g, allowed_name(m, prefix, name));
}

const char *kn_onnx_output_name(kn_onnx *m, const char *name)
{
    const char *own = allowed_name(m, "", name);
    return kn_map_has(&m->g->values, own) ? kn_graph_fresh(m->g, own) : own;
}

/* ---- dimensions ---- */

static bool is_identifier(const char *text)
{
    bool ok = isalpha((unsigned char)text[0]) || text[0] == '_';
    for (const char *c = text; *c && ok; c++) {
        ok = isalnum((unsigned char)*c) || *c == '_';
    }
    return ok;
}

/* A size's name made of any text. */
static const char *size_name(kn_onnx *m, const char *text)
{
    kn_str s = kn_str_make(m->arena);
    if (!isalpha((unsigned char)*text) && *text != '_') {
        kn_put_char(&s, 'd');
    }
    for (const char *c = text; *c; c++) {
        kn_put_char(&s, isalnum((unsigned char)*c) ? *c : '_');
    }
    return kn_intern(m->ctx, kn_str_get(&s));
}

const char *kn_onnx_graph_name(kn_onnx *m, const char *name)
{
    return name && *name ? size_name(m, name) : kn_intern(m->ctx, "model");
}

static const kn_expr *size(kn_onnx *m, const char *name)
{
    if (!kn_map_has(&m->bindable_names, name)) {
        kn_map_set(&m->bindable_names, name, m);
        kn_push(m->arena, &m->bindable, name);
    }
    for (int i = 0; m->options && i < m->options->ndims; i++) {
        const kn_size *d = &m->options->dims[i];
        if (strcmp(d->name, name) == 0) {
            return d->lo == d->hi ? kn_index(m->arena, d->lo)
                                  : kn_graph_size(m->g, name, d->lo, d->hi);
        }
    }
    return kn_graph_size(m->g, name, 0, KN_SIZE_DEFAULT_MAX);
}

kn_map kn_onnx_input_dimensions(const kn_onnx *m)
{
    const Kiln__Onnx__Graph *g = m->model->graph;
    kn_map names = kn_map_make(m->arena);
    for (size_t i = 0; i < g->n_input; i++) {
        const Kiln__Onnx__Type *type = g->input[i]->type;
        const Kiln__Onnx__Shape *shape =
            type && type->tensor_type ? type->tensor_type->shape : NULL;
        for (size_t k = 0; shape && k < shape->n_dim; k++) {
            const char *name = shape->dim[k]->dim_param;
            if (name && is_identifier(name)) {
                kn_map_set(&names, kn_intern(m->ctx, name), shape->dim[k]);
            }
        }
    }
    return names;
}

/* Names, numbers, + - * and brackets, each operator with spaces around it or none being `-`:
 * "batch-size" is a name. */
static bool is_expression(const kn_onnx *m, const char *text)
{
    bool names = true, words = false;
    for (const char *c = text; *c && names;) {
        if (isalpha((unsigned char)*c) || *c == '_') {
            size_t n = 1;
            while (isalnum((unsigned char)c[n]) || c[n] == '_') {
                n++;
            }
            names = kn_map_has(&m->dimensions, kn_intern_n(m->ctx, c, n));
            words = true;
            c += n;
        } else {
            names = isdigit((unsigned char)*c) || strchr(" +-*/()", *c);
            c++;
        }
    }
    return names && words;
}

typedef struct {
    kn_ctx *ctx;
    const char *text;
} kn_trial;

static void parse_trial(void *env)
{
    kn_trial *t = env;
    kn_lexer lx;
    kn_lex_init(&lx, kn_arena_create(t->ctx), "dimension", t->text, strlen(t->text), kn_loc_none());
    kn_parse_index(&lx);
    if (lx.token.kind != KN_T_END) {
        kn_lex_fail(&lx, "expected the end");
    }
}

/* Whether the text is well-formed, tried in a context of its own: a failure leaves no diagnostics.
 */
static bool parses(const char *text)
{
    kn_trial t = {kn_ctx_create(), text};
    bool ok = t.ctx && kn_protect(t.ctx, parse_trial, &t) == KN_OK;
    kn_ctx_destroy(t.ctx);
    return ok;
}

static const kn_expr *bind_size(void *env, const kn_expr *e)
{
    return e->kind == KN_E_VAR ? size(env, e->name) : e;
}

static const kn_expr *parse_dimension(kn_onnx *m, const char *text)
{
    if (is_identifier(text)) {
        return size(m, kn_intern(m->ctx, text));
    }
    if (!is_expression(m, text) || !parses(text)) {
        return size(m, size_name(m, text));
    }
    kn_lexer lx;
    kn_lex_init(&lx, m->arena, m->file->path, text, strlen(text), kn_loc_none());
    return kn_index_simplify(m->arena,
                             kn_expr_rewrite(m->arena, kn_parse_index(&lx), bind_size, m));
}

static const kn_expr *dimension(kn_onnx *m, const Kiln__Onnx__Dimension *d, const char *value,
                                int axis)
{
    if (d->dim_param && *d->dim_param) {
        return parse_dimension(m, d->dim_param);
    }
    if (!d->has_dim_value ||
        d->dim_value == -1) { /* -1: what some exporters write for an open dimension */
        return size(m, size_name(m, kn_intern_f(m->ctx, "%s_d%d", value, axis)));
    }
    if (d->dim_value < 0 || d->dim_value > INT64_C(1) << 48) {
        kn_raise(m->ctx, KN_INVALID, kn_onnx_loc(m, value), "dimension %d is %lld", axis,
                 (long long)d->dim_value);
    }
    return kn_index(m->arena, d->dim_value);
}

int kn_onnx_shape_of(kn_onnx *m, const Kiln__Onnx__TensorType *t, const char *name,
                     const kn_expr **shape)
{
    if (!t || !t->shape) {
        return -1;
    }
    if (t->shape->n_dim > KN_MAX_RANK) {
        kn_raise(m->ctx, KN_UNSUPPORTED, kn_onnx_loc(m, name), "rank %zu, at most %d is supported",
                 t->shape->n_dim, KN_MAX_RANK);
    }
    for (size_t i = 0; i < t->shape->n_dim; i++) {
        shape[i] = dimension(m, t->shape->dim[i], name, (int)i);
    }
    return (int)t->shape->n_dim;
}

void kn_onnx_check_dims(const kn_onnx *m)
{
    for (int i = 0; m->options && i < m->options->ndims; i++) {
        const char *name = m->options->dims[i].name;
        if (!kn_map_has(&m->bindable_names, name)) {
            kn_no_dimension(m->arena, name, m->bindable.at, m->bindable.n);
        }
    }
}
