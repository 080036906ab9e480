/* What `hopmap reorder --where` starts in place of a program: prints the rank that the program would have, and where it is. With the
 * launcher's rank of the process, as of `--verify`, it prints that too, and messages have to arrive by the new ranks. */
#include <mpi.h>
#include <stdio.h>

/* Whether a ring, a broadcast and a part of the communicator agree on the ranks. */
static int messages_arrive(int rank, int size)
{
    int before = (rank + size - 1) % size, got = -1, first = rank, in_part = -1;
    MPI_Status status;
    MPI_Comm part;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &part);
    MPI_Comm_rank(part, &in_part);
    MPI_Comm_free(&part);
    return got == before && status.MPI_SOURCE == before && first == 0 && in_part == rank / 2;
}

int main(int argc, char **argv)
{
    int rank = 0, size = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 2 && messages_arrive(rank, size)) printf("process %s is rank %d on %s\n", argv[2], rank, argv[1]);
    else if (argc > 2) fprintf(stderr, "hopmap reorder: messages do not reach rank %d by the new ranks\n", rank);
    else printf("rank %d on %s\n", rank, argv[1]);
    MPI_Finalize();
    return 0;
}
