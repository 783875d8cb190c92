// SPDX-License-Identifier: Apache-2.0
// Non-blocking and persistent collectives for which some ranks wait a known time, and a trace of them: rank 0 prints
// for each procedure that completes them the time of all ranks in it, the waiting in it, and for how long others waited
// for each rank, all in ns.
//
// Usage: late_operations CASE STEPS MICROSECONDS
//
// A call that completes an operation waits until the last member has started it; of a broadcast, until the root has; at
// the root of a reduction, until the others have; of a prefix sum, until those of lower rank have;
// of a neighbourhood collective, until the neighbours have.  Of several
// operations, the longest wait counts. The processes must be on one machine, so that they have one CLOCK_MONOTONIC_RAW.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_at_once = 4, doubles = 8, most_ranks = 64 };
enum waits { LAST, ROOT, OTHERS, LOWER, NEIGHBORS };
enum procedure { WAIT, WAITALL, FENCE, SCAN, ALLGATHER, procedures };
static const char* const names[] = {"Wait", "Waitall", "Win_fence", "Scan", "Neighbor_allgather"};

struct call {
  double entered, left;
  int procedure;
};
struct operation {
  double started;
  int waits, root, call;
};

static struct call* calls;
static struct operation* operations;
static int number_of_calls, number_of_operations;

static int rank, size, step, steps;
static double microseconds;
static MPI_Comm comm, line;
static MPI_Win window;
static double out[most_at_once][doubles * most_ranks], in[most_at_once][doubles * most_ranks];

static MPI_Request requests[most_at_once];
static int of_request[most_at_once];  // number of the operation
static int started;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Spends this many times the delay, without a processor, so that ranks that share one do not disturb each other.
static void spend(double times) {
  const long ns = (long)(times * microseconds * 1000);
  const struct timespec t = {ns / 1000000000, ns % 1000000000};
  if (ns > 0) nanosleep(&t, NULL);
}

// Notes an operation that is about to start, and returns where its request belongs.
static MPI_Request* start(enum waits waits, int root) {
  of_request[started] = number_of_operations;
  operations[number_of_operations++] = (struct operation){now(), waits, root, -1};
  return &requests[started++];
}

static void iallreduce(void) {
  const int i = started;
  MPI_Iallreduce(out[i], in[i], doubles, MPI_DOUBLE, MPI_SUM, comm, start(LAST, 0));
}

static void complete(enum procedure procedure, int first, int count) {
  struct call* const call = &calls[number_of_calls];
  call->procedure = procedure;
  call->entered = now();
  if (procedure == WAIT)
    MPI_Wait(&requests[first], MPI_STATUS_IGNORE);
  else
    MPI_Waitall(count, requests + first, MPI_STATUSES_IGNORE);
  call->left = now();
  for (int i = first; i < first + count; ++i) operations[of_request[i]].call = number_of_calls;
  ++number_of_calls;
}

static void complete_all(enum procedure procedure) {
  complete(procedure, 0, started);
  started = 0;
}

// The cases: each function is one step.

static void allreduce(void) {
  if (rank == 1) spend(1);
  iallreduce();
  complete_all(WAIT);
}

// Each rank is late in its turn.
static void rotating(void) {
  if (rank == step % size) spend(1);
  const int i = started;
  MPI_Ialltoall(out[i], doubles, MPI_DOUBLE, in[i], doubles, MPI_DOUBLE, comm, start(LAST, 0));
  complete_all(WAIT);
}

static void barrier(void) {
  spend(rank);
  MPI_Ibarrier(comm, start(LAST, 0));
  complete_all(WAIT);
}

// All compute for longer than the others are late: nobody waits.
static void overlap(void) {
  if (rank == 1) spend(0.5);
  iallreduce();
  spend(rank == 1 ? 1 : 2);
  complete_all(WAIT);
}

static void bcast(void) {
  if (rank == 0) spend(1);
  const int i = started;
  MPI_Ibcast(in[i], doubles, MPI_DOUBLE, 0, comm, start(ROOT, 0));
  complete_all(WAIT);
}

static void reduce(void) {
  if (rank != 0) spend(rank);
  const int i = started;
  MPI_Ireduce(out[i], in[i], doubles, MPI_DOUBLE, MPI_SUM, 0, comm, start(OTHERS, 0));
  complete_all(WAIT);
}

// The second is completed first, and both are of one kind.
static void reversed(void) {
  iallreduce();
  if (rank == 1) spend(1);
  iallreduce();
  complete(WAIT, 1, 1);
  complete(WAIT, 0, 1);
  started = 0;
}

static void waitall(void) {
  if (rank == 0) spend(0.5);
  iallreduce();
  if (rank == 1) spend(1);
  const int i = started;
  MPI_Ibcast(in[i], doubles, MPI_DOUBLE, 1, comm, start(ROOT, 1));
  complete_all(WAITALL);
}

// Two persistent requests of one kind, which the ranks start in different order.
static void persistent(void) {
#if MPI_VERSION >= 4
  for (int i = 0; i < 2 && step == 0; ++i)
    MPI_Allreduce_init(out[i], in[i], doubles, MPI_DOUBLE, MPI_SUM, comm, MPI_INFO_NULL, &requests[i]);
  if (rank == 1) spend(1);
  const int first = number_of_operations;
  for (int i = 0; i < 2; ++i) {
    const int which = rank == 0 ? 1 - i : i;
    of_request[which] = first + which;
    operations[first + which] = (struct operation){now(), LAST, 0, -1};
    MPI_Start(&requests[which]);
  }
  number_of_operations += 2;
  started = 2;
  complete_all(WAITALL);
  for (int i = 0; i < 2 && step == steps - 1; ++i) MPI_Request_free(&requests[i]);
#endif
}

// A blocking call, which starts and completes its operation.
static void enter(enum procedure procedure, enum waits waits) {
  const double since = now();
  calls[number_of_calls] = (struct call){since, since, procedure};
  operations[number_of_operations++] = (struct operation){since, waits, 0, number_of_calls};
}

static void leave(void) { calls[number_of_calls++].left = now(); }

static void scan(void) {
  if (rank == step % size) spend(1);
  enter(SCAN, LOWER);
  MPI_Scan(out[0], in[0], doubles, MPI_DOUBLE, MPI_SUM, comm);
  leave();
}

static void iscan(void) {
  if (rank == 0) spend(1);
  const int i = started;
  MPI_Iscan(out[i], in[i], doubles, MPI_DOUBLE, MPI_SUM, comm, start(LOWER, 0));
  complete_all(WAIT);
}

// The ranks are a line, of which the second one is late.
static void neighbor(void) {
  if (rank == 1) spend(1);
  enter(ALLGATHER, NEIGHBORS);
  MPI_Neighbor_allgather(out[0], doubles, MPI_DOUBLE, in[0], doubles, MPI_DOUBLE, line);
  leave();
}

static void ineighbor(void) {
  if (rank == 1) spend(1);
  const int i = started;
  MPI_Ineighbor_alltoall(out[i], doubles, MPI_DOUBLE, in[i], doubles, MPI_DOUBLE, line, start(NEIGHBORS, 0));
  complete_all(WAIT);
}

static void fence(void) {
  if (rank == 1) spend(1);
  enter(FENCE, LAST);
  MPI_Win_fence(0, window);
  leave();
  if (step < steps) MPI_Put(out[0], 1, MPI_DOUBLE, (rank + 1) % size, 0, 1, MPI_DOUBLE, window);
}

static const struct {
  const char* name;
  void (*step)(void);
} cases[] = {{"allreduce", allreduce}, {"rotating", rotating},     {"barrier", barrier},   {"overlap", overlap},
             {"bcast", bcast},         {"reduce", reduce},         {"reversed", reversed}, {"waitall", waitall},
             {"fence", fence},         {"persistent", persistent}, {"scan", scan},         {"iscan", iscan},
             {"neighbor", neighbor},   {"ineighbor", ineighbor}};

static double at_least_0(double ns) { return ns > 0 ? ns : 0; }

// Returns when the member started for which this rank waited in an operation; late: that member.
static double awaited_start(const struct operation* operation, const double* starts, int* late) {
  *late = rank;
  if (operation->waits == OTHERS && rank != operation->root) return 0;
  double last = 0;
  for (int r = 0; r < size; ++r) {
    if (operation->waits == ROOT && r != operation->root) continue;
    if (operation->waits == OTHERS && r == operation->root) continue;
    if (operation->waits == LOWER && r >= rank) break;
    if (operation->waits == NEIGHBORS && abs(r - rank) != 1) continue;
    if (starts[r] > last) {
      last = starts[r];
      *late = r;
    }
  }
  return last;
}

// Prints the trace on rank 0.
static void print_trace(void) {
  double* const waiting = calloc((size_t)number_of_calls + 1, sizeof(double));
  int* const late_in = calloc((size_t)number_of_calls + 1, sizeof(int));
  double starts[most_ranks];
  for (int n = 0; n < number_of_operations; ++n) {
    const struct operation* const operation = &operations[n];
    const struct call* const call = &calls[operation->call];
    int late;
    MPI_Allgather(&operation->started, 1, MPI_DOUBLE, starts, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    const double until = at_least_0(awaited_start(operation, starts, &late) - call->entered);
    const double spent = call->left - call->entered, waited = until < spent ? until : spent;
    if (waited <= waiting[operation->call] || late == rank) continue;
    waiting[operation->call] = waited;
    late_in[operation->call] = late;
  }
  double sums[procedures][2 + most_ranks], all[procedures][2 + most_ranks];
  memset(sums, 0, sizeof sums);
  for (int c = 0; c < number_of_calls; ++c) {
    double* const sum = sums[calls[c].procedure];
    sum[0] += calls[c].left - calls[c].entered;
    sum[1] += waiting[c];
    if (waiting[c] > 0) sum[2 + late_in[c]] += waiting[c];
  }
  MPI_Reduce(sums, all, procedures * (2 + most_ranks), MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int p = 0; p < procedures && rank == 0; ++p) {
    if (all[p][0] <= 0) continue;
    printf("%s", names[p]);
    for (int i = 0; i < 2 + size; ++i) printf(" %.0f", all[p][i]);
    printf("\n");
  }
  free(waiting);
  free(late_in);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc < 4) return 2;
  steps = atoi(argv[2]);
  microseconds = atof(argv[3]);
  calls = calloc(2 * (size_t)steps + 2, sizeof *calls);
  operations = calloc(2 * (size_t)steps + 2, sizeof *operations);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int periodic = 0;
  MPI_Comm grid;
  MPI_Cart_create(comm, 1, &size, &periodic, 0, &grid);
  MPI_Comm_dup(grid, &line);
  MPI_Comm_free(&grid);
  MPI_Win_create(in[0], sizeof in[0], sizeof(double), MPI_INFO_NULL, comm, &window);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; ++c) {
    if (strcmp(argv[1], cases[c].name) != 0) continue;
    MPI_Barrier(MPI_COMM_WORLD);
    for (step = 0; step < steps; ++step) cases[c].step();
    if (cases[c].step == fence) fence();  // ends the last epoch
  }
  print_trace();
  MPI_Win_free(&window);
  MPI_Comm_free(&line);
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
