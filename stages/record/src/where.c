/* What `hopmap reorder --where` starts in place of a program: prints the rank that the program would have, and where it is. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d on %s\n", rank, argc > 1 ? argv[1] : "");
    MPI_Finalize();
    return 0;
}
