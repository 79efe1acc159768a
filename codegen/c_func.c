/* Functions and statements in C. One statement of the loop IR is one or two lines. Declarations
   that nothing reads are taken out again when their block ends, so that no compiler warns of them.
 */
#include "codegen/c_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

enum { INDENT = 4, COLUMNS = 100 };

static void indent(kn_str *out, int level)
{
    for (int i = 0; i < level * INDENT; i++)
        kn_put_char(out, ' ');
}

static char *vformat(kn_arena *a, const char *fmt, va_list args) KN_PRINTF(2, 0);
static char *vformat(kn_arena *a, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = kn_alloc(a, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

/* Where to break a line so that at most `room` characters come before: at a space after an operator
   or comma, outside of string literals, within as few brackets as can be, as late as can be. 0:
   nowhere. */
static size_t break_of(const char *line, size_t room)
{
    bool quoted = false;
    int depth = 0, best = INT_MAX;
    size_t at = 0;
    for (size_t i = 0; line[i] && (i <= room || at == 0); i++) {
        if (line[i] == '\\')
            i++;
        else if (line[i] == '"')
            quoted = !quoted;
        else if (!quoted)
            depth += (line[i] == '(' || line[i] == '[') - (line[i] == ')' || line[i] == ']');
        if (quoted || line[i] != ' ' || i == 0 || !strchr(",+-*/%<>=&|?:", line[i - 1]))
            continue;
        if (depth <= best || at < room / 2) {
            best = depth;
            at = i;
        }
    }
    return at;
}

void kn_c_line(c_emitter *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const char *rest = vformat(c->arena, fmt, args);
    va_end(args);
    for (int level = c->level;; level = c->level + 2) {
        size_t room =
            level * INDENT < COLUMNS / 2 ? (size_t)(COLUMNS - level * INDENT) : COLUMNS / 2;
        size_t at = strlen(rest) > room ? break_of(rest, room) : 0;
        indent(c->out, level);
        kn_put_n(c->out, rest, at ? at : strlen(rest));
        kn_put(c->out, "\n");
        if (at == 0)
            return;
        rest += at + 1;
    }
}

void kn_c_put_list(kn_str *out, int level, const char *head, const char *const *items, int n,
                   const char *tail)
{
    size_t start = (size_t)(level * INDENT), column = start + strlen(head);
    size_t margin = column < COLUMNS / 2 ? column : start + 2 * INDENT;
    indent(out, level);
    kn_put(out, head);
    for (int i = 0; i < n; i++) {
        size_t width = strlen(items[i]) + (i + 1 < n ? 1 : strlen(tail));
        bool wrap = i > 0 && column + 1 + width > COLUMNS;
        kn_put(out, wrap ? "\n" : i > 0 ? " " : "");
        for (size_t k = 0; wrap && k < margin; k++)
            kn_put_char(out, ' ');
        column = (wrap ? margin : column + (i > 0)) + width;
        kn_put(out, items[i]);
        kn_put(out, i + 1 < n ? "," : "");
    }
    kn_put(out, tail);
}

/* ---- Names in scope ---- */

int kn_c_declare(c_emitter *c, const char *name, const kn_buffer *buffer, kn_dtype type,
                 c_form form, const kn_range *bounds)
{
    c_name n = {
        .name = form == C_CONTEXT ? NULL : name, .buffer = buffer, .type = type, .form = form};
    n.c = kn_c_fresh(c, name);
    kn_push(c->arena, &c->scope, n);
    if (bounds) {
        kn_size size = {name, bounds->lo, bounds->hi};
        kn_push(c->arena, &c->facts.bounds, size);
    }
    for (int i = 0; buffer && i < buffer->rank; i++) {
        if (kn_c_has_load(buffer->shape[i]))
            kn_cg_fail(&c->facts, KN_INTERNAL, "the shape of `%s` reads a buffer", name);
    }
    return c->scope.n - 1;
}

c_mark kn_c_open(const c_emitter *c)
{
    return (c_mark){c->scope.n, c->facts.bounds.n, c->decls.n};
}

c_decl kn_c_decl_begin(const c_emitter *c)
{
    return (c_decl){.start = c->out->n, .first = c->uses.n};
}

void kn_c_decl_end(c_emitter *c, c_decl d, int name)
{
    d.name = name;
    d.end = c->out->n;
    d.last = c->uses.n;
    kn_push(c->arena, &c->decls, d);
}

static void erase(c_emitter *c, const c_decl *d)
{
    memmove(c->out->at + d->start, c->out->at + d->end, c->out->n - d->end + 1);
    c->out->n -= d->end - d->start;
    for (int i = d->first; i < d->last; i++)
        c->scope.at[c->uses.at[i]].reads--;
}

/* Last first: what only an unused one used is unused too, and what comes later in the text has gone
 * by then. */
void kn_c_close(c_emitter *c, c_mark m)
{
    for (int i = c->decls.n - 1; i >= m.decls; i--) {
        const c_decl *d = &c->decls.at[i];
        const c_name *n = &c->scope.at[d->name];
        if (n->reads == 0 && n->writes == 0) {
            erase(c, d);
        } else if (n->reads == 0) {
            kn_str s = kn_str_make(c->arena);
            indent(&s, c->level);
            kn_putf(&s, "(void)%s;\n", n->c);
            kn_c_insert(c->out, d->end, kn_str_get(&s));
        }
    }
    c->decls.n = m.decls;
    c->scope.n = m.scope;
    c->facts.bounds.n = m.bounds;
}

void kn_c_put_unused(c_emitter *c, kn_str *out, int from, int to)
{
    for (int i = from; i < to; i++) {
        if (c->scope.at[i].reads > 0)
            continue;
        indent(out, 1);
        kn_putf(out, "(void)%s;\n", c->scope.at[i].c);
    }
}

void kn_c_read_context(c_emitter *c, const char *name)
{
    for (int i = 0; i < c->scope.n; i++) {
        if (c->scope.at[i].form == C_CONTEXT && strcmp(c->scope.at[i].c, name) == 0)
            kn_c_read(c, i);
    }
}

/* ---- Text of expressions ---- */

static const char *value_text(c_emitter *c, const kn_expr *e, int least)
{
    kn_str s = kn_str_make(c->arena);
    kn_c_put_within(c, &s, kn_cg_fold(c->arena, e), least);
    return kn_str_get(&s);
}

/* The address of a buffer, or from an element on. */
static const char *pointer_text(c_emitter *c, const kn_expr *e)
{
    int name = kn_c_find(c, e->name);
    c_name n = c->scope.at[name];
    kn_str s = kn_str_make(c->arena);
    kn_c_read(c, name);
    if (n.form == C_VARIABLE)
        return kn_format(c->arena, "&%s", n.c);
    kn_c_put_address(c, &s, &n, e->args, e->nargs);
    if (strcmp(kn_str_get(&s), "0") == 0)
        return n.c;
    if (!kn_cg_is_packed(n.type))
        return kn_format(c->arena, "&%s[%s]", n.c, kn_str_get(&s));
    if (n.at || !kn_cg_is_even(c->arena, n.buffer, e->args, e->nargs))
        kn_cg_fail(&c->facts, KN_UNSUPPORTED,
                   "a part of `%s` that may begin inside a byte is passed on", e->name);
    return kn_format(c->arena, "&%s[(%s) / 2]", n.c, kn_str_get(&s));
}

/* ---- Statements ---- */

static void put_block(c_emitter *c, const kn_block *b)
{
    c_mark m = kn_c_open(c);
    c->level++;
    kn_c_put_statements(c, b);
    kn_c_close(c, m);
    c->level--;
}

/* An end that costs nothing may be read each time. */
static bool is_simple_end(const kn_expr *e)
{
    return e->kind == KN_E_CONST || e->kind == KN_E_VAR ||
           (e->kind == KN_E_OP && e->nargs == 2 && !kn_c_has_load(e) && e->depth == 2 &&
            (e->op == KN_OP_ADD || e->op == KN_OP_SUB || e->op == KN_OP_MUL));
}

static void put_for(c_emitter *c, const kn_loop *s)
{
    c_mark m = kn_c_open(c);
    kn_range range = kn_cg_loop_range(&c->facts, s);
    const kn_expr *end = kn_cg_fold(c->arena, s->hi);
    const char *lo = value_text(c, s->lo, 0), *hi = value_text(c, end, C_PREC_SHIFT);
    int var = kn_c_declare(c, s->name, NULL, KN_INDEX, C_SCALAR, &range);
    const char *i = c->scope.at[var].c;
    kn_str head = kn_str_make(c->arena);
    kn_putf(&head, "for (int64_t %s = %s", i, lo);
    if (!is_simple_end(end)) {
        int last =
            kn_c_declare(c, kn_format(c->arena, "%s_end", i), NULL, KN_INDEX, C_CONTEXT, NULL);
        kn_putf(&head, ", %s = %s", c->scope.at[last].c, hi);
        hi = c->scope.at[last].c;
    }
    kn_putf(&head, "; %s < %s; ", i, hi);
    if (s->step == 1)
        kn_putf(&head, "%s++", i);
    else
        kn_putf(&head, "%s += %" PRId64, i, s->step);
    kn_c_line(c, "%s) {", kn_str_get(&head));
    put_block(c, &s->body);
    kn_c_close(c, m);
    kn_c_line(c, "}");
}

static void put_if(c_emitter *c, const kn_loop *s)
{
    kn_c_line(c, "if (%s) {", value_text(c, s->expr, 0));
    put_block(c, &s->body);
    while (s->orelse.n == 1 && s->orelse.at[0]->kind == KN_S_IF) {
        s = s->orelse.at[0];
        kn_c_line(c, "} else if (%s) {", value_text(c, s->expr, 0));
        put_block(c, &s->body);
    }
    if (s->orelse.n > 0) {
        kn_c_line(c, "} else {");
        put_block(c, &s->orelse);
    }
    kn_c_line(c, "}");
}

static void put_let(c_emitter *c, const kn_loop *s)
{
    c_decl d = kn_c_decl_begin(c);
    kn_range range = s->type == KN_INDEX ? kn_cg_range(&c->facts, s->expr) : (kn_range){0, 0};
    const char *value = value_text(c, s->expr, 0);
    int name =
        kn_c_declare(c, s->name, NULL, s->type, C_SCALAR, s->type == KN_INDEX ? &range : NULL);
    kn_c_line(c, "const %s %s = %s;", kn_c_value_type(s->type), c->scope.at[name].c, value);
    kn_c_decl_end(c, d, name);
}

static const char *const_text(bool readonly)
{
    return readonly ? "const " : "";
}

/* A bool that is only copied is made 0 or 1. */
static const char *stored_text(c_emitter *c, const kn_expr *e, kn_dtype type)
{
    const kn_expr *value = kn_cg_fold(c->arena, e);
    bool copied = value->kind == KN_E_LOAD || (value->kind == KN_E_OP && value->op == KN_OP_SELECT);
    if (type != KN_BOOL || !copied)
        return value_text(c, value, 0);
    return kn_format(c->arena, "(bool)%s", value_text(c, value, C_PREC_POSTFIX));
}

/* A variable, set at once when the next statement does that. Returns whether it did. */
static bool put_variable(c_emitter *c, const kn_buffer *b, const kn_loop *next)
{
    bool merge = next && next->kind == KN_S_STORE && next->op == KN_SET &&
                 strcmp(next->name, b->name) == 0 && !kn_expr_uses(next->expr, b->name);
    c_decl d = kn_c_decl_begin(c);
    const char *value = stored_text(c, merge ? next->expr : kn_zero(c->arena, b->type), b->type);
    int name = kn_c_declare(c, b->name, b, b->type, C_VARIABLE, NULL);
    kn_c_line(c, "%s %s = %s;", kn_dtype_ctype(b->type), c->scope.at[name].c, value);
    kn_c_decl_end(c, d, name);
    return merge;
}

static void put_array(c_emitter *c, const kn_buffer *b)
{
    int64_t count = kn_cg_local_count(&c->facts, b);
    c_decl d = kn_c_decl_begin(c);
    int name = kn_c_declare(c, b->name, b, b->type, C_ARRAY, NULL);
    kn_c_line(c, "%s %s[%" PRId64 "]%s;", kn_c_element_type(b->type), c->scope.at[name].c,
              count ? count : 1,
              kn_cg_is_packed(b->type) ? " = {0}" : ""); /* a store of 4 bits reads the other 4 */
    kn_c_decl_end(c, d, name);
}

/* A part of main's workspace. */
static void put_planned(c_emitter *c, const kn_buffer *b)
{
    if (!b->offset || strcmp(c->facts.func->func->name, "main") != 0)
        kn_cg_fail(&c->facts, KN_INTERNAL, "`%s` in @ddr is not planned in main's workspace",
                   b->name);
    c_decl d = kn_c_decl_begin(c);
    const char *offset = value_text(c, b->offset, C_PREC_ADD);
    bool start = strcmp(offset, "0") == 0;
    kn_c_read_context(c, "workspace");
    int name = kn_c_declare(c, b->name, b, b->type, C_POINTER, NULL);
    kn_c_line(c, "%s *const %s = %s%s%s;", kn_c_element_type(b->type), c->scope.at[name].c,
              start ? "workspace" : "(void *)((char *)workspace + ", start ? "" : offset,
              start ? "" : ")");
    kn_c_decl_end(c, d, name);
}

/* Returns whether the next statement is done with. */
static bool put_alloc(c_emitter *c, const kn_loop *s, const kn_loop *next)
{
    const kn_buffer *b = &s->buffer;
    if (strcmp(b->space, "ddr") == 0) {
        put_planned(c, b);
        return false;
    }
    if (b->offset)
        kn_cg_fail(&c->facts, KN_UNSUPPORTED, "`%s` is placed in the target's memory @%s", b->name,
                   b->space);
    if (b->rank == 0 && !kn_cg_is_packed(b->type))
        return put_variable(c, b, next);
    put_array(c, b);
    return false;
}

/* Where a view of `source` begins: `at` elements on. Of 4-bit elements, which may begin inside a
   byte, the pointer stays that of the source. */
static const char *view_text(const c_emitter *c, const c_name *source, const char *at)
{
    if (source->form == C_VARIABLE)
        return kn_format(c->arena, "&%s", source->c);
    if (kn_cg_is_packed(source->type) || strcmp(at, "0") == 0)
        return source->c;
    return kn_format(c->arena, "&%s[%s]", source->c, at);
}

static void put_view(c_emitter *c, const kn_loop *s)
{
    const kn_buffer *b = &s->buffer;
    const kn_expr *offset = b->offset ? b->offset : kn_index(c->arena, 0);
    int from = kn_c_find(c, s->name);
    c_name source = c->scope.at[from];
    kn_str at = kn_str_make(c->arena);
    c_decl d = kn_c_decl_begin(c);
    kn_c_read(c, from);
    kn_c_put_address(c, &at, &source, &offset, 1);
    int name = kn_c_declare(c, b->name, b, b->type, C_POINTER, NULL);
    c_name *n = &c->scope.at[name];
    n->readonly = source.readonly;
    if (kn_cg_is_packed(b->type) && strcmp(kn_str_get(&at), "0") != 0) {
        n->at = kn_c_fresh(c, kn_format(c->arena, "%s_at", n->c));
        kn_c_line(c, "const int64_t %s = %s;", n->at, kn_str_get(&at));
    }
    kn_c_line(c, "%s%s *const %s = %s;", const_text(n->readonly), kn_c_element_type(b->type), n->c,
              view_text(c, &source, kn_str_get(&at)));
    kn_c_decl_end(c, d, name);
}

static const char *update_function(kn_update op)
{
    static const char *const names[] = {"", "add", "mul", "max", "min"};
    return names[op];
}

/* element OP= value, by the function of the update. */
static const char *updated_text(c_emitter *c, kn_update op, kn_dtype type, const char *old,
                                const char *value)
{
    if (op == KN_SET)
        return value;
    return kn_format(c->arena, "npu_%s_%s(%s, %s)", update_function(op), kn_dtype_name(type), old,
                     value);
}

static void put_packed_store(c_emitter *c, const kn_loop *s, const c_name *n)
{
    kn_str at = kn_str_make(c->arena);
    const char *type = kn_dtype_name(n->type), *value = stored_text(c, s->expr, n->type);
    kn_c_put_address(c, &at, n, s->args, s->nargs);
    const char *old = kn_format(c->arena, "npu_load_%s(%s, %s)", type, n->c, kn_str_get(&at));
    kn_c_line(c, "npu_store_%s(%s, %s, %s);", type, n->c, kn_str_get(&at),
              updated_text(c, s->op, n->type, old, value));
}

static void put_store(c_emitter *c, const kn_loop *s)
{
    int name = kn_c_find(c, s->name);
    c_name n = c->scope.at[name];
    if (n.form == C_POINTER)
        kn_c_read(c, name);
    else
        c->scope.at[name].writes++;
    if (kn_cg_is_packed(n.type)) {
        put_packed_store(c, s, &n);
        return;
    }
    kn_str element = kn_str_make(c->arena);
    bool plain = (n.type == KN_F32 || n.type == KN_F64) && (s->op == KN_ADD || s->op == KN_MUL);
    const char *value = stored_text(c, s->expr, n.type);
    kn_c_put_element(c, &element, name, s->args, s->nargs);
    const char *old = kn_str_get(&element);
    if (plain)
        kn_c_line(c, "%s %s %s;", old, kn_update_text(s->op), value);
    else
        kn_c_line(c, "%s = %s;", old, updated_text(c, s->op, n.type, old, value));
}

static void put_call(c_emitter *c, const kn_loop *s)
{
    int callee = kn_cg_callee(&c->facts, s);
    const kn_func *f = c->facts.funcs.at[callee]->func;
    const char **args = KN_ARRAY(c->arena, const char *, s->nargs + 1);
    kn_c_read_context(c, "npu");
    args[0] = "npu";
    for (int i = 0; i < s->nargs; i++) {
        bool scalar = f->params[i].mode == KN_PARAM_SCALAR;
        args[i + 1] = scalar ? value_text(c, s->args[i], 0) : pointer_text(c, s->args[i]);
    }
    kn_c_put_list(c->out, c->level, kn_format(c->arena, "if (%s(", c->names[callee]), args,
                  s->nargs + 1, ") != NPU_OK)\n");
    kn_c_line(c, "    return NPU_FAILED;");
}

void kn_c_put_failure(c_emitter *c, const char *cond, const char *message)
{
    kn_str text = kn_str_make(c->arena);
    kn_c_put_string(&text, message);
    kn_c_read_context(c, "npu");
    kn_c_line(c, "if (%s)", cond);
    kn_c_line(c, "    return npu_fail(npu, %s);", kn_str_get(&text));
}

const char *kn_c_outside_text(const c_emitter *c, const char *value, const kn_param *p)
{
    kn_str s = kn_str_make(c->arena);
    if (p->lo != INT64_MIN)
        kn_putf(&s, "%s < %" PRId64, value, p->lo);
    if (p->hi != INT64_MAX)
        kn_putf(&s, "%s%s > %" PRId64, s.n ? " || " : "", value, p->hi);
    return kn_str_get(&s);
}

static void put_check(c_emitter *c, const kn_loop *s)
{
    kn_c_put_failure(c, kn_format(c->arena, "!%s", value_text(c, s->expr, C_PREC_POSTFIX)),
                     s->name);
}

void kn_c_put_statements(c_emitter *c, const kn_block *b)
{
    for (int i = 0; i < b->n; i++) {
        const kn_loop *s = b->at[i];
        c->facts.loc = s->loc;
        switch (s->kind) {
        case KN_S_FOR: put_for(c, s); break;
        case KN_S_IF: put_if(c, s); break;
        case KN_S_LET: put_let(c, s); break;
        case KN_S_ALLOC: i += put_alloc(c, s, i + 1 < b->n ? b->at[i + 1] : NULL); break;
        case KN_S_VIEW: put_view(c, s); break;
        case KN_S_STORE: put_store(c, s); break;
        case KN_S_CALL: put_call(c, s); break;
        case KN_S_CHECK: put_check(c, s); break;
        }
    }
}

/* ---- Functions ---- */

static const char *put_param(c_emitter *c, const kn_cg_func *f, int i)
{
    const kn_param *p = &f->func->params[i];
    const kn_buffer *b = &p->buffer;
    kn_range range = kn_cg_param_range(f, i);
    if (p->mode == KN_PARAM_SCALAR) {
        bool index = b->type == KN_INDEX;
        int name = kn_c_declare(c, b->name, NULL, b->type, C_SCALAR, index ? &range : NULL);
        return kn_format(c->arena, "%s %s", kn_c_value_type(b->type), c->scope.at[name].c);
    }
    int name = kn_c_declare(c, b->name, b, b->type, C_POINTER, NULL);
    c->scope.at[name].readonly = p->mode == KN_PARAM_IN || p->mode == KN_PARAM_CONST;
    return kn_format(c->arena, "%s%s *%s%s", const_text(c->scope.at[name].readonly),
                     kn_c_element_type(b->type), kn_cg_restrict(f, i) ? "restrict " : "",
                     c->scope.at[name].c);
}

/* What a function demands of its indices and not every call is seen to keep. */
static void put_bounds_checks(c_emitter *c, const kn_cg_func *f)
{
    for (int i = 0; i < f->func->nparams; i++) {
        const kn_param *p = &f->func->params[i];
        if (!kn_cg_is_checked(f, i))
            continue;
        int name = kn_c_find(c, p->buffer.name);
        kn_c_read(c, name);
        kn_c_put_failure(c, kn_c_outside_text(c, c->scope.at[name].c, p),
                         kn_format(c->arena, "%s: %s is out of its bounds %" PRId64 ":%" PRId64,
                                   f->func->name, p->buffer.name, p->lo, p->hi));
    }
}

void kn_c_put_function(c_emitter *c, kn_str *out, int func)
{
    const kn_cg_func *f = c->facts.funcs.at[func];
    kn_str body = kn_str_make(c->arena);
    const char **params = KN_ARRAY(c->arena, const char *, f->func->nparams + 1);
    c->facts.func = f;
    c->out = &body;
    c->level = 1;
    c->uses.n = 0;
    c_mark m = kn_c_open(c);
    kn_c_declare(c, "npu", NULL, KN_INDEX, C_CONTEXT, NULL);
    params[0] = "npu_context *npu";
    for (int i = 0; i < f->func->nparams; i++)
        params[i + 1] = put_param(c, f, i);
    int nparams = c->scope.n;
    c_mark inner = kn_c_open(c);
    put_bounds_checks(c, f);
    kn_c_put_statements(c, &f->func->body);
    kn_c_close(c, inner);
    kn_c_put_list(out, 0, kn_format(c->arena, "static npu_status %s(", c->names[func]), params,
                  f->func->nparams + 1, ")\n{\n");
    kn_c_put_unused(c, out, 0, nparams);
    kn_put(out, kn_str_get(&body));
    kn_put(out, "    return NPU_OK;\n}\n\n");
    kn_c_close(c, m);
}
