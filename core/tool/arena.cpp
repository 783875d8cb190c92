// SPDX-License-Identifier: Apache-2.0
// commlens-arena: reads the arenas of processes that run or are gone, for the commands of commlens.
//
//   commlens-arena list FILE...          a heading, and one line a file; fields separated by tabs
//   commlens-arena merge OUTPUT FILE...  one profile of the processes of one job; prints its path
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "core/arena/read.h"
#include "core/collect/package.h"
#include "core/collect/profile.h"
#include "core/out/sqlite.h"

namespace commlens {
namespace {

std::string meta_of(const arena::Reader& reader, const char* key) {
  for (const auto& [name, value] : reader.job().meta) {
    if (name == key) return value;
  }
  return {};
}

// A field must end neither itself nor the line.
std::string field(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
  return text;
}

int list(const std::vector<std::string>& files) {
  std::puts(
      "file\tpid\tis_running\tis_of_this_boot\terror\tnotice\tstate\trank\tsize\tlaunch\tnode\tprogram\tstart_"
      "time\toutput\tapp_ns");
  for (const std::string& file : files) {
    arena::Reader reader;
    const bool ok = reader.read(file);
    const journal::JobEntry& job = reader.job();
    std::printf("%s\t%lld\t%d\t%d\t%s\t%s\t", field(file).c_str(), static_cast<long long>(reader.process().pid),
                reader.is_running() ? 1 : 0, reader.is_of_this_boot() ? 1 : 0, field(reader.error).c_str(),
                field(ok ? reader.notice() : std::string()).c_str());
    std::printf("%s\t%d\t%d\t%016llx\t%s\t%s\t%s\t%s\t%llu\n", ok ? reader.counted().facts.state.c_str() : "", job.rank,
                job.size, static_cast<unsigned long long>(job.launch), field(job.node).c_str(),
                field(meta_of(reader, "program")).c_str(), meta_of(reader, "start_time").c_str(),
                field(job.output).c_str(), static_cast<unsigned long long>(ok ? reader.counted().facts.app_ns : 0));
  }
  return 0;
}

int merge(const std::string& output, const std::vector<std::string>& files) {
  std::vector<std::unique_ptr<arena::Reader>> readers;
  for (const std::string& file : files) {
    readers.push_back(std::make_unique<arena::Reader>());
    if (readers.back()->read(file)) continue;
    std::fprintf(stderr, "%s\n", readers.back()->error.c_str());
    readers.pop_back();
  }
  if (readers.empty()) return 1;
  std::sort(readers.begin(), readers.end(), [](const auto& a, const auto& b) { return a->job().rank < b->job().rank; });
  const journal::JobEntry& job = readers.front()->job();
  SliceRows slices;
  std::uint64_t cells = 0;
  for (const auto& reader : readers) {
    slices.add(SliceRows(reader->counted()));
    cells += reader->counted().cells.size();
  }
  const SlicePlan plan = slices.within(slice_rows_for(cells));
  Profile profile;
  profile.world_size = job.size;
  for (const auto& reader : readers) {
    reader->counted().facts.world = job.launch;
    const std::vector<char> bytes = packed(reader->counted(), 0, plan);
    if (!profile.add(bytes.data(), bytes.size())) {
      std::fprintf(stderr, "rank %d: its data cannot be read\n", reader->job().rank);
    }
  }
  profile.finish();
  const out::Stored stored =
      out::store(profile, out::with_totals(job.meta, out::Totals(profile), job.size), output, {});
  if (!stored.error.empty()) std::fprintf(stderr, "%s\n", stored.error.c_str());
  if (stored.path.empty()) return 1;
  std::printf("%s\n", stored.path.c_str());
  return 0;
}

}  // namespace
}  // namespace commlens

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 2 && arguments[0] == "list") {
    return commlens::list({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.size() >= 3 && arguments[0] == "merge") {
    return commlens::merge(arguments[1], {arguments.begin() + 2, arguments.end()});
  }
  std::fputs("usage: commlens-arena list FILE...\n       commlens-arena merge OUTPUT FILE...\n", stderr);
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
