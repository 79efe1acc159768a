/* The loop IR's meaning, once more: a walk over the tree, one value at a time, that knows nothing
   of what the interpreter does to be fast. Buffers are arrays of kn_number. No calls. What goes
   wrong stops the walk: `failed`. */
#ifndef KN_TESTS_LOOP_WALK_H
#define KN_TESTS_LOOP_WALK_H

#include "element.h"
#include "loop_help.h"

#include <stdlib.h>

typedef struct {
    const char *name;
    kn_number value; /* of a scalar */
    kn_dtype type;
    kn_number *at; /* of a buffer: its elements; NULL: a scalar */
    int rank;
    int64_t shape[KN_MAX_RANK], size;
} walk_name;

typedef struct {
    kn_arena *arena;
    KN_VEC(walk_name) scope;
    bool failed;
    long steps; /* left */
} walk;

static inline walk_name *walk_find(walk *w, const char *name)
{
    for (int i = w->scope.n - 1; i >= 0; i--)
        if (strcmp(w->scope.at[i].name, name) == 0)
            return &w->scope.at[i];
    abort();
}

static inline kn_number walk_expr(walk *w, const kn_expr *e);

/* The element's place, or -1. */
static inline int64_t walk_element(walk *w, const char *name, const kn_expr *const *subs)
{
    int rank = walk_find(w, name)->rank;
    int64_t at = 0;
    bool outside = false;
    for (int i = 0; i < rank && !w->failed; i++) {
        int64_t sub = walk_expr(w, subs[i]).i, extent = walk_find(w, name)->shape[i];
        outside |= sub < 0 || sub >= extent;
        at = at * extent + sub;
    }
    w->failed |= outside;
    return w->failed ? -1 : at;
}

static inline kn_number walk_op(walk *w, const kn_expr *e)
{
    kn_number args[3] = {{0}};
    args[0] = walk_expr(w, e->args[0]);
    if (e->op == KN_OP_SELECT)
        return walk_expr(w, e->args[args[0].i ? 1 : 2]);
    if ((e->op == KN_OP_LAND && !args[0].i) || (e->op == KN_OP_LOR && args[0].i))
        return args[0];
    for (int i = 1; i < e->nargs; i++)
        args[i] = walk_expr(w, e->args[i]);
    return kn_number_op(e->op, e->args[0]->type, args);
}

static inline kn_number walk_expr(walk *w, const kn_expr *e)
{
    kn_number zero = {0};
    if (w->failed)
        return zero;
    switch (e->kind) {
    case KN_E_CONST: return (kn_number){e->i, e->f};
    case KN_E_VAR: return walk_find(w, e->name)->value;
    case KN_E_LOAD: {
        int64_t at = walk_element(w, e->name, e->args);
        return at < 0 ? zero : walk_find(w, e->name)->at[at];
    }
    case KN_E_OP: return walk_op(w, e);
    case KN_E_CAST:
        return kn_number_cast(e->mode, e->args[0]->type, e->type, walk_expr(w, e->args[0]));
    }
    return zero;
}

static inline void walk_block(walk *w, const kn_block *b);

static inline void walk_declare(walk *w, const kn_buffer *b, kn_number *at)
{
    walk_name n = {.name = b->name, .type = b->type, .rank = b->rank, .size = 1};
    for (int i = 0; i < b->rank; i++) {
        n.shape[i] = walk_expr(w, b->shape[i]).i;
        w->failed |= n.shape[i] < 0;
        n.size *= n.shape[i];
    }
    if (w->failed)
        return;
    unsigned char garbage[8];
    memset(garbage, 0xA5, sizeof garbage);
    n.at = at ? at : KN_ARRAY(w->arena, kn_number, n.size);
    for (int64_t i = 0; !at && i < n.size; i++)
        n.at[i] = get_element(b->type, garbage, kn_dtype_bits(b->type) == 4 ? i % 2 : 0);
    kn_push(w->arena, &w->scope, n);
}

static inline void walk_store(walk *w, const kn_loop *s)
{
    static const kn_scalar ops[] = {KN_OP_ADD, KN_OP_ADD, KN_OP_MUL, KN_OP_MAX, KN_OP_MIN};
    kn_number args[2];
    args[1] = walk_expr(w, s->expr);
    int64_t at = walk_element(w, s->name, s->args);
    if (w->failed)
        return;
    walk_name *b = walk_find(w, s->name);
    args[0] = b->at[at];
    b->at[at] = s->op == KN_SET ? args[1] : kn_number_op(ops[s->op], b->type, args);
}

static inline void walk_for(walk *w, const kn_loop *s)
{
    int64_t lo = walk_expr(w, s->lo).i, hi = walk_expr(w, s->hi).i;
    int mark = w->scope.n;
    for (int64_t i = lo; i < hi && !w->failed; i += s->step) {
        walk_name n = {.name = s->name, .type = KN_INDEX, .value = {.i = i}};
        w->failed |= w->steps-- <= 0;
        kn_push(w->arena, &w->scope, n);
        walk_block(w, &s->body);
        w->scope.n = mark;
    }
}

static inline void walk_stmt(walk *w, const kn_loop *s)
{
    walk_name n = {.name = s->name, .type = s->type};
    switch (s->kind) {
    case KN_S_FOR: walk_for(w, s); break;
    case KN_S_IF: walk_block(w, walk_expr(w, s->expr).i ? &s->body : &s->orelse); break;
    case KN_S_LET:
        n.value = walk_expr(w, s->expr);
        kn_push(w->arena, &w->scope, n);
        break;
    case KN_S_ALLOC: walk_declare(w, &s->buffer, NULL); break;
    case KN_S_VIEW: {
        int64_t offset = s->buffer.offset ? walk_expr(w, s->buffer.offset).i : 0;
        walk_name source = *walk_find(w, s->name);
        walk_declare(w, &s->buffer, source.at + (offset > 0 && offset <= source.size ? offset : 0));
        if (!w->failed)
            w->failed = offset < 0 || offset + w->scope.at[w->scope.n - 1].size > source.size;
        break;
    }
    case KN_S_STORE: walk_store(w, s); break;
    case KN_S_CALL: abort();
    case KN_S_CHECK: w->failed |= !walk_expr(w, s->expr).i; break;
    }
}

static inline void walk_block(walk *w, const kn_block *b)
{
    int mark = w->scope.n;
    for (int i = 0; i < b->n && !w->failed; i++)
        walk_stmt(w, b->at[i]);
    w->scope.n = mark;
}

#endif
