/* For test_notation.c and test_elaborate.c: a context for each test, uses of a notation written as
   text, and an evaluator of nests, independent of the loop IR and its interpreter.

   A use is a list separated by semicolons: operands `f32[seq, 4]`, attributes `s = 2`, `eps =
   1e-5`, `t = f16`, bounds of a size `seq in 1:2048`. */
#ifndef KN_TESTS_NOTATION_HELP_H
#define KN_TESTS_NOTATION_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/notation.h"

typedef struct {
    kn_ctx *ctx;
    kn_arena *a;
    /* what is tried under protection */
    const char *text, *use;
    kn_loc loc;
    kn_notation *notation;
    kn_nest *nest;
} fixture;

static int setup(void **state)
{
    static fixture f;
    f = (fixture){.ctx = kn_ctx_create()};
    f.a = kn_arena_create(f.ctx);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    const fixture *f = *state;
    kn_ctx_destroy(f->ctx);
    return 0;
}

/* ---- uses ---- */

typedef struct {
    kn_operand operands[16];
    kn_attr_value attrs[16];
    kn_size sizes[16];
    int noperands, nattrs, nsizes;
} use;

static void read_attr(kn_lexer *lx, kn_attr_value *v)
{
    v->type = KN_UNTYPED;
    v->value = NULL;
    if (lx->token.kind == KN_T_NAME && kn_dtype_parse(lx->token.text, lx->token.length, &v->type)) {
        kn_lex_next(lx);
    } else if (lx->token.kind == KN_T_FLOAT) {
        v->value = kn_float(lx->arena, KN_F64, lx->token.f);
        kn_lex_next(lx);
    } else {
        v->value = kn_parse_index(lx);
    }
}

static void read_operand(kn_lexer *lx, kn_operand *op)
{
    const kn_expr **shape = KN_ARRAY(lx->arena, const kn_expr *, 16);
    op->type = kn_parse_dtype(lx);
    op->rank = 0;
    op->shape = shape;
    kn_lex_expect(lx, "[");
    while (!kn_lex_accept(lx, "]")) {
        shape[op->rank++] = kn_parse_index(lx);
        kn_lex_accept(lx, ",");
    }
}

static void read_item(kn_lexer *lx, use *u)
{
    const char *next = kn_lex_peek(lx)->text;
    if (next && strcmp(next, "in") == 0) {
        kn_size *z = &u->sizes[u->nsizes++];
        z->name = kn_lex_name(lx);
        kn_lex_expect(lx, "in");
        z->lo = kn_lex_int(lx);
        kn_lex_expect(lx, ":");
        z->hi = kn_lex_int(lx);
    } else if (next && strcmp(next, "=") == 0) {
        kn_attr_value *v = &u->attrs[u->nattrs++];
        v->name = kn_lex_name(lx);
        kn_lex_expect(lx, "=");
        read_attr(lx, v);
    } else {
        read_operand(lx, &u->operands[u->noperands++]);
    }
}

static use read_use(kn_arena *a, const char *text)
{
    use u = {.nsizes = 0};
    kn_lexer lx;
    kn_lex_init(&lx, a, "use", text, strlen(text), kn_loc_none());
    while (lx.token.kind != KN_T_END) {
        read_item(&lx, &u);
        kn_lex_accept(&lx, ";");
    }
    return u;
}

static void try_parse(void *arg)
{
    fixture *f = arg;
    f->notation = kn_notation_parse(f->a, "test.def", f->text, strlen(f->text), kn_loc_none());
}

static void try_elaborate(void *arg)
{
    fixture *f = arg;
    try_parse(f);
    use u = read_use(f->a, f->use);
    f->nest = kn_elaborate(f->a, f->notation, u.operands, u.noperands, u.attrs, u.nattrs, u.sizes,
                           u.nsizes, f->loc);
}

static void print_diags(const fixture *f)
{
    for (int i = 0; i < kn_diag_count(f->ctx); i++) {
        const kn_diag *d = kn_diag_get(f->ctx, i);
        print_error("%s:%d:%d: %s\n", d->file ? d->file : "", d->line, d->column, d->message);
    }
}

static inline kn_nest *elaborate(fixture *f, const char *text, const char *use_text)
{
    f->text = text;
    f->use = use_text;
    if (kn_protect(f->ctx, try_elaborate, f) != KN_OK) {
        print_error("in: %s\n", text);
        print_diags(f);
        fail();
    }
    return f->nest;
}

/* ---- diagnostics ---- */

static void expect_diag(fixture *f, kn_status status, int column, const char *message)
{
    bool found = status == KN_INVALID && kn_diag_count(f->ctx) == 1;
    const kn_diag *d = found ? kn_diag_get(f->ctx, 0) : NULL;
    if (!d || strcmp(d->message, message) != 0 || d->line != 1 || d->column != column) {
        print_error("in: %s\nexpected 1:%d: %s\n", f->text, column, message);
        print_diags(f);
        fail();
    }
    assert_string_equal(d->file, "test.def");
    kn_diag_clear(f->ctx);
}

/* ---- the evaluator ---- */

typedef struct {
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK], n;
    kn_number *at;
} array;

typedef struct {
    const kn_nest *nest;
    array *arrays;
    const char *names[256]; /* sizes, then the indices of the running statement */
    int64_t values[256];
    int n, nsizes;
} machine;

static kn_number eval(const machine *m, const kn_expr *e);

static int64_t lookup(const machine *m, const char *name)
{
    for (int i = m->n - 1; i >= 0; i--) {
        if (strcmp(m->names[i], name) == 0) {
            return m->values[i];
        }
    }
    fail_msg("no value for %s", name);
    return 0;
}

static kn_number *element(const machine *m, const char *name, const kn_expr *const *subs, int n)
{
    const array *x = &m->arrays[kn_nest_find(m->nest, name)];
    int64_t at = 0;
    assert_int_equal(x->rank, n);
    for (int d = 0; d < n; d++) {
        int64_t i = eval(m, subs[d]).i;
        if (i < 0 || i >= x->dims[d]) {
            fail_msg("subscript %d of %s is %lld of %lld", d, name, (long long)i,
                     (long long)x->dims[d]);
        }
        at = at * x->dims[d] + i;
    }
    return &x->at[at];
}

static kn_number eval_op(const machine *m, const kn_expr *e)
{
    kn_number x[3];
    if (e->op == KN_OP_SELECT) {
        return eval(m, e->args[eval(m, e->args[0]).i ? 1 : 2]);
    }
    if (e->op == KN_OP_LAND || e->op == KN_OP_LOR) {
        x[0] = eval(m, e->args[0]);
        return (x[0].i != 0) == (e->op == KN_OP_LOR) ? x[0] : eval(m, e->args[1]);
    }
    for (int i = 0; i < e->nargs; i++) {
        x[i] = eval(m, e->args[i]);
    }
    return kn_number_op(e->op, e->args[0]->type, x);
}

static kn_number eval(const machine *m, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST: return (kn_number){e->i, e->f};
    case KN_E_VAR: return (kn_number){lookup(m, e->name), 0};
    case KN_E_LOAD: return *element(m, e->name, e->args, e->nargs);
    case KN_E_CAST: return kn_number_cast(e->mode, e->args[0]->type, e->type, eval(m, e->args[0]));
    case KN_E_OP: return eval_op(m, e);
    }
    return (kn_number){0, 0};
}

static void run_instance(const machine *m, const kn_stmt *s)
{
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_ADD, KN_OP_MUL, KN_OP_MAX, KN_OP_MIN};
    if (s->where && !eval(m, s->where).i) {
        return;
    }
    kn_number *to = element(m, s->target, (const kn_expr *const *)s->subs, s->nsubs);
    kn_number x[2] = {*to, eval(m, s->rhs)};
    *to = s->op == KN_SET ? x[1] : kn_number_op(ops[s->op], s->rhs->type, x);
}

static void run_loops(machine *m, const kn_stmt *s, int depth)
{
    if (depth == s->niters) {
        run_instance(m, s);
        return;
    }
    int64_t lo = eval(m, s->iters[depth].lo).i, hi = eval(m, s->iters[depth].hi).i;
    m->names[m->n++] = s->iters[depth].name;
    for (int64_t i = lo; i < hi; i++) {
        m->values[m->n - 1] = i;
        run_loops(m, s, depth + 1);
    }
    m->n--;
}

/* All statements of an `over`, step by step. */
static void run_group(machine *m, const kn_stmt *s, int n)
{
    int64_t steps = eval(m, s->iters[0].hi).i;
    for (int64_t t = 0; t < steps; t++) {
        for (int i = 0; i < n; i++) {
            m->names[m->n] = s[i].iters[0].name;
            m->values[m->n++] = t;
            run_loops(m, &s[i], 1);
            m->n--;
        }
    }
}

static inline void run(machine *m)
{
    const kn_nest *nest = m->nest;
    for (int i = 0; i < nest->nstmts;) {
        const kn_stmt *s = &nest->stmts[i];
        int n = 1;
        while (s->over >= 0 && i + n < nest->nstmts && s[n].over == s->over) {
            n++;
        }
        if (s->over < 0) {
            run_loops(m, s, 0);
        } else {
            run_group(m, s, n);
        }
        i += n;
    }
}

/* Small values that every type of their class holds exactly. */
static kn_number sample(kn_dtype type, int64_t k, int seed)
{
    int64_t v = (k * 37 + seed * 11 + k / 7) % 17 - 8;
    if (kn_dtype_is_float(type)) {
        return (kn_number){0, (double)v / 8};
    }
    return (kn_number){kn_number_wrap(type, type == KN_BOOL ? v > 0 : v), 0};
}

static array make_array(const machine *m, kn_arena *a, const kn_tensor *t, int seed)
{
    array x = {.type = t->type, .rank = t->rank, .n = 1};
    for (int d = 0; d < t->rank; d++) {
        x.dims[d] = eval(m, t->shape[d]).i;
        assert_true(x.dims[d] >= 0);
        x.n *= x.dims[d];
    }
    x.at = KN_ARRAY(a, kn_number, x.n + 1);
    for (int64_t k = 0; k < x.n; k++) {
        bool in = t->role == KN_ROLE_IN || t->role == KN_ROLE_INOUT;
        x.at[k] = in ? sample(t->type, k, seed) : (kn_number){-99, -99};
    }
    return x;
}

/* A machine ready to run; inputs hold samples and may be overwritten. `sizes`: values in the order
 * of the nest. */
static inline machine load(fixture *f, const char *text, const char *use_text, const int64_t *sizes)
{
    machine m = {.nest = kn_nest_split(f->a, elaborate(f, text, use_text))};
    m.n = m.nsizes = m.nest->nsizes;
    for (int i = 0; i < m.n; i++) {
        m.names[i] = m.nest->sizes[i].name;
        m.values[i] = sizes[i];
    }
    for (int i = 0; i < m.nest->nrequires; i++) {
        assert_true(eval(&m, m.nest->requires_[i]).i);
    }
    m.arrays = KN_ARRAY(f->a, array, m.nest->ntensors);
    for (int i = 0; i < m.nest->ntensors; i++) {
        m.arrays[i] = make_array(&m, f->a, &m.nest->tensors[i], i);
    }
    return m;
}

static inline array *tensor(const machine *m, const char *name)
{
    int at = kn_nest_find(m->nest, name);
    assert_true(at >= 0);
    return &m->arrays[at];
}

#endif
