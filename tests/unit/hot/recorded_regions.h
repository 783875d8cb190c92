// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>

#include "core/hot/regions.h"

// What the tests of regions have in common: a process whose time passes as the test says, names, and what a thread has
// recorded, by the paths of regions.
namespace commlens {

constexpr Ticks start_of_time = 1'000'000'000'000;

// In a process of its own, in which time passes as the test says.
void in_process(const std::function<void()>& body);

// Of a text that stays where it is.
inline RegionName called(const std::string& name) {
  return {identity_of_name(name.data(), name.size()), name.data(), name.size()};
}
inline RegionName called(const char* name) {
  return {identity_of_name(name, std::strlen(name)), name, std::strlen(name)};
}
RegionName called(std::string&&) = delete;
constexpr RegionName innermost{0, "", 0};

using Instance = std::tuple<std::string, std::uint32_t, std::int32_t>;  // path, execution, iteration

inline std::ostream& operator<<(std::ostream& out, const Instance& place) {
  return out << std::get<0>(place) << " execution " << std::get<1>(place) << " iteration " << std::get<2>(place);
}

struct Sum {
  std::uint64_t calls = 0, open = 0;
  Ticks time = 0, min = 0, max = 0, nested = 0, mpi = 0;
  bool operator==(const Sum& o) const {
    return std::tie(calls, open, time, min, max, nested, mpi) ==
           std::tie(o.calls, o.open, o.time, o.min, o.max, o.nested, o.mpi);
  }
};

inline std::ostream& operator<<(std::ostream& out, const Sum& s) {
  return out << s.calls << " calls " << s.open << " open " << s.time << " time " << s.min << " to " << s.max
             << " nested " << s.nested << " mpi " << s.mpi;
}

struct Values {
  std::uint64_t count = 0, not_finite = 0;
  double sum = 0, min = 0, max = 0, last = 0;
  bool operator==(const Values& o) const {
    return std::tie(count, not_finite, sum, min, max, last) ==
           std::tie(o.count, o.not_finite, o.sum, o.min, o.max, o.last);
  }
};

// All there is to know of a thread.
struct Recorded {
  std::map<Instance, Sum> times, iterations;
  std::map<std::tuple<std::string, std::uint32_t, std::uint32_t>, std::uint64_t> bins;  // path, execution, bin
  std::map<std::pair<Instance, std::uint64_t>, Values> values;
  std::map<std::string, std::pair<std::uint64_t, Ticks>> calls;                             // of MPI, by path
  std::map<std::pair<std::string, std::uint64_t>, std::pair<std::uint64_t, Ticks>> slices;  // by path and slot
};

Recorded recorded_by(const Thread& thread);

using Slices = decltype(Recorded::slices);

// The slices of the regions of a thread; `width` becomes that of a slice.
Slices slices_by(const Thread& thread, Ticks& width);

}  // namespace commlens
