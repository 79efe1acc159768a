/* The context: diagnostics, interned strings, protections and deferred actions.

   A protection is a frame on the C stack, linked from the context. It remembers how many actions
   were deferred when it was entered; on failure those above that mark run, last first. All memory
   of the context itself comes from malloc, piece by piece, so that it survives every unwinding.
   Nothing in here needs memory in order to report that there is none. */
#include "support/ctx.h"

#include <assert.h>
#include <limits.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/hash.h"

enum { MAX_DIAGS = 1000, MIN_CAPACITY = 16 };

typedef struct frame {
    jmp_buf env;
    struct frame *outer;
    int mark; /* deferred actions below it belong to outer protections */
} frame;

typedef struct {
    void (*fn)(void *); /* NULL: released while a protection above it was active */
    void *arg;
} action;

struct kn_ctx {
    frame *top;
    kn_status raised; /* what the unwinding in progress carries */
    action *actions;
    int nactions, cap_actions;
    kn_diag diags[MAX_DIAGS];
    int ndiags, dropped;
    char **strings; /* interned: an open-addressing table of size cap_strings, a power of two */
    size_t nstrings, cap_strings;
};

static const char no_memory[] = "out of memory";

kn_ctx *kn_ctx_create(void)
{
    return calloc(1, sizeof(kn_ctx));
}

/* Runs and forgets the deferred actions down to `mark`. */
static void run_actions(kn_ctx *ctx, int mark)
{
    while (ctx->nactions > mark) {
        action a = ctx->actions[--ctx->nactions];
        if (a.fn)
            a.fn(a.arg);
    }
}

void kn_ctx_destroy(kn_ctx *ctx)
{
    if (!ctx)
        return;
    assert(!ctx->top);
    run_actions(ctx, 0);
    kn_diag_clear(ctx);
    for (size_t i = 0; i < ctx->cap_strings; i++)
        free(ctx->strings[i]);
    free(ctx->strings);
    free(ctx->actions);
    free(ctx);
}

/* ---- protections ---- */

kn_status kn_protect(kn_ctx *ctx, void (*body)(void *), void *arg)
{
    frame f;
    f.outer = ctx->top;
    f.mark = ctx->nactions;
    if (setjmp(f.env) == 0) {
        ctx->top = &f;
        body(arg);
        assert(ctx->top == &f);
        ctx->top = f.outer;
        return KN_OK;
    }
    ctx->top = f.outer;
    kn_status status = ctx->raised; /* a deferred action may protect and raise on its own */
    run_actions(ctx, f.mark);
    return status;
}

/* A raise without a protection is a defect of Kiln. Debug builds stop at the assert. A release
   build may neither end the host's process nor return into code that counts on not being returned
   to: the thread rests here. */
static _Noreturn void stray_raise(void)
{
    assert(0 && "kn_raise() outside kn_protect()");
    for (;;)
        pause();
}

_Noreturn void kn_raise_again(kn_ctx *ctx, kn_status status)
{
    assert(status != KN_OK);
    if (!ctx->top)
        stray_raise();
    ctx->raised = status;
    longjmp(ctx->top->env, 1);
}

/* ---- diagnostics ---- */

static void free_diag(kn_diag *d)
{
    if (d->message != no_memory)
        free((void *)(uintptr_t)d->message);
}

/* The slot for one more message; NULL when there are too many, unless it `must` be kept: then it
 * replaces the last. */
static kn_diag *diag_slot(kn_ctx *ctx, bool must)
{
    if (ctx->ndiags < MAX_DIAGS)
        return &ctx->diags[ctx->ndiags++];
    if (ctx->dropped < INT_MAX)
        ctx->dropped++;
    if (!must)
        return NULL;
    free_diag(&ctx->diags[MAX_DIAGS - 1]);
    return &ctx->diags[MAX_DIAGS - 1];
}

/* A malloc'ed text, or NULL when memory is out. */
KN_PRINTF(1, 0)
static char *format(const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    char *text = n < 0 ? NULL : malloc((size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

KN_PRINTF(4, 0)
static void record(kn_ctx *ctx, kn_diag diag, bool must, const char *fmt, va_list args)
{
    kn_diag *slot = diag_slot(ctx, must);
    if (!slot)
        return;
    char *text = format(fmt, args);
    diag.message = text ? text : no_memory;
    *slot = diag;
}

static kn_diag make_diag(kn_severity severity, kn_status status, kn_loc loc)
{
    return (kn_diag){.severity = severity,
                     .status = status,
                     .file = loc.file,
                     .line = loc.line,
                     .column = loc.column,
                     .where = loc.where};
}

_Noreturn void kn_raise(kn_ctx *ctx, kn_status status, kn_loc loc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    record(ctx, make_diag(KN_ERROR, status, loc), true, fmt, args);
    va_end(args);
    kn_raise_again(ctx, status);
}

void kn_error(kn_ctx *ctx, kn_status status, kn_loc loc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    record(ctx, make_diag(KN_ERROR, status, loc), false, fmt, args);
    va_end(args);
}

void kn_warn(kn_ctx *ctx, kn_loc loc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    record(ctx, make_diag(KN_WARNING, KN_OK, loc), false, fmt, args);
    va_end(args);
}

void kn_note(kn_ctx *ctx, kn_loc loc, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    record(ctx, make_diag(KN_NOTE, KN_OK, loc), false, fmt, args);
    va_end(args);
}

int kn_diag_count(const kn_ctx *ctx)
{
    return ctx->ndiags;
}

int kn_diag_dropped(const kn_ctx *ctx)
{
    return ctx->dropped;
}

const kn_diag *kn_diag_get(const kn_ctx *ctx, int i)
{
    assert(i >= 0 && i < ctx->ndiags);
    return &ctx->diags[i];
}

void kn_diag_clear(kn_ctx *ctx)
{
    for (int i = 0; i < ctx->ndiags; i++)
        free_diag(&ctx->diags[i]);
    ctx->ndiags = ctx->dropped = 0;
}

void kn_diag_rename_file(kn_ctx *ctx, const char *from, const char *to)
{
    for (int i = 0; i < ctx->ndiags; i++)
        if (ctx->diags[i].file == from)
            ctx->diags[i].file = to;
}

bool kn_given(kn_ctx *ctx, const void *argument, const char *name)
{
    if (ctx && !argument)
        kn_error(ctx, KN_USAGE, kn_loc_none(), "%s is NULL", name);
    return ctx && argument;
}

/* ---- deferred actions ---- */

static bool grow_actions(kn_ctx *ctx)
{
    if (ctx->cap_actions > INT_MAX / 2)
        return false;
    int cap = ctx->cap_actions ? 2 * ctx->cap_actions : MIN_CAPACITY;
    action *at = realloc(ctx->actions, (size_t)cap * sizeof *at);
    if (!at)
        return false;
    ctx->actions = at;
    ctx->cap_actions = cap;
    return true;
}

/* Actions released from under a protection that has ended since have left holes: close those. */
static void close_holes(kn_ctx *ctx)
{
    int n = ctx->top ? ctx->top->mark : 0;
    for (int i = n; i < ctx->nactions; i++)
        if (ctx->actions[i].fn)
            ctx->actions[n++] = ctx->actions[i];
    ctx->nactions = n;
}

void kn_defer(kn_ctx *ctx, void (*fn)(void *), void *arg)
{
    assert(fn);
    if (ctx->nactions == ctx->cap_actions)
        close_holes(ctx);
    if (ctx->nactions == ctx->cap_actions && !grow_actions(ctx)) {
        fn(arg);
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "%s", no_memory);
    }
    ctx->actions[ctx->nactions++] = (action){fn, arg};
}

bool kn_is_deferred(const kn_ctx *ctx, void (*fn)(void *), bool (*is)(const void *arg, void *env),
                    void *env)
{
    for (int i = 0; i < ctx->nactions; i++)
        if (ctx->actions[i].fn == fn && is(ctx->actions[i].arg, env))
            return true;
    return false;
}

void kn_release(kn_ctx *ctx, const void *arg)
{
    int i = ctx->nactions - 1;
    while (i >= 0 && !(ctx->actions[i].fn && ctx->actions[i].arg == arg))
        i--;
    assert(i >= 0);
    if (i < 0)
        return;
    action a = ctx->actions[i];
    ctx->actions[i].fn = NULL;
    int mark = ctx->top ? ctx->top->mark : 0;
    while (ctx->nactions > mark && !ctx->actions[ctx->nactions - 1].fn)
        ctx->nactions--;
    a.fn(a.arg);
}

/* ---- interned strings ---- */

/* The slot of the string, or the empty one where it belongs. The table is never full. */
static char **find_string(char **table, size_t cap, const char *s, size_t n)
{
    size_t i = (size_t)kn_hash64(s, n, 0) & (cap - 1);
    while (table[i] && (strncmp(table[i], s, n) != 0 || table[i][n]))
        i = (i + 1) & (cap - 1);
    return &table[i];
}

static bool grow_strings(kn_ctx *ctx)
{
    size_t cap = ctx->cap_strings ? 2 * ctx->cap_strings : (size_t)4 * MIN_CAPACITY;
    char **table = calloc(cap, sizeof *table);
    if (!table)
        return false;
    for (size_t i = 0; i < ctx->cap_strings; i++) {
        char *s = ctx->strings[i];
        if (s)
            *find_string(table, cap, s, strlen(s)) = s;
    }
    free(ctx->strings);
    ctx->strings = table;
    ctx->cap_strings = cap;
    return true;
}

/* NULL when memory is out. */
static const char *intern(kn_ctx *ctx, const char *s, size_t n)
{
    if (2 * ctx->nstrings >= ctx->cap_strings && !grow_strings(ctx))
        return NULL;
    char **slot = find_string(ctx->strings, ctx->cap_strings, s, n);
    if (*slot)
        return *slot;
    char *copy = malloc(n + 1);
    if (!copy)
        return NULL;
    memcpy(copy, s, n);
    copy[n] = '\0';
    ctx->nstrings++;
    return *slot = copy;
}

const char *kn_intern_n(kn_ctx *ctx, const char *s, size_t n)
{
    assert(!memchr(s, '\0', n));
    const char *found = intern(ctx, s, n);
    if (!found)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "%s", no_memory);
    return found;
}

const char *kn_intern(kn_ctx *ctx, const char *s)
{
    return kn_intern_n(ctx, s, strlen(s));
}

const char *kn_intern_f(kn_ctx *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = format(fmt, args);
    va_end(args);
    const char *found = text ? intern(ctx, text, strlen(text)) : NULL;
    free(text);
    if (!found)
        kn_raise(ctx, KN_ENVIRONMENT, kn_loc_none(), "%s", no_memory);
    return found;
}
