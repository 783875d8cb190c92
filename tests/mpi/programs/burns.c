/* SPDX-License-Identifier: Apache-2.0
 * Computes on one CPU that it shares with a child process, and prints what it used of it.  Arguments: "!" computes
 * until it has used 100 ms of CPU time and was preempted 30 times; a number N calls MPI_Pcontrol(N); "kill" ends
 * it by SIGKILL.  The child computes as well, but only during "!", so that the preemptions are of the program's own
 * making.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct use {
  long long cpu; /* ns */
  long preempted;
};

static struct use use_now(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  struct use now = {
      1000000000LL * (u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1000LL * (u.ru_utime.tv_usec + u.ru_stime.tv_usec),
      u.ru_nivcsw};
  return now;
}

static pid_t other;

static void start_other(void) {
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  other = fork();
  if (other == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(60);
    for (volatile long n = 0;; ++n) {
    }
  }
  kill(other, SIGSTOP);
}

/* Returns what the program used meanwhile. */
static struct use burn(void) {
  struct use begin = use_now(), now = begin;
  kill(other, SIGCONT);
  while (now.cpu - begin.cpu < 100000000 || now.preempted - begin.preempted < 30) now = use_now();
  kill(other, SIGSTOP);
  now = use_now();
  now.cpu -= begin.cpu;
  now.preempted -= begin.preempted;
  return now;
}

int main(int argc, char** argv) {
  start_other();
  burn(); /* before MPI_Init: not counted */
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "!") == 0) {
      struct use use = burn();
      printf("%d %d %lld %ld\n", rank, i, use.cpu, use.preempted);
      fflush(stdout);
    } else if (strcmp(argv[i], "kill") == 0) {
      raise(SIGKILL);
    } else {
      MPI_Pcontrol(atoi(argv[i]));
    }
  }
  MPI_Finalize();
  burn(); /* after MPI_Finalize: not counted */
  kill(other, SIGKILL);
  waitpid(other, NULL, 0);
  return 0;
}
