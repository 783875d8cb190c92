// SPDX-License-Identifier: Apache-2.0
#include "core/state/notices.h"

#include <atomic>
#include <mutex>
#include <utility>

#include "core/base/locks.h"

namespace commlens {
namespace {

std::atomic<unsigned> noticed{0};
std::mutex& mutex = locks::notices;
std::vector<NoticeText>& all() {
  static auto* const texts = new std::vector<NoticeText>();  // never destroyed
  return *texts;
}
unsigned bit(Notice kind) { return 1u << static_cast<unsigned>(kind); }

}  // namespace

bool is_noticed(Notice kind) noexcept { return (noticed.load() & bit(kind)) != 0; }

void notice(Notice kind, std::string text) noexcept try {
  if ((noticed.fetch_or(bit(kind)) & bit(kind)) != 0) return;
  const std::lock_guard<std::mutex> lock(mutex);
  all().push_back({kind, std::move(text)});
} catch (const std::bad_alloc&) {
  return;
}

std::vector<NoticeText> notices() {
  const std::lock_guard<std::mutex> lock(mutex);
  return all();
}

}  // namespace commlens
