// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "core/cold/identity.h"

namespace commlens::out {

// Where the processes of a job leave what they counted when they end at different times and have no communicator to
// collect it on: a directory beside the profile, one file a rank.  Who finds all of them there makes the profile.
// The directory is readable for this user only; one that another user made is never used (cold/private_folder.h).
class Parts {
 public:
  // job: the same on all its processes, another for every job.  began: when this process did; older files are what a
  // job of the same number left behind.
  Parts(const std::string& profile_name, Identity job, std::time_t began);

  // True when another process of the job has added its part, or could not: its directory belongs to another user.
  bool has_begun() const;
  // Adds a rank's part; false, with `error`, when it cannot be written: then an empty one, if that is possible.
  bool put(int rank, const std::vector<char>& bytes);
  // True for one caller only, and only when all are there.
  bool claim(int ranks);
  // Empty when it cannot be read.
  std::vector<char> get(int rank) const;
  // What rank 0 wants done with the parts, before it adds its own; empty when it could not say so.
  void put_orders(const std::vector<char>& bytes);
  std::vector<char> orders() const;
  void remove(int ranks);

  const std::string& directory() const noexcept { return directory_; }
  std::string error;

 private:
  std::string directory_;
  std::time_t oldest_;
};

}  // namespace commlens::out
