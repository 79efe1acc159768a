/* Elements of buffers: where they lie, and that they lie inside.

   A subscript is dealt with in the first of these ways that is open to it. It is proved to be in
   range, once and for all, from what is known of the loops and guards around. In the fast version
   of an innermost loop, when it grows evenly with the loop's variable, its two ends are looked at
   on entry; if one is out of range, the loop's other version runs. Else, and in that version, it is
   looked at in each access.

   The element's number is the symbolic sum of subscripts times strides; in an innermost loop one
   that grows evenly moves along: an addition an iteration. */
#include "ir/interp_internal.h"

/* ---- Even growth in the innermost loop ---- */

typedef struct {
    const kn_compiler *c;
    bool outer;
} names_seen;

static void see_name(void *env, const kn_expr *e)
{
    names_seen *s = env;
    const kn_inner *in = s->c->inner;
    if (e->kind != KN_E_VAR || strcmp(e->name, in->loop->name) == 0)
        return;
    if (s->c->depths.at[kn_bound_find(s->c, e->name)->reg] >= in->depth)
        s->outer = false;
}

static const kn_expr *with_variable(kn_compiler *c, const kn_expr *e, const kn_expr *value)
{
    kn_binding b = {c->inner->loop->name, value};
    return kn_expr_subst(c->arena, e, &b, 1);
}

/* How much e grows when the innermost loop's variable grows by 1, in terms of what is known before
   the loop; NULL when it is not even. */
static const kn_expr *slope_of(kn_compiler *c, const kn_expr *e)
{
    kn_arena *a = c->arena;
    const char *name = c->inner->loop->name;
    names_seen s = {c, true};
    kn_expr_visit(e, see_name, &s);
    if (!s.outer)
        return NULL;
    const kn_expr *next = kn_index_add(a, kn_var(a, KN_INDEX, name), kn_index(a, 1));
    const kn_expr *slope = kn_index_sub(a, with_variable(c, e, next), e);
    return kn_expr_uses(slope, name) ? NULL : slope;
}

/* ---- Proofs and checks ---- */

static bool proved(kn_compiler *c, const kn_expr *sub, const kn_expr *extent)
{
    const kn_expr *room = kn_index_sub(c->arena, extent, kn_index(c->arena, 1));
    return kn_known_nonneg(&c->known, sub) &&
           kn_known_nonneg(&c->known, kn_index_sub(c->arena, room, sub));
}

/* Leaves the subscript to the guards at the entry of the innermost loop, if it can be. */
static bool guarded(kn_compiler *c, const kn_expr *sub, const kn_expr *extent)
{
    if (!c->inner || c->inner->checked)
        return false;
    const kn_expr *slope = slope_of(c, sub);
    if (!slope)
        return false;
    kn_guard g = {.first = kn_compile_symbolic(c, with_variable(c, sub, c->inner->lo)),
                  .slope = kn_compile_symbolic(c, slope),
                  .extent = kn_compile_symbolic(c, extent)};
    for (int i = 0; i < c->inner->guards.n; i++) {
        const kn_guard *old = &c->inner->guards.at[i];
        if (old->first == g.first && old->slope == g.slope && old->extent == g.extent)
            return true;
    }
    kn_push(c->arena, &c->inner->guards, g);
    return true;
}

/* A subscript on its way: symbolic, or loaded and in a register. */
typedef struct {
    const kn_expr *symbolic; /* NULL: loaded */
    int reg;
    bool inside; /* when the guard holds */
    bool always; /* whether it holds or not */
} subscript;

/* Proved without what the guard tells. */
static bool proved_always(kn_compiler *c, const kn_expr *sub, const kn_expr *extent)
{
    int facts = c->known.facts.n;
    c->known.facts.n = c->guard < 0 ? facts : c->sure;
    bool proof = proved(c, sub, extent);
    c->known.facts.n = facts;
    return proof;
}

static subscript take(kn_compiler *c, const kn_expr *e, const kn_expr *extent)
{
    subscript s = {.reg = -1};
    if (kn_expr_has_load(e)) {
        s.reg = kn_compile_expr(c, e);
        return s;
    }
    s.symbolic = kn_symbolic(c, e);
    s.always = proved_always(c, s.symbolic, extent);
    s.inside = s.always || (c->guard >= 0 && proved(c, s.symbolic, extent));
    if (!s.inside)
        s.inside = s.always = guarded(c, s.symbolic, extent);
    return s;
}

static int reg_of(kn_compiler *c, const subscript *s)
{
    return s->symbolic ? kn_compile_symbolic(c, s->symbolic) : s->reg;
}

static void check_one(kn_compiler *c, int sub, int extent, int site)
{
    kn_words *to = &kn_region_here(c)->code;
    if (kn_value_seen(c, KN_I_INSIDE, sub, extent, -1) ||
        (c->guard >= 0 && kn_value_seen(c, KN_I_INSIDE_IF, sub, extent, c->guard)))
        return;
    if (c->guard < 0) {
        KN_EMIT(c, to, KN_I_INSIDE, sub, extent, site);
        kn_value_see(c, KN_I_INSIDE, sub, extent, -1);
    } else {
        KN_EMIT(c, to, KN_I_INSIDE_IF, sub, extent, c->guard, site);
        kn_value_see(c, KN_I_INSIDE_IF, sub, extent, c->guard);
    }
}

static bool all_inside(const subscript *subs, int n)
{
    for (int i = 0; i < n; i++) {
        if (!subs[i].inside)
            return false;
    }
    return true;
}

/* Checks, for this access, the subscripts that are not inside yet. A message shows them all. */
static void check(kn_compiler *c, const kn_bound *b, const subscript *subs, int n)
{
    kn_site site = {.buffer = b->buffer, .n = n};
    if (all_inside(subs, n))
        return;
    site.subs = KN_ARRAY(c->interp->arena, int, n);
    site.exts = KN_ARRAY(c->interp->arena, int, n);
    for (int i = 0; i < n; i++) {
        site.subs[i] = reg_of(c, &subs[i]);
        site.exts[i] = kn_compile_symbolic(c, b->shape[i]);
    }
    int number = kn_site_new(c, site);
    for (int i = 0; i < n; i++) {
        if (!subs[i].inside)
            check_one(c, site.subs[i], site.exts[i], number);
    }
}

/* ---- On-chip spaces: what is read was written ---- */

void kn_compile_read(kn_compiler *c, const kn_bound *b, int element)
{
    int space = kn_space_number(c->interp, b->buffer->space);
    if (space < 0)
        return;
    int cond = c->guard >= 0 ? c->guard : kn_reg_int(c, 1);
    int site = kn_site_new(c, (kn_site){.buffer = b->buffer});
    KN_EMIT(c, &kn_region_here(c)->code, KN_I_READ, b->reg, element, cond, (int32_t)b->buffer->type,
            space, site);
}

void kn_compile_write(kn_compiler *c, const kn_bound *b, int element, bool reads)
{
    int space = kn_space_number(c->interp, b->buffer->space);
    if (space < 0)
        return;
    if (reads)
        kn_compile_read(c, b, element);
    KN_EMIT(c, &kn_region_here(c)->code, KN_I_WRITE, b->reg, element, (int32_t)b->buffer->type,
            space);
}

/* ---- Addresses ---- */

static int pointer(kn_compiler *c, const kn_expr *e, const kn_expr *slope)
{
    kn_inner *in = c->inner;
    for (int i = 0; i < in->pointers.n; i++) {
        if (kn_expr_equal(in->pointers.at[i].expr, e))
            return in->pointers.at[i].reg;
    }
    const kn_expr *step = kn_index_mul(c->arena, slope, kn_index(c->arena, in->loop->step));
    kn_pointer p = {.expr = e,
                    .base = kn_compile_symbolic(c, with_variable(c, e, in->lo)),
                    .increment = kn_compile_symbolic(c, step),
                    .reg = kn_reg_new(c, in->depth, 1)};
    kn_push(c->arena, &in->pointers, p);
    return p.reg;
}

static int address(kn_compiler *c, const kn_expr *e)
{
    if (e->kind == KN_E_VAR || !c->inner || !kn_expr_uses(e, c->inner->loop->name))
        return kn_compile_symbolic(c, e);
    const kn_expr *slope = slope_of(c, e);
    return slope ? pointer(c, e, slope) : kn_compile_symbolic(c, e);
}

static const kn_expr *stride(kn_compiler *c, const kn_bound *b, int dim)
{
    return kn_index_product(c->arena, b->shape + dim + 1, b->buffer->rank - dim - 1);
}

/* An operator on values of type index, which wraps: what is loaded under a guard that does not hold
 * may be anything. */
static int wrapping(kn_compiler *c, kn_scalar op, int x, int y)
{
    return kn_value(c, KN_I_SCALAR + (int)op * KN_DTYPE_COUNT + KN_INDEX, x, y, -1);
}

/* Adds the loaded subscripts' parts to the register with the symbolic ones', which is `none` when
 * that is 0. */
static int add_loaded(kn_compiler *c, const kn_bound *b, const subscript *subs, int n, int sum,
                      bool none)
{
    for (int i = 0; i < n; i++) {
        if (subs[i].symbolic)
            continue;
        const kn_expr *by = stride(c, b, i);
        int part = subs[i].reg;
        if (!kn_index_is(by, 1))
            part = wrapping(c, KN_OP_MUL, part, kn_compile_symbolic(c, by));
        sum = none ? part : wrapping(c, KN_OP_ADD, sum, part);
        none = false;
    }
    return sum;
}

int kn_compile_element(kn_compiler *c, const kn_bound *b, const kn_expr *const *subs, bool *always)
{
    subscript taken[KN_MAX_RANK];
    int n = b->buffer->rank;
    const kn_expr *sum = kn_index(c->arena, 0);
    *always = true;
    for (int i = 0; i < n; i++) {
        taken[i] = take(c, subs[i], b->shape[i]);
        *always = *always && (taken[i].always || c->guard < 0);
    }
    check(c, b, taken, n);
    for (int i = 0; i < n; i++) {
        if (taken[i].symbolic)
            sum = kn_index_add(c->arena, sum,
                               kn_index_mul(c->arena, taken[i].symbolic, stride(c, b, i)));
    }
    return add_loaded(c, b, taken, n, address(c, sum), kn_index_is(sum, 0));
}
