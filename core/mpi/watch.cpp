// SPDX-License-Identifier: Apache-2.0
// The watches of include/commlens/commlens.h: the communication of this process, queried while it runs.
#include <mpi.h>

#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "core/api/place.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/mpi/bind.h"
#include "core/mpi/peers.h"
#include "core/mpi/state.h"
#include "core/state/online.h"
#include "include/commlens/commlens.h"

#define COMMLENS_PUBLIC extern "C" __attribute__((visibility("default")))

using namespace commlens;

struct commlens_watched {
  std::mutex mutex;
  Watch messages, bytes;
};

namespace {

constexpr Flow flows[] = {Flow::sent, Flow::received, Flow::put, Flow::get, Flow::share};

commlens_watched* watch_of(MPI_Comm comm, int kind) noexcept try {
  if (!job.ready || !matrix_choice.peers || kind < COMMLENS_SENT || kind > COMMLENS_COLLECTIVE) return nullptr;
  const auto* const view = static_cast<const CommView*>(comms.find(bits(comm)));
  const std::optional<MemberRanks> found = view == nullptr ? std::nullopt : members(view->index);
  if (!found) return nullptr;
  const Flow flow = flows[kind];
  return new commlens_watched{{},
                              Watch({flow, Measure::messages, Breadth::here}, *found),
                              Watch({flow, Measure::bytes, Breadth::here}, *found)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Calls act() for both watches.  Does nothing more if memory runs out.
template <class Act>
void to_both(commlens_watched* watch, Act act) noexcept try {
  if (watch == nullptr) return;
  const std::lock_guard<std::mutex> lock(watch->mutex);
  act(watch->messages);
  act(watch->bytes);
} catch (const std::bad_alloc&) {
  return;
}

void give(const Watch& watch, unsigned long* to) {
  if (to == nullptr) return;
  const std::vector<std::uint64_t> values = watch.read();
  std::memcpy(to, values.data(), values.size() * sizeof *to);
}

}  // namespace

// A Fortran handle of a communicator equals the C handle if that is a number.
commlens_watch_t commlens_watch_number(int comm, int kind) {
  if (!job.ready) return nullptr;
  if constexpr (sizeof(MPI_Comm) == sizeof(int)) return watch_of(of_bits<MPI_Comm>(static_cast<unsigned>(comm)), kind);
  static const auto from = reinterpret_cast<decltype(&PMPI_Comm_f2c)>(next_definition("PMPI_Comm_f2c").address);
  return from == nullptr ? nullptr : watch_of(from(comm), kind);
}

COMMLENS_PUBLIC commlens_watch_t commlens_watch(const void* comm, int kind) {
  return comm == nullptr ? nullptr : watch_of(*static_cast<const MPI_Comm*>(comm), kind);
}

COMMLENS_PUBLIC void commlens_watch_start(commlens_watch_t watch) {
  to_both(watch, [](Watch& w) { w.start(); });
}

COMMLENS_PUBLIC void commlens_watch_stop(commlens_watch_t watch) {
  to_both(watch, [](Watch& w) { w.stop(); });
}

COMMLENS_PUBLIC void commlens_watch_reset(commlens_watch_t watch) {
  to_both(watch, [](Watch& w) { w.reset(); });
}

COMMLENS_PUBLIC commlens_watch_t commlens_watch_snapshot(commlens_watch_t watch) try {
  if (watch == nullptr) return nullptr;
  const std::lock_guard<std::mutex> lock(watch->mutex);
  auto* const copy = new commlens_watched{{}, watch->messages, watch->bytes};
  to_both(copy, [](Watch& w) { w.stop(); });
  return copy;
} catch (const std::bad_alloc&) {
  return nullptr;
}

COMMLENS_PUBLIC int commlens_watch_size(commlens_watch_t watch) {
  return watch == nullptr ? 0 : static_cast<int>(watch->messages.size());
}

COMMLENS_PUBLIC int commlens_watch_read(commlens_watch_t watch, unsigned long* messages, unsigned long* bytes) try {
  if (watch == nullptr) return 0;
  const std::lock_guard<std::mutex> lock(watch->mutex);
  give(watch->messages, messages);
  give(watch->bytes, bytes);
  return static_cast<int>(watch->messages.size());
} catch (const std::bad_alloc&) {
  return 0;
}

COMMLENS_PUBLIC void commlens_watch_free(commlens_watch_t watch) { delete watch; }

COMMLENS_PUBLIC int commlens_flush_to(const char* folder) {
  return job.ready && folder != nullptr && flush_arena_to(folder) ? 0 : 1;
}
