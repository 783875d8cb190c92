// SPDX-License-Identifier: Apache-2.0
#include "core/programs/execute_again.h"

#include <elf.h>
#include <sys/auxv.h>

#include "core/programs/without_libc.h"

static const char own_file[] = "/proc/self/exe";

static bool is_same_file(const char* path, const struct stat* file) {
  struct stat status;
  return get_status(path, &status) && status.st_dev == file->st_dev && status.st_ino == file->st_ino;
}

// Returns whether a file is a program.  A script is none.
static bool is_program(const char* path) {
  char head[SELFMAG + 1] = "";
  const int file = open_file(path, O_RDONLY);
  if (file < 0) return false;
  const long n = system_call(SYS_read, file, (long)head, SELFMAG, 0, 0, 0);
  close_file(file);
  return n == SELFMAG && begins_with(head, ELFMAG);
}

static bool runs_others(const char* file) {
  const char* const name = file_name(file);
  return begins_with(name, "ld-") || begins_with(name, "ld.so") || begins_with(name, "ld64.") ||
         begins_with(name, "qemu-");
}

// The name by which the program was executed comes first: the kernel names the process by it, and a program that lies
// under several names sees it.  For a script, it is the script's.
bool find_program(struct program* program) {
  const char* const executed = (const char*)getauxval(AT_EXECFN);
  if (getauxval(AT_BASE) == 0) return false;  // the kernel has executed the dynamic linker
  struct stat self;
  if (!read_link(own_file, program->file, sizeof program->file) || !get_status(own_file, &self)) {
    // /proc is not mounted.
    if (executed == NULL || length_of(executed) >= sizeof program->file || runs_others(executed)) return false;
    *put_text(program->file, executed) = '\0';
    program->path = executed;
    return is_program(executed);
  }
  if (runs_others(program->file)) return false;
  if (!is_same_file(program->file, &self)) *put_text(program->file, own_file) = '\0';
  program->path = executed != NULL && is_same_file(executed, &self) ? executed : program->file;
  return true;
}

void execute_again(const struct program* program, char** arguments, char** variables, struct changes changes) {
  static const char preload[] = "LD_PRELOAD=", asan[] = "ASAN_OPTIONS=";
  size_t count = 0, length = sizeof preload + sizeof asan + 1;
  const char* options = NULL;
  for (; variables[count] != NULL; ++count) {
    if (options == NULL && begins_with(variables[count], asan)) options = variables[count] + sizeof asan - 1;
  }
  if (changes.preload != NULL) length += length_of(changes.preload);
  if (changes.asan_options != NULL) length += length_of(changes.asan_options);
  if (options != NULL) length += length_of(options);

  const size_t size = (count + 3) * sizeof *variables + length;
  char** const changed = get_memory(size);
  if (changed == NULL) return;
  char* text = (char*)(changed + count + 3);
  size_t kept = 0;
  if (changes.preload != NULL) {
    changed[kept++] = text;
    text = put_text(put_text(text, preload), changes.preload) + 1;
  }
  if (changes.asan_options != NULL) {
    changed[kept++] = text;
    text = put_text(put_text(text, asan), changes.asan_options);
    if (options != NULL) put_text(put_text(text, ":"), options);
  }
  for (size_t i = 0; i < count; ++i) {
    const bool is_replaced = (changes.preload != NULL && begins_with(variables[i], preload)) ||
                             (changes.asan_options != NULL && begins_with(variables[i], asan));
    if (!is_replaced) changed[kept++] = variables[i];
  }
  system_call(SYS_execve, (long)program->path, (long)arguments, (long)changed, 0, 0, 0);
  free_memory(changed, size);
}
