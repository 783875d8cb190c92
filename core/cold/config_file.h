// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace commlens {

// Largest configuration file, in bytes.
constexpr std::size_t most_config_bytes = 64 << 10;

struct ConfigFile {
  std::string text;
  std::string problem;     // why it is not used; empty: it is
  bool is_absent = false;  // the problem is that there is none
};

// Reads a configuration.  Only a regular file is opened: to open a device or a FIFO may already have an effect, on a
// tape or on the process at its other end.  Nor is the standard input read, which belongs to the application. /dev/null
// stands for an empty configuration.
ConfigFile read_config(const std::string& path);

// Text of the environment or of a file for a message: its beginning, in printable ASCII.
std::string excerpt(const std::string& text);

}  // namespace commlens
