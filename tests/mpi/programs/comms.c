/* SPDX-License-Identifier: Apache-2.0
 * Makes communicators on 4 ranks, one case per procedure: `comms CASE [its arguments]`.
 * Each communicator gets a number of MPI_Barrier of its own, by which test_communicators.py knows it again. */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
#define WORLD MPI_COMM_WORLD

static void barriers(int n, MPI_Comm comm) {
  if (comm != MPI_COMM_NULL)
    for (int i = 0; i < n; ++i) MPI_Barrier(comm);
}

static void use_and_free(int n, MPI_Comm comm) {
  barriers(n, comm);
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

static MPI_Group group_of(int n, int const* ranks) {
  MPI_Group all, some;
  MPI_Comm_group(WORLD, &all);
  MPI_Group_incl(all, n, ranks, &some);
  MPI_Group_free(&all);
  return some;
}

static void split(void) {
  MPI_Comm comm;
  MPI_Comm_split(WORLD, rank % 2, -rank, &comm); /* the last rank leads */
  use_and_free(1, comm);
  MPI_Comm_split(WORLD, rank == 3 ? MPI_UNDEFINED : 7, 0, &comm);
  use_and_free(2, comm);
  MPI_Comm_split(WORLD, rank, 0, &comm);
  use_and_free(3, comm);
  MPI_Comm_split(WORLD, 0, 0, &comm);
  barriers(4, comm); /* never freed */
}

static void split_type(void) {
  MPI_Comm comm;
  MPI_Comm_split_type(WORLD, rank == 0 ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  use_and_free(1, comm);
  MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &comm);
  use_and_free(2, comm);
}

static void create(void) {
  MPI_Comm comm;
  MPI_Group some = group_of(2, (int[]){3, 1});
  MPI_Comm_create(WORLD, some, &comm);
  use_and_free(1, comm);
  MPI_Group_free(&some);
  some = group_of(3, (int[]){0, 1, 2});
  MPI_Comm_create(WORLD, some, &comm); /* the same n on rank 3, which got nothing */
  use_and_free(2, comm);
  MPI_Group_free(&some);
  MPI_Comm_create(WORLD, MPI_GROUP_EMPTY, &comm); /* nobody gets one, all count it */
  use_and_free(3, comm);
  some = group_of(4, (int[]){2, 0, 3, 1});
  MPI_Comm_create(WORLD, some, &comm);
  use_and_free(4, comm);
  MPI_Group_free(&some);
}

static void create_group(void) {
  struct {
    int n, ranks[3], tag;
  } const made[] = {{3, {0, 1, 2}, 5}, {3, {1, 2, 3}, 6}, {3, {0, 1, 2}, 5},
                    {2, {0, 3}, 5},    {2, {3, 0}, 5},    {3, {0, 1, 2}, 9}};
  for (int i = 0; i < 6; ++i) {
    int member = 0;
    for (int k = 0; k < made[i].n; ++k) member |= made[i].ranks[k] == rank;
    if (!member) continue;
    MPI_Group some = group_of(made[i].n, made[i].ranks);
    MPI_Comm comm;
    MPI_Comm_create_group(WORLD, some, made[i].tag, &comm);
    use_and_free(i + 1, comm);
    MPI_Group_free(&some);
  }
}

static void duplicate(void) {
  MPI_Comm comm, again;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_dup(comm, &again);
  barriers(1, comm);
  MPI_Comm_free(&comm);
  use_and_free(2, again); /* outlives its parent */
  MPI_Comm_dup_with_info(WORLD, MPI_INFO_NULL, &comm);
  use_and_free(3, comm);
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  use_and_free(4, self);
}

static void idup(void) {
  MPI_Comm comms[3];
  MPI_Request requests[3];
  MPI_Comm_idup(WORLD, &comms[0], &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  use_and_free(1, comms[0]);
  MPI_Comm_idup(WORLD, &comms[0], &requests[0]);
  for (int done = 0; !done;) MPI_Test(&requests[0], &done, MPI_STATUS_IGNORE);
  use_and_free(2, comms[0]);
  for (int i = 0; i < 3; ++i) MPI_Comm_idup(WORLD, &comms[i], &requests[i]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3; ++i) use_and_free(3 + i, comms[i]);
  for (int i = 0; i < 2; ++i) MPI_Comm_idup(WORLD, &comms[i], &requests[i]);
  for (int i = 0, which; i < 2; ++i) MPI_Waitany(2, requests, &which, MPI_STATUS_IGNORE);
  for (int i = 0; i < 2; ++i) use_and_free(6 + i, comms[i]);
}

/* Other creations between the start of one and its end, which is not in the same order everywhere. */
static void idup_late(void) {
  MPI_Comm late, dup_between, both[2];
  MPI_Request request, requests[2];
  MPI_Comm_idup(WORLD, &late, &request);
  MPI_Comm_dup(WORLD, &dup_between);
  use_and_free(1, dup_between);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use_and_free(2, late);
  for (int i = 0; i < 2; ++i) MPI_Comm_idup(WORLD, &both[i], &requests[i]);
  int const first = rank % 2;
  MPI_Wait(&requests[first], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[1 - first], MPI_STATUS_IGNORE);
  use_and_free(3, both[0]);
  use_and_free(4, both[1]);
}

/* The call that completes it, of all there are. */
static void idup_ways(void) {
  MPI_Comm made[5];
  MPI_Request requests[5];
  int n = 0, which[5], done = 0;
  for (int i = 0; i < 5; ++i) MPI_Comm_idup(WORLD, &made[i], &requests[i]);
  while (!done) MPI_Testall(1, &requests[0], &done, MPI_STATUSES_IGNORE);
  for (done = 0; !done;) MPI_Testany(1, &requests[1], &n, &done, MPI_STATUS_IGNORE);
  MPI_Waitsome(1, &requests[2], &n, which, MPI_STATUSES_IGNORE);
  for (n = 0; n == 0;) MPI_Testsome(1, &requests[3], &n, which, MPI_STATUSES_IGNORE);
  for (done = 0; !done;) MPI_Request_get_status(requests[4], &done, MPI_STATUS_IGNORE);
  use_and_free(5, made[4]); /* it is complete, though the request is not freed */
  MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
  for (int i = 0; i < 4; ++i) use_and_free(1 + i, made[i]);
}

static void idup_with_info(void) {
#if MPI_VERSION >= 4
  MPI_Comm comm;
  MPI_Request request;
  MPI_Comm_idup_with_info(WORLD, MPI_INFO_NULL, &comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  use_and_free(1, comm);
#endif
}

static void cart(void) {
  MPI_Comm grid, part;
  MPI_Cart_create(WORLD, 2, (int[]){2, 2}, (int[]){1, 0}, 0, &grid);
  barriers(1, grid);
  MPI_Cart_sub(grid, (int[]){0, 1}, &part);
  use_and_free(2, part);
  MPI_Cart_sub(grid, (int[]){1, 0}, &part);
  use_and_free(3, part);
  MPI_Comm_free(&grid);
  MPI_Cart_create(WORLD, 1, (int[]){3}, (int[]){1}, 0, &grid); /* one rank too many */
  use_and_free(4, grid);
  MPI_Cart_create(WORLD, 3, (int[]){4, 1, 1}, (int[]){0, 1, 1}, 0, &grid);
  use_and_free(5, grid);
}

static void graph(void) {
  MPI_Comm comm;
  MPI_Graph_create(WORLD, 3, (int[]){1, 3, 4}, (int[]){1, 0, 2, 1}, 0, &comm);
  use_and_free(1, comm);
  int const right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Dist_graph_create(WORLD, 1, &rank, (int[]){1}, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  use_and_free(2, comm);
  MPI_Dist_graph_create_adjacent(WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  use_and_free(3, comm);
}

static void inter(void) {
  MPI_Comm half, between, merged, low;
  MPI_Comm_split(WORLD, rank / 2, rank, &half);
  barriers(1, half);
  /* leaders 0 and 3: of the second group not its rank 0 */
  MPI_Intercomm_create(half, rank / 2, WORLD, rank / 2 ? 0 : 3, 11, &between);
  barriers(2, between);
  MPI_Intercomm_merge(between, rank / 2 == 0, &merged); /* the second half comes first */
  barriers(3, merged);
  MPI_Comm_dup(between, &low);
  use_and_free(4, low);
  MPI_Comm_free(&merged);
  MPI_Comm_split(between, rank % 2, 0, &low); /* {0} with {2}, {1} with {3} */
  use_and_free(5, low);
  MPI_Comm_free(&between);
  MPI_Intercomm_create(half, 0, WORLD, rank / 2 ? 0 : 2, 11, &between); /* the same tag again */
  use_and_free(6, between);
  MPI_Comm_free(&half);
}

static void name(void) {
  MPI_Comm comm;
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "first");
  MPI_Comm_set_name(comm, "it's \"the\" solver\xc3\xa9");
  barriers(1, comm);
  MPI_Comm_dup(WORLD, &comm);
  if (rank == 2) MPI_Comm_set_name(comm, "only rank 2 says so");
  barriers(2, comm);
  MPI_Comm_disconnect(&comm);
}

static void many(int n) {
  for (int i = 0; i < n; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(WORLD, &comm);
    use_and_free(1, comm);
  }
}

static __attribute__((noinline)) void one_more(MPI_Comm parent, MPI_Comm* comm) {
  MPI_Comm_dup(parent, comm);
  __asm__ volatile(""); /* no tail call: the call site stays in here */
}

static void families(void) {
  MPI_Comm comm, child;
  for (int i = 0; i < 3; ++i) {
    one_more(WORLD, &comm);
    one_more(comm, &child); /* same line, other parent: a family of its own, all three of them */
    use_and_free(1, comm);
    use_and_free(2, child);
  }
  MPI_Comm_dup(WORLD, &comm);
  use_and_free(3, comm);
  MPI_Comm_split(WORLD, rank % 2, 0, &comm); /* both halves are one family */
  use_and_free(4, comm);
}

/* Two communicators that both have their leaders in the parents' world: the children must tell them apart. */
static void split_merged(MPI_Comm merged) {
  int mine;
  MPI_Comm part;
  MPI_Comm_rank(merged, &mine);
  MPI_Comm_split(merged, mine % 2, mine, &part);
  use_and_free(mine % 2 ? 5 : 4, part);
}

/* A spawned program is another world: it writes a profile of its own. */
static void child_main(MPI_Comm parent) {
  barriers(1, parent);
  barriers(2, WORLD);
  MPI_Comm merged;
  MPI_Intercomm_merge(parent, 1, &merged);
  barriers(3, merged);
  split_merged(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&parent);
}

static void parent_main(MPI_Comm child) {
  barriers(1, child);
  MPI_Comm merged;
  MPI_Intercomm_merge(child, 0, &merged);
  barriers(3, merged);
  split_merged(merged);
  MPI_Comm_free(&merged);
  MPI_Comm_disconnect(&child);
}

static void spawn(char* runner, char* self, int multiple) {
  MPI_Comm child;
  char* arguments[] = {self, "child", NULL};
  if (!multiple) {
    MPI_Comm_spawn(runner, arguments, 2, MPI_INFO_NULL, 0, WORLD, &child, MPI_ERRCODES_IGNORE);
  } else {
    char* commands[] = {runner, runner};
    char** lists[] = {arguments, arguments};
    MPI_Comm_spawn_multiple(2, commands, lists, (int[]){1, 1}, (MPI_Info[]){MPI_INFO_NULL, MPI_INFO_NULL}, 0, WORLD,
                            &child, MPI_ERRCODES_IGNORE);
  }
  parent_main(child);
}

static void port(void) {
  MPI_Comm half, between;
  char address[MPI_MAX_PORT_NAME] = "";
  MPI_Comm_split(WORLD, rank / 2, rank, &half);
  if (rank == 0) MPI_Open_port(MPI_INFO_NULL, address);
  MPI_Bcast(address, MPI_MAX_PORT_NAME, MPI_CHAR, 0, WORLD);
  if (rank / 2 == 0)
    MPI_Comm_accept(address, MPI_INFO_NULL, 0, half, &between);
  else
    MPI_Comm_connect(address, MPI_INFO_NULL, 0, half, &between);
  barriers(1, between);
  MPI_Comm_disconnect(&between);
  if (rank == 0) MPI_Close_port(address);
  barriers(2, WORLD);
}

/* Ports by name; the name server may not be there, which is an answer too. */
static void published(void) {
  char port[MPI_MAX_PORT_NAME] = "", found[MPI_MAX_PORT_NAME] = "";
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  int const open = rank == 0 ? MPI_Open_port(MPI_INFO_NULL, port) : MPI_SUCCESS;
  int published = MPI_SUCCESS, looked_up = MPI_SUCCESS, gone = MPI_SUCCESS;
  if (rank == 0) published = MPI_Publish_name("commlens", MPI_INFO_NULL, port[0] ? port : "nowhere");
  MPI_Barrier(WORLD);
  if (rank != 0) looked_up = MPI_Lookup_name("commlens", MPI_INFO_NULL, found);
  MPI_Barrier(WORLD);
  if (rank == 0) gone = MPI_Unpublish_name("commlens", MPI_INFO_NULL, port[0] ? port : "nowhere");
  if (rank == 0 && open == MPI_SUCCESS) MPI_Close_port(port); /* MPICH dies of a port that is none */
  printf("rank %d: %d %d %d %d\n", rank, open == 0, published == 0, looked_up == 0, gone == 0);
  fflush(stdout);
  MPI_Barrier(WORLD);
}

static void join(void) {
  if (rank < 2) {
    int ends = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (rank == 0) {
      int const listener = socket(AF_INET, SOCK_STREAM, 0);
      if (bind(listener, (struct sockaddr*)&address, length) || listen(listener, 1)) abort();
      getsockname(listener, (struct sockaddr*)&address, &length);
      MPI_Send(&address, sizeof address, MPI_BYTE, 1, 0, WORLD);
      ends = accept(listener, NULL, NULL);
      close(listener);
    } else {
      MPI_Recv(&address, sizeof address, MPI_BYTE, 0, 0, WORLD, MPI_STATUS_IGNORE);
      ends = socket(AF_INET, SOCK_STREAM, 0);
      if (connect(ends, (struct sockaddr*)&address, length)) abort();
    }
    MPI_Comm between;
    MPI_Comm_join(ends, &between);
    barriers(1, between);
    MPI_Comm_disconnect(&between);
    close(ends);
  }
  barriers(2, WORLD);
}

static void from_group(void) {
#if MPI_VERSION >= 4
  MPI_Group some = group_of(3, (int[]){2, 0, 1});
  if (rank < 3) {
    for (int i = 0; i < 2; ++i) {
      MPI_Comm comm;
      MPI_Comm_create_from_group(some, "org.example.here", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
      use_and_free(1 + i, comm);
    }
    MPI_Comm comm;
    MPI_Comm_create_from_group(some, "org.example.there", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    use_and_free(3, comm);
  }
  MPI_Group_free(&some);
#endif
}

static void inter_from_groups(void) {
#if MPI_VERSION >= 4
  MPI_Group low = group_of(2, (int[]){0, 1}), high = group_of(2, (int[]){3, 2});
  MPI_Comm comm;
  MPI_Intercomm_create_from_groups(rank < 2 ? low : high, 0, rank < 2 ? high : low, 0, "org.example.both",
                                   MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  use_and_free(1, comm);
  MPI_Group_free(&low);
  MPI_Group_free(&high);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &size);
  char const* const what = argc > 1 ? argv[1] : "";
  struct {
    char const* name;
    void (*run)(void);
  } const cases[] = {{"split", split},
                     {"split_type", split_type},
                     {"create", create},
                     {"create_group", create_group},
                     {"dup", duplicate},
                     {"idup", idup},
                     {"idup_late", idup_late},
                     {"idup_ways", idup_ways},
                     {"idup_with_info", idup_with_info},
                     {"cart", cart},
                     {"graph", graph},
                     {"inter", inter},
                     {"name", name},
                     {"families", families},
                     {"port", port},
                     {"join", join},
                     {"published", published},
                     {"from_group", from_group},
                     {"inter_from_groups", inter_from_groups}};
  MPI_Comm parent;
  if (strcmp(what, "child") == 0) {
    MPI_Comm_get_parent(&parent);
    child_main(parent);
  } else if (strcmp(what, "many") == 0) {
    many(atoi(argv[2]));
  } else if (strcmp(what, "spawn") == 0 || strcmp(what, "spawn_multiple") == 0) {
    spawn(argv[2], argv[0], strcmp(what, "spawn") != 0);
  } else {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
      if (strcmp(what, cases[i].name) == 0) cases[i].run();
  }
  if (strcmp(what, "child") != 0) MPI_Barrier(WORLD);
  if (rank == 0) printf("%s done\n", what);
  MPI_Finalize();
  return 0;
}
