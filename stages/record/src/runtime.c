/* The recorder of `hopmap record --method preload`: counts what the wrappers below this text report, and writes one file per
 * rank. Compiled with the user's mpicc, loaded with LD_PRELOAD, and not linked with MPI: it finds PMPI_* when MPI is
 * initialized, so that shells and wrapper scripts can load it too. It never communicates. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Procedures of MPI that the recorder calls ----------------------------------------------------------------------- */

MPI_SYMBOL(MPI_Comm_group) MPI_SYMBOL(MPI_Comm_remote_group) MPI_SYMBOL(MPI_Comm_test_inter) MPI_SYMBOL(MPI_Comm_rank) MPI_SYMBOL(MPI_Comm_get_parent)
MPI_SYMBOL(MPI_Group_size) MPI_SYMBOL(MPI_Group_translate_ranks) MPI_SYMBOL(MPI_Group_free) MPI_SYMBOL(MPI_Win_get_group) MPI_SYMBOL(MPI_Topo_test)
MPI_SYMBOL(MPI_Cartdim_get) MPI_SYMBOL(MPI_Cart_shift) MPI_SYMBOL(MPI_Graph_neighbors_count) MPI_SYMBOL(MPI_Graph_neighbors) MPI_SYMBOL(MPI_Group_rank)
MPI_SYMBOL(MPI_Dist_graph_neighbors_count) MPI_SYMBOL(MPI_Dist_graph_neighbors) MPI_SYMBOL(MPI_Get_library_version)
#if MPI_VERSION >= 3
MPI_SYMBOL(MPI_Type_size_x)
#else
MPI_SYMBOL(MPI_Type_size)
typedef long long MPI_Count;
#endif

#ifdef OPEN_MPI
/* Its conversions are functions. */
#define NULL_COMMUNICATOR CONSTANT(MPI_Comm, "ompi_mpi_comm_null")
static void *no_op, *null_type;
#define NULL_TYPE ((MPI_Datatype) (null_type ? null_type : (null_type = required_symbol_in("ompi_mpi_datatype_null", RTLD_DEFAULT))))
#define IS_NO_OP(op) ((void *) (op) == (no_op ? no_op : (no_op = required_symbol_in("ompi_mpi_op_no_op", RTLD_DEFAULT))))
#if MPI_VERSION >= 4
MPI_SYMBOL(MPI_Session_f2c)
#endif
MPI_SYMBOL(MPI_Comm_f2c) MPI_SYMBOL(MPI_Type_f2c) MPI_SYMBOL(MPI_Request_f2c) MPI_SYMBOL(MPI_Win_f2c) MPI_SYMBOL(MPI_Op_f2c)
#define FROM_FORTRAN(kind, handle) PMPI(MPI_##kind##_f2c)(handle)
#define LIBRARY "Open MPI"
#else
#define NULL_COMMUNICATOR MPI_COMM_NULL
#define NULL_TYPE MPI_DATATYPE_NULL
#if MPI_VERSION >= 3
#define IS_NO_OP(op) ((op) == MPI_NO_OP)
#else
#define IS_NO_OP(op) 0
#endif
#define FROM_FORTRAN(kind, handle) MPI_##kind##_f2c(handle)
#if defined(I_MPI_VERSION)
#define LIBRARY "Intel"
#elif defined(MPICH_VERSION)
#define LIBRARY "MPICH"
#else
#define LIBRARY ""
#endif
#endif

/* Counters ---------------------------------------------------------------------------------------------------------- */

/* A key of 64 bits: a pair has bit 62, its kind, bin and destination; a collective has bit 63, the index of its
 * communicator, its kind and its root. */
struct entry { uint64_t key, count, bytes; };
struct table { struct entry *entries; uint32_t used, bits; };
#define FIRST_BITS 8
#define LAST_BITS 20 /* 24 MiB per thread */

enum { POINT_TO_POINT, PUT, GET, NEIGHBOUR };

struct capture { struct capture *next; uintptr_t request; uint32_t length, capacity; struct entry entries[]; };
struct cached_group { uintptr_t handle; struct group *group; };
/* A message as its arguments say, and where it counts. */
struct recent { uintptr_t comm, type; int64_t count; int dest; uint64_t bytes; struct entry *entry; };
#define CACHE_BITS 5
#define CACHE_SIZE (1 << CACHE_BITS)
#define CACHE_SLOT(handle) (((uint64_t) (uintptr_t) (handle) * 0x9e3779b97f4a7c15u) >> (64 - CACHE_BITS))

struct thread {
    uint32_t depth, nested;     /* calls of MPI within calls of MPI, and the C ones among them */
    uint64_t calls;             /* outermost calls of C procedures */
    uint64_t entered, left, inside; /* ticks */
    uint64_t lost;              /* not counted for lack of memory */
    struct events *events;      /* only with --events */
    struct capture *capture;
    uint32_t generation;
    struct cached_group cache[CACHE_SIZE];
    struct { uintptr_t type; uint64_t size; } sizes[CACHE_SIZE];
    struct recent recent[CACHE_SIZE];
    struct table table;
    void *scratch[2];           /* converted arrays of Fortran */
    uint64_t foreign;           /* not counted because a process outside of MPI_COMM_WORLD takes part */
    int idle;
    struct thread *next;
};

/* A communicator or a window. */
struct group {
    uint64_t id, hash, number;  /* see register_group */
    int index, rank, size;      /* its place in `groups`; of the local group */
    int is_inter, peers;        /* whom collectives send to */
    int is_foreign;             /* has members outside of MPI_COMM_WORLD, of MPI_Comm_spawn or MPI_Comm_connect */
    int *world;                 /* destination → rank in MPI_COMM_WORLD */
    int *members, member_count, remote_start, local_start;
    int degree, *neighbours;    /* of its topology; -1 until asked for */
    int is_live, is_used, is_described;
};
#define MOST_GROUPS 16384
#define MOST_MEMBERS (16 << 20)
#define NO_ROOT UINT32_MAX

static __thread struct thread *current __attribute__((tls_model("initial-exec")));
static struct thread *threads;
static pthread_key_t ending;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct group *groups[MOST_GROUPS];
static int group_count;
static long member_count; /* changed without the lock */
#define BUCKETS 1024
static struct binding { struct binding *next; uintptr_t handle; struct group *group; } *bindings[BUCKETS];
static struct capture *captures[BUCKETS];
static uint32_t generation;
static int is_recording, is_timed, is_world_open;
static pid_t process;
static int world_rank, world_size;
static MPI_Group world_group;
static char path[PATH_MAX + 32], part[PATH_MAX + 40]; /* of the file of this rank, and while it is written */
static uint64_t first_tick;
static struct timespec first_time;

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
#endif
}

static uint64_t hash64(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

/* Without malloc: also called from signal handlers. */
static int resize(struct table *table, uint32_t bits);

static struct entry *add_entry(struct table *table, uint64_t key, uint64_t count, uint64_t bytes)
{
    uint64_t mask = ((uint64_t) 1 << table->bits) - 1;
    for (uint64_t at = (key * 0x9e3779b97f4a7c15u) >> (64 - table->bits);; at = (at + 1) & mask) {
        struct entry *entry = &table->entries[at];
        if (entry->key == key) {
            entry->count += count;
            entry->bytes += bytes;
            return entry;
        }
        if (entry->key) continue;
        if (table->used > mask / 4 * 3)
            return resize(table, table->bits + 1) ? add_entry(table, key, count, bytes) : NULL;
        table->used++;
        *entry = (struct entry) { key, count, bytes };
        return entry;
    }
}

COLD static int resize(struct table *table, uint32_t bits)
{
    if (bits > LAST_BITS) return 0;
    size_t bytes = sizeof(struct entry) << bits;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 0;
    struct table larger = { memory, 0, bits };
    for (uint64_t at = 0; table->entries && at < (uint64_t) 1 << table->bits; at++)
        if (table->entries[at].key) add_entry(&larger, table->entries[at].key, table->entries[at].count, table->entries[at].bytes);
    /* The old entries stay: a signal handler may be reading them. All of them together are smaller than the new ones. */
    *table = larger;
    return 1;
}

static void detach_thread(void *self)
{
    current = NULL;
    __atomic_store_n(&((struct thread *) self)->idle, 1, __ATOMIC_RELEASE);
}

/* See events.c. */
static void attach_events(struct thread *self);
static void begin_events(struct thread *self);
static void finish_events(int is_complete);
static void note_collective(struct thread *self, struct group *group, uint32_t kind, uint32_t root, uint64_t bytes);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void prepare(void) { pthread_key_create(&ending, detach_thread); }

/* The counters of this thread: those of a thread that has ended, or new ones. */
COLD static struct thread *attach_thread(void)
{
    struct thread *self;
    pthread_once(&once, prepare);
    for (self = __atomic_load_n(&threads, __ATOMIC_ACQUIRE); self; self = self->next) {
        int idle = 1;
        if (__atomic_compare_exchange_n(&self->idle, &idle, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) break;
    }
    if (!self) {
        self = calloc(1, sizeof *self);
        if (!self || !resize(&self->table, FIRST_BITS)) {
            fprintf(stderr, "hopmap record: no memory for the counters of a thread\n");
            _exit(1);
        }
        self->next = __atomic_load_n(&threads, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&threads, &self->next, self, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) { }
    }
    self->depth = self->nested = 0;
    attach_events(self);
    pthread_setspecific(ending, self);
    return current = self;
}

static inline struct thread *enter(void)
{
    struct thread *self = current;
    if (UNLIKELY(!self)) self = attach_thread();
    if (self->depth++ == 0 && is_timed) self->entered = ticks();
    return self;
}

static inline void leave(struct thread *self)
{
    if (--self->depth || !is_timed) return;
    self->left = ticks();
    self->inside += self->left - self->entered;
}

COLD static void add_captured(struct thread *self, uint64_t key, uint64_t bytes)
{
    struct capture *capture = self->capture;
    if (capture->length == capture->capacity) {
        uint32_t capacity = 2 * capture->capacity;
        capture = realloc(capture, sizeof *capture + capacity * sizeof *capture->entries);
        if (!capture) {
            self->lost++;
            return;
        }
        capture->capacity = capacity;
        self->capture = capture;
    }
    capture->entries[capture->length++] = (struct entry) { key, 1, bytes };
}

static inline struct entry *count_entry(struct thread *self, uint64_t key, uint64_t bytes)
{
    if (UNLIKELY(self->capture != NULL)) {
        add_captured(self, key, bytes);
        return NULL;
    }
    const struct entry *entries = self->table.entries;
    struct entry *entry = add_entry(&self->table, key, 1, bytes);
    if (UNLIKELY(!entry)) self->lost++;
    if (UNLIKELY(entries != self->table.entries)) memset(self->recent, 0, sizeof self->recent);
    return entry;
}

static inline uint64_t pair_key(uint32_t kind, uint32_t destination, uint64_t bytes)
{
    uint64_t bin = bytes ? 64 - (uint64_t) __builtin_clzll(bytes) : 0;
    return (uint64_t) 1 << 62 | (uint64_t) kind << 40 | bin << 32 | destination;
}

/* Communicators and windows ----------------------------------------------------------------------------------------- */

/* None of these functions holds the lock while it calls MPI, which may wait for a thread that waits for the lock. */
static int *world_ranks(MPI_Group group, int *size)
{
    int count = 0;
    PMPI(MPI_Group_size)(group, &count);
    if (__atomic_load_n(&member_count, __ATOMIC_RELAXED) + count > MOST_MEMBERS) return NULL;
    int *ranks = malloc(sizeof(int) * (size_t) (count + 1)), *world = malloc(sizeof(int) * (size_t) (count + 1));
    for (int rank = 0; ranks && rank < count; rank++) ranks[rank] = rank;
    if (ranks && world) PMPI(MPI_Group_translate_ranks)(group, count, ranks, world_group, world);
    else { free(world); world = NULL; }
    free(ranks);
    if (world) __atomic_add_fetch(&member_count, count, __ATOMIC_RELAXED);
    *size = count;
    return world;
}

static void free_group(struct group *group)
{
    __atomic_sub_fetch(&member_count, group->member_count, __ATOMIC_RELAXED);
    if (group->world != group->members) free(group->members);
    free(group->world);
    free(group->neighbours);
    free(group);
}

/* The members of an intercommunicator are in the same order on both sides. */
static int join_groups(struct group *group, int *local, int remote_count)
{
    int count = group->size + remote_count;
    group->members = malloc(sizeof(int) * (size_t) (count + 1));
    if (!group->members) return 0;
    int is_first = group->size && (!remote_count || local[0] < group->world[0]);
    group->local_start = is_first ? 0 : remote_count;
    group->remote_start = is_first ? group->size : 0;
    memcpy(group->members + group->local_start, local, sizeof(int) * (size_t) group->size);
    memcpy(group->members + group->remote_start, group->world, sizeof(int) * (size_t) remote_count);
    group->member_count = count;
    return 1;
}

static struct group *new_group(MPI_Group local)
{
    struct group *group = calloc(1, sizeof *group);
    if (!group) return NULL;
    group->index = -1;
    group->degree = -1;
    group->members = group->world = world_ranks(local, &group->size);
    group->member_count = group->peers = group->size;
    PMPI(MPI_Group_rank)(local, &group->rank);
    if (group->world) return group;
    free(group);
    return NULL;
}

static struct group *group_of_communicator(MPI_Comm comm)
{
    MPI_Group local;
    int is_inter = 0;
    if (PMPI(MPI_Comm_group)(comm, &local) != MPI_SUCCESS) return NULL;
    struct group *group = new_group(local);
    PMPI(MPI_Group_free)(&local);
    PMPI(MPI_Comm_test_inter)(comm, &is_inter);
    if (!group || !is_inter) return group;
    int *own = group->world;
    group->is_inter = 1;
    PMPI(MPI_Comm_remote_group)(comm, &local);
    group->world = world_ranks(local, &group->peers);
    PMPI(MPI_Group_free)(&local);
    int is_joined = group->world && join_groups(group, own, group->peers);
    if (!is_joined) group->members = group->world;
    free(own);
    if (is_joined) return group;
    free_group(group);
    return NULL;
}

/* Gives the group the lowest number that no living communicator of the same members has: all members call the same
 * creations and deletions in the same order, so that they agree without communication. */
static struct group *register_group(struct group *group)
{
    static uint64_t is_taken[MOST_GROUPS / 64];
    int place = group_count;
    uint64_t number = 0;
    group->hash = hash64((uint64_t) group->member_count | (uint64_t) group->is_inter << 32);
    for (int at = 0; at < group->member_count; at++) group->hash = hash64(group->hash + (uint32_t) group->members[at]);
    memset(is_taken, 0, sizeof is_taken);
    for (int at = group_count - 1; at >= 0; at--) {
        if (!groups[at]) place = at;
        else if (groups[at]->hash == group->hash && groups[at]->is_live)
            is_taken[groups[at]->number / 64] |= (uint64_t) 1 << groups[at]->number % 64;
    }
    while (number < MOST_GROUPS && is_taken[number / 64] >> number % 64 & 1) number++;
    /* A communicator that is gone has the same members in the same order, and a place in the counters. */
    for (int at = 0; at < group_count; at++)
        if (groups[at] && groups[at]->hash == group->hash && groups[at]->number == number) place = at;
    if (place == MOST_GROUPS) {
        free_group(group);
        return NULL;
    }
    if (place < group_count && groups[place]) {
        group->is_used = groups[place]->is_used;
        group->is_described = groups[place]->is_described;
        free_group(groups[place]);
    }
    group->number = number;
    group->id = hash64(group->hash + number);
    group->index = place;
    group->is_live = 1;
    groups[place] = group;
    if (place == group_count) group_count++;
    return group;
}

static struct binding **place_of(uintptr_t handle)
{
    struct binding **place = &bindings[hash64(handle) % BUCKETS];
    while (*place && (*place)->handle != handle) place = &(*place)->next;
    return place;
}

/* Does nothing if another thread has bound the handle meanwhile. Only groups whose collectives count need a number: not
 * those of windows, and not foreign ones. */
static void bind_handle(uintptr_t handle, struct group *group, int is_communicator)
{
    for (int at = 0; group && at < group->member_count; at++) group->is_foreign |= group->members[at] < 0; /* MPI_UNDEFINED */
    struct binding *binding = malloc(sizeof *binding);
    pthread_mutex_lock(&lock);
    struct binding **place = place_of(handle);
    if (group && (!binding || *place)) free_group(group), group = NULL;
    else if (group && is_communicator && !group->is_foreign) group = register_group(group);
    if (group) {
        *binding = (struct binding) { NULL, handle, group };
        *place = binding;
    } else free(binding);
    pthread_mutex_unlock(&lock);
}

/* A handle is freed, or a new object has it. */
static void unbind(uintptr_t handle)
{
    pthread_mutex_lock(&lock);
    struct binding **place = place_of(handle), *binding = *place;
    if (binding) {
        struct group *group = binding->group;
        *place = binding->next;
        free(binding);
        __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE);
        group->is_live = 0;
        if (group->index >= 0 && !group->is_used && !group->is_described) groups[group->index] = NULL, free_group(group);
        else if (group->index < 0) free_group(group);
    }
    pthread_mutex_unlock(&lock);
}

static void bind_communicator(MPI_Comm like, MPI_Comm comm)
{
    if (!is_recording || comm == NULL_COMMUNICATOR) return;
    unbind((uintptr_t) comm);
    bind_handle((uintptr_t) comm, group_of_communicator(like), 1);
}

static struct group *bound_group(struct thread *self, uintptr_t handle)
{
    pthread_mutex_lock(&lock);
    struct binding *binding = *place_of(handle);
    struct group *group = binding ? binding->group : NULL;
    pthread_mutex_unlock(&lock);
    if (group) self->cache[CACHE_SLOT(handle)] = (struct cached_group) { handle, group };
    return group;
}

/* Forgets what this thread knows about handles once one was freed: another object may have it. */
static inline void refresh(struct thread *self)
{
    uint32_t now = __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (UNLIKELY(self->generation != now)) {
        memset(self->cache, 0, sizeof self->cache);
        memset(self->sizes, 0, sizeof self->sizes);
        memset(self->recent, 0, sizeof self->recent);
        self->generation = now;
    }
}

static inline struct group *cached_group(struct thread *self, uintptr_t handle)
{
    refresh(self);
    struct cached_group *bound = &self->cache[CACHE_SLOT(handle)];
    return bound->group && bound->handle == handle ? bound->group : NULL;
}

COLD static struct group *new_communicator(struct thread *self, MPI_Comm comm)
{
    struct group *group = bound_group(self, (uintptr_t) comm);
    if (group) return group;
    bind_handle((uintptr_t) comm, group_of_communicator(comm), 1);
    group = bound_group(self, (uintptr_t) comm);
    if (!group) self->lost++;
    return group;
}

static inline struct group *group_of(struct thread *self, MPI_Comm comm)
{
    struct group *group = cached_group(self, (uintptr_t) comm);
    return group ? group : new_communicator(self, comm);
}

COLD static struct group *new_window(struct thread *self, MPI_Win win)
{
    MPI_Group local;
    struct group *group = bound_group(self, (uintptr_t) win);
    if (group || PMPI(MPI_Win_get_group)(win, &local) != MPI_SUCCESS) return group;
    bind_handle((uintptr_t) win, new_group(local), 0);
    PMPI(MPI_Group_free)(&local);
    group = bound_group(self, (uintptr_t) win);
    if (!group) self->lost++;
    return group;
}

static int *neighbours_of(MPI_Comm comm, struct group *group, int *degree)
{
    int topology = MPI_UNDEFINED, count = 0, sources = 0, weighted = 0;
    PMPI(MPI_Topo_test)(comm, &topology);
    if (topology == MPI_CART) {
        PMPI(MPI_Cartdim_get)(comm, &count);
        count *= 2;
    } else if (topology == MPI_GRAPH) PMPI(MPI_Graph_neighbors_count)(comm, group->rank, &count);
    else if (topology == MPI_DIST_GRAPH) PMPI(MPI_Dist_graph_neighbors_count)(comm, &sources, &count, &weighted);
    int *found = malloc(sizeof(int) * (size_t) (count + 3 * sources + count + 1));
    if (!found) count = 0;
    else if (topology == MPI_CART) for (int at = 0; at < count; at += 2) PMPI(MPI_Cart_shift)(comm, at / 2, 1, &found[at], &found[at + 1]);
    else if (topology == MPI_GRAPH) PMPI(MPI_Graph_neighbors)(comm, group->rank, count, found);
    else if (topology == MPI_DIST_GRAPH) {
        int *weights = found + count, *from = weights + count;
        PMPI(MPI_Dist_graph_neighbors)(comm, sources, from, from + sources, count, found, weights);
    }
    *degree = count;
    return found;
}

static int degree(struct thread *self, MPI_Comm comm)
{
    struct group *group = group_of(self, comm);
    if (!group) return 0;
    if (__atomic_load_n(&group->degree, __ATOMIC_ACQUIRE) < 0) {
        int count, *found = neighbours_of(comm, group, &count);
        pthread_mutex_lock(&lock);
        if (group->degree < 0) {
            group->neighbours = found;
            found = NULL;
            __atomic_store_n(&group->degree, count, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
        free(found);
    }
    return group->degree;
}

/* What procedures send ---------------------------------------------------------------------------------------------- */

COLD static uint64_t new_type(struct thread *self, MPI_Datatype type)
{
    if (type == NULL_TYPE) return 0; /* MPI has not read it: asking for its size would end the program */
#if MPI_VERSION >= 3
    MPI_Count size = 0;
    PMPI(MPI_Type_size_x)(type, &size);
#else
    int size = 0;
    PMPI(MPI_Type_size)(type, &size);
#endif
    self->sizes[CACHE_SLOT(type)].type = (uintptr_t) type;
    return self->sizes[CACHE_SLOT(type)].size = size > 0 ? (uint64_t) size : 0;
}

static inline uint64_t bytes_with(struct thread *self, MPI_Count count, MPI_Datatype type)
{
    if (count <= 0) return 0;
    refresh(self);
    int is_known = self->sizes[CACHE_SLOT(type)].type == (uintptr_t) type;
    return (uint64_t) count * (is_known ? self->sizes[CACHE_SLOT(type)].size : new_type(self, type));
}
#define bytes_of(count, type) bytes_with(self, count, type)
/* The arguments of a message to nobody are not read. */
#define bytes_to(peer, count, type) ((peer) < 0 ? 0 : bytes_of(count, type))

static inline struct entry *count_pair(struct thread *self, struct group *group, uint32_t kind, int destination, uint64_t bytes)
{
    if (!group || destination < 0 || destination >= group->peers) return NULL; /* MPI_PROC_NULL, or lost already */
    int world = group->world[destination];
    if (world >= 0) return count_entry(self, pair_key(kind, (uint32_t) world, bytes), bytes);
    self->foreign++;
    return NULL;
}

/* Programs repeat their messages: most are found here. */
static inline void count_message(struct thread *self, MPI_Comm comm, int dest, MPI_Count count, MPI_Datatype type)
{
    if (dest < 0) return; /* MPI_PROC_NULL */
    refresh(self);
    struct recent *recent = &self->recent[((unsigned) dest * 7 + (unsigned) count) % CACHE_SIZE];
    int is_same = recent->entry && recent->comm == (uintptr_t) comm && recent->type == (uintptr_t) type;
    if (is_same && recent->count == count && recent->dest == dest && !self->capture) {
        recent->entry->count++;
        recent->entry->bytes += recent->bytes;
        return;
    }
    uint64_t bytes = bytes_of(count, type);
    struct entry *entry = count_pair(self, group_of(self, comm), POINT_TO_POINT, dest, bytes);
    *recent = (struct recent) { (uintptr_t) comm, (uintptr_t) type, count, dest, bytes, entry };
}

static void count_one_sided(struct thread *self, MPI_Win win, uint32_t kind, int target, uint64_t bytes)
{
    struct group *group = target < 0 ? NULL : cached_group(self, (uintptr_t) win);
    if (target >= 0) count_pair(self, group ? group : new_window(self, win), kind, target, bytes);
}

static int is_root(struct group *group, int root) { return group->is_inter ? root == MPI_ROOT : root == group->rank; }

/* Processes that only watch the root of their own group send nothing. */
static void count_collective(struct thread *self, struct group *group, uint32_t kind, int has_root, int root, uint64_t bytes)
{
    uint32_t member = NO_ROOT;
    if (!group || (has_root && root == MPI_PROC_NULL)) return;
    if (group->is_foreign) {
        self->foreign++;
        return;
    }
    if (has_root && root == MPI_ROOT) member = (uint32_t) (group->local_start + group->rank);
    else if (has_root) member = (uint32_t) (root + (group->is_inter ? group->remote_start : 0));
    group->is_used = 1;
    if (UNLIKELY(self->events != NULL)) note_collective(self, group, kind, member, bytes);
    count_entry(self, (uint64_t) 1 << 63 | (uint64_t) group->index << 40 | (uint64_t) kind << 32 | member, bytes);
}

/* MPI reads the arguments of a collective operation only where they are needed: `bytes` are computed only where the process
 * sends. */
#define SUM(length, term) ({ uint64_t sum_ = 0; for (int i = 0; i < (length); i++) sum_ += (term); sum_; })
#define IS_IN_PLACE (sbuf == MPI_IN_PLACE)
#define SEND_BYTES bytes_of(count, type)
#define COLLECTIVE(kind, has_root, root, bytes) do { \
    struct group *g = (has_root) && (root) == MPI_PROC_NULL ? NULL : group_of(self, comm); \
    if (g) count_collective(self, g, kind, has_root, root, bytes); \
} while (0)
#define ROOTED(kind, bytes) COLLECTIVE(kind, 1, root, bytes)
#define ROOTLESS(kind, bytes) COLLECTIVE(kind, 0, 0, bytes)
#define NEIGHBOURS(kind, bytes) do { \
    int degree_ = degree(self, comm); \
    struct group *g = group_of(self, comm); \
    for (int i = 0; g && i < degree_; i++) \
        if (g->neighbours[i] >= 0) count_pair(self, g, NEIGHBOUR, g->neighbours[i], bytes); \
    if (g) count_collective(self, g, kind, 0, 0, SUM(degree_, g->neighbours[i] < 0 ? 0 : bytes)); \
} while (0)

/* The counts of each kind of procedure, with the arguments under the names of the table. */
#define COUNT_send count_message(self, comm, dest, count, type)
#define COUNT_partitioned count_pair(self, group_of(self, comm), POINT_TO_POINT, dest, bytes_to(dest, partitions * elements, type))
#define COUNT_put count_one_sided(self, win, PUT, target, bytes_to(target, count, type))
#define COUNT_get count_one_sided(self, win, GET, target, bytes_to(target, count, type))
#define COUNT_barrier ROOTLESS(KIND_barrier, 0)
#define COUNT_bcast ROOTED(KIND_bcast, is_root(g, root) ? SEND_BYTES : 0)
#define COUNT_gather ROOTED(KIND_gather, root == MPI_ROOT ? 0 : IS_IN_PLACE ? bytes_of(rcount, rtype) : SEND_BYTES)
#define COUNT_gatherv ROOTED(KIND_gatherv, root == MPI_ROOT ? 0 : IS_IN_PLACE ? bytes_of(rcounts[g->rank], rtype) : SEND_BYTES)
#define COUNT_scatter ROOTED(KIND_scatter, is_root(g, root) ? (uint64_t) g->peers * SEND_BYTES : 0)
#define COUNT_scatterv ROOTED(KIND_scatterv, is_root(g, root) ? SUM(g->peers, bytes_of(counts[i], type)) : 0)
#define COUNT_allgather ROOTLESS(KIND_allgather, IS_IN_PLACE ? bytes_of(rcount, rtype) : SEND_BYTES)
#define COUNT_allgatherv ROOTLESS(KIND_allgatherv, IS_IN_PLACE ? bytes_of(rcounts[g->rank], rtype) : SEND_BYTES)
#define COUNT_alltoall ROOTLESS(KIND_alltoall, (uint64_t) g->peers * (IS_IN_PLACE ? bytes_of(rcount, rtype) : SEND_BYTES))
#define COUNT_alltoallv ROOTLESS(KIND_alltoallv, \
    SUM(g->peers, IS_IN_PLACE ? bytes_of(rcounts[i], rtype) : bytes_of(counts[i], type)))
#define COUNT_alltoallw ROOTLESS(KIND_alltoallw, \
    SUM(g->peers, IS_IN_PLACE ? bytes_of(rcounts[i], rtypes[i]) : bytes_of(counts[i], types[i])))
#define COUNT_reduce ROOTED(KIND_reduce, root == MPI_ROOT ? 0 : SEND_BYTES)
#define COUNT_allreduce ROOTLESS(KIND_allreduce, SEND_BYTES)
#define COUNT_reduce_scatter ROOTLESS(KIND_reduce_scatter, SUM(g->size, bytes_of(counts[i], type)))
#define COUNT_reduce_scatter_block ROOTLESS(KIND_reduce_scatter_block, (uint64_t) g->size * SEND_BYTES)
#define COUNT_scan ROOTLESS(KIND_scan, SEND_BYTES)
#define COUNT_exscan ROOTLESS(KIND_exscan, SEND_BYTES)
#define COUNT_neighbor_allgather NEIGHBOURS(KIND_neighbor_allgather, SEND_BYTES)
#define COUNT_neighbor_allgatherv NEIGHBOURS(KIND_neighbor_allgatherv, SEND_BYTES)
#define COUNT_neighbor_alltoall NEIGHBOURS(KIND_neighbor_alltoall, SEND_BYTES)
#define COUNT_neighbor_alltoallv NEIGHBOURS(KIND_neighbor_alltoallv, bytes_of(counts[i], type))
#define COUNT_neighbor_alltoallw NEIGHBOURS(KIND_neighbor_alltoallw, bytes_of(counts[i], types[i]))

/* One direction of an update per message: what is sent, and the old contents. */
#define UPDATE(sent_bytes, returned_bytes) do { \
    if (!IS_NO_OP(op)) count_one_sided(self, win, PUT, target, sent_bytes); \
    count_one_sided(self, win, GET, target, returned_bytes); \
} while (0)
#define COUNT_update UPDATE(bytes_to(target, count, type), bytes_to(target, rcount, rtype))
#define COUNT_fetch UPDATE(bytes_to(target, 1, type), bytes_to(target, 1, type))
#define COUNT_swap do { \
    count_one_sided(self, win, PUT, target, 2 * bytes_to(target, 1, type)); \
    count_one_sided(self, win, GET, target, bytes_to(target, 1, type)); \
} while (0)

#define COUNT_communicator bind_communicator(*newcomm, *newcomm)
#define COUNT_duplicate bind_communicator(comm, *newcomm) /* not complete yet, and of the same members */
#define COUNT_start start_request(self, (uintptr_t) *request)
#define COUNT_startall for (int i = 0; i < n; i++) start_request(self, (uintptr_t) requests[i])
#define COUNT_init begin_recording(0, NULL)
#define COUNT_session_init begin_session(session)
#define COUNT_wait
#define COUNT_free
#define COUNT_free_window
#define COUNT_free_type
#define COUNT_window unbind((uintptr_t) *newwin)
#define COUNT_request_free
#define COUNT_session_finalize
#define COUNT_finalize
#define COUNT_abort

/* What happens before a call may happen twice, in Fortran and in C. */
#define BEFORE_init expect_library()
#define BEFORE_session_init expect_library()
#define BEFORE_finalize finish_world()
#define BEFORE_session_finalize finish_session(session)
#define BEFORE_abort finish(0)
#define BEFORE_free unbind((uintptr_t) *oldcomm)
#define BEFORE_free_type __atomic_add_fetch(&generation, 1, __ATOMIC_RELEASE)
#define BEFORE_free_window unbind((uintptr_t) *oldwin)
#define BEFORE_request_free forget((uintptr_t) *request)

/* Persistent requests ----------------------------------------------------------------------------------------------- */

static struct capture **capture_of(uintptr_t request)
{
    struct capture **place = &captures[hash64(request) % BUCKETS];
    while (*place && (*place)->request != request) place = &(*place)->next;
    return place;
}

static void forget(uintptr_t request)
{
    pthread_mutex_lock(&lock);
    struct capture **place = capture_of(request), *capture = *place;
    if (capture) *place = capture->next;
    free(capture);
    pthread_mutex_unlock(&lock);
}

/* Between these two, what is counted is kept with the request, until it is started. */
static void begin_capture(struct thread *self)
{
    self->capture = calloc(1, sizeof(struct capture) + 2 * sizeof(struct entry));
    if (self->capture) self->capture->capacity = 2;
}

static void end_capture(struct thread *self, uintptr_t request)
{
    struct capture *capture = self->capture;
    self->capture = NULL;
    forget(request);
    if (!capture) return;
    pthread_mutex_lock(&lock);
    struct capture **place = capture_of(request);
    capture->request = request;
    *place = capture;
    pthread_mutex_unlock(&lock);
}

static void start_request(struct thread *self, uintptr_t request)
{
    pthread_mutex_lock(&lock);
    struct capture *capture = *capture_of(request); /* none of a receive */
    for (uint32_t at = 0; capture && at < capture->length; at++) count_entry(self, capture->entries[at].key, capture->entries[at].bytes);
    pthread_mutex_unlock(&lock);
}

/* The file of this rank --------------------------------------------------------------------------------------------- */

static struct { int file, failed; size_t length; uint64_t checksum; char bytes[65536]; } output;

static void flush(void)
{
    for (size_t at = 0; at < output.length && !output.failed;) {
        ssize_t written = write(output.file, output.bytes + at, output.length - at);
        if (written > 0) at += (size_t) written;
        else if (errno != EINTR) output.failed = errno ? errno : EIO;
    }
    output.length = 0;
}

static void put(const void *bytes, size_t length)
{
    /* FNV-1a */
    for (size_t at = 0; at < length; at++) output.checksum = (output.checksum ^ ((const unsigned char *) bytes)[at]) * 0x100000001b3u;
    for (const char *from = bytes; length;) {
        size_t part = sizeof output.bytes - output.length;
        if (part > length) part = length;
        memcpy(output.bytes + output.length, from, part);
        output.length += part;
        from += part;
        length -= part;
        if (output.length == sizeof output.bytes) flush();
    }
}

/* All machines with an MPI that matters are little endian. */
static void put32(uint32_t value) { put(&value, sizeof value); }
static void put64(uint64_t value) { put(&value, sizeof value); }
static void put_seconds(double value) { put(&value, sizeof value); }

static double seconds_since_begin(double *per_tick)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t elapsed = ticks() - first_tick;
    double seconds = (double) (now.tv_sec - first_time.tv_sec) + 1e-9 * (double) (now.tv_nsec - first_time.tv_nsec);
    *per_tick = elapsed ? seconds / (double) elapsed : 0;
    return seconds;
}

static void put_host(void)
{
    char host[256] = "";
    const char *node = getenv("SLURMD_NODENAME");
    /* Hydra passes the first node's name on to all. */
    if (node && *node && !getenv("MPI_LOCALRANKID")) strncpy(host, node, sizeof host - 4);
    else gethostname(host, sizeof host - 4);
    put32((uint32_t) strlen(host));
    put(host, (strlen(host) + 3) / 4 * 4);
    static cpu_set_t cores[16];
    uint32_t count = 0;
    if (sched_getaffinity(0, sizeof cores, cores) == 0) count = (uint32_t) CPU_COUNT_S(sizeof cores, cores);
    put32(count);
    for (uint32_t core = 0; count && core < 8 * sizeof cores; core++)
        if (CPU_ISSET_S(core, sizeof cores, cores)) put32(core), count--;
}

/* The command line, by which ranks of several programs differ. It is read at the begin, as signal handlers write the file. */
static char command_line[1024];
static size_t command_length;

static void read_command_line(void)
{
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    ssize_t length = read(file, command_line, sizeof command_line);
    close(file);
    while (length > 0 && !command_line[length - 1]) length--;
    command_length = length > 0 ? (size_t) length : 0;
    for (size_t at = 0; at < command_length; at++)
        if (!command_line[at]) command_line[at] = ' ';
}

static void put_command_line(void)
{
    if (!command_length) return;
    put32((uint32_t) command_length);
    put(command_line, (command_length + 3) / 4 * 4);
}

/* Another thread may have counted a message, but not its bytes yet. */
static uint64_t bytes_in_class(const struct entry *entry)
{
    uint64_t bin = entry->key >> 32 & 0xff;
    if (!bin) return 0;
    unsigned __int128 least = (unsigned __int128) entry->count << (bin - 1), most = 2 * least - entry->count;
    if (entry->bytes < least) return least > UINT64_MAX ? UINT64_MAX : (uint64_t) least;
    return entry->bytes > most ? (uint64_t) most : entry->bytes;
}

static uint64_t entries_of(const struct table *table, uint64_t bit, int is_written)
{
    uint64_t count = 0;
    for (uint64_t at = 0; at < (uint64_t) 1 << table->bits; at++) {
        const struct entry *entry = &table->entries[at];
        if (!(entry->key & bit)) continue;
        count++;
        if (!is_written) continue;
        if (bit == (uint64_t) 1 << 62) {
            put32((uint32_t) entry->key);
            put32((uint32_t) (entry->key >> 40 & 0xff));
            put32((uint32_t) (entry->key >> 32 & 0xff));
            put32(0);
            put64(entry->count);
            put64(bytes_in_class(entry));
        } else {
            struct group *group = groups[entry->key >> 40 & (MOST_GROUPS - 1)];
            put64(group->id);
            put32((uint32_t) (entry->key >> 32 & 0xff));
            put32((uint32_t) entry->key);
            put64(entry->count ? entry->bytes : 0);
            put64(entry->count);
            put32((uint32_t) group->member_count);
            put32(0);
        }
    }
    return count;
}

static void put_groups(void)
{
    uint64_t count = 0;
    for (int at = 0; at < group_count; at++) count += groups[at] && groups[at]->is_used;
    put64(count);
    for (int at = 0; at < group_count; at++) {
        struct group *group = groups[at];
        if (!group || !group->is_used) continue;
        put64(group->id);
        put32((uint32_t) group->member_count);
        put(group->members, sizeof(int) * (size_t) group->member_count);
    }
}

static void put_record(int is_complete)
{
    struct table all = { NULL, 0, 0 };
    uint64_t inside = 0, lost = 0, foreign = 0;
    double per_tick, seconds = seconds_since_begin(&per_tick);
    if (!resize(&all, FIRST_BITS)) return;
    for (struct thread *thread = threads; thread; thread = thread->next) {
        const struct table table = thread->table;
        for (uint64_t at = 0; at < (uint64_t) 1 << table.bits; at++) {
            const struct entry *entry = &table.entries[at];
            if (entry->key && !add_entry(&all, entry->key, entry->count, entry->bytes)) lost++;
        }
        lost += thread->lost;
        foreign += thread->foreign;
        if (thread->inside > inside) inside = thread->inside;
    }
    put("HOPREC1", 8);
    put32(1);
    put32((uint32_t) world_rank);
    put32((uint32_t) world_size);
    put32((uint32_t) is_complete | (uint32_t) is_timed << 1 | (uint32_t) (lost != 0) << 2 | (uint32_t) (foreign != 0) << 3
        | (uint32_t) (command_length != 0) << 4);
    put_seconds(seconds);
    put_seconds((double) inside * per_tick);
    put_host();
    put_command_line();
    for (int bit = 62; bit < 64; bit++) {
        put64(entries_of(&all, (uint64_t) 1 << bit, 0));
        entries_of(&all, (uint64_t) 1 << bit, 1);
    }
    put_groups();
    put64(output.checksum);
    munmap(all.entries, sizeof *all.entries << all.bits);
}

/* Writes the file, only from the process that MPI has started. What is written before the end is replaced later, if the
 * program goes on. Async-signal-safe, and with little need for stack. */
static void finish(int is_complete)
{
    static int is_writing, is_ours;
    if (!is_recording || getpid() != process || __atomic_exchange_n(&is_writing, 1, __ATOMIC_ACQ_REL)) return;
    output.length = 0;
    output.checksum = 0xcbf29ce484222325u;
    output.failed = 0;
    finish_events(is_complete);
    output.file = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (output.file < 0) output.failed = errno;
    else {
        put_record(is_complete);
        flush();
        if (close(output.file) && !output.failed) output.failed = errno;
        /* Never the file of another program, such as one that a rank has started. */
        if (!output.failed && !is_ours && access(path, F_OK) == 0) output.failed = EEXIST;
        if (!output.failed && rename(part, path)) output.failed = errno;
    }
    is_ours |= !output.failed;
    if (output.failed) {
        char host[256] = "";
        gethostname(host, sizeof host - 1);
        dprintf(STDERR_FILENO, "hopmap record: rank %d on %s cannot write %s: %s\n", world_rank, host, path, strerror(output.failed));
        unlink(part);
    }
    if (is_complete || output.failed) is_recording = 0;
    __atomic_store_n(&is_writing, 0, __ATOMIC_RELEASE);
}

/* The record is complete with the end of all that was initialized. */
static int session_count;
static void finish_world(void)
{
    is_world_open = 0;
    if (!session_count) finish(1);
}

static const int FATAL_SIGNALS[] = { SIGTERM, SIGINT, SIGHUP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU };
#define FATAL_SIGNAL_COUNT (sizeof FATAL_SIGNALS / sizeof *FATAL_SIGNALS)
static struct sigaction previous_actions[FATAL_SIGNAL_COUNT];

/* Handlers of the runtimes of Julia and Java return many times a second. */
static void keep_record(int is_end)
{
    static time_t last;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!is_end && now.tv_sec == last) return;
    last = now.tv_sec;
    finish(0);
}

/* A launcher kills the remaining ranks as soon as the first one ends, so a signal to all of them leaves each the time to
 * write its file. */
static void wait_for_other_ranks(int number)
{
    struct timespec time = { 0, 500000000 };
    if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGXCPU) nanosleep(&time, NULL);
}

/* Keeps what was counted, and goes on with what would have happened without us. */
static void on_signal(int number, siginfo_t *information, void *context)
{
    int error = errno;
    size_t at = 0;
    while (FATAL_SIGNALS[at] != number) at++;
    const struct sigaction *previous = &previous_actions[at];
    int has_handler = previous->sa_flags & SA_SIGINFO || previous->sa_handler != SIG_DFL;
    keep_record(!has_handler);
    if (!has_handler && getpid() == process) wait_for_other_ranks(number);
    if (!has_handler || previous->sa_flags & SA_RESETHAND) signal(number, SIG_DFL);
    errno = error;
    if (!has_handler) raise(number);
    else if (previous->sa_flags & SA_SIGINFO) previous->sa_sigaction(number, information, context);
    else previous->sa_handler(number);
}

static void catch_signals(void)
{
    for (size_t at = 0; at < FATAL_SIGNAL_COUNT; at++) {
        struct sigaction *previous = &previous_actions[at];
        sigaction(FATAL_SIGNALS[at], NULL, previous);
        if (!(previous->sa_flags & SA_SIGINFO) && previous->sa_handler == SIG_IGN) continue;
        /* A handler of the program runs with the mask and flags that it has asked for; on the stack for signals, as the
         * usual one may be full. */
        struct sigaction action = { .sa_sigaction = on_signal, .sa_mask = previous->sa_mask };
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | (previous->sa_flags & (SA_RESTART | SA_NODEFER));
        sigaction(FATAL_SIGNALS[at], &action, NULL);
    }
}

__attribute__((destructor)) static void at_exit(void) { finish(0); }

/* Beginning and end ------------------------------------------------------------------------------------------------- */

/* Handles of another MPI have another size: better no run than a wrong one. */
static void expect_library(void)
{
#if MPI_VERSION >= 3
    char version[MPI_MAX_LIBRARY_VERSION_STRING + 4096] = "";
    int length;
    if (is_recording || !getenv("HOPMAP_RECORD_DIR")) return;
    PMPI(MPI_Get_library_version)(version, &length);
    if (strstr(version, LIBRARY)) return;
    version[strcspn(version, "\n")] = 0;
    fprintf(stderr, "hopmap record: the program uses %.60s, but the recorder is built for " LIBRARY
            "; start it with the launcher of its own MPI, and name its compiler with --mpicc\n", version);
    _exit(1);
#endif
}

#if MPI_VERSION >= 4
static MPI_Session world_session;
static int is_world_of_session; /* then its group ends with the session */
#endif

static int has_world_group(int is_session, void *session)
{
    MPI_Comm parent;
    if (!is_session) {
        if (PMPI(MPI_Comm_get_parent)(&parent) != MPI_SUCCESS || parent != NULL_COMMUNICATOR) return 0;
        return PMPI(MPI_Comm_group)(WORLD, &world_group) == MPI_SUCCESS;
    }
#if MPI_VERSION >= 4
    /* Set by MPICH, where no communicator has a parent without MPI_Init. */
    if (getenv("PMI_SPAWNED")) return 0;
    static void *pointer_MPI_Group_from_session_pset;
    world_session = *(MPI_Session *) session;
    is_world_of_session = 1;
    return PMPI(MPI_Group_from_session_pset)(*(MPI_Session *) session, "mpi://WORLD", &world_group) == MPI_SUCCESS;
#else
    return session != NULL;
#endif
}

/* After the first initialization, and after one that follows the end of all sessions. Processes that an MPI program spawns
 * are another world, which is not recorded. */
static void begin_recording(int is_session, void *session)
{
    static int has_begun;
    const char *given = getenv("HOPMAP_RECORD_DIR"), *times = getenv("HOPMAP_RECORD_TIMES");
    pthread_mutex_lock(&lock);
    is_world_open |= !is_session;
    int is_first = !process && given && strlen(given) < PATH_MAX, is_next = has_begun && !is_recording && !output.failed;
    if (is_first) process = getpid();
    pthread_mutex_unlock(&lock);
    if (!(is_first || is_next) || !has_world_group(is_session, session)) return;
    is_recording = is_next;
    if (is_next) return;
    PMPI(MPI_Group_rank)(world_group, &world_rank);
    PMPI(MPI_Group_size)(world_group, &world_size);
    snprintf(part, sizeof part, "%s/rank-%d.bin.part", given, world_rank);
    snprintf(path, sizeof path, "%s/rank-%d.bin", given, world_rank);
    /* Programs that this one starts are not its ranks. */
    unsetenv("HOPMAP_RECORD_DIR");
    clock_gettime(CLOCK_MONOTONIC, &first_time);
    first_tick = ticks();
    read_command_line();
    catch_signals();
    is_timed = !times || strcmp(times, "0");
    is_recording = has_begun = 1;
    struct thread *self = current ? current : attach_thread();
    self->entered = first_tick;
    if (!is_session) bind_communicator(WORLD, WORLD);
    begin_events(self);
}

#if MPI_VERSION >= 4
static MPI_Session open_sessions[64];

static void begin_session(MPI_Session *session)
{
    pthread_mutex_lock(&lock);
    if (session_count < 64) open_sessions[session_count++] = *session;
    pthread_mutex_unlock(&lock);
    begin_recording(1, session);
}

static void finish_session(MPI_Session *session)
{
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < session_count && open_sessions[at] != *session) at++;
    int is_open = at < session_count;
    if (is_open) open_sessions[at] = open_sessions[--session_count];
    int is_last = !session_count && !is_world_open;
    MPI_Session other = open_sessions[0];
    pthread_mutex_unlock(&lock);
    if (is_open && is_last) finish(1);
    if (!is_open || !is_world_of_session || world_session != *session) return;
    MPI_Group ended = world_group;
    is_world_of_session = 0;
    if (is_world_open) PMPI(MPI_Comm_group)(WORLD, &world_group);
    else if (!is_last) has_world_group(1, &other);
    PMPI(MPI_Group_free)(&ended);
}
#endif

/* The Fortran forms, with handles and pointers of C. */
static void *fortran_in_place[4];
static const void *buffer_of(const void *buffer)
{
    static const char *const NAMES[4] = {
        "mpi_fortran_in_place_", "mpi_fortran_in_place", "mpi_fortran_in_place__", "MPI_FORTRAN_IN_PLACE" };
    static int is_known;
    for (int at = 0; !is_known && at < 4; at++) fortran_in_place[at] = find_symbol(NAMES[at], RTLD_DEFAULT);
    is_known = 1;
    for (int at = 0; at < 4; at++) if (buffer && buffer == fortran_in_place[at]) return MPI_IN_PLACE;
    return buffer;
}

static void *scratch(struct thread *self, int place, int length, size_t size)
{
    free(self->scratch[place]);
    return self->scratch[place] = calloc((size_t) length + 1, size);
}

static int peers(struct thread *self, MPI_Comm comm)
{
    struct group *group = group_of(self, comm);
    return group ? group->peers : 0;
}

static MPI_Datatype *types_of(struct thread *self, int place, const MPI_Fint *types, int length)
{
    MPI_Datatype *converted = scratch(self, place, length, sizeof *converted);
    for (int at = 0; converted && at < length; at++) converted[at] = FROM_FORTRAN(Type, types[at]);
    return converted;
}

static MPI_Request *requests_of(struct thread *self, const MPI_Fint *requests, int length)
{
    MPI_Request *converted = scratch(self, 0, length, sizeof *converted);
    for (int at = 0; converted && at < length; at++) converted[at] = FROM_FORTRAN(Request, requests[at]);
    return converted;
}
