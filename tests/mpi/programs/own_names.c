/* SPDX-License-Identifier: Apache-2.0
 * ISO C leaves these names to the program.  Each is a function of its own here; whoever takes it for that of libc is
 * found out.  Only those that the MPI libraries here do not fall over themselves. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MINE(name)                     \
  void name(void) {                    \
    fputs(#name " is mine\n", stdout); \
    fflush(stdout);                    \
    exit(7);                           \
  }

MINE(fsync)
MINE(gmtime_r)
MINE(link)
MINE(readlink)
MINE(sigaddset)
MINE(sigismember)
MINE(sigpending)
MINE(sigtimedwait)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  puts("own names done");
  return 0;
}
