/* The rows of interp_ops.h once more, now as entries of an array of functions by opcode. Included
   after the functions are made. */
#undef BINARY
#undef UNARY
#undef CONVERT
#undef LOAD
#undef LOAD_IF
#undef STORE
#undef UPDATE
#undef PRODUCT

#define BINARY(op, T, get, put, value) [CODE(op, T)] = op##_##T,
#define UNARY(op, T, get, put, value) [CODE(op, T)] = op##_##T,
#define CONVERT(name, opcode, to, value) [opcode] = name,
#define LOAD(T) [KN_I_LOAD + (int)KN_##T] = element_##T,
#define LOAD_IF(T) [KN_I_LOAD_IF + (int)KN_##T] = element_if_##T,
#define STORE(T) [KN_I_STORE + (int)KN_##T] = set_##T,
#define UPDATE(update, T, get, put, value) \
    [KN_I_STORE + (int)KN_##update * KN_DTYPE_COUNT + (int)KN_##T] = update_##update##_##T,
#define PRODUCT(T, get, put, product, value) [KN_I_STORE_PRODUCT + (int)KN_##T] = add_product_##T,
