/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of the recorded profiles, for 4 ranks.  Every rank r does the same:
 *
 *   set-up    splits the world into even {0, 2} and odd {1, 3}; gets 400 bytes from rank 0 by a broadcast
 *   steps     a loop of 3 iterations: 1,000 bytes to the next rank and 24 bytes to the partner in its half, one Waitall
 *             for both; then an Allreduce of 2 doubles in its half
 *   output    64 bytes into a file
 *   (none)    a Put of 32 bytes to the rank two further; a Barrier on a duplicate of its half; rank 0 sends 16
 *             bytes to rank 3, of a datatype with gaps
 *
 * tests/python/test_old_profiles.py derives from this page what every profile must say.  Change no call here: profiles
 * of versions that can no longer be built were recorded with it.  What a new version can do besides goes into a second
 * program. */
#include <mpi.h>
#include <stdlib.h>

enum { STEPS = 3, RANKS = 4, RING_BYTES = 1000, PARTNER_BYTES = 24 };

/* The functions of commlens.h, without the header and the library of empty functions: the same executable runs with
 * versions that do not have them.  Then they are null. */
#define WEAK __attribute__((weak))
extern WEAK void commlens_begin(const char* name);
extern WEAK void commlens_end(const char* name);
extern WEAK void commlens_loop_begin(const char* name, int mode);
extern WEAK void commlens_loop_iteration(void);
extern WEAK void commlens_loop_end(const char* name);
extern WEAK const void* commlens_metric(const char* name, const char* unit);
extern WEAK void commlens_record(const void* metric, double value);
extern WEAK void commlens_tag(const char* name, const char* value);
enum { EACH = 1 }; /* COMMLENS_LOOP_EACH */

static int rank;
static MPI_Comm half;
static int numbers[100];

static void set_up(void) {
  if (commlens_begin) commlens_begin("set-up");
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Comm_set_name(half, rank % 2 ? "odd" : "even");
  MPI_Bcast(numbers, 100, MPI_INT, 0, MPI_COMM_WORLD);
  if (commlens_end) commlens_end("set-up");
}

static void exchange(void) {
  static char ring[2][RING_BYTES], partner[2][PARTNER_BYTES];
  const int next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS, other = 1 - rank / 2;
  MPI_Request requests[4];
  if (commlens_begin) commlens_begin("exchange");
  MPI_Irecv(ring[0], RING_BYTES, MPI_BYTE, previous, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(partner[0], PARTNER_BYTES, MPI_BYTE, other, 2, half, &requests[1]);
  MPI_Isend(ring[1], RING_BYTES, MPI_BYTE, next, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(partner[1], PARTNER_BYTES, MPI_BYTE, other, 2, half, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  if (commlens_end) commlens_end("exchange");
}

static void steps(void) {
  const double mine[2] = {1, 2};
  double sums[2], residual = 1;
  const void* metric = commlens_metric ? commlens_metric("residual", "m") : NULL;
  if (commlens_loop_begin) commlens_loop_begin("steps", EACH);
  for (int i = 0; i < STEPS; ++i) {
    if (commlens_loop_iteration) commlens_loop_iteration();
    exchange();
    MPI_Allreduce(mine, sums, 2, MPI_DOUBLE, MPI_SUM, half);
    if (commlens_record) commlens_record(metric, residual);
    residual /= 2; /* 1, 0.5, 0.25 */
  }
  if (commlens_loop_end) commlens_loop_end("steps");
}

static void output(const char* path) {
  MPI_File file;
  if (commlens_begin) commlens_begin("output");
  if (commlens_tag) commlens_tag("kind", "IO");
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                &file);
  MPI_File_write_at(file, 64 * (MPI_Offset)rank, numbers, 64, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
  if (commlens_end) commlens_end("output");
}

/* On the world: windows that two communicators make at the same time fail now and then in Open MPI 4.1, in files of one
 * name. */
static void window(void) {
  MPI_Win win;
  int* room;
  MPI_Win_allocate(16 * sizeof *room, sizeof *room, MPI_INFO_NULL, MPI_COMM_WORLD, &room, &win);
  MPI_Win_fence(0, win);
  MPI_Put(numbers, 8, MPI_INT, (rank + 2) % RANKS, 0, 8, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
}

static void duplicate(void) {
  MPI_Comm again;
  MPI_Comm_dup(half, &again);
  MPI_Barrier(again);
  MPI_Comm_free(&again);
}

/* Four blocks of one int with as large a gap between them. */
static void gaps(void) {
  MPI_Datatype type;
  MPI_Type_vector(4, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  if (rank == 0) MPI_Send(numbers, 1, type, 3, 3, MPI_COMM_WORLD);
  if (rank == 3) MPI_Recv(numbers, 4, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != RANKS || argc != 2) MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  set_up();
  steps();
  output(argv[1]);
  window();
  duplicate();
  gaps();
  MPI_Finalize();
  return 0;
}
