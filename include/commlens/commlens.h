/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of commlens.  A program that is profiled needs none of it; one that wants to know whether it is
 * being profiled looks these names up with dlsym(RTLD_DEFAULT, ...), because they exist only when libcommlens.so is
 * loaded. */
#ifndef COMMLENS_H
#define COMMLENS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the version of the loaded library, as in "0.1.0".  A constant; never freed.  Any thread, any time. */
const char* commlens_version(void);

/* Returns 1 while MPI calls of this process are being counted: from the return of MPI_Init to the call of
 * MPI_Finalize, unless commlens is switched off or does not fit the MPI library; else 0.  Any thread, any time. */
int commlens_active(void);

/* Copies what this process has counted beside the output, over its last copy, as COMMLENS_FLUSH_EVERY does: `commlens
 * recover` makes a profile of the copies of all ranks, also when the job or its nodes are lost later.  Talks to no
 * other rank.  Returns 0, or 1 when it cannot be written or nothing is counted.  Any thread, between MPI_Init and
 * MPI_Finalize. */
int commlens_flush(void);

#ifdef __cplusplus
}
#endif
#endif
