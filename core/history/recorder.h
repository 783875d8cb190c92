// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/arena/arena.h"
#include "core/arena/format.h"
#include "core/history/file.h"
#include "core/history/image.h"

namespace commlens::history {

// Reads the arenas of one launch in this PID namespace again and again.  The processes do not notice: nothing is asked
// of them.
class Recorder {
 public:
  // places: folders with arenas.
  Recorder(std::uint64_t launch, std::vector<std::string> places)
      : launch_(launch), places_(std::move(places)), self_(arena::this_process()) {}

  // Finds arenas of processes that have come since.
  void look();

  // Returns whether a process of the launch still counts: it runs, and has not stored its profile.
  bool is_any_counting();

  // Returns how all arenas have changed since the last snapshot.  Of a process that counts no more, takes the last
  // state, even if it has removed its arena.
  Snapshot take(Ns planned);

 private:
  struct RecordedArena {
    explicit RecordedArena(int descriptor) : file(descriptor) {}
    ~RecordedArena();
    RecordedArena(const RecordedArena&) = delete;
    RecordedArena& operator=(const RecordedArena&) = delete;

    int file;  // open, so that a last state can be read after the process has removed the file
    arena::Process process{};
    bool clock_is_tsc = false;
    Reading last{};  // the newest time at which it was seen
    Image image;
  };

  void look_in(const std::string& place);
  bool add(int folder, const std::string& name);
  // Returns false if the process has stored its profile, or its arena is cut off: then this is its last state.
  bool read(RecordedArena& one, bool is_running, DifferenceWriter& difference);

  std::uint64_t launch_;
  std::vector<std::string> places_;
  arena::Process self_;
  std::set<std::string> known_;                      // names of files that need not be looked at again
  std::vector<std::unique_ptr<RecordedArena>> all_;  // by number; null: counts no more
};

// What commlens-arena record is asked for.
struct Plan {
  std::uint64_t launch = 0;
  unsigned long seconds = 1;  // between two snapshots
  unsigned long most = 64;    // snapshots
  std::string folder, node;   // the file is FOLDER/NODE-*.history
  std::vector<std::string> places;
  int status = -1, lock = -1;  // descriptors: to report the start, and to keep until the end; -1: none
};

// Records until no process of the launch counts any more.  Returns an exit code.
int record(const Plan& plan);

}  // namespace commlens::history
