/* Functions and statements to the interpreter's code. An innermost loop is compiled twice where
   some subscripts could not be proved: once for when their ends turn out to be in range at its
   entry, once with a look at each access. */
#include "ir/interp_internal.h"

#include <assert.h>

enum { MAX_CALLS = 100, MAX_WRITTEN_OUT = 64 };

static int compile_func(kn_interp *in, const kn_func *f, int calls, kn_loc loc);
static void block(kn_compiler *c, const kn_block *b);

static kn_words *here(const kn_compiler *c)
{
    return &kn_region_here(c)->code;
}

static void bind_scalar(kn_compiler *c, const char *name, int reg)
{
    kn_bound b = {.name = name, .reg = reg};
    kn_push(c->arena, &c->scope, b);
}

/* ---- Buffers ---- */

static const kn_bound *bind_buffer(kn_compiler *c, const kn_buffer *buffer, int reg)
{
    kn_bound b = {.name = buffer->name, .reg = reg, .buffer = buffer};
    b.shape = KN_ARRAY(c->arena, const kn_expr *, buffer->rank);
    for (int i = 0; i < buffer->rank; i++)
        b.shape[i] = kn_symbolic_now(c, buffer->shape[i]);
    kn_push(c->arena, &c->scope, b);
    return &c->scope.at[c->scope.n - 1];
}

/* The number of elements when all of the shape is constant and sane, else -1. */
static int64_t constant_size(const kn_bound *b)
{
    const int64_t most = (int64_t)1 << 40;
    int64_t size = 1, extent;
    for (int i = 0; i < b->buffer->rank; i++) {
        if (!kn_index_const(b->shape[i], &extent) || extent < 0 || extent > most)
            return -1;
        size *= extent;
        if (size > most)
            return -1;
    }
    return size;
}

/* The register with a buffer's number of elements. */
static int size_of(kn_compiler *c, const kn_bound *b)
{
    int64_t size = constant_size(b);
    int n = b->buffer->rank;
    if (size >= 0)
        return kn_reg_int(c, size);
    int *exts = KN_ARRAY(c->interp->arena, int, n);
    for (int i = 0; i < n; i++)
        exts[i] = kn_compile_symbolic(c, b->shape[i]);
    int site = kn_site_new(c, (kn_site){.buffer = b->buffer, .n = n, .exts = exts});
    int d = kn_reg_new(c, kn_depth_here(c), 1);
    KN_EMIT(c, here(c), KN_I_EXTENTS, d, (int32_t)b->buffer->type, site, n);
    kn_words_put(c, here(c), exts, n);
    return d;
}

/* On chip: at its offset, or on top of what is in scope. */
static void space_alloc(kn_compiler *c, const kn_buffer *b, int reg, int space)
{
    int offset = b->offset ? kn_compile_expr(c, b->offset) : -1;
    int size = size_of(c, bind_buffer(c, b, reg));
    int site = kn_site_new(c, (kn_site){.buffer = b});
    KN_EMIT(c, here(c), KN_I_SPACE_ALLOC, reg, size, (int32_t)b->type, space, offset, site);
}

static void drop_allocs(kn_compiler *c, const kn_block *b)
{
    for (int i = b->n - 1; i >= 0; i--) {
        const kn_loop *s = b->at[i];
        int space = s->kind == KN_S_ALLOC ? kn_space_number(c->interp, s->buffer.space) : -1;
        if (space >= 0 && !s->buffer.offset)
            KN_EMIT(c, here(c), KN_I_SPACE_DROP, kn_bound_find(c, s->buffer.name)->reg, space);
    }
}

static void alloc_stmt(kn_compiler *c, const kn_loop *s)
{
    int reg = kn_reg_new(c, kn_depth_here(c), KN_BUFFER_REGS);
    int space = kn_space_number(c->interp, s->buffer.space);
    if (space >= 0) {
        space_alloc(c, &s->buffer, reg, space);
        return;
    }
    int size = size_of(c, bind_buffer(c, &s->buffer, reg));
    KN_EMIT(c, here(c), KN_I_ALLOC, reg, size, c->nstorage++, (int32_t)s->buffer.type);
}

static void view_stmt(kn_compiler *c, const kn_loop *s)
{
    int source = kn_bound_find(c, s->name)->reg;
    int offset = s->buffer.offset ? kn_compile_expr(c, s->buffer.offset) : kn_reg_int(c, 0);
    int reg = kn_reg_new(c, kn_depth_here(c), KN_BUFFER_REGS);
    int size = size_of(c, bind_buffer(c, &s->buffer, reg));
    int site = kn_site_new(c, (kn_site){.buffer = &s->buffer, .name = s->name});
    KN_EMIT(c, here(c), KN_I_VIEW, reg, source, offset, size, (int32_t)s->buffer.type, site);
}

/* ---- Simple statements ---- */

static void let_stmt(kn_compiler *c, const kn_loop *s)
{
    kn_bound b = {.name = s->name, .reg = -1};
    if (s->type == KN_INDEX && !kn_expr_has_load(s->expr)) {
        const kn_expr *value = kn_symbolic(c, s->expr);
        b.value = value->size <= MAX_WRITTEN_OUT ? value : NULL;
    }
    if (!b.value)
        b.reg = kn_compile_expr(c, s->expr);
    kn_push(c->arena, &c->scope, b);
}

/* A sum of products, as one instruction: it rounds as the two would. */
static bool is_product_sum(const kn_loop *s)
{
    const kn_expr *e = s->expr;
    return s->op == KN_ADD && e->kind == KN_E_OP && e->op == KN_OP_MUL &&
           (e->type == KN_F32 || e->type == KN_F64 || e->type == KN_I32);
}

static void store_stmt(kn_compiler *c, const kn_loop *s)
{
    kn_bound b = *kn_bound_find(c, s->name);
    int32_t type = (int32_t)b.buffer->type;
    bool always; /* it is: a statement stands under no guard */
    if (is_product_sum(s)) {
        int x = kn_compile_expr(c, s->expr->args[0]), y = kn_compile_expr(c, s->expr->args[1]);
        int element = kn_compile_element(c, &b, s->args, &always);
        kn_compile_write(c, &b, element, true);
        KN_EMIT(c, here(c), KN_I_STORE_PRODUCT + type, b.reg, element, x, y);
    } else {
        int value = kn_compile_expr(c, s->expr);
        int element = kn_compile_element(c, &b, s->args, &always);
        kn_compile_write(c, &b, element, s->op != KN_SET);
        KN_EMIT(c, here(c), KN_I_STORE + (int32_t)s->op * KN_DTYPE_COUNT + type, b.reg, element,
                value);
    }
    kn_values_stale(c);
}

static void assume(kn_compiler *c, const kn_expr *cond, bool holds)
{
    kn_known_assume(&c->known, kn_written_out(c, cond), holds);
}

static void check_stmt(kn_compiler *c, const kn_loop *s)
{
    int cond = kn_compile_expr(c, s->expr);
    int site = kn_site_new(c, (kn_site){.name = s->name});
    KN_EMIT(c, here(c), KN_I_CHECK, cond, site);
    assume(c, s->expr, true);
}

/* ---- Calls ---- */

static int buffer_arg(kn_compiler *c, const kn_expr *arg)
{
    kn_bound b = *kn_bound_find(c, arg->name);
    if (arg->nargs == 0)
        return b.reg;
    bool always;
    int element = kn_compile_element(c, &b, arg->args, &always);
    int reg = kn_reg_new(c, kn_depth_here(c), KN_BUFFER_REGS);
    KN_EMIT(c, here(c), KN_I_REST, reg, b.reg, element, (int32_t)b.buffer->type);
    return reg;
}

static void call_stmt(kn_compiler *c, const kn_loop *s)
{
    const kn_func *f = kn_module_callee(c->interp->module, s->name);
    KN_VEC(int32_t) regs = {0};
    if (!f)
        kn_raise(c->ctx, KN_INVALID, s->loc, "function %s: call of unknown function %s",
                 c->out->func->name, s->name);
    int number = compile_func(c->interp, f, c->calls + 1, s->loc);
    for (int i = 0; i < s->nargs; i++) {
        bool scalar = f->params[i].mode == KN_PARAM_SCALAR;
        int reg = scalar ? kn_compile_expr(c, s->args[i]) : buffer_arg(c, s->args[i]);
        for (int k = 0; k < (scalar ? 1 : KN_BUFFER_REGS); k++)
            kn_push(c->arena, &regs, reg + k);
    }
    KN_EMIT(c, here(c), KN_I_CALL, number, regs.n);
    kn_words_put(c, here(c), regs.at, regs.n);
    KN_EMIT(c, here(c), kn_site_new(c, (kn_site){.name = s->name}));
    kn_values_stale(c);
}

/* ---- Conditions ---- */

static const kn_region *branch(kn_compiler *c, const kn_expr *cond, bool holds, const kn_block *b)
{
    kn_known_mark mark = kn_known_here(&c->known);
    assume(c, cond, holds);
    kn_region_open(c);
    block(c, b);
    const kn_region *r = kn_region_close(c);
    kn_known_back(&c->known, mark);
    return r;
}

static void if_stmt(kn_compiler *c, const kn_loop *s)
{
    int cond = kn_compile_expr(c, s->expr);
    const kn_region *yes = branch(c, s->expr, true, &s->body);
    const kn_region *no = branch(c, s->expr, false, &s->orelse);
    kn_words *to = here(c);
    int over = no->code.n ? 2 : 0;
    kn_words_append(c, to, &yes->pre);
    kn_words_append(c, to, &no->pre);
    KN_EMIT(c, to, KN_I_JZERO, cond, 3 + yes->code.n + over);
    kn_words_append(c, to, &yes->code);
    if (over)
        KN_EMIT(c, to, KN_I_JUMP, over + no->code.n);
    kn_words_append(c, to, &no->code);
}

/* ---- Loops ---- */

static bool has_loop(const kn_block *b)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        if (s->kind == KN_S_FOR || has_loop(&s->body) || has_loop(&s->orelse))
            return true;
    }
    return false;
}

/* A loop being put together. */
typedef struct {
    const kn_loop *loop;
    const kn_expr *lo, *hi; /* symbolic */
    int var, first, last;   /* registers; last is exclusive */
} loop;

static const kn_region *body(kn_compiler *c, const loop *l)
{
    kn_known_mark mark = kn_known_here(&c->known);
    int scope = c->scope.n;
    kn_values_stale(c);
    kn_region_open(c);
    bind_scalar(c, l->loop->name, l->var);
    kn_known_span(&c->known, l->loop->name, l->lo, l->hi);
    block(c, &l->loop->body);
    c->scope.n = scope;
    kn_known_back(&c->known, mark);
    kn_values_stale(c);
    return kn_region_close(c);
}

/* From the jump back to the code that starts `n` words before. */
static void put_next(kn_compiler *c, kn_words *to, const loop *l, int n, const kn_inner *in)
{
    static const int32_t opcodes[] = {KN_I_NEXT, KN_I_NEXT1, KN_I_NEXT2, KN_I_NEXT3};
    int pointers = in ? in->pointers.n : 0;
    int step = kn_reg_int(c, l->loop->step);
    KN_EMIT(c, to, opcodes[pointers <= 3 ? pointers : 0], l->var, l->last, step, -n, pointers);
    for (int i = 0; i < pointers; i++)
        KN_EMIT(c, to, in->pointers.at[i].reg, in->pointers.at[i].increment);
}

static kn_words iterations(kn_compiler *c, const loop *l, const kn_region *r)
{
    kn_words w = {0};
    kn_words_append(c, &w, &r->code);
    put_next(c, &w, l, r->code.n, NULL);
    return w;
}

/* One version's iterations: its pointers are set, then it runs as a block as far as it can. */
static kn_words inner_iterations(kn_compiler *c, const loop *l, const kn_region *r,
                                 const kn_inner *in)
{
    enum { BLOCK_WORDS = 6 };
    kn_words w = {0}, next = {0};
    int step = kn_reg_int(c, l->loop->step);
    for (int i = 0; i < in->pointers.n; i++)
        KN_EMIT(c, &w, KN_I_MOVE, in->pointers.at[i].reg, in->pointers.at[i].base);
    put_next(c, &next, l, r->code.n, in);
    int block = kn_compile_block(c, &r->code, in, l->var, step);
    if (block >= 0)
        KN_EMIT(c, &w, KN_I_BLOCK, l->var, l->last, step, block, BLOCK_WORDS + r->code.n + next.n);
    kn_words_append(c, &w, &r->code);
    kn_words_append(c, &w, &next);
    return w;
}

/* How far the variable gets from its first value. */
static int span_of(kn_compiler *c, const loop *l)
{
    kn_arena *a = c->arena;
    const kn_expr *step = kn_index(a, l->loop->step);
    const kn_expr *span = kn_index_sub(a, kn_index_sub(a, l->hi, l->lo), kn_index(a, 1));
    if (l->loop->step != 1)
        span = kn_index_mul(a, kn_index_div(a, span, step), step);
    return kn_compile_symbolic(c, span);
}

static const kn_region *version(kn_compiler *c, const loop *l, kn_inner *in)
{
    c->inner = in;
    const kn_region *r = body(c, l);
    c->inner = NULL;
    return r;
}

static void innermost(kn_compiler *c, const loop *l)
{
    enum { FOR_WORDS = 5, GUARD_WORDS = 6, JUMP_WORDS = 2 };
    kn_inner in = {.depth = kn_depth_here(c) + 1, .loop = l->loop, .lo = l->lo, .hi = l->hi};
    kn_inner checked = in;
    checked.checked = true;
    const kn_region *fast = version(c, l, &in);
    kn_words *to = here(c);
    kn_words_append(c, to, &fast->pre);
    kn_words run = inner_iterations(c, l, fast, &in), slow = {0};
    int nguards = in.guards.n, span = nguards ? span_of(c, l) : -1;
    if (nguards) {
        const kn_region *r = version(c, l, &checked);
        slow = inner_iterations(c, l, r, &checked);
        kn_words_append(c, to, &r->pre);
        KN_EMIT(c, &run, KN_I_JUMP, JUMP_WORDS + slow.n);
    }
    KN_EMIT(c, to, KN_I_FOR, l->var, l->first, l->last,
            FOR_WORDS + GUARD_WORDS * nguards + run.n + slow.n);
    for (int i = 0; i < nguards; i++) {
        const kn_guard *g = &in.guards.at[i];
        KN_EMIT(c, to, KN_I_GUARD, g->first, g->slope, span, g->extent,
                GUARD_WORDS * (nguards - i) + run.n);
    }
    kn_words_append(c, to, &run);
    kn_words_append(c, to, &slow);
}

static void outer(kn_compiler *c, const loop *l)
{
    const kn_region *r = body(c, l);
    kn_words run = iterations(c, l, r);
    kn_words *to = here(c);
    kn_words_append(c, to, &r->pre);
    KN_EMIT(c, to, KN_I_FOR, l->var, l->first, l->last, 5 + run.n);
    kn_words_append(c, to, &run);
}

static void for_stmt(kn_compiler *c, const kn_loop *s)
{
    int scope = c->scope.n;
    loop l = {.loop = s, .lo = kn_symbolic_now(c, s->lo), .hi = kn_symbolic_now(c, s->hi)};
    l.first = kn_compile_symbolic(c, l.lo);
    l.last = kn_compile_symbolic(c, l.hi);
    l.var = kn_reg_new(c, kn_depth_here(c) + 1, 1);
    if (has_loop(&s->body))
        outer(c, &l);
    else
        innermost(c, &l);
    c->scope.n = scope;
}

/* ---- Blocks and functions ---- */

static void stmt(kn_compiler *c, const kn_loop *s)
{
    c->loc = s->loc;
    switch (s->kind) {
    case KN_S_FOR: for_stmt(c, s); break;
    case KN_S_IF: if_stmt(c, s); break;
    case KN_S_LET: let_stmt(c, s); break;
    case KN_S_ALLOC: alloc_stmt(c, s); break;
    case KN_S_VIEW: view_stmt(c, s); break;
    case KN_S_STORE: store_stmt(c, s); break;
    case KN_S_CALL: call_stmt(c, s); break;
    case KN_S_CHECK: check_stmt(c, s); break;
    }
}

static void block(kn_compiler *c, const kn_block *b)
{
    kn_known_mark mark = kn_known_here(&c->known);
    int scope = c->scope.n;
    for (int i = 0; i < b->n; i++)
        stmt(c, b->at[i]);
    drop_allocs(c, b);
    c->scope.n = scope;
    kn_known_back(&c->known, mark);
}

static void scalar_param(kn_compiler *c, const kn_param *p, int reg)
{
    const char *name = p->buffer.name;
    bind_scalar(c, name, reg);
    if (p->buffer.type != KN_INDEX)
        return;
    kn_known_size(&c->known, name, p->lo, p->hi);
    if (p->lo == INT64_MIN && p->hi == INT64_MAX)
        return;
    int lo = kn_reg_int(c, p->lo), hi = kn_reg_int(c, p->hi);
    int site = kn_site_new(c, (kn_site){.name = name});
    KN_EMIT(c, here(c), KN_I_BOUND, reg, lo, hi, site);
}

/* The parameters' registers come first; then, so that constants do not stand between, what checks
 * them. */
static void params(kn_compiler *c, const kn_func *f)
{
    int next = 0;
    for (int i = 0; i < f->nparams; i++)
        next += f->params[i].mode == KN_PARAM_SCALAR ? 1 : KN_BUFFER_REGS;
    kn_reg_new(c, 0, next);
    next = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR) {
            scalar_param(c, p, next++);
            continue;
        }
        int size = size_of(c, bind_buffer(c, &p->buffer, next));
        int site = kn_site_new(c, (kn_site){.buffer = &p->buffer});
        KN_EMIT(c, here(c), KN_I_FIT, next, size, site);
        next += KN_BUFFER_REGS;
    }
}

static void finish(const kn_compiler *c, kn_code *out, const kn_region *r)
{
    kn_arena *a = c->interp->arena;
    out->n = r->code.n;
    out->at = KN_ARRAY(a, int32_t, out->n);
    memcpy(out->at, r->code.at, (size_t)out->n * sizeof *out->at);
    out->nregs = c->depths.n;
    out->regs = KN_ARRAY(a, kn_slot, out->nregs);
    for (int i = 0; i < c->consts.n; i++)
        out->regs[c->const_regs.at[i]] = c->consts.at[i];
    out->nsites = c->sites.n;
    out->sites = KN_ARRAY(a, kn_site, out->nsites);
    for (int i = 0; i < out->nsites; i++)
        out->sites[i] = c->sites.at[i];
    out->nstorage = c->nstorage;
    out->storage = KN_ARRAY(a, kn_storage, out->nstorage);
    out->nblocks = c->blocks.n;
    out->blocks = KN_ARRAY(a, kn_lanes, out->nblocks);
    for (int i = 0; i < out->nblocks; i++)
        out->blocks[i] = c->blocks.at[i];
}

static kn_code *new_code(kn_interp *in, const kn_func *f)
{
    kn_code *code = KN_NEW(in->arena, kn_code);
    code->func = f;
    code->instruction =
        in->module && in->module->library && kn_module_find(in->module->library, f->name) == f;
    code->number = in->codes.n;
    code->open = true;
    kn_push(in->arena, &in->codes, code);
    return code;
}

/* The function's number. */
static int compile_func(kn_interp *in, const kn_func *f, int calls, kn_loc loc)
{
    kn_ctx *ctx = kn_arena_ctx(in->arena);
    for (int i = 0; i < in->codes.n; i++) {
        if (in->codes.at[i]->func != f)
            continue;
        if (in->codes.at[i]->open)
            kn_raise(ctx, KN_INVALID, loc, "function %s calls itself", f->name);
        return i;
    }
    if (calls > MAX_CALLS)
        kn_raise(ctx, KN_INVALID, loc, "calls nested more than %d deep", MAX_CALLS);
    kn_func_verify(ctx, in->module, f);
    kn_code *code = new_code(in, f);
    kn_arena *scratch = kn_arena_create(ctx);
    kn_compiler *c = KN_NEW(scratch, kn_compiler);
    c->interp = in;
    c->ctx = ctx;
    c->arena = c->known.arena = scratch;
    c->out = code;
    c->calls = calls;
    c->guard = -1;
    c->loc = f->loc;
    kn_region_open(c);
    params(c, f);
    block(c, &f->body);
    KN_EMIT(c, here(c), KN_I_END);
    finish(c, code, kn_region_close(c));
    code->open = false;
    kn_arena_destroy(scratch);
    return code->number;
}

kn_interp *kn_interp_compile(kn_arena *a, const kn_module *m, const kn_func *f)
{
    kn_interp *in = KN_NEW(a, kn_interp);
    in->arena = a;
    in->module = m;
    in->max_steps = UINT64_MAX;
    kn_spaces_make(in);
    int number = compile_func(in, f, 0, f->loc);
    in->main = in->codes.at[number];
    return in;
}

void kn_interp_limit(kn_interp *in, uint64_t max_steps)
{
    in->max_steps = max_steps ? max_steps : UINT64_MAX;
}
