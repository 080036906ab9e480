/* A random correct program: random SEED STEPS MODE. All ranks go through the same steps in the same order, so that no order
 * of messages and no buffer matters. MODE is `one` thread, threads that take `turns`, or `many` threads at the same time, each
 * with steps and a communicator of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 3
#define MOST 16 /* active requests: at most one more per step, and none older than 6 steps */
#define LONGEST 100000

static int rank, size;

/* The requests of a rank that are active, and the step at whose begin they have to complete. */
struct run {
    uint64_t random;
    MPI_Comm comm;
    int count, due[MOST];
    MPI_Request requests[MOST];
};

static uint64_t pick(struct run *run, uint64_t below)
{
    run->random ^= run->random << 13, run->random ^= run->random >> 7, run->random ^= run->random << 17;
    return run->random / 2 % below;
}

/* Memory that nothing else uses until the program ends. */
static char *buffer(void) { return calloc(1, LONGEST); }

/* The request completes some steps later: on every rank at another one. */
static MPI_Request *later(struct run *run, int step, int delay)
{
    run->due[run->count] = step + delay;
    return &run->requests[run->count++];
}

static void forget_completed(struct run *run)
{
    int kept = 0;
    for (int at = 0; at < run->count; at++) {
        if (run->requests[at] == MPI_REQUEST_NULL) continue;
        run->requests[kept] = run->requests[at];
        run->due[kept++] = run->due[at];
    }
    run->count = kept;
}

static int first_due(struct run *run, int step)
{
    for (int at = 0; at < run->count; at++)
        if (run->due[at] <= step && run->requests[at] != MPI_REQUEST_NULL) return at;
    return -1;
}

static void complete(struct run *run, int step, int how)
{
    int which, flag, done, indices[MOST];
    if (how == 0 && first_due(run, step) >= 0) MPI_Waitall(run->count, run->requests, MPI_STATUSES_IGNORE);
    while (first_due(run, step) >= 0) {
        if (how == 1) MPI_Waitany(run->count, run->requests, &which, MPI_STATUS_IGNORE);
        else if (how == 2) MPI_Waitsome(run->count, run->requests, &done, indices, MPI_STATUSES_IGNORE);
        else if (how == 3) MPI_Testany(run->count, run->requests, &which, &flag, MPI_STATUS_IGNORE);
        else MPI_Wait(&run->requests[first_due(run, step)], MPI_STATUS_IGNORE);
    }
    forget_completed(run);
}

static void send(struct run *run, int step, int to, int bytes, int how, int delay)
{
    if (how == 0) MPI_Send(buffer(), bytes, MPI_BYTE, to, step, run->comm);
    else if (how == 1) MPI_Ssend(buffer(), bytes, MPI_BYTE, to, step, run->comm);
    else if (how == 2) MPI_Isend(buffer(), bytes, MPI_BYTE, to, step, run->comm, later(run, step, delay));
    else MPI_Issend(buffer(), bytes, MPI_BYTE, to, step, run->comm, later(run, step, delay));
}

static void receive(struct run *run, int step, int from, int how, int delay)
{
    int flag = 0, any = MPI_ANY_SOURCE;
    MPI_Message message;
    if (how == 0) MPI_Recv(buffer(), LONGEST, MPI_BYTE, from, step, run->comm, MPI_STATUS_IGNORE);
    else if (how == 1) MPI_Recv(buffer(), LONGEST, MPI_BYTE, any, step, run->comm, MPI_STATUS_IGNORE);
    else if (how == 2) MPI_Irecv(buffer(), LONGEST, MPI_BYTE, from, step, run->comm, later(run, step, delay));
    else if (how == 3) MPI_Irecv(buffer(), LONGEST, MPI_BYTE, any, step, run->comm, later(run, step, delay));
    else if (how == 4) {
        MPI_Mprobe(any, step, run->comm, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(buffer(), LONGEST, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    } else {
        while (how == 5 && !flag) MPI_Iprobe(any, step, run->comm, &flag, MPI_STATUS_IGNORE);
        if (how == 6) MPI_Probe(from, step, run->comm, MPI_STATUS_IGNORE);
        MPI_Recv(buffer(), LONGEST, MPI_BYTE, from, step, run->comm, MPI_STATUS_IGNORE);
    }
}

static void collective(struct run *run, int kind, int root, MPI_Request *request)
{
    char *in = buffer(), *out = buffer();
    MPI_Comm comm = run->comm;
    if (kind == 0) request ? MPI_Ibarrier(comm, request) : MPI_Barrier(comm);
    else if (kind == 1) request ? MPI_Ibcast(in, 500, MPI_BYTE, root, comm, request) : MPI_Bcast(in, 500, MPI_BYTE, root, comm);
    else if (kind == 2)
        request ? MPI_Iallreduce(in, out, 9, MPI_INT, MPI_SUM, comm, request) : MPI_Allreduce(in, out, 9, MPI_INT, MPI_SUM, comm);
    else request ? MPI_Ialltoall(in, 40, MPI_BYTE, out, 40, MPI_BYTE, comm, request)
                 : MPI_Alltoall(in, 40, MPI_BYTE, out, 40, MPI_BYTE, comm);
}

/* Draws the same numbers on all ranks. */
static void do_step(struct run *run, int step)
{
    static const int LENGTHS[] = { 0, 8, 3000, LONGEST };
    int delays[64], hows[64], kind = pick(run, 8), from = pick(run, size), to = (from + 1 + pick(run, size - 1)) % size;
    int bytes = LENGTHS[pick(run, 4)], sending = pick(run, 4), receiving = pick(run, 7), operation = pick(run, 4);
    for (int at = 0; at < size; at++) delays[at] = 1 + pick(run, 6), hows[at] = pick(run, 5);
    complete(run, step, hows[rank]);
    if (kind == 0) collective(run, operation, to, NULL);
    else if (kind < 4) collective(run, operation, to, later(run, step, delays[rank]));
    else if (kind == 4)
        MPI_Sendrecv(buffer(), bytes, MPI_BYTE, (rank + 1) % size, step, buffer(), LONGEST, MPI_BYTE, (rank + size - 1) % size,
                     step, run->comm, MPI_STATUS_IGNORE);
    else if (rank == from) send(run, step, to, bytes, sending, delays[rank]);
    else if (rank == to) receive(run, step, from, receiving, delays[rank]);
}

static struct { struct run run; int number; } threads[THREADS];
static int steps, is_turns, turn;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *in_thread(void *argument)
{
    int number = (int) (intptr_t) argument;
    for (int step = 0; step < steps && !is_turns; step++) do_step(&threads[number].run, step);
    for (int step = number; step < steps && is_turns; step += THREADS) {
        pthread_mutex_lock(&lock);
        while (turn != step) pthread_cond_wait(&changed, &lock);
        do_step(&threads[0].run, step);
        turn++;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int is_many = !strcmp(argv[3], "many"), provided;
    pthread_t ids[THREADS];
    is_turns = !strcmp(argv[3], "turns");
    steps = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, is_many ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int at = 0; at < THREADS; at++) {
        threads[at].run.random = 0x9e3779b97f4a7c15u * (uint64_t) (1 + at + THREADS * atoi(argv[1]));
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[at].run.comm);
    }
    if (!is_many && !is_turns) for (int step = 0; step < steps; step++) do_step(&threads[0].run, step);
    else {
        for (intptr_t at = 0; at < THREADS; at++) pthread_create(&ids[at], NULL, in_thread, (void *) at);
        for (int at = 0; at < THREADS; at++) pthread_join(ids[at], NULL);
    }
    for (int at = 0; at < THREADS; at++) complete(&threads[at].run, steps + 99, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
