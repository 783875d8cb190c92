// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/hot/table.h"

// The datatypes of the application's communication (COMMLENS_DATATYPES).
//
// A call is counted in a cell of its own for each combination of datatypes: the number of the combination is in bits 48
// to 62 of the cell's site, which are 0 in an address and in the number of a call path.  What a request receives or
// sends later is counted in the cell of the call that made it, and so under the datatypes of that call.
namespace [[gnu::visibility("hidden")]] commlens {

inline constexpr unsigned datatypes_shift = 48;
inline constexpr std::uint32_t most_combinations = (1u << 15) - 1;  // the last one stands for all further ones
inline constexpr std::uint32_t most_datatypes = 1u << 12;           // per process; further ones are counted together

inline constexpr std::uint32_t datatypes_of(Site site) noexcept {
  return static_cast<std::uint32_t>(site >> datatypes_shift) & most_combinations;
}
inline constexpr Site without_datatypes(Site site) noexcept {
  return site & ~(Site{most_combinations} << datatypes_shift);
}

struct DatatypeFacts {
  std::string tree;  // its constructors in words
  std::uint64_t size = 0;
  std::int64_t lower = 0, extent = 0;
  Identity identity = 0;  // of the whole tree; the text may be shortened

  void write(WireWriter& out) const;
  static DatatypeFacts read(WireReader& in);
};

// What a call uses a datatype for.
enum class Use : std::uint8_t {
  sent,
  received,
  both,    // one argument describes the data that is sent and the data that is received
  target,  // of the window of another process
  layout,  // not for its data: nothing is counted
};

// The datatypes of one call, as numbers; 0: none.
struct Combination {
  std::uint32_t sent = 0, received = 0, target = 0;
  bool operator<(const Combination& other) const {
    return std::tie(sent, received, target) < std::tie(other.sent, other.received, other.target);
  }
};

extern bool has_datatypes;  // COMMLENS_DATATYPES; set before the first call

// Returns the number of the datatype with this tree, from 1; 0: no memory.
std::uint32_t number_of(const DatatypeFacts& facts) noexcept;

// A datatype that was freed by another thread during the call.
std::uint32_t freed_datatype() noexcept;

// Returns the site of a call that also uses a datatype.  Several datatypes for one use become "several".
Site with_datatype(Site site, std::uint32_t datatype, Use use) noexcept;

// The calls with one combination of datatypes.
struct DatatypeSum {
  std::uint64_t calls = 0;
  Ticks time = 0;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
};

// The datatypes of one process, and its calls by (communicator, procedure, combination).
struct CountedDatatypes {
  std::vector<DatatypeFacts> facts{1};       // by number
  std::vector<Combination> combinations{1};  // by number
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, DatatypeSum> sums;

  void add(const Cell& cell);  // nothing for a cell without datatypes
};

// Returns the datatypes of this process, without sums.
CountedDatatypes datatypes_here();

}  // namespace commlens
