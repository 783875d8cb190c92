/* SPDX-License-Identifier: Apache-2.0
 * `soak calls|comms|windows|files N`: N MPI calls, or N communicators, windows or files made and freed; one process.
 * Prints the resident memory in KiB at the beginning and after every twentieth, and at last the
 * most it ever was, in MPI_Finalize perhaps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINES = 20, CALLS_A_ROUND = 10 };

static char out[4096], in[4096];

static void print_memory(long long done) {
  long pages = 0, resident = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%ld %ld", &pages, &resident) != 2) exit(1);
  fclose(statm);
  printf("%lld %ld\n", done, resident * (sysconf(_SC_PAGESIZE) / 1024));
  fflush(stdout);
}

/* Ten calls, messages of all sizes, requests of which many are under way. */
static void some_calls(long long i) {
  MPI_Request requests[2];
  int const bytes = (int)(i % 4096);
  int flag, rank;
  MPI_Irecv(in, sizeof in, MPI_CHAR, 0, 1, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(out, bytes, MPI_CHAR, 0, 1, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Send(out, bytes, MPI_CHAR, MPI_PROC_NULL, 2, MPI_COMM_WORLD);
  MPI_Recv(in, bytes, MPI_CHAR, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Iprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Allreduce(out, in, bytes / 8, MPI_DOUBLE, MPI_MAX, MPI_COMM_SELF);
  MPI_Testall(0, requests, &flag, MPI_STATUSES_IGNORE);
  MPI_Barrier(MPI_COMM_SELF);
}

static void one_comm(long long i) {
  MPI_Comm comm;
  if (i % 2)
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  else
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
}

static void one_window(void) {
  MPI_Win win;
  void* base;
  MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

static void one_file(void) {
  MPI_File file;
  MPI_File_open(MPI_COMM_WORLD, "soak.tmp", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_write_at(file, 0, out, 8, MPI_CHAR, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  char const what = argv[1][1]; /* a, o, i, i */
  long long const n = atoll(argv[2]) / (what == 'a' ? CALLS_A_ROUND : 1), each = what == 'a' ? CALLS_A_ROUND : 1;
  for (long long i = 0; i < n; ++i) {
    if (i % (n / LINES) == 0) print_memory(i * each);
    if (what == 'a') some_calls(i);
    if (what == 'o') one_comm(i);
    if (what == 'i') argv[1][0] == 'w' ? one_window() : one_file();
  }
  print_memory(n * each);
  MPI_Finalize();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("-1 %ld\n", usage.ru_maxrss);
  return 0;
}
