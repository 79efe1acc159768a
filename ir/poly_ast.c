/* From a schedule to loops: isl generates the AST, this file turns it into loop IR and puts the
 * statements in. */
#include <isl/ast.h>
#include <isl/ast_build.h>
#include <isl/schedule.h>
#include <isl/schedule_node.h>
#include <isl/union_set.h>

#include <stdlib.h>

#include "ir/poly_internal.h"

/* isl's iterators are c0, c1, ... by depth; marks in the tree tell what the loop at each depth is
   called. `bound` says what they are in loop IR: a variable, or what a degenerate loop stands for. */
typedef struct {
    kn_poly *poly;
    KN_VEC(kn_binding) bound;
    const char *names[KN_POLY_MAX_DEPTH]; /* of the loops at hand, outermost first */
    int depth;
    const char *failed; /* what isl gave that loop IR has no word for */
} kn_translation;

static const kn_expr *to_expr(kn_translation *t, isl_ast_expr *e);

/* ---- expressions ---- */

static const kn_expr *name_to_expr(kn_translation *t, const char *name)
{
    kn_poly *p = t->poly;
    for (int i = t->bound.n - 1; i >= 0; i--) {
        if (strcmp(t->bound.at[i].name, name) == 0) {
            return t->bound.at[i].value;
        }
    }
    for (int i = 0; i < p->params.n; i++) {
        if (strcmp(p->params.at[i].name, name) == 0) {
            return p->params.at[i].value;
        }
    }
    return kn_var(p->arena, KN_INDEX, kn_intern(p->ctx, name));
}

static const kn_expr *index_binary(kn_arena *a, enum isl_ast_expr_op_type op, const kn_expr *x,
                                   const kn_expr *y)
{
    switch (op) {
    case isl_ast_expr_op_max: return kn_index_max(a, x, y);
    case isl_ast_expr_op_min: return kn_index_min(a, x, y);
    case isl_ast_expr_op_add: return kn_index_add(a, x, y);
    case isl_ast_expr_op_sub: return kn_index_sub(a, x, y);
    case isl_ast_expr_op_mul: return kn_index_mul(a, x, y);
    case isl_ast_expr_op_div:
    case isl_ast_expr_op_fdiv_q:
    case isl_ast_expr_op_pdiv_q: return kn_index_div(a, x, y);
    case isl_ast_expr_op_pdiv_r:
    case isl_ast_expr_op_zdiv_r: return kn_index_mod(a, x, y);
    case isl_ast_expr_op_and:
    case isl_ast_expr_op_and_then: return kn_op2(a, KN_OP_LAND, x, y);
    case isl_ast_expr_op_or:
    case isl_ast_expr_op_or_else: return kn_op2(a, KN_OP_LOR, x, y);
    case isl_ast_expr_op_eq: return kn_op2(a, KN_OP_EQ, x, y);
    case isl_ast_expr_op_le: return kn_op2(a, KN_OP_LE, x, y);
    case isl_ast_expr_op_lt: return kn_op2(a, KN_OP_LT, x, y);
    case isl_ast_expr_op_ge: return kn_op2(a, KN_OP_GE, x, y);
    case isl_ast_expr_op_gt: return kn_op2(a, KN_OP_GT, x, y);
    default: return NULL;
    }
}

static const kn_expr *argument(kn_translation *t, isl_ast_expr *e, int i)
{
    isl_ast_expr *arg = isl_ast_expr_get_op_arg(e, i);
    const kn_expr *x = to_expr(t, arg);
    isl_ast_expr_free(arg);
    return x;
}

static const kn_expr *op_to_expr(kn_translation *t, isl_ast_expr *e)
{
    kn_arena *a = t->poly->arena;
    enum isl_ast_expr_op_type op = isl_ast_expr_get_op_type(e);
    const kn_expr *x = argument(t, e, 0);
    if (op == isl_ast_expr_op_minus) {
        return kn_index_sub(a, kn_index(a, 0), x);
    }
    if (op == isl_ast_expr_op_cond || op == isl_ast_expr_op_select) {
        return kn_index_simplify(a, kn_select(a, x, argument(t, e, 1), argument(t, e, 2)));
    }
    int n = (int)isl_ast_expr_get_op_n_arg(e);
    for (int i = 1; i < n && x; i++) {
        x = index_binary(a, op, x, argument(t, e, i));
    }
    if (!x) {
        t->failed = "an operator";
        return kn_index(a, 0);
    }
    return x;
}

static const kn_expr *to_expr(kn_translation *t, isl_ast_expr *e)
{
    kn_arena *a = t->poly->arena;
    switch (isl_ast_expr_get_type(e)) {
    case isl_ast_expr_int: {
        isl_val *v = isl_ast_expr_get_val(e);
        int64_t value = isl_val_get_num_si(v); /* saturates outside of long */
        t->failed = isl_val_cmp_si(v, value) == 0 ? t->failed : "a large number";
        isl_val_free(v);
        return kn_index(a, value);
    }
    case isl_ast_expr_id: {
        isl_id *id = isl_ast_expr_get_id(e);
        const kn_expr *x = name_to_expr(t, isl_id_get_name(id));
        isl_id_free(id);
        return x;
    }
    case isl_ast_expr_op: return op_to_expr(t, e);
    case isl_ast_expr_error: break;
    }
    t->failed = "an expression";
    return kn_index(a, 0);
}

/* ---- statements ---- */

/* `check` for an access: inside its tensor, when its guard holds. */
static kn_loop *bounds_check(kn_poly *p, const kn_access *access, const kn_binding *b, int n)
{
    kn_arena *a = p->arena;
    const kn_expr *cond = access->unproved;
    if (access->guard) {
        cond = kn_op2(a, KN_OP_LOR, kn_op1(a, KN_OP_LNOT, access->guard), cond);
    }
    return kn_nest_bounds_check(a, p->nest, p->nest->tensors[access->tensor].name,
                                kn_expr_subst(a, cond, b, n));
}

static bool same_check(const kn_access *x, const kn_access *y)
{
    bool guards =
        x->guard == y->guard || (x->guard && y->guard && kn_expr_equal(x->guard, y->guard));
    return guards && x->tensor == y->tensor && kn_expr_equal(x->unproved, y->unproved);
}

static bool already_checked(const kn_poly *p, int access)
{
    const kn_access *it = &p->accesses.at[access];
    for (int i = 0; i < access; i++) {
        const kn_access *x = &p->accesses.at[i];
        if (x->stmt == it->stmt && x->unproved && same_check(x, it)) {
            return true;
        }
    }
    return false;
}

static void add_instance(kn_poly *p, kn_block_builder *out, int stmt, const kn_binding *b)
{
    kn_arena *a = p->arena;
    const kn_stmt *s = &p->nest->stmts[stmt];
    kn_block_builder body = {.arena = a};
    for (int i = 0; i < p->accesses.n; i++) {
        const kn_access *access = &p->accesses.at[i];
        if (access->stmt == stmt && access->unproved && !already_checked(p, i)) {
            kn_block_add(access->of_where ? out : &body, bounds_check(p, access, b, s->niters));
        }
    }
    const kn_expr **subs = KN_ARRAY(a, const kn_expr *, s->nsubs + 1);
    for (int i = 0; i < s->nsubs; i++) {
        subs[i] = kn_expr_subst(a, s->subs[i], b, s->niters);
    }
    const kn_expr *value = kn_expr_subst(a, s->rhs, b, s->niters);
    kn_loop *store = kn_loop_store(a, s->target, subs, s->nsubs, s->op, value);
    store->loc = s->loc;
    kn_block_add(&body, store);
    if (p->guards[stmt]) {
        const kn_expr *cond = kn_expr_subst(a, p->guards[stmt], b, s->niters);
        kn_block_add(out, kn_loop_if(a, cond, kn_block_done(&body), (kn_block){0}));
        return;
    }
    for (int i = 0; i < body.n; i++) {
        kn_block_add(out, body.at[i]);
    }
}

static void add_node(kn_translation *t, kn_block_builder *out, isl_ast_node *node);

static kn_block child_block(kn_translation *t, isl_ast_node *child)
{
    kn_block_builder b = {.arena = t->poly->arena};
    if (child) {
        add_node(t, &b, child);
        isl_ast_node_free(child);
    }
    return kn_block_done(&b);
}

static void add_user(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    kn_poly *p = t->poly;
    isl_ast_expr *call = isl_ast_node_user_get_expr(node);
    isl_ast_expr *callee = isl_ast_expr_get_op_arg(call, 0);
    isl_id *id = isl_ast_expr_get_id(callee);
    int stmt = atoi(isl_id_get_name(id) + 1); /* "S12" */
    isl_id_free(id);
    isl_ast_expr_free(callee);
    const kn_stmt *s = &p->nest->stmts[stmt];
    kn_binding *b = KN_ARRAY(p->arena, kn_binding, s->niters + 1);
    for (int i = 0; i < s->niters; i++) {
        b[i] = (kn_binding){s->iters[i].name, argument(t, call, i + 1)};
    }
    isl_ast_expr_free(call);
    add_instance(p, out, stmt, b);
}

/* x + 1, inside of a minimum. */
static const kn_expr *one_more(kn_arena *a, const kn_expr *x)
{
    if (x->kind == KN_E_OP && x->op == KN_OP_MIN) {
        return kn_index_min(a, one_more(a, x->args[0]), one_more(a, x->args[1]));
    }
    return kn_index_add(a, x, kn_index(a, 1));
}

/* The bound of `iterator < e` or `iterator <= e`, half-open. */
static const kn_expr *upper_bound(kn_translation *t, isl_ast_expr *cond)
{
    kn_arena *a = t->poly->arena;
    enum isl_ast_expr_op_type op = isl_ast_expr_get_op_type(cond);
    const kn_expr *bound = argument(t, cond, 1);
    if (op == isl_ast_expr_op_le) {
        return one_more(a, bound);
    }
    if (op != isl_ast_expr_op_lt) {
        t->failed = "a loop condition";
    }
    return bound;
}

/* The name of an iterator of isl's, which ends in its depth. */
static const char *iterator_of(kn_translation *t, isl_ast_node *node, int *depth)
{
    isl_ast_expr *iterator = isl_ast_node_for_get_iterator(node);
    isl_id *id = isl_ast_expr_get_id(iterator);
    const char *name = kn_intern(t->poly->ctx, isl_id_get_name(id));
    isl_id_free(id);
    isl_ast_expr_free(iterator);
    *depth = atoi(name + 1);
    return name;
}

static void add_for(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    kn_arena *a = t->poly->arena;
    int depth;
    const char *iterator = iterator_of(t, node, &depth);
    isl_ast_expr *init = isl_ast_node_for_get_init(node);
    const kn_expr *lo = to_expr(t, init);
    isl_ast_expr_free(init);
    if (isl_ast_node_for_is_degenerate(node) == isl_bool_true) {
        kn_push(a, &t->bound, ((kn_binding){iterator, lo}));
        isl_ast_node *body = isl_ast_node_for_get_body(node);
        add_node(t, out, body);
        isl_ast_node_free(body);
        t->bound.n--;
        return;
    }
    isl_ast_expr *cond = isl_ast_node_for_get_cond(node);
    const kn_expr *hi = upper_bound(t, cond);
    isl_ast_expr_free(cond);
    isl_ast_expr *inc = isl_ast_node_for_get_inc(node);
    int64_t step = 1;
    if (!kn_index_const(to_expr(t, inc), &step) || step <= 0) {
        t->failed = "a loop increment";
    }
    isl_ast_expr_free(inc);
    const char *var = depth < t->depth ? t->names[depth] : iterator;
    kn_push(a, &t->bound, ((kn_binding){iterator, kn_var(a, KN_INDEX, var)}));
    kn_loop *loop = kn_loop_for(a, var, lo, hi, child_block(t, isl_ast_node_for_get_body(node)));
    t->bound.n--;
    loop->step = step;
    kn_block_add(out, loop);
}

/* What is under a mark has a loop more, of the mark's name. */
static void add_mark(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    isl_id *id = isl_ast_node_mark_get_id(node);
    t->names[t->depth++] = kn_intern(t->poly->ctx, isl_id_get_name(id));
    isl_id_free(id);
    isl_ast_node *child = isl_ast_node_mark_get_node(node);
    add_node(t, out, child);
    isl_ast_node_free(child);
    t->depth--;
}

static void add_if(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    isl_ast_expr *cond = isl_ast_node_if_get_cond(node);
    const kn_expr *c = to_expr(t, cond);
    isl_ast_expr_free(cond);
    kn_block then = child_block(t, isl_ast_node_if_get_then_node(node));
    bool has_else = isl_ast_node_if_has_else_node(node) == isl_bool_true;
    kn_block orelse = child_block(t, has_else ? isl_ast_node_if_get_else_node(node) : NULL);
    kn_block_add(out, kn_loop_if(t->poly->arena, c, then, orelse));
}

static void add_block(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    isl_ast_node_list *list = isl_ast_node_block_get_children(node);
    int n = (int)isl_ast_node_list_n_ast_node(list);
    for (int i = 0; i < n; i++) {
        isl_ast_node *child = isl_ast_node_list_get_ast_node(list, i);
        add_node(t, out, child);
        isl_ast_node_free(child);
    }
    isl_ast_node_list_free(list);
}

static void add_node(kn_translation *t, kn_block_builder *out, isl_ast_node *node)
{
    switch (isl_ast_node_get_type(node)) {
    case isl_ast_node_for: add_for(t, out, node); break;
    case isl_ast_node_if: add_if(t, out, node); break;
    case isl_ast_node_block: add_block(t, out, node); break;
    case isl_ast_node_user: add_user(t, out, node); break;
    case isl_ast_node_mark: add_mark(t, out, node); break;
    case isl_ast_node_error: t->failed = "a node"; break;
    }
}

/* ---- the schedule tree ---- */

/* A schedule record as an isl schedule tree: a row that is a constant in every statement at hand
   orders them (a sequence), any other is a loop (a band). The tree is made afresh from the record
   each time; flat maps with constant dimensions make isl's generation several times slower. */
typedef struct {
    kn_poly *poly;
    const kn_schedule_rows *schedule;
} kn_tree;

static bool all_constant(const kn_tree *t, const int *stmts, int n, int row)
{
    bool all = true;
    for (int i = 0; i < n && all; i++) {
        int64_t value;
        all = kn_index_const(t->schedule->rows[stmts[i]][row], &value);
    }
    return all;
}

static int64_t constant_at(const kn_tree *t, int stmt, int row)
{
    int64_t value = 0;
    kn_index_const(t->schedule->rows[stmt][row], &value);
    return value;
}

static isl_schedule *subtree(const kn_tree *t, const int *stmts, int n, int row);

/* Parts in ascending order of the constant; statements that share it go on together. */
static isl_schedule *sequence(const kn_tree *t, const int *stmts, int n, int row)
{
    int *part = KN_ARRAY(t->poly->arena, int, n);
    isl_schedule *whole = NULL;
    int64_t after = INT64_MIN;
    for (int done = 0, count; done < n; done += count) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < n; i++) {
            int64_t c = constant_at(t, stmts[i], row);
            next = c < next && (done == 0 || c > after) ? c : next;
        }
        count = 0;
        for (int i = 0; i < n; i++) {
            if (constant_at(t, stmts[i], row) == next) {
                part[count++] = stmts[i];
            }
        }
        isl_schedule *s = subtree(t, part, count, row + 1);
        whole = whole ? isl_schedule_sequence(whole, s) : s;
        after = next;
    }
    return whole;
}

/* Whether a loop cannot have the name: a tensor or a size has it, or no loop may. */
static bool taken(const kn_poly *p, const char *name)
{
    bool found = kn_nest_find(p->nest, name) >= 0 || !kn_loop_name_ok(name);
    for (int i = 0; i < p->nest->nsizes && !found; i++) {
        found = strcmp(p->nest->sizes[i].name, name) == 0;
    }
    return found;
}

/* The name of the loop that some statements share: the shortest of the iterators that it runs over
   alone. No two nested loops get the same one, since no two iterators of a nest have. */
static const char *loop_name(const kn_tree *t, const int *stmts, int n, int row)
{
    kn_ctx *ctx = t->poly->ctx;
    const char *stem = NULL;
    for (int i = 0; i < n; i++) {
        const kn_expr *e = t->schedule->rows[stmts[i]][row];
        if (e->kind == KN_E_VAR && (!stem || strlen(e->name) < strlen(stem))) {
            stem = e->name;
        }
    }
    stem = stem ? stem : kn_intern_f(ctx, "loop%d", row / 2);
    const char *name = stem;
    for (int k = 2; taken(t->poly, name); k++) {
        name = kn_intern_f(ctx, "%s_l%d", stem, k);
    }
    return name;
}

/* Puts a mark around the outermost band, of which the tree must consist. */
static isl_schedule *marked(isl_schedule *s, const char *name)
{
    isl_id *id = isl_id_alloc(isl_schedule_get_ctx(s), name, NULL);
    isl_schedule_node *root = isl_schedule_get_root(s);
    isl_schedule_free(s);
    isl_schedule_node *band = isl_schedule_node_insert_mark(isl_schedule_node_child(root, 0), id);
    isl_schedule *with_mark = isl_schedule_node_get_schedule(band);
    isl_schedule_node_free(band);
    return with_mark;
}

static isl_schedule *band(const kn_tree *t, const int *stmts, int n, int row)
{
    kn_poly *p = t->poly;
    isl_union_pw_aff *all = NULL;
    for (int i = 0; i < n; i++) {
        isl_pw_aff *pa = kn_poly_row(p, stmts[i], t->schedule->rows[stmts[i]][row]);
        isl_union_pw_aff *one = isl_union_pw_aff_from_pw_aff(pa);
        all = all ? isl_union_pw_aff_union_add(all, one) : one;
    }
    isl_multi_union_pw_aff *partial = isl_multi_union_pw_aff_from_union_pw_aff(all);
    isl_schedule *s = subtree(t, stmts, n, row + 1);
    return marked(isl_schedule_insert_partial_schedule(s, partial), loop_name(t, stmts, n, row));
}

static isl_schedule *leaves(const kn_tree *t, const int *stmts, int n)
{
    isl_schedule *whole = NULL;
    for (int i = 0; i < n; i++) {
        isl_set *domain = isl_set_copy(t->poly->domains[stmts[i]]);
        isl_schedule *s = isl_schedule_from_domain(isl_union_set_from_set(domain));
        whole = whole ? isl_schedule_sequence(whole, s) : s;
    }
    return whole;
}

static isl_schedule *subtree(const kn_tree *t, const int *stmts, int n, int row)
{
    if (row == t->schedule->nrows) {
        return leaves(t, stmts, n);
    }
    return all_constant(t, stmts, n, row) ? sequence(t, stmts, n, row) : band(t, stmts, n, row);
}

static isl_schedule *schedule_tree(kn_poly *p, const kn_schedule *s)
{
    kn_schedule_rows rows = kn_schedule_derive(p->arena, s);
    kn_tree t = {p, &rows};
    return subtree(&t, s->sequence, s->nplaced, 0);
}

kn_block kn_poly_loops(kn_poly *p, const kn_schedule *s)
{
    if (s->nstmts == 0) {
        return (kn_block){0};
    }
    isl_ast_build *build = isl_ast_build_from_context(isl_set_copy(p->context));
    isl_ast_node *node = isl_ast_build_node_from_schedule(build, schedule_tree(p, s));
    isl_ast_build_free(build);
    kn_translation t = {.poly = p};
    kn_block_builder out = {.arena = p->arena};
    if (node) {
        add_node(&t, &out, node);
    }
    isl_ast_node_free(node);
    if (!node || isl_ctx_last_error(p->isl) != isl_error_none) {
        kn_poly_failed(p, "generating loops");
    }
    if (t.failed) {
        kn_raise(p->ctx, KN_INTERNAL, kn_loc_none(),
                 "%s: isl's loops hold %s that loop IR cannot say", p->nest->name, t.failed);
    }
    return kn_block_done(&out);
}
