// SPDX-License-Identifier: Apache-2.0
// Reads and merges what the fuzzer makes, as commlens-arena does with files (tools/fuzz_arena.sh).
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "core/out/sqlite.h"
#include "core/recover/merge.h"
#include "core/recover/read.h"
#include "fuzz/arena/expand.h"

namespace commlens {
namespace {

void must(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::abort();
}

// What the tables of a profile refer to is there, and no parents go round in a circle.
void check(const Profile& profile) {
  for (std::size_t i = 0; i < profile.comms.size(); ++i) {
    const Catalogue::Comm& comm = profile.comms[i];
    must(comm.parent < static_cast<int>(profile.comms.size()), "the parent of a communicator is there");
    must(comm.site < static_cast<int>(profile.sites.size()), "the call site of a communicator is there");
    int at = comm.parent;
    for (std::size_t steps = 0; at >= 0; ++steps) {
      must(steps < profile.comms.size(), "parents come to an end");
      at = profile.comms[static_cast<std::size_t>(at)].parent;
    }
  }
  for (std::size_t i = 1; i < profile.regions.size(); ++i)
    must(profile.regions[i].parent >= 0 && static_cast<std::size_t>(profile.regions[i].parent) < i,
         "regions stand behind their parents");
  for (const Profile::Row& row : profile.rows) must(row.key < profile.keys.size(), "the key of a row is there");
  for (const Profile::RegionRow& row : profile.region_rows) {
    must(row.within.region < profile.regions.size(), "the region of a row is there");
  }
  for (const Profile::Slice& slice : profile.slices)
    must(slice.comm < std::max(profile.comms.size(), profile.regions.size()), "what a slice is of is there");
}

}  // namespace
}  // namespace commlens

// libFuzzer gives the name.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace commlens;
  Readers readers;
  for (const fuzz::Expanded& arena : fuzz::expanded(data, size)) {
    auto reader = std::make_unique<arena::Reader>();
    if (!reader->read_content(arena.content)) {
      must(!reader->error.empty(), "what is refused is refused with a reason");
      continue;
    }
    const int rank = reader->job().rank;
    const bool is_new =
        std::none_of(readers.begin(), readers.end(), [rank](const auto& known) { return known->job().rank == rank; });
    if (is_new) readers.push_back(std::move(reader));
  }
  if (readers.empty()) return 0;
  const Profile profile = profile_of(readers, [](const std::string&) { must(false, "what is read can be merged"); });
  check(profile);
  // Storing takes most of the time.
  if (size % 4 != 0) return 0;
  static const std::string name = "/dev/shm/commlens-fuzz-" + std::to_string(getpid()) + ".db";
  const out::Stored stored = out::store(profile, meta_of(readers.front()->job(), profile), name, {});
  unlink(stored.path.c_str());
  if (!stored.error.empty()) std::fprintf(stderr, "%s\n", stored.error.c_str());
  must(stored.error.empty(), "what is merged can be stored");
  return 0;
}
// NOLINTEND(readability-identifier-naming)
