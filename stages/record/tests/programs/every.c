/* Calls every procedure that sends, once, with two ranks, and prints what it has sent:
 * `pair KIND DESTINATION BYTES`, or `collective KIND BYTES`. KIND is that of the rank file. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, peer, next = 1;
static char out[1 << 16], in[1 << 16];
static MPI_Comm comm;

static void pair(int kind, long bytes) { printf("pair %d %d %ld\n", kind, peer, bytes); }
static void collective(const char *kind, long bytes) { printf("collective %s %ld\n", kind, bytes); }
static int sending(void) { pair(0, next); return next++; }
static void finish(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }
static void receive(MPI_Request *request) { MPI_Irecv(in, sizeof in, MPI_BYTE, peer, 0, comm, request); }

#define EACH(call) do { MPI_Request r; receive(&r); call; finish(&r); } while (0)
#define STARTED(call) EACH(MPI_Request s; call; finish(&s))
#define PERSISTENT(call) EACH(MPI_Request s; call; MPI_Start(&s); finish(&s); MPI_Request_free(&s))

static void point_to_point(void)
{
    static char buffer[1 << 16];
    void *detached;
    int size, all;
    MPI_Buffer_attach(buffer, sizeof buffer);
    EACH(MPI_Send(out, sending(), MPI_BYTE, peer, 0, comm));
    EACH(MPI_Bsend(out, sending(), MPI_BYTE, peer, 0, comm));
    EACH(MPI_Request s; MPI_Issend(out, sending(), MPI_BYTE, peer, 0, comm, &s); finish(&s));
    MPI_Barrier(comm), collective("barrier", 0);
    /* Ready sends need a receive that is there. */
    EACH(MPI_Barrier(comm); collective("barrier", 0); MPI_Rsend(out, sending(), MPI_BYTE, peer, 0, comm));
    EACH(MPI_Ssend(out, sending(), MPI_BYTE, peer, 0, comm));
    STARTED(MPI_Isend(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    STARTED(MPI_Ibsend(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    STARTED(MPI_Barrier(comm); collective("barrier", 0); MPI_Irsend(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    MPI_Sendrecv(out, sending(), MPI_BYTE, peer, 0, in, sizeof in, MPI_BYTE, peer, 0, comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, sending(), MPI_BYTE, peer, 0, peer, 0, comm, MPI_STATUS_IGNORE);
    PERSISTENT(MPI_Send_init(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    PERSISTENT(MPI_Bsend_init(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    PERSISTENT(MPI_Ssend_init(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    PERSISTENT(MPI_Rsend_init(out, sending(), MPI_BYTE, peer, 0, comm, &s); MPI_Barrier(comm); collective("barrier", 0));
    /* Started twice, and never. */
    for (int round = 0; round < 3; round++) {
        MPI_Request both[2];
        MPI_Send_init(out, next, MPI_BYTE, peer, 0, comm, &both[0]);
        MPI_Recv_init(in, sizeof in, MPI_BYTE, peer, 0, comm, &both[1]);
        for (int start = 0; start < round; start++) {
            pair(0, next);
            MPI_Startall(2, both);
            MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        }
        MPI_Request_free(&both[0]);
        MPI_Request_free(&both[1]);
    }
    next++;
#if MPI_VERSION >= 4
    MPI_Request s, r;
    MPI_Isendrecv(out, sending(), MPI_BYTE, peer, 0, in, sizeof in, MPI_BYTE, peer, 0, comm, &s), finish(&s);
    MPI_Isendrecv_replace(out, sending(), MPI_BYTE, peer, 0, peer, 0, comm, &s), finish(&s);
    EACH(MPI_Send_c(out, sending(), MPI_BYTE, peer, 0, comm));
    STARTED(MPI_Isend_c(out, sending(), MPI_BYTE, peer, 0, comm, &s));
    MPI_Psend_init(out, 4, 8, MPI_BYTE, peer, 1, comm, MPI_INFO_NULL, &s);
    MPI_Precv_init(in, 4, 8, MPI_BYTE, peer, 1, comm, MPI_INFO_NULL, &r);
    MPI_Start(&s), MPI_Start(&r), pair(0, 32);
    int two[2] = { 2, 3 };
    MPI_Pready(0, s), MPI_Pready_range(1, 1, s), MPI_Pready_list(2, two, s);
    finish(&s), finish(&r), MPI_Request_free(&s), MPI_Request_free(&r);
#endif
    /* To nobody, and nothing. */
    MPI_Send(out, 5, MPI_BYTE, MPI_PROC_NULL, 0, comm);
    EACH(pair(0, 0); MPI_Send(out, 0, MPI_BYTE, peer, 0, comm));
    MPI_Buffer_detach(&detached, &size);
    (void) all;
}

static void one_sided(void)
{
    int *memory, own[64] = { 0 }, old[64] = { 0 };
    MPI_Win win;
    MPI_Request r;
    MPI_Win_allocate(sizeof own, sizeof *own, MPI_INFO_NULL, comm, &memory, &win);
    memset(memory, 0, sizeof own);
    MPI_Win_fence(0, win);
    MPI_Put(own, 1, MPI_INT, peer, 0, 1, MPI_INT, win), pair(1, 4);
    MPI_Get(old, 2, MPI_INT, peer, 8, 2, MPI_INT, win), pair(2, 8);
    MPI_Accumulate(own, 3, MPI_INT, peer, 16, 3, MPI_INT, MPI_SUM, win), pair(1, 12);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, peer, 0, win);
    MPI_Get_accumulate(own, 4, MPI_INT, old, 4, MPI_INT, peer, 24, 4, MPI_INT, MPI_SUM, win), pair(1, 16), pair(2, 16);
    MPI_Get_accumulate(NULL, 0, MPI_INT, old, 5, MPI_INT, peer, 24, 5, MPI_INT, MPI_NO_OP, win), pair(2, 20);
    MPI_Fetch_and_op(own, old, MPI_INT, peer, 32, MPI_SUM, win), pair(1, 4), pair(2, 4);
    MPI_Compare_and_swap(own, old, old + 1, MPI_INT, peer, 33, win), pair(1, 8), pair(2, 4);
    MPI_Rput(own, 6, MPI_INT, peer, 0, 6, MPI_INT, win, &r), finish(&r), pair(1, 24);
    MPI_Rget(old, 7, MPI_INT, peer, 8, 7, MPI_INT, win, &r), finish(&r), pair(2, 28);
    MPI_Raccumulate(own, 8, MPI_INT, peer, 16, 8, MPI_INT, MPI_SUM, win, &r), finish(&r), pair(1, 32);
    MPI_Rget_accumulate(own, 9, MPI_INT, old, 9, MPI_INT, peer, 24, 9, MPI_INT, MPI_SUM, win, &r), finish(&r);
    pair(1, 36), pair(2, 36);
    MPI_Win_unlock(peer, win);
    MPI_Win_free(&win);
}

static int counts[2] = { 3, 5 }, displs[2] = { 0, 64 };
static MPI_Datatype types[2];

/* The same arguments for the three forms of a collective. */
#if MPI_VERSION >= 4
#define INIT(name, ...) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &r), MPI_Start(&r), finish(&r), MPI_Request_free(&r)
#define FORMS 3
#else
#define INIT(name, ...) (void) 0
#define FORMS 2
#endif
#define ALL(blocking, nonblocking, kind, bytes, ...) do { \
    MPI_Request r; \
    MPI_##blocking(__VA_ARGS__); \
    MPI_##nonblocking(__VA_ARGS__, &r), finish(&r); \
    INIT(blocking, __VA_ARGS__); \
    for (int form = 0; form < FORMS; form++) collective(kind, bytes); \
} while (0)
#define B MPI_BYTE

static void collectives(void)
{
    int root = rank == 1;
    ALL(Barrier, Ibarrier, "barrier", 0, comm);
    ALL(Bcast, Ibcast, "bcast", root ? 10 : 0, out, 10, B, 1, comm);
    ALL(Gather, Igather, "gather", 11, out, 11, B, in, 11, B, 1, comm);
    ALL(Gatherv, Igatherv, "gatherv", counts[rank], out, counts[rank], B, in, counts, displs, B, 1, comm);
    ALL(Scatter, Iscatter, "scatter", root ? 24 : 0, out, 12, B, in, 12, B, 1, comm);
    ALL(Scatterv, Iscatterv, "scatterv", root ? 8 : 0, out, counts, displs, B, in, counts[rank], B, 1, comm);
    ALL(Allgather, Iallgather, "allgather", 13, out, 13, B, in, 13, B, comm);
    ALL(Allgatherv, Iallgatherv, "allgatherv", counts[rank], out, counts[rank], B, in, counts, displs, B, comm);
    ALL(Alltoall, Ialltoall, "alltoall", 28, out, 14, B, in, 14, B, comm);
    int mine[2] = { counts[rank], counts[rank] };
    ALL(Alltoallv, Ialltoallv, "alltoallv", 8, out, counts, displs, B, in, mine, displs, B, comm);
    ALL(Alltoallw, Ialltoallw, "alltoallw", 3 + 5 * 4, out, counts, displs, types, in, mine, displs,
        rank ? (MPI_Datatype[]) { MPI_INT, MPI_INT } : (MPI_Datatype[]) { B, B }, comm);
    ALL(Reduce, Ireduce, "reduce", 15, out, in, 15, B, MPI_BOR, 1, comm);
    ALL(Allreduce, Iallreduce, "allreduce", 16, out, in, 16, B, MPI_BOR, comm);
    ALL(Reduce_scatter, Ireduce_scatter, "reduce_scatter", 8, out, in, counts, B, MPI_BOR, comm);
    ALL(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter_block", 34, out, in, 17, B, MPI_BOR, comm);
    ALL(Scan, Iscan, "scan", 18, out, in, 18, B, MPI_BOR, comm);
    ALL(Exscan, Iexscan, "exscan", 19, out, in, 19, B, MPI_BOR, comm);
    /* The receive buffer holds what is sent. */
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 20, B, comm), collective("allgather", 20);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 21, B, comm), collective("alltoall", 42);
    if (root) MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, 22, B, 1, comm);
    else MPI_Gather(out, 22, B, NULL, 0, MPI_DATATYPE_NULL, 1, comm);
    collective("gather", 22);
#if MPI_VERSION >= 4
    MPI_Allreduce_c(out, in, 23, B, MPI_BOR, comm), collective("allreduce", 23);
    MPI_Count large[2] = { 3, 5 };
    MPI_Aint far[2] = { 0, 64 };
    MPI_Allgatherv_c(out, large[rank], B, in, large, far, B, comm), collective("allgatherv", large[rank]);
#endif
}

static void neighbours(void)
{
    int size = 2, periods = 0, other[2] = { peer, peer };
    MPI_Comm world = comm, line, ring;
    MPI_Aint far[2] = { 0, 64 };
    MPI_Datatype two[2] = { MPI_INT, MPI_INT };
    int mine[2] = { 2, 3 };
    /* One neighbour and MPI_PROC_NULL. */
    MPI_Cart_create(world, 1, &size, &periods, 0, &line);
    MPI_Neighbor_allgather(out, 7, B, in, 7, B, line), pair(3, 7), collective("neighbor_allgather", 7);
    /* Twice the same neighbour. */
    MPI_Dist_graph_create_adjacent(world, 2, other, MPI_UNWEIGHTED, 2, other, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &ring);
    for (int form = 0; form < FORMS; form++) {
        pair(3, 6), pair(3, 6), pair(3, 8), pair(3, 8), pair(3, 9), pair(3, 9), pair(3, 2), pair(3, 3);
        pair(3, 8), pair(3, 12);
    }
    ALL(Neighbor_allgather, Ineighbor_allgather, "neighbor_allgather", 12, out, 6, B, in, 6, B, ring);
    int eight[2] = { 8, 8 };
    ALL(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor_allgatherv", 16, out, 8, B, in, eight, displs, B, ring);
    ALL(Neighbor_alltoall, Ineighbor_alltoall, "neighbor_alltoall", 18, out, 9, B, in, 9, B, ring);
    ALL(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor_alltoallv", 5, out, mine, displs, B, in, mine, displs, B, ring);
    ALL(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor_alltoallw", 20, out, mine, far, two, in, mine, far, two, ring);
    MPI_Comm_free(&line);
    MPI_Comm_free(&ring);
}

/* Ranks in communicators are not those of the world. */
static void communicators(void)
{
    MPI_Comm reversed, alone, inter, merged, copy;
    MPI_Request r;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &reversed);
    MPI_Isend(out, 100, B, rank, 0, reversed, &r), pair(0, 100);
    MPI_Recv(in, 100, B, rank, 0, reversed, MPI_STATUS_IGNORE), finish(&r);
    MPI_Bcast(out, 101, B, 0, reversed), collective("bcast", rank ? 101 : 0);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
    MPI_Intercomm_create(alone, 0, MPI_COMM_WORLD, peer, 0, &inter);
    MPI_Isend(out, 102, B, 0, 0, inter, &r), pair(0, 102);
    MPI_Recv(in, 102, B, 0, 0, inter, MPI_STATUS_IGNORE), finish(&r);
    MPI_Bcast(out, 103, B, rank ? MPI_ROOT : 0, inter), collective("bcast", rank ? 103 : 0);
    MPI_Intercomm_merge(inter, rank, &merged);
    MPI_Comm_idup(merged, &copy, &r), finish(&r);
    MPI_Allreduce(out, in, 104, B, MPI_BOR, copy), collective("allreduce", 104);
    /* One after the other, with handles and numbers that come again. */
    for (int round = 0; round < 500; round++) {
        MPI_Comm dup;
        MPI_Comm_dup(MPI_COMM_SELF, &dup);
        MPI_Comm_free(&dup);
    }
    MPI_Comm_free(&reversed), MPI_Comm_free(&alone), MPI_Comm_free(&inter);
    MPI_Comm_free(&merged), MPI_Comm_free(&copy);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    comm = MPI_COMM_WORLD;
    types[0] = MPI_BYTE, types[1] = MPI_INT;
    char name[4096];
    snprintf(name, sizeof name, "%s-%d", argv[1], rank);
    if (!freopen(name, "w", stdout)) return 1;
    point_to_point();
    one_sided();
    collectives();
    neighbours();
    communicators();
    MPI_Finalize();
    return 0;
}
