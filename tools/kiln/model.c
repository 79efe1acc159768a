/* The model that a verb works on. */
#include "tools/kiln/kiln.h"

void kn_cli_require(kn_cli *c, kn_status status)
{
    if (status != KN_OK) {
        kn_raise_again(c->ctx, status);
    }
}

kn_import_options kn_cli_import_options(const kn_cli *c)
{
    return (kn_import_options){c->ndims, c->dims, c->nshapes, c->shapes};
}

kn_compile_options kn_cli_compile_options(const kn_cli *c)
{
    return (kn_compile_options){.target = c->target, .level = c->level, .via = c->via, .dump_ir = c->dump_ir,
                                .dump_dir = c->dump_dir};
}

kn_program *kn_cli_program(kn_cli *c)
{
    kn_import_options import = kn_cli_import_options(c);
    kn_compile_options compile = kn_cli_compile_options(c);
    kn_model *m = kn_driver_import(c->ctx, c->files[0], &import);
    kn_program *p = kn_driver_program(m, &compile);
    kn_driver_release(m);
    return p;
}
