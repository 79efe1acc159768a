/* Any text as index notation: refused with a message, or a notation whose text reads back to itself
   and which elaborates, or is refused, for operands of its own ranks. */
#include <stdlib.h>

#include "ir/notation.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

typedef struct {
    kn_ctx *ctx;
    const char *text;
    size_t size;
    const kn_notation *notation;
} input;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const char *printed(kn_arena *a, const kn_notation *n)
{
    kn_str s = kn_str_make(a);
    kn_notation_print(&s, n);
    return kn_str_get(&s);
}

static void read_input(void *arg)
{
    input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    in->notation = kn_notation_parse(a, "input", in->text, in->size, kn_loc_none());
}

static void reread(void *arg)
{
    const input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const char *once = printed(a, in->notation);
    const kn_notation *again = kn_notation_parse(a, "again", once, strlen(once), kn_loc_none());
    require(strcmp(printed(a, again), once) == 0);
}

/* Literal dimensions as they are, 4 for each name, symbols for packs. */
static kn_operand operand_for(kn_arena *a, const kn_sig_tensor *t)
{
    static const kn_dtype types[] = {KN_F32, KN_I64, KN_F16, KN_BOOL};
    const kn_expr **shape = KN_ARRAY(a, const kn_expr *, t->ndims);
    for (int i = 0; i < t->ndims; i++) {
        const kn_expr *e = t->dims[i].expr;
        bool literal = e && e->kind == KN_E_CONST && e->i >= 0 && e->i < 1 << 20;
        shape[i] = t->dims[i].pack ? kn_var(a, KN_INDEX, kn_intern(kn_arena_ctx(a), "s"))
                                   : kn_index(a, literal ? e->i : 4);
    }
    return (kn_operand){types[t->name[0] % 4], t->ndims, shape};
}

static void elaborate(void *arg)
{
    const input *in = arg;
    kn_arena *a = kn_arena_create(in->ctx);
    const kn_notation *n = in->notation;
    kn_operand *operands = KN_ARRAY(a, kn_operand, n->ninputs);
    for (int i = 0; i < n->ninputs; i++) {
        if (n->inputs[i].ndims > KN_MAX_RANK)
            return;
        operands[i] = operand_for(a, &n->inputs[i]);
    }
    kn_size s = {kn_intern(in->ctx, "s"), 1, 64};
    kn_nest *nest = kn_elaborate(a, n, operands, n->ninputs, NULL, 0, &s, 1, kn_loc_none());
    kn_str text = kn_str_make(a);
    kn_nest_print(&text, kn_nest_split(a, nest));
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    input in = {.ctx = kn_ctx_create(), .text = (const char *)data, .size = size};
    require(in.ctx != NULL);
    kn_status status = kn_protect(in.ctx, read_input, &in);
    require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    require((kn_diag_count(in.ctx) > 0) == (status != KN_OK));
    if (status == KN_OK) {
        require(kn_protect(in.ctx, reread, &in) == KN_OK);
        status = kn_protect(in.ctx, elaborate, &in);
        require(status == KN_OK || status == KN_INVALID || status == KN_UNSUPPORTED);
    }
    kn_ctx_destroy(in.ctx);
    return 0;
}
