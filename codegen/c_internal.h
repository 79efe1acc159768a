/* Private to the C back end: what c.c (the module), c_func.c (statements), c_expr.c (expressions)
   and c_names.c (identifiers) share. What is known of functions, ranges and aliasing: facts.h. */
#ifndef KN_CODEGEN_C_INTERNAL_H
#define KN_CODEGEN_C_INTERNAL_H

#include "codegen/facts.h"

/* How a name of the loop IR stands in C. */
typedef enum {
    C_SCALAR,   /* a value that does not change */
    C_POINTER,  /* a buffer: the address of its first element */
    C_ARRAY,    /* a buffer: an array of the function's own */
    C_VARIABLE, /* a buffer of rank 0: a variable of the function's own */
    C_CONTEXT   /* no name of the loop IR: npu, io, workspace and their like */
} c_form;

typedef struct {
    const char *name;        /* in the loop IR */
    const char *c;           /* in C: unique in the function */
    const char *at;          /* C variable to be added to every address (4-bit views), or NULL */
    const kn_buffer *buffer; /* NULL: a scalar */
    kn_dtype type;
    c_form form;
    bool readonly;
    int reads, writes; /* so far */
} c_name;

/* A declaration that may turn out to be unused; then its text goes, and what it used was not used
 * by it. */
typedef struct {
    int name;          /* in scope */
    size_t start, end; /* of the text */
    int first, last;   /* the uses that it made, in `uses` */
} c_decl;

typedef struct {
    kn_arena *arena;
    kn_facts facts;
    const kn_c_options *options;
    kn_map taken;       /* identifiers at file scope */
    const char **names; /* of the functions of `facts` */
    KN_VEC(c_name) scope;
    KN_VEC(int) uses; /* names read, in order */
    KN_VEC(c_decl) decls;
    kn_str *out;
    int level; /* of indentation */
} c_emitter;

/* ---- c_names.c ---- */

/* An identifier for a name: dots and other strange characters become _, and _ is added while it
   means something in C or in npu.h, or is taken at file scope or in scope. */
const char *kn_c_fresh(const c_emitter *c, const char *name);
/* The same at file scope, with the prefix, and takes it. */
const char *kn_c_global(c_emitter *c, const char *middle, const char *name);

/* ---- c_expr.c: text at the end of *out ---- */

/* C's precedences, as in ir/scalar.def, and those beyond. */
enum {
    C_PREC_SELECT = 1,
    C_PREC_OR = 2,
    C_PREC_AND = 3,
    C_PREC_SHIFT = 9,
    C_PREC_ADD = 10,
    C_PREC_MUL = 11,
    C_PREC_UNARY = 12,
    C_PREC_POSTFIX = 13
};

/* Prints an expression and returns its precedence; `within` brackets it when that is below `least`.
 */
int kn_c_put(c_emitter *c, kn_str *out, const kn_expr *e);
void kn_c_put_within(c_emitter *c, kn_str *out, const kn_expr *e, int least);
bool kn_c_has_load(const kn_expr *e);
/* The number of an element, from the start of the buffer; one subscript alone is that number; all
 * of a buffer, without subscripts, is 0. */
void kn_c_put_address(c_emitter *c, kn_str *out, const c_name *n, const kn_expr *const *subs,
                      int nsubs);
/* An element as something to be read or assigned. Not for 4-bit types. */
void kn_c_put_element(c_emitter *c, kn_str *out, int name, const kn_expr *const *subs, int nsubs);
int kn_c_find(const c_emitter *c, const char *name); /* in scope; raises when it is not */
void kn_c_read(c_emitter *c, int name);
void kn_c_read_context(c_emitter *c, const char *name); /* a name of the form C_CONTEXT */
void kn_c_put_string(kn_str *out, const char *text);    /* a string literal */
void kn_c_insert(kn_str *out, size_t at, const char *text);

/* The C type of a value, and of what a buffer's pointer points to. */
static inline const char *kn_c_value_type(kn_dtype type)
{
    return type == KN_BOOL ? "bool" : kn_dtype_ctype(type);
}

static inline const char *kn_c_element_type(kn_dtype type)
{
    return kn_cg_is_packed(type) ? "uint8_t" : kn_dtype_ctype(type);
}

/* ---- c_func.c ---- */

/* Adds a name to the scope and returns its number. `bounds`: of an index scalar, else NULL. */
int kn_c_declare(c_emitter *c, const char *name, const kn_buffer *buffer, kn_dtype type,
                 c_form form, const kn_range *bounds);
void kn_c_line(c_emitter *c, const char *fmt, ...) KN_PRINTF(2, 3);
/* Head, items and tail, with commas between; lines above 100 columns are broken. */
void kn_c_put_list(kn_str *out, int level, const char *head, const char *const *items, int n,
                   const char *tail);
/* Marks of a declaration: from kn_c_decl_begin to _end the text is that of `name`. */
c_decl kn_c_decl_begin(const c_emitter *c);
void kn_c_decl_end(c_emitter *c, c_decl d, int name);
/* Drops the names and declarations since the marks. */
typedef struct {
    int scope, bounds, decls;
} c_mark;
c_mark kn_c_open(const c_emitter *c);
void kn_c_close(c_emitter *c, c_mark m);
void kn_c_put_statements(c_emitter *c, const kn_block *b);
void kn_c_put_function(c_emitter *c, kn_str *out, int func); /* of `facts` */
/* `(void)x;` for each name from `from` on that was not read. */
void kn_c_put_unused(c_emitter *c, kn_str *out, int from, int to);
/* The condition that an index is out of the bounds of a parameter; "" when that has none. */
const char *kn_c_outside_text(const c_emitter *c, const char *value, const kn_param *p);
/* if (cond) return npu_fail(npu, message); */
void kn_c_put_failure(c_emitter *c, const char *cond, const char *message);

#endif
