// SPDX-License-Identifier: Apache-2.0
// commlens-run [--] PROGRAM [ARGUMENT...]
//
// Finds out which MPI library the program uses, adds the profiler built for it to LD_PRELOAD and executes the program.
// Prints nothing unless something is wrong; then it runs the program all the same, unprofiled.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/privileged.h"
#include "core/base/processor.h"
#include "core/programs/choice.h"

enum { wrong_usage = 2, shell_not_found = 127, shell_not_executable = 126 };

// Prints one line, with "commlens: " before it.
//
// If nobody reads stderr any more, SIGPIPE must not kill this process.  It must not be ignored either, because the
// program would inherit that.
__attribute__((format(printf, 1, 2))) static void say(const char* format, ...) {
  sigset_t broken_pipe, before;
  sigemptyset(&broken_pipe);
  sigaddset(&broken_pipe, SIGPIPE);
  sigprocmask(SIG_BLOCK, &broken_pipe, &before);
  va_list arguments;
  va_start(arguments, format);
  char line[PATH_MAX + 512];
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  dprintf(STDERR_FILENO, "commlens: %s\n", line);
  const struct timespec at_once = {0, 0};
  sigtimedwait(&broken_pipe, NULL, &at_once);
  sigprocmask(SIG_SETMASK, &before, NULL);
}

// The facts about a program that its file contains.
struct program {
  bool is_elf;
  bool is_static;
  const struct family* family;  // NULL: unknown
};

// Reads the dynamic section of a mapped 64-bit ELF file.  Checks every offset against the size of the file.
static struct program read_elf(const unsigned char* file, size_t size) {
  struct program p = {true, true, NULL};
  Elf64_Ehdr head;
  memcpy(&head, file, sizeof head);
  Elf64_Phdr segments[64];
  const size_t count = head.e_phnum < 64 ? head.e_phnum : 64;
  if (head.e_phentsize != sizeof *segments || head.e_phoff > size || count * sizeof *segments > size - head.e_phoff) {
    return p;
  }
  memcpy(segments, file + head.e_phoff, count * sizeof *segments);
  const Elf64_Phdr* dynamic = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].p_type == PT_DYNAMIC) dynamic = &segments[i];
    if (segments[i].p_type == PT_INTERP) p.is_static = false;
  }
  if (dynamic == NULL || dynamic->p_offset > size || dynamic->p_filesz > size - dynamic->p_offset) return p;

  const size_t entries = dynamic->p_filesz / sizeof(Elf64_Dyn);
  Elf64_Dyn entry;
  Elf64_Addr strings_at = 0;
  for (size_t i = 0; i < entries; ++i) {
    memcpy(&entry, file + dynamic->p_offset + i * sizeof entry, sizeof entry);
    if (entry.d_tag == DT_STRTAB) strings_at = entry.d_un.d_ptr;
  }
  size_t strings = 0;
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].p_type == PT_LOAD && strings_at >= segments[i].p_vaddr &&
        strings_at - segments[i].p_vaddr < segments[i].p_filesz) {
      strings = strings_at - segments[i].p_vaddr + segments[i].p_offset;
    }
  }
  for (size_t i = 0; strings != 0 && i < entries; ++i) {
    memcpy(&entry, file + dynamic->p_offset + i * sizeof entry, sizeof entry);
    if (entry.d_tag != DT_NEEDED || entry.d_un.d_val > size || strings > size - entry.d_un.d_val) continue;
    const size_t at = strings + entry.d_un.d_val;
    if (at >= size || memchr(file + at, '\0', size - at) == NULL) continue;
    const char* const needed = (const char*)file + at;
    if (p.family == NULL) p.family = family_of_library(needed);
  }
  return p;
}

static struct program look_at(const char* path) {
  struct program p = {false, false, NULL};
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return p;
  struct stat st;
  if (fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(Elf64_Ehdr)) {
    const size_t size = (size_t)st.st_size;
    unsigned char* const file = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file != MAP_FAILED) {
      if (memcmp(file, ELFMAG, SELFMAG) == 0 && file[EI_CLASS] == ELFCLASS64) p = read_elf(file, size);
      munmap(file, size);
    }
  }
  close(fd);
  return p;
}

// Finds the program as execvp() does and then, as Open MPI's launcher does, in the current directory.  Returns false if
// there is none.
static bool find_program(const char* name, char* path) {
  if (strchr(name, '/') != NULL) return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
  const char* directories = getenv("PATH");
  if (directories == NULL) directories = "/bin:/usr/bin";
  for (;;) {
    const size_t length = strcspn(directories, ":");
    const int n = length == 0 ? snprintf(path, PATH_MAX, "./%s", name)
                              : snprintf(path, PATH_MAX, "%.*s/%s", (int)length, directories, name);
    if (n < PATH_MAX && access(path, X_OK) == 0) return true;
    if (directories[length] == '\0') break;
    directories += length + 1;
  }
  if (getenv("OMPI_COMM_WORLD_RANK") == NULL) return false;
  return snprintf(path, PATH_MAX, "./%s", name) < PATH_MAX && access(path, X_OK) == 0;
}

// Stores the folder of this program, with a slash at its end.  Returns false if it cannot be determined.  Without /proc
// it is derived from the name by which this program was started, which may be a link.
static bool find_own_folder(char self[PATH_MAX]) {
  const ssize_t n = readlink("/proc/self/exe", self, PATH_MAX - 1);
  if (n > 0) {
    self[n] = '\0';
  } else {
    const char* const name = (const char*)getauxval(AT_EXECFN);
    if (name == NULL || realpath(name, self) == NULL) return false;
  }
  char* const slash = strrchr(self, '/');
  if (slash == NULL) return false;
  slash[1] = '\0';
  return true;
}

// Finds a library of commlens relative to this program, in a build tree, an installation or a Python environment.
static bool find_library(const char* folder, const char* name, char* path) {
  static const char* const places[] = {"../lib/%s/%s", "../lib/commlens/%s/%s", "../lib64/commlens/%s/%s",
                                       "../lib/" COMMLENS_MULTIARCH "/commlens/%s/%s", "../libexec/commlens/%s/%s"};
  char self[PATH_MAX];
  if (!find_own_folder(self)) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
    char relative[128];
    char joined[PATH_MAX + 128];
    snprintf(relative, sizeof relative, places[i], folder, name);
    snprintf(joined, sizeof joined, "%s%s", self, relative);
    if (realpath(joined, path) != NULL) return true;
  }
  return false;
}

// Other interfaces by which a program marks its regions, and the environment that loads the adapter for each.
struct annotation {
  const char* name;
  const char* adapter;
  const char* variable;      // names the tool, set by us; NULL: the adapter is preloaded
  const char* old_variable;  // read by older versions; newer ones want the same value
  const char* argument;      // of the program; names the tool instead of the variable
};
static const struct annotation annotations[] = {
    {"kokkos", "libcommlens-kokkos.so", "KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY", "--kokkos-tools-lib"},
    {"kokkos-kernels", "libcommlens-kokkos-kernels.so", "KOKKOS_TOOLS_LIBS", "KOKKOS_PROFILE_LIBRARY",
     "--kokkos-tools-lib"},
    {"nvtx", "libcommlens-nvtx.so", "NVTX_INJECTION64_PATH", NULL, NULL},
    {"openmp", "libcommlens-openmp.so", "OMP_TOOL_LIBRARIES", NULL, NULL},
    {"caliper", caliper_adapter, NULL, NULL, NULL},
};

static const struct annotation* annotation_called(const char* name, size_t length) {
  for (size_t i = 0; i < sizeof annotations / sizeof *annotations; ++i) {
    if (strlen(annotations[i].name) == length && strncmp(name, annotations[i].name, length) == 0) {
      return &annotations[i];
    }
  }
  return NULL;
}

static bool is_set(const char* variable) {
  const char* const value = variable == NULL ? NULL : getenv(variable);
  return value != NULL && *value != '\0';
}

// True if all entries of a list with colons are adapters of ours.
static bool are_ours(const char* list) {
  while (*list != '\0') {
    const size_t length = strcspn(list, ":");
    const char* name = list + length;
    while (name > list && name[-1] != '/') --name;
    if (length != 0 && strncmp(name, "libcommlens-", 12) != 0) return false;
    list += length + (list[length] != '\0');
  }
  return true;
}

// Returns the variable or argument by which the user has chosen a tool, or NULL.  The user's choice stays.  A variable
// that an outer commlens-run has set is not a choice.
static const char* chosen_by(const struct annotation* annotation, char** arguments) {
  if (is_set(annotation->old_variable)) return annotation->old_variable;
  if (is_set(annotation->variable) && !are_ours(getenv(annotation->variable))) {
    return annotation->variable;
  }
  for (; annotation->argument != NULL && *arguments != NULL; ++arguments) {
    if (strncmp(*arguments, annotation->argument, strlen(annotation->argument)) == 0) return *arguments;
  }
  return NULL;
}

// Sets up the adapters that COMMLENS_ADOPT asks for.  `preloaded` gets the path of an adapter that must be preloaded.
static void adopt(char** arguments, char preloaded[PATH_MAX]) {
  const char* wanted = getenv("COMMLENS_ADOPT");
  if (wanted == NULL) return;
  while (*(wanted += strspn(wanted, ", ")) != '\0') {
    const size_t length = strcspn(wanted, ", ");
    const struct annotation* const annotation = annotation_called(wanted, length);
    char path[PATH_MAX];
    if (annotation == NULL) {
      if (may_speak()) {
        say("COMMLENS_ADOPT=%.*s is invalid; use kokkos, kokkos-kernels, nvtx, openmp or caliper", (int)length, wanted);
      }
    } else if (chosen_by(annotation, arguments) != NULL) {
      if (may_speak()) {
        say("%s already names a tool; COMMLENS_ADOPT=%s is ignored", chosen_by(annotation, arguments),
            annotation->name);
      }
    } else if (!find_library("adapters", annotation->adapter, path)) {
      if (may_speak()) say("%s is not installed beside commlens-run", annotation->adapter);
    } else if (annotation->variable != NULL) {
      setenv(annotation->variable, path, 1);
    } else {
      strcpy(preloaded, path);
    }
    wanted += length;
  }
}

// Puts `library`, and the adapter that must be preloaded, into LD_PRELOAD: before the present entries, except for those
// that must come first.  Removes the entries of an outer commlens-run.
static void preload(const char* library, char** arguments) {
  if (strpbrk(library, separators) != NULL) {
    if (may_speak()) say("%s cannot be preloaded: its path contains a space or a colon; running unprofiled", library);
    return;
  }
  char adapter[PATH_MAX] = "";
  adopt(arguments, adapter);
  const char* const others = getenv("LD_PRELOAD");
  char* const list = malloc(preload_size(library, adapter, others));
  if (list == NULL) return;
  put_preload(list, library, adapter, others);
  setenv("LD_PRELOAD", list, 1);
  free(list);
}

// The address sanitizer ends a program if another library is loaded before its own.  The profiler may be loaded before
// it, because it replaces no function that the sanitizer replaces.
static void appease_asan(void) {
  const char* const options = getenv("ASAN_OPTIONS");
  char* all = NULL;
  if (asprintf(&all, "verify_asan_link_order=0%s%s", options == NULL ? "" : ":", options == NULL ? "" : options) < 0)
    return;
  setenv("ASAN_OPTIONS", all, 1);
  free(all);
}

// Sets the environment for the program.  program: its name and arguments; path: of its file, or NULL.
static void prepare(char** program, const char* path) {
  const char* const name = *program;
  if (is_switched_off()) return;
  struct program p = {false, false, NULL};
  if (path != NULL) p = look_at(path);
  if (p.is_elf && p.is_static) {
    if (may_speak()) {
      say("%s is statically linked, so no library can be preloaded; running it unprofiled. Link it "
          "against the MPI library's .so, with libcommlens.so before it",
          name);
    }
    return;
  }
  const struct family* family = p.family;
  const char* const wanted = getenv("COMMLENS_MPI");
  if (wanted != NULL && *wanted != '\0' && strcmp(wanted, "auto") != 0) {
    family = family_called(wanted);
    if (family == NULL) {
      if (may_speak()) say("COMMLENS_MPI=%s is invalid; use openmpi, mpich or abi; running unprofiled", wanted);
      return;
    }
  }
  char folder[PATH_MAX];
  if (!find_own_folder(folder)) {
    if (may_speak()) say("cannot find the libraries beside commlens-run: /proc is not mounted; running unprofiled");
    return;
  }
  if (family == NULL) family = family_of_launcher();
  appease_asan();
  char library[PATH_MAX];
  if (family != NULL) {
    if (find_library(family->name, our_library, library)) {
      preload(library, program);
    } else if (may_speak()) {
      say("%s uses %s, for which this commlens was not built; running it unprofiled", name, family->title);
    }
    return;
  }
  // Neither the file nor a launcher shows the family: takes the first that is installed.  If it is the wrong one, the
  // library itself prints a message.
  for (int f = 0; f < family_count; ++f) {
    if (find_library(families[f].name, our_library, library)) {
      preload(library, program);
      return;
    }
  }
}

// Open MPI stores in MPI_INFO_ENV the command by which each process was started.  Replaces our name there by the
// program's.
static void take_our_name_away(char** program) {
  const char* const command = getenv("OMPI_COMMAND");
  if (command == NULL || getenv("OMPI_ARGV") == NULL) return;
  const char* const slash = strrchr(command, '/');
  if (strcmp(slash == NULL ? command : slash + 1, "commlens-run") != 0) return;
  size_t length = 1;
  for (char** word = program + 1; *word != NULL; ++word) length += strlen(*word) + 1;
  char* const arguments = calloc(length, 1);
  if (arguments == NULL) return;
  for (char** word = program + 1; *word != NULL; ++word) {
    if (word != program + 1) strcat(arguments, " ");
    strcat(arguments, *word);
  }
  const char* const name = strrchr(*program, '/');
  setenv("OMPI_COMMAND", name == NULL ? *program : name + 1, 1);
  setenv("OMPI_ARGV", arguments, 1);
  free(arguments);
}

static const char usage[] =
    "usage: mpirun -n 4 commlens-run PROGRAM [ARGUMENT...]\n"
    "Runs PROGRAM under the MPI profiler commlens. Options of the launcher go before commlens-run; options of "
    "commlens\n"
    "are environment variables, such as COMMLENS_OUTPUT=x.db for the name of the profile.\n"
    "\n"
    "  --help     print this text\n"
    "  --version  print the version\n"
    "  --         end of options, for a PROGRAM whose name begins with '-'\n";

// Returns whether `option` of a launcher sets a number of processes, which follows it as the next argument.
static bool sets_number(const char* option) {
  static const char* const names[] = {"-n", "-np", "--np", "-N", "-c"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (strcmp(option, names[i]) == 0) return true;
  }
  return false;
}

// Explains an option that commlens-run does not have: it belongs to the launcher, or is meant for the profile.
static void explain_option(char** arguments) {
  const char* const option = *arguments;
  const char* const value = arguments[1];
  const char* const equals = strchr(option, '=');
  const bool names_output = strcmp(option, "-o") == 0 || strncmp(option, "--output", 8) == 0;
  if (names_output) {
    const char* const output = equals != NULL ? equals + 1 : value != NULL ? value : "x.db";
    say("commlens-run starts a program under the profiler and has no option %s; set the name of the profile with "
        "COMMLENS_OUTPUT=%s",
        option, output);
  } else if (sets_number(option) && value != NULL && arguments[2] != NULL && *arguments[2] != '-') {
    say("commlens-run starts a program under the profiler and has no option %s; put options of the launcher before it: "
        "mpirun %s %s commlens-run %s",
        option, option, value, arguments[2]);
  } else {
    say("commlens-run starts a program under the profiler and has no option %s; put options of the launcher before it: "
        "mpirun -n 2 commlens-run ./a",
        option);
  }
}

// Acts on the argument in front of the program that begins with '-'.  Returns the exit code.
static int do_option(char** arguments) {
  if (strcmp(*arguments, "--help") == 0 || strcmp(*arguments, "-h") == 0) {
    fputs(usage, stdout);
    return 0;
  }
  if (strcmp(*arguments, "--version") == 0) {
    puts("commlens-run " COMMLENS_VERSION);
    return 0;
  }
  if (may_speak()) explain_option(arguments);
  return wrong_usage;
}

int main(int argc, char** argv) {
  (void)argc;
  own_variables = environ;
  if (argv[1] == NULL) {
    fputs(usage, stderr);
    return wrong_usage;
  }
  const bool ends_options = strcmp(argv[1], "--") == 0;
  if (*argv[1] == '-' && !ends_options) return do_option(argv + 1);
  char** const program = argv + 1 + ends_options;
  if (*program == NULL) {
    say("no program given");
    return wrong_usage;
  }
  char path[PATH_MAX];
  const bool is_found = find_program(*program, path);
  if (!commlens_is_privileged()) {
    prepare(program, is_found ? path : NULL);
    take_our_name_away(program);
  }
  execvp(*program, program);
  if (errno == ENOENT && is_found) execvp(path, program);
  const int error = errno;
  say("cannot run %s: %s", *program, strerror(error));
  return error == ENOENT ? shell_not_found : shell_not_executable;
}
