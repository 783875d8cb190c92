// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace commlens {

// Values that commlens reads now and then instead of counting them in calls: the performance variables of the MPI
// library (core/mpi/pvars.h).  They have to be read whenever the set of counted things changes.

// Sets the function that reads.  counts: what happened since the last reading belongs to the profile.
void call_for_readings(void (*read)(bool counts)) noexcept;

// Reads, before counting pauses or resumes and before the counters are copied.  Call without locks.
void take_reading() noexcept;

// Reads when the counters are cleared: what happened so far is left out.
void take_reading_to_forget() noexcept;

}  // namespace commlens
