// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/state/partners.h"
#include "core/state/registry.h"

namespace commlens {

// The process that a report is about.
struct ReportingRank {
  int rank;                // from MPI or the launcher; -1: unknown
  const char* unmeasured;  // the name to print for a procedure that is not measured: MPI_Init or MPI_Finalize
  PartnerConstants constants;
};

// Writes to stderr what each thread of this process is doing: one line per thread that is in MPI or has called it.  All
// lines go out in one write() as long as they fit into PIPE_BUF, which a pipe takes at once.
//
// May be called from a signal handler: takes no lock, does not allocate, uses no stdio.  Not reentrant: the caller
// ensures that only one call runs at a time.
void print_hang_report(const Registry& registry, const ReportingRank& reporter) noexcept;

// Writes into `text` the name that the profile will give a communicator, terminated by a zero.  "?" replaces each part
// of the name that this process cannot determine.  The number in the name belongs to the leader and is read from the
// leader's arena.  The rules of print_hang_report() hold.
void name_of_comm(const Registry& registry, std::uint32_t index, int rank, char* text, std::size_t bytes) noexcept;

}  // namespace commlens
