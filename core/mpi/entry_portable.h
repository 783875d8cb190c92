// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/hot/key.h"

// Where the application has called the MPI procedure that begins: only with entry_portable.cpp.
extern "C" __attribute__((visibility("hidden"))) __thread commlens::Site commlens_caller;
