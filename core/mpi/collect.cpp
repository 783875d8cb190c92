// SPDX-License-Identifier: Apache-2.0
// From many ranks to one profile: every rank packs what it counted, rank 0 receives, merges and writes.
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <set>

#include "core/cold/coverage.h"
#include "core/cold/floating_point.h"
#include "core/cold/processes.h"
#include "core/cold/profile.h"
#include "core/cold/say.h"
#include "core/cold/threads.h"
#include "core/mpi/bind.h"
#include "core/mpi/job.h"
#include "core/mpi/state.h"
#include "core/out/output_name.h"
#include "core/out/parts.h"
#include "core/out/sqlite.h"
#include "generated/schema_sql.h"

namespace commlens {
namespace {

// Our own communicator, made when it is needed: we never communicate on one of the application's.
MPI_Comm own_comm;

constexpr int tag = 1;
constexpr std::size_t message_limit = std::size_t{1} << 30;  // MPI counts are int

// While it lives, what fails on MPI_COMM_WORLD is ours to deal with: neither ends the application nor reaches its error
// handler.
class OwnErrors {
 public:
  OwnErrors() noexcept {
    is_set_ = api.Comm_get_errhandler(api.comm_world, &before_) == MPI_SUCCESS &&
              api.Comm_set_errhandler(api.comm_world, api.errors_return) == MPI_SUCCESS;
  }
  ~OwnErrors() {
    if (!is_set_) return;
    api.Comm_set_errhandler(api.comm_world, before_);
    api.Errhandler_free(&before_);
  }
  OwnErrors(const OwnErrors&) = delete;
  OwnErrors& operator=(const OwnErrors&) = delete;

 private:
  MPI_Errhandler before_;
  bool is_set_;
};

bool send_bytes(const std::vector<char>& bytes, int to) {
  for (std::size_t done = 0; done < bytes.size(); done += message_limit) {
    const int n = static_cast<int>(std::min(message_limit, bytes.size() - done));
    if (api.Send(bytes.data() + done, n, api.byte, to, tag, own_comm) != MPI_SUCCESS) return false;
  }
  return true;
}

bool receive_bytes(std::vector<char>& bytes, int from) {
  for (std::size_t done = 0; done < bytes.size(); done += message_limit) {
    const int n = static_cast<int>(std::min(message_limit, bytes.size() - done));
    if (api.Recv(bytes.data() + done, n, api.byte, from, tag, own_comm, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
  }
  return true;
}

// Rank 0 asks the others one by one: their data never waits in its memory, and after a failure it sends them on.  Where
// a session is open on some rank, all keep what they have until they end.
enum class GoAhead : char { skip, send, keep };

bool tell(GoAhead what, int rank) { return api.Send(&what, 1, api.byte, rank, tag, own_comm) == MPI_SUCCESS; }

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// The CPUs this process may run on, as ranges: "0-3,8".
std::string allowed_cpus() {
  const cpu_set_t& set = job.cpus;
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

std::vector<std::string> read_command_line() {
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

// As it was when first asked.
const std::vector<std::string>& command_line() {
  static const auto* const first = new std::vector<std::string>(read_command_line());  // never destroyed
  return *first;
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

std::string utc(std::time_t t, const char* format) {
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
  const int level = job.thread_level;
  if (level < 0) return "";
  if (level == MPI_THREAD_MULTIPLE) return "multiple";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  return level == MPI_THREAD_FUNNELED ? "funneled" : "single";
}

// What the objects loaded now import of MPI, without ourselves.
std::string own_coverage() {
  std::vector<Importer> importers = loaded_importers();
  const auto self = reinterpret_cast<std::uint64_t>(&own_coverage);
  importers.erase(std::remove_if(importers.begin(), importers.end(),
                                 [self](const Importer& i) { return self >= i.begin && self < i.end; }),
                  importers.end());
  const auto definition = [](const std::string& name) {
    const Definition found = next_definition(name.c_str());
    return found.is_variable ? 0 : reinterpret_cast<std::uint64_t>(found.address);
  };
  return written(coverage_of(importers, loaded_modules(), definition));
}

RankFacts own_facts(const TickScale& scale) {
  RankFacts facts;
  facts.rank = job.rank;
  facts.world = job.world_id;
  facts.node = host_name();
  facts.pid = static_cast<int>(getpid());
  facts.cpus = allowed_cpus();
  facts.init_ns = scale.ns(job.init);
  facts.app_ns = scale.ns(job.ended - job.started);
  facts.threads = thread_count();
  facts.own_init_ns = scale.ns(job.own_init);
  facts.own_call_ns = scale.ns(job.own_call);
  facts.coverage = own_coverage();
  return facts;
}

out::Meta meta_of(const Profile& profile) {
  std::string command;
  const std::vector<std::string>& arguments = command_line();
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
  return {
      {"schema_version", std::to_string(out::schema_version)},
      {"commlens_version", COMMLENS_VERSION},
      {"commlens_build", COMMLENS_BUILD},
      {"command_line", command},
      {"program", arguments.empty() ? std::string() : out::base_name(arguments[0])},
      {"working_directory", job.directory},
      {"start_time", utc(job.began, "%Y-%m-%dT%H:%M:%SZ")},
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

// Where the profile goes; the default name, with the time of day in it, differs from rank to rank.
std::string profile_name() {
  out::NameFields fields;
  const std::vector<std::string>& arguments = command_line();
  if (!arguments.empty()) fields.program = out::base_name(arguments[0]);
  fields.host = host_name();
  fields.job = job_id();
  if (fields.job.empty()) fields.job = utc(std::time(nullptr), "%Y%m%dT%H%M%SZ-") + std::to_string(getpid());
  fields.ranks = job.size;
  const std::string default_name = out::output_name(option_facts[static_cast<int>(Option::output)].initial, fields);
  const std::string& pattern = options().text(Option::output);
  std::string name = pattern.empty() ? default_name : out::output_name(pattern, fields);
  if (name[0] != '/' && job.directory[0] != '\0') name = std::string(job.directory) + "/" + name;
  struct stat directory;
  if (name.back() == '/' || (stat(name.c_str(), &directory) == 0 && S_ISDIR(directory.st_mode))) {
    name += "/" + default_name;
  }
  return name;
}

void write_profile(Profile& profile, Ticks building, const std::string& mark) {
  profile.finish();
  const out::Meta meta = meta_of(profile);
  std::string name = profile_name();
  if (!mark.empty()) name = out::marked_name(name, mark);
  const out::Stored stored = out::store(profile, meta, name, building);
  if (stored.path.empty()) {
    say("no profile: %s", stored.error.c_str());
  } else if (!stored.error.empty()) {
    say("%s; the profile is in %s", stored.error.c_str(), stored.path.c_str());
  } else if (!options().on(Option::quiet)) {
    say("profile of %zu ranks in %s", profile.ranks.size(), stored.path.c_str());
  }
}

// Nothing when there is no memory for it: rank 0 must not wait in vain.
std::vector<char> own_data(Ticks collecting) noexcept try {
  const std::uint64_t forgotten = forgotten_requests();
  if (forgotten != 0) {
    say("rank %d: no memory to remember %llu requests; what completed them counts under no communicator", job.rank,
        static_cast<unsigned long long>(forgotten));
  }
  const TickScale scale = TickScale::since_start();
  return packed(own_facts(scale), *registry, job.started, collecting);
} catch (const std::exception& e) {
  say("rank %d: cannot collect: %s", job.rank, e.what());
  return {};
}

// Waits until all ranks have come to a point; false when some did not in time.  A barrier that does not block: what
// unprofiled ranks do is not disturbed, and we can give up.
bool all_have_come() {
  MPI_Request barrier;
  if (api.Ibarrier(api.comm_world, &barrier) != MPI_SUCCESS) return false;
  constexpr unsigned long first_word = 30;  // seconds until we say what we wait for
  const unsigned long patience = options().number(Option::patience);
  const std::time_t begin = std::time(nullptr);
  bool said = false;
  for (unsigned long tries = 0;; ++tries) {
    int done = 0;
    if (api.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (done != 0) return true;
    const auto waited = static_cast<unsigned long>(std::time(nullptr) - begin);
    if (waited >= patience) return false;
    if (waited >= first_word && !said && job.rank == 0) {
      say("rank 0 waits in MPI_Finalize for other ranks, %lu s at most. Are all of them under commlens?", patience);
      said = true;
    }
    // Late ranks may need this core.
    if (tries < 1000) {
      sched_yield();
    } else {
      usleep(1000);
    }
  }
}

// True when all ranks are in MPI_Finalize and know it of each other; false when some are late or not under commlens.
//
// Twice, because a barrier ends for a late rank also if another has entered it and given up since.  But who has given
// up does not enter the second one, and so it ends for nobody: either all go on, or all give up.
bool all_are_here() {
  if (job.size == 1) return true;
  if (!all_have_come()) return false;
  return all_have_come();
}

// Hydra's proxy on this node, or the parent process: a script between the two is nobody's launcher.
pid_t launcher_process() {
  for (pid_t p = getppid(); p > 1;) {
    const ProcessFacts facts = facts_of(p);
    if (facts.name.compare(0, 6, "hydra_") == 0) return p;
    p = facts.parent;
  }
  return getppid();
}

Identity random_id() {
  Identity id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) id = combine(static_cast<Identity>(getpid()), now());
  return id;
}

// Agrees on the random id of this world.
bool agree_on_world() {
  if (api.Comm_create(api.comm_world, job.group, &own_comm) != MPI_SUCCESS) return false;
  api.Comm_set_errhandler(own_comm, api.errors_return);
  if (job.rank == 0) job.world_id = random_id();
  return api.Bcast(&job.world_id, sizeof job.world_id, api.byte, 0, own_comm) == MPI_SUCCESS;
}

// Sends this rank's data to rank 0, which writes what it gets; false when all keep it.
bool collect_all(Ticks finalising) {
  if (!agree_on_world()) {
    collect_at_exit();  // the application may have used up all communicators: through files, then
    return true;
  }
  const std::vector<char> own = own_data(finalising);
  constexpr std::uint64_t in_session = ~std::uint64_t{0};
  std::uint64_t own_size = job.sessions > 0 ? in_session : own.size();
  std::vector<std::uint64_t> sizes(job.rank == 0 ? static_cast<std::size_t>(job.size) : 0);
  if (api.Gather(&own_size, sizeof own_size, api.byte, sizes.data(), sizeof own_size, api.byte, 0, own_comm) !=
      MPI_SUCCESS) {
    if (job.rank == 0) say("no profile: MPI_Gather failed while collecting it");
    return true;
  }
  if (job.rank != 0) {
    GoAhead answer = GoAhead::skip;
    api.Recv(&answer, 1, api.byte, 0, tag, own_comm, MPI_STATUS_IGNORE);
    if (answer == GoAhead::send) send_bytes(own, 0);
    return answer != GoAhead::keep;
  }
  if (std::count(sizes.begin(), sizes.end(), in_session) != 0) {
    for (int rank = 1; rank < job.size; ++rank) tell(GoAhead::keep, rank);
    return false;
  }
  Profile profile;
  bool complete = profile.add(own.data(), own.size());
  std::vector<char> bytes;
  int rank = 1;
  try {
    for (; rank < job.size; ++rank) {
      bytes.resize(sizes[static_cast<std::size_t>(rank)]);
      if (!tell(GoAhead::send, rank)) return true;
      const bool received = receive_bytes(bytes, rank);
      complete = received && profile.add(bytes.data(), bytes.size()) && complete;
    }
  } catch (const std::bad_alloc&) {
    // The one it was about has been received, or not been asked yet; so it is with all that follow.
    say("no memory on rank 0 for the data of rank %d and those after it", rank);
    complete = false;
    if (bytes.size() == sizes[static_cast<std::size_t>(rank)]) ++rank;
    for (; rank < job.size; ++rank) tell(GoAhead::skip, rank);
  }
  if (!complete) say("the data of some ranks is missing; the profile has the others");
  write_profile(profile, finalising, "");
  return true;
}

// The same for all processes one launcher started, another for every launch: what it tells them, or its process.
Identity id_of_launch() {
  std::string text;
  for (const char* name : {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "PALS_APID"}) {
    const char* const value = std::getenv(name);
    text += value == nullptr ? "-" : value;
    text += '\n';
  }
  if (std::getenv("PMIX_NAMESPACE") == nullptr && std::getenv("SLURM_STEP_ID") == nullptr &&
      std::getenv("PALS_APID") == nullptr) {
    text += host_name() + std::to_string(launcher_process());
  }
  return identity_of(text.data(), text.size());
}

// Better a file of one rank than nothing.
void collect_alone(Ticks finalising) {
  say("rank %d: other ranks did not reach MPI_Finalize in %lu s (COMMLENS_PATIENCE), or are not under commlens; this "
      "rank's calls go into a profile of their own",
      job.rank, options().number(Option::patience));
  const std::vector<char> own = own_data(finalising);
  Profile profile;
  if (profile.add(own.data(), own.size())) write_profile(profile, finalising, ".rank" + std::to_string(job.rank));
}

}  // namespace

void note_command_line() noexcept try { static_cast<void>(command_line()); } catch (const std::bad_alloc&) {
  return;  // asked again when the profile is written
}

bool collect(Ticks finalising) noexcept try {
  const QuietFloatingPoint quiet;
  const OwnErrors own_errors;
  if (!all_are_here()) {
    collect_alone(finalising);
    return true;
  }
  own_comm = api.comm_null;
  const bool done = collect_all(finalising);
  if (own_comm != api.comm_null) api.Comm_free(&own_comm);
  return done;
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
  return true;
}

void collect_at_exit() noexcept try {
  const QuietFloatingPoint quiet;
  const Ticks begin = now();
  if (job.sessions > 0) job.ended = begin;  // the application left them open
  if (job.world_id == 0) job.world_id = job.size == 1 ? random_id() : id_of_launch();
  const std::vector<char> own = own_data(begin);
  Profile profile;
  if (job.size == 1) {
    if (profile.add(own.data(), own.size())) write_profile(profile, begin, "");
    return;
  }
  out::Parts parts(profile_name(), job.world_id, job.began);
  if (!parts.put(job.rank, own)) {
    say("rank %d: its calls are not in the profile: %s", job.rank, parts.error.c_str());
    return;
  }
  if (!parts.claim(job.size)) return;  // another rank will be the last
  for (int rank = 0; rank < job.size; ++rank) {
    const std::vector<char> bytes = parts.get(rank);
    if (!profile.add(bytes.data(), bytes.size()))
      say("the data of rank %d is missing; the profile has the others", rank);
  }
  write_profile(profile, begin, "");
  parts.remove(job.size);
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
}

}  // namespace commlens
