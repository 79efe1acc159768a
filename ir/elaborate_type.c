/* Types of values. There is no implicit promotion: operands of an operator have one type. Literals
   (and attributes, which are literals by then) are untyped until they meet a typed operand, and
   then take its type; literals alone follow the rules of indices (integer / and % are floor) and
   end as the type that their context wants. Indices and sizes are of type index and need a cast as
   values; only a comparison brings an integer tensor's element to index by itself.

   In a subscript the elements of integer tensors are indices at once, and what is built is
   canonical. Widened, every f16 or bf16 part is f32: loads are cast, operators work on f32; a cast
   to f16 still rounds. */
#include <assert.h>

#include "ir/elaborate_internal.h"

#include "ir/expr_internal.h"

typedef struct {
    kn_el_stmt *st;
    kn_elab *el;
    kn_arena *a;
    bool widen, subscript;
} typer;

/* ---- types as written ---- */

static kn_dtype accumulator_of(kn_dtype t)
{
    if (t == KN_F16 || t == KN_BF16) {
        return KN_F32;
    }
    bool narrow = kn_dtype_is_integer(t) && t != KN_INDEX && kn_dtype_bits(t) <= 16;
    return narrow ? KN_I32 : t;
}

static kn_dtype simple_type(const kn_elab *el, const char *name, size_t n)
{
    kn_dtype t;
    const char *key = kn_intern_n(el->ctx, name, n);
    const kn_el_name *attr = kn_map_get(&el->names, key);
    if (attr && attr->kind == KN_EL_TYPE) {
        return attr->type;
    }
    if (kn_dtype_parse(name, n, &t)) {
        return t;
    }
    const kn_el_tensor *of = kn_el_find(el, key);
    return of ? of->t.type : KN_UNTYPED;
}

kn_dtype kn_el_type_named(const kn_elab *el, const char *name)
{
    const char *open = strchr(name, '(');
    if (!open) {
        return simple_type(el, name, strlen(name));
    }
    kn_dtype t = simple_type(el, open + 1, strlen(open + 1) - 1);
    return t != KN_UNTYPED && name[0] == 'a' ? accumulator_of(t) : t;
}

static bool is_half(kn_dtype t)
{
    return t == KN_F16 || t == KN_BF16;
}

/* ---- literals meet types ---- */

static const kn_expr *coerce(const typer *t, const kn_expr *e, kn_dtype want);

_Noreturn static void fail_mismatch(const typer *t, const kn_expr *e, kn_dtype want)
{
    if (e->type == KN_INDEX) {
        const char *name = kn_dtype_name(want);
        kn_el_fail(t->el, "%s is an index where %s is wanted: it needs a cast, cast(%s, %s)",
                   kn_el_text(t->el, e), name, name, kn_el_text(t->el, e));
    }
    if (want == KN_INDEX) {
        kn_el_fail(t->el, "%s is %s where an index is wanted", kn_el_text(t->el, e),
                   e->type == KN_UNTYPED ? "no integer" : kn_dtype_name(e->type));
    }
    kn_el_fail(t->el, "%s is %s where %s is wanted", kn_el_text(t->el, e),
               e->type == KN_UNTYPED ? "a literal" : kn_dtype_name(e->type), kn_dtype_name(want));
}

static bool fits(kn_dtype type, int64_t i)
{
    if (type == KN_BOOL) {
        return i == 0 || i == 1;
    }
    uint64_t most = kn_dtype_max(type);
    return i >= kn_dtype_min(type) && (i < 0 || (uint64_t)i <= most);
}

static const kn_expr *coerce_literal(const typer *t, const kn_expr *e, kn_dtype want)
{
    if (kn_dtype_is_float(want)) {
        return kn_float(t->a, want, e->real ? e->f : (double)e->i);
    }
    if (e->real || (want != KN_INDEX && !fits(want, e->i))) {
        kn_el_fail(t->el, "the literal %s does not fit %s", kn_el_text(t->el, e),
                   kn_dtype_name(want));
    }
    return want == KN_INDEX ? kn_index(t->a, e->i) : kn_int(t->a, want, e->i);
}

static bool takes(kn_scalar op, kn_dtype type)
{
    switch (kn_scalar_get(op)->class) {
    case KN_CLASS_ARITH: return type != KN_BOOL;
    case KN_CLASS_FLOAT: return kn_dtype_is_float(type);
    case KN_CLASS_LOGIC: return type == KN_BOOL;
    case KN_CLASS_BITS:
        if (type == KN_BOOL) {
            return op == KN_OP_AND || op == KN_OP_OR || op == KN_OP_XOR || op == KN_OP_NOT;
        }
        return kn_dtype_is_integer(type) && type != KN_INDEX;
    case KN_CLASS_COMPARE:
    case KN_CLASS_SELECT: return true;
    }
    return false;
}

static void check_takes(const typer *t, const kn_expr *e, kn_dtype type)
{
    if (takes(e->op, type)) {
        return;
    }
    const char *text = kn_scalar_get(e->op)->text;
    if (type == KN_INDEX) {
        kn_el_fail(t->el, "`%s` of an index: %s needs a cast to a value type", text,
                   kn_el_text(t->el, e->args[0]));
    }
    kn_el_fail(t->el, "`%s` does not take %s", text, kn_dtype_name(type));
}

static const kn_expr *fold(const typer *t, const kn_expr *e)
{
    const kn_expr *f = kn_expr_fold(t->a, e);
    return f ? f : e;
}

/* ---- index arithmetic ---- */

static const kn_expr *index_op(const typer *t, const kn_expr *e, const kn_expr *const *x)
{
    kn_arena *a = t->a;
    int64_t by;
    const kn_expr *zero = kn_index(a, 0);
    bool divides =
        e->op == KN_OP_DIV || e->op == KN_OP_REM || e->op == KN_OP_FLOORDIV || e->op == KN_OP_MOD;
    if (divides && kn_index_const(x[1], &by) && by == 0) {
        kn_el_fail(t->el, "%s divides by zero", kn_el_text(t->el, e));
    }
    switch (e->op) {
    case KN_OP_ADD: return kn_index_add(a, x[0], x[1]);
    case KN_OP_SUB: return kn_index_sub(a, x[0], x[1]);
    case KN_OP_MUL: return kn_index_mul(a, x[0], x[1]);
    case KN_OP_NEG: return kn_index_sub(a, zero, x[0]);
    case KN_OP_DIV:
    case KN_OP_FLOORDIV: return kn_index_div(a, x[0], x[1]);
    case KN_OP_REM:
    case KN_OP_MOD: return kn_index_mod(a, x[0], x[1]);
    case KN_OP_MIN: return kn_index_min(a, x[0], x[1]);
    case KN_OP_MAX: return kn_index_max(a, x[0], x[1]);
    case KN_OP_ABS: return kn_index_max(a, x[0], kn_index_sub(a, zero, x[0]));
    case KN_OP_SELECT: return kn_index_simplify_at(a, kn_select(a, x[0], x[1], x[2]), t->el->place);
    default: break;
    }
    kn_el_fail(t->el, "`%s` of an index: %s needs a cast to a value type",
               kn_scalar_get(e->op)->text, kn_el_text(t->el, x[0]));
}

static bool is_integer_literal(const kn_expr *e)
{
    return e->kind == KN_E_CONST && e->type == KN_UNTYPED && !e->real;
}

/* An operator on literals alone: integers follow the rules of indices and stay a literal, the rest
 * waits. */
static const kn_expr *literal_op(const typer *t, const kn_expr *e, const kn_expr *const *x)
{
    const kn_expr *index[3] = {NULL};
    int64_t value;
    bool integers = kn_scalar_get(e->op)->class == KN_CLASS_ARITH && e->op != KN_OP_POW;
    for (int i = 0; i < e->nargs; i++) {
        integers = integers && is_integer_literal(x[i]);
    }
    if (!integers) {
        return kn_expr_with(t->a, e, KN_UNTYPED, x);
    }
    for (int i = 0; i < e->nargs; i++) {
        index[i] = kn_index(t->a, x[i]->i);
    }
    const kn_expr *r = index_op(t, e, index);
    return kn_index_const(r, &value) ? kn_int(t->a, KN_UNTYPED, value)
                                     : kn_expr_with(t->a, e, KN_UNTYPED, x);
}

static const kn_expr *typed_op(const typer *t, const kn_expr *e, kn_dtype type,
                               const kn_expr *const *x)
{
    return type == KN_INDEX ? index_op(t, e, x) : kn_op(t->a, type, e->op, x, e->nargs);
}

static const kn_expr *coerce_op(const typer *t, const kn_expr *e, kn_dtype want)
{
    const kn_expr *x[3] = {NULL};
    check_takes(t, e, want);
    for (int i = 0; i < e->nargs; i++) {
        bool condition = e->op == KN_OP_SELECT && i == 0;
        x[i] = condition ? e->args[i] : coerce(t, e->args[i], want);
    }
    return fold(t, typed_op(t, e, want, x));
}

static const kn_expr *coerce(const typer *t, const kn_expr *e, kn_dtype want)
{
    assert(e);
    if (e->type == want) {
        return e;
    }
    if (e->type != KN_UNTYPED || want == KN_UNTYPED) {
        fail_mismatch(t, e, want);
    }
    return e->kind == KN_E_CONST ? coerce_literal(t, e, want) : coerce_op(t, e, want);
}

/* ---- operators ---- */

static const kn_expr *synth(const typer *t, const kn_expr *e);

static bool is_value_integer(kn_dtype type)
{
    return type != KN_UNTYPED && type != KN_INDEX && kn_dtype_is_integer(type);
}

/* The one type of the operands x[from..n): KN_UNTYPED when all are literals. */
static kn_dtype common_type(const typer *t, const kn_expr *e, const kn_expr *const *x, int from)
{
    const kn_expr *first = NULL;
    for (int i = from; i < e->nargs; i++) {
        if (x[i]->type == KN_UNTYPED || (first && first->type == x[i]->type)) {
            continue;
        }
        if (first) {
            const kn_expr *index = first->type == KN_INDEX ? first : x[i];
            const kn_expr *other = first->type == KN_INDEX ? x[i] : first;
            if (index->type == KN_INDEX) {
                fail_mismatch(t, index, other->type);
            }
            kn_el_fail(t->el, "`%s` of %s and %s: %s, %s", kn_scalar_get(e->op)->text,
                       kn_dtype_name(first->type), kn_dtype_name(x[i]->type),
                       kn_el_text(t->el, first), kn_el_text(t->el, x[i]));
        }
        first = x[i];
    }
    return first ? first->type : KN_UNTYPED;
}

/* O[e] <= t: an element of an integer tensor compared with an index is one. */
static void meet_index(const typer *t, const kn_expr **x)
{
    assert(x[0] && x[1]);
    for (int i = 0; i < 2; i++) {
        if (x[i]->type == KN_INDEX && is_value_integer(x[1 - i]->type)) {
            x[1 - i] = kn_cast(t->a, KN_CAST_CAST, KN_INDEX, x[1 - i]);
        }
    }
}

static const kn_expr *synth_compare(const typer *t, const kn_expr *e, const kn_expr **x)
{
    meet_index(t, x);
    kn_dtype type = common_type(t, e, x, 0);
    if (type == KN_UNTYPED) {
        type = is_integer_literal(x[0]) && is_integer_literal(x[1]) ? KN_INDEX : KN_F64;
    }
    const kn_expr *args[] = {coerce(t, x[0], type), coerce(t, x[1], type)};
    const kn_expr *r = kn_op(t->a, KN_BOOL, e->op, args, 2);
    return type == KN_INDEX ? kn_index_simplify_at(t->a, r, t->el->place) : fold(t, r);
}

/* select, && and || on a condition that is known are what they choose. */
static const kn_expr *synth_logic(const typer *t, const kn_expr *e, const kn_expr **x)
{
    for (int i = 0; i < e->nargs; i++) {
        x[i] = coerce(t, x[i], KN_BOOL);
    }
    return kn_index_simplify_at(t->a, kn_op(t->a, KN_BOOL, e->op, x, e->nargs), t->el->place);
}

static const kn_expr *synth_op(const typer *t, const kn_expr *e)
{
    const kn_expr *x[3] = {NULL};
    bool select = e->op == KN_OP_SELECT;
    for (int i = 0; i < e->nargs; i++) {
        x[i] = synth(t, e->args[i]);
    }
    kn_scalar_class class = kn_scalar_get(e->op)->class;
    if (class == KN_CLASS_COMPARE) {
        return synth_compare(t, e, x);
    }
    if (class == KN_CLASS_LOGIC) {
        return synth_logic(t, e, x);
    }
    if (select) {
        x[0] = coerce(t, x[0], KN_BOOL);
    }
    kn_dtype type = common_type(t, e, x, select);
    if (type == KN_UNTYPED) {
        return literal_op(t, e, x);
    }
    check_takes(t, e, type);
    for (int i = select; i < e->nargs; i++) {
        x[i] = coerce(t, x[i], type);
    }
    return typed_op(t, e, type, x);
}

/* ---- casts ---- */

static const kn_expr *widened(const typer *t, const kn_expr *e)
{
    return t->widen && is_half(e->type) ? kn_cast(t->a, KN_CAST_CAST, KN_F32, e) : e;
}

static kn_dtype unsigned_of(int bits)
{
    return bits == 4    ? KN_U4
           : bits == 8  ? KN_U8
           : bits == 16 ? KN_U16
           : bits == 32 ? KN_U32
                        : KN_U64;
}

static const kn_expr *synth_bitcast(const typer *t, const kn_expr *e, kn_dtype type)
{
    typer plain = {t->st, t->el, t->a, false, false};
    const kn_expr *x = synth(&plain, e->args[0]);
    if (x->type == KN_UNTYPED) {
        x = coerce(t, x, unsigned_of(kn_dtype_bits(type)));
    }
    bool same = x->type != KN_INDEX && kn_dtype_bits(x->type) == kn_dtype_bits(type);
    if (!same || type == KN_BOOL || x->type == KN_BOOL) {
        kn_el_fail(t->el, "bitcast of %s to %s, which is not of the same width",
                   kn_dtype_name(x->type), kn_dtype_name(type));
    }
    return x->type == type ? x : fold(t, kn_cast(t->a, KN_CAST_BITCAST, type, x));
}

/* cast(f16, cast(f32, x)) of an f16 x is x. */
static const kn_expr *without_detour(const kn_expr *x, kn_dtype type)
{
    bool detour = x->kind == KN_E_CAST && x->mode == KN_CAST_CAST && x->type == KN_F32 &&
                  is_half(type) && x->args[0]->type == type;
    return detour ? x->args[0] : x;
}

static const kn_expr *synth_value_cast(const typer *t, const kn_expr *e, kn_dtype type)
{
    typer value = {t->st, t->el, t->a, t->widen, false};
    const kn_expr *x = synth(&value, e->args[0]);
    if (x->type == KN_UNTYPED) {
        kn_dtype as = kn_dtype_is_float(type) ? type : is_integer_literal(x) ? KN_I64 : KN_F64;
        x = coerce(t, x, type == KN_INDEX && as == KN_I64 ? KN_INDEX : as);
    }
    if (x->type == type) {
        return x;
    }
    x = without_detour(x, type);
    if (type == KN_INDEX && !kn_dtype_is_integer(x->type)) {
        fail_mismatch(t, x, type);
    }
    return x->type == type ? x : fold(t, kn_cast(t->a, e->mode, type, x));
}

static const kn_expr *synth_cast(const typer *t, const kn_expr *e)
{
    kn_dtype type = e->name ? kn_el_type_named(t->el, e->name) : e->type;
    if (type == KN_UNTYPED) {
        t->st->blocked = e->name;
        return kn_int(t->a, KN_UNTYPED, 0);
    }
    bool bits = e->mode == KN_CAST_BITCAST;
    const kn_expr *r = bits ? synth_bitcast(t, e, type) : synth_value_cast(t, e, type);
    if (t->subscript && is_value_integer(r->type)) {
        return kn_cast(t->a, KN_CAST_CAST, KN_INDEX, r);
    }
    return widened(t, r);
}

/* ---- loads ---- */

static const kn_expr *guarded_load(const typer *t, const kn_expr *e, const kn_tensor *tensor,
                                   const kn_expr *load)
{
    const kn_expr *otherwise = coerce(t, synth(t, e->args[e->nargs - 1]), load->type);
    const kn_expr *inside = kn_el_inside(t->st, tensor, e->args);
    if (!inside) {
        return load;
    }
    const kn_expr *r = kn_select(t->a, inside, load, otherwise);
    return load->type == KN_INDEX ? kn_index_simplify_at(t->a, r, t->el->place) : r;
}

static const kn_expr *synth_load(const typer *t, const kn_expr *e)
{
    const kn_tensor *tensor = &kn_el_find(t->el, e->name)->t;
    int nsubs = kn_load_nsubs(e);
    if (tensor->type == KN_UNTYPED || (e->guarded && tensor->rank < 0)) {
        t->st->blocked = e->name;
        return kn_int(t->a, KN_UNTYPED, 0);
    }
    if (tensor->rank >= 0 && tensor->rank != nsubs) {
        kn_el_fail(t->el, "`%s` has rank %d, but %d subscripts", e->name, tensor->rank, nsubs);
    }
    const kn_expr *load = kn_load(t->a, tensor->type, e->name, e->args, nsubs);
    if (t->subscript) {
        if (!is_value_integer(tensor->type)) {
            kn_el_fail(t->el, "a subscript reads `%s`, which is %s and not an integer", e->name,
                       kn_dtype_name(tensor->type));
        }
        load = kn_cast(t->a, KN_CAST_CAST, KN_INDEX, load);
    }
    load = widened(t, load);
    return e->guarded ? guarded_load(t, e, tensor, load) : load;
}

static const kn_expr *synth(const typer *t, const kn_expr *e)
{
    if (e->type == KN_INDEX) {
        return e; /* a size, an index, or a part that was a subscript's */
    }
    switch (e->kind) {
    case KN_E_CONST: return widened(t, e);
    case KN_E_VAR: return e;
    case KN_E_LOAD: return synth_load(t, e);
    case KN_E_OP: return synth_op(t, e);
    case KN_E_CAST: return synth_cast(t, e);
    }
    return e;
}

/* ---- for the other files ---- */

const kn_expr *kn_el_value(kn_el_stmt *st, const kn_expr *e, kn_dtype want, bool widen,
                           const char *what)
{
    typer t = {st, st->el, st->el->a, widen, false};
    const kn_expr *v = synth(&t, e);
    if (v->type != KN_UNTYPED && v->type != want) {
        if (v->type == KN_INDEX) {
            fail_mismatch(&t, v, want);
        }
        kn_el_fail(st->el, "%s is %s, but must be %s", what, kn_dtype_name(v->type),
                   kn_dtype_name(want));
    }
    return coerce(&t, v, want);
}

const kn_expr *kn_el_subscript(kn_el_stmt *st, const kn_expr *e)
{
    typer t = {st, st->el, st->el->a, false, true};
    const kn_expr *v = synth(&t, e);
    if (st->blocked) {
        return kn_index(t.a, 0);
    }
    return kn_index_simplify_at(t.a, coerce(&t, v, KN_INDEX), st->el->place);
}

static kn_dtype infer_op(const kn_el_stmt *st, const kn_expr *e)
{
    kn_scalar_class class = kn_scalar_get(e->op)->class;
    if (class == KN_CLASS_COMPARE || class == KN_CLASS_LOGIC) {
        return KN_BOOL;
    }
    kn_dtype found = KN_UNTYPED;
    for (int i = e->op == KN_OP_SELECT; i < e->nargs && found == KN_UNTYPED; i++) {
        found = kn_el_infer_type(st, e->args[i]);
    }
    return found;
}

kn_dtype kn_el_infer_type(const kn_el_stmt *st, const kn_expr *e)
{
    switch (e->kind) {
    case KN_E_CONST:
    case KN_E_VAR: return e->type;
    case KN_E_LOAD: return kn_el_find(st->el, e->name)->t.type;
    case KN_E_CAST: return e->name ? kn_el_type_named(st->el, e->name) : e->type;
    case KN_E_OP: return e->type == KN_INDEX ? KN_INDEX : infer_op(st, e);
    }
    return KN_UNTYPED;
}
