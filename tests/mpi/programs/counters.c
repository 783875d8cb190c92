/* SPDX-License-Identifier: Apache-2.0
 * Each rank touches 300 fresh pages in region `touch`, uses CPU time in region `work`, and sleeps 40 times in region
 * `sleep`; region `idle` does nothing.  Region `wait` touches 200 fresh pages in a callback of MPI: they belong to the
 * call.  Prints the CPU time of `work`, and with an argument then kills itself. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include <commlens/commlens.h>

enum { page = 4096 };

static void touch(int pages) {
  volatile char* memory = mmap(NULL, (size_t)pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) MPI_Abort(MPI_COMM_WORLD, 2);
  madvise((void*)memory, (size_t)pages * page, MADV_NOHUGEPAGE);
  for (int i = 0; i < pages; ++i) memory[(size_t)i * page] = 1;
}

static long long cpu_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* MPI calls it inside MPI_Comm_dup. */
static int copies(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm, (void)key, (void)extra, (void)in, (void)out;
  touch(200);
  *flag = 0;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int rank, key;
  MPI_Comm copy;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  commlens_begin("touch");
  touch(300);
  commlens_end("touch");
  commlens_begin("work");
  const long long begin = cpu_time();
  for (volatile int i = 0; i < 3000000; ++i) {
  }
  const long long spent = cpu_time() - begin;
  commlens_end("work");
  commlens_begin("sleep");
  const struct timespec shortly = {0, 1000};
  for (int i = 0; i < 40; ++i) nanosleep(&shortly, NULL);
  commlens_end("sleep");
  commlens_begin("idle");
  commlens_end("idle");
  commlens_begin("wait");
  MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_free(&copy);
  commlens_end("wait");
  printf("%d %lld\n", rank, spent);
  fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  if (argc > 1) raise(SIGKILL);
  MPI_Finalize();
  return 0;
}
