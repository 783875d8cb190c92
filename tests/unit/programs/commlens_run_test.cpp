// SPDX-License-Identifier: Apache-2.0
// The real commlens-run on programs that are whole, cut off and garbled.  It stands alone in a directory without any
// library beside it, so that it says which MPI it would have needed.  The files have no execute permission: whatever
// it makes of them, they are not run.
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>

#include "tests/unit/check.h"

extern char** environ;

namespace commlens {
namespace {

namespace fs = std::filesystem;

// A process under a sanitizer takes ten times as long to start.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t step = 7;
#else
constexpr std::size_t step = 1;
#endif

struct Result {
  int code;  // exit code, or minus the signal
  std::string said;
};

// A directory with commlens-run alone in bin/, and the file "program".
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char path[] = "/tmp/commlens-run-XXXXXX";
    root_ = mkdtemp(path) != nullptr ? path : "/nonexistent";
    fs::create_directory(root_ / "bin");
    fs::copy_file(COMMLENS_RUN, root_ / "bin" / "commlens-run");
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE",
                             "MPI_LOCALNRANKS", "SLURM_PROCID", "PALS_RANKID", "MV2_COMM_WORLD_RANK",
                             "MVP_COMM_WORLD_RANK", "COMMLENS_ENABLE", "COMMLENS_MPI"}) {
      unsetenv(name);
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string program() const { return root_ / "program"; }

  Result run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), root_ / "bin" / "commlens-run");
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    const std::string output = root_ / "said";
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = -1;
    const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return {-1000, "posix_spawn failed"};
    int status = 0;
    for (int tries = 0; waitpid(child, &status, WNOHANG) == 0; ++tries) {
      if (tries > 20'000) kill(child, SIGKILL);  // 10 s: it hangs
      usleep(500);
    }
    std::ifstream file(output);
    std::ostringstream said;
    said << file.rdbuf();
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), said.str()};
  }

  Result run_file(const std::string& content) const {
    std::ofstream(program(), std::ios::binary) << content;
    return run({program()});
  }

 private:
  fs::path root_;
};

// The smallest program that needs `library`: three segments, a dynamic section, its strings.
struct Elf {
  Elf64_Ehdr head{};
  Elf64_Phdr interpreter{}, load{}, dynamic{};
  Elf64_Dyn needs{}, needs_mpi{}, strings_at{}, end{};
  char strings[64] = "";
};
constexpr Elf64_Addr load_address = 0x400000;

Elf elf_with(const std::string& library) {
  Elf e;
  const char identification[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  std::memcpy(e.head.e_ident, identification, sizeof identification);
  e.head.e_type = ET_DYN;
  e.head.e_machine = EM_X86_64;
  e.head.e_phoff = offsetof(Elf, interpreter);
  e.head.e_phentsize = sizeof(Elf64_Phdr);
  e.head.e_phnum = 3;
  e.interpreter.p_type = PT_INTERP;
  e.load.p_type = PT_LOAD;
  e.load.p_vaddr = load_address;
  e.load.p_filesz = e.load.p_memsz = sizeof(Elf);
  e.dynamic.p_type = PT_DYNAMIC;
  e.dynamic.p_offset = offsetof(Elf, needs);
  e.dynamic.p_filesz = 4 * sizeof(Elf64_Dyn);
  const std::string other = "libm.so.6";
  std::memcpy(e.strings + 1, other.c_str(), other.size());
  std::memcpy(e.strings + 2 + other.size(), library.c_str(), library.size());
  e.needs.d_tag = e.needs_mpi.d_tag = DT_NEEDED;
  e.needs.d_un.d_val = 1;
  e.needs_mpi.d_un.d_val = 2 + other.size();
  e.strings_at.d_tag = DT_STRTAB;
  e.strings_at.d_un.d_ptr = load_address + offsetof(Elf, strings);
  return e;
}

std::string bytes_of(const Elf& e) { return {reinterpret_cast<const char*>(&e), sizeof e}; }

constexpr int not_executable = 126;

// Whatever a file holds: no crash, and the answer of execvp.
void check_survives(const TemporaryFolder& place, const std::string& content, const std::string& what) {
  const Result result = place.run_file(content);
  if (result.code != not_executable) check::fail(__FILE__, __LINE__, what + ": " + result.said);
}

bool says(const Result& result, const char* part) { return result.said.find(part) != std::string::npos; }

}  // namespace

TEST(a_program_says_which_mpi_it_needs) {
  const TemporaryFolder place;
  for (const char* library :
       {"libmpi.so.40", "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpi.so.0", "libmpi_ibm.so.3"}) {
    const Result result = place.run_file(bytes_of(elf_with(library)));
    CHECK(says(result, "uses Open MPI, for which this commlens was not built"));
    CHECK_EQ(result.code, not_executable);
  }
  for (const char* library : {"libmpich.so.12", "libmpi.so.12", "libmpifort.so.12", "libmpi_gnu_123.so.12",
                              "libmpi_cray.so.12", "libmpifort_gnu_91.so.12", "libmpi_nvidia.so.12"}) {
    CHECK(says(place.run_file(bytes_of(elf_with(library))), "uses MPICH, for which this commlens was not built"));
  }
  for (const char* library : {"libmpi_abi.so.1", "libmpifort_abi.so.1"}) {
    CHECK(says(place.run_file(bytes_of(elf_with(library))), "uses the standard ABI, for which this commlens"));
  }
  CHECK(!says(place.run_file(bytes_of(elf_with("libmpiother.so.1"))), " uses "));
}

TEST(a_program_without_an_interpreter_is_called_statically_linked) {
  const TemporaryFolder place;
  Elf e = elf_with("libmpi.so.40");
  e.interpreter.p_type = PT_NOTE;
  CHECK(says(place.run_file(bytes_of(e)), "statically linked"));
}

TEST(a_file_cut_off_anywhere_is_survived) {
  const TemporaryFolder place;
  const std::string whole = bytes_of(elf_with("libmpi.so.40"));
  for (std::size_t size = 0; size < whole.size(); size += step) {
    check_survives(place, whole.substr(0, size), "first " + std::to_string(size) + " bytes");
  }
}

TEST(a_file_with_any_field_at_a_limit_is_survived) {
  const TemporaryFolder place;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t size = sizeof(Elf);
  const std::uint64_t limits[] = {most, (std::uint64_t{1} << 63) - 1, size, size - 1, load_address - 1};
  std::size_t n = 0;
  for (std::size_t at = 0; at + 8 <= offsetof(Elf, strings); at += 4) {
    for (const std::uint64_t value : limits) {
      if (n++ % step != 0) continue;
      std::string file = bytes_of(elf_with("libmpi.so.40"));
      std::memcpy(&file[at], &value, at < offsetof(Elf, interpreter) && at >= 52 ? 2 : 8);
      std::memcpy(&file[0], ELFMAG, SELFMAG);
      check_survives(place, file, std::to_string(value) + " at " + std::to_string(at));
    }
  }
}

TEST(a_garbled_file_is_survived) {
  const TemporaryFolder place;
  std::mt19937 random(1);
  for (std::size_t i = 0; i < 400; i += step) {
    std::string file = bytes_of(elf_with(i % 2 == 0 ? "libmpi.so.40" : "libmpich.so.12"));
    for (std::size_t changes = 1 + random() % 8; changes > 0; --changes) {
      file[EI_CLASS + 1 + random() % (file.size() - EI_CLASS - 1)] = static_cast<char>(random());
    }
    if (random() % 4 == 0) file.resize(random() % file.size());
    check_survives(place, file, "garbled file " + std::to_string(i));
  }
}

TEST(what_is_no_regular_file_does_not_stop_it) {
  const TemporaryFolder place;
  CHECK_EQ(mkfifo(place.program().c_str(), 0600), 0);
  CHECK_EQ(place.run({place.program()}).code, not_executable);
  CHECK_EQ(place.run({"/dev/null"}).code, not_executable);
  CHECK_EQ(place.run({"/tmp"}).code, not_executable);
  CHECK_EQ(place.run({"/nonexistent/program"}).code, 127);
  CHECK_EQ(place.run({"no-such-program-anywhere"}).code, 127);
}

TEST(arguments_output_and_exit_code_are_the_programs) {
  const TemporaryFolder place;
  const Result result = place.run({"sh", "-c", "echo \"$0|$1\"; exit 7", "a b", "--help"});
  CHECK_EQ(result.said, std::string("a b|--help\n"));
  CHECK_EQ(result.code, 7);
  CHECK_EQ(place.run({}).code, 2);
  CHECK_EQ(place.run({"--help"}).code, 0);
}

TEST(help_and_version_are_printed) {
  const TemporaryFolder place;
  const Result help = place.run({"--help"});
  CHECK_EQ(help.code, 0);
  CHECK_EQ(help.said.substr(0, help.said.find('\n')),
           std::string("usage: mpirun -n 4 commlens-run PROGRAM [ARGUMENT...]"));
  const Result version = place.run({"--version"});
  CHECK_EQ(version.code, 0);
  CHECK_EQ(version.said, std::string("commlens-run " COMMLENS_VERSION "\n"));
}

TEST(an_option_of_the_launcher_is_refused_with_the_right_order) {
  const TemporaryFolder place;
  const std::string refusal = "commlens: commlens-run starts a program under the profiler and has no option ";
  const std::string before = "; put options of the launcher before it: ";
  const Result number = place.run({"-n", "2", "./a", "-o", "x"});
  CHECK_EQ(number.code, 2);
  CHECK_EQ(number.said, refusal + "-n" + before + "mpirun -n 2 commlens-run ./a\n");
  CHECK_EQ(place.run({"-np", "16", "./b"}).said, refusal + "-np" + before + "mpirun -np 16 commlens-run ./b\n");
  // It is unknown which of these words is the program.
  for (const char* option : {"--map-by", "-x", "-n"}) {
    const Result other = place.run({option, "core"});
    CHECK_EQ(other.code, 2);
    CHECK_EQ(other.said, refusal + option + before + "mpirun -n 2 commlens-run ./a\n");
  }
}

TEST(an_option_for_the_output_is_refused_with_the_variable) {
  const TemporaryFolder place;
  const std::string refusal = "commlens: commlens-run starts a program under the profiler and has no option ";
  const std::string variable = "; set the name of the profile with COMMLENS_OUTPUT=";
  const Result separate = place.run({"-o", "x.db", "./a"});
  CHECK_EQ(separate.code, 2);
  CHECK_EQ(separate.said, refusal + "-o" + variable + "x.db\n");
  CHECK_EQ(place.run({"--output=y.db", "./a"}).said, refusal + "--output=y.db" + variable + "y.db\n");
}

TEST(an_option_is_explained_by_rank_0_only) {
  const TemporaryFolder place;
  setenv("PMI_RANK", "1", 1);
  const Result other = place.run({"-n", "2", "./a"});
  CHECK_EQ(other.code, 2);
  CHECK_EQ(other.said, std::string());
  unsetenv("PMI_RANK");
}

TEST(a_program_whose_name_begins_with_a_dash_follows_two_dashes) {
  const TemporaryFolder place;
  const Result result = place.run({"--", "-no-such-program"});
  CHECK_EQ(result.code, 127);
  CHECK_EQ(result.said, std::string("commlens: cannot run -no-such-program: No such file or directory\n"));
}

TEST(an_mpi_asked_for_by_name_is_believed_and_switched_off_is_silent) {
  const TemporaryFolder place;
  setenv("COMMLENS_MPI", "mpich", 1);
  CHECK(says(place.run({"true"}), "true uses MPICH"));
  setenv("COMMLENS_MPI", "other", 1);
  CHECK(says(place.run({"true"}), "is invalid; use openmpi, mpich or abi"));
  setenv("COMMLENS_ENABLE", "0", 1);
  const Result off = place.run({"true"});
  CHECK_EQ(off.said, std::string());
  CHECK_EQ(off.code, 0);
  unsetenv("COMMLENS_ENABLE");
  unsetenv("COMMLENS_MPI");
}

}  // namespace commlens
