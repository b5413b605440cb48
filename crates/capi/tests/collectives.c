/* Scans, parts of own lengths, arrays in place, reductions of the program, persistent collectives, and groups that choose their algorithms again:
 * four nodes in one process, a thread for each. */
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "nodes.h"

enum { COUNT = 6, RUNS = 20, CALLS_MAX = 480 };

/* Under valgrind a node may be silent for longer than usual. */
static const char *MESH = "name: mesh\nshape: {full-mesh: {nodes: 4}}\ntimers: {heartbeat_interval: 2s}\n";

static rackloom_collective integers(uint32_t kind, const void *input, uint64_t input_count, void *output, uint64_t output_count) {
    return (rackloom_collective){.size = sizeof(rackloom_collective),
                                 .kind = kind,
                                 .element = RACKLOOM_INT64,
                                 .reduction = RACKLOOM_SUM,
                                 .input = input,
                                 .input_count = input_count,
                                 .output = output,
                                 .output_count = output_count};
}

/* Element at `index` of the array of a member. */
static int64_t value_of(int64_t rank, int64_t index) {
    return 100 * rank + index;
}

static void fill(int64_t *values, uint32_t rank, uint64_t count) {
    for (uint64_t index = 0; index < count; index++) {
        values[index] = value_of(rank, (int64_t)index);
    }
}

/* Sum of the elements at `index` of the first `ranks` members. */
static int64_t sum_of(int64_t ranks, int64_t index) {
    return 100 * ranks * (ranks - 1) / 2 + ranks * index;
}

static void scans(rackloom_group group, uint32_t me) {
    int64_t values[COUNT];
    fill(values, me, COUNT);
    rackloom_collective scan = integers(RACKLOOM_SCAN, NULL, 0, values, COUNT);
    OK(rackloom_collective_wait(group, &scan));
    for (int64_t index = 0; index < COUNT; index++) {
        TRUE(values[index] == sum_of(me + 1, index));
    }
    fill(values, me, COUNT);
    scan.kind = RACKLOOM_EXCLUSIVE_SCAN;
    /* A structure of the first version: the fields behind it are not read. */
    scan.size = offsetof(rackloom_collective, custom_reduction);
    scan.in_place = 9;
    OK(rackloom_collective_wait(group, &scan));
    for (int64_t index = 0; index < COUNT; index++) {
        TRUE(values[index] == (me == 0 ? value_of(0, index) : sum_of(me, index)));
    }
}

/* Parts of 2, 0, 3 and 1 elements. */
static const uint64_t counts[NODES] = {2, 0, 3, 1};

static int64_t start_of(uint32_t rank) {
    int64_t start = 0;
    for (uint32_t before = 0; before < rank; before++) {
        start += (int64_t)counts[before];
    }
    return start;
}

static void with_counts(rackloom_collective *collective, const uint64_t *list, uint64_t length) {
    collective->part_counts = list;
    collective->part_counts_length = length;
}

static void is_gathered(const int64_t *all, uint32_t me) {
    for (uint32_t rank = 0; rank < NODES; rank++) {
        for (int64_t index = 0; index < (int64_t)counts[rank]; index++) {
            TRUE(all[start_of(rank) + index] == value_of(rank, index));
        }
    }
}

static void parts_of_own_lengths(rackloom_group group, uint32_t me) {
    int64_t mine[COUNT], all[COUNT] = {0}, part[COUNT] = {0};
    fill(mine, me, COUNT);
    rackloom_collective gather = integers(RACKLOOM_ALL_GATHER, mine, counts[me], all, COUNT);
    with_counts(&gather, counts, NODES);
    OK(rackloom_collective_wait(group, &gather));
    is_gathered(all, me);

    rackloom_collective reduce = integers(RACKLOOM_REDUCE_SCATTER, mine, COUNT, part, counts[me]);
    with_counts(&reduce, counts, NODES);
    OK(rackloom_collective_wait(group, &reduce));
    for (int64_t index = 0; index < (int64_t)counts[me]; index++) {
        TRUE(part[index] == sum_of(NODES, start_of(me) + index));
    }
    TRUE(part[counts[me]] == 0);

    memset(all, 0, sizeof all);
    gather = integers(RACKLOOM_GATHER, mine, counts[me], all, me == 2 ? COUNT : 0);
    gather.root = 2;
    with_counts(&gather, counts, NODES);
    OK(rackloom_collective_wait(group, &gather));
    if (me == 2) {
        is_gathered(all, me);
    }
    rackloom_collective scatter = integers(RACKLOOM_SCATTER, mine, me == 2 ? COUNT : 0, part, counts[me]);
    scatter.root = 2;
    with_counts(&scatter, counts, NODES);
    OK(rackloom_collective_wait(group, &scatter));
    for (int64_t index = 0; index < (int64_t)counts[me]; index++) {
        TRUE(part[index] == value_of(2, start_of(me) + index));
    }
}

/* Rank s sends (s + r) % 3 elements to rank r: 100 s + r. */
static void all_to_all_with_own_lengths(rackloom_group group, uint32_t me) {
    uint64_t list[NODES * NODES], sent = 0, received = 0;
    int64_t input[2 * NODES], output[2 * NODES];
    for (uint32_t from = 0; from < NODES; from++) {
        for (uint32_t to = 0; to < NODES; to++) {
            list[from * NODES + to] = (from + to) % 3;
        }
    }
    for (uint32_t rank = 0; rank < NODES; rank++) {
        for (uint32_t index = 0; index < (me + rank) % 3; index++) {
            input[sent++] = value_of(me, rank);
        }
        received += (me + rank) % 3;
    }
    rackloom_collective exchange = integers(RACKLOOM_ALL_TO_ALL, input, sent, output, received);
    with_counts(&exchange, list, NODES * NODES);
    OK(rackloom_collective_wait(group, &exchange));
    uint64_t at = 0;
    for (uint32_t rank = 0; rank < NODES; rank++) {
        for (uint32_t index = 0; index < (me + rank) % 3; index++) {
            TRUE(output[at++] == value_of(rank, me));
        }
    }
    TRUE(at == received);
}

/* Parts of two elements in one array. */
static void in_place(rackloom_group group, uint32_t me) {
    enum { PART = 2, ALL = PART * NODES };
    int64_t values[ALL];
    rackloom_collective collective = integers(RACKLOOM_ALL_GATHER, NULL, 0, values, ALL);
    collective.in_place = 1;
    fill(values, me, ALL);
    OK(rackloom_collective_wait(group, &collective));
    for (int64_t index = 0; index < ALL; index++) {
        TRUE(values[index] == value_of(index / PART, index));
    }
    fill(values, me, ALL);
    collective.kind = RACKLOOM_REDUCE_SCATTER;
    OK(rackloom_collective_wait(group, &collective));
    for (int64_t index = 0; index < ALL; index++) {
        TRUE(values[index] == (index / PART == me ? sum_of(NODES, index) : value_of(me, index)));
    }
    fill(values, me, ALL);
    collective.kind = RACKLOOM_ALL_TO_ALL;
    OK(rackloom_collective_wait(group, &collective));
    for (int64_t index = 0; index < ALL; index++) {
        TRUE(values[index] == value_of(index / PART, PART * me + index % PART));
    }
    collective.kind = RACKLOOM_GATHER;
    collective.root = 1;
    collective.output_count = me == 1 ? ALL : PART;
    fill(values, me, ALL);
    OK(rackloom_collective_wait(group, &collective));
    for (int64_t index = 0; me == 1 && index < ALL; index++) {
        TRUE(values[index] == value_of(index / PART, index / PART == 1 ? index : index % PART));
    }
    collective.kind = RACKLOOM_SCATTER;
    fill(values, me, ALL);
    OK(rackloom_collective_wait(group, &collective));
    for (int64_t index = 0; index < PART; index++) {
        TRUE(values[index] == (me == 1 ? value_of(1, index) : value_of(1, PART * me + index)));
    }
}

struct found {
    int64_t value;
    uint32_t node, unused;
};

/* Counts calls in its context, and keeps the larger value with its node. */
static void keep_larger(void *left, const void *right, uint64_t count, void *context) {
    struct found *kept = left;
    const struct found *other = right;
    for (uint64_t index = 0; index < count; index++) {
        if (other[index].value > kept[index].value) {
            kept[index] = other[index];
        }
    }
    atomic_fetch_add((atomic_int *)context, 1);
}

/* x -> factor x + term. Composition is associative, and not commutative. */
struct map {
    uint64_t factor, term;
};

static struct map after(struct map first, struct map second) {
    return (struct map){second.factor * first.factor, second.factor * first.term + second.term};
}

static struct map map_of(uint64_t rank) {
    return (struct map){rank + 2, 3 * rank + 1};
}

static void compose(void *left, const void *right, uint64_t count, void *context) {
    (void)context;
    struct map *first = left;
    const struct map *second = right;
    for (uint64_t index = 0; index < count; index++) {
        first[index] = after(first[index], second[index]);
    }
}

static void calls_the_library(void *left, const void *right, uint64_t count, void *context) {
    (void)left, (void)right, (void)count;
    atomic_store((atomic_int *)context, rackloom_group_barrier(0));
}

static rackloom_collective custom(uint32_t kind, rackloom_reduction reduction, void *output, uint64_t count) {
    return (rackloom_collective){.size = sizeof(rackloom_collective),
                                 .kind = kind,
                                 .output = output,
                                 .output_count = count,
                                 .custom_reduction = reduction};
}

static void commutative_reduction(rackloom_group group, uint32_t me) {
    static atomic_int calls;
    rackloom_reduction larger;
    OK(rackloom_reduction_create(keep_larger, &calls, sizeof(struct found), RACKLOOM_COMMUTATIVE, &larger));
    struct found found[COUNT];
    for (uint32_t index = 0; index < COUNT; index++) {
        found[index] = (struct found){index % NODES == me ? 50 : me, me, 0};
    }
    rackloom_collective all_reduce = custom(RACKLOOM_ALL_REDUCE, larger, found, COUNT);
    rackloom_collective_request started;
    OK(rackloom_collective_start(group, &all_reduce, &started));
    /* The collective keeps the function. */
    OK(rackloom_reduction_free(larger));
    OK(rackloom_collective_request_wait(started, RACKLOOM_FOREVER));
    OK(rackloom_collective_free(started));
    for (uint32_t index = 0; index < COUNT; index++) {
        TRUE(found[index].value == 50 && found[index].node == index % NODES);
    }
    TRUE(calls > 0);
    CODE(FREED_HANDLE, rackloom_collective_wait(group, &all_reduce));
}

static void ordered_reduction(rackloom_group group, uint32_t me) {
    rackloom_reduction composed;
    OK(rackloom_reduction_create(compose, NULL, sizeof(struct map), RACKLOOM_ORDERED, &composed));
    struct map up_to = map_of(0), all = map_of(0);
    for (uint32_t rank = 1; rank < NODES; rank++) {
        all = after(all, map_of(rank));
        up_to = rank <= me ? after(up_to, map_of(rank)) : up_to;
    }
    struct map values[COUNT], input[COUNT], part[COUNT];
    for (int index = 0; index < COUNT; index++) {
        values[index] = input[index] = map_of(me);
    }
    rackloom_collective collective = custom(RACKLOOM_ALL_REDUCE, composed, values, COUNT);
    OK(rackloom_collective_wait(group, &collective));
    TRUE(memcmp(&values[0], &all, sizeof all) == 0 && memcmp(&values[COUNT - 1], &all, sizeof all) == 0);
    memcpy(values, input, sizeof values);
    collective.kind = RACKLOOM_SCAN;
    OK(rackloom_collective_wait(group, &collective));
    TRUE(memcmp(&values[0], &up_to, sizeof all) == 0 && memcmp(&values[COUNT - 1], &up_to, sizeof all) == 0);
    collective = custom(RACKLOOM_REDUCE_SCATTER, composed, part, counts[me]);
    collective.input = input;
    collective.input_count = COUNT;
    with_counts(&collective, counts, NODES);
    OK(rackloom_collective_wait(group, &collective));
    for (uint64_t index = 0; index < counts[me]; index++) {
        TRUE(memcmp(&part[index], &all, sizeof all) == 0);
    }
    OK(rackloom_reduction_free(composed));
}

/* Every size of elements that the library knows: each byte of the result is the exclusive or of those of the members. */
static void combine_bytes(void *left, const void *right, uint64_t count, void *context) {
    uint64_t bytes = count * *(const uint64_t *)context;
    for (uint64_t index = 0; index < bytes; index++) {
        ((uint8_t *)left)[index] ^= ((const uint8_t *)right)[index];
    }
}

static void elements_of_each_size(rackloom_group group, uint32_t me) {
    const uint64_t sizes[] = {1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64, 128};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        _Alignas(8) uint8_t values[3 * 128];
        uint64_t bytes = 3 * sizes[index];
        rackloom_reduction reduction;
        for (uint64_t at = 0; at < bytes; at++) {
            values[at] = (uint8_t)(me * 37 + at);
        }
        OK(rackloom_reduction_create(combine_bytes, (void *)&sizes[index], sizes[index], RACKLOOM_COMMUTATIVE, &reduction));
        rackloom_collective all_reduce = custom(RACKLOOM_ALL_REDUCE, reduction, values, 3);
        OK(rackloom_collective_wait(group, &all_reduce));
        for (uint64_t at = 0; at < bytes; at++) {
            uint8_t expected = 0;
            for (uint32_t rank = 0; rank < NODES; rank++) {
                expected ^= (uint8_t)(rank * 37 + at);
            }
            TRUE(values[at] == expected);
        }
        OK(rackloom_reduction_free(reduction));
    }
}

/* A call of the library from a reduction fails, and the collective goes on. */
static void a_reduction_calls_the_library(rackloom_group group, uint32_t me) {
    atomic_int found = -1;
    uint64_t value = me;
    rackloom_reduction reduction;
    OK(rackloom_reduction_create(calls_the_library, &found, sizeof value, RACKLOOM_ORDERED, &reduction));
    rackloom_collective scan = custom(RACKLOOM_SCAN, reduction, &value, 1);
    OK(rackloom_collective_wait(group, &scan));
    OK(rackloom_group_barrier(group));
    TRUE(me == 0 || found == RACKLOOM_ERROR_IN_CALLBACK);
    OK(rackloom_reduction_free(reduction));
}

static void persistent(rackloom_node node, rackloom_group group, uint32_t me) {
    rackloom_region_options options = {.size = sizeof options, .region = 500, .key = 9};
    rackloom_region region;
    rackloom_queue queue;
    rackloom_persistent sum;
    int64_t values[COUNT];
    OK(rackloom_region_allocate(node, &options, sizeof values, &region));
    OK(rackloom_queue_create(4, &queue));
    rackloom_collective all_reduce = {.size = sizeof all_reduce,
                                      .kind = RACKLOOM_ALL_REDUCE,
                                      .element = RACKLOOM_INT64,
                                      .reduction = RACKLOOM_SUM,
                                      .output_slice = {.region = region, .offset = 0, .length = sizeof values}};
    OK(rackloom_persistent_create(group, &all_reduce, &sum));
    for (int64_t run = 0; run < RUNS; run++) {
        for (int64_t index = 0; index < COUNT; index++) {
            values[index] = value_of(me, run + index);
        }
        OK(rackloom_region_write(region, 0, values, sizeof values));
        rackloom_completion completion;
        rackloom_collective_request started;
        if (run % 3 == 0) {
            OK(rackloom_persistent_start(sum, &started));
            OK(rackloom_collective_request_wait(started, RACKLOOM_FOREVER));
            OK(rackloom_collective_free(started));
        } else if (run % 3 == 1) {
            OK(rackloom_persistent_wait(sum));
        } else {
            OK(rackloom_persistent_submit(sum, queue, (uint64_t)run));
            OK(rackloom_queue_next(queue, node, RACKLOOM_FOREVER, &completion));
            TRUE(completion.error == RACKLOOM_ERROR_OK && completion.context == (uint64_t)run);
        }
        OK(rackloom_region_read(region, 0, values, sizeof values));
        for (int64_t index = 0; index < COUNT; index++) {
            TRUE(values[index] == sum_of(NODES, run + index));
        }
    }
    OK(rackloom_persistent_free(sum));
    OK(rackloom_queue_free(queue));
    OK(rackloom_region_free(region));
}

/* Member 1 becomes slow after some calls, until the group has tried its algorithms. All members see the trial after the same call. */
static void adaptive(rackloom_node node, uint32_t me) {
    rackloom_group_options options = {
        .size = sizeof options, .region = 600, .key = 7, .join_timeout_ns = 120000000000, .adaptive = 1};
    rackloom_group group;
    rackloom_rechoice known[64];
    uint64_t count = 0, calls = 0;
    int64_t mine[COUNT], all[COUNT * NODES];
    OK(rackloom_group_of_rack(node, &options, &group));
    fill(mine, me, COUNT);
    for (; count == 0 && calls < CALLS_MAX; calls++) {
        if (me == 1 && calls >= 32) {
            nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
        }
        rackloom_collective gather = integers(RACKLOOM_ALL_GATHER, mine, COUNT, all, COUNT * NODES);
        OK(rackloom_collective_wait(group, &gather));
        for (uint32_t rank = 0; rank < NODES; rank++) {
            TRUE(all[rank * COUNT + 1] == value_of(rank, 1));
        }
        OK(rackloom_group_rechoices(group, known, 64, &count));
    }
    TRUE(count == 1);
    if (count > 0) {
        const rackloom_rechoice *trial = &known[0];
        TRUE(trial->collective == RACKLOOM_ALL_GATHER && trial->lane == 0 && trial->bytes == sizeof all);
        TRUE(trial->cause == RACKLOOM_CAUSE_DEVIATED && trial->now_ns != trial->reference_ns);
        TRUE(trial->calls == calls);
        TRUE(trial->candidate_count > 1 && trial->candidate_count <= RACKLOOM_CANDIDATES_MAX);
        for (uint32_t index = 0; index < trial->candidate_count; index++) {
            const rackloom_candidate *candidate = &trial->candidates[index];
            TRUE(candidate->algorithm != RACKLOOM_ALGORITHM_AUTOMATIC && candidate->time_ns > 0);
            TRUE(index == 0 || candidate->time_ns >= trial->candidates[index - 1].time_ns);
        }
    }
    OK(rackloom_group_rechoices(group, NULL, 0, &count));
    TRUE(count == 0);
    OK(rackloom_group_barrier(group));
    OK(rackloom_group_free(group));
}

static void *run_node(void *argument) {
    uint32_t me = (uint32_t)(uintptr_t)argument;
    rackloom_node node;
    rackloom_group group;
    rackloom_group_options options = {.size = sizeof options, .join_timeout_ns = 120000000000};
    OK(rackloom_fabric_node(fabric, me, &node));
    OK(rackloom_group_of_rack(node, &options, &group));
    scans(group, me);
    parts_of_own_lengths(group, me);
    all_to_all_with_own_lengths(group, me);
    in_place(group, me);
    commutative_reduction(group, me);
    ordered_reduction(group, me);
    elements_of_each_size(group, me);
    a_reduction_calls_the_library(group, me);
    persistent(node, group, me);
    adaptive(node, me);
    OK(rackloom_group_barrier(group));
    pthread_barrier_wait(&meeting);
    OK(rackloom_group_free(group));
    OK(rackloom_node_free(node));
    return NULL;
}

int main(void) {
    return run_nodes(MESH, "mesh.yaml", run_node);
}
