// SPDX-License-Identifier: Apache-2.0
// The rows of a profile about single threads (COMMLENS_THREADS=each).
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/profile/profile.h"
#include "core/state/sums.h"

namespace commlens {

// Parses what write_threads() (collect/package_threads.cpp) writes.
void Profile::read_threads(WireReader& in, RankData& data) {
  const int rank = data.rank.facts.rank;
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    ThreadRow thread{};
    thread.rank = rank;
    thread.thread = static_cast<int>(in.signed_number());
    thread.is_main = in.number() != 0;
    thread.threads = in.number();
    thread.id = in.signed_number();
    thread.name = in.text();
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      ThreadCell row{};
      row.rank = rank;
      row.thread = thread.thread;
      const std::uint64_t cell = in.number();
      for (std::uint64_t* const field :
           {&row.calls, &row.time, &row.time_min, &row.time_max, &row.bytes_sent, &row.bytes_received, &row.untimed})
        *field = in.number();
      data.thread_cells.emplace_back(cell, row);
    }
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      ThreadRegion row{};
      row.rank = rank;
      row.thread = thread.thread;
      row.region = static_cast<std::uint32_t>(in.number());
      for (std::uint64_t* const field : {&row.calls, &row.open, &row.time, &row.nested, &row.mpi}) *field = in.number();
      data.thread_regions.push_back(row);
    }
    data.threads.push_back(std::move(thread));
  }
}

// pre: the cells of the rank have the keys of this profile.
void Profile::add_threads(RankData& data, const std::vector<std::uint32_t>& region_numbers) {
  std::map<std::pair<int, std::uint32_t>, std::size_t> known;  // different cells of a rank may have equal keys here
  for (auto& [cell, row] : data.thread_cells) {
    if (cell >= data.cells.size()) continue;
    row.key = data.cells[cell].second.key;
    const auto [place, is_first] = known.try_emplace({row.thread, row.key}, thread_cells.size());
    if (is_first) {
      thread_cells.push_back(row);
    } else {
      add_calls_and_untimed(thread_cells[place->second], row);
    }
  }
  for (ThreadRegion& row : data.thread_regions) {
    row.region = row.region < region_numbers.size() ? region_numbers[row.region] : 0;
    thread_regions.push_back(row);
  }
  for (ThreadRow& thread : data.threads) threads.push_back(std::move(thread));
}

void Profile::settle_threads(const Dictionary::Numbers& numbers) {
  for (ThreadCell& row : thread_cells) row.key = numbers.keys[row.key];
  for (ThreadRegion& row : thread_regions) row.region = numbers.regions[row.region];
  std::sort(threads.begin(), threads.end(), [](const ThreadRow& a, const ThreadRow& b) {
    return std::tie(a.rank, a.thread) < std::tie(b.rank, b.thread);
  });
  std::sort(thread_cells.begin(), thread_cells.end(), [](const ThreadCell& a, const ThreadCell& b) {
    return std::tie(a.key, a.rank, a.thread) < std::tie(b.key, b.rank, b.thread);
  });
  std::sort(thread_regions.begin(), thread_regions.end(), [](const ThreadRegion& a, const ThreadRegion& b) {
    return std::tie(a.region, a.rank, a.thread) < std::tie(b.region, b.rank, b.thread);
  });
}

}  // namespace commlens
