/* Measures between the ranks of an MPI job the steps that `topology/probe` asks for: `LAUNCHER prober FOLDER`.
 *
 * Rank 0 and hopmap exchange messages through two files in FOLDER, which hopmap has created: it appends steps to `plan`,
 * and rank 0 appends results to `results` (see ranks.rs). A message is some lines and the line `end N`, with the number
 * of lines before it. Every look opens the file, reads on from where the last one ended, and closes it: NFS promises a
 * reader what was written before the file was opened, and no more.
 *
 * All ranks execute a step together. Rank 0 hands it out once it has the results of the step before from everybody, so
 * no measurement disturbs one of another step. A pair is timed by its source, which sends a header before every batch;
 * the destination answers batches until a header says that the pair is done. */

#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* Largest number of sizes of a step. */
enum { SIZES = 64 };
/* Messages of a stream in progress: enough to hide the handshakes of long messages. */
enum { WINDOW = 4 };
/* Repetitions of a call; sends to a late receiver by size, of which the shortest counts. */
enum { CALLS = 30, LEAST_CALLS = 5, LATE_SENDS = 3 };
/* Smallest and largest message of the search for the eager limit. */
static const uint64_t EAGER[2] = {1 << 10, 1 << 22};
/* Seconds by which a receive is posted later than its message, at least. */
static const double LATE = 0.01;
/* Seconds between two looks at the plan, and after which a plan without news belongs to a hopmap that is gone. */
static const double LOOK = 0.005, PATIENCE = 600;

static const char *folder;
static int rank, ranks;

static void fail(const char *problem, const char *what)
{
    fprintf(stderr, "prober: rank %d: %s %s: %s\n", rank, problem, what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void *allocate(uint64_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    if (!memory) fail("cannot allocate", "memory");
    return memory;
}

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

/* --- Batches --------------------------------------------------------------------------------------------------- */

enum call { TRIP, SEND, ISEND, RECV, STREAM, DONE };
static const char *const NAMES[] = {"trip", "send", "isend", "recv", "stream"};

/* The header of a batch. The pause is one of the receiver before it receives, or of the source before its timed
 * receive, during which neither MPI nor anything else is called. */
struct batch {
    uint64_t call, bytes, messages, pause_ns;
};

static void send_bytes(const void *bytes, uint64_t length, int to)
{
    MPI_Send(bytes, (int)length, MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

static void receive_bytes(void *bytes, uint64_t length, int from)
{
    MPI_Recv(bytes, (int)length, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Sends a stream; the seconds until all of it has arrived. */
static double stream(int other, struct batch batch, char *message)
{
    MPI_Request sends[WINDOW];
    char reply;
    double begin = MPI_Wtime();
    for (uint64_t left = batch.messages; left > 0;) {
        int width = left < WINDOW ? left : WINDOW;
        for (int i = 0; i < width; i++)
            MPI_Isend(message, batch.bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &sends[i]);
        MPI_Waitall(width, sends, MPI_STATUSES_IGNORE);
        left -= width;
    }
    receive_bytes(&reply, 1, other);
    return MPI_Wtime() - begin;
}

static void answer_stream(int other, struct batch batch)
{
    MPI_Request receives[WINDOW];
    char *messages[WINDOW], reply = 0;
    for (int i = 0; i < WINDOW; i++) messages[i] = allocate(batch.bytes);
    for (uint64_t left = batch.messages; left > 0;) {
        int width = left < WINDOW ? left : WINDOW;
        for (int i = 0; i < width; i++)
            MPI_Irecv(messages[i], batch.bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &receives[i]);
        MPI_Waitall(width, receives, MPI_STATUSES_IGNORE);
        left -= width;
    }
    send_bytes(&reply, 1, other);
    for (int i = 0; i < WINDOW; i++) free(messages[i]);
}

/* Times a batch. Nothing but the clock is between two round trips; around other calls, the other rank is made ready
 * and asked for a reply, so that messages do not pile up. */
static void measure(int other, struct batch batch, double *times)
{
    MPI_Send(&batch, 4, MPI_UINT64_T, other, 0, MPI_COMM_WORLD);
    char *message = allocate(batch.bytes), reply = 0;
    MPI_Request request;
    if (batch.call == STREAM) {
        double mean = stream(other, batch, message) / (batch.messages ? batch.messages : 1);
        for (uint64_t i = 0; i < batch.messages; i++) times[i] = mean;
        free(message);
        return;
    }
    double before = MPI_Wtime(), now = before;
    for (uint64_t i = 0; i < batch.messages; i++) {
        switch (batch.call) {
        case TRIP:
            send_bytes(message, batch.bytes, other);
            receive_bytes(&reply, 1, other);
            now = MPI_Wtime();
            break;
        case SEND:
            before = MPI_Wtime();
            send_bytes(message, batch.bytes, other);
            now = MPI_Wtime();
            receive_bytes(&reply, 1, other);
            break;
        case ISEND:
            before = MPI_Wtime();
            MPI_Isend(message, batch.bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
            now = MPI_Wtime();
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            receive_bytes(&reply, 1, other);
            break;
        case RECV:
            send_bytes(&reply, 1, other);
            pause_for(batch.pause_ns * 1e-9);
            before = MPI_Wtime();
            receive_bytes(message, batch.bytes, other);
            now = MPI_Wtime();
            break;
        }
        times[i] = now - before;
        before = now;
    }
    free(message);
}

/* Answers the batches of a source until it is done. */
static void answer(int other)
{
    for (;;) {
        struct batch batch;
        MPI_Recv(&batch, 4, MPI_UINT64_T, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (batch.call == DONE) return;
        if (batch.call == STREAM) {
            answer_stream(other, batch);
            continue;
        }
        char *message = allocate(batch.bytes), reply = 0;
        for (uint64_t i = 0; i < batch.messages; i++) {
            if (batch.call == RECV) {
                receive_bytes(&reply, 1, other);
                send_bytes(message, batch.bytes, other);
                continue;
            }
            if (batch.pause_ns) pause_for(batch.pause_ns * 1e-9);
            receive_bytes(message, batch.bytes, other);
            send_bytes(&reply, 1, other);
        }
        free(message);
    }
}

/* --- Measurements of a pair ------------------------------------------------------------------------------------ */

/* How a step measures: `Sampling` of sampling.rs. */
struct sampling {
    uint64_t warm_up, warm_up_bytes, batch, most, calm_batches;
    double tolerance, seconds;
    int sizes;
    uint64_t bytes[SIZES];
};

/* A pair, and where its results go. */
struct pair {
    int source, destination;
    FILE *results;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Writes shortest time, first decile, median, ninth decile and longest time; returns the median. */
static double summarise(struct pair pair, enum call call, uint64_t bytes, double *times, uint64_t count)
{
    double found[5], parts[] = {0, 0.1, 0.5, 0.9, 1};
    qsort(times, count, sizeof *times, by_value);
    for (int i = 0; i < 5; i++) found[i] = times[(uint64_t)(parts[i] * (count - 1) + 0.5)];
    fprintf(pair.results, "%d %d %s %llu %llu %.9g %.9g %.9g %.9g %.9g\n", pair.source, pair.destination, NAMES[call],
        (unsigned long long)bytes, (unsigned long long)count, found[0], found[1], found[2], found[3], found[4]);
    return found[2];
}

static double shortest_of(double shortest, const double *times, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) shortest = times[i] < shortest ? times[i] : shortest;
    return shortest;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Batches until the shortest time has not decreased some times in a row: `sample_size` of sampling.rs. */
static double sample(struct pair pair, enum call call, const struct sampling *how, uint64_t bytes)
{
    static double *times;
    static uint64_t room;
    uint64_t fill = least(how->warm_up_bytes / (bytes ? bytes : 1), 64), count = 0, calm = 0;
    fill = how->warm_up > fill ? how->warm_up : fill;
    double spent = 0, shortest = 1e300;
    for (uint64_t batch = fill, is_warm = 0;; is_warm = 1) {
        if (count + batch > room) {
            room = 2 * (count + batch);
            times = realloc(times, room * sizeof *times);
            if (!times) fail("cannot allocate", "times");
        }
        measure(pair.destination, (struct batch){call, bytes, batch, 0}, times + count);
        if (is_warm) {
            for (uint64_t i = 0; i < batch; i++) spent += times[count + i];
            double found = shortest_of(shortest, times + count, batch);
            calm = count > 0 && found > shortest * (1 - how->tolerance) ? calm + 1 : 0;
            shortest = found;
            count += batch;
            if (count >= how->most || calm >= how->calm_batches || spent >= how->seconds)
                return summarise(pair, call, bytes, times, count);
        }
        /* A batch must not exceed the time left: slow connections get short batches. */
        double pace = count ? spent / count : 0, affordable = pace > 0 ? (how->seconds - spent) / pace : 0;
        uint64_t whole = affordable < 1e9 ? affordable : 1e9;
        whole += whole < affordable || whole == 0;
        batch = count ? least(least(how->batch, how->most - count), whole) : 1;
    }
}

/* Whether a send of so many bytes waits for its receive, which is posted late. */
static int waits(struct pair pair, uint64_t bytes, double per_byte)
{
    double times[LATE_SENDS], pause = 2 * per_byte * bytes;
    pause = pause > LATE ? pause : LATE;
    measure(pair.destination, (struct batch){SEND, bytes, LATE_SENDS, (uint64_t)(pause * 1e9)}, times);
    return shortest_of(1e300, times, LATE_SENDS) >= pause / 2;
}

/* The shortest message whose send waits for its receive, by bisection; zero if none does. */
static uint64_t eager_limit(struct pair pair, double per_byte)
{
    uint64_t eager = EAGER[0], waiting = 2 * eager;
    while (!waits(pair, waiting, per_byte)) {
        eager = waiting;
        waiting *= 2;
        if (waiting > EAGER[1]) return 0;
    }
    if (eager == EAGER[0] && waits(pair, eager, per_byte)) {
        waiting = eager;
        eager = 0;
    }
    while (waiting - eager > 1) {
        uint64_t middle = eager + (waiting - eager) / 2;
        *(waits(pair, middle, per_byte) ? &waiting : &eager) = middle;
    }
    return waiting;
}

/* Round trips, the calls that cost their caller time, and the eager limit if it is asked for. Calls are measured as in
 * the calibration of SMPI (Degomme et al., TPDS 28, 2017): a send to a rank that receives at once, and the receive of
 * a message that arrived while the receiver slept. */
static void measure_alone(struct pair pair, const struct sampling *how, int with_eager_limit)
{
    double medians[SIZES], times[CALLS];
    for (int i = 0; i < how->sizes; i++) medians[i] = sample(pair, TRIP, how, how->bytes[i]);
    for (enum call call = SEND; call <= RECV; call++)
        for (int i = 0; i < how->sizes; i++) {
            double median = medians[i] > 1e-9 ? medians[i] : 1e-9, affordable = how->seconds / median;
            uint64_t messages = affordable < CALLS ? affordable : CALLS;
            messages = messages < LEAST_CALLS ? LEAST_CALLS : messages;
            uint64_t pause_ns = call == RECV ? 2e9 * medians[i] : 0;
            measure(pair.destination, (struct batch){call, how->bytes[i], messages, pause_ns}, times);
            summarise(pair, call, how->bytes[i], times, messages);
        }
    if (with_eager_limit) {
        uint64_t bytes = eager_limit(pair, medians[how->sizes - 1] / how->bytes[how->sizes - 1]);
        if (bytes)
            fprintf(pair.results, "%d %d eager %llu 1 0 0 0 0 0\n", pair.source, pair.destination,
                (unsigned long long)bytes);
    }
}

/* --- Steps ----------------------------------------------------------------------------------------------------- */

/* Measures from one rank to another if this rank is one of them. `bytes` is the size of a stream. */
static void direct(struct pair pair, const char *kind, const struct sampling *how, uint64_t bytes)
{
    if (rank == pair.destination) answer(pair.source);
    if (rank != pair.source)
        return;
    if (!strcmp(kind, "stream"))
        sample(pair, STREAM, how, bytes);
    else if (!strcmp(kind, "trips"))
        for (int i = 0; i < how->sizes; i++)
            sample(pair, TRIP, how, how->bytes[i]);
    else
        measure_alone(pair, how, !strcmp(kind, "eager"));
    MPI_Send(&(struct batch){.call = DONE}, 4, MPI_UINT64_T, pair.destination, 0, MPI_COMM_WORLD);
}

/* Executes a step: a line with its kind and sampling, then one for each pair: source, destination, bytes. Pairs of
 * `trips` are measured first in one direction, then in the other. */
static void execute(const char *step, FILE *results)
{
    struct sampling how;
    char kind[8];
    unsigned long long n[5], bytes;
    int at = 0, more = 0;
    errno = EPROTO;
    if (sscanf(step, "%7s %llu %llu %llu %llu %llu %lf %lf %d%n", kind, &n[0], &n[1], &n[2], &n[3], &n[4],
               &how.tolerance, &how.seconds, &how.sizes, &at) != 9 || how.sizes < 0 || how.sizes > SIZES)
        fail("cannot read a step of", "plan");
    how.warm_up = n[0], how.warm_up_bytes = n[1], how.batch = n[2], how.most = n[3], how.calm_batches = n[4];
    for (int i = 0; i < how.sizes; i++, at += more) {
        if (sscanf(step + at, " %llu%n", &bytes, &more) != 1) fail("cannot read a step of", "plan");
        how.bytes[i] = bytes;
    }
    const char *line = strchr(step + at, '\n');
    while (line && strncmp(line, "\nend ", 5)) {
        char *end;
        int source = strtol(line, &end, 10), destination = strtol(end, &end, 10);
        bytes = strtoull(end, NULL, 10);
        direct((struct pair){source, destination, results}, kind, &how, bytes);
        if (!strcmp(kind, "trips"))
            direct((struct pair){destination, source, results}, kind, &how, bytes);
        line = strchr(line + 1, '\n');
    }
}

/* --- The exchange with hopmap, by rank 0 ----------------------------------------------------------------------- */

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Appends to a file. */
static void append(const char *name, const char *text, size_t length)
{
    FILE *file = fopen(path_of(name), "a");
    if (!file || fwrite(text, 1, length, file) != length || fclose(file)) fail("cannot write", path_of(name));
}

/* Appends a message to the results. */
static void tell(const char *text, size_t length)
{
    size_t lines = 0;
    char end[32];
    for (size_t i = 0; i < length; i++) lines += text[i] == '\n';
    append("results", text, length);
    append("results", end, snprintf(end, sizeof end, "end %zu\n", lines));
}

/* hopmap greets rank 0 on standard input, holds the other end as long as it lives, and writes more to stop it. An
 * input that ends without the greeting is not connected to hopmap and says nothing. A folder that is gone belonged to
 * a hopmap that is gone. */
static int is_stopped(void)
{
    static const char greeting[] = "hopmap\n";
    static size_t heard, is_deaf;
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (!is_deaf && poll(&input, 1, 0) > 0) {
        char letter;
        ssize_t length = read(STDIN_FILENO, &letter, 1);
        if (heard == sizeof greeting - 1) return 1;
        if (length == 1 && letter == greeting[heard])
            heard++;
        else
            is_deaf = 1;
    }
    return !access(path_of("stop"), F_OK) || access(path_of("plan"), F_OK);
}

/* The next message of the plan, if all of it is there. */
static char *read_step(void)
{
    static long offset;
    char *step = NULL, *line = NULL;
    size_t length = 0, room = 0;
    FILE *plan = fopen(path_of("plan"), "r");
    if (!plan || fseek(plan, offset, SEEK_SET)) return NULL;
    for (int is_whole = 0; !is_whole;) {
        ssize_t more = getline(&line, &room, plan);
        if (more <= 0 || line[more - 1] != '\n') {
            free(step);
            step = NULL;
            break;
        }
        step = realloc(step, length + more + 1);
        if (!step) fail("cannot allocate", "a step");
        memcpy(step + length, line, more + 1);
        length += more;
        is_whole = !strncmp(line, "end ", 4);
    }
    offset += step ? length : 0;
    free(line);
    fclose(plan);
    return step;
}

/* Waits for the next step; none if the measurement is to end early. */
static char *next_step(void)
{
    for (double begin = MPI_Wtime(); MPI_Wtime() - begin < PATIENCE && !is_stopped(); pause_for(LOOK)) {
        char *step = read_step();
        if (step) return step;
    }
    return NULL;
}

/* `host NAME`, the name that hopmap has for this host: `host_name` of hopmap-mpi-environment. */
static char *host_line(void)
{
    struct utsname system;
    char *line;
    uname(&system);
    const char *node = getenv("SLURMD_NODENAME"), *hydra = getenv("MPI_LOCALRANKID");
    int is_node = node && *node && !(hydra && *hydra);
    if (asprintf(&line, "host %s\n", is_node ? node : system.nodename) < 0) fail("cannot allocate", "a name");
    return line;
}

/* Appends a message of all ranks to the results. */
static void tell_all(char *text, size_t length)
{
    int *lengths = allocate((uint64_t)ranks * sizeof(int)), *begins = allocate((uint64_t)ranks * sizeof(int));
    int own = length;
    long long sum = 0;
    MPI_Gather(&own, 1, MPI_INT, lengths, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ranks && !rank; sum += lengths[i++]) begins[i] = sum;
    errno = EFBIG;
    if (sum > INT_MAX) fail("cannot gather", "results");
    char *all = allocate(sum);
    MPI_Gatherv(text, own, MPI_CHAR, all, lengths, begins, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (!rank) tell(all, sum);
    free(all);
    free(lengths);
    free(begins);
    free(text);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "prober FOLDER is started by hopmap, for topology/probe with a launcher\n");
        return 2;
    }
    folder = arguments[1];
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!rank) append("begun", "", 0);
    char *text = host_line();
    tell_all(text, strlen(text));
    for (;;) {
        char *step = rank ? NULL : next_step();
        int length = step ? (int)strlen(step) + 1 : 0;
        MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!length && !rank) tell("stopped\n", 8);
        if (!length) break;
        if (rank) step = allocate(length);
        MPI_Bcast(step, length, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (!strncmp(step, "finish\n", 7)) break;
        size_t size;
        FILE *results = open_memstream(&text, &size);
        execute(step, results);
        if (fclose(results)) fail("cannot allocate", "results");
        tell_all(text, size);
        free(step);
    }
    MPI_Finalize();
    return 0;
}
