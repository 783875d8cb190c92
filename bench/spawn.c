/* SPDX-License-Identifier: Apache-2.0
 *
 * How long starting a program takes, without and with a wrapper in front of it: "spawn N WRAPPER PROGRAM" prints N
 * lines "WITHOUT WITH", nanoseconds from posix_spawn to the end of the program, the two measured in turns. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

extern char** environ;

static long ns_of(char** argv) {
  struct timespec a, b;
  pid_t child;
  int status;
  clock_gettime(CLOCK_MONOTONIC, &a);
  if (posix_spawn(&child, argv[0], NULL, NULL, argv, environ) != 0 || waitpid(child, &status, 0) != child ||
      status != 0)
    exit(1);
  clock_gettime(CLOCK_MONOTONIC, &b);
  return 1000000000L * (b.tv_sec - a.tv_sec) + b.tv_nsec - a.tv_nsec;
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  char* without[] = {argv[3], NULL};
  char* with[] = {argv[2], argv[3], NULL};
  for (int i = -3; i < atoi(argv[1]); ++i) { /* the first ones read the files from disk */
    const long a = ns_of(without), b = ns_of(with);
    if (i >= 0) printf("%ld %ld\n", a, b);
  }
  return 0;
}
