/* SPDX-License-Identifier: Apache-2.0
 * One-sided communication on 2 ranks: a window of each kind, each on a communicator of its own, and every kind of
 * synchronisation. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORLD MPI_COMM_WORLD
static int rank, other, data[64], into[64], room[64];

static void active(MPI_Win window) {
  MPI_Group all, partner;
  MPI_Win_get_group(window, &all);
  MPI_Group_incl(all, 1, &other, &partner);
  MPI_Win_fence(0, window);
  MPI_Put(data, 3, MPI_INT, other, 0, 3, MPI_INT, window);
  MPI_Put(data, 5, MPI_INT, MPI_PROC_NULL, 0, 5, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_post(partner, 0, window);
  MPI_Win_start(partner, 0, window);
  MPI_Accumulate(data, 2, MPI_INT, other, 0, 2, MPI_INT, MPI_SUM, window);
  MPI_Get(into, 6, MPI_INT, other, 4, 6, MPI_INT, window);
  MPI_Win_complete(window);
  MPI_Win_wait(window);
  MPI_Group_free(&partner);
  MPI_Group_free(&all);
}

static void passive(MPI_Win window) {
  MPI_Request requests[4];
  int zero = 0, one = 1, old = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window);
  MPI_Put(data, 2, MPI_INT, other, 0, 2, MPI_INT, window);
  MPI_Win_flush(other, window);
  MPI_Win_flush_local(other, window);
  MPI_Win_unlock(other, window);
  MPI_Barrier(WORLD);
  MPI_Win_lock_all(0, window);
  MPI_Fetch_and_op(&one, &old, MPI_INT, other, 8, MPI_SUM, window);
  MPI_Fetch_and_op(NULL, &old, MPI_INT, other, 8, MPI_NO_OP, window);
  MPI_Compare_and_swap(&one, &zero, &old, MPI_INT, other, 9, window);
  MPI_Get_accumulate(data, 4, MPI_INT, into, 4, MPI_INT, other, 0, 4, MPI_INT, MPI_SUM, window);
  MPI_Get_accumulate(NULL, 0, MPI_INT, into, 4, MPI_INT, other, 0, 4, MPI_INT, MPI_NO_OP, window);
  MPI_Win_flush_all(window);
  MPI_Win_flush_local_all(window);
  MPI_Rput(data, 1, MPI_INT, other, 16, 1, MPI_INT, window, &requests[0]);
  MPI_Rget(into, 2, MPI_INT, other, 20, 2, MPI_INT, window, &requests[1]);
  MPI_Raccumulate(data, 3, MPI_INT, other, 24, 3, MPI_INT, MPI_SUM, window, &requests[2]);
  MPI_Rget_accumulate(data, 4, MPI_INT, into + 8, 4, MPI_INT, other, 28, 4, MPI_INT, MPI_SUM, window, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  MPI_Win_sync(window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(WORLD);
}

int main(int argc, char** argv) {
  MPI_Comm comms[4];
  MPI_Win window;
  void* base;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  other = 1 - rank;
  for (int i = 0; i < 64; ++i) data[i] = i;
  for (int i = 0; i < 4; ++i) MPI_Comm_dup(WORLD, &comms[i]);

  MPI_Win_create(room, sizeof room, sizeof *room, MPI_INFO_NULL, comms[0], &window);
  MPI_Comm_free(&comms[0]); /* the window keeps it */
  active(window);
  passive(window);
  MPI_Win_free(&window);

  MPI_Win_allocate(sizeof room, sizeof *room, MPI_INFO_NULL, comms[1], &base, &window);
  memset(base, 0, sizeof room);
  active(window);
  MPI_Win_free(&window);

  MPI_Win_allocate_shared(sizeof room, sizeof *room, MPI_INFO_NULL, comms[2], &base, &window);
  memset(base, 0, sizeof room);
  MPI_Barrier(WORLD);
  passive(window);
  MPI_Win_free(&window);

  MPI_Aint here, there;
  MPI_Win_create_dynamic(MPI_INFO_NULL, comms[3], &window);
  MPI_Win_attach(window, room, sizeof room);
  MPI_Get_address(room, &here);
  MPI_Sendrecv(&here, 1, MPI_AINT, other, 0, &there, 1, MPI_AINT, other, 0, WORLD, MPI_STATUS_IGNORE);
  MPI_Win_fence(0, window);
  MPI_Put(data, 7, MPI_INT, other, there, 7, MPI_INT, window);
  MPI_Win_fence(0, window);
  printf("rank %d: %d\n", rank, room[6]);
  MPI_Win_detach(window, room);
  MPI_Win_free(&window);
  for (int i = 1; i < 4; ++i) MPI_Comm_free(&comms[i]);
  MPI_Finalize();
  return 0;
}
