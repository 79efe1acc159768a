/* The memory plan of main: every allocation gets an offset in the workspace. Allocations share a
   slot when their lifetimes do not overlap; a slot is as large as the largest of them, slots lie
   one after the other. Sizes may be symbolic: offsets and the total are expressions over the sizes,
   evaluated when the model runs, so one plan serves every length. Which slot is taken is decided by
   the sizes at a typical point. */
#include "passes/passes.h"

enum { ALIGNMENT = 64, TYPICAL = 128 };

typedef struct {
    kn_loop *alloc;
    int first, last; /* statements of main during which it lives */
    int slot;
    const kn_expr *bytes;
    int64_t typical;
} kn_live;

typedef struct {
    KN_VEC(const kn_expr *)
    needs; /* bytes: its size is the most of them; none is certainly at most another */
    int64_t typical;
    int free_after; /* the last use of what is in it */
} kn_slot;

typedef struct {
    kn_unit *unit;
    kn_func *main;
    kn_size *sizes;   /* of main */
    int64_t *typical; /* what each of them may well be */
    int nsizes;
    KN_VEC(kn_live) lives;
    KN_VEC(kn_slot) slots;
    KN_VEC(kn_size)
    computed;     /* sizes that main computes, with their bounds: memory is planned for those */
    kn_map owner; /* buffer name -> number of the allocation + 1 */
    int at;       /* the statement at hand */
} kn_plan;

/* The number of elements; where it depends on computed sizes, the greatest. */
static const kn_expr *element_count(const kn_plan *p, const kn_buffer *b)
{
    const kn_expr *const *shape = b->shape;
    if (p->computed.n) {
        shape = kn_shape_upper(p->unit->arena, shape, b->rank, p->computed.at, p->computed.n,
                               (kn_loc){.where = b->name});
    }
    return kn_index_product(p->unit->arena, shape, b->rank);
}

static const kn_expr *aligned_bytes(const kn_plan *p, const kn_buffer *b)
{
    kn_arena *a = p->unit->arena;
    const kn_expr *count = element_count(p, b);
    int bits = kn_dtype_bits(b->type);
    const kn_expr *bytes = bits < 8 ? kn_index_ceildiv(a, count, 8 / bits)
                                    : kn_index_mul(a, count, kn_index(a, bits / 8));
    return kn_index_mul(a, kn_index_ceildiv(a, bytes, ALIGNMENT), kn_index(a, ALIGNMENT));
}

static int64_t typical_value(const kn_plan *p, const kn_expr *bytes)
{
    int64_t value;
    return kn_index_eval(bytes, p->sizes, p->typical, p->nsizes, &value) ? value : INT64_MAX;
}

static void touch(void *env, kn_buffer_use use)
{
    kn_plan *p = env;
    int owner = (int)(intptr_t)kn_map_get(&p->owner, use.buffer);
    if (owner) {
        p->lives.at[owner - 1].last = p->at;
    }
}

static void find_lifetimes(kn_plan *p)
{
    kn_arena *a = p->unit->arena;
    for (p->at = 0; p->at < p->main->body.n; p->at++) {
        kn_loop *s = p->main->body.at[p->at];
        if (s->kind == KN_S_LET && s->type == KN_INDEX) {
            kn_range r = kn_index_range(s->expr, NULL, 0);
            kn_push(a, &p->computed, ((kn_size){s->name, r.lo, r.hi}));
        }
        if (s->kind == KN_S_ALLOC) {
            const kn_expr *bytes = aligned_bytes(p, &s->buffer);
            kn_live live = {s, p->at, p->at, -1, bytes, typical_value(p, bytes)};
            kn_push(a, &p->lives, live);
            kn_map_set(&p->owner, s->buffer.name, (void *)(intptr_t)p->lives.n);
        } else if (s->kind == KN_S_VIEW) {
            kn_map_set(&p->owner, s->buffer.name, kn_map_get(&p->owner, s->name));
        }
        kn_loop_uses(s, touch, p);
    }
}

/* The free slot that fits best: the smallest that is large enough, else the largest. */
static int best_slot(const kn_plan *p, const kn_live *live)
{
    int best = -1;
    for (int i = 0; i < p->slots.n; i++) {
        const kn_slot *s = &p->slots.at[i];
        if (s->free_after >= live->first) {
            continue;
        }
        const kn_slot *b = best < 0 ? NULL : &p->slots.at[best];
        bool fits = s->typical >= live->typical;
        bool better = !b || (fits && (b->typical < live->typical || s->typical < b->typical)) ||
                      (!fits && b->typical < live->typical && s->typical > b->typical);
        best = better ? i : best;
    }
    return best;
}

/* Whether x >= y for all values of the sizes. */
static bool covers(const kn_plan *p, const kn_expr *x, const kn_expr *y)
{
    return kn_expr_equal(x, y) ||
           kn_index_range(kn_index_sub(p->unit->arena, x, y), p->sizes, p->nsizes).lo >= 0;
}

/* A chain of layers asks for the same few sizes over and over: only those that count are kept. */
static void add_need(const kn_plan *p, kn_slot *s, const kn_expr *bytes)
{
    int kept = 0;
    for (int i = 0; i < s->needs.n; i++) {
        if (covers(p, s->needs.at[i], bytes)) {
            return;
        }
    }
    for (int i = 0; i < s->needs.n; i++) {
        if (!covers(p, bytes, s->needs.at[i])) {
            s->needs.at[kept++] = s->needs.at[i];
        }
    }
    s->needs.n = kept;
    kn_push(p->unit->arena, &s->needs, bytes);
}

static const kn_expr *slot_bytes(const kn_plan *p, const kn_slot *s)
{
    const kn_expr *bytes = s->needs.at[0];
    for (int i = 1; i < s->needs.n; i++) {
        bytes = kn_index_max(p->unit->arena, bytes, s->needs.at[i]);
    }
    return bytes;
}

static void assign_slots(kn_plan *p)
{
    kn_arena *a = p->unit->arena;
    for (int i = 0; i < p->lives.n; i++) {
        kn_live *live = &p->lives.at[i];
        live->slot = best_slot(p, live);
        if (live->slot < 0) {
            kn_push(a, &p->slots, ((kn_slot){.typical = live->typical}));
            live->slot = p->slots.n - 1;
        }
        kn_slot *s = &p->slots.at[live->slot];
        add_need(p, s, live->bytes);
        s->typical = s->typical > live->typical ? s->typical : live->typical;
        s->free_after = live->last;
    }
}

static void suppose_sizes(kn_plan *p)
{
    p->sizes = kn_func_sizes(p->unit->arena, p->main, &p->nsizes);
    p->typical = KN_ARRAY(p->unit->arena, int64_t, p->nsizes + 1);
    for (int i = 0; i < p->nsizes; i++) {
        const kn_size *z = &p->sizes[i];
        p->typical[i] = z->hi < TYPICAL ? z->hi : z->lo > TYPICAL ? z->lo : TYPICAL;
    }
}

void kn_pass_plan(kn_unit *u)
{
    kn_plan p = {.unit = u, .main = kn_module_main(u->module), .owner = kn_map_make(u->arena)};
    suppose_sizes(&p);
    find_lifetimes(&p);
    assign_slots(&p);
    const kn_expr **offsets = KN_ARRAY(u->arena, const kn_expr *, p.slots.n + 1);
    offsets[0] = kn_index(u->arena, 0);
    for (int i = 0; i < p.slots.n; i++) {
        offsets[i + 1] = kn_index_add(u->arena, offsets[i], slot_bytes(&p, &p.slots.at[i]));
    }
    for (int i = 0; i < p.lives.n; i++) {
        p.lives.at[i].alloc->buffer.offset = offsets[p.lives.at[i].slot];
    }
    p.main->workspace = offsets[p.slots.n];
}
