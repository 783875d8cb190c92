// SPDX-License-Identifier: Apache-2.0
#include "core/state/readings.h"

#include <atomic>

#include "core/hot/regions.h"

namespace commlens {
namespace {

std::atomic<void (*)(bool)> reader{nullptr};

void read(bool counts) noexcept {
  const auto function = reader.load();
  if (function != nullptr) function(counts);
}

}  // namespace

void call_for_readings(void (*function)(bool)) noexcept { reader.store(function); }

void take_reading() noexcept { read(!is_paused(pauses.changes.load())); }

void take_reading_to_forget() noexcept { read(false); }

}  // namespace commlens
