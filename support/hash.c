/* XXH64. Four lanes take 8 bytes each from every 32-byte stripe; the lanes are merged, the rest of
   the bytes mixed in by eights, a four and ones, and the result is scrambled. Words are
   little-endian on every machine. */
#include "support/hash.h"

#define PRIME1 0x9E3779B185EBCA87u
#define PRIME2 0xC2B2AE3D27D4EB4Fu
#define PRIME3 0x165667B19E3779F9u
#define PRIME4 0x85EBCA77C2B2AE63u
#define PRIME5 0x27D4EB2F165667C5u

static uint64_t rotl(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t read32(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t read64(const unsigned char *p)
{
    return read32(p) | read32(p + 4) << 32;
}

static uint64_t step(uint64_t lane, uint64_t word)
{
    return rotl(lane + word * PRIME2, 31) * PRIME1;
}

/* Takes all whole stripes from *p. */
static uint64_t take_stripes(const unsigned char **p, size_t nstripes, uint64_t seed)
{
    uint64_t lane[4] = {seed + PRIME1 + PRIME2, seed + PRIME2, seed, seed - PRIME1};
    for (; nstripes; nstripes--, *p += 32)
        for (size_t i = 0; i < 4; i++)
            lane[i] = step(lane[i], read64(*p + 8 * i));
    uint64_t h = rotl(lane[0], 1) + rotl(lane[1], 7) + rotl(lane[2], 12) + rotl(lane[3], 18);
    for (int i = 0; i < 4; i++)
        h = (h ^ step(0, lane[i])) * PRIME1 + PRIME4;
    return h;
}

static uint64_t take_tail(uint64_t h, const unsigned char *p, size_t n)
{
    for (; n >= 8; p += 8, n -= 8)
        h = rotl(h ^ step(0, read64(p)), 27) * PRIME1 + PRIME4;
    if (n >= 4) {
        h = rotl(h ^ read32(p) * PRIME1, 23) * PRIME2 + PRIME3;
        p += 4;
        n -= 4;
    }
    for (; n; p++, n--)
        h = rotl(h ^ *p * PRIME5, 11) * PRIME1;
    return h;
}

uint64_t kn_hash64(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = n >= 32 ? take_stripes(&p, n / 32, seed) : seed + PRIME5;
    h = take_tail(h + n, p, n % 32);
    h = (h ^ h >> 33) * PRIME2;
    h = (h ^ h >> 29) * PRIME3;
    return h ^ h >> 32;
}
