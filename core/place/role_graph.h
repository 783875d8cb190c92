// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/place/mapper.h"

namespace commlens {

using Role = std::uint32_t;

struct Edge {
  Role to;
  double bytes;
};

// What each role exchanges with each other one.
class RoleGraph {
 public:
  class Edges {
   public:
    Edges(const Edge* begin, const Edge* end) noexcept : begin_(begin), end_(end) {}
    const Edge* begin() const noexcept { return begin_; }
    const Edge* end() const noexcept { return end_; }
    std::uint64_t size() const noexcept { return static_cast<std::uint64_t>(end_ - begin_); }

   private:
    const Edge *begin_, *end_;
  };

  RoleGraph(std::size_t roles, const std::vector<Exchange>& exchanges) : first_(roles + 1) {
    for (const Exchange& e : exchanges) {
      if (!counts(e)) continue;
      ++first_[e.one + 1];
      ++first_[e.other + 1];
    }
    for (std::size_t r = 0; r < roles; ++r) first_[r + 1] += first_[r];
    edges_.resize(first_[roles]);
    std::vector<std::uint64_t> next(first_.begin(), first_.end() - 1);
    for (const Exchange& e : exchanges) {
      if (!counts(e)) continue;
      edges_[next[e.one]++] = {e.other, static_cast<double>(e.bytes)};
      edges_[next[e.other]++] = {e.one, static_cast<double>(e.bytes)};
    }
    merge(roles);
  }
  std::size_t size() const noexcept { return first_.size() - 1; }
  std::uint64_t edge_count() const noexcept { return edges_.size(); }
  Edges edges(Role role) const noexcept { return {edges_.data() + first_[role], edges_.data() + first_[role + 1]}; }

 private:
  static bool counts(const Exchange& e) noexcept { return e.one != e.other && e.bytes != 0; }
  // Makes one edge of those between the same two roles.
  void merge(std::size_t roles) {
    std::uint64_t kept = 0;
    for (std::size_t r = 0; r < roles; ++r) {
      const std::uint64_t begin = first_[r], end = first_[r + 1], new_begin = kept;
      std::sort(edges_.begin() + static_cast<std::ptrdiff_t>(begin), edges_.begin() + static_cast<std::ptrdiff_t>(end),
                [](const Edge& a, const Edge& b) { return a.to < b.to; });
      for (std::uint64_t i = begin; i < end; ++i) {
        if (kept != new_begin && edges_[kept - 1].to == edges_[i].to) {
          edges_[kept - 1].bytes += edges_[i].bytes;
        } else {
          edges_[kept++] = edges_[i];
        }
      }
      first_[r] = new_begin;
    }
    first_[roles] = kept;
    edges_.resize(kept);
  }
  std::vector<std::uint64_t> first_;  // of each role's edges; one more for the end
  std::vector<Edge> edges_;
};

}  // namespace commlens
