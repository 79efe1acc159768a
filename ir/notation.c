/* Index notation, text to kn_notation and back. Grammar: docs/index-notation.md.

   What can be said without knowing the operands is checked here and in notation_check.c, so that a
   text is either refused when it is parsed or sound in its names: elaboration only meets errors of
   ranks, sizes, types and ranges. `let` is substituted while parsing, and so the printed text has
   none. */
#include "ir/notation_internal.h"

#include "ir/expr_internal.h"

typedef struct {
    kn_lexer lx;
    kn_arena *a;
    kn_notation *n;
    KN_VEC(kn_sig_tensor) inputs;
    KN_VEC(kn_sig_tensor) results;
    KN_VEC(kn_sig_attr) attrs;
    KN_VEC(const kn_expr *) requires_;
    KN_VEC(kn_notation_stmt) stmts;
    KN_VEC(kn_binding) lets;
    kn_map names; /* operands and attributes, so that none is named twice */
    int groups;
    const char *over; /* the index of the group that is being read, or NULL */
} parser;

/* ---- signature ---- */

static bool is_type_function(const char *name)
{
    return strcmp(name, "typeof") == 0 || strcmp(name, "acctype") == 0;
}

static bool is_type_attr(const parser *p, const char *name)
{
    for (int i = 0; i < p->attrs.n; i++) {
        if (kn_same_name(p->attrs.at[i].name, name)) {
            return strcmp(p->attrs.at[i].type, "type") == 0;
        }
    }
    return false;
}

/* After the colon behind a result: does a type follow, or the first statement? */
static bool at_type(parser *p)
{
    const kn_token *t = &p->lx.token;
    kn_dtype type;
    return t->kind == KN_T_NAME && (kn_dtype_parse(t->text, t->length, &type) ||
                                    is_type_function(t->text) || is_type_attr(p, t->text));
}

static const char *parse_type(parser *p)
{
    const char *name = kn_lex_name(&p->lx);
    if (!is_type_function(name)) {
        return name;
    }
    kn_lex_expect(&p->lx, "(");
    const char *of = kn_lex_name(&p->lx);
    kn_lex_expect(&p->lx, ")");
    return kn_intern_f(p->lx.ctx, "%s(%s)", name, of);
}

/* A name may be used for anything but a type and a word of the grammar. */
static void check_free_name(parser *p, const char *what)
{
    static const char *const words[] = {"let", "over", "require", "strict", "where", "else", "in"};
    const kn_token *t = &p->lx.token;
    if (t->kind != KN_T_NAME) {
        return;
    }
    kn_dtype type;
    bool taken = kn_dtype_parse(t->text, t->length, &type) || is_type_function(t->text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        taken = taken || strcmp(t->text, words[i]) == 0;
    }
    if (taken) {
        kn_lex_fail(&p->lx, "`%s` cannot name %s", t->text, what);
    }
}

static const char *parse_fresh_name(parser *p, const char *what)
{
    check_free_name(p, what);
    return kn_lex_name(&p->lx);
}

static const char *parse_new_name(parser *p, const char *what)
{
    kn_token token = p->lx.token;
    const char *name = parse_fresh_name(p, what);
    if (kn_map_has(&p->names, name)) {
        kn_raise(p->lx.ctx, KN_INVALID, token.loc, "`%s` is named twice in the signature", name);
    }
    kn_map_set(&p->names, name, p);
    return name;
}

/* (g c d): a row-major merge of dimensions, which is their product. */
static const kn_expr *parse_merge(parser *p)
{
    kn_lex_expect(&p->lx, "(");
    const kn_expr *e = kn_var(p->a, KN_UNTYPED, kn_lex_name(&p->lx));
    while (!kn_lex_is(&p->lx, ")")) {
        const kn_expr *args[] = {e, kn_var(p->a, KN_UNTYPED, kn_lex_name(&p->lx))};
        e = kn_op(p->a, KN_UNTYPED, KN_OP_MUL, args, 2);
    }
    kn_lex_next(&p->lx);
    return e;
}

static bool at_merge(const parser *p)
{
    if (!kn_lex_is(&p->lx, "(")) {
        return false;
    }
    kn_lexer ahead = p->lx;
    kn_lex_next(&ahead);
    return ahead.token.kind == KN_T_NAME && kn_lex_peek(&ahead)->kind == KN_T_NAME;
}

static kn_sig_dim parse_dim(parser *p)
{
    if (kn_lex_accept(&p->lx, "*")) {
        return (kn_sig_dim){.pack = true,
                            .name = kn_intern_f(p->lx.ctx, "*%s", kn_lex_name(&p->lx))};
    }
    if (at_merge(p)) {
        return (kn_sig_dim){.expr = parse_merge(p)};
    }
    const kn_expr *e = kn_parse_expr(&p->lx);
    return (kn_sig_dim){.name = e->kind == KN_E_VAR ? e->name : NULL, .expr = e};
}

static void parse_dims(parser *p, kn_sig_tensor *t)
{
    KN_VEC(kn_sig_dim) dims = {0};
    int packs = 0;
    kn_lex_expect(&p->lx, "[");
    while (!kn_lex_is(&p->lx, "]")) {
        kn_token token = p->lx.token;
        kn_sig_dim d = parse_dim(p);
        packs += d.pack;
        if (packs > 1) {
            kn_raise(p->lx.ctx, KN_INVALID, token.loc, "a second pack in the dimensions of `%s`",
                     t->name);
        }
        kn_push(p->a, &dims, d);
        if (!kn_lex_accept(&p->lx, ",")) {
            break;
        }
    }
    kn_lex_expect(&p->lx, "]");
    t->declared = true;
    t->dims = dims.at;
    t->ndims = dims.n;
}

/* After `name: type`: bounds of a size, and a default. */
static void parse_attr(parser *p, kn_sig_attr attr)
{
    attr.lo = 0;
    attr.hi = KN_SIZE_DEFAULT_MAX;
    if (strcmp(attr.type, "size") == 0 && kn_lex_accept(&p->lx, "in")) {
        attr.lo = kn_lex_int(&p->lx);
        kn_lex_expect(&p->lx, ":");
        attr.hi = kn_lex_int(&p->lx);
    }
    if (kn_lex_accept(&p->lx, "=")) {
        bool type = strcmp(attr.type, "type") == 0;
        attr.value = type ? kn_var(p->a, KN_UNTYPED, parse_type(p)) : kn_parse_expr(&p->lx);
    }
    kn_push(p->a, &p->attrs, attr);
}

static void parse_param(parser *p)
{
    const char *name = parse_new_name(p, "an operand");
    kn_sig_tensor t = {.name = name};
    if (kn_lex_accept(&p->lx, ":")) {
        t.type = parse_type(p);
        if (!kn_lex_is(&p->lx, "[")) {
            parse_attr(p, (kn_sig_attr){.name = name, .type = t.type});
            return;
        }
    }
    parse_dims(p, &t);
    kn_push(p->a, &p->inputs, t);
}

/* `Y`, `Y: u8`, `Y[n]`, `Y: u8[n]`. The colon before the statements is left to the caller. */
static void parse_result(parser *p)
{
    kn_token token = p->lx.token;
    kn_sig_tensor t = {.name = parse_fresh_name(p, "a result")};
    for (int i = 0; i < p->results.n; i++) {
        if (kn_same_name(p->results.at[i].name, t.name)) {
            kn_raise(p->lx.ctx, KN_INVALID, token.loc, "`%s` is listed twice after ->", t.name);
        }
    }
    if (kn_lex_is(&p->lx, ":")) {
        kn_lexer before = p->lx;
        kn_lex_next(&p->lx);
        if (at_type(p)) {
            t.type = parse_type(p);
        } else {
            p->lx = before;
        }
    }
    if (kn_lex_is(&p->lx, "[")) {
        parse_dims(p, &t);
    }
    kn_push(p->a, &p->results, t);
}

static void parse_signature(parser *p)
{
    if (!kn_lex_is(&p->lx, "(")) {
        p->n->name = kn_lex_name(&p->lx);
    }
    kn_lex_expect(&p->lx, "(");
    while (!kn_lex_is(&p->lx, ")")) {
        parse_param(p);
        if (!kn_lex_accept(&p->lx, ",")) {
            break;
        }
    }
    kn_lex_expect(&p->lx, ")");
    kn_lex_expect(&p->lx, "->");
    do {
        parse_result(p);
    } while (kn_lex_accept(&p->lx, ","));
}

/* ---- statements ---- */

/* `let`s of `let`s can make a small text stand for a huge expression. */
enum { MAX_EXPR_SIZE = 1 << 14, MAX_GROUP = 256 };

static const kn_expr *parse_value(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    const kn_expr *e = kn_parse_expr(&p->lx);
    e = p->lets.n ? kn_expr_subst(p->a, e, p->lets.at, p->lets.n) : e;
    if (e->size > MAX_EXPR_SIZE) {
        kn_raise(p->lx.ctx, KN_INVALID, loc, "expression too large: %d parts", e->size);
    }
    return e;
}

static void parse_let(parser *p)
{
    kn_lex_next(&p->lx);
    kn_loc loc = p->lx.token.loc;
    kn_binding b = {.name = parse_fresh_name(p, "a `let`")};
    for (int i = 0; i < p->lets.n; i++) {
        if (kn_same_name(p->lets.at[i].name, b.name)) {
            kn_raise(p->lx.ctx, KN_INVALID, loc, "`let %s` a second time", b.name);
        }
    }
    kn_lex_expect(&p->lx, "=");
    b.value = parse_value(p);
    kn_push(p->a, &p->lets, b);
}

static const kn_expr *both(parser *p, const kn_expr *x, const kn_expr *y)
{
    const kn_expr *args[] = {x, y};
    return x ? kn_op(p->a, KN_UNTYPED, KN_OP_LAND, args, 2) : y;
}

static bool at_range(parser *p)
{
    return p->lx.token.kind == KN_T_NAME && kn_lex_peek(&p->lx)->kind == KN_T_NAME &&
           strcmp(kn_lex_peek(&p->lx)->text, "in") == 0;
}

/* where i in 0:n, COND, ... */
static void parse_where(parser *p, kn_notation_stmt *s)
{
    KN_VEC(struct kn_where_range) ranges = {0};
    do {
        if (!at_range(p)) {
            s->where = both(p, s->where, parse_value(p));
            continue;
        }
        struct kn_where_range r = {.name = kn_lex_name(&p->lx)};
        kn_lex_expect(&p->lx, "in");
        r.lo = parse_value(p);
        kn_lex_expect(&p->lx, ":");
        r.hi = parse_value(p);
        kn_push(p->a, &ranges, r);
    } while (kn_lex_accept(&p->lx, ","));
    s->ranges = ranges.at;
    s->nranges = ranges.n;
}

static void parse_update(parser *p, kn_notation_stmt *s)
{
    static const kn_update updates[] = {KN_SET, KN_ADD, KN_MUL, KN_MAX, KN_MIN};
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++) {
        const char *text = kn_update_text(updates[i]);
        s->op = updates[i];
        if (kn_lex_accept(&p->lx, text)) {
            return;
        }
        if (s->op != KN_SET && kn_lex_accept(&p->lx, kn_intern_f(p->lx.ctx, "%s!", text))) {
            s->init = true;
            return;
        }
    }
    kn_lex_fail(&p->lx, "expected one of = += *= max= min= (with ! or without)");
}

static void parse_target(parser *p, kn_notation_stmt *s)
{
    kn_loc loc = p->lx.token.loc;
    check_free_name(p, "a tensor");
    const kn_expr *e = parse_value(p);
    if (e->kind != KN_E_LOAD || e->guarded) {
        kn_raise(p->lx.ctx, KN_INVALID, loc,
                 "expected the element that the statement writes, NAME[...]");
    }
    s->target = e->name;
    s->nsubs = e->nargs;
    s->subs = KN_ARRAY(p->a, const kn_expr *, e->nargs);
    for (int i = 0; i < e->nargs; i++) {
        s->subs[i] = e->args[i];
    }
}

static void parse_stmt(parser *p)
{
    kn_notation_stmt s = {
        .loc = p->lx.token.loc, .over = p->over ? p->groups - 1 : -1, .over_index = p->over};
    s.strict = kn_lex_accept(&p->lx, "strict");
    parse_target(p, &s);
    parse_update(p, &s);
    s.rhs = parse_value(p);
    if (kn_lex_accept(&p->lx, "where")) {
        parse_where(p, &s);
    }
    kn_push(p->a, &p->stmts, s);
}

static void parse_body(parser *p, const char *end);

static void parse_over(parser *p)
{
    kn_loc loc = p->lx.token.loc;
    kn_lex_next(&p->lx);
    if (p->over) {
        kn_raise(p->lx.ctx, KN_INVALID, loc, "`over` inside `over`");
    }
    p->over = parse_fresh_name(p, "an index");
    p->groups++;
    int before = p->stmts.n;
    kn_lex_expect(&p->lx, "{");
    parse_body(p, "}");
    kn_lex_expect(&p->lx, "}");
    if (p->stmts.n == before) {
        kn_raise(p->lx.ctx, KN_INVALID, loc, "`over %s` has no statement", p->over);
    }
    if (p->stmts.n - before > MAX_GROUP) {
        kn_raise(p->lx.ctx, KN_INVALID, loc, "`over %s` has more than %d statements", p->over,
                 MAX_GROUP);
    }
    p->over = NULL;
}

static void parse_require(parser *p)
{
    kn_lex_next(&p->lx);
    const kn_expr *e = parse_value(p);
    kn_push(p->a, &p->requires_, e);
}

/* Statements up to END or `end`. A semicolon stands between two; after `}` it may be left out. */
static void parse_body(parser *p, const char *end)
{
    while (p->lx.token.kind != KN_T_END && !kn_lex_is(&p->lx, end)) {
        bool block = kn_lex_is(&p->lx, "over");
        if (block) {
            parse_over(p);
        } else if (kn_lex_is(&p->lx, "let")) {
            parse_let(p);
        } else if (kn_lex_is(&p->lx, "require")) {
            parse_require(p);
        } else {
            parse_stmt(p);
        }
        if (!kn_lex_accept(&p->lx, ";") && !block) {
            break;
        }
    }
}

static void finish(parser *p)
{
    kn_notation *n = p->n;
    n->inputs = p->inputs.at;
    n->ninputs = p->inputs.n;
    n->results = p->results.at;
    n->nresults = p->results.n;
    n->attrs = p->attrs.at;
    n->nattrs = p->attrs.n;
    n->requires_ = p->requires_.at;
    n->nrequires = p->requires_.n;
    n->stmts = p->stmts.at;
    n->nstmts = p->stmts.n;
}

kn_notation *kn_notation_parse(kn_arena *a, const char *file, const char *text, size_t n,
                               kn_loc loc)
{
    parser p = {.a = a, .n = KN_NEW(a, kn_notation), .names = kn_map_make(a)};
    kn_lex_init(&p.lx, a, file, text, n, loc);
    p.n->loc = p.lx.token.loc;
    parse_signature(&p);
    if (p.lx.token.kind != KN_T_END) {
        kn_lex_expect(&p.lx, ":");
        parse_body(&p, ";");
    }
    if (p.lx.token.kind != KN_T_END) {
        kn_lex_fail(&p.lx, "expected `;` or the end of the notation");
    }
    finish(&p);
    kn_notation_check(a, p.n);
    return p.n;
}

/* ---- text ---- */

static bool is_merge(const kn_expr *e)
{
    return e->kind == KN_E_OP && e->op == KN_OP_MUL && e->args[1]->kind == KN_E_VAR &&
           (e->args[0]->kind == KN_E_VAR || is_merge(e->args[0]));
}

static void print_merge(kn_str *out, const kn_expr *e)
{
    if (e->kind == KN_E_OP) {
        print_merge(out, e->args[0]);
        kn_putf(out, " %s", e->args[1]->name);
        return;
    }
    kn_put(out, e->name);
}

static void print_dim(kn_str *out, const kn_sig_dim *d)
{
    if (d->pack) {
        kn_put(out, d->name);
    } else if (is_merge(d->expr)) {
        kn_put_char(out, '(');
        print_merge(out, d->expr);
        kn_put_char(out, ')');
    } else {
        kn_expr_print(out, d->expr, true);
    }
}

static void print_tensor(kn_str *out, const kn_sig_tensor *t)
{
    kn_put(out, t->name);
    if (t->type) {
        kn_putf(out, ": %s", t->type);
    }
    if (!t->declared) {
        return;
    }
    kn_put_char(out, '[');
    for (int i = 0; i < t->ndims; i++) {
        kn_put(out, i ? ", " : "");
        print_dim(out, &t->dims[i]);
    }
    kn_put_char(out, ']');
}

static void print_attr(kn_str *out, const kn_sig_attr *attr)
{
    kn_putf(out, "%s: %s", attr->name, attr->type);
    if (strcmp(attr->type, "size") == 0) {
        kn_putf(out, " in %lld:%lld", (long long)attr->lo, (long long)attr->hi);
    }
    if (attr->value) {
        kn_put(out, " = ");
        kn_expr_print(out, attr->value, true);
    }
}

static void print_signature(kn_str *out, const kn_notation *n)
{
    kn_putf(out, "%s(", n->name ? n->name : "");
    for (int i = 0; i < n->ninputs; i++) {
        kn_put(out, i ? ", " : "");
        print_tensor(out, &n->inputs[i]);
    }
    for (int i = 0; i < n->nattrs; i++) {
        kn_put(out, i || n->ninputs ? ", " : "");
        print_attr(out, &n->attrs[i]);
    }
    kn_put(out, ") -> ");
    for (int i = 0; i < n->nresults; i++) {
        kn_put(out, i ? ", " : "");
        print_tensor(out, &n->results[i]);
    }
}

static void print_where(kn_str *out, const kn_notation_stmt *s)
{
    for (int i = 0; i < s->nranges; i++) {
        kn_putf(out, "%s%s in ", i ? ", " : " where ", s->ranges[i].name);
        kn_expr_print(out, s->ranges[i].lo, true);
        kn_put_char(out, ':');
        kn_expr_print(out, s->ranges[i].hi, true);
    }
    if (s->where) {
        kn_put(out, s->nranges ? ", " : " where ");
        kn_expr_print(out, s->where, true);
    }
}

static void print_stmt(kn_str *out, const kn_notation_stmt *s)
{
    kn_putf(out, "%s%s[", s->strict ? "strict " : "", s->target);
    for (int i = 0; i < s->nsubs; i++) {
        kn_put(out, i ? ", " : "");
        kn_expr_print(out, s->subs[i], true);
    }
    kn_putf(out, "] %s%s ", kn_update_text(s->op), s->init ? "!" : "");
    kn_expr_print(out, s->rhs, true);
    print_where(out, s);
}

static void print_body(kn_str *out, const kn_notation *n)
{
    for (int i = 0; i < n->nrequires; i++) {
        kn_put(out, i ? "; require " : " require ");
        kn_expr_print(out, n->requires_[i], true);
    }
    for (int i = 0; i < n->nstmts; i++) {
        const kn_notation_stmt *s = &n->stmts[i];
        bool opens = s->over >= 0 && (i == 0 || s[-1].over != s->over);
        bool closes = s->over >= 0 && (i + 1 == n->nstmts || s[1].over != s->over);
        kn_put(out, i || n->nrequires ? "; " : " ");
        if (opens) {
            kn_putf(out, "over %s { ", s->over_index);
        }
        print_stmt(out, s);
        kn_put(out, closes ? " }" : "");
    }
}

void kn_notation_print(kn_str *out, const kn_notation *n)
{
    print_signature(out, n);
    if (n->nrequires || n->nstmts) {
        kn_put_char(out, ':');
        print_body(out, n);
    }
}
