// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/hot/peer_cell.h"

// Reads the communication matrix while the program runs: for tools through the performance variables of MPI
// (core/mpi/mpit.h), for the program through commlens.h.
namespace commlens {

// The processes of a communicator; of an intercommunicator, the remote group.
struct MemberRanks {
  std::uint32_t comm;               // index in the registry
  int rank;                         // of this process among them; below 0: it is not a member
  std::vector<std::int32_t> world;  // their ranks in MPI_COMM_WORLD, as in PeerCell::world
};

// Sets the function that returns the members of a communicator, or nothing if they are unknown.  The function must be
// local: it must not communicate.
void ask_for_members(std::optional<MemberRanks> (*members_of)(std::uint32_t comm)) noexcept;

// Call before a communicator is freed: its members cannot be found afterwards.
void remember_members(std::uint32_t comm) noexcept;

// sizes: numbers of messages of 0 bytes, 1 byte, 2 to 3 bytes, 4 to 7 bytes, ...: size_bins values in place of one; not
// with Breadth::everywhere
enum class Measure { messages, bytes, sizes };
enum class Breadth {
  everywhere,  // one value per member: traffic with it in any communicator
  here,        // one value per member: traffic in this communicator only
  whole,       // one value for all traffic in this communicator
};

struct Selection {
  Flow flow;
  Measure measure;
  Breadth breadth;
};

inline constexpr std::size_t size_bins = 65;

// Returns the counts of this process since it began, or since the last commlens_reset().
std::vector<std::uint64_t> counted_now(const Selection& selection, const MemberRanks& members);

// Accumulates the same values between start() and stop().
class Watch {
 public:
  Watch(const Selection& selection, MemberRanks members);

  std::size_t size() const noexcept { return sum_.size(); }
  void start();
  void stop();
  void reset();
  std::vector<std::uint64_t> read() const;
  std::vector<std::uint64_t> read_and_reset();  // one snapshot: no message is lost between read and reset

 private:
  std::vector<std::uint64_t> sum_with(const std::vector<std::uint64_t>& now) const;

  Selection selection_;
  MemberRanks members_;
  bool is_started_ = false;
  std::uint32_t cleared_;             // `clears` (hot/regions.h) at the last start() or reset()
  std::vector<std::uint64_t> begin_;  // values at that time
  std::vector<std::uint64_t> sum_;    // accumulated before that
};

// A performance variable.
struct Variable {
  const char* name;
  Selection selection;
  bool is_of_monitoring;  // Open MPI has one of the same name
  const char* text;
};
const std::vector<Variable>& variables();

// Returns the name of a variable.  If the MPI library has a variable of the same name, ours gets the prefix
// "commlens_".
std::string name_of(const Variable& variable, bool library_has_it);

// Returns the index of the variable with this name, with or without the prefix; -1: there is none.
int variable_of(std::string_view name) noexcept;

// Maps positions: ours lie among the variables of an MPI library, which may add variables later.  The position of a
// variable never changes.
class PositionMap {
 public:
  void fix(int theirs, int ours) noexcept;  // call when a tool first asks for variables
  bool are_fixed() const noexcept { return first_ >= 0; }
  int number(int theirs) const noexcept { return theirs + ours_; }
  int of_ours(int i) const noexcept { return first_ + i; }
  int of_theirs(int i) const noexcept { return i < first_ ? i : i + ours_; }

  // The variable at a position: ours or the library's, and its index there.
  struct Entry {
    bool is_ours;
    int which;
  };
  Entry at(int position) const noexcept;

 private:
  int first_ = -1, ours_ = 0;
};

}  // namespace commlens
