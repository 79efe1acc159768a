/* What the user fixes at import, whatever the model's format. */
#include "frontend/frontend.h"

_Noreturn void kn_no_dimension(kn_arena *a, const char *name, const char *const *has, int n)
{
    kn_str s = kn_str_make(a);
    for (int i = 0; i < n; i++) {
        kn_putf(&s, "%s`%s`", i ? ", " : "; it has ", has[i]);
    }
    kn_raise(kn_arena_ctx(a), KN_USAGE, kn_loc_none(), "the model has no dimension `%s`%s", name,
             kn_str_get(&s));
}
