/* Whether two strided ranges share a byte. Exact; quick where either is dense or both have the same
   pitch, row by row otherwise. */
#include "runtime/npu/sim/sim_internal.h"

static int64_t end_of(const kn_sim_range *r)
{
    return r->address + (r->rows - 1) * r->pitch + r->bytes;
}

static bool dense(const kn_sim_range *r)
{
    return r->rows == 1 || r->pitch <= r->bytes;
}

/* The first byte at or after `from`, and before `to`, of a range; false when there is none. */
static bool touches(const kn_sim_range *r, int64_t from, int64_t to, int64_t *at)
{
    int64_t i = 0;
    if (from > r->address && r->rows > 1 && r->pitch > 0) {
        i = kn_sim_min((from - r->address) / r->pitch, r->rows - 1);
        if (r->address + i * r->pitch + r->bytes <= from && i < r->rows - 1) {
            i++;
        }
    }
    int64_t first = r->address + i * r->pitch;
    *at = kn_sim_max(first, from);
    return *at < kn_sim_min(first + r->bytes, to);
}

static bool rows_meet(const kn_sim_range *few, const kn_sim_range *other, int64_t *at)
{
    for (int64_t i = 0; i < few->rows; i++) {
        int64_t from = few->address + i * few->pitch;
        if (touches(other, from, from + few->bytes, at)) {
            return true;
        }
    }
    return false;
}

bool kn_sim_ranges_meet(const kn_sim_range *a, const kn_sim_range *b, int64_t *at)
{
    if (a->space != b->space || a->rows <= 0 || b->rows <= 0 || a->bytes <= 0 || b->bytes <= 0) {
        return false;
    }
    int64_t from = kn_sim_max(a->address, b->address);
    int64_t to = kn_sim_min(end_of(a), end_of(b));
    if (from >= to) {
        return false;
    }
    *at = from;
    if (dense(a) && dense(b)) {
        return true;
    }
    if (dense(a)) {
        return touches(b, a->address, end_of(a), at);
    }
    if (dense(b)) {
        return touches(a, b->address, end_of(b), at);
    }
    return a->rows <= b->rows ? rows_meet(a, b, at) : rows_meet(b, a, at);
}
