/* SPDX-License-Identifier: Apache-2.0
 * Prints which of the names in a file the program can see, and where its MPI library lies.
 *     names FILE
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  FILE* const file = fopen(argv[1], "r");
  if (file == NULL) return 1;
  char name[128];
  while (fgets(name, sizeof name, file) != NULL) {
    name[strcspn(name, "\n")] = '\0';
    if (dlsym(RTLD_DEFAULT, name) != NULL) puts(name);
  }
  fclose(file);
  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "PMPI_Get_library_version"), &info) != 0) puts(info.dli_fname);
  return MPI_Finalize();
}
