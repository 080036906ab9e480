/* Receives in all ways, with two ranks: wildcards, and no status for the program. Every rank sends what it receives. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define B MPI_BYTE
#define WORLD MPI_COMM_WORLD
#define ANY MPI_ANY_SOURCE, MPI_ANY_TAG

enum { MANY = 300, LONG = 200000 };
static int rank, peer;
static char out[LONG], in[MANY][LONG / 64], large[LONG];

static void check(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(WORLD, 1);
}

/* Messages of 1, 2, … bytes with tags 10, 11, …, whose receives are posted in the other order. */
static void post(MPI_Request *requests, int count)
{
    for (int at = 0; at < count; at++) MPI_Irecv(in[at], LONG / 64, B, ANY, WORLD, &requests[at]);
    MPI_Barrier(WORLD);
    for (int at = count - 1; at >= 0; at--) MPI_Isend(out, at + 1, B, peer, 10 + at, WORLD, &requests[count + at]);
}

static void waits(void)
{
    MPI_Request requests[2 * MANY];
    MPI_Status status, statuses[2 * MANY];
    int index, count, indices[2 * MANY], flag;
    post(requests, MANY);
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
    post(requests, 4);
    MPI_Waitall(8, requests, statuses);
    check(statuses[0].MPI_TAG == 13, "the first receive has the last message");
    post(requests, 5);
    for (int at = 0; at < 10; at++) MPI_Waitany(10, requests, &index, MPI_STATUS_IGNORE);
    MPI_Waitany(10, requests, &index, &status);
    check(index == MPI_UNDEFINED, "no request is left");
    post(requests, 6);
    for (int done = 0; done < 12; done += count) MPI_Waitsome(12, requests, &count, indices, MPI_STATUSES_IGNORE);
    post(requests, 7);
    for (int done = 0; done < 14; done += count) MPI_Testsome(14, requests, &count, indices, statuses);
    post(requests, 8);
    do MPI_Testall(16, requests, &flag, MPI_STATUSES_IGNORE); while (!flag);
    post(requests, 9);
    for (int done = 0; done < 18; done += flag) MPI_Testany(18, requests, &index, &flag, MPI_STATUS_IGNORE);
    post(requests, 1);
    do MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE); while (!flag);
    do MPI_Request_get_status(requests[1], &flag, MPI_STATUS_IGNORE); while (!flag);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

static void persistent(void)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];
    MPI_Send_init(out, 40, B, peer, 3, WORLD, &requests[0]);
    MPI_Recv_init(in[0], 100, B, ANY, WORLD, &requests[1]);
    MPI_Ssend_init(out, 50, B, MPI_PROC_NULL, 3, WORLD, &requests[2]);
    MPI_Recv_init(in[0], 100, B, MPI_PROC_NULL, 3, WORLD, &requests[3]);
    for (int round = 0; round < 10; round++) {
        MPI_Startall(4, requests);
        MPI_Waitall(4, requests, round % 2 ? MPI_STATUSES_IGNORE : statuses);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); /* inactive */
    }
    for (int at = 0; at < 4; at++) MPI_Request_free(&requests[at]);
}

static void probed(void)
{
    MPI_Message message;
    MPI_Request requests[2];
    MPI_Comm reversed;
    int flag;
    MPI_Comm_split(WORLD, 0, -rank, &reversed); /* ranks there are those of the other */
    MPI_Isend(out, 70, B, rank, 7, reversed, &requests[0]);
    MPI_Isend(out, 71, B, rank, 8, reversed, &requests[1]);
    do MPI_Iprobe(ANY, reversed, &flag, MPI_STATUS_IGNORE); while (!flag);
    MPI_Mprobe(ANY, reversed, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(in[0], 100, B, &message, MPI_STATUS_IGNORE);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    do MPI_Improbe(ANY, reversed, &flag, &message, MPI_STATUS_IGNORE); while (!flag);
    MPI_Imrecv(in[0], 100, B, &message, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    /* The communicator is gone before its receive has completed. */
    MPI_Irecv(in[0], 100, B, rank, 9, reversed, &requests[0]);
    MPI_Barrier(WORLD);
    MPI_Send(out, 72, B, rank, 9, reversed);
    MPI_Comm_free(&reversed);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void rest(void)
{
    MPI_Request request, other;
    MPI_Status status;
    int flag, all;
    MPI_Sendrecv(out, 5, B, peer, 1, in[0], 9, B, ANY, WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 6, B, peer, 1, in[0], 9, B, MPI_PROC_NULL, 0, WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 9, B, MPI_PROC_NULL, 1, in[0], 9, B, peer, 1, WORLD, &status);
    check(status.MPI_TAG == 1, "the program has its status");
    MPI_Sendrecv_replace(out, 8, B, peer, 1, ANY, WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in[0], 9, B, MPI_PROC_NULL, 0, WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* A receive that is cancelled, and a send that nobody waits for. */
    MPI_Irecv(in[0], 9, B, peer, 99, WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    check(flag, "the receive was cancelled");
    MPI_Isend(out, 11, B, peer, 2, WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(in[0], 100, B, ANY, WORLD, MPI_STATUS_IGNORE);
    /* Longer than any eager limit. */
    MPI_Irecv(large, LONG, B, ANY, WORLD, &request);
    MPI_Issend(out, LONG - 1, B, peer, 4, WORLD, &other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_SUM, WORLD, &request);
    MPI_Ibarrier(MPI_COMM_SELF, &other);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(WORLD, &rank);
    peer = 1 - rank;
    waits();
    persistent();
    probed();
    rest();
    MPI_Finalize();
    return 0;
}
