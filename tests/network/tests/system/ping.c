/* Half the shortest round trip of one byte from rank 0 to every other rank, in seconds. */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#define EXCHANGES 300

static double shortest(int rank, int other) {
  double best = 1e9;
  char byte = 0;
  for (int i = 0; i < EXCHANGES; i++) {
    if (rank == 0) {
      double begin = MPI_Wtime();
      MPI_Send(&byte, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD);
      MPI_Recv(&byte, 1, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      double half = (MPI_Wtime() - begin) / 2;
      best = half < best ? half : best;
    } else {
      MPI_Recv(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
  return best;
}

int main(int count, char **words) {
  int rank, size;
  char host[64];
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  printf("rank %d on %s\n", rank, host);
  for (int other = 1; other < size; other++) {
    double half = rank == 0 || rank == other ? shortest(rank, other) : 0;
    if (rank == 0) printf("to %d: %.9f\n", other, half);
  }
  MPI_Finalize();
  return 0;
}
