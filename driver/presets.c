/* The targets that the library carries: the files of targets/, embedded by the build. */
#include "driver/driver.h"

/* Made by the build: NULL-terminated, in order of their names. */
extern const kn_preset kn_presets[];

int kn_preset_count(void)
{
    int n = 0;
    while (kn_presets[n].name) {
        n++;
    }
    return n;
}

const kn_preset *kn_preset_get(int i)
{
    return &kn_presets[i];
}

const kn_preset *kn_preset_find(const char *name)
{
    for (const kn_preset *p = kn_presets; p->name; p++) {
        if (strcmp(p->name, name) == 0) {
            return p;
        }
    }
    return NULL;
}
