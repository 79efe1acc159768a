#include "driver/probe.h"

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
    float single = (float)f;
    uint16_t half = type == KN_F16 ? kn_f32_to_f16(single) : kn_f32_to_bf16(single);
    switch (kn_dtype_bits(type)) {
    case 64: memcpy(at, &f, sizeof f); break;
    case 32: memcpy(at, &single, sizeof single); break;
    default: memcpy(at, &half, sizeof half);
    }
}

void kn_probe_fill(kn_memory m, kn_dtype type, int64_t count, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    size_t bytes = (size_t)kn_dtype_bits(type) / 8;
    for (int64_t i = 0; i < count; i++) {
        uint64_t r = next_random(&state) >> 11;
        if (bytes == 0) { /* 4 bits */
            ((unsigned char *)m.data)[i / 2] = (unsigned char)(r & 0x33);
            continue;
        }
        unsigned char *at = (unsigned char *)m.data + (size_t)i * bytes;
        if (kn_dtype_is_float(type)) {
            put_float(at, type, (double)(int64_t)r / (double)(INT64_C(1) << 52) - 1.0);
        } else {
            memset(at, 0, bytes);
            at[0] = (unsigned char)(type == KN_BOOL ? r & 1 : r & 3); /* little-endian */
        }
    }
}

/* ---- sizes ---- */

typedef struct {
    kn_arena *arena;
    const kn_unit *unit;
    kn_size *sizes;
    int64_t *values;
    int nsizes;
} kn_sizing;

static void add_size(kn_sizing *s, kn_size size, const kn_probe_size *given, int n)
{
    static const int64_t primes[] = {3, 5, 2, 7, 4, 11};
    int64_t value = primes[s->nsizes % 6];
    value = value < size.lo ? size.lo : value > size.hi ? size.hi : value;
    for (int i = 0; i < n; i++) {
        value = strcmp(given[i].name, size.name) == 0 ? given[i].value : value;
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

/* ---- graphs ---- */

static void add_output(kn_sizing *s, kn_probe_result *r, const char *name, kn_dtype type,
                       int64_t count)
{
    r->outputs[r->n++] = (kn_probe_output){name, type, count, allocate(s, type, count)};
}

static kn_probe_result probe_graph(kn_sizing *s, uint64_t seed, const kn_probe_size *given,
                                   int ngiven)
{
    const kn_graph *g = s->unit->graph;
    s->sizes = KN_ARRAY(s->arena, kn_size, g->nsizes + 1);
    s->values = KN_ARRAY(s->arena, int64_t, g->nsizes + 1);
    for (int i = 0; i < g->nsizes; i++) {
        add_size(s, g->sizes[i], given, ngiven);
    }
    kn_memory *inputs = KN_ARRAY(s->arena, kn_memory, g->ninputs + 1);
    for (int i = 0; i < g->ninputs; i++) {
        const kn_value *v = g->inputs[i];
        int64_t count = count_of(s, v->shape, v->rank, v->name);
        inputs[i] = allocate(s, v->type, count);
        kn_probe_fill(inputs[i], v->type, count, seed + (uint64_t)i);
    }
    kn_probe_result r = {.outputs = KN_ARRAY(s->arena, kn_probe_output, g->noutputs + 1)};
    kn_memory *outputs = KN_ARRAY(s->arena, kn_memory, g->noutputs + 1);
    for (int i = 0; i < g->noutputs; i++) {
        const kn_value *v = g->outputs[i];
        add_output(s, &r, v->name, v->type, count_of(s, v->shape, v->rank, v->name));
        outputs[i] = r.outputs[i].memory;
    }
    kn_graph_interpret(s->unit->ctx, g, s->values, inputs, outputs);
    return r;
}

/* ---- modules ---- */

static kn_memory constant_of(const kn_sizing *s, const kn_param *p, int number, int64_t count,
                             uint64_t seed)
{
    const kn_graph *g = s->unit->graph;
    kn_memory m = allocate(s, p->buffer.type, count);
    if (g && number < g->nconsts && g->consts[number]->bytes == m.bytes) {
        memcpy(m.data, g->consts[number]->data, m.bytes);
    } else {
        kn_probe_fill(m, p->buffer.type, count, seed + 1000 + (uint64_t)number);
    }
    return m;
}

static kn_probe_result probe_module(kn_sizing *s, uint64_t seed, const kn_probe_size *given,
                                    int ngiven)
{
    const kn_module *m = s->unit->module;
    const kn_func *f = m->funcs[m->nfuncs - 1];
    s->sizes = KN_ARRAY(s->arena, kn_size, f->nparams + 1);
    s->values = KN_ARRAY(s->arena, int64_t, f->nparams + 1);
    kn_memory *buffers = KN_ARRAY(s->arena, kn_memory, f->nparams + 1);
    kn_probe_result r = {.outputs = KN_ARRAY(s->arena, kn_probe_output, f->nparams + 1)};
    int nbuffers = 0, ninputs = 0, nconsts = 0;
    for (int i = 0; i < f->nparams; i++) {
        const kn_param *p = &f->params[i];
        if (p->mode == KN_PARAM_SCALAR) {
            add_size(s, (kn_size){p->buffer.name, p->lo, p->hi}, given, ngiven);
            continue;
        }
        int64_t count = count_of(s, p->buffer.shape, p->buffer.rank, p->buffer.name);
        if (p->mode == KN_PARAM_CONST) {
            buffers[nbuffers++] = constant_of(s, p, nconsts++, count, seed);
        } else if (p->mode == KN_PARAM_OUT) {
            add_output(s, &r, p->buffer.name, p->buffer.type, count);
            buffers[nbuffers++] = r.outputs[r.n - 1].memory;
        } else {
            buffers[nbuffers] = allocate(s, p->buffer.type, count);
            kn_probe_fill(buffers[nbuffers++], p->buffer.type, count, seed + (uint64_t)ninputs++);
        }
    }
    kn_interp *in = kn_interp_compile(s->arena, m, f);
    kn_interp_run(s->unit->ctx, in, s->values, s->nsizes, buffers, nbuffers);
    return r;
}

kn_probe_result kn_probe(kn_arena *a, const kn_unit *u, uint64_t seed, const kn_probe_size *sizes,
                         int nsizes)
{
    kn_sizing s = {.arena = a, .unit = u};
    return u->module ? probe_module(&s, seed, sizes, nsizes) : probe_graph(&s, seed, sizes, nsizes);
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

static double difference(double x, double y)
{
    if ((isnan(x) && isnan(y)) || x == y) {
        return 0;
    }
    double d = fabs(x - y) / (1 + fabs(y));
    return isnan(d) ? HUGE_VAL : d;
}

double kn_probe_difference(const kn_probe_result *x, const kn_probe_result *y, const char **where)
{
    double worst = 0;
    *where = "the number of outputs";
    if (x->n != y->n) {
        return HUGE_VAL;
    }
    for (int i = 0; i < x->n; i++) {
        const kn_probe_output *a = &x->outputs[i], *b = &y->outputs[i];
        if (a->type != b->type || a->count != b->count) {
            *where = a->name;
            return HUGE_VAL;
        }
        for (int64_t k = 0; k < a->count; k++) {
            double d = difference(element(a, k), element(b, k));
            *where = d > worst ? a->name : *where;
            worst = d > worst ? d : worst;
        }
    }
    return worst;
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
