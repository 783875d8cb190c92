// SPDX-License-Identifier: Apache-2.0
// Times collectives with each algorithm that a plan names: replay PLAN CSV SECONDS
//
// replay.py writes the plan, compiles this with the mpicc of the site and starts it. Each time is that from the start
// of a window, which all processes have agreed on, to the latest return. The processes wait for the window by the
// clock: a barrier would let them start one after the other. Every time is written; process 0 decides what is measured
// next.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_REPETITIONS = 40, MOST_SETTINGS = 4, NAME = 128, PINGS = 20, TRIES = 3 };

typedef struct {
  char variable[NAME];
  int value, before, is_set;
} Setting;

typedef struct {
  char name[NAME];
  int settings, is_done, rounds;
  Setting setting[MOST_SETTINGS];
  MPI_Comm comm;
  int64_t window;                 // ns, of one repetition
  double last, sum, sum2, least;  // median of this round; its ratios to the default's in all rounds
} Candidate;

typedef struct {
  char collective[NAME];
  int layout, candidates;
  int64_t bytes;
  Candidate* candidate;
  int *sent, *received, *at_sent, *at_received;  // per rank of my communicator, in collectives with blocks of any size
  int64_t in, out;                               // bytes of my buffers
} Case;

typedef struct {
  int position, size;  // mine
  MPI_Comm comm;       // MPI_COMM_NULL if I am in none
} Layout;

typedef struct {
  int64_t which, candidate, repetitions, start, window;
} Step;

static int rank, processes, layouts, cases, is_dup, least_rounds = 8;
static Layout* layout;
static Case* list;
static char *from, *to;
static int64_t offset;  // of my clock to that of process 0, ns
static int is_one_machine;
static char exclude[NAME];  // component of Open MPI that would hide the choice
static FILE* csv;

static void fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "commlens-replay: ");
  vfprintf(stderr, format, arguments);
  fprintf(stderr, "\n");
  va_end(arguments);
  fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

static void* take(size_t bytes) {
  void* memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) fail("no memory for %zu bytes", bytes);
  return memory;
}

static int64_t own_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t now_ns(void) { return own_ns() - offset; }

// ---- the plan: words, read by every process -------------------------------------------------------------------------

static void word(FILE* file, char* text) {
  if (fscanf(file, "%127s", text) != 1) fail("the plan ends early");
}

static int64_t number(FILE* file) {
  long long value;
  if (fscanf(file, "%lld", &value) != 1) fail("the plan has no number where one belongs");
  return value;
}

static void expect(FILE* file, const char* wanted) {
  char text[NAME];
  word(file, text);
  if (strcmp(text, wanted)) fail("the plan has '%s' instead of '%s'", text, wanted);
}

static void read_layout(FILE* file, Layout* one) {
  int color = MPI_UNDEFINED;
  expect(file, "layout");
  int comms = (int)number(file);
  one->position = one->size = 0;
  for (int i = 0; i < comms; i++) {
    expect(file, "comm");
    int size = (int)number(file);
    for (int k = 0; k < size; k++)
      if (number(file) == rank) {
        color = i;
        one->position = k;
        one->size = size;
      }
  }
  MPI_Comm_split(MPI_COMM_WORLD, color, one->position, &one->comm);
}

// The block from one rank of the communicator to another: in proportion to what the one sends and the other receives.
static int block(const Case* one, const double* sends, const double* receives, double all, int source, int target) {
  if (!strncmp(one->collective, "alltoall", 8)) return all > 0 ? (int)(sends[source] * receives[target] / all) : 0;
  if (!strcmp(one->collective, "scatterv")) return source == 0 ? (int)receives[target] : 0;
  if (!strcmp(one->collective, "gatherv")) return target == 0 ? (int)sends[source] : 0;
  return (int)(!strcmp(one->collective, "reduce_scatter") ? receives[source] : sends[source]);
}

static void make_blocks(Case* one, const double* sends, const double* receives) {
  const Layout* mine = &layout[one->layout];
  int n = mine->size;
  double all = 0;
  for (int i = 0; i < n; i++) all += sends[i];
  one->sent = take(sizeof(int) * n), one->received = take(sizeof(int) * n);
  one->at_sent = take(sizeof(int) * n), one->at_received = take(sizeof(int) * n);
  for (int i = 0; i < n; i++) {
    one->sent[i] = block(one, sends, receives, all, mine->position, i);
    one->received[i] = block(one, sends, receives, all, i, mine->position);
    one->at_sent[i] = (int)one->out, one->at_received[i] = (int)one->in;
    one->out += one->sent[i], one->in += one->received[i];
  }
  if (one->out > INT_MAX || one->in > INT_MAX) fail("%s: more than 2 GiB of a rank", one->collective);
  if (!strcmp(one->collective, "reduce_scatter")) one->out = one->in;
}

static void read_blocks(FILE* file, Case* one) {
  expect(file, "blocks");
  int comms = (int)number(file);
  for (int i = 0; i < comms; i++) {
    int size = (int)number(file), is_mine = 0;
    double *sends = take(sizeof(double) * size), *receives = take(sizeof(double) * size);
    for (int k = 0; k < size; k++) {
      is_mine |= number(file) == rank;
      sends[k] = (double)number(file), receives[k] = (double)number(file);
    }
    if (is_mine) make_blocks(one, sends, receives);
    free(sends), free(receives);
  }
}

static void read_candidate(FILE* file, Candidate* one) {
  expect(file, "candidate");
  word(file, one->name);
  one->settings = (int)number(file);
  if (one->settings > MOST_SETTINGS) fail("the plan sets too many variables");
  for (int i = 0; i < one->settings; i++) {
    word(file, one->setting[i].variable);
    one->setting[i].value = (int)number(file);
  }
  one->comm = MPI_COMM_NULL;
  one->window = 200000;
  one->least = 1e30;
}

static void read_case(FILE* file, Case* one) {
  expect(file, "case");
  word(file, one->collective);
  one->layout = (int)number(file);
  one->bytes = number(file);
  for (int i = 0; i < 4; i++) {  // what only replay.py reads
    char text[NAME];
    word(file, text);
  }
  int64_t parts =
      strstr("gather scatter allgather alltoall reduce_scatter_block", one->collective) ? layout[one->layout].size : 1;
  one->in = one->out = one->bytes * parts;
  if (one->bytes < 0) {
    one->in = one->out = 0;
    read_blocks(file, one);
  }
  one->candidates = (int)number(file);
  one->candidate = take(sizeof(Candidate) * one->candidates);
  for (int i = 0; i < one->candidates; i++) read_candidate(file, &one->candidate[i]);
}

static void read_plan(const char* path) {
  char text[NAME];
  FILE* file = fopen(path, "r");
  if (!file) fail("%s: cannot be read by process %d", path, rank);
  expect(file, "commlens-replay-1");
  expect(file, "processes");
  int wanted = (int)number(file);
  if (wanted != processes) fail("%d processes were started, but the profile has %d", processes, wanted);
  expect(file, "seed");
  srand48((long)number(file));
  expect(file, "set");
  word(file, text);
  is_dup = !strcmp(text, "dup");
  expect(file, "exclude");
  word(file, exclude);
  expect(file, "layouts");
  layout = take(sizeof(Layout) * (layouts = (int)number(file)));
  for (int i = 0; i < layouts; i++) read_layout(file, &layout[i]);
  expect(file, "cases");
  list = take(sizeof(Case) * (cases = (int)number(file)));
  for (int i = 0; i < cases; i++) read_case(file, &list[i]);
  fclose(file);
}

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

static void prepare(void) {
  int64_t most = 1;
  for (int i = 0; i < cases; i++) {
    int64_t larger = list[i].in > list[i].out ? list[i].in : list[i].out;
    most = larger > most ? larger : most;
    for (int k = 0; k < list[i].candidates; k++) make_comm(&list[i], &list[i].candidate[k]);
  }
  from = take((size_t)most + 8), to = take((size_t)most + 8);
}

// ---- the collectives ------------------------------------------------------------------------------------------------

static void call_equal(const Case* one, MPI_Comm comm) {
  const char* name = one->collective;
  int bytes = (int)one->bytes, is_double = bytes % 8 == 0, count = is_double ? bytes / 8 : bytes;
  MPI_Datatype type = is_double ? MPI_DOUBLE : MPI_BYTE;
  MPI_Op op = is_double ? MPI_SUM : MPI_BOR;
  if (!strcmp(name, "barrier")) MPI_Barrier(comm);
  if (!strcmp(name, "bcast")) MPI_Bcast(from, bytes, MPI_BYTE, 0, comm);
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

// Estimates the offset of each clock to that of process 0: half way of the fastest of some round trips.
static void relate_clocks(void) {
  if (is_one_machine) return;
  for (int other = 1; other < processes; other++) {
    int64_t best = INT64_MAX, theirs;
    for (int i = 0; i < PINGS && (rank == 0 || rank == other); i++) {
      int64_t begin = own_ns();
      if (rank == 0) {
        MPI_Recv(&theirs, 1, MPI_INT64_T, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        theirs = own_ns();
        MPI_Send(&theirs, 1, MPI_INT64_T, other, 1, MPI_COMM_WORLD);
        continue;
      }
      MPI_Send(&begin, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD);
      MPI_Recv(&theirs, 1, MPI_INT64_T, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      int64_t end = own_ns();
      if (end - begin < best) best = end - begin, offset = begin + (end - begin) / 2 - theirs;
    }
  }
}

// Waits until a time; returns whether it had passed, or is left late because another process had the processor.
static int wait_until(int64_t start, int64_t window) {
  int64_t now = now_ns();
  int is_late = now > start;
  while (now < start) {
    if (start - now > 20000) sched_yield();
    now = now_ns();
  }
  return is_late || now - start > 2000 + window / 50;
}

static void repeat(const Step* step, int64_t* ends, int64_t* late) {
  Case* one = &list[step->which];
  Candidate* candidate = &one->candidate[step->candidate];
  int size = layout[one->layout].size;
  MPI_Datatype* types = take(sizeof(MPI_Datatype) * size);
  for (int i = 0; i < size; i++) types[i] = MPI_BYTE;
  if (!is_dup) choose(candidate);
  for (int i = 0; i < step->repetitions; i++) {
    int64_t start = step->start + i * step->window;
    ends[i] = late[i] = 0;
    if (candidate->comm == MPI_COMM_NULL) continue;
    late[i] = wait_until(start, step->window);
    if (one->bytes < 0)
      call_blocks(one, candidate->comm, types);
    else
      call_equal(one, candidate->comm);
    ends[i] = now_ns() - start;
  }
  if (!is_dup) restore(candidate);
  free(types);
}

// One batch of repetitions on all processes; process 0 gets the times from the start to the latest end.
static void batch(Step* step, int64_t* times, int64_t* late) {
  int64_t ends[2 * MOST_REPETITIONS], most[2 * MOST_REPETITIONS];
  int n = (int)step->repetitions;
  repeat(step, ends, ends + n);
  MPI_Reduce(ends, most, 2 * n, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
  memcpy(times, most, sizeof *times * n), memcpy(late, most + n, sizeof *late * n);
}

// ---- process 0: what to measure next --------------------------------------------------------------------------------

static int by_value(const void* a, const void* b) {
  int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
  return (x > y) - (x < y);
}

// The median of the repetitions that started in time; of all if none did.
static double median(const int64_t* times, const int64_t* late, int n) {
  int64_t good[MOST_REPETITIONS];
  int count = 0;
  for (int i = 0; i < n; i++)
    if (!late[i]) good[count++] = times[i];
  if (!count) memcpy(good, times, sizeof *good * (size_t)(count = n));
  qsort(good, (size_t)count, sizeof *good, by_value);
  return ((double)good[(count - 1) / 2] + (double)good[count / 2]) / 2;
}

static void measure(int round, int which, int k) {
  Candidate* one = &list[which].candidate[k];
  int64_t times[MOST_REPETITIONS], late[MOST_REPETITIONS];
  for (int try = 0; try < TRIES; try++) {
    int64_t fits = 4000000 / one->window, longest = 0;
    int n = (int)(fits < 3 ? 3 : fits > MOST_REPETITIONS ? MOST_REPETITIONS : fits), lates = 0;
    if (one->last == 0) n = 3;
    Step step = {which, k, n, now_ns() + 100000 + (int64_t)try * 400000, one->window};
    MPI_Bcast(&step, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
    batch(&step, times, late);
    for (int i = 0; i < n; i++) {
      fprintf(csv, "%d,%d,%d,%d,%d,%lld,%s,%s\n", round, which, k, i, (int)late[i], (long long)times[i],
              list[which].collective, one->name);
      lates += late[i] != 0;
      longest = times[i] > longest ? times[i] : longest;
    }
    one->last = median(times, late, n);
    int64_t wanted = (int64_t)(2 * one->last) + 20000;
    if (lates * 2 <= n) {
      one->window = (3 * one->window + wanted) / 4;
      break;
    }
    one->window = wanted > 2 * one->window ? wanted : 2 * one->window;
  }
}

// Takes the medians of a round into the ratios; a candidate is done when certainly slower, or known well enough.
static void conclude(void) {
  for (int i = 0; i < cases; i++) {
    Candidate* base = &list[i].candidate[0];
    for (int k = 1; k < list[i].candidates; k++) {
      Candidate* one = &list[i].candidate[k];
      if (one->is_done || one->last <= 0 || base->last <= 0) continue;
      double ratio = one->last / base->last;
      one->rounds++, one->sum += ratio, one->sum2 += ratio * ratio;
      one->least = ratio < one->least ? ratio : one->least;
      double n = one->rounds, mean = one->sum / n;
      double error = n > 1 ? sqrt(fmax(0, one->sum2 / n - mean * mean) / (n - 1)) : mean;
      int is_slower = (n >= 3 && one->least > 2) || (n >= 6 && mean - 4 * error > 1.1);
      int is_known = n >= least_rounds && 2 * error <= 0.03 * mean;
      one->is_done = is_slower || is_known;
    }
  }
}

static int open_candidates(int which) {
  int open = 0;
  for (int k = 1; k < list[which].candidates; k++) open += !list[which].candidate[k].is_done;
  return open;
}

static void forget(void) {
  for (int i = 0; i < cases; i++)
    for (int k = 0; k < list[i].candidates; k++) list[i].candidate[k].last = 0;
}

static void shuffle(int* order, int n) {
  for (int i = 0; i < n; i++) order[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int other = (int)(drand48() * (i + 1)), kept = order[i];
    order[i] = order[other], order[other] = kept;
  }
}

// Takes the earlier measurements of an interrupted run; returns the number of the last round.
static int read_earlier(const char* path) {
  FILE* file = fopen(path, "r");
  int round, which, k, i, is_late, last_round = 0, last_which = -1, last_k = -1, n = 0;
  long long ns;
  int64_t times[MOST_REPETITIONS], late[MOST_REPETITIONS];
  char line[512];
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "%d,%d,%d,%d,%d,%lld,", &round, &which, &k, &i, &is_late, &ns) != 6) continue;
    if (which < 0 || which >= cases || k < 0 || k >= list[which].candidates || round < last_round) continue;
    if (round != last_round && last_round) conclude(), forget();
    if (round != last_round || which != last_which || k != last_k || i == 0 || n == MOST_REPETITIONS) n = 0;
    last_round = round, last_which = which, last_k = k;
    times[n] = ns, late[n++] = is_late;
    list[which].candidate[k].last = median(times, late, n);
  }
  if (file) fclose(file);
  if (last_round) conclude();
  return last_round;
}

static void lead(const char* path, double seconds) {
  int64_t begin = own_ns(), until = begin + (int64_t)(seconds * 1e9);
  int tests = 0, open = 0, round = read_earlier(path), is_over = 0;
  for (int i = 0; i < cases; i++) tests += list[i].candidates - 1;
  least_rounds = (int)ceil(log2(40.0 * (tests + 1))) + 2;
  if (least_rounds < 8) least_rounds = 8;
  csv = fopen(path, "a");
  if (!csv) fail("%s: cannot be written", path);
  int *order = take(sizeof(int) * (size_t)(cases + 1)), *inner = NULL;
  do {
    open = 0, round++;
    forget();
    Step clocks = {-2, 0, 0, 0, 0};
    MPI_Bcast(&clocks, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
    relate_clocks();
    shuffle(order, cases);
    for (int i = 0; i < cases && !is_over; i++) {
      int which = order[i], n = list[which].candidates;
      if (!open_candidates(which)) continue;
      inner = take(sizeof(int) * (size_t)n);
      shuffle(inner, n);
      for (int k = 0; k < n && !is_over; k++) {
        if (!list[which].candidate[inner[k]].is_done) measure(round, which, inner[k]);
        is_over = own_ns() > until;
      }
      free(inner);
    }
    conclude();
    for (int i = 0; i < cases; i++) open += open_candidates(i);
    fflush(csv);
    printf("round %d %d %.3f\n", round, open, (double)(own_ns() - begin) / 1e9);
    fflush(stdout);
  } while (open && !is_over);
  free(order);
  if (fclose(csv)) fail("%s: cannot be written", path);
  Step end = {-1, 0, 0, 0, 0};
  MPI_Bcast(&end, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

static void follow(void) {
  int64_t times[MOST_REPETITIONS], late[MOST_REPETITIONS];
  for (;;) {
    Step step;
    MPI_Bcast(&step, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (step.which == -1) return;
    if (step.which == -2)
      relate_clocks();
    else
      batch(&step, times, late);
  }
}

// Prints the file of the MPI library. PMPI_Init is its own even if a tool wraps MPI_Init.
static void print_module(void) {
  Dl_info info;
  void* init = dlsym(RTLD_DEFAULT, "PMPI_Init");
  if (init && dladdr(init, &info) && info.dli_fname) printf("module %s\n", info.dli_fname);
}

int main(int count, char** arguments) {
  int provided, length, near;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Comm machine;
  MPI_Init(&count, &arguments);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (count != 4) fail("usage: replay PLAN CSV SECONDS");
  MPI_Get_library_version(text, &length);
  if (rank == 0) printf("library %.*s\n", (int)strcspn(text, "\n"), text), print_module();
  fflush(stdout);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  MPI_Comm_size(machine, &near);
  MPI_Comm_free(&machine);
  MPI_Allreduce(&near, &is_one_machine, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  is_one_machine = is_one_machine == processes;
  read_plan(arguments[1]);
  prepare();
  if (rank == 0)
    lead(arguments[2], atof(arguments[3]));
  else
    follow();
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
