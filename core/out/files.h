// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

namespace commlens::out {

// Permissions of a profile unless COMMLENS_MODE asks for less; the umask comes on top.
constexpr mode_t usual_mode = 0644;

// The result of an attempt to store a profile: where it went, or what went wrong, in words for a person.
struct Stored {
  std::string path;   // empty: not stored
  std::string error;  // empty: no problem; beside a path: why it is not where it was asked to be
};

struct Content {
  const unsigned char* bytes;
  std::size_t size;
};

// What else to do to a file when its content is on disk, before it is closed.
using Finish = std::function<void(int descriptor)>;

// What stands where a profile is to go.
enum class Target {
  free,     // nothing, a file or a folder: beside these there is a name that is free
  nothing,  // /dev/null: no profile is wanted
  other,    // a device, a FIFO, a socket: neither to be written nor to be numbered
};
Target target_of(const std::string& name);

// The same name in $TMPDIR or /tmp, for what cannot be where it was asked to be.
std::string name_elsewhere(const std::string& name);

// Writes all of it under a temporary name, then gives it `name` or the first numbered one that is free.
Stored write_file(const Content& content, const std::string& name, mode_t mode, const Finish& finish);

// Makes the directory for a profile of that name: "a.db" gives "a.commlens", or "a.1.commlens" where that exists; below
// $TMPDIR or /tmp when it cannot be made, with `error`.  Empty when it can be made nowhere.
std::string make_directory(const std::string& name, mode_t mode, std::string& error);

// Writes one file of such a directory, which may have less permissions than `mode`: then those of the directory hold.
// Makes the directory where it is not, as where each node has a file system of its own.
Stored write_part(const Content& content, const std::string& directory, const std::string& name, mode_t mode,
                  const Finish& finish);

}  // namespace commlens::out
