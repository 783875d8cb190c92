// SPDX-License-Identifier: Apache-2.0
#include "core/state/freed_comms.h"

#include <atomic>

#include "core/base/memory.h"
#include "core/hot/key.h"

namespace commlens {
namespace {

// Per communicator: the position at which it ended among all that have ended; 0: it has not.  In blocks that are
// allocated when needed.
using Place = std::atomic<std::uint32_t>;
constexpr std::uint32_t block = 1 << 16;
std::atomic<Place*> places[max_comm / block + 1];
std::atomic<std::uint32_t> ended{0};

}  // namespace

void comm_ended(std::uint32_t comm) noexcept {
  std::atomic<Place*>& at = places[comm / block];
  Place* of = at.load(std::memory_order_relaxed);
  if (of == nullptr) {
    of = static_cast<Place*>(map_memory(block * sizeof(Place)));
    if (of == nullptr) return;  // without memory its cells stay in the indexes
    at.store(of, std::memory_order_release);
  }
  const std::uint32_t n = ended.load(std::memory_order_relaxed) + 1;
  of[comm % block].store(n, std::memory_order_relaxed);
  ended.store(n, std::memory_order_release);
}

EndedComms::EndedComms(std::uint32_t but_for) noexcept
    : number_(ended.load(std::memory_order_acquire)), but_for_(but_for) {}

bool EndedComms::has(std::uint32_t comm) const noexcept {
  const Place* const of = places[comm / block].load(std::memory_order_acquire);
  if (of == nullptr || comm == but_for_) return false;
  const std::uint32_t n = of[comm % block].load(std::memory_order_relaxed);
  return n != 0 && n <= number_;
}

}  // namespace commlens
