/* Misuse of every function: null, 0, freed handles, handles of other kinds, sizes and constants without a meaning, objects that another
 * thread is using. Each must be an error code. The test `c_library` requires that each function of the header is called here.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rackloom.h>

static int failures = 0, checks = 0;

static void expect(rackloom_error found, rackloom_error expected, const char *call, int line) {
    checks++;
    if (found != expected) {
        char text[512] = "";
        rackloom_last_error(text, sizeof text, NULL);
        fprintf(stderr, "line %d: %s: %d (%s), expected %d (%s); last error: %s\n", line, call, (int)found,
                rackloom_error_text(found), (int)expected, rackloom_error_text(expected), text);
        failures++;
    }
}

#define EXPECT(code, call) expect((call), RACKLOOM_ERROR_##code, #call, __LINE__)
#define OK(call) EXPECT(OK, call)

struct bad_handle {
    uint64_t handle;
    rackloom_error expected;
};

enum {
    FABRIC,
    NODE,
    REGION,
    PEER_REGION,
    PENDING,
    QUEUE,
    DRIVER,
    GROUP,
    COLLECTIVE,
    TEXT,
    REDUCTION,
    PERSISTENT,
    POOL,
    BLOCK_POOL,
    RING,
    KINDS
};

/* A freed handle of each kind, and a live one. */
static uint64_t freed[KINDS], live[KINDS];

/* Fills the handles that are wrong for a kind. */
static void bad_handles(int kind, struct bad_handle bad[4]) {
    bad[0] = (struct bad_handle){0, RACKLOOM_ERROR_BAD_HANDLE};
    bad[1] = (struct bad_handle){freed[kind], RACKLOOM_ERROR_FREED_HANDLE};
    bad[2] = (struct bad_handle){live[kind == TEXT ? QUEUE : TEXT], RACKLOOM_ERROR_WRONG_HANDLE_KIND};
    bad[3] = (struct bad_handle){live[kind] + 100000, RACKLOOM_ERROR_BAD_HANDLE};
}

/* Calls with `h` as each wrong handle. */
#define BAD_HANDLES(kind, call)                                             \
    do {                                                                    \
        struct bad_handle bad_list[4];                                      \
        bad_handles(kind, bad_list);                                        \
        for (int bad_index = 0; bad_index < 4; bad_index++) {               \
            uint64_t h = bad_list[bad_index].handle;                        \
            expect((call), bad_list[bad_index].expected, #call, __LINE__);  \
        }                                                                   \
    } while (0)

static const char *PAIR = "name: pair\nshape: {ring: {nodes: 2}}\nservers: {box: [n0, n1]}\n";

static rackloom_fabric fabric;
static rackloom_node first, second;
static rackloom_region own, theirs, on_device;
static rackloom_address target;
static rackloom_slice slice;
static rackloom_queue queue;

static rackloom_operation operation(uint32_t kind) {
    return (rackloom_operation){.size = sizeof(rackloom_operation), .kind = kind, .target = target, .local = slice};
}

static rackloom_region_options region_options(uint32_t region) {
    return (rackloom_region_options){.size = sizeof(rackloom_region_options), .region = region, .key = 7};
}

static void set_up(void) {
    OK(rackloom_fabric_local(PAIR, "pair.yaml", &fabric));
    OK(rackloom_fabric_node(fabric, 0, &first));
    OK(rackloom_fabric_node(fabric, 1, &second));
    rackloom_region_options options = region_options(1);
    OK(rackloom_region_allocate(first, &options, 4096, &own));
    OK(rackloom_region_allocate(second, &options, 4096, &theirs));
    OK(rackloom_region_address(theirs, 0, &target));
    OK(rackloom_queue_create(4, &queue));
    options = region_options(45);
    options.device = RACKLOOM_DEVICE_FAKE;
    options.device_number = 1;
    OK(rackloom_region_allocate(first, &options, 4096, &on_device));
    slice = (rackloom_slice){.region = own, .offset = 0, .length = 64};
}

static void reduce_nothing(void *left, const void *right, uint64_t count, void *context) {
    (void)left, (void)right, (void)count, (void)context;
}

/* All-reduce on a slice of the first node. */
static rackloom_collective on_slice(void) {
    return (rackloom_collective){.size = sizeof(rackloom_collective),
                                 .kind = RACKLOOM_ALL_REDUCE,
                                 .element = RACKLOOM_INT64,
                                 .reduction = RACKLOOM_SUM,
                                 .output_slice = slice};
}

/* Makes one handle of each kind to keep, and one to free. */
static void fill_handles(void) {
    rackloom_operation wait = operation(RACKLOOM_WAIT_UNTIL);
    wait.condition = RACKLOOM_EQUAL;
    wait.operand = 1;
    wait.peer = 1;
    uint32_t members[2] = {0, 1};
    for (int round = 0; round < 2; round++) {
        uint64_t *into = round == 0 ? freed : live;
        rackloom_region_options options = region_options(50 + (uint32_t)round);
        rackloom_group_options group = {
            .size = sizeof group, .region = 60 + (uint32_t)round, .key = 7, .join_timeout_ns = 600000000000};
        rackloom_collective barrier = {.size = sizeof barrier, .kind = RACKLOOM_BARRIER};
        OK(rackloom_fabric_local(PAIR, "pair.yaml", &into[FABRIC]));
        OK(rackloom_fabric_node(fabric, 0, &into[NODE]));
        OK(rackloom_region_allocate(first, &options, 64, &into[REGION]));
        OK(rackloom_peer_region_map(first, target, 30000000000, &into[PEER_REGION]));
        OK(rackloom_operation_start(first, &wait, &into[PENDING]));
        OK(rackloom_queue_create(1, &into[QUEUE]));
        OK(rackloom_driver_begin(round == 0 ? first : second, &into[DRIVER]));
        OK(rackloom_group_join(first, &group, members, 2, &into[GROUP]));
        OK(rackloom_collective_start(into[GROUP], &barrier, &into[COLLECTIVE]));
        OK(rackloom_node_waiting_for(first, &into[TEXT]));
        rackloom_collective all_reduce = on_slice();
        OK(rackloom_reduction_create(reduce_nothing, NULL, 8, RACKLOOM_ORDERED, &into[REDUCTION]));
        OK(rackloom_persistent_create(into[GROUP], &all_reduce, &into[PERSISTENT]));
        rackloom_pool_options pool = {.size = sizeof pool};
        OK(rackloom_pool_create(first, &pool, &into[POOL]));
        rackloom_block_pool_options blocks = {
            .size = sizeof blocks, .region = 40 + (uint32_t)round, .key = 7, .bytes = 4096};
        OK(rackloom_block_pool_create(first, &blocks, &into[BLOCK_POOL]));
    }
    OK(rackloom_block_pool_free(freed[BLOCK_POOL]));
    OK(rackloom_pool_free(freed[POOL]));
    OK(rackloom_persistent_free(freed[PERSISTENT]));
    OK(rackloom_reduction_free(freed[REDUCTION]));
    OK(rackloom_text_free(freed[TEXT]));
    OK(rackloom_collective_free(freed[COLLECTIVE]));
    OK(rackloom_group_free(freed[GROUP]));
    OK(rackloom_driver_free(freed[DRIVER]));
    OK(rackloom_queue_free(freed[QUEUE]));
    OK(rackloom_pending_free(freed[PENDING]));
    OK(rackloom_peer_region_free(freed[PEER_REGION]));
    OK(rackloom_region_free(freed[REGION]));
    OK(rackloom_node_free(freed[NODE]));
    OK(rackloom_fabric_free(freed[FABRIC]));
}

static void library(void) {
    if (rackloom_abi_version() != RACKLOOM_ABI_VERSION || strlen(rackloom_version()) == 0) {
        fprintf(stderr, "the versions differ\n");
        failures++;
    }
    if (strcmp(rackloom_error_text(-5), rackloom_error_text(12345)) != 0 || strlen(rackloom_error_text(0)) == 0) {
        fprintf(stderr, "unknown codes have no common text\n");
        failures++;
    }
    char small[4];
    size_t length = 0;
    EXPECT(NULL_POINTER, rackloom_fabric_local(NULL, "x", &fabric));
    EXPECT(BUFFER_TOO_SMALL, rackloom_last_error(small, sizeof small, &length));
    EXPECT(BUFFER_TOO_SMALL, rackloom_last_error(NULL, 0, &length));
    EXPECT(NULL_POINTER, rackloom_last_error(NULL, 10, &length));
    rackloom_failure failure = {.size = 4};
    EXPECT(BAD_SIZE, rackloom_last_failure(&failure));
    EXPECT(NULL_POINTER, rackloom_last_failure(NULL));
    failure.size = sizeof failure;
    EXPECT(NO_SUCH_NODE, rackloom_fabric_node(fabric, 9, &first));
    OK(rackloom_last_failure(&failure));
    if (failure.error != RACKLOOM_ERROR_NO_SUCH_NODE || failure.peer != RACKLOOM_ANY_NODE || length < 4) {
        fprintf(stderr, "the last failure is wrong: %d\n", (int)failure.error);
        failures++;
    }
    const char *data;
    BAD_HANDLES(TEXT, rackloom_text_data(h, &data, &length));
    EXPECT(NULL_POINTER, rackloom_text_data(live[TEXT], NULL, &length));
    BAD_HANDLES(TEXT, rackloom_text_free(h));
}

static void fabrics(void) {
    rackloom_fabric made;
    rackloom_node node;
    uint32_t count;
    EXPECT(NULL_POINTER, rackloom_fabric_local(PAIR, NULL, &made));
    EXPECT(NULL_POINTER, rackloom_fabric_local(PAIR, "x", NULL));
    EXPECT(BAD_INPUT, rackloom_fabric_local("shape: [", "broken.yaml", &made));
    EXPECT(BAD_ARGUMENT, rackloom_fabric_local("\xff\xfe", "no-text.yaml", &made));
    BAD_HANDLES(FABRIC, rackloom_fabric_node_count(h, &count));
    EXPECT(NULL_POINTER, rackloom_fabric_node_count(fabric, NULL));
    BAD_HANDLES(FABRIC, rackloom_fabric_node(h, 0, &node));
    EXPECT(NULL_POINTER, rackloom_fabric_node(fabric, 0, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_fabric_node(fabric, 2, &node));
    BAD_HANDLES(FABRIC, rackloom_fabric_free(h));
}

static void racks(const char *program) {
    rackloom_rack rack;
    rackloom_text text;
    char name[16];
    uint64_t events;
    rackloom_rack_options options = {.size = sizeof options, .program = program};
    EXPECT(NULL_POINTER, rackloom_rack_up(NULL, &rack));
    EXPECT(NULL_POINTER, rackloom_rack_up(&options, NULL));
    EXPECT(NULL_POINTER, rackloom_rack_up(&options, &rack));
    options.file = "/nowhere/rack.yaml";
    EXPECT(BAD_INPUT, rackloom_rack_up(&options, &rack));
    options.wire = "string";
    EXPECT(BAD_ARGUMENT, rackloom_rack_up(&options, &rack));
    options.wire = NULL;
    options.vacant_count = 1;
    EXPECT(NULL_POINTER, rackloom_rack_up(&options, &rack));
    options.vacant_count = UINT64_MAX;
    EXPECT(BAD_ARGUMENT, rackloom_rack_up(&options, &rack));
    options.size = 8;
    EXPECT(BAD_SIZE, rackloom_rack_up(&options, &rack));
    EXPECT(BAD_INPUT, rackloom_rack_connect("no-such-rack", &rack));
    EXPECT(BAD_INPUT, rackloom_rack_connect("../escape", &rack));
    EXPECT(NULL_POINTER, rackloom_rack_connect(NULL, &rack));
    EXPECT(NULL_POINTER, rackloom_rack_connect("x", NULL));
    EXPECT(NULL_POINTER, rackloom_rack_names(NULL));
    OK(rackloom_rack_names(&text));
    OK(rackloom_text_free(text));
    uint64_t wrong[2] = {0, live[QUEUE]};
    rackloom_error expected[2] = {RACKLOOM_ERROR_BAD_HANDLE, RACKLOOM_ERROR_WRONG_HANDLE_KIND};
    for (int index = 0; index < 2; index++) {
        uint64_t h = wrong[index];
        expect(rackloom_rack_name(h, name, sizeof name, NULL), expected[index], "name", __LINE__);
        expect(rackloom_rack_status(h, &text), expected[index], "status", __LINE__);
        expect(rackloom_rack_inject(h, "events: []", &events), expected[index], "inject", __LINE__);
        expect(rackloom_rack_leave(h, "n0"), expected[index], "leave", __LINE__);
        expect(rackloom_rack_down(h, NULL), expected[index], "down", __LINE__);
        expect(rackloom_rack_free(h), expected[index], "free", __LINE__);
    }
    EXPECT(NULL_POINTER, rackloom_rack_status(live[QUEUE], NULL));
    EXPECT(NULL_POINTER, rackloom_rack_inject(live[QUEUE], NULL, NULL));
    EXPECT(NULL_POINTER, rackloom_rack_leave(live[QUEUE], NULL));
}

/* A live rack: wrong texts, and calls after its end. */
static void live_rack(const char *program) {
    char path[] = "/tmp/rackloom-misuse-XXXXXX", text[128], name[64], small[2];
    int length = snprintf(text, sizeof text, "name: misuse-%ld\nshape: {ring: {nodes: 2}}\n", (long)getpid());
    int file = mkstemp(path);
    if (file < 0 || write(file, text, (size_t)length) != length) {
        abort();
    }
    close(file);
    rackloom_rack rack, again;
    rackloom_text status;
    rackloom_rack_options options = {.size = sizeof options, .program = "/nowhere/program", .file = path, .wire = "udp"};
    EXPECT(COULD_NOT_START, rackloom_rack_up(&options, &rack));
    options.program = program;
    OK(rackloom_rack_up(&options, &rack));
    EXPECT(COULD_NOT_START, rackloom_rack_up(&options, &again));
    unlink(path);
    OK(rackloom_rack_name(rack, name, sizeof name, NULL));
    EXPECT(BUFFER_TOO_SMALL, rackloom_rack_name(rack, small, sizeof small, NULL));
    EXPECT(NULL_POINTER, rackloom_rack_name(rack, NULL, 5, NULL));
    OK(rackloom_rack_connect(name, &again));
    OK(rackloom_rack_status(again, &status));
    OK(rackloom_text_free(status));
    EXPECT(BAD_INPUT, rackloom_rack_inject(rack, "events: [{what: rain}]", NULL));
    EXPECT(BAD_INPUT, rackloom_rack_leave(rack, "n9"));
    OK(rackloom_rack_down(rack, NULL));
    EXPECT(BAD_INPUT, rackloom_rack_down(again, NULL));
    EXPECT(BAD_INPUT, rackloom_rack_status(again, &status));
    OK(rackloom_rack_free(rack));
    OK(rackloom_rack_free(again));
    EXPECT(FREED_HANDLE, rackloom_rack_status(rack, &status));
    EXPECT(FREED_HANDLE, rackloom_rack_name(rack, name, sizeof name, NULL));
    EXPECT(FREED_HANDLE, rackloom_rack_inject(rack, "events: []", NULL));
    EXPECT(FREED_HANDLE, rackloom_rack_leave(rack, "n0"));
    EXPECT(FREED_HANDLE, rackloom_rack_down(rack, NULL));
    EXPECT(FREED_HANDLE, rackloom_rack_free(rack));
}

static void nodes(void) {
    rackloom_node node;
    rackloom_text text;
    uint32_t id, peers[2] = {0, 1}, far[1] = {9}, beyond[1] = {70000};
    rackloom_counters counters = {.size = sizeof counters};
    EXPECT(JOIN, rackloom_node_join("/nowhere/rack", "n0", &node));
    EXPECT(NULL_POINTER, rackloom_node_join(NULL, "n0", &node));
    EXPECT(NULL_POINTER, rackloom_node_join("x", NULL, &node));
    EXPECT(NULL_POINTER, rackloom_node_join("x", "n0", NULL));
    BAD_HANDLES(NODE, rackloom_node_id(h, &id));
    EXPECT(NULL_POINTER, rackloom_node_id(first, NULL));
    BAD_HANDLES(NODE, rackloom_node_reaches(h, 1, &id));
    EXPECT(NULL_POINTER, rackloom_node_reaches(first, 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_node_reaches(first, 70000, &id));
    BAD_HANDLES(NODE, rackloom_node_wait_until_reached(h, peers, 2, 0));
    EXPECT(NULL_POINTER, rackloom_node_wait_until_reached(first, NULL, 1, 0));
    EXPECT(NO_SUCH_NODE, rackloom_node_wait_until_reached(first, far, 1, 0));
    EXPECT(NO_SUCH_NODE, rackloom_node_wait_until_reached(first, beyond, 1, 0));
    EXPECT(BAD_ARGUMENT, rackloom_node_wait_until_reached(first, peers, UINT64_MAX, 0));
    BAD_HANDLES(NODE, rackloom_node_waiting_for(h, &text));
    EXPECT(NULL_POINTER, rackloom_node_waiting_for(first, NULL));
    BAD_HANDLES(NODE, rackloom_node_counters(h, &counters));
    EXPECT(NULL_POINTER, rackloom_node_counters(first, NULL));
    counters.size = 12;
    EXPECT(BAD_SIZE, rackloom_node_counters(first, &counters));
    /* A structure of the first version, which had no copies: the last fields are not written. */
    counters.size = offsetof(rackloom_counters, copied_operations);
    counters.copied_operations = counters.copied_bytes = 99;
    OK(rackloom_node_counters(first, &counters));
    if (counters.copied_operations != 99 || counters.copied_bytes != 99 || counters.operations_ended == 99) {
        fprintf(stderr, "a structure of the first version has no fields for copies\n");
        failures++;
    }
    BAD_HANDLES(NODE, rackloom_node_leave_in_order(h, 0));
    BAD_HANDLES(NODE, rackloom_node_leave(h));
    BAD_HANDLES(NODE, rackloom_node_wait_until_free(h, 1, 0));
    EXPECT(REGION_EXISTS, rackloom_node_wait_until_free(first, 1, 0));
    BAD_HANDLES(NODE, rackloom_node_cancel(h, 1));
    EXPECT(INVALID, rackloom_node_cancel(first, 123456));
    BAD_HANDLES(NODE, rackloom_node_free(h));
}

static void regions(void) {
    rackloom_region region;
    rackloom_address address;
    void *pointer;
    uint64_t length;
    char bytes[64] = {0};
    rackloom_region_options options = region_options(2);
    BAD_HANDLES(NODE, rackloom_region_allocate(h, &options, 64, &region));
    EXPECT(NULL_POINTER, rackloom_region_allocate(first, NULL, 64, &region));
    EXPECT(NULL_POINTER, rackloom_region_allocate(first, &options, 64, NULL));
    EXPECT(SYSTEM, rackloom_region_allocate(first, &options, UINT64_MAX, &region));
    options.access = 8;
    EXPECT(BAD_ARGUMENT, rackloom_region_allocate(first, &options, 64, &region));
    options.access = 0;
    options.device = 9;
    EXPECT(BAD_ARGUMENT, rackloom_region_allocate(first, &options, 64, &region));
    options.device = 0;
    options.size = 0;
    EXPECT(BAD_SIZE, rackloom_region_allocate(first, &options, 64, &region));
    options = region_options(1);
    EXPECT(REGION_EXISTS, rackloom_region_allocate(first, &options, 64, &region));
    BAD_HANDLES(NODE, rackloom_region_register(h, &options, bytes, sizeof bytes, &region));
    options = region_options(3);
    EXPECT(NULL_POINTER, rackloom_region_register(first, &options, NULL, 64, &region));
    EXPECT(NULL_POINTER, rackloom_region_register(first, NULL, bytes, 64, &region));
    EXPECT(NULL_POINTER, rackloom_region_register(first, &options, bytes, 64, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_region_register(first, &options, bytes, UINT64_MAX, &region));
    OK(rackloom_region_register(first, &options, bytes, sizeof bytes, &region));
    OK(rackloom_region_deregister(region));
    EXPECT(FREED_HANDLE, rackloom_region_deregister(region));
    BAD_HANDLES(REGION, rackloom_region_deregister(h));
    BAD_HANDLES(REGION, rackloom_region_free(h));
    BAD_HANDLES(REGION, rackloom_region_length(h, &length));
    EXPECT(NULL_POINTER, rackloom_region_length(own, NULL));
    BAD_HANDLES(REGION, rackloom_region_address(h, 0, &address));
    EXPECT(NULL_POINTER, rackloom_region_address(own, 0, NULL));
    BAD_HANDLES(REGION, rackloom_region_pointer(h, &pointer));
    EXPECT(NULL_POINTER, rackloom_region_pointer(own, NULL));
    BAD_HANDLES(REGION, rackloom_region_device_address(h, &length));
    EXPECT(NULL_POINTER, rackloom_region_device_address(own, NULL));
    EXPECT(INVALID, rackloom_region_device_address(own, &length));
    BAD_HANDLES(REGION, rackloom_region_write(h, 0, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_region_write(own, 0, NULL, 8));
    EXPECT(INVALID, rackloom_region_write(own, 4090, bytes, 8));
    EXPECT(INVALID, rackloom_region_write(own, UINT64_MAX, bytes, 8));
    BAD_HANDLES(REGION, rackloom_region_read(h, 0, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_region_read(own, 0, NULL, 8));
    EXPECT(INVALID, rackloom_region_read(own, 4090, bytes, 8));
}

static void peer_regions(void) {
    rackloom_peer_region region;
    uint64_t length;
    char bytes[8] = {0};
    rackloom_address wrong_key = target;
    wrong_key.key = 99;
    BAD_HANDLES(NODE, rackloom_peer_region_map(h, target, 0, &region));
    EXPECT(NULL_POINTER, rackloom_peer_region_map(first, target, 0, NULL));
    EXPECT(NOT_MAPPED, rackloom_peer_region_map(second, target, 100000000, &region));
    EXPECT(NOT_MAPPED, rackloom_peer_region_map(first, wrong_key, 100000000, &region));
    BAD_HANDLES(PEER_REGION, rackloom_peer_region_length(h, &length));
    EXPECT(NULL_POINTER, rackloom_peer_region_length(live[PEER_REGION], NULL));
    BAD_HANDLES(PEER_REGION, rackloom_peer_region_write(h, 0, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_peer_region_write(live[PEER_REGION], 0, NULL, 8));
    EXPECT(REFUSED, rackloom_peer_region_write(live[PEER_REGION], 5000, bytes, 8));
    BAD_HANDLES(PEER_REGION, rackloom_peer_region_read(h, 0, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_peer_region_read(live[PEER_REGION], 0, NULL, 8));
    EXPECT(REFUSED, rackloom_peer_region_read(live[PEER_REGION], 5000, bytes, 8));
    BAD_HANDLES(PEER_REGION,
                rackloom_peer_region_atomic(h, 0, RACKLOOM_FETCH_ADD, RACKLOOM_U64, 1, 0, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_peer_region_atomic(live[PEER_REGION], 0, 99, RACKLOOM_U64, 1, 0, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_peer_region_atomic(live[PEER_REGION], 0, RACKLOOM_SWAP, 99, 1, 0, NULL));
    EXPECT(REFUSED, rackloom_peer_region_atomic(live[PEER_REGION], 4, RACKLOOM_SWAP, RACKLOOM_U64, 1, 0, NULL));
    BAD_HANDLES(PEER_REGION, rackloom_peer_region_signal(h, 0, 1));
    EXPECT(REFUSED, rackloom_peer_region_signal(live[PEER_REGION], 5000, 1));
    BAD_HANDLES(PEER_REGION, rackloom_peer_region_free(h));
}

static void operations(void) {
    rackloom_completion end;
    rackloom_pending pending;
    uint64_t number, old, taken;
    char bytes[8] = {0};
    rackloom_operation put = operation(RACKLOOM_PUT), broken = put;
    rackloom_address far = target, beyond = target;
    far.node = 9;
    beyond.node = 70000;
    BAD_HANDLES(NODE, rackloom_operation_wait(h, &put, 0, &end));
    EXPECT(NULL_POINTER, rackloom_operation_wait(first, NULL, 0, &end));
    broken.kind = 99;
    EXPECT(BAD_ARGUMENT, rackloom_operation_wait(first, &broken, RACKLOOM_FOREVER, &end));
    broken = put;
    broken.size = 16;
    EXPECT(BAD_SIZE, rackloom_operation_wait(first, &broken, RACKLOOM_FOREVER, &end));
    broken = operation(RACKLOOM_ATOMIC);
    EXPECT(BAD_ARGUMENT, rackloom_operation_wait(first, &broken, RACKLOOM_FOREVER, &end));
    broken = operation(RACKLOOM_WAIT_UNTIL);
    EXPECT(BAD_ARGUMENT, rackloom_operation_wait(first, &broken, RACKLOOM_FOREVER, &end));
    broken = operation(RACKLOOM_PUT_WITH_SIGNAL);
    EXPECT(BAD_ARGUMENT, rackloom_operation_wait(first, &broken, RACKLOOM_FOREVER, &end));
    broken = operation(RACKLOOM_RECEIVE);
    broken.peer = 1;
    broken.tag = 5;
    EXPECT(TIMED_OUT, rackloom_operation_wait(first, &broken, 1000000, &end));
    if (end.error != RACKLOOM_ERROR_TIMED_OUT || end.maybe_done != 0) {
        fprintf(stderr, "a receive that timed out has taken nothing\n");
        failures++;
    }
    BAD_HANDLES(NODE, rackloom_operation_start(h, &put, &pending));
    EXPECT(NULL_POINTER, rackloom_operation_start(first, NULL, &pending));
    EXPECT(NULL_POINTER, rackloom_operation_start(first, &put, NULL));
    BAD_HANDLES(NODE, rackloom_operation_submit(h, &put, queue, 1, &number));
    BAD_HANDLES(QUEUE, rackloom_operation_submit(first, &put, h, 1, &number));
    EXPECT(NULL_POINTER, rackloom_operation_submit(first, NULL, queue, 1, &number));
    BAD_HANDLES(NODE, rackloom_operations_submit(h, &put, sizeof put, 1, queue, 1, &taken));
    BAD_HANDLES(QUEUE, rackloom_operations_submit(first, &put, sizeof put, 1, h, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_operations_submit(first, NULL, sizeof put, 1, queue, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_operations_submit(first, &put, sizeof put, 1, queue, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_operations_submit(first, &put, 0, 1, queue, 1, &taken));
    EXPECT(BAD_ARGUMENT, rackloom_operations_submit(first, &put, sizeof put, UINT64_MAX, queue, 1, &taken));
    EXPECT(BAD_SIZE, rackloom_operations_submit(first, &put, 64, 1, queue, 1, &taken));
    BAD_HANDLES(NODE, rackloom_operation_post(h, &put));
    EXPECT(NULL_POINTER, rackloom_operation_post(first, NULL));
    broken = operation(RACKLOOM_FLUSH);
    EXPECT(INVALID, rackloom_operation_post(first, &broken));

    BAD_HANDLES(NODE, rackloom_store(h, target, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_store(first, target, NULL, 8));
    EXPECT(INVALID, rackloom_store(first, target, bytes, 0));
    EXPECT(NO_SUCH_NODE, rackloom_store(first, far, bytes, 8));
    EXPECT(NO_SUCH_NODE, rackloom_store(first, beyond, bytes, 8));
    far = target;
    far.key = 99;
    EXPECT(REFUSED, rackloom_store(first, far, bytes, 8));
    rackloom_failure failure = {.size = sizeof failure};
    OK(rackloom_last_failure(&failure));
    if (failure.reason != RACKLOOM_REASON_BAD_KEY || failure.peer != 1) {
        fprintf(stderr, "the refusal has reason %u of peer %u\n", failure.reason, failure.peer);
        failures++;
    }
    BAD_HANDLES(NODE, rackloom_load(h, target, slice));
    rackloom_slice bad = slice;
    BAD_HANDLES(REGION, (bad.region = h, rackloom_load(first, target, bad)));
    BAD_HANDLES(NODE, rackloom_put(h, slice, target));
    BAD_HANDLES(REGION, (bad.region = h, rackloom_put(first, bad, target)));
    bad = (rackloom_slice){.region = theirs, .offset = 0, .length = 8};
    EXPECT(INVALID, rackloom_put(first, bad, target));
    rackloom_signal signal = {.region = 1, .kind = 99, .key = 7};
    BAD_HANDLES(NODE, rackloom_put_with_signal(h, slice, target, signal));
    EXPECT(BAD_ARGUMENT, rackloom_put_with_signal(first, slice, target, signal));
    BAD_HANDLES(NODE, rackloom_get(h, target, slice));
    BAD_HANDLES(REGION, (bad.region = h, rackloom_get(first, target, bad)));
    BAD_HANDLES(NODE, rackloom_atomic(h, target, RACKLOOM_SWAP, RACKLOOM_U64, 1, 0, &old));
    EXPECT(BAD_ARGUMENT, rackloom_atomic(first, target, 99, RACKLOOM_U64, 1, 0, &old));
    EXPECT(BAD_ARGUMENT, rackloom_atomic(first, target, RACKLOOM_SWAP, 99, 1, 0, &old));
    far = target;
    far.offset = 4;
    EXPECT(REFUSED, rackloom_atomic(first, far, RACKLOOM_SWAP, RACKLOOM_U64, 1, 0, &old));
    BAD_HANDLES(NODE, rackloom_wait_until(h, own, 0, RACKLOOM_EQUAL, 0, 1, NULL));
    BAD_HANDLES(REGION, rackloom_wait_until(first, h, 0, RACKLOOM_EQUAL, 0, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_wait_until(first, own, 0, 99, 0, 1, NULL));
    EXPECT(INVALID, rackloom_wait_until(first, own, 3, RACKLOOM_EQUAL, 0, 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_wait_until(first, own, 0, RACKLOOM_EQUAL, 0, RACKLOOM_ANY_NODE, NULL));
    BAD_HANDLES(NODE, rackloom_fence(h, RACKLOOM_ANY_NODE));
    EXPECT(NO_SUCH_NODE, rackloom_fence(first, 9));
    BAD_HANDLES(NODE, rackloom_flush(h, RACKLOOM_ANY_NODE));
    EXPECT(NO_SUCH_NODE, rackloom_flush(first, 70000));
    BAD_HANDLES(NODE, rackloom_send(h, 1, 5, slice));
    EXPECT(NO_SUCH_NODE, rackloom_send(first, RACKLOOM_ANY_NODE, 5, slice));
    BAD_HANDLES(REGION, (bad.region = h, rackloom_send(first, 1, 5, bad)));
    BAD_HANDLES(NODE, rackloom_receive(h, 1, 5, 0, slice, &end));
    BAD_HANDLES(REGION, (bad.region = h, rackloom_receive(first, 1, 5, 0, bad, &end)));
}

static void pendings(void) {
    rackloom_completion end;
    uint32_t has_ended;
    uint64_t number;
    BAD_HANDLES(PENDING, rackloom_pending_test(h, &has_ended));
    EXPECT(NULL_POINTER, rackloom_pending_test(live[PENDING], NULL));
    BAD_HANDLES(PENDING, rackloom_pending_wait(h, 0, &end));
    EXPECT(TIMED_OUT, rackloom_pending_wait(live[PENDING], 1000000, NULL));
    BAD_HANDLES(PENDING, rackloom_pending_operation(h, &number));
    EXPECT(NULL_POINTER, rackloom_pending_operation(live[PENDING], NULL));
    uint64_t twice[2] = {live[PENDING], live[PENDING]};
    EXPECT(IN_USE, rackloom_pending_wait_any(twice, 2, &number));
    EXPECT(INVALID, rackloom_pending_wait_any(NULL, 0, &number));
    EXPECT(NULL_POINTER, rackloom_pending_wait_any(NULL, 1, &number));
    EXPECT(NULL_POINTER, rackloom_pending_wait_any(twice, 1, NULL));
    BAD_HANDLES(PENDING, rackloom_pending_wait_any(&h, 1, &number));
    rackloom_operation put = operation(RACKLOOM_PUT);
    rackloom_pending started;
    OK(rackloom_operation_start(first, &put, &started));
    EXPECT(INVALID, rackloom_pending_cancel(started));
    OK(rackloom_pending_wait(started, RACKLOOM_FOREVER, &end));
    EXPECT(CLOSED, rackloom_pending_wait(started, RACKLOOM_FOREVER, &end));
    OK(rackloom_pending_free(started));
    BAD_HANDLES(PENDING, rackloom_pending_cancel(h));
    BAD_HANDLES(PENDING, rackloom_pending_free(h));
}

static void queues(void) {
    rackloom_queue made;
    rackloom_completion completion;
    int32_t descriptor;
    uint64_t waiting;
    EXPECT(NULL_POINTER, rackloom_queue_create(4, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_queue_create(UINT64_MAX, &made));
    BAD_HANDLES(QUEUE, rackloom_queue_pop(h, &completion));
    EXPECT(NULL_POINTER, rackloom_queue_pop(queue, NULL));
    EXPECT(EMPTY, rackloom_queue_pop(queue, &completion));
    BAD_HANDLES(QUEUE, rackloom_queue_poll(h, first, &completion));
    BAD_HANDLES(NODE, rackloom_queue_poll(queue, h, &completion));
    EXPECT(NULL_POINTER, rackloom_queue_poll(queue, first, NULL));
    EXPECT(EMPTY, rackloom_queue_poll(queue, first, &completion));
    BAD_HANDLES(QUEUE, rackloom_queue_next(h, first, 0, &completion));
    BAD_HANDLES(NODE, rackloom_queue_next(queue, h, 0, &completion));
    EXPECT(NULL_POINTER, rackloom_queue_next(queue, first, 0, NULL));
    EXPECT(EMPTY, rackloom_queue_next(queue, first, 1000000, &completion));
    BAD_HANDLES(QUEUE, rackloom_queue_descriptor(h, &descriptor));
    EXPECT(NULL_POINTER, rackloom_queue_descriptor(queue, NULL));
    BAD_HANDLES(QUEUE, rackloom_queue_counts(h, &waiting, NULL, NULL));
    BAD_HANDLES(QUEUE, rackloom_queue_free(h));
}

static void drivers(void) {
    rackloom_driver made;
    rackloom_completion completions[2];
    uint64_t taken, count;
    char bytes[8] = {0};
    rackloom_address back;
    OK(rackloom_region_address(own, 0, &back));
    rackloom_store_entry store = {.target = back, .data = bytes, .length = 8, .context = 1};
    rackloom_operation flush = operation(RACKLOOM_FLUSH);
    flush.peer = RACKLOOM_ANY_NODE;
    rackloom_slice local = {.region = theirs, .offset = 0, .length = 8};
    BAD_HANDLES(NODE, rackloom_driver_begin(h, &made));
    EXPECT(NULL_POINTER, rackloom_driver_begin(first, NULL));
    EXPECT(INVALID, rackloom_driver_begin(second, &made));
    BAD_HANDLES(DRIVER, rackloom_driver_store(h, back, bytes, 8, 1));
    EXPECT(NULL_POINTER, rackloom_driver_store(live[DRIVER], back, NULL, 8, 1));
    EXPECT(INVALID, rackloom_driver_store(live[DRIVER], back, bytes, 0, 1));
    BAD_HANDLES(DRIVER, rackloom_driver_store_posted(h, back, bytes, 8));
    EXPECT(NULL_POINTER, rackloom_driver_store_posted(live[DRIVER], back, NULL, 8));
    BAD_HANDLES(DRIVER, rackloom_driver_stores(h, &store, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_driver_stores(live[DRIVER], NULL, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_driver_stores(live[DRIVER], &store, 1, NULL));
    BAD_HANDLES(DRIVER, rackloom_driver_stores_posted(h, &store, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_driver_stores_posted(live[DRIVER], NULL, 1, &taken));
    EXPECT(NULL_POINTER, rackloom_driver_stores_posted(live[DRIVER], &store, 1, NULL));
    BAD_HANDLES(DRIVER, rackloom_driver_put(h, local, back, 1));
    EXPECT(INVALID, rackloom_driver_put(live[DRIVER], slice, back, 1));
    BAD_HANDLES(DRIVER, rackloom_driver_put_posted(h, local, back));
    EXPECT(INVALID, rackloom_driver_put_posted(live[DRIVER], slice, back));
    BAD_HANDLES(DRIVER, rackloom_driver_get(h, back, local, 1));
    EXPECT(INVALID, rackloom_driver_get(live[DRIVER], back, slice, 1));
    BAD_HANDLES(DRIVER, rackloom_driver_submit(h, &flush, 1, NULL));
    EXPECT(NULL_POINTER, rackloom_driver_submit(live[DRIVER], NULL, 1, NULL));
    BAD_HANDLES(DRIVER, rackloom_driver_wait(h, &flush, NULL));
    EXPECT(NULL_POINTER, rackloom_driver_wait(live[DRIVER], NULL, NULL));
    OK(rackloom_driver_wait(live[DRIVER], &flush, &completions[0]));
    BAD_HANDLES(DRIVER, rackloom_driver_poll(h, 0, completions, 2, &count));
    EXPECT(NULL_POINTER, rackloom_driver_poll(live[DRIVER], 0, NULL, 2, &count));
    EXPECT(NULL_POINTER, rackloom_driver_poll(live[DRIVER], 0, completions, 2, NULL));
    BAD_HANDLES(DRIVER, rackloom_driver_free(h));
}

static void groups(void) {
    rackloom_group made;
    rackloom_collective_request started;
    uint32_t members[2] = {0, 1}, twice[2] = {0, 0}, size, has_ended;
    float values[4] = {0}, others[4] = {0};
    rackloom_group_options options = {.size = sizeof options, .region = 70, .key = 7};
    BAD_HANDLES(NODE, rackloom_group_join(h, &options, members, 2, &made));
    EXPECT(NULL_POINTER, rackloom_group_join(first, NULL, members, 2, &made));
    EXPECT(NULL_POINTER, rackloom_group_join(first, &options, NULL, 2, &made));
    EXPECT(NULL_POINTER, rackloom_group_join(first, &options, members, 2, NULL));
    EXPECT(INVALID, rackloom_group_join(first, &options, twice, 2, &made));
    EXPECT(INVALID, rackloom_group_join(first, &options, &members[1], 1, &made));
    options.algorithm = 99;
    EXPECT(BAD_ARGUMENT, rackloom_group_join(first, &options, members, 2, &made));
    options.algorithm = RACKLOOM_ALGORITHM_RING_PIPELINE;
    EXPECT(BAD_ARGUMENT, rackloom_group_join(first, &options, members, 2, &made));
    options.size = 4;
    EXPECT(BAD_SIZE, rackloom_group_join(first, &options, members, 2, &made));
    EXPECT(BAD_SIZE, rackloom_group_of_rack(first, &options, &made));
    options = (rackloom_group_options){.size = sizeof options, .region = 70, .key = 7, .lanes = 65};
    EXPECT(INVALID, rackloom_group_join(first, &options, members, 2, &made));
    EXPECT(INVALID, rackloom_group_of_rack(first, &options, &made));
    options.lanes = UINT64_MAX;
    EXPECT(INVALID, rackloom_group_of_rack(first, &options, &made));
    BAD_HANDLES(NODE, rackloom_group_of_rack(h, &options, &made));
    EXPECT(NULL_POINTER, rackloom_group_of_rack(first, NULL, &made));
    EXPECT(NULL_POINTER, rackloom_group_of_rack(first, &options, NULL));
    BAD_HANDLES(GROUP, rackloom_group_size(h, &size, NULL));
    BAD_HANDLES(GROUP, rackloom_group_members(h, members, 2));
    EXPECT(NULL_POINTER, rackloom_group_members(live[GROUP], NULL, 2));
    EXPECT(BUFFER_TOO_SMALL, rackloom_group_members(live[GROUP], members, 1));
    EXPECT(BUFFER_TOO_SMALL, rackloom_group_members(live[GROUP], NULL, 0));
    EXPECT(BAD_ARGUMENT, rackloom_group_members(live[GROUP], members, UINT64_MAX));
    BAD_HANDLES(GROUP, rackloom_group_split(h, 0, 0, &made));
    EXPECT(NULL_POINTER, rackloom_group_split(live[GROUP], 0, 0, NULL));
    BAD_HANDLES(GROUP, rackloom_group_duplicate(h, &made));
    EXPECT(NULL_POINTER, rackloom_group_duplicate(live[GROUP], NULL));
    BAD_HANDLES(GROUP, rackloom_group_split_by_server(h, &made));
    EXPECT(NULL_POINTER, rackloom_group_split_by_server(live[GROUP], NULL));
    BAD_HANDLES(GROUP, rackloom_group_on_plane(h, 0, &made));
    EXPECT(NULL_POINTER, rackloom_group_on_plane(live[GROUP], 0, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_group_on_plane(live[GROUP], 256, &made));
    rackloom_collective collective = {.size = sizeof collective,
                                      .kind = RACKLOOM_ALL_GATHER,
                                      .element = RACKLOOM_F32,
                                      .input = values,
                                      .input_count = 4,
                                      .output = values,
                                      .output_count = 4};
    rackloom_collective barrier = {.size = sizeof barrier, .kind = RACKLOOM_BARRIER}, broken = collective;
    BAD_HANDLES(GROUP, rackloom_collective_wait(h, &barrier));
    EXPECT(NULL_POINTER, rackloom_collective_wait(live[GROUP], NULL));
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &collective));
    broken.kind = 99;
    broken.input = others;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.kind = RACKLOOM_ALL_GATHER;
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.element = 99;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.element = RACKLOOM_F16;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.element = RACKLOOM_F64;
    broken.input = (const char *)others + 4;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    rackloom_collective broken_root = {.size = sizeof broken_root,
                                       .kind = RACKLOOM_BROADCAST,
                                       .element = RACKLOOM_F32,
                                       .root = 9,
                                       .output = values,
                                       .output_count = 4};
    broken = collective;
    broken.size = 4;
    EXPECT(BAD_SIZE, rackloom_collective_wait(live[GROUP], &broken));
    broken = collective;
    broken.output_slice.region = freed[REGION];
    EXPECT(FREED_HANDLE, rackloom_collective_wait(live[GROUP], &broken));
    BAD_HANDLES(GROUP, rackloom_collective_start(h, &barrier, &started));
    EXPECT(NULL_POINTER, rackloom_collective_start(live[GROUP], NULL, &started));
    EXPECT(NULL_POINTER, rackloom_collective_start(live[GROUP], &barrier, NULL));
    EXPECT(INVALID, rackloom_collective_start(live[GROUP], &broken_root, &started));
    BAD_HANDLES(COLLECTIVE, rackloom_collective_request_test(h, &has_ended));
    EXPECT(NULL_POINTER, rackloom_collective_request_test(live[COLLECTIVE], NULL));
    BAD_HANDLES(COLLECTIVE, rackloom_collective_request_wait(h, 0));
    EXPECT(TIMED_OUT, rackloom_collective_request_wait(live[COLLECTIVE], 0));
    BAD_HANDLES(COLLECTIVE, rackloom_collective_free(h));
    BAD_HANDLES(GROUP, rackloom_collective_submit(h, &barrier, queue, 1));
    BAD_HANDLES(QUEUE, rackloom_collective_submit(live[GROUP], &barrier, h, 1));
    EXPECT(NULL_POINTER, rackloom_collective_submit(live[GROUP], NULL, queue, 1));
    BAD_HANDLES(GROUP, rackloom_group_barrier(h));
    BAD_HANDLES(GROUP, rackloom_group_all_reduce(h, values, 4, RACKLOOM_F32, RACKLOOM_SUM));
    EXPECT(NULL_POINTER, rackloom_group_all_reduce(live[GROUP], NULL, 4, RACKLOOM_F32, RACKLOOM_SUM));
    EXPECT(BAD_ARGUMENT, rackloom_group_all_reduce(live[GROUP], values, 4, RACKLOOM_F32, 99));
    EXPECT(BAD_ARGUMENT, rackloom_group_all_reduce(live[GROUP], values, UINT64_MAX, RACKLOOM_F32, RACKLOOM_SUM));
    BAD_HANDLES(GROUP, rackloom_group_broadcast(h, values, 4, RACKLOOM_F32, 0));
    EXPECT(NULL_POINTER, rackloom_group_broadcast(live[GROUP], NULL, 4, RACKLOOM_F32, 0));
    EXPECT(INVALID, rackloom_group_broadcast(live[GROUP], values, 4, RACKLOOM_F32, 9));
    BAD_HANDLES(GROUP, rackloom_group_free(h));
}

/* Fields of collectives that exclude each other, and wrong lengths of parts. */
static void forms_of_arrays(void) {
    float values[4] = {0}, others[4] = {0};
    uint64_t lengths[4] = {2, 2, UINT64_MAX, 0};
    rackloom_collective gather = {.size = sizeof gather,
                                  .kind = RACKLOOM_ALL_GATHER,
                                  .element = RACKLOOM_F32,
                                  .input = others,
                                  .input_count = 2,
                                  .output = values,
                                  .output_count = 4};
    rackloom_collective broken = gather;
    broken.in_place = 1;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.in_place = 2;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken = gather;
    broken.part_counts = lengths;
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.part_counts_length = 3;
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.part_counts_length = UINT64_MAX;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.part_counts_length = 2;
    broken.part_counts = (const uint64_t *)((const char *)lengths + 4);
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.part_counts = &lengths[1];
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.part_counts = lengths;
    broken.input_count = 1;
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.kind = RACKLOOM_ALL_TO_ALL;
    EXPECT(INVALID, rackloom_collective_wait(live[GROUP], &broken));
    broken.kind = 99;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken = gather;
    broken.part_counts = lengths;
    broken.part_counts_length = 2;
    broken.in_place = 1;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.kind = RACKLOOM_SCAN;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken = gather;
    broken.kind = RACKLOOM_EXCLUSIVE_SCAN;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.input = NULL;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken.reduction = RACKLOOM_SUM;
    broken.output = NULL;
    EXPECT(NULL_POINTER, rackloom_collective_wait(live[GROUP], &broken));
    broken = on_slice();
    broken.in_place = 1;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    broken = on_slice();
    broken.custom_reduction = live[REDUCTION];
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &broken));
    rackloom_group_options options = {.size = sizeof options, .region = 71, .key = 7, .adaptive = 2};
    rackloom_group made;
    EXPECT(BAD_ARGUMENT, rackloom_group_of_rack(first, &options, &made));
    options.adaptive = 1;
    options.algorithm = RACKLOOM_ALGORITHM_RING;
    EXPECT(INVALID, rackloom_group_of_rack(first, &options, &made));
    rackloom_rechoice trial;
    uint64_t count = 9;
    BAD_HANDLES(GROUP, rackloom_group_rechoices(h, &trial, 1, &count));
    EXPECT(NULL_POINTER, rackloom_group_rechoices(live[GROUP], NULL, 1, &count));
    EXPECT(NULL_POINTER, rackloom_group_rechoices(live[GROUP], &trial, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_group_rechoices(live[GROUP], &trial, UINT64_MAX, &count));
    OK(rackloom_group_rechoices(live[GROUP], &trial, 1, &count));
    if (count != 0) {
        fprintf(stderr, "a group that is not adaptive has trials\n");
        failures++;
    }
}

static void reductions(void) {
    rackloom_reduction made;
    uint64_t values[4] = {0};
    EXPECT(NULL_POINTER, rackloom_reduction_create(NULL, NULL, 8, RACKLOOM_ORDERED, &made));
    EXPECT(NULL_POINTER, rackloom_reduction_create(reduce_nothing, NULL, 8, RACKLOOM_ORDERED, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_reduction_create(reduce_nothing, NULL, 8, 0, &made));
    EXPECT(BAD_ARGUMENT, rackloom_reduction_create(reduce_nothing, NULL, 8, 3, &made));
    EXPECT(BAD_ARGUMENT, rackloom_reduction_create(reduce_nothing, NULL, 0, RACKLOOM_ORDERED, &made));
    EXPECT(BAD_ARGUMENT, rackloom_reduction_create(reduce_nothing, NULL, 9, RACKLOOM_ORDERED, &made));
    EXPECT(BAD_ARGUMENT, rackloom_reduction_create(reduce_nothing, NULL, UINT64_MAX, RACKLOOM_ORDERED, &made));
    rackloom_collective all_reduce = {
        .size = sizeof all_reduce, .kind = RACKLOOM_ALL_REDUCE, .output = values, .output_count = 4};
    /* 0 is no custom reduction, and the type of elements is 0 too. */
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &all_reduce));
    all_reduce.custom_reduction = freed[REDUCTION];
    EXPECT(FREED_HANDLE, rackloom_collective_wait(live[GROUP], &all_reduce));
    all_reduce.custom_reduction = live[TEXT];
    EXPECT(WRONG_HANDLE_KIND, rackloom_collective_wait(live[GROUP], &all_reduce));
    all_reduce.custom_reduction = live[REDUCTION] + 100000;
    EXPECT(BAD_HANDLE, rackloom_collective_wait(live[GROUP], &all_reduce));
    all_reduce.custom_reduction = live[REDUCTION];
    all_reduce.element = RACKLOOM_INT64;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &all_reduce));
    all_reduce.element = 0;
    all_reduce.reduction = RACKLOOM_SUM;
    EXPECT(BAD_ARGUMENT, rackloom_collective_wait(live[GROUP], &all_reduce));
    BAD_HANDLES(REDUCTION, rackloom_reduction_free(h));
}

static void persistents(void) {
    rackloom_persistent made;
    rackloom_collective_request started;
    rackloom_collective all_reduce = on_slice(), broken = all_reduce;
    BAD_HANDLES(GROUP, rackloom_persistent_create(h, &all_reduce, &made));
    EXPECT(NULL_POINTER, rackloom_persistent_create(live[GROUP], NULL, &made));
    EXPECT(NULL_POINTER, rackloom_persistent_create(live[GROUP], &all_reduce, NULL));
    broken.size = 4;
    EXPECT(BAD_SIZE, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken = all_reduce;
    broken.output_slice.region = 0;
    EXPECT(BAD_ARGUMENT, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken.output_slice.region = freed[REGION];
    EXPECT(FREED_HANDLE, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken.output_slice.region = theirs;
    EXPECT(INVALID, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken = all_reduce;
    broken.output_slice.length = 63;
    EXPECT(INVALID, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken = all_reduce;
    broken.kind = RACKLOOM_BARRIER;
    EXPECT(BAD_ARGUMENT, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken.kind = RACKLOOM_REDUCE;
    broken.root = 9;
    EXPECT(INVALID, rackloom_persistent_create(live[GROUP], &broken, &made));
    broken.root = 0;
    broken.reduction = 99;
    EXPECT(BAD_ARGUMENT, rackloom_persistent_create(live[GROUP], &broken, &made));
    BAD_HANDLES(PERSISTENT, rackloom_persistent_wait(h));
    BAD_HANDLES(PERSISTENT, rackloom_persistent_start(h, &started));
    EXPECT(NULL_POINTER, rackloom_persistent_start(live[PERSISTENT], NULL));
    BAD_HANDLES(PERSISTENT, rackloom_persistent_submit(h, queue, 1));
    BAD_HANDLES(QUEUE, rackloom_persistent_submit(live[PERSISTENT], h, 1));
    BAD_HANDLES(PERSISTENT, rackloom_persistent_free(h));
}

static void pools(void) {
    rackloom_pool made;
    rackloom_region region;
    rackloom_pool_options options = {.size = sizeof options};
    rackloom_pool_statistics statistics = {.size = sizeof statistics};
    uint32_t access;
    BAD_HANDLES(NODE, rackloom_pool_create(h, &options, &made));
    EXPECT(NULL_POINTER, rackloom_pool_create(first, NULL, &made));
    EXPECT(NULL_POINTER, rackloom_pool_create(first, &options, NULL));
    options.device = 9;
    EXPECT(BAD_ARGUMENT, rackloom_pool_create(first, &options, &made));
    options = (rackloom_pool_options){.size = sizeof options, .reuse = 9};
    EXPECT(BAD_ARGUMENT, rackloom_pool_create(first, &options, &made));
    options.size = 8;
    EXPECT(BAD_SIZE, rackloom_pool_create(first, &options, &made));
    BAD_HANDLES(NODE, rackloom_pool_default(h, RACKLOOM_DEVICE_HOST, 0, &made));
    EXPECT(NULL_POINTER, rackloom_pool_default(first, RACKLOOM_DEVICE_HOST, 0, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_pool_default(first, 9, 0, &made));
    BAD_HANDLES(NODE, rackloom_pool_current(h, RACKLOOM_DEVICE_HOST, 0, &made));
    EXPECT(NULL_POINTER, rackloom_pool_current(first, RACKLOOM_DEVICE_HOST, 0, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_pool_current(first, RACKLOOM_DEVICE_OTHER, 0, &made));
    BAD_HANDLES(NODE, rackloom_pool_set_current(h, live[POOL]));
    BAD_HANDLES(POOL, rackloom_pool_set_current(first, h));
    EXPECT(INVALID, rackloom_pool_set_current(second, live[POOL]));
    rackloom_region_options wanted = region_options(90);
    BAD_HANDLES(POOL, rackloom_pool_allocate(h, &wanted, 64, "tag", &region));
    EXPECT(NULL_POINTER, rackloom_pool_allocate(live[POOL], NULL, 64, "tag", &region));
    EXPECT(NULL_POINTER, rackloom_pool_allocate(live[POOL], &wanted, 64, NULL, &region));
    EXPECT(NULL_POINTER, rackloom_pool_allocate(live[POOL], &wanted, 64, "tag", NULL));
    EXPECT(BAD_ARGUMENT, rackloom_pool_allocate(live[POOL], &wanted, 64, "\xff\xfe", &region));
    EXPECT(INVALID, rackloom_pool_allocate(live[POOL], &wanted, UINT64_MAX, "tag", &region));
    wanted.device = RACKLOOM_DEVICE_FAKE;
    EXPECT(BAD_ARGUMENT, rackloom_pool_allocate(live[POOL], &wanted, 64, "tag", &region));
    wanted = region_options(1);
    EXPECT(REGION_EXISTS, rackloom_pool_allocate(live[POOL], &wanted, 64, "tag", &region));
    wanted.size = 4;
    EXPECT(BAD_SIZE, rackloom_pool_allocate(live[POOL], &wanted, 64, "tag", &region));
    BAD_HANDLES(POOL, rackloom_pool_set_access(h, 1, RACKLOOM_ACCESS_READ));
    EXPECT(BAD_ARGUMENT, rackloom_pool_set_access(live[POOL], 1, 0));
    EXPECT(BAD_ARGUMENT, rackloom_pool_set_access(live[POOL], 1, RACKLOOM_ACCESS_NONE | RACKLOOM_ACCESS_READ));
    EXPECT(NO_SUCH_NODE, rackloom_pool_set_access(live[POOL], 9, RACKLOOM_ACCESS_READ));
    EXPECT(NO_SUCH_NODE, rackloom_pool_set_access(live[POOL], 70000, RACKLOOM_ACCESS_READ));
    BAD_HANDLES(POOL, rackloom_pool_access(h, 1, &access));
    EXPECT(NULL_POINTER, rackloom_pool_access(live[POOL], 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_pool_access(live[POOL], 70000, &access));
    BAD_HANDLES(POOL, rackloom_pool_set_release_threshold(h, 0));
    BAD_HANDLES(POOL, rackloom_pool_set_reuse(h, 0));
    EXPECT(BAD_ARGUMENT, rackloom_pool_set_reuse(live[POOL], 9));
    options = (rackloom_pool_options){.size = sizeof options};
    BAD_HANDLES(POOL, rackloom_pool_settings(h, &options));
    EXPECT(NULL_POINTER, rackloom_pool_settings(live[POOL], NULL));
    options.size = 4;
    EXPECT(BAD_SIZE, rackloom_pool_settings(live[POOL], &options));
    BAD_HANDLES(POOL, rackloom_pool_trim(h, 0, NULL));
    BAD_HANDLES(POOL, rackloom_pool_counters(h, &statistics));
    EXPECT(NULL_POINTER, rackloom_pool_counters(live[POOL], NULL));
    statistics.size = 8;
    EXPECT(BAD_SIZE, rackloom_pool_counters(live[POOL], &statistics));
    BAD_HANDLES(POOL, rackloom_pool_reset_high(h));
    BAD_HANDLES(POOL, rackloom_pool_free(h));
}

static void report_nothing(const char *leaks, void *context) {
    (void)leaks, (void)context;
}

static void block_pools(void) {
    rackloom_block_pool made;
    rackloom_block block = {0}, other = {0}, forged;
    rackloom_address address;
    rackloom_region region;
    rackloom_text text;
    rackloom_pool_statistics statistics = {.size = sizeof statistics};
    rackloom_block_pool_options options = {.size = sizeof options, .region = 44, .key = 7, .bytes = 4096};
    rackloom_block_pool_options broken = options;
    uint64_t bytes;
    BAD_HANDLES(NODE, rackloom_block_pool_create(h, &options, &made));
    EXPECT(NULL_POINTER, rackloom_block_pool_create(first, NULL, &made));
    EXPECT(NULL_POINTER, rackloom_block_pool_create(first, &options, NULL));
    broken.size = 8;
    EXPECT(BAD_SIZE, rackloom_block_pool_create(first, &broken, &made));
    broken = options;
    broken.access = 99;
    EXPECT(BAD_ARGUMENT, rackloom_block_pool_create(first, &broken, &made));
    broken = options;
    broken.reserved_bytes_max = 4095;
    EXPECT(BAD_ARGUMENT, rackloom_block_pool_create(first, &broken, &made));
    broken = options;
    broken.region = 1;
    EXPECT(REGION_EXISTS, rackloom_block_pool_create(first, &broken, &made));
    broken = options;
    broken.bytes = UINT64_MAX;
    EXPECT(SYSTEM, rackloom_block_pool_create(first, &broken, &made));
    broken.bytes = UINT64_MAX / 4;
    EXPECT(SYSTEM, rackloom_block_pool_create(first, &broken, &made));
    OK(rackloom_block_pool_create(first, &options, &made));
    OK(rackloom_block_allocate(made, 0, 64, 0, "other", &other));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_allocate(h, 0, 64, 0, "tag", &block));
    EXPECT(NULL_POINTER, rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 0, NULL, &block));
    EXPECT(NULL_POINTER, rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 0, "tag", NULL));
    EXPECT(BAD_ARGUMENT, rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 0, "\xff\xfe", &block));
    EXPECT(BAD_ARGUMENT, rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 3, "tag", &block));
    EXPECT(BAD_ARGUMENT, rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 8192, "tag", &block));
    EXPECT(BAD_ARGUMENT, rackloom_block_allocate(live[BLOCK_POOL], 65536, 64, 0, "tag", &block));
    EXPECT(NO_SPACE, rackloom_block_allocate(live[BLOCK_POOL], 0, 4097, 0, "tag", &block));
    EXPECT(NO_SPACE, rackloom_block_allocate(live[BLOCK_POOL], 0, UINT64_MAX, 0, "tag", &block));
    OK(rackloom_block_allocate(live[BLOCK_POOL], 0, 64, 0, "tag", &block));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_address(h, block, 0, &address));
    EXPECT(NULL_POINTER, rackloom_block_address(live[BLOCK_POOL], block, 0, NULL));
    EXPECT(INVALID, rackloom_block_address(live[BLOCK_POOL], block, 65, &address));
    EXPECT(INVALID, rackloom_block_address(live[BLOCK_POOL], block, UINT64_MAX, &address));
    EXPECT(INVALID, rackloom_block_address(live[BLOCK_POOL], other, 0, &address));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_region(h, block, &region));
    EXPECT(NULL_POINTER, rackloom_block_region(live[BLOCK_POOL], block, NULL));
    EXPECT(INVALID, rackloom_block_region(live[BLOCK_POOL], other, &region));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_free(h, block));
    EXPECT(INVALID, rackloom_block_free(live[BLOCK_POOL], other));
    forged = block;
    forged.serial++;
    EXPECT(INVALID, rackloom_block_free(live[BLOCK_POOL], forged));
    forged = block;
    forged.offset = UINT64_MAX;
    EXPECT(INVALID, rackloom_block_address(live[BLOCK_POOL], forged, 0, &address));
    OK(rackloom_block_free(live[BLOCK_POOL], block));
    EXPECT(INVALID, rackloom_block_free(live[BLOCK_POOL], block));
    EXPECT(INVALID, rackloom_block_address(live[BLOCK_POOL], block, 0, &address));
    EXPECT(INVALID, rackloom_block_region(live[BLOCK_POOL], block, &region));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_trim(h, 0, NULL));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_set_quota(h, 0, 64));
    EXPECT(BAD_ARGUMENT, rackloom_block_pool_set_quota(live[BLOCK_POOL], 65536, 64));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_usage(h, 0, &bytes, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_block_pool_usage(live[BLOCK_POOL], 65536, &bytes, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_block_pool_usage(live[BLOCK_POOL], 0, (uint64_t *)((char *)&bytes + 1), NULL));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_counters(h, &statistics));
    EXPECT(NULL_POINTER, rackloom_block_pool_counters(live[BLOCK_POOL], NULL));
    statistics.size = 8;
    EXPECT(BAD_SIZE, rackloom_block_pool_counters(live[BLOCK_POOL], &statistics));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_reset_high(h));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_leaks(h, &text));
    EXPECT(NULL_POINTER, rackloom_block_pool_leaks(live[BLOCK_POOL], NULL));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_on_leak(h, report_nothing, NULL));
    EXPECT(NULL_POINTER, rackloom_block_pool_on_leak(live[BLOCK_POOL], NULL, NULL));
    BAD_HANDLES(BLOCK_POOL, rackloom_block_pool_free(h));
    OK(rackloom_block_pool_free(made));
    EXPECT(FREED_HANDLE, rackloom_block_free(made, other));
}

static void command_queues(void) {
    rackloom_command_queue made;
    rackloom_command_ring ring;
    rackloom_command command = {.kind = 99};
    uint64_t ticket, value;
    uint32_t status;
    /* These handles exist in this function only: a node with an open ring does not sleep. */
    OK(rackloom_command_queue_create(first, 2, &freed[RING]));
    OK(rackloom_command_queue_create(first, 2, &live[RING]));
    OK(rackloom_command_queue_free(freed[RING]));
    BAD_HANDLES(NODE, rackloom_command_queue_create(h, 2, &made));
    EXPECT(NULL_POINTER, rackloom_command_queue_create(first, 2, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_command_queue_create(first, 0, &made));
    EXPECT(BAD_ARGUMENT, rackloom_command_queue_create(first, 65537, &made));
    EXPECT(BAD_ARGUMENT, rackloom_command_queue_create(first, UINT32_MAX, &made));
    EXPECT(INVALID, rackloom_command_queue_create(second, 2, &made));
    BAD_HANDLES(RING, rackloom_command_queue_ring(h, &ring));
    EXPECT(NULL_POINTER, rackloom_command_queue_ring(live[RING], NULL));
    BAD_HANDLES(RING, rackloom_command_queue_issue(h, &command, &ticket));
    EXPECT(NULL_POINTER, rackloom_command_queue_issue(live[RING], NULL, &ticket));
    EXPECT(NULL_POINTER, rackloom_command_queue_issue(live[RING], &command, NULL));
    BAD_HANDLES(RING, rackloom_command_queue_poll(h, 0, &status, &value));
    EXPECT(NULL_POINTER, rackloom_command_queue_poll(live[RING], 0, NULL, &value));
    EXPECT(EMPTY, rackloom_command_queue_poll(live[RING], 0, &status, &value));
    EXPECT(EMPTY, rackloom_command_queue_poll(live[RING], UINT64_MAX, &status, &value));
    BAD_HANDLES(RING, rackloom_command_queue_losses(h, &value));
    EXPECT(NULL_POINTER, rackloom_command_queue_losses(live[RING], NULL));
    BAD_HANDLES(RING, rackloom_command_queue_free(h));
    OK(rackloom_command_queue_free(live[RING]));
    if (strstr(rackloom_kernel_header(), "struct rackloom_command {") == NULL) {
        fprintf(stderr, "the header of kernels is missing\n");
        failures++;
    }
}

static void composites(void) {
    rackloom_address beyond = target;
    rackloom_slice wrong = slice;
    rackloom_piece piece = {.local = slice, .remote = target}, broken = piece;
    rackloom_strided layout = {.blocks = 2, .block_bytes = 8, .local_stride = 8, .remote_stride = 8}, wide = layout;
    beyond.node = 70000;
    wrong.region = freed[REGION];
    wide.local_stride = 4096;
    BAD_HANDLES(NODE, rackloom_vector_submit(h, RACKLOOM_PUT, &piece, 1, queue, 1, NULL));
    BAD_HANDLES(QUEUE, rackloom_vector_submit(first, RACKLOOM_PUT, &piece, 1, h, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_vector_submit(first, RACKLOOM_STORE, &piece, 1, queue, 1, NULL));
    EXPECT(NULL_POINTER, rackloom_vector_submit(first, RACKLOOM_PUT, NULL, 1, queue, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_vector_submit(first, RACKLOOM_PUT, &piece, UINT64_MAX, queue, 1, NULL));
    uint64_t *misaligned = (uint64_t *)((char *)&piece + 1);
    EXPECT(BAD_ARGUMENT, rackloom_vector_submit(first, RACKLOOM_PUT, &piece, 1, queue, 1, misaligned));
    broken.local.region = freed[REGION];
    EXPECT(FREED_HANDLE, rackloom_vector_submit(first, RACKLOOM_PUT, &broken, 1, queue, 1, NULL));
    broken.local.region = theirs;
    EXPECT(INVALID, rackloom_vector_submit(first, RACKLOOM_PUT, &broken, 1, queue, 1, NULL));
    broken = piece;
    broken.remote.node = 70000;
    EXPECT(NO_SUCH_NODE, rackloom_vector_submit(first, RACKLOOM_GET, &broken, 1, queue, 1, NULL));
    BAD_HANDLES(NODE, rackloom_strided_submit(h, RACKLOOM_PUT, slice, target, &layout, queue, 1, NULL));
    BAD_HANDLES(QUEUE, rackloom_strided_submit(first, RACKLOOM_PUT, slice, target, &layout, h, 1, NULL));
    EXPECT(BAD_ARGUMENT, rackloom_strided_submit(first, 0, slice, target, &layout, queue, 1, NULL));
    EXPECT(NULL_POINTER, rackloom_strided_submit(first, RACKLOOM_PUT, slice, target, NULL, queue, 1, NULL));
    EXPECT(INVALID, rackloom_strided_submit(first, RACKLOOM_PUT, slice, target, &wide, queue, 1, NULL));
    wide.blocks = wide.block_bytes = wide.remote_stride = UINT64_MAX;
    EXPECT(INVALID, rackloom_strided_submit(first, RACKLOOM_GET, slice, target, &wide, queue, 1, NULL));
    EXPECT(FREED_HANDLE, rackloom_strided_submit(first, RACKLOOM_PUT, wrong, target, &layout, queue, 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_strided_submit(first, RACKLOOM_PUT, slice, beyond, &layout, queue, 1, NULL));
    BAD_HANDLES(NODE, rackloom_put_with_immediate_submit(h, slice, target, 5, queue, 1, NULL));
    BAD_HANDLES(QUEUE, rackloom_put_with_immediate_submit(first, slice, target, 5, h, 1, NULL));
    EXPECT(FREED_HANDLE, rackloom_put_with_immediate_submit(first, wrong, target, 5, queue, 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_put_with_immediate_submit(first, slice, beyond, 5, queue, 1, NULL));
}

static void allocations(void) {
    rackloom_exported_region exported = {{0}};
    rackloom_pointer_attributes attributes = {.size = sizeof attributes};
    rackloom_address address;
    rackloom_peer_region mapped;
    rackloom_text text;
    uint32_t access;
    uint64_t length;
    void *start;
    OK(rackloom_region_pointer(own, &start));
    BAD_HANDLES(NODE, rackloom_node_pointer_attributes(h, (uintptr_t)start, &attributes));
    EXPECT(NULL_POINTER, rackloom_node_pointer_attributes(first, (uintptr_t)start, NULL));
    EXPECT(INVALID, rackloom_node_pointer_attributes(first, 1, &attributes));
    attributes.size = 8;
    EXPECT(BAD_SIZE, rackloom_node_pointer_attributes(first, (uintptr_t)start, &attributes));
    BAD_HANDLES(NODE, rackloom_node_allocations(h, &text));
    EXPECT(NULL_POINTER, rackloom_node_allocations(first, NULL));
    BAD_HANDLES(NODE, rackloom_node_on_leak(h, report_nothing, NULL));
    EXPECT(NULL_POINTER, rackloom_node_on_leak(first, NULL, NULL));
    BAD_HANDLES(REGION, rackloom_region_set_access(h, 1, RACKLOOM_ACCESS_READ));
    EXPECT(BAD_ARGUMENT, rackloom_region_set_access(own, 1, 0));
    EXPECT(NO_SUCH_NODE, rackloom_region_set_access(own, 9, RACKLOOM_ACCESS_READ));
    BAD_HANDLES(REGION, rackloom_region_access(h, 1, &access));
    EXPECT(NULL_POINTER, rackloom_region_access(own, 1, NULL));
    EXPECT(NO_SUCH_NODE, rackloom_region_access(own, 70000, &access));
    BAD_HANDLES(REGION, rackloom_region_export(h, &exported));
    EXPECT(NULL_POINTER, rackloom_region_export(own, NULL));
    EXPECT(INVALID, rackloom_exported_region_address(&exported, &address, &length));
    EXPECT(NULL_POINTER, rackloom_exported_region_address(NULL, &address, &length));
    EXPECT(INVALID, rackloom_peer_region_import(first, &exported, 0, &mapped));
    OK(rackloom_region_export(theirs, &exported));
    BAD_HANDLES(NODE, rackloom_peer_region_import(h, &exported, 0, &mapped));
    EXPECT(NULL_POINTER, rackloom_peer_region_import(first, NULL, 0, &mapped));
    EXPECT(NULL_POINTER, rackloom_peer_region_import(first, &exported, 0, NULL));
    OK(rackloom_exported_region_address(&exported, NULL, NULL));
}

/* ---- other threads ------------------------------------------------------------------------------------------------ */

static atomic_int is_waiting;

static void *wait_for_pending(void *argument) {
    rackloom_completion end;
    rackloom_error error;
    do {
        is_waiting = 1;
        error = rackloom_pending_wait(*(uint64_t *)argument, RACKLOOM_FOREVER, &end);
    } while (error == RACKLOOM_ERROR_IN_USE);
    return (void *)(intptr_t)error;
}

/* A second thread gets IN_USE while the first one waits, and may free the handle or cancel the operation meanwhile. */
static void one_thread_at_a_time(void) {
    rackloom_operation receive = operation(RACKLOOM_RECEIVE);
    receive.peer = 1;
    receive.tag = 77;
    for (int round = 0; round < 2; round++) {
        rackloom_pending pending;
        uint64_t number;
        uint32_t has_ended;
        OK(rackloom_operation_start(first, &receive, &pending));
        OK(rackloom_pending_operation(pending, &number));
        uint64_t handle = pending;
        is_waiting = 0;
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_pending, &handle) != 0) {
            abort();
        }
        while (!is_waiting) {
            sched_yield();
        }
        rackloom_error found;
        /* The other thread is about to take the handle. */
        while ((found = rackloom_pending_test(pending, &has_ended)) == RACKLOOM_ERROR_OK) {
            sched_yield();
        }
        expect(found, RACKLOOM_ERROR_IN_USE, "a test during a wait", __LINE__);
        EXPECT(IN_USE, rackloom_pending_cancel(pending));
        if (round == 0) {
            OK(rackloom_pending_free(pending));
        }
        OK(rackloom_node_cancel(first, number));
        void *result;
        pthread_join(thread, &result);
        expect((rackloom_error)(intptr_t)result, RACKLOOM_ERROR_FAILED, "a wait that is cancelled", __LINE__);
        if (round == 1) {
            OK(rackloom_pending_free(pending));
        }
        EXPECT(FREED_HANDLE, rackloom_pending_free(pending));
    }
}

static void *wait_for_collective(void *argument) {
    rackloom_error error;
    do {
        is_waiting = 1;
        error = rackloom_collective_request_wait(*(uint64_t *)argument, RACKLOOM_FOREVER);
    } while (error == RACKLOOM_ERROR_IN_USE);
    return (void *)(intptr_t)error;
}

/* A collective in progress has one user at a time. Its result is returned once. */
static void one_thread_waits_for_a_collective(void) {
    uint32_t members[2] = {0, 1}, has_ended;
    /* A structure of the first version, which had no lanes: the last field is not read. */
    rackloom_group_options options = {.size = offsetof(rackloom_group_options, lanes),
                                      .region = 80,
                                      .key = 7,
                                      .join_timeout_ns = 600000000000,
                                      .lanes = 65};
    rackloom_collective barrier = {.size = sizeof barrier, .kind = RACKLOOM_BARRIER};
    rackloom_group mine, other;
    rackloom_collective_request started;
    OK(rackloom_group_join(first, &options, members, 2, &mine));
    OK(rackloom_collective_start(mine, &barrier, &started));
    uint64_t handle = started;
    is_waiting = 0;
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_collective, &handle) != 0) {
        abort();
    }
    while (!is_waiting) {
        sched_yield();
    }
    rackloom_error found;
    while ((found = rackloom_collective_request_test(started, &has_ended)) == RACKLOOM_ERROR_OK) {
        sched_yield();
    }
    expect(found, RACKLOOM_ERROR_IN_USE, "a test during a wait for a collective", __LINE__);
    EXPECT(IN_USE, rackloom_collective_request_wait(started, 0));
    OK(rackloom_group_join(second, &options, members, 2, &other));
    OK(rackloom_group_barrier(other));
    void *result;
    pthread_join(thread, &result);
    expect((rackloom_error)(intptr_t)result, RACKLOOM_ERROR_OK, "a collective of both members", __LINE__);
    EXPECT(CLOSED, rackloom_collective_request_wait(started, 0));
    OK(rackloom_collective_free(started));
    EXPECT(FREED_HANDLE, rackloom_collective_free(started));
    OK(rackloom_group_free(mine));
    OK(rackloom_group_free(other));
}

/* Members that join with different numbers of lanes are in different groups. */
static void lanes_are_equal_on_all_members(void) {
    uint32_t members[2] = {0, 1};
    rackloom_group_options options = {
        .size = sizeof options, .region = 81, .key = 7, .join_timeout_ns = 600000000000, .lanes = 2};
    rackloom_collective barrier = {.size = sizeof barrier, .kind = RACKLOOM_BARRIER};
    rackloom_group mine, other;
    rackloom_collective_request started;
    OK(rackloom_group_join(first, &options, members, 2, &mine));
    OK(rackloom_collective_start(mine, &barrier, &started));
    options.lanes = 3;
    OK(rackloom_group_join(second, &options, members, 2, &other));
    EXPECT(GROUP_BROKEN, rackloom_group_barrier(other));
    EXPECT(GROUP_BROKEN, rackloom_collective_request_wait(started, RACKLOOM_FOREVER));
    OK(rackloom_collective_free(started));
    OK(rackloom_group_free(mine));
    OK(rackloom_group_free(other));
}

static void *use_until_freed(void *argument) {
    uint64_t region = *(uint64_t *)argument, word = 0;
    rackloom_error error;
    while ((error = rackloom_region_read(region, 0, &word, sizeof word)) == RACKLOOM_ERROR_OK) {
        is_waiting = 1;
    }
    return (void *)(intptr_t)error;
}

/* Handles that one thread frees while others use them. */
static void free_in_use(void) {
    for (uint32_t round = 0; round < 20; round++) {
        rackloom_region_options options = region_options(100 + round);
        rackloom_region region;
        OK(rackloom_region_allocate(first, &options, 64, &region));
        uint64_t handle = region;
        pthread_t threads[2];
        is_waiting = 0;
        for (int index = 0; index < 2; index++) {
            if (pthread_create(&threads[index], NULL, use_until_freed, &handle) != 0) {
                abort();
            }
        }
        while (!is_waiting) {
            sched_yield();
        }
        OK(rackloom_region_free(region));
        for (int index = 0; index < 2; index++) {
            void *result;
            pthread_join(threads[index], &result);
            expect((rackloom_error)(intptr_t)result, RACKLOOM_ERROR_FREED_HANDLE, "a read after the end", __LINE__);
        }
    }
}

/* After the node has left, operations end with CLOSED. */
static void after_the_end(void) {
    OK(rackloom_node_leave(first));
    EXPECT(CLOSED, rackloom_flush(first, RACKLOOM_ANY_NODE));
    rackloom_region_options options = region_options(200);
    rackloom_region region;
    EXPECT(CLOSED, rackloom_region_allocate(first, &options, 64, &region));
    rackloom_pool_options kept = {.size = sizeof kept};
    rackloom_pool pool;
    EXPECT(CLOSED, rackloom_pool_create(first, &kept, &pool));
    rackloom_block_pool_options some = {.size = sizeof some, .region = 201, .key = 7, .bytes = 64};
    rackloom_block_pool blocks;
    EXPECT(CLOSED, rackloom_block_pool_create(first, &some, &blocks));
    rackloom_command_queue ring;
    EXPECT(CLOSED, rackloom_command_queue_create(first, 2, &ring));
    EXPECT(CLOSED, rackloom_put_with_immediate_submit(first, slice, target, 5, queue, 1, NULL));
    OK(rackloom_region_free(on_device));
    EXPECT(CLOSED, rackloom_node_leave_in_order(first, 0));
    OK(rackloom_region_free(own));
    OK(rackloom_region_free(theirs));
    OK(rackloom_queue_free(queue));
    OK(rackloom_node_free(first));
    OK(rackloom_node_free(second));
    OK(rackloom_fabric_free(fabric));
    EXPECT(FREED_HANDLE, rackloom_fabric_free(fabric));
}

static void free_live_handles(void) {
    OK(rackloom_block_pool_free(live[BLOCK_POOL]));
    OK(rackloom_pool_free(live[POOL]));
    OK(rackloom_persistent_free(live[PERSISTENT]));
    OK(rackloom_reduction_free(live[REDUCTION]));
    OK(rackloom_text_free(live[TEXT]));
    OK(rackloom_collective_free(live[COLLECTIVE]));
    OK(rackloom_group_free(live[GROUP]));
    OK(rackloom_driver_free(live[DRIVER]));
    OK(rackloom_queue_free(live[QUEUE]));
    OK(rackloom_pending_cancel(live[PENDING]));
    EXPECT(FAILED, rackloom_pending_wait(live[PENDING], RACKLOOM_FOREVER, NULL));
    OK(rackloom_pending_free(live[PENDING]));
    OK(rackloom_peer_region_free(live[PEER_REGION]));
    OK(rackloom_region_free(live[REGION]));
    OK(rackloom_node_free(live[NODE]));
    OK(rackloom_fabric_free(live[FABRIC]));
}

int main(int count, char **arguments) {
    if (count < 2) {
        fprintf(stderr, "usage: misuse RACKLOOM\n");
        return 2;
    }
    set_up();
    fill_handles();
    library();
    fabrics();
    racks(arguments[1]);
    live_rack(arguments[1]);
    nodes();
    regions();
    peer_regions();
    operations();
    pendings();
    queues();
    drivers();
    groups();
    forms_of_arrays();
    reductions();
    persistents();
    pools();
    block_pools();
    command_queues();
    composites();
    allocations();
    one_thread_at_a_time();
    one_thread_waits_for_a_collective();
    lanes_are_equal_on_all_members();
    free_in_use();
    free_live_handles();
    after_the_end();
    printf("%d checks, %d failed\n", checks, failures);
    return failures > 0;
}
