// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace commlens {

// Largest configuration file, in bytes.
constexpr std::size_t most_config_bytes = 64 << 10;

struct ConfigFile {
  std::string text;
  std::string problem;     // why the file is not used; empty: it is used
  bool is_absent = false;  // the problem is that the file does not exist
};

// Reads a configuration file.  Opens regular files only, because opening a device or a FIFO may already have an effect:
// on a tape, or on the process at the other end.  Does not read the standard input, which belongs to the application.
// /dev/null stands for an empty configuration.
ConfigFile read_config(const std::string& path);

// Returns the beginning of a text from the environment or a file, in printable ASCII, for a message.
std::string excerpt(const std::string& text);

}  // namespace commlens
