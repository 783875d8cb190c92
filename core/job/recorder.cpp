// SPDX-License-Identifier: Apache-2.0
// Starts commlens-arena record outside of the job: the application gets no child that it could wait for, no SIGCHLD, no
// descriptor, and the memory of the process is never copied, which InfiniBand would not survive.
#include "core/job/recorder.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <vector>

#include "core/arena/arena.h"
#include "core/base/memory.h"
#include "core/base/say.h"
#include "core/process/symbols.h"

namespace commlens {
namespace {

constexpr std::size_t stack_bytes = 64 << 10;

// Returns the descriptor, or one above 2 in its place, since the tool replaces the first three; -1 with errno.
int above_standard(int file) noexcept {
  if (file < 0 || file > STDERR_FILENO) return file;
  const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(file);
  errno = error;
  return moved;
}

// Returns why a process whose parent has ended becomes a child of this one, and what to do; null: it does not.
const char* why_parent() noexcept {
  if (getpid() == 1) {
    return "this program is process 1 of its container, so that the process that takes them would be its child; "
           "run the container with an init process";
  }
  int is_subreaper = 0;
  if (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper) != 0 || is_subreaper == 0) return nullptr;
  return "this program is a child subreaper, so that the process that takes them would be its child; "
         "call prctl(PR_SET_CHILD_SUBREAPER) after MPI_Init";
}

// Returns a socket that is bound to a name which only one process can have, or -1 with errno.  The name is in no file
// system, and is free again when the last process that has the socket ends, however it ends.
int only_one(std::uint64_t launch, std::uint64_t pid_namespace) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A zero at the beginning: no path.
  const int n = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "commlens-%lu-%016" PRIx64 "-%" PRIu64,
                              static_cast<unsigned long>(geteuid()), launch, pid_namespace);
  const int some = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int file = above_standard(some);
  if (file < 0) return -1;
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(n));
  if (bind(file, reinterpret_cast<const sockaddr*>(&address), bytes) == 0) return file;
  const int error = errno;
  close(file);
  errno = error;
  return -1;
}

// Returns the path of commlens-arena, which is in a build tree or an installation with this library; empty: none.
std::string path_of_tool() {
  char library[PATH_MAX];
  if (realpath(object_of(reinterpret_cast<const void*>(start_recorder)), library) == nullptr) return {};
  const std::string path = library, folder = path.substr(0, path.rfind('/'));
  for (const char* const place : {"/../../bin", "/../../../libexec/commlens", "/../../../../libexec/commlens"}) {
    const std::string tool = folder + place + "/commlens-arena";
    if (access(tool.c_str(), X_OK) == 0) return tool;
  }
  return {};
}

// Shared with the two processes below, which share the memory of this one until the second executes the tool.
struct Start {
  const char* tool;
  char* const* arguments;
  int status, lock;
  char* stack;
  int error;
};

int execute(void* argument) noexcept {
  auto& start = *static_cast<Start*>(argument);
  static const char* const nothing[] = {nullptr};
  execve(start.tool, start.arguments, const_cast<char* const*>(nothing));
  start.error = errno;
  _exit(127);
}

// Starts the tool and ends, so that the tool is no child of the application.
int start_and_end(void* argument) noexcept {
  auto& start = *static_cast<Start*>(argument);
  for (const int file : {start.status, start.lock}) fcntl(file, F_SETFD, 0);  // in this process, and those it starts
  if (clone(execute, start.stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, &start) < 0) start.error = errno;
  _exit(0);
}

// Starts the tool; returns 0 or an error number.
int spawn(Start& start) noexcept {
  auto* const stacks = static_cast<char*>(map_memory(2 * stack_bytes));
  if (stacks == nullptr) return ENOMEM;
  start.stack = stacks + stack_bytes;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // a handler must not run in the other processes
  // 0 instead of SIGCHLD: no signal for the application, and its wait() does not find this child.
  const int child = clone(start_and_end, stacks + stack_bytes, CLONE_VM | CLONE_VFORK, &start);
  const int error = child < 0 ? errno : 0;
  if (child >= 0) {
    while (waitpid(child, nullptr, __WCLONE) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  unmap_memory(stacks, 2 * stack_bytes);
  return error != 0 ? error : start.error;
}

// Waits until the tool has written "started", or "started: " and why it cannot record.  Returns the latter, or an empty
// text.
std::string answer_of(int status) {
  constexpr int patience = 10'000;  // milliseconds
  pollfd file{status, POLLIN, 0};
  const auto now = [] {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<std::int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
  };
  const std::int64_t end = now() + patience;
  std::string text;
  char some[512];
  while (true) {
    const int ready = poll(&file, 1, static_cast<int>(std::max<std::int64_t>(end - now(), 0)));
    if (ready < 0 && errno == EINTR) continue;  // a signal of the application
    if (ready <= 0) break;
    const ssize_t n = read(status, some, sizeof some);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(some, static_cast<std::size_t>(n));
  }
  if (text.empty()) return "commlens-arena ended, or does not answer";
  const std::size_t reason = text.find(": ");
  return reason == std::string::npos ? "" : text.substr(reason + 2);
}

// Returns why the tool cannot be started, or what it reports, or an empty text.
std::string start_tool(const RecorderFacts& facts, const std::string& tool, int lock) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::strerror(errno);
  ends[1] = above_standard(ends[1]);
  if (ends[1] < 0) {
    const std::string reason = std::strerror(errno);
    close(ends[0]);
    return reason;
  }
  char launch[20];
  std::snprintf(launch, sizeof launch, "%016" PRIx64, facts.launch);
  std::vector<std::string> texts = {tool,
                                    "record",
                                    launch,
                                    std::to_string(facts.seconds),
                                    std::to_string(facts.most),
                                    facts.folder,
                                    facts.node,
                                    std::to_string(ends[1]),
                                    std::to_string(lock)};
  for (const std::string& place : arena::places(facts.arena_dir)) texts.push_back(place);
  std::vector<char*> arguments;
  arguments.reserve(texts.size() + 1);
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  Start start{tool.c_str(), arguments.data(), ends[1], lock, nullptr, 0};
  const int error = spawn(start);
  close(ends[1]);
  const std::string reason = error != 0 ? std::strerror(error) : answer_of(ends[0]);
  close(ends[0]);
  return reason;
}

}  // namespace

void start_recorder(const RecorderFacts& facts) noexcept try {
  const arena::Header* const header = arena::own_header();
  if (header == nullptr) return;  // a message has said so
  const int saved = errno;
  std::string reason;
  if (const char* const parent = why_parent(); parent != nullptr) {
    // The name stays free: another rank of the node can start the recorder.
    if (facts.is_first) reason = parent;
  } else if (const std::string tool = path_of_tool(); tool.empty()) {
    if (facts.is_first) reason = "commlens-arena is not where the library was installed";
  } else if (const int lock = only_one(facts.launch, header->process.namespaces.pid); lock >= 0) {
    reason = facts.make_folders() ? start_tool(facts, tool, lock) : std::strerror(errno);
    close(lock);
  } else if (errno != EADDRINUSE) {
    reason = std::strerror(errno);
  }
  if (!reason.empty()) {
    say("cannot store snapshots of the counters in %s: %s", facts.folder.c_str(), reason.c_str());
  }
  errno = saved;
} catch (const std::exception&) {  // bad_alloc
  say("cannot store snapshots of the counters: out of memory");
}

}  // namespace commlens
