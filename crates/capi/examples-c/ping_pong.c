/* Ping-pong: two nodes in this process write to each other in turn, and the time of a round trip is printed.
 *
 * Each node has a region with a word. Node 0 stores a number in the word of node 1, which waits for it and stores it back.
 *
 *     cc ping_pong.c $(pkg-config --cflags --libs rackloom) -o ping_pong && ./ping_pong 1000
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rackloom.h>

/* Ends the program with the text of a failed call. */
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

static uint64_t now_ns(void) {
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct player {
    rackloom_node node;
    rackloom_region own;
    rackloom_address other;
    uint32_t other_id;
    uint64_t rounds;
};

static void wait_for(const struct player *player, uint64_t value) {
    CHECK(rackloom_wait_until(player->node, player->own, 0, RACKLOOM_EQUAL, value, player->other_id, NULL));
}

static void send_to_other(const struct player *player, uint64_t value) {
    CHECK(rackloom_store(player->node, player->other, &value, sizeof value));
}

static void *answer(void *argument) {
    const struct player *player = argument;
    for (uint64_t round = 1; round <= player->rounds; round++) {
        wait_for(player, round);
        send_to_other(player, round);
    }
    return NULL;
}

static int by_size(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int main(int count, char **arguments) {
    uint64_t rounds = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000;
    if (rounds == 0) {
        fprintf(stderr, "usage: ping_pong [ROUNDS]\n");
        return 2;
    }
    rackloom_fabric fabric;
    CHECK(rackloom_fabric_local("name: pair\nshape: {ring: {nodes: 2}}\n", "pair.yaml", &fabric));
    struct player players[2];
    for (uint32_t index = 0; index < 2; index++) {
        rackloom_region_options options = {.size = sizeof options, .region = 1, .key = 0x5eed};
        players[index] = (struct player){.rounds = rounds};
        CHECK(rackloom_fabric_node(fabric, index, &players[index].node));
        CHECK(rackloom_region_allocate(players[index].node, &options, 64, &players[index].own));
    }
    for (uint32_t index = 0; index < 2; index++) {
        CHECK(rackloom_region_address(players[1 - index].own, 0, &players[index].other));
        CHECK(rackloom_node_id(players[1 - index].node, &players[index].other_id));
    }

    uint64_t *times = calloc(rounds, sizeof *times);
    pthread_t thread;
    if (times == NULL || pthread_create(&thread, NULL, answer, &players[1]) != 0) {
        fprintf(stderr, "no memory or no thread\n");
        return 1;
    }
    for (uint64_t round = 1; round <= rounds; round++) {
        uint64_t begun = now_ns();
        send_to_other(&players[0], round);
        wait_for(&players[0], round);
        times[round - 1] = now_ns() - begun;
    }
    pthread_join(thread, NULL);

    qsort(times, rounds, sizeof *times, by_size);
    printf("%" PRIu64 " round trips of 8 bytes: p50 %.2f us, p99 %.2f us\n", rounds, (double)times[rounds / 2] / 1e3,
           (double)times[rounds * 99 / 100] / 1e3);
    free(times);
    for (int index = 0; index < 2; index++) {
        CHECK(rackloom_region_free(players[index].own));
        CHECK(rackloom_node_free(players[index].node));
    }
    CHECK(rackloom_fabric_free(fabric));
    return 0;
}
