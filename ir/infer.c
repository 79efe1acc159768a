/* What a node means: its notation is chosen (the row's, the expansion's or the user's), parsed once
   per text, and elaborated for the operands at hand. The results' types, shapes and content come
   out of the nest.

   Operands left out do not occur in a notation: its operands are the node's others, in order. An
   attribute that a notation declares is the node's attribute of that name, or element k of the list
   NAME for a declared NAME_k (expand.h); where the node has none, the notation's default holds. An
   attribute that neither the notation nor the expansion asks for is refused. */
#include <assert.h>

#include "ir/expand.h"
#include "ir/graph_internal.h"

static kn_ctx *ctx_of(const kn_graph *g)
{
    return kn_arena_ctx(g->arena);
}

/* ---- the notation ---- */

/* Parsed once per text. */
static const kn_notation *parsed(kn_graph *g, const char *text, size_t n, kn_loc loc)
{
    char *key = kn_format(g->arena, "%.*s", (int)n, text);
    const kn_notation *have = kn_map_get(&g->notations, key);
    if (have)
        return have;
    kn_notation *fresh = kn_notation_parse(g->arena, loc.file, key, n, loc);
    kn_map_set(&g->notations, key, fresh);
    return fresh;
}

/* The notation in a text, and what stands behind "loops:" in it. */
static const kn_notation *split_meaning(kn_graph *g, const char *text, kn_loc loc,
                                        const char **loops)
{
    const char *at = strstr(text, "loops:");
    *loops = at ? kn_strdup(g->arena, at + strlen("loops:")) : NULL;
    return parsed(g, text, at ? (size_t)(at - text) : strlen(text), loc);
}

const kn_notation *kn_graph_parse_meaning(kn_graph *g, const char *text, kn_loc loc)
{
    const char *loops;
    return split_meaning(g, text, loc, &loops);
}

static void choose_meaning(kn_graph *g, kn_node *n, kn_arena *scratch, const char *user_text)
{
    kn_str text = kn_str_make(scratch);
    if (user_text)
        kn_put(&text, user_text);
    else if (n->op->expand)
        n->op->expand(&text, g, n);
    else
        kn_put(&text, n->op->notation);
    n->notation = split_meaning(g, kn_str_get(&text), n->loc, &n->loops);
}

typedef struct {
    const kn_notation_stmt *stmt;
    bool indirect, recurrence;
} traits;

static void note_traits(void *env, const kn_expr *e)
{
    traits *t = env;
    if (e->kind != KN_E_LOAD)
        return;
    t->recurrence |= strcmp(e->name, t->stmt->target) == 0;
    for (int i = 0; i < e->nargs - e->guarded; i++)
        t->indirect |= kn_expr_has_load(e->args[i]);
}

/* The kind of row that a user's notation amounts to. */
static kn_row_kind user_kind(const kn_node *n)
{
    traits t = {0};
    if (n->loops)
        return KN_ROW_OPAQUE;
    for (int i = 0; i < n->notation->nstmts; i++) {
        const kn_notation_stmt *s = t.stmt = &n->notation->stmts[i];
        kn_expr_visit(s->rhs, note_traits, &t);
        t.recurrence |= s->over >= 0;
        t.indirect |= s->where && kn_expr_has_load(s->where);
        for (int k = 0; k < s->nsubs; k++)
            t.indirect |= kn_expr_has_load(s->subs[k]);
    }
    return t.recurrence ? KN_ROW_RECURRENCE : t.indirect ? KN_ROW_INDIRECT : KN_ROW_PLAIN;
}

/* ---- attributes ---- */

/* The type of a declared attribute: a type's name, typeof(X) or acctype(X) of an operand, another
   attribute that is a type. KN_UNTYPED when it is none of them. */
static kn_dtype declared_type(kn_arena *a, const kn_node *n, const char *text)
{
    kn_dtype type;
    kn_attr_value v;
    if (kn_dtype_parse(text, strlen(text), &type))
        return type;
    bool acc = strncmp(text, "acctype(", 8) == 0;
    size_t skip = acc ? 8 : strncmp(text, "typeof(", 7) == 0 ? 7 : 0;
    for (int i = 0, k = 0; skip && i < n->ninputs; i++) {
        if (!n->inputs[i])
            continue;
        const char *name = n->notation->inputs[k++].name;
        size_t length = strlen(name);
        if (strncmp(text + skip, name, length) != 0 || strcmp(text + skip + length, ")") != 0)
            continue;
        type = n->inputs[i]->type;
        return acc && (type == KN_F16 || type == KN_BF16) ? KN_F32 : type;
    }
    if (!skip && kn_expand_attr(a, n, text, &v) && !v.value)
        return v.type;
    return KN_UNTYPED;
}

static _Noreturn void bad_attr(const kn_node *n, const char *name, const char *expected)
{
    kn_raise(ctx_of(n->graph), KN_INVALID, n->loc, "%s: attribute '%s' must be %s", n->op->name,
             name, expected);
}

/* A literal of the declared type. */
static const kn_expr *typed(kn_arena *a, const kn_node *n, const char *name, kn_dtype type,
                            const kn_expr *e)
{
    int64_t i;
    if (kn_dtype_is_float(type)) {
        if (e->kind == KN_E_CONST && kn_dtype_is_float(e->type))
            return kn_float(a, type, e->f);
        if (kn_index_const(e, &i))
            return kn_float(a, type, (double)i);
        bad_attr(n, name, "a number");
    }
    if (e->type != KN_INDEX)
        bad_attr(n, name, "an integer");
    return kn_index_const(e, &i) ? kn_int(a, type, i) : kn_cast(a, KN_CAST_CAST, type, e);
}

/* The node's value for a declared attribute; false where the default holds. */
static bool attr_value(kn_arena *a, const kn_node *n, const kn_sig_attr *sig, kn_attr_value *out)
{
    const kn_attr *attr = kn_node_attr(n, sig->name);
    bool index = strcmp(sig->type, "const") == 0 || strcmp(sig->type, "size") == 0;
    bool type = strcmp(sig->type, "type") == 0;
    if (attr && (attr->kind == KN_A_INDEXES || attr->kind == KN_A_FLOATS))
        bad_attr(n, sig->name, "a single value");
    if (!kn_expand_attr(a, n, sig->name, out)) {
        if (attr)
            bad_attr(n, sig->name, type ? "a type" : "a number");
        return false;
    }
    if (type != !out->value)
        bad_attr(n, sig->name, type ? "a type" : "a number");
    if (index && out->value->type != KN_INDEX)
        bad_attr(n, sig->name, "an integer");
    if (index || type)
        return true;
    kn_dtype want = declared_type(a, n, sig->type);
    if (want == KN_UNTYPED)
        kn_raise(ctx_of(n->graph), KN_INVALID, n->loc,
                 "%s: attribute '%s' has the unknown type '%s'", n->op->name, sig->name, sig->type);
    out->value = typed(a, n, sig->name, want, out->value);
    out->type = want;
    return true;
}

static int attr_values(kn_arena *a, const kn_node *n, kn_attr_value *out)
{
    int count = 0;
    for (int i = 0; i < n->notation->nattrs; i++) {
        const kn_sig_attr *sig = &n->notation->attrs[i];
        if (attr_value(a, n, sig, &out[count]))
            count++;
        else if (!sig->value)
            kn_raise(ctx_of(n->graph), KN_INVALID, n->loc, "%s: attribute '%s' is missing",
                     n->op->name, sig->name);
    }
    return count;
}

static void check_all_read(const kn_node *n)
{
    for (int i = 0; i < n->nattrs; i++)
        if (!*n->attrs[i].read)
            kn_raise(ctx_of(n->graph), KN_INVALID, n->loc, "%s has no attribute '%s'", n->op->name,
                     n->attrs[i].name);
    for (int i = 0; i < n->nattrs; i++)
        n->attrs[i].read = NULL;
}

/* ---- the nest ---- */

static int operands_of(const kn_node *n, kn_operand *out)
{
    int count = 0;
    for (int i = 0; i < n->ninputs; i++) {
        const kn_value *v = n->inputs[i];
        if (v)
            out[count++] = (kn_operand){v->type, v->rank, v->shape};
    }
    return count;
}

kn_bound_tensor *kn_node_bind(kn_arena *a, const kn_node *n, const kn_nest *nest)
{
    kn_bound_tensor *bound = KN_ARRAY(a, kn_bound_tensor, nest->ntensors + 1);
    int input = 0, output = 0;
    for (int t = 0; t < nest->ntensors; t++) {
        kn_role role = nest->tensors[t].role;
        bool reads = role == KN_ROLE_IN || role == KN_ROLE_INOUT;
        while (reads && input < n->ninputs && !n->inputs[input]) {
            input++;
        }
        assert(!reads || input < n->ninputs);
        kn_value *operand = reads ? n->inputs[input++] : NULL;
        if (role == KN_ROLE_IN) {
            bound[t].value = operand;
        } else if (role != KN_ROLE_TEMP) {
            bound[t] = (kn_bound_tensor){n->outputs[output++], operand};
        }
    }
    return bound;
}

bool kn_node_is_alias(const kn_node *n)
{
    return strcmp(n->op->name, "reshape") == 0 || strcmp(n->op->name, "identity") == 0;
}

kn_nest *kn_node_nest(kn_arena *a, const kn_graph *g, const kn_node *n)
{
    kn_operand *operands = KN_ARRAY(a, kn_operand, n->ninputs);
    kn_attr_value *attrs = KN_ARRAY(a, kn_attr_value, n->notation->nattrs);
    int noperands = operands_of(n, operands);
    if (noperands != n->notation->ninputs)
        kn_raise(ctx_of(g), KN_INVALID, n->loc, "%s: the notation has %d operands, found %d",
                 n->op->name, n->notation->ninputs, noperands);
    if (!n->loops && !n->notation->nstmts)
        kn_raise(ctx_of(g), KN_INVALID, n->loc, "%s: the notation has no statements", n->op->name);
    int nattrs = attr_values(a, n, attrs);
    kn_nest *nest = kn_elaborate(a, n->notation, operands, noperands, attrs, nattrs, g->sizes,
                                 g->nsizes, n->loc);
    if (n->loops)
        nest->opaque = kn_opaque_func(a, n, nest, attrs, nattrs);
    return kn_op_is_user_row(n->op) ? kn_nest_complete(a, nest) : nest;
}

const kn_tensor *kn_nest_result(const kn_nest *nest, const kn_node *n, int r)
{
    int k = kn_nest_find(nest, n->notation->results[r].name);
    assert(k >= 0);
    return &nest->tensors[k];
}

/* ---- making a node ---- */

static void check_inputs(const kn_node *n)
{
    const kn_op_row *row = n->op;
    bool few = n->ninputs < row->min_inputs;
    if (!few && (row->max_inputs < 0 || n->ninputs <= row->max_inputs))
        return;
    kn_raise(ctx_of(n->graph), KN_INVALID, n->loc, "%s takes at %s %d operand%s, found %d",
             row->name, few ? "least" : "most", few ? row->min_inputs : row->max_inputs,
             (few ? row->min_inputs : row->max_inputs) == 1 ? "" : "s", n->ninputs);
}

static void copy_attrs(kn_graph *g, kn_node *n, const kn_attr *attrs, int nattrs)
{
    n->nattrs = nattrs;
    n->attrs = KN_ARRAY(g->arena, kn_attr, nattrs);
    for (int i = 0; i < nattrs; i++) {
        n->attrs[i] = kn_attr_copy(g->arena, &attrs[i]);
        n->attrs[i].read = KN_NEW(g->arena, bool);
        for (int k = 0; k < i; k++)
            if (n->attrs[k].name == n->attrs[i].name)
                kn_raise(ctx_of(g), KN_INVALID, n->loc, "%s: attribute '%s' is given twice",
                         n->op->name, n->attrs[i].name);
    }
}

enum { MAX_DIM_SIZE = 4096 }; /* nodes of a dimension's expression */

static void add_results(kn_graph *g, kn_node *n, const kn_nest *nest, const char *const *names)
{
    n->noutputs = n->notation->nresults;
    n->outputs = KN_ARRAY(g->arena, kn_value *, n->noutputs);
    for (int r = 0; r < n->noutputs; r++) {
        const kn_tensor *t = kn_nest_result(nest, n, r);
        const kn_expr *shape[KN_MAX_RANK] = {NULL};
        for (int i = 0; i < t->rank && i < KN_MAX_RANK; i++) {
            if (t->shape[i]->size > MAX_DIM_SIZE)
                kn_raise(ctx_of(g), KN_UNSUPPORTED, n->loc,
                         "%s: dimension %d is too large a formula", n->op->name, i);
            shape[i] = kn_index_copy(g->arena, t->shape[i]);
        }
        const char *name = names ? names[r] : NULL;
        if (!name)
            name = kn_graph_fresh(g, n->op->name);
        kn_value *v = kn_graph_add_value(g, name, t->type, shape, t->rank, n->loc);
        v->def = n;
        v->result = r;
        n->outputs[r] = v;
    }
}

static void append_node(kn_graph *g, kn_node *n)
{
    if (g->nnodes == g->nodes_cap)
        g->nodes = kn_vec_grow(g->arena, g->nodes, g->nnodes, &g->nodes_cap, sizeof *g->nodes);
    g->nodes[g->nnodes++] = n;
}

static kn_node *start_node(kn_graph *g, const kn_op_row *row, const kn_node_spec *spec)
{
    kn_node *n = KN_NEW(g->arena, kn_node);
    n->graph = g;
    n->id = g->nnode_ids++;
    n->op = row;
    n->name = kn_intern(ctx_of(g), spec->name ? spec->name : "");
    n->loc = spec->loc;
    n->group = -1;
    n->ninputs = spec->ninputs;
    n->inputs = KN_ARRAY(g->arena, kn_value *, spec->ninputs);
    for (int i = 0; i < spec->ninputs; i++)
        n->inputs[i] = spec->inputs[i];
    check_inputs(n);
    copy_attrs(g, n, spec->attrs, spec->nattrs);
    return n;
}

/* Meaning, results and content of a node that has its operands and attributes. */
static void finish_node(kn_graph *g, kn_node *n, const char *user_text, const char *const *outputs,
                        int noutputs)
{
    kn_arena *scratch = kn_arena_create(ctx_of(g));
    choose_meaning(g, n, scratch, user_text);
    if (user_text)
        n->op = kn_op_user_row(user_kind(n));
    const kn_nest *nest = kn_node_nest(scratch, g, n);
    check_all_read(n);
    if (noutputs && noutputs != n->notation->nresults)
        kn_raise(ctx_of(g), KN_INVALID, n->loc, "%s has %d result%s, found %d", n->op->name,
                 n->notation->nresults, n->notation->nresults == 1 ? "" : "s", noutputs);
    add_results(g, n, nest, outputs);
    append_node(g, n);
    kn_content_infer(scratch, g, n, nest);
    kn_arena_destroy(scratch);
}

kn_node *kn_graph_node(kn_graph *g, const kn_node_spec *spec)
{
    const kn_op_row *row = spec->op ? kn_op_find(spec->op) : kn_op_user_row(KN_ROW_PLAIN);
    assert(spec->op || spec->notation);
    if (!row)
        kn_raise(ctx_of(g), KN_INVALID, spec->loc, "unknown op '%s'", spec->op);
    kn_node *n = start_node(g, row, spec);
    finish_node(g, n, spec->op ? NULL : spec->notation, spec->outputs, spec->noutputs);
    return n;
}

kn_value *kn_graph_result(kn_graph *g, const kn_node_spec *spec)
{
    return kn_graph_node(g, spec)->outputs[0];
}
