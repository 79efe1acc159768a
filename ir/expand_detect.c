/* Expansions for detectors: sampling at places that are data (deformable convolution, regions),
   suppression of boxes. Samples are bilinear: floor and the next, each with a table of places J and
   weights W. */
#include "ir/expand_window.h"

/* ---- deformable convolution ---- */

/* Writes, for axis 0 (y) or 1 (x) with the shifts in channel `part`, tables J and W over [n, g, r0,
 * r1, x0, x1, u]. */
static void write_shifted(kn_x *x, const window *w, int axis, int part)
{
    kn_x_set(x, "k", "%d", axis);
    kn_x_set(x, "part", "%d", part);
    kn_x_set(x, "place", "%s", w->axis[axis].at);
    kn_x_write(x, "P$k[$q] = cast(acctype(X), $place) + cast(acctype(X), D[n, (g * $area + $lin) * "
                  "2 + $part, x0, x1])"
                  " where g in 0:$og, $rr; "
                  "J$k[$q, u] = cast(i64, min(max(floor(P$k[$q]) + cast(acctype(X), u), 0), "
                  "cast(acctype(X), d$k - 1)))"
                  " where u in 0:2; "
                  "W$k[$q, u] = select(floor(P$k[$q]) + cast(acctype(X), u) >= 0 &&"
                  " floor(P$k[$q]) + cast(acctype(X), u) < cast(acctype(X), d$k),"
                  " 1 - abs(P$k[$q] - floor(P$k[$q]) - cast(acctype(X), u)), 0) where u in 0:2; ");
}

/* $c: the channel of X; $g: its group of shifts. */
static void set_deformed_channels(kn_x *x)
{
    int64_t group = kn_x_int(x, "group", 1), shifts = kn_x_int(x, "offset_group", 1);
    int64_t c = kn_x_dim_const(x, 0, 1), o = kn_x_dim_const(x, 1, 0), m = kn_x_dim_const(x, 1, 1);
    if (group < 1 || shifts < 1 || o % group != 0 || c != m * group || c % shifts != 0 || o == 0)
        kn_x_fail(x, "%lld channels do not fit %lld groups and %lld groups of shifts", (long long)c,
                  (long long)group, (long long)shifts);
    kn_x_set(x, "og", "%lld", (long long)shifts);
    kn_x_set(x, "c", "o / %lld * %lld + c", (long long)(o / group), (long long)m);
    kn_x_set(x, "g", "(o / %lld * %lld + c) / %lld", (long long)(o / group), (long long)m,
             (long long)(c / shifts));
}

/* As conv, but each element of the window is taken at its place plus a shift; operands X, W,
 * shifts, bias, mask. */
void kn_expand_deform_conv(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    window w = kn_x_window(&x, NULL, 1);
    bool bias = kn_x_operand(&x, 3) != NULL, mask = kn_x_operand(&x, 4) != NULL;
    if (w.d != 2)
        kn_x_fail(&x, "%d spatial dimensions, expected 2", w.d);
    set_deformed_channels(&x);
    kn_x_set(&x, "q", "n, g, r0, r1, x0, x1");
    kn_x_set(&x, "area", "%s * %s", w.axis[0].k, w.axis[1].k);
    kn_x_set(&x, "lin", "r0 * %s + r1", w.axis[1].k);
    kn_x_write(&x, "(X[N, C, d0, d1], F[O, M, k0, k1], D[N, S, o0, o1]");
    kn_x_write(&x, bias ? ", B[O]" : "");
    kn_x_write(&x, mask ? ", A[N, T, o0, o1]" : "");
    kn_x_write(&x, ") -> Y: typeof(X)[N, O, o0, o1]: ");
    write_shifted(&x, &w, 0, 0);
    write_shifted(&x, &w, 1, 1);
    kn_x_set(&x, "t", "n, %s, r0, r1, x0, x1", (const char *)kn_map_get(&x.names, "g"));
    kn_x_write(&x, "Z[n, o, x0, x1] +=! cast(acctype(X), X[n, $c, J0[$t, u], J1[$t, v]]) * W0[$t, "
                   "u] * W1[$t, v]"
                   " * cast(acctype(X), F[o, c, r0, r1])");
    kn_x_write(&x, mask ? " * cast(acctype(X), A[n, ($g) * $area + $lin, x0, x1])" : "");
    kn_x_write(
        &x, bias ? "; Y[n, o, x0, x1] = cast(typeof(X), Z[n, o, x0, x1] + cast(acctype(X), B[o]))"
                 : "; Y[n, o, x0, x1] = cast(typeof(X), Z[n, o, x0, x1])");
}

/* ---- regions ---- */

/* Tables over [region, bin, sample, u] for axis y (0) or x (1); corners are x1, y1, x2, y2. */
static void write_region_axis(kn_x *x, int axis, bool half_pixel)
{
    kn_x_set(x, "k", "%d", axis);
    kn_x_set(x, "d", axis == 0 ? "H" : "W");
    kn_x_set(x, "lo", "%d", axis == 0 ? 1 : 0);
    kn_x_set(x, "hi", "%d", axis == 0 ? 3 : 2);
    kn_x_set(x, "bins", "%s", kn_x_index(x, axis == 0 ? "height" : "width", -1));
    kn_x_set(x, "shift", half_pixel ? "0.5" : "0.0");
    kn_x_write(x, "S$k[n] = R[n, $lo] * $scale - $shift; ");
    kn_x_write(
        x,
        half_pixel
            ? "E$k[n] = (R[n, $hi] * $scale - $shift - S$k[n]) / cast(typeof(R), $bins); "
            : "E$k[n] = max(R[n, $hi] * $scale - $shift - S$k[n], 1) / cast(typeof(R), $bins); ");
    kn_x_write(
        x, "P$k[n, p, i] = S$k[n] + (cast(typeof(R), p) + (cast(typeof(R), i) + 0.5) / "
           "cast(typeof(R), $samples)) * E$k[n]"
           " where p in 0:$bins, i in 0:$samples; "
           "V$k[n, p, i] = min(max(P$k[n, p, i], 0), cast(typeof(R), $d - 1)); "
           "J$k[n, p, i, u] = min(cast(i64, floor(V$k[n, p, i])) + cast(i64, u), cast(i64, $d - "
           "1)) where u in 0:2; "
           "W$k[n, p, i, u] = select(P$k[n, p, i] < -1 || P$k[n, p, i] > cast(typeof(R), $d), 0,"
           " 1 - abs(V$k[n, p, i] - floor(V$k[n, p, i]) - cast(typeof(R), u))) where u in 0:2; ");
}

void kn_expand_roi_align(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    int64_t samples = kn_x_int(&x, "samples", 2);
    bool average = strcmp(kn_x_string(&x, "mode", "average"), "average") == 0;
    bool half_pixel = kn_x_int(&x, "half_pixel", 1) != 0;
    if (samples < 1 || samples > 1 << 10)
        kn_x_fail(&x, "samples is %lld, expected at least 1", (long long)samples);
    kn_x_set(&x, "samples", "%lld", (long long)samples);
    kn_x_set(&x, "scale", "%s", kn_x_float(&x, kn_node_float(node, "scale", 1)));
    kn_x_set(&x, "m", "%s", kn_x_index(&x, "height", -1));
    kn_x_set(&x, "l", "%s", kn_x_index(&x, "width", -1));
    kn_x_set(&x, "area", "%lld", (long long)(samples * samples));
    kn_x_write(&x, "(X[B, C, H, W], R[N, 4], I[N], $attrs) -> Y: typeof(X)[N, C, $m, $l]: ");
    write_region_axis(&x, 0, half_pixel);
    write_region_axis(&x, 1, half_pixel);
    kn_x_set(&x, "term",
             "X[I[n], c, J0[n, y, i, u], J1[n, x, j, v]] * W0[n, y, i, u] * W1[n, x, j, v]");
    kn_x_write(&x, average ? "Z[n, c, y, x] +=! $term; Y[n, c, y, x] = Z[n, c, y, x] / $area"
                           : "Y[n, c, y, x] max=! $term");
}

/* ---- boxes ---- */

/* Corners of box i or j of batch b: y1, x1, y2, x2 in any order, or centre and size. */
static void write_corners(kn_x *x, bool centre)
{
    kn_x_write(
        x,
        centre
            ? "XL[b, i] = B[b, i, 0] - B[b, i, 2] / 2; XH[b, i] = B[b, i, 0] + B[b, i, 2] / 2; "
              "YL[b, i] = B[b, i, 1] - B[b, i, 3] / 2; YH[b, i] = B[b, i, 1] + B[b, i, 3] / 2; "
            : "XL[b, i] = min(B[b, i, 1], B[b, i, 3]); XH[b, i] = max(B[b, i, 1], B[b, i, 3]); "
              "YL[b, i] = min(B[b, i, 0], B[b, i, 2]); YH[b, i] = max(B[b, i, 0], B[b, i, 2]); ");
}

/* K[t, b, c]: whether the box of rank t by score is kept, N how many so far, O which box it is.
   Boxes are ranked by counting; each is kept unless one kept before overlaps it too much. */
static void write_suppression(kn_x *x)
{
    write_corners(x, kn_x_int(x, "centre", 0) != 0);
    kn_x_write(
        x, "A[b, i] = (XH[b, i] - XL[b, i]) * (YH[b, i] - YL[b, i]); "
           "V[b, i, j] = max(min(XH[b, i], XH[b, j]) - max(XL[b, i], XL[b, j]), 0) *"
           " max(min(YH[b, i], YH[b, j]) - max(YL[b, i], YL[b, j]), 0); "
           "Q[b, i, j] = V[b, i, j] > 0 && A[b, i] > 0 && A[b, j] > 0 &&"
           " V[b, i, j] / (A[b, i] + A[b, j] - V[b, i, j]) > $iou; "
           "R[b, c, i] +=! select(S[b, c, j] > S[b, c, i] || (S[b, c, j] == S[b, c, i] && j < i), "
           "cast(i64, 1), 0)"
           " where j in 0:M; "
           "O[b, c, t] = cast(i64, 0) where b in 0:D, c in 0:C, t in 0:M; "
           "O[b, c, R[b, c, i]] = cast(i64, i); "
           "over t { "
           "U[t, b, c] +=! select(K[s, b, c] == 1 && Q[b, O[b, c, s], O[b, c, t]], cast(i64, 1), 0)"
           " where s in 0:t, b in 0:D, c in 0:C, t in 0:M; "
           "K[t, b, c] = select(U[t, b, c] == 0 && $scored && select(t == 0, 0, N[t - 1, b, c]) < "
           "$most, cast(i64, 1), 0); "
           "N[t, b, c] = select(t == 0, 0, N[t - 1, b, c]) + K[t, b, c] } ");
}

/* The signature up to the results, and what the optional operands stand for. */
static void write_boxes_signature(kn_x *x)
{
    bool most = kn_x_operand(x, 2) != NULL, iou = kn_x_operand(x, 3) != NULL,
         score = kn_x_operand(x, 4) != NULL;
    static const char *const names[] = {"m", "u", "l"};
    for (int k = 0; k < 3; k++)
        if (kn_x_operand(x, k + 2))
            kn_x_single(x, names[k], k + 2);
    kn_x_set(x, "most", most ? "cast(i64, G[%s])" : "0",
             most ? (const char *)kn_map_get(&x->names, "m_i") : "");
    kn_x_set(x, "iou", iou ? "H[%s]" : "0", iou ? (const char *)kn_map_get(&x->names, "u_i") : "");
    kn_x_set(x, "scored", score ? "S[b, c, O[b, c, t]] > L[%s]" : "U[t, b, c] == 0",
             score ? (const char *)kn_map_get(&x->names, "l_i") : "");
    kn_x_write(x, "(B[D, M, 4], S[D, C, M]");
    kn_x_write(x, most ? ", G[$m_d]" : "");
    kn_x_write(x, iou ? ", H[$u_d]" : "");
    kn_x_write(x, score ? ", L[$l_d]" : "");
}

void kn_expand_count_boxes(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    write_boxes_signature(&x);
    kn_x_write(&x, ") -> Y: i64[1]: ");
    write_suppression(&x);
    kn_x_write(&x, "Y[0] +=! K[t, b, c]");
}

/* Kept boxes stand in the order of batch, class, score: F counts those of the classes before. */
void kn_expand_select_boxes(kn_str *out, const kn_graph *g, const kn_node *node)
{
    kn_x x = kn_x_start(out, g, node);
    write_boxes_signature(&x);
    kn_x_set(&x, "n", "%s", kn_x_index(&x, "count", -1));
    kn_x_write(&x, *kn_str_get(&x.attrs) ? ", $attrs) -> Y: i64[$n, 3]: " : ") -> Y: i64[$n, 3]: ");
    write_suppression(&x);
    kn_x_write(
        &x, "E[b, c] +=! K[t, b, c]; "
            "F[b, c] +=! select(p < b || (p == b && q < c), E[p, q], 0) where b in 0:D, c in 0:C; "
            "Y[F[b, c] + N[t, b, c] - 1, 0] = cast(i64, b) where K[t, b, c] == 1; "
            "Y[F[b, c] + N[t, b, c] - 1, 1] = cast(i64, c) where K[t, b, c] == 1; "
            "Y[F[b, c] + N[t, b, c] - 1, 2] = O[b, c, t] where K[t, b, c] == 1");
}
