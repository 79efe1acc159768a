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

/* What the inputs are like. */
typedef enum {
    KN_PROBE_PLAIN,       /* floats in [-1, 1), integers in 0..3, bools */
    KN_PROBE_FLOAT_EDGES, /* floats in [-4, 4), of which one in eight is a zero of either sign, an
                             infinity, or the largest or smallest of the type; the rest is plain */
    KN_PROBE_EDGES        /* integers too: of both signs, one in eight the largest or smallest */
} kn_probe_values;

typedef struct {
    uint64_t seed;
    kn_probe_values values;
    const kn_probe_size *sizes;
    int nsizes;
} kn_probe_options;

/* The same unit at another stage gets the same inputs. Raises what the interpreter raises. */
kn_probe_result kn_probe(kn_arena *a, const kn_unit *u, const kn_probe_options *options);

/* The seeded values of one buffer. */
void kn_probe_fill(kn_memory m, kn_dtype type, int64_t count, uint64_t seed,
                   kn_probe_values values);

/* The largest difference over all outputs, relative to the element expected, but to no less than
   the output's largest finite one (1 where that is more) and 1e-3. 0 only when all is the same:
   NaN equals NaN, but between 0 and -0 lies the smallest difference that there is.
   Infinity when the outputs do not correspond, or integers differ by what no double tells. `where`
   names the output. */
double kn_probe_difference(const kn_probe_result *got, const kn_probe_result *want,
                           const char **where);

/* What rounding may make of it: 1e-4, or a few units in the last place of half floats. */
double kn_probe_tolerance(const kn_probe_result *r);

/* "name: type[count] = v0, v1, ..." a line an output. */
void kn_probe_print(kn_str *out, const kn_probe_result *r);

#endif
