/* Scalar expressions: the table, builders, rewriting, folds against values worked out by hand, and
   the index algebra against a numeric evaluation of its own. */
#include "unit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/lex.h"

static const char *printed(const fixture *f, const kn_expr *e)
{
    kn_str s = kn_str_make(f->arena);
    kn_expr_print(&s, e, true);
    return kn_str_get(&s);
}

static const kn_expr *index_of(const fixture *f, const char *text)
{
    kn_lexer lx;
    kn_lex_init(&lx, f->arena, "t.txt", text, strlen(text), kn_loc_none());
    return kn_parse_index(&lx);
}

static const kn_expr *var(const fixture *f, const char *name)
{
    return kn_var(f->arena, KN_INDEX, kn_intern(f->ctx, name));
}

/* ---- the table ---- */

static void table_names_are_ids(void **state)
{
    (void)state;
    static const char *const ids[] = {
#define SCALAR(id, text, arity, class, prec) #id,
#include "ir/scalar.def"
#undef SCALAR
    };
    for (int i = 0; i < KN_SCALAR_COUNT; i++) {
        const kn_scalar_info *info = kn_scalar_get((kn_scalar)i);
        kn_scalar op;
        assert_int_equal(strlen(info->id), strlen(ids[i]));
        for (size_t k = 0; ids[i][k]; k++)
            assert_int_equal(info->id[k],
                             ids[i][k] >= 'A' && ids[i][k] <= 'Z' ? ids[i][k] + 32 : ids[i][k]);
        assert_int_equal(kn_scalar_parse(info->text, &op), info->precedence == 0);
        if (info->precedence == 0)
            assert_int_equal(op, i);
    }
}

/* ---- builders ---- */

static void types_follow_the_class(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *x = kn_var(a, KN_F16, "x"), *i = var(f, "i"), *two = kn_index(a, 2);
    const kn_expr *c = kn_op2(a, KN_OP_LT, x, x);
    assert_int_equal(c->type, KN_BOOL);
    assert_int_equal(kn_op2(a, KN_OP_LAND, c, c)->type, KN_BOOL);
    assert_int_equal(kn_op2(a, KN_OP_AND, c, c)->type, KN_BOOL);
    assert_int_equal(kn_op1(a, KN_OP_EXP, x)->type, KN_F16);
    assert_int_equal(kn_select(a, c, i, two)->type, KN_INDEX);
    assert_int_equal(kn_cast(a, KN_CAST_CAST, KN_F32, i)->type, KN_F32);
    assert_int_equal(kn_op2(a, KN_OP_DIV, i, two)->op, KN_OP_FLOORDIV);
    assert_int_equal(kn_op2(a, KN_OP_REM, i, two)->op, KN_OP_MOD);
    assert_int_equal(kn_op2(a, KN_OP_DIV, x, x)->op, KN_OP_DIV);
    assert_string_equal(printed(f, kn_op2(a, KN_OP_REM, i, two)), "i % 2");
    const kn_expr *n = kn_var(a, KN_I32, "n");
    assert_string_equal(printed(f, kn_op2(a, KN_OP_MOD, n, n)), "mod(n, n)");
}

static void constants_are_of_their_type(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    assert_int_equal(kn_int(a, KN_I8, 200)->i, -56);
    assert_int_equal(kn_int(a, KN_U4, 17)->i, 1);
    assert_int_equal(kn_int(a, KN_I4, 8)->i, -8);
    assert_int_equal(kn_int(a, KN_BOOL, 5)->i, 1);
    assert_true(kn_int(a, KN_F32, 3)->f == 3.0);
    assert_true(kn_float(a, KN_F16, 2049)->f == 2048.0);
    assert_true(kn_float(a, KN_F32, 0.1)->f == (double)0.1f);
    assert_true(kn_lowest(a, KN_F16)->f == -HUGE_VAL);
    assert_true(kn_highest(a, KN_F64)->f == HUGE_VAL);
    assert_int_equal(kn_lowest(a, KN_I16)->i, -32768);
    assert_int_equal(kn_highest(a, KN_U16)->i, 65535);
    assert_true((uint64_t)kn_highest(a, KN_U64)->i == UINT64_MAX);
    assert_true(kn_one(a, KN_BF16)->f == 1.0);
}

static void equality_is_structural(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    assert_true(kn_expr_equal(kn_float(a, KN_F32, (double)NAN), kn_float(a, KN_F32, (double)NAN)));
    assert_false(kn_expr_equal(kn_float(a, KN_F32, 0.0), kn_float(a, KN_F32, -0.0)));
    assert_false(kn_expr_equal(kn_float(a, KN_F32, 1), kn_float(a, KN_F64, 1)));
    assert_false(kn_expr_equal(kn_int(a, KN_UNTYPED, 1), kn_float(a, KN_UNTYPED, 1)));
    const kn_expr *x = kn_var(a, KN_F32, "x"), *y = kn_var(a, KN_F32, "y");
    const kn_expr *sum = kn_op2(a, KN_OP_ADD, x, y);
    assert_true(kn_expr_equal(sum, kn_op2(a, KN_OP_ADD, kn_var(a, KN_F32, "x"), y)));
    assert_false(kn_expr_equal(sum, kn_op2(a, KN_OP_ADD, y, x)));
    assert_false(kn_expr_equal(sum, kn_op2(a, KN_OP_SUB, x, y)));
    assert_true(kn_expr_compare(sum, x) == -kn_expr_compare(x, sum));
}

static void use_is_by_name(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *sub = var(f, "i");
    const kn_expr *e = kn_op1(a, KN_OP_NEG, kn_load(a, KN_F32, "X", &sub, 1));
    assert_true(kn_expr_uses(e, "i"));
    assert_true(kn_expr_uses(e, "X"));
    assert_false(kn_expr_uses(e, "j"));
}

/* ---- rewriting ---- */

static void substitution_keeps_indices_canonical(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *subs[2] = {index_of(f, "4*i + q"), index_of(f, "(i + q) / 4")};
    const kn_expr *e = kn_op1(a, KN_OP_EXP, kn_load(a, KN_F32, "X", subs, 2));
    kn_binding b[2] = {{"i", index_of(f, "q - 1")}, {"q", index_of(f, "i")}}; /* both at once */
    assert_string_equal(printed(f, kn_expr_subst(a, e, b, 2)),
                        "exp(X[i + 4*q - 4, (i + q + 3) / 4 - 1])");
    kn_binding same[1] = {{"k", index_of(f, "1")}};
    assert_ptr_equal(kn_expr_subst(a, e, same, 1), e);
    kn_binding four[2] = {{"i", kn_index(a, 3)}, {"q", kn_index(a, 9)}};
    assert_string_equal(printed(f, kn_expr_subst(a, e, four, 2)), "exp(X[21, 3])");
}

static const kn_expr *double_the_loads(void *env, const kn_expr *e)
{
    return e->kind == KN_E_LOAD ? kn_op2(env, KN_OP_ADD, e, e) : e;
}

static void rewriting_is_bottom_up(void **state)
{
    fixture *f = *state;
    const kn_expr *sub = var(f, "i");
    const kn_expr *e = kn_op1(f->arena, KN_OP_NEG, kn_load(f->arena, KN_F32, "X", &sub, 1));
    e = kn_expr_rewrite(f->arena, e, double_the_loads, f->arena);
    assert_string_equal(printed(f, e), "-(X[i] + X[i])");
}

static void log_node(void *env, const kn_expr *e)
{
    kn_putf(env, "%d", (int)e->kind);
}

static void visiting_starts_at_the_root(void **state)
{
    fixture *f = *state;
    kn_str s = kn_str_make(f->arena);
    kn_expr_visit(index_of(f, "a*b + 3"), log_node, &s);
    assert_string_equal(s.at, "33110");
}

/* ---- folds, integers ---- */

static const struct {
    kn_scalar op;
    kn_dtype type;
    int64_t x, y, want;
} int_rows[] = {
    {KN_OP_ADD, KN_I8, 127, 1, -128},
    {KN_OP_ADD, KN_U8, 255, 1, 0},
    {KN_OP_ADD, KN_I4, 7, 1, -8},
    {KN_OP_ADD, KN_I64, INT64_MAX, 1, INT64_MIN},
    {KN_OP_SUB, KN_U4, 0, 1, 15},
    {KN_OP_SUB, KN_U64, 0, 1, -1},
    {KN_OP_MUL, KN_I16, 256, 128, -32768},
    {KN_OP_MUL, KN_I32, 65536, 65536, 0},
    {KN_OP_MUL, KN_I64, INT64_MAX, 2, -2},
    {KN_OP_DIV, KN_I32, -7, 2, -3},
    {KN_OP_DIV, KN_I32, 7, -2, -3},
    {KN_OP_DIV, KN_I32, 7, 0, 0},
    {KN_OP_DIV, KN_I8, -128, -1, -128},
    {KN_OP_DIV, KN_I32, INT32_MIN, -1, INT32_MIN},
    {KN_OP_DIV, KN_I64, INT64_MIN, -1, INT64_MIN},
    {KN_OP_DIV, KN_U64, -1, 2, INT64_MAX},
    {KN_OP_DIV, KN_INDEX, -7, 2, -4},
    {KN_OP_REM, KN_I32, -7, 2, -1},
    {KN_OP_REM, KN_I32, 7, -2, 1},
    {KN_OP_REM, KN_I32, 7, 0, 0},
    {KN_OP_REM, KN_I64, INT64_MIN, -1, 0},
    {KN_OP_REM, KN_U64, -1, 10, 5},
    {KN_OP_REM, KN_INDEX, -7, 2, 1},
    {KN_OP_FLOORDIV, KN_I32, -7, 2, -4},
    {KN_OP_FLOORDIV, KN_I32, 7, -2, -4},
    {KN_OP_FLOORDIV, KN_I32, -8, 2, -4},
    {KN_OP_FLOORDIV, KN_I32, 5, 0, 0},
    {KN_OP_FLOORDIV, KN_U8, 200, 3, 66},
    {KN_OP_MOD, KN_I32, -7, 2, 1},
    {KN_OP_MOD, KN_I32, 7, -2, -1},
    {KN_OP_MOD, KN_I32, -8, 2, 0},
    {KN_OP_MOD, KN_I32, 5, 0, 0},
    {KN_OP_NEG, KN_I8, -128, 0, -128},
    {KN_OP_NEG, KN_U8, 1, 0, 255},
    {KN_OP_ABS, KN_I8, -128, 0, -128},
    {KN_OP_ABS, KN_I8, -5, 0, 5},
    {KN_OP_MIN, KN_I8, -1, 1, -1},
    {KN_OP_MIN, KN_U64, -1, 1, 1},
    {KN_OP_MAX, KN_U64, -1, 1, -1},
    {KN_OP_MAX, KN_I64, -1, 1, 1},
    {KN_OP_POW, KN_I32, 3, 4, 81},
    {KN_OP_POW, KN_I32, -2, 31, INT32_MIN},
    {KN_OP_POW, KN_I32, 2, 32, 0},
    {KN_OP_POW, KN_I32, 0, 0, 1},
    {KN_OP_POW, KN_I32, 2, -1, 0},
    {KN_OP_POW, KN_I32, -1, -3, -1},
    {KN_OP_POW, KN_U8, 3, 255, 171},
    {KN_OP_LT, KN_U64, -1, 1, 0},
    {KN_OP_LT, KN_I64, -1, 1, 1},
    {KN_OP_GE, KN_U64, -1, 1, 1},
    {KN_OP_EQ, KN_I8, 3, 3, 1},
    {KN_OP_NE, KN_BOOL, 1, 0, 1},
    {KN_OP_AND, KN_I8, -1, 0x0f, 15},
    {KN_OP_OR, KN_U8, 0xf0, 0x0f, 255},
    {KN_OP_XOR, KN_I8, -1, 1, -2},
    {KN_OP_XOR, KN_BOOL, 1, 1, 0},
    {KN_OP_NOT, KN_U4, 3, 0, 12},
    {KN_OP_NOT, KN_I32, 0, 0, -1},
    {KN_OP_NOT, KN_BOOL, 1, 0, 0},
    {KN_OP_SHL, KN_I8, 1, 7, -128},
    {KN_OP_SHL, KN_I8, 1, 8, 1},
    {KN_OP_SHL, KN_U8, 1, 9, 2},
    {KN_OP_SHL, KN_I32, 1, -1, INT32_MIN},
    {KN_OP_SHL, KN_I64, 3, 63, INT64_MIN},
    {KN_OP_SHL, KN_U4, 1, 5, 2},
    {KN_OP_SHR, KN_I8, -128, 7, -1},
    {KN_OP_SHR, KN_U8, 128, 7, 1},
    {KN_OP_SHR, KN_I64, INT64_MIN, 63, -1},
    {KN_OP_SHR, KN_U64, INT64_MIN, 63, 1},
    {KN_OP_SHR, KN_I32, -5, 33, -3},
    {KN_OP_LAND, KN_BOOL, 1, 0, 0},
    {KN_OP_LOR, KN_BOOL, 1, 0, 1},
    {KN_OP_LNOT, KN_BOOL, 0, 0, 1},
};

static void integer_folds(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    for (size_t i = 0; i < sizeof int_rows / sizeof *int_rows; i++) {
        const kn_expr *x = kn_int(a, int_rows[i].type, int_rows[i].x);
        const kn_expr *y = kn_int(a, int_rows[i].type, int_rows[i].y);
        kn_scalar op = int_rows[i].op;
        bool binary = kn_scalar_get(op)->arity == 2;
        const kn_expr *e = binary ? kn_op2(a, op, x, y) : kn_op1(a, op, x);
        const kn_expr *r = kn_expr_fold(a, e);
        if (!r || r->i != int_rows[i].want)
            fail_msg("%s %s %" PRId64 " %" PRId64 ": %" PRId64, kn_dtype_name(int_rows[i].type),
                     kn_scalar_get(op)->id, int_rows[i].x, int_rows[i].y, r ? r->i : 0);
        assert_int_equal(r->type, e->type);
    }
}

/* ---- folds, floats ---- */

#define INF HUGE_VAL
#define QNAN ((double)NAN)

static const struct {
    kn_scalar op;
    kn_dtype type;
    double x, y, want;
} float_rows[] = {
    {KN_OP_ADD, KN_F32, 16777216, 1, 16777216},
    {KN_OP_ADD, KN_F64, 16777216, 1, 16777217},
    {KN_OP_ADD, KN_F32, 0.1, 0.2, 0x1.333334p-2},
    {KN_OP_ADD, KN_F16, 2048, 1, 2048},
    {KN_OP_ADD, KN_F16, 2050, 1, 2052},
    {KN_OP_ADD, KN_F16, 65504, 8, 65504},
    {KN_OP_ADD, KN_F16, 65504, 16, INF},
    {KN_OP_ADD, KN_BF16, 256, 1, 256},
    {KN_OP_ADD, KN_BF16, 258, 1, 260},
    {KN_OP_SUB, KN_F32, INF, INF, QNAN},
    {KN_OP_MUL, KN_F16, 0.0001220703125, 0.00048828125, 5.9604644775390625e-08},
    {KN_OP_MUL, KN_F32, 1e-30, 1e-30, 0},
    {KN_OP_MUL, KN_F32, -1e30, 1e30, -INF},
    {KN_OP_DIV, KN_F32, 1, 3, 0x1.555556p-2},
    {KN_OP_DIV, KN_F64, 1, 3, 0x1.5555555555555p-2},
    {KN_OP_DIV, KN_F16, 1, 3, 0x1.554p-2},
    {KN_OP_DIV, KN_BF16, 1, 3, 0x1.56p-2},
    {KN_OP_DIV, KN_F32, 1, 0, INF},
    {KN_OP_DIV, KN_F32, 1, -0.0, -INF},
    {KN_OP_DIV, KN_F32, 0, 0, QNAN},
    {KN_OP_REM, KN_F32, -7.5, 2, -1.5},
    {KN_OP_REM, KN_F32, 1, 0, QNAN},
    {KN_OP_MOD, KN_F32, -7.5, 2, 0.5},
    {KN_OP_MOD, KN_F64, 7.5, -2, -0.5},
    {KN_OP_FLOORDIV, KN_F32, -7.5, 2, -4},
    {KN_OP_FLOORDIV, KN_F32, 7.5, 2, 3},
    {KN_OP_NEG, KN_F32, 0, 0, -0.0},
    {KN_OP_ABS, KN_F16, -3, 0, 3},
    {KN_OP_MIN, KN_F32, 1, QNAN, QNAN},
    {KN_OP_MIN, KN_F32, QNAN, 1, QNAN},
    {KN_OP_MAX, KN_F16, 1, QNAN, QNAN},
    {KN_OP_MAX, KN_F64, QNAN, 1, QNAN},
    {KN_OP_MAX, KN_F32, 1, 2, 2},
    {KN_OP_MIN, KN_F32, -INF, 2, -INF},
    {KN_OP_POW, KN_F32, 2, 0.5, 0x1.6a09e6p+0},
    {KN_OP_POW, KN_F64, -8, 3, -512},
    {KN_OP_SQRT, KN_F32, 2, 0, 0x1.6a09e6p+0},
    {KN_OP_SQRT, KN_F64, 2, 0, 0x1.6a09e667f3bcdp+0},
    {KN_OP_SQRT, KN_F32, -1, 0, QNAN},
    {KN_OP_RSQRT, KN_F32, 4, 0, 0.5},
    {KN_OP_RSQRT, KN_F32, 0, 0, INF},
    {KN_OP_EXP, KN_F32, -INF, 0, 0},
    {KN_OP_EXP, KN_F16, 12, 0, INF},
    {KN_OP_EXP, KN_F16, 1, 0, 2.71875},
    {KN_OP_LOG, KN_F32, 0, 0, -INF},
    {KN_OP_TANH, KN_F32, 100, 0, 1},
    {KN_OP_ERF, KN_F32, -100, 0, -1},
    {KN_OP_ROUND, KN_F32, 0.5, 0, 0},
    {KN_OP_ROUND, KN_F32, 1.5, 0, 2},
    {KN_OP_ROUND, KN_F32, 2.5, 0, 2},
    {KN_OP_ROUND, KN_F64, -2.5, 0, -2},
    {KN_OP_ROUND, KN_F16, -0.5, 0, -0.0},
    {KN_OP_FLOOR, KN_F32, -1.5, 0, -2},
    {KN_OP_CEIL, KN_F32, -1.5, 0, -1},
    {KN_OP_LT, KN_F32, 1, QNAN, 0},
    {KN_OP_GE, KN_F32, QNAN, 1, 0},
    {KN_OP_EQ, KN_F32, QNAN, QNAN, 0},
    {KN_OP_NE, KN_F32, QNAN, QNAN, 1},
    {KN_OP_EQ, KN_F32, 0, -0.0, 1},
};

static bool same_float(double x, double y)
{
    return isnan(x) ? isnan(y) : x == y && signbit(x) == signbit(y);
}

static void float_folds(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    for (size_t i = 0; i < sizeof float_rows / sizeof *float_rows; i++) {
        const kn_expr *x = kn_float(a, float_rows[i].type, float_rows[i].x);
        const kn_expr *y = kn_float(a, float_rows[i].type, float_rows[i].y);
        kn_scalar op = float_rows[i].op;
        bool binary = kn_scalar_get(op)->arity == 2;
        const kn_expr *r = kn_expr_fold(a, binary ? kn_op2(a, op, x, y) : kn_op1(a, op, x));
        assert_non_null(r);
        double got = r->type == KN_BOOL ? (double)r->i : r->f;
        if (!same_float(got, float_rows[i].want))
            fail_msg("%s %s %g %g: %a", kn_dtype_name(float_rows[i].type), kn_scalar_get(op)->id,
                     float_rows[i].x, float_rows[i].y, got);
    }
}

/* Every function of the table on floats, to a few digits: that no row calls another's function. */
static void float_functions(void **state)
{
    static const struct {
        kn_scalar op;
        double x, want;
    } rows[] = {
        {KN_OP_EXP, 0.5, 1.6487213},    {KN_OP_EXPM1, 0.5, 0.64872127},
        {KN_OP_LOG, 0.5, -0.69314718},  {KN_OP_LOG1P, 0.5, 0.40546511},
        {KN_OP_SQRT, 0.5, 0.70710678},  {KN_OP_RSQRT, 0.5, 1.4142136},
        {KN_OP_TANH, 0.5, 0.46211716},  {KN_OP_ERF, 0.5, 0.52049988},
        {KN_OP_SIN, 0.5, 0.47942554},   {KN_OP_COS, 0.5, 0.87758256},
        {KN_OP_TAN, 0.5, 0.54630249},   {KN_OP_ASIN, 0.5, 0.52359878},
        {KN_OP_ACOS, 0.5, 1.0471976},   {KN_OP_ATAN, 0.5, 0.46364761},
        {KN_OP_SINH, 0.5, 0.52109531},  {KN_OP_COSH, 0.5, 1.127626},
        {KN_OP_ASINH, 0.5, 0.48121183}, {KN_OP_ACOSH, 1.5, 0.96242365},
        {KN_OP_ATANH, 0.5, 0.54930614}, {KN_OP_FLOOR, 0.5, 0},
        {KN_OP_CEIL, 0.5, 1},
    };
    static const kn_dtype types[] = {KN_F64, KN_F32, KN_F16, KN_BF16};
    static const double tolerance[] = {1e-7, 1e-6, 1e-3, 8e-3};
    kn_arena *a = ((fixture *)*state)->arena;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t t = 0; t < 4; t++) {
            const kn_expr *e = kn_op1(a, rows[i].op, kn_float(a, types[t], rows[i].x));
            double got = kn_expr_fold(a, e)->f;
            assert_true(fabs(got - rows[i].want) <= tolerance[t] * fabs(rows[i].want) + 1e-12);
            assert_true(kn_float(a, types[t], got)->f == got);
        }
    }
}

/* ---- folds, casts ---- */

static const struct {
    kn_cast_mode mode;
    kn_dtype from, to;
    double f; /* the operand when `from` is a float */
    int64_t i;
    double want_f;
    int64_t want_i;
} cast_rows[] = {
    {KN_CAST_CAST, KN_F32, KN_I32, 1.9, 0, 0, 1},
    {KN_CAST_CAST, KN_F32, KN_I32, -1.9, 0, 0, -1},
    {KN_CAST_CAST, KN_F32, KN_I32, 3e9, 0, 0, INT32_MAX},
    {KN_CAST_CAST, KN_F32, KN_I32, -3e9, 0, 0, INT32_MIN},
    {KN_CAST_CAST, KN_F32, KN_I32, QNAN, 0, 0, 0},
    {KN_CAST_CAST, KN_F32, KN_I8, 127.9, 0, 0, 127},
    {KN_CAST_CAST, KN_F32, KN_I8, -128.9, 0, 0, -128},
    {KN_CAST_CAST, KN_F32, KN_I4, 100, 0, 0, 7},
    {KN_CAST_CAST, KN_F32, KN_U8, -1, 0, 0, 0},
    {KN_CAST_CAST, KN_F32, KN_U8, -0.5, 0, 0, 0},
    {KN_CAST_CAST, KN_F32, KN_U8, 256, 0, 0, 255},
    {KN_CAST_CAST, KN_F64, KN_I64, 1e19, 0, 0, INT64_MAX},
    {KN_CAST_CAST, KN_F64, KN_I64, 9223372036854774784.0, 0, 0, 9223372036854774784},
    {KN_CAST_CAST, KN_F64, KN_I64, -INF, 0, 0, INT64_MIN},
    {KN_CAST_CAST, KN_F64, KN_U64, 1e19, 0, 0, (int64_t)10000000000000000000u},
    {KN_CAST_CAST, KN_F64, KN_U64, INF, 0, 0, -1},
    {KN_CAST_CAST, KN_F64, KN_INDEX, 3.5, 0, 0, 3},
    {KN_CAST_CAST, KN_F32, KN_BOOL, 0.5, 0, 0, 1},
    {KN_CAST_CAST, KN_F32, KN_BOOL, -0.0, 0, 0, 0},
    {KN_CAST_CAST, KN_I32, KN_I8, 0, 300, 0, 44},
    {KN_CAST_CAST, KN_I32, KN_U8, 0, -1, 0, 255},
    {KN_CAST_CAST, KN_U8, KN_I8, 0, 200, 0, -56},
    {KN_CAST_CAST, KN_I8, KN_U64, 0, -1, 0, -1},
    {KN_CAST_CAST, KN_U4, KN_I4, 0, 9, 0, -7},
    {KN_CAST_CAST, KN_I32, KN_BOOL, 0, 256, 0, 1},
    {KN_CAST_CAST, KN_BOOL, KN_I32, 0, 1, 0, 1},
    {KN_CAST_CAST, KN_BOOL, KN_F16, 0, 1, 1, 0},
    {KN_CAST_CAST, KN_INDEX, KN_F32, 0, 16777217, 16777216, 0},
    {KN_CAST_CAST, KN_I32, KN_F16, 0, 100000, INF, 0},
    {KN_CAST_CAST, KN_I32, KN_F16, 0, 2049, 2048, 0},
    {KN_CAST_CAST, KN_U64, KN_F64, 0, -1, 18446744073709551616.0, 0},
    {KN_CAST_CAST, KN_I64, KN_F64, 0, -1, -1, 0},
    {KN_CAST_CAST, KN_F64, KN_F32, 0.1, 0, 0x1.99999ap-4, 0},
    {KN_CAST_CAST, KN_F64, KN_F16, 1.00048828125000000001, 0, 1, 0},
    {KN_CAST_CAST, KN_F64, KN_F16, 1.0004882812500002, 0, 1.0009765625, 0},
    {KN_CAST_CAST, KN_F32, KN_BF16, 1.00390625, 0, 1, 0},
    {KN_CAST_CAST, KN_F32, KN_F16, 1e-8, 0, 0, 0},
    {KN_CAST_SAT, KN_I32, KN_I8, 0, 300, 0, 127},
    {KN_CAST_SAT, KN_I32, KN_I8, 0, -300, 0, -128},
    {KN_CAST_SAT, KN_I32, KN_U8, 0, -300, 0, 0},
    {KN_CAST_SAT, KN_I32, KN_U8, 0, 255, 0, 255},
    {KN_CAST_SAT, KN_U64, KN_I64, 0, -1, 0, INT64_MAX},
    {KN_CAST_SAT, KN_I64, KN_U64, 0, -1, 0, 0},
    {KN_CAST_SAT, KN_U8, KN_I4, 0, 200, 0, 7},
    {KN_CAST_SAT, KN_F32, KN_I8, 1e9, 0, 0, 127},
    {KN_CAST_SAT, KN_F32, KN_I8, QNAN, 0, 0, 0},
    {KN_CAST_BITCAST, KN_F32, KN_I32, 1, 0, 0, 0x3f800000},
    {KN_CAST_BITCAST, KN_F32, KN_U32, -0.0, 0, 0, 0x80000000},
    {KN_CAST_BITCAST, KN_U32, KN_F32, 0, 0x40490fdb, 0x1.921fb6p+1, 0},
    {KN_CAST_BITCAST, KN_U16, KN_F16, 0, 0x3c00, 1, 0},
    {KN_CAST_BITCAST, KN_U16, KN_BF16, 0, 0xbf80, -1, 0},
    {KN_CAST_BITCAST, KN_F16, KN_I16, -2, 0, 0, -16384},
    {KN_CAST_BITCAST, KN_BF16, KN_F16, 1, 0, 1.875, 0},
    {KN_CAST_BITCAST, KN_F64, KN_I64, -2, 0, 0, INT64_MIN + 0x4000000000000000},
    {KN_CAST_BITCAST, KN_I64, KN_F64, 0, 0x3ff0000000000000, 1, 0},
    {KN_CAST_BITCAST, KN_U8, KN_I8, 0, 200, 0, -56},
    {KN_CAST_BITCAST, KN_I4, KN_U4, 0, -1, 0, 15},
};

static void cast_folds(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    for (size_t k = 0; k < sizeof cast_rows / sizeof *cast_rows; k++) {
        kn_dtype from = cast_rows[k].from, to = cast_rows[k].to;
        const kn_expr *x = kn_dtype_is_float(from) ? kn_float(a, from, cast_rows[k].f)
                                                   : kn_int(a, from, cast_rows[k].i);
        const kn_expr *r = kn_expr_fold(a, kn_cast(a, cast_rows[k].mode, to, x));
        assert_non_null(r);
        assert_int_equal(r->type, to);
        bool right = kn_dtype_is_float(to) ? same_float(r->f, cast_rows[k].want_f)
                                           : r->i == cast_rows[k].want_i;
        if (!right)
            fail_msg("cast %s %s of %g %" PRId64 ": %a %" PRId64, kn_dtype_name(from),
                     kn_dtype_name(to), cast_rows[k].f, cast_rows[k].i, r->f, r->i);
    }
}

static void folds_need_constants(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    const kn_expr *x = kn_var(a, KN_I32, "x"), *one = kn_one(a, KN_I32),
                  *two = kn_int(a, KN_I32, 2);
    const kn_expr *yes = kn_int(a, KN_BOOL, 1);
    assert_null(kn_expr_fold(a, x));
    assert_null(kn_expr_fold(a, kn_op2(a, KN_OP_ADD, x, one)));
    assert_null(kn_expr_fold(a, kn_select(a, yes, one, x)));
    assert_int_equal(kn_expr_fold(a, kn_select(a, yes, one, two))->i, 1);
    assert_ptr_equal(kn_expr_fold(a, one), one);
}

/* ---- index algebra ---- */

static void index_simplifications(void **state)
{
    static const char *const rows[][2] = {
        {"4*n / 4", "n"},
        {"(n - 1) / 2 + 1", "(n + 1) / 2"},
        {"(i - 1) / 4", "(i + 3) / 4 - 1"},
        {"(4*n + 6) / 4", "n + 1"},
        {"(4*n - 1) / 4", "n - 1"},
        {"(4*i + j) / 4", "i + j / 4"},
        {"(6*n + 3) / 4", "(3*n + 1) / 2"},
        {"n / 4 / 8", "n / 32"},
        {"((n + 1) / 2 + 1) / 2", "(n + 3) / 4"},
        {"n / -4", "-n / 4"},
        {"n / 1", "n"},
        {"n / -1", "-n"},
        {"a*n*m / (n*m)", "a"},
        {"768*b*s / (12*b*s)", "64"},
        {"768*b*s / (12*b*k)", "64*s / k"},
        {"(a*n + a*m) / (n + m)", "a"},
        {"(n*n - 1) / (n + 1)", "n - 1"},
        {"(n + 1) / (n + 1)", "1"},
        {"n / m", "n / m"},
        {"n / (0 - m)", "-n / m"},
        {"0 / n", "0"},
        {"4*n % 4", "0"},
        {"(4*n + 6) % 4", "2"},
        {"(4*i + j) % 4", "j % 4"},
        {"5*i % 4", "i % 4"},
        {"-n % 4", "-n % 4"},
        {"(6*n + 3) % 4", "2*((n + 1) % 2) + 1"},
        {"n % 8 % 4", "n % 4"},
        {"(n % 8 + 1) % 4", "(n + 1) % 4"},
        {"n % 4 / 4", "0"},
        {"n % 4 % 8", "n % 4"},
        {"n % -4", "-(-n % 4)"},
        {"n % 1", "0"},
        {"a*n % n", "0"},
        {"n % m", "n % m"},
        {"4*(n / 4) + n % 4", "n"},
        {"34*(j / 32) + 2 + j % 32", "34*(j / 32) + j % 32 + 2"},
        {"(j / 4 * 4 + j % 4) * s", "j*s"},
        {"j / 4 * 4 * s + j % 4 * s", "j*s"},
        {"n * (j / n) + j % n", "j"},
        {"min(n, n)", "n"},
        {"min(n, n + 1)", "n"},
        {"max(n + 2, n + 1)", "n + 2"},
        {"max(m, n)", "max(m, n)"},
        {"max(n, m)", "max(m, n)"},
        {"max(1, n)", "max(n, 1)"},
        {"max(n, max(m, n))", "max(m, n)"},
        {"min(n % 4, 3)", "n % 4"},
        {"abs(-3)", "3"},
        {"abs(n % 4)", "n % 4"},
        {"pow(n, 2)", "n*n"},
        {"pow(2, 10)", "1024"},
        {"pow(-1, 7)", "-1"},
        {"select(1 < 2, a, b)", "a"},
        {"select(n < n, a, b)", "b"},
        {"select(n != m, a, a)", "a"},
        {"select(1 == 1 && n > m, a, b)", "select(n > m, a, b)"},
        {"select(n > m || 2 < 1, a, b)", "select(n > m, a, b)"},
        {"select(!(2 < 1), a, b)", "a"},
        {"select(1 != 1, n / 0, 7)", "7"},
        {"select(n % 4 < 4, a, b)", "a"},
        {"select(9223372036854775807 > n - 5, 1, 0)", "select(9223372036854775807 > n - 5, 1, 0)"},
        {"a*a + b*a + a*b", "a*a + 2*a*b"},
        {"-a*b", "-1*a*b"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kn_expr *e = index_of(f, rows[i][0]);
        assert_string_equal(printed(f, e), rows[i][1]);
        assert_true(kn_expr_equal(index_of(f, rows[i][1]), e));
    }
}

static void index_builders(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *n = var(f, "n"), *dims[3] = {n, kn_index(a, 4), var(f, "m")};
    int64_t v = 0;
    assert_string_equal(printed(f, kn_index_ceildiv(a, n, 64)), "(n + 63) / 64");
    assert_string_equal(printed(f, kn_index_product(a, dims, 3)), "4*m*n");
    assert_true(kn_index_is(kn_index_product(a, dims, 0), 1));
    assert_true(kn_index_is(kn_index_sub(a, n, n), 0));
    assert_false(kn_index_is(n, 0));
    assert_false(kn_index_is(kn_int(a, KN_I32, 3), 3));
    assert_true(kn_index_const(kn_index_mul(a, dims[1], dims[1]), &v));
    assert_int_equal(v, 16);
    assert_false(kn_index_const(n, &v));
}

static void index_terms(void **state)
{
    fixture *f = *state;
    int64_t c, coef[3];
    const kn_expr *term[3];
    const kn_expr *e = index_of(f, "3*i - 2*j*n + n / 4 - 7");
    assert_int_equal(kn_index_terms(f->arena, e, &c, coef, term, 3), 3);
    assert_int_equal(c, -7);
    int64_t sum = 0;
    for (int k = 0; k < 3; k++) {
        const char *text = printed(f, term[k]);
        int64_t want = !strcmp(text, "i") ? 3 : !strcmp(text, "j*n") ? -2 : 1;
        assert_int_equal(coef[k], want);
        sum += coef[k];
    }
    assert_int_equal(sum, 2);
    assert_int_equal(kn_index_terms(f->arena, e, &c, coef, term, 2), -1);
    assert_int_equal(kn_index_terms(f->arena, kn_index(f->arena, 5), &c, coef, term, 0), 0);
    assert_int_equal(c, 5);
}

/* Loads and casts are atoms; index parts of values become canonical. */
static void values_are_simplified_inside(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    const kn_expr *i = var(f, "i"), *two = kn_index(a, 2);
    const kn_expr *twice = kn_op2(a, KN_OP_ADD, i, kn_op2(a, KN_OP_MUL, i, two));
    const kn_expr *load = kn_load(a, KN_I64, "I", &twice, 1);
    const kn_expr *cast = kn_cast(a, KN_CAST_CAST, KN_INDEX, load);
    const kn_expr *sum = kn_op2(a, KN_OP_ADD, cast, kn_op2(a, KN_OP_MUL, cast, two));
    assert_string_equal(printed(f, kn_index_simplify(a, sum)), "3*cast(index, I[3*i])");
    const kn_expr *value = kn_cast(a, KN_CAST_CAST, KN_F32, twice);
    value = kn_op2(a, KN_OP_ADD, value, value);
    assert_string_equal(printed(f, kn_index_simplify(a, value)), "cast(f32, 3*i) + cast(f32, 3*i)");
}

static void overflow_body(void *arg)
{
    const fixture *f = arg;
    const kn_expr *big = kn_index(f->arena, INT64_MAX);
    kn_index_add(f->arena, kn_index_mul(f->arena, big, var(f, "n")), index_of(f, "n"));
}

static void overflow_is_raised(void **state)
{
    fixture *f = *state;
    assert_int_equal(kn_protect(f->ctx, overflow_body, f), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "an index expression overflows 64 bits");
}

/* ---- random expressions ---- */

static uint64_t random_state;

static int64_t pick(int64_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((random_state >> 33) % (uint64_t)n);
}

enum { NVARS = 3, NPOINTS = 12 };
static const char *const var_names[NVARS] = {"a", "b", "c"};

static const kn_expr *random_leaf(const fixture *f)
{
    return pick(2) ? var(f, var_names[pick(NVARS)]) : kn_index(f->arena, pick(13) - 4);
}

/* Not canonical: made with the plain builders. */
static const kn_expr *random_expr(const fixture *f, int depth, bool ring)
{
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_SUB, KN_OP_MUL,      KN_OP_ADD, KN_OP_NEG,
                                    KN_OP_MUL, KN_OP_SUB, KN_OP_FLOORDIV, KN_OP_MOD, KN_OP_FLOORDIV,
                                    KN_OP_MOD, KN_OP_MIN, KN_OP_MAX,      KN_OP_ABS, KN_OP_SELECT};
    if (depth == 0 || pick(6) == 0)
        return random_leaf(f);
    kn_scalar op = ops[pick(ring ? 7 : 15)];
    const kn_expr *x = random_expr(f, depth - 1, ring);
    if (kn_scalar_get(op)->arity == 1)
        return kn_op1(f->arena, op, x);
    const kn_expr *y = random_expr(f, depth - 1, ring);
    if (op == KN_OP_FLOORDIV || op == KN_OP_MOD)
        y = pick(4) ? kn_index(f->arena, pick(11) - 2) : y;
    if (op != KN_OP_SELECT)
        return kn_op2(f->arena, op, x, y);
    kn_scalar compare = (kn_scalar)(KN_OP_LT + pick(6));
    return kn_select(f->arena, kn_op2(f->arena, compare, x, random_leaf(f)), x, y);
}

/* An evaluation that shares nothing with the code under test; false when a divisor is zero. The
 * values stay small. */
static bool reference(const kn_expr *e, const int64_t *values, int64_t *out)
{
    int64_t v[3] = {0};
    if (e->kind == KN_E_CONST) {
        *out = e->i;
        return true;
    }
    if (e->kind == KN_E_VAR) {
        *out = values[e->name[0] - 'a'];
        return true;
    }
    for (int i = 0; i < e->nargs; i++) {
        if (!reference(e->args[i], values, &v[i]) || v[i] > 1 << 28 || v[i] < -(1 << 28))
            return false;
    }
    bool divides = e->op == KN_OP_FLOORDIV || e->op == KN_OP_MOD;
    if (divides && v[1] == 0)
        return false;
    int64_t quotient = divides ? (int64_t)floor((double)v[0] / (double)v[1]) : 0;
    switch (e->op) {
    case KN_OP_ADD: *out = v[0] + v[1]; break;
    case KN_OP_SUB: *out = v[0] - v[1]; break;
    case KN_OP_MUL: *out = v[0] * v[1]; break;
    case KN_OP_NEG: *out = -v[0]; break;
    case KN_OP_FLOORDIV: *out = quotient; break;
    case KN_OP_MOD: *out = v[0] - quotient * v[1]; break;
    case KN_OP_MIN: *out = v[0] < v[1] ? v[0] : v[1]; break;
    case KN_OP_MAX: *out = v[0] > v[1] ? v[0] : v[1]; break;
    case KN_OP_ABS: *out = v[0] < 0 ? -v[0] : v[0]; break;
    case KN_OP_SELECT: *out = v[0] ? v[1] : v[2]; break;
    case KN_OP_LT: *out = v[0] < v[1]; break;
    case KN_OP_LE: *out = v[0] <= v[1]; break;
    case KN_OP_GT: *out = v[0] > v[1]; break;
    case KN_OP_GE: *out = v[0] >= v[1]; break;
    case KN_OP_EQ: *out = v[0] == v[1]; break;
    case KN_OP_NE: *out = v[0] != v[1]; break;
    default: return false;
    }
    return true;
}

static void random_point(int64_t *values, const kn_size *sizes)
{
    for (int i = 0; i < NVARS; i++)
        values[i] = sizes[i].lo + pick(sizes[i].hi - sizes[i].lo + 1);
}

static void random_sizes(kn_size *sizes)
{
    for (int i = 0; i < NVARS; i++) {
        int64_t lo = pick(30) - 15;
        sizes[i] = (kn_size){var_names[i], lo, lo + pick(20)};
    }
}

typedef struct {
    const fixture *f;
    const kn_expr *in, *out;
} simplifying;

static void simplify_body(void *arg)
{
    simplifying *s = arg;
    s->out = kn_index_simplify(s->f->arena, s->in);
}

/* The canonical form of e, NULL when it divides by the constant 0 or grows too large. */
static const kn_expr *canonical(const fixture *f, const kn_expr *e)
{
    simplifying s = {f, e, NULL};
    if (kn_protect(f->ctx, simplify_body, &s) != KN_OK)
        kn_diag_clear(f->ctx);
    return s.out;
}

/* The same value at every point where e has one, also when evaluated as it is, and within the
 * range. */
static void check_values(const fixture *f, const kn_expr *e, const kn_expr *c)
{
    kn_size sizes[NVARS];
    random_sizes(sizes);
    kn_range range = kn_index_range(c, sizes, NVARS), plain = kn_index_range(e, sizes, NVARS);
    for (int p = 0; p < NPOINTS; p++) {
        int64_t values[NVARS], want, got = 0, raw = 0;
        random_point(values, sizes);
        if (!reference(e, values, &want))
            continue;
        bool ok = kn_index_eval(c, sizes, values, NVARS, &got) && got == want;
        ok = ok && kn_index_eval(e, sizes, values, NVARS, &raw) && raw == want;
        ok = ok && range.lo <= want && want <= range.hi && plain.lo <= want && want <= plain.hi;
        if (!ok)
            fail_msg("%s\n  canonical %s\n  at %" PRId64 " %" PRId64 " %" PRId64 " gives %" PRId64
                     ", raw %" PRId64 ", want %" PRId64 ", range %" PRId64 " %" PRId64,
                     printed(f, e), printed(f, c), values[0], values[1], values[2], got, raw, want,
                     range.lo, range.hi);
    }
}

static void random_expressions_keep_their_value(void **state)
{
    fixture *f = *state;
    random_state = 1;
    for (int i = 0; i < 6000; i++) {
        const kn_expr *e = random_expr(f, 1 + i % 5, false), *c = canonical(f, e);
        if (!c)
            continue;
        assert_true(c->canonical);
        check_values(f, e, c);
        const kn_expr *again = index_of(f, printed(f, c));
        if (!kn_expr_equal(again, c))
            fail_msg("%s: again %s", printed(f, c), printed(f, again));
    }
}

/* Two polynomials are equal as canonical trees exactly when they are equal as functions: (x + y) *
   z is compared with x*z + z*y, and with a random one. */
static void polynomials_have_one_form(void **state)
{
    fixture *f = *state;
    kn_arena *a = f->arena;
    random_state = 2;
    for (int i = 0; i < 1500; i++) {
        const kn_expr *x = random_expr(f, 2, true), *y = random_expr(f, 2, true);
        const kn_expr *z = random_expr(f, 2, true);
        const kn_expr *l = kn_op2(a, KN_OP_MUL, kn_op2(a, KN_OP_ADD, x, y), z);
        const kn_expr *r =
            kn_op2(a, KN_OP_ADD, kn_op2(a, KN_OP_MUL, z, y), kn_op2(a, KN_OP_MUL, x, z));
        const kn_expr *steps = kn_index_mul(a, kn_index_add(a, y, x), z);
        assert_true(kn_expr_equal(canonical(f, l), canonical(f, r)));
        assert_true(kn_expr_equal(canonical(f, l), steps));
        bool same = kn_expr_equal(canonical(f, x), canonical(f, y));
        kn_size sizes[NVARS] = {{"a", -30, 30}, {"b", -30, 30}, {"c", -30, 30}};
        bool differ = false;
        for (int p = 0; p < 30; p++) {
            int64_t values[NVARS], vx, vy;
            random_point(values, sizes);
            if (reference(x, values, &vx) && reference(y, values, &vy))
                differ = differ || vx != vy;
        }
        assert_int_equal(differ, !same);
    }
}

static void ranges_are_tight_where_it_matters(void **state)
{
    static const struct {
        const char *text;
        int64_t lo, hi;
    } rows[] = {
        {"n", 1, 100},
        {"i", 0, 7},
        {"-i", -7, 0},
        {"8*n + i", 8, 807},
        {"n - i", -6, 100},
        {"n*i", 0, 700},
        {"n / 8", 0, 12},
        {"(i - 3) / 2", -2, 2},
        {"(i - 3) % 2", 0, 1},
        {"i % 100", 0, 7},
        {"n % 8", 0, 7},
        {"n % -8", -7, 0},
        {"100 / n", 1, 100},
        {"i / n", 0, 7},
        {"min(n, 16)", 1, 16},
        {"max(i, 4)", 4, 7},
        {"select(n > 3, i, n)", 0, 100},
        {"abs(i - 4)", 0, 4},
        {"x", INT64_MIN, INT64_MAX},
        {"x % 4 + n", 1, 103},
        {"max(x, 0)", 0, INT64_MAX},
        {"max(x, 0) * 2 + 1", 1, INT64_MAX},
        {"max(x, 0) / 4", 0, INT64_MAX},
        {"0 - max(x, 0)", INT64_MIN, 0},
    };
    fixture *f = *state;
    kn_size sizes[2] = {{"n", 1, 100}, {"i", 0, 7}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        kn_range r = kn_index_range(index_of(f, rows[k].text), sizes, 2);
        if (r.lo != rows[k].lo || r.hi != rows[k].hi)
            fail_msg("%s: %" PRId64 " %" PRId64, rows[k].text, r.lo, r.hi);
    }
}

static void evaluation_is_checked(void **state)
{
    fixture *f = *state;
    kn_size sizes[1] = {{"n", 0, INT64_MAX}};
    int64_t value = INT64_MAX, zero = 0, out;
    assert_false(kn_index_eval(index_of(f, "n + 1"), sizes, &value, 1, &out));
    assert_false(kn_index_eval(index_of(f, "2*n"), sizes, &value, 1, &out));
    assert_false(kn_index_eval(index_of(f, "n + m"), sizes, &zero, 1, &out));
    assert_false(kn_index_eval(index_of(f, "7 / n"), sizes, &zero, 1, &out));
    assert_false(kn_index_eval(index_of(f, "7 % n"), sizes, &zero, 1, &out));
    assert_true(kn_index_eval(index_of(f, "select(n == 0, 3, 7 / n)"), sizes, &zero, 1, &out));
    assert_int_equal(out, 3);
    assert_true(
        kn_index_eval(index_of(f, "select(n != 0 && 7 / n > 1, 1, 2)"), sizes, &zero, 1, &out));
    assert_int_equal(out, 2);
}

/* ---- bounds ---- */

static void grow_deep(void *arg)
{
    const fixture *f = arg;
    const kn_expr *e = kn_var(f->arena, KN_F32, "x");
    for (int i = 0; i < 100000; i++)
        e = kn_op1(f->arena, KN_OP_NEG, e);
}

static void grow_wide(void *arg)
{
    const fixture *f = arg;
    const kn_expr *e = kn_var(f->arena, KN_F32, "x");
    for (int i = 0; i < 100; i++)
        e = kn_op2(f->arena, KN_OP_ADD, e, e);
}

static void grow_terms(void *arg)
{
    const fixture *f = arg;
    const kn_expr *e = kn_index(f->arena, 0);
    for (int i = 0; i < 100000; i++)
        e = kn_index_add(f->arena, e, kn_var(f->arena, KN_INDEX, kn_intern_f(f->ctx, "v%d", i)));
}

static void grow_degree(void *arg)
{
    const fixture *f = arg;
    const kn_expr *e = kn_index(f->arena, 1);
    for (int i = 0; i < 100000; i++)
        e = kn_index_mul(f->arena, e, var(f, "n"));
}

static void growth_is_bounded(void **state)
{
    fixture *f = *state;
    void (*const bodies[])(void *) = {grow_deep, grow_wide, grow_terms, grow_degree};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_int_equal(kn_protect(f->ctx, bodies[i], f), KN_INVALID);
        assert_string_equal(last_message(f->ctx), "expression too large");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(table_names_are_ids),
        KN_TEST(types_follow_the_class),
        KN_TEST(constants_are_of_their_type),
        KN_TEST(equality_is_structural),
        KN_TEST(use_is_by_name),
        KN_TEST(substitution_keeps_indices_canonical),
        KN_TEST(rewriting_is_bottom_up),
        KN_TEST(visiting_starts_at_the_root),
        KN_TEST(integer_folds),
        KN_TEST(float_folds),
        KN_TEST(float_functions),
        KN_TEST(cast_folds),
        KN_TEST(folds_need_constants),
        KN_TEST(index_simplifications),
        KN_TEST(index_builders),
        KN_TEST(index_terms),
        KN_TEST(values_are_simplified_inside),
        KN_TEST(overflow_is_raised),
        KN_TEST(random_expressions_keep_their_value),
        KN_TEST(polynomials_have_one_form),
        KN_TEST(ranges_are_tight_where_it_matters),
        KN_TEST(evaluation_is_checked),
        KN_TEST(growth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
