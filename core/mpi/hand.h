// SPDX-License-Identifier: Apache-2.0
#pragma once

// All wrappers that cannot be generated from the kinds of their arguments.  The generated wrapper calls each with the
// next definition and all arguments.

#include "core/mpi/completion_calls.h"
#include "core/mpi/lifecycle_calls.h"
#include "core/mpi/object_calls.h"
#include "core/mpi/request_calls.h"
#include "core/mpi/split_read_calls.h"
