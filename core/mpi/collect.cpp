// SPDX-License-Identifier: Apache-2.0
// From many ranks to one profile: every rank packs what it counted, rank 0 receives, merges and writes.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <set>

#include "core/cold/profile.h"
#include "core/cold/say.h"
#include "core/cold/threads.h"
#include "core/mpi/job.h"
#include "core/mpi/state.h"
#include "core/out/output_name.h"
#include "core/out/sqlite.h"
#include "generated/schema_sql.h"

namespace commlens {
namespace {

constexpr int tag = 1;
constexpr std::size_t message_limit = std::size_t{1} << 30;  // MPI counts are int

bool send_bytes(const std::vector<char>& bytes, int to) {
  for (std::size_t done = 0; done < bytes.size(); done += message_limit) {
    const int n = static_cast<int>(std::min(message_limit, bytes.size() - done));
    if (api.Send(bytes.data() + done, n, api.byte, to, tag, job.comm) != MPI_SUCCESS) return false;
  }
  return true;
}

bool receive_bytes(std::vector<char>& bytes, int from) {
  for (std::size_t done = 0; done < bytes.size(); done += message_limit) {
    const int n = static_cast<int>(std::min(message_limit, bytes.size() - done));
    if (api.Recv(bytes.data() + done, n, api.byte, from, tag, job.comm, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
  }
  return true;
}

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// The CPUs this process may run on, as ranges: "0-3,8".
std::string allowed_cpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::string text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    int last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(cpu);
    if (last > cpu) text += "-" + std::to_string(last);
    cpu = last;
  }
  return text;
}

std::vector<std::string> command_line() {
  std::vector<std::string> arguments;
  std::FILE* const file = std::fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return arguments;
  std::string current;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) {
    if (c != '\0') {
      current += static_cast<char>(c);
    } else {
      arguments.push_back(current);
      current.clear();
    }
  }
  std::fclose(file);
  return arguments;
}

std::string quoted_for_shell(const std::string& argument) {
  constexpr char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!argument.empty() && argument.find_first_not_of(plain) == std::string::npos) return argument;
  std::string text = "'";
  for (const char c : argument) {
    if (c == '\'') {
      text += "'\\''";
    } else {
      text += c;
    }
  }
  return text + "'";
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string utc(const char* format) {
  const std::time_t t = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[64] = "";
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

// The first line, with one blank for every run of white space: MPICH sets tabs.
std::string first_line(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, text.find_first_of("\r\n"))) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  return line;
}

std::string job_id() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "COBALT_JOBID"}) {
    const char* const id = std::getenv(name);
    if (id != nullptr && *id != '\0') return id;
  }
  return {};
}

std::string thread_level() {
  int level = MPI_THREAD_SINGLE;
  api.Query_thread(&level);
  if (level == MPI_THREAD_MULTIPLE) return "multiple";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  return level == MPI_THREAD_FUNNELED ? "funneled" : "single";
}

RankFacts own_facts(const TickScale& scale, Ticks finalising) {
  RankFacts facts;
  facts.rank = job.rank;
  facts.world = job.world;
  facts.node = host_name();
  facts.pid = static_cast<int>(getpid());
  facts.cpus = allowed_cpus();
  facts.init_ns = scale.ns(job.init);
  facts.app_ns = scale.ns(finalising - job.started);
  facts.threads = thread_count();
  facts.own_init_ns = scale.ns(job.own_init);
  facts.own_call_ns = scale.ns(job.own_call);
  return facts;
}

out::Meta meta_of(const Profile& profile) {
  std::string command;
  const std::vector<std::string> arguments = command_line();
  for (const std::string& argument : arguments) command += (command.empty() ? "" : " ") + quoted_for_shell(argument);
  char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0, version = 0, subversion = 0;
  api.Get_library_version(library, &length);
  api.Get_version(&version, &subversion);
  Ns elapsed = 0;
  std::set<std::string> nodes;
  for (const Profile::Rank& r : profile.ranks) {
    elapsed = std::max(elapsed, r.facts.app_ns);
    nodes.insert(r.facts.node);
  }
  const std::time_t start = std::time(nullptr) - static_cast<std::time_t>(elapsed / 1'000'000'000u);
  std::tm parts{};
  gmtime_r(&start, &parts);
  char start_time[64] = "";
  std::strftime(start_time, sizeof start_time, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {
      {"schema_version", std::to_string(out::schema_version)},
      {"commlens_version", COMMLENS_VERSION},
      {"commlens_build", COMMLENS_BUILD},
      {"command_line", command},
      {"program", arguments.empty() ? std::string() : base_name(arguments[0])},
      {"working_directory", job.directory},
      {"start_time", start_time},
      {"elapsed_ns", std::to_string(elapsed)},
      {"ranks", std::to_string(job.size)},
      {"ranks_collected", std::to_string(profile.ranks.size())},
      {"nodes", std::to_string(nodes.size())},
      {"mpi_library", first_line(library)},
      {"mpi_family", COMMLENS_FAMILY},
      {"mpi_standard", std::to_string(version) + "." + std::to_string(subversion)},
      {"thread_level", thread_level()},
      {"job_id", job_id()},
      {"clock", clock_is_tsc ? "tsc" : "clock_gettime"},
      {"options", options().listing()},
  };
}

const std::string& value_of(const out::Meta& meta, const char* key) {
  return std::find_if(meta.begin(), meta.end(), [key](const auto& entry) { return entry.first == key; })->second;
}

void write_profile(Profile& profile, Ticks building) {
  profile.finish();
  const out::Meta meta = meta_of(profile);
  out::NameFields fields;
  fields.program = value_of(meta, "program");
  fields.host = host_name();
  fields.job = job_id();
  if (fields.job.empty()) fields.job = utc("%Y%m%dT%H%M%SZ-") + std::to_string(getpid());
  fields.ranks = job.size;
  std::string name = out::output_name(options().text(Option::output), fields);
  if (name[0] != '/' && job.directory[0] != '\0') name = std::string(job.directory) + "/" + name;
  const out::Stored stored = out::store(profile, meta, name, building);
  if (stored.path.empty()) {
    say("no profile: %s", stored.error.c_str());
  } else if (!stored.error.empty()) {
    say("%s; the profile is in %s", stored.error.c_str(), stored.path.c_str());
  } else if (!options().on(Option::quiet)) {
    say("profile of %d ranks in %s", job.size, stored.path.c_str());
  }
}

}  // namespace

// Nothing when there is no memory for it: rank 0 must not wait in vain.
static std::vector<char> own_data(Ticks finalising) noexcept try {
  const TickScale scale = TickScale::since_start();
  return packed(own_facts(scale, finalising), *registry, job.started, finalising);
} catch (const std::exception& e) {
  say("rank %d: cannot collect: %s", job.rank, e.what());
  return {};
}

void collect(Ticks finalising) noexcept try {
  const std::vector<char> own = own_data(finalising);
  std::uint64_t own_size = own.size();
  std::vector<std::uint64_t> sizes(job.rank == 0 ? static_cast<std::size_t>(job.size) : 0);
  if (api.Gather(&own_size, sizeof own_size, api.byte, sizes.data(), sizeof own_size, api.byte, 0, job.comm) !=
      MPI_SUCCESS) {
    if (job.rank == 0) say("no profile: MPI_Gather failed while collecting it");
    return;
  }
  if (job.rank != 0) {
    send_bytes(own, 0);
    return;
  }
  Profile profile;
  bool complete = profile.add(own.data(), own.size());
  std::vector<char> bytes;
  for (int rank = 1; rank < job.size; ++rank) {
    bytes.resize(sizes[static_cast<std::size_t>(rank)]);
    complete = receive_bytes(bytes, rank) && profile.add(bytes.data(), bytes.size()) && complete;
  }
  if (!complete) say("the data of some ranks could not be received; the profile has the others");
  write_profile(profile, finalising);
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
}

}  // namespace commlens
