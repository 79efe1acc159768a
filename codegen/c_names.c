/* Identifiers of C for names of the loop IR. What means something in C, in the headers that npu.h
   includes, or is a macro of a compiler, is avoided by a _ at the end. */
#include "codegen/c_internal.h"

/* clang-format off */
static const char *const keywords[] = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class",
    "complex", "const", "constexpr", "continue", "default", "delete", "do", "double", "else",
    "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if",
    "imaginary", "inline", "int", "long", "mutable", "namespace", "new", "noreturn", "not",
    "nullptr", "operator", "or", "private", "protected", "public", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
    "throw", "true", "try", "typedef", "typename", "typeof", "union", "unsigned", "using",
    "virtual", "void", "volatile", "while", "xor",
};

/* Macros, types and objects; also those that a compiler defines outside strict C, and old ones of
   math.h. */
static const char *const others[] = {
    "DOMAIN", "EOF", "HUGE", "HUGE_VAL", "HUGE_VALF", "HUGE_VALL", "I", "INFINITY", "MAXFLOAT",
    "NAN", "NULL", "OVERFLOW", "PLOSS", "SING", "TLOSS", "UNDERFLOW", "X_TLOSS", "arm", "double_t",
    "float_t", "i386", "linux", "main", "math_errhandling", "mips", "offsetof", "pascal",
    "ptrdiff_t", "signgam", "size_t", "sparc", "sun", "unix", "vax", "wchar_t",
};

/* Functions of math.h and builtins of compilers; also with f or l at the end. */
static const char *const functions[] = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "bcmp", "bcopy", "bzero",
    "cbrt", "ceil", "copysign", "cos", "cosh", "div", "drem", "erf", "erfc", "exit", "exp",
    "exp10", "exp2", "expm1", "fabs", "fdim", "ffs", "finite", "floor", "fma", "fmax", "fmin",
    "fmod", "fpclassify", "frexp", "gamma", "hypot", "ilogb", "index", "isfinite", "isgreater",
    "isinf", "isless", "islessgreater", "isnan", "isnormal", "issignaling", "isunordered", "j0",
    "j1", "jn", "ldexp", "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb",
    "lrint", "lround", "memchr", "memcmp", "memcpy", "memmove", "memset", "modf", "nan",
    "nearbyint", "nextafter", "nexttoward", "pow", "pow10", "remainder", "remquo", "rindex",
    "rint", "round", "scalb", "scalbln", "scalbn", "signbit", "significand", "sin", "sincos",
    "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1", "yn",
};
/* clang-format on */

static bool is_listed(const char *const *list, size_t n, const char *s, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(list[i]) == length && memcmp(list[i], s, length) == 0)
            return true;
    }
    return false;
}

#define IS_LISTED(list, s, length) is_listed(list, sizeof list / sizeof list[0], s, length)

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Families of names: a _ at the end would not leave them. */
static bool has_reserved_prefix(const char *s)
{
    return s[0] == '_' || begins(s, "npu_") || begins(s, "NPU_") || begins(s, "INT") ||
           begins(s, "UINT") || begins(s, "FP_") || begins(s, "M_");
}

static bool is_reserved(const char *s)
{
    size_t n = strlen(s);
    bool variant = s[n - 1] == 'f' || s[n - 1] == 'l';
    return IS_LISTED(keywords, s, n) || IS_LISTED(others, s, n) || IS_LISTED(functions, s, n) ||
           (variant && IS_LISTED(functions, s, n - 1)) || (n > 2 && strcmp(s + n - 2, "_t") == 0);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Letters, digits and _ only; x before a first digit. */
static void put_plain(kn_str *out, const char *name)
{
    if (!is_letter(name[0]))
        kn_put(out, "x");
    for (; *name; name++)
        kn_put_char(out, is_letter(*name) || is_digit(*name) ? *name : '_');
}

static bool is_in_scope(const c_emitter *c, const char *s)
{
    for (int i = c->scope.n - 1; i >= 0; i--) {
        if (strcmp(c->scope.at[i].c, s) == 0 ||
            (c->scope.at[i].at && strcmp(c->scope.at[i].at, s) == 0))
            return true;
    }
    return false;
}

const char *kn_c_fresh(const c_emitter *c, const char *name)
{
    kn_str s = kn_str_make(c->arena);
    put_plain(&s, name);
    for (;;) {
        const char *text = kn_str_get(&s);
        if (has_reserved_prefix(text))
            kn_c_insert(&s, 0, "x");
        else if (is_reserved(text) || kn_map_has(&c->taken, text) || is_in_scope(c, text))
            kn_put(&s, "_");
        else
            return text;
    }
}

const char *kn_c_global(c_emitter *c, const char *middle, const char *name)
{
    kn_str plain = kn_str_make(c->arena), s = kn_str_make(c->arena);
    put_plain(&plain, name);
    kn_putf(&s, "%s_%s%s", c->options->prefix, middle, kn_str_get(&plain));
    while (kn_map_has(&c->taken, kn_str_get(&s)))
        kn_put(&s, "_");
    kn_map_set(&c->taken, kn_str_get(&s), c);
    return kn_str_get(&s);
}
