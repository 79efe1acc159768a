/* What is known of a function's parameters from all of its calls: ranges of indices, so that most
   of the index arithmetic is seen not to overflow and prints as plain operators, and which buffers
   may share memory, so that the others are `restrict`. Callers come before callees here, so one
   walk over each function is enough. */
#include "codegen/c_internal.h"

/* ---- Ranges ---- */

bool kn_c_is_finite(kn_range r)
{
    return r.lo > INT64_MIN && r.hi < INT64_MAX;
}

kn_range kn_c_range(const c_emitter *c, const kn_expr *e)
{
    return kn_index_range(e, c->bounds.at, c->bounds.n);
}

kn_range kn_c_loop_range(const c_emitter *c, const kn_loop *s)
{
    kn_range lo = kn_c_range(c, s->lo), hi = kn_c_range(c, s->hi);
    return (kn_range){lo.lo, kn_c_is_finite(hi) ? hi.hi - 1 : hi.hi};
}

static kn_range hull(kn_range x, kn_range y)
{
    return (kn_range){x.lo < y.lo ? x.lo : y.lo, x.hi > y.hi ? x.hi : y.hi};
}

/* ---- Reachable functions ---- */

c_func *kn_c_find_function(const c_emitter *c, const char *callee)
{
    const kn_func *f = kn_module_callee(c->module, callee);
    for (int i = 0; i < c->funcs.n; i++) {
        if (c->funcs.at[i]->func == f)
            return c->funcs.at[i];
    }
    return NULL;
}

static void collect_block(c_emitter *c, const kn_block *b, int depth);

static void collect(c_emitter *c, const kn_func *f, int depth)
{
    if (depth > KN_MAX_NESTING)
        kn_c_fail(c, KN_INTERNAL, "function %s calls itself, or calls are nested too deep",
                  f->name);
    collect_block(c, &f->body, depth + 1);
    c_func *r = KN_NEW(c->arena, c_func);
    r->func = f;
    r->ranges = KN_ARRAY(c->arena, kn_range, f->nparams);
    r->storage = KN_ARRAY(c->arena, int, f->nparams);
    for (int i = 0; i < f->nparams; i++)
        r->storage[i] = i;
    kn_push(c->arena, &c->funcs, r);
}

static void collect_call(c_emitter *c, const kn_loop *s, int depth)
{
    const kn_func *callee = kn_module_callee(c->module, s->name);
    c->loc = s->loc;
    if (!callee)
        kn_c_fail(c, KN_UNSUPPORTED, "call of `%s`, of which no meaning is known", s->name);
    if (!kn_c_find_function(c, s->name))
        collect(c, callee, depth);
}

static void collect_block(c_emitter *c, const kn_block *b, int depth)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        if (s->kind == KN_S_CALL)
            collect_call(c, s, depth);
        collect_block(c, &s->body, depth);
        collect_block(c, &s->orelse, depth);
    }
}

/* ---- The walk over one function ---- */

/* A buffer in scope, and the memory that it lies in: a parameter's number, or a fresh one. */
typedef struct {
    const char *name;
    int storage;
} place;

typedef struct {
    c_emitter *c; /* bounds */
    KN_VEC(place) places;
    int fresh;
} walk;

static void add_place(walk *w, const char *name, int storage)
{
    place p = {name, storage};
    kn_push(w->c->arena, &w->places, p);
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
    kn_push(w->c->arena, &w->c->bounds, size);
}

static void share(c_func *f, int i, int j)
{
    int from = f->storage[j], to = f->storage[i];
    for (int k = 0; k < f->func->nparams; k++) {
        if (f->storage[k] == from)
            f->storage[k] = to;
    }
}

/* Two of an argument list that lie in one memory. */
static void join_storage(walk *w, c_func *f, const kn_loop *s)
{
    int *storage = KN_ARRAY(w->c->arena, int, s->nargs);
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
    c_func *f = kn_c_find_function(w->c, s->name);
    if (f->func->nparams != s->nargs) {
        w->c->loc = s->loc;
        kn_c_fail(w->c, KN_INTERNAL, "a call of `%s` that does not fit it", s->name);
    }
    for (int i = 0; i < s->nargs; i++) {
        kn_range r = {0, 0};
        if (f->func->params[i].mode == KN_PARAM_SCALAR)
            r = kn_c_range(w->c, s->args[i]);
        f->ranges[i] = f->called ? hull(f->ranges[i], r) : r;
    }
    join_storage(w, f, s);
    f->called = true;
}

static void walk_block(walk *w, const kn_block *b);

static void walk_stmt(walk *w, const kn_loop *s)
{
    switch (s->kind) {
    case KN_S_FOR: add_bounds(w, s->name, kn_c_loop_range(w->c, s)); break;
    case KN_S_LET:
        if (s->type == KN_INDEX)
            add_bounds(w, s->name, kn_c_range(w->c, s->expr));
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
        w->c->bounds.n--;
}

static void walk_block(walk *w, const kn_block *b)
{
    int places = w->places.n, bounds = w->c->bounds.n;
    for (int i = 0; i < b->n; i++)
        walk_stmt(w, b->at[i]);
    w->places.n = places;
    w->c->bounds.n = bounds;
}

/* What the calls say, cut by what the function itself demands. */
static kn_range param_range(const c_func *f, int i)
{
    const kn_param *p = &f->func->params[i];
    kn_range r = f->called ? f->ranges[i] : (kn_range){INT64_MIN, INT64_MAX};
    if (r.lo < p->lo)
        r.lo = p->lo;
    if (r.hi > p->hi)
        r.hi = p->hi;
    return r;
}

static void walk_func(c_emitter *c, c_func *f)
{
    walk w = {.c = c, .fresh = f->func->nparams};
    for (int i = 0; i < f->func->nparams; i++) {
        const kn_param *p = &f->func->params[i];
        bool aliased = p->alias && storage_of(&w, p->alias) >= 0;
        if (p->mode != KN_PARAM_SCALAR)
            add_place(&w, p->buffer.name, aliased ? storage_of(&w, p->alias) : f->storage[i]);
        else if (p->buffer.type == KN_INDEX)
            add_bounds(&w, p->buffer.name, param_range(f, i));
    }
    walk_block(&w, &f->func->body);
    c->bounds.n = 0;
}

void kn_c_find_functions(c_emitter *c)
{
    const kn_func *entry = kn_module_find(c->module, "main");
    if (!entry)
        kn_c_fail(c, KN_INVALID, "module %s has no function main", c->module->name);
    collect(c, entry, 0);
    for (int i = c->funcs.n - 1; i >= 0; i--)
        walk_func(c, c->funcs.at[i]);
}

/* ---- Aliasing ---- */

static bool is_written(const kn_param *p)
{
    return p->mode == KN_PARAM_OUT || p->mode == KN_PARAM_INOUT;
}

bool kn_c_restrict(const c_func *f, int param)
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
