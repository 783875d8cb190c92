// SPDX-License-Identifier: Apache-2.0
#include "core/job/counting.h"

#include <unistd.h>

#include <mutex>
#include <new>

#include "core/base/say.h"
#include "core/base/ticks.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/job/pcontrol.h"
#include "core/job/selection.h"
#include "core/state/events.h"
#include "core/state/paths.h"
#include "core/state/peers.h"
#include "core/state/regions.h"
#include "core/state/samples.h"
#include "core/state/series.h"
#include "core/state/thread_owners.h"

namespace commlens {

Job job;

namespace {

const Options* options_in_force = nullptr;

}  // namespace

void read_options() {
  static const auto* const first = [] {
    auto* const read = new Options(Options::read());  // never destroyed
    if (read->on(Option::enable) && !is_selected(*read)) read->switch_off();
    return read;
  }();
  options_in_force = first;
}
const Options& options() noexcept { return *options_in_force; }

bool prepare_counting() noexcept try {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static bool is_prepared = false;
  if (is_prepared) return true;
  read_options();
  choose_clock();
  job.process = getpid();
  choose_frames(options().on(Option::callsites) ? options().number(Option::frames) : 0);
  choose_regions(options().text(Option::regions), options().number(Option::executions),
                 options().number(Option::iterations));
  choose_threads(options().text(Option::threads) == "each");
  choose_series(options().number(Option::metric_series));
  choose_matrix(options().text(Option::matrix), options().text(Option::matrix_by),
                options().number(Option::matrix_pairs));
  choose_sampling(options().text(Option::waiting));
  choose_dialect(options().text(Option::pcontrol));
  open_arena(options().text(Option::arena_dir));
  choose_events(options().text(Option::counters));
  if (options().text(Option::clock) == "every" || counts_events()) timed_first = time_every_call;
  if (options().on(Option::paused)) pause_counting();
  is_prepared = true;
  return true;
} catch (const std::bad_alloc&) {
  say("cannot start: out of memory; running unprofiled");
  return false;
}

}  // namespace commlens
