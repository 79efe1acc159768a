/* What the options of a compilation may be. */
#include "driver/driver.h"

void kn_driver_check_pass(kn_ctx *ctx, const char *what, const char *name)
{
    if (kn_pass_find(name)) {
        return;
    }
    kn_arena *scratch = kn_arena_create(ctx);
    kn_str list = kn_str_make(scratch);
    for (int i = 0; i < kn_pass_count(); i++) {
        kn_putf(&list, "%s%s", i ? ", " : "", kn_pass_get(i)->name);
    }
    kn_raise(ctx, KN_USAGE, kn_loc_none(), "%s: there is no pass `%s`; there are %s", what, name,
             kn_str_get(&list));
}

void kn_driver_check_options(kn_ctx *ctx, const kn_compile_options *o)
{
    if (!o) {
        return;
    }
    if (o->level < 0 || o->level > 3) {
        kn_raise(ctx, KN_USAGE, kn_loc_none(), "expected a level of 0 to 3, found %d", o->level);
    }
    if ((int)o->via < KN_VIA_DEFAULT || o->via > KN_VIA_JIT) {
        kn_raise(ctx, KN_USAGE, kn_loc_none(), "there is no way %d to run", (int)o->via);
    }
    if (o->dump_ir && strcmp(o->dump_ir, "all") != 0) {
        kn_driver_check_pass(ctx, "--dump-ir", o->dump_ir);
    }
}
