// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace commlens {

// How a profile stores the command line (COMMLENS_COMMAND_LINE).
enum class CommandLine { masked, program, full };

// Returns the command line as one line, with arguments quoted for a POSIX shell where needed.
// masked: replaces by *** the values of arguments whose names are those of secrets, passwords in URLs, and the text
// after `Authorization:` and `Bearer`.  In doubt it masks too much.
// program: returns only the file name of the program.
// full: masks nothing.
std::string shown(const std::vector<std::string>& arguments, CommandLine how);

// Returns the value of a variable, masked like an argument NAME=VALUE.
std::string shown_value(const std::string& name, const std::string& value);

// True for the name of an option, a variable or a header whose value is a secret: token, --api-key, DB_PASSWORD, ...
bool is_name_of_secret(const std::string& name);

}  // namespace commlens
