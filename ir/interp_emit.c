/* Code of the interpreter under construction: regions, registers, numbered values.

   A pure operation is placed in the outermost region where its operands are known, which is what
   takes invariant arithmetic out of loops: in the region itself when that is the innermost one
   open, else before the region inside it that is open, in its `pre`. An operation on the same
   registers is found again as long as the region that it was placed in is open. */
#include "ir/interp_internal.h"

#include <assert.h>

/* ---- Words ---- */

void kn_words_put(kn_compiler *c, kn_words *to, const int32_t *words, int n)
{
    for (int i = 0; i < n; i++)
        kn_push(c->arena, to, words[i]);
}

void kn_words_append(kn_compiler *c, kn_words *to, const kn_words *from)
{
    kn_words_put(c, to, from->at, from->n);
}

/* ---- Numbered values ---- */

static int bucket_of(const int32_t *key)
{
    uint32_t h = 0;
    for (int i = 0; i < 4; i++)
        h = (h ^ (uint32_t)key[i]) * 0x9e3779b1u;
    return (int)(h >> 16) % KN_VALUE_BUCKETS;
}

static const kn_numbered *find_value(const kn_compiler *c, const int32_t *key)
{
    for (int i = c->buckets[bucket_of(key)]; i; i = c->values.at[i - 1].next) {
        const kn_numbered *v = &c->values.at[i - 1];
        if (memcmp(v->key, key, sizeof v->key) == 0)
            return v;
    }
    return NULL;
}

/* Links hold the number of a value plus one; 0 ends a chain. */
static int add_value(kn_compiler *c, const int32_t *key, int reg, int depth)
{
    int *head = &c->buckets[bucket_of(key)];
    kn_numbered v = {.reg = reg, .depth = depth, .next = *head};
    memcpy(v.key, key, sizeof v.key);
    kn_push(c->arena, &c->values, v);
    *head = c->values.n;
    kn_push(c->arena, &c->regions.at[depth]->values, c->values.n - 1);
    return c->values.n - 1;
}

static void forget_value(kn_compiler *c, int value)
{
    int *link = &c->buckets[bucket_of(c->values.at[value].key)];
    while (*link && *link != value + 1)
        link = &c->values.at[*link - 1].next;
    if (*link)
        *link = c->values.at[value].next;
}

/* ---- Regions ---- */

kn_region *kn_region_open(kn_compiler *c)
{
    kn_region *r = KN_NEW(c->arena, kn_region);
    kn_push(c->arena, &c->regions, r);
    return r;
}

kn_region *kn_region_close(kn_compiler *c)
{
    kn_region *r = c->regions.at[--c->regions.n];
    for (int i = 0; i < r->values.n; i++)
        forget_value(c, r->values.at[i]);
    return r;
}

int kn_depth_here(const kn_compiler *c)
{
    return c->regions.n - 1;
}

kn_region *kn_region_here(const kn_compiler *c)
{
    return c->regions.at[c->regions.n - 1];
}

/* ---- Registers ---- */

int kn_reg_new(kn_compiler *c, int depth, int n)
{
    int reg = c->depths.n;
    for (int i = 0; i < n; i++)
        kn_push(c->arena, &c->depths, depth);
    return reg;
}

int kn_reg_const(kn_compiler *c, kn_slot value)
{
    const int32_t key[4] = {KN_I_CONST, (int32_t)(uint32_t)value.u,
                            (int32_t)(uint32_t)(value.u >> 32), -1};
    const kn_numbered *known = find_value(c, key);
    if (known)
        return known->reg;
    int reg = kn_reg_new(c, 0, 1);
    kn_push(c->arena, &c->consts, value);
    kn_push(c->arena, &c->const_regs, reg);
    add_value(c, key, reg, 0);
    return reg;
}

int kn_reg_int(kn_compiler *c, int64_t value)
{
    return kn_reg_const(c, (kn_slot){.i = value});
}

/* ---- Values ---- */

static int depth_of(const kn_compiler *c, int reg)
{
    return reg < 0 ? 0 : c->depths.at[reg];
}

static int max_depth(const kn_compiler *c, int a, int b, int d)
{
    int depth = depth_of(c, a);
    depth = depth_of(c, b) > depth ? depth_of(c, b) : depth;
    return depth_of(c, d) > depth ? depth_of(c, d) : depth;
}

static int compute(kn_compiler *c, const int32_t *key, int depth)
{
    assert(depth <= kn_depth_here(c));
    kn_words *to =
        depth == kn_depth_here(c) ? &c->regions.at[depth]->code : &c->regions.at[depth + 1]->pre;
    int reg = kn_reg_new(c, depth, 1), n = 1;
    int32_t words[5] = {key[0], reg};
    for (; n < 4 && key[n] >= 0; n++)
        words[n + 1] = key[n];
    kn_words_put(c, to, words, n + 1);
    return reg;
}

int kn_value(kn_compiler *c, int32_t opcode, int a, int b, int d)
{
    const int32_t key[4] = {opcode, a, b, d};
    const kn_numbered *known = find_value(c, key);
    if (known)
        return known->reg;
    int depth = max_depth(c, a, b, d);
    int reg = compute(c, key, depth);
    add_value(c, key, reg, depth);
    return reg;
}

int kn_value_loaded(kn_compiler *c, int32_t opcode, int a, int b, int d)
{
    const int32_t key[4] = {opcode, a, b, d};
    const kn_numbered *known = find_value(c, key);
    if (known)
        return known->reg;
    int reg = compute(c, key, kn_depth_here(c));
    int value = add_value(c, key, reg, kn_depth_here(c));
    kn_push(c->arena, &c->loaded, value);
    return reg;
}

void kn_values_stale(kn_compiler *c)
{
    for (int i = 0; i < c->loaded.n; i++)
        forget_value(c, c->loaded.at[i]);
    c->loaded.n = 0;
}

bool kn_value_seen(const kn_compiler *c, int32_t opcode, int a, int b, int d)
{
    const int32_t key[4] = {opcode, a, b, d};
    return find_value(c, key) != NULL;
}

void kn_value_see(kn_compiler *c, int32_t opcode, int a, int b, int d)
{
    const int32_t key[4] = {opcode, a, b, d};
    add_value(c, key, -1, kn_depth_here(c));
}

int kn_site_new(kn_compiler *c, kn_site site)
{
    site.loc = c->loc;
    kn_push(c->arena, &c->sites, site);
    return c->sites.n - 1;
}
