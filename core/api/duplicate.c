/* SPDX-License-Identifier: Apache-2.0
 *
 * Duplicates a communicator of any MPI library.  Handles are passed as long, whose register has an int in its lower
 * half on every processor.  In memory, handles have their own size. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "core/api/duplicate.h"

#include <dlfcn.h>
#include <string.h>

typedef int asking_function(int* flag);
typedef int test_inter_function(long comm, int* flag);
typedef int split_function(long comm, int color, int key, long* made);
typedef int free_function(long* comm);
typedef int dup_function(long comm, long* made);
typedef long f2c_function(int comm);
typedef int c2f_function(long comm);

/* The standard defines the name of the library with its interface, whose handles are pointers.  Those of Open MPI are,
 * too; those of MPICH are integers. */
static int has_pointers(void* (*find)(const char* name), const void* dup) {
  Dl_info of;
  if (find("ompi_mpi_comm_world") != 0) return 1;
  if (dup == 0 || dladdr(dup, &of) == 0 || of.dli_fname == 0) return 0;
  const char* const slash = strrchr(of.dli_fname, '/');
  return strncmp(slash == 0 ? of.dli_fname : slash + 1, "libmpi_abi.", 11) == 0;
}

struct commlens_mpi commlens_find_mpi(void* (*find)(const char* name)) {
  struct commlens_mpi mpi;
  mpi.initialized = find("PMPI_Initialized");
  mpi.finalized = find("PMPI_Finalized");
  mpi.session_init = find("PMPI_Session_init");
  mpi.test_inter = find("PMPI_Comm_test_inter");
  mpi.split = find("PMPI_Comm_split");
  mpi.free = find("PMPI_Comm_free");
  mpi.dup = find("PMPI_Comm_dup");
  mpi.f2c = find("PMPI_Comm_f2c");
  mpi.c2f = find("PMPI_Comm_c2f");
  mpi.has_pointers = has_pointers(find, mpi.dup);
  return mpi;
}

/* MPI would end the program. */
static int is_usable(const struct commlens_mpi* mpi) {
  int is_initialized = 1, is_finalized = 0;
  if (mpi->initialized != 0) ((asking_function*)mpi->initialized)(&is_initialized);
  if (mpi->finalized != 0) ((asking_function*)mpi->finalized)(&is_finalized);
  return !is_finalized && (is_initialized || mpi->session_init != 0);
}

/* First splits as a profiler does (core/mpi/reorder.cpp), with the colour of those that count nothing: then a job of
 * which only some processes are profiled does not hang. */
static int duplicate(const struct commlens_mpi* mpi, long comm, long* newcomm) {
  int is_inter = 0;
  long apart = 0;
  if (mpi->test_inter == 0 || mpi->split == 0 || mpi->free == 0 || mpi->dup == 0) return -1;
  if (!is_usable(mpi)) return -1;
  if (((test_inter_function*)mpi->test_inter)(comm, &is_inter) != 0) return -1;
  if (!is_inter) {
    if (((split_function*)mpi->split)(comm, 1, 0, &apart) != 0) return -1;
    ((free_function*)mpi->free)(&apart);
  }
  return ((dup_function*)mpi->dup)(comm, newcomm) == 0 ? 0 : -1;
}

/* Returns the handle that a pointer leads to. */
static long handle_at(const struct commlens_mpi* mpi, const void* at) {
  int number = 0;
  long pointer = 0;
  if (mpi->has_pointers) {
    memcpy(&pointer, at, sizeof pointer);
    return pointer;
  }
  memcpy(&number, at, sizeof number);
  return number;
}

int commlens_duplicate(const struct commlens_mpi* mpi, const void* comm, void* newcomm) {
  const size_t size = mpi->has_pointers ? sizeof(long) : sizeof(int);
  long made = 0;
  if (comm == 0 || newcomm == 0) return -1;
  if (duplicate(mpi, handle_at(mpi, comm), &made) != 0) return -1;
  memcpy(newcomm, &made, size);
  return 0;
}

/* A Fortran handle equals the handle in C if that is an integer. */
int commlens_duplicate_number(const struct commlens_mpi* mpi, int comm, int* newcomm) {
  long made = 0;
  if (mpi->has_pointers && (mpi->f2c == 0 || mpi->c2f == 0)) return -1;
  if (!is_usable(mpi)) return -1;
  const long from = mpi->has_pointers ? ((f2c_function*)mpi->f2c)(comm) : (long)comm;
  if (duplicate(mpi, from, &made) != 0) return -1;
  *newcomm = mpi->has_pointers ? ((c2f_function*)mpi->c2f)(made) : (int)handle_at(mpi, &made);
  return 0;
}
