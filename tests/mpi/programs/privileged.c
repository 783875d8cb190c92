/* SPDX-License-Identifier: Apache-2.0
 * Says whether the kernel takes it for privileged, annotates, communicates, and gives its rights back before the end:
 * `privileged [keep]`. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "commlens/commlens.h"

int main(int argc, char** argv) {
  commlens_begin("before");
  commlens_end("before");
  MPI_Init(&argc, &argv);
  commlens_begin("work");
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  commlens_end("work");
  printf("sum %d secure %d active %d\n", sum, (int)getauxval(AT_SECURE), commlens_active());
  fflush(stdout);
  if (commlens_flush_to("flushed") == 0) puts("flushed");
  const int keeps = argc > 1 && strcmp(argv[1], "keep") == 0;
  if (!keeps && (setresgid(getgid(), getgid(), getgid()) != 0 || setresuid(getuid(), getuid(), getuid()) != 0)) {
    perror("privileged");
  }
  MPI_Finalize();
  return 0;
}
