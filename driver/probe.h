/* Running a unit, whatever its stage, on made-up inputs through the interpreter: what kiln-opt
   --interpret and --bisect, and the tests of passes, compare. */
#ifndef KN_DRIVER_PROBE_H
#define KN_DRIVER_PROBE_H

#include "passes/pass.h"

typedef struct {
    const char *name;
    kn_dtype type;
    int64_t count; /* elements */
    kn_memory memory;
} kn_probe_output;

typedef struct {
    int n;
    kn_probe_output *outputs;
} kn_probe_result;

/* A value for a size that the caller chooses; the others get small primes within their bounds. */
typedef struct {
    const char *name;
    int64_t value;
} kn_probe_size;

/* Inputs are seeded: floats in [-1, 1), integers in 0..3, bools. The same unit at another stage
   gets the same inputs. Raises what the interpreter raises. */
kn_probe_result kn_probe(kn_arena *a, const kn_unit *u, uint64_t seed, const kn_probe_size *sizes,
                         int nsizes);

/* The seeded values of one buffer. */
void kn_probe_fill(kn_memory m, kn_dtype type, int64_t count, uint64_t seed);

/* The largest difference |x - y| / (1 + |y|) over all outputs (NaN equals NaN), infinity when they
 *do not correspond. where names the output. */
double kn_probe_difference(const kn_probe_result *x, const kn_probe_result *y, const char **where);

/* "name: type[count] = v0, v1, ..." a line an output. */
void kn_probe_print(kn_str *out, const kn_probe_result *r);

#endif
