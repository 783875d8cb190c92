// SPDX-License-Identifier: Apache-2.0
// Open MPI's control variables are its MCA parameters.  They are read with the exported functions that ompi_info uses,
// because MPI_T_init_thread would load all components of the library (docs/decisions/0022).
#include "core/mpi/control.h"

#include <mpi.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "core/mpi/api.h"
#include "core/mpi/bind.h"

namespace commlens {

#if defined(OPEN_MPI)

namespace {

// Constants of Open MPI 4 and 5: sources of a value, and the output format of dump() with one line per variable.
enum Source : int { by_default = 0, of_environment = 2 };
constexpr int one_line = 2;

bool is_known_release() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  api.Get_library_version(version, &length);
  return std::strncmp(version, "Open MPI v4.", 12) == 0 || std::strncmp(version, "Open MPI v5.", 12) == 0;
}

// Returns the text of variable `index` as dump() has it, and frees what dump() allocated.
std::string line_of(int (*dump)(int, char***, int), int index) {
  char** lines = nullptr;
  if (dump(index, &lines, one_line) != 0 || lines == nullptr) return {};
  std::string text = lines[0] == nullptr ? "" : lines[0];
  for (char** line = lines; *line != nullptr; ++line) std::free(*line);
  std::free(static_cast<void*>(lines));
  return text;
}

}  // namespace

std::vector<Setting> control_variables() {
  const auto count = library<int (*)()>("mca_base_var_get_count");
  const auto value = library<int (*)(int, const void*, int*, const char**)>("mca_base_var_get_value");
  const auto dump = library<int (*)(int, char***, int)>("mca_base_var_dump");
  std::vector<Setting> found;
  if (!is_known_release() || count == nullptr || value == nullptr || dump == nullptr) return found;
  const int n = count();
  for (int i = 0; i < n; ++i) {
    int source = by_default;
    if (value(i, nullptr, &source, nullptr) != 0 || source == by_default || source == of_environment) continue;
    const Setting setting = control_variable_in(line_of(dump, i));
    if (!setting.name.empty()) found.push_back(setting);
  }
  return found;
}

#else

std::vector<Setting> control_variables() { return {}; }

#endif

}  // namespace commlens
