// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <exception>

#include "core/recover/read.h"

namespace commlens::arena {

const char* fault_of(const Header& header) {
  if (std::memcmp(header.magic, magic, sizeof magic) != 0) return "not a commlens arena";
  if (header.version != version || header.layout != layout() || header.header_bytes != header_bytes) {
    return "written by another version of commlens; only that version can read it";
  }
  return nullptr;
}

bool Reader::read_recorded(const Content& content, Liveness liveness) try {
  if (content.size < header_bytes) {
    error = "too short for an arena";
    return false;
  }
  const Header& header = *reinterpret_cast<const Header*>(content.bytes);
  if (const char* const fault = fault_of(header)) {
    error = fault;
    return false;
  }
  is_copy_ = is_recorded_ = true;
  liveness_ = liveness;
  is_of_this_boot_ = arena::is_of_this_boot(header.process);
  return read_content(content);
} catch (const std::exception&) {  // bad_alloc, length_error
  error = "no memory to read it";
  return false;
}

}  // namespace commlens::arena
