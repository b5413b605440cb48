/* A parameter server on a standing rack: workers in processes of their own push gradients, and a link loses frames meanwhile.
 *
 * Node n0 owns the parameters, and its process computes nothing. A worker pulls the parameters, computes the gradient on its own points, and pushes it
 * with atomics, which complete in a queue. Parameters are integers in units of 2^-20, because an atomic adds integers; so no push is lost in any
 * order. The task is to fit a straight line to points that are distributed over the workers.
 *
 *     parameter_server RACKLOOM WORKERS ROUNDS        # RACKLOOM: path of the program `rackloom`
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rackloom.h>

enum { POINTS = 16, WORKERS_MAX = 8, KEY = 0x5eed };
static const double ONE = 1 << 20;
static const uint64_t LONG_NS = 60000000000;

/* Memory of the server: the line, a word that says that the work begins, and a word of each worker that says that it has finished. */
struct parameters {
    int64_t slope, intercept;
    uint64_t begins, finished[WORKERS_MAX];
};

static uint64_t finished_word(uint32_t worker) {
    return offsetof(struct parameters, finished) + (worker - 1) * sizeof(uint64_t);
}

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

static rackloom_node join(const char *rack, const char *seat) {
    rackloom_node node;
    CHECK(rackloom_node_join(rack, seat, &node));
    return node;
}

/* Lets every link lose one frame in a hundred from now on, which must not change the result. All seats are taken. */
static void lose_frames(const char *name) {
    rackloom_rack rack;
    rackloom_text status;
    const char *json;
    uint64_t events = 0;
    CHECK(rackloom_rack_connect(name, &rack));
    CHECK(rackloom_rack_inject(rack, "name: loss\nevents: [{what: loss, where: all, rate: 1%}]\n", &events));
    CHECK(rackloom_rack_status(rack, &status));
    CHECK(rackloom_text_data(status, &json, NULL));
    printf("%" PRIu64 " fault injected; %s\n", events, strstr(json, name) ? "the rack is up" : "the status lacks its name");
    CHECK(rackloom_text_free(status));
    CHECK(rackloom_rack_free(rack));
}

/* The server: waits for the workers, begins, waits until all workers have finished, and reads the line. */
static int serve(const char *rack, uint32_t workers, const int alive[2]) {
    rackloom_node node = join(rack, "n0");
    rackloom_region region;
    rackloom_region_options options = {.size = sizeof options, .region = 1, .key = KEY};
    CHECK(rackloom_region_allocate(node, &options, sizeof(struct parameters), &region));
    for (uint32_t worker = 1; worker <= workers; worker++) {
        CHECK(rackloom_node_wait_until_reached(node, &worker, 1, LONG_NS));
    }
    lose_frames(rack);
    uint64_t begins = 1;
    CHECK(rackloom_region_write(region, offsetof(struct parameters, begins), &begins, sizeof begins));
    for (uint32_t worker = 1; worker <= workers; worker++) {
        /* The death of the worker ends the wait with PEER_LOST. */
        CHECK(rackloom_wait_until(node, region, finished_word(worker), RACKLOOM_EQUAL, 1, worker, NULL));
    }
    struct parameters found;
    CHECK(rackloom_region_read(region, 0, &found, sizeof found));
    double slope = (double)found.slope / ONE, intercept = (double)found.intercept / ONE;
    printf("y = %.4f x + %.4f (the points lie on y = 3 x - 2)\n", slope, intercept);
    fflush(stdout);
    /* A worker needs the server until its last store is acknowledged. The pipe ends with the last worker. */
    char none;
    close(alive[1]);
    if (read(alive[0], &none, 1) < 0) {
        perror("a pipe");
    }
    CHECK(rackloom_region_free(region));
    CHECK(rackloom_node_free(node));
    int is_right = slope > 2.9 && slope < 3.1 && intercept > -2.1 && intercept < -1.9;
    return is_right ? 0 : 1;
}

/* Begins an atomic addition to a parameter. Its completion arrives in the queue. */
static void push(rackloom_node node, rackloom_queue queue, rackloom_address word, double gradient) {
    double step = -0.05 * gradient * ONE;
    rackloom_operation add = {.size = sizeof add,
                              .kind = RACKLOOM_ATOMIC,
                              .target = word,
                              .atomic = RACKLOOM_FETCH_ADD,
                              .word = RACKLOOM_I64,
                              .operand = (uint64_t)(int64_t)(step < 0 ? step - 0.5 : step + 0.5)};
    rackloom_error error;
    while ((error = rackloom_operation_submit(node, &add, queue, word.offset, NULL)) == RACKLOOM_ERROR_BUSY) {
    }
    check(error, "rackloom_operation_submit");
}

/* Takes `count` completions. The file descriptor of the queue is readable while one waits. */
static void take(rackloom_queue queue, int descriptor, int count) {
    while (count > 0) {
        rackloom_completion completion;
        rackloom_error error = rackloom_queue_pop(queue, &completion);
        if (error == RACKLOOM_ERROR_EMPTY) {
            /* The background thread of the node drives it meanwhile. */
            struct pollfd readable = {.fd = descriptor, .events = POLLIN};
            poll(&readable, 1, 10000);
            continue;
        }
        check(error, "rackloom_queue_pop");
        if (completion.error != RACKLOOM_ERROR_OK) {
            fprintf(stderr, "a push: %s\n", rackloom_error_text(completion.error));
            exit(1);
        }
        count--;
    }
}

static int work(const char *rack, uint32_t worker, int rounds) {
    char seat[16];
    snprintf(seat, sizeof seat, "n%" PRIu32, worker);
    rackloom_node node = join(rack, seat);
    uint32_t server = 0;
    CHECK(rackloom_node_wait_until_reached(node, &server, 1, LONG_NS));
    rackloom_region region;
    rackloom_region_options options = {.size = sizeof options, .region = 1, .key = KEY};
    CHECK(rackloom_region_allocate(node, &options, 2 * sizeof(int64_t), &region));
    rackloom_queue queue;
    int descriptor;
    CHECK(rackloom_queue_create(4, &queue));
    CHECK(rackloom_queue_descriptor(queue, &descriptor));
    rackloom_address slope = {.node = server, .region = 1, .offset = 0, .key = KEY};
    rackloom_address intercept = slope, finished = slope;
    intercept.offset = offsetof(struct parameters, intercept);
    finished.offset = finished_word(worker);
    rackloom_slice local = {.region = region, .offset = 0, .length = 2 * sizeof(int64_t)};

    rackloom_address begins = slope;
    begins.offset = offsetof(struct parameters, begins);
    for (uint64_t word = 0; word == 0;) {
        rackloom_slice into = {.region = region, .offset = 0, .length = sizeof word};
        rackloom_error error = rackloom_load(node, begins, into);
        if (error == RACKLOOM_ERROR_OK) {
            CHECK(rackloom_region_read(region, 0, &word, sizeof word));
        } else if (error != RACKLOOM_ERROR_REFUSED) {
            check(error, "rackloom_load");
        }
        /* A refusal says that the server has not allocated its region yet. */
        poll(NULL, 0, 1);
    }
    for (int round = 0; round < rounds; round++) {
        CHECK(rackloom_load(node, slope, local));
        int64_t units[2];
        CHECK(rackloom_region_read(region, 0, units, sizeof units));
        double a = (double)units[0] / ONE, b = (double)units[1] / ONE, of_a = 0, of_b = 0;
        for (int point = 0; point < POINTS; point++) {
            double x = (point + worker / 4.0) / 8.0 - 1.0;
            double error = a * x + b - (3.0 * x - 2.0);
            of_a += error * x / POINTS;
            of_b += error / POINTS;
        }
        push(node, queue, slope, of_a);
        push(node, queue, intercept, of_b);
        take(queue, descriptor, 2);
    }
    uint64_t one = 1;
    CHECK(rackloom_store(node, finished, &one, sizeof one));
    CHECK(rackloom_queue_free(queue));
    CHECK(rackloom_region_free(region));
    CHECK(rackloom_node_leave_in_order(node, LONG_NS));
    CHECK(rackloom_node_free(node));
    return 0;
}

static rackloom_rack start_rack(const char *program, const char *name, uint32_t workers) {
    char path[] = "/tmp/rackloom-server-XXXXXX", seats[WORKERS_MAX + 1][16], text[192];
    const char *vacant[WORKERS_MAX + 1];
    // Under a tool that slows programs down, such as valgrind, a node may be silent for longer than usual.
    int length = snprintf(text, sizeof text,
                          "name: %s\nshape: {star: {nodes: %" PRIu32 "}}\ntimers: {heartbeat_interval: 2s}\n", name,
                          workers + 1);
    int file = mkstemp(path);
    if (file < 0 || write(file, text, (size_t)length) != length) {
        perror("the rack file");
        exit(1);
    }
    close(file);
    for (uint32_t seat = 0; seat <= workers; seat++) {
        snprintf(seats[seat], sizeof seats[seat], "n%" PRIu32, seat);
        vacant[seat] = seats[seat];
    }
    rackloom_rack rack;
    rackloom_rack_options options = {.size = sizeof options,
                                     .program = program,
                                     .file = path,
                                     .wire = "udp",
                                     .vacant = vacant,
                                     .vacant_count = workers + 1};
    rackloom_error up = rackloom_rack_up(&options, &rack);
    unlink(path);
    check(up, "rackloom_rack_up");
    return rack;
}

static int run(const char *name, uint32_t seat, uint32_t workers, int rounds, const int alive[2]) {
    return seat == 0 ? serve(name, workers, alive) : work(name, seat, rounds);
}

int main(int count, char **arguments) {
    uint32_t workers = count > 3 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 0;
    int rounds = count > 3 ? atoi(arguments[3]) : 0;
    if (workers < 1 || workers > WORKERS_MAX || rounds < 1) {
        fprintf(stderr, "usage: parameter_server RACKLOOM WORKERS ROUNDS, with 1 to %d workers\n", WORKERS_MAX);
        return 2;
    }
    char name[32];
    snprintf(name, sizeof name, "server-%ld", (long)getpid());
    rackloom_rack rack = start_rack(arguments[1], name, workers);

    int failed = 0;
    pid_t children[WORKERS_MAX + 1];
    int alive[2];
    if (pipe(alive) < 0) {
        perror("a pipe");
        return 1;
    }
    for (uint32_t seat = 0; seat <= workers; seat++) {
        children[seat] = fork();
        if (children[seat] == 0) {
            _exit(run(name, seat, workers, rounds, alive));
        }
    }
    close(alive[1]);
    /* The rack's supervisor is a child as well, so the program waits for its own children by number. */
    for (uint32_t seat = 0; seat <= workers; seat++) {
        int status;
        failed += waitpid(children[seat], &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    rackloom_text report;
    const char *json;
    CHECK(rackloom_rack_down(rack, &report));
    CHECK(rackloom_text_data(report, &json, NULL));
    printf("%" PRIu32 " workers, %d rounds each, %d processes failed; %s\n", workers, rounds, failed,
           strstr(json, "\"loss") ? "the report names the fault" : "the report lacks the fault");
    CHECK(rackloom_text_free(report));
    CHECK(rackloom_rack_free(rack));
    return failed > 0;
}
