// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "core/state/counted.h"

namespace commlens {

// What a process of a job that never ran has counted: the world, duplicates of it, rows and columns of a grid of ranks,
// and itself.
struct VirtualJob {
  int ranks = 1;
  int duplicates = 3;    // of MPI_COMM_WORLD
  int columns = 4;       // of the grid; 0: no grid
  int operations = 4;    // in each communicator
  bool has_self = true;  // uses MPI_COMM_SELF
  int slices = 0;        // of time, in which each operation is called once
  int frames = 1;        // of the call paths; four of each level, which all call the same
  int regions = 0;       // in a tree of which each has up to four others in it; operations are in them by turns

  // Peers of each rank in a cubic grid that wraps around, nearest first, 26 at most; to and from each of them go
  // messages on the world, of a size for faces, edges and corners.
  int neighbours = 0;

  // records: where what is returned points to.
  Counted counted(int rank, std::deque<CommRecord>& records) const;
};

}  // namespace commlens
