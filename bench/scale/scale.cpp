// SPDX-License-Identifier: Apache-2.0
// One job of virtual ranks, from MPI_Finalize to its files.  bench/scale.py runs it for many sizes.
//
//   commlens-scale DIRECTORY RANKS AGGREGATORS DUPLICATES OPERATIONS SLICES REGIONS NEIGHBOURS [LATENCY_NS
//   NS_PER_BYTE FILE_OP_NS FILE_NS_PER_BYTE]
//
// AGGREGATORS may be the word summary.  It prints one line: key=value ..., times in nanoseconds of the ranks' clocks.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

#include "bench/scale/fibers.h"
#include "core/collect/collect.h"
#include "tests/unit/collect/virtual_job.h"

namespace commlens::scale {
namespace {

std::uint64_t bytes_below(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

}  // namespace
}  // namespace commlens::scale

int main(int argc, char** argv) {
  using namespace commlens;
  using namespace commlens::scale;
  if (argc < 9) {
    std::fputs(
        "usage: commlens-scale DIRECTORY RANKS AGGREGATORS DUPLICATES OPERATIONS SLICES REGIONS NEIGHBOURS [LATENCY_NS "
        "NS_PER_BYTE FILE_OP_NS FILE_NS_PER_BYTE]\n",
        stderr);
    return 2;
  }
  const std::filesystem::path directory = argv[1];
  VirtualJob job;
  job.ranks = std::atoi(argv[2]);
  const bool is_summary = std::string(argv[3]) == "summary";
  const unsigned long aggregators = is_summary ? 1 : std::strtoul(argv[3], nullptr, 10);
  job.duplicates = std::atoi(argv[4]);
  job.operations = std::atoi(argv[5]);
  job.slices = std::atoi(argv[6]);
  job.regions = std::atoi(argv[7]);
  job.neighbours = std::clamp(std::atoi(argv[8]), 0, 26);
  job.columns = 0;
  job.has_self = false;
  Network network;
  if (argc > 12) network = {std::atof(argv[9]), std::atof(argv[10]), std::atof(argv[11]), std::atof(argv[12])};

  std::filesystem::create_directories(directory);
  clock_is_tsc = false;
  double finalize = 0;  // of the rank for which it took longest
  int stored = 0;
  const Traffic traffic = run(job.ranks, network, [&](Rank& rank) {
    std::deque<CommRecord> records;
    Contribution own;
    // What a rank has counted is there when MPI_Finalize begins.
    own.counted = job.counted(rank.rank(), records);
    own.begin = std::max<Ticks>(clock_here(), 1);
    own.clock = clock_here;
    const double begin = rank.clock();
    own.destination.meta = {{"program", "virtual"}};
    own.destination.name = (directory / "profile.db").string();
    own.destination.quiet = true;
    own.aggregators = aggregators;
    own.summary = is_summary;
    stored += collect_together(rank, std::move(own)) == CollectResult::stored ? 1 : 0;
    clock_here();
    finalize = std::max(finalize, rank.clock() - begin);
  });
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const std::uint64_t rows =
      static_cast<std::uint64_t>(job.ranks) * static_cast<std::uint64_t>((1 + job.duplicates) * job.operations);
  const int block = block_size(job.ranks, aggregators, rows);
  std::printf(
      "ranks=%d aggregators=%d stored=%d rows=%llu finalize_ns=%.0f messages=%llu bytes=%llu file_operations=%llu "
      "file_bytes=%llu profile_bytes=%llu peak_kib=%ld\n",
      job.ranks, (job.ranks + block - 1) / block, stored, static_cast<unsigned long long>(rows), finalize,
      static_cast<unsigned long long>(traffic.messages), static_cast<unsigned long long>(traffic.bytes),
      static_cast<unsigned long long>(traffic.file_operations), static_cast<unsigned long long>(traffic.file_bytes),
      static_cast<unsigned long long>(bytes_below(directory)), usage.ru_maxrss);
  return stored == job.ranks ? 0 : 1;
}
