/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of commlens.h as the profiler has them inside: with the place where the program called, and for Fortran.
 * What is said about begins and ends that do not match names that place, and in Fortran it is not the caller of the
 * function of C. */
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

/* commlens_watch() for the number that Fortran has for a communicator. */
commlens_watch_t commlens_watch_number(int comm, int kind);
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
