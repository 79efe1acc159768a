/* What is known of a function's parameters from all of its calls: ranges of indices, so that most
   of the index arithmetic is seen not to overflow and prints as plain operators, and which buffers
   may share memory, so that the others are `restrict`. Callers come before callees here, so one
   walk over each function is enough. Then the questions about buffers, names and constants that C
   and LLVM answer alike. */
#include "codegen/facts.h"

#include <stdio.h>

enum { MAX_LOCAL_BYTES = 1 << 20, WEIGHT_ALIGN = 64 };

void kn_cg_fail(const kn_facts *f, kn_status status, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *where = f->func ? f->func->func->name : f->module->name;
    kn_raise(f->ctx, status, f->loc, "%s for %s: %s", f->language, where, text);
}

/* ---- Ranges ---- */

bool kn_cg_is_finite(kn_range r)
{
    return r.lo > INT64_MIN && r.hi < INT64_MAX;
}

kn_range kn_cg_range(const kn_facts *f, const kn_expr *e)
{
    return kn_index_range(e, f->bounds.at, f->bounds.n);
}

kn_range kn_cg_loop_range(const kn_facts *f, const kn_loop *s)
{
    kn_range lo = kn_cg_range(f, s->lo), hi = kn_cg_range(f, s->hi);
    return (kn_range){lo.lo, kn_cg_is_finite(hi) ? hi.hi - 1 : hi.hi};
}

static kn_range hull(kn_range x, kn_range y)
{
    return (kn_range){x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
}

kn_range kn_cg_param_range(const kn_cg_func *f, int param)
{
    const kn_param *p = &f->func->params[param];
    kn_range r = f->called ? f->ranges[param] : (kn_range){INT64_MIN, INT64_MAX};
    return (kn_range){r.lo > p->lo ? r.lo : p->lo, r.hi < p->hi ? r.hi : p->hi};
}

bool kn_cg_is_checked(const kn_cg_func *f, int param)
{
    const kn_param *p = &f->func->params[param];
    bool kept = f->ranges[param].lo >= p->lo && f->ranges[param].hi <= p->hi;
    return p->mode == KN_PARAM_SCALAR && p->buffer.type == KN_INDEX && !kept;
}

/* ---- Reachable functions ---- */

int kn_cg_find(const kn_facts *f, const char *callee)
{
    const kn_func *func = kn_module_callee(f->module, callee);
    for (int i = 0; i < f->funcs.n; i++) {
        if (f->funcs.at[i]->func == func)
            return i;
    }
    return -1;
}

int kn_cg_callee(const kn_facts *f, const kn_loop *call)
{
    int i = kn_cg_find(f, call->name);
    if (i < 0 || f->funcs.at[i]->func->nparams != call->nargs)
        kn_cg_fail(f, KN_INTERNAL, "a call of `%s` that does not fit it", call->name);
    return i;
}

static void collect_block(kn_facts *f, const kn_block *b, int depth);

static void collect(kn_facts *f, const kn_func *func, int depth)
{
    if (depth > KN_MAX_NESTING)
        kn_cg_fail(f, KN_INTERNAL, "function %s calls itself, or calls are nested too deep",
                   func->name);
    collect_block(f, &func->body, depth + 1);
    kn_cg_func *r = KN_NEW(f->arena, kn_cg_func);
    r->func = func;
    r->ranges = KN_ARRAY(f->arena, kn_range, func->nparams);
    r->storage = KN_ARRAY(f->arena, int, func->nparams);
    for (int i = 0; i < func->nparams; i++)
        r->storage[i] = i;
    kn_push(f->arena, &f->funcs, r);
}

static void collect_call(kn_facts *f, const kn_loop *s, int depth)
{
    const kn_func *callee = kn_module_callee(f->module, s->name);
    f->loc = s->loc;
    if (!callee)
        kn_cg_fail(f, KN_UNSUPPORTED, "call of `%s`, of which no meaning is known", s->name);
    if (kn_cg_find(f, s->name) < 0)
        collect(f, callee, depth);
}

static void collect_block(kn_facts *f, const kn_block *b, int depth)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        if (s->kind == KN_S_CALL)
            collect_call(f, s, depth);
        collect_block(f, &s->body, depth);
        collect_block(f, &s->orelse, depth);
    }
}

/* ---- The walk over one function ---- */

/* A buffer in scope, and the memory that it lies in: a parameter's number, or a fresh one. */
typedef struct {
    const char *name;
    int storage;
} place;

typedef struct {
    kn_facts *facts; /* with the bounds in scope */
    KN_VEC(place) places;
    int fresh;
} walk;

static void add_place(walk *w, const char *name, int storage)
{
    place p = {name, storage};
    kn_push(w->facts->arena, &w->places, p);
}

static int storage_of(const walk *w, const char *name)
{
    for (int i = w->places.n - 1; i >= 0; i--) {
        if (strcmp(w->places.at[i].name, name) == 0)
            return w->places.at[i].storage;
    }
    return -1;
}

static void add_bounds(walk *w, const char *name, kn_range r)
{
    kn_size size = {name, r.lo, r.hi};
    kn_push(w->facts->arena, &w->facts->bounds, size);
}

static void share(kn_cg_func *f, int i, int j)
{
    int from = f->storage[j], to = f->storage[i];
    for (int k = 0; k < f->func->nparams; k++) {
        if (f->storage[k] == from)
            f->storage[k] = to;
    }
}

/* Two of an argument list that lie in one memory. */
static void join_storage(walk *w, kn_cg_func *f, const kn_loop *s)
{
    int *storage = KN_ARRAY(w->facts->arena, int, s->nargs);
    for (int i = 0; i < s->nargs; i++) {
        bool scalar = f->func->params[i].mode == KN_PARAM_SCALAR;
        storage[i] = scalar ? -1 : storage_of(w, s->args[i]->name);
        for (int j = 0; j < i && !scalar; j++) {
            if (storage[i] == storage[j])
                share(f, j, i);
        }
    }
}

static void join_call(walk *w, const kn_loop *s)
{
    w->facts->loc = s->loc;
    kn_cg_func *f = w->facts->funcs.at[kn_cg_callee(w->facts, s)];
    for (int i = 0; i < s->nargs; i++) {
        kn_range r = {0, 0};
        if (f->func->params[i].mode == KN_PARAM_SCALAR)
            r = kn_cg_range(w->facts, s->args[i]);
        f->ranges[i] = f->called ? hull(f->ranges[i], r) : r;
    }
    join_storage(w, f, s);
    f->called = true;
}

static void walk_block(walk *w, const kn_block *b);

static void walk_stmt(walk *w, const kn_loop *s)
{
    switch (s->kind) {
    case KN_S_FOR: add_bounds(w, s->name, kn_cg_loop_range(w->facts, s)); break;
    case KN_S_LET:
        if (s->type == KN_INDEX)
            add_bounds(w, s->name, kn_cg_range(w->facts, s->expr));
        return;
    case KN_S_ALLOC: add_place(w, s->buffer.name, w->fresh++); return;
    case KN_S_VIEW: add_place(w, s->buffer.name, storage_of(w, s->name)); return;
    case KN_S_CALL: join_call(w, s); return;
    case KN_S_IF:
    case KN_S_STORE:
    case KN_S_CHECK: break;
    }
    walk_block(w, &s->body);
    walk_block(w, &s->orelse);
    if (s->kind == KN_S_FOR)
        w->facts->bounds.n--;
}

static void walk_block(walk *w, const kn_block *b)
{
    int places = w->places.n, bounds = w->facts->bounds.n;
    for (int i = 0; i < b->n; i++)
        walk_stmt(w, b->at[i]);
    w->places.n = places;
    w->facts->bounds.n = bounds;
}

static void walk_func(kn_facts *facts, const kn_cg_func *f)
{
    walk w = {.facts = facts, .fresh = f->func->nparams};
    for (int i = 0; i < f->func->nparams; i++) {
        const kn_param *p = &f->func->params[i];
        bool aliased = p->alias && storage_of(&w, p->alias) >= 0;
        if (p->mode != KN_PARAM_SCALAR)
            add_place(&w, p->buffer.name, aliased ? storage_of(&w, p->alias) : f->storage[i]);
        else if (p->buffer.type == KN_INDEX)
            add_bounds(&w, p->buffer.name, kn_cg_param_range(f, i));
    }
    walk_block(&w, &f->func->body);
    facts->bounds.n = 0;
}

kn_facts kn_cg_facts(kn_arena *a, const kn_module *m, const char *language)
{
    kn_facts f = {.arena = a, .ctx = kn_arena_ctx(a), .module = m, .language = language};
    const kn_func *entry = kn_module_find(m, "main");
    if (!entry)
        kn_cg_fail(&f, KN_INVALID, "module %s has no function main", m->name);
    collect(&f, entry, 0);
    for (int i = f.funcs.n - 1; i >= 0; i--)
        walk_func(&f, f.funcs.at[i]);
    f.loc = kn_loc_none();
    return f;
}

/* ---- Aliasing ---- */

static bool is_written(const kn_param *p)
{
    return p->mode == KN_PARAM_OUT || p->mode == KN_PARAM_INOUT;
}

bool kn_cg_restrict(const kn_cg_func *f, int param)
{
    const kn_param *params = f->func->params;
    for (int i = 0; i < f->func->nparams; i++) {
        bool other = i != param && params[i].mode != KN_PARAM_SCALAR;
        if (other && f->storage[i] == f->storage[param] &&
            (is_written(&params[i]) || is_written(&params[param])))
            return false;
    }
    return true;
}

/* ---- Constants ---- */

const kn_expr *kn_cg_fold(kn_arena *a, const kn_expr *e)
{
    enum { FEW = 4 };
    const kn_expr *few[FEW], **args = few;
    bool constant = e->kind == KN_E_OP || e->kind == KN_E_CAST;
    if (e->nargs == 0)
        return e;
    if (e->nargs > FEW)
        args = KN_ARRAY(a, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++) {
        args[i] = kn_cg_fold(a, e->args[i]);
        constant = constant && args[i]->kind == KN_E_CONST;
    }
    const kn_expr *r = kn_expr_with(a, e, e->type, args);
    const kn_expr *value = constant ? kn_expr_fold(a, r) : NULL;
    return value ? value : r;
}

/* ---- Buffers ---- */

/* -1 when the shape is not constant, or too large. */
static int64_t constant_bytes(kn_arena *a, const kn_buffer *b)
{
    int64_t count;
    if (!kn_index_const(kn_index_product(a, b->shape, b->rank), &count) || count < 0)
        return -1;
    return kn_dtype_bytes(b->type, count);
}

int64_t kn_cg_local_count(const kn_facts *f, const kn_buffer *b)
{
    int64_t bytes = constant_bytes(f->arena, b);
    if (bytes < 0 || bytes > MAX_LOCAL_BYTES)
        kn_cg_fail(f, KN_UNSUPPORTED, "`%s` in @%s is not of constant size up to %d bytes", b->name,
                   b->space, MAX_LOCAL_BYTES);
    return kn_cg_is_packed(b->type) ? bytes : bytes / (kn_dtype_bits(b->type) / 8);
}

bool kn_cg_is_even(kn_arena *a, const kn_buffer *b, const kn_expr *const *subs, int nsubs)
{
    enum { CAP = 32 };
    int64_t constant, coef[CAP];
    const kn_expr *term[CAP];
    const kn_expr *e = kn_index(a, 0);
    for (int i = 0; i < nsubs; i++) {
        if (i > 0)
            e = kn_index_mul(a, e, b->shape[i]);
        e = kn_index_add(a, e, subs[i]);
    }
    int terms = kn_index_terms(a, e, &constant, coef, term, CAP);
    bool even = terms >= 0 && constant % 2 == 0;
    for (int i = 0; i < terms; i++)
        even = even && coef[i] % 2 == 0;
    return even;
}

kn_cg_weight *kn_cg_layout(kn_arena *a, const kn_module *m, int *n)
{
    const kn_func *f = kn_module_find(m, "main");
    KN_VEC(kn_cg_weight) list = {0};
    int64_t end = 0;
    for (int i = 0; f && i < f->nparams; i++) {
        const kn_buffer *b = &f->params[i].buffer;
        if (f->params[i].mode != KN_PARAM_CONST)
            continue;
        kn_cg_weight w = {.offset = (end + WEIGHT_ALIGN - 1) / WEIGHT_ALIGN * WEIGHT_ALIGN,
                          .bytes = constant_bytes(a, b)};
        if (w.bytes < 0)
            kn_raise(kn_arena_ctx(a), KN_INTERNAL, kn_loc_none(),
                     "constant %s of module %s has no constant size", b->name, m->name);
        end = w.offset + w.bytes;
        kn_push(a, &list, w);
    }
    *n = list.n;
    return list.at;
}

/* ---- Names ---- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool kn_cg_is_prefix(const char *s)
{
    bool plain = is_letter(s[0]) && strcmp(s, "npu") != 0;
    for (; plain && *s; s++)
        plain = is_letter(*s) || (*s >= '0' && *s <= '9') || *s == '_';
    return plain;
}
