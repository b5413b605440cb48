/* An all-reduce by hand on a standing rack: the program starts the rack, and a process for each node takes its seat.
 *
 * Each vector has one chunk for each node. In the first n-1 steps a node passes a chunk of partial sums to the next node, which adds its own.
 * Afterwards each chunk is complete on one node, and n-1 more steps pass the complete chunks round. A step is one put with a signal into a slot
 * of its own, so no node writes where another still reads. Afterwards the collective of the library must give the same numbers.
 *
 *     ring_all_reduce RACKLOOM NODES        # RACKLOOM: path of the program `rackloom`
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rackloom.h>

enum { CHUNK = 64, NODES_MAX = 16, STEPS_MAX = 2 * (NODES_MAX - 1) };

/* Memory of each node. All have it under the same number and key. */
struct shared {
    uint64_t arrived[STEPS_MAX];
    float landing[STEPS_MAX][CHUNK];
    float vector[NODES_MAX][CHUNK];
};

#define CHECK(call) check((call), #call)

static void check(rackloom_error error, const char *call) {
    if (error == RACKLOOM_ERROR_OK) {
        return;
    }
    char text[1024] = "";
    rackloom_last_error(text, sizeof text, NULL);
    fprintf(stderr, "%s: %s: %s\n", call, rackloom_error_text(error), text);
    exit(1);
}

/* Passes chunk `passed` to the next node, and returns the chunk that the previous node has passed. */
static const float *step(rackloom_node node, rackloom_region region, struct shared *shared, uint32_t rank, uint32_t nodes,
                         uint32_t number, uint32_t passed) {
    uint64_t landing = offsetof(struct shared, landing) + number * sizeof shared->landing[0];
    uint64_t arrived = offsetof(struct shared, arrived) + number * sizeof shared->arrived[0];
    uint64_t source = offsetof(struct shared, vector) + passed * sizeof shared->vector[0];
    rackloom_address target;
    CHECK(rackloom_region_address(region, landing, &target));
    target.node = (rank + 1) % nodes;
    rackloom_signal signal = {
        .region = target.region, .kind = RACKLOOM_SIGNAL_SET, .offset = arrived, .key = target.key, .value = 1};
    rackloom_slice chunk = {.region = region, .offset = source, .length = sizeof shared->vector[0]};
    CHECK(rackloom_put_with_signal(node, chunk, target, signal));
    CHECK(rackloom_wait_until(node, region, arrived, RACKLOOM_EQUAL, 1, (rank + nodes - 1) % nodes, NULL));
    return shared->landing[number];
}

static void all_reduce(rackloom_node node, rackloom_region region, struct shared *shared, uint32_t rank, uint32_t nodes) {
    for (uint32_t number = 0; number < 2 * (nodes - 1); number++) {
        uint32_t passed = (rank + 2 * nodes - number) % nodes;
        float *own = shared->vector[(passed + nodes - 1) % nodes];
        const float *landed = step(node, region, shared, rank, nodes, number, passed);
        for (int index = 0; index < CHUNK; index++) {
            own[index] = number < nodes - 1 ? own[index] + landed[index] : landed[index];
        }
    }
}

static float number_of(uint32_t rank, uint32_t index) {
    return (float)((rank + 1) * (index % 1000));
}

/* Pipes between the processes: each node closes its end of `done`, and the parent then closes `leave`. */
struct pipes {
    int done[2], leave[2];
};

/* Waits until all nodes are done: others may still need this one, also to forward their frames. */
static void wait_for_all(const struct pipes *pipes) {
    char none;
    close(pipes->done[1]);
    if (read(pipes->leave[0], &none, 1) < 0) {
        perror("a pipe");
    }
}

/* One node, in a process of its own. */
static int run_node(const char *rack, uint32_t rank, uint32_t nodes, const struct pipes *pipes) {
    close(pipes->leave[1]);
    char seat[16];
    snprintf(seat, sizeof seat, "n%" PRIu32, rank);
    rackloom_node node;
    CHECK(rackloom_node_join(rack, seat, &node));
    rackloom_region region;
    rackloom_region_options options = {.size = sizeof options, .region = 1, .key = 0x5eed};
    CHECK(rackloom_region_allocate(node, &options, sizeof(struct shared), &region));
    void *pointer;
    CHECK(rackloom_region_pointer(region, &pointer));
    struct shared *shared = pointer;

    uint32_t members[NODES_MAX];
    float values[NODES_MAX * CHUNK];
    for (uint32_t index = 0; index < nodes * CHUNK; index++) {
        members[index / CHUNK] = index / CHUNK;
        values[index] = number_of(rank, index);
        shared->vector[index / CHUNK][index % CHUNK] = values[index];
    }
    CHECK(rackloom_node_wait_until_reached(node, members, nodes, 30000000000));
    rackloom_group group;
    rackloom_group_options group_options = {
        .size = sizeof group_options, .region = 2, .key = 0x5eed, .join_timeout_ns = 60000000000};
    CHECK(rackloom_group_join(node, &group_options, members, nodes, &group));
    /* All regions exist after the first barrier. */
    CHECK(rackloom_group_barrier(group));

    all_reduce(node, region, shared, rank, nodes);
    CHECK(rackloom_group_all_reduce(group, values, nodes * CHUNK, RACKLOOM_F32, RACKLOOM_SUM));
    int wrong = 0;
    for (uint32_t index = 0; index < nodes * CHUNK; index++) {
        float expected = (float)(nodes * (nodes + 1) / 2) * number_of(0, index);
        wrong += shared->vector[index / CHUNK][index % CHUNK] != expected;
        wrong += values[index] != expected;
    }
    wait_for_all(pipes);
    CHECK(rackloom_group_free(group));
    CHECK(rackloom_region_free(region));
    CHECK(rackloom_node_leave_in_order(node, 10000000000));
    CHECK(rackloom_node_free(node));
    if (wrong > 0) {
        fprintf(stderr, "%s: %d wrong numbers\n", seat, wrong);
        return 1;
    }
    printf("%s: %d numbers are the sum of all nodes\n", seat, (int)nodes * CHUNK);
    fflush(stdout);
    return 0;
}

/* Writes a rack file of `nodes` nodes in a ring. */
static int write_file(char *path, uint32_t nodes, const char *name) {
    int file = mkstemp(path);
    if (file < 0) {
        return -1;
    }
    char text[192];
    // Under a tool that slows programs down, such as valgrind, a node may be silent for longer than usual.
    int length = snprintf(text, sizeof text,
                          "name: %s\nshape: {ring: {nodes: %" PRIu32 "}}\ntimers: {heartbeat_interval: 2s}\n", name,
                          nodes);
    int written = write(file, text, (size_t)length) == length ? 0 : -1;
    close(file);
    return written;
}

int main(int count, char **arguments) {
    uint32_t nodes = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 0;
    if (nodes < 3 || nodes > NODES_MAX) {
        fprintf(stderr, "usage: ring_all_reduce RACKLOOM NODES, with 3 to %d nodes\n", NODES_MAX);
        return 2;
    }
    char name[32], path[] = "/tmp/rackloom-ring-XXXXXX", seats[NODES_MAX][16];
    const char *vacant[NODES_MAX];
    snprintf(name, sizeof name, "ring-%ld", (long)getpid());
    for (uint32_t rank = 0; rank < nodes; rank++) {
        snprintf(seats[rank], sizeof seats[rank], "n%" PRIu32, rank);
        vacant[rank] = seats[rank];
    }
    if (write_file(path, nodes, name) < 0) {
        perror("the rack file");
        return 1;
    }
    rackloom_rack rack;
    rackloom_rack_options options = {.size = sizeof options,
                                     .program = arguments[1],
                                     .file = path,
                                     .wire = "shared-memory",
                                     .vacant = vacant,
                                     .vacant_count = nodes};
    rackloom_error up = rackloom_rack_up(&options, &rack);
    unlink(path);
    check(up, "rackloom_rack_up");

    int failed = 0;
    pid_t children[NODES_MAX];
    struct pipes pipes;
    if (pipe(pipes.done) < 0 || pipe(pipes.leave) < 0) {
        perror("a pipe");
        return 1;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        children[rank] = fork();
        if (children[rank] == 0) {
            _exit(run_node(name, rank, nodes, &pipes));
        }
    }
    /* The end of the pipe comes when all nodes are done, or have failed. */
    char none;
    close(pipes.done[1]);
    failed += read(pipes.done[0], &none, 1) < 0;
    close(pipes.leave[1]);
    /* The rack's supervisor is a child as well, so the program waits for its own children by number. */
    for (uint32_t rank = 0; rank < nodes; rank++) {
        int status;
        failed += waitpid(children[rank], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    CHECK(rackloom_rack_down(rack, NULL));
    CHECK(rackloom_rack_free(rack));
    printf("%" PRIu32 " nodes, %d failed\n", nodes, failed);
    return failed > 0;
}
