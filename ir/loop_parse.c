/* The loop IR from text: docs/loop-ir.md. Recursive descent over the one lexer. Statements have no
   separators: none begins with what could go on with the expression before it. Keywords are such by
   their place alone: a buffer may be called `at`.

   Expressions come untyped from kn_parse_expr and are typed here from the names in scope,
   bottom-up. A tree of nothing but bare literals stays untyped until it meets a type: then `settle`
   gives it that one; if it meets none it is f32 when it holds a real literal, else index. */
#include <stdio.h>

#include "ir/loop_internal.h"

typedef struct {
    kn_lexer lx;
    kn_arena *arena;
    kn_module *module; /* the functions so far; NULL when a function stands alone */
    kn_scope scope;
    kn_loc loc; /* of the expression being typed */
} parser;

static _Noreturn void fail(const parser *p, const char *fmt, ...) KN_PRINTF(2, 3);
static _Noreturn void fail(const parser *p, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kn_raise(p->lx.ctx, KN_INVALID, p->loc, "%s", text);
}

static _Noreturn void expected(parser *p, const char *what)
{
    const kn_token *t = &p->lx.token;
    if (t->kind == KN_T_END)
        kn_lex_fail(&p->lx, "expected %s, found the end", what);
    kn_lex_fail(&p->lx, "expected %s, found `%.*s`", what, (int)(t->stop - t->start), t->start);
}

static const char *text_of(const parser *p, const kn_expr *e)
{
    kn_str s = kn_str_make(p->arena);
    kn_expr_print(&s, e, false);
    return kn_str_get(&s);
}

/* ---- Names ---- */

static void declare(parser *p, const char *name, const kn_buffer *buffer, kn_dtype type)
{
    kn_name n = {name, buffer, type, false};
    kn_push(p->arena, &p->scope, n);
}

static const kn_name *find(const parser *p, const char *name, bool buffer)
{
    const kn_name *n = kn_scope_find(&p->scope, name);
    if (!n)
        fail(p, "unknown name `%s`", name);
    if (buffer && !n->buffer)
        fail(p, "`%s` is a scalar, not a buffer", name);
    if (!buffer && n->buffer)
        fail(p, "`%s` is a buffer: its elements are `%s[...]`", name, name);
    return n;
}

/* ---- Typing expressions ---- */

static const kn_expr *typed(parser *p, const kn_expr *e);

static bool has_real(const kn_expr *e)
{
    bool real = e->real;
    for (int i = 0; !real && i < e->nargs; i++)
        real = e->args[i]->type == KN_UNTYPED && has_real(e->args[i]);
    return real;
}

static kn_dtype default_type(const kn_expr *e)
{
    return has_real(e) ? KN_F32 : KN_INDEX;
}

static void require_operand(const parser *p, kn_scalar op, kn_dtype type)
{
    if (type != KN_UNTYPED && !kn_scalar_takes(op, type))
        fail(p, "`%s` has no operands of type %s", kn_scalar_get(op)->text, kn_dtype_name(type));
}

static const kn_expr *retype_const(const parser *p, const kn_expr *e, kn_dtype type)
{
    if (e->real != kn_dtype_is_float(type) || type == KN_BOOL)
        fail(p, "expected %s, found the literal `%s`", kn_dtype_name(type), text_of(p, e));
    if (e->real)
        return kn_float(p->arena, type, e->f);
    if (kn_dtype_bits(type) < 64 &&
        (e->i < kn_dtype_min(type) || e->i > (int64_t)kn_dtype_max(type)))
        fail(p, "`%s` is out of the range of %s", text_of(p, e), kn_dtype_name(type));
    return kn_int(p->arena, type, e->i);
}

/* Gives a tree of bare literals its type. */
static const kn_expr *retype(parser *p, const kn_expr *e, kn_dtype type)
{
    if (e->type != KN_UNTYPED)
        return e; /* the condition of a select */
    if (e->kind == KN_E_CONST)
        return retype_const(p, e, type);
    require_operand(p, e->op, type);
    const kn_expr **args = KN_ARRAY(p->arena, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++)
        args[i] = retype(p, e->args[i], type);
    return kn_expr_with(p->arena, e, type, args);
}

static const kn_expr *settle(parser *p, const kn_expr *e, kn_dtype type)
{
    if (e->type == KN_UNTYPED)
        return retype(p, e, type);
    if (e->type != type)
        fail(p, "expected %s, found `%s` of type %s", kn_dtype_name(type), text_of(p, e),
             kn_dtype_name(e->type));
    return e;
}

static const kn_expr *type_load(parser *p, const kn_expr *e)
{
    if (e->guarded)
        fail(p, "`else` after a load belongs to index notation; write select()");
    const kn_name *n = find(p, e->name, true);
    if (e->nargs != n->buffer->rank)
        fail(p, "`%s` has %d dimensions, not %d", e->name, n->buffer->rank, e->nargs);
    const kn_expr **subs = KN_ARRAY(p->arena, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++)
        subs[i] = settle(p, typed(p, e->args[i]), KN_INDEX);
    return kn_load(p->arena, n->type, e->name, subs, e->nargs);
}

static const kn_expr *type_cast(parser *p, const kn_expr *e)
{
    kn_dtype type;
    if (!kn_dtype_parse(e->name, strlen(e->name), &type))
        fail(p, "`%s` is no type", e->name);
    const kn_expr *x = typed(p, e->args[0]);
    if (x->type == KN_UNTYPED)
        x = retype(p, x, default_type(x));
    return kn_cast(p->arena, e->mode, type, x);
}

/* The type that the operands agree on; KN_UNTYPED when all are bare literals. */
static kn_dtype agreed_type(const kn_expr *const *args, int n)
{
    for (int i = 0; i < n; i++) {
        if (args[i]->type != KN_UNTYPED)
            return args[i]->type;
    }
    return KN_UNTYPED;
}

static const kn_expr *type_op(parser *p, const kn_expr *e)
{
    const kn_expr **args = KN_ARRAY(p->arena, const kn_expr *, e->nargs);
    int first = e->op == KN_OP_SELECT;
    for (int i = 0; i < e->nargs; i++)
        args[i] = typed(p, e->args[i]);
    if (first)
        args[0] = settle(p, args[0], KN_BOOL);
    kn_dtype type = agreed_type(args + first, e->nargs - first);
    if (type == KN_UNTYPED && kn_scalar_result(e->op, KN_F32) == KN_BOOL)
        type = default_type(args[0]) == KN_F32 ? KN_F32 : default_type(args[e->nargs - 1]);
    require_operand(p, e->op, type);
    for (int i = first; i < e->nargs && type != KN_UNTYPED; i++)
        args[i] = settle(p, args[i], type);
    return kn_op(p->arena, type == KN_UNTYPED ? type : kn_scalar_result(e->op, type), e->op, args,
                 e->nargs);
}

/* Types bottom-up; what is returned has type KN_UNTYPED when it is made of bare literals alone. */
static const kn_expr *typed(parser *p, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST: return e;
    case KN_E_VAR: return kn_var(p->arena, find(p, e->name, false)->type, e->name);
    case KN_E_LOAD: return type_load(p, e);
    case KN_E_CAST: return type_cast(p, e);
    case KN_E_OP: return type_op(p, e);
    }
    return e;
}

/* Types an expression that begins at `loc` as `type`; KN_UNTYPED: whatever it is. */
static const kn_expr *typed_as(parser *p, const kn_expr *e, kn_loc loc, kn_dtype type)
{
    p->loc = loc;
    e = typed(p, e);
    if (type == KN_UNTYPED)
        type = e->type == KN_UNTYPED ? default_type(e) : e->type;
    return settle(p, e, type);
}

static const kn_expr *parse_expr(parser *p, kn_dtype type)
{
    kn_loc loc = p->lx.token.loc;
    const kn_expr *e = kn_parse_expr(&p->lx);
    return typed_as(p, e, loc, type);
}

/* ---- Buffers ---- */

static const char *parse_symbol(parser *p)
{
    if (p->lx.token.kind != KN_T_SYMBOL)
        expected(p, "a name with `@`");
    const char *name = p->lx.token.text;
    kn_lex_next(&p->lx);
    return name;
}

static void parse_shape(parser *p, kn_buffer *b)
{
    const kn_expr *dims[KN_MAX_RANK];
    kn_lex_expect(&p->lx, "[");
    while (!kn_lex_accept(&p->lx, "]")) {
        if (b->rank)
            kn_lex_expect(&p->lx, ",");
        if (b->rank == KN_MAX_RANK)
            kn_lex_fail(&p->lx, "`%s` has more than %d dimensions", b->name, KN_MAX_RANK);
        dims[b->rank++] = parse_expr(p, KN_INDEX);
    }
    const kn_expr **shape = KN_ARRAY(p->arena, const kn_expr *, b->rank);
    for (int i = 0; i < b->rank; i++)
        shape[i] = dims[i];
    b->shape = shape;
}

/* name: type[shape] */
static void parse_buffer(parser *p, kn_buffer *b)
{
    b->name = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, ":");
    b->type = kn_parse_dtype(&p->lx);
    parse_shape(p, b);
}

/* `at` begins a statement when a `[` comes after it. */
static const kn_expr *parse_offset(parser *p)
{
    const kn_token *ahead = kn_lex_is(&p->lx, "at") ? kn_lex_peek(&p->lx) : NULL;
    if (!ahead || (ahead->kind == KN_T_PUNCT && strcmp(ahead->text, "[") == 0))
        return NULL;
    kn_lex_next(&p->lx);
    return parse_expr(p, KN_INDEX);
}

/* ---- Statements ---- */

static kn_block parse_block(parser *p);

static kn_loop *make(const parser *p, kn_loop_kind kind, kn_loc loc)
{
    kn_loop *s = KN_NEW(p->arena, kn_loop);
    s->kind = kind;
    s->loc = loc;
    return s;
}

static kn_for_mode parse_for_mode(parser *p)
{
    static const kn_for_mode modes[] = {KN_FOR_PARALLEL, KN_FOR_VECTOR, KN_FOR_UNROLL};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (kn_lex_accept(&p->lx, kn_for_mode_text(modes[i])))
            return modes[i];
    }
    return KN_FOR_SERIAL;
}

static kn_loop *parse_for(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_FOR, loc);
    int mark = p->scope.n;
    s->name = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, "in");
    s->lo = parse_expr(p, KN_INDEX);
    kn_lex_expect(&p->lx, ":");
    s->hi = parse_expr(p, KN_INDEX);
    s->step = 1;
    if (kn_lex_accept(&p->lx, "step"))
        s->step = kn_lex_int(&p->lx);
    s->mode = parse_for_mode(p);
    declare(p, s->name, NULL, KN_INDEX);
    s->body = parse_block(p);
    p->scope.n = mark;
    return s;
}

static kn_loop *parse_if(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_IF, loc);
    s->expr = parse_expr(p, KN_BOOL);
    s->body = parse_block(p);
    if (!kn_lex_accept(&p->lx, "else"))
        return s;
    kn_loc inner = p->lx.token.loc;
    if (!kn_lex_accept(&p->lx, "if")) {
        s->orelse = parse_block(p);
        return s;
    }
    kn_lex_enter(&p->lx);
    s->orelse.at = KN_NEW(p->arena, kn_loop *);
    s->orelse.at[0] = parse_if(p, inner);
    s->orelse.n = 1;
    kn_lex_leave(&p->lx);
    return s;
}

static kn_loop *parse_let(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_LET, loc);
    s->name = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, ":");
    s->type = kn_parse_dtype(&p->lx);
    kn_lex_expect(&p->lx, "=");
    s->expr = parse_expr(p, s->type);
    declare(p, s->name, NULL, s->type);
    return s;
}

static kn_loop *parse_alloc(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_ALLOC, loc);
    parse_buffer(p, &s->buffer);
    s->buffer.space = parse_symbol(p);
    s->buffer.offset = parse_offset(p);
    declare(p, s->buffer.name, &s->buffer, s->buffer.type);
    return s;
}

static kn_loop *parse_view(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_VIEW, loc);
    parse_buffer(p, &s->buffer);
    kn_lex_expect(&p->lx, "=");
    p->loc = p->lx.token.loc;
    s->name = kn_lex_name(&p->lx);
    s->buffer.space = find(p, s->name, true)->buffer->space;
    s->buffer.offset = parse_offset(p);
    declare(p, s->buffer.name, &s->buffer, s->buffer.type);
    return s;
}

/* &buffer[subs], with the & taken. */
static const kn_expr *parse_element(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    const kn_expr *e = kn_parse_expr(&p->lx);
    p->loc = loc;
    if (e->kind != KN_E_LOAD)
        fail(p, "expected a buffer's element after `&`");
    return type_load(p, e);
}

/* The name of a buffer, alone: all of it. */
static const kn_expr *parse_whole(parser *p)
{
    if (p->lx.token.kind != KN_T_NAME)
        return NULL;
    const kn_name *n = kn_scope_find(&p->scope, p->lx.token.text);
    const kn_token *ahead = kn_lex_peek(&p->lx);
    if (!n || !n->buffer || ahead->kind != KN_T_PUNCT ||
        (strcmp(ahead->text, ",") != 0 && strcmp(ahead->text, ")") != 0))
        return NULL;
    const kn_expr *e = kn_load(p->arena, n->type, n->name, NULL, 0);
    kn_lex_next(&p->lx);
    return e;
}

static const kn_expr *parse_arg(parser *p, const kn_param *param)
{
    const kn_expr *e = parse_whole(p);
    if (e)
        return e;
    if (kn_lex_accept(&p->lx, "&"))
        return parse_element(p);
    kn_loc loc = p->lx.token.loc;
    e = kn_parse_expr(&p->lx);
    p->loc = loc;
    if (e->kind == KN_E_LOAD)
        fail(p,
             "a bare load as argument: write `&%s[...]` for a buffer, or bind the scalar with let",
             e->name);
    bool scalar = param && param->mode == KN_PARAM_SCALAR;
    return typed_as(p, e, loc, scalar ? param->buffer.type : KN_UNTYPED);
}

static kn_loop *parse_call(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_CALL, loc);
    KN_VEC(const kn_expr *) args = {0};
    s->name = kn_lex_name(&p->lx);
    const kn_func *callee = p->module ? kn_module_find(p->module, s->name) : NULL;
    kn_lex_expect(&p->lx, "(");
    while (!kn_lex_accept(&p->lx, ")")) {
        if (args.n)
            kn_lex_expect(&p->lx, ",");
        bool known = callee && args.n < callee->nparams;
        const kn_expr *e = parse_arg(p, known ? &callee->params[args.n] : NULL);
        kn_push(p->arena, &args, e);
    }
    s->args = args.at;
    s->nargs = args.n;
    return s;
}

static kn_loop *parse_check(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_CHECK, loc);
    s->expr = parse_expr(p, KN_BOOL);
    if (p->lx.token.kind != KN_T_STRING)
        expected(p, "a message in quotes");
    s->name = p->lx.token.text;
    kn_lex_next(&p->lx);
    return s;
}

static kn_update parse_update(parser *p)
{
    static const kn_update updates[] = {KN_SET, KN_ADD, KN_MUL, KN_MAX, KN_MIN};
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        if (kn_lex_accept(&p->lx, kn_update_text(updates[i])))
            return updates[i];
    }
    expected(p, "`=`, `+=`, `*=`, `max=` or `min=`");
}

static kn_loop *parse_store(parser *p, kn_loc loc)
{
    kn_loop *s = make(p, KN_S_STORE, loc);
    const kn_expr *subs[KN_MAX_RANK];
    p->loc = loc;
    s->name = kn_lex_name(&p->lx);
    const kn_name *target = find(p, s->name, true);
    kn_dtype type = target->type;
    int rank = target->buffer->rank;
    kn_lex_expect(&p->lx, "[");
    while (!kn_lex_accept(&p->lx, "]")) {
        if (s->nargs)
            kn_lex_expect(&p->lx, ",");
        if (s->nargs == KN_MAX_RANK)
            kn_lex_fail(&p->lx, "more than %d subscripts", KN_MAX_RANK);
        subs[s->nargs++] = parse_expr(p, KN_INDEX);
    }
    p->loc = loc;
    if (s->nargs != rank)
        fail(p, "`%s` has %d dimensions, not %d", s->name, rank, s->nargs);
    const kn_expr **args = KN_ARRAY(p->arena, const kn_expr *, s->nargs);
    for (int i = 0; i < s->nargs; i++)
        args[i] = subs[i];
    s->args = args;
    s->op = parse_update(p);
    s->expr = parse_expr(p, type);
    return s;
}

static const struct {
    const char *keyword;
    kn_loop *(*parse)(parser *p, kn_loc loc);
} statements[] = {{"for", parse_for},     {"if", parse_if},     {"let", parse_let},
                  {"alloc", parse_alloc}, {"view", parse_view}, {"call", parse_call},
                  {"check", parse_check}};

static kn_loop *parse_stmt(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    if (p->lx.token.kind != KN_T_NAME)
        expected(p, "a statement");
    const kn_token *ahead = kn_lex_peek(&p->lx);
    bool store = ahead->kind == KN_T_PUNCT && strcmp(ahead->text, "[") == 0;
    for (size_t i = 0; !store && i < sizeof statements / sizeof statements[0]; i++) {
        if (kn_lex_accept(&p->lx, statements[i].keyword))
            return statements[i].parse(p, loc);
    }
    return parse_store(p, loc);
}

static kn_block parse_block(parser *p)
{
    kn_block_builder b = {.arena = p->arena};
    int mark = p->scope.n;
    kn_lex_expect(&p->lx, "{");
    kn_lex_enter(&p->lx);
    while (!kn_lex_is(&p->lx, "}"))
        kn_block_add(&b, parse_stmt(p));
    kn_lex_leave(&p->lx);
    kn_lex_next(&p->lx);
    p->scope.n = mark;
    return kn_block_done(&b);
}

/* ---- Functions ---- */

static kn_param_mode parse_param_mode(parser *p)
{
    static const kn_param_mode modes[] = {KN_PARAM_IN, KN_PARAM_OUT, KN_PARAM_INOUT,
                                          KN_PARAM_CONST};
    if (kn_lex_peek(&p->lx)->kind != KN_T_NAME)
        return KN_PARAM_SCALAR;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (kn_lex_accept(&p->lx, kn_param_mode_text(modes[i])))
            return modes[i];
    }
    return KN_PARAM_SCALAR;
}

static void parse_scalar_param(parser *p, kn_param *out)
{
    out->buffer.name = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, ":");
    out->buffer.type = kn_parse_dtype(&p->lx);
    out->lo = INT64_MIN;
    out->hi = INT64_MAX;
    if (out->buffer.type == KN_INDEX && kn_lex_accept(&p->lx, "in")) {
        out->lo = kn_lex_int(&p->lx);
        kn_lex_expect(&p->lx, ":");
        out->hi = kn_lex_int(&p->lx);
    }
}

static kn_param *parse_param(parser *p)
{
    kn_param *out = KN_NEW(p->arena, kn_param);
    out->mode = parse_param_mode(p);
    if (out->mode == KN_PARAM_SCALAR) {
        parse_scalar_param(p, out);
        declare(p, out->buffer.name, NULL, out->buffer.type);
        return out;
    }
    parse_buffer(p, &out->buffer);
    out->buffer.space = parse_symbol(p);
    if (kn_lex_accept(&p->lx, "aliases"))
        out->alias = kn_lex_name(&p->lx);
    declare(p, out->buffer.name, &out->buffer, out->buffer.type);
    return out;
}

static void parse_params(parser *p, kn_func *f)
{
    KN_VEC(kn_param *) params = {0};
    kn_lex_expect(&p->lx, "(");
    while (!kn_lex_accept(&p->lx, ")")) {
        if (params.n)
            kn_lex_expect(&p->lx, ",");
        kn_param *param = parse_param(p);
        kn_push(p->arena, &params, param);
    }
    f->nparams = params.n;
    f->params = KN_ARRAY(p->arena, kn_param, params.n);
    for (int i = 0; i < params.n; i++)
        f->params[i] = *params.at[i];
}

static kn_func *parse_func(parser *p)
{
    kn_func *f = KN_NEW(p->arena, kn_func);
    f->loc = p->lx.token.loc;
    p->scope.n = 0;
    kn_lex_expect(&p->lx, "func");
    f->name = parse_symbol(p);
    parse_params(p, f);
    if (kn_lex_accept(&p->lx, "workspace"))
        f->workspace = parse_expr(p, KN_INDEX);
    f->body = parse_block(p);
    return f;
}

static void expect_end(parser *p)
{
    if (p->lx.token.kind != KN_T_END)
        expected(p, "the end of the text");
}

kn_func *kn_func_parse(kn_arena *a, const char *file, const char *text, size_t n, kn_loc loc)
{
    parser p = {.arena = a};
    kn_lex_init(&p.lx, a, file, text, n, loc);
    kn_func *f = parse_func(&p);
    expect_end(&p);
    return f;
}

/* A target's name may hold dashes: npu-edge. */
static const char *parse_target(parser *p)
{
    const char *start = p->lx.token.start, *stop = p->lx.token.stop;
    kn_lex_name(&p->lx);
    while (kn_lex_accept(&p->lx, "-")) {
        if (p->lx.token.kind != KN_T_NAME && p->lx.token.kind != KN_T_INT)
            expected(p, "more of the target's name");
        stop = p->lx.token.stop;
        kn_lex_next(&p->lx);
    }
    return kn_intern_n(p->lx.ctx, start, (size_t)(stop - start));
}

kn_module *kn_module_parse(kn_arena *a, const char *file, const char *text, size_t n)
{
    parser p = {.arena = a, .module = KN_NEW(a, kn_module)};
    kn_module *m = p.module;
    KN_VEC(kn_func *) funcs = {0};
    m->arena = a;
    kn_lex_init(&p.lx, a, file, text, n, kn_loc_none());
    m->loc = p.lx.token.loc;
    kn_lex_expect(&p.lx, "module");
    m->name = parse_symbol(&p);
    if (kn_lex_accept(&p.lx, "for"))
        m->target = parse_target(&p);
    kn_lex_expect(&p.lx, "{");
    while (!kn_lex_accept(&p.lx, "}")) {
        kn_func *f = parse_func(&p);
        kn_push(a, &funcs, f);
        m->funcs = funcs.at;
        m->nfuncs = funcs.n;
    }
    expect_end(&p);
    return m;
}
