/* The loop IR's nodes: finding, building, and the small questions that its parser, verifier and
 * users share. */
#include "ir/loop_internal.h"

#include <assert.h>

/* ---- Finding ---- */

kn_func *kn_module_main(const kn_module *m)
{
    assert(m->nfuncs > 0);
    return m->funcs[m->nfuncs - 1];
}

kn_size *kn_func_sizes(kn_arena *a, const kn_func *f, int *n)
{
    kn_size *sizes = KN_ARRAY(a, kn_size, f->nparams + 1);
    *n = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR)
            sizes[(*n)++] = (kn_size){p->buffer.name, p->lo, p->hi};
    }
    return sizes;
}

kn_func *kn_module_find(const kn_module *m, const char *name)
{
    for (int i = 0; i < m->nfuncs; i++) {
        if (strcmp(m->funcs[i]->name, name) == 0)
            return m->funcs[i];
    }
    return NULL;
}

kn_func *kn_module_callee(const kn_module *m, const char *name)
{
    for (; m; m = m->library) {
        kn_func *f = kn_module_find(m, name);
        if (f)
            return f;
    }
    return NULL;
}

const kn_param *kn_func_param(const kn_func *f, const char *name)
{
    for (int i = 0; i < f->nparams; i++) {
        if (strcmp(f->params[i].buffer.name, name) == 0)
            return &f->params[i];
    }
    return NULL;
}

const kn_name *kn_scope_find(const kn_scope *s, const char *name)
{
    for (int i = s->n - 1; i >= 0; i--) {
        if (s->at[i].name == name || strcmp(s->at[i].name, name) == 0)
            return &s->at[i];
    }
    return NULL;
}

/* ---- Builders ---- */

static kn_loop *make(kn_arena *a, kn_loop_kind kind)
{
    kn_loop *s = KN_NEW(a, kn_loop);
    s->kind = kind;
    return s;
}

kn_loop *kn_loop_for(kn_arena *a, const char *var, const kn_expr *lo, const kn_expr *hi,
                     kn_block body)
{
    kn_loop *s = make(a, KN_S_FOR);
    s->name = var;
    s->lo = lo;
    s->hi = hi;
    s->step = 1;
    s->mode = KN_FOR_SERIAL;
    s->body = body;
    return s;
}

kn_loop *kn_loop_if(kn_arena *a, const kn_expr *cond, kn_block body, kn_block orelse)
{
    kn_loop *s = make(a, KN_S_IF);
    s->expr = cond;
    s->body = body;
    s->orelse = orelse;
    return s;
}

kn_loop *kn_loop_let(kn_arena *a, const char *name, kn_dtype type, const kn_expr *value)
{
    kn_loop *s = make(a, KN_S_LET);
    s->name = name;
    s->type = type;
    s->expr = value;
    return s;
}

kn_loop *kn_loop_alloc(kn_arena *a, kn_buffer buffer)
{
    kn_loop *s = make(a, KN_S_ALLOC);
    s->buffer = buffer;
    return s;
}

kn_loop *kn_loop_view(kn_arena *a, kn_buffer buffer, const char *source)
{
    kn_loop *s = make(a, KN_S_VIEW);
    s->buffer = buffer;
    s->name = source;
    return s;
}

static const kn_expr *const *copy_args(kn_arena *a, const kn_expr *const *args, int n)
{
    const kn_expr **copy = KN_ARRAY(a, const kn_expr *, n);
    for (int i = 0; i < n; i++)
        copy[i] = args[i];
    return copy;
}

kn_loop *kn_loop_store(kn_arena *a, const char *buffer, const kn_expr *const *subs, int n,
                       kn_update op, const kn_expr *value)
{
    kn_loop *s = make(a, KN_S_STORE);
    s->name = buffer;
    s->nargs = n;
    s->args = copy_args(a, subs, n);
    s->op = op;
    s->expr = value;
    return s;
}

kn_loop *kn_loop_call(kn_arena *a, const char *callee, const kn_expr *const *args, int n)
{
    kn_loop *s = make(a, KN_S_CALL);
    s->name = callee;
    s->nargs = n;
    s->args = copy_args(a, args, n);
    return s;
}

kn_loop *kn_loop_check(kn_arena *a, const kn_expr *cond, const char *message)
{
    kn_loop *s = make(a, KN_S_CHECK);
    s->name = message;
    s->expr = cond;
    return s;
}

void kn_block_add(kn_block_builder *b, kn_loop *s)
{
    kn_push(b->arena, b, s);
}

kn_block kn_block_done(const kn_block_builder *b)
{
    return (kn_block){b->at, b->n};
}

/* ---- Small questions ---- */

const char *kn_param_mode_text(kn_param_mode mode)
{
    static const char *const texts[] = {"", "in", "out", "inout", "const"};
    assert((unsigned)mode < sizeof texts / sizeof texts[0]);
    return texts[mode];
}

const char *kn_for_mode_text(kn_for_mode mode)
{
    static const char *const texts[] = {"", "parallel", "vector", "unroll"};
    assert((unsigned)mode < sizeof texts / sizeof texts[0]);
    return texts[mode];
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool is_plain(const char *name)
{
    if (!is_word(name[0]) || (name[0] >= '0' && name[0] <= '9'))
        return false;
    for (const char *c = name; *c; c++) {
        if (!is_word(*c) && !(*c == '.' && is_word(c[-1]) && is_word(c[1])))
            return false;
    }
    return true;
}

bool kn_loop_name_ok(const char *name)
{
    static const char *const words[] = {"inf", "nan", "true", "false", "else", "where", "in"};
    kn_dtype type;
    if (!is_plain(name) || kn_dtype_parse(name, strlen(name), &type))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(name, words[i]) == 0)
            return false;
    }
    return true;
}

bool kn_scalar_takes(kn_scalar op, kn_dtype type)
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

kn_dtype kn_scalar_result(kn_scalar op, kn_dtype type)
{
    kn_scalar_class class = kn_scalar_get(op)->class;
    return class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC ? KN_BOOL : type;
}

/* ---- Walks ---- */

static void visit(kn_loop *s, void (*fn)(void *, kn_loop *), void *env)
{
    fn(env, s);
    kn_block_visit(s->body, fn, env);
    kn_block_visit(s->orelse, fn, env);
}

void kn_block_visit(kn_block b, void (*fn)(void *env, kn_loop *s), void *env)
{
    for (int i = 0; i < b.n; i++)
        visit(b.at[i], fn, env);
}

typedef struct {
    void (*fn)(void *env, kn_buffer_use use);
    void *env;
} use_walk;

static void use_load(void *env, const kn_expr *e)
{
    const use_walk *w = env;
    if (e->kind == KN_E_LOAD)
        w->fn(w->env, (kn_buffer_use){e->name, e->args, e->nargs});
}

static void use_loads(use_walk *w, const kn_expr *const *list, int n)
{
    for (int i = 0; i < n; i++) {
        if (list[i])
            kn_expr_visit(list[i], use_load, w);
    }
}

static void use_statement(void *env, kn_loop *s)
{
    use_walk *w = env;
    use_loads(w, (const kn_expr *const[]){s->lo, s->hi, s->expr}, 3);
    use_loads(w, s->args, s->nargs);
    if (s->kind == KN_S_STORE)
        w->fn(w->env, (kn_buffer_use){s->name, s->args, s->nargs});
}

void kn_loop_uses(kn_loop *s, void (*fn)(void *env, kn_buffer_use use), void *env)
{
    use_walk w = {fn, env};
    visit(s, use_statement, &w);
}

typedef struct {
    kn_arena *arena;
    const kn_expr *(*fn)(void *env, const kn_expr *e);
    void *env;
} map_walk;

static const kn_expr *map_one(const map_walk *m, const kn_expr *e)
{
    return e ? m->fn(m->env, e) : NULL;
}

static const kn_expr *const *map_list(const map_walk *m, const kn_expr *const *list, int n)
{
    const kn_expr **out = n ? KN_ARRAY(m->arena, const kn_expr *, n) : NULL;
    for (int i = 0; i < n; i++)
        out[i] = map_one(m, list[i]);
    return out;
}

static void map_statement(void *env, kn_loop *s)
{
    const map_walk *m = env;
    s->lo = map_one(m, s->lo);
    s->hi = map_one(m, s->hi);
    s->expr = map_one(m, s->expr);
    s->args = map_list(m, s->args, s->nargs);
    s->buffer.shape = map_list(m, s->buffer.shape, s->buffer.rank);
    s->buffer.offset = map_one(m, s->buffer.offset);
}

void kn_block_map(kn_arena *a, kn_block b, const kn_expr *(*fn)(void *env, const kn_expr *e),
                  void *env)
{
    map_walk m = {a, fn, env};
    kn_block_visit(b, map_statement, &m);
}
