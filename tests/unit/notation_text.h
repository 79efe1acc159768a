/* The trees of notation_oracle.h as index notation, for test_random_notation.c. */
#ifndef KN_TESTS_NOTATION_TEXT_H
#define KN_TESTS_NOTATION_TEXT_H

#include "notation_oracle.h"

static void o_print(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e, int outer);

static void o_print_list(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e)
{
    const o_tensor *t = e->kind == O_LOAD ? e->tensor : NULL;
    const char *comma = "";
    for (int i = 0; i <= e->n; i++) {
        if (t && t->pack == i) {
            kn_putf(out, "%s*b", comma);
            comma = ", ";
        }
        if (i < e->n) {
            kn_put(out, comma);
            o_print(out, p, s, e->arg[i], 0);
            comma = ", ";
        }
    }
}

static void o_print_number(kn_str *out, const o_expr *e)
{
    if (e->text) {
        kn_put(out, e->text);
    } else if (o_float(e->type)) {
        kn_putf(out, e->f == floor(e->f) ? "%.1f" : "%.17g", e->f);
    } else if (e->type == KN_BOOL) {
        kn_put(out, e->i ? "true" : "false");
    } else {
        kn_putf(out, "%lld", (long long)e->i);
    }
}

static void o_print_size(kn_str *out, const o_program *p, const o_dim *dim)
{
    for (int i = 0; i < p->nsizes; i++) {
        if (p->size[i].dim == dim) {
            kn_put(out, p->size[i].name);
            return;
        }
    }
    kn_put(out, "no_such_size");
}

static void o_print_op(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e, int outer)
{
    int own = o_ops[e->op].precedence;
    bool mixes = own <= 6 && outer <= 6 && outer > 0; /* && || & | ^: always in brackets */
    bool brackets = own && (own < outer || mixes);
    if (own == 0) {
        kn_putf(out, "%s(", o_ops[e->op].text);
        o_print_list(out, p, s, e);
        kn_put(out, ")");
        return;
    }
    kn_put(out, brackets ? "(" : "");
    if (e->n == 1) {
        kn_put(out, o_ops[e->op].text);
        o_print(out, p, s, e->arg[0], own + 1);
    } else {
        o_print(out, p, s, e->arg[0], own);
        kn_putf(out, " %s ", o_ops[e->op].text);
        o_print(out, p, s, e->arg[1], own + 1);
    }
    kn_put(out, brackets ? ")" : "");
}

static void o_print_load(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e,
                         int outer)
{
    kn_putf(out, "%s%s[", e->otherwise && outer ? "(" : "", e->tensor->name);
    o_print_list(out, p, s, e);
    kn_put(out, "]");
    if (e->otherwise) {
        kn_put(out, " else ");
        o_print(out, p, s, e->otherwise, 12);
        kn_put(out, outer ? ")" : "");
    }
}

/* `outer`: the least precedence that needs no brackets; 0 anywhere. */
static void o_print(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e, int outer)
{
    bool negative = e->kind == O_NUMBER && (o_float(e->type) ? signbit(e->f) : e->i < 0);
    kn_put(out, negative && outer ? "(" : "");
    switch (e->kind) {
    case O_NUMBER: o_print_number(out, e); break;
    case O_INDEX: kn_put(out, s->index[e->index].name); break;
    case O_SIZE: o_print_size(out, p, e->dim); break;
    case O_LOAD: o_print_load(out, p, s, e, outer); break;
    case O_LET: kn_put(out, e->text); break;
    case O_CAST:
        kn_putf(out, "%s(%s, ", e->text, kn_dtype_name(e->type));
        o_print(out, p, s, e->arg[0], 0);
        kn_put(out, ")");
        break;
    case O_OP: o_print_op(out, p, s, e, outer); break;
    }
    kn_put(out, negative && outer ? ")" : "");
}

/* The `let`s of a statement stand before it. */
static void o_print_lets(kn_str *out, const o_program *p, const o_stmt *s, const o_expr *e)
{
    for (int i = 0; i < e->n; i++) {
        o_print_lets(out, p, s, e->arg[i]);
    }
    if (e->otherwise) {
        o_print_lets(out, p, s, e->otherwise);
    }
    if (e->kind == O_LET) {
        kn_putf(out, "let %s = ", e->text);
        o_print(out, p, s, e->arg[0], 0);
        kn_put(out, "; ");
    }
}

static void o_print_stmt(kn_str *out, const o_program *p, const o_stmt *s)
{
    static const char *const updates[] = {"=", "+=", "*=", "max=", "min="};
    o_print_lets(out, p, s, s->rhs);
    kn_put(out, s->strict ? "strict " : "");
    o_print(out, p, s, s->target, 0);
    kn_putf(out, " %s%s ", updates[s->update], s->init ? "!" : "");
    o_print(out, p, s, s->rhs, 0);
    const char *comma = " where ";
    for (int k = 0; k < s->n; k++) {
        const o_index *x = &s->index[k];
        if (x->hi) {
            kn_putf(out, "%s%s in ", comma, x->name);
            o_print(out, p, s, x->lo, 0);
            kn_put(out, ":");
            o_print(out, p, s, x->hi, 0);
            comma = ", ";
        }
    }
    if (s->where) {
        kn_put(out, comma);
        o_print(out, p, s, s->where, 0);
    }
}

static void o_print_operand(kn_str *out, const o_program *p, const o_tensor *t)
{
    kn_putf(out, "%s[", t->name);
    for (int d = 0; d < t->array->rank || d == t->pack; d++) {
        const o_dim *dim = d < t->array->rank ? t->array->dim[d] : NULL;
        bool packed = t->pack >= 0 && d >= t->pack && d < t->pack + t->width;
        if (d == t->pack) {
            kn_putf(out, "%s*b", d ? ", " : "");
        }
        if (dim && !packed) {
            kn_put(out, d || t->pack == 0 ? ", " : "");
            if (t->dims[d]) {
                kn_put(out, t->dims[d]);
            } else if (t->literal && dim->constant) {
                kn_put(out, dim->text);
            } else {
                o_print_size(out, p, dim);
            }
        }
    }
    kn_put(out, "]");
}

/* "(A[n0, n1], ...) -> Y0: ...", without the quotes. */
static void o_print_program(kn_str *out, const o_program *p)
{
    kn_put(out, "(");
    for (int i = 0; i < p->noperands; i++) {
        kn_put(out, i ? ", " : "");
        o_print_operand(out, p, p->operand[i]);
    }
    kn_putf(out, "%s) -> ", p->params);
    for (int i = 0; i < p->nresults; i++) {
        const o_tensor *t = p->result[i];
        kn_putf(out, "%s%s%s%s", i ? ", " : "", t->name, t->shape ? ": " : "",
                t->shape ? t->shape : "");
    }
    for (int k = 0; k < p->nstmts; k++) {
        const o_stmt *s = &p->stmt[k];
        bool first = s->over >= 0 && (k == 0 || p->stmt[k - 1].over != s->over);
        bool last = s->over >= 0 && (k + 1 == p->nstmts || p->stmt[k + 1].over != s->over);
        kn_put(out, k ? " " : ": ");
        if (first) {
            kn_putf(out, "over %s { ", s->index[0].name);
        }
        o_print_stmt(out, p, s);
        kn_put(out, last ? " }" : k + 1 < p->nstmts ? ";" : "");
    }
}

#endif
