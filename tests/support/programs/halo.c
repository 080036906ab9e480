/* Seconds of 20 halo exchanges of 64 KiB in a 4 x 4 grid; the arguments are the slot of every rank, by default its own. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 4, BYTES = 65536, EXCHANGES = 20 };
static char sent[4][BYTES], received[4][BYTES];

int main(int count, char **words) {
  int slot, size, rank;
  MPI_Comm grid;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &slot);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != SIDE * SIDE || (count != 1 && count != size + 1)) MPI_Abort(MPI_COMM_WORLD, 2);
  rank = slot;
  for (int other = 0; other < count - 1; other++)
    if (atoi(words[other + 1]) == slot) rank = other;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &grid);
  int row = rank / SIDE, column = rank % SIDE;
  int neighbours[4] = {row > 0 ? rank - SIDE : MPI_PROC_NULL, row < SIDE - 1 ? rank + SIDE : MPI_PROC_NULL,
                       column > 0 ? rank - 1 : MPI_PROC_NULL, column < SIDE - 1 ? rank + 1 : MPI_PROC_NULL};
  double begin = 0;
  for (int exchange = -2; exchange < EXCHANGES; exchange++) { /* the first two set up connections */
    MPI_Request requests[8];
    if (exchange == 0) {
      MPI_Barrier(grid);
      begin = MPI_Wtime();
    }
    for (int i = 0; i < 4; i++) MPI_Irecv(received[i], BYTES, MPI_CHAR, neighbours[i], 0, grid, &requests[i]);
    for (int i = 0; i < 4; i++) MPI_Isend(sent[i], BYTES, MPI_CHAR, neighbours[i], 0, grid, &requests[4 + i]);
    MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  }
  MPI_Barrier(grid);
  if (rank == 0) printf("%.4f\n", MPI_Wtime() - begin);
  MPI_Finalize();
  return 0;
}
