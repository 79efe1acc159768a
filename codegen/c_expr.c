/* Expressions in C. Plain operators where C means the same: + - * / and comparisons of f32 and f64,
   comparisons of signed integers, index arithmetic that is seen to stay in 64 bits, && || ! ?:. All
   else is a function of npu.h. Constants are evaluated here, so that no C compiler evaluates
   exp(1.5) in its own way. */
#include "codegen/c_internal.h"

#include <inttypes.h>
#include <math.h>

#include "support/half.h"

void kn_c_insert(kn_str *out, size_t at, const char *text)
{
    size_t n = strlen(text), rest = out->n - at;
    kn_put_n(out, text, n); /* makes room */
    memmove(out->at + at + n, out->at + at, rest);
    memcpy(out->at + at, text, n);
}

void kn_c_put_string(kn_str *out, const char *text)
{
    kn_put(out, "\"");
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (*s == '"' || *s == '\\')
            kn_putf(out, "\\%c", *s);
        else if (*s < ' ' || *s > '~' || *s == '?')
            kn_putf(out, "\\%03o",
                    *s); /* three digits: what follows cannot join them; ? may begin a trigraph */
        else
            kn_put_char(out, (char)*s);
    }
    kn_put(out, "\"");
}

/* ---- Names ---- */

int kn_c_find(const c_emitter *c, const char *name)
{
    for (int i = c->scope.n - 1; i >= 0; i--) {
        const char *other = c->scope.at[i].name;
        if (other && (other == name || strcmp(other, name) == 0))
            return i;
    }
    kn_cg_fail(&c->facts, KN_INTERNAL, "`%s` is not in scope", name);
}

void kn_c_read(c_emitter *c, int name)
{
    c->scope.at[name].reads++;
    kn_push(c->arena, &c->uses, name);
}

/* ---- Literals ---- */

static int put_float(kn_str *out, double f, bool single)
{
    const char *cast = single ? "" : "(double)";
    if (isnan(f) || isinf(f)) {
        kn_putf(out, "%s%s", f < 0 ? "-" : "", cast);
        kn_put(out, isnan(f) ? "NAN" : "INFINITY");
        return f < 0 || !single ? C_PREC_UNARY : C_PREC_POSTFIX;
    }
    kn_put_float(out, f, single);
    kn_put(out, single ? "f" : "");
    return signbit(f) ? C_PREC_UNARY : C_PREC_POSTFIX;
}

static int put_integer(kn_str *out, kn_dtype type, int64_t i)
{
    if (type == KN_U64 || type == KN_U32)
        kn_putf(out, "%" PRIu64 "u", (uint64_t)i);
    else if (i == INT64_MIN)
        kn_put(out, "INT64_MIN");
    else
        kn_putf(out, "%" PRId64, i);
    return i < 0 && type != KN_U64 ? C_PREC_UNARY : C_PREC_POSTFIX;
}

static int put_const(kn_str *out, const kn_expr *e)
{
    switch (e->type) {
    case KN_BOOL: kn_put(out, e->i ? "true" : "false"); return C_PREC_POSTFIX;
    case KN_F32: return put_float(out, e->f, true);
    case KN_F64: return put_float(out, e->f, false);
    case KN_F16: kn_putf(out, "0x%04x", kn_f64_to_f16(e->f)); return C_PREC_POSTFIX;
    case KN_BF16: kn_putf(out, "0x%04x", kn_f32_to_bf16((float)e->f)); return C_PREC_POSTFIX;
    default: return put_integer(out, e->type, e->i);
    }
}

bool kn_c_has_load(const kn_expr *e)
{
    bool found = e->kind == KN_E_LOAD;
    for (int i = 0; !found && i < e->nargs; i++)
        found = kn_c_has_load(e->args[i]);
    return found;
}

/* ---- Brackets ---- */

void kn_c_put_within(c_emitter *c, kn_str *out, const kn_expr *e, int least)
{
    size_t start = out->n;
    if (kn_c_put(c, out, e) < least) {
        kn_c_insert(out, start, "(");
        kn_put(out, ")");
    }
}

static void put_args(c_emitter *c, kn_str *out, const kn_expr *e)
{
    kn_put(out, "(");
    for (int i = 0; i < e->nargs; i++) {
        kn_put(out, i ? ", " : "");
        kn_c_put(c, out, e->args[i]);
    }
    kn_put(out, ")");
}

/* ---- Addresses ---- */

/* The text so far of ((s0 * d1 + s1) * d2 + s2) ...: while it is constant, a number. */
typedef struct {
    kn_str text;
    int precedence; /* 0: constant */
    int64_t value;
} address;

static void add_constant(const c_emitter *c, address *a, int64_t value)
{
    if (a->precedence == 0) {
        if (__builtin_add_overflow(a->value, value, &a->value))
            kn_cg_fail(&c->facts, KN_INVALID, "an address overflows 64 bits");
    } else if (value != 0) {
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        kn_putf(&a->text, " %c %" PRIu64, value < 0 ? '-' : '+', magnitude);
        a->precedence = C_PREC_ADD;
    }
}

static void add_term(c_emitter *c, address *a, const kn_expr *e)
{
    if (e->kind == KN_E_CONST) {
        add_constant(c, a, e->i);
        return;
    }
    bool alone = a->precedence == 0 && a->value == 0;
    if (a->precedence == 0 && !alone)
        kn_putf(&a->text, "%" PRId64, a->value);
    kn_put(&a->text, alone ? "" : " + ");
    size_t start = a->text.n;
    a->precedence = kn_c_put(c, &a->text, e);
    if (a->precedence < C_PREC_ADD) {
        kn_c_insert(&a->text, start, "(");
        kn_put(&a->text, ")");
        a->precedence = C_PREC_POSTFIX;
    }
    a->precedence = alone ? a->precedence : C_PREC_ADD;
}

static void scale(c_emitter *c, address *a, const kn_expr *by)
{
    if (kn_index_is(by, 1) || (a->precedence == 0 && a->value == 0))
        return;
    if (a->precedence == 0 && by->kind == KN_E_CONST) {
        if (__builtin_mul_overflow(a->value, by->i, &a->value))
            kn_cg_fail(&c->facts, KN_INVALID, "an address overflows 64 bits");
        return;
    }
    if (a->precedence == 0) {
        kn_putf(&a->text, "%" PRId64, a->value);
    } else if (a->precedence < C_PREC_MUL) {
        kn_c_insert(&a->text, 0, "(");
        kn_put(&a->text, ")");
    }
    kn_put(&a->text, " * ");
    kn_c_put_within(c, &a->text, by, C_PREC_UNARY);
    a->precedence = C_PREC_MUL;
}

void kn_c_put_address(c_emitter *c, kn_str *out, const c_name *n, const kn_expr *const *subs,
                      int nsubs)
{
    address a = {.text = kn_str_make(c->arena)};
    const kn_buffer *b = n->buffer;
    const char *at = n->at;
    for (int i = 0; i < nsubs; i++) {
        if (i > 0)
            scale(c, &a, kn_cg_fold(c->arena, b->shape[i]));
        add_term(c, &a, kn_cg_fold(c->arena, subs[i]));
    }
    if (at)
        kn_putf(out, "%s", at);
    if (at && a.precedence == 0 && a.value == 0)
        return;
    kn_put(out, at ? " + " : "");
    if (a.precedence == 0)
        kn_putf(out, "%" PRId64, a.value);
    else
        kn_put(out, kn_str_get(&a.text));
}

void kn_c_put_element(c_emitter *c, kn_str *out, int name, const kn_expr *const *subs, int nsubs)
{
    c_name n = c->scope.at[name];
    kn_put(out, n.c);
    if (n.form == C_VARIABLE)
        return;
    kn_put(out, "[");
    kn_c_put_address(c, out, &n, subs, nsubs);
    kn_put(out, "]");
}

static void put_load(c_emitter *c, kn_str *out, const kn_expr *e)
{
    int name = kn_c_find(c, e->name);
    c_name n = c->scope.at[name];
    kn_c_read(c, name);
    if (!kn_cg_is_packed(n.type)) {
        kn_c_put_element(c, out, name, e->args, e->nargs);
        return;
    }
    kn_putf(out, "npu_load_%s(%s, ", kn_dtype_name(n.type), n.c);
    kn_c_put_address(c, out, &n, e->args, e->nargs);
    kn_put(out, ")");
}

/* ---- Operators ---- */

/* The type of the operands; of the values, for select. */
static kn_dtype operand_type(const kn_expr *e)
{
    return e->args[e->nargs - 1]->type;
}

static bool is_plain_float(kn_dtype type)
{
    return type == KN_F32 || type == KN_F64;
}

/* A comparison of an integer with itself is warned about, and so is one of an unsigned integer with
 * 0. */
static bool is_plain_comparison(const kn_expr *e, kn_dtype type)
{
    return is_plain_float(type) ||
           (kn_dtype_is_signed(type) && !kn_expr_equal(e->args[0], e->args[1]));
}

/* Division of what is not negative by what is positive is the same in C. */
static bool is_plain_division(const c_emitter *c, const kn_expr *e)
{
    return e->type == KN_INDEX && kn_cg_range(&c->facts, e->args[0]).lo >= 0 &&
           kn_cg_range(&c->facts, e->args[1]).lo > 0;
}

/* The operator of C that means the same, or NULL. */
static const char *plain_operator(const c_emitter *c, const kn_expr *e)
{
    kn_dtype type = operand_type(e);
    const kn_scalar_info *info = kn_scalar_get(e->op);
    switch (e->op) {
    case KN_OP_ADD:
    case KN_OP_SUB:
    case KN_OP_MUL:
    case KN_OP_NEG:
        return is_plain_float(type) ||
                       (type == KN_INDEX && kn_cg_is_finite(kn_cg_range(&c->facts, e)))
                   ? info->text
                   : NULL;
    case KN_OP_DIV: return is_plain_float(type) || is_plain_division(c, e) ? "/" : NULL;
    case KN_OP_FLOORDIV: return is_plain_division(c, e) ? "/" : NULL;
    case KN_OP_REM:
    case KN_OP_MOD: return is_plain_division(c, e) ? "%" : NULL;
    default: break;
    }
    if (info->class == KN_CLASS_COMPARE)
        return is_plain_comparison(e, type) ? info->text : NULL;
    return info->class == KN_CLASS_LOGIC || info->class == KN_CLASS_SELECT ? info->text : NULL;
}

static int precedence_of(const char *op, const kn_expr *e)
{
    return strcmp(op, "/") == 0 || strcmp(op, "%") == 0 ? C_PREC_MUL
                                                        : kn_scalar_get(e->op)->precedence;
}

/* An arm of ?: of which the other is a literal too: an int, were it not for the cast. */
static void put_arm(c_emitter *c, kn_str *out, const kn_expr *e)
{
    bool wide =
        e->kind == KN_E_CONST && (e->type == KN_INDEX || e->type == KN_I64) && e->i != INT64_MIN;
    if (wide)
        kn_putf(out, "INT64_C(%" PRId64 ")", e->i);
    else
        kn_c_put_within(c, out, e, C_PREC_OR);
}

static int put_select(c_emitter *c, kn_str *out, const kn_expr *e)
{
    kn_c_put_within(c, out, e->args[0], C_PREC_OR);
    kn_put(out, " ? ");
    put_arm(c, out, e->args[1]);
    kn_put(out, " : ");
    put_arm(c, out, e->args[2]);
    return C_PREC_SELECT;
}

static int put_prefix(c_emitter *c, kn_str *out, const kn_expr *e, const char *op)
{
    kn_put(out, op);
    kn_c_put_within(c, out, e->args[0], C_PREC_POSTFIX);
    return C_PREC_UNARY;
}

/* Comparisons of comparisons are bracketed, and && in ||: compilers warn. */
static int put_infix(c_emitter *c, kn_str *out, const kn_expr *e, const char *op)
{
    int p = precedence_of(op, e), left = p, right = p + 1;
    if (kn_scalar_get(e->op)->class == KN_CLASS_COMPARE)
        left = right = C_PREC_SHIFT;
    for (int i = 0; i < 2 && e->op == KN_OP_LOR; i++) {
        if (e->args[i]->kind == KN_E_OP && e->args[i]->op == KN_OP_LAND)
            *(i ? &right : &left) = C_PREC_POSTFIX;
    }
    kn_c_put_within(c, out, e->args[0], left);
    kn_putf(out, " %s ", op);
    kn_c_put_within(c, out, e->args[1], right);
    return p;
}

static int put_op(c_emitter *c, kn_str *out, const kn_expr *e)
{
    const char *op = plain_operator(c, e);
    if (!op) {
        kn_putf(out, "npu_%s_%s", kn_scalar_get(e->op)->id, kn_dtype_name(operand_type(e)));
        put_args(c, out, e);
        return C_PREC_POSTFIX;
    }
    if (e->op == KN_OP_SELECT)
        return put_select(c, out, e);
    return e->nargs == 1 ? put_prefix(c, out, e, op) : put_infix(c, out, e, op);
}

/* ---- Casts ---- */

/* Types that are the same in C, whatever the cast. */
static bool is_same(kn_dtype from, kn_dtype to)
{
    return from == to || (from == KN_INDEX && to == KN_I64) || (from == KN_I64 && to == KN_INDEX);
}

static int put_cast(c_emitter *c, kn_str *out, const kn_expr *e)
{
    static const char *const modes[] = {"cast", "sat", "bitcast"};
    const kn_expr *x = e->args[0];
    if (is_same(x->type, e->type))
        return kn_c_put(c, out, x);
    kn_putf(out, "npu_%s_%s_%s", modes[e->mode], kn_dtype_name(x->type), kn_dtype_name(e->type));
    put_args(c, out, e);
    return C_PREC_POSTFIX;
}

int kn_c_put(c_emitter *c, kn_str *out, const kn_expr *e)
{
    int name;
    switch (e->kind) {
    case KN_E_CONST: return put_const(out, e);
    case KN_E_VAR:
        name = kn_c_find(c, e->name);
        kn_c_read(c, name);
        kn_put(out, c->scope.at[name].c);
        return C_PREC_POSTFIX;
    case KN_E_LOAD: put_load(c, out, e); return C_PREC_POSTFIX;
    case KN_E_OP: return put_op(c, out, e);
    case KN_E_CAST: return put_cast(c, out, e);
    }
    return C_PREC_POSTFIX;
}
