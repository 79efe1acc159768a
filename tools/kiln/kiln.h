/* What the verbs share: the command line, models, tensors from and to files. One file a verb. */
#ifndef KN_TOOLS_KILN_H
#define KN_TOOLS_KILN_H

#include "driver/driver.h"
#include "support/dtype.h"

struct cJSON;

enum { MAX_LIST = 64 };

/* The command line, as FACE.md lists it. A verb accepts the flags that its row names (main.c). */
typedef struct {
    kn_ctx *ctx;
    kn_arena *arena;
    const char *verb;
    const char *files[MAX_LIST]; /* what is no flag */
    int nfiles;
    const char *target, *output, *emit, *schedule, *precision, *output_dir, *dump_ir, *dump_dir;
    const char *data[MAX_LIST];
    int ndata;
    const char *inputs[MAX_LIST]; /* NAME=FILE */
    int ninputs;
    kn_size dims[MAX_LIST];
    int ndims;
    struct kn_input_shape shapes[MAX_LIST];
    int nshapes;
    int level, threads;
    const char *level_flag; /* as it was given, or NULL */
    kn_via via;
    double rtol, atol;
    uint64_t seed;
    bool json, quiet, verbose;
    int result; /* exit code when nothing is raised */
} kn_cli;

_Noreturn void kn_cli_usage(kn_cli *c, const char *fmt, ...) KN_PRINTF(2, 3);
_Noreturn void kn_cli_not_built(kn_cli *c, const char *fmt, ...) KN_PRINTF(2, 3);
kn_import_options kn_cli_import_options(const kn_cli *c);
kn_compile_options kn_cli_compile_options(const kn_cli *c);
/* The one model file of the command line, compiled to run here: a .kiln file is loaded. Raises. */
kn_program *kn_cli_program(kn_cli *c);
/* Whether the file is a compiled model. Raises when it cannot be read. */
bool kn_cli_is_kiln(kn_cli *c, const char *path);
/* A status of the public API: raises again what it recorded. */
void kn_cli_require(kn_cli *c, kn_status status);

/* A session that ends with the verb, whatever happens, or at kn_release(). Raises. */
kn_session *kn_cli_session(kn_cli *c, const kn_program *p);
/* Prints a JSON object on stdout and deletes it. */
void kn_cli_print_json(kn_cli *c, struct cJSON *object);
/* "seq", 64: dimensions as numbers where they are. */
struct cJSON *kn_cli_json_shape(const char *const *dims, int rank);
double kn_cli_now(void); /* seconds */

/* ---- tensors (tensors.c) ---- */

/* Reads .npy, a TensorProto, or a .safetensors file of one tensor: the kind is read from the
 * content. */
kn_array kn_cli_read_array(kn_cli *c, const char *path);
void kn_cli_write_npy(kn_cli *c, const char *path, const kn_array *a);
/* Element i as a double (64-bit integers lose bits above 2^53), and for printing. */
double kn_cli_element(const kn_array *a, int64_t i);
int64_t kn_cli_count(const kn_array *a);
/* Sets input i of a session. */
void kn_cli_set_input(kn_cli *c, kn_session *s, int i, const kn_array *a);
kn_array kn_cli_get_output(kn_cli *c, kn_session *s, const kn_program *p, int i);

/* ---- verbs ---- */
void kn_verb_compile(kn_cli *c);
void kn_verb_run(kn_cli *c);
void kn_verb_verify(kn_cli *c);
void kn_verb_inspect(kn_cli *c);
void kn_verb_targets(kn_cli *c);

#endif
