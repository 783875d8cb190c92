// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace commlens {

// A fact about how a process was set up.
struct Setting {
  std::string source;  // label, environment, control, program or machine
  std::string name, value;
};

// Longest value, and the most bytes of all settings of a process; what is beyond them is left out.
inline constexpr std::size_t most_setting_bytes = 4096, most_settings_bytes = 64 << 10;

// Returns the labels in a text "alg=linear run=3", in their order, each name once with its last value.  Words that are
// not NAME=VALUE go to `wrong`.
std::vector<Setting> labels_in(const std::string& text, std::vector<std::string>& wrong);

// Returns the variables of an environment that spec/settings.toml lists, sorted by name; of a name that is there twice,
// the first one, as getenv() does.  *** replaces possible secrets.
std::vector<Setting> variables_in(const char* const* environment);

// Returns the executable with its build id, and the model of the processor, as far as the system shows them.
std::vector<Setting> program_and_machine();

// Returns the control variable in a line "name=value (source)" of Open MPI; *** replaces possible secrets.  Without a
// name if the line has another form.
Setting control_variable_in(const std::string& line);

// Encode and decode settings, for sending them to rank 0.  The empty text has none.  read_settings() returns false for
// malformed text.
std::string written(const std::vector<Setting>& settings);
bool read_settings(const std::string& text, std::vector<Setting>& settings);

}  // namespace commlens
