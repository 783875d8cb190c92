// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace commlens {

// True for /dev/null, under any name.
inline bool is_null_device(const struct stat& facts) noexcept {
  return S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3);
}

}  // namespace commlens
