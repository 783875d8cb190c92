/* SPDX-License-Identifier: Apache-2.0
 * A program with one known fault, or with none: faults_to_find NAME [REPEATS].
 * Work is sleep: it takes its time on a busy machine too, and disturbs no other rank. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

static void work(int milliseconds) {
  struct timespec rest = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  while (nanosleep(&rest, &rest) != 0) continue;
}

/* Rank 1 works four times as long as the others before each collective. */
static void late(int repeats) {
  double in = rank, out;
  for (int i = 0; i < repeats; ++i) {
    work(rank == 1 ? 400 : 100);
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* late */
  }
}

/* Very many exchanges of sixteen bytes within the pairs of a subcommunicator, for so many seconds. */
static void tiny(int seconds) {
  MPI_Comm pairs;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pairs);
  long in[2] = {rank, rank}, out[2];
  const double end = MPI_Wtime() + seconds;
  for (int more = 1; more;) {
    for (int i = 0; i < 10000; ++i) MPI_Alltoall(in, 1, MPI_LONG, out, 1, MPI_LONG, pairs); /* tiny */
    more = MPI_Wtime() < end;
    MPI_Bcast(&more, 1, MPI_INT, 0, pairs);
  }
  MPI_Comm_free(&pairs);
}

/* Each rank works only when the rank before it has finished. */
static void chain(int repeats) {
  int token = 0;
  for (int i = 0; i < repeats; ++i) {
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* chain */
    work(400);
    if (rank < size - 1) MPI_Send(&token, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* All ranks work equally long, but rank 1 first waits for rank 0, and its communicator waits for rank 1. */
static void uneven(int repeats) {
  MPI_Comm some;
  MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &some);
  int token = 0;
  for (int i = 0; i < repeats; ++i) {
    work(rank == 0 ? 100 : 25);
    if (rank == 0) MPI_Send(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Barrier(some);
    if (rank != 0) work(75);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Comm_free(&some);
}

/* A communicator for each step. */
static void loop(int repeats) {
  for (int i = 0; i < repeats; ++i) {
    MPI_Comm copy;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy); /* loop */
    MPI_Comm_free(&copy);
  }
  work(1000);
}

/* Rank 0 asks for a message all the time. */
static void polling(int repeats) {
  for (int i = 0; i < repeats; ++i) {
    if (rank == 0) {
      int found = 0;
      for (int k = 1; k < size; ++k) {
        for (found = 0; !found;) MPI_Iprobe(k, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE); /* polling */
        MPI_Recv(NULL, 0, MPI_BYTE, k, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    } else {
      work(1500);
      MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    }
  }
}

/* Another rank works longer each time, and a barrier waits for it. */
static void turns(int repeats) {
  for (int i = 0; i < repeats; ++i) {
    work(i % size == rank ? 50 : 5);
    MPI_Barrier(MPI_COMM_WORLD); /* turns */
  }
}

/* The same with data. */
static void steps(int repeats) {
  double in = rank, out;
  for (int i = 0; i < repeats; ++i) {
    work(i % size == rank ? 50 : 5);
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

/* The other ranks are late in turns.  Rank 0 waits for the message of the late one before the broadcast. */
static void root(int repeats) {
  int data = 0;
  for (int i = 0; i < repeats; ++i) {
    const int late = 1 + i % (size - 1);
    work(rank == late ? 50 : 15);
    if (rank == late) MPI_Send(&data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    if (rank == 0) MPI_Recv(&data, 1, MPI_INT, late, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* All ranks work equally long, but rank 1 before its messages to the others, and the others after these. */
static void sender(int repeats) {
  int data = 0;
  for (int i = 0; i < repeats; ++i) {
    if (rank == 1) {
      work(40);
      for (int to = 0; to < size; ++to)
        if (to != rank) MPI_Send(&data, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
    } else {
      MPI_Recv(&data, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      work(40);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

/* The pairs do the same, but in the last one the members come late in turns. */
static void slow(int repeats) {
  MPI_Comm pairs;
  MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &pairs);
  double in = rank, out;
  for (int i = 0; i < repeats; ++i) {
    const int is_last = rank / 2 == size / 2 - 1;
    work(!is_last || i % 2 == rank % 2 ? 50 : 10);
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, pairs);
  }
  MPI_Comm_free(&pairs);
}

/* The others ask rank 0 for each piece of work, and it takes its time to answer. */
static void serves(int repeats) {
  int piece = 0;
  for (int i = 0; rank == 0 && i < repeats * (size - 1); ++i) {
    MPI_Status status;
    MPI_Recv(&piece, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &status);
    work(6);
    MPI_Send(&piece, 1, MPI_INT, status.MPI_SOURCE, 7, MPI_COMM_WORLD);
  }
  for (int i = 0; rank != 0 && i < repeats; ++i) {
    MPI_Send(&piece, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    MPI_Recv(&piece, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* serves */
    work(4);
  }
}

/* All ranks work equally long and talk a little. */
static void healthy(int repeats) {
  double in[2000] = {1}, out[2000];
  for (int i = 0; i < repeats; ++i) {
    work(100);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Sendrecv(in, 2000, MPI_DOUBLE, right, 7, out, 2000, MPI_DOUBLE, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(int);
  } faults[] = {{"late", late},       {"tiny", tiny},     {"chain", chain},    {"uneven", uneven}, {"loop", loop},
                {"polling", polling}, {"turns", turns},   {"slow", slow},      {"serves", serves}, {"steps", steps},
                {"root", root},       {"sender", sender}, {"healthy", healthy}};
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; ++i) {
    if (strcmp(argv[1], faults[i].name) == 0) faults[i].run(atoi(argv[2]));
  }
  MPI_Finalize();
  return 0;
}
