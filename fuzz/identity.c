/* SPDX-License-Identifier: Apache-2.0
 * `identity SEED SEQUENCES THREADS KINDS`: random sequences of communicators made and freed, in THREADS threads at
 * once, each on a duplicate of MPI_COMM_WORLD.  KINDS: what a step may be, as letters.
 * All ranks draw the same numbers, members or not, in the order written here; identity.py replays them.  Every
 * communicator gets a name that no other has, and its members ask for its size some times: a row of the profile that
 * is put together from several communicators, or from a part of one, shows. */
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 8, MOST_ALIVE = 8, MOST_THREADS = 8, STEPS = 8 };

struct node {
  MPI_Comm comm; /* MPI_COMM_NULL on ranks outside */
  int size, members[MOST_RANKS];
};

struct strand {
  uint64_t state;
  int number, sequence, made, n_alive;
  struct node alive[MOST_ALIVE + 4];
};

static int me, n_ranks, n_sequences;
static char const* kinds;

static int draw(struct strand* s, int below) {
  s->state = s->state * 6364136223846793005u + 1442695040888963407u;
  return (int)((s->state >> 33) % (uint64_t)below);
}

static int position(struct node const* node) {
  for (int i = 0; i < node->size; ++i)
    if (node->members[i] == me) return i;
  return -1;
}

static void mark(struct strand* s, MPI_Comm comm) {
  char name[MPI_MAX_OBJECT_NAME];
  int size;
  snprintf(name, sizeof name, "%d.%d.%d", s->number, s->sequence, s->made);
  MPI_Comm_set_name(comm, name);
  for (int i = 0; i <= s->made % 5; ++i) MPI_Comm_size(comm, &size);
}

static void add(struct strand* s, MPI_Comm comm, int size, int const* members) {
  struct node* node = &s->alive[s->n_alive++];
  node->size = size;
  for (int i = 0; i < size; ++i) node->members[i] = members[i];
  ++s->made;
  node->comm = MPI_COMM_NULL;
  if (position(node) < 0) return;
  node->comm = comm;
  mark(s, comm);
}

static void copy(struct strand* s, struct node const* from, int how) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request;
  if (from->comm != MPI_COMM_NULL && how == 0) MPI_Comm_dup(from->comm, &comm);
  if (from->comm != MPI_COMM_NULL && how == 1) {
    MPI_Comm_idup(from->comm, &comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  add(s, comm, from->size, from->members);
}

static void split(struct strand* s, struct node const* from) {
  int colors[MOST_RANKS], keys[MOST_RANKS];
  for (int i = 0; i < from->size; ++i) {
    colors[i] = draw(s, 3);
    keys[i] = draw(s, 4);
  }
  int const mine = position(from);
  MPI_Comm comm = MPI_COMM_NULL;
  if (mine >= 0) MPI_Comm_split(from->comm, colors[mine] == 2 ? MPI_UNDEFINED : colors[mine], keys[mine], &comm);
  for (int color = 0; color < 2; ++color) {
    int members[MOST_RANKS], size = 0;
    for (int key = 0; key < 4; ++key)
      for (int i = 0; i < from->size; ++i)
        if (colors[i] == color && keys[i] == key) members[size++] = from->members[i];
    if (size > 0) add(s, comm, size, members);
  }
}

static void create_group(struct strand* s, struct node const* from) {
  int positions[MOST_RANKS], members[MOST_RANKS], inside = 0;
  for (int i = 0; i < from->size; ++i) positions[i] = i;
  for (int i = from->size - 1; i > 0; --i) {
    int const k = draw(s, i + 1), kept = positions[i];
    positions[i] = positions[k];
    positions[k] = kept;
  }
  int const n = 1 + draw(s, from->size), tag = draw(s, 3);
  for (int i = 0; i < n; ++i) {
    members[i] = from->members[positions[i]];
    inside |= members[i] == me;
  }
  MPI_Comm comm = MPI_COMM_NULL;
  if (inside) {
    MPI_Group all, some;
    MPI_Comm_group(from->comm, &all);
    MPI_Group_incl(all, n, positions, &some);
    MPI_Comm_create_group(from->comm, some, tag, &comm);
    MPI_Group_free(&all);
    MPI_Group_free(&some);
  }
  add(s, comm, n, members);
}

/* A grid of two columns, and its columns. */
static void grid(struct strand* s, struct node const* from) {
  if (from->size < 2) return;
  int const rows = from->size / 2, dims[2] = {rows, 2}, periods[2] = {0, 1}, keep[2] = {1, 0};
  MPI_Comm whole = MPI_COMM_NULL, column = MPI_COMM_NULL;
  if (from->comm != MPI_COMM_NULL) MPI_Cart_create(from->comm, 2, dims, periods, 0, &whole);
  add(s, whole, 2 * rows, from->members);
  if (whole != MPI_COMM_NULL) MPI_Cart_sub(whole, keep, &column);
  for (int c = 0; c < 2; ++c) {
    int members[MOST_RANKS];
    for (int i = 0; i < rows; ++i) members[i] = from->members[2 * i + c];
    add(s, column, rows, members);
  }
}

/* Two halves, an intercommunicator between them, and what it merges into. */
static void bridge(struct strand* s, struct node const* from) {
  if (from->size < 2) return;
  int const cut = 1 + draw(s, from->size - 1), first_is_high = draw(s, 2), mine = position(from), second = mine >= cut;
  MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  if (mine >= 0) MPI_Comm_split(from->comm, second, mine, &half);
  add(s, half, cut, from->members);
  add(s, half, from->size - cut, from->members + cut);
  ++s->made;
  if (mine >= 0) {
    /* Threads that do this at the same time for equal groups must not use equal tags: docs/fuzzing.md. */
    MPI_Intercomm_create(half, 0, from->comm, second ? 0 : cut, s->number, &between);
    mark(s, between);
    MPI_Intercomm_merge(between, second ? !first_is_high : first_is_high, &merged);
    MPI_Comm_free(&between);
  }
  int members[MOST_RANKS];
  for (int i = 0; i < from->size; ++i) members[i] = from->members[first_is_high ? (i + cut) % from->size : i];
  add(s, merged, from->size, members);
}

static void drop(struct strand* s, int k) {
  if (s->alive[k].comm != MPI_COMM_NULL) MPI_Comm_free(&s->alive[k].comm);
  for (--s->n_alive; k < s->n_alive; ++k) s->alive[k] = s->alive[k + 1];
}

static void* sequences(void* argument) {
  struct strand* s = argument;
  for (s->sequence = 0; s->sequence < n_sequences; ++s->sequence) {
    for (int step = 0; step < STEPS; ++step) {
      int const k = draw(s, s->n_alive);
      char const what = s->n_alive >= MOST_ALIVE ? 'f' : kinds[draw(s, (int)strlen(kinds))];
      struct node const from = s->alive[k]; /* adding may move it */
      if (what == 'f' && k > 0) drop(s, k);
      if (what == 'd' || what == 'i') copy(s, &from, what == 'i');
      if (what == 's') split(s, &from);
      if (what == 'g') create_group(s, &from);
      if (what == 'c') grid(s, &from);
      if (what == 'b') bridge(s, &from);
    }
    while (s->n_alive > 1) drop(s, 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  static struct strand strands[MOST_THREADS];
  pthread_t threads[MOST_THREADS];
  int const n_threads = atoi(argv[3]);
  int provided;
  MPI_Init_thread(&argc, &argv, n_threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  n_sequences = atoi(argv[2]);
  kinds = argv[4];
  for (int t = 0; t < n_threads; ++t) {
    struct strand* s = &strands[t];
    s->state = (uint64_t)(atoi(argv[1]) * MOST_THREADS + t);
    s->number = t;
    s->n_alive = 1;
    s->alive[0].size = n_ranks;
    for (int i = 0; i < n_ranks; ++i) s->alive[0].members[i] = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &s->alive[0].comm);
  }
  if (n_threads == 1) sequences(&strands[0]);
  for (int t = 0; t < n_threads && n_threads > 1; ++t) pthread_create(&threads[t], NULL, sequences, &strands[t]);
  for (int t = 0; t < n_threads && n_threads > 1; ++t) pthread_join(threads[t], NULL);
  for (int t = 0; t < n_threads; ++t) MPI_Comm_free(&strands[t].alive[0].comm);
  MPI_Finalize();
  return 0;
}
