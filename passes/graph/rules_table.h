/* A table of rules from its .def: KN_RULES is the file, KN_RULE_TABLE the table's name, KN_RULES_SHARED
   its `shared`. Included once in the file that has the rules' functions. */
static const kn_rule rules[] = {
#define RULE(name, when, example, pattern, result) {#name, example, pattern, result, when},
#define PART(name, parameters, pattern)
#include KN_RULES
#undef RULE
#undef PART
};

static const kn_rule_part parts[] = {
#define RULE(name, when, example, pattern, result)
#define PART(name, parameters, pattern) {#name, parameters, pattern},
#include KN_RULES
#undef RULE
#undef PART
};

const kn_rule_table KN_RULE_TABLE = {rules, sizeof rules / sizeof *rules, parts,
                                     sizeof parts / sizeof *parts, KN_RULES_SHARED};
