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
#include "core/hot/thread.h"
#include "core/recover/input.h"
#include "core/recover/slices.h"
#include "core/state/counted.h"
#include "core/state/journal.h"

namespace commlens::arena {

// No process lives that long or transfers that many bytes: greater values are damaged data.
inline constexpr std::uint64_t beyond_all = std::uint64_t{1} << 62;

// A call that had not returned: its time is counted in a cell without bytes.
struct OpenCall {
  std::uint32_t thread;
  Ticks since;  // with `thread`, identifies the call
  Key key;
  Site site;
  Ticks time;
};

// The innermost region in which a thread was, and its time outside of nested regions.
struct RunningRegion {
  Key key = 0;  // as in slices; 0: none
  Ticks time = 0;
};

// Reads the arena of a process that may still run.  What the process counts during the read may be included or not.
class Reader {
 public:
  // Returns false and sets `error` if the file is not an arena of this version, or of a process that had not returned
  // from MPI_Init.  Throws nothing.
  bool read(const std::string& path);

  // The same for content in memory that begins with a valid header.  May throw.
  bool read_content(const Content& content);

  // The same for the content that an arena had at an earlier time, which may be damaged.  Its header has the clocks of
  // that time.  `liveness`: of the process then.  Throws nothing.
  bool read_recorded(const Content& content, Liveness liveness);

  // The file itself.  Its facts are valid even if read() failed, as far as the file could be opened.
  const Input& input() const { return input_; }

  const Process& process() const { return process_; }
  const journal::JobEntry& job() const { return job_; }
  Liveness liveness() const { return liveness_; }
  bool is_of_this_boot() const { return is_of_this_boot_; }  // this machine, not restarted since
  bool is_finalized() const { return state_ == static_cast<std::uint32_t>(State::finalized); }

  // Returns a text about missing or damaged parts of a file that could be read; empty if it is complete.
  std::string notice() const;

  bool is_recorded() const { return is_recorded_; }  // of an earlier time

  // The counters, as the process would have collected them itself, without the identity of its world and the names that
  // it imports.
  Counted& counted() { return counted_; }
  const Counted& counted() const { return counted_; }

  // Of a part (collect/part.h): the package of its process, with all that it has counted.  counted() then has the facts
  // only.  Empty: the file is an arena.
  const std::vector<char>& package() const { return package_; }

  const std::vector<OpenCall>& open_calls() const { return open_calls_; }

  // When the program last cleared its counters, in counted time; and the time from the return of MPI_Init until the
  // process was last seen, pauses included.
  Ticks cleared() const { return forgotten_; }
  Ns seen_ns() const { return counted_.scale.ns(last_seen_ - job_.started); }

  std::string error;

 private:
  bool open(const std::string& path);
  bool take_part();
  void take_process_from(const std::string& path);
  void read_journal(const char* begin, std::uint64_t bytes);
  bool add_comm(CommRecord record);
  bool is_comm(std::uint32_t index) const;
  Key known(Key key);
  void take_states(const CommState* states, std::uint64_t n, std::uint64_t first);
  void take_clocks(const Header& header);
  void take_cell(Cell cell, std::uint32_t thread);
  void find_uncleared(const Segments& segments, std::uint32_t clears);
  void take_owners(const Segments& segments);
  CountedThread* thread_of(std::uint32_t number);
  void take_cells(const Segments& segments);
  void take_regions(const Segments& segments);
  void take_series(const Segments& segments);
  void take_events(const Segments& segments);
  void take_peers(const Segments& segments);
  void take_samples(const Segments& segments);
  void take_messages(const Segments& segments);
  bool is_channel(std::uint64_t key) const;
  bool is_message_call(Key call);
  void take_threads(const Segments& segments);
  void take_thread(std::uint32_t number, const Thread& thread, const Regions* stack);
  Ticks take_position(std::uint32_t number, const Thread& thread, std::uint32_t region);
  Ticks take_open_call(std::uint32_t number, const Thread& thread, const Position& position);
  SliceLogContent take_slices(const Segments& segments, const Blocks& blocks, std::uint32_t number,
                              const SliceLog& log);
  void take_facts();
  std::vector<Frame> frames_of(const Regions* stack);
  void clear(std::vector<Frame>& frames, Ticks mpi) const;
  bool add_region(journal::RegionEntry entry);
  bool add_metric(journal::MetricEntry entry);
  bool add_datatype(journal::DatatypeEntry entry);
  bool add_combination(const journal::CombinationEntry& entry);
  SiteFacts place_of(Site site) const;
  bool is_region(std::uint32_t number) const { return number < counted_.regions.names.size(); }
  bool is_place(RegionKey key);
  Ticks counted_until(Ticks t) const;

  Process process_{};
  journal::JobEntry job_;
  std::uint32_t state_ = 0;
  Input input_;
  Liveness liveness_ = Liveness::unknown;
  bool is_of_this_boot_ = false;
  bool is_recorded_ = false;
  bool is_copy_ = false;  // the process may still count in the original
  bool is_full_ = false, is_damaged_ = false;
  std::uint64_t present_ = 0, missing_ = 0;  // bytes of the file that are present, and that are not
  Ticks last_seen_ = 0;
  std::uint32_t pause_changes_ = 0;
  Ticks paused_before_ = 0, held_ = 0, forgotten_ = 0;
  std::uint64_t most_comms_ = 0;
  std::deque<CommRecord> comms_;
  std::unordered_map<Site, SiteFacts> sites_;
  std::unordered_map<Site, Site> callers_;  // of call paths
  std::vector<journal::ModuleEntry> modules_;
  std::unordered_map<std::uint64_t, std::uint32_t> handles_;  // bits -> index of the newest that is not freed
  std::set<std::tuple<std::uint32_t, RegionKind, std::string>> known_regions_;
  std::set<std::pair<std::string, std::string>> known_metrics_;
  std::set<std::uint32_t> uncleared_;               // threads whose counters are from before the last commlens_reset()
  std::map<std::uint32_t, CountedThread*> owners_;  // entries of counted_.threads, by thread
  std::map<std::uint32_t, std::map<Key, SliceEntry>> totals_;  // per thread: the sums of its slices
  std::map<std::uint32_t, RunningRegion> running_;             // per thread
  std::vector<OpenCall> open_calls_;
  Counted counted_;
  std::vector<char> package_;
};

// Returns why an arena with this header cannot be read, or null.
const char* fault_of(const Header& header);

// Returns how a process in this state ended, for rank.state in a profile.
std::string name_of(std::uint32_t state, Liveness liveness);

}  // namespace commlens::arena
