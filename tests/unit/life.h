// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "core/state/registry.h"

namespace commlens {

// A folder of its own for each test.
class Folder {
 public:
  explicit Folder(const std::string& in = "/tmp") : path_(in + "/commlens-arena-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  // The only file in it, or empty.
  std::string file() const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) found = entry.path();
    return found;
  }

 private:
  std::string path_;
};

// Lets a process of its own open its arena in `folder`, be rank 1 of 4, and live until `life` returns or it is killed;
// how it ended is in the wait status.
int live(const std::string& folder, const std::function<void(Registry&)>& life);

// The content of a file; and the other way round, with mode 0600.
std::string content_of(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace commlens
