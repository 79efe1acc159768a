/* The loop IR as text: docs/loop-ir.md. Two spaces a level, one statement a line; a signature that
   does not fit on a line has a parameter a line. */
#include "ir/loop_internal.h"

#include <inttypes.h>

enum { LINE = 100 };

static void put_indent(kn_str *out, int level)
{
    for (int i = 0; i < level; i++)
        kn_put(out, "  ");
}

static void put_expr(kn_str *out, const kn_expr *e)
{
    kn_expr_print(out, e, true);
}

static void put_list(kn_str *out, const kn_expr *const *list, int n)
{
    kn_put(out, "[");
    for (int i = 0; i < n; i++) {
        kn_put(out, i ? ", " : "");
        put_expr(out, list[i]);
    }
    kn_put(out, "]");
}

static void put_buffer(kn_str *out, const kn_buffer *b)
{
    kn_putf(out, "%s: %s", b->name, kn_dtype_name(b->type));
    put_list(out, b->shape, b->rank);
}

static void put_offset(kn_str *out, const kn_expr *offset)
{
    if (offset) {
        kn_put(out, " at ");
        put_expr(out, offset);
    }
}

/* ---- Statements ---- */

static void put_block(kn_str *out, const kn_block *b, int level);

static void put_for(kn_str *out, const kn_loop *s, int level)
{
    kn_putf(out, "for %s in ", s->name);
    put_expr(out, s->lo);
    kn_put(out, ":");
    put_expr(out, s->hi);
    if (s->step != 1)
        kn_putf(out, " step %" PRId64, s->step);
    if (s->mode != KN_FOR_SERIAL)
        kn_putf(out, " %s", kn_for_mode_text(s->mode));
    kn_put(out, " ");
    put_block(out, &s->body, level);
}

/* An `else` that is nothing but an `if` goes on in the same line. */
static void put_if(kn_str *out, const kn_loop *s, int level)
{
    for (;;) {
        kn_put(out, "if ");
        put_expr(out, s->expr);
        kn_put(out, " ");
        put_block(out, &s->body, level);
        if (s->orelse.n == 0)
            return;
        kn_put(out, " else ");
        if (s->orelse.n > 1 || s->orelse.at[0]->kind != KN_S_IF)
            break;
        s = s->orelse.at[0];
    }
    put_block(out, &s->orelse, level);
}

static void put_let(kn_str *out, const kn_loop *s)
{
    kn_putf(out, "let %s: %s = ", s->name, kn_dtype_name(s->type));
    put_expr(out, s->expr);
}

static void put_alloc(kn_str *out, const kn_loop *s)
{
    kn_put(out, "alloc ");
    put_buffer(out, &s->buffer);
    kn_putf(out, " @%s", s->buffer.space);
    put_offset(out, s->buffer.offset);
}

static void put_view(kn_str *out, const kn_loop *s)
{
    kn_put(out, "view ");
    put_buffer(out, &s->buffer);
    kn_putf(out, " = %s", s->name);
    put_offset(out, s->buffer.offset);
}

static void put_store(kn_str *out, const kn_loop *s)
{
    kn_put(out, s->name);
    put_list(out, s->args, s->nargs);
    kn_putf(out, " %s ", kn_update_text(s->op));
    put_expr(out, s->expr);
}

static void put_call(kn_str *out, const kn_loop *s)
{
    kn_putf(out, "call %s(", s->name);
    for (int i = 0; i < s->nargs; i++) {
        const kn_expr *e = s->args[i];
        kn_put(out, i ? ", " : "");
        if (e->kind == KN_E_LOAD && e->nargs == 0) {
            kn_put(out, e->name);
            continue;
        }
        kn_put(out, e->kind == KN_E_LOAD ? "&" : "");
        put_expr(out, e);
    }
    kn_put(out, ")");
}

static void put_check(kn_str *out, const kn_loop *s)
{
    kn_put(out, "check ");
    put_expr(out, s->expr);
    kn_put(out, " ");
    kn_put_quoted(out, s->name, strlen(s->name));
}

static void put_stmt(kn_str *out, const kn_loop *s, int level)
{
    put_indent(out, level);
    switch (s->kind) {
    case KN_S_FOR: put_for(out, s, level); break;
    case KN_S_IF: put_if(out, s, level); break;
    case KN_S_LET: put_let(out, s); break;
    case KN_S_ALLOC: put_alloc(out, s); break;
    case KN_S_VIEW: put_view(out, s); break;
    case KN_S_STORE: put_store(out, s); break;
    case KN_S_CALL: put_call(out, s); break;
    case KN_S_CHECK: put_check(out, s); break;
    }
    kn_put(out, "\n");
}

static void put_block(kn_str *out, const kn_block *b, int level)
{
    kn_put(out, "{\n");
    for (int i = 0; i < b->n; i++)
        put_stmt(out, b->at[i], level + 1);
    put_indent(out, level);
    kn_put(out, "}");
}

/* ---- Functions ---- */

static void put_param(kn_str *out, const kn_param *p)
{
    if (p->mode == KN_PARAM_SCALAR) {
        kn_putf(out, "%s: %s", p->buffer.name, kn_dtype_name(p->buffer.type));
        if (p->buffer.type == KN_INDEX && (p->lo != INT64_MIN || p->hi != INT64_MAX))
            kn_putf(out, " in %" PRId64 ":%" PRId64, p->lo, p->hi);
        return;
    }
    kn_putf(out, "%s ", kn_param_mode_text(p->mode));
    put_buffer(out, &p->buffer);
    kn_putf(out, " @%s", p->buffer.space);
    if (p->alias)
        kn_putf(out, " aliases %s", p->alias);
}

static void put_params(kn_str *out, const kn_func *f, const char *between)
{
    for (int i = 0; i < f->nparams; i++) {
        kn_put(out, i ? between : "");
        put_param(out, &f->params[i]);
    }
}

static void put_func(kn_str *out, const kn_func *f, int level)
{
    kn_str line = kn_str_make(out->arena);
    put_indent(out, level);
    kn_putf(out, "func @%s(", f->name);
    put_params(&line, f, ", ");
    if (line.n + strlen(f->name) + 2 * (size_t)level + 10 <= LINE) {
        kn_put(out, kn_str_get(&line));
    } else {
        kn_str between = kn_str_make(out->arena);
        kn_put(&between, ",\n");
        put_indent(&between, level + 2);
        kn_put(out, kn_str_get(&between) + 1);
        put_params(out, f, kn_str_get(&between));
    }
    kn_put(out, ") ");
    if (f->workspace) {
        kn_put(out, "workspace ");
        put_expr(out, f->workspace);
        kn_put(out, " ");
    }
    put_block(out, &f->body, level);
    kn_put(out, "\n");
}

void kn_func_print(kn_str *out, const kn_func *f)
{
    put_func(out, f, 0);
}

void kn_module_print(kn_str *out, const kn_module *m)
{
    kn_putf(out, "module @%s ", m->name);
    if (m->target)
        kn_putf(out, "for %s ", m->target);
    kn_put(out, "{\n");
    for (int i = 0; i < m->nfuncs; i++)
        put_func(out, m->funcs[i], 1);
    kn_put(out, "}\n");
}
