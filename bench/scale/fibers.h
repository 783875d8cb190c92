// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "core/collect/group.h"

namespace commlens::scale {

// Ranks that run the real code, one after the other, each with a clock of its own: what it computes takes the time it
// takes here, a message arrives when it would arrive on the network, and files are served one after the other, by one
// server. So the clocks of a hundred thousand ranks can be had on one core.
struct Network {
  double latency_ns = 2'000;    // of a message
  double ns_per_byte = 0.1;     // 10 GB/s
  double file_op_ns = 0;        // of an operation on names (create, link, unlink); 0: what it takes here
  double file_ns_per_byte = 0;  // of data, for all clients together; 0: what it takes here
};

struct Traffic {
  std::uint64_t messages = 0, bytes = 0, file_operations = 0, file_bytes = 0;
};

class Rank : public Group {
 public:
  // Nanoseconds of this rank's clock.
  virtual double clock() const = 0;
};

// Lets `ranks` ranks live, and returns what they sent and wrote.
Traffic run(int ranks, const Network& network, const std::function<void(Rank&)>& life);

// The clock of the rank that runs, in nanoseconds.
std::uint64_t clock_here();

}  // namespace commlens::scale
