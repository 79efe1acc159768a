/* Graph text -> graph (docs/graph-ir.md). Nodes are made by kn_graph_node() as they are read, so
   every mistake in their operands is found with their place. Nested calls become nodes of their
   own, whose results get names that the text does not use. */
#include <math.h>
#include <stdio.h>

#include "ir/graph_internal.h"

/* A size whose value is read from a tensor that may not be defined yet. */
typedef struct {
    int size;
    const char *value;
    int64_t element;
    kn_loc loc;
    bool found;
} pending_source;

/* A result of the graph, checked when the body was read. */
typedef struct {
    const char *name, *alias; /* alias NULL: none */
    kn_loc loc, alias_loc;
    bool typed;
    kn_dtype type;
    int rank;
    const kn_expr *shape[KN_MAX_RANK];
} pending_output;

typedef struct {
    const char *name;
    kn_loc loc;
    bool typed;
    kn_dtype type;
    int rank;
    const kn_expr *shape[KN_MAX_RANK];
} result_name;

typedef struct {
    kn_lexer lx;
    kn_ctx *ctx;
    kn_arena *a;
    size_t splat_bytes; /* so far */
    kn_graph *g;
    kn_map named; /* value names that occur in the text */
    kn_map files; /* path -> kn_file */
    KN_VEC(pending_source) sources;
    KN_VEC(pending_output) outputs;
} parser;

_Noreturn static void fail_at(parser *p, kn_loc loc, const char *fmt, ...) KN_PRINTF(3, 4);
_Noreturn static void fail_at(parser *p, kn_loc loc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = kn_alloc(p->a, (size_t)(n < 0 ? 0 : n) + 1);
    vsnprintf(text, (size_t)(n < 0 ? 0 : n) + 1, fmt, again);
    va_end(again);
    kn_raise(p->ctx, KN_INVALID, loc, "%s", text);
}

/* ---- names and types ---- */

static bool is_punct(const kn_token *t, const char *text)
{
    return t->kind == KN_T_PUNCT && strcmp(t->text, text) == 0;
}

/* %name or %"name" */
static bool at_value(parser *p)
{
    return p->lx.token.kind == KN_T_VALUE ||
           (is_punct(&p->lx.token, "%") && kn_lex_peek(&p->lx)->kind == KN_T_STRING);
}

static const char *take_string(parser *p, const char *what)
{
    if (p->lx.token.kind != KN_T_STRING)
        kn_lex_fail(&p->lx, "expected %s", what);
    const char *text = p->lx.token.text;
    if (strlen(text) != p->lx.token.length)
        kn_lex_fail(&p->lx, "%s with a NUL in it", what);
    kn_lex_next(&p->lx);
    return text;
}

static const char *take_value(parser *p)
{
    if (!at_value(p))
        kn_lex_fail(&p->lx, "expected a %%value");
    const char *name = p->lx.token.text;
    bool quoted = p->lx.token.kind == KN_T_PUNCT;
    kn_lex_next(&p->lx);
    return quoted ? kn_intern(p->ctx, take_string(p, "a quoted name")) : name;
}

static int take_shape(parser *p, kn_dtype *type, const kn_expr **shape)
{
    int rank = 0;
    *type = kn_parse_dtype(&p->lx);
    if (*type == KN_INDEX)
        kn_lex_fail(&p->lx, "no tensor has the type index");
    kn_lex_expect(&p->lx, "[");
    while (!kn_lex_is(&p->lx, "]")) {
        if (rank == KN_MAX_RANK)
            kn_lex_fail(&p->lx, "more than %d dimensions", KN_MAX_RANK);
        shape[rank++] = kn_parse_index(&p->lx);
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, "]");
    return rank;
}

static void check_known(parser *p, const kn_expr *e, kn_loc loc)
{
    if (kn_graph_knows(p->g, e))
        return;
    kn_str s = kn_str_make(p->a);
    kn_expr_print(&s, e, false);
    fail_at(p, loc, "'%s' mentions something that is no size of the graph", kn_str_get(&s));
}

/* The names in a text, so that made-up ones stay clear of them. */
static void collect_names(parser *p, const char *file, const char *text, size_t n)
{
    kn_lexer lx;
    p->named = kn_map_make(p->a);
    kn_lex_init(&lx, p->a, file, text, n, kn_loc_none());
    for (bool sign = false; lx.token.kind != KN_T_END; kn_lex_next(&lx)) {
        if (lx.token.kind == KN_T_VALUE || (sign && lx.token.kind == KN_T_STRING))
            kn_map_set(&p->named, lx.token.text, p);
        sign = is_punct(&lx.token, "%");
    }
}

static const char *made_up(parser *p, const char *stem)
{
    const char *name;
    do
        name = kn_graph_fresh(p->g, stem);
    while (kn_map_has(&p->named, name));
    return name;
}

/* ---- signature ---- */

static void declare_size(void *env, const kn_expr *e)
{
    parser *p = env;
    if (e->kind == KN_E_VAR && kn_graph_find_size(p->g, e->name) < 0)
        kn_graph_size(p->g, e->name, 1, KN_SIZE_DEFAULT_MAX);
}

static void parse_input(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    const kn_expr *shape[KN_MAX_RANK];
    kn_dtype type;
    const char *name = loc.where = take_value(p);
    kn_lex_expect(&p->lx, ":");
    int rank = take_shape(p, &type, shape);
    for (int i = 0; i < rank; i++) {
        kn_expr_visit(shape[i], declare_size, p);
        check_known(p, shape[i], loc);
    }
    kn_graph_input(p->g, name, type, shape, rank, loc);
}

static void parse_output(parser *p)
{
    pending_output out = {.loc = p->lx.token.loc};
    out.name = out.loc.where = take_value(p);
    if (kn_lex_accept(&p->lx, ":")) {
        out.typed = true;
        out.rank = take_shape(p, &out.type, out.shape);
    }
    if (kn_lex_accept(&p->lx, "aliases")) {
        out.alias_loc = p->lx.token.loc;
        out.alias = take_value(p);
    }
    kn_push(p->a, &p->outputs, out);
}

static void parse_outputs(parser *p)
{
    if (!kn_lex_accept(&p->lx, "(")) {
        parse_output(p);
        return;
    }
    while (!kn_lex_is(&p->lx, ")")) {
        parse_output(p);
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, ")");
}

/* name in lo:hi [= %value[element]]; returns the size's place */
static int parse_size(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    const char *name = loc.where = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, "in");
    int64_t lo = kn_lex_int(&p->lx);
    kn_lex_expect(&p->lx, ":");
    int64_t hi = kn_lex_int(&p->lx);
    if (lo > hi)
        fail_at(p, loc, "size %s in %lld:%lld has no values", name, (long long)lo, (long long)hi);
    int i = kn_graph_find_size(p->g, name);
    if (i < 0) {
        kn_graph_size(p->g, name, lo, hi);
        i = p->g->nsizes - 1;
    }
    p->g->sizes[i].lo = lo;
    p->g->sizes[i].hi = hi;
    if (kn_lex_accept(&p->lx, "=")) {
        pending_source s = {.size = i, .loc = p->lx.token.loc};
        s.value = s.loc.where = take_value(p);
        kn_lex_expect(&p->lx, "[");
        s.element = kn_lex_int(&p->lx);
        kn_lex_expect(&p->lx, "]");
        kn_push(p->a, &p->sources, s);
    }
    return i;
}

/* A clause that names all sizes orders them, too. */
static void reorder_sizes(parser *p, const int *order, int n)
{
    kn_graph *g = p->g;
    if (n != g->nsizes)
        return;
    kn_size *sizes = KN_ARRAY(g->arena, kn_size, g->sizes_cap);
    int *now_at = KN_ARRAY(p->a, int, n);
    for (int i = 0; i < n; i++) {
        sizes[i] = g->sizes[order[i]];
        now_at[order[i]] = i;
    }
    g->sizes = sizes;
    for (int i = 0; i < p->sources.n; i++)
        p->sources.at[i].size = now_at[p->sources.at[i].size];
}

static void parse_sizes(parser *p)
{
    KN_VEC(int) order = {0};
    if (!kn_lex_accept(&p->lx, "where"))
        return;
    do {
        kn_loc loc = p->lx.token.loc;
        int size = parse_size(p);
        for (int i = 0; i < order.n; i++)
            if (order.at[i] == size)
                fail_at(p, loc, "size %s is given twice", p->g->sizes[size].name);
        kn_push(p->a, &order, size);
    } while (kn_lex_accept(&p->lx, ","));
    reorder_sizes(p, order.at, order.n);
}

static void check_input_dims(parser *p)
{
    for (int i = 0; i < p->g->ninputs; i++) {
        const kn_value *v = p->g->inputs[i];
        for (int d = 0; d < v->rank; d++)
            if (kn_index_range(v->shape[d], p->g->sizes, p->g->nsizes).lo < 0)
                fail_at(p, v->loc, "dimension %d of input %%%s may be negative", d, v->name);
    }
    for (int i = 0; i < p->outputs.n; i++)
        for (int d = 0; d < p->outputs.at[i].rank; d++)
            check_known(p, p->outputs.at[i].shape[d], p->outputs.at[i].loc);
}

static void parse_signature(parser *p)
{
    kn_lex_expect(&p->lx, "graph");
    if (p->lx.token.kind != KN_T_SYMBOL)
        kn_lex_fail(&p->lx, "expected the graph's @name");
    p->g = kn_graph_create(p->a, p->lx.token.text);
    kn_lex_next(&p->lx);
    kn_lex_expect(&p->lx, "(");
    while (!kn_lex_is(&p->lx, ")")) {
        parse_input(p);
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, ")");
    kn_lex_expect(&p->lx, "->");
    parse_outputs(p);
    parse_sizes(p);
    check_input_dims(p);
}

/* ---- definitions ---- */

/* The elements of a value that sizes are read from are these sizes, where they are not known
 * otherwise. */
static void note_content(parser *p, kn_value *v, int64_t count)
{
    if (v->content || count > KN_MAX_CONTENT)
        return;
    const kn_expr **content = KN_ARRAY(p->a, const kn_expr *, count);
    for (int64_t i = 0; v->known && i < count; i++)
        content[i] = v->known[i];
    for (int i = 0; i < p->g->nsizes; i++)
        if (p->g->sources[i].value == v && !content[p->g->sources[i].element])
            content[p->g->sources[i].element] = kn_var(p->a, KN_INDEX, p->g->sizes[i].name);
    for (int64_t i = 0; i < count; i++)
        if (!content[i])
            return;
    v->content = content;
}

/* Called for each value once it is there: sizes that were waiting for it get their source. */
static void defined(parser *p, kn_value *v)
{
    bool any = false;
    int64_t count = kn_value_count(v);
    for (int i = 0; i < p->sources.n; i++) {
        pending_source *s = &p->sources.at[i];
        if (s->found || strcmp(s->value, v->name) != 0)
            continue;
        if (!kn_dtype_is_integer(v->type))
            fail_at(p, s->loc, "a size is read from integers, %%%s is %s", v->name,
                    kn_value_type_text(p->a, v));
        if (s->element < 0 || s->element >= count || s->element > INT32_MAX)
            fail_at(p, s->loc, "%%%s is %s, it has no element %lld for certain", v->name,
                    kn_value_type_text(p->a, v), (long long)s->element);
        p->g->sources[s->size] = (struct kn_size_source){v, (int)s->element};
        any = s->found = true;
    }
    if (any)
        note_content(p, v, count);
}

static void check_type(parser *p, const kn_value *v, kn_loc loc, kn_dtype type, int rank,
                       const kn_expr *const *shape)
{
    bool same = v->type == type && v->rank == rank;
    for (int i = 0; same && i < rank; i++)
        same = kn_expr_equal(v->shape[i], shape[i]);
    if (same)
        return;
    kn_str said = kn_str_make(p->a);
    kn_shape_print(&said, type, shape, rank);
    fail_at(p, loc, "%%%s is declared as %s, but is %s", v->name, kn_str_get(&said),
            kn_value_type_text(p->a, v));
}

/* ---- constants ---- */

enum { MAX_SPLATS = 1 << 28 }; /* bytes of a graph: what a few characters of text may ask for */

/* [-] number, inf, nan, true, false, as a literal of the type */
static const kn_expr *parse_literal(parser *p, kn_dtype type)
{
    kn_lexer *lx = &p->lx;
    bool minus = kn_lex_accept(lx, "-");
    kn_token t = lx->token;
    bool is_int = t.kind == KN_T_INT, is_float = t.kind == KN_T_FLOAT;
    double f = is_int ? (double)t.i : t.f;
    if (t.kind == KN_T_NAME && (strcmp(t.text, "inf") == 0 || strcmp(t.text, "nan") == 0)) {
        is_float = true;
        f = *t.text == 'i' ? (double)INFINITY : (double)NAN;
    }
    if (t.kind == KN_T_NAME && (strcmp(t.text, "true") == 0 || strcmp(t.text, "false") == 0)) {
        is_int = type == KN_BOOL;
        t.i = *t.text == 't';
    }
    if (!is_int && !(is_float && kn_dtype_is_float(type)))
        kn_lex_fail(lx, "expected a literal of type %s", kn_dtype_name(type));
    if (!kn_dtype_is_float(type) &&
        t.i > (minus ? -(uint64_t)kn_dtype_min(type) : kn_dtype_max(type)))
        kn_lex_fail(lx, "%s%llu does not fit %s", minus ? "-" : "", (unsigned long long)t.i,
                    kn_dtype_name(type));
    kn_lex_next(lx);
    if (kn_dtype_is_float(type))
        return kn_float(p->a, type, minus ? -f : f);
    return kn_int(p->a, type, (int64_t)(minus ? -t.i : t.i));
}

typedef struct {
    const char *name;
    kn_loc loc;
    kn_dtype type;
    int64_t count;
    size_t bytes;
    void *data;
    const char *file;
    size_t offset;
} constant;

static void *room(parser *p, const constant *c)
{
    return kn_alloc(p->a, c->bytes ? c->bytes : 1);
}

static void parse_list(parser *p, constant *c)
{
    KN_VEC(const kn_expr *) list = {0};
    while (!kn_lex_is(&p->lx, "]")) {
        kn_push(p->a, &list, parse_literal(p, c->type));
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    if (list.n != c->count)
        fail_at(p, c->loc, "constant %%%s should have %lld elements, found %d", c->name,
                (long long)c->count, list.n);
    kn_lex_expect(&p->lx, "]");
    c->data = room(p, c);
    for (int i = 0; i < list.n; i++)
        kn_element_put(c->type, c->data, i, list.at[i]);
}

static void parse_splat(parser *p, constant *c)
{
    const kn_expr *e = parse_literal(p, c->type);
    if (c->bytes > MAX_SPLATS - p->splat_bytes)
        fail_at(p, c->loc, "constant %%%s of %zu bytes is too large for a splat", c->name,
                c->bytes);
    p->splat_bytes += c->bytes;
    c->data = room(p, c);
    for (int64_t i = 0; i < c->count; i++)
        kn_element_put(c->type, c->data, i, e);
}

static void parse_hex(parser *p, constant *c)
{
    const char *text = take_string(p, "a string of hex digits");
    size_t n = strlen(text);
    if (n / 2 != c->bytes || n % 2)
        fail_at(p, c->loc, "constant %%%s should have %zu bytes, found %zu hex digits", c->name,
                c->bytes, n);
    unsigned char *data = c->data = room(p, c);
    for (size_t i = 0; i < n; i += 2) {
        int high = kn_hex_digit(text[i]), low = kn_hex_digit(text[i + 1]);
        if (high < 0 || low < 0)
            fail_at(p, c->loc, "constant %%%s: '%c%c' is no byte in hex", c->name, text[i],
                    text[i + 1]);
        data[i / 2] = (unsigned char)(high * 16 + low);
    }
}

static void parse_file(parser *p, constant *c)
{
    const char *path = take_string(p, "a file's name");
    kn_lex_expect(&p->lx, "at");
    int64_t offset = kn_lex_int(&p->lx);
    kn_file *file = kn_map_get(&p->files, path);
    if (!file)
        kn_map_set(&p->files, path, file = kn_file_map(p->ctx, path));
    if (offset < 0 || (uint64_t)offset > file->size || c->bytes > file->size - (size_t)offset)
        fail_at(p, c->loc,
                "constant %%%s should have %zu bytes at %lld of '%s', found a file of %zu bytes",
                c->name, c->bytes, (long long)offset, path, file->size);
    c->file = file->path;
    c->offset = (size_t)offset;
    c->data = (unsigned char *)(uintptr_t)file->data + offset;
}

static void const_shape(parser *p, constant *c, int64_t *dims, int *rank)
{
    const kn_expr *shape[KN_MAX_RANK];
    *rank = take_shape(p, &c->type, shape);
    c->count = kn_shape_count(shape, *rank);
    int64_t bytes = c->count < 0 ? -1 : kn_dtype_bytes(c->type, c->count);
    if (bytes < 0)
        fail_at(p, c->loc, "constant %%%s needs a constant shape that memory can hold", c->name);
    c->bytes = (size_t)bytes;
    for (int i = 0; i < *rank; i++)
        kn_index_const(shape[i], &dims[i]);
}

static void parse_const(parser *p)
{
    constant c = {.loc = p->lx.token.loc};
    int64_t dims[KN_MAX_RANK];
    int rank;
    c.name = c.loc.where = take_value(p);
    kn_lex_expect(&p->lx, ":");
    const_shape(p, &c, dims, &rank);
    kn_lex_expect(&p->lx, "=");
    if (kn_lex_accept(&p->lx, "["))
        parse_list(p, &c);
    else if (kn_lex_accept(&p->lx, "splat"))
        parse_splat(p, &c);
    else if (kn_lex_accept(&p->lx, "hex"))
        parse_hex(p, &c);
    else if (kn_lex_accept(&p->lx, "file"))
        parse_file(p, &c);
    else
        kn_lex_fail(&p->lx, "expected [elements], splat, hex or file");
    kn_value *v = kn_graph_const(p->g, c.name, c.type, dims, rank, c.data, c.bytes, c.loc);
    v->file = c.file;
    v->offset = c.offset;
    defined(p, v);
}

/* ---- attributes ---- */

/* A number that is no index expression, if one stands here. */
static bool accept_float(parser *p, double *out)
{
    bool minus = kn_lex_is(&p->lx, "-");
    const kn_token *t = minus ? kn_lex_peek(&p->lx) : &p->lx.token;
    if (t->kind == KN_T_FLOAT)
        *out = t->f;
    else if (t->kind == KN_T_NAME && strcmp(t->text, "inf") == 0)
        *out = (double)INFINITY;
    else if (t->kind == KN_T_NAME && strcmp(t->text, "nan") == 0)
        *out = (double)NAN;
    else
        return false;
    if (minus) {
        *out = -*out;
        kn_lex_next(&p->lx);
    }
    kn_lex_next(&p->lx);
    return true;
}

static const kn_expr *attr_index(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    if (kn_lex_is(&p->lx, "true") || kn_lex_is(&p->lx, "false")) {
        bool yes = kn_lex_is(&p->lx, "true");
        kn_lex_next(&p->lx);
        return kn_index(p->a, yes);
    }
    const kn_expr *e = kn_parse_index(&p->lx);
    check_known(p, e, loc);
    return e;
}

static kn_attr parse_attr_list(parser *p, const char *name)
{
    KN_VEC(const kn_expr *) indexes = {0};
    KN_VEC(double) floats = {0};
    bool any_float = false, any_size = false;
    kn_loc loc = p->lx.token.loc;
    while (!kn_lex_is(&p->lx, "]")) {
        double f = 0;
        int64_t i = 0;
        bool is_float = accept_float(p, &f);
        const kn_expr *e = is_float ? NULL : attr_index(p);
        any_float |= is_float;
        any_size |= e && !kn_index_const(e, &i);
        kn_push(p->a, &indexes, e);
        kn_push(p->a, &floats, is_float ? f : (double)i);
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, "]");
    if (any_float && any_size)
        fail_at(p, loc, "attribute '%s' mixes numbers and sizes", name);
    if (any_float)
        return kn_attr_floats(name, floats.at, floats.n);
    return kn_attr_indexes(name, indexes.at, indexes.n);
}

static kn_attr parse_attr(parser *p)
{
    const char *name = kn_lex_name(&p->lx);
    double f;
    kn_dtype type;
    kn_lex_expect(&p->lx, "=");
    const kn_token *t = &p->lx.token;
    if (t->kind == KN_T_STRING)
        return kn_attr_string(name, take_string(p, "a string"));
    if (kn_lex_accept(&p->lx, "["))
        return parse_attr_list(p, name);
    if (accept_float(p, &f))
        return kn_attr_float(name, f);
    if (t->kind == KN_T_NAME && kn_graph_find_size(p->g, t->text) < 0 &&
        kn_dtype_parse(t->text, strlen(t->text), &type)) {
        kn_lex_next(&p->lx);
        return kn_attr_type(name, type);
    }
    return kn_attr_index(name, attr_index(p));
}

/* ---- nodes ---- */

typedef KN_VEC(kn_attr) attr_list;

typedef struct {
    kn_loc loc;
    const char *op, *notation; /* notation NULL: a row */
    const char *name;
    int64_t group;
    KN_VEC(kn_value *) inputs;
    attr_list attrs;
} call;

static kn_node *parse_call(parser *p, const result_name *results, int nresults, kn_loc loc);

static kn_value *parse_operand(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    if (kn_lex_accept(&p->lx, "_"))
        return NULL;
    if (at_value(p)) {
        const char *name = loc.where = take_value(p);
        kn_value *v = kn_map_get(&p->g->values, name);
        if (!v)
            fail_at(p, loc, "%%%s is not defined", name);
        return v;
    }
    if (p->lx.token.kind != KN_T_NAME)
        kn_lex_fail(&p->lx, "expected an operand: a %%value, a call or _");
    result_name r = {.name = made_up(p, p->lx.token.text), .loc = loc};
    kn_lex_enter(&p->lx);
    kn_value *v = parse_call(p, &r, 1, loc)->outputs[0];
    kn_lex_leave(&p->lx);
    return v;
}

static void parse_call_head(parser *p, call *c)
{
    c->op = kn_lex_name(&p->lx);
    if (strcmp(c->op, "notation") == 0) {
        kn_loc loc = p->lx.token.loc;
        loc.column++;
        c->notation = take_string(p, "a notation in quotes");
        kn_graph_parse_meaning(p->g, c->notation, loc);
    }
    kn_lex_expect(&p->lx, "(");
    while (!kn_lex_is(&p->lx, ")")) {
        kn_push(p->a, &c->inputs, parse_operand(p));
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, ")");
}

static void parse_attrs(parser *p, attr_list *attrs)
{
    kn_lex_expect(&p->lx, "{");
    while (!kn_lex_is(&p->lx, "}")) {
        kn_push(p->a, attrs, parse_attr(p));
        if (!kn_lex_accept(&p->lx, ","))
            break;
    }
    kn_lex_expect(&p->lx, "}");
}

static void parse_call_tail(parser *p, call *c)
{
    if (kn_lex_is(&p->lx, "{"))
        parse_attrs(p, &c->attrs);
    if (kn_lex_accept(&p->lx, "as"))
        c->name = kn_intern(p->ctx, take_string(p, "a node's name in quotes"));
    c->group = -1;
    if (kn_lex_accept(&p->lx, "group")) {
        c->group = kn_lex_int(&p->lx);
        if (c->group < 0 || c->group > INT32_MAX)
            fail_at(p, c->loc, "group %lld is out of range", (long long)c->group);
    }
}

static kn_node *parse_call(parser *p, const result_name *results, int nresults, kn_loc loc)
{
    call c = {.loc = loc, .name = ""};
    parse_call_head(p, &c);
    parse_call_tail(p, &c);
    const char **names = KN_ARRAY(p->a, const char *, nresults);
    for (int i = 0; i < nresults; i++)
        names[i] = results[i].name;
    c.loc.where = *c.name ? c.name : names[0];
    kn_node *n = kn_graph_node(p->g, &(kn_node_spec){.op = c.notation ? NULL : c.op,
                                                     .notation = c.notation,
                                                     .name = c.name,
                                                     .inputs = c.inputs.at,
                                                     .ninputs = c.inputs.n,
                                                     .attrs = c.attrs.at,
                                                     .nattrs = c.attrs.n,
                                                     .outputs = names,
                                                     .noutputs = nresults,
                                                     .loc = c.loc});
    n->group = (int)c.group;
    for (int i = 0; i < nresults; i++) {
        n->outputs[i]->loc = results[i].loc;
        if (results[i].typed)
            check_type(p, n->outputs[i], results[i].loc, results[i].type, results[i].rank,
                       results[i].shape);
        defined(p, n->outputs[i]);
    }
    return n;
}

static result_name parse_result(parser *p)
{
    result_name r = {.loc = p->lx.token.loc};
    r.name = r.loc.where = take_value(p);
    if (kn_map_has(&p->g->values, r.name))
        fail_at(p, r.loc, "%%%s is defined twice", r.name);
    if (kn_lex_accept(&p->lx, ":")) {
        r.typed = true;
        r.rank = take_shape(p, &r.type, r.shape);
    }
    return r;
}

static void parse_node(parser *p)
{
    KN_VEC(result_name) results = {0};
    kn_loc loc = p->lx.token.loc;
    do
        kn_push(p->a, &results, parse_result(p));
    while (kn_lex_accept(&p->lx, ","));
    kn_lex_expect(&p->lx, "=");
    parse_call(p, results.at, results.n, loc);
}

/* ---- the end ---- */

static void resolve_output(parser *p, const pending_output *out)
{
    kn_value *v = kn_map_get(&p->g->values, out->name), *alias = NULL;
    if (!v)
        fail_at(p, out->loc, "output %%%s is not defined", out->name);
    if (out->typed)
        check_type(p, v, out->loc, out->type, out->rank, out->shape);
    if (out->alias) {
        alias = kn_map_get(&p->g->values, out->alias);
        bool input = false;
        for (int i = 0; i < p->g->ninputs; i++)
            input |= p->g->inputs[i] == alias;
        if (!input)
            fail_at(p, out->alias_loc, "%%%s aliases %%%s, which is no input", out->name,
                    out->alias);
    }
    kn_graph_output(p->g, v, alias);
}

static void parse_body(parser *p)
{
    for (int i = 0; i < p->g->ninputs; i++)
        defined(p, p->g->inputs[i]);
    kn_lex_expect(&p->lx, "{");
    while (!kn_lex_is(&p->lx, "}")) {
        if (kn_lex_accept(&p->lx, "const"))
            parse_const(p);
        else if (at_value(p))
            parse_node(p);
        else
            kn_lex_fail(&p->lx, "expected %%value = ..., const or }");
    }
    kn_lex_next(&p->lx);
    if (p->lx.token.kind != KN_T_END)
        kn_lex_fail(&p->lx, "expected the end of the text");
}

kn_graph *kn_graph_parse(kn_arena *a, const char *file, const char *text, size_t n)
{
    parser p = {.ctx = kn_arena_ctx(a), .a = a, .files = kn_map_make(a)};
    collect_names(&p, file, text, n);
    kn_lex_init(&p.lx, a, file, text, n, kn_loc_none());
    parse_signature(&p);
    parse_body(&p);
    for (int i = 0; i < p.sources.n; i++)
        if (!p.sources.at[i].found)
            fail_at(&p, p.sources.at[i].loc, "size %s is read from %%%s, which is not defined",
                    p.g->sizes[p.sources.at[i].size].name, p.sources.at[i].value);
    for (int i = 0; i < p.outputs.n; i++)
        resolve_output(&p, &p.outputs.at[i]);
    return p.g;
}

const kn_attr *kn_graph_parse_attrs(kn_graph *g, const char *text, int *n)
{
    parser p = {.ctx = kn_arena_ctx(g->arena), .a = g->arena, .g = g};
    attr_list attrs = {0};
    kn_lex_init(&p.lx, p.a, "attributes", text, strlen(text), kn_loc_none());
    parse_attrs(&p, &attrs);
    if (p.lx.token.kind != KN_T_END)
        kn_lex_fail(&p.lx, "expected the end of the attributes");
    *n = attrs.n;
    return attrs.at;
}
