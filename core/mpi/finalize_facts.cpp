// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/finalize_facts.h"

#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <initializer_list>
#include <new>
#include <utility>
#include <vector>

#include "core/arena/arena.h"
#include "core/base/private_folder.h"
#include "core/base/say.h"
#include "core/job/counting.h"
#include "core/job/crash_copy.h"
#include "core/job/job.h"
#include "core/job/recorder.h"
#include "core/job/selection.h"
#include "core/mpi/bind.h"
#include "core/mpi/control.h"
#include "core/mpi/family_tuning.h"
#include "core/mpi/pml_hook.h"
#include "core/mpi/state.h"
#include "core/out/files.h"
#include "core/out/output_name.h"
#include "core/process/command_line.h"
#include "core/process/coverage.h"
#include "core/process/processes.h"
#include "core/process/settings.h"
#include "core/state/journal.h"
#include "core/state/regions.h"
#include "core/state/threads.h"
#include "generated/launchers.h"

namespace commlens {
namespace {

// How many processes the launcher has started, and the variable that says so.
struct Launched {
  const char* variable;
  long processes;
};
Launched launched{};

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

// Returns the CPUs this process may run on, as ranges: "0-3,8".
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
  if (file == nullptr) return {program_invocation_name};  // no /proc
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

// Returns the command line as it was at the first call.
const std::vector<std::string>& command_line() {
  static const auto* const first = new std::vector<std::string>(read_command_line());  // never destroyed
  return *first;
}

std::string utc(std::time_t t, const char* format) {
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[64] = "";
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

// Returns the first line, with one blank for every run of white space, because MPICH's contains tabs.
std::string first_line(const std::string& text) {
  std::string line;
  for (const char c : text.substr(0, text.find_first_of("\r\n"))) {
    const bool blank = c == ' ' || c == '\t';
    if (!blank || (!line.empty() && line.back() != ' ')) line += blank ? ' ' : c;
  }
  return line;
}

std::string thread_level() {
  const int level = job.thread_level;
  if (level < 0) return "";
  if (level == MPI_THREAD_MULTIPLE) return "multiple";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  return level == MPI_THREAD_FUNNELED ? "funneled" : "single";
}

// Returns which MPI names the loaded objects import, without our own library.
std::string own_coverage() {
  const std::vector<Module> modules = loaded_modules();
  std::vector<Importer> importers = loaded_importers(modules);
  const auto self = reinterpret_cast<std::uint64_t>(&own_coverage);
  importers.erase(std::remove_if(importers.begin(), importers.end(),
                                 [self](const Importer& i) { return self >= i.begin && self < i.end; }),
                  importers.end());
  const auto definition = [](const std::string& name) {
    const Definition found = next_definition(name.c_str());
    return found.is_variable ? 0 : reinterpret_cast<std::uint64_t>(found.address);
  };
  return written(coverage_of(importers, modules, definition));
}

std::vector<Setting> read_settings_of_process() {
  std::vector<std::string> wrong;
  std::vector<Setting> settings = labels_in(options().text(Option::label), wrong);
  if (job.rank == 0 && !wrong.empty()) say("COMMLENS_LABEL: '%s' is not NAME=VALUE and is left out", wrong[0].c_str());
  if (options().text(Option::settings) == "all") {
    for (std::vector<Setting> more : {program_and_machine(), variables_in(environ)}) {
      settings.insert(settings.end(), more.begin(), more.end());
    }
  }
  return settings;
}

// Returns the settings of this process as they were at the first call: an application may change its environment.
const std::vector<Setting>& settings_at_start() {
  static const auto* const first = new std::vector<Setting>(read_settings_of_process());  // never destroyed
  return *first;
}

// Returns the settings at start and the present control variables, which the application may have changed since.
std::vector<Setting> settings_now() {
  std::vector<Setting> settings = settings_at_start();
  const std::vector<Setting> tuned = tuned_settings();
  settings.insert(settings.end(), tuned.begin(), tuned.end());
  if (options().text(Option::settings) == "all") {
    const std::vector<Setting> more = control_variables();
    settings.insert(settings.end(), more.begin(), more.end());
  }
  return settings;
}

RankFacts own_facts(const TickScale& scale) {
  RankFacts facts;
  facts.rank = job.rank;
  facts.world = job.world_id;
  facts.node = host_name();
  const arena::Header* const header = arena::own_header();
  const arena::Process process = header != nullptr ? header->process : arena::this_process();
  facts.machine = process.boot[0] ^ process.boot[1];
  facts.pid = static_cast<int>(getpid());
  facts.cpus = allowed_cpus();
  facts.init_ns = scale.ns(job.init);
  const Ticks from = std::max(job.counted_start, forgotten()), until = counted_time(job.ended);
  facts.app_ns = scale.ns(until > from ? until - from : 0);
  facts.use = job.use_at_end - later(job.use_at_start, forgotten_use());
  facts.threads = thread_count();
  facts.own_init_ns = scale.ns(job.own_init);
  facts.own_call_ns = scale.ns(job.own_call);
  facts.own_wait_ns = scale.ns(job.waited);
  facts.coverage = own_coverage();
  facts.settings = written(settings_now());
  return facts;
}

CommandLine command_line_wanted() {
  const std::string& how = options().text(Option::command_line);
  if (how == "program") return CommandLine::program;
  return how == "full" ? CommandLine::full : CommandLine::masked;
}

// Returns the rows of table meta that are known when counting begins.
out::Meta meta_at_start() {
  const std::vector<std::string>& arguments = command_line();
  char library[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0, version = 0, subversion = 0;
  api.Get_library_version(library, &length);
  api.Get_version(&version, &subversion);
  return {
      {"commlens_version", COMMLENS_VERSION},
      {"commlens_build", COMMLENS_BUILD},
      {"command_line", shown(arguments, command_line_wanted())},
      {"program", arguments.empty() ? std::string() : out::base_name(arguments[0])},
      {"working_directory", job.directory},
      {"start_time", utc(job.began, "%Y-%m-%dT%H:%M:%SZ")},
      {"mpi_library", first_line(library)},
      {"mpi_family", COMMLENS_FAMILY},
      {"mpi_standard", std::to_string(version) + "." + std::to_string(subversion)},
      {"thread_level", thread_level()},
      {"job_id", job_id()},
      {"inside", pml_hook_outcome()},
      {"clock", clock_is_tsc ? counter_name : "clock_gettime"},
      {"options", options().listing()},
  };
}

// Returns the name of this process's user.  Does not look it up: that may load modules of libc into the program, and
// ask a server, for each rank of a job.  A wrong $USER leads to a folder in which this user may not write.
std::string user_name() {
  for (const char* const variable : {"USER", "LOGNAME"}) {
    const char* const name = std::getenv(variable);
    if (name != nullptr && *name != '\0') return name;
  }
  return std::to_string(geteuid());
}

// A path of the profile.
struct ProfileName {
  std::string path;
  std::size_t root = std::string::npos;  // the length up to the folders that commlens makes; npos: it makes none
};

// Returns the path of the profile for a value of COMMLENS_OUTPUT.  Without a batch system the name contains the process
// id and so differs from rank to rank.
ProfileName name_for(const std::string& pattern) {
  out::NameFields fields;
  const std::vector<std::string>& arguments = command_line();
  if (!arguments.empty()) fields.program = out::base_name(arguments[0]);
  fields.host = host_name();
  fields.job = job_id();
  if (fields.job.empty()) fields.job = utc(job.began, "%Y%m%dT%H%M%SZ-") + std::to_string(getpid());
  fields.ranks = job.size;
  fields.user = user_name();
  fields.date = utc(job.began, "%Y%m%d");
  const std::string default_name = out::output_name(option_facts[static_cast<int>(Option::output)].initial, fields);
  std::string name = pattern.empty() ? default_name : out::output_name(pattern, fields);
  std::size_t root = out::root_length(pattern);
  if (name[0] != '/' && job.directory[0] != '\0') {
    const std::string before = std::string(job.directory) + "/";
    name.insert(0, before);
    if (root != std::string::npos) root += before.size();
  }
  if (name.back() == '/') return {name + default_name, root};
  return {out::is_folder(name) ? name + "/" + default_name : name, root};
}

// Makes the folders that COMMLENS_OUTPUT names by fields.  If that fails, prints why, and the profile gets the same
// name in $TMPDIR.
std::string name_in_made_folders() {
  const ProfileName name = name_for(options().text(Option::output));
  if (name.root == std::string::npos) return name.path;
  const std::string error = out::make_folders(name.path, name.root, options().mode());
  if (error.empty()) return name.path;
  static bool is_said = false;
  const std::string elsewhere = out::name_elsewhere(name.path);
  if (!is_said) say("%s; the profile goes to %s", error.c_str(), elsewhere.c_str());
  is_said = true;
  return elsewhere;
}

// Returns where copies go, in a folder beside a profile.  One rank makes the folders around it: thousands at the same
// time would be a burden for a file server.  A rank for which they have another name, or that finds none of them when
// it needs them, makes its own.
PlaceOfCopies place_of_copies(const std::string& folder) {
  const ProfileName name = name_for(options().text(Option::output));
  PlaceOfCopies place;
  place.folder = folder;
  if (name.root == std::string::npos || folder.compare(0, name.root, name.path, 0, name.root) != 0) return place;
  place.root = name.root;
  place.mode = out::directory_mode(options().mode());
  place.elsewhere = out::name_elsewhere(folder);
  return place;
}

// Returns the path beside which the processes of a job leave files for each other and for `commlens recover`.  It is
// that of the profile or, if no profile can be written there, of its replacement.  Also for /dev/null, because other
// ranks may have another COMMLENS_OUTPUT.
std::string name_beside(const std::string& name) {
  switch (out::target_of(name)) {
    case out::Target::free: return name;
    case out::Target::nothing: return name_for("").path;
    case out::Target::other: break;
  }
  return out::name_elsewhere(name);
}

Counted own_counted() {
  const std::uint64_t forgotten = forgotten_requests();
  if (forgotten != 0) {
    say("rank %d: no memory for %llu requests; the calls that completed them are counted without a communicator",
        job.rank, static_cast<unsigned long long>(forgotten));
  }
  Counted counted = counted_here(*registry, job.ended);
  counted.facts = own_facts(counted.scale);
  counted.started = job.started;
  return counted;
}

// Returns a contribution with the options of this process.  Needs no memory.
Contribution own_wishes(Ticks begin) {
  Contribution own;
  own.in_session = job.sessions > 0;
  own.aggregators = options().number(Option::aggregators);
  own.summary = options().text(Option::detail) == "summary";
  own.begin = begin;
  return own;
}

}  // namespace

std::string profile_name() { return name_for(options().text(Option::output)).path; }

Destination own_destination(const std::string& mark) {
  Destination destination;
  destination.name = name_in_made_folders();
  if (!mark.empty() && out::target_of(destination.name) == out::Target::free)
    destination.name = out::marked_name(destination.name, mark);
  destination.meta = meta_at_start();
  destination.quiet = options().on(Option::quiet);
  destination.mode = options().mode();
  return destination;
}

Contribution own_contribution(Ticks begin, Destination destination) {
  Contribution own = own_wishes(begin);
  own.destination = std::move(destination);
  own.counted = own_counted();
  return own;
}

Contribution own_contribution_to_all(Ticks begin) {
  Contribution own = own_wishes(begin);
  try {
    if (job.rank == 0) own.destination = own_destination();
    own.counted = own_counted();
  } catch (const std::exception& e) {
    say("rank %d: cannot collect the counters: %s", job.rank, e.what());
  }
  return own;
}

// Returns a number that is the same for all processes of one launch and differs between launches.  It is derived from
// what the launcher passes to them, or from the launcher's process.  Folders are named by it.  Open MPI's random key,
// which only processes of this user can read, makes their names hard to guess.
Identity id_of_launch() {
  std::string text;
  for (const char* name : COMMLENS_VARIABLES_LAUNCH) {
    const char* const value = std::getenv(name);
    text += value == nullptr ? "-" : value;
    text += '\n';
  }
  const std::initializer_list<const char*> certain = COMMLENS_VARIABLES_ONE_LAUNCH;
  if (std::none_of(certain.begin(), certain.end(), [](const char* name) { return std::getenv(name) != nullptr; })) {
    const pid_t process = launcher_process();
    // The arguments of Hydra's proxies contain the address of their launcher and the number of their world.  Without
    // them, a process id may be reused, and files of a killed job with the same id may still exist; the start time
    // tells them apart.
    const std::string address = argument_of(process, "--control-port");
    text += address.empty()
                ? host_name() + std::to_string(process) + "-" + std::to_string(arena::process_facts(process).start_time)
                : address + " " + argument_of(process, "--pgid");
  }
  return identity_of(text.data(), text.size());
}

void remember_launcher() noexcept {
  if (launcher_rank() > 0) return;  // one message a launch is enough
  for (const char* name : COMMLENS_VARIABLES_SIZE) {
    const char* const text = std::getenv(name);
    const long size = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
    if (size == 1) {  // a launcher within another one
      launched.processes = 1;
      return;
    }
    if (size > 1 && launched.variable == nullptr) launched = {name, size};
  }
}

void say_if_launcher_disagrees() noexcept {
  if (job.size != 1 || launched.processes <= 1) return;
  say("this process is rank 0 of 1, but %s says %ld processes: the launcher belongs to another MPI library",
      launched.variable, launched.processes);
}

Identity launch_of_job() { return job.launch != 0 ? job.launch : id_of_launch(); }

out::Parts parts_of_job() {
  return {name_beside(profile_name()), job.world_id != 0 ? job.world_id : launch_of_job(), job.began};
}

void note_job() noexcept try {
  journal::JobEntry entry;
  entry.rank = job.rank;
  entry.size = job.size;
  job.launch = entry.launch = id_of_launch();
  entry.started = job.started;
  entry.counted_start = job.counted_start;
  entry.init = job.init;
  entry.own_init = job.own_init;
  entry.own_call = job.own_call;
  entry.constants = job.constants;
  entry.node = host_name();
  entry.cpus = allowed_cpus();
  entry.settings = written(settings_at_start());
  const std::string profile = job.rank == 0 ? name_in_made_folders() : profile_name();
  entry.output = name_beside(profile);
  entry.meta = meta_at_start();
  journal::note(entry);
  if (out::target_of(profile) == out::Target::nothing) return;  // no copies of the arena either
  char name[64];
  std::snprintf(name, sizeof name, "commlens-arenas-%016llx", static_cast<unsigned long long>(entry.launch));
  const std::string folder = entry.output.substr(0, entry.output.rfind('/') + 1) + name;
  const PlaceOfCopies place = place_of_copies(folder);
  enable_crash_copies(place, job.rank);
  if (const unsigned long seconds = options().number(Option::flush_every); seconds != 0) {
    RecorderFacts facts;
    facts.launch = entry.launch;
    facts.seconds = seconds;
    facts.most = options().number(Option::history);
    facts.folder = folder;
    facts.node = entry.node;
    facts.arena_dir = options().text(Option::arena_dir);
    facts.is_first = job.rank == 0;
    facts.make_folders = [&place] {
      const std::size_t root = place.root;
      return root == std::string::npos ||
             make_parents(place.folder.c_str(), root, place.folder.substr(0, root).c_str(), place.mode);
    };
    start_recorder(facts);
  }
} catch (const std::bad_alloc&) {
  return;  // the counters cannot be recovered then
}

}  // namespace commlens
