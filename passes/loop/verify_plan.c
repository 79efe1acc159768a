/* An independent check of the memory plan, by running main's statements on intervals: at several
   choices of the sizes, every buffer gets its bytes when it is allocated, keeps them until its last
   use, and must not lose one of them to another buffer before. Shares nothing with plan.c: it
   derives lifetimes backwards and compares all pairs. */
#include "passes/passes.h"

typedef struct {
    const char *name, *root; /* a view's root is its source's */
    int from, to;            /* alive at these statements, both included */
    int64_t offset, bytes;
} kn_extent;

typedef struct {
    const kn_unit *unit;
    const kn_func *main;
    kn_size *sizes;
    int64_t *values;
    int nsizes;
    KN_VEC(kn_extent) extents;
} kn_check;

typedef struct {
    const char *name;
    bool found;
} kn_mention;

static void mention(void *env, kn_buffer_use use)
{
    kn_mention *m = env;
    m->found = m->found || use.buffer == m->name;
}

static bool mentions(kn_loop *s, const char *name)
{
    kn_mention m = {name, false};
    kn_loop_uses(s, mention, &m);
    return m.found;
}

static int64_t evaluate(const kn_check *c, const kn_expr *e, const char *what)
{
    int64_t value;
    if (!e || !kn_index_eval(e, c->sizes, c->values, c->nsizes, &value)) {
        kn_raise(c->unit->ctx, KN_INTERNAL, kn_loc_none(),
                 "memory plan: the %s cannot be evaluated", what);
    }
    return value;
}

static int64_t bytes_of(const kn_check *c, const kn_buffer *b)
{
    int64_t count = 1;
    for (int i = 0; i < b->rank; i++) {
        count *= evaluate(c, b->shape[i], b->name);
    }
    return kn_dtype_bytes(b->type, count);
}

static void collect(kn_check *c)
{
    for (int i = c->main->body.n - 1; i >= 0; i--) {
        const kn_loop *s = c->main->body.at[i];
        bool alloc = s->kind == KN_S_ALLOC, view = s->kind == KN_S_VIEW;
        if (!alloc && !view) {
            continue;
        }
        kn_extent e = {s->buffer.name, view ? s->name : s->buffer.name, i, i, 0, 0};
        for (int k = i; k < c->main->body.n; k++) {
            e.to = mentions(c->main->body.at[k], e.name) ? k : e.to;
        }
        for (int k = 0; k < c->extents.n; k++) {
            const kn_extent *later = &c->extents.at[k];
            e.to = later->root == e.name && later->to > e.to ? later->to : e.to;
        }
        if (alloc) {
            e.offset = evaluate(c, s->buffer.offset, "offset");
            e.bytes = bytes_of(c, &s->buffer);
        }
        kn_push(c->unit->arena, &c->extents, e);
    }
}

static void compare(const kn_check *c, int64_t total)
{
    for (int i = 0; i < c->extents.n; i++) {
        const kn_extent *x = &c->extents.at[i];
        if (x->offset < 0 || x->offset + x->bytes > total) {
            kn_raise(c->unit->ctx, KN_INTERNAL, kn_loc_none(),
                     "memory plan: `%s` lies outside the workspace", x->name);
        }
        for (int k = 0; k < i; k++) {
            const kn_extent *y = &c->extents.at[k];
            bool together = x->from <= y->to && y->from <= x->to;
            bool overlap = x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
            if (together && overlap && x->root == x->name && y->root == y->name) {
                kn_raise(c->unit->ctx, KN_INTERNAL, kn_loc_none(),
                         "memory plan: `%s` and `%s` share bytes while both live", x->name,
                         y->name);
            }
        }
    }
}

/* Sizes whose product no integer holds are those of no run; but the least of all must do. */
static bool is_possible(const kn_check *c, bool least)
{
    int64_t total;
    return least || kn_index_eval(c->main->workspace, c->sizes, c->values, c->nsizes, &total);
}

static void check_at(const kn_unit *u, int64_t at)
{
    kn_arena *scratch = kn_arena_create(u->ctx);
    kn_unit here = *u;
    here.arena = scratch;
    kn_check c = {.unit = &here, .main = kn_module_main(u->module)};
    c.sizes = kn_func_sizes(scratch, c.main, &c.nsizes);
    c.values = KN_ARRAY(scratch, int64_t, c.nsizes + 1);
    for (int i = 0; i < c.nsizes; i++) {
        int64_t value = at + 3 * i;
        const kn_size *z = &c.sizes[i];
        c.values[i] = value < z->lo ? z->lo : value > z->hi ? z->hi : value;
    }
    bool computed = false; /* sizes known only at run time: nothing to evaluate with */
    for (int i = 0; i < c.main->body.n; i++) {
        computed = computed || c.main->body.at[i]->kind == KN_S_LET;
    }
    if (!computed && is_possible(&c, at == 0)) {
        int64_t total = evaluate(&c, c.main->workspace, "workspace");
        collect(&c);
        compare(&c, total);
    }
    kn_release(u->ctx, scratch);
}

void kn_plan_verify(const kn_unit *u)
{
    static const int64_t points[] = {0, 1, 7, 64, 1000};
    for (int i = 0; i < 5; i++) {
        check_at(u, points[i]);
    }
}
