/* Machines, passes and emission: what of LLVM knows no loop IR. */
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>

#include "codegen/llvm_internal.h"

extern const unsigned char kn_host_bitcode[];
extern const size_t kn_host_bitcode_size;

#ifdef NDEBUG
enum { VERIFIES = 0 };
#else
enum { VERIFIES = 1 };
#endif

/* ---- Errors ---- */

/* Copies a message of LLVM's into the arena and frees it. */
static const char *take(kn_arena *a, char *message)
{
    const char *copy = kn_strdup(a, message ? message : "no reason given");
    LLVMDisposeMessage(message);
    return copy;
}

void kn_ll_require(kn_arena *a, LLVMErrorRef error, const char *what)
{
    if (!error)
        return;
    char *message = LLVMGetErrorMessage(error);
    const char *copy = kn_strdup(a, message);
    LLVMDisposeErrorMessage(message);
    kn_raise(kn_arena_ctx(a), KN_INTERNAL, kn_loc_none(), "LLVM: %s: %s", what, copy);
}

static void require_no_problem(const ll_emitter *l)
{
    if (l->r->problem[0])
        kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "LLVM: %s", l->r->problem);
}

/* ---- The machine ---- */

/* LLVM's registry of targets is the process's; filled in once, it is only read. */
static void initialize_targets(void)
{
    LLVMInitializeAllTargetInfos();
    LLVMInitializeAllTargets();
    LLVMInitializeAllTargetMCs();
    LLVMInitializeAllAsmPrinters();
}

static LLVMTargetRef find_target(const ll_emitter *l, const char *triple)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    LLVMTargetRef target = NULL;
    char *message = NULL;
    pthread_once(&once, initialize_targets);
    if (LLVMGetTargetFromTriple(triple, &target, &message))
        kn_raise(l->facts.ctx, KN_UNSUPPORTED, kn_loc_none(), "LLVM has no target `%s`: %s", triple,
                 take(l->arena, message));
    return target;
}

/* LLVM prints to stderr when it does not know a processor: only these get that far. */
static const char *cpu_name(const ll_emitter *l, const char *triple, const char *cpu)
{
    static const char *const levels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    bool x86_64 = strncmp(triple, "x86_64", 6) == 0;
    if (!cpu || strcmp(cpu, "generic") == 0)
        return x86_64 ? levels[0] : "generic";
    if (!l->options->triple && strcmp(cpu, "native") == 0)
        return take(l->arena, LLVMGetHostCPUName());
    for (size_t i = 0; x86_64 && i < sizeof levels / sizeof *levels; i++) {
        if (strcmp(cpu, levels[i]) == 0)
            return cpu;
    }
    kn_raise(l->facts.ctx, KN_UNSUPPORTED, kn_loc_none(),
             "no processor `%s` for %s: expected generic, native%s", cpu, triple,
             x86_64 ? ", x86-64, x86-64-v2, x86-64-v3 or x86-64-v4" : "");
}

void kn_ll_open_target(const ll_emitter *l)
{
    const kn_llvm_options *o = l->options;
    const char *triple = take(l->arena, o->triple ? LLVMNormalizeTargetTriple(o->triple)
                                                  : LLVMGetDefaultTargetTriple());
    bool native = o->cpu && strcmp(o->cpu, "native") == 0;
    LLVMTargetRef target = find_target(l, triple);
    const char *cpu = cpu_name(l, triple, o->cpu);
    const char *features = native ? take(l->arena, LLVMGetHostCPUFeatures()) : "";
    LLVMCodeGenOptLevel level = o->level <= 0   ? LLVMCodeGenLevelNone
                                : o->level == 1 ? LLVMCodeGenLevelLess
                                : o->level == 2 ? LLVMCodeGenLevelDefault
                                                : LLVMCodeGenLevelAggressive;
    l->r->machine = LLVMCreateTargetMachine(target, triple, cpu, features, level, LLVMRelocPIC,
                                            LLVMCodeModelSmall);
    if (!l->r->machine)
        kn_raise(l->facts.ctx, KN_UNSUPPORTED, kn_loc_none(), "LLVM cannot emit code for %s",
                 triple);
    l->r->layout = LLVMCreateTargetDataLayout(l->r->machine);
    LLVMSetModuleDataLayout(l->module, l->r->layout);
    LLVMSetTarget(l->module, triple);
}

/* ---- The scalar functions ---- */

/* Their bodies are read when they are linked; and linked only when they are called. */
static LLVMModuleRef read_scalars(const ll_emitter *l)
{
    if (kn_host_bitcode_size == 0)
        kn_raise(l->facts.ctx, KN_UNSUPPORTED, kn_loc_none(),
                 "built without clang-19: the scalar functions are missing that LLVM code needs");
    LLVMMemoryBufferRef bytes = LLVMCreateMemoryBufferWithMemoryRange(
        (const char *)kn_host_bitcode, kn_host_bitcode_size, "scalars", false);
    LLVMModuleRef scalars = NULL;
    if (LLVMGetBitcodeModuleInContext2(l->context, bytes, &scalars)) {
        LLVMDisposeMemoryBuffer(bytes);
        require_no_problem(l);
        kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "LLVM cannot read the scalar functions");
    }
    LLVMSetModuleDataLayout(scalars, l->r->layout);
    LLVMSetTarget(scalars, LLVMGetTarget(l->module));
    for (LLVMValueRef f = LLVMGetFirstFunction(scalars); f; f = LLVMGetNextFunction(f)) {
        if (!LLVMIsDeclaration(f))
            LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
    }
    return scalars;
}

/* What the module calls of them. */
static bool is_missing(LLVMValueRef f)
{
    size_t n;
    return LLVMIsDeclaration(f) && strncmp(LLVMGetValueName2(f, &n), "npu_", 4) == 0;
}

/* The machine is the module's, not that which the bitcode was made for. And what a kernel reads
   without having set it, and does not use, may be handed on. */
static void adopt(LLVMValueRef f)
{
    unsigned noundef = LLVMGetEnumAttributeKindForName("noundef", 7);
    static const char *const machine[] = {"target-cpu", "target-features", "tune-cpu"};
    unsigned place = (unsigned)LLVMAttributeFunctionIndex;
    LLVMSetLinkage(f, LLVMInternalLinkage);
    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
        LLVMRemoveStringAttributeAtIndex(f, place, machine[i], (unsigned)strlen(machine[i]));
    LLVMRemoveEnumAttributeAtIndex(f, place, LLVMGetEnumAttributeKindForName("uwtable", 7));
    for (unsigned i = 0; i <= LLVMCountParams(f); i++)
        LLVMRemoveEnumAttributeAtIndex(f, i, noundef);
}

static void adopt_all(const ll_emitter *l)
{
    size_t n;
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f)) {
        if (is_missing(f))
            kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "no scalar function is called %s",
                     LLVMGetValueName2(f, &n));
        if (LLVMGetLinkage(f) == LLVMLinkOnceODRLinkage) /* none but those that were linked */
            adopt(f);
    }
}

void kn_ll_link_scalars(const ll_emitter *l)
{
    LLVMValueRef f = LLVMGetFirstFunction(l->module);
    while (f && !is_missing(f))
        f = LLVMGetNextFunction(f);
    if (!f)
        return;
    bool failed = LLVMLinkModules2(l->module, read_scalars(l));
    require_no_problem(l);
    if (failed)
        kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "LLVM cannot link the scalar functions");
    adopt_all(l);
}

/* ---- Passes ---- */

/* Calls of a function as something else than it is: LLVM's own verifier lets them pass. */
static void verify_calls(const ll_emitter *l, LLVMValueRef f)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    size_t n;
    for (LLVMUseRef use = LLVMGetFirstUse(f); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMIsACallInst(user) && LLVMGetCalledFunctionType(user) != type)
            kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "a call does not fit %s",
                     LLVMGetValueName2(f, &n));
    }
}

void kn_ll_verify(const ll_emitter *l)
{
    char *message = NULL;
    if (!VERIFIES)
        return;
    if (LLVMVerifyModule(l->module, LLVMReturnStatusAction, &message))
        kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "LLVM: %s", take(l->arena, message));
    LLVMDisposeMessage(message);
    for (LLVMValueRef f = LLVMGetFirstFunction(l->module); f; f = LLVMGetNextFunction(f))
        verify_calls(l, f);
}

void kn_ll_optimize(const ll_emitter *l)
{
    static const char *const pipelines[] = {"default<O0>", "default<O1>", "default<O2>",
                                            "default<O3>"};
    int level = l->options->level;
    level = level < 0 ? 0 : level > 3 ? 3 : level;
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetSLPVectorization(options, level >= 2);
    LLVMErrorRef error = LLVMRunPasses(l->module, pipelines[level], l->r->machine, options);
    LLVMDisposePassBuilderOptions(options);
    kn_ll_require(l->arena, error, "optimising");
    require_no_problem(l);
}

kn_piece kn_ll_object(const ll_emitter *l)
{
    char *message = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (LLVMTargetMachineEmitToMemoryBuffer(l->r->machine, l->module, LLVMObjectFile, &message,
                                            &buffer))
        kn_raise(l->facts.ctx, KN_INTERNAL, kn_loc_none(), "LLVM: %s", take(l->arena, message));
    l->r->object = buffer;
    require_no_problem(l);
    kn_piece object = {.size = LLVMGetBufferSize(buffer)};
    void *bytes = kn_alloc(l->arena, object.size);
    memcpy(bytes, LLVMGetBufferStart(buffer), object.size);
    object.data = bytes;
    return object;
}
