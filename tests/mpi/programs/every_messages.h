/* SPDX-License-Identifier: Apache-2.0
 * Point-to-point calls of every.c, and the calls of requests and statuses. */
#pragma once

#include "every.h"

static void blocking_sends(void) {
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Send(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Wait(&r[0], s);
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Bsend(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Wait(&r[0], s);
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Ssend(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Wait(&r[0], s);
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Rsend(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Waitall(1, r, s);
}

static void nonblocking_sends(void) {
  MPI_Irecv(into, 4, MPI_INT, other, 0, WORLD, &r[0]);
  MPI_Irecv(into, 4, MPI_INT, other, 1, WORLD, &r[1]);
  MPI_Barrier(WORLD); /* what is ready below has its receive */
  MPI_Isend(data, 4, MPI_INT, other, 0, WORLD, &r[2]);
  MPI_Ibsend(data, 4, MPI_INT, other, 1, WORLD, &r[3]);
  MPI_Waitall(4, r, s);
  MPI_Irecv(into, 4, MPI_INT, other, 0, WORLD, &r[0]);
  MPI_Irecv(into, 4, MPI_INT, other, 1, WORLD, &r[1]);
  MPI_Barrier(WORLD);
  MPI_Issend(data, 4, MPI_INT, other, 0, WORLD, &r[2]);
  MPI_Irsend(data, 4, MPI_INT, other, 1, WORLD, &r[3]);
  MPI_Waitall(4, r, s);
}

static void persistent_sends(void) {
  MPI_Send_init(data, 4, MPI_INT, 0, 0, SELF, &r[1]);
  MPI_Bsend_init(data, 4, MPI_INT, 0, 0, SELF, &r[2]);
  MPI_Recv_init(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Startall(2, r);
  MPI_Waitall(2, r, s);
  MPI_Start(&r[0]);
  MPI_Start(&r[2]);
  MPI_Wait(&r[0], s);
  MPI_Wait(&r[2], s);
  MPI_Request_free(&r[1]);
  MPI_Request_free(&r[2]);
  MPI_Ssend_init(data, 4, MPI_INT, 0, 0, SELF, &r[1]);
  MPI_Rsend_init(data, 4, MPI_INT, 0, 0, SELF, &r[2]);
  MPI_Start(&r[0]);
  MPI_Start(&r[1]);
  MPI_Waitall(2, r, s);
  MPI_Start(&r[0]);
  MPI_Start(&r[2]);
  MPI_Waitall(3, r, s);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
  MPI_Request_free(&r[2]);
}

static void probed_messages(void) {
  MPI_Message message;
  Count size;
  MPI_Isend(data, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Recv(into, 4, MPI_INT, 0, 0, SELF, s);
  MPI_Wait(&r[0], s);
  MPI_Isend(data, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Probe(0, 0, SELF, s);
  MPI_Get_count(s, MPI_INT, &size);
  MPI_Mprobe(0, 0, SELF, &message, s);
  MPI_Mrecv(into, 4, MPI_INT, &message, s);
  MPI_Wait(&r[0], s);
  MPI_Isend(data, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Probe(0, 0, SELF, s);
  MPI_Iprobe(0, 0, SELF, &flag, s);
  MPI_Improbe(0, 0, SELF, &flag, &message, s);
  MPI_Imrecv(into, 4, MPI_INT, &message, &r[1]);
  MPI_Waitall(2, r, s);
}

static void completions(void) {
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Send(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Request_get_status(r[0], &flag, s);
  MPI_Waitany(1, r, &n, s);
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Send(data, 4, MPI_INT, 0, 0, SELF);
  MPI_Waitsome(1, r, &n, which, s);
  MPI_Irecv(into, 4, MPI_INT, 0, 0, SELF, &r[0]);
  MPI_Cancel(&r[0]);
  MPI_Wait(&r[0], s);
  MPI_Test_cancelled(s, &flag);
  /* tests of nothing: what is there is not known */
  MPI_Test(&r[0], &flag, s);
  MPI_Testall(1, r, &flag, s);
  MPI_Testany(1, r, &n, &flag, s);
  MPI_Testsome(1, r, &n, which, s);
}

static void exchanges(void) {
  MPI_Sendrecv(data, 4, MPI_INT, other, 0, into, 4, MPI_INT, other, 0, WORLD, s);
  MPI_Sendrecv_replace(into, 4, MPI_INT, other, 0, other, 0, WORLD, s);
#ifdef HAS_MPI_4
  MPI_Isendrecv(data, 4, MPI_INT, other, 0, into, 4, MPI_INT, other, 0, WORLD, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_Isendrecv_replace(into, 4, MPI_INT, other, 0, other, 0, WORLD, &r[0]);
  MPI_Wait(&r[0], s);
#endif
}

static void partitioned_sends(void) {
#ifdef HAS_MPI_4
  MPI_Psend_init(data, 8, 2, MPI_INT, other, 0, WORLD, MPI_INFO_NULL, &r[0]);
  MPI_Precv_init(into, 8, 2, MPI_INT, other, 0, WORLD, MPI_INFO_NULL, &r[1]);
  MPI_Startall(2, r);
  MPI_Pready(0, r[0]);
  MPI_Pready_range(1, 5, r[0]);
  MPI_Pready_list(2, (int[]){7, 6}, r[0]);
  MPI_Parrived(r[1], 0, &flag);
  MPI_Waitall(2, r, s);
  MPI_Request_free(&r[0]);
  MPI_Request_free(&r[1]);
#endif
}

static void messages(void) {
  void* detached;
  Count size;
  MPI_Buffer_attach(room, sizeof room);
  blocking_sends();
  nonblocking_sends();
  persistent_sends();
  probed_messages();
  completions();
  exchanges();
  partitioned_sends();
  MPI_Buffer_detach(&detached, &size);
}

static int query(void* extra, MPI_Status* status) {
  (void)extra;
  status->MPI_SOURCE = status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int forget(void* extra) { return (void)extra, MPI_SUCCESS; }
static int cancel(void* extra, int complete) { return (void)extra, (void)complete, MPI_SUCCESS; }

static void statuses(void) {
  Count size;
  MPI_Count large;
  MPI_Grequest_start(query, forget, cancel, NULL, &r[0]);
  MPI_Grequest_complete(r[0]);
  MPI_Wait(&r[0], s);
  MPI_Status_set_elements(s, MPI_INT, 3);
  MPI_Status_set_elements_x(s, MPI_INT, 3);
  MPI_Status_set_cancelled(s, 0);
  MPI_Get_elements(s, MPI_INT, &size);
  MPI_Get_elements_x(s, MPI_INT, &large);
}
