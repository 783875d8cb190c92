// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/profile/channels.h"

// Puts the samples of non-blocking and persistent collectives together: the call that completes one waits from its
// entry until the last member has started it, until the root has, or, at the root, until the others have (enum Waits).
// Prefix sums and neighbourhood collectives are among them, blocking ones too: a rank waits until the last of those
// below it, or of the neighbours that send to it, has started.
namespace commlens {

// What one member waited for in the call that completed an operation.
struct OperationPart {
  const ChannelEnd* end;
  const MessageRow* row;
  const ChannelEnd* late;  // the member for which it waited; itself if it waited for nobody
  const MessageRow* late_row;
  Later until;  // how much later that one started the operation than this one entered the call
};

struct SplitOperations {
  std::vector<OperationPart> parts;
  std::vector<LostSample> lost;  // each operation once for all its members
};

// Splits the operations of all ranks.  The result points into `ends`.
SplitOperations split_operations(const ChannelEnds& ends);

}  // namespace commlens
