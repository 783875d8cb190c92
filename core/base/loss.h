// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>

namespace commlens {

// True for an error of fsync, fdatasync or close after which data may be missing in the file.  Any other error means
// that the call is not available, such as EPERM in a sandbox, or EINVAL on a file system that does not support it.  The
// data is then where the writes have put it.
inline bool is_loss(int error) noexcept {
  switch (error) {
    case EIO:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ESTALE:
    case ETIMEDOUT:
    case ENXIO:
    case ENODEV: return true;
    default: return false;
  }
}

}  // namespace commlens
