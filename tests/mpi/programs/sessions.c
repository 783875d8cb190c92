/* SPDX-License-Identifier: Apache-2.0
 * MPI-4 sessions, on 2 ranks: `sessions CASE`.  Exit code 77 where MPI has none. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if MPI_VERSION < 4 && OMPI_MAJOR_VERSION < 5
int main(void) { return 77; }
#else

static MPI_Session begin(void) {
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  return session;
}

static MPI_Group group_of(MPI_Session session, char const* set) {
  MPI_Group group;
  MPI_Group_from_session_pset(session, set, &group);
  return group;
}

static MPI_Comm comm_of(MPI_Session session, char const* set, char const* tag) {
  MPI_Comm comm;
  MPI_Group group = group_of(session, set);
  MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  MPI_Group_free(&group);
  return comm;
}

static int reduce(int times, MPI_Comm comm) {
  int rank, largest = -1;
  MPI_Comm_rank(comm, &rank);
  for (int i = 0; i < times; ++i) MPI_Allreduce(&rank, &largest, 1, MPI_INT, MPI_MAX, comm);
  return largest;
}

/* No MPI_Init. */
static void only(void) {
  MPI_Session session = begin();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "org.example.only"), dup;
  int rank, size;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  printf("%d of %d: %d\n", rank, size, reduce(3, comm));
  MPI_Comm_dup(comm, &dup);
  reduce(5, dup);
  MPI_Comm_free(&dup);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
}

/* One within the other, then one that overlaps both, each with communicators of its own.  (MPICH 4.0 cannot begin
 * anew when the last session was over.) */
static void several(void) {
  MPI_Session session = begin(), next;
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "first"), other;
  reduce(1, comm);
  next = begin();
  other = comm_of(next, "mpi://WORLD", "inner");
  reduce(2, other);
  reduce(3, comm); /* the outer one goes on */
  MPI_Comm_free(&other);
  MPI_Session_finalize(&next);
  next = begin();
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  comm = comm_of(next, "mpi://WORLD", "first");
  reduce(7, comm);
  MPI_Comm_free(&comm);
  comm = comm_of(next, "mpi://SELF", "alone");
  reduce(9, comm);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&next);
  puts("several done");
}

/* Groups of the application's making: the other order, and two that meet. */
static void groups(void) {
  MPI_Session session = begin();
  MPI_Group world = group_of(session, "mpi://WORLD"), turned, mine, theirs;
  MPI_Comm comm;
  int rank, other;
  MPI_Group_rank(world, &rank);
  other = 1 - rank;
  MPI_Group_incl(world, 2, (int[]){1, 0}, &turned);
  MPI_Comm_create_from_group(turned, "turned", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  printf("%d: %d\n", rank, reduce(4, comm));
  MPI_Comm_free(&comm);
  MPI_Group_incl(world, 1, &rank, &mine);
  MPI_Group_incl(world, 1, &other, &theirs);
  MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Barrier(comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&turned);
  MPI_Group_free(&mine);
  MPI_Group_free(&theirs);
  MPI_Group_free(&world);
  MPI_Session_finalize(&session);
}

/* Beside the world model: one session within it, one that begins before it and ends after it. */
static void beside(int* argc, char*** argv, int outlives) {
  MPI_Session outer = MPI_SESSION_NULL;
  if (outlives) outer = begin();
  MPI_Init(argc, argv);
  reduce(2, MPI_COMM_WORLD);
  MPI_Session session = begin();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "beside");
  reduce(3, comm);
  reduce(4, MPI_COMM_WORLD);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (outlives) comm = comm_of(outer, "mpi://WORLD", "outer");
  MPI_Finalize();
  if (outlives) {
    reduce(6, comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&outer);
  }
  puts("beside done");
}

/* Rank 0 ends; rank 1 waits until it has, and is killed. */
static void killed(void) {
  MPI_Session session = begin();
  MPI_Comm comm = comm_of(session, "mpi://WORLD", "killed");
  int rank, pids[2], own = getpid();
  MPI_Comm_rank(comm, &rank);
  MPI_Allgather(&own, 1, MPI_INT, pids, 1, MPI_INT, comm);
  reduce(3, comm);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&session);
  if (rank == 0) return;
  char name[64], state = '?';
  snprintf(name, sizeof name, "/proc/%d/stat", pids[0]);
  for (int i = 0; i < 20000 && state != 'Z'; ++i, usleep(1000)) {
    FILE* const file = fopen(name, "r");
    if (file == NULL) break;
    if (fscanf(file, "%*d %*s %c", &state) != 1) state = '?';
    fclose(file);
  }
  raise(SIGKILL);
}

int main(int argc, char** argv) {
  char const* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "only") == 0) only();
  if (strcmp(what, "several") == 0) several();
  if (strcmp(what, "killed") == 0) killed();
  if (strcmp(what, "groups") == 0) groups();
  if (strcmp(what, "beside") == 0) beside(&argc, &argv, 0);
  if (strcmp(what, "outlives") == 0) beside(&argc, &argv, 1);
  if (strcmp(what, "unfinished") == 0) reduce(3, comm_of(begin(), "mpi://WORLD", "unfinished"));
  return 0;
}
#endif
