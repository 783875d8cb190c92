/* SPDX-License-Identifier: Apache-2.0
 * Calls that fail, and what they return: `errors NUMBER...`, 1 rank; the numbers are of calls to leave
 * out.  A profiler may look at no argument that MPI refuses. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int number, left_out[128];

#define TRY(call)                                   \
  do {                                              \
    if (!left_out[number]) {                        \
      int const rc_ = (call);                       \
      int class_ = -1;                              \
      MPI_Error_class(rc_, &class_);                \
      printf("%d %s: %d\n", number, #call, class_); \
      fflush(stdout);                               \
    }                                               \
    ++number;                                       \
  } while (0)

static MPI_Comm world, comm;
static MPI_Request request, requests[2];
static MPI_Win window;
static MPI_File file;
static MPI_Status status, statuses[2];
static int flag, n, data[4], more[4], one[1] = {1}, zero[1] = {0};
static char text[MPI_MAX_OBJECT_NAME];

static void no_room_for_the_answer(void) {
  TRY(MPI_Comm_dup(world, NULL));
  TRY(MPI_Comm_split(world, 0, 0, NULL));
  TRY(MPI_Comm_create(world, MPI_GROUP_EMPTY, NULL));
  TRY(MPI_Comm_free(NULL));
  TRY(MPI_Comm_idup(world, NULL, &request));
  TRY(MPI_Comm_idup(world, &comm, NULL));
  TRY(MPI_Cart_create(world, 1, one, zero, 0, NULL));
  TRY(MPI_Isend(data, 1, MPI_INT, MPI_PROC_NULL, 0, world, NULL));
  TRY(MPI_Irecv(data, 1, MPI_INT, MPI_PROC_NULL, 0, world, NULL));
  TRY(MPI_Send_init(data, 1, MPI_INT, MPI_PROC_NULL, 0, world, NULL));
  TRY(MPI_Ibarrier(world, NULL));
  TRY(MPI_Wait(NULL, &status));
  TRY(MPI_Test(NULL, &flag, &status));
  TRY(MPI_Test(&request, NULL, &status));
  TRY(MPI_Waitall(2, NULL, statuses));
  TRY(MPI_Testall(2, requests, NULL, statuses));
  TRY(MPI_Waitany(2, requests, NULL, &status));
  TRY(MPI_Waitany(2, NULL, &n, &status));
  TRY(MPI_Waitsome(2, requests, NULL, data, statuses));
  TRY(MPI_Waitsome(2, NULL, &n, data, statuses));
  TRY(MPI_Testany(2, requests, &n, NULL, &status));
  TRY(MPI_Request_free(NULL));
  TRY(MPI_Cancel(NULL));
  TRY(MPI_Start(NULL));
  TRY(MPI_Startall(2, NULL));
  TRY(MPI_Mprobe(MPI_PROC_NULL, 0, world, NULL, &status));
  TRY(MPI_Win_free(NULL));
  TRY(MPI_File_close(NULL));
  TRY(MPI_Comm_set_name(world, NULL));
  TRY(MPI_Comm_get_name(world, text, NULL));
  TRY(MPI_Iprobe(MPI_PROC_NULL, 0, world, NULL, &status));
}

static void no_such_object(void) {
  MPI_Comm const no_comm = MPI_COMM_NULL;
  MPI_Message message;
  TRY(MPI_Comm_dup(no_comm, &comm));
  TRY(MPI_Comm_split(no_comm, 0, 0, &comm));
  comm = MPI_COMM_NULL;
  TRY(MPI_Comm_free(&comm));
  TRY(MPI_Send(data, 1, MPI_INT, 0, 0, no_comm));
  TRY(MPI_Allreduce(data, more, 1, MPI_INT, MPI_SUM, no_comm));
  TRY(MPI_Comm_set_name(no_comm, "x"));
  TRY(MPI_Win_free(&window));
  TRY(MPI_Win_fence(0, window));
  TRY(MPI_Put(data, 1, MPI_INT, 0, 0, 1, MPI_INT, window));
  TRY(MPI_File_close(&file));
  TRY(MPI_File_write(file, data, 1, MPI_INT, &status));
  TRY(MPI_File_read_all_end(file, data, &status));
  TRY(MPI_Start(&request));
  TRY(MPI_Request_free(&request));
  TRY(MPI_Cancel(&request));
  message = MPI_MESSAGE_NULL;
  TRY(MPI_Mrecv(data, 1, MPI_INT, &message, &status));
  TRY(MPI_Imrecv(data, 1, MPI_INT, &message, &request));
}

static void wrong_values(void) {
  TRY(MPI_Send(data, -1, MPI_INT, 0, 0, world));
  TRY(MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 0, world));
  TRY(MPI_Send(data, 1, MPI_INT, 7, 0, world));
  TRY(MPI_Isend(data, 1, MPI_INT, 7, 0, world, &request));
  TRY(MPI_Irecv(data, -1, MPI_INT, 0, 0, world, &request));
  TRY(MPI_Bcast(data, 1, MPI_INT, 9, world));
  TRY(MPI_Gather(data, 1, MPI_INT, more, 1, MPI_DATATYPE_NULL, 0, world));
  TRY(MPI_Gatherv(data, 1, MPI_INT, more, NULL, zero, MPI_INT, 0, world));
  TRY(MPI_Scatterv(data, NULL, zero, MPI_INT, more, 1, MPI_INT, 0, world));
  TRY(MPI_Allgatherv(data, 1, MPI_INT, more, NULL, zero, MPI_INT, world));
  TRY(MPI_Alltoallv(data, NULL, zero, MPI_INT, more, one, zero, MPI_INT, world));
  TRY(MPI_Reduce_scatter(data, more, NULL, MPI_INT, MPI_SUM, world));
  TRY(MPI_Allreduce(data, more, 1, MPI_INT, MPI_OP_NULL, world));
  TRY(MPI_Reduce(MPI_IN_PLACE, data, 1, MPI_INT, MPI_SUM, 5, world));
  TRY(MPI_Waitall(-1, requests, statuses));
  TRY(MPI_Waitany(-1, requests, &n, &status));
  TRY(MPI_Waitsome(-1, requests, &n, data, statuses));
  TRY(MPI_Startall(-1, requests));
  TRY(MPI_Cart_create(world, 1, (int[]){64}, zero, 0, &comm));
  TRY(MPI_Cart_create(world, -1, one, zero, 0, &comm));
  TRY(MPI_Cart_sub(world, one, &comm));
  TRY(MPI_Neighbor_allgather(data, 1, MPI_INT, more, 1, MPI_INT, world));
  TRY(MPI_Intercomm_create(world, 3, world, 0, 0, &comm));
  TRY(MPI_Intercomm_merge(world, 0, &comm));
  TRY(MPI_File_open(world, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  TRY(MPI_Win_create(data, -5, 1, MPI_INFO_NULL, world, &window));
  TRY(MPI_Comm_split_type(world, 4711, 0, MPI_INFO_NULL, &comm));
}

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) left_out[atoi(argv[i])] = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  world = comm = MPI_COMM_WORLD;
  request = requests[0] = requests[1] = MPI_REQUEST_NULL;
  window = MPI_WIN_NULL;
  file = MPI_FILE_NULL;
  no_room_for_the_answer();
  no_such_object();
  wrong_values();

  /* and afterwards all is well */
  TRY(MPI_Comm_dup(world, &comm));
  TRY(MPI_Barrier(comm));
  TRY(MPI_Comm_free(&comm));
  printf("%d calls\n", number);
  MPI_Finalize();
  return 0;
}
