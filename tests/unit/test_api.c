/* The C API: models built by hand, compiled each way, to files and back, used wrongly, and by
 * several threads. */
#include "api_help.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "driver/driver.h"
#include "runtime/kiln_file.h"

enum { Y_MAX = FFN_MAX_ROWS * FFN_OUT };

static void require_ok(const kn_ctx *ctx, kn_status status)
{
    if (status != KN_OK)
        fail_msg("status %d: %s", (int)status, last_message(ctx));
}

static kn_model *ffn(kn_ctx *ctx)
{
    kn_model *m;
    require_ok(ctx, kn_model_create(ctx, "ffn", &m));
    require_ok(ctx, ffn_build(m));
    return m;
}

static kn_program *compiled(kn_model *m, kn_via via)
{
    kn_program *p;
    assert_int_equal(kn_compile(m, &(kn_compile_options){.level = 2, .via = via}, &p), KN_OK);
    return p;
}

static void assert_close(const float *x, const float *y, int n)
{
    for (int i = 0; i < n; i++)
        assert_float_equal(x[i], y[i], 1e-5f);
}

/* ---- building and compiling ---- */

static void every_engine_gives_the_same(void **state)
{
    static const kn_via vias[] = {KN_VIA_INTERPRET, KN_VIA_C, KN_VIA_JIT};
    fixture *f = *state;
    kn_model *m = ffn(f->ctx);
    float y[3][Y_MAX];
    for (int i = 0; i < (KILN_HAVE_LLVM ? 3 : 2); i++) {
        kn_program *p = compiled(m, vias[i]);
        assert_string_equal(kn_program_name(p), "ffn");
        assert_string_equal(kn_program_input(p, 0)->dims[0], "rows");
        assert_int_equal(kn_program_dim(p, 0)->hi, FFN_MAX_ROWS);
        assert_null(kn_program_output(p, 1));
        for (int rows = 0; rows <= FFN_MAX_ROWS; rows++)
            assert_int_equal(ffn_run(f->ctx, p, rows, y[i]), KN_OK);
        assert_close(y[i], y[0], Y_MAX);
        kn_program_destroy(p);
    }
    if (KILN_HAVE_LLVM)
        assert_memory_equal(y[1], y[2], sizeof y[1]);
    kn_model_destroy(m);
}

static void a_model_outlives_its_compilation(void **state)
{
    fixture *f = *state;
    kn_model *m = ffn(f->ctx), *again;
    char *before, *after;
    float y[Y_MAX], z[Y_MAX];
    assert_int_equal(kn_model_print(m, &before), KN_OK);
    kn_program *p = compiled(m, KN_VIA_DEFAULT);
    assert_int_equal(kn_model_print(m, &after), KN_OK);
    assert_string_equal(before, after);
    assert_int_equal(kn_model_parse(f->ctx, "printed", before, strlen(before), &again), KN_OK);
    kn_model_destroy(m); /* the program has what it needs */
    assert_int_equal(ffn_run(f->ctx, p, 4, y), KN_OK);
    kn_program_destroy(p);
    p = compiled(again, KN_VIA_DEFAULT);
    assert_int_equal(ffn_run(f->ctx, p, 4, z), KN_OK);
    assert_memory_equal(y, z, 4 * FFN_OUT * sizeof *y);
    kn_program_destroy(p);
    kn_model_destroy(again);
    free(before);
    free(after);
}

/* An operator of the user's: reverses the rows by one, with an attribute for a factor. */
static void notation_is_an_operator(void **state)
{
    static const char reverse[] =
        "(A[n, k], factor: typeof(A)) -> B: B[i, j] = A[n - 1 - i, j] * factor";
    static const char *const dims[] = {"n", "2"};
    fixture *f = *state;
    kn_model *m;
    kn_tensor_id x, t;
    const float in[] = {1, 2, 3, 4, 5, 6}, want[] = {10, 12, 6, 8, 2, 4};
    const int64_t shape[] = {3, 2};
    assert_int_equal(kn_model_create(f->ctx, "reverse", &m), KN_OK);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 2, dims, &x), KN_OK);
    require_ok(f->ctx, kn_model_add_notation(m, reverse, &x, 1, "{factor = 2.0}", &t, 1));
    assert_int_equal(kn_model_add_output(m, "x_reversed", t), KN_OK);
    for (int via = KN_VIA_INTERPRET; via <= (KILN_HAVE_LLVM ? KN_VIA_JIT : KN_VIA_C); via++) {
        kn_program *p = compiled(m, (kn_via)via);
        kn_session *s;
        kn_dtype type;
        int rank;
        int64_t out[KN_MAX_RANK];
        const void *data;
        assert_int_equal(kn_session_create(f->ctx, p, &s), KN_OK);
        assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, shape, in), KN_OK);
        assert_int_equal(kn_session_run(s), KN_OK);
        assert_int_equal(kn_session_get_output(s, 0, &type, &rank, out, &data), KN_OK);
        assert_int_equal(out[0], 3);
        assert_memory_equal(data, want, sizeof want);
        kn_session_destroy(s);
        kn_program_destroy(p);
    }
    kn_model_destroy(m);
}

/* Inputs, constants and outputs as outputs under other names. */
static void outputs_may_be_anything(void **state)
{
    static const char *const dims[] = {"2"};
    static const float ones[] = {1, 1};
    static const int64_t shape[] = {2};
    fixture *f = *state;
    kn_model *m;
    kn_tensor_id x, c, t;
    assert_int_equal(kn_model_create(f->ctx, "m", &m), KN_OK);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, dims, &x), KN_OK);
    assert_int_equal(kn_model_add_constant(m, "c", KN_F32, 1, shape, ones, &c), KN_OK);
    assert_int_equal(kn_model_add_op(m, "add", (kn_tensor_id[]){x, c}, 2, NULL, &t, 1), KN_OK);
    assert_int_equal(kn_model_add_output(m, "sum", t), KN_OK);
    assert_int_equal(kn_model_add_output(m, "sum again", t), KN_OK);
    assert_int_equal(kn_model_add_output(m, "x too", x), KN_OK);
    assert_int_equal(kn_model_add_output(m, "c too", c), KN_OK);
    assert_int_equal(kn_model_add_output(m, "sum", t), KN_INVALID);
    kn_program *p = compiled(m, KN_VIA_DEFAULT);
    assert_int_equal(kn_program_output_count(p), 4);
    assert_string_equal(kn_program_output(p, 1)->name, "sum again");
    kn_program_destroy(p);
    kn_model_destroy(m);
}

/* ---- mistakes ---- */

/* Each is refused with a status and a message; the model can still be used. */
static void mistakes_are_statuses(void **state)
{
    static const char *const bad_dims[] = {"n -", "-1", "n % 0", "x[1]", ""};
    static const char *const good_dims[] = {"n"};
    static const int64_t negative[] = {-1};
    fixture *f = *state;
    kn_model *m, *other;
    kn_tensor_id x, y, t, two[2];
    assert_int_equal(kn_model_create(f->ctx, "m", &m), KN_OK);
    assert_int_equal(kn_model_create(f->ctx, "other", &other), KN_OK);
    kn_program *p;
    assert_int_equal(kn_compile(m, NULL, &p), KN_USAGE);
    for (size_t i = 0; i < sizeof bad_dims / sizeof *bad_dims; i++) {
        assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, &bad_dims[i], &x), KN_INVALID);
        assert_null(x);
    }
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 13, good_dims, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_INDEX, 1, good_dims, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, good_dims, &x), KN_OK);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, good_dims, &y), KN_INVALID);
    assert_int_equal(kn_model_add_input(other, "x", KN_F32, 1, good_dims, &y), KN_OK);
    assert_int_equal(kn_model_add_constant(m, "c", KN_F32, 1, negative, negative, &t), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "no_such_op", &x, 1, NULL, &t, 1), KN_INVALID);
    assert_string_equal(last_message(f->ctx), "unknown op 'no_such_op'");
    assert_int_equal(kn_model_add_op(m, "gelu", &x, 1, "{axis = 1}", &t, 1), KN_INVALID);
    assert_int_equal(kn_model_add_op(m, "gelu", &x, 1, "{axis", &t, 1), KN_INVALID);
    assert_int_equal(kn_model_add_op(m, "gelu", &x, 1, "{} {}", &t, 1), KN_INVALID);
    assert_int_equal(kn_model_add_op(m, "gelu", &x, 1, NULL, two, 2), KN_INVALID);
    assert_null(two[0]);
    assert_int_equal(kn_model_add_op(m, "add", (kn_tensor_id[]){x, y}, 2, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_notation(m, "(A[n]) -> B", &x, 1, NULL, &t, 1), KN_INVALID);
    assert_int_equal(kn_model_add_output(m, "y", y), KN_USAGE);
    assert_int_equal(kn_model_add_output(m, "y", NULL), KN_USAGE);
    assert_int_equal(kn_model_set_dim(m, "nowhere", 1, 2), KN_USAGE);
    assert_int_equal(kn_model_set_dim(m, "n", 3, 2), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "gelu", &x, 1, "{}", &t, 1), KN_OK);
    assert_int_equal(kn_model_set_dim(m, "n", 0, 2), KN_USAGE); /* too late for 0 */
    assert_int_equal(kn_model_set_dim(m, "n", 2, 2), KN_OK);
    assert_int_equal(kn_model_add_output(m, "y", t), KN_OK);
    kn_compile_options options = {.target = "nowhere"};
    assert_int_equal(kn_compile(m, &options, &p), KN_INVALID);
    assert_int_equal(m->references, 1);
    assert_null(p);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, "/no/such/folder/m.c"), KN_ENVIRONMENT);
    assert_int_equal(kn_compile(m, NULL, &p), KN_OK);
    kn_program_destroy(p);
    kn_model_destroy(m);
    kn_model_destroy(other);
    assert_int_equal(kn_model_import(f->ctx, "/no/such/file", &m), KN_INVALID);
    assert_int_equal(kn_model_parse(f->ctx, "t", "graph", 5, &m), KN_INVALID);
    assert_null(m);
}

/* What must be there and is NULL, and what is out of its bounds, is wrong usage: no more. */
static void absent_arguments_are_refused(void **state)
{
    static const char *const dims[] = {"n", NULL};
    static const int64_t two[] = {2};
    fixture *f = *state;
    kn_model *m, *none;
    kn_tensor_id x, t;
    kn_program *p;
    char *text;
    assert_int_equal(kn_model_create(NULL, "m", &m), KN_USAGE);
    assert_int_equal(kn_model_create(f->ctx, "m", NULL), KN_USAGE);
    assert_int_equal(kn_model_create(f->ctx, NULL, &none), KN_USAGE);
    assert_string_equal(last_message(f->ctx), "name is NULL");
    assert_null(none);
    assert_int_equal(kn_model_import(f->ctx, NULL, &none), KN_USAGE);
    assert_int_equal(kn_model_parse(f->ctx, NULL, "", 0, &none), KN_USAGE);
    assert_int_equal(kn_model_parse(f->ctx, "t", NULL, 5, &none), KN_USAGE);
    assert_int_equal(kn_model_parse(f->ctx, "t", NULL, 0, &none), KN_INVALID);
    assert_int_equal(kn_model_create(f->ctx, "m", &m), KN_OK);
    assert_int_equal(kn_model_add_input(NULL, "x", KN_F32, 1, dims, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, NULL, KN_F32, 1, dims, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, NULL, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 2, dims, &x), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, dims, NULL), KN_USAGE);
    assert_int_equal(kn_model_add_constant(m, "c", KN_F32, 1, two, NULL, &t), KN_USAGE);
    assert_int_equal(kn_model_add_constant(m, "c", KN_F32, 1, NULL, two, &t), KN_USAGE);
    assert_int_equal(kn_model_add_input(m, "x", KN_F32, 1, dims, &x), KN_OK);
    assert_int_equal(kn_model_add_op(NULL, "neg", &x, 1, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, NULL, &x, 1, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "neg", NULL, 1, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "neg", &x, 1, NULL, NULL, 1), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "neg", &x, -1, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_op(m, "neg", &x, 1, NULL, &t, -1), KN_USAGE);
    assert_int_equal(kn_model_add_notation(m, NULL, &x, 1, NULL, &t, 1), KN_USAGE);
    assert_int_equal(kn_model_add_output(m, NULL, x), KN_USAGE);
    assert_int_equal(kn_model_add_output(NULL, "y", x), KN_USAGE);
    assert_int_equal(kn_model_set_dim(m, NULL, 1, 2), KN_USAGE);
    assert_int_equal(kn_model_set_dim(NULL, "n", 1, 2), KN_USAGE);
    assert_int_equal(kn_model_print(m, NULL), KN_USAGE);
    assert_int_equal(kn_model_print(NULL, &text), KN_USAGE);
    require_ok(f->ctx, kn_model_add_op(m, "neg", &x, 1, NULL, &t, 1));
    require_ok(f->ctx, kn_model_add_output(m, "y", t));
    assert_int_equal(kn_compile(NULL, NULL, &p), KN_USAGE);
    assert_int_equal(kn_compile(m, NULL, NULL), KN_USAGE);
    assert_int_equal(kn_compile_file(NULL, NULL, KN_EMIT_C, "m.c"), KN_USAGE);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, NULL), KN_USAGE);
    assert_int_equal(kn_compile_file(m, NULL, (kn_emit)9, "/no/m.c"), KN_USAGE);
    assert_int_equal(kn_compile_file(m, NULL, (kn_emit)-1, "/no/m.c"), KN_USAGE);
    const kn_compile_options wrong[] = {
        {.level = 4}, {.level = -1}, {.via = (kn_via)9}, {.via = (kn_via)-1}, {.dump_ir = "fly"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(kn_compile(m, &wrong[i], &p), KN_USAGE);
        assert_null(p);
        assert_int_equal(kn_compile_file(m, &wrong[i], KN_EMIT_C, "/no/m.c"), KN_USAGE);
    }
    kn_model_destroy(m);
}

/* By whatever name, and beside the file that was named. */
static void models_are_not_written_over(void **state)
{
    static const char text[] = "graph @g(%x: f32[2]) -> %y { %y = neg(%x) }";
    fixture *f = *state;
    kn_model *m;
    const char *dir = kn_temp_dir(f->ctx);
    const char *path = kn_format(f->arena, "%s/m.h", dir);
    const char *other = kn_format(f->arena, "%s/other", dir);
    kn_file_write(f->ctx, path, text, sizeof text - 1);
    assert_int_equal(link(path, other), 0);
    assert_int_equal(kn_model_import(f->ctx, path, &m), KN_OK);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, path), KN_USAGE);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, other), KN_USAGE);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, kn_format(f->arena, "%s/m.c", dir)),
                     KN_USAGE);
    assert_int_equal(access(kn_format(f->arena, "%s/m.c", dir), F_OK), -1);
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_C, kn_format(f->arena, "%s/n.c", dir)),
                     KN_OK);
    kn_model_destroy(m);
    kn_file *same = kn_file_map(f->ctx, path);
    assert_int_equal(same->size, sizeof text - 1);
    assert_memory_equal(same->data, text, sizeof text - 1);
}

static void sessions_need_their_arguments(void **state)
{
    fixture *f = *state;
    kn_model *m = ffn(f->ctx);
    kn_program *p = compiled(m, KN_VIA_INTERPRET), *none;
    kn_session *s;
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK];
    const void *data;
    const float x[FFN_IN] = {0};
    const int64_t good[] = {1, FFN_IN}, empty[] = {0, FFN_IN};
    assert_int_equal(kn_program_load(f->ctx, NULL, &none), KN_USAGE);
    assert_null(none);
    assert_int_equal(kn_program_load(f->ctx, "m.kiln", NULL), KN_USAGE);
    assert_int_equal(kn_program_load(NULL, "m.kiln", &none), KN_USAGE);
    assert_null(kn_program_name(NULL));
    assert_null(kn_program_input(NULL, 0));
    assert_int_equal(kn_program_output_count(NULL), 0);
    assert_int_equal(kn_session_create(f->ctx, NULL, &s), KN_USAGE);
    assert_null(s);
    assert_int_equal(kn_session_create(NULL, p, &s), KN_USAGE);
    assert_int_equal(kn_session_create(f->ctx, p, NULL), KN_USAGE);
    assert_int_equal(kn_session_run(NULL), KN_USAGE);
    assert_int_equal(kn_session_set_input(NULL, 0, KN_F32, 2, good, x), KN_USAGE);
    assert_int_equal(kn_session_set_output(NULL, 0, NULL, 0), KN_USAGE);
    assert_int_equal(kn_session_set_dim(NULL, "rows", 1), KN_USAGE);
    assert_int_equal(kn_session_create(f->ctx, p, &s), KN_OK);
    assert_int_equal(kn_session_set_dim(s, NULL, 1), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, good, x), KN_OK);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, NULL, x), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, good, NULL), KN_USAGE);
    assert_int_equal(kn_session_run(s), KN_USAGE); /* it is not set now */
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, empty, NULL), KN_OK);
    assert_int_equal(kn_session_run(s), KN_OK);
    assert_int_equal(kn_session_get_output(NULL, 0, &type, &rank, dims, &data), KN_USAGE);
    assert_int_equal(kn_session_get_output(s, 0, NULL, &rank, dims, &data), KN_USAGE);
    assert_int_equal(kn_session_get_output(s, 0, &type, NULL, dims, &data), KN_USAGE);
    assert_int_equal(kn_session_get_output(s, 0, &type, &rank, NULL, &data), KN_USAGE);
    assert_int_equal(kn_session_get_output(s, 0, &type, &rank, dims, NULL), KN_USAGE);
    kn_session_destroy(s);
    kn_program_destroy(p);
    kn_model_destroy(m);
}

static void sessions_check_their_use(void **state)
{
    fixture *f = *state;
    kn_model *m = ffn(f->ctx);
    kn_program *p = compiled(m, KN_VIA_INTERPRET);
    kn_session *s;
    float x[FFN_MAX_ROWS * FFN_IN] = {0};
    const int64_t good[] = {2, FFN_IN}, wide[] = {2, 13}, many[] = {10, FFN_IN};
    assert_int_equal(kn_session_create(f->ctx, p, &s), KN_OK);
    assert_int_equal(kn_session_run(s), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 1, KN_F32, 2, good, x), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F16, 2, good, x), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, wide, x), KN_OK);
    assert_int_equal(kn_session_run(s), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, many, x), KN_OK);
    assert_int_equal(kn_session_run(s), KN_USAGE);
    assert_int_equal(kn_session_set_input(s, 0, KN_F32, 2, good, x), KN_OK);
    assert_int_equal(kn_session_set_dim(s, "rows", 3), KN_OK);
    assert_int_equal(kn_session_run(s), KN_USAGE);
    assert_int_equal(kn_session_set_dim(s, "rows", 2), KN_OK);
    assert_int_equal(kn_session_run(s), KN_OK);
    kn_session_destroy(s);
    kn_program_destroy(p);
    kn_model_destroy(m);
}

/* ---- .kiln files ---- */

static const char *kiln_path(fixture *f, kn_model *m)
{
    const char *path = kn_format(f->arena, "%s/m.kiln", kn_temp_dir(f->ctx));
    assert_int_equal(kn_compile_file(m, NULL, KN_EMIT_KILN, path), KN_OK);
    return path;
}

static void a_kiln_file_is_the_program(void **state)
{
    fixture *f = *state;
    if (!KILN_HAVE_LLVM)
        skip();
    kn_model *m = ffn(f->ctx);
    kn_program *p = compiled(m, KN_VIA_JIT), *loaded;
    float y[Y_MAX], z[Y_MAX];
    const char *path = kiln_path(f, m);
    kn_model_destroy(m);
    assert_int_equal(kn_program_load(f->ctx, path, &loaded), KN_OK);
    assert_string_equal(kn_program_name(loaded), "ffn");
    assert_string_equal(kn_program_output(loaded, 0)->dims[0], "rows");
    assert_int_equal(kn_program_dim(loaded, 0)->hi, FFN_MAX_ROWS);
    for (int rows = 1; rows <= FFN_MAX_ROWS; rows++) {
        assert_int_equal(ffn_run(f->ctx, p, rows, y), KN_OK);
        assert_int_equal(ffn_run(f->ctx, loaded, rows, z), KN_OK);
        assert_memory_equal(y, z, (size_t)(rows * FFN_OUT) * sizeof *y);
    }
    kn_program_destroy(p);
    kn_program_destroy(loaded);
}

typedef struct {
    fixture *f;
    kn_file file;
} reading;

static void read_kiln(void *arg)
{
    reading *r = arg;
    kn_arena *a = kn_arena_create(r->f->ctx);
    kn_kiln_check(a, kn_kiln_read(a, &r->file));
    kn_arena_destroy(a);
}

/* Whatever bit of it changes, and wherever it ends, the file is refused. */
static void damage_is_found(void **state)
{
    fixture *f = *state;
    if (!KILN_HAVE_LLVM)
        skip();
    kn_model *m = ffn(f->ctx);
    kn_file *whole = kn_file_map(f->ctx, kiln_path(f, m));
    unsigned char *copy = kn_alloc(f->arena, whole->size);
    reading r = {f, {"m.kiln", copy, whole->size}};
    memcpy(copy, whole->data, whole->size);
    assert_int_equal(kn_protect(f->ctx, read_kiln, &r), KN_OK);
    for (size_t i = 0; i < whole->size; i += i < 2048 ? 1 : 61) {
        copy[i] ^= (unsigned char)(1u << i % 8);
        kn_status status = kn_protect(f->ctx, read_kiln, &r);
        if (status != KN_INVALID && status != KN_UNSUPPORTED)
            fail_msg("byte %zu, now 0x%02x: status %d", i, copy[i], (int)status);
        copy[i] = whole->data[i];
        kn_diag_clear(f->ctx);
    }
    for (r.file.size = 0; r.file.size < whole->size; r.file.size += r.file.size < 2048 ? 7 : 997) {
        assert_int_equal(kn_protect(f->ctx, read_kiln, &r), KN_INVALID);
        kn_diag_clear(f->ctx);
    }
    kn_model_destroy(m);
}

/* The file again with one entry's value changed and the manifest's hash made anew. */
static kn_status load_with(fixture *f, const char *from, const char *key, const char *value)
{
    kn_arena *a = kn_arena_create(f->ctx);
    kn_file *file = kn_file_map(f->ctx, from);
    kn_safetensors *st = kn_safetensors_read(a, file);
    kn_st_item *items = KN_ARRAY(a, kn_st_item, st->n);
    for (int i = 0; i < st->n; i++) {
        const kn_st_tensor *t = &st->tensors[i];
        items[i] =
            (kn_st_item){t->name, t->dtype, t->rank, t->dims, file->data + t->offset, i ? 0 : 4096};
    }
    for (int i = 0; i < st->nmeta; i++)
        if (strcmp(st->meta[i].key, key) == 0)
            st->meta[i].value = value;
    const char *hash =
        kn_format(a, "%016llx", (unsigned long long)kn_kiln_hash_manifest(st->meta, st->nmeta));
    for (int i = 0; i < st->nmeta; i++)
        if (strcmp(st->meta[i].key, "hash.manifest") == 0)
            st->meta[i].value = hash;
    const char *path = kn_format(f->arena, "%s/changed.kiln", kn_temp_dir(f->ctx));
    kn_safetensors_write(a, path, st->meta, st->nmeta, items, st->n);
    kn_program *p;
    kn_status status = kn_program_load(f->ctx, path, &p);
    kn_program_destroy(p);
    kn_file_close(f->ctx, file);
    kn_arena_destroy(a);
    return status;
}

static void manifests_are_checked(void **state)
{
    static const struct {
        const char *key, *value;
        kn_status status;
    } cases[] = {
        {"kiln.version", "another", KN_OK},
        {"kiln.format", "2", KN_UNSUPPORTED},
        {"machine", "z80", KN_UNSUPPORTED},
        {"machine", "", KN_UNSUPPORTED},
        {"entry", "other", KN_INVALID},
        {"sizes", "2", KN_INVALID},
        {"sizes", "-1", KN_INVALID},
        {"sizes", "99999999999999999999", KN_INVALID},
        {"sizes", "0", KN_INVALID},
        {"size.0", "rows in 9:0", KN_INVALID},
        {"size.0", "rows in 0:9 ", KN_INVALID},
        {"size.0", "r s in 0:9", KN_INVALID},
        {"size.0", " in 0:9", KN_INVALID},
        {"size.0", "rows", KN_INVALID},
        {"input.0", "f32[rows; 12]", KN_INVALID},
        {"input.0", "f32[rows; 12 x", KN_INVALID},
        {"input.0", "f32[rows;12] x", KN_INVALID},
        {"input.0", "f31[rows; 12] x", KN_INVALID},
        {"input.0", "index[rows; 12] x", KN_INVALID},
        {"input.0", "f32[cols; 12] x", KN_INVALID},
        {"input.0", "f32[rows; 12;] x", KN_INVALID},
        {"input.0", "f32[1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1; 1] x", KN_INVALID},
        {"input.0", "f32[((((((((((rows; 12] x", KN_INVALID},
        {"outputs", "0", KN_INVALID},
        {"output.0", "", KN_INVALID},
        {"weights", "2", KN_INVALID},
        {"weights", "4", KN_INVALID},
        {"weight.0", "f32[240] w1", KN_INVALID},
        {"weight.0", "f32[12; 21] w1", KN_INVALID},
        {"weight.0", "f64[12; 10] w1", KN_INVALID},
        {"weight.0", "f32[12; rows] w1", KN_INVALID},
        {"weight.0", "f32[12; 20] w2", KN_INVALID},
        {"weight.0", "u8[800] __code__", KN_INVALID},
        {"workspace", "rows +", KN_INVALID},
        {"workspace", "1 / 0", KN_INVALID},
        {"kernels", "x", KN_INVALID},
        {"hash.code", "0123", KN_INVALID},
        {"hash.code", "0123456789abcdef", KN_INVALID},
        {"hash.weights", "0123456789ABCDEF", KN_INVALID},
    };
    fixture *f = *state;
    if (!KILN_HAVE_LLVM)
        skip();
    kn_model *m = ffn(f->ctx);
    const char *path = kiln_path(f, m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kn_diag_clear(f->ctx);
        kn_status status = load_with(f, path, cases[i].key, cases[i].value);
        if (status != cases[i].status)
            fail_msg("%s = `%s`: status %d, %s", cases[i].key, cases[i].value, (int)status,
                     last_message(f->ctx));
    }
    kn_model_destroy(m);
}

/* ---- threads ---- */

typedef struct {
    const kn_program *program;
    float y[Y_MAX];
    kn_status status;
} worker;

static void *use_shared(void *arg)
{
    worker *w = arg;
    kn_ctx *ctx = kn_ctx_create();
    for (int i = 0; i < 200 && w->status == KN_OK; i++)
        w->status = ffn_run(ctx, w->program, 1 + i % FFN_MAX_ROWS, w->y);
    w->status = w->status ? w->status : ffn_run(ctx, w->program, FFN_MAX_ROWS, w->y);
    kn_ctx_destroy(ctx);
    return NULL;
}

static void *compile_alone(void *arg)
{
    worker *w = arg;
    kn_ctx *ctx = kn_ctx_create();
    kn_model *m = NULL;
    kn_program *p = NULL;
    w->status = kn_model_create(ctx, "ffn", &m);
    w->status = w->status ? w->status : ffn_build(m);
    w->status = w->status ? w->status : kn_compile(m, NULL, &p);
    w->status = w->status ? w->status : ffn_run(ctx, p, FFN_MAX_ROWS, w->y);
    kn_program_destroy(p);
    kn_model_destroy(m);
    kn_ctx_destroy(ctx);
    return NULL;
}

static void together(void *(*body)(void *), worker *w, int n)
{
    pthread_t threads[4];
    for (int i = 0; i < n; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, &w[i]), 0);
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < n; i++) {
        assert_int_equal(w[i].status, KN_OK);
        assert_memory_equal(w[i].y, w[0].y, sizeof w[0].y);
    }
}

static void threads_share_a_program(void **state)
{
    fixture *f = *state;
    kn_model *m = ffn(f->ctx);
    kn_program *p;
    if (KILN_HAVE_LLVM)
        assert_int_equal(kn_program_load(f->ctx, kiln_path(f, m), &p), KN_OK);
    else
        p = compiled(m, KN_VIA_C);
    worker w[4] = {{.program = p}, {.program = p}, {.program = p}, {.program = p}};
    together(use_shared, w, 4);
    kn_program_destroy(p);
    kn_model_destroy(m);
}

static void threads_compile_at_once(void **state)
{
    (void)state;
    worker w[3] = {{0}};
    together(compile_alone, w, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(every_engine_gives_the_same),
        KN_TEST(a_model_outlives_its_compilation),
        KN_TEST(notation_is_an_operator),
        KN_TEST(outputs_may_be_anything),
        KN_TEST(mistakes_are_statuses),
        KN_TEST(absent_arguments_are_refused),
        KN_TEST(models_are_not_written_over),
        KN_TEST(sessions_check_their_use),
        KN_TEST(sessions_need_their_arguments),
        KN_TEST(a_kiln_file_is_the_program),
        KN_TEST(damage_is_found),
        KN_TEST(manifests_are_checked),
        KN_TEST(threads_share_a_program),
        KN_TEST(threads_compile_at_once),
    };
    ffn_weights();
    return cmocka_run_group_tests_name("the C API", tests, NULL, NULL);
}
