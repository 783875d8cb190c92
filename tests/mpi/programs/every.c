/* SPDX-License-Identifier: Apache-2.0
 * Every procedure of the C interface, on 2 ranks.  Each call in this text is made exactly once by each rank, so that
 * the text itself says how often a procedure is called: no call stands in a loop, a macro or behind an `if`.
 * With -DLARGE the procedures that have a large-count form are that form (test_every.py renames them). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
#define HAS_MPI_4
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
#define HAS_MPI_4_1
#endif

#ifdef LARGE
typedef MPI_Count Count; /* elements, and displacements in elements in a datatype */
typedef MPI_Aint Place;  /* displacements in elements in a collective */
typedef MPI_Count Far;   /* displacements in bytes in a datatype */
typedef MPI_Aint Unit;   /* a displacement unit */
#else
typedef int Count;
typedef int Place;
typedef MPI_Aint Far;
typedef int Unit;
#endif

#define WORLD MPI_COMM_WORLD
#define SELF MPI_COMM_SELF

static int rank, other, flag, n, which[4];
static int data[64], into[64];
static char text[1024], room[4096];
static MPI_Request r[4];
static MPI_Status s[4];
static Count const two[2] = {2, 2};
static Place const places[2] = {0, 2};
static Place const bytes[2] = {0, 8};

static void messages(void) {
  MPI_Message message;
  void* detached;
  Count size;
  MPI_Buffer_attach(room, sizeof room);
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
  MPI_Sendrecv(data, 4, MPI_INT, other, 0, into, 4, MPI_INT, other, 0, WORLD, s);
  MPI_Sendrecv_replace(into, 4, MPI_INT, other, 0, other, 0, WORLD, s);
#ifdef HAS_MPI_4
  MPI_Isendrecv(data, 4, MPI_INT, other, 0, into, 4, MPI_INT, other, 0, WORLD, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_Isendrecv_replace(into, 4, MPI_INT, other, 0, other, 0, WORLD, &r[0]);
  MPI_Wait(&r[0], s);
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

static void collectives(void) {
  MPI_Datatype const types[2] = {MPI_INT, MPI_INT};
  MPI_Barrier(WORLD);
  MPI_Bcast(data, 4, MPI_INT, 0, WORLD);
  MPI_Gather(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD);
  MPI_Gatherv(data, 2, MPI_INT, into, two, places, MPI_INT, 0, WORLD);
  MPI_Scatter(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD);
  MPI_Scatterv(data, two, places, MPI_INT, into, 2, MPI_INT, 0, WORLD);
  MPI_Allgather(data, 2, MPI_INT, into, 2, MPI_INT, WORLD);
  MPI_Allgatherv(data, 2, MPI_INT, into, two, places, MPI_INT, WORLD);
  MPI_Alltoall(data, 2, MPI_INT, into, 2, MPI_INT, WORLD);
  MPI_Alltoallv(data, two, places, MPI_INT, into, two, places, MPI_INT, WORLD);
  MPI_Alltoallw(data, two, bytes, types, into, two, bytes, types, WORLD);
  MPI_Reduce(data, into, 4, MPI_INT, MPI_SUM, 0, WORLD);
  MPI_Allreduce(data, into, 4, MPI_INT, MPI_SUM, WORLD);
  MPI_Reduce_scatter(data, into, two, MPI_INT, MPI_SUM, WORLD);
  MPI_Reduce_scatter_block(data, into, 2, MPI_INT, MPI_SUM, WORLD);
  MPI_Scan(data, into, 4, MPI_INT, MPI_SUM, WORLD);
  MPI_Exscan(data, into, 4, MPI_INT, MPI_SUM, WORLD);

  MPI_Ibarrier(WORLD, r);
  MPI_Wait(r, s);
  MPI_Ibcast(data, 4, MPI_INT, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Igather(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Igatherv(data, 2, MPI_INT, into, two, places, MPI_INT, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iscatter(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iscatterv(data, two, places, MPI_INT, into, 2, MPI_INT, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iallgather(data, 2, MPI_INT, into, 2, MPI_INT, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iallgatherv(data, 2, MPI_INT, into, two, places, MPI_INT, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ialltoall(data, 2, MPI_INT, into, 2, MPI_INT, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ialltoallv(data, two, places, MPI_INT, into, two, places, MPI_INT, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ialltoallw(data, two, bytes, types, into, two, bytes, types, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ireduce(data, into, 4, MPI_INT, MPI_SUM, 0, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iallreduce(data, into, 4, MPI_INT, MPI_SUM, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ireduce_scatter(data, into, two, MPI_INT, MPI_SUM, WORLD, r);
  MPI_Wait(r, s);
  MPI_Ireduce_scatter_block(data, into, 2, MPI_INT, MPI_SUM, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iscan(data, into, 4, MPI_INT, MPI_SUM, WORLD, r);
  MPI_Wait(r, s);
  MPI_Iexscan(data, into, 4, MPI_INT, MPI_SUM, WORLD, r);
  MPI_Wait(r, s);
}

static void persistent_collectives(void) {
#ifdef HAS_MPI_4
  MPI_Datatype const types[2] = {MPI_INT, MPI_INT};
  MPI_Barrier_init(WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Bcast_init(data, 4, MPI_INT, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Gather_init(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Gatherv_init(data, 2, MPI_INT, into, two, places, MPI_INT, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Scatter_init(data, 2, MPI_INT, into, 2, MPI_INT, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Scatterv_init(data, two, places, MPI_INT, into, 2, MPI_INT, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Allgather_init(data, 2, MPI_INT, into, 2, MPI_INT, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Allgatherv_init(data, 2, MPI_INT, into, two, places, MPI_INT, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Alltoall_init(data, 2, MPI_INT, into, 2, MPI_INT, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Alltoallv_init(data, two, places, MPI_INT, into, two, places, MPI_INT, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Alltoallw_init(data, two, bytes, types, into, two, bytes, types, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Reduce_init(data, into, 4, MPI_INT, MPI_SUM, 0, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Allreduce_init(data, into, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Reduce_scatter_init(data, into, two, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Reduce_scatter_block_init(data, into, 2, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Scan_init(data, into, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
  MPI_Exscan_init(data, into, 4, MPI_INT, MPI_SUM, WORLD, MPI_INFO_NULL, r);
  MPI_Start(r);
  MPI_Wait(r, s);
  MPI_Request_free(r);
#endif
}

static void topologies(void) {
  MPI_Comm ring, part, graph, near;
  int dims[1] = {0}, yes[1] = {1}, index[2] = {1, 2}, edges[2] = {1, 0}, position[2], weight[1] = {3};
  MPI_Datatype const types[1] = {MPI_INT};
  Count const one[1] = {2};
  Place const start[1] = {0};
  MPI_Aint const origin[1] = {0};
  MPI_Dims_create(2, 1, dims);
  MPI_Cart_create(WORLD, 1, dims, yes, 0, &ring);
  MPI_Cartdim_get(ring, &n);
  MPI_Cart_get(ring, 1, dims, yes, position);
  MPI_Cart_coords(ring, rank, 1, position);
  MPI_Cart_rank(ring, position, &n);
  MPI_Cart_shift(ring, 0, 1, &position[0], &position[1]);
  MPI_Cart_map(WORLD, 1, dims, yes, &n);
  MPI_Cart_sub(ring, yes, &part);
  MPI_Comm_free(&part);
  MPI_Comm_free(&ring);
  MPI_Graph_create(WORLD, 2, index, edges, 0, &graph);
  MPI_Graphdims_get(graph, &position[0], &position[1]);
  MPI_Graph_get(graph, 2, 2, index, edges);
  MPI_Graph_map(WORLD, 2, index, edges, &n);
  MPI_Graph_neighbors_count(graph, rank, &n);
  MPI_Graph_neighbors(graph, rank, 1, position);
  MPI_Topo_test(graph, &n);
  MPI_Comm_free(&graph);
  MPI_Dist_graph_create(WORLD, 1, &rank, (int[]){1}, &other, weight, MPI_INFO_NULL, 0, &near);
  MPI_Comm_free(&near);
  MPI_Dist_graph_create_adjacent(WORLD, 1, &other, weight, 1, &other, weight, MPI_INFO_NULL, 0, &near);
  MPI_Dist_graph_neighbors_count(near, &position[0], &position[1], &n);
  MPI_Dist_graph_neighbors(near, 1, position, weight, 1, position, weight);
  MPI_Neighbor_allgather(data, 2, MPI_INT, into, 2, MPI_INT, near);
  MPI_Neighbor_allgatherv(data, 2, MPI_INT, into, one, start, MPI_INT, near);
  MPI_Neighbor_alltoall(data, 2, MPI_INT, into, 2, MPI_INT, near);
  MPI_Neighbor_alltoallv(data, one, start, MPI_INT, into, one, start, MPI_INT, near);
  MPI_Neighbor_alltoallw(data, one, origin, types, into, one, origin, types, near);
  MPI_Ineighbor_allgather(data, 2, MPI_INT, into, 2, MPI_INT, near, r);
  MPI_Wait(r, s);
  MPI_Ineighbor_allgatherv(data, 2, MPI_INT, into, one, start, MPI_INT, near, r);
  MPI_Wait(r, s);
  MPI_Ineighbor_alltoall(data, 2, MPI_INT, into, 2, MPI_INT, near, r);
  MPI_Wait(r, s);
  MPI_Ineighbor_alltoallv(data, one, start, MPI_INT, into, one, start, MPI_INT, near, r);
  MPI_Wait(r, s);
  MPI_Ineighbor_alltoallw(data, one, origin, types, into, one, origin, types, near, r);
  MPI_Wait(r, s);
#ifdef HAS_MPI_4
  MPI_Neighbor_allgather_init(data, 2, MPI_INT, into, 2, MPI_INT, near, MPI_INFO_NULL, r);
  MPI_Request_free(r);
  MPI_Neighbor_allgatherv_init(data, 2, MPI_INT, into, one, start, MPI_INT, near, MPI_INFO_NULL, r);
  MPI_Request_free(r);
  MPI_Neighbor_alltoall_init(data, 2, MPI_INT, into, 2, MPI_INT, near, MPI_INFO_NULL, r);
  MPI_Request_free(r);
  MPI_Neighbor_alltoallv_init(data, one, start, MPI_INT, into, one, start, MPI_INT, near, MPI_INFO_NULL, r);
  MPI_Request_free(r);
  MPI_Neighbor_alltoallw_init(data, one, origin, types, into, one, origin, types, near, MPI_INFO_NULL, r);
  MPI_Request_free(r);
#endif
  MPI_Comm_free(&near);
}

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

static void transfers(void) {
  MPI_File file;
  MPI_Offset offset;
  MPI_Group group;
  MPI_Info info;
  MPI_Datatype kind, part;
  Far extent;
  MPI_File_open(WORLD, "every.dat", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  MPI_File_set_size(file, 4096);
  MPI_File_preallocate(file, 4096);
  MPI_File_get_size(file, &offset);
  MPI_File_get_group(file, &group);
  MPI_Group_free(&group);
  MPI_File_get_amode(file, &n);
  MPI_File_get_info(file, &info);
  MPI_File_set_info(file, info);
  MPI_Info_free(&info);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_get_view(file, &offset, &kind, &part, text);
  MPI_File_get_type_extent(file, MPI_INT, &extent);
  MPI_File_get_atomicity(file, &flag);
  MPI_File_set_atomicity(file, 0);
  MPI_File_write_at(file, 8 * rank, data, 4, MPI_INT, s);
  MPI_File_read_at(file, 8 * rank, into, 4, MPI_INT, s);
  MPI_File_write_at_all(file, 8 * rank, data, 4, MPI_INT, s);
  MPI_File_read_at_all(file, 8 * rank, into, 4, MPI_INT, s);
  MPI_File_iwrite_at(file, 8 * rank, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_at(file, 8 * rank, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iwrite_at_all(file, 8 * rank, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_at_all(file, 8 * rank, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_seek(file, 8 * rank, MPI_SEEK_SET);
  MPI_File_write(file, data, 4, MPI_INT, s);
  MPI_File_get_position(file, &offset);
  MPI_File_get_byte_offset(file, offset, &offset);
  MPI_File_seek(file, 8 * rank, MPI_SEEK_SET);
  MPI_File_read(file, into, 4, MPI_INT, s);
  MPI_File_write_all(file, data, 4, MPI_INT, s);
  MPI_File_read_all(file, into, 4, MPI_INT, s);
  MPI_File_iwrite(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iwrite_all(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_all(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_write_all_begin(file, data, 4, MPI_INT);
  MPI_File_write_all_end(file, data, s);
  MPI_File_read_all_begin(file, into, 4, MPI_INT);
  MPI_File_read_all_end(file, into, s);
  MPI_File_write_at_all_begin(file, 8 * rank, data, 4, MPI_INT);
  MPI_File_write_at_all_end(file, data, s);
  MPI_File_read_at_all_begin(file, 8 * rank, into, 4, MPI_INT);
  MPI_File_read_at_all_end(file, into, s);
  MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
  MPI_File_write_shared(file, data, 4, MPI_INT, s);
  MPI_File_read_shared(file, into, 4, MPI_INT, s);
  MPI_File_iwrite_shared(file, data, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_iread_shared(file, into, 4, MPI_INT, &r[0]);
  MPI_Wait(&r[0], s);
  MPI_File_write_ordered(file, data, 4, MPI_INT, s);
  MPI_File_read_ordered(file, into, 4, MPI_INT, s);
  MPI_File_write_ordered_begin(file, data, 4, MPI_INT);
  MPI_File_write_ordered_end(file, data, s);
  MPI_File_read_ordered_begin(file, into, 4, MPI_INT);
  MPI_File_read_ordered_end(file, into, s);
  MPI_File_get_position_shared(file, &offset);
  MPI_File_sync(file);
  MPI_File_close(&file);
  MPI_File_delete("every.dat", MPI_INFO_NULL); /* on one of both ranks it is gone already: an error is a call as well */
}

static int copies(MPI_Comm from, int key, void* extra, void* in, void* out, int* yes) {
  (void)from, (void)key, (void)extra, (void)in, (void)out;
  return *yes = 0, MPI_SUCCESS;
}
static void handled(MPI_Comm* comm, int* code, ...) { (void)comm, (void)code; }
static void handled_win(MPI_Win* win, int* code, ...) { (void)win, (void)code; }
static void handled_file(MPI_File* file, int* code, ...) { (void)file, (void)code; }

static void communicators(void) {
  MPI_Comm comm, half, between, merged;
  MPI_Group group, some;
  MPI_Info info;
  MPI_Errhandler handler;
  void* value;
  int key, key_of_old;
  MPI_Comm_size(WORLD, &n);
  MPI_Comm_group(WORLD, &group);
  MPI_Comm_create(WORLD, group, &comm);
  MPI_Comm_compare(WORLD, comm, &n);
  MPI_Comm_free(&comm);
  MPI_Comm_create_group(WORLD, group, 3, &comm);
  MPI_Comm_free(&comm);
  MPI_Group_free(&group);
  MPI_Comm_split(WORLD, rank, 0, &half);
  MPI_Comm_split_type(WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
  MPI_Comm_free(&comm);
  MPI_Comm_dup(WORLD, &comm);
  MPI_Comm_set_name(comm, "a name");
  MPI_Comm_get_name(comm, text, &n);
  MPI_Comm_get_info(comm, &info);
  MPI_Comm_set_info(comm, info);
  MPI_Comm_disconnect(&comm);
  MPI_Comm_dup_with_info(WORLD, info, &comm);
  MPI_Info_free(&info);
  MPI_Comm_free(&comm);
  MPI_Comm_idup(WORLD, &comm, &r[0]);
  MPI_Wait(&r[0], s);
#ifdef HAS_MPI_4
  MPI_Comm_free(&comm);
  MPI_Comm_idup_with_info(WORLD, MPI_INFO_NULL, &comm, &r[0]);
  MPI_Wait(&r[0], s);
#endif
  MPI_Intercomm_create(half, 0, WORLD, other, 5, &between);
  MPI_Comm_test_inter(between, &flag);
  MPI_Comm_remote_size(between, &n);
  MPI_Comm_remote_group(between, &some);
  MPI_Group_free(&some);
  MPI_Intercomm_merge(between, rank, &merged);
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_get_parent(&between);
  MPI_Comm_create_keyval(copies, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(comm, key, NULL);
  MPI_Comm_get_attr(comm, key, &value, &flag);
  MPI_Comm_delete_attr(comm, key);
  MPI_Comm_free_keyval(&key);
  MPI_Keyval_create(copies, MPI_NULL_DELETE_FN, &key_of_old, NULL);
  MPI_Attr_put(comm, key_of_old, NULL);
  MPI_Attr_get(comm, key_of_old, &value, &flag);
  MPI_Attr_delete(comm, key_of_old);
  MPI_Keyval_free(&key_of_old);
  MPI_Comm_create_errhandler(handled, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_Comm_get_errhandler(comm, &handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&half);
  MPI_Comm_free(&comm);
#ifdef HAS_MPI_4
  MPI_Comm_group(WORLD, &group);
  MPI_Comm_create_from_group(group, "every", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
  MPI_Comm_free(&comm);
  MPI_Group_incl(group, 1, &rank, &some);
  MPI_Group mates;
  MPI_Group_incl(group, 1, &other, &mates);
  MPI_Intercomm_create_from_groups(some, 0, mates, 0, "both", MPI_INFO_NULL, MPI_ERRORS_RETURN, &between);
  MPI_Comm_free(&between);
  MPI_Group_free(&some);
  MPI_Group_free(&mates);
  MPI_Group_free(&group);
#endif
}

static void window_and_file_handlers(void) {
  MPI_Win win;
  MPI_File file;
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
  snprintf(text, sizeof text, "every.%d", rank);
  MPI_File_open(SELF, text, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  MPI_File_create_errhandler(handled_file, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_File_call_errhandler(file, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_File_get_errhandler(file, &handler);
  MPI_Errhandler_free(&handler);
  MPI_File_close(&file);
}

static void groups(void) {
  MPI_Group all, none, some;
  int range[1][3] = {{0, 0, 1}};
  MPI_Comm_group(WORLD, &all);
  MPI_Group_size(all, &n);
  MPI_Group_rank(all, &n);
  MPI_Group_excl(all, 1, &rank, &some);
  MPI_Group_translate_ranks(all, 1, &other, some, &n);
  MPI_Group_compare(all, some, &n);
  MPI_Group_union(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_intersection(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_difference(all, some, &none);
  MPI_Group_free(&none);
  MPI_Group_free(&some);
  MPI_Group_range_incl(all, 1, range, &some);
  MPI_Group_free(&some);
  MPI_Group_range_excl(all, 1, range, &some);
  MPI_Group_free(&some);
  MPI_Group_free(&all);
}

#ifdef LARGE
static void adds(void* in, void* inout, MPI_Count* count, MPI_Datatype* type)
#else
static void adds(void* in, void* inout, int* count, MPI_Datatype* type)
#endif
{
  (void)type;
  for (int i = 0; i < *count; ++i) ((int*)inout)[i] += ((int*)in)[i];
}

static int extent_of(MPI_Datatype type, MPI_Aint* extent, void* extra) {
  (void)type, (void)extra;
  return *extent = 4, MPI_SUCCESS;
}

static void datatypes(void) {
  MPI_Datatype type, made, parts[2] = {MPI_INT, MPI_CHAR};
  Count const lengths[2] = {1, 2}, elements[2] = {0, 4}, sizes[2] = {4, 4}, subsizes[2] = {2, 2}, starts[2] = {1, 1};
  Far const offsets[2] = {0, 16};
  Far low, extent;
  Count size, position = 0;
  MPI_Count large, larger;
  MPI_Aint address;
  MPI_Op op;
  void* value;
  int key;
  MPI_Type_contiguous(3, MPI_INT, &type);
  MPI_Type_commit(&type);
  MPI_Type_set_name(type, "three");
  MPI_Type_get_name(type, text, &n);
  MPI_Type_size(type, &size);
  MPI_Type_size_x(type, &large);
  MPI_Type_get_extent(type, &low, &extent);
  MPI_Type_get_extent_x(type, &large, &larger);
  MPI_Type_get_true_extent(type, &low, &extent);
  MPI_Type_get_true_extent_x(type, &large, &larger);
#ifdef LARGE
  MPI_Count counts[4], contents[4];
  MPI_Aint addresses[1];
  MPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &counts[3], &n);
  MPI_Type_get_contents(type, counts[0], counts[1], counts[2], counts[3], which, addresses, contents, &made);
#else
  int counts[3];
  MPI_Aint addresses[1];
  MPI_Type_get_envelope(type, &counts[0], &counts[1], &counts[2], &n);
  MPI_Type_get_contents(type, counts[0], counts[1], counts[2], which, addresses, &made);
#endif
  MPI_Type_dup(type, &made);
  MPI_Type_free(&made);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
  MPI_Type_set_attr(type, key, NULL);
  MPI_Type_get_attr(type, key, &value, &flag);
  MPI_Type_delete_attr(type, key);
  MPI_Type_free_keyval(&key);
  MPI_Type_free(&type);
  MPI_Type_vector(2, 1, 2, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hvector(2, 1, 16, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_indexed(2, lengths, elements, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hindexed(2, lengths, offsets, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_indexed_block(2, 1, elements, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_hindexed_block(2, 1, offsets, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_struct(2, lengths, offsets, parts, &type);
  MPI_Type_free(&type);
  MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_darray(1, 0, 1, sizes, (int[]){MPI_DISTRIBUTE_BLOCK}, (int[]){MPI_DISTRIBUTE_DFLT_DARG}, (int[]){1},
                         MPI_ORDER_C, MPI_INT, &type);
  MPI_Type_free(&type);
  MPI_Type_create_resized(MPI_INT, 0, 16, &type);
  MPI_Type_free(&type);
  MPI_Type_create_f90_integer(5, &type);
  MPI_Type_create_f90_real(6, 30, &type);
  MPI_Type_create_f90_complex(6, 30, &type);
  MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, &type);
  MPI_Get_address(room, &address);
  MPI_Pack_size(2, MPI_INT, WORLD, &size);
  MPI_Pack(data, 2, MPI_INT, room, sizeof room, &position, WORLD);
  position = 0;
  MPI_Unpack(room, sizeof room, &position, into, 2, MPI_INT, WORLD);
#ifdef LARGE
  Count* const at = &position;
#else
  MPI_Aint at[1];
#endif
  *at = 0;
  MPI_Pack_external_size("external32", 2, MPI_INT, at);
  *at = 0;
  MPI_Pack_external("external32", data, 2, MPI_INT, room, sizeof room, at);
  *at = 0;
  MPI_Unpack_external("external32", room, sizeof room, at, into, 2, MPI_INT);
  MPI_Op_create(adds, 1, &op);
  MPI_Op_commutative(op, &flag);
  MPI_Reduce_local(data, into, 2, MPI_INT, op);
  MPI_Op_free(&op);
#ifdef LARGE
  MPI_Register_datarep("every", MPI_CONVERSION_FN_NULL_C, MPI_CONVERSION_FN_NULL_C, extent_of, NULL);
#else
  MPI_Register_datarep("every", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, NULL);
#endif
}

static void environment(void) {
  MPI_Info info, copy;
  int code, class;
  MPI_Info_create(&info);
  MPI_Info_set(info, "key", "value");
  MPI_Info_get(info, "key", sizeof text - 1, text, &flag);
  MPI_Info_get_nkeys(info, &n);
  MPI_Info_get_nthkey(info, 0, text);
  MPI_Info_get_valuelen(info, "key", &n, &flag);
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(copy, "key");
  MPI_Info_free(&copy);
  MPI_Info_free(&info);
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  MPI_Add_error_string(code, "our own");
  MPI_Error_class(code, &class);
  MPI_Error_string(code, text, &n);
  MPI_Get_processor_name(text, &n);
  MPI_Is_thread_main(&flag);
  MPI_Query_thread(&n);
#ifdef HAS_MPI_4
  n = sizeof text;
  MPI_Info_create_env(0, NULL, &info);
  MPI_Info_get_string(info, "command", &n, text, &flag);
  MPI_Info_free(&info);
#endif
}

#ifdef HAS_MPI_4
static void handled_session(MPI_Session* session, int* code, ...) { (void)session, (void)code; }
#endif

static void sessions(void) {
#ifdef HAS_MPI_4
  MPI_Session session;
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group group;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_create_errhandler(handled_session, &handler);
  MPI_Session_set_errhandler(session, handler);
  MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
  MPI_Errhandler_free(&handler);
  MPI_Session_get_errhandler(session, &handler);
  MPI_Errhandler_free(&handler);
  MPI_Session_get_info(session, &info);
  MPI_Info_free(&info);
  MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
  n = sizeof text;
  MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &n, text);
  MPI_Session_get_pset_info(session, "mpi://WORLD", &info);
  MPI_Info_free(&info);
  MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
  MPI_Group_free(&group);
  MPI_Session_finalize(&session);
#endif
}

static void newest(void) {
#ifdef HAS_MPI_4_1
  void* detached;
  Count size;
  int class, code;
  MPI_Session session;
  MPI_Info info;
  MPI_Datatype pair;
  MPI_Comm_attach_buffer(WORLD, room, sizeof room);
  MPI_Bsend(data, 4, MPI_INT, other, 0, WORLD);
  MPI_Recv(into, 4, MPI_INT, other, 0, WORLD, s);
  MPI_Comm_flush_buffer(WORLD);
  MPI_Comm_iflush_buffer(WORLD, r);
  MPI_Wait(r, s);
  MPI_Comm_detach_buffer(WORLD, &detached, &size);
  MPI_Buffer_attach(room, sizeof room);
  MPI_Buffer_flush();
  MPI_Buffer_iflush(r);
  MPI_Wait(r, s);
  MPI_Buffer_detach(&detached, &size);
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
  MPI_Session_attach_buffer(session, room, sizeof room);
  MPI_Session_flush_buffer(session);
  MPI_Session_iflush_buffer(session, r);
  MPI_Wait(r, s);
  MPI_Session_detach_buffer(session, &detached, &size);
  MPI_Session_finalize(&session);
  MPI_Irecv(into, 4, MPI_INT, other, 0, WORLD, r);
  MPI_Send(data, 4, MPI_INT, other, 0, WORLD);
  MPI_Request_get_status_all(1, r, &flag, s);
  MPI_Request_get_status_any(1, r, &n, &flag, s);
  MPI_Request_get_status_some(1, r, &n, which, s);
  MPI_Wait(r, s);
  MPI_Status_set_source(s, 3);
  MPI_Status_set_tag(s, 4);
  MPI_Status_set_error(s, MPI_SUCCESS);
  MPI_Status_get_source(s, &n);
  MPI_Status_get_tag(s, &n);
  MPI_Status_get_error(s, &n);
  MPI_Add_error_class(&class);
  MPI_Add_error_code(class, &code);
  MPI_Add_error_string(code, "for a while");
  MPI_Remove_error_string(code);
  MPI_Remove_error_code(code);
  MPI_Remove_error_class(class);
  MPI_Get_hw_resource_info(&info);
  MPI_Info_free(&info);
  MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &pair);
#endif
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_set_errhandler(WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(SELF, MPI_ERRORS_RETURN);
  other = 1 - rank;
  for (int i = 0; i < 64; ++i) data[i] = 64 * rank + i;
  void (*const chapters[])(void) = {
      messages,      statuses, collectives, persistent_collectives,   topologies,  windows,  transfers,
      communicators, groups,   datatypes,   window_and_file_handlers, environment, sessions, newest};
  for (size_t i = 0; i < sizeof chapters / sizeof *chapters; ++i) chapters[i]();
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += into[i];
  printf("rank %d: %d\n", rank, sum);
  MPI_Finalize();
  return 0;
}
