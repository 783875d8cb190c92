// SPDX-License-Identifier: Apache-2.0
#include "core/profile/corridor.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/unit/check.h"

namespace commlens {
namespace {

constexpr double steepest = 500e-6;

double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

// A corridor around the line a + b x, at `n` random places between 0 and `length`.
Corridor around(std::mt19937_64& random, double a, double b, int n, double length, double width) {
  Corridor corridor;
  for (int i = 0; i < n; ++i) {
    const double x = uniform(random, 0, length);
    corridor.upper.push_back({x, a + b * x + uniform(random, 0, width)});
    corridor.lower.push_back({x, a + b * x - uniform(random, 0, width)});
  }
  return corridor;
}

bool passes(const Corridor& corridor, double a, double b) {
  const auto at = [&](const Bound& bound) { return a + b * bound.x; };
  return std::all_of(corridor.upper.begin(), corridor.upper.end(), [&](auto& u) { return at(u) <= u.y; }) &&
         std::all_of(corridor.lower.begin(), corridor.lower.end(), [&](auto& l) { return at(l) >= l.y; });
}

}  // namespace

TEST(the_true_line_is_within_the_error_and_the_error_is_no_larger_than_it_must_be) {
  std::mt19937_64 random(1);
  constexpr double length = 1e10;
  for (int round = 0; round < (check::is_slow ? 20 : 200); ++round) {
    const double a = uniform(random, -1e6, 1e6), b = uniform(random, -4e-4, 4e-4);
    const int n = 1 + static_cast<int>(random() % 200);
    const Corridor corridor = around(random, a, b, n, length, 1e5);
    const CorridorLine line = line_through(corridor, 0, length, steepest);
    CHECK(line.excess < 1e-3);
    const double off_0 = std::abs(line.at_begin - a),
                 off_1 = std::abs(line.at_begin + line.slope * length - a - b * length);
    CHECK(std::max(off_0, off_1) <= line.error + 1e-3);
    // Some other line that passes is almost that far away at one of the ends.
    double furthest = 0;
    for (int i = 0; i < 4'000; ++i) {
      const double x = uniform(random, 0, length), y = a + b * x + uniform(random, -1e5, 1e5);
      const double slope = b + uniform(random, -1, 1) * std::min(steepest - std::abs(b), 4e5 / length);
      if (!passes(corridor, y - slope * x, slope)) continue;
      const double begin = std::abs(y - slope * x - line.at_begin);
      const double end = std::abs(y + slope * (length - x) - line.at_begin - line.slope * length);
      furthest = std::max({furthest, begin, end});
      CHECK(begin <= line.error + 1e-3 && end <= line.error + 1e-3);
    }
    if (n < 5) CHECK(furthest > 0.5 * line.error || line.error > 1e6);
  }
}

TEST(one_call_bounds_the_line_where_it_was_and_the_rates_elsewhere) {
  // 1000 before the end, between -20 and 40.
  Corridor corridor{{{9000, -20}}, {{9000, 40}}};
  const CorridorLine line = line_through(corridor, 0, 10'000, 1e-3);
  CHECK(std::abs(line.at_begin - 10) < 1e-6 && std::abs(line.slope) < 1e-9);
  CHECK(std::abs(line.error - (30 + 9)) < 1e-6);  // 9000 ticks of 1e-3
  CHECK(line.excess < 1e-9);
}

TEST(a_jump_is_noticed) {
  std::mt19937_64 random(2);
  constexpr double length = 1e10, jump = 3e6;
  Corridor corridor = around(random, 500, 1e-5, 100, length, 1e3);
  for (std::size_t i = 0; i < corridor.upper.size(); ++i) {
    if (corridor.upper[i].x < length / 2) continue;
    corridor.upper[i].y += jump;
    corridor.lower[i].y += jump;
  }
  const CorridorLine line = line_through(corridor, 0, length, 1e-9);
  CHECK(line.excess > 0.49 * (jump - 2e3) && line.excess < 0.51 * (jump + 2e5));
  CHECK(line.error >= 2 * line.excess);
}

}  // namespace commlens
