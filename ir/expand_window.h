/* What convolutions and pools share: a window that slides over d spatial dimensions. Names: spatial
   sizes d0, d1, ...; window sizes k0, k1, ...; indices of the result x0, x1, ..., within the window
   r0, r1, ... */
#ifndef KN_IR_EXPAND_WINDOW_H
#define KN_IR_EXPAND_WINDOW_H

#include "ir/expand_internal.h"

typedef struct {
    int d;       /* spatial dimensions, 1 to 3 or more */
    bool padded; /* a place may lie outside */
    struct window_axis {
        int64_t stride, dilation, before, after;
        const char *k; /* size of the window: a number, or k0 */
        const char
            *at; /* the place that the window's element has in the operand: "x0 * 2 + r0 - 1" */
        const char *out; /* size of the result */
    } axis[KN_MAX_RANK];
} window;

/* Reads {strides = 1, dilations = 1, before = 0, after = 0, ceil = 0} for an operand of rank 2 + d.
   `kernel` is the list attribute with the window's size; NULL: it is that of operand `weights`,
   dimensions 2 and on. Sets $d, $k, $i, $r, $at (lists), $o (result sizes), $ri (ranges of the
   result's indices), $rr (of the window's). */
window kn_x_window(kn_x *x, const char *kernel, int weights);
/* "0 <= at && at < d0 && ..." for all axes. */
const char *kn_x_inside(kn_x *x, const window *w);

#endif
