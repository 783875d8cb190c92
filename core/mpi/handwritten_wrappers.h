// SPDX-License-Identifier: Apache-2.0
#pragma once

// The wrappers that gen/calls.py cannot generate.  The generated stub passes the next definition and all arguments to
// them.

#include "core/mpi/completion_calls.h"
#include "core/mpi/lifecycle_calls.h"
#include "core/mpi/object_calls.h"
#include "core/mpi/request_calls.h"
#include "core/mpi/split_read_calls.h"
