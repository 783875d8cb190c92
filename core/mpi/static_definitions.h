// SPDX-License-Identifier: Apache-2.0
#pragma once

// Of libcommlens.a only; elsewhere null.  Returns the MPI library's definition of an MPI name; null: it has none.
extern "C" __attribute__((weak, visibility("hidden"))) void* commlens_static_definition(const char* name) noexcept;

namespace commlens {

// Returns whether this is libcommlens.a: it is part of the program, perhaps together with the MPI library.
inline bool is_static_library() noexcept { return commlens_static_definition != nullptr; }

}  // namespace commlens
