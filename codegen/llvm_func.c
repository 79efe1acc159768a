/* Functions and statements in LLVM. Loops come out in the form that its loop passes like: both ends
   in the preheader, a guard, one block that the body ends in, a counter that starts there. A kernel
   that can fail returns a status, as all do in C; the others return nothing, so that their calls
   need no branch. */
#include <inttypes.h>
#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h> /* temporary metadata */
#include <stddef.h>

#include "codegen/llvm_internal.h"
#include "kiln/npu.h"

_Static_assert(offsetof(npu_context, message) == 0, "put_failure stores it at the address of npu");

typedef struct {
    int scope, bounds;
} mark;

static mark open_scope(const ll_emitter *l)
{
    return (mark){l->scope.n, l->facts.bounds.n};
}

static void close_scope(ll_emitter *l, mark m)
{
    l->scope.n = m.scope;
    l->facts.bounds.n = m.bounds;
}

static void push_scalar(ll_emitter *l, const char *name, kn_dtype type, LLVMValueRef value,
                        kn_range range)
{
    ll_name n = {.name = name, .type = type, .value = value};
    kn_size size = {name, range.lo, range.hi};
    kn_push(l->arena, &l->scope, n);
    if (type == KN_INDEX)
        kn_push(l->arena, &l->facts.bounds, size);
}

/* The shape is evaluated here, once. */
static ll_name *push_buffer(ll_emitter *l, const kn_buffer *b, LLVMValueRef address, bool unaligned)
{
    LLVMValueRef *dims = KN_ARRAY(l->arena, LLVMValueRef, b->rank);
    for (int i = 0; i < b->rank; i++)
        dims[i] = kn_ll_expr(l, b->shape[i]);
    ll_name n = {.name = b->name,
                 .buffer = b,
                 .type = b->type,
                 .value = address,
                 .dims = dims,
                 .unaligned = unaligned};
    kn_push(l->arena, &l->scope, n);
    return &l->scope.at[l->scope.n - 1];
}

static LLVMTypeRef pointer_type(const ll_emitter *l)
{
    return LLVMPointerTypeInContext(l->context, 0);
}

static LLVMTypeRef status_type(const ll_emitter *l)
{
    return LLVMInt32TypeInContext(l->context);
}

/* ---- Failing ---- */

static void put_return(const ll_emitter *l, int status)
{
    if (l->func->fails)
        LLVMBuildRet(l->b, LLVMConstInt(status_type(l), (unsigned)status, false));
    else
        LLVMBuildRetVoid(l->b);
}

/* Goes on when `ok`; else fails the run, with a message when there is one. */
static void put_failure(ll_emitter *l, LLVMValueRef ok, const char *message)
{
    LLVMBasicBlockRef failed = kn_ll_block(l, "failed"), next = kn_ll_block(l, "");
    LLVMBuildCondBr(l->b, ok, next, failed);
    LLVMPositionBuilderAtEnd(l->b, failed);
    if (message)
        LLVMBuildStore(l->b, LLVMBuildGlobalStringPtr(l->b, message, "message"), l->npu);
    put_return(l, 1);
    LLVMPositionBuilderAtEnd(l->b, next);
}

/* Both bounds are allowed. */
static LLVMValueRef put_within(const ll_emitter *l, const kn_param *p, LLVMValueRef value)
{
    LLVMValueRef lo = kn_ll_const_i64(l, p->lo), hi = kn_ll_const_i64(l, p->hi);
    return LLVMBuildAnd(l->b, LLVMBuildICmp(l->b, LLVMIntSGE, value, lo, ""),
                        LLVMBuildICmp(l->b, LLVMIntSLE, value, hi, ""), "");
}

static bool block_fails(const ll_emitter *l, const kn_block *b);

static bool stmt_fails(const ll_emitter *l, const kn_loop *s)
{
    int callee = s->kind == KN_S_CALL ? kn_cg_find(&l->facts, s->name) : -1;
    return s->kind == KN_S_CHECK || (callee >= 0 && l->funcs[callee].fails) ||
           block_fails(l, &s->body) || block_fails(l, &s->orelse);
}

static bool block_fails(const ll_emitter *l, const kn_block *b)
{
    bool fails = false;
    for (int i = 0; !fails && i < b->n; i++)
        fails = stmt_fails(l, b->at[i]);
    return fails;
}

/* Its callees are known already. */
static bool function_fails(const ll_emitter *l, const kn_cg_func *f)
{
    bool fails = block_fails(l, &f->func->body);
    for (int i = 0; i < f->func->nparams; i++)
        fails = fails || kn_cg_is_checked(f, i);
    return fails;
}

/* ---- Control ---- */

static void put_statements(ll_emitter *l, const kn_block *b);

static void put_block(ll_emitter *l, const kn_block *b)
{
    mark m = open_scope(l);
    put_statements(l, b);
    close_scope(l, m);
}

/* !{itself, !{!"llvm.loop.unroll.enable"}} on the branch back. */
static void ask_to_unroll(const ll_emitter *l, LLVMValueRef branch)
{
    static const char text[] = "llvm.loop.unroll.enable";
    LLVMMetadataRef name = LLVMMDStringInContext2(l->context, text, sizeof text - 1);
    LLVMMetadataRef parts[2] = {LLVMTemporaryMDNode(l->context, NULL, 0),
                                LLVMMDNodeInContext2(l->context, &name, 1)};
    LLVMMetadataRef self = parts[0], loop = LLVMMDNodeInContext2(l->context, parts, 2);
    LLVMMetadataReplaceAllUsesWith(self, loop);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(l->context, "llvm.loop", 9),
                    LLVMMetadataAsValue(l->context, loop));
}

static void put_for(ll_emitter *l, const kn_loop *s)
{
    mark m = open_scope(l);
    kn_range range = kn_cg_loop_range(&l->facts, s);
    LLVMValueRef lo = kn_ll_expr(l, s->lo), hi = kn_ll_expr(l, s->hi);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
    LLVMBasicBlockRef body = kn_ll_block(l, s->name), after = kn_ll_block(l, "");
    LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, lo, hi, ""), body, after);
    LLVMPositionBuilderAtEnd(l->b, body);
    LLVMValueRef i = LLVMBuildPhi(l->b, kn_ll_i64(l), s->name);
    push_scalar(l, s->name, KN_INDEX, i, range);
    put_block(l, &s->body);
    LLVMValueRef next = LLVMBuildNSWAdd(l->b, i, kn_ll_const_i64(l, s->step), "");
    LLVMValueRef values[2] = {lo, next};
    LLVMBasicBlockRef from[2] = {before, LLVMGetInsertBlock(l->b)};
    LLVMValueRef more = LLVMBuildICmp(l->b, LLVMIntSLT, next, hi, "");
    LLVMValueRef back = LLVMBuildCondBr(l->b, more, body, after);
    LLVMAddIncoming(i, values, from, 2);
    if (s->mode == KN_FOR_UNROLL)
        ask_to_unroll(l, back);
    LLVMPositionBuilderAtEnd(l->b, after);
    close_scope(l, m);
}

static void put_if(ll_emitter *l, const kn_loop *s)
{
    LLVMValueRef cond = kn_ll_expr(l, s->expr);
    LLVMBasicBlockRef body = kn_ll_block(l, ""), after = kn_ll_block(l, "");
    LLVMBasicBlockRef orelse = s->orelse.n ? kn_ll_block(l, "") : after;
    LLVMBuildCondBr(l->b, cond, body, orelse);
    LLVMPositionBuilderAtEnd(l->b, body);
    put_block(l, &s->body);
    LLVMBuildBr(l->b, after);
    if (s->orelse.n) {
        LLVMPositionBuilderAtEnd(l->b, orelse);
        put_block(l, &s->orelse);
        LLVMBuildBr(l->b, after);
    }
    LLVMPositionBuilderAtEnd(l->b, after);
}

static void put_check(ll_emitter *l, const kn_loop *s)
{
    put_failure(l, kn_ll_expr(l, s->expr), s->name);
}

static void put_let(ll_emitter *l, const kn_loop *s)
{
    kn_range range = {INT64_MIN, INT64_MAX};
    if (s->type == KN_INDEX)
        range = kn_cg_range(&l->facts, s->expr);
    push_scalar(l, s->name, s->type, kn_ll_expr(l, s->expr), range);
}

/* ---- Buffers ---- */

/* In the function's first block, whatever loop we are in. */
static LLVMValueRef put_local(const ll_emitter *l, const kn_buffer *b)
{
    LLVMBasicBlockRef here = LLVMGetInsertBlock(l->b);
    LLVMTypeRef element = kn_ll_element_type(l, b->type);
    int64_t count = kn_cg_local_count(&l->facts, b);
    LLVMPositionBuilderBefore(l->b, LLVMGetBasicBlockTerminator(l->entry));
    LLVMTypeRef type = b->rank ? LLVMArrayType2(element, (uint64_t)count) : element;
    LLVMValueRef local = LLVMBuildAlloca(l->b, type, b->name);
    LLVMPositionBuilderAtEnd(l->b, here);
    return local;
}

static LLVMValueRef put_offset(const ll_emitter *l, LLVMTypeRef element, LLVMValueRef address,
                               LLVMValueRef offset, const char *name)
{
    return LLVMBuildInBoundsGEP2(l->b, element, address, &offset, 1, name);
}

static void put_alloc(ll_emitter *l, const kn_loop *s)
{
    const kn_buffer *b = &s->buffer;
    LLVMValueRef address;
    if (strcmp(b->space, "ddr") != 0) {
        if (b->offset)
            kn_cg_fail(&l->facts, KN_UNSUPPORTED, "`%s` is placed in the target's memory @%s",
                       b->name, b->space);
        address = put_local(l, b);
    } else {
        if (!b->offset || !l->workspace)
            kn_cg_fail(&l->facts, KN_INTERNAL, "`%s` in @ddr is not planned in main's workspace",
                       b->name);
        address = put_offset(l, LLVMInt8TypeInContext(l->context), l->workspace,
                             kn_ll_expr(l, b->offset), b->name);
    }
    push_buffer(l, b, address, false);
}

/* Of 4-bit elements the offset is kept, since it may be odd. */
static void put_view(ll_emitter *l, const kn_loop *s)
{
    const kn_buffer *b = &s->buffer;
    ll_name source = *kn_ll_find(l, s->name);
    LLVMValueRef offset = b->offset ? kn_ll_expr(l, b->offset) : kn_ll_const_i64(l, 0);
    bool packed = kn_cg_is_packed(b->type);
    if (packed && source.base)
        offset = LLVMBuildNSWAdd(l->b, source.base, offset, "");
    LLVMValueRef address = source.value;
    if (!packed)
        address = put_offset(l, kn_ll_element_type(l, b->type), address, offset, b->name);
    ll_name *n = push_buffer(l, b, address, source.unaligned);
    bool start = LLVMIsAConstantInt(offset) && LLVMConstIntGetZExtValue(offset) == 0;
    n->base = packed && !start ? offset : NULL;
}

static void put_store(ll_emitter *l, const kn_loop *s)
{
    static const kn_scalar ops[] = {
        [KN_ADD] = KN_OP_ADD, [KN_MUL] = KN_OP_MUL, [KN_MAX] = KN_OP_MAX, [KN_MIN] = KN_OP_MIN};
    LLVMValueRef value = kn_ll_expr(l, s->expr);
    ll_name n = *kn_ll_find(l, s->name);
    LLVMValueRef at = kn_ll_position(l, &n, s->args, s->nargs);
    if (s->op != KN_SET) {
        LLVMValueRef args[2] = {kn_ll_load(l, &n, at), value};
        value = kn_ll_op(l, ops[s->op], n.type, args, 2);
    }
    kn_ll_store(l, &n, at, value);
}

/* ---- Calls ---- */

/* The address of a buffer, or from an element on. */
static LLVMValueRef put_address(ll_emitter *l, const kn_expr *e, bool *unaligned)
{
    ll_name n = *kn_ll_find(l, e->name);
    *unaligned = *unaligned || n.unaligned;
    if (e->nargs == 0 && !n.base)
        return n.value;
    if (kn_cg_is_packed(n.type) &&
        (n.base || !kn_cg_is_even(l->arena, n.buffer, e->args, e->nargs)))
        kn_cg_fail(&l->facts, KN_UNSUPPORTED,
                   "a part of `%s` that may begin inside a byte is passed on", e->name);
    LLVMValueRef at = kn_ll_position(l, &n, e->args, e->nargs);
    if (kn_cg_is_packed(n.type))
        at = LLVMBuildLShr(l->b, at, kn_ll_const_i64(l, 1), "");
    return put_offset(l, kn_ll_element_type(l, n.type), n.value, at, "");
}

static void put_call(ll_emitter *l, const kn_loop *s)
{
    const ll_func *f = &l->funcs[kn_cg_callee(&l->facts, s)];
    LLVMValueRef *args = KN_ARRAY(l->arena, LLVMValueRef, s->nargs + 1);
    int n = 0;
    if (f->fails)
        args[n++] = l->npu;
    for (int i = 0; i < s->nargs; i++) {
        bool scalar = f->facts->func->params[i].mode == KN_PARAM_SCALAR;
        args[n++] =
            scalar ? kn_ll_expr(l, s->args[i]) : put_address(l, s->args[i], &f->unaligned[i]);
    }
    LLVMValueRef status = LLVMBuildCall2(l->b, f->type, f->value, args, (unsigned)n, "");
    LLVMValueRef zero = LLVMConstInt(status_type(l), 0, false);
    if (f->fails)
        put_failure(l, LLVMBuildICmp(l->b, LLVMIntEQ, status, zero, ""), NULL);
}

static void put_statements(ll_emitter *l, const kn_block *b)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        l->facts.loc = s->loc;
        switch (s->kind) {
        case KN_S_FOR: put_for(l, s); break;
        case KN_S_IF: put_if(l, s); break;
        case KN_S_LET: put_let(l, s); break;
        case KN_S_ALLOC: put_alloc(l, s); break;
        case KN_S_VIEW: put_view(l, s); break;
        case KN_S_STORE: put_store(l, s); break;
        case KN_S_CALL: put_call(l, s); break;
        case KN_S_CHECK: put_check(l, s); break;
        }
    }
}

/* ---- Functions ---- */

/* Opens a function's body: the block of its locals, and the one that code goes to. */
static void open_body(ll_emitter *l, const ll_func *f)
{
    l->func = f;
    l->facts.func = f->facts;
    l->entry = kn_ll_block(l, "");
    LLVMBasicBlockRef start = kn_ll_block(l, "");
    LLVMPositionBuilderAtEnd(l->b, l->entry);
    LLVMBuildBr(l->b, start);
    LLVMPositionBuilderAtEnd(l->b, start);
}

static void declare_param(const ll_emitter *l, const ll_func *f, int i)
{
    const kn_param *p = &f->facts->func->params[i];
    unsigned place = (unsigned)(i + f->fails) + 1; /* 0 is what is returned */
    LLVMValueRef value = LLVMGetParam(f->value, place - 1);
    LLVMSetValueName2(value, p->buffer.name, strlen(p->buffer.name));
    if (p->mode == KN_PARAM_SCALAR)
        return;
    kn_ll_attribute(l, f->value, place, "nocapture");
    if (p->mode == KN_PARAM_IN || p->mode == KN_PARAM_CONST)
        kn_ll_attribute(l, f->value, place, "readonly");
    if (kn_cg_restrict(f->facts, i))
        kn_ll_attribute(l, f->value, place, "noalias");
}

/* A kernel stays a function of its own: inlined into main, all of them would be compiled as one. */
static void declare_function(const ll_emitter *l, ll_func *f)
{
    const kn_func *func = f->facts->func;
    LLVMTypeRef *types = KN_ARRAY(l->arena, LLVMTypeRef, func->nparams + 1);
    unsigned n = 0;
    f->fails = function_fails(l, f->facts);
    f->unaligned = KN_ARRAY(l->arena, bool, func->nparams);
    if (f->fails)
        types[n++] = pointer_type(l);
    for (int i = 0; i < func->nparams; i++)
        types[n++] = func->params[i].mode == KN_PARAM_SCALAR
                         ? kn_ll_value_type(l, func->params[i].buffer.type)
                         : pointer_type(l);
    LLVMTypeRef result = f->fails ? status_type(l) : LLVMVoidTypeInContext(l->context);
    f->type = LLVMFunctionType(result, types, n, false);
    const char *name = kn_format(l->arena, "%s_%s", l->options->prefix, func->name);
    f->value = LLVMAddFunction(l->module, name, f->type);
    LLVMSetLinkage(f->value, LLVMInternalLinkage);
    kn_ll_attribute(l, f->value, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
    kn_ll_attribute(l, f->value, (unsigned)LLVMAttributeFunctionIndex, "mustprogress");
    kn_ll_attribute(l, f->value, (unsigned)LLVMAttributeFunctionIndex, "noinline");
    for (int i = 0; i < func->nparams; i++)
        declare_param(l, f, i);
}

static void push_param(ll_emitter *l, const ll_func *f, int i)
{
    const kn_param *p = &f->facts->func->params[i];
    LLVMValueRef value = LLVMGetParam(f->value, (unsigned)(i + f->fails));
    if (p->mode != KN_PARAM_SCALAR) {
        push_buffer(l, &p->buffer, value, f->unaligned[i]);
        return;
    }
    if (kn_cg_is_checked(f->facts, i))
        put_failure(l, put_within(l, p, value),
                    kn_format(l->arena, "%s: %s is out of its bounds %" PRId64 ":%" PRId64,
                              f->facts->func->name, p->buffer.name, p->lo, p->hi));
    push_scalar(l, p->buffer.name, p->buffer.type, value, kn_cg_param_range(f->facts, i));
}

static void put_function(ll_emitter *l, const ll_func *f)
{
    mark m = open_scope(l);
    open_body(l, f);
    l->workspace = NULL;
    l->npu = f->fails ? LLVMGetParam(f->value, 0) : NULL;
    for (int i = 0; i < f->facts->func->nparams; i++)
        push_param(l, f, i);
    put_statements(l, &f->facts->func->body);
    put_return(l, 0);
    close_scope(l, m);
}

/* ---- The entries ---- */

typedef enum { RUN_NPU, RUN_IO, RUN_WEIGHTS, RUN_SIZES, RUN_WORKSPACE, RUN_PARAMS } run_param;

static LLVMValueRef add_entry(const ll_emitter *l, const char *name, LLVMTypeRef result,
                              const char *const *params, unsigned n)
{
    LLVMTypeRef types[RUN_PARAMS];
    for (unsigned i = 0; i < n; i++)
        types[i] = pointer_type(l);
    LLVMValueRef fn =
        LLVMAddFunction(l->module, kn_format(l->arena, "%s_%s", l->options->prefix, name),
                        LLVMFunctionType(result, types, n, false));
    kn_ll_attribute(l, fn, (unsigned)LLVMAttributeFunctionIndex, "nounwind");
    for (unsigned i = 0; i < n; i++)
        LLVMSetValueName2(LLVMGetParam(fn, i), params[i], strlen(params[i]));
    return fn;
}

/* table[i], of 8 bytes each. */
static LLVMValueRef put_table_load(const ll_emitter *l, LLVMTypeRef type, LLVMValueRef table, int i)
{
    LLVMValueRef at = put_offset(l, type, table, kn_ll_const_i64(l, i), "");
    return LLVMBuildLoad2(l->b, type, at, "");
}

/* The parameters of main by what they are for; io has the inputs first, then the outputs. */
static bool is_weight(const kn_param *p)
{
    return p->mode == KN_PARAM_CONST;
}

static int io_place(const kn_func *f, int param)
{
    int inputs = 0, before = 0;
    bool output = f->params[param].mode == KN_PARAM_OUT;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        bool input = p->mode == KN_PARAM_IN || p->mode == KN_PARAM_INOUT;
        inputs += input;
        before += i < param && (output ? p->mode == KN_PARAM_OUT : input);
    }
    return output ? inputs + before : before;
}

/* `failed`: what becomes of a size out of its bounds. */
static void put_sizes(ll_emitter *l, const kn_func *f, LLVMValueRef sizes,
                      void (*require)(ll_emitter *l, LLVMValueRef ok, const char *message))
{
    int n = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode != KN_PARAM_SCALAR)
            continue;
        if (p->buffer.type != KN_INDEX)
            kn_cg_fail(&l->facts, KN_UNSUPPORTED, "`%s`, a parameter of main that is no index",
                       p->buffer.name);
        LLVMValueRef value = put_table_load(l, kn_ll_i64(l), sizes, n++);
        if (p->lo != INT64_MIN || p->hi != INT64_MAX)
            require(l, put_within(l, p, value),
                    kn_format(l->arena, "size %s is out of its bounds %" PRId64 ":%" PRId64,
                              p->buffer.name, p->lo, p->hi));
        push_scalar(l, p->buffer.name, KN_INDEX, value, (kn_range){p->lo, p->hi});
    }
}

static void put_buffers(ll_emitter *l, const kn_func *f, LLVMValueRef io, LLVMValueRef weights)
{
    int nweights = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR)
            continue;
        bool weight = is_weight(p);
        LLVMValueRef address = put_table_load(l, pointer_type(l), weight ? weights : io,
                                              weight ? nweights++ : io_place(f, i));
        LLVMSetValueName2(address, p->buffer.name, strlen(p->buffer.name));
        push_buffer(l, &p->buffer, address, weight);
    }
}

/* An update in place is one only when both have one address. */
static void put_alias_check(ll_emitter *l, const kn_param *p)
{
    LLVMValueRef x = kn_ll_find(l, p->buffer.name)->value, y = kn_ll_find(l, p->alias)->value;
    put_failure(
        l, LLVMBuildICmp(l->b, LLVMIntEQ, x, y, ""),
        kn_format(l->arena, "%s updates %s: both take one address", p->buffer.name, p->alias));
}

static void put_run(ll_emitter *l, ll_func *f)
{
    static const char *const names[RUN_PARAMS] = {"npu", "io", "weights", "sizes", "workspace"};
    const kn_func *func = f->facts->func;
    mark m = open_scope(l);
    f->fails = true;
    f->value = add_entry(l, "run", status_type(l), names, RUN_PARAMS);
    open_body(l, f);
    l->npu = LLVMGetParam(f->value, RUN_NPU);
    l->workspace = LLVMGetParam(f->value, RUN_WORKSPACE);
    put_sizes(l, func, LLVMGetParam(f->value, RUN_SIZES), put_failure);
    put_buffers(l, func, LLVMGetParam(f->value, RUN_IO), LLVMGetParam(f->value, RUN_WEIGHTS));
    for (int i = 0; i < func->nparams; i++) {
        if (func->params[i].alias)
            put_alias_check(l, &func->params[i]);
    }
    put_statements(l, &func->body);
    put_return(l, 0);
    close_scope(l, m);
}

static void return_minus_one(ll_emitter *l, LLVMValueRef ok, const char *message)
{
    (void)message;
    LLVMBasicBlockRef failed = kn_ll_block(l, ""), next = kn_ll_block(l, "");
    LLVMBuildCondBr(l->b, ok, next, failed);
    LLVMPositionBuilderAtEnd(l->b, failed);
    LLVMBuildRet(l->b, kn_ll_const_i64(l, -1));
    LLVMPositionBuilderAtEnd(l->b, next);
}

static void put_workspace_bytes(ll_emitter *l, const kn_cg_func *main)
{
    static const char *const names[] = {"sizes"};
    mark m = open_scope(l);
    ll_func f = {.facts = main, .value = add_entry(l, "workspace_bytes", kn_ll_i64(l), names, 1)};
    open_body(l, &f);
    put_sizes(l, main->func, LLVMGetParam(f.value, 0), return_minus_one);
    const kn_expr *bytes = main->func->workspace;
    LLVMBuildRet(l->b, bytes ? kn_ll_expr(l, bytes) : kn_ll_const_i64(l, 0));
    close_scope(l, m);
}

static void put_bind_weights(ll_emitter *l, const kn_cg_func *main)
{
    static const char *const names[] = {"base", "weights"};
    int n;
    const kn_cg_weight *list = kn_cg_layout(l->arena, l->facts.module, &n);
    if (l->options->weights)
        list = l->options->weights;
    LLVMTypeRef none = LLVMVoidTypeInContext(l->context), byte = LLVMInt8TypeInContext(l->context);
    ll_func f = {.facts = main, .value = add_entry(l, "bind_weights", none, names, 2)};
    open_body(l, &f);
    LLVMValueRef base = LLVMGetParam(f.value, 0), table = LLVMGetParam(f.value, 1);
    for (int i = 0; i < n; i++) {
        LLVMValueRef from = put_offset(l, byte, base, kn_ll_const_i64(l, list[i].offset), "");
        LLVMBuildStore(l->b, from,
                       put_offset(l, pointer_type(l), table, kn_ll_const_i64(l, i), ""));
    }
    LLVMBuildRetVoid(l->b);
}

void kn_ll_functions(ll_emitter *l)
{
    int last = l->facts.funcs.n - 1;
    l->funcs = KN_ARRAY(l->arena, ll_func, last + 1);
    for (int i = 0; i <= last; i++)
        l->funcs[i].facts = l->facts.funcs.at[i];
    /* The entries first, so that no kernel takes their names. */
    put_workspace_bytes(l, l->funcs[last].facts);
    put_bind_weights(l, l->funcs[last].facts);
    for (int i = 0; i < last; i++)
        declare_function(l, &l->funcs[i]);
    put_run(l, &l->funcs[last]);
    for (int i = last - 1; i >= 0; i--)
        put_function(l, &l->funcs[i]);
}
