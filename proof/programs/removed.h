/* SPDX-License-Identifier: Apache-2.0
 * Debian's Open MPI has the procedures MPI-3 removed, but its header declares them only when asked like this. */
#define OMPI_OMIT_MPI1_COMPAT_DECLS 0
#define OMPI_REMOVED_USE_STATIC_ASSERT 0
#define __mpi_interface_removed__(procedure, instead)
