/* Nanoseconds of a message of one byte to oneself, the median of 1000 parts: `self_messages [MESSAGES [nonblocking]]`.
 * A message is one call, MPI_Sendrecv, or three: MPI_Irecv, MPI_Isend and MPI_Waitall. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 1000 };

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static char sent = 1, received = 0;

static void blocking(void) {
  MPI_Sendrecv(&sent, 1, MPI_CHAR, 0, 0, &received, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
}

static void nonblocking(void) {
  MPI_Request requests[2];
  MPI_Irecv(&received, 1, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&sent, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

int main(int count, char **words) {
  int messages = count > 1 ? atoi(words[1]) : 1000000;
  static double taken[PARTS];
  void (*message)(void) = count > 2 ? nonblocking : blocking;
  MPI_Init(&count, &words);
  for (int part = -1; part < PARTS; part++) { /* the first one warms up */
    double begin = MPI_Wtime();
    for (int at = 0; at < messages / PARTS; at++) message();
    if (part >= 0) taken[part] = (MPI_Wtime() - begin) / (messages / PARTS) * 1e9;
  }
  qsort(taken, PARTS, sizeof *taken, compare);
  printf("%.2f ns\n", taken[PARTS / 2]);
  MPI_Finalize();
  return received != sent;
}
