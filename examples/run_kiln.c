/* Runs a compiled model: run_kiln MODEL.kiln [NAME=SIZE ...]. Links the runtime alone:
   libkiln_runtime, libkiln_support, the C library. Inputs are filled with a ramp; each output's
   first elements are printed. Sizes that are not given are the least allowed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/runtime.h"

/* What it takes of dimensions: a number, or a size's name. */
static int64_t value_of(const kn_program *program, const char *dim, char **sizes, int nsizes)
{
    for (int i = 0; i < nsizes; i++) {
        size_t n = strlen(dim);
        if (strncmp(sizes[i], dim, n) == 0 && sizes[i][n] == '=') {
            return strtoll(sizes[i] + n + 1, NULL, 10);
        }
    }
    for (int i = 0; i < kn_program_dim_count(program); i++) {
        if (strcmp(kn_program_dim(program, i)->name, dim) == 0) {
            return kn_program_dim(program, i)->lo;
        }
    }
    return strtoll(dim, NULL, 10);
}

/* An input of f32, filled with 0, 0.01, 0.02, ... */
static float *make_input(const kn_program *program, kn_session *session, int i, char **sizes,
                         int nsizes)
{
    const kn_io *io = kn_program_input(program, i);
    int64_t dims[KN_MAX_RANK], count = 1;
    for (int k = 0; k < io->rank; k++) {
        dims[k] = value_of(program, io->dims[k], sizes, nsizes);
        count *= dims[k];
    }
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t k = 0; data && k < count; k++) {
        data[k] = 0.01f * (float)(k % 100);
    }
    kn_session_set_input(session, i, KN_F32, io->rank, dims, data);
    return data;
}

static void print_output(const kn_program *program, kn_session *session, int i)
{
    kn_dtype type;
    int rank;
    int64_t dims[KN_MAX_RANK], count = 1;
    const void *data;
    if (kn_session_get_output(session, i, &type, &rank, dims, &data) != KN_OK) {
        return;
    }
    printf("%s [", kn_program_output(program, i)->name);
    for (int k = 0; k < rank; k++) {
        printf("%s%" PRId64, k ? ", " : "", dims[k]);
        count *= dims[k];
    }
    printf("]");
    for (int64_t k = 0; type == KN_F32 && k < count && k < 4; k++) {
        printf(" %.6g", (double)((const float *)data)[k]);
    }
    printf("\n");
}

static kn_status run(const kn_program *program, kn_session *session, char **sizes, int nsizes)
{
    int n = kn_program_input_count(program);
    float **inputs = calloc((size_t)n + 1, sizeof *inputs);
    for (int i = 0; inputs && i < n; i++) {
        inputs[i] = make_input(program, session, i, sizes, nsizes);
    }
    kn_status status = kn_session_run(session);
    for (int i = 0; status == KN_OK && i < kn_program_output_count(program); i++) {
        print_output(program, session, i);
    }
    for (int i = 0; inputs && i < n; i++) {
        free(inputs[i]);
    }
    free(inputs);
    return status;
}

int main(int argc, char **argv)
{
    kn_program *program = NULL;
    kn_session *session = NULL;
    kn_ctx *ctx = kn_ctx_create();
    if (argc < 2 || !ctx) {
        fprintf(stderr, "usage: run_kiln MODEL.kiln [NAME=SIZE ...]\n");
        return KN_USAGE;
    }
    kn_status status = kn_program_load(ctx, argv[1], &program);
    if (status == KN_OK) {
        status = kn_session_create(ctx, program, &session);
    }
    if (status == KN_OK) {
        status = run(program, session, argv + 2, argc - 2);
    }
    for (int i = 0; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        fprintf(stderr, "%s: %s\n", d->where ? d->where : argv[1], d->message);
    }
    kn_session_destroy(session);
    kn_program_destroy(program);
    kn_ctx_destroy(ctx);
    return (int)status;
}
