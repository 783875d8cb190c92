/* SPDX-License-Identifier: Apache-2.0
 * Windows of every.c: one-sided calls, error handlers and attributes. */
#pragma once

#include "every.h"

/* Intel MPI 2021.18 ends in a segmentation fault in the first MPI_Wait of these. */
static void requests_of_a_window(MPI_Win win) {
#ifndef I_MPI_NUMVERSION
  MPI_Rput(data, 2, MPI_INT, other, 0, 2, MPI_INT, win, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_Rget(into, 2, MPI_INT, other, 0, 2, MPI_INT, win, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_Raccumulate(data, 2, MPI_INT, other, 0, 2, MPI_INT, MPI_SUM, win, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_Rget_accumulate(data, 2, MPI_INT, into, 2, MPI_INT, other, 0, 2, MPI_INT, MPI_SUM, win, &r[0]);
  MPI_Wait(&r[0], s);
#else
  (void)win;
#endif
}

static void windows(void) {
  MPI_Win win;
  MPI_Aint size;
  Unit unit;
  void *base, *memory;
  MPI_Group all, partner;
  MPI_Info info;
  MPI_Alloc_mem(256, MPI_INFO_NULL, &memory);
  MPI_Win_create(memory, 256, 1, MPI_INFO_NULL, WORLD, &win);
  MPI_Win_set_name(win, "window");
  MPI_Win_get_name(win, text, &n);
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &other, &partner);
  MPI_Win_get_info(win, &info);
  MPI_Win_set_info(win, info);
  MPI_Info_free(&info);
  MPI_Win_fence(0, win);
  MPI_Put(data, 2, MPI_INT, other, 0, 2, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Get(into, 2, MPI_INT, other, 0, 2, MPI_INT, win);
  MPI_Win_fence(0, win);
  MPI_Accumulate(data, 2, MPI_INT, other, 0, 2, MPI_INT, MPI_SUM, win);
  MPI_Win_fence(0, win);
  MPI_Win_post(partner, 0, win);
  MPI_Win_start(partner, 0, win);
  MPI_Put(data, 2, MPI_INT, other, 0, 2, MPI_INT, win);
  MPI_Win_complete(win);
  MPI_Win_wait(win);
  MPI_Win_post(MPI_GROUP_EMPTY, 0, win); /* complete at once, so one test is enough */
  MPI_Win_test(win, &flag);
  MPI_Win_lock(MPI_LOCK_SHARED, other, 0, win);
  MPI_Win_flush(other, win);
  MPI_Win_flush_local(other, win);
  MPI_Win_unlock(other, win);
  MPI_Win_lock_all(0, win);
  MPI_Get_accumulate(data, 2, MPI_INT, into, 2, MPI_INT, other, 0, 2, MPI_INT, MPI_SUM, win);
  MPI_Win_flush_all(win);
  MPI_Fetch_and_op(data, into, MPI_INT, other, 0, MPI_SUM, win);
  MPI_Win_flush_local_all(win);
  requests_of_a_window(win);
  MPI_Compare_and_swap(data, data + 1, into, MPI_INT, other, 0, win);
  MPI_Win_sync(win);
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Free_mem(memory);
  MPI_Group_free(&partner);
  MPI_Group_free(&all);
  MPI_Win_allocate(256, 1, MPI_INFO_NULL, WORLD, &base, &win);
  MPI_Win_free(&win);
  MPI_Win_allocate_shared(256, 1, MPI_INFO_NULL, WORLD, &base, &win);
  MPI_Win_shared_query(win, other, &size, &unit, &base);
  MPI_Win_free(&win);
  MPI_Win_create_dynamic(MPI_INFO_NULL, WORLD, &win);
  MPI_Win_attach(win, room, sizeof room);
  MPI_Win_detach(win, room);
  MPI_Win_free(&win);
}

static void handled_win(MPI_Win* win, int* code, ...) { (void)win, (void)code; }

static void handlers_of_windows(void) {
  MPI_Win win;
  MPI_Errhandler handler;
  void* value;
  int key;
  MPI_Win_create(room, sizeof room, 1, MPI_INFO_NULL, SELF, &win);
  MPI_Win_create_errhandler(handled_win, &handler);
  MPI_Win_set_errhandler(win, handler);
  MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_Win_get_errhandler(win, &handler);
  MPI_Errhandler_free(&handler);
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &key, NULL);
  MPI_Win_set_attr(win, key, NULL);
  MPI_Win_get_attr(win, key, &value, &flag);
  MPI_Win_delete_attr(win, key);
  MPI_Win_free_keyval(&key);
  MPI_Win_free(&win);
}
