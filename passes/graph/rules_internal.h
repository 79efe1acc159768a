/* Shared by rule_parse.c, rule_match.c and rewrite.c; and by the test that writes rules as graphs. */
#ifndef KN_PASSES_GRAPH_RULES_INTERNAL_H
#define KN_PASSES_GRAPH_RULES_INTERNAL_H

#include "passes/graph/rules.h"

enum { KN_MAX_SLOTS = 256, KN_MAX_VARS = 24, KN_MAX_GOALS = 128 };

/* ---- rules, parsed ---- */

typedef enum {
    KN_PAT_VALUE,  /* %x */
    KN_PAT_NUMBER, /* 0.5 */
    KN_PAT_VAR,    /* epsilon: a constant of one element */
    KN_PAT_NODE,
    KN_PAT_PART, /* any of `args` */
    KN_PAT_NONE  /* _ */
} kn_pat_kind;

typedef enum {
    KN_PAT_A_NUMBER,
    KN_PAT_A_VAR,
    KN_PAT_A_LIST,
    KN_PAT_A_TYPE,
    KN_PAT_A_STRING
} kn_pat_attr_kind;

typedef struct kn_pat_attr kn_pat_attr;
struct kn_pat_attr {
    const char *name; /* of the attribute; NULL in a list */
    kn_pat_attr_kind kind;
    bool real; /* NUMBER: written with a point */
    double number;
    const char *text; /* VAR: its name; STRING */
    kn_dtype type;
    int nitems;
    kn_pat_attr *items; /* LIST: NUMBER or VAR */
};

typedef struct kn_pat kn_pat;
struct kn_pat {
    kn_pat_kind kind;
    const char *name; /* VALUE, VAR */
    int slot;         /* VALUE, NODE: where the match keeps what it stands for */
    double number;
    const kn_op_row *op;
    bool commutes;
    int nargs; /* NODE: operands; PART: alternatives */
    kn_pat **args;
    int nattrs;
    kn_pat_attr *attrs;
};

typedef struct kn_rule_parsed kn_rule_parsed;
struct kn_rule_parsed {
    const kn_rule *rule;
    int index; /* in the table */
    kn_pat *pattern, *result;
    int nslots;
    const char *names[KN_MAX_SLOTS]; /* of values that `when` can ask for, by slot; else NULL */
    bool is_node[KN_MAX_SLOTS];
};

kn_rule_parsed *kn_rule_parse(kn_arena *a, const kn_rule_table *table, int rule);

/* ---- uses ---- */

typedef KN_VEC(kn_node *) kn_node_list;

/* Who uses what, kept up to date while the graph changes. */
typedef struct {
    kn_unit *unit;
    kn_graph *g;
    kn_arena *a;
    bool shared;         /* as in the table */
    int nvalues, nnodes; /* ids that the arrays below cover */
    int known;           /* nodes of g->nodes that are entered */
    kn_node_list *users; /* by value id; a node once an operand; those that died are still there */
    bool *pinned;        /* by value id: an output, or what a size is read from */
    bool *dead;          /* by node id */
    int *mark;           /* by node id: the last match that it was part of */
    int marks;
} kn_rewriter;

/* ---- matching ---- */

typedef struct {
    const kn_pat *pat;
    kn_value *value;
} kn_goal;

typedef struct {
    const char *name;
    kn_attr attr;
    kn_value *value; /* of a constant */
} kn_match_name;

struct kn_match {
    kn_rewriter *rw;
    const kn_rule_parsed *rule;
    kn_value *root;
    kn_value *values[KN_MAX_SLOTS];
    int trail[KN_MAX_SLOTS], ntrail; /* slots in the order in which they were filled */
    kn_match_name vars[KN_MAX_VARS];
    int nvars;
    kn_goal goals[KN_MAX_GOALS];
    int ngoals;
    int steps;
};

/* Whether the pattern stands at `root`; what it found is in `m`. */
bool kn_match_find(kn_match *m, kn_rewriter *rw, const kn_rule_parsed *rule, kn_value *root);
kn_match_name *kn_match_find_name(kn_match *m, const char *name); /* NULL when there is none */
/* Whether a number is what the op does without the attribute. */
bool kn_attr_is_usual(const char *op, const char *name, const kn_attr *attr);

#endif
