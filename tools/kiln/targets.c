/* kiln targets: the presets that the library carries. */
#include <cjson/cJSON.h>
#include <stdio.h>

#include "tools/kiln/kiln.h"

static const char *text_of(const cJSON *json, const char *key, const char *otherwise)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));
    return text ? text : otherwise;
}

void kn_verb_targets(kn_cli *c)
{
    cJSON *list = c->json ? cJSON_CreateArray() : NULL;
    if (c->nfiles) {
        kn_cli_usage(c, "targets takes no file");
    }
    for (int i = 0; i < kn_preset_count(); i++) {
        const kn_preset *p = kn_preset_get(i);
        cJSON *json = cJSON_ParseWithLength((const char *)p->text, *p->size);
        const char *comment = text_of(json, "comment", "");
        if (c->json) {
            cJSON *row = cJSON_CreateObject();
            cJSON_AddStringToObject(row, "name", p->name);
            cJSON_AddStringToObject(row, "comment", comment);
            cJSON_AddItemToArray(list, row);
        } else {
            printf("%-16s %s\n", p->name, comment);
        }
        cJSON_Delete(json);
    }
    if (c->json) {
        cJSON *json = cJSON_CreateObject();
        cJSON_AddItemToObject(json, "targets", list);
        kn_cli_print_json(c, json);
    }
}
