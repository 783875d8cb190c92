// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/pvars.h"

#include <mpi.h>
#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/base/say.h"
#include "core/job/annotate.h"
#include "core/job/counting.h"
#include "core/job/job.h"
#include "core/mpi/api.h"
#include "core/mpi/bind.h"
#include "core/state/notices.h"
#include "core/state/pvar_values.h"
#include "core/state/readings.h"
#include "core/state/regions.h"

namespace commlens {
namespace {

// The functions of the library, not our wrappers: nothing of what we do is visible to the application.
// clang-format off
#define COMMLENS_TOOL_FUNCTIONS(X)                                                                                  \
  X(init_thread) X(finalize) X(pvar_get_num) X(pvar_get_info) X(pvar_session_create) X(pvar_session_free)           \
  X(pvar_handle_alloc) X(pvar_handle_free) X(pvar_start) X(pvar_read)
// clang-format on

struct Tool {
// Members have the names the standard gives the procedures.
// NOLINTBEGIN(readability-identifier-naming,bugprone-macro-parentheses)
#define COMMLENS_MEMBER(name) decltype(&PMPI_T_##name) name;
  COMMLENS_TOOL_FUNCTIONS(COMMLENS_MEMBER)
#undef COMMLENS_MEMBER
  // NOLINTEND(readability-identifier-naming,bugprone-macro-parentheses)

  bool load() noexcept {
    bool is_complete = true;
#define COMMLENS_LOAD(name)                                  \
  name = library<decltype(&PMPI_T_##name)>("PMPI_T_" #name); \
  is_complete = is_complete && (name) != nullptr;
    COMMLENS_TOOL_FUNCTIONS(COMMLENS_LOAD)
#undef COMMLENS_LOAD
    return is_complete;
  }
};

// What the library says about a variable.
struct Info {
  char name[256] = "";
  char text[1024] = "";
  int name_length = sizeof name, text_length = sizeof text;
  int verbosity = 0, class_number = 0, bind = 0, readonly = 0, continuous = 0, atomic = 0;
  MPI_Datatype datatype{};
  MPI_T_enum enumtype{};
  PvarClass klass = PvarClass::unknown;
  PvarType type = PvarType::other;
};

struct OpenVariable {
  std::string name;
  MPI_T_pvar_handle handle;
  PvarType type;
  bool grows;
  std::size_t count;
  std::uint64_t metric;
  std::vector<char> before, now;
};

struct Pvars {
  std::mutex mutex;
  bool is_open = false;
  Tool tool{};
  MPI_T_pvar_session session{};
  pthread_t opener{};
  MPI_Comm world{};  // handles refer to it
  std::vector<OpenVariable> variables;
  PvarRefusals refused;
};

Pvars& pvars() {
  static auto* const all = new Pvars();  // never destroyed: another thread may clear counters while the program exits
  return *all;
}

PvarClass class_of(int number) noexcept {
  switch (number) {
    case MPI_T_PVAR_CLASS_STATE: return PvarClass::state;
    case MPI_T_PVAR_CLASS_LEVEL: return PvarClass::level;
    case MPI_T_PVAR_CLASS_SIZE: return PvarClass::size;
    case MPI_T_PVAR_CLASS_PERCENTAGE: return PvarClass::percentage;
    case MPI_T_PVAR_CLASS_HIGHWATERMARK: return PvarClass::high_watermark;
    case MPI_T_PVAR_CLASS_LOWWATERMARK: return PvarClass::low_watermark;
    case MPI_T_PVAR_CLASS_COUNTER: return PvarClass::counter;
    case MPI_T_PVAR_CLASS_AGGREGATE: return PvarClass::aggregate;
    case MPI_T_PVAR_CLASS_TIMER: return PvarClass::timer;
    case MPI_T_PVAR_CLASS_GENERIC: return PvarClass::generic;
    default: return PvarClass::unknown;
  }
}

// The numeric datatypes that the standard allows for variables.
PvarType type_of(MPI_Datatype datatype) noexcept {
#if defined(OPEN_MPI)
#define COMMLENS_TYPE(name, variable) static_cast<MPI_Datatype>(data_definition(variable))
#else
#define COMMLENS_TYPE(name, variable) name
#endif
  static const struct {
    MPI_Datatype datatype;
    PvarType type;
  } known[] = {
      {COMMLENS_TYPE(MPI_INT, "ompi_mpi_int"), PvarType::signed_32},
      {COMMLENS_TYPE(MPI_UNSIGNED, "ompi_mpi_unsigned"), PvarType::unsigned_32},
      {COMMLENS_TYPE(MPI_UNSIGNED_LONG, "ompi_mpi_unsigned_long"), PvarType::unsigned_64},
      {COMMLENS_TYPE(MPI_UNSIGNED_LONG_LONG, "ompi_mpi_unsigned_long_long"), PvarType::unsigned_64},
      {COMMLENS_TYPE(MPI_COUNT, "ompi_mpi_count"), PvarType::signed_64},
      {COMMLENS_TYPE(MPI_DOUBLE, "ompi_mpi_double"), PvarType::real},
  };
#undef COMMLENS_TYPE
  for (const auto& one : known) {
    if (one.datatype != MPI_Datatype{} && one.datatype == datatype) return one.type;
  }
  return PvarType::other;
}

bool get_info(const Tool& tool, int index, Info& info) noexcept {
  if (tool.pvar_get_info(index, info.name, &info.name_length, &info.verbosity, &info.class_number, &info.datatype,
                         &info.enumtype, info.text, &info.text_length, &info.bind, &info.readonly, &info.continuous,
                         &info.atomic) != MPI_SUCCESS)
    return false;
  info.name[sizeof info.name - 1] = info.text[sizeof info.text - 1] = '\0';
  info.klass = class_of(info.class_number);
  info.type = type_of(info.datatype);
  return true;
}

// Says which variables may be read.
//
// Open MPI's MPI_T_init_thread registers the variables of all its components, and to read a variable of a component
// that is not in use may end the process (seen with the psm2 component of 4.1.4).  So only those are read that
// were registered before.
class Usable {
 public:
  // Call before our MPI_T_init_thread.
  explicit Usable(const Tool& tool) {
#if defined(OPEN_MPI)
    int number = 0;
    if (tool.pvar_get_num(&number) == MPI_SUCCESS) {
      reason_ = "MPI_T was initialised before MPI_Init, so components that are not in use cannot be told apart";
      return;
    }
    const auto count = library<int (*)(int*)>("mca_base_pvar_get_count");
    const auto get = library<int (*)(int, const void**)>("mca_base_pvar_get");
    if (count == nullptr || get == nullptr || count(&number) != 0) return;
    for (int i = 0; i < number; ++i) {
      const void* variable = nullptr;
      is_registered_.push_back(get(i, &variable) == 0 && variable != nullptr);
    }
#else
    static_cast<void>(tool);
#endif
  }

  // Returns why a variable must not be read, or an empty text.
  std::string objection(int index) const {
#if defined(OPEN_MPI)
    const auto i = static_cast<std::size_t>(index);
    return i < is_registered_.size() && is_registered_[i] ? std::string() : reason_;
#else
    static_cast<void>(index);
    return {};
#endif
  }

 private:
#if defined(OPEN_MPI)
  std::vector<bool> is_registered_;
  std::string reason_ = "of a component that is not in use";
#endif
};

// Returns why a variable cannot be a metric, or an empty text.
std::string objection_to(const Info& info) {
  if (info.type == PvarType::other) return "no number";
  if (info.klass == PvarClass::unknown) return "of no class of the standard";
  if (info.bind == MPI_T_BIND_NO_OBJECT) return {};
  if (info.bind == MPI_T_BIND_MPI_COMM)
    return job.world ? "" : "bound to a communicator, but there is no MPI_COMM_WORLD";
  if (info.bind == MPI_T_BIND_MPI_WIN) return "bound to a window";
  return info.bind == MPI_T_BIND_MPI_FILE ? "bound to a file" : "bound to an object";
}

std::string error_text(const char* what, int error) {
  return std::string(what) + " with error " + std::to_string(error);
}

// Intel MPI has two variables of one name, which differ in their class.
std::string metric_name(const Pvars& all, const Info& info) {
  const bool is_second = std::any_of(all.variables.begin(), all.variables.end(),
                                     [&](const OpenVariable& other) { return other.name == info.name; });
  return is_second ? std::string(info.name) + " (" + unit_of(info.klass, info.type) + ")" : info.name;
}

// Makes a handle that counts from now on.  Returns why that fails, or an empty text.
std::string open(Pvars& all, int index, const Info& info) {
  if (all.variables.size() >= most_pvars) return "more than " + std::to_string(most_pvars);
  OpenVariable variable{info.name, {}, info.type, grows(info.klass), 0, 0, {}, {}};
  int count = 0;
  void* const object = info.bind == MPI_T_BIND_MPI_COMM ? &all.world : nullptr;
  int rc = all.tool.pvar_handle_alloc(all.session, index, object, &variable.handle, &count);
  if (rc != MPI_SUCCESS) return error_text("refused", rc);
  std::string objection;
  if (count < 0 || static_cast<std::size_t>(count) > most_elements) {
    objection = "more than " + std::to_string(most_elements) + " values";
  } else if (info.continuous == 0) {
    rc = all.tool.pvar_start(all.session, variable.handle);
    if (rc != MPI_SUCCESS) objection = error_text("cannot be started, ", rc);
  }
  if (objection.empty()) {
    variable.count = static_cast<std::size_t>(count);
    variable.now.resize(variable.count * bytes_of(info.type));
    variable.before.resize(variable.now.size());
    variable.metric = metric_of(metric_name(all, info).c_str(), unit_of(info.klass, info.type));
    rc = all.tool.pvar_read(all.session, variable.handle, variable.before.data());
    if (rc != MPI_SUCCESS) objection = error_text("cannot be read,", rc);
  }
  if (!objection.empty()) {
    all.tool.pvar_handle_free(all.session, &variable.handle);
    return objection;
  }
  all.variables.push_back(std::move(variable));
  return {};
}

// Prints all variables, for users to choose from.
void print_line(const Info& info, const std::string& objection) {
  say("  %s (%s%s%s): %s", info.name, unit_of(info.klass, info.type),
      objection.empty() ? "" : "; cannot be read: ", objection.c_str(), info.text);
}

void open_wanted(Pvars& all, PvarChoice& choice, const Usable& usable) {
  int number = 0;
  all.tool.pvar_get_num(&number);
  const bool prints = choice.wants_list() && job.rank == 0;
  if (prints) say("COMMLENS_PVARS: this MPI library has %d performance variables%s", number, number == 0 ? "" : ":");
  for (int i = 0; i < number; ++i) {
    Info info;
    if (!get_info(all.tool, i, info)) continue;  // Open MPI: of a component that is no longer loaded
    std::string objection = objection_to(info);
    if (objection.empty()) objection = usable.objection(i);
    if (prints) print_line(info, objection);
    if (!choice.wants(info.name)) continue;
    if (objection.empty()) objection = open(all, i, info);
    if (!objection.empty()) all.refused.add(info.name, objection);
  }
  for (const std::string& pattern : choice.without_match())
    all.refused.add(pattern, "no variable of this MPI library has this name");
}

// pre: the lock is held.
void read_variables(Pvars& all, bool counts) {
  for (OpenVariable& variable : all.variables) {
    const int rc = all.tool.pvar_read(all.session, variable.handle, variable.now.data());
    if (rc != MPI_SUCCESS) {
      all.refused.add(variable.name, error_text("could not be read later,", rc));
      continue;
    }
    for (std::size_t i = 0; counts && i < variable.count; ++i) {
      const double value = variable.grows ? increase_at(variable.type, variable.before.data(), variable.now.data(), i)
                                          : value_at(variable.type, variable.now.data(), i);
      record_metric(variable.metric, value);
    }
    variable.before.swap(variable.now);
  }
}

void read(bool counts) noexcept try {
  Pvars& all = pvars();
  const std::lock_guard<std::mutex> lock(all.mutex);
  // A thread that may not call MPI now reads nothing.  The values are then part of the next reading.
  const bool may_read = pthread_equal(all.opener, pthread_self()) != 0 || job.thread_level == MPI_THREAD_MULTIPLE;
  if (all.is_open && may_read) read_variables(all, counts);
} catch (const std::bad_alloc&) {
  return;
}

void notice_refused(const Pvars& all) {
  if (!all.refused.is_empty()) notice(Notice::pvars, "not read of COMMLENS_PVARS: " + all.refused.text());
}

}  // namespace

void begin_pvars() noexcept try {
  PvarChoice choice(options().text(Option::pvars));
  if (choice.is_empty() && !choice.wants_list()) return;
  Pvars& all = pvars();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.is_open) return;
  if (!all.tool.load()) {
    all.refused.add("all", "this MPI library has no MPI_T");
    return notice_refused(all);
  }
  const Usable usable(all.tool);
  // The level that takes nothing from the application, which may have asked for it before.
  int provided = 0;
  if (const int rc = all.tool.init_thread(MPI_THREAD_MULTIPLE, &provided); rc != MPI_SUCCESS) {
    all.refused.add("all", error_text("MPI_T_init_thread failed", rc));
    return notice_refused(all);
  }
  if (const int rc = all.tool.pvar_session_create(&all.session); rc != MPI_SUCCESS) {
    all.tool.finalize();
    all.refused.add("all", error_text("MPI_T_pvar_session_create failed", rc));
    return notice_refused(all);
  }
  all.is_open = true;
  all.opener = pthread_self();
  all.world = api.comm_world;
  call_for_readings(read);
  open_wanted(all, choice, usable);
} catch (const std::bad_alloc&) {
  return;
}

void read_pvars_at_end() noexcept { take_reading(); }

void end_pvars() noexcept try {
  Pvars& all = pvars();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (!all.is_open) return;
  all.is_open = false;
  call_for_readings(nullptr);
  // They are not stopped before: Open MPI's monitoring would then count for no other handle either.
  for (OpenVariable& variable : all.variables) all.tool.pvar_handle_free(all.session, &variable.handle);
  all.variables.clear();
  all.tool.pvar_session_free(&all.session);
  all.tool.finalize();
  notice_refused(all);
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace commlens
