// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <vector>

#include "core/hot/key.h"
#include "core/process/settings.h"
#include "generated/procedures.h"

namespace [[gnu::visibility("hidden")]] commlens {

// COMMLENS_TUNE: variables of Open MPI that have another value while communicators of a family are created
// (docs/decisions/0031-per-communicator.md).

// True if the rules of COMMLENS_TUNE are in use.
extern bool tunes_families;

// Reads the rules, and agrees with the other ranks.  Call at the end of MPI_Init.  Prints a line on rank 0 if there are
// rules but they cannot be used.
void begin_tuning() noexcept;
void end_tuning() noexcept;

// Around the creation of a communicator.  begin: returns whether variables are set now.  site: 0 for a call inside
// another MPI call.
bool begin_creation(Op op, MPI_Comm parent, Site site) noexcept;
void end_creation() noexcept;

// Calls the MPI library's function, which creates a communicator from `parent`.
template <class Next>
inline int create_tuned(Op op, MPI_Comm parent, Site site, Next next) {
  if (__builtin_expect(!tunes_families, 1)) return next();
  const bool is_set = begin_creation(op, parent, site);
  const int rc = next();
  if (is_set) end_creation();
  return rc;
}

// Suspends the variables of a creation inside which the application, in a callback, creates a communicator by a
// procedure that no rule names.  begin: returns whether it did.
bool begin_inside() noexcept;

// Calls the MPI library's function, which creates a communicator.
template <class Next>
inline int create_inside(Next next) {
  if (__builtin_expect(!tunes_families, 1)) return next();
  const bool is_suspended = begin_inside();
  const int rc = next();
  if (is_suspended) end_creation();
  return rc;
}

// What was set, for table setting.
std::vector<Setting> tuned_settings();

}  // namespace commlens
