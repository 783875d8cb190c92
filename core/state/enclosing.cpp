// SPDX-License-Identifier: Apache-2.0
// Whether an MPI call is made inside another one of its thread: by a callback, or by the MPI library itself, as by
// ROMIO for files.
#include "core/base/memory.h"
#include "core/base/thread_stack.h"
#include "core/base/unwind.h"
#include "core/state/threads.h"

namespace commlens {

bool has_error_handlers = false;

namespace {

// That a call was found to be inside another one, and the words of the stack that prove it.
struct KnownCaller {
  static constexpr int most_words = 41;
  const char *frame, *outermost;  // null: unused
  Site return_address, outermost_return;
  int count;
  StackWord word[most_words];

  bool proves(const char* from, const Thread& thread) const noexcept {
    return frame == from && outermost == thread.outermost && outermost_return == thread.outermost_return &&
           return_address == Thread::return_address(from) && are_unchanged(word, count);
  }
};

// Two-way associative: a function of ROMIO may make the same call for two of its callers in turn.
struct KnownCallers {
  static constexpr std::uint64_t pairs = 32;
  ThreadStack stack;
  unsigned turn;  // of a pair, which one is replaced next
  KnownCaller caller[pairs][2];

  KnownCaller* pair(const char* frame) noexcept {
    const std::uint64_t mixed = (reinterpret_cast<Site>(frame) + Thread::return_address(frame)) * 0xa8948c893b618677u;
    return caller[mixed >> 40 & (pairs - 1)];
  }
};

__thread KnownCallers* known_callers = nullptr;

// Returns those of the calling thread; null when there is no memory.
KnownCallers* known_to_thread() noexcept {
  if (known_callers != nullptr) return known_callers;
  known_callers = static_cast<KnownCallers*>(map_memory(sizeof(KnownCallers)));
  if (known_callers != nullptr) known_callers->stack = stack_of_thread();
  return known_callers;
}

// Looks for the outermost call among the callers of a call with this frame.  Both lie on the thread's own stack, all of
// which can be read from the frame on.
bool is_among_callers(KnownCallers& known, const Thread& thread, const char* frame) noexcept {
  KnownCaller* const pair = known.pair(frame);
  if (pair[0].proves(frame, thread) || pair[1].proves(frame, thread)) return true;
  KnownCaller& place = pair[known.turn++ & 1];
  const Site* const record = reinterpret_cast<const Site*>(frame);
  const StackFrame from{without_signature(record[1]), sp_after_return(frame), record[0],
                        reinterpret_cast<std::uint64_t>(known.stack.end)};
  place.frame = nullptr;
  const FoundCaller found = find_caller(from, thread.outermost, without_signature(thread.outermost_return), place.word,
                                        KnownCaller::most_words - 1);
  if (found.caller == Caller::is_one && found.words != 0) {
    place.outermost = thread.outermost;
    place.return_address = record[1];
    place.outermost_return = thread.outermost_return;
    place.count = found.words;
    if (found.uses_fp) place.word[place.count++] = {record, record[0]};
    place.frame = frame;
  }
  return found.caller != Caller::is_none;
}

}  // namespace

bool Thread::is_mapped(const char* frame) noexcept {
  Site copy;
  return read_memory(frame + sizeof(void*), &copy, sizeof copy);
}

// The memory of the old frame may have been left as it was: by a function with large arrays, for example.  Then the
// callers of the new frame decide, which takes longer, and is needed only in programs with an error handler that may
// have left a call.  Where they cannot be found, as on the stack of a fiber, the old call is taken for one that has not
// ended: counting a call twice would be worse than not counting it.
bool Thread::encloses(const char* frame) const noexcept {
  if (!can_unwind) return true;
  KnownCallers* const known = known_to_thread();
  if (known == nullptr || !known->stack.has(frame) || !known->stack.has(outermost)) return true;
  return is_among_callers(*known, *this, frame);
}

void forget_callers() noexcept {
  if (known_callers == nullptr) return;
  unmap_memory(known_callers, sizeof(KnownCallers));
  known_callers = nullptr;
}

}  // namespace commlens
