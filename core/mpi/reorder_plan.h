// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/clock.h"
#include "core/state/online.h"

// The order that commlens_reorder() finds: every member says what it has exchanged and where it is, rank 0 searches.
namespace [[gnu::visibility("hidden")]] commlens {

// Facts that each member sends to rank 0.  Sent as they are: all have the same memory layout.
struct MemberFacts {
  std::uint64_t partners;  // how many PartnerBytes follow
  std::uint64_t to_all;    // bytes that it has exchanged with each other member
  std::uint64_t communicating_ns, split_ns;
  std::uint64_t node;  // identity of its host name
  std::int32_t socket, numa, complex, unused;
};

// What it has exchanged with one other member, beyond `to_all`.
struct PartnerBytes {
  std::uint64_t bytes;
  std::uint32_t member, unused;
};

// The facts that a member sends, and on rank 0 the buffers for those of all members.  Allocated before the first
// message, so that a member without memory can still decline.
struct ReorderStatement {
  MemberRanks members;
  bool are_inside_known;
  MemberFacts facts;
  std::vector<PartnerBytes> partners;
  std::vector<MemberFacts> all;         // on rank 0
  std::vector<std::int32_t> new_ranks;  // on rank 0
};

// Returns nothing if this process cannot say what it has exchanged in `comm`.  Local.
std::optional<ReorderStatement> own_statement(std::uint32_t comm, int size) noexcept;

struct ReorderPlan {
  bool is_better = false;  // the same on all members
  std::int32_t new_rank = 0;
  double gain_percent = 0;  // also of an order that does not pay
};

// Collective over `own`, a communicator of commlens with the same members in the same order.
ReorderPlan agreed_plan(MPI_Comm own, ReorderStatement& statement) noexcept;

}  // namespace commlens
