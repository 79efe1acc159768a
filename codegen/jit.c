/* Functions in memory, through LLVM's ORC: a module's object for this very machine, linked against
   a table of what emitted code may call, so that nothing depends on what the process exports. All
   is compiled before kn_jit_compile() returns; afterwards the code is only read. */
#include <llvm-c/Error.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "codegen/llvm_internal.h"

struct kn_jit {
    kn_arena *arena;
    LLVMOrcLLJITRef lljit;
    kn_run_fn run;
    kn_workspace_fn workspace_bytes;
    char problem[256]; /* the last that ORC reported by its side door */
};

typedef void (*code)(void);

#define LIBM(name, nargs) {#name, (code)(name)}, {#name "f", (code)(name##f)},
static const struct import {
    const char *name;
    code code;
} imports[] = {
#include "support/libm.def"
    {"memcpy", (code)memcpy},
    {"memmove", (code)memmove},
    {"memset", (code)memset},
};
#undef LIBM
enum { NIMPORTS = sizeof imports / sizeof *imports };

static void dispose(void *arg)
{
    kn_jit *jit = arg;
    if (jit->lljit)
        LLVMConsumeError(LLVMOrcDisposeLLJIT(jit->lljit));
}

/* Without this ORC prints to stderr. */
static void note_problem(void *arg, LLVMErrorRef error)
{
    kn_jit *jit = arg;
    char *message = LLVMGetErrorMessage(error);
    snprintf(jit->problem, sizeof jit->problem, "%s", message);
    LLVMDisposeErrorMessage(message);
}

static void require(const kn_jit *jit, LLVMErrorRef error, const char *what)
{
    if (error && jit->problem[0]) {
        LLVMConsumeError(error);
        kn_raise(kn_arena_ctx(jit->arena), KN_INTERNAL, kn_loc_none(), "LLVM: %s: %s", what,
                 jit->problem);
    }
    kn_ll_require(jit->arena, error, what);
}

/* LLVM's targets are there: an object was emitted before. */
static void open_jit(kn_jit *jit)
{
    require(jit, LLVMOrcCreateLLJIT(&jit->lljit, NULL), "opening the JIT");
    LLVMOrcExecutionSessionSetErrorReporter(LLVMOrcLLJITGetExecutionSession(jit->lljit),
                                            note_problem, jit);
}

static void define_imports(const kn_jit *jit)
{
    LLVMOrcCSymbolMapPair pairs[NIMPORTS] = {0};
    for (size_t i = 0; i < NIMPORTS; i++) {
        void *address;
        memcpy(&address, &imports[i].code, sizeof address);
        pairs[i].Name = LLVMOrcLLJITMangleAndIntern(jit->lljit, imports[i].name);
        pairs[i].Sym.Address = (LLVMOrcExecutorAddress)(uintptr_t)address;
        pairs[i].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
    }
    LLVMOrcMaterializationUnitRef unit = LLVMOrcAbsoluteSymbols(pairs, NIMPORTS);
    LLVMErrorRef error = LLVMOrcJITDylibDefine(LLVMOrcLLJITGetMainJITDylib(jit->lljit), unit);
    if (error)
        LLVMOrcDisposeMaterializationUnit(unit);
    require(jit, error, "defining what the code may call");
}

static void add_object(const kn_jit *jit, kn_piece object)
{
    LLVMMemoryBufferRef buffer =
        LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data, object.size, "object");
    LLVMOrcJITDylibRef library = LLVMOrcLLJITGetMainJITDylib(jit->lljit);
    require(jit, LLVMOrcLLJITAddObjectFile(jit->lljit, library, buffer), "adding an object");
}

static void *look_up(const kn_jit *jit, const char *name)
{
    LLVMOrcExecutorAddress address = 0;
    require(jit, LLVMOrcLLJITLookup(jit->lljit, &address, name), "linking");
    return (void *)(uintptr_t)address;
}

static void find_entries(kn_jit *jit)
{
    void *run = look_up(jit, "kiln_run"), *bytes = look_up(jit, "kiln_workspace_bytes");
    memcpy(&jit->run, &run, sizeof run);
    memcpy(&jit->workspace_bytes, &bytes, sizeof bytes);
}

kn_jit *kn_jit_compile(kn_ctx *ctx, const kn_module *m, int level)
{
    kn_llvm_options o = {.prefix = "kiln", .cpu = "native", .level = level};
    kn_arena *arena = kn_arena_create(ctx);
    kn_jit *jit = KN_NEW(arena, kn_jit);
    jit->arena = arena;
    kn_defer(ctx, dispose, jit);
    kn_arena *scratch = kn_arena_create(ctx);
    kn_piece object = kn_llvm_emit_object(scratch, m, &o);
    open_jit(jit);
    define_imports(jit);
    add_object(jit, object);
    find_entries(jit);
    kn_arena_destroy(scratch);
    return jit;
}

void kn_jit_close(kn_ctx *ctx, kn_jit *jit)
{
    if (!jit)
        return;
    kn_arena *arena = jit->arena;
    kn_release(ctx, jit);
    kn_arena_destroy(arena);
}

kn_run_fn kn_jit_run(const kn_jit *jit)
{
    return jit->run;
}

kn_workspace_fn kn_jit_workspace_bytes(const kn_jit *jit)
{
    return jit->workspace_bytes;
}
