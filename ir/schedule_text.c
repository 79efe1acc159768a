/* Text of schedules: parser and printer. */
#include "ir/schedule_text.h"

enum { MAX_KERNELS = 4096, MAX_EDITS = 4096, MAX_LOOPS = 64 };

static const char *const words[] = {[KN_EDIT_SPLIT] = "split",
                                    [KN_EDIT_TILE] = "tile",
                                    [KN_EDIT_ORDER] = "order",
                                    [KN_EDIT_FUSE] = "fuse",
                                    [KN_EDIT_STAGE] = "stage"};

static bool sized(kn_edit_kind kind)
{
    return kind == KN_EDIT_SPLIT || kind == KN_EDIT_TILE;
}

/* ---- parser ---- */

static void parse_size(kn_lexer *lx, kn_edit_loop *l)
{
    l->size = kn_lex_int(lx);
    if (l->size < 1 || l->size > KN_MAX_BOUND)
        kn_lex_fail(lx, "a tile of `%s` has %lld iterations, which must be at least 1", l->loop,
                    (long long)l->size);
    l->outer = kn_intern_f(lx->ctx, "%s_o", l->loop);
    l->inner = kn_intern_f(lx->ctx, "%s_i", l->loop);
}

static void parse_loop(kn_lexer *lx, kn_edit *e)
{
    if (e->nloops == MAX_LOOPS)
        kn_lex_fail(lx, "more than %d loops", MAX_LOOPS);
    kn_edit_loop *l = &e->loops[e->nloops++];
    *l = (kn_edit_loop){.loop = kn_lex_name(lx)};
    for (int i = 0; i + 1 < e->nloops; i++) {
        if (e->loops[i].loop == l->loop)
            kn_lex_fail(lx, "loop `%s` is named twice", l->loop);
    }
    if (sized(e->kind))
        parse_size(lx, l);
}

static void parse_names(kn_lexer *lx, kn_edit *e)
{
    if (e->kind != KN_EDIT_SPLIT || !kn_lex_accept(lx, "->"))
        return;
    e->loops[0].outer = kn_lex_name(lx);
    kn_lex_expect(lx, ",");
    e->loops[0].inner = kn_lex_name(lx);
}

static kn_edit parse_edit(kn_lexer *lx)
{
    kn_edit e = {.loc = lx->token.loc, .loops = KN_ARRAY(lx->arena, kn_edit_loop, MAX_LOOPS)};
    int kind = 0, count = (int)(sizeof words / sizeof *words);
    while (kind < count && !kn_lex_accept(lx, words[kind]))
        kind++;
    if (kind == count)
        kn_lex_fail(lx, "expected split, tile, order, fuse or stage");
    e.kind = (kn_edit_kind)kind;
    if (e.kind == KN_EDIT_STAGE) {
        e.tensor = kn_lex_name(lx);
        kn_lex_expect(lx, "->");
        e.space = kn_lex_name(lx);
        kn_lex_expect(lx, "at");
    }
    parse_loop(lx, &e);
    while (e.kind != KN_EDIT_SPLIT && e.kind != KN_EDIT_STAGE && kn_lex_accept(lx, ","))
        parse_loop(lx, &e);
    parse_names(lx, &e);
    if (e.kind == KN_EDIT_FUSE && e.nloops != 2)
        kn_lex_fail(lx, "fuse takes two loops, found %d", e.nloops);
    return e;
}

static kn_kernel_edits parse_kernel(kn_lexer *lx)
{
    KN_VEC(kn_edit) edits = {0};
    kn_lex_expect(lx, "schedule");
    kn_kernel_edits k = {.loc = lx->token.loc};
    if (lx->token.kind != KN_T_SYMBOL)
        kn_lex_fail(lx, "expected @ and the name of a kernel");
    k.kernel = lx->token.text;
    kn_lex_next(lx);
    kn_lex_expect(lx, "{");
    while (!kn_lex_accept(lx, "}")) {
        if (edits.n == MAX_EDITS)
            kn_lex_fail(lx, "more than %d edits", MAX_EDITS);
        kn_push(lx->arena, &edits, parse_edit(lx));
    }
    k.nedits = edits.n;
    k.edits = edits.at;
    return k;
}

kn_schedule_text *kn_schedule_parse(kn_arena *a, const char *file, const char *text, size_t n)
{
    kn_lexer lx;
    KN_VEC(kn_kernel_edits) kernels = {0};
    kn_lex_init(&lx, a, file, text, n, kn_loc_none());
    while (lx.token.kind != KN_T_END) {
        kn_kernel_edits k = parse_kernel(&lx);
        for (int i = 0; i < kernels.n; i++) {
            if (kernels.at[i].kernel == k.kernel)
                kn_raise(lx.ctx, KN_INVALID, k.loc, "@%s has two schedules", k.kernel);
        }
        if (kernels.n == MAX_KERNELS)
            kn_lex_fail(&lx, "more than %d kernels", MAX_KERNELS);
        kn_push(a, &kernels, k);
    }
    kn_schedule_text *t = KN_NEW(a, kn_schedule_text);
    *t = (kn_schedule_text){kernels.n, kernels.at};
    return t;
}

/* ---- printer ---- */

static void print_edit(kn_str *out, const kn_edit *e)
{
    kn_putf(out, "  %s", words[e->kind]);
    if (e->kind == KN_EDIT_STAGE)
        kn_putf(out, " %s -> %s at", e->tensor, e->space);
    for (int i = 0; i < e->nloops; i++) {
        const kn_edit_loop *l = &e->loops[i];
        kn_putf(out, "%s%s", i ? ", " : " ", l->loop);
        if (sized(e->kind))
            kn_putf(out, " %lld", (long long)l->size);
        if (e->kind == KN_EDIT_SPLIT)
            kn_putf(out, " -> %s, %s", l->outer, l->inner);
    }
    kn_put_char(out, '\n');
}

void kn_schedule_text_print(kn_str *out, const kn_schedule_text *t)
{
    for (int i = 0; i < t->n; i++) {
        kn_putf(out, "schedule @%s {\n", t->kernels[i].kernel);
        for (int k = 0; k < t->kernels[i].nedits; k++)
            print_edit(out, &t->kernels[i].edits[k]);
        kn_put(out, "}\n");
    }
}

/* ---- finding ---- */

/* k12_matmul without its number; NULL when it has none. */
static const char *without_number(const char *kernel)
{
    const char *at = kernel + 1;
    while (*kernel == 'k' && *at >= '0' && *at <= '9')
        at++;
    return *kernel == 'k' && at > kernel + 1 && *at == '_' ? at + 1 : NULL;
}

const kn_kernel_edits *kn_schedule_text_find(const kn_schedule_text *t, const char *kernel)
{
    const char *bare = without_number(kernel);
    const kn_kernel_edits *found = NULL;
    for (int i = 0; i < t->n; i++) {
        const kn_kernel_edits *k = &t->kernels[i];
        if (strcmp(k->kernel, kernel) == 0)
            return k;
        if (bare && strcmp(k->kernel, bare) == 0)
            found = k;
    }
    return found;
}
