// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/history/file.h"
#include "core/history/image.h"
#include "core/recover/read.h"

namespace commlens::history {

inline constexpr Ns at_the_end = ~Ns{0};

// The arenas of one history at one time.
class State {
 public:
  // Adds up the snapshots until `time`.  Returns false and sets `error` if the file cannot be read or has none.
  bool read(const std::string& path, Ns time);

  // Reads the arenas, sorted by process; those that cannot be read have an error.
  std::vector<std::unique_ptr<arena::Reader>> readers();

  // Returns when the first of its processes returned from MPI_Init, since 1970; 0: unknown.
  Ns began();

  const arena::Input& input() const { return file_.input(); }
  Ns time() const { return time_; }  // of the last snapshot that was added

  std::string error;

 private:
  struct RecordedArena {
    Image image;
    Ns time = 0;  // when it was read
    bool is_running = false;
  };

  HistoryReader file_;
  Ns time_ = 0;
  bool is_last_ = false;
  std::map<std::uint32_t, RecordedArena> processes_;
};

// One line about a snapshot.
struct Summary {
  Ns time = 0;
  std::uint64_t processes = 0, bytes = 0;
};

// Returns the snapshots of a file; empty, with `error`, if it cannot be read.
std::vector<Summary> summaries_of(const std::string& path, std::string& error);

}  // namespace commlens::history
