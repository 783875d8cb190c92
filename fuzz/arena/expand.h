// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/recover/input.h"

// What the fuzzer mutates: arenas without what makes them long and brittle.  Zeros at the end of a segment are left
// out, and each entry of a journal gets the check that it needs to be looked at.
//
//   arena    flags, length (2 bytes) of a header without what it begins with, that header, segments, 0xff
//   segment  kind, number, bytes (4), length (2), content
//
// An entry in the content of a journal: kind, length (2), bytes.  Numbers are little-endian.  More arenas may follow.
namespace commlens::fuzz {

struct Expanded {
  struct Free {
    void operator()(char* memory) const;
  };
  std::unique_ptr<char, Free> memory;  // ends where the arena ends, so that the sanitizer sees a step beyond
  arena::Content content;
};

std::vector<Expanded> expanded(const std::uint8_t* data, std::size_t size);

}  // namespace commlens::fuzz
