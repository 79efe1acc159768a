/* .npy files, the headers as NumPy writes them. */
#include "unit.h"

#include "support/npy.h"

typedef struct {
    fixture *f;
    kn_file file;
    kn_npy found;
} task;

static void read_file(void *arg)
{
    task *t = arg;
    t->found = kn_npy_read(t->f->arena, &t->file);
}

/* A file of version 1: the length of the header, the header, so many bytes of data. */
static kn_file make(fixture *f, const char *header, size_t data)
{
    size_t n = strlen(header);
    unsigned char *bytes = kn_alloc(f->arena, 10 + n + data);
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = (unsigned char)(n & 255);
    bytes[9] = (unsigned char)(n >> 8);
    memcpy(bytes + 10, header, n);
    return (kn_file){"a.npy", bytes, 10 + n + data};
}

#define HEADER(descr, order, shape) \
    "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape ", }\n"

static void npy_round_trip(void **state)
{
    fixture *f = *state;
    const char *path = kn_format(f->arena, "%s/a.npy", kn_temp_dir(f->ctx));
    const int16_t values[] = {1, -2, 3, -4, 5, -6};
    const int64_t dims[] = {3, 1, 2};
    kn_npy_write(f->arena, path, KN_I16, 3, dims, (kn_piece){values, sizeof values});
    const kn_file *file = kn_file_map(f->ctx, path);
    assert_true(kn_npy_detect(file));
    kn_npy a = kn_npy_read(f->arena, file);
    assert_int_equal(a.type, KN_I16);
    assert_int_equal(a.rank, 3);
    assert_memory_equal(a.dims, dims, sizeof dims);
    assert_int_equal(a.offset % 64, 0);
    assert_int_equal(a.bytes, sizeof values);
    assert_memory_equal(file->data + a.offset, values, sizeof values);
}

static void what_numpy_writes_is_read(void **state)
{
    fixture *f = *state;
    static const struct {
        const char *header;
        size_t bytes;
        kn_dtype type;
        int rank;
    } good[] = {
        {HEADER("'<f4'", "False", "(2, 3)"), 24, KN_F32, 2},
        {HEADER("'|b1'", "False", "(5,)"), 5, KN_BOOL, 1},
        {HEADER("'<u8'", "False", "()"), 8, KN_U64, 0},
        {HEADER("'<f2'", "False", "(0, 9223372036854775807)"), 0, KN_F16, 2},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        task t = {.f = f, .file = make(f, good[i].header, good[i].bytes)};
        assert_int_equal(kn_protect(f->ctx, read_file, &t), KN_OK);
        assert_int_equal(t.found.type, good[i].type);
        assert_int_equal(t.found.rank, good[i].rank);
    }
}

static const struct {
    const char *header;
    size_t bytes;
    kn_status status;
    const char *message;
} broken[] = {
    {HEADER("'<f4'", "False", "(2, 3)"), 23, KN_INVALID, "its bytes do not fit its shape"},
    {HEADER("'<f4'", "False", "(2, 3)"), 25, KN_INVALID, "its bytes do not fit its shape"},
    {HEADER("'<f4'", "False", "(4611686018427387904, 4)"), 0, KN_INVALID, "its shape"},
    {HEADER("'<f4'", "False", "(4611686018427387904,)"), 0, KN_INVALID,
     "its bytes do not fit its shape"},
    {HEADER("'<f4'", "False", "(-1,)"), 0, KN_INVALID, "its shape"},
    {HEADER("'<f4'", "False", "(x,)"), 0, KN_INVALID, "its shape"},
    {HEADER("'<f4'", "False", "[1]"), 4, KN_INVALID, "its shape"},
    {HEADER("'<f4'", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1)"), 4, KN_INVALID, "its shape"},
    {HEADER("'<f4'", "True", "(2, 3)"), 24, KN_UNSUPPORTED, "it is in Fortran order"},
    {HEADER("'<f4'", "Maybe", "(2, 3)"), 24, KN_INVALID, "its order"},
    {HEADER("'>f4'", "False", "(1,)"), 4, KN_UNSUPPORTED, "an element type that Kiln has not"},
    {"{'descr': '<f4', 'fortran_order': False}", 4, KN_INVALID,
     "an entry of its header is missing"},
    {"{'fortran_order': False, 'shape': (1,), 'descr':", 4, KN_UNSUPPORTED,
     "an element type that Kiln has not"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape':", 4, KN_INVALID, "its shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", 4, KN_INVALID, "its shape"},
};

static void assert_refused(fixture *f, kn_file file, kn_status status, const char *message)
{
    task t = {.f = f, .file = file};
    assert_int_equal(kn_protect(f->ctx, read_file, &t), status);
    assert_string_equal(last_message(f->ctx),
                        kn_format(f->arena, "not a .npy file that can be read: %s", message));
    assert_string_equal(kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1)->file, "a.npy");
}

static void broken_npy_files_are_refused(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_refused(f, make(f, broken[i].header, broken[i].bytes), broken[i].status,
                       broken[i].message);
    }
}

static void short_npy_files_are_refused(void **state)
{
    fixture *f = *state;
    kn_file whole = make(f, HEADER("'<f4'", "False", "(2, 3)"), 24);
    for (size_t n = 0; n < whole.size; n++) {
        task t = {.f = f, .file = {"a.npy", whole.data, n}};
        assert_int_equal(kn_protect(f->ctx, read_file, &t), KN_INVALID);
    }
    assert_refused(f, (kn_file){"a.npy", whole.data, 9}, KN_INVALID, "it is cut off");
    assert_refused(f, (kn_file){"a.npy", whole.data, 10}, KN_INVALID, "its header is cut off");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(npy_round_trip),
        KN_TEST(what_numpy_writes_is_read),
        KN_TEST(broken_npy_files_are_refused),
        KN_TEST(short_npy_files_are_refused),
    };
    return cmocka_run_group_tests_name("support npy", tests, NULL, NULL);
}
