/* The typed instructions, once: on registers. A function does one instruction and returns the next.
 */
#include "ir/interp_ops.h"

#define D r[pc[1]]
#define X r[pc[2]]
#define Y r[pc[3]]

#define FUNCTION(name) static const int32_t *name(kn_slot *r, const int32_t *pc)

#define BINARY(op, T, get, put, value) \
    FUNCTION(op##_##T)                 \
    {                                  \
        get(x, X);                     \
        get(y, Y);                     \
        put(D, value);                 \
        return pc + 4;                 \
    }
#define UNARY(op, T, get, put, value) \
    FUNCTION(op##_##T)                \
    {                                 \
        get(x, X);                    \
        put(D, value);                \
        return pc + 3;                \
    }
#define CONVERT(name, opcode, to, value) \
    FUNCTION(name)                       \
    {                                    \
        D.to = value;                    \
        return pc + 3;                   \
    }
#define LOAD(T)                \
    FUNCTION(element_##T)      \
    {                          \
        load_##T(&D, &X, Y.i); \
        return pc + 4;         \
    }
#define LOAD_IF(T)                 \
    FUNCTION(element_if_##T)       \
    {                              \
        D.u = 0;                   \
        if (r[pc[4]].i)            \
            load_##T(&D, &X, Y.i); \
        return pc + 5;             \
    }
#define STORE(T)               \
    FUNCTION(set_##T)          \
    {                          \
        store_##T(&D, X.i, Y); \
        return pc + 4;         \
    }
#define UPDATE(update, T, get, put, value) \
    FUNCTION(update_##update##_##T)        \
    {                                      \
        kn_slot old, new;                  \
        load_##T(&old, &D, X.i);           \
        get(x, old);                       \
        get(y, Y);                         \
        put(new, value);                   \
        store_##T(&D, X.i, new);           \
        return pc + 4;                     \
    }
#define PRODUCT(T, get, put, product, value) \
    FUNCTION(add_product_##T)                \
    {                                        \
        kn_slot old, new;                    \
        load_##T(&old, &D, X.i);             \
        get(sum, old);                       \
        get(x, Y);                           \
        get(y, r[pc[4]]);                    \
        product;                             \
        put(new, value);                     \
        store_##T(&D, X.i, new);             \
        return pc + 5;                       \
    }

#include "ir/interp_rows.def"

#include "ir/interp_entries.h"

const kn_single_fn kn_single[KN_I_COUNT] = {
#include "ir/interp_rows.def"
};
