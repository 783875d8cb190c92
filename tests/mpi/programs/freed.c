/* SPDX-License-Identifier: Apache-2.0
 * What a blocked call needs is freed by another thread, and its handle is given out again before the call ends.
 * "comm": ROUNDS times, a listener receives on a communicator that is freed meanwhile; its handle may be that of a
 * second one, on which there is one barrier. "type": ROUNDS times, a listener receives a vector type of 40 bytes that
 * is freed meanwhile; then types of 3,600 bytes are sent 4 times. "first": a listener receives, with MPI_Recv, a type
 * of 800 bytes that was never used before; 3 times: nothing is freed meanwhile, the type itself is, or 5,000 others
 * are. Then it receives 100 of a predefined type, 1,200 bytes, on a communicator, and that is freed as well as 5,000
 * types. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 30 };
static MPI_Comm comm;
static MPI_Datatype type;
static int received[1000], data[1000];
static int volatile in_call;

static void free_others(void) {
  for (int i = 0; i < 5000; ++i) {
    MPI_Datatype other;
    MPI_Type_contiguous(3, MPI_INT, &other);
    MPI_Type_commit(&other);
    MPI_Type_free(&other);
  }
}

static void* listen_to_pairs(void* unused) {
  static char pairs[1600];
  in_call = 1;
  MPI_Recv(pairs, 100, MPI_DOUBLE_INT, 0, 5, comm, MPI_STATUS_IGNORE);
  return unused;
}

static void* listen(void* with_type) {
  MPI_Comm on = with_type != NULL ? MPI_COMM_WORLD : comm;
  MPI_Datatype of = with_type != NULL ? type : MPI_INT;
  in_call = 1;
  MPI_Recv(received, 1, of, 0, 5, on, MPI_STATUS_IGNORE);
  return NULL;
}

static long long used_ns(clockid_t clock) {
  struct timespec used;
  clock_gettime(clock, &used);
  return 1000000000LL * used.tv_sec + used.tv_nsec;
}

static pthread_t start_with(void* (*listener)(void*), void* with_type) {
  pthread_t thread;
  in_call = 0;
  pthread_create(&thread, NULL, listener, with_type);
  while (!in_call) usleep(100);
  /* The listener is in MPI_Recv when it has computed for a while: it polls there. */
  clockid_t clock;
  pthread_getcpuclockid(thread, &clock);
  for (long long const begin = used_ns(clock); used_ns(clock) - begin < 1000000;) usleep(100);
  MPI_Barrier(MPI_COMM_WORLD);
  return thread;
}

static pthread_t start(void* with_type) { return start_with(listen, with_type); }

static void first(int rank, int size) {
  static double numbers[200];
  for (int round = 0; round < 3; ++round) {
    MPI_Type_contiguous(200, MPI_INT, &type);
    MPI_Type_commit(&type);
    pthread_t const thread = start(&round);
    if (round == 1) MPI_Type_free(&type);
    if (round == 2) free_others();
    for (int to = 0; rank == 0 && to < size; ++to) MPI_Send(data, 200, MPI_INT, to, 5, MPI_COMM_WORLD);
    pthread_join(thread, NULL);
    if (round != 1) MPI_Type_free(&type);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "listened to");
  pthread_t const thread = start_with(listen_to_pairs, NULL);
  for (int to = 0; rank == 0 && to < size; ++to) MPI_Send(numbers, 100, MPI_DOUBLE_INT, to, 5, comm);
  MPI_Comm_free(&comm);
  free_others();
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  int level, rank, size;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (strcmp(argv[1], "first") == 0) first(rank, size);
  for (int round = 0; round < ROUNDS && strcmp(argv[1], "first") != 0; ++round) {
    if (strcmp(argv[1], "comm") == 0) {
      MPI_Comm second;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      MPI_Comm_set_name(comm, "listened to");
      pthread_t const thread = start(NULL);
      for (int to = 0; rank == 0 && to < size; ++to) MPI_Send(&round, 1, MPI_INT, to, 5, comm);
      MPI_Comm_free(&comm);
      MPI_Comm_dup(MPI_COMM_WORLD, &second);
      MPI_Barrier(second);
      pthread_join(thread, NULL);
      MPI_Comm_free(&second);
      if (received[0] != round) return 1;
    } else {
      MPI_Datatype large[4];
      MPI_Type_vector(10, 1, 2, MPI_INT, &type);
      MPI_Type_commit(&type);
      MPI_Sendrecv(data, 1, type, 0, 0, received, 1, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      pthread_t const thread = start(argv);
      MPI_Type_free(&type);
      MPI_Type_contiguous(900, MPI_INT, &large[0]);
      MPI_Type_commit(&large[0]);
      for (int to = 0; rank == 0 && to < size; ++to) MPI_Send(data, 10, MPI_INT, to, 5, MPI_COMM_WORLD);
      pthread_join(thread, NULL);
      for (int i = 1; i < 4; ++i) MPI_Type_dup(large[0], &large[i]);
      for (int i = 0; i < 4; ++i) {
        MPI_Sendrecv(data, 1, large[i], 0, 0, received, 1, large[i], 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
      }
      for (int i = 0; i < 4; ++i) MPI_Type_free(&large[i]);
    }
  }
  if (rank == 0) puts("freed done");
  MPI_Finalize();
  return 0;
}
