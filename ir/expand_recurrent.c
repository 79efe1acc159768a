/* Expansions of recurrences over time: linear attention, LSTM, GRU, RNN. Each is one `over t`
   group; what does not depend on the state is computed for all t before it. */
#include "ir/expand_internal.h"

/* ---- linear attention ---- */

/* Per key head a state S[d, e]: decayed by exp(g), corrected by the delta rule, written with k v,
   read with q. The state at t is f32, whatever the operands are. */
void kn_expand_linear_attention(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    bool state = kn_x_operand(&x, 3) != NULL, decay = kn_x_operand(&x, 4) != NULL,
         beta = kn_x_operand(&x, 5) != NULL;
    for (int k = 0; k < 3; k++)
        if (kn_x_rank(&x, k) != 4)
            kn_x_fail(&x, "operand %d has rank %d, expected 4", k, kn_x_rank(&x, k));
    int64_t queries = kn_x_dim_const(&x, 0, 2), keys = kn_x_dim_const(&x, 1, 2);
    if (keys < 1 || queries % keys != 0)
        kn_x_fail(&x, "%lld query heads do not share %lld key heads evenly", (long long)queries,
                  (long long)keys);
    kn_subs d = {.n = 4, .at = {"N", "T", "G", "D"}}, i = {.n = 4, .at = {"b", "t", "g", "d"}};
    kn_subs bd = {.n = 3, .at = {"N", "T", "G"}}, bi = {.n = 3, .at = {"b", "t", "g"}};
    if (decay)
        kn_x_broadcast(&x, "A", 4, &d, &i);
    if (beta)
        kn_x_broadcast(&x, "B", 5, &bd, &bi);
    kn_x_set(&x, "each", "%lld", (long long)(queries / keys));
    double scale = kn_node_float(node, "scale", 0);
    kn_x_set(&x, "scale", scale != 0 ? "%s" : "rsqrt(cast(f32, D))", kn_x_float(&x, scale));
    kn_x_set(&x, "init", state ? "cast(f32, P[b, g, d, e])" : "0");
    kn_x_write(&x, "(Q[N, T, H, D], K[N, T, G, D], V[N, T, G, E]");
    kn_x_write(&x, state ? ", P[N, G, D, E]" : "");
    kn_x_write(&x, decay ? ", A[$A_d]" : "");
    kn_x_write(&x, beta ? ", B[$B_d]" : "");
    kn_x_write(&x, state ? ") -> Y: typeof(Q)[N, T, H, E], F: typeof(P)[N, G, D, E]: "
                         : ") -> Y: typeof(Q)[N, T, H, E], F: typeof(Q)[N, G, D, E]: ");
    kn_x_write(&x, "over t { R[t, b, g, d, e] = select(t == 0, $init, S[t - 1, b, g, d, e])");
    kn_x_write(&x, decay ? " * exp(cast(f32, A[$A_i]))" : "");
    kn_x_write(&x, " where b in 0:N, g in 0:G, d in 0:D, e in 0:E, t in 0:T; ");
    kn_x_write(
        &x,
        beta ? "U[t, b, g, e] +=! R[t, b, g, d, e] * cast(f32, K[b, t, g, d]); "
               "W[t, b, g, e] = cast(f32, B[$B_i]) * (cast(f32, V[b, t, g, e]) - U[t, b, g, e]); "
             : "W[t, b, g, e] = cast(f32, V[b, t, g, e]); ");
    kn_x_write(&x,
               "S[t, b, g, d, e] = R[t, b, g, d, e] + cast(f32, K[b, t, g, d]) * W[t, b, g, e]; "
               "O[t, b, h, e] +=! cast(f32, Q[b, t, h, d]) * S[t, b, h / $each, d, e] } "
               "Y[b, t, h, e] = cast(typeof(Q), $scale * O[t, b, h, e]); "
               "F[b, g, d, e] = cast(typeof(F), select(T > 0, S[T - 1, b, g, d, e], $init))");
}

/* ---- LSTM, GRU, RNN ---- */

/* Text of an activation of $v, by ONNX's name; a and b are its alpha and beta. */
static void set_activation(kn_x *x, const char *result, const char *name, const char *value,
                           double a, double b)
{
    static const struct {
        const char *name, *text;
    } table[] = {
        {"Sigmoid", "1 / (1 + exp(-(%s)))"},
        {"Tanh", "tanh(%s)"},
        {"Relu", "max(%s, 0)"},
        {"Affine", "(%s) * $fa + $fb"},
        {"LeakyRelu", "select(%s < 0, $fa * (%s), %s)"},
        {"ThresholdedRelu", "select(%s > $fa, %s, 0)"},
        {"ScaledTanh", "$fa * tanh($fb * (%s))"},
        {"HardSigmoid", "max(0, min(1, $fa * (%s) + $fb))"},
        {"Elu", "select(%s < 0, $fa * expm1(%s), %s)"},
        {"Softsign", "(%s) / (1 + abs(%s))"},
        {"Softplus", "max(%s, 0) + log1p(exp(-abs(%s)))"},
    };
    size_t k = 0, count = sizeof table / sizeof *table;
    while (k < count && strcmp(table[k].name, name) != 0)
        k++;
    if (k == count)
        kn_x_fail(x, "unknown activation `%s`", name);
    kn_str s = kn_str_make(x->a), *whole = x->out;
    kn_x_set(x, "fa", "%s", kn_x_float(x, a));
    kn_x_set(x, "fb", "%s", kn_x_float(x, b));
    x->out = &s;
    for (const char *t = table[k].text; *t; t++)
        if (t[0] == '%' && t[1] == 's') {
            kn_x_write(x, value);
            t++;
        } else if (t[0] == '$') {
            kn_x_write(x, t[2] == 'a' ? "$fa" : "$fb");
            t += 2;
        } else
            kn_put_char(&s, *t);
    x->out = whole;
    kn_x_set(x, result, "%s", kn_str_get(&s));
}

typedef struct {
    int gates; /* 4, 3, 1 */
    int directions;
    bool first_reversed, lengths, bias, state, cell, peephole;
    const char *activations;
    int nactivations;
} recurrent;

/* Activation number k of the comma-separated list. */
static const char *activation_name(kn_x *x, const char *list, int k)
{
    for (; k > 0; k--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return kn_format(x->a, "%.*s", (int)strcspn(list, ","), list);
}

static double list_float(const kn_x *x, const char *name, int k)
{
    const kn_attr *at = kn_node_attr(x->node, name);
    return at && at->kind == KN_A_FLOATS && k < at->n ? at->floats[k] : 0;
}

static void set_act(kn_x *x, const recurrent *r, int direction, int k, const char *result,
                    const char *value)
{
    int at = direction * r->nactivations + k;
    double clip = kn_node_float(x->node, "clip", 0);
    const char *name = activation_name(x, r->activations, at);
    if (clip > 0)
        value = kn_format(x->a, "max(min(%s, %s), %s)", value, kn_x_float(x, clip),
                          kn_x_float(x, -clip));
    double alpha = list_float(x, "alpha", at), beta = list_float(x, "beta", at);
    set_activation(x, result, name, value, alpha, beta);
}

static recurrent read_recurrent(kn_x *x)
{
    const char *op = x->node->op->name, *way = kn_x_string(x, "direction", "forward");
    bool lstm = strcmp(op, "lstm") == 0, gru = strcmp(op, "gru") == 0;
    recurrent r = {.gates = lstm ? 4 : gru ? 3 : 1, .nactivations = lstm ? 3 : gru ? 2 : 1};
    r.directions = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    r.first_reversed = strcmp(way, "reverse") == 0;
    r.activations = kn_x_string(x, "activations",
                                lstm  ? "Sigmoid,Tanh,Tanh,Sigmoid,Tanh,Tanh"
                                : gru ? "Sigmoid,Tanh,Sigmoid,Tanh"
                                      : "Tanh,Tanh");
    r.bias = kn_x_operand(x, 3) != NULL;
    r.lengths = kn_x_operand(x, 4) != NULL;
    r.state = kn_x_operand(x, 5) != NULL;
    r.cell = lstm && kn_x_operand(x, 6) != NULL;
    r.peephole = lstm && kn_x_operand(x, 7) != NULL;
    int64_t h = kn_x_dim_const(x, 2, 2);
    kn_x_set(x, "D", "%d", r.directions);
    kn_x_set(x, "J", "%lld", (long long)h * r.gates);
    kn_x_set(x, "BJ", "%lld", (long long)h * r.gates * 2);
    kn_x_set(x, "PJ", "%lld", (long long)h * 3);
    kn_x_set(x, "h1", "%lld + h", (long long)h);
    kn_x_set(x, "h2", "%lld + h", (long long)h * 2);
    kn_x_set(x, "h3", "%lld + h", (long long)h * 3);
    return r;
}

/* The signature, up to and with `: `. */
static void write_recurrent_signature(kn_x *x, const recurrent *r)
{
    kn_x_write(x, "(X[T, N, I], W[$D, $J, I], R[$D, $J, H]");
    kn_x_write(x, r->bias ? ", B[$D, $BJ]" : "");
    kn_x_write(x, r->lengths ? ", L[N]" : "");
    kn_x_write(x, r->state ? ", A[$D, N, H]" : "");
    kn_x_write(x, r->cell ? ", E[$D, N, H]" : "");
    kn_x_write(x, r->peephole ? ", P[$D, $PJ]" : "");
    kn_x_write(x, ") -> Y: typeof(X)[T, $D, N, H], YH: typeof(X)[$D, N, H]");
    kn_x_write(x, r->gates == 4 ? ", YC: typeof(X)[$D, N, H]: " : ": ");
}

/* What a direction's statements are made of: $d its number; $ph, $pk, $pc the state before, at h or
   k; V$d[t, b, j] all that the gates' sums take from X and the biases. */
static void start_direction(kn_x *x, const recurrent *r, int d)
{
    bool reversed = r->first_reversed || d == 1;
    kn_x_set(x, "d", "%d", d);
    kn_x_set(x, "xt", reversed ? r->lengths ? "K%d[t, b]" : "T - 1 - t" : "t", d);
    kn_x_set(x, "ph", "select(t == 0, %s, H%d[t - 1, b, h])",
             r->state ? kn_format(x->a, "A[%d, b, h]", d) : "0", d);
    kn_x_set(x, "pk", "select(t == 0, %s, H%d[t - 1, b, k])",
             r->state ? kn_format(x->a, "A[%d, b, k]", d) : "0", d);
    kn_x_set(x, "pc", "select(t == 0, %s, C%d[t - 1, b, h])",
             r->cell ? kn_format(x->a, "E[%d, b, h]", d) : "0", d);
    if (reversed && r->lengths)
        kn_x_write(x, "K$d[t, b] = select(cast(i64, t) < cast(i64, L[b]), cast(i64, L[b]) - 1 - "
                      "cast(i64, t), cast(i64, t))"
                      " where t in 0:T; ");
    kn_x_write(x, "V$d[t, b, j] +=! X[$xt, b, i] * W[$d, j, i] where t in 0:T; ");
}

/* After the last step a sequence's state is kept, and its outputs are 0. `new` is the state as the
 * step makes it. */
static void write_state(kn_x *x, const recurrent *r, const char *target, const char *before,
                        const char *new)
{
    kn_x_write(x, target);
    kn_x_write(x,
               r->lengths ? "[t, b, h] = select(cast(i64, t) < cast(i64, L[b]), " : "[t, b, h] = ");
    kn_x_write(x, new);
    if (r->lengths) {
        kn_x_write(x, ", ");
        kn_x_write(x, before);
        kn_x_write(x, ")");
    }
    kn_x_write(x, " where h in 0:H");
}

static void end_direction(kn_x *x, const recurrent *r, int d)
{
    bool reversed = r->first_reversed || d == 1;
    kn_x_write(x, " } ");
    kn_x_write(x,
               r->lengths
                   ? "Y[t, $d, b, h] = select(cast(i64, t) < cast(i64, L[b]), H$d[$xt, b, h], 0); "
               : reversed ? "Y[t, $d, b, h] = H$d[T - 1 - t, b, h]; "
                          : "Y[t, $d, b, h] = H$d[t, b, h]; ");
    kn_x_write(x, r->state ? "YH[$d, b, h] = select(T > 0, H$d[T - 1, b, h], A[$d, b, h])"
                           : "YH[$d, b, h] = select(T > 0, H$d[T - 1, b, h], 0)");
    if (r->gates == 4)
        kn_x_write(x, r->cell ? "; YC[$d, b, h] = select(T > 0, C$d[T - 1, b, h], E[$d, b, h])"
                              : "; YC[$d, b, h] = select(T > 0, C$d[T - 1, b, h], 0)");
    kn_x_write(x, d + 1 < r->directions ? "; " : "");
}

/* G$d: the sums of the gates. */
static void write_gates(kn_x *x, const recurrent *r)
{
    kn_x_write(x, "over t { U$d[t, b, j] +=! $pk * R[$d, j, k]; ");
    kn_x_write(x, r->bias ? "G$d[t, b, j] = V$d[t, b, j] + U$d[t, b, j] + (B[$d, j] + B[$d, $J + "
                            "j]) where j in 0:$J; "
                          : "G$d[t, b, j] = V$d[t, b, j] + U$d[t, b, j]; ");
}

/* Gates i, o, f, c. */
static void write_lstm(kn_x *x, const recurrent *r, int d, bool coupled)
{
    write_gates(x, r);
    set_act(x, r, d, 0, "fi", r->peephole ? "(G$d[t, b, h] + P[$d, h] * $pc)" : "G$d[t, b, h]");
    set_act(x, r, d, 0, "ff",
            r->peephole ? "(G$d[t, b, $h2] + P[$d, $h2] * $pc)" : "G$d[t, b, $h2]");
    set_act(x, r, d, 1, "fc", "G$d[t, b, $h3]");
    set_act(x, r, d, 0, "fo",
            r->peephole ? "(G$d[t, b, $h1] + P[$d, $h1] * C$d[t, b, h])" : "G$d[t, b, $h1]");
    set_activation(x, "fh", activation_name(x, r->activations, d * 3 + 2), "C$d[t, b, h]",
                   list_float(x, "alpha", d * 3 + 2), list_float(x, "beta", d * 3 + 2));
    kn_x_write(x, "I$d[t, b, h] = $fi where h in 0:H; ");
    kn_x_write(x, coupled ? "F$d[t, b, h] = 1 - I$d[t, b, h]; "
                          : "F$d[t, b, h] = $ff where h in 0:H; ");
    write_state(x, r, "C$d", "$pc", "F$d[t, b, h] * $pc + I$d[t, b, h] * ($fc)");
    kn_x_write(x, "; ");
    write_state(x, r, "H$d", "$ph", "($fo) * ($fh)");
}

/* Gates z, r, h; {linear_before_reset}: the reset gate multiplies the product with the state, else
 * the state. */
static void write_gru(kn_x *x, const recurrent *r, int d, bool linear)
{
    const char *bias = !r->bias ? "" : linear ? " + B[$d, $h2]" : " + B[$d, $h2] + B[$d, $J + $h2]";
    kn_x_write(x, "over t { U$d[t, b, j] +=! $pk * R[$d, j, k]; ");
    set_act(x, r, d, 0, "fz",
            r->bias ? "(V$d[t, b, h] + U$d[t, b, h] + B[$d, h] + B[$d, $J + h])"
                    : "(V$d[t, b, h] + U$d[t, b, h])");
    set_act(x, r, d, 0, "fr",
            r->bias ? "(V$d[t, b, $h1] + U$d[t, b, $h1] + B[$d, $h1] + B[$d, $J + $h1])"
                    : "(V$d[t, b, $h1] + U$d[t, b, $h1])");
    kn_x_write(x, "Z$d[t, b, h] = $fz where h in 0:H; S$d[t, b, h] = $fr where h in 0:H; ");
    if (linear)
        kn_x_write(x, r->bias ? "M$d[t, b, h] = S$d[t, b, h] * (U$d[t, b, $h2] + B[$d, $J + $h2]) "
                                "where h in 0:H; "
                              : "M$d[t, b, h] = S$d[t, b, h] * U$d[t, b, $h2] where h in 0:H; ");
    else
        kn_x_write(x, "Q$d[t, b, h] = S$d[t, b, h] * $ph; M$d[t, b, h] +=! Q$d[t, b, k] * R[$d, "
                      "$h2, k] where h in 0:H; ");
    set_act(x, r, d, 1, "fh", kn_format(x->a, "(V$d[t, b, $h2] + M$d[t, b, h]%s)", bias));
    write_state(x, r, "H$d", "$ph", "(1 - Z$d[t, b, h]) * ($fh) + Z$d[t, b, h] * $ph");
}

static void write_rnn(kn_x *x, const recurrent *r, int d)
{
    write_gates(x, r);
    set_act(x, r, d, 0, "f", "G$d[t, b, h]");
    write_state(x, r, "H$d", "$ph", "$f");
}

void kn_expand_recurrent(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    recurrent r = read_recurrent(&x);
    bool coupled = r.gates == 4 && kn_x_int(&x, "input_forget", 0);
    bool linear = r.gates == 3 && kn_x_int(&x, "linear_before_reset", 0);
    write_recurrent_signature(&x, &r);
    for (int d = 0; d < r.directions; d++) {
        start_direction(&x, &r, d);
        if (r.gates == 4)
            write_lstm(&x, &r, d, coupled);
        else if (r.gates == 3)
            write_gru(&x, &r, d, linear);
        else
            write_rnn(&x, &r, d);
        end_direction(&x, &r, d);
    }
}
