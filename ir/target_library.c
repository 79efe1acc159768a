/* An instruction as a function of loop IR: its semantics, elaborated with symbolic sizes and
   lowered plainly. What differs from any other lowered nest: buffers lie in the operands' spaces; a
   matrix with a pitch is a row of elements, element [i, j] at i * pitch + j; temporaries are the
   instruction's own, in @local. */
#include <stdio.h>

#include "ir/loop_internal.h"
#include "ir/target_internal.h"

static const int64_t MAX_PITCH = INT64_C(1) << 31;

static _Noreturn void fail(kn_arena *a, kn_loc loc, const char *fmt, ...) KN_PRINTF(3, 4);
static _Noreturn void fail(kn_arena *a, kn_loc loc, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kn_raise(kn_arena_ctx(a), KN_INVALID, loc, "%s", text);
}

/* ---- elaboration ---- */

/* A dimension of the signature, typed. */
static const kn_expr *typed(kn_arena *a, const kn_expr *e, kn_loc loc)
{
    kn_str s = kn_str_make(a);
    kn_expr_print(&s, e, false);
    kn_lexer lx;
    kn_lex_init(&lx, a, loc.file, kn_str_get(&s), s.n, loc);
    return kn_parse_index(&lx);
}

static kn_operand operand_of(kn_arena *a, const kn_sig_tensor *t, kn_dtype type, kn_loc loc)
{
    const kn_expr **shape = KN_ARRAY(a, const kn_expr *, t->ndims + 1);
    for (int d = 0; d < t->ndims; d++) {
        shape[d] = typed(a, t->dims[d].expr, loc);
    }
    return (kn_operand){type, t->ndims, shape};
}

static bool is_type(const kn_sig_attr *attr)
{
    return strcmp(attr->type, "type") == 0;
}

/* A scalar; sizes are arguments, too, but among the extents. */
static bool is_argument(const kn_sig_attr *attr)
{
    return !attr->value && !is_type(attr) && strcmp(attr->type, "size") != 0;
}

/* T is the row's type; an argument is known by its name alone. */
static kn_attr_value attr_value(kn_arena *a, const kn_instruction *in, const kn_sig_attr *attr,
                                kn_loc loc)
{
    kn_dtype type = KN_INDEX;
    bool row_type =
        strcmp(is_type(attr) ? attr->name : attr->type, "T") == 0 && in->type != KN_UNTYPED;
    if (row_type) {
        type = in->type;
    } else if (is_type(attr) ||
               (is_argument(attr) && !kn_dtype_parse(attr->type, strlen(attr->type), &type))) {
        fail(a, loc, "attribute `%s: %s` needs a default", attr->name, attr->type);
    }
    return (kn_attr_value){attr->name, is_type(attr) ? NULL : kn_var(a, type, attr->name), type};
}

static kn_nest *elaborate(kn_arena *a, const kn_instruction *in, kn_loc loc)
{
    const kn_notation *n = in->semantics;
    kn_operand *operands = KN_ARRAY(a, kn_operand, n->ninputs + 1);
    kn_attr_value *attrs = KN_ARRAY(a, kn_attr_value, n->nattrs + 1);
    int nattrs = 0;
    for (int i = 0; i < n->ninputs; i++) {
        operands[i] = operand_of(a, &n->inputs[i], in->operands[i].type, loc);
    }
    for (int i = 0; i < n->nattrs; i++) {
        if (!n->attrs[i].value) {
            attrs[nattrs++] = attr_value(a, in, &n->attrs[i], loc);
        }
    }
    return kn_elaborate(a, n, operands, n->ninputs, attrs, nattrs, in->extents, in->nextents, loc);
}

/* ---- pitches ---- */

typedef struct {
    kn_arena *arena;
    const kn_instruction *in;
} pitching;

static const char *pitch_of(const kn_instruction *in, const char *tensor)
{
    for (int i = 0; i < in->noperands; i++) {
        if (strcmp(in->operands[i].name, tensor) == 0) {
            return in->operands[i].pitch;
        }
    }
    return NULL;
}

static const kn_expr *linear(kn_arena *a, const char *pitch, const kn_expr *row,
                             const kn_expr *column)
{
    return kn_index_add(a, kn_index_mul(a, row, kn_var(a, KN_INDEX, pitch)), column);
}

static const kn_expr *pitched(void *env, const kn_expr *e)
{
    const pitching *p = env;
    const char *pitch = e->kind == KN_E_LOAD ? pitch_of(p->in, e->name) : NULL;
    if (!pitch) {
        return e;
    }
    const kn_expr *at = linear(p->arena, pitch, e->args[0], e->args[1]);
    return kn_load(p->arena, e->type, e->name, &at, 1);
}

static const kn_expr *rewritten(void *env, const kn_expr *e)
{
    const pitching *p = env;
    return kn_expr_rewrite(p->arena, e, pitched, env);
}

static void rewrite_statement(void *env, kn_loop *s)
{
    const pitching *p = env;
    const char *pitch = s->kind == KN_S_STORE ? pitch_of(p->in, s->name) : NULL;
    if (pitch) {
        const kn_expr **at = KN_ARRAY(p->arena, const kn_expr *, 1);
        at[0] = linear(p->arena, pitch, s->args[0], s->args[1]);
        s->args = at;
        s->nargs = 1;
    } else if (s->kind == KN_S_ALLOC) {
        s->buffer.space = kn_intern(kn_arena_ctx(p->arena), "local");
    }
}

/* ---- parameters ---- */

static void add_scalar(kn_func *f, const char *name, kn_dtype type, int64_t lo, int64_t hi)
{
    kn_param *p = &f->params[f->nparams++];
    *p = (kn_param){
        .mode = KN_PARAM_SCALAR, .buffer = {.name = name, .type = type}, .lo = lo, .hi = hi};
}

/* What a matrix spans: the last row has no more than its columns. */
static const kn_expr *span(kn_arena *a, const char *pitch, const kn_tensor *t)
{
    const kn_expr *last = kn_index_sub(a, t->shape[0], kn_index(a, 1));
    return linear(a, pitch, last, t->shape[1]);
}

static void add_buffer(kn_arena *a, kn_func *f, const kn_inst_operand *o, const kn_nest *nest,
                       kn_loc loc)
{
    static const kn_param_mode modes[] = {KN_PARAM_IN, KN_PARAM_OUT, KN_PARAM_INOUT};
    int k = kn_nest_find(nest, o->name);
    const kn_tensor *t = k >= 0 && nest->tensors[k].role != KN_ROLE_TEMP ? &nest->tensors[k] : NULL;
    if (!t || t->type != o->type) {
        fail(a, loc, "`%s` is %s, but %s in the semantics", o->name, kn_dtype_name(o->type),
             t ? kn_dtype_name(t->type) : "nothing");
    }
    if (o->pitch && t->rank != 2) {
        fail(a, loc, "`%s` has a pitch, but %d dimensions, not 2", o->name, t->rank);
    }
    kn_param *p = &f->params[f->nparams++];
    *p = (kn_param){.mode = modes[t->role],
                    .buffer = {.name = o->name,
                               .type = o->type,
                               .rank = t->rank,
                               .shape = (const kn_expr *const *)t->shape,
                               .space = o->space->name}};
    if (o->pitch) {
        const kn_expr **shape = KN_ARRAY(a, const kn_expr *, 1);
        shape[0] = span(a, o->pitch, t);
        p->buffer.shape = shape;
        p->buffer.rank = 1;
    }
}

static void add_params(kn_arena *a, kn_func *f, const kn_instruction *in, const kn_nest *nest,
                       kn_loc loc)
{
    const kn_notation *n = in->semantics;
    f->nparams = 0;
    f->params = KN_ARRAY(a, kn_param, in->nextents + 2 * in->noperands + n->nattrs + 1);
    for (int i = 0; i < in->nextents; i++) {
        add_scalar(f, in->extents[i].name, KN_INDEX, in->extents[i].lo, in->extents[i].hi);
    }
    for (int i = 0; i < in->noperands; i++) {
        const char *pitch = in->operands[i].pitch;
        if (pitch && !kn_func_param(f, pitch)) {
            add_scalar(f, pitch, KN_INDEX, 0, MAX_PITCH);
        }
    }
    for (int i = 0; i < n->nattrs; i++) {
        if (is_argument(&n->attrs[i])) {
            kn_attr_value v = attr_value(a, in, &n->attrs[i], loc);
            add_scalar(f, v.name, v.type, INT64_MIN, INT64_MAX);
        }
    }
    for (int i = 0; i < in->noperands; i++) {
        add_buffer(a, f, &in->operands[i], nest, loc);
    }
}

kn_func *kn_instruction_func(kn_arena *a, const kn_instruction *in, kn_loc loc)
{
    kn_nest *nest = elaborate(a, in, loc);
    kn_func *f = kn_lower_reference(a, nest);
    pitching p = {a, in};
    f->name = in->name;
    f->loc = loc;
    add_params(a, f, in, nest, loc);
    kn_block_map(p.arena, f->body, rewritten, &p);
    kn_block_visit(f->body, rewrite_statement, &p);
    return f;
}
