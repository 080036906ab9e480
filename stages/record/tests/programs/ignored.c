/* Calls every procedure with arguments that MPI does not read, of three ranks, and prints what each call returns and sends:
 * alone and recorded, a program does the same. Ranks 0 and 1 are one side of `inter`, rank 2 is the other. */
#include <mpi.h>
#include <stdio.h>

#define BAD ((void *) 8) /* faults if it is read */
#define B MPI_BYTE
#define NONE MPI_DATATYPE_NULL
#define NOBODY MPI_PROC_NULL

static int rank;
static char out[64], in[64];
static MPI_Comm world, inter;
static MPI_Request r;
static MPI_Status s;
static MPI_Win win;
static int counts[3] = { 1, 2, 3 }, same[3] = { 3, 3, 3 }, displs[3] = { 0, 16, 32 }, flag, one[1];

static int succeeded(const char *call, int error)
{
    int class;
    MPI_Error_class(error, &class);
    printf("returned %s %d\n", call, class);
    return error == MPI_SUCCESS;
}
#define TRY(name, ...) succeeded(#name, MPI_##name(__VA_ARGS__))
#define STARTED(name, ...) (TRY(name, __VA_ARGS__, &r) && MPI_Wait(&r, &s))
#define PERSISTENT(name, ...) (TRY(name, __VA_ARGS__, &r) && MPI_Start(&r) + MPI_Wait(&r, &s) + MPI_Request_free(&r))

/* To and from MPI_PROC_NULL: what both MPIs accept, and a type that they reject. */
static void nobody(MPI_Datatype type)
{
    MPI_Message message;
    TRY(Send, BAD, 5, type, NOBODY, 0, world), TRY(Bsend, BAD, 5, type, NOBODY, 0, world);
    TRY(Ssend, BAD, 5, type, NOBODY, 0, world), TRY(Rsend, BAD, 5, type, NOBODY, 0, world);
    STARTED(Isend, BAD, 5, type, NOBODY, 0, world), STARTED(Ibsend, BAD, 5, type, NOBODY, 0, world);
    STARTED(Issend, BAD, 5, type, NOBODY, 0, world), STARTED(Irsend, BAD, 5, type, NOBODY, 0, world);
    PERSISTENT(Send_init, BAD, 5, type, NOBODY, 0, world), PERSISTENT(Bsend_init, BAD, 5, type, NOBODY, 0, world);
    PERSISTENT(Ssend_init, BAD, 5, type, NOBODY, 0, world), PERSISTENT(Rsend_init, BAD, 5, type, NOBODY, 0, world);
    TRY(Sendrecv, BAD, 5, type, NOBODY, 0, BAD, 5, type, NOBODY, 0, world, &s);
    TRY(Sendrecv_replace, BAD, 5, type, NOBODY, 0, NOBODY, 0, world, &s);
    TRY(Recv, BAD, 5, type, NOBODY, 0, world, &s), STARTED(Irecv, BAD, 5, type, NOBODY, 0, world);
    PERSISTENT(Recv_init, BAD, 5, type, NOBODY, 0, world);
    TRY(Probe, NOBODY, 0, world, &s), TRY(Iprobe, NOBODY, 0, world, &flag, &s);
    TRY(Mprobe, NOBODY, 0, world, &message, &s), TRY(Mrecv, BAD, 5, B, &message, &s);
    TRY(Improbe, NOBODY, 0, world, &flag, &message, &s), STARTED(Imrecv, BAD, 5, B, &message);
    MPI_Win_fence(0, win);
    TRY(Put, BAD, 5, type, NOBODY, 0, 5, type, win), TRY(Get, BAD, 5, type, NOBODY, 0, 5, type, win);
    TRY(Accumulate, BAD, 5, type, NOBODY, 0, 5, type, MPI_SUM, win);
    TRY(Get_accumulate, BAD, 5, type, BAD, 5, type, NOBODY, 0, 5, type, MPI_SUM, win);
    TRY(Fetch_and_op, BAD, BAD, type, NOBODY, 0, MPI_SUM, win);
    TRY(Compare_and_swap, BAD, BAD, BAD, type, NOBODY, 0, win);
    MPI_Win_fence(0, win);
    MPI_Win_lock_all(0, win);
    STARTED(Rput, BAD, 5, type, NOBODY, 0, 5, type, win), STARTED(Rget, BAD, 5, type, NOBODY, 0, 5, type, win);
    STARTED(Raccumulate, BAD, 5, type, NOBODY, 0, 5, type, MPI_SUM, win);
    STARTED(Rget_accumulate, BAD, 5, type, BAD, 5, type, NOBODY, 0, 5, type, MPI_SUM, win);
    TRY(Get_accumulate, BAD, 5, NONE, in, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_NO_OP, win) && printf("pair 2 1 4\n");
    MPI_Win_unlock_all(win);
#if MPI_VERSION >= 4
    /* MPICH 4.0 crashes with MPI_PROC_NULL and a type. */
    STARTED(Isendrecv, BAD, 5, NONE, NOBODY, 0, BAD, 5, NONE, NOBODY, 0, world);
    STARTED(Isendrecv_replace, BAD, 5, NONE, NOBODY, 0, NOBODY, 0, world);
    TRY(Psend_init, BAD, 2, 5, NONE, NOBODY, 0, world, MPI_INFO_NULL, &r);
    TRY(Precv_init, BAD, 2, 5, NONE, NOBODY, 0, world, MPI_INFO_NULL, &r);
#endif
}

/* Without requests there are no arrays. */
static void nothing(void)
{
    TRY(Startall, 0, NULL), TRY(Waitall, 0, NULL, NULL), TRY(Testall, 0, NULL, &flag, NULL);
    TRY(Waitany, 0, NULL, one, &s), TRY(Testany, 0, NULL, one, &flag, &s);
    TRY(Waitsome, 0, NULL, one, NULL, NULL), TRY(Testsome, 0, NULL, one, NULL, NULL);
    r = MPI_REQUEST_NULL;
    TRY(Wait, &r, MPI_STATUS_IGNORE), TRY(Test, &r, &flag, MPI_STATUS_IGNORE);
}

/* The forms of a collective operation that `bytes` are sent in; none of a rank that takes no part: -1. */
#if MPI_VERSION >= 4
#define INIT(name, ...) PERSISTENT(name##_init, __VA_ARGS__, MPI_INFO_NULL)
#define FORMS 3
#else
#define INIT(name, ...) (void) 0
#define FORMS 2
#endif
#define ALL(blocking, nonblocking, kind, bytes, ...) do { \
    TRY(blocking, __VA_ARGS__), STARTED(nonblocking, __VA_ARGS__), INIT(blocking, __VA_ARGS__); \
    for (int form = 0; form < FORMS && (bytes) >= 0; form++) printf("collective %s %d\n", kind, bytes); \
} while (0)

/* What only the root reads, and what it does not read in place. */
static void rooted(void)
{
    int is_root = rank == 0;
    void *to = is_root ? in : BAD, *from = is_root ? out : BAD, *own = is_root ? MPI_IN_PLACE : out, *mine = is_root ? MPI_IN_PLACE : in;
    int *lengths = is_root ? counts : BAD, *places = is_root ? displs : BAD, length = is_root ? -7 : counts[rank];
    MPI_Datatype roots = is_root ? B : NONE, others = is_root ? NONE : B;
    ALL(Gather, Igather, "gather", 4, own, 4, others, to, 4, roots, 0, world);
    ALL(Gatherv, Igatherv, "gatherv", counts[rank], own, length, others, to, lengths, places, roots, 0, world);
    ALL(Scatter, Iscatter, "scatter", is_root ? 12 : 0, from, 4, roots, mine, 4, others, 0, world);
    ALL(Scatterv, Iscatterv, "scatterv", is_root ? 6 : 0, from, lengths, places, roots, mine, length, others, 0, world);
    ALL(Reduce, Ireduce, "reduce", 4, own, to, 4, B, MPI_BOR, 0, world);
}

/* Rank 0 is the root of rank 2; rank 1 reads nothing, but Open MPI checks the types of MPI_Bcast and MPI_Reduce. */
static void between_groups(void)
{
    int root = rank == 0 ? MPI_ROOT : rank == 1 ? MPI_PROC_NULL : 0, is_root = rank == 0, is_other = rank == 2;
    int none = rank == 1 ? -1 : 0, *lengths = is_root ? counts : BAD, *places = is_root ? displs : BAD;
    void *to = is_root ? in : BAD, *from = is_root ? out : BAD, *own = is_other ? out : BAD, *mine = is_other ? in : BAD;
    MPI_Datatype roots = is_root ? B : NONE, others = is_other ? B : NONE;
    ALL(Bcast, Ibcast, "bcast", is_root ? 4 : none, is_root ? from : mine, 4, B, root, inter);
    ALL(Gather, Igather, "gather", is_other ? 4 : none, own, 4, others, to, 4, roots, root, inter);
    ALL(Gatherv, Igatherv, "gatherv", is_other ? 1 : none, own, 1, others, to, lengths, places, roots, root, inter);
    ALL(Scatter, Iscatter, "scatter", is_root ? 4 : none, from, 4, roots, mine, 4, others, root, inter);
    ALL(Scatterv, Iscatterv, "scatterv", is_root ? 1 : none, from, lengths, places, roots, mine, 1, others, root, inter);
    ALL(Reduce, Ireduce, "reduce", is_other ? 4 : none, own, to, 4, B, MPI_BOR, root, inter);
}

static void in_place(void)
{
    MPI_Datatype types[3] = { B, B, B };
    ALL(Allgather, Iallgather, "allgather", 4, MPI_IN_PLACE, 4, NONE, in, 4, B, world);
    ALL(Allgatherv, Iallgatherv, "allgatherv", counts[rank], MPI_IN_PLACE, 4, NONE, in, counts, displs, B, world);
    ALL(Alltoall, Ialltoall, "alltoall", 12, MPI_IN_PLACE, 4, NONE, in, 4, B, world);
    ALL(Alltoallv, Ialltoallv, "alltoallv", 9, MPI_IN_PLACE, BAD, BAD, NONE, in, same, displs, B, world);
    ALL(Alltoallw, Ialltoallw, "alltoallw", 9, MPI_IN_PLACE, BAD, BAD, BAD, in, same, displs, types, world);
}

static void neighbour(int peer, int bytes)
{
    if (peer >= 0) printf("pair 3 %d %d\n", peer, bytes);
}

/* Nothing is sent to neighbours that are MPI_PROC_NULL: only ranks 0 and 1 have one after them. */
#define LINE(blocking, nonblocking, kind, ...) do { \
    ALL(blocking, nonblocking, kind, (rank < 2) * 3 + (rank > 0) * 3, __VA_ARGS__); \
    for (int form = 0; form < FORMS; form++) neighbour(rank - 1, 3), neighbour(rank < 2 ? rank + 1 : -1, 3); \
} while (0)
/* Rank 0 sends to rank 2 alone, which sends to nobody. */
#define ARROW(blocking, nonblocking, kind, ...) do { \
    ALL(blocking, nonblocking, kind, rank ? 0 : 3, __VA_ARGS__); \
    for (int form = 0; form < FORMS; form++) neighbour(rank ? -1 : 2, 3); \
} while (0)

static void neighbours(void)
{
    int size = 3, periods = 0, two = 2, zero = 0, is_first = rank == 0, is_last = rank == 2;
    MPI_Comm line, arrow;
    MPI_Cart_create(world, 1, &size, &periods, 0, &line);
    MPI_Datatype types[2] = { B, B }; /* both MPIs check them */
    int lengths[2] = { rank > 0 ? 3 : 5, rank < 2 ? 3 : 5 };
    MPI_Aint far[2] = { 0, 16 };
    LINE(Neighbor_allgather, Ineighbor_allgather, "neighbor_allgather", out, 3, B, in, 3, B, line);
    LINE(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor_allgatherv", out, 3, B, in, lengths, displs, B, line);
    LINE(Neighbor_alltoall, Ineighbor_alltoall, "neighbor_alltoall", out, 3, B, in, 3, B, line);
    LINE(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor_alltoallv", out, lengths, displs, B, in, lengths, displs, B, line);
    LINE(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor_alltoallw", out, lengths, far, types, in, lengths, far, types, line);
    MPI_Dist_graph_create_adjacent(world, is_last, &zero, MPI_UNWEIGHTED, is_first, &two, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &arrow);
    void *from = is_first ? out : BAD, *to = is_last ? in : BAD, *sent = is_first ? same : BAD, *got = is_last ? same : BAD;
    void *here = is_first ? displs : BAD, *there = is_last ? displs : BAD;
    ARROW(Neighbor_allgather, Ineighbor_allgather, "neighbor_allgather", from, 3, B, to, 3, B, arrow);
    ARROW(Neighbor_allgatherv, Ineighbor_allgatherv, "neighbor_allgatherv", from, 3, B, to, got, there, B, arrow);
    ARROW(Neighbor_alltoall, Ineighbor_alltoall, "neighbor_alltoall", from, 3, B, to, 3, B, arrow);
    ARROW(Neighbor_alltoallv, Ineighbor_alltoallv, "neighbor_alltoallv", from, sent, here, B, to, got, there, B, arrow);
    /* MPICH reads these arrays. */
    ARROW(Neighbor_alltoallw, Ineighbor_alltoallw, "neighbor_alltoallw", from, same, far, types, to, same, far, types, arrow);
}

int main(int argc, char **argv)
{
    char name[4096];
    int *memory;
    MPI_Comm half;
    static char buffer[1 << 16];
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    snprintf(name, sizeof name, "%s-%d", argv[1], rank);
    if (!freopen(name, "w", stdout) || setvbuf(stdout, NULL, _IOLBF, BUFSIZ)) return 1;
    MPI_Comm_split(world, rank == 2, rank, &half);
    MPI_Intercomm_create(half, 0, world, rank == 2 ? 0 : 2, 0, &inter);
    MPI_Win_allocate(64, sizeof *memory, MPI_INFO_NULL, world, &memory, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Buffer_attach(buffer, sizeof buffer);
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    nobody(MPI_BYTE), nobody(NONE), nothing();
    /* What MPI does not accept ends the program, and what the recorder asks, too. */
    MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
    rooted(), between_groups(), in_place(), neighbours();
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
