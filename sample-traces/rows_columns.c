/*
 * A grid of 2 rows and 8 columns that talks inside rows and inside columns, never in MPI_COMM_WORLD
 * (but for a few collectives). World rank = row * 8 + column.
 *
 * The row communicators number their members from right to left, the column communicators from top to
 * bottom. So the rank that an MPI call names is almost never the world rank of the peer, and a reader of
 * the trace that takes one for the other gets a wrong matrix.
 *
 * Columns carry most of the bytes, between world ranks 8 apart: rank order is a bad placement.
 *
 *   mpicc -O2 -Wall -Wextra -o rows_columns rows_columns.c
 *   mpirun --oversubscribe -n 16 ./rows_columns
 */
#include <mpi.h>
#include <stdio.h>

enum { ROWS = 2, COLUMNS = 8, STEPS = 12 };

/* Lengths of the messages, in doubles of 8 bytes. */
enum {
    EDGE = 512,    /* between neighbours of a row, both ways:  4096 bytes */
    CARRY = 64,    /* from left to right along a row:           512 bytes */
    SLAB = 8192,   /* between the two of a column, both ways: 65536 bytes */
    ASK = 2048,    /* from the top of a column to the bottom: 16384 bytes */
    ANSWER = 512,  /* and back:                                4096 bytes */
    NOTE = 5       /* to oneself, only the last rank:            40 bytes */
};

static double field[SLAB], incoming[SLAB], edge_in[2][EDGE], carry[CARRY], ask[ASK], answer[ANSWER];

/* Smooths the field: more often towards the right of the grid and in the second row. */
static void compute(int row, int column) {
    for (int sweep = 0; sweep < 4 + 3 * column + 2 * row; sweep++)
        for (int i = 1; i < SLAB - 1; i++)
            field[i] = (field[i - 1] + 2.0 * field[i] + field[i + 1]) / 4.0;
}

/* Non-blocking: both neighbours in the row get one end of the field. The row has no wrap-around. */
static void exchange_edges(MPI_Comm row_comm) {
    int me, size, pending = 0;
    MPI_Request requests[4];
    MPI_Comm_rank(row_comm, &me);
    MPI_Comm_size(row_comm, &size);
    for (int side = 0; side < 2; side++) {
        int peer = side == 0 ? me - 1 : me + 1;
        if (peer >= 0 && peer < size)
            MPI_Irecv(edge_in[side], EDGE, MPI_DOUBLE, peer, 1, row_comm, &requests[pending++]);
    }
    for (int side = 0; side < 2; side++) {
        int peer = side == 0 ? me - 1 : me + 1;
        double *edge = side == 0 ? field : field + SLAB - EDGE;
        if (peer >= 0 && peer < size)
            MPI_Isend(edge, EDGE, MPI_DOUBLE, peer, 1, row_comm, &requests[pending++]);
    }
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
}

/* Blocking: a running sum goes from the left end (the last rank of the row) to the right end (rank 0). */
static void carry_along(MPI_Comm row_comm) {
    int me, size;
    MPI_Comm_rank(row_comm, &me);
    MPI_Comm_size(row_comm, &size);
    if (me < size - 1)
        MPI_Recv(carry, CARRY, MPI_DOUBLE, me + 1, 2, row_comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < CARRY; i++)
        carry[i] += field[i];
    if (me > 0)
        MPI_Send(carry, CARRY, MPI_DOUBLE, me - 1, 2, row_comm);
}

/* Non-blocking: the two of a column swap their whole fields. */
static void swap_slabs(MPI_Comm column_comm) {
    int me;
    MPI_Request requests[2];
    MPI_Comm_rank(column_comm, &me);
    MPI_Irecv(incoming, SLAB, MPI_DOUBLE, 1 - me, 3, column_comm, &requests[0]);
    MPI_Isend(field, SLAB, MPI_DOUBLE, 1 - me, 3, column_comm, &requests[1]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

/* Blocking: the top asks, the bottom answers with a shorter message. */
static void ask_below(MPI_Comm column_comm) {
    int me;
    MPI_Comm_rank(column_comm, &me);
    if (me == 0) {
        MPI_Send(ask, ASK, MPI_DOUBLE, 1, 4, column_comm);
        MPI_Recv(answer, ANSWER, MPI_DOUBLE, 1, 5, column_comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(ask, ASK, MPI_DOUBLE, 0, 4, column_comm, MPI_STATUS_IGNORE);
        MPI_Send(answer, ANSWER, MPI_DOUBLE, 0, 5, column_comm);
    }
}

static void note_to_self(void) {
    double out[NOTE] = {0}, in[NOTE];
    MPI_Request request;
    MPI_Irecv(in, NOTE, MPI_DOUBLE, 0, 6, MPI_COMM_SELF, &request);
    MPI_Send(out, NOTE, MPI_DOUBLE, 0, 6, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size != ROWS * COLUMNS) {
        if (rank == 0)
            fprintf(stderr, "rows_columns: needs %d ranks, got %d\n", ROWS * COLUMNS, size);
        MPI_Finalize();
        return 1;
    }

    int row = rank / COLUMNS, column = rank % COLUMNS;
    MPI_Comm row_comm, column_comm;
    MPI_Comm_split(MPI_COMM_WORLD, row, -column, &row_comm);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &column_comm);

    int steps = STEPS;
    MPI_Bcast(&steps, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < SLAB; i++)
        field[i] = (double)((i * 37 + rank) % 101);

    double local = 0.0, total = 0.0, row_total = 0.0, both[ROWS];
    for (int step = 0; step < steps; step++) {
        compute(row, column);
        exchange_edges(row_comm);
        swap_slabs(column_comm);
        carry_along(row_comm);
        ask_below(column_comm);
        local = field[step] + incoming[step] + carry[0] + edge_in[0][0] + edge_in[1][0];
        if (step % 4 == 3) {
            MPI_Reduce(&local, &row_total, 1, MPI_DOUBLE, MPI_SUM, 0, row_comm);
            MPI_Allgather(&local, 1, MPI_DOUBLE, both, 1, MPI_DOUBLE, column_comm);
            MPI_Allreduce(&local, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    if (rank == size - 1)
        note_to_self();
    if (rank == 0)
        printf("total %g\n", total);

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&row_comm);
    MPI_Comm_free(&column_comm);
    MPI_Finalize();
    return 0;
}
