// SPDX-License-Identifier: Apache-2.0
// libcommlens-any.so: for LD_PRELOAD of all programs of a machine, or /etc/ld.so.preload.
//
// Most processes are no MPI processes.  There it looks at the names of the loaded objects and at some variables, and
// does nothing.  In an MPI process it executes the same program again, with the profiler for this MPI library in
// LD_PRELOAD, as commlens-run would: the search order of a running process cannot be changed any more.  It is
// initialised before all other libraries (-z initfirst), so that nothing else of the process has begun.
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/privileged.h"
#include "core/programs/choice.h"
#include "core/programs/sanitizers.h"

extern char** environ;

static const char* file_name(const char* path) {
  const char* const slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

// The facts about this process that the loaded objects show.
struct process {
  const struct family* family;  // of the first MPI library; NULL: none is loaded
  bool has_profiler;            // linked, or preloaded by somebody
};

static int look_at(struct dl_phdr_info* object, size_t size, void* out) {
  (void)size;
  struct process* const p = out;
  const char* const name = file_name(object->dlpi_name);
  if (p->family == NULL) p->family = family_of_library(name);
  if (strcmp(name, our_library) == 0) p->has_profiler = true;
  return 0;
}

static bool begins_with(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

// Returns whether a program that has loaded no MPI library may do so later: an interpreter, or a program that does not
// belong to the system.  Shells, launchers and tools do not, even if a launcher has started them.
static bool may_load_mpi(const char* program) {
  static const char* const folders[] = {"/bin/",      "/sbin/",    "/lib/",       "/lib64/",      "/usr/bin/",
                                        "/usr/sbin/", "/usr/lib/", "/usr/lib64/", "/usr/libexec/"};
  static const char* const interpreters[] = {"python", "pypy", "julia", "R",     "perl", "ruby",
                                             "octave", "java", "node",  "tclsh", "lua",  "guile"};
  const char* const name = file_name(program);
  if (begins_with(name, "commlens-")) return false;
  for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; ++i) {
    const size_t length = strlen(interpreters[i]);
    // What follows is a version: python3.11, but not pythonista.
    if (begins_with(name, interpreters[i]) && strspn(name + length, "0123456789.-") == strlen(name + length))
      return true;
  }
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    if (begins_with(program, folders[i])) return false;
  }
  return true;
}

// Stores the path of this program.  Returns false for a program that cannot be executed again by it: one that the
// dynamic linker or an emulator runs, whose name is not in its arguments.
static bool find_program(char path[PATH_MAX]) {
  struct stat self, named;
  const ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (n <= 0) return false;
  path[n] = '\0';
  const char* const name = file_name(path);
  if (begins_with(name, "ld-") || begins_with(name, "ld.so") || begins_with(name, "ld64.") ||
      begins_with(name, "qemu-"))
    return false;
  if (stat("/proc/self/exe", &self) != 0) return false;
  if (stat(path, &named) != 0 || named.st_dev != self.st_dev || named.st_ino != self.st_ino) {
    strcpy(path, "/proc/self/exe");  // removed or replaced since, or only in memory
  }
  return true;
}

// Stores the path of our library for a family, which lies beside this one.
static bool find_library(const struct family* family, char path[PATH_MAX]) {
  Dl_info info;
  char self[PATH_MAX];
  if (dladdr((void*)families, &info) == 0 || realpath(info.dli_fname, self) == NULL) return false;
  const size_t folder = (size_t)(file_name(self) - self);
  const int n = snprintf(path, PATH_MAX, "%.*s%s/%s", (int)folder, self, family->name, our_library);
  return n < PATH_MAX && access(path, R_OK) == 0 && strpbrk(path, separators) == NULL;
}

// Returns whether LD_PRELOAD names this library already, which then could not be loaded, or valgrind, which runs the
// program itself.
static bool is_decided(const char* preloaded, const char* library) {
  const size_t own = strlen(library);
  while (preloaded != NULL && *preloaded != '\0') {
    const size_t length = strcspn(preloaded, separators);
    if (own == length && strncmp(preloaded, library, length) == 0) return true;
    if (memmem(preloaded, length, "vgpreload_", 10) != NULL) return true;
    preloaded += length + (preloaded[length] != '\0');
  }
  return false;
}

// Executes this program with another LD_PRELOAD.  Returns only if that fails.
static void execute_again(const char* path, char** arguments, char** variables, const char* preload) {
  static const char name[] = "LD_PRELOAD=";
  size_t count = 0;
  while (variables[count] != NULL) ++count;
  char** const changed = calloc(count + 2, sizeof *changed);
  char* const first = malloc(sizeof name + strlen(preload));
  if (changed != NULL && first != NULL) {
    size_t kept = 0;
    changed[kept++] = strcat(strcpy(first, name), preload);
    for (size_t i = 0; i < count; ++i) {
      if (!begins_with(variables[i], name)) changed[kept++] = variables[i];
    }
    execve(path, arguments, changed);
  }
  free(first);
  free(changed);
}

// Returns the family of the MPI library that this process has loaded or is expected to load; NULL: none, or not known.
static const struct family* wanted_family(const struct process* p, const char* program) {
  const char* const wanted = getenv("COMMLENS_MPI");
  const struct family* const family = p->family != NULL       ? p->family
                                      : may_load_mpi(program) ? family_of_launcher()
                                                              : NULL;
  if (family == NULL || wanted == NULL || *wanted == '\0' || strcmp(wanted, "auto") == 0) return family;
  const struct family* const named = family_called(wanted);
  if (named == NULL && may_speak()) {
    say("COMMLENS_MPI=%s is invalid; use openmpi, mpich or abi; running unprofiled", wanted);
  }
  return named;
}

// Returns the value for LD_PRELOAD with which the program would be measured, or NULL.
static char* wanted_preload(const struct process* p, const char* program) {
  if (p->has_profiler || is_switched_off()) return NULL;
  const struct family* const family = wanted_family(p, program);
  if (family == NULL) return NULL;
  char library[PATH_MAX];
  if (!find_library(family, library)) {
    if (may_speak()) {
      say("%s uses %s, for which there is no library beside libcommlens-any.so; running it unprofiled",
          file_name(program), family->title);
    }
    return NULL;
  }
  const char* const preloaded = getenv("LD_PRELOAD");
  return is_decided(preloaded, library) ? NULL : preload_list(library, "", preloaded);
}

__attribute__((constructor)) static void begin(int count, char** arguments, char** variables) {
  if (commlens_is_privileged() || count == 0 || !may_call_libc(arguments, variables)) return;
  const int saved = errno;
  if (environ == NULL) environ = variables;  // libc, which does this itself, may not have begun
  struct process p = {NULL, false};
  char program[PATH_MAX];
  dl_iterate_phdr(look_at, &p);
  if ((p.family != NULL || family_of_launcher() != NULL) && find_program(program)) {
    char* const preload = wanted_preload(&p, program);
    if (preload != NULL) execute_again(program, arguments, variables, preload);
    free(preload);
  }
  errno = saved;
}
