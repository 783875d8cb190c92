// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/base/ticks.h"
#include "core/out/files.h"

namespace commlens::out {

// Stores in a file how long storing that file took, which is known only afterwards.  The image contains a filler number
// of eight bytes.  When all else is on disk, the true number, also of eight bytes, replaces it in the file.
class Gap {
 public:
  explicit Gap(Ticks (*clock)());

  // Returns the filler number to insert.  begin: when storing begins.
  std::uint64_t open(Ticks begin);

  // Finds the filler in the image and sets it to 0, the value until it is filled.
  void find(unsigned char* bytes, std::size_t size);

  // Returns the action that fills the gap, as the last write to the file.
  Finish filling();

 private:
  void fill(int file);

  Ticks (*clock_)();
  std::uint64_t filler_;
  Ticks begin_ = 0;
  unsigned char* bytes_ = nullptr;
  off_t offset_ = 0;
};

}  // namespace commlens::out
