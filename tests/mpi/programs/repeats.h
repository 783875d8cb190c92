/* SPDX-License-Identifier: Apache-2.0
 * What the parts of repeats.c share: the state of a thread, its random numbers, and the model of what should be
 * counted. */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { FEW = 3, MANY = 1024, TYPES = 3, WINDOWS = 2, MOST = 8, LINES = 1 << 18, MAX_THREADS = 8, BUFFER = 1 << 18 };

static int comm_count;

struct Line {
  char text[96];
  long long n[3];
};

struct Comm {
  MPI_Comm comm;
  int tag, rank, size, inter, others; /* others: whom one may send to; the remote size */
  int world[MOST];                    /* of those */
};

struct Window {
  MPI_Win win;
  int of; /* comms[of]; -1: there is none */
  int* memory;
};

struct Type {
  MPI_Datatype type;
  int ints; /* data */
};

/* What may change from one call to the next. */
struct Choice {
  unsigned comm, type, count, a, b, from_any, in_place, way, window;
};

struct State {
  uint64_t random;
  int number, world_rank, ranks, tags, paused, fails;
  int message; /* tag of the messages of this round: a later one may come first */
  MPI_Comm base, half, self[2];
  struct Comm comms[MANY];
  struct Type types[TYPES];
  struct Window windows[WINDOWS];
  MPI_File file;
  int file_of;       /* self[file_of] */
  long long written; /* until where there is something in the file */
  char path[512];
  const char* region;
  struct Line* lines;
  char *out, *in;
};

static const int counts[] = {0, 1, 2, 3, 17, 200};

static unsigned draw(struct State* s, unsigned below) {
  s->random ^= s->random << 13;
  s->random ^= s->random >> 7;
  s->random ^= s->random << 17;
  return (unsigned)((s->random >> 20) % below);
}

/* ---- the model ---- */

enum { NULL_BIN = -2 }; /* of what is sent to MPI_PROC_NULL */

static int bin_of(long long bytes) {
  int bin = 0;
  for (; bytes > 0; bytes /= 2) ++bin;
  return bin;
}

static void add(struct State* s, const char* text, long long a, long long b, long long c) {
  if (s->paused) return;
  uint32_t at = 2166136261u;
  for (const char* p = text; *p != '\0'; ++p) at = (at ^ (unsigned char)*p) * 16777619u;
  for (at %= LINES; s->lines[at].text[0] != '\0' && strcmp(s->lines[at].text, text) != 0;) at = (at + 1) % LINES;
  snprintf(s->lines[at].text, sizeof s->lines[at].text, "%s", text);
  s->lines[at].n[0] += a;
  s->lines[at].n[1] += b;
  s->lines[at].n[2] += c;
}

static void cell(struct State* s, const char* op, int tag, int bin, long long sent, long long received) {
  char text[96];
  snprintf(text, sizeof text, "cell %s c%d %s %d", op, tag, s->region, bin);
  add(s, text, 1, sent, received);
}

/* Bytes that an earlier call has a part in. */
static void arrives(struct State* s, const char* op, int tag, int bin, long long received) {
  char text[96];
  snprintf(text, sizeof text, "cell %s c%d %s %d", op, tag, s->region, bin);
  add(s, text, 0, 0, received);
}

static void peer(struct State* s, const char* kind, int tag, int world, long long bytes) {
  char text[96];
  snprintf(text, sizeof text, "peer c%d %s %d %d", tag, kind, bin_of(bytes), world);
  add(s, text, 1, bytes, 0);
}

static void shape(struct State* s, const char* kind, const char* op, int tag, long long bytes) {
  char text[96];
  snprintf(text, sizeof text, "peer c%d %s/%s %d -1", tag, kind, op, bin_of(bytes));
  add(s, text, 1, bytes, 0);
}

static void must(struct State* s, int rc) { s->fails += rc != MPI_SUCCESS; }
