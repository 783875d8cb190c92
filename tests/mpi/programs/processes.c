/* SPDX-License-Identifier: Apache-2.0
 * A rank that starts other processes, in every way there is: `processes CASE [its arguments]`, 2 ranks. */
#define _GNU_SOURCE
#include <mpi.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static int rank;

static void work(int n) {
  int one = 1, sum = 0;
  for (int i = 0; i < n; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void tell(char const* how, int code) {
  if (rank == 0) printf("%s %d\n", how, code);
  fflush(stdout);
}

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

static void starts(void) {
  char* const arguments[] = {"sh", "-c", "exit 21", NULL};
  pid_t child;
  fflush(stdout);
  child = vfork();
  if (child == 0) {
    execvp("sh", arguments);
    _exit(99);
  }
  tell("vfork", wait_for(child));
  if (posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) != 0) abort();
  tell("spawn", wait_for(child));
  FILE* const pipe = popen("echo 22", "r");
  char line[16] = "";
  if (fgets(line, sizeof line, pipe) == NULL) abort();
  tell("popen", atoi(line) + pclose(pipe));
  /* a child that goes on as a copy of the program, asks MPI something, and starts a child itself */
  child = fork();
  if (child == 0) {
    int flag = 0, size = 0;
    MPI_Initialized(&flag);
    for (int i = 0; i < 5; ++i) MPI_Comm_size(MPI_COMM_WORLD, &size);
    pid_t const grandchild = fork();
    if (grandchild == 0) exit(23);
    exit(wait_for(grandchild) + flag + size); /* runs what was registered with atexit */
  }
  tell("fork", wait_for(child));
  /* what a child inherits: environment and open files */
  tell("fds", system("test $(ls /proc/self/fd | wc -l) -lt 64"));
  work(5);
}

/* The child makes the calls that the parent has made before it, and makes after it: known ones and new ones.  They are
 * calls that receive nothing: a child that receives takes the messages of its parent from Open MPI's shared memory. */
static void sends(int n, int count) {
  int const data[2] = {0, 0};
  for (int i = 0; i < n; ++i) MPI_Send(data, count, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF);
}

static void repeats(void) {
  sends(20, 1);
  fflush(stdout);
  pid_t const child = fork();
  if (child == 0) {
    sends(20, 1);
    sends(7, 2);
    _exit(24);
  }
  sends(20, 1); /* at the same time as the child */
  tell("repeats", wait_for(child));
  sends(20, 1);
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  work(10);
  if (strcmp(what, "starts") == 0) starts();
  if (strcmp(what, "repeats") == 0) repeats();
  if (strcmp(what, "command") == 0 && rank == 0) tell("command", WEXITSTATUS(system(argv[2])));
  if (strcmp(what, "instead") == 0) {
    /* another program takes the place of this rank: MPI_Finalize is never called */
    MPI_Barrier(MPI_COMM_WORLD);
    execlp("sh", "sh", "-c", "exit 0", (char*)NULL);
  }
  MPI_Finalize();
  /* one rank only: the launcher may end the others before it has printed what they wrote */
  if (strcmp(what, "after") == 0 && rank == 0) execlp("sh", "sh", "-c", "echo after; exit 6", (char*)NULL);
  return 0;
}
