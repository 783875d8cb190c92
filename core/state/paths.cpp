// SPDX-License-Identifier: Apache-2.0
// Call paths: the stack is unwound once for each path and depth of the stack.  Paths are the nodes of a tree, each with
// a return address and its caller, so that two paths share what they have in common.
#include "core/state/paths.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "core/base/locks.h"
#include "core/base/memory.h"
#include "core/state/sites.h"

// Of the main thread; the dynamic linker defines it.
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp)
extern "C" void* __libc_stack_end;

namespace commlens {
namespace {

constexpr unsigned longest = 64;
constexpr int in_binding = 8;  // frames of a Fortran binding, at most
constexpr std::size_t most_nodes = 1u << 16;
constexpr int words_of_frame = 3;  // at most: return address, frame pointer, and that of a realigned stack

unsigned frame_limit = 1;

struct Node {
  Site address;
  Site caller;
};

// Never destroyed: threads may call MPI while the program exits.
struct Paths {
  std::deque<Node> nodes;  // a path is path_bit and the index of its node
  std::map<std::pair<Site, Site>, Site> known;
};
Paths& paths() {
  static Paths* const all = new Paths;
  return *all;
}

// Returns the path that `caller` takes to `address`; 0 if there are too many.
Site node_of(Site address, Site caller) {
  const auto [entry, is_new] = paths().known.try_emplace({address, caller}, 0);
  if (is_new && paths().nodes.size() < most_nodes) {
    entry->second = path_bit | paths().nodes.size();
    paths().nodes.push_back({address, caller});
  }
  return entry->second;
}

// Returns the path of return addresses, innermost first.
Site number_of(const Site* addresses, int n) noexcept try {
  Site path = 0;
  for (int i = n - 1; i >= 0; --i) {
    {
      const std::lock_guard<std::mutex> lock(locks::paths);
      path = node_of(addresses[i], path);
    }
    if (path == 0) return 0;
    module_of_site(path);  // now, because the module may be unloaded later
  }
  return path;
} catch (const std::bad_alloc&) {
  return 0;
}

// The frames around a wrapper, and the words of the stack that prove them: at least one.
struct Stack {
  Site returns[longest + in_binding];
  StackWord word[words_of_frame * (longest + in_binding) + 2];
  int frames = 0, words = 0;

  void unwind_from(Site caller, const char* frame, const char* stack_end, int most) noexcept {
    const auto* const at = reinterpret_cast<const std::uint64_t*>(frame);
    returns[0] = at[1];
    StackWord* const further = word + 2;
    const int room = static_cast<int>(std::size(word)) - 2;
    const StackFrame first{at[1], reinterpret_cast<std::uint64_t>(at + 2), at[0],
                           reinterpret_cast<std::uint64_t>(stack_end)};
    const Unwound found = unwind(first, returns + 1, most - 1, further, room);
    frames = 1 + found.frames;
    // The key of the cache has the return address, unless it was called by a Fortran binding.
    if (at[1] != caller || found.words == 0) word[words++] = {at + 1, at[1]};
    if (found.uses_fp) word[words++] = {at, at[0]};
    words = static_cast<int>(std::copy(further, further + found.words, word + words) - word);
  }
};

// Returns the end of the thread's stack; null if the frame lies on one that the program has made.
const char* stack_end_of(const PathCache& cache, const char* frame) noexcept {
  return cache.stack <= frame && frame < cache.stack_end ? cache.stack_end : nullptr;
}

// Returns whether a word can be read without a check, now and whenever the words before it are the same.  Unwind tables
// of hand-written code may be wrong, so that a word lies elsewhere.  On a stack that the program has made, we only know
// that what is near is mapped.
bool is_on_stack(const PathCache& cache, const char* frame, const StackWord& word) noexcept {
  constexpr std::ptrdiff_t near = 64 << 10;
  const auto* const at = reinterpret_cast<const char*>(word.at);
  const char* const end = stack_end_of(cache, frame);
  return frame <= at && (end != nullptr ? at < end : at - frame < near);
}

void remember(PathCache& cache, Site caller, const char* frame, Site path, const Stack& stack) noexcept {
  if (&cache == &PathCache::none) return;
  const std::size_t room = (cache.slot_bytes - offsetof(KnownPath, word)) / sizeof(StackWord);
  const auto words = static_cast<std::size_t>(stack.words), groups = (words + KnownPath::group - 1) / KnownPath::group;
  const auto is_sure = [&](const StackWord& word) { return is_on_stack(cache, frame, word); };
  if (groups * KnownPath::group > room || !std::all_of(stack.word, stack.word + words, is_sure)) return;
  KnownPath* slot = &cache.place(caller, frame);
  if (slot->caller != 0 && (cache.neighbor(*slot).caller == 0 || (++cache.turn & 1) != 0))
    slot = &cache.neighbor(*slot);
  slot->caller = caller;
  slot->frame = frame;
  slot->path = path;
  slot->groups = static_cast<std::int64_t>(groups);
  StackWord* const behind = std::copy(stack.word, stack.word + words, slot->word);
  std::fill(behind, slot->word + groups * KnownPath::group, behind[-1]);
}

}  // namespace

PathCache PathCache::none;

void choose_frames(unsigned long wanted) noexcept {
  frame_limit = static_cast<unsigned>(std::clamp<unsigned long>(wanted, 1, longest));
}

unsigned most_frames() noexcept { return frame_limit; }

PathCache* new_path_cache() noexcept {
  if (frame_limit < 2) return &PathCache::none;
  std::size_t bytes = 64;
  while (bytes < offsetof(KnownPath, word) + sizeof(StackWord) * (2 + words_of_frame * frame_limit / 2)) bytes *= 2;
  auto* const cache = static_cast<PathCache*>(map_memory(sizeof(PathCache) + PathCache::slots * bytes));
  if (cache == nullptr) return &PathCache::none;
  cache->mask = (PathCache::slots - 1) * bytes;
  cache->slot_bytes = bytes;
  return cache;
}

void use_path_cache(PathCache* cache) noexcept {
  if (cache == &PathCache::none) return;
  if (getpid() == static_cast<pid_t>(syscall(SYS_gettid))) {
    constexpr std::size_t most = 1u << 30;
    rlimit limit{};
    const bool is_limited = getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < most;
    cache->stack_end = static_cast<const char*>(__libc_stack_end);
    cache->stack = cache->stack_end - (is_limited ? limit.rlim_cur : most);
    return;
  }
  pthread_attr_t attributes;
  void* stack = nullptr;
  std::size_t bytes = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &stack, &bytes);
    pthread_attr_destroy(&attributes);
  }
  cache->stack = static_cast<const char*>(stack);
  cache->stack_end = cache->stack + bytes;
}

Site add_path(PathCache& cache, Site caller, Site site, const char* frame) noexcept {
  const int saved = errno;
  const auto wanted = static_cast<int>(frame_limit);
  const char* const end = stack_end_of(cache, frame);
  Stack stack;
  stack.unwind_from(caller, frame, end, wanted);
  const Site* first = std::find(stack.returns, stack.returns + stack.frames, site);
  if (first != stack.returns) {  // frames of a Fortran binding come first
    stack = Stack{};
    stack.unwind_from(caller, frame, end, wanted + in_binding);
    first = std::find(stack.returns, stack.returns + std::min(stack.frames, in_binding), site);
  }
  const auto inner = static_cast<int>(first - stack.returns);
  const bool is_there = inner < std::min(stack.frames, in_binding);
  const Site path = is_there ? number_of(first, std::min(stack.frames - inner, wanted)) : 0;
  if (path != 0) remember(cache, caller, frame, path, stack);
  errno = saved;
  return path != 0 ? path : site;
}

Site address_of(Site site) noexcept {
  if (!is_path(site)) return site;
  const std::lock_guard<std::mutex> lock(locks::paths);
  const std::size_t node = site & ~path_bit;
  return node < paths().nodes.size() ? paths().nodes[node].address : 0;
}

Site caller_of(Site site) noexcept {
  if (!is_path(site)) return 0;
  const std::lock_guard<std::mutex> lock(locks::paths);
  const std::size_t node = site & ~path_bit;
  return node < paths().nodes.size() ? paths().nodes[node].caller : 0;
}

}  // namespace commlens
