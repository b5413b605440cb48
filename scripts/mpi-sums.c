/* Sums of doubles over all ranks of MPI, of 1 to 1048576 elements. Ends with 1 if a sum is wrong. scripts/verbs_programs.py and scripts/ip_programs.py run it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH_MAX = 1 << 20, TURNS = 3 };

int main(int count, char **words) {
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double *own = malloc(LENGTH_MAX * sizeof *own), *sums = malloc(LENGTH_MAX * sizeof *sums);
    if (!own || !sums) MPI_Abort(MPI_COMM_WORLD, 1);
    long wrong = 0;
    for (long length = 1; length <= LENGTH_MAX; length *= 32) {
        for (int turn = 0; turn < TURNS; turn++) {
            for (long index = 0; index < length; index++) own[index] = rank + index + turn;
            MPI_Allreduce(own, sums, length, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            for (long index = 0; index < length; index++)
                wrong += sums[index] != ranks * (ranks - 1) / 2.0 + (double)ranks * (index + turn);
        }
    }
    printf("rank %d of %d: %ld wrong sums\n", rank, ranks, wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong != 0;
}
