/* The LLVM back end: modules compiled in memory, and to objects that the runtime's loader takes,
   give bit by bit what the interpreter and the C back end give. */
#include "loop_samples.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

#include "runtime/object.h"

typedef struct {
    fixture *f;
    const kn_module *m;
    const char *text, *prefix, *triple, *cpu, *path;
    int level;
    kn_piece object;
    kn_jit *jit;
} task;

/* Runs a body that must not fail. */
static void must(fixture *f, void (*body)(void *), void *arg)
{
    if (kn_protect(f->ctx, body, arg) != KN_OK)
        fail_msg("%s", last_message(f->ctx));
}

static void parse_text(void *arg)
{
    task *t = arg;
    kn_module *m = kn_module_parse(t->f->arena, "sample", t->text, strlen(t->text));
    kn_module_verify(t->f->ctx, m);
    t->m = m;
}

static const kn_module *parse(fixture *f, const char *text)
{
    task t = {.f = f, .text = text};
    must(f, parse_text, &t);
    return t.m;
}

#if KILN_HAVE_LLVM

/* ---- Ways to compile ---- */

typedef struct {
    const char *name;
    kn_run_fn run;
    kn_workspace_fn workspace_bytes;
} way;

static void compile_jit(void *arg)
{
    task *t = arg;
    t->jit = kn_jit_compile(t->f->ctx, t->m, t->level);
}

static way in_memory(fixture *f, const kn_module *m, int level)
{
    static const char *const names[] = {"JIT -O0", "JIT -O1", "JIT -O2", "JIT -O3"};
    task t = {.f = f, .m = m, .level = level};
    must(f, compile_jit, &t);
    return (way){names[level], kn_jit_run(t.jit), kn_jit_workspace_bytes(t.jit)};
}

static void emit_object(void *arg)
{
    task *t = arg;
    kn_llvm_options o = {.prefix = t->prefix ? t->prefix : "p",
                         .triple = t->triple,
                         .cpu = t->cpu,
                         .level = t->level};
    t->object = kn_llvm_emit_object(t->f->arena, t->m, &o);
}

static way loaded(fixture *f, const kn_module *m)
{
    task t = {.f = f, .m = m, .level = 2};
    must(f, emit_object, &t);
    kn_object *o = kn_object_load(f->ctx, kn_loc_none(), t.object.data, t.object.size, NULL, 0);
    way w = {"loaded object", (kn_run_fn)kn_object_find(o, "p_run"),
             (kn_workspace_fn)kn_object_find(o, "p_workspace_bytes")};
    assert_true(w.run && w.workspace_bytes);
    return w;
}

static void *symbol(void *library, const char *name)
{
    void *at = dlsym(library, name);
    assert_non_null(at);
    return at;
}

static way opened(const char *name, const char *path)
{
    way w = {.name = name};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL); /* stays: its code is called later */
    if (!library)
        fail_msg("%s", dlerror());
    void *run = symbol(library, "p_run"), *bytes = symbol(library, "p_workspace_bytes");
    memcpy(&w.run, &run, sizeof run);
    memcpy(&w.workspace_bytes, &bytes, sizeof bytes);
    return w;
}

static void write_text(fixture *f, const char *path, const kn_str *text)
{
    kn_file_write(f->ctx, path, kn_str_get(text), text->n);
}

static way in_c(fixture *f, const kn_module *m)
{
    kn_str code = kn_str_make(f->arena), header = kn_str_make(f->arena);
    const char *dir = kn_temp_dir(f->ctx), *cc = getenv("CC");
    kn_c_module(f->arena, m, &(kn_c_options){.prefix = "p"}, &code, &header);
    write_text(f, kn_format(f->arena, "%s/p.c", dir), &code);
    write_text(f, kn_format(f->arena, "%s/p.h", dir), &header);
    const char *command =
        kn_format(f->arena,
                  "%s -std=c11 -O2 -fPIC -shared -ffp-contract=off -I%s/include -I%s/runtime "
                  "%s/p.c -o %s/p.so -lm",
                  cc ? cc : "cc", KILN_SOURCE_DIR, KILN_SOURCE_DIR, dir, dir);
    assert_int_equal(system(command), 0);
    return opened("C", kn_format(f->arena, "%s/p.so", dir));
}

static bool have(const char *program)
{
    char command[64];
    snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* ---- Agreement ---- */

static void compare_way(fixture *f, const char *name, const kn_module *m, const int64_t *sizes,
                        way w, size_t shift)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const sample_data *expected = sample_make(f->arena, m, sizes, seed, 0);
        const sample_data *found = sample_make(f->arena, m, sizes, seed, shift);
        if (sample_interpret(f->ctx, m, expected) != KN_OK)
            fail_msg("%s: %s", name, last_message(f->ctx));
        const char *message = sample_call(f->arena, w.run, w.workspace_bytes, found);
        if (message)
            fail_msg("%s, %s: %s", name, w.name, message);
        sample_compare(name, w.name, expected, found);
    }
}

static void samples_agree(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < NSAMPLES; i++) {
        const loop_sample *s = &loop_samples[i];
        const kn_module *m = parse(f, s->text);
        compare_way(f, s->name, m, s->sizes, in_memory(f, m, 0), 0);
        compare_way(f, s->name, m, s->sizes, in_memory(f, m, 2), 0);
        compare_way(f, s->name, m, s->sizes, in_memory(f, m, 3), 1);
        compare_way(f, s->name, m, s->sizes, loaded(f, m), 0);
        compare_way(f, s->name, m, s->sizes, in_c(f, m), 0);
    }
}

/* ---- Every operator and cast of every type ---- */

static const char *const types[] = {"f32", "f64", "f16", "bf16", "i4",  "u4",  "i8",  "u8",
                                    "i16", "u16", "i32", "u32",  "i64", "u64", "bool"};
enum { NTYPES = sizeof types / sizeof *types };

static bool takes(kn_scalar op, kn_dtype t)
{
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return t != KN_BOOL;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(t);
    case KN_CLASS_LOGIC: return t == KN_BOOL;
    case KN_CLASS_BITS:
        return kn_dtype_is_integer(t) || (t == KN_BOOL && op != KN_OP_SHL && op != KN_OP_SHR);
    case KN_CLASS_COMPARE:
    case KN_CLASS_SELECT: return true;
    }
    return false;
}

static void put_application(kn_str *s, kn_scalar op)
{
    const kn_scalar_info *info = kn_scalar_get(op);
    if (op == KN_OP_SELECT)
        kn_put(s, "select(a[i] < b[i], b[i], a[i])");
    else if (info->arity == 1)
        kn_putf(s, "%s(a[i])", info->text);
    else if (info->precedence)
        kn_putf(s, "a[i] %s b[i]", info->text);
    else
        kn_putf(s, "%s(a[i], b[i])", info->text);
}

static bool yields_bool(kn_scalar op)
{
    kn_scalar_class c = kn_scalar_get(op)->class;
    return c == KN_CLASS_COMPARE || c == KN_CLASS_LOGIC;
}

/* Main calls one kernel, whose parameters (after n) and arguments are its own. */
static const char *with_main(kn_arena *a, const kn_str *params, const kn_str *args,
                             const kn_str *body)
{
    const char *p = kn_str_get(params);
    return kn_format(a,
                     "module @m { func @k(n: index, %s) {\n%s}\n"
                     "func @main(n: index in 1:4096, %s) workspace 0 { call k(n, %s) } }",
                     p, kn_str_get(body), p, kn_str_get(args));
}

/* y_N = op(a, b), a loop each. */
static const char *operators_text(kn_arena *a, const char *type, kn_dtype t)
{
    kn_str params = kn_str_make(a), args = params, body = params;
    kn_putf(&params, "in a: %s[n] @ddr, in b: %s[n] @ddr", type, type);
    kn_put(&args, "a, b");
    for (int op = 0; op < KN_SCALAR_COUNT; op++) {
        if (!takes((kn_scalar)op, t))
            continue;
        kn_putf(&params, ", out y%d: %s[n] @ddr", op, yields_bool((kn_scalar)op) ? "bool" : type);
        kn_putf(&args, ", y%d", op);
        kn_putf(&body, "for i in 0:n { y%d[i] = ", op);
        put_application(&body, (kn_scalar)op);
        kn_put(&body, " }\n");
    }
    return with_main(a, &params, &args, &body);
}

static void operators_agree(void **state)
{
    fixture *f = *state;
    static const int64_t sizes[] = {777};
    for (int i = 0; i < NTYPES; i++) {
        kn_dtype t;
        assert_true(kn_dtype_parse(types[i], strlen(types[i]), &t));
        const kn_module *m = parse(f, operators_text(f->arena, types[i], t));
        compare_way(f, types[i], m, sizes, in_memory(f, m, 2), 0);
    }
}

static bool may_bitcast(kn_dtype from, kn_dtype to)
{
    return kn_dtype_bits(from) == kn_dtype_bits(to) && from != KN_BOOL && to != KN_BOOL;
}

static const char *casts_text(kn_arena *a, const char *type, kn_dtype from)
{
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    kn_str params = kn_str_make(a), args = params, body = params;
    kn_putf(&params, "in a: %s[n] @ddr", type);
    kn_put(&args, "a");
    for (int i = 0; i < NTYPES; i++) {
        kn_dtype to;
        kn_dtype_parse(types[i], strlen(types[i]), &to);
        for (int mode = 0; mode < 3; mode++) {
            if (mode == 2 && !may_bitcast(from, to))
                continue;
            kn_putf(&params, ", out y%d_%d: %s[n] @ddr", i, mode, types[i]);
            kn_putf(&args, ", y%d_%d", i, mode);
            kn_putf(&body, "for i in 0:n { y%d_%d[i] = %s(%s, a[i]) }\n", i, mode, modes[mode],
                    types[i]);
        }
    }
    return with_main(a, &params, &args, &body);
}

static void casts_agree(void **state)
{
    fixture *f = *state;
    static const int64_t sizes[] = {555};
    for (int i = 0; i < NTYPES; i++) {
        kn_dtype from;
        kn_dtype_parse(types[i], strlen(types[i]), &from);
        const kn_module *m = parse(f, casts_text(f->arena, types[i], from));
        compare_way(f, types[i], m, sizes, in_memory(f, m, 2), 0);
    }
}

/* Stores that update, of every type. */
static void updates_agree(void **state)
{
    fixture *f = *state;
    static const int64_t sizes[] = {99};
    for (int i = 0; i < NTYPES - 1; i++) {
        const char *text = kn_format(
            f->arena,
            "module @m { func @main(n: index in 1:4096, in a: %s[n] @ddr, inout p: %s[n] @ddr, "
            "inout q: %s[n] @ddr,"
            " inout r: %s[n] @ddr, inout s: %s[n] @ddr) workspace 0 {"
            " for i in 0:n { p[i] += a[i] q[i] *= a[i] r[i] max= a[i] s[i] min= a[i] } } }",
            types[i], types[i], types[i], types[i], types[i]);
        const kn_module *m = parse(f, text);
        compare_way(f, types[i], m, sizes, in_memory(f, m, 2), 0);
    }
}

/* Division of indices is floor, and by 0 it is 0. */
static void indices_agree(void **state)
{
    fixture *f = *state;
    static const int64_t sizes[] = {50, 7};
    const kn_module *m = parse(
        f,
        "module @m { func @main(n: index in 1:4096, d: index in -9:9, in a: i64[n] @ddr, out y: "
        "i64[n, 8] @ddr)"
        " workspace 0 { for i in 0:n { let x: index = cast(index, a[i]) % 1000 let z: index = x - "
        "i * 40"
        " y[i, 0] = cast(i64, z / 7) y[i, 1] = cast(i64, z % 7) y[i, 2] = cast(i64, i / 4 + i % 4)"
        " y[i, 3] = cast(i64, z / d) y[i, 4] = cast(i64, z % d) y[i, 5] = cast(i64, min(z, i) * "
        "max(x, d))"
        " y[i, 6] = cast(i64, select(z < 0, -z, z + 1)) y[i, 7] = cast(i64, floordiv(z, -3) + "
        "abs(z)) } } }");
    compare_way(f, "indices", m, sizes, in_memory(f, m, 2), 0);
    compare_way(f, "indices", m, sizes, in_c(f, m), 0);
}

/* ---- Failing runs ---- */

static const char failing[] =
    "module @m { func @k(n: index in 1:40, in I: i64[n] @ddr, in x: f32[n] @ddr, out y: f32[n] "
    "@ddr) {"
    " for i in 0:n { let r: index = cast(index, I[i]) check 0 <= r && r < 3 \"I is \\\"out\\\" of "
    "range\""
    " y[i] = x[r] } }"
    " func @main(n: index in 3:50, in I: i64[n] @ddr, in x: f32[n] @ddr, in c: f32[n] @ddr,"
    " out d: f32[n] @ddr aliases c, out y: f32[n] @ddr) workspace n*8 { call k(n, I, x, y) } }";

static void check_failures(fixture *f, const kn_module *m, way w)
{
    static const int64_t small = 2, fine = 3, large = 45;
    sample_data *d = sample_make(f->arena, m, &fine, 5, 0);
    int64_t *indices = d->buffers[0].data;
    indices[0] = indices[1] = indices[2] = 2;
    assert_null(sample_call(f->arena, w.run, w.workspace_bytes, d));
    indices[1] = 3;
    assert_string_equal(sample_call(f->arena, w.run, w.workspace_bytes, d),
                        "I is \"out\" of range");
    indices[1] = INT64_MIN;
    assert_string_equal(sample_call(f->arena, w.run, w.workspace_bytes, d),
                        "I is \"out\" of range");
    assert_int_equal(w.workspace_bytes(&fine), 24);
    assert_int_equal(w.workspace_bytes(&small), -1);
    d->sizes[0] = small;
    assert_string_equal(sample_call(f->arena, w.run, w.workspace_bytes, d),
                        "size n is out of its bounds 3:50");
    d = sample_make(f->arena, m, &large, 5, 0);
    assert_string_equal(sample_call(f->arena, w.run, w.workspace_bytes, d),
                        "k: n is out of its bounds 1:40");
    d->buffers[3] = d->buffers[4];
    assert_string_equal(sample_call(f->arena, w.run, w.workspace_bytes, d),
                        "d updates c: both take one address");
}

static void failures_have_one_message(void **state)
{
    fixture *f = *state;
    const kn_module *m = parse(f, failing);
    check_failures(f, m, in_memory(f, m, 2));
    check_failures(f, m, loaded(f, m));
    check_failures(f, m, in_c(f, m));
}

static void emit_ir(void *arg)
{
    task *t = arg;
    kn_str out = kn_str_make(t->f->arena);
    kn_llvm_options o = {.prefix = t->prefix, .level = t->level};
    kn_llvm_emit_ir(t->f->arena, t->m, &o, &out);
    t->object = (kn_piece){kn_str_get(&out), out.n};
}

static void assert_refused(task *t, kn_status status, const char *message)
{
    assert_int_equal(kn_protect(t->f->ctx, emit_object, t), status);
    if (!strstr(last_message(t->f->ctx), message))
        fail_msg("expected: %s; found: %s", message, last_message(t->f->ctx));
}

static void what_cannot_be_compiled_is_refused(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .m = parse(f, loop_samples[0].text), .prefix = "9"};
    assert_refused(&t, KN_USAGE, "`9` cannot begin the names of functions");
    t.prefix = "p";
    t.cpu = "z80";
    assert_refused(&t, KN_UNSUPPORTED, "no processor `z80` for ");
    t.triple = "pdp11-dec-unix";
    assert_refused(&t, KN_UNSUPPORTED, "LLVM has no target `pdp11-dec-unix`");
    t = (task){
        .f = f,
        .m = parse(f, "module @m { func @main(in x: f32[4] @ddr) workspace 0 { call mma(x) } }")};
    assert_refused(&t, KN_UNSUPPORTED, "call of `mma`, of which no meaning is known");
    t.m = parse(f, "module @m { func @main(in x: f32[4] @ddr) workspace 0 { alloc t: f32[4] @ddr "
                   "t[0] = x[0] } }");
    assert_refused(&t, KN_INTERNAL, "`t` in @ddr is not planned in main's workspace");
}

/* ---- What is emitted ---- */

static void emission_is_deterministic(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < NSAMPLES; i++) {
        task x = {.f = f, .m = parse(f, loop_samples[i].text), .prefix = "p", .level = 2}, y = x;
        must(f, emit_object, &x);
        must(f, emit_object, &y);
        assert_int_equal(x.object.size, y.object.size);
        assert_memory_equal(x.object.data, y.object.data, x.object.size);
        must(f, emit_ir, &x);
        must(f, emit_ir, &y);
        assert_string_equal(x.object.data, y.object.data);
        assert_non_null(strstr(x.object.data, "i32 @p_run(ptr"));
        assert_non_null(strstr(x.object.data, "i64 @p_workspace_bytes(ptr"));
        assert_non_null(strstr(x.object.data, "void @p_bind_weights(ptr"));
        assert_null(strstr(x.object.data, "@npu_"));
    }
}

/* Lines of a program's output that hold none of some words; -1 when the program is missing. */
static int lines_without(fixture *f, const char *command, const char *const *words, int n)
{
    char line[512];
    int odd = 0;
    FILE *in = popen(command, "r");
    assert_non_null(in);
    while (fgets(line, sizeof line, in)) {
        bool known = false;
        for (int i = 0; i < n; i++)
            known = known || strstr(line, words[i]);
        odd += !known;
        if (!known)
            print_message("%s", line);
    }
    (void)f;
    return pclose(in) == 0 ? odd : -1;
}

static void objects_have_the_promised_relocations(void **state)
{
    fixture *f = *state;
    static const char *const words[] = {"R_X86_64_PLT32", "R_X86_64_PC32"};
    const char *path = kn_format(f->arena, "%s/p.o", kn_temp_dir(f->ctx));
    if (!have("readelf"))
        skip();
    for (int i = 0; i < NSAMPLES; i++) {
        task t = {
            .f = f, .m = parse(f, loop_samples[i].text), .triple = "x86_64-linux-gnu", .level = 3};
        must(f, emit_object, &t);
        kn_file_write(f->ctx, path, t.object.data, t.object.size);
        const char *command =
            kn_format(f->arena, "readelf -rW %s | grep '^[0-9a-f]\\{16\\}' || true", path);
        assert_int_equal(lines_without(f, command, words, 2), 0);
        kn_object_check(f->ctx, kn_loc_none(), t.object.data, t.object.size, NULL, 0);
    }
}

static void objects_for_aarch64_relocate(void **state)
{
    fixture *f = *state;
    for (int i = 0; i < NSAMPLES; i++) {
        task t = {
            .f = f, .m = parse(f, loop_samples[i].text), .triple = "aarch64-linux-gnu", .level = 2};
        must(f, emit_object, &t);
        kn_object_check(f->ctx, kn_loc_none(), t.object.data, t.object.size, NULL, 0);
    }
}

/* ---- Files ---- */

static void link_shared(void *arg)
{
    task *t = arg;
    kn_link_shared(t->f->ctx, t->object, t->path);
}

static void archive(void *arg)
{
    task *t = arg;
    kn_archive(t->f->ctx, t->object, t->path);
}

static void libraries_are_made(void **state)
{
    fixture *f = *state;
    const loop_sample *s = &loop_samples[1];
    const char *dir = kn_temp_dir(f->ctx);
    task t = {.f = f, .m = parse(f, s->text), .level = 2};
    must(f, emit_object, &t);
    if (!have("ld") || !have("ar"))
        skip();
    t.path = kn_format(f->arena, "%s/p.so", dir);
    must(f, link_shared, &t);
    compare_way(f, s->name, t.m, s->sizes, opened("shared library", t.path), 0);
    t.path = kn_format(f->arena, "%s/p.a", dir);
    must(f, archive, &t);
    kn_file *first = kn_file_map(f->ctx, t.path);
    assert_memory_equal(first->data, "!<arch>\n", 8);
    must(f, archive, &t);
    kn_file *second = kn_file_map(f->ctx, t.path);
    assert_int_equal(first->size, second->size);
    assert_memory_equal(first->data, second->data, first->size);
}

static void programs_that_fail_or_are_missing_are_named(void **state)
{
    fixture *f = *state;
    const char *dir = kn_temp_dir(f->ctx);
    char *path = strdup(getenv("PATH"));
    task t = {.f = f, .object = {"nonsense", 8}, .path = kn_format(f->arena, "%s/x", dir)};
    if (have("ld")) {
        assert_int_equal(kn_protect(f->ctx, link_shared, &t), KN_ENVIRONMENT);
        assert_non_null(strstr(last_message(f->ctx), "ld failed: "));
    }
    setenv("PATH", dir, 1);
    assert_int_equal(kn_protect(f->ctx, link_shared, &t), KN_ENVIRONMENT);
    assert_string_equal(last_message(f->ctx), "ld is not installed (on Debian: package binutils)");
    assert_int_equal(kn_protect(f->ctx, archive, &t), KN_ENVIRONMENT);
    assert_string_equal(last_message(f->ctx), "ar is not installed (on Debian: package binutils)");
    setenv("PATH", path, 1);
    free(path);
}

/* ---- Threads ---- */

typedef struct {
    const kn_module *m;
    way w;
    kn_ctx *ctx;
    kn_arena *arena;
    const sample_data *d;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < 50; i++)
        sample_call(w->arena, w->w.run, w->w.workspace_bytes, w->d);
    return NULL;
}

static void threads_share_code(void **state)
{
    fixture *f = *state;
    const loop_sample *s = &loop_samples[1];
    const kn_module *m = parse(f, s->text);
    way w = in_memory(f, m, 2);
    worker workers[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        kn_ctx *ctx = kn_ctx_create();
        kn_arena *a = kn_arena_create(ctx);
        workers[i] = (worker){m, w, ctx, a, sample_make(a, m, s->sizes, 9, 0)};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    sample_compare(s->name, "threads", workers[0].d, workers[1].d);
    for (int i = 0; i < 2; i++)
        kn_ctx_destroy(workers[i].ctx);
}

static void *compile_alone(void *arg)
{
    kn_status *status = arg;
    fixture f = {.ctx = kn_ctx_create()};
    f.arena = kn_arena_create(f.ctx);
    for (int i = 0; i < NSAMPLES && *status == KN_OK; i++) {
        task t = {.f = &f, .text = loop_samples[i].text, .level = 2};
        *status = kn_protect(f.ctx, parse_text, &t);
        if (*status == KN_OK)
            *status = kn_protect(f.ctx, compile_jit, &t);
    }
    kn_ctx_destroy(f.ctx);
    return NULL;
}

static void threads_compile_at_once(void **state)
{
    pthread_t threads[2];
    kn_status status[2] = {KN_OK, KN_OK};
    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, compile_alone, &status[i]), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(status[i], KN_OK);
    }
}

/* A prefix that begins like the scalar functions' names. */
static void entries_keep_their_names(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .m = parse(f, loop_samples[9].text), .prefix = "npu_add", .level = 2};
    must(f, emit_object, &t);
    kn_object *o = kn_object_load(f->ctx, kn_loc_none(), t.object.data, t.object.size, NULL, 0);
    assert_non_null(kn_object_find(o, "npu_add_run"));
    assert_non_null(kn_object_find(o, "npu_add_bind_weights"));
    assert_null(kn_object_find(o, "npu_add_f16"));
}

static void a_jit_can_be_closed(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .m = parse(f, loop_samples[0].text), .level = 1};
    for (int i = 0; i < 3; i++) {
        compile_jit(&t);
        kn_jit_close(f->ctx, t.jit);
    }
    kn_jit_close(f->ctx, NULL);
}

/* ---- Broken objects ---- */

static void check_object(void *arg)
{
    const task *t = arg;
    kn_object_check(t->f->ctx, kn_loc_none(), t->object.data, t->object.size, NULL, 0);
}

static void broken_objects_are_refused(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .m = parse(f, loop_samples[1].text), .level = 2};
    must(f, emit_object, &t);
    size_t n = t.object.size;
    unsigned char *bytes = malloc(n);
    uint64_t seed = 1;
    for (int i = 0; i < 3000; i++) {
        memcpy(bytes, t.object.data, n);
        size_t cut = i % 3 ? n : sample_random(&seed) % n;
        for (uint64_t flips = sample_random(&seed) % 4; flips; flips--)
            bytes[sample_random(&seed) % n] ^= (unsigned char)(1u << sample_random(&seed) % 8);
        unsigned char *exact = malloc(cut ? cut : 1); /* so that reads behind it are seen */
        memcpy(exact, bytes, cut);
        task broken = {.f = f, .object = {exact, cut}};
        kn_status status = kn_protect(f->ctx, check_object, &broken);
        assert_true(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
        kn_diag_clear(f->ctx);
        free(exact);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(samples_agree),
        KN_TEST(operators_agree),
        KN_TEST(casts_agree),
        KN_TEST(updates_agree),
        KN_TEST(indices_agree),
        KN_TEST(failures_have_one_message),
        KN_TEST(what_cannot_be_compiled_is_refused),
        KN_TEST(emission_is_deterministic),
        KN_TEST(objects_have_the_promised_relocations),
        KN_TEST(objects_for_aarch64_relocate),
        KN_TEST(libraries_are_made),
        KN_TEST(programs_that_fail_or_are_missing_are_named),
        KN_TEST(threads_share_code),
        KN_TEST(threads_compile_at_once),
        KN_TEST(entries_keep_their_names),
        KN_TEST(a_jit_can_be_closed),
        KN_TEST(broken_objects_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void emit(void *arg)
{
    task *t = arg;
    kn_llvm_emit_object(t->f->arena, t->m, &(kn_llvm_options){.prefix = "p"});
}

static void compile(void *arg)
{
    task *t = arg;
    t->jit = kn_jit_compile(t->f->ctx, t->m, 2);
}

static void what_is_missing_is_named(void **state)
{
    fixture *f = *state;
    task t = {.f = f, .m = parse(f, loop_samples[0].text)};
    assert_int_equal(kn_protect(f->ctx, emit, &t), KN_UNSUPPORTED);
    assert_non_null(strstr(last_message(f->ctx), "built without LLVM: native code"));
    assert_int_equal(kn_protect(f->ctx, compile, &t), KN_UNSUPPORTED);
    assert_non_null(strstr(last_message(f->ctx), "built without LLVM: the JIT is missing"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {KN_TEST(what_is_missing_is_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
