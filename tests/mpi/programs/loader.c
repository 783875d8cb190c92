/* SPDX-License-Identifier: Apache-2.0
 * A program without MPI that loads one with it, as interpreters load their extensions, runs it and unloads it:
 * `loader FILE local|global|deep`; its main is called `program`. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  int const scope = strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  void* const loaded = dlopen(argv[1], RTLD_NOW | scope | (strcmp(argv[2], "deep") == 0 ? RTLD_DEEPBIND : 0));
  if (loaded == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  int (*const program)(int, char**) = (int (*)(int, char**))dlsym(loaded, "program");
  int const code = program(argc, argv);
  dlclose(loaded);
  return code;
}
