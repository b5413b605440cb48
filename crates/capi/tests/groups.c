/* Groups that are made from groups, and collectives in progress: four nodes in one process, a thread for each. */
#include <sched.h>

#include "nodes.h"

enum { COUNT = 1 << 16 };

/* Under valgrind a node may be silent for longer than usual. */
static const char *BOXES = "name: boxes\nshape: {star: {nodes: 4}}\nservers: {a: [n0, n1, n2]}\ntimers: {heartbeat_interval: 2s}\n";

static int64_t sum(rackloom_group group, int64_t value, uint32_t me) {
    OK(rackloom_group_all_reduce(group, &value, 1, RACKLOOM_INT64, RACKLOOM_SUM));
    return value;
}

static void has_members(rackloom_group group, const uint32_t *expected, uint32_t count, uint32_t me) {
    uint32_t size = 0, rank = NODES, members[NODES] = {0};
    OK(rackloom_group_size(group, &size, &rank));
    OK(rackloom_group_members(group, members, NODES));
    TRUE(size == count && rank < size && members[rank] == me);
    for (uint32_t index = 0; index < count; index++) {
        TRUE(members[index] == expected[index]);
    }
}

static void parts(rackloom_group group, uint32_t me) {
    const uint32_t all[] = {0, 1, 2, 3}, even[] = {2, 0}, odd[] = {1}, box[] = {0, 1, 2}, alone[] = {3};
    rackloom_group part = 1, copy, server, plane;
    /* Node 3 joins no part. The others are ordered from the last to the first. */
    OK(rackloom_group_split(group, me == 3 ? RACKLOOM_NO_COLOR : me % 2, 100 - me, &part));
    TRUE((part == 0) == (me == 3));
    if (part != 0) {
        has_members(part, me == 1 ? odd : even, me == 1 ? 1 : 2, me);
        TRUE(sum(part, me, me) == (me == 1 ? 1 : 2));
        OK(rackloom_group_free(part));
    }
    OK(rackloom_group_duplicate(group, &copy));
    has_members(copy, all, NODES, me);
    OK(rackloom_group_split_by_server(group, &server));
    has_members(server, me == 3 ? alone : box, me == 3 ? 1 : 3, me);
    TRUE(sum(server, 1, me) == (me == 3 ? 1 : 3));
    OK(rackloom_group_on_plane(group, 0, &plane));
    has_members(plane, all, NODES, me);
    TRUE(sum(plane, 1, me) == NODES);
    OK(rackloom_group_free(plane));
    OK(rackloom_group_on_plane(group, 7, &plane));
    TRUE(plane == 0);
    TRUE(sum(copy, me, me) == 6);
    OK(rackloom_group_barrier(group));
    OK(rackloom_group_free(server));
    OK(rackloom_group_free(copy));
}

static rackloom_collective sum_of(int64_t *values) {
    return (rackloom_collective){.size = sizeof(rackloom_collective),
                                 .kind = RACKLOOM_ALL_REDUCE,
                                 .element = RACKLOOM_INT64,
                                 .reduction = RACKLOOM_SUM,
                                 .output = values,
                                 .output_count = COUNT};
}

static int64_t *numbers(int64_t first) {
    int64_t *values = malloc(COUNT * sizeof *values);
    if (values == NULL) {
        abort();
    }
    for (int64_t index = 0; index < COUNT; index++) {
        values[index] = first + index;
    }
    return values;
}

/* Begins two collectives on arrays, and returns to them later. */
static void two_at_once(rackloom_group group, uint32_t me) {
    int64_t *values[2];
    rackloom_collective_request started[2];
    for (uint32_t call = 0; call < 2; call++) {
        values[call] = numbers(me * (call + 1));
        rackloom_collective all_reduce = sum_of(values[call]);
        OK(rackloom_collective_start(group, &all_reduce, &started[call]));
    }
    uint32_t has_ended = 0;
    while (!has_ended && rackloom_collective_request_test(started[1], &has_ended) == RACKLOOM_ERROR_OK) {
        sched_yield();
    }
    TRUE(has_ended);
    OK(rackloom_collective_request_wait(started[1], 0));
    OK(rackloom_collective_request_wait(started[0], RACKLOOM_FOREVER));
    for (int64_t call = 0; call < 2; call++) {
        for (int64_t index = 0; index < COUNT; index += 4099) {
            TRUE(values[call][index] == 6 * (call + 1) + NODES * index);
        }
        OK(rackloom_collective_free(started[call]));
        free(values[call]);
    }
}

/* A member that begins early times out, and then gets the result. */
static void an_early_member(rackloom_group group, uint32_t me) {
    rackloom_collective barrier = {.size = sizeof barrier, .kind = RACKLOOM_BARRIER};
    rackloom_collective_request started = 0;
    uint32_t has_ended = 1;
    if (me == 0) {
        OK(rackloom_collective_start(group, &barrier, &started));
        CODE(TIMED_OUT, rackloom_collective_request_wait(started, 1000000));
        OK(rackloom_collective_request_test(started, &has_ended));
        TRUE(!has_ended);
    }
    pthread_barrier_wait(&meeting);
    if (me != 0) {
        OK(rackloom_group_barrier(group));
        return;
    }
    OK(rackloom_collective_request_wait(started, RACKLOOM_FOREVER));
    CODE(CLOSED, rackloom_collective_request_wait(started, 0));
    OK(rackloom_collective_free(started));
}

/* A collective that is freed too early ends for all members, and uses its array no more. */
static void freed_too_early(rackloom_group group, uint32_t me) {
    int64_t *values = numbers(me);
    rackloom_collective all_reduce = sum_of(values);
    if (me == 0) {
        rackloom_collective_request started;
        OK(rackloom_collective_start(group, &all_reduce, &started));
        OK(rackloom_collective_free(started));
        free(values);
        values = numbers(7);
    }
    pthread_barrier_wait(&meeting);
    if (me != 0) {
        CODE(GROUP_BROKEN, rackloom_collective_wait(group, &all_reduce));
    }
    CODE(GROUP_BROKEN, rackloom_group_barrier(group));
    TRUE(me != 0 || (values[0] == 7 && values[COUNT - 1] == 7 + COUNT - 1));
    free(values);
}

static void *run_node(void *argument) {
    uint32_t me = (uint32_t)(uintptr_t)argument;
    rackloom_node node;
    rackloom_group group, copy;
    /* The library names the region of the group. */
    rackloom_group_options options = {.size = sizeof options, .lanes = 2, .join_timeout_ns = 120000000000};
    OK(rackloom_fabric_node(fabric, me, &node));
    OK(rackloom_group_of_rack(node, &options, &group));
    parts(group, me);
    two_at_once(group, me);
    an_early_member(group, me);
    OK(rackloom_group_duplicate(group, &copy));
    freed_too_early(copy, me);
    TRUE(sum(group, 1, me) == NODES);
    pthread_barrier_wait(&meeting);
    OK(rackloom_group_free(copy));
    OK(rackloom_group_free(group));
    OK(rackloom_node_free(node));
    return NULL;
}

int main(void) {
    return run_nodes(BOXES, "boxes.yaml", run_node);
}
