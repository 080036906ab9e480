/* Four ranks send in every way, around a ring and through a communicator of two. Started by `smpirun`. */
#include <mpi.h>

static char from[4096], to[4096], attached[65536];

/* Even ranks to the next even one, odd ranks to the next odd one: 10 messages of 1 + … + 8 ints and 2 × 9 shorts. */
static void through_pairs(int rank)
{
    MPI_Comm pair;
    MPI_Request request;
    int inside;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &pair);
    MPI_Comm_rank(pair, &inside);
    MPI_Buffer_attach(attached, sizeof attached);
    if (inside == 0) {
        MPI_Send(from, 1, MPI_INT, 1, 1, pair);
        MPI_Isend(from, 2, MPI_INT, 1, 1, pair, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ssend(from, 3, MPI_INT, 1, 1, pair);
        MPI_Issend(from, 4, MPI_INT, 1, 1, pair, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Bsend(from, 5, MPI_INT, 1, 1, pair);
        MPI_Ibsend(from, 6, MPI_INT, 1, 1, pair, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Rsend(from, 7, MPI_INT, 1, 1, pair);
        MPI_Send_init(from, 8, MPI_INT, 1, 1, pair, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(from, 9, MPI_INT, MPI_PROC_NULL, 1, pair);
    } else {
        for (int message = 0; message < 7; message++)
            MPI_Recv(to, 100, MPI_INT, 0, 1, pair, MPI_STATUS_IGNORE);
        MPI_Recv_init(to, 8, MPI_INT, 0, 1, pair, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Sendrecv(from, 9, MPI_SHORT, 1 - inside, 1, to, 9, MPI_SHORT, 1 - inside, 1, pair, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(from, 9, MPI_SHORT, 1 - inside, 1, 1 - inside, 1, pair, MPI_STATUS_IGNORE);
}

int main(int count, char **arguments)
{
    int rank, ranks;
    MPI_Request requests[2];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Irecv(to, 100, MPI_DOUBLE, (rank + ranks - 1) % ranks, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(from, 100, MPI_DOUBLE, (rank + 1) % ranks, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    through_pairs(rank);
    MPI_Allreduce(from, to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
