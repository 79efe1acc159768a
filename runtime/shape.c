/* Recursive descent over

     or    = and { "||" and }
     and   = cmp { "&&" cmp }
     cmp   = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
     sum   = term { ("+" | "-") term }
     term  = unary { ("*" | "/" | "%") unary }
     unary = [ "-" | "!" ] atom
     atom  = number | name | "(" or ")"
           | ("min" | "max") "(" or "," or ")" | "select" "(" or "," or "," or ")"

   with floor division and conditions as 0 and 1. */
#include "runtime/shape.h"

#include <ctype.h>
#include <string.h>

enum { MAX_NESTING = 100 };

typedef struct {
    const char *at;
    const kn_dim *dims;
    const int64_t *values;
    int n, depth;
    bool failed;
} kn_eval;

static int64_t eval_or(kn_eval *e);

static int64_t fail(kn_eval *e)
{
    e->failed = true;
    return 0;
}

static bool accept(kn_eval *e, const char *text)
{
    while (*e->at == ' ') {
        e->at++;
    }
    size_t n = strlen(text);
    if (strncmp(e->at, text, n) != 0) {
        return false;
    }
    e->at += n;
    return true;
}

static int64_t argument(kn_eval *e, const char *after)
{
    int64_t x = eval_or(e);
    return accept(e, after) ? x : fail(e);
}

static int64_t function(kn_eval *e, const char *name, size_t n)
{
    if (n == 3 && strncmp(name, "min", 3) == 0) {
        int64_t x = argument(e, ","), y = argument(e, ")");
        return x < y ? x : y;
    }
    if (n == 3 && strncmp(name, "max", 3) == 0) {
        int64_t x = argument(e, ","), y = argument(e, ")");
        return x > y ? x : y;
    }
    if (n == 6 && strncmp(name, "select", 6) == 0) {
        int64_t c = argument(e, ","), x = argument(e, ","), y = argument(e, ")");
        return c ? x : y;
    }
    return fail(e);
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

static int find(const kn_eval *e, const char *name, size_t n)
{
    for (int i = 0; i < e->n; i++) {
        if (strlen(e->dims[i].name) == n && memcmp(e->dims[i].name, name, n) == 0) {
            return i;
        }
    }
    return -1;
}

static int64_t name_or_call(kn_eval *e)
{
    const char *name = e->at;
    while (in_name(*e->at)) {
        e->at++;
    }
    size_t n = (size_t)(e->at - name);
    if (n && accept(e, "(")) {
        return function(e, name, n);
    }
    int i = find(e, name, n);
    return i < 0 ? fail(e) : e->values[i];
}

static int64_t number(kn_eval *e)
{
    int64_t value = 0;
    while (isdigit((unsigned char)*e->at)) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *e->at - '0', &value)) {
            return fail(e);
        }
        e->at++;
    }
    return value;
}

static int64_t atom(kn_eval *e)
{
    if (++e->depth > MAX_NESTING) {
        return fail(e);
    }
    int64_t x;
    if (accept(e, "(")) {
        x = argument(e, ")");
    } else {
        x = isdigit((unsigned char)*e->at) ? number(e) : name_or_call(e);
    }
    e->depth--;
    return x;
}

static int64_t unary(kn_eval *e)
{
    if (accept(e, "-")) {
        int64_t x = atom(e);
        return x == INT64_MIN ? fail(e) : -x;
    }
    return accept(e, "!") ? !atom(e) : atom(e);
}

static int64_t divide(kn_eval *e, int64_t x, int64_t y, bool remainder)
{
    if (y == 0 || (x == INT64_MIN && y == -1)) {
        return fail(e);
    }
    int64_t q = x / y, r = x % y;
    bool down = r != 0 && (r < 0) != (y < 0);
    return remainder ? r + (down ? y : 0) : q - down;
}

static int64_t term(kn_eval *e)
{
    int64_t x = unary(e);
    while (!e->failed) {
        if (accept(e, "*")) {
            if (__builtin_mul_overflow(x, unary(e), &x)) {
                return fail(e);
            }
        } else if (accept(e, "/")) {
            x = divide(e, x, unary(e), false);
        } else if (accept(e, "%")) {
            x = divide(e, x, unary(e), true);
        } else {
            return x;
        }
    }
    return 0;
}

static int64_t sum(kn_eval *e)
{
    int64_t x = term(e);
    while (!e->failed) {
        bool plus = accept(e, "+");
        if (!plus && !accept(e, "-")) {
            return x;
        }
        int64_t y = term(e);
        if (plus ? __builtin_add_overflow(x, y, &x) : __builtin_sub_overflow(x, y, &x)) {
            return fail(e);
        }
    }
    return 0;
}

static int64_t comparison(kn_eval *e)
{
    int64_t x = sum(e);
    if (accept(e, "<=")) {
        return x <= sum(e);
    }
    if (accept(e, ">=")) {
        return x >= sum(e);
    }
    if (accept(e, "==")) {
        return x == sum(e);
    }
    if (accept(e, "!=")) {
        return x != sum(e);
    }
    if (accept(e, "<")) {
        return x < sum(e);
    }
    return accept(e, ">") ? x > sum(e) : x;
}

static int64_t eval_and(kn_eval *e)
{
    int64_t x = comparison(e);
    while (!e->failed && accept(e, "&&")) {
        int64_t y = comparison(e);
        x = x && y;
    }
    return x;
}

static int64_t eval_or(kn_eval *e)
{
    int64_t x = eval_and(e);
    while (!e->failed && accept(e, "||")) {
        int64_t y = eval_and(e);
        x = x || y;
    }
    return x;
}

bool kn_shape_eval(const char *text, const kn_dim *dims, const int64_t *values, int n, int64_t *out)
{
    kn_eval e = {.at = text, .dims = dims, .values = values, .n = n};
    *out = eval_or(&e);
    accept(&e, "");
    return !e.failed && *e.at == '\0';
}

int kn_shape_name(const char *text, const kn_dim *dims, int n)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(dims[i].name, text) == 0) {
            return i;
        }
    }
    return -1;
}
