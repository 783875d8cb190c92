// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "generated/options.h"

namespace commlens {

// The COMMLENS_ options in force.  Precedence: environment > configuration file > default.
class Options {
 public:
  // Reads environment and configuration file.  What is wrong becomes a warning, never a failure.
  static Options read();

  const std::string& text(Option o) const { return values_[static_cast<int>(o)]; }
  bool on(Option o) const { return text(o) == "1"; }
  unsigned long number(Option o) const { return std::strtoul(text(o).c_str(), nullptr, 10); }

  // Lines to say once per job: unknown variables, bad values, a file that cannot be read.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // All of them, one NAME=value a line.
  std::string listing() const;

 private:
  void set(int option, const std::string& value, const std::string& where);
  void read_file(const std::string& path, bool asked_for);

  std::string values_[option_count];
  std::vector<std::string> warnings_;
};

}  // namespace commlens
