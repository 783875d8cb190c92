// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>

namespace commlens::out {

// Permissions of a profile unless COMMLENS_MODE restricts them; the umask applies, too.
constexpr mode_t usual_mode = 0644;

// The result of an attempt to store a profile.
struct Stored {
  std::string path;   // empty: not stored
  std::string error;  // empty: none; beside a path: why the profile is not where it was wanted
};

struct Content {
  const unsigned char* bytes;
  std::size_t size;
};

// Makes sure that the file system has the data of an open file.  Where write() has done so, begins to bring it to the
// disk and does not wait: the job waits for us.  Returns false, with errno, if there is no room.
bool is_synced(int file) noexcept;

// A last action on a file, after its content is on disk and before it is closed.
using Finish = std::function<void(int descriptor)>;

// The kind of file at the name of a profile.
enum class Target {
  free,     // nothing, a file or a folder: write_file() finds a free name beside them
  nothing,  // /dev/null: the user wants no profile
  other,    // a device, a FIFO, a socket: never written to, and no name beside it is used
};
Target target_of(const std::string& name);

// Returns whether `name` is a folder, into which a profile with the default name then goes.  In a folder to which
// others may write, a folder of another user only counts if `name` ends with '/'.
bool is_folder(const std::string& name);

// Returns the same file name in $TMPDIR or /tmp, for a profile that cannot be written to `name`.
std::string name_elsewhere(const std::string& name);

// Returns the permissions of a folder for files of this mode.
mode_t directory_mode(mode_t mode);

// Creates the folders of `path` that begin behind its first `root` bytes, if they do not exist, with the permissions of
// a directory for files of this mode.  The last part of the path is a file.  Returns why a folder cannot be made or
// used; empty: all are there.  Does not use a folder of another user in a folder to which others may write.
std::string make_folders(const std::string& path, std::size_t root, mode_t mode);

// Writes `content` under a temporary name, then gives the file `name` or the first numbered name that is free.  Never
// replaces a file.
Stored write_file(const Content& content, const std::string& name, mode_t mode, const Finish& finish);

// Creates the directory for a profile of this name and returns its path: "a.db" gives "a.commlens", or "a.1.commlens"
// if that exists.  If it cannot be created there, creates it below $TMPDIR or /tmp and sets `error`.  Returns an empty
// text if that fails, too.
std::string make_directory(const std::string& name, mode_t mode, std::string& error);

// Writes one file of such a directory.  The file never has more permissions than the directory, whatever `mode` is.
// Creates the directory if it does not exist, for example if each node has a file system of its own.
Stored write_part(const Content& content, const std::string& directory, const std::string& name, mode_t mode,
                  const Finish& finish);

}  // namespace commlens::out
