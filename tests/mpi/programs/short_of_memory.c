// SPDX-License-Identifier: Apache-2.0
// Makes calls on many paths without memory for them, and then again with memory.  Argument: "all", if the process can
// get no memory at all, or "blocks", if malloc() only returns small blocks.
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

static volatile int sink, has_small_blocks_only;

extern void* __libc_malloc(size_t);
void* malloc(size_t bytes) {
  if (!has_small_blocks_only || bytes < 200) return __libc_malloc(bytes);
  errno = ENOMEM;
  return NULL;
}

// The bits of `path` choose the callers: 2^12 paths.
__attribute__((noinline)) static void left(int path, int depth);
__attribute__((noinline)) static void right(int path, int depth);
static void step(int path, int depth) {
  if (depth == 0) {
    MPI_Barrier(MPI_COMM_SELF);
  } else if ((path & 1) != 0) {
    left(path >> 1, depth - 1);
  } else {
    right(path >> 1, depth - 1);
  }
}
static void left(int path, int depth) {
  step(path, depth);
  sink = 1;
}
static void right(int path, int depth) {
  volatile char more[100];
  more[0] = 1;
  step(path, depth);
  sink = more[0];
}

// The stack cannot grow either where there is no memory; so it is large before.
__attribute__((noinline)) static void grow_stack(void) {
  volatile char page[256 * 1024];
  for (size_t i = 0; i < sizeof page; i += 1024) page[i] = 1;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  grow_stack();
  struct rlimit before, none;
  getrlimit(RLIMIT_AS, &before);
  none = before;
  none.rlim_cur = 1;  // less than it has: no memory can be added
  has_small_blocks_only = strcmp(argv[1], "blocks") == 0;
  if (!has_small_blocks_only) setrlimit(RLIMIT_AS, &none);
  const int is_short =
      has_small_blocks_only || mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
  for (int path = 0; path < 1 << 12; ++path) step(path, 12);
  has_small_blocks_only = 0;
  setrlimit(RLIMIT_AS, &before);
  for (int path = 0; path < 1 << 12; ++path) step(path, 12);
  if (is_short) printf("short\n");
  fflush(stdout);
  MPI_Finalize();
  return 0;
}
