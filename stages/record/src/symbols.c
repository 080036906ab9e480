/* How a library that is loaded with LD_PRELOAD, and not linked with MPI, finds the MPI of its process: when a procedure is first
 * called, so that shells and wrapper scripts can load it too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>
#include <mpi.h>

#define COLD __attribute__((noinline, cold))
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)

static int find_symbol_in(struct dl_phdr_info *object, size_t size, void *wanted)
{
    (void) size;
    void **found = (void **) wanted;
    void *handle = dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    if (object->dlpi_name[0]) found[1] = dlsym(handle, (const char *) found[0]);
    dlclose(handle);
    Dl_info own, other;
    /* This library may have the symbol as well: it would call itself for ever. */
    if (found[1] && dladdr(find_symbol_in, &own) && dladdr(found[1], &other) && own.dli_fbase == other.dli_fbase) found[1] = NULL;
    return found[1] != NULL;
}

/* RTLD_NEXT misses an MPI that a language runtime has loaded for itself, such as that of mpi4py. */
COLD static void *find_symbol(const char *name, void *scope)
{
    void *found[2] = { (void *) name, dlsym(scope, name) };
    if (!found[1]) dl_iterate_phdr(find_symbol_in, found);
    return found[1];
}

COLD static void *required_symbol_in(const char *name, void *scope)
{
    void *symbol = find_symbol(name, scope);
    if (symbol) return symbol;
    fprintf(stderr, "hopmap: this MPI has no %s; remove the cache and build the library for it with its own mpicc\n", name);
    _exit(1);
}

static void *required_symbol(const char *name) { return required_symbol_in(name, RTLD_NEXT); }

#define PMPI(name) ((__typeof__(&P##name)) (UNLIKELY(!pointer_##name) ? (pointer_##name = required_symbol("P" #name)) : pointer_##name))
#define MPI_SYMBOL(name) static void *pointer_##name;

#ifdef OPEN_MPI
/* Its constants are addresses of data, which may have been copied into the program. */
#define CONSTANT(type, name) ((type) required_symbol_in(name, RTLD_DEFAULT))
#define WORLD CONSTANT(MPI_Comm, "ompi_mpi_comm_world")
#else
#define WORLD MPI_COMM_WORLD
#endif
