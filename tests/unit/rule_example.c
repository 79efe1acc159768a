/* The left side of a rule as a graph: what its test runs before and after. Randomly chosen are the
   alternative of the example, the numbers for its capitals, the pattern of each part and the order
   of commuting operands. */
#include "rule_example.h"

#include <ctype.h>

#include "passes/graph/rules_internal.h"

typedef struct {
    const char *name, *type;
} term;

typedef struct {
    const kn_pat *pat;
    term term;
} written;

typedef struct {
    kn_str *out;
    kn_arena *a;
    uint64_t seed;
    kn_map types;    /* operand -> its element type */
    kn_map settings; /* name -> text */
    KN_VEC(written) done;
    int count; /* of values so far */
} writer;

static uint64_t pick(writer *w, uint64_t n)
{
    w->seed =
        w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407); /* Knuth's MMIX */
    return (w->seed >> 33) % n;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* ---- the example's text ---- */

static char *trimmed(kn_arena *a, const char *from, const char *to)
{
    while (from < to && isspace((unsigned char)*from)) {
        from++;
    }
    while (to > from && isspace((unsigned char)to[-1])) {
        to--;
    }
    return kn_format(a, "%.*s", (int)(to - from), from);
}

/* Field k of a text cut at `separator`; NULL behind the last. */
static const char *field(kn_arena *a, const char *text, char separator, uint64_t k)
{
    for (; k > 0; k--) {
        text = strchr(text, separator);
        if (!text) {
            return NULL;
        }
        text++;
    }
    const char *end = strchr(text, separator);
    return trimmed(a, text, end ? end : text + strlen(text));
}

static const char *choose_alternative(writer *w, const char *example)
{
    uint64_t n = 1;
    for (const char *c = example; *c; c++) {
        n += *c == '|';
    }
    return field(w->a, example, '|', pick(w, n));
}

/* A number for each name in capitals. */
static const char *put_numbers(writer *w, const char *text)
{
    kn_map numbers = kn_map_make(w->a);
    kn_str s = kn_str_make(w->a);
    for (const char *c = text; *c;) {
        const char *end = c;
        while (is_word(*end)) {
            end++;
        }
        if (end == c || !isupper((unsigned char)*c)) {
            end += end == c;
            kn_put_n(&s, c, (size_t)(end - c));
            c = end;
            continue;
        }
        const char *name = trimmed(w->a, c, end);
        if (!kn_map_has(&numbers, name)) {
            uint64_t zero = pick(w, 12) == 0;
            kn_map_set(&numbers, name, kn_format(w->a, "%d", zero ? 0 : 1 + (int)pick(w, 6)));
        }
        kn_put(&s, kn_map_get(&numbers, name));
        c = end;
    }
    return kn_str_get(&s);
}

static void read_settings(writer *w, const char *text)
{
    const char *item;
    w->settings = kn_map_make(w->a);
    for (uint64_t k = 1; (item = field(w->a, text, ';', k)) != NULL; k++) {
        const char *eq = strchr(item, '=');
        if (eq && *item == '%') {
            kn_putf(w->out, "  %s\n", item);
        } else if (eq) {
            kn_map_set(&w->settings, trimmed(w->a, item, eq),
                       trimmed(w->a, eq + 1, eq + strlen(eq)));
        }
    }
}

/* %x: f32[...], ... */
static void read_operands(writer *w, const char *operands)
{
    w->types = kn_map_make(w->a);
    for (const char *c = strchr(operands, '%'); c; c = strchr(c + 1, '%')) {
        const char *colon = c + strcspn(c, ":"), *bracket = c + strcspn(c, "[");
        kn_map_set(&w->types, trimmed(w->a, c + 1, colon), trimmed(w->a, colon + 1, bracket));
    }
}

/* Bounds for the names between the brackets. */
static void put_sizes(writer *w, const char *operands)
{
    kn_map seen = kn_map_make(w->a);
    int depth = 0;
    for (const char *c = operands; *c; c++) {
        depth += (*c == '[') - (*c == ']');
        if (depth == 0 || !islower((unsigned char)*c) || is_word(c[-1])) {
            continue;
        }
        const char *end = c;
        while (is_word(*end)) {
            end++;
        }
        const char *name = trimmed(w->a, c, end);
        if (!kn_map_has(&seen, name)) {
            bool some = strcmp(name, "n") == 0;
            kn_putf(w->out, "%s%s in %d:64", seen.n ? ", " : " where ", name, some);
            kn_map_set(&seen, name, w);
        }
    }
}

/* ---- the pattern's text ---- */

static term put_term(writer *w, const kn_pat *p, const char *type);

static term put_constant(writer *w, const char *text, const char *type)
{
    const char *name = kn_format(w->a, "%%k%d", w->count++);
    kn_putf(w->out, "  const %s: %s[%s] = [%s]\n", name, type, pick(w, 2) ? "1" : "", text);
    return (term){name, type};
}

static term put_number(writer *w, double number, const char *type)
{
    kn_dtype t = KN_F32;
    kn_str s = kn_str_make(w->a);
    kn_dtype_parse(type, strlen(type), &t);
    if (kn_dtype_is_float(t)) {
        kn_put_float(&s, number, false);
    } else {
        kn_putf(&s, "%lld", (long long)number);
    }
    return put_constant(w, kn_str_get(&s), type);
}

static const char *setting(writer *w, const char *name)
{
    const char *text = kn_map_get(&w->settings, name);
    if (!text) {
        kn_raise(kn_arena_ctx(w->a), KN_INTERNAL, kn_loc_none(),
                 "the example does not say what `%s` is", name);
    }
    return text;
}

static const char *attr_text(writer *w, const kn_pat_attr *p);

static const char *number_text(writer *w, const kn_pat_attr *p)
{
    kn_str s = kn_str_make(w->a);
    if (!p->real) {
        return kn_format(w->a, "%lld", (long long)p->number);
    }
    kn_put_float(&s, p->number, false);
    return kn_str_get(&s);
}

static const char *list_text(writer *w, const kn_pat_attr *p)
{
    kn_str s = kn_str_make(w->a);
    for (int i = 0; i < p->nitems; i++) {
        const kn_pat_attr *item = &p->items[i];
        const char *text = item->kind == KN_PAT_A_VAR ? setting(w, item->text) : attr_text(w, item);
        kn_putf(&s, "%s%s", i ? ", " : "", text);
    }
    return kn_format(w->a, "[%s]", kn_str_get(&s));
}

/* NULL for a name that the example does not set: the attribute is left out. */
static const char *attr_text(writer *w, const kn_pat_attr *p)
{
    switch (p->kind) {
    case KN_PAT_A_NUMBER: return number_text(w, p);
    case KN_PAT_A_VAR: return kn_map_get(&w->settings, p->text);
    case KN_PAT_A_TYPE: return kn_dtype_name(p->type);
    case KN_PAT_A_STRING: return kn_format(w->a, "\"%s\"", p->text);
    case KN_PAT_A_LIST: return list_text(w, p);
    }
    return NULL;
}

static bool is_constant(const kn_pat *p)
{
    return p->kind == KN_PAT_NUMBER || p->kind == KN_PAT_VAR;
}

/* The operands, constants last: they have the type of the others. */
static const char *put_operands(writer *w, const kn_pat *p, term *args)
{
    const char *type = "bool";
    for (int i = 0; i < p->nargs; i++) {
        if (!is_constant(p->args[i])) {
            args[i] = put_term(w, p->args[i], type);
            type = strcmp(args[i].type, "bool") == 0 ? type : args[i].type;
        }
    }
    for (int i = 0; i < p->nargs; i++) {
        if (is_constant(p->args[i])) {
            args[i] = put_term(w, p->args[i], type);
        }
    }
    return type;
}

static const char *put_attrs(writer *w, const kn_pat *p, const char *type)
{
    const char *separator = " {";
    for (int i = 0; i < p->nattrs; i++) {
        const char *text = attr_text(w, &p->attrs[i]);
        if (text) {
            kn_putf(w->out, "%s%s = %s", separator, p->attrs[i].name, text);
            separator = ", ";
            type = strcmp(p->op->name, "cast") == 0 ? text : type;
        }
    }
    kn_put(w->out, *separator == ',' ? "}\n" : "\n");
    return type;
}

static term put_node(writer *w, const kn_pat *p)
{
    term *args = KN_ARRAY(w->a, term, p->nargs);
    const char *type = put_operands(w, p, args);
    bool swap = p->commutes && pick(w, 2);
    const char *name = kn_format(w->a, "%%v%d", w->count++);
    kn_putf(w->out, "  %s = %s(", name, p->op->name);
    for (int i = 0; i < p->nargs; i++) {
        kn_putf(w->out, "%s%s", i ? ", " : "", args[swap ? 1 - i : i].name);
    }
    kn_put_char(w->out, ')');
    type = put_attrs(w, p, type);
    return (term){name, strcmp(p->op->name, "is_nan") == 0 ? "bool" : type};
}

static term put_value(writer *w, const kn_pat *p)
{
    const char *type = kn_map_get(&w->types, p->name);
    return (term){kn_format(w->a, "%%%s", p->name), type ? type : "f32"};
}

static term put_new_term(writer *w, const kn_pat *p, const char *type)
{
    switch (p->kind) {
    case KN_PAT_VALUE: return put_value(w, p);
    case KN_PAT_NUMBER: return put_number(w, p->number, type);
    case KN_PAT_VAR: return put_constant(w, setting(w, p->name), type);
    case KN_PAT_NODE: return put_node(w, p);
    case KN_PAT_PART: return put_term(w, p->args[pick(w, (uint64_t)p->nargs)], type);
    case KN_PAT_NONE: break;
    }
    return (term){"_", "bool"};
}

static term put_term(writer *w, const kn_pat *p, const char *type)
{
    for (int i = 0; i < w->done.n; i++) {
        if (w->done.at[i].pat == p) {
            return w->done.at[i].term;
        }
    }
    term t = put_new_term(w, p, type);
    kn_push(w->a, &w->done, ((written){p, t}));
    return t;
}

void kn_rule_example(kn_str *out, kn_arena *a, const kn_rule_table *table, int rule, uint64_t seed)
{
    kn_str body = kn_str_make(a);
    writer w = {.out = &body, .a = a, .seed = seed * 2654435761u + (uint64_t)rule};
    const kn_rule_parsed *r = kn_rule_parse(a, table, rule);
    const char *example = put_numbers(&w, choose_alternative(&w, r->rule->example));
    const char *operands = field(a, example, ';', 0);
    read_settings(&w, example);
    read_operands(&w, operands);
    const char *root = put_term(&w, r->pattern, "f32").name;
    if (pick(&w, 4)) { /* an op that nobody knows: what is no output is replaced in another way */
        kn_putf(&body, "  %%result = notation \"(X[*b]) -> Y: Y[*b] = X[*b]\"(%s)\n", root);
        root = "%result";
    }
    kn_putf(out, "graph @%s(%s) -> %s", r->rule->name, operands, root);
    w.out = out;
    put_sizes(&w, operands);
    kn_putf(out, " {\n%s}\n", kn_str_get(&body));
}
