/* Expressions in LLVM. An instruction where it means the same as the operator, as in C: arithmetic
   and comparisons of f32 and f64, and of integers of 8 bits and more; a call of the C library for
   what it computes; all else is a call of a function of npu.h, whose bitcode is linked in and
   inlined. Lazy operators branch when a side reads memory or is expensive. */
#include <llvm-c/Core.h>

#include "codegen/llvm_internal.h"
#include "support/half.h"

enum { MAX_EAGER = 24 }; /* nodes that are evaluated though they may not be needed */

static LLVMValueRef put(ll_emitter *l, const kn_expr *e);

/* ---- Types ---- */

static bool is_plain_float(kn_dtype type)
{
    return type == KN_F32 || type == KN_F64;
}

static bool is_half(kn_dtype type)
{
    return type == KN_F16 || type == KN_BF16;
}

/* An integer that LLVM has a type of the same width for. */
static bool is_plain_integer(kn_dtype type)
{
    return kn_dtype_is_integer(type) && !kn_cg_is_packed(type);
}

LLVMTypeRef kn_ll_element_type(const ll_emitter *l, kn_dtype type)
{
    if (type == KN_F32)
        return LLVMFloatTypeInContext(l->context);
    if (type == KN_F64)
        return LLVMDoubleTypeInContext(l->context);
    int bits = kn_dtype_bits(type);
    return LLVMIntTypeInContext(l->context, bits < 8 ? 8 : (unsigned)bits);
}

LLVMTypeRef kn_ll_value_type(const ll_emitter *l, kn_dtype type)
{
    return type == KN_BOOL ? LLVMInt1TypeInContext(l->context) : kn_ll_element_type(l, type);
}

LLVMValueRef kn_ll_const_i64(const ll_emitter *l, int64_t value)
{
    return LLVMConstInt(kn_ll_i64(l), (unsigned long long)value, true);
}

static LLVMValueRef put_const(const ll_emitter *l, const kn_expr *e)
{
    LLVMTypeRef type = kn_ll_value_type(l, e->type);
    if (is_plain_float(e->type))
        return LLVMConstReal(type, e->f);
    if (e->type == KN_F16)
        return LLVMConstInt(type, kn_f64_to_f16(e->f), false);
    if (e->type == KN_BF16)
        return LLVMConstInt(type, kn_f32_to_bf16((float)e->f), false);
    return LLVMConstInt(type, (unsigned long long)e->i, kn_dtype_is_signed(e->type));
}

/* ---- Calls ---- */

void kn_ll_attribute(const ll_emitter *l, LLVMValueRef fn, unsigned place, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(fn, place, LLVMCreateEnumAttribute(l->context, kind, 0));
}

/* The function of a name, declared by what it is called with. */
static LLVMValueRef declare(const ll_emitter *l, const char *name, LLVMTypeRef result,
                            LLVMValueRef *args, int n)
{
    LLVMValueRef fn = LLVMGetNamedFunction(l->module, name);
    if (fn)
        return fn;
    LLVMTypeRef types[3];
    for (int i = 0; i < n; i++)
        types[i] = LLVMTypeOf(args[i]);
    return LLVMAddFunction(l->module, name, LLVMFunctionType(result, types, (unsigned)n, false));
}

static LLVMValueRef call(const ll_emitter *l, const char *name, LLVMTypeRef result,
                         LLVMValueRef *args, int n)
{
    LLVMValueRef fn = declare(l, name, result, args, n);
    return LLVMBuildCall2(l->b, LLVMGlobalGetValueType(fn), fn, args, (unsigned)n, "");
}

/* Of the C library, as it computes it: LLVM must not put something like it in its place. */
static LLVMValueRef call_libm(const ll_emitter *l, const char *id, bool single, LLVMValueRef *args,
                              int n)
{
    static const char *const pure[] = {"nounwind", "willreturn", "nofree",
                                       "nosync",   "nocallback", "memory"};
    LLVMTypeRef result = LLVMTypeOf(args[0]);
    const char *name = kn_format(l->arena, "%s%s", id, single ? "f" : "");
    bool is_new = !LLVMGetNamedFunction(l->module, name);
    LLVMValueRef made = call(l, name, result, args, n);
    LLVMValueRef fn = LLVMGetCalledValue(made);
    for (size_t i = 0; is_new && i < sizeof pure / sizeof *pure; i++)
        kn_ll_attribute(l, fn, (unsigned)LLVMAttributeFunctionIndex, pure[i]);
    unsigned kind = LLVMGetEnumAttributeKindForName("nobuiltin", 9);
    LLVMAddCallSiteAttribute(made, (unsigned)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(l->context, kind, 0));
    return made;
}

/* ---- Operators ---- */

/* Computed by a function of the C library of the operator's name. */
static bool is_libm(kn_scalar op, kn_dtype type)
{
    switch (op) {
    case KN_OP_SQRT:
    case KN_OP_RSQRT:
    case KN_OP_FLOOR:
    case KN_OP_CEIL:
    case KN_OP_ROUND: return false;
    case KN_OP_POW: return kn_dtype_is_float(type);
    default: return kn_scalar_get(op)->class == KN_CLASS_FLOAT;
    }
}

static LLVMValueRef convert(const ll_emitter *l, const char *how, kn_dtype half, LLVMTypeRef to,
                            LLVMValueRef x)
{
    return call(l, kn_format(l->arena, "npu_%s_%s", how, kn_dtype_name(half)), to, &x, 1);
}

static LLVMValueRef put_libm(const ll_emitter *l, kn_scalar op, kn_dtype type, LLVMValueRef *args,
                             int n)
{
    const char *id = kn_scalar_get(op)->id;
    if (!is_half(type))
        return call_libm(l, id, type == KN_F32, args, n);
    LLVMValueRef wide[2];
    for (int i = 0; i < n; i++)
        wide[i] = convert(l, "widen", type, LLVMFloatTypeInContext(l->context), args[i]);
    LLVMValueRef r = call_libm(l, id, true, wide, n);
    return convert(l, "narrow", type, kn_ll_value_type(l, type), r);
}

static LLVMValueRef put_float_op(const ll_emitter *l, kn_scalar op, LLVMValueRef *x)
{
    switch (op) {
    case KN_OP_ADD: return LLVMBuildFAdd(l->b, x[0], x[1], "");
    case KN_OP_SUB: return LLVMBuildFSub(l->b, x[0], x[1], "");
    case KN_OP_MUL: return LLVMBuildFMul(l->b, x[0], x[1], "");
    case KN_OP_DIV: return LLVMBuildFDiv(l->b, x[0], x[1], "");
    case KN_OP_NEG: return LLVMBuildFNeg(l->b, x[0], "");
    case KN_OP_LT: return LLVMBuildFCmp(l->b, LLVMRealOLT, x[0], x[1], "");
    case KN_OP_LE: return LLVMBuildFCmp(l->b, LLVMRealOLE, x[0], x[1], "");
    case KN_OP_GT: return LLVMBuildFCmp(l->b, LLVMRealOGT, x[0], x[1], "");
    case KN_OP_GE: return LLVMBuildFCmp(l->b, LLVMRealOGE, x[0], x[1], "");
    case KN_OP_EQ: return LLVMBuildFCmp(l->b, LLVMRealOEQ, x[0], x[1], "");
    case KN_OP_NE: return LLVMBuildFCmp(l->b, LLVMRealUNE, x[0], x[1], "");
    default: return NULL;
    }
}

static LLVMValueRef put_integer_op(const ll_emitter *l, kn_scalar op, LLVMValueRef *x)
{
    switch (op) {
    case KN_OP_ADD: return LLVMBuildAdd(l->b, x[0], x[1], "");
    case KN_OP_SUB: return LLVMBuildSub(l->b, x[0], x[1], "");
    case KN_OP_MUL: return LLVMBuildMul(l->b, x[0], x[1], "");
    case KN_OP_NEG: return LLVMBuildNeg(l->b, x[0], "");
    default: return NULL;
    }
}

static LLVMValueRef put_bits(const ll_emitter *l, kn_scalar op, LLVMValueRef *x)
{
    switch (op) {
    case KN_OP_LAND:
    case KN_OP_AND: return LLVMBuildAnd(l->b, x[0], x[1], "");
    case KN_OP_LOR:
    case KN_OP_OR: return LLVMBuildOr(l->b, x[0], x[1], "");
    case KN_OP_XOR: return LLVMBuildXor(l->b, x[0], x[1], "");
    case KN_OP_LNOT:
    case KN_OP_NOT: return LLVMBuildNot(l->b, x[0], "");
    default: return NULL;
    }
}

/* Integers of all widths and bool. */
static LLVMValueRef put_comparison(const ll_emitter *l, kn_scalar op, kn_dtype type,
                                   LLVMValueRef *x)
{
    bool s = kn_dtype_is_signed(type);
    switch (op) {
    case KN_OP_LT: return LLVMBuildICmp(l->b, s ? LLVMIntSLT : LLVMIntULT, x[0], x[1], "");
    case KN_OP_LE: return LLVMBuildICmp(l->b, s ? LLVMIntSLE : LLVMIntULE, x[0], x[1], "");
    case KN_OP_GT: return LLVMBuildICmp(l->b, s ? LLVMIntSGT : LLVMIntUGT, x[0], x[1], "");
    case KN_OP_GE: return LLVMBuildICmp(l->b, s ? LLVMIntSGE : LLVMIntUGE, x[0], x[1], "");
    case KN_OP_EQ: return LLVMBuildICmp(l->b, LLVMIntEQ, x[0], x[1], "");
    case KN_OP_NE: return LLVMBuildICmp(l->b, LLVMIntNE, x[0], x[1], "");
    default: return NULL;
    }
}

/* One instruction, or NULL where there is none. */
static LLVMValueRef put_instruction(const ll_emitter *l, kn_scalar op, kn_dtype type,
                                    LLVMValueRef *x)
{
    if (is_plain_float(type))
        return put_float_op(l, op, x);
    LLVMValueRef r = is_half(type) ? NULL : put_comparison(l, op, type, x);
    if (!r && is_plain_integer(type))
        r = put_integer_op(l, op, x);
    if (!r && (is_plain_integer(type) || type == KN_BOOL))
        r = put_bits(l, op, x);
    return r;
}

LLVMValueRef kn_ll_op(ll_emitter *l, kn_scalar op, kn_dtype type, LLVMValueRef *args, int n)
{
    LLVMValueRef r = put_instruction(l, op, type, args);
    if (r)
        return r;
    if (is_libm(op, type))
        return put_libm(l, op, type, args, n);
    bool truth = kn_scalar_get(op)->class == KN_CLASS_COMPARE;
    const char *name = kn_format(l->arena, "npu_%s_%s", kn_scalar_get(op)->id, kn_dtype_name(type));
    return call(l, name, kn_ll_value_type(l, truth ? KN_BOOL : type), args, n);
}

/* Index arithmetic that stays in 64 bits, and division of what is not negative by what is positive.
 */
static LLVMValueRef put_index_op(const ll_emitter *l, const kn_expr *e, LLVMValueRef *x)
{
    switch (e->op) {
    case KN_OP_ADD:
    case KN_OP_SUB:
    case KN_OP_MUL:
    case KN_OP_NEG:
        if (!kn_cg_is_finite(kn_cg_range(&l->facts, e)))
            return NULL;
        return e->op == KN_OP_ADD   ? LLVMBuildNSWAdd(l->b, x[0], x[1], "")
               : e->op == KN_OP_SUB ? LLVMBuildNSWSub(l->b, x[0], x[1], "")
               : e->op == KN_OP_MUL ? LLVMBuildNSWMul(l->b, x[0], x[1], "")
                                    : LLVMBuildNSWNeg(l->b, x[0], "");
    case KN_OP_FLOORDIV:
    case KN_OP_MOD:
        if (kn_cg_range(&l->facts, e->args[0]).lo < 0 || kn_cg_range(&l->facts, e->args[1]).lo <= 0)
            return NULL;
        return e->op == KN_OP_MOD ? LLVMBuildURem(l->b, x[0], x[1], "")
                                  : LLVMBuildUDiv(l->b, x[0], x[1], "");
    default: return NULL;
    }
}

/* ---- Lazy operators ---- */

static bool is_harmless(const kn_expr *e)
{
    bool harmless = e->kind != KN_E_LOAD && !(e->kind == KN_E_OP && is_libm(e->op, e->type));
    for (int i = 0; harmless && i < e->nargs; i++)
        harmless = is_harmless(e->args[i]);
    return harmless;
}

static bool may_be_eager(const kn_expr *e)
{
    return e->size <= MAX_EAGER && is_harmless(e);
}

/* cond ? x : y, of which only one is evaluated. NULL stands for the condition's own value. */
static LLVMValueRef put_branch(ll_emitter *l, LLVMValueRef cond, const kn_expr *x, const kn_expr *y)
{
    const kn_expr *sides[2] = {x, y};
    LLVMValueRef values[2] = {cond, cond};
    LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), ends[2] = {from, from};
    LLVMBasicBlockRef starts[2], join = NULL;
    for (int i = 0; i < 2; i++)
        starts[i] = sides[i] ? kn_ll_block(l, i ? "otherwise" : "when") : NULL;
    join = kn_ll_block(l, "join");
    LLVMBuildCondBr(l->b, cond, x ? starts[0] : join, y ? starts[1] : join);
    for (int i = 0; i < 2; i++) {
        if (!sides[i])
            continue;
        LLVMPositionBuilderAtEnd(l->b, starts[i]);
        values[i] = put(l, sides[i]);
        ends[i] = LLVMGetInsertBlock(l->b);
        LLVMBuildBr(l->b, join);
    }
    LLVMPositionBuilderAtEnd(l->b, join);
    LLVMValueRef phi = LLVMBuildPhi(l->b, LLVMTypeOf(values[x ? 0 : 1]), "");
    LLVMAddIncoming(phi, values, ends, 2);
    return phi;
}

static LLVMValueRef put_select(ll_emitter *l, const kn_expr *e)
{
    LLVMValueRef cond = put(l, e->args[0]);
    if (!may_be_eager(e->args[1]) || !may_be_eager(e->args[2]))
        return put_branch(l, cond, e->args[1], e->args[2]);
    LLVMValueRef x = put(l, e->args[1]), y = put(l, e->args[2]);
    return LLVMBuildSelect(l->b, cond, x, y, "");
}

static LLVMValueRef put_logic(ll_emitter *l, const kn_expr *e)
{
    LLVMValueRef x[2] = {put(l, e->args[0]), NULL};
    if (!may_be_eager(e->args[1]))
        return e->op == KN_OP_LAND ? put_branch(l, x[0], e->args[1], NULL)
                                   : put_branch(l, x[0], NULL, e->args[1]);
    x[1] = put(l, e->args[1]);
    return put_bits(l, e->op, x);
}

static LLVMValueRef put_op(ll_emitter *l, const kn_expr *e)
{
    if (e->op == KN_OP_SELECT)
        return put_select(l, e);
    if (e->op == KN_OP_LAND || e->op == KN_OP_LOR)
        return put_logic(l, e);
    LLVMValueRef args[2] = {NULL, NULL};
    for (int i = 0; i < e->nargs; i++)
        args[i] = put(l, e->args[i]);
    LLVMValueRef r = e->type == KN_INDEX ? put_index_op(l, e, args) : NULL;
    return r ? r : kn_ll_op(l, e->op, e->args[0]->type, args, e->nargs);
}

/* ---- Casts ---- */

/* A conversion that is one instruction, or none; NULL when it is neither. */
static LLVMValueRef put_plain_cast(const ll_emitter *l, kn_dtype from, kn_dtype to, LLVMValueRef x)
{
    LLVMTypeRef type = kn_ll_value_type(l, to);
    bool integer = is_plain_integer(from) || from == KN_BOOL;
    if (is_plain_float(from) && is_plain_float(to))
        return LLVMBuildFPCast(l->b, x, type, "");
    if (integer && is_plain_float(to))
        return kn_dtype_is_signed(from) ? LLVMBuildSIToFP(l->b, x, type, "")
                                        : LLVMBuildUIToFP(l->b, x, type, "");
    if (integer && is_plain_integer(to))
        return LLVMBuildIntCast2(l->b, x, type, kn_dtype_is_signed(from), "");
    return NULL;
}

static LLVMValueRef put_cast(ll_emitter *l, const kn_expr *e)
{
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    kn_dtype from = e->args[0]->type, to = e->type;
    LLVMValueRef x = put(l, e->args[0]), r = NULL;
    if (from == to)
        return x;
    if (e->mode == KN_CAST_CAST)
        r = put_plain_cast(l, from, to, x);
    if (r)
        return r;
    const char *name =
        kn_format(l->arena, "npu_%s_%s_%s", modes[e->mode], kn_dtype_name(from), kn_dtype_name(to));
    return call(l, name, kn_ll_value_type(l, to), &x, 1);
}

/* ---- Elements ---- */

const ll_name *kn_ll_find(const ll_emitter *l, const char *name)
{
    for (int i = l->scope.n - 1; i >= 0; i--) {
        const char *other = l->scope.at[i].name;
        if (other == name || strcmp(other, name) == 0)
            return &l->scope.at[i];
    }
    kn_cg_fail(&l->facts, KN_INTERNAL, "`%s` is not in scope", name);
}

LLVMValueRef kn_ll_position(ll_emitter *l, const ll_name *n, const kn_expr *const *subs, int nsubs)
{
    LLVMValueRef at = nsubs ? kn_ll_expr(l, subs[0]) : kn_ll_const_i64(l, 0);
    const LLVMValueRef *dims = n->dims, base = n->base;
    for (int i = 1; i < nsubs; i++) {
        LLVMValueRef sub = kn_ll_expr(l, subs[i]);
        at = LLVMBuildNSWAdd(l->b, LLVMBuildNSWMul(l->b, at, dims[i], ""), sub, "");
    }
    return base ? LLVMBuildNSWAdd(l->b, base, at, "") : at;
}

static LLVMValueRef element(const ll_emitter *l, const ll_name *n, LLVMValueRef position)
{
    return LLVMBuildInBoundsGEP2(l->b, kn_ll_element_type(l, n->type), n->value, &position, 1, "");
}

static unsigned alignment(const ll_name *n)
{
    return n->unaligned ? 1 : (unsigned)kn_dtype_bits(n->type) / 8;
}

LLVMValueRef kn_ll_load(ll_emitter *l, const ll_name *n, LLVMValueRef position)
{
    LLVMTypeRef type = kn_ll_element_type(l, n->type);
    if (kn_cg_is_packed(n->type)) {
        LLVMValueRef args[2] = {n->value, position};
        return call(l, n->type == KN_I4 ? "npu_load_i4" : "npu_load_u4", type, args, 2);
    }
    LLVMValueRef v = LLVMBuildLoad2(l->b, type, element(l, n, position), "");
    LLVMSetAlignment(v, alignment(n));
    if (n->type == KN_BOOL)
        return LLVMBuildICmp(l->b, LLVMIntNE, v, LLVMConstInt(type, 0, false), "");
    return v;
}

void kn_ll_store(ll_emitter *l, const ll_name *n, LLVMValueRef position, LLVMValueRef value)
{
    if (kn_cg_is_packed(n->type)) {
        LLVMValueRef args[3] = {n->value, position, value};
        call(l, n->type == KN_I4 ? "npu_store_i4" : "npu_store_u4",
             LLVMVoidTypeInContext(l->context), args, 3);
        return;
    }
    if (n->type == KN_BOOL)
        value = LLVMBuildZExt(l->b, value, kn_ll_element_type(l, n->type), "");
    LLVMSetAlignment(LLVMBuildStore(l->b, value, element(l, n, position)), alignment(n));
}

static LLVMValueRef put_load(ll_emitter *l, const kn_expr *e)
{
    ll_name n = *kn_ll_find(l, e->name);
    return kn_ll_load(l, &n, kn_ll_position(l, &n, e->args, e->nargs));
}

/* ---- Entry ---- */

LLVMBasicBlockRef kn_ll_block(const ll_emitter *l, const char *name)
{
    return LLVMAppendBasicBlockInContext(l->context, l->func->value, name);
}

static LLVMValueRef put(ll_emitter *l, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST: return put_const(l, e);
    case KN_E_VAR: return kn_ll_find(l, e->name)->value;
    case KN_E_LOAD: return put_load(l, e);
    case KN_E_OP: return put_op(l, e);
    case KN_E_CAST: return put_cast(l, e);
    }
    return NULL;
}

LLVMValueRef kn_ll_expr(ll_emitter *l, const kn_expr *e)
{
    return put(l, kn_cg_fold(l->arena, e));
}
