// SPDX-License-Identifier: Apache-2.0
#include "core/history/state.h"

#include <algorithm>
#include <utility>

#include "core/arena/arena.h"
#include "core/arena/format.h"

namespace commlens::history {

bool State::read(const std::string& path, Ns time) {
  if (!file_.open(path)) {
    error = file_.error;
    return false;
  }
  Snapshot snapshot;
  std::uint64_t count = 0;
  bool has_more = file_.next(snapshot);
  for (; has_more && snapshot.time <= time; has_more = file_.next(snapshot)) {
    time_ = snapshot.time;
    ++count;
    for (const Part& part : snapshot.parts) {
      RecordedArena& one = processes_[part.process];
      one.image.add(part.difference);  // the arena has check sums of its own where they matter
      one.time = part.time;
      one.is_running = part.is_running;
    }
  }
  is_last_ = !has_more;
  if (count == 0) error = path + ": no snapshot" + (has_more ? " until then" : "");
  return count != 0;
}

std::vector<std::unique_ptr<arena::Reader>> State::readers() {
  std::vector<std::unique_ptr<arena::Reader>> all;
  for (auto& [number, one] : processes_) {
    auto reader = std::make_unique<arena::Reader>();
    arena::Liveness liveness = one.is_running ? arena::Liveness::running : arena::Liveness::gone;
    if (one.image.size() >= arena::header_bytes) {
      const auto& header = *reinterpret_cast<const arena::Header*>(one.image.bytes());
      // A recorder that was killed together with the processes has not seen them end.
      if (is_last_ && one.is_running) liveness = arena::liveness_of(header.process, false);
      // Zeros at the end are no part of a difference.  Last: the memory may move.
      one.image.grow(std::min(header.used.load(std::memory_order_relaxed), arena::most_bytes));
    }
    reader->read_recorded(one.image.content(), liveness);
    all.push_back(std::move(reader));
  }
  return all;
}

Ns State::began() {
  Ns first = 0;
  const auto all = readers();
  auto one = processes_.begin();
  for (const auto& reader : all) {
    const Ns time = (one++)->second.time, seen = reader->error.empty() ? reader->seen_ns() : 0;
    if (seen != 0 && seen < time && (first == 0 || time - seen < first)) first = time - seen;
  }
  return first;
}

std::vector<Summary> summaries_of(const std::string& path, std::string& error) {
  std::vector<Summary> all;
  HistoryReader file;
  if (!file.open(path)) {
    error = file.error;
    return all;
  }
  for (Snapshot snapshot; file.next(snapshot);) {
    Summary one;
    one.time = snapshot.time;
    one.processes = snapshot.parts.size();
    for (const Part& part : snapshot.parts) one.bytes += part.difference.size();
    all.push_back(one);
  }
  return all;
}

}  // namespace commlens::history
