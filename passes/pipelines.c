/* The pipelines: lists of names. */
#include "passes/pass.h"

#define LOWERED "group", "lower", "contract", "scratch", "plan", NULL

/* The graph as it is. */
static const char *const direct[] = {"sweep", LOWERED};

/* Simplification first, so that a transposed weight is read transposed instead of being folded into
   a copy; again behind cse, which makes operands equal. Recognition leaves views, and tables of
   rotary embeddings once a layer: the second round is for these. */
static const char *const usual[] = {"sweep",     "simplify", "fold",     "cse",  "simplify",
                                    "recognise", "cse",      "simplify", "fold", LOWERED};

const char *const *kn_pipeline(int level)
{
    return level == 0 ? direct : usual;
}
