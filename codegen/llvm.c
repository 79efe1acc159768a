/* A module as LLVM's: every function that main reaches once, and the entries of kiln/npu.h. The
   scalar functions are linked in as bitcode; passes run; what comes out is text or an object. Each
   call has an LLVM context of its own, so that threads do not meet. */
#include <llvm-c/Core.h>
#include <stdio.h>

#include "codegen/llvm_internal.h"

static void dispose(void *arg)
{
    ll_resources *r = arg;
    if (r->object)
        LLVMDisposeMemoryBuffer(r->object);
    LLVMDisposeMessage(r->text);
    if (r->builder)
        LLVMDisposeBuilder(r->builder);
    if (r->module)
        LLVMDisposeModule(r->module);
    if (r->layout)
        LLVMDisposeTargetData(r->layout);
    if (r->machine)
        LLVMDisposeTargetMachine(r->machine);
    LLVMContextDispose(r->context);
}

/* Keeps the first error; warnings and remarks go. */
static void note_problem(LLVMDiagnosticInfoRef info, void *arg)
{
    ll_resources *r = arg;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || r->problem[0])
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(r->problem, sizeof r->problem, "%s", text);
    LLVMDisposeMessage(text);
}

static void open_module(ll_emitter *l)
{
    ll_resources *r = KN_NEW(l->arena, ll_resources);
    const char *name = l->options->prefix;
    l->r = r;
    r->context = LLVMContextCreate();
    kn_defer(l->facts.ctx, dispose, r);
    LLVMContextSetDiagnosticHandler(r->context, note_problem, r);
    r->module = LLVMModuleCreateWithNameInContext(name, r->context);
    LLVMSetSourceFileName(r->module, name, strlen(name));
    r->builder = LLVMCreateBuilderInContext(r->context);
    l->context = r->context;
    l->module = r->module;
    l->b = r->builder;
}

static ll_emitter make(kn_arena *a, const kn_module *m, const kn_llvm_options *o)
{
    if (!kn_cg_is_prefix(o->prefix))
        kn_raise(kn_arena_ctx(a), KN_USAGE, kn_loc_none(),
                 "`%s` cannot begin the names of functions", o->prefix);
    return (ll_emitter){.arena = a, .options = o, .facts = kn_cg_facts(a, m, "LLVM")};
}

/* The whole module, optimised. */
static void build(ll_emitter *l)
{
    open_module(l);
    kn_ll_open_target(l);
    kn_ll_functions(l);
    kn_ll_link_scalars(l);
    kn_ll_verify(l);
    kn_ll_optimize(l);
}

void kn_llvm_emit_ir(kn_arena *a, const kn_module *m, const kn_llvm_options *o, kn_str *out)
{
    ll_emitter l = make(kn_arena_create(kn_arena_ctx(a)), m, o);
    build(&l);
    l.r->text = LLVMPrintModuleToString(l.module);
    kn_put(out, l.r->text);
    kn_release(l.facts.ctx, l.r);
    kn_arena_destroy(l.arena);
}

kn_piece kn_llvm_emit_object(kn_arena *a, const kn_module *m, const kn_llvm_options *o)
{
    ll_emitter l = make(kn_arena_create(kn_arena_ctx(a)), m, o);
    build(&l);
    kn_piece object = kn_ll_object(&l);
    void *bytes = kn_alloc(a, object.size);
    memcpy(bytes, object.data, object.size);
    kn_release(l.facts.ctx, l.r);
    kn_arena_destroy(l.arena);
    return (kn_piece){bytes, object.size};
}
