/* SPDX-License-Identifier: Apache-2.0
 *
 * The one place that decides whether a process may be measured at all. */
#pragma once

#include <stdbool.h>
#include <sys/auxv.h>

/* True when the kernel gave this process rights that its user does not have: set-user-ID, set-group-ID, file
 * capabilities.  Its environment is then a stranger's: nothing of it counts, nothing is measured, written or said, and
 * every call is passed on.  The kernel's answer holds for the life of the process, also when it gives the rights back.
 */
static inline bool commlens_is_privileged(void) { return getauxval(AT_SECURE) != 0; }
