/* Expressions to the interpreter's code. Index expressions without loads go by their canonical
   form, a sum of products: its terms are added up from the outermost region inwards, so that what
   is invariant in a loop is computed before it. All other operators are taken as they stand.
   Nothing jumps: both sides of a select, of && and || are computed, since operators are total, but
   the loads of a side that may not count are made under its condition. */
#include "ir/interp_internal.h"

#include <assert.h>

#include "support/half.h"

/* ---- Names ---- */

const kn_bound *kn_bound_find(const kn_compiler *c, const char *name)
{
    for (int i = c->scope.n - 1; i >= 0; i--) {
        if (c->scope.at[i].name == name || strcmp(c->scope.at[i].name, name) == 0)
            return &c->scope.at[i];
    }
    assert(0 && "verified");
    kn_raise(c->ctx, KN_INTERNAL, c->loc, "unknown name `%s`", name);
}

static const kn_expr *write_out(void *env, const kn_expr *e)
{
    const kn_compiler *c = env;
    if (e->kind != KN_E_VAR || e->type != KN_INDEX)
        return e;
    const kn_bound *b = kn_bound_find(c, e->name);
    return b->value ? b->value : e;
}

const kn_expr *kn_written_out(kn_compiler *c, const kn_expr *e)
{
    return kn_expr_rewrite(c->arena, e, write_out, c);
}

const kn_expr *kn_symbolic(kn_compiler *c, const kn_expr *e)
{
    return kn_index_simplify_at(c->arena, kn_written_out(c, e), c->loc);
}

const kn_expr *kn_symbolic_now(kn_compiler *c, const kn_expr *e)
{
    if (!kn_expr_has_load(e))
        return kn_symbolic(c, e);
    kn_bound b = {.name = kn_intern_f(c->ctx, "#%d", c->nfresh++), .reg = kn_compile_expr(c, e)};
    kn_push(c->arena, &c->scope, b);
    return kn_var(c->arena, KN_INDEX, b.name);
}

/* ---- Sums ---- */

static int node(kn_compiler *c, const kn_expr *e);

/* A product of atoms, the outermost known first. */
static int product(kn_compiler *c, const kn_expr *e)
{
    if (e->kind != KN_E_OP || e->op != KN_OP_MUL || e->type != KN_INDEX)
        return e->kind == KN_E_CONST ? kn_reg_int(c, e->i) : node(c, e);
    int x = product(c, e->args[0]), y = product(c, e->args[1]);
    return kn_value(c, KN_I_INDEX_MUL, x, y, -1);
}

typedef struct {
    int reg, depth;
    int64_t coef;
} term;

/* By depth, stable: terms of one depth stay in canonical order. */
static void sort_terms(term *terms, int n)
{
    for (int i = 1; i < n; i++) {
        term t = terms[i];
        int k = i;
        for (; k > 0 && terms[k - 1].depth > t.depth; k--)
            terms[k] = terms[k - 1];
        terms[k] = t;
    }
}

static int add_term(kn_compiler *c, int sum, const term *t)
{
    if (t->coef == -1)
        return kn_value(c, KN_I_INDEX_SUB, sum < 0 ? kn_reg_int(c, 0) : sum, t->reg, -1);
    int x = t->reg;
    if (t->coef != 1)
        x = kn_value(c, KN_I_INDEX_MUL, x, kn_reg_int(c, t->coef), -1);
    return sum < 0 ? x : kn_value(c, KN_I_INDEX_ADD, sum, x, -1);
}

/* constant + the sum of n terms, from the outermost region inwards. */
static int sum_of(kn_compiler *c, int64_t constant, const int64_t *coefs,
                  const kn_expr *const *exprs, int n)
{
    term *terms = KN_ARRAY(c->arena, term, n);
    if (n == 1 && constant == 0 && coefs[0] == 1)
        return product(c, exprs[0]);
    for (int i = 0; i < n; i++) {
        int reg = product(c, exprs[i]);
        terms[i] = (term){reg, c->depths.at[reg], coefs[i]};
    }
    sort_terms(terms, n);
    int sum = constant || n == 0 ? kn_reg_int(c, constant) : -1;
    for (int i = 0; i < n; i++)
        sum = add_term(c, sum, &terms[i]);
    return sum;
}

int kn_compile_symbolic(kn_compiler *c, const kn_expr *e)
{
    enum { FEW = 8 };
    int64_t constant = 0, few_coefs[FEW], *coefs = few_coefs;
    const kn_expr *few_exprs[FEW], **exprs = few_exprs;
    if (e->kind == KN_E_CONST)
        return kn_reg_int(c, e->i);
    if (e->kind == KN_E_VAR)
        return node(c, e);
    int n = kn_index_terms(c->arena, e, &constant, coefs, exprs, FEW);
    if (n < 0) {
        coefs = KN_ARRAY(c->arena, int64_t, KN_EXPR_MAX_TERMS);
        exprs = KN_ARRAY(c->arena, const kn_expr *, KN_EXPR_MAX_TERMS);
        n = kn_index_terms(c->arena, e, &constant, coefs, exprs, KN_EXPR_MAX_TERMS);
    }
    return sum_of(c, constant, coefs, exprs, n);
}

/* ---- Leaves ---- */

static int literal(kn_compiler *c, const kn_expr *e)
{
    kn_slot s = {.u = 0};
    switch (e->type) {
    case KN_F32: s.f = (float)e->f; break;
    case KN_F64: s.d = e->f; break;
    case KN_F16: s.u = kn_f64_to_f16(e->f); break;
    case KN_BF16: s.u = kn_f32_to_bf16((float)e->f); break;
    default: s.i = e->i; break;
    }
    return kn_reg_const(c, s);
}

static int variable(kn_compiler *c, const kn_expr *e)
{
    const kn_bound *b = kn_bound_find(c, e->name);
    return b->value ? kn_compile_symbolic(c, b->value) : b->reg;
}

static int load(kn_compiler *c, const kn_expr *e)
{
    kn_bound b = *kn_bound_find(c, e->name);
    bool always;
    int element = kn_compile_element(c, &b, e->args, &always);
    kn_compile_read(c, &b, element);
    if (always)
        return kn_value_loaded(c, KN_I_LOAD + (int)e->type, b.reg, element, -1);
    return kn_value_loaded(c, KN_I_LOAD_IF + (int)e->type, b.reg, element, c->guard);
}

/* ---- Casts ---- */

static int convert(kn_compiler *c, int opcode, int x)
{
    return kn_value(c, opcode, x, -1, -1);
}

static int to_f32(kn_compiler *c, kn_dtype from, int x)
{
    switch (from) {
    case KN_F32: return x;
    case KN_F16: return convert(c, KN_I_F16_F32, x);
    case KN_BF16: return convert(c, KN_I_BF16_F32, x);
    case KN_F64: return convert(c, KN_I_F64_F32, x);
    case KN_U64: return convert(c, KN_I_U64_F32, x);
    default: return convert(c, KN_I_INT_F32, x);
    }
}

static int to_f64(kn_compiler *c, kn_dtype from, int x)
{
    switch (from) {
    case KN_F64: return x;
    case KN_F32:
    case KN_F16:
    case KN_BF16: return convert(c, KN_I_F32_F64, to_f32(c, from, x));
    case KN_U64: return convert(c, KN_I_U64_F64, x);
    default: return convert(c, KN_I_INT_F64, x);
    }
}

static int to_float(kn_compiler *c, kn_dtype from, kn_dtype to, int x)
{
    if (to == KN_F64)
        return to_f64(c, from, x);
    if (to == KN_F16 && from == KN_F64)
        return convert(c, KN_I_F64_F16, x);
    x = to_f32(c, from, x);
    if (to == KN_F16)
        return convert(c, KN_I_F32_F16, x);
    return to == KN_BF16 ? convert(c, KN_I_F32_BF16, x) : x;
}

/* Every value of `from` is one of `to`. */
static bool holds_all(kn_dtype to, kn_dtype from)
{
    return kn_dtype_min(to) <= kn_dtype_min(from) && kn_dtype_max(to) >= kn_dtype_max(from);
}

static int to_integer(kn_compiler *c, kn_cast_mode mode, kn_dtype from, kn_dtype to, int x)
{
    if (kn_dtype_is_float(from))
        return convert(c, KN_I_F64_INT + (int)to, to_f64(c, from, x));
    if (holds_all(to, from))
        return x;
    if (mode == KN_CAST_CAST)
        return convert(c, KN_I_WRAP + (int)to, x);
    return convert(c, (from == KN_U64 ? KN_I_U64_SAT : KN_I_SAT) + (int)to, x);
}

static int to_bool(kn_compiler *c, kn_dtype from, int x)
{
    if (kn_dtype_is_float(from))
        return convert(c, KN_I_F64_BOOL, to_f64(c, from, x));
    return convert(c, KN_I_INT_BOOL, x);
}

/* f16 and bf16 stand as their bits already. */
static int bits_as(kn_compiler *c, kn_dtype from, kn_dtype to, int x)
{
    if (from == KN_F32 || from == KN_F64)
        x = convert(c, from == KN_F32 ? KN_I_F32_BITS : KN_I_F64_BITS, x);
    if (to == KN_F32 || to == KN_F64)
        return convert(c, to == KN_F32 ? KN_I_BITS_F32 : KN_I_BITS_F64, x);
    bool halves = to == KN_F16 || to == KN_BF16;
    return convert(c, KN_I_WRAP + (int)(halves ? KN_U16 : to), x);
}

static int cast(kn_compiler *c, const kn_expr *e)
{
    kn_dtype from = e->args[0]->type, to = e->type;
    int x = kn_compile_expr(c, e->args[0]);
    if (from == to)
        return x;
    if (e->mode == KN_CAST_BITCAST)
        return bits_as(c, from, to, x);
    if (kn_dtype_is_float(to))
        return to_float(c, from, to, x);
    return to == KN_BOOL ? to_bool(c, from, x) : to_integer(c, e->mode, from, to, x);
}

/* ---- Operators ---- */

static int boolean(kn_compiler *c, kn_scalar op, int x, int y)
{
    return kn_value(c, KN_I_SCALAR + (int)op * KN_DTYPE_COUNT + KN_BOOL, x, y, -1);
}

/* What counts only when the register `cond`, the value of `test`, is true (or not): its loads
 * happen only then. */
static int under(kn_compiler *c, const kn_expr *test, int cond, bool holds, const kn_expr *e)
{
    if (!kn_expr_has_load(e))
        return kn_compile_expr(c, e);
    kn_known_mark mark = kn_known_here(&c->known);
    int guard = c->guard, sure = c->sure;
    if (guard < 0)
        c->sure = c->known.facts.n;
    kn_known_assume(&c->known, kn_written_out(c, test), holds);
    cond = holds ? cond : boolean(c, KN_OP_LNOT, cond, -1);
    c->guard = guard < 0 ? cond : boolean(c, KN_OP_LAND, guard, cond);
    int reg = kn_compile_expr(c, e);
    c->guard = guard;
    c->sure = sure;
    kn_known_back(&c->known, mark);
    return reg;
}

static int select(kn_compiler *c, const kn_expr *e)
{
    int cond = kn_compile_expr(c, e->args[0]);
    int x = under(c, e->args[0], cond, true, e->args[1]);
    int y = under(c, e->args[0], cond, false, e->args[2]);
    return kn_value(c, KN_I_SELECT, cond, x, y);
}

static int logic(kn_compiler *c, const kn_expr *e)
{
    int x = kn_compile_expr(c, e->args[0]);
    return boolean(c, e->op, x, under(c, e->args[0], x, e->op == KN_OP_LAND, e->args[1]));
}

static int operator(kn_compiler *c, const kn_expr *e)
{
    int regs[3] = {-1, -1, -1};
    if (e->op == KN_OP_SELECT)
        return select(c, e);
    if (e->op == KN_OP_LAND || e->op == KN_OP_LOR)
        return logic(c, e);
    for (int i = 0; i < e->nargs; i++)
        regs[i] = kn_compile_expr(c, e->args[i]);
    int opcode = KN_I_SCALAR + (int)e->op * KN_DTYPE_COUNT + (int)e->args[0]->type;
    return kn_value(c, opcode, regs[0], regs[1], regs[2]);
}

static int node(kn_compiler *c, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST: return literal(c, e);
    case KN_E_VAR: return variable(c, e);
    case KN_E_LOAD: return load(c, e);
    case KN_E_CAST: return cast(c, e);
    case KN_E_OP: return operator(c, e);
    }
    return 0;
}

int kn_compile_expr(kn_compiler *c, const kn_expr *e)
{
    if (e->type == KN_INDEX && !kn_expr_has_load(e))
        return kn_compile_symbolic(c, kn_symbolic(c, e));
    return node(c, e);
}
