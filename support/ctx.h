/* A context: what one caller's work in one thread needs. It owns the diagnostics, the interned
   strings and the way out of a failure.

   The library's inner functions do not return statuses. A user's mistake, or memory that cannot be
   had, is raised with kn_raise(): the message is recorded and control unwinds (longjmp) to the
   innermost kn_protect(), which runs what was registered with kn_defer() since and returns the
   status. Arenas created inside die with it only if they were deferred: kn_arena_create() defers
   its own destruction. Whoever holds a foreign resource (a mapping, an isl object, an LLVM module)
   across a call that may raise registers it with kn_defer().

   Every entry of the public API protects. A raise outside any protection is a defect of Kiln: an
   assert stops debug builds; in a release build, which must not end the host's process, the calling
   thread rests for good. */
#ifndef KN_SUPPORT_CTX_H
#define KN_SUPPORT_CTX_H

#include <stdarg.h>

#include "kiln/base.h"

#if defined(__GNUC__)
#define KN_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define KN_PRINTF(fmt, first)
#endif

/* Where a thing came from: a place in a text, a node or tensor of a model, or both. Cheap to copy.
 */
typedef struct {
    const char *file;  /* interned, or NULL */
    int line, column;  /* 1-based; 0: none */
    const char *where; /* interned name of a node, tensor or JSON path, or NULL */
} kn_loc;

/* Runs body(arg). Returns KN_OK, or the status that was raised inside. Deferred actions registered
   inside are run on failure, last first; on success they stay registered with the enclosing
   protection (or the context). */
kn_status kn_protect(kn_ctx *ctx, void (*body)(void *), void *arg);

/* Records an error and unwinds. Never returns. */
_Noreturn void kn_raise(kn_ctx *ctx, kn_status status, kn_loc loc, const char *fmt, ...)
    KN_PRINTF(4, 5);
/* Unwinds with the errors already recorded by kn_error(). */
_Noreturn void kn_raise_again(kn_ctx *ctx, kn_status status);
/* Records without unwinding: for listing all faults of one kind before kn_raise_again(). */
void kn_error(kn_ctx *ctx, kn_status status, kn_loc loc, const char *fmt, ...) KN_PRINTF(4, 5);
void kn_warn(kn_ctx *ctx, kn_loc loc, const char *fmt, ...) KN_PRINTF(3, 4);
void kn_note(kn_ctx *ctx, kn_loc loc, const char *fmt, ...) KN_PRINTF(3, 4);

/* fn(arg) runs when the innermost protection fails, or when the context is destroyed, or at
   kn_release(). It must not raise. When there is no memory to register it, it runs at once and
   KN_ENVIRONMENT is raised. */
void kn_defer(kn_ctx *ctx, void (*fn)(void *), void *arg);
/* Runs the action deferred last for arg now and forgets it. There must be one. */
void kn_release(kn_ctx *ctx, const void *arg);

/* Whether fn is deferred with an argument for which is(arg, env) holds. */
bool kn_is_deferred(const kn_ctx *ctx, void (*fn)(void *), bool (*is)(const void *arg, void *env),
                    void *env);

/* For the entries of the API: whether an argument that must be given is not NULL. An error names it
   where there is a context; without one it is false. */
bool kn_given(kn_ctx *ctx, const void *argument, const char *name);
/* In the messages so far the file `from` is called `to`; both are interned. */
void kn_diag_rename_file(kn_ctx *ctx, const char *from, const char *to);

/* One pointer per distinct string, alive as long as the context: compare interned strings with ==.
 */
const char *kn_intern(kn_ctx *ctx, const char *s);
const char *kn_intern_n(kn_ctx *ctx, const char *s, size_t n); /* no NUL among the n */
const char *kn_intern_f(kn_ctx *ctx, const char *fmt, ...) KN_PRINTF(2, 3);

static inline kn_loc kn_loc_none(void)
{
    return (kn_loc){0};
}

#endif
