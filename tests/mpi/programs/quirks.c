/* SPDX-License-Identifier: Apache-2.0
 * Programs that live in places a profiler may step on: `quirks CASE`. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <fenv.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
static int rank;

/* A message sent in the callback that MPI_Finalize makes first. */
static int says_goodbye(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm, (void)key, (void)value, (void)extra;
  int const last = 42;
  MPI_Send(&last, 1, MPI_INT, 1, 7, WORLD);
  return MPI_SUCCESS;
}

static void goodbye(void) {
  int key, heard = 0;
  if (rank == 0) {
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, says_goodbye, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
  } else {
    MPI_Recv(&heard, 1, MPI_INT, 0, 7, WORLD, MPI_STATUS_IGNORE);
    printf("heard %d\n", heard);
    fflush(stdout);
  }
}

/* All communicators MPI can make, and an error handler that ends the program. */
static void used_up(void) {
  MPI_Comm comm;
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  while (MPI_Comm_dup(WORLD, &comm) == MPI_SUCCESS) continue;
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_ARE_FATAL);
}

static void exceptions(void) {
  int one = 1, sum = 0;
  feclearexcept(FE_ALL_EXCEPT);
  for (int i = 0; i < 100; ++i) MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, WORLD);
}

/* A table of procedures on a page of its own, which nobody may read when it is not used. */
static struct {
  int (*barrier)(MPI_Comm);
  char rest[4096 - sizeof(void*)];
} table __attribute__((aligned(4096))) = {MPI_Barrier, ""};

static void locked(void) {
  table.barrier(WORLD);
  mprotect(&table, sizeof table, PROT_NONE);
}

/* An error handler leaves its fiber for good; the stack goes, and another fiber calls MPI on a lower one. */
enum { STACK = 512 << 10 };
static ucontext_t home, first, second, left;
static MPI_Comm bad;
static void leaves(MPI_Comm* comm, int* code, ...) {
  (void)comm, (void)code;
  swapcontext(&left, &home);
}
static void fails(void) {
  int nothing = 0;
  MPI_Send(&nothing, 1, MPI_INT, 99, 0, bad);
}
static void reduces(void) {
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  printf("reduced %d\n", sum);
}
static void prepare(ucontext_t* fiber, char* stack, void (*body)(void)) {
  getcontext(fiber);
  fiber->uc_stack.ss_sp = stack;
  fiber->uc_stack.ss_size = STACK;
  fiber->uc_link = &home;
  makecontext(fiber, body, 0);
}
static void fibers(void) {
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &bad);
  MPI_Comm_create_errhandler(leaves, &handler);
  MPI_Comm_set_errhandler(bad, handler);
  char* const stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  prepare(&first, stacks + STACK, fails);
  prepare(&second, stacks, reduces);
  swapcontext(&home, &first);
  munmap(stacks + STACK, STACK);
  swapcontext(&home, &second);
}

/* Closes what it has inherited before it opens its own files: one of them is number 2. */
static int closes(int argc, char** argv) {
  for (int i = 0; i < 3; ++i) close(i);
  for (int i = 0; i < 2; ++i) open("/dev/null", O_RDWR);
  int const data = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0644);
  MPI_Init(&argc, &argv);
  MPI_Finalize();
  return data == 2 && write(data, "data\n", 5) == 5 ? 0 : 1;
}

static void told(void) {
  char text[1024];
  for (char const* const* key = (char const* const[]){"command", "argv", NULL}; *key != NULL; ++key) {
    int found = 0;
    MPI_Info_get(MPI_INFO_ENV, *key, sizeof text - 1, text, &found);
    printf("%s: %s\n", *key, found ? text : "-");
  }
}

int main(int argc, char** argv) {
  char const* const what = argv[1];
  if (strcmp(what, "closes") == 0) return closes(argc, argv);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  if (strcmp(what, "goodbye") == 0) goodbye();
  if (strcmp(what, "used_up") == 0) used_up();
  if (strcmp(what, "exceptions") == 0) exceptions();
  if (strcmp(what, "locked") == 0) locked();
  if (strcmp(what, "fibers") == 0) fibers();
  if (strcmp(what, "told") == 0) told();
  MPI_Finalize();
  if (strcmp(what, "exceptions") == 0) printf("raised %x\n", fetestexcept(FE_ALL_EXCEPT));
  if (rank == 0) printf("%s done\n", what);
  return 0;
}
