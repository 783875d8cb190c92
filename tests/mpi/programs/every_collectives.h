/* SPDX-License-Identifier: Apache-2.0
 * Collectives of every.c: blocking, nonblocking, persistent, and those of neighbours. */
#pragma once

#include "every.h"

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

static void persistent_data_movement(void) {
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
#endif
}

static void persistent_reductions(void) {
#ifdef HAS_MPI_4
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

static void persistent_collectives(void) {
  persistent_data_movement();
  persistent_reductions();
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
