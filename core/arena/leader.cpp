// SPDX-License-Identifier: Apache-2.0
// Finds the count of a communicator in the arena of another process of this launch.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstring>

#include "core/arena/arena.h"

namespace commlens::arena {
namespace {

// Static buffers, because the alternate stack of a signal handler may be small.
char folder[PATH_MAX];
alignas(8) char entries[8192];
alignas(CommState) char states[16 * sizeof(CommState)];

bool read_at(int file, void* to, std::size_t bytes, std::uint64_t at) noexcept {
  return pread(file, to, bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes);
}

// Returns the size of the file if only this user may write to it; 0 if not, or if it is too large for an arena.
std::uint64_t bytes_of_own(int file) noexcept {
  struct stat facts;
  const bool is_own = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                      (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0 && facts.st_size > 0;
  const std::uint64_t bytes = is_own ? static_cast<std::uint64_t>(facts.st_size) : 0;
  return bytes <= most_bytes ? bytes : 0;
}

bool is_of_launch(const Header& theirs, const Header& own, int rank) noexcept {
  return std::memcmp(theirs.magic, magic, sizeof magic) == 0 && theirs.version == version &&
         theirs.layout == own.layout &&
         std::memcmp(theirs.process.boot, own.process.boot, sizeof own.process.boot) == 0 &&
         theirs.launch.load(std::memory_order_relaxed) == own.launch.load(std::memory_order_relaxed) &&
         theirs.rank.load(std::memory_order_relaxed) == rank;
}

std::int64_t count_in_block(int file, std::uint64_t at, std::uint64_t bytes, std::uint64_t identity) noexcept {
  for (const std::uint64_t end = at + bytes / sizeof(CommState) * sizeof(CommState); at < end;) {
    const std::size_t some = std::min<std::uint64_t>(sizeof states, end - at);
    if (!read_at(file, states, some, at)) return -1;
    for (std::size_t i = 0; i < some; i += sizeof(CommState)) {
      const auto* const state = reinterpret_cast<const CommState*>(states + i);
      if (state->identity.load(std::memory_order_relaxed) == identity && !state->is_set) return state->count;
    }
    at += some;
  }
  return -1;
}

// Returns the count from the arena in `file` if that belongs to `rank` in this launch; else -1.
std::int64_t count_in(int file, const Header& own, int rank, std::uint64_t identity) noexcept {
  const std::uint64_t bytes = bytes_of_own(file);
  alignas(Header) char header[sizeof(Header)];
  if (bytes == 0 || !read_at(file, header, sizeof header, 0)) return -1;
  const Header& theirs = *reinterpret_cast<const Header*>(header);
  const std::uint64_t used = theirs.used.load(std::memory_order_relaxed);
  if (used > bytes || !is_of_launch(theirs, own, rank)) return -1;  // `used` beyond the end of the file: not an arena
  for (std::uint64_t at = header_bytes; at + sizeof(SegmentHead) <= used;) {
    alignas(SegmentHead) char head_bytes[sizeof(SegmentHead)];
    if (!read_at(file, head_bytes, sizeof head_bytes, at)) return -1;
    const auto* const head = reinterpret_cast<const SegmentHead*>(head_bytes);
    at += sizeof(SegmentHead);
    if (head->bytes > used - at) return -1;
    if (head->kind == Kind::comms) {
      const std::int64_t count = count_in_block(file, at, head->bytes, identity);
      if (count >= 0) return count;
    }
    at += head->bytes;
  }
  return -1;
}

bool ends_with(const char* text, const char* end) noexcept {
  const std::size_t length = std::strlen(text), n = std::strlen(end);
  return length >= n && std::memcmp(text + length - n, end, n) == 0;
}

}  // namespace

std::int64_t count_at(int rank, std::uint64_t identity) noexcept {
  const Header* const own = own_header();
  if (own == nullptr || identity == 0 || path().size() >= sizeof folder) return -1;
  std::memcpy(folder, path().c_str(), path().size() + 1);
  *std::strrchr(folder, '/') = '\0';
  const int directory = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  std::int64_t found = -1;
  bool is_one = true;
  // Not readdir(): that allocates memory.
  for (long n; (n = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0;) {
    for (long at = 0; at < n;) {
      const auto* const entry = reinterpret_cast<const dirent64*>(entries + at);
      at += entry->d_reclen;
      if (std::strncmp(entry->d_name, "commlens-", 9) != 0 || !ends_with(entry->d_name, ".arena")) continue;
      const int file = openat(directory, entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (file < 0) continue;
      const std::int64_t count = count_in(file, *own, rank, identity);
      close(file);
      if (count < 0) continue;
      // Two worlds of one launch have the same ranks, and may have the same identities: if their counts differ, the
      // result is ambiguous.
      is_one = found < 0 || found == count;
      found = count;
      if (!is_one) break;
    }
    if (!is_one) break;
  }
  close(directory);
  return is_one ? found : -1;
}

}  // namespace commlens::arena
