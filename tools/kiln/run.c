/* kiln run MODEL: runs once, on inputs from files or seeded ones, and shows the outputs. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>

#include "driver/probe.h"
#include "runtime/shape.h"
#include "tools/kiln/kiln.h"

enum { SHOWN = 8, USUAL_SIZE = 8 };

typedef struct {
    kn_cli *cli;
    const kn_program *program;
    kn_session *session;
    kn_array *given; /* per input; its data is NULL when nobody gave any, its rank -1 when not even
                        a shape */
    int64_t *sizes;
    bool *known;
} kn_running;

static int find_input(const kn_running *r, const char *name, size_t n)
{
    for (int i = 0; i < kn_program_input_count(r->program); i++) {
        const char *has = kn_program_input(r->program, i)->name;
        if (strlen(has) == n && memcmp(has, name, n) == 0) {
            return i;
        }
    }
    kn_cli_usage(r->cli, "the model has no input `%.*s`", (int)n, name);
}

/* ---- inputs and sizes that were given ---- */

/* NAME=FILE; a name may have = in it, so the longest that is an input's counts. */
static void take_input(kn_running *r, const char *text)
{
    const char *eq = NULL;
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
        for (int i = 0; i < kn_program_input_count(r->program); i++) {
            const char *name = kn_program_input(r->program, i)->name;
            bool is = strlen(name) == (size_t)(at - text) && memcmp(name, text, strlen(name)) == 0;
            eq = is ? at : eq;
        }
    }
    eq = eq ? eq : strchr(text, '=');
    if (!eq) {
        kn_cli_usage(r->cli, "--input: expected NAME=FILE, found `%s`", text);
    }
    r->given[find_input(r, text, (size_t)(eq - text))] = kn_cli_read_array(r->cli, eq + 1);
}

static void take_shape(kn_running *r, const struct kn_input_shape *s)
{
    kn_array *a = &r->given[find_input(r, s->input, strlen(s->input))];
    if (!a->data) {
        a->rank = s->rank;
        memcpy(a->dims, s->dims, sizeof a->dims);
    }
}

static void take_given(kn_running *r)
{
    const kn_cli *c = r->cli;
    int n = kn_program_input_count(r->program);
    r->given = KN_ARRAY(c->arena, kn_array, n + 1);
    for (int i = 0; i < n; i++) {
        r->given[i].rank = -1;
    }
    for (int i = 0; i < c->ninputs; i++) {
        take_input(r, c->inputs[i]);
    }
    for (int i = 0; i < c->nshapes; i++) {
        take_shape(r, &c->shapes[i]);
    }
}

/* ---- a value for each size ---- */

static void set_size(kn_running *r, int i, int64_t value)
{
    if (!r->known[i]) {
        r->known[i] = true;
        r->sizes[i] = value;
    }
}

static const kn_dim *dims_of(const kn_running *r, int *n)
{
    *n = kn_program_dim_count(r->program);
    return kn_program_dim(r->program, 0);
}

/* A model that was imported here has taken them already; a .kiln file has not. */
static void take_dims(kn_running *r, const kn_dim *dims, int n)
{
    kn_cli *c = r->cli;
    bool compiled_before = c->ndims && kn_cli_is_kiln(c, c->files[0]);
    for (int i = 0; i < c->ndims; i++) {
        const kn_size *d = &c->dims[i];
        int size = kn_shape_name(d->name, dims, n);
        if (compiled_before && (size < 0 || d->lo != d->hi)) {
            kn_cli_usage(c,
                         size < 0 ? "the model has no dimension `%s`"
                                  : "--dim %s: a compiled model takes one value",
                         d->name);
        }
        if (size >= 0 && d->lo == d->hi) {
            set_size(r, size, d->lo);
        }
    }
}

static void require_bounds(const kn_running *r, const kn_dim *d, int i)
{
    if (r->known[i] && (r->sizes[i] < d->lo || r->sizes[i] > d->hi)) {
        kn_cli_usage(r->cli, "%s: expected %lld to %lld, found %lld", d->name, (long long)d->lo,
                     (long long)d->hi, (long long)r->sizes[i]);
    }
}

static void choose_sizes(kn_running *r)
{
    int n;
    const kn_dim *dims = dims_of(r, &n);
    r->sizes = KN_ARRAY(r->cli->arena, int64_t, n + 1);
    r->known = KN_ARRAY(r->cli->arena, bool, n + 1);
    take_dims(r, dims, n);
    for (int i = 0; i < kn_program_input_count(r->program); i++) {
        const kn_io *io = kn_program_input(r->program, i);
        for (int k = 0; k < io->rank && io->rank == r->given[i].rank; k++) {
            int size = kn_shape_name(io->dims[k], dims, n);
            if (size >= 0) {
                set_size(r, size, r->given[i].dims[k]);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        require_bounds(r, &dims[i], i);
        int64_t usual = dims[i].lo > USUAL_SIZE ? dims[i].lo : USUAL_SIZE;
        set_size(r, i, usual < dims[i].hi ? usual : dims[i].hi);
        kn_cli_require(r->cli, kn_session_set_dim(r->session, dims[i].name, r->sizes[i]));
    }
}

/* ---- running ---- */

static kn_array make_up(const kn_running *r, int i)
{
    int n;
    const kn_io *io = kn_program_input(r->program, i);
    const kn_dim *dims = dims_of(r, &n);
    kn_array a = {.name = io->name, .type = io->type, .rank = io->rank};
    int64_t count = 1, bytes = 0;
    for (int k = 0; k < io->rank; k++) {
        if (!kn_shape_eval(io->dims[k], dims, r->sizes, n, &a.dims[k]) || a.dims[k] < 0) {
            kn_cli_usage(r->cli, "input %s: no shape at these sizes; give --input-shape", io->name);
        }
        bytes = __builtin_mul_overflow(count, a.dims[k], &count) ? -1 : bytes;
    }
    bytes = bytes < 0 ? -1 : kn_dtype_bytes(io->type, count);
    if (bytes < 0) {
        kn_raise(r->cli->ctx, KN_INVALID, (kn_loc){.where = io->name}, "the input is too large");
    }
    kn_memory m = {kn_alloc(r->cli->arena, (size_t)bytes + 1), (size_t)bytes};
    kn_probe_fill(m, io->type, count, r->cli->seed + (uint64_t)i, KN_PROBE_PLAIN);
    a.data = m.data;
    a.bytes = m.bytes;
    return a;
}

static void set_inputs(kn_running *r)
{
    for (int i = 0; i < kn_program_input_count(r->program); i++) {
        kn_array a = r->given[i].data ? r->given[i] : make_up(r, i);
        kn_cli_set_input(r->cli, r->session, i, &a);
    }
}

/* ---- outputs ---- */

static void put_element(kn_str *s, const kn_array *a, int64_t i)
{
    int64_t wide;
    if (kn_dtype_bits(a->type) == 64 && !kn_dtype_is_float(a->type)) {
        memcpy(&wide, (const char *)a->data + 8 * i, sizeof wide);
        kn_putf(s, a->type == KN_U64 ? "%" PRIu64 : "%" PRId64, (uint64_t)wide);
    } else {
        kn_putf(s, kn_dtype_is_float(a->type) ? "%.6g" : "%.0f", kn_cli_element(a, i));
    }
}

static void print_output(kn_cli *c, const kn_array *a)
{
    kn_str s = kn_str_make(c->arena);
    int64_t n = kn_cli_count(a);
    kn_putf(&s, "%s: %s[", a->name, kn_dtype_name(a->type));
    for (int i = 0; i < a->rank; i++) {
        kn_putf(&s, "%s%lld", i ? ", " : "", (long long)a->dims[i]);
    }
    kn_put(&s, "] =");
    for (int64_t i = 0; i < n && i < SHOWN; i++) {
        kn_put(&s, i ? ", " : " ");
        put_element(&s, a, i);
    }
    printf("%s%s\n", kn_str_get(&s), n > SHOWN ? ", ..." : "");
}

static cJSON *json_output(const kn_array *a, const char *file)
{
    cJSON *json = cJSON_CreateObject(), *shape = cJSON_CreateArray(), *values = cJSON_CreateArray();
    cJSON_AddStringToObject(json, "name", a->name);
    cJSON_AddStringToObject(json, "type", kn_dtype_name(a->type));
    for (int i = 0; i < a->rank; i++) {
        cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)a->dims[i]));
    }
    for (int64_t i = 0; i < kn_cli_count(a) && i < SHOWN; i++) {
        cJSON_AddItemToArray(values, cJSON_CreateNumber(kn_cli_element(a, i)));
    }
    cJSON_AddItemToObject(json, "shape", shape);
    cJSON_AddItemToObject(json, "values", values);
    if (file) {
        cJSON_AddStringToObject(json, "file", file);
    }
    return json;
}

/* NumPy has neither bfloat16 nor 4-bit types: those are written as float32 and int8 or uint8. */
static kn_array widen(kn_cli *c, const kn_array *a)
{
    bool nibbles = kn_dtype_bits(a->type) < 8;
    if (a->type != KN_BF16 && !nibbles) {
        return *a;
    }
    kn_array wide = *a;
    int64_t n = kn_cli_count(a);
    wide.type = a->type == KN_BF16 ? KN_F32 : a->type == KN_I4 ? KN_I8 : KN_U8;
    wide.bytes = (size_t)kn_dtype_bytes(wide.type, n);
    char *data = kn_alloc(c->arena, wide.bytes + 1);
    for (int64_t i = 0; i < n; i++) {
        float f = (float)kn_cli_element(a, i);
        if (nibbles) {
            data[i] = (char)(int)f;
        } else {
            memcpy(data + 4 * i, &f, sizeof f);
        }
    }
    wide.data = data;
    return wide;
}

/* Names that can stay as they are. */
static void take_plain_names(const kn_program *p, kn_map *taken)
{
    for (int i = 0; i < kn_program_output_count(p); i++) {
        const char *name = kn_program_output(p, i)->name;
        if (!strchr(name, '/')) {
            kn_map_set(taken, name, taken);
        }
    }
}

/* Writes D/NAME.npy; what would lead out of D in a name becomes _, with more of them where that is
   another output's name. */
static const char *write_output(kn_cli *c, const kn_array *a, kn_map *taken)
{
    kn_str name = kn_str_make(c->arena);
    for (const char *at = a->name; *at; at++) {
        kn_put_char(&name, *at == '/' ? '_' : *at);
    }
    while (strchr(a->name, '/') && kn_map_has(taken, kn_str_get(&name))) {
        kn_put_char(&name, '_');
    }
    kn_map_set(taken, kn_str_get(&name), taken);
    const char *path = kn_intern_f(c->ctx, "%s/%s.npy", c->output_dir, kn_str_get(&name));
    kn_array wide = widen(c, a);
    kn_cli_write_npy(c, path, &wide);
    return path;
}

static void show_outputs(kn_running *r, double seconds)
{
    kn_cli *c = r->cli;
    cJSON *list = cJSON_CreateArray();
    kn_map taken = kn_map_make(c->arena);
    if (c->output_dir) {
        kn_make_dir(c->ctx, c->output_dir);
        take_plain_names(r->program, &taken);
    }
    for (int i = 0; i < kn_program_output_count(r->program); i++) {
        kn_array a = kn_cli_get_output(c, r->session, r->program, i);
        const char *file = c->output_dir ? write_output(c, &a, &taken) : NULL;
        if (c->json) {
            cJSON_AddItemToArray(list, json_output(&a, file));
        } else if (!c->quiet) {
            print_output(c, &a);
        }
    }
    if (!c->json) {
        cJSON_Delete(list);
        return;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "seconds", seconds);
    cJSON_AddItemToObject(json, "outputs", list);
    kn_cli_print_json(c, json);
}

void kn_verb_run(kn_cli *c)
{
    if (c->nfiles != 1) {
        kn_cli_usage(c, "run needs one MODEL");
    }
    double start = kn_cli_now();
    kn_program *p = kn_cli_program(c);
    kn_running r = {.cli = c, .program = p, .session = kn_cli_session(c, p)};
    take_given(&r);
    choose_sizes(&r);
    set_inputs(&r);
    double ready = kn_cli_now();
    kn_cli_require(c, kn_session_run(r.session));
    double end = kn_cli_now();
    show_outputs(&r, end - ready);
    if (c->verbose) {
        fprintf(stderr, "kiln: ready in %.3f s, ran in %.6f s\n", ready - start, end - ready);
    }
    kn_release(c->ctx, r.session);
    kn_program_destroy(p);
}
