/* A training step: ring all-reduces, all-to-alls and pipeline sends in groups of ranks with a stride.
   groups STEPS { dp | ep | pp } STRIDE SIZE BYTES ...
   Prints the shortest time of a step as "time SECONDS". */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *out, *in;

static void exchange(MPI_Comm group, int to, int from, int bytes) {
    MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, group, MPI_STATUS_IGNORE);
}

static void step(MPI_Comm group, const char *kind, int bytes) {
    int rank, size;
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &size);
    if (!strcmp(kind, "dp")) /* reduce-scatter and all-gather around the ring */
        for (int round = 0; round < 2 * (size - 1); round++)
            exchange(group, (rank + 1) % size, (rank + size - 1) % size, bytes / size);
    else if (!strcmp(kind, "ep"))
        for (int round = 1; round < size; round++)
            exchange(group, (rank + round) % size, (rank + size - round) % size, bytes / size);
    else { /* activations and gradients between neighbouring stages at the same time, as in one forward and one backward */
        MPI_Request requests[4];
        int next = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, last = rank > 0 ? rank - 1 : MPI_PROC_NULL;
        MPI_Irecv(in, bytes, MPI_BYTE, last, 0, group, &requests[0]);
        MPI_Irecv(in + bytes, bytes, MPI_BYTE, next, 1, group, &requests[1]);
        MPI_Isend(out, bytes, MPI_BYTE, next, 0, group, &requests[2]);
        MPI_Isend(out, bytes, MPI_BYTE, last, 1, group, &requests[3]);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, steps = atoi(words[1]), kinds = (count - 2) / 4, most = 0;
    MPI_Comm groups[8];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int kind = 0; kind < kinds; kind++) {
        int stride = atoi(words[4 * kind + 3]), size = atoi(words[4 * kind + 4]), bytes = atoi(words[4 * kind + 5]);
        MPI_Comm_split(MPI_COMM_WORLD, rank - rank / stride % size * stride, rank, &groups[kind]);
        most = bytes > most ? bytes : most;
    }
    out = calloc(most, 1), in = calloc(2, most);
    double shortest = 1e9;
    for (int turn = -1; turn < steps; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int kind = 0; kind < kinds; kind++)
            step(groups[kind], words[4 * kind + 2], atoi(words[4 * kind + 5]));
        MPI_Barrier(MPI_COMM_WORLD);
        double time = MPI_Wtime() - begin;
        if (turn >= 0 && time < shortest) shortest = time;
    }
    if (!rank) printf("time %f\n", shortest);
    MPI_Finalize();
}
