/* kiln compile MODEL -o OUT: ahead of time, to files. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "tools/kiln/kiln.h"

static const struct {
    const char *name;
    kn_emit emit;
} kinds[] = {{"kiln", KN_EMIT_KILN}, {"c", KN_EMIT_C}, {"ll", KN_EMIT_LL},
             {"o", KN_EMIT_O},       {"a", KN_EMIT_A}, {"so", KN_EMIT_SO}};
enum { NKINDS = sizeof kinds / sizeof *kinds };

static int find_kind(const char *name, size_t n)
{
    for (int i = 0; i < NKINDS; i++) {
        if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, name, n) == 0) {
            return i;
        }
    }
    return -1;
}

/* What the path's ending says: the kind's number, and the path without it; -1 when it says nothing.
 */
static int kind_of_path(const kn_cli *c, const char *path, const char **stem)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
    *stem = path;
    if (!dot || dot == path || (slash && dot <= slash + 1)) {
        return -1;
    }
    int kind = find_kind(dot + 1, strlen(dot + 1));
    if (kind >= 0) {
        *stem = kn_intern_n(c->ctx, path, (size_t)(dot - path));
    }
    return kind;
}

/* Several kinds: OUT with the ending of each. */
static int list_artefacts(kn_cli *c, kn_artefact *list)
{
    const char *stem, *names = c->emit;
    int kind = kind_of_path(c, c->output, &stem), n = 0;
    if (!names && kind < 0) {
        kn_cli_usage(c, "cannot tell from `%s` what to write: --emit kiln, c, ll, o, a or so",
                     c->output);
    }
    names = names ? names : kinds[kind].name;
    bool several = strchr(names, ',');
    for (const char *at = names;; at++) {
        size_t length = strcspn(at, ",");
        kind = find_kind(at, length);
        if (length == 5 && strncmp(at, "trace", 5) == 0) {
            kn_cli_not_built(c, "--emit trace");
        }
        if (kind < 0 || n == NKINDS) {
            kn_cli_usage(c, "--emit: expected kiln, c, ll, o, a or so, found `%s`", names);
        }
        const char *path =
            several ? kn_intern_f(c->ctx, "%s.%s", stem, kinds[kind].name) : c->output;
        list[n++] = (kn_artefact){kinds[kind].emit, path};
        at += length;
        if (!*at) {
            return n;
        }
    }
}

static void print_report(kn_cli *c, const kn_emitted *e, double seconds)
{
    if (c->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "seconds", seconds);
        cJSON_AddNumberToObject(json, "kernels", e->kernels);
        cJSON_AddItemToObject(json, "files", cJSON_CreateStringArray(e->files, e->nfiles));
        kn_cli_print_json(c, json);
        return;
    }
    if (c->quiet) {
        return;
    }
    for (int i = e->nfiles; i-- > 0;) {
        printf("%s%s", e->files[i], i ? ", " : ": ");
    }
    bool small = e->weight_bytes < 1000000;
    printf("%d kernel%s, %.*f %s of weights, %.2f s\n", e->kernels, e->kernels == 1 ? "" : "s",
           small ? 0 : 1, (small ? 1 : 1e-6) * (double)e->weight_bytes, small ? "bytes" : "MB",
           seconds);
}

void kn_verb_compile(kn_cli *c)
{
    kn_artefact list[NKINDS];
    if (c->nfiles != 1 || !c->output) {
        kn_cli_usage(c, "compile needs one MODEL and -o OUT");
    }
    int n = list_artefacts(c, list);
    if (kn_cli_is_kiln(c, c->files[0])) {
        kn_raise(c->ctx, KN_INVALID, (kn_loc){.file = c->files[0]},
                 "compiled already: a .kiln file");
    }
    double start = kn_cli_now();
    kn_import_options import = kn_cli_import_options(c);
    kn_compile_options compile = kn_cli_compile_options(c);
    kn_model *m = kn_driver_import(c->ctx, c->files[0], &import);
    kn_emitted e = kn_driver_emit(c->arena, m, &compile, list, n);
    kn_driver_release(m);
    print_report(c, &e, kn_cli_now() - start);
}
