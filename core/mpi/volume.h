// SPDX-License-Identifier: Apache-2.0
#pragma once

// The byte rules of docs/bytes.md.  Called after the MPI call succeeded: only then are its arguments known to be valid.
// Never reads an argument that the standard calls not significant, because it may be garbage.

#include <mpi.h>

#include <algorithm>
#include <cstdint>

#include "core/hot/comm_view.h"
#include "core/hot/key.h"
#include "core/hot/peer_cell.h"
#include "core/mpi/datatypes.h"

// Keeps arguments and objects in the registers of the caller: the address of a Call or Volume never leaves a wrapper.
// Cold paths get the address of a copy.
#define COMMLENS_IN_REGISTERS __attribute__((always_inline)) inline

namespace commlens {

inline bool in_place(const void* buffer) noexcept { return buffer == MPI_IN_PLACE; }

inline Bytes times(Bytes block, int blocks) noexcept { return block * static_cast<Bytes>(blocks); }

// The role of this process in a rooted collective.  bystander: in the root's group of an intercommunicator, but not
// root.
enum class Role { root, other, bystander };

inline Role role(const CommView& c, int root) noexcept {
  if (!c.inter) return root == c.rank ? Role::root : Role::other;
  if (root == MPI_ROOT) return Role::root;
  return root == MPI_PROC_NULL ? Role::bystander : Role::other;
}

inline bool present(const CommView& c, int neighbor) noexcept {
  return neighbor >= 64 || ((c.absent >> neighbor) & 1u) == 0;
}

// Returns the number of processes with which a member exchanges data in a collective, without itself.
inline int others(const CommView& c) noexcept { return c.inter ? c.blocks : c.size - 1; }

// The blocks of a collective that has one for each peer: the arguments that give their sizes.
struct Blocks {
  int slots = 0;  // number of blocks, one per process or per neighbour; 0: no blocks
  bool of_neighbors = false;
  const int* counts = nullptr;  // if neither `counts` nor `large` is set, all blocks have `count` elements
  const MPI_Count* large = nullptr;
  MPI_Count count = 0;
  const MPI_Datatype* types = nullptr;  // null: all blocks have `type`
  MPI_Datatype type{};

  // Returns whether the block of each peer is counted on its own.  For every process of a large communicator, that
  // needs as much memory as a matrix.  So it is only done if the matrix is to show messages inside collectives.
  bool are_kept() const noexcept { return of_neighbors || matrix_choice.inside; }
};

// The data that one call moves.  Rules without loops are inlined, and their results stay in the wrapper's registers.
struct Volume {
  explicit Volume(std::uint64_t when_it_began = 0) noexcept : freed(when_it_began) {}

  std::uint64_t freed;  // HandleMap::freed when the call began
  std::uint32_t bin = 0;
  // is_ahead: MPI has not been called yet, so only known datatypes may be used.  is_unknown: one of them is unknown, so
  // there is no bin.
  bool is_ahead = false, is_unknown = false;
  bool noncontiguous = false;  // a block of the call has gaps in memory
  Bytes sent = 0;
  Bytes received = 0;
  // Receiver of the bytes sent and sender of the bytes received, if that is one process each; below 0: it is not.
  int to = -1, from = -1;
  // Of collectives, on the processes that count the exchange: its shape, and the bytes exchanged with all other
  // processes, either as a sum or, in `parts`, per peer.
  Flow shape = Flow::count;  // none
  Bytes exchanged = 0;
  Blocks parts;

  // ---- point-to-point ----

  template <class Count>
  COMMLENS_IN_REGISTERS void send(const CommView&, Count count, MPI_Datatype datatype, int dest) noexcept {
    send_block(data(count, datatype, Use::sent), dest);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void sendrecv(const CommView&, Count sendcount, MPI_Datatype sendtype, int dest,
                                      Count recvcount, MPI_Datatype recvtype) noexcept {
    exchange_block(data(sendcount, sendtype, Use::sent), dest);
    look_at(recvcount, recvtype, Use::received);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void sendrecv_replace(const CommView&, Count count, MPI_Datatype datatype, int dest) noexcept {
    exchange_block(data(count, datatype, Use::both), dest);
  }

  // Stores what the status of a receive contains.
  COMMLENS_IN_REGISTERS void arrived(Bytes bytes, int source) noexcept {
    received = bytes;
    from = source;
  }

  // Only the bin: the bytes received follow from the status.
  template <class Count>
  COMMLENS_IN_REGISTERS void receive(const CommView&, Count count, MPI_Datatype datatype) noexcept {
    set(bin_of(data(count, datatype, Use::received)), 0, 0);
  }

  template <class Count>
  void partitioned_send(const CommView&, int partitions, Count count, MPI_Datatype datatype, int dest) noexcept {
    send_block(data(MPI_Count{count} * partitions, datatype, Use::sent), dest);
  }

  template <class Count>
  void partitioned_receive(const CommView&, int partitions, Count count, MPI_Datatype datatype, int source) noexcept {
    set(bin_of(data(MPI_Count{count} * partitions, datatype, Use::received)), 0, 0);
    from = source;
  }

  // ---- collectives ----

  COMMLENS_IN_REGISTERS void barrier(const CommView&) noexcept { exchange(Flow::all_to_all, 0); }

  template <class Count>
  COMMLENS_IN_REGISTERS void bcast(const CommView& c, Count count, MPI_Datatype datatype, int root) noexcept {
    const Role r = role(c, root);
    if (r == Role::bystander) return;
    const Bytes block = data(count, datatype, r == Role::root ? Use::sent : Use::received);
    set(bin_of(block), r == Role::root ? block : 0, r == Role::root ? 0 : block);
    if (r == Role::root) exchange(Flow::one_to_all, times(block, others(c)));
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void gather(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                                    Count recvcount, MPI_Datatype recvtype, int root) noexcept {
    switch (role(c, root)) {
      case Role::bystander: return;
      case Role::other: {
        const Bytes block = data(sendcount, sendtype, Use::sent);
        return set(bin_of(block), block, 0);
      }
      case Role::root: break;
    }
    const Bytes arriving = data(recvcount, recvtype, Use::received);
    exchange(Flow::all_to_one, times(arriving, others(c)));
    if (c.inter) return set(bin_of(arriving), 0, times(arriving, c.blocks));
    const Bytes block = in_place(sendbuf) ? arriving : data(sendcount, sendtype, Use::sent);
    set(bin_of(block), block, times(arriving, c.blocks));
  }

  template <class Count>
  void gatherv(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype, const Count recvcounts[],
               MPI_Datatype recvtype, int root) noexcept {
    switch (role(c, root)) {
      case Role::bystander: return set(v_bin, 0, 0);
      case Role::other: return set(v_bin, data(sendcount, sendtype, Use::sent), 0);
      case Role::root: break;
    }
    const Bytes arriving = sum(recvcounts, recvtype, c.blocks, Use::received);
    exchange(Flow::all_to_one, c, recvcounts, recvtype);
    if (c.inter) return set(v_bin, 0, arriving);
    set(v_bin,
        in_place(sendbuf) ? data(recvcounts[c.rank], recvtype, Use::received) : data(sendcount, sendtype, Use::sent),
        arriving);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void scatter(const CommView& c, Count sendcount, MPI_Datatype sendtype, const void* recvbuf,
                                     Count recvcount, MPI_Datatype recvtype, int root) noexcept {
    switch (role(c, root)) {
      case Role::bystander: return;
      case Role::other: {
        const Bytes block = data(recvcount, recvtype, Use::received);
        return set(bin_of(block), 0, block);
      }
      case Role::root: break;
    }
    const Bytes leaving = data(sendcount, sendtype, Use::sent);
    exchange(Flow::one_to_all, times(leaving, others(c)));
    if (c.inter) return set(bin_of(leaving), times(leaving, c.blocks), 0);
    const Bytes block = in_place(recvbuf) ? leaving : data(recvcount, recvtype, Use::received);
    set(bin_of(block), times(leaving, c.blocks), block);
  }

  template <class Count>
  void scatterv(const CommView& c, const Count sendcounts[], MPI_Datatype sendtype, const void* recvbuf,
                Count recvcount, MPI_Datatype recvtype, int root) noexcept {
    switch (role(c, root)) {
      case Role::bystander: return set(v_bin, 0, 0);
      case Role::other: return set(v_bin, 0, data(recvcount, recvtype, Use::received));
      case Role::root: break;
    }
    const Bytes leaving = sum(sendcounts, sendtype, c.blocks, Use::sent);
    exchange(Flow::one_to_all, c, sendcounts, sendtype);
    if (c.inter) return set(v_bin, leaving, 0);
    set(v_bin, leaving,
        in_place(recvbuf) ? data(sendcounts[c.rank], sendtype, Use::sent) : data(recvcount, recvtype, Use::received));
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void allgather(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                                       Count recvcount, MPI_Datatype recvtype) noexcept {
    const Bytes arriving = data(recvcount, recvtype, Use::received);
    const Bytes block = in_place(sendbuf) ? arriving : data(sendcount, sendtype, Use::sent);
    set(bin_of(block), block, times(arriving, c.blocks));
    exchange(Flow::all_to_all, times(block, others(c)));
  }

  template <class Count>
  void allgatherv(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                  const Count recvcounts[], MPI_Datatype recvtype) noexcept {
    const Bytes block =
        in_place(sendbuf) ? data(recvcounts[c.rank], recvtype, Use::received) : data(sendcount, sendtype, Use::sent);
    set(v_bin, block, sum(recvcounts, recvtype, c.blocks, Use::received));
    exchange(Flow::all_to_all, times(block, others(c)));
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void alltoall(const CommView& c, const void* sendbuf, Count sendcount, MPI_Datatype sendtype,
                                      Count recvcount, MPI_Datatype recvtype) noexcept {
    const Bytes arriving = data(recvcount, recvtype, Use::received);
    const Bytes block = in_place(sendbuf) ? arriving : data(sendcount, sendtype, Use::sent);
    set(bin_of(block), times(block, c.blocks), times(arriving, c.blocks));
    exchange(Flow::all_to_all, times(block, others(c)));
  }

  template <class Count>
  void alltoallv(const CommView& c, const void* sendbuf, const Count sendcounts[], MPI_Datatype sendtype,
                 const Count recvcounts[], MPI_Datatype recvtype) noexcept {
    const Bytes arriving = sum(recvcounts, recvtype, c.blocks, Use::received);
    set(v_bin, in_place(sendbuf) ? arriving : sum(sendcounts, sendtype, c.blocks, Use::sent), arriving);
    in_place(sendbuf) ? exchange(Flow::all_to_all, c, recvcounts, recvtype)
                      : exchange(Flow::all_to_all, c, sendcounts, sendtype);
  }

  template <class Count>
  void alltoallw(const CommView& c, const void* sendbuf, const Count sendcounts[], const MPI_Datatype sendtypes[],
                 const Count recvcounts[], const MPI_Datatype recvtypes[]) noexcept {
    const Bytes arriving = sum(recvcounts, recvtypes, c.blocks, Use::received);
    set(v_bin, in_place(sendbuf) ? arriving : sum(sendcounts, sendtypes, c.blocks, Use::sent), arriving);
    in_place(sendbuf) ? exchange(Flow::all_to_all, c, recvcounts, recvtypes)
                      : exchange(Flow::all_to_all, c, sendcounts, sendtypes);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void reduce(const CommView& c, Count count, MPI_Datatype datatype, int root) noexcept {
    const Role r = role(c, root);
    if (r == Role::bystander) return;
    const bool sends = !(c.inter && r == Role::root);
    const Bytes vector = data(count, datatype, r == Role::other ? Use::sent : sends ? Use::both : Use::received);
    set(bin_of(vector), sends ? vector : 0, r == Role::root ? vector : 0);
    if (r == Role::root) exchange(Flow::all_to_one, times(vector, others(c)));
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void allreduce(const CommView& c, Count count, MPI_Datatype datatype) noexcept {
    const Bytes vector = data(count, datatype, Use::both);
    set(bin_of(vector), vector, vector);
    exchange(Flow::all_to_all, times(vector, others(c)));
  }

  // For prefix sums, counts this process and those after it, as Open MPI's monitoring does.
  template <class Count>
  COMMLENS_IN_REGISTERS void scan(const CommView& c, Count count, MPI_Datatype datatype) noexcept {
    const Bytes vector = data(count, datatype, Use::both);
    set(bin_of(vector), vector, vector);
    exchange(Flow::all_to_all, times(vector, c.size - c.rank));
  }

  template <class Count>
  void exscan(const CommView& c, Count count, MPI_Datatype datatype) noexcept {
    scan(c, count, datatype);
    received = c.rank == 0 ? 0 : received;
  }

  template <class Count>
  void reduce_scatter(const CommView& c, const Count recvcounts[], MPI_Datatype datatype) noexcept {
    MPI_Count vector = 0;  // one block: the parts are contiguous
    for (int i = 0; i < c.size; ++i) vector += recvcounts[i];
    set(v_bin, data(vector, datatype, Use::both), data(recvcounts[c.rank], datatype, Use::both));
    // On an intercommunicator the blocks belong to this group; no rule assigns them to the remote processes.
    c.inter ? exchange(Flow::all_to_all, sent) : exchange(Flow::all_to_all, c, recvcounts, datatype);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void reduce_scatter_block(const CommView& c, Count recvcount, MPI_Datatype datatype) noexcept {
    const Bytes block = data(recvcount, datatype, Use::both);
    set(bin_of(block), times(block, c.size), block);
    exchange(Flow::all_to_all, times(block, others(c)));
  }

  // ---- neighbourhood collectives: blocks towards MPI_PROC_NULL, at the border of a grid, do not move ----

  template <class Count>
  void neighbor_allgather(const CommView& c, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                          MPI_Datatype recvtype) noexcept {
    const Bytes block = data(sendcount, sendtype, Use::sent);
    set(bin_of(block), c.destinations > 0 ? block : 0, times(data(recvcount, recvtype, Use::received), c.sources));
    exchange_with_neighbors(c, sendcount, sendtype);
  }

  template <class Count>
  void neighbor_allgatherv(const CommView& c, Count sendcount, MPI_Datatype sendtype, const Count recvcounts[],
                           MPI_Datatype recvtype) noexcept {
    const Bytes block = data(sendcount, sendtype, Use::sent);
    set(v_bin, c.destinations > 0 ? block : 0, sum_present(c, recvcounts, recvtype, c.source_slots, Use::received));
    exchange_with_neighbors(c, sendcount, sendtype);
  }

  template <class Count>
  void neighbor_alltoall(const CommView& c, Count sendcount, MPI_Datatype sendtype, Count recvcount,
                         MPI_Datatype recvtype) noexcept {
    const Bytes block = data(sendcount, sendtype, Use::sent);
    set(bin_of(block), times(block, c.destinations), times(data(recvcount, recvtype, Use::received), c.sources));
    exchange_with_neighbors(c, sendcount, sendtype);
  }

  template <class Count>
  void neighbor_alltoallv(const CommView& c, const Count sendcounts[], MPI_Datatype sendtype, const Count recvcounts[],
                          MPI_Datatype recvtype) noexcept {
    set(v_bin, sum_present(c, sendcounts, sendtype, c.destination_slots, Use::sent),
        sum_present(c, recvcounts, recvtype, c.source_slots, Use::received));
    exchange_with_neighbors(c, sendcounts, sendtype);
  }

  template <class Count>
  void neighbor_alltoallw(const CommView& c, const Count sendcounts[], const MPI_Datatype sendtypes[],
                          const Count recvcounts[], const MPI_Datatype recvtypes[]) noexcept {
    set(v_bin, sum_present(c, sendcounts, sendtypes, c.destination_slots, Use::sent),
        sum_present(c, recvcounts, recvtypes, c.source_slots, Use::received));
    exchange_with_neighbors(c, sendcounts, sendtypes);
  }

  // ---- one-sided ----

  COMMLENS_IN_REGISTERS void fence(const CommView&) noexcept {}

  template <class Count>
  COMMLENS_IN_REGISTERS void put(const CommView&, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                                 Count target_count, MPI_Datatype target_datatype) noexcept {
    look_at(target_count, target_datatype, Use::target);
    send_block(data(origin_count, origin_datatype, Use::sent), target_rank);
  }

  template <class Count>
  COMMLENS_IN_REGISTERS void get(const CommView&, Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                                 Count target_count, MPI_Datatype target_datatype) noexcept {
    look_at(target_count, target_datatype, Use::target);
    const Bytes block = data(origin_count, origin_datatype, Use::received);
    if (target_rank == MPI_PROC_NULL) return set(null_bin, 0, 0);
    set(bin_of(block), 0, block);
    from = target_rank;
  }

  template <class Count>
  void get_accumulate(const CommView&, Count origin_count, MPI_Datatype origin_datatype, Count result_count,
                      MPI_Datatype result_datatype, int target_rank, Count target_count, MPI_Datatype target_datatype,
                      MPI_Op op) noexcept {
    look_at(target_count, target_datatype, Use::target);
    const Bytes result = data(result_count, result_datatype, Use::received);
    // With MPI_NO_OP the origin arguments are not significant.
    const Bytes origin = op == api.no_op ? 0 : data(origin_count, origin_datatype, Use::sent);
    if (target_rank == MPI_PROC_NULL) return set(null_bin, 0, 0);
    set(bin_of(op == api.no_op ? result : origin), origin, result);
    to = op == api.no_op ? -1 : target_rank;
    from = target_rank;
  }

  COMMLENS_IN_REGISTERS void fetch_and_op(const CommView&, MPI_Datatype datatype, int target_rank, MPI_Op op) noexcept {
    const Bytes element = data(1, datatype, Use::both);
    if (target_rank == MPI_PROC_NULL) return set(null_bin, 0, 0);
    set(bin_of(element), op == api.no_op ? 0 : element, element);
    to = op == api.no_op ? -1 : target_rank;
    from = target_rank;
  }

  COMMLENS_IN_REGISTERS void compare_and_swap(const CommView&, MPI_Datatype datatype, int target_rank) noexcept {
    const Bytes element = data(1, datatype, Use::both);
    if (target_rank == MPI_PROC_NULL) return set(null_bin, 0, 0);
    set(bin_of(element), 2 * element, element);
    to = from = target_rank;
  }

  // ---- files ----

  template <class Count>
  COMMLENS_IN_REGISTERS void write(const CommView&, Count count, MPI_Datatype datatype) noexcept {
    const Bytes block = data(count, datatype, Use::sent);
    set(bin_of(block), block, 0);
  }

  // Calls visit(rank of the peer, bytes) for each block of another process.
  template <class Visit>
  void each_block(const CommView& c, Visit visit) const noexcept {
    for (int i = 0; i < parts.slots; ++i) {
      const int peer = parts.of_neighbors ? c.neighbors[i] : i;
      if (peer < 0 || (!c.inter && peer == c.rank)) continue;
      const MPI_Count n = parts.counts != nullptr  ? parts.counts[i]
                          : parts.large != nullptr ? parts.large[i]
                                                   : parts.count;
      MPI_Datatype type = parts.types != nullptr ? parts.types[i] : parts.type;
      visit(peer, n <= 0 ? 0 : static_cast<Bytes>(n) * layout_of(type, freed, Use::layout).size());
    }
  }

 private:
  COMMLENS_IN_REGISTERS void exchange(Flow kind, Bytes bytes) noexcept {
    shape = kind;
    exchanged = bytes;
  }

  template <class Counts, class Types>
  void exchange(Flow kind, const CommView& c, Counts counts, Types types) noexcept {
    shape = kind;
    parts.slots = c.blocks;
    say_count(counts);
    say_type(types);
  }

  template <class Counts, class Types>
  void exchange_with_neighbors(const CommView& c, Counts counts, Types types) noexcept {
    shape = Flow::all_to_all;
    parts.slots = c.neighbors == nullptr ? 0 : c.destination_slots;
    parts.of_neighbors = true;
    say_count(counts);
    say_type(types);
  }

  void say_count(const int* counts) noexcept { parts.counts = counts; }
  void say_count(const MPI_Count* counts) noexcept { parts.large = counts; }
  void say_count(MPI_Count count) noexcept { parts.count = count; }
  void say_type(MPI_Datatype type) noexcept { parts.type = type; }
  void say_type(const MPI_Datatype* types) noexcept { parts.types = types; }

  COMMLENS_IN_REGISTERS void exchange_block(Bytes block, int receiver) noexcept {
    set(bin_of(block), receiver == MPI_PROC_NULL ? 0 : block, 0);  // not null_bin: it may receive a message
    to = receiver;
  }

  COMMLENS_IN_REGISTERS void send_block(Bytes block, int receiver) noexcept {
    const bool is_null = receiver == MPI_PROC_NULL;
    set(is_null ? null_bin : bin_of(block), is_null ? 0 : block, 0);
    to = receiver;
  }

  COMMLENS_IN_REGISTERS void set(std::uint32_t size_bin, Bytes bytes_sent, Bytes bytes_received) noexcept {
    bin = size_bin;
    sent = bytes_sent;
    received = bytes_received;
  }

  template <class Count>
  COMMLENS_IN_REGISTERS Bytes data(Count count, MPI_Datatype datatype, Use use) noexcept {
    return blocks(count, count, datatype, use);
  }

  // Returns the bytes of blocks of one datatype.  total: elements of all blocks; largest: elements of the largest
  // block.
  COMMLENS_IN_REGISTERS Bytes blocks(MPI_Count total, MPI_Count largest, MPI_Datatype datatype, Use use) noexcept {
    if (total <= 0) return 0;  // the datatype of an empty message may be anything
    if (is_ahead) {
      const void* const known = known_layout(datatype);
      is_unknown = is_unknown || known == nullptr;
      return known == nullptr ? 0 : static_cast<Bytes>(total) * Layout(known).size();
    }
    const Layout layout = layout_of(datatype, freed, use);
    noncontiguous = noncontiguous || !(layout.gapless() || (largest == 1 && layout.gapless_alone()));
    return static_cast<Bytes>(total) * layout.size();
  }

  // Checks a datatype for gaps; another argument determines the bytes.
  template <class Count>
  void look_at(Count count, MPI_Datatype datatype, Use use) noexcept {
    static_cast<void>(data(count, datatype, use));
  }

  template <class Count>
  Bytes sum(const Count counts[], MPI_Datatype datatype, int n, Use use) noexcept {
    MPI_Count total = 0, largest = 0;
    for (int i = 0; i < n; ++i) {
      total += counts[i];
      largest = std::max<MPI_Count>(largest, counts[i]);
    }
    return blocks(total, largest, datatype, use);
  }

  template <class Count>
  Bytes sum(const Count counts[], const MPI_Datatype datatypes[], int n, Use use) noexcept {
    Bytes total = 0;
    for (int i = 0; i < n; ++i) total += data(counts[i], datatypes[i], use);
    return total;
  }

  template <class Count>
  Bytes sum_present(const CommView& c, const Count counts[], MPI_Datatype datatype, int n, Use use) noexcept {
    MPI_Count total = 0, largest = 0;
    for (int i = 0; i < n; ++i) {
      if (!present(c, i)) continue;
      total += counts[i];
      largest = std::max<MPI_Count>(largest, counts[i]);
    }
    return blocks(total, largest, datatype, use);
  }

  template <class Count>
  Bytes sum_present(const CommView& c, const Count counts[], const MPI_Datatype datatypes[], int n, Use use) noexcept {
    Bytes total = 0;
    for (int i = 0; i < n; ++i) {
      if (present(c, i)) total += data(counts[i], datatypes[i], use);
    }
    return total;
  }
};

}  // namespace commlens
