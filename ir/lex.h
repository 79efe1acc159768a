/* The one lexer: notation, graph text, loop text, schedules. Comments run from // to the end of the
   line. A faulty character, an unterminated string, a number out of range raise KN_INVALID with the
   place. */
#ifndef KN_IR_LEX_H
#define KN_IR_LEX_H

#include "ir/expr.h"

typedef enum {
    KN_T_END,
    KN_T_NAME,   /* letters, digits, _ and inner dots: `text` (interned) */
    KN_T_VALUE,  /* %name: graph values; `text` without the % (any of [A-Za-z0-9_.:/-] after it, the
                    last one of  [A-Za-z0-9_]). A % that touches an operand before it is the
                    operator:  `j%4` */
    KN_T_SYMBOL, /* @name: graphs, modules, functions; `text` without the @ */
    KN_T_INT,    /* `i` */
    KN_T_FLOAT,  /* `f`; inf and nan are NAMEs */
    KN_T_STRING, /* "..." with the escapes of kn_put_quoted; `text`, `length` */
    KN_T_PUNCT   /* one of the operators, longest match: `text` interned, e.g. "->", "+=!", "max=!",
                    "<<", ":" */
} kn_token_kind;

typedef struct {
    kn_token_kind kind;
    kn_loc loc;
    const char *text;
    size_t length;
    uint64_t i;
    double f;
    const char *start, *stop; /* where it stands in the source */
} kn_token;

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const char *file, *at, *end, *line_start;
    const char *where; /* of the locations */
    int line;
    int column0;             /* added to the columns of the first line */
    const char *operand_end; /* where the last operand token stopped: `j%4` is not j and %4 */
    bool after_bracket; /* the last token was ]: then `max=` is an operator, `{max=3}` is not */
    int depth;          /* nesting of brackets, bounded by KN_MAX_NESTING */
    kn_token token;     /* the current one */
    kn_token ahead;     /* valid when has_ahead */
    bool has_ahead;
} kn_lexer;

enum { KN_MAX_NESTING = 200 };

/* Starts on `text` (n bytes, need not end in NUL) and reads the first token. `file` is for
   locations; `loc` offsets them when the text stands inside another (loc.line > 0). */
void kn_lex_init(kn_lexer *lx, kn_arena *arena, const char *file, const char *text, size_t n,
                 kn_loc loc);
void kn_lex_next(kn_lexer *lx);
const kn_token *kn_lex_peek(kn_lexer *lx); /* the token after the current one */
/* A bracket is entered or left: raises when KN_MAX_NESTING is exceeded. For recursive parsers. */
void kn_lex_enter(kn_lexer *lx);
void kn_lex_leave(kn_lexer *lx);
bool kn_lex_is(const kn_lexer *lx, const char *punct_or_name);
bool kn_lex_accept(kn_lexer *lx, const char *punct_or_name);
void kn_lex_expect(kn_lexer *lx, const char *punct_or_name); /* raises `expected X, found Y` */
const char *kn_lex_name(kn_lexer *lx);                       /* takes a NAME or raises */
int64_t kn_lex_int(kn_lexer *lx); /* takes an INT with an optional '-' or raises */
_Noreturn void kn_lex_fail(kn_lexer *lx, const char *fmt, ...) KN_PRINTF(2, 3);

/* Parses one expression into an untyped tree: VAR for a name, LOAD for name[...], literals CONST
   with type KN_UNTYPED (or the suffix's type), casts with their type as a name. `select`, casts and
   the functions of scalar.def are recognised by name. true and false have type bool. `-` before a
   literal makes a negative literal. A pack in a subscript, `*b`, is a VAR whose name is "*b".
   Mixing && || & | ^ without brackets is refused. */
const kn_expr *kn_parse_expr(kn_lexer *lx);
/* An index expression over size names, typed and canonical: dimensions, attributes. `/` and `%` are
 * floor. */
const kn_expr *kn_parse_index(kn_lexer *lx);
kn_dtype kn_parse_dtype(kn_lexer *lx);

#endif
