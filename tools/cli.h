/* What the command lines of kiln and kiln-opt share: flags, diagnostics, exit codes. */
#ifndef KN_TOOLS_CLI_H
#define KN_TOOLS_CLI_H

#include "ir/expr.h"

/* A flag and what it does: one of the four. */
typedef struct {
    const char *name;  /* "--seed" */
    bool *on;          /* a switch: becomes true */
    const char **text; /* takes a value, kept as it is */
    double *real;      /* takes a number that is not negative */
    void (*take)(void *env, const char *flag, const char *value); /* takes a value, or raises */
    bool alone; /* `take` has no value: it is called with NULL */
} kn_flag;

typedef struct {
    kn_ctx *ctx;
    const kn_flag *flags;
    int nflags;
    void (*file)(void *env, const char *name); /* what is no flag; "-" is none */
    void *env;                                 /* of `file` and `take` */
} kn_flags;

/* Goes through a list of arguments. Raises KN_USAGE for a flag that is not there or has no value. */
void kn_flags_take(const kn_flags *f, int argc, char *const *argv);

/* KN_USAGE, with a hint at --help. */
_Noreturn void kn_tool_usage(kn_ctx *ctx, const char *fmt, ...) KN_PRINTF(2, 3);
/* A whole number, which ends where it should: at `end`, or with the text when that is NULL. */
int64_t kn_tool_number(kn_ctx *ctx, const char *flag, const char *text, const char *end);
/* NAME=N or NAME=LO:HI */
kn_size kn_tool_dim(kn_ctx *ctx, const char *text);
/* A pass, or "all" where that may be; else KN_USAGE with the list. */
void kn_tool_pass(kn_ctx *ctx, const char *flag, const char *name, bool all);
/* True when the flag is among the arguments, wherever. */
bool kn_tool_wants(int argc, char *const *argv, const char *flag);

typedef enum { KN_SAY_ERRORS, KN_SAY_SOME_WARNINGS, KN_SAY_ALL } kn_verbosity;

/* A context; NULL, after saying so, when there is no memory for one. From then on a failed write is
   an error, not a signal. */
kn_ctx *kn_tool_begin(const char *program);
/* Prints what was recorded as `FILE:LINE:COLUMN: error: ...`, with the program's name for what has
   no file; ends the context. Returns the exit code: `result` when nothing was raised
   and all of stdout could be written. */
int kn_tool_end(kn_ctx *ctx, const char *program, kn_status status, int result, kn_verbosity say);

#endif
