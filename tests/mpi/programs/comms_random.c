/* SPDX-License-Identifier: Apache-2.0
 * A random sequence of communicators made, used and freed: `comms_random SEED STEPS`.
 * All ranks draw the same numbers; test_comm_random.py replays them and knows what must come out.
 * Every draw below is made by every rank, member or not, in the order written there. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANKS = 16, MOST_ALIVE = 12 };

struct node {
  MPI_Comm comm; /* MPI_COMM_NULL on ranks outside */
  int size, members[MOST_RANKS];
};

static uint64_t state;
static int draw(int below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int)((state >> 33) % (uint64_t)below);
}

static struct node alive[MOST_ALIVE + 4];
static int n_alive = 1, me;
static char junk[4096], bin[4096];

static int position(struct node const* node) {
  for (int i = 0; i < node->size; ++i)
    if (node->members[i] == me) return i;
  return -1;
}

static void add(MPI_Comm comm, int size, int const* members) {
  struct node* node = &alive[n_alive++];
  node->size = size;
  for (int i = 0; i < size; ++i) node->members[i] = members[i];
  node->comm = position(node) >= 0 ? comm : MPI_COMM_NULL;
}

static void split(struct node const* parent) {
  int colors[MOST_RANKS], keys[MOST_RANKS];
  for (int i = 0; i < parent->size; ++i) {
    colors[i] = draw(4);
    keys[i] = draw(5);
  }
  int const mine = position(parent);
  MPI_Comm comm = MPI_COMM_NULL;
  if (mine >= 0) MPI_Comm_split(parent->comm, colors[mine] == 3 ? MPI_UNDEFINED : colors[mine], keys[mine], &comm);
  struct node const from = *parent;
  for (int color = 0; color < 3; ++color) {
    int members[MOST_RANKS], size = 0;
    for (int key = 0; key < 5; ++key)
      for (int i = 0; i < from.size; ++i)
        if (colors[i] == color && keys[i] == key) members[size++] = from.members[i];
    if (size > 0) add(comm, size, members);
  }
}

static int subset(struct node const* parent, int least, int* positions) {
  for (int i = 0; i < parent->size; ++i) positions[i] = i;
  for (int i = parent->size - 1; i > 0; --i) {
    int const k = draw(i + 1), kept = positions[i];
    positions[i] = positions[k];
    positions[k] = kept;
  }
  return least + draw(parent->size + 1 - least);
}

static void create(struct node const* parent, int with_group) {
  int positions[MOST_RANKS], members[MOST_RANKS];
  int const n = subset(parent, with_group, positions), tag = with_group ? draw(3) : 0;
  int inside = 0;
  for (int i = 0; i < n; ++i) {
    members[i] = parent->members[positions[i]];
    inside |= members[i] == me;
  }
  MPI_Comm comm = MPI_COMM_NULL;
  if (position(parent) >= 0) {
    MPI_Group all, some;
    MPI_Comm_group(parent->comm, &all);
    MPI_Group_incl(all, n, positions, &some);
    if (!with_group)
      MPI_Comm_create(parent->comm, some, &comm);
    else if (inside)
      MPI_Comm_create_group(parent->comm, some, tag, &comm);
    MPI_Group_free(&all);
    if (some != MPI_GROUP_EMPTY) MPI_Group_free(&some);
  }
  if (n > 0) add(comm, n, members);
}

static void copy(struct node const* parent, int how) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request;
  int const periodic = how == 2 ? draw(2) : 0;
  if (position(parent) >= 0) {
    if (how == 0) MPI_Comm_dup(parent->comm, &comm);
    if (how == 1) {
      MPI_Comm_idup(parent->comm, &comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (how == 2) MPI_Cart_create(parent->comm, 1, &parent->size, &periodic, 0, &comm);
  }
  struct node const from = *parent;
  add(comm, from.size, from.members);
}

/* Two halves, an intercommunicator between them, and what it merges into. */
static void bridge(struct node const* parent) {
  struct node const from = *parent;
  if (from.size < 2) return;
  int const cut = 1 + draw(from.size - 1), low_leader = draw(cut), high_leader = draw(from.size - cut);
  int const first_is_high = draw(2), mine = position(&from);
  MPI_Comm half = MPI_COMM_NULL, between, merged = MPI_COMM_NULL;
  if (mine >= 0) {
    int const second = mine >= cut;
    MPI_Comm_split(from.comm, second, mine, &half);
    MPI_Intercomm_create(half, second ? high_leader : low_leader, from.comm, second ? low_leader : cut + high_leader, 5,
                         &between);
    MPI_Barrier(between);
    MPI_Intercomm_merge(between, second ? !first_is_high : first_is_high, &merged);
    MPI_Comm_free(&between);
  }
  int members[MOST_RANKS];
  for (int i = 0; i < from.size; ++i) members[i] = from.members[first_is_high ? (i + cut) % from.size : i];
  add(half, cut, from.members);
  add(half, from.size - cut, from.members + cut);
  add(merged, from.size, members);
}

static void drop(int k) {
  if (position(&alive[k]) >= 0) MPI_Comm_free(&alive[k].comm);
  for (--n_alive; k < n_alive; ++k) alive[k] = alive[k + 1];
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &alive[0].size);
  alive[0].comm = MPI_COMM_WORLD;
  for (int i = 0; i < alive[0].size; ++i) alive[0].members[i] = i;
  state = (uint64_t)atoi(argv[1]);
  int const steps = atoi(argv[2]);

  for (int step = 0; step < steps; ++step) {
    int const k = draw(n_alive);
    int what = draw(16);
    struct node* const node = &alive[k];
    int const mine = position(node);
    if (what >= 6 && n_alive >= MOST_ALIVE) what = 4;
    if (what < 2) {
      int const count = draw(100);
      if (mine >= 0) MPI_Allreduce(junk, bin, count, MPI_INT, MPI_BOR, node->comm);
    } else if (what < 4) {
      int const count = draw(1000), shift = draw(node->size);
      if (mine >= 0)
        MPI_Sendrecv(junk, count, MPI_CHAR, (mine + shift) % node->size, 0, bin, 1000, MPI_CHAR,
                     (mine + node->size - shift) % node->size, 0, node->comm, MPI_STATUS_IGNORE);
    } else if (what < 6) {
      if (k > 0) drop(k);
    } else if (what < 8) {
      split(node);
    } else if (what < 10) {
      create(node, 0);
    } else if (what < 12) {
      create(node, 1);
    } else if (what < 14) {
      copy(node, draw(3));
    } else {
      bridge(node);
    }
  }
  while (n_alive > 1) drop(1);
  if (me == 0) puts("done");
  MPI_Finalize();
  return 0;
}
