/* The library of `hopmap reorder`: renumbers the ranks of MPI_COMM_WORLD. `MPI_Init` matches processes and ranks by host, and makes a
 * communicator with the new order. The wrappers below this text put it in the place of MPI_COMM_WORLD in every call, also in those
 * of PMPI_*, by which libraries and MPI's own Fortran interface call. Processes stay where launcher and site have put them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

MPI_SYMBOL(MPI_Comm_rank) MPI_SYMBOL(MPI_Comm_size) MPI_SYMBOL(MPI_Comm_group) MPI_SYMBOL(MPI_Comm_create) MPI_SYMBOL(MPI_Comm_get_parent)
MPI_SYMBOL(MPI_Comm_set_name) MPI_SYMBOL(MPI_Group_incl) MPI_SYMBOL(MPI_Group_free) MPI_SYMBOL(MPI_Isend) MPI_SYMBOL(MPI_Irecv) MPI_SYMBOL(MPI_Ibcast)
MPI_SYMBOL(MPI_Test) MPI_SYMBOL(MPI_Testsome) MPI_SYMBOL(MPI_Abort) MPI_SYMBOL(MPI_Finalize) MPI_SYMBOL(MPI_Comm_get_attr) MPI_SYMBOL(MPI_Get_library_version)
#ifdef OPEN_MPI
#define BYTE CONSTANT(MPI_Datatype, "ompi_mpi_byte")
#define INT CONSTANT(MPI_Datatype, "ompi_mpi_int")
#define NO_COMMUNICATOR CONSTANT(MPI_Comm, "ompi_mpi_comm_null")
#else
#define BYTE MPI_BYTE
#define INT MPI_INT
#define NO_COMMUNICATOR MPI_COMM_NULL
#endif

/* MPI_COMM_WORLD and what takes its place; equal, and no communicator, until there is an order. */
static MPI_Comm original, reordered;
/* By rank: the process, as the launcher counts them. */
static int *order, processes;

#define REAL(communicator) ((communicator) == original ? reordered : (communicator))

/* Places ------------------------------------------------------------------------------------------------------------ */

enum { NAME = 96, FAILED = -1 };
/* Seconds that processes wait for each other. */
static int patience = 60;

/* What a process says of itself; ranks of the mapping have the same form. `core` is the first on which it may run. */
struct place { char host[NAME]; int32_t index, program, core, cores, has_input; };

static int by_place(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    int hosts = strcmp(one->host, other->host);
    if (hosts) return hosts;
    if (one->program != other->program) return one->program < other->program ? -1 : 1;
    if (one->core != other->core) return one->core < other->core ? -1 : 1;
    return one->index < other->index ? -1 : one->index > other->index;
}

/* Whether standard input is neither /dev/null nor a terminal, and has not ended. Launchers make pipes, to which data may come late. */
static int has_input(void)
{
    struct stat of, null;
    struct pollfd input = { 0, POLLIN, 0 };
    int bytes = 0;
    if (isatty(0) || fstat(0, &of) != 0) return 0;
    if (stat("/dev/null", &null) == 0 && S_ISCHR(of.st_mode) && of.st_rdev == null.st_rdev) return 0;
    if (S_ISREG(of.st_mode)) return lseek(0, 0, SEEK_CUR) < of.st_size;
    poll(&input, 1, 200);
    if (ioctl(0, FIONREAD, &bytes) == 0 && bytes > 0) return 1;
    return !(input.revents & (POLLHUP | POLLERR | POLLNVAL | POLLIN));
}

static struct place own_place(int rank)
{
    struct place place = { .index = rank, .has_input = rank == 0 ? has_input() : 0 };
    const char *host = getenv("HOPMAP_REORDER_HOST"), *cores = getenv("HOPMAP_REORDER_CORES");
    snprintf(place.host, NAME, "%s", host ? host : "");
    if (cores) sscanf(cores, "%d %d", &place.core, &place.cores);
    int *program = NULL, is_known = 0;
    /* The attribute of the communicator in which the programs of one job are. */
    if (PMPI(MPI_Comm_get_attr)(WORLD, MPI_APPNUM, &program, &is_known) == MPI_SUCCESS && is_known) place.program = *program;
    return place;
}

/* The mapping ------------------------------------------------------------------------------------------------------- */

static char problem[640];

#define REFUSE(...) (snprintf(problem, sizeof problem, __VA_ARGS__), FAILED)

/* The mapping of `hopmap reorder`: `ranks N by host SHORT` or `ranks N by index`, then a line for each rank. */
static char *read_mapping(void)
{
    const char *descriptor = getenv("HOPMAP_REORDER_FD");
    int file = descriptor ? atoi(descriptor) : -1;
    struct stat of;
    if (file < 3 || fstat(file, &of) != 0 || lseek(file, 0, SEEK_SET) != 0) return NULL;
    char *text = malloc((size_t) of.st_size + 1);
    ssize_t length = 0, got = 1;
    while (text && length < of.st_size && (got = read(file, text + length, (size_t) (of.st_size - length))) > 0) length += got;
    if (text) text[length] = '\0';
    return text;
}

static void shorten(char *host)
{
    int is_address = strspn(host, "0123456789.") == strlen(host);
    char *dot = is_address ? NULL : strchr(host, '.');
    if (dot) *dot = '\0';
}

/* The sort has put equal hosts together: the first place at which processes and ranks differ says what is wrong. */
static int differ(const struct place *process, const struct place *rank, const struct place *of_processes, const struct place *of_ranks)
{
    int processes_there = 0, ranks_there = 0, hosts = strcmp(process->host, rank->host);
    const char *host = hosts <= 0 ? process->host : rank->host;
    for (int index = 0; index < processes; index++) {
        processes_there += strcmp(of_processes[index].host, host) == 0;
        ranks_there += strcmp(of_ranks[index].host, host) == 0;
    }
    if (!ranks_there) return REFUSE("process %d runs on %s, which the mapping does not use; it uses %s and others", process->index, host, of_ranks[0].host);
    if (!processes_there) return REFUSE("the mapping puts rank %d on %s, where no process runs", rank->index, host);
    if (hosts) return REFUSE("the mapping puts %d ranks on %s, where %d processes run: start as many there, with -ppn, --ntasks-per-node or a host file", ranks_there, host, processes_there);
    return REFUSE("on %s, the mapping exchanges ranks of different programs of the job: rank %d", host, rank->index);
}

static void say_cores(const struct place *of_processes, const struct place *of_ranks)
{
    int named = 0, bound = 1, same = 1;
    for (int index = 0; index < processes; index++) {
        named |= of_ranks[index].cores;
        bound &= of_processes[index].cores == 1;
        same &= of_processes[index].core == of_ranks[index].core;
    }
    if (named && !bound) fprintf(stderr, "hopmap reorder: processes are not bound to one core each: of the cores of the mapping, only the order counts\n");
    else if (named && !same) fprintf(stderr, "hopmap reorder: the cores of the processes are not those of the mapping; both are taken in their order\n");
}

/* Rank 0 stays with the standard input, which launchers give to their rank 0. */
static void pin(const struct place *process)
{
    const char *choice = getenv("HOPMAP_REORDER_PIN");
    int is_pinned = choice ? strcmp(choice, "0") == 0 : process->has_input, other = 0;
    if (order[0] == 0 || !is_pinned) return;
    while (order[other] != 0) other++;
    order[other] = order[0];
    order[0] = 0;
    fprintf(stderr, "hopmap reorder: rank 0 stays on %s%s, and rank %d is where the mapping has rank 0\n", process->host,
            process->has_input ? " with the standard input" : "", other);
}

static int match_hosts(char *line, char **rest, int is_short, struct place *of_processes)
{
    struct place *of_ranks = calloc((size_t) processes, sizeof *of_ranks);
    if (!of_ranks) return REFUSE("no memory for the places of %d ranks", processes);
    int result = 0;
    struct place input = of_processes[0];
    for (int rank = 0; rank < processes; rank++, line = strtok_r(NULL, "\n", rest)) {
        struct place *own = &of_ranks[rank];
        own->index = rank;
        own->program = of_processes[rank].program;
        if (!line || sscanf(line, "%95s %d", own->host, &own->core) < 1) { result = REFUSE("the mapping ends before rank %d", rank); break; }
        own->cores = own->core >= 0;
        if (is_short) shorten(of_processes[rank].host);
    }
    if (!result) {
        qsort(of_ranks, (size_t) processes, sizeof *of_ranks, by_place);
        qsort(of_processes, (size_t) processes, sizeof *of_processes, by_place);
    }
    for (int at = 0; !result && at < processes; at++) {
        struct place *process = &of_processes[at], *rank = &of_ranks[at];
        if (strcmp(process->host, rank->host) || process->program != rank->program) result = differ(process, rank, of_processes, of_ranks);
        else order[rank->index] = process->index;
    }
    if (!result) { say_cores(of_processes, of_ranks); pin(&input); }
    free(of_ranks);
    return result;
}

static int match_indices(char *line, char **rest, struct place *of_processes)
{
    char *is_taken = calloc((size_t) processes, 1);
    for (int rank = 0; rank < processes; rank++, line = strtok_r(NULL, "\n", rest)) {
        int process = line ? atoi(line) : -1;
        if (!is_taken || process < 0 || process >= processes || is_taken[process]++) { free(is_taken); return REFUSE("the mapping does not give rank %d a process of its own", rank); }
        if (of_processes[rank].program != of_processes[process].program) { free(is_taken); return REFUSE("the mapping exchanges ranks of different programs of the job: rank %d and process %d", rank, process); }
        order[rank] = process;
    }
    free(is_taken);
    pin(&of_processes[0]);
    return 0;
}

/* Fills `order`, or says in `problem` why not. */
static int match(struct place *of_processes)
{
    char *text = read_mapping(), *rest = NULL, way[16] = "";
    int ranks = 0, is_short = 0, result;
    char *line = text ? strtok_r(text, "\n", &rest) : NULL;
    if (!line || sscanf(line, "ranks %d by %15s %d", &ranks, way, &is_short) < 2) result = REFUSE("process 0 has no mapping");
    else if (ranks != processes) result = REFUSE("the mapping has %d ranks, and the launcher has started %d", ranks, processes);
    else if (line = strtok_r(NULL, "\n", &rest), strcmp(way, "index") == 0) result = match_indices(line, &rest, of_processes);
    else result = match_hosts(line, &rest, is_short, of_processes);
    free(text);
    return result;
}

/* The exchange ------------------------------------------------------------------------------------------------------ */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static void give_up(const char *message)
{
    fprintf(stderr, "hopmap reorder: %s\n", message);
    PMPI(MPI_Abort)(WORLD, 1);
    _exit(1);
}

/* Waits for a request without blocking for ever. */
static int is_done_by(double end, MPI_Request *request)
{
    struct timespec pause = { 0, 100000 };
    for (int is_done = 0; ; nanosleep(&pause, NULL)) {
        if (PMPI(MPI_Test)(request, &is_done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return 0;
        if (is_done) return 1;
        if (now() > end) return 0;
    }
}

/* The places of all processes, at process 0. */
static struct place *gather(struct place own, double end)
{
    struct place *all = calloc((size_t) processes, sizeof *all);
    MPI_Request *requests = calloc((size_t) processes, sizeof *requests);
    int *done = calloc((size_t) processes, sizeof *done), *came = calloc((size_t) processes, sizeof *came);
    if (!all || !requests || !done || !came) give_up("no memory for the places of all processes");
    all[0] = own;
    came[0] = 1;
    for (int process = 1; process < processes; process++)
        PMPI(MPI_Irecv)(&all[process], sizeof own, BYTE, process, 0, WORLD, &requests[process - 1]);
    struct timespec pause = { 0, 100000 };
    for (int left = processes - 1, count = 0; left > 0; left -= count > 0 ? count : 0) {
        PMPI(MPI_Testsome)(processes - 1, requests, &count, done, MPI_STATUSES_IGNORE);
        for (int index = 0; index < count; index++) came[done[index] + 1] = 1;
        if (count <= 0) nanosleep(&pause, NULL);
        if (now() > end) {
            int length = snprintf(problem, sizeof problem, "%d of %d processes have not loaded the library within %d s:", left, processes, patience);
            for (int process = 0; process < processes && length < (int) sizeof problem - 64; process++)
                if (!came[process]) length += snprintf(problem + length, sizeof problem - (size_t) length, " %d", process);
            give_up(problem);
        }
    }
    free(requests); free(done); free(came);
    return all;
}

/* Another release may have procedures that the wrappers do not know: better no run than a wrong one. */
static void expect_library(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length;
    PMPI(MPI_Get_library_version)(version, &length);
    version[strcspn(version, "\n")] = 0;
#if defined(OPEN_MPI)
    const char *number = strstr(version, "Open MPI v");
    if (number && atoi(number + strlen("Open MPI v")) == OMPI_MAJOR_VERSION) return;
#elif defined(I_MPI_VERSION)
    if (strstr(version, "Intel")) return;
#else
    const char *number = strstr(version, "MPICH Version:");
    if (number && atoi(number + strlen("MPICH Version:")) == atoi(MPICH_VERSION)) return;
#endif
    snprintf(problem, sizeof problem, "the program uses %.80s, but the library is built for another MPI: name its compiler with --mpicc", version);
    give_up(problem);
}

static void end_all(void)
{
    PMPI(MPI_Finalize)();
    exit(1);
}

COLD static void reorder(void)
{
    static int has_run;
    const char *host = getenv("HOPMAP_REORDER_HOST");
    MPI_Comm parent = NO_COMMUNICATOR;
    if (has_run++ || !host) return;
    expect_library();
    PMPI(MPI_Comm_get_parent)(&parent);
    int rank = 0;
    PMPI(MPI_Comm_rank)(WORLD, &rank);
    PMPI(MPI_Comm_size)(WORLD, &processes);
    const char *seconds = getenv("HOPMAP_REORDER_SECONDS");
    if (seconds && atoi(seconds) > 0) patience = atoi(seconds);
    double end = now() + patience;
    order = calloc((size_t) processes, sizeof *order);
    if (!order) give_up("no memory for the order of the ranks");
    struct place own = own_place(rank);
    MPI_Request request;
    struct place *all = NULL;
    /* Those that a process has spawned keep their order. */
    int is_spawned = parent != NO_COMMUNICATOR;
    if (!is_spawned && rank == 0) {
        all = gather(own, end);
        if (match(all) != 0) {
            fprintf(stderr, "hopmap reorder: %s\n", problem);
            order[0] = FAILED;
        }
        free(all);
    } else if (!is_spawned) {
        PMPI(MPI_Isend)(&own, sizeof own, BYTE, 0, 0, WORLD, &request);
        if (!is_done_by(end + 5, &request)) give_up("process 0 does not take the place of this process");
    }
    const char *variables[] = { "HOPMAP_REORDER_HOST", "HOPMAP_REORDER_CORES", "HOPMAP_REORDER_PIN", "HOPMAP_REORDER_FD" };
    const char *descriptor = getenv(variables[3]);
    if (descriptor && atoi(descriptor) > 2) close(atoi(descriptor));
    for (int at = 0; at < 4; at++) unsetenv(variables[at]);
    if (is_spawned) return;
    PMPI(MPI_Ibcast)(order, processes, INT, 0, WORLD, &request);
    if (!is_done_by(end + 10, &request)) give_up("not every process has the order of the ranks");
    if (order[0] == FAILED) end_all();
    MPI_Group all_processes, all_ranks;
    MPI_Comm made;
    PMPI(MPI_Comm_group)(WORLD, &all_processes);
    PMPI(MPI_Group_incl)(all_processes, processes, order, &all_ranks);
    PMPI(MPI_Comm_create)(WORLD, all_ranks, &made);
    PMPI(MPI_Comm_set_name)(made, "MPI_COMM_WORLD");
    PMPI(MPI_Group_free)(&all_processes);
    PMPI(MPI_Group_free)(&all_ranks);
    original = WORLD;
    reordered = made;
    /* Hydra leaves the input of other processes open: a rank 0 that reads would wait for ever. */
    int empty = rank != 0 && order[0] == rank ? open("/dev/null", O_RDONLY) : -1;
    if (empty >= 0) { dup2(empty, 0); close(empty); }
}

/* Procedures with a part of their own ------------------------------------------------------------------------------- */

/* What a callback of the program sees. */
#define SEEN(communicator) ((communicator) == reordered && reordered != original ? original : (communicator))

/* A predefined attribute belongs to the first communicator alone in some MPIs. */
#define AFTER_GET_ATTRIBUTE(comm, key, value, flag) \
    do { \
        static const int KEYS[] = { MPI_TAG_UB, MPI_HOST, MPI_IO, MPI_WTIME_IS_GLOBAL, MPI_UNIVERSE_SIZE, MPI_LASTUSEDCODE, MPI_APPNUM }; \
        for (size_t at = 0; result == MPI_SUCCESS && !*(flag) && original != reordered && at < sizeof KEYS / sizeof *KEYS; at++) \
            if ((key) == KEYS[at]) result = PMPI(MPI_Comm_get_attr)(original, key, value, flag); \
    } while (0)

/* Functions of the program that MPI calls with a communicator: each has a function here that knows it. More than these are called by
 * MPI itself, and see another handle for MPI_COMM_WORLD. */
#define EACH(form) \
    form(0) form(1) form(2) form(3) form(4) form(5) form(6) form(7) form(8) form(9) form(10) form(11) form(12) form(13) form(14) form(15) \
    form(16) form(17) form(18) form(19) form(20) form(21) form(22) form(23) form(24) form(25) form(26) form(27) form(28) form(29) form(30) form(31)
enum { MOST = 32 };

typedef void (*handler)(MPI_Comm *, int *, ...);
typedef int (*copier)(MPI_Comm, int, void *, void *, void *, int *);
typedef int (*deleter)(MPI_Comm, int, void *, void *);
static handler handlers[MOST];
static copier copiers[MOST];
static deleter deleters[MOST];
static int handlers_used, copiers_used, deleters_used;

#define HANDLER(at) static void handler_##at(MPI_Comm *comm, int *code, ...) { MPI_Comm seen = SEEN(*comm); handlers[at](&seen, code); }
#define COPIER(at) static int copier_##at(MPI_Comm comm, int key, void *state, void *in, void *out, int *flag) { return copiers[at](SEEN(comm), key, state, in, out, flag); }
#define DELETER(at) static int deleter_##at(MPI_Comm comm, int key, void *value, void *state) { return deleters[at](SEEN(comm), key, value, state); }
#define NAME_OF_HANDLER(at) handler_##at,
#define NAME_OF_COPIER(at) copier_##at,
#define NAME_OF_DELETER(at) deleter_##at,
EACH(HANDLER) EACH(COPIER) EACH(DELETER)
static const handler HANDLERS[] = { EACH(NAME_OF_HANDLER) };
static const copier COPIERS[] = { EACH(NAME_OF_COPIER) };
static const deleter DELETERS[] = { EACH(NAME_OF_DELETER) };

#define STAND_IN(kind, function) \
    do { \
        int at = (function) ? __atomic_fetch_add(&kind##s_used, 1, __ATOMIC_RELAXED) : MOST; \
        if (at < MOST) { kind##s[at] = (kind) (function); (function) = (__typeof__(function)) STANDINS_##kind[at]; } \
    } while (0)
/* MPICH's Fortran interface registers functions of Fortran, which take addresses, by the same call. */
#define IS_OF_FORTRAN(caller) (dladdr(caller, &object) != 0 && object.dli_fname && strstr(object.dli_fname, "fort"))
#define STANDINS_handler HANDLERS
#define STANDINS_copier COPIERS
#define STANDINS_deleter DELETERS

#if MPI_VERSION >= 4
/* A session whose processes are those of MPI_COMM_WORLD has their order, if MPI_Init has computed it. */
static int reordered_group(const char *set, MPI_Group *group, int result)
{
    if (result != MPI_SUCCESS || strcasecmp(set, "mpi://WORLD") != 0) return result;
    if (getenv("HOPMAP_REORDER_HOST")) give_up("a session begins without MPI_Init, and its ranks cannot be reordered: leave hopmap reorder out");
    if (original == reordered) return result;
    MPI_Group own = *group;
    result = PMPI(MPI_Group_incl)(own, processes, order, group);
    PMPI(MPI_Group_free)(&own);
    return result;
}
#endif
