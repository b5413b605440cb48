/* Two ranks of MPI doing what the rows of scripts/compare.sh ask for; prints "name value unit" lines.
 *
 * ping-pong: 64 bytes there and back. rate: messages of a size one way, 256 in flight. all-reduce: 1 MiB of f32, sum.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 256, TRIPS = 20000, MESSAGES = 100000, REDUCTIONS = 200, ELEMENTS = 1 << 18 };

static double ping_pong_ns(int rank) {
    char word[64] = {0};
    double begun = 0;
    for (int trip = -100; trip < TRIPS; trip++) {
        if (trip == 0) begun = MPI_Wtime();
        if (rank == 0) MPI_Send(word, sizeof word, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(word, sizeof word, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(word, sizeof word, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - begun) / TRIPS * 1e9;
}

static double messages_per_s(int rank, int bytes, char *memory) {
    MPI_Request in_flight[WINDOW];
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int done = 0; done < MESSAGES; done += WINDOW) {
        for (int slot = 0; slot < WINDOW; slot++) {
            char *at = memory + (size_t)slot * bytes;
            if (rank == 0) MPI_Isend(at, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD, &in_flight[slot]);
            else MPI_Irecv(at, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &in_flight[slot]);
        }
        MPI_Waitall(WINDOW, in_flight, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return (MESSAGES + WINDOW - 1) / WINDOW * WINDOW / (MPI_Wtime() - begun);
}

static double all_reduce_ns(float *from, float *to) {
    MPI_Allreduce(from, to, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int turn = 0; turn < REDUCTIONS; turn++)
        MPI_Allreduce(from, to, ELEMENTS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - begun) / REDUCTIONS * 1e9;
}

int main(int count, char **words) {
    int rank;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = calloc(WINDOW, 4096);
    float *from = calloc(ELEMENTS, sizeof *from), *to = calloc(ELEMENTS, sizeof *to);
    if (!memory || !from || !to) MPI_Abort(MPI_COMM_WORLD, 1);
    double trip = ping_pong_ns(rank), small = messages_per_s(rank, 64, memory);
    double large = messages_per_s(rank, 4096, memory), reduction = all_reduce_ns(from, to);
    if (rank == 0) printf("round-trip %.1f\nrate-64 %.1f\nrate-4096 %.1f\nall-reduce %.1f\n", trip, small, large, reduction);
    MPI_Finalize();
    return 0;
}
