/* Files and the safetensors container. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/safetensors.h"

typedef struct {
    fixture *f;
    const char *path;
    const kn_safetensors *found;
    const kn_st_item *item;
} task;

/* ---- files ---- */

static void map_file(void *arg)
{
    task *t = arg;
    kn_file_map(t->f->ctx, t->path);
}

static void assert_unreadable(fixture *f, const char *path, const char *message)
{
    task t = {.f = f, .path = path};
    assert_int_equal(kn_protect(f->ctx, map_file, &t), KN_INVALID);
    assert_string_equal(last_message(f->ctx), message);
    assert_string_equal(kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1)->file, path);
}

static void files_read_back(void **state)
{
    fixture *f = *state;
    const char *dir = kn_temp_dir(f->ctx);
    const char *path = kn_format(f->arena, "%s/a", dir);
    const kn_piece pieces[] = {{"hel", 3}, {NULL, 0}, {"lo", 2}};
    kn_file_write_pieces(f->ctx, path, pieces, 3);
    kn_file *file = kn_file_map(f->ctx, path);
    assert_int_equal(file->size, 5);
    assert_memory_equal(file->data, "hello", 5);
    kn_file_write(f->ctx, path, "", 0); /* the mapping stays: another file took the name */
    assert_memory_equal(file->data, "hello", 5);
    kn_file_close(f->ctx, file);
    file = kn_file_map(f->ctx, path);
    assert_int_equal(file->size, 0);
    assert_non_null(file->data);
    kn_release(f->ctx, dir);
    assert_int_not_equal(access(dir, F_OK), 0);
}

static void what_is_no_file_is_named(void **state)
{
    fixture *f = *state;
    const char *dir = kn_temp_dir(f->ctx);
    assert_unreadable(f, dir, "cannot read: is a folder, expected a file");
    assert_unreadable(f, "/dev/null", "cannot read: is no regular file");
    const char *path = kn_format(f->arena, "%s/none", dir);
    assert_unreadable(f, path, "cannot read: No such file or directory");
    const char *pipe = kn_format(f->arena, "%s/pipe", dir);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_unreadable(f, pipe, "cannot read: is no regular file");
}

static void write_file(void *arg)
{
    task *t = arg;
    kn_file_write(t->f->ctx, t->path, "x", 1);
}

static void a_failed_write_leaves_nothing(void **state)
{
    fixture *f = *state;
    const char *dir = kn_temp_dir(f->ctx);
    task t = {.f = f, .path = kn_format(f->arena, "%s/no/such", dir)};
    assert_int_equal(kn_protect(f->ctx, write_file, &t), KN_ENVIRONMENT);
    const char *folder = kn_format(f->arena, "%s/folder", dir);
    assert_int_equal(mkdir(folder, 0700), 0);
    t.path = folder;
    assert_int_equal(kn_protect(f->ctx, write_file, &t), KN_ENVIRONMENT);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(dir), 0); /* so no temporary file is left */
}

static void a_full_device_is_an_error(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .path = "/dev/full"};
    if (access(t.path, W_OK) != 0)
        skip();
    assert_int_equal(kn_protect(f->ctx, write_file, &t), KN_ENVIRONMENT);
    assert_string_equal(last_message(f->ctx), "cannot write: No space left on device");
    struct stat st;
    assert_int_equal(stat(t.path, &st), 0);
    assert_true(S_ISCHR(st.st_mode));
}

/* ---- safetensors: round trip ---- */

static void safetensors_round_trip(void **state)
{
    fixture *f = *state;
    const char *path = kn_format(f->arena, "%s/m.safetensors", kn_temp_dir(f->ctx));
    static const int64_t two_three[] = {2, 3}, five[] = {5}, none[] = {0, 7};
    static const float weights[] = {1, 2, 3, 4, 5, 6};
    static const kn_st_meta meta[] = {{"format", "kiln \"1\"\n"}, {"\xc3\xa9", "\\"}};
    static const kn_st_item items[] = {
        {"bytes", KN_U8, 1, five, "abcde", 0},
        {"w \"q\"\xe2\x82\xac", KN_F32, 2, two_three, weights, 4096},
        {"empty", KN_BF16, 2, none, NULL, 0},
        {"scalar", KN_BOOL, 0, NULL, "\1", 64},
    };
    kn_safetensors_write(f->arena, path, meta, 2, items, 4);
    kn_safetensors *st = kn_safetensors_read(f->arena, kn_file_map(f->ctx, path));
    assert_int_equal(st->n, 6); /* two of them padding */
    assert_non_null(kn_safetensors_find(st, "__pad__.0"));
    assert_non_null(kn_safetensors_find(st, "__pad__.1"));
    assert_null(kn_safetensors_find(st, "__pad__.2"));
    for (int i = 0; i < 4; i++) {
        const kn_st_tensor *t = kn_safetensors_find(st, items[i].name);
        assert_non_null(t);
        assert_int_equal(t->dtype, items[i].dtype);
        assert_int_equal(t->rank, items[i].rank);
        if (items[i].rank)
            assert_memory_equal(t->dims, items[i].dims, (size_t)t->rank * sizeof t->dims[0]);
        if (items[i].align)
            assert_int_equal(t->offset % items[i].align, 0);
        if (t->bytes)
            assert_memory_equal(st->file->data + t->offset, items[i].data, t->bytes);
    }
    assert_int_equal(st->nmeta, 2);
    assert_string_equal(kn_safetensors_meta(st, "format"), "kiln \"1\"\n");
    assert_string_equal(kn_safetensors_meta(st, "\xc3\xa9"), "\\");
    assert_null(kn_safetensors_meta(st, "none"));
}

static void safetensors_of_nothing(void **state)
{
    fixture *f = *state;
    const char *path = kn_format(f->arena, "%s/m", kn_temp_dir(f->ctx));
    kn_safetensors_write(f->arena, path, NULL, 0, NULL, 0);
    kn_safetensors *st = kn_safetensors_read(f->arena, kn_file_map(f->ctx, path));
    assert_int_equal(st->file->size, 16);
    assert_int_equal(st->n, 0);
    assert_int_equal(st->nmeta, 0);
}

static void write_item(void *arg)
{
    task *t = arg;
    kn_safetensors_write(t->f->arena, t->path, NULL, 0, t->item, 1);
}

static void safetensors_refuses_what_it_cannot_hold(void **state)
{
    fixture *f = *state;
    static const int64_t dims[] = {INT64_MAX / 2, 3};
    static const kn_st_item nibbles = {"t", KN_I4, 1, dims, NULL, 0};
    static const kn_st_item huge = {"t", KN_F32, 2, dims, NULL, 0};
    task t = {.f = f, .path = kn_format(f->arena, "%s/m", kn_temp_dir(f->ctx)), .item = &nibbles};
    assert_int_equal(kn_protect(f->ctx, write_item, &t), KN_UNSUPPORTED);
    assert_string_equal(last_message(f->ctx), "safetensors has no element type i4");
    t.item = &huge;
    assert_int_equal(kn_protect(f->ctx, write_item, &t), KN_INVALID);
    assert_int_not_equal(access(t.path, F_OK), 0);
}

/* ---- safetensors: headers by hand ---- */

/* A file of this header and `data` zero bytes after it. */
static const char *write_header(fixture *f, const char *header, size_t n, size_t data)
{
    const char *path = kn_format(f->arena, "%s/m", kn_temp_dir(f->ctx));
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n >> 8 * i);
    const kn_piece pieces[] = {{length, 8}, {header, n}, {kn_alloc(f->arena, data), data}};
    kn_file_write_pieces(f->ctx, path, pieces, 3);
    return path;
}

static void read_tensors(void *arg)
{
    task *t = arg;
    t->found = kn_safetensors_read(t->f->arena, kn_file_map(t->f->ctx, t->path));
}

static void safetensors_reads_what_others_write(void **state)
{
    fixture *f = *state;
    static const char header[] =
        "{ \"b\" :\t{\"shape\":[ ] ,\"data_offsets\":[4,8],\"dtype\":\"I32\"},\r\n"
        "\"\\u00e9\\ud83d\\ude00\\/\":{\"dtype\":\"F16\",\"shape\":[1,2],\"data_offsets\":[0, 4]},"
        "\"__metadata__\":{}}  \n ";
    task t = {.f = f, .path = write_header(f, header, sizeof header - 1, 8)};
    assert_int_equal(kn_protect(f->ctx, read_tensors, &t), KN_OK);
    assert_int_equal(t.found->n, 2);
    assert_string_equal(t.found->tensors[0].name, "\xc3\xa9\xf0\x9f\x98\x80/");
    assert_int_equal(t.found->tensors[1].offset, 8 + sizeof header - 1 + 4);
    assert_int_equal(t.found->tensors[1].rank, 0);
}

#define T(dtype, shape, offsets) \
    "{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" offsets "]}"
#define BIG "9223372036854775807"

static const struct {
    const char *header;
    size_t data;
    const char *where, *message;
} broken[] = {
    {"", 0, NULL, "header: expected '{', found its end"},
    {" {}", 0, NULL, "header, byte 8: expected '{', found byte 0x20"},
    {"[]", 0, NULL, "header, byte 8: expected '{', found '['"},
    {"{", 0, NULL, "header: expected '\"', found its end"},
    {"{} x", 0, NULL, "header, byte 11: expected nothing but spaces, found 'x'"},
    {"{1:2}", 0, NULL, "header, byte 9: expected '\"', found '1'"},
    {"{\"a\"}", 0, NULL, "header, byte 12: expected ':', found '}'"},
    {"{\"a", 0, NULL, "header: expected '\"', found its end"},
    {"{\"a\xff\"", 0, NULL, "header, byte 11: expected UTF-8 text, found byte 0xff"},
    {"{\"\xed\xa0\x80\"", 0, NULL, "header, byte 10: expected UTF-8 text, found byte 0xed"},
    {"{\"\xc0\x80\"", 0, NULL, "header, byte 10: expected UTF-8 text, found byte 0xc0"},
    {"{\"\xe2\x82", 0, NULL, "header, byte 10: expected UTF-8 text, found byte 0xe2"},
    {"{\"a\n\"", 0, NULL, "header, byte 11: expected UTF-8 text, found byte 0x0a"},
    {"{\"\\q\"", 0, NULL, "header, byte 11: expected an escape, found 'q'"},
    {"{\"\\u12x4\"", 0, NULL, "header, byte 14: expected four hexadecimal digits, found 'x'"},
    {"{\"\\ud800\"", 0, NULL, "header, byte 16: expected a pair of surrogates, found '\"'"},
    {"{\"\\ud800\\u0041\"", 0, NULL, "header, byte 22: expected a pair of surrogates, found '\"'"},
    {"{\"\\udc00\"", 0, NULL, "header, byte 16: expected a pair of surrogates, found '\"'"},
    {"{\"\\u0000\"", 0, NULL, "header, byte 16: NUL in a string"},
    {"{\"a\":3}", 0, "a", "header, byte 13: expected '{', found '3'"},
    {"{\"a\":{\"dtype\":[[[", 0, "a", "header, byte 22: expected '\"', found '['"},
    {"{\"a\":{\"dtype\":\"X9\"}}", 0, "a", "unknown element type 'X9'"},
    {"{\"a\":{\"kind\":\"X9\"}}", 0, "a", "unknown key 'kind'"},
    {"{\"a\":{\"dtype\":\"I8\",\"dtype\":\"I8\"}}", 0, "a", "key 'dtype' stands twice"},
    {"{\"a\":{\"dtype\":\"I8\",\"shape\":[]}}", 0, "a", "no 'data_offsets'"},
    {"{\"a\":{}}", 0, "a", "no 'dtype'"},
    {"{\"a\":" T("F32", "-1", "0,4") "}", 4, "a",
     "header, byte 37: expected a non-negative integer, found '-'"},
    {"{\"a\":" T("F32", "1.5", "0,4") "}", 4, "a", "header, byte 38: expected ',', found '.'"},
    {"{\"a\":" T("F32", "01", "0,4") "}", 4, "a", "header, byte 39: number with a leading zero"},
    {"{\"a\":" T("F32", "1,", "0,4") "}", 4, "a",
     "header, byte 39: expected a non-negative integer, found ']'"},
    {"{\"a\":" T("F32", "9223372036854775808", "0,4") "}", 4, "a",
     "header, byte 55: number too large"},
    {"{\"a\":" T("F32", "1,1,1,1,1,1,1,1,1,1,1,1,1", "0,4") "}", 4, "a", "more than 12 dimensions"},
    {"{\"a\":" T("F32", BIG ",2", "0,4") "}", 4, "a", "f32[" BIG ", 2] has too many elements"},
    {"{\"a\":" T("F32", BIG, "0,4") "}", 4, "a", "f32[" BIG "] has too many elements"},
    {"{\"a\":" T("F32", "2,3", "0,20") "}", 20, "a", "expected 24 bytes for f32[2, 3], found 20"},
    {"{\"a\":" T("F32", "1", "4,0") "}", 4, "a", "data_offsets [4, 0] run backwards"},
    {"{\"a\":" T("F32", "1", "0,4,8") "}", 4, "a", "header, byte 59: expected ']', found ','"},
    {"{\"a\":" T("I8", "4", "4,8") "}", 8, "a", "expected the data at offset 0, found 4 (a hole)"},
    {"{\"a\":" T("I8", "4", "0,4") ",\"b\":" T("I8", "4", "2,6") "}", 6, "b",
     "expected the data at offset 4, found 2 (an overlap)"},
    {"{\"a\":" T("I8", "4", "0,4") ",\"b\":" T("I8", "4", "4,8") "}", 6, "b",
     "expected data up to offset 8, found 6 bytes of data in the file"},
    {"{\"a\":" T("I8", BIG, "0," BIG) "}", 6, "a",
     "expected data up to offset " BIG ", found 6 bytes of data in the file"},
    {"{\"a\":" T("I8", "4", "0,4") "}", 6, NULL, "expected 4 bytes of data, found 6"},
    {"{\"a\":" T("I8", "1", "0,1") ",\"a\":" T("I8", "1", "1,2") "}", 2, NULL, "'a' stands twice"},
    {"{\"__metadata__\":{\"k\":1}}", 0, "__metadata__",
     "header, byte 29: expected '\"', found '1'"},
    {"{\"__metadata__\":{\"k\":\"\",\"k\":\"\"}}", 0, "__metadata__", "key 'k' stands twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, NULL, "'__metadata__' stands twice"},
    {"{\"a\":" T("I8", "1", "0,1") ",}", 1, NULL, "header, byte 61: expected '\"', found '}'"},
};

static void broken_safetensors_are_named(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        const char *header = broken[i].header;
        task t = {.f = f, .path = write_header(f, header, strlen(header), broken[i].data)};
        assert_int_equal(kn_protect(f->ctx, read_tensors, &t), KN_INVALID);
        assert_string_equal(last_message(f->ctx), broken[i].message);
        const kn_diag *d = kn_diag_get(f->ctx, kn_diag_count(f->ctx) - 1);
        assert_string_equal(d->file, t.path);
        assert_string_equal(d->where ? d->where : "-", broken[i].where ? broken[i].where : "-");
    }
}

static void unsupported_element_types_are_named(void **state)
{
    fixture *f = *state;
    static const char header[] = "{\"a\":" T("F8_E4M3", "4", "0,4") "}";
    task t = {.f = f, .path = write_header(f, header, sizeof header - 1, 4)};
    assert_int_equal(kn_protect(f->ctx, read_tensors, &t), KN_UNSUPPORTED);
    assert_string_equal(last_message(f->ctx), "element type F8_E4M3 is not supported");
}

static void assert_broken_bytes(fixture *f, const char *bytes, size_t n, const char *message)
{
    task t = {.f = f, .path = kn_format(f->arena, "%s/m", kn_temp_dir(f->ctx))};
    kn_file_write(f->ctx, t.path, bytes, n);
    assert_int_equal(kn_protect(f->ctx, read_tensors, &t), KN_INVALID);
    assert_string_equal(last_message(f->ctx), message);
}

static void broken_lengths_are_named(void **state)
{
    fixture *f = *state;
    assert_broken_bytes(f, "", 0, "expected 8 bytes of header length, found 0");
    assert_broken_bytes(f, "\2\0\0\0\0\0\0", 7, "expected 8 bytes of header length, found 7");
    assert_broken_bytes(f, "\3\0\0\0\0\0\0\0{}", 10,
                        "header length 3, found 2 bytes after it in the file");
    assert_broken_bytes(f, "\1\341\365\5\0\0\0\0{}", 10,
                        "header length 100000001, expected at most 100000000");
    assert_broken_bytes(f, "\377\377\377\377\377\377\377\377{}", 10,
                        "header length 18446744073709551615, expected at most 100000000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(files_read_back),
        KN_TEST(what_is_no_file_is_named),
        KN_TEST(a_failed_write_leaves_nothing),
        KN_TEST(a_full_device_is_an_error),
        KN_TEST(safetensors_round_trip),
        KN_TEST(safetensors_of_nothing),
        KN_TEST(safetensors_refuses_what_it_cannot_hold),
        KN_TEST(safetensors_reads_what_others_write),
        KN_TEST(broken_safetensors_are_named),
        KN_TEST(unsupported_element_types_are_named),
        KN_TEST(broken_lengths_are_named),
    };
    return cmocka_run_group_tests_name("support file", tests, NULL, NULL);
}
