// SPDX-License-Identifier: Apache-2.0
#include "core/state/freed_comms.h"

#include <atomic>

#include "core/base/memory.h"
#include "core/hot/key.h"

namespace commlens {
namespace {

// Per communicator: the position at which it ended among all that have ended; 0: it has not.  In blocks that are
// allocated when needed.
using Order = std::atomic<std::uint32_t>;
constexpr std::uint32_t block = 1 << 16;
std::atomic<Order*> orders[max_comm / block + 1];
std::atomic<std::uint32_t> freed_count{0};

}  // namespace

void comm_freed(std::uint32_t comm) noexcept {
  std::atomic<Order*>& at = orders[comm / block];
  Order* of = at.load(std::memory_order_relaxed);
  if (of == nullptr) {
    of = static_cast<Order*>(map_memory(block * sizeof(Order)));
    if (of == nullptr) return;  // without memory its cells stay in the indexes
    at.store(of, std::memory_order_release);
  }
  const std::uint32_t n = freed_count.load(std::memory_order_relaxed) + 1;
  of[comm % block].store(n, std::memory_order_relaxed);
  freed_count.store(n, std::memory_order_release);
}

FreedComms::FreedComms(std::uint32_t but_for) noexcept
    : number_(freed_count.load(std::memory_order_acquire)), but_for_(but_for) {}

bool FreedComms::has(std::uint32_t comm) const noexcept {
  const Order* const of = orders[comm / block].load(std::memory_order_acquire);
  if (of == nullptr || comm == but_for_) return false;
  const std::uint32_t n = of[comm % block].load(std::memory_order_relaxed);
  return n != 0 && n <= number_;
}

}  // namespace commlens
