// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/private_folder.h"
#include "core/base/ticks.h"
#include "core/recover/input.h"

// A history: snapshots of the arenas of one node, the oldest first, in one file.
//
//   FileHead
//   records: bytes (8), check sum (8), one snapshot
//
// A snapshot is added by one record at the end of the file.  A record that is cut off, because its writer was killed or
// the file system was full, ends the file for readers: all before it is whole.  Like arenas, the file can only be read
// by the build that wrote it.
namespace commlens::history {

inline constexpr const char* file_suffix = ".history";

// How an arena has changed since the snapshot before.
struct Part {
  std::uint32_t process = 0;  // number of the process in this file
  Ns time = 0;                // when the arena was read, since 1970
  bool is_running = false;    // the process was still running then
  std::string difference;
};

struct Snapshot {
  Ns time = 0;  // for which it was planned, since 1970: the same on all nodes
  std::vector<Part> parts;
};

// Replaces two consecutive snapshots by one with the time of the second.
Snapshot sum_of(const Snapshot& first, const Snapshot& second);

class HistoryWriter {
 public:
  // most: number of snapshots that are kept, at least 2.
  explicit HistoryWriter(std::uint64_t most);
  ~HistoryWriter();  // removes a file without snapshots
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;

  // Creates a file without snapshots.  Returns false, with errno, if it cannot; then add() tries again.
  bool create(const std::string& folder, const std::string& name);

  // Adds a snapshot.  If there are more than may be, replaces each two of the older half by one; if there is no room
  // for that, keeps them until the next snapshot.  Returns false, with errno, if it cannot be added; then all snapshots
  // before it are still there.
  bool add(const Snapshot& snapshot);

 private:
  void merge_older();

  std::uint64_t most_;
  PrivateFolder folder_;
  std::string path_, name_;  // of the folder, and of the file in it
  int file_ = -1;
  std::uint64_t count_ = 0, end_ = 0;  // snapshots, and the end of the last one in the file
};

class HistoryReader {
 public:
  // Returns false and sets `error` if the file is no history of this version, or must not be trusted.
  bool open(const std::string& path);

  // Reads the next snapshot.  Returns false at the end of those that are whole.
  bool next(Snapshot& snapshot);

  const arena::Input& input() const { return input_; }

  std::string error;

 private:
  arena::Input input_;
  std::uint64_t at_ = 0, end_ = 0;
};

}  // namespace commlens::history
