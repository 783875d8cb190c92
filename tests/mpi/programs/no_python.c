/* SPDX-License-Identifier: Apache-2.0
 * Looks like a program that runs Python, of an unknown version or with memory that is not as expected.
 *
 *     no_python VERSION THREAD: THREAD is what the thread state is: zeros, missing, text or cycle */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))

static const char* version = "";
static void* state = NULL;
static void* cycle[512];

EXPORT char PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512];
EXPORT char _PyRuntime[4096];
EXPORT void* PyGILState_GetThisThreadState(void);
EXPORT const char* Py_GetVersion(void);

void* PyGILState_GetThisThreadState(void) { return state; }
const char* Py_GetVersion(void) { return version; }

static void* state_of(const char* kind) {
  if (strcmp(kind, "missing") == 0) return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const memory = calloc(1, 4096);
  if (strcmp(kind, "text") == 0) memset(memory, 'x', 4096);
  if (strcmp(kind, "cycle") == 0) {
    for (int i = 0; i < 512; ++i) cycle[i] = cycle;
    return cycle;
  }
  return memory;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  version = argv[1];
  state = state_of(argv[2]);
  MPI_Init(&argc, &argv);
  for (int i = 0; i < 5; ++i) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
