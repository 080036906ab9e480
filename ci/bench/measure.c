/* Runs a command several times without its output: `measure RUNS COMMAND...` prints the least CPU seconds (user and
   system, with its children), the least wall seconds, and the peak memory in KiB. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) { return time.tv_sec + 1e-6 * time.tv_usec; }

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int count, char **arguments) {
  double least_cpu = 1e9, least_wall = 1e9;
  long peak = 0;
  if (count < 3) return 2;
  for (int run = atoi(arguments[1]); run > 0; run--) {
    double start = now();
    pid_t child = fork();
    if (child == 0) {
      dup2(open("/dev/null", O_WRONLY), 1);
      execvp(arguments[2], arguments + 2);
      _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 1;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      fprintf(stderr, "measure: %s failed\n", arguments[2]);
      return 1;
    }
    double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime), wall = now() - start;
    if (cpu < least_cpu) least_cpu = cpu;
    if (wall < least_wall) least_wall = wall;
    if (usage.ru_maxrss > peak) peak = usage.ru_maxrss;
  }
  printf("%.4f %.4f %ld\n", least_cpu, least_wall, peak);
  return 0;
}
