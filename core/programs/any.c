// SPDX-License-Identifier: Apache-2.0
// libcommlens-any.so: for LD_PRELOAD of all programs of a machine, or /etc/ld.so.preload.
//
// Most processes are no MPI processes.  There it looks at the names of the loaded objects and at some variables, and
// does nothing.  In an MPI process it executes the same program again, with the profiler for this MPI library in
// LD_PRELOAD, as commlens-run would: the search order of a running process cannot be changed any more.  It is
// initialised before all other libraries (-z initfirst), so that nothing else of the process has begun.  Therefore it
// calls nothing that another library could have replaced (without_libc.h).
#include <gnu/libc-version.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <time.h>

#include "core/base/privileged.h"
#include "core/programs/choice.h"
#include "core/programs/execute_again.h"
#include "core/programs/without_libc.h"

extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

// The sanitizers with which a program is left alone define these.
#pragma weak __tsan_init
#pragma weak __hwasan_init
#pragma weak __msan_init
void __tsan_init(void);
void __hwasan_init(void);
void __msan_init(void);

// Other C libraries lack them, and give constructors no arguments.
#pragma weak gnu_get_libc_version
#pragma weak _r_debug

// The facts about this process that the loaded objects show.
struct process {
  const struct family* family;  // of the first MPI library; NULL: none is loaded
  const char* self;             // path of this library; NULL: unknown
  const char* profiler;         // path of libcommlens.so, linked or preloaded by somebody; NULL: there is none
  bool has_asan;                // the address sanitizer, as a library
  bool is_left_alone;           // has another sanitizer
};

static bool names_other_sanitizer(const char* name) {
  static const char* const names[] = {"libtsan.so", "libclang_rt.tsan", "libhwasan.so", "libclang_rt.hwasan"};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (begins_with(name, names[i])) return true;
  }
  return false;
}

static struct process look_at_objects(void) {
  struct process p = {NULL, NULL, NULL, false, false};
  for (const struct link_map* object = _r_debug.r_map; object != NULL; object = object->l_next) {
    const char* const path = object->l_name;
    const char* const name = file_name(path);
    if (object->l_ld == _DYNAMIC) p.self = path;
    if (p.family == NULL) p.family = family_of_library(name);
    if (are_equal(name, our_library)) p.profiler = path;
    if (is_asan(path, length_of(path))) p.has_asan = true;
    if (names_other_sanitizer(name)) p.is_left_alone = true;
  }
  if (__tsan_init != NULL || __hwasan_init != NULL || __msan_init != NULL) p.is_left_alone = true;
  return p;
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
    if (!begins_with(name, interpreters[i])) continue;
    // What follows is a version: python3.11, but not pythonista.
    const char* rest = name + length_of(interpreters[i]);
    while (*rest != '\0' && is_one_of(*rest, "0123456789.-")) ++rest;
    if (*rest == '\0') return true;
  }
  for (size_t i = 0; i < sizeof folders / sizeof *folders; ++i) {
    if (begins_with(program, folders[i])) return false;
  }
  return true;
}

// Prints one line, if this process speaks for its job.  parts: end with NULL.  If nobody reads stderr any more, SIGPIPE
// must not kill this process.
static void say(const char* const* parts) {
  if (!may_speak()) return;
  char line[2 * PATH_MAX];
  char* end = put_text(line, "commlens: ");
  for (; *parts != NULL; ++parts) {
    if (length_of(*parts) + 1 < (size_t)(line + sizeof line - end)) end = put_text(end, *parts);
  }
  *end++ = '\n';
  const unsigned long broken_pipe = 1UL << (SIGPIPE - 1);
  unsigned long before = 0;
  const struct timespec at_once = {0, 0};
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&broken_pipe, (long)&before, sizeof before, 0, 0);
  system_call(SYS_write, 2, (long)line, end - line, 0, 0, 0);
  system_call(SYS_rt_sigtimedwait, (long)&broken_pipe, 0, (long)&at_once, sizeof before, 0, 0);
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof before, 0, 0);
}

// Stores the path of a file, without links.  Without /proc it is the path itself, which then must be absolute.
static bool find_real_path(const char* path, char real[PATH_MAX]) {
  char link[64];
  char digits[16];
  const int file = open_file(path, O_PATH);
  if (file < 0) return false;
  size_t n = 0;
  for (int rest = file; rest > 0 || n == 0; rest /= 10) digits[n++] = (char)('0' + rest % 10);
  char* end = put_text(link, "/proc/self/fd/");
  while (n > 0) *end++ = digits[--n];
  *end = '\0';
  const bool is_found = read_link(link, real, PATH_MAX);
  close_file(file);
  if (is_found) return true;
  if (*path != '/' || length_of(path) >= PATH_MAX) return false;
  *put_text(real, path) = '\0';
  return true;
}

// Stores the path of our library for a family, which lies beside this one.
static bool find_library(const char* self, const struct family* family, char path[PATH_MAX]) {
  if (self == NULL || !find_real_path(self, path)) return false;
  char* end = path + (file_name(path) - path);
  if (length_of(family->name) + length_of(our_library) + 2 > (size_t)(path + PATH_MAX - end)) return false;
  *put_text(put_text(put_text(end, family->name), "/"), our_library) = '\0';
  return is_readable(path) && path[length_before(path, separators)] == '\0';
}

// Returns whether LD_PRELOAD names a library.
static bool is_preloaded(const char* preloaded, const char* library) {
  const size_t own = length_of(library);
  while (preloaded != NULL && *preloaded != '\0') {
    const size_t length = length_before(preloaded, separators);
    if (own == length && begins_with(preloaded, library)) return true;
    preloaded += length + (preloaded[length] != '\0');
  }
  return false;
}

// Returns whether the profiler in this process is that of another MPI, which a launched program has inherited from the
// program that has started it.
static bool is_inherited(const struct process* p, const char* preloaded) {
  if (p->family == NULL || !is_preloaded(preloaded, p->profiler)) return false;
  const char* const file = file_name(p->profiler);
  for (int f = 0; f < family_count; ++f) {
    const size_t length = length_of(families[f].name) + 1;  // with the slash
    const char* const folder = file - length;
    if (&families[f] != p->family && (size_t)(file - p->profiler) > length && folder[-1] == '/' &&
        begins_with(folder, families[f].name))
      return true;
  }
  return false;
}

// Returns the family of the MPI library that this process has loaded or is expected to load; NULL: none, or not known.
static const struct family* wanted_family(const struct process* p, const char* program) {
  const char* const wanted = value_of("COMMLENS_MPI");
  const struct family* const family = p->family != NULL       ? p->family
                                      : may_load_mpi(program) ? family_of_launcher()
                                                              : NULL;
  if (family == NULL || wanted == NULL || *wanted == '\0' || are_equal(wanted, "auto")) return family;
  const struct family* const named = family_called(wanted);
  if (named == NULL) {
    say((const char*[]){"COMMLENS_MPI=", wanted, " is invalid; use openmpi, mpich or abi; running unprofiled", NULL});
  }
  return named;
}

// Stores the path of the library with which the program would be measured.  Returns false if it is not to be measured,
// or is already.
static bool choose_library(const struct process* p, const char* program, char library[PATH_MAX]) {
  const char* const preloaded = value_of("LD_PRELOAD");
  if (is_switched_off() || (p->profiler != NULL && !is_inherited(p, preloaded))) return false;
  const struct family* const family = wanted_family(p, program);
  if (family == NULL) return false;
  if (!find_library(p->self, family, library)) {
    say((const char*[]){file_name(program), " uses ", family->title,
                        ", for which there is no library beside libcommlens-any.so; running it unprofiled", NULL});
    return false;
  }
  // One that is named already could not be loaded.  valgrind runs the program itself.
  return !is_preloaded(preloaded, library) &&
         (preloaded == NULL || !contains(preloaded, length_of(preloaded), "vgpreload_"));
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor) TEXT_OF(major) "." TEXT_OF(minor)

// Returns whether the C library of this process has what commlens was built with.  The dynamic linker ends a program in
// which a preloaded library needs a newer one, as in a container that is older than the machine.
static bool has_our_libc(void) {
#ifdef __GLIBC__
  if (gnu_get_libc_version == NULL) return false;
  const char* const version = gnu_get_libc_version();
  int numbers[2] = {0, 0};
  const char* c = version;
  for (int i = 0; i < 2; ++i, c += *c == '.') {
    for (; *c >= '0' && *c <= '9'; ++c) numbers[i] = 10 * numbers[i] + (*c - '0');
  }
  if (numbers[0] > __GLIBC__ || (numbers[0] == __GLIBC__ && numbers[1] >= __GLIBC_MINOR__)) return true;
  say((const char*[]){"this system has glibc ", version,
                      ", and commlens was built for " VERSION_TEXT(__GLIBC__, __GLIBC_MINOR__) "; running unprofiled",
                      NULL});
  return false;
#else
  return true;
#endif
}

// The address sanitizer ends a program if another library is loaded before its own.
static const char* wanted_asan_options(const struct process* p) {
  static const char option[] = "verify_asan_link_order";
  const char* const options = value_of("ASAN_OPTIONS");
  if (!p->has_asan || (options != NULL && contains(options, length_of(options), option))) return NULL;
  return "verify_asan_link_order=0";
}

__attribute__((constructor)) static void begin(int count, char** arguments, char** variables) {
  if (gnu_get_libc_version == NULL || &_r_debug == NULL) return;
  if (commlens_is_privileged() || count == 0) return;
  own_variables = variables;
  const struct process p = look_at_objects();
  if (p.is_left_alone) return;
  struct changes changes = {NULL, wanted_asan_options(&p)};
  if (p.family == NULL && family_of_launcher() == NULL && changes.asan_options == NULL) return;
  struct program program;
  if (!find_program(&program)) return;
  char library[PATH_MAX];
  char* list = NULL;
  size_t size = 0;
  if ((p.family != NULL || family_of_launcher() != NULL) && choose_library(&p, program.file, library) &&
      has_our_libc()) {
    const char* const preloaded = value_of("LD_PRELOAD");
    size = preload_size(library, "", preloaded);
    list = get_memory(size);
    if (list != NULL) put_preload(list, library, "", preloaded);
  }
  changes.preload = list;
  if (list != NULL || changes.asan_options != NULL) execute_again(&program, arguments, variables, changes);
  if (list != NULL) free_memory(list, size);
}
