// SPDX-License-Identifier: Apache-2.0
// A copy function of an attribute creates a communicator inside MPI_Comm_dup. The argument says how: "" by
// MPI_Comm_create on all ranks; "part" by MPI_Comm_create on a communicator of all but the last rank; "merge" by
// MPI_Intercomm_merge of rank 0 and the others but the last. Ranks that create none inside have MPI_COMM_NULL.
#include <mpi.h>
#include <string.h>

static MPI_Comm inner = MPI_COMM_NULL, part = MPI_COMM_NULL, halves = MPI_COMM_NULL;
static const char* how = "";

static int copy(MPI_Comm from, int keyval, void* extra, void* value, void* copied, int* flag) {
  MPI_Group group, most;
  int last;
  (void)keyval, (void)extra, (void)value, (void)copied;
  *flag = 0;
  MPI_Comm_size(from, &last);
  --last;
  MPI_Comm_group(from, &group);
  MPI_Group_excl(group, 1, &last, &most);
  if (strcmp(how, "part") == 0) {
    if (part != MPI_COMM_NULL) MPI_Comm_create(part, most, &inner);
  } else if (strcmp(how, "merge") == 0) {
    if (halves != MPI_COMM_NULL) MPI_Intercomm_merge(halves, 0, &inner);
  } else {
    MPI_Comm_create(MPI_COMM_WORLD, group, &inner);
  }
  MPI_Group_free(&most);
  MPI_Group_free(&group);
  return MPI_SUCCESS;
}

int main(int argc, char** argv) {
  int keyval, rank, size, from[512] = {0}, to[512];
  MPI_Comm outer;
  MPI_Init(&argc, &argv);
  if (argc > 1) how = argv[1];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split(MPI_COMM_WORLD, rank < size - 1 ? 0 : MPI_UNDEFINED, rank, &part);
  if (part != MPI_COMM_NULL) {
    MPI_Comm half;
    MPI_Comm_split(part, rank == 0, rank, &half);
    MPI_Intercomm_create(half, 0, part, rank == 0 ? 1 : 0, 1, &halves);
  }
  MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
  MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &outer);
  MPI_Comm_set_name(outer, "outer");
  if (inner != MPI_COMM_NULL) MPI_Comm_set_name(inner, "inner");
  const MPI_Comm comms[] = {outer, inner};
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 10 && comms[i] != MPI_COMM_NULL; ++k) MPI_Alltoall(from, 8, MPI_INT, to, 8, MPI_INT, comms[i]);
  }
  MPI_Finalize();
  return 0;
}
