// SPDX-License-Identifier: Apache-2.0
// Call paths: the stack is unwound once for each path and depth of the stack.  Paths are the nodes of a tree, each with
// a return address and its caller, so that two paths share what they have in common.
#include "core/state/paths.h"

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
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/identity.h"
#include "core/base/locks.h"
#include "core/base/memory.h"
#include "core/base/say.h"
#include "core/base/thread_stack.h"
#include "core/state/journal.h"
#include "core/state/python_frames.h"
#include "core/state/sites.h"

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
  const SiteFacts* python;  // null: a return address
};

// Never destroyed: threads may call MPI while the program exits.
struct Paths {
  std::deque<Node> nodes;  // a path is path_bit and the index of its node
  std::map<std::pair<Site, Site>, Site> known;
  std::map<std::tuple<std::string, std::string, std::uint64_t>, SiteFacts> in_python;
  std::uint64_t without_room = 0;  // calls whose path has no node, because there are too many
};
Paths& paths() {
  static Paths* const all = new Paths;
  return *all;
}

// Returns the path that `caller` takes to `address`, or to a place in Python code; 0 if there are too many.
Site node_of(Site address, Site caller, const SiteFacts* python = nullptr) {
  auto& known = paths().known;
  const std::pair<Site, Site> key{address, caller};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  if (paths().nodes.size() == most_nodes) {
    ++paths().without_room;
    return 0;
  }
  const Site path = path_bit | paths().nodes.size();
  const auto entry = known.emplace(key, path).first;
  try {
    paths().nodes.push_back({address, caller, python});
  } catch (const std::bad_alloc&) {
    known.erase(entry);  // there may be memory later
    throw;
  }
  return path;
}

// Returns the path that `caller` takes to a place in Python code; 0 if there are too many.
Site node_in_python(const SiteFacts& place, Site caller) {
  Site path = 0;
  bool is_new = false;
  {
    const std::lock_guard<std::mutex> lock(locks::paths);
    const std::size_t before = paths().nodes.size();
    const std::tuple<std::string, std::string, std::uint64_t> key{place.module, place.build_id, place.offset};
    if (before == most_nodes && paths().in_python.count(key) == 0) {
      ++paths().without_room;
      return 0;
    }
    const SiteFacts& known = paths().in_python.try_emplace(key, place).first->second;
    // No return address lies in allocated memory.
    path = node_of(reinterpret_cast<Site>(&known), caller, &known);
    is_new = paths().nodes.size() != before;
  }
  if (is_new) journal::note(journal::SiteEntry{path, caller, place});
  return path;
}

// Returns the path of return addresses, and of the places in Python code around them, both innermost first.
Site number_of(const Site* addresses, int n, const std::vector<SiteFacts>& python) noexcept try {
  Site path = 0;
  for (auto place = python.rbegin(); place != python.rend(); ++place) {
    path = node_in_python(*place, path);
    if (path == 0) return 0;
  }
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

  // known: the key of the cache, which may be the return address.
  void unwind_from(Site known, const char* frame, const char* stack_end, int most) noexcept {
    const auto* const at = reinterpret_cast<const std::uint64_t*>(frame);
    returns[0] = without_signature(at[1]);
    frames = 1;
    StackWord* const further = word + 2;
    const int room = static_cast<int>(std::size(word)) - 2;
    const StackFrame first{returns[0], sp_after_return(frame), at[0], reinterpret_cast<std::uint64_t>(stack_end)};
    if (!can_unwind || first.sp == 0) {
      word[words++] = {at + 1, at[1]};
      return;
    }
    const Unwound found = unwind(first, returns + 1, most - 1, further, room);
    frames = 1 + found.frames;
    if (returns[0] != known || found.words == 0) word[words++] = {at + 1, at[1]};
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

void remember(PathCache& cache, Site key, const char* frame, Site path, const Stack& stack,
              const std::vector<StackWord>& python) noexcept {
  if (&cache == &PathCache::none) return;
  const std::size_t room = (cache.slot_bytes - sizeof(KnownPath)) / sizeof(StackWord);
  const std::size_t words = static_cast<std::size_t>(stack.words) + python.size(),
                    groups = (words + KnownPath::group - 1) / KnownPath::group;
  const auto is_sure = [&](const StackWord& word) { return is_on_stack(cache, frame, word); };
  if (groups * KnownPath::group > room || !std::all_of(stack.word, stack.word + stack.words, is_sure)) return;
  KnownPath* slot = &cache.place(key, frame);
  if (slot->caller != 0 && (cache.neighbor(*slot).caller == 0 || (++cache.turn & 1) != 0))
    slot = &cache.neighbor(*slot);
  slot->caller = key;
  slot->frame = frame;
  slot->path = path;
  slot->groups = static_cast<std::int64_t>(groups);
  StackWord* const behind =
      std::copy(python.begin(), python.end(), std::copy(stack.word, stack.word + stack.words, slot->words()));
  std::fill(behind, slot->words() + groups * KnownPath::group, behind[-1]);
}

// Returns the path of a call in Python code, or 0.
Site find_in_python(PathCache& cache, Site key, const char* frame) noexcept {
  if (!cache.is_shared_python) {
    const KnownPath* const known = cache.find(key, frame);
    return known != nullptr ? known->path : 0;
  }
  KnownPath& place = cache.place(key, frame);
  for (const KnownPath* known : {&place, &cache.neighbor(place)}) {
    if (known->caller == key && known->frame == frame &&
        python::are_still_unchanged(known->words(), static_cast<int>(known->groups) * KnownPath::group))
      return known->path;
  }
  return 0;
}

// Unwinds the stack.  Returns the number of the path, or 0 if it cannot be known.
Site unwind_path(PathCache& cache, Site key, Site site, const char* frame, const python::Frames& python) noexcept {
  const auto wanted = static_cast<int>(frame_limit);
  const char* const end = stack_end_of(cache, frame);
  Stack stack;
  stack.unwind_from(key, frame, end, wanted);
  const Site* first = std::find(stack.returns, stack.returns + stack.frames, site);
  if (first != stack.returns) {  // frames of a Fortran binding come first
    stack = Stack{};
    stack.unwind_from(key, frame, end, wanted + in_binding);
    first = std::find(stack.returns, stack.returns + std::min(stack.frames, in_binding), site);
  }
  const auto inner = static_cast<int>(first - stack.returns);
  if (inner >= std::min(stack.frames, in_binding)) return 0;
  int count = std::min(stack.frames - inner, wanted);
  if (!python.places.empty())
    count = 1 + static_cast<int>(std::find_if(first + 1, first + count, python::is_interpreter) - (first + 1));
  const Site path = number_of(first, count, python.places);
  if (path != 0) remember(cache, key, frame, path, stack, python.words);
  return path;
}

// Finds or unwinds a path in a program that runs Python.  Returns 0 if it cannot be known.
Site add_python_path(PathCache& cache, Site caller, Site site, const char* frame) noexcept try {
  const python::Position at = python::position(cache.is_shared_python);
  if (&cache != &PathCache::none) cache.python_thread = at.thread;
  // In the key the instruction tells apart the calls of one function, and Python's frame the depths from which it is
  // called: from 3.11 on, the frame of the stack is the same for all of them.  That it has path_bit keeps the path from
  // those wrappers that know nothing of Python.
  const Site key = path_bit | combine(combine(caller, at.frame), at.frame != 0 ? at.instruction : 0);
  if (const Site known = find_in_python(cache, key, frame)) return known;
  return unwind_path(cache, key, site, frame,
                     python::frames_at(at.thread, &cache.python_thread, frame_limit, cache.is_shared_python));
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace

PathCache PathCache::none;

void choose_frames(unsigned long wanted) noexcept try {
  frame_limit = static_cast<unsigned>(std::clamp<unsigned long>(wanted, 1, can_unwind ? longest : 1));
  if (wanted > frame_limit && !can_unwind && launcher_rank() <= 0)
    say("COMMLENS_FRAMES=%lu: on this processor there are call sites but no call paths", wanted);
  const std::string why_not = wanted == 0 ? "" : python::find_interpreter();
  if (!why_not.empty() && launcher_rank() <= 0) say("call paths have no Python frames: %s", why_not.c_str());
} catch (const std::bad_alloc&) {
  say("no memory to read the frames of Python");
}

bool has_paths() noexcept { return frame_limit > 1 || python::is_used(); }

PathCache* new_path_cache() noexcept {
  if (!has_paths()) return &PathCache::none;
  std::size_t words = 2 + words_of_frame * frame_limit / 2;
  if (python::is_used()) words += 4 + python::words_of_frame * (frame_limit + 1);
  const std::size_t groups = (words + KnownPath::group - 1) / KnownPath::group;
  std::size_t bytes = 64;
  while (bytes < sizeof(KnownPath) + sizeof(StackWord) * KnownPath::group * groups) bytes *= 2;
  auto* const cache = static_cast<PathCache*>(map_memory(sizeof(PathCache) + PathCache::slots * bytes));
  if (cache == nullptr) return &PathCache::none;
  cache->mask = (PathCache::slots - 1) * bytes;
  cache->slot_bytes = bytes;
  return cache;
}

void use_path_cache(PathCache* cache) noexcept {
  if (cache == &PathCache::none) return;
  // The main thread itself ends the interpreter; daemon threads may outlive it.
  cache->is_shared_python = getpid() != static_cast<pid_t>(syscall(SYS_gettid));
  const ThreadStack stack = stack_of_thread();
  cache->stack = stack.begin;
  cache->stack_end = stack.end;
}

Site add_path(PathCache& cache, Site caller, Site site, const char* frame) noexcept {
  const int saved = errno;
  const Site path =
      python::is_used() ? add_python_path(cache, caller, site, frame) : unwind_path(cache, caller, site, frame, {});
  errno = saved;
  return path != 0 ? path : site;
}

std::optional<std::string> full_table_of_paths() {
  const std::lock_guard<std::mutex> lock(locks::paths);
  if (paths().without_room == 0) return {};
  return "more than " + std::to_string(most_nodes) +
         " call sites and callers: " + std::to_string(paths().without_room) +
         " calls on new paths are counted at their call site alone";
}

Site address_of(Site site) noexcept {
  if (!is_path(site)) return site;
  const std::lock_guard<std::mutex> lock(locks::paths);
  const std::size_t node = site & ~path_bit;
  return node < paths().nodes.size() && paths().nodes[node].python == nullptr ? paths().nodes[node].address : 0;
}

const SiteFacts* python_place(Site site) noexcept {
  if (!is_path(site)) return nullptr;
  const std::lock_guard<std::mutex> lock(locks::paths);
  const std::size_t node = site & ~path_bit;
  return node < paths().nodes.size() ? paths().nodes[node].python : nullptr;
}

Site caller_of(Site site) noexcept {
  if (!is_path(site)) return 0;
  const std::lock_guard<std::mutex> lock(locks::paths);
  const std::size_t node = site & ~path_bit;
  return node < paths().nodes.size() ? paths().nodes[node].caller : 0;
}

}  // namespace commlens
