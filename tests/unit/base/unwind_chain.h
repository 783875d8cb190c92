// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chains of calls through functions with different kinds of frames, unwound at their end and compared with libgcc.

#include <cstdint>
#include <vector>

#include "core/base/unwind.h"

namespace commlens {

using Addresses = std::vector<std::uint64_t>;

// What probe() found at the end of the last chain.
struct Probed {
  static constexpr int most_returns = 64, most_words = 256;
  StackFrame frame;  // of probe()
  std::uint64_t returns[most_returns];
  StackWord words[most_words];
  Unwound unwound;
  Addresses libgcc;  // return addresses by _Unwind_Backtrace(), likewise from the caller of probe() on

  Addresses found() const { return {returns, returns + unwound.frames}; }
  // libgcc's first `count` return addresses
  Addresses expected(int count) const;
  Addresses expected() const { return expected(unwound.frames); }
};
extern Probed probed;
extern int depth_asked;     // return addresses that probe() asks for: most_returns
extern void (*at_probe)();  // if not null, probe() calls it before it returns

extern "C" void commlens_test_capture(StackFrame* frame);  // stores the frame of its caller
Addresses libgcc_addresses();                              // from its caller's own address on
Addresses glibc_addresses();                               // the same by backtrace()
int probe();

// Calls the functions of these kinds, each the next one, and then probe().
inline constexpr int frame_kinds = 15, qsort_kind = 8;
void call_chain(const std::vector<int>& kinds);

}  // namespace commlens
