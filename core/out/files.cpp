// SPDX-License-Identifier: Apache-2.0
#include "core/out/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/cold/loss.h"
#include "core/cold/null_device.h"
#include "core/out/output_name.h"

namespace commlens::out {
namespace {

std::string failed(const char* doing, const std::string& path) {
  return std::string("cannot ") + doing + " " + path + ": " + std::strerror(errno);
}

std::string no_file(const std::string& name) { return "cannot write " + name + ": it is neither a file nor a folder"; }

std::string temporary_directory() {
  const char* const directory = std::getenv("TMPDIR");
  return directory != nullptr && *directory != '\0' ? directory : "/tmp";
}

// Who may read a file may enter its directory.
mode_t directory_mode(mode_t mode) { return mode | (mode & 0444u) >> 2; }

bool is_synced(int file) noexcept {
  int result = 0;
  do {
    result = fsync(file);
  } while (result != 0 && errno == EINTR);
  return result == 0 || !is_loss(errno);
}

std::string write_all(int file, const Content& content, const std::string& path, const Finish& finish) {
  std::string error;
  for (std::size_t done = 0; done < content.size;) {
    const ssize_t n = write(file, content.bytes + done, content.size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      error = failed("write", path);
      break;
    }
    done += static_cast<std::size_t>(n);
  }
  if (error.empty() && !is_synced(file)) error = failed("write", path);
  if (error.empty() && finish) finish(file);
  if (close(file) != 0 && is_loss(errno) && error.empty()) error = failed("write", path);
  return error;
}

// The descriptor of a directory that is no link, made when it is not there; -1 with errno when there is none.
int opened_directory(const std::string& directory, mode_t mode) {
  const auto open_it = [&] { return open(directory.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); };
  const int descriptor = open_it();
  if (descriptor >= 0 || errno != ENOENT) return descriptor;
  // Another aggregator on this node may be faster.
  if (mkdir(directory.c_str(), directory_mode(mode)) != 0 && errno != EEXIST) return -1;
  return open_it();
}

// Whether nobody else decides what becomes of our files in a directory.  A file of ours in it tells what the file
// system makes of our user and of permissions: a server may map users to others, and some have no permissions.
bool is_ours(const struct stat& directory, int own_file) {
  struct stat own;
  if (fstat(own_file, &own) != 0) return false;
  constexpr mode_t by_others = S_IWGRP | S_IWOTH;
  return directory.st_uid == own.st_uid && (directory.st_mode & ~own.st_mode & by_others) == 0;
}

}  // namespace

Target target_of(const std::string& name) {
  struct stat facts;
  if (stat(name.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) return Target::free;
  return is_null_device(facts) ? Target::nothing : Target::other;
}

std::string name_elsewhere(const std::string& name) { return temporary_directory() + "/" + base_name(name); }

Stored write_file(const Content& content, const std::string& name, mode_t mode, const Finish& finish) {
  if (target_of(name) != Target::free) return {"", no_file(name)};
  // Process ids repeat across nodes and containers that share the directory: a name that exists is another's.
  std::string temporary;
  int file = -1;
  for (int n = 0; file < 0; ++n) {
    temporary = name + ".tmp." + std::to_string(getpid()) + "." + std::to_string(n);
    file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0 && errno != EEXIST) return {"", failed("create", temporary)};
  }
  Stored result;
  result.error = write_all(file, content, temporary, finish);
  for (int n = 0; result.error.empty() && result.path.empty(); ++n) {
    const std::string wanted = n == 0 ? name : numbered_name(name, n);
    if (link(temporary.c_str(), wanted.c_str()) == 0) {
      result.path = wanted;
    } else if (errno == EEXIST) {
      continue;
    } else {
      // No hard links on this file system: take the name first, then replace our own empty file.
      const int own = open(wanted.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (own < 0 && errno == EEXIST) continue;
      if (own < 0) {
        result.error = failed("create", wanted);
      } else {
        close(own);
        if (rename(temporary.c_str(), wanted.c_str()) == 0) return {wanted, ""};
        result.error = failed("rename to", wanted);
        unlink(wanted.c_str());
      }
    }
  }
  unlink(temporary.c_str());
  return result;
}

std::string make_directory(const std::string& name, mode_t mode, std::string& error) {
  const std::size_t ending = name.size() > 3 && name.compare(name.size() - 3, 3, ".db") == 0 ? 3 : 0;
  const std::string wanted = name.substr(0, name.size() - ending) + ".commlens";
  const auto add = [&error](const std::string& more) { error += (error.empty() ? "" : "; ") + more; };
  for (const std::string& first : {wanted, name_elsewhere(wanted)}) {
    const std::string& asked_for = first == wanted ? name : first;
    if (target_of(asked_for) != Target::free || target_of(first) != Target::free) {
      add(no_file(asked_for));
      continue;
    }
    for (int n = 0;; ++n) {
      std::string path = n == 0 ? first : numbered_name(first, n);
      if (mkdir(path.c_str(), directory_mode(mode)) == 0) return path;
      if (errno == EEXIST) continue;
      add(failed("create", path));
      break;
    }
  }
  return {};
}

Stored write_part(const Content& content, const std::string& directory, const std::string& name, mode_t mode,
                  const Finish& finish) {
  const std::string path = directory + "/" + name, temporary = name + ".tmp";
  const int folder = opened_directory(directory, mode);
  struct stat facts;
  if (folder < 0 || fstat(folder, &facts) != 0) {
    std::string error = failed("open", directory);
    if (folder >= 0) close(folder);
    return {"", error};
  }
  const int file =
      openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode & facts.st_mode);
  std::string error;
  if (file < 0) {
    error = failed("create", path + ".tmp");
  } else if (!is_ours(facts, file)) {
    close(file);
    error = "cannot write " + path + ": others may change what is in that folder";
  } else {
    error = write_all(file, content, path + ".tmp", finish);
    if (error.empty() && renameat(folder, temporary.c_str(), folder, name.c_str()) != 0)
      error = failed("rename to", path);
  }
  if (file >= 0 && !error.empty()) unlinkat(folder, temporary.c_str(), 0);
  close(folder);
  if (error.empty()) return {path, ""};
  rmdir(directory.c_str());  // unless others have written something
  return {"", error};
}

}  // namespace commlens::out
