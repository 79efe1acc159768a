/* Strings under construction, decimal floats, and the ordered map. */
#include "support/str.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/hash.h"

/* Makes room for n more characters and the NUL. */
static void reserve(kn_str *s, size_t n)
{
    if (n < s->cap - s->n)
        return;
    size_t cap = s->cap ? 2 * s->cap : 64;
    while (cap - s->n <= n && cap < PTRDIFF_MAX / 2)
        cap *= 2;
    char *at = kn_alloc(s->arena, cap - s->n > n ? cap : SIZE_MAX);
    if (s->n)
        memcpy(at, s->at, s->n);
    s->at = at;
    s->cap = cap;
}

void kn_put_n(kn_str *s, const char *text, size_t n)
{
    reserve(s, n);
    if (n)
        memcpy(s->at + s->n, text, n);
    s->n += n;
    s->at[s->n] = '\0';
}

void kn_put(kn_str *s, const char *text)
{
    kn_put_n(s, text, strlen(text));
}

void kn_put_char(kn_str *s, char c)
{
    kn_put_n(s, &c, 1);
}

void kn_putf(kn_str *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(n >= 0);
    if (n < 0)
        return;
    reserve(s, (size_t)n);
    va_start(args, fmt);
    vsnprintf(s->at + s->n, (size_t)n + 1, fmt, args);
    va_end(args);
    s->n += (size_t)n;
}

const char *kn_str_get(const kn_str *s)
{
    return s->at ? s->at : "";
}

/* ---- floats ---- */

/* The fewest significant digits, as d[.ddd]e[+-]xx, that read back as the same number. */
static void shortest(char *text, size_t size, double value, bool single)
{
    int most = single ? 9 : 17;
    for (int digits = 1; digits <= most; digits++) {
        snprintf(text, size, "%.*e", digits - 1, value);
        if (single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value)
            return;
    }
}

/* The digits of what shortest() wrote, whatever the locale's decimal point is; returns the
 * exponent. */
static int split_digits(const char *text, char *digits)
{
    const char *e = strchr(text, 'e');
    assert(e);
    for (; text < e; text++)
        if (*text >= '0' && *text <= '9')
            *digits++ = *text;
    *digits = '\0';
    return (int)strtol(e + 1, NULL, 10);
}

static void put_zeros(kn_str *s, int n)
{
    for (int i = 0; i < n; i++)
        kn_put_char(s, '0');
}

/* Digits with the decimal point in its place, for exponents near zero. */
static void put_positional(kn_str *s, const char *digits, int exponent)
{
    int n = (int)strlen(digits), whole = exponent + 1;
    if (whole <= 0) {
        kn_put(s, "0.");
        put_zeros(s, -whole);
        kn_put(s, digits);
    } else if (whole >= n) {
        kn_put(s, digits);
        put_zeros(s, whole - n);
        kn_put(s, ".0");
    } else {
        kn_put_n(s, digits, (size_t)whole);
        kn_put_char(s, '.');
        kn_put(s, digits + whole);
    }
}

static void put_scientific(kn_str *s, const char *digits, int exponent)
{
    kn_put_char(s, digits[0]);
    if (digits[1])
        kn_putf(s, ".%s", digits + 1);
    kn_putf(s, "e%d", exponent);
}

void kn_put_float(kn_str *s, double value, bool single)
{
    if (isnan(value)) {
        kn_put(s, "nan");
        return;
    }
    if (signbit(value))
        kn_put_char(s, '-');
    if (isinf(value)) {
        kn_put(s, "inf");
        return;
    }
    char text[40] = "", digits[40] = "";
    shortest(text, sizeof text, fabs(value), single);
    int exponent = split_digits(text, digits);
    if (exponent >= -5 && exponent < 16)
        put_positional(s, digits, exponent);
    else
        put_scientific(s, digits, exponent);
}

/* ---- quoting ---- */

int kn_hex_digit(int c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int kn_utf8_length(const char *text, const char *end)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned c = p[0];
    int n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (n > end - text)
        return 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && p[1] < 0xa0) || (c == 0xf0 && p[1] < 0x90);
    bool beyond = (c == 0xed && p[1] > 0x9f) || (c == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

/* The letter of a two-character escape, or 0. */
static char short_escape(char c)
{
    switch (c) {
    case '\n': return 'n';
    case '\t': return 't';
    case '"': return '"';
    case '\\': return '\\';
    default: return 0;
    }
}

void kn_put_quoted(kn_str *s, const char *text, size_t n)
{
    bool after_hex = false; /* a hex digit would be read as one more of the escape */
    kn_put_char(s, '"');
    for (size_t i = 0; i < n; i++) {
        char c = text[i], letter = short_escape(c);
        bool trigraph = c == '?' && i && text[i - 1] == '?';
        bool hex =
            !letter && (c < ' ' || c > '~' || trigraph || (after_hex && kn_hex_digit(c) >= 0));
        if (letter)
            kn_putf(s, "\\%c", letter);
        else if (hex)
            kn_putf(s, "\\x%02x", (unsigned char)c);
        else
            kn_put_char(s, c);
        after_hex = hex;
    }
    kn_put_char(s, '"');
}

/* ---- map ---- */

/* The slot of the key, or the empty one (-1) where it belongs. */
static int *find_slot(const kn_map *m, const char *key)
{
    unsigned mask = (unsigned)m->nslots - 1;
    unsigned i = (unsigned)kn_hash64(key, strlen(key), 0) & mask;
    while (m->slots[i] >= 0 && strcmp(m->entries[m->slots[i]].key, key) != 0)
        i = (i + 1) & mask;
    return &m->slots[i];
}

static void rehash(kn_map *m, int nslots)
{
    m->slots = KN_ARRAY(m->arena, int, nslots);
    m->nslots = nslots;
    memset(m->slots, -1, (size_t)nslots * sizeof *m->slots);
    for (int i = 0; i < m->n; i++)
        *find_slot(m, m->entries[i].key) = i;
}

static const struct kn_map_entry *find_entry(const kn_map *m, const char *key)
{
    int i = m->nslots ? *find_slot(m, key) : -1;
    return i >= 0 ? &m->entries[i] : NULL;
}

void *kn_map_get(const kn_map *m, const char *key)
{
    const struct kn_map_entry *entry = find_entry(m, key);
    return entry ? entry->value : NULL;
}

bool kn_map_has(const kn_map *m, const char *key)
{
    return find_entry(m, key) != NULL;
}

void kn_map_set(kn_map *m, const char *key, void *value)
{
    if (m->n >= m->nslots / 2)
        rehash(m, m->nslots ? 2 * m->nslots : 16);
    int *slot = find_slot(m, key);
    if (*slot >= 0) {
        m->entries[*slot].value = value;
        return;
    }
    if (m->n == m->cap)
        m->entries = kn_vec_grow(m->arena, m->entries, m->n, &m->cap, sizeof *m->entries);
    *slot = m->n;
    m->entries[m->n++] = (struct kn_map_entry){key, value};
}
