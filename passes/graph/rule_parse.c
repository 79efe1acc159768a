/* The text of rules. Grammar, over the lexer of all texts:

     text  = {"%name" "=" term} [term]                      the last one is the pattern's or the
   result's call term  = "%name" | NUMBER | NAME | "_" | NAME "(" [term {"," term}] ")" ["{" NAME
   "=" attr {"," NAME "=" attr} "}"] attr  = NUMBER | NAME | TYPE | STRING | "[" [attr {"," attr}]
   "]"

   A part is put in where it is called: its alternatives are parsed in a scope of their own, its
   parameters standing for the terms that were given. */
#include <assert.h>

#include "passes/graph/rules_internal.h"

enum { MAX_PART_DEPTH = 16 };

typedef struct {
    const char *name;
    kn_pat *pat;
} binding;

typedef KN_VEC(binding) scope;

typedef struct {
    kn_arena *a;
    const kn_rule_table *table;
    kn_rule_parsed *out;
    int depth; /* of parts */
} parser;

typedef struct {
    parser *p;
    scope *names;
    kn_lexer lx;
} reader;

static kn_pat *parse_term(reader *r);
static kn_pat *parse_text(parser *p, scope *names, const char *text);

/* ---- values ---- */

static kn_pat *new_pat(parser *p, kn_pat_kind kind)
{
    kn_pat *pat = KN_NEW(p->a, kn_pat);
    pat->kind = kind;
    return pat;
}

static int new_slot(parser *p)
{
    assert(p->out->nslots < KN_MAX_SLOTS);
    return p->out->nslots++;
}

static kn_pat *find(const scope *names, const char *name)
{
    for (int i = names->n - 1; i >= 0; i--) {
        if (strcmp(names->at[i].name, name) == 0) {
            return names->at[i].pat;
        }
    }
    return NULL;
}

/* Names outside parts are those that `when` can ask for. */
static void define(parser *p, scope *names, const char *name, kn_pat *pat)
{
    kn_push(p->a, names, ((binding){name, pat}));
    if (p->depth == 0 && (pat->kind == KN_PAT_VALUE || pat->kind == KN_PAT_NODE)) {
        p->out->names[pat->slot] = name;
    }
}

static kn_pat *value_named(parser *p, scope *names, const char *name)
{
    kn_pat *pat = find(names, name);
    if (pat) {
        return pat;
    }
    pat = new_pat(p, KN_PAT_VALUE);
    pat->name = name;
    pat->slot = new_slot(p);
    define(p, names, name, pat);
    return pat;
}

/* ---- numbers and attributes ---- */

static bool at_number(reader *r)
{
    const kn_token *t = kn_lex_is(&r->lx, "-") ? kn_lex_peek(&r->lx) : &r->lx.token;
    bool named = t->kind == KN_T_NAME && strcmp(t->text, "inf") == 0;
    return t->kind == KN_T_INT || t->kind == KN_T_FLOAT || named;
}

static double take_number(reader *r, bool *real)
{
    bool minus = kn_lex_accept(&r->lx, "-");
    const kn_token *t = &r->lx.token;
    *real = t->kind != KN_T_INT;
    double v = t->kind == KN_T_INT     ? (double)t->i
               : t->kind == KN_T_FLOAT ? t->f
                                       : (double)__builtin_inff();
    kn_lex_next(&r->lx);
    return minus ? -v : v;
}

static kn_pat_attr parse_attr_value(reader *r);

static void parse_attr_list(reader *r, kn_pat_attr *list)
{
    KN_VEC(kn_pat_attr) items = {0};
    list->kind = KN_PAT_A_LIST;
    while (!kn_lex_is(&r->lx, "]")) {
        kn_push(r->p->a, &items, parse_attr_value(r));
        if (!kn_lex_accept(&r->lx, ",")) {
            break;
        }
    }
    kn_lex_expect(&r->lx, "]");
    list->items = items.at;
    list->nitems = items.n;
}

static kn_pat_attr parse_attr_value(reader *r)
{
    kn_pat_attr attr = {0};
    if (at_number(r)) {
        attr.kind = KN_PAT_A_NUMBER;
        attr.number = take_number(r, &attr.real);
    } else if (kn_lex_accept(&r->lx, "[")) {
        parse_attr_list(r, &attr);
    } else if (r->lx.token.kind == KN_T_STRING) {
        attr.kind = KN_PAT_A_STRING;
        attr.text = r->lx.token.text;
        kn_lex_next(&r->lx);
    } else {
        attr.text = kn_lex_name(&r->lx);
        bool type = kn_dtype_parse(attr.text, strlen(attr.text), &attr.type);
        attr.kind = type ? KN_PAT_A_TYPE : KN_PAT_A_VAR;
    }
    return attr;
}

static void parse_attrs(reader *r, kn_pat *pat)
{
    KN_VEC(kn_pat_attr) attrs = {0};
    if (!kn_lex_accept(&r->lx, "{")) {
        return;
    }
    while (!kn_lex_is(&r->lx, "}")) {
        const char *name = kn_lex_name(&r->lx);
        kn_lex_expect(&r->lx, "=");
        kn_pat_attr attr = parse_attr_value(r);
        attr.name = name;
        kn_push(r->p->a, &attrs, attr);
        if (!kn_lex_accept(&r->lx, ",")) {
            break;
        }
    }
    kn_lex_expect(&r->lx, "}");
    pat->attrs = attrs.at;
    pat->nattrs = attrs.n;
}

/* ---- calls ---- */

typedef KN_VEC(kn_pat *) pat_list;

static pat_list parse_terms(reader *r)
{
    pat_list list = {0};
    kn_lex_expect(&r->lx, "(");
    while (!kn_lex_is(&r->lx, ")")) {
        kn_push(r->p->a, &list, parse_term(r));
        if (!kn_lex_accept(&r->lx, ",")) {
            break;
        }
    }
    kn_lex_expect(&r->lx, ")");
    return list;
}

/* The parameters' names, bound to the terms. */
static scope bind_parameters(reader *r, const kn_rule_part *part, const pat_list *terms)
{
    scope names = {0};
    kn_lexer lx;
    kn_lex_init(&lx, r->p->a, part->name, part->parameters, strlen(part->parameters),
                kn_loc_none());
    kn_lex_expect(&lx, "(");
    for (int i = 0; !kn_lex_is(&lx, ")"); i++) {
        if (i == terms->n || lx.token.kind != KN_T_VALUE) {
            kn_lex_fail(&lx, "%s is given %d terms", part->name, terms->n);
        }
        kn_push(r->p->a, &names, ((binding){lx.token.text, terms->at[i]}));
        kn_lex_next(&lx);
        kn_lex_accept(&lx, ",");
    }
    return names;
}

static kn_pat *parse_part(reader *r, const char *name)
{
    parser *p = r->p;
    pat_list terms = parse_terms(r), patterns = {0};
    if (++p->depth > MAX_PART_DEPTH) {
        kn_lex_fail(&r->lx, "%s: parts are nested too deeply", name);
    }
    for (int i = 0; i < p->table->nparts; i++) {
        const kn_rule_part *part = &p->table->parts[i];
        if (strcmp(part->name, name) == 0) {
            scope names = bind_parameters(r, part, &terms);
            kn_push(p->a, &patterns, parse_text(p, &names, part->pattern));
        }
    }
    p->depth--;
    if (patterns.n == 0) {
        kn_lex_fail(&r->lx, "%s is neither an op nor a part", name);
    }
    kn_pat *pat = new_pat(p, KN_PAT_PART);
    pat->args = patterns.at;
    pat->nargs = patterns.n;
    return pat;
}

static bool commutes(const kn_op_row *op)
{
    static const char *const ops[] = {"add", "mul", "and",   "or",       "xor",
                                      "min", "max", "equal", "not_equal"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(op->name, ops[i]) == 0) {
            return true;
        }
    }
    return false;
}

static kn_pat *parse_call(reader *r, const char *name)
{
    const kn_op_row *op = kn_op_find(name);
    if (!op) {
        return parse_part(r, name);
    }
    kn_pat *pat = new_pat(r->p, KN_PAT_NODE);
    pat_list terms = parse_terms(r);
    pat->op = op;
    pat->args = terms.at;
    pat->nargs = terms.n;
    pat->commutes = terms.n == 2 && commutes(op);
    pat->slot = new_slot(r->p);
    r->p->out->is_node[pat->slot] = true;
    parse_attrs(r, pat);
    return pat;
}

static kn_pat *parse_term(reader *r)
{
    bool real;
    if (at_number(r)) {
        kn_pat *pat = new_pat(r->p, KN_PAT_NUMBER);
        pat->number = take_number(r, &real);
        return pat;
    }
    if (kn_lex_accept(&r->lx, "_")) {
        return new_pat(r->p, KN_PAT_NONE);
    }
    if (r->lx.token.kind == KN_T_VALUE) {
        const char *name = r->lx.token.text;
        kn_lex_next(&r->lx);
        return value_named(r->p, r->names, name);
    }
    const char *name = kn_lex_name(&r->lx);
    if (kn_lex_is(&r->lx, "(")) {
        return parse_call(r, name);
    }
    kn_pat *pat = new_pat(r->p, KN_PAT_VAR);
    pat->name = name;
    return pat;
}

static bool at_definition(reader *r)
{
    const kn_token *next = r->lx.token.kind == KN_T_VALUE ? kn_lex_peek(&r->lx) : NULL;
    return next && next->kind == KN_T_PUNCT && strcmp(next->text, "=") == 0;
}

static kn_pat *parse_text(parser *p, scope *names, const char *text)
{
    reader r = {.p = p, .names = names};
    kn_pat *last = NULL;
    kn_lex_init(&r.lx, p->a, p->out->rule->name, text, strlen(text), kn_loc_none());
    while (r.lx.token.kind != KN_T_END) {
        const char *name = NULL;
        if (at_definition(&r)) {
            name = r.lx.token.text;
            kn_lex_next(&r.lx);
            kn_lex_next(&r.lx);
        }
        last = parse_term(&r);
        if (name) {
            define(p, names, name, last);
        }
    }
    if (!last) {
        kn_lex_fail(&r.lx, "expected a call");
    }
    return last;
}

kn_rule_parsed *kn_rule_parse(kn_arena *a, const kn_rule_table *table, int rule)
{
    kn_rule_parsed *out = KN_NEW(a, kn_rule_parsed);
    parser p = {.a = a, .table = table, .out = out};
    scope names = {0};
    out->rule = &table->rules[rule];
    out->index = rule;
    out->pattern = parse_text(&p, &names, out->rule->pattern);
    out->result = parse_text(&p, &names, out->rule->result);
    return out;
}
