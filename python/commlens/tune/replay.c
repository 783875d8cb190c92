// SPDX-License-Identifier: Apache-2.0
// Times collectives with each algorithm that a plan names: replay PLAN CSV SECONDS [ROUND CANDIDATE CASE,CASE...]
//
// replay.py writes the plan, compiles this with the mpicc of the site and starts it. Each time is that from the start
// of a window, which all processes have agreed on, to the latest return. The processes wait for the window by the
// clock: a barrier would let them start one after the other, and fill the caches with what the next call needs. Between
// two calls they use memory as the application does. Calls that it makes back to back share a window. Every time is
// written; process 0 decides what is measured next. Where variables count only from the start of a job, jobs.py
// decides: it names one candidate, which its environment chooses, and the cases.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>

#include "replay_calls.h"

enum { FIRST_ROUNDS = 3, TRIES = 2, JOB_BATCHES = 4 };

static const int64_t FIRST_BATCH = 1500000, BATCH = 6000000;  // ns; one repetition may take longer
static const int64_t RESERVE = 20000, LEAST_LEAD = 100000, MOST_LEAD = 10000000;
static const double LEAST_CHANGE = 0.03;  // as in decide.py: no smaller gain is chosen

static int least_rounds = 8;
static int64_t lead_ns = 100000;  // until the first start of a batch, so that all processes know of it in time
static FILE* csv;

static int by_value(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// The median of the repetitions that started in time; of all if none did.
static double median(const int64_t* times, const int64_t* late, int n) {
  double good[MOST_REPETITIONS];
  int count = 0;
  for (int i = 0; i < n; i++)
    if (!late[i]) good[count++] = (double)times[i];
  for (int i = 0; !count && i < n; i++) good[i] = (double)times[i];
  if (!count) count = n;
  qsort(good, (size_t)count, sizeof *good, by_value);
  return (good[(count - 1) / 2] + good[count / 2]) / 2;
}

// The part of a window that is not the call: what use_memory() takes, and the reserve.
static int64_t rest_of_window(const Case* one, const Candidate* candidate) {
  return one->computing + (one->in + one->out) / 4 + candidate->slack;
}

// Makes a batch; returns how many of its repetitions were late.
static int make_batch(int which, int k, int repetitions, Times* times) {
  Candidate* one = &list[which].candidate[k];
  int64_t start = own_ns() + lead_ns + list[which].computing;
  Step step = {which, k, repetitions, start, one->window};
  int lates = 0, later = 0;
  MPI_Bcast(&step, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
  batch(&step, times);
  for (int i = 0; i < repetitions; i++) lates += times->late[i] != 0, later += i && times->late[i];
  // The first one is late if the processes knew too late of it, the others if the window is too short.
  lead_ns = times->late[0] ? 2 * lead_ns : lead_ns - lead_ns / 32;
  lead_ns = lead_ns < LEAST_LEAD ? LEAST_LEAD : lead_ns > MOST_LEAD ? MOST_LEAD : lead_ns;
  double last = median(times->end, times->late, repetitions);
  int64_t most = 8 * RESERVE + 2 * (int64_t)last + list[which].in + list[which].out;
  one->slack = 2 * later >= repetitions && later ? 2 * one->slack : one->slack - one->slack / 8;
  one->slack = one->slack < RESERVE ? RESERVE : one->slack > most ? most : one->slack;
  int64_t wanted = 2 * (int64_t)last + rest_of_window(&list[which], one);
  one->window = wanted > one->window ? wanted : (3 * one->window + wanted) / 4;
  return lates;
}

static void write_times(int round, int which, int k, int repetitions, const Times* times) {
  for (int i = 0; i < repetitions; i++)
    fprintf(csv, "%d,%d,%d,%d,%d,%lld,%lld,%s,%s\n", round, which, k, i, (int)times->late[i], (long long)times->end[i],
            (long long)times->operation[i], list[which].collective, list[which].candidate[k].name);
}

static void measure(int round, int which, int k) {
  Candidate* one = &list[which].candidate[k];
  Times times;
  if (!one->window) {  // the first call makes connections; it tells about how long one takes
    make_batch(which, k, 1, &times);
    write_times(0, which, k, 1, &times);
  }
  for (int try = 0; try < TRIES; try++) {
    int64_t fits = (one->rounds < FIRST_ROUNDS ? FIRST_BATCH : BATCH) / one->window;
    int n = (int)(fits < 1 ? 1 : fits > MOST_REPETITIONS ? MOST_REPETITIONS : fits);
    int lates = make_batch(which, k, n, &times);
    write_times(round, which, k, n, &times);
    one->last = median(times.end, times.late, n);
    if (lates < n || n * one->window > 2 * BATCH) break;
  }
}

// ---- what is known --------------------------------------------------------------------------------------------------

static void add_ratio(Candidate* one, double ratio) {
  if (one->rounds == one->room) {
    one->room = 2 * one->room + 16;
    one->ratio = realloc(one->ratio, sizeof(double) * (size_t)one->room);
    if (!one->ratio) fail("no memory");
  }
  one->ratio[one->rounds++] = ratio;
}

// The 99 % interval of the median ratio by order statistics: a disturbed round does not move it.
static void find_interval(Candidate* one, double* low, double* high) {
  int n = one->rounds, below = (int)floor(n / 2.0 - 1.29 * sqrt(n));
  if (below < 0) below = 0;
  qsort(one->ratio, (size_t)n, sizeof(double), by_value);
  *low = one->ratio[below], *high = one->ratio[n - 1 - below];
}

static int open_candidates(int which) {
  int open = 0;
  for (int k = 1; k < list[which].candidates; k++) open += !list[which].candidate[k].is_done;
  return open;
}

// A candidate is done if it is certainly no choice: it does not save enough, or another one is faster. Or if its change
// is known well enough. One that needs more than twice the time is so after a few rounds; but one candidate is measured
// until there are enough rounds for a claim. Units are the time of the default.
static void conclude_case(int which) {
  Case* work = &list[which];
  double best = 1 - LEAST_CHANGE, low, high;
  for (int k = 1; k < work->candidates; k++) {
    Candidate* one = &work->candidate[k];
    if (one->rounds < 8) continue;
    find_interval(one, &low, &high);
    best = high < best ? high : best;
  }
  for (int k = 1; k < work->candidates; k++) {
    Candidate* one = &work->candidate[k];
    if (one->is_done || one->rounds < FIRST_ROUNDS) continue;
    find_interval(one, &low, &high);
    int is_slower = one->rounds < 8 ? low > 2 && open_candidates(which) > 1 : low > best;
    // As exactly as a choice needs it, or to a tenth of the change.
    double error = fmax(LEAST_CHANGE, fabs(1 - (low + high) / 2) / 10);
    int is_known = one->rounds >= least_rounds && high - low <= 2 * error;
    one->is_done = is_slower || is_known;
  }
}

// Takes the medians of a round into the ratios.
static void conclude(void) {
  for (int i = 0; i < cases; i++) {
    Candidate* base = &list[i].candidate[0];
    for (int k = 1; k < list[i].candidates; k++) {
      Candidate* one = &list[i].candidate[k];
      if (one->last > 0 && base->last > 0) add_ratio(one, one->last / base->last);
    }
    conclude_case(i);
    base->rounds++;
  }
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
    if (sscanf(line, "%d,%d,%d,%d,%d,%lld,%*d,", &round, &which, &k, &i, &is_late, &ns) != 6) continue;
    if (round < 1 || which < 0 || which >= cases || k < 0 || k >= list[which].candidates || round < last_round)
      continue;
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
  printf("ready\n");  // replay.py ends a job that takes much longer than SECONDS from here
  fflush(stdout);
  for (int i = 0; i < round; i++) drand48();  // another order when it goes on
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

// Measures one candidate of these cases, in their order. The first batch makes connections; it counts as round 0.
static void lead_job(const char* path, double seconds, int round, int k, char* names) {
  int64_t until = own_ns() + (int64_t)(seconds * 1e9);
  printf("ready\n");
  fflush(stdout);
  csv = fopen(path, "a");
  if (!csv) fail("%s: cannot be written", path);
  Step clocks = {-2, 0, 0, 0, 0}, end = {-1, 0, 0, 0, 0};
  MPI_Bcast(&clocks, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
  relate_clocks();
  for (char* name = strtok(names, ","); name && own_ns() < until; name = strtok(NULL, ",")) {
    int which = atoi(name);
    if (which < 0 || which >= cases || k < 0 || k >= list[which].candidates)
      fail("no case %s has a candidate %d", name, k);
    measure(0, which, k);
    list[which].candidate[k].rounds = FIRST_ROUNDS;
    for (int i = 0; i < JOB_BATCHES && own_ns() < until; i++) measure(round, which, k);
  }
  if (fclose(csv)) fail("%s: cannot be written", path);
  MPI_Bcast(&end, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
}

static void follow(void) {
  Times ignored;
  for (;;) {
    Step step;
    MPI_Bcast(&step, 5, MPI_INT64_T, 0, MPI_COMM_WORLD);
    if (step.which == -1) return;
    if (step.which == -2)
      relate_clocks();
    else
      batch(&step, &ignored);
  }
}

// Prints the file of the MPI library. PMPI_Init is its own even if a tool wraps MPI_Init.
static void print_module(void) {
  Dl_info info;
  void* init = dlsym(RTLD_DEFAULT, "PMPI_Init");
  if (init && dladdr(init, &info) && info.dli_fname) printf("module %s\n", info.dli_fname);
}

int main(int count, char** arguments) {
  int provided, length;
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&count, &arguments);
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  if (count != 4 && count != 7) fail("usage: replay PLAN CSV SECONDS [ROUND CANDIDATE CASE,CASE...]");
  plan_file = arguments[1];
  MPI_Get_library_version(text, &length);
  if (rank == 0) printf("library %.*s\n", (int)strcspn(text, "\n"), text), print_module();
  fflush(stdout);
  find_machines();
  read_plan(arguments[1]);
  prepare(count == 7 ? atoi(arguments[5]) : -1);
  if (rank == 0 && count == 7)
    lead_job(arguments[2], atof(arguments[3]), atoi(arguments[4]), atoi(arguments[5]), arguments[6]);
  else if (rank == 0)
    lead(arguments[2], atof(arguments[3]));
  else
    follow();
  MPI_T_finalize();
  MPI_Finalize();
  return 0;
}
