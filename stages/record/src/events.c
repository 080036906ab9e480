/* `hopmap record --events`: every call of MPI with its times, in the file `events-N.bin` that the crate hopmap-recording
 * describes. Appended to runtime.c. Each thread encodes into a block of its own, which is written when it is full. */

enum { OTHER, POLLS, SEND, RECEIVE = 6, ISEND, IRECEIVE = 11, SENDRECV, COLLECTIVE_CALL, ICOLLECTIVE, WAIT, TEST,
    SENT, RECEIVED, CANCELLED, FREED, FINALIZE };
enum { CLASS_OTHER, CLASS_ONE_SIDED, CLASS_PARTITIONED, CLASS_PROBE, CLASS_COMMUNICATOR };
#define SAME_CALL 0x80 /* belongs to the call of the record before, and has no times */

enum { EVENT_BLOCK, COMMUNICATOR_BLOCK, END_BLOCK };
struct block { uint32_t kind, length, thread, records; uint64_t first, tick, time, checksum; };
#define BLOCK (64 << 10)
#define LONGEST_RECORD 128

struct events {
    uint64_t end, previous;     /* ticks at which MPI has returned from this call, and from the one before */
    unsigned char *at;
    int is_written;             /* whether this call has a record */
    struct { uint64_t calls, enter, end, inside, own; } polls;
    struct { int is_set, communicator; uint64_t kind, root, bytes; } noted; /* the collective of this call */
    uintptr_t *handles;         /* of requests, which MPI sets to null */
    uint32_t *numbers;          /* theirs, if several threads call MPI */
    MPI_Status *statuses, status;
    int capacity;
    struct block block;         /* the bytes of `content` follow it in the file */
    unsigned char content[BLOCK];
};

#if MPI_VERSION >= 3
MPI_SYMBOL(MPI_Get_elements_x)
#else
MPI_SYMBOL(MPI_Get_elements)
#endif
MPI_SYMBOL(MPI_Test_cancelled) MPI_SYMBOL(MPI_Query_thread)
#if defined(OPEN_MPI) && MPI_VERSION >= 3
MPI_SYMBOL(MPI_Message_f2c)
#endif

/* The file is longer than its length when its end is there, which is overwritten if the program goes on. */
static struct { int file, is_failed, is_shared, has_end; off_t length; uint32_t threads; uint64_t dropped, reported; } stream = { -1 };
static pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER, request_lock = PTHREAD_MUTEX_INITIALIZER;

/* Blocks ------------------------------------------------------------------------------------------------------------ */

static void cut_off(void)
{
    if (ftruncate(stream.file, stream.length) || lseek(stream.file, stream.length, SEEK_SET) < 0) stream.is_failed = 1;
    stream.has_end = 0;
}

/* Appends to the file, or leaves it as it was: on a full disk, it ends with a whole block. */
static int append_bytes(const void *bytes, size_t length)
{
    size_t at = 0;
    if (stream.has_end) cut_off();
    while (at < length && !stream.is_failed) {
        ssize_t written = write(stream.file, (const char *) bytes + at, length - at);
        if (written > 0) at += (size_t) written;
        else if (!written || errno != EINTR) stream.is_failed = 1;
    }
    if (!stream.is_failed) stream.length += (off_t) length;
    else cut_off();
    return !stream.is_failed;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t) time.tv_sec * 1000000000u + (uint64_t) time.tv_nsec;
}

static void begin_block(struct events *events)
{
    events->at = events->content;
    events->block.records = 0;
    events->block.first = events->previous;
}

/* FNV-1a by words instead of bytes, which takes an eighth of the time: 2 ns per call of MPI. The last word ends with zeros. */
static uint64_t checksum_of(uint64_t checksum, const void *bytes, size_t length)
{
    uint64_t word;
    size_t at = 0;
    for (; length - at >= sizeof word; at += sizeof word) {
        memcpy(&word, (const char *) bytes + at, sizeof word);
        checksum = (checksum ^ word) * 0x100000001b3u;
    }
    word = 0;
    memcpy(&word, (const char *) bytes + at, length - at);
    return at < length ? (checksum ^ word) * 0x100000001b3u : checksum;
}

/* Appends a block, whose content follows it. */
static int append_block(struct block *block)
{
    uint64_t checksum = checksum_of(0xcbf29ce484222325u, block, offsetof(struct block, checksum));
    block->checksum = checksum_of(checksum, block + 1, block->length);
    return append_bytes(block, sizeof *block + block->length);
}

static int write_block(struct events *events)
{
    events->block.length = (uint32_t) (events->at - events->content);
    events->block.tick = ticks();
    events->block.time = now();
    return append_block(&events->block);
}

COLD static void flush_events(struct events *events)
{
    pthread_mutex_lock(&stream_lock);
    if (!write_block(events)) stream.dropped += events->block.records;
    begin_block(events);
    pthread_mutex_unlock(&stream_lock);
}

/* Puts the members of a communicator into the file, before the first event of it. */
COLD static int describe(struct thread *self, struct group *group)
{
    int count = group->member_count;
    size_t length = sizeof(uint64_t) + sizeof(uint32_t) * (size_t) (count + 2);
    struct block *block = calloc(1, sizeof *block + length);
    if (!block) {
        self->lost++;
        return 0;
    }
    *block = (struct block) { COMMUNICATOR_BLOCK, (uint32_t) length, (uint32_t) group->index, (uint32_t) count };
    uint32_t *words = (uint32_t *) (block + 1);
    memcpy(words, &group->id, sizeof group->id);
    words[2] = (uint32_t) group->remote_start;
    words[3] = (uint32_t) group->peers;
    memcpy(words + 4, group->members, sizeof(uint32_t) * (size_t) count);
    pthread_mutex_lock(&stream_lock);
    if (!group->is_described) append_block(block);
    group->is_described = 1;
    pthread_mutex_unlock(&stream_lock);
    free(block);
    return 1;
}

/* The number of a communicator in the file; -1 without one, as of those with processes outside of MPI_COMM_WORLD. */
static int communicator_of(struct thread *self, MPI_Comm comm)
{
    struct group *group = group_of(self, comm);
    return group && group->index >= 0 && (group->is_described || describe(self, group)) ? group->index : -1;
}

/* Records ----------------------------------------------------------------------------------------------------------- */

static inline unsigned char *put_number(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) *at++ = (unsigned char) (value | 0x80);
    *at++ = (unsigned char) value;
    return at;
}

static uint64_t since(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

/* The times of a call: since the one before, of that the recorder's own (in 16 ticks), and in MPI. */
static unsigned char *put_times(struct events *events, unsigned char *at, uint64_t own, uint64_t enter, uint64_t end)
{
    uint64_t gap = since(events->previous, enter), inside = since(enter, end);
    at = put_number(at, gap);
    at = put_number(at, (own < gap ? own : gap) >> 4);
    events->previous += gap + inside;
    events->block.records++;
    return put_number(at, inside);
}

/* Calls that asked in vain, one after the other, are one record. */
static void put_polls(struct events *events)
{
    if (!events->polls.calls) return;
    unsigned char *at = events->at;
    *at++ = POLLS;
    at = put_times(events, at, events->polls.own, events->polls.enter, events->polls.end);
    at = put_number(at, events->polls.calls);
    events->at = put_number(at, events->polls.inside);
    events->polls.calls = 0;
}

static void count_poll(struct thread *self)
{
    struct events *events = self->events;
    if (!events->polls.calls++) {
        events->polls.own = since(events->previous, self->left);
        events->polls.enter = self->entered;
        events->polls.inside = 0;
    } else events->polls.inside += since(events->polls.end, self->left);
    events->polls.inside += since(self->entered, events->end);
    events->polls.end = events->end;
    events->is_written = 1;
}

static void put_event(struct thread *self, unsigned kind, int length, const uint64_t *values)
{
    struct events *events = self->events;
    if (UNLIKELY(events->at > events->content + BLOCK - 2 * LONGEST_RECORD)) flush_events(events);
    if (!events->is_written) put_polls(events);
    unsigned char *at = events->at;
    if (events->is_written) {
        *at++ = (unsigned char) (kind | SAME_CALL);
        events->block.records++;
    } else {
        uint64_t own = since(events->previous, self->left);
        *at++ = (unsigned char) kind;
        at = put_times(events, at, own, self->entered, events->end);
        self->inside -= own;
        events->is_written = 1;
    }
    for (int i = 0; i < length; i++) at = put_number(at, values[i]);
    events->at = at;
}

#define RECORD(kind, ...) put_event(self, kind, sizeof (uint64_t[]) { __VA_ARGS__ } / sizeof(uint64_t), (uint64_t[]) { __VA_ARGS__ })

/* After a call of MPI. */
static void end_event(struct thread *self, int class)
{
    if (!self->events->is_written) RECORD(OTHER, (uint64_t) class);
    self->events->is_written = self->events->noted.is_set = 0;
}

/* Requests ---------------------------------------------------------------------------------------------------------- */

/* A request, by its number in the file. `values` are those of its record when it starts, or of a receive that is posted
 * without wildcards, if MPI may not say what came: MPICH 4.0 has a wrong status for MPI_Isendrecv. */
struct request {
    uint32_t next, other;       /* of the same handle, or free; the receive of a MPI_Isendrecv */
    int communicator;
    unsigned char kind, is_persistent, is_active, is_cancelled, is_posted, is_displaced;
    uint64_t values[3];
};
#define NONE UINT32_MAX
#define MOST_REQUESTS (1 << 24)

/* MPI gives all requests that complete at once the same handle: the list of a handle is a queue. */
static struct { uintptr_t handle; uint32_t first, last; } *places;
static struct request *requests;
static uint32_t place_bits, place_count, request_capacity, request_count, first_free = NONE, last_free;

static void lock_requests(void) { if (stream.is_shared) pthread_mutex_lock(&request_lock); }
static void unlock_requests(void) { if (stream.is_shared) pthread_mutex_unlock(&request_lock); }

static uint32_t home_of(uintptr_t handle) { return (uint32_t) ((handle * 0x9e3779b97f4a7c15u) >> (64 - place_bits)); }

static uint32_t request_place(uintptr_t handle)
{
    uint32_t at = home_of(handle), mask = (1u << place_bits) - 1;
    while (places[at].first != NONE && places[at].handle != handle) at = (at + 1) & mask;
    return at;
}

COLD static int grow_places(void)
{
    uint32_t old_size = places ? 1u << place_bits : 0, size = old_size ? 2 * old_size : 256;
    __typeof__(places) old = places, larger = malloc(size * sizeof *larger);
    if (!larger) return 0;
    memset(larger, 0xff, size * sizeof *larger);
    places = larger;
    place_bits = 31 - (uint32_t) __builtin_clz(size);
    for (uint32_t at = 0; at < old_size; at++)
        if (old[at].first != NONE) places[request_place(old[at].handle)] = old[at];
    free(old);
    return 1;
}

COLD static int grow_requests(void)
{
    uint32_t capacity = request_capacity ? 2 * request_capacity : 256;
    struct request *larger = capacity > MOST_REQUESTS ? NULL : realloc(requests, capacity * sizeof *larger);
    if (!larger) return 0;
    requests = larger;
    request_capacity = capacity;
    return 1;
}

/* A number is used again only by calls that begin after it was freed: the events of all threads are read in the order in
 * which their calls began. */
static uint32_t new_request(struct thread *self, struct request request)
{
    uint32_t number = first_free;
    if (number != NONE && requests[number].values[0] < self->entered) first_free = requests[number].next;
    else if (request_count == request_capacity && !grow_requests()) return NONE;
    else number = request_count++;
    requests[number] = request;
    requests[number].next = requests[number].other = NONE;
    return number;
}

static void free_request(struct thread *self, uint32_t number)
{
    if (number == NONE) return;
    requests[number].values[0] = self->events->end;
    requests[number].next = NONE;
    if (first_free == NONE) first_free = number;
    else requests[last_free].next = number;
    last_free = number;
}

/* The oldest request of a handle leaves its queue. */
static void dequeue(uint32_t at)
{
    uint32_t mask = (1u << place_bits) - 1;
    places[at].first = requests[places[at].first].next;
    if (places[at].first != NONE) return;
    place_count--;
    for (uint32_t next = (at + 1) & mask; places[next].first != NONE; next = (next + 1) & mask) {
        if (((next - home_of(places[next].handle)) & mask) < ((next - at) & mask)) continue;
        places[at] = places[next];
        places[next].first = NONE;
        at = next;
    }
}

static void forget_request(struct thread *self, uint32_t number, uint32_t at)
{
    if (at != NONE) dequeue(at);
    free_request(self, requests[number].other);
    free_request(self, number);
}

static void release_request(struct thread *self, uint32_t number, uint32_t at)
{
    uint32_t other = requests[number].other;
    if (requests[number].is_active && requests[number].kind != OTHER) RECORD(FREED, number);
    if (other != NONE) RECORD(FREED, other);
    forget_request(self, number, at);
}

static int is_shareable(const struct request *request) { return !request->is_persistent && request->kind != IRECEIVE; }

static uint32_t enqueue(struct thread *self, uintptr_t handle, struct request request)
{
    uint32_t number = NONE;
    if ((place_bits && 2 * place_count < 1u << place_bits) || grow_places()) number = new_request(self, request);
    if (number == NONE) {
        self->lost++;
        return NONE;
    }
    uint32_t at = request_place(handle);
    /* What has completed unseen is not there any more; but another thread may be about to see it. */
    while (places[at].first != NONE && !(is_shareable(&request) && is_shareable(&requests[places[at].first]))) {
        requests[places[at].first].is_displaced = stream.is_shared;
        if (stream.is_shared) dequeue(at);
        else release_request(self, places[at].first, at);
        at = request_place(handle);
    }
    if (places[at].first == NONE) {
        places[at].handle = handle;
        places[at].first = number;
        place_count++;
    } else requests[places[at].last].next = number;
    places[at].last = number;
    return number;
}

static void start_request_event(struct thread *self, uint32_t number)
{
    struct request *request = &requests[number];
    request->is_active = 1;
    if (request->kind == OTHER) return RECORD(OTHER, CLASS_OTHER); /* with MPI_PROC_NULL */
    if (request->kind == IRECEIVE) return RECORD(IRECEIVE, (uint64_t) request->communicator, number);
    RECORD(request->kind, (uint64_t) request->communicator, number, request->values[0], request->values[1], request->values[2]);
}

/* A request that MPI has made; one that is not persistent is active. */
static uint32_t open_request(struct thread *self, uintptr_t handle, struct request request)
{
    uint32_t number = NONE;
    if (request.communicator < 0 && request.kind != OTHER) return NONE;
    lock_requests();
    number = enqueue(self, handle, request);
    if (number != NONE && !request.is_persistent) start_request_event(self, number);
    unlock_requests();
    return number;
}

static void start_event(struct thread *self, uintptr_t handle)
{
    lock_requests();
    uint32_t number = place_bits ? places[request_place(handle)].first : NONE;
    if (number != NONE) start_request_event(self, number);
    else RECORD(OTHER, CLASS_PARTITIONED);
    unlock_requests();
}

static uint64_t received_bytes(const MPI_Status *status)
{
#ifdef OPEN_MPI
    static MPI_Datatype byte;
    if (UNLIKELY(!byte)) byte = CONSTANT(MPI_Datatype, "ompi_mpi_byte");
#else
    MPI_Datatype byte = MPI_BYTE;
#endif
#if MPI_VERSION >= 3
    MPI_Count bytes = 0;
    PMPI(MPI_Get_elements_x)(status, byte, &bytes);
#else
    int bytes = 0;
    PMPI(MPI_Get_elements)((MPI_Status *) status, byte, &bytes);
#endif
    return bytes > 0 ? (uint64_t) bytes : 0;
}

static int is_cancelled(const struct request *request, const MPI_Status *status)
{
    int is_cancelled = 0;
    if (request->is_cancelled) PMPI(MPI_Test_cancelled)((MPI_Status *) status, &is_cancelled);
    return is_cancelled;
}

static void put_completion(struct thread *self, uint32_t number, const MPI_Status *status)
{
    struct request *request = &requests[number];
    if (request->kind == OTHER) return;
    if (is_cancelled(request, status)) return RECORD(CANCELLED, number);
    if (request->kind != IRECEIVE) return RECORD(SENT, number);
    int is_right = status->MPI_SOURCE == (int) request->values[0] && status->MPI_TAG == (int) request->values[1];
    if (request->is_posted && !is_right)
        return RECORD(RECEIVED, number, (uint64_t) request->communicator, request->values[0], request->values[1], request->values[2]);
    if (status->MPI_SOURCE < 0) return RECORD(CANCELLED, number);
    RECORD(RECEIVED, number, (uint64_t) request->communicator, (uint64_t) status->MPI_SOURCE, (uint64_t) status->MPI_TAG,
        received_bytes(status));
}

/* The number of a request whose handle was kept at this index, and its place; NONE as place if it has none any more:
 * once MPI has taken the handle back, it may have given it to another thread already. */
static uint32_t kept_request(struct thread *self, int index, uint32_t *at)
{
    uint32_t number = stream.is_shared ? self->events->numbers[index] : NONE;
    int is_gone = stream.is_shared && (number == NONE || requests[number].is_displaced);
    *at = is_gone || !place_bits ? NONE : request_place(self->events->handles[index]);
    return *at == NONE ? number : places[*at].first;
}

/* A request has completed, of which MPI has left this status. */
static void complete_request(struct thread *self, int index, const MPI_Status *status)
{
    lock_requests();
    uint32_t at, number = kept_request(self, index, &at);
    if (number != NONE && requests[number].is_active) {
        uint32_t other = requests[number].other;
        put_completion(self, number, status);
        if (other != NONE) put_completion(self, other, status);
        requests[number].is_active = requests[number].is_cancelled = 0;
        if (!requests[number].is_persistent) forget_request(self, number, at);
    }
    unlock_requests();
}

/* The communicator of a matched message, which is a request of no kind until it is received. */
static int taken_message(struct thread *self)
{
    uintptr_t handle = self->events->handles[0];
    lock_requests();
    uint32_t at = place_bits ? request_place(handle) : 0, number = place_bits ? places[at].first : NONE;
    int communicator = number == NONE ? -1 : requests[number].communicator;
    if (number != NONE) {
        dequeue(at);
        free_request(self, number);
    }
    unlock_requests();
    return communicator;
}

/* Before a call ------------------------------------------------------------------------------------------------------ */

COLD static int make_room(struct thread *self, int length)
{
    struct events *events = self->events;
    int capacity = length < 64 ? 64 : 2 * length;
    uintptr_t *handles = realloc(events->handles, sizeof *handles * (size_t) capacity);
    if (handles) events->handles = handles;
    uint32_t *numbers = realloc(events->numbers, sizeof *numbers * (size_t) capacity);
    if (numbers) events->numbers = numbers;
    MPI_Status *statuses = realloc(events->statuses, sizeof *statuses * (size_t) capacity);
    if (statuses) events->statuses = statuses;
    if (!handles || !numbers || !statuses) {
        self->lost++;
        return 0;
    }
    events->capacity = capacity;
    return 1;
}

static int has_room(struct thread *self, int length)
{
    return length <= self->events->capacity || make_room(self, length);
}

static void keep_numbers(struct thread *self, int length)
{
    if (!stream.is_shared) return;
    pthread_mutex_lock(&request_lock);
    for (int at = 0; at < length; at++)
        self->events->numbers[at] = place_bits ? places[request_place(self->events->handles[at])].first : NONE;
    pthread_mutex_unlock(&request_lock);
}

/* MPI sets handles of completed requests to null. Without memory for them, none completes. */
static void keep_handles(struct thread *self, int length, const MPI_Request *handles)
{
    if (!has_room(self, length)) return;
    for (int at = 0; at < length; at++) self->events->handles[at] = (uintptr_t) handles[at];
    keep_numbers(self, length);
}

static void keep_fortran_handles(struct thread *self, int length, const MPI_Fint *handles)
{
    if (!has_room(self, length)) return;
    for (int at = 0; at < length; at++) self->events->handles[at] = (uintptr_t) FROM_FORTRAN(Request, handles[at]);
    keep_numbers(self, length);
}

#if MPI_VERSION >= 3
static void keep_message(struct thread *self, MPI_Message message)
{
    if (has_room(self, 1)) self->events->handles[0] = (uintptr_t) message;
}
#endif

/* What MPI would not say to the program, it says to us. */
static MPI_Status *own_status(struct thread *self, MPI_Status *status)
{
    self->events->status.MPI_SOURCE = MPI_UNDEFINED;
    return status == MPI_STATUS_IGNORE ? &self->events->status : status;
}

static MPI_Status *own_statuses(struct thread *self, int length, MPI_Status *statuses)
{
    return statuses == MPI_STATUSES_IGNORE && has_room(self, length) ? self->events->statuses : statuses;
}

/* A status of Fortran has the layout of C's in Open MPI, MPICH and those that come from them. The length is -1 of one
 * status, which is not an array. */
static void *fortran_status(struct thread *self, int length, void *status)
{
    static const char *const NAMES[4] = {
        "MPI_F_STATUS_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUSES_IGNORE" };
    static void **ignored[4], *none;
    int is_array = length >= 0, is_ignored = 0;
    for (int at = 2 * is_array; at < 2 * is_array + 2; at++) {
        if (!ignored[at]) ignored[at] = find_symbol(NAMES[at], RTLD_DEFAULT);
        if (!ignored[at]) ignored[at] = &none;
        is_ignored |= status == *ignored[at];
    }
    if (!is_ignored) return status;
    if (!is_array) return own_status(self, MPI_STATUS_IGNORE);
    return has_room(self, length) ? self->events->statuses : status;
}

/* MPICH 4.0 forgets in mpi_f08 that indices of Fortran begin with 1. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000 && MPICH_NUMVERSION < 40100000
#define F08_BASE 0
#else
#define F08_BASE 1
#endif

/* After a call ------------------------------------------------------------------------------------------------------- */

static void event_send(struct thread *self, unsigned kind, MPI_Comm comm, int dest, int tag, uint64_t bytes)
{
    int communicator = dest < 0 ? -1 : communicator_of(self, comm);
    if (communicator >= 0) RECORD(kind, (uint64_t) communicator, (uint64_t) dest, (uint64_t) tag, bytes);
}

static void event_receive(struct thread *self, int communicator, const MPI_Status *status)
{
    if (communicator < 0 || status->MPI_SOURCE < 0) return;
    RECORD(RECEIVE, (uint64_t) communicator, (uint64_t) status->MPI_SOURCE, (uint64_t) status->MPI_TAG, received_bytes(status));
}

static void event_sendrecv(struct thread *self, MPI_Comm comm, int dest, int tag, uint64_t bytes, const MPI_Status *status)
{
    if (status->MPI_SOURCE < 0) return event_send(self, SEND, comm, dest, tag, bytes);
    int communicator = communicator_of(self, comm);
    if (dest < 0) return event_receive(self, communicator, status);
    if (communicator >= 0)
        RECORD(SENDRECV, (uint64_t) communicator, (uint64_t) dest, (uint64_t) tag, bytes, (uint64_t) status->MPI_SOURCE,
            (uint64_t) status->MPI_TAG, received_bytes(status));
}

static struct request message_request(struct thread *self, unsigned kind, MPI_Comm comm, int peer, int is_persistent)
{
    if (peer == MPI_PROC_NULL) return (struct request) { .kind = OTHER, .communicator = -1, .is_persistent = is_persistent };
    return (struct request) { .kind = kind, .communicator = communicator_of(self, comm), .is_persistent = is_persistent };
}

static uint32_t event_isend(struct thread *self, unsigned kind, MPI_Comm comm, int dest, int tag, uint64_t bytes,
                            MPI_Request handle, int is_persistent)
{
    struct request request = message_request(self, kind, comm, dest, is_persistent);
    request.values[0] = (uint64_t) dest;
    request.values[1] = (uint64_t) tag;
    request.values[2] = bytes;
    return request.kind == OTHER && !is_persistent ? NONE : open_request(self, (uintptr_t) handle, request);
}

static void event_irecv(struct thread *self, MPI_Comm comm, int source, MPI_Request handle, int is_persistent)
{
    struct request request = message_request(self, IRECEIVE, comm, source, is_persistent);
    if (request.kind != OTHER || is_persistent) open_request(self, (uintptr_t) handle, request);
}

/* Its request covers a message sent and one received. */
static void event_isendrecv(struct thread *self, MPI_Comm comm, int dest, int tag, uint64_t bytes, int source, int rtag,
                            uint64_t room, MPI_Request handle)
{
    uint32_t number = event_isend(self, ISEND, comm, dest, tag, bytes, handle, 0), other;
    if (number == NONE || source == MPI_PROC_NULL) {
        if (number == NONE) event_irecv(self, comm, source, handle, 0);
        return;
    }
    lock_requests();
    other = new_request(self, (struct request) {
        .kind = IRECEIVE, .communicator = requests[number].communicator, .is_posted = source >= 0 && rtag >= 0,
        .values = { (uint64_t) source, (uint64_t) rtag, room } });
    requests[number].other = other;
    if (other != NONE) start_request_event(self, other);
    unlock_requests();
}

static void note_collective(struct thread *self, struct group *group, uint32_t kind, uint32_t root, uint64_t bytes)
{
    struct events *events = self->events;
    events->noted.is_set = group->is_described || describe(self, group);
    events->noted.communicator = group->index;
    events->noted.kind = kind;
    events->noted.root = root == NO_ROOT ? 0 : (uint64_t) root + 1;
    events->noted.bytes = bytes;
}

static void event_collective(struct thread *self)
{
    __typeof__(&self->events->noted) noted = &self->events->noted;
    if (noted->is_set) RECORD(COLLECTIVE_CALL, (uint64_t) noted->communicator, noted->kind, noted->root, noted->bytes);
}

static void event_icollective(struct thread *self, MPI_Request handle, int is_persistent)
{
    __typeof__(&self->events->noted) noted = &self->events->noted;
    if (noted->is_set)
        open_request(self, (uintptr_t) handle, (struct request) {
            .kind = ICOLLECTIVE, .communicator = noted->communicator, .is_persistent = is_persistent,
            .values = { noted->kind, noted->root, noted->bytes } });
}

#if MPI_VERSION >= 3
static void event_mprobe(struct thread *self, MPI_Comm comm, MPI_Message handle)
{
    int communicator = communicator_of(self, comm);
    lock_requests();
    enqueue(self, (uintptr_t) handle, (struct request) { .kind = OTHER, .communicator = communicator });
    unlock_requests();
}

static void event_imrecv(struct thread *self, MPI_Request handle)
{
    open_request(self, (uintptr_t) handle, (struct request) { .kind = IRECEIVE, .communicator = taken_message(self) });
}
#endif

static void event_cancel(struct thread *self, uintptr_t handle)
{
    lock_requests();
    uint32_t number = place_bits ? places[request_place(handle)].first : NONE;
    if (number != NONE) requests[number].is_cancelled = 1;
    unlock_requests();
}

static void event_request_free(struct thread *self)
{
    if (!self->events->capacity) return;
    lock_requests();
    uint32_t at, number = kept_request(self, 0, &at);
    if (number != NONE) release_request(self, number, at);
    unlock_requests();
}

/* Requests at these indices have completed, which begin with 0 in C and with 1 in Fortran; without indices, all. */
static void completed(struct thread *self, unsigned kind, int length, const int *indices, int base, const MPI_Status *statuses)
{
    put_event(self, kind, 0, NULL);
    for (int at = 0; at < length; at++) {
        int index = indices ? indices[at] - base : at;
        if (index >= 0 && index < self->events->capacity) complete_request(self, index, &statuses[at]);
    }
}

static void tested(struct thread *self, int is_done, int length, const int *indices, int base, const MPI_Status *statuses)
{
    if (is_done) completed(self, TEST, length, indices, base, statuses);
    else count_poll(self);
}

/* With the arguments under the names of the table. */
#define KEEP_status status = own_status(self, status)
#define KEEP_request keep_handles(self, 1, request)
#define KEEP_requests keep_handles(self, n, requests)
#define KEEP_statuses statuses = own_statuses(self, n, statuses)
#define KEEP_message keep_message(self, *message)
#define KEEP_FORTRAN_status status_f = fortran_status(self, -1, status_f)
#define KEEP_FORTRAN_request keep_fortran_handles(self, 1, request_f)
#define KEEP_FORTRAN_requests keep_fortran_handles(self, *(MPI_Fint *) n_f, requests_f)
#define KEEP_FORTRAN_statuses statuses_f = fortran_status(self, *(MPI_Fint *) n_f, statuses_f)
#define KEEP_FORTRAN_message keep_message(self, FROM_FORTRAN(Message, *(MPI_Fint *) message_f))

#define EVENT_send(mode) event_send(self, SEND + mode, comm, dest, tag, bytes_to(dest, count, type))
#define EVENT_isend(mode) event_isend(self, ISEND + mode, comm, dest, tag, bytes_to(dest, count, type), *request, 0)
#define EVENT_send_init(mode) event_isend(self, ISEND + mode, comm, dest, tag, bytes_to(dest, count, type), *request, 1)
#define EVENT_sendrecv event_sendrecv(self, comm, dest, tag, bytes_to(dest, count, type), status)
#define EVENT_isendrecv event_isendrecv(self, comm, dest, tag, bytes_to(dest, count, type), source, rtag, bytes_to(source, rcount, rtype), *request)
#define EVENT_isendrecv_replace event_isendrecv(self, comm, dest, tag, bytes_to(dest, count, type), source, rtag, bytes_to(source, count, type), *request)
#define EVENT_recv event_receive(self, communicator_of(self, comm), status)
#define EVENT_mrecv event_receive(self, taken_message(self), status)
#define EVENT_irecv event_irecv(self, comm, source, *request, 0)
#define EVENT_recv_init event_irecv(self, comm, source, *request, 1)
#define EVENT_imrecv event_imrecv(self, *request)
#define EVENT_mprobe event_mprobe(self, comm, *message)
#define EVENT_improbe do { if (*flag) EVENT_mprobe; else count_poll(self); } while (0)
#define EVENT_iprobe do { if (!*flag) count_poll(self); } while (0)
#define EVENT_request_get_status count_poll(self)
#define EVENT_start start_event(self, (uintptr_t) *request)
#define EVENT_startall for (int i = 0; i < n; i++) start_event(self, (uintptr_t) requests[i])
#define EVENT_cancel event_cancel(self, (uintptr_t) *request)
#define EVENT_request_free event_request_free(self)
#define EVENT_collective event_collective(self)
#define EVENT_icollective event_icollective(self, *request, 0)
#define EVENT_collective_init event_icollective(self, *request, 1)
#define EVENT_wait completed(self, WAIT, 1, NULL, base, status)
#define EVENT_waitall completed(self, WAIT, n, NULL, base, statuses)
#define EVENT_waitany completed(self, WAIT, 1, which, base, status)
#define EVENT_waitsome completed(self, WAIT, *outcount, indices, base, statuses)
#define EVENT_test tested(self, *flag, 1, NULL, base, status)
#define EVENT_testall tested(self, *flag, n, NULL, base, statuses)
#define EVENT_testany tested(self, *flag, 1, which, base, status)
#define EVENT_testsome tested(self, *outcount != 0, *outcount, indices, base, statuses)

/* Beginning and end -------------------------------------------------------------------------------------------------- */

static void attach_events(struct thread *self)
{
    if (stream.file < 0 || self->events) return;
    struct events *events = calloc(1, sizeof *events);
    if (!events) {
        self->lost++;
        return;
    }
    events->previous = ticks();
    events->block.thread = __atomic_fetch_add(&stream.threads, 1, __ATOMIC_RELAXED);
    begin_block(events);
    self->events = events;
}

static void begin_events(struct thread *self)
{
    const char *wanted = getenv("HOPMAP_RECORD_EVENTS");
    char name[PATH_MAX + 32];
    int level = MPI_THREAD_MULTIPLE;
    struct timespec real;
    if (!wanted || !strcmp(wanted, "0")) return;
    snprintf(name, sizeof name, "%.*s/events-%d.bin", (int) (strrchr(path, '/') - path), path, world_rank);
    stream.file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (stream.file < 0) {
        fprintf(stderr, "hopmap record: rank %d cannot write %s: %s\n", world_rank, name, strerror(errno));
        self->lost++;
        return;
    }
    if (is_world_open) PMPI(MPI_Query_thread)(&level);
    stream.is_shared = level == MPI_THREAD_MULTIPLE;
    clock_gettime(CLOCK_REALTIME, &real);
    struct { char magic[8]; uint32_t words[4]; uint64_t tick, time, real; } header = {
        "HOPEVT1", { 2, (uint32_t) world_rank, (uint32_t) world_size, 0 }, first_tick,
        (uint64_t) first_time.tv_sec * 1000000000u + (uint64_t) first_time.tv_nsec,
        (uint64_t) real.tv_sec * 1000000000u + (uint64_t) real.tv_nsec };
    header.words[3] = (uint32_t) (checksum_of(0xcbf29ce484222325u, &header, sizeof header) >> 32);
    append_bytes(&header, sizeof header);
    attach_events(self);
    if (self->events) self->events->previous = self->events->block.first = first_tick;
}

/* The blocks that are not full, and the end. Blocks go on if the program does, after a signal. In its handler, another
 * thread or this one may be writing: then the file stays as it is. */
static void finish_events(int is_complete)
{
    struct thread *self = current;
    if (stream.file < 0) return;
    if (is_complete && self && self->events) {
        self->events->end = self->entered;
        put_event(self, FINALIZE, 0, NULL);
        self->events->is_written = 0;
    }
    if (is_complete) pthread_mutex_lock(&stream_lock);
    else if (pthread_mutex_trylock(&stream_lock)) return;
    off_t length = stream.length;
    int is_failed = stream.is_failed;
    for (struct thread *thread = threads; thread; thread = thread->next) {
        if (!thread->events) continue;
        if (is_complete) put_polls(thread->events);
        if (!write_block(thread->events) && is_complete) stream.dropped += thread->events->block.records;
    }
    struct block end = { END_BLOCK, 0, 0, (uint32_t) is_complete, stream.dropped, ticks(), now(), 0 };
    stream.is_failed = 0;
    append_block(&end);
    stream.length = length;
    stream.is_failed = is_failed;
    stream.has_end = 1;
    threads->lost += stream.dropped - stream.reported;
    stream.reported = stream.dropped;
    pthread_mutex_unlock(&stream_lock);
}
