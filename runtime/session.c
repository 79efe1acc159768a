/* One caller's use of a program: shapes are bound to sizes, outputs and workspace are found or
 * grown, the engine runs. */
#include <stdlib.h>

#include "runtime/program.h"
#include "runtime/shape.h"
#include "support/dtype.h"

enum { ALIGNMENT = 64 };

/* Memory that grows, never shrinks. */
typedef struct {
    void *data;
    size_t capacity;
} kn_pool;

typedef struct {
    bool given;
    int64_t dims[KN_MAX_RANK];
    const void *data;
    size_t bytes;
} kn_session_input;

typedef struct {
    void *user; /* the caller's memory, or NULL */
    size_t user_bytes;
    kn_pool own;
    int64_t dims[KN_MAX_RANK];
    kn_span span;
} kn_session_output;

struct kn_session {
    kn_ctx *ctx;
    const kn_program *program;
    kn_session_input *inputs;
    kn_session_output *outputs; /* the hidden one for computed sizes, too */
    int noutputs;
    int nsizes;    /* dims, then computed */
    kn_dim *names; /* of all of them */
    int64_t *sizes;
    bool *set, *bound;
    kn_pool workspace;
    bool has_run;
};

/* ---- life ---- */

static void *allocate(kn_ctx *ctx, size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p) {
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory");
    }
    return p;
}

void kn_session_destroy(kn_session *s)
{
    if (!s) {
        return;
    }
    for (int i = 0; s->outputs && i < s->noutputs; i++) {
        free(s->outputs[i].own.data);
    }
    free(s->workspace.data);
    free(s->inputs);
    free(s->outputs);
    free(s->names);
    free(s->sizes);
    free(s->set);
    free(s->bound);
    free(s);
}

typedef struct {
    kn_ctx *ctx;
    const kn_program *program;
    kn_session *session;
} kn_creation;

static void create(void *env)
{
    kn_creation *c = env;
    const kn_program *p = c->program;
    kn_session *s = c->session = allocate(c->ctx, 1, sizeof *s);
    s->ctx = c->ctx;
    s->program = p;
    s->noutputs = p->noutputs + (p->ncomputed > 0);
    s->nsizes = p->ndims + p->ncomputed;
    s->inputs = allocate(c->ctx, (size_t)p->ninputs, sizeof *s->inputs);
    s->outputs = allocate(c->ctx, (size_t)s->noutputs, sizeof *s->outputs);
    s->names = allocate(c->ctx, (size_t)s->nsizes, sizeof *s->names);
    s->sizes = allocate(c->ctx, (size_t)s->nsizes, sizeof *s->sizes);
    s->set = allocate(c->ctx, (size_t)s->nsizes, sizeof *s->set);
    s->bound = allocate(c->ctx, (size_t)s->nsizes, sizeof *s->bound);
    for (int i = 0; i < s->nsizes; i++) {
        s->names[i] = i < p->ndims ? p->dims[i] : p->computed[i - p->ndims];
    }
}

kn_status kn_session_create(kn_ctx *ctx, const kn_program *program, kn_session **out)
{
    if (!kn_given(ctx, out, "out")) {
        return KN_USAGE;
    }
    *out = NULL;
    if (!kn_given(ctx, program, "program")) {
        return KN_USAGE;
    }
    kn_creation c = {ctx, program, NULL};
    kn_status status = kn_protect(ctx, create, &c);
    if (status != KN_OK) {
        kn_session_destroy(c.session);
        c.session = NULL;
    }
    *out = c.session;
    return status;
}

/* ---- inputs ---- */

static kn_status usage(kn_session *s, const char *where, const char *message)
{
    kn_error(s->ctx, KN_USAGE, (kn_loc){.where = kn_intern(s->ctx, where)}, "%s", message);
    return KN_USAGE;
}

kn_status kn_session_set_input(kn_session *s, int i, kn_dtype type, int rank, const int64_t *dims,
                               const void *data)
{
    const kn_io *io = s ? kn_program_input(s->program, i) : NULL;
    if (!io) {
        return s ? usage(s, "set_input", "there is no such input") : KN_USAGE;
    }
    if (type != io->type || rank != io->rank) {
        kn_error(s->ctx, KN_USAGE, (kn_loc){.where = kn_intern(s->ctx, io->name)},
                 "expected %s of rank %d, found %s of rank %d", kn_dtype_name(io->type), io->rank,
                 kn_dtype_name(type), rank);
        return KN_USAGE;
    }
    if (rank > 0 && !kn_given(s->ctx, dims, "dims")) {
        return KN_USAGE;
    }
    kn_session_input *in = &s->inputs[i];
    int64_t count = 1;
    in->given = false;
    for (int k = 0; k < rank; k++) {
        in->dims[k] = dims[k];
        if (dims[k] < 0 || __builtin_mul_overflow(count, dims[k], &count)) {
            return usage(s, io->name, "a dimension is negative or too large");
        }
    }
    int64_t bytes = kn_dtype_bytes(type, count);
    if (bytes < 0) {
        return usage(s, io->name, "the input is too large");
    }
    if (bytes > 0 && !kn_given(s->ctx, data, "data")) {
        return KN_USAGE;
    }
    in->data = data;
    in->bytes = (size_t)bytes;
    in->given = true;
    return KN_OK;
}

kn_status kn_session_set_output(kn_session *s, int i, void *data, size_t bytes)
{
    if (!s) {
        return KN_USAGE;
    }
    if (!kn_program_output(s->program, i)) {
        return usage(s, "set_output", "there is no such output");
    }
    s->outputs[i].user = data;
    s->outputs[i].user_bytes = bytes;
    return KN_OK;
}

kn_status kn_session_set_dim(kn_session *s, const char *name, int64_t value)
{
    if (!s || !kn_given(s->ctx, name, "name")) {
        return KN_USAGE;
    }
    int i = kn_shape_name(name, s->program->dims, s->program->ndims);
    if (i < 0) {
        return usage(s, name, "there is no such dimension");
    }
    s->sizes[i] = value;
    s->set[i] = true;
    return KN_OK;
}

/* ---- binding ---- */

static kn_loc at(const kn_session *s, const char *name)
{
    return (kn_loc){.where = kn_intern(s->ctx, name)};
}

/* Dimensions that are a size's name give its value. */
static void bind_names(kn_session *s)
{
    const kn_program *p = s->program;
    memcpy(s->bound, s->set, (size_t)s->nsizes * sizeof *s->bound);
    for (int i = 0; i < p->ninputs; i++) {
        const kn_io *io = &p->inputs[i];
        if (!s->inputs[i].given) {
            kn_raise(s->ctx, KN_USAGE, at(s, io->name), "the input is not set");
        }
        for (int k = 0; k < io->rank; k++) {
            int size = kn_shape_name(io->dims[k], p->dims, p->ndims);
            int64_t value = s->inputs[i].dims[k];
            if (size >= 0 && s->bound[size] && s->sizes[size] != value) {
                kn_raise(s->ctx, KN_USAGE, at(s, io->name),
                         "dimension %d: %s is %lld here and %lld before", k, io->dims[k],
                         (long long)value, (long long)s->sizes[size]);
            }
            if (size >= 0) {
                s->sizes[size] = value;
                s->bound[size] = true;
            }
        }
    }
}

static void check_sizes(kn_session *s)
{
    for (int i = 0; i < s->program->ndims; i++) {
        const kn_dim *d = &s->program->dims[i];
        if (!s->bound[i]) {
            kn_raise(s->ctx, KN_USAGE, at(s, d->name), "no input gives this dimension: set it");
        }
        if (s->sizes[i] < d->lo || s->sizes[i] > d->hi) {
            kn_raise(s->ctx, KN_USAGE, at(s, d->name), "expected %lld to %lld, found %lld",
                     (long long)d->lo, (long long)d->hi, (long long)s->sizes[i]);
        }
    }
}

static void check_inputs(kn_session *s)
{
    const kn_program *p = s->program;
    for (int i = 0; i < p->ninputs; i++) {
        const kn_io *io = &p->inputs[i];
        for (int k = 0; k < io->rank; k++) {
            int64_t want;
            if (!kn_shape_eval(io->dims[k], p->dims, s->sizes, p->ndims, &want) ||
                want != s->inputs[i].dims[k]) {
                kn_raise(s->ctx, KN_USAGE, at(s, io->name), "dimension %d: expected %s, found %lld",
                         k, io->dims[k], (long long)s->inputs[i].dims[k]);
            }
        }
    }
}

/* ---- memory ---- */

static void *grow(kn_session *s, kn_pool *pool, size_t bytes)
{
    if (bytes > pool->capacity || !pool->data) {
        free(pool->data);
        pool->capacity = 0;
        void *data = NULL;
        if (bytes > SIZE_MAX - 2 * ALIGNMENT ||
            posix_memalign(&data, ALIGNMENT, bytes + ALIGNMENT) != 0) {
            pool->data = NULL;
            kn_raise(s->ctx, KN_ENVIRONMENT, kn_loc_none(), "out of memory: %zu bytes", bytes);
        }
        pool->data = data;
        pool->capacity = bytes;
    }
    return pool->data;
}

/* The dims of an output by the texts given, and its bytes. */
static size_t output_bytes(kn_session *s, const kn_io *io, const char *const *texts, int64_t *dims)
{
    int64_t count = 1;
    for (int k = 0; k < io->rank; k++) {
        if (!kn_shape_eval(texts[k], s->names, s->sizes, s->nsizes, &dims[k]) || dims[k] < 0 ||
            __builtin_mul_overflow(count, dims[k], &count)) {
            kn_raise(s->ctx, KN_USAGE, at(s, io->name),
                     "dimension %d, %s, cannot be had at these sizes", k, io->dims[k]);
        }
    }
    int64_t bytes = kn_dtype_bytes(io->type, count);
    if (bytes < 0) {
        kn_raise(s->ctx, KN_USAGE, at(s, io->name), "the output is too large");
    }
    return (size_t)bytes;
}

static void *aliased_input(const kn_session *s, const kn_io *io)
{
    for (int i = 0; io->alias && i < s->program->ninputs; i++) {
        if (strcmp(s->program->inputs[i].name, io->alias) == 0) {
            return (void *)(uintptr_t)s->inputs[i].data;
        }
    }
    return NULL;
}

static void find_outputs(kn_session *s)
{
    const kn_program *p = s->program;
    for (int i = 0; i < p->noutputs; i++) {
        kn_session_output *o = &s->outputs[i];
        const char *const *texts = p->bounds ? p->bounds[i] : p->outputs[i].dims;
        size_t bytes = output_bytes(s, &p->outputs[i], texts, o->dims);
        void *data = aliased_input(s, &p->outputs[i]);
        if (!data && o->user) {
            if (o->user_bytes < bytes) {
                kn_raise(s->ctx, KN_USAGE, at(s, p->outputs[i].name),
                         "the memory given has %zu bytes, %zu are needed", o->user_bytes, bytes);
            }
            data = o->user;
        }
        o->span = (kn_span){data ? data : grow(s, &o->own, bytes), bytes};
    }
    if (p->ncomputed) {
        kn_session_output *o = &s->outputs[p->noutputs];
        size_t bytes = (size_t)p->ncomputed * sizeof(int64_t);
        o->span = (kn_span){grow(s, &o->own, bytes), bytes};
    }
}

/* ---- running ---- */

static void run(void *env)
{
    kn_session *s = env;
    const kn_program *p = s->program;
    s->has_run = false;
    bind_names(s);
    check_sizes(s);
    check_inputs(s);
    find_outputs(s);
    int64_t bytes = p->engine.workspace_bytes(p->engine.env, s->sizes);
    if (bytes < 0) {
        kn_raise(s->ctx, KN_USAGE, kn_loc_none(), "%s: too much memory is needed at these sizes",
                 p->name);
    }
    void *workspace = grow(s, &s->workspace, (size_t)bytes);
    kn_arena *scratch = kn_arena_create(s->ctx);
    kn_span *io = KN_ARRAY(scratch, kn_span, p->ninputs + s->noutputs + 1);
    for (int i = 0; i < p->ninputs; i++) {
        io[i] = (kn_span){(void *)(uintptr_t)s->inputs[i].data, s->inputs[i].bytes};
    }
    for (int i = 0; i < s->noutputs; i++) {
        io[p->ninputs + i] = s->outputs[i].span;
    }
    p->engine.run(p->engine.env, s->ctx, io, s->sizes, workspace);
    kn_release(s->ctx, scratch);
    if (p->ncomputed) {
        memcpy(s->sizes + p->ndims, s->outputs[p->noutputs].span.data,
               (size_t)p->ncomputed * sizeof(int64_t));
        for (int i = 0; i < p->noutputs; i++) {
            output_bytes(s, &p->outputs[i], p->outputs[i].dims, s->outputs[i].dims);
        }
    }
    s->has_run = true;
}

kn_status kn_session_run(kn_session *s)
{
    return s ? kn_protect(s->ctx, run, s) : KN_USAGE;
}

kn_status kn_session_get_output(kn_session *s, int i, kn_dtype *type, int *rank, int64_t *dims,
                                const void **data)
{
    if (!s || !kn_given(s->ctx, type, "type") || !kn_given(s->ctx, rank, "rank") ||
        !kn_given(s->ctx, dims, "dims") || !kn_given(s->ctx, data, "data")) {
        return KN_USAGE;
    }
    const kn_io *io = kn_program_output(s->program, i);
    if (!io || !s->has_run) {
        return usage(s, "get_output", io ? "nothing has run" : "there is no such output");
    }
    *type = io->type;
    *rank = io->rank;
    memcpy(dims, s->outputs[i].dims, (size_t)io->rank * sizeof *dims);
    *data = s->outputs[i].span.data;
    return KN_OK;
}
