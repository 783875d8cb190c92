// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/arena/arena.h"
#include "core/arena/format.h"
#include "core/arena/input.h"
#include "core/cold/counted.h"
#include "core/cold/journal.h"
#include "core/hot/thread.h"

namespace commlens::arena {

class Segments;

// An arena as somebody else sees it, of a process that may still run: what it counts meanwhile may be there or not.
class Reader {
 public:
  // False, with `error`, when the file is no arena of this version, or of a process that had not come out of MPI_Init.
  // Throws nothing.
  bool read(const std::string& path);

  // The same of bytes that stand in memory and begin with a header that is right.  May throw.
  bool read_content(const Content& content);

  // The file itself: also where it cannot be read, as far as it could be opened.
  const Input& input() const { return input_; }

  const Process& process() const { return process_; }
  const journal::JobEntry& job() const { return job_; }
  Liveness liveness() const { return liveness_; }
  bool is_of_this_boot() const { return is_of_this_boot_; }  // of this machine, and not restarted since
  bool is_finalized() const { return state_ == static_cast<std::uint32_t>(State::finalized); }

  // What of a file that can be read cannot, in words for a person; empty: nothing.
  std::string notice() const;

  // What it counted, as its process would have told it: all but the identity of its world and what it imports.
  Counted& counted() { return counted_; }

  std::string error;

 private:
  bool open(const std::string& path);
  void take_process_from(const std::string& path);
  void read_journal(const char* begin, std::uint64_t bytes);
  bool add_comm(CommRecord record);
  bool is_comm(std::uint32_t index) const;
  Key known(Key key);
  void take_states(const CommState* states, std::uint64_t n, std::uint64_t first);
  void take_clocks(const Header& header);
  void take_cell(Cell cell, std::uint32_t thread);
  void take_cells(const Segments& segments);
  void take_regions(const Segments& segments);
  void take_peers(const Segments& segments);
  void take_threads(const Segments& segments);
  void take_thread(std::uint32_t number, const Thread& thread, const Regions* stack);
  void take_position(std::uint32_t number, const Thread& thread, std::uint32_t region);
  void take_slices(const std::vector<Sliced>& slices);
  void take_facts(const Header& header);
  std::vector<Frame> frames_of(const Regions* stack);
  bool add_region(journal::RegionEntry entry);
  bool add_quantity(journal::QuantityEntry entry);
  bool is_region(std::uint32_t number) const { return number < counted_.regions.names.size(); }
  bool is_place(RegionKey key);
  Ticks counted_until(Ticks t) const;

  Process process_{};
  journal::JobEntry job_;
  std::uint32_t state_ = 0;
  Input input_;
  Liveness liveness_ = Liveness::unknown;
  bool is_of_this_boot_ = false;
  bool is_copy_ = false;  // of what its process may go on with
  bool is_full_ = false, is_damaged_ = false;
  std::uint64_t there_ = 0, missing_ = 0;  // bytes of the file
  Ticks last_seen_ = 0;
  std::uint32_t pause_changes_ = 0;
  Ticks paused_before_ = 0, held_ = 0;
  std::uint64_t most_comms_ = 0;
  std::deque<CommRecord> comms_;
  std::unordered_map<Site, SiteFacts> sites_;
  std::unordered_map<std::uint64_t, std::uint32_t> handles_;  // bits -> index of the newest that is not freed
  std::set<std::tuple<std::uint32_t, RegionKind, std::string>> known_regions_;
  std::set<std::pair<std::string, std::string>> known_quantities_;
  std::map<std::uint32_t, std::map<Key, SliceEntry>> totals_;  // of each thread: what its slices must add up to
  Counted counted_;
};

// How a process with this state ended: rank.state in a profile.
std::string name_of(std::uint32_t state, Liveness liveness);

}  // namespace commlens::arena
