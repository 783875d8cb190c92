/* SPDX-License-Identifier: Apache-2.0
 * MPI-4 sessions, and no MPI_Init. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
#if MPI_VERSION < 4
  return 77;
#else
  MPI_Session session;
  MPI_Group world;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &world);
  MPI_Comm_create_from_group(world, "org.example.sessions", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&world);
  int rank, size, largest = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < 3; ++i) MPI_Allreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, comm);
  printf("%d of %d: %d\n", rank, size, largest);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  return 0;
#endif
}
