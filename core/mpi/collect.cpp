// SPDX-License-Identifier: Apache-2.0
// Collects the profile of this job over MPI, or through files where the ranks cannot communicate; core/collect/ merges
// and writes.
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <set>
#include <utility>

#include "core/arena/arena.h"
#include "core/base/floating_point.h"
#include "core/base/say.h"
#include "core/base/wire.h"
#include "core/collect/collect.h"
#include "core/collect/package.h"
#include "core/mpi/bind.h"
#include "core/mpi/crash_copy.h"
#include "core/mpi/job.h"
#include "core/mpi/pml_hook.h"
#include "core/mpi/state.h"
#include "core/out/files.h"
#include "core/out/output_name.h"
#include "core/out/parts.h"
#include "core/out/sqlite.h"
#include "core/process/command_line.h"
#include "core/process/coverage.h"
#include "core/process/processes.h"
#include "core/profile/profile.h"
#include "core/state/journal.h"
#include "core/state/regions.h"
#include "core/state/threads.h"
#include "generated/schema_sql.h"

namespace commlens {
namespace {

// Our own communicator, created when it is needed: commlens never communicates on one of the application's.
MPI_Comm own_comm;

// While it exists, errors on MPI_COMM_WORLD are returned to us: they neither end the application nor reach its error
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

// All processes of MPI_COMM_WORLD, which communicate on own_comm.
class World : public Group {
 public:
  int rank() const override { return job.rank; }
  int size() const override { return job.size; }
  bool send(int to, const void* bytes, std::size_t size) override {
    return pieces(size, [&](std::size_t at, int n) {
      return api.Send(static_cast<const char*>(bytes) + at, n, api.byte, to, tag, own_comm);
    });
  }
  bool receive(int from, void* bytes, std::size_t size) override {
    return pieces(size, [&](std::size_t at, int n) {
      return api.Recv(static_cast<char*>(bytes) + at, n, api.byte, from, tag, own_comm, MPI_STATUS_IGNORE);
    });
  }

 private:
  template <class Move>
  static bool pieces(std::size_t size, Move move) {
    constexpr std::size_t limit = std::size_t{1} << 30;  // MPI counts are int
    for (std::size_t at = 0; at < size; at += limit) {
      if (move(at, static_cast<int>(std::min(limit, size - at))) != MPI_SUCCESS) return false;
    }
    return true;
  }
  static constexpr int tag = 1;
};

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

// Returns which MPI names the loaded objects import, without our own library.
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
  const Ticks from = std::max(job.counted_start, forgotten()), until = counted_time(job.ended);
  facts.app_ns = scale.ns(until > from ? until - from : 0);
  facts.threads = thread_count();
  facts.own_init_ns = scale.ns(job.own_init);
  facts.own_call_ns = scale.ns(job.own_call);
  facts.own_wait_ns = scale.ns(job.waited);
  facts.coverage = own_coverage();
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
      {"clock", clock_is_tsc ? "tsc" : "clock_gettime"},
      {"options", options().listing()},
  };
}

// Returns the path of the profile for a value of COMMLENS_OUTPUT.  The default name contains the time of day and so
// differs from rank to rank.
std::string profile_name(const std::string& pattern) {
  out::NameFields fields;
  const std::vector<std::string>& arguments = command_line();
  if (!arguments.empty()) fields.program = out::base_name(arguments[0]);
  fields.host = host_name();
  fields.job = job_id();
  if (fields.job.empty()) fields.job = utc(std::time(nullptr), "%Y%m%dT%H%M%SZ-") + std::to_string(getpid());
  fields.ranks = job.size;
  const std::string default_name = out::output_name(option_facts[static_cast<int>(Option::output)].initial, fields);
  std::string name = pattern.empty() ? default_name : out::output_name(pattern, fields);
  if (name[0] != '/' && job.directory[0] != '\0') name = std::string(job.directory) + "/" + name;
  if (name.back() == '/') return name + default_name;
  return out::is_folder(name) ? name + "/" + default_name : name;
}

std::string profile_name() { return profile_name(options().text(Option::output)); }

// Returns the path beside which the processes of a job leave files for each other and for `commlens recover`.  It is
// that of the profile or, if no profile can be written there, of its replacement.  Also for /dev/null, because other
// ranks may have another COMMLENS_OUTPUT.
std::string name_beside(const std::string& name) {
  switch (out::target_of(name)) {
    case out::Target::free: return name;
    case out::Target::nothing: return profile_name("");
    case out::Target::other: break;
  }
  return out::name_elsewhere(name);
}

Counted own_counted() {
  const std::uint64_t forgotten = forgotten_requests();
  if (forgotten != 0) {
    say("rank %d: no memory to remember %llu requests; what completed them counts under no communicator", job.rank,
        static_cast<unsigned long long>(forgotten));
  }
  Counted counted = counted_here(*registry, job.ended);
  counted.facts = own_facts(counted.scale);
  counted.started = job.started;
  return counted;
}

// Returns the package of this process for a profile of `ranks` ranks, built without communication.
std::vector<char> own_package(Ticks begin, int ranks) {
  const Counted counted = own_counted();
  const std::uint64_t rows = slice_rows_for(counted.cells.size() * static_cast<std::uint64_t>(ranks));
  return packed(counted, begin, SliceRows(counted).within(rows / static_cast<std::uint64_t>(ranks)));
}

// Returns Hydra's proxy on this node, or else the parent process.  A script may be between this process and the proxy.
pid_t launcher_process() {
  for (pid_t p = getppid(); p > 1;) {
    const ProcessFacts facts = facts_of(p);
    if (facts.name.compare(0, 6, "hydra_") == 0) return p;
    p = facts.parent;
  }
  return getppid();
}

// Returns a number that is the same for all processes of one launch and differs between launches.  It is derived from
// what the launcher passes to them, or from the launcher's process.  Folders are named by it.  Open MPI's random key,
// which only processes of this user can read, makes their names hard to guess.
Identity id_of_launch() {
  std::string text;
  for (const char* name : {"OMPI_MCA_orte_precondition_transports", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID",
                           "PBS_JOBID", "LSB_JOBID", "PALS_APID"}) {
    const char* const value = std::getenv(name);
    text += value == nullptr ? "-" : value;
    text += '\n';
  }
  if (std::getenv("PMIX_NAMESPACE") == nullptr && std::getenv("SLURM_STEP_ID") == nullptr &&
      std::getenv("PALS_APID") == nullptr) {
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

enum class Arrivals { all, late, through_files };

// Returns the place for the parts of a job whose ranks cannot collect together.  All its processes can compute its
// name.
out::Parts parts_of_job() {
  return {name_beside(profile_name()), job.world_id != 0 ? job.world_id : id_of_launch(), job.began};
}

// Serialises the orders of rank 0, which obey() applies on another rank: only rank 0 is sure to have the user's
// options.
std::vector<char> written(const CollectOptions& wanted) {
  WireWriter out;
  out.text(wanted.name());
  out.number(wanted.quiet ? 1 : 0);
  out.number(wanted.mode);
  out.pairs(wanted.meta());
  return out.bytes();
}

void apply_orders(const std::vector<char>& orders, CollectOptions& wanted) {
  WireReader in(orders.data(), orders.size());
  std::string name = in.text();
  const bool quiet = in.number() != 0;
  const auto mode = static_cast<mode_t>(in.number());
  out::Meta meta = in.pairs();
  if (!in.ok()) return;
  wanted.name = [name = std::move(name)] { return name; };
  wanted.quiet = quiet;
  wanted.mode = mode;
  wanted.meta = [meta = std::move(meta)] { return meta; };
}

// Waits until all ranks have called it.  Uses a non-blocking barrier, so that unprofiled ranks are not disturbed and
// this rank can give up.
Arrivals all_are_present() {
  MPI_Request barrier;
  if (api.Ibarrier(api.comm_world, &barrier) != MPI_SUCCESS) return Arrivals::late;
  // Seconds until a message says what this rank waits for.  Rank 0 prints it or, if that rank runs without commlens,
  // the last one.
  const unsigned long first_word = job.rank == 0 ? 30 : 60;
  const bool speaks = job.rank == 0 || job.rank == job.size - 1;
  const unsigned long patience = options().number(Option::patience);
  const std::time_t begin = std::time(nullptr);
  unsigned long looked = 0;
  bool said = false;
  for (unsigned long tries = 0;; ++tries) {
    int done = 0;
    if (api.Test(&barrier, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return Arrivals::late;
    if (done != 0) return Arrivals::all;
    const auto waited = static_cast<unsigned long>(std::time(nullptr) - begin);
    if (waited >= patience) return Arrivals::late;
    if (waited > looked) {  // once a second
      looked = waited;
      if (parts_of_job().has_begun()) return Arrivals::through_files;
    }
    if (waited >= first_word && !said && speaks) {
      say("rank %d waits in MPI_Finalize for other ranks, %lu s at most. Are all of them under commlens?", job.rank,
          patience);
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

// Returns whether this rank has begun a collective on MPI_COMM_WORLD and never completed it.  This is an error in the
// application, which most MPI libraries tolerate.  But if other ranks have not begun that collective, no later one on
// MPI_COMM_WORLD completes.
bool has_unfinished_collective() {
  const auto* const world = static_cast<const CommView*>(comms.find(bits(api.comm_world)));
  if (world == nullptr) return false;
  return requests.any([world](const Cell& maker, Payload payload) {
    const bool is_collective =
        (payload & RequestFlag::idup) != 0 || std::strcmp(op_facts[op_of_key(maker.key)].klass, "collective") == 0;
    const bool is_active = (payload & RequestFlag::persistent) == 0 || (payload & RequestFlag::active) != 0;
    return is_collective && is_active && comm_of_key(maker.key) == world->index;
  });
}

// Returns whether all ranks are in MPI_Finalize and know this of each other.  Some may be late or run without commlens.
//
// Waits for two barriers.  The first one also completes for a late rank if another rank has entered it and given up
// since.  A rank that has given up does not enter the second one, which therefore completes for nobody.  So either all
// ranks continue, or all give up.
Arrivals all_are_here() {
  if (job.size == 1) return Arrivals::all;
  if (has_unfinished_collective()) return Arrivals::through_files;
  const Arrivals first = all_are_present();
  return first == Arrivals::all ? all_are_present() : first;
}

Identity random_id() {
  Identity id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) id = combine(static_cast<Identity>(getpid()), now());
  return id;
}

CollectOptions collect_options(Ticks begin, const std::string& mark = "") {
  CollectOptions result;
  result.counted = own_counted;
  result.meta = meta_at_start;
  result.name = [mark] {
    std::string name = profile_name();
    const bool has_no_mark = mark.empty() || out::target_of(name) != out::Target::free;
    return has_no_mark ? name : out::marked_name(name, mark);
  };
  result.in_session = job.sessions > 0;
  result.aggregators = options().number(Option::aggregators);
  result.summary = options().text(Option::detail) == "summary";
  result.quiet = options().on(Option::quiet);
  result.mode = options().mode();
  result.begin = begin;
  return result;
}

// Collective: rank 0 chooses the random id of this world and sends it to all.
bool agree_on_world() {
  if (api.Comm_create(api.comm_world, job.group, &own_comm) != MPI_SUCCESS) return false;
  api.Comm_set_errhandler(own_comm, api.errors_return);
  if (job.rank == 0) job.world_id = random_id();
  return api.Bcast(&job.world_id, sizeof job.world_id, api.byte, 0, own_comm) == MPI_SUCCESS;
}

// Returns false if no rank has collected, because some rank has a session open.
bool collect_all(Ticks begin) {
  if (!agree_on_world()) {
    collect_at_exit();  // the application may have used up all communicators
    return true;
  }
  World all;
  const Collected collected = collect_together(all, collect_options(begin));
  if (collected == Collected::stored) remove_arena();
  return collected != Collected::too_early;
}

// Writes a profile of this rank only, if other ranks do not arrive.
void collect_alone(Ticks begin) {
  say("rank %d: other ranks did not reach MPI_Finalize in %lu s (COMMLENS_PATIENCE), or are not under commlens; this "
      "rank's calls go into a profile of their own",
      job.rank, options().number(Option::patience));
  const std::vector<char> own = own_package(begin, 1);
  out::Phases phases{begin, now()};
  Profile profile;
  const bool is_whole = profile.add(own.data(), own.size());
  phases.gathered = now();
  if (is_whole && write_file(collect_options(begin, ".rank" + std::to_string(job.rank)), job.size, profile, phases))
    remove_arena();
}

}  // namespace

void note_job() noexcept try {
  journal::JobEntry entry;
  entry.rank = job.rank;
  entry.size = job.size;
  entry.launch = id_of_launch();
  entry.started = job.started;
  entry.counted_start = job.counted_start;
  entry.init = job.init;
  entry.own_init = job.own_init;
  entry.own_call = job.own_call;
  entry.node = host_name();
  entry.cpus = allowed_cpus();
  entry.output = name_beside(profile_name());
  entry.meta = meta_at_start();
  journal::note(entry);
  if (out::target_of(profile_name()) == out::Target::nothing) return;  // no copies of the arena either
  char name[64];
  std::snprintf(name, sizeof name, "commlens-arenas-%016llx", static_cast<unsigned long long>(entry.launch));
  enable_crash_copies(entry.output.substr(0, entry.output.rfind('/') + 1) + name, job.rank);
} catch (const std::bad_alloc&) {
  return;  // the counters cannot be recovered then
}

bool collect(Ticks begin) noexcept try {
  const QuietFloatingPoint quiet;
  close_regions();
  const OwnErrors own_errors;
  const Ticks here = now();
  const Arrivals coming = all_are_here();
  job.waited = now() - here;
  begin += job.waited;  // waiting for late ranks is not our overhead
  switch (coming) {
    case Arrivals::late: collect_alone(begin); return true;
    case Arrivals::through_files:
      if (job.sessions > 0) return false;  // sessions end later
      collect_at_exit();
      return true;
    case Arrivals::all: break;
  }
  own_comm = api.comm_null;
  const bool done = collect_all(begin);
  if (own_comm != api.comm_null) api.Comm_free(&own_comm);
  return done;
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
  return true;
}

void collect_at_exit() noexcept try {
  const QuietFloatingPoint quiet;
  close_regions();
  const Ticks begin = now();
  if (job.sessions > 0) job.ended = begin;  // the application left them open
  if (job.world_id == 0) job.world_id = job.size == 1 ? random_id() : id_of_launch();
  const std::vector<char> own = own_package(begin, job.size);
  out::Phases phases{begin, now()};
  Profile profile;
  if (job.size == 1) {
    const bool is_whole = profile.add(own.data(), own.size());
    phases.gathered = now();
    if (is_whole && write_file(collect_options(begin), job.size, profile, phases)) remove_arena();
    return;
  }
  out::Parts parts = parts_of_job();
  CollectOptions last = collect_options(begin);
  if (job.rank == 0) parts.put_orders(written(last));
  const bool is_there = parts.put(job.rank, own);
  if (is_there) remove_arena();
  const bool is_last = parts.claim(job.size);
  if (!is_there && !is_last) {
    say("rank %d: its calls are not in the profile: %s. They are kept on its node: commlens recover", job.rank,
        parts.error.c_str());
  }
  if (!is_last) return;  // a later rank writes the profile
  for (int rank = 0; rank < job.size; ++rank) {
    const std::vector<char> bytes = rank == job.rank ? own : parts.get(rank);
    if (!profile.add(bytes.data(), bytes.size()))
      say("the data of rank %d is missing; the profile has the others", rank);
  }
  phases.gathered = now();
  apply_orders(parts.orders(), last);
  last.kept = "What the ranks counted stays in " + parts.directory();
  if (!write_file(last, job.size, profile, phases)) return;
  parts.remove(job.size);
  if (!is_there) remove_arena();
} catch (const std::exception& e) {
  say("rank %d: no profile: %s", job.rank, e.what());
}

}  // namespace commlens
