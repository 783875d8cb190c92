/* SPDX-License-Identifier: Apache-2.0
 *
 * libcommlens-api: the interface of commlens.h without effect.  Programs link it so that they run without the
 * profiler.  The profiler defines the same functions, comes first in the loader's search order, and is called
 * instead.  This must be a shared library, because functions that are linked into a program statically cannot be
 * replaced. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "core/api/duplicate.h"
#pragma GCC visibility push(default)
#include "include/commlens/commlens.h"

void commlens_begin(const char* name) {}
void commlens_end(const char* name) {}
commlens_region_t commlens_region(const char* name) { return 0; }
void commlens_begin_region(commlens_region_t region) {}
void commlens_end_region(commlens_region_t region) {}

void commlens_loop_begin(const char* name, int mode) {}
void commlens_loop_iteration(void) {}
void commlens_loop_end(const char* name) {}
void commlens_iteration_begin(const char* name, int mode, long number) {}

commlens_metric_t commlens_metric(const char* name, const char* unit) { return 0; }
void commlens_record(commlens_metric_t metric, double value) {}
void commlens_tag(const char* name, const char* value) {}

const char* commlens_version(void) { return ""; }
int commlens_active(void) { return 0; }
void commlens_pause(void) {}
void commlens_resume(void) {}
void commlens_reset(void) {}
int commlens_flush(void) { return 1; }
int commlens_flush_to(const char* folder) { return 1; }

commlens_watch_t commlens_watch(const void* comm, int kind) { return 0; }
void commlens_watch_start(commlens_watch_t watch) {}
void commlens_watch_stop(commlens_watch_t watch) {}
void commlens_watch_reset(commlens_watch_t watch) {}
commlens_watch_t commlens_watch_snapshot(commlens_watch_t watch) { return 0; }
int commlens_watch_size(commlens_watch_t watch) { return 0; }
int commlens_watch_read(commlens_watch_t watch, unsigned long* messages, unsigned long* bytes) { return 0; }
void commlens_watch_free(commlens_watch_t watch) {}

enum { path_size = 4096 };

/* Stores the path of the first MPI library. */
static int note_mpi(struct dl_phdr_info* object, size_t size, void* path) {
  const char* const slash = strrchr(object->dlpi_name, '/');
  if (strncmp(slash == 0 ? object->dlpi_name : slash + 1, "libmpi", 6) != 0) return 0;
  return snprintf(path, path_size, "%s", object->dlpi_name) < path_size;
}

/* The only function with an effect: the program goes on with the communicator.  MPI is where the program has it, or was
 * loaded for a plugin only (RTLD_LOCAL), as Python does for mpi4py. */
static void* find_mpi(const char* name) {
  char path[path_size];
  void* found = dlsym(RTLD_DEFAULT, name);
  void* const library = found == 0 && dl_iterate_phdr(note_mpi, path) != 0 ? dlopen(path, RTLD_LAZY | RTLD_NOLOAD) : 0;
  if (library == 0) return found;
  found = dlsym(library, name);
  dlclose(library);
  return found;
}

int commlens_reorder(const void* comm, void* newcomm) {
  const struct commlens_mpi mpi = commlens_find_mpi(find_mpi);
  return commlens_duplicate(&mpi, comm, newcomm);
}

__attribute__((visibility("hidden"))) int commlens_reorder_number(int comm, int* newcomm, const void* place) {
  const struct commlens_mpi mpi = commlens_find_mpi(find_mpi);
  return commlens_duplicate_number(&mpi, comm, newcomm);
}
