// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Which communicators are over: freed, and the only ones of their record.  What was counted of them stays, but no table
// has to look for it any more.  Takes no lock.
namespace commlens {

// Once for each, never by two threads at a time.
void comm_ended(std::uint32_t comm) noexcept;

// Those that are over when this is made, but for one: the same however often it is asked.
class EndedComms {
 public:
  explicit EndedComms(std::uint32_t but_for) noexcept;
  bool has(std::uint32_t comm) const noexcept;

 private:
  std::uint32_t number_, but_for_;
};

}  // namespace commlens
