// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/unwind.h"
#include "core/hot/key.h"

namespace [[gnu::visibility("hidden")]] commlens {

// A Site with this bit is no return address but the number of a call path (state/paths.h).
inline constexpr Site path_bit = Site{1} << 63;
inline constexpr bool is_path(Site site) noexcept { return (site & path_bit) != 0; }

// A call path at one depth of the stack, and the words that prove it: of the stack, and of Python's frames.
struct KnownPath {
  static constexpr int group = 4;  // the words compared in a turn of the loop; the last word fills up the last group
  // Return address of the wrapper, with the procedure in the upper bits where two wrappers may have the same frame
  // (frame_tells_sp), or a number with path_bit for a path with Python frames; 0: never used.
  Site caller;
  const char* frame;
  Site path;
  std::int64_t groups;  // at least 1

  // They follow in the slot, as many groups as fit.
  const StackWord* words() const noexcept { return reinterpret_cast<const StackWord*>(this + 1); }
  StackWord* words() noexcept { return reinterpret_cast<StackWord*>(this + 1); }

  __attribute__((always_inline)) bool is(Site site, const char* at) const noexcept {
    if (caller != site || frame != at) return false;
    const StackWord* w = words();
    std::int64_t left = groups;
    do {  // in order, see are_unchanged()
      if (!is_unchanged(w[0]) || !is_unchanged(w[1]) || !is_unchanged(w[2]) || !is_unchanged(w[3])) return false;
      w += group;
    } while (--left != 0);
    return true;
  }
};

// The call paths that one thread has met last, two-way associative.  The stack pointer is a good part of the key: it
// differs between most paths to one call site, and it is the same whenever a path is taken again.
struct PathCache {
  static constexpr std::uint64_t slots = 1u << 10;
  std::uint64_t mask;  // of the offset of a slot: (slots - 1) * slot_bytes
  std::uint64_t slot_bytes;
  std::uint64_t turn;             // of the slots of a pair, which one is replaced next
  const char *stack, *stack_end;  // of the thread
  std::uint64_t python_thread;    // the thread state of the Python code that makes the call; 0: none
  bool is_shared_python;          // another thread may end the interpreter while this one is inside MPI
  alignas(64) char slot[128];     // or more

  static PathCache none;  // stays empty; for threads without memory for their own

  KnownPath& place(Site caller, const char* frame) noexcept {
    const std::uint64_t mixed = (caller + reinterpret_cast<std::uint64_t>(frame)) * 0xa8948c893b618677u;
    return *reinterpret_cast<KnownPath*>(slot + (mixed >> 40 & mask));
  }
  KnownPath& neighbor(KnownPath& place) noexcept {
    return *reinterpret_cast<KnownPath*>(slot + ((reinterpret_cast<char*>(&place) - slot) ^ slot_bytes));
  }
  // Returns the path of a wrapper with this return address and frame, or null.
  __attribute__((always_inline)) const KnownPath* find(Site caller, const char* frame) noexcept {
    KnownPath* const first = &place(caller, frame);
    if (__builtin_expect(first->is(caller, frame), 1)) return first;
    return find_second(*this, *first, caller, frame);
  }
  // Not inlined: keeps its registers out of the wrappers' fast path.
  static __attribute__((noinline)) const KnownPath* find_second(PathCache& cache, KnownPath& first, Site caller,
                                                                const char* frame) noexcept {
    const KnownPath& second = cache.neighbor(first);
    return second.is(caller, frame) ? &second : nullptr;
  }
};

// Cold, except in programs that run Python: PathCache::find() finds none of their paths.
// Unwinds the stack, and enters the path into the cache.  Returns its number, or `site` if it cannot be known.
// site: the return address in the application's code that called MPI, which is `caller` unless there are frames of a
// Fortran binding in between.
Site add_path(PathCache& cache, Site caller, Site site, const char* frame) noexcept;

inline Site path_of(PathCache& cache, Site caller, Site site, const char* frame) noexcept {
  const KnownPath* const known = cache.find(caller, frame);
  return __builtin_expect(known != nullptr, 1) ? known->path : add_path(cache, caller, site, frame);
}

}  // namespace commlens
