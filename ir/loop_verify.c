/* The rules that a loop IR tree keeps, whoever built it: docs/loop-ir.md. The walk carries the
   names in scope; it stops at the first fault. Nothing is taken on trust that an interpreter or a
   code generator relies on. */
#include <assert.h>
#include <stdio.h>

#include "ir/loop_internal.h"
#include "ir/target.h"

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const kn_module *module;  /* where callees are found; may be NULL */
    const kn_module *whole;   /* of a module: with the functions that come later */
    const kn_target *machine; /* NULL: unknown, or an instruction is looked at */
    const kn_func *func;
    kn_scope scope;
    kn_loc loc;
    int depth;
    KN_VEC(const kn_buffer *) allocs; /* of the function */
} verifier;

static _Noreturn void fail(const verifier *v, const char *fmt, ...) KN_PRINTF(2, 3);
static _Noreturn void fail(const verifier *v, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (v->func)
        kn_raise(v->ctx, KN_INVALID, v->loc, "function %s: %s", v->func->name, text);
    kn_raise(v->ctx, KN_INVALID, v->loc, "%s", text);
}

static const char *text_of(const verifier *v, const kn_expr *e)
{
    kn_str s = kn_str_make(v->arena);
    kn_expr_print(&s, e, false);
    return kn_str_get(&s);
}

/* ---- Names ---- */

static void require_name(const verifier *v, const char *name)
{
    if (!name || !kn_loop_name_ok(name))
        fail(v, "`%s` cannot be a name", name ? name : "");
}

static void declare(verifier *v, const char *name, const kn_buffer *buffer, kn_dtype type,
                    bool readonly)
{
    require_name(v, name);
    if (kn_scope_find(&v->scope, name))
        fail(v, "`%s` is in scope already", name);
    kn_name n = {name, buffer, type, readonly};
    kn_push(v->arena, &v->scope, n);
}

static const kn_name *find(const verifier *v, const char *name, bool buffer)
{
    const kn_name *n = kn_scope_find(&v->scope, name);
    if (!n)
        fail(v, "unknown name `%s`", name);
    if (!n->buffer != !buffer)
        fail(v, buffer ? "`%s` is a scalar, not a buffer" : "`%s` is a buffer, not a scalar", name);
    return n;
}

/* ---- Expressions ---- */

static void check_expr(const verifier *v, const kn_expr *e);

static void require_type(const verifier *v, const kn_expr *e, kn_dtype type)
{
    if (e->type != type)
        fail(v, "expected %s, found `%s` of type %s", kn_dtype_name(type), text_of(v, e),
             e->type == KN_UNTYPED ? "none" : kn_dtype_name(e->type));
}

static void check_typed(const verifier *v, const kn_expr *e, kn_dtype type)
{
    require_type(v, e, type);
    check_expr(v, e);
}

/* Plain statements run on the core pipe: what lies elsewhere is for instructions. */
static void require_reach(const verifier *v, const kn_buffer *b)
{
    if (v->machine && !kn_target_reaches(v->machine, b->space))
        fail(v, "`%s` lies in @%s, which only instructions of %s can touch", b->name, b->space,
             v->machine->name);
}

/* An element; or with `whole` the argument of a call: a buffer, or its part from an element on. */
static void check_load(const verifier *v, const kn_expr *e, bool whole)
{
    const kn_name *n = find(v, e->name, true);
    if (e->guarded)
        fail(v, "`%s` is a load with `else`", text_of(v, e));
    if (!whole)
        require_reach(v, n->buffer);
    if (e->nargs != n->buffer->rank && !(whole && e->nargs == 0))
        fail(v, "`%s` has %d dimensions, not %d", e->name, n->buffer->rank, e->nargs);
    require_type(v, e, n->type);
    for (int i = 0; i < e->nargs; i++)
        check_typed(v, e->args[i], KN_INDEX);
}

static void check_op(const verifier *v, const kn_expr *e)
{
    int first = e->op == KN_OP_SELECT;
    if ((unsigned)e->op >= KN_SCALAR_COUNT || e->nargs != kn_scalar_get(e->op)->arity)
        fail(v, "an operator with %d operands", e->nargs);
    if (first)
        check_typed(v, e->args[0], KN_BOOL);
    kn_dtype type = e->args[first]->type;
    for (int i = first; i < e->nargs; i++)
        check_typed(v, e->args[i], type);
    if (!kn_scalar_takes(e->op, type))
        fail(v, "`%s` has no operands of type %s", kn_scalar_get(e->op)->text, kn_dtype_name(type));
    require_type(v, e, kn_scalar_result(e->op, type));
}

static void check_cast(const verifier *v, const kn_expr *e)
{
    const kn_expr *x = e->args[0];
    check_expr(v, x);
    if (e->mode != KN_CAST_BITCAST)
        return;
    if (kn_dtype_bits(e->type) != kn_dtype_bits(x->type) || e->type == KN_BOOL ||
        x->type == KN_BOOL || e->type == KN_INDEX || x->type == KN_INDEX)
        fail(v, "no bitcast from %s to %s", kn_dtype_name(x->type), kn_dtype_name(e->type));
}

static void check_expr(const verifier *v, const kn_expr *e)
{
    if ((unsigned)e->type >= KN_DTYPE_COUNT)
        fail(v, "`%s` has no type", text_of(v, e));
    switch (e->kind) {
    case KN_E_CONST:
        if (e->real != kn_dtype_is_float(e->type))
            fail(v, "`%s` is no literal of type %s", text_of(v, e), kn_dtype_name(e->type));
        break;
    case KN_E_VAR: require_type(v, e, find(v, e->name, false)->type); break;
    case KN_E_LOAD: check_load(v, e, false); break;
    case KN_E_OP: check_op(v, e); break;
    case KN_E_CAST: check_cast(v, e); break;
    }
}

static void check_given(const verifier *v, const kn_expr *e, kn_dtype type)
{
    if (!e)
        fail(v, "an expression is missing");
    check_typed(v, e, type);
}

/* ---- Buffers ---- */

static void check_buffer(const verifier *v, const kn_buffer *b)
{
    if (b->rank < 0 || b->rank > KN_MAX_RANK)
        fail(v, "`%s` has %d dimensions: at most %d", b->name, b->rank, KN_MAX_RANK);
    if ((unsigned)b->type >= KN_DTYPE_COUNT)
        fail(v, "`%s` has no element type", b->name);
    for (int i = 0; i < b->rank; i++)
        check_given(v, b->shape[i], KN_INDEX);
    if (!b->space || !kn_loop_name_ok(b->space))
        fail(v, "`%s`: `%s` cannot be the name of a memory space", b->name,
             b->space ? b->space : "");
    if (v->machine && !kn_target_space(v->machine, b->space))
        fail(v, "`%s` lies in @%s, which %s does not have", b->name, b->space, v->machine->name);
    if (b->offset)
        check_given(v, b->offset, KN_INDEX);
}

static void check_alloc(verifier *v, const kn_buffer *b)
{
    check_buffer(v, b);
    for (int i = 0; i < v->allocs.n; i++) {
        const kn_buffer *other = v->allocs.at[i];
        if (strcmp(other->space, b->space) == 0 && !other->offset != !b->offset)
            fail(v, "in @%s `%s` has %s offset and `%s` has %s", b->space, other->name,
                 other->offset ? "an" : "no", b->name, b->offset ? "one" : "none");
    }
    kn_push(v->arena, &v->allocs, b);
    declare(v, b->name, b, b->type, false);
}

static void check_view(verifier *v, const kn_loop *s)
{
    const kn_buffer *b = &s->buffer;
    const kn_name *source = find(v, s->name, true);
    bool readonly = source->readonly;
    check_buffer(v, b);
    if (b->type != source->type)
        fail(v, "`%s` is a view as %s of `%s`, which is %s", b->name, kn_dtype_name(b->type),
             s->name, kn_dtype_name(source->type));
    if (strcmp(b->space, source->buffer->space) != 0)
        fail(v, "`%s` is a view in @%s of `%s`, which lies in @%s", b->name, b->space, s->name,
             source->buffer->space);
    declare(v, b->name, b, b->type, readonly);
}

/* ---- Statements ---- */

static void check_block(verifier *v, const kn_block *b);

static void check_for(verifier *v, const kn_loop *s)
{
    int mark = v->scope.n;
    check_given(v, s->lo, KN_INDEX);
    check_given(v, s->hi, KN_INDEX);
    if (s->step <= 0)
        fail(v, "the step of `%s` is not positive", s->name);
    declare(v, s->name, NULL, KN_INDEX, true);
    check_block(v, &s->body);
    v->scope.n = mark;
}

static void check_if(verifier *v, const kn_loop *s)
{
    check_given(v, s->expr, KN_BOOL);
    check_block(v, &s->body);
    check_block(v, &s->orelse);
}

static void check_let(verifier *v, const kn_loop *s)
{
    if ((unsigned)s->type >= KN_DTYPE_COUNT)
        fail(v, "`%s` has no type", s->name);
    check_given(v, s->expr, s->type);
    declare(v, s->name, NULL, s->type, true);
}

static void check_store(const verifier *v, const kn_loop *s)
{
    const kn_name *n = find(v, s->name, true);
    if (n->readonly)
        fail(v, "`%s` is read only", s->name);
    require_reach(v, n->buffer);
    if (s->nargs != n->buffer->rank)
        fail(v, "`%s` has %d dimensions, not %d", s->name, n->buffer->rank, s->nargs);
    for (int i = 0; i < s->nargs; i++)
        check_given(v, s->args[i], KN_INDEX);
    check_given(v, s->expr, n->type);
    if (s->op != KN_SET && n->type == KN_BOOL)
        fail(v, "`%s` has no operands of type bool", kn_update_text(s->op));
}

static void check_arg(const verifier *v, const kn_func *callee, const kn_param *p,
                      const kn_expr *arg)
{
    const char *name = p->buffer.name;
    if (p->mode == KN_PARAM_SCALAR) {
        if (arg->kind == KN_E_LOAD)
            fail(v, "`%s` of %s is a scalar: bind the load with let", name, callee->name);
        require_type(v, arg, p->buffer.type);
        return;
    }
    if (arg->kind != KN_E_LOAD)
        fail(v, "`%s` of %s is a buffer, not `%s`", name, callee->name, text_of(v, arg));
    const kn_name *n = find(v, arg->name, true);
    if (n->type != p->buffer.type)
        fail(v, "`%s` of %s is %s, `%s` is %s", name, callee->name, kn_dtype_name(p->buffer.type),
             arg->name, kn_dtype_name(n->type));
    if (strcmp(n->buffer->space, p->buffer.space) != 0)
        fail(v, "`%s` of %s lies in @%s, `%s` in @%s", name, callee->name, p->buffer.space,
             arg->name, n->buffer->space);
    if (n->readonly && (p->mode == KN_PARAM_OUT || p->mode == KN_PARAM_INOUT))
        fail(v, "`%s` of %s is written, `%s` is read only", name, callee->name, arg->name);
}

static void check_call(const verifier *v, const kn_loop *s)
{
    require_name(v, s->name);
    for (int i = 0; i < s->nargs; i++) {
        if (s->args[i]->kind == KN_E_LOAD)
            check_load(v, s->args[i], true);
        else
            check_expr(v, s->args[i]);
    }
    const kn_func *callee = kn_module_callee(v->module, s->name);
    if (v->whole && !callee && kn_module_find(v->whole, s->name))
        fail(v, "%s is called before its definition", s->name);
    if (!callee && v->machine)
        fail(v, "%s is no function, and no instruction of %s", s->name, v->machine->name);
    if (!callee)
        return;
    if (callee->nparams != s->nargs)
        fail(v, "%s takes %d arguments, not %d", s->name, callee->nparams, s->nargs);
    for (int i = 0; i < s->nargs; i++)
        check_arg(v, callee, &callee->params[i], s->args[i]);
}

static void check_stmt(verifier *v, const kn_loop *s)
{
    v->loc = s->loc;
    switch (s->kind) {
    case KN_S_FOR: check_for(v, s); break;
    case KN_S_IF: check_if(v, s); break;
    case KN_S_LET: check_let(v, s); break;
    case KN_S_ALLOC: check_alloc(v, &s->buffer); break;
    case KN_S_VIEW: check_view(v, s); break;
    case KN_S_STORE: check_store(v, s); break;
    case KN_S_CALL: check_call(v, s); break;
    case KN_S_CHECK:
        check_given(v, s->expr, KN_BOOL);
        if (!s->name)
            fail(v, "a check without a message");
        break;
    }
}

static void check_block(verifier *v, const kn_block *b)
{
    int mark = v->scope.n;
    if (++v->depth > KN_MAX_NESTING)
        fail(v, "blocks nested more than %d deep", KN_MAX_NESTING);
    for (int i = 0; i < b->n; i++)
        check_stmt(v, b->at[i]);
    v->scope.n = mark;
    v->depth--;
}

/* ---- Functions ---- */

static bool same_shape(const kn_buffer *x, const kn_buffer *y)
{
    if (x->rank != y->rank || x->type != y->type)
        return false;
    for (int i = 0; i < x->rank; i++) {
        if (!kn_expr_equal(x->shape[i], y->shape[i]))
            return false;
    }
    return true;
}

static void check_alias(const verifier *v, const kn_param *p)
{
    const kn_param *source = kn_func_param(v->func, p->alias);
    if (p->mode != KN_PARAM_OUT)
        fail(v, "`%s` aliases, but is no `out` parameter", p->buffer.name);
    if (!source || source->mode != KN_PARAM_IN)
        fail(v, "`%s` aliases `%s`, which is no `in` parameter", p->buffer.name, p->alias);
    if (!same_shape(&p->buffer, &source->buffer))
        fail(v, "`%s` aliases `%s`, which has another type or shape", p->buffer.name, p->alias);
}

/* What a program is given lies in main memory. */
static void check_main_param(const verifier *v, const kn_buffer *b)
{
    if (v->whole && v->machine && v->func == kn_module_main(v->whole) && b->space &&
        strcmp(b->space, v->machine->ddr->name) != 0)
        fail(v, "`%s` is a parameter of the program, which must lie in @%s, not in @%s", b->name,
             v->machine->ddr->name, b->space);
}

static void check_param(verifier *v, const kn_param *p)
{
    const kn_buffer *b = &p->buffer;
    require_name(v, b->name);
    if (p->mode == KN_PARAM_SCALAR) {
        if ((unsigned)b->type >= KN_DTYPE_COUNT)
            fail(v, "`%s` has no type", b->name);
        if (b->type == KN_INDEX && p->lo > p->hi)
            fail(v, "the bounds of `%s` are empty", b->name);
        declare(v, b->name, NULL, b->type, true);
        return;
    }
    check_buffer(v, b);
    check_main_param(v, b);
    if (b->offset)
        fail(v, "`%s` is a parameter with an offset", b->name);
    if (p->alias)
        check_alias(v, p);
    declare(v, b->name, b, b->type, p->mode == KN_PARAM_IN || p->mode == KN_PARAM_CONST);
}

static void check_func(verifier *v, const kn_func *f)
{
    v->loc = f->loc;
    v->func = f;
    v->scope.n = v->allocs.n = v->depth = 0;
    require_name(v, f->name);
    for (int i = 0; i < f->nparams; i++)
        check_param(v, &f->params[i]);
    if (f->workspace)
        check_given(v, f->workspace, KN_INDEX);
    check_block(v, &f->body);
    v->func = NULL;
}

static bool is_instruction(const kn_module *m, const kn_func *f)
{
    return m && m->library && kn_module_find(m->library, f->name) == f;
}

void kn_func_verify(kn_ctx *ctx, const kn_module *m, const kn_func *f)
{
    verifier v = {.ctx = ctx, .arena = kn_arena_create(ctx), .module = m};
    v.machine = m && !is_instruction(m, f) ? m->machine : NULL;
    check_func(&v, f);
    kn_arena_destroy(v.arena);
}

/* A function is checked against those before it: what it calls of the module must be among them. */
void kn_module_verify(kn_ctx *ctx, const kn_module *m)
{
    kn_module before = *m;
    verifier v = {.ctx = ctx, .arena = kn_arena_create(ctx), .module = &before, .whole = m};
    v.machine = m->machine;
    v.loc = m->loc;
    if (!kn_loop_name_ok(m->name))
        fail(&v, "`%s` cannot be the name of a module", m->name);
    for (before.nfuncs = 0; before.nfuncs < m->nfuncs; before.nfuncs++) {
        const kn_func *f = m->funcs[before.nfuncs];
        v.loc = f->loc;
        if (kn_module_find(&before, f->name))
            fail(&v, "function %s is defined twice", f->name);
        if (strcmp(f->name, "main") == 0 && f != kn_module_main(m))
            fail(&v, "main is not the last function, which is the one that a run calls");
        check_func(&v, f);
    }
    kn_arena_destroy(v.arena);
}
