/* XXH64 of a byte range (Y. Collet's published algorithm), for content hashes; not cryptographic.
 */
#ifndef KN_SUPPORT_HASH_H
#define KN_SUPPORT_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t kn_hash64(const void *data, size_t n, uint64_t seed);

#endif
