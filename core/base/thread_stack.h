// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commlens {

// Where a thread's stack lies, without stacks that the program has made.
struct ThreadStack {
  const char *begin, *end;  // of the main thread: `begin` is as far as the stack may grow

  bool has(const char* address) const noexcept { return begin <= address && address < end; }
};

// Returns the stack of the calling thread; one without addresses if it is unknown.
ThreadStack stack_of_thread() noexcept;

}  // namespace commlens
