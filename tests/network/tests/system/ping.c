/* Half the shortest round trip of one byte from rank 0 to every other rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define EXCHANGES 300

/* Waiting in MPI keeps a processor busy, and those who have their turn need it: ranks sleep until theirs comes. */
static void await_turn(void) {
  int here = 0;
  while (!here) {
    usleep(1000);
    MPI_Iprobe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
  }
}

static double ask(int other) {
  double best = 1e9;
  char byte = 0;
  for (int i = 0; i < EXCHANGES; i++) {
    double begin = MPI_Wtime();
    MPI_Send(&byte, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD);
    MPI_Recv(&byte, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double half = (MPI_Wtime() - begin) / 2;
    best = half < best ? half : best;
  }
  return best;
}

static void answer(void) {
  char byte;
  for (int i = 0; i < EXCHANGES; i++) {
    MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
}

int main(int count, char **words) {
  int rank, size;
  char host[64], byte = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  printf("rank %d on %s\n", rank, host);
  if (rank == 0) {
    for (int other = 1; other < size; other++) printf("to %d: %.9f\n", other, ask(other));
    for (int other = 1; other < size; other++) MPI_Send(&byte, 1, MPI_CHAR, other, 1, MPI_COMM_WORLD);
  } else {
    await_turn();
    answer();
    await_turn();
    MPI_Recv(&byte, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
