// SPDX-License-Identifier: Apache-2.0
#include "core/collect/package_datatypes.h"

#include <map>
#include <tuple>

#include "core/state/sums.h"

namespace commlens {
namespace {

using SumsOfDatatypes = std::map<std::tuple<std::uint32_t, std::uint32_t, Combination>, DatatypeSum>;

// Returns the calls by communicator, procedure and datatypes.  With MPI_IN_PLACE, one datatype describes both the data
// that is sent and the data that is received.
SumsOfDatatypes sums_of(const CountedDatatypes& counted) {
  SumsOfDatatypes sums;
  for (const auto& [of, sum] : counted.sums) {
    const auto& [comm, op, number] = of;
    // A thread that still runs may have met a combination after the list was taken.
    Combination used = number < counted.combinations.size() ? counted.combinations[number] : Combination{};
    if (used.sent == 0 && sum.bytes_sent != 0) used.sent = used.received;
    if (used.received == 0 && sum.bytes_received != 0) used.received = used.sent;
    add_counters(sums[{comm, op, used}], sum);
  }
  return sums;
}

}  // namespace

void write(WireWriter& out, const CountedDatatypes& counted, const TickScale& scale) {
  out.number(counted.facts.size() - 1);
  for (std::size_t i = 1; i < counted.facts.size(); ++i) counted.facts[i].write(out);
  const SumsOfDatatypes sums = sums_of(counted);
  out.number(sums.size());
  for (const auto& [of, sum] : sums) {
    const auto& [comm, op, used] = of;
    for (const std::uint32_t n : {comm, op, used.sent, used.received, used.target}) out.number(n);
    for (const std::uint64_t n : {sum.calls, scale.ns(sum.time), sum.bytes_sent, sum.bytes_received}) out.number(n);
  }
}

}  // namespace commlens
