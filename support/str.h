/* Building strings, and a map from strings to pointers. */
#ifndef KN_SUPPORT_STR_H
#define KN_SUPPORT_STR_H

#include "support/arena.h"

/* A string builder in an arena. `at` is always NUL-terminated once anything was put in. */
typedef struct {
    kn_arena *arena;
    char *at;
    size_t n, cap;
} kn_str;

static inline kn_str kn_str_make(kn_arena *arena)
{
    return (kn_str){.arena = arena};
}
void kn_put(kn_str *s, const char *text);
void kn_put_n(kn_str *s, const char *text, size_t n);
void kn_put_char(kn_str *s, char c);
void kn_putf(kn_str *s, const char *fmt, ...) KN_PRINTF(2, 3);
/* The text; "" when empty. */
const char *kn_str_get(const kn_str *s);
/* The fewest decimal digits that read back as the same double (float when `single`), always with a
   '.' or an exponent (1.0, 0.25, 1e-9, 1.5e20), or as inf, -inf, nan. Whatever the locale. */
void kn_put_float(kn_str *s, double value, bool single);
/* A C-style quoted string in ASCII: "..." with \n \t \" \\ and \xNN (always two digits: where C
   would read on, the next character is escaped as well). */
void kn_put_quoted(kn_str *s, const char *text, size_t n);

/* The value of a hexadecimal digit; -1 of anything else. */
int kn_hex_digit(int c);
/* The bytes of the well-formed UTF-8 sequence at `text`, of which there is at least one byte; 0 when
   there is none. */
int kn_utf8_length(const char *text, const char *end);

/* Open-addressing map; keys are compared as text and must outlive the map. Iterates in order of
   insertion, so that what is printed does not depend on hashing. */
typedef struct {
    kn_arena *arena;
    struct kn_map_entry {
        const char *key;
        void *value;
    } * entries; /* in order of insertion; n of them */
    int n, cap;
    int *slots;
    int nslots;
} kn_map;

static inline kn_map kn_map_make(kn_arena *arena)
{
    return (kn_map){.arena = arena};
}
void *kn_map_get(const kn_map *m, const char *key); /* NULL when absent */
bool kn_map_has(const kn_map *m, const char *key);
void kn_map_set(kn_map *m, const char *key, void *value);

#endif
