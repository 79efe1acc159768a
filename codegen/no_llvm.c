/* What codegen.h offers through LLVM, in a build without it. */
#include "codegen/codegen.h"

static _Noreturn void fail(kn_ctx *ctx, const char *what)
{
    kn_raise(ctx, KN_UNSUPPORTED, kn_loc_none(),
             "built without LLVM: %s is missing; on Debian, install llvm-19-dev and clang-19 and "
             "build Kiln again",
             what);
}

void kn_llvm_emit_ir(kn_arena *a, const kn_module *m, const kn_llvm_options *o, kn_str *out)
{
    (void)m;
    (void)o;
    (void)out;
    fail(kn_arena_ctx(a), "LLVM assembly (ll)");
}

kn_piece kn_llvm_emit_object(kn_arena *a, const kn_module *m, const kn_llvm_options *o)
{
    (void)m;
    (void)o;
    fail(kn_arena_ctx(a), "native code (o, a, so, kiln)");
}

kn_jit *kn_jit_compile(kn_ctx *ctx, const kn_module *m, int level)
{
    (void)m;
    (void)level;
    fail(ctx, "the JIT");
}

void kn_jit_close(kn_ctx *ctx, kn_jit *jit)
{
    (void)ctx;
    (void)jit;
}

kn_run_fn kn_jit_run(const kn_jit *jit)
{
    (void)jit;
    return NULL;
}

kn_workspace_fn kn_jit_workspace_bytes(const kn_jit *jit)
{
    (void)jit;
    return NULL;
}
