/* Fusion groups. A node whose meaning is pointwise joins the latest group that feeds it, when it
   has as many elements as what it takes from there: matmul + bias + gelu become one kernel. A group
   depends only on groups with smaller numbers (a node joins the group with the greatest number
   among its operands'), so the numbers are an order in which the groups can run. */
#include "passes/passes.h"

enum { MAX_GROUP_STATEMENTS = 16 };

typedef struct {
    bool closed; /* nothing may join: an opaque row, an alias */
    int statements;
} kn_group;

static bool is_pointwise(const kn_nest *nest)
{
    for (int i = 0; i < nest->ntensors; i++) {
        if (nest->tensors[i].role == KN_ROLE_INOUT) {
            return false; /* it starts from a copy of an operand, which must be there before the
                             kernel runs */
        }
    }
    for (int i = 0; i < nest->nstmts; i++) {
        const kn_stmt *s = &nest->stmts[i];
        if (s->op != KN_SET || s->over >= 0) {
            return false;
        }
        for (int k = 0; k < s->niters; k++) {
            if (s->iters[k].reduction) {
                return false;
            }
        }
    }
    return nest->nstmts > 0 && !nest->opaque;
}

/* The same dimensions in any order. */
static bool same_elements(const kn_value *x, const kn_value *y)
{
    bool used[KN_MAX_RANK] = {false};
    if (x->rank != y->rank) {
        return false;
    }
    for (int i = 0; i < x->rank; i++) {
        int at = -1;
        for (int k = 0; k < y->rank && at < 0; k++) {
            at = !used[k] && kn_expr_equal(x->shape[i], y->shape[k]) ? k : -1;
        }
        if (at < 0) {
            return false;
        }
        used[at] = true;
    }
    return true;
}

/* The group that a pointwise node may join, or -1. */
static int joinable(const kn_node *n, const kn_group *groups, int statements)
{
    int latest = -1;
    bool fits = false;
    for (int i = 0; i < n->ninputs; i++) {
        const kn_value *v = n->inputs[i];
        if (!v || !v->def) {
            continue;
        }
        bool same = same_elements(v, n->outputs[0]);
        if (v->def->group > latest) {
            latest = v->def->group;
            fits = same;
        } else if (v->def->group == latest) {
            fits = fits && same;
        }
    }
    bool open = latest >= 0 && !groups[latest].closed;
    return open && fits && groups[latest].statements + statements <= MAX_GROUP_STATEMENTS ? latest
                                                                                          : -1;
}

void kn_pass_group(kn_unit *u)
{
    kn_graph *g = u->graph;
    kn_arena *scratch = kn_arena_create(u->ctx);
    kn_group *groups = KN_ARRAY(scratch, kn_group, g->nnodes + 1);
    int count = 0;
    for (int i = 0; i < g->nnodes; i++) {
        kn_node *n = g->nodes[i];
        kn_nest *nest = kn_node_is_alias(n) ? NULL : kn_node_nest(scratch, g, n);
        bool pointwise = nest && is_pointwise(nest);
        int statements = nest ? nest->nstmts : 0;
        n->group = pointwise ? joinable(n, groups, statements) : -1;
        if (n->group < 0) {
            n->group = count++;
            groups[n->group].closed = !nest || nest->opaque;
        }
        groups[n->group].statements += statements;
    }
    kn_release(u->ctx, scratch);
}
