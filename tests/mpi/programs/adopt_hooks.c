// SPDX-License-Identifier: Apache-2.0
// Plays Kokkos from version 3.7 on: loads what KOKKOS_TOOLS_LIBS names and calls its hooks, also as no sane program
// would; test_adopt.py knows what it does.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void (*push)(const char*);
static void (*pop)(void);
static void (*create)(const char*, uint32_t*);
static void (*destroy)(uint32_t);
static void (*start)(uint32_t);
static void (*stop)(uint32_t);

// Looks up the hooks; returns whether the tool declines fences.
static bool load(void* tool) {
  push = (void (*)(const char*))dlsym(tool, "kokkosp_push_profile_region");
  pop = (void (*)(void))dlsym(tool, "kokkosp_pop_profile_region");
  void (*const settings)(uint32_t, bool*) = (void (*)(uint32_t, bool*))dlsym(tool, "kokkosp_request_tool_settings");
  create = (void (*)(const char*, uint32_t*))dlsym(tool, "kokkosp_create_profile_section");
  destroy = (void (*)(uint32_t))dlsym(tool, "kokkosp_destroy_profile_section");
  start = (void (*)(uint32_t))dlsym(tool, "kokkosp_start_profile_section");
  stop = (void (*)(uint32_t))dlsym(tool, "kokkosp_stop_profile_section");

  bool with_fences[256] = {true};
  settings(1, with_fences);
  return !with_fences[0];
}

// All threads meet the same names, at once.
static void* regions(void* unused) {
  char name[32];
  for (int round = 0; round < 20; ++round) {
    push("thread");
    for (int i = 0; i < 50; ++i) {
      snprintf(name, sizeof name, "part %d", i);
      push(name);
      pop();
    }
    pop();
  }
  return unused;
}

static void sections(void) {
  // More than there is room for, one after another and at once.
  uint32_t id, other, ids[1500];
  create("outer", &other);
  start(other);
  for (int i = 0; i < 5000; ++i) {
    create("short", &id);
    start(id);
    stop(id);
    stop(id);
    destroy(id);
  }
  stop(other);
  for (int i = 0; i < 1500; ++i) create("many", &ids[i]);
  for (int i = 0; i < 1500; ++i) start(ids[i]);
  for (int i = 0; i < 1500; ++i) stop(ids[i]);
  for (int i = 0; i < 1500; ++i) destroy(ids[i]);
  start(4294967295u);
  stop(4294967295u);
  destroy(4294967295u);
}

static void names(void) {
  char name[4000];
  push(NULL);
  pop();
  push("");
  pop();
  memset(name, 'x', sizeof name);
  name[sizeof name - 1] = '\0';
  push(name);
  pop();
  for (int i = 0; i < 70000; ++i) {
    snprintf(name, sizeof name, "%d", i);
    push(name);
    pop();
  }
  for (int i = 0; i < 1000; ++i) pop();
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* const library = getenv("KOKKOS_TOOLS_LIBS");
  if (library == NULL) {
    MPI_Finalize();
    return 0;
  }
  void* const tool = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (tool == NULL) return 3;
  if (!load(tool)) return 4;

  if (strcmp(argv[1], "threads") == 0) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, regions, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(argv[1], "sections") == 0) {
    sections();
  } else if (strcmp(argv[1], "names") == 0) {
    names();
  } else if (strcmp(argv[1], "deep") == 0) {
    for (int i = 0; i < 300; ++i) push("deeper");
    for (int i = 0; i < 300; ++i) pop();
    push("after");
    pop();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
