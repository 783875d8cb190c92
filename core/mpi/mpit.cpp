// SPDX-License-Identifier: Apache-2.0
#include "core/mpi/mpit.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/hot/comm_view.h"
#include "core/hot/peer_cell.h"
#include "core/job/job.h"
#include "core/mpi/peers.h"
#include "core/mpi/state.h"
#include "core/state/online.h"

namespace commlens {
namespace tool {
namespace {

constexpr const char* category = "commlens";
constexpr const char* category_text =
    "Communication partners and collectives of this process, as commlens counts them since the handle was started.";

// The address of a Handle is the MPI_T handle that the application gets.  Handles are reused but never freed, so that a
// handle that the application freed is never mistaken for one of the library.
struct Handle {
  MPI_T_pvar_session session{};
  std::optional<Watch> watch;  // none: the handle is free
};

struct State {
  std::mutex mutex;
  int users = 0;  // calls of MPI_T_init_thread without an MPI_T_finalize
  PositionMap variables, categories;
  std::unordered_map<MPI_T_pvar_session, bool> sessions;  // the open ones
  std::unordered_map<MPI_T_pvar_handle, MPI_T_pvar_session> theirs;
  std::unordered_map<MPI_T_pvar_handle, Handle*> ours;
  std::deque<Handle> handles;
};

State& state() {
  static auto* const made = new State;  // never destroyed: a destructor of the application may still use it
  return *made;
}

// With matrices off, peers are not counted, and commlens has no variables.
int variable_count() noexcept { return matrix_choice.peers ? static_cast<int>(variables().size()) : 0; }
int category_count() noexcept { return matrix_choice.peers ? 1 : 0; }

// Returns whether calls go to the library only, because MPI_T is not initialised.  pre, as for the functions below: the
// caller holds the lock.
bool is_not_in_use(const State& s) noexcept { return s.users == 0; }

// Return the present number of the library's variables and categories.
int variables_there() noexcept {
  static const auto get = library<decltype(&PMPI_T_pvar_get_num)>("PMPI_T_pvar_get_num");
  int n = 0;
  return get != nullptr && get(&n) == MPI_SUCCESS ? n : 0;
}
int categories_there() noexcept {
  static const auto get = library<decltype(&PMPI_T_category_get_num)>("PMPI_T_category_get_num");
  int n = 0;
  return get != nullptr && get(&n) == MPI_SUCCESS ? n : 0;
}

// At the first query, places our variables and categories after those that the library has then.
void fix(State& s) noexcept {
  if (s.variables.are_fixed()) return;
  s.variables.fix(variables_there(), variable_count());
  s.categories.fix(categories_there(), category_count());
}

// The variable that an index of the application refers to.  Checked here, because Open MPI does not check it and reads
// whatever memory is there.
struct Located {
  bool is_valid, is_ours;
  int which;
};
Located variable_at(State& s, int position) noexcept {
  if (is_not_in_use(s)) return {true, false, position};  // the library reports the error
  fix(s);
  const PositionMap::Entry entry = s.variables.at(position);
  return {entry.is_ours || (entry.which >= 0 && entry.which < variables_there()), entry.is_ours, entry.which};
}
Located category_at(State& s, int position) noexcept {
  if (is_not_in_use(s)) return {true, false, position};
  fix(s);
  const PositionMap::Entry entry = s.categories.at(position);
  return {entry.is_ours || (entry.which >= 0 && entry.which < categories_there()), entry.is_ours, entry.which};
}

// Returns the index of the library's variable with this name and class, or a number below 0.  Open MPI also finds names
// of components that are no longer loaded.
int place_in_library(const char* name, int var_class) noexcept {
  static const auto index_of = library<decltype(&PMPI_T_pvar_get_index)>("PMPI_T_pvar_get_index");
  static const auto info_of = library<decltype(&PMPI_T_pvar_get_info)>("PMPI_T_pvar_get_info");
  int index = -1;
  if (index_of == nullptr || info_of == nullptr || index_of(name, var_class, &index) != MPI_SUCCESS) return -1;
  int name_length = 0, text_length = 0, verbosity, kind, bind, readonly, continuous, atomic;
  MPI_Datatype datatype;
  MPI_T_enum enumtype;
  const int rc = info_of(index, nullptr, &name_length, &verbosity, &kind, &datatype, &enumtype, nullptr, &text_length,
                         &bind, &readonly, &continuous, &atomic);
  return rc == MPI_SUCCESS ? index : -1;
}

int class_of(const Variable& variable) noexcept {
  if (variable.is_of_monitoring && variable.selection.breadth == Breadth::everywhere) return MPI_T_PVAR_CLASS_SIZE;
  return variable.selection.measure == Measure::bytes ? MPI_T_PVAR_CLASS_AGGREGATE : MPI_T_PVAR_CLASS_COUNTER;
}

MPI_Datatype unsigned_long() noexcept {
#if defined(OPEN_MPI)
  static const auto handle = static_cast<MPI_Datatype>(data_definition("ompi_mpi_unsigned_long"));
  return handle;
#else
  return MPI_UNSIGNED_LONG;
#endif
}

MPI_T_pvar_handle all_handles() noexcept {
#if defined(OPEN_MPI)
  return reinterpret_cast<MPI_T_pvar_handle>(-1);
#elif defined(MPI_ABI_VERSION)
  return reinterpret_cast<MPI_T_pvar_handle>(1);
#else
  static const auto* const variable = static_cast<const MPI_T_pvar_handle*>(data_definition("MPI_T_PVAR_ALL_HANDLES"));
  return variable == nullptr ? nullptr : *variable;
#endif
}

// Stores as much of a text as fits.  length: in, the size of the buffer; out, the size that the whole text needs.
void give(const std::string& text, char* buffer, int* length) noexcept {
  if (length == nullptr) return;
  if (buffer != nullptr && *length > 0) {
    const std::size_t n = std::min(text.size(), static_cast<std::size_t>(*length) - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = '\0';
  }
  *length = static_cast<int>(text.size()) + 1;
}

template <class T>
void give(T* to, T value) noexcept {
  if (to != nullptr) *to = value;
}

bool is_open(const State& s, MPI_T_pvar_session session) { return s.sessions.count(session) != 0; }

// Creates a watch for the communicator at this address.  Returns false if commlens does not know it.
bool watched(const Selection& selection, const void* obj_handle, std::optional<Watch>& watch) {
  if (obj_handle == nullptr || !job.ready) return false;
  const auto* const view = static_cast<const CommView*>(comms.find(bits(*static_cast<const MPI_Comm*>(obj_handle))));
  if (view == nullptr) return false;
  std::optional<MemberRanks> found = members(view->index);
  if (found) watch.emplace(selection, std::move(*found));
  return watch.has_value();
}

// The object to which a handle refers in its session.
struct Found {
  int rc;       // not MPI_SUCCESS: the handle is invalid
  Watch* ours;  // null: the library's
};

Found find(State& s, MPI_T_pvar_session session, MPI_T_pvar_handle handle) {
  if (!is_open(s, session)) return {MPI_T_ERR_INVALID_SESSION, nullptr};
  const auto ours = s.ours.find(handle);
  if (ours != s.ours.end() && ours->second->session == session) {
    std::optional<Watch>& watch = ours->second->watch;
    if (watch) return {MPI_SUCCESS, &*watch};
  }
  const auto theirs = s.theirs.find(handle);
  if (theirs != s.theirs.end() && theirs->second == session) return {MPI_SUCCESS, nullptr};
  return {MPI_T_ERR_INVALID_HANDLE, nullptr};
}

// Runs the body of an MPI_T function with the lock held.  If memory runs out, returns an error code instead of throwing
// through MPI.
template <class Body>
int guarded(Body body) noexcept try {
  State& s = state();
  const std::lock_guard<std::mutex> lock(s.mutex);
  return body(s);
} catch (const std::bad_alloc&) {
  return MPI_T_ERR_OUT_OF_HANDLES;
}

// Applies an action to one handle or to all of a session: `next` to the library's, `act` to ours.
template <class Next, class Act>
int to_handles(Next next, MPI_T_pvar_session session, MPI_T_pvar_handle handle, Act act) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session, handle);
    if (handle != all_handles()) {
      const Found found = find(s, session, handle);
      if (found.rc != MPI_SUCCESS) return found.rc;
      if (found.ours == nullptr) return next(session, handle);
      act(*found.ours);
      return MPI_SUCCESS;
    }
    if (!is_open(s, session)) return MPI_T_ERR_INVALID_SESSION;
    for (Handle& h : s.handles) {
      if (h.watch && h.session == session) act(*h.watch);
    }
    const bool has_theirs =
        std::any_of(s.theirs.begin(), s.theirs.end(), [session](const auto& h) { return h.second == session; });
    return has_theirs ? next(session, handle) : MPI_SUCCESS;
  });
}

// Reads one handle: the library's with `next`, ours with `ask`.
template <class Next, class Ask>
int read(Next next, MPI_T_pvar_session session, MPI_T_pvar_handle handle, void* buf, Ask ask) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session, handle, buf);
    const Found found = find(s, session, handle);
    if (found.rc != MPI_SUCCESS) return found.rc;
    if (found.ours == nullptr) return next(session, handle, buf);
    if (buf == nullptr) return MPI_T_ERR_INVALID;
    const std::vector<std::uint64_t> values = ask(*found.ours);
    std::memcpy(buf, values.data(), values.size() * sizeof(std::uint64_t));
    return MPI_SUCCESS;
  });
}

void end_session(State& s, MPI_T_pvar_session session) {
  s.sessions.erase(session);
  for (Handle& h : s.handles) {
    if (h.session == session) h.watch.reset();
  }
  for (auto h = s.theirs.begin(); h != s.theirs.end();) h = h->second == session ? s.theirs.erase(h) : std::next(h);
}

}  // namespace

int init_thread(decltype(&PMPI_T_init_thread) next, int required, int* provided) noexcept {
  const int rc = next(required, provided);
  if (rc != MPI_SUCCESS) return rc;
  return guarded([](State& s) {
    ++s.users;
    return MPI_SUCCESS;
  });
}

int finalize(decltype(&PMPI_T_finalize) next) noexcept {
  guarded([](State& s) {
    if (s.users == 0) return MPI_SUCCESS;
    --s.users;
    if (s.users != 0) return MPI_SUCCESS;
    while (!s.sessions.empty()) end_session(s, s.sessions.begin()->first);
    return MPI_SUCCESS;
  });
  return next();
}

int pvar_get_num(decltype(&PMPI_T_pvar_get_num) next, int* num_pvar) noexcept {
  const int rc = next(num_pvar);
  if (rc != MPI_SUCCESS || num_pvar == nullptr) return rc;
  return guarded([&](State& s) {
    fix(s);
    *num_pvar = s.variables.number(*num_pvar);
    return MPI_SUCCESS;
  });
}

int pvar_get_info(decltype(&PMPI_T_pvar_get_info) next, int pvar_index, char* name, int* name_len, int* verbosity,
                  int* var_class, MPI_Datatype* datatype, MPI_T_enum* enumtype, char* desc, int* desc_len, int* bind,
                  int* readonly, int* continuous, int* atomic) noexcept {
  return guarded([&](State& s) {
    const Located entry = variable_at(s, pvar_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (!entry.is_ours)
      return next(entry.which, name, name_len, verbosity, var_class, datatype, enumtype, desc, desc_len, bind, readonly,
                  continuous, atomic);
    const Variable& variable = variables()[static_cast<std::size_t>(entry.which)];
    const int kind = class_of(variable);
    give(name_of(variable, place_in_library(variable.name, kind) >= 0), name, name_len);
    give(variable.text, desc, desc_len);
    give(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
    give(var_class, kind);
    give(datatype, unsigned_long());
    give(enumtype, MPI_T_enum{});
    give(bind, MPI_T_BIND_MPI_COMM);
    give(readonly, 0);  // it can be reset
    give(continuous, 0);
    give(atomic, 0);
    return MPI_SUCCESS;
  });
}

int pvar_get_index(decltype(&PMPI_T_pvar_get_index) next, const char* name, int var_class, int* pvar_index) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(name, var_class, pvar_index);
    if (name == nullptr || pvar_index == nullptr) return MPI_T_ERR_INVALID;
    fix(s);
    const int theirs = place_in_library(name, var_class);
    const int ours = matrix_choice.peers ? variable_of(name) : -1;
    if (theirs < 0 && ours >= 0 && class_of(variables()[static_cast<std::size_t>(ours)]) == var_class) {
      *pvar_index = s.variables.of_ours(ours);
      return MPI_SUCCESS;
    }
    const int rc = next(name, var_class, pvar_index);
    if (rc == MPI_SUCCESS) *pvar_index = s.variables.of_theirs(*pvar_index);
    return rc;
  });
}

int pvar_session_create(decltype(&PMPI_T_pvar_session_create) next, MPI_T_pvar_session* session) noexcept {
  const int rc = next(session);
  if (rc != MPI_SUCCESS) return rc;
  return guarded([&](State& s) {
    s.sessions[*session] = true;
    return MPI_SUCCESS;
  });
}

int pvar_session_free(decltype(&PMPI_T_pvar_session_free) next, MPI_T_pvar_session* session) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session);
    if (session == nullptr || !is_open(s, *session)) return MPI_T_ERR_INVALID_SESSION;
    MPI_T_pvar_session ended = *session;
    const int rc = next(session);
    if (rc == MPI_SUCCESS) end_session(s, ended);
    return rc;
  });
}

int pvar_handle_alloc(decltype(&PMPI_T_pvar_handle_alloc) next, MPI_T_pvar_session session, int pvar_index,
                      void* obj_handle, MPI_T_pvar_handle* handle, int* count) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session, pvar_index, obj_handle, handle, count);
    if (!is_open(s, session)) return MPI_T_ERR_INVALID_SESSION;
    if (handle == nullptr || count == nullptr) return MPI_T_ERR_INVALID;
    const Located entry = variable_at(s, pvar_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (!entry.is_ours) {
      const int rc = next(session, entry.which, obj_handle, handle, count);
      if (rc == MPI_SUCCESS) s.theirs[*handle] = session;
      return rc;
    }
    std::optional<Watch> watch;
    if (!watched(variables()[static_cast<std::size_t>(entry.which)].selection, obj_handle, watch))
      return MPI_T_ERR_INVALID_HANDLE;
    auto h = std::find_if(s.handles.begin(), s.handles.end(), [](const Handle& one) { return !one.watch; });
    if (h == s.handles.end()) h = s.handles.emplace(h);
    *handle = reinterpret_cast<MPI_T_pvar_handle>(&*h);
    s.ours[*handle] = &*h;
    *count = static_cast<int>(watch->size());
    h->session = session;
    h->watch = std::move(watch);
    return MPI_SUCCESS;
  });
}

int pvar_handle_free(decltype(&PMPI_T_pvar_handle_free) next, MPI_T_pvar_session session,
                     MPI_T_pvar_handle* handle) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session, handle);
    if (handle == nullptr) return MPI_T_ERR_INVALID_HANDLE;
    const Found found = find(s, session, *handle);
    if (found.rc != MPI_SUCCESS) return found.rc;
    if (found.ours != nullptr) {
      s.ours[*handle]->watch.reset();
      *handle = MPI_T_pvar_handle{};
      return MPI_SUCCESS;
    }
    MPI_T_pvar_handle freed = *handle;
    const int rc = next(session, handle);
    if (rc == MPI_SUCCESS) s.theirs.erase(freed);
    return rc;
  });
}

int pvar_start(decltype(&PMPI_T_pvar_start) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return to_handles(next, session, handle, [](Watch& watch) { watch.start(); });
}

int pvar_stop(decltype(&PMPI_T_pvar_stop) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return to_handles(next, session, handle, [](Watch& watch) { watch.stop(); });
}

int pvar_reset(decltype(&PMPI_T_pvar_reset) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle) noexcept {
  return to_handles(next, session, handle, [](Watch& watch) { watch.reset(); });
}

int pvar_read(decltype(&PMPI_T_pvar_read) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
              void* buf) noexcept {
  return read(next, session, handle, buf, [](const Watch& watch) { return watch.read(); });
}

int pvar_readreset(decltype(&PMPI_T_pvar_readreset) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
                   void* buf) noexcept {
  return read(next, session, handle, buf, [](Watch& watch) { return watch.read_and_reset(); });
}

int pvar_write(decltype(&PMPI_T_pvar_write) next, MPI_T_pvar_session session, MPI_T_pvar_handle handle,
               const void* buf) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(session, handle, buf);
    const Found found = find(s, session, handle);
    if (found.rc != MPI_SUCCESS) return found.rc;
    return found.ours == nullptr ? next(session, handle, buf) : MPI_T_ERR_PVAR_NO_WRITE;
  });
}

// ---- categories: one is ours, with all our variables in it ----

namespace {

// Returns the content of a category: the library's through `next`; ours is empty.
template <class Next>
int in_category(Next next, int cat_index, int len, int indices[]) noexcept {
  return guarded([&](State& s) {
    const Located entry = category_at(s, cat_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    return entry.is_ours ? MPI_SUCCESS : next(entry.which, len, indices);
  });
}

// Gets the numbers of variables and categories in one of the library's categories.
bool sizes_of(int which, int& variables_in, int& categories_in) noexcept {
  static const auto info = library<decltype(&PMPI_T_category_get_info)>("PMPI_T_category_get_info");
  int name_length = 0, text_length = 0, controls = 0;
  return info != nullptr && info(which, nullptr, &name_length, nullptr, &text_length, &controls, &variables_in,
                                 &categories_in) == MPI_SUCCESS;
}

}  // namespace

int category_get_num(decltype(&PMPI_T_category_get_num) next, int* num_cat) noexcept {
  const int rc = next(num_cat);
  if (rc != MPI_SUCCESS || num_cat == nullptr) return rc;
  return guarded([&](State& s) {
    fix(s);
    *num_cat = s.categories.number(*num_cat);
    return MPI_SUCCESS;
  });
}

int category_get_info(decltype(&PMPI_T_category_get_info) next, int cat_index, char* name, int* name_len, char* desc,
                      int* desc_len, int* num_cvars, int* num_pvars, int* num_categories) noexcept {
  return guarded([&](State& s) {
    const Located entry = category_at(s, cat_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (!entry.is_ours) return next(entry.which, name, name_len, desc, desc_len, num_cvars, num_pvars, num_categories);
    give(category, name, name_len);
    give(category_text, desc, desc_len);
    give(num_cvars, 0);
    give(num_pvars, variable_count());
    give(num_categories, 0);
    return MPI_SUCCESS;
  });
}

int category_get_index(decltype(&PMPI_T_category_get_index) next, const char* name, int* cat_index) noexcept {
  return guarded([&](State& s) {
    if (is_not_in_use(s)) return next(name, cat_index);
    if (name == nullptr || cat_index == nullptr) return MPI_T_ERR_INVALID;
    fix(s);
    if (category_count() != 0 && std::strcmp(name, category) == 0) {
      *cat_index = s.categories.of_ours(0);
      return MPI_SUCCESS;
    }
    const int rc = next(name, cat_index);
    if (rc == MPI_SUCCESS) *cat_index = s.categories.of_theirs(*cat_index);
    return rc;
  });
}

int category_get_pvars(decltype(&PMPI_T_category_get_pvars) next, int cat_index, int len, int indices[]) noexcept {
  return guarded([&](State& s) {
    const Located entry = category_at(s, cat_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (entry.is_ours) {
      for (int i = 0; indices != nullptr && i < std::min(len, variable_count()); ++i)
        indices[i] = s.variables.of_ours(i);
      return MPI_SUCCESS;
    }
    int n = 0, m = 0;
    const int rc = next(entry.which, len, indices);
    if (rc != MPI_SUCCESS || indices == nullptr || !sizes_of(entry.which, n, m)) return rc;
    for (int i = 0; i < std::min(len, n); ++i) indices[i] = s.variables.of_theirs(indices[i]);
    return rc;
  });
}

int category_get_categories(decltype(&PMPI_T_category_get_categories) next, int cat_index, int len,
                            int indices[]) noexcept {
  return guarded([&](State& s) {
    const Located entry = category_at(s, cat_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (entry.is_ours) return MPI_SUCCESS;
    int n = 0, m = 0;
    const int rc = next(entry.which, len, indices);
    if (rc != MPI_SUCCESS || indices == nullptr || !sizes_of(entry.which, n, m)) return rc;
    for (int i = 0; i < std::min(len, m); ++i) indices[i] = s.categories.of_theirs(indices[i]);
    return rc;
  });
}

int category_get_cvars(decltype(&PMPI_T_category_get_cvars) next, int cat_index, int len, int indices[]) noexcept {
  return in_category(next, cat_index, len, indices);
}

int category_get_events(decltype(&PMPI_T_category_get_events) next, int cat_index, int len, int indices[]) noexcept {
  return in_category(next, cat_index, len, indices);
}

int category_get_num_events(decltype(&PMPI_T_category_get_num_events) next, int cat_index, int* num_events) noexcept {
  return guarded([&](State& s) {
    const Located entry = category_at(s, cat_index);
    if (!entry.is_valid) return MPI_T_ERR_INVALID_INDEX;
    if (!entry.is_ours) return next(entry.which, num_events);
    give(num_events, 0);
    return MPI_SUCCESS;
  });
}

}  // namespace tool
}  // namespace commlens
