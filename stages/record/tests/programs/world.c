/* What a program may do with MPI_COMM_WORLD, on four ranks: each thing must be as if the launcher had given the ranks. Prints a line
 * for what is not, and `said-RANK` with its rank and that of the launcher. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures, seen, key_copied, key_deleted;

#define CHECK(condition) do { if (!(condition)) { failures++; printf("rank %d: line %d: %s\n", rank, __LINE__, #condition); } } while (0)

static void handler(MPI_Comm *comm, int *code, ...) { (void) code; seen += *comm == MPI_COMM_WORLD; }
static int copied(MPI_Comm comm, int key, void *state, void *in, void *out, int *flag)
{
    (void) key; (void) state;
    key_copied += comm == MPI_COMM_WORLD;
    *(void **) out = in;
    *flag = 1;
    return MPI_SUCCESS;
}
static int deleted(MPI_Comm comm, int key, void *value, void *state)
{
    (void) key; (void) value; (void) state;
    key_deleted += comm != MPI_COMM_WORLD;
    return MPI_SUCCESS;
}

static void ranks_and_groups(void)
{
    MPI_Group world, half;
    MPI_Comm copy, split, made, cart;
    int ranks[4] = { 0, 1, 2, 3 }, there[4], result, part[2] = { 2, 3 };
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_rank(world, &result);
    CHECK(result == rank);
    /* As libraries do that measure. */
    PMPI_Comm_rank(MPI_COMM_WORLD, &result);
    CHECK(result == rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_IDENT);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
    MPI_Comm_rank(split, &result);
    CHECK(result == (rank < 2));
    MPI_Group_incl(world, 2, part, &half);
    MPI_Comm_create(MPI_COMM_WORLD, half, &made);
    CHECK((made != MPI_COMM_NULL) == (rank >= 2));
    MPI_Group_translate_ranks(half, 2, ranks, world, there);
    CHECK(there[0] == 2 && there[1] == 3);
    MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]) { 2, 2 }, (int[]) { 1, 1 }, 0, &cart);
    MPI_Comm_rank(cart, &result);
    CHECK(result == rank);
    MPI_Comm inter, merged, halves;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &halves);
    MPI_Intercomm_create(halves, 0, MPI_COMM_WORLD, rank < 2 ? 2 : 0, 7, &inter);
    MPI_Intercomm_merge(inter, rank >= 2, &merged);
    MPI_Comm_rank(merged, &result);
    CHECK(result == rank);
    MPI_Group_free(&world); MPI_Group_free(&half);
    MPI_Comm_free(&copy); MPI_Comm_free(&split); MPI_Comm_free(&cart); MPI_Comm_free(&inter); MPI_Comm_free(&merged); MPI_Comm_free(&halves);
    if (made != MPI_COMM_NULL) MPI_Comm_free(&made);
}

static void messages(void)
{
    int got = -1, all[4] = { -1, -1, -1, -1 }, sum;
    MPI_Status status;
    MPI_Request request;
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &request);
    MPI_Send(&rank, 1, MPI_INT, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    CHECK(got == (rank + 3) % 4 && status.MPI_SOURCE == got);
    MPI_Gather(&rank, 1, MPI_INT, all, 1, MPI_INT, 2, MPI_COMM_WORLD);
    for (int at = 0; rank == 2 && at < 4; at++) CHECK(all[at] == at);
    MPI_Scan(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == rank * (rank + 1) / 2);
    MPI_Win window;
    int base = -1;
    MPI_Win_create(&base, sizeof base, sizeof base, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, (rank + 1) % 4, 0, window);
    MPI_Put(&rank, 1, MPI_INT, (rank + 1) % 4, 0, 1, MPI_INT, window);
    MPI_Win_unlock((rank + 1) % 4, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
#ifdef OPEN_MPI
    /* MPICH 4.0.2 of Debian 12 loses what is put into another process of a host. */
    CHECK(base == (rank + 3) % 4);
#endif
    MPI_Win_unlock(rank, window);
    MPI_Win_free(&window);
    MPI_File file;
    char text[5] = "";
    MPI_File_open(MPI_COMM_WORLD, "shared-file", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_ordered(file, &"abcd"[rank], 1, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, text, 4, MPI_CHAR, MPI_STATUS_IGNORE);
    CHECK(strcmp(text, "abcd") == 0);
    MPI_File_close(&file);
}

static void attributes_and_handlers(void)
{
    int *value, is_set, key, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm copy;
    MPI_Errhandler errors;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &is_set);
    CHECK(is_set && *value >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &is_set);
    CHECK(is_set);
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &length);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0);
    MPI_Comm_create_keyval(copied, deleted, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, name);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    CHECK(key_copied == 1);
    MPI_Comm_get_attr(copy, key, &value, &is_set);
    CHECK(is_set && (void *) value == (void *) name);
    MPI_Comm_free(&copy);
    CHECK(key_deleted == 1);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_create_errhandler(handler, &errors);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, errors);
    MPI_Send(&rank, 1, MPI_INT, size + 7, 0, MPI_COMM_WORLD);
    CHECK(seen == 1);
    MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
    CHECK(seen == 2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&errors);
}

int main(int argc, char **argv)
{
    const char *launched;
    char path[32];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!(launched = getenv("OMPI_COMM_WORLD_RANK"))) launched = getenv("PMI_RANK");
    ranks_and_groups();
    messages();
    attributes_and_handlers();
    snprintf(path, sizeof path, "said-%d", rank);
    FILE *said = fopen(path, "w");
    fprintf(said, "%s", launched);
    fclose(said);
    MPI_Finalize();
    return failures != 0;
}
