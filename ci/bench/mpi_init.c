/* Writes the seconds that MPI_Init takes on the slowest process to a file: `mpi_init FILE`. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

int main(int argc, char **argv)
{
    double begin = now();
    MPI_Init(&argc, &argv);
    double own = now() - begin, slowest;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    FILE *file = rank == 0 && argc == 2 ? fopen(argv[1], "w") : NULL;
    if (file) { fprintf(file, "%.3f\n", slowest); fclose(file); }
    MPI_Finalize();
}
