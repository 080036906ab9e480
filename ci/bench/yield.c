/* Preloaded into ranks on an emulated network. Open MPI polls while it waits, and with mpi_yield_when_idle calls this in between.
 * The hosts share the processors of one machine, and a rank that waits must leave them to the network and to the others. */
#include <time.h>

int sched_yield(void) {
  const struct timespec pause = {0, 100000};
  return nanosleep(&pause, 0);
}
