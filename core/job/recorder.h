// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace [[gnu::visibility("hidden")]] commlens {

// What the process that records the arenas of this node needs (docs/decisions/0036-history.md).
struct RecorderFacts {
  std::uint64_t launch = 0;
  unsigned long seconds = 0, most = 0;  // COMMLENS_FLUSH_EVERY, COMMLENS_HISTORY
  std::string folder;                   // where the history is stored
  std::string node;
  std::string arena_dir;  // COMMLENS_ARENA_DIR
  bool is_first = false;  // rank 0: says what fails on all ranks
  // Makes the folders around `folder`, which the process that starts the recorder needs.  Returns false if that fails.
  std::function<bool()> make_folders = [] { return true; };
};

// Starts that process, unless another process of the launch has started it in this PID namespace.  If it cannot be
// started, one line says why, and the job goes on without it.
void start_recorder(const RecorderFacts& facts) noexcept;

}  // namespace commlens
