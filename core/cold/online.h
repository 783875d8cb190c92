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

// What was counted of peers, for those who ask while the program runs: tools by the performance variables of MPI
// (core/mpi/mpit.h), the program by commlens.h.
namespace commlens {

// The processes of a communicator; of an intercommunicator, the remote ones.
struct Members {
  std::uint32_t comm;               // index in the registry
  int rank;                         // of this process among them; below 0: it is none of them
  std::vector<std::int32_t> world;  // their ranks in MPI_COMM_WORLD, as PeerCell::world
};

// Who is asked for the members of a communicator: local, and nothing when there is no telling.
void ask_for_members(std::optional<Members> (*members_of)(std::uint32_t comm)) noexcept;

// The communicator is about to be freed: from then on nobody could tell its members.
void remember_members(std::uint32_t comm) noexcept;

enum class Measure { messages, bytes, sizes };  // sizes: how many messages of no byte, 1 byte, 2 to 3, 4 to 7, ...
enum class Breadth {
  everywhere,  // one value for each member: what this process has had with it in any communicator
  here,        // the same in this communicator alone
  whole,       // of this communicator altogether
};

struct What {
  Flow flow;
  Measure measure;
  Breadth breadth;
};

inline constexpr std::size_t size_bins = 65;

// What has been counted since this process began.
std::vector<std::uint64_t> counted_now(const What& what, const Members& members);

// The same while it is watched: it counts between start() and stop().
class Watch {
 public:
  Watch(const What& what, Members members);

  std::size_t size() const noexcept { return sum_.size(); }
  void start();
  void stop();
  void reset();
  std::vector<std::uint64_t> read() const;
  std::vector<std::uint64_t> read_and_reset();  // nothing is lost in between

 private:
  std::vector<std::uint64_t> sum_with(const std::vector<std::uint64_t>& now) const;

  What what_;
  Members members_;
  bool is_started_ = false;
  std::vector<std::uint64_t> begin_;  // when it was started or reset
  std::vector<std::uint64_t> sum_;    // before
};

// A performance variable.
struct Variable {
  const char* name;
  What what;
  bool is_of_monitoring;  // Open MPI has one of that name
  const char* text;
};
const std::vector<Variable>& variables();

// The name of a variable; those that the MPI library offers, too, have another one.
std::string name_of(const Variable& variable, bool library_has_it);

// The variable of this name, of either; below 0: there is none.
int variable_of(std::string_view name) noexcept;

// Where our variables are among those of an MPI library, which may get more of them: none ever changes its place.
class Places {
 public:
  void fix(int theirs, int ours) noexcept;  // at the first time that somebody asks
  bool are_fixed() const noexcept { return first_ >= 0; }
  int number(int theirs) const noexcept { return theirs + ours_; }
  int of_ours(int i) const noexcept { return first_ + i; }
  int of_theirs(int i) const noexcept { return i < first_ ? i : i + ours_; }

  // Which one is there: ours, or theirs.
  struct There {
    bool is_ours;
    int which;
  };
  There at(int place) const noexcept;

 private:
  int first_ = -1, ours_ = 0;
};

}  // namespace commlens
