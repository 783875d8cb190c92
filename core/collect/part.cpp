// SPDX-License-Identifier: Apache-2.0
#include "core/collect/part.h"

#include <algorithm>
#include <cstring>

#include "core/base/wire.h"

namespace commlens {

std::vector<char> part_of(const PartHead& head, const std::vector<char>& package) {
  WireWriter out;
  out.text(COMMLENS_VERSION);
  out.number(static_cast<std::uint64_t>(head.rank));
  out.number(static_cast<std::uint64_t>(head.ranks));
  out.number(head.launch);
  out.number(head.world);
  out.number(static_cast<std::uint64_t>(head.pid));
  out.number(head.app_ns);
  out.text(head.node);
  out.text(head.output);
  out.pairs(head.meta);
  out.number(package.size());
  out.number(identity_of(package.data(), package.size()));
  std::vector<char> bytes(part_magic.begin(), part_magic.end());
  bytes.reserve(bytes.size() + out.bytes().size() + package.size());
  bytes.insert(bytes.end(), out.bytes().begin(), out.bytes().end());
  bytes.insert(bytes.end(), package.begin(), package.end());
  return bytes;
}

std::optional<Part> read_part(const char* bytes, std::size_t size) {
  if (size < part_magic.size() || std::memcmp(bytes, part_magic.data(), part_magic.size()) != 0) return std::nullopt;
  WireReader in(bytes + part_magic.size(), size - part_magic.size());
  Part part;
  if (in.text() != COMMLENS_VERSION) return std::nullopt;
  part.head.rank = static_cast<int>(in.number());
  part.head.ranks = static_cast<int>(in.number());
  part.head.launch = in.number();
  part.head.world = in.number();
  part.head.pid = static_cast<int>(in.number());
  part.head.app_ns = in.number();
  part.head.node = in.text();
  part.head.output = in.text();
  part.head.meta = in.pairs();
  part.bytes = in.number();
  const Identity check = in.number();
  if (!in.ok() || part.bytes > size) return std::nullopt;
  part.package = bytes + size - part.bytes;
  const bool is_sound =
      part.head.rank >= 0 && part.head.rank < part.head.ranks && identity_of(part.package, part.bytes) == check;
  return is_sound ? std::optional<Part>(std::move(part)) : std::nullopt;
}

}  // namespace commlens
