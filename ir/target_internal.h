/* Shared by target.c, target_json.c and target_instruction.c. */
#ifndef KN_IR_TARGET_INTERNAL_H
#define KN_IR_TARGET_INTERNAL_H

#include <cjson/cJSON.h>

#include "ir/target.h"

typedef struct {
    kn_arena *arena;
    kn_ctx *ctx;
    const char *file;
    kn_target *target;
} kn_target_reader;

/* A value and where it stands; `at` is NULL when it is not there. */
typedef struct {
    const cJSON *at;
    const char *path; /* "spaces.spm.bytes"; interned */
} kn_json;

/* ---- target_json.c: strict reading ---- */

_Noreturn void kn_json_fail(const kn_target_reader *r, kn_json j, const char *fmt, ...)
    KN_PRINTF(3, 4);
kn_json kn_json_parse(const kn_target_reader *r, const char *text, size_t n);
/* j must be an object without other keys than these (NULL ends the list; NULL for the list: any),
   none twice, at most `most`. */
void kn_json_object(const kn_target_reader *r, kn_json j, const char *const *keys, int most);
kn_json kn_json_get(const kn_target_reader *r, kn_json j,
                    const char *key); /* which may be missing */
kn_json kn_json_need(const kn_target_reader *r, kn_json j, const char *key); /* which may not */
kn_json kn_json_member(const kn_target_reader *r, kn_json j, const cJSON *member);
/* Values; for one that is not there, `otherwise`. Both ends of a range count. */
int64_t kn_json_int(const kn_target_reader *r, kn_json j, int64_t lo, int64_t hi,
                    int64_t otherwise);
double kn_json_real(const kn_target_reader *r, kn_json j, double lo, double hi, double otherwise);
const char *kn_json_text(const kn_target_reader *r, kn_json j); /* interned */
const char *kn_json_name(const kn_target_reader *r,
                         kn_json j); /* a text that may be a name in loop IR */
void kn_json_key_name(const kn_target_reader *r, kn_json j); /* the same of j's key */
int kn_json_list(const kn_target_reader *r, kn_json j,
                 int most); /* j must be an array; its length */
kn_json kn_json_item(const kn_target_reader *r, kn_json j, int i);
/* "a text" or ["lines", "of text"]: joined by spaces, or only checked. */
const char *kn_json_lines(const kn_target_reader *r, kn_json j);

/* ---- target_instruction.c ---- */

/* Reads the member `row` of "instructions" into the target: one instruction, or one for each type
 * of its `for`. */
void kn_target_read_instruction(const kn_target_reader *r, kn_json row);

/* ---- target_library.c ---- */

/* The function that an instruction's semantics make. */
kn_func *kn_instruction_func(kn_arena *a, const kn_instruction *in, kn_loc loc);

#endif
