/* Passes: one file each, one exported entry point each, listed in passes.def and run by one runner
 * (runner.c). */
#ifndef KN_PASSES_PASS_H
#define KN_PASSES_PASS_H

#include "ir/graph.h"
#include "ir/loop.h"
#include "ir/schedule_text.h"

typedef struct kn_target kn_target;

/* What is being compiled: a graph, until a pass lowers it; then a loop module. */
typedef struct kn_unit kn_unit;
struct kn_unit {
    kn_ctx *ctx;
    kn_arena *arena; /* of the unit; passes may use it for what stays */
    kn_graph *graph;
    kn_module *module;                /* NULL until lowered */
    const kn_target *target;          /* may be NULL: the host */
    const kn_schedule_text *schedule; /* edits of the kernels' schedules, or NULL */
    unsigned properties;              /* KN_PROP_* that hold */
};

/* Checked bits: what a pass requires and what it breaks. */
enum {
    KN_PROP_GROUPED = 1 << 0,   /* every node has a fusion group */
    KN_PROP_LOWERED = 1 << 1,   /* the unit is a loop module */
    KN_PROP_SCRATCHED = 1 << 2, /* kernels allocate only in @local */
    KN_PROP_PLANNED = 1 << 3    /* every alloc of main has an offset */
};

typedef struct {
    const char *name;
    void (*run)(kn_unit *u);
    bool exact; /* outputs keep their bits; else they are the same up to rounding */
    unsigned requires_, gives, breaks;
    const char *doc;
} kn_pass;

const kn_pass *kn_pass_find(const char *name);
int kn_pass_count(void);
const kn_pass *kn_pass_get(int i);

typedef struct {
    bool verify_each;        /* verifiers and print -> parse -> print after every pass */
    const char *stop_after;  /* or NULL */
    const char *print_after; /* a pass, "all", or NULL */
    void (*print)(void *env, const char *pass, const char *text); /* where print_after goes */
    void *print_env;
} kn_pass_options;

/* Runs passes by name, in order. Raises KN_USAGE for an unknown name or a requirement that does not
 * hold. */
void kn_run_passes(kn_unit *u, const char *const *names, int n, const kn_pass_options *options);

/* The pipelines, lists of names (pipelines.c). `level` is 0..3 as in -O. Ends with NULL. */
const char *const *kn_pipeline(int level);

/* The unit as text: the graph, or the module once lowered. */
void kn_unit_print(kn_str *out, const kn_unit *u);

#endif
