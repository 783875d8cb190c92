/* SPDX-License-Identifier: Apache-2.0
 * A thread that communicates before commlens_reset() and waits outside MPI afterwards, in an open region.  The main
 * thread goes on, prints what a watch says, and copies the counters: `idle_thread FOLDER`. */
#include <commlens/commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { BEFORE = 5, AFTER = 3, LAST = 2 };
static pthread_barrier_t turn;
static int rank, size;

static void pass(void) { pthread_barrier_wait(&turn); }

static void talk(int n) {
  int a = 0, b;
  for (int i = 0; i < n; ++i)
    MPI_Sendrecv(&a, 1, MPI_INT, (rank + 1) % size, 0, &b, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void* work(void* unused) {
  commlens_begin("work");
  commlens_record(commlens_metric("value", ""), 1);
  commlens_begin("inner");
  talk(BEFORE);
  commlens_end("inner");
  pass(); /* the main thread clears the counters */
  pass(); /* and has copied them */
  talk(LAST);
  commlens_end("work");
  return unused;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t thread;
  MPI_Comm everybody = MPI_COMM_WORLD;
  unsigned long messages[16] = {0}, bytes[16] = {0};
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided < MPI_THREAD_MULTIPLE) MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  pthread_barrier_init(&turn, 0, 2);
  pthread_create(&thread, 0, work, 0);
  pass();
  commlens_reset();
  const commlens_watch_t sent = commlens_watch(&everybody, COMMLENS_SENT);
  commlens_watch_start(sent);
  talk(AFTER);
  commlens_watch_read(sent, messages, bytes);
  printf("%lu messages\n", messages[(rank + 1) % size]);
  if (argc > 1 && commlens_flush_to(argv[1]) != 0) printf("not written\n");
  pass();
  pthread_join(thread, 0);
  commlens_watch_free(sent);
  MPI_Finalize();
  return 0;
}
