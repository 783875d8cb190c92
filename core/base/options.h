// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "generated/options.h"

namespace commlens {

// The COMMLENS_ options in force.  Precedence: environment, then configuration file, then default.
class Options {
 public:
  // Reads the environment and the configuration file.  A mistake in them becomes a warning, never a failure.  A
  // privileged process reads neither: commlens is off in such a process.
  static Options read();

  const std::string& text(Option o) const { return values_[static_cast<int>(o)]; }
  bool on(Option o) const { return text(o) == "1"; }
  // Returns whether the environment or the configuration file has set an option.
  bool is_set(Option o) const { return is_set_[static_cast<int>(o)]; }
  unsigned long number(Option o) const { return std::strtoul(text(o).c_str(), nullptr, 10); }

  // Permissions of the profile's files, before the umask is applied.
  mode_t mode() const {
    const std::string& wanted = text(Option::mode);
    return wanted.empty() ? 0644 : static_cast<mode_t>(std::strtoul(wanted.c_str(), nullptr, 8));
  }

  // Switches commlens off for this process, whatever the environment and the file say.
  void switch_off() { values_[static_cast<int>(Option::enable)] = "0"; }

  // Warnings to print once per job: unknown variables, bad values, a configuration file that cannot be read.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Returns all options, one NAME=value per line.
  std::string listing() const;

 private:
  // All return the error as text for a message; empty: none.
  std::string store(int option, const std::string& value);
  std::string set(int option, const std::string& value);
  std::string set_by_line(const std::string& line);
  void read_file(const std::string& path, bool asked_for);

  std::string values_[option_count];
  bool is_set_[option_count] = {};
  std::vector<std::string> warnings_;
};

}  // namespace commlens
