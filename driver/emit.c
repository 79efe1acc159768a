/* Compiling to files. All is written to temporary names first; when everything is there, each takes
   its own name, what belongs to a file before the file itself. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "driver/driver.h"

/* ---- the stage: files that wait for the others ---- */

typedef struct {
    const char *path, *temporary; /* the same for a device or a pipe */
} kn_staged;

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    KN_VEC(kn_staged) files;
    int done; /* of them, that many have their names */
} kn_stage;

static void drop_rest(void *arg)
{
    const kn_stage *s = arg;
    for (int i = s->done; i < s->files.n; i++) {
        if (s->files.at[i].temporary != s->files.at[i].path) {
            unlink(s->files.at[i].temporary);
            kn_diag_rename_file(s->ctx, s->files.at[i].temporary, s->files.at[i].path);
        }
    }
}

static bool is_staged(const kn_stage *s, const char *path)
{
    for (int i = 0; i < s->files.n; i++) {
        if (strcmp(s->files.at[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_special(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

/* Where to write what will be called `path`. */
static const char *stage(kn_stage *s, const char *path)
{
    struct stat st;
    kn_staged f = {.path = kn_intern(s->ctx, path)};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        kn_raise(s->ctx, KN_ENVIRONMENT, (kn_loc){.file = f.path}, "cannot write: it is a folder");
    }
    if (kn_file_is_mapped(s->ctx, path)) {
        kn_raise(s->ctx, KN_USAGE, (kn_loc){.file = f.path},
                 "would be written over, but it is being read: a model, or what belongs to one");
    }
    f.temporary =
        is_special(path) ? f.path : kn_intern_f(s->ctx, "%s.new-%ld", path, (long)getpid());
    kn_push(s->arena, &s->files, f);
    return f.temporary;
}

static void commit(kn_stage *s)
{
    for (; s->done < s->files.n; s->done++) {
        const kn_staged *f = &s->files.at[s->done];
        if (f->temporary != f->path && rename(f->temporary, f->path) != 0) {
            kn_raise(s->ctx, KN_ENVIRONMENT, (kn_loc){.file = f->path}, "cannot write: %s",
                     strerror(errno));
        }
    }
}

/* ---- one emission ---- */

typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const kn_program *program;
    const char *ops;
    kn_unit unit;
    int level;
    kn_cg_weight *layout; /* of the side file */
    int64_t weight_bytes;
    kn_stage *stage;
} kn_emission;

/* The names that belong to one path. */
typedef struct {
    const char *path, *header, *weights, *prefix;
    bool alone; /* no side files */
} kn_names;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* An identifier from a file's name. */
static const char *prefix_of(kn_arena *a, const char *name)
{
    kn_str s = kn_str_make(a);
    bool letter = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z');
    if (!letter || strcmp(name, "npu") == 0) {
        kn_put(&s, "m");
    }
    for (; *name; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9');
        kn_put_char(&s, plain ? *name : '_');
    }
    return kn_str_get(&s);
}

static kn_names names_of(const kn_emission *e, const char *path)
{
    static const char *const endings[] = {".c", ".ll", ".o", ".a", ".so"};
    size_t n = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t length = strlen(endings[i]);
        if (strlen(base_name(path)) > length &&
            strcmp(path + strlen(path) - length, endings[i]) == 0) {
            n = strlen(path) - length;
        }
    }
    const char *stem = kn_format(e->arena, "%.*s", (int)n, path);
    if (strpbrk(base_name(stem), "\"\\\n\r")) {
        kn_raise(e->ctx, KN_USAGE, (kn_loc){.file = kn_intern(e->ctx, path)},
                 "C cannot include a header of such a name");
    }
    return (kn_names){path, kn_format(e->arena, "%s.h", stem),
                      kn_format(e->arena, "%s_weights.bin", stem),
                      prefix_of(e->arena, base_name(stem)), is_special(path)};
}

/* ---- side files ---- */

static void write_weights(kn_emission *e, const char *path)
{
    static const unsigned char zeros[64];
    const kn_graph *g = e->unit.graph;
    kn_piece *pieces = KN_ARRAY(e->arena, kn_piece, 2 * g->nconsts + 1);
    int64_t at = 0;
    for (int i = 0; i < g->nconsts; i++) {
        pieces[2 * i] = (kn_piece){zeros, (size_t)(e->layout[i].offset - at)};
        pieces[2 * i + 1] = (kn_piece){g->consts[i]->data, g->consts[i]->bytes};
        at = e->layout[i].offset + e->layout[i].bytes;
    }
    kn_file_write_pieces(e->ctx, stage(e->stage, path), pieces, 2 * g->nconsts);
}

/* The C text of the unit; its header and weights go beside it. */
static kn_str write_sides(kn_emission *e, const kn_names *names)
{
    kn_str code = kn_str_make(e->arena), header = kn_str_make(e->arena);
    kn_c_options o = {.prefix = names->prefix,
                      .header = base_name(names->header),
                      .weights_file = base_name(names->weights),
                      .weights = e->layout};
    kn_c_module(e->arena, e->unit.module, &o, &code, &header);
    if (!names->alone && !is_staged(e->stage, names->header)) {
        kn_file_write(e->ctx, stage(e->stage, names->header), kn_str_get(&header), header.n);
        if (e->unit.graph->nconsts) {
            write_weights(e, names->weights);
        }
    }
    return code;
}

/* ---- the kinds ---- */

static kn_piece object(kn_emission *e, const kn_llvm_options *o)
{
    return kn_llvm_emit_object(e->arena, e->unit.module, o);
}

static void emit_native(kn_emission *e, kn_emit kind, const kn_names *names)
{
    kn_llvm_options o = {.prefix = names->prefix, .weights = e->layout, .level = e->level};
    kn_str text = kn_str_make(e->arena);
    kn_piece code = {0};
    if (kind == KN_EMIT_LL) {
        kn_llvm_emit_ir(e->arena, e->unit.module, &o, &text);
    } else {
        code = object(e, &o);
    }
    write_sides(e, names);
    const char *path = stage(e->stage, names->path);
    switch (kind) {
    case KN_EMIT_LL: kn_file_write(e->ctx, path, kn_str_get(&text), text.n); break;
    case KN_EMIT_O: kn_file_write(e->ctx, path, code.data, code.size); break;
    case KN_EMIT_A: kn_archive(e->ctx, code, path); break;
    case KN_EMIT_SO: kn_link_shared(e->ctx, code, path); break;
    case KN_EMIT_C:
    case KN_EMIT_KILN: break;
    }
}

static void emit_one(kn_emission *e, const kn_artefact *artefact)
{
    if (is_staged(e->stage, artefact->path)) {
        kn_raise(e->ctx, KN_USAGE, (kn_loc){.file = kn_intern(e->ctx, artefact->path)},
                 "would be written twice");
    }
    if (artefact->emit == KN_EMIT_KILN) {
        kn_driver_write_kiln(e->arena, e->program, &e->unit, e->ops, e->level,
                             stage(e->stage, artefact->path));
        return;
    }
    kn_names names = names_of(e, artefact->path);
    if (artefact->emit != KN_EMIT_C) {
        emit_native(e, artefact->emit, &names);
        return;
    }
    kn_str code = write_sides(e, &names);
    kn_file_write(e->ctx, stage(e->stage, names.path), kn_str_get(&code), code.n);
}

/* ---- the whole ---- */

static const char *ops_text(kn_arena *a, const kn_graph *g)
{
    kn_str s = kn_str_make(a);
    int n;
    const kn_op_tally *ops = kn_driver_count_ops(a, g, &n);
    for (int i = 0; i < n; i++) {
        kn_putf(&s, "%s%s=%d", i ? " " : "", ops[i].name, ops[i].count);
    }
    return kn_str_get(&s);
}

/* Constants of the graph are those of main, in the same order. */
static void lay_out(kn_emission *e)
{
    const kn_graph *g = e->unit.graph;
    int n;
    e->layout = kn_cg_layout(e->arena, e->unit.module, &n);
    bool same = n == g->nconsts;
    for (int i = 0; same && i < n; i++) {
        same = e->layout[i].bytes == (int64_t)g->consts[i]->bytes;
        e->weight_bytes += e->layout[i].bytes;
    }
    if (!same) {
        kn_raise(e->ctx, KN_INTERNAL, kn_loc_none(),
                 "%s: the constants of its loops are not those of its graph", g->name);
    }
}

static void require_host(kn_arena *a, const kn_compile_options *options)
{
    const kn_target *target = kn_driver_target(a, options);
    if (target) {
        kn_raise(kn_arena_ctx(a), KN_UNSUPPORTED, kn_loc_none(),
                 "target %s: files for others than host are not built yet", target->name);
    }
}

static kn_emitted report(const kn_emission *e)
{
    kn_emitted r = {.kernels = e->unit.module->nfuncs - 1,
                    .weight_bytes = e->weight_bytes,
                    .nfiles = e->stage->files.n};
    r.files = KN_ARRAY(e->arena, const char *, r.nfiles + 1);
    for (int i = 0; i < r.nfiles; i++) {
        r.files[i] = e->stage->files.at[i].path;
    }
    return r;
}

kn_emitted kn_driver_emit(kn_arena *a, kn_model *model, const kn_compile_options *options,
                          const kn_artefact *list, int n)
{
    kn_ctx *ctx = model->ctx;
    kn_emission e = {.ctx = ctx,
                     .arena = a,
                     .level = options ? options->level : 2,
                     .stage = KN_NEW(a, kn_stage)};
    require_host(a, options);
    kn_program *p = kn_driver_describe(model);
    e.program = p;
    e.ops = ops_text(a, model->graph);
    e.unit = kn_driver_lower(a, model, NULL, options);
    lay_out(&e);
    *e.stage = (kn_stage){.ctx = ctx, .arena = a};
    kn_defer(ctx, drop_rest, e.stage);
    for (int i = 0; i < n; i++) {
        emit_one(&e, &list[i]);
    }
    commit(e.stage);
    kn_release(ctx, e.stage);
    kn_program_destroy(p);
    return report(&e);
}
