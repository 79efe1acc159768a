/* Expansions of pools. A window may stick out of the operand, by padding or because the result's
 * size was rounded up. */
#include "ir/expand_window.h"

/* The literal that a maximum starts from. */
static const char *lowest(kn_x *x)
{
    kn_dtype type = kn_x_operand(x, 0)->type;
    if (kn_dtype_is_float(type))
        return "-inf";
    return kn_format(x->a, "(%lld)", (long long)kn_dtype_min(type));
}

/* $flat: the place of an element in the whole of X, row-major, or with the last two dimensions
 * swapped. */
static void set_flat(kn_x *x, const window *w, bool columns_first)
{
    const char *text = "n * C + c";
    for (int k = 0; k < w->d; k++) {
        int axis = columns_first ? w->d - 1 - k : k;
        text = kn_format(x->a, "(%s) * d%d + (%s)", text, axis, w->axis[axis].at);
    }
    kn_x_set(x, "flat", "%s", text);
}

void kn_expand_max_pool(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, "kernel", 0);
    bool places = kn_x_int(&x, "indices", 0) != 0;
    set_flat(&x, &w, kn_x_int(&x, "columns_first", 0) != 0);
    kn_x_set(&x, "low", "%s", lowest(&x));
    kn_x_set(&x, "in", "%s", w.padded ? kn_x_inside(&x, &w) : "");
    kn_x_write(&x, "(X[N, C, $d], $attrs) -> Y: typeof(X)[N, C, $o]");
    kn_x_write(&x, places ? ", J: i64[N, C, $o]: " : ": ");
    kn_x_write(&x, w.padded ? "Y[n, c, $i] max=! X[n, c, $at] else $low where $rr"
                            : "Y[n, c, $i] max=! X[n, c, $at] where $rr");
    if (!places)
        return;
    kn_x_write(&x, "; J[n, c, $i] min=! select(");
    kn_x_write(&x, w.padded ? "$in && " : "");
    kn_x_write(&x, "X[n, c, $at] == Y[n, c, $i], cast(i64, $flat), 9223372036854775807) where $rr");
}

/* Writes the statements for $count, by how many elements a window's sum is divided: per axis, those
   inside the operand or, with `padding`, inside what it is padded to. */
static void write_counts(kn_x *x, const window *w, bool padding)
{
    kn_str count = kn_str_make(x->a);
    for (int k = 0; k < w->d; k++) {
        const struct window_axis *axis = &w->axis[k];
        const char *before = kn_format(x->a, "%lld", (long long)(padding ? axis->before : 0));
        const char *after = kn_format(x->a, "%lld", (long long)(padding ? axis->after : 0));
        kn_putf(x->out,
                "N%d[x%d] +=! select(0 <= %s + %s && %s < d%d + %s, cast(acctype(X), 1), 0) ", k, k,
                axis->at, before, axis->at, k, after);
        kn_putf(x->out, "where x%d in 0:%s, r%d in 0:%s; ", k, axis->out, k, axis->k);
        kn_putf(&count, "%sN%d[x%d]", k ? " * " : "", k, k);
    }
    kn_x_set(x, "count", "(%s)", kn_str_get(&count));
}

static void set_whole_count(kn_x *x, const window *w)
{
    kn_str count = kn_str_make(x->a);
    for (int k = 0; k < w->d; k++)
        kn_putf(&count, "%s%s", k ? " * " : "", w->axis[k].k);
    kn_x_set(x, "count", "cast(acctype(X), %s)", kn_str_get(&count));
}

void kn_expand_average_pool(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, "kernel", 0);
    bool up = kn_x_int(&x, "ceil", 0) != 0, padding = kn_x_int(&x, "include_padding", 0) != 0;
    kn_x_write(&x, "(X[N, C, $d], $attrs) -> Y: typeof(X)[N, C, $o]: ");
    if (w.padded && (up || !padding))
        write_counts(&x, &w, padding);
    else
        set_whole_count(&x, &w);
    kn_x_write(&x, "S[n, c, $i] +=! cast(acctype(X), X[n, c, $at]");
    kn_x_write(&x, w.padded ? " else 0) where $ri, $rr; " : ") where $ri, $rr; ");
    kn_x_write(&x, "Y[n, c, $i] = cast(typeof(X), S[n, c, $i] / $count)");
}

void kn_expand_lp_pool(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, "kernel", 0);
    int64_t p = kn_x_int(&x, "p", 2);
    kn_x_set(&x, "p", "%lld", (long long)p);
    kn_x_set(&x, "inverse", "%s", kn_x_float(&x, 1 / (double)p));
    kn_x_write(&x, "(X[N, C, $d], $attrs) -> Y: typeof(X)[N, C, $o]: S[n, c, $i] +=! "
                   "pow(abs(cast(acctype(X), X[n, c, $at]");
    kn_x_write(&x, w.padded ? " else 0)" : ")");
    kn_x_write(&x,
               "), $p) where $ri, $rr; Y[n, c, $i] = cast(typeof(X), pow(S[n, c, $i], $inverse))");
}
