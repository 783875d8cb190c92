// SPDX-License-Identifier: Apache-2.0
#include "core/profile/corridor.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace commlens {
namespace {

constexpr int steps = 64;  // of a search; each leaves two thirds of an interval, or half

// Leaves only the corners of the convex hull that can touch a line from one side.  sign: 1: of upper bounds, -1: of
// lower bounds.
void keep_corners(std::vector<Bound>& bounds, double sign) {
  std::sort(bounds.begin(), bounds.end(),
            [&](const Bound& a, const Bound& b) { return a.x != b.x ? a.x < b.x : sign * a.y < sign * b.y; });
  std::size_t kept = 0;
  for (const Bound& next : bounds) {
    if (kept > 0 && bounds[kept - 1].x == next.x) continue;
    while (kept > 1) {
      const Bound &a = bounds[kept - 2], &b = bounds[kept - 1];
      const double turn = (b.x - a.x) * (next.y - a.y) - (b.y - a.y) * (next.x - a.x);
      if (sign * turn > 0) break;
      --kept;
    }
    bounds[kept++] = next;
  }
  bounds.resize(kept);
}

// Returns where a concave function is largest.
template <class Function>
double argmax(double low, double high, Function function) {
  for (int i = 0; i < steps; ++i) {
    const double a = low + (high - low) / 3, b = high - (high - low) / 3;
    (function(a) < function(b) ? low : high) = function(a) < function(b) ? a : b;
  }
  return (low + high) / 2;
}

// Returns the last value from `inside` towards `outside` at which a concave function is not negative.
template <class Function>
double last_not_negative(double inside, double outside, Function function) {
  if (function(outside) >= 0) return outside;
  for (int i = 0; i < steps; ++i) {
    const double middle = (inside + outside) / 2;
    (function(middle) >= 0 ? inside : outside) = middle;
  }
  return inside;
}

class Lines {
 public:
  Lines(const Corridor& corridor, double steepest) : corridor_(corridor) {
    const auto room = [this](double slope) { return highest(slope, 0) - lowest(slope, 0); };
    const double widest = argmax(-steepest, steepest, room);
    excess_ = std::max(0.0, -room(widest) / 2);
    first_ = last_not_negative(widest, -steepest, room);
    last_ = last_not_negative(widest, steepest, room);
  }

  double excess() const { return excess_; }

  // The range of the lines at x.
  double top(double x) const {
    const auto at = [&](double slope) { return highest(slope, x); };
    return at(argmax(first_, last_, at));
  }
  double bottom(double x) const {
    const auto below = [&](double slope) { return -lowest(slope, x); };
    return -below(argmax(first_, last_, below));
  }

 private:
  // Returns the largest and the smallest y at x of lines of this slope.
  double highest(double slope, double x) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Bound& b : corridor_.upper) least = std::min(least, b.y + slope * (x - b.x));
    return least + excess_;
  }
  double lowest(double slope, double x) const {
    double most = -std::numeric_limits<double>::infinity();
    for (const Bound& b : corridor_.lower) most = std::max(most, b.y + slope * (x - b.x));
    return most - excess_;
  }

  const Corridor& corridor_;
  double excess_ = 0, first_ = 0, last_ = 0;
};

}  // namespace

CorridorLine line_through(Corridor corridor, double begin, double end, double steepest) {
  keep_corners(corridor.upper, 1);
  keep_corners(corridor.lower, -1);
  for (std::vector<Bound>* const bounds : {&corridor.upper, &corridor.lower}) {
    for (Bound& b : *bounds) b.x -= begin;
  }
  const Lines lines(corridor, steepest);
  // The distance between two lines is largest at an end.  So the line through the middles at both ends is the best.
  const double length = end - begin;
  const double top_0 = lines.top(0), bottom_0 = lines.bottom(0);
  const double top_1 = lines.top(length), bottom_1 = lines.bottom(length);
  CorridorLine line;
  line.at_begin = (top_0 + bottom_0) / 2;
  line.slope = ((top_1 + bottom_1) / 2 - line.at_begin) / length;
  line.excess = lines.excess();
  line.error = std::max({(top_0 - bottom_0) / 2, (top_1 - bottom_1) / 2, 2 * line.excess});
  return line;
}

}  // namespace commlens
