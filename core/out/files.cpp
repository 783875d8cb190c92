// SPDX-License-Identifier: Apache-2.0
#include "core/out/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "core/base/loss.h"
#include "core/base/null_device.h"
#include "core/base/private_folder.h"
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

// Returns whether a write() that succeeds may still turn out to have no room on the disk.  File servers report that
// only later, and unknown file systems may, too.  The others reserve the room in write().
bool may_lose_what_it_took(int file) noexcept {
  constexpr unsigned xfs = 0x58465342;
  struct statfs facts;
  if (fstatfs(file, &facts) != 0) return true;
  switch (static_cast<unsigned>(facts.f_type)) {
    case EXT4_SUPER_MAGIC:  // also ext2 and ext3
    case xfs:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC: return false;
    default: return true;
  }
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

// True if another user may have put this link or folder there to lead this process elsewhere.  Then it belongs to
// another user, and others may write to the folder around it.
bool is_suspect(const std::string& name, const struct stat& facts) {
  if (facts.st_uid == geteuid() || facts.st_uid == 0) return false;
  const std::size_t slash = name.rfind('/');
  const std::string around = slash == std::string::npos ? "." : name.substr(0, slash + 1);
  struct stat folder;
  return stat(around.c_str(), &folder) != 0 || (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

// Returns whether something exists at a name, and its facts; follows links.  Ignores a suspect link or folder: like any
// other file it then only occupies the name.
bool is_found(const std::string& name, struct stat& facts) {
  if (lstat(name.c_str(), &facts) != 0) return false;
  if (S_ISLNK(facts.st_mode)) return !is_suspect(name, facts) && stat(name.c_str(), &facts) == 0;
  return !S_ISDIR(facts.st_mode) || !is_suspect(name, facts);
}

}  // namespace

bool is_synced(int file) noexcept {
  if (!may_lose_what_it_took(file)) {
    sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
    return true;
  }
  int result = 0;
  do {
    result = fsync(file);
  } while (result != 0 && errno == EINTR);
  return result == 0 || !is_loss(errno);
}

Target target_of(const std::string& name) {
  struct stat facts;
  if (!is_found(name, facts) || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode)) return Target::free;
  return is_null_device(facts) ? Target::nothing : Target::other;
}

bool is_folder(const std::string& name) {
  struct stat facts;
  return is_found(name, facts) && S_ISDIR(facts.st_mode);
}

std::string name_elsewhere(const std::string& name) { return temporary_directory() + "/" + base_name(name); }

// Whoever may read the files may enter their directory.
mode_t directory_mode(mode_t mode) { return mode | (mode & 0444u) >> 2; }

std::string make_folders(const std::string& path, std::size_t root, mode_t mode) {
  for (std::size_t end = path.find('/', root); end != std::string::npos; end = path.find('/', end + 1)) {
    if (end == 0 || path[end - 1] == '/') continue;
    const std::string folder = path.substr(0, end);
    if (mkdir(folder.c_str(), directory_mode(mode)) == 0) continue;
    const int error = errno;
    struct stat facts;
    if (error == EEXIST && lstat(folder.c_str(), &facts) == 0 && is_suspect(folder, facts)) {
      return "folder " + folder + " belongs to another user, who may have put it there";
    }
    if (stat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode)) continue;  // whatever mkdir() did not like
    return "cannot create folder " + folder + ": " + std::strerror(error);
  }
  return {};
}

Stored write_file(const Content& content, const std::string& name, mode_t mode, const Finish& finish) {
  if (target_of(name) != Target::free) return {"", no_file(name)};
  // Process ids repeat across nodes and containers that share the directory: a temporary file that exists belongs to
  // another process.
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
      // This file system has no hard links: create an empty file to reserve the name, then replace it.
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
  PrivateFolder folder;
  int file = -1;
  succeeds_though_folder_vanishes([&] {
    // Another aggregator on this node may have created the directory.
    folder = PrivateFolder::make(directory.c_str(), directory_mode(mode));
    struct stat facts;
    if (folder && fstat(folder.descriptor(), &facts) == 0) {
      file = create_anew(folder.descriptor(), temporary.c_str(), mode & facts.st_mode);
    }
    return file >= 0;
  });
  if (!folder) return {"", "cannot write " + path + ": " + folder_error(errno)};
  std::string error = file < 0 ? failed("create", path + ".tmp") : write_all(file, content, path + ".tmp", finish);
  if (error.empty() && renameat(folder.descriptor(), temporary.c_str(), folder.descriptor(), name.c_str()) != 0) {
    error = failed("rename to", path);
  }
  if (file >= 0 && !error.empty()) unlinkat(folder.descriptor(), temporary.c_str(), 0);
  if (error.empty()) return {path, ""};
  rmdir(directory.c_str());  // fails if others have written something
  return {"", error};
}

}  // namespace commlens::out
