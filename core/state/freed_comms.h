// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Records which communicators have ended: they were freed, and their record stands for no other one.  Their counters
// are kept, but tables need not search for their cells any more.  Reading takes no lock.
namespace commlens {

// Call once per communicator, and never from two threads at a time.
void comm_freed(std::uint32_t comm) noexcept;

// The communicators that had ended when this object was made, except `but_for`.  Its answers do not change later.
class FreedComms {
 public:
  explicit FreedComms(std::uint32_t but_for) noexcept;
  bool has(std::uint32_t comm) const noexcept;

 private:
  std::uint32_t number_, but_for_;
};

}  // namespace commlens
