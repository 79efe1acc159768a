/* Targets by name: a preset that the library carries, or a file. */
#include "driver/driver.h"

static bool is_file(const char *target)
{
    size_t n = strlen(target);
    return strchr(target, '/') || (n > 5 && strcmp(target + n - 5, ".json") == 0);
}

typedef struct {
    kn_arena *arena;
    const kn_file *file;
    const kn_target *target;
} kn_reading;

static void read_target(void *env)
{
    kn_reading *r = env;
    r->target =
        kn_target_parse(r->arena, r->file->path, (const char *)r->file->data, r->file->size);
}

static const kn_target *read_file(kn_arena *a, const char *path)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    kn_file *f = kn_file_map(ctx, path);
    kn_reading r = {a, f, NULL};
    kn_driver_for_file(ctx, f->path, read_target, &r);
    kn_file_close(ctx, f);
    return r.target;
}

const kn_target *kn_target_find(kn_arena *a, const char *name)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    if (is_file(name)) {
        return read_file(a, name);
    }
    const kn_preset *p = kn_preset_find(name);
    if (!p) {
        kn_raise(ctx, KN_INVALID, kn_loc_none(),
                 "there is no target `%s` (kiln targets lists them)", name);
    }
    return kn_target_parse(a, kn_intern_f(ctx, "targets/%s.json", name), (const char *)p->text,
                           *p->size);
}

const kn_target *kn_driver_target(kn_arena *a, const kn_compile_options *options)
{
    const char *name = options && options->target ? options->target : "host";
    if (strcmp(name, "host") == 0) {
        return NULL;
    }
    const kn_target *t = kn_target_find(a, name);
    return strcmp(t->name, "host") == 0 ? NULL : t;
}
