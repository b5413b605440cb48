/* Pools of blocks, reports of memory that was not freed, transfers of several pieces, and commands of kernels. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rackloom.h>

#include "checks.h"

enum { PAGE = 4096, THREADS = 4, ROUNDS = 100 };

static const char *PAIR = "name: pair\nshape: {ring: {nodes: 2}}\ntimers: {heartbeat_interval: 2s}\n";

static rackloom_fabric fabric;
static rackloom_node nodes[2];

static rackloom_block_pool blocks_of(rackloom_node node, uint32_t region, uint64_t bytes, uint64_t growth_bytes) {
    rackloom_block_pool pool = 0;
    rackloom_block_pool_options options = {.size = sizeof options,
                                           .region = region,
                                           .key = 9,
                                           .bytes = bytes,
                                           .growth_bytes = growth_bytes,
                                           .reserved_bytes_max = 3 * PAGE};
    OK(rackloom_block_pool_create(node, &options, &pool));
    return pool;
}

static rackloom_block block_of(rackloom_block_pool pool, uint64_t bytes, const char *tag) {
    rackloom_block block = {0};
    OK(rackloom_block_allocate(pool, 0, bytes, 0, tag, &block));
    return block;
}

static rackloom_pool_statistics counters(rackloom_block_pool pool) {
    rackloom_pool_statistics found = {.size = sizeof found};
    OK(rackloom_block_pool_counters(pool, &found));
    return found;
}

/* A block is the target of a peer, and the source of a transfer. */
static void blocks_are_ends_of_operations(void) {
    rackloom_block_pool pool = blocks_of(nodes[1], 10, PAGE, 0);
    rackloom_block blocks[3];
    rackloom_region region, back;
    rackloom_address address;
    uint64_t read = 0;
    for (uint64_t index = 0; index < 3; index++) {
        uint64_t word = 40 + index;
        blocks[index] = block_of(pool, 100, "words");
        TRUE(blocks[index].region == 10 && blocks[index].bytes == 100 && blocks[index].offset % 64 == 0);
        OK(rackloom_block_address(pool, blocks[index], 8, &address));
        TRUE(address.node == 1 && address.offset == blocks[index].offset + 8);
        OK(rackloom_store(nodes[0], address, &word, sizeof word));
    }
    OK(rackloom_block_region(pool, blocks[1], &region));
    rackloom_region_options options = {.size = sizeof options, .region = 11, .key = 7};
    OK(rackloom_region_allocate(nodes[0], &options, 100, &back));
    OK(rackloom_region_address(back, 0, &address));
    rackloom_slice source = {.region = region, .offset = blocks[1].offset, .length = blocks[1].bytes};
    OK(rackloom_put(nodes[1], source, address));
    OK(rackloom_region_read(back, 8, &read, sizeof read));
    TRUE(read == 41);
    rackloom_block aligned = {0};
    OK(rackloom_block_allocate(pool, 0, 1, 1024, "aligned", &aligned));
    TRUE(aligned.offset % 1024 == 0 && aligned.bytes == 1);
    OK(rackloom_region_free(region));
    OK(rackloom_region_free(back));
    for (int index = 0; index < 3; index++) {
        OK(rackloom_block_free(pool, blocks[index]));
    }
    OK(rackloom_block_free(pool, aligned));
    OK(rackloom_block_pool_free(pool));
}

/* A pool grows up to its maximum, and releases regions without a block. Each tenant has a limit. */
static void pools_of_blocks_grow_and_have_limits(void) {
    rackloom_block_pool pool = blocks_of(nodes[0], 20, PAGE, PAGE);
    rackloom_block kept = block_of(pool, PAGE, "kept"), added = block_of(pool, 2 * PAGE, "added"), none;
    uint64_t released = 9, used = 9, high = 9;
    TRUE(kept.region == 20 && added.region == 21);
    rackloom_pool_statistics found = counters(pool);
    TRUE(found.reserved_bytes == 3 * PAGE && found.used_bytes == 3 * PAGE && found.regions == 2);
    CODE(NO_SPACE, rackloom_block_allocate(pool, 0, 1, 0, "none", &none));
    OK(rackloom_block_free(pool, added));
    OK(rackloom_block_pool_trim(pool, 0, &released));
    TRUE(released == 2 * PAGE);
    CODE(INVALID, rackloom_block_free(pool, added));
    found = counters(pool);
    TRUE(found.reserved_bytes == PAGE && found.reserved_bytes_high == 3 * PAGE && found.used_bytes == PAGE);
    TRUE(found.regions == 1 && found.allocations == 2 && found.frees == 1);
    OK(rackloom_block_pool_reset_high(pool));
    TRUE(counters(pool).reserved_bytes_high == PAGE);
    OK(rackloom_block_pool_set_quota(pool, 3, 128));
    OK(rackloom_block_allocate(pool, 3, 65, 0, "tenant", &added));
    CODE(OVER_QUOTA, rackloom_block_allocate(pool, 3, 1, 0, "tenant", &none));
    OK(rackloom_block_pool_usage(pool, 3, &used, &high));
    TRUE(used == 128 && high == 128);
    OK(rackloom_block_free(pool, added));
    OK(rackloom_block_pool_usage(pool, 3, &used, NULL));
    TRUE(used == 0);
    OK(rackloom_block_pool_set_quota(pool, 3, UINT64_MAX));
    OK(rackloom_block_allocate(pool, 3, 1024, 0, "tenant", &added));
    OK(rackloom_block_free(pool, added));
    OK(rackloom_block_free(pool, kept));
    OK(rackloom_block_pool_free(pool));
}

static rackloom_block_pool shared;

/* Allocates and frees. Returns the number of calls that failed. */
static void *allocate_and_free(void *unused) {
    uintptr_t failed = 0;
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        rackloom_block block;
        failed += rackloom_block_allocate(shared, 0, 64 + (uint64_t)round, 0, "thread", &block) != RACKLOOM_ERROR_OK;
        failed += rackloom_block_free(shared, block) != RACKLOOM_ERROR_OK;
    }
    return (void *)failed;
}

static void threads_share_a_pool_of_blocks(void) {
    pthread_t threads[THREADS];
    shared = blocks_of(nodes[0], 25, PAGE, 0);
    for (int index = 0; index < THREADS; index++) {
        if (pthread_create(&threads[index], NULL, allocate_and_free, NULL) != 0) {
            abort();
        }
    }
    for (int index = 0; index < THREADS; index++) {
        void *failed;
        pthread_join(threads[index], &failed);
        TRUE(failed == NULL);
    }
    rackloom_pool_statistics found = counters(shared);
    TRUE(found.allocations == THREADS * ROUNDS && found.frees == THREADS * ROUNDS && found.used_bytes == 0);
    OK(rackloom_block_pool_free(shared));
}

struct report {
    int calls;
    char text[512];
    rackloom_error inner;
};

static void keep_report(const char *leaks, void *context) {
    struct report *report = context;
    uint32_t id;
    report->calls++;
    snprintf(report->text, sizeof report->text, "%s", leaks);
    report->inner = rackloom_node_id(nodes[0], &id);
}

/* Blocks that were not freed are listed, and reported when the pool ends. */
static void blocks_that_were_not_freed_are_reported(void) {
    struct report report = {0}, replaced = {0};
    rackloom_text text;
    const char *json;
    rackloom_block_pool pool = blocks_of(nodes[0], 30, PAGE, 0);
    OK(rackloom_block_pool_on_leak(pool, keep_report, &replaced));
    OK(rackloom_block_pool_on_leak(pool, keep_report, &report));
    rackloom_block freed = block_of(pool, 10, "freed");
    block_of(pool, 100, "a \"lost\" block");
    OK(rackloom_block_free(pool, freed));
    OK(rackloom_block_pool_leaks(pool, &text));
    OK(rackloom_text_data(text, &json, NULL));
    TRUE(strstr(json, "a \\\"lost\\\" block") != NULL && strstr(json, "freed") == NULL);
    TRUE(strstr(json, "\"region\":30") != NULL && strstr(json, "\"offset\":64") != NULL);
    TRUE(strstr(json, "\"bytes\":100") != NULL && strstr(json, "\"tenant\":0") != NULL);
    TRUE(report.calls == 0);
    OK(rackloom_block_pool_free(pool));
    TRUE(report.calls == 1 && replaced.calls == 0 && strcmp(report.text, json) == 0);
    TRUE(report.inner == RACKLOOM_ERROR_IN_CALLBACK);
    OK(rackloom_text_free(text));
    /* Nothing is reported where nothing was lost. */
    pool = blocks_of(nodes[0], 30, PAGE, 0);
    OK(rackloom_block_pool_on_leak(pool, keep_report, &report));
    OK(rackloom_block_pool_free(pool));
    TRUE(report.calls == 1);
}

static rackloom_fabric a_pair(rackloom_node pair[2]) {
    rackloom_fabric made = 0;
    OK(rackloom_fabric_local(PAIR, "leaks.yaml", &made));
    for (uint32_t index = 0; index < 2; index++) {
        OK(rackloom_fabric_node(made, index, &pair[index]));
    }
    return made;
}

/* A node that leaves, and one whose last handle is freed, report the regions that have a handle. */
static void regions_that_were_not_freed_are_reported(void) {
    rackloom_node pair[2];
    rackloom_region regions[2], pooled;
    rackloom_pool_options kept = {.size = sizeof kept};
    rackloom_region_options options = {.size = sizeof options, .region = 1, .key = 7};
    rackloom_pool pool;
    struct report reports[2] = {{0}, {0}};
    rackloom_fabric made = a_pair(pair);
    for (int index = 0; index < 2; index++) {
        OK(rackloom_node_on_leak(pair[index], keep_report, &reports[index]));
        OK(rackloom_region_allocate(pair[index], &options, 77, &regions[index]));
    }
    OK(rackloom_pool_create(pair[0], &kept, &pool));
    options.region = 2;
    OK(rackloom_pool_allocate(pool, &options, 33, "kept", &pooled));
    OK(rackloom_node_leave(pair[0]));
    TRUE(reports[0].calls == 1 && strstr(reports[0].text, "\"bytes\":77"));
    TRUE(strstr(reports[0].text, "\"tag\":\"kept\"") != NULL);
    TRUE(reports[0].inner == RACKLOOM_ERROR_IN_CALLBACK && reports[1].calls == 0);
    OK(rackloom_node_leave(pair[0]));
    TRUE(reports[0].calls == 1); /* once */
    OK(rackloom_region_free(pooled));
    OK(rackloom_pool_free(pool));
    OK(rackloom_fabric_free(made));
    OK(rackloom_node_free(pair[1]));
    TRUE(reports[1].calls == 1 && strstr(reports[1].text, "\"region\":1,") && strstr(reports[1].text, "\"bytes\":77"));
    OK(rackloom_region_free(regions[0]));
    OK(rackloom_region_free(regions[1]));
    OK(rackloom_node_free(pair[0]));
    TRUE(reports[0].calls == 1 && reports[1].calls == 1);
    /* A node without regions reports nothing. */
    struct report nothing = {0};
    made = a_pair(pair);
    OK(rackloom_node_on_leak(pair[0], keep_report, &nothing));
    OK(rackloom_node_leave(pair[0]));
    OK(rackloom_node_free(pair[0]));
    OK(rackloom_node_free(pair[1]));
    OK(rackloom_fabric_free(made));
    TRUE(nothing.calls == 0);
}

/* Waits for the next completion of a queue. */
static rackloom_completion next(rackloom_queue queue) {
    rackloom_completion end = {0};
    OK(rackloom_queue_next(queue, nodes[0], RACKLOOM_FOREVER, &end));
    return end;
}

static void transfers_of_several_pieces_have_one_completion(void) {
    enum { WORDS = 64 };
    rackloom_queue queue;
    rackloom_region here, there, copy;
    rackloom_address address;
    rackloom_completion end;
    uint64_t words[WORDS], found[WORDS] = {0}, number = 0;
    rackloom_region_options options = {.size = sizeof options, .region = 40, .key = 7};
    OK(rackloom_queue_create(4, &queue));
    OK(rackloom_region_allocate(nodes[0], &options, sizeof words, &here));
    OK(rackloom_region_allocate(nodes[1], &options, sizeof words, &there));
    options.region = 41;
    OK(rackloom_region_allocate(nodes[0], &options, sizeof words, &copy));
    for (uint64_t index = 0; index < WORDS; index++) {
        words[index] = 100 + index;
    }
    OK(rackloom_region_write(here, 0, words, sizeof words));
    OK(rackloom_region_address(there, 0, &address));

    /* Two words change places. */
    rackloom_piece pieces[2] = {{{here, 0, 8}, address}, {{here, 8, 8}, address}};
    pieces[0].remote.offset = 8;
    OK(rackloom_vector_submit(nodes[0], RACKLOOM_PUT, pieces, 2, queue, 5, &number));
    end = next(queue);
    TRUE(end.context == 5 && end.error == RACKLOOM_ERROR_OK && end.operation == number);
    OK(rackloom_region_read(there, 0, found, sizeof found));
    TRUE(found[0] == 101 && found[1] == 100 && found[2] == 0);
    pieces[0].local.region = pieces[1].local.region = copy;
    OK(rackloom_vector_submit(nodes[0], RACKLOOM_GET, pieces, 2, queue, 6, NULL));
    end = next(queue);
    TRUE(end.context == 6 && end.error == RACKLOOM_ERROR_OK);
    OK(rackloom_region_read(copy, 0, found, sizeof found));
    TRUE(found[0] == 100 && found[1] == 101 && found[2] == 0);
    OK(rackloom_vector_submit(nodes[0], RACKLOOM_PUT, NULL, 0, queue, 7, NULL));
    TRUE(next(queue).context == 7);
    pieces[1].remote.key = 8;
    OK(rackloom_vector_submit(nodes[0], RACKLOOM_PUT, pieces, 2, queue, 8, NULL));
    end = next(queue);
    TRUE(end.error == RACKLOOM_ERROR_REFUSED && end.reason == RACKLOOM_REASON_BAD_KEY && end.peer == 1);

    /* Each fourth word, next to each other at the peer. */
    rackloom_strided column = {.blocks = 8, .block_bytes = 8, .local_stride = 32, .remote_stride = 8};
    rackloom_slice all = {here, 0, sizeof words};
    OK(rackloom_strided_submit(nodes[0], RACKLOOM_PUT, all, address, &column, queue, 9, NULL));
    TRUE(next(queue).error == RACKLOOM_ERROR_OK);
    OK(rackloom_region_read(there, 0, found, sizeof found));
    TRUE(found[0] == 100 && found[1] == 104 && found[7] == 128 && found[8] == 0);
    rackloom_strided back = {.blocks = 2, .block_bytes = 8, .local_stride = 8, .remote_stride = 16};
    all.region = copy;
    OK(rackloom_strided_submit(nodes[0], RACKLOOM_GET, all, address, &back, queue, 10, NULL));
    TRUE(next(queue).error == RACKLOOM_ERROR_OK);
    OK(rackloom_region_read(copy, 0, found, sizeof found));
    TRUE(found[0] == 100 && found[1] == 108);

    /* The message follows the data. */
    rackloom_slice one = {here, 8, 8}, empty = {there, 0, 0};
    rackloom_operation receive = {.size = sizeof receive, .kind = RACKLOOM_RECEIVE, .local = empty, .tag = 77};
    OK(rackloom_put_with_immediate_submit(nodes[0], one, address, 77, queue, 11, NULL));
    OK(rackloom_operation_wait(nodes[1], &receive, RACKLOOM_FOREVER, &end));
    TRUE(end.tag == 77 && end.value == 0 && end.peer == 0);
    OK(rackloom_region_read(there, 0, found, 8));
    TRUE(found[0] == 101);
    TRUE(next(queue).context == 11);
    OK(rackloom_region_free(here));
    OK(rackloom_region_free(there));
    OK(rackloom_region_free(copy));
    OK(rackloom_queue_free(queue));
}

/* Issues a command in the role of a kernel, and waits for its end. */
static uint32_t run_command(rackloom_command_queue ring, rackloom_command command, uint64_t *value) {
    uint64_t ticket = 0;
    uint32_t status = 99;
    OK(rackloom_command_queue_issue(ring, &command, &ticket));
    rackloom_error error;
    while ((error = rackloom_command_queue_poll(ring, ticket, &status, value)) == RACKLOOM_ERROR_EMPTY) {
        sched_yield();
    }
    TRUE(error == RACKLOOM_ERROR_OK);
    return status;
}

static void commands_of_kernels_are_operations_of_the_node(void) {
    rackloom_node pair[2];
    rackloom_command_queue ring, other;
    rackloom_command_ring addresses = {0};
    rackloom_region regions[2];
    rackloom_region_options options = {
        .size = sizeof options, .region = 50, .key = 7, .device = RACKLOOM_DEVICE_FAKE, .device_number = 1};
    uint64_t value = 9, ticket, losses = 9;
    uint32_t status;
    rackloom_fabric made = a_pair(pair);
    CODE(INVALID, rackloom_command_queue_create(pair[0], 3, &ring));
    for (int index = 0; index < 2; index++) {
        OK(rackloom_region_allocate(pair[index], &options, PAGE, &regions[index]));
    }
    OK(rackloom_command_queue_create(pair[0], 3, &ring));
    OK(rackloom_command_queue_ring(ring, &addresses));
    TRUE(addresses.slots == 4 && addresses.control != 0 && addresses.head != 0);
    TRUE(addresses.replies == addresses.control + 64 && addresses.commands == addresses.replies + 4 * 64);

    rackloom_command command = {.kind = RACKLOOM_COMMAND_STORE,
                                .peer = 1,
                                .region = 50,
                                .flags = RACKLOOM_COMMAND_WIDTH_8,
                                .key = 7,
                                .offset = 64,
                                .operand = 40};
    TRUE(run_command(ring, command, &value) == RACKLOOM_STATUS_DONE);
    command.kind = RACKLOOM_COMMAND_FETCH_ADD;
    command.operand = 2;
    TRUE(run_command(ring, command, &value) == RACKLOOM_STATUS_DONE && value == 40);
    command.kind = RACKLOOM_COMMAND_COMPARE_SWAP;
    command.compare = 42;
    command.operand = 7;
    TRUE(run_command(ring, command, &value) == RACKLOOM_STATUS_DONE && value == 42);
    command.kind = RACKLOOM_COMMAND_SWAP;
    command.operand = 8;
    TRUE(run_command(ring, command, NULL) == RACKLOOM_STATUS_DONE);
    OK(rackloom_region_read(regions[1], 64, &value, sizeof value));
    TRUE(value == 8);
    value = 12345;
    OK(rackloom_region_write(regions[0], 128, &value, sizeof value));
    rackloom_command put = {.kind = RACKLOOM_COMMAND_PUT,
                            .peer = 1,
                            .region = 50,
                            .flags = RACKLOOM_COMMAND_SIGNAL | RACKLOOM_COMMAND_SIGNAL_ADDS,
                            .key = 7,
                            .offset = 256,
                            .local_region = 50,
                            .local_offset = 128,
                            .length = 8,
                            .signal_region = 50,
                            .signal_offset = 64,
                            .signal_key = 7,
                            .signal_value = 3};
    TRUE(run_command(ring, put, NULL) == RACKLOOM_STATUS_DONE);
    OK(rackloom_region_read(regions[1], 256, &value, sizeof value));
    TRUE(value == 12345);
    OK(rackloom_region_read(regions[1], 64, &value, sizeof value));
    TRUE(value == 11);
    put.kind = RACKLOOM_COMMAND_GET;
    put.local_offset = 512;
    put.flags = 0;
    TRUE(run_command(ring, put, NULL) == RACKLOOM_STATUS_DONE);
    OK(rackloom_region_read(regions[0], 512, &value, sizeof value));
    TRUE(value == 12345);
    command.kind = 99;
    TRUE(run_command(ring, command, NULL) == RACKLOOM_STATUS_INVALID);
    command.kind = RACKLOOM_COMMAND_STORE;
    command.key = 8;
    TRUE(run_command(ring, command, NULL) == RACKLOOM_STATUS_REFUSED);

    /* A posted command fails at the next flush. */
    command.flags |= RACKLOOM_COMMAND_POSTED;
    OK(rackloom_command_queue_issue(ring, &command, &ticket));
    rackloom_command flush = {.kind = RACKLOOM_COMMAND_FLUSH, .peer = RACKLOOM_ANY_NODE};
    TRUE(run_command(ring, flush, NULL) == RACKLOOM_STATUS_REFUSED);
    TRUE(run_command(ring, flush, NULL) == RACKLOOM_STATUS_DONE);

    /* Commands whose ends are not taken occupy their slots. */
    uint64_t tickets[4];
    for (int index = 0; index < 4; index++) {
        rackloom_error error;
        /* The slot of the posted command becomes free when the node has taken it. */
        while ((error = rackloom_command_queue_issue(ring, &flush, &tickets[index])) == RACKLOOM_ERROR_BUSY) {
            sched_yield();
        }
        TRUE(error == RACKLOOM_ERROR_OK);
    }
    CODE(BUSY, rackloom_command_queue_issue(ring, &flush, &ticket));
    for (int index = 0; index < 4; index++) {
        while (rackloom_command_queue_poll(ring, tickets[index], &status, NULL) == RACKLOOM_ERROR_EMPTY) {
            sched_yield();
        }
        TRUE(status == RACKLOOM_STATUS_DONE);
    }
    OK(rackloom_command_queue_losses(ring, &losses));
    TRUE(losses == 0);

    /* The ring is closed when its node leaves. */
    OK(rackloom_command_queue_create(pair[0], 1, &other));
    OK(rackloom_command_queue_free(other));
    OK(rackloom_node_leave(pair[0]));
    CODE(CLOSED, rackloom_command_queue_issue(ring, &flush, &ticket));
    OK(rackloom_command_queue_poll(ring, tickets[0], &status, NULL));
    TRUE(status == RACKLOOM_STATUS_CLOSED);
    OK(rackloom_command_queue_free(ring));
    for (int index = 0; index < 2; index++) {
        OK(rackloom_region_free(regions[index]));
        OK(rackloom_node_free(pair[index]));
    }
    OK(rackloom_fabric_free(made));
}

int main(void) {
    fabric = a_pair(nodes);
    if (fabric == 0) {
        fprintf(stderr, "the rack cannot be made\n");
        return 1;
    }
    blocks_are_ends_of_operations();
    pools_of_blocks_grow_and_have_limits();
    threads_share_a_pool_of_blocks();
    blocks_that_were_not_freed_are_reported();
    regions_that_were_not_freed_are_reported();
    transfers_of_several_pieces_have_one_completion();
    commands_of_kernels_are_operations_of_the_node();
    for (int index = 0; index < 2; index++) {
        OK(rackloom_node_free(nodes[index]));
    }
    OK(rackloom_fabric_free(fabric));
    printf("%d checks, %d failed\n", checks, failures);
    return failures > 0;
}
