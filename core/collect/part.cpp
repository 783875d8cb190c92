// SPDX-License-Identifier: Apache-2.0
#include "core/collect/part.h"

#include <cstring>
#include <utility>

#include "core/base/wire.h"

namespace commlens {
namespace {

// Of the head and of packages.  To be increased if either changes.
constexpr std::uint64_t format = 1;

// Behind the magic: the checksum of all that follows.
constexpr std::size_t checked_from = part_magic.size() + sizeof(Identity);

}  // namespace

std::vector<char> part_of(const PartHead& head, const std::vector<char>& package) {
  WireWriter out;
  out.text(COMMLENS_VERSION);
  out.number(format);
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
  std::vector<char> bytes(part_magic.begin(), part_magic.end());
  bytes.resize(checked_from);
  bytes.insert(bytes.end(), out.bytes().begin(), out.bytes().end());
  bytes.insert(bytes.end(), package.begin(), package.end());
  const Identity check = identity_of(bytes.data() + checked_from, bytes.size() - checked_from);
  std::memcpy(bytes.data() + part_magic.size(), &check, sizeof check);
  return bytes;
}

std::optional<Part> read_part(const char* bytes, std::size_t size) {
  if (size < checked_from || std::memcmp(bytes, part_magic.data(), part_magic.size()) != 0) return std::nullopt;
  Identity check;
  std::memcpy(&check, bytes + part_magic.size(), sizeof check);
  if (identity_of(bytes + checked_from, size - checked_from) != check) return std::nullopt;
  WireReader in(bytes + checked_from, size - checked_from);
  if (in.text() != COMMLENS_VERSION || in.number() != format) return std::nullopt;
  Part part;
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
  const bool is_sound = in.ok() && part.head.rank >= 0 && part.head.rank < part.head.ranks && part.bytes != 0 &&
                        part.bytes < size - checked_from;
  part.package = bytes + size - part.bytes;
  return is_sound ? std::optional<Part>(std::move(part)) : std::nullopt;
}

}  // namespace commlens
