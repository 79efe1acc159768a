/* Private to the engines that interpret and so check every access: engine_checked.c has what
   engine_interpret.c and engine_sim.c share. */
#ifndef KN_DRIVER_ENGINE_INTERNAL_H
#define KN_DRIVER_ENGINE_INTERNAL_H

#include <pthread.h>

#include "driver/driver.h"

typedef struct {
    const kn_program *program;
    kn_model *model;
    void (*body)(void *checked); /* one run; raises in the model's context */
    const void *code;            /* the engine's own: what `body` runs, or NULL */
    pthread_mutex_t mutex;
    /* The run at hand: as in kn_engine. */
    const kn_span *io;
    const int64_t *sizes;
} kn_checked;

/* Makes an engine of `body`. */
void kn_engine_checked(kn_program *p, kn_model *model, void (*body)(void *checked),
                       const void *code);

#endif
