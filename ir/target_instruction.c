/* One row of a target's "instructions": read, its semantics parsed, its operands given spaces and
   types. A row with `for` stands for one instruction a type: T is that type, and the name ends in
   it. */
#include "ir/loop_internal.h"
#include "ir/target_internal.h"

enum { MAX_EXTENT = 1 << 24 };

/* A row being read as one instruction. */
typedef struct {
    const kn_target_reader *r;
    kn_json row;
    kn_dtype type; /* what T is; KN_UNTYPED: the row has no `for` */
    kn_instruction *in;
} row;

/* ---- types ---- */

static kn_dtype type_named(const row *w, kn_json j)
{
    const char *text = kn_json_text(w->r, j);
    kn_dtype type;
    if (strcmp(text, "T") == 0) {
        if (w->type == KN_UNTYPED) {
            kn_json_fail(w->r, j, "T is a type only where the instruction has `for`");
        }
        return w->type;
    }
    if (!kn_dtype_parse(text, strlen(text), &type) || type == KN_INDEX) {
        kn_json_fail(w->r, j, "`%.80s` is no element type", text);
    }
    return type;
}

/* ---- operands ---- */

static const kn_sig_tensor *operand_of(const kn_notation *n, const char *name)
{
    for (int i = 0; i < n->ninputs; i++) {
        if (strcmp(n->inputs[i].name, name) == 0) {
            return &n->inputs[i];
        }
    }
    return NULL;
}

static bool is_result(const kn_notation *n, const char *name)
{
    for (int i = 0; i < n->nresults; i++) {
        if (strcmp(n->results[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void read_operand(const row *w, kn_json operands, const char *name)
{
    static const char *const keys[] = {"comment", "space", "type", "pitch", NULL};
    kn_json j = kn_json_need(w->r, operands, name);
    kn_json_object(w->r, j, keys, 100);
    kn_json space = kn_json_need(w->r, j, "space"), pitch = kn_json_get(w->r, j, "pitch");
    if (w->in->noperands == KN_TARGET_MAX_OPERANDS) {
        kn_json_fail(w->r, operands, "more than %d operands", KN_TARGET_MAX_OPERANDS);
    }
    kn_inst_operand *o = &w->in->operands[w->in->noperands++];
    o->name = name;
    o->result = is_result(w->in->semantics, name);
    o->space = kn_target_space(w->r->target, kn_json_text(w->r, space));
    if (!o->space) {
        kn_json_fail(w->r, space, "there is no space `%.80s`", kn_json_text(w->r, space));
    }
    o->type = type_named(w, kn_json_need(w->r, j, "type"));
    o->pitch = pitch.at ? kn_json_name(w->r, pitch) : NULL;
}

/* Those of the notation, each with an entry, and no entry besides. */
static void read_operands(const row *w, kn_json j)
{
    const kn_notation *n = w->in->semantics;
    kn_json_object(w->r, j, NULL, KN_TARGET_MAX_OPERANDS);
    for (const cJSON *m = j.at->child; m; m = m->next) {
        if (!operand_of(n, m->string) && !is_result(n, m->string)) {
            kn_json_fail(w->r, kn_json_member(w->r, j, m), "no operand or result of the semantics");
        }
    }
    w->in->operands = KN_ARRAY(w->r->arena, kn_inst_operand, KN_TARGET_MAX_OPERANDS);
    for (int i = 0; i < n->ninputs; i++) {
        read_operand(w, j, n->inputs[i].name);
    }
    for (int i = 0; i < n->nresults; i++) {
        if (!operand_of(n, n->results[i].name)) {
            read_operand(w, j, n->results[i].name);
        }
    }
}

/* ---- extents ---- */

static bool has_extent(const kn_instruction *in, const char *name)
{
    for (int i = 0; i < in->nextents; i++) {
        if (strcmp(in->extents[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

typedef struct {
    const row *w;
    kn_json extents;
} extent_reader;

static void add_extent(const row *w, kn_json extents, const char *name)
{
    if (has_extent(w->in, name)) {
        return;
    }
    if (w->in->nextents == KN_TARGET_MAX_OPERANDS) {
        kn_json_fail(w->r, extents, "more than %d sizes", KN_TARGET_MAX_OPERANDS);
    }
    kn_json j =
        extents.at ? kn_json_need(w->r, extents, name) : kn_json_need(w->r, w->row, "extents");
    if (kn_json_list(w->r, j, 2) != 2) {
        kn_json_fail(w->r, j, "expected [least, most]");
    }
    kn_size s = {.name = name};
    s.lo = kn_json_int(w->r, kn_json_item(w->r, j, 0), 1, MAX_EXTENT, 0);
    s.hi = kn_json_int(w->r, kn_json_item(w->r, j, 1), s.lo, MAX_EXTENT, 0);
    w->in->extents[w->in->nextents++] = s;
}

static void visit_size(void *env, const kn_expr *e)
{
    const extent_reader *x = env;
    if (e->kind == KN_E_VAR) {
        add_extent(x->w, x->extents, e->name);
    }
}

static void read_dims(const row *w, kn_json extents, const kn_sig_tensor *t)
{
    extent_reader x = {w, extents};
    for (int d = 0; d < t->ndims; d++) {
        if (t->dims[d].pack) {
            kn_json_fail(w->r, kn_json_get(w->r, w->row, "semantics"),
                         "`%s` has a pack: an instruction's operands have a rank", t->name);
        }
        kn_expr_visit(t->dims[d].expr, visit_size, &x);
    }
}

static void read_extents(const row *w, kn_json j)
{
    const kn_notation *n = w->in->semantics;
    if (j.at) {
        kn_json_object(w->r, j, NULL, KN_TARGET_MAX_OPERANDS);
    }
    w->in->extents = KN_ARRAY(w->r->arena, kn_size, KN_TARGET_MAX_OPERANDS);
    for (int i = 0; i < n->ninputs; i++) {
        read_dims(w, j, &n->inputs[i]);
    }
    for (int i = 0; i < n->nattrs; i++) {
        if (strcmp(n->attrs[i].type, "size") == 0 && !n->attrs[i].value) {
            add_extent(w, j, n->attrs[i].name);
        }
    }
    for (const cJSON *m = j.at ? j.at->child : NULL; m; m = m->next) {
        if (!has_extent(w->in, m->string)) {
            kn_json_fail(w->r, kn_json_member(w->r, j, m), "no size of the semantics");
        }
    }
}

/* ---- cost ---- */

typedef struct {
    const row *w;
    kn_json at;
} cost_names;

static void check_cost_name(void *env, const kn_expr *e)
{
    const cost_names *c = env;
    if (e->kind == KN_E_LOAD || (e->kind == KN_E_VAR && !has_extent(c->w->in, e->name))) {
        kn_json_fail(c->w->r, c->at, "`%s` is no size of the semantics", e->name);
    }
}

/* A number, or an expression over the extents. */
static const kn_expr *read_cost(const row *w, kn_json j)
{
    kn_arena *a = w->r->arena;
    if (!j.at) {
        return NULL;
    }
    if (cJSON_IsNumber(j.at)) {
        return kn_index(a, kn_json_int(w->r, j, 0, 1 << 30, 0));
    }
    const char *text = kn_json_text(w->r, j);
    kn_lexer lx;
    kn_lex_init(&lx, a, w->r->file, text, strlen(text),
                (kn_loc){.file = w->r->file, .where = j.path});
    const kn_expr *e = kn_parse_index(&lx);
    if (lx.token.kind != KN_T_END) {
        kn_lex_fail(&lx, "expected the end of the cost");
    }
    cost_names c = {w, j};
    kn_expr_visit(e, check_cost_name, &c);
    return e;
}

static void read_costs(const row *w, kn_json j)
{
    static const char *const keys[] = {"comment", "cycles", "latency", "pj", NULL};
    kn_json_object(w->r, j, keys, 100);
    w->in->cycles = read_cost(w, kn_json_need(w->r, j, "cycles"));
    w->in->pj = read_cost(w, kn_json_get(w->r, j, "pj"));
    w->in->latency = kn_json_int(w->r, kn_json_get(w->r, j, "latency"), 0, 1 << 20, 0);
}

/* ---- the row ---- */

static void read_pipe(const row *w, kn_json j)
{
    const char *name = kn_json_text(w->r, j);
    for (int i = 0; i < w->r->target->npipes; i++) {
        if (strcmp(w->r->target->pipes[i].name, name) == 0) {
            w->in->pipe = &w->r->target->pipes[i];
        }
    }
    if (!w->in->pipe) {
        kn_json_fail(w->r, j, "there is no pipe `%.80s`", name);
    }
}

static const char *with_type(const row *w, const char *name)
{
    return w->type == KN_UNTYPED ? name
                                 : kn_intern_f(w->r->ctx, "%s_%s", name, kn_dtype_name(w->type));
}

static void read_semantics(const row *w, kn_json j)
{
    const char *text = kn_json_lines(w->r, j);
    kn_loc loc = {.file = w->r->file, .where = j.path};
    w->in->semantics = kn_notation_parse(w->r->arena, w->r->file, text, strlen(text), loc);
    if (w->in->semantics->nstmts == 0) {
        kn_json_fail(w->r, j, "semantics without a statement");
    }
}

static void read_as(const kn_target_reader *r, kn_json j, kn_dtype type)
{
    kn_target *t = r->target;
    if (t->ninstructions == KN_TARGET_MAX_INSTRUCTIONS) {
        kn_json_fail(r, j, "more than %d instructions", KN_TARGET_MAX_INSTRUCTIONS);
    }
    kn_instruction *in = &t->instructions[t->ninstructions];
    row w = {r, j, type, in};
    kn_json c = kn_json_get(r, j, "c"), semantics = kn_json_need(r, j, "semantics");
    in->type = type;
    in->name = with_type(&w, kn_intern(r->ctx, j.at->string));
    if (kn_target_instruction(t, in->name)) {
        kn_json_fail(r, j, "there is an instruction %s already", in->name);
    }
    in->c = c.at ? with_type(&w, kn_json_name(r, c)) : NULL;
    read_semantics(&w, semantics);
    read_operands(&w, kn_json_need(r, j, "operands"));
    read_extents(&w, kn_json_get(r, j, "extents"));
    read_pipe(&w, kn_json_need(r, j, "pipe"));
    read_costs(&w, kn_json_need(r, j, "cost"));
    in->func =
        kn_instruction_func(r->arena, in, (kn_loc){.file = r->file, .where = semantics.path});
    t->ninstructions++;
}

void kn_target_read_instruction(const kn_target_reader *r, kn_json j)
{
    static const char *const keys[] = {"comment", "for",  "semantics", "operands", "extents",
                                       "pipe",    "cost", "c",         NULL};
    kn_json_key_name(r, j);
    kn_json_object(r, j, keys, 100);
    kn_json types = kn_json_get(r, j, "for"), comment = kn_json_get(r, j, "comment");
    if (comment.at) {
        kn_json_lines(r, comment);
    }
    if (!types.at) {
        read_as(r, j, KN_UNTYPED);
        return;
    }
    int n = kn_json_list(r, types, KN_DTYPE_COUNT);
    row none = {r, j, KN_UNTYPED, NULL};
    for (int i = 0; i < n; i++) {
        read_as(r, j, type_named(&none, kn_json_item(r, types, i)));
    }
}
