/* SPDX-License-Identifier: Apache-2.0
 * Who this rank talks to in one communicator, asked by the C interface; prints what a watch says at each step. */
#include <commlens/commlens.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank, size;
static MPI_Comm turned;

/* n messages of n integers to the next one, in the communicator that has the ranks the other way round. */
static void talk(int n) {
  int a[8] = {0}, b[8];
  const int next = (rank + 1) % size, before = (rank + size - 1) % size;
  for (int i = 0; i < n; ++i) MPI_Sendrecv(a, n, MPI_INT, next, 0, b, n, MPI_INT, before, 0, turned, MPI_STATUS_IGNORE);
}

static void print(const char* what, commlens_watch_t watch) {
  unsigned long messages[16] = {0}, bytes[16] = {0};
  const int n = commlens_watch_read(watch, messages, bytes);
  printf("%s %d:", what, rank);
  for (int i = 0; i < n; ++i) printf(" %lu/%lu", messages[i], bytes[i]);
  printf("\n");
  fflush(stdout);
}

/* A watch that is made, started, read and reset while counting is paused, of a communicator made meanwhile. */
static void pauses(int world) {
  MPI_Pcontrol(0);
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &turned);
  MPI_Comm_rank(turned, &rank);
  const commlens_watch_t sent = commlens_watch(&turned, COMMLENS_SENT);
  commlens_watch_start(sent);
  talk(2);
  print("paused", sent);
  MPI_Pcontrol(1);
  talk(3);
  print("resumed", sent);
  MPI_Pcontrol(0);
  talk(1);
  print("paused again", sent);
  commlens_watch_reset(sent);
  commlens_watch_stop(sent);
  commlens_watch_start(sent);
  MPI_Pcontrol(1);
  talk(1);
  print("reset", sent);
  commlens_watch_free(sent);
  MPI_Comm_free(&turned);
}

int main(int argc, char** argv) {
  int world;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &world);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1 && strcmp(argv[1], "pauses") == 0) {
    pauses(world);
    MPI_Finalize();
    return 0;
  }
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - world, &turned);
  MPI_Comm_rank(turned, &rank);
  MPI_Comm none = MPI_COMM_NULL, everybody = MPI_COMM_WORLD;
  const commlens_watch_t sent = commlens_watch(&turned, COMMLENS_SENT),
                         received = commlens_watch(&turned, COMMLENS_RECEIVED),
                         collective = commlens_watch(&turned, COMMLENS_COLLECTIVE),
                         elsewhere = commlens_watch(&everybody, COMMLENS_SENT);
  if (commlens_watch(&none, COMMLENS_SENT) != 0 || commlens_watch(0, COMMLENS_SENT) != 0 ||
      commlens_watch(&turned, 5) != 0 || commlens_watch(&turned, -1) != 0)
    printf("a watch of nothing\n");
  talk(1);
  commlens_watch_start(sent);
  commlens_watch_start(received);
  commlens_watch_start(collective);
  commlens_watch_start(elsewhere);
  talk(2);
  const commlens_watch_t early = commlens_watch_snapshot(sent);
  if (argc > 1 && commlens_flush_to(argv[1]) != 0) printf("not written\n");
  talk(3);
  MPI_Bcast(&world, 1, MPI_INT, 0, turned);
  print("early", early);
  print("sent", sent);
  print("received", received);
  print("collective", collective);
  print("elsewhere", elsewhere);
  commlens_watch_stop(sent);
  talk(4);
  commlens_watch_start(sent);
  print("stopped", sent);
  commlens_watch_reset(sent);
  talk(1);
  print("reset", sent);
  for (int i = 0; i < 2; ++i) commlens_watch_free(i == 0 ? sent : early);
  commlens_watch_free(received);
  commlens_watch_free(collective);
  commlens_watch_free(elsewhere);
  MPI_Comm_free(&turned);
  MPI_Finalize();
  return 0;
}
