// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace commlens {

// How a profile shows the command line (COMMLENS_COMMAND_LINE).
enum class CommandLine { masked, program, full };

// The command line as one line, arguments quoted for a POSIX shell where needed.  masked: *** stands for the values of
// arguments whose names are those of secrets, for passwords in URLs, and for what follows `Authorization:` and
// `Bearer`; in doubt too much is masked.  program: only the file name of the program.
std::string shown(const std::vector<std::string>& arguments, CommandLine how);

// True for the name of an option, a variable or a header whose value is a secret: token, --api-key, DB_PASSWORD, ...
bool is_name_of_secret(const std::string& name);

}  // namespace commlens
