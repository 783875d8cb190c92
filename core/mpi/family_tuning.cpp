// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/family_tuning.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <string>

#include "core/base/say.h"
#include "core/job/counting.h"
#include "core/job/family_rules.h"
#include "core/job/job.h"
#include "core/mpi/agreement.h"
#include "core/mpi/api.h"
#include "core/mpi/bind.h"
#include "core/mpi/creation.h"
#include "core/mpi/job_groups.h"
#include "core/mpi/state.h"
#include "core/mpi/wrap.h"
#include "core/state/paths.h"
#include "core/state/sites.h"

namespace commlens {

bool tunes_families = false;

namespace {

constexpr int patience = 10;  // seconds; Open MPI's MPI_Init ends with a barrier, so all ranks arrive together

// teller: the rank that says it.
void say_why_not(const std::string& why, int teller = 0) {
  if (job.rank == teller) say("COMMLENS_TUNE: communicators are not tuned: %s", why.c_str());
}

}  // namespace

#if defined(OPEN_MPI)

namespace {

// A variable of a rule, found in the library.
struct Bound {
  int index;
  std::int32_t value;
};

struct Former {
  int index;
  std::int32_t value;
  int source;
};

struct State {
  FamilyRules rules;
  std::vector<std::vector<Bound>> bound;  // by family
  std::vector<int> created;               // communicators, by family
  std::vector<Former> former;             // of the variables that are set now
  std::vector<Former> held;               // values of these during a creation inside the tuned one
  std::vector<int> ranks, world_ranks;    // room for a translation
  bool has_differed = false;
  decltype(&PMPI_Allreduce) allreduce = nullptr;
  MPI_Datatype integer = nullptr;
  MPI_Op minimum = nullptr;
  int (*find)(const char*, int*) = nullptr;
  int (*get)(int, const void*, int*, const char**) = nullptr;
  int (*set)(int, const void*, std::size_t, int, const char*) = nullptr;
};
State* state = nullptr;  // never destroyed

bool read_variable(int index, Former& former) {
  const std::int32_t* storage = nullptr;
  former.index = index;
  if (state->get(index, static_cast<const void*>(&storage), &former.source, nullptr) != 0 || storage == nullptr)
    return false;
  former.value = *storage;
  return true;
}

bool write_variable(const Former& to) {
  return state->set(to.index, &to.value, sizeof to.value, to.source, nullptr) == 0;
}

// Finds the variables of all rules, and tries to set them.  Returns what is wrong; empty: nothing.
std::string bind_variables() {
  for (const RuleFamily& family : state->rules.families) {
    state->bound.emplace_back();
    for (const FamilyVariable& v : family.variables) {
      Former former{};
      if (state->find(v.name.c_str(), &former.index) != 0 || !read_variable(former.index, former))
        return "this Open MPI has no variable " + v.name;
      Former wanted = former;
      wanted.value = v.value;
      const bool is_accepted = write_variable(wanted);
      if (!write_variable(former) || !is_accepted)
        return "Open MPI refuses " + v.name + " = " + std::to_string(v.value);
      state->bound.back().push_back({former.index, v.value});
    }
  }
  return {};
}

bool uses_dynamic_rules() {
  int index = -1;
  const char* storage = nullptr;
  return state->find("coll_tuned_use_dynamic_rules", &index) == 0 &&
         state->get(index, static_cast<const void*>(&storage), nullptr, nullptr) == 0 && storage != nullptr &&
         *storage != 0;
}

// Returns why this process cannot use the rules; empty: it can.
std::string prepare_rules() {
  State& s = *state;
  s.rules = family_rules_of(options().text(Option::tune));
  if (!s.rules.problem.empty()) return s.rules.problem;
  char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  api.Get_library_version(version, &length);
  if (std::strncmp(version, "Open MPI v4.", 12) != 0 && std::strncmp(version, "Open MPI v5.", 12) != 0)
    return "the MPI library is not Open MPI 4 or 5";
  if (job.thread_level >= MPI_THREAD_MULTIPLE || job.thread_level < 0)
    return "with MPI_THREAD_MULTIPLE another thread could create a communicator at the same time";
  if (!options().on(Option::callsites)) return "without call sites (COMMLENS_CALLSITES=0) no family is known";
  s.find = library<decltype(s.find)>("mca_base_var_find_by_name");
  s.get = library<decltype(s.get)>("mca_base_var_get_value");
  s.set = library<decltype(s.set)>("mca_base_var_set_value");
  s.allreduce = library<decltype(s.allreduce)>("PMPI_Allreduce");
  s.integer = static_cast<MPI_Datatype>(data_definition("ompi_mpi_int"));
  s.minimum = static_cast<MPI_Op>(data_definition("ompi_mpi_op_min"));
  if (s.find == nullptr || s.get == nullptr || s.set == nullptr || s.allreduce == nullptr || s.integer == nullptr ||
      s.minimum == nullptr)
    return "this Open MPI lacks a function for its variables";
  if (!uses_dynamic_rules())
    return "coll_tuned_use_dynamic_rules is not 1 (set OMPI_MCA_coll_tuned_use_dynamic_rules=1)";
  s.created.resize(s.rules.families.size());
  s.former.reserve(16);
  s.held.reserve(16);
  s.ranks.resize(static_cast<std::size_t>(job.size));
  s.world_ranks.resize(static_cast<std::size_t>(job.size));
  for (int i = 0; i < job.size; ++i) s.ranks[static_cast<std::size_t>(i)] = i;
  return bind_variables();
}

// Returns whether a communicator is an intracommunicator whose processes have all agreed.  Asks MPI, not our records,
// so that all members get the same answer.
bool is_agreed(MPI_Comm comm) noexcept {
  State& s = *state;
  int inter = 1, size = 0;
  if (comm == api.comm_null || api.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return false;
  MPI_Group group;
  if (api.Comm_size(comm, &size) != MPI_SUCCESS || size > job.size) return false;
  if (api.Comm_group(comm, &group) != MPI_SUCCESS) return false;
  api.Group_translate_ranks(group, size, s.ranks.data(), job_groups.world, s.world_ranks.data());
  api.Group_free(&group);
  for (int i = 0; i < size; ++i) {
    if (s.world_ranks[static_cast<std::size_t>(i)] < 0) return false;
  }
  return true;
}

bool is_at(Site site, const RuleFamily& rule) noexcept {
  if (const SiteFacts* const python = python_place(site); python != nullptr)
    return python->offset == rule.offset && python->build_id == rule.build_id;
  const Site address = address_of(site);
  const Module* const module = address == 0 ? nullptr : module_of_site(site);
  return module != nullptr && address - module->base == rule.offset && module->build_id == rule.build_id;
}

// Whether a communicator that `op` creates at `site` from the communicator with this index belongs to the family.
bool is_of(const RuleFamily& rule, std::uint32_t op, Site site, std::uint32_t parent) noexcept {
  if (parent == 0 || rule.op != op || !is_at(site, rule)) return false;
  const CommRecord& record = registry->records()[parent];
  if (rule.parent < 0) return record.letter == letter_world;
  return is_of(state->rules.families[static_cast<std::size_t>(rule.parent)], record.op, record.site, record.parent);
}

// Returns the number of the family, from 1; 0: none with variables.
int family_of(Op op, MPI_Comm parent, Site site) noexcept {
  const CommView& view = site == 0 ? no_comm() : known_comm(parent);
  for (std::size_t i = 0; i < state->rules.families.size(); ++i) {
    if (!state->bound[i].empty() && is_of(state->rules.families[i], op, site, view.index))
      return static_cast<int>(i) + 1;
  }
  return 0;
}

bool has_rule_for(Op op) noexcept {
  for (std::size_t i = 0; i < state->rules.families.size(); ++i) {
    if (!state->bound[i].empty() && state->rules.families[i].op == op) return true;
  }
  return false;
}

bool set_variables(int family) noexcept {
  for (const Bound& b : state->bound[static_cast<std::size_t>(family) - 1]) {
    Former former{};
    if (!read_variable(b.index, former)) return false;
    state->former.push_back(former);  // has room: reserved
    if (!write_variable({b.index, b.value, former.source})) return false;
  }
  return true;
}

}  // namespace

void begin_tuning() noexcept try {
  if (options().text(Option::tune).empty() || state != nullptr) return;
  state = new State;
  const std::string why = prepare_rules();
  // A rank that cannot use its rules says so to the others, too.
  const Identity own = why.empty() ? combine(state->rules.digest, 1) : combine(static_cast<Identity>(job.rank), 2);
  const Agreement agreement = agree_in_world(own, patience);
  tunes_families = why.empty() && agreement == Agreement::all_equal;
  if (tunes_families) return;
  say_why_not(!why.empty()                         ? why
              : agreement == Agreement::impossible ? "the ranks cannot agree through this point-to-point layer"
              : agreement == Agreement::different  ? "not all ranks can use the same rules"
                                                   : "not all ranks run with commlens and COMMLENS_TUNE",
              agreement == Agreement::unheard && job.size > 1 ? 1 : 0);
} catch (const std::bad_alloc&) {
  say_why_not("out of memory");
}

// A creation inside another one, in a callback of the application: the outer rule does not count for it.
bool begin_inside() noexcept {
  if (state->former.empty() || !state->held.empty()) return false;
  for (const Former& f : state->former) {
    Former held{};
    if (read_variable(f.index, held)) state->held.push_back(held);
    write_variable(f);
  }
  return true;
}

bool begin_creation(Op op, MPI_Comm parent, Site site) noexcept {
  State& s = *state;
  const bool is_inside = !s.former.empty();
  const bool suspends = begin_inside();
  if (!has_rule_for(op) || !is_agreed(parent)) return suspends;
  // A communicator of MPI_Comm_idup could be finished inside this call, with its variables, on some ranks only.
  int family = is_inside || has_pending() ? 0 : family_of(op, parent, site);
  if (family != 0 && !set_variables(family)) {
    end_creation();
    family = -1;
  }
  // The creation is collective over the parent, so all members come here, but perhaps from different call sites.
  // The third number is the lowest rank that has a rule: it tells the user.
  const int teller = family > 0 ? job.rank : job.size;
  int votes[3] = {family, -family, teller}, least[3] = {0, 0, 0};
  const int rc = s.allreduce(votes, least, 3, s.integer, s.minimum, parent);
  if (rc == MPI_SUCCESS && least[0] == family && least[1] == -family && family > 0) {
    ++s.created[static_cast<std::size_t>(family) - 1];
    return true;
  }
  if (!is_inside) end_creation();
  if (family > 0 && least[2] == teller && !s.has_differed) {
    s.has_differed = true;
    say("COMMLENS_TUNE: a communicator is not tuned: its ranks create it at different call sites, or inside or during "
        "the creation of another");
  }
  return suspends;
}

void end_creation() noexcept {
  if (!state->held.empty()) {
    for (const Former& f : state->held) write_variable(f);
    state->held.clear();
    return;
  }
  for (auto f = state->former.rbegin(); f != state->former.rend(); ++f) write_variable(*f);
  state->former.clear();
}

std::vector<Setting> tuned_settings() {
  std::vector<Setting> found;
  if (state == nullptr) return found;
  for (std::size_t i = 0; i < state->created.size(); ++i) {
    if (state->created[i] == 0) continue;
    const RuleFamily& rule = state->rules.families[i];
    char site[32];
    std::snprintf(site, sizeof site, "+0x%llx", static_cast<unsigned long long>(rule.offset));
    for (const FamilyVariable& v : rule.variables) {
      found.push_back(
          {"tune", v.name + " of " + op_facts[rule.op].name + " at " + rule.build_id + site, std::to_string(v.value)});
    }
  }
  return found;
}

#else

void begin_tuning() noexcept {
  if (!options().text(Option::tune).empty()) say_why_not("the MPI library is not Open MPI 4 or 5");
}
bool begin_creation(Op, MPI_Comm, Site) noexcept { return false; }
bool begin_inside() noexcept { return false; }
void end_creation() noexcept {}
std::vector<Setting> tuned_settings() { return {}; }

#endif

void end_tuning() noexcept { tunes_families = false; }

}  // namespace commlens
