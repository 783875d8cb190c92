/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for an MPI library: with handles that are integers, or pointers (-DPOINTERS), and as Open MPI (-DOPEN_MPI).
 * Each call is a line on stdout.  A duplicate of handle n is n + 100.  As before MPI_Init (-DEARLY) or after
 * MPI_Finalize
 * (-DLATE), and with sessions (-DSESSIONS). */
#include <stdio.h>

#ifdef POINTERS
typedef struct comm* handle;
#define NUMBER(h) ((int)((long)(h) & 0xffff))
#define HANDLE(n) ((handle)(0x7fff00000000 | (n)))
#else
typedef int handle;
#define NUMBER(h) (h)
#define HANDLE(n) (n)
#endif
#ifdef OPEN_MPI
char ompi_mpi_comm_world[64];
#endif

#if defined(EARLY) || defined(LATE) || defined(SESSIONS)
int PMPI_Initialized(int* flag) {
#ifdef EARLY
  *flag = 0;
#else
  *flag = 1;
#endif
  return 0;
}
int PMPI_Finalized(int* flag) {
#ifdef LATE
  *flag = 1;
#else
  *flag = 0;
#endif
  return 0;
}
#endif
#ifdef SESSIONS
int PMPI_Session_init(void) { return 0; }
#endif

int PMPI_Comm_test_inter(handle comm, int* flag) {
  printf("test_inter %d\n", NUMBER(comm));
  *flag = NUMBER(comm) == 2;
  return NUMBER(comm) == 0;
}
int PMPI_Comm_split(handle comm, int color, int key, handle* made) {
  printf("split %d %d %d\n", NUMBER(comm), color, key);
  *made = HANDLE(NUMBER(comm) + 50);
  return NUMBER(comm) == 3;
}
int PMPI_Comm_free(handle* comm) {
  printf("free %d\n", NUMBER(*comm));
  *comm = HANDLE(0);
  return 0;
}
int PMPI_Comm_dup(handle comm, handle* made) {
  printf("dup %d\n", NUMBER(comm));
  *made = HANDLE(NUMBER(comm) + 100);
  return NUMBER(comm) == 4;
}
handle PMPI_Comm_f2c(int comm) { return HANDLE(comm); }
int PMPI_Comm_c2f(handle comm) { return NUMBER(comm); }
