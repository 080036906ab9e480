/* Nanoseconds of a message of one byte to oneself, the median of 1000 parts: `self_messages [MESSAGES]`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 1000 };

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

int main(int count, char **words) {
  int messages = count > 1 ? atoi(words[1]) : 1000000;
  static double taken[PARTS];
  char sent = 1, received = 0;
  MPI_Init(&count, &words);
  for (int part = -1; part < PARTS; part++) { /* the first one warms up */
    double begin = MPI_Wtime();
    for (int message = 0; message < messages / PARTS; message++)
      MPI_Sendrecv(&sent, 1, MPI_CHAR, 0, 0, &received, 1, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (part >= 0) taken[part] = (MPI_Wtime() - begin) / (messages / PARTS) * 1e9;
  }
  qsort(taken, PARTS, sizeof *taken, compare);
  printf("%.2f ns\n", taken[PARTS / 2]);
  MPI_Finalize();
  return received != sent;
}
