/* Communication patterns with computation, for measuring the run time of placements: `patterns PATTERN BYTES ITERATIONS MICROSECONDS
 * [linear|shuffled]`.
 *
 * Every iteration of every rank computes for MICROSECONDS and then exchanges messages of BYTES. Computation is sleep until a
 * deadline on an absolute clock: the ranks of an emulated network share the processors of one machine, and computation that used
 * them would take as long as the others let it. Prints the time of all iterations. With `shuffled`, processes take their place in the
 * pattern from a communicator that MPI_Comm_split makes, 7 places further for each process, so that neighbours are far apart. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { MOST_PARTNERS = 64 };

static int rank, ranks, side, bytes;
static long nanoseconds;
static char *sent, *received;
static MPI_Comm world, group;

static void compute(void) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_nsec += nanoseconds % 1000000000;
  end.tv_sec += nanoseconds / 1000000000 + end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  while (nanoseconds > 0 && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL)) {}
}

/* Sends to and receives from all partners at once. */
static void exchange(const int *partners, int count) {
  MPI_Request requests[2 * MOST_PARTNERS];
  for (int at = 0; at < count; at++)
    MPI_Irecv(received + (size_t)at * bytes, bytes, MPI_CHAR, partners[at], 0, world, &requests[at]);
  for (int at = 0; at < count; at++)
    MPI_Isend(sent, bytes, MPI_CHAR, partners[at], 0, world, &requests[count + at]);
  MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
}

static int at(int row, int column) { return (row + side) % side * side + (column + side) % side; }

/* Halo exchange on a periodic grid. */
static void stencil(void) {
  int row = rank / side, column = rank % side;
  compute();
  exchange((int[]){at(row - 1, column), at(row + 1, column), at(row, column - 1), at(row, column + 1)}, 4);
}

/* All-to-all in groups of ranks that are `side` apart, as in a transpose along one dimension. */
static void alltoall(void) {
  compute();
  MPI_Alltoall(sent, bytes, MPI_CHAR, received, bytes, MPI_CHAR, group);
}

/* Pipelined sweep from one corner of the grid to the opposite one, as in LU and Sweep3D: ranks begin as soon as both neighbours
 * have sent, so that several sweeps are on their way. */
static void wavefront(void) {
  int row = rank / side, column = rank % side;
  if (row > 0) MPI_Recv(received, bytes, MPI_CHAR, at(row - 1, column), 0, world, MPI_STATUS_IGNORE);
  if (column > 0) MPI_Recv(received, bytes, MPI_CHAR, at(row, column - 1), 0, world, MPI_STATUS_IGNORE);
  compute();
  if (row < side - 1) MPI_Send(sent, bytes, MPI_CHAR, at(row + 1, column), 0, world);
  if (column < side - 1) MPI_Send(sent, bytes, MPI_CHAR, at(row, column + 1), 0, world);
}

static void swap(int partner) {
  MPI_Sendrecv(sent, bytes, MPI_CHAR, partner, 0, received, bytes, MPI_CHAR, partner, 0, world, MPI_STATUS_IGNORE);
}

/* Sums along the rows of the grid, then an exchange with the transposed position, as in CG of the NAS benchmarks. */
static void rows_columns(void) {
  int row = rank / side, column = rank % side;
  compute();
  for (int distance = 1; distance < side; distance *= 2) swap(at(row, column ^ distance));
  if (row != column) swap(at(column, row));
}

/* Exchanges with partners at distances 1, 2, 4, …, as in FFT and recursive doubling. */
static void butterfly(void) {
  compute();
  for (int distance = 1; distance < ranks; distance *= 2) swap(rank ^ distance);
}

/* Ranks 0 and 1 each receive from half of the others, and answer with one byte. */
static void many_to_one(void) {
  MPI_Request requests[MOST_PARTNERS];
  int count = 0;
  compute();
  if (rank > 1) {
    MPI_Send(sent, bytes, MPI_CHAR, rank % 2, 0, world);
    MPI_Recv(received, 1, MPI_CHAR, rank % 2, 0, world, MPI_STATUS_IGNORE);
    return;
  }
  for (int other = rank + 2; other < ranks; other += 2, count++)
    MPI_Irecv(received + (size_t)count * bytes, bytes, MPI_CHAR, other, 0, world, &requests[count]);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int other = rank + 2; other < ranks; other += 2) MPI_Send(sent, 1, MPI_CHAR, other, 0, world);
}

static const struct {
  const char *name;
  void (*iterate)(void);
} PATTERNS[] = {{"stencil", stencil},           {"alltoall", alltoall},   {"wavefront", wavefront},
                {"rows-columns", rows_columns}, {"butterfly", butterfly}, {"many-to-one", many_to_one}};

int main(int count, char **words) {
  void (*iterate)(void) = NULL;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char *numbering = count == 6 ? words[5] : count == 5 ? "linear" : "";
  int is_shuffled = !strcmp(numbering, "shuffled");
  MPI_Comm_split(MPI_COMM_WORLD, 0, is_shuffled ? rank * 7 % ranks : rank, &world);
  MPI_Comm_rank(world, &rank);
  while ((side + 1) * (side + 1) <= ranks) side++;
  for (size_t at = 0; (is_shuffled || !strcmp(numbering, "linear")) && at < sizeof PATTERNS / sizeof *PATTERNS; at++)
    if (!strcmp(words[1], PATTERNS[at].name)) iterate = PATTERNS[at].iterate;
  if (!iterate || side * side != ranks || ranks & (ranks - 1) || ranks > MOST_PARTNERS) {
    if (rank == 0) fprintf(stderr, "usage: patterns PATTERN BYTES ITERATIONS MICROSECONDS [linear|shuffled], on 4, 16 or 64 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  bytes = atoi(words[2]);
  nanoseconds = 1000 * atol(words[4]);
  sent = calloc(MOST_PARTNERS, bytes);
  received = calloc(MOST_PARTNERS, bytes);
  prctl(PR_SET_TIMERSLACK, 1000);
  MPI_Comm_split(world, rank % side, rank, &group);
  MPI_Barrier(world);
  double begin = MPI_Wtime();
  for (int iteration = atoi(words[3]); iteration > 0; iteration--) iterate();
  MPI_Barrier(world);
  if (rank == 0) printf("time %.6f s\n", MPI_Wtime() - begin);
  MPI_Finalize();
}
