// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace commlens {

// 64-bit identity: equal inputs give equal identities on every process, without communication.
using Identity = std::uint64_t;

// The finaliser of splitmix64: every output bit depends on every input bit.
inline constexpr Identity mixed(Identity x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Depends on the order: combine(a, b) != combine(b, a).
inline constexpr Identity combine(Identity a, Identity b) noexcept {
  return mixed(a * 0x9e3779b97f4a7c15u + mixed(b + 0x9e3779b97f4a7c15u));
}

inline Identity identity_of(const void* data, std::size_t bytes) noexcept {
  Identity h = bytes;
  const char* at = static_cast<const char*>(data);
  for (; bytes != 0;) {
    Identity word = 0;
    const std::size_t some = bytes < sizeof word ? bytes : sizeof word;
    std::memcpy(&word, at, some);
    h = combine(h, word);
    at += some;
    bytes -= some;
  }
  return h;
}

}  // namespace commlens
