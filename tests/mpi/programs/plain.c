/* SPDX-License-Identifier: Apache-2.0
 * No MPI at all: says who and where it is, then ends as told: `plain exit N`, `plain signal N`, `plain pid`. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "pid") == 0) {
    printf("%d\n", (int)getpid());
    return 0;
  }
  fputs("out\n", stdout);
  fputs("err\n", stderr);
  for (int i = 3; i < argc; ++i) printf("<%s>\n", argv[i]);
  fflush(stdout);
  if (argc > 2 && strcmp(argv[1], "signal") == 0) raise(atoi(argv[2]));
  return argc > 2 ? atoi(argv[2]) : 0;
}
