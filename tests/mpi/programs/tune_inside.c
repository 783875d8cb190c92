// SPDX-License-Identifier: Apache-2.0
// A copy function of an attribute creates a communicator inside MPI_Comm_dup.
#include <mpi.h>

static MPI_Comm inner;

static int copy(MPI_Comm from, int keyval, void* extra, void* value, void* copied, int* flag) {
  MPI_Group group;
  (void)keyval, (void)extra, (void)value, (void)copied;
  MPI_Comm_group(from, &group);
  MPI_Comm_create(MPI_COMM_WORLD, group, &inner);
  MPI_Group_free(&group);
  *flag = 0;
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int keyval, from[512] = {0}, to[512];
  MPI_Comm outer;
  MPI_Init(&argc, &argv);
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &outer);
  MPI_Comm_set_name(outer, "outer");
  MPI_Comm_set_name(inner, "create");
  const MPI_Comm comms[] = {outer, inner};
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 10; ++k) MPI_Alltoall(from, 8, MPI_INT, to, 8, MPI_INT, comms[i]);
  }
  MPI_Finalize();
  return 0;
}
