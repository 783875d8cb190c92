// SPDX-License-Identifier: Apache-2.0
// libcommlens-stopwatch.so: measures when a process enters and leaves MPI_Init and MPI_Finalize, for `commlens
// overhead`.
//
// It is preloaded before any tool, so that the times include what the tool does there.  It uses no MPI: it passes each
// call on to the next definition.  When the process leaves MPI_Finalize, it writes one line to the file HOST.PID in the
// folder STOPWATCH_OF_COMMLENS, with these numbers:
//
//   nanoseconds in MPI_Init, between MPI_Init and MPI_Finalize, in MPI_Finalize;
//   largest memory in KiB;
//   1 if no other definition of MPI_Init comes before ours;
//   1 if the library TOOL_OF_COMMLENS is loaded or, if that is empty, commlens is not
//
// The last number detects wrong runs.  The loader skips a tool that it cannot preload, which then seems to cost
// nothing.  In the runs without a tool, no commlens must be loaded.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/privileged.h"

typedef long call(void* a, void* b, void* c, void* d);  // any of the procedures; arguments stay in their registers

call MPI_Init, PMPI_Finalize;

static int depth;  // of nested calls: Fortran procedures call the C ones
static long long entered, begun, ended;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1000000000LL * t.tv_sec + t.tv_nsec;
}

static long no_such_procedure(void* a, void* b, void* c, void* d) {
  (void)a, (void)b, (void)c, (void)d;
  return 1;
}

struct search {
  const char* name;
  void* found;
};

static int look(struct dl_phdr_info* object, size_t size, void* argument) {
  struct search* const search = argument;
  (void)size;
  void* const handle = *object->dlpi_name == '\0' ? NULL : dlopen(object->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == NULL) return 0;
  search->found = dlsym(handle, search->name);
  if (search->found == (void*)&PMPI_Finalize) search->found = NULL;
  dlclose(handle);
  return search->found != NULL;
}

// Returns the next definition of a name.  Python loads an MPI library for one module only; then RTLD_NEXT finds neither
// the library nor a tool, and all loaded libraries are searched.
static call* next(const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  if (found == NULL) {
    char of_library[32];
    snprintf(of_library, sizeof of_library, "%s%s", *name == 'm' ? "p" : *name == 'M' ? "P" : "", name);
    struct search search = {of_library, NULL};
    dl_iterate_phdr(look, &search);
    found = search.found;
  }
  if (found == NULL) {
    if (!commlens_is_privileged()) {
      fprintf(stderr, "commlens: no loaded MPI library defines %s; the call fails\n", name);
    }
    return no_such_procedure;
  }
  return (call*)found;
}

// In KiB.  getrusage() would include the launcher's memory, if that was larger before it executed this program.
static long most_memory(void) {
  long most = 0;
  FILE* const file = fopen("/proc/self/status", "re");
  if (file == NULL) return 0;
  for (char line[256]; fgets(line, sizeof line, file) != NULL;) {
    if (sscanf(line, "VmHWM: %ld", &most) == 1) break;
  }
  fclose(file);
  return most;
}

static int is_commlens(struct dl_phdr_info* object, size_t size, void* argument) {
  (void)size, (void)argument;
  const char* const slash = strrchr(object->dlpi_name, '/');
  return slash != NULL && strcmp(slash, "/libcommlens.so") == 0;
}

static bool tool_is_as_told(void) {
  const char* const tool = getenv("TOOL_OF_COMMLENS");
  if (tool == NULL) return true;
  if (*tool == '\0') return dl_iterate_phdr(is_commlens, NULL) == 0;
  void* const handle = dlopen(tool, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != NULL) dlclose(handle);
  return handle != NULL;
}

static void write_times(long long left) {
  const char* const folder = commlens_is_privileged() ? NULL : getenv("STOPWATCH_OF_COMMLENS");
  if (folder == NULL) return;
  char host[256] = "", path[PATH_MAX], line[128];
  gethostname(host, sizeof host - 1);
  if ((size_t)snprintf(path, sizeof path, "%s/%s.%d", folder, host, (int)getpid()) >= sizeof path) return;
  const bool is_first = dlsym(RTLD_DEFAULT, "MPI_Init") == (void*)&MPI_Init;
  const int n = snprintf(line, sizeof line, "%lld %lld %lld %ld %d %d\n", begun - entered, ended - begun, left - ended,
                         most_memory(), is_first, tool_is_as_told());
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;  // commlens overhead reports the missing process
  if (write(file, line, (size_t)n) < n) unlink(path);
  close(file);
}

// With several sessions, the first beginning and the last end count.
static long begin(call* of, void* a, void* b, void* c, void* d) {
  const bool is_first = depth++ == 0 && entered == 0;
  if (is_first) entered = now();
  const long rc = of(a, b, c, d);
  if (is_first) begun = now();
  --depth;
  return rc;
}

// Some tools return from the application's MPI_Finalize at once and call PMPI_Finalize when the process exits.  Then
// MPI_Finalize lasts until this call returns, which writes the times again.
static long end_late(call* of, void* a, void* b, void* c, void* d) {
  const bool is_late = depth++ == 0 && ended != 0;
  const long rc = of(a, b, c, d);
  if (is_late) write_times(now());
  --depth;
  return rc;
}

static long end(call* of, void* a, void* b, void* c, void* d) {
  const bool is_outer = depth++ == 0;
  if (is_outer) ended = now();
  const long rc = of(a, b, c, d);
  if (is_outer) write_times(now());
  --depth;
  return rc;
}

#define CALL(what, name)                                                                 \
  __attribute__((visibility("default"))) long name(void* a, void* b, void* c, void* d) { \
    static call* of;                                                                     \
    if (of == NULL) of = next(#name);                                                    \
    return what(of, a, b, c, d);                                                         \
  }
// Compilers differ in how they derive a symbol from a Fortran name.
#define FORTRAN(what, lower, upper) \
  CALL(what, lower)                 \
  CALL(what, lower##_)              \
  CALL(what, lower##__)             \
  CALL(what, upper)                 \
  CALL(what, lower##_f08_)

CALL(begin, MPI_Init)
CALL(begin, MPI_Init_thread)
CALL(begin, MPI_Session_init)
CALL(end, MPI_Session_finalize)
CALL(end, MPI_Finalize)
CALL(end_late, PMPI_Finalize)
FORTRAN(begin, mpi_init, MPI_INIT)
FORTRAN(begin, mpi_init_thread, MPI_INIT_THREAD)
FORTRAN(begin, mpi_session_init, MPI_SESSION_INIT)
FORTRAN(end, mpi_session_finalize, MPI_SESSION_FINALIZE)
FORTRAN(end, mpi_finalize, MPI_FINALIZE)
