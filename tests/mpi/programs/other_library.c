/* SPDX-License-Identifier: Apache-2.0
 * The part of an MPI library by which it is recognised: a shared library that tells VERSION.  With FAKE it also has the
 * procedures that site_job.c calls, for one process; without, they are those of the library that it is linked with.
 * With NAMES it has only the names, for the linker. */
#include <stdio.h>
#include <string.h>

int PMPI_Get_library_version(char* text, int* length);
int PMPI_Get_library_version(char* text, int* length) {
  strcpy(text, VERSION);
  *length = (int)strlen(text);
  return 0;
}
int MPI_Get_library_version(char* text, int* length) __attribute__((alias("PMPI_Get_library_version")));

#if defined(FAKE)
#define PROCEDURE(name, arguments, body)       \
  int PMPI_##name arguments;                   \
  int PMPI_##name arguments { body return 0; } \
  int MPI_##name arguments __attribute__((alias("PMPI_" #name)));

PROCEDURE(Init, (int* argc, char*** argv), puts(argc == NULL || argv == NULL ? "?" : "fake MPI_Init");)
PROCEDURE(Initialized, (int* flag), *flag = 1;)
PROCEDURE(Comm_rank, (int comm, int* rank), *rank = comm == 0;)
PROCEDURE(Allreduce, (const void* in, void* out, int count), memcpy(out, in, sizeof(int) * (size_t)count);)
PROCEDURE(Finalize, (void), )
#elif defined(NAMES)
int MPI_Init, MPI_Comm_rank, MPI_Allreduce, MPI_Finalize, ompi_mpi_comm_world, ompi_mpi_int, ompi_mpi_op_sum;
#endif
