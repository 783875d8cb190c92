// SPDX-License-Identifier: Apache-2.0
// Collectives before which some ranks spend a known time, and a trace of them: rank 0 prints for each procedure the
// time of all ranks in it, the waiting in it, how often each rank was certainly the last, and how often it may have
// been, from the times at which all ranks entered and left every call.
// Usage: skew PATTERN CALLS MICROSECONDS OPERATION...
//   PATTERN  late N: rank N is late; rotate: another rank every call; ladder: each rank later than the one below;
//            root: rank 0 is late; others: all but rank 0; none
// The processes must be on one machine, so that they have one CLOCK_MONOTONIC_RAW.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { most_calls = 20000, most_ranks = 64, elements = 64 };
// Of ranks that enter a call this close to each other, a profiler may see another one last: each may lose its processor
// between its own look at the clock and the profiler's.
static const double tied_ns = 1e6;

static double entered[most_calls], left[most_calls];
static double all_entered[most_ranks * most_calls], all_left[most_ranks * most_calls];
static int data[most_ranks * elements], result[most_ranks * elements], counts[most_ranks], places[most_ranks];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// Spends time without a processor, so that ranks that share one do not disturb each other.
static void spend(double microseconds) {
  const long ns = (long)(microseconds * 1000);
  const struct timespec t = {ns / 1000000000, ns % 1000000000};
  if (ns > 0) nanosleep(&t, NULL);
}

static double delay(const char* pattern, int late, int call, int rank, int size) {
  if (strcmp(pattern, "late") == 0) return rank == late;
  if (strcmp(pattern, "rotate") == 0) return rank == call * 7 % size;
  if (strcmp(pattern, "ladder") == 0) return rank;
  if (strcmp(pattern, "root") == 0) return rank == 0;
  if (strcmp(pattern, "others") == 0) return rank != 0;
  return 0;
}

static void collective(const char* name, MPI_Comm comm) {
  const int n = elements;
  if (strcmp(name, "barrier") == 0) MPI_Barrier(comm);
  if (strcmp(name, "bcast") == 0) MPI_Bcast(data, n, MPI_INT, 0, comm);
  if (strcmp(name, "scatter") == 0) MPI_Scatter(data, n, MPI_INT, result, n, MPI_INT, 0, comm);
  if (strcmp(name, "reduce") == 0) MPI_Reduce(data, result, n, MPI_INT, MPI_SUM, 0, comm);
  if (strcmp(name, "gather") == 0) MPI_Gather(data, n, MPI_INT, result, n, MPI_INT, 0, comm);
  if (strcmp(name, "allreduce") == 0) MPI_Allreduce(data, result, n, MPI_INT, MPI_SUM, comm);
  if (strcmp(name, "scan") == 0) MPI_Scan(data, result, n, MPI_INT, MPI_SUM, comm);
  if (strcmp(name, "allgather") == 0) MPI_Allgather(data, n, MPI_INT, result, n, MPI_INT, comm);
  if (strcmp(name, "alltoall") == 0) MPI_Alltoall(data, n, MPI_INT, result, n, MPI_INT, comm);
  if (strcmp(name, "alltoallv") == 0)
    MPI_Alltoallv(data, counts, places, MPI_INT, result, counts, places, MPI_INT, comm);
  if (strcmp(name, "allgatherv") == 0) MPI_Allgatherv(data, n, MPI_INT, result, counts, places, MPI_INT, comm);
  if (strcmp(name, "reduce_scatter") == 0) MPI_Reduce_scatter(data, result, counts, MPI_INT, MPI_SUM, comm);
  if (strcmp(name, "reduce_scatter_block") == 0) MPI_Reduce_scatter_block(data, result, n, MPI_INT, MPI_SUM, comm);
}

static int is_any(const char* name, const char* a, const char* b) {
  return strcmp(name, a) == 0 || strcmp(name, b) == 0;
}

static double positive(double x) { return x > 0 ? x : 0; }

// Returns the waiting of all ranks in a call.
static double waiting(const char* name, int call, int calls, int size) {
  const double* const in = all_entered + call;
  int last = 0, last_other = 1;
  for (int r = 1; r < size; ++r) {
    if (in[r * calls] > in[last * calls]) last = r;
    if (in[r * calls] > in[last_other * calls]) last_other = r;
  }
  double sum = 0;
  if (is_any(name, "bcast", "scatter")) {
    for (int r = 1; r < size; ++r) sum += positive(in[0] - in[r * calls]);
  } else if (is_any(name, "reduce", "gather")) {
    sum = positive(in[last_other * calls] - in[0]);
  } else {
    for (int r = 0; r < size; ++r) sum += positive(in[last * calls] - in[r * calls]);
  }
  return sum;
}

// Counts a call for the ranks that may have been the last to enter it, and for the one that certainly was, if any.
static void count_last(int call, int calls, int size, int* certain, int* possible) {
  const double* const in = all_entered + call;
  double last = in[0];
  for (int r = 1; r < size; ++r)
    if (in[r * calls] > last) last = in[r * calls];
  int candidates = 0, candidate = 0;
  for (int r = 0; r < size; ++r) {
    if (in[r * calls] < last - tied_ns) continue;
    ++possible[r];
    ++candidates;
    candidate = r;
  }
  if (candidates == 1) ++certain[candidate];
}

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int at = 1;
  const char* const pattern = argv[at++];
  const int late = strcmp(pattern, "late") == 0 ? atoi(argv[at++]) : -1;
  const int calls = atoi(argv[at++]);
  const double microseconds = atof(argv[at++]);
  for (int r = 0; r < size; ++r) {
    counts[r] = elements;
    places[r] = r * elements;
  }
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (; at < argc; ++at) {
    for (int i = 0; i < calls; ++i) {
      spend(delay(pattern, late, i, rank, size) * microseconds);
      entered[i] = now();
      collective(argv[at], comm);
      left[i] = now();
    }
    MPI_Gather(entered, calls, MPI_DOUBLE, all_entered, calls, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    MPI_Gather(left, calls, MPI_DOUBLE, all_left, calls, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank != 0) continue;
    double time = 0, wait = 0;
    int certain[most_ranks] = {0}, possible[most_ranks] = {0};
    for (int i = 0; i < calls; ++i) {
      wait += waiting(argv[at], i, calls, size);
      count_last(i, calls, size, certain, possible);
      for (int r = 0; r < size; ++r) time += all_left[r * calls + i] - all_entered[r * calls + i];
    }
    printf("%s %.0f %.0f", argv[at], time, wait);
    for (int r = 0; r < size; ++r) printf(" %d", certain[r]);
    for (int r = 0; r < size; ++r) printf(" %d", possible[r]);
    printf("\n");
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
