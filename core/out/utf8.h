// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace commlens::out {

// Returns `text` with every byte that is not part of well-formed UTF-8 replaced by U+FFFD.  Names come from the
// application, where they are bytes (Latin-1 in many Fortran codes); a reader of the profile may refuse such text.
std::string utf8(const std::string& text);

}  // namespace commlens::out
