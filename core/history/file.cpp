// SPDX-License-Identifier: Apache-2.0
#include "core/history/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <utility>

#include "core/arena/arena.h"
#include "core/arena/format.h"
#include "core/base/identity.h"
#include "core/base/wire.h"
#include "core/history/difference.h"

namespace commlens::history {
namespace {

struct FileHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t arena_version;
  std::uint64_t layout;  // as in arena::Header
};
struct RecordHead {
  std::uint64_t bytes, check;
};

constexpr FileHead own_head() { return {{'C', 'L', 'H', 'I', 'S', 'T', 'O', '\n'}, 1, arena::version, 0}; }

std::vector<char> encoded(const Snapshot& snapshot) {
  WireWriter out;
  out.number(snapshot.time);
  out.number(snapshot.parts.size());
  for (const Part& part : snapshot.parts) {
    out.number(part.process);
    out.number(part.time);
    out.number(part.is_running ? 1 : 0);
    out.text(part.difference);
  }
  return out.bytes();
}

bool decode(const std::vector<char>& bytes, Snapshot& snapshot) {
  WireReader in(bytes.data(), bytes.size());
  snapshot = {};
  snapshot.time = in.number();
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    Part part;
    part.process = static_cast<std::uint32_t>(in.number());
    part.time = in.number();
    part.is_running = in.number() == 1;
    part.difference = in.text();
    snapshot.parts.push_back(std::move(part));
  }
  return in.ok();
}

// Reads up to `bytes` bytes from an offset on; returns how many it read.
using ReadAt = std::function<std::size_t(char*, std::size_t, std::uint64_t)>;

// Reads the record at `at`, and moves `at` behind it.  Returns false if it is not whole.  size: of the file.
bool read_record(const ReadAt& read_at, std::uint64_t size, std::uint64_t& at, Snapshot& snapshot) {
  RecordHead head;
  if (at > size || size - at < sizeof head) return false;
  if (read_at(reinterpret_cast<char*>(&head), sizeof head, at) < sizeof head) return false;
  if (head.bytes > size - at - sizeof head) return false;
  std::vector<char> bytes(head.bytes);
  if (read_at(bytes.data(), bytes.size(), at + sizeof head) < bytes.size()) return false;
  if (identity_of(bytes.data(), bytes.size()) != head.check || !decode(bytes, snapshot)) return false;
  at += sizeof head + bytes.size();
  return true;
}

bool write_all(int file, const char* from, std::size_t bytes) noexcept {
  while (bytes != 0) {
    const ssize_t n = write(file, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) return false;
    from += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool write_head(int file) {
  FileHead head = own_head();
  head.layout = arena::layout();
  return write_all(file, reinterpret_cast<const char*>(&head), sizeof head);
}

// Writes a record behind the others, and adds its length to `end`.
bool write_record(int file, const Snapshot& snapshot, std::uint64_t& end) {
  const std::vector<char> bytes = encoded(snapshot);
  const RecordHead head{bytes.size(), identity_of(bytes.data(), bytes.size())};
  if (!write_all(file, reinterpret_cast<const char*>(&head), sizeof head) ||
      !write_all(file, bytes.data(), bytes.size())) {
    return false;
  }
  end += sizeof head + bytes.size();
  return true;
}

}  // namespace

Snapshot sum_of(const Snapshot& first, const Snapshot& second) {
  std::map<std::uint32_t, Part> parts;
  for (const Part& part : first.parts) parts[part.process] = part;
  for (const Part& part : second.parts) {
    const auto [at, is_new] = parts.try_emplace(part.process, part);
    if (is_new) continue;
    std::string sum = sum_of(at->second.difference, part.difference);
    at->second = {part.process, part.time, part.is_running, std::move(sum)};
  }
  Snapshot sum;
  sum.time = second.time;
  for (auto& [process, part] : parts) sum.parts.push_back(std::move(part));
  return sum;
}

HistoryWriter::HistoryWriter(std::uint64_t most) : most_(std::max<std::uint64_t>(most, 2)) {}

HistoryWriter::~HistoryWriter() {
  if (file_ >= 0) close(file_);
  if (count_ != 0 || path_.empty()) return;
  if (file_ >= 0) unlinkat(folder_.descriptor(), name_.c_str(), 0);
  rmdir(path_.c_str());  // fails if another process has stored something there
}

bool HistoryWriter::create(const std::string& folder, const std::string& name) {
  path_ = folder;
  name_ = name;
  return succeeds_though_folder_vanishes([&] {
    folder_ = PrivateFolder::make(folder.c_str());
    if (!folder_) return false;
    file_ = create_anew(folder_.descriptor(), name.c_str(), 0600);
    end_ = sizeof(FileHead);
    if (file_ < 0) return false;
    if (write_head(file_)) return true;
    const int error = errno;
    close(file_);
    file_ = -1;  // nothing may be added to a file that has no name
    unlinkat(folder_.descriptor(), name.c_str(), 0);
    errno = error;
    return false;
  });
}

bool HistoryWriter::add(const Snapshot& snapshot) {
  if (file_ < 0 && !create(path_, name_)) return false;
  // fdatasync: the snapshot is to remain even if the node is lost.
  std::uint64_t end = end_;
  if (write_record(file_, snapshot, end) && (fdatasync(file_) == 0 || errno == EINVAL)) {
    ++count_;
    end_ = end;
    // The snapshot is stored.  If there is no room for the merged file, the next one tries again.
    if (count_ > most_) merge_older();
    return true;
  }
  const int error = errno;
  // A record that is not whole would hide all after it.
  const bool is_cut = ftruncate(file_, static_cast<off_t>(end_)) == 0 &&
                      lseek(file_, static_cast<off_t>(end_), SEEK_SET) == static_cast<off_t>(end_);
  errno = is_cut ? error : errno;
  return false;
}

// Writes a file of its own, which then takes the place of the other one: a kill in between loses nothing.
void HistoryWriter::merge_older() {
  const int old = openat(folder_.descriptor(), name_.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (old < 0) return;
  const std::string unfinished = name_ + ".merge";
  const int merged = create_anew(folder_.descriptor(), unfinished.c_str(), 0600);
  const ReadAt read_at = [old](char* to, std::size_t bytes, std::uint64_t at) {
    const ssize_t n = pread(old, to, bytes, static_cast<off_t>(at));
    return n < 0 ? 0 : static_cast<std::size_t>(n);
  };
  bool is_done = merged >= 0 && write_head(merged);
  std::uint64_t at = sizeof(FileHead), end = sizeof(FileHead), written = 0;
  // An even number: each is merged with its neighbour.
  const std::uint64_t older = std::max<std::uint64_t>(2, count_ / 4 * 2);
  Snapshot snapshot, second;
  for (std::uint64_t i = 0; i < count_ && is_done; ++i) {
    is_done = read_record(read_at, end_, at, snapshot);
    if (is_done && i < older) {
      is_done = read_record(read_at, end_, at, second);
      if (is_done) snapshot = sum_of(snapshot, second);
      ++i;
    }
    is_done = is_done && write_record(merged, snapshot, end);
    ++written;
  }
  is_done = is_done && (fdatasync(merged) == 0 || errno == EINVAL) &&
            renameat(folder_.descriptor(), unfinished.c_str(), folder_.descriptor(), name_.c_str()) == 0;
  close(old);
  if (is_done) {
    close(file_);
    file_ = merged;
    count_ = written;
    end_ = end;
  } else if (merged >= 0) {
    close(merged);
    unlinkat(folder_.descriptor(), unfinished.c_str(), 0);
  }
}

bool HistoryReader::open(const std::string& path) {
  const auto failed = [&](const std::string& what) {
    error = path + ": " + what;
    return false;
  };
  if (!input_.open(path)) return failed(input_.error);
  FileHead head;
  if (input_.read_at(reinterpret_cast<char*>(&head), sizeof head, 0) < sizeof head) {
    return failed("too short for a history");
  }
  const FileHead own = own_head();
  if (std::memcmp(head.magic, own.magic, sizeof own.magic) != 0) return failed("not a history of commlens");
  if (head.version != own.version || head.arena_version != own.arena_version || head.layout != arena::layout()) {
    return failed("written by another version of commlens; only that version can read it");
  }
  at_ = sizeof head;
  // Nobody writes holes.  A file that claims to be larger than what is stored must not cost memory.
  end_ = input_.first_hole();
  return true;
}

bool HistoryReader::next(Snapshot& snapshot) {
  return read_record([this](char* to, std::size_t bytes, std::uint64_t at) { return input_.read_at(to, bytes, at); },
                     end_, at_, snapshot);
}

}  // namespace commlens::history
