// SPDX-License-Identifier: Apache-2.0
#include "core/arena/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "core/base/blocked_signal.h"
#include "core/base/loss.h"
#include "core/base/memory.h"
#include "core/base/private_folder.h"
#include "core/base/say.h"
#include "core/base/ticks.h"
#include "core/hot/thread.h"

namespace commlens::arena {
namespace {

struct Chunk {
  char* memory;
  std::uint64_t bytes;
};

std::mutex mutex;
std::string* file = nullptr;  // path of the arena, once it exists; never destroyed
Header* header = nullptr;
Chunk chunks[most_chunks];
int chunk_count = 0;
std::uint64_t chunk_used = 0;  // bytes used in the newest chunk
std::uint64_t file_bytes = 0;
bool growing = false;  // false: allocate() returns private memory from now on
std::atomic<bool> is_full{false};
__thread bool fork_has_lock = false;  // per thread, because several may fork at once

std::uint64_t rounded(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

// Allocates blocks on disk for a range of the file.  A page without one would end the process (SIGBUS) when it is first
// touched on a full file system.
bool reserve(int descriptor, std::uint64_t from, std::uint64_t bytes) noexcept {
  const BlockedSignal file_size_limit(SIGXFSZ);
  const auto offset = static_cast<off_t>(from);
  int result = 0;
  do {
    result = fallocate(descriptor, 0, offset, static_cast<off_t>(bytes));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return false;
  constexpr std::size_t block = 8 << 10;
  static const char zeros[block] = {};
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t some = std::min<std::uint64_t>(block, bytes - done);
    const ssize_t n = pwrite(descriptor, zeros, some, offset + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::uint64_t>(n);
  }
  return fdatasync(descriptor) == 0 || !is_loss(errno);  // a file server may report only now that it is full
}

// Maps the next `bytes` of the file; returns null, with errno, when there is no room.  Keeps no descriptor open,
// because descriptor numbers belong to the application.
char* map_chunk(std::uint64_t bytes) noexcept {
  errno = EFBIG;
  if (chunk_count == most_chunks || file_bytes + bytes > most_bytes) return nullptr;
  const int descriptor = ::open(file->c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  void* memory = MAP_FAILED;
  struct stat facts;
  errno = ESTALE;  // somebody has replaced or changed the file
  const bool is_ours = fstat(descriptor, &facts) == 0 && facts.st_uid == geteuid() && facts.st_nlink == 1 &&
                       static_cast<std::uint64_t>(facts.st_size) == file_bytes;
  if (is_ours && reserve(descriptor, file_bytes, bytes)) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(file_bytes));
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  if (memory == MAP_FAILED) return nullptr;
  chunks[chunk_count] = {static_cast<char*>(memory), bytes};
  ++chunk_count;
  file_bytes += bytes;
  chunk_used = 0;
  return static_cast<char*>(memory);
}

// Replaces the shared mapping by a private copy at the same addresses.  Runs in the child of a fork: uses only calls
// that are allowed there.
void make_private() noexcept {
  for (int i = 0; i < chunk_count; ++i) {
    void* const copy = mmap(nullptr, chunks[i].bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
      // The child must not write to the shared file, but may go on using this memory: maps private zeros instead.
      void* const zeros = mmap(chunks[i].memory, chunks[i].bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
      static_cast<void>(zeros);  // nothing else can be tried
      continue;
    }
    std::memcpy(copy, chunks[i].memory, chunks[i].bytes);
    mremap(copy, chunks[i].bytes, chunks[i].bytes, MREMAP_MAYMOVE | MREMAP_FIXED, chunks[i].memory);
  }
}

// Returns whether a process of this machine created the arena `name`.  In a folder that several machines share, a
// process of another one may have the same PID and start time, and therefore the same file name.
bool is_of_this_machine(const std::string& name) {
  const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return false;
  alignas(Header) char bytes[sizeof(Header)] = {};
  const bool is_whole = pread(descriptor, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes);
  close(descriptor);
  const auto& found = *reinterpret_cast<const Header*>(bytes);
  return is_whole && std::memcmp(found.magic, magic, sizeof magic) == 0 && is_of_this_boot(found.process);
}

// Returns a path that is the same one after the program has changed its working directory.
std::string absolute(const std::string& path) {
  char folder[PATH_MAX];
  if (path.front() == '/' || getcwd(folder, sizeof folder) == nullptr) return path;
  return std::string(folder) + "/" + path;
}

std::string user_text() { return std::to_string(static_cast<unsigned long>(geteuid())); }

bool open_in(const std::string& place, const Process& process) {
  const std::string name = place + "/" + file_name(process);
  const auto create = [&name] {
    return ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  };
  int descriptor = create();
  if (descriptor < 0 && errno == EEXIST) {
    if (is_of_this_machine(name)) unlink(name.c_str());  // left by this process before it replaced its program (exec)
    descriptor = create();
  }
  if (descriptor < 0) return false;
  close(descriptor);
  file = new std::string(name);
  char* const memory = map_chunk(first_chunk);
  if (memory == nullptr) {
    const int error = errno;
    unlink(name.c_str());
    delete file;
    file = nullptr;
    errno = error;
    return false;
  }
  header = reinterpret_cast<Header*>(memory);
  chunk_used = header_bytes;
  return true;
}

// Notes that the arena cannot grow.  Mapped segments stay usable.  In a job only rank 0 prints a message; commlens
// recover prints one for each process.
void end_of_room(int error) noexcept {
  is_full = true;
  header->is_full.store(1, std::memory_order_relaxed);
  if (launcher_rank() > 0) return;
  say("no more room for counters in %s: %s; the profile will be complete, but if the job is killed, some counts are "
      "lost",
      file->c_str(), std::strerror(error));
}

}  // namespace

std::string file_prefix() { return "commlens-" + user_text() + "-"; }

std::string file_name(const Process& process) {
  // Processes in containers that share a folder may have the same process id, and may start in the same clock tick.
  return file_prefix() + std::to_string(process.pid) + "-" + std::to_string(process.start_time) + "-" +
         std::to_string(process.namespaces.pid) + ".arena";
}

std::vector<std::string> places(const std::string& wanted) {
  std::vector<std::string> all;
  if (!wanted.empty()) all.push_back(absolute(wanted));
  all.emplace_back("/dev/shm");
  const char* const scratch = std::getenv("TMPDIR");
  if (scratch != nullptr && *scratch == '/') all.emplace_back(scratch);
  return all;
}

std::uint64_t layout() noexcept { return sizeof(Thread) << 32 | sizeof(Cell) << 16 | sizeof(CommState); }

std::string open(const std::vector<std::string>& places, std::string& error) {
  const std::lock_guard<std::mutex> lock(mutex);
  const Process process = this_process();
  for (const std::string& place : places) {
    if (open_in(place, process)) break;
    error += (error.empty() ? "" : "; ") + place + ": " + std::strerror(errno);
  }
  if (file == nullptr) return {};
  std::memcpy(header->magic, magic, sizeof magic);
  header->version = version;
  header->header_bytes = header_bytes;
  header->layout = layout();
  header->process = process;
  header->clock_is_tsc = clock_is_tsc ? 1 : 0;
  header->first = header->last = reading();
  header->rank.store(-1, std::memory_order_relaxed);
  header->used.store(header_bytes, std::memory_order_release);
  growing = true;
  return *file;
}

void* allocate(Kind kind, std::size_t bytes, std::uint32_t number) noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  const std::uint64_t needed = sizeof(SegmentHead) + rounded(bytes, alignment);
  if (growing && chunks[chunk_count - 1].bytes - chunk_used < needed) {
    // The rest of the chunk becomes a segment without content, so that readers find the next segment behind it.
    const std::uint64_t rest = chunks[chunk_count - 1].bytes - chunk_used;
    char* const end = chunks[chunk_count - 1].memory + chunk_used;
    const std::uint64_t chunk = std::max(std::min(file_bytes, largest_chunk), rounded(needed, chunk_alignment));
    const int saved = errno;
    growing = map_chunk(chunk) != nullptr;
    if (!growing) end_of_room(errno);
    errno = saved;
    if (growing && rest != 0) {
      auto* const filler = reinterpret_cast<SegmentHead*>(end);
      filler->kind = Kind::none;
      filler->bytes = rest - sizeof(SegmentHead);
    }
    if (growing) header->used.store(file_bytes - chunk, std::memory_order_release);
  }
  if (!growing) return map_memory(bytes);
  auto* const head = reinterpret_cast<SegmentHead*>(chunks[chunk_count - 1].memory + chunk_used);
  head->kind = kind;
  head->number = number;
  head->bytes = rounded(bytes, alignment);
  chunk_used += needed;
  header->used.fetch_add(needed, std::memory_order_release);
  return head + 1;
}

bool overflowed() noexcept { return is_full; }

const Header* own_header() noexcept { return header; }

void note_forgotten(Ticks at, std::uint32_t clears) noexcept {
  if (header == nullptr) return;
  header->forgotten.store(at);
  header->clears.store(clears);
}

void note_pause(const Pause& pause) noexcept {
  if (header == nullptr) return;
  header->held.store(pause.held.load());
  header->paused_before.store(pause.before.load());
  header->pause_changes.store(pause.changes.load());
}

void note_rank(int rank, std::uint64_t launch) noexcept {
  if (header == nullptr) return;
  header->launch.store(launch, std::memory_order_relaxed);
  header->rank.store(rank, std::memory_order_release);
}

void read_clocks() noexcept {
  if (header != nullptr) header->last = reading();
}

const std::string& path() noexcept {
  static const std::string none;
  return file == nullptr ? none : *file;
}

void remove() noexcept {
  const std::lock_guard<std::mutex> lock(mutex);
  if (file == nullptr) return;
  header->state.store(static_cast<std::uint32_t>(State::finalized), std::memory_order_release);
  unlink_file();
  growing = false;
}

void unlink_file() noexcept {
  if (file != nullptr) unlink(file->c_str());
}

void note_state(std::uint32_t state) noexcept {
  if (header == nullptr) return;
  header->state.store(state, std::memory_order_release);
  read_clocks();
}

bool copy(int folder, const char* unfinished, const char* name) noexcept {
  if (header == nullptr) return false;
  const BlockedSignal file_size_limit(SIGXFSZ);
  const int descriptor = create_anew(folder, unfinished, 0600);
  if (descriptor < 0) return false;
  read_clocks();
  bool done = true;
  // Copies `used` bytes and ignores chunk_count: this thread or another one may be adding a chunk.
  std::uint64_t left = header->used.load(std::memory_order_acquire);
  for (int i = 0; left != 0 && done; ++i) {
    const std::uint64_t bytes = std::min(chunks[i].bytes, left);
    left -= bytes;
    for (std::uint64_t written = 0; written < bytes && done;) {
      const ssize_t n = write(descriptor, chunks[i].memory + written, bytes - written);
      if (n < 0 && errno == EINTR) continue;
      done = n > 0;
      if (done) written += static_cast<std::uint64_t>(n);
    }
  }
  int error = errno;
  const bool is_closed = close(descriptor) == 0;
  if (done && !(is_closed && renameat(folder, unfinished, folder, name) == 0)) {
    error = errno;
    done = false;
  }
  if (!done) unlinkat(folder, unfinished, 0);
  errno = error;
  return done;
}

// A signal handler may fork while its thread holds the lock.  try_lock() then fails, and the parent must not unlock.
void before_fork() noexcept { fork_has_lock = mutex.try_lock(); }
void after_fork_in_parent() noexcept {
  if (fork_has_lock) mutex.unlock();
}
void after_fork_in_child(bool copies) noexcept {
  if (copies) make_private();
  growing = false;
  chunk_count = 0;
  file = nullptr;
  header = nullptr;
  new (&mutex) std::mutex;  // the thread that may have held it does not exist in the child
}

}  // namespace commlens::arena
