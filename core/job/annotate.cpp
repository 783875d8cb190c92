// SPDX-License-Identifier: Apache-2.0
// The functions of include/commlens/commlens.h with which the application marks regions, records metrics and controls
// counting.
#include "core/job/annotate.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "core/api/place.h"
#include "core/base/say.h"
#include "core/job/counting.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/process/symbols.h"
#include "core/state/regions.h"
#include "include/commlens/commlens.h"

// Only the functions of the interface are visible.
#define COMMLENS_PUBLIC extern "C" __attribute__((visibility("default")))
#define COMMLENS_PLACE __builtin_extract_return_addr(__builtin_return_address(0))

namespace commlens {
namespace {

enum State : int { unknown, on, off, on_with_series };  // with_series: COMMLENS_METRIC_SERIES
std::atomic<int> state{unknown};

// Starts counting at the first call of the interface, possibly before an MPI library is loaded.  Returns whether calls
// have an effect.
__attribute__((noinline)) bool start() noexcept {
  read_options();
  const bool counts = options().on(Option::enable) && prepare_counting();
  int expected = unknown;
  const State active = region_limits.values == 0 ? on : on_with_series;
  state.compare_exchange_strong(expected, counts ? active : off);
  return state.load() != off;
}

inline bool is_on() noexcept {
  const int now = state.load(std::memory_order_relaxed);
  return __builtin_expect(now == on, 1) || now == on_with_series || (now == unknown && start());
}

constexpr char no_name[] = "(no name)";

inline const char* text_of(const char* name) noexcept { return name == nullptr || *name == '\0' ? no_name : name; }

inline RegionName called(const char* name) noexcept {
  name = text_of(name);
  const std::size_t bytes = strnlen(name, most_name_bytes);
  return {identity_of_name(name, bytes), name, bytes};
}

inline RegionName called(commlens_region_t region) noexcept {
  const auto* const name = reinterpret_cast<const Name*>(region);
  return {name->identity, name->text, name->bytes};
}

inline Site site_of(const void* place) noexcept { return reinterpret_cast<Site>(place); }

// An end without a name ends the innermost region.
inline RegionName ended(const char* name) noexcept { return name == nullptr ? RegionName{0, "", 0} : called(name); }

}  // namespace

void check_annotations() {
  const void* const begin = dlsym(RTLD_DEFAULT, "commlens_begin");
  if (begin == nullptr || !is_in_object(begin) || are_in_one_object(begin, &state) || launcher_rank() > 0) return;
  say("libcommlens.so is linked after %s, so regions bypass it. Link it first, or start the program with "
      "commlens-run",
      shown_object_of(begin));
}

bool is_annotating() noexcept { return is_on(); }
void stop_annotating() noexcept { state.store(off); }

void record_metric(std::uint64_t metric, double value) noexcept {
  if (!is_on()) return;
  (state.load() == on_with_series ? record_in_series : record_value)(this_thread(), metric, value);
}

}  // namespace commlens

using namespace commlens;

void commlens_begin_at(const char* name, const void* place) {
  if (is_on()) begin_region(this_thread(), called(name), site_of(place), OpeningKind::region);
}

void commlens_end_at(const char* name, const void* place) {
  if (is_on()) end_region(this_thread(), ended(name), site_of(place));
}

void commlens_begin_region_at(commlens_region_t region, const void* place) {
  if (region != nullptr && is_on()) begin_region(this_thread(), called(region), site_of(place), OpeningKind::region);
}

void commlens_end_region_at(commlens_region_t region, const void* place) {
  if (region != nullptr && is_on()) end_region(this_thread(), called(region), site_of(place));
}

void commlens_loop_begin_at(const char* name, int mode, const void* place) {
  if (!is_on()) return;
  const OpeningKind kind = mode == COMMLENS_LOOP_EACH ? OpeningKind::loop_one_by_one : OpeningKind::loop_as_sum;
  begin_region(this_thread(), called(name), site_of(place), kind);
}

void commlens_loop_iteration_at(const void* place) {
  if (is_on()) begin_iteration(this_thread(), site_of(place));
}

void commlens_iteration_begin_at(const char* name, int mode, long number, const void* place) {
  if (!is_on()) return;
  const OpeningKind kind = mode == COMMLENS_LOOP_EACH ? OpeningKind::loop_one_by_one : OpeningKind::loop_as_sum;
  begin_numbered_iteration(this_thread(), called(name), site_of(place), kind, number);
}

COMMLENS_PUBLIC void commlens_begin(const char* name) { commlens_begin_at(name, COMMLENS_PLACE); }
COMMLENS_PUBLIC void commlens_end(const char* name) { commlens_end_at(name, COMMLENS_PLACE); }
COMMLENS_PUBLIC void commlens_begin_region(commlens_region_t region) {
  commlens_begin_region_at(region, COMMLENS_PLACE);
}
COMMLENS_PUBLIC void commlens_end_region(commlens_region_t region) { commlens_end_region_at(region, COMMLENS_PLACE); }
COMMLENS_PUBLIC void commlens_loop_begin(const char* name, int mode) {
  commlens_loop_begin_at(name, mode, COMMLENS_PLACE);
}
COMMLENS_PUBLIC void commlens_loop_iteration(void) { commlens_loop_iteration_at(COMMLENS_PLACE); }
COMMLENS_PUBLIC void commlens_iteration_begin(const char* name, int mode, long number) {
  commlens_iteration_begin_at(name, mode, number, COMMLENS_PLACE);
}
COMMLENS_PUBLIC void commlens_loop_end(const char* name) { commlens_end_at(name, COMMLENS_PLACE); }

COMMLENS_PUBLIC commlens_region_t commlens_region(const char* name) {
  return reinterpret_cast<commlens_region_t>(name_of(text_of(name)));
}

// A handle is the number of the metric, not an address.
COMMLENS_PUBLIC commlens_metric_t commlens_metric(const char* name, const char* unit) {
  if (!is_on()) return nullptr;
  return reinterpret_cast<commlens_metric_t>(metric_of(text_of(name), unit == nullptr ? "" : unit));
}

COMMLENS_PUBLIC void commlens_record(commlens_metric_t metric, double value) {
  const auto number = reinterpret_cast<std::uint64_t>(metric);
  if (number == 0) return;
  if (__builtin_expect(state.load(std::memory_order_relaxed) == on, 1)) {
    record_value(this_thread(), number, value);
  } else {
    record_metric(number, value);
  }
}

COMMLENS_PUBLIC void commlens_tag(const char* name, const char* value) {
  if (name != nullptr && value != nullptr && is_on()) tag(this_thread(), name, value);
}

COMMLENS_PUBLIC void commlens_pause(void) {
  if (is_on()) pause_counting();
}

COMMLENS_PUBLIC void commlens_resume(void) {
  if (is_on()) resume_counting();
}

COMMLENS_PUBLIC void commlens_reset(void) {
  if (is_on()) forget_counted();
}

COMMLENS_PUBLIC int commlens_flush(void) { return job.ready && flush_arena() ? 0 : 1; }

COMMLENS_PUBLIC const char* commlens_version(void) { return COMMLENS_VERSION; }

COMMLENS_PUBLIC int commlens_active(void) {
  return state.load() != off && job.ready && !is_paused(pauses.changes.load()) ? 1 : 0;
}
