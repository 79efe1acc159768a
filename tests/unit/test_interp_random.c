/* Random functions: the interpreter against the plain walk of loop_walk.h, bit by bit, with what is
   left in the buffers when something fails; and their text against itself. KILN_RANDOM_CASES=n runs
   more of them, KILN_RANDOM_SEED=n others. */
#include "loop_walk.h"

#include "ir/loop_internal.h"

#include <stdio.h>

enum { BUFFERS = 5, STEPS = 20000 };

typedef struct {
    const char *name;
    const kn_expr *lo, *hi;
} range;

typedef struct {
    kn_arena *a;
    kn_ctx *ctx;
    uint64_t seed;
    KN_VEC(range) ranges; /* of the loops around */
    KN_VEC(kn_name) scope;
    KN_VEC(const kn_expr *) extents; /* of loops and dimensions: to be met again */
    int names, depth, loops;
} maker;

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

static const char *fresh(maker *m, const char *stem)
{
    return kn_intern_f(m->ctx, "%s%d", stem, m->names++);
}

static void enter(maker *m, const char *name, const kn_buffer *buffer, kn_dtype type, bool readonly)
{
    kn_name n = {name, buffer, type, readonly};
    kn_push(m->a, &m->scope, n);
}

/* A name of the wanted sort, or NULL. */
static const kn_name *any_name(maker *m, bool buffer, kn_dtype type)
{
    for (int tries = 0; tries < 12 && m->scope.n; tries++) {
        const kn_name *n = &m->scope.at[pick(m, m->scope.n)];
        if (!n->buffer == !buffer && (type == KN_UNTYPED || n->type == type))
            return n;
    }
    return NULL;
}

/* ---- Expressions ---- */

static const kn_expr *value(maker *m, kn_dtype type, int depth);
static const kn_expr *condition(maker *m, int depth);
static const kn_expr *load(maker *m, const kn_name *n, int depth);

static const kn_expr *index_leaf(maker *m)
{
    const kn_name *n = chance(m, 75) ? any_name(m, false, KN_INDEX) : NULL;
    return n ? kn_var(m->a, KN_INDEX, n->name) : kn_index(m->a, pick(m, 9) - 2);
}

static const kn_expr *index_value(maker *m, int depth)
{
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_ADD, KN_OP_SUB, KN_OP_MIN, KN_OP_MAX};
    kn_arena *a = m->a;
    if (depth <= 0 || chance(m, 30))
        return index_leaf(m);
    const kn_expr *x = index_value(m, depth - 1);
    const kn_name *n;
    switch (pick(m, 10)) {
    case 0: return kn_op2(a, KN_OP_MUL, kn_index(a, pick(m, 7) - 2), x);
    case 1: return kn_op2(a, KN_OP_DIV, x, kn_index(a, pick(m, 5) + 1));
    case 2: return kn_op2(a, KN_OP_REM, x, kn_index(a, pick(m, 9) + 1));
    case 3: return kn_select(a, condition(m, depth - 1), x, index_value(m, depth - 1));
    case 4:
        n = any_name(m, true, pick(m, 2) ? KN_I32 : KN_U4);
        return n ? kn_cast(a, KN_CAST_CAST, KN_INDEX, load(m, n, depth - 1)) : x;
    default: return kn_op2(a, ops[pick(m, 5)], x, index_value(m, depth - 1));
    }
}

/* A variable of a loop from 0 to the extent, or NULL. */
static const kn_expr *fitting_variable(maker *m, const kn_expr *extent)
{
    for (int tries = 0; tries < 6 && m->ranges.n; tries++) {
        const range *r = &m->ranges.at[pick(m, m->ranges.n)];
        if (kn_expr_equal(r->hi, extent) && kn_index_is(r->lo, 0))
            return kn_var(m->a, KN_INDEX, r->name);
    }
    return NULL;
}

/* Mostly inside the extent. */
static const kn_expr *subscript(maker *m, const kn_expr *extent, int depth)
{
    kn_arena *a = m->a;
    const kn_expr *e = chance(m, 80) ? fitting_variable(m, extent) : NULL;
    const kn_expr *last = kn_op2(a, KN_OP_SUB, extent, kn_index(a, 1));
    if (e)
        return chance(m, 80) ? e : kn_op2(a, KN_OP_SUB, last, e);
    e = chance(m, 40) ? index_leaf(m) : index_value(m, depth);
    if (chance(m, 97))
        return kn_op2(a, KN_OP_REM, e, kn_op2(a, KN_OP_MAX, extent, kn_index(a, 1)));
    return chance(m, 50) ? e : kn_op2(a, KN_OP_SUB, last, e);
}

static const kn_expr *load(maker *m, const kn_name *n, int depth)
{
    const kn_expr *subs[KN_MAX_RANK];
    kn_name copy = *n;
    for (int i = 0; i < copy.buffer->rank; i++)
        subs[i] = subscript(m, copy.buffer->shape[i], depth > 1 ? 1 : depth);
    return kn_load(m->a, copy.type, copy.name, subs, copy.buffer->rank);
}

static const kn_expr *condition(maker *m, int depth)
{
    static const kn_scalar ops[] = {KN_OP_LT, KN_OP_LE, KN_OP_GT, KN_OP_GE, KN_OP_EQ, KN_OP_NE};
    static const kn_dtype types[] = {KN_INDEX, KN_INDEX, KN_INDEX, KN_F32, KN_I32, KN_U4};
    kn_dtype type = types[pick(m, 6)];
    if (depth <= 0 || chance(m, 60))
        return kn_op2(m->a, ops[pick(m, 6)], value(m, type, depth - 1), value(m, type, depth - 1));
    if (chance(m, 20))
        return kn_op1(m->a, KN_OP_LNOT, condition(m, depth - 1));
    return kn_op2(m->a, chance(m, 50) ? KN_OP_LAND : KN_OP_LOR, condition(m, depth - 1),
                  condition(m, depth - 1));
}

static const kn_dtype element_types[] = {KN_F32, KN_F32, KN_F32, KN_I32, KN_I32,
                                         KN_F16, KN_U4,  KN_I8,  KN_F64, KN_U64};
enum { NTYPES = sizeof element_types / sizeof element_types[0] };

static const kn_expr *leaf(maker *m, kn_dtype type, int depth)
{
    const kn_name *n = any_name(m, chance(m, 75), type);
    if (n)
        return n->buffer ? load(m, n, depth) : kn_var(m->a, type, n->name);
    return kn_dtype_is_float(type) ? kn_float(m->a, type, (pick(m, 17) - 8) / 4.0)
                                   : kn_int(m->a, type, pick(m, 20) - 5);
}

static const kn_expr *value(maker *m, kn_dtype type, int depth)
{
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_SUB, KN_OP_MUL,
                                    KN_OP_MAX, KN_OP_MIN, KN_OP_DIV};
    if (type == KN_INDEX)
        return index_value(m, depth);
    if (depth <= 0 || chance(m, 35))
        return leaf(m, type, depth);
    switch (pick(m, 8)) {
    case 0:
        return kn_select(m->a, condition(m, depth - 1), value(m, type, depth - 1),
                         value(m, type, depth - 1));
    case 1:
        return kn_cast(m->a, KN_CAST_CAST, type,
                       value(m, element_types[pick(m, NTYPES)], depth - 1));
    case 2: return kn_cast(m->a, KN_CAST_CAST, type, index_value(m, depth - 1));
    case 3: return kn_op1(m->a, chance(m, 50) ? KN_OP_NEG : KN_OP_ABS, value(m, type, depth - 1));
    default:
        return kn_op2(m->a, ops[pick(m, 6)], value(m, type, depth - 1), value(m, type, depth - 1));
    }
}

/* ---- Statements ---- */

static kn_block block(maker *m, int statements);

static kn_loop *store(maker *m)
{
    const kn_name *n = NULL;
    for (int tries = 0; tries < 8 && (!n || n->readonly); tries++)
        n = any_name(m, true, KN_UNTYPED);
    if (!n || n->readonly)
        return NULL;
    kn_name copy = *n;
    const kn_expr *target = load(m, &copy, 1);
    kn_update op = chance(m, 50) ? KN_SET : (kn_update)pick(m, 5);
    const kn_expr *e = op == KN_ADD && chance(m, 60)
                           ? kn_op2(m->a, KN_OP_MUL, value(m, copy.type, 1), value(m, copy.type, 1))
                           : value(m, copy.type, 3);
    return kn_loop_store(m->a, copy.name, target->args, target->nargs, op, e);
}

static const kn_expr *bound(maker *m)
{
    if (m->extents.n && chance(m, 70))
        return m->extents.at[pick(m, m->extents.n)];
    return chance(m, 50) ? kn_index(m->a, pick(m, 30)) : index_value(m, 1);
}

static kn_loop *for_loop(maker *m)
{
    const kn_expr *lo = chance(m, 70) ? kn_index(m->a, 0) : index_value(m, 1), *hi = bound(m);
    if (chance(m, 15))
        hi = kn_op2(m->a, KN_OP_MIN, hi, kn_op2(m->a, KN_OP_ADD, lo, kn_index(m->a, pick(m, 80))));
    int mark = m->scope.n;
    const char *name = fresh(m, "q");
    enter(m, name, NULL, KN_INDEX, true);
    range r = {name, lo, hi};
    kn_push(m->a, &m->ranges, r);
    m->loops++;
    kn_loop *s = kn_loop_for(m->a, name, lo, hi, block(m, 1 + pick(m, 2)));
    m->loops--;
    m->ranges.n--;
    s->step = chance(m, 80) ? 1 : 1 + pick(m, 4);
    m->scope.n = mark;
    return s;
}

static kn_loop *let(maker *m)
{
    kn_dtype type = chance(m, 60) ? KN_INDEX : element_types[pick(m, NTYPES)];
    const kn_expr *e = value(m, type, 2);
    const char *name = fresh(m, "x");
    enter(m, name, NULL, type, true);
    return kn_loop_let(m->a, name, type, e);
}

static kn_buffer new_buffer(maker *m, const char *stem, kn_dtype type, int rank)
{
    const kn_expr **shape = KN_ARRAY(m->a, const kn_expr *, rank);
    for (int i = 0; i < rank; i++) {
        shape[i] =
            chance(m, 60) ? m->extents.at[pick(m, m->extents.n)] : kn_index(m->a, 1 + pick(m, 9));
        kn_push(m->a, &m->extents, shape[i]);
    }
    return (kn_buffer){.name = fresh(m, stem),
                       .type = type,
                       .rank = rank,
                       .shape = shape,
                       .space = kn_intern(m->ctx, "ddr")};
}

static kn_loop *alloc(maker *m)
{
    int mark = m->extents.n;
    kn_loop *s =
        kn_loop_alloc(m->a, new_buffer(m, "t", element_types[pick(m, NTYPES)], pick(m, 3)));
    m->extents.n = mark;
    enter(m, s->buffer.name, &s->buffer, s->buffer.type, false);
    return s;
}

static kn_loop *view(maker *m)
{
    const kn_name *n = any_name(m, true, KN_UNTYPED);
    if (!n)
        return NULL;
    kn_name copy = *n;
    int mark = m->extents.n;
    kn_loop *s = kn_loop_view(m->a, new_buffer(m, "v", copy.type, pick(m, 2)), copy.name);
    m->extents.n = mark;
    s->buffer.offset = chance(m, 50) ? NULL : kn_index(m->a, pick(m, 3));
    enter(m, s->buffer.name, &s->buffer, s->buffer.type, copy.readonly);
    return s;
}

static kn_loop *if_else(maker *m)
{
    kn_block none = {0};
    const kn_expr *cond = condition(m, 2);
    kn_block body = block(m, 1);
    return kn_loop_if(m->a, cond, body, chance(m, 40) ? block(m, 1) : none);
}

static kn_loop *statement(maker *m)
{
    int kind = pick(m, 100);
    if (m->depth < 5 && m->loops < 3 && kind < 40)
        return for_loop(m);
    if (m->depth < 5 && kind < 50)
        return if_else(m);
    if (kind < 58)
        return let(m);
    if (kind < 63)
        return alloc(m);
    if (kind < 65)
        return view(m);
    if (kind < 68)
        return kn_loop_check(m->a, kn_op2(m->a, KN_OP_LT, index_value(m, 1), kn_index(m->a, 300)),
                             "large");
    return store(m);
}

static kn_block block(maker *m, int statements)
{
    kn_block_builder b = {.arena = m->a};
    int scope = m->scope.n;
    m->depth++;
    for (int i = 0; i < statements || i == 0; i++) {
        kn_loop *s = statement(m);
        if (s)
            kn_block_add(&b, s);
        statements += s && (s->kind == KN_S_LET || s->kind == KN_S_ALLOC || s->kind == KN_S_VIEW);
    }
    m->depth--;
    m->scope.n = scope;
    return kn_block_done(&b);
}

static kn_func *function(maker *m)
{
    static const kn_dtype types[BUFFERS] = {KN_F32, KN_I32, KN_U4, KN_F16, KN_F32};
    kn_func *f = KN_NEW(m->a, kn_func);
    f->name = "f";
    f->params = KN_ARRAY(m->a, kn_param, 2 + BUFFERS);
    for (int i = 0; i < 2; i++) {
        kn_param *p = &f->params[f->nparams++];
        *p = (kn_param){.buffer = {.name = i ? "m" : "n", .type = KN_INDEX}, .lo = 0, .hi = 100};
        enter(m, p->buffer.name, NULL, KN_INDEX, true);
        const kn_expr *e = kn_var(m->a, KN_INDEX, p->buffer.name);
        kn_push(m->a, &m->extents, e);
    }
    for (int i = 0; i < BUFFERS; i++) {
        kn_param *p = &f->params[f->nparams++];
        p->mode = i < 2 ? KN_PARAM_IN : KN_PARAM_INOUT;
        kn_dtype type = chance(m, 70) ? types[i] : element_types[pick(m, NTYPES)];
        p->buffer = new_buffer(m, "A", type, chance(m, 10) ? 0 : 1 + pick(m, 2));
        enter(m, p->buffer.name, &p->buffer, type, p->mode == KN_PARAM_IN);
    }
    f->body = block(m, 2 + pick(m, 3));
    return f;
}

/* ---- Comparing ---- */

typedef struct {
    fixture *f;
    kn_module module;
    int64_t scalars[2];
    walk w;
    walk_name *buffers[BUFFERS];
    unsigned char *memory[BUFFERS];
    kn_memory run[BUFFERS];
} comparison;

static void prepare(maker *m, comparison *c, const kn_func *f)
{
    c->w.arena = m->a;
    c->w.steps = STEPS;
    for (int i = 0; i < 2; i++) {
        c->scalars[i] = chance(m, 50) ? (chance(m, 5) ? 0 : 1 + pick(m, 12)) : 1 + pick(m, 70);
        walk_name n = {.name = f->params[i].buffer.name, .value = {.i = c->scalars[i]}};
        kn_push(m->a, &c->w.scope, n);
    }
    for (int i = 0; i < BUFFERS; i++)
        walk_declare(&c->w, &f->params[2 + i].buffer, NULL);
    for (int i = 0; i < BUFFERS; i++) {
        walk_name *b = c->buffers[i] = &c->w.scope.at[2 + i];
        size_t bytes = (size_t)kn_dtype_bytes(b->type, b->size);
        c->memory[i] = kn_alloc(m->a, bytes + 1);
        for (int64_t k = 0; k < b->size; k++) {
            kn_number v = {.i = kn_number_wrap(KN_I32, pick(m, 12) - 3),
                           .f = (pick(m, 65) - 32) / 8.0};
            if (!kn_dtype_is_float(b->type))
                v.i = kn_number_wrap(b->type, v.i);
            b->at[k] = v;
            put_element(b->type, c->memory[i] + 1, k, v);
        }
        c->run[i] = (kn_memory){c->memory[i] + 1, bytes};
    }
}

static void interpret(void *arg)
{
    comparison *c = arg;
    kn_arena *a = kn_arena_create(c->f->ctx);
    kn_interp *in = kn_interp_compile(a, &c->module, c->module.funcs[0]);
    kn_interp_run(c->f->ctx, in, c->scalars, 2, c->run, BUFFERS);
    kn_arena_destroy(a);
}

static void compare(comparison *c, const char *text, kn_status status)
{
    if ((status != KN_OK) != c->w.failed)
        fail_msg("n = %d, m = %d: %s, but the walk %s\n%s", (int)c->scalars[0], (int)c->scalars[1],
                 status == KN_OK ? "no fault" : last_message(c->f->ctx),
                 c->w.failed ? "fails" : "does not", text);
    for (int i = 0; i < BUFFERS; i++)
        for (int64_t k = 0; k < c->buffers[i]->size; k++) {
            kn_dtype type = c->buffers[i]->type;
            kn_number want = c->buffers[i]->at[k], got = get_element(type, c->memory[i] + 1, k);
            if (!same(type, want, got))
                fail_msg("n = %d, m = %d: buffer %d, element %d: %lld %g, not %lld %g\n%s",
                         (int)c->scalars[0], (int)c->scalars[1], i, (int)k, (long long)got.i, got.f,
                         (long long)want.i, want.f, text);
        }
}

typedef struct {
    int ran, failed, long_runs;
} tally;

static void one_case(fixture *f, uint64_t seed, tally *t)
{
    maker m = {.a = kn_arena_create(f->ctx), .ctx = f->ctx, .seed = seed};
    for (int i = 0; i < 5; i++)
        random_bits(&m);
    comparison c = {.f = f};
    kn_func *func = function(&m);
    c.module = (kn_module){.name = "m", .arena = m.a, .nfuncs = 1, .funcs = &func};
    const char *text = printed_module(m.a, &c.module);
    assert_string_equal(printed_module(m.a, read_module(m.a, text)), text);
    if (getenv("KILN_RANDOM_SHOW"))
        fputs(text, stdout);
    prepare(&m, &c, func);
    walk_block(&c.w, &func->body);
    if (c.w.steps > 0) {
        compare(&c, kn_format(m.a, "seed %llu\n%s", (unsigned long long)seed, text),
                kn_protect(f->ctx, interpret, &c));
        t->ran++;
        t->failed += c.w.failed;
        t->long_runs += c.w.steps < STEPS - 500;
    }
    kn_diag_clear(f->ctx);
    kn_arena_destroy(m.a);
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void random_functions_mean_what_a_walk_says(void **state)
{
    tally t = {0};
    uint64_t n = setting("KILN_RANDOM_CASES", 1000), first = setting("KILN_RANDOM_SEED", 1);
    for (uint64_t i = 0; i < n; i++)
        one_case(*state, first + i, &t);
    print_message("%d ran, %d of them to a fault, %d for long\n", t.ran, t.failed, t.long_runs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {KN_TEST(random_functions_mean_what_a_walk_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
