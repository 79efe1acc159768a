/* The lexer, and the parser of expressions (precedence climbing over the rows of scalar.def).

   One token is current, one may be looked ahead. Numbers are read without regard to the locale. Two
   characters depend on what stands before them: `%` that touches an operand is the remainder
   (`j%4`), else `%name` is a value; and `max=` is an update only after `]`. Brackets, unary
   operators and `else` count as nesting, which is bounded; so is the length of a chain, by the
   depth of the expression (ir/expr.h). */
#include "ir/lex.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/expr_internal.h"

/* ---- Characters and places ---- */

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(int c)
{
    return is_letter(c) || is_digit(c);
}

static bool is_value_char(int c)
{
    return is_word(c) || c == '.' || c == ':' || c == '/' || c == '-';
}

/* The character k after the next, 0 beyond the end. */
static int ahead(const kn_lexer *lx, int k)
{
    return lx->end - lx->at > k ? (unsigned char)lx->at[k] : 0;
}

static kn_loc place_at(const kn_lexer *lx, const char *p)
{
    int column = (int)(p - lx->line_start) + 1 + lx->column0;
    return (kn_loc){lx->file, lx->line, column, lx->where};
}

static void new_line(kn_lexer *lx)
{
    lx->line++;
    lx->line_start = lx->at;
    lx->column0 = 0;
}

static void skip_blanks(kn_lexer *lx)
{
    for (;; lx->at++) {
        if (ahead(lx, 0) == '/' && ahead(lx, 1) == '/') {
            const char *end = memchr(lx->at, '\n', (size_t)(lx->end - lx->at));
            lx->at = end ? end : lx->end;
        }
        int c = ahead(lx, 0);
        if (c == '\n') {
            lx->at++;
            new_line(lx);
            lx->at--;
        } else if (c != ' ' && c != '\t' && c != '\r') {
            return;
        }
    }
}

/* ---- Tokens ---- */

static void scan_word(kn_lexer *lx, kn_token *t)
{
    const char *start = lx->at;
    while (is_word(ahead(lx, 0)) || (ahead(lx, 0) == '.' && is_word(ahead(lx, 1))))
        lx->at++;
    t->kind = KN_T_NAME;
    t->length = (size_t)(lx->at - start);
    t->text = kn_intern_n(lx->ctx, start, t->length);
}

static void scan_sigil(kn_lexer *lx, kn_token *t, kn_token_kind kind)
{
    const char *start = ++lx->at;
    while (is_value_char(ahead(lx, 0)))
        lx->at++;
    while (lx->at > start && !is_word((unsigned char)lx->at[-1]))
        lx->at--;
    if (lx->at == start)
        kn_raise(lx->ctx, KN_INVALID, t->loc, "expected a name after `%c`", start[-1]);
    t->kind = kind;
    t->length = (size_t)(lx->at - start);
    t->text = kn_intern_n(lx->ctx, start, t->length);
}

_Noreturn static void bad_number(const kn_lexer *lx, const kn_token *t, const char *what)
{
    int n = (int)(lx->at - t->start);
    kn_raise(lx->ctx, KN_INVALID, t->loc, "%s `%.*s`", what, n < 60 ? n : 60, t->start);
}

/* Digits of a base are taken; false when the value does not fit. */
static bool scan_digits(kn_lexer *lx, unsigned base, uint64_t *value)
{
    bool fits = true;
    for (int d; (d = kn_hex_digit(ahead(lx, 0))) >= 0 && (unsigned)d < base; lx->at++) {
        fits = fits && *value <= (UINT64_MAX - (unsigned)d) / base;
        *value = *value * base + (unsigned)d;
    }
    return fits;
}

static void skip_exponent(kn_lexer *lx)
{
    int sign = ahead(lx, 1) == '+' || ahead(lx, 1) == '-';
    if ((ahead(lx, 0) != 'e' && ahead(lx, 0) != 'E') || !is_digit(ahead(lx, 1 + sign)))
        return;
    lx->at += 1 + sign;
    while (is_digit(ahead(lx, 0)))
        lx->at++;
}

/* strtod wants the locale's decimal point. */
static double read_float(const kn_lexer *lx, const kn_token *t)
{
    enum { LONGEST = 400 };
    char buf[LONGEST + 16];
    const char *point = localeconv()->decimal_point;
    size_t n = 0;

    if (lx->at - t->start > LONGEST || strlen(point) > 8)
        bad_number(lx, t, "number too long:");
    for (const char *p = t->start; p < lx->at; p++) {
        if (*p == '.') {
            memcpy(buf + n, point, strlen(point));
            n += strlen(point);
        } else {
            buf[n++] = *p;
        }
    }
    buf[n] = 0;
    double f = strtod(buf, NULL);
    if (isinf(f))
        bad_number(lx, t, "number out of range:");
    return f;
}

static void scan_hex(kn_lexer *lx, kn_token *t)
{
    lx->at += 2;
    bool empty = kn_hex_digit(ahead(lx, 0)) < 0;
    bool fits = scan_digits(lx, 16, &t->i);
    if (empty || is_word(ahead(lx, 0))) {
        lx->at += is_word(ahead(lx, 0));
        bad_number(lx, t, "malformed number");
    }
    if (!fits)
        bad_number(lx, t, "number out of range:");
}

static void scan_decimal(kn_lexer *lx, kn_token *t)
{
    bool fits = scan_digits(lx, 10, &t->i);
    const char *whole = lx->at;
    if (ahead(lx, 0) == '.' && ahead(lx, 1) != '.') {
        lx->at++;
        while (is_digit(ahead(lx, 0)))
            lx->at++;
    }
    skip_exponent(lx);
    if (is_word(ahead(lx, 0))) {
        lx->at++;
        bad_number(lx, t, "malformed number");
    }
    if (lx->at != whole) {
        t->kind = KN_T_FLOAT;
        t->f = read_float(lx, t);
    } else if (!fits) {
        bad_number(lx, t, "number out of range:");
    }
}

static void scan_number(kn_lexer *lx, kn_token *t)
{
    t->kind = KN_T_INT;
    if (ahead(lx, 0) == '0' && (ahead(lx, 1) == 'x' || ahead(lx, 1) == 'X'))
        scan_hex(lx, t);
    else
        scan_decimal(lx, t);
    t->length = (size_t)(lx->at - t->start);
}

/* After a backslash. */
static char scan_escape(kn_lexer *lx)
{
    int c = ahead(lx, 0), high = kn_hex_digit(ahead(lx, 1)), low = kn_hex_digit(ahead(lx, 2));
    lx->at++;
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"':
    case '\\': return (char)c;
    case 'x':
        if (high >= 0 && low >= 0) {
            lx->at += 2;
            return (char)(high * 16 + low);
        }
        break;
    default: break;
    }
    kn_raise(lx->ctx, KN_INVALID, place_at(lx, lx->at - 2), "unknown escape in a string");
}

static void scan_string(kn_lexer *lx, kn_token *t)
{
    const char *quote = lx->at++;
    kn_str s = kn_str_make(lx->arena);
    while (ahead(lx, 0) != '"') {
        if (lx->at == lx->end || *lx->at == '\n')
            kn_raise(lx->ctx, KN_INVALID, place_at(lx, quote), "unterminated string");
        char c = *lx->at++;
        kn_put_char(&s, c == '\\' ? scan_escape(lx) : c);
    }
    lx->at++;
    t->kind = KN_T_STRING;
    t->text = kn_str_get(&s);
    t->length = s.n;
}

/* Longest first among those that share a beginning. */
static const char *const puncts[] = {
    "+=!", "*=!", "->", "+=", "*=", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||",
    "+",   "-",   "*",  "/",  "%",  "<",  ">",  "=",  "!",  "&",  "|",  "^",  "~",
    "(",   ")",   "[",  "]",  "{",  "}",  ",",  ":",  ";",  ".",  "?",  "#"};

/* max= and min=, where an update may stand. */
static const char *const updates[] = {"max=!", "min=!", "max=", "min="};

static const char *starts_with(const kn_lexer *lx, const char *const *list, int n)
{
    size_t left = (size_t)(lx->end - lx->at);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(list[i]);
        if (len <= left && memcmp(lx->at, list[i], len) == 0)
            return list[i];
    }
    return NULL;
}

static bool scan_update(kn_lexer *lx, kn_token *t)
{
    const char *p = lx->after_bracket
                        ? starts_with(lx, updates, (int)(sizeof updates / sizeof *updates))
                        : NULL;
    if (!p || (ahead(lx, 3) == '=' && ahead(lx, 4) == '='))
        return false;
    t->kind = KN_T_PUNCT;
    t->length = strlen(p);
    t->text = kn_intern(lx->ctx, p);
    lx->at += t->length;
    return true;
}

static void scan_punct(kn_lexer *lx, kn_token *t)
{
    const char *p = starts_with(lx, puncts, (int)(sizeof puncts / sizeof *puncts));
    int c = ahead(lx, 0);
    if (!p && c > ' ' && c < 127)
        kn_raise(lx->ctx, KN_INVALID, t->loc, "unexpected character `%c`", c);
    if (!p)
        kn_raise(lx->ctx, KN_INVALID, t->loc, "unexpected byte 0x%02x", c);
    t->kind = KN_T_PUNCT;
    t->length = strlen(p);
    t->text = kn_intern(lx->ctx, p);
    lx->at += t->length;
}

static bool ends_operand(const kn_token *t)
{
    return t->kind == KN_T_NAME || t->kind == KN_T_INT || t->kind == KN_T_FLOAT ||
           (t->kind == KN_T_PUNCT && (*t->text == ']' || *t->text == ')'));
}

static void scan_any(kn_lexer *lx, kn_token *t)
{
    int c = ahead(lx, 0), d = ahead(lx, 1);
    if (lx->at == lx->end)
        t->kind = KN_T_END;
    else if (is_digit(c) || (c == '.' && is_digit(d)))
        scan_number(lx, t);
    else if (scan_update(lx, t))
        return;
    else if (is_letter(c))
        scan_word(lx, t);
    else if (c == '"')
        scan_string(lx, t);
    else if (c == '@')
        scan_sigil(lx, t, KN_T_SYMBOL);
    else if (c == '%' && is_word(d) && lx->operand_end != lx->at)
        scan_sigil(lx, t, KN_T_VALUE);
    else
        scan_punct(lx, t);
}

static kn_token scan(kn_lexer *lx)
{
    kn_token t = {0};
    skip_blanks(lx);
    t.loc = place_at(lx, lx->at);
    t.start = lx->at;
    scan_any(lx, &t);
    t.stop = lx->at;
    lx->operand_end = ends_operand(&t) ? t.stop : NULL;
    lx->after_bracket = t.kind == KN_T_PUNCT && *t.text == ']';
    return t;
}

/* ---- The lexer's face ---- */

void kn_lex_init(kn_lexer *lx, kn_arena *arena, const char *file, const char *text, size_t n,
                 kn_loc loc)
{
    kn_ctx *ctx = kn_arena_ctx(arena);
    memset(lx, 0, sizeof *lx);
    lx->ctx = ctx;
    lx->arena = arena;
    lx->file = file ? kn_intern(ctx, file) : loc.file;
    lx->where = loc.where;
    lx->at = lx->line_start = text;
    lx->end = text + n;
    lx->line = loc.line > 0 ? loc.line : 1;
    lx->column0 = loc.line > 0 && loc.column > 0 ? loc.column - 1 : 0;
    lx->token = scan(lx);
}

void kn_lex_next(kn_lexer *lx)
{
    lx->token = lx->has_ahead ? lx->ahead : scan(lx);
    lx->has_ahead = false;
}

const kn_token *kn_lex_peek(kn_lexer *lx)
{
    if (!lx->has_ahead)
        lx->ahead = scan(lx);
    lx->has_ahead = true;
    return &lx->ahead;
}

void kn_lex_enter(kn_lexer *lx)
{
    if (++lx->depth > KN_MAX_NESTING)
        kn_lex_fail(lx, "nested deeper than %d", KN_MAX_NESTING);
}

void kn_lex_leave(kn_lexer *lx)
{
    assert(lx->depth > 0);
    lx->depth--;
}

bool kn_lex_is(const kn_lexer *lx, const char *punct_or_name)
{
    const kn_token *t = &lx->token;
    return (t->kind == KN_T_PUNCT || t->kind == KN_T_NAME) && strcmp(t->text, punct_or_name) == 0;
}

bool kn_lex_accept(kn_lexer *lx, const char *punct_or_name)
{
    bool is = kn_lex_is(lx, punct_or_name);
    if (is)
        kn_lex_next(lx);
    return is;
}

/* How a message calls the current token. */
static const char *token_text(const kn_lexer *lx)
{
    const kn_token *t = &lx->token;
    int n = t->stop - t->start < 60 ? (int)(t->stop - t->start) : 60;
    if (t->kind == KN_T_END)
        return "the end";
    if (t->kind == KN_T_STRING)
        return "a string";
    return kn_format(lx->arena, "`%.*s`", n, t->start);
}

_Noreturn static void fail_expected(kn_lexer *lx, const char *what)
{
    kn_lex_fail(lx, "expected %s, found %s", what, token_text(lx));
}

void kn_lex_expect(kn_lexer *lx, const char *punct_or_name)
{
    if (!kn_lex_accept(lx, punct_or_name))
        fail_expected(lx, kn_format(lx->arena, "`%s`", punct_or_name));
}

const char *kn_lex_name(kn_lexer *lx)
{
    const char *name = lx->token.text;
    if (lx->token.kind != KN_T_NAME)
        fail_expected(lx, "a name");
    kn_lex_next(lx);
    return name;
}

int64_t kn_lex_int(kn_lexer *lx)
{
    bool minus = kn_lex_accept(lx, "-");
    uint64_t i = lx->token.i;
    if (lx->token.kind != KN_T_INT)
        fail_expected(lx, "an integer");
    if (i > (uint64_t)INT64_MAX + minus)
        kn_lex_fail(lx, "%s%" PRIu64 " does not fit 64 bits", minus ? "-" : "", i);
    kn_lex_next(lx);
    return (int64_t)(minus ? 0 - i : i);
}

void kn_lex_fail(kn_lexer *lx, const char *fmt, ...)
{
    va_list args;
    char message[512];
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    kn_raise(lx->ctx, KN_INVALID, lx->token.loc, "%s", message);
}

/* ---- Expressions ---- */

static const kn_expr *parse_unary(kn_lexer *lx);

static bool is_reserved(const char *name)
{
    return strcmp(name, "else") == 0 || strcmp(name, "where") == 0 || strcmp(name, "in") == 0;
}

/* `:type` right after the literal that was just taken; KN_UNTYPED when there is none. */
static kn_dtype parse_suffix(kn_lexer *lx, const char *literal_end)
{
    kn_dtype type = KN_UNTYPED;
    if (!kn_lex_is(lx, ":") || lx->token.start != literal_end)
        return type;
    const kn_token *t = kn_lex_peek(lx);
    if (t->kind != KN_T_NAME || t->start != lx->token.stop ||
        !kn_dtype_parse(t->text, t->length, &type))
        return KN_UNTYPED;
    kn_lex_next(lx);
    kn_lex_next(lx);
    return type;
}

static const kn_expr *float_literal(kn_lexer *lx, double f, bool minus)
{
    kn_token literal = lx->token;
    kn_lex_next(lx);
    kn_dtype type = parse_suffix(lx, literal.stop);
    if (type != KN_UNTYPED && !kn_dtype_is_float(type))
        kn_raise(lx->ctx, KN_INVALID, literal.loc, "a literal of type %s cannot be a float",
                 kn_dtype_name(type));
    return kn_float(lx->arena, type, minus ? -f : f);
}

static bool fits(kn_dtype type, uint64_t i, bool minus)
{
    if (type == KN_UNTYPED)
        type = KN_INDEX;
    if (minus)
        return i == 0 || (kn_dtype_min(type) < 0 && i <= 0 - (uint64_t)kn_dtype_min(type));
    return i <= kn_dtype_max(type);
}

static const kn_expr *int_literal(kn_lexer *lx, bool minus)
{
    kn_token literal = lx->token;
    uint64_t i = literal.i;
    kn_lex_next(lx);
    kn_dtype type = parse_suffix(lx, literal.stop);
    if (type != KN_UNTYPED && kn_dtype_is_float(type))
        return kn_float(lx->arena, type, minus ? -(double)i : (double)i);
    if (!fits(type, i, minus))
        kn_raise(lx->ctx, KN_INVALID, literal.loc, "%s%" PRIu64 " does not fit %s",
                 minus ? "-" : "", i,
                 type == KN_UNTYPED ? "64 bits without a type" : kn_dtype_name(type));
    return kn_int(lx->arena, type, (int64_t)(minus ? 0 - i : i));
}

/* A number, inf or nan, with its sign; NULL when there is none. */
static const kn_expr *parse_number(kn_lexer *lx, bool minus)
{
    const kn_token *t = &lx->token;
    if (t->kind == KN_T_INT)
        return int_literal(lx, minus);
    if (t->kind == KN_T_FLOAT)
        return float_literal(lx, t->f, minus);
    if (kn_lex_is(lx, "inf"))
        return float_literal(lx, HUGE_VAL, minus);
    if (kn_lex_is(lx, "nan"))
        return float_literal(lx, (double)NAN, minus);
    return NULL;
}

static bool at_number(const kn_token *t)
{
    return t->kind == KN_T_INT || t->kind == KN_T_FLOAT ||
           (t->kind == KN_T_NAME && (strcmp(t->text, "inf") == 0 || strcmp(t->text, "nan") == 0));
}

/* ---- Loads, calls, casts ---- */

static const kn_expr *parse_subscript(kn_lexer *lx)
{
    if (kn_lex_is(lx, "*") && kn_lex_peek(lx)->kind == KN_T_NAME) {
        kn_lex_next(lx);
        return kn_var(lx->arena, KN_UNTYPED, kn_intern_f(lx->ctx, "*%s", kn_lex_name(lx)));
    }
    return kn_parse_expr(lx);
}

/* At the `[`. */
static const kn_expr *parse_load(kn_lexer *lx, const char *name)
{
    const kn_expr *subs[KN_MAX_RANK];
    int n = 0;
    kn_lex_expect(lx, "[");
    while (!kn_lex_is(lx, "]")) {
        if (n > 0)
            kn_lex_expect(lx, ",");
        if (n == KN_MAX_RANK)
            kn_lex_fail(lx, "more than %d subscripts", KN_MAX_RANK);
        subs[n++] = parse_subscript(lx);
    }
    kn_lex_expect(lx, "]");
    if (!kn_lex_accept(lx, "else"))
        return kn_load(lx->arena, KN_UNTYPED, name, subs, n);
    kn_lex_enter(lx);
    const kn_expr *v = parse_unary(lx);
    kn_lex_leave(lx);
    return kn_load_else(lx->arena, name, subs, n, v);
}

/* f32, typeof(X), acctype(X), or an attribute's name: as text. */
static const char *parse_type_text(kn_lexer *lx)
{
    const char *name = kn_lex_name(lx);
    bool of = strcmp(name, "typeof") == 0 || strcmp(name, "acctype") == 0;
    if (!of || !kn_lex_accept(lx, "("))
        return name;
    name = kn_intern_f(lx->ctx, "%s(%s)", name, kn_lex_name(lx));
    kn_lex_expect(lx, ")");
    return name;
}

static const kn_expr *parse_cast(kn_lexer *lx, kn_cast_mode mode)
{
    const char *type = parse_type_text(lx);
    kn_lex_expect(lx, ",");
    const kn_expr *x = kn_parse_expr(lx);
    kn_lex_expect(lx, ")");
    return kn_cast_named(lx->arena, mode, type, x);
}

static bool cast_mode(const char *name, kn_cast_mode *mode)
{
    static const char *const names[] = {"cast", "sat", "bitcast"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(name, names[i]) == 0) {
            *mode = (kn_cast_mode)i;
            return true;
        }
    }
    return false;
}

static const kn_expr *parse_function(kn_lexer *lx, kn_scalar op)
{
    const kn_scalar_info *info = kn_scalar_get(op);
    const kn_expr *args[3];
    for (int i = 0; i < info->arity; i++) {
        if (i > 0 && !kn_lex_accept(lx, ","))
            fail_expected(
                lx, kn_format(lx->arena, "`,`: %s takes %d arguments", info->text, info->arity));
        args[i] = kn_parse_expr(lx);
    }
    if (kn_lex_is(lx, ","))
        kn_lex_fail(lx, "%s takes %d argument%s", info->text, info->arity,
                    info->arity > 1 ? "s" : "");
    kn_lex_expect(lx, ")");
    return kn_op(lx->arena, KN_UNTYPED, op, args, info->arity);
}

/* At the `(`; `name` stood before it. */
static const kn_expr *parse_call(kn_lexer *lx, const char *name, kn_loc loc)
{
    kn_scalar op;
    kn_cast_mode mode;
    bool cast = cast_mode(name, &mode);
    if (!cast && !kn_scalar_parse(name, &op))
        kn_raise(lx->ctx, KN_INVALID, loc, "unknown function `%s`", name);
    kn_lex_next(lx);
    return cast ? parse_cast(lx, mode) : parse_function(lx, op);
}

static const kn_expr *parse_name(kn_lexer *lx)
{
    kn_loc loc = lx->token.loc;
    if (is_reserved(lx->token.text))
        fail_expected(lx, "an expression");
    const char *name = kn_lex_name(lx);
    if (kn_lex_is(lx, "["))
        return parse_load(lx, name);
    if (kn_lex_is(lx, "("))
        return parse_call(lx, name, loc);
    if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
        return kn_int(lx->arena, KN_BOOL, *name == 't');
    return kn_var(lx->arena, KN_UNTYPED, name);
}

static const kn_expr *parse_primary(kn_lexer *lx)
{
    const kn_expr *e = parse_number(lx, false);
    if (e)
        return e;
    if (lx->token.kind == KN_T_NAME)
        return parse_name(lx);
    if (!kn_lex_accept(lx, "("))
        fail_expected(lx, "an expression");
    e = kn_parse_expr(lx);
    kn_lex_expect(lx, ")");
    return e;
}

static const kn_expr *parse_unary(kn_lexer *lx)
{
    kn_scalar op;
    if (kn_lex_is(lx, "-"))
        op = KN_OP_NEG;
    else if (kn_lex_is(lx, "!"))
        op = KN_OP_LNOT;
    else if (kn_lex_is(lx, "~"))
        op = KN_OP_NOT;
    else
        return parse_primary(lx);
    kn_lex_next(lx);
    if (op == KN_OP_NEG && at_number(&lx->token))
        return parse_number(lx, true);
    kn_lex_enter(lx);
    const kn_expr *x = parse_unary(lx);
    kn_lex_leave(lx);
    return kn_op(lx->arena, KN_UNTYPED, op, &x, 1);
}

/* ---- Binary operators ---- */

/* An operand, and whether an operator stands bare at its top: for && || & | ^ never to mix without
 * brackets. */
typedef struct {
    const kn_expr *e;
    bool bare;
    kn_scalar op;
} operand;

static bool binary_op(const kn_lexer *lx, kn_scalar *op)
{
    if (lx->token.kind != KN_T_PUNCT)
        return false;
    for (int i = 0; i < KN_SCALAR_COUNT; i++) {
        const kn_scalar_info *info = kn_scalar_get((kn_scalar)i);
        if (info->precedence > 0 && info->arity == 2 && strcmp(info->text, lx->token.text) == 0) {
            *op = (kn_scalar)i;
            return true;
        }
    }
    return false;
}

static bool is_logic_group(kn_scalar op)
{
    return op == KN_OP_LAND || op == KN_OP_LOR || op == KN_OP_AND || op == KN_OP_OR ||
           op == KN_OP_XOR;
}

static void refuse_mixing(kn_lexer *lx, kn_loc loc, kn_scalar op, operand x)
{
    if (x.bare && x.op != op && is_logic_group(op) && is_logic_group(x.op))
        kn_raise(lx->ctx, KN_INVALID, loc, "`%s` and `%s` need brackets to be mixed",
                 kn_scalar_get(x.op)->text, kn_scalar_get(op)->text);
}

/* An operand whose bare operators bind at least as tightly as `least`. */
static operand parse_binary(kn_lexer *lx, int least)
{
    operand x = {parse_unary(lx), false, KN_OP_ADD};
    kn_scalar op;
    while (binary_op(lx, &op) && kn_scalar_get(op)->precedence >= least) {
        kn_loc loc = lx->token.loc;
        kn_lex_next(lx);
        operand y = parse_binary(lx, kn_scalar_get(op)->precedence + 1);
        refuse_mixing(lx, loc, op, x);
        refuse_mixing(lx, loc, op, y);
        const kn_expr *args[2] = {x.e, y.e};
        x = (operand){kn_op(lx->arena, KN_UNTYPED, op, args, 2), true, op};
    }
    return x;
}

const kn_expr *kn_parse_expr(kn_lexer *lx)
{
    kn_lex_enter(lx);
    operand x = parse_binary(lx, 1);
    kn_lex_leave(lx);
    return x.e;
}

/* ---- Index expressions and types ---- */

typedef struct {
    kn_lexer *lx;
    kn_loc loc; /* of the expression */
} typing;

_Noreturn static void refuse(const typing *t, const char *what)
{
    kn_raise(t->lx->ctx, KN_INVALID, t->loc, "%s cannot stand in an index expression", what);
}

static const kn_expr *typed_index(const typing *t, const kn_expr *e);

static const kn_expr *typed_op(const typing *t, const kn_expr *e)
{
    const kn_expr *args[3];
    kn_scalar_class class = kn_scalar_get(e->op)->class;
    if (class == KN_CLASS_FLOAT || class == KN_CLASS_BITS)
        refuse(t, kn_format(t->lx->arena, "`%s`", kn_scalar_get(e->op)->text));
    for (int i = 0; i < e->nargs; i++) {
        bool truth = class == KN_CLASS_LOGIC || (class == KN_CLASS_SELECT && i == 0);
        args[i] = typed_index(t, e->args[i]);
        if (truth != (args[i]->type == KN_BOOL))
            kn_raise(t->lx->ctx, KN_INVALID, t->loc, "`%s` needs %s", kn_scalar_get(e->op)->text,
                     truth ? "a condition" : "indices, not a condition");
    }
    bool yields_bool = class == KN_CLASS_LOGIC || class == KN_CLASS_COMPARE;
    return kn_op(t->lx->arena, yields_bool ? KN_BOOL : KN_INDEX, e->op, args, e->nargs);
}

static const kn_expr *typed_index(const typing *t, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST:
        if (e->real || (e->type != KN_UNTYPED && e->type != KN_INDEX && e->type != KN_BOOL))
            refuse(t, e->real ? "a float" : "a typed literal");
        return e->type == KN_UNTYPED ? kn_index(t->lx->arena, e->i) : e;
    case KN_E_VAR: return kn_var(t->lx->arena, KN_INDEX, e->name);
    case KN_E_LOAD: refuse(t, "an element of a tensor");
    case KN_E_CAST: refuse(t, "a cast");
    case KN_E_OP: return typed_op(t, e);
    }
    return e;
}

const kn_expr *kn_parse_index(kn_lexer *lx)
{
    typing t = {lx, lx->token.loc};
    const kn_expr *e = typed_index(&t, kn_parse_expr(lx));
    if (e->type != KN_INDEX)
        kn_raise(lx->ctx, KN_INVALID, t.loc, "expected an index expression, found a condition");
    return kn_index_simplify_at(lx->arena, e, t.loc);
}

kn_dtype kn_parse_dtype(kn_lexer *lx)
{
    kn_dtype type;
    const kn_token *t = &lx->token;
    if (t->kind != KN_T_NAME || !kn_dtype_parse(t->text, t->length, &type))
        fail_expected(lx, "an element type");
    kn_lex_next(lx);
    return type;
}
