// SPDX-License-Identifier: Apache-2.0
#pragma once

// The byte rules of docs/bytes.md.  Called after the MPI call succeeded: only then are its arguments known to be
// valid.  An argument the standard calls not significant is never looked at: it may be garbage.

#include <mpi.h>

#include <cstdint>

#include "core/hot/comm_view.h"
#include "core/hot/key.h"
#include "core/mpi/api.h"

namespace commlens {

using Bytes = std::uint64_t;

struct Volume {
  std::uint32_t bin = 0;
  Bytes sent = 0;
  Bytes received = 0;
};

namespace volume {

inline MPI_Count type_size(MPI_Datatype datatype) noexcept {
#if defined(OPEN_MPI)
  const void* const basic = basic_types.find(reinterpret_cast<std::uint64_t>(datatype));
  if (basic != nullptr) return static_cast<MPI_Count>(reinterpret_cast<std::uintptr_t>(basic));
#else
  // MPICH and its descendants keep the size of a basic type in its handle; half of what a wrapper costs would go into
  // asking.  The macro of that name is not in mpi.h, but the encoding is part of the ABI they share.
  if ((static_cast<std::uint32_t>(datatype) & 0xff000000u) == 0x4c000000u) return (datatype >> 8) & 0xff;
#endif
  MPI_Count size = 0;
  api.Type_size_x(datatype, &size);
  return size;
}

// Count is int or MPI_Count everywhere.
template <class Count>
inline Bytes data(Count count, MPI_Datatype datatype) noexcept {
  if (count <= 0) return 0;  // the datatype of an empty message may be anything
  const MPI_Count size = type_size(datatype);
  return size <= 0 ? 0 : static_cast<Bytes>(count) * static_cast<Bytes>(size);
}

template <class Count>
inline Bytes sum(const Count counts[], MPI_Datatype datatype, int blocks) noexcept {
  MPI_Count total = 0;
  for (int i = 0; i < blocks; ++i) total += counts[i];
  return data(total, datatype);
}

template <class Count>
inline Bytes sum(const Count counts[], const MPI_Datatype datatypes[], int blocks) noexcept {
  Bytes total = 0;
  for (int i = 0; i < blocks; ++i) total += data(counts[i], datatypes[i]);
  return total;
}

inline bool in_place(const void* buffer) noexcept { return buffer == MPI_IN_PLACE; }

inline Bytes times(Bytes block, int blocks) noexcept { return block * static_cast<Bytes>(blocks); }

// What this process is in a rooted collective.
enum class Role { root, other, bystander };

inline Role role(const CommView& c, int root) noexcept {
  if (!c.inter) return root == c.rank ? Role::root : Role::other;
  if (root == MPI_ROOT) return Role::root;
  return root == MPI_PROC_NULL ? Role::bystander : Role::other;
}

// ---- point-to-point ----

template <class Count>
inline Volume send(const CommView&, Count count, MPI_Datatype datatype, int dest) noexcept {
  const Bytes block = data(count, datatype);
  return {bin_of(block), dest == MPI_PROC_NULL ? 0 : block, 0};
}

// What arrives is in the status.
template <class Count>
inline Volume receive(const CommView&, Count count, MPI_Datatype datatype) noexcept {
  return {bin_of(data(count, datatype)), 0, 0};
}

template <class Count>
inline Volume partitioned_send(const CommView&, int partitions, Count count, MPI_Datatype datatype, int dest) noexcept {
  const Bytes block = times(data(count, datatype), partitions);
  return {bin_of(block), dest == MPI_PROC_NULL ? 0 : block, 0};
}

template <class Count>
inline Volume partitioned_receive(const CommView&, int partitions, Count count, MPI_Datatype datatype) noexcept {
  return {bin_of(times(data(count, datatype), partitions)), 0, 0};
}

// ---- collectives ----

template <class Count>
inline Volume bcast(const CommView& c, Count count, MPI_Datatype datatype, int root) noexcept {
  const Role r = role(c, root);
  if (r == Role::bystander) return {};
  const Bytes block = data(count, datatype);
  return {bin_of(block), r == Role::root ? block : 0, r == Role::root ? 0 : block};
}

template <class Count>
inline Volume gather(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                     MPI_Datatype recvtype, int root) noexcept {
  switch (role(c, root)) {
    case Role::bystander: return {};
    case Role::other: {
      const Bytes block = data(sendcount, sendtype);
      return {bin_of(block), block, 0};
    }
    case Role::root: break;
  }
  const Bytes received = data(recvcount, recvtype);
  if (c.inter) return {bin_of(received), 0, times(received, c.blocks)};
  const Bytes block = in_place(sendbuf) ? received : data(sendcount, sendtype);
  return {bin_of(block), block, times(received, c.blocks)};
}

template <class Count>
inline Volume gatherv(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                      const Count recvcounts[], MPI_Datatype recvtype, int root) noexcept {
  switch (role(c, root)) {
    case Role::bystander: return {v_bin, 0, 0};
    case Role::other: return {v_bin, data(sendcount, sendtype), 0};
    case Role::root: break;
  }
  const Bytes received = sum(recvcounts, recvtype, c.blocks);
  if (c.inter) return {v_bin, 0, received};
  return {v_bin, in_place(sendbuf) ? data(recvcounts[c.rank], recvtype) : data(sendcount, sendtype), received};
}

template <class Count>
inline Volume scatter(const CommView& c, Count sendcount, MPI_Datatype sendtype, const void* recvbuf, Count recvcount,
                      MPI_Datatype recvtype, int root) noexcept {
  switch (role(c, root)) {
    case Role::bystander: return {};
    case Role::other: {
      const Bytes block = data(recvcount, recvtype);
      return {bin_of(block), 0, block};
    }
    case Role::root: break;
  }
  const Bytes sent = data(sendcount, sendtype);
  if (c.inter) return {bin_of(sent), times(sent, c.blocks), 0};
  const Bytes block = in_place(recvbuf) ? sent : data(recvcount, recvtype);
  return {bin_of(block), times(sent, c.blocks), block};
}

template <class Count>
inline Volume scatterv(const CommView& c, const Count sendcounts[], MPI_Datatype sendtype, const void* recvbuf,
                       Count recvcount, MPI_Datatype recvtype, int root) noexcept {
  switch (role(c, root)) {
    case Role::bystander: return {v_bin, 0, 0};
    case Role::other: return {v_bin, 0, data(recvcount, recvtype)};
    case Role::root: break;
  }
  const Bytes sent = sum(sendcounts, sendtype, c.blocks);
  if (c.inter) return {v_bin, sent, 0};
  return {v_bin, sent, in_place(recvbuf) ? data(sendcounts[c.rank], sendtype) : data(recvcount, recvtype)};
}

template <class Count>
inline Volume allgather(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                        MPI_Datatype recvtype) noexcept {
  const Bytes received = data(recvcount, recvtype);
  const Bytes block = in_place(sendbuf) ? received : data(sendcount, sendtype);
  return {bin_of(block), block, times(received, c.blocks)};
}

template <class Count>
inline Volume allgatherv(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                         const Count recvcounts[], MPI_Datatype recvtype) noexcept {
  const Bytes block = in_place(sendbuf) ? data(recvcounts[c.rank], recvtype) : data(sendcount, sendtype);
  return {v_bin, block, sum(recvcounts, recvtype, c.blocks)};
}

template <class Count>
inline Volume alltoall(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                       MPI_Datatype recvtype) noexcept {
  const Bytes received = data(recvcount, recvtype);
  const Bytes block = in_place(sendbuf) ? received : data(sendcount, sendtype);
  return {bin_of(block), times(block, c.blocks), times(received, c.blocks)};
}

template <class Count>
inline Volume alltoallv(const CommView& c, const void* sendbuf, const Count sendcounts[], MPI_Datatype sendtype,
                        const Count recvcounts[], MPI_Datatype recvtype) noexcept {
  const Bytes received = sum(recvcounts, recvtype, c.blocks);
  return {v_bin, in_place(sendbuf) ? received : sum(sendcounts, sendtype, c.blocks), received};
}

template <class Count>
inline Volume alltoallw(const CommView& c, const void* sendbuf, const Count sendcounts[],
                        const MPI_Datatype sendtypes[], const Count recvcounts[],
                        const MPI_Datatype recvtypes[]) noexcept {
  const Bytes received = sum(recvcounts, recvtypes, c.blocks);
  return {v_bin, in_place(sendbuf) ? received : sum(sendcounts, sendtypes, c.blocks), received};
}

template <class Count>
inline Volume reduce(const CommView& c, Count count, MPI_Datatype datatype, int root) noexcept {
  const Role r = role(c, root);
  if (r == Role::bystander) return {};
  const Bytes vector = data(count, datatype);
  const bool sends = !(c.inter && r == Role::root);
  return {bin_of(vector), sends ? vector : 0, r == Role::root ? vector : 0};
}

template <class Count>
inline Volume allreduce(const CommView&, Count count, MPI_Datatype datatype) noexcept {
  const Bytes vector = data(count, datatype);
  return {bin_of(vector), vector, vector};
}

template <class Count>
inline Volume exscan(const CommView& c, Count count, MPI_Datatype datatype) noexcept {
  const Bytes vector = data(count, datatype);
  return {bin_of(vector), vector, c.rank == 0 ? 0 : vector};
}

template <class Count>
inline Volume reduce_scatter(const CommView& c, const Count recvcounts[], MPI_Datatype datatype) noexcept {
  return {v_bin, sum(recvcounts, datatype, c.size), data(recvcounts[c.rank], datatype)};
}

template <class Count>
inline Volume reduce_scatter_block(const CommView& c, Count recvcount, MPI_Datatype datatype) noexcept {
  const Bytes block = data(recvcount, datatype);
  return {bin_of(block), times(block, c.size), block};
}

// ---- neighbourhood collectives: blocks towards MPI_PROC_NULL, at the border of a grid, do not move ----

inline bool present(const CommView& c, int neighbor) noexcept {
  return neighbor >= 64 || ((c.absent >> neighbor) & 1u) == 0;
}

template <class Count>
inline Bytes sum_present(const CommView& c, const Count counts[], MPI_Datatype datatype, int blocks) noexcept {
  MPI_Count total = 0;
  for (int i = 0; i < blocks; ++i) {
    if (present(c, i)) total += counts[i];
  }
  return data(total, datatype);
}

template <class Count>
inline Bytes sum_present(const CommView& c, const Count counts[], const MPI_Datatype datatypes[], int blocks) noexcept {
  Bytes total = 0;
  for (int i = 0; i < blocks; ++i) {
    if (present(c, i)) total += data(counts[i], datatypes[i]);
  }
  return total;
}

template <class Count>
inline Volume neighbor_allgather(const CommView& c, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                                 MPI_Datatype recvtype) noexcept {
  const Bytes block = data(sendcount, sendtype);
  return {bin_of(block), c.destinations > 0 ? block : 0, times(data(recvcount, recvtype), c.sources)};
}

template <class Count>
inline Volume neighbor_allgatherv(const CommView& c, Count sendcount, MPI_Datatype sendtype, const Count recvcounts[],
                                  MPI_Datatype recvtype) noexcept {
  return {v_bin, c.destinations > 0 ? data(sendcount, sendtype) : 0,
          sum_present(c, recvcounts, recvtype, c.source_slots)};
}

template <class Count>
inline Volume neighbor_alltoall(const CommView& c, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                                MPI_Datatype recvtype) noexcept {
  const Bytes block = data(sendcount, sendtype);
  return {bin_of(block), times(block, c.destinations), times(data(recvcount, recvtype), c.sources)};
}

template <class Count>
inline Volume neighbor_alltoallv(const CommView& c, const Count sendcounts[], MPI_Datatype sendtype,
                                 const Count recvcounts[], MPI_Datatype recvtype) noexcept {
  return {v_bin, sum_present(c, sendcounts, sendtype, c.destination_slots),
          sum_present(c, recvcounts, recvtype, c.source_slots)};
}

template <class Count>
inline Volume neighbor_alltoallw(const CommView& c, const Count sendcounts[], const MPI_Datatype sendtypes[],
                                 const Count recvcounts[], const MPI_Datatype recvtypes[]) noexcept {
  return {v_bin, sum_present(c, sendcounts, sendtypes, c.destination_slots),
          sum_present(c, recvcounts, recvtypes, c.source_slots)};
}

// ---- one-sided ----

template <class Count>
inline Volume put(const CommView&, Count origin_count, MPI_Datatype origin_datatype, int target_rank) noexcept {
  const Bytes block = data(origin_count, origin_datatype);
  return {bin_of(block), target_rank == MPI_PROC_NULL ? 0 : block, 0};
}

template <class Count>
inline Volume get(const CommView&, Count origin_count, MPI_Datatype origin_datatype, int target_rank) noexcept {
  const Bytes block = data(origin_count, origin_datatype);
  return {bin_of(block), 0, target_rank == MPI_PROC_NULL ? 0 : block};
}

template <class Count>
inline Volume get_accumulate(const CommView&, Count origin_count, MPI_Datatype origin_datatype, Count result_count,
                             MPI_Datatype result_datatype, int target_rank, MPI_Op op) noexcept {
  const Bytes result = data(result_count, result_datatype);
  // With MPI_NO_OP the origin is not significant.
  const Bytes origin = op == api.no_op ? 0 : data(origin_count, origin_datatype);
  const std::uint32_t bin = bin_of(op == api.no_op ? result : origin);
  if (target_rank == MPI_PROC_NULL) return {bin, 0, 0};
  return {bin, origin, result};
}

inline Volume fetch_and_op(const CommView&, MPI_Datatype datatype, int target_rank, MPI_Op op) noexcept {
  const Bytes element = data(1, datatype);
  if (target_rank == MPI_PROC_NULL) return {bin_of(element), 0, 0};
  return {bin_of(element), op == api.no_op ? 0 : element, element};
}

inline Volume compare_and_swap(const CommView&, MPI_Datatype datatype, int target_rank) noexcept {
  const Bytes element = data(1, datatype);
  if (target_rank == MPI_PROC_NULL) return {bin_of(element), 0, 0};
  return {bin_of(element), 2 * element, element};
}

// ---- files ----

template <class Count>
inline Volume write(const CommView&, Count count, MPI_Datatype datatype) noexcept {
  const Bytes block = data(count, datatype);
  return {bin_of(block), block, 0};
}

}  // namespace volume
}  // namespace commlens
