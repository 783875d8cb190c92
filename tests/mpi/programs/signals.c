/* SPDX-License-Identifier: Apache-2.0
 * Signals while MPI works: `signals CASE`, 2 ranks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
static int rank;
static volatile sig_atomic_t alarms, profs, users;
static void on_alarm(int number) { (void)number, ++alarms; }
static void on_prof(int number) { (void)number, ++profs; }
static void on_user(int number) { (void)number, ++users; }

static void take(int number, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(number, &action, NULL);
}

static void every(int which, int microseconds) {
  struct itimerval const timer = {{0, microseconds}, {0, microseconds}};
  setitimer(which, &timer, NULL);
}

static int work(int rounds) {
  static char out[20000], in[20000];
  int sum = 0;
  for (int i = 0; i < rounds; ++i) {
    int one = 1, all = 0;
    MPI_Request requests[2];
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, WORLD);
    MPI_Irecv(in, sizeof in, MPI_BYTE, 1 - rank, i, WORLD, &requests[0]);
    MPI_Isend(out, sizeof out, MPI_BYTE, 1 - rank, i, WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm comm;
    MPI_Comm_dup(WORLD, &comm);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    sum += all;
  }
  return sum;
}

/* Timers that interrupt what they hit, up to the end of MPI_Finalize and with it the writing of a profile. */
static void timers(void) {
  take(SIGALRM, on_alarm, 0);
  take(SIGPROF, on_prof, SA_RESTART);
  every(ITIMER_REAL, 300);
  every(ITIMER_PROF, 1000);
  int const sum = work(300);
  MPI_File file;
  char name[32];
  int back[256] = {0}, data[256];
  for (int i = 0; i < 256; ++i) data[i] = i;
  snprintf(name, sizeof name, "signals.%d", rank);
  MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, data, 256, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at(file, 0, back, 256, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  /* A write that a signal interrupts is lost, with commlens or without. */
  sigset_t both, before;
  sigemptyset(&both);
  sigaddset(&both, SIGALRM);
  sigaddset(&both, SIGPROF);
  sigprocmask(SIG_BLOCK, &both, &before);
  printf("rank %d: %d %d, alarms %d\n", rank, sum, back[255], alarms > 0);
  fflush(stdout);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

/* A rank that waits in MPI_Recv is sent signals by the other one. */
static void blocked(void) {
  pid_t pid = getpid();
  int value = 0;
  take(SIGUSR1, on_user, 0);
  if (rank == 0) {
    MPI_Send(&pid, sizeof pid, MPI_BYTE, 1, 0, WORLD);
    MPI_Recv(&value, 1, MPI_INT, 1, 1, WORLD, MPI_STATUS_IGNORE);
    printf("got %d, signals %d\n", value, users > 0);
    fflush(stdout);
  } else {
    MPI_Recv(&pid, sizeof pid, MPI_BYTE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 20; ++i) {
      usleep(5000);
      kill(pid, SIGUSR1);
    }
    value = 42;
    MPI_Send(&value, 1, MPI_INT, 0, 1, WORLD);
  }
}

/* A signal that ends the program, after MPI did its work and before MPI_Finalize. */
static void ended(void) {
  work(3);
  if (rank == 0) puts("worked");
  fflush(stdout);
  MPI_Barrier(WORLD);
  usleep(200000); /* what was printed is out before the launcher hears of the end */
  if (rank == 1) raise(SIGTERM);
  for (;;) pause();
}

/* The library must leave the mask, the alternate stack and the actions of the thread as they are. */
static void state(void) {
  sigset_t mask;
  stack_t const stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR2);
  sigaddset(&mask, SIGXFSZ);
  sigprocmask(SIG_SETMASK, &mask, NULL);
  sigaltstack(&stack, NULL);
  take(SIGXFSZ, on_user, 0);
  take(SIGPIPE, SIG_IGN, 0);
  work(3);
}

static void report_state(void) {
  sigset_t later;
  stack_t now;
  struct sigaction action;
  int blocked_signals = 0, handled = 0;
  sigprocmask(SIG_SETMASK, NULL, &later);
  for (int number = 1; number < 32; ++number) blocked_signals += sigismember(&later, number) == 1;
  sigaltstack(NULL, &now);
  sigaction(SIGXFSZ, NULL, &action);
  handled += action.sa_handler == on_user;
  sigaction(SIGPIPE, NULL, &action);
  handled += action.sa_handler == SIG_IGN;
  printf("rank %d: blocked %d, stack %zu, handled %d\n", rank, blocked_signals, now.ss_size, handled);
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  if (strcmp(what, "timers") == 0) timers();
  if (strcmp(what, "blocked") == 0) blocked();
  if (strcmp(what, "ended") == 0) ended();
  if (strcmp(what, "state") == 0) state();
  MPI_Finalize();
  if (strcmp(what, "state") == 0) report_state();
  return 0;
}
