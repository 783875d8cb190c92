/* SPDX-License-Identifier: Apache-2.0
 * Calls that are nearly the same, again and again from few places: `repeats SEED ROUNDS THREADS COMMS FILE`.  Each
 * procedure has one call site; from one call to the next some argument changes, or what a handle stands for: the more
 * communicators there are, the more rarely, and at times one call is made in all of them in turn.  FILE.RANK gets what
 * each should have been counted as, kept here in the plainest way:
 *
 *   cell PROCEDURE COMMUNICATOR REGION BIN CALLS SENT RECEIVED
 *   peer COMMUNICATOR KIND BIN PEER MESSAGES BYTES
 *
 * All ranks draw the same numbers, so that each knows what the others do.  With THREADS above 1 each thread does all of
 * this in communicators of its own, but for windows, files, and leaving out calls. */
#include <commlens.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "repeats.h"
#include "repeats_calls.h"
#include "repeats_handles.h"

static void change(struct State* s, struct Choice* x) {
  unsigned* const fields[] = {&x->comm, &x->type,   &x->count,    &x->a,       &x->b,
                              &x->way,  &x->window, &x->in_place, &x->from_any};
  const unsigned which = draw(s, sizeof fields / sizeof *fields);
  *fields[which] = draw(s, which == 0 && comm_count > 60 ? (unsigned)comm_count : 60);
}

static void steer(struct State* s, int may_reset) {
  static const char* const regions[] = {"one", "two"};
  if (s->number != 0) return;
  switch (draw(s, 4)) {
    case 0:
      commlens_pause();
      s->paused = 1;
      return;
    case 1:
      if (draw(s, 10) != 0 || !may_reset) return;
      commlens_reset();
      memset(s->lines, 0, LINES * sizeof *s->lines);
      return;
    default:
      if (strcmp(s->region, "-") != 0) {
        commlens_end(s->region);
        s->region = "-";
      } else {
        s->region = regions[draw(s, 2)];
        commlens_begin(s->region);
      }
  }
}

static int rounds, threads;

typedef void Calls(struct State*, const struct Choice*);

/* One call, and what changes before it: a handle one time in `calm` as often as where there are few. */
static void step(struct State* s, Calls* call, const struct Choice* x, unsigned calm, int may_reset) {
  if (draw(s, 40 * calm) == 0) new_type(s, &s->types[draw(s, TYPES)]);
  if (draw(s, 250 * calm) == 0) new_comm(s, (int)draw(s, (unsigned)comm_count));
  if (draw(s, 150 * calm) == 0) new_window(s, &s->windows[draw(s, WINDOWS)]);
  if (s->number == 0 && draw(s, 200 * calm) == 0) new_file(s);
  if (s->paused && draw(s, 4) == 0) {
    commlens_resume();
    s->paused = 0;
  } else if (!s->paused && threads == 1 && draw(s, 25 * calm) == 0) {
    steer(s, may_reset);
  }
  s->message = (s->message + 1) % 30000;
  call(s, x);
}

static void* work(void* of) {
  enum { CALLS = 11, TURNS = 8 };
  static Calls* const calls[CALLS] = {send_receive, isend_irecv, shift,  send_or_fail, send_much, rooted,
                                      rooted,       of_all,      of_all, one_sided,    file};
  struct State* const s = of;
  struct Choice x = {0}, in_turn[TURNS] = {{0}};
  const unsigned calm = comm_count > FEW ? 100 : 1;
  for (int i = 0; i < comm_count; ++i) new_comm(s, i);
  for (int i = 0; i < TYPES; ++i) new_type(s, &s->types[i]);
  for (int i = 0; i < WINDOWS; ++i) new_window(s, &s->windows[i]);
  for (int i = 0; i < rounds; ++i) {
    Calls* const call = calls[draw(s, CALLS)];
    for (unsigned n = 1 + draw(s, 40); n > 0; --n) {
      if (draw(s, 3) == 0) change(s, &x);
      step(s, call, &x, calm, i < rounds / 2);
    }
    if (comm_count == FEW || draw(s, 8) != 0) continue;
    const unsigned turn = draw(s, TURNS);
    if (draw(s, 4) == 0) in_turn[turn] = x;
    for (int k = 0; k < comm_count; ++k) {
      in_turn[turn].comm = (unsigned)k;
      step(s, calls[turn], &in_turn[turn], calm, i < rounds / 2);
    }
  }
  if (s->paused) commlens_resume();
  for (int i = 0; i < WINDOWS; ++i) window_over(&s->windows[i]);
  return NULL;
}

/* Sets up the state of thread `number`.  work() makes its communicators, datatypes and windows. */
static void prepare(struct State* s, int number, int seed, const char* file) {
  s->random = 88172645463325252u + (uint64_t)seed * 7919u + (uint64_t)number * 104729u;
  for (int k = 0; k < 20; ++k) draw(s, 2);
  s->number = number;
  s->region = "-";
  s->file = MPI_FILE_NULL;
  s->lines = calloc(LINES, sizeof *s->lines);
  s->out = calloc(BUFFER, 1);
  s->in = calloc(BUFFER, 1);
  MPI_Comm_rank(MPI_COMM_WORLD, &s->world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
  MPI_Comm_dup(MPI_COMM_WORLD, &s->base);
  MPI_Comm_split(MPI_COMM_WORLD, s->world_rank % 2, 0, &s->half);
  for (int k = 0; k < comm_count; ++k) s->comms[k].comm = MPI_COMM_NULL;
  for (int k = 0; k < TYPES; ++k) s->types[k].type = MPI_DATATYPE_NULL;
  for (int k = 0; k < WINDOWS; ++k) {
    s->windows[k].of = -1;
    s->windows[k].memory = calloc(BUFFER, 1);
  }
  for (int k = 0; k < 2 && number == 0; ++k) {
    char name[32];
    MPI_Comm_dup(MPI_COMM_SELF, &s->self[k]);
    snprintf(name, sizeof name, "c%d", 90000 + k);
    MPI_Comm_set_name(s->self[k], name);
  }
  snprintf(s->path, sizeof s->path, "%s.data.%d", file, s->world_rank);
  if (number == 0) new_file(s);
}

/* Writes what should have been counted; returns how many calls did not do what they should, -1 if it cannot write. */
static int write_lines(const struct State* states, const char* file) {
  char path[512];
  int fails = 0;
  snprintf(path, sizeof path, "%s.%d", file, states[0].world_rank);
  FILE* const out = fopen(path, "w");
  if (out == NULL) return -1;
  for (int i = 0; i < threads; ++i) {
    fails += states[i].fails;
    for (const struct Line* l = states[i].lines; l != states[i].lines + LINES; ++l) {
      if (l->text[0] != '\0') fprintf(out, "%s %lld %lld %lld\n", l->text, l->n[0], l->n[1], l->n[2]);
    }
  }
  fclose(out);
  return fails;
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  static char attached[1 << 16];
  static struct State states[MAX_THREADS];
  pthread_t ids[MAX_THREADS];
  int provided;
  rounds = atoi(argv[2]);
  threads = atoi(argv[3]);
  comm_count = atoi(argv[4]);
  if (threads < 1 || threads > MAX_THREADS || comm_count < FEW || comm_count > MANY) return 2;
  MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  if (threads > 1 && provided != MPI_THREAD_MULTIPLE) return 3;
  MPI_Buffer_attach(attached, sizeof attached);
  for (int i = 0; i < threads; ++i) prepare(&states[i], i, atoi(argv[1]), argv[5]);
  for (int i = 1; i < threads; ++i) pthread_create(&ids[i], NULL, work, &states[i]);
  work(&states[0]);
  for (int i = 1; i < threads; ++i) pthread_join(ids[i], NULL);
  MPI_File_close(&states[0].file);
  const int fails = write_lines(states, argv[5]);
  if (fails < 0) return 4;
  MPI_Finalize();
  if (fails != 0) printf("%d calls did not do what they should\n", fails);
  return fails != 0;
}
