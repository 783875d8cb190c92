// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace commlens {

// A point that a line passes below or above.
struct Bound {
  double x, y;
};

// Bounds from below and from above between which a straight line passes.
struct Corridor {
  std::vector<Bound> lower, upper;
};

// A line through a corridor: y = at_begin + slope * (x - begin).
struct CorridorLine {
  double at_begin = 0, slope = 0;
  // No line through the corridor is further away between the two ends.  If no line passes: twice the excess.
  double error = 0;
  // The bounds have to give way by this much for a line to pass; 0: they need not.
  double excess = 0;
};

// Returns the line whose largest distance from any line through the corridor is the smallest, between x = begin and
// x = end.  steepest: limit of the absolute value of the slope of all lines.  pre: there are bounds on both sides, and
// begin < end.
CorridorLine line_through(Corridor corridor, double begin, double end, double steepest);

}  // namespace commlens
