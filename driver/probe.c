/* Made-up inputs, runs of graphs and modules on them by the interpreter, and the comparison of what
   comes out. Inputs depend on the seed, the input's number and its type alone, so that a pass may
   change everything but the signature. */
#include "driver/probe.h"

#include <float.h>
#include <math.h>

#include "support/half.h"

/* ---- made-up values ---- */

static uint64_t next_random(uint64_t *state) /* xorshift64*, Vigna 2016 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

static void put_float(unsigned char *at, kn_dtype type, double f)
{
    if (type == KN_F64) {
        memcpy(at, &f, sizeof f);
        return;
    }
    float single = (float)f;
    uint16_t half = type == KN_F16 ? kn_f32_to_f16(single) : kn_f32_to_bf16(single);
    if (type == KN_F32) {
        memcpy(at, &single, sizeof single);
    } else {
        memcpy(at, &half, sizeof half);
    }
}

/* The finite values of a float type that are furthest from zero, and nearest to it. */
static double largest(kn_dtype type)
{
    return type == KN_F64   ? DBL_MAX
           : type == KN_F32 ? (double)FLT_MAX
           : type == KN_F16 ? 65504.0
                            : 0x1.fep127;
}

static double smallest(kn_dtype type)
{
    return type == KN_F64   ? DBL_TRUE_MIN
           : type == KN_F32 ? (double)FLT_TRUE_MIN
           : type == KN_F16 ? 0x1p-24
                            : 0x1p-133;
}

/* r: 53 random bits */
static double made_float(kn_dtype type, uint64_t r, kn_probe_values values)
{
    double unit = (double)(int64_t)r / (double)(INT64_C(1) << 52) - 1.0;
    const double edges[] = {0.0, HUGE_VAL, largest(type), smallest(type)};
    if (values == KN_PROBE_PLAIN) {
        return unit;
    }
    return r % 8 ? 4 * unit : copysign(edges[r / 8 % 4], unit);
}

/* The low bits count. */
static uint64_t made_integer(kn_dtype type, uint64_t r, kn_probe_values values)
{
    if (values != KN_PROBE_EDGES) {
        return r & 3;
    }
    uint64_t top = UINT64_C(1) << (kn_dtype_bits(type) - 1);
    const uint64_t edges[] = {0, UINT64_MAX, top, top - 1};
    return r % 8 ? (r / 8 & 7) - (kn_dtype_is_signed(type) ? 4 : 0) : edges[r / 8 % 4];
}

void kn_probe_fill(kn_memory m, kn_dtype type, int64_t count, uint64_t seed, kn_probe_values values)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    size_t bytes = (size_t)kn_dtype_bits(type) / 8;
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = next_random(&state) >> 11;
        if (bytes == 0) { /* 4 bits */
            unsigned mask = values == KN_PROBE_EDGES ? 0xFF : 0x33;
            ((unsigned char *)m.data)[i / 2] = (unsigned char)(r & mask);
            continue;
        }
        unsigned char *at = (unsigned char *)m.data + (size_t)i * bytes;
        if (kn_dtype_is_float(type)) {
            put_float(at, type, made_float(type, r, values));
        } else {
            uint64_t value = type == KN_BOOL ? r & 1 : made_integer(type, r, values);
            memcpy(at, &value, bytes); /* little-endian */
        }
    }
}

/* ---- sizes ---- */

typedef struct {
    kn_arena *arena;
    const kn_unit *unit;
    const kn_probe_options *options;
    kn_size *sizes;
    int64_t *values;
    int nsizes;
} kn_sizing;

static void add_size(kn_sizing *s, kn_size size)
{
    static const int64_t primes[] = {3, 5, 2, 7, 4, 11};
    int64_t value = primes[s->nsizes % 6];
    value = value < size.lo ? size.lo : value > size.hi ? size.hi : value;
    for (int i = 0; i < s->options->nsizes; i++) {
        const kn_probe_size *given = &s->options->sizes[i];
        value = strcmp(given->name, size.name) == 0 ? given->value : value;
    }
    s->sizes[s->nsizes] = size;
    s->values[s->nsizes++] = value;
}

static int64_t count_of(const kn_sizing *s, const kn_expr *const *shape, int rank, const char *name)
{
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        int64_t dim;
        if (!kn_index_eval(shape[i], s->sizes, s->values, s->nsizes, &dim) || dim < 0 ||
            dim > INT32_MAX || __builtin_mul_overflow(count, dim, &count) || count > INT32_MAX) {
            kn_raise(s->unit->ctx, KN_INVALID, kn_loc_none(),
                     "%s: its shape cannot be had at these sizes", name);
        }
    }
    return count;
}

static kn_memory allocate(const kn_sizing *s, kn_dtype type, int64_t count)
{
    size_t bytes = (size_t)kn_dtype_bytes(type, count);
    return (kn_memory){kn_alloc(s->arena, bytes + 1), bytes};
}

static void add_output(kn_sizing *s, kn_probe_result *r, const char *name, kn_dtype type,
                       int64_t count)
{
    r->outputs[r->n++] = (kn_probe_output){name, type, count, allocate(s, type, count)};
}

/* ---- graphs ---- */

/* The number of elements of an output, for whatever the sizes that the run computes will be. */
static int64_t most_of(const kn_sizing *s, const kn_graph *g, const kn_value *v)
{
    kn_size *computed = KN_ARRAY(s->arena, kn_size, g->nsizes + 1);
    int n = 0;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            computed[n++] = g->sizes[i];
        }
    }
    const kn_expr *const *shape = v->shape;
    if (n) {
        shape = kn_shape_upper(s->arena, shape, v->rank, computed, n, (kn_loc){.where = v->name});
    }
    return count_of(s, shape, v->rank, v->name);
}

/* What there is of the graph's outputs now that all sizes are known. */
static void trim_outputs(const kn_sizing *s, const kn_graph *g, kn_probe_result *r)
{
    r->n = g->noutputs;
    for (int i = 0; i < r->n; i++) {
        const kn_value *v = g->outputs[i];
        r->outputs[i].count = count_of(s, v->shape, v->rank, v->name);
    }
}

/* Input i of the unit, whatever its stage. */
static kn_memory make_input(const kn_sizing *s, kn_dtype type, int64_t count, int i)
{
    kn_memory m = allocate(s, type, count);
    kn_probe_fill(m, type, count, s->options->seed + (uint64_t)i, s->options->values);
    return m;
}

static kn_probe_result probe_graph(kn_sizing *s)
{
    const kn_graph *g = s->unit->graph;
    s->sizes = KN_ARRAY(s->arena, kn_size, g->nsizes + 1);
    s->values = KN_ARRAY(s->arena, int64_t, g->nsizes + 1);
    for (int i = 0; i < g->nsizes; i++) {
        add_size(s, g->sizes[i]);
    }
    kn_memory *inputs = KN_ARRAY(s->arena, kn_memory, g->ninputs + 1);
    for (int i = 0; i < g->ninputs; i++) {
        const kn_value *v = g->inputs[i];
        int64_t count = count_of(s, v->shape, v->rank, v->name);
        inputs[i] = make_input(s, v->type, count, i);
    }
    kn_probe_result r = {.outputs = KN_ARRAY(s->arena, kn_probe_output, g->noutputs + 1)};
    kn_memory *outputs = KN_ARRAY(s->arena, kn_memory, g->noutputs + 1);
    for (int i = 0; i < g->noutputs; i++) {
        const kn_value *v = g->outputs[i];
        add_output(s, &r, v->name, v->type, most_of(s, g, v));
        outputs[i] = r.outputs[i].memory;
    }
    kn_graph_interpret(s->unit->ctx, g, s->values, inputs, outputs);
    trim_outputs(s, g, &r);
    return r;
}

/* ---- modules ---- */

/* The graph's, where there is one; made up like an input else. */
static kn_memory constant_of(const kn_sizing *s, const kn_param *p, int number, int64_t count)
{
    const kn_graph *g = s->unit->graph;
    kn_memory m = make_input(s, p->buffer.type, count, 1000 + number);
    if (g && number < g->nconsts && g->consts[number]->bytes == m.bytes) {
        memcpy(m.data, g->consts[number]->data, m.bytes);
    }
    return m;
}

/* The sizes that the run computed, from main's last output: one beside the graph's. */
static void read_computed(kn_sizing *s, const kn_graph *g, const kn_probe_result *r)
{
    const int64_t *values = r->outputs[r->n - 1].memory.data;
    for (int i = 0; i < g->nsizes; i++) {
        if (g->sources[i].value) {
            s->sizes[s->nsizes] = g->sizes[i];
            s->values[s->nsizes++] = *values++;
        }
    }
}

/* The buffers of main so far, in the order of its parameters. */
typedef struct {
    const kn_func *main;
    kn_memory *at;
    int n, ninputs, nconsts;
} kn_buffers;

static kn_memory find_buffer(const kn_buffers *b, const char *name)
{
    int n = 0;
    for (int i = 0; i < b->main->nparams && n < b->n; i++) {
        const kn_param *p = &b->main->params[i];
        if (p->mode != KN_PARAM_SCALAR && strcmp(p->buffer.name, name) == 0) {
            return b->at[n];
        }
        n += p->mode != KN_PARAM_SCALAR;
    }
    return (kn_memory){0};
}

/* An output that updates an input has its memory. */
static kn_memory make_buffer(kn_sizing *s, kn_buffers *b, const kn_param *p, kn_probe_result *r)
{
    int64_t count = count_of(s, p->buffer.shape, p->buffer.rank, p->buffer.name);
    if (p->mode == KN_PARAM_CONST) {
        return constant_of(s, p, b->nconsts++, count);
    }
    if (p->mode != KN_PARAM_OUT) {
        return make_input(s, p->buffer.type, count, b->ninputs++);
    }
    add_output(s, r, p->buffer.name, p->buffer.type, count);
    kn_probe_output *o = &r->outputs[r->n - 1];
    if (p->alias) {
        o->memory = find_buffer(b, p->alias);
    }
    return o->memory;
}

static kn_probe_result probe_module(kn_sizing *s)
{
    const kn_module *m = s->unit->module;
    const kn_graph *g = s->unit->graph;
    const kn_func *f = kn_module_main(m);
    int most = f->nparams + (g ? g->nsizes : 0) + 1;
    s->sizes = KN_ARRAY(s->arena, kn_size, most);
    s->values = KN_ARRAY(s->arena, int64_t, most);
    kn_buffers b = {.main = f, .at = KN_ARRAY(s->arena, kn_memory, f->nparams + 1)};
    kn_probe_result r = {.outputs = KN_ARRAY(s->arena, kn_probe_output, f->nparams + 1)};
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR) {
            add_size(s, (kn_size){p->buffer.name, p->lo, p->hi});
        } else {
            b.at[b.n] = make_buffer(s, &b, p, &r);
            b.n++;
        }
    }
    kn_interp *in = kn_interp_compile(s->arena, m, f);
    kn_interp_run(s->unit->ctx, in, s->values, s->nsizes, b.at, b.n);
    if (g && r.n > g->noutputs) {
        read_computed(s, g, &r);
        trim_outputs(s, g, &r);
    }
    return r;
}

kn_probe_result kn_probe(kn_arena *a, const kn_unit *u, const kn_probe_options *options)
{
    kn_sizing s = {.arena = a, .unit = u, .options = options};
    return u->module ? probe_module(&s) : probe_graph(&s);
}

/* ---- comparing and printing ---- */

static uint64_t bits_at(const kn_probe_output *o, int64_t i)
{
    size_t bytes = (size_t)kn_dtype_bits(o->type) / 8;
    const unsigned char *data = o->memory.data;
    uint64_t bits = 0;
    if (bytes == 0) {
        return (data[i / 2] >> (i % 2 * 4)) & 15;
    }
    memcpy(&bits, data + (size_t)i * bytes, bytes); /* little-endian */
    return bits;
}

static double element(const kn_probe_output *o, int64_t i)
{
    uint64_t bits = bits_at(o, i);
    uint32_t low = (uint32_t)bits;
    float single;
    double f;
    switch (o->type) {
    case KN_F32: memcpy(&single, &low, sizeof single); return (double)single;
    case KN_F64: memcpy(&f, &bits, sizeof f); return f;
    case KN_F16: return (double)kn_f16_to_f32((uint16_t)bits);
    case KN_BF16: return (double)kn_bf16_to_f32((uint16_t)bits);
    default:
        if (kn_dtype_is_signed(o->type)) {
            int shift = 64 - kn_dtype_bits(o->type);
            return (double)((int64_t)(bits << shift) >> shift);
        }
        return (double)bits;
    }
}

/* What differences of an output are measured by at least: the largest finite element expected. */
static double scale_of(const kn_probe_output *o)
{
    double scale = 1e-3;
    for (int64_t i = 0; i < o->count; i++) {
        double x = fabs(element(o, i));
        scale = isfinite(x) && x > scale ? x : scale;
    }
    return scale < 1 ? scale : 1;
}

static double difference(const kn_probe_output *got, const kn_probe_output *want, int64_t i,
                         double scale)
{
    double x = element(got, i), y = element(want, i);
    if ((isnan(x) && isnan(y)) || bits_at(got, i) == bits_at(want, i)) {
        return 0;
    }
    if (x == y) {
        return kn_dtype_is_float(want->type) ? DBL_TRUE_MIN : HUGE_VAL;
    }
    double d = fabs(x - y) / fmax(fabs(y), scale);
    return isnan(d) ? HUGE_VAL : d;
}

double kn_probe_difference(const kn_probe_result *got, const kn_probe_result *want,
                           const char **where)
{
    double worst = 0;
    *where = "the number of outputs";
    if (got->n != want->n) {
        return HUGE_VAL;
    }
    for (int i = 0; i < want->n; i++) {
        const kn_probe_output *x = &got->outputs[i], *y = &want->outputs[i];
        if (x->type != y->type || x->count != y->count) {
            *where = y->name;
            return HUGE_VAL;
        }
        double scale = scale_of(y);
        for (int64_t k = 0; k < y->count; k++) {
            double d = difference(x, y, k, scale);
            *where = d > worst ? y->name : *where;
            worst = d > worst ? d : worst;
        }
    }
    return worst;
}

double kn_probe_tolerance(const kn_probe_result *r)
{
    double tolerance = 1e-4;
    for (int i = 0; i < r->n; i++) {
        kn_dtype type = r->outputs[i].type;
        double own = type == KN_BF16 ? 0x1p-5 : type == KN_F16 ? 0x1p-8 : 0;
        tolerance = own > tolerance ? own : tolerance;
    }
    return tolerance;
}

void kn_probe_print(kn_str *out, const kn_probe_result *r)
{
    for (int i = 0; i < r->n; i++) {
        const kn_probe_output *o = &r->outputs[i];
        kn_putf(out, "%s: %s[%lld] =", o->name, kn_dtype_name(o->type), (long long)o->count);
        for (int64_t k = 0; k < o->count && k < 8; k++) {
            kn_putf(out, "%s%.6g", k ? ", " : " ", element(o, k));
        }
        kn_put(out, o->count > 8 ? ", ...\n" : "\n");
    }
}
