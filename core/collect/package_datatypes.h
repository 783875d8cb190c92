// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/base/ticks.h"
#include "core/base/wire.h"
#include "core/state/datatypes.h"

namespace commlens {

// Writes the datatypes of one process, as Profile::read_datatypes() reads them.
void write(WireWriter& out, const CountedDatatypes& counted, const TickScale& scale);

}  // namespace commlens
