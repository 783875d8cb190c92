// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/identity.h"
#include "core/base/ticks.h"
#include "core/out/sqlite.h"

namespace commlens {

// With what a part begins.
inline constexpr std::string_view part_magic{"CLPART\1\n", 8};

// What a part tells about its process, besides its counters: for `commlens recover`, if the job never merges its parts.
struct PartHead {
  int rank = 0, ranks = 0;
  std::uint64_t launch = 0;  // the same for all processes of one launch
  Identity world = 0;
  int pid = 0;
  Ns app_ns = 0;
  std::string node;
  std::string output;  // where the profile would be written, or beside which name the part is
  out::Meta meta;      // the rows of table meta that one process has
};

// A part that was read.
struct Part {
  PartHead head;
  const char* package = nullptr;  // for Profile::add(); points into the bytes that were read
  std::size_t bytes = 0;
};

// Returns the content of a part: its head, and the package of its process.
std::vector<char> part_of(const PartHead& head, const std::vector<char>& package);

// Reads the content of a part.  Returns nothing if it is damaged, or of another version of commlens.
std::optional<Part> read_part(const char* bytes, std::size_t size);

}  // namespace commlens
