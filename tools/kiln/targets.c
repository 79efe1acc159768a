#include "tools/kiln/kiln.h"
void kn_verb_targets(kn_cli *c) { kn_cli_usage(c, "not yet"); }
void kn_verb_inspect(kn_cli *c) { kn_cli_usage(c, "not yet"); }
void kn_verb_compile(kn_cli *c) { kn_cli_usage(c, "not yet"); }
void kn_verb_run(kn_cli *c) { kn_cli_usage(c, "not yet"); }
