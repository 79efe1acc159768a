/* The timing engine on small machines: events, hazards, DRAM, energy, what it refuses. The numbers
   of a real machine are in test_sim_timing.c. */
#include "unit.h"

#include "runtime/npu/sim/sim.h"

/* ---- A machine with events ---- */

enum { IN, OUT, MATRIX, NPIPES };
enum { SPM, ACC, NSPACES };
enum { LOADED, USED, SUMMED, STORED, NEVENTS };

static const kn_sim_space spaces[] = {
    {.name = "spm", .banks = 8, .interleave = 64, .row = 64, .ports = 1, .pj_byte = 1},
    {.name = "acc", .banks = 1, .interleave = 128, .row = 128, .pj_byte = 2},
};

static const kn_sim_pipe pipes[] = {
    {.name = "in", .queue = 16}, {.name = "out", .queue = 16}, {.name = "matrix", .queue = 16}};

static kn_sim_machine edge(void)
{
    return (kn_sim_machine){.nspaces = NSPACES,
                            .npipes = NPIPES,
                            .spaces = spaces,
                            .pipes = pipes,
                            .dram = {.bandwidth = 20.48,
                                     .latency = 120,
                                     .line = 64,
                                     .grain = 64,
                                     .reads = 64,
                                     .writes = 64,
                                     .pj_byte = 36},
                            .issue = 1,
                            .order = KN_SIM_EVENTS,
                            .events = NEVENTS,
                            .check = true,
                            .idle_pj = 3};
}

static kn_sim_range bytes(int space, int64_t address, int64_t n, bool write)
{
    return (kn_sim_range){space, address, 1, n, n, write, 0};
}

static kn_sim_command load(int64_t from, int64_t to)
{
    return (kn_sim_command){.pipe = IN,
                            .dram = {from, 16, 64, 64, false},
                            .nranges = 1,
                            .ranges = {bytes(SPM, to, 1024, true)}};
}

static kn_sim_command product(int64_t a, int64_t c)
{
    return (kn_sim_command){.pipe = MATRIX,
                            .cycles = 50,
                            .latency = 16,
                            .nranges = 2,
                            .ranges = {bytes(SPM, a, 1024, false), bytes(ACC, c, 1024, true)}};
}

static kn_sim_command store(int64_t c, int64_t to)
{
    return (kn_sim_command){.pipe = OUT,
                            .cycles = 16,
                            .dram = {to, 16, 64, 64, true},
                            .nranges = 1,
                            .ranges = {bytes(ACC, c, 1024, false)}};
}

static kn_sim *create(void **state, const kn_sim_machine *m)
{
    return kn_sim_create(((fixture *)*state)->arena, m);
}

static kn_sim_report finished(kn_sim *s)
{
    kn_sim_report r;
    assert_true(kn_sim_finish(s));
    kn_sim_report_get(s, &r);
    return r;
}

/* ---- DRAM ---- */

/* One bus for both ways: the bandwidth is that of reads and writes together. */
static void test_bandwidth(void **state)
{
    kn_sim_machine m = edge();
    m.order = KN_SIM_INTERLOCK;
    m.check = false;
    kn_sim *s = create(state, &m);
    for (int64_t i = 0; i < 1000; i++) {
        kn_sim_command l = load(i * 1024, i % 8 * 1024), o = store(i % 8 * 1024, (i + 2000) * 1024);
        assert_true(kn_sim_issue(s, &l) && kn_sim_issue(s, &o));
    }
    kn_sim_report r = finished(s);
    double rate = (double)(r.dram_read + r.dram_written) / (double)r.cycles;
    assert_true(rate > 0.98 * 20.48 && rate <= 20.48);
    assert_int_equal(r.dram_read, 1024 * 1000);
    assert_int_equal(r.dram_written, 1024 * 1000);
    assert_int_equal(r.reads, 16 * 1000);
}

/* A row that crosses a line costs both. */
static void test_crossing(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    kn_sim_command l = load(32, 0);
    assert_true(kn_sim_issue(s, &l));
    kn_sim_report r = finished(s);
    assert_int_equal(r.reads, 32);
    assert_int_equal(r.dram_read, 2048);
}

/* Few outstanding requests: outstanding bytes / latency, whatever the bandwidth. */
static void test_outstanding(void **state)
{
    kn_sim_machine m = edge();
    m.dram.reads = 4;
    kn_sim *s = create(state, &m);
    for (int64_t i = 0; i < 100; i++) {
        kn_sim_command l = load(i * 1024, i % 8 * 1024);
        assert_true(kn_sim_issue(s, &l));
    }
    kn_sim_report r = finished(s);
    double round = 1 + 120 + 64 / 20.48, want = 1600 / 4 * round;
    assert_true((double)r.cycles > 0.98 * want && (double)r.cycles < 1.02 * want);
}

static void test_energy(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    kn_sim_command l = load(0, 0), p = product(0, 0);
    p.pj = 500;
    l.nsets = p.nwaits = 1;
    l.sets[0] = p.waits[0] = LOADED;
    assert_true(kn_sim_issue(s, &l) && kn_sim_issue(s, &p));
    kn_sim_report r = finished(s);
    double want = 1024 * 36 + 1024 * 1 + 1024 * 1 + 1024 * 2 + 500 + 3.0 * (double)r.cycles;
    assert_true(r.energy > want - 1e-6 && r.energy < want + 1e-6);
    assert_int_equal(r.local_read, 1024);
    assert_int_equal(r.local_written, 2048);
    assert_int_equal(r.pipes[MATRIX].busy, 50);
    assert_int_equal(r.hazards, 0);
}

/* Two pipes read one bank: each cycle of it is one of theirs. */
static void test_ports(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    for (int pipe = OUT; pipe <= MATRIX; pipe++) {
        kn_sim_command c = {.pipe = pipe, .cycles = 1000, .nranges = 1};
        c.ranges[0] = (kn_sim_range){SPM, 0, 1000, 64, 512, false, 1000};
        assert_true(kn_sim_issue(s, &c));
    }
    kn_sim_report r = finished(s);
    assert_in_range(r.cycles, 2000, 2001);
    assert_in_range(r.port_stalls, 999, 2000);
}

/* ---- Events ---- */

/* Tiles through two buffers: load, product, store, each told when what it needs is there and when
   it may be overwritten. Set `without` (in order of its being done) is left out with its wait; -1:
   none. Returns how many pairs there are. */
static int pipeline(kn_sim *s, int tiles, int without)
{
    int pair = 0;
    for (int64_t t = 0; t < tiles; t++) {
        kn_sim_command c[3] = {load(t * 1024, t % 2 * 1024), product(t % 2 * 1024, t % 2 * 1024),
                               store(t % 2 * 1024, (1000 + t) * 1024)};
        /* who sets, who waits, how many tiles later */
        static const int events[NEVENTS][3] = {{0, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 1, 2}};
        for (int e = 0; e < NEVENTS; e++) {
            const int *v = events[e];
            kn_sim_command *set = &c[v[0]], *wait = &c[v[1]];
            int mine = (int)t * NEVENTS + e, awaited = ((int)t - v[2]) * NEVENTS + e;
            if (t + v[2] < tiles) {
                pair++;
                if (mine != without) {
                    set->sets[set->nsets++] = e;
                }
            }
            if (t >= v[2] && awaited != without) {
                wait->waits[wait->nwaits++] = e;
            }
        }
        for (int i = 0; i < 3; i++) {
            c[i].tag = (uint64_t)(t * 3 + i);
            assert_true(kn_sim_issue(s, &c[i]));
        }
    }
    return pair;
}

static void test_pipeline(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    pipeline(s, 100, -1);
    kn_sim_report r = finished(s);
    assert_int_equal(r.hazards, 0);
    assert_int_equal(r.unchecked, 0);
    assert_int_equal(r.unanswered, 0);
    /* The bus is the bottleneck, but for two buffers and the first and last tile. */
    assert_in_range(r.cycles, 100 * 100, 100 * 160 + 1000);
}

/* Every pair that is left out is noticed, and both commands named. */
static void test_dropped_events(void **state)
{
    enum { TILES = 12 };
    kn_sim_machine m = edge();
    int found = 0;
    for (int without = 0; without < TILES * NEVENTS; without++) {
        int event = without % NEVENTS, tile = without / NEVENTS;
        if ((event == USED || event == STORED) && tile + 2 >= TILES) {
            continue; /* nobody overwrites the last two */
        }
        kn_sim *s = create(state, &m);
        pipeline(s, TILES, without);
        kn_sim_report r = finished(s);
        assert_true(r.hazards > 0);
        static const int setter[] = {0, 1, 1, 2}, waiter[] = {1, 0, 2, 1}, later[] = {0, 2, 0, 2};
        assert_int_equal(r.hazard[0].first, tile * 3 + setter[event]);
        assert_int_equal(r.hazard[0].second, (tile + later[event]) * 3 + waiter[event]);
        assert_int_equal(r.hazard[0].space, event < SUMMED ? SPM : ACC);
        assert_int_equal(r.hazard[0].address, tile % 2 * 1024);
        found++;
    }
    assert_int_equal(found, 4 * TILES - 4);
}

/* A set waits for the acknowledgement of a store before it. */
static void test_set_after_store(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    kn_sim_command o = store(0, 0), set = {.pipe = OUT}, l = load(0, 0);
    set.nsets = l.nwaits = 1;
    set.sets[0] = l.waits[0] = STORED;
    assert_true(kn_sim_issue(s, &o) && kn_sim_issue(s, &set) && kn_sim_issue(s, &l));
    kn_sim_report r = finished(s);
    assert_int_equal(r.hazards, 0);
    assert_true(r.cycles > 2 * 121 + 2 * 16 * 3);
}

/* DRAM counts like any space; a fence orders it. */
static void test_dram_hazard(void **state)
{
    for (int fenced = 0; fenced < 2; fenced++) {
        kn_sim_machine m = edge();
        m.order = KN_SIM_INTERLOCK;
        kn_sim *s = create(state, &m);
        kn_sim_command o = store(0, 4096), l = load(4096 + 960, 4096);
        o.tag = 7;
        l.tag = 9;
        assert_true(kn_sim_issue(s, &o));
        assert_true(!fenced || kn_sim_fence(s));
        assert_true(kn_sim_issue(s, &l));
        kn_sim_report r = finished(s);
        assert_int_equal(r.hazards, fenced ? 0 : 1);
        if (!fenced) {
            assert_int_equal(r.hazard[0].first, 7);
            assert_int_equal(r.hazard[0].second, 9);
            assert_int_equal(r.hazard[0].space, KN_SIM_DRAM);
            assert_int_equal(r.hazard[0].address, 4096 + 960);
        }
    }
}

static void test_deadlock(void **state)
{
    kn_sim_machine m = edge();
    kn_sim *s = create(state, &m);
    kn_sim_command p = product(0, 0);
    p.nwaits = 1;
    p.waits[0] = LOADED;
    assert_true(kn_sim_issue(s, &p));
    assert_false(kn_sim_finish(s));
    kn_sim_report r;
    kn_sim_report_get(s, &r);
    assert_true(r.deadlock);
    p.nwaits = 0;
    int taken = 0;
    while (taken < 100 && kn_sim_issue(s, &p)) {
        taken++;
    }
    assert_int_equal(taken, 15); /* places left */
}

/* ---- Ranges ---- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 16;
}

static kn_sim_range random_range(uint32_t *seed)
{
    int64_t rows = 1 + next_random(seed) % 5, n = 1 + next_random(seed) % 8;
    return (kn_sim_range){SPM, next_random(seed) % 40, rows, n, next_random(seed) % 12, true, 0};
}

static int64_t lowest_shared(const kn_sim_range *a, const kn_sim_range *b)
{
    uint8_t touched[128] = {0};
    for (int64_t i = 0; i < a->rows * a->bytes; i++) {
        touched[a->address + i / a->bytes * a->pitch + i % a->bytes] = 1;
    }
    int64_t lowest = -1;
    for (int64_t i = 0; i < b->rows * b->bytes; i++) {
        int64_t at = b->address + i / b->bytes * b->pitch + i % b->bytes;
        if (touched[at] && (lowest < 0 || at < lowest)) {
            lowest = at;
        }
    }
    return lowest;
}

/* Strided ranges against every byte of them. */
static void test_ranges(void **state)
{
    uint32_t seed = 1;
    kn_sim_machine m = edge();
    m.events = 0;
    kn_arena *scratch = NULL;
    for (int i = 0; i < 3000; i++) {
        if (i % 100 == 0) {
            if (scratch != NULL) {
                kn_arena_destroy(scratch);
            }
            scratch = kn_arena_create(((fixture *)*state)->ctx);
        }
        kn_sim *s = kn_sim_create(scratch, &m);
        kn_sim_command a = {.pipe = IN, .nranges = 1, .ranges = {random_range(&seed)}};
        kn_sim_command b = {.pipe = OUT, .nranges = 1, .ranges = {random_range(&seed)}};
        assert_true(kn_sim_issue(s, &a) && kn_sim_issue(s, &b));
        kn_sim_report r = finished(s);
        int64_t want = lowest_shared(&a.ranges[0], &b.ranges[0]);
        assert_int_equal(r.hazards, want >= 0);
    }
    kn_arena_destroy(scratch);
}

/* ---- The rest ---- */

static void test_memory_is_bounded(void **state)
{
    kn_arena *a = ((fixture *)*state)->arena;
    kn_sim_machine m = edge();
    kn_sim *s = kn_sim_create(a, &m);
    size_t before = kn_arena_bytes(a);
    pipeline(s, 10000, -1);
    assert_int_equal(finished(s).commands, 30000);
    assert_int_equal(kn_arena_bytes(a), before);
}

static void test_same_again(void **state)
{
    kn_sim_machine m = edge();
    kn_sim_report r[2];
    for (int i = 0; i < 2; i++) {
        kn_sim *s = create(state, &m);
        pipeline(s, 500, -1);
        r[i] = finished(s);
    }
    assert_int_equal(r[0].cycles, r[1].cycles);
    assert_memory_equal(&r[0].energy, &r[1].energy, sizeof r[0].energy);
}

typedef struct {
    kn_arena *arena;
    kn_sim_machine m;
} making;

static void make(void *arg)
{
    making *k = arg;
    kn_sim_create(k->arena, &k->m);
}

static void refused(void **state, kn_sim_machine m, const char *why)
{
    fixture *f = *state;
    making k = {f->arena, m};
    assert_int_equal(kn_protect(f->ctx, make, &k), KN_INVALID);
    assert_string_equal(last_message(f->ctx), why);
}

static void test_refused(void **state)
{
    kn_sim_machine m = edge();
    m.dram.grain = 48;
    refused(state, m, "simulated machine: line and grain of DRAM are powers of two");
    m = edge();
    m.dram.bandwidth = 0;
    refused(state, m, "simulated machine: DRAM needs a bandwidth");
    m = edge();
    static const kn_sim_pipe none = {.name = "vector"};
    m.pipes = &none;
    m.npipes = 1;
    refused(state, m, "simulated machine: queue of vector");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        KN_TEST(test_bandwidth),      KN_TEST(test_crossing),
        KN_TEST(test_outstanding),    KN_TEST(test_energy),
        KN_TEST(test_ports),          KN_TEST(test_pipeline),
        KN_TEST(test_dropped_events), KN_TEST(test_set_after_store),
        KN_TEST(test_dram_hazard),    KN_TEST(test_deadlock),
        KN_TEST(test_ranges),         KN_TEST(test_memory_is_bounded),
        KN_TEST(test_same_again),     KN_TEST(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
