/* What is in a graph, counted. */
#include <stdlib.h>

#include "driver/driver.h"

static int by_name(const void *x, const void *y)
{
    return strcmp(((const kn_op_tally *)x)->name, ((const kn_op_tally *)y)->name);
}

kn_op_tally *kn_driver_count_ops(kn_arena *a, const kn_graph *g, int *n)
{
    kn_op_tally *list = KN_ARRAY(a, kn_op_tally, g->nnodes + 1);
    kn_map seen = kn_map_make(a);
    *n = 0;
    for (int i = 0; i < g->nnodes; i++) {
        const char *name = g->nodes[i]->op->name;
        kn_op_tally *c = kn_map_get(&seen, name);
        if (!c) {
            c = &list[(*n)++];
            c->name = name;
            kn_map_set(&seen, name, c);
        }
        c->count++;
    }
    qsort(list, (size_t)*n, sizeof *list, by_name);
    return list;
}
