// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace commlens {

// Multiplies to 128 bits and XORs the halves, so that every result bit depends on every input bit if neither number is
// small.  The low half alone clusters for sequential inputs such as addresses and indices.
inline std::uint64_t folded(std::uint64_t a, std::uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Return address of the outermost MPI call; 0 when call sites are off.
using Site = std::uint64_t;

// Message size bin: 0 for no bytes, k for 2^(k-1) <= bytes < 2^k, v_bin for v and w collectives, null_bin for what is
// sent to MPI_PROC_NULL: no byte moves, whatever the count.
inline constexpr std::uint32_t v_bin = 127;
inline constexpr std::uint32_t null_bin = 126;

inline std::uint32_t bin_of(std::uint64_t bytes) noexcept {
  return bytes == 0 ? 0 : 64u - static_cast<std::uint32_t>(__builtin_clzll(bytes));
}

// The key of a cell: one word, so that one comparison decides.  The top bit keeps a used key from being 0.
//
//   63   62             61..37       36..27     26..20   19..0
//   1    noncontiguous  communicator procedure  bin      region
//
// Calls with a non-contiguous datatype have cells of their own while the job runs, and cost no counter; in the profile
// they are a column.
using Key = std::uint64_t;

inline constexpr std::uint32_t max_comm = (1u << 25) - 1;
inline constexpr std::uint32_t max_region = (1u << 20) - 1;
inline constexpr std::uint32_t uncounted_region = max_region;  // of calls that are to be left out

inline constexpr Key make_key(std::uint32_t comm, std::uint32_t op, std::uint32_t bin, std::uint32_t region,
                              bool noncontiguous = false) noexcept {
  return (Key{1} << 63) | (Key{noncontiguous} << 62) | (Key{comm} << 37) | (Key{op} << 27) | (Key{bin} << 20) |
         Key{region};
}

// The untimed calls of a cell (hot/untimed.h) are in a cell of their own, whose key has another bin.  Larger sizes are
// always timed.
inline constexpr std::uint32_t first_untimed_bin = 65, untimed_null_bin = 125, untimed_sizes = 60;

inline constexpr std::uint32_t comm_of_key(Key k) noexcept { return static_cast<std::uint32_t>(k >> 37) & max_comm; }
inline constexpr bool noncontiguous_of_key(Key k) noexcept { return ((k >> 62) & 1) != 0; }
inline constexpr std::uint32_t op_of_key(Key k) noexcept { return static_cast<std::uint32_t>(k >> 27) & 0x3ff; }
inline constexpr std::uint32_t bin_of_key(Key k) noexcept { return static_cast<std::uint32_t>(k >> 20) & 0x7f; }
inline constexpr Key with_bin(Key k, std::uint32_t bin) noexcept { return (k & ~(Key{0x7f} << 20)) | (Key{bin} << 20); }
inline constexpr bool is_untimed(Key k) noexcept {
  return bin_of_key(k) >= first_untimed_bin && bin_of_key(k) <= untimed_null_bin;
}
// Returns the key of the untimed calls; 0: there are none.
inline constexpr Key untimed_key(Key k) noexcept {
  const std::uint32_t bin = bin_of_key(k);
  return bin < untimed_sizes ? with_bin(k, bin + first_untimed_bin)
         : bin == null_bin   ? with_bin(k, untimed_null_bin)
                             : 0;
}
// Returns the key that the calls have in a profile, timed or not.
inline constexpr Key timed_key(Key k) noexcept {
  const std::uint32_t bin = bin_of_key(k);
  return !is_untimed(k) ? k : with_bin(k, bin == untimed_null_bin ? null_bin : bin - first_untimed_bin);
}
inline constexpr std::uint32_t region_of_key(Key k) noexcept { return static_cast<std::uint32_t>(k) & max_region; }

}  // namespace commlens
