// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "core/base/identity.h"

namespace commlens::out {

// A directory beside the profile for the parts of a job's processes, one file per rank.  It is used if the processes
// end at different times and have no communicator on which to collect.  The process that finds all parts there writes
// the profile.  Only this user may read the directory; one that another user created is never used
// (base/private_folder.h).
class Parts {
 public:
  // job: the same number on all processes of a job, another one for every job.  began: start of this process; older
  // files were left behind by an earlier job with the same number.
  Parts(const std::string& profile_name, Identity job, std::time_t began);

  // True if another process of the job has stored its part.  Also true if it could not, because the directory belongs
  // to another user.
  bool has_begun() const;
  // Stores the part of a rank.  On failure returns false, sets `error` and leaves an empty file if that is possible.
  bool put(int rank, const std::vector<char>& bytes);
  // Returns true to one caller only, once the parts of all ranks are there.  That caller writes the profile.
  bool claim(int ranks);
  // Returns the part of a rank, which is empty if the rank could not store it; nothing if it cannot be read.
  std::optional<std::vector<char>> get(int rank) const;
  // Rank 0 stores its orders for the profile before it stores its own part.  orders() returns them, or an empty text if
  // it could not store them.
  void put_orders(const std::vector<char>& bytes);
  std::vector<char> orders() const;
  void remove(int ranks);

  const std::string& directory() const noexcept { return directory_; }
  const std::string& profile_name() const noexcept { return profile_name_; }
  std::string error;

 private:
  std::string profile_name_, directory_;
  std::time_t oldest_;
};

}  // namespace commlens::out
