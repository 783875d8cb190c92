// SPDX-License-Identifier: Apache-2.0
// The regions, metrics and events of an arena.
#include <cmath>

#include "core/recover/read.h"
#include "core/recover/segments.h"
#include "core/state/series.h"

namespace commlens::arena {
namespace {

bool is_counted(const RegionCell& cell) {
  return cell.calls < beyond_all && cell.time < beyond_all && cell.time_min < beyond_all &&
         cell.time_max < beyond_all && cell.nested <= cell.time && cell.mpi < beyond_all;
}

}  // namespace

// Returns the valid frames of a region stack, from the outermost on.  The first is the whole program.
std::vector<Frame> Reader::frames_of(const Regions* stack) {
  std::vector<Frame> frames(1);
  const std::uint32_t depth = stack == nullptr ? 0 : __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE);
  for (std::uint32_t i = 1; i <= std::min(depth, Regions::most_frames); ++i) {
    const auto* const there = reinterpret_cast<const char*>(&stack->frames[i]);
    Frame frame;
    // Copies field by field: a byte from a file that is neither 0 nor 1 is not a valid bool.
    frame.key = copy_of<RegionKey>(there + offsetof(Frame, key));
    frame.start = copy_of<Ticks>(there + offsetof(Frame, start));
    frame.nested = copy_of<Ticks>(there + offsetof(Frame, nested));
    frame.mpi = copy_of<Ticks>(there + offsetof(Frame, mpi));
    frame.region = copy_of<std::uint32_t>(there + offsetof(Frame, region));
    frame.pauses = copy_of<std::uint32_t>(there + offsetof(Frame, pauses));
    const bool is_right = (frame.key == 0 || (is_place(frame.key) && !counts_iterations(frame.key))) &&
                          is_region(frame.region) && frame.start < beyond_all && frame.nested < beyond_all;
    if (!is_right) {
      is_damaged_ = true;
      break;
    }
    frames.push_back(frame);
  }
  return frames;
}

// Open regions begin anew when counters are cleared, as in forget_if_asked().  mpi: of their thread, at that time.
void Reader::clear(std::vector<Frame>& frames, Ticks mpi) const {
  for (Frame& frame : frames) {
    if (frame.key != 0) frame.key = make_region_key(frame.region, 0, iteration_of(frame.key));
    frame.start = forgotten_;
    frame.nested = 0;
    frame.mpi = mpi;
  }
}

void Reader::take_regions(const Segments& segments) {
  using Segment = Segments::Segment;
  segments.each_in<RegionCell>(Kind::regions, [this](const RegionCell& cell, const Segment& s) {
    if (!is_place(cell.key) || !is_counted(cell)) {
      is_damaged_ = true;
      return;
    }
    counted_.regions.add(cell);
    if (CountedThread* const own = thread_of(s.head->number); own != nullptr) own->regions.add(cell);
    if (counts_iterations(cell.key)) return;
    SliceEntry& total = totals_[s.head->number][region_slice_key(region_of(cell.key))];
    total.calls += cell.calls;
    total.time += cell.time - cell.nested;
  });
  segments.each_in<LoopCell>(Kind::loops, [this](const LoopCell& cell, const Segment&) {
    const bool is_of_all = counts_iterations(cell.key) && iteration_of(cell.key) == -1;
    if (is_of_all && is_place(cell.key)) {
      counted_.regions.add(cell);
    } else {
      is_damaged_ = true;
    }
  });
  segments.each_in<MetricCell>(Kind::metrics, [this](const MetricCell& cell, const Segment&) {
    const bool is_known = cell.site != 0 && cell.site < counted_.regions.metrics.size();
    if (is_place(cell.key) && !counts_iterations(cell.key) && is_known) {
      counted_.regions.add(cell);
    } else {
      is_damaged_ = true;
    }
  });
}

void Reader::take_series(const Segments& segments) {
  segments.each(Kind::series, [&](const Segments::Segment& segment) {
    if (segment.head->bytes < sizeof(Series)) {
      is_damaged_ = true;
      return;
    }
    const auto series = copy_of<Series>(segments.content(segment));
    if (series.metric == 0) return;  // not ready when the process was killed
    const bool is_right = series.metric < counted_.regions.metrics.size() && series.count < beyond_all &&
                          series.stride != 0 && (series.stride & (series.stride - 1)) == 0;
    if (!is_right) {
      is_damaged_ = true;
      return;
    }
    const std::uint64_t places = (segment.head->bytes - sizeof(Series)) / sizeof(SeriesValue);
    segments.each_keyed<SeriesValue>(segment.at + sizeof(Series), places, [&](const SeriesValue& value) {
      const bool is_value =
          is_place(value.key) && !counts_iterations(value.key) && value.time < beyond_all && std::isfinite(value.value);
      if (!is_value) {
        is_damaged_ = true;
      } else if (is_in_series(series, value)) {
        counted_.regions.add(series.metric, segment.head->number, value);
      }
    });
  });
}

namespace {

// Returns whether the sum over all threads remains a number that a profile can have.
bool has_room_for(const EventSums& sums, const EventCell& cell) noexcept {
  const auto known = sums.find({cell.key, cell.site});
  const EventSum sum = known == sums.end() ? EventSum{} : known->second;
  return sum.count + cell.count < beyond_all && sum.enabled + cell.enabled < beyond_all &&
         sum.running + cell.running < beyond_all;
}

}  // namespace

void Reader::take_events(const Segments& segments) {
  segments.each_in<EventCell>(Kind::events, [this](EventCell cell, const Segments::Segment&) {
    if (region_of_key(cell.key) == uncounted_region) return;
    // Outside MPI there is no procedure and no communicator, as in the key of no call.
    const bool is_call = op_of_key(cell.key) != 0 || comm_of_key(cell.key) != 0;
    const bool is_right = cell.site != 0 && cell.site < counted_.regions.metrics.size() && cell.count < beyond_all &&
                          cell.enabled < beyond_all && cell.running < beyond_all && cell.key >> 63 != 0 &&
                          is_region(region_of_key(cell.key));
    if (is_right && is_call) cell.key = is_of_region(cell.key) ? 0 : known(cell.key);
    cell.key = is_right && cell.key != 0 ? event_key(cell.key) : 0;
    if (cell.key != 0 && has_room_for(counted_.events, cell)) {
      add_events(counted_.events, cell);
    } else {
      is_damaged_ = true;
    }
  });
}

}  // namespace commlens::arena
