// SPDX-License-Identifier: Apache-2.0
#include "core/process/coverage.h"

#include <set>
#include <sstream>

#include "core/profile/profile.h"
#include "tests/unit/check.h"
#include "tests/unit/rank.h"

namespace commlens {
namespace {

// Where things lie in these tests.
constexpr std::uint64_t app = 0x1000, mpi = 0x3000, binding = 0x5000, us = 0x7000;

std::vector<Module> modules() {
  return {{"/opt/app/solver", "", app, app, app + 0x1000},
          {"/opt/mpi/libmpi.so.40", "", mpi, mpi, mpi + 0x1000},
          {"/opt/mpi/libmpi_mpifh.so.40", "", binding, binding, binding + 0x1000},
          {"/opt/commlens/libcommlens.so", "", us, us, us + 0x1000}};
}

Importer importer(const char* path, std::uint64_t begin, std::vector<Import> imports) {
  return {path, begin, begin + 0x1000, std::move(imports)};
}

// An MPI library with an extension of its own and without MPI_Send_c.
std::uint64_t definition(const std::string& name) {
  const std::set<std::string> has = {"MPI_Send", "MPI_Bcast", "MPIX_Query", "mpi_comm_dup_fn_"};
  return has.count(name) != 0 ? mpi + 8 : 0;
}

std::string listed(const std::vector<ImportCoverage>& coverage) {
  std::ostringstream text;
  for (const ImportCoverage& c : coverage) {
    text << c.symbol << " in " << c.object << ": " << explained(c.symbol, c.treatment).first << "\n";
  }
  return text.str();
}

// What becomes of one import of the application.
std::string treated(const std::string& symbol, std::uint64_t bound = us, const std::vector<Importer>& others = {}) {
  std::vector<Importer> all = others;
  all.push_back(importer("/opt/app/solver", app, {{symbol, bound}}));
  const std::vector<ImportCoverage> coverage = coverage_of(all, modules(), definition);
  if (coverage.size() != 1) return "left out";
  const auto [state, reason] = explained(coverage[0].symbol, coverage[0].treatment);
  return reason.empty() ? state : state + (": " + reason);
}

bool begins(const std::string& text, const std::string& with) { return text.compare(0, with.size(), with) == 0; }

}  // namespace

TEST(every_spelling_leads_to_its_procedure) {
  for (const char* symbol : {"MPI_Type_create_f90_real", "PMPI_Type_create_f90_real", "mpi_type_create_f90_real_",
                             "mpi_type_create_f90_real__", "MPI_TYPE_CREATE_F90_REAL", "mpi_type_create_f90_real",
                             "pmpi_type_create_f90_real_", "mpi_type_create_f90_real_f08_"}) {
    CHECK_EQ(procedure_of(symbol), "MPI_Type_create_f90_real");
  }
  for (const char* symbol : {"MPI_Send_c", "PMPI_Send_c", "mpi_send_f08ts_", "mpi_send_f08ts_large_", "PMPI_SEND"}) {
    CHECK_EQ(procedure_of(symbol), "MPI_Send");
  }
  CHECK_EQ(procedure_of("mpi_win_allocate_cptr_"), "MPI_Win_allocate");
  CHECK_EQ(procedure_of("mpi_sizeof_real64_r2_"), "MPI_Sizeof");
  CHECK_EQ(procedure_of("MPI_Comm_f2c"), "MPI_Comm_f2c");  // no large-count form of MPI_Comm_f2
  CHECK_EQ(procedure_of("MPIX_Query"), "MPIX_Query");
  CHECK_EQ(procedure_of("mpi_c"), "mpi_c");
}

TEST(what_goes_through_an_entry_is_measured) {
  CHECK_EQ(treated("MPI_Send"), "measured");
  CHECK_EQ(treated("PMPI_Bcast"), "measured");
  CHECK_EQ(treated("MPI_Send", app + 0x10), "measured");  // not called yet: bound to its own stub
  CHECK_EQ(treated("MPI_Send", 0x90000), "measured");     // another tool is in between
}

TEST(init_and_finalize_are_measured_apart) {
  CHECK(begins(treated("MPI_Init"), "measured: begins, ends or controls"));
  CHECK(begins(treated("mpi_finalize_"), "measured: begins, ends or controls"));
}

TEST(what_is_left_out_on_purpose_says_why) {
  CHECK_EQ(treated("MPI_Wtime"), "skipped: a clock: measuring it would disturb what the application measures with it");
  CHECK_EQ(treated("MPI_Comm_c2f"),
           "skipped: converts a handle or a status between languages: often a macro, never communicates");
  CHECK(begins(treated("MPI_T_pvar_read"), "skipped: the tool information interface"));
  CHECK(begins(treated("MPI_Address"), "skipped: removed from the standard"));
  CHECK(begins(treated("mpi_f_sync_reg_"), "skipped: exists in Fortran only"));
}

TEST(calls_bound_past_us_are_unseen) {
  CHECK(begins(treated("MPI_Send", mpi + 0x20), "unseen: the loader bound it directly to the MPI library"));
}

TEST(what_the_library_does_not_have_is_absent) {
  CHECK(begins(treated("MPI_Send_c"), "absent: the loaded MPI library"));
}

TEST(an_extension_of_the_mpi_library_is_unseen_and_a_name_of_the_application_is_its_own) {
  CHECK(begins(treated("MPIX_Query"), "unseen: an extension"));
  CHECK_EQ(treated("MPI_UNWEIGHTED", mpi + 0x20), "left out");  // a variable
  CHECK_EQ(treated("mpi_helper_", app + 0x20), "left out");
  CHECK_EQ(treated("MPI_Solve"), "left out");
  CHECK_EQ(treated("mpi_comm_dup_fn_", mpi + 0x20), "left out");  // passed on, never called
}

TEST(a_fortran_name_is_measured_if_its_binding_calls_the_c_procedure) {
  const std::vector<Importer> calls = {importer("/opt/mpi/libmpi_mpifh.so.40", binding, {{"PMPI_Bcast", us}})};
  CHECK_EQ(treated("mpi_bcast_", us, calls), "measured");
  CHECK_EQ(treated("mpi_bcast_f08_", binding + 8, calls), "measured");
  CHECK(begins(treated("mpi_send_", us, calls), "unseen: the Fortran binding of this MPI library does not call"));
  const std::vector<Importer> past = {importer("/opt/mpi/libmpi_mpifh.so.40", binding, {{"PMPI_Bcast", mpi + 8}})};
  CHECK(begins(treated("mpi_bcast_", us, past), "unseen: the Fortran binding"));
}

TEST(the_mpi_library_and_its_parts_are_not_the_application) {
  for (const char* path : {"/usr/lib/libmpi.so.40", "/usr/lib/libmpich.so.12.2.2", "libmpifort.so.12",
                           "/usr/lib/openmpi/lib/openmpi3/mca_io_romio321.so", "/usr/lib/libmca_common_ompio.so.41",
                           "/usr/lib/libmpi_usempif08.so.40", "/wheel/libmpi-1a2b3c.so.12.1",
                           "/opt/cray/libmpi_gnu_123.so.12", "/opt/libmpi_usempi_ignore_tkr.so.40"}) {
    CHECK(is_mpi_library(path));
  }
  for (const char* path : {"/opt/libmpiP.so", "/opt/app/libmpisolver.so", "/libmpi/app", "MPI.cpython-311.so", "",
                           "/app/libmpi_utils.so", "libmpi_tools.so.1"}) {
    CHECK(!is_mpi_library(path));
  }
}

TEST(objects_are_told_by_their_file_name_and_each_for_itself) {
  const std::vector<Importer> both = {importer("/opt/app/lib/libphysics.so", 0x9000, {{"MPI_Bcast", us}}),
                                      importer("/opt/app/solver", app, {{"MPI_Bcast", us}, {"MPI_Wtime", mpi + 8}})};
  CHECK_EQ(listed(coverage_of(both, modules(), definition)),
           "MPI_Bcast in libphysics.so: measured\nMPI_Bcast in solver: measured\nMPI_Wtime in solver: skipped\n");
}

TEST(what_is_written_is_read_back_and_damage_is_noticed) {
  const std::vector<ImportCoverage> told = {{"MPI_Send", "solver", Treatment::measured},
                                            {"MPI_Wtime", "solver", Treatment::skipped},
                                            {"MPI_Send", "libphysics.so", Treatment::past_us}};
  const std::string text = written(told);
  std::vector<ImportCoverage> back;
  CHECK(read_coverage(text, back));
  CHECK_EQ(listed(back), listed(told));
  for (std::size_t n = 0; n < text.size(); ++n) {
    std::vector<ImportCoverage> part;
    CHECK(!read_coverage(text.substr(0, n), part));
  }
  std::string strange = text;
  strange.back() = 100;
  CHECK(!read_coverage(strange, back));
}

TEST(ranks_that_import_the_same_are_counted_and_the_worst_treatment_is_kept) {
  const std::string usual = written({{"MPI_Send", "solver", Treatment::measured}});
  const std::string other =
      written({{"MPI_Bcast", "io", Treatment::measured}, {"MPI_Send", "solver", Treatment::past_us}});
  std::vector<std::vector<char>> packages;
  for (int rank = 0; rank < 5; ++rank) {
    packages.push_back(
        packed_by_rank(rank, [=](Registry& registry) { add_world(registry, rank, 5); }, rank == 3 ? other : usual));
  }
  const auto coverage = merged(packages).dictionary.coverage();
  CHECK_EQ(coverage.size(), 2u);
  const auto send = coverage.at({"MPI_Send", "solver"});
  CHECK_EQ(send.ranks, 5);
  CHECK(send.treatment == Treatment::past_us);
  CHECK_EQ(coverage.at({"MPI_Bcast", "io"}).ranks, 1);
}

TEST(a_rank_whose_imports_are_damaged_is_left_out) {
  const std::vector<char> damaged = packed_by_rank(
      0, [](Registry& registry) { add_world(registry, 0, 1); },
      std::string("\x05"
                  "abc"));
  Profile profile;
  CHECK(!profile.add(damaged.data(), damaged.size()));
  CHECK_EQ(profile.ranks.size(), 0u);
}

}  // namespace commlens
