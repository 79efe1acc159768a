/* The compiler from a host program: builds y = gelu(x w + b) through the C API, adds an operator of
   its own as index notation, compiles it in memory, runs it on two rows. Links libkiln. */
#include <stdio.h>

#include "kiln/kiln.h"

enum { IN = 4, OUT = 3, ROWS = 2 };

static const float weights[IN * OUT] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f,
                                        0.7f, 0.8f, 0.9f, 1.0f, 1.1f, 1.2f};
static const float bias[OUT] = {0.5f, -0.5f, 0.0f};

/* Each step is done when those before it were. */
static kn_status build(kn_model *m)
{
    static const char *const x_dims[] = {"rows", "4"};
    static const int64_t w_dims[] = {IN, OUT}, b_dims[] = {OUT};
    kn_tensor_id x, w, b, product, sum, y, doubled;
    kn_status status = kn_model_add_input(m, "x", KN_F32, 2, x_dims, &x);
    status = status ? status : kn_model_add_constant(m, "w", KN_F32, 2, w_dims, weights, &w);
    status = status ? status : kn_model_add_constant(m, "b", KN_F32, 1, b_dims, bias, &b);
    status = status ? status
                    : kn_model_add_op(m, "matmul", (kn_tensor_id[]){x, w}, 2, NULL, &product, 1);
    status =
        status ? status : kn_model_add_op(m, "add", (kn_tensor_id[]){product, b}, 2, NULL, &sum, 1);
    status = status ? status : kn_model_add_op(m, "gelu", &sum, 1, NULL, &y, 1);
    status = status ? status
                    : kn_model_add_notation(m, "(A[*b]) -> B: B[*b] = A[*b] + A[*b]", &y, 1, NULL,
                                            &doubled, 1);
    return status ? status : kn_model_add_output(m, "y", doubled);
}

static kn_status run(kn_ctx *ctx, const kn_program *program)
{
    static const float x[ROWS * IN] = {1, 2, 3, 4, -1, -2, -3, -4};
    static const int64_t dims[] = {ROWS, IN};
    float y[ROWS * OUT];
    kn_session *session;
    kn_status status = kn_session_create(ctx, program, &session);
    status = status ? status : kn_session_set_input(session, 0, KN_F32, 2, dims, x);
    status = status ? status : kn_session_set_output(session, 0, y, sizeof y);
    status = status ? status : kn_session_run(session);
    for (int i = 0; status == KN_OK && i < ROWS * OUT; i++) {
        printf("%.6f%s", (double)y[i], i % OUT == OUT - 1 ? "\n" : " ");
    }
    kn_session_destroy(session);
    return status;
}

int main(void)
{
    kn_model *model = NULL;
    kn_program *program = NULL;
    kn_ctx *ctx = kn_ctx_create();
    if (!ctx) {
        return KN_ENVIRONMENT;
    }
    kn_status status = kn_model_create(ctx, "ffn", &model);
    status = status ? status : build(model);
    status = status ? status : kn_compile(model, NULL, &program);
    status = status ? status : run(ctx, program);
    for (int i = 0; i < kn_diag_count(ctx); i++) {
        const kn_diag *d = kn_diag_get(ctx, i);
        fprintf(stderr, "ffn: %s%s%s\n", d->where ? d->where : "", d->where ? ": " : "",
                d->message);
    }
    kn_program_destroy(program);
    kn_model_destroy(model);
    kn_ctx_destroy(ctx);
    return (int)status;
}
