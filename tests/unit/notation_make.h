/* Random programs in index notation, for test_random_notation.c: the trees of notation_oracle.h,
   chained into one graph, with its text and the values that are right for it. */
#ifndef KN_TESTS_NOTATION_MAKE_H
#define KN_TESTS_NOTATION_MAKE_H

#include "notation_text.h"

enum { MAX_DIMS = 40, MAX_SYMBOLS = 4, MAX_ELEMENTS = 3000 };

typedef struct {
    o_array *array;
    bool used; /* by a later program */
} m_result;

typedef struct {
    kn_arena *a;
    uint64_t seed;
    o_dim *dims[MAX_DIMS]; /* of inputs */
    int ndims, nsymbols;
    o_dim *counts[2];         /* sizes that are elements of an input, or NULL */
    KN_VEC(o_array *) values; /* what later programs may read */
    KN_VEC(o_array *) inputs;
    KN_VEC(m_result) results;
    kn_str nodes; /* text */
    int names, rejected;
    /* what is being made */
    o_program *p;
    o_stmt *s;
    int temps, lets;
    const o_tensor *partial; /* what the statement changes: not to be read elsewhere in it */
    bool failed;             /* no way to go on: the program is dropped */
} maker;

/* ---- chance ---- */

static uint64_t random_bits(maker *m)
{
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = m->seed ^ m->seed >> 29;
    return (x * 0xbf58476d1ce4e5b9u) >> 20;
}

static int pick(maker *m, int n)
{
    return (int)(random_bits(m) % (uint64_t)n);
}

static bool chance(maker *m, int percent)
{
    return pick(m, 100) < percent;
}

/* ---- dimensions ---- */

static o_dim *new_dim(maker *m, const char *text, int64_t lo, bool constant)
{
    o_dim *d = KN_NEW(m->a, o_dim);
    *d = (o_dim){.text = text, .lo = lo, .constant = constant};
    return d;
}

static o_dim *listed(maker *m, o_dim *d)
{
    if (m->ndims < MAX_DIMS) {
        m->dims[m->ndims++] = d;
    }
    return d;
}

static o_dim *constant_dim(maker *m, int64_t value)
{
    for (int i = 0; i < m->ndims; i++) {
        if (m->dims[i]->constant && m->dims[i]->value[0] == value) {
            return m->dims[i];
        }
    }
    o_dim *d = new_dim(m, kn_format(m->a, "%lld", (long long)value), value, true);
    for (int b = 0; b < O_RUNS; b++) {
        d->value[b] = value;
    }
    return listed(m, d);
}

/* Sizes' names are also indices' and tensors' in the notations: none may be taken for another. */
static o_dim *new_symbol(maker *m)
{
    static const char *const names[MAX_SYMBOLS] = {"s", "i", "n1", "A"};
    static const int64_t los[] = {0, 0, 1, 6}, values[] = {3, 5, 2, 7};
    int k = m->nsymbols++, sort = pick(m, 4);
    o_dim *d = new_dim(m, names[k], los[sort], false);
    d->value[0] = los[sort] + values[pick(m, 4)];
    for (int b = 1; b < O_RUNS; b++) {
        d->value[b] = los[sort] + (chance(m, 50) ? 0 : chance(m, 50) ? 1 : 4);
    }
    return listed(m, d);
}

/* factor * d: a form of graph text. */
static o_dim *scaled_dim(maker *m, o_dim *d, int64_t factor)
{
    if (d->constant) {
        return constant_dim(m, factor * d->value[0]);
    }
    const char *text = kn_format(m->a, "%lld*%s", (long long)factor, d->text);
    for (int i = 0; i < m->ndims; i++) {
        if (strcmp(m->dims[i]->text, text) == 0) {
            return m->dims[i];
        }
    }
    o_dim *scaled = new_dim(m, text, factor * d->lo, false);
    for (int b = 0; b < O_RUNS; b++) {
        scaled->value[b] = factor * d->value[b];
    }
    return listed(m, scaled);
}

static bool is_symbol(const o_dim *d)
{
    return !d->constant && d->text && !strchr(d->text, '*');
}

/* Element k of an input, found only when the graph runs. */
static o_dim *count_dim(maker *m, int k)
{
    enum { MOST = 9 };
    if (!m->counts[k]) {
        m->counts[k] = new_dim(m, kn_format(m->a, "count%d", k), 0, false);
        m->counts[k]->most = MOST;
        for (int b = 0; b < O_RUNS; b++) {
            m->counts[k]->value[b] = pick(m, MOST + 1);
        }
    }
    return m->counts[k];
}

static o_dim *some_dim(maker *m)
{
    static const int64_t constants[] = {1, 2, 3, 3, 4, 5, 5, 7, 11};
    if (m->ndims == 0 || chance(m, 45)) {
        return constant_dim(m, constants[pick(m, 9)]);
    }
    if (m->nsymbols < MAX_SYMBOLS && chance(m, m->nsymbols ? 15 : 100)) {
        return new_symbol(m);
    }
    return m->dims[pick(m, m->ndims)];
}

/* ---- tensors ---- */

static kn_dtype some_type(maker *m)
{
    static const kn_dtype types[] = {KN_F32,  KN_F32, KN_F32, KN_F32, KN_F32,
                                     KN_I32,  KN_I32, KN_I64, KN_F16, KN_F16,
                                     KN_BF16, KN_F64, KN_I8,  KN_U8,  KN_I16};
    return types[pick(m, 15)];
}

static o_number some_number(maker *m, kn_dtype t, int sort)
{
    double f = chance(m, 50) ? pick(m, 3) - 1 : pick(m, 7) - 3;
    if (o_float(t)) {
        return (o_number){.f = sort == 0 ? f / 2 : f};
    }
    if (t == KN_BOOL) {
        return (o_number){.i = pick(m, 2)};
    }
    return (o_number){
        .i = o_wrap(t, sort == 0 ? random_bits(m) << 17
                                 : (uint64_t)(o_unsigned(t) ? pick(m, 6) : pick(m, 9) - 4))};
}

static int64_t count_of(const o_array *x, int b)
{
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++) {
        n *= x->dim[i]->value[b];
    }
    return n;
}

static o_array *new_array(maker *m, kn_dtype type, int rank, const o_dim *const *dims)
{
    o_array *x = KN_NEW(m->a, o_array);
    *x = (o_array){.type = type, .rank = rank};
    for (int i = 0; i < rank; i++) {
        x->dim[i] = dims[i];
    }
    return x;
}

static void fill_array(maker *m, o_array *x, int b)
{
    int sort = pick(m, 8);
    x->count[b] = count_of(x, b);
    m->failed = m->failed || x->count[b] > MAX_ELEMENTS;
    x->count[b] = m->failed ? 0 : x->count[b];
    x->data[b] = KN_ARRAY(m->a, o_number, x->count[b] + 1);
    for (int64_t i = 0; i < x->count[b]; i++) {
        x->data[b][i] = x->limit ? (o_number){.i = pick(m, (int)x->limit->value[b])}
                                 : some_number(m, x->type, sort);
    }
}

/* An input of the graph, or a constant. `limit`: an index tensor below that dimension. */
static o_array *new_input(maker *m, kn_dtype type, int rank, const o_dim *const *dims,
                          const o_dim *limit)
{
    o_array *x = new_array(m, type, rank, dims);
    x->limit = limit;
    x->name = kn_format(m->a, "x%d", m->names++);
    x->constant = (!limit || limit->constant) && chance(m, 30);
    for (int i = 0; i < rank; i++) {
        x->constant = x->constant && dims[i]->constant;
    }
    for (int b = 0; b < O_RUNS; b++) {
        if (b && x->constant) {
            x->data[b] = x->data[0];
            x->count[b] = x->count[0];
        } else {
            fill_array(m, x, b);
        }
    }
    kn_push(m->a, &m->inputs, x);
    kn_push(m->a, &m->values, x);
    return x;
}

static bool same_dims(const o_array *x, int rank, const o_dim *const *dims)
{
    bool same = x->rank == rank;
    for (int i = 0; i < rank && same; i++) {
        same = x->dim[i] == dims[i];
    }
    return same;
}

/* A value of the graph with these dimensions, there or new. */
static o_array *some_array(maker *m, kn_dtype type, int rank, const o_dim *const *dims,
                           const o_dim *limit)
{
    bool named = true; /* only results have dimensions without a name, or computed; a program that
                          failed, anything */
    for (int i = 0; i < rank; i++) {
        named = named && dims[i] && dims[i]->text && !dims[i]->most;
    }
    int n = m->values.n;
    for (int k = 0, at = n ? pick(m, n) : 0; k < n && chance(m, 97); k++, at = (at + 1) % n) {
        o_array *x = m->values.at[at];
        if (x->type == type && x->limit == limit && same_dims(x, rank, dims)) {
            return x;
        }
    }
    m->failed = m->failed || !named;
    return new_input(m, type, named ? rank : 0, dims, limit);
}

/* ---- the signature ---- */

static const char *size_name(const maker *m, const o_dim *d)
{
    for (int i = 0; i < m->p->nsizes; i++) {
        if (m->p->size[i].dim == d) {
            return m->p->size[i].name;
        }
    }
    return NULL;
}

static void add_size(maker *m, const o_dim *d)
{
    if (!size_name(m, d) && m->p->nsizes < O_SIZES) {
        int k = m->p->nsizes++;
        m->p->size[k].dim = d;
        m->p->size[k].name = kn_format(m->a, "n%d", k);
    }
}

/* An operand over dimensions, the first `width` behind `pack` being *b's (pack -1: none). */
static o_tensor *operand(maker *m, o_array *x, int pack, int width)
{
    o_program *p = m->p;
    for (int i = 0; i < p->noperands; i++) {
        o_tensor *t = p->operand[i];
        if (t->array == x && t->pack == pack && (pack < 0 || t->width == width) && !t->initial &&
            chance(m, 60)) {
            return t;
        }
    }
    o_tensor *t = KN_NEW(m->a, o_tensor);
    m->failed = m->failed || p->noperands == O_TENSORS;
    *t = (o_tensor){.name = kn_format(m->a, "%c", 'B' + p->noperands),
                    .array = x,
                    .pack = pack,
                    .width = width};
    t->literal = chance(m, 30);
    if (p->noperands < O_TENSORS) {
        p->operand[p->noperands++] = t;
    }
    for (int d = 0; d < x->rank; d++) {
        bool packed = pack >= 0 && d >= pack && d < pack + width;
        if (!packed && !(t->literal && x->dim[d]->constant)) {
            add_size(m, x->dim[d]);
        }
    }
    return t;
}

/* ---- trees ---- */

static o_expr *node(maker *m, o_kind kind, kn_dtype type)
{
    o_expr *e = KN_NEW(m->a, o_expr);
    e->kind = kind;
    e->type = type;
    return e;
}

static const o_expr *number(maker *m, kn_dtype type, double v)
{
    o_expr *e = node(m, O_NUMBER, type);
    e->f = o_float(type) ? v : 0;
    e->i = o_float(type) ? 0 : (int64_t)v;
    return e;
}

static const o_expr *index_of(maker *m, int k)
{
    o_expr *e = node(m, O_INDEX, KN_INDEX);
    e->index = k;
    return e;
}

static const o_expr *op(maker *m, o_op o, kn_dtype type, const o_expr *x, const o_expr *y)
{
    o_expr *e = node(m, O_OP, type);
    e->op = o;
    e->n = y ? 2 : 1;
    e->arg[0] = x;
    e->arg[1] = y;
    return e;
}

static const o_expr *select_of(maker *m, const o_expr *c, const o_expr *x, const o_expr *y)
{
    o_expr *e = node(m, O_OP, x->type);
    e->op = O_SELECT;
    e->n = 3;
    e->arg[0] = c;
    e->arg[1] = x;
    e->arg[2] = y;
    return e;
}

static const o_expr *cast_to(maker *m, const char *mode, kn_dtype type, const o_expr *x)
{
    o_expr *e = node(m, O_CAST, type);
    e->text = mode;
    e->n = 1;
    e->arg[0] = x;
    return e;
}

static const o_expr *plus(maker *m, const o_expr *x, int64_t c)
{
    return c ? op(m, c > 0 ? O_ADD : O_SUB, KN_INDEX, x,
                  number(m, KN_INDEX, (double)(c > 0 ? c : -c)))
             : x;
}

static const o_expr *times(maker *m, int64_t c, const o_expr *x)
{
    return c == 1 ? x : op(m, O_MUL, KN_INDEX, number(m, KN_INDEX, (double)c), x);
}

/* The extent of a dimension as an expression; NULL when the notation has no name for it. */
static const o_expr *extent(maker *m, const o_dim *d)
{
    if (d->constant && (chance(m, 50) || !size_name(m, d))) {
        return number(m, KN_INDEX, (double)d->value[0]);
    }
    if (!size_name(m, d)) {
        return NULL;
    }
    o_expr *e = node(m, O_SIZE, KN_INDEX);
    e->dim = d;
    return e;
}

static o_expr *load(maker *m, const o_tensor *t)
{
    o_expr *e = node(m, O_LOAD, t->array->type);
    e->tensor = t;
    return e;
}

/* ---- indices of the statement ---- */

static int add_index(maker *m, const o_dim *d)
{
    static const char *const letters[] = {"i", "j", "k", "r", "x", "y",
                                          "z", "u", "v", "w", "p", "q"};
    int k = m->s->n;
    m->failed = m->failed || k == O_INDICES || !d;
    if (m->failed) {
        return 0;
    }
    m->s->index[k] = (o_index){.name = letters[k], .dim = d};
    return m->s->n++;
}

/* A dimension that the range of an index makes; when all that decides it is constant, so is it: it
   is settled when its program has been evaluated. */
static o_dim *derived(maker *m)
{
    return new_dim(m, NULL, 0, false);
}

static int index_over(maker *m, const o_dim *d)
{
    int start = m->s->n ? pick(m, m->s->n) : 0;
    for (int i = 0; i < m->s->n; i++) {
        int k = (start + i) % m->s->n;
        const o_index *x = &m->s->index[k];
        if (x->dim == d && !x->pack && !x->inferred) {
            return k;
        }
    }
    return -1;
}

/* ---- index arithmetic ---- */

static const o_expr *affine_leaf(maker *m)
{
    const o_expr *e = NULL;
    for (int i = 0; i < 4 && !e && m->s->n; i++) {
        int k = pick(m, m->s->n);
        e = m->s->index[k].pack ? NULL : index_of(m, k);
    }
    if (!e && m->p->nsizes && chance(m, 50)) {
        e = extent(m, m->p->size[pick(m, m->p->nsizes)].dim);
    }
    return e ? e : number(m, KN_INDEX, pick(m, 4));
}

static const o_expr *affine(maker *m, int depth)
{
    const o_expr *x = affine_leaf(m);
    if (depth <= 0 || chance(m, 25)) {
        return x;
    }
    switch (pick(m, 8)) {
    case 0: return times(m, pick(m, 3) + 1, x);
    case 1:
        return op(m, O_DIV, KN_INDEX, affine(m, depth - 1), number(m, KN_INDEX, pick(m, 3) + 1));
    case 2:
        return op(m, O_REM, KN_INDEX, affine(m, depth - 1), number(m, KN_INDEX, pick(m, 4) + 1));
    case 3: return op(m, chance(m, 50) ? O_MIN : O_MAX, KN_INDEX, x, affine(m, depth - 1));
    case 4: return plus(m, x, pick(m, 5) - 2);
    case 5: return op(m, O_SUB, KN_INDEX, x, affine(m, depth - 1));
    default: return op(m, O_ADD, KN_INDEX, affine(m, depth - 1), x);
    }
}

/* ---- loads ---- */

static const o_expr *subscript(maker *m, const o_dim *d, bool guarded, int depth);

/* The tensor with a subscript for each dimension, or NULL. */
static o_expr *load_anyhow(maker *m, const o_tensor *t, bool guarded, int depth)
{
    o_expr *e = load(m, t);
    for (int d = 0; d < t->array->rank; d++) {
        if (t->pack >= 0 && d >= t->pack && d < t->pack + t->width) {
            int from = m->s->pack_first + m->s->pack_width - t->width + d - t->pack;
            bool fits = t->width <= m->s->pack_width;
            const o_dim *have = t->array->dim[d], *want = fits ? m->s->index[from].dim : NULL;
            if (!fits || (have != want && !(have->constant && have->value[0] == 1))) {
                return NULL;
            }
            continue;
        }
        e->arg[e->n] = subscript(m, t->array->dim[d], guarded, depth);
        if (!e->arg[e->n++]) {
            return NULL;
        }
    }
    return e;
}

/* An element of a tensor of indices below d. */
static const o_expr *gathered(maker *m, const o_dim *d, int depth)
{
    static const kn_dtype types[] = {KN_I64, KN_I32, KN_I64, KN_U8, KN_I8};
    const o_dim *dims[2];
    int rank = pick(m, 3);
    for (int i = 0; i < rank; i++) {
        const o_dim *x = m->s->n ? m->s->index[pick(m, m->s->n)].dim : NULL;
        dims[i] = x && x->text ? x : constant_dim(m, 3);
    }
    o_array *x =
        some_array(m, types[pick(m, d->constant && d->value[0] > 100 ? 3 : 5)], rank, dims, d);
    return load_anyhow(m, operand(m, x, -1, 0), false, depth - 1);
}

/* Inside d by its form, whatever the indices are; NULL when there is no such form. */
static const o_expr *inside(maker *m, const o_dim *d, int depth)
{
    int same = index_over(m, d);
    const o_expr *n = extent(m, d);
    switch (pick(m, 6)) {
    case 0:
        return d->constant
                   ? op(m, O_REM, KN_INDEX, affine(m, 2), number(m, KN_INDEX, (double)d->value[0]))
                   : NULL;
    case 1:
        return n && d->lo > 0 ? op(m, O_MIN, KN_INDEX,
                                   op(m, O_MAX, KN_INDEX, affine(m, 1), number(m, KN_INDEX, 0)),
                                   plus(m, n, -1))
                              : NULL;
    case 2:
        return n && same >= 0 ? op(m, O_SUB, KN_INDEX, plus(m, n, -1), index_of(m, same)) : NULL;
    case 3: return d->lo > 0 && depth > 0 ? gathered(m, d, depth) : NULL;
    case 4: return d->lo > 0 ? number(m, KN_INDEX, pick(m, (int)d->lo)) : NULL;
    default:
        return same >= 0 ? op(m, O_DIV, KN_INDEX, index_of(m, same), number(m, KN_INDEX, 2)) : NULL;
    }
}

static const o_expr *subscript(maker *m, const o_dim *d, bool guarded, int depth)
{
    int same = index_over(m, d);
    if (same >= 0 && chance(m, 65)) {
        return index_of(m, same);
    }
    if (guarded && chance(m, 70)) {
        return affine(m, 2);
    }
    for (int i = 0; i < 6; i++) {
        const o_expr *e = inside(m, d, depth);
        if (e) {
            return e;
        }
    }
    return same >= 0   ? index_of(m, same)
           : d->lo > 0 ? number(m, KN_INDEX, 0)
           : guarded   ? affine(m, 1)
                       : NULL;
}

static bool is_loaded(const o_expr *e, const o_tensor *t)
{
    bool found = e->kind == O_LOAD && e->tensor == t;
    for (int i = 0; i < e->n && !found; i++) {
        found = is_loaded(e->arg[i], t);
    }
    return found || (e->otherwise && is_loaded(e->otherwise, t));
}

/* A tensor that earlier statements made. */
static const o_tensor *some_made(maker *m)
{
    int n = (int)(m->s - m->p->stmt);
    const o_tensor *t = n ? m->p->stmt[pick(m, n)].target->tensor : NULL;
    return t == m->partial ? NULL : t;
}

/* ---- values ---- */

static const o_expr *value(maker *m, kn_dtype type, int depth);

/* Some dimensions of the statement's indices, and at times one more. */
static const o_expr *some_load(maker *m, bool guarded, int depth)
{
    const o_tensor *t = chance(m, 30) ? some_made(m) : NULL;
    if (!t) {
        const o_dim *dims[3];
        int rank = pick(m, 3);
        for (int i = 0; i < rank; i++) {
            const o_dim *d = m->s->n && chance(m, 75) ? m->s->index[pick(m, m->s->n)].dim : NULL;
            dims[i] = d && d->text ? d : some_dim(m);
        }
        kn_dtype type = chance(m, 15) ? KN_BOOL : some_type(m);
        t = operand(m, some_array(m, type, rank, dims, NULL), -1, 0);
    }
    return load_anyhow(m, t, guarded, depth);
}

static const o_expr *converted(maker *m, kn_dtype type, const o_expr *e)
{
    return !e || e->type == type ? e : cast_to(m, chance(m, 80) ? "cast" : "sat", type, e);
}

static const o_expr *literal(maker *m, kn_dtype type)
{
    double v = type == KN_BOOL ? pick(m, 2) : o_unsigned(type) ? pick(m, 4) : pick(m, 7) - 3;
    return number(m, type, o_float(type) && chance(m, 20) ? v / 2 : v);
}

static const o_expr *leaf(maker *m, kn_dtype type, int depth)
{
    const o_expr *e = chance(m, 65) ? converted(m, type, some_load(m, false, depth)) : NULL;
    if (!e && type != KN_BOOL && chance(m, 40)) {
        e = cast_to(m, "cast", type, affine(m, 2));
    }
    return e ? e : literal(m, type);
}

static const o_expr *condition(maker *m, int depth)
{
    static const o_op compare[] = {O_LT, O_LE, O_EQ, O_NE};
    if (depth > 0 && chance(m, 25)) {
        const o_expr *x = condition(m, depth - 1);
        return chance(m, 25)
                   ? op(m, O_NOT, KN_BOOL, x, NULL)
                   : op(m, chance(m, 50) ? O_LAND : O_LOR, KN_BOOL, x, condition(m, depth - 1));
    }
    o_op o = compare[pick(m, 4)];
    if (chance(m, 65)) {
        return op(m, o, KN_BOOL, affine(m, 2), affine(m, 1));
    }
    const o_expr *x = some_load(m, false, depth - 1);
    if (!x || x->type == KN_BOOL) {
        return x ? x : op(m, o, KN_BOOL, affine(m, 1), affine(m, 1));
    }
    return op(m, o, KN_BOOL, x, literal(m, x->type));
}

/* A load that may be outside, with what it is then. */
static const o_expr *padded(maker *m, kn_dtype type, int depth)
{
    o_expr *e = (o_expr *)(uintptr_t)some_load(m, true, depth);
    if (!e) {
        return literal(m, type);
    }
    e->otherwise = depth > 0 && chance(m, 20) ? value(m, e->type, depth - 1) : literal(m, e->type);
    return converted(m, type, e);
}

/* select(0 <= e && e < n, X[e], v): the guard in words. */
static const o_expr *guarded(maker *m, kn_dtype type, int depth)
{
    const o_dim *d = some_dim(m);
    o_array *x = some_array(m, type, 1, &d, NULL);
    const o_tensor *t = operand(m, x, -1, 0);
    const o_expr *n = extent(m, d), *at = affine(m, 2);
    if (!n) {
        return literal(m, type);
    }
    o_expr *e = load(m, t);
    e->arg[e->n++] = at;
    const o_expr *in = op(m, O_LAND, KN_BOOL, op(m, O_LE, KN_BOOL, number(m, KN_INDEX, 0), at),
                          op(m, O_LT, KN_BOOL, at, n));
    return chance(m, 80)
               ? select_of(m, in, e, value(m, type, depth - 1))
               : select_of(m, op(m, O_NOT, KN_BOOL, in, NULL), value(m, type, depth - 1), e);
}

static const o_expr *unary(maker *m, kn_dtype type, const o_expr *x)
{
    static const o_op rounding[] = {O_FLOOR, O_CEIL, O_ROUND};
    if (o_float(type) && chance(m, 50)) {
        return op(m, rounding[pick(m, 3)], type, op(m, O_DIV, type, x, number(m, type, 2)), NULL);
    }
    if (!o_float(type) && chance(m, 30)) {
        return op(m, O_INV, type, x, NULL);
    }
    return op(m, chance(m, 50) ? O_ABS : O_NEG, type, x, NULL);
}

static const o_expr *binary(maker *m, kn_dtype type, const o_expr *x, const o_expr *y)
{
    static const o_op any[] = {O_ADD, O_SUB, O_MUL, O_MIN, O_MAX};
    static const o_op whole[] = {O_DIV, O_REM, O_AND, O_OR, O_XOR, O_SHL, O_SHR, O_FLOORDIV, O_MOD};
    o_op o = o_float(type) || chance(m, 60) ? any[pick(m, 5)] : whole[pick(m, 9)];
    if (y->kind == O_NUMBER && y->i == 0 && o >= O_DIV && o <= O_MOD && !o_float(type)) {
        o = O_SUB; /* a division by the literal 0 is an error */
    }
    return op(m, o, type, x, y);
}

static const o_expr *value(maker *m, kn_dtype type, int depth)
{
    if (type == KN_BOOL) {
        return condition(m, depth);
    }
    if (depth <= 0 || chance(m, 20)) {
        return leaf(m, type, depth);
    }
    const o_expr *x;
    switch (pick(m, 7)) {
    case 0:
        return select_of(m, condition(m, depth - 1), value(m, type, depth - 1),
                         value(m, type, depth - 1));
    case 1: return padded(m, type, depth - 1);
    case 2: return guarded(m, type, depth - 1);
    case 3: x = leaf(m, type, depth - 1); return x->kind == O_NUMBER ? x : unary(m, type, x);
    default:
        x = leaf(m, type, depth - 1);
        return x->kind == O_NUMBER ? x : binary(m, type, x, value(m, type, depth - 1));
    }
}

#endif
