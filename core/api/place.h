/* SPDX-License-Identifier: Apache-2.0
 *
 * Internal variants of the functions of commlens.h.  They take the address from which the program called, because
 * messages about a begin and an end that do not match contain it.  For a Fortran call it is not the caller of the C
 * function. */
#pragma once

#include "include/commlens/commlens.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)
void commlens_begin_at(const char* name, const void* place);
void commlens_end_at(const char* name, const void* place);
void commlens_begin_region_at(commlens_region_t region, const void* place);
void commlens_end_region_at(commlens_region_t region, const void* place);
void commlens_loop_begin_at(const char* name, int mode, const void* place);
void commlens_loop_iteration_at(const void* place);
void commlens_iteration_begin_at(const char* name, int mode, long number, const void* place);

/* For a communicator given as its Fortran integer handle. */
commlens_watch_t commlens_watch_number(int comm, int kind);
int commlens_reorder_number(int comm, int* newcomm, const void* place);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
