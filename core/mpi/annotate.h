// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commlens {

// Whether what the application says of itself counts.
bool is_annotating() noexcept;

// Says so when the library of empty functions stands in front of us.
void check_annotations();

// From here on what the application says of itself is passed by.
void stop_annotating() noexcept;

}  // namespace commlens
