/* Runs collective operations, and counts the messages that pml/monitoring of Open MPI records for each: it
   takes the place of its function, and calls it. (The variable of MPI_T that starts a new profile is missing
   in 4.1.4.) Arguments: a prefix of the files PREFIX.RANK, and operations as NAME:BYTES:ROOT. In operations of
   different lengths rank r has BYTES + r bytes. A file has lines of operation (0: none), destination, messages
   and bytes. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, OPERATIONS = 1024 };

static int operation;
static size_t messages[OPERATIONS][MOST], sizes[OPERATIONS][MOST];
static void (*record)(int, size_t, int);

void mca_common_monitoring_record_pml(int destination, size_t bytes, int tag) {
    if (!record) {
        void *library = dlopen("libmca_common_monitoring.so.50", RTLD_LAZY);
        record = (void (*)(int, size_t, int)) dlsym(library, "mca_common_monitoring_record_pml");
    }
    messages[operation][destination]++;
    sizes[operation][destination] += bytes;
    record(destination, bytes, tag);
}

static int rank, ranks;
static int counts[MOST], starts[MOST], bytes_of[MOST], places[MOST];
static MPI_Datatype types[MOST];
static char *from, *to;

static int is(const char *name, const char *other) { return strcmp(name, other) == 0; }

static void run(const char *name, int bytes, int root) {
    /* Reductions of doubles where the length allows. */
    int wide = bytes % 8 == 0;
    MPI_Datatype type = wide ? MPI_DOUBLE : MPI_BYTE;
    MPI_Op op = wide ? MPI_SUM : MPI_BXOR;
    int count = wide ? bytes / 8 : bytes;
    MPI_Comm world = MPI_COMM_WORLD;
    int start = 0, uneven = bytes + rank;
    for (int r = 0; r < ranks; r++) {
        counts[r] = bytes + r;
        starts[r] = start;
        start += counts[r];
        bytes_of[r] = bytes;
        places[r] = r * bytes;
        types[r] = MPI_BYTE;
    }
    if (is(name, "barrier")) MPI_Barrier(world);
    else if (is(name, "bcast")) MPI_Bcast(from, bytes, MPI_BYTE, root, world);
    else if (is(name, "gather")) MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, root, world);
    else if (is(name, "gatherv")) MPI_Gatherv(from, uneven, MPI_BYTE, to, counts, starts, MPI_BYTE, root, world);
    else if (is(name, "scatter")) MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, root, world);
    else if (is(name, "scatterv")) MPI_Scatterv(from, counts, starts, MPI_BYTE, to, uneven, MPI_BYTE, root, world);
    else if (is(name, "allgather")) MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, world);
    else if (is(name, "allgatherv")) MPI_Allgatherv(from, uneven, MPI_BYTE, to, counts, starts, MPI_BYTE, world);
    else if (is(name, "alltoall")) MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, world);
    else if (is(name, "alltoallv"))
        MPI_Alltoallv(from, bytes_of, places, MPI_BYTE, to, bytes_of, places, MPI_BYTE, world);
    else if (is(name, "alltoallw")) MPI_Alltoallw(from, bytes_of, places, types, to, bytes_of, places, types, world);
    else if (is(name, "allreduce")) MPI_Allreduce(from, to, count, type, op, world);
    else if (is(name, "reduce")) MPI_Reduce(from, to, count, type, op, root, world);
    else if (is(name, "reduce_scatter_block")) MPI_Reduce_scatter_block(from, to, count, type, op, world);
    else if (is(name, "scan")) MPI_Scan(from, to, count, type, op, world);
    else if (is(name, "exscan")) MPI_Exscan(from, to, count, type, op, world);
    else if (is(name, "reduce_scatter")) {
        for (int r = 0; r < ranks; r++) counts[r] = count;
        MPI_Reduce_scatter(from, to, counts, type, op, world);
    } else MPI_Abort(world, 3);
}

int main(int argc, char **argv) {
    int most = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > MOST || argc - 1 > OPERATIONS) MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 2; i < argc; i++) {
        int bytes = atoi(strchr(argv[i], ':') + 1);
        most = bytes > most ? bytes : most;
    }
    from = calloc(ranks, most + ranks);
    to = calloc(ranks, most + ranks);
    for (int i = 2; i < argc; i++) {
        char name[64];
        int bytes, root;
        if (sscanf(argv[i], "%63[^:]:%d:%d", name, &bytes, &root) != 3) MPI_Abort(MPI_COMM_WORLD, 2);
        operation = i - 1;
        run(name, bytes, root);
        operation = 0;
    }
    MPI_Finalize();
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", argv[1], rank);
    FILE *file = fopen(path, "w");
    for (int i = 0; i < argc - 1; i++)
        for (int other = 0; other < ranks; other++)
            if (messages[i][other]) fprintf(file, "%d %d %zu %zu\n", i, other, messages[i][other], sizes[i][other]);
    return fclose(file);
}
