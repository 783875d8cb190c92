// SPDX-License-Identifier: Apache-2.0
// The plan of a replay, which replay.py writes: words that every process reads.
#pragma once

#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SETTINGS = 4, NAME = 128 };

typedef struct {
  char variable[NAME];
  int value, before, is_set;
} Setting;

typedef struct {
  char name[NAME];
  int settings, is_done;
  Setting setting[MOST_SETTINGS];
  MPI_Comm comm;
  int64_t window, slack;  // ns, of a repetition and the part of it that is reserve; 0 before the first call
  double last;            // median of this round, 0: not measured
  double* ratio;          // of it to that of the default, in each round
  int rounds, room;
} Candidate;

typedef struct {
  char collective[NAME];
  int layout, candidates;
  int64_t bytes;      // message size; -1: blocks of any size
  int64_t computing;  // ns that the application computes between two calls
  Candidate* candidate;
  int *sent, *received, *at_sent, *at_received;  // per rank of my communicator, in collectives with blocks of any size
  int64_t in, out;                               // bytes that I receive and send
} Case;

typedef struct {
  int position, size;  // mine
  int members;         // of all communicators
  MPI_Comm comm;       // MPI_COMM_NULL if I am in none
} Layout;

static int rank, processes, layouts, cases;
static int is_call;  // whether variables are set around each batch, not only while a communicator is made
static Layout* layout;
static Case* list;
static char exclude[NAME];  // component of Open MPI that would hide the choice

static const char* plan_file;

// Ends all processes. The reason goes into a file beside the plan, too: launchers may end a job before they have passed
// on what it wrote.
static void fail(const char* format, ...) {
  char reason[1024], path[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  fprintf(stderr, "commlens-replay: %s\n", reason);
  fflush(stderr);
  FILE* file = NULL;
  if (plan_file && snprintf(path, sizeof path, "%s.failed", plan_file) < (int)sizeof path) file = fopen(path, "a");
  if (file) fprintf(file, "%s\n", reason), fclose(file);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

static void* take(size_t bytes) {
  void* memory = calloc(bytes ? bytes : 1, 1);
  if (!memory) fail("no memory for %zu bytes", bytes);
  return memory;
}

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
  one->position = one->size = one->members = 0;
  for (int i = 0; i < comms; i++) {
    expect(file, "comm");
    int size = (int)number(file);
    one->members += size;
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
  if (!strcmp(one->collective, "reduce_scatter")) one->out = one->in, one->in = one->received[mine->position];
  if (!strcmp(one->collective, "allgatherv")) one->out = one->received[mine->position];
  if (one->out > INT_MAX || one->in > INT_MAX) fail("%s: more than 2 GiB of a rank", one->collective);
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
}

// Stores how many bytes I receive and send in a call with blocks of equal size.
static void take_sizes(Case* one) {
  const char* name = one->collective;
  const Layout* mine = &layout[one->layout];
  int64_t bytes = one->bytes > 0 ? one->bytes : 0, all = bytes * mine->size;
  int is_root = mine->position == 0;
  one->in = one->out = bytes;
  if (!strcmp(name, "bcast")) one->in = is_root ? 0 : bytes, one->out = is_root ? bytes : 0;
  if (!strcmp(name, "reduce")) one->in = is_root ? bytes : 0;
  if (!strcmp(name, "gather")) one->in = is_root ? all : 0;
  if (!strcmp(name, "scatter")) one->out = is_root ? all : 0;
  if (!strcmp(name, "allgather")) one->in = all;
  if (!strcmp(name, "reduce_scatter_block")) one->out = all;
  if (!strcmp(name, "alltoall")) one->in = one->out = all;
}

static void read_case(FILE* file, Case* one) {
  expect(file, "case");
  word(file, one->collective);
  one->layout = (int)number(file);
  one->bytes = number(file);
  one->computing = number(file);
  for (int i = 0; i < 4; i++) {  // what only replay.py reads
    char text[NAME];
    word(file, text);
  }
  take_sizes(one);
  if (one->bytes < 0) read_blocks(file, one);
  one->candidates = (int)number(file);
  one->candidate = take(sizeof(Candidate) * one->candidates);
  for (int i = 0; i < one->candidates; i++) read_candidate(file, &one->candidate[i]);
}

static void read_plan(const char* path) {
  char text[NAME];
  FILE* file = fopen(path, "r");
  if (!file) fail("%s: cannot be read by process %d", path, rank);
  expect(file, "commlens-replay-2");
  expect(file, "processes");
  int wanted = (int)number(file);
  if (wanted != processes) fail("%d processes were started, but the profile has %d", processes, wanted);
  expect(file, "seed");
  srand48((long)number(file));
  expect(file, "set");
  word(file, text);
  is_call = !strcmp(text, "call");
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
