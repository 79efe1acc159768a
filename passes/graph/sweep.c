/* Dead nodes and unused constants go. */
#include "passes/passes.h"

void kn_pass_sweep(kn_unit *u)
{
    kn_graph_sweep(u->graph);
}
