/* Expansions for signals and for sampling: windows, frames, the discrete Fourier transform, grids.
 */
#include <math.h>

#include "ir/expand_internal.h"

/* ---- windows, frames, Fourier ---- */

/* A sum of cosines: a0 + a1 cos(2 pi i / n) + a2 cos(4 pi i / n), n one less when not periodic. */
void kn_expand_cosine_window(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    kn_x_set(&x, "n", "%s", kn_x_index(&x, "size", -1));
    kn_x_set(&x, "less", kn_x_int(&x, "periodic", 1) ? " - 0" : " - 1");
    for (int k = 0; k < 3; k++) {
        const char *name = kn_format(x.a, "a%d", k);
        kn_x_set(&x, name, "%s", kn_x_float(&x, kn_node_float(node, name, 0)));
    }
    kn_x_write(
        &x, "(to: type = f32, $attrs) -> Y: to[$n]: "
            "A[i] = cast(f64, i) * 6.283185307179586 / cast(f64, max($n$less, 1)) where i in 0:$n; "
            "Y[i] = cast(to, $a0 + $a1 * cos(A[i]) + $a2 * cos(2 * A[i]))");
}

void kn_expand_frames(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", -1, rank);
    int64_t step = kn_x_int(&x, "step", 1);
    if (step < 1)
        kn_x_fail(&x, "step is %lld, expected at least 1", (long long)step);
    kn_subs d = kn_x_subs(&x, "d", rank), s = kn_x_subs(&x, "x", rank), o = {0}, q = {0};
    const char *size = kn_x_index(&x, "size", -1);
    for (int k = 0; k < rank; k++) {
        if (k == axis) {
            kn_x_push(&x, &o, kn_format(x.a, "(d%d - %s) / %lld + 1", k, size, (long long)step));
            kn_x_push(&x, &q, "f");
        }
        kn_x_push(&x, &o, k == axis ? size : d.at[k]);
        kn_x_push(&x, &q, s.at[k]);
    }
    s.at[axis] = kn_format(x.a, "f * %lld + %s", (long long)step, s.at[axis]);
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_let(&x, "s", &s);
    kn_x_write(&x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: Y[$q] = X[$s]");
}

/* $p: element j of the axis, real ($re) and imaginary ($im), 0 behind the end; $q: element k of the
 * result without the last. */
static void set_transform(kn_x *x, int rank, int axis)
{
    kn_subs d = kn_x_subs(x, "d", rank), p = kn_x_subs(x, "x", rank),
            q = kn_x_pick(&p, (1u << (rank - 1)) - 1);
    bool complex = kn_x_dim_const(x, 0, rank - 1) == 2;
    d.at[rank - 1] = complex ? "2" : "1";
    p.at[axis] = "j";
    q.at[axis] = "k";
    kn_x_let(x, "d", &d);
    kn_x_let(x, "q", &q);
    p.at[rank - 1] = "0";
    kn_x_let(x, "p", &p);
    kn_x_set(x, "re", "(X[%s] else 0)", (const char *)kn_map_get(&x->names, "p"));
    p.at[rank - 1] = "1";
    kn_x_let(x, "p", &p);
    kn_x_set(x, "im", complex ? "(X[%s] else 0)" : "0", (const char *)kn_map_get(&x->names, "p"));
}

/* The sum over j of x_j exp(-2 pi i j k / n), by its definition; inverse with + and over n.
   One-sided, the result keeps the first half; the one-sided inverse takes such a half and is real.
   Angles are reduced modulo n before they are rounded. */
void kn_expand_dft(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int rank = kn_x_rank(&x, 0), axis = kn_x_axis(&x, "axis", -2, rank);
    bool inverse = kn_x_int(&x, "inverse", 0) != 0, half = kn_x_int(&x, "onesided", 0) != 0,
         real = inverse && half;
    if (rank < 2 || axis == rank - 1)
        kn_x_fail(&x, "axis %d of rank %d, the last being real and imaginary parts", axis, rank);
    set_transform(&x, rank, axis);
    kn_subs o = kn_x_subs(&x, "d", rank);
    const char *length = kn_x_index(&x, "length", -1), *all = kn_format(x.a, "j in 0:%s", length);
    o.at[axis] = half && !inverse ? kn_format(x.a, "%s / 2 + 1", length) : length;
    o.at[rank - 1] = real ? "1" : "2";
    kn_x_let(&x, "o", &o);
    kn_x_set(&x, "n", "%s", length);
    kn_x_set(&x, "m", "%s", o.at[axis]);
    kn_x_set(&x, "j", "%s", real ? kn_format(x.a, "j in 0:%s / 2 + 1", length) : all);
    kn_x_set(&x, "over", "%s", inverse ? kn_format(x.a, " / cast(acctype(X), %s)", length) : "");
    kn_x_set(&x, "s", inverse ? "-" : "+");
    kn_x_set(&x, "i", inverse ? "+" : "-");
    kn_x_write(
        &x, "(X[$d], $attrs) -> Y: typeof(X)[$o]: "
            "A[j, k] = cast(f64, cast(i64, j) * cast(i64, k) % cast(i64, $n)) * 6.283185307179586 "
            "/ cast(f64, $n) "
            "where $j, k in 0:$m; "
            "C[j, k] = cast(acctype(X), cos(A[j, k])); S[j, k] = cast(acctype(X), sin(A[j, k])); ");
    if (real)
        kn_x_write(&x, "W[j] = select(j == 0 || 2 * j == $n, cast(acctype(X), 1), 2) where $j; "
                       "R[$q] +=! W[j] * (cast(acctype(X), $re) * C[j, k] - cast(acctype(X), $im) "
                       "* S[j, k]) where $j; "
                       "Y[$q, 0] = cast(typeof(X), R[$q]$over)");
    else
        kn_x_write(
            &x, "R[$q] +=! cast(acctype(X), $re) * C[j, k] $s cast(acctype(X), $im) * S[j, k] "
                "where $j; "
                "I[$q] +=! cast(acctype(X), $im) * C[j, k] $i cast(acctype(X), $re) * S[j, k] "
                "where $j; "
                "Y[$q, 0] = cast(typeof(X), R[$q]$over); Y[$q, 1] = cast(typeof(X), I[$q]$over)");
}

/* ---- grids ---- */

/* Coordinates -1..1 of every output place, transformed: the last dimension is x, y(, z), the axes
 * in reverse. */
void kn_expand_affine_grid(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int d = kn_x_count(&x, "size");
    bool align = kn_x_int(&x, "align_corners", 0) != 0;
    if (d < 1 || kn_x_rank(&x, 0) != 3)
        kn_x_fail(&x, "%d sizes for an operand of rank %d, expected 3", d, kn_x_rank(&x, 0));
    kn_subs o = {0}, i = kn_x_subs(&x, "x", d);
    kn_str tables = kn_str_make(x.a), sum = kn_str_make(x.a);
    for (int k = 0; k < d; k++) {
        const char *m = kn_x_index(&x, "size", k);
        kn_x_push(&x, &o, m);
        kn_putf(&tables,
                align
                    ? "C%d[i] = cast(f64, 2 * i) / cast(f64, max(%s - 1, 1)) - 1 where i in 0:%s; "
                    : "C%d[i] = cast(f64, 2 * i + 1) / cast(f64, %s) - 1 where i in 0:%s; ",
                k, m, m);
        kn_putf(&sum, "cast(f64, A[n, c, %d]) * C%d[x%d] + ", d - 1 - k, k, k);
    }
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "i", &i);
    kn_x_set(&x, "d", "%d", d);
    kn_x_set(&x, "h", "%d", d + 1);
    kn_x_write(&x, "(A[N, $d, $h], $attrs) -> Y: typeof(A)[N, $o, $d]: ");
    kn_put(out, kn_str_get(&tables));
    kn_x_write(&x, "Y[n, $i, c] = cast(typeof(A), ");
    kn_put(out, kn_str_get(&sum));
    kn_x_write(&x, "cast(f64, A[n, c, $d]))");
}

typedef struct {
    bool nearest, cubic, border, reflect, align;
    int d, taps, first;
} sampler;

static sampler read_sampler(kn_x *x)
{
    const char *mode = kn_x_string(x, "mode", "linear"),
               *outside = kn_x_string(x, "outside", "zeros");
    sampler s = {.nearest = strcmp(mode, "nearest") == 0,
                 .cubic = strcmp(mode, "cubic") == 0,
                 .border = strcmp(outside, "border") == 0,
                 .reflect = strcmp(outside, "reflection") == 0,
                 .align = kn_x_int(x, "align_corners", 0) != 0,
                 .d = kn_x_rank(x, 0) - 2};
    if (!s.nearest && !s.cubic && strcmp(mode, "linear") != 0)
        kn_x_fail(x, "unknown mode `%s`", mode);
    if (!s.border && !s.reflect && strcmp(outside, "zeros") != 0)
        kn_x_fail(x, "unknown padding `%s`", outside);
    if (s.d < 1 || kn_x_rank(x, 1) != s.d + 2)
        kn_x_fail(x, "operands have ranks %d and %d, expected the same, at least 3",
                  kn_x_rank(x, 0), kn_x_rank(x, 1));
    s.taps = s.nearest ? 1 : s.cubic ? 4 : 2;
    s.first = s.cubic ? -1 : 0;
    return s;
}

/* `value` reflected into $lo..$hi of axis $k. */
static const char *reflected(kn_x *x, const char *value)
{
    return kn_format(x->a, "($lo + $span - abs(mod(%s - $lo, max(2 * $span, 1)) - $span))", value);
}

/* For one axis: P the place as sampled, V as brought inside, J[..., r] the taps' places, W[..., r]
 * their weights. */
static void write_sampler_axis(kn_x *x, const sampler *s, int k)
{
    kn_x_set(x, "k", "%d", k);
    kn_x_set(x, "from", "cast(acctype(X), G[n, %s, %d])", (const char *)kn_map_get(&x->names, "q"),
             s->d - 1 - k);
    kn_x_set(x, "n", "cast(acctype(X), d%d)", k);
    kn_x_set(x, "lo", s->align ? "cast(acctype(X), 0)" : "cast(acctype(X), -0.5)");
    kn_x_set(x, "span", s->align ? "($n - 1)" : "$n");
    kn_x_set(x, "taps", "%d", s->taps);
    kn_x_set(x, "f", "%d", s->first);
    kn_str span = kn_str_make(x->a), *whole = x->out;
    x->out = &span;
    kn_x_write(x, s->align ? "($n - 1)" : "$n");
    x->out = whole;
    kn_x_set(x, "span", "%s", kn_str_get(&span));
    kn_x_write(x, s->nearest ? "P$k[n, $q] = round(" : "P$k[n, $q] = ");
    kn_x_write(x, s->align ? "($from + 1) / 2 * ($n - 1)" : "(($from + 1) * $n - 1) / 2");
    kn_x_write(x, s->nearest ? "); V$k[n, $q] = " : "; V$k[n, $q] = ");
    if (s->border || s->reflect) {
        kn_x_write(x, "select(P$k[n, $q] < $lo || P$k[n, $q] > $lo + $span, ");
        kn_x_write(x, s->border ? "min(max(P$k[n, $q], 0), $n - 1)" : reflected(x, "P$k[n, $q]"));
        kn_x_write(x, ", P$k[n, $q]); ");
    } else
        kn_x_write(x, "P$k[n, $q]; ");
    kn_x_write(x,
               "T$k[n, $q, r] = floor(V$k[n, $q]) + cast(acctype(X), r + ($f)) where r in 0:$taps; "
               "J$k[n, $q, r] = cast(i64, min(max(");
    kn_x_write(x, s->reflect ? reflected(x, "T$k[n, $q, r]") : "T$k[n, $q, r]");
    kn_x_write(x,
               ", 0), $n - 1)); A$k[n, $q, r] = abs(T$k[n, $q, r] - V$k[n, $q]); W$k[n, $q, r] = ");
    kn_x_write(
        x, s->border || s->reflect ? "" : "select(T$k[n, $q, r] >= 0 && T$k[n, $q, r] <= $n - 1, ");
    if (s->nearest)
        kn_x_write(x, "cast(acctype(X), 1) + 0 * A$k[n, $q, r]");
    else if (s->cubic)
        kn_x_write(x, "select(A$k[n, $q, r] <= 1, (1.25 * A$k[n, $q, r] - 2.25) * A$k[n, $q, r] * "
                      "A$k[n, $q, r] + 1, "
                      "((-0.75 * A$k[n, $q, r] + 3.75) * A$k[n, $q, r] - 6) * A$k[n, $q, r] + 3)");
    else
        kn_x_write(x, "1 - A$k[n, $q, r]");
    kn_x_write(x, s->border || s->reflect ? "; " : ", 0); ");
}

void kn_expand_grid_sample(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    sampler s = read_sampler(&x);
    kn_subs d = kn_x_subs(&x, "d", s.d), o = kn_x_subs(&x, "o", s.d), q = kn_x_subs(&x, "x", s.d),
            at = {0};
    kn_str weights = kn_str_make(x.a);
    kn_x_let(&x, "d", &d);
    kn_x_let(&x, "o", &o);
    kn_x_let(&x, "q", &q);
    kn_x_set(&x, "D", "%d", s.d);
    kn_x_write(&x, "(X[N, C, $d], G[N, $o, $D]) -> Y: typeof(X)[N, C, $o]: ");
    const char *places = kn_map_get(&x.names, "q");
    for (int k = 0; k < s.d; k++) {
        write_sampler_axis(&x, &s, k);
        kn_x_push(&x, &at, kn_format(x.a, "J%d[n, %s, r%d]", k, places, k));
        kn_putf(&weights, " * W%d[n, %s, r%d]", k, places, k);
    }
    kn_x_let(&x, "at", &at);
    kn_x_write(&x, "S[n, c, $q] +=! cast(acctype(X), X[n, c, $at])");
    kn_put(out, kn_str_get(&weights));
    kn_x_write(&x, "; Y[n, c, $q] = cast(typeof(X), S[n, c, $q])");
}
