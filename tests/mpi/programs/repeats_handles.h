/* SPDX-License-Identifier: Apache-2.0
 * The handles of repeats.c: communicators, windows, datatypes and files that are freed and made again. */
#pragma once

#include "repeats.h"

static void window_over(struct Window* w) {
  if (w->of < 0) return;
  MPI_Win_unlock_all(w->win);
  MPI_Win_free(&w->win);
  w->of = -1;
}

static void new_window(struct State* s, struct Window* w) {
  window_over(w);
  int of = (int)draw(s, (unsigned)comm_count), tries = comm_count;
  /* Open MPI 4 fails where several groups make one at a time. */
  while (tries > 0 && (s->comms[of].inter || s->comms[of].size != s->ranks)) of = (of + 1) % comm_count, --tries;
  if (s->number != 0 || tries == 0) return;
  MPI_Win_create(w->memory, BUFFER, 1, MPI_INFO_NULL, s->comms[of].comm, &w->win);
  MPI_Win_set_errhandler(w->win, MPI_ERRORS_RETURN);
  MPI_Win_lock_all(0, w->win);
  w->of = of;
}

static void new_comm(struct State* s, int slot) {
  struct Comm* const c = &s->comms[slot];
  for (int i = 0; i < WINDOWS; ++i) {
    if (s->windows[i].of == slot) window_over(&s->windows[i]);
  }
  if (c->comm != MPI_COMM_NULL) draw(s, 2) == 0 ? MPI_Comm_free(&c->comm) : MPI_Comm_disconnect(&c->comm);
  const int odd = s->world_rank % 2;
  switch (draw(s, 4)) {
    case 0: MPI_Comm_dup(s->base, &c->comm); break;
    case 1: MPI_Comm_split(s->base, 0, -s->world_rank, &c->comm); break;
    case 2: MPI_Comm_split(s->base, odd, 0, &c->comm); break;
    /* Threads that make some of the same processes at once have different tags. */
    default: MPI_Intercomm_create(s->half, 0, s->base, 1 - odd, 1 + s->number, &c->comm); break;
  }
  MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
  c->tag = 10000 * s->number + s->tags++;
  char name[32];
  snprintf(name, sizeof name, "c%d", c->tag);
  MPI_Comm_set_name(c->comm, name);
  MPI_Comm_rank(c->comm, &c->rank);
  MPI_Comm_size(c->comm, &c->size);
  MPI_Comm_test_inter(c->comm, &c->inter);
  MPI_Group world, group;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  c->others = c->size;
  if (c->inter) MPI_Comm_remote_size(c->comm, &c->others);
  c->inter ? MPI_Comm_remote_group(c->comm, &group) : MPI_Comm_group(c->comm, &group);
  for (int i = 0; i < c->others; ++i) MPI_Group_translate_ranks(group, 1, &i, world, &c->world[i]);
  MPI_Group_free(&group);
  MPI_Group_free(&world);
}

static void new_type(struct State* s, struct Type* t) {
  if (t->type != MPI_DATATYPE_NULL) MPI_Type_free(&t->type);
  t->ints = 1 + (int)draw(s, 9);
  draw(s, 2) == 0 ? MPI_Type_contiguous(t->ints, MPI_INT, &t->type) : MPI_Type_vector(t->ints, 1, 2, MPI_INT, &t->type);
  MPI_Type_commit(&t->type);
}

static void new_file(struct State* s) {
  if (s->file != MPI_FILE_NULL) MPI_File_close(&s->file);
  s->file_of = (int)draw(s, 2);
  const int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
  must(s, MPI_File_open(s->self[s->file_of], s->path, mode, MPI_INFO_NULL, &s->file));
  s->written = 0;
}
