/* Writes copies of a file, cut off or with bytes changed, for tests/bad_files.sh:

     mutate FILE COUNT SEED DIR     DIR/mutant0 ... */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    unsigned char *at;
    size_t n;
} bytes;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static bytes read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        fail(path);
    }
    long n = ftell(f);
    bytes b = {malloc(n > 0 ? (size_t)n : 1), n > 0 ? (size_t)n : 0};
    rewind(f);
    if (!b.at || fread(b.at, 1, b.n, f) != b.n) {
        fail(path);
    }
    fclose(f);
    return b;
}

static void write_file(const char *path, bytes b)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b.at, 1, b.n, f) != b.n || fclose(f) != 0) {
        fail(path);
    }
}

static uint64_t next_random(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Most of a large file is weights, where a change does no harm: half of the places are near the
   ends. */
static size_t some_place(uint64_t *state, size_t n)
{
    enum { NEAR = 4096 };
    size_t near = n < NEAR ? n : NEAR, at = (size_t)next_random(state);
    switch (next_random(state) % 4) {
    case 0: return at % near;
    case 1: return n - 1 - at % near;
    default: return at % n;
    }
}

/* Another byte: with one bit flipped, or any. */
static void change(unsigned char *at, uint64_t *state)
{
    uint64_t r = next_random(state);
    *at = (unsigned char)(r & 1 ? *at ^ 1u << (r >> 1) % 8 : r >> 8);
}

/* In place; what is left. */
static bytes mutated(bytes b, uint64_t *state)
{
    enum { MOST_CHANGES = 4 };
    if (next_random(state) % 3 == 0) {
        b.n = some_place(state, b.n);
        return b;
    }
    for (uint64_t k = 1 + next_random(state) % MOST_CHANGES; k > 0; k--) {
        change(b.at + some_place(state, b.n), state);
    }
    return b;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fputs("usage: mutate FILE COUNT SEED DIR\n", stderr);
        return 2;
    }
    bytes original = read_file(argv[1]), copy = {malloc(original.n + 1), original.n};
    uint64_t state = strtoull(argv[3], NULL, 10);
    if (!copy.at || original.n == 0) {
        fail(argv[1]);
    }
    for (int i = 0; i < atoi(argv[2]); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/mutant%d", argv[4], i);
        memcpy(copy.at, original.at, original.n);
        write_file(path, mutated(copy, &state));
    }
    free(original.at);
    free(copy.at);
    return 0;
}
