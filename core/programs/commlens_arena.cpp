// SPDX-License-Identifier: Apache-2.0
// commlens-arena: reads the arenas of processes, running or gone, for the commands of commlens.
//
//   commlens-arena list [FILE]...          prints a heading, and one line per file
//   commlens-arena merge OUTPUT [FILE]...  writes one profile of the processes of one job; prints its path
//
// A FILE may also be a history (core/history/file.h): then its last state counts.  Histories have commands of their
// own:
//
//   commlens-arena snapshots [FILE]...           prints a heading, and one line per snapshot
//   commlens-arena at OUTPUT TIME [FILE]...      writes a profile of the state at this time, nanoseconds since 1970
//   commlens-arena between OUTPUT FROM TO [FILE]...   the same for what was counted between two times
//   commlens-arena record LAUNCH SECONDS MOST FOLDER NODE STATUS LOCK PLACE...
//       records the arenas of a launch in these places until its processes end (core/history/recorder.h)
//
// Without FILE, reads the names from standard input, each ended by a zero: the names of a large job do not fit into
// arguments.  Fields are separated by tabs.  In them a backslash and all control characters are escaped: \\, \t, \n,
// \r, \x1b.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/base/options.h"
#include "core/history/file.h"
#include "core/history/recorder.h"
#include "core/history/state.h"
#include "core/out/sqlite.h"
#include "core/process/settings.h"
#include "core/recover/between.h"
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

bool is_history(const std::string& file) {
  const std::string end = history::file_suffix;
  return file.size() >= end.size() && file.compare(file.size() - end.size(), end.size(), end) == 0;
}

// input: of the file that was read, which may be a history with several processes.
std::string line_of(const std::string& file, const arena::Input& input, arena::Reader& reader) {
  const bool ok = reader.error.empty();
  const journal::JobEntry none, &job = ok ? reader.job() : none;
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

// Prints one line about each process of a history, in its last state.
void list_history(const std::string& file) {
  history::State state;
  const bool is_read = state.read(file, history::at_the_end);
  auto readers = state.readers();
  if (!is_read) {
    readers.push_back(std::make_unique<arena::Reader>());
    readers.back()->error = state.error;
  }
  for (const auto& reader : readers) {
    if (is_read && !reader->error.empty()) reader->error = file + ": " + reader->error;
    std::puts(line_of(file, state.input(), *reader).c_str());
  }
}

int list(const std::vector<std::string>& files) {
  std::puts(
      "file\tdevice\tinode\tbytes\tpid\tliveness\tis_of_this_boot\terror\tnotice\tstate\trank\tsize\tlaunch\tnode\t"
      "program\tstart_time\toutput\tapp_ns");
  for (const std::string& file : files) {
    try {
      if (is_history(file)) {
        list_history(file);
        continue;
      }
      arena::Reader reader;
      reader.read(file);
      std::puts(line_of(file, reader.input(), reader).c_str());
    } catch (const std::exception&) {  // bad_alloc
      std::printf("%s\t0\t0\t0\t0\tunknown\t0\tno memory to read it\t\t\t-1\t0\t%016d\t\t\t\t\t0\n",
                  escaped(file).c_str(), 0);
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

// Adds the processes of a history, as they were at `time`.
void add_recorded(const std::string& file, Ns time, Readers& readers) {
  history::State state;
  if (!state.read(file, time)) say(state.error);
  for (auto& reader : state.readers()) {
    if (reader->error.empty()) {
      readers.push_back(std::move(reader));
    } else {
      say(file + ": " + reader->error);
    }
  }
}

// Sorts by rank and leaves each rank once: as it was seen last.  A history has earlier states of the processes whose
// arenas are there, too.
void keep_one_of_each_rank(Readers& readers) {
  std::stable_sort(readers.begin(), readers.end(), [](const auto& a, const auto& b) {
    if (a->job().rank != b->job().rank) return a->job().rank < b->job().rank;
    return a->counted().facts.app_ns > b->counted().facts.app_ns;
  });
  const auto same_rank = [](const auto& a, const auto& b) {
    const bool is_same = a->job().rank == b->job().rank;
    if (is_same && !a->is_recorded() && !b->is_recorded()) {
      say("rank " + std::to_string(b->job().rank) + " has two arenas; one of them is left out");
    }
    return is_same;
  };
  readers.erase(std::unique(readers.begin(), readers.end(), same_rank), readers.end());
}

// Returns the arenas that can be read, sorted by rank, each rank once.
Readers readers_of(const std::vector<std::string>& files) {
  Readers readers;
  for (const std::string& file : std::set<std::string>(files.begin(), files.end())) {
    if (is_history(file)) {
      add_recorded(file, history::at_the_end, readers);
      continue;
    }
    auto reader = std::make_unique<arena::Reader>();
    if (reader->read(file)) {
      readers.push_back(std::move(reader));
    } else {
      say(reader->error);
    }
  }
  keep_one_of_each_rank(readers);
  return readers;
}

// The same for histories, at a time.
Readers readers_at(Ns time, const std::vector<std::string>& files) {
  Readers readers;
  for (const std::string& file : files) add_recorded(file, time, readers);
  keep_one_of_each_rank(readers);
  return readers;
}

int store(const std::string& output, const Readers& readers) {
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

Ns latest_of(const Readers& readers) {
  Ns latest = 0;
  for (const auto& reader : readers) latest = std::max(latest, reader->seen_ns());
  return latest;
}

// Stores in the profile which part of the run it is, as a label.
void label(const Readers& readers, const std::string& text) {
  for (const auto& reader : readers) {
    std::string& stored = reader->counted().facts.settings;
    std::vector<Setting> settings;
    if (!read_settings(stored, settings)) settings.clear();
    settings.push_back({"label", "snapshot", text});
    stored = written(settings);
  }
}

std::string seconds_text(Ns time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3fs", static_cast<double>(time) / 1e9);
  return text;
}

// Subtracts from each process what it had counted before; a process that has come since has counted all of it.
Readers readers_between(Ns from, Ns to, const std::vector<std::string>& files) {
  const Readers before = readers_at(from, files);
  Readers now = readers_at(to, files);
  auto earlier = before.begin();
  for (const auto& reader : now) {
    while (earlier != before.end() && (*earlier)->job().rank < reader->job().rank) ++earlier;
    const bool is_same = earlier != before.end() && (*earlier)->job().rank == reader->job().rank &&
                         (*earlier)->process().pid == reader->process().pid;
    if (is_same) subtract(*reader, **earlier);
  }
  label(now, seconds_text(latest_of(before)) + "-" + seconds_text(latest_of(now)));
  return now;
}

int snapshots(const std::vector<std::string>& files) {
  std::puts("file\ttime\tprocesses\tbytes\tbegan");
  for (const std::string& file : files) {
    std::string error;
    const std::vector<history::Summary> all = history::summaries_of(file, error);
    if (!error.empty()) say(error);
    if (all.empty()) continue;
    history::State first;
    const Ns began = first.read(file, all.front().time) ? first.began() : 0;
    for (const history::Summary& one : all) {
      std::printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", escaped(file).c_str(), one.time,
                  one.processes, one.bytes, began);
    }
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}

int record(const std::vector<std::string>& arguments) {
  const auto number = [&](std::size_t i) { return std::strtoul(arguments[i].c_str(), nullptr, 10); };
  history::Plan plan;
  plan.launch = std::strtoull(arguments[0].c_str(), nullptr, 16);
  plan.seconds = std::max(number(1), 1ul);
  plan.most = number(2);
  plan.folder = arguments[3];
  plan.node = arguments[4];
  plan.status = std::atoi(arguments[5].c_str());
  plan.lock = std::atoi(arguments[6].c_str());
  plan.places.assign(arguments.begin() + 7, arguments.end());
  return history::record(plan);
}

// A command: its name, the number of arguments before the names of files, and what it does with both.
struct Command {
  const char* name;
  std::size_t arguments;
  bool reads_names;  // from standard input, where there are none
  int (*run)(const std::vector<std::string>& arguments, const std::vector<std::string>& files);
};

using Texts = std::vector<std::string>;
Ns time_of(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

const Command commands[] = {
    {"list", 0, true, [](const Texts&, const Texts& files) { return list(files); }},
    {"merge", 1, true, [](const Texts& a, const Texts& files) { return store(a[0], readers_of(files)); }},
    {"snapshots", 0, true, [](const Texts&, const Texts& files) { return snapshots(files); }},
    {"at", 2, true,
     [](const Texts& a, const Texts& files) {
       const Readers readers = readers_at(time_of(a[1]), files);
       label(readers, seconds_text(latest_of(readers)));
       return store(a[0], readers);
     }},
    {"between", 3, true,
     [](const Texts& a, const Texts& files) {
       return store(a[0], readers_between(time_of(a[1]), time_of(a[2]), files));
     }},
    {"record", 8, false,
     [](const Texts& a, const Texts& places) {
       Texts all = a;
       all.insert(all.end(), places.begin(), places.end());
       return record(all);
     }},
};

}  // namespace
}  // namespace commlens

int main(int argc, char** argv) try {
  for (const commlens::Command& command : commlens::commands) {
    if (argc < 2 || std::strcmp(argv[1], command.name) != 0) continue;
    const std::vector<std::string> all(argv + 2, argv + argc);
    if (all.size() < command.arguments) break;
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(command.arguments);
    std::vector<std::string> files(end, all.end());
    if (files.empty() && command.reads_names) files = commlens::names_from(stdin);
    return command.run({all.begin(), end}, files);
  }
  std::fputs(
      "usage: commlens-arena list [FILE]...\n       commlens-arena merge OUTPUT [FILE]...\n"
      "       commlens-arena snapshots [FILE]...\n       commlens-arena at OUTPUT TIME [FILE]...\n"
      "       commlens-arena between OUTPUT FROM TO [FILE]...\n",
      stderr);
  return 2;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
