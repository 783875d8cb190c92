// SPDX-License-Identifier: Apache-2.0
// The calls of a replay: communicators with an algorithm each, the collectives, and their times.
#pragma once

#include <sched.h>
#include <time.h>

#include "replay_plan.h"

enum { MOST_REPETITIONS = 40, PINGS = 20, LINE = 64, POOL = 16 << 20, LONG_WAIT = 300000 };

// An application that computes for less time than this between two calls makes them back to back.
enum { SHORT_COMPUTING = 1000, SHORT_MESSAGE = 1024 };  // ns; bytes

typedef struct {
  int64_t which, candidate, repetitions, start, window;
} Step;

// The times of a batch, of each repetition. Sums and maxima are those of all processes.
typedef struct {
  int64_t end[MOST_REPETITIONS];        // from the start of the window, or the return before it, to the latest return
  int64_t late[MOST_REPETITIONS];       // whether a process came late
  int64_t operation[MOST_REPETITIONS];  // time without waiting, as commlens waits defines it, mean of the processes
} Times;

static char *from, *to, *pool;
static size_t pool_at;
static int64_t offset;  // of my clock to that of process 0, ns
static int is_one_machine;
static MPI_Comm machine, machines;  // the processes of my machine; the first one of each

static int64_t own_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void) { return own_ns() - offset; }

// ---- the algorithm --------------------------------------------------------------------------------------------------

// Sets an integer variable and returns its former value in `before`; returns whether it was set.
static int set_variable(const char* name, int value, int* before) {
  int index, count, is_set;
  MPI_T_cvar_handle handle;
  if (MPI_T_cvar_get_index(name, &index) != MPI_SUCCESS) return 0;
  if (MPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS) return 0;
  is_set = count == 1 && (!before || MPI_T_cvar_read(handle, before) == MPI_SUCCESS) &&
           MPI_T_cvar_write(handle, &value) == MPI_SUCCESS;
  MPI_T_cvar_handle_free(&handle);
  return is_set;
}

// Returns the name of a variable that cannot be set, or NULL. One whose name begins with ? may be missing.
static const char* choose(Candidate* one) {
  const char* missing = NULL;
  for (int i = 0; i < one->settings; i++) {
    Setting* setting = &one->setting[i];
    int is_optional = setting->variable[0] == '?';
    setting->is_set = set_variable(setting->variable + is_optional, setting->value, &setting->before);
    if (!setting->is_set && !is_optional) missing = setting->variable;
  }
  return missing;
}

static void restore(Candidate* one) {
  for (int i = one->settings - 1; i >= 0; i--) {
    Setting* setting = &one->setting[i];
    int is_optional = setting->variable[0] == '?';
    if (setting->is_set) set_variable(setting->variable + is_optional, setting->before, NULL);
  }
}

static void make_comm(const Case* one, Candidate* candidate) {
  const Layout* mine = &layout[one->layout];
  MPI_Info info = MPI_INFO_NULL;
  const char* missing = choose(candidate);
  if (missing) {
    candidate->is_done = 1;
    if (rank == 0) printf("refused %s\n", missing);
  }
  if (candidate->settings && strcmp(exclude, "-")) {
    MPI_Info_create(&info);
    MPI_Info_set(info, "ompi_comm_coll_preference", exclude);
  }
  if (mine->comm != MPI_COMM_NULL) {
    if (info == MPI_INFO_NULL)
      MPI_Comm_dup(mine->comm, &candidate->comm);
    else
      MPI_Comm_dup_with_info(mine->comm, info, &candidate->comm);
  }
  if (info != MPI_INFO_NULL) MPI_Info_free(&info);
  restore(candidate);
}

// ---- the memory -----------------------------------------------------------------------------------------------------

// only: the candidate that this job measures; -1: all
static void prepare(int only) {
  int64_t most = 1, computing = 0;
  for (int i = 0; i < cases; i++) {
    const Case* one = &list[i];
    int64_t larger = one->in > one->out ? one->in : one->out;
    most = larger > most ? larger : most;
    computing = one->computing > computing ? one->computing : computing;
    for (int k = 0; k < one->candidates; k++)
      if (only < 0 || k == only) make_comm(one, &list[i].candidate[k]);
  }
  from = take((size_t)most + 8), to = take((size_t)most + 8);
  if (computing) pool = take(POOL);
}

// Uses the memory as an application does between two calls: reads what it has received, works on other data as long as
// it computes, and writes what it will send. Otherwise the caches would contain all that a call needs.
static void use_memory(const Case* one) {
  int64_t until = own_ns() + one->computing;
  volatile char* received = to;
  for (int64_t i = 0; i < one->in; i += LINE) (void)received[i];
  while (one->computing && own_ns() < until)
    for (int i = 0; i < 64; i++) pool[pool_at]++, pool_at = (pool_at + LINE) % POOL;
  for (int64_t i = 0; i < one->out; i += LINE) from[i]++;
}

// ---- the collectives ------------------------------------------------------------------------------------------------

static void call_equal(const Case* one, MPI_Comm comm) {
  const char* name = one->collective;
  int bytes = (int)one->bytes, is_double = bytes % 8 == 0, count = is_double ? bytes / 8 : bytes;
  MPI_Datatype type = is_double ? MPI_DOUBLE : MPI_BYTE;
  MPI_Op op = is_double ? MPI_SUM : MPI_BOR;
  if (!strcmp(name, "barrier")) MPI_Barrier(comm);
  if (!strcmp(name, "bcast")) MPI_Bcast(layout[one->layout].position == 0 ? from : to, bytes, MPI_BYTE, 0, comm);
  if (!strcmp(name, "gather")) MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, comm);
  if (!strcmp(name, "scatter")) MPI_Scatter(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, comm);
  if (!strcmp(name, "allgather")) MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
  if (!strcmp(name, "alltoall")) MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm);
  if (!strcmp(name, "reduce")) MPI_Reduce(from, to, count, type, op, 0, comm);
  if (!strcmp(name, "allreduce")) MPI_Allreduce(from, to, count, type, op, comm);
  if (!strcmp(name, "scan")) MPI_Scan(from, to, count, type, op, comm);
  if (!strcmp(name, "exscan")) MPI_Exscan(from, to, count, type, op, comm);
  if (!strcmp(name, "reduce_scatter_block")) MPI_Reduce_scatter_block(from, to, count, type, op, comm);
}

static void call_blocks(const Case* one, MPI_Comm comm, MPI_Datatype* types) {
  const char* name = one->collective;
  int mine = layout[one->layout].position;
  const int *sent = one->sent, *received = one->received, *at_sent = one->at_sent, *at = one->at_received;
  if (!strcmp(name, "alltoallv")) MPI_Alltoallv(from, sent, at_sent, MPI_BYTE, to, received, at, MPI_BYTE, comm);
  if (!strcmp(name, "alltoallw")) MPI_Alltoallw(from, sent, at_sent, types, to, received, at, types, comm);
  if (!strcmp(name, "allgatherv")) MPI_Allgatherv(from, received[mine], MPI_BYTE, to, received, at, MPI_BYTE, comm);
  if (!strcmp(name, "gatherv")) MPI_Gatherv(from, sent[0], MPI_BYTE, to, received, at, MPI_BYTE, 0, comm);
  if (!strcmp(name, "scatterv")) MPI_Scatterv(from, sent, at_sent, MPI_BYTE, to, received[0], MPI_BYTE, 0, comm);
  if (!strcmp(name, "reduce_scatter")) MPI_Reduce_scatter(from, to, received, MPI_BYTE, MPI_BOR, comm);
}

// ---- the windows ----------------------------------------------------------------------------------------------------

// Estimates the offset of the clock of each machine to that of process 0: half way of the fastest of some round trips
// to a machine that knows its own already. These are a tree, so that no process has more of them than the tree has
// levels.
static void relate_clocks(void) {
  int me, n, above;
  if (is_one_machine) return;
  if (machines != MPI_COMM_NULL) {
    MPI_Comm_rank(machines, &me);
    MPI_Comm_size(machines, &n);
    int64_t best = INT64_MAX, theirs;
    for (int i = 0; me && i < PINGS; i++) {
      int64_t begin = own_ns();
      MPI_Send(&begin, 1, MPI_INT64_T, me & (me - 1), 1, machines);
      MPI_Recv(&theirs, 1, MPI_INT64_T, me & (me - 1), 1, machines, MPI_STATUS_IGNORE);
      int64_t end = own_ns();
      if (end - begin < best) best = end - begin, offset = begin + (end - begin) / 2 - theirs;
    }
    for (above = 1; above < n && !(me & above);) above *= 2;
    while (above /= 2)
      for (int i = 0; me + above < n && i < PINGS; i++) {
        MPI_Recv(&theirs, 1, MPI_INT64_T, me + above, 1, machines, MPI_STATUS_IGNORE);
        theirs = now_ns();
        MPI_Send(&theirs, 1, MPI_INT64_T, me + above, 1, machines);
      }
  }
  MPI_Bcast(&offset, 1, MPI_INT64_T, 0, machine);
}

static void find_machines(void) {
  int place, near;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_rank(machine, &place);
  MPI_Comm_size(machine, &near);
  MPI_Comm_split(MPI_COMM_WORLD, place == 0 ? 0 : MPI_UNDEFINED, 0, &machines);
  MPI_Allreduce(&near, &is_one_machine, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  is_one_machine = is_one_machine == processes;
}

// Waits until a time; returns whether it had passed, or is left late because another process had the processor. It
// sleeps through a long wait: the kernel gives a processor sooner to a process that has slept.
static int wait_until(int64_t start, int64_t window) {
  int64_t now = now_ns();
  int is_late = now > start;
  if (start - now > LONG_WAIT) {
    struct timespec most = {0, (long)(start - now - LONG_WAIT / 2)};
    nanosleep(&most, NULL);
    now = now_ns();
  }
  while (now < start) {
    if (start - now > 20000) sched_yield();
    now = now_ns();
  }
  return is_late || now - start > 2000 + window / 50;
}

static int is_one_of(const char* name, const char* const* names) {
  while (*names && strcmp(name, *names)) names++;
  return *names != NULL;
}

static const char *const from_root[] = {"bcast", "scatter", "scatterv", NULL},
                         *const to_root[] = {"reduce", "gather", "gatherv", NULL},
                         *const prefix[] = {"scan", "exscan", NULL};

// Whether nobody leaves a call before all have entered.
static int is_for_all(const Case* one) {
  return !is_one_of(one->collective, from_root) && !is_one_of(one->collective, to_root) &&
         !is_one_of(one->collective, prefix);
}

// Whether the calls of a batch follow each other as in an application that makes them back to back: with one window for
// all, the processes begin each call as they returned from the one before. In other collectives those that wait for
// nobody would run ahead. With large messages it counts more that the memory is used between the calls.
static int is_back_to_back(const Case* one) {
  int is_short = one->bytes >= 0 && one->bytes <= SHORT_MESSAGE;
  return is_short && one->computing < SHORT_COMPUTING && is_for_all(one);
}

static void repeat(const Step* step, int64_t* starts, Times* times) {
  Case* one = &list[step->which];
  Candidate* candidate = &one->candidate[step->candidate];
  int size = layout[one->layout].size;
  MPI_Datatype* types = take(sizeof(MPI_Datatype) * size);
  for (int i = 0; i < size; i++) types[i] = MPI_BYTE;
  if (is_call) choose(candidate);
  for (int i = 0; i < step->repetitions; i++) {
    int is_synchronised = i == 0 || !is_back_to_back(one);
    int64_t start = step->start + (is_synchronised ? i * step->window : 0);
    starts[i] = times->end[i] = times->late[i] = 0;
    if (candidate->comm == MPI_COMM_NULL) continue;
    if (!is_back_to_back(one)) use_memory(one);
    if (is_synchronised) times->late[i] = wait_until(start, step->window);
    starts[i] = now_ns() - start;
    if (one->bytes < 0)
      call_blocks(one, candidate->comm, types);
    else
      call_equal(one, candidate->comm);
    times->end[i] = now_ns() - start;
  }
  if (is_call) restore(candidate);
  free(types);
}

// Stores when the last process that I wait for started each call.
static void find_last(const Case* one, const int64_t* starts, int64_t* last, int n) {
  MPI_Comm comm = layout[one->layout].comm;
  memcpy(last, starts, sizeof *last * (size_t)n);
  if (comm == MPI_COMM_NULL) return;
  if (is_one_of(one->collective, from_root))
    MPI_Bcast(last, n, MPI_INT64_T, 0, comm);
  else if (is_one_of(one->collective, to_root))
    MPI_Reduce(starts, last, n, MPI_INT64_T, MPI_MAX, 0, comm);
  else if (is_one_of(one->collective, prefix))
    MPI_Scan(starts, last, n, MPI_INT64_T, MPI_MAX, comm);
  else
    MPI_Allreduce(starts, last, n, MPI_INT64_T, MPI_MAX, comm);
}

// One batch of repetitions on all processes; process 0 gets the times.
static void batch(const Step* step, Times* found) {
  Times mine = {0};
  int64_t starts[MOST_REPETITIONS], last[MOST_REPETITIONS], sum[MOST_REPETITIONS] = {0};
  int n = (int)step->repetitions;
  const Case* one = &list[step->which];
  repeat(step, starts, &mine);
  find_last(one, starts, last, n);
  for (int i = 0; i < n; i++) {
    int64_t begin = last[i] > starts[i] ? last[i] : starts[i];
    mine.operation[i] = mine.end[i] > begin ? mine.end[i] - begin : 0;
    // Where nobody leaves before the last one has entered, a late process does not count.
    if (is_for_all(one) && !is_back_to_back(one)) mine.end[i] = mine.operation[i];
  }
  MPI_Reduce(mine.end, found->end, n, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(mine.late, found->late, n, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce(mine.operation, sum, n, MPI_INT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
  for (int i = 0; i < n; i++) found->operation[i] = sum[i] / (layout[one->layout].members);
  // What the whole batch takes is the sum of its calls, each from the latest return of the one before.
  for (int i = n - 1; rank == 0 && i > 0 && is_back_to_back(one); i--)
    found->end[i] = found->end[i] > found->end[i - 1] ? found->end[i] - found->end[i - 1] : 1;
}
