/* SPDX-License-Identifier: Apache-2.0
 *
 * What commlens_reorder() does where nothing is counted: in libcommlens-api, and in a profiler that is switched off.
 * No header of MPI is used, because libcommlens-api serves all MPI libraries. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

/* Procedures of the MPI library; null: not found. */
struct commlens_mpi { /* NOLINT(readability-identifier-naming): a name of C */
  void *initialized, *finalized, *session_init, *test_inter, *split, *free, *dup, *f2c, *c2f;
  int has_pointers; /* its handles are pointers, not integers */
};

/* Looks them up by their names with the prefix PMPI_.  `find` returns the address of a name, or null. */
struct commlens_mpi commlens_find_mpi(void* (*find)(const char* name));

/* Collective: returns 0 when *newcomm is a duplicate of *comm, or -1, also after MPI_Finalize, and before MPI_Init if
 * the library has no sessions.  Both point to handles of the MPI library. */
int commlens_duplicate(const struct commlens_mpi* mpi, const void* comm, void* newcomm);

/* The same for Fortran handles. */
int commlens_duplicate_number(const struct commlens_mpi* mpi, int comm, int* newcomm);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
