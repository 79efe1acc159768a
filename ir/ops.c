/* The table of operators. All that is known of one stands in its row of ops.def. */
#include <string.h>

#include "ir/expand.h"
#include "ir/graph_internal.h"

static const kn_op_row rows[] = {
#define OP(name, kind, min, max, results, notation, doc) \
    {#name, KN_ROW_##kind, min, max, results, notation, NULL, doc},
#define OPX(name, kind, min, max, results, function, doc) \
    {#name, KN_ROW_##kind, min, max, results, NULL, function, doc},
#include "ir/ops.def"
#undef OP
#undef OPX
};

static const char user_doc[] = "A meaning written in the graph's text.";
static const kn_op_row user_rows[] = {
    [KN_ROW_PLAIN] = {"notation", KN_ROW_PLAIN, 0, -1, -1, NULL, NULL, user_doc},
    [KN_ROW_VIEW] = {"notation", KN_ROW_VIEW, 0, -1, -1, NULL, NULL, user_doc},
    [KN_ROW_INDIRECT] = {"notation", KN_ROW_INDIRECT, 0, -1, -1, NULL, NULL, user_doc},
    [KN_ROW_RECURRENCE] = {"notation", KN_ROW_RECURRENCE, 0, -1, -1, NULL, NULL, user_doc},
    [KN_ROW_OPAQUE] = {"notation", KN_ROW_OPAQUE, 0, -1, -1, NULL, NULL, user_doc},
};

int kn_op_count(void)
{
    return (int)(sizeof rows / sizeof *rows);
}

const kn_op_row *kn_op_get(int i)
{
    return &rows[i];
}

const kn_op_row *kn_op_find(const char *name)
{
    for (int i = 0; i < kn_op_count(); i++)
        if (rows[i].name[0] == name[0] && strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

const kn_op_row *kn_op_user_row(kn_row_kind kind)
{
    return &user_rows[kind];
}

bool kn_op_is_user_row(const kn_op_row *row)
{
    return strcmp(row->name, "notation") == 0;
}
