/* Generated C against the interpreter: every operator of every type, every cast, and random
 * expressions. */
#include "codegen_help.h"

/* ---- Every operator and every cast ---- */

static bool takes(kn_scalar op, kn_dtype type)
{
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return type != KN_BOOL;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(type);
    case KN_CLASS_LOGIC: return type == KN_BOOL;
    case KN_CLASS_BITS:
        return kn_dtype_is_integer(type) || (type == KN_BOOL && op != KN_OP_SHL && op != KN_OP_SHR);
    case KN_CLASS_COMPARE:
    case KN_CLASS_SELECT: return true;
    }
    return false;
}

static void put_application(kn_str *s, kn_scalar op)
{
    const kn_scalar_info *info = kn_scalar_get(op);
    if (op == KN_OP_SELECT)
        kn_put(s, "select(i % 3 == 0, a[i], b[i])");
    else if (info->arity == 1)
        kn_putf(s, "%s(a[i])", info->text);
    else if (info->precedence == 0)
        kn_putf(s, "%s(a[i], b[i])", info->text);
    else
        kn_putf(s, "a[i] %s b[i]", info->text);
}

static const char *result_name(kn_scalar op, kn_dtype type)
{
    kn_scalar_class class = kn_scalar_get(op)->class;
    return kn_dtype_name(class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC ? KN_BOOL : type);
}

/* main(in a, b: T[PAIRS], out y: T[operators, PAIRS], out c: bool[operators, PAIRS], out m: of min
 * and max) */
static void put_operators(kn_str *s, kn_dtype type)
{
    const char *t = kn_dtype_name(type);
    kn_str calls = kn_str_make(s->arena);
    kn_put(s, "module @operators {\n");
    for (int op = 0; op < KN_SCALAR_COUNT; op++) {
        if (!takes((kn_scalar)op, type))
            continue;
        const char *id = kn_scalar_get((kn_scalar)op)->id, *r = result_name((kn_scalar)op, type);
        kn_putf(s,
                "func @k_%s(in a: %s[%d] @ddr, in b: %s[%d] @ddr, out y: %s[%d] @ddr) {\n for i in "
                "0:%d { y[i] = ",
                id, t, PAIRS, t, PAIRS, r, PAIRS, PAIRS);
        put_application(s, (kn_scalar)op);
        kn_put(s, " }\n}\n");
        kn_putf(&calls, "  call k_%s(a, b, &%s[%d, 0])\n", id, strcmp(r, t) == 0 ? "y" : "c", op);
    }
    kn_putf(s,
            "func @main(in a: %s[%d] @ddr, in b: %s[%d] @ddr, inout y: %s[%d, %d] @ddr, inout c: "
            "bool[%d, %d] @ddr) {\n%s}\n}\n",
            t, PAIRS, t, PAIRS, t, KN_SCALAR_COUNT, PAIRS, KN_SCALAR_COUNT, PAIRS,
            kn_str_get(&calls));
}

static void every_operator_of_every_type(void **state)
{
    for (int type = 0; type < KN_DTYPE_COUNT; type++) {
        fixture *f = *state;
        kn_str s = kn_str_make(f->arena);
        if (type == KN_INDEX)
            continue;
        put_operators(&s, (kn_dtype)type);
        program p = build(state, kn_str_get(&s));
        check(&p, fill_edges, NULL);
        unload(&p);
    }
}

static void put_cast_kernel(kn_str *s, const char *mode, const char *from, const char *to)
{
    kn_putf(s,
            "func @%s_%s_%s(in a: %s[%d] @ddr, out y: %s[%d] @ddr) {\n for i in 0:%d { y[i] = "
            "%s(%s, a[i]) }\n}\n",
            mode, from, to, from, EDGES, to, EDGES, EDGES, mode, to);
}

static bool can_bitcast(kn_dtype from, kn_dtype to)
{
    return kn_dtype_bits(from) == kn_dtype_bits(to) && from != KN_BOOL && to != KN_BOOL;
}

static void every_cast(void **state)
{
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    fixture *f = *state;
    kn_str s = kn_str_make(f->arena), calls = kn_str_make(f->arena), params = kn_str_make(f->arena);
    kn_put(&s, "module @casts {\n");
    for (int from = 0; from < KN_INDEX; from++) {
        const char *fn = kn_dtype_name((kn_dtype)from);
        kn_putf(&params, "%sin b_%s: %s[%d] @ddr, inout y_%s: %s[%d, %d] @ddr", from ? ", " : "",
                fn, fn, EDGES, fn, fn, KN_INDEX * 3, EDGES);
        for (int to = 0; to < KN_INDEX; to++) {
            for (int mode = 0; mode < 3; mode++) {
                const char *tn = kn_dtype_name((kn_dtype)to);
                if (mode == 2 && !can_bitcast((kn_dtype)from, (kn_dtype)to))
                    continue;
                put_cast_kernel(&s, modes[mode], fn, tn);
                kn_putf(&calls, "  call %s_%s_%s(b_%s, &y_%s[%d, 0])\n", modes[mode], fn, tn, fn,
                        tn, from * 3 + mode);
            }
        }
    }
    kn_putf(&s, "func @main(%s) {\n%s}\n}\n", kn_str_get(&params), kn_str_get(&calls));
    program p = build(state, kn_str_get(&s));
    check(&p, fill_edges, NULL);
    unload(&p);
}

/* ---- Random expressions ---- */

typedef struct {
    uint64_t seed;
    kn_str *out;
} generator;

static int pick(generator *g, int n)
{
    return (int)(next_random(&g->seed) % (uint64_t)n);
}

static void put_random(generator *g, kn_dtype type, int depth);

/* How an element of a type is read: `a_f32[i]`; of index, by a cast of something small. */
static void put_leaf(generator *g, kn_dtype type)
{
    const char *t = kn_dtype_name(type);
    if (type == KN_INDEX)
        kn_put(g->out, pick(g, 3) ? "i" : pick(g, 2) ? "cast(index, a_i8[i])" : "3");
    else if (pick(g, 4) == 0 && kn_dtype_is_float(type))
        kn_putf(g->out, "-%d.5:%s", pick(g, 9), t);
    else if (pick(g, 4) == 0 && type == KN_BOOL)
        kn_put(g->out, pick(g, 2) ? "true" : "i > 5");
    else if (pick(g, 4) == 0 && kn_dtype_is_integer(type))
        kn_putf(g->out, "%s%d:%s", kn_dtype_is_signed(type) && pick(g, 2) ? "-" : "", pick(g, 8),
                t);
    else
        kn_putf(g->out, "%c_%s[i]", pick(g, 2) ? 'a' : 'b', t);
}

/* What leaves 64 bits is not the same everywhere. */
static bool is_wild(kn_scalar op, kn_dtype type)
{
    return type == KN_INDEX && (op == KN_OP_SHL || op == KN_OP_MUL || op == KN_OP_POW);
}

static void put_random_op(generator *g, kn_dtype type, int depth)
{
    kn_scalar op;
    kn_dtype operand;
    do {
        op = (kn_scalar)pick(g, KN_SCALAR_COUNT);
        kn_scalar_class class = kn_scalar_get(op)->class;
        bool truth = class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC;
        operand = class == KN_CLASS_COMPARE ? (kn_dtype)pick(g, KN_DTYPE_COUNT) : type;
        if (truth && type != KN_BOOL)
            operand = KN_DTYPE_COUNT;
    } while (operand == KN_DTYPE_COUNT || !takes(op, operand) || is_wild(op, operand));
    const kn_scalar_info *info = kn_scalar_get(op);
    kn_putf(g->out, "%s(", info->precedence == 0 || info->arity == 1 ? info->text : "");
    for (int i = 0; i < info->arity; i++) {
        if (i > 0)
            kn_putf(g->out, info->precedence == 0 ? ", " : " %s ", info->text);
        kn_put(g->out, info->precedence == 0 ? "" : "(");
        put_random(g, op == KN_OP_SELECT && i == 0 ? KN_BOOL : operand, depth - 1);
        kn_put(g->out, info->precedence == 0 ? "" : ")");
    }
    kn_put(g->out, ")");
}

static void put_random_cast(generator *g, kn_dtype type, int depth)
{
    kn_dtype from = (kn_dtype)pick(g, KN_INDEX);
    bool bits =
        can_bitcast(from, type) && type != KN_INDEX && !kn_dtype_is_float(from) && pick(g, 2);
    kn_putf(g->out, "%s(%s, ", bits ? "bitcast" : pick(g, 2) ? "cast" : "sat", kn_dtype_name(type));
    put_random(g, from, depth - 1);
    kn_put(g->out, ")");
}

static void put_random(generator *g, kn_dtype type, int depth)
{
    if (depth == 0 || pick(g, 8) == 0)
        put_leaf(g, type);
    else if (pick(g, 4) == 0 && type != KN_INDEX)
        put_random_cast(g, type, depth);
    else
        put_random_op(g, type, depth);
}

/* KILN_SEEDS=first:last tries others. */
static void random_expressions(void **state)
{
    enum { EXPRESSIONS = 16 };
    unsigned first = 1, last = 1;
    const char *seeds = getenv("KILN_SEEDS");
    if (seeds)
        assert_int_equal(sscanf(seeds, "%u:%u", &first, &last), 2);
    for (uint64_t seed = first; seed <= last; seed++) {
        fixture *f = *state;
        kn_str s = kn_str_make(f->arena), params = kn_str_make(f->arena);
        generator g = {seed, &s};
        for (int t = 0; t < KN_INDEX; t++) {
            const char *n = kn_dtype_name((kn_dtype)t);
            kn_putf(&params,
                    "%sin a_%s: %s[%d] @ddr, in b_%s: %s[%d] @ddr, out y_%s: %s[%d, %d] @ddr",
                    t ? ", " : "", n, n, PAIRS, n, n, PAIRS, n, n, EXPRESSIONS, PAIRS);
        }
        kn_putf(&s, "module @random { func @main(%s) {\n", kn_str_get(&params));
        for (int t = 0; t < KN_INDEX; t++) {
            for (int e = 0; e < EXPRESSIONS; e++) {
                kn_putf(&s, "for i in 0:%d { y_%s[%d, i] = ", PAIRS, kn_dtype_name((kn_dtype)t), e);
                put_random(&g, (kn_dtype)t, 4);
                kn_put(&s, " }\n");
            }
        }
        kn_put(&s, "} }\n");
        program p = build(state, kn_str_get(&s));
        check(&p, fill_edges, NULL);
        unload(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(every_cast),
        KN_TEST(every_operator_of_every_type),
        KN_TEST(random_expressions),
    };
    return cmocka_run_group_tests_name("codegen_c_ops", tests, NULL, NULL);
}
