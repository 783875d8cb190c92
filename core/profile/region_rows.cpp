// SPDX-License-Identifier: Apache-2.0
// The rows of a profile about regions, metrics and events.
#include <algorithm>
#include <tuple>

#include "core/profile/profile.h"

namespace commlens {
namespace {

Profile::Within read_within(WireReader& in) {
  Profile::Within within{};
  within.region = static_cast<std::uint32_t>(in.number());
  within.execution = static_cast<std::uint32_t>(in.number());
  within.iteration = static_cast<std::int32_t>(in.signed_number());
  return within;
}

}  // namespace

// The read functions parse what packed() (collect/package.cpp) writes.
void Profile::read_regions(WireReader& in, RankData& data) {
  const int rank = data.rank.facts.rank;
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    RegionRow row{};
    row.within = read_within(in);
    row.rank = rank;
    const bool is_of_iterations = in.number() != 0;
    for (std::uint64_t* const field : {&row.calls, &row.open}) *field = in.number();
    for (Ns* const field : {&row.time, &row.time_min, &row.time_max, &row.nested, &row.mpi}) *field = in.number();
    (is_of_iterations ? data.loop_rows : data.region_rows).push_back(row);
  }
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    LoopRow row{};
    row.within = read_within(in);
    row.rank = rank;
    for (std::uint64_t& bin : row.bins) bin = in.number();
    data.loop_bins.push_back(row);
  }
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    MetricFacts metric;
    metric.name = in.text();
    metric.unit = in.text();
    data.metrics.push_back(std::move(metric));
  }
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    MetricRow row{};
    row.within = read_within(in);
    row.rank = rank;
    row.metric = static_cast<std::uint32_t>(in.number());
    row.count = in.number();
    row.not_finite = in.number();
    for (double* const field : {&row.sum, &row.min, &row.max, &row.last}) *field = in.real();
    data.metric_rows.push_back(row);
  }
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    TagFacts tag;
    tag.region = static_cast<std::uint32_t>(in.number());
    tag.name = in.text();
    tag.value = in.text();
    data.tags.push_back(std::move(tag));
  }
}

void Profile::read_series(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    SeriesRow row{};
    row.rank = data.rank.facts.rank;
    row.metric = static_cast<std::uint32_t>(in.number());
    row.thread = static_cast<std::uint32_t>(in.number());
    for (std::uint64_t m = in.number(); in.ok() && m > 0; --m) {
      row.within = read_within(in);
      row.number += in.number();
      row.time = in.number();
      row.value = in.real();
      data.series_rows.push_back(row);
    }
  }
}

void Profile::read_events(WireReader& in, RankData& data) {
  for (std::uint64_t n = in.number(); in.ok() && n > 0; --n) {
    EventRow row{};
    row.rank = data.rank.facts.rank;
    for (std::uint32_t* const field : {&row.metric, &row.region, &row.comm, &row.op})
      *field = static_cast<std::uint32_t>(in.number());
    for (std::uint64_t* const field : {&row.count, &row.enabled, &row.running}) *field = in.number();
    data.event_rows.push_back(row);
  }
}

void Profile::add_regions(RankData& data, const std::vector<std::uint32_t>& numbers) {
  const auto number = [&numbers](std::uint32_t n) { return n < numbers.size() ? numbers[n] : 0; };
  std::vector<std::uint32_t> metric_numbers{0};
  for (MetricFacts& metric : data.metrics) metric_numbers.push_back(dictionary.metric(std::move(metric)));
  for (TagFacts& tag : data.tags) dictionary.tag(number(tag.region), std::move(tag.name), std::move(tag.value));
  const auto take = [&](auto& all, auto& own) {
    for (auto& row : own) {
      row.within.region = number(row.within.region);
      all.push_back(row);
    }
  };
  const auto number_metrics = [&metric_numbers](auto& values) {
    for (auto& row : values) row.metric = row.metric < metric_numbers.size() ? metric_numbers[row.metric] : 0;
  };
  number_metrics(data.metric_rows);
  number_metrics(data.series_rows);
  number_metrics(data.event_rows);
  take(region_rows, data.region_rows);
  take(loop_rows, data.loop_rows);
  take(loop_bins, data.loop_bins);
  take(metric_rows, data.metric_rows);
  take(series_rows, data.series_rows);
  for (EventRow& row : data.event_rows) row.region = number(row.region);
}

// Sorts the events.  Two communicators of a rank may have become one, such as sets that two threads made at the same
// time.
void Profile::add_equal_events() {
  const auto place = [](const EventRow& r) { return std::tie(r.metric, r.region, r.comm, r.op, r.rank); };
  std::sort(event_rows.begin(), event_rows.end(),
            [&](const EventRow& a, const EventRow& b) { return place(a) < place(b); });
  std::size_t kept = 0;
  for (const EventRow& row : event_rows) {
    if (kept == 0 || place(event_rows[kept - 1]) != place(row)) {
      event_rows[kept++] = row;
      continue;
    }
    EventRow& sum = event_rows[kept - 1];
    sum.count += row.count;
    sum.enabled += row.enabled;
    sum.running += row.running;
  }
  event_rows.resize(kept);
}

void Profile::settle_regions(const Dictionary::Numbers& numbers) {
  for (MetricRow& row : metric_rows) row.metric = numbers.metrics[row.metric];
  for (SeriesRow& row : series_rows) row.metric = numbers.metrics[row.metric];
  for (EventRow& row : event_rows) {
    row.metric = numbers.metrics[row.metric];
    row.region = numbers.regions[row.region];
    row.comm = numbers.comms[row.comm];
    has_comm[row.comm] = 1;
  }
  add_equal_events();
  const auto settle = [&numbers](auto& all, auto before) {
    for (auto& row : all) row.within.region = numbers.regions[row.within.region];
    std::sort(all.begin(), all.end(), before);
  };
  const auto by_place = [](const auto& a, const auto& b) {
    return a.within < b.within || (!(b.within < a.within) && a.rank < b.rank);
  };
  settle(region_rows, by_place);
  settle(loop_rows, by_place);
  settle(loop_bins, by_place);
  settle(metric_rows, [&by_place](const MetricRow& a, const MetricRow& b) {
    return a.metric < b.metric || (a.metric == b.metric && by_place(a, b));
  });
  settle(series_rows, [](const SeriesRow& a, const SeriesRow& b) {
    return std::tie(a.metric, a.rank, a.thread, a.number) < std::tie(b.metric, b.rank, b.thread, b.number);
  });
}

}  // namespace commlens
