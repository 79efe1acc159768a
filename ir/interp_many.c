/* The typed instructions, many times: on lanes (see kn_lanes). A function does one instruction for
   all lanes of a chunk and returns the next one; NULL when something is amiss in one of the lanes.
 */
#include "ir/interp_ops.h"

/* ---- Operands: lanes, or one register for all ---- */

#define FROM(i) (pc[i] < 0 ? k->lanes + ~pc[i] * KN_LANES : k->r + pc[i])
#define STRIDE(i) (pc[i] < 0)
#define TO(i) (k->lanes + ~pc[i] * KN_LANES)

#define D (*pd)
#define X (*px)
#define Y (*py)

#define FUNCTION(name) static const int32_t *name(const kn_chunk *k, const int32_t *pc)
#define FOR_LANES for (int l = 0, n = k->n; l < n; l++)

#define BINARY(op, T, get, put, value)                             \
    FUNCTION(op##_##T)                                             \
    {                                                              \
        kn_slot *pd = TO(1);                                       \
        const kn_slot *px = FROM(2), *py = FROM(3);                \
        const int sx = STRIDE(2), sy = STRIDE(3);                  \
        for (int n = k->n; n > 0; n--, pd++, px += sx, py += sy) { \
            get(x, X);                                             \
            get(y, Y);                                             \
            put(D, value);                                         \
        }                                                          \
        return pc + 4;                                             \
    }
#define UNARY(op, T, get, put, value)                    \
    FUNCTION(op##_##T)                                   \
    {                                                    \
        kn_slot *pd = TO(1);                             \
        const kn_slot *px = FROM(2);                     \
        const int sx = STRIDE(2);                        \
        for (int n = k->n; n > 0; n--, pd++, px += sx) { \
            get(x, X);                                   \
            put(D, value);                               \
        }                                                \
        return pc + 3;                                   \
    }
#define CONVERT(name, opcode, to, value)               \
    FUNCTION(name)                                     \
    {                                                  \
        kn_slot *pd = TO(1);                           \
        const kn_slot *px = FROM(2);                   \
        const int sx = STRIDE(2);                      \
        for (int n = k->n; n > 0; n--, pd++, px += sx) \
            D.to = value;                              \
        return pc + 3;                                 \
    }

/* ---- Elements ---- */

/* Where an access's elements are: an operand, then the step when it is a register. */
typedef struct {
    const kn_slot *lanes; /* NULL: they move evenly */
    int64_t first, step;
} places;

static inline places places_of(const kn_chunk *k, const int32_t *element)
{
    if (element[0] < 0)
        return (places){.lanes = k->lanes + ~element[0] * KN_LANES};
    return (places){.first = k->r[element[0]].i, .step = k->r[element[1]].i};
}

static inline int64_t place(const places *p, int l)
{
    if (p->lanes)
        return p->lanes[l].i;
    return (int64_t)((uint64_t)p->first + (uint64_t)l * (uint64_t)p->step);
}

/* A sum, say, into one element: it stays in a register meanwhile. */
static inline bool is_one_place(const places *p)
{
    return !p->lanes && p->step == 0;
}

#define LOAD(T)                                \
    FUNCTION(element_##T)                      \
    {                                          \
        kn_slot *pd = TO(1);                   \
        const kn_slot *b = &k->r[pc[2]];       \
        const places p = places_of(k, pc + 3); \
        FOR_LANES                              \
        {                                      \
            load_##T(&pd[l], b, place(&p, l)); \
        }                                      \
        return pc + 5;                         \
    }
#define LOAD_IF(T)                                        \
    FUNCTION(element_if_##T)                              \
    {                                                     \
        kn_slot *pd = TO(1);                              \
        const kn_slot *b = &k->r[pc[2]], *cond = FROM(5); \
        const places p = places_of(k, pc + 3);            \
        FOR_LANES                                         \
        {                                                 \
            pd[l].u = 0;                                  \
            if (cond[l * STRIDE(5)].i)                    \
                load_##T(&pd[l], b, place(&p, l));        \
        }                                                 \
        return pc + 6;                                    \
    }
#define STORE(T)                                           \
    FUNCTION(set_##T)                                      \
    {                                                      \
        const kn_slot *b = &k->r[pc[1]], *py = FROM(4);    \
        const places p = places_of(k, pc + 2);             \
        FOR_LANES                                          \
        {                                                  \
            store_##T(b, place(&p, l), py[l * STRIDE(4)]); \
        }                                                  \
        return pc + 5;                                     \
    }
#define UPDATE(update, T, get, put, value)              \
    FUNCTION(update_##update##_##T)                     \
    {                                                   \
        const kn_slot *b = &k->r[pc[1]], *py = FROM(4); \
        const int sy = STRIDE(4);                       \
        const places p = places_of(k, pc + 2);          \
        const bool one = is_one_place(&p);              \
        kn_slot old;                                    \
        load_##T(&old, b, place(&p, 0));                \
        for (int l = 0; l < k->n; l++, py += sy) {      \
            if (!one)                                   \
                load_##T(&old, b, place(&p, l));        \
            get(x, old);                                \
            get(y, Y);                                  \
            put(old, value);                            \
            if (!one)                                   \
                store_##T(b, place(&p, l), old);        \
            NORMAL_##T(old);                            \
        }                                               \
        if (one)                                        \
            store_##T(b, p.first, old);                 \
        return pc + 5;                                  \
    }
#define PRODUCT(T, get, put, product, value)                           \
    FUNCTION(add_product_##T)                                          \
    {                                                                  \
        const kn_slot *b = &k->r[pc[1]], *px = FROM(4), *py = FROM(5); \
        const int sx = STRIDE(4), sy = STRIDE(5);                      \
        const places p = places_of(k, pc + 2);                         \
        const bool one = is_one_place(&p);                             \
        kn_slot old;                                                   \
        load_##T(&old, b, place(&p, 0));                               \
        for (int l = 0; l < k->n; l++, px += sx, py += sy) {           \
            if (!one)                                                  \
                load_##T(&old, b, place(&p, l));                       \
            get(sum, old);                                             \
            get(x, X);                                                 \
            get(y, Y);                                                 \
            product;                                                   \
            put(old, value);                                           \
            if (!one)                                                  \
                store_##T(b, place(&p, l), old);                       \
            NORMAL_##T(old);                                           \
        }                                                              \
        if (one)                                                       \
            store_##T(b, p.first, old);                                \
        return pc + 6;                                                 \
    }

/* Integer updates wrap when they are stored: what stays in a register is wrapped here. */
#define NORMAL_F32(s)
#define NORMAL_F64(s)
#define NORMAL_F16(s)
#define NORMAL_BF16(s)
#define NORMAL_I64(s)
#define NORMAL_U64(s)
#define NORMAL_INDEX(s)
#define NORMAL_I4(s) PUT_I4(s, (s).u)
#define NORMAL_U4(s) PUT_U4(s, (s).u)
#define NORMAL_I8(s) PUT_I8(s, (s).u)
#define NORMAL_U8(s) PUT_U8(s, (s).u)
#define NORMAL_I16(s) PUT_I16(s, (s).u)
#define NORMAL_U16(s) PUT_U16(s, (s).u)
#define NORMAL_I32(s) PUT_I32(s, (s).u)
#define NORMAL_U32(s) PUT_U32(s, (s).u)

#include "ir/interp_rows.def"

/* ---- Instructions without types ---- */

#define INDEX_ARITHMETIC(name, builtin)                                         \
    FUNCTION(name)                                                              \
    {                                                                           \
        kn_slot *pd = TO(1);                                                    \
        const kn_slot *px = FROM(2), *py = FROM(3);                             \
        bool bad = false;                                                       \
        FOR_LANES                                                               \
        {                                                                       \
            bad |= builtin(px[l * STRIDE(2)].i, py[l * STRIDE(3)].i, &pd[l].i); \
        }                                                                       \
        return bad ? NULL : pc + 4;                                             \
    }
INDEX_ARITHMETIC(index_add, __builtin_add_overflow)
INDEX_ARITHMETIC(index_sub, __builtin_sub_overflow)
INDEX_ARITHMETIC(index_mul, __builtin_mul_overflow)

FUNCTION(select_lanes)
{
    kn_slot *pd = TO(1);
    const kn_slot *cond = FROM(2), *px = FROM(3), *py = FROM(4);
    FOR_LANES
    {
        pd[l] = cond[l * STRIDE(2)].i ? px[l * STRIDE(3)] : py[l * STRIDE(4)];
    }
    return pc + 5;
}

FUNCTION(inside)
{
    const kn_slot *sub = FROM(1), *extents = FROM(2);
    bool all = true;
    FOR_LANES
    {
        all &= sub[l * STRIDE(1)].u < extents[l * STRIDE(2)].u;
    }
    return all ? pc + 3 : NULL;
}

FUNCTION(inside_if)
{
    const kn_slot *sub = FROM(1), *extents = FROM(2), *cond = FROM(3);
    bool all = true;
    FOR_LANES
    {
        all &= !cond[l * STRIDE(3)].i || sub[l * STRIDE(1)].u < extents[l * STRIDE(2)].u;
    }
    return all ? pc + 4 : NULL;
}

FUNCTION(check)
{
    const kn_slot *cond = FROM(1);
    bool all = true;
    FOR_LANES
    {
        all &= cond[l * STRIDE(1)].i != 0;
    }
    return all ? pc + 2 : NULL;
}

#include "ir/interp_entries.h"

const kn_many_fn kn_many[KN_I_COUNT] = {
    [KN_I_INDEX_ADD] = index_add, [KN_I_INDEX_SUB] = index_sub, [KN_I_INDEX_MUL] = index_mul,
    [KN_I_SELECT] = select_lanes, [KN_I_INSIDE] = inside,       [KN_I_INSIDE_IF] = inside_if,
    [KN_I_CHECK] = check,
#include "ir/interp_rows.def"
};
