/* Reading JSON strictly: every mistake is an error with its path. The document is cJSON's; what is
 * kept is interned. */
#include <math.h>
#include <stdio.h>

#include "ir/loop_internal.h"
#include "ir/target_internal.h"

void kn_json_fail(const kn_target_reader *r, kn_json j, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    kn_raise(r->ctx, KN_INVALID, (kn_loc){.file = r->file, .where = *j.path ? j.path : NULL}, "%s",
             text);
}

/* ---- the document ---- */

enum { MAX_DEPTH = 16 };

/* cJSON recurses: depth is bounded before it sees the text. */
static void check_depth(const kn_target_reader *r, const char *text, size_t n)
{
    int depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        if (quoted) {
            quoted = text[i] != '"';
            i += text[i] == '\\';
            continue;
        }
        quoted = text[i] == '"';
        depth += (text[i] == '{' || text[i] == '[') - (text[i] == '}' || text[i] == ']');
        if (depth > MAX_DEPTH) {
            kn_raise(r->ctx, KN_INVALID, (kn_loc){.file = r->file}, "nested more than %d deep",
                     MAX_DEPTH);
        }
    }
}

static void destroy(void *json)
{
    cJSON_Delete(json);
}

static kn_loc place_of(const kn_target_reader *r, const char *text, const char *at)
{
    kn_loc loc = {.file = r->file, .line = 1, .column = 1};
    for (; text < at; text++) {
        loc.column = *text == '\n' ? 1 : loc.column + 1;
        loc.line += *text == '\n';
    }
    return loc;
}

kn_json kn_json_parse(const kn_target_reader *r, const char *text, size_t n)
{
    if (n > KN_TARGET_MAX_BYTES) {
        kn_raise(r->ctx, KN_INVALID, (kn_loc){.file = r->file}, "a target of %zu bytes: at most %d",
                 n, (int)KN_TARGET_MAX_BYTES);
    }
    check_depth(r, text, n);
    const char *end = NULL;
    char *own = KN_ARRAY(r->arena, char, n + 1);
    memcpy(own, text, n);
    if (memchr(own, 0, n)) {
        kn_raise(r->ctx, KN_INVALID, (kn_loc){.file = r->file}, "expected JSON, found a NUL in it");
    }
    cJSON *json = cJSON_ParseWithOpts(own, &end, true);
    if (!json) {
        kn_raise(r->ctx, KN_INVALID, place_of(r, own, end ? end : own), "expected JSON");
    }
    kn_defer(r->ctx, destroy, json);
    return (kn_json){json, kn_intern(r->ctx, "")};
}

/* ---- objects ---- */

kn_json kn_json_member(const kn_target_reader *r, kn_json j, const cJSON *member)
{
    return (kn_json){member,
                     kn_intern_f(r->ctx, "%s%s%.80s", j.path, *j.path ? "." : "", member->string)};
}

kn_json kn_json_get(const kn_target_reader *r, kn_json j, const char *key)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(j.at, key);
    return (kn_json){member, kn_intern_f(r->ctx, "%s%s%s", j.path, *j.path ? "." : "", key)};
}

kn_json kn_json_need(const kn_target_reader *r, kn_json j, const char *key)
{
    kn_json member = kn_json_get(r, j, key);
    if (!member.at) {
        kn_json_fail(r, j, "`%s` is missing", key);
    }
    return member;
}

static bool listed(const char *const *keys, const char *key)
{
    for (; *keys; keys++) {
        if (strcmp(*keys, key) == 0) {
            return true;
        }
    }
    return false;
}

void kn_json_object(const kn_target_reader *r, kn_json j, const char *const *keys, int most)
{
    if (!cJSON_IsObject(j.at)) {
        kn_json_fail(r, j, "expected an object");
    }
    int n = 0;
    for (const cJSON *m = j.at->child; m; m = m->next) {
        if (keys && !listed(keys, m->string)) {
            kn_json_fail(r, kn_json_member(r, j, m), "there is no such key");
        }
        if (cJSON_GetObjectItemCaseSensitive(j.at, m->string) != m) {
            kn_json_fail(r, kn_json_member(r, j, m), "given twice");
        }
        if (++n > most) {
            kn_json_fail(r, j, "more than %d entries", most);
        }
    }
}

/* ---- values ---- */

int64_t kn_json_int(const kn_target_reader *r, kn_json j, int64_t lo, int64_t hi, int64_t otherwise)
{
    if (!j.at) {
        return otherwise;
    }
    double d = cJSON_IsNumber(j.at) ? j.at->valuedouble : (double)NAN;
    if (!(d >= (double)lo && d <= (double)hi) || d != floor(d)) {
        kn_json_fail(r, j, "expected a whole number in %lld:%lld", (long long)lo, (long long)hi);
    }
    return (int64_t)d;
}

double kn_json_real(const kn_target_reader *r, kn_json j, double lo, double hi, double otherwise)
{
    if (!j.at) {
        return otherwise;
    }
    double d = cJSON_IsNumber(j.at) ? j.at->valuedouble : (double)NAN;
    if (!(d >= lo && d <= hi)) {
        kn_json_fail(r, j, "expected a number in %g:%g", lo, hi);
    }
    return d;
}

const char *kn_json_text(const kn_target_reader *r, kn_json j)
{
    if (!cJSON_IsString(j.at)) {
        kn_json_fail(r, j, "expected a text");
    }
    return kn_intern(r->ctx, j.at->valuestring);
}

static void require_name(const kn_target_reader *r, kn_json j, const char *text)
{
    if (strlen(text) > 64 || !kn_loop_name_ok(text)) {
        kn_json_fail(r, j, "`%.80s` cannot be a name", text);
    }
}

const char *kn_json_name(const kn_target_reader *r, kn_json j)
{
    const char *text = kn_json_text(r, j);
    require_name(r, j, text);
    return text;
}

void kn_json_key_name(const kn_target_reader *r, kn_json j)
{
    require_name(r, j, j.at->string);
}

int kn_json_list(const kn_target_reader *r, kn_json j, int most)
{
    if (!cJSON_IsArray(j.at)) {
        kn_json_fail(r, j, "expected a list");
    }
    int n = cJSON_GetArraySize(j.at);
    if (n > most) {
        kn_json_fail(r, j, "more than %d entries", most);
    }
    return n;
}

kn_json kn_json_item(const kn_target_reader *r, kn_json j, int i)
{
    return (kn_json){cJSON_GetArrayItem(j.at, i), kn_intern_f(r->ctx, "%s[%d]", j.path, i)};
}

const char *kn_json_lines(const kn_target_reader *r, kn_json j)
{
    enum { MAX_LINES = 100 };
    if (cJSON_IsString(j.at)) {
        return kn_json_text(r, j);
    }
    if (!cJSON_IsArray(j.at)) {
        kn_json_fail(r, j, "expected a text or a list of lines");
    }
    kn_str s = kn_str_make(r->arena);
    int n = kn_json_list(r, j, MAX_LINES);
    for (int i = 0; i < n; i++) {
        kn_putf(&s, "%s%s", i ? " " : "", kn_json_text(r, kn_json_item(r, j, i)));
    }
    return kn_intern(r->ctx, kn_str_get(&s));
}
