/* kiln inspect FILE: what is in a file. Nothing in it is run. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/kiln_file.h"
#include "runtime/shape.h"
#include "support/npy.h"
#include "tools/kiln/kiln.h"

enum { USUAL_SIZE = 128 };

typedef struct {
    kn_cli *cli;
    const char *kind, *name;
    int ninputs, noutputs, ndims, nops;
    const kn_io *inputs, *outputs;
    const kn_dim *dims;
    kn_op_tally *ops;
    int64_t elements[KN_DTYPE_COUNT]; /* of the weights, by type */
    int64_t parameters, weight_bytes;
    const char *workspace; /* an expression of the sizes, or NULL */
    int64_t arena_bytes;
    kn_model *model; /* while its memory plan is made */
} kn_report;

/* ---- weights ---- */

/* Tables of indices, shapes and masks are no parameters. */
static bool is_weight(kn_dtype type)
{
    return kn_dtype_is_float(type) || (kn_dtype_bits(type) <= 8 && type != KN_BOOL);
}

static void add_weight(kn_report *r, kn_dtype type, int64_t count, size_t bytes)
{
    if (is_weight(type)) {
        r->elements[type] += count;
        r->parameters += count;
        r->weight_bytes += (int64_t)bytes;
    }
}

static double bits_per_weight(const kn_report *r)
{
    return r->parameters ? 8 * (double)r->weight_bytes / (double)r->parameters : 0;
}

/* ---- memory ---- */

static int64_t usual_size(const kn_report *r, const kn_dim *d)
{
    for (int i = 0; i < r->cli->ndims; i++) {
        const kn_size *given = &r->cli->dims[i];
        if (given->lo == given->hi && strcmp(given->name, d->name) == 0) {
            return given->lo;
        }
    }
    int64_t size = d->lo > USUAL_SIZE ? d->lo : USUAL_SIZE;
    return size < d->hi ? size : d->hi;
}

/* The workspace at usual sizes: 128, or what their bounds allow, unless --dim says otherwise. */
static void find_arena(kn_report *r)
{
    int64_t *values = KN_ARRAY(r->cli->arena, int64_t, r->ndims + 1);
    for (int i = 0; i < r->ndims; i++) {
        values[i] = usual_size(r, &r->dims[i]);
    }
    if (!r->workspace || !kn_shape_eval(r->workspace, r->dims, values, r->ndims, &r->arena_bytes)) {
        r->arena_bytes = -1;
    }
}

static void plan_memory(void *env)
{
    kn_report *r = env;
    kn_compile_options options = kn_cli_compile_options(r->cli);
    kn_arena *a = kn_arena_create(r->cli->ctx);
    kn_unit u = kn_driver_lower(a, r->model, kn_driver_target(a, &options), &options);
    const kn_expr *bytes = kn_module_main(u.module)->workspace;
    kn_str s = kn_str_make(r->cli->arena);
    if (bytes) {
        kn_expr_print(&s, bytes, false);
    }
    r->workspace = bytes ? kn_str_get(&s) : "0";
}

/* ---- kinds of files ---- */

static void read_model(kn_report *r, const char *path)
{
    kn_import_options options = kn_cli_import_options(r->cli);
    r->model = kn_driver_import(r->cli->ctx, path, &options);
    const kn_graph *g = r->model->graph;
    kn_program *p = kn_driver_describe(r->model);
    r->kind = kn_onnx_detect(r->model->file) ? "onnx" : "kir";
    r->name = p->name;
    r->ninputs = p->ninputs;
    r->inputs = p->inputs;
    r->noutputs = p->noutputs;
    r->outputs = p->outputs;
    r->ndims = p->ndims;
    r->dims = p->dims;
    r->ops = kn_driver_count_ops(r->cli->arena, g, &r->nops);
    for (int i = 0; i < g->nconsts; i++) {
        add_weight(r, g->consts[i]->type, kn_value_count(g->consts[i]), g->consts[i]->bytes);
    }
    if (kn_protect(r->cli->ctx, plan_memory, r) != KN_OK) {
        kn_diag_clear(r->cli->ctx);
        kn_warn(r->cli->ctx, (kn_loc){.file = path},
                "it does not compile, so its memory is not known");
    }
}

/* "add=3 matmul=2" */
static void read_ops(kn_report *r, const char *text)
{
    r->ops = KN_ARRAY(r->cli->arena, kn_op_tally, strlen(text) + 1);
    while (*text) {
        size_t n = strcspn(text, "= ");
        kn_op_tally *op = &r->ops[r->nops++];
        op->name = kn_intern_n(r->cli->ctx, text, n);
        text += n;
        op->count = *text == '=' ? (int)(strtol(text + 1, NULL, 10) & INT32_MAX) : 0;
        text += strcspn(text, " ");
        text += *text == ' ';
    }
}

static int64_t count_of(const kn_io *io)
{
    int64_t count = 1;
    for (int i = 0; i < io->rank; i++) {
        count *= strtoll(io->dims[i], NULL, 10); /* checked: the tensor is in the file */
    }
    return count;
}

static void read_kiln(kn_report *r, const kn_file *file)
{
    const kn_kiln *k = kn_kiln_read(r->cli->arena, file);
    kn_kiln_check(r->cli->arena, k);
    r->kind = "kiln";
    r->name =
        kn_intern_f(r->cli->ctx, "%s, for %s on %s, by kiln %s, %d kernels, %zu bytes of code",
                    k->name, k->target, k->machine, k->version, k->kernels, k->code.size);
    r->ninputs = k->ninputs;
    r->inputs = k->inputs;
    r->noutputs = k->noutputs;
    r->outputs = k->outputs;
    r->ndims = k->ndims;
    r->dims = k->dims;
    r->workspace = k->workspace;
    read_ops(r, k->ops);
    for (int i = 0; i < k->nweights; i++) {
        int64_t count = count_of(&k->weights[i]);
        add_weight(r, k->weights[i].type, count, (size_t)kn_dtype_bytes(k->weights[i].type, count));
    }
}

static kn_io describe(kn_cli *c, const char *name, kn_dtype type, int rank, const int64_t *dims)
{
    const char **texts = KN_ARRAY(c->arena, const char *, rank + 1);
    for (int i = 0; i < rank; i++) {
        texts[i] = kn_format(c->arena, "%lld", (long long)dims[i]);
    }
    return (kn_io){.name = name, .type = type, .rank = rank, .dims = texts};
}

static void read_safetensors(kn_report *r, const kn_file *file)
{
    const kn_safetensors *st = kn_safetensors_read(r->cli->arena, file);
    kn_io *list = KN_ARRAY(r->cli->arena, kn_io, st->n + 1);
    for (int i = 0; i < st->n; i++) {
        const kn_st_tensor *t = &st->tensors[i];
        list[i] = describe(r->cli, t->name, t->dtype, t->rank, t->dims);
        add_weight(r, t->dtype, t->bytes ? count_of(&list[i]) : 0, t->bytes);
    }
    r->kind = "safetensors";
    r->noutputs = st->n;
    r->outputs = list;
}

static void read_array(kn_report *r, const char *path)
{
    kn_array a = kn_cli_read_array(r->cli, path);
    kn_io *io = KN_NEW(r->cli->arena, kn_io);
    *io = describe(r->cli, a.name, a.type, a.rank, a.dims);
    add_weight(r, a.type, kn_cli_count(&a), a.bytes);
    r->kind = "npy";
    r->noutputs = 1;
    r->outputs = io;
}

static void read_file(kn_report *r, const char *path)
{
    const kn_file *f = kn_file_map(r->cli->ctx, path);
    if (kn_npy_detect(f)) {
        read_array(r, path);
    } else if (kn_kiln_detect(f)) {
        read_kiln(r, f);
    } else if (f->size >= 9 && f->data[7] == 0 && f->data[8] == '{') {
        read_safetensors(r, f);
    } else {
        read_model(r, path);
    }
    find_arena(r);
}

/* ---- as JSON ---- */

static cJSON *json_list(const kn_io *list, int n)
{
    cJSON *array = cJSON_CreateArray();
    for (int i = 0; i < n; i++) {
        cJSON *io = cJSON_CreateObject();
        cJSON_AddStringToObject(io, "name", list[i].name);
        cJSON_AddStringToObject(io, "type", kn_dtype_name(list[i].type));
        cJSON_AddItemToObject(io, "shape", kn_cli_json_shape(list[i].dims, list[i].rank));
        if (list[i].alias) {
            cJSON_AddStringToObject(io, "aliases", list[i].alias);
        }
        cJSON_AddItemToArray(array, io);
    }
    return array;
}

static void print_json(const kn_report *r)
{
    cJSON *json = cJSON_CreateObject(), *ops = cJSON_CreateObject();
    for (int i = 0; i < r->nops; i++) {
        cJSON_AddNumberToObject(ops, r->ops[i].name, r->ops[i].count);
    }
    cJSON_AddStringToObject(json, "kind", r->kind);
    cJSON_AddItemToObject(json, "inputs", json_list(r->inputs, r->ninputs));
    cJSON_AddItemToObject(json, "outputs", json_list(r->outputs, r->noutputs));
    cJSON_AddItemToObject(json, "ops", ops);
    cJSON_AddNumberToObject(json, "parameters", (double)r->parameters);
    cJSON_AddNumberToObject(json, "weight_bytes", (double)r->weight_bytes);
    cJSON_AddNumberToObject(json, "bits_per_weight", bits_per_weight(r));
    if (r->arena_bytes < 0) {
        cJSON_AddNullToObject(json, "arena_bytes");
    } else {
        cJSON_AddNumberToObject(json, "arena_bytes", (double)r->arena_bytes);
    }
    kn_cli_print_json(r->cli, json);
}

/* ---- for people ---- */

static void print_list(const kn_report *r, const char *what, const kn_io *list, int n)
{
    for (int i = 0; i < n; i++) {
        kn_str s = kn_str_make(r->cli->arena);
        for (int k = 0; k < list[i].rank; k++) {
            kn_putf(&s, "%s%s", k ? ", " : "", list[i].dims[k]);
        }
        printf("  %-8s %s: %s[%s]%s%s\n", what, list[i].name, kn_dtype_name(list[i].type),
               kn_str_get(&s), list[i].alias ? ", updates " : "",
               list[i].alias ? list[i].alias : "");
    }
}

static void print_ops(const kn_report *r)
{
    int total = 0;
    for (int i = 0; i < r->nops; i++) {
        total += r->ops[i].count;
    }
    printf("  %-8s %d", "ops", total);
    for (int i = 0; i < r->nops; i++) {
        printf("%s %s %d", i ? "," : ":", r->ops[i].name, r->ops[i].count);
    }
    puts("");
}

static void print_weights(const kn_report *r)
{
    printf("  %-8s %lld parameters, %lld bytes", "weights", (long long)r->parameters,
           (long long)r->weight_bytes);
    if (r->parameters) {
        printf(", %.2f bits each:", bits_per_weight(r));
    }
    for (int t = 0; t < KN_DTYPE_COUNT; t++) {
        if (r->elements[t]) {
            printf(" %s %lld", kn_dtype_name((kn_dtype)t), (long long)r->elements[t]);
        }
    }
    puts("");
}

static void print_memory(const kn_report *r)
{
    if (r->arena_bytes < 0) {
        return;
    }
    printf("  %-8s %lld bytes of workspace", "memory", (long long)r->arena_bytes);
    for (int i = 0; i < r->ndims; i++) {
        printf("%s %s %lld", i ? "," : " at", r->dims[i].name,
               (long long)usual_size(r, &r->dims[i]));
    }
    puts("");
}

static void print_report(const kn_report *r)
{
    printf("%s: %s%s%s\n", r->cli->files[0], r->kind, *r->name ? ", " : "", r->name);
    print_list(r, "input", r->inputs, r->ninputs);
    print_list(r, r->ninputs || r->nops ? "output" : "tensor", r->outputs, r->noutputs);
    for (int i = 0; i < r->ndims; i++) {
        printf("  %-8s %s in %lld:%lld\n", "size", r->dims[i].name, (long long)r->dims[i].lo,
               (long long)r->dims[i].hi);
    }
    if (r->nops) {
        print_ops(r);
    }
    print_weights(r);
    print_memory(r);
}

void kn_verb_inspect(kn_cli *c)
{
    kn_report r = {.cli = c, .name = ""};
    if (c->nfiles != 1) {
        kn_cli_usage(c, "inspect needs one FILE");
    }
    read_file(&r, c->files[0]);
    if (c->json) {
        print_json(&r);
    } else if (!c->quiet) {
        print_report(&r);
    }
}
