// SPDX-License-Identifier: Apache-2.0
#include "core/hot/samples.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/recover/read.h"
#include "core/recover/segments.h"

namespace commlens::arena {

// A process that is killed while it raises the level of a stratum leaves some samples twice: each counts once.
void Reader::take_samples(const Segments& segments) {
  std::map<Key, StratumSamples> strata_by_key;
  segments.each_in<SampleChunk>(Kind::samples, [&](const SampleChunk& chunk, const Segments::Segment&) {
    const std::uint32_t n = chunk.count;
    const bool is_right = known(chunk.key) == chunk.key && n <= SampleChunk::capacity;
    is_damaged_ = is_damaged_ || !is_right;
    if (!is_right || comm_of_key(chunk.key) == 0) return;
    StratumSamples& stratum = strata_by_key[chunk.key];
    stratum.key = chunk.key;
    stratum.level = std::max(stratum.level, chunk.level);
    for (std::uint32_t i = 0; i < n; ++i) {
      Sample sample = chunk.sample[i];
      if (sample.number >= beyond_all || sample.entered >= beyond_all || sample.left >= beyond_all ||
          sample.mpi >= beyond_all) {
        is_damaged_ = true;
        continue;
      }
      if (!is_region(sample.region)) sample.region = 0;
      stratum.samples.push_back(sample);
    }
  });
  const auto is_before = [](const Sample& a, const Sample& b) { return a.number < b.number; };
  const auto is_same = [](const Sample& a, const Sample& b) { return a.number == b.number; };
  for (auto& [key, stratum] : strata_by_key) {
    std::vector<Sample>& samples = stratum.samples;
    std::sort(samples.begin(), samples.end(), is_before);
    samples.erase(std::unique(samples.begin(), samples.end(), is_same), samples.end());
    counted_.samples.push_back(std::move(stratum));
  }
}

}  // namespace commlens::arena
