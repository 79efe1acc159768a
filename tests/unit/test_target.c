/* A target's JSON: what is right is read, what is wrong is named with its path. */
#include "unit.h"

#include <stdio.h>

#include "driver/driver.h"

/* The start of a target that is right so far. */
#define SPACES                                                                       \
    "\"spaces\": {\"ddr\": {\"kind\": \"dram\"}, \"local\": {\"kind\": \"local\"}, " \
    "\"spm\": {\"kind\": \"sram\", \"bytes\": 1024, \"align\": 16}}"
#define PIPES "\"pipes\": {\"core\": {\"reach\": [\"ddr\", \"local\"]}, \"dma\": {\"queue\": 4}}"
#define HEAD "{\"name\": \"t\", \"clock_mhz\": 100, "
#define MOVE(more)                                                                               \
    HEAD SPACES                                                                                  \
        ", " PIPES                                                                               \
        ", \"instructions\": {\"move\": {\"semantics\": \"(S[r, c]) -> D: D[i, j] = S[i, j]\", " \
        "\"pipe\": \"dma\", \"cost\": {\"cycles\": \"r * c\"}" more "}}}"
#define OPERANDS                                                                          \
    ", \"operands\": {\"S\": {\"space\": \"ddr\", \"type\": \"f32\", \"pitch\": \"p\"}, " \
    "\"D\": {\"space\": \"spm\", \"type\": \"f32\"}}"
#define EXTENTS ", \"extents\": {\"r\": [1, 8], \"c\": [1, 16]}"

typedef struct {
    kn_arena *arena;
    const char *text;
    const kn_target *target;
} reading;

static void read_body(void *arg)
{
    reading *r = arg;
    r->target = kn_target_parse(r->arena, "t.json", r->text, strlen(r->text));
}

static const kn_target *read_ok(const fixture *f, const char *text)
{
    reading r = {f->arena, text, NULL};
    if (kn_protect(f->ctx, read_body, &r) != KN_OK)
        fail_msg("%s", last_message(f->ctx));
    return r.target;
}

/* Fails with this message at this path ("": at none). */
static void read_fails(const fixture *f, const char *text, const char *path, const char *message)
{
    reading r = {f->arena, text, NULL};
    assert_int_equal(kn_protect(f->ctx, read_body, &r), KN_INVALID);
    int n = kn_diag_count(f->ctx);
    while (n > 1 && kn_diag_get(f->ctx, n - 1)->severity == KN_NOTE)
        n--;
    const kn_diag *d = kn_diag_get(f->ctx, n - 1);
    assert_string_equal(d->message, message);
    assert_string_equal(d->where ? d->where : "", path);
    assert_string_equal(d->file, "t.json");
    kn_diag_clear(f->ctx);
}

static void reads_instructions(void **state)
{
    const kn_target *t = read_ok(*state, MOVE(OPERANDS EXTENTS));
    assert_string_equal(t->name, "t");
    assert_int_equal(t->nspaces, 3);
    assert_true(kn_target_reaches(t, "ddr"));
    assert_false(kn_target_reaches(t, "spm"));
    const kn_instruction *in = kn_target_instruction(t, "move");
    assert_non_null(in);
    assert_int_equal(in->nextents, 2);
    kn_str s = kn_str_make(((fixture *)*state)->arena);
    kn_func_print(&s, in->func);
    const char *want =
        "func @move(\n    r: index in 1:8,\n    c: index in 1:16,\n    p: index in 0:2147483648,\n"
        "    in S: f32[p*r + c - p] @ddr,\n    out D: f32[r, c] @spm) {\n"
        "  for i in 0:r {\n    for j in 0:c {\n      D[i, j] = S[i*p + j]\n    }\n  }\n}\n";
    assert_string_equal(kn_str_get(&s), want);
}

static void types_make_variants(void **state)
{
    const kn_target *t = read_ok(
        *state, HEAD SPACES
        ", " PIPES ", \"instructions\": {\"fill\": {\"for\": [\"i8\", \"f16\"], \"semantics\": "
        "\"(n: size, T: type, v: T) -> D: T[n]: D[i] = v\", \"operands\": {\"D\": {\"space\": "
        "\"spm\", \"type\": \"T\"}}, \"extents\": {\"n\": [1, 64]}, \"pipe\": \"dma\", "
        "\"cost\": {\"cycles\": 1}, \"c\": \"my_fill\"}}}");
    assert_int_equal(t->ninstructions, 2);
    const kn_instruction *in = kn_target_instruction(t, "fill_f16");
    assert_string_equal(in->c, "my_fill_f16");
    assert_int_equal(in->func->nparams, 3);
    assert_int_equal(in->func->params[1].mode, KN_PARAM_SCALAR);
    assert_int_equal(in->func->params[1].buffer.type, KN_F16);
    assert_null(kn_target_instruction(t, "fill"));
}

static void document_mistakes(void **state)
{
    const fixture *f = *state;
    char deep[64] = "";
    memset(deep, '[', 40);
    read_fails(f, "", "", "expected JSON");
    read_fails(f, "{\"name\": }", "", "expected JSON");
    read_fails(f, deep, "", "nested more than 16 deep");
    read_fails(f, "[]", "", "expected an object");
    read_fails(f, "{}", "", "`name` is missing");
    read_fails(f, "{\"name\": \"A b\"}", "name",
               "`A b` cannot be a target's name: letters, digits, _ and inner dashes");
    read_fails(f, "{\"colour\": 1}", "colour", "there is no such key");
    read_fails(f, "{\"name\": \"t\", \"name\": \"u\"}", "name", "given twice");
    read_fails(f, "{\"name\": \"t\", \"comment\": 3}", "comment",
               "expected a text or a list of lines");
    read_fails(f, "{\"name\": \"t\", \"clock_mhz\": \"fast\"}", "clock_mhz",
               "expected a number in 0.001:1e+06");
}

static void space_mistakes(void **state)
{
    const fixture *f = *state;
    read_fails(f, HEAD "\"spaces\": {\"ddr\": {\"kind\": \"rom\"}}}", "spaces.ddr.kind",
               "expected one of dram, local, sram, found `rom`");
    read_fails(f, HEAD "\"spaces\": {\"spm\": {\"kind\": \"sram\"}}}", "spaces.spm",
               "`bytes` is missing");
    read_fails(f, HEAD "\"spaces\": {\"spm\": {\"kind\": \"sram\", \"bytes\": 1.5}}}",
               "spaces.spm.bytes", "expected a whole number in 1:1099511627776");
    read_fails(f, HEAD "\"spaces\": {\"spm\": {\"kind\": \"sram\", \"bytes\": 100, \"banks\": 3}}}",
               "spaces.spm", "its bytes are not banks of whole rows: 100 / (3 x 1)");
    read_fails(f, HEAD "\"spaces\": {\"local\": {\"kind\": \"local\", \"bytes\": 1}}}",
               "spaces.local.bytes", "there is no such key");
    read_fails(f, HEAD "\"spaces\": {\"f32\": {\"kind\": \"dram\"}}}", "spaces.f32",
               "`f32` cannot be a name");
    read_fails(f, HEAD "\"spaces\": {\"local\": {\"kind\": \"local\"}}}", "spaces",
               "there must be a space `ddr` of kind dram");
}

static void pipe_mistakes(void **state)
{
    const fixture *f = *state;
    read_fails(f, HEAD SPACES "}", "", "`pipes` is missing");
    read_fails(f, HEAD SPACES ", \"pipes\": {}}", "pipes", "`core` is missing");
    read_fails(f, HEAD SPACES ", \"pipes\": {\"core\": {\"reach\": [\"ddr\", \"l9\"]}}}",
               "pipes.core.reach[1]", "there is no space `l9`");
    read_fails(f, HEAD SPACES ", \"pipes\": {\"core\": {\"reach\": [\"ddr\"]}}}", "pipes.core",
               "its `reach` must have ddr and local");
    read_fails(f, HEAD SPACES ", " PIPES ", \"events\": {\"kind\": \"flag\"}}", "events",
               "`ids` is missing");
}

static void instruction_mistakes(void **state)
{
    const fixture *f = *state;
    read_fails(f, MOVE(EXTENTS), "instructions.move", "`operands` is missing");
    read_fails(f, MOVE(OPERANDS), "instructions.move", "`extents` is missing");
    read_fails(f, MOVE(OPERANDS ", \"extents\": {\"r\": [1, 8]}"), "instructions.move.extents",
               "`c` is missing");
    read_fails(f, MOVE(OPERANDS ", \"extents\": {\"r\": [0, 8], \"c\": [1, 2]}"),
               "instructions.move.extents.r[0]", "expected a whole number in 1:16777216");
    read_fails(f, MOVE(OPERANDS ", \"extents\": {\"r\": [1, 8], \"c\": [1, 2], \"d\": [1, 2]}"),
               "instructions.move.extents.d", "no size of the semantics");
    read_fails(f, MOVE(EXTENTS ", \"operands\": {\"S\": {\"space\": \"ddr\", \"type\": \"f32\"}}"),
               "instructions.move.operands", "`D` is missing");
    read_fails(f, MOVE(EXTENTS ", \"operands\": {\"Q\": {}}"), "instructions.move.operands.Q",
               "no operand or result of the semantics");
    read_fails(f, MOVE(EXTENTS ", \"operands\": {\"S\": {\"space\": \"l1\", \"type\": \"f32\"}}"),
               "instructions.move.operands.S.space", "there is no space `l1`");
    read_fails(f, MOVE(EXTENTS ", \"operands\": {\"S\": {\"space\": \"ddr\", \"type\": \"T\"}}"),
               "instructions.move.operands.S.type",
               "T is a type only where the instruction has `for`");
    read_fails(
        f,
        MOVE(EXTENTS
             ", \"operands\": {\"S\": {\"space\": \"ddr\", \"type\": \"f32\"}, \"D\": {\"space\": "
             "\"spm\", \"type\": \"i8\"}}"),
        "instructions.move.semantics", "`D` is i8, but f32 in the semantics");
    read_fails(f, MOVE(OPERANDS EXTENTS ", \"speed\": 1"), "instructions.move.speed",
               "there is no such key");
}

/* Semantics and costs are texts of their own. */
static void text_mistakes(void **state)
{
    const fixture *f = *state;
    read_fails(f,
               HEAD SPACES
               ", " PIPES
               ", \"instructions\": {\"move\": {\"semantics\": \"(S[r]) -> D: D[i] = S[k]\", "
               "\"operands\": {}}}}",
               "instructions.move.semantics",
               "index `k` is only on the right of `=`: a reduction is written with +=! *=! max=! "
               "or min=!");
    read_fails(
        f,
        HEAD SPACES
        ", " PIPES
        ", \"instructions\": {\"move\": {\"semantics\": \"(S[n]) -> D: D[i] = S[i]\", \"pipe\": "
        "\"dma\", \"cost\": {\"cycles\": \"m + 1\"}" OPERANDS ", \"extents\": {\"n\": [1, 2]}}}}",
        "instructions.move.cost.cycles", "`m` is no size of the semantics");
}

static void find_body(void *arg)
{
    reading *r = arg;
    r->target = kn_target_find(r->arena, r->text);
}

static void every_preset_is_right(void **state)
{
    const fixture *f = *state;
    assert_true(kn_preset_count() >= 2);
    for (int i = 0; i < kn_preset_count(); i++) {
        reading r = {f->arena, kn_preset_get(i)->name, NULL};
        if (kn_protect(f->ctx, find_body, &r) != KN_OK)
            fail_msg("%s: %s", r.text, last_message(f->ctx));
        assert_string_equal(r.target->name, r.text);
    }
}

static void finds_files_and_refuses_others(void **state)
{
    const fixture *f = *state;
    reading r = {f->arena, KILN_SOURCE_DIR "/targets/npu-edge.json", NULL};
    assert_int_equal(kn_protect(f->ctx, find_body, &r), KN_OK);
    assert_string_equal(r.target->name, "npu-edge");
    r.text = "npu-none";
    assert_int_equal(kn_protect(f->ctx, find_body, &r), KN_INVALID);
    assert_string_equal(last_message(f->ctx),
                        "there is no target `npu-none` (kiln targets lists them)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(reads_instructions),
        KN_TEST(types_make_variants),
        KN_TEST(document_mistakes),
        KN_TEST(space_mistakes),
        KN_TEST(pipe_mistakes),
        KN_TEST(instruction_mistakes),
        KN_TEST(text_mistakes),
        KN_TEST(every_preset_is_right),
        KN_TEST(finds_files_and_refuses_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
