/* A module as C: NAME.c with one static function a function of the module and the entry, which is
   main's body, and NAME.h, which tells the caller what to pass. The same module gives the same
   bytes. */
#include "codegen/c_internal.h"

#include <inttypes.h>

/* ---- The parameters of main by what they are for ---- */

typedef enum { SIZE, INPUT, OUTPUT, WEIGHT } role;

static role role_of(const kn_param *p)
{
    switch (p->mode) {
    case KN_PARAM_SCALAR: return SIZE;
    case KN_PARAM_IN:
    case KN_PARAM_INOUT: return INPUT;
    case KN_PARAM_OUT: return OUTPUT;
    case KN_PARAM_CONST: return WEIGHT;
    }
    return INPUT;
}

/* The enumerators by parameter, and those of the counts. */
typedef struct {
    const kn_func *main;
    const char **names;
    const char *size_count, *io_count, *weight_count;
    const char *run, *workspace_bytes, *bind_weights, *weights_bytes;
    const kn_cg_weight *weights;
    int nweights;
    int64_t file_bytes;
} entry;

static void name_entry(c_emitter *c, entry *e)
{
    static const char *const middles[] = {"size_", "io_", "io_", "weight_"};
    e->run = kn_c_global(c, "", "run");
    e->workspace_bytes = kn_c_global(c, "", "workspace_bytes");
    e->bind_weights = kn_c_global(c, "", "bind_weights");
    e->weights_bytes = kn_c_global(c, "", "weights_bytes");
    e->size_count = kn_c_global(c, "size_", "count");
    e->io_count = kn_c_global(c, "io_", "count");
    e->weight_count = kn_c_global(c, "weight_", "count");
    e->names = KN_ARRAY(c->arena, const char *, e->main->nparams);
    for (int i = 0; i < e->main->nparams; i++)
        e->names[i] =
            kn_c_global(c, middles[role_of(&e->main->params[i])], e->main->params[i].buffer.name);
}

static void place_weights(c_emitter *c, entry *e)
{
    e->weights = kn_cg_layout(c->arena, c->facts.module, &e->nweights);
    if (c->options->weights)
        e->weights = c->options->weights;
    for (int i = 0; i < e->nweights; i++) {
        int64_t end = e->weights[i].offset + e->weights[i].bytes;
        e->file_bytes = end > e->file_bytes ? end : e->file_bytes;
    }
}

/* ---- The header ---- */

/* name: f32[seq, 576] */
static const char *buffer_text(const c_emitter *c, const kn_buffer *b)
{
    kn_str s = kn_str_make(c->arena);
    kn_putf(&s, "%s: %s[", b->name, kn_dtype_name(b->type));
    for (int i = 0; i < b->rank; i++) {
        kn_put(&s, i ? ", " : "");
        kn_expr_print(&s, b->shape[i], false);
    }
    kn_put(&s, "]");
    return kn_str_get(&s);
}

static const char *param_text(const c_emitter *c, const kn_param *p)
{
    kn_str s = kn_str_make(c->arena);
    if (p->mode == KN_PARAM_SCALAR) {
        kn_put(&s, p->buffer.name);
        if (p->lo != INT64_MIN || p->hi != INT64_MAX)
            kn_putf(&s, " in %" PRId64 ":%" PRId64, p->lo, p->hi);
        return kn_str_get(&s);
    }
    kn_put(&s, buffer_text(c, &p->buffer));
    if (p->mode == KN_PARAM_OUT && p->alias)
        kn_putf(&s, ", at the address of %s, which it updates", p->alias);
    else if (p->mode == KN_PARAM_OUT)
        kn_put(&s, ", output");
    else if (p->mode == KN_PARAM_INOUT)
        kn_put(&s, ", updated in place");
    return kn_str_get(&s);
}

/* One enumerator a parameter of two roles, in this order. */
static void put_enum(const c_emitter *c, kn_str *out, const entry *e, role first, role second,
                     const char *count)
{
    int n = 0, weight = 0;
    kn_put(out, "enum {\n");
    for (int pass = 0; pass < 1 + (first != second); pass++) {
        for (int i = 0; i < e->main->nparams; i++) {
            const kn_param *p = &e->main->params[i];
            if (role_of(p) != (pass ? second : first))
                continue;
            kn_putf(out, "    %s = %d, /* %s", e->names[i], n++, param_text(c, p));
            if (first == WEIGHT)
                kn_putf(out, ", %" PRId64 " bytes at %" PRId64, e->weights[weight].bytes,
                        e->weights[weight].offset);
            weight++;
            kn_put(out, " */\n");
        }
    }
    kn_putf(out, "    %s = %d\n};\n\n", count, n);
}

static const char *const run_params[] = {"npu_context *npu", "void *const *io",
                                         "const void *const *weights", "const int64_t *sizes",
                                         "void *workspace"};
enum { RUN_PARAMS = sizeof run_params / sizeof run_params[0] };

static void put_prototypes(const c_emitter *c, kn_str *out, const entry *e)
{
    kn_put(out,
           "/* Bytes of workspace that a run needs; -1 when a size is out of its bounds. */\n");
    kn_putf(out, "int64_t %s(const int64_t *sizes);\n\n", e->workspace_bytes);
    kn_put(out, "/* Fills in the addresses of the weights, given that of the side file's first "
                "byte, aligned to 64. */\n");
    kn_putf(out, "void %s(const void *base, const void **weights);\n\n", e->bind_weights);
    kn_put(out, "/* NPU_OK, or NPU_FAILED with npu->message. See kiln/npu.h. */\n");
    kn_c_put_list(out, 0, kn_format(c->arena, "npu_status %s(", e->run), run_params, RUN_PARAMS,
                  ");\n\n");
}

static void put_header(c_emitter *c, kn_str *out, const entry *e)
{
    const char *guard = kn_format(c->arena, "%s_H", c->options->prefix);
    const char *file = c->options->weights_file;
    kn_putf(out,
            "/* Model %s%s%s, generated by Kiln. */\n#ifndef %s\n#define %s\n\n#include "
            "\"kiln/npu.h\"\n\n",
            c->facts.module->name, c->facts.module->target ? " for " : "",
            c->facts.module->target ? c->facts.module->target : "", guard, guard);
    kn_put(out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n/* Sizes, in the order of `sizes`: "
                "both bounds are allowed. */\n");
    put_enum(c, out, e, SIZE, SIZE, e->size_count);
    kn_put(out, "/* Inputs and outputs, in the order of `io`. */\n");
    put_enum(c, out, e, INPUT, OUTPUT, e->io_count);
    kn_put(out, "/* Weights, in the order of `weights`, and where they lie in the side file ");
    kn_putf(out, "%s. */\n",
            file ? file : kn_format(c->arena, "%s_weights.bin", c->options->prefix));
    put_enum(c, out, e, WEIGHT, WEIGHT, e->weight_count);
    kn_putf(out, "/* Bytes of the side file. */\n#define %s INT64_C(%" PRId64 ")\n\n",
            e->weights_bytes, e->file_bytes);
    put_prototypes(c, out, e);
    kn_put(out, "#ifdef __cplusplus\n}\n#endif\n#endif\n");
}

/* ---- The entry ---- */

/* const int64_t s = sizes[NAME_size_s]; */
static int put_size(c_emitter *c, const entry *e, int i)
{
    const kn_param *p = &e->main->params[i];
    kn_range range = {p->lo, p->hi};
    if (p->buffer.type != KN_INDEX)
        kn_cg_fail(&c->facts, KN_UNSUPPORTED, "`%s`, a parameter of main that is no index",
                   p->buffer.name);
    c_decl d = kn_c_decl_begin(c);
    kn_c_read_context(c, "sizes");
    int name = kn_c_declare(c, p->buffer.name, NULL, KN_INDEX, C_SCALAR, &range);
    kn_c_line(c, "const int64_t %s = sizes[%s];", c->scope.at[name].c, e->names[i]);
    kn_c_decl_end(c, d, name);
    return name;
}

/* Declares the sizes; where one is out of its bounds, `otherwise` is returned, or the run fails
 * when it is NULL. */
static void put_sizes(c_emitter *c, const entry *e, const char *otherwise)
{
    for (int i = 0; i < e->main->nparams; i++) {
        const kn_param *p = &e->main->params[i];
        if (role_of(p) != SIZE)
            continue;
        int name = put_size(c, e, i);
        const char *outside = kn_c_outside_text(c, c->scope.at[name].c, p);
        if (outside[0] == '\0')
            continue;
        kn_c_read(c, name);
        if (otherwise) {
            kn_c_line(c, "if (%s)", outside);
            kn_c_line(c, "    return %s;", otherwise);
            continue;
        }
        kn_c_put_failure(c, outside,
                         kn_format(c->arena, "size %s is out of its bounds %" PRId64 ":%" PRId64,
                                   p->buffer.name, p->lo, p->hi));
    }
}

static void put_workspace_bytes(c_emitter *c, kn_str *out, const entry *e)
{
    kn_str body = kn_str_make(c->arena), value = kn_str_make(c->arena);
    c->out = &body;
    c->level = 1;
    c->uses.n = 0;
    c_mark m = kn_c_open(c);
    int sizes = kn_c_declare(c, "sizes", NULL, KN_INDEX, C_CONTEXT, NULL);
    c_mark inner = kn_c_open(c);
    put_sizes(c, e, "-1");
    if (e->main->workspace)
        kn_c_put(c, &value, kn_cg_fold(c->arena, e->main->workspace));
    kn_c_line(c, "return %s;", e->main->workspace ? kn_str_get(&value) : "0");
    kn_c_close(c, inner);
    kn_putf(out, "int64_t %s(const int64_t *sizes)\n{\n", e->workspace_bytes);
    kn_c_put_unused(c, out, sizes, sizes + 1);
    kn_putf(out, "%s}\n\n", kn_str_get(&body));
    kn_c_close(c, m);
}

static void put_bind_weights(kn_str *out, const entry *e)
{
    int n = 0;
    kn_putf(out, "void %s(const void *base, const void **weights)\n{\n", e->bind_weights);
    kn_put(out,
           e->nweights ? "    const char *at = base;\n" : "    (void)base;\n    (void)weights;\n");
    for (int i = 0; i < e->main->nparams; i++) {
        if (role_of(&e->main->params[i]) != WEIGHT)
            continue;
        kn_putf(out, "    weights[%s] = at", e->names[i]);
        kn_putf(out, e->weights[n].offset ? " + %" PRId64 ";\n" : ";\n", e->weights[n].offset);
        n++;
    }
    kn_put(out, "}\n\n");
}

/* const float *const x = io[NAME_io_x]; */
static void put_buffer(c_emitter *c, const entry *e, int i)
{
    const kn_param *p = &e->main->params[i];
    const char *from = role_of(p) == WEIGHT ? "weights" : "io";
    bool readonly = p->mode == KN_PARAM_IN || p->mode == KN_PARAM_CONST;
    c_decl d = kn_c_decl_begin(c);
    kn_c_read_context(c, from);
    int name = kn_c_declare(c, p->buffer.name, &p->buffer, p->buffer.type, C_POINTER, NULL);
    c->scope.at[name].readonly = readonly;
    kn_c_line(c, "%s%s *const %s = %s[%s];", readonly ? "const " : "",
              kn_c_element_type(p->buffer.type), c->scope.at[name].c, from, e->names[i]);
    kn_c_decl_end(c, d, name);
}

/* An update in place is one only when both have one address. */
static void put_alias_check(c_emitter *c, const entry *e, int i)
{
    const kn_param *p = &e->main->params[i];
    for (int j = 0; p->alias && j < e->main->nparams; j++) {
        if (strcmp(e->main->params[j].buffer.name, p->alias) != 0)
            continue;
        kn_c_read_context(c, "io");
        kn_c_put_failure(
            c, kn_format(c->arena, "io[%s] != io[%s]", e->names[i], e->names[j]),
            kn_format(c->arena, "%s updates %s: both take one address", p->buffer.name, p->alias));
    }
}

static void put_run(c_emitter *c, kn_str *out, const entry *e)
{
    static const char *const names[RUN_PARAMS] = {"npu", "io", "weights", "sizes", "workspace"};
    kn_str body = kn_str_make(c->arena);
    c->out = &body;
    c->level = 1;
    c->uses.n = 0;
    c_mark m = kn_c_open(c);
    for (int i = 0; i < RUN_PARAMS; i++)
        kn_c_declare(c, names[i], NULL, KN_INDEX, C_CONTEXT, NULL);
    c_mark inner = kn_c_open(c);
    put_sizes(c, e, NULL);
    for (int i = 0; i < e->main->nparams; i++) {
        if (role_of(&e->main->params[i]) != SIZE)
            put_buffer(c, e, i);
    }
    for (int i = 0; i < e->main->nparams; i++)
        put_alias_check(c, e, i);
    kn_c_put_statements(c, &e->main->body);
    kn_c_close(c, inner);
    kn_c_put_list(out, 0, kn_format(c->arena, "npu_status %s(", e->run), run_params, RUN_PARAMS,
                  ")\n{\n");
    kn_c_put_unused(c, out, 0, RUN_PARAMS);
    kn_putf(out, "%s    return NPU_OK;\n}\n", kn_str_get(&body));
    kn_c_close(c, m);
}

/* ---- The module ---- */

static void put_code(c_emitter *c, kn_str *out, const entry *e)
{
    const char *header = c->options->header;
    kn_putf(out,
            "/* Model %s%s%s, generated by Kiln. Compile with -ffp-contract=off. */\n#include "
            "\"%s\"\n\n",
            c->facts.module->name, c->facts.module->target ? " for " : "",
            c->facts.module->target ? c->facts.module->target : "",
            header ? header : kn_format(c->arena, "%s.h", c->options->prefix));
    int main = c->facts.funcs.n - 1;
    for (int i = 0; i < main; i++)
        kn_c_put_function(c, out, i);
    c->facts.func = c->facts.funcs.at[main];
    put_workspace_bytes(c, out, e);
    put_bind_weights(out, e);
    put_run(c, out, e);
}

void kn_c_module(kn_arena *a, const kn_module *m, const kn_c_options *options, kn_str *code,
                 kn_str *header)
{
    if (!kn_cg_is_prefix(options->prefix))
        kn_raise(kn_arena_ctx(a), KN_USAGE, kn_loc_none(),
                 "`%s` cannot begin the names of C functions", options->prefix);
    c_emitter c = {
        .arena = a, .facts = kn_cg_facts(a, m, "C"), .options = options, .taken = kn_map_make(a)};
    entry e = {.main = kn_module_find(m, "main")};
    name_entry(&c, &e);
    c.names = KN_ARRAY(a, const char *, c.facts.funcs.n);
    for (int i = 0; i + 1 < c.facts.funcs.n; i++)
        c.names[i] = kn_c_global(&c, "", c.facts.funcs.at[i]->func->name);
    place_weights(&c, &e);
    put_header(&c, header, &e);
    put_code(&c, code, &e);
}
