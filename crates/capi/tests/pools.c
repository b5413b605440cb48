/* Pools: memory that is kept for later regions, its counters, the rights of single nodes, and regions that are passed on as bytes.
 *
 * With the argument `cuda`, the pool of a device has memory of the first GPU.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rackloom.h>

#include "checks.h"

enum { PAGE = 4096 };

static const char *SERVER =
    "name: server\nshape: {full-mesh: {nodes: 3}}\nservers: {box: [n0, n1, n2]}\ntimers: {heartbeat_interval: 2s}\n";

static rackloom_fabric fabric;
static rackloom_node nodes[3];

static rackloom_pool_statistics counters(rackloom_pool pool) {
    rackloom_pool_statistics found = {.size = sizeof found};
    OK(rackloom_pool_counters(pool, &found));
    return found;
}

static rackloom_region region_of(rackloom_pool pool, uint32_t number, uint64_t length, const char *tag) {
    rackloom_region region = 0;
    rackloom_region_options options = {.size = sizeof options, .region = number, .key = 7};
    OK(rackloom_pool_allocate(pool, &options, length, tag, &region));
    return region;
}

static rackloom_pool_options settings(rackloom_pool pool) {
    rackloom_pool_options found = {.size = sizeof found};
    OK(rackloom_pool_settings(pool, &found));
    return found;
}

/* Memory of a freed region serves the next one; the threshold says how much stays. */
static void memory_is_kept(void) {
    rackloom_pool pool;
    rackloom_pool_options options = {.size = sizeof options, .release_threshold = 8 * PAGE};
    OK(rackloom_pool_create(nodes[0], &options, &pool));
    TRUE(counters(pool).reserved_bytes == 0);
    rackloom_region first = region_of(pool, 10, PAGE + 1, "weights"), second = region_of(pool, 11, PAGE, "scratch");
    rackloom_pool_statistics found = counters(pool);
    TRUE(found.reserved_bytes == 3 * PAGE && found.used_bytes == 3 * PAGE && found.regions == 2);
    uint64_t word = 5, read = 0, released = 9;
    OK(rackloom_region_write(first, 64, &word, sizeof word));
    OK(rackloom_region_deregister(first));
    found = counters(pool);
    TRUE(found.reserved_bytes == 3 * PAGE && found.used_bytes == PAGE && found.used_bytes_high == 3 * PAGE);
    TRUE(found.allocations == 2 && found.frees == 1);
    first = region_of(pool, 12, 2 * PAGE, "weights");
    OK(rackloom_region_read(first, 64, &read, sizeof read));
    TRUE(read == 5); /* the pages of the first region, which are not cleared */
    TRUE(counters(pool).reserved_bytes == 3 * PAGE);
    OK(rackloom_region_deregister(first));
    OK(rackloom_pool_reset_high(pool));
    found = counters(pool);
    TRUE(found.used_bytes_high == PAGE && found.reserved_bytes_high == 3 * PAGE);
    OK(rackloom_pool_trim(pool, PAGE, &released));
    TRUE(released == 2 * PAGE && counters(pool).reserved_bytes == PAGE);
    OK(rackloom_pool_trim(pool, 0, NULL));
    TRUE(counters(pool).reserved_bytes == PAGE); /* memory in use stays */
    OK(rackloom_pool_set_release_threshold(pool, 0));
    OK(rackloom_region_deregister(second));
    TRUE(counters(pool).reserved_bytes == 0);
    /* The region keeps the pool. */
    first = region_of(pool, 13, PAGE, "last");
    OK(rackloom_pool_free(pool));
    OK(rackloom_region_write(first, 0, &word, sizeof word));
    OK(rackloom_region_deregister(first));
}

static void settings_are_kept(void) {
    rackloom_pool pool;
    rackloom_pool_options options = {.size = sizeof options};
    OK(rackloom_pool_create(nodes[0], &options, &pool));
    TRUE(settings(pool).reuse == RACKLOOM_REUSE_ALL && settings(pool).release_threshold == 0);
    OK(rackloom_pool_set_reuse(pool, RACKLOOM_REUSE_NONE));
    TRUE(settings(pool).reuse == RACKLOOM_REUSE_NONE);
    for (uint32_t policies = 1; policies <= RACKLOOM_REUSE_ALL; policies++) {
        OK(rackloom_pool_set_reuse(pool, policies));
        TRUE(settings(pool).reuse == policies);
    }
    OK(rackloom_pool_set_release_threshold(pool, UINT64_MAX));
    TRUE(settings(pool).release_threshold == UINT64_MAX && settings(pool).device == RACKLOOM_DEVICE_HOST);
    OK(rackloom_pool_free(pool));
}

static void default_and_current_pools(void) {
    rackloom_pool_options options = {.size = sizeof options};
    rackloom_pool by_default, current, made;
    OK(rackloom_pool_default(nodes[1], RACKLOOM_DEVICE_HOST, 0, &by_default));
    OK(rackloom_pool_current(nodes[1], RACKLOOM_DEVICE_HOST, 0, &current));
    OK(rackloom_pool_set_release_threshold(by_default, 12345));
    TRUE(settings(current).release_threshold == 12345); /* one pool */
    OK(rackloom_pool_free(current));
    OK(rackloom_pool_create(nodes[1], &options, &made));
    OK(rackloom_pool_set_current(nodes[1], made));
    CODE(INVALID, rackloom_pool_set_current(nodes[0], made));
    OK(rackloom_pool_current(nodes[1], RACKLOOM_DEVICE_HOST, 0, &current));
    TRUE(settings(current).release_threshold == 0);
    OK(rackloom_pool_free(current));
    OK(rackloom_pool_free(made));
    OK(rackloom_pool_free(by_default));
}

static void a_pool_of_a_device(uint32_t device, uint64_t number) {
    rackloom_pool_options options = {.size = sizeof options, .device = device, .device_number = number};
    rackloom_pool_options other = {.size = sizeof other, .device = RACKLOOM_DEVICE_FAKE, .device_number = 4};
    rackloom_pointer_attributes found = {.size = sizeof found};
    rackloom_pool pool, second;
    uint64_t address, word = 8, read = 0;
    OK(rackloom_pool_create(nodes[2], &options, &pool));
    CODE(INVALID, rackloom_pool_create(nodes[2], &other, &second));
    TRUE(settings(pool).device == device && settings(pool).device_number == number);
    rackloom_region region = region_of(pool, 30, 100, "device");
    OK(rackloom_region_write(region, 8, &word, sizeof word));
    OK(rackloom_region_read(region, 8, &read, sizeof read));
    TRUE(read == 8);
    if (rackloom_region_device_address(region, &address) == RACKLOOM_ERROR_OK) {
        OK(rackloom_node_pointer_attributes(nodes[2], address + 5, &found));
        TRUE(found.device == device && found.device_number == number && found.is_pooled == 1);
        TRUE(found.region == 30 && found.offset == 5);
    }
    uint64_t reserved = counters(pool).reserved_bytes;
    OK(rackloom_pool_set_release_threshold(pool, UINT64_MAX));
    OK(rackloom_region_deregister(region));
    region = region_of(pool, 31, 100, "device");
    TRUE(reserved > 0 && counters(pool).reserved_bytes == reserved);
    OK(rackloom_region_deregister(region));
    OK(rackloom_pool_free(pool));
}

static void addresses_have_attributes(void) {
    rackloom_pool pool;
    rackloom_pool_options options = {.size = sizeof options};
    rackloom_region_options plain = {.size = sizeof plain, .region = 41, .key = 7};
    rackloom_pointer_attributes found = {.size = sizeof found};
    rackloom_region pooled, other;
    void *start;
    rackloom_text text;
    const char *json;
    OK(rackloom_pool_create(nodes[0], &options, &pool));
    pooled = region_of(pool, 40, 100, "a \"tag\"");
    OK(rackloom_region_allocate(nodes[0], &plain, 200, &other));
    OK(rackloom_region_pointer(pooled, &start));
    OK(rackloom_node_pointer_attributes(nodes[0], (uintptr_t)start + 99, &found));
    TRUE(found.region == 40 && found.offset == 99 && found.length == 100 && found.reserved_bytes == PAGE);
    TRUE(found.is_pooled == 1 && found.device == RACKLOOM_DEVICE_HOST);
    CODE(INVALID, rackloom_node_pointer_attributes(nodes[0], (uintptr_t)start + 100, &found));
    CODE(INVALID, rackloom_node_pointer_attributes(nodes[1], (uintptr_t)start, &found));
    OK(rackloom_region_pointer(other, &start));
    OK(rackloom_node_pointer_attributes(nodes[0], (uintptr_t)start, &found));
    TRUE(found.region == 41 && found.offset == 0 && found.length == 200 && found.is_pooled == 0);
    OK(rackloom_node_allocations(nodes[0], &text));
    OK(rackloom_text_data(text, &json, NULL));
    TRUE(strstr(json, "\"region\":40") != NULL && strstr(json, "a \\\"tag\\\"") != NULL);
    TRUE(strstr(json, "\"region\":41") != NULL && strstr(json, "\"bytes\":200") != NULL);
    OK(rackloom_text_free(text));
    OK(rackloom_region_deregister(pooled));
    OK(rackloom_region_deregister(other));
    OK(rackloom_node_allocations(nodes[0], &text));
    OK(rackloom_text_data(text, &json, NULL));
    TRUE(strcmp(json, "[]") == 0);
    OK(rackloom_text_free(text));
    OK(rackloom_pool_free(pool));
}

/* Rights of one node to all regions of a pool, and to one region. */
static void rights_of_single_nodes(void) {
    rackloom_pool pool;
    rackloom_pool_options options = {.size = sizeof options};
    rackloom_address address;
    uint32_t access = 0;
    uint64_t word = 3;
    OK(rackloom_pool_create(nodes[0], &options, &pool));
    rackloom_region region = region_of(pool, 50, 64, "shared");
    OK(rackloom_region_address(region, 0, &address));
    OK(rackloom_pool_access(pool, 1, &access));
    TRUE(access == RACKLOOM_ACCESS_OF_OPTIONS);
    OK(rackloom_store(nodes[1], address, &word, sizeof word));
    OK(rackloom_pool_set_access(pool, 1, RACKLOOM_ACCESS_READ));
    OK(rackloom_pool_access(pool, 1, &access));
    TRUE(access == RACKLOOM_ACCESS_READ);
    CODE(REFUSED, rackloom_store(nodes[1], address, &word, sizeof word));
    OK(rackloom_store(nodes[2], address, &word, sizeof word));
    OK(rackloom_region_access(region, 1, &access));
    TRUE(access == RACKLOOM_ACCESS_READ);
    OK(rackloom_region_set_access(region, 1, RACKLOOM_ACCESS_WRITE | RACKLOOM_ACCESS_READ));
    OK(rackloom_store(nodes[1], address, &word, sizeof word));
    OK(rackloom_region_set_access(region, 2, RACKLOOM_ACCESS_NONE));
    OK(rackloom_region_access(region, 2, &access));
    TRUE(access == RACKLOOM_ACCESS_NONE);
    CODE(REFUSED, rackloom_store(nodes[2], address, &word, sizeof word));
    OK(rackloom_pool_set_access(pool, 1, RACKLOOM_ACCESS_NONE));
    CODE(REFUSED, rackloom_store(nodes[1], address, &word, sizeof word));
    OK(rackloom_pool_set_access(pool, 1, RACKLOOM_ACCESS_OF_OPTIONS));
    OK(rackloom_store(nodes[1], address, &word, sizeof word));
    OK(rackloom_region_deregister(region));
    OK(rackloom_pool_free(pool));
}

/* One node passes a region of its pool to another one as bytes. */
static void regions_are_passed_on(void) {
    rackloom_pool pool;
    rackloom_pool_options options = {.size = sizeof options};
    rackloom_exported_region exported;
    rackloom_address address, known;
    rackloom_peer_region mapped;
    uint64_t length = 0, word = 77, read = 0;
    OK(rackloom_pool_create(nodes[0], &options, &pool));
    rackloom_region region = region_of(pool, 60, 640, "exported");
    OK(rackloom_region_export(region, &exported));
    OK(rackloom_region_address(region, 0, &known));
    OK(rackloom_exported_region_address(&exported, &address, &length));
    TRUE(address.node == 0 && address.region == 60 && address.offset == 0 && address.key == known.key);
    TRUE(length == 640);
    OK(rackloom_peer_region_import(nodes[1], &exported, 30000000000, &mapped));
    OK(rackloom_peer_region_write(mapped, 8, &word, sizeof word));
    OK(rackloom_region_read(region, 8, &read, sizeof read));
    TRUE(read == 77);
    OK(rackloom_peer_region_free(mapped));
    OK(rackloom_region_deregister(region));
    OK(rackloom_pool_free(pool));
}

int main(int count, char **words) {
    if (rackloom_fabric_local(SERVER, "server.yaml", &fabric) != RACKLOOM_ERROR_OK) {
        fprintf(stderr, "the rack cannot be made\n");
        return 1;
    }
    for (uint32_t index = 0; index < 3; index++) {
        OK(rackloom_fabric_node(fabric, index, &nodes[index]));
    }
    memory_is_kept();
    settings_are_kept();
    default_and_current_pools();
    bool has_gpu = count > 1 && strcmp(words[1], "cuda") == 0;
    a_pool_of_a_device(has_gpu ? RACKLOOM_DEVICE_CUDA : RACKLOOM_DEVICE_FAKE, has_gpu ? 0 : 3);
    addresses_have_attributes();
    rights_of_single_nodes();
    regions_are_passed_on();
    for (int index = 0; index < 3; index++) {
        OK(rackloom_node_free(nodes[index]));
    }
    OK(rackloom_fabric_free(fabric));
    printf("%d checks, %d failed\n", checks, failures);
    return failures > 0;
}
