/* The model that a verb works on, and what else verbs share. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/kiln_file.h"
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
    return (kn_compile_options){.target = c->target,
                                .level = c->level,
                                .via = c->via,
                                .dump_ir = c->dump_ir,
                                .dump_dir = c->dump_dir,
                                .schedule = c->schedule};
}

bool kn_cli_is_kiln(kn_cli *c, const char *path)
{
    kn_file *f = kn_file_map(c->ctx, path);
    bool is = kn_kiln_detect(f);
    kn_file_close(c->ctx, f);
    return is;
}

/* What was chosen when the file was compiled. */
static void refuse_choices(kn_cli *c)
{
    const char *flag = c->via != KN_VIA_DEFAULT ? "--via"
                       : c->schedule            ? "--schedule"
                       : c->target              ? "--target"
                       : c->dump_ir             ? "--dump-ir"
                                                : c->level_flag;
    if (flag) {
        kn_cli_usage(c, "%s: a .kiln file holds native code", flag);
    }
}

static kn_program *load(kn_cli *c)
{
    kn_program *p;
    refuse_choices(c);
    kn_cli_require(c, kn_program_load(c->ctx, c->files[0], &p));
    return p;
}

kn_program *kn_cli_program(kn_cli *c)
{
    if (kn_cli_is_kiln(c, c->files[0])) {
        return load(c);
    }
    kn_import_options import = kn_cli_import_options(c);
    kn_compile_options compile = kn_cli_compile_options(c);
    kn_model *m = kn_driver_import(c->ctx, c->files[0], &import);
    kn_program *p = kn_driver_program(m, &compile);
    kn_driver_release(m);
    return p;
}

static void end_session(void *session)
{
    kn_session_destroy(session);
}

kn_session *kn_cli_session(kn_cli *c, const kn_program *p)
{
    kn_session *s;
    kn_cli_require(c, kn_session_create(c->ctx, p, &s));
    kn_defer(c->ctx, end_session, s);
    return s;
}

/* ---- JSON, time ---- */

void kn_cli_print_json(kn_cli *c, struct cJSON *object)
{
    char *text = cJSON_Print(object);
    cJSON_Delete(object);
    if (!text) {
        kn_raise(c->ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    }
    puts(text);
    cJSON_free(text);
}

struct cJSON *kn_cli_json_shape(const char *const *dims, int rank)
{
    cJSON *shape = cJSON_CreateArray();
    for (int i = 0; i < rank; i++) {
        char *end;
        double number = strtod(dims[i], &end);
        cJSON_AddItemToArray(shape,
                             *end ? cJSON_CreateString(dims[i]) : cJSON_CreateNumber(number));
    }
    return shape;
}

double kn_cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
