/* A target's JSON: spaces, pipes, events, then instructions (target_instruction.c), which become a
   library of functions (target_library.c). Schema: docs/target.md. */
#include "ir/target.h"

#include "ir/target_internal.h"

static const int64_t MOST = INT64_C(1) << 40;

/* ---- finding ---- */

const kn_space *kn_target_space(const kn_target *t, const char *name)
{
    for (int i = 0; i < t->nspaces; i++) {
        if (strcmp(t->spaces[i].name, name) == 0) {
            return &t->spaces[i];
        }
    }
    return NULL;
}

const kn_instruction *kn_target_instruction(const kn_target *t, const char *name)
{
    for (int i = 0; i < t->ninstructions; i++) {
        if (strcmp(t->instructions[i].name, name) == 0) {
            return &t->instructions[i];
        }
    }
    return NULL;
}

bool kn_target_reaches(const kn_target *t, const char *space)
{
    for (int i = 0; i < t->core->nreach; i++) {
        if (strcmp(t->core->reach[i]->name, space) == 0) {
            return true;
        }
    }
    return false;
}

void kn_target_attach(const kn_target *t, kn_module *m)
{
    m->target = t->name;
    m->library = t->library;
    m->machine = t;
}

/* ---- small parts ---- */

/* "comment" and "sources" are for the reader; they are only checked to be texts. */
static void check_remarks(const kn_target_reader *r, kn_json j)
{
    static const char *const keys[] = {"comment", "sources"};
    for (int i = 0; i < 2; i++) {
        kn_json remark = kn_json_get(r, j, keys[i]);
        if (remark.at) {
            kn_json_lines(r, remark);
        }
    }
}

static int choose(const kn_target_reader *r, kn_json j, const char *const *names)
{
    const char *text = kn_json_text(r, j);
    kn_str list = kn_str_make(r->arena);
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0) {
            return i;
        }
        kn_putf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    kn_json_fail(r, j, "expected one of %s, found `%.80s`", kn_str_get(&list), text);
}

static const char *target_name(const kn_target_reader *r, kn_json j)
{
    const char *text = kn_json_text(r, j);
    size_t n = strlen(text), fine = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-_");
    if (n == 0 || n > 64 || fine < n || text[0] < 'a' || text[0] > 'z' || text[n - 1] == '-' ||
        strstr(text, "--")) {
        kn_json_fail(r, j, "`%.80s` cannot be a target's name: letters, digits, _ and inner dashes",
                     text);
    }
    return text;
}

/* ---- spaces ---- */

static void read_sram(const kn_target_reader *r, kn_json j, kn_space *s)
{
    s->bytes = kn_json_int(r, kn_json_need(r, j, "bytes"), 1, MOST, 0);
    s->banks = kn_json_int(r, kn_json_get(r, j, "banks"), 1, 1 << 16, 1);
    s->row = kn_json_int(r, kn_json_get(r, j, "row"), 1, 1 << 20, 1);
    if (s->bytes % (s->banks * s->row) != 0) {
        kn_json_fail(r, j, "its bytes are not banks of whole rows: %lld / (%lld x %lld)",
                     (long long)s->bytes, (long long)s->banks, (long long)s->row);
    }
}

static void read_space(const kn_target_reader *r, kn_json j, kn_space *s)
{
    static const char *const kinds[] = {"dram", "local", "sram", NULL};
    static const char *const dram[] = {"comment", "kind",  "align",       "bandwidth", "latency",
                                       "pj_byte", "burst", "outstanding", NULL};
    static const char *const local[] = {"comment", "kind", "align", NULL};
    static const char *const sram[] = {"comment", "kind",  "align", "bandwidth", "latency",
                                       "pj_byte", "bytes", "banks", "row",       NULL};
    static const char *const *const keys[] = {dram, local, sram};
    kn_json_object(r, j, NULL, 100);
    kn_json_key_name(r, j);
    s->name = kn_intern(r->ctx, j.at->string);
    s->kind = (kn_space_kind)choose(r, kn_json_need(r, j, "kind"), kinds);
    kn_json_object(r, j, keys[s->kind], 100);
    check_remarks(r, j);
    s->align = kn_json_int(r, kn_json_get(r, j, "align"), 1, 1 << 20, 1);
    s->bandwidth = kn_json_real(r, kn_json_get(r, j, "bandwidth"), 1e-6, 1e9, 0);
    s->latency = kn_json_int(r, kn_json_get(r, j, "latency"), 0, 1 << 20, 0);
    s->burst = kn_json_int(r, kn_json_get(r, j, "burst"), 1, 1 << 20, 1);
    s->outstanding = kn_json_int(r, kn_json_get(r, j, "outstanding"), 1, 1 << 20, 1);
    s->pj_byte = kn_json_real(r, kn_json_get(r, j, "pj_byte"), 0, 1e6, 0);
    if (s->kind == KN_SPACE_SRAM) {
        read_sram(r, j, s);
    }
}

static void read_spaces(const kn_target_reader *r, kn_json j)
{
    kn_target *t = r->target;
    kn_json_object(r, j, NULL, KN_TARGET_MAX_SPACES);
    t->spaces = KN_ARRAY(r->arena, kn_space, KN_TARGET_MAX_SPACES);
    for (const cJSON *m = j.at->child; m; m = m->next) {
        read_space(r, kn_json_member(r, j, m), &t->spaces[t->nspaces]);
        t->nspaces++;
    }
    const kn_space *local = kn_target_space(t, "local");
    t->ddr = kn_target_space(t, "ddr");
    if (!t->ddr || t->ddr->kind != KN_SPACE_DRAM) {
        kn_json_fail(r, j, "there must be a space `ddr` of kind dram");
    }
    if (!local || local->kind != KN_SPACE_LOCAL) {
        kn_json_fail(r, j, "there must be a space `local` of kind local");
    }
}

/* ---- pipes ---- */

static void read_reach(const kn_target_reader *r, kn_json j, kn_pipe *p)
{
    p->nreach = kn_json_list(r, j, KN_TARGET_MAX_SPACES);
    p->reach = KN_ARRAY(r->arena, const kn_space *, p->nreach + 1);
    for (int i = 0; i < p->nreach; i++) {
        kn_json item = kn_json_item(r, j, i);
        p->reach[i] = kn_target_space(r->target, kn_json_text(r, item));
        if (!p->reach[i]) {
            kn_json_fail(r, item, "there is no space `%.80s`", kn_json_text(r, item));
        }
    }
}

static void read_pipe(const kn_target_reader *r, kn_json j, kn_pipe *p)
{
    static const char *const core[] = {"comment", "queue", "reach", NULL};
    static const char *const other[] = {"comment", "queue", NULL};
    kn_json_key_name(r, j);
    p->name = kn_intern(r->ctx, j.at->string);
    bool is_core = strcmp(p->name, "core") == 0;
    kn_json_object(r, j, is_core ? core : other, 100);
    check_remarks(r, j);
    p->queue = kn_json_int(r, kn_json_get(r, j, "queue"), 1, 1 << 16, 1);
    if (is_core) {
        read_reach(r, kn_json_need(r, j, "reach"), p);
    }
}

static void read_pipes(const kn_target_reader *r, kn_json j)
{
    kn_target *t = r->target;
    kn_json_object(r, j, NULL, KN_TARGET_MAX_PIPES);
    kn_json_need(r, j, "core");
    t->pipes = KN_ARRAY(r->arena, kn_pipe, KN_TARGET_MAX_PIPES);
    for (const cJSON *m = j.at->child; m; m = m->next) {
        kn_pipe *p = &t->pipes[t->npipes++];
        read_pipe(r, kn_json_member(r, j, m), p);
        if (strcmp(p->name, "core") == 0) {
            t->core = p;
        }
    }
    if (!kn_target_reaches(t, "ddr") || !kn_target_reaches(t, "local")) {
        kn_json_fail(r, kn_json_need(r, j, "core"), "its `reach` must have ddr and local");
    }
}

static void read_events(const kn_target_reader *r, kn_json j)
{
    static const char *const keys[] = {"comment", "kind", "ids", NULL};
    static const char *const kinds[] = {"none", "interlock", "flag", "counter", NULL};
    kn_target *t = r->target;
    if (!j.at) {
        return;
    }
    kn_json_object(r, j, keys, 100);
    check_remarks(r, j);
    t->events = (kn_event_kind)choose(r, kn_json_need(r, j, "kind"), kinds);
    bool has_ids = t->events == KN_EVENT_FLAG || t->events == KN_EVENT_COUNTER;
    kn_json ids = has_ids ? kn_json_need(r, j, "ids") : kn_json_get(r, j, "ids");
    if (ids.at && !has_ids) {
        kn_json_fail(r, ids, "events of this kind have no ids");
    }
    t->event_ids = kn_json_int(r, ids, 1, 1 << 16, 0);
}

/* ---- the whole ---- */

static void read_instructions(const kn_target_reader *r, kn_json j)
{
    kn_target *t = r->target;
    t->library = KN_NEW(r->arena, kn_module);
    t->library->name = kn_intern(r->ctx, "instructions");
    t->library->arena = r->arena;
    t->library->funcs = KN_ARRAY(r->arena, kn_func *, KN_TARGET_MAX_INSTRUCTIONS);
    t->instructions = KN_ARRAY(r->arena, kn_instruction, KN_TARGET_MAX_INSTRUCTIONS);
    if (!j.at) {
        return;
    }
    kn_json_object(r, j, NULL, KN_TARGET_MAX_INSTRUCTIONS);
    for (const cJSON *m = j.at->child; m; m = m->next) {
        kn_target_read_instruction(r, kn_json_member(r, j, m));
    }
    for (int i = 0; i < t->ninstructions; i++) {
        t->library->funcs[t->library->nfuncs++] = t->instructions[i].func;
    }
    kn_module_verify(r->ctx, t->library);
}

static void read_target(const kn_target_reader *r, kn_json j)
{
    static const char *const keys[] = {"name",   "comment", "sources", "clock_mhz",    "idle_w",
                                       "spaces", "pipes",   "events",  "instructions", NULL};
    kn_target *t = r->target;
    kn_json_object(r, j, keys, 100);
    check_remarks(r, j);
    t->name = target_name(r, kn_json_need(r, j, "name"));
    t->clock_mhz = kn_json_real(r, kn_json_need(r, j, "clock_mhz"), 1e-3, 1e6, 0);
    t->idle_w = kn_json_real(r, kn_json_get(r, j, "idle_w"), 0, 1e6, 0);
    read_spaces(r, kn_json_need(r, j, "spaces"));
    read_pipes(r, kn_json_need(r, j, "pipes"));
    read_events(r, kn_json_get(r, j, "events"));
    read_instructions(r, kn_json_get(r, j, "instructions"));
}

const kn_target *kn_target_parse(kn_arena *a, const char *file, const char *text, size_t n)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    kn_target *t = KN_NEW(a, kn_target);
    t->file = kn_intern(ctx, file);
    kn_target_reader r = {.arena = a, .ctx = ctx, .file = t->file, .target = t};
    kn_json root = kn_json_parse(&r, text, n);
    read_target(&r, root);
    kn_release(ctx, root.at);
    return t;
}
