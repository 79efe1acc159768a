/* A feed-forward block built through the C API, and running it: what the tests of the API share. */
#ifndef KN_TESTS_API_HELP_H
#define KN_TESTS_API_HELP_H

#include "unit.h"

#include "kiln/kiln.h"

enum { FFN_IN = 12, FFN_MID = 20, FFN_OUT = 7, FFN_MAX_ROWS = 9 };

static float ffn_w1[FFN_IN * FFN_MID], ffn_b1[FFN_MID], ffn_w2[FFN_MID * FFN_OUT];

static inline void ffn_fill(float *at, int n, unsigned seed)
{
    for (int i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        at[i] = (float)(int)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
}

/* To be called first. */
static inline void ffn_weights(void)
{
    ffn_fill(ffn_w1, FFN_IN * FFN_MID, 1);
    ffn_fill(ffn_b1, FFN_MID, 2);
    ffn_fill(ffn_w2, FFN_MID * FFN_OUT, 3);
}

/* y[rows, 7] = gelu(x[rows, 12] w1 + b1) w2; the weights are those above. The first failure is
 * returned. */
static inline kn_status ffn_build(kn_model *m)
{
    static const char *const x_dims[] = {"rows", "12"};
    static const int64_t w1_dims[] = {FFN_IN, FFN_MID}, b1_dims[] = {FFN_MID},
                         w2_dims[] = {FFN_MID, FFN_OUT};
    kn_tensor_id x, w1, b1, w2, t;
    kn_status s = kn_model_add_input(m, "x", KN_F32, 2, x_dims, &x);
    s = s ? s : kn_model_set_dim(m, "rows", 0, FFN_MAX_ROWS);
    s = s ? s : kn_model_add_constant(m, "w1", KN_F32, 2, w1_dims, ffn_w1, &w1);
    s = s ? s : kn_model_add_constant(m, "b1", KN_F32, 1, b1_dims, ffn_b1, &b1);
    s = s ? s : kn_model_add_constant(m, "w2", KN_F32, 2, w2_dims, ffn_w2, &w2);
    s = s ? s : kn_model_add_op(m, "matmul", (kn_tensor_id[]){x, w1}, 2, NULL, &t, 1);
    s = s ? s : kn_model_add_op(m, "add", (kn_tensor_id[]){t, b1}, 2, NULL, &t, 1);
    s = s ? s : kn_model_add_op(m, "gelu", &t, 1, NULL, &t, 1);
    s = s ? s : kn_model_add_op(m, "matmul", (kn_tensor_id[]){t, w2}, 2, NULL, &t, 1);
    return s ? s : kn_model_add_output(m, "y", t);
}

/* Runs a program of the block's signature on seeded rows, in a session of its own. */
static inline kn_status ffn_run(kn_ctx *ctx, const kn_program *p, int rows, float *y)
{
    float x[FFN_MAX_ROWS * FFN_IN];
    const int64_t dims[] = {rows, FFN_IN};
    kn_session *session;
    ffn_fill(x, rows * FFN_IN, 4);
    kn_status s = kn_session_create(ctx, p, &session);
    s = s ? s : kn_session_set_input(session, 0, KN_F32, 2, dims, x);
    s = s ? s : kn_session_set_output(session, 0, y, (size_t)(rows * FFN_OUT) * sizeof *y);
    s = s ? s : kn_session_run(session);
    kn_session_destroy(session);
    return s;
}

#endif
