/* Conditions of recognise.def that fill files of their own. */
#ifndef KN_PASSES_GRAPH_RECOGNISE_INTERNAL_H
#define KN_PASSES_GRAPH_RECOGNISE_INTERNAL_H

#include "passes/graph/rules.h"

bool kn_is_attention(kn_match *m);
bool kn_is_flat_attention(kn_match *m);
bool kn_is_grouped(kn_match *m);
bool kn_is_rotary(kn_match *m);
bool kn_is_rotary_in_halves(kn_match *m);

#endif
