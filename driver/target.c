/* Targets by name: a preset that the library carries, or a file. */
#include "driver/driver.h"

static bool is_file(const char *target)
{
    size_t n = strlen(target);
    return strchr(target, '/') || (n > 5 && strcmp(target + n - 5, ".json") == 0);
}

const kn_target *kn_target_find(kn_arena *a, const char *name)
{
    kn_ctx *ctx = kn_arena_ctx(a);
    if (is_file(name)) {
        kn_file *f = kn_file_map(ctx, name);
        const kn_target *t = kn_target_parse(a, f->path, (const char *)f->data, f->size);
        kn_file_close(ctx, f);
        return t;
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
