/* Tests of four nodes in one process, a thread for each: the fabric, a meeting of all threads, and checks. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <rackloom.h>

enum { NODES = 4 };

static rackloom_fabric fabric;
static pthread_barrier_t meeting;
static atomic_int failures = 0;

static void expect(int is_right, const char *what, uint32_t me, int line) {
    if (!is_right) {
        char text[512] = "";
        rackloom_last_error(text, sizeof text, NULL);
        fprintf(stderr, "line %d, node %" PRIu32 ": %s; last error: %s\n", line, me, what, text);
        failures++;
    }
}

#define TRUE(condition) expect((condition), #condition, me, __LINE__)
#define CODE(code, call) expect((call) == RACKLOOM_ERROR_##code, #call " is not " #code, me, __LINE__)
#define OK(call) CODE(OK, call)

/* Runs each node of a rack in a thread. Returns the exit code of the program. */
static int run_nodes(const char *rack, const char *name, void *(*run_node)(void *)) {
    pthread_t threads[NODES];
    if (rackloom_fabric_local(rack, name, &fabric) != RACKLOOM_ERROR_OK ||
        pthread_barrier_init(&meeting, NULL, NODES) != 0) {
        fprintf(stderr, "the rack cannot be made\n");
        return 1;
    }
    for (uintptr_t index = 0; index < NODES; index++) {
        if (pthread_create(&threads[index], NULL, run_node, (void *)index) != 0) {
            abort();
        }
    }
    for (int index = 0; index < NODES; index++) {
        pthread_join(threads[index], NULL);
    }
    pthread_barrier_destroy(&meeting);
    rackloom_fabric_free(fabric);
    printf("%d nodes, %d failed\n", NODES, (int)failures);
    return failures > 0;
}
