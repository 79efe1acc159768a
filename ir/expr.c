/* Scalar expressions: the table of operators, builders, comparison, rewriting and printing.

   A node and its arguments are one allocation. Every node knows the depth and size of its tree, and
   no builder exceeds the bounds of expr.h: so the recursions here, and everybody's, need no guard
   against hostile input. Printing puts brackets where parsing needs them and nowhere else: the text
   parses back to the same tree. */
#include "ir/expr_internal.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

/* ---- The table ---- */

#define LOWER_ADD "add"
#define LOWER_SUB "sub"
#define LOWER_MUL "mul"
#define LOWER_DIV "div"
#define LOWER_REM "rem"
#define LOWER_NEG "neg"
#define LOWER_LT "lt"
#define LOWER_LE "le"
#define LOWER_GT "gt"
#define LOWER_GE "ge"
#define LOWER_EQ "eq"
#define LOWER_NE "ne"
#define LOWER_LAND "land"
#define LOWER_LOR "lor"
#define LOWER_LNOT "lnot"
#define LOWER_AND "and"
#define LOWER_XOR "xor"
#define LOWER_OR "or"
#define LOWER_NOT "not"
#define LOWER_SHL "shl"
#define LOWER_SHR "shr"

/* A function's id is its text; an operator's is spelled above. */
#define ID_0(id, text) text
#define ID_2(id, text) LOWER_##id
#define ID_3(id, text) LOWER_##id
#define ID_4(id, text) LOWER_##id
#define ID_5(id, text) LOWER_##id
#define ID_6(id, text) LOWER_##id
#define ID_7(id, text) LOWER_##id
#define ID_8(id, text) LOWER_##id
#define ID_9(id, text) LOWER_##id
#define ID_10(id, text) LOWER_##id
#define ID_11(id, text) LOWER_##id
#define ID_12(id, text) LOWER_##id

static const kn_scalar_info scalars[KN_SCALAR_COUNT] = {
#define SCALAR(id, text, arity, class, prec) \
    {text, ID_##prec(id, text), arity, KN_CLASS_##class, prec},
#include "ir/scalar.def"
#undef SCALAR
};

const kn_scalar_info *kn_scalar_get(kn_scalar op)
{
    assert((unsigned)op < KN_SCALAR_COUNT);
    return &scalars[op];
}

bool kn_scalar_parse(const char *function, kn_scalar *out)
{
    for (int i = 0; i < KN_SCALAR_COUNT; i++) {
        if (scalars[i].precedence == 0 && strcmp(scalars[i].text, function) == 0) {
            *out = (kn_scalar)i;
            return true;
        }
    }
    return false;
}

/* ---- Builders ---- */

kn_expr *kn_expr_make(kn_arena *a, kn_expr_kind kind, kn_dtype type, const kn_expr *const *args,
                      int n)
{
    struct block {
        kn_expr e;
        const kn_expr *args[];
    } *block = kn_alloc(a, sizeof(struct block) + (size_t)n * sizeof(const kn_expr *));
    int depth = 0;
    int64_t size = 1;

    for (int i = 0; i < n; i++) {
        block->args[i] = args[i];
        depth = args[i]->depth > depth ? args[i]->depth : depth;
        size += args[i]->size;
    }
    if (depth >= KN_EXPR_MAX_DEPTH || size > KN_EXPR_MAX_SIZE)
        kn_raise(kn_arena_ctx(a), KN_INVALID, kn_loc_none(), "expression too large");
    block->e.kind = kind;
    block->e.type = type;
    block->e.nargs = n;
    block->e.depth = depth + 1;
    block->e.size = (int)size;
    block->e.args = block->args;
    return &block->e;
}

const kn_expr *kn_int(kn_arena *a, kn_dtype type, int64_t value)
{
    if (type != KN_UNTYPED && kn_dtype_is_float(type))
        return kn_float(a, type, (double)value);
    kn_expr *e = kn_expr_make(a, KN_E_CONST, type, NULL, 0);
    e->i = type == KN_UNTYPED ? value : kn_number_wrap(type, value);
    e->f = type == KN_UNTYPED ? (double)value : 0;
    e->canonical = type == KN_INDEX;
    return e;
}

const kn_expr *kn_float(kn_arena *a, kn_dtype type, double value)
{
    assert(type == KN_UNTYPED || kn_dtype_is_float(type));
    kn_expr *e = kn_expr_make(a, KN_E_CONST, type, NULL, 0);
    e->f = type == KN_UNTYPED ? value : kn_number_round(type, value);
    e->real = true;
    return e;
}

const kn_expr *kn_index(kn_arena *a, int64_t value)
{
    return kn_int(a, KN_INDEX, value);
}

const kn_expr *kn_var(kn_arena *a, kn_dtype type, const char *name)
{
    kn_expr *e = kn_expr_make(a, KN_E_VAR, type, NULL, 0);
    e->name = name;
    e->canonical = type == KN_INDEX;
    return e;
}

const kn_expr *kn_load(kn_arena *a, kn_dtype type, const char *name, const kn_expr *const *subs,
                       int n)
{
    kn_expr *e = kn_expr_make(a, KN_E_LOAD, type, subs, n);
    e->name = name;
    return e;
}

const kn_expr *kn_load_else(kn_arena *a, const char *name, const kn_expr *const *subs, int n,
                            const kn_expr *v)
{
    const kn_expr **args = KN_ARRAY(a, const kn_expr *, n + 1);
    for (int i = 0; i < n; i++)
        args[i] = subs[i];
    args[n] = v;
    kn_expr *e = kn_expr_make(a, KN_E_LOAD, KN_UNTYPED, args, n + 1);
    e->name = name;
    e->guarded = true;
    return e;
}

const kn_expr *kn_op(kn_arena *a, kn_dtype type, kn_scalar op, const kn_expr *const *args, int n)
{
    assert(n == kn_scalar_get(op)->arity);
    kn_expr *e = kn_expr_make(a, KN_E_OP, type, args, n);
    e->op = op;
    if (type == KN_INDEX && op == KN_OP_DIV)
        e->op = KN_OP_FLOORDIV;
    if (type == KN_INDEX && op == KN_OP_REM)
        e->op = KN_OP_MOD;
    return e;
}

/* What the operator accepts. */
static bool operand_ok(kn_scalar op, kn_dtype t)
{
    if (t == KN_UNTYPED)
        return true;
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return t != KN_BOOL;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(t);
    case KN_CLASS_LOGIC: return t == KN_BOOL;
    case KN_CLASS_BITS:
        return kn_dtype_is_integer(t) || (t == KN_BOOL && op != KN_OP_SHL && op != KN_OP_SHR);
    case KN_CLASS_COMPARE:
    case KN_CLASS_SELECT: return true;
    }
    return false;
}

/* Only asserted: the elaborator has checked it. */
static void check_operand(kn_scalar op, kn_dtype t)
{
    bool ok = operand_ok(op, t);
    assert(ok);
    (void)ok;
}

static kn_dtype result_type(kn_scalar op, kn_dtype operand)
{
    kn_scalar_class class = kn_scalar_get(op)->class;
    bool truth = class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC;
    return truth && operand != KN_UNTYPED ? KN_BOOL : operand;
}

const kn_expr *kn_op1(kn_arena *a, kn_scalar op, const kn_expr *x)
{
    check_operand(op, x->type);
    return kn_op(a, result_type(op, x->type), op, &x, 1);
}

/* The type that two operands agree on; untyped when one is. */
static kn_dtype common_type(const kn_expr *x, const kn_expr *y)
{
    assert(x->type == y->type || x->type == KN_UNTYPED || y->type == KN_UNTYPED);
    return x->type == y->type ? x->type : KN_UNTYPED;
}

const kn_expr *kn_op2(kn_arena *a, kn_scalar op, const kn_expr *x, const kn_expr *y)
{
    const kn_expr *args[2] = {x, y};
    kn_dtype operand = common_type(x, y);
    check_operand(op, operand);
    return kn_op(a, result_type(op, operand), op, args, 2);
}

const kn_expr *kn_select(kn_arena *a, const kn_expr *c, const kn_expr *x, const kn_expr *y)
{
    const kn_expr *args[3] = {c, x, y};
    assert(c->type == KN_BOOL || c->type == KN_UNTYPED);
    return kn_op(a, common_type(x, y), KN_OP_SELECT, args, 3);
}

const kn_expr *kn_cast(kn_arena *a, kn_cast_mode mode, kn_dtype type, const kn_expr *x)
{
    kn_expr *e = kn_expr_make(a, KN_E_CAST, type, &x, 1);
    e->mode = mode;
    return e;
}

const kn_expr *kn_cast_named(kn_arena *a, kn_cast_mode mode, const char *type, const kn_expr *x)
{
    kn_expr *e = kn_expr_make(a, KN_E_CAST, KN_UNTYPED, &x, 1);
    e->mode = mode;
    e->name = type;
    return e;
}

static bool same_args(const kn_expr *e, const kn_expr *const *args)
{
    for (int i = 0; i < e->nargs; i++) {
        if (e->args[i] != args[i])
            return false;
    }
    return true;
}

const kn_expr *kn_expr_with(kn_arena *a, const kn_expr *e, kn_dtype type,
                            const kn_expr *const *args)
{
    if (type == e->type && same_args(e, args))
        return e;
    if (e->kind == KN_E_CONST)
        return e->real ? kn_float(a, type, e->f) : kn_int(a, type, e->i);
    if (e->kind == KN_E_VAR)
        return kn_var(a, type, e->name);
    if (e->kind == KN_E_OP)
        return kn_op(a, type, e->op, args, e->nargs);
    kn_expr *r = kn_expr_make(a, e->kind, type, args, e->nargs);
    r->mode = e->mode;
    r->guarded = e->guarded;
    r->name = e->kind == KN_E_CAST && type != KN_UNTYPED ? NULL : e->name;
    return r;
}

const kn_expr *kn_zero(kn_arena *a, kn_dtype type)
{
    return kn_int(a, type, 0);
}

const kn_expr *kn_one(kn_arena *a, kn_dtype type)
{
    return kn_int(a, type, 1);
}

const kn_expr *kn_lowest(kn_arena *a, kn_dtype type)
{
    if (kn_dtype_is_float(type))
        return kn_float(a, type, -HUGE_VAL);
    return kn_int(a, type, kn_dtype_min(type));
}

const kn_expr *kn_highest(kn_arena *a, kn_dtype type)
{
    if (kn_dtype_is_float(type))
        return kn_float(a, type, HUGE_VAL);
    return kn_int(a, type, (int64_t)kn_dtype_max(type));
}

/* ---- Comparison ---- */

#define ORDER(x, y) (((x) > (y)) - ((x) < (y)))

static int compare_floats(double x, double y)
{
    int64_t bx, by;
    if (isnan(x) || isnan(y))
        return !!isnan(x) - !!isnan(y);
    memcpy(&bx, &x, sizeof bx);
    memcpy(&by, &y, sizeof by);
    return x < y ? -1 : x > y ? 1 : ORDER(by, bx); /* the bits of -0.0 are a negative number */
}

static int compare_names(const char *x, const char *y)
{
    if (x == y)
        return 0;
    if (!x || !y)
        return !x ? -1 : 1;
    return strcmp(x, y);
}

static int compare_heads(const kn_expr *x, const kn_expr *y)
{
    int c = ORDER(x->kind, y->kind);
    if (c == 0 && x->kind != KN_E_VAR)
        c = ORDER(x->size, y->size);
    if (c == 0 && x->kind == KN_E_OP)
        c = ORDER(x->op, y->op);
    if (c == 0 && x->kind == KN_E_CAST)
        c = ORDER(x->mode, y->mode);
    if (c == 0)
        c = compare_names(x->name, y->name);
    if (c == 0)
        c = ORDER(x->type, y->type);
    if (c == 0)
        c = ORDER(x->nargs, y->nargs);
    return c;
}

static int compare_constants(const kn_expr *x, const kn_expr *y)
{
    int c = ORDER(x->real, y->real);
    if (c == 0 && x->real)
        return compare_floats(x->f, y->f);
    return c ? c : ORDER(x->i, y->i);
}

int kn_expr_compare(const kn_expr *x, const kn_expr *y)
{
    if (x == y)
        return 0;
    int c = compare_heads(x, y);
    if (c == 0 && x->kind == KN_E_CONST)
        return compare_constants(x, y);
    if (c == 0 && x->guarded != y->guarded)
        return x->guarded ? 1 : -1;
    for (int i = 0; c == 0 && i < x->nargs; i++)
        c = kn_expr_compare(x->args[i], y->args[i]);
    return c;
}

bool kn_expr_equal(const kn_expr *x, const kn_expr *y)
{
    return kn_expr_compare(x, y) == 0;
}

bool kn_expr_uses(const kn_expr *e, const char *name)
{
    if ((e->kind == KN_E_VAR || e->kind == KN_E_LOAD) && kn_same_name(e->name, name))
        return true;
    for (int i = 0; i < e->nargs; i++) {
        if (kn_expr_uses(e->args[i], name))
            return true;
    }
    return false;
}

bool kn_expr_has_load(const kn_expr *e)
{
    bool has = e->kind == KN_E_LOAD;
    for (int i = 0; !has && i < e->nargs; i++)
        has = kn_expr_has_load(e->args[i]);
    return has;
}

/* ---- Rewriting ---- */

void kn_expr_visit(const kn_expr *e, void (*fn)(void *env, const kn_expr *e), void *env)
{
    fn(env, e);
    for (int i = 0; i < e->nargs; i++)
        kn_expr_visit(e->args[i], fn, env);
}

typedef struct {
    kn_arena *arena;
    kn_expr_fn fn;
    void *env;
} rewriter;

static bool is_ring_op(const kn_expr *e)
{
    return e->kind == KN_E_OP && e->type == KN_INDEX &&
           (e->op == KN_OP_ADD || e->op == KN_OP_SUB || e->op == KN_OP_MUL || e->op == KN_OP_NEG);
}

/* Sums and products below a sum or product (`inner`) wait for it to be made canonical: once, not at
 * each node. */
static const kn_expr *rewrite(const rewriter *rw, const kn_expr *e, bool inner)
{
    enum { FEW = 4 };
    const kn_expr *few[FEW], **args = few;
    const kn_expr *r = e;
    bool ring = is_ring_op(e);

    if (e->nargs > 0) {
        if (e->nargs > FEW)
            args = KN_ARRAY(rw->arena, const kn_expr *, e->nargs);
        for (int i = 0; i < e->nargs; i++)
            args[i] = rewrite(rw, e->args[i], ring);
        r = kn_expr_with(rw->arena, e, e->type, args);
    }
    r = rw->fn(rw->env, r);
    if (r->type != KN_INDEX || r->canonical || (inner && is_ring_op(r)))
        return r;
    return kn_index_simplify(rw->arena, r);
}

const kn_expr *kn_expr_rewrite(kn_arena *a, const kn_expr *e, kn_expr_fn fn, void *env)
{
    rewriter rw = {a, fn, env};
    return rewrite(&rw, e, false);
}

typedef struct {
    const kn_binding *b;
    int n;
} bindings;

static const kn_expr *replace_var(void *env, const kn_expr *e)
{
    const bindings *s = env;
    if (e->kind != KN_E_VAR)
        return e;
    for (int i = 0; i < s->n; i++) {
        if (kn_same_name(s->b[i].name, e->name))
            return s->b[i].value;
    }
    return e;
}

const kn_expr *kn_expr_subst(kn_arena *a, const kn_expr *e, const kn_binding *b, int n)
{
    bindings s = {b, n};
    return kn_expr_rewrite(a, e, replace_var, &s);
}

/* ---- Printing ---- */

enum { PREC_UNARY = 12, PREC_PRIMARY = 13 };

static bool is_logic_group(kn_scalar op)
{
    return op == KN_OP_LAND || op == KN_OP_LOR || op == KN_OP_AND || op == KN_OP_OR ||
           op == KN_OP_XOR;
}

/* The operator as it is written: / and % for floor on indices. */
static kn_scalar written_op(const kn_expr *e)
{
    if (e->type == KN_INDEX && e->op == KN_OP_FLOORDIV)
        return KN_OP_DIV;
    if (e->type == KN_INDEX && e->op == KN_OP_MOD)
        return KN_OP_REM;
    return e->op;
}

static int precedence(const kn_expr *e)
{
    int p = e->kind == KN_E_OP ? kn_scalar_get(written_op(e))->precedence : 0;
    return p ? p : PREC_PRIMARY;
}

static bool is_negative(const kn_expr *e)
{
    return e->real ? !isnan(e->f) && signbit(e->f) : e->type != KN_U64 && e->i < 0;
}

static void print_const(kn_str *out, const kn_expr *e, bool typed)
{
    if (e->type == KN_BOOL) {
        kn_put(out, e->i ? "true" : "false");
        return;
    }
    if (e->real)
        kn_put_float(out, e->f, e->type != KN_F64 && e->type != KN_UNTYPED);
    else if (e->type == KN_U64)
        kn_putf(out, "%" PRIu64, (uint64_t)e->i);
    else
        kn_putf(out, "%" PRId64, e->i);
    if (typed && e->type != KN_UNTYPED && e->type != KN_F32 && e->type != KN_INDEX)
        kn_putf(out, ":%s", kn_dtype_name(e->type));
}

static void print_within(kn_str *out, const kn_expr *e, bool typed, bool brackets)
{
    kn_put(out, brackets ? "(" : "");
    kn_expr_print(out, e, typed);
    kn_put(out, brackets ? ")" : "");
}

static void print_list(kn_str *out, const kn_expr *const *args, int n, bool typed)
{
    for (int i = 0; i < n; i++) {
        kn_put(out, i ? ", " : "");
        kn_expr_print(out, args[i], typed);
    }
}

/* An operand of a unary operator; - before a plain literal would make it a negative literal. */
static void print_unary(kn_str *out, const kn_expr *e, bool typed)
{
    const kn_expr *x = e->args[0];
    bool literal = x->kind == KN_E_CONST && x->type != KN_BOOL && !is_negative(x);
    kn_put(out, kn_scalar_get(e->op)->text);
    print_within(out, x, typed, precedence(x) < PREC_UNARY || (literal && e->op == KN_OP_NEG));
}

static bool mixes(kn_scalar parent, const kn_expr *child)
{
    return child->kind == KN_E_OP && child->op != parent && is_logic_group(parent) &&
           is_logic_group(child->op);
}

static void print_binary(kn_str *out, const kn_expr *e, bool typed)
{
    kn_scalar op = written_op(e);
    int p = kn_scalar_get(op)->precedence;
    const kn_expr *x = e->args[0], *y = e->args[1];
    bool tight = op == KN_OP_MUL && (e->type == KN_INDEX || (x->kind == KN_E_CONST && !x->real));

    print_within(out, x, typed, precedence(x) < p || mixes(op, x));
    kn_putf(out, tight ? "%s" : " %s ", kn_scalar_get(op)->text);
    print_within(out, y, typed, precedence(y) <= p || mixes(op, y));
}

static void print_op(kn_str *out, const kn_expr *e, bool typed)
{
    const kn_scalar_info *info = kn_scalar_get(written_op(e));
    if (info->precedence == 0) {
        kn_putf(out, "%s(", info->text);
        print_list(out, e->args, e->nargs, typed);
        kn_put(out, ")");
    } else if (info->arity == 1) {
        print_unary(out, e, typed);
    } else {
        print_binary(out, e, typed);
    }
}

static void print_load(kn_str *out, const kn_expr *e, bool typed)
{
    int n = e->guarded ? e->nargs - 1 : e->nargs;
    kn_putf(out, "%s[", e->name);
    print_list(out, e->args, n, typed);
    kn_put(out, "]");
    if (e->guarded) {
        kn_put(out, " else ");
        print_within(out, e->args[n], typed, precedence(e->args[n]) < PREC_UNARY);
    }
}

static void print_cast(kn_str *out, const kn_expr *e, bool typed)
{
    static const char *const names[] = {"cast", "sat", "bitcast"};
    kn_putf(out, "%s(%s, ", names[e->mode], e->name ? e->name : kn_dtype_name(e->type));
    kn_expr_print(out, e->args[0], typed);
    kn_put(out, ")");
}

void kn_expr_print(kn_str *out, const kn_expr *e, bool typed)
{
    switch (e->kind) {
    case KN_E_CONST: print_const(out, e, typed); break;
    case KN_E_VAR: kn_put(out, e->name); break;
    case KN_E_LOAD: print_load(out, e, typed); break;
    case KN_E_OP: print_op(out, e, typed); break;
    case KN_E_CAST: print_cast(out, e, typed); break;
    }
}
