// SPDX-License-Identifier: Apache-2.0
// commlens-arena: reads the arenas of processes, running or gone, for the commands of commlens.
//
//   commlens-arena list [FILE]...          prints a heading, and one line per file
//   commlens-arena merge OUTPUT [FILE]...  writes one profile of the processes of one job; prints its path
//
// Without FILE, reads the names from standard input, each ended by a zero: the names of a large job do not fit into
// arguments.  Fields are separated by tabs.  In them a backslash and all control characters are escaped: \\, \t, \n,
// \r, \x1b.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/options.h"
#include "core/out/sqlite.h"
#include "core/recover/merge.h"
#include "core/recover/read.h"

namespace commlens {
namespace {

std::string meta_of(const journal::JobEntry& job, const char* key) {
  for (const auto& [name, value] : job.meta) {
    if (name == key) return value;
  }
  return {};
}

// Escapes text from a file, so that it can neither end its field or line nor control a terminal.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\') {
      safe += "\\\\";
    } else if (c == '\t' || c == '\n' || c == '\r') {
      safe += c == '\t' ? "\\t" : c == '\n' ? "\\n" : "\\r";
    } else if (byte < ' ' || byte == 0x7f) {
      constexpr char digits[] = "0123456789abcdef";
      safe += std::string("\\x") + digits[byte >> 4] + digits[byte & 15];
    } else {
      safe += c;
    }
  }
  return safe;
}

void say(const std::string& what) { std::fprintf(stderr, "%s\n", escaped(what).c_str()); }

std::vector<std::string> names_from(std::FILE* file) {
  std::vector<std::string> names;
  std::string name;
  for (int c; (c = std::getc(file)) != EOF;) {
    if (c != 0) {
      name += static_cast<char>(c);
      continue;
    }
    names.push_back(std::move(name));
    name.clear();
  }
  if (!name.empty()) names.push_back(std::move(name));
  return names;
}

std::string line_of(const std::string& file) {
  arena::Reader reader;
  const bool ok = reader.read(file);
  const journal::JobEntry none, &job = ok ? reader.job() : none;
  const arena::Input& input = reader.input();
  char launch[20];
  std::snprintf(launch, sizeof launch, "%016" PRIx64, job.launch);
  const std::string fields[] = {file,
                                std::to_string(input.device()),
                                std::to_string(input.inode()),
                                std::to_string(input.size()),
                                std::to_string(reader.process().pid),
                                arena::name_of(reader.liveness()),
                                reader.is_of_this_boot() ? "1" : "0",
                                reader.error,
                                ok ? reader.notice() : "",
                                ok ? reader.counted().facts.state : "",
                                std::to_string(job.rank),
                                std::to_string(job.size),
                                launch,
                                job.node,
                                meta_of(job, "program"),
                                meta_of(job, "start_time"),
                                job.output,
                                std::to_string(ok ? reader.counted().facts.app_ns : 0)};
  std::string line;
  for (const std::string& field : fields) line += (&field == fields ? "" : "\t") + escaped(field);
  return line;
}

int list(const std::vector<std::string>& files) {
  std::puts(
      "file\tdevice\tinode\tbytes\tpid\tliveness\tis_of_this_boot\terror\tnotice\tstate\trank\tsize\tlaunch\tnode\t"
      "program\tstart_time\toutput\tapp_ns");
  for (const std::string& file : files) {
    try {
      std::puts(line_of(file).c_str());
    } catch (const std::exception&) {  // bad_alloc
      std::printf("%s\t0\t0\t0\t0\tunknown\t0\tno memory to read it\t\t\t-1\t0\t%016d\t\t\t\t\t0\n",
                  escaped(file).c_str(), 0);
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

// Returns the arenas that can be read, sorted by rank, each rank once.
Readers readers_of(const std::vector<std::string>& files) {
  Readers readers;
  for (const std::string& file : files) {
    auto reader = std::make_unique<arena::Reader>();
    if (reader->read(file)) {
      readers.push_back(std::move(reader));
    } else {
      say(reader->error);
    }
  }
  std::stable_sort(readers.begin(), readers.end(),
                   [](const auto& a, const auto& b) { return a->job().rank < b->job().rank; });
  const auto same_rank = [](const auto& a, const auto& b) {
    const bool is_same = a->job().rank == b->job().rank;
    if (is_same) say("rank " + std::to_string(b->job().rank) + " has two arenas; one of them is left out");
    return is_same;
  };
  readers.erase(std::unique(readers.begin(), readers.end(), same_rank), readers.end());
  return readers;
}

int merge(const std::string& output, const std::vector<std::string>& files) {
  const Readers readers = readers_of(files);
  if (readers.empty()) return 1;
  const journal::JobEntry& job = readers.front()->job();
  const Profile profile = profile_of(readers, say);
  if (profile.ranks.empty()) return 1;
  const out::Stored stored = out::store(profile, meta_of(job, profile), output, {}, Options::read().mode());
  if (!stored.error.empty()) say(stored.error);
  if (stored.path.empty()) return 1;
  std::printf("%s\n", stored.path.c_str());
  return std::fflush(stdout) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace commlens

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const bool lists = !arguments.empty() && arguments[0] == "list";
  const bool merges = arguments.size() >= 2 && arguments[0] == "merge";
  if (!lists && !merges) {
    std::fputs("usage: commlens-arena list [FILE]...\n       commlens-arena merge OUTPUT [FILE]...\n", stderr);
    return 2;
  }
  std::vector<std::string> files(arguments.begin() + (lists ? 1 : 2), arguments.end());
  if (files.empty()) files = commlens::names_from(stdin);
  return lists ? commlens::list(files) : commlens::merge(arguments[1], files);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
